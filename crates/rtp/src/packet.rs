//! The RTP packet [RFC 3550 §5.1].
//!
//! Our own `Repr` and not the `rtp-types` crate: the payload keeps the datagram's lifetime, so
//! that media passes through the session without a copy. The tests compare both, byte for byte.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use crate::WireError;
use crate::feedback::rtp_tfrc::wire::Profile;
use crate::header_ext::Extensions;
use crate::wire::{Put, Reader};

/// Fixed header without CSRCs and extensions.
pub const HEADER_LEN: usize = 12;

/// An RTP packet, parsed or to be written. CSRCs are accepted and skipped; we write none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Marker bit: the last packet of a video frame.
    pub marker: bool,
    /// Payload type, 0 to 127; 64 to 95 are RTCP's when both share a port [RFC 5761 §4].
    pub payload_type: u8,
    /// Sequence number.
    pub sequence: u16,
    /// Media time, 90 kHz.
    pub timestamp: u32,
    /// Who sent it.
    pub ssrc: u32,
    /// The header extensions that we know.
    pub extensions: Extensions,
    /// The payload, without padding.
    pub payload: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Reads a datagram whose stamps, if any, have the usual number.
    ///
    /// # Errors
    /// [`WireError`] if the version is not 2, or a length points past the end.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, WireError> {
        Packet::parse_with(bytes, Profile::default().extension)
    }

    /// Reads a datagram whose stamps have the extension number `stamp` ([`Profile::extension`]).
    ///
    /// # Errors
    /// As [`Packet::parse`].
    pub fn parse_with(bytes: &'a [u8], stamp: u8) -> Result<Self, WireError> {
        let mut r = Reader::new("RTP packet", bytes);
        let flags = r.u8()?;
        if flags >> 6 != 2 {
            return Err(WireError::Field { what: "RTP version", found: u32::from(flags >> 6), allowed: "2" });
        }
        let marker_and_type = r.u8()?;
        let sequence = r.u16()?;
        let timestamp = r.u32()?;
        let ssrc = r.u32()?;
        r.take(4 * usize::from(flags & 0x0f))?;
        let extensions = if flags & 0x10 != 0 {
            let profile = r.u16()?;
            let words = usize::from(r.u16()?);
            // The bug that `tests/hostile.rs` must find.
            #[cfg(feature = "canary")]
            assert!(4 * words <= r.len(), "the canary: extensions longer than the packet");
            Extensions::parse(profile, r.take(4 * words)?, stamp)
        } else {
            Extensions::default()
        };
        let mut payload = r.rest();
        if flags & 0x20 != 0 {
            let padding = payload.last().copied().unwrap_or(0);
            let kept = payload.len().checked_sub(usize::from(padding));
            payload = match kept {
                Some(kept) if padding > 0 => payload.get(..kept).unwrap_or_default(),
                _ => {
                    return Err(WireError::Field {
                        what: "RTP padding",
                        found: u32::from(padding),
                        allowed: "1 up to the payload's length",
                    });
                }
            };
        }
        Ok(Packet {
            marker: marker_and_type & 0x80 != 0,
            payload_type: marker_and_type & 0x7f,
            sequence,
            timestamp,
            ssrc,
            extensions,
            payload,
        })
    }

    /// Appends the packet to `out`.
    pub fn emit(&self, out: &mut Vec<u8>) {
        self.emit_header(out);
        out.put(self.payload);
    }

    /// Appends header and extensions; the payload is the caller's to write behind.
    pub fn emit_header(&self, out: &mut Vec<u8>) {
        let extension = if self.extensions.is_empty() { 0 } else { 0x10 };
        out.put_u8(0x80 | extension);
        out.put_u8(u8::from(self.marker) << 7 | self.payload_type & 0x7f);
        out.put_u16(self.sequence);
        out.put_u32(self.timestamp);
        out.put_u32(self.ssrc);
        self.extensions.emit(out);
    }
}

/// Whether a datagram on a shared port is RTCP: its packet type lies in 192 to 223 [RFC 5761 §4].
pub fn is_rtcp(bytes: &[u8]) -> bool {
    matches!(bytes, [_, 192..=223, ..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn padding_longer_than_the_payload_is_refused() {
        let mut bytes = vec![0xa0, 96, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 9, 9, 3];
        assert_eq!(Packet::parse(&bytes).map(|p| p.payload.len()), Ok(0));
        for bad in [0, 4, 255] {
            bytes[14] = bad;
            assert!(Packet::parse(&bytes).is_err(), "{bad}");
        }
    }

    #[test]
    fn rtcp_is_told_apart_by_its_second_byte() {
        assert!(is_rtcp(&[0x80, 200]) && is_rtcp(&[0x81, 205]));
        // RTP with the marker set and payload type 96: 224
        assert!(!is_rtcp(&[0x80, 96]) && !is_rtcp(&[0x80, 224]) && !is_rtcp(&[0x80]));
    }

    pub(crate) fn any_packet(payload: &[u8]) -> impl Strategy<Value = Packet<'_>> {
        let stamp = (0_u32..1 << 24, any::<u32>())
            .prop_map(|(rtt, sent)| (3, crate::feedback::rtp_tfrc::wire::Stamp { rtt, sent }));
        let numbers = (prop::option::of(any::<u32>()), prop::option::of(any::<u8>()));
        let ext = (prop::option::of(0_u32..1 << 24), numbers, prop::option::of(stamp));
        (any::<bool>(), 0_u8..128, any::<u16>(), any::<u32>(), any::<u32>(), ext).prop_map(
            move |(marker, payload_type, sequence, timestamp, ssrc, (send_time, (nonce, number_high), stamp))| Packet {
                marker,
                payload_type,
                sequence,
                timestamp,
                ssrc,
                extensions: Extensions { send_time, nonce, number_high, stamp, ..Extensions::default() },
                payload,
            },
        )
    }

    const PAYLOAD: [u8; 5] = [1, 2, 3, 4, 5];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10_000))]

        #[test]
        fn what_is_written_is_read_back(p in any_packet(&PAYLOAD)) {
            let mut bytes = Vec::new();
            p.emit(&mut bytes);
            prop_assert_eq!(Packet::parse(&bytes), Ok(p));
        }

        #[test]
        fn another_implementation_reads_the_same(p in any_packet(&PAYLOAD)) {
            let mut bytes = Vec::new();
            p.emit(&mut bytes);
            let theirs = rtp_types::RtpPacket::parse(&bytes).unwrap();
            prop_assert_eq!(theirs.sequence_number(), p.sequence);
            prop_assert_eq!(theirs.timestamp(), p.timestamp);
            prop_assert_eq!(theirs.ssrc(), p.ssrc);
            prop_assert_eq!(theirs.marker_bit(), p.marker);
            prop_assert_eq!(theirs.payload_type(), p.payload_type);
            prop_assert_eq!(theirs.payload(), p.payload);
        }

        #[test]
        fn any_bytes_are_read_as_the_other_implementation_does_or_refused(
            mut bytes in prop::collection::vec(any::<u8>(), 0..80), first in 0x80_u8..0xc0,
        ) {
            if let Some(b) = bytes.first_mut() { *b = first; }
            let (ours, theirs) = (Packet::parse(&bytes), rtp_types::RtpPacket::parse(&bytes));
            prop_assert_eq!(ours.is_ok(), theirs.is_ok());
            if let (Ok(ours), Ok(theirs)) = (ours, theirs) {
                prop_assert_eq!(ours.payload, theirs.payload());
            }
        }
    }
}
