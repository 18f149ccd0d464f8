//! How long packets took: a distribution of delays in little memory.

use fairpace_units::Duration;
use hdrhistogram::Histogram;

/// Delays; number, mean, least and greatest are exact. The distribution is in microseconds: to 3 significant
/// digits, or, for each flow of a run of many, to a sixteenth of an octave (4 %), which takes hundreds of bytes
/// instead of tens of thousands.
#[derive(Clone, Debug)]
pub struct DelayHistogram {
    counts: Counts,
    sum_ns: u128,
    count: u64,
    min: u64,
    max: u64,
}

/// Made with the first delay: an empty fine one takes 8 kB, a usual one 60.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)] // in a box it would cost a cache miss per packet
enum Counts {
    Fine(Option<Histogram<u32>>),
    /// Buckets that are not empty and how many delays are in them, in order.
    Coarse(Vec<(u16, u32)>),
}

/// Longer delays are counted as this: 1,000 s.
const MAX_US: u64 = 1_000_000_000;

/// log2 of the buckets per octave of a coarse histogram.
const COARSE_BITS: u32 = 4;

/// The coarse bucket of a delay: its octave, and which sixteenth of it.
fn coarse_bucket(us: u64) -> u16 {
    let octave = us.checked_ilog2().unwrap_or(0).saturating_sub(COARSE_BITS);
    (u64::from(octave) * (1 << COARSE_BITS) + (us >> octave)) as u16
}

/// The longest delay in it.
fn coarse_end(bucket: u16) -> u64 {
    let each = 1 << COARSE_BITS;
    let octave = (u64::from(bucket) / each).saturating_sub(1);
    ((u64::from(bucket) - octave * each + 1) << octave) - 1
}

impl Default for DelayHistogram {
    fn default() -> Self {
        DelayHistogram::with(Counts::Fine(None))
    }
}

impl DelayHistogram {
    pub(crate) fn coarse() -> Self {
        DelayHistogram::with(Counts::Coarse(Vec::new()))
    }

    fn with(counts: Counts) -> Self {
        DelayHistogram { counts, sum_ns: 0, count: 0, min: u64::MAX, max: 0 }
    }

    #[inline]
    pub(crate) fn record(&mut self, delay: Duration) {
        let ns = delay.as_nanos() as u64;
        self.sum_ns += u128::from(ns);
        self.count += 1;
        self.min = self.min.min(ns);
        self.max = self.max.max(ns);
        let us = (ns / 1_000).min(MAX_US);
        match &mut self.counts {
            Counts::Fine(histogram) => {
                // Three digits are allowed; it grows by itself up to the bound, and cannot fail below it.
                let made = || Histogram::new(3).expect("3 digits are allowed");
                let _ = histogram.get_or_insert_with(made).record(us);
            }
            Counts::Coarse(buckets) => {
                let bucket = coarse_bucket(us);
                match buckets.binary_search_by_key(&bucket, |(b, _)| *b) {
                    Ok(place) => buckets[place].1 += 1,
                    Err(place) => buckets.insert(place, (bucket, 1)),
                }
            }
        }
    }

    pub(crate) fn clear(&mut self) {
        *self = DelayHistogram::with(match self.counts {
            Counts::Fine(_) => Counts::Fine(None),
            Counts::Coarse(_) => Counts::Coarse(Vec::new()),
        });
    }

    /// Adds those of another fine one.
    pub(crate) fn add(&mut self, other: &DelayHistogram) {
        if let (Counts::Fine(mine), Counts::Fine(Some(others))) = (&mut self.counts, &other.counts) {
            match mine {
                // Same digits, and it grows by itself: cannot fail.
                Some(mine) => drop(mine.add(others)),
                None => *mine = Some(others.clone()),
            }
        }
        self.sum_ns += other.sum_ns;
        self.count += other.count;
        (self.min, self.max) = (self.min.min(other.min), self.max.max(other.max));
    }

    /// Number and sum in nanoseconds so far.
    pub(crate) const fn total(&self) -> (u64, u128) {
        (self.count, self.sum_ns)
    }

    /// Delays recorded.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Mean; zero if nothing was recorded.
    pub fn mean(&self) -> Duration {
        Duration::from_nanos((self.sum_ns.checked_div(u128::from(self.count)).unwrap_or(0)) as u64)
    }

    /// Least; zero if nothing was recorded.
    pub fn min(&self) -> Duration {
        Duration::from_nanos(if self.count == 0 { 0 } else { self.min })
    }

    /// Greatest; zero if nothing was recorded.
    pub fn max(&self) -> Duration {
        Duration::from_nanos(self.max)
    }

    /// The delay that a fraction `q` in `[0, 1]` of the packets did not exceed.
    pub fn quantile(&self, q: f64) -> Duration {
        let us = match &self.counts {
            Counts::Fine(None) => return Duration::ZERO,
            Counts::Fine(Some(histogram)) => histogram.value_at_quantile(q),
            Counts::Coarse(buckets) => {
                let wanted = (q.clamp(0.0, 1.0) * self.count as f64).ceil() as u64;
                let mut so_far = 0;
                let reached = buckets.iter().find(|(_, n)| {
                    so_far += u64::from(*n);
                    so_far >= wanted
                });
                reached.map_or(0, |(bucket, _)| coarse_end(*bucket))
            }
        };
        if self.count == 0 {
            return Duration::ZERO;
        }
        Duration::from_micros(us).clamp(self.min(), self.max())
    }

    /// The counts behind it, in microseconds; `None` if nothing was recorded, or not to 3 digits.
    pub fn histogram(&self) -> Option<&Histogram<u32>> {
        match &self.counts {
            Counts::Fine(histogram) => histogram.as_ref(),
            Counts::Coarse(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_right_to_one_in_a_thousand_and_the_ends_are_exact() {
        let mut h = DelayHistogram::default();
        assert_eq!((h.mean(), h.quantile(0.5), h.min()), (Duration::ZERO, Duration::ZERO, Duration::ZERO));
        for ms in 1..=1_000 {
            h.record(Duration::from_millis(ms));
        }
        assert_eq!((h.min(), h.max()), (Duration::from_millis(1), Duration::from_secs(1)));
        assert_eq!(h.mean(), Duration::from_micros(500_500));
        let p95 = h.quantile(0.95).as_secs_f64();
        assert!((0.949..=0.951).contains(&p95), "{p95}");
    }

    #[test]
    fn coarse_quantiles_are_at_most_a_sixteenth_too_long() {
        let mut h = DelayHistogram::coarse();
        assert_eq!((h.quantile(0.5), h.count()), (Duration::ZERO, 0));
        for ms in 1..=1_000 {
            h.record(Duration::from_millis(ms));
        }
        assert_eq!((h.min(), h.max(), h.quantile(1.0)), (Duration::from_millis(1), h.max(), Duration::from_secs(1)));
        for percent in 1..=100 {
            let (got, exact) = (h.quantile(f64::from(percent) / 100.0).as_secs_f64(), f64::from(percent) / 100.0);
            assert!((1.0..=1.0625).contains(&(got / exact)), "{percent}: {got}");
        }
        // Each bucket begins where the one before it ends.
        for us in (0..100_000).chain((0..1_000).map(|i| i * 1_000_003)) {
            let bucket = coarse_bucket(us);
            assert!(us <= coarse_end(bucket) && (bucket == 0 || us > coarse_end(bucket - 1)), "{us}");
        }
    }
}
