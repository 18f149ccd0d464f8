//! The section of a wireless link: what became of its slots, windows and queues over time, and the delay jitter beside
//! what eq. (3) promises.

use super::rows::{Row, Rows, thin};
use super::run::Run;
use super::shown::short;
use crate::{Axis, BandKind, Chart, Section, Series, SlotMap, SlotOwner, SlotRow, Table};
use fairpace_lab::metrics::UserSummary;

/// Slots of a row of the picture, and its rows.
const SLOTS: u64 = 60;
const SLOT_ROWS: u64 = 5;
/// Lines in a chart, flows or users.
const MAX_LINES: usize = 6;
/// Rows in the table of users.
const MAX_ROWS: usize = 200;
/// Outages below this are not drawn: a few packets in a run.
const LEAST_SHARE: f64 = 1e-5;

impl Run {
    /// The sections, if the run has a wireless link: what happens over time, and the jitter.
    pub(super) fn wireless(&self) -> Vec<Section> {
        let Some(found) = self.first().wireless.as_ref().filter(|w| !w.users.is_empty()) else { return Vec::new() };
        let (users, slot_ms) = (&found.users, found.slot_ms);
        let text = format!(
            "A slot of {} ms carries {} bytes. A slot of a user is used, or silent after a failure, or somebody else's while \
             it has a packet, or idle.",
            short(slot_ms),
            found.slot_bytes
        );
        let mut section = Section::new("wireless", "The wireless link").text(text).synced();
        if let Some(map) = self.slot_map(users, slot_ms) {
            section = section.slot_map(map);
        }
        for chart in [self.windows(), self.user_queues(users)] {
            if !chart.series.is_empty() {
                section = section.chart(chart);
            }
        }
        section = section.table(self.users(users));
        let mut sections = vec![section];
        let jitter = self.jitter();
        if !jitter.series.is_empty() {
            let text = "How many packets wait longer on top of the least delay, beside equation (3) for the windows that the \
                        flows have. It counts a window that is always full: losses and queues before the wireless link \
                        leave less of it in the queue. No line where the window changes in the measured time, or is too \
                        small to keep the link busy.";
            sections.push(Section::new("jitter", "Delay jitter").text(text).chart(jitter));
        }
        sections
    }

    /// The outcomes of the slots in a stretch of the measured window.
    fn slot_map(&self, users: &[UserSummary], slot_ms: f64) -> Option<SlotMap> {
        let rows = &self.radio_slots;
        let number = |row: Row<'_>, column: &str| row.number(column).map(|x| x as u64);
        let noted: Vec<(u64, usize, bool, u64)> = rows
            .iter()
            .filter_map(|row| {
                let failed = row.text("outcome").starts_with("failure");
                let silence = number(row, "silent_slots_after").unwrap_or(0);
                Some((number(row, "slot")?, number(row, "user")? as usize, failed, silence))
            })
            .collect();
        let warmup = self.first().warmup_s * 1e3 / slot_ms;
        let last = noted.last()?.0;
        let from = (warmup as u64).max(noted.first()?.0).midpoint(last);
        let mut slots: Vec<Option<usize>> = vec![None; (SLOTS * SLOT_ROWS) as usize];
        let to = from.saturating_add(SLOTS * SLOT_ROWS);
        let (failed, silent) = (users.len(), users.len() + 1);
        for (slot, user, fails, silence) in noted {
            let mut set = |slot: u64, what: usize, only_free: bool| {
                let place = slot.checked_sub(from).and_then(|i| slots.get_mut(i as usize));
                if let Some(place) = place.filter(|p| p.is_none() || !only_free) {
                    *place = Some(what);
                }
            };
            set(slot, if fails { failed } else { user }, false);
            // Another user's transmission in such a slot comes later in the file, and replaces the silence.
            let silent_until = slot.saturating_add(silence).min(to);
            (slot.saturating_add(1).max(from)..=silent_until).for_each(|slot| set(slot, silent, true));
        }
        let sum = |of: fn(&UserSummary) -> u64| users.iter().map(|u| of(u) as f64).sum::<f64>();
        let used = sum(|u| u.slots_used);
        let owner = |label: String, name: String, colour: &str| SlotOwner { label, name, colour: colour.to_owned() };
        let mut owners: Vec<SlotOwner> = (0..users.len())
            .map(|u| owner(u.to_string(), format!("received by user {u}"), &user_key(u as u32)))
            .collect();
        owners.push(owner("×".into(), "failed".into(), "failed"));
        owners.push(owner("–".into(), "silent after a failure".into(), "silent"));
        // Only who is seen has a place in the legend.
        let seen = |i: &usize| slots.contains(&Some(*i)) || *i == failed;
        let keep: Vec<usize> = (0..owners.len()).filter(seen).collect();
        let place = |slot: &Option<usize>| slot.and_then(|owner| keep.iter().position(|k| *k == owner));
        let row = |(i, row): (usize, &[Option<usize>])| SlotRow {
            name: format!("from {:.2} s", from.saturating_add(i as u64 * SLOTS) as f64 * slot_ms / 1e3),
            slots: row.iter().map(place).collect(),
        };
        let silence = match sum(|u| u.slots_silent) {
            0.0 => String::new(),
            silent => format!("; {} % as many are silent after a failure", short(100.0 * silent / used)),
        };
        Some(SlotMap {
            title: format!(
                "{} % of the slots in which something is sent fail{silence}",
                short(100.0 * sum(|u| u.slots_failed) / used)
            ),
            caption: format!(
                "Scenario {}; seed {}; shares of the measured window, slots in its middle",
                self.first().scenario,
                self.first().seed
            ),
            axis: format!("slot, {} ms each", short(slot_ms)),
            frame: 10,
            rows: slots.chunks(SLOTS as usize).enumerate().map(row).collect(),
            owners: keep.iter().map(|i| owners[*i].clone()).collect(),
        })
    }

