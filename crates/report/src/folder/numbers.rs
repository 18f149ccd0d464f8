//! The tables of groups, links and flows.

use super::run::Run;
use super::shown::{MAX_OPEN_ROWS, short};
use crate::{Section, Table};
use fairpace_lab::metrics::Drops;
use fairpace_lab::summary::Metric;

/// Flows in the table at most; all are in `flows.csv`.
const MAX_FLOWS: usize = 200;

impl Run {
    pub(super) fn groups(&self) -> Table {
        let groups = &self.first().groups;
        // Where sources have rates of their own, packets wait before they are sent, and may be late; there the
        // goodput is the throughput.
        let own_rates = groups.iter().any(|g| g.lost_in_send_buffer.is_some());
        let mut columns = vec![
            ("throughput (kbit/s)", Metric::ThroughputBps, 1e-3),
            ("goodput (kbit/s)", Metric::GoodputBps, 1e-3),
            ("loss (%)", Metric::LossRatio, 100.0),
            ("dummies (%)", Metric::Overhead, 100.0),
            ("delay p95 (ms)", Metric::OwdP95Ms, 1.0),
            ("Jain", Metric::JainIndex, 1.0),
        ];
        if own_rates {
            let dummies = groups.iter().any(|g| g.overhead.is_some_and(|share| share > 0.0));
            columns.retain(|(_, metric, _)| *metric != Metric::GoodputBps && (dummies || *metric != Metric::Overhead));
            columns.extend([
                ("e2e p50 (ms)", Metric::E2eP50Ms, 1.0),
                ("e2e p95 (ms)", Metric::E2eP95Ms, 1.0),
                ("lost unsent (%)", Metric::LostInSendBuffer, 100.0),
                ("late (%)", Metric::Late, 100.0),
            ]);
        }
        if groups.iter().any(|g| g.outage.is_some()) {
            columns.push(("delay outage (%)", Metric::Outage, 100.0));
        }
        let rows = groups.iter().map(|g| {
            let cell = |metric: Metric, scale: f64| match self.metric(g, metric) {
                (mean, _) if !mean.is_finite() => "–".into(),
                (mean, Some([low, high])) if !metric.is_delay() => {
                    format!("{} ± {}", short(mean * scale), short((high - low) / 2.0 * scale))
                }
                (mean, _) => short(mean * scale),
            };
            let mut row = vec![g.name.clone(), g.flows.to_string()];
            row.extend(columns.iter().map(|(_, metric, scale)| cell(*metric, *scale)));
            row
        });
        Table {
            title: "Groups".into(),
            caption: self.caption(),
            head: ["group", "flows"]
                .into_iter()
                .chain(columns.iter().map(|(title, ..)| *title))
                .map(String::from)
                .collect(),
            rows: rows.collect(),
        }
    }

    /// The flows one by one; folded where they are many.
    pub(super) fn each_flow(&self) -> Section {
        let seed = self.first().seed;
        let flow_head = [
            "flow",
            "controller",
            "throughput (kbit/s)",
            "sent (packets)",
            "received (packets)",
            "dummies (packets)",
            "SRTT (ms)",
            "stopped",
        ];
        let all = &self.first().flows;
        let left_out = (all.len().saturating_sub(MAX_FLOWS) as u64).saturating_add(self.first().flows_left_out);
        let flows = all.iter().take(MAX_FLOWS).map(|f| {
            vec![
                f.name.clone(),
                f.controller.clone(),
                short(f.throughput_bps * 1e-3),
                f.sent_packets.to_string(),
                f.received_packets.to_string(),
                f.dummies_packets.to_string(),
                f.srtt_ms.map_or_else(|| "–".into(), short),
                f.stopped.clone().unwrap_or_else(|| "no".to_owned()),
            ]
        });
        let table = Table {
            title: "Flows".into(),
            caption: match left_out {
                0 => format!("seed {seed}"),
                n => format!("seed {seed}; {n} more flows in flows.csv"),
            },
            head: flow_head.map(String::from).to_vec(),
            rows: flows.collect(),
        };
        let fold = table.rows.len() > MAX_OPEN_ROWS;
        let section = Section::new("flows", "Flow by flow").table(table);
        if fold { section.folded() } else { section }
    }

    pub(super) fn numbers(&self) -> Section {
        let seed = self.first().seed;
        let link_head = [
            "link",
            "utilization (%)",
            "transmitted (packets)",
            "queue full",
            "early",
            "pushed out",
            "link errors",
            "outage",
            "marked",
            "mean queue (packets)",
            "longest",
        ];
        let links = self.first().links.iter().map(|l| {
            let drops = |of: fn(&Drops) -> u64| (of(&l.drops_packets) + of(&l.low_drops_packets)).to_string();
            vec![
                l.name.clone(),
                l.utilization.map_or_else(|| "–".into(), |u| short(u * 100.0)),
                l.transmitted_packets.to_string(),
                drops(|d| d.queue_full),
                drops(|d| d.early),
                drops(|d| d.pushed_out),
                drops(|d| d.link_error),
                drops(|d| d.outage),
                l.marked_packets.to_string(),
                short(l.queue_mean_packets),
                l.queue_max_packets.to_string(),
            ]
        });
        let links = Table {
            title: "Links, with packets dropped by reason".into(),
            caption: format!("seed {seed}"),
            head: link_head.map(String::from).to_vec(),
            rows: links.collect(),
        };
        let section = Section::new("numbers", "In numbers").table(self.groups());
        // Over a satellite a flow need not have a link of its own.
        if links.rows.is_empty() { section } else { section.table(links) }
    }
}
