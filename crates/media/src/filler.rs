//! Frames with a VP8 header and nothing to see, for sources that only know sizes.

use crate::vp8;

/// `size` bytes (at least a header: 10 for a key frame, else 3) that say of themselves whether
/// they are a key frame.
pub(crate) fn filler(size: u64, key: bool) -> Vec<u8> {
    let header = if key { vp8::KEY_HEADER } else { vp8::TAG };
    // A list of sizes can name anything; no real frame comes near 64 MiB.
    let size = usize::try_from(size.min(1 << 26)).unwrap_or(1 << 26).max(header);
    let mut data = vec![0x5a; size];
    vp8::write_header(&mut data, key, 0, 0);
    data
}
