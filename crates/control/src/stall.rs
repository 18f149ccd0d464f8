//! Drivers that come back too late, because their machine slept or their process was stopped.

use fairpace_units::{Duration, Instant};

/// A driver that comes back later than this after the instant it was told was not running: nothing could be heard meanwhile.
const STALL: Duration = Duration::from_secs(1);

/// Until when a driver was told that it may sleep.
#[derive(Clone, Copy, Debug)]
pub struct Promise(Instant);

impl Default for Promise {
    /// A driver that was told nothing yet is not late.
    fn default() -> Self {
        Promise(Instant::NEVER)
    }
}

impl Promise {
    /// The driver is told that it may sleep until then.
    #[inline]
    pub const fn set(&mut self, until: Instant) {
        self.0 = until;
    }

    /// The driver is here at `now`. Gives how late it is, if that is more than a second, once for each time.
    #[inline]
    pub fn stall(&mut self, now: Instant) -> Option<Duration> {
        let late = now.since(self.0);
        self.0 = self.0.max(now);
        (late > STALL).then_some(late)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::at;

    #[test]
    fn a_driver_is_late_once_and_only_by_more_than_a_second() {
        let mut promise = Promise::default();
        assert_eq!(promise.stall(at(100.0)), None);
        promise.set(at(101.0));
        assert_eq!((promise.stall(at(100.5)), promise.stall(at(102.0))), (None, None));
        assert_eq!(promise.stall(at(105.0)), Some(Duration::from_secs(3)));
        assert_eq!(promise.stall(at(105.5)), None);
    }
}
