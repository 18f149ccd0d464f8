//! What a run found: per flow, per link, over time, and what it cost.

use fairpace_control::{FlowCounters, FlowEvent, QsCounters, StopReason};
use fairpace_path::quick_start::QsCounters as RouterCounters;
use fairpace_path::{Count, DropReason, LinkCounters};
use fairpace_units::{Bytes, Duration, Instant, Rate, Via};
use hdrhistogram::Histogram;

use crate::packet::FlowId;
use crate::radio::RadioReport;
use crate::satellite::SatelliteReport;
use crate::tcp::{TcpCounters, TcpTally};

/// Everything a run found.
#[derive(Clone, Debug, Default)]
pub struct SimReport {
    /// One per flow, in the order of the configuration. In a run of [`MANY_FLOWS`](crate::MANY_FLOWS) and more
    /// their delays are coarse (those of [`SimReport::groups`] are not), a media flow is over when it has ended
    /// and nothing of it is under way, and [`SimReport::series`] has rows only for flows that have begun and are
    /// not over: so that tens of thousands of short flows take little memory.
    pub flows: Vec<FlowReport>,
    /// One per group, in the order in which their first flows come.
    pub groups: Vec<GroupReport>,
    /// The links of the hops, forward and back (`bottleneck`, `reverse`), and the uplink of each user, in the order of
    /// the hops; then the access links of each flow.
    pub links: Vec<LinkReport>,
    /// Rows at every sampling interval, flow by flow; of many flows, those that go on.
    pub series: Vec<SeriesRow>,
    /// The same for the links of the hops: of those called `bottleneck` and `reverse`, 0 and 1.
    pub link_series: Vec<LinkRow>,
    /// What the controllers did, in order of time per flow; empty unless tracing.
    pub events: Vec<(FlowId, FlowEvent)>,
    /// Every packet, as a pcapng file; `None` unless asked for.
    pub pcapng: Option<Vec<u8>>,
    /// What happened on each satellite, in the order of the hops.
    pub satellites: Vec<SatelliteReport>,
    /// What happened on each radio, in the order of the hops.
    pub radios: Vec<RadioReport>,
    /// What the engine did.
    pub engine: EngineStats,
}

/// The delays of all flows of a group.
#[derive(Clone, Debug)]
pub struct GroupReport {
    /// Its name.
    pub name: String,
    /// How many flows it has.
    pub flows: u32,
    /// One-way delay of data packets received in the measured window.
    pub owd: DelayHistogram,
    /// End-to-end delay of the same packets; media only.
    pub e2ed: DelayHistogram,
    /// Of these, the end-to-end delay of data produced within [`SimConfig::opening`](crate::SimConfig::opening) of
    /// its flow's start.
    pub opening: DelayHistogram,
}

/// What one flow did and got.
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
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FlowCounts {
    /// Data sent, retransmissions included.
    pub sent: Count,
    /// Of these, sent again (TCP).
    pub retransmitted: Count,
    /// Data that reached the receiver, duplicates included.
    pub received: Count,
    /// Data that reached the receiver for the first time; for TCP what arrived in order.
    pub unique: Count,
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
    /// Acknowledgements and reports sent by the receiver.
    pub feedback_sent: Count,
    /// Those that reached the sender.
    pub feedback_received: Count,
    /// Those dropped on the way.
    pub feedback_dropped: Count,
    /// Data packets acknowledged to the sender.
    pub acknowledged: u64,
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

    /// What was counted after `earlier`.
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

fn zip(a: Count, b: Count, op: fn(u64, u64) -> u64) -> Count {
    Count {
        packets: fairpace_units::Packets::new(op(a.packets.get(), b.packets.get())),
        bytes: Bytes::new(op(a.bytes.get(), b.bytes.get())),
    }
}

#[inline]
pub(crate) fn count(counter: &mut Count, packets: u64, size: u32) {
    counter.packets += fairpace_units::Packets::new(packets);
    counter.bytes += Bytes::new(packets * u64::from(size));
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
    /// What its controller's flow counted, from feedback only.
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
    /// What became of its Quick-Start requests; `None` if it sends none.
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

/// What became of one video frame, or application data unit.
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
    /// Counts in the measured window; maxima are the window's too.
    pub measured: LinkCounters,
    /// Bits transmitted / bits it could have carried, in the measured window; `None` if unlimited.
    pub utilization: Option<f64>,
    /// Packets still waiting or in flight at the end.
    pub inside: u64,
    /// What its Quick-Start router decided; `None` if it has none.
    pub quick_start: Option<RouterCounters>,
}

/// One flow at one sampling instant. Rates are means over the interval that ends there.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SeriesRow {
    /// The instant of the sample.
    pub at: Instant,
    /// Which flow.
    pub flow: FlowId,
    /// Data sent.
    pub send_rate: Rate,
    /// Data received.
    pub throughput: Rate,
    /// Dummies sent.
    pub dummy_rate: Rate,
    /// What the controller allows now; zero for others.
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
    /// What it is doing.
    pub state: &'static str,
}

