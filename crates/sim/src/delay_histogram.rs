//! How long packets took: a distribution of delays in little memory.

use fairpace_units::Duration;

/// Delays; number, mean, least and greatest are exact. The distribution is in microseconds: to 3 significant
/// digits, or, for each flow of a run of many, to a sixteenth of an octave (4 %), which takes hundreds of bytes
/// instead of thousands.
#[derive(Clone, Debug)]
pub struct DelayHistogram {
    counts: Counts,
    sum_ns: u128,
    count: u64,
    min: u64,
    max: u64,
}

#[derive(Clone, Debug)]
enum Counts {
    Fine(Buckets),
    /// And the bucket of the last delays, whose number is in no bucket yet: delays are often like the one before.
    Coarse {
        last: u16,
        number: u32,
        buckets: Buckets,
    },
}

/// The delays in each bucket of a row of buckets, outside which there are none.
#[derive(Clone, Debug, Default)]
struct Buckets {
    first: u32,
    counts: Vec<u32>,
}

/// Longer delays are counted as this: 1,000 s.
const MAX_US: u64 = 1_000_000_000;

/// log2 of the buckets per octave: 1,024 are three digits, 16 a coarse histogram's.
const FINE_BITS: u32 = 10;
const COARSE_BITS: u32 = 4;

/// The bucket of a delay: its octave, and which part of it. Short delays have a bucket each.
#[inline]
fn bucket(us: u64, bits: u32) -> u64 {
    let octave = us.checked_ilog2().unwrap_or(0).saturating_sub(bits);
    (u64::from(octave) << bits) + (us >> octave)
}

/// The longest delay in it.
fn bucket_end(bucket: u64, bits: u32) -> u64 {
    let octave = (bucket >> bits).saturating_sub(1);
    ((bucket - (octave << bits) + 1) << octave) - 1
}

impl Default for DelayHistogram {
    fn default() -> Self {
        DelayHistogram::with(Counts::Fine(Buckets::default()))
    }
}

impl DelayHistogram {
    pub(crate) fn coarse() -> Self {
        DelayHistogram::with(Counts::Coarse { last: 0, number: 0, buckets: Buckets::default() })
    }

    fn with(counts: Counts) -> Self {
        DelayHistogram { counts, sum_ns: 0, count: 0, min: u64::MAX, max: 0 }
    }

    pub(crate) fn record(&mut self, delay: Duration) {
        self.record_ns(delay.as_nanos() as u64);
    }

    /// As [`DelayHistogram::record`], of a delay in nanoseconds.
    #[inline(always)]
    pub(crate) fn record_ns(&mut self, ns: u64) {
        self.sum_ns += u128::from(ns);
        self.count += 1;
        if ns < self.min {
            self.min = ns;
        }
        if ns > self.max {
            self.max = ns;
        }
        let us = (ns / 1_000).min(MAX_US);
        match &mut self.counts {
            Counts::Fine(buckets) => buckets.count(bucket(us, FINE_BITS) as u32, 1),
            Counts::Coarse { last, number, buckets } => {
                let bucket = bucket(us, COARSE_BITS) as u16;
                if bucket != *last {
                    buckets.count((*last).into(), *number);
                    (*last, *number) = (bucket, 0);
                }
                *number = number.saturating_add(1);
            }
        }
    }

    pub(crate) fn clear(&mut self) {
        *self = DelayHistogram::with(match self.counts {
            Counts::Fine(_) => Counts::Fine(Buckets::default()),
            Counts::Coarse { .. } => Counts::Coarse { last: 0, number: 0, buckets: Buckets::default() },
        });
    }

    /// Adds those of another fine one.
    pub(crate) fn add(&mut self, other: &DelayHistogram) {
        if let (Counts::Fine(buckets), Counts::Fine(others)) = (&mut self.counts, &other.counts) {
            others.iter().for_each(|(bucket, count)| buckets.count(bucket, count));
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
        if self.count == 0 {
            return Duration::ZERO;
        }
        let wanted = (q.clamp(0.0, 1.0) * self.count as f64).ceil() as u64;
        let us = match &self.counts {
            Counts::Fine(_) if wanted == 0 => return self.min(),
            Counts::Fine(buckets) => buckets.reached(wanted, FINE_BITS),
            Counts::Coarse { last, number, buckets } => {
                let mut buckets = buckets.clone();
                buckets.count((*last).into(), *number);
                buckets.reached(wanted, COARSE_BITS)
            }
        };
        Duration::from_micros(us).clamp(self.min(), self.max())
    }

    /// The share of the delays from `least` on, to a bucket; `None` if nothing was recorded, or not to 3 digits.
    pub fn share_from(&self, least: Duration) -> Option<f64> {
        let Counts::Fine(buckets) = &self.counts else { return None };
        let us = u64::try_from(least.as_micros()).unwrap_or(u64::MAX).min(MAX_US);
        let skipped = (bucket(us, FINE_BITS) as u32).saturating_sub(buckets.first);
        let above: u64 = buckets.counts.iter().skip(skipped as usize).map(|count| u64::from(*count)).sum();
        (self.count > 0).then(|| above as f64 / self.count as f64)
    }
}

impl Buckets {
    /// Counts so many delays in their bucket.
    #[inline(always)]
    fn count(&mut self, bucket: u32, number: u32) {
        match self.counts.get_mut(bucket.wrapping_sub(self.first) as usize) {
            Some(count) => *count = count.saturating_add(number),
            None => self.count_outside(bucket, number),
        }
    }

    /// Counts delays, if any, in a bucket outside those that have counts: the counts grow to it, and downwards by half of what they were.
    #[cold]
    fn count_outside(&mut self, bucket: u32, number: u32) {
        if number == 0 {
            return;
        }
        let Buckets { first, counts } = self;
        if counts.is_empty() {
            *first = bucket;
        }
        if bucket < *first {
            let lower = bucket.saturating_sub(counts.len() as u32 / 2);
            counts.splice(0..0, std::iter::repeat_n(0, (*first - lower) as usize));
            *first = lower;
        }
        let place = (bucket - *first) as usize;
        if place >= counts.len() {
            counts.resize(place + 1, 0);
        }
        counts[place] += number;
    }

    /// Those that are not empty, and how many delays are in them.
    fn iter(&self) -> impl Iterator<Item = (u32, u32)> {
        (self.first..).zip(self.counts.iter().copied()).filter(|(_, count)| *count > 0)
    }

    /// The end of the bucket with which so many delays are reached.
    fn reached(&self, wanted: u64, bits: u32) -> u64 {
        let mut so_far = 0;
        let reached = self.iter().find(|(_, count)| {
            so_far += u64::from(*count);
            so_far >= wanted
        });
        reached.map_or(0, |(bucket, _)| bucket_end(bucket.into(), bits))
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
            for bits in [COARSE_BITS, FINE_BITS] {
                let bucket = bucket(us, bits);
                assert!(us <= bucket_end(bucket, bits) && (bucket == 0 || us > bucket_end(bucket - 1, bits)), "{us}");
            }
        }
    }
}
