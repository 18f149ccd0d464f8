//! A media packet as the code sees one [RFC 8627 §6.2]: eight octets of header fields, then all behind the fixed header.

use crate::WireError;
use crate::packet::HEADER_LEN;

/// The longest media packet that is protected or recovered, in bytes: an Ethernet frame's IP packet.
pub const MAX_PACKET: usize = 1_500;
/// First two octets, length, timestamp.
pub(crate) const FIELDS: usize = 8;

/// The symbol of a packet, or the sum of several. A shorter one counts as padded with zeros.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Symbol(pub(crate) Vec<u8>);

impl Symbol {
    /// Takes the packet's octets in place of whatever was there.
    ///
    /// # Errors
    /// [`WireError`] if `packet` has no RTP header of version 2, or is longer than [`MAX_PACKET`].
    pub(crate) fn set(&mut self, packet: &[u8]) -> Result<(), WireError> {
        let (fixed, rest) = packet.split_first_chunk::<HEADER_LEN>().ok_or(WireError::Truncated {
            what: "protected RTP packet",
            needed: HEADER_LEN,
            found: packet.len(),
        })?;
        if fixed[0] >> 6 != 2 {
            return Err(WireError::Field { what: "RTP version", found: u32::from(fixed[0] >> 6), allowed: "2" });
        }
        if packet.len() > MAX_PACKET {
            let found = u32::try_from(packet.len()).unwrap_or(u32::MAX);
            return Err(WireError::Field { what: "length of a protected packet", found, allowed: "up to 1500" });
        }
        self.0.clear();
        self.0.extend_from_slice(&[fixed[0] & 0x3f, fixed[1]]);
        self.0.extend_from_slice(&(rest.len() as u16).to_be_bytes());
        self.0.extend_from_slice(&fixed[4..8]);
        self.0.extend_from_slice(rest);
        Ok(())
    }

    /// Adds (XOR) another.
    pub(crate) fn add(&mut self, other: &Symbol) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (a, b) in self.0.iter_mut().zip(&other.0) {
            *a ^= b;
        }
    }

    /// The packet again; `None` if its length is none that the symbol can have: longer than what is there, or with
    /// something but zeros behind its end.
    pub(crate) fn packet(&self, sequence: u16, ssrc: u32) -> Option<Vec<u8>> {
        let (fields, body) = self.0.split_first_chunk::<FIELDS>()?;
        let length = usize::from(u16::from_be_bytes([fields[2], fields[3]]));
        let (rest, padding) = body.split_at_checked(length)?;
        if HEADER_LEN + length > MAX_PACKET || padding.iter().any(|b| *b != 0) {
            return None;
        }
        let mut packet = Vec::with_capacity(HEADER_LEN + length);
        packet.extend_from_slice(&[0x80 | fields[0] & 0x3f, fields[1]]);
        packet.extend_from_slice(&sequence.to_be_bytes());
        packet.extend_from_slice(&fields[4..8]);
        packet.extend_from_slice(&ssrc.to_be_bytes());
        packet.extend_from_slice(rest);
        Some(packet)
    }
}

/// The number of a packet, as it stands in its header.
pub(crate) fn sequence(packet: &[u8]) -> Option<u16> {
    Some(u16::from_be_bytes([*packet.get(2)?, *packet.get(3)?]))
}

/// The source of a packet, as it stands in its header.
pub(crate) fn ssrc(packet: &[u8]) -> Option<u32> {
    packet.get(8..12)?.try_into().ok().map(u32::from_be_bytes)
}
