//! Acknowledgements with a sack vector: what the sender of an AIMD flow is told of its packets [aimd §II].
//!
//! The paper's ACK has two fields, a 24-bit `ack_a` and an 8-bit `sack_vector`. On the wire it is an APP packet (`FPCE`,
//! subtype 3) of 36 bytes, which proves what it claims as [`crate::feedback::claim`] does for per-packet feedback:
//!
//! ```text
//!  V=2|P| subtype 3 | PT=204 | length = 8
//!  SSRC of the receiver
//!  "FPCE"
//!  report number (32), +1 for each
//!  ack_a (24) | sack_vector (8): the bit of value 2^(i-1) tells of packet ack_a - i
//!  rwnd, packets (16; 65,535 = nothing is said) | DSCP (8) | ECN (8) that it arrived with
//!  time from its arrival to this ACK, µs (32)
//!  its arrival, 1/65,536 s of the receiver's NTP time (32)
//!  sum of the nonces of all packets claimed, modulo 2^32 (32)
//! ```
//!
//! RTP's own sequence number has 16 bits. The eight above them travel in a header extension of each packet
//! ([`crate::header_ext`]), where padding would stand otherwise: both ends count the same 24 bits, from a random
//! beginning, however many packets were lost before the first that arrived.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use crate::rtcp::{App, NAME};
use crate::wire::{Put, Reader};
use crate::{WireError, rtcp};
use fairpace_units::{Dscp, Ecn};

const SUBTYPE: u8 = 3;

/// Bytes of the packet.
pub const LEN: usize = 36;

/// Where an ACK has its window, behind header, SSRC, name, report number and the vector.
pub(crate) const RWND: usize = 20;

/// An rwnd that says nothing.
const NOT_SAID: u16 = u16::MAX;

/// One acknowledgement, as on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// Who acknowledges.
    pub receiver: u32,
    /// +1 for each ACK; the first is told in the echo of the challenge.
    pub number: u32,
    /// `ack_a`: the largest number received, 24 bits.
    pub ack: u32,
    /// `sack_vector`: bit i - 1 says whether packet `ack` - i has arrived.
    pub vector: u8,
    /// The advertised window, in packets, 0 to 65,534; `None`: nothing is said, and what was said last stands.
    pub rwnd: Option<u16>,
    /// The code point of the stream's newest packet.
    pub dscp: Dscp,
    /// The ECN field of the packets that caused this ACK: CE if one of them was marked.
    pub ecn: Ecn,
    /// From the arrival of packet `ack` to this ACK, µs; saturates at 71.6 min.
    pub delay: u32,
    /// Arrival of packet `ack`, 1/65,536 s of the receiver's NTP time.
    pub arrival: u32,
    /// Sum of the nonces of packet `ack` and of all that `vector` claims.
    pub nonce_sum: u32,
}

impl Ack {
    /// From an APP packet; `None` if it is not one of these. Whatever follows the fields is left alone.
    ///
    /// # Errors
    /// [`WireError::Truncated`] if it is one, and too short.
    pub fn parse(app: &App<'_>) -> Result<Option<Self>, WireError> {
        if app.name != NAME || app.subtype != SUBTYPE {
            return Ok(None);
        }
        let mut r = Reader::new("sack vector", app.data);
        let number = r.u32()?;
        let numbers = r.u32()?;
        let rwnd = r.u16()?;
        Ok(Some(Ack {
            receiver: app.ssrc,
            number,
            ack: numbers >> 8,
            vector: numbers as u8,
            rwnd: (rwnd != NOT_SAID).then_some(rwnd),
            dscp: Dscp::new(r.u8()?),
            ecn: Ecn::from_bits(r.u8()?),
            delay: r.u32()?,
            arrival: r.u32()?,
            nonce_sum: r.u32()?,
        }))
    }

    /// Appends the packet to `out`.
    pub fn emit(&self, out: &mut Vec<u8>) {
        rtcp::emit_packet(out, rtcp::packet_type::APP, SUBTYPE.into(), |out| {
            out.put_u32(self.receiver);
            out.put(&NAME);
            out.put_u32(self.number);
            out.put_u32(self.ack << 8 | u32::from(self.vector));
            out.put_u16(self.rwnd.unwrap_or(NOT_SAID));
            out.put(&[self.dscp.get(), self.ecn as u8]);
            out.put_u32(self.delay);
            out.put_u32(self.arrival);
            out.put_u32(self.nonce_sum);
        });
    }

    /// How far behind `ack` the packets lie that this claims, itself first: 0, then 1 to 8.
    pub fn claimed(&self) -> impl DoubleEndedIterator<Item = u64> + use<> {
        claimed(self.vector)
    }
}

