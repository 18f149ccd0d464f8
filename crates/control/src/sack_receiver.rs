//! The receiver half of window-based AIMD: which [`SackVector`] leaves when.
//!
//! Source: `aimd` §II. The ACK itself is `sack_vector.rs`.
//!
//! # Readings
//!
//! - An ACK leaves with every packet, or every `interval`; then at the latest when eight packets wait, or when one
//!   would fall out of the vector.
//! - A packet that comes more than eight numbers late cannot be acknowledged any more: for the sender it is lost.

use crate::receiver::Arrival;
use crate::sack_vector::{ACK_BITS, SackVector, VECTOR_BITS};
use fairpace_units::{Duration, Ecn, Instant, Kind};
use std::collections::VecDeque;

/// ACKs that wait to be collected at most.
const MOST: usize = 64;

/// Makes [`SackVector`]s of the packets that arrive.
///
/// Hand in arrivals, then call [`SackReceiver::poll`] until `None`; wake up at [`SackReceiver::next`]. Dummies are
/// not acknowledged: the scheme sends none.
#[derive(Clone, Debug)]
pub struct SackReceiver {
    interval: Option<Duration>,
    rwnd: Option<u32>,
    /// The largest number received, and when; `None` before the first.
    highest: Option<(u64, Instant)>,
    /// Bit i - 1: `highest - i` was received.
    vector: u8,
    /// The lowest number received since the last ACK; `None`: nothing waits.
    oldest_waiting: Option<u64>,
    /// How many wait.
    waiting: u32,
    /// CE if one of those that wait was marked.
    ecn: Ecn,
    /// ACKs that had to be made before the vector moved on, and when packet ack_a of each came.
    ready: VecDeque<(SackVector, Instant)>,
    due: Instant,
    /// When the last ACK left: the interval runs from there.
    last: Option<Instant>,
    refused: u64,
}

impl SackReceiver {
    /// `None` acknowledges each packet at once.
    pub fn new(interval: Option<Duration>) -> Self {
        SackReceiver {
            interval: interval.filter(|i| !i.is_zero()),
            rwnd: None,
            highest: None,
            vector: 0,
            oldest_waiting: None,
            waiting: 0,
            ecn: Ecn::NotEct,
            ready: VecDeque::new(),
            due: Instant::NEVER,
            last: None,
            refused: 0,
        }
    }

    /// The window to advertise from the next ACK on, in packets; `None`: say nothing about it.
    pub fn set_rwnd(&mut self, rwnd: Option<u32>) {
        self.rwnd = rwnd;
    }

    /// A packet has arrived.
    pub fn on_packet(&mut self, now: Instant, arrival: &Arrival) {
        if arrival.kind != Kind::Data {
            return;
        }
        let seq = arrival.seq;
        match self.highest {
            Some((highest, _)) if seq <= highest => {
                let behind = highest - seq;
                if behind > u64::from(VECTOR_BITS) {
                    self.refused += 1;
                    return;
                }
                if behind > 0 {
                    self.vector |= 1 << (behind - 1);
                }
            }
            _ => {
                if self.oldest_waiting.is_some_and(|oldest| seq - oldest > u64::from(VECTOR_BITS)) {
                    if self.ready.len() >= MOST {
                        self.ready.pop_front();
                        self.refused += 1;
                    }
                    let ack = self.make();
                    self.ready.extend(ack);
                }
                let step = self.highest.map_or(u64::MAX, |(highest, _)| seq - highest);
                // The old highest becomes bit `step - 1`.
                let moved = (u16::from(self.vector) << 1 | 1).checked_shl(u32::try_from(step - 1).unwrap_or(u32::MAX));
                self.vector = if self.highest.is_some() { moved.unwrap_or(0) as u8 } else { 0 };
                self.highest = Some((seq, now));
            }
        }
        self.oldest_waiting = Some(self.oldest_waiting.map_or(seq, |oldest| oldest.min(seq)));
        self.waiting += 1;
        if self.ecn != Ecn::Ce {
            self.ecn = arrival.ecn;
        }
        if !self.ready.is_empty() || self.waiting >= VECTOR_BITS {
            self.due = now;
        } else if self.due == Instant::NEVER {
            // As `AckReceiver`: the first packet after a pause at once, then one ACK each interval.
            self.due = match (self.interval, self.last) {
                (Some(interval), Some(last)) => now.max(last + interval),
                _ => now,
            };
        }
    }

