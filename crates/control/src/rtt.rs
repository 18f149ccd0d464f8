//! Round-trip time: Jacobson's filter with Karn's rule for free.
//!
//! Source: [RFC 6298 §2]. Every packet here has a number of its own and nothing is sent twice, so
//! no sample is ambiguous (Karn). The gains are parameters because RAP uses 1/2 for both.

use fairpace_units::Duration;

/// Gains of the filter and what counts as a believable sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RttParams {
    /// Gain of SRTT: 1/8 [RFC 6298 §2.3]; RAP's delta is 1/2.
    pub alpha: f64,
    /// Gain of RTTVAR: 1/4 [RFC 6298 §2.3].
    pub beta: f64,
    /// RTTVAR after the first sample, as a share of it: 1/2 [RFC 6298 §2.2].
    pub initial_var: f64,
    /// No sample is taken to be below this.
    pub floor: Duration,
    /// A sample below half of the least so far is used only when this many in a row say so; 0
    /// believes every sample. Against receivers that acknowledge early or overstate their delay.
    pub confirmations: u8,
}

impl Default for RttParams {
    fn default() -> Self {
        RttParams { alpha: 0.125, beta: 0.25, initial_var: 0.5, floor: Duration::from_millis(1), confirmations: 3 }
    }
}

/// RTO = `srtt_factor` · SRTT + max(`granularity`, `var_factor` · RTTVAR), within `[min, max]`
/// [RFC 6298 §2].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RtoParams {
    /// 1 for TCP; RAP's mu, 1.2.
    pub srtt_factor: f64,
    /// 4 for TCP (K) and for RAP (phi).
    pub var_factor: f64,
    /// Lower bound.
    pub min: Duration,
    /// Upper bound.
    pub max: Duration,
    /// Clock granularity G.
    pub granularity: Duration,
    /// The timeout while no RTT is known: 1 s [RFC 6298 §2.1].
    pub initial: Duration,
    /// Double the timeout at each expiry until an ACK arrives [RFC 6298 §5.5].
    pub backoff: bool,
}

impl Default for RtoParams {
    fn default() -> Self {
        RtoParams {
            srtt_factor: 1.0,
            var_factor: 4.0,
            // RFC 6298 §2.4 says 1 s; ns-2's and Linux's 200 ms is what the peers here use.
            min: Duration::from_millis(200),
            max: Duration::from_secs(60),
            granularity: Duration::from_millis(10),
            initial: Duration::from_secs(1),
            backoff: false,
        }
    }
}

/// SRTT, RTTVAR and the least RTT, in nanoseconds inside.
#[derive(Clone, Debug, PartialEq)]
pub struct RttEstimator {
    params: RttParams,
    /// `None` before the first sample.
    srtt_ns: Option<f64>,
    rttvar_ns: f64,
    latest: Duration,
    min: Duration,
    /// The longest the receiver has held an ACK back, up to [`MAX_ACK_DELAY`].
    ack_delay: Duration,
    /// Samples in a row that were too low to believe.
    low_in_a_row: u8,
}

/// The most that a receiver's stated delay can add to the timeout, so that overstating the delay gains little. The
/// wire's feedback interval is 20 ms.
const MAX_ACK_DELAY: Duration = Duration::from_millis(200);

impl RttEstimator {
    /// An estimator that knows nothing.
    pub fn new(params: RttParams) -> Self {
        RttEstimator {
            params,
            srtt_ns: None,
            rttvar_ns: 0.0,
            latest: Duration::ZERO,
            min: Duration::MAX,
            ack_delay: Duration::ZERO,
            low_in_a_row: 0,
        }
    }

    /// Smoothed RTT; `None` before the first sample.
    pub fn srtt(&self) -> Option<Duration> {
        self.srtt_ns.map(from_ns)
    }

    /// RTT variation; zero before the first sample.
    pub fn rttvar(&self) -> Duration {
        from_ns(self.rttvar_ns)
    }

    /// The last sample that was used.
    pub fn latest(&self) -> Option<Duration> {
        self.srtt_ns.map(|_| self.latest)
    }

