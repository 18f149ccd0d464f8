//! Who was sent, who was acknowledged, who is lost: one ledger per kind of packet.
//!
//! Loss detection is TCP Reno's without retransmission: a packet is lost when three packets of its
//! kind that were sent later are acknowledged, or when the timeout expires [rcs §III-C]
//! [RFC 5681 §3.2]. Each packet is credited once: duplicates, replays and inventions of the
//! receiver are counted and change nothing.

use fairpace_units::{Bytes, Duration, Instant};
use std::collections::VecDeque;

/// How many settled packets are remembered so that a late or repeated ACK is recognised for what
/// it is. Older ones count as stale: nothing changes either way.
const REMEMBERED: usize = 512;

/// A packet that the timeout gave up is remembered for so long, up to the ledger's capacity, whatever has left since: a receiver that
/// was stopped tells of it when it goes on, and a packet that has come and is called lost would be held against the path. Nobody is
/// silent for longer: the circuit breaker ends what is not heard for three times 5 s [RFC 8083 §4.1].
const AWAITED: Duration = Duration::from_secs(15);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// Neither acknowledged nor declared lost.
    Outstanding,
    /// Declared lost, because later ones are acknowledged; an ACK may still come.
    Lost,
    /// Declared lost by the timeout.
    Expired,
    /// Acknowledged.
    Acked,
    /// A report covers it and does not say which of the two.
    Settled,
    /// Never sent: a trap for receivers that acknowledge what they did not get.
    Skipped,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    sent_at: Instant,
    size: u32,
    fate: Fate,
    /// Later packets acknowledged so far.
    later: u8,
}

/// The news that an ACK brings about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Credit {
    /// Acknowledged for the first time.
    New {
        /// When it left.
        sent_at: Instant,
        /// Its size on the wire.
        size: Bytes,
        /// The packet had been declared lost.
        late: bool,
        /// The time from its departure to the ACK is a round trip. Where the timeout gave the packet up, and more than 512 have left
        /// since, the receiver or the way back stood still, and the time is theirs.
        measures: bool,
    },
    /// Acknowledged before.
    Duplicate,
    /// Too old to be remembered.
    Stale,
    /// Not sent yet.
    Unsent,
    /// Skipped on purpose: the receiver lies.
    Skipped,
}

/// A packet that has just been declared lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostPacket {
    /// Its number.
    pub seq: u64,
    /// When it left.
    pub sent_at: Instant,
}

/// A packet that has not arrived although a later one has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Its number.
    pub seq: u64,
    /// When it left.
    pub sent_at: Instant,
    /// Its size on the wire.
    pub size: Bytes,
}

/// The send history of one kind of packet. Memory is bounded by its capacity; the oldest
/// outstanding packet beyond it is given up as lost without further notice.
#[derive(Clone, Debug)]
pub struct Ledger {
    entries: VecDeque<Entry>,
    /// The number of `entries[0]`.
    base: u64,
    /// The oldest outstanding packet, or `next` if there is none.
    front: u64,
    capacity: usize,
    dup_threshold: u8,
    outstanding: usize,
    in_flight: Bytes,
}

impl Ledger {
    /// An empty ledger whose first packet will have the number `first`.
    pub fn new(first: u64, capacity: usize, dup_threshold: u8) -> Self {
        Ledger {
            entries: VecDeque::new(),
            base: first,
            front: first,
            capacity: capacity.max(REMEMBERED),
            dup_threshold: dup_threshold.max(1),
            outstanding: 0,
            in_flight: Bytes::ZERO,
        }
    }

    /// The number the next packet will have.
    pub fn next_seq(&self) -> u64 {
        self.base.saturating_add(self.entries.len() as u64)
    }

    /// Packets neither acknowledged nor declared lost.
    pub fn outstanding(&self) -> usize {
        self.outstanding
    }

    /// Their bytes.
    pub fn in_flight(&self) -> Bytes {
        self.in_flight
    }

    /// When the oldest outstanding packet left.
    pub fn oldest_outstanding(&self) -> Option<Instant> {
        if self.outstanding == 0 { None } else { self.entry(self.front).map(|e| e.sent_at) }
    }

    /// Notes a departure and gives the packet's number, and whether an outstanding packet had to
    /// be forgotten for it.
    pub fn sent(&mut self, now: Instant, size: Bytes) -> (u64, bool) {
        let seq = self.next_seq();
        let size = u32::try_from(size.get()).unwrap_or(u32::MAX);
        let forgotten = self.push(Entry { sent_at: now, size, fate: Fate::Outstanding, later: 0 });
        self.outstanding += 1;
        self.in_flight += Bytes::new(u64::from(size));
        (seq, forgotten)
    }

