//! DualPI2: two queues with coupled marking, so that scalable (L4S) congestion controls keep a short queue beside
//! Reno and CUBIC without starving them.
//!
//! Source: RFC 9332, §2 and Appendix A (pseudo-code); the scheduler is that of Linux 6.18, `net/sched/sch_dualpi2.c`.
//! Page: `docs/links/dualpi2.md`.
//!
//! | RFC | here | unit | set by |
//! | --- | --- | --- | --- |
//! | lq, cq | `low_latency`, `classic` | – | the ECN field of each arrival |
//! | `p'`, `p_CL`, `p_C` | `base`, `coupled()`, `base`² | – | each update |
//! | target, Tupdate | `target`, `update_interval` | ns | parameter, 15 and 16 ms |
//! | alpha, beta | `alpha`, `beta` | 1/s | parameter, 0.16 and 3.2 |
//! | k | `coupling` | – | parameter, 2 |
//! | minTh, range | `threshold`, `range` | ns | parameter, 0.8 and 0.4 ms |
//! | Th_len | `threshold_packets` | packets | parameter, 1 |
//! | curq, prevq | `delay()`, `previous_delay` | ns | the heads of both queues at each update |
//! | `lq.count`, `cq.count` | `Queue::count` | – | each decision |
//!
//! **Readings.** (a) Updates happen at multiples of Tupdate since the run began, before whatever else happens at that
//! instant. (b) The delay is the longer wait of the two heads [App. A.2, and Linux], so that an overloaded L queue
//! raises p' too; p' is kept in [0, 1]. (c) Marks are spread by `recur` [App. A.1], without a random number. (d) The
//! ramp of the L queue applies while at least Th_len packets wait behind the one that leaves: below the rate at which
//! one packet lasts minTh the queue of one packet would otherwise always be marked. (e) Overload is p_CL of 1 or more:
//! the L queue then drops with p_C and marks the rest, and the classic queue drops ECN-capable packets too [App. A.2].
//! (f) The hard limit counts the packet in transmission.
//!
//! **Not implemented.** Curvy RED [App. B]; classifiers other than the ECN field; the time-shifted FIFO scheduler.

use super::parts::{Fifo, Held, Next, Room, check_gains, check_times};
use crate::{Datagram, DualPi2Params, LinkError};
use fairpace_units::{Ecn, Instant};

/// The two queues, the controller of their delay, and the scheduler's credit.
#[derive(Clone, Debug)]
pub(crate) struct DualPi2<T> {
    room: Room,
    low_latency: Queue<T>,
    classic: Queue<T>,
    target: u64,
    update_interval: u64,
    alpha: f64,
    beta: f64,
    coupling: f64,
    threshold: u64,
    range: u64,
    threshold_packets: usize,
    classic_weight: f64,
    /// The scheduler's credit in bytes after a quiet time.
    initial_credit: f64,
    /// The next turn while both queues hold packets is the classic one's if this is above zero.
    credit: f64,
    base: f64,
    previous_delay: u64,
    next_update: u64,
}

/// One of the two queues, and how much of a mark has gathered since its last one.
#[derive(Clone, Debug)]
struct Queue<T> {
    fifo: Fifo<T>,
    count: f64,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Queue { fifo: Fifo::default(), count: 0.0 }
    }
}

impl<T> Queue<T> {
    /// Whether this packet is the one to be marked or dropped, so that the share is `likelihood` [RFC 9332 App. A.1].
    fn recur(&mut self, likelihood: f64) -> bool {
        self.count += likelihood;
        let due = self.count > 1.0;
        if due {
            self.count -= 1.0;
        }
        due
    }

    /// How long the head has waited by `now`; zero without a head.
    fn delay(&self, now: u64) -> u64 {
        self.fifo.iter().next().map_or(0, |(arrival, _)| now - arrival.as_nanos())
    }
}

/// The fate of a packet that leaves one of the queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Send,
    Mark,
    Drop,
}

