//! A sender's memory of one stream's packets until they are acknowledged.

use fairpace_units::Kind;
use std::collections::VecDeque;

/// Packets remembered per stream: a quarter of the sequence space. 16 s at 1,000 packets/s.
const MEMORY: usize = 16_384;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    /// Its number in the flow, among its kind.
    pub(crate) number: u64,
    pub(crate) acked: bool,
}

/// The packet that a sequence number from feedback refers to.
#[derive(Debug)]
pub(crate) enum Lookup<'a> {
    /// This packet.
    Known(&'a mut Sent),
    /// Sent so long ago that it is forgotten.
    Forgotten,
    /// Never sent.
    Unsent,
}

/// One outgoing stream.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) ssrc: u32,
    pub(crate) payload_type: u8,
    /// Number of the first packet; its lowest 16 bits are RTP's.
    first: u32,
    /// Packets sent so far: the next packet's index.
    pub(crate) count: u64,
    /// RTP payload bytes sent so far.
    pub(crate) octets: u64,
    memory: VecDeque<Sent>,
    /// Index behind the last range that was falsely claimed.
    pub(crate) lied_until: u64,
}

impl Stream {
    pub(crate) fn new(ssrc: u32, payload_type: u8, first: u32) -> Self {
        Stream { ssrc, payload_type, first, count: 0, octets: 0, memory: VecDeque::new(), lied_until: 0 }
    }

    /// The sequence number of the packet with this index.
    pub(crate) const fn sequence(&self, index: u64) -> u16 {
        self.number_24(index) as u16
    }

    /// The 24 bits that an ACK with a sack vector calls that packet; the lowest 16 are its sequence number.
    pub(crate) const fn number_24(&self, index: u64) -> u32 {
        self.first.wrapping_add(index as u32) & 0xff_ffff
    }

    /// Remembers the packet that leaves now.
    pub(crate) fn on_sent(&mut self, number: u64, payload: usize) {
        if self.memory.len() >= MEMORY {
            self.memory.pop_front();
        }
        self.memory.push_back(Sent { number, acked: false });
        self.count += 1;
        self.octets += payload as u64;
    }

    pub(crate) fn lookup(&mut self, sequence: u16) -> Lookup<'_> {
        match self.index(sequence) {
            None => Lookup::Unsent,
            Some(index) => self.sent(index).map_or(Lookup::Forgotten, Lookup::Known),
        }
    }

    /// The packet with this index, if it is remembered.
    pub(crate) fn sent(&mut self, index: u64) -> Option<&mut Sent> {
        let oldest = self.count - self.memory.len() as u64;
        index.checked_sub(oldest).and_then(|i| self.memory.get_mut(usize::try_from(i).ok()?))
    }

    /// Nothing more is awaited about the packet that has that number in the flow: the packet has arrived, or its fate stays unknown.
    pub(crate) fn settle(&mut self, number: u64) {
        // Permits of the flow are numbered in the order in which packets leave.
        let place = self.memory.binary_search_by_key(&number, |sent| sent.number);
        if let Some(sent) = place.ok().and_then(|place| self.memory.get_mut(place)) {
            sent.acked = true;
        }
    }

    /// Index of the packet with this sequence number, if it was sent within the last half of the sequence
    /// space.
    pub(crate) fn index(&self, sequence: u16) -> Option<u64> {
        let behind = u64::from(self.sequence(self.count).wrapping_sub(1).wrapping_sub(sequence));
        if behind > 0x7fff { None } else { self.count.checked_sub(behind + 1) }
    }

    /// Index of the packet that an ACK calls `number`, if it was sent within the last half of 24 bits.
    pub(crate) fn index_24(&self, number: u32) -> Option<u64> {
        let behind = u64::from(self.number_24(self.count).wrapping_sub(1).wrapping_sub(number) & 0xff_ffff);
        if behind > 0x7f_ffff { None } else { self.count.checked_sub(behind + 1) }
    }

    /// The flow's number of the packet with this sequence number, if it is remembered.
    pub(crate) fn number_of(&mut self, sequence: u16) -> Option<u64> {
        match self.lookup(sequence) {
            Lookup::Known(s) => Some(s.number),
            _ => None,
        }
    }
}

/// The outgoing streams of one session.
#[derive(Debug)]
pub(crate) struct Streams {
    pub(crate) media: Stream,
    pub(crate) dummy: Stream,
    pub(crate) rtx: Stream,
    pub(crate) fec: Stream,
}

