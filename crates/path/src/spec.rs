//! The parts of a link, as plain data: all that a scenario has to fill in.
//!
//! A [`LinkSpec`] holds no state. [`Link::new`](crate::Link::new) checks it and builds the state
//! machines from it; every refusal is a [`LinkError`] that begins with the field's name.

mod queue;

pub use queue::*;

use crate::Trace;
use crate::quick_start::{QsError, RouterParams};
use fairpace_units::{Duration, Instant, Probability, Rate};
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
    /// The rule that decides which transmitted packets are damaged.
    pub loss: LossModel,
    /// When the link is dark. Overlapping and unsorted entries are merged.
    pub outage: Vec<Outage>,
    /// At which end of the link the outages happen.
    pub outage_at: OutageAt,
    /// The router in front of the queue knows Quick-Start, and goes by these parameters and by the load that
    /// it measures on this link. `None`: it does not; then a request that passes here fails.
    pub quick_start: Option<RouterParams>,
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

/// The rule that decides which transmitted packets are damaged and dropped. They have used the link's capacity.
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
    /// The fate of a packet that has left one end and has not reached the other.
    pub in_flight: InFlight,
}

impl Outage {
    /// One that delivers what is in flight.
    pub const fn of(start: Instant, length: Duration) -> Outage {
        Outage { start, length, in_flight: InFlight::Delivered }
    }
}

/// The effect of an [`Outage`] on the packets that are on their way when the signal goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum InFlight {
    /// Only one end of the link is dark ([`OutageAt`]): what is in flight arrives.
    #[default]
    Delivered,
    /// The whole link is dark: a packet is lost if any part of its way falls into the outage, from its first bit at the
    /// sending end to its last at the receiving end.
    Lost,
}

/// At which end of the link the signal is missing during an [`Outage`] that delivers what is in flight.
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
    /// A parameter of the Quick-Start router out of its range.
    #[error(transparent)]
    QuickStart(#[from] QsError),
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
        /// The entry's index, from zero.
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
        /// The values that are allowed.
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
