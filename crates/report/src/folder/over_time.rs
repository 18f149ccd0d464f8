//! The run over time: rates, delays, states, the queue.

use super::rows::thin;
use super::run::Run;
use crate::{Axis, BandKind, Chart, Lane, Section, Series, Span};
use fairpace_scenario::Capacity;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Lanes of the timeline at most; more flows are in `series.csv`.
const MAX_LANES: usize = 6;

impl Run {
    /// The groups of the first seed: name, and the colour key of its controller (or its own name, if an
    /// earlier group has that controller).
    pub(super) fn keys(&self) -> Vec<(String, String)> {
        let mut keys: Vec<(String, String)> = Vec::new();
        for group in &self.first().groups {
            let controller = self.controllers(&group.name).next().unwrap_or(&group.name);
            let taken = keys.iter().any(|(_, k)| k == controller);
            let key = if taken { &group.name } else { controller };
            keys.push((group.name.clone(), key.to_owned()));
        }
        keys
    }

    /// The mean of a column over the flows of a group, at each instant of the first seed.
    fn mean(&self, group: &str, column: &str, scale: f64) -> (Vec<f64>, Vec<f64>) {
        let rows = &self.series;
        let seed = self.first().seed.to_string();
        let mut x: Vec<f64> = Vec::new();
        let mut sums: Vec<(f64, u32)> = Vec::new();
        for row in rows.iter().filter(|r| r.is("seed", &seed) && r.is("group", group)) {
            let Some(t) = row.number("t_s") else { continue };
            // Rows come in order of time; all flows of one instant stand together.
            if x.last() != Some(&t) {
                x.push(t);
                sums.push((0.0, 0));
            }
            if let (Some(value), Some(sum)) = (row.number(column), sums.last_mut()) {
                *sum = (sum.0 + value, sum.1 + 1);
            }
        }
        let y = sums.iter().map(|(sum, n)| if *n == 0 { f64::NAN } else { sum * scale / f64::from(*n) }).collect();
        thin(x, y)
    }

    /// The controllers of a group's flows, as the scenario says: the summary need not have all flows.
    fn controllers<'a>(&'a self, group: &'a str) -> impl Iterator<Item = &'a str> {
        self.scenario.flows.iter().filter(move |f| f.group == group).map(|f| f.controller.as_str())
    }

    /// Whether a group's flows are those whose controller is exchanged.
    fn compared(&self, group: &str) -> bool {
        let name = self.variant.as_deref().map(|v| v.split(':').next().unwrap_or(v));
        self.controllers(group).any(|c| Some(c) == name)
    }

    /// Whether it stands for that world beside another.
    fn is_world(&self, world: &str) -> bool {
        self.variant.as_deref() == Some(world) && self.world() == world
    }

    fn states(&self) -> Vec<Lane> {
        let rows = &self.series;
        let seed = self.first().seed.to_string();
        let keys: BTreeMap<String, String> = self.keys().into_iter().collect();
        let mut lanes: Vec<Lane> = Vec::new();
        for row in rows.iter().filter(|r| r.is("seed", &seed) && !r.is("state", "")) {
            let Some(t) = row.number("t_s") else { continue };
            let (flow, state) = (row.text("flow"), row.text("state"));
            if self.variant.is_some() && !self.compared(&row.text("group")) {
                continue;
            }
            let name = self.variant.as_ref().map_or_else(|| flow.to_string(), |v| format!("{v} {flow}"));
            let lane = match lanes.iter_mut().position(|l| l.name == name) {
                Some(i) => &mut lanes[i],
                None if lanes.len() < MAX_LANES => {
                    let of_group = || keys.get(&*row.text("group")).cloned().unwrap_or_default();
                    let colour = self.variant.as_ref().map_or_else(of_group, |v| variant_key(v));
                    lanes.push(Lane { name, colour, spans: Vec::new() });
                    let last = lanes.len() - 1;
                    &mut lanes[last]
                }
                None => continue,
            };
            match lane.spans.last_mut() {
                Some(span) if span.label.eq_ignore_ascii_case(&state) => span.to = t,
                other => {
                    if let Some(before) = other {
                        before.to = t;
                    }
                    lane.spans.push(Span { from: t, to: t, label: capital(&state) });
                }
            }
        }
        // A lane that never changes says nothing.
        lanes.retain(|l| l.spans.len() > 1);
        lanes
    }

