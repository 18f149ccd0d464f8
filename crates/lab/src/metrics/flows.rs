//! Flows, and groups of them.

use super::links::{Drops, share};
use crate::adus::AduSummary;
use crate::delays::{Delays, ms};
use crate::stats::jain_index;
use fairpace_scenario::FlowSpec;
use fairpace_sim::{FlowReport, SimReport};
use fairpace_units::{Duration, Instant};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One flow, over the measured window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowSummary {
    /// Its name.
    pub name: String,
    /// Its group.
    pub group: String,
    /// Its controller.
    pub controller: String,
    /// Data received, headers included. The rates of a flow that comes and goes (`arrivals`) are over the time that
    /// it goes on in the measured window.
    pub throughput_bps: f64,
    /// The same in packets.
    pub throughput_pps: f64,
    /// Data received once (TCP: in order).
    pub goodput_bps: f64,
    /// Data packets sent.
    pub sent_packets: u64,
    /// Data packets received.
    pub received_packets: u64,
    /// Data packets dropped on the way, by reason.
    pub drops_packets: Drops,
    /// Dropped / sent; null if nothing was sent.
    pub loss_ratio: Option<f64>,
    /// Packets received with a congestion mark, dummies included.
    pub marked_packets: u64,
    /// Dummies sent.
    pub dummies_packets: u64,
    /// Dummies / (data + dummies) sent; null if nothing was sent.
    pub overhead: Option<f64>,
    /// Acknowledgements and reports sent by the receiver, apart from RTCP's share.
    pub feedback_bps: f64,
    /// Feedback and control packets (acknowledgements, reports, questions, in real time the opening of a connection) dropped
    /// on the way, either way; not there if none was. With `drops_packets` and dummies these are the links' drops.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub control_drops_packets: u64,
    /// Data packets acknowledged to the sender.
    pub acknowledged_packets: u64,
    /// One-way delay of received data, from the sender to the receiver; null if nothing arrived.
    pub owd_ms: Option<Delays>,
    /// End-to-end delay of the same data: from the source, so with the time in the send buffer; null for what
    /// is not media.
    pub e2e_ms: Option<Delays>,
    /// Of what the source produced, what found the send buffer full; null without a source that has a rate.
    pub lost_in_send_buffer: Option<f64>,
    /// Of what arrived, what came later than the flow tolerates; null if it tolerates all.
    pub late: Option<f64>,
    /// Of what arrived, what had more delay jitter than the flow tolerates (`tolerable_jitter`): the delay outage; null
    /// if it tolerates all.
    pub outage: Option<f64>,
    /// The fate of the flow's Quick-Start requests; null if the flow sends none.
    pub quick_start: Option<QuickStartSummary>,
    /// Last smoothed RTT.
    pub srtt_ms: Option<f64>,
    /// Why the circuit breaker stopped it; null if it did not.
    pub stopped: Option<String>,
    /// TCP, and a flow that probes with it: retransmission timeouts in the whole run; null for others.
    pub timeouts: Option<u64>,
    /// TCP, and a flow that probes with it: what the throughput equations are fed with, over the measured window; null
    /// for others.
    pub tcp: Option<TcpSummary>,
    /// Its data units, with a source that makes them (`adus`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adus: Option<AduSummary>,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's own form
fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// The fate of a flow's Quick-Start requests, in the whole run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuickStartSummary {
    /// Requests sent.
    pub asked: u64,
    /// Approved, at whatever rate.
    pub approved: u64,
    /// Answered with rate zero.
    pub denied: u64,
    /// Acknowledged without an answer.
    pub unanswered: u64,
    /// Answers that were not valid: a router that does not know Quick-Start, a wrong rate or nonce, no request.
    pub invalid: u64,
}

/// The path as a TCP measured it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TcpSummary {
    /// Fast retransmits and sequences of timeouts. Per packet sent it is the equations' p.
    pub loss_indications: u64,
    /// Of these, fast retransmits.
    #[serde(default)]
    pub fast_retransmits: u64,
    /// Retransmission timeouts in the measured window, each of a sequence.
    #[serde(default)]
    pub timeouts: u64,
    /// Times the window was cut: each fast retransmit, timeout and congestion mark.
    #[serde(default)]
    pub cuts: u64,
    /// Mean smoothed RTT; null before the first sample.
    pub mean_srtt_ms: Option<f64>,
    /// Mean retransmission timeout, without back-off.
    pub mean_rto_ms: Option<f64>,
    /// Mean window in packets.
    pub mean_cwnd_packets: Option<f64>,
}

