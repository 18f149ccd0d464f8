//! The receiver half that `rcs`, `rap` and `fixed` share: it acknowledges every packet.
//!
//! [rcs §III]: the destination acknowledges each packet it gets, and the ACK of a low-priority
//! packet is low priority itself. ACKs leave at once, or are gathered for an interval; then each
//! says how long it was held back, so that the sender's RTT does not grow by it.

use crate::feedback::Ack;
use fairpace_units::{Class, Duration, Ecn, Instant, Kind};

/// ACKs of one class that are gathered at most; then they are due at once.
const MOST: usize = 512;

/// A packet has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Media or dummy.
    pub kind: Kind,
    /// The priority it arrived with.
    pub class: Class,
    /// Its number among the packets of its kind.
    pub seq: u64,
    /// The ECN field it arrived with.
    pub ecn: Ecn,
}

/// ACKs to send in one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feedback<'a> {
    /// The priority to send it with.
    pub class: Class,
    /// The arrivals to acknowledge, in order; never empty.
    pub acks: &'a [Ack],
}

#[derive(Clone, Debug, Default)]
struct Batch {
    acks: Vec<Ack>,
    /// Given out by `poll`; to be emptied before the next use.
    given: bool,
}

impl Batch {
    fn waiting(&self) -> bool {
        !self.given && !self.acks.is_empty()
    }

    /// Takes one ACK; `false` if there is no room.
    fn push(&mut self, ack: Ack) -> bool {
        if self.given {
            self.acks.clear();
            self.given = false;
        }
        if self.acks.len() >= MOST {
            return false;
        }
        self.acks.push(ack);
        true
    }
}

/// Acknowledges every packet in the packet's own class, at once or every `interval`.
///
/// Hand in arrivals, then call [`AckReceiver::poll`] until `None`; wake up at
/// [`AckReceiver::next`]. Memory is bounded, and nothing is allocated in steady state.
#[derive(Clone, Debug)]
pub struct AckReceiver {
    interval: Option<Duration>,
    normal: Batch,
    low: Batch,
    /// When what waits is due; NEVER if nothing waits.
    due: Instant,
    /// When the last feedback left: the interval runs from there.
    last: Option<Instant>,
    refused: u64,
}

impl AckReceiver {
    /// `None` acknowledges each packet at once.
    pub fn new(interval: Option<Duration>) -> Self {
        AckReceiver {
            interval: interval.filter(|i| !i.is_zero()),
            normal: Batch::default(),
            low: Batch::default(),
            due: Instant::NEVER,
            last: None,
            refused: 0,
        }
    }

    /// A packet has arrived.
    pub fn on_packet(&mut self, now: Instant, arrival: &Arrival) {
        // A dummy's ACK is low priority even if a router on the way has erased the dummy's mark.
        let batch = match (arrival.kind, arrival.class) {
            (Kind::Dummy, _) | (_, Class::Low) => &mut self.low,
            (Kind::Data, Class::Normal) => &mut self.normal,
        };
        let ack = Ack {
            kind: arrival.kind,
            seq: arrival.seq,
            ecn: arrival.ecn,
            arrived_at: Some(now.since(Instant::ZERO)),
            ack_delay: Duration::ZERO,
        };
        if !batch.push(ack) {
            self.refused += 1;
        }
        if batch.acks.len() >= MOST {
            self.due = now;
        } else if self.due == Instant::NEVER {
            // The first packet after a pause is acknowledged at once; then one feedback each
            // interval.
            self.due = match (self.interval, self.last) {
                (Some(interval), Some(last)) => now.max(last + interval),
                _ => now,
            };
        }
    }

    /// The packet that arrived last brought a Quick-Start request: what waits is due at once [RFC 5634 §2.2].
    pub fn on_quick_start_request(&mut self, now: Instant) {
        if self.due != Instant::NEVER {
            self.due = now;
        }
    }

