//! The output of `run --json` and the contents of `summary.json`, as one type to write and to read.

use crate::metrics::{GroupSummary, RunSummary};
use crate::stats::Estimate;
use serde::{Deserialize, Serialize};

/// A number of a group that is averaged over the seeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// [`GroupSummary::throughput_bps`].
    ThroughputBps,
    /// [`GroupSummary::throughput_pps`].
    ThroughputPps,
    /// [`GroupSummary::goodput_bps`].
    GoodputBps,
    /// [`GroupSummary::loss_ratio`].
    LossRatio,
    /// [`GroupSummary::overhead`].
    Overhead,
    /// [`GroupSummary::jain_index`].
    JainIndex,
    /// The median of [`GroupSummary::owd_ms`].
    OwdP50Ms,
    /// The 95th percentile of [`GroupSummary::owd_ms`].
    OwdP95Ms,
    /// The median of [`GroupSummary::e2e_ms`].
    E2eP50Ms,
    /// The 95th percentile of [`GroupSummary::e2e_ms`].
    E2eP95Ms,
    /// [`GroupSummary::lost_in_send_buffer`].
    LostInSendBuffer,
    /// [`GroupSummary::late`].
    Late,
    /// [`GroupSummary::outage`].
    Outage,
}

impl Metric {
    /// All of them, in the order in which they are written.
    pub const ALL: [Metric; 13] = [
        Metric::ThroughputBps,
        Metric::ThroughputPps,
        Metric::GoodputBps,
        Metric::LossRatio,
        Metric::Overhead,
        Metric::JainIndex,
        Metric::OwdP50Ms,
        Metric::OwdP95Ms,
        Metric::E2eP50Ms,
        Metric::E2eP95Ms,
        Metric::LostInSendBuffer,
        Metric::Late,
        Metric::Outage,
    ];

    /// Its name, with the unit: `throughput_bps`.
    pub fn name(self) -> &'static str {
        match self {
            Metric::ThroughputBps => "throughput_bps",
            Metric::ThroughputPps => "throughput_pps",
            Metric::GoodputBps => "goodput_bps",
            Metric::LossRatio => "loss_ratio",
            Metric::Overhead => "overhead",
            Metric::JainIndex => "jain_index",
            Metric::OwdP50Ms => "owd_p50_ms",
            Metric::OwdP95Ms => "owd_p95_ms",
            Metric::E2eP50Ms => "e2e_p50_ms",
            Metric::E2eP95Ms => "e2e_p95_ms",
            Metric::LostInSendBuffer => "lost_in_send_buffer",
            Metric::Late => "late",
            Metric::Outage => "outage",
        }
    }

    /// Whether the number is a quantile of a delay.
    pub fn is_delay(self) -> bool {
        matches!(self, Metric::OwdP50Ms | Metric::OwdP95Ms | Metric::E2eP50Ms | Metric::E2eP95Ms)
    }

    /// One seed's number; `None` if the group has none.
    pub fn of(self, g: &GroupSummary) -> Option<f64> {
        match self {
            Metric::ThroughputBps => Some(g.throughput_bps),
            Metric::ThroughputPps => Some(g.throughput_pps),
            Metric::GoodputBps => Some(g.goodput_bps),
            Metric::LossRatio => g.loss_ratio,
            Metric::Overhead => g.overhead,
            Metric::JainIndex => g.jain_index,
            Metric::OwdP50Ms => g.owd_ms.map(|d| d.p50),
            Metric::OwdP95Ms => g.owd_ms.map(|d| d.p95),
            Metric::E2eP50Ms => g.e2e_ms.map(|d| d.p50),
            Metric::E2eP95Ms => g.e2e_ms.map(|d| d.p95),
            Metric::LostInSendBuffer => g.lost_in_send_buffer,
            Metric::Late => g.late,
            Metric::Outage => g.outage,
        }
    }
}

/// A group's number over the seeds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroupMetric {
    /// The group.
    pub group: String,
    /// `throughput_bps`, `overhead`, …
    pub metric: Metric,
    /// Mean, interval, number of seeds.
    #[serde(flatten)]
    pub estimate: Estimate,
}

/// Several seeds of one scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Seeds {
    /// The scenario's name.
    pub scenario: String,
    /// `sim` or `emu`.
    pub world: String,
    /// One per run.
    pub seeds: Vec<u64>,
    /// Not all that was asked for was run to its end.
    pub interrupted: bool,
    /// Every group's numbers over the seeds.
    pub metrics: Vec<GroupMetric>,
    /// One per seed.
    pub runs: Vec<RunSummary>,
}

/// A run: one seed's summary as it is, or several with their means.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Summary {
    /// One seed.
    One(Box<RunSummary>),
    /// Several seeds, or none.
    Several(Seeds),
}

impl Summary {
    /// Reads what was written.
    ///
    /// # Errors
    /// The text is no JSON, or not a summary's.
    pub fn from_json(text: &str) -> Result<Summary, serde_json::Error> {
        let value: serde_json::Value = serde_json::from_str(text)?;
        if value.get("runs").is_some() {
            serde_json::from_value(value).map(Summary::Several)
        } else {
            serde_json::from_value(value).map(|run| Summary::One(Box::new(run)))
        }
    }

    /// Each seed's.
    pub fn runs(&self) -> &[RunSummary] {
        match self {
            Summary::One(run) => std::slice::from_ref(run),
            Summary::Several(seeds) => &seeds.runs,
        }
    }

    /// Every group's numbers over the seeds; nothing of a single one.
    pub fn metrics(&self) -> &[GroupMetric] {
        match self {
            Summary::One(_) => &[],
            Summary::Several(seeds) => &seeds.metrics,
        }
    }

    /// Whether not all that was asked for was run to its end.
    pub fn interrupted(&self) -> bool {
        matches!(self, Summary::Several(seeds) if seeds.interrupted)
            || self.runs().iter().take(1).any(|r| r.interrupted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metrics_name_is_the_one_that_is_written() {
        for metric in Metric::ALL {
            assert_eq!(serde_json::to_value(metric).unwrap(), metric.name());
        }
    }
}