    /// The least sample that was used.
    pub fn min(&self) -> Option<Duration> {
        self.srtt_ns.map(|_| self.min)
    }

    /// The longest that the receiver has held an ACK back, up to 200 ms.
    pub fn ack_delay(&self) -> Duration {
        self.ack_delay
    }

    /// Takes one measurement. `elapsed` is from departure to the arrival of the ACK, `ack_delay`
    /// what the receiver says it held the ACK back. Gives the sample used, or `None` if it is not
    /// believable: a delay longer than the whole round trip, or a sudden unconfirmed halving.
    pub fn sample(&mut self, elapsed: Duration, ack_delay: Duration) -> Option<Duration> {
        let rtt = elapsed.checked_sub(ack_delay)?.max(self.params.floor);
        if rtt < self.min / 2 && self.srtt_ns.is_some() && self.params.confirmations > 0 {
            self.low_in_a_row = self.low_in_a_row.saturating_add(1);
            if self.low_in_a_row <= self.params.confirmations {
                return None;
            }
        }
        self.low_in_a_row = 0;
        self.note_ack_delay(ack_delay);
        self.update(rtt);
        Some(rtt)
    }

    /// The receiver says that it held an ACK back for so long. However little of that is taken off the RTT,
    /// the timeout must wait for it.
    pub fn note_ack_delay(&mut self, stated: Duration) {
        self.ack_delay = self.ack_delay.max(stated.min(MAX_ACK_DELAY));
    }

    /// RFC 6298 (2.2) and (2.3), without judging the sample.
    pub fn update(&mut self, rtt: Duration) {
        let r = ns(rtt);
        self.latest = rtt;
        self.min = self.min.min(rtt);
        match self.srtt_ns {
            None => {
                self.srtt_ns = Some(r);
                self.rttvar_ns = self.params.initial_var * r;
            }
            Some(srtt) => {
                // The variation first: it uses the old SRTT.
                let error = r - srtt;
                self.rttvar_ns += self.params.beta * (error.abs() - self.rttvar_ns);
                self.srtt_ns = Some(srtt + self.params.alpha * error);
            }
        }
    }

    /// The timeout without back-off: RFC 6298 (2.3), plus the receiver's delay, because a lone
    /// packet's ACK may be held back that long.
    pub fn rto(&self, p: &RtoParams) -> Duration {
        let Some(srtt) = self.srtt_ns else { return p.initial.min(p.max) };
        let variation = (p.var_factor * self.rttvar_ns).max(ns(p.granularity));
        let rto = p.srtt_factor * srtt + variation + ns(self.ack_delay);
        from_ns(rto.max(ns(p.min)).min(ns(p.max)))
    }
}

fn ns(d: Duration) -> f64 {
    // Exact to 104 days; by way of `as_nanos`, a u128, it costs four times as much.
    d.as_secs() as f64 * 1e9 + f64::from(d.subsec_nanos())
}

