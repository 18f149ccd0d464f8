//! Several sources of packets as one stream.

use fairpace_media::ReceivedFrame;
use fairpace_rtp::MediaPacket;
use fairpace_rtp::frames::AssembledFrame;
use fairpace_units::Instant;

/// Makes one stream of a sender that starts again: its new random numbers go on where the old ones
/// stopped, one packet and the time that passed further on, so that the sink sees a gap and not
/// another century.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Splice {
    ssrc: Option<u32>,
    sequence_offset: u64,
    timestamp_offset: u32,
    /// Sequence number, timestamp and arrival of the furthest packet, as handed out.
    furthest: Option<(u64, u32, Instant)>,
}

impl Splice {
    /// Takes in a packet before its frame is assembled; true if its source is a new one.
    pub(super) fn note(&mut self, packet: &MediaPacket<'_>) -> bool {
        let new = self.ssrc != Some(packet.ssrc);
        if new {
            self.ssrc = Some(packet.ssrc);
            (self.sequence_offset, self.timestamp_offset) = match self.furthest {
                None => (0, 0),
                Some((sequence, timestamp, at)) => {
                    let passed = fairpace_media::timestamp_90k(Instant::ZERO + packet.arrived.since(at));
                    let timestamp = timestamp.wrapping_add(passed.max(1));
                    ((sequence + 2).wrapping_sub(packet.sequence), timestamp.wrapping_sub(packet.timestamp))
                }
            };
        }
        let (sequence, timestamp) = self.apply(packet.sequence, packet.timestamp);
        if self.furthest.is_none_or(|(furthest, ..)| sequence > furthest) {
            self.furthest = Some((sequence, timestamp, packet.arrived));
        }
        new
    }

    fn apply(&self, sequence: u64, timestamp: u32) -> (u64, u32) {
        (sequence.wrapping_add(self.sequence_offset), timestamp.wrapping_add(self.timestamp_offset))
    }

    /// The source's own number of a packet that was handed out under this one.
    pub(super) const fn own(&self, sequence: u64) -> u64 {
        sequence.saturating_sub(self.sequence_offset)
    }

    pub(super) fn frame(&self, frame: AssembledFrame) -> ReceivedFrame {
        let (first_sequence, timestamp_90k) = self.apply(frame.first_sequence, frame.timestamp);
        let (last_sequence, _) = self.apply(frame.last_sequence, frame.timestamp);
        ReceivedFrame {
            first_sequence,
            last_sequence,
            absent_before: frame.absent_before,
            timestamp_90k,
            data: frame.data,
            key: frame.key,
            via: frame.via,
            arrival: frame.completed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairpace_rtp::Codec;
    use fairpace_units::Via;

    fn packet(ssrc: u32, sequence: u64, timestamp: u32, ms: u64) -> MediaPacket<'static> {
        MediaPacket {
            ssrc,
            sequence,
            timestamp,
            marker: true,
            payload_type: 96,
            payload: &[],
            arrived: Instant::from_nanos(ms * 1_000_000),
            one_way_delay: None,
            retransmitted: false,
            recovered: false,
            via: Via::Udp,
            codec: Codec::Vp8,
        }
    }

    #[test]
    fn a_sender_that_starts_again_goes_on_behind_its_old_numbers() {
        let mut splice = Splice::default();
        assert!(splice.note(&packet(1, 70_000, u32::MAX - 10, 0)));
        assert!(!splice.note(&packet(1, 70_001, u32::MAX - 5, 10)));
        assert_eq!(splice.apply(70_001, u32::MAX - 5), (70_001, u32::MAX - 5), "the first is left as it is");
        // 500 ms later from another SSRC: one number is left out, 45,000 ticks pass (and wrap)
        assert!(splice.note(&packet(2, 100, 7, 510)));
        assert_eq!(splice.apply(100, 7), (70_003, 45_000 - 6));
        // a packet from before the first one received of the new source still lies behind the old ones
        assert_eq!(splice.apply(99, 7).0, 70_002);
    }
}
