//! The tables of a results folder: what of a run goes into which column.

use crate::adus::{self, arrivals};
use crate::delays::{Delays, ms};
use crate::events::TerminalEvent;
use crate::jitter::curves;
use crate::metrics::Drops;
use crate::series;
use crate::simulate::SeedRun;
use crate::table::{Table, number, text, whole};
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

/// The tables of one seed by name: `flows` is `flows.csv` in a results folder. Of the longest only the first seed has one.
pub(crate) fn all(scenario: &Scenario, run: &SeedRun) -> Result<BTreeMap<String, Table>, ScenarioError> {
    let is_first = run.seed == scenario.seed.get();
    let mut tables = vec![
        ("flows", flows(run)),
        ("links", links(run)),
        ("series", series(run)),
        ("link_series", link_series(run)),
        ("events", events(run)),
    ];
    if scenario.satellite.is_some() {
        tables.push(("terminals", terminals(run)));
        if is_first {
            tables.push(("slots", slots(run)));
        }
    }
    if scenario.wireless.is_some() {
        tables.push(("users", users(run)));
        tables.push(("jitter", jitter(scenario, run)?));
        tables.push(("windows", windows(run)));
        if is_first {
            tables.push(("radio_slots", radio_slots(run)));
        }
    }
    if is_first && adus::any(scenario) {
        tables.push(("adus", adus(run)));
    }
    Ok(tables.into_iter().map(|(name, table)| (name.to_owned(), table)).collect())
}

fn flows(run: &SeedRun) -> Table {
    let mut t = Table::new(&[
        whole("seed"),
        text("flow"),
        text("group"),
        text("controller"),
        number("throughput_bps"),
        number("throughput_pps"),
        number("goodput_bps"),
        whole("sent_packets"),
        whole("received_packets"),
        whole("drops_queue_full_packets"),
        whole("drops_early_packets"),
        whole("drops_pushed_out_packets"),
        whole("drops_link_error_packets"),
        whole("drops_outage_packets"),
        number("loss_ratio"),
        whole("marked_packets"),
        whole("dummies_packets"),
        number("overhead"),
        number("feedback_bps"),
        whole("acknowledged_packets"),
        number("owd_mean_ms"),
        number("owd_p50_ms"),
        number("owd_p95_ms"),
        number("owd_p99_ms"),
        number("owd_max_ms"),
        number("e2e_mean_ms"),
        number("e2e_p50_ms"),
        number("e2e_p95_ms"),
        number("e2e_p99_ms"),
        number("e2e_max_ms"),
        number("lost_in_send_buffer"),
        number("late"),
        number("outage"),
        whole("quick_start_asked"),
        whole("quick_start_approved"),
        number("srtt_ms"),
        text("stopped"),
        whole("timeouts"),
    ]);
    for f in &run.summary.flows {
        t.whole(run.seed).text(&f.name).text(&f.group).text(&f.controller).number(f.throughput_bps);
        t.number(f.throughput_pps).number(f.goodput_bps).whole(f.sent_packets).whole(f.received_packets);
        t.drops(&f.drops_packets).number(f.loss_ratio).whole(f.marked_packets).whole(f.dummies_packets);
        t.number(f.overhead).number(f.feedback_bps).whole(f.acknowledged_packets).delays(f.owd_ms.as_ref());
        t.delays(f.e2e_ms.as_ref()).number(f.lost_in_send_buffer).number(f.late);
        t.number(f.outage);
        t.whole(f.quick_start.map(|q| q.asked)).whole(f.quick_start.map(|q| q.approved));
        t.number(f.srtt_ms);
        t.text(f.stopped.as_deref().unwrap_or("")).whole(f.timeouts).end();
    }
    t
}

fn links(run: &SeedRun) -> Table {
    let mut t = Table::new(&[
        whole("seed"),
        text("link"),
        number("utilization"),
        whole("transmitted_packets"),
        whole("transmitted_bytes"),
        whole("drops_queue_full_packets"),
        whole("drops_early_packets"),
        whole("drops_pushed_out_packets"),
        whole("drops_link_error_packets"),
        whole("drops_outage_packets"),
        whole("low_drops_queue_full_packets"),
        whole("low_drops_early_packets"),
        whole("low_drops_pushed_out_packets"),
        whole("low_drops_link_error_packets"),
        whole("low_drops_outage_packets"),
        whole("marked_packets"),
        number("queue_mean_packets"),
        whole("queue_max_packets"),
    ]);
    for l in &run.summary.links {
        t.whole(run.seed).text(&l.name).number(l.utilization).whole(l.transmitted_packets);
        t.whole(l.transmitted_bytes).drops(&l.drops_packets).drops(&l.low_drops_packets);
        t.whole(l.marked_packets).number(l.queue_mean_packets).whole(l.queue_max_packets).end();
    }
    t
}

