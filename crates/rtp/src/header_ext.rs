//! RTP header extensions in one-byte form [RFC 8285 §4.2].
//!
//! | id | bytes | what | unit |
//! | --- | --- | --- | --- |
//! | 1 | 3 | send time, 6.18 fixed point | 2^-18 s (3.8 µs), wraps every 64 s |
//! | 2 | 4 | nonce of this packet | – |
//! | 4 | 1 | bits 16 to 23 of the packet's number, for ACKs with a sack vector ([`crate::feedback::sack_vector`]) | – |
//! | 5 | 2 | the packet's number among all packets of the transport, for transport-wide feedback | – |
//! | 3, or as agreed | 7 | the sender's RTT and the time sent, for a receiver that measures ([`crate::feedback::rtp_tfrc`]) | µs |
//!
//! The send time has the form that browsers use (`abs-send-time`), so Wireshark and others know
//! it. The nonce is what makes lying about ACKs detectable: see [`crate::feedback::claim`].

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use crate::stamp::{STAMP_LEN, Stamp};
use crate::wire::{Put, Reader};

/// Marks the one-byte form.
const ONE_BYTE: u16 = 0xbede;
/// Send time.
pub const SEND_TIME: u8 = 1;
/// Nonce.
pub const NONCE: u8 = 2;
/// Bits 16 to 23 of the packet's number. A stamp may have the same number: they differ in length.
pub const NUMBER_HIGH: u8 = 4;
/// Transport-wide number [draft-holmer-rmcat-transport-wide-cc-extensions-01 §2].
pub const TRANSPORT_NUMBER: u8 = 5;
/// The numbers that are not free for others.
pub(crate) const OURS: [u8; 2] = [SEND_TIME, NONCE];

/// The extensions we use. Others are skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Extensions {
    /// When the packet was sent: 24 bits of 6.18 fixed point, see [`crate::NtpTime::send_time_24`].
    /// On input also from the 32-bit form (8.24 fixed point), shortened.
    pub send_time: Option<u32>,
    /// The packet's nonce.
    pub nonce: Option<u32>,
    /// Bits 16 to 23 of the packet's number, whose lower bits are RTP's sequence number.
    pub number_high: Option<u8>,
    /// The packet's number among those of all streams.
    pub transport_number: Option<u16>,
    /// The stamp for a receiver that measures, and the extension's number, 3 to 14.
    pub stamp: Option<(u8, Stamp)>,
}

impl Extensions {
    /// Bytes that a packet carries for its extensions: the send time and either a nonce or a stamp,
    /// 4 + (1 + 3) + (1 + 4), padded, or 4 + (1 + 3) + (1 + 7). With the number's high bits, 1 + 1, there is less
    /// padding, and with a transport-wide number, 1 + 2, none.
    pub const FULL_LEN: usize = 16;

    pub(crate) const fn is_empty(&self) -> bool {
        self.send_time.is_none()
            && self.nonce.is_none()
            && self.number_high.is_none()
            && self.stamp.is_none()
            && self.transport_number.is_none()
    }

    /// Reads the extension block's content; what is damaged or unknown is left out. `stamp`: the number under
    /// which stamps come.
    pub(crate) fn parse(profile: u16, data: &[u8], stamp: u8) -> Self {
        let mut found = Extensions::default();
        if profile != ONE_BYTE {
            return found; // the two-byte form and others: nothing of ours is in there
        }
        let mut r = Reader::new("header extension", data);
        while let Ok(head) = r.u8() {
            let (id, len) = (head >> 4, usize::from(head & 0x0f).saturating_add(1));
            if head == 0 {
                continue; // padding
            }
            if id == 15 {
                break; // reserved: stop, whatever follows [RFC 8285 §4.2]
            }
            let Ok(value) = r.take(len) else { break };
            match (id, value) {
                (SEND_TIME, &[a, b, c]) => found.send_time = Some(u32::from_be_bytes([0, a, b, c])),
                // 8.24 fixed point: drop two bits in front and six behind
                (SEND_TIME, &[a, b, c, d]) => {
                    found.send_time = Some(u32::from_be_bytes([a, b, c, d]) >> 6 & 0x00ff_ffff);
                }
                (id, &[a, b, c, d, e, f, g]) if id == stamp => {
                    found.stamp = Some((id, Stamp::from_wire([a, b, c, d, e, f, g])));
                }
                (NONCE, &[a, b, c, d]) => found.nonce = Some(u32::from_be_bytes([a, b, c, d])),
                (TRANSPORT_NUMBER, &[a, b]) => found.transport_number = Some(u16::from_be_bytes([a, b])),
                (NUMBER_HIGH, &[bits]) => found.number_high = Some(bits),
                _ => {}
            }
        }
        found
    }

