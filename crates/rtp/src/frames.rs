//! Puts frames together again, whatever order their packets arrive in.
//!
//! A frame is handed out when its last missing packet has come. Two frames are neighbours if the second's
//! `first_sequence` is the first's `last_sequence` + 1; a gap means that something between them is missing
//! (so far). The play-out buffer decides what to do then.

use crate::codec::Codec;
use crate::receiver::MediaPacket;
use crate::vp8;
use fairpace_units::{Duration, Instant, Via};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Packets held at most; the oldest goes first.
const MAX_PACKETS: usize = 4_096;

/// A frame, complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssembledFrame {
    /// Sequence number of its first packet; never wraps.
    pub first_sequence: u64,
    /// Of its last.
    pub last_sequence: u64,
    /// Packets that had not come between the complete frame before it and this one when this was complete: no
    /// more frames than that can be lost there. `u64::MAX` if no frame before it is known.
    pub absent_before: u64,
    /// Media time, 90 kHz.
    pub timestamp: u32,
    /// Can be decoded without any other.
    pub key: bool,
    /// The encoded frame.
    pub data: Vec<u8>,
    /// When its first packet arrived.
    pub first_arrival: Instant,
    /// When it was complete.
    pub completed: Instant,
    /// Part of it came as a retransmission.
    pub repaired: bool,
    /// The transport that it came by; `None`: by both, which a sender that changes at frame ends never does.
    pub via: Option<Via>,
}

#[derive(Debug)]
struct Held {
    timestamp: u32,
    marker: bool,
    start: bool,
    key: bool,
    data: Vec<u8>,
    arrived: Instant,
    retransmitted: bool,
    via: Via,
}

/// From packets to frames.
#[derive(Debug)]
pub struct FrameAssembler {
    codec: Codec,
    hold: Duration,
    packets: BTreeMap<u64, Held>,
    /// All of them in runs of neighbours of one frame: from a run's first number to its last.
    runs: BTreeMap<u64, u64>,
    ready: VecDeque<AssembledFrame>,
    /// The last sequence numbers of complete frames, as many as [`MAX_PACKETS`].
    ends: BTreeSet<u64>,
    /// Packets that were given up, with the frames they belonged to.
    abandoned: u64,
}

impl FrameAssembler {
    /// `hold`: how long a packet waits for the rest of its frame; one that came by TCP as long as it takes.
    pub fn new(codec: Codec, hold: Duration) -> Self {
        FrameAssembler {
            codec,
            hold,
            packets: BTreeMap::new(),
            runs: BTreeMap::new(),
            ready: VecDeque::new(),
            ends: BTreeSet::new(),
            abandoned: 0,
        }
    }

    /// Takes in a packet; a duplicate changes nothing.
    pub fn push(&mut self, packet: &MediaPacket<'_>) {
        let parsed = match self.codec {
            Codec::Vp8 => vp8::parse(packet.payload),
            Codec::Generic => vp8::parse_generic(packet.payload),
        };
        let Ok((descriptor, data)) = parsed else { return };
        let now = packet.arrived;
        if let Entry::Vacant(place) = self.packets.entry(packet.sequence) {
            place.insert(Held {
                timestamp: packet.timestamp,
                marker: packet.marker,
                start: descriptor.start,
                key: descriptor.key,
                data: data.to_vec(),
                arrived: now,
                retransmitted: packet.retransmitted,
                via: packet.via,
            });
            self.join(packet.sequence, now);
        }
        // By TCP the rest will come, however long TCP takes to repair a loss.
        let hold = self.hold;
        let too_old = |h: &Held| h.via == Via::Udp && now.since(h.arrived) > hold;
        while self.packets.len() > MAX_PACKETS || self.packets.first_key_value().is_some_and(|(_, h)| too_old(h)) {
            self.give_up_oldest();
        }
    }

    /// Joins a packet that has just come to its neighbours, and hands out their frame if that completes it.
    fn join(&mut self, sequence: u64, now: Instant) {
        let before = sequence.checked_sub(1).filter(|before| self.are_joined(*before, sequence));
        let first =
            before.and_then(|before| self.runs.range(..=before).next_back()).map_or(sequence, |(first, _)| *first);
        let after = sequence.checked_add(1).filter(|after| self.are_joined(sequence, *after));
        let last = after.and_then(|after| self.runs.remove(&after)).unwrap_or(sequence);
        self.runs.insert(first, last);
        let held = |s| self.packets.get(&s);
        if held(first).is_some_and(|h| h.start) && held(last).is_some_and(|h| h.marker) {
            self.runs.remove(&first);
            self.hand_out(first, last, now);
        }
    }

