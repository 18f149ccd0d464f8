//! The FEC header [RFC 8627 §4.2.2], and the RTP header in front of it [§4.2.1]. One protected stream per repair packet.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use crate::WireError;
use crate::packet::{HEADER_LEN, Packet};
use crate::wire::{Put, Reader};

/// Default payload type of repair packets.
pub const PAYLOAD_TYPE: u8 = 100;
/// Packets that the longest mask spans, from its base.
pub const MASK_BITS: u16 = 110;
/// Bytes of the longest FEC header that is written.
pub const MAX_HEADER: usize = 24;
/// Bits of the three parts of a mask [RFC 8627 §4.2.2.1].
const PARTS: [u16; 3] = [15, 31, 64];

/// The packets that a repair packet covers, as distances from its base number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cover {
    /// Bit i stands for the number base + i, for i below [`MASK_BITS`]; higher bits are zero.
    Mask(u128),
    /// `columns` (L) and `rows` (D): with D of 0 or 1 the L numbers from the base on; with more, D numbers, L apart.
    Fixed {
        /// L, 1 to 255.
        columns: u8,
        /// D.
        rows: u8,
    },
}

impl Cover {
    /// Distances from the base number, ascending.
    pub fn distances(self) -> impl Iterator<Item = u16> {
        let (mask, count, step) = match self {
            Cover::Mask(mask) => (mask, MASK_BITS, 1),
            Cover::Fixed { columns, rows: 0 | 1 } => (u128::MAX, u16::from(columns), 1),
            Cover::Fixed { columns, rows } => (u128::MAX, u16::from(rows), u16::from(columns)),
        };
        let all = mask == u128::MAX;
        (0..count).filter(move |i| all || mask >> i & 1 == 1).map(move |i| i.saturating_mul(step))
    }
}

/// The form of a repair packet: the two flags R and F.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A parity packet over `cover`, counted from `base`.
    Parity {
        /// The lowest number covered.
        base: u16,
        /// The numbers covered.
        cover: Cover,
    },
    /// R = 1: the packet with this number again [§4.2.2.3].
    Retransmission {
        /// Its number.
        sequence: u16,
    },
}

/// The FEC header: the sums (XOR) of the covered packets' header fields, and which they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Sum of the first two octets, the version's two bits zero: P, X, CC, M, PT.
    pub flags: [u8; 2],
    /// Sum of the lengths behind the fixed header of 12 bytes; zero in a retransmission.
    pub length: u16,
    /// Sum of the timestamps.
    pub timestamp: u32,
    /// The packets covered.
    pub kind: Kind,
}

impl Header {
    /// Reads a repair packet's payload: the header, and the repair payload behind it.
    ///
    /// # Errors
    /// [`WireError`] if the payload is too short, both R and F are set, L is zero, or nothing is covered.
    pub fn parse(payload: &[u8]) -> Result<(Self, &[u8]), WireError> {
        let mut r = Reader::new("FEC header", payload);
        let (first, second) = (r.u8()?, r.u8()?);
        let length_or_number = r.u16()?;
        let timestamp = r.u32()?;
        let flags = [first & 0x3f, second];
        let kind = match first >> 6 {
            0b00 => Kind::Parity { base: r.u16()?, cover: mask(&mut r)? },
            0b01 => {
                let (base, columns, rows) = (r.u16()?, r.u8()?, r.u8()?);
                if columns == 0 {
                    return Err(WireError::Field { what: "FEC columns", found: 0, allowed: "1 to 255" });
                }
                Kind::Parity { base, cover: Cover::Fixed { columns, rows } }
            }
            0b10 => {
                r.u32()?; // the original's SSRC, which the list of protected streams says too
                Kind::Retransmission { sequence: length_or_number }
            }
            _ => return Err(WireError::Field { what: "FEC flags R and F", found: 3, allowed: "not both set" }),
        };
        let length = if matches!(kind, Kind::Parity { .. }) { length_or_number } else { 0 };
        Ok((Header { flags, length, timestamp, kind }, r.rest()))
    }