impl<T> DualPi2<T> {
    pub(crate) fn new(params: &DualPi2Params) -> Result<Self, LinkError> {
        let bad = |field, found, allowed| Err(LinkError::BadQueue { field, found, allowed });
        check_times([("target", params.target), ("update_interval", params.update_interval)])?;
        check_gains(params.alpha, params.beta)?;
        if !(params.coupling > 0.0 && params.coupling.is_finite()) {
            return bad("coupling", params.coupling, "above 0");
        }
        if !(params.classic_weight > 0.0 && params.classic_weight < 1.0) {
            return bad("classic_weight", params.classic_weight, "above 0 and below 1");
        }
        if params.mtu.get() == 0 {
            return bad("mtu", 0.0, "at least 1 byte");
        }
        let nanos = |duration| (Instant::ZERO + duration).as_nanos();
        let initial_credit = params.mtu.get() as f64 * (2.0 * params.classic_weight - 1.0);
        Ok(DualPi2 {
            room: Room::new(params.capacity)?,
            low_latency: Queue::default(),
            classic: Queue::default(),
            target: nanos(params.target),
            update_interval: nanos(params.update_interval),
            alpha: params.alpha,
            beta: params.beta,
            coupling: params.coupling,
            threshold: nanos(params.threshold),
            range: nanos(params.range),
            threshold_packets: params.threshold_packets as usize,
            classic_weight: params.classic_weight,
            initial_credit,
            credit: initial_credit,
            base: 0.0,
            previous_delay: 0,
            next_update: nanos(params.update_interval),
        })
    }

    /// How many packets wait, the one in transmission not counted.
    pub(crate) fn waiting(&self) -> usize {
        self.low_latency.fifo.len() + self.classic.fifo.len()
    }

    /// The packets that wait, and when they arrived.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Instant, &T)> {
        self.low_latency.fifo.iter().chain(self.classic.fifo.iter())
    }

    /// The transmitter has asked and found nobody: neither queue has had more than its share.
    pub(crate) fn found_empty(&mut self) {
        self.credit = self.initial_credit;
    }

    /// p_CL, the coupled chance of the L queue.
    fn coupled(&self) -> f64 {
        self.coupling * self.base
    }

    /// All updates up to `now`: between two calls nobody comes or goes.
    fn update_until(&mut self, now: Instant) {
        while self.next_update <= now.as_nanos() {
            self.update(self.next_update);
            self.next_update = self.next_update.saturating_add(self.update_interval);
            // Nothing changes any more in an idle time: no need to walk through it.
            let idle = self.waiting() == 0 && self.base == 0.0 && self.previous_delay == 0;
            if idle && self.next_update <= now.as_nanos() {
                let behind = (now.as_nanos() - self.next_update) / self.update_interval;
                self.next_update += (behind + 1) * self.update_interval;
            }
        }
    }

    /// p' ← p' + α (delay − target) + β (delay − previous delay), within [0, 1] [RFC 9332 App. A.1, A.2].
    fn update(&mut self, at: u64) {
        let seconds = |ns: u64| ns as f64 / 1e9;
        let delay = self.low_latency.delay(at).max(self.classic.delay(at));
        let integral = self.alpha * (seconds(delay) - seconds(self.target));
        let proportional = self.beta * (seconds(delay) - seconds(self.previous_delay));
        self.base = (self.base + integral + proportional).clamp(0.0, 1.0);
        self.previous_delay = delay;
    }

    /// The L queue's own chance of a mark for a packet that waited so long [RFC 9332 App. A.1, `laqm`].
    fn ramp(&self, sojourn_time: u64) -> f64 {
        let above = sojourn_time.saturating_sub(self.threshold);
        match above {
            _ if self.low_latency.fifo.len() < self.threshold_packets => 0.0,
            0 => 0.0,
            above if above >= self.range => 1.0,
            above => above as f64 / self.range as f64,
        }
    }

    fn fate_in_low_latency(&mut self, sojourn_time: u64) -> Fate {
        let coupled = self.coupled();
        if coupled < 1.0 {
            let chance = self.ramp(sojourn_time).max(coupled);
            return if self.low_latency.recur(chance) { Fate::Mark } else { Fate::Send };
        }
        let squared = self.base * self.base;
        if self.low_latency.recur(squared) { Fate::Drop } else { Fate::Mark }
    }

    fn fate_in_classic(&mut self, ecn_capable: bool) -> Fate {
        let squared = self.base * self.base;
        match (self.classic.recur(squared), ecn_capable && self.coupled() < 1.0) {
            (false, _) => Fate::Send,
            (true, true) => Fate::Mark,
            (true, false) => Fate::Drop,
        }
    }
}

