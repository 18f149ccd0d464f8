//! The caps on everything that a flow sends, and the quantum in which packets leave.

use super::params::FlowParams;
use crate::registry::Safety;
use fairpace_units::{Bytes, Duration, Instant, Rate};

/// How early a packet may leave under the cap, so that a stream paced at exactly the cap is not sent to sleep again for a
/// rounded nanosecond.
const CAP_TOLERANCE: Duration = Duration::from_micros(1);

#[derive(Debug)]
pub(super) struct Limits {
    /// The configured cap; `None` if there is none.
    max_rate: Option<Rate>,
    /// The rate that the breaker has cut the flow to.
    cut: Option<Rate>,
    /// When the next packet may leave under the cap.
    free: Instant,
    /// How early a packet may leave; zero for schemes that space packets by a rule of their own.
    quantum: Duration,
    /// Packets due until then leave with the last packet that left in its time.
    quantum_end: Instant,
}

impl Limits {
    pub(super) fn new(params: &FlowParams, may_leave_early: bool) -> Limits {
        Limits {
            max_rate: (params.safety == Safety::Default).then_some(params.max_rate),
            cut: None,
            free: Instant::ZERO,
            quantum: if may_leave_early { params.quantum } else { Duration::ZERO },
            quantum_end: Instant::ZERO,
        }
    }

    /// The cap in force.
    #[inline]
    pub(super) fn cap(&self) -> Option<Rate> {
        match (self.max_rate, self.cut) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// The breaker's cut; `None` lifts it.
    pub(super) const fn cut(&mut self, rate: Option<Rate>) {
        self.cut = rate;
    }

    #[inline]
    pub(super) fn on_sent(&mut self, now: Instant, size: Bytes) {
        if let Some(cap) = self.cap() {
            self.free = self.free.max(now) + size / cap;
        }
    }

    /// Until when packets may be asked for now. Early is only what is due within the quantum that began with a packet in
    /// its time: a driver that asks in between, for feedback or a timer, begins none.
    #[inline]
    pub(super) fn horizon(&self, now: Instant) -> Instant {
        self.quantum_end.max(now)
    }

    /// A packet is permitted by the scheme, `in_time` or early: `Err` with the time at which the cap has room.
    #[inline]
    pub(super) fn permit(&mut self, now: Instant, in_time: bool) -> Result<(), Instant> {
        let free = self.free - CAP_TOLERANCE;
        if free > self.horizon(now) {
            return Err(free);
        }
        if in_time && free <= now {
            self.quantum_end = now + self.quantum;
        }
        Ok(())
    }

    /// Until when to wait for a packet due at `at`. One that is near is waited for, and a timer before it runs then: on the
    /// shortest paths there is a timer in each RTT, and each would be a wake-up.
    #[inline]
    pub(super) fn wait(&self, now: Instant, at: Instant, timer: Instant) -> Instant {
        if at <= now + self.quantum * 2 { at } else { at.min(timer) }
    }
}
