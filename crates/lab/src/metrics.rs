//! The results of one run, in the words and units of `run --json`. Never a NaN; what could not be measured is `null`.

use crate::adus::AduSummary;
use crate::delays::{Delays, ms};
use crate::stats::jain_index;
use fairpace_path::{DamaSpec, DropReason};
use fairpace_scenario::{FlowSpec, Scenario};
use fairpace_sim::{FlowReport, LinkReport, RadioReport, SatelliteReport, SimReport, TerminalReport, UserReport};
use fairpace_units::{Bytes, Class, Duration, Instant};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One run: one scenario, one seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunSummary {
    /// The scenario's name.
    pub scenario: String,
    /// `sim` or `emu`.
    pub world: String,
    /// The seed.
    pub seed: u64,
    /// How long the run lasted.
    pub duration_s: f64,
    /// How much of its beginning is left out below.
    pub warmup_s: f64,
    /// True if it was stopped before its end.
    pub interrupted: bool,
    /// One per flow.
    pub flows: Vec<FlowSummary>,
    /// One per group of flows, in the scenario's order.
    pub groups: Vec<GroupSummary>,
    /// The bottleneck, the way back, and access links.
    pub links: Vec<LinkSummary>,
    /// The satellite and its terminals, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub satellite: Option<SatelliteSummary>,
    /// The wireless link and its users, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wireless: Option<WirelessSummary>,
    /// The warnings about the scenario.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The machine and its verdict, of a run in real time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub emulated: Option<Emulated>,
    /// Flows that a results folder has in `flows.csv` only.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub flows_left_out: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // as serde hands it over
fn is_zero(n: &u64) -> bool {
    *n == 0
}

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

/// A satellite, over the measured window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SatelliteSummary {
    /// Carriers that the terminals share.
    pub carriers: u32,
    /// Bits transmitted / bits that all carriers could have carried.
    pub utilization: f64,
    /// T_f.
    pub multi_frame_ms: f64,
    /// T_b = T_r.
    pub super_frame_ms: f64,
    /// T_a.
    pub allocation_delay_ms: f64,
    /// RTT_m.
    pub mean_rtt_ms: f64,
    /// The terminals that flows are attached to.
    pub terminals: Vec<TerminalSummary>,
}

/// A terminal, over the measured window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TerminalSummary {
    /// Its number, from 0.
    pub terminal: u32,
    /// The carrier it is on.
    pub carrier: u32,
    /// The rate that left in the terminal's slots.
    pub throughput_bps: f64,
    /// Packets that came to its uplink queue.
    pub offered_packets: u64,
    /// Of these, refused because the queue was full.
    pub dropped_packets: u64,
    /// Packets that left in its slots.
    pub transmitted_packets: u64,
    /// Slots in which it sent something.
    pub slots_used: u64,
    /// Time in the queue, to the end of the packet's last slot; null if nothing left.
    pub wait_mean_ms: Option<f64>,
    /// The longest its queue ever was.
    pub queue_max_packets: u64,
    /// The decisions of the terminal's Quick-Start agent; null if the agent was never asked.
    pub quick_start: Option<AgentSummary>,
}

/// A wireless link, over the measured window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WirelessSummary {
    /// How long a slot lasts (τ).
    pub slot_ms: f64,
    /// Bytes that a slot carries.
    pub slot_bytes: u64,
    /// One per user.
    pub users: Vec<UserSummary>,
}