    /// W of each flow that has a window for the wireless link, and what bounds it.
    fn windows(&self) -> Chart {
        let mut chart = Chart::new("", self.time(), Axis::new("window", "packets"));
        let mut said = Vec::new();
        for flow in self.flows_with(&self.series, "rwnd_packets") {
            let (x, cwnd) = self.flow_column(&flow, "cwnd_packets");
            let (_, rwnd) = self.flow_column(&flow, "rwnd_packets");
            let (_, sent) = self.flow_column(&flow, "send_rate_bps");
            // Only while it goes on, and what would bound it.
            let on = |values: Vec<f64>| -> Vec<f64> {
                values.iter().zip(&sent).map(|(v, sent)| if *sent > 0.0 { *v } else { f64::NAN }).collect()
            };
            let (cwnd, rwnd) = (on(cwnd), on(rwnd));
            let window: Vec<f64> =
                cwnd.iter().zip(&rwnd).map(|(c, r)| if r.is_nan() { *c } else { c.min(*r) }).collect();
            let most = window.iter().copied().fold(0.0, f64::max);
            let rwnd: Vec<f64> = rwnd.iter().map(|r| if *r > 4.0 * most { f64::NAN } else { *r }).collect();
            let ends = |(low, high): (f64, f64), r: &f64| (low.min(*r), high.max(*r));
            let (low, high) = rwnd.iter().filter(|r| r.is_finite()).fold((f64::MAX, 0.0), ends);
            said.push(match low.total_cmp(&high) {
                std::cmp::Ordering::Less => format!("{flow} {} to {}", short(low), short(high)),
                std::cmp::Ordering::Equal => format!("{flow} {}", short(high)),
                std::cmp::Ordering::Greater => format!("{flow} by none"),
            });
            let (x1, y1) = thin(x.clone(), window);
            chart = chart.series(Series::stepped(flow.clone(), flow.clone(), x1, y1));
            let (x2, y2) = thin(x, rwnd);
            chart = chart.series(Series::stepped(format!("{flow}: rwnd"), flow, x2, y2).reference());
        }
        chart.title = format!("Windows are bounded by rwnd: {} packets", said.join(", "));
        chart.caption(format!("seed {}; solid: min(cwnd, rwnd), as the sender has it; dashed: rwnd", self.first().seed))
    }

    fn user_queues(&self, users: &[UserSummary]) -> Chart {
        let seed = self.first().seed.to_string();
        let rows = &self.user_rows;
        let mut series = Vec::new();
        for user in users.iter().map(|u| u.user).take(MAX_LINES) {
            let number = user.to_string();
            let points = rows.iter().filter(|r| r.is("seed", &seed) && r.is("user", &number));
            let (x, y): (Vec<f64>, Vec<f64>) =
                points.filter_map(|r| r.number("t_s").zip(r.number("queue_packets"))).unzip();
            if y.iter().any(|y| *y > 0.0) {
                let (x, y) = thin(x, y);
                series.push(Series::stepped(format!("user {user}"), user_key(user), x, y));
            }
        }
        let dropped: u64 = users.iter().map(|u| u.dropped_packets).sum();
        let most = users.iter().map(|u| u.queue_max_packets).max().unwrap_or(0);
        let lost = if dropped == 0 { "none is dropped".to_owned() } else { format!("{dropped} are dropped") };
        let title = format!("At most {most} packets wait at the base station; {lost}");
        let mut chart = Chart::new(title, self.time(), Axis::new("queue", "packets"))
            .caption(format!("seed {seed}; at the sampling instants, the packet under way included"));
        chart.series = series;
        chart
    }

