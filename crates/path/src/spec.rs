//! What a link is made of, as plain data: the only thing a scenario has to fill in.
//!
//! A [`LinkSpec`] holds no state. [`Link::new`](crate::Link::new) checks it and builds the state
//! machines from it; every refusal is a [`LinkError`] that begins with the field's name.

use crate::Trace;
use fairpace_units::{Bytes, Duration, Instant, Packets, Probability, Rate};
use std::sync::Arc;

/// A link: queue → rate → loss and outage → delay. The default is a wire: unlimited rate, no
/// delay, no loss.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct LinkSpec {
    /// How fast packets leave.
    pub rate: RateModel,
    /// How long they travel after that.
    pub delay: DelayModel,
    /// Who waits, and who goes when there is no room.
    pub queue: QueueModel,
    /// Which transmitted packets are damaged.
    pub loss: LossModel,
    /// When the link is dark. Overlapping and unsorted entries are merged.
    pub outage: Vec<Outage>,
    /// At which end of the link the outages happen.
    pub outage_at: OutageAt,
}

/// How fast packets leave the queue.
#[derive(Clone, Debug, PartialEq, Default)]
pub enum RateModel {
    /// Serialization takes no time: nothing ever waits.
    #[default]
    Unlimited,
    /// The same rate for ever; above zero.
    Fixed(Rate),
    /// From each instant on, that rate; the last one stays. The first instant is zero, the others
    /// increase. Rate zero stalls the transmitter until the next change.
    Schedule(Vec<(Instant, Rate)>),
    /// A recording, repeated when it ends.
    Trace(Arc<Trace>),
}

/// How long a packet travels once its last bit has left the transmitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct DelayModel {
    /// The same for every packet; below 31 years.
    pub propagation: Duration,
    /// A random part per packet, uniform in `[0, jitter)`; below 31 years.
    pub jitter: Duration,
    /// Whether the random part may let a packet overtake another. If not, a packet that would
    /// arrive before its predecessor arrives together with it.
    pub reorder: bool,
}

impl DelayModel {
    /// Propagation only.
    pub const fn constant(propagation: Duration) -> Self {
        DelayModel { propagation, jitter: Duration::ZERO, reorder: false }
    }
}

/// Which packets wait, and which one goes when there is no room for an arrival.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum QueueModel {
    /// First in, first out; an arrival that finds no room is dropped.
    DropTail {
        /// Room for the packet in transmission and those behind it.
        capacity: Capacity,
    },
    /// First in, first out; a normal arrival that finds no room pushes out the youngest waiting
    /// [`Class::Low`](fairpace_units::Class::Low) packet [rcs §III-A].
    TwoPriority {
        /// Room for the packet in transmission and those behind it.
        capacity: Capacity,
    },
    /// First in, first out; arrivals are dropped or marked by chance, the more the longer the
    /// average queue [RED].
    Red(RedParams),
}

impl QueueModel {
    /// How much it holds.
    pub const fn capacity(&self) -> Capacity {
        match self {
            QueueModel::DropTail { capacity } | QueueModel::TwoPriority { capacity } => *capacity,
            QueueModel::Red(red) => red.capacity,
        }
    }
}

impl Default for QueueModel {
    fn default() -> Self {
        QueueModel::DropTail { capacity: Capacity::Unlimited }
    }
}

/// The parameters of a RED queue [RED; ns-2 2.35 `queue/red.cc`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RedParams {
    /// The hard limit: room for the packet in transmission and those behind it. ns-2's RED refuses
    /// when `limit_` packets wait, so its `limit_ 50` is 51 packets here.
    pub capacity: Capacity,
    /// Between which averages arrivals are dropped by chance. The average counts what waits, not
    /// the packet in transmission.
    pub thresholds: Thresholds,
    /// The chance as the average reaches the upper threshold, in (0, 1] (max_p; 1 / `linterm_`).
    pub max_probability: f64,
    /// Of the present queue in the moving average, in (0, 1] (w_q, `q_weight_`).
    pub weight: f64,
    /// Whether the chance rises to 1 at twice the upper threshold, instead of jumping there at it.
    pub gentle: bool,
    /// Whether drops keep a distance of at least 1 / chance arrivals (`wait_`).
    pub wait: bool,
    /// Whether the chance is proportional to the packet's size (`bytes_`).
    pub by_size: bool,
    /// Of a packet, in bytes, at least one: the step of the average in an idle time, and what
    /// `by_size` compares with (`mean_pktsize_`).
    pub mean_packet_size: Bytes,
    /// Whether ECN-capable packets are marked where chance decides [RFC 3168 §7].
    pub ecn: bool,
}

/// Two queue lengths in one unit, the lower first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thresholds {
    /// The queue is measured in packets.
    Packets {
        /// The lower one (min_th, `thresh_`).
        min: Packets,
        /// The upper one (max_th, `maxthresh_`); above the lower one.
        max: Packets,
    },
    /// The queue is measured in bytes (ns-2's `queue_in_bytes_`).
    Bytes {
        /// The lower one.
        min: Bytes,
        /// The upper one; above the lower one.
        max: Bytes,
    },
}

