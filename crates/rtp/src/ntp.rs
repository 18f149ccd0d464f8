//! Wall time as RTP writes it. Drivers say once what the wall clock showed at
//! [`Instant::ZERO`](fairpace_units::Instant::ZERO); from then on the monotonic clock counts, so
//! that a step of the wall clock changes nothing.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use fairpace_units::{Duration, Instant};

/// Seconds since 1900 in 32.32 fixed point [RFC 3550 §4]. Wraps in 2036, like all NTP times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct NtpTime(pub u64);

/// Seconds from 1900 to 1970.
const UNIX_EPOCH: u64 = 2_208_988_800;

impl NtpTime {
    /// From the time since 1970.
    pub fn from_unix(since_1970: Duration) -> Self {
        NtpTime(UNIX_EPOCH << 32).plus(since_1970)
    }

    /// That much later.
    #[must_use]
    pub fn plus(self, d: Duration) -> Self {
        NtpTime(
            self.0.wrapping_add(d.as_secs() << 32).wrapping_add((u64::from(d.subsec_nanos()) << 32) / 1_000_000_000),
        )
    }

    /// This time, `now` into the run that began at `self`.
    pub(crate) fn at(self, now: Instant) -> Self {
        self.plus(now.since(Instant::ZERO))
    }

    /// The middle 32 bits: 1/65,536 s, wrapping every 18.2 hours. LSR and RTS.
    pub const fn middle(self) -> u32 {
        (self.0 >> 16) as u32
    }

    /// The 24 bits of a send-time header extension: 6.18 fixed point, 3.8 µs, wrapping every 64 s.
    pub const fn send_time_24(self) -> u32 {
        (self.0 >> 14) as u32 & 0x00ff_ffff
    }
}

/// A span in 1/65,536 s, as LSR, DLSR and RTS count.
pub(crate) fn from_65536ths(n: u64) -> Duration {
    // n / 65536 s = n × 10^9 / 2^16 ns
    Duration::from_nanos(((u128::from(n) * 1_000_000_000) >> 16).try_into().unwrap_or(u64::MAX))
}

/// In 1/65,536 s, rounded down, at most what 32 bits hold (18.2 hours).
pub(crate) fn to_65536ths(d: Duration) -> u32 {
    ((d.as_nanos() << 16) / 1_000_000_000).try_into().unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_bits_are_65536ths_of_a_second() {
        // RFC 3550 figure 2: 0xb44db705 seconds and 0x20000000/2^32 s = 0.125 s -> b705:2000
        assert_eq!(NtpTime(0xb44d_b705_2000_0000).middle(), 0xb705_2000);
        assert_eq!(NtpTime(0).plus(Duration::from_millis(125)).middle(), 0x2000);
    }

    #[test]
    fn the_unix_epoch_is_70_years_after_1900() {
        assert_eq!(NtpTime::from_unix(Duration::from_secs(1)).0 >> 32, 2_208_988_801);
    }

    #[test]
    fn send_time_is_6_18_fixed_point() {
        // 1.5 s = 0b01.1 -> 1.5 × 2^18 = 393,216
        assert_eq!(NtpTime(0).plus(Duration::from_millis(1_500)).send_time_24(), 393_216);
        assert_eq!(NtpTime(0).plus(Duration::from_secs(64)).send_time_24(), 0);
    }

    #[test]
    fn spans_convert_both_ways_within_one_unit() {
        // 5.25 s = 0x0005:4000, the DLSR of RFC 3550 figure 2
        assert_eq!(to_65536ths(Duration::from_millis(5_250)), 0x0005_4000);
        assert_eq!(from_65536ths(0x0005_4000), Duration::from_millis(5_250));
        assert_eq!(to_65536ths(Duration::MAX), u32::MAX);
    }
}
