//! RED: random early detection, on the average queue, before there is no room left.
//!
//! Sources: Floyd and Jacobson, "Random Early Detection Gateways for Congestion Avoidance",
//! IEEE/ACM ToN 1(4), 1993 [RED]; Floyd's "gentle" note, 2000; ns-2 2.35 `queue/red.cc` [ns-2],
//! whose arithmetic this follows where the paper leaves a choice. Page: `docs/links/red.md`.
//!
//! | symbol | here | unit | set by |
//! | --- | --- | --- | --- |
//! | q | `waiting` | packets or bytes, the one in transmission **not** counted | the link |
//! | avg | `average` | as q | formula (1), on each arrival |
//! | w_q | `weight` | – | parameter, 0.002 |
//! | min_th, max_th | `min`, `max` | packets or bytes | parameter |
//! | max_p | `max_probability` | – | parameter, 0.1 |
//! | s | `mean_packet_size` / rate | – | parameter and the link's rate |
//! | m | `could_have_left` | packets | the idle time / s, rounded down |
//! | p_b, p_a | `base_probability`, `spread_out` | – | formulas (2), (3) |
//! | count | `count`, `count_bytes` | arrivals and bytes since the last drop or mark | each arrival |
//!
//! **Readings.** (a) q is what waits behind the transmitter, as ns-2 counts it; the hard limit is a
//! [`Capacity`](crate::Capacity) and counts the packet in transmission too, so ns-2's `limit_ 50`
//! (RED refuses when 50 wait) is our 51 packets. (b) Nothing is dropped while fewer than two
//! packets wait, and the arrival that finds the average above min_th for the first time is let
//! through and starts the count [ns-2]. (c) With `wait`, drops are at least 1/p_b arrivals apart,
//! uniform between 1/p_b and 2/p_b; without, as in the paper, between 1 and 1/p_b. (d) After a
//! drop at the hard limit or by the average alone, the count starts again [ns-2]. (e) ECN-capable
//! packets are marked wherever chance decides; where the average alone decides (from max_th, or
//! from twice max_th if gentle) and at the hard limit they are dropped [RFC 3168 §7].
//!
//! **Deviations from ns-2.** m comes from what the link could really have carried while idle, also
//! when its rate changes; ns-2 takes the rate at the start. The bytes of `by_size` are divided
//! exactly, not as integers. ECN-capable packets are marked up to p_b = 1; ns-2 drops them from 0.1 on
//! (`mark_p_`, unless `use_mark_p_` is off). One random number is drawn for each arrival, needed or not, so that a
//! parameter shifts no later draw.
//!
//! **Not implemented.** Adaptive RED, weights and thresholds from the link's rate (`q_weight_ 0`,
//! `thresh_ 0`), dropping from the front or at random at the hard limit.

use super::parts::{Held, Occupancy, Room, Verdict};
use crate::{DropReason, LinkError, RedParams, Thresholds};
use fairpace_units::RandomStream;

/// The state of a RED queue. RED never takes back an admission, so the state holds no packets.
#[derive(Clone, Debug)]
pub(crate) struct Red {
    room: Room,
    /// Thresholds and average in bytes instead of packets.
    in_bytes: bool,
    min: f64,
    max: f64,
    max_probability: f64,
    weight: f64,
    mean_packet_size: u64,
    gentle: bool,
    wait: bool,
    by_size: bool,
    ecn: bool,
    average: f64,
    count: u64,
    count_bytes: u64,
    /// Whether the last arrival found the average above `min` and a queue.
    above_min: bool,
    random: RandomStream,
}

