//! Propagation and jitter: when a transmitted packet arrives.

use crate::{DelayModel, LinkError};
use fairpace_units::{Duration, Instant, RandomStream};

/// The longest propagation or jitter: 31 years, as for every duration that is read from a file.
const LONGEST: Duration = Duration::from_secs(1_000_000_000);

/// The state of a [`DelayModel`].
#[derive(Clone, Debug)]
pub(crate) struct Delay {
    /// Nanoseconds, as the next: a `Duration` would be taken apart for every packet.
    propagation: u64,
    jitter: u64,
    reorder: bool,
    random: RandomStream,
    /// When the last packet arrives that is not lost.
    last_exit: Instant,
}

impl Delay {
    pub(crate) fn new(model: &DelayModel, random: RandomStream) -> Result<Self, LinkError> {
        for (field, found) in [("propagation", model.propagation), ("jitter", model.jitter)] {
            if found > LONGEST {
                return Err(LinkError::DelayTooLong { field, found });
            }
        }
        let nanos = |d: Duration| (Instant::ZERO + d).as_nanos();
        let (propagation, jitter) = (nanos(model.propagation), nanos(model.jitter));
        Ok(Delay { propagation, jitter, reorder: model.reorder, random, last_exit: Instant::ZERO })
    }

    /// When a packet arrives whose last bit leaves at `departure`. To be asked once for every
    /// transmitted packet, lost ones included, so that a loss shifts no later packet's jitter.
    #[inline]
    pub(crate) fn exit_of(&mut self, departure: Instant) -> Instant {
        let exit = self.earliest_exit(departure);
        if self.jitter == 0 {
            return exit;
        }
        let exit = Instant::from_nanos(exit.as_nanos().saturating_add(self.random.below(self.jitter)));
        if self.reorder { exit } else { exit.max(self.last_exit) }
    }

    /// The packet that arrives at `exit` is not lost: later ones must not overtake it.
    #[inline]
    pub(crate) fn keep_order_after(&mut self, exit: Instant) {
        self.last_exit = exit;
    }

    pub(crate) fn may_reorder(&self) -> bool {
        self.reorder && self.jitter > 0
    }

    /// When a packet arrives at the earliest whose last bit leaves at `departure`.
    #[inline]
    pub(crate) fn earliest_exit(&self, departure: Instant) -> Instant {
        Instant::from_nanos(departure.as_nanos().saturating_add(self.propagation))
    }
}
