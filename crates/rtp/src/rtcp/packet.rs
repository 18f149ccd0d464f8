//! The common header of all packets, and APP.

use crate::wire::Put;
use packet_type as pt;

/// Packet types.
pub mod packet_type {
    #![allow(missing_docs)]
    pub const SENDER_REPORT: u8 = 200;
    pub const RECEIVER_REPORT: u8 = 201;
    pub const SDES: u8 = 202;
    pub const BYE: u8 = 203;
    pub const APP: u8 = 204;
    pub const TRANSPORT_FEEDBACK: u8 = 205;
    pub const PAYLOAD_FEEDBACK: u8 = 206;
}

/// Feedback message types: generic NACK (205), PLI (206), and CCFB (205).
pub mod fmt {
    #![allow(missing_docs)]
    pub const NACK: u8 = 1;
    pub const PLI: u8 = 1;
    pub const CCFB: u8 = 11;
}

/// The name of our APP packets.
pub const NAME: [u8; 4] = *b"FPCE";

/// Writes one packet: header, body, length.
pub(crate) fn emit_packet(out: &mut Vec<u8>, packet_type: u8, count: usize, body: impl FnOnce(&mut Vec<u8>)) {
    debug_assert!(count < 32, "five bits");
    let start = out.len();
    out.put_u8(0x80 | count as u8 & 0x1f);
    out.put_u8(packet_type);
    out.put_u16(0);
    body(out);
    let length = out.len().saturating_sub(start);
    debug_assert!(length.is_multiple_of(4), "RTCP packets are whole words");
    let words = (length / 4).saturating_sub(1);
    if let Some([_, _, high, low, ..]) = out.get_mut(start..) {
        [*high, *low] = (words as u16).to_be_bytes();
    }
}

/// APP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct App<'a> {
    /// Who sent it.
    pub ssrc: u32,
    /// Five bits, the application's.
    pub subtype: u8,
    /// The name of the application that defined the format [RFC 3550 §6.7].
    pub name: [u8; 4],
    /// The rest.
    pub data: &'a [u8],
}

impl App<'_> {
    /// Writes the packet; `data` is whole words.
    pub fn emit(&self, out: &mut Vec<u8>) {
        emit_packet(out, pt::APP, usize::from(self.subtype), |out| {
            out.put_u32(self.ssrc);
            out.put(&self.name);
            out.put(self.data);
        });
    }
}

/// Whole words of 32 bits.
pub(super) fn words(bytes: &[u8]) -> impl Iterator<Item = u32> {
    let (words, _) = bytes.as_chunks::<4>();
    words.iter().map(|w| u32::from_be_bytes(*w))
}
