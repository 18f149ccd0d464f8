//! The section of a satellite: whose slot is whose, what each terminal asked for and was given, who waits.

use super::rows::{Rows, thin};
use super::run::Run;
use super::shown::{MAX_OPEN_ROWS, short};
use crate::{Axis, BandKind, Chart, Section, Series, SlotMap, SlotOwner, SlotRow, Table};
use fairpace_lab::events::TerminalEventKind;
use fairpace_lab::metrics::{SatelliteSummary, TerminalSummary};
use fairpace_scenario::FrameSpec;
use std::borrow::Cow;

/// Carriers whose frames are shown.
const MAX_CARRIERS: usize = 2;
/// Terminals whose requests are drawn, a chart each.
const MAX_TERMINALS: usize = 4;
/// Lines in the chart of the queues.
const MAX_QUEUES: usize = 6;
/// Rows in the table of terminals.
const MAX_ROWS: usize = 200;
/// Quick-Start decisions that a terminal's chart marks; where there are more, it marks none.
const MAX_DECISIONS: usize = 3;

impl Run {
    /// The section, if the run has a satellite.
    pub(super) fn satellite(&self) -> Option<Section> {
        let found = self.first().satellite.as_ref().filter(|s| !s.terminals.is_empty())?;
        let (terminals, carriers) = (&found.terminals, found.carriers);
        let text = format!(
            "{} of {} terminals carry flows, on {}; packets fill {} % of the capacity. What a terminal asks for at the end \
             of a super-frame of {} ms is in force {} ms later; a round trip takes {} ms on average.",
            terminals.len(),
            self.scenario.satellite.as_ref().map_or(0, |s| s.terminals.get()),
            if carriers == 1 { "one carrier".to_owned() } else { format!("{carriers} carriers") },
            short(found.utilization * 100.0),
            short(found.super_frame_ms),
            short(found.allocation_delay_ms),
            short(found.mean_rtt_ms),
        );
        let mut section = Section::new("satellite", "The satellite").text(text).synced();
        for map in self.slot_maps(found) {
            section = section.slot_map(map);
        }
        let mut busiest: Vec<&TerminalSummary> = terminals.iter().collect();
        // Those that were asked for Quick-Start first.
        busiest.sort_by(|a, b| {
            let asked = |t: &TerminalSummary| t.quick_start.is_some();
            asked(b).cmp(&asked(a)).then(b.throughput_bps.total_cmp(&a.throughput_bps))
        });
        let numbers: Vec<u32> = busiest.iter().map(|t| t.terminal).collect();
        // Who never asks for more than it has makes a dull picture.
        let asking = numbers.iter().map(|t| (*t, self.first_request(*t))).filter(|(_, first)| first.is_some());
        let mut drawn: Vec<_> = asking.take(MAX_TERMINALS).collect();
        if drawn.is_empty() {
            drawn.extend(numbers.first().map(|t| (*t, None)));
        }
        for (terminal, first) in drawn {
            section = section.chart(self.requests(terminal, first));
        }
        section = section.chart(self.queues(&numbers));
        let table = self.terminals(terminals);
        let fold = table.rows.len() > MAX_OPEN_ROWS;
        section = section.table(table);
        Some(if fold { section.folded() } else { section })
    }

    /// Slots of a multi-frame, and of a frame if frames are of consequence.
    fn frame(&self) -> (usize, usize) {
        match self.scenario.satellite.as_ref().map(|s| &s.frame) {
            Some(FrameSpec::Small) => (24, 6),
            Some(FrameSpec::Large) | None => (144, 6),
            Some(FrameSpec::Own(own)) => (usize::try_from(own.multi_frame.get()).unwrap_or(1).max(1), 0),
        }
    }

