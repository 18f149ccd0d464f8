//! A play-out delay that suits what comes.
//!
//! ```text
//! lateness(n) = ready(n) - capture(n) - least transit       how long frame n needed beyond the fastest
//! needed      = the 99 % quantile of lateness over the last 20 s or so, and 30 ms
//! floor       = round trip + 150 ms where lost packets are asked for again, else 100 ms
//! delay       -> max(needed, floor), at most 2 s: at once if that is more, by 10 ms a second if it is less
//!             from 500 ms on: what the path does while the flow finds its rate is not known yet
//! growth      two frames in a row (200 ms at most) came too late, the second later than the first: a queue grows. The delay is that of the second, and
//!             as much more as four further frames will need if the queue goes on like that
//! ```
//!
//! The round trip is that of a request and its answer, so that queues on the path and at the sender are in it. A frame that needed
//! more than the most is none to wait for: a blackout, say.

use fairpace_units::Duration;

/// Bounds of an adaptive play-out delay.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Adaptive {
    /// Never shorter.
    pub least: Duration,
    /// Never longer.
    pub most: Duration,
}

impl Default for Adaptive {
    /// 100 ms to 2 s.
    fn default() -> Self {
        Adaptive { least: Duration::from_millis(100), most: Duration::from_secs(2) }
    }
}

/// Beyond the round trip: what a packet's loss needs to be noticed, and its answer to be queued.
const REPAIR_MARGIN: Duration = Duration::from_millis(150);
/// Beyond what the frames needed.
const MARGIN: Duration = Duration::from_millis(30);
/// Width of a bin of the histogram.
const BIN: Duration = Duration::from_millis(10);
/// The share of the frames that is to be in time.
const QUANTILE: f64 = 0.99;
/// A frame's weight falls to 1/e after so many: 20 s at 25 frames/s.
const MEMORY: f64 = 500.0;
/// The delay falls by so much of the time that passes: nobody notices.
const FALL: f64 = 0.01;
/// While a queue grows every frame is later than the one before, and a quantile of the past comes too late for each of them.
const FRAMES_AHEAD: u32 = 4;
/// Frames further apart are not in a row: what is between them was lost, or the source paused.
const IN_A_ROW: Duration = Duration::from_millis(200);

/// The estimator.
#[derive(Clone, Debug)]
pub(super) struct AdaptiveDelay {
    bounds: Adaptive,
    /// Weights by lateness, a bin each.
    bins: Vec<f64>,
    total: f64,
    /// The weight of the next frame: grows, which is the same as the others' shrinking.
    weight: f64,
    /// Of a request and its answer; `None` where nothing is asked for again.
    answer: Option<Duration>,
    delay: Duration,
    /// Of the frame before, if that was too late.
    too_late: Option<Duration>,
}

impl AdaptiveDelay {
    pub(super) fn new(bounds: Adaptive, first: Duration) -> Self {
        let bins = (bounds.most.as_nanos() / BIN.as_nanos()) as usize + 1;
        let delay = first.clamp(bounds.least, bounds.most.max(bounds.least));
        AdaptiveDelay { bounds, bins: vec![0.0; bins], total: 0.0, weight: 1.0, answer: None, delay, too_late: None }
    }

    pub(super) const fn delay(&self) -> Duration {
        self.delay
    }

    /// A request and its answer take so long.
    pub(super) fn set_answer(&mut self, answer: Duration) {
        self.answer = Some(answer);
        self.delay = self.delay.max(self.wanted(self.answer));
    }

    /// A frame was decodable so long after the least transit; `passed`: media time since the one before.
    pub(super) fn on_frame(&mut self, lateness: Duration, passed: Duration) {
        if passed > IN_A_ROW {
            self.too_late = None;
        }
        let bin = (lateness.as_nanos() / BIN.as_nanos()) as usize;
        if let Some(bin) = self.bins.get_mut(bin) {
            *bin += self.weight;
            self.total += self.weight;
            self.weight *= 1.0 + 1.0 / MEMORY;
            if self.weight > 1e12 {
                let scale = 1.0 / self.weight;
                self.bins.iter_mut().for_each(|bin| *bin *= scale);
                (self.total, self.weight) = (self.total * scale, 1.0);
            }
        }
        let wanted = self.wanted(self.answer).max(self.ahead(lateness));
        self.delay =
            if wanted > self.delay { wanted } else { wanted.max(self.delay.saturating_sub(passed.mul_f64(FALL))) };
    }

    /// A frame was never decodable: those around it are not in a row.
    pub(super) fn on_missing(&mut self) {
        self.too_late = None;
    }

    /// The delay that the next frames will need, if a queue grows; zero if not.
    fn ahead(&mut self, lateness: Duration) -> Duration {
        let is_late = lateness > self.delay && lateness <= self.bounds.most;
        let before = core::mem::replace(&mut self.too_late, is_late.then_some(lateness));
        match before.filter(|before| is_late && lateness > *before) {
            Some(before) => (lateness + (lateness - before) * FRAMES_AHEAD + MARGIN).min(self.bounds.most),
            None => Duration::ZERO,
        }
    }