    /// Shades what happens to the path: outages, and stretches slower than the first rate.
    fn set_up(&self, mut chart: Chart) -> Chart {
        let (path, end) = (&self.scenario.path, self.first().duration_s);
        if let Some(Capacity::Steps(steps)) = &path.rate {
            for step in steps.iter().skip(1) {
                let at = step.at.get().as_secs_f64();
                if at < end {
                    chart = chart.band(at, at, step.rate.text(), BandKind::Note);
                }
            }
        }
        for outage in &path.outages {
            let (at, length) = (outage.start.get().as_secs_f64(), outage.length.get().as_secs_f64());
            chart = chart.band(at, (at + length).min(end), "outage", BandKind::Outage);
        }
        chart
    }

    /// End-to-end delay of the groups whose sources have rates of their own, and what of it is the network's.
    fn end_to_end(&self, runs: &[Run], time: Axis, caption: &str) -> Chart {
        let waits = runs.iter().filter(|r| !r.waits().is_empty());
        let waits = waits.map(|r| if runs.len() > 1 { format!("{}: {}", r.label(), r.waits()) } else { r.waits() });
        let title = format!("End to end, 95 % of packets: {}", waits.collect::<Vec<_>>().join("; "));
        let mut chart = Chart::new(title, time, Axis::new("end-to-end delay", "ms"))
            .caption(format!("{caption}; from the source, with the time in the send buffer; means of each interval"));
        for run in runs {
            for (group, key) in run.keys() {
                if run.first().group(&group).is_none_or(|g| g.lost_in_send_buffer.is_none()) {
                    continue;
                }
                let (x, y) = run.mean(&group, "e2e_ms", 1.0);
                chart = match &run.variant {
                    Some(v) => chart.series(Series::line(format!("{v}: {group}"), variant_key(v), x, y)),
                    None => {
                        let (x1, y1) = run.mean(&group, "owd_ms", 1.0);
                        let once_sent = Series::line(format!("{group}, once sent"), key.clone(), x1, y1).reference();
                        chart.series(Series::line(group, key, x, y)).series(once_sent)
                    }
                };
            }
        }
        chart
    }

