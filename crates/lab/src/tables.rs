//! The tables of a results folder: what of a run goes into which column.

use crate::adus::{self, arrivals};
use crate::csv::Table;
use crate::delays::{Delays, ms};
use crate::events::TerminalEvent;
use crate::jitter;
use crate::metrics::Drops;
use crate::simulate::SeedRun;
use fairpace_control::{FlowEventKind, LossHow};
use fairpace_path::SlotOutcome;
use fairpace_scenario::{Scenario, ScenarioError};
use fairpace_units::{Rate, Via};
use std::collections::BTreeMap;

impl Table {
    fn drops(&mut self, d: &Drops) -> &mut Self {
        self.whole(d.queue_full).whole(d.early).whole(d.pushed_out).whole(d.link_error).whole(d.outage)
    }

    fn delays(&mut self, d: Option<&Delays>) -> &mut Self {
        self.number(d.map(|d| d.mean)).number(d.map(|d| d.p50)).number(d.map(|d| d.p95));
        self.number(d.map(|d| d.p99)).number(d.map(|d| d.max))
    }
}

/// The tables of one seed by the names of their files, each with its head. Of the longest only the first seed has one.
pub(crate) fn all(scenario: &Scenario, run: &SeedRun) -> Result<BTreeMap<String, String>, ScenarioError> {
    let is_first = run.seed == scenario.seed.get();
    let mut tables = vec![
        ("flows.csv", flows_csv(run)),
        ("links.csv", links_csv(run)),
        ("series.csv", series_csv(run)),
        ("link_series.csv", link_series_csv(run)),
        ("events.csv", events_csv(run)),
    ];
    if scenario.satellite.is_some() {
        tables.push(("terminals.csv", terminals_csv(run)));
        tables.push(("events.jsonl", events_jsonl(run)));
        if is_first {
            tables.push(("slots.csv", slots_csv(run)));
        }
    }
    if scenario.wireless.is_some() {
        tables.push(("users.csv", users_csv(run)));
        tables.push(("jitter.csv", jitter_csv(scenario, run)?));
        tables.push(("windows.csv", windows_csv(run)));
        if is_first {
            tables.push(("radio_slots.csv", radio_slots_csv(run)));
        }
    }
    if is_first && adus::any(scenario) {
        tables.push(("adus.csv", adus_csv(run)));
    }
    Ok(tables.into_iter().map(|(name, text)| (name.to_owned(), text)).collect())
}

/// One table of all seeds: the head of the first, and the rows of each.
pub(crate) fn joined<'a>(name: &str, parts: impl Iterator<Item = &'a String>) -> String {
    let has_head = name.ends_with(".csv");
    parts.fold(String::new(), |all, part| match part.split_once('\n') {
        Some((_, rows)) if has_head && !all.is_empty() => all + rows,
        _ => all + part,
    })
}

fn flows_csv(run: &SeedRun) -> String {
    let mut t = Table::new(&[
        "seed",
        "flow",
        "group",
        "controller",
        "throughput_bps",
        "throughput_pps",
        "goodput_bps",
        "sent_packets",
        "received_packets",
        "drops_queue_full_packets",
        "drops_early_packets",
        "drops_pushed_out_packets",
        "drops_link_error_packets",
        "drops_outage_packets",
        "loss_ratio",
        "marked_packets",
        "dummies_packets",
        "overhead",
        "feedback_bps",
        "acknowledged_packets",
        "owd_mean_ms",
        "owd_p50_ms",
        "owd_p95_ms",
        "owd_p99_ms",
        "owd_max_ms",
        "e2e_mean_ms",
        "e2e_p50_ms",
        "e2e_p95_ms",
        "e2e_p99_ms",
        "e2e_max_ms",
        "lost_in_send_buffer",
        "late",
        "outage",
        "quick_start_asked",
        "quick_start_approved",
        "srtt_ms",
        "stopped",
        "timeouts",
    ]);
    for f in &run.summary.flows {
        t.whole(run.seed).text(&f.name).text(&f.group).text(&f.controller).number(f.throughput_bps);
        t.number(f.throughput_pps).number(f.goodput_bps).whole(f.sent_packets).whole(f.received_packets);
        t.drops(&f.drops_packets).number(f.loss_ratio).whole(f.marked_packets).whole(f.dummies_packets);
        t.number(f.overhead).number(f.feedback_bps).whole(f.acknowledged_packets).delays(f.owd_ms.as_ref());
        t.delays(f.e2e_ms.as_ref()).number(f.lost_in_send_buffer).number(f.late);
        t.number(f.outage);
        t.number(f.quick_start.map(|q| q.asked as f64)).number(f.quick_start.map(|q| q.approved as f64));
        t.number(f.srtt_ms);
        t.text(f.stopped.as_deref().unwrap_or("")).number(f.timeouts.map(|n| n as f64)).end();
    }
    t.text
}