fn series(run: &SeedRun) -> Table {
    let flows = &run.report.flows;
    series::table(run.seed, &run.report.series, |i| flows.get(i as usize).map_or(("", ""), |f| (&f.name, &f.group)))
}

fn link_series(run: &SeedRun) -> Table {
    let mut t = Table::new(&[
        whole("seed"),
        number("t_s"),
        text("link"),
        whole("queue_packets"),
        whole("queue_bytes"),
        number("throughput_bps"),
        number("capacity_bps"),
        whole("drops_packets"),
    ]);
    for row in &run.report.link_series {
        let name = run.report.links.get(row.link as usize).map_or("", |l| l.name.as_str());
        // An unlimited link has no number.
        let capacity = Some(row.capacity).filter(|c| *c < Rate::MAX).map(Rate::as_bps);
        t.whole(run.seed).number(row.at.as_secs_f64()).text(name).whole(row.queue_packets);
        t.whole(row.queue_bytes.get()).number(row.throughput.as_bps()).number(capacity).whole(row.drops).end();
    }
    t
}

fn terminals(run: &SeedRun) -> Table {
    let mut t = Table::new(&[
        whole("seed"),
        number("t_s"),
        whole("terminal"),
        number("offered_bps"),
        number("requested_bps"),
        number("granted_bps"),
        number("throughput_bps"),
        whole("slots_used"),
        whole("queue_packets"),
        whole("queue_bytes"),
        whole("drops_packets"),
    ]);
    for row in run.report.satellites.iter().flat_map(|s| &s.series) {
        t.whole(run.seed).number(row.at.as_secs_f64()).whole(u64::from(row.terminal)).number(row.offered.as_bps());
        t.number(row.requested.as_bps()).number(row.granted.as_bps()).number(row.throughput.as_bps());
        t.whole(row.slots_used).whole(row.queue_packets).whole(row.queue_bytes.get()).whole(row.drops).end();
    }
    t
}

fn users(run: &SeedRun) -> Table {
    let mut t = Table::new(&[
        whole("seed"),
        number("t_s"),
        whole("user"),
        whole("queue_packets"),
        number("throughput_bps"),
        whole("slots_used"),
        whole("slots_failed"),
        whole("slots_silent"),
        whole("drops_packets"),
    ]);
    for row in run.report.radios.iter().flat_map(|r| &r.series) {
        t.whole(run.seed).number(row.at.as_secs_f64()).whole(u64::from(row.user)).whole(row.queue_packets);
        t.number(row.throughput.as_bps()).whole(row.used).whole(row.failed).whole(row.silent).whole(row.drops).end();
    }
    t
}

fn jitter(scenario: &Scenario, run: &SeedRun) -> Result<Table, ScenarioError> {
    let mut t = Table::new(&[
        whole("seed"),
        text("flow"),
        text("group"),
        number("jitter_ms"),
        number("measured"),
        number("analytic"),
    ]);
    for curve in curves(scenario, run.seed, &run.report)? {
        let Some(flow) = run.report.flows.get(curve.flow) else { continue };
        for row in curve.rows {
            t.whole(run.seed).text(&flow.name).text(&flow.group).number(ms(row.above)).number(row.measured);
            t.number(row.analytic).end();
        }
    }
    Ok(t)
}

/// The slots of the first seed in which somebody sent.
fn radio_slots(run: &SeedRun) -> Table {
    let mut t = Table::new(&[
        whole("seed"),
        whole("slot"),
        number("start_s"),
        whole("user"),
        text("outcome"),
        whole("silent_slots_after"),
    ]);
    for row in run.report.radios.iter().flat_map(|r| &r.slots) {
        let (outcome, silence) = match row.outcome {
            SlotOutcome::Success { last: true } => ("success", 0),
            SlotOutcome::Success { last: false } => ("success, more of the packet follows", 0),
            SlotOutcome::Failure { silence, lost: false } => ("failure", silence),
            SlotOutcome::Failure { silence, lost: true } => ("failure, packet lost", silence),
        };
        t.whole(run.seed).whole(row.slot).number(row.start.as_secs_f64()).whole(u64::from(row.user)).text(outcome);
        t.whole(u64::from(silence)).end();
    }
    t
}

