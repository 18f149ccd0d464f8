//! Clean RTP for any player: media only, without our header extensions, under one SSRC.
//!
//! Sequence numbers go on where the last source stopped, so that a restart of the sender is not a
//! jump; a packet lost on the way stays a gap, because the player must know of it. A retransmission
//! fills its gap. Media arrives already apart from dummies.

use crate::header_ext::Extensions;
use crate::packet::Packet;
use crate::receiver::MediaPacket;

/// Rewrites media packets for one player.
#[derive(Debug)]
pub struct Forwarder {
    ssrc: u32,
    payload_type: u8,
    /// The source being forwarded, and its first (sequence, timestamp).
    source: Option<(u32, u64, u32)>,
    /// Where that source begins in what we send.
    start: (u64, u32),
    /// Highest (sequence, timestamp) sent so far.
    highest: (u64, u32),
}

impl Forwarder {
    /// Forwards as `ssrc`, with this payload type.
    pub fn new(ssrc: u32, payload_type: u8) -> Self {
        Forwarder { ssrc, payload_type, source: None, start: (0, 0), highest: (0, 0) }
    }

    /// Appends the clean packet to `out` (cleared first); `false` if this packet must not go out
    /// (it is older than the first one forwarded).
    pub fn forward(&mut self, packet: &MediaPacket<'_>, out: &mut Vec<u8>) -> bool {
        out.clear();
        let (_, first_sequence, first_timestamp) = match self.source {
            Some(s) if s.0 == packet.ssrc => s,
            _ => {
                // One number and 1/30 s after the last source's end; the first begins at its own numbers.
                self.start = if self.source.is_some() {
                    (self.highest.0 + 1, self.highest.1.wrapping_add(3_000))
                } else {
                    (packet.sequence, packet.timestamp)
                };
                self.highest = self.start;
                *self.source.insert((packet.ssrc, packet.sequence, packet.timestamp))
            }
        };
        let Some(offset) = packet.sequence.checked_sub(first_sequence) else { return false };
        let sequence = self.start.0 + offset;
        let timestamp = self.start.1.wrapping_add(packet.timestamp.wrapping_sub(first_timestamp));
        if sequence >= self.highest.0 {
            self.highest = (sequence, timestamp);
        }
        Packet {
            marker: packet.marker,
            payload_type: self.payload_type,
            sequence: sequence as u16,
            timestamp,
            ssrc: self.ssrc,
            extensions: Extensions::default(),
            payload: packet.payload,
        }
        .emit(out);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Codec;
    use fairpace_units::{Instant, Via};

    fn media(ssrc: u32, sequence: u64, timestamp: u32) -> MediaPacket<'static> {
        MediaPacket {
            ssrc,
            sequence,
            timestamp,
            marker: true,
            payload_type: 96,
            payload: &[1, 2, 3],
            arrived: Instant::ZERO,
            one_way_delay: None,
            retransmitted: false,
            recovered: false,
            via: Via::Udp,
            codec: Codec::Vp8,
        }
    }

    #[test]
    fn numbers_go_on_across_a_restart_and_losses_stay_gaps() {
        let mut f = Forwarder::new(7, 100);
        let mut out = Vec::new();
        let mut sent = Vec::new();
        for p in [
            media(1, 65_536 + 65_535, 10),
            media(1, 65_536 + 65_537, 6_010),
            media(2, 70_000, 500),
            media(2, 70_001, 3_500),
        ] {
            assert!(f.forward(&p, &mut out));
            let clean = Packet::parse(&out).unwrap();
            assert_eq!((clean.ssrc, clean.payload_type, clean.payload), (7, 100, &[1, 2, 3][..]));
            assert!(clean.extensions.is_empty());
            assert_eq!(out.len(), 15);
            sent.push((clean.sequence, clean.timestamp));
        }
        assert_eq!(sent, [(65_535, 10), (1, 6_010), (2, 9_010), (3, 12_010)]);
    }

    #[test]
    fn what_comes_before_the_first_packet_is_not_forwarded() {
        let mut f = Forwarder::new(7, 100);
        let mut out = Vec::new();
        assert!(f.forward(&media(1, 70_000, 0), &mut out));
        assert!(!f.forward(&media(1, 69_999, 0), &mut out));
        assert!(f.forward(&media(1, 70_001, 0), &mut out));
    }
}