    /// The distribution of the jitter, measured and by eq. (3).
    fn jitter(&self) -> Chart {
        let rows = &self.jitter_rows;
        let mut chart =
            Chart::new("", Axis::new("delay jitter", "ms"), Axis::new("share of packets with more", "").log());
        let bounds = self.tolerable_jitter();
        let mut said = Vec::new();
        for flow in self.flows_with(rows, "measured") {
            let seed = self.first().seed.to_string();
            let own = |r: &Row<'_>| r.is("seed", &seed) && r.is("flow", &flow);
            let column = |column: &str| -> (Vec<f64>, Vec<f64>) {
                let value = |r: Row<'_>| r.number(column).filter(|p| *p >= LEAST_SHARE).unwrap_or(f64::NAN);
                rows.iter().filter(own).filter_map(|r| Some((r.number("jitter_ms")?, value(r)))).unzip()
            };
            let (x, measured) = column("measured");
            let (_, analytic) = column("analytic");
            let found = self.first().flows.iter().find(|f| f.name == flow);
            if let Some((found, outage)) = found.and_then(|f| Some((f, f.outage?))) {
                let bound = bounds.iter().find(|(group, _)| found.group == *group).map(|(_, d)| *d);
                let promise = bound.and_then(|d| x.iter().zip(&analytic).rfind(|(x, _)| **x <= d + 1e-6));
                let promise = promise.filter(|(_, p)| p.is_finite());
                let by = promise.map_or_else(String::new, |(_, p)| format!(" (equation (3): {} %)", short(100.0 * p)));
                said.push(format!("{flow} {} %{by}", short(100.0 * outage)));
            }
            chart = chart.series(Series::stepped(flow.clone(), flow.clone(), x.clone(), measured));
            if analytic.iter().any(|p| p.is_finite()) {
                chart = chart.series(Series::stepped(format!("{flow}: equation (3)"), flow, x, analytic).reference());
            }
        }
        let mut marked: Vec<f64> = Vec::new();
        for (_, d) in bounds {
            if !marked.contains(&d) {
                chart = chart.band(d, d, format!("D = {} ms", short(d)), BandKind::Note);
                marked.push(d);
            }
        }
        chart.title = match &said[..] {
            [] => "How much longer than the least their packets take".to_owned(),
            said => format!("Delay outage: {}", said.join(", ")),
        };
        chart.caption(format!("{}; of the packets received, shares below {LEAST_SHARE} not drawn", self.caption()))
    }

    fn users(&self, users: &[UserSummary]) -> Table {
        let head = [
            "user",
            "received (kbit/s)",
            "packets per slot",
            "slots used",
            "failed",
            "failed (%)",
            "silent",
            "waiting",
            "idle",
            "queue full (packets)",
            "given up (packets)",
            "mean queue",
            "longest",
        ];
        let rows = users.iter().take(MAX_ROWS).map(|u| {
            vec![
                u.user.to_string(),
                short(u.throughput_bps * 1e-3),
                short(u.packets_per_slot),
                u.slots_used.to_string(),
                u.slots_failed.to_string(),
                u.error_ratio.map_or_else(|| "–".into(), |share| short(share * 100.0)),
                u.slots_silent.to_string(),
                u.slots_waiting.to_string(),
                u.slots_idle.to_string(),
                u.dropped_packets.to_string(),
                u.given_up_packets.to_string(),
                short(u.queue_mean_packets),
                u.queue_max_packets.to_string(),
            ]
        });
        let left_out = users.len().saturating_sub(MAX_ROWS);
        let more = if left_out == 0 { String::new() } else { format!("; {left_out} more in `summary.json`") };
        Table {
            title: "Users and their slots".into(),
            caption: format!("seed {}; the measured window{more}", self.first().seed),
            head: head.map(String::from).to_vec(),
            rows: rows.collect(),
        }
    }

    /// D of each group that has one, in ms.
    fn tolerable_jitter(&self) -> Vec<(&str, f64)> {
        let flows = self.scenario.flows.iter();
        flows.filter_map(|f| Some((f.group.as_str(), f.tolerable_jitter.as_ref()?.get().as_secs_f64() * 1e3))).collect()
    }

    /// The first flows that have numbers in a column, with the first seed.
    fn flows_with(&self, rows: &Rows, column: &str) -> Vec<String> {
        let seed = self.first().seed.to_string();
        let mut flows: Vec<String> = Vec::new();
        for row in rows.iter().filter(|r| r.is("seed", &seed)) {
            let flow = row.text("flow");
            if flows.len() == MAX_LINES {
                break;
            }
            if row.number(column).is_some() && !flows.iter().any(|f| *f == flow) {
                flows.push(flow.into_owned());
            }
        }
        flows
    }

    /// A column of `series.csv` of one flow; gaps where there is no number.
    fn flow_column(&self, flow: &str, column: &str) -> (Vec<f64>, Vec<f64>) {
        let rows = &self.series;
        let seed = self.first().seed.to_string();
        let own = |r: &Row<'_>| r.is("seed", &seed) && r.is("flow", flow);
        let value = |r: Row<'_>| r.number(column).unwrap_or(f64::NAN);
        rows.iter().filter(own).filter_map(|r| Some((r.number("t_s")?, value(r)))).unzip()
    }

    fn time(&self) -> Axis {
        Axis::new("time", "s").range(0.0, self.first().duration_s)
    }
}

/// A user's colour key, the same in every picture of the page.
fn user_key(user: u32) -> String {
    format!("user {user}")
}