    pub(crate) fn emit(&self, out: &mut Vec<u8>) {
        if self.is_empty() {
            return;
        }
        let lengths = [
            self.send_time.map_or(0, |_| 4),
            self.nonce.map_or(0, |_| 5),
            self.number_high.map_or(0, |_| 2),
            self.transport_number.map_or(0, |_| 3),
            self.stamp.map_or(0, |_| 1 + STAMP_LEN),
        ];
        out.put_u16(ONE_BYTE);
        out.put_u16((lengths.iter().sum::<usize>() as u16).div_ceil(4));
        let start = out.len();
        if let Some(t) = self.send_time {
            out.put_u32(u32::from(SEND_TIME) << 28 | 2 << 24 | t & 0x00ff_ffff);
        }
        if let Some(n) = self.nonce {
            out.put_u8(NONCE << 4 | 3);
            out.put_u32(n);
        }
        if let Some(bits) = self.number_high {
            out.put(&[NUMBER_HIGH << 4, bits]);
        }
        if let Some(number) = self.transport_number {
            out.put_u8(TRANSPORT_NUMBER << 4 | 1);
            out.put_u16(number);
        }
        if let Some((number, stamp)) = self.stamp {
            out.put_u8(number << 4 | const { STAMP_LEN as u8 - 1 });
            out.put(&stamp.to_wire());
        }
        out.pad_to_words(start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_extensions_take_16_bytes() {
        let mut out = Vec::new();
        let both = Extensions { send_time: Some(0x01_0203), nonce: Some(0x0a0b_0c0d), ..Default::default() };
        both.emit(&mut out);
        assert_eq!(out, [0xbe, 0xde, 0, 3, 0x12, 1, 2, 3, 0x23, 0x0a, 0x0b, 0x0c, 0x0d, 0, 0, 0]);
        assert_eq!(out.len(), Extensions::FULL_LEN);
        // The number's high bits take the place of two bytes of padding.
        out.clear();
        let three = Extensions { number_high: Some(0xfe), ..both };
        three.emit(&mut out);
        assert_eq!(out, [0xbe, 0xde, 0, 3, 0x12, 1, 2, 3, 0x23, 0x0a, 0x0b, 0x0c, 0x0d, 0x40, 0xfe, 0]);
        // A stamp with the same number is longer.
        assert_eq!(Extensions::parse(ONE_BYTE, &out[4..], 4), three);
    }

    #[test]
    fn send_time_and_stamp_take_16_bytes_too() {
        let mut out = Vec::new();
        let stamp = Some((5, Stamp { rtt: 0x0a_0b0c, sent: 0x0102_0304 }));
        Extensions { send_time: Some(0x01_0203), stamp, ..Default::default() }.emit(&mut out);
        assert_eq!(out, [0xbe, 0xde, 0, 3, 0x12, 1, 2, 3, 0x56, 0x0a, 0x0b, 0x0c, 1, 2, 3, 4]);
        assert_eq!(out.len(), Extensions::FULL_LEN);
    }

    #[test]
    fn padding_between_elements_and_unknown_elements_are_skipped() {
        let data = [0, 0, 0x71, 9, 9, 0x12, 1, 2, 3, 0, 0, 0];
        assert_eq!(Extensions::parse(ONE_BYTE, &data, 3).send_time, Some(0x01_0203));
    }

    #[test]
    fn nothing_after_id_15_is_read() {
        let data = [0xf0, 0, 0x12, 1, 2, 3, 0, 0];
        assert_eq!(Extensions::parse(ONE_BYTE, &data, 3), Extensions::default());
    }

    #[test]
    fn an_element_that_runs_past_the_end_is_ignored() {
        assert_eq!(Extensions::parse(ONE_BYTE, &[0x12, 1, 2], 3), Extensions::default());
        assert_eq!(Extensions::parse(0x1000, &[0x12, 1, 2, 3], 3), Extensions::default());
    }

    #[test]
    fn the_32_bit_send_time_is_shortened_to_the_same_instant() {
        // 1.5 s: 8.24 -> 0x0180_0000, 6.18 -> 393,216
        assert_eq!(Extensions::parse(ONE_BYTE, &[0x13, 0x01, 0x80, 0, 0, 0, 0, 0], 3).send_time, Some(393_216));
    }
}
