//! Captures (pcapng) as far as their blocks are whole, from the beginning.

use std::path::Path;

/// A packet.
pub(crate) const PACKET: u32 = 6;
/// The statistics of an interface, which a capture that was cut off has not.
pub(crate) const STATISTICS: u32 = 5;

/// A packet of a capture.
#[derive(Debug)]
pub(crate) struct Captured {
    /// 0: it enters the path; 1: it leaves the path.
    pub(crate) interface: u32,
    /// The path's time, in seconds: captures of ours count nanoseconds.
    pub(crate) at_s: f64,
    /// Of the IP packet, in bytes.
    pub(crate) length: u32,
    /// As much of it as was kept.
    pub(crate) header: Vec<u8>,
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

/// The blocks, each with its kind.
fn all(bytes: &[u8]) -> impl Iterator<Item = (u32, &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let head = rest.get(..8)?;
        let (kind, len) = (word(head, 0), word(head, 4) as usize);
        let block = rest.get(..len).filter(|_| len >= 12)?;
        rest = &rest[len..];
        Some((kind, block))
    })
}

/// How many blocks of that kind there are; none if there is no file.
pub(crate) fn blocks(capture: &Path, wanted: u32) -> usize {
    let bytes = std::fs::read(capture).unwrap_or_default();
    all(&bytes).filter(|(kind, _)| *kind == wanted).count()
}

/// The packets, in their order.
pub(crate) fn packets(capture: &Path) -> Vec<Captured> {
    let bytes = std::fs::read(capture).unwrap_or_default();
    let packet = |(_, block): (u32, &[u8])| {
        let [interface, high, low, kept, length] = [8, 12, 16, 20, 24].map(|at| word(block, at));
        let at_s = (u64::from(high) << 32 | u64::from(low)) as f64 / 1e9;
        Captured { interface, at_s, length, header: block[28..28 + kept as usize].to_vec() }
    };
    all(&bytes).filter(|(kind, _)| *kind == PACKET).map(packet).collect()
}