fn links_csv(run: &SeedRun) -> String {
    let mut t = Table::new(&[
        "seed",
        "link",
        "utilization",
        "transmitted_packets",
        "transmitted_bytes",
        "drops_queue_full_packets",
        "drops_early_packets",
        "drops_pushed_out_packets",
        "drops_link_error_packets",
        "drops_outage_packets",
        "low_drops_queue_full_packets",
        "low_drops_early_packets",
        "low_drops_pushed_out_packets",
        "low_drops_link_error_packets",
        "low_drops_outage_packets",
        "marked_packets",
        "queue_mean_packets",
        "queue_max_packets",
    ]);
    for l in &run.summary.links {
        t.whole(run.seed).text(&l.name).number(l.utilization).whole(l.transmitted_packets);
        t.whole(l.transmitted_bytes).drops(&l.drops_packets).drops(&l.low_drops_packets);
        t.whole(l.marked_packets).number(l.queue_mean_packets).whole(l.queue_max_packets).end();
    }
    t.text
}

fn series_csv(run: &SeedRun) -> String {
    let mut t = Table::new(&[
        "seed",
        "t_s",
        "flow",
        "group",
        "send_rate_bps",
        "throughput_bps",
        "dummy_rate_bps",
        "target_rate_bps",
        "cwnd_packets",
        "rwnd_packets",
        "srtt_ms",
        "rto_ms",
        "loss_event_rate",
        "send_buffer_bytes",
        "owd_ms",
        "e2e_ms",
        "drops_packets",
        "state",
    ]);
    for row in &run.report.series {
        let flow = run.report.flows.get(row.flow as usize);
        t.whole(run.seed).number(row.at.as_secs_f64()).text(flow.map_or("", |f| &f.name));
        t.text(flow.map_or("", |f| &f.group)).number(row.send_rate.as_bps()).number(row.throughput.as_bps());
        t.number(row.dummy_rate.as_bps()).number(row.target_rate.as_bps()).number(row.cwnd);
        t.number(row.rwnd.map(f64::from));
        t.number(row.srtt.map(ms)).number(row.rto.map(ms)).number(row.loss_event_rate);
        t.whole(row.send_buffer.get()).number(row.owd.map(ms)).number(row.e2ed.map(ms)).whole(row.drops);
        t.text(row.state).end();
    }
    t.text
}

fn link_series_csv(run: &SeedRun) -> String {
    let mut t = Table::new(&[
        "seed",
        "t_s",
        "link",
        "queue_packets",
        "queue_bytes",
        "throughput_bps",
        "capacity_bps",
        "drops_packets",
    ]);
    for row in &run.report.link_series {
        let name = run.report.links.get(row.link as usize).map_or("", |l| l.name.as_str());
        // An unlimited link has no number.
        let capacity = Some(row.capacity).filter(|c| *c < Rate::MAX).map(Rate::as_bps);
        t.whole(run.seed).number(row.at.as_secs_f64()).text(name).whole(row.queue_packets);
        t.whole(row.queue_bytes.get()).number(row.throughput.as_bps()).number(capacity).whole(row.drops).end();
    }
    t.text
}