fn windows(run: &SeedRun) -> Table {
    let mut t = Table::new(&[whole("seed"), number("t_s"), text("flow"), whole("rwnd_packets")]);
    for row in run.report.radios.iter().flat_map(|r| &r.windows) {
        let name = run.report.flows.get(row.flow as usize).map_or("", |f| f.name.as_str());
        t.whole(run.seed).number(row.at.as_secs_f64()).text(name).whole(u64::from(row.rwnd)).end();
    }
    t
}

/// The plans of the first seed's super-frames: a slot that is nobody's has no terminal.
fn slots(run: &SeedRun) -> Table {
    let mut t = Table::new(&[
        whole("seed"),
        whole("carrier"),
        whole("super_frame"),
        number("start_s"),
        whole("slot"),
        whole("terminal"),
    ]);
    for found in run.report.satellites.iter().flat_map(|s| &s.plans) {
        for (slot, owner) in found.plan.owners.iter().enumerate() {
            t.whole(run.seed).whole(u64::from(found.carrier)).whole(found.plan.super_frame);
            t.number(found.plan.start.as_secs_f64()).whole(slot as u64).whole(owner.map(u64::from)).end();
        }
    }
    t
}

/// One event of the satellite a line.
pub(crate) fn terminal_events(run: &SeedRun) -> String {
    let mut text = String::new();
    for event in run.report.satellites.iter().flat_map(|s| &s.events) {
        // Its keys are text, so that it cannot fail.
        text.push_str(&serde_json::to_string(&TerminalEvent::new(run.seed, event)).unwrap_or_default());
        text.push('\n');
    }
    text
}

fn events(run: &SeedRun) -> Table {
    let mut t = Table::new(&[
        whole("seed"),
        number("t_s"),
        text("flow"),
        text("event"),
        text("from"),
        text("to"),
        number("rate_bps"),
        whole("packet"),
        text("reason"),
    ]);
    const BREAKER: &str = "circuit breaker";
    for (flow, event) in &run.report.events {
        let name = run.report.flows.get(*flow as usize).map_or("", |f| f.name.as_str());
        let tripped;
        let (what, [from, to], rate, packet, reason) = match &event.what {
            FlowEventKind::StateChanged { from, to, reason } => ("state", [*from, *to], None, None, *reason),
            FlowEventKind::RateChanged { rate, reason } => ("rate", [""; 2], Some(*rate), None, *reason),
            FlowEventKind::Lost { seq, how } => {
                let how = match how {
                    LossHow::LaterAcks => "later_acks",
                    LossHow::Timeout => "timeout",
                };
                ("lost", [""; 2], None, Some(*seq), how)
            }
            FlowEventKind::Unheard { rate } => ("unheard", [""; 2], Some(*rate), None, "nothing is heard"),
            FlowEventKind::HeardAgain => ("heard", [""; 2], None, None, "packets are heard of again"),
            FlowEventKind::Held { rate } => ("held", [""; 2], Some(*rate), None, BREAKER),
            FlowEventKind::Released => ("released", [""; 2], None, None, BREAKER),
            FlowEventKind::Raised { rate } => ("raised", [""; 2], Some(*rate), None, BREAKER),
            FlowEventKind::Capped { rate } => ("capped", [""; 2], Some(*rate), None, BREAKER),
            FlowEventKind::Uncapped => ("uncapped", [""; 2], None, None, BREAKER),
            FlowEventKind::Tripped { reason } => {
                tripped = reason.to_string();
                ("stopped", [""; 2], None, None, tripped.as_str())
            }
            FlowEventKind::QuickStartAsked { rate } => ("quick_start", [""; 2], Some(rate.rate()), None, "asked"),
            FlowEventKind::QuickStartAnswered { verdict } => {
                ("quick_start", [""; 2], Some(verdict.rate()), None, verdict.name())
            }
        };
        t.whole(run.seed).number(event.at.as_secs_f64()).text(name).text(what).text(from).text(to);
        t.number(rate.map(Rate::as_bps)).whole(packet).text(reason).end();
    }
    t
}

/// The data units of the first seed that are complete.
fn adus(run: &SeedRun) -> Table {
    let mut t = Table::new(&[
        whole("seed"),
        text("flow"),
        whole("adu"),
        number("began_s"),
        number("complete_s"),
        number("gap_ms"),
        text("via"),
        whole("switched"),
    ]);
    for flow in &run.report.flows {
        for a in arrivals(flow) {
            t.whole(run.seed).text(&flow.name).whole(a.adu as u64).number(a.began.as_secs_f64());
            t.number(a.at.as_secs_f64()).number(a.gap.map(ms));
            t.text(if a.via == Via::Tcp { "tcp" } else { "udp" }).whole(u64::from(a.switched)).end();
        }
    }
    t
}