    /// Whether two neighbours have come, and are of one frame.
    fn are_joined(&self, first: u64, second: u64) -> bool {
        let (Some(a), Some(b)) = (self.packets.get(&first), self.packets.get(&second)) else { return false };
        a.timestamp == b.timestamp && !a.marker && !b.start
    }

    fn give_up_oldest(&mut self) {
        let Some((first, _)) = self.packets.pop_first() else { return };
        self.abandoned += 1;
        if let Some(last) = self.runs.remove(&first).filter(|last| *last > first) {
            self.runs.insert(first + 1, last);
        }
    }

    /// Hands out the frame of these packets, which are all there.
    fn hand_out(&mut self, first: u64, last: u64, now: Instant) {
        let Some(timestamp) = self.packets.get(&first).map(|h| h.timestamp) else { return };
        let mut frame = AssembledFrame {
            first_sequence: first,
            last_sequence: last,
            absent_before: self.absent_before(first),
            timestamp,
            key: false,
            data: Vec::new(),
            first_arrival: now,
            completed: now,
            repaired: false,
            via: self.packets.get(&first).map(|h| h.via),
        };
        for s in first..=last {
            if let Some(h) = self.packets.remove(&s) {
                frame.key |= h.key;
                frame.repaired |= h.retransmitted;
                frame.via = frame.via.filter(|via| *via == h.via);
                frame.first_arrival = frame.first_arrival.min(h.arrived);
                if s == first {
                    frame.data = h.data;
                } else {
                    frame.data.extend_from_slice(&h.data);
                }
            }
        }
        self.ends.insert(last);
        if self.ends.len() > MAX_PACKETS {
            self.ends.pop_first();
        }
        self.ready.push_back(frame);
    }

    /// Packets missing between `first` and the complete frame before it.
    fn absent_before(&self, first: u64) -> u64 {
        let Some(end) = self.ends.range(..first).next_back() else { return u64::MAX };
        let here = self.packets.range(end + 1..first).count() as u64;
        (first - end - 1).saturating_sub(here)
    }

    /// The next complete frame, in order of completion.
    pub fn next_frame(&mut self) -> Option<AssembledFrame> {
        self.ready.pop_front()
    }