    /// Appends a parity packet's header, with the shortest mask that holds the cover.
    ///
    /// A retransmission is never written: RFC 4588 does that here.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let Kind::Parity { base, cover } = self.kind else {
            debug_assert!(false, "retransmissions go by RFC 4588");
            return;
        };
        let form = if matches!(cover, Cover::Fixed { .. }) { 0x40 } else { 0 };
        out.put_u8(form | self.flags[0] & 0x3f);
        out.put_u8(self.flags[1]);
        out.put_u16(self.length);
        out.put_u32(self.timestamp);
        out.put_u16(base);
        let mask = match cover {
            Cover::Fixed { columns, rows } => return out.put(&[columns, rows]),
            Cover::Mask(mask) => mask,
        };
        // Bit 0 of the wire's mask is its leftmost: each part is written in reverse, behind its flag k.
        let (second, third) = (mask >> 15 != 0, mask >> 46 != 0);
        out.put_u16(u16::from(second) << 15 | ((mask as u16) & 0x7fff).reverse_bits() >> 1);
        if second {
            out.put_u32(u32::from(third) << 31 | ((mask >> 15) as u32 & 0x7fff_ffff).reverse_bits() >> 1);
        }
        if third {
            out.put_u64(((mask >> 46) as u64).reverse_bits());
        }
    }
}

/// Reads a mask: k = 1 says that another part follows.
fn mask(r: &mut Reader<'_>) -> Result<Cover, WireError> {
    let first = r.u16()?;
    let mut mask = u128::from((first & 0x7fff).reverse_bits() >> 1);
    if first >> 15 == 1 {
        let second = r.u32()?;
        mask |= u128::from((second & 0x7fff_ffff).reverse_bits() >> 1) << PARTS[0];
        if second >> 31 == 1 {
            mask |= u128::from(r.u64()?.reverse_bits()) << const { PARTS[0] + PARTS[1] };
        }
    }
    if mask == 0 {
        return Err(WireError::Field { what: "FEC mask", found: 0, allowed: "at least one packet" });
    }
    Ok(Cover::Mask(mask))
}

/// Appends the RTP header of a repair packet that protects the stream `protected`: the header of `packet` (its
/// payload is left out), the marker zero, with the protected SSRC in the list of contributing sources [§4.2.1].
pub fn emit_packet_header(packet: &Packet<'_>, protected: u32, out: &mut Vec<u8>) {
    let start = out.len();
    Packet { marker: false, ..*packet }.emit_header(out);
    if let Some(first) = out.get_mut(start) {
        *first |= 1;
    }
    let end = start.saturating_add(HEADER_LEN).min(out.len());
    out.splice(end..end, protected.to_be_bytes());
}

