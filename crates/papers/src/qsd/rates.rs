//! The greatest delay of one flow against its rate [qsd §3.4, Fig. 6].

use super::single::Frame;
use super::{SWEEP, Spread, Strategy, Summit, base, kbps, of_phases, request, satellite, summits, with};
use crate::figure::table;
use crate::{Bench, Bound, Claim, Experiment, Outcome, Tools};
use fairpace_lab::RunError;
use fairpace_lab::stats::short;
use fairpace_report::{Axis, Chart, Series, Table};

/// Rates of the flow in kbit/s; the paper's are not readable from the text.
const RATES: [f64; 6] = [64.0, 128.0, 256.0, 384.0, 512.0, 1_024.0];

/// Units of the small frame, in kbit/s, and what they are [qsd §2.2].
const UNITS: [(f64, &str); 3] =
    [(44.0, "a slot in two super-frames"), (88.0, "a slot in a super-frame"), (264.0, "a slot in a multi-frame")];

pub(super) fn fig6(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let (mut claims, mut points) = (Vec::new(), Vec::new());
    let mut section = e.section().text(
        "A flow of another rate asks for the lowest rate that the option can say from 1.25 times its own on, as 320 is \
         for 256 kbit/s."
            .to_owned(),
    );
    let set_ups =
        [(Frame::Large, UNITS[0]), (Frame::Small, UNITS[0]), (Frame::Small, UNITS[1]), (Frame::Small, UNITS[2])];
    for (frame, (unit, slots)) in set_ups {
        let strategies = frame.strategies();
        let mut scenarios = Vec::new();
        for (strategy, _) in strategies {
            for rate in RATES {
                scenarios.push(with(&base(e), |s| {
                    frame.set(s);
                    satellite(s).granularity = kbps(unit);
                    for flow in &mut s.flows {
                        if let Some(source) = &mut flow.source {
                            source.rate = Some(kbps(rate));
                        }
                        flow.quick_start = Some(request(rate));
                    }
                    strategy.set(s);
                }));
            }
        }
        let all = summits(e, &scenarios, SWEEP, bench)?;
        let curves: Vec<Curve> = strategies
            .iter()
            .zip(all.chunks(RATES.len()))
            .map(|((strategy, key), row)| Curve {
                strategy: *strategy,
                key,
                at: row.iter().map(|s| peaks(s)).collect(),
            })
            .collect();
        let words = match frame {
            Frame::Large => "large frame".to_owned(),
            Frame::Small => format!("small frame, units of {unit} kbit/s"),
        };
        claims.extend(fig6_claims(e, frame, unit, &words, &curves));
        section = section.chart(fig6_chart(e, &words, &curves)).table(fig6_table(e, &words, slots, &curves));
        for curve in &curves {
            for (rate, spread) in RATES.into_iter().zip(&curve.at) {
                let Some(s) = spread else { continue };
                let x = [("rate_kbps", rate), ("slots_per_multi_frame", frame.slots()), ("unit_kbps", unit)];
                points.extend(of_phases(curve.key, &x, "e2ed_peak_median_s", s.median, s.n));
                points.extend(of_phases(curve.key, &x, "e2ed_peak_greatest_s", s.greatest, s.n));
            }
        }
    }
    Ok(e.outcome(points, claims, section))
}

const NOT_FLAT: &str = "The paper's rates are not readable. In the large frame it is flat from 128 to 512 kbit/s; a slower \
                        flow needs little of what comes late, and at 1,024 kbit/s what is granted is just what is sent, \
                        so that nothing drains the queue";

pub(super) fn peaks(summits: &[Summit]) -> Option<Spread> {
    Spread::of(summits.iter().map(|s| s.peak).collect())
}

/// The greatest delay of a strategy against [`RATES`].
struct Curve {
    strategy: Strategy,
    key: &'static str,
    at: Vec<Option<Spread>>,
}

impl Curve {
    fn median(&self, i: usize) -> f64 {
        self.at.get(i).and_then(Option::as_ref).map_or(f64::NAN, |s| s.median)
    }

