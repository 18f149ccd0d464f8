//! The results of a run: per flow, per link, over time, and what it cost.

use fairpace_control::{FlowCounters, FlowEvent, QsCounters, StopReason};
use fairpace_path::quick_start::QsCounters as RouterCounters;
use fairpace_path::{Count, DropReason, LinkCounters};
use fairpace_units::{Bytes, Duration, Instant, Rate, Via};

use crate::counts::{per_second, ratio, zip};
use crate::delay_histogram::DelayHistogram;
use crate::packet::FlowId;
use crate::radio::RadioReport;
use crate::satellite::SatelliteReport;
use crate::tcp::{TcpCounters, TcpTally};

/// Everything a run found.
#[derive(Clone, Debug, Default)]
pub struct SimReport {
    /// One per flow, in the order of the configuration; behind these the flows of [`SimConfig::coming`](crate::SimConfig::coming) that have begun and were not
    /// taken, in the order of their starts. In a run of [`MANY_FLOWS`](crate::MANY_FLOWS) and more, or with flows that come,
    /// their delays are coarse (those of [`SimReport::groups`] are not), an endpoint is let go when its flow is over
    /// (a stop has come, a transfer is done or a breaker has ended it, nothing is under way and nobody owes anything), and
    /// [`SimReport::series`] has no rows for flows that have not begun: so that a hundred thousand short flows take little
    /// memory.
    pub flows: Vec<FlowReport>,
    /// One per group, in the order in which their first flows come.
    pub groups: Vec<GroupReport>,
    /// The links of the hops, forward and back (`bottleneck`, `reverse`), and the uplink of each user, in the order of
    /// the hops; then the access links of each flow.
    pub links: Vec<LinkReport>,
    /// Rows at every sampling interval, flow by flow. The last row of a flow is that of the interval in which it was over.
    pub series: Vec<SeriesRow>,
    /// The same for the links of the hops: of those called `bottleneck` and `reverse`, 0 and 1.
    pub link_series: Vec<LinkRow>,
    /// The events of the controllers, in order of time per flow; empty unless tracing.
    pub events: Vec<(FlowId, FlowEvent)>,
    /// Every packet, as a pcapng file; `None` unless asked for.
    pub pcapng: Option<Vec<u8>>,
    /// The results of each satellite, in the order of the hops.
    pub satellites: Vec<SatelliteReport>,
    /// The results of each radio, in the order of the hops.
    pub radios: Vec<RadioReport>,
    /// The counts of the engine.
    pub engine: EngineStats,
}

impl SimReport {
    /// Times that a rule of our own decided, which no paper and no RFC has: caps, circuit breaker and the rule for a
    /// silence at a sender, limits on Quick-Start requests and the share of a source at a router or terminal. A stop by
    /// the breaker counts.
    pub fn by_own_rules(&self) -> u64 {
        let flow =
            |f: &FlowReport| u64::from(f.stopped.is_some()) + f.media.as_ref().map_or(0, |m| m.counters.by_own_rules());
        let terminals = self.satellites.iter().flat_map(|s| &s.terminals).filter_map(|t| t.quick_start);
        let routers = self.links.iter().filter_map(|l| l.quick_start.as_deref().copied()).chain(terminals);
        self.flows.iter().map(flow).sum::<u64>() + routers.map(|q| q.by_own_rules()).sum::<u64>()
    }
}

/// The delays of all flows of a group.
#[derive(Clone, Debug)]
pub struct GroupReport {
    /// Its name.
    pub name: String,
    /// How many flows it has; of those that come, how many have begun.
    pub flows: u32,
    /// One-way delay of data packets received in the measured window.
    pub owd: DelayHistogram,
    /// End-to-end delay of the same packets; media only.
    pub e2ed: DelayHistogram,
    /// Of these, the end-to-end delay of data produced within [`SimConfig::opening`](crate::SimConfig::opening) of
    /// its flow's start.
    pub opening: DelayHistogram,
}