/// The stream that a repair packet (a whole RTP packet) protects.
///
/// # Errors
/// [`WireError`] if the datagram is too short, or lists no source or several: one each is what [`Header`] reads.
pub fn protected_ssrc(datagram: &[u8]) -> Result<u32, WireError> {
    let mut r = Reader::new("FEC packet", datagram);
    let sources = r.u8()? & 0x0f;
    r.take(HEADER_LEN - 1)?;
    if sources != 1 {
        return Err(WireError::Field {
            what: "streams that a FEC packet protects",
            found: sources.into(),
            allowed: "1",
        });
    }
    r.u32()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parity(cover: Cover) -> Header {
        Header {
            flags: [0x12, 0x83],
            length: 0x0405,
            timestamp: 0x0607_0809,
            kind: Kind::Parity { base: 0x0a0b, cover },
        }
    }

    fn emitted(cover: Cover) -> Vec<u8> {
        let mut out = Vec::new();
        parity(cover).emit(&mut out);
        out
    }

    //= 8627-4.2.2.1-1
    //= 8627-4.2.2.1-2
    #[test]
    fn a_mask_is_as_long_as_its_last_packet_needs_and_k_announces_the_next_part() {
        let head = [0x12, 0x83, 4, 5, 6, 7, 8, 9, 0x0a, 0x0b];
        let all = |tail: &[u8]| [&head[..], tail].concat();
        // Bits 0 and 14: 1000 0000 0000 001 behind k = 0: 0 1000000 00000001 = 0x4001.
        assert_eq!(emitted(Cover::Mask(1 | 1 << 14)), all(&[0x40, 0x01]));
        // Bit 45 is the last of the second part: k = 1 and bit 0; then k = 0 and the lowest bit.
        assert_eq!(emitted(Cover::Mask(1 | 1 << 45)), all(&[0xc0, 0, 0, 0, 0, 1]));
        // Bit 46 is the first of the third part, bit 109 its last.
        let third = [0xc0, 0, 0x80, 0, 0, 0, 0x80, 0, 0, 0, 0, 0, 0, 1];
        assert_eq!(emitted(Cover::Mask(1 | 1 << 46 | 1 << 109)), all(&third));
    }

    //= 8627-4.2.2.2-1
    #[test]
    fn rows_and_columns_are_told_by_l_and_d() {
        let out = emitted(Cover::Fixed { columns: 5, rows: 3 });
        assert_eq!(out, [0x52, 0x83, 4, 5, 6, 7, 8, 9, 0x0a, 0x0b, 5, 3]);
        let covered = |columns, rows| Cover::Fixed { columns, rows }.distances().collect::<Vec<_>>();
        assert_eq!(covered(5, 3), [0, 5, 10]);
        assert_eq!((covered(3, 0), covered(3, 1)), (vec![0, 1, 2], vec![0, 1, 2]));
        assert_eq!(covered(255, 255).last(), Some(&(254 * 255)));
    }

    //= 8627-4.2.2-1
    //= 8627-4.2.2.2-2
    #[test]
    fn reserved_forms_and_empty_covers_are_refused() {
        let of = |first: u8, tail: [u8; 2]| [&[first, 0, 0, 0, 0, 0, 0, 0, 0, 0][..], &tail].concat();
        assert!(Header::parse(&of(0xc0, [1, 1])).is_err(), "R = F = 1");
        assert!(Header::parse(&of(0x40, [0, 7])).is_err(), "L = 0");
        assert!(Header::parse(&of(0x00, [0, 0])).is_err(), "an empty mask");
        assert!(Header::parse(&of(0x00, [0xc0, 0])).is_err(), "the second part is missing");
        assert!(Header::parse(&of(0x00, [0x40, 0])).is_ok());
    }

    //= 8627-4.2.1-1
    //= 8627-4.2.1-2
    #[test]
    fn the_protected_stream_is_the_one_contributing_source() {
        let packet = Packet {
            marker: true,
            payload_type: PAYLOAD_TYPE,
            sequence: 7,
            timestamp: 8,
            ssrc: 0x99,
            extensions: Default::default(),
            payload: &[],
        };
        let mut out = vec![0xee];
        emit_packet_header(&packet, 0x0102_0304, &mut out);
        assert_eq!(out[1..], [0x81, 100, 0, 7, 0, 0, 0, 8, 0, 0, 0, 0x99, 1, 2, 3, 4]);
        assert_eq!(protected_ssrc(&out[1..]), Ok(0x0102_0304));
        out[1] = 0x82;
        assert!(protected_ssrc(&out[1..]).is_err() && protected_ssrc(&[0x81; 15]).is_err());
    }

    proptest! {
        #[test]
        fn a_written_header_is_read_back(
            mask in 1_u128..1 << 110, columns in 1_u8.., rows: u8, fixed: bool, flags in any::<[u8; 2]>(), length: u16,
        ) {
            let cover = if fixed { Cover::Fixed { columns, rows } } else { Cover::Mask(mask) };
            let header = Header { flags: [flags[0] & 0x3f, flags[1]], length, ..parity(cover) };
            let mut out = Vec::new();
            header.emit(&mut out);
            out.push(0xaa);
            prop_assert_eq!(Header::parse(&out), Ok((header, &[0xaa][..])));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Ok((Header { kind: Kind::Parity { cover, .. }, .. }, _)) = Header::parse(&bytes) {
                prop_assert!(cover.distances().count() > 0);
            }
        }
    }
}