    /// The median at the highest rate over that at the lowest.
    fn growth(&self) -> f64 {
        self.median(RATES.len() - 1) / self.median(0)
    }
}

fn fig6_claims(e: &Experiment, frame: Frame, unit: f64, words: &str, curves: &[Curve]) -> Vec<Claim> {
    let suffix = match frame {
        Frame::Large => "large".to_owned(),
        Frame::Small => format!("small-{unit}"),
    };
    let [none, qs, qsd0, _, max] = curves else { return Vec::new() };
    let grows =
        |key: &str, name: &str, curve: &Curve| {
            e.claim(format!("grows-{key}-{suffix}"), format!(
                "the greatest delay grows with the flow's rate {name} (ours: by half from 64 to 1,024 kbit/s), {words}"
            ), Bound::AtLeast(1.5), "median over the phases at 1,024 kbit/s / at 64 kbit/s").exact(curve.growth())
        };
    let highest = (0..RATES.len()).map(|i| max.median(i)).fold(f64::NAN, f64::max);
    let lowest = (0..RATES.len()).map(|i| max.median(i)).fold(f64::NAN, f64::min);
    vec![
        grows("none", "without Quick-Start", none),
        grows("qs", "with QS", qs),
        grows("qsd-0", "with QSD, T_q = 0", qsd0),
        e.claim(
            format!("flat-{suffix}"),
            format!("with QSD, T_q,max it is flat (ours: within a quarter), {words}"),
            Bound::AtMost(1.25),
            "highest of the medians over the rates / lowest",
        )
        .because(NOT_FLAT)
        .exact(highest / lowest),
        e.claim(
            format!("low-{suffix}"),
            format!("and at 256 kbit/s lower than with any other start but T_q,opt, {words}"),
            Bound::Below(1.0),
            "median with T_q,max / least of the medians without Quick-Start, with QS, with T_q = 0",
        )
        .exact(max.median(2) / [none, qs, qsd0].map(|c| c.median(2)).into_iter().fold(f64::INFINITY, f64::min)),
    ]
}

fn fig6_chart(e: &Experiment, words: &str, curves: &[Curve]) -> Chart {
    let at = |i: usize| curves.get(i).map_or("–".to_owned(), |c| short(c.growth()));
    let title = format!(
        "{words}: from 64 to 1,024 kbit/s the greatest delay grows {} times without Quick-Start, {} times with QS, {} times with QSD at T_q,max",
        at(0),
        at(1),
        at(4)
    );
    let mut chart =
        Chart::new(title, Axis::new("rate of the flow", "kbit/s").log(), Axis::new("greatest end-to-end delay", "s"))
            .caption(format!("{}; medians over the phases, bars from the least to the greatest", e.file));
    for curve in curves {
        let found: Vec<(f64, Spread)> =
            RATES.into_iter().zip(&curve.at).filter_map(|(r, s)| Some((r, (*s)?))).collect();
        let of = |number: fn(&Spread) -> f64| found.iter().map(|(_, s)| number(s)).collect::<Vec<f64>>();
        let series =
            Series::sweep(curve.strategy.name(), curve.key, found.iter().map(|f| f.0).collect(), of(|s| s.median));
        chart = chart.series(series.interval(of(|s| s.least), of(|s| s.greatest)));
    }
    chart
}

fn fig6_table(e: &Experiment, words: &str, slots: &str, curves: &[Curve]) -> Table {
    let head = std::iter::once("rate (kbit/s)".to_owned()).chain(curves.iter().map(|c| c.strategy.name()));
    let cell = |s: &Option<Spread>| {
        s.map_or("–".to_owned(), |s| format!("{} ({} to {})", short(s.median), short(s.least), short(s.greatest)))
    };
    let row = |(i, rate): (usize, &f64)| {
        std::iter::once(short(*rate)).chain(curves.iter().map(|c| c.at.get(i).map_or("–".to_owned(), cell))).collect()
    };
    table(
        format!("Greatest end-to-end delay, {words}"),
        format!("{}; s, median over the phases (least to greatest); minimum and unit: {slots}", e.file),
        head,
        RATES.iter().enumerate().map(row),
    )
}
