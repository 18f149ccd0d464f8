//! The bottleneck's rate from packets sent back to back.
//!
//! Source: [tpba §3] takes b, the bottleneck's rate, from packet pairs and leaves the method open. Two packets that
//! meet in the bottleneck's queue leave it `size / b` apart, so the receiver's sample is the second one's size divided
//! by the gap of their arrivals.
//!
//! Readings: data packets number s and s + 1 leave together whenever [`PERIOD`] divides s; both ends know this rule, so
//! nothing is marked. The receiver counts numbers as the sender does: where the wire's begin elsewhere, the first is a
//! multiple of `PERIOD`. Another flow's packet between the two makes a sample too low and waiting behind the
//! bottleneck makes it too high: the estimate is the median of the last [`SAMPLES`].

use fairpace_units::{Bytes, Instant, Rate};
use std::collections::VecDeque;

/// Every so many data packets two leave together.
pub const PERIOD: u64 = 16;

/// Samples that the median is over.
pub const SAMPLES: usize = 16;

/// Samples before there is an estimate.
pub const LEAST_SAMPLES: usize = 8;

/// The receiver's half.
#[derive(Clone, Debug, Default)]
pub struct BottleneckEstimator {
    /// The last packet, if it is the first of a pair: its number and arrival.
    first: Option<(u64, Instant)>,
    /// bits/s, oldest first.
    samples: VecDeque<f64>,
}

impl BottleneckEstimator {
    /// Nothing has arrived.
    pub fn new() -> Self {
        BottleneckEstimator::default()
    }

    /// A data packet has arrived over UDP; `size` in the terms of `packet_size`. Not to be called for what came over
    /// TCP.
    pub fn on_packet(&mut self, now: Instant, seq: u64, size: Bytes) {
        if let Some((first, at)) = self.first.take()
            && first.checked_add(1) == Some(seq)
        {
            let gap = now.since(at).as_secs_f64();
            // Arrivals in one instant of the clock say nothing.
            if gap > 0.0 && size > Bytes::ZERO {
                if self.samples.len() == SAMPLES {
                    self.samples.pop_front();
                }
                self.samples.push_back(size.as_f64() * 8.0 / gap);
            }
        }
        self.first = seq.is_multiple_of(PERIOD).then_some((seq, now));
    }

    /// The median; `None` while there are fewer than [`LEAST_SAMPLES`].
    pub fn estimate(&self) -> Option<Rate> {
        if self.samples.len() < LEAST_SAMPLES {
            return None;
        }
        let mut sorted: Vec<f64> = self.samples.iter().copied().collect();
        sorted.sort_by(f64::total_cmp);
        // Of an even number the lower of the two in the middle.
        sorted.get((sorted.len() - 1) / 2).map(|bps| Rate::bps(*bps))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairpace_units::Duration;

    const SIZE: Bytes = Bytes::new(1_000);

    /// Packets every 100 ms, but number s + 1 `gap_us(s)` after s.
    fn receive(seqs: impl Iterator<Item = u64>, gap_us: impl Fn(u64) -> u64) -> BottleneckEstimator {
        let mut e = BottleneckEstimator::new();
        for seq in seqs {
            let slot = Instant::ZERO + Duration::from_millis(100 * (seq / PERIOD * PERIOD));
            let at = match seq % PERIOD {
                1 => slot + Duration::from_micros(gap_us(seq - 1)),
                n => slot + Duration::from_millis(100 * n),
            };
            e.on_packet(at, seq, SIZE);
        }
        e
    }

    #[test]
    fn eight_pairs_make_an_estimate_and_the_median_leaves_stray_ones_out() {
        // 8,000 bits in 800 us: 10 Mbit/s
        assert_eq!(receive(0..7 * PERIOD + 1, |_| 800).estimate(), None);
        assert_eq!(receive(0..8 * PERIOD, |_| 800).estimate(), Some(Rate::mbps(10.0)));
        // 5 of 16 compressed, 5 of 16 with something between them
        let stray = |s: u64| [80, 800, 8_000][(s / PERIOD % 3) as usize];
        assert_eq!(receive(0..16 * PERIOD, stray).estimate(), Some(Rate::mbps(10.0)));
        // no gap at all is no sample
        assert_eq!(receive(0..16 * PERIOD, |_| 0).estimate(), None);
    }

    #[test]
    fn only_a_pair_that_arrives_in_a_row_counts() {
        assert_eq!(receive((0..32 * PERIOD).filter(|s| s % PERIOD != 1), |_| 800).estimate(), None);
        assert_eq!(receive((0..32 * PERIOD).filter(|s| s % PERIOD != 0), |_| 800).estimate(), None);
        // the path has changed: the last sixteen pairs are all new
        let e = receive(0..64 * PERIOD, |s| if s < 40 * PERIOD { 800 } else { 1_600 });
        assert_eq!(e.estimate(), Some(Rate::mbps(5.0)));
    }
}
