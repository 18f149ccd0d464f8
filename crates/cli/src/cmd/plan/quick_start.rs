//! `fairpace plan quick-start`: how long to hold a Quick-Start request, by formula and by the fluid model.

use super::packets;
use crate::args::{Frame, QuickStart, Release};
use crate::error::{Failure, Outcome, code};
use crate::term::{Columns, Ink, note, paint};
use fairpace_analysis::fluid::{self, Flow, FluidError, HEADROOM, Link, MEDIAN_OVER, Spread, Strategy, Summary};
use fairpace_path::{DamaError, DamaSpec, ReleaseOf};
use fairpace_units::{Duration, QsRate, format_duration};
use serde_json::{Value, json};
use std::io::Write;

pub(super) fn run(args: &QuickStart) -> Outcome {
    let spec = spec(args);
    let link = Link::try_from(&spec).map_err(|e| wrong(e, &spec))?;
    let flow = Flow::asking(args.rate, args.packet_size).map_err(|e| wrong(e, &spec))?;
    link.check(&flow).map_err(|e| wrong(e, &spec))?;
    if args.verify && spec.terminals < 2 {
        return Err(
            Failure::usage("`--terminals` is 1; with `--verify` packets need one to go to").hint("give at least 2")
        );
    }
    let rows = fluid::strategies(&link).into_iter().map(|strategy| {
        let packets =
            args.verify.then(|| packets::longest_delays(&spec, &flow, strategy, args.first_timer)).transpose();
        let packets = packets.map_err(|e| Failure::new(code::FAILED, e.to_string()))?;
        Ok(Row { strategy, model: fluid::summary(&link, &flow, strategy), packets })
    });
    let plan = Plan {
        args,
        smallest: fluid::smallest_t_q(&link, &flow, Duration::try_from_secs_f64(link.t_q_max_s()).unwrap_or_default()),
        rows: rows.collect::<Outcome<Vec<Row>>>()?,
        approved: fluid::approved(&spec, &flow),
        spec,
        link,
        flow,
    };
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{}", serde_json::to_string_pretty(&plan.json())?)?;
    } else {
        plan.print(&mut out)?;
    }
    for warning in plan.warnings() {
        note(false, &format!("warning: {warning}"));
    }
    Ok(())
}

fn spec(args: &QuickStart) -> DamaSpec {
    let frame = match args.frame {
        Frame::Small => DamaSpec::small(),
        Frame::Large => DamaSpec::large(),
    };
    DamaSpec {
        propagation: args.propagation.unwrap_or(frame.propagation),
        terminals: args.terminals.unwrap_or(frame.terminals),
        capacity: args.capacity.unwrap_or(frame.capacity),
        slot_size: args.slot_size.unwrap_or(frame.slot_size),
        slots_per_multi_frame: args.slots_per_multi_frame.unwrap_or(frame.slots_per_multi_frame),
        slots_per_super_frame: args.slots_per_super_frame.unwrap_or(frame.slots_per_super_frame),
        allocation_delay: args.allocation_delay.unwrap_or(frame.allocation_delay),
        granularity: args.granularity.unwrap_or(frame.granularity),
        minimum: args.minimum.unwrap_or(frame.minimum),
        release_of: match args.release {
            Release::Decided => ReleaseOf::Decided,
            Release::InForce => ReleaseOf::InForce,
        },
        ..frame
    }
}

/// The link's words, as options of this command.
fn wrong(error: FluidError, spec: &DamaSpec) -> Failure {
    let mut text = error.to_string();
    let fields = [
        "terminals",
        "capacity",
        "slot_size",
        "slots_per_frame",
        "slots_per_multi_frame",
        "slots_per_super_frame",
        "propagation",
        "allocation_delay",
        "granularity",
        "minimum",
        "rate",
        "packet size",
    ];
    for field in fields {
        text = text.replace(&format!("`{field}`"), &format!("`--{}`", field.replace(['_', ' '], "-")));
    }
    let failure = Failure::usage(text);
    match error {
        FluidError::Link(DamaError::NotWhole { .. }) => failure.hint(format!(
            "a multi-frame is whole frames of {}, a super-frame whole multi-frames: give both",
            spec.slots_per_frame
        )),
        FluidError::NoRequest { most, .. } => failure.hint(format!(
            "allowed is at most {:.0} Mbit/s: its highest rate is 1310.72",
            (most.as_bps() / 1e6).floor()
        )),
        _ => failure.hint("`fairpace plan quick-start --help` has the defaults"),
    }
}

struct Row {
    strategy: Strategy,
    model: Summary,
    /// With `--verify`: the longest delay in each phase, s, rising.
    packets: Option<Vec<f64>>,
}

