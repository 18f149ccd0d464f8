//! On and off, on and off: the lengths of bursts and silences.

use fairpace_units::{Duration, Instant, RandomStream};

/// Lengths of bursts and silences.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct OnOff {
    /// Mean length of a burst.
    pub on: Duration,
    /// Mean silence after it.
    pub off: Duration,
    /// Exponentially distributed lengths, or exactly the means.
    pub exponential: bool,
}

/// Says when a source changes between on and off. Begins on.
#[derive(Clone, Debug)]
pub struct Bursts {
    times: OnOff,
    random: RandomStream,
    on: bool,
    next: Instant,
}

impl Bursts {
    /// Lengths by `times`; exponential ones are drawn from `random`.
    pub fn new(times: OnOff, random: RandomStream) -> Self {
        Bursts { times, random, on: false, next: Instant::NEVER }
    }

    /// The first burst begins.
    pub fn start(&mut self, now: Instant) {
        self.toggle(now);
    }

    /// Off, for good.
    pub fn stop(&mut self) {
        (self.on, self.next) = (false, Instant::NEVER);
    }

    /// Changes state at `now`; returns whether it is on afterwards.
    pub fn toggle(&mut self, now: Instant) -> bool {
        self.on = !self.on;
        let mean = if self.on { self.times.on } else { self.times.off };
        let length = if self.times.exponential { self.random.exponential(mean) } else { mean };
        // A change in no time at all would never let time pass.
        self.next = now + length.max(Duration::from_nanos(1));
        self.on
    }

    /// Whether it is on.
    pub fn on(&self) -> bool {
        self.on
    }

    /// When it changes next; never if it has not begun.
    pub fn next(&self) -> Instant {
        self.next
    }
}