/// The results of one flow.
#[derive(Clone, Debug)]
pub struct FlowReport {
    /// Its name.
    pub name: String,
    /// Its group.
    pub group: String,
    /// `tcp-newreno`, `rcs`, `constant`, …
    pub protocol: String,
    /// When it began.
    pub started: Instant,
    /// Length of the measured window: from the end of the warm-up to the end of the run.
    pub window: Duration,
    /// Counts in the measured window.
    pub measured: FlowCounts,
    /// Counts of the whole run.
    pub whole: FlowCounts,
    /// Counts from the beginning of the run to each checkpoint.
    pub checkpoints: Vec<(Instant, FlowCounts)>,
    /// One-way delay of data packets received in the measured window: from the sender to the receiver.
    pub owd: DelayHistogram,
    /// End-to-end delay of the same packets: from the source, so with the time in the send buffer
    /// [qsd §3.2]. Media only.
    pub e2ed: DelayHistogram,
    /// Last smoothed RTT.
    pub srtt: Option<Duration>,
    /// When the last byte of a transfer was acknowledged.
    pub finished: Option<Instant>,
    /// Why the circuit breaker or a check stopped it, if it did.
    pub stopped: Option<StopReason>,
    /// For TCP, and the TCP half of a media flow: what its sender counted and what its window, RTT and timeout were.
    pub tcp: Option<TcpReport>,
    /// For media: what its sender counted in the whole run.
    pub media: Option<MediaReport>,
}

impl FlowReport {
    /// Data received (no dummies, duplicates included) in the measured window, on the wire.
    pub fn throughput(&self) -> Rate {
        per_second(self.measured.received.bytes, self.window)
    }

    /// The same in packets per second.
    pub fn throughput_pps(&self) -> f64 {
        ratio(self.measured.received.packets.as_f64(), self.window)
    }

    /// Data received once and (TCP) in order, in the measured window, on the wire.
    pub fn goodput(&self) -> Rate {
        per_second(self.measured.unique.bytes, self.window)
    }

    /// The same in packets per second.
    pub fn goodput_pps(&self) -> f64 {
        ratio(self.measured.unique.packets.as_f64(), self.window)
    }

    /// Dummies / (data + dummies) sent in the measured window.
    pub fn overhead(&self) -> f64 {
        let dummies = self.measured.dummies_sent.packets.as_f64();
        let all = self.measured.sent.packets.as_f64() + dummies;
        if all == 0.0 { 0.0 } else { dummies / all }
    }

    /// Data dropped / data sent in the measured window.
    pub fn loss_ratio(&self) -> f64 {
        let sent = self.measured.sent.packets.as_f64();
        if sent == 0.0 { 0.0 } else { self.measured.dropped_in_all().packets.as_f64() / sent }
    }
}

/// Packets and bytes of one flow. Data and dummies are apart; bytes are on the wire.
///
/// Those that every packet changes come first: at the receiver, and at the sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct FlowCounts {
    /// Data that reached the receiver, duplicates included.
    pub received: Count,
    /// Data that reached the receiver for the first time; for TCP what arrived in order.
    pub unique: Count,
    /// Acknowledgements and reports sent by the receiver.
    pub feedback_sent: Count,
    /// Data sent, retransmissions included.
    pub sent: Count,
    /// Acknowledgements and reports that reached the sender.
    pub feedback_received: Count,
    /// Data packets acknowledged to the sender.
    pub acknowledged: u64,
    /// Of the data sent, what was sent again (TCP).
    pub retransmitted: Count,
    /// Packets that reached the receiver with a congestion mark (ECN: CE), dummies included.
    pub marked: Count,
    /// Data dropped on the way, by reason.
    pub drops: [Count; DropReason::COUNT],
    /// Dummies sent.
    pub dummies_sent: Count,
    /// Dummies that reached the receiver.
    pub dummies_received: Count,
    /// Dummies dropped on the way.
    pub dummies_dropped: Count,
    /// Acknowledgements and reports dropped on the way.
    pub feedback_dropped: Count,
    /// Media: data that the source produced. (Greedy sources produce when they may send, and are not
    /// counted here.)
    pub produced: Count,
    /// Media: data lost because the send buffer was full.
    pub overflowed: Count,
    /// Media: data received too late for the play-out, and discarded there: see
    /// [`DeJitter`](crate::DeJitter).
    pub late: Count,
    /// Data received with a one-way delay above [`FlowConfig::delay_bound`](crate::FlowConfig::delay_bound):
    /// divided by `received`, the delay outage [aimd §III-C].
    pub outage: Count,
    /// Sack vectors that reached the sender; each is an RTT, that of the packet `ack_a`.
    pub rtt_samples: u64,
    /// Of these RTTs, those above `delay_bound` and the least delay of feedback: divided by `rtt_samples`, the delay
    /// outage as [aimd §III-C] defines it, by the jitter of the RTT.
    pub rtt_outage: u64,
}

impl FlowCounts {
    /// Data dropped for that reason.
    pub const fn dropped(&self, reason: DropReason) -> Count {
        self.drops[reason as usize]
    }

    /// Data dropped for any reason.
    pub fn dropped_in_all(&self) -> Count {
        self.drops.iter().fold(Count::default(), |a, b| zip(a, *b, |x, y| x + y))
    }

