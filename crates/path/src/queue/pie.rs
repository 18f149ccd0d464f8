//! PIE: drops arrivals by a chance that a controller of the queuing delay sets.
//!
//! Source: RFC 8033, §4 and Appendix A (pseudo-code). Page: `docs/links/pie.md`.
//!
//! | RFC | here | unit | set by |
//! | --- | --- | --- | --- |
//! | QDELAY_REF, T_UPDATE, MAX_BURST | `target`, `update_interval`, `max_burst` | ns | parameter, 15, 15, 150 ms |
//! | alpha, beta | `alpha`, `beta` | 1/s | parameter, 1/8, 5/4 |
//! | MEAN_PKTSIZE | `mean_packet_size` | bytes | parameter |
//! | `drop_prob_` | `drop_probability` | – | each update |
//! | `current_qdelay_`, `qdelay_old_` | `delay`, `old_delay` | ns | each begin of a transmission; each update |
//! | `burst_allowance_` | `burst_allowance` | ns | arrivals after a quiet time, each update |
//!
//! **Readings.** (a) The delay is that of the packet whose transmission began last, from its time
//! stamp [§4.3]; once nobody waits it is zero, or a stale one would drive the chance in an idle time.
//! (b) Updates happen at multiples of T_UPDATE since the run began, after departures and before
//! arrivals of the same instant. (c) The queue of §4.1 is what waits, without the packet in
//! transmission; the hard limit counts that too. (d) An increase is at most 0.02 while the chance is
//! at least 0.1 [§5.5, optional; Linux has it].
//!
//! **Not implemented.** The estimate from the departure rate [§5.2], which a time stamp makes
//! needless here, switching PIE off while the queue is short [§5.3], de-randomization [§5.4].

use super::parts::{Occupancy, Room, Verdict, check_gains, check_times};
use crate::{DropReason, LinkError, PieParams};
use fairpace_units::{Instant, RandomStream};
use std::collections::VecDeque;

/// The state of a PIE queue. PIE never takes back an admission, so the state holds no packets, only the instants at
/// which their transmission begins.
#[derive(Clone, Debug)]
pub(crate) struct Pie {
    room: Room,
    target: u64,
    update_interval: u64,
    max_burst: u64,
    alpha: f64,
    beta: f64,
    mean_packet_size: u64,
    ecn: bool,
    mark_threshold: f64,
    drop_probability: f64,
    delay: u64,
    old_delay: u64,
    burst_allowance: u64,
    next_update: u64,
    /// When each admitted packet's transmission begins, and how long it will have waited.
    begins: VecDeque<(Instant, u64)>,
    random: RandomStream,
}

impl Pie {
    pub(crate) fn new(params: &PieParams, random: RandomStream) -> Result<Self, LinkError> {
        let bad = |field, found, allowed| Err(LinkError::BadQueue { field, found, allowed });
        check_times([("target", params.target), ("update_interval", params.update_interval)])?;
        check_gains(params.alpha, params.beta)?;
        if !(0.0..=1.0).contains(&params.mark_threshold) {
            return bad("mark_threshold", params.mark_threshold, "from 0 to 1");
        }
        if params.mean_packet_size.get() == 0 {
            return bad("mean_packet_size", 0.0, "at least 1 byte");
        }
        let nanos = |duration| (Instant::ZERO + duration).as_nanos();
        Ok(Pie {
            room: Room::new(params.capacity)?,
            target: nanos(params.target),
            update_interval: nanos(params.update_interval),
            max_burst: nanos(params.max_burst),
            alpha: params.alpha,
            beta: params.beta,
            mean_packet_size: params.mean_packet_size.get(),
            ecn: params.ecn,
            mark_threshold: params.mark_threshold,
            drop_probability: 0.0,
            delay: 0,
            old_delay: 0,
            burst_allowance: 0,
            next_update: nanos(params.update_interval),
            begins: VecDeque::new(),
            random,
        })
    }

    pub(crate) fn mean_packet_size(&self) -> u64 {
        self.mean_packet_size
    }

