//! The visible facts of a satellite's return link: its events, its counters, and the owner of each slot.

use crate::Count;
use crate::quick_start::Decision;
use fairpace_units::{Bytes, Duration, Instant, Packets, Rate};

/// Something that happened at one terminal. A terminal at rest (no traffic, no queue, nothing but its
/// minimum and constant rate) is silent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DamaEvent {
    /// The instant of the event.
    pub at: Instant,
    /// The terminal's number, from zero.
    pub terminal: u32,
    /// The event itself.
    pub what: DamaEventKind,
}

/// The kind of event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DamaEventKind {
    /// At a super-frame's boundary the terminal asks; the NCC hears it T_p later.
    Request {
        /// R(t): what arrived in the interval that ends here.
        traffic: Rate,
        /// q(t): what waits in the uplink queue.
        queue: Bytes,
        /// Approved Quick-Start rates of the interval, not yet in `traffic`.
        quick_start: Rate,
        /// The whole request: eq. (1) and Quick-Start.
        rate: Rate,
    },
    /// The NCC broadcasts its answer; the terminal hears it T_p later.
    Tbtp {
        /// The capacity that the terminal gets, FCA included. With [`ReleaseOf::InForce`](super::ReleaseOf::InForce)
        /// this is the requested capacity, because the part kept of an earlier, larger grant is not yet known.
        rate: Rate,
        /// The boundary from which on.
        from: Instant,
    },
    /// The answer takes effect, for one super-frame.
    Grant {
        /// The terminal's capacity, FCA included.
        rate: Rate,
        /// Its slots in this super-frame.
        slots: u32,
    },
    /// A packet with a Quick-Start option came to the terminal's agent.
    QuickStart(Decision),
}

/// The counts of a terminal since the link was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TerminalCounters {
    /// Handed to [`Dama::push`](super::Dama::push).
    pub offered: Count,
    /// Refused by its full uplink queue ([`DropReason::QueueFull`](crate::DropReason::QueueFull)).
    pub dropped: Count,
    /// Packets whose last byte is in a slot that has ended.
    pub transmitted: Count,
    /// Handed out by [`Dama::pop`](super::Dama::pop).
    pub delivered: Count,
    /// Slots in which it sent something.
    pub slots_used: u64,
    /// The most packets its uplink queue ever held, the one under way included.
    pub max_queue: Packets,
    pub(super) wait_ns: u128,
}

impl TerminalCounters {
    /// Time in the uplink queue, from joining it to the end of the slot with the last byte, averaged over
    /// the packets transmitted; zero before the first.
    pub fn mean_wait(&self) -> Duration {
        let packets = u128::from(self.transmitted.packets.get()).max(1);
        Duration::from_nanos(u64::try_from(self.wait_ns / packets).unwrap_or(u64::MAX))
    }

    /// The counts after `earlier`, which is a copy of the same counters. The maximum stays that of the whole run.
    #[must_use]
    pub fn since(&self, earlier: &TerminalCounters) -> TerminalCounters {
        TerminalCounters {
            offered: self.offered.minus(earlier.offered),
            dropped: self.dropped.minus(earlier.dropped),
            transmitted: self.transmitted.minus(earlier.transmitted),
            delivered: self.delivered.minus(earlier.delivered),
            slots_used: self.slots_used.saturating_sub(earlier.slots_used),
            max_queue: self.max_queue,
            wait_ns: self.wait_ns.saturating_sub(earlier.wait_ns),
        }
    }
}

/// The owners of the slots of one carrier in one super-frame, as the TBTP names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BurstTimePlan {
    /// The super-frame's number, from zero.
    pub super_frame: u64,
    /// When it begins.
    pub start: Instant,
    /// How long a slot is, to the nearest nanosecond.
    pub slot: Duration,
    /// The terminal of each slot in order of time; `None` if it is nobody's.
    pub owners: Vec<Option<u32>>,
}