    /// One picture per carrier: the super-frames under each other, a row for each of their multi-frames.
    fn slot_maps(&self, found: &SatelliteSummary) -> Vec<SlotMap> {
        let rows = &self.slots;
        let (multi_frame, frame) = self.frame();
        let slot_ms = found.multi_frame_ms / multi_frame as f64;
        let mut carriers: Vec<Cow<'_, str>> = Vec::new();
        for row in rows.iter() {
            let carrier = row.text("carrier");
            if !carriers.contains(&carrier) {
                carriers.push(carrier);
            }
        }
        let seed = self.first().seed.to_string();
        let more = carriers.len().saturating_sub(MAX_CARRIERS);
        let map = |carrier: &Cow<'_, str>| {
            let plans = plans(rows, carrier);
            let per_plan = |terminal: Option<u32>| -> Vec<usize> {
                plans.iter().map(|p| p.owners.iter().filter(|o| **o == terminal).count()).collect()
            };
            let mut owners: Vec<(u32, Vec<usize>)> = Vec::new();
            for terminal in plans.iter().flat_map(|p| p.owners.iter().flatten()) {
                if !owners.iter().any(|(t, _)| t == terminal) {
                    owners.push((*terminal, per_plan(Some(*terminal))));
                }
            }
            // The legend has those with most slots first; the busiest one is the title's.
            owners.sort_by_key(|(terminal, slots)| (std::cmp::Reverse(slots.iter().sum::<usize>()), *terminal));
            let total = plans.iter().map(|p| p.owners.len()).max().unwrap_or(0);
            let free = per_plan(None);
            let title = owners.first().map_or_else(String::new, |(terminal, slots)| {
                let them = then(slots);
                format!("Of {total} slots of a super-frame terminal {terminal} has {them}; {} are nobody’s", and(&free))
            });
            let place = |owner: &Option<u32>| owner.and_then(|o| owners.iter().position(|(t, _)| *t == o));
            let slot_rows = plans.iter().flat_map(|p| {
                p.owners.chunks(multi_frame).enumerate().map(|(i, slots)| SlotRow {
                    name: if i == 0 { format!("from {:.3} s", p.start_s) } else { String::new() },
                    slots: slots.iter().map(place).collect(),
                })
            });
            SlotMap {
                title,
                caption: format!(
                    "Scenario {}; seed {seed}; carrier {carrier}{}; super-frames at the first flow's start, when its first \
                     request is answered, and in the middle of what is left",
                    self.first().scenario,
                    if more == 0 { String::new() } else { format!(", {more} more carriers not shown") },
                ),
                axis: format!(
                    "slot of the multi-frame, {slot_ms:.3} ms each; a row is a multi-frame{}",
                    if frame == 0 { String::new() } else { format!(", thin lines part frames of {frame} slots") }
                ),
                frame,
                rows: slot_rows.collect(),
                owners: owners
                    .iter()
                    .map(|(terminal, slots)| SlotOwner {
                        label: terminal.to_string(),
                        name: format!("terminal {terminal}: {} slots", and(slots)),
                        colour: key(*terminal),
                    })
                    .collect(),
            }
        };
        carriers.iter().take(MAX_CARRIERS).map(map).collect()
    }

    /// The requests, grants and traffic of a terminal.
    fn requests(&self, terminal: u32, first: Option<FirstRequest>) -> Chart {
        let seed = self.first().seed.to_string();
        let end = self.first().duration_s;
        let line = |column: &str| {
            let (x, y) = self.column(&seed, terminal, column, 1e-3);
            thin(x, y)
        };
        let mut chart = Chart::new(
            first.map_or_else(
                || format!("Terminal {terminal} never asks for more than it has"),
                |f| f.sentence(terminal),
            ),
            Axis::new("time", "s").range(0.0, end),
            Axis::new(format!("rate at terminal {terminal}"), "kbit/s"),
        )
        .caption(format!("seed {seed}; asked: eq. (1) and Quick-Start, at each boundary; given: with the minimum; at the sampling instants"));
        let (x, y) = line("granted_bps");
        chart = chart.series(Series::stepped("given", key(terminal), x, y));
        let (x, y) = line("requested_bps");
        chart = chart.series(Series::stepped("asked", "asked", x, y).reference());
        let (x, y) = line("throughput_bps");
        chart = chart.series(Series::line("sent", "sent", x, y));
        let said: Vec<_> = self
            .events_of(terminal)
            .filter_map(|(t_s, what)| match what {
                TerminalEventKind::QuickStart { verdict, approved_bps, .. } => {
                    Some((t_s, verdict.as_deref().unwrap_or("passed on"), *approved_bps))
                }
                _ => None,
            })
            .filter(|(_, verdict, _)| *verdict != "report")
            .collect();
        if said.len() <= MAX_DECISIONS {
            for (at, verdict, approved_bps) in said {
                let rate = approved_bps.map(|r| format!(" {} kbit/s", short(r / 1e3))).unwrap_or_default();
                let what = verdict.split(':').next().unwrap_or_default();
                chart = chart.band(at, at, format!("Quick-Start {what}{rate}"), BandKind::Note);
            }
        }
        chart
    }

    /// When a terminal first asked for more than it had, and when it had that.
    fn first_request(&self, terminal: u32) -> Option<FirstRequest> {
        // Of what it has from the beginning the first grant of a terminal that has work tells.
        let granted = |(_, what): (f64, &TerminalEventKind)| match what {
            TerminalEventKind::Grant { rate_bps, .. } => Some(*rate_bps),
            _ => None,
        };
        let mut has = self.events_of(terminal).find_map(granted).unwrap_or(0.0);
        let mut first: Option<FirstRequest> = None;
        for (at, what) in self.events_of(terminal) {
            match (what, &mut first) {
                (TerminalEventKind::Grant { rate_bps, .. }, Some(asked)) if *rate_bps >= asked.rate => {
                    asked.had = Some(at);
                    break;
                }
                (TerminalEventKind::Grant { rate_bps, .. }, None) => has = *rate_bps,
                (TerminalEventKind::Request { rate_bps, .. }, None) if *rate_bps > has => {
                    first = Some(FirstRequest { rate: *rate_bps, at, had: None });
                }
                _ => {}
            }
        }
        first
    }

    fn queues(&self, terminals: &[u32]) -> Chart {
        let seed = self.first().seed.to_string();
        let end = self.first().duration_s;
        let mut longest = (0.0, 0);
        let mut series = Vec::new();
        for terminal in terminals.iter().take(MAX_QUEUES) {
            let (x, y) = self.column(&seed, *terminal, "queue_packets", 1.0);
            let most = y.iter().copied().fold(0.0, f64::max);
            if most > longest.0 {
                longest = (most, *terminal);
            }
            let (x, y) = thin(x, y);
            series.push(Series::stepped(format!("terminal {terminal}"), key(*terminal), x, y));
        }
        let (most, whose) = longest;
        let title = if most == 0.0 {
            "At the sampling instants nobody waits at the terminals".to_owned()
        } else {
            format!("At most {} packets wait at a terminal, number {whose}", short(most))
        };
        let chart = Chart::new(title, Axis::new("time", "s").range(0.0, end), Axis::new("uplink queue", "packets"));
        let mut chart = chart.caption(format!("seed {seed}; at the sampling instants, the packet under way included"));
        chart.series = series;
        chart
    }

    fn terminals(&self, terminals: &[TerminalSummary]) -> Table {
        let head = [
            "terminal",
            "carrier",
            "sent (kbit/s)",
            "came (packets)",
            "refused",
            "slots used",
            "mean wait (ms)",
            "longest queue",
            "Quick-Start: approved / lowered / refused",
        ];
        let rows = terminals.iter().take(MAX_ROWS).map(|t| {
            let said = t.quick_start.map_or_else(
                || ["–"; 3].map(str::to_owned),
                |q| [q.approved, q.reduced, q.refused].map(|n| short(n as f64)),
            );
            vec![
                t.terminal.to_string(),
                t.carrier.to_string(),
                short(t.throughput_bps * 1e-3),
                t.offered_packets.to_string(),
                t.dropped_packets.to_string(),
                t.slots_used.to_string(),
                t.wait_mean_ms.map_or_else(|| "–".into(), short),
                t.queue_max_packets.to_string(),
                said.join(" / "),
            ]
        });
        let left_out = terminals.len().saturating_sub(MAX_ROWS);
        let more = if left_out == 0 { String::new() } else { format!("; {left_out} more in `summary.json`") };
        Table {
            title: "Terminals that carry flows".into(),
            caption: format!("{}{more}", self.caption()),
            head: head.map(String::from).to_vec(),
            rows: rows.collect(),
        }
    }

    /// A column of `terminals.csv` over time.
    fn column(&self, seed: &str, terminal: u32, column: &str, scale: f64) -> (Vec<f64>, Vec<f64>) {
        let rows = &self.terminal_rows;
        let terminal = terminal.to_string();
        let points = rows.iter().filter(|r| r.is("seed", seed) && r.is("terminal", &terminal));
        points.filter_map(|r| r.number("t_s").zip(r.number(column).map(|v| v * scale))).unzip()
    }

    /// The events at a terminal, with the first seed: the time in seconds, and the event.
    fn events_of(&self, terminal: u32) -> impl Iterator<Item = (f64, &TerminalEventKind)> {
        let seed = self.first().seed;
        self.events.iter().filter(move |e| e.seed == seed && e.terminal == terminal).map(|e| (e.t_s, &e.what))
    }
}