impl Red {
    pub(crate) fn new(params: &RedParams, random: RandomStream) -> Result<Self, LinkError> {
        let (in_bytes, min, max) = match params.thresholds {
            Thresholds::Packets { min, max } => (false, min.as_f64(), max.as_f64()),
            Thresholds::Bytes { min, max } => (true, min.as_f64(), max.as_f64()),
        };
        let bad = |field, found: f64, allowed| Err(LinkError::BadQueue { field, found, allowed });
        if min >= max {
            return bad("thresholds.min", min, "less than `max`");
        }
        for (field, found) in [("weight", params.weight), ("max_probability", params.max_probability)] {
            if !(found > 0.0 && found <= 1.0) {
                return bad(field, found, "above 0, at most 1");
            }
        }
        if params.mean_packet_size.get() == 0 {
            return bad("mean_packet_size", 0.0, "at least 1 byte");
        }
        Ok(Red {
            room: Room::new(params.capacity)?,
            in_bytes,
            min,
            max,
            max_probability: params.max_probability,
            weight: params.weight,
            mean_packet_size: params.mean_packet_size.get(),
            gentle: params.gentle,
            wait: params.wait,
            by_size: params.by_size,
            ecn: params.ecn,
            average: 0.0,
            count: 0,
            count_bytes: 0,
            above_min: false,
            random,
        })
    }

    /// The average queue.
    #[cfg(test)]
    pub(crate) fn average(&self) -> f64 {
        self.average
    }

    /// The size of a mean packet, in bytes.
    pub(crate) fn mean_packet_size(&self) -> u64 {
        self.mean_packet_size
    }

    /// Whether an arrival of `size` is let in.
    pub(crate) fn decide(&mut self, found: Occupancy, size: u64, ecn_capable: bool) -> Verdict {
        self.update_average(found.waiting, found.could_have_left);
        let chance = self.random.uniform();
        let verdict = self.judge(found.waiting, size, ecn_capable, chance);
        if self.room.fits(found.held, size) {
            return verdict;
        }
        self.restart_count();
        Verdict::Drop(DropReason::QueueFull)
    }

    /// The verdict of the average, which the arrival has updated, whatever room there is; `chance` is the arrival's
    /// random number.
    #[inline]
    pub(crate) fn judge(&mut self, waiting: Held, size: u64, ecn_capable: bool, chance: f64) -> Verdict {
        self.count += 1;
        self.count_bytes += size;
        if self.average < self.min || waiting.packets <= 1 {
            self.above_min = false;
            return Verdict::Admit;
        }
        if self.average >= if self.gentle { 2.0 * self.max } else { self.max } {
            self.restart_count();
            return Verdict::Drop(DropReason::Early);
        }
        if !self.above_min {
            self.above_min = true;
            self.count = 1;
            self.count_bytes = size;
            return Verdict::Admit;
        }
        if chance >= self.spread_out(self.base_probability(), size) {
            return Verdict::Admit;
        }
        self.restart_count();
        if self.ecn && ecn_capable { Verdict::Mark } else { Verdict::Drop(DropReason::Early) }
    }

    /// (1) avg ← (1 − w_q) avg + w_q q; after an idle time as if m packets had found nothing:
    /// avg ← (1 − w_q)^m avg first [RED §4, ns-2].
    #[inline]
    pub(crate) fn update_average(&mut self, waiting: Held, could_have_left: u64) {
        let keep = 1.0 - self.weight;
        if could_have_left > 0 {
            self.average *= power(keep, could_have_left);
        }
        let q = if self.in_bytes { waiting.bytes } else { waiting.packets };
        self.average = keep * self.average + self.weight * q as f64;
    }

    /// (2) p_b = max_p (avg − min_th) / (max_th − min_th); gentle: from max_p at max_th on to 1 at
    /// twice max_th.
    #[inline]
    fn base_probability(&self) -> f64 {
        if self.average >= self.max {
            self.max_probability + (1.0 - self.max_probability) * (self.average - self.max) / self.max
        } else {
            self.max_probability * (self.average - self.min) / (self.max - self.min)
        }
    }

    /// (3) p_a: makes the number of arrivals between drops uniform instead of geometric. Without
    /// `wait` p_b / (1 − count p_b); with it nothing before count = 1/p_b, then
    /// p_b / (2 − count p_b). By size: the count in mean packets, and p_a × size / mean size.
    #[inline]
    fn spread_out(&self, p: f64, size: u64) -> f64 {
        let mean = self.mean_packet_size as f64;
        let count = if self.by_size { self.count_bytes as f64 / mean } else { self.count as f64 };
        let passed = count * p;
        let certain = if self.wait { 2.0 } else { 1.0 };
        let p = match passed {
            _ if passed >= certain => return 1.0,
            _ if self.wait && passed < 1.0 => return 0.0,
            _ => p / (certain - passed),
        };
        if self.by_size && p < 1.0 { p * size as f64 / mean } else { p }
    }