impl<T: Datagram> DualPi2<T> {
    /// A packet arrives at the queue that its ECN field names; it comes back if there is no room
    /// [RFC 9332 App. A.1, `dualpi2_enqueue`].
    pub(crate) fn arrive(&mut self, now: Instant, held: Held, packet: T) -> Result<(), T> {
        self.update_until(now);
        if !self.room.fits(held, packet.size().get()) {
            return Err(packet);
        }
        match packet.ecn() {
            Ecn::Ect1 | Ecn::Ce => self.low_latency.fifo.push(now, packet),
            Ecn::NotEct | Ecn::Ect0 => self.classic.fifo.push(now, packet),
        }
        Ok(())
    }

    /// The packet whose transmission begins; those dropped on the way go to `gone`
    /// [RFC 9332 App. A.2, `dualpi2_dequeue`].
    pub(crate) fn dequeue(&mut self, now: Instant, gone: &mut Vec<(Instant, T)>) -> Option<Next<T>> {
        self.update_until(now);
        loop {
            let both = self.low_latency.fifo.len() > 0 && self.classic.fifo.len() > 0;
            let low_latency = if both { self.credit <= 0.0 } else { self.low_latency.fifo.len() > 0 };
            let queue = if low_latency { &mut self.low_latency } else { &mut self.classic };
            let (arrival, mut packet) = queue.fifo.pop()?;
            let fate = if low_latency {
                self.fate_in_low_latency(now.as_nanos() - arrival.as_nanos())
            } else {
                self.fate_in_classic(packet.ecn() != Ecn::NotEct)
            };
            if fate == Fate::Drop {
                gone.push((arrival, packet));
                continue;
            }
            if both {
                self.charge(low_latency, packet.size().get());
            }
            let marked = fate == Fate::Mark;
            if marked {
                packet.set_ecn(Ecn::Ce);
            }
            return Some(Next { arrival, packet, marked });
        }
    }

    /// One queue has sent while the other waited: the other's turn comes closer by the sender's weight
    /// [Linux, `dequeue_packet`].
    fn charge(&mut self, low_latency: bool, size: u64) {
        let size = size as f64;
        self.credit += if low_latency { self.classic_weight * size } else { -(1.0 - self.classic_weight) * size };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Capacity, Plain};
    use fairpace_units::{Bytes, Packets};
    use std::time::Duration;

    const MS: u64 = 1_000_000;

    fn usual() -> DualPi2Params {
        DualPi2Params::new(Capacity::Unlimited)
    }

    fn queue(params: DualPi2Params) -> DualPi2<Plain> {
        DualPi2::new(&params).unwrap()
    }

    fn packet(ecn: Ecn) -> Plain {
        Plain { ecn, ..Plain::new(Bytes::new(1_000)) }
    }

    fn arrive(queue: &mut DualPi2<Plain>, at_ms: u64, ecn: Ecn) {
        queue.arrive(Instant::from_nanos(at_ms * MS), Held::default(), packet(ecn)).unwrap();
    }

    /// Of so many packets that waited `wait_ms`, with p' held: sent, marked, dropped.
    fn fates(params: DualPi2Params, base: f64, ecn: Ecn, wait_ms: u64) -> [usize; 3] {
        let mut queue = queue(params);
        let mut counts = [0; 3];
        for _ in 0..1_000 {
            arrive(&mut queue, 0, ecn);
        }
        arrive(&mut queue, 0, ecn); // somebody stays behind the last one
        while queue.waiting() > 1 {
            (queue.base, queue.next_update) = (base, u64::MAX);
            let mut gone = Vec::new();
            let next = queue.dequeue(Instant::from_nanos(wait_ms * MS), &mut gone).unwrap();
            counts[2] += gone.len();
            counts[usize::from(next.marked)] += 1;
            assert_eq!(next.marked, next.packet.ecn == Ecn::Ce && ecn != Ecn::Ce);
        }
        counts
    }

    //= 9332-A.1-1
    //= 9332-2.1-2
    #[test]
    fn the_constants_are_those_of_the_rfc() {
        let p = usual();
        assert_eq!((p.target, p.update_interval), (Duration::from_millis(15), Duration::from_millis(16)));
        assert_eq!((p.alpha, p.beta, p.coupling), (0.16, 3.2, 2.0));
        assert_eq!((p.threshold, p.range), (Duration::from_micros(800), Duration::from_micros(400)));
        assert_eq!(p.threshold_packets, 1);
    }