    fn wanted(&self, answer: Option<Duration>) -> Duration {
        let floor = answer.map_or(self.bounds.least, |answer| answer + REPAIR_MARGIN);
        let mut above = self.total * (1.0 - QUANTILE);
        let highest = self.bins.iter().enumerate().rev().find(|(_, weight)| {
            above -= **weight;
            above < 0.0
        });
        let needed = highest.map_or(Duration::ZERO, |(bin, _)| BIN * (bin as u32 + 1) + MARGIN);
        floor.max(needed).clamp(self.bounds.least, self.bounds.most.max(self.bounds.least))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: Duration = Duration::from_millis(40);

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    fn auto() -> AdaptiveDelay {
        AdaptiveDelay::new(Adaptive::default(), ms(500))
    }

    #[test]
    fn the_delay_is_a_round_trip_and_a_margin_where_packets_are_asked_for_again() {
        let mut d = auto();
        assert_eq!(d.delay(), ms(500), "nothing is known");
        d.set_answer(ms(50));
        assert_eq!(d.delay(), ms(500), "what the path will do is not known yet");
        d.set_answer(ms(550));
        assert_eq!(d.delay(), ms(700));
        d.set_answer(ms(50));
        assert_eq!(d.delay(), ms(700), "shrinks with time only");
        // 10 ms a second: from 700 to 200 ms in 50 s
        (0..25 * 50).for_each(|_| d.on_frame(ms(5), FRAME));
        assert_eq!(d.delay(), ms(200));
        d.set_answer(ms(5_000));
        assert_eq!(d.delay(), ms(2_000), "the most");
    }

    #[test]
    fn one_frame_in_fifty_that_needs_more_raises_the_delay_and_one_in_two_hundred_does_not() {
        for (each, expected) in [(50, 420 + 30), (200, 100)] {
            let mut d = AdaptiveDelay::new(Adaptive::default(), ms(100));
            for n in 0..4_000 {
                d.on_frame(if n % each == each - 1 { ms(415) } else { ms(15) }, FRAME);
            }
            assert_eq!(d.delay(), ms(expected), "one in {each}");
        }
    }

    #[test]
    fn a_blackout_is_nothing_to_wait_for() {
        let mut d = AdaptiveDelay::new(Adaptive::default(), ms(100));
        (0..1_000).for_each(|_| d.on_frame(ms(10), FRAME));
        (0..100).for_each(|_| d.on_frame(ms(3_500), FRAME));
        assert_eq!(d.delay(), ms(100));
    }

    #[test]
    fn while_a_queue_grows_few_frames_are_too_late_and_repairs_are_no_queue() {
        let mut d = AdaptiveDelay::new(Adaptive::default(), ms(100));
        let late = |d: &mut AdaptiveDelay, lateness: u64| {
            let is_late = ms(lateness) > d.delay();
            d.on_frame(ms(lateness), FRAME);
            usize::from(is_late)
        };
        (0..500).for_each(|_| d.on_frame(ms(10), FRAME));
        // Up to 1.5 s by 30 ms a frame: of each two that come too late the second makes room for four more.
        let too_late: usize = (1..=50).map(|n| late(&mut d, 30 * n)).sum();
        assert!((2..=18).contains(&too_late), "{too_late}");
        assert!((ms(1_500)..=ms(1_700)).contains(&d.delay()), "{:?}", d.delay());
        // Behind a frame that was repaired each comes a little less late.
        let mut d = AdaptiveDelay::new(Adaptive::default(), ms(100));
        (0..2_000).for_each(|_| d.on_frame(ms(10), FRAME));
        for lateness in [400, 360, 320, 280] {
            d.on_frame(ms(lateness), FRAME);
            assert_eq!(d.delay(), ms(100));
        }
        // Two late ones with a lost frame, or a pause, between them are no queue.
        let mut d = AdaptiveDelay::new(Adaptive::default(), ms(100));
        (0..2_000).for_each(|_| d.on_frame(ms(10), FRAME));
        d.on_frame(ms(400), FRAME);
        d.on_missing();
        d.on_frame(ms(500), FRAME);
        d.on_frame(ms(10), FRAME);
        d.on_frame(ms(400), FRAME);
        d.on_frame(ms(500), ms(240));
        assert_eq!(d.delay(), ms(100));
        d.on_frame(ms(600), FRAME);
        assert!(d.delay() >= ms(1_000), "in a row: {:?}", d.delay());
        let mut d = AdaptiveDelay::new(Adaptive::default(), ms(100));
        (0..2_000).for_each(|_| d.on_frame(ms(10), FRAME));
        // A frame that takes longer than the most is behind a blackout, however it goes on.
        d.on_frame(ms(2_100), FRAME);
        d.on_frame(ms(2_200), FRAME);
        assert_eq!(d.delay(), ms(100));
    }

    #[test]
    fn what_was_needed_is_forgotten() {
        let mut d = AdaptiveDelay::new(Adaptive::default(), ms(100));
        (0..500).for_each(|_| d.on_frame(ms(800), FRAME));
        assert_eq!(d.delay(), ms(840));
        // The weight of all of them together is below 1 % after some five memories; then the delay falls.
        (0..2_400).for_each(|_| d.on_frame(ms(10), FRAME));
        assert!(d.delay() < ms(840), "{:?}", d.delay());
        (0..25 * 90).for_each(|_| d.on_frame(ms(10), FRAME));
        assert_eq!(d.delay(), ms(100));
    }

    #[test]
    fn the_weights_stay_finite() {
        let mut d = auto();
        (0..100_000).for_each(|n| d.on_frame(ms(n % 300), FRAME));
        assert!(d.total.is_finite() && d.weight <= 1e12 * 1.002);
        assert_eq!(d.delay(), ms(300 + 30));
    }
}
