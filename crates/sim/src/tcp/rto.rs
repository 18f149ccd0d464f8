//! The retransmission timeout: Jacobson's estimator, Karn's rule, a clock with a tick.
//! Sources: [RFC 6298]; the tick as in BSD and ns-2.

use fairpace_units::{Duration, Instant};

use super::TcpParams;

/// Smoothed RTT, its variation, and the timeout that follows from them, in whole nanoseconds. In the order of use.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct RtoEstimator {
    /// The timeout to arm now: kept, because it is wanted at every ACK and changes at few.
    rto: u64,
    /// SRTT and RTTVAR; `None` before the first sample.
    estimate: Option<(u64, u64)>,
    /// 1, 2, 4, …: doubled each time the timer runs out since the last sample [RFC 6298 §5.5].
    backoff: u64,
    /// The timeout before back-off and bounds.
    base: u64,
    tick: u64,
    /// Floor, ceiling.
    bounds: (u64, u64),
    /// The floor is of what is added to SRTT, as Linux has it, and not of the timeout.
    adds_floor: bool,
    /// Of SRTT and of the timeout without back-off, over the time in which there is an estimate.
    areas: RtoAreas,
    /// Up to when `areas` is right.
    accounted: Instant,
}

/// Integrals over time, in seconds times seconds, and the time itself.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct RtoAreas {
    pub(super) srtt: f64,
    pub(super) rto: f64,
    pub(super) time: f64,
}

/// Backed off further than this, the estimate is of another path than this one: the next sample
/// counts as a first [RFC 6298 §5, last paragraph; BSD and ns-2 do it here].
const ESTIMATE_BELIEVED_UP_TO: u64 = 8;

impl RtoEstimator {
    /// The first bytes of it, which every acknowledgement touches: the timeout, and whether there is an estimate.
    pub(super) const HOT: usize = 16;

    pub(super) fn new(params: &TcpParams) -> Self {
        let mut new = RtoEstimator {
            tick: nanos(params.tick),
            bounds: (nanos(params.min_rto), nanos(params.max_rto)),
            adds_floor: params.linux,
            estimate: None,
            base: nanos(params.initial_rto),
            backoff: 1,
            rto: 0,
            areas: RtoAreas::default(),
            accounted: Instant::ZERO,
        };
        new.update();
        new
    }

    /// A segment sent at `sent_at`, never retransmitted (Karn), has been acknowledged.
    pub(super) fn sample(&mut self, sent_at: Instant, now: Instant) {
        self.account(now);
        let r = measured(self.tick, sent_at, now);
        let (srtt, rttvar) = match self.estimate {
            // [RFC 6298 §2.2]
            None => (r, r / 2),
            // [RFC 6298 §2.3] alpha = 1/8, beta = 1/4; RTTVAR first.
            Some((srtt, rttvar)) => {
                let rttvar = (rttvar * 3 + srtt.abs_diff(r)) / 4;
                ((srtt * 7 + r) / 8, rttvar)
            }
        };
        self.estimate = Some((srtt, rttvar));
        // [RFC 6298 §2.3] RTO = SRTT + max(G, 4 RTTVAR)
        let floor = if self.adds_floor { self.bounds.0 } else { 0 };
        self.base = srtt + (4 * rttvar).max(self.tick).max(floor);
        self.update();
    }

    /// An ACK that proves the path works again: the next timeout starts from the estimate.
    pub(super) fn end_backoff(&mut self) {
        self.backoff = 1;
        self.update();
    }

    /// The timer has run out [RFC 6298 §5.5].
    pub(super) fn back_off(&mut self, now: Instant) {
        self.backoff = self.backoff.saturating_mul(2);
        if self.backoff > ESTIMATE_BELIEVED_UP_TO {
            self.account(now);
            self.estimate = None;
        }
        self.update();
    }

    /// The timer has run out since the last sample.
    pub(super) fn is_backed_off(&self) -> bool {
        self.backoff > 1
    }

    /// Integrals up to `now`.
    pub(super) fn areas(&self, now: Instant) -> RtoAreas {
        let mut to_now = self.clone();
        to_now.account(now);
        to_now.areas
    }

    fn account(&mut self, now: Instant) {
        if let Some((srtt, _)) = self.estimate {
            let held = now.since(self.accounted).as_secs_f64();
            let (min, max) = self.bounds;
            self.areas.srtt += srtt as f64 * 1e-9 * held;
            self.areas.rto += self.base.max(min).min(max) as f64 * 1e-9 * held;
            self.areas.time += held;
        }
        self.accounted = now;
    }

    /// The timeout to arm now.
    pub(super) fn rto(&self) -> Duration {
        Duration::from_nanos(self.rto)
    }

