//! Bits per second, and its physics: rate × time = size, size / rate = time.

use crate::print::short;
use crate::{Bytes, Duration};
use core::fmt;
use core::ops::{Add, Div, Mul};

/// Bits per second: finite and never negative, by construction.
///
/// ```
/// use fairpace_units::{Bytes, Duration, Rate};
/// let r = Rate::mbps(1.2);
/// assert_eq!(r * Duration::from_millis(10), Bytes::new(1_500));
/// assert_eq!(Bytes::new(1_500) / r, Duration::from_millis(10));
/// assert_eq!(Rate::packets_per_second(1_300.0, Bytes::new(1_000)), Rate::mbps(10.4));
/// ```
#[derive(Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct Rate(f64);

impl Rate {
    /// Nothing at all.
    pub const ZERO: Rate = Rate(0.0);
    /// The largest rate there is (1 Pbit/s): above every link, still finite.
    pub const MAX: Rate = Rate(1e15);

    /// `bps` bits per second. Negative and not-a-number become zero, above [`Rate::MAX`] becomes
    /// that: a controller's slip must never reach a pacer as infinity. Input from users is
    /// checked by [`crate::parse_rate`], which refuses it instead.
    pub const fn bps(bps: f64) -> Self {
        // Not `clamp`, which keeps NaN: `max` turns it into 0.
        #[allow(clippy::manual_clamp)]
        Rate(bps.max(0.0).min(Self::MAX.0))
    }

    /// `kbps` thousand bits per second.
    pub const fn kbps(kbps: f64) -> Self {
        Self::bps(kbps * 1e3)
    }

    /// `mbps` million bits per second.
    pub const fn mbps(mbps: f64) -> Self {
        Self::bps(mbps * 1e6)
    }

    /// The papers' unit: `pps` packets of `size` each second.
    pub fn packets_per_second(pps: f64, size: Bytes) -> Self {
        Self::bps(pps * size.as_f64() * 8.0)
    }

    /// Bits per second.
    pub const fn as_bps(self) -> f64 {
        self.0
    }

    /// Packets of `size` per second; zero if `size` is zero.
    pub fn as_packets_per_second(self, size: Bytes) -> f64 {
        if size == Bytes::ZERO { 0.0 } else { self.0 / (size.as_f64() * 8.0) }
    }

    /// The smaller of two rates.
    pub fn min(self, other: Rate) -> Rate {
        Rate(self.0.min(other.0))
    }

    /// The larger of two rates.
    pub fn max(self, other: Rate) -> Rate {
        Rate(self.0.max(other.0))
    }

    /// This rate, kept within `[low, high]`.
    pub fn clamp(self, low: Rate, high: Rate) -> Rate {
        self.max(low).min(high)
    }
}

impl Mul<Duration> for Rate {
    type Output = Bytes;
    /// The bytes that fit into that time, rounded down to whole bytes.
    fn mul(self, d: Duration) -> Bytes {
        // One part in 10^12 forgives the binary fraction: 1.2 Mbit/s for 10 ms is 1,500 bytes.
        Bytes::new((self.0 * d.as_secs_f64() / 8.0 * (1.0 + 1e-12)) as u64)
    }
}

impl Mul<f64> for Rate {
    type Output = Rate;
    fn mul(self, x: f64) -> Rate {
        Rate::bps(self.0 * x)
    }
}

impl Div<f64> for Rate {
    type Output = Rate;
    fn div(self, x: f64) -> Rate {
        Rate::bps(self.0 / x)
    }
}

impl Add for Rate {
    type Output = Rate;
    fn add(self, other: Rate) -> Rate {
        Rate::bps(self.0 + other.0)
    }
}

impl Div<Rate> for Bytes {
    type Output = Duration;
    /// The time this takes at that rate, to the nearest nanosecond; [`Duration::MAX`] at rate zero
    /// (and beyond 584 years).
    fn div(self, rate: Rate) -> Duration {
        let nanos = self.as_f64() * 8e9 / rate.0;
        if nanos < u64::MAX as f64 { Duration::from_nanos((nanos + 0.5) as u64) } else { Duration::MAX }
    }
}

/// A rate for people: `800 kbit/s`, `2.5 Mbit/s`; reads back to the same value to 4 digits.
pub fn format_rate(rate: Rate) -> String {
    let bps = rate.as_bps();
    let (value, unit) = match bps {
        b if b >= 1e9 => (b / 1e9, "Gbit/s"),
        b if b >= 1e6 => (b / 1e6, "Mbit/s"),
        b if b >= 1e3 => (b / 1e3, "kbit/s"),
        b => (b, "bit/s"),
    };
    format!("{} {unit}", short(value))
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format_rate(*self))
    }
}

impl fmt::Debug for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonsense_never_becomes_a_rate() {
        assert_eq!(Rate::bps(f64::NAN), Rate::ZERO);
        assert_eq!(Rate::bps(-1.0), Rate::ZERO);
        assert_eq!(Rate::bps(f64::INFINITY), Rate::MAX);
        assert_eq!(Rate::mbps(1.0) / 0.0, Rate::MAX);
    }

    #[test]
    fn nothing_is_ever_sent_at_rate_zero() {
        assert_eq!(Bytes::new(1) / Rate::ZERO, Duration::MAX);
    }

    #[test]
    fn a_thousand_bytes_at_1300_packets_per_second_take_769_231_ns() {
        // 1 / 1300 s = 769,230.77 ns
        let r = Rate::packets_per_second(1_300.0, Bytes::new(1_000));
        assert_eq!(Bytes::new(1_000) / r, Duration::from_nanos(769_231));
    }
}