fn from_ns(ns: f64) -> Duration {
    Duration::from_nanos((ns + 0.5) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    fn tcp() -> RttEstimator {
        RttEstimator::new(RttParams { floor: Duration::ZERO, ..RttParams::default() })
    }

    #[test]
    fn the_first_two_samples_by_hand() {
        let mut e = tcp();
        assert_eq!((e.srtt(), e.rto(&RtoParams::default())), (None, Duration::from_secs(1)));
        // (2.2): SRTT = R = 100, RTTVAR = R/2 = 50, RTO = 100 + 4 * 50 = 300 ms
        e.sample(ms(100), Duration::ZERO);
        assert_eq!((e.srtt(), e.rttvar()), (Some(ms(100)), ms(50)));
        assert_eq!(e.rto(&RtoParams::default()), ms(300));
        // (2.3): RTTVAR = 3/4 * 50 + 1/4 * |100 - 180| = 57.5; SRTT = 7/8 * 100 + 1/8 * 180 = 110
        e.sample(ms(180), Duration::ZERO);
        assert_eq!((e.srtt(), e.rttvar()), (Some(ms(110)), Duration::from_micros(57_500)));
        // 110 + 4 * 57.5 = 340 ms
        assert_eq!(e.rto(&RtoParams::default()), ms(340));
    }

    #[test]
    fn no_sample_is_below_the_floor() {
        let mut e = RttEstimator::new(RttParams::default());
        assert_eq!(e.sample(Duration::from_micros(10), Duration::ZERO), Some(ms(1)));
        assert_eq!((e.srtt(), e.min()), (Some(ms(1)), Some(ms(1))));
    }

    #[test]
    fn raps_gains_by_hand() {
        let mut e = RttEstimator::new(RttParams { alpha: 0.5, beta: 0.5, initial_var: 0.0, ..RttParams::default() });
        let rto =
            RtoParams { srtt_factor: 1.2, min: Duration::ZERO, granularity: Duration::ZERO, ..RtoParams::default() };
        e.sample(ms(100), Duration::ZERO);
        // 1.2 * 100 + 4 * 0
        assert_eq!(e.rto(&rto), ms(120));
        e.sample(ms(140), Duration::ZERO);
        // SRTT = 120, var = 0.5 * 40 = 20, 1.2 * 120 + 4 * 20 = 224
        assert_eq!((e.srtt(), e.rto(&rto)), (Some(ms(120)), ms(224)));
    }

    #[test]
    fn a_constant_rtt_leaves_srtt_plus_the_granularity() {
        let mut e = tcp();
        for _ in 0..200 {
            e.sample(ms(550), Duration::ZERO);
        }
        // RTTVAR = 275 ms * 0.75^199 = 0; RTO = 550 + 10
        assert_eq!((e.srtt(), e.rto(&RtoParams::default())), (Some(ms(550)), ms(560)));
    }

    #[test]
    fn a_receiver_that_overstates_its_delay_moves_nothing() {
        let mut e = RttEstimator::new(RttParams::default());
        assert_eq!(e.sample(ms(100), ms(20)), Some(ms(80)));
        let before = e.clone();
        assert_eq!(e.sample(ms(100), ms(100) + Duration::from_nanos(1)), None);
        assert_eq!(e.sample(ms(100), Duration::MAX), None);
        assert_eq!(e, before);
        // Exactly the whole round trip is nought, raised to the floor, and then not believed.
        assert_eq!(e.sample(ms(100), ms(100)), None);
        assert_eq!((e.srtt(), e.min()), (before.srtt(), before.min()));
    }

    #[test]
    fn a_halved_rtt_is_believed_the_fourth_time() {
        let mut e = RttEstimator::new(RttParams::default());
        e.sample(ms(600), Duration::ZERO);
        for _ in 0..3 {
            assert_eq!(e.sample(ms(20), Duration::ZERO), None);
        }
        assert_eq!(e.sample(ms(20), Duration::ZERO), Some(ms(20)));
        assert_eq!(e.min(), Some(ms(20)));
        // 7/8 * 600 + 1/8 * 20 = 527.5
        assert_eq!(e.srtt(), Some(Duration::from_micros(527_500)));
    }

    #[test]
    fn one_believable_sample_between_starts_the_count_again() {
        let mut e = RttEstimator::new(RttParams::default());
        e.sample(ms(600), Duration::ZERO);
        for _ in 0..20 {
            assert_eq!(e.sample(ms(20), Duration::ZERO), None);
            assert_eq!(e.sample(ms(20), Duration::ZERO), None);
            assert_eq!(e.sample(ms(600), Duration::ZERO), Some(ms(600)));
        }
    }

    #[test]
    fn held_back_acks_lengthen_the_timeout_up_to_a_bound() {
        let mut e = tcp();
        for _ in 0..200 {
            e.sample(ms(570), ms(20));
        }
        // 550 + 10 + 20
        assert_eq!(e.rto(&RtoParams::default()), ms(580));
        e.sample(ms(5_550), ms(5_000));
        assert_eq!(e.rto(&RtoParams::default()), ms(760));
    }
}