    /// A drop begins the count anew.
    pub(crate) fn restart_count(&mut self) {
        self.count = 0;
        self.count_bytes = 0;
    }
}

/// base^n by squaring: the same bits everywhere, which `powi` does not promise.
fn power(mut base: f64, mut n: u64) -> f64 {
    let mut product = 1.0;
    while n > 0 {
        if n & 1 == 1 {
            product *= base;
        }
        base *= base;
        n >>= 1;
    }
    product
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Capacity;
    use fairpace_units::{Bytes, Packets};

    fn packets(min: u64, max: u64) -> RedParams {
        let thresholds = Thresholds::Packets { min: Packets::new(min), max: Packets::new(max) };
        RedParams { thresholds, ..RedParams::for_capacity(Capacity::Unlimited, Bytes::new(1_000)) }
    }

    fn red(params: RedParams) -> Red {
        Red::new(&params, RandomStream::named(1, "test")).unwrap()
    }

    /// So many packets of 1,000 bytes wait behind the one in transmission.
    fn waiting(packets: u64) -> Occupancy {
        let held = |packets| Held { packets, bytes: packets * 1_000 };
        Occupancy { held: held(packets + 1), waiting: held(packets), could_have_left: 0 }
    }

    fn idle(could_have_left: u64) -> Occupancy {
        Occupancy { held: Held::default(), waiting: Held::default(), could_have_left }
    }

    /// How many arrivals each drop comes after the drop before, at a steady queue.
    fn distances(red: &mut Red, queue: u64, drops: usize) -> Vec<u64> {
        let (mut distances, mut since) = (Vec::new(), 0);
        while distances.len() < drops {
            since += 1;
            if red.decide(waiting(queue), 1_000, false) != Verdict::Admit {
                distances.push(since);
                since = 0;
            }
        }
        distances.split_off(1)
    }

    //= 2309-3-1
    #[test]
    fn the_average_moves_by_a_weight_and_an_idle_time_counts_as_so_many_empty_queues() {
        let mut red = red(RedParams { weight: 0.25, ..packets(5, 15) });
        // avg ← 0.75 avg + 0.25 q
        for (found, average) in [
            (idle(0), 0.0),
            (waiting(4), 1.0),     // 0.25 × 4
            (waiting(8), 2.75),    // 0.75 + 2
            (waiting(2), 2.5625),  // 2.0625 + 0.5
            (idle(2), 1.08105469), // 0.75² × 2.5625 = 1.44140625 before, × 0.75 with the arrival
            (waiting(0), 0.81079102),
            (idle(1_000_000), 0.0),
        ] {
            red.decide(found, 1_000, false);
            assert!((red.average - average).abs() < 1e-8, "{} for {average}", red.average);
        }
    }

    /// The average after each arrival at a link of 8 Mbit/s, beside ns-2's.
    #[test]
    fn the_average_is_that_of_ns_2_over_bursts_and_idle_times() {
        use crate::queue::{Managed, Queue};
        use crate::{Link, LinkSpec, Plain, QueueModel, RateModel};
        use fairpace_units::{Instant, Rate};
        let size = Bytes::new(1_000);
        let models = [
            Thresholds::Packets { min: Packets::new(500), max: Packets::new(900) },
            Thresholds::Bytes { min: Bytes::new(500_000), max: Bytes::new(900_000) },
        ];
        let mut links = models.map(|thresholds| {
            let params = RedParams { thresholds, weight: 0.02, ..RedParams::for_capacity(Capacity::Unlimited, size) };
            let rate = RateModel::Fixed(Rate::mbps(8.0));
            let spec = LinkSpec { rate, queue: QueueModel::Red(params), ..LinkSpec::default() };
            Link::<Plain>::new(&spec, 1, "red").unwrap()
        });
        let rows = include_str!("red_ns2.csv").lines().filter(|l| l.starts_with(|c: char| c.is_ascii_digit()));
        let mut count = 0;
        for row in rows {
            let fields: Vec<f64> = row.split(',').map(|field| field.parse().unwrap()).collect();
            for (link, ns2) in links.iter_mut().zip(&fields[2..]) {
                link.push(Instant::from_nanos(fields[0] as u64), Plain::new(Bytes::new(fields[1] as u64)));
                let Queue::Managed(Managed::Red(red)) = link.queue() else { panic!("another queue") };
                // Six digits.
                assert!((red.average - ns2).abs() <= 5e-6 * ns2, "{} for {ns2} at {} ns", red.average, fields[0]);
            }
            count += 1;
        }
        assert_eq!(count, 250);
    }

    #[test]
    fn in_byte_mode_the_average_counts_the_bytes_that_wait() {
        let thresholds = Thresholds::Bytes { min: Bytes::new(5_000), max: Bytes::new(15_000) };
        let mut red = red(RedParams { weight: 0.25, thresholds, ..packets(5, 15) });
        red.decide(waiting(4), 40, false);
        assert_eq!(red.average, 1_000.0);
        red.average = 10_000.0;
        assert_eq!(red.base_probability(), 0.05); // half-way to 0.1
    }

    //= 2309-3-3
    #[test]
    fn the_chance_rises_to_max_p_and_if_gentle_on_to_one() {
        let mut red = red(packets(5, 15));
        for (average, p) in [
            (5.0, 0.0),
            (7.5, 0.025), // 0.1 × 2.5 / 10
            (10.0, 0.05),
            (15.0, 0.1),
            (18.0, 0.28), // 0.1 + 0.9 × 3 / 15
            (30.0, 1.0),
        ] {
            red.average = average;
            assert!((red.base_probability() - p).abs() < 1e-15, "{average}");
        }
    }

    #[test]
    fn the_chance_of_an_arrival_grows_with_the_count() {
        let mut waits = red(packets(5, 15));
        let mut paper = red(RedParams { wait: false, ..packets(5, 15) });
        // p_b = 0.05: certain after 20 arrivals, or after 40 if nothing goes before 20.
        for (count, with_wait, without) in [
            (1, 0.0, 1.0 / 19.0), // 0.05 / (1 − 0.05)
            (10, 0.0, 0.1),       // 0.05 / (1 − 0.5)
            (19, 0.0, 1.0),
            (20, 0.05, 1.0), // 0.05 / (2 − 1)
            (30, 0.1, 1.0),
            (40, 1.0, 1.0),
        ] {
            (waits.count, paper.count) = (count, count);
            assert!((waits.spread_out(0.05, 1_000) - with_wait).abs() < 1e-12, "{count}");
            assert!((paper.spread_out(0.05, 1_000) - without).abs() < 1e-12, "{count}");
        }
    }

    #[test]
    fn by_size_a_small_packet_is_dropped_in_proportion() {
        let mut red = red(RedParams { by_size: true, wait: false, ..packets(5, 15) });
        red.count_bytes = 10_000; // ten mean packets, whatever their number
        // 0.05 / (1 − 0.5) × 40 / 1,000
        assert!((red.spread_out(0.05, 40) - 0.004).abs() < 1e-15);
    }

    #[test]
    fn drops_are_uniformly_spread_and_twice_as_frequent_as_p_without_wait() {
        // Weight 1: the average is the queue. Queue 7 of 5 to 15: p_b = 0.1 × 2 / 10 = 1 / 50.
        let mut red = red(RedParams { weight: 1.0, wait: false, ..packets(5, 15) });
        let found = distances(&mut red, 7, 20_001);
        // Count n has the chance 1 / (50 − n): each n of 1..=49 is equally likely. Mean 25, sd
        // sqrt((49² − 1) / 12) = 14.14; of the mean of 20,000, 0.1.
        assert_eq!((found.iter().min(), found.iter().max()), (Some(&1), Some(&49)));
        let mean = found.iter().sum::<u64>() as f64 / found.len() as f64;
        assert!((mean - 25.0).abs() < 0.4, "{mean}");
        // The first and last tenth as often: 408 of 20,000 at each n, sd 20.
        let at = |n| found.iter().filter(|&&d| d == n).count() as f64;
        assert!([1, 25, 49].into_iter().all(|n| (at(n) - 408.0).abs() < 80.0));
    }

    #[test]
    fn with_wait_no_two_drops_are_closer_than_one_over_p() {
        let mut red = red(RedParams { weight: 1.0, ..packets(5, 15) });
        let found = distances(&mut red, 7, 20_001);
        // Count n ≥ 50 has the chance 1 / (100 − n): uniform on 50..=99, mean 74.5, sd 14.43.
        assert_eq!((found.iter().min(), found.iter().max()), (Some(&50), Some(&99)));
        let mean = found.iter().sum::<u64>() as f64 / found.len() as f64;
        assert!((mean - 74.5).abs() < 0.41, "{mean}");
    }

    //= 2309-3-2
    #[test]
    fn the_first_arrival_above_the_threshold_passes_and_starts_the_count() {
        let mut red = red(RedParams { weight: 1.0, max_probability: 1.0, wait: false, ..packets(5, 7) });
        // p_b = 1/2 at 6: the second arrival above the threshold has count 2, hence chance 1.
        let verdicts = [4, 6, 6].map(|queue| red.decide(waiting(queue), 1_000, false));
        assert_eq!(verdicts, [Verdict::Admit, Verdict::Admit, Verdict::Drop(DropReason::Early)]);
        // Falling below ends it: again the first one passes.
        let verdicts = [4, 6, 6].map(|queue| red.decide(waiting(queue), 1_000, false));
        assert_eq!(verdicts, [Verdict::Admit, Verdict::Admit, Verdict::Drop(DropReason::Early)]);
    }

    //= 2309-3-4
    #[test]
    fn ecn_marks_where_chance_decides_and_drops_where_the_average_alone_does() {
        let params = RedParams { weight: 1.0, max_probability: 1.0, wait: false, ecn: true, ..packets(5, 7) };
        let mut gentle = red(params);
        let verdict = |red: &mut Red, queue, ecn| {
            red.decide(waiting(queue), 1_000, ecn);
            red.decide(waiting(queue), 1_000, ecn)
        };
        assert_eq!(verdict(&mut gentle, 6, true), Verdict::Mark);
        assert_eq!(verdict(&mut gentle, 13, true), Verdict::Mark); // below 2 × 7
        assert_eq!(verdict(&mut gentle, 14, true), Verdict::Drop(DropReason::Early));
        assert_eq!(verdict(&mut gentle, 6, false), Verdict::Drop(DropReason::Early));
        let mut steep = red(RedParams { gentle: false, ..params });
        assert_eq!(verdict(&mut steep, 7, true), Verdict::Drop(DropReason::Early));
        let room = Capacity::Packets(Packets::new(7));
        let mut full = red(RedParams { capacity: room, ..params });
        assert_eq!(verdict(&mut full, 6, true), Verdict::Drop(DropReason::QueueFull)); // 6 and one in transmission
    }

    #[test]
    fn a_parameter_out_of_range_is_refused_by_its_name() {
        let refusal = |params: RedParams| Red::new(&params, RandomStream::named(1, "test")).unwrap_err().to_string();
        assert_eq!(refusal(packets(5, 5)), "`queue.thresholds.min` is 5; it must be less than `max`");
        let weight = RedParams { weight: 0.0, ..packets(5, 15) };
        assert_eq!(refusal(weight), "`queue.weight` is 0; it must be above 0, at most 1");
        let chance = RedParams { max_probability: 1.5, ..packets(5, 15) };
        assert_eq!(refusal(chance), "`queue.max_probability` is 1.5; it must be above 0, at most 1");
        let size = RedParams { mean_packet_size: Bytes::ZERO, ..packets(5, 15) };
        assert_eq!(refusal(size), "`queue.mean_packet_size` is 0; it must be at least 1 byte");
    }
}