/// As [`Ack::claimed`].
pub(crate) fn claimed(vector: u8) -> impl DoubleEndedIterator<Item = u64> {
    (0..=8_u64).filter(move |&i| i == 0 || u64::from(vector) << 1 >> i & 1 == 1)
}

/// A window as the wire can say it: at most 65,534 packets.
pub(crate) fn rwnd_to_wire(rwnd: u32) -> u16 {
    u16::try_from(rwnd).unwrap_or(NOT_SAID).min(NOT_SAID - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtcp::{Compound, Rtcp};
    use proptest::prelude::*;

    fn parse(bytes: &[u8]) -> Option<Ack> {
        match Compound::parse(bytes).ok()?.next()? {
            Rtcp::App(app) => Ack::parse(&app).ok()?,
            _ => None,
        }
    }

    #[test]
    fn an_ack_written_by_hand_is_read_field_by_field_and_written_the_same() {
        #[rustfmt::skip]
        let bytes = [
            0x83, 204, 0x00, 0x08,  // V=2, subtype 3; APP; 8 words
            0x11, 0x22, 0x33, 0x44, // the receiver
            b'F', b'P', b'C', b'E',
            0x00, 0x00, 0x00, 0x07, // report number
            0x01, 0x02, 0x03, 0b1000_0101, // ack_a 66,051; it, -1, -3 and -8
            0x00, 0x19, 0x2e, 0x03, // rwnd 25, DSCP 46, CE
            0x00, 0x00, 0x13, 0x88, // 5 ms
            0x00, 0x01, 0x80, 0x00, // arrived at 1.5 s
            0x0a, 0x0b, 0x0c, 0x0d,
        ];
        let ack = parse(&bytes).unwrap();
        assert_eq!((ack.receiver, ack.number, ack.ack, ack.vector), (0x1122_3344, 7, 66_051, 0x85));
        assert_eq!((ack.rwnd, ack.dscp, ack.ecn), (Some(25), Dscp::new(46), Ecn::Ce));
        assert_eq!((ack.delay, ack.arrival, ack.nonce_sum), (5_000, 98_304, 0x0a0b_0c0d));
        assert_eq!(ack.claimed().collect::<Vec<_>>(), [0, 1, 3, 8]);
        let mut out = Vec::new();
        ack.emit(&mut out);
        assert_eq!((out.len(), &out[..]), (LEN, &bytes[..]));
        // Nothing said; the widest window; one that lets nothing leave.
        for (bits, rwnd) in [([0xff, 0xff], None), ([0xff, 0xfe], Some(65_534)), ([0, 0], Some(0))] {
            let mut bytes = bytes;
            bytes[20..22].copy_from_slice(&bits);
            assert_eq!(parse(&bytes).unwrap().rwnd, rwnd);
        }
        for cut in 0..LEN {
            assert_eq!(parse(&bytes[..cut]), None, "{cut} bytes");
            let mut admitted = bytes[..cut / 4 * 4].to_vec();
            if let Some(words) = (cut / 4).checked_sub(1) {
                admitted[3] = words as u8;
                assert_eq!(parse(&admitted), None, "{words} words");
            }
        }
    }

    #[test]
    fn what_cannot_be_said_saturates() {
        assert_eq!([0, 25, 65_534, 65_535, u32::MAX].map(rwnd_to_wire), [0, 25, 65_534, 65_534, 65_534]);
    }

    #[test]
    fn another_message_of_ours_is_none_of_these() {
        let other = |subtype, name| Ack::parse(&App { ssrc: 1, subtype, name, data: &[0; 24] });
        assert_eq!((other(2, NAME), other(3, *b"XXXX")), (Ok(None), Ok(None)));
        assert!(matches!(other(3, NAME), Ok(Some(_))));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10_000))]

        #[test]
        fn what_is_written_is_read_back(
            head: (u32, u32), ack in 0_u32..1 << 24, vector: u8, rwnd in prop::option::of(0_u16..65_535),
            marks in (0_u8..64, 0_u8..4), times: (u32, u32), nonce_sum: u32,
        ) {
            let ack = Ack {
                receiver: head.0, number: head.1, ack, vector, rwnd, dscp: Dscp::new(marks.0),
                ecn: Ecn::from_bits(marks.1), delay: times.0, arrival: times.1, nonce_sum,
            };
            let mut out = Vec::new();
            ack.emit(&mut out);
            prop_assert_eq!(out.len(), LEN);
            prop_assert_eq!(parse(&out), Some(ack));
            prop_assert_eq!(ack.claimed().count() as u32, 1 + vector.count_ones());
        }

        #[test]
        fn any_data_is_read_or_refused(data in prop::collection::vec(any::<u8>(), 0..48)) {
            let read = Ack::parse(&App { ssrc: 1, subtype: SUBTYPE, name: NAME, data: &data });
            prop_assert_eq!(read.is_ok(), data.len() >= LEN - 12);
        }
    }
}