    //= 9332-A.1-2
    #[test]
    fn the_base_chance_follows_the_head_of_the_classic_queue() {
        // A packet comes at 24 ms and stays: at 16 n ms its delay is 16 n − 24 ms.
        // 16: 0.16 × −0.015 < 0, so 0.         32: 0.16 × −0.007 + 3.2 × 0.008 = 0.02448
        // 48: + 0.16 × 0.009 + 3.2 × 0.016 = + 0.05264       64: + 0.16 × 0.025 + 0.0512 = + 0.0552
        let mut queue = queue(usual());
        arrive(&mut queue, 24, Ecn::NotEct);
        for (at_ms, expected) in [(24, 0.0), (32, 0.024_48), (48, 0.077_12), (64, 0.132_32)] {
            queue.update_until(Instant::from_nanos(at_ms * MS));
            assert!((queue.base - expected).abs() < 1e-12, "{at_ms} ms: {}", queue.base);
        }
        queue.update_until(Instant::from_nanos(2_000 * MS));
        assert_eq!(queue.base, 1.0);
    }

    //= 9332-A.2-2
    #[test]
    fn the_longer_of_the_two_delays_counts() {
        let mut queue = queue(usual());
        arrive(&mut queue, 24, Ecn::Ect1);
        arrive(&mut queue, 30, Ecn::NotEct);
        queue.update_until(Instant::from_nanos(32 * MS));
        assert!((queue.base - 0.024_48).abs() < 1e-12);
    }

    //= 9332-2.3-1
    #[test]
    fn the_ecn_field_names_the_queue() {
        let mut queue = queue(usual());
        for (ecn, expected) in [(Ecn::NotEct, [0, 1]), (Ecn::Ect0, [0, 2]), (Ecn::Ect1, [1, 2]), (Ecn::Ce, [2, 2])] {
            arrive(&mut queue, 0, ecn);
            assert_eq!([queue.low_latency.fifo.len(), queue.classic.fifo.len()], expected, "{ecn:?}");
        }
    }

    //= 9332-2.1-1
    //= 9332-A.1-3
    #[test]
    fn the_classic_share_is_the_square_of_the_coupled_one_over_k() {
        // p' = 0.1: 10 of 1,000 in the classic queue, k p' = 0.2 in the L queue; `recur` is behind by at most one.
        let [_, marked, dropped] = fates(usual(), 0.1, Ecn::NotEct, 0);
        assert!(marked == 0 && (9..=10).contains(&dropped), "{dropped}");
        let [_, marked, dropped] = fates(usual(), 0.1, Ecn::Ect0, 0);
        assert!(dropped == 0 && (9..=10).contains(&marked), "{marked}");
        let [_, marked, dropped] = fates(usual(), 0.1, Ecn::Ect1, 0);
        assert!(dropped == 0 && (199..=200).contains(&marked), "{marked}");
        // 2 p' with k = 2 and 8 p' with k = 8.
        let [_, marked, _] = fates(DualPi2Params { coupling: 8.0, ..usual() }, 0.1, Ecn::Ect1, 0);
        assert!((799..=800).contains(&marked), "{marked}");
    }

    //= 9332-A.1-4
    #[test]
    fn the_ramp_rises_from_the_threshold_over_its_range() {
        let mut queue = queue(usual());
        arrive(&mut queue, 0, Ecn::Ect1);
        for (us, expected) in [(799, 0.0), (800, 0.0), (900, 0.25), (1_100, 0.75), (1_200, 1.0), (9_000, 1.0)] {
            assert!((queue.ramp(us * 1_000) - expected).abs() < 1e-12, "{us} µs");
        }
        queue.low_latency.fifo.pop();
        assert_eq!(queue.ramp(9 * MS), 0.0, "nobody waits behind it");
        // A range of zero is a step.
        let mut step = self::queue(DualPi2Params { range: Duration::ZERO, ..usual() });
        arrive(&mut step, 0, Ecn::Ect1);
        assert_eq!((step.ramp(800_000), step.ramp(800_001)), (0.0, 1.0));
    }

    //= 9332-A.1-4
    #[test]
    fn the_larger_of_ramp_and_coupled_chance_marks() {
        // 1 ms: the ramp says 0.5, the coupling 0.2.
        let [_, marked, _] = fates(usual(), 0.1, Ecn::Ect1, 1);
        assert!((499..=500).contains(&marked), "{marked}");
        let [_, marked, _] = fates(usual(), 0.4, Ecn::Ect1, 1);
        assert!((798..=800).contains(&marked), "{marked}");
    }