/// One link at one sampling instant. Rates are means over the interval that ends there.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LinkRow {
    /// The instant of the sample.
    pub at: Instant,
    /// Which link: 0 is `bottleneck`, 1 is `reverse`.
    pub link: u32,
    /// Packets waiting or in transmission now.
    pub queue_packets: u64,
    /// The bytes of these.
    pub queue_bytes: Bytes,
    /// Transmitted.
    pub throughput: Rate,
    /// What it carries now; [`Rate::MAX`] if unlimited.
    pub capacity: Rate,
    /// Packets dropped in the interval, for any reason.
    pub drops: u64,
}

/// What a run cost.
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

/// Delays; number, mean, least and greatest are exact. The distribution is in microseconds: to 3 significant
/// digits, or, for each flow of a run of many, to a sixteenth of an octave (4 %), which takes hundreds of bytes
/// instead of tens of thousands.
#[derive(Clone, Debug)]
pub struct DelayHistogram {
    counts: Counts,
    sum_ns: u128,
    count: u64,
    min: u64,
    max: u64,
}

/// Made with the first delay: an empty fine one takes 8 kB, a usual one 60.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)] // in a box it would cost a cache miss per packet
enum Counts {
    Fine(Option<Histogram<u32>>),
    /// Buckets that are not empty and how many delays are in them, in order.
    Coarse(Vec<(u16, u32)>),
}

/// Longer delays are counted as this: 1,000 s.
const MAX_US: u64 = 1_000_000_000;

/// log2 of the buckets per octave of a coarse histogram.
const COARSE_BITS: u32 = 4;

/// The coarse bucket of a delay: its octave, and which sixteenth of it.
fn coarse_bucket(us: u64) -> u16 {
    let octave = us.checked_ilog2().unwrap_or(0).saturating_sub(COARSE_BITS);
    (u64::from(octave) * (1 << COARSE_BITS) + (us >> octave)) as u16
}

/// The longest delay in it.
fn coarse_end(bucket: u16) -> u64 {
    let each = 1 << COARSE_BITS;
    let octave = (u64::from(bucket) / each).saturating_sub(1);
    ((u64::from(bucket) - octave * each + 1) << octave) - 1
}

impl Default for DelayHistogram {
    fn default() -> Self {
        DelayHistogram::with(Counts::Fine(None))
    }
}

impl DelayHistogram {
    pub(crate) fn coarse() -> Self {
        DelayHistogram::with(Counts::Coarse(Vec::new()))
    }

    fn with(counts: Counts) -> Self {
        DelayHistogram { counts, sum_ns: 0, count: 0, min: u64::MAX, max: 0 }
    }

    #[inline]
    pub(crate) fn record(&mut self, delay: Duration) {
        let ns = delay.as_nanos() as u64;
        self.sum_ns += u128::from(ns);
        self.count += 1;
        self.min = self.min.min(ns);
        self.max = self.max.max(ns);
        let us = (ns / 1_000).min(MAX_US);
        match &mut self.counts {
            Counts::Fine(histogram) => {
                // Three digits are allowed; it grows by itself up to the bound, and cannot fail below it.
                let made = || Histogram::new(3).expect("3 digits are allowed");
                let _ = histogram.get_or_insert_with(made).record(us);
            }
            Counts::Coarse(buckets) => {
                let bucket = coarse_bucket(us);
                match buckets.binary_search_by_key(&bucket, |(b, _)| *b) {
                    Ok(place) => buckets[place].1 += 1,
                    Err(place) => buckets.insert(place, (bucket, 1)),
                }
            }
        }
    }

    pub(crate) fn clear(&mut self) {
        *self = DelayHistogram::with(match self.counts {
            Counts::Fine(_) => Counts::Fine(None),
            Counts::Coarse(_) => Counts::Coarse(Vec::new()),
        });
    }

