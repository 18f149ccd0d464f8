//! What one run found, in the words and units of `run --json`. Never a NaN; what could not be
//! measured is `null`.

use crate::scenario::Scenario;
use crate::stats::jain_index;
use fairpace_path::DropReason;
use fairpace_sim::{DelayHistogram, FlowReport, LinkReport, SimReport};
use fairpace_units::{Class, Duration};
use serde::Serialize;
use std::collections::BTreeMap;

/// One run: one scenario, one seed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunSummary {
    /// The scenario's name.
    pub scenario: String,
    /// `sim`.
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
}

/// One flow, over the measured window.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowSummary {
    /// Its name.
    pub name: String,
    /// Its group.
    pub group: String,
    /// Its controller.
    pub controller: String,
    /// Data received, headers included.
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
    /// One-way delay of received data; null if nothing arrived.
    pub owd_ms: Option<Delays>,
    /// Last smoothed RTT.
    pub srtt_ms: Option<f64>,
    /// Why the circuit breaker stopped it; null if it did not.
    pub stopped: Option<String>,
    /// TCP: retransmission timeouts in the whole run; null for others.
    pub timeouts: Option<u64>,
    /// TCP: what the throughput equations are fed with, over the measured window; null for others.
    pub tcp: Option<TcpSummary>,
}

/// What a TCP measured of its path.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
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
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GroupSummary {
    /// Its name.
    pub name: String,
    /// How many flows.
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
}

/// One link, over the measured window.
#[derive(Clone, Debug, PartialEq, Serialize)]
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
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

/// A distribution of delays in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Delays {
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Greatest.
    pub max: f64,
}

pub(crate) fn ms(d: Duration) -> f64 {
    d.as_secs_f64() * 1e3
}

/// `part / whole`, null if there is no whole.
fn share(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

impl Delays {
    fn of(h: &DelayHistogram) -> Option<Delays> {
        (h.count() > 0).then(|| Delays {
            mean: ms(h.mean()),
            p50: ms(h.quantile(0.5)),
            p95: ms(h.quantile(0.95)),
            p99: ms(h.quantile(0.99)),
            max: ms(h.max()),
        })
    }

    /// Several flows' delays as one distribution.
    fn together<'a>(parts: impl Iterator<Item = &'a DelayHistogram> + Clone) -> Option<Delays> {
        let count: u64 = parts.clone().map(DelayHistogram::count).sum();
        let mut used = parts.clone().filter(|h| h.count() > 0);
        let mut all = used.next()?.histogram()?.clone();
        for h in used.filter_map(DelayHistogram::histogram) {
            // Same digits and auto-resizing: cannot fail.
            let _ = all.add(h);
        }
        let sum: f64 = parts.clone().map(|h| ms(h.mean()) * h.count() as f64).sum();
        let max = parts.map(|h| ms(h.max())).fold(0.0, f64::max);
        let quantile = |q| (all.value_at_quantile(q) as f64 / 1e3).min(max);
        Some(Delays { mean: sum / count as f64, p50: quantile(0.5), p95: quantile(0.95), p99: quantile(0.99), max })
    }
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
        let mut controllers = BTreeMap::new();
        for flow in &scenario.flows {
            for instance in crate::config::instances(scenario, flow, seed) {
                controllers.insert(instance.name, flow.controller.as_str());
            }
        }
        let mut groups: Vec<&str> = Vec::new();
        for flow in &scenario.flows {
            if !groups.contains(&flow.group.as_str()) {
                groups.push(&flow.group);
            }
        }
        RunSummary {
            scenario: scenario.name.clone(),
            world: "sim".to_owned(),
            seed,
            duration_s: ran.as_secs_f64(),
            warmup_s: scenario.warmup.get().as_secs_f64(),
            interrupted,
            flows: report
                .flows
                .iter()
                .map(|f| FlowSummary::new(f, controllers.get(&f.name).copied().unwrap_or(&f.protocol)))
                .collect(),
            groups: groups.iter().map(|g| GroupSummary::new(g, &report.flows)).collect(),
            links: report.links.iter().map(LinkSummary::new).collect(),
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

impl FlowSummary {
    fn new(f: &FlowReport, controller: &str) -> FlowSummary {
        let sent = f.measured.sent.packets.as_f64();
        let dummies = f.measured.dummies_sent.packets.as_f64();
        let window = f.window.as_secs_f64();
        FlowSummary {
            name: f.name.clone(),
            group: f.group.clone(),
            controller: controller.to_owned(),
            throughput_bps: f.throughput().as_bps(),
            throughput_pps: f.throughput_pps(),
            goodput_bps: f.goodput().as_bps(),
            sent_packets: f.measured.sent.packets.get(),
            received_packets: f.measured.received.packets.get(),
            drops_packets: Drops::by(|r| f.measured.dropped(r).packets.get()),
            loss_ratio: share(f.measured.dropped_in_all().packets.as_f64(), sent),
            marked_packets: f.measured.marked.packets.get(),
            dummies_packets: f.measured.dummies_sent.packets.get(),
            overhead: share(dummies, sent + dummies),
            feedback_bps: if window > 0.0 { f.measured.feedback_sent.bytes.as_f64() * 8.0 / window } else { 0.0 },
            acknowledged_packets: f.measured.acknowledged,
            owd_ms: Delays::of(&f.owd),
            srtt_ms: f.srtt.map(ms),
            stopped: f.stopped.map(|s| s.to_string()),
            timeouts: f.tcp.map(|t| t.counters.timeouts),
            tcp: f.tcp.map(|t| TcpSummary {
                loss_indications: t.measured.counters.loss_indications(),
                mean_srtt_ms: t.measured.mean_srtt().map(ms),
                mean_rto_ms: t.measured.mean_rto().map(ms),
                mean_cwnd_packets: t.measured.mean_cwnd(),
            }),
        }
    }
}

impl GroupSummary {
    fn new(name: &str, flows: &[FlowReport]) -> GroupSummary {
        let own = || flows.iter().filter(|f| f.group == name);
        let n = own().count().max(1) as f64;
        let throughputs: Vec<f64> = own().map(|f| f.throughput().as_bps()).collect();
        let total = |count: fn(&FlowReport) -> f64| -> f64 { own().map(count).sum() };
        let sent = total(|f| f.measured.sent.packets.as_f64());
        let dummies = total(|f| f.measured.dummies_sent.packets.as_f64());
        GroupSummary {
            name: name.to_owned(),
            flows: throughputs.len(),
            throughput_bps: throughputs.iter().sum::<f64>() / n,
            throughput_pps: total(FlowReport::throughput_pps) / n,
            goodput_bps: total(|f| f.goodput().as_bps()) / n,
            aggregate_throughput_bps: throughputs.iter().sum(),
            jain_index: jain_index(&throughputs),
            loss_ratio: share(total(|f| f.measured.dropped_in_all().packets.as_f64()), sent),
            overhead: share(dummies, sent + dummies),
            owd_ms: Delays::together(own().map(|f| &f.owd)),
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