/// Flows that are averaged together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroupSummary {
    /// Its name.
    pub name: String,
    /// How many flows; of those that come and go, only who is there in the measured window.
    pub flows: usize,
    /// Mean over its flows.
    pub throughput_bps: f64,
    /// Mean over its flows.
    pub throughput_pps: f64,
    /// Mean over its flows.
    pub goodput_bps: f64,
    /// Sum over its flows.
    pub aggregate_throughput_bps: f64,
    /// Jain's index of its flows' throughputs; null if nothing arrived.
    pub jain_index: Option<f64>,
    /// Dropped / sent over all its flows.
    pub loss_ratio: Option<f64>,
    /// Dummies / (data + dummies) over all its flows.
    pub overhead: Option<f64>,
    /// One-way delay of all its flows' data.
    pub owd_ms: Option<Delays>,
    /// End-to-end delay of all its flows' data, with the time in the send buffer; null without media.
    pub e2e_ms: Option<Delays>,
    /// Lost in the send buffer / produced, over all its flows.
    pub lost_in_send_buffer: Option<f64>,
    /// Late / received, over all its flows that do not tolerate all.
    pub late: Option<f64>,
    /// Delay outage, over all its flows that do not tolerate all jitter.
    pub outage: Option<f64>,
}

/// The facts that the scenario gives about a flow.
pub(super) struct FlowFacts<'a> {
    pub(super) spec: &'a FlowSpec,
    /// How much of the measured window a flow that comes and goes is there; `None`: it is one of the scenario's own,
    /// and its rates are over the window.
    pub(super) goes_on: Option<Duration>,
}

impl FlowFacts<'_> {
    /// From rates over the measured window to rates over the time that the flow goes on in it.
    fn scale(&self, f: &FlowReport) -> f64 {
        match self.goes_on {
            Some(time) if !time.is_zero() => f.window.as_secs_f64() / time.as_secs_f64(),
            _ => 1.0,
        }
    }
}

/// Of what their sources produced, what found the send buffer full.
fn lost_in_send_buffer<'a>(flows: impl Iterator<Item = &'a FlowReport>) -> Option<f64> {
    let (lost, produced) = flows.fold((0.0, 0.0), |(lost, produced), f| {
        (lost + f.measured.overflowed.packets.as_f64(), produced + f.measured.produced.packets.as_f64())
    });
    share(lost, produced)
}

/// Of what they received, what came too late.
fn late<'a>(flows: impl Iterator<Item = &'a FlowReport>) -> Option<f64> {
    let (late, received) = flows.fold((0.0, 0.0), |(late, received), f| {
        (late + f.measured.late.packets.as_f64(), received + f.measured.received.packets.as_f64())
    });
    share(late, received)
}

/// Of what they received, what had too much delay jitter.
fn outage<'a>(flows: impl Iterator<Item = &'a FlowReport>) -> Option<f64> {
    let (outage, received) = flows.fold((0.0, 0.0), |(outage, received), f| {
        (outage + f.measured.outage.packets.as_f64(), received + f.measured.received.packets.as_f64())
    });
    share(outage, received)
}

impl QuickStartSummary {
    pub(super) fn new(q: fairpace_control::QsCounters) -> QuickStartSummary {
        QuickStartSummary {
            asked: q.asked,
            approved: q.approved,
            denied: q.denied,
            unanswered: q.unanswered,
            invalid: q.bad_ttl + q.bad_rate + q.bad_nonce + q.stray,
        }
    }
}

