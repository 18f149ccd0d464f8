//! Propagation and jitter: when a transmitted packet arrives.

use crate::{DelayModel, LinkError};
use fairpace_units::{Duration, Instant, RandomStream};

/// The longest propagation or jitter: 31 years, as for every duration that is read from a file.
const LONGEST: Duration = Duration::from_secs(1_000_000_000);

/// The state of a [`DelayModel`].
#[derive(Clone, Debug)]
pub(crate) struct Delay {
    propagation: Duration,
    jitter: Duration,
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
        let &DelayModel { propagation, jitter, reorder } = model;
        Ok(Delay { propagation, jitter, reorder, random, last_exit: Instant::ZERO })
    }

    /// When a packet arrives whose last bit leaves at `departure`. To be asked once for every
    /// transmitted packet, lost ones included, so that a loss shifts no later packet's jitter.
    #[inline]
    pub(crate) fn exit_of(&mut self, departure: Instant) -> Instant {
        let mut exit = departure + self.propagation;
        if self.jitter > Duration::ZERO {
            exit += self.random.duration_below(self.jitter);
            if !self.reorder {
                exit = exit.max(self.last_exit);
            }
        }
        exit
    }

    /// The packet that arrives at `exit` is not lost: later ones must not overtake it.
    #[inline]
    pub(crate) fn keep_order_after(&mut self, exit: Instant) {
        self.last_exit = exit;
    }

    pub(crate) fn may_reorder(&self) -> bool {
        self.reorder && self.jitter > Duration::ZERO
    }

    pub(crate) fn propagation(&self) -> Duration {
        self.propagation
    }
}
