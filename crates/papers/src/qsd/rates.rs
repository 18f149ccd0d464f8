//! The greatest delay of one flow against its rate [qsd §3.4, Fig. 6].

use super::frame::Frame;
use super::phases::{SWEEP, peaks, summits};
use super::setup::{Strategy, request, satellite};
use super::spread::{Curve, GREATEST, MEDIAN, curves_chart, curves_table};
use crate::builtin::{base, kbps, with};
use crate::figure::Abscissa;
use crate::{Bench, Bound, Claim, Experiment, Outcome, Tools};
use fairpace_lab::RunError;
use fairpace_lab::stats::short;
use fairpace_scenario::RawScenario;

/// Rates of the flow in kbit/s; the paper's are not readable from the text.
const RATES: [f64; 6] = [64.0, 128.0, 256.0, 384.0, 512.0, 1_024.0];
const RATE: Abscissa = Abscissa::log("rate_kbps", "rate of the flow", "kbit/s");

/// Units in kbit/s, and what they are in the small frame [qsd §2.2].
const SET_UPS: [(Frame, f64, &str); 4] = [
    (Frame::Large, 44.0, "a slot in two super-frames"),
    (Frame::Small, 44.0, "a slot in two super-frames"),
    (Frame::Small, 88.0, "a slot in a super-frame"),
    (Frame::Small, 264.0, "a slot in a multi-frame"),
];

fn set_rate(s: &mut RawScenario, rate: f64) {
    for flow in &mut s.flows {
        if let Some(source) = &mut flow.source {
            source.rate = Some(kbps(rate));
        }
        flow.quick_start = Some(request(rate));
    }
}

pub(super) fn fig6(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let (mut claims, mut points) = (Vec::new(), Vec::new());
    let mut section = e.section().text(
        "A flow of another rate asks for the lowest rate that the option can say from 1.25 times its own on, as 320 is \
         for 256 kbit/s."
            .to_owned(),
    );
    for (frame, unit, slots) in SET_UPS {
        let starts = frame.strategies();
        let place = |strategy: Strategy, rate: f64| {
            with(&base(e), |s| {
                frame.set(s);
                satellite(s).granularity = kbps(unit);
                set_rate(s, rate);
                strategy.set(s);
            })
        };
        let scenarios = starts.iter().flat_map(|(strategy, _)| RATES.map(|rate| place(*strategy, rate)));
        let all = summits(e, &scenarios.collect::<Vec<_>>(), SWEEP, bench)?;
        let rows = all.chunks(RATES.len()).map(|row| RATES.into_iter().zip(row.iter().map(|s| peaks(s))).collect());
        let curve = |((strategy, colour), at): ((Strategy, _), _)| Curve { name: strategy.name(), colour, at };
        let curves: Vec<Curve> = starts.into_iter().zip(rows).map(curve).collect();
        let (suffix, words) = match frame {
            Frame::Large => ("large".to_owned(), "large frame".to_owned()),
            Frame::Small => (format!("small-{unit}"), format!("small frame, units of {unit} kbit/s")),
        };
        claims.extend(fig6_claims(e, &suffix, &words, &curves));
        let caption = format!("{}; medians over the phases, bars from the least to the greatest", e.file);
        let numbers = format!("{}; s, median over the phases (least to greatest); minimum and unit: {slots}", e.file);
        let title = format!("Greatest delay, {words}");
        section = section
            .chart(curves_chart(fig6_title(&words, &curves), caption, &RATE, "greatest end-to-end delay", &curves))
            .table(curves_table(title, numbers, &RATE, &curves));
        let shared = [("slots_per_multi_frame", frame.slots()), ("unit_kbps", unit)];
        for ((_, key), curve) in starts.iter().zip(&curves) {
            let metrics = [("e2ed_peak_median_s", MEDIAN), ("e2ed_peak_greatest_s", GREATEST)];
            points.extend(curve.points(key, &RATE, &shared, &metrics));
        }
    }
    Ok(e.outcome(points, claims, section))
}

/// The median at the highest rate over that at the lowest.
fn growth(curve: &Curve) -> f64 {
    let medians = curve.medians();
    medians[RATES.len() - 1] / medians[0]
}

fn fig6_title(words: &str, curves: &[Curve]) -> String {
    let [none, qs, .., max] = curves else { return words.to_owned() };
    let [none, qs, max] = [none, qs, max].map(|curve| short(growth(curve)));
    format!(
        "{words}: from 64 to 1,024 kbit/s the greatest delay grows {none} times without Quick-Start, {qs} times with QS, {max} times with QSD at T_q,max"
    )
}

fn fig6_claims(e: &Experiment, suffix: &str, words: &str, curves: &[Curve]) -> Vec<Claim> {
    let [none, qs, qsd0, opt, max] = curves else { return Vec::new() };
    let grows = |key: &str, how: &str, curve: &Curve| {
        let statement = format!(
            "the greatest delay grows with the flow's rate {how} (ours: by half from 64 to 1,024 kbit/s), {words}"
        );
        let what = "median over the phases at 1,024 kbit/s / at 64 kbit/s";
        e.claim(format!("grows-{key}-{suffix}"), statement, Bound::AtLeast(1.5), what).exact(growth(curve))
    };
    let flat = format!("with QSD, T_q,max it is flat (ours: within a quarter), {words}");
    let lower = format!("and at 256 kbit/s lower than with any other start but T_q,opt, {words}");
    let least = "median with T_q,max / least of the medians without Quick-Start, with QS, with T_q = 0";
    let highest = max.medians().into_iter().fold(f64::NAN, f64::max);
    let lowest = max.medians().into_iter().fold(f64::NAN, f64::min);
    let others = [none, qs, qsd0].map(|curve| curve.medians()[2]).into_iter().fold(f64::INFINITY, f64::min);
    vec![
        grows("none", "without Quick-Start", none),
        grows("qs", "with QS", qs),
        grows("qsd-0", "with QSD, T_q = 0", qsd0),
        e.claim(format!("flat-{suffix}"), flat, Bound::AtMost(1.25), "highest of the medians over the rates / lowest")
            .exact(highest / lowest),
        e.claim(format!("low-{suffix}"), lower, Bound::Below(1.0), least).exact(max.medians()[2] / others),
        e.claim(
            format!("opt-like-max-{suffix}"),
            format!("T_q,opt gives almost the same at 256 kbit/s (ours: within a quarter), {words}"),
            Bound::Within(0.8, 1.25),
            "median with T_q,opt / with T_q,max",
        )
        .exact(opt.medians()[2] / max.medians()[2]),
    ]
}
