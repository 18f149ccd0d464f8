//! The share of the target rate that an encoder is told of.
//!
//! ```text
//! queue  = (srtt - least rtt) / play-out delay              the part of the play-out delay that the path's queue takes
//! share  = 1                                                where the rate does not adapt
//!          0.9                                              queue <= 0.3, or > 1.2
//!          0.9 - 0.4 (queue - 0.3), at least 0.7            between
//! ```
//!
//! A rate that adapts falls without notice, and what was encoded for more waits here before it waits on the path. That matters by what the path's
//! queue leaves of the play-out delay. A queue that takes far more than all of it makes pictures late whatever waits here, and less rate is only a coarser picture.
//!
//! The constants were chosen over `scenarios/papers/viewers-*.toml` with seeds 101 to 160, and judged with seeds 1 to 20: `docs/rtp/repair.md` has the
//! measurement.

use super::repair::Deadline;

const USUAL: f64 = 0.9;
const LEAST: f64 = 0.7;
/// Of the share, for a queue of a play-out delay.
const PER_QUEUE: f64 = 0.4;
/// Play-out delays that a queue may take at no cost.
const SPARE: f64 = 0.3;
/// Play-out delays beyond which the queue alone makes pictures late.
const HOPELESS: f64 = 1.2;

/// The share, 0.7 to 1.
pub(super) fn encoder_share(is_responsive: bool, deadline: &Deadline) -> f64 {
    if !is_responsive {
        return 1.0;
    }
    let playout = deadline.playout.as_secs_f64();
    if playout <= 0.0 {
        return USUAL;
    }
    let queue = deadline.queueing().as_secs_f64() / playout;
    if queue > HOPELESS { USUAL } else { (USUAL - PER_QUEUE * (queue - SPARE).max(0.0)).max(LEAST) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairpace_units::{Duration, Instant};

    /// Of a base of 100 ms, with a second of play-out.
    fn share(is_responsive: bool, srtt_ms: u64) -> f64 {
        let playout = Duration::from_secs(1);
        encoder_share(is_responsive, &deadline(srtt_ms, playout))
    }

    fn deadline(srtt_ms: u64, playout: Duration) -> Deadline {
        let least_rtt = Duration::from_millis(100);
        Deadline { now: Instant::ZERO, playout, srtt: Duration::from_millis(srtt_ms), least_rtt }
    }

    #[test]
    fn what_the_queue_takes_of_the_play_out_delay_is_taken_from_the_share_down_to_seven_tenths() {
        // A queue of 500 ms: 0.9 - 0.4 x (0.5 - 0.3) = 0.82. Of 700: 0.9 - 0.4 x 0.4 = 0.74. Of 800: 0.9 - 0.4 x 0.5 = 0.7, and no less after.
        for (srtt_ms, expected) in [(100, 0.9), (400, 0.9), (600, 0.82), (800, 0.74), (900, 0.7), (1_300, 0.7)] {
            let told = share(true, srtt_ms);
            assert!((told - expected).abs() < 1e-9, "{srtt_ms} ms: {told}");
        }
    }

    #[test]
    fn a_queue_that_is_longer_than_the_play_out_delay_bears_costs_no_rate() {
        assert_eq!([share(true, 1_301), share(true, 3_000)], [0.9; 2]);
        // The same queue of 500 ms, with 400 ms of play-out; and a receiver that shows at once.
        assert_eq!(encoder_share(true, &deadline(600, Duration::from_millis(400))), 0.9);
        assert_eq!(encoder_share(true, &deadline(600, Duration::ZERO)), 0.9);
    }

    #[test]
    fn a_rate_that_does_not_adapt_is_told_whole() {
        assert_eq!([100, 600, 900, 3_000].map(|srtt_ms| share(false, srtt_ms)), [1.0; 4]);
    }
}
