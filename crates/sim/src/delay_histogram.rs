//! How long packets took: a distribution of delays in little memory.

use fairpace_units::Duration;

/// Delays; number, mean, least and greatest are exact. The distribution is in microseconds: to 3 significant
/// digits, or, for each flow of a run of many, to a sixteenth of an octave (4 %), which takes hundreds of bytes
/// instead of thousands.
///
/// In one cache line, beside the counts of its buckets.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct DelayHistogram {
    /// The delays in each of a row of buckets, outside which there are none.
    buckets: Box<[u32]>,
    /// Number of the first of these.
    first: u32,
    /// The sum in nanoseconds: above the lowest 64 bits, and these.
    sum_high: u32,
    sum_low: u64,
    count: u64,
    min: u64,
    max: u64,
    /// Of a coarse one: the bucket of the last delays, whose number is in no bucket yet, since delays are often like the one before.
    last: u16,
    fine: bool,
    number: u32,
}

const _: () = assert!(size_of::<DelayHistogram>() == 64);

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

/// The coarse bucket of a delay whose fine one is known.
#[inline(always)]
fn coarser(fine: u64) -> u64 {
    const SKIPPED: u64 = ((FINE_BITS - COARSE_BITS) << COARSE_BITS) as u64;
    // Short delays' fine buckets are no parts of octaves.
    if fine < 1 << FINE_BITS { bucket(fine, COARSE_BITS) } else { SKIPPED + (fine >> (FINE_BITS - COARSE_BITS)) }
}

/// The longest delay in it.
fn bucket_end(bucket: u64, bits: u32) -> u64 {
    let octave = (bucket >> bits).saturating_sub(1);
    ((bucket - (octave << bits) + 1) << octave) - 1
}

impl Default for DelayHistogram {
    fn default() -> Self {
        DelayHistogram::new(true)
    }
}

impl DelayHistogram {
    pub(crate) fn coarse() -> Self {
        DelayHistogram::new(false)
    }

    fn new(fine: bool) -> Self {
        DelayHistogram {
            buckets: Box::default(),
            first: 0,
            sum_high: 0,
            sum_low: 0,
            count: 0,
            min: u64::MAX,
            max: 0,
            last: 0,
            fine,
            number: 0,
        }
    }

    pub(crate) fn record(&mut self, delay: Duration) {
        self.record_ns(delay.as_nanos() as u64);
    }

    /// As [`DelayHistogram::record`], of a delay in nanoseconds.
    #[inline(always)]
    pub(crate) fn record_ns(&mut self, ns: u64) {
        let fine = self.note(ns);
        if self.fine {
            self.count_in(fine as u32, 1);
        } else {
            self.count_coarsely(fine);
        }
    }

    /// As [`DelayHistogram::record_ns`] of a coarse one, whose delays with those of others are in `all`, a fine one: there only in the buckets, until
    /// [`DelayHistogram::add`] is told of each of the others.
    #[inline(always)]
    pub(crate) fn record_among(&mut self, ns: u64, all: &mut DelayHistogram) {
        let fine = self.note(ns);
        all.count_in(fine as u32, 1);
        self.count_coarsely(fine);
    }

    /// The delay is in the number, the sum, the least and the greatest. Its fine bucket.
    #[inline(always)]
    fn note(&mut self, ns: u64) -> u64 {
        let (sum, carry) = self.sum_low.overflowing_add(ns);
        self.sum_low = sum;
        self.sum_high += u32::from(carry);
        self.count += 1;
        if ns < self.min {
            self.min = ns;
        }
        if ns > self.max {
            self.max = ns;
        }
        bucket((ns / 1_000).min(MAX_US), FINE_BITS)
    }

    /// Counts a delay in the coarse bucket that the fine one is in.
    #[inline(always)]
    fn count_coarsely(&mut self, fine: u64) {
        let bucket = coarser(fine) as u16;
        if bucket != self.last {
            self.count_in(self.last.into(), self.number);
            (self.last, self.number) = (bucket, 0);
        }
        self.number = self.number.saturating_add(1);
    }

    /// Counts so many delays in their bucket.
    #[inline(always)]
    fn count_in(&mut self, bucket: u32, number: u32) {
        match self.buckets.get_mut(bucket.wrapping_sub(self.first) as usize) {
            Some(count) => *count = count.saturating_add(number),
            None => self.count_outside(bucket, number),
        }
    }