    /// Notes the departure of a packet that TCP will deliver: it has a number, and is never outstanding.
    pub fn sent_reliably(&mut self, now: Instant, size: Bytes) -> (u64, bool) {
        let seq = self.next_seq();
        let size = u32::try_from(size.get()).unwrap_or(u32::MAX);
        (seq, self.push(Entry { sent_at: now, size, fate: Fate::Settled, later: 0 }))
    }

    /// Leaves a number out: no packet will ever have it.
    pub fn skip(&mut self, now: Instant) {
        self.push(Entry { sent_at: now, size: 0, fate: Fate::Skipped, later: 0 });
    }

    fn push(&mut self, entry: Entry) -> bool {
        let mut forgotten = false;
        if self.entries.len() >= self.capacity {
            forgotten = self.forget_oldest();
        }
        self.entries.push_back(entry);
        self.advance_front();
        forgotten
    }

    /// Notes an ACK of `seq`. On [`Credit::New`], ask [`Ledger::next_loss`] until `None`.
    pub fn acknowledge(&mut self, seq: u64) -> Credit {
        if seq >= self.next_seq() {
            return Credit::Unsent;
        }
        let front = self.front;
        let Some(entry) = self.entry_mut(seq) else { return Credit::Stale };
        let (sent_at, size, fate) = (entry.sent_at, entry.size, entry.fate);
        match fate {
            Fate::Acked => return Credit::Duplicate,
            Fate::Skipped => return Credit::Skipped,
            Fate::Outstanding | Fate::Lost | Fate::Expired | Fate::Settled => entry.fate = Fate::Acked,
        }
        let late = matches!(fate, Fate::Lost | Fate::Expired);
        let measures = fate != Fate::Expired || self.next_seq() - seq <= REMEMBERED as u64;
        let size = Bytes::new(u64::from(size));
        if fate == Fate::Outstanding {
            self.outstanding -= 1;
            self.in_flight -= size;
        }
        // Every outstanding packet sent before this one has one more later packet acknowledged. In
        // order this loop is empty; a hole is passed at most `dup_threshold` times before it is
        // declared lost, so a liar cannot make it expensive.
        if front < seq {
            let from = (front - self.base) as usize;
            let to = (seq - self.base) as usize;
            for e in self.entries.range_mut(from..to) {
                // (Settled packets among them count along; nobody looks.)
                e.later = e.later.saturating_add(1);
            }
        }
        self.advance_front();
        Credit::New { sent_at, size, late, measures }
    }

    /// The next packet that the last ACK has shown to be lost, oldest first.
    pub fn next_loss(&mut self) -> Option<LostPacket> {
        // An earlier packet has at least as many later ones acknowledged as any after it, so the
        // lost ones are always the oldest outstanding ones.
        let (seq, threshold) = (self.front, self.dup_threshold);
        match self.entry_mut(seq) {
            Some(e) if e.fate == Fate::Outstanding && e.later >= threshold => {
                e.fate = Fate::Lost;
                let (sent_at, size) = (e.sent_at, Bytes::new(u64::from(e.size)));
                self.outstanding -= 1;
                self.in_flight -= size;
                self.advance_front();
                Some(LostPacket { seq, sent_at })
            }
            _ => {
                self.trim();
                None
            }
        }
    }

    /// The next packet, oldest first, that is still outstanding and left at or before `limit`; it
    /// is given up as lost.
    pub fn next_expired(&mut self, limit: Instant) -> Option<LostPacket> {
        let seq = self.front;
        let e = self.entry_mut(seq).filter(|e| e.fate == Fate::Outstanding && e.sent_at <= limit)?;
        e.fate = Fate::Expired;
        let (sent_at, size) = (e.sent_at, Bytes::new(u64::from(e.size)));
        self.outstanding -= 1;
        self.in_flight -= size;
        self.advance_front();
        self.trim();
        Some(LostPacket { seq, sent_at })
    }

    /// The timeout: everything outstanding is given up. Gives how many packets that were.
    pub fn lose_all(&mut self) -> usize {
        let n = self.outstanding;
        if n > 0 {
            let from = (self.front - self.base) as usize;
            for e in self.entries.range_mut(from..) {
                if e.fate == Fate::Outstanding {
                    e.fate = Fate::Expired;
                }
            }
            self.outstanding = 0;
            self.in_flight = Bytes::ZERO;
            self.front = self.next_seq();
            self.trim();
        }
        n
    }

