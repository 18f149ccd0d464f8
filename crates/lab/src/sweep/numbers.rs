//! The numbers of a run that a sweep keeps: a row per group of flows, and a row per link.

use super::error::SweepError;
use crate::metrics::{GroupSummary, LinkSummary, RunSummary};
use fairpace_scenario::nearest;
use serde::{Deserialize, Serialize};

/// A column: its name with the unit, and the number of a group.
type GroupColumn = (&'static str, fn(&GroupSummary) -> Option<f64>);
/// The same of a link.
type LinkColumn = (&'static str, fn(&LinkSummary) -> Option<f64>);

/// The numbers of a group of flows, over the measured window; each as in [`GroupSummary`].
pub const GROUP_COLUMNS: [GroupColumn; 15] = [
    ("flows", |g| Some(g.flows as f64)),
    ("throughput_bps", |g| Some(g.throughput_bps)),
    ("throughput_pps", |g| Some(g.throughput_pps)),
    ("goodput_bps", |g| Some(g.goodput_bps)),
    ("aggregate_throughput_bps", |g| Some(g.aggregate_throughput_bps)),
    ("jain_index", |g| g.jain_index),
    ("loss_ratio", |g| g.loss_ratio),
    ("overhead", |g| g.overhead),
    ("owd_p50_ms", |g| g.owd_ms.map(|d| d.p50)),
    ("owd_p95_ms", |g| g.owd_ms.map(|d| d.p95)),
    ("e2e_p50_ms", |g| g.e2e_ms.map(|d| d.p50)),
    ("e2e_p95_ms", |g| g.e2e_ms.map(|d| d.p95)),
    ("lost_in_send_buffer", |g| g.lost_in_send_buffer),
    ("late", |g| g.late),
    ("outage", |g| g.outage),
];

/// The numbers of a link, over the measured window; each as in [`LinkSummary`], drops by all reasons together.
pub const LINK_COLUMNS: [LinkColumn; 7] = [
    ("utilization", |l| l.utilization),
    ("transmitted_packets", |l| Some(l.transmitted_packets as f64)),
    ("transmitted_bytes", |l| Some(l.transmitted_bytes as f64)),
    ("dropped_packets", |l| Some((total(&l.drops_packets) + total(&l.low_drops_packets)) as f64)),
    ("marked_packets", |l| Some(l.marked_packets as f64)),
    ("queue_mean_packets", |l| Some(l.queue_mean_packets)),
    ("queue_max_packets", |l| Some(l.queue_max_packets as f64)),
];

fn total(drops: &crate::metrics::Drops) -> u64 {
    drops.queue_full + drops.early + drops.pushed_out + drops.link_error + drops.outage
}

/// Whether less of this column is better: losses, delays, queues.
pub fn lower_is_better(column: &str) -> bool {
    column.ends_with("_ms")
        || ["loss_ratio", "overhead", "lost_in_send_buffer", "late", "outage"].contains(&column)
        || ["dropped_packets", "marked_packets", "queue_mean_packets", "queue_max_packets"].contains(&column)
}

/// The numbers of one seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunNumbers {
    /// The seed.
    pub seed: u64,
    /// Each group of flows, in the scenario's order, with its [`GROUP_COLUMNS`].
    pub groups: Vec<(String, Vec<Option<f64>>)>,
    /// Each link with its [`LINK_COLUMNS`].
    pub links: Vec<(String, Vec<Option<f64>>)>,
    /// Why numbers of a run in real time are not to be trusted; empty if they are, and in the simulator.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub invalid: Vec<String>,
}

impl RunNumbers {
    /// The numbers of a run.
    pub fn of(run: &RunSummary) -> RunNumbers {
        // JSON has no number that is not finite, and results have none.
        let finite = |x: Option<f64>| x.filter(|x| x.is_finite());
        let group = |g: &GroupSummary| (g.name.clone(), GROUP_COLUMNS.iter().map(|(_, of)| finite(of(g))).collect());
        let link = |l: &LinkSummary| (l.name.clone(), LINK_COLUMNS.iter().map(|(_, of)| finite(of(l))).collect());
        RunNumbers {
            seed: run.seed,
            groups: run.groups.iter().map(group).collect(),
            links: run.links.iter().map(link).collect(),
            invalid: run.emulated.as_ref().map_or(Vec::new(), |e| e.invalid.clone()),
        }
    }

    /// Whether each row has a value, or none, for each column: text from another process may say anything.
    pub(super) fn has_each_column(&self) -> bool {
        self.groups.iter().all(|(_, row)| row.len() == GROUP_COLUMNS.len())
            && self.links.iter().all(|(_, row)| row.len() == LINK_COLUMNS.len())
    }
}

/// A number of each run, by name: `video.goodput_bps`, `bottleneck.utilization`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metric {
    /// The group or the link.
    pub of: String,
    /// The column.
    pub column: &'static str,
    place: usize,
    is_link: bool,
}