    /// Whether an arrival of `size` is let in [RFC 8033 §4.1, §4.4].
    pub(crate) fn decide(&mut self, now: Instant, found: Occupancy, size: u64, ecn_capable: bool) -> Verdict {
        self.update_until(now);
        self.observe(now);
        // Drawn for each arrival, needed or not: a parameter shifts no later draw.
        let chance = self.random.uniform();
        if !self.room.fits(found.held, size) {
            return Verdict::Drop(DropReason::QueueFull);
        }
        if self.drop_probability == 0.0 && self.low(self.delay) && self.low(self.old_delay) {
            self.burst_allowance = self.max_burst;
        }
        let spared = self.burst_allowance > 0
            || (self.low(self.old_delay) && self.drop_probability < 0.2)
            || found.waiting.bytes <= 2 * self.mean_packet_size;
        if spared || chance >= self.drop_probability {
            Verdict::Admit
        } else if self.ecn && ecn_capable && self.drop_probability < self.mark_threshold {
            Verdict::Mark
        } else {
            Verdict::Drop(DropReason::Early)
        }
    }

    /// A packet that was let in at `arrival` has its transmission begin at `start`.
    pub(crate) fn admitted(&mut self, arrival: Instant, start: Instant) {
        self.begins.push_back((start, start.as_nanos() - arrival.as_nanos()));
    }

    /// All updates up to `now`.
    fn update_until(&mut self, now: Instant) {
        while self.next_update <= now.as_nanos() {
            self.observe(Instant::from_nanos(self.next_update));
            let quiet = self.begins.is_empty() && self.old_delay == 0;
            self.update();
            self.next_update = self.next_update.saturating_add(self.update_interval);
            // After a quiet time nothing changes any more: no need to walk through it.
            if quiet && self.drop_probability == 0.0 && self.burst_allowance == 0 && self.next_update <= now.as_nanos()
            {
                let behind = (now.as_nanos() - self.next_update) / self.update_interval;
                self.next_update += (behind + 1) * self.update_interval;
            }
        }
    }

    /// The delay at that time: of the packet that began last, and none once nobody waits.
    fn observe(&mut self, now: Instant) {
        while let Some(&(start, waited)) = self.begins.front()
            && start <= now
        {
            self.delay = waited;
            self.begins.pop_front();
        }
        if self.begins.is_empty() {
            self.delay = 0;
        }
    }

    /// p ← p + scale × (α (delay − target) + β (delay − old delay)) [RFC 8033 §4.2], then decay,
    /// bounds, and the burst allowance of §4.4.
    fn update(&mut self) {
        const DECAY: f64 = 0.98;
        const MOST_AT_ONCE: f64 = 0.02;
        let seconds = |ns: u64| ns as f64 / 1e9;
        let mut step = self.alpha * (seconds(self.delay) - seconds(self.target))
            + self.beta * (seconds(self.delay) - seconds(self.old_delay));
        step /= scale(self.drop_probability);
        if self.drop_probability >= 0.1 {
            step = step.min(MOST_AT_ONCE);
        }
        self.drop_probability += step;
        if self.delay == 0 && self.old_delay == 0 {
            self.drop_probability *= DECAY;
        }
        self.drop_probability = self.drop_probability.clamp(0.0, 1.0);
        self.old_delay = self.delay;
        self.burst_allowance = self.burst_allowance.saturating_sub(self.update_interval);
    }

    fn low(&self, delay: u64) -> bool {
        delay < self.target / 2
    }
}