/// A user of a wireless link, over the measured window. Each slot of the link is one of used, silent, waiting and idle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UserSummary {
    /// Its number, from 0.
    pub user: u32,
    /// The rate that reached the user.
    pub throughput_bps: f64,
    /// The same in packets per slot of the link: normalized throughput.
    pub packets_per_slot: f64,
    /// Packets dropped at the base station because the queue was full.
    pub dropped_packets: u64,
    /// Packets lost on the link: not sent again, or given up.
    pub given_up_packets: u64,
    /// Slots in which something was sent to it.
    pub slots_used: u64,
    /// Of these, those that failed.
    pub slots_failed: u64,
    /// Slots of silence after a failure, with something to send.
    pub slots_silent: u64,
    /// Slots of others, with something to send.
    pub slots_waiting: u64,
    /// Slots with nothing to send.
    pub slots_idle: u64,
    /// Failed / used; null if nothing was sent.
    pub error_ratio: Option<f64>,
    /// Queue averaged over time, the packet under way included.
    pub queue_mean_packets: f64,
    /// The longest the queue was.
    pub queue_max_packets: u64,
}

/// The decisions of a terminal's Quick-Start agent, in the whole run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentSummary {
    /// Requests approved as they were.
    pub approved: u64,
    /// Requests approved at a lower rate.
    pub reduced: u64,
    /// Requests refused, for whatever reason.
    pub refused: u64,
}

/// The path as a TCP measured it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TcpSummary {
    /// Fast retransmits and sequences of timeouts. Per packet sent it is the equations' p.
    pub loss_indications: u64,
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

/// One link, over the measured window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkSummary {
    /// `bottleneck`, `reverse`, or an access link's name.
    pub name: String,
    /// Bits transmitted / bits it could have carried; null if unlimited.
    pub utilization: Option<f64>,
    /// Packets that left the transmitter.
    pub transmitted_packets: u64,
    /// The same in bytes.
    pub transmitted_bytes: u64,
    /// Normal packets dropped, by reason.
    pub drops_packets: Drops,
    /// Low-priority packets dropped, by reason.
    pub low_drops_packets: Drops,
    /// Packets that the queue marked "congestion experienced".
    pub marked_packets: u64,
    /// Queue averaged over time, the packet in transmission included.
    pub queue_mean_packets: f64,
    /// The longest the queue was.
    pub queue_max_packets: u64,
}

/// Drops by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drops {
    /// No room in the queue.
    pub queue_full: u64,
    /// Dropped by the queue's management, though there was room.
    pub early: u64,
    /// Pushed out of the queue by an arrival that needed the place.
    pub pushed_out: u64,
    /// Damaged on the link.
    pub link_error: u64,
    /// The signal was gone.
    pub outage: u64,
}

/// The machine of an emulated run, and whether its numbers are the path's or the machine's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Emulated {
    /// Why the numbers are not to be trusted; empty if they are.
    pub invalid: Vec<String>,
    /// The differences between this run and the scenario, or the simulator.
    pub notes: Vec<String>,
    /// Each TCP flow's congestion control.
    pub algorithms: BTreeMap<String, String>,
    /// Sysctls set for this run, inside its namespaces.
    pub sysctls: BTreeMap<String, String>,
    /// How late packets left the emulator: median.
    pub lateness_p50_ms: f64,
    /// The same, 99th percentile.
    pub lateness_p99_ms: f64,
    /// The same, greatest.
    pub lateness_max_ms: f64,
    /// How long packets may have waited for the emulator to read them, at most: median.
    pub unread_p50_ms: f64,
    /// The same, 99th percentile.
    pub unread_p99_ms: f64,
    /// The same, greatest.
    pub unread_max_ms: f64,
    /// Share of a processor that the emulator took.
    pub cpu: f64,
    /// Whether its loop had real-time priority.
    pub real_time_priority: bool,
    /// Packets between addresses that are no flow's, dropped.
    pub unknown_packets: u64,
}