    /// When a timer armed at `now` runs out.
    #[inline]
    pub(super) fn expiry(&self, now: Instant) -> Instant {
        Instant::from_nanos(now.as_nanos().saturating_add(self.rto))
    }

    pub(super) fn srtt(&self) -> Option<Duration> {
        self.estimate.map(|(srtt, _)| Duration::from_nanos(srtt))
    }

    fn update(&mut self) {
        let (min, max) = self.bounds;
        self.rto = self.base.max(min).saturating_mul(self.backoff).min(max);
    }
}

fn nanos(d: Duration) -> u64 {
    u64::try_from(d.as_nanos()).unwrap_or(u64::MAX)
}

/// The measurement, by a clock of that tick, of the time from `sent_at` to `now`: the number of its ticks in between,
/// at least one.
fn measured(tick: u64, sent_at: Instant, now: Instant) -> u64 {
    let (sent, now) = (sent_at.as_nanos(), now.as_nanos());
    match (now.checked_div(tick), sent.checked_div(tick)) {
        (Some(now_ticks), Some(sent_ticks)) => (now_ticks - sent_ticks).max(1) * tick,
        _ => now - sent, // no tick: an exact clock
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * MS)
    }

    #[test]
    fn the_estimate_follows_the_formulas_by_hand() {
        let params = TcpParams { tick: Duration::ZERO, min_rto: Duration::ZERO, ..TcpParams::default() };
        let mut e = RtoEstimator::new(&params);
        assert_eq!(e.rto(), params.initial_rto);
        e.sample(at(0), at(100));
        // SRTT = 100, RTTVAR = 50: RTO = 100 + 4 x 50
        assert_eq!(e.rto(), Duration::from_millis(300));
        e.sample(at(100), at(280));
        // RTTVAR = 3/4 x 50 + 1/4 x |100 - 180| = 57.5; SRTT = 7/8 x 100 + 1/8 x 180 = 110
        assert_eq!(e.rto(), Duration::from_millis(340));
    }

    #[test]
    fn linuxs_floor_is_of_what_is_added_to_the_smoothed_rtt() {
        for (linux, ms) in [(false, 200), (true, 300)] {
            let params = TcpParams { tick: Duration::ZERO, linux, ..TcpParams::default() };
            let mut e = RtoEstimator::new(&params);
            // RTTVAR goes from 50 ms towards nothing: SRTT 100, the floor 200.
            (0..30).for_each(|i| e.sample(at(100 * i), at(100 * i + 100)));
            assert_eq!(e.rto(), Duration::from_millis(ms));
        }
    }

    #[test]
    fn the_timer_doubles_up_to_its_maximum_and_an_ack_ends_that() {
        let params = TcpParams { tick: Duration::ZERO, max_rto: Duration::from_secs(60), ..TcpParams::default() };
        let mut e = RtoEstimator::new(&params);
        e.sample(at(0), at(500)); // RTO 500 + 4 x 250 = 1500 ms
        let mut seen = Vec::new();
        for _ in 0..8 {
            seen.push(e.rto().as_millis());
            e.back_off(at(500));
        }
        assert_eq!(seen, [1_500, 3_000, 6_000, 12_000, 24_000, 48_000, 60_000, 60_000]);
        e.end_backoff();
        assert_eq!(e.rto(), Duration::from_millis(1_500));
    }

    #[test]
    fn after_four_timeouts_in_a_row_the_estimate_is_forgotten_and_the_timeout_is_not() {
        let params = TcpParams { tick: Duration::ZERO, ..TcpParams::default() };
        let mut e = RtoEstimator::new(&params);
        e.sample(at(0), at(500)); // RTO 500 + 4 x 250 = 1500 ms
        for _ in 0..3 {
            e.back_off(at(10_000));
        }
        assert_eq!(e.srtt(), Some(Duration::from_millis(500)));
        e.back_off(at(20_000));
        assert_eq!((e.srtt(), e.rto()), (None, Duration::from_secs(24)));
        // As a first sample: SRTT = 100, RTTVAR = 50.
        e.end_backoff();
        e.sample(at(30_000), at(30_100));
        assert_eq!((e.srtt(), e.rto()), (Some(Duration::from_millis(100)), Duration::from_millis(300)));
        // An estimate existed from 0.5 to 20 s; the average knows no other time.
        assert_eq!(e.areas(at(30_100)).time, 19.5);
    }

    #[test]
    fn a_coarse_clock_counts_its_ticks_between_and_never_none() {
        let tick = 10 * MS;
        assert_eq!(measured(tick, at(19), at(21)), 10 * MS); // ticks at 20
        assert_eq!(measured(tick, at(11), at(19)), 10 * MS); // none, counts as one
        assert_eq!(measured(tick, at(5), at(45)), 40 * MS); // at 10, 20, 30, 40
    }
}