    /// A report covers all that left at or before `limit`: it is no longer outstanding, neither
    /// acknowledged nor lost. Gives the bytes that were.
    pub fn settle(&mut self, limit: Instant) -> Bytes {
        self.settle_while(|_, e| e.sent_at <= limit)
    }

    /// The same for all numbers up to `seq`.
    pub fn settle_up_to(&mut self, seq: u64) -> Bytes {
        self.settle_while(|n, _| n <= seq)
    }

    fn settle_while(&mut self, covered: impl Fn(u64, &Entry) -> bool) -> Bytes {
        let mut settled = Bytes::ZERO;
        let mut front = self.front;
        while let Some(e) = self.entry_mut(front).filter(|e| covered(front, e)) {
            e.fate = Fate::Settled;
            settled += Bytes::new(u64::from(e.size));
            self.outstanding -= 1;
            self.advance_front();
            front = self.front;
        }
        self.in_flight -= settled;
        self.trim();
        settled
    }

    /// Nobody will tell of this packet: if it is outstanding, it no longer is, neither acknowledged nor lost. Gives whether
    /// it was.
    pub fn settle_one(&mut self, seq: u64) -> bool {
        let Some(e) = self.entry_mut(seq).filter(|e| e.fate == Fate::Outstanding) else { return false };
        e.fate = Fate::Settled;
        let size = Bytes::new(u64::from(e.size));
        self.outstanding -= 1;
        self.in_flight -= size;
        self.advance_front();
        self.trim();
        true
    }

    /// Whether a packet that is remembered left within `tolerance` of `at`.
    pub fn left_around(&self, at: Instant, tolerance: Duration) -> bool {
        let next = self.entries.partition_point(|e| e.sent_at < at);
        let near =
            |i: usize| self.entries.get(i).is_some_and(|e| e.sent_at.since(at).max(at.since(e.sent_at)) <= tolerance);
        near(next) || next.checked_sub(1).is_some_and(near)
    }

    /// Whether nothing has said yet that this packet arrived: it is outstanding, or declared lost.
    pub fn is_unheard_of(&self, seq: u64) -> bool {
        self.entry(seq).is_some_and(|e| matches!(e.fate, Fate::Outstanding | Fate::Lost | Fate::Expired))
    }

    /// The outstanding packets of which a later one is acknowledged, the oldest first.
    pub fn missing(&self) -> impl Iterator<Item = Missing> {
        let from = (self.front - self.base) as usize;
        // A packet has no more later ones acknowledged than any before it.
        let passed = (self.front..).zip(self.entries.range(from..)).take_while(|(_, e)| e.later > 0);
        passed.filter(|(_, e)| e.fate == Fate::Outstanding).map(|(seq, e)| Missing {
            seq,
            sent_at: e.sent_at,
            size: Bytes::new(u64::from(e.size)),
        })
    }

    fn entry(&self, seq: u64) -> Option<&Entry> {
        self.entries.get(usize::try_from(seq.checked_sub(self.base)?).ok()?)
    }

    fn entry_mut(&mut self, seq: u64) -> Option<&mut Entry> {
        self.entries.get_mut(usize::try_from(seq.checked_sub(self.base)?).ok()?)
    }

    fn advance_front(&mut self) {
        while self.entry(self.front).is_some_and(|e| e.fate != Fate::Outstanding) {
            self.front += 1;
        }
    }

    /// Forgets settled packets beyond those worth remembering.
    fn trim(&mut self) {
        while self.entries.len() > REMEMBERED && self.base < self.front {
            let newest = self.entries.back().map_or(Instant::ZERO, |e| e.sent_at);
            let is_awaited = |e: &Entry| e.fate == Fate::Expired && newest.since(e.sent_at) < AWAITED;
            if self.entries.front().is_some_and(is_awaited) {
                return;
            }
            self.entries.pop_front();
            self.base += 1;
        }
    }