impl Thresholds {
    /// Thresholds for a queue of that capacity: the lower a tenth of it, at least five packets; the
    /// upper half of it, at least twice the lower one [RED §5: at least twice]. Without a limit 5 and
    /// 15 packets, ns-2's defaults.
    pub fn for_capacity(capacity: Capacity, mean_packet_size: Bytes) -> Thresholds {
        match capacity {
            Capacity::Packets(n) => {
                let min = (n.get() / 10).max(5);
                Thresholds::Packets { min: Packets::new(min), max: Packets::new((n.get() / 2).max(2 * min)) }
            }
            Capacity::Bytes(n) => {
                let min = (n.get() / 10).max(mean_packet_size.get().saturating_mul(5));
                let max = (n.get() / 2).max(min.saturating_mul(2));
                Thresholds::Bytes { min: Bytes::new(min), max: Bytes::new(max) }
            }
            Capacity::Unlimited => Thresholds::Packets { min: Packets::new(5), max: Packets::new(15) },
        }
    }
}

impl RedParams {
    /// The usual parameters for a queue of that capacity: thresholds from it, weight 0.002, max_p
    /// 0.1, gentle, waiting, no ECN.
    pub fn for_capacity(capacity: Capacity, mean_packet_size: Bytes) -> RedParams {
        RedParams {
            capacity,
            thresholds: Thresholds::for_capacity(capacity, mean_packet_size),
            max_probability: RedParams::MAX_PROBABILITY,
            weight: RedParams::WEIGHT,
            gentle: true,
            wait: true,
            by_size: false,
            mean_packet_size,
            ecn: false,
        }
    }

    /// w_q of [RED §4].
    pub const WEIGHT: f64 = 0.002;
    /// max_p as recommended since 1997 (the paper's simulations have 0.02), ns-2's default.
    pub const MAX_PROBABILITY: f64 = 0.1;
}

/// How much a queue holds, **the packet in transmission included**.
///
/// So `Packets(50)` is one packet in transmission and 49 waiting, which is what ns-2's
/// `queue-limit 50` does: its `DropTail::enque` refuses an arrival when `length + 1 >= limit`, so
/// at most `limit - 1` packets wait, and the one in transmission has already been dequeued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Capacity {
    /// So many packets of any size, at least one.
    Packets(Packets),
    /// So many bytes, at least one; a larger packet never gets through.
    Bytes(Bytes),
    /// No limit.
    #[default]
    Unlimited,
}

/// Which transmitted packets are damaged and dropped. They have used the link's capacity.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub enum LossModel {
    /// None.
    #[default]
    None,
    /// Each packet independently with this probability.
    Bernoulli(Probability),
    /// Two states that the link moves between from packet to packet.
    GilbertElliott(GilbertElliott),
}

/// The two-state loss model of Gilbert and Elliott, in steps of one transmitted packet.
///
/// A packet is lost with the probability of the state it is sent in; after it, the state may
/// change. The first state is drawn from the stationary distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GilbertElliott {
    /// Probability of going from the good to the bad state after a packet (often called p).
    pub good_to_bad: Probability,
    /// Probability of going from the bad to the good state after a packet (often called r);
    /// its inverse is the mean length of a bad period in packets.
    pub bad_to_good: Probability,
    /// Probability that a packet sent in the good state is lost (0 in Gilbert's model).
    pub loss_in_good: Probability,
    /// Probability that a packet sent in the bad state is lost (1 in the simplest model).
    pub loss_in_bad: Probability,
}

/// A time without signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// When it begins; included.
    pub start: Instant,
    /// How long it lasts; zero has no effect.
    pub length: Duration,
}

/// At which end of the link the signal is missing during an [`Outage`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OutageAt {
    /// At the sending end: a packet is lost if any part of its transmission falls into an outage.
    #[default]
    Transmitter,
    /// At the receiving end: a packet is lost if any part of its reception does, which is its
    /// transmission shifted by its delay.
    Receiver,
}

/// Why a [`LinkSpec`] is refused: the field, what was found, what is allowed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum LinkError {
    /// A fixed rate of (nearly) nothing.
    #[error(
        "`rate` is {found}, at which nothing would ever leave; the least is 0.001 bit/s (for a dead time use an outage or a schedule)"
    )]
    RateZero {
        /// The rate given.
        found: Rate,
    },
    /// A schedule without entries.
    #[error("`rate` is a schedule without entries; it needs at least one, at 0 s")]
    ScheduleEmpty,
    /// A schedule that does not say what holds at the beginning.
    #[error("`rate[0]` is at {found}; the first entry of a schedule must be at 0 s")]
    ScheduleStart {
        /// Its instant.
        found: Instant,
    },
    /// A schedule whose entries are not in order.
    #[error(
        "`rate[{index}]` is at {found}, not after the entry before it at {previous}; a schedule's instants must increase"
    )]
    ScheduleOrder {
        /// Which entry, from zero.
        index: usize,
        /// Its instant.
        found: Instant,
        /// The instant of the entry before it.
        previous: Instant,
    },
    /// A schedule that never passes anything.
    #[error("`rate` is zero in every entry of the schedule; at least one must be 0.001 bit/s or more")]
    ScheduleDead,
    /// A queue without room.
    #[error("`queue.capacity` is 0; the least is 1 packet or 1 byte (the packet in transmission counts)")]
    NoCapacity,
    /// A parameter of the queue out of its range.
    #[error("`queue.{field}` is {found}; it must be {allowed}")]
    BadQueue {
        /// The parameter.
        field: &'static str,
        /// The value given.
        found: f64,
        /// What it may be.
        allowed: &'static str,
    },
    /// A delay that no link has.
    #[error("`delay.{field}` is {} s; the longest allowed is 1000000000 s", found.as_secs())]
    DelayTooLong {
        /// `propagation` or `jitter`.
        field: &'static str,
        /// The value given.
        found: Duration,
    },
}