impl Streams {
    /// The stream with that SSRC, and the kind of its packets.
    pub(crate) fn by_ssrc(&mut self, ssrc: u32) -> Option<(Kind, &mut Stream)> {
        if ssrc == self.media.ssrc {
            Some((Kind::Data, &mut self.media))
        } else if ssrc == self.dummy.ssrc {
            Some((Kind::Dummy, &mut self.dummy))
        } else if ssrc == self.rtx.ssrc {
            Some((Kind::Data, &mut self.rtx))
        } else if ssrc == self.fec.ssrc {
            Some((Kind::Data, &mut self.fec))
        } else {
            None
        }
    }

    /// The stream that a false claim counts against; if it is about all streams together, the media.
    pub(crate) const fn blamed(&mut self, ssrc: u32) -> &mut Stream {
        if ssrc == self.dummy.ssrc {
            &mut self.dummy
        } else if ssrc == self.rtx.ssrc {
            &mut self.rtx
        } else if ssrc == self.fec.ssrc {
            &mut self.fec
        } else {
            &mut self.media
        }
    }

    /// SSRCs of media, dummies, retransmissions and repair packets.
    pub(crate) const fn ssrcs(&self) -> [u32; 4] {
        [self.media.ssrc, self.dummy.ssrc, self.rtx.ssrc, self.fec.ssrc]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_sent_is_known() {
        let mut s = Stream::new(1, 96, 65_534);
        for n in 0..4 {
            s.on_sent(10 + n, 100);
        }
        for (sequence, number) in [(65_534, 10), (65_535, 11), (0, 12), (1, 13)] {
            assert_eq!(s.number_of(sequence), Some(number));
        }
        for sequence in [2, 65_533, 30_000] {
            assert!(matches!(s.lookup(sequence), Lookup::Unsent), "{sequence}");
        }
    }

    #[test]
    fn the_numbers_of_acks_wrap_after_24_bits_and_those_of_rtp_with_them() {
        let mut s = Stream::new(1, 96, 0xff_fffe);
        for n in 0..4 {
            s.on_sent(n, 100);
        }
        assert_eq!(
            [0, 1, 2, 3].map(|i| (s.number_24(i), s.sequence(i))),
            [(0xff_fffe, 0xfffe), (0xff_ffff, 0xffff), (0, 0), (1, 1)]
        );
        assert_eq!([0xff_fffe, 0xff_ffff, 0, 1].map(|n| s.index_24(n)), [0, 1, 2, 3].map(Some));
        // One ahead, one before the first, and half the space behind: none of them was sent.
        assert_eq!([2, 0xff_fffd, 0x80_0001, 0x80_0002].map(|n| s.index_24(n)), [None; 4]);
        // Only the lowest 16 bits of a number are the same.
        assert_eq!((s.index_24(0x01_0001), s.index(1)), (None, Some(3)));
        // More packets than the 24 bits can tell apart: the nearest is meant.
        s.count = 1 << 25;
        assert_eq!(s.index_24(s.number_24(s.count - 1)), Some(s.count - 1));
        assert_eq!(s.index_24(s.number_24(s.count - 0x80_0000)), Some(s.count - 0x80_0000));
        assert_eq!(s.index_24(s.number_24(s.count - 0x80_0001)), None);
        assert!(s.sent(s.count - 5).is_none() && s.sent(s.count - 4).is_some());
    }

    #[test]
    fn what_was_sent_long_ago_is_forgotten_and_not_mistaken() {
        let mut s = Stream::new(1, 96, 0);
        for n in 0..100_000 {
            s.on_sent(n, 100);
        }
        assert_eq!(s.number_of((100_000_u32 - 16_384) as u16), Some(100_000 - 16_384));
        assert!(matches!(s.lookup((100_000_u32 - 16_385) as u16), Lookup::Forgotten));
        // The next number, and the farthest that still counts as ahead; one more is 32,768 behind.
        assert!(matches!(s.lookup(100_000_u32 as u16), Lookup::Unsent));
        assert!(matches!(s.lookup((100_000_u32 + 32_767) as u16), Lookup::Unsent));
        assert!(matches!(s.lookup((100_000_u32 + 32_768) as u16), Lookup::Forgotten));
        assert_eq!(s.memory.len(), MEMORY);
    }
}
