//! A point in time that somebody told us: nanoseconds since the run began.

use core::fmt;
use core::ops::{Add, AddAssign, Sub};
use core::time::Duration;

/// Nanoseconds since the run began. There is no `now()`: only a driver knows the time.
///
/// Arithmetic saturates at both ends instead of wrapping, so that a timer that is "never" stays
/// never. The range is 584 years.
///
/// ```
/// use fairpace_units::{Duration, Instant};
/// let t = Instant::ZERO + Duration::from_millis(550);
/// assert_eq!(t.to_string(), "0.550000 s");
/// assert_eq!(t.since(Instant::ZERO), Duration::from_millis(550));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(u64);

impl Instant {
    /// The beginning of the run.
    pub const ZERO: Instant = Instant(0);
    /// Later than every event: what a timer that is not set compares as.
    pub const NEVER: Instant = Instant(u64::MAX);

    /// The instant `nanos` nanoseconds after the beginning of the run.
    pub const fn from_nanos(nanos: u64) -> Self {
        Instant(nanos)
    }

    /// The instant `secs` seconds after the beginning, to the nearest nanosecond; negative and
    /// not-a-number become zero.
    pub fn from_secs_f64(secs: f64) -> Self {
        Instant((secs * 1e9 + 0.5) as u64)
    }

    /// Nanoseconds since the beginning of the run.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Seconds since the beginning of the run.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The time from `earlier` to this instant; zero if `earlier` is in truth the later one.
    pub const fn since(self, earlier: Instant) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

fn nanos(d: Duration) -> u64 {
    u64::try_from(d.as_nanos()).unwrap_or(u64::MAX)
}

impl Add<Duration> for Instant {
    type Output = Instant;
    fn add(self, d: Duration) -> Instant {
        Instant(self.0.saturating_add(nanos(d)))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, d: Duration) {
        *self = *self + d;
    }
}

impl Sub<Duration> for Instant {
    type Output = Instant;
    fn sub(self, d: Duration) -> Instant {
        Instant(self.0.saturating_sub(nanos(d)))
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Instant::NEVER {
            return f.write_str("never");
        }
        write!(f, "{}.{:06} s", self.0 / 1_000_000_000, self.0 % 1_000_000_000 / 1_000)
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_stays_never_whatever_is_added() {
        assert_eq!(Instant::NEVER + Duration::from_secs(1), Instant::NEVER);
        assert_eq!(Instant::from_nanos(5) + Duration::MAX, Instant::NEVER);
    }

    #[test]
    fn an_earlier_instant_is_no_time_ago() {
        let (a, b) = (Instant::from_nanos(5), Instant::from_nanos(9));
        assert_eq!(b.since(a), Duration::from_nanos(4));
        assert_eq!(a.since(b), Duration::ZERO);
    }

    #[test]
    fn seconds_round_to_the_nearest_nanosecond_and_refuse_nonsense() {
        assert_eq!(Instant::from_secs_f64(0.1).as_nanos(), 100_000_000);
        assert_eq!(Instant::from_secs_f64(-1.0), Instant::ZERO);
        assert_eq!(Instant::from_secs_f64(f64::NAN), Instant::ZERO);
    }
}
