//! Silence: packets leave, and nothing is heard of any. Every flow that gives way slows down then, whatever its controller
//! does; RFC 5348's no-feedback timer [§4.4] for all of them.
//!
//! ```text
//!  nothing new heard for `patience` since the oldest packet that is not heard of left: cap = rate / 2, and after each
//!  further `patience` half of that, down to a packet a second, so that the end of an outage is noticed
//!  heard again: the cap doubles each round trip, and is gone above the rate at which the silence began
//! ```
//!
//! A machine that slept for so long that consent had to be asked for anew begins as after a silence: the cap is the initial rate.
//!
//! Where nothing left for as long, the application pauses, and nothing is missed: the rate stays.
//!
//! `patience` is four round trips and what the receiver may hold back, four intervals of a receiver that only reports, and
//! [`LEAST_PATIENCE`] at least: an outage of a second says little, and the circuit breaker ends what lasts 15 s.

use fairpace_units::{Bytes, Duration, Instant, Rate};

/// RFC 5348 waits for 2 s at the start, and for four round trips later.
const LEAST_PATIENCE: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Silence {
    /// How long a receiver may be silent by its own rules.
    allowed: Duration,
    /// The cap falls no lower.
    least: Rate,
    /// When the last packet left.
    left: Instant,
    /// When the silence, or the last halving in it, has lasted for the patience; NEVER while all is heard of.
    due: Instant,
    /// The rate when the oldest packet left that is not heard of, or at which the last silence began.
    full: Rate,
    cap: Option<Rate>,
    /// The cap rises again from here.
    raised: Instant,
}

impl Silence {
    /// `max_ack_delay`: the longest that the receiver holds an acknowledgement back; `report_interval`: of one that only
    /// reports.
    pub(super) fn new(packet_size: Bytes, max_ack_delay: Duration, report_interval: Option<Duration>) -> Silence {
        let allowed = max_ack_delay.max(report_interval.unwrap_or_default() * 4);
        Silence {
            allowed,
            least: Rate::packets_per_second(1.0, packet_size),
            left: Instant::ZERO,
            due: Instant::NEVER,
            full: Rate::ZERO,
            cap: None,
            raised: Instant::ZERO,
        }
    }

    fn patience(&self, srtt: Option<Duration>) -> Duration {
        (srtt.unwrap_or_default() * 4 + self.allowed).max(LEAST_PATIENCE)
    }

    /// A packet has left; the flow sends at `rate`.
    #[inline]
    pub(super) fn on_sent(&mut self, now: Instant, srtt: Option<Duration>, rate: impl FnOnce() -> Rate) {
        self.left = now;
        if self.due == Instant::NEVER {
            self.due = now + self.patience(srtt);
            if self.cap.is_none() {
                self.full = rate();
            }
        }
    }

    /// Something new is heard of what was sent; gives the cap, if it has changed.
    #[inline]
    pub(super) fn on_news(&mut self, now: Instant, srtt: Option<Duration>) -> Option<Option<Rate>> {
        self.due = Instant::NEVER;
        let cap = self.cap?;
        if now < self.raised + srtt.unwrap_or_default() {
            return None;
        }
        self.raised = now;
        self.cap = (cap * 2.0 < self.full).then_some(cap * 2.0);
        Some(self.cap)
    }

    /// The machine slept while the flow sent at `rate`: from `initial` on the cap doubles as after a silence. Gives the cap, if there is
    /// one.
    pub(super) fn on_sleep(&mut self, now: Instant, rate: Rate, initial: Rate) -> Option<Rate> {
        self.full = if self.cap.is_some() { self.full } else { rate };
        self.due = Instant::NEVER;
        self.raised = now;
        self.cap = (initial < self.full).then_some(self.cap.unwrap_or(initial).min(initial).max(self.least));
        self.cap
    }

    /// When the rate is to be halved.
    #[inline]
    pub(super) const fn next(&self) -> Instant {
        self.due
    }

    /// The rate is halved if that is due. Gives the cap.
    pub(super) fn on_timer(&mut self, now: Instant, srtt: Option<Duration>) -> Option<Rate> {
        if now < self.due {
            return None;
        }
        if now.since(self.left) >= self.patience(srtt) {
            self.due = Instant::NEVER;
            return None;
        }
        let cap = (self.cap.unwrap_or(self.full) * 0.5).max(self.least);
        self.cap = Some(cap);
        self.due = now + self.patience(srtt);
        self.raised = Instant::ZERO;
        Some(cap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{SIZE, at};

    const RTT: Option<Duration> = Some(Duration::from_millis(500));

    #[test]
    fn each_patience_halves_and_each_round_trip_heard_doubles() {
        let mut s = Silence::new(SIZE, Duration::from_millis(100), None);
        assert_eq!(s.next(), Instant::NEVER);
        s.on_sent(at(1.0), RTT, || Rate::kbps(800.0));
        // The controller has slowed down by itself meanwhile, which is not halved once more.
        s.on_sent(at(2.0), RTT, || Rate::kbps(300.0));
        // Four round trips and 100 ms after the first.
        assert_eq!(s.next(), at(3.1));
        assert_eq!(s.on_timer(at(3.0), RTT), None);
        assert_eq!(s.on_timer(at(3.1), RTT), Some(Rate::kbps(400.0)));
        s.on_sent(at(5.0), RTT, || Rate::kbps(300.0));
        assert_eq!(s.on_timer(at(5.2), RTT), Some(Rate::kbps(200.0)));
        s.on_sent(at(7.0), RTT, || Rate::kbps(300.0));
        assert_eq!(s.on_timer(at(7.3), RTT), Some(Rate::kbps(100.0)));
        let mut caps = Vec::new();
        for n in 0..60 {
            caps.extend(s.on_news(at(9.0 + 0.1 * f64::from(n)), RTT));
        }
        let kbps = |rate: f64| Some(Rate::kbps(rate));
        assert_eq!(caps, [kbps(200.0), kbps(400.0), None]);
        assert_eq!(s.next(), Instant::NEVER);
    }

    #[test]
    fn a_packet_a_second_goes_on_asking() {
        let mut s = Silence::new(SIZE, Duration::ZERO, None);
        let mut caps = Vec::new();
        for n in 0..80 {
            s.on_sent(at(0.1 * f64::from(n)), None, || Rate::kbps(100.0));
            caps.extend(s.on_timer(at(0.1 * f64::from(n)), None));
        }
        assert_eq!(caps.last(), Some(&Rate::packets_per_second(1.0, SIZE)));
    }

    /// The last packet before a pause of ten seconds is lost.
    #[test]
    fn a_pause_of_the_application_is_no_silence() {
        let mut s = Silence::new(SIZE, Duration::ZERO, None);
        s.on_sent(at(1.0), None, || Rate::kbps(100.0));
        assert_eq!((s.on_timer(at(2.0), None), s.next()), (None, Instant::NEVER));
        s.on_sent(at(11.0), None, || Rate::kbps(100.0));
        assert_eq!(s.next(), at(12.0));
    }

    #[test]
    fn a_receiver_that_reports_seldom_is_not_silent_between_its_reports() {
        let mut s = Silence::new(SIZE, Duration::from_millis(25), Some(Duration::from_secs(5)));
        s.on_sent(at(0.0), RTT, || Rate::kbps(100.0));
        assert_eq!(s.next(), at(22.0));
        // Nor is one on a short path within a second.
        let mut s = Silence::new(SIZE, Duration::from_millis(25), None);
        s.on_sent(at(0.0), Some(Duration::from_millis(10)), || Rate::kbps(100.0));
        assert_eq!(s.next(), at(1.0));
    }
}