impl Row {
    fn packets(&self) -> Option<Spread> {
        let sorted = self.packets.as_ref()?;
        let (best, worst) = (*sorted.first()?, *sorted.last()?);
        Some(Spread { best, median: *sorted.get(sorted.len() / 2)?, worst })
    }
}

struct Plan<'a> {
    args: &'a QuickStart,
    spec: DamaSpec,
    link: Link,
    flow: Flow,
    smallest: Option<Duration>,
    approved: QsRate,
    rows: Vec<Row>,
}

impl Plan<'_> {
    fn print(&self, out: &mut impl Write) -> Outcome {
        let (link, spec) = (&self.link, &self.spec);
        let [t_f, t_r, t_p] = [link.t_f, link.t_b, link.t_p].map(|t| ms(t.as_secs_f64()));
        let [t_a, rtt_m] = [link.allocation_delay(), link.rtt_m()].map(|t| ms(t.as_secs_f64()));
        let title = format!("Quick-Start for a stream of {} from an otherwise idle satellite terminal", self.flow.rate);
        writeln!(out, "{}\n", paint(&title, Ink::Bold))?;
        let mut periods = Columns::default();
        let mut row = |name: &str, value: &str, what: String| {
            periods.row([name.to_owned(), format!("{value} ms"), what]);
        };
        row("T_f", &t_f, format!("multi-frame of {} slots", spec.slots_per_multi_frame));
        row("T_r", &t_r, format!("super-frame of {} slots", spec.slots_per_super_frame));
        row("T_a", &t_a, format!("a request is answered {} super-frames later", spec.allocation_delay));
        row("T_p", &t_p, "from terminal to terminal".to_owned());
        row("RTT_m", &rtt_m, "T_f + 2 T_p".to_owned());
        periods.print_plain(out, "  ")?;

        let half = ms(link.t_b.as_secs_f64() / 2.0);
        let (max, opt) = (link.t_q_max_s(), link.t_q_opt_s());
        writeln!(out, "\nT_q,max = T_r/2 + T_a - RTT_m = {half} + {t_a} - {rtt_m} = {} ms", ms(max))?;
        if max <= 0.0 {
            writeln!(out, "  not above 0: the capacity is there before the answer, and no hold is needed")?;
        }
        writeln!(
            out,
            "T_q,opt = (2 (T_r + T_a) - 3 RTT_m) / 5 = (2 ({t_r} + {t_a}) - 3 · {rtt_m}) / 5 = {} ms",
            ms(opt)
        )?;
        if opt <= 0.0 {
            writeln!(out, "  not above 0: the second report already tells of the new capacity, and no hold is needed")?;
        }
        let smallest = match self.smallest {
            Some(t_q) => format!("T_q = {} ms", t_q.as_millis()),
            None if max > 0.0 => format!("none up to T_q,max; {}", self.why_no_hold()),
            None => format!("none at T_q = 0; {}", self.why_no_hold()),
        };
        writeln!(out, "shortest hold without a second hump, by the fluid model: {smallest}\n")?;
        writeln!(
            out,
            "ask for {} (code {}): the lowest rate of the option from {HEADROOM} times the stream on\n",
            self.flow.quick_start.rate(),
            self.flow.quick_start.code()
        )?;
        self.table().print(out, "  ")?;
        writeln!(
            out,
            "\nend-to-end delay in s, least / median / greatest over {} phases; median: of the first {}",
            fluid::phases(link).count(),
            format_duration(MEDIAN_OVER)
        )?;
        if self.args.verify {
            writeln!(out, "packets: simulated in {} phases; off: the medians, model against packets", packets::PHASES)?;
        }
        Ok(())
    }

    fn table(&self) -> Columns {
        let mut head = vec!["strategy", "longest delay", "median delay", "second hump"];
        if self.args.verify {
            head.extend(["packets, longest", "off"]);
        }
        let mut table = Columns::new(&head);
        for row in &self.rows {
            let hump = row.model.hump.map_or("–".to_owned(), |h| format!("{:.2} s, at {:.1} s", h.rise, h.at));
            let mut cells = vec![name(row.strategy), three(row.model.max), three(row.model.median), hump];
            if let Some(packets) = row.packets() {
                cells.push(three(packets));
                cells.push(format!("{:+.1} %", (row.model.max.median / packets.median - 1.0) * 100.0));
            }
            table.row(cells);
        }
        table
    }

    fn why_no_hold(&self) -> &'static str {
        match self.link.release {
            ReleaseOf::Decided => "what is asked for falls before it is used (`--release in-force`: not until then)",
            ReleaseOf::InForce => "the grant is too small or too late",
        }
    }

    fn past_first_timer(&self, strategy: Strategy) -> bool {
        self.link.rtt_m() + strategy.t_q() > self.args.first_timer
    }

    /// The points in which reality will not follow the formulas.
    fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        // A sender that gives up at one hold gives up at all longer ones too: the shortest is enough.
        if let Some(row) = self.rows.iter().find(|row| self.past_first_timer(row.strategy)) {
            let (t_q, timer) = (row.strategy.t_q(), format_duration(self.args.first_timer));
            let hold = if t_q.is_zero() { String::new() } else { format!("T_q = {} ms + ", t_q.as_millis()) };
            warnings.push(format!(
                "{hold}RTT_m = {} ms is past the no-feedback timer of {timer}: it expires before the answer comes, and \
                 halves the rate (tfrc's `first_timer = \"3 s\"` waits longer)",
                (self.link.rtt_m() + t_q).as_millis()
            ));
        }
        if self.approved < self.flow.quick_start {
            let rate = match self.approved {
                QsRate::ZERO => "nothing".to_owned(),
                rate => format!("{} (code {})", rate.rate(), rate.code()),
            };
            warnings.push(format!(
                "a terminal with the default agent approves {rate} of the {}; the table has all of it approved",
                self.flow.quick_start.rate()
            ));
        }
        if let Some(gap) = self.gap() {
            warnings.push(format!(
                "with its minimum of {} a terminal has a slot every {} only, not in each T_f: the first round trip takes up \
                 to twice that longer than RTT_m, and a hold near T_q,max lets the capacity come too early",
                self.link.minimum,
                format_duration(Duration::from_millis(gap.as_millis() as u64)),
            ));
        }
        warnings
    }

    /// The time between the slots of the minimum, if it is longer than T_f.
    fn gap(&self) -> Option<Duration> {
        let slot = self.spec.slot_size / self.link.minimum;
        (slot > self.link.t_f + Duration::from_micros(1)).then_some(slot)
    }

    fn json(&self) -> Value {
        let link = &self.link;
        let time = |t: Duration| json!(t.as_secs_f64() * 1e3);
        let strategies: Vec<Value> = self.rows.iter().map(|row| self.row_json(row)).collect();
        json!({
            "terminals": self.spec.terminals,
            "minimum_bps": link.minimum.as_bps(),
            "release": match link.release {
                ReleaseOf::Decided => "decided",
                ReleaseOf::InForce => "in-force",
            },
            "rate_bps": self.flow.rate.as_bps(),
            "packet_size_bytes": self.flow.packet.get(),
            "t_f_ms": time(link.t_f),
            "t_r_ms": time(link.t_b),
            "t_a_ms": time(link.allocation_delay()),
            "t_p_ms": time(link.t_p),
            "rtt_m_ms": time(link.rtt_m()),
            "t_q_max_ms": link.t_q_max_s() * 1e3,
            "t_q_opt_ms": link.t_q_opt_s() * 1e3,
            "t_q_without_second_hump_ms": self.smallest.map(|t| t.as_secs_f64() * 1e3),
            "request_bps": self.flow.quick_start.rate().as_bps(),
            "request_code": self.flow.quick_start.code(),
            "approved_bps": self.approved.rate().as_bps(),
            "first_timer_ms": time(self.args.first_timer),
            "strategies": strategies,
            "warnings": self.warnings(),
        })
    }

    fn row_json(&self, row: &Row) -> Value {
        let spread = |s: Spread| json!({ "least": s.best * 1e3, "median": s.median * 1e3, "greatest": s.worst * 1e3 });
        let hump = |h: fluid::Hump| json!({ "rise_ms": h.rise * 1e3, "delay_ms": h.delay * 1e3, "at_ms": h.at * 1e3 });
        json!({
            "strategy": match row.strategy {
                Strategy::None => "none",
                Strategy::Qs => "qs",
                Strategy::Qsd(_) => "qsd",
            },
            "t_q_ms": row.strategy.t_q().as_secs_f64() * 1e3,
            "max_e2ed_ms": spread(row.model.max),
            "median_e2ed_ms": spread(row.model.median),
            "second_hump": row.model.hump.map(hump),
            "past_first_timer": self.past_first_timer(row.strategy),
            "packets_max_e2ed_ms": row.packets().map(spread),
        })
    }
}

fn name(strategy: Strategy) -> String {
    match strategy {
        Strategy::None => "none".to_owned(),
        Strategy::Qs => "qs".to_owned(),
        Strategy::Qsd(t_q) => format!("qsd, T_q = {} ms", ms(t_q.as_secs_f64())),
    }
}

fn three(spread: Spread) -> String {
    format!("{:.2} / {:.2} / {:.2}", spread.best, spread.median, spread.worst)
}

/// Milliseconds, to a tenth.
fn ms(seconds: f64) -> String {
    format!("{:.1}", seconds * 1e3)
}
