//! Who was sent, who was acknowledged, who is lost: one ledger per kind of packet.
//!
//! Loss detection is TCP Reno's without retransmission: a packet is lost when three packets of its
//! kind that were sent later are acknowledged, or when the timeout expires [rcs §III-C]
//! [RFC 5681 §3.2]. Each packet is credited once: duplicates, replays and inventions of the
//! receiver are counted and change nothing.

use fairpace_units::{Bytes, Instant};
use std::collections::VecDeque;

/// How many settled packets are remembered so that a late or repeated ACK is recognised for what
/// it is. Older ones count as stale: nothing changes either way.
const REMEMBERED: usize = 512;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// Neither acknowledged nor declared lost.
    Outstanding,
    /// Declared lost; an ACK may still come.
    Lost,
    /// Acknowledged.
    Acked,
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

/// What an ACK says about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Credit {
    /// Acknowledged for the first time.
    New {
        /// When it left.
        sent_at: Instant,
        /// Its size on the wire.
        size: Bytes,
        /// It had been declared lost.
        late: bool,
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
        let (sent_at, size, late) = match entry.fate {
            Fate::Acked => return Credit::Duplicate,
            Fate::Skipped => return Credit::Skipped,
            fate => (entry.sent_at, entry.size, fate == Fate::Lost),
        };
        entry.fate = Fate::Acked;
        let size = Bytes::new(u64::from(size));
        if !late {
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
        Credit::New { sent_at, size, late }
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
        e.fate = Fate::Lost;
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
                    e.fate = Fate::Lost;
                }
            }
            self.outstanding = 0;
            self.in_flight = Bytes::ZERO;
            self.front = self.next_seq();
            self.trim();
        }
        n
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
