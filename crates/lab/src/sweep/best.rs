//! The best settings by a metric.

use super::numbers::Metric;
use super::progress::Sweep;
use crate::stats::Estimate;

/// A point with its place in the order of a metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ranked {
    /// The point's number.
    pub point: usize,
    /// The metric over its seeds.
    pub estimate: Estimate,
    /// The metric less the best point's, seed by seed over the seeds that both have; none of the best itself.
    pub to_best: Option<Estimate>,
}

impl Ranked {
    /// Whether the interval of the difference to the best point has no zero in it. Nothing is told apart with a single seed. The best
    /// of many points is the luckiest of them, too: this is a comparison of two, not of all at once.
    pub fn is_worse(&self) -> bool {
        self.to_best.and_then(|d| d.ci95).is_some_and(|[low, high]| low > 0.0 || high < 0.0)
    }
}

/// The metrics of which any finished point has a number.
pub fn metrics(sweep: &Sweep) -> Vec<Metric> {
    let (mut groups, mut links): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    let runs = || (0..sweep.plan().points().len()).flat_map(|p| sweep.runs(p));
    for run in runs() {
        for (names, rows) in [(&mut groups, &run.groups), (&mut links, &run.links)] {
            for (name, _) in rows {
                if !names.contains(name) {
                    names.push(name.clone());
                }
            }
        }
    }
    let mut all = Metric::all(&groups, &links);
    all.retain(|metric| runs().any(|run| metric.value(run).is_some()));
    all
}

impl Metric {
    /// The finished points that have the metric, the best first; equal ones in their order in the plan.
    pub fn rank(&self, sweep: &Sweep) -> Vec<Ranked> {
        let points = 0..sweep.plan().points().len();
        let mut found: Vec<Ranked> = points
            .filter_map(|point| Some(Ranked { point, estimate: sweep.estimate(point, self)?, to_best: None }))
            .collect();
        let sign = if self.lower_is_better() { 1.0 } else { -1.0 };
        found.sort_by(|a, b| (sign * a.estimate.mean).total_cmp(&(sign * b.estimate.mean)).then(a.point.cmp(&b.point)));
        let Some(best) = found.first().map(|r| r.point) else { return found };
        let of_best = sweep.runs(best);
        for ranked in found.iter_mut().skip(1) {
            let pairs = sweep.runs(ranked.point).into_iter().zip(&of_best);
            let differences = pairs.filter_map(|(run, best)| Some(self.value(run)? - self.value(best)?));
            ranked.to_best = Estimate::of(&differences.collect::<Vec<f64>>());
        }
        found
    }
}