    /// Packets of any kind that were sent and have neither arrived nor been dropped.
    pub fn under_way(&self) -> u64 {
        let sent = self.sent.packets + self.dummies_sent.packets + self.feedback_sent.packets;
        let arrived = self.received.packets + self.dummies_received.packets + self.feedback_received.packets;
        let dropped = self.dropped_in_all().packets + self.dummies_dropped.packets + self.feedback_dropped.packets;
        sent.get() - arrived.get() - dropped.get()
    }

    /// The counts after `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &FlowCounts) -> FlowCounts {
        let sub = |a: Count, b: Count| zip(a, b, |x, y| x - y);
        FlowCounts {
            sent: sub(self.sent, earlier.sent),
            retransmitted: sub(self.retransmitted, earlier.retransmitted),
            received: sub(self.received, earlier.received),
            unique: sub(self.unique, earlier.unique),
            marked: sub(self.marked, earlier.marked),
            drops: core::array::from_fn(|i| sub(self.drops[i], earlier.drops[i])),
            dummies_sent: sub(self.dummies_sent, earlier.dummies_sent),
            dummies_received: sub(self.dummies_received, earlier.dummies_received),
            dummies_dropped: sub(self.dummies_dropped, earlier.dummies_dropped),
            feedback_sent: sub(self.feedback_sent, earlier.feedback_sent),
            feedback_received: sub(self.feedback_received, earlier.feedback_received),
            feedback_dropped: sub(self.feedback_dropped, earlier.feedback_dropped),
            acknowledged: self.acknowledged - earlier.acknowledged,
            produced: sub(self.produced, earlier.produced),
            overflowed: sub(self.overflowed, earlier.overflowed),
            late: sub(self.late, earlier.late),
            outage: sub(self.outage, earlier.outage),
            rtt_samples: self.rtt_samples - earlier.rtt_samples,
            rtt_outage: self.rtt_outage - earlier.rtt_outage,
        }
    }
}

/// A TCP sender at the end of the run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TcpReport {
    /// Segments, retransmissions, timeouts of the whole run.
    pub counters: TcpCounters,
    /// Counts and averages over time in the measured window.
    pub measured: TcpTally,
    /// Window in segments.
    pub cwnd: f64,
    /// Slow-start threshold in segments.
    pub ssthresh: f64,
}

/// A media sender at the end of the run.
#[derive(Clone, Debug)]
pub struct MediaReport {
    /// The counts of the controller's flow, from feedback only.
    pub counters: FlowCounters,
    /// The rate it allows at the end.
    pub rate: Rate,
    /// Its state at the end.
    pub state: &'static str,
    /// Frames the source produced.
    pub frames: u64,
    /// Frames dropped whole because the send buffer was full.
    pub frames_dropped: u64,
    /// Data waiting at the sender at the end; it is neither sent nor counted as overflowed.
    pub send_buffer: Bytes,
    /// Feedback that arrived after its contents were forgotten: more than 65,536 acknowledgements
    /// later, counted as not received.
    pub feedback_expired: u64,
    /// Feedback that claimed what had not arrived, and was dropped
    /// ([`MediaConfig::check_nonces`](crate::MediaConfig::check_nonces)).
    pub feedback_unproven: u64,
    /// The fate of the flow's Quick-Start requests; `None` if the flow sends none.
    pub quick_start: Option<QsCounters>,
    /// One per frame, if recording.
    pub frame_records: Vec<FrameRecord>,
    /// One per data packet sent, if recording: see
    /// [`MediaConfig::record_packets`](crate::MediaConfig::record_packets).
    pub packet_records: Vec<PacketRecord>,
}

/// When one data packet was where.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketRecord {
    /// Its number.
    pub seq: u64,
    /// When the source produced it.
    pub born: Instant,
    /// When it left the send buffer.
    pub sent: Instant,
    /// When it reached the receiver; `None` if it has not.
    pub received: Option<Instant>,
}

impl PacketRecord {
    /// End-to-end delay [qsd §3.2]: with the time in the send buffer.
    pub fn e2ed(&self) -> Option<Duration> {
        self.received.map(|at| at.since(self.born))
    }

    /// One-way delay: without it.
    pub fn owd(&self) -> Option<Duration> {
        self.received.map(|at| at.since(self.sent))
    }
}

/// The fate of one video frame, or application data unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameRecord {
    /// When it was captured (and ready: encoding takes no time).
    pub captured: Instant,
    /// Its payload.
    pub size: Bytes,
    /// Decodable on its own.
    pub key: bool,
    /// Packets it was cut into; zero if it was dropped at the sender.
    pub packets: u32,
    /// Packets that have arrived.
    pub received: u32,
    /// When its last packet left; `None` if it has not.
    pub sent: Option<Instant>,
    /// When it was complete at the receiver.
    pub complete: Option<Instant>,
    /// Of its packets that have left, those that went over the flow's TCP: all or none.
    pub over_tcp: u32,
}

