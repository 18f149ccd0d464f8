//! The visible facts of a wireless link: its counters and its slots.

use crate::LinkCounters;
use fairpace_units::Instant;

/// The counts of one user of the link since the link was made. Busy time, averages and slots reach up to the last
/// [`Arq::advance`](super::Arq::advance), the rest up to the last call of any kind.
///
/// Every slot that has ended is one of `used`, `silent`, `waiting` and `idle`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArqCounters {
    /// Packets, drops, queue and busy time, as of any link. A packet is transmitted when its last slot has
    /// ended, lost or not; busy is the time with a packet in the queue.
    pub link: LinkCounters,
    /// Slots in which it sent.
    pub used: u64,
    /// Slots in which it sent and the packet did not get through.
    pub failed: u64,
    /// Slots in which it had a packet and was silent after a failure (`Optimal`, `retry_delay`).
    pub silent: u64,
    /// Slots in which it could have sent, but that were not given to it.
    pub waiting: u64,
    /// Slots at whose beginning it had no packet.
    pub idle: u64,
}

impl ArqCounters {
    /// The counts after `earlier`, which is a copy of the same user's counters. The maxima stay those of the whole
    /// run unless [`Arq::restart_maximum`](super::Arq::restart_maximum) was called.
    #[must_use]
    pub fn since(&self, earlier: &ArqCounters) -> ArqCounters {
        ArqCounters {
            link: self.link.since(&earlier.link),
            used: self.used.saturating_sub(earlier.used),
            failed: self.failed.saturating_sub(earlier.failed),
            silent: self.silent.saturating_sub(earlier.silent),
            waiting: self.waiting.saturating_sub(earlier.waiting),
            idle: self.idle.saturating_sub(earlier.idle),
        }
    }
}

/// A slot in which somebody sent; a slot without one had nobody who could.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArqSlot {
    /// The slot's number, from zero.
    pub slot: u64,
    /// When it began.
    pub start: Instant,
    /// Who sent.
    pub user: u32,
    /// The outcome of the slot.
    pub outcome: SlotOutcome,
}

/// The outcome of a slot in which a user sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotOutcome {
    /// The piece arrived.
    Success {
        /// This piece was the last of its packet.
        last: bool,
    },
    /// The transmission failed.
    Failure {
        /// Of how many slots its user is silent now; zero if it may send in the next.
        silence: u32,
        /// The packet is lost.
        lost: bool,
    },
}