fn terminals_csv(run: &SeedRun) -> String {
    let mut t = Table::new(&[
        "seed",
        "t_s",
        "terminal",
        "offered_bps",
        "requested_bps",
        "granted_bps",
        "throughput_bps",
        "slots_used",
        "queue_packets",
        "queue_bytes",
        "drops_packets",
    ]);
    for row in run.report.satellites.iter().flat_map(|s| &s.series) {
        t.whole(run.seed).number(row.at.as_secs_f64()).whole(row.terminal.into()).number(row.offered.as_bps());
        t.number(row.requested.as_bps()).number(row.granted.as_bps()).number(row.throughput.as_bps());
        t.whole(row.slots_used).whole(row.queue_packets).whole(row.queue_bytes.get()).whole(row.drops).end();
    }
    t.text
}

fn users_csv(run: &SeedRun) -> String {
    let mut t = Table::new(&[
        "seed",
        "t_s",
        "user",
        "queue_packets",
        "throughput_bps",
        "slots_used",
        "slots_failed",
        "slots_silent",
        "drops_packets",
    ]);
    for row in run.report.radios.iter().flat_map(|r| &r.series) {
        t.whole(run.seed).number(row.at.as_secs_f64()).whole(row.user.into()).whole(row.queue_packets);
        t.number(row.throughput.as_bps()).whole(row.used).whole(row.failed).whole(row.silent).whole(row.drops).end();
    }
    t.text
}

fn jitter_csv(scenario: &Scenario, run: &SeedRun) -> Result<String, ScenarioError> {
    let mut t = Table::new(&["seed", "flow", "group", "jitter_ms", "measured", "analytic"]);
    for curve in jitter::curves(scenario, run.seed, &run.report)? {
        let Some(flow) = run.report.flows.get(curve.flow) else { continue };
        for row in curve.rows {
            t.whole(run.seed).text(&flow.name).text(&flow.group).number(ms(row.above)).number(row.measured);
            t.number(row.analytic).end();
        }
    }
    Ok(t.text)
}

/// The slots of the first seed in which somebody sent.
fn radio_slots_csv(run: &SeedRun) -> String {
    let mut t = Table::new(&["seed", "slot", "start_s", "user", "outcome", "silent_slots_after"]);
    for row in run.report.radios.iter().flat_map(|r| &r.slots) {
        let (outcome, silence) = match row.outcome {
            SlotOutcome::Success { last: true } => ("success", 0),
            SlotOutcome::Success { last: false } => ("success, more of the packet follows", 0),
            SlotOutcome::Failure { silence, lost: false } => ("failure", silence),
            SlotOutcome::Failure { silence, lost: true } => ("failure, packet lost", silence),
        };
        t.whole(run.seed).whole(row.slot).number(row.start.as_secs_f64()).whole(row.user.into()).text(outcome);
        t.whole(silence.into()).end();
    }
    t.text
}

fn windows_csv(run: &SeedRun) -> String {
    let mut t = Table::new(&["seed", "t_s", "flow", "rwnd_packets"]);
    for row in run.report.radios.iter().flat_map(|r| &r.windows) {
        let name = run.report.flows.get(row.flow as usize).map_or("", |f| f.name.as_str());
        t.whole(run.seed).number(row.at.as_secs_f64()).text(name).whole(row.rwnd.into()).end();
    }
    t.text
}

/// The plans of the first seed's super-frames: a slot that is nobody's has no terminal.
fn slots_csv(run: &SeedRun) -> String {
    let mut t = Table::new(&["seed", "carrier", "super_frame", "start_s", "slot", "terminal"]);
    for found in run.report.satellites.iter().flat_map(|s| &s.plans) {
        for (slot, owner) in found.plan.owners.iter().enumerate() {
            t.whole(run.seed).whole(found.carrier.into()).whole(found.plan.super_frame);
            t.number(found.plan.start.as_secs_f64()).whole(slot as u64).number(owner.map(f64::from)).end();
        }
    }
    t.text
}

