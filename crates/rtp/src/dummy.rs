//! The dummy packet [rcs §III-A]: as large as a data packet, carrying nothing, in a stream of its own.
//!
//! The dummy stream has its own SSRC, payload type and sequence numbers, so that the media stream stays continuous
//! for any player, and goes out with DSCP LE, so that a two-priority router drops it first. The payload is zeros. Its
//! header carries the same extensions as media.

use crate::packet::Packet;

/// Default payload type.
pub const PAYLOAD_TYPE: u8 = 98;

/// Writes a dummy packet, filled up to `len` bytes of UDP payload.
pub fn emit(header: &Packet<'_>, len: usize, out: &mut Vec<u8>) {
    let start = out.len();
    header.emit_header(out);
    let filled = out.len() - start;
    out.resize(out.len() + len.saturating_sub(filled), 0);
}