    /// Counts delays, if any, in a bucket outside those that have counts: these grow to it, by half of what they were at least.
    #[cold]
    fn count_outside(&mut self, bucket: u32, number: u32) {
        if number == 0 {
            return;
        }
        let mut counts = std::mem::take(&mut self.buckets).into_vec();
        let more = counts.len() as u32 / 2;
        if counts.is_empty() {
            self.first = bucket;
        }
        if bucket < self.first {
            let lower = bucket.min(self.first.saturating_sub(more));
            counts.splice(0..0, std::iter::repeat_n(0, (self.first - lower) as usize));
            self.first = lower;
        }
        let place = (bucket - self.first) as usize;
        if place >= counts.len() {
            let len = (place + 1).max(counts.len() + more as usize);
            counts.reserve_exact(len - counts.len());
            counts.resize(len, 0);
        }
        counts[place] += number;
        self.buckets = counts.into_boxed_slice();
    }

    pub(crate) fn clear(&mut self) {
        *self = DelayHistogram::new(self.fine);
    }

    /// Adds those of another one; to a fine one those of a coarse one without their distribution.
    pub(crate) fn add(&mut self, other: &DelayHistogram) {
        if self.fine && other.fine {
            other.iter().for_each(|(bucket, count)| self.count_in(bucket, count));
        }
        let (sum, carry) = self.sum_low.overflowing_add(other.sum_low);
        self.sum_low = sum;
        self.sum_high += other.sum_high + u32::from(carry);
        self.count += other.count;
        (self.min, self.max) = (self.min.min(other.min), self.max.max(other.max));
    }

    /// Number and sum in nanoseconds so far.
    pub(crate) fn total(&self) -> (u64, u128) {
        (self.count, u128::from(self.sum_high) << 64 | u128::from(self.sum_low))
    }

    /// Delays recorded.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Mean; zero if nothing was recorded.
    pub fn mean(&self) -> Duration {
        let (count, sum) = self.total();
        Duration::from_nanos(sum.checked_div(u128::from(count)).unwrap_or(0) as u64)
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
        let us = if self.fine {
            if wanted == 0 {
                return self.min();
            }
            self.reached(wanted, FINE_BITS)
        } else {
            let mut all = self.clone();
            all.count_in(self.last.into(), self.number);
            all.reached(wanted, COARSE_BITS)
        };
        Duration::from_micros(us).clamp(self.min(), self.max())
    }

    /// The share of the delays from `least` on, to a bucket; `None` if nothing was recorded, or not to 3 digits.
    pub fn share_from(&self, least: Duration) -> Option<f64> {
        if !self.fine || self.count == 0 {
            return None;
        }
        let us = u64::try_from(least.as_micros()).unwrap_or(u64::MAX).min(MAX_US);
        let skipped = (bucket(us, FINE_BITS) as u32).saturating_sub(self.first);
        let above: u64 = self.buckets.iter().skip(skipped as usize).map(|count| u64::from(*count)).sum();
        Some(above as f64 / self.count as f64)
    }

    /// The buckets that are not empty, and how many delays are in them.
    fn iter(&self) -> impl Iterator<Item = (u32, u32)> {
        (self.first..).zip(self.buckets.iter().copied()).filter(|(_, count)| *count > 0)
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
    fn what_is_recorded_of_each_among_all_is_what_all_would_have_recorded() {
        let (mut alone, mut all) = (DelayHistogram::default(), DelayHistogram::default());
        let mut each = [(); 3].map(|()| DelayHistogram::coarse());
        // The sum passes 64 bits.
        for ns in (1..=90_u64).map(|i| i * i * i * 1_000_003 + ((i % 3) << 58)) {
            alone.record_ns(ns);
            each[(ns % 3) as usize].record_among(ns, &mut all);
        }
        each.iter().for_each(|one| all.add(one));
        assert!(alone.total().1 > u128::from(u64::MAX));
        assert_eq!(alone.total(), all.total());
        for q in [0.0, 0.1, 0.5, 0.99, 1.0] {
            assert_eq!(alone.quantile(q), all.quantile(q));
        }
        assert_eq!(alone.share_from(Duration::from_secs(500)), all.share_from(Duration::from_secs(500)));
        assert_eq!((alone.min(), alone.max(), alone.mean()), (all.min(), all.max(), all.mean()));
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
            assert_eq!(coarser(bucket(us, FINE_BITS)), bucket(us, COARSE_BITS), "{us}");
        }
    }
}
