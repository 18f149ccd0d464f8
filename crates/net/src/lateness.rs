//! How late things happened: what a paced sender and a relay report about themselves.

use fairpace_units::Duration;
use hdrhistogram::Histogram;

/// Everything from 1 ns to 10 s, to two digits (1 %): the table stays in the processor's cache.
const HIGHEST_NS: u64 = 10_000_000_000;

/// Collects lateness (time of the act minus time it was due). Bounded memory: a histogram.
#[derive(Clone, Debug)]
pub struct LatenessHistogram {
    nanos: Histogram<u64>,
}

impl Default for LatenessHistogram {
    fn default() -> Self {
        Self::new()
    }
}

impl LatenessHistogram {
    /// Nothing measured.
    pub fn new() -> LatenessHistogram {
        // The bounds are constants for which the constructor cannot fail (1 <= low, 2 low <= high,
        // digits <= 5); `test_bounds` below would show it.
        let nanos = Histogram::new_with_bounds(1, HIGHEST_NS, 2).unwrap_or_else(|_| unreachable!());
        LatenessHistogram { nanos }
    }

    /// One more act, this much after it was due.
    pub fn record(&mut self, late: Duration) {
        self.nanos.saturating_record(u64::try_from(late.as_nanos()).unwrap_or(HIGHEST_NS));
    }

    /// Adds what another has collected.
    pub fn merge(&mut self, other: &LatenessHistogram) {
        for v in other.nanos.iter_recorded() {
            self.nanos.saturating_record_n(v.value_iterated_to(), v.count_at_value());
        }
    }

    /// The percentiles so far.
    pub fn summary(&self) -> LatenessSummary {
        let at = |q: f64| Duration::from_nanos(if self.nanos.is_empty() { 0 } else { self.nanos.value_at_quantile(q) });
        LatenessSummary {
            count: self.nanos.len(),
            p50: at(0.5),
            p99: at(0.99),
            p999: at(0.999),
            max: Duration::from_nanos(self.nanos.max()),
        }
    }
}

/// Percentiles of lateness; zero when nothing was measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LatenessSummary {
    /// How many were measured.
    pub count: u64,
    /// Half were later than this.
    pub p50: Duration,
    /// One in a hundred was later.
    pub p99: Duration,
    /// One in a thousand was later.
    pub p999: Duration,
    /// The latest of all.
    pub max: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_what_was_recorded() {
        let mut l = LatenessHistogram::new();
        for us in 1..=1_000 {
            l.record(Duration::from_micros(us));
        }
        let s = l.summary();
        assert_eq!(s.count, 1_000);
        // two significant digits: 500 us to +-5 us
        assert!(s.p50.abs_diff(Duration::from_micros(500)) <= Duration::from_micros(5), "{s:?}");
        assert!(s.p99.abs_diff(Duration::from_micros(990)) <= Duration::from_micros(10), "{s:?}");
        assert!(s.max >= Duration::from_micros(1_000) && s.max < Duration::from_micros(1_010), "{s:?}");
    }

    #[test]
    fn nothing_measured_is_zero_and_an_hour_is_the_ceiling() {
        assert_eq!(LatenessHistogram::new().summary(), LatenessSummary::default());
        let mut l = LatenessHistogram::new();
        l.record(Duration::from_secs(3_600));
        assert!(l.summary().max <= Duration::from_millis(10_100), "{:?}", l.summary());
    }

    #[test]
    fn merging_keeps_counts_and_percentiles() {
        let (mut a, mut b) = (LatenessHistogram::new(), LatenessHistogram::new());
        a.record(Duration::from_micros(10));
        b.record(Duration::from_micros(1_000));
        a.merge(&b);
        assert_eq!(a.summary().count, 2);
        assert!(a.summary().max >= Duration::from_micros(999));
    }
}