impl FrameRecord {
    /// One that has just been produced.
    pub(crate) const fn new(captured: Instant, size: Bytes, key: bool, packets: u32) -> Self {
        FrameRecord { captured, size, key, packets, received: 0, sent: None, complete: None, over_tcp: 0 }
    }

    /// The way that it took.
    pub const fn via(&self) -> Via {
        if self.over_tcp > 0 { Via::Tcp } else { Via::Udp }
    }
}

/// One link.
#[derive(Clone, Debug)]
pub struct LinkReport {
    /// `bottleneck`, `reverse`, `radio.user0.uplink`, `flow.<name>.forward_in`, …
    pub name: String,
    /// Counts of the whole run.
    pub whole: LinkCounters,
    /// Counts of the measured window, if that is not the whole run: of a hundred thousand flows' links they are much memory.
    pub(crate) window: Option<Box<LinkCounters>>,
    /// Bits transmitted / bits it could have carried, in the measured window; `None` if unlimited.
    pub utilization: Option<f64>,
    /// Packets still waiting or in flight at the end.
    pub inside: u64,
    /// The decisions of the link's Quick-Start router; `None` if there is none.
    pub quick_start: Option<Box<RouterCounters>>,
}

impl LinkReport {
    /// Counts in the measured window; maxima are the window's too.
    pub fn measured(&self) -> &LinkCounters {
        self.window.as_deref().unwrap_or(&self.whole)
    }
}

/// One flow at one sampling instant. Rates are means over the interval that ends there.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SeriesRow {
    /// The instant of the sample.
    pub at: Instant,
    /// The flow.
    pub flow: FlowId,
    /// Data sent.
    pub send_rate: Rate,
    /// Data received.
    pub throughput: Rate,
    /// Dummies sent.
    pub dummy_rate: Rate,
    /// The rate that the controller allows now; zero for others.
    pub target_rate: Rate,
    /// The congestion window of TCP, of a media flow's TCP half, or of AIMD, in packets; zero for others.
    pub cwnd: f64,
    /// AIMD's other bound in packets: W = min(`cwnd`, `rwnd`) [aimd §II]; `None` for others.
    pub rwnd: Option<u32>,
    /// Smoothed RTT.
    pub srtt: Option<Duration>,
    /// The retransmission timeout in force; `None` before the first RTT sample.
    pub rto: Option<Duration>,
    /// The loss (event) rate that the controller goes by, in `[0, 1]`; `None` if it has no such number.
    pub loss_event_rate: Option<f64>,
    /// Data waiting at the sender.
    pub send_buffer: Bytes,
    /// Mean one-way delay of the data received in the interval; `None` if there was none.
    pub owd: Option<Duration>,
    /// Mean end-to-end delay of the same data; media only.
    pub e2ed: Option<Duration>,
    /// Data packets dropped in the interval.
    pub drops: u64,
    /// The state of the controller.
    pub state: &'static str,
}

/// One link at one sampling instant. Rates are means over the interval that ends there.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LinkRow {
    /// The instant of the sample.
    pub at: Instant,
    /// The link's number: 0 is `bottleneck`, 1 is `reverse`.
    pub link: u32,
    /// Packets waiting or in transmission now.
    pub queue_packets: u64,
    /// The bytes of these.
    pub queue_bytes: Bytes,
    /// Transmitted.
    pub throughput: Rate,
    /// The present capacity; [`Rate::MAX`] if unlimited.
    pub capacity: Rate,
    /// Packets dropped in the interval, for any reason.
    pub drops: u64,
}

/// The cost of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EngineStats {
    /// Events taken from the pending-event set.
    pub events: u64,
    /// Of these: exits of packets from links.
    pub link_events: u64,
    /// Of these: timers of endpoints, starts, samples.
    pub timer_events: u64,
    /// Of these: found that nothing was due (re-armed timers, overtaken entries).
    pub idle_events: u64,
    /// Packets transmitted on links, once per link.
    pub packet_hops: u64,
    /// The most events pending at once.
    pub max_pending: u64,
}

impl EngineStats {
    /// Events per packet-hop; zero if nothing moved.
    pub fn events_per_packet_hop(&self) -> f64 {
        if self.packet_hops == 0 { 0.0 } else { self.events as f64 / self.packet_hops as f64 }
    }
}
