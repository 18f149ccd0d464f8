//! Requests of a receiver: packets again (NACK), or a key frame (PLI) [RFC 4585 §6].

use super::packet::{emit_packet, fmt, packet_type as pt, words};
use crate::wire::Put;

/// Generic NACK: packet ids with a mask of the 16 that follow [RFC 4585 §6.2.1].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nack<'a> {
    /// Who misses something.
    pub sender: u32,
    /// Of which stream.
    pub media: u32,
    pub(super) pairs: &'a [u8],
}

impl Nack<'_> {
    /// The missing sequence numbers.
    pub fn lost(&self) -> impl Iterator<Item = u16> {
        words(self.pairs).flat_map(|w| {
            let (first, mask) = ((w >> 16) as u16, w as u16);
            (0..17_u16)
                .filter(move |&i| i == 0 || u32::from(mask) << 1 >> i & 1 == 1)
                .map(move |i| first.wrapping_add(i))
        })
    }
}

/// Writes a generic NACK for sequence numbers in ascending (wrapping) order.
pub fn emit_nack(out: &mut Vec<u8>, sender: u32, media: u32, lost: &[u16]) {
    emit_packet(out, pt::TRANSPORT_FEEDBACK, usize::from(fmt::NACK), |out| {
        out.put_u32(sender);
        out.put_u32(media);
        let mut pair: Option<(u16, u16)> = None;
        for &seq in lost {
            match &mut pair {
                Some((first, mask)) if (1..=16).contains(&seq.wrapping_sub(*first)) => {
                    *mask |= 1 << seq.wrapping_sub(*first).wrapping_sub(1);
                }
                _ => {
                    if let Some((first, mask)) = pair.replace((seq, 0)) {
                        out.put_u16(first);
                        out.put_u16(mask);
                    }
                }
            }
        }
        if let Some((first, mask)) = pair {
            out.put_u16(first);
            out.put_u16(mask);
        }
    });
}

/// Writes a PLI.
pub fn emit_picture_loss(out: &mut Vec<u8>, sender: u32, media: u32) {
    emit_packet(out, pt::PAYLOAD_FEEDBACK, usize::from(fmt::PLI), |out| {
        out.put_u32(sender);
        out.put_u32(media);
    });
}