/// `part / whole`, null if there is no whole.
fn share(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

impl Drops {
    fn by(count: impl Fn(DropReason) -> u64) -> Drops {
        Drops {
            queue_full: count(DropReason::QueueFull),
            early: count(DropReason::Early),
            pushed_out: count(DropReason::PushedOut),
            link_error: count(DropReason::LinkError),
            outage: count(DropReason::Outage),
        }
    }

    /// For any reason.
    pub fn in_all(&self) -> u64 {
        self.queue_full + self.early + self.pushed_out + self.link_error + self.outage
    }
}

impl RunSummary {
    /// From the simulator's report.
    pub fn new(scenario: &Scenario, seed: u64, report: &SimReport, ran: Duration, interrupted: bool) -> RunSummary {
        let (from, to) = (Instant::ZERO + scenario.warmup.get(), Instant::ZERO + ran);
        let mut known = BTreeMap::new();
        let mut groups: Vec<&str> = Vec::new();
        for flow in &scenario.flows {
            for instance in fairpace_scenario::instances(scenario, flow, seed) {
                let goes_on = flow.arrivals.is_some().then(|| instance.within(from, to));
                known.insert(instance.name, Known { spec: flow, goes_on });
            }
            if !groups.contains(&flow.group.as_str()) {
                groups.push(&flow.group);
            }
        }
        let window = to.since(from);
        // The shared links have nothing to do where flows go over a satellite.
        let idle = if scenario.satellite.is_some() && scenario.hop.is_empty() { 2 } else { 0 };
        RunSummary {
            scenario: scenario.name.clone(),
            world: "sim".to_owned(),
            seed,
            duration_s: ran.as_secs_f64(),
            warmup_s: scenario.warmup.get().as_secs_f64(),
            interrupted,
            flows: report.flows.iter().map(|f| FlowSummary::new(f, known.get(&f.name), from)).collect(),
            groups: groups.iter().map(|g| GroupSummary::new(g, report, &known)).collect(),
            links: report
                .links
                .iter()
                .skip(idle)
                .filter(|l| !is_wire(scenario, report, l))
                .map(LinkSummary::new)
                .collect(),
            satellite: scenario
                .satellite
                .as_ref()
                .zip(report.satellites.first())
                .map(|(spec, found)| SatelliteSummary::new(&spec.dama(scenario.packet_size.get()), found, window)),
            wireless: scenario.wireless.as_ref().zip(report.radios.first()).map(|(spec, found)| {
                let size = scenario.packet_size.get();
                WirelessSummary::new(spec.slot(size), spec.slot_size(size), found, window)
            }),
            warnings: scenario.warnings().iter().map(|w| w.text.clone()).collect(),
            emulated: None,
            flows_left_out: 0,
        }
    }

    /// A group by its name.
    pub fn group(&self, name: &str) -> Option<&GroupSummary> {
        self.groups.iter().find(|g| g.name == name)
    }

    /// A link by its name.
    pub fn link(&self, name: &str) -> Option<&LinkSummary> {
        self.links.iter().find(|l| l.name == name)
    }
}

/// An uplink of a user that the scenario gives none.
fn is_wire(scenario: &Scenario, report: &SimReport, link: &LinkReport) -> bool {
    let is_uplink = |name: &str| link.name.strip_prefix(name).is_some_and(|rest| rest.starts_with(".user"));
    scenario.wireless.as_ref().is_some_and(|w| w.uplink.is_none()) && report.radios.iter().any(|r| is_uplink(&r.name))
}

/// The facts that the scenario gives about a flow.
struct Known<'a> {
    spec: &'a FlowSpec,
    /// How much of the measured window a flow that comes and goes is there; `None`: it is one of the scenario's own,
    /// and its rates are over the window.
    goes_on: Option<Duration>,
}

impl Known<'_> {
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

impl WirelessSummary {
    fn new(slot: Duration, slot_size: Bytes, found: &RadioReport, window: Duration) -> WirelessSummary {
        WirelessSummary {
            slot_ms: ms(slot),
            slot_bytes: slot_size.get(),
            users: found.users.iter().map(|u| UserSummary::new(u, window, slot)).collect(),
        }
    }
}