    /// The ACK of what waits, which then no longer does, and when its packet ack_a came.
    fn make(&mut self) -> Option<(SackVector, Instant)> {
        self.oldest_waiting.take()?;
        let (highest, arrived) = self.highest?;
        self.waiting = 0;
        let sack = SackVector {
            ack: (highest & ((1 << ACK_BITS) - 1)) as u32,
            vector: self.vector,
            rwnd: None,
            ecn: core::mem::replace(&mut self.ecn, Ecn::NotEct),
            ack_delay: Duration::ZERO,
            arrived_at: Some(arrived.since(Instant::ZERO)),
        };
        Some((sack, arrived))
    }

    /// The ACK that is due, if one is.
    pub fn poll(&mut self, now: Instant) -> Option<SackVector> {
        if now < self.due {
            return None;
        }
        let Some((sack, arrived)) = self.ready.pop_front().or_else(|| self.make()) else {
            self.due = Instant::NEVER;
            return None;
        };
        if self.ready.is_empty() && self.oldest_waiting.is_none() {
            self.due = Instant::NEVER;
        }
        self.last = Some(now);
        Some(SackVector { rwnd: self.rwnd, ack_delay: now.since(arrived), ..sack })
    }

    /// When an ACK is due; [`Instant::NEVER`] if nothing waits.
    pub fn next(&self) -> Instant {
        self.due
    }

