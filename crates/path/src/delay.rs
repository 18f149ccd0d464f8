//! Propagation and jitter: when a transmitted packet arrives.

use crate::{DelayModel, LinkError};
use fairpace_units::{Duration, Instant, RandomStream};

/// The longest propagation or jitter: 31 years, as for every duration that is read from a file.
const LONGEST: Duration = Duration::from_secs(1_000_000_000);

/// The state of a [`DelayModel`].
#[derive(Clone, Debug)]
pub(crate) struct Delay {
    /// Nanoseconds: a `Duration` would be taken apart for every packet.
    propagation: u64,
    jitter: Option<Box<Jitter>>,
}

/// A delay that is drawn for each packet.
#[derive(Clone, Debug)]
struct Jitter {
    /// Nanoseconds, not zero.
    below: u64,
    reorder: bool,
    random: RandomStream,
    /// When the last packet arrives that is not lost.
    last_exit: Instant,
}

/// Nanoseconds, if it is not too long.
pub(crate) fn checked(field: &'static str, found: Duration) -> Result<u64, LinkError> {
    if found > LONGEST { Err(LinkError::DelayTooLong { field, found }) } else { Ok((Instant::ZERO + found).as_nanos()) }
}

impl Delay {
    pub(crate) fn new(model: &DelayModel, random: RandomStream) -> Result<Self, LinkError> {
        let propagation = checked("propagation", model.propagation)?;
        let below = checked("jitter", model.jitter)?;
        let jitter = Jitter { below, reorder: model.reorder, random, last_exit: Instant::ZERO };
        Ok(Delay { propagation, jitter: (below > 0).then(|| Box::new(jitter)) })
    }

    /// When a packet arrives whose last bit leaves at `departure`. To be asked once for every
    /// transmitted packet, lost ones included, so that a loss shifts no later packet's jitter.
    #[inline]
    pub(crate) fn exit_of(&mut self, departure: Instant) -> Instant {
        let exit = self.earliest_exit(departure);
        let Some(jitter) = &mut self.jitter else { return exit };
        let exit = Instant::from_nanos(exit.as_nanos().saturating_add(jitter.random.below(jitter.below)));
        if jitter.reorder { exit } else { exit.max(jitter.last_exit) }
    }

    /// The packet that arrives at `exit` is not lost: later ones must not overtake it.
    #[inline]
    pub(crate) fn keep_order_after(&mut self, exit: Instant) {
        if let Some(jitter) = &mut self.jitter {
            jitter.last_exit = exit;
        }
    }

    #[inline]
    pub(crate) fn has_jitter(&self) -> bool {
        self.jitter.is_some()
    }

    #[inline]
    pub(crate) fn may_reorder(&self) -> bool {
        self.jitter.as_ref().is_some_and(|jitter| jitter.reorder)
    }

    /// When a packet arrives at the earliest whose last bit leaves at `departure`.
    #[inline]
    pub(crate) fn earliest_exit(&self, departure: Instant) -> Instant {
        Instant::from_nanos(departure.as_nanos().saturating_add(self.propagation))
    }
}
