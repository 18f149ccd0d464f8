//! Captures (pcapng) as far as their blocks are whole, from the beginning.

use std::path::Path;

/// A packet.
pub(crate) const PACKET: u32 = 6;
/// The statistics of an interface, which a capture that was cut off has not.
pub(crate) const STATISTICS: u32 = 5;

/// How many blocks of that kind there are; none if there is no file.
pub(crate) fn blocks(capture: &Path, wanted: u32) -> usize {
    let bytes = std::fs::read(capture).unwrap_or_default();
    let (mut at, mut count) = (0, 0);
    while let Some(head) = bytes.get(at..at + 8) {
        let [kind, len] = [0, 4].map(|i| u32::from_le_bytes(head[i..i + 4].try_into().unwrap()));
        if len < 12 || bytes.len() < at + len as usize {
            break;
        }
        count += usize::from(kind == wanted);
        at += len as usize;
    }
    count
}