/// A terminal's colour key, the same in every picture of the page.
fn key(terminal: u32) -> String {
    format!("terminal {terminal}")
}

/// The first request of a terminal for more than it has.
struct FirstRequest {
    /// The requested rate, bit/s.
    rate: f64,
    /// When, in seconds.
    at: f64,
    /// When it has that; `None`: never.
    had: Option<f64>,
}

impl FirstRequest {
    fn sentence(&self, terminal: u32) -> String {
        let asks = format!("Terminal {terminal} asks for {} kbit/s at {:.2} s", short(self.rate / 1e3), self.at);
        self.had.map_or_else(|| format!("{asks} and never has it"), |had| format!("{asks} and has it at {had:.2} s"))
    }
}

/// One super-frame of a carrier.
struct Plan {
    super_frame: String,
    start_s: f64,
    owners: Vec<Option<u32>>,
}

/// The super-frames of a carrier in `slots.csv`, in order of time.
fn plans(rows: &Rows, carrier: &str) -> Vec<Plan> {
    let mut plans: Vec<Plan> = Vec::new();
    for row in rows.iter().filter(|r| r.is("carrier", carrier)) {
        let super_frame = row.text("super_frame");
        if plans.last().is_none_or(|p| p.super_frame != super_frame) {
            let start_s = row.number("start_s").unwrap_or(f64::NAN);
            plans.push(Plan { super_frame: super_frame.into_owned(), start_s, owners: Vec::new() });
        }
        if let Some(plan) = plans.last_mut() {
            plan.owners.push(row.text("terminal").parse().ok());
        }
    }
    plans
}

/// `3, 36 and 21`.
fn and(numbers: &[usize]) -> String {
    joined(numbers, " and ")
}

/// `3, 36, then 21`.
fn then(numbers: &[usize]) -> String {
    joined(numbers, ", then ")
}

fn joined(numbers: &[usize], last: &str) -> String {
    let texts: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    match texts.split_last() {
        Some((end, rest)) if !rest.is_empty() => format!("{}{last}{end}", rest.join(", ")),
        _ => texts.join(""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_listed_as_a_sentence_has_them() {
        assert_eq!((and(&[3]), and(&[3, 36, 21])), ("3".to_owned(), "3, 36 and 21".to_owned()));
        assert_eq!(then(&[3, 36]), "3, then 36");
    }
}
