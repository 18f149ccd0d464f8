//! The feedback of window-based AIMD: the largest number received, and which of the eight before it.
//!
//! Source: `aimd` §II. An AIMD ACK has two fields: `ack_a`, the largest sequence number received, 24 bits; and
//! `sack_vector`, 8 bits, whose i-th bit says whether packet `ack_a - i` was received. A lost ACK is made up for by
//! any of the next eight, so ACKs are neither acknowledged nor sent again. The receiver half is `sack_receiver.rs`.
//!
//! # Readings
//!
//! - rwnd counts packets, as W does.

use fairpace_units::{Duration, Ecn};

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

    /// The acknowledged numbers, from the oldest to ack_a, where ack_a is `ack` in 64 bits.
    pub fn numbers(&self, ack: u64) -> impl Iterator<Item = u64> + use<> {
        let vector = self.vector;
        let older = (1..=u64::from(VECTOR_BITS)).rev().filter(move |i| vector >> (i - 1) & 1 == 1);
        older.filter_map(move |i| ack.checked_sub(i)).chain(Some(ack))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sack(ack: u32, vector: u8) -> SackVector {
        SackVector { ack, vector, rwnd: None, ecn: Ecn::NotEct, ack_delay: Duration::ZERO, arrived_at: None }
    }

    #[test]
    fn a_number_is_the_nearest_to_what_will_be_sent_next() {
        for (ack, next, full) in [
            (5, 6, Some(5)),
            (5, 5, Some(5)),
            (0xFF_FFFF, 1 << 24, Some((1 << 24) - 1)),
            (0xFF_FFFF, (1 << 24) + 7, Some((1 << 24) - 1)),
            (3, (1 << 24) + 7, Some((1 << 24) + 3)),
            (0xFF_FFF0, 3, None),
            // Bits above 24 are not part of the number.
            (0xAB00_0005, 6, Some(5)),
            (6, (5 << 24) + 6 + (1 << 23), Some((5 << 24) + 6)),
            (6, (5 << 24) + 5 + (1 << 23), Some((5 << 24) + 6)),
            (6, (5 << 24) + 7 + (1 << 23), Some((6 << 24) + 6)),
        ] {
            assert_eq!(sack(ack, 0).unwrap_near(next), full, "{ack:#x} near {next:#x}");
        }
    }

    #[test]
    fn it_names_its_packets_from_the_oldest_on() {
        assert_eq!(sack(0, 0b1000_0101).numbers(100).collect::<Vec<_>>(), [92, 97, 99, 100]);
        // Below zero there is nothing.
        assert_eq!(sack(0, 0xFF).numbers(2).collect::<Vec<_>>(), [0, 1, 2]);
    }
}