impl FlowSummary {
    pub(super) fn new(f: &FlowReport, known: Option<&FlowFacts<'_>>, from: Instant) -> FlowSummary {
        let spec = known.map(|k| k.spec);
        let scale = known.map_or(1.0, |k| k.scale(f));
        let sent = f.measured.sent.packets.as_f64();
        let dummies = f.measured.dummies_sent.packets.as_f64();
        let window = f.window.as_secs_f64();
        FlowSummary {
            name: f.name.clone(),
            group: f.group.clone(),
            controller: spec.map_or(&f.protocol, |s| &s.controller).clone(),
            throughput_bps: f.throughput().as_bps() * scale,
            throughput_pps: f.throughput_pps() * scale,
            goodput_bps: f.goodput().as_bps() * scale,
            sent_packets: f.measured.sent.packets.get(),
            received_packets: f.measured.received.packets.get(),
            drops_packets: Drops::by(|r| f.measured.dropped(r).packets.get()),
            loss_ratio: share(f.measured.dropped_in_all().packets.as_f64(), sent),
            marked_packets: f.measured.marked.packets.get(),
            dummies_packets: f.measured.dummies_sent.packets.get(),
            overhead: share(dummies, sent + dummies),
            feedback_bps: share(f.measured.feedback_sent.bytes.as_f64() * 8.0, window).unwrap_or(0.0) * scale,
            control_drops_packets: f.measured.feedback_dropped.packets.get(),
            acknowledged_packets: f.measured.acknowledged,
            owd_ms: Delays::of(&f.owd),
            e2e_ms: Delays::of(&f.e2ed),
            lost_in_send_buffer: lost_in_send_buffer([f].into_iter()),
            late: late([f].into_iter().filter(|_| spec.is_some_and(|s| s.tolerable_delay.is_some()))),
            outage: outage([f].into_iter().filter(|_| spec.is_some_and(|s| s.tolerable_jitter.is_some()))),
            quick_start: f.media.as_ref().and_then(|m| m.quick_start).map(QuickStartSummary::new),
            srtt_ms: f.srtt.map(ms),
            stopped: f.stopped.map(|s| s.to_string()),
            timeouts: f.tcp.map(|t| t.counters.timeouts),
            tcp: f.tcp.map(|t| TcpSummary {
                loss_indications: t.measured.counters.loss_indications(),
                fast_retransmits: t.measured.counters.fast_retransmits,
                timeouts: t.measured.counters.timeouts,
                cuts: t.measured.counters.reductions(),
                mean_srtt_ms: t.measured.mean_srtt().map(ms),
                mean_rto_ms: t.measured.mean_rto().map(ms),
                mean_cwnd_packets: t.measured.mean_cwnd(),
            }),
            adus: AduSummary::new(f, from),
        }
    }
}

impl GroupSummary {
    pub(super) fn new(name: &str, report: &SimReport, known: &BTreeMap<String, FlowFacts<'_>>) -> GroupSummary {
        let all = || report.flows.iter().filter(|f| f.group == name);
        // A flow that came and went before the measured window says nothing about it.
        let own = || all().filter(|f| known.get(&f.name).is_none_or(|k| k.goes_on != Some(Duration::ZERO)));
        let scale = |f: &FlowReport| known.get(&f.name).map_or(1.0, |k| k.scale(f));
        let delays = report.groups.iter().find(|g| g.name == name);
        let particular = |f: &&FlowReport| known.get(&f.name).is_some_and(|k| k.spec.tolerable_delay.is_some());
        let jitter = |f: &&FlowReport| known.get(&f.name).is_some_and(|k| k.spec.tolerable_jitter.is_some());
        let n = own().count().max(1) as f64;
        let throughputs: Vec<f64> = own().map(|f| f.throughput().as_bps() * scale(f)).collect();
        let total = |count: fn(&FlowReport) -> f64| -> f64 { own().map(count).sum() };
        let sent = total(|f| f.measured.sent.packets.as_f64());
        let dummies = total(|f| f.measured.dummies_sent.packets.as_f64());
        GroupSummary {
            name: name.to_owned(),
            flows: throughputs.len(),
            throughput_bps: throughputs.iter().sum::<f64>() / n,
            throughput_pps: own().map(|f| f.throughput_pps() * scale(f)).sum::<f64>() / n,
            goodput_bps: own().map(|f| f.goodput().as_bps() * scale(f)).sum::<f64>() / n,
            aggregate_throughput_bps: total(|f| f.throughput().as_bps()),
            jain_index: jain_index(&throughputs),
            loss_ratio: share(total(|f| f.measured.dropped_in_all().packets.as_f64()), sent),
            overhead: share(dummies, sent + dummies),
            owd_ms: delays.and_then(|g| Delays::of(&g.owd)),
            e2e_ms: delays.and_then(|g| Delays::of(&g.e2ed)),
            lost_in_send_buffer: lost_in_send_buffer(own()),
            late: late(own().filter(particular)),
            outage: outage(own().filter(jitter)),
        }
    }
}
