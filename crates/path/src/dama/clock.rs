//! Slots in time: they are numbered from the beginning of the run, on all carriers alike.
//!
//! A slot lasts `nanos / rate` nanoseconds exactly; an instant is rounded up, so that nothing is early and
//! n slots take n times the exact time.

use super::DamaSpec;
use fairpace_units::Instant;

#[derive(Clone, Copy, Debug)]
pub(super) struct SlotClock {
    nanos: u128,
    rate: u128,
    /// Slots per super-frame.
    per_super_frame: u64,
}

impl SlotClock {
    pub(super) fn new(spec: &DamaSpec) -> Self {
        let (nanos, rate) = spec.slot_nanos();
        SlotClock { nanos, rate, per_super_frame: u64::from(spec.slots_per_super_frame) }
    }

    /// When a slot begins, which is when the one before it ends.
    pub(super) fn start(&self, slot: u64) -> Instant {
        Instant::from_nanos((u128::from(slot) * self.nanos).div_ceil(self.rate) as u64)
    }

    pub(super) fn end(&self, slot: u64) -> Instant {
        self.start(slot + 1)
    }

    /// The first slot that begins at `t` or later.
    pub(super) fn first_from(&self, t: Instant) -> u64 {
        match t.as_nanos() {
            0 => 0,
            nanos => (u128::from(nanos - 1) * self.rate / self.nanos) as u64 + 1,
        }
    }

    /// How many slots have ended by `t`.
    pub(super) fn ended_by(&self, t: Instant) -> u64 {
        (u128::from(t.as_nanos()) * self.rate / self.nanos) as u64
    }

    /// When a super-frame begins.
    pub(super) fn boundary(&self, super_frame: u64) -> Instant {
        self.start(super_frame * self.per_super_frame)
    }

    /// The super-frame that `t` lies in; its first instant is in it.
    pub(super) fn super_frame_at(&self, t: Instant) -> u64 {
        self.ended_by(t) / self.per_super_frame
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_of_the_large_frame_begin_at_the_exact_time_rounded_up() {
        // 12,032 bit at 6.336 Mbit/s: 188,000,000/99 ns = 1,898,989.898... ns; 432 slots 820,363,636.36.. ns.
        let clock = SlotClock::new(&DamaSpec::large());
        assert_eq!(clock.start(0), Instant::ZERO);
        assert_eq!(clock.end(0), Instant::from_nanos(1_898_990));
        assert_eq!(clock.start(99), Instant::from_nanos(188_000_000));
        assert_eq!(clock.boundary(1), Instant::from_nanos(820_363_637));
        assert_eq!(clock.boundary(11), Instant::from_nanos(9_024_000_000));
    }

    #[test]
    fn a_slot_is_found_by_the_instant_it_begins_and_ends_at() {
        let clock = SlotClock::new(&DamaSpec::small());
        for slot in (0..500).chain(10_000_000_000..10_000_000_500) {
            let (start, end) = (clock.start(slot), clock.end(slot));
            assert_eq!(clock.first_from(start), slot);
            assert_eq!(clock.first_from(Instant::from_nanos(start.as_nanos() + 1)), slot + 1);
            assert_eq!(clock.ended_by(end), slot + 1);
            assert_eq!(clock.ended_by(Instant::from_nanos(end.as_nanos() - 1)), slot);
            assert_eq!(clock.super_frame_at(start), slot / 72);
        }
    }
}
