//! The caps on everything that a flow sends, and the quantum in which packets leave.
//!
//! The configured cap and the breaker's cut space packets. The breaker's hold is a mean over its period: packets that leave
//! in bursts, as a window's do, are held back only where the mean is above it. For packets over TCP only the
//! configured cap counts, and nothing of the breaker.

use super::params::FlowParams;
use crate::registry::Safety;
use fairpace_units::{Bytes, Duration, Instant, Rate, Via};

/// How early a packet may leave under the cap, so that a stream paced at exactly the cap is not sent to sleep again for a
/// rounded nanosecond.
const CAP_TOLERANCE: Duration = Duration::from_micros(1);

#[derive(Debug)]
pub(super) struct Limits {
    /// The configured cap; `None` if there is none.
    max_rate: Option<Rate>,
    /// The rate that the breaker has cut the flow to.
    cut: Option<Rate>,
    /// The cap in a silence.
    quiet: Option<Rate>,
    /// The rate below which the breaker holds the flow, and the time over which that is a mean.
    hold: Option<(Rate, Duration)>,
    /// When the next packet may leave under the cap.
    free: Instant,
    /// When the next packet may leave under the hold; without one it is not looked at.
    held: Instant,
    /// The hold has kept a packet back since it was last asked.
    refused: bool,
    /// The packet that is to leave next has been kept back.
    next_kept_back: bool,
    /// Packets that were kept back, however often somebody asked for each.
    kept_back: u64,
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
            quiet: None,
            hold: None,
            free: Instant::ZERO,
            held: Instant::ZERO,
            refused: false,
            next_kept_back: false,
            kept_back: 0,
            quantum: if may_leave_early { params.quantum } else { Duration::ZERO },
            quantum_end: Instant::ZERO,
        }
    }

    /// The cap in force.
    #[inline]
    pub(super) fn cap(&self) -> Option<Rate> {
        let least = |a: Option<Rate>, b: Option<Rate>| match (a, b) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        least(least(self.max_rate, self.cut), self.quiet)
    }

    /// The cap while nothing is heard of what was sent, and for some round trips after; `None` lifts it.
    pub(super) fn quiet(&mut self, now: Instant, rate: Option<Rate>) {
        // A packet of the lower rate is not waited out.
        if rate.is_none_or(|rate| self.quiet.is_some_and(|before| before < rate)) {
            self.free = self.free.min(now);
        }
        self.quiet = rate;
    }

    /// The breaker's cut; `None` lifts it.
    pub(super) const fn cut(&mut self, rate: Option<Rate>) {
        self.cut = rate;
    }

    /// The breaker's hold, a mean over `period`; `None` lifts it.
    pub(super) fn hold(&mut self, rate: Option<Rate>, period: Duration) {
        if rate.is_none() {
            self.held = Instant::ZERO;
        }
        self.hold = rate.map(|rate| (rate, period));
    }

    /// Whether the hold has kept a packet back since the last call.
    pub(super) const fn take_refused(&mut self) -> bool {
        core::mem::replace(&mut self.refused, false)
    }

    /// Packets that were kept back.
    pub(super) const fn kept_back(&self) -> u64 {
        self.kept_back
    }

    #[inline]
    pub(super) fn on_sent(&mut self, now: Instant, size: Bytes, via: Via) {
        self.next_kept_back = false;
        let cap = if via == Via::Udp { self.cap() } else { self.max_rate };
        if let Some(cap) = cap {
            self.free = self.free.max(now) + size / cap;
        }
        if let Some((rate, period)) = self.hold
            && via == Via::Udp
        {
            self.held = self.held.max(now - period) + size / rate;
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
        let free = self.free.max(self.held) - CAP_TOLERANCE;
        if free > self.horizon(now) {
            self.refused |= self.held > self.free;
            self.kept_back += u64::from(!core::mem::replace(&mut self.next_kept_back, true));
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