    //= 9332-A.2-1
    #[test]
    fn overload_drops_ecn_capable_packets_in_both_queues() {
        // p' = 0.5: k p' = 1. A quarter is dropped everywhere, every other packet of the L queue is marked.
        let [sent, marked, dropped] = fates(usual(), 0.5, Ecn::Ect1, 0);
        assert!(sent == 0 && (249..=250).contains(&dropped), "{dropped}");
        assert_eq!(marked, 1_000 - dropped);
        let [_, marked, dropped] = fates(usual(), 0.5, Ecn::Ect0, 0);
        assert!(marked == 0 && (249..=250).contains(&dropped), "{dropped}");
        // Just below, the L queue loses nothing.
        let [_, marked, dropped] = fates(usual(), 0.499, Ecn::Ect1, 0);
        assert!(dropped == 0 && (995..=999).contains(&marked), "{marked}");
    }

    //= 9332-2.2-1
    //= 9332-2.2-2
    #[test]
    fn the_low_latency_queue_goes_first_and_leaves_the_classic_one_its_weight() {
        let mut queue = queue(usual());
        let mut firsts = Vec::new();
        for _ in 0..2_000 {
            arrive(&mut queue, 0, Ecn::Ect1);
            arrive(&mut queue, 0, Ecn::NotEct);
        }
        queue.next_update = u64::MAX;
        for _ in 0..1_000 {
            let next = queue.dequeue(Instant::ZERO, &mut Vec::new()).unwrap();
            firsts.push(next.packet.ecn == Ecn::NotEct);
        }
        // A credit of −0.8 × 1,500 B rises by 100 B a packet: twelve, the one that finds 0 included, are thirteen.
        assert_eq!(firsts.iter().position(|classic| *classic), Some(13));
        // A tenth of 987 packets.
        let classic = firsts.iter().filter(|classic| **classic).count();
        assert!((98..=100).contains(&classic), "{classic}");
    }

    //= 9332-2.2-2
    #[test]
    fn a_queue_that_is_alone_has_it_all_and_owes_nothing() {
        let mut queue = queue(usual());
        for _ in 0..100 {
            arrive(&mut queue, 0, Ecn::NotEct);
        }
        for _ in 0..100 {
            assert!(queue.dequeue(Instant::ZERO, &mut Vec::new()).is_some());
        }
        assert_eq!(queue.credit, queue.initial_credit);
        assert_eq!(queue.dequeue(Instant::ZERO, &mut Vec::new()), None);
    }

    #[test]
    fn an_hour_of_silence_is_not_walked_through_and_leaves_the_updates_on_their_multiples() {
        let mut queue = queue(usual());
        queue.base = 0.3;
        arrive(&mut queue, 3_600_000, Ecn::NotEct);
        assert_eq!((queue.base, queue.next_update), (0.0, 3_600_016 * MS));
    }

    #[test]
    fn the_hard_limit_is_of_both_queues_and_the_packet_in_transmission() {
        let mut queue = queue(DualPi2Params { capacity: Capacity::Packets(Packets::new(4)), ..usual() });
        let held = |packets| Held { packets, bytes: packets * 1_000 };
        assert!(queue.arrive(Instant::ZERO, held(3), packet(Ecn::Ect1)).is_ok());
        assert!(queue.arrive(Instant::ZERO, held(4), packet(Ecn::Ect1)).is_err());
        assert!(queue.arrive(Instant::ZERO, held(4), packet(Ecn::NotEct)).is_err());
    }

    #[test]
    fn a_parameter_out_of_range_is_refused_by_its_name() {
        let refusal = |params: DualPi2Params| DualPi2::<Plain>::new(&params).unwrap_err().to_string();
        let target = DualPi2Params { target: Duration::ZERO, ..usual() };
        assert_eq!(refusal(target), "`queue.target` is 0; it must be above 0 s");
        let coupling = DualPi2Params { coupling: 0.0, ..usual() };
        assert_eq!(refusal(coupling), "`queue.coupling` is 0; it must be above 0");
        let weight = DualPi2Params { classic_weight: 1.0, ..usual() };
        assert_eq!(refusal(weight), "`queue.classic_weight` is 1; it must be above 0 and below 1");
        let alpha = DualPi2Params { alpha: f64::NAN, ..usual() };
        assert_eq!(refusal(alpha), "`queue.alpha` is NaN; it must be from 0 to 1000000000");
    }
}