/// One event of the satellite a line.
fn events_jsonl(run: &SeedRun) -> String {
    let mut text = String::new();
    for event in run.report.satellites.iter().flat_map(|s| &s.events) {
        // Its keys are text, so that it cannot fail.
        text.push_str(&serde_json::to_string(&TerminalEvent::new(run.seed, event)).unwrap_or_default());
        text.push('\n');
    }
    text
}

fn events_csv(run: &SeedRun) -> String {
    let mut t = Table::new(&["seed", "t_s", "flow", "event", "from", "to", "rate_bps", "packet", "reason"]);
    for (flow, event) in &run.report.events {
        let name = run.report.flows.get(*flow as usize).map_or("", |f| f.name.as_str());
        t.whole(run.seed).number(event.at.as_secs_f64()).text(name);
        match &event.what {
            FlowEventKind::StateChanged { from, to, reason } => {
                t.text("state").text(from).text(to).number(None).number(None).text(reason)
            }
            FlowEventKind::RateChanged { rate, reason } => {
                t.text("rate").text("").text("").number(rate.as_bps()).number(None).text(reason)
            }
            FlowEventKind::Lost { seq, how } => {
                let how = match how {
                    LossHow::LaterAcks => "later_acks",
                    LossHow::Timeout => "timeout",
                };
                t.text("lost").text("").text("").number(None).whole(*seq).text(how)
            }
            FlowEventKind::Unheard { rate } => {
                t.text("unheard").text("").text("").number(rate.as_bps()).number(None).text("nothing is heard")
            }
            FlowEventKind::HeardAgain => {
                t.text("heard").text("").text("").number(None).number(None).text("packets are heard of again")
            }
            FlowEventKind::Held { rate } => {
                t.text("held").text("").text("").number(rate.as_bps()).number(None).text("circuit breaker")
            }
            FlowEventKind::Released => {
                t.text("released").text("").text("").number(None).number(None).text("circuit breaker")
            }
            FlowEventKind::Raised { rate } => {
                t.text("raised").text("").text("").number(rate.as_bps()).number(None).text("circuit breaker")
            }
            FlowEventKind::Capped { rate } => {
                t.text("capped").text("").text("").number(rate.as_bps()).number(None).text("circuit breaker")
            }
            FlowEventKind::Uncapped => {
                t.text("uncapped").text("").text("").number(None).number(None).text("circuit breaker")
            }
            FlowEventKind::Tripped { reason } => {
                t.text("stopped").text("").text("").number(None).number(None).text(&reason.to_string())
            }
            FlowEventKind::QuickStartAsked { rate } => {
                t.text("quick_start").text("").text("").number(rate.rate().as_bps()).number(None).text("asked")
            }
            FlowEventKind::QuickStartAnswered { verdict } => {
                let rate = verdict.rate().as_bps();
                t.text("quick_start").text("").text("").number(rate).number(None).text(verdict.name())
            }
        };
        t.end();
    }
    t.text
}

/// The data units of the first seed that are complete.
fn adus_csv(run: &SeedRun) -> String {
    let mut t = Table::new(&["seed", "flow", "adu", "began_s", "complete_s", "gap_ms", "via", "switched"]);
    for flow in &run.report.flows {
        for a in arrivals(flow) {
            t.whole(run.seed).text(&flow.name).whole(a.adu as u64).number(a.began.as_secs_f64());
            t.number(a.at.as_secs_f64()).number(a.gap.map(ms));
            t.text(if a.via == Via::Tcp { "tcp" } else { "udp" }).whole(a.switched.into()).end();
        }
    }
    t.text
}