impl UserSummary {
    fn new(u: &UserReport, window: Duration, slot: Duration) -> UserSummary {
        let m = &u.measured;
        let all = m.link.total();
        let seconds = window.as_secs_f64();
        let delivered = all.delivered;
        UserSummary {
            user: u.user,
            throughput_bps: share(delivered.bytes.as_f64() * 8.0, seconds).unwrap_or(0.0),
            packets_per_slot: share(delivered.packets.as_f64() * slot.as_secs_f64(), seconds).unwrap_or(0.0),
            dropped_packets: all.dropped(DropReason::QueueFull).packets.get(),
            given_up_packets: all.dropped(DropReason::LinkError).packets.get(),
            slots_used: m.used,
            slots_failed: m.failed,
            slots_silent: m.silent,
            slots_waiting: m.waiting,
            slots_idle: m.idle,
            error_ratio: share(m.failed as f64, m.used as f64),
            queue_mean_packets: m.link.mean_queue(),
            queue_max_packets: m.link.max_queue.get(),
        }
    }
}

impl QuickStartSummary {
    fn new(q: fairpace_control::QsCounters) -> QuickStartSummary {
        QuickStartSummary {
            asked: q.asked,
            approved: q.approved,
            denied: q.denied,
            unanswered: q.unanswered,
            invalid: q.bad_ttl + q.bad_rate + q.bad_nonce + q.stray,
        }
    }
}

impl SatelliteSummary {
    fn new(spec: &DamaSpec, found: &SatelliteReport, window: Duration) -> SatelliteSummary {
        SatelliteSummary {
            carriers: found.carriers,
            utilization: found.utilization,
            multi_frame_ms: ms(spec.multi_frame()),
            super_frame_ms: ms(spec.super_frame()),
            allocation_delay_ms: ms(spec.allocation_delay()),
            mean_rtt_ms: ms(spec.mean_rtt()),
            terminals: found.terminals.iter().map(|t| TerminalSummary::new(t, window)).collect(),
        }
    }
}

impl TerminalSummary {
    fn new(t: &TerminalReport, window: Duration) -> TerminalSummary {
        let m = &t.measured;
        TerminalSummary {
            terminal: t.terminal,
            carrier: t.carrier,
            throughput_bps: share(m.transmitted.bytes.as_f64() * 8.0, window.as_secs_f64()).unwrap_or(0.0),
            offered_packets: m.offered.packets.get(),
            dropped_packets: m.dropped.packets.get(),
            transmitted_packets: m.transmitted.packets.get(),
            slots_used: m.slots_used,
            wait_mean_ms: (m.transmitted.packets.get() > 0).then(|| ms(m.mean_wait())),
            queue_max_packets: m.max_queue.get(),
            quick_start: t.quick_start.map(|q| AgentSummary {
                approved: q.approved,
                reduced: q.reduced,
                refused: q.refused.iter().sum(),
            }),
        }
    }
}

impl FlowSummary {
    fn new(f: &FlowReport, known: Option<&Known<'_>>, from: Instant) -> FlowSummary {
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
                mean_srtt_ms: t.measured.mean_srtt().map(ms),
                mean_rto_ms: t.measured.mean_rto().map(ms),
                mean_cwnd_packets: t.measured.mean_cwnd(),
            }),
            adus: AduSummary::new(f, from),
        }
    }
}

impl GroupSummary {
    fn new(name: &str, report: &SimReport, known: &BTreeMap<String, Known<'_>>) -> GroupSummary {
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

impl LinkSummary {
    fn new(l: &LinkReport) -> LinkSummary {
        let by = |class| Drops::by(|reason| l.measured.class(class).dropped(reason).packets.get());
        LinkSummary {
            name: l.name.clone(),
            utilization: l.utilization,
            transmitted_packets: l.measured.transmitted.packets.get(),
            transmitted_bytes: l.measured.transmitted.bytes.get(),
            drops_packets: by(Class::Normal),
            low_drops_packets: by(Class::Low),
            marked_packets: l.measured.marked.packets.get(),
            queue_mean_packets: l.measured.mean_queue(),
            queue_max_packets: l.measured.max_queue.get(),
        }
    }
}