impl Metric {
    /// Every metric of these groups and links.
    pub fn all(groups: &[String], links: &[String]) -> Vec<Metric> {
        let of_groups = groups.iter().flat_map(|of| {
            let column =
                |(place, (column, _)): (usize, &GroupColumn)| Metric { of: of.clone(), column, place, is_link: false };
            GROUP_COLUMNS.iter().enumerate().map(column)
        });
        let of_links = links.iter().flat_map(|of| {
            let column =
                |(place, (column, _)): (usize, &LinkColumn)| Metric { of: of.clone(), column, place, is_link: true };
            LINK_COLUMNS.iter().enumerate().map(column)
        });
        of_groups.chain(of_links).collect()
    }

    /// The metric of that name; the first group or link that has it if only the column is named.
    ///
    /// # Errors
    /// [`SweepError::Metric`] with the nearest name.
    pub fn parse(name: &str, groups: &[String], links: &[String]) -> Result<Metric, SweepError> {
        let all = Metric::all(groups, links);
        let found = all.iter().find(|m| m.name() == name).or_else(|| all.iter().find(|m| m.column == name));
        found.cloned().ok_or_else(|| {
            let names: Vec<String> = all.iter().map(Metric::name).collect();
            let columns = all.iter().map(|m| m.column);
            let near = nearest(name, names.iter().map(String::as_str).chain(columns)).map(str::to_owned);
            SweepError::Metric {
                found: name.to_owned(),
                near,
                allowed: names.iter().map(|n| format!("`{n}`")).collect(),
            }
        })
    }

    /// Its name: the group or link, and the column.
    pub fn name(&self) -> String {
        format!("{}.{}", self.of, self.column)
    }

    /// Whether less of it is better.
    pub fn lower_is_better(&self) -> bool {
        lower_is_better(self.column)
    }

    /// The number in a run; none if the run has none.
    pub fn value(&self, run: &RunNumbers) -> Option<f64> {
        let rows = if self.is_link { &run.links } else { &run.groups };
        let (_, numbers) = rows.iter().find(|(name, _)| *name == self.of)?;
        numbers.get(self.place).copied().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_is_found_by_its_name_or_by_its_column_alone() {
        let (groups, links) = (["video".to_owned(), "tcp".to_owned()], ["bottleneck".to_owned()]);
        let name = |text: &str| Metric::parse(text, &groups, &links).map(|m| m.name());
        assert_eq!(name("tcp.loss_ratio").unwrap(), "tcp.loss_ratio");
        assert_eq!(name("loss_ratio").unwrap(), "video.loss_ratio");
        assert_eq!(name("utilization").unwrap(), "bottleneck.utilization");
        let error = name("video.godput_bps").unwrap_err();
        assert!(error.hint().unwrap().starts_with("did you mean `video.goodput_bps`? there are `video.flows`"));
        assert!(lower_is_better("owd_p95_ms") && !lower_is_better("jain_index"));
    }
}
