//! A rate over time, in integers: 1/1024 bit/s and nanoseconds.

use fairpace_units::{Instant, Rate};

/// Rate units in one bit/s. 1 Pbit/s still fits 60 bits; half a unit is 0.0005 bit/s.
pub(crate) const UNITS_PER_BPS: f64 = 1_024.0;

/// The integer form of a rate.
pub(crate) fn rate_units(rate: Rate) -> u64 {
    (rate.as_bps() * UNITS_PER_BPS + 0.5) as u64
}

/// The rate of an integer form.
pub(crate) fn rate_of_units(units: u64) -> Rate {
    Rate::bps(units as f64 / UNITS_PER_BPS)
}

/// A rate that changes in steps, for ever or repeating.
#[derive(Clone, Debug, PartialEq, Hash)]
pub(crate) struct Steps {
    /// From when, since the beginning of the repetition in nanoseconds; how fast, in rate units.
    /// The first is at zero, the others increase.
    entries: Vec<(u64, u64)>,
    /// The work carried before each entry, in rate units × nanoseconds.
    before: Vec<u128>,
    pub(crate) period: Option<u64>,
    pub(crate) work_per_period: u128,
}

impl Steps {
    /// `None` if there is no rate above zero.
    pub(crate) fn new(entries: Vec<(u64, u64)>, period: Option<u64>) -> Option<Self> {
        if entries.iter().all(|&(_, rate)| rate == 0) {
            return None;
        }
        let mut before = Vec::with_capacity(entries.len());
        let mut sum = 0;
        for (i, &(at, rate)) in entries.iter().enumerate() {
            before.push(sum);
            let end = entries.get(i + 1).map_or(period.unwrap_or(at), |next| next.0);
            sum += u128::from(end - at) * u128::from(rate);
        }
        Some(Steps { entries, before, period, work_per_period: sum })
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The rate of a step, and when it ends since the beginning of the repetition.
    pub(crate) fn get(&self, index: usize) -> (u64, u64) {
        let end = self.entries.get(index + 1).map(|next| next.0).or(self.period).unwrap_or(u64::MAX);
        (self.entries.get(index).map_or(0, |entry| entry.1), end)
    }

    /// The step at `ns`: when its repetition began, and its index.
    pub(crate) fn find(&self, ns: u64) -> (u64, usize) {
        let base = self.period.map_or(0, |period| ns / period * period);
        (base, self.entries.partition_point(|&(at, _)| at <= ns - base) - 1)
    }

    pub(crate) fn rate_at(&self, now: Instant) -> Rate {
        let (_, index) = self.find(now.as_nanos());
        rate_of_units(self.get(index).0)
    }

    /// The work that could have been carried from the beginning of the run to `now`, in rate units × ns.
    pub(crate) fn work_before(&self, now: Instant) -> u128 {
        let (base, index) = self.find(now.as_nanos());
        let repetitions = self.period.map_or(0, |period| base / period);
        let (at, rate) = self.entries[index];
        u128::from(repetitions) * self.work_per_period
            + self.before[index]
            + u128::from(now.as_nanos() - base - at) * u128::from(rate)
    }
}