/// By how much steps are smaller while the chance is low, so that they stay in proportion to it
/// [RFC 8033 §4.2].
fn scale(drop_probability: f64) -> f64 {
    match drop_probability {
        p if p < 0.000_001 => 2_048.0,
        p if p < 0.000_01 => 512.0,
        p if p < 0.000_1 => 128.0,
        p if p < 0.001 => 32.0,
        p if p < 0.01 => 8.0,
        p if p < 0.1 => 2.0,
        _ => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Capacity;
    use crate::queue::parts::Held;
    use fairpace_units::{Bytes, Packets};

    const MS: u64 = 1_000_000;

    fn usual() -> PieParams {
        PieParams::new(Capacity::Unlimited, Bytes::new(1_000))
    }

    fn pie(params: PieParams) -> Pie {
        Pie::new(&params, RandomStream::named(1, "test")).unwrap()
    }

    /// So many packets of 1,000 bytes wait behind the one in transmission.
    fn waiting(packets: u64) -> Occupancy {
        let held = |packets| Held { packets, bytes: packets * 1_000 };
        Occupancy { held: held(packets + 1), waiting: held(packets), could_have_left: 0 }
    }

    /// The chance after one update.
    fn after(before: f64, old_delay_ms: u64, delay_ms: u64) -> f64 {
        let mut pie = pie(usual());
        (pie.drop_probability, pie.old_delay, pie.delay) = (before, old_delay_ms * MS, delay_ms * MS);
        pie.update();
        assert_eq!(pie.old_delay, delay_ms * MS);
        pie.drop_probability
    }

    /// The verdicts on a hundred arrivals.
    fn verdicts(params: PieParams, state: impl Fn(&mut Pie), found: Occupancy, ecn: bool) -> [usize; 3] {
        let mut pie = pie(params);
        let mut counts = [0; 3];
        for _ in 0..100 {
            state(&mut pie);
            let now = Instant::ZERO;
            pie.begins.push_back((Instant::NEVER, 0)); // somebody waits: the delay stays as it is
            counts[match pie.decide(now, found, 1_000, ecn) {
                Verdict::Admit => 0,
                Verdict::Mark => 1,
                Verdict::Drop(_) => 2,
            }] += 1;
        }
        counts
    }

    //= 8033-4.2-3
    //= 8033-4.2-4
    //= 8033-4.3-1
    //= 8033-4.4-3
    //= 8033-5.1-2
    #[test]
    fn the_constants_are_those_of_the_rfc() {
        let ms = |p: std::time::Duration| p.as_millis();
        let p = usual();
        assert_eq!((ms(p.target), ms(p.update_interval), ms(p.max_burst)), (15, 15, 150));
        assert_eq!((p.alpha, p.beta, p.mark_threshold), (1.0 / 8.0, 1.0 + 1.0 / 4.0, 0.1));
    }

    //= 8033-4.2-1
    //= 8033-4.2-2
    #[test]
    fn the_step_is_alpha_times_the_distance_and_beta_times_the_change_scaled_down_while_the_chance_is_low() {
        // Delay 20 ms, 10 ms before: 0.125 × 0.005 + 1.25 × 0.010 = 0.013125.
        for (before, divisor) in [
            (0.0, 2_048.0),
            (0.000_000_9, 2_048.0),
            (0.000_001, 512.0),
            (0.000_01, 128.0),
            (0.000_1, 32.0),
            (0.001, 8.0),
            (0.01, 2.0),
            (0.099, 2.0),
            (0.1, 1.0),
            (0.5, 1.0),
        ] {
            let expected = before + 0.013_125 / divisor;
            assert!((after(before, 10, 20) - expected).abs() < 1e-15, "{before}");
        }
        // Falling from 20 to 10 ms: 0.125 × −0.005 + 1.25 × −0.010 = −0.013125.
        assert!((after(0.3, 20, 10) - (0.3 - 0.013_125)).abs() < 1e-15);
    }

    //= 8033-4.2-5
    #[test]
    fn without_delay_the_chance_decays_by_a_fiftieth() {
        // 0.3 + 0.125 × −0.015 = 0.298125, × 0.98 if there was no delay before either.
        assert!((after(0.3, 0, 0) - 0.292_162_5).abs() < 1e-15);
        assert!((after(0.3, 1, 0) - (0.3 - 0.001_875 - 0.001_25)).abs() < 1e-15);
    }

    //= 8033-4.2-6
    #[test]
    fn the_chance_stays_between_zero_and_one() {
        assert_eq!(after(0.000_000_1, 15, 0), 0.0); // (−0.001875 − 0.01875) / 2048 = −1.0e-5
        assert_eq!(after(0.99, 15, 1_000), 1.0);
    }

    //= 8033-5.5-1
    #[test]
    fn a_high_chance_rises_by_a_fiftieth_at_most() {
        // 0.125 × 0.085 + 1.25 × 0.1 = 0.135625
        assert!((after(0.099, 0, 100) - (0.099 + 0.135_625 / 2.0)).abs() < 1e-15);
        assert!((after(0.1, 0, 100) - 0.12).abs() < 1e-15);
    }

    //= 8033-4.1-1
    //= 8033-4.1-2
    //= 8033-4.1-3
    #[test]
    fn a_low_delay_or_a_short_queue_is_spared() {
        let set = |p: f64, old: u64| {
            move |pie: &mut Pie| (pie.drop_probability, pie.old_delay, pie.delay) = (p, old * 1_000, 20 * MS)
        };
        let drops = |state: &dyn Fn(&mut Pie), packets| verdicts(usual(), state, waiting(packets), false)[2];
        // By chance: 90 of 100 with a deviation of 3.
        assert!((78..=100).contains(&drops(&set(0.9, 20_000), 10)));
        // Half the target is 7.5 ms; below it only a chance of 0.2 or more matters.
        assert_eq!(drops(&set(0.199, 7_499), 10), 0);
        assert!(drops(&set(0.199, 7_500), 10) > 5);
        assert!(drops(&set(0.2, 7_499), 10) > 5);
        // Two packets of mean size.
        assert_eq!(drops(&set(0.9, 20_000), 2), 0);
        assert!(drops(&set(0.9, 20_000), 3) > 77);
    }

    //= 8033-5.1-1
    #[test]
    fn ecn_capable_packets_are_marked_below_a_tenth_and_dropped_from_there_on() {
        let params = PieParams { ecn: true, ..usual() };
        let set =
            |p: f64| move |pie: &mut Pie| (pie.drop_probability, pie.old_delay, pie.delay) = (p, 20 * MS, 20 * MS);
        let [_, marks, drops] = verdicts(params, set(0.099), waiting(10), true);
        assert!(marks > 1 && drops == 0);
        let [_, marks, drops] = verdicts(params, set(0.1), waiting(10), true);
        assert!(marks == 0 && drops > 1);
        let [_, marks, drops] = verdicts(params, set(0.099), waiting(10), false);
        assert!(marks == 0 && drops > 1);
    }

    #[test]
    fn drops_have_the_share_that_the_chance_says() {
        let mut pie = pie(usual());
        let mut drops = 0;
        let n = 100_000;
        for _ in 0..n {
            (pie.drop_probability, pie.old_delay, pie.delay) = (0.05, 20 * MS, 20 * MS);
            drops += i32::from(pie.decide(Instant::ZERO, waiting(10), 1_000, false) != Verdict::Admit);
        }
        // 0.05 × 100,000 = 5,000; sd = sqrt(4,750) = 69
        assert!((drops - 5_000).abs() < 4 * 69, "{drops}");
    }

    //= 8033-4.4-1
    //= 8033-4.4-2
    #[test]
    fn a_burst_after_a_quiet_time_passes_for_its_allowance() {
        let mut pie = pie(usual());
        pie.decide(Instant::ZERO, waiting(0), 1_000, false);
        assert_eq!(pie.burst_allowance, 150 * MS);
        // Whatever the chance, for ten updates of 15 ms.
        for update in 1..=11 {
            (pie.drop_probability, pie.old_delay, pie.delay) = (1.0, 20 * MS, 20 * MS);
            let verdict = pie.decide(Instant::from_nanos(update * 15 * MS - 1), waiting(10), 1_000, false);
            let expected = if update <= 10 { Verdict::Admit } else { Verdict::Drop(DropReason::Early) };
            assert_eq!(verdict, expected, "before update {update}");
            pie.begins.push_back((Instant::NEVER, 0)); // so that the delay stays
        }
    }

    #[test]
    fn an_hour_of_silence_is_not_walked_through_and_leaves_the_updates_on_their_multiples() {
        let mut pie = pie(usual());
        (pie.drop_probability, pie.old_delay) = (0.4, 30 * MS);
        pie.decide(Instant::from_nanos(3_600_000 * MS), waiting(0), 1_000, false);
        assert_eq!(pie.drop_probability, 0.0);
        assert_eq!(pie.next_update, 3_600_015 * MS);
    }

    #[test]
    fn the_hard_limit_counts_the_packet_in_transmission() {
        let mut pie = pie(PieParams { capacity: Capacity::Packets(Packets::new(4)), ..usual() });
        assert_eq!(pie.decide(Instant::ZERO, waiting(2), 1_000, false), Verdict::Admit);
        assert_eq!(pie.decide(Instant::ZERO, waiting(3), 1_000, false), Verdict::Drop(DropReason::QueueFull));
    }

    #[test]
    fn a_parameter_out_of_range_is_refused_by_its_name() {
        let refusal = |params: PieParams| Pie::new(&params, RandomStream::named(1, "test")).unwrap_err().to_string();
        let target = PieParams { target: std::time::Duration::ZERO, ..usual() };
        assert_eq!(refusal(target), "`queue.target` is 0; it must be above 0 s");
        let beta = PieParams { beta: -1.0, ..usual() };
        assert_eq!(refusal(beta), "`queue.beta` is -1; it must be from 0 to 1000000000");
        let mark = PieParams { mark_threshold: 1.5, ..usual() };
        assert_eq!(refusal(mark), "`queue.mark_threshold` is 1.5; it must be from 0 to 1");
    }
}
