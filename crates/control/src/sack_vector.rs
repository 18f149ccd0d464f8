//! The feedback of window-based AIMD: the largest number received, and which of the eight before it.
//!
//! Source: `aimd` §II. An AIMD ACK has two fields: `ack_a`, the largest sequence number received, 24 bits; and
//! `sack_vector`, 8 bits, whose i-th bit says whether packet `ack_a - i` was received. A lost ACK is made up for by
//! any of the next eight, so ACKs are neither acknowledged nor sent again.
//!
//! # Readings
//!
//! - An ACK leaves with every packet, or every `interval`; then at the latest when eight packets wait, or when one
//!   would fall out of the vector.
//! - A packet that comes more than eight numbers late cannot be acknowledged any more: for the sender it is lost.
//! - rwnd counts packets, as W does.

use crate::receiver::Arrival;
use fairpace_units::{Duration, Ecn, Instant, Kind};

/// Packets before `ack_a` that the vector speaks of.
pub const VECTOR_BITS: u32 = 8;

/// Numbers on the wire have so many bits.
pub const ACK_BITS: u32 = 24;

/// One AIMD ACK [aimd §II].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SackVector {
    /// ack_a: the largest data number received, its lowest 24 bits.
    pub ack: u32,
    /// Bit i - 1 (of value 2^(i-1)): packet ack_a - i was received, i from 1 to 8.
    pub vector: u8,
    /// The window that the receiver, or a base station on the way, allows, in packets; `None`: it says nothing, and
    /// what was said last stands.
    pub rwnd: Option<u32>,
    /// The ECN field of the packets that caused this ACK: CE if one of them was marked.
    pub ecn: Ecn,
    /// How long after the arrival of packet ack_a this ACK left.
    pub ack_delay: Duration,
    /// When packet ack_a arrived, on the receiver's clock, if known.
    pub arrived_at: Option<Duration>,
}

impl SackVector {
    /// The 64-bit number of packet ack_a, nearest to `next_seq`, the number that will be sent next; `None` if that
    /// would be below zero.
    pub fn unwrap_near(&self, next_seq: u64) -> Option<u64> {
        let shift = 64 - ACK_BITS;
        // The difference of the lowest 24 bits, as a signed number.
        let step = ((u64::from(self.ack).wrapping_sub(next_seq) << shift) as i64) >> shift;
        next_seq.checked_add_signed(step)
    }

    /// What it acknowledges, from the oldest to ack_a, where ack_a is `ack` in 64 bits.
    pub fn numbers(&self, ack: u64) -> impl Iterator<Item = u64> + use<> {
        let vector = self.vector;
        let older = (1..=u64::from(VECTOR_BITS)).rev().filter(move |i| vector >> (i - 1) & 1 == 1);
        older.filter_map(move |i| ack.checked_sub(i)).chain(Some(ack))
    }
}

/// The receiver half of AIMD: makes [`SackVector`]s of what arrives.
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
    /// An ACK that had to be made before the vector moved on.
    ready: Option<(SackVector, Instant)>,
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
            ready: None,
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
                    self.refused += u64::from(self.ready.is_some());
                    self.ready = self.make();
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
        if self.ready.is_some() || self.waiting >= VECTOR_BITS {
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
        let Some((sack, arrived)) = self.ready.take().or_else(|| self.make()) else {
            self.due = Instant::NEVER;
            return None;
        };
        if self.oldest_waiting.is_none() {
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