    /// Feedback that is due, normal class first.
    pub fn poll(&mut self, now: Instant) -> Option<Feedback<'_>> {
        if now < self.due {
            return None;
        }
        let (batch, class) = if self.normal.waiting() {
            (&mut self.normal, Class::Normal)
        } else if self.low.waiting() {
            (&mut self.low, Class::Low)
        } else {
            self.due = Instant::NEVER;
            return None;
        };
        batch.given = true;
        self.last = Some(now);
        for ack in &mut batch.acks {
            let arrived = ack.arrived_at.unwrap_or_default();
            ack.ack_delay = now.since(Instant::ZERO).saturating_sub(arrived);
        }
        if !(self.normal.waiting() || self.low.waiting()) {
            self.due = Instant::NEVER;
        }
        // Chosen again only to end the borrow of the other half.
        let acks = if class == Class::Normal { &self.normal.acks } else { &self.low.acks };
        Some(Feedback { class, acks })
    }

    /// When feedback is due; [`Instant::NEVER`] if nothing waits.
    pub fn next(&self) -> Instant {
        self.due
    }

    /// Packets not acknowledged because nobody collected the feedback.
    pub fn refused(&self) -> u64 {
        self.refused
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn arrival(kind: Kind, seq: u64) -> Arrival {
        let class = if kind == Kind::Data { Class::Normal } else { Class::Low };
        Arrival { kind, class, seq, ecn: Ecn::NotEct }
    }

    fn collect(r: &mut AckReceiver, now: Instant) -> Vec<(Class, Vec<u64>)> {
        let mut out = Vec::new();
        while let Some(f) = r.poll(now) {
            out.push((f.class, f.acks.iter().map(|a| a.seq).collect()));
        }
        out
    }

    #[test]
    fn each_packet_is_acknowledged_at_once_in_its_own_class() {
        let mut r = AckReceiver::new(None);
        assert_eq!(r.next(), Instant::NEVER);
        r.on_packet(at(1), &arrival(Kind::Data, 7));
        assert_eq!(r.next(), at(1));
        assert_eq!(collect(&mut r, at(1)), [(Class::Normal, vec![7])]);
        assert_eq!((r.next(), collect(&mut r, at(9))), (Instant::NEVER, vec![]));
        r.on_packet(at(2), &arrival(Kind::Dummy, 3));
        assert_eq!(collect(&mut r, at(2)), [(Class::Low, vec![3])]);
    }

    #[test]
    fn a_dummys_ack_is_low_priority_even_if_its_mark_was_erased() {
        let mut r = AckReceiver::new(None);
        r.on_packet(at(1), &Arrival { kind: Kind::Dummy, class: Class::Normal, seq: 1, ecn: Ecn::NotEct });
        assert_eq!(collect(&mut r, at(1)), [(Class::Low, vec![1])]);
    }

    #[test]
    fn gathered_acks_leave_every_interval_and_say_how_long_they_waited() {
        let mut r = AckReceiver::new(Some(Duration::from_millis(20)));
        r.on_packet(at(0), &arrival(Kind::Data, 0));
        assert_eq!(collect(&mut r, at(0)), [(Class::Normal, vec![0])]);
        r.on_packet(at(5), &arrival(Kind::Data, 1));
        r.on_packet(at(12), &arrival(Kind::Dummy, 0));
        r.on_packet(at(15), &arrival(Kind::Data, 2));
        assert_eq!((r.next(), r.poll(at(19)).is_none()), (at(20), true));
        let f = r.poll(at(20)).expect("due");
        assert_eq!(f.class, Class::Normal);
        assert_eq!(
            f.acks.iter().map(|a| (a.seq, a.ack_delay, a.arrived_at)).collect::<Vec<_>>(),
            [
                (1, Duration::from_millis(15), Some(Duration::from_millis(5))),
                (2, Duration::from_millis(5), Some(Duration::from_millis(15)))
            ]
        );
        assert_eq!(collect(&mut r, at(20)), [(Class::Low, vec![0])]);
        assert_eq!(r.next(), Instant::NEVER);
    }

    //= 5634-2.2-1
    #[test]
    fn a_quick_start_request_is_acknowledged_at_once() {
        let mut r = AckReceiver::new(Some(Duration::from_millis(20)));
        r.on_packet(at(0), &arrival(Kind::Data, 0));
        collect(&mut r, at(0));
        r.on_packet(at(5), &arrival(Kind::Data, 1));
        assert_eq!(r.next(), at(20));
        r.on_quick_start_request(at(5));
        assert_eq!(collect(&mut r, at(5)), [(Class::Normal, vec![1])]);
        r.on_quick_start_request(at(6));
        assert_eq!(r.next(), Instant::NEVER, "nothing waits");
    }

    #[test]
    fn memory_is_bounded_when_nobody_collects() {
        let mut r = AckReceiver::new(Some(Duration::from_secs(3_600)));
        r.on_packet(at(0), &arrival(Kind::Data, 0));
        collect(&mut r, at(0));
        for seq in 1..=100_000 {
            r.on_packet(at(1), &arrival(Kind::Data, seq));
        }
        // Full, so due at once.
        assert_eq!((r.next(), r.refused()), (at(1), 100_000 - MOST as u64));
        assert_eq!(collect(&mut r, at(1)), [(Class::Normal, (1..=MOST as u64).collect::<Vec<_>>())]);
    }
}
