//! The few bits of a VP8 frame that tell key frames and sizes [RFC 6386 §9.1].

/// Bytes of the frame tag that every frame begins with.
pub const TAG: usize = 3;
/// Bytes of tag, start code and dimensions that a key frame begins with.
pub const KEY_HEADER: usize = 10;
const START_CODE: [u8; 3] = [0x9d, 0x01, 0x2a];

/// The header of a frame, from its first bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Needs no other frame.
    pub key: bool,
    /// Is to be shown (otherwise it is only there for others to refer to).
    pub shown: bool,
    /// Width and height in pixels; only key frames say.
    pub size: Option<(u16, u16)>,
}

/// Reads a frame's header; `None` if the bytes cannot be a VP8 frame.
///
/// The tag is 24 bits, little-endian: bit 0 is zero for a key frame, bits 1 to 3 the version,
/// bit 4 show_frame, then 19 bits of first-partition size. A key frame goes on with the start code
/// and twice 14 bits of size and 2 of scaling.
pub fn header(data: &[u8]) -> Option<Header> {
    let first = *data.first()?;
    data.get(..TAG)?;
    let (key, shown) = (first & 1 == 0, first & 0x10 != 0);
    if !key {
        return Some(Header { key, shown, size: None });
    }
    let rest: &[u8; 7] = data.get(TAG..KEY_HEADER)?.try_into().ok()?;
    if rest[..3] != START_CODE {
        return None;
    }
    let dimension = |low: u8, high: u8| u16::from_le_bytes([low, high]) & 0x3fff;
    Some(Header { key, shown, size: Some((dimension(rest[3], rest[4]), dimension(rest[5], rest[6]))) })
}

/// Marks a frame as there only for others to refer to: a decoder takes it in, a player does not show it.
pub fn hide(data: &mut [u8]) {
    if let Some(first) = data.first_mut() {
        *first &= !0x10;
    }
}

/// Writes a header over the first bytes of `data`, which must have room for it.
pub(crate) fn write_header(data: &mut [u8], key: bool, width: u16, height: u16) {
    // Version 0, shown, and a first partition of whatever follows (19 bits).
    let partition = (data.len() as u32).saturating_sub(if key { KEY_HEADER } else { TAG } as u32).min(0x7_ffff);
    let tag = u32::from(!key) | 0x10 | partition << 5;
    data[..TAG].copy_from_slice(&tag.to_le_bytes()[..TAG]);
    if key {
        data[3..6].copy_from_slice(&START_CODE);
        data[6..8].copy_from_slice(&width.to_le_bytes());
        data[8..10].copy_from_slice(&height.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_key_frame_says_its_size() {
        // 640 = 0x0280, 360 = 0x0168
        let data = [0x10, 0x02, 0x00, 0x9d, 0x01, 0x2a, 0x80, 0x02, 0x68, 0x01];
        assert_eq!(header(&data), Some(Header { key: true, shown: true, size: Some((640, 360)) }));
    }

    #[test]
    fn a_key_frame_without_its_start_code_is_refused() {
        assert_eq!(header(&[0x10, 0, 0, 0x9d, 0x01, 0x2b, 0, 0, 0, 0]), None);
        assert_eq!(header(&[0x10, 0, 0]), None);
        assert_eq!(header(&[]), None);
    }

    proptest! {
        #[test]
        fn what_was_written_is_read_back(len in KEY_HEADER..2_000, key: bool, w in 0_u16..0x4000, h in 0_u16..0x4000) {
            let mut data = vec![0; len];
            write_header(&mut data, key, w, h);
            prop_assert_eq!(header(&data), Some(Header { key, shown: true, size: key.then_some((w, h)) }));
            hide(&mut data);
            prop_assert_eq!(header(&data), Some(Header { key, shown: false, size: key.then_some((w, h)) }));
        }

        #[test]
        fn no_bytes_make_it_panic(data: Vec<u8>) {
            let _ = header(&data);
        }
    }
}
