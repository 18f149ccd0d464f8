//! The round trip without queues, and whether a queue stands on the path: for schemes that tell a full path from a
//! lossy one.
//!
//! The base is the least sample of the last half to whole minute: a flow that shares a buffer with loss-based ones sees
//! them drain the buffer more often than that, and a route that has become longer is believed within a minute.

use fairpace_units::{Duration, Instant};

/// The least samples are kept for so long, and one period more.
const PERIOD: Duration = Duration::from_secs(30);

/// Less waiting than this is no queue but a radio link's jitter. On a long path, too: there a sender hears of a queue
/// later, and has to heed less of it.
const LEAST_QUEUE: Duration = Duration::from_millis(15);

/// The least round trips of this period and the last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BaseRtt {
    began: Instant,
    this: Duration,
    last: Duration,
}

impl BaseRtt {
    /// Nothing is known.
    pub(crate) const fn new() -> BaseRtt {
        BaseRtt { began: Instant::ZERO, this: Duration::MAX, last: Duration::MAX }
    }

    /// A round trip was measured.
    pub(crate) fn on_sample(&mut self, now: Instant, rtt: Duration) {
        let age = now.since(self.began);
        if age >= PERIOD {
            self.last = self.this;
            self.this = Duration::MAX;
            self.began = now;
        }
        self.this = self.this.min(rtt);
    }

    /// The round trip without queues; `None` before the first sample.
    pub(crate) fn base(&self) -> Option<Duration> {
        let base = self.this.min(self.last);
        (base < Duration::MAX).then_some(base)
    }

    /// The part of a round trip that is waiting.
    pub(crate) fn waiting(&self, rtt: Duration) -> Duration {
        self.base().map_or(Duration::ZERO, |base| rtt.saturating_sub(base))
    }

    /// Whether a round trip shows a queue.
    pub(crate) fn shows_queue(&self, rtt: Duration) -> bool {
        self.waiting(rtt) > LEAST_QUEUE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(s: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(s)
    }

    #[test]
    fn the_base_is_the_least_sample_of_the_last_half_to_whole_minute() {
        let mut rtt = BaseRtt::new();
        assert_eq!(rtt.base(), None);
        assert!(!rtt.shows_queue(Duration::from_secs(5)), "nothing is known yet");
        let ms = Duration::from_millis;
        for (second, sample, base) in
            [(0, 100, 100), (10, 300, 100), (31, 300, 100), (59, 200, 100), (62, 250, 200), (93, 400, 250)]
        {
            rtt.on_sample(at(second), ms(sample));
            assert_eq!(rtt.base(), Some(ms(base)), "after {second} s");
        }
    }

    #[test]
    fn a_queue_is_waiting_beyond_15_ms_however_long_the_path() {
        for (base, none, queue) in [(20, 35, 36), (250, 265, 266), (550, 565, 566)] {
            let ms = Duration::from_millis;
            let mut rtt = BaseRtt::new();
            rtt.on_sample(at(1), ms(base));
            assert!(!rtt.shows_queue(ms(none)), "{none} ms where the base is {base} ms");
            assert!(rtt.shows_queue(ms(queue)), "{queue} ms where the base is {base} ms");
        }
    }
}
