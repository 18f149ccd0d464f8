//! A rate over at least some time: what came since the last mark, or the one before it.

use fairpace_units::{Duration, Instant};

/// A count that only grows, and what it was at two earlier times.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meter {
    bytes: u64,
    /// The older mark and the newer one: a time and the count then.
    marks: [(Instant, u64); 2],
}

impl Meter {
    /// Nothing counted, at `now`.
    pub(crate) fn starting(now: Instant) -> Meter {
        Meter { bytes: 0, marks: [(now, 0); 2] }
    }

    pub(crate) fn add(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Bytes per second over `span` or longer, but no longer than marks and `span` make necessary;
    /// `None` while no time has passed.
    pub(crate) fn rate(&self, now: Instant, span: Duration) -> Option<f64> {
        let [old, new] = self.marks;
        let (at, bytes) = if now.since(new.0) >= span { new } else { old };
        let time = now.since(at).as_secs_f64();
        (time > 0.0).then(|| (self.bytes - bytes) as f64 / time)
    }

    /// The next rate need not reach back beyond `now`, if it is `span` after the last mark.
    pub(crate) fn mark(&mut self, now: Instant, span: Duration) {
        let [_, new] = self.marks;
        if now.since(new.0) >= span {
            self.marks = [new, (now, self.bytes)];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPAN: Duration = Duration::from_millis(100);

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn a_rate_covers_the_time_since_the_last_mark_that_is_long_enough_ago() {
        let mut m = Meter::starting(at(0));
        assert_eq!(m.rate(at(0), SPAN), None);
        m.add(1_000);
        assert_eq!(m.rate(at(100), SPAN), Some(10_000.0));
        m.mark(at(100), SPAN);
        m.add(500);
        // 20 ms after the mark: 1,500 bytes in 120 ms
        assert_eq!(m.rate(at(120), SPAN), Some(12_500.0));
        // too soon for another mark: 500 bytes in 100 ms
        m.mark(at(120), SPAN);
        assert_eq!(m.rate(at(200), SPAN), Some(5_000.0));
    }

    #[test]
    fn a_flood_of_marks_does_not_shorten_the_time() {
        let mut m = Meter::starting(at(0));
        for ms in 1..=1_000 {
            m.add(10);
            let rate = m.rate(at(ms), SPAN).expect("time has passed");
            assert!((rate - 10_000.0).abs() < 1e-6, "{rate}");
            m.mark(at(ms), SPAN);
            let [old, new] = m.marks;
            assert!(at(ms).since(old.0) <= SPAN * 2 && (ms < 100 || at(ms).since(old.0) >= SPAN), "{old:?} {new:?}");
        }
    }
}