    fn forget_oldest(&mut self) -> bool {
        let Some(e) = self.entries.pop_front() else { return false };
        self.base += 1;
        let outstanding = e.fate == Fate::Outstanding;
        if outstanding {
            self.outstanding -= 1;
            self.in_flight -= Bytes::new(u64::from(e.size));
        }
        self.front = self.front.max(self.base);
        outstanding
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: Bytes = Bytes::new(1_000);

    fn with(n: u64) -> Ledger {
        let mut l = Ledger::new(100, 16_384, 3);
        for i in 0..n {
            assert_eq!(l.sent(at(i), SIZE), (100 + i, false));
        }
        l
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn is_new(l: &mut Ledger, seq: u64) -> bool {
        matches!(l.acknowledge(seq), Credit::New { .. })
    }

    fn losses(l: &mut Ledger) -> Vec<u64> {
        std::iter::from_fn(|| l.next_loss()).map(|p| p.seq).collect()
    }

    #[test]
    fn each_packet_is_credited_once_and_what_was_not_sent_never() {
        let mut l = with(10);
        let new = Credit::New { sent_at: at(3), size: SIZE, late: false, measures: true };
        assert_eq!(l.acknowledge(103), new);
        assert_eq!(l.acknowledge(103), Credit::Duplicate);
        assert_eq!(l.acknowledge(110), Credit::Unsent);
        assert_eq!(l.acknowledge(u64::MAX), Credit::Unsent);
        assert_eq!(l.acknowledge(99), Credit::Stale);
        assert_eq!((l.outstanding(), l.in_flight()), (9, Bytes::new(9_000)));
    }

    #[test]
    fn the_third_later_ack_and_not_the_second_makes_a_loss() {
        let mut l = with(10);
        for (seq, lost) in [(101, vec![]), (102, vec![]), (103, vec![100])] {
            assert!(is_new(&mut l, seq));
            assert_eq!(losses(&mut l), lost, "{seq}");
        }
        assert_eq!((l.outstanding(), l.oldest_outstanding()), (6, Some(at(4))));
    }

    #[test]
    fn one_ack_may_reveal_several_losses_oldest_first() {
        let mut l = with(10);
        for seq in [107, 108] {
            assert!(is_new(&mut l, seq));
            assert_eq!(losses(&mut l), []);
        }
        assert!(is_new(&mut l, 109));
        assert_eq!(losses(&mut l), [100, 101, 102, 103, 104, 105, 106]);
        assert_eq!((l.outstanding(), l.in_flight(), l.oldest_outstanding()), (0, Bytes::ZERO, None));
    }

    #[test]
    fn a_packet_overtaken_by_two_is_not_lost() {
        let mut l = with(300);
        // 102 100 101, 105 103 104, ...
        for i in 0..100 {
            for step in [2, 0, 1] {
                assert!(is_new(&mut l, 100 + 3 * i + step));
                assert_eq!(losses(&mut l), []);
            }
        }
    }

    #[test]
    fn a_late_ack_is_new_once_and_says_that_it_is_late() {
        let mut l = with(10);
        for seq in [101, 102, 103] {
            l.acknowledge(seq);
        }
        assert_eq!(losses(&mut l), [100]);
        assert_eq!(l.acknowledge(100), Credit::New { sent_at: at(0), size: SIZE, late: true, measures: true });
        assert_eq!(l.acknowledge(100), Credit::Duplicate);
        assert_eq!(l.outstanding(), 6);
    }

    #[test]
    fn a_timeout_gives_up_everything_once() {
        let mut l = with(10);
        l.acknowledge(104);
        assert_eq!((l.lose_all(), l.lose_all()), (9, 0));
        assert_eq!((l.outstanding(), l.in_flight()), (0, Bytes::ZERO));
        assert_eq!(losses(&mut l), []);
        assert!(matches!(l.acknowledge(100), Credit::New { late: true, .. }));
        l.sent(at(20), SIZE);
        assert_eq!(l.oldest_outstanding(), Some(at(20)));
    }

    #[test]
    fn what_a_timeout_gave_up_is_remembered_for_as_long_as_a_receiver_may_be_silent() {
        let after = |ms: u64| {
            let mut l = with(5_000);
            l.acknowledge(101);
            l.lose_all();
            // The newest packet leaves so long after the oldest.
            l.sent(at(ms), SIZE);
            (l.acknowledge(5_100), losses(&mut l), l.acknowledge(100)).2
        };
        assert_eq!(after(14_999), Credit::New { sent_at: at(0), size: SIZE, late: true, measures: false });
        assert_eq!(after(15_000), Credit::Stale);
    }

    #[test]
    fn long_after_its_timeout_a_packet_measures_nothing() {
        let mut l = with(600);
        l.lose_all();
        let measures = |credit| matches!(credit, Credit::New { measures: true, .. });
        let [beyond, within] = [600 - 513, 600 - 512].map(|n| measures(l.acknowledge(100 + n)));
        assert_eq!((beyond, within), (false, true));
        // One of which later ones told, or that nobody gave up, measures.
        let mut l = with(10);
        assert!((1..5).all(|n| measures(l.acknowledge(100 + n))));
        assert_eq!(losses(&mut l), [100]);
        assert!(measures(l.acknowledge(100)));
    }

    #[test]
    fn packets_expire_one_by_one_by_their_own_age() {
        let mut l = with(10);
        l.acknowledge(101);
        let expired =
            |l: &mut Ledger, ms| std::iter::from_fn(|| l.next_expired(at(ms))).map(|p| p.seq).collect::<Vec<_>>();
        assert_eq!(expired(&mut l, 3), [100, 102, 103]);
        assert_eq!(expired(&mut l, 3), []);
        assert_eq!(l.outstanding(), 6);
    }

    #[test]
    fn a_packet_of_which_nobody_will_tell_is_no_loss_and_its_late_ack_counts_once() {
        let mut l = with(6);
        assert_eq!(
            [l.settle_one(101), l.settle_one(101), l.settle_one(99), l.settle_one(106)],
            [true, false, false, false]
        );
        assert_eq!((l.outstanding(), l.in_flight()), (5, Bytes::new(5_000)));
        for seq in [102, 103, 104] {
            l.acknowledge(seq);
        }
        assert_eq!(losses(&mut l), [100]);
        assert_eq!(l.acknowledge(101), Credit::New { sent_at: at(1), size: SIZE, late: false, measures: true });
        assert_eq!((l.acknowledge(101), l.outstanding()), (Credit::Duplicate, 1));
    }

    #[test]
    fn a_skipped_number_is_nobodys_loss_and_its_ack_is_a_lie() {
        let mut l = with(2);
        l.skip(at(2));
        assert_eq!(l.sent(at(3), SIZE).0, 103);
        for _ in 0..4 {
            l.sent(at(4), SIZE);
        }
        assert_eq!(l.acknowledge(102), Credit::Skipped);
        for seq in [100, 101, 103, 104, 105, 106, 107] {
            assert!(is_new(&mut l, seq));
            assert_eq!(losses(&mut l), []);
        }
        assert_eq!(l.outstanding(), 0);
    }

    #[test]
    fn what_a_report_covers_is_settled_and_nobodys_loss() {
        let mut l = with(10);
        assert!(is_new(&mut l, 102));
        assert_eq!(l.settle(at(4)), Bytes::new(4_000), "100, 101, 103, 104");
        assert_eq!((l.outstanding(), l.oldest_outstanding(), l.settle(at(4))), (5, Some(at(5)), Bytes::ZERO));
        // An ACK after all is credited once; later ones reveal no loss among the settled.
        assert_eq!(l.acknowledge(103), Credit::New { sent_at: at(3), size: SIZE, late: false, measures: true });
        assert_eq!(l.acknowledge(103), Credit::Duplicate);
        for seq in 106..110 {
            assert!(is_new(&mut l, seq));
        }
        assert_eq!(losses(&mut l), [105]);
        assert_eq!((l.outstanding(), l.in_flight()), (0, Bytes::ZERO));
        assert_eq!(l.settle(at(1_000)), Bytes::ZERO);
    }

    #[test]
    fn a_time_is_known_if_a_packet_left_around_it() {
        let l = with(10);
        let (us, ms) = (Duration::from_micros(1), Duration::from_millis(1));
        for (t, tolerance, known) in [
            (at(5), Duration::ZERO, true),
            (at(5) + us, Duration::ZERO, false),
            (at(5) + us, us, true),
            (at(5) - us, us, true),
            (at(9) + ms, ms, true),
            (at(9) + ms + us, ms, false),
            (at(1_000), ms, false),
        ] {
            assert_eq!(l.left_around(t, tolerance), known, "{t} within {tolerance:?}");
        }
        assert!(!with(0).left_around(at(0), ms));
    }

    #[test]
    fn memory_is_bounded_by_the_capacity_and_by_what_is_worth_remembering() {
        let mut l = Ledger::new(0, 1_000, 3);
        let mut forgotten = 0;
        for _ in 0..100_000 {
            forgotten += u64::from(l.sent(at(0), SIZE).1);
        }
        assert_eq!((l.entries.len(), l.outstanding(), forgotten), (1_000, 1_000, 99_000));
        let mut l = with(0);
        for seq in 100..100_100 {
            l.sent(at(0), SIZE);
            assert!(is_new(&mut l, seq));
            assert_eq!(losses(&mut l), []);
        }
        assert!(l.entries.len() <= REMEMBERED + 1 && l.entries.capacity() <= 2 * REMEMBERED);
        assert_eq!(l.acknowledge(50_000), Credit::Stale);
    }
}
