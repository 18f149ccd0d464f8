//! `fairpace plan tcp-rate`: TCP's rate by the equations.

use crate::args::TcpRate;
use crate::error::{Failure, Outcome};
use crate::term::{Columns, Ink, paint};
use fairpace_control::{BadPath, Equation, TcpPath, Terms};
use fairpace_units::{Probability, Rate, format_duration};
use serde_json::{Map, Value, json};
use std::io::Write as _;

pub(super) fn run(args: &TcpRate) -> Outcome {
    let rto = args.rto.unwrap_or_else(|| TcpPath::assumed_rto(args.rtt));
    let path = TcpPath::new(args.size, args.rtt, rto, args.b).map_err(bad_path)?;
    let wanted = args.rate.map(|spec| spec.with_packets_of(args.size));
    let rows = Equation::NAMES.map(|(name, equation)| Row {
        name,
        at_p: args.p.map(|p| (equation.rate(&path, p), equation.terms(&path, p))),
        p_for: wanted.map(|rate| {
            // Below the rate at p = 1 no loss rate gives it.
            let p = equation.loss_rate(&path, rate);
            (rate >= equation.rate(&path, Probability::ONE)).then_some(p)
        }),
    });
    let mut out = std::io::stdout().lock();
    if args.json {
        let equations: Vec<Value> = rows.iter().map(|row| row.json(args)).collect();
        let mut all = Map::from_iter([
            ("packet_size_bytes".to_owned(), json!(args.size.get())),
            ("rtt_ms".to_owned(), json!(ms(args.rtt.as_secs_f64()))),
            ("rto_ms".to_owned(), json!(ms(rto.as_secs_f64()))),
            ("rto_assumed".to_owned(), json!(args.rto.is_none())),
            ("packets_per_ack".to_owned(), json!(args.b)),
        ]);
        if let Some(p) = args.p {
            all.insert("p".to_owned(), json!(p.get()));
        }
        if let Some(rate) = wanted {
            all.insert("wanted_rate_bps".to_owned(), json!(rate.as_bps()));
        }
        all.insert("equations".to_owned(), json!(equations));
        writeln!(out, "{}", serde_json::to_string_pretty(&all)?)?;
        return Ok(());
    }
    let assumed = if args.rto.is_none() { " (assumed: four round trips, at least 1 s)" } else { "" };
    // As it was typed, but for one of three hundred zeros.
    let p = args.p.map(Probability::get).map(|p| if p < 1e-4 { format!("{p:e}") } else { p.to_string() });
    let p = p.map(|p| format!(" at p = {p}")).unwrap_or_default();
    writeln!(out, "{}", paint(&format!("TCP's rate{p}, by each equation"), Ink::Bold))?;
    writeln!(
        out,
        "packets of {}, RTT {}, timeout {}{assumed}, {}\n",
        args.size,
        format_duration(args.rtt),
        format_duration(rto),
        if args.b == 1.0 { "an ACK for each".to_owned() } else { format!("an ACK for {}", args.b) },
    )?;
    let mut head = vec!["equation"];
    if args.p.is_some() {
        head.extend(["rate", "packets/s", "triple dup. ACKs", "timeouts"]);
    }
    let p_for = wanted.map(|rate| format!("p for {rate}"));
    if let Some(p_for) = &p_for {
        head.extend([p_for.as_str(), "one in"]);
    }
    let mut table = Columns::new(&head);
    for row in &rows {
        table.row(row.cells(args));
    }
    table.print(&mut out, "  ")?;
    writeln!(out)?;
    if args.p.is_some() {
        writeln!(out, "triple dup. ACKs, timeouts: the time that they cost, on average, for each packet")?;
    }
    if rows.iter().any(|row| row.p_for == Some(None)) {
        writeln!(out, "–: even where every packet is lost, this equation gives more")?;
    }
    Ok(())
}

fn bad_path(e: BadPath) -> Failure {
    Failure::usage(format!("`--{}` is {}", e.field, e.found)).hint(format!("allowed is {}", e.allowed))
}

/// The result of one equation.
struct Row {
    name: &'static str,
    /// With `--p`.
    at_p: Option<(Rate, Terms)>,
    /// With `--rate`: the loss rate that gives it, if any does.
    p_for: Option<Option<Probability>>,
}

impl Row {
    fn json(&self, args: &TcpRate) -> Value {
        let mut row = Map::from_iter([("equation".to_owned(), json!(self.name))]);
        if let Some((rate, terms)) = self.at_p {
            row.insert("rate_bps".to_owned(), json!(rate.as_bps()));
            row.insert("rate_packets_per_s".to_owned(), json!(rate.as_packets_per_second(args.size)));
            row.insert("triple_dup_ms_per_packet".to_owned(), json!(ms(terms.triple_dup_s)));
            row.insert("timeout_ms_per_packet".to_owned(), json!(ms(terms.timeout_s)));
        }
        if let Some(p) = self.p_for {
            row.insert("p_for_wanted_rate".to_owned(), json!(p.map(Probability::get)));
        }
        Value::Object(row)
    }

    fn cells(&self, args: &TcpRate) -> Vec<String> {
        let mut cells = vec![self.name.to_owned()];
        if let Some((rate, terms)) = self.at_p {
            cells.push(rate.to_string());
            cells.push(digits(rate.as_packets_per_second(args.size)));
            cells.push(milliseconds(terms.triple_dup_s));
            cells.push(milliseconds(terms.timeout_s));
        }
        match self.p_for {
            None => {}
            Some(None) => cells.extend(["–".to_owned(), "–".to_owned()]),
            Some(Some(p)) => cells.extend([digits(p.get()), digits(1.0 / p.get())]),
        }
        cells
    }
}

fn ms(seconds: f64) -> f64 {
    seconds * 1e3
}

fn milliseconds(seconds: f64) -> String {
    match ms(seconds) {
        // Timeouts of losses that are independent and rare.
        x if x > 0.0 && x < 1e-4 => "<0.0001 ms".to_owned(),
        x => format!("{} ms", digits(x)),
    }
}

/// Four significant digits.
fn digits(x: f64) -> String {
    match x {
        0.0 => "0".to_owned(),
        x if !(1e-4..1e7).contains(&x) => format!("{x:.3e}"),
        x => {
            let whole = x.log10().floor() as i32 + 1;
            format!("{x:.*}", usize::try_from(4 - whole).unwrap_or(0))
        }
    }
}
