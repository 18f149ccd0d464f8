//! VP8 in RTP [RFC 7741 §4.2], and the one-byte descriptor of our generic payload.
//!
//! ```text
//!  VP8, 4 bytes as we write it:  X|R|N|S|R|PID    I|L|T|K|0000    M| PictureID (15)
//!                                1 0 0 s 0  0     1 0 0 0         1
//!  generic, 1 byte:              S|K|000000       S: first packet of a frame, K: key frame
//! ```

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use crate::WireError;
use crate::wire::{Put, Reader};

/// Bytes of the descriptor that we write in front of VP8.
pub const DESCRIPTOR_LEN: usize = 4;
/// Bytes of the descriptor in front of a generic payload.
pub const GENERIC_LEN: usize = 1;

/// The descriptor of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Descriptor {
    /// A frame begins with this packet.
    pub start: bool,
    /// The frame is a key frame; known at its first packet only.
    pub key: bool,
    /// The frame's number, 15 bits, if it is told.
    pub picture_id: Option<u16>,
}

/// Reads a VP8 payload: descriptor and bitstream. All optional fields are understood and skipped.
///
/// # Errors
/// [`WireError`] if it ends within the descriptor.
pub fn parse(payload: &[u8]) -> Result<(Descriptor, &[u8]), WireError> {
    let mut r = Reader::new("VP8 descriptor", payload);
    let first = r.u8()?;
    let mut picture_id = None;
    if first & 0x80 != 0 {
        let optional = r.u8()?;
        if optional & 0x80 != 0 {
            let id = r.u8()?;
            picture_id = Some(if id & 0x80 != 0 { u16::from(id & 0x7f) << 8 | u16::from(r.u8()?) } else { id.into() });
        }
        if optional & 0x40 != 0 {
            r.u8()?; // TL0PICIDX
        }
        if optional & 0x30 != 0 {
            r.u8()?; // TID, KEYIDX
        }
    }
    let bitstream = r.rest();
    // S with partition 0: the frame begins. The frame tag's lowest bit is 0 for a key frame [RFC 6386 §9.1].
    let start = first & 0x17 == 0x10;
    let key = start && bitstream.first().is_some_and(|b| b & 1 == 0);
    Ok((Descriptor { start, key, picture_id }, bitstream))
}

/// Writes our VP8 descriptor.
pub fn emit(start: bool, picture_id: u16, out: &mut Vec<u8>) {
    out.put_u8(if start { 0x90 } else { 0x80 });
    out.put_u8(0x80);
    out.put_u16(0x8000 | picture_id);
}

/// Reads a generic payload.
///
/// # Errors
/// [`WireError`] if it is empty.
pub fn parse_generic(payload: &[u8]) -> Result<(Descriptor, &[u8]), WireError> {
    let mut r = Reader::new("generic descriptor", payload);
    let flags = r.u8()?;
    Ok((Descriptor { start: flags & 0x80 != 0, key: flags & 0x40 != 0, picture_id: None }, r.rest()))
}

/// Writes the generic descriptor.
pub fn emit_generic(start: bool, key: bool, out: &mut Vec<u8>) {
    out.put_u8(u8::from(start) << 7 | u8::from(key) << 6);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn all_optional_fields_are_skipped() {
        // X=1 S=1; I L T K; M=1 id 0x1234 & 0x7fff; TL0PICIDX; TID/KEYIDX; then the frame tag, P=0: key.
        let payload = [0x90, 0xf0, 0x92, 0x34, 7, 8, 0x10, 0xaa];
        let (d, rest) = parse(&payload).unwrap();
        assert_eq!(d, Descriptor { start: true, key: true, picture_id: Some(0x1234) });
        assert_eq!(rest, [0x10, 0xaa]);
        // No extension at all; 7-bit picture id.
        assert_eq!(parse(&[0x10, 0x11]).unwrap().0, Descriptor { start: true, key: false, picture_id: None });
        assert_eq!(parse(&[0x80, 0x80, 0x7f, 1]).unwrap().0.picture_id, Some(0x7f));
        // A later partition of the same frame also has S set: no new frame.
        assert!(!parse(&[0x11, 0x10]).unwrap().0.start);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10_000))]

        #[test]
        fn descriptors_are_read_back(start: bool, key: bool, id in 0_u16..0x8000, mut data in prop::collection::vec(any::<u8>(), 1..9)) {
            data[0] = data[0] & 0xfe | u8::from(!key);
            let mut out = Vec::new();
            emit(start, id, &mut out);
            prop_assert_eq!(out.len(), DESCRIPTOR_LEN);
            out.extend_from_slice(&data);
            let expected = Descriptor { start, key: start && key, picture_id: Some(id) };
            prop_assert_eq!(parse(&out), Ok((expected, &data[..])));
            let mut out = Vec::new();
            emit_generic(start, key, &mut out);
            prop_assert_eq!(out.len(), GENERIC_LEN);
            out.extend_from_slice(&data);
            prop_assert_eq!(parse_generic(&out), Ok((Descriptor { start, key, picture_id: None }, &data[..])));
        }

        #[test]
        fn any_payload_is_read_or_refused(data in prop::collection::vec(any::<u8>(), 0..12)) {
            let _ = (parse(&data), parse_generic(&data));
        }
    }
}
