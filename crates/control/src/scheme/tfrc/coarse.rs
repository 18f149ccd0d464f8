//! TCP's timeout by a coarse clock in whole numbers: what ns-2's TFRC takes for t_RTO.
//!
//! Source: Jacobson and Karels, Congestion Avoidance and Control, 1988, appendix A; ns-2 2.35,
//! `tcp/tfrc.cc`, with its tick of 100 ms. SRTT is kept in eighths of a tick, RTTVAR in quarters. The fraction that
//! the shifts cut off is never subtracted: over a steady path t_RTO stays two or three ticks above the RTT. So at
//! RTTs of 100 to 500 ms t_RTO is 2 to 3.5 R, not the 4R of RFC 5348 (docs/sim/README.md).

use fairpace_units::Duration;

/// SRTT and RTTVAR.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CoarseTimer {
    /// Eighths of a tick; 0 before the first sample.
    srtt: i64,
    /// Quarters of a tick.
    rttvar: i64,
}

const TICK_MS: u32 = 100;

impl CoarseTimer {
    /// Takes an RTT; gives SRTT + 4 RTTVAR, in whole ticks.
    pub(crate) fn update(&mut self, rtt: Duration) -> Duration {
        let ticks = ((rtt.as_secs_f64() * 1e3 / f64::from(TICK_MS) + 0.5) as i64).clamp(1, 1 << 16);
        if self.srtt == 0 {
            (self.srtt, self.rttvar) = (ticks << 3, ticks << 1);
        } else {
            let error = ticks - (self.srtt >> 3);
            self.srtt = (self.srtt + error).max(1);
            self.rttvar = (self.rttvar + error.abs() - (self.rttvar >> 2)).max(1);
        }
        // 4 RTTVAR in eighths: 4 · 2 · rttvar.
        Duration::from_millis(u64::from(TICK_MS)) * ((self.rttvar * 8 + self.srtt) >> 3) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: (srtt, rttvar) = (8, 2): (16 + 8) / 8 = 3 ticks, and so it stays at 1 tick. 2 ticks: error
    /// 2 - 8/8 = 1, (9, 3): (24 + 9) / 8 = 4 ticks. 1 tick: error 1 - 9/8 = 0, and 3/4 = 0 is taken off.
    #[test]
    fn the_shifts_keep_it_two_or_three_ticks_above_a_steady_rtt() {
        let mut timer = CoarseTimer::default();
        let timeouts: Vec<u128> =
            [140, 140, 140, 160, 140, 140, 140].map(|ms| timer.update(Duration::from_millis(ms)).as_millis()).to_vec();
        assert_eq!(timeouts, [300, 300, 300, 400, 400, 400, 400]);
    }

    /// 5 ticks: (40, 10), 10 + 5 = 15 ticks; steady: 10 - 2 = 8, 8 - 2 = 6, 6 - 1 = 5, 5 - 1 = 4, 4 - 1 = 3.
    #[test]
    fn it_comes_down_from_the_first_guess() {
        let mut timer = CoarseTimer::default();
        let timeouts: Vec<u128> = (0..7).map(|_| timer.update(Duration::from_millis(500)).as_millis()).collect();
        assert_eq!(timeouts, [1_500, 1_300, 1_100, 1_000, 900, 800, 800]);
    }
}