    /// Packets given up because the rest of their frame did not come in time.
    pub const fn abandoned_packets(&self) -> u64 {
        self.abandoned
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::send_queue::SendQueue;
    use proptest::prelude::*;

    fn packets(sizes: &[usize]) -> Vec<(u32, bool, Vec<u8>)> {
        let mut q = SendQueue::new(Codec::Vp8, 104, Duration::from_secs(1), usize::MAX, 0);
        for (i, &s) in sizes.iter().enumerate() {
            // P bit of the frame tag: 0 = key
            q.push(Instant::ZERO, vec![u8::from(i > 0); s], i as u32 * 3_000, i == 0);
        }
        let mut all = Vec::new();
        while let Some(c) = q.peek() {
            let mut out = Vec::new();
            q.write_next(&mut out);
            all.push((c.timestamp, c.marker, out));
        }
        all
    }

    fn media<'a>(sequence: u64, (timestamp, marker, payload): &'a (u32, bool, Vec<u8>)) -> MediaPacket<'a> {
        MediaPacket {
            ssrc: 1,
            sequence,
            timestamp: *timestamp,
            marker: *marker,
            payload_type: 96,
            payload,
            arrived: Instant::ZERO,
            one_way_delay: None,
            retransmitted: false,
            recovered: false,
            via: Via::Udp,
            codec: Codec::Vp8,
        }
    }

    #[test]
    fn what_came_by_tcp_waits_for_the_rest_however_long_that_takes() {
        let packets = packets(&[250, 50]);
        for (via, frames) in [(Via::Udp, 1), (Via::Tcp, 2)] {
            let mut a = FrameAssembler::new(Codec::Vp8, Duration::from_millis(200));
            // Three packets of the first frame, one of the second; TCP's retransmission timeout before the third.
            for (i, at) in [(0, 1.0), (1, 1.0), (3, 1.5), (2, 1.5)] {
                let arrived = Instant::from_secs_f64(at);
                a.push(&MediaPacket { arrived, via, ..media(i as u64, &packets[i]) });
            }
            assert_eq!(std::iter::from_fn(|| a.next_frame()).count(), frames, "{via:?}");
        }
    }

    #[test]
    fn a_frame_says_how_many_packets_are_missing_before_it() {
        // Frames of 1, 6 and 1 packets; of the second one packet is lost.
        let all = packets(&[60, 500, 60]);
        let last = all.len() as u64 - 1;
        let mut a = FrameAssembler::new(Codec::Vp8, Duration::from_secs(1));
        for s in (0..=last).filter(|s| *s != 2) {
            a.push(&media(100 + s, &all[s as usize]));
        }
        let absent: Vec<_> = std::iter::from_fn(|| a.next_frame()).map(|f| f.absent_before).collect();
        assert!(last > 4 && absent == [u64::MAX, 1], "{last} {absent:?}");
    }

    #[test]
    fn frames_come_out_whole_in_any_order_of_packets_and_duplicates_do_nothing() {
        let all = packets(&[250, 90, 310]);
        let n = all.len() as u64;
        for rotation in 0..n {
            let mut a = FrameAssembler::new(Codec::Vp8, Duration::from_secs(1));
            for i in 0..n {
                let s = (i * 5 + rotation) % n; // 8 packets; 5 and 8 are coprime
                a.push(&media(100 + s, &all[s as usize]));
                a.push(&media(100 + s, &all[s as usize]));
            }
            let mut frames: Vec<_> = std::iter::from_fn(|| a.next_frame()).collect();
            frames.sort_by_key(|f| f.first_sequence);
            frames.dedup_by_key(|f| f.first_sequence);
            assert_eq!(frames.iter().map(|f| f.data.len()).collect::<Vec<_>>(), [250, 90, 310]);
            assert_eq!(frames.iter().map(|f| f.key).collect::<Vec<_>>(), [true, false, false]);
            assert!(frames.windows(2).all(|w| w[1].first_sequence == w[0].last_sequence + 1));
        }
    }

    #[test]
    fn a_frame_with_a_hole_stays_inside_and_its_neighbours_show_the_gap() {
        let all = packets(&[90, 250, 90]);
        let mut a = FrameAssembler::new(Codec::Vp8, Duration::from_secs(1));
        for (i, p) in all.iter().enumerate().filter(|(i, _)| *i != 2) {
            a.push(&media(i as u64, p));
        }
        let (first, second) = (a.next_frame().unwrap(), a.next_frame().unwrap());
        assert_eq!((first.last_sequence, second.first_sequence), (0, 4));
        assert_eq!(a.next_frame(), None);
        a.push(&media(2, &all[2]));
        assert_eq!(a.next_frame().map(|f| f.data.len()), Some(250));
    }

    #[test]
    fn what_waits_is_bounded_in_number_and_time() {
        let mut a = FrameAssembler::new(Codec::Generic, Duration::from_secs(1));
        let part = (0, false, vec![0, 1]);
        for s in 0..10_000 {
            a.push(&media(s * 2, &part));
        }
        assert_eq!((a.packets.len(), a.runs.len()), (MAX_PACKETS, MAX_PACKETS));
        a.push(&MediaPacket { arrived: Instant::from_secs_f64(1.1), ..media(30_000, &part) });
        assert_eq!((a.packets.len(), a.runs.len()), (1, 1));
        assert_eq!(a.abandoned_packets(), 10_000);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn exactly_the_frames_of_which_nothing_is_missing_come_out_and_runs_hold_the_rest(
            sizes in prop::collection::vec(1_usize..900, 1..12),
            step in 1_u64..1_009,
            lost in prop::collection::btree_set(0_u64..60, 0..4),
        ) {
            let all = packets(&sizes);
            let mut a = FrameAssembler::new(Codec::Vp8, Duration::from_secs(1));
            // 1,009 is a prime: each number once, in an order that the step decides.
            for s in (0..1_009).map(|i| i * step % 1_009).filter(|s| *s < all.len() as u64 && !lost.contains(s)) {
                a.push(&media(s, &all[s as usize]));
                let in_runs: u64 = a.runs.iter().map(|(first, last)| last - first + 1).sum();
                prop_assert_eq!(in_runs, a.packets.len() as u64);
            }
            let mut whole: Vec<u32> = (0..sizes.len() as u32).map(|i| i * 3_000).collect();
            whole.retain(|t| (0..).zip(&all).all(|(s, packet)| packet.0 != *t || !lost.contains(&s)));
            let mut out: Vec<u32> = std::iter::from_fn(|| a.next_frame()).map(|f| f.timestamp).collect();
            out.sort_unstable();
            prop_assert_eq!(out, whole);
        }
    }
}
