//! The same scenario in both worlds, laid over each other.

use crate::run::RunSet;
use crate::stats::Estimate;
use crate::summary::{GroupMetric, Metric};
use serde::Serialize;

/// The numbers that are compared, each with its name for people.
const METRICS: [(Metric, &str, f64); 6] = [
    (Metric::ThroughputBps, "throughput, kbit/s", 1e-3),
    (Metric::GoodputBps, "goodput, kbit/s", 1e-3),
    (Metric::LossRatio, "loss, %", 1e2),
    (Metric::OwdP50Ms, "one-way delay, median, ms", 1.0),
    (Metric::OwdP95Ms, "one-way delay, 95 %, ms", 1.0),
    (Metric::JainIndex, "Jain's index", 1.0),
];

/// One number of a group in both worlds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// The group.
    pub group: String,
    /// `throughput_bps`, ...
    pub metric: Metric,
    /// The same for people, with its unit.
    #[serde(skip)]
    pub title: &'static str,
    /// From the metric's unit to the title's.
    #[serde(skip)]
    pub scale: f64,
    /// Over the seeds, in the simulator.
    pub sim: Estimate,
    /// Over the seeds, in the emulator.
    pub emu: Estimate,
    /// `emu` less `sim`.
    pub difference: f64,
    /// Its 95 % interval (the worlds' seeds share their random streams, but not when each number is drawn: two
    /// independent samples); `None` with one seed.
    pub difference_ci95: Option<[f64; 2]>,
    /// `difference` / `sim`; `None` if `sim` is zero.
    pub relative: Option<f64>,
}

impl Difference {
    fn new(sim: &GroupMetric, emu: &GroupMetric, title: &'static str, scale: f64) -> Difference {
        let (a, b) = (sim.estimate, emu.estimate);
        let difference = b.mean - a.mean;
        // The half-widths are t times the standard errors of either mean.
        let half = a.half_width().hypot(b.half_width());
        let both = a.ci95.is_some() && b.ci95.is_some();
        Difference {
            group: sim.group.clone(),
            metric: sim.metric,
            title,
            scale,
            sim: a,
            emu: b,
            difference,
            difference_ci95: both.then_some([difference - half, difference + half]),
            relative: (a.mean != 0.0).then(|| difference / a.mean),
        }
    }
}

/// Group by group, number by number. A quantity without a number in one of the worlds is left out.
pub fn differences(sim: &RunSet, emu: &RunSet) -> Vec<Difference> {
    let (sims, emus) = (sim.metrics(), emu.metrics());
    let groups = sim.runs.first().map_or(&[][..], |r| &r.summary.groups);
    let mut all = Vec::new();
    for group in groups {
        for (metric, title, scale) in METRICS {
            let find = |set: &[GroupMetric]| set.iter().find(|m| m.group == group.name && m.metric == metric).cloned();
            if let (Some(sim), Some(emu)) = (find(&sims), find(&emus)) {
                all.push(Difference::new(&sim, &emu, title, scale));
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metric(values: &[f64]) -> GroupMetric {
        let estimate = Estimate::of(values).unwrap();
        GroupMetric { group: "tcp".to_owned(), metric: Metric::ThroughputBps, estimate }
    }

    #[test]
    fn a_difference_is_the_emulators_number_less_the_simulators_with_both_spreads() {
        let d = Difference::new(&metric(&[90.0, 100.0, 110.0]), &metric(&[100.0, 110.0, 120.0]), "", 1.0);
        assert_eq!((d.difference, d.relative), (10.0, Some(0.1)));
        // t(0.975, 2) = 4.302653, s = 10, n = 3: half-widths of 24.84, together 35.13.
        let [low, high] = d.difference_ci95.unwrap();
        assert!((low + 25.13).abs() < 0.01 && (high - 45.13).abs() < 0.01, "{low} {high}");
        let single = Difference::new(&metric(&[0.0]), &metric(&[1.0]), "", 1.0);
        assert_eq!((single.difference_ci95, single.relative), (None, None));
    }
}
