//! Who the sources are, and that they leave: SDES and BYE [RFC 3550 §6.5, §6.6].

use super::packet::{emit_packet, packet_type as pt, words};
use crate::WireError;
use crate::wire::{Put, Reader};

/// SDES chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sdes<'a> {
    pub(super) rest: &'a [u8],
    pub(super) left: u8,
}

/// SDES item type CNAME.
const CNAME: u8 = 1;

impl<'a> Sdes<'a> {
    /// Reads a chunk: SSRC and CNAME.
    pub(super) fn next_chunk(&mut self) -> Result<(u32, Option<&'a [u8]>), WireError> {
        let mut r = Reader::new("SDES chunk", self.rest);
        let before = r.len();
        let ssrc = r.u32()?;
        let mut cname = None;
        loop {
            let kind = r.u8()?;
            if kind == 0 {
                break;
            }
            let len = usize::from(r.u8()?);
            let value = r.take(len)?;
            if kind == CNAME && cname.is_none() {
                cname = Some(value);
            }
        }
        // The list ends with at least one zero, and goes on with zeros to the next word.
        r.take(4_usize.wrapping_sub(before.wrapping_sub(r.len()) % 4) % 4)?;
        self.rest = r.rest();
        self.left = self.left.saturating_sub(1);
        Ok((ssrc, cname))
    }
}

impl<'a> Iterator for Sdes<'a> {
    /// SSRC and its CNAME, if the chunk has one.
    type Item = (u32, Option<&'a [u8]>);
    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 { None } else { self.next_chunk().ok() }
    }
}

/// Writes an SDES packet: one chunk for each source, all with the same CNAME (at most 255 bytes).
pub fn emit_sdes(out: &mut Vec<u8>, ssrcs: &[u32], cname: &str) {
    let cname = cname.as_bytes();
    let cname = cname.get(..255).unwrap_or(cname);
    emit_packet(out, pt::SDES, ssrcs.len(), |out| {
        for &ssrc in ssrcs {
            let start = out.len();
            out.put_u32(ssrc);
            out.put_u8(CNAME);
            out.put_u8(cname.len() as u8);
            out.put(cname);
            out.put_u8(0);
            out.pad_to_words(start);
        }
    });
}

/// BYE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bye<'a> {
    pub(super) ssrcs: &'a [u8],
    /// Why, if said.
    pub reason: &'a [u8],
}

impl Bye<'_> {
    /// Who leaves.
    pub fn ssrcs(&self) -> impl Iterator<Item = u32> {
        words(self.ssrcs)
    }
}

/// Writes a BYE with a reason (at most 255 bytes; empty = none).
pub fn emit_bye(out: &mut Vec<u8>, ssrcs: &[u32], reason: &str) {
    let reason = reason.as_bytes();
    let reason = reason.get(..255).unwrap_or(reason);
    emit_packet(out, pt::BYE, ssrcs.len(), |out| {
        let start = out.len();
        ssrcs.iter().for_each(|&s| out.put_u32(s));
        if !reason.is_empty() {
            out.put_u8(reason.len() as u8);
            out.put(reason);
            out.pad_to_words(start);
        }
    });
}
