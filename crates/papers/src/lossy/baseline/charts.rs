//! Figs. 1 to 3 and 25 to 27 as charts, tables and points.

use super::runs::{DELAYS, Data, ERRORS, Observed, RATES, Reading, SIZES};
use crate::figure::{brief, curve, point, table, text};
use crate::{Claim, Experiment, Outcome, Point};
use fairpace_control::Equation;
use fairpace_lab::stats::mean;
use fairpace_report::{Axis, Chart, Series, Style, Table};

pub(super) fn outcome(
    e: &Experiment,
    data: &Data,
    claims: Vec<Claim>,
    equations: [Equation; 2],
    reading: &Reading,
) -> Outcome {
    let seeds = data.0.cells.iter().map(|c| c.runs.len()).min().unwrap_or(0);
    let combinations = SIZES.len() * RATES.len() * DELAYS.len();
    let caption = format!(
        "{}; mean over {combinations} combinations of packet, capacity and delay, {seeds} seeds of each; bars are 95 % \
         intervals (Student's t)",
        e.file
    );
    let mut section = e.section().text(SET_UP);
    for equation in equations {
        section = section.chart(scatter(data, reading, equation, &caption));
    }
    section = section.chart(deviations(data, reading, equations, &caption));
    section = section.table(deviation_table(data, reading, &caption));
    e.outcome(points(data, reading), claims, section)
}

const SET_UP: &str = "Each equation is fed with what the run measured: p is what the reading says, by default cuts of \
                      the window (fast retransmits and timeouts) per packet sent, R the mean smoothed RTT, the timeout its mean without \
                      back-off. Deviation is 100 (estimated / measured - 1) of all that was sent. Where every second \
                      packet is acknowledged, a lone packet's ACK waits five quarters of a packet time of the channel.";

fn equation_name(equation: Equation) -> &'static str {
    match equation {
        Equation::Simple => "simple equation",
        Equation::Complex => "complex equation",
        Equation::Modified => "modified equation",
        Equation::Tfrc => "RFC 5348's equation",
    }
}

/// The colour of the protocol that goes by the equation.
fn colour(equation: Equation) -> &'static str {
    match equation {
        Equation::Simple => "srp",
        Equation::Complex => "crp",
        Equation::Modified => "mrp",
        Equation::Tfrc => "tfrc",
    }
}

/// Estimated against measured, one mark per combination and error.
fn scatter(data: &Data, reading: &Reading, equation: Equation, caption: &str) -> Chart {
    let name = equation_name(equation);
    let mut chart = Chart::new(
        format!("What the {name} says of TCP, against what TCP sent"),
        Axis::new("measured", "kbit/s").range(0.0, 20.0),
        Axis::new("estimated", "kbit/s").range(0.0, 60.0),
    )
    .caption(format!("{caption}; one mark per combination and error"));
    {
        let mut marks: Vec<(f64, f64)> = Vec::new();
        for cell in data.0.of(reading.runs.key()) {
            let observed: Vec<Observed> = cell.runs.iter().filter_map(|r| **r).collect();
            let measured: Vec<f64> = observed.iter().map(|o| o.sent_bps / 1e3).collect();
            let estimated: Vec<f64> =
                observed.iter().filter_map(|o| Some(reading.estimate(equation, o, &cell.x)? / 1e3)).collect();
            if !estimated.is_empty() {
                marks.push((mean(&measured), mean(&estimated)));
            }
        }
        marks.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (x, y) = marks.into_iter().unzip();
        let series = Series { style: Style::Points, ..Series::line(name, colour(equation), x, y) };
        chart = chart.series(series);
    }
    chart.series(Series::line("estimated = measured", "reference", vec![0.0, 20.0], vec![0.0, 20.0]).reference())
}

/// Deviation against the injected error.
fn deviations(data: &Data, reading: &Reading, equations: [Equation; 2], caption: &str) -> Chart {
    let mut chart = Chart::new(
        deviation_title(data, reading, equations),
        Axis::new("injected error", "%"),
        Axis::new("deviation of the estimate from TCP", "%").range(-100.0, 300.0),
    )
    .caption(format!("{caption}. The axis ends at 300 %; the table goes on"));
    // The simple one stays beside the modified one, to which it is so near.
    let mut shown = equations.to_vec();
    if !shown.contains(&Equation::Simple) {
        shown.push(Equation::Simple);
    }
    for equation in shown {
        let at = |error: f64| (error, data.deviation(reading, equation, error));
        chart = chart.series(curve(equation_name(equation), colour(equation), data.errors().into_iter().map(at)));
    }
    let ends = vec![ERRORS[0], ERRORS[ERRORS.len() - 1]];
    chart.series(Series::line("as TCP", "reference", ends, vec![0.0, 0.0]).reference())
}

/// Says what was measured at 10 % error.
fn deviation_title(data: &Data, reading: &Reading, equations: [Equation; 2]) -> String {
    let at = |equation| data.deviation(reading, equation, 10.0).map(|d| d.mean);
    match equations.map(at) {
        [Some(a), Some(b)] => format!(
            "At 10 % error the {} is off by {a:+.0} %, the {} by {b:+.0} %",
            equation_name(equations[0]),
            equation_name(equations[1])
        ),
        _ => "Deviation of the estimates".to_owned(),
    }
}

/// Everything against the error, under one reading.
fn deviation_table(data: &Data, reading: &Reading, caption: &str) -> Table {
    let head = ["injected error (%)", "p", "RTT (s)", "timeout (s)", "b"].into_iter().chain([
        "sent (kbit/s)",
        "simple (%)",
        "complex (%)",
        "modified (%)",
    ]);
    let mut table = table(
        "Deviation against the error",
        format!("{caption}. Deviations in percent, mean ± half-width of the 95 % interval; the rest are means"),
        head,
        [],
    );
    for error in data.errors() {
        let of = |number: fn(&Observed) -> f64| brief(data.estimate(reading.runs, error, |o, _| Some(number(o))));
        let p = brief(data.estimate(reading.runs, error, |o, _| Some(reading.p_of(o, error))));
        let mut row = vec![error.to_string(), p, of(|o| o.rtt_ms / 1e3), of(|o| o.rto_ms / 1e3)];
        row.extend([of(|o| o.b), of(|o| o.sent_bps / 1e3)]);
        for equation in [Equation::Simple, Equation::Complex, Equation::Modified] {
            row.push(text(data.deviation(reading, equation, error)));
        }
        table.rows.push(row);
    }
    table
}

fn points(data: &Data, reading: &Reading) -> Vec<Point> {
    let mut points = Vec::new();
    for error in data.errors() {
        for equation in [Equation::Simple, Equation::Complex, Equation::Modified] {
            let deviation = data.deviation(reading, equation, error);
            points.extend(point(equation.name(), &[("error_percent", error)], "deviation_percent", deviation));
        }
    }
    points
}