    pub(super) fn over_time(&self, runs: &[Run]) -> Section {
        let end = self.first().duration_s;
        let time = || Axis::new("time", "s").range(0.0, end);
        let seed = self.first().seed.to_string();
        // The title's numbers are means over the seeds; a curve is one seed's.
        let which = match self.summary.runs().len() {
            1 => format!("seed {seed}"),
            n => format!("curve: seed {seed}; numbers: mean of {n} seeds"),
        };
        let caption = format!("Scenario {}; {which}; mean over the flows of each group", self.first().scenario);
        let lines = |title: &str, y: Axis, column: &str, scale: f64, stepped: bool| {
            let mut chart = Chart::new(title, time(), y).caption(caption.clone());
            for run in runs {
                for (group, key) in run.keys() {
                    let (x, y) = run.mean(&group, column, scale);
                    if !y.iter().any(|v| v.is_finite() && *v != 0.0) {
                        continue;
                    }
                    // Beside each other, everything of one run has the colour of its controller; what is the
                    // same in all of them (TCP, background) is thin and dashed. Of two worlds, everything simulated is.
                    let series = if stepped { Series::stepped } else { Series::line };
                    let series = match &run.variant {
                        Some(v) if run.is_world("sim") => series(format!("{v}: {group}"), key, x, y).reference(),
                        Some(v) if run.is_world("emu") => series(format!("{v}: {group}"), key, x, y),
                        Some(v) if run.compared(&group) => series(format!("{v}: {group}"), variant_key(v), x, y),
                        Some(v) => series(format!("{v}: {group}"), variant_key(v), x, y).reference(),
                        None => series(group, key, x, y),
                    };
                    chart = chart.series(series);
                }
            }
            chart
        };
        let got =
            runs.iter().map(|r| if runs.len() > 1 { format!("{}: {}", r.label(), r.result()) } else { r.result() });
        let rate = lines(
            &format!("Received: {}", got.collect::<Vec<_>>().join("; ")),
            Axis::new("throughput", "kbit/s"),
            "throughput_bps",
            1e-3,
            true,
        );
        let target =
            lines("What the controllers allow", Axis::new("allowed rate", "kbit/s"), "target_rate_bps", 1e-3, true);
        let dummies = lines("Dummy packets sent", Axis::new("dummies", "kbit/s"), "dummy_rate_bps", 1e-3, true);
        let srtt =
            lines("Smoothed round-trip time, as the senders see it", Axis::new("SRTT", "ms"), "srtt_ms", 1.0, false);
        let e2e = self.end_to_end(runs, time(), &caption);
        let mut states =
            Chart::new("What the controllers were doing", time(), Axis::default()).caption(format!("seed {seed}"));
        states.lanes = runs.iter().flat_map(Run::states).collect();
        let queue = queues(runs, &seed, time());
        let mut section = Section::new("time", "Over time")
            .text("Drag to zoom, double-click to go back, click a name to hide its line.")
            .synced();
        for chart in [rate, e2e, target, states, srtt, dummies, queue] {
            if !chart.series.is_empty() || !chart.lanes.is_empty() {
                section = section.chart(self.set_up(chart));
            }
        }
        section
    }
}

/// The link whose queue is shown where a path has one.
const BOTTLENECK: &str = "bottleneck";

/// The queue of the bottleneck; on a path of several hops, the queue of each on its way forward.
fn queues(runs: &[Run], seed: &str, time: Axis) -> Chart {
    let mut lines = Vec::new();
    for run in runs.iter().filter(|r| r.first().satellite.is_none()) {
        let rows = &run.links;
        let mut links: Vec<Cow<'_, str>> = Vec::new();
        for name in rows.iter().map(|row| row.text("link")) {
            if !links.contains(&name) && !name.ends_with(".reverse") {
                links.push(name);
            }
        }
        if links.iter().any(|link| link == BOTTLENECK) {
            links = vec![BOTTLENECK.into()];
        }
        for link in &links {
            let points = rows.iter().filter(|r| r.is("seed", seed) && r.is("link", link));
            let (x, y) = points.filter_map(|r| r.number("t_s").zip(r.number("queue_packets"))).unzip();
            let (x, y) = thin(x, y);
            let (name, key) = match &run.variant {
                Some(v) if link == BOTTLENECK => (v.clone(), variant_key(v)),
                Some(v) => (format!("{v}: {link}"), variant_key(v)),
                None if link == BOTTLENECK => (link.to_string(), "link".to_owned()),
                None => (link.to_string(), link.to_string()),
            };
            lines.push((link == BOTTLENECK, Series::stepped(name, key, x, y)));
        }
    }
    let several = lines.iter().any(|(is_bottleneck, _)| !is_bottleneck);
    let title = if several { "Packets waiting before each hop" } else { "Packets waiting before the bottleneck" };
    let chart = Chart::new(title, time, Axis::new("queue", "packets")).caption(format!("seed {seed}"));
    lines.into_iter().fold(chart, |chart, (_, line)| chart.series(line))
}

/// The colour key of `rap:fine_grain=on`: the palette knows some variants by name.
fn variant_key(variant: &str) -> String {
    match variant {
        "rap:fine_grain=on" => "rap-fine-grain".to_owned(),
        other => other.to_owned(),
    }
}

fn capital(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}