    /// Adds those of another fine one.
    pub(crate) fn add(&mut self, other: &DelayHistogram) {
        if let (Counts::Fine(mine), Counts::Fine(Some(others))) = (&mut self.counts, &other.counts) {
            match mine {
                // Same digits, and it grows by itself: cannot fail.
                Some(mine) => drop(mine.add(others)),
                None => *mine = Some(others.clone()),
            }
        }
        self.sum_ns += other.sum_ns;
        self.count += other.count;
        (self.min, self.max) = (self.min.min(other.min), self.max.max(other.max));
    }

    /// Number and sum in nanoseconds so far.
    pub(crate) const fn total(&self) -> (u64, u128) {
        (self.count, self.sum_ns)
    }

    /// Delays recorded.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Mean; zero if nothing was recorded.
    pub fn mean(&self) -> Duration {
        Duration::from_nanos((self.sum_ns.checked_div(u128::from(self.count)).unwrap_or(0)) as u64)
    }

    /// Least; zero if nothing was recorded.
    pub fn min(&self) -> Duration {
        Duration::from_nanos(if self.count == 0 { 0 } else { self.min })
    }

    /// Greatest; zero if nothing was recorded.
    pub fn max(&self) -> Duration {
        Duration::from_nanos(self.max)
    }

    /// The delay that a fraction `q` in `[0, 1]` of the packets did not exceed.
    pub fn quantile(&self, q: f64) -> Duration {
        let us = match &self.counts {
            Counts::Fine(None) => return Duration::ZERO,
            Counts::Fine(Some(histogram)) => histogram.value_at_quantile(q),
            Counts::Coarse(buckets) => {
                let wanted = (q.clamp(0.0, 1.0) * self.count as f64).ceil() as u64;
                let mut so_far = 0;
                let reached = buckets.iter().find(|(_, n)| {
                    so_far += u64::from(*n);
                    so_far >= wanted
                });
                reached.map_or(0, |(bucket, _)| coarse_end(*bucket))
            }
        };
        if self.count == 0 {
            return Duration::ZERO;
        }
        Duration::from_micros(us).clamp(self.min(), self.max())
    }

    /// The counts behind it, in microseconds; `None` if nothing was recorded, or not to 3 digits.
    pub fn histogram(&self) -> Option<&Histogram<u32>> {
        match &self.counts {
            Counts::Fine(histogram) => histogram.as_ref(),
            Counts::Coarse(_) => None,
        }
    }
}

pub(crate) fn per_second(bytes: Bytes, window: Duration) -> Rate {
    Rate::bps(ratio(bytes.as_f64() * 8.0, window))
}

fn ratio(amount: f64, window: Duration) -> f64 {
    let seconds = window.as_secs_f64();
    if seconds == 0.0 { 0.0 } else { amount / seconds }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_right_to_one_in_a_thousand_and_the_ends_are_exact() {
        let mut h = DelayHistogram::default();
        assert_eq!((h.mean(), h.quantile(0.5), h.min()), (Duration::ZERO, Duration::ZERO, Duration::ZERO));
        for ms in 1..=1_000 {
            h.record(Duration::from_millis(ms));
        }
        assert_eq!((h.min(), h.max()), (Duration::from_millis(1), Duration::from_secs(1)));
        assert_eq!(h.mean(), Duration::from_micros(500_500));
        let p95 = h.quantile(0.95).as_secs_f64();
        assert!((0.949..=0.951).contains(&p95), "{p95}");
    }

    #[test]
    fn coarse_quantiles_are_at_most_a_sixteenth_too_long() {
        let mut h = DelayHistogram::coarse();
        assert_eq!((h.quantile(0.5), h.count()), (Duration::ZERO, 0));
        for ms in 1..=1_000 {
            h.record(Duration::from_millis(ms));
        }
        assert_eq!((h.min(), h.max(), h.quantile(1.0)), (Duration::from_millis(1), h.max(), Duration::from_secs(1)));
        for percent in 1..=100 {
            let (got, exact) = (h.quantile(f64::from(percent) / 100.0).as_secs_f64(), f64::from(percent) / 100.0);
            assert!((1.0..=1.0625).contains(&(got / exact)), "{percent}: {got}");
        }
        // Each bucket begins where the one before it ends.
        for us in (0..100_000).chain((0..1_000).map(|i| i * 1_000_003)) {
            let bucket = coarse_bucket(us);
            assert!(us <= coarse_end(bucket) && (bucket == 0 || us > coarse_end(bucket - 1)), "{us}");
        }
    }
}
