//! The round trip as a flow knows it: which samples count, and the timeout that follows from them.

use crate::rtt::{RtoParams, RttEstimator, RttParams};
use fairpace_units::{Duration, Instant, Kind};

/// No round trip is shorter, whatever the scenario or a peer says: rates go with 1/RTT, and some controllers wake once in each.
pub(crate) const LEAST_RTT: Duration = Duration::from_micros(100);

/// Nor longer: consent would have ended meanwhile [RFC 7675 §5.1].
pub const LONGEST_RTT: Duration = Duration::from_secs(30);

/// The round trip as an acknowledgement shows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    /// The sample, if it is used.
    pub(crate) rtt: Option<Duration>,
    /// Claims that were not believable: of the delay, and of the round trip.
    pub(crate) bad: u64,
}

#[derive(Debug)]
pub(crate) struct RoundTrip {
    estimator: RttEstimator,
    rules: RtoParams,
    /// The timeout in force, back-off included.
    rto: Duration,
    /// Timeouts in a row, for back-off.
    expired: u32,
    max_ack_delay: Duration,
    /// The least time from a departure to its acknowledgement.
    min_elapsed: Duration,
    /// When the driver last came back from a sleep: what left before it may have waited in a socket.
    woken: Instant,
    /// A data packet has measured the RTT: dummies, which wait longer in a priority queue, no longer do.
    from_data: bool,
}

impl RoundTrip {
    pub(crate) fn new(filter: RttParams, rules: RtoParams, max_ack_delay: Duration) -> RoundTrip {
        let estimator = RttEstimator::new(filter);
        RoundTrip {
            rto: estimator.rto(&rules),
            estimator,
            rules,
            expired: 0,
            max_ack_delay,
            min_elapsed: Duration::MAX,
            woken: Instant::ZERO,
            from_data: false,
        }
    }

    /// The driver slept for too long.
    pub(crate) const fn on_stall(&mut self, now: Instant) {
        self.woken = now;
    }

    /// Whether what comes now, for what left so long ago, tells of the path alone.
    fn is_of_path(&self, now: Instant, elapsed: Duration) -> bool {
        elapsed <= LONGEST_RTT && now - elapsed >= self.woken
    }

    #[inline]
    pub(crate) const fn estimator(&self) -> &RttEstimator {
        &self.estimator
    }

    #[inline]
    pub(crate) fn srtt(&self) -> Option<Duration> {
        self.estimator.srtt()
    }

    #[inline]
    pub(crate) const fn rto(&self) -> Duration {
        self.rto
    }

    /// A round trip that somebody else has measured: the challenge's echo, or TCP.
    pub(crate) fn learn(&mut self, rtt: Duration) {
        self.estimator.update(rtt.max(LEAST_RTT));
        self.update_rto();
    }

    /// A packet of that kind is acknowledged `elapsed` after it left; the receiver says that it held the
    /// acknowledgement back for `claimed`. `measures`: the acknowledgement was sent because of this packet.
    #[inline]
    pub(crate) fn on_ack(
        &mut self,
        now: Instant,
        kind: Kind,
        elapsed: Duration,
        claimed: Duration,
        measures: bool,
    ) -> Sample {
        let mut news = self.expired > 0;
        self.expired = 0;
        let mut sample = Sample { rtt: None, bad: 0 };
        if measures && self.is_of_path(now, elapsed) && (kind == Kind::Data || !self.from_data) {
            let held = match self.believed_delay(elapsed, claimed) {
                Some(held) => held,
                None => {
                    sample.bad += 1;
                    Duration::ZERO
                }
            };
            sample.rtt = self.estimator.sample(elapsed, held);
            if sample.rtt.is_none() {
                sample.bad += 1;
            } else {
                self.from_data |= kind == Kind::Data;
                news = true;
            }
        }
        if news {
            self.update_rto();
        }
        sample
    }

    /// How much of a claimed delay counts: no more than was agreed, and nothing that would make the round trip shorter
    /// than the shortest seen with the delay still in it [RFC 9002 §5.3]. So a claim can hide waiting in queues, a little
    /// of it, and never the path. `None`: the claim is impossible or unknown; to take no sample would let the claim
    /// freeze the RTT as well.
    #[inline]
    fn believed_delay(&mut self, elapsed: Duration, claimed: Duration) -> Option<Duration> {
        if claimed > elapsed {
            return None;
        }
        self.estimator.note_ack_delay(claimed);
        self.min_elapsed = self.min_elapsed.min(elapsed);
        Some(claimed.min(self.max_ack_delay).min(elapsed - self.min_elapsed))
    }

    /// A receiver that measures echoes a packet that left `elapsed` ago, and says how long the report was held. A report
    /// may be held for as long as no packet comes; but its round trip is no shorter than the shortest with the delay still
    /// in it, and the first was sent at once. Gives the claims that were not believable.
    pub(crate) fn on_echo(&mut self, now: Instant, elapsed: Duration, delay: Duration) -> u64 {
        if !self.is_of_path(now, elapsed) {
            return 1;
        }
        self.min_elapsed = self.min_elapsed.min(elapsed);
        let held = delay.min(elapsed - self.min_elapsed);
        let sample = self.estimator.sample(elapsed, held);
        self.update_rto();
        u64::from(sample.is_none())
    }

    /// A receiver report measures this round trip by LSR and DLSR, if any. Gives the claims that were not believable.
    pub(crate) fn on_report(&mut self, now: Instant, rtt: Option<Duration>) -> u64 {
        let rtt = rtt.filter(|rtt| self.is_of_path(now, *rtt));
        let bad = rtt.is_some_and(|rtt| self.estimator.sample(rtt, Duration::ZERO).is_none());
        self.update_rto();
        u64::from(bad)
    }

    /// The timeout has expired.
    pub(crate) fn back_off(&mut self) {
        self.expired += 1;
        self.update_rto();
    }

    fn update_rto(&mut self) {
        let backoff = if self.rules.backoff { 1 << self.expired.min(16) } else { 1 };
        self.rto = self.estimator.rto(&self.rules).saturating_mul(backoff).min(self.rules.max);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: f64) -> Instant {
        Instant::from_secs_f64(seconds)
    }

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    /// By TCP's own account of a connection on one machine, say.
    #[test]
    fn no_round_trip_is_learnt_that_is_below_a_tenth_of_a_millisecond() {
        let mut r = RoundTrip::new(RttParams::default(), RtoParams::default(), ms(25));
        r.learn(Duration::from_micros(1));
        assert_eq!(r.srtt(), Some(Duration::from_micros(100)));
    }

    #[test]
    fn a_report_on_what_left_before_a_sleep_measures_no_round_trip() {
        let mut r = RoundTrip::new(RttParams::default(), RtoParams::default(), ms(25));
        r.on_stall(at(100.0));
        assert_eq!(r.on_report(at(101.0), Some(ms(5_000))), 0);
        assert_eq!(r.srtt(), None);
        // Nor one that consent would not have lasted for.
        assert_eq!(r.on_report(at(200.0), Some(ms(30_001))), 0);
        assert_eq!(r.srtt(), None);
        assert_eq!(r.on_report(at(201.0), Some(ms(500))), 0);
        assert_eq!(r.srtt(), Some(ms(500)));
    }
}
