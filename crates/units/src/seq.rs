//! Sequence numbers that wrap, and the 64-bit numbers behind them.

use core::fmt;

/// A 16-bit sequence number with serial arithmetic [RFC 1982]. There is no `Ord`: which of two is later depends on
/// the window, so ask [`Seq16::distance_to`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Seq16(pub u16);

impl Seq16 {
    /// How far `other` lies ahead of this number, in `[-32768, 32767]`.
    pub const fn distance_to(self, other: Seq16) -> i16 {
        other.0.wrapping_sub(self.0) as i16
    }

    /// The number `n` places on.
    #[must_use]
    pub const fn plus(self, n: u16) -> Seq16 {
        Seq16(self.0.wrapping_add(n))
    }
}

impl fmt::Debug for Seq16 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Turns wrapped 16-bit numbers into 64-bit ones that never wrap, choosing each time the value
/// nearest to the highest seen so far. Starts one cycle up, so that reordering before the first
/// packet cannot go below zero.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unwrapper16 {
    highest: Option<u64>,
}

impl Unwrapper16 {
    /// The 64-bit number nearest to the highest so far; changes nothing.
    pub fn peek(&self, seq: Seq16) -> u64 {
        match self.highest {
            None => u64::from(seq.0) + (1 << 16),
            Some(h) => {
                let step = i64::from(Seq16(h as u16).distance_to(seq));
                h.saturating_add_signed(step)
            }
        }
    }

    /// As [`Unwrapper16::peek`], and remembers the number if it is the highest.
    pub fn unwrap(&mut self, seq: Seq16) -> u64 {
        let full = self.peek(seq);
        self.highest = Some(self.highest.map_or(full, |h| h.max(full)));
        full
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_number_after_65535_is_zero_and_one_ahead() {
        assert_eq!(Seq16(65_535).plus(1), Seq16(0));
        assert_eq!(Seq16(65_535).distance_to(Seq16(0)), 1);
        assert_eq!(Seq16(0).distance_to(Seq16(65_535)), -1);
    }

    #[test]
    fn a_reordered_packet_across_the_wrap_is_not_a_full_cycle() {
        let mut u = Unwrapper16::default();
        let base = u.unwrap(Seq16(65_534));
        assert_eq!(u.unwrap(Seq16(1)), base + 3);
        assert_eq!(u.unwrap(Seq16(65_535)), base + 1);
        assert_eq!(u.unwrap(Seq16(2)), base + 4);
    }

    proptest! {
        #[test]
        fn unwrapping_a_stream_gives_back_its_steps(start: u16, steps in prop::collection::vec(-300_i64..3_000, 1..200)) {
            let mut truth = u64::from(start) + (1 << 16);
            let mut highest = truth;
            let mut u = Unwrapper16::default();
            prop_assert_eq!(u.unwrap(Seq16(start)), truth);
            for step in steps {
                truth = highest.saturating_add_signed(step);
                highest = highest.max(truth);
                prop_assert_eq!(u.unwrap(Seq16(truth as u16)), truth);
            }
        }
    }
}