    /// Packets that came more than eight numbers late, and ACKs that nobody collected: the sender does not hear of
    /// them.
    pub fn refused(&self) -> u64 {
        self.refused
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairpace_units::Class;
    use proptest::prelude::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn data(seq: u64) -> Arrival {
        Arrival { kind: Kind::Data, class: Class::Normal, seq, ecn: Ecn::NotEct }
    }

    fn collect(r: &mut SackReceiver, now: Instant) -> Vec<(u32, u8)> {
        core::iter::from_fn(|| r.poll(now)).map(|s| (s.ack, s.vector)).collect()
    }

    /// The i-th bit speaks of packet ack_a - i: 7, then 8 and not 9, then 10 with 8 and 7 two and three before it.
    #[test]
    fn each_packet_is_acknowledged_at_once_with_the_eight_before_it() {
        let mut r = SackReceiver::new(None);
        assert_eq!((r.next(), r.poll(at(0))), (Instant::NEVER, None));
        for (seq, expected) in [(7, (7, 0)), (8, (8, 0b1)), (10, (10, 0b110)), (11, (11, 0b1101)), (9, (11, 0b1111))] {
            r.on_packet(at(seq), &data(seq));
            assert_eq!(r.next(), at(seq));
            assert_eq!(collect(&mut r, at(seq)), [expected], "after {seq}");
            assert_eq!(r.next(), Instant::NEVER);
        }
    }

    #[test]
    fn a_packet_eight_late_is_in_the_vector_and_one_nine_late_is_lost() {
        let mut r = SackReceiver::new(None);
        r.on_packet(at(0), &data(100));
        collect(&mut r, at(0));
        r.on_packet(at(1), &data(92));
        assert_eq!(collect(&mut r, at(1)), [(100, 0b1000_0000)]);
        r.on_packet(at(2), &data(91));
        assert_eq!((collect(&mut r, at(2)), r.refused()), (vec![], 1));
    }

    #[test]
    fn a_jump_empties_the_vector_however_far_it_goes() {
        for (jump, vector) in [(8, 0b1000_0000), (9, 0), (16, 0), (1 << 24, 0), (1 << 40, 0)] {
            let mut r = SackReceiver::new(None);
            r.on_packet(at(0), &data(5));
            collect(&mut r, at(0));
            r.on_packet(at(1), &data(5 + jump));
            assert_eq!(collect(&mut r, at(1)), [(((5 + jump) & 0xFF_FFFF) as u32, vector)], "{jump}");
        }
    }

    #[test]
    fn numbers_wrap_at_2_to_the_24_and_the_vector_does_not_care() {
        let mut r = SackReceiver::new(None);
        for seq in [(1 << 24) - 2, (1 << 24) - 1, 1 << 24, (1 << 24) + 2] {
            r.on_packet(at(0), &data(seq));
        }
        // Handed in together: one ACK says it all.
        assert_eq!(collect(&mut r, at(0)), [(2, 0b1110)]);
    }

    #[test]
    fn gathered_it_leaves_every_interval_and_never_with_more_than_eight_packets() {
        let mut r = SackReceiver::new(Some(Duration::from_millis(20)));
        r.set_rwnd(Some(25));
        r.on_packet(at(0), &data(0));
        assert_eq!(collect(&mut r, at(0)), [(0, 0)]);
        for seq in 1..=3 {
            r.on_packet(at(5 * seq), &data(seq));
        }
        assert_eq!((r.next(), r.poll(at(19))), (at(20), None));
        let ack = r.poll(at(20)).expect("due");
        let waited = (ack.ack_delay, ack.arrived_at);
        assert_eq!((ack.ack, ack.vector, ack.rwnd), (3, 0b111, Some(25)));
        assert_eq!(waited, (Duration::from_millis(5), Some(Duration::from_millis(15))));
        for seq in 4..=10 {
            r.on_packet(at(21), &data(seq));
            assert_eq!(r.next(), at(40));
        }
        r.on_packet(at(21), &data(11));
        assert_eq!(r.next(), at(21), "eight wait");
        assert_eq!(collect(&mut r, at(21)), [(11, 0b1111_1111)]);
    }

    /// 1 waits; 10 would push it out of the vector, so it is acknowledged before.
    #[test]
    fn nothing_falls_out_of_the_vector_unacknowledged() {
        let mut r = SackReceiver::new(Some(Duration::from_millis(20)));
        r.on_packet(at(0), &data(0));
        collect(&mut r, at(0));
        r.on_packet(at(1), &data(1));
        r.on_packet(at(2), &data(9));
        assert_eq!(r.next(), at(20));
        r.on_packet(at(3), &data(10));
        assert_eq!((r.next(), collect(&mut r, at(3))), (at(3), vec![(9, 0b1000_0000), (10, 0b1)]));
    }

    #[test]
    fn a_mark_is_in_the_ack_it_causes_and_in_no_other() {
        let mut r = SackReceiver::new(None);
        for (seq, ecn) in [(1, Ecn::Ect0), (2, Ecn::Ce), (3, Ecn::Ect0)] {
            r.on_packet(at(seq), &Arrival { ecn, ..data(seq) });
            assert_eq!(r.poll(at(seq)).map(|s| s.ecn), Some(ecn));
        }
        let mut r = SackReceiver::new(Some(Duration::from_millis(20)));
        for (seq, ecn) in [(1, Ecn::Ect0), (2, Ecn::Ce), (3, Ecn::Ect0)] {
            r.on_packet(at(0), &Arrival { ecn, ..data(seq) });
        }
        assert_eq!(r.poll(at(0)).map(|s| s.ecn), Some(Ecn::Ce), "one of three");
    }

    #[test]
    fn dummies_are_not_acknowledged_and_repeated_packets_are_once_more() {
        let mut r = SackReceiver::new(None);
        r.on_packet(at(0), &Arrival { kind: Kind::Dummy, class: Class::Low, seq: 4, ecn: Ecn::NotEct });
        assert_eq!(r.next(), Instant::NEVER);
        for _ in 0..2 {
            r.on_packet(at(1), &data(3));
            assert_eq!(collect(&mut r, at(1)), [(3, 0)]);
        }
    }

    #[test]
    fn memory_is_bounded_when_nobody_collects() {
        let mut r = SackReceiver::new(Some(Duration::from_secs(3_600)));
        for seq in 0..100_000 {
            r.on_packet(at(1), &data(seq));
        }
        assert_eq!(r.ready.len(), MOST);
        let acks = collect(&mut r, at(1));
        assert_eq!((acks.len(), acks.last(), r.next()), (MOST + 1, Some(&(99_999, 0xFF)), Instant::NEVER));
    }

    proptest! {
        /// Whatever arrives in whatever order, gathered or not: the ACKs name nothing that did not arrive, and all that
        /// arrived less than nine numbers late.
        #[test]
        fn the_acks_name_what_arrived(
            steps in prop::collection::vec((-12..30_i64, 0..15_u64, any::<bool>()), 1..300),
            interval in prop_oneof![Just(None), Just(Some(Duration::from_millis(20)))],
            first in prop_oneof![Just(20_u64), Just((1 << 24) - 100), Just((9 << 24) - 3)],
        ) {
            let mut r = SackReceiver::new(interval);
            let (mut now, mut highest) = (at(0), first);
            let (mut arrived, mut named) = (std::collections::BTreeSet::new(), std::collections::BTreeSet::new());
            let mut drain = |r: &mut SackReceiver, now: Instant, highest: u64| {
                while let Some(s) = r.poll(now) {
                    let ack = s.unwrap_near(highest + 1).expect("not below zero");
                    named.extend(s.numbers(ack));
                }
            };
            let mut refused = 0;
            for (step, ms, polled) in steps {
                now += Duration::from_millis(ms);
                let seq = highest.saturating_add_signed(step);
                if !arrived.is_empty() && highest.saturating_sub(seq) > 8 {
                    refused += 1;
                } else {
                    arrived.insert(seq);
                    highest = if arrived.len() == 1 { seq } else { highest.max(seq) };
                }
                r.on_packet(now, &data(seq));
                if polled {
                    drain(&mut r, now, highest);
                }
            }
            drain(&mut r, now + Duration::from_secs(1), highest);
            prop_assert_eq!(named, arrived);
            prop_assert_eq!(r.refused(), refused);
        }
    }
}
