//! Frames that wait for their turn, cut into packets as they go.
//!
//! A live sender must not fall behind: when the oldest frame that has not begun to leave is older than
//! `max_delay`, it and all that depend on it are dropped whole, up to the next key frame, and the
//! encoder is asked for one. So it is when a frame finds no room in `max_bytes`. A frame that has begun to leave is finished. So what is
//! sent is always decodable in the order in which it is sent.

use crate::codec::Codec;
use crate::vp8;
use fairpace_units::{Duration, Instant};
use std::collections::VecDeque;

#[derive(Debug)]
struct Queued {
    data: Vec<u8>,
    timestamp: u32,
    key: bool,
    since: Instant,
    picture_id: u16,
    packets: usize,
    packets_sent: usize,
    bytes_sent: usize,
}

/// One packet's worth, written to the buffer behind the RTP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chunk {
    pub(crate) timestamp: u32,
    pub(crate) marker: bool,
    /// When its frame came from the encoder.
    pub(crate) captured: Instant,
    /// The first packet of a key frame.
    pub(crate) begins_key: bool,
}

/// No payload is made smaller, descriptor included.
pub(crate) const LEAST_PAYLOAD: usize = 16;

/// The result of `expire`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Dropped {
    pub(crate) frames: u64,
    pub(crate) bytes: u64,
}

#[derive(Debug)]
pub(crate) struct SendQueue {
    codec: Codec,
    max_payload: usize,
    max_delay: Duration,
    /// At most this much waits, whatever its age.
    max_bytes: usize,
    frames: VecDeque<Queued>,
    bytes: usize,
    next_picture_id: u16,
    /// Something was dropped: nothing is taken in before a key frame.
    wants_key: bool,
    dropped: Dropped,
}

impl SendQueue {
    /// `max_payload`: RTP payload of a full packet, descriptor included.
    pub(crate) fn new(
        codec: Codec,
        max_payload: usize,
        max_delay: Duration,
        max_bytes: usize,
        first_picture_id: u16,
    ) -> Self {
        SendQueue {
            codec,
            max_payload: max_payload.max(LEAST_PAYLOAD),
            max_delay,
            max_bytes,
            frames: VecDeque::new(),
            bytes: 0,
            next_picture_id: first_picture_id & 0x7fff,
            wants_key: false,
            dropped: Dropped::default(),
        }
    }

    const fn descriptor_len(&self) -> usize {
        match self.codec {
            Codec::Vp8 => vp8::DESCRIPTOR_LEN,
            Codec::Generic => vp8::GENERIC_LEN,
        }
    }

    pub(crate) fn push(&mut self, now: Instant, data: Vec<u8>, timestamp: u32, key: bool) {
        if data.is_empty() {
            return;
        }
        let picture_id = self.next_picture_id;
        self.next_picture_id = (self.next_picture_id + 1) & 0x7fff;
        if (self.wants_key && !key) || self.len().1 + data.len() > self.max_bytes {
            self.count_drop(data.len());
            return;
        }
        self.wants_key = false;
        let packets = data.len().div_ceil(self.max_payload - self.descriptor_len());
        self.bytes += data.len();
        self.frames.push_back(Queued {
            data,
            timestamp,
            key,
            since: now,
            picture_id,
            packets,
            packets_sent: 0,
            bytes_sent: 0,
        });
    }

    fn count_drop(&mut self, bytes: usize) {
        self.dropped.frames += 1;
        self.dropped.bytes += bytes as u64;
        self.wants_key = true;
    }

    /// Drops what is too old. Call before asking for data.
    pub(crate) fn expire(&mut self, now: Instant) {
        let begun = usize::from(self.frames.front().is_some_and(|f| f.packets_sent > 0));
        let too_old = |f: &Queued| now.since(f.since) > self.max_delay;
        if !self.frames.get(begun).is_some_and(too_old) {
            return;
        }
        // Everything up to the next key frame that is young enough: nothing before it can be decoded.
        let keep = self.frames.iter().skip(begun).position(|f| f.key && !too_old(f));
        self.drop_until(begun, keep);
    }

    /// Drops the frames from place `begun` on, up to the key frame that is `key` further, if there is one.
    fn drop_until(&mut self, begun: usize, key: Option<usize>) {
        let drop = key.unwrap_or(self.frames.len().saturating_sub(begun));
        for _ in 0..drop {
            if let Some(f) = self.frames.remove(begun) {
                self.bytes -= f.data.len();
                self.count_drop(f.data.len());
            }
        }
        self.wants_key = key.is_none();
    }

    /// Gives up the frame that has begun to leave, if it has waited too long and is of more than `most` bytes still: at a rate that has
    /// collapsed it would keep the others away for seconds. So are all that refer to it.
    pub(crate) fn give_up_begun(&mut self, now: Instant, most: usize) {
        let Some(f) = self.frames.front().filter(|f| f.packets_sent > 0) else { return };
        let (whole, left) = (f.data.len(), f.data.len() - f.bytes_sent);
        if now.since(f.since) <= self.max_delay || left <= most {
            return;
        }
        self.frames.pop_front();
        self.bytes -= whole;
        self.count_drop(whole);
        self.drop_until_key();
    }

    /// From now on a frame that has not begun to leave may be so old.
    pub(crate) const fn set_max_delay(&mut self, max_delay: Duration) {
        self.max_delay = max_delay;
    }

    /// Drops the frames that have not begun to leave, up to the first key frame: nothing before it can be decoded.
    pub(crate) fn drop_until_key(&mut self) {
        let begun = usize::from(self.frames.front().is_some_and(|f| f.packets_sent > 0));
        self.drop_until(begun, self.frames.iter().skip(begun).position(|f| f.key));
    }

    /// From now on packets carry at most this much; what waits is cut anew.
    pub(crate) fn set_max_payload(&mut self, max_payload: usize) {
        self.max_payload = max_payload.max(LEAST_PAYLOAD);
        let room = self.max_payload - self.descriptor_len();
        for f in &mut self.frames {
            f.packets = f.packets_sent + (f.data.len() - f.bytes_sent).div_ceil(room);
        }
    }

    /// When `expire` may next have something to do; `NEVER` if nothing waits.
    pub(crate) fn next_expiry(&self) -> Instant {
        let begun = usize::from(self.frames.front().is_some_and(|f| f.packets_sent > 0));
        self.frames.get(begun).map_or(Instant::NEVER, |f| f.since + self.max_delay + Duration::from_nanos(1))
    }

    /// The drops since the last call, and whether the encoder must give a key frame.
    pub(crate) fn take_dropped(&mut self) -> (Dropped, bool) {
        (core::mem::take(&mut self.dropped), self.wants_key)
    }

    pub(crate) fn has_data(&self) -> bool {
        !self.frames.is_empty()
    }

    /// Frames and bytes waiting.
    pub(crate) fn len(&self) -> (usize, usize) {
        (self.frames.len(), self.bytes - self.frames.front().map_or(0, |f| f.bytes_sent))
    }

    /// The packets that waiting frames take.
    pub(crate) fn packets(&self) -> usize {
        self.frames.iter().map(|f| f.packets.saturating_sub(f.packets_sent)).sum()
    }

    /// When the oldest frame that waits, or a part of it, came from the encoder; `None` if none waits.
    pub(crate) fn waits_since(&self) -> Option<Instant> {
        self.frames.front().map(|f| f.since)
    }

    /// The next packet, before its payload is written.
    pub(crate) fn peek(&self) -> Option<Chunk> {
        let f = self.frames.front()?;
        Some(Chunk {
            timestamp: f.timestamp,
            marker: f.packets_sent + 1 >= f.packets,
            captured: f.since,
            begins_key: f.key && f.packets_sent == 0,
        })
    }

    /// Writes the next packet's payload, and takes it off the queue.
    pub(crate) fn write_next(&mut self, out: &mut Vec<u8>) {
        let Some(f) = self.frames.front_mut() else { return };
        let start = f.packets_sent == 0;
        match self.codec {
            Codec::Vp8 => vp8::emit(start, f.picture_id, out),
            Codec::Generic => vp8::emit_generic(start, f.key, out),
        }
        // Packets of one frame differ by at most one byte: a small remainder would cost a packet's worth of
        // a packet-counting controller's rate all the same.
        let left = f.data.len() - f.bytes_sent;
        let len = left.div_ceil((f.packets - f.packets_sent).max(1));
        out.extend_from_slice(f.data.get(f.bytes_sent..f.bytes_sent + len).unwrap_or_default());
        f.bytes_sent += len;
        f.packets_sent += 1;
        if f.bytes_sent >= f.data.len() {
            self.bytes -= f.data.len();
            self.frames.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_frame_under_way_is_finished_in_smaller_packets_when_the_path_shrinks() {
        let mut q = SendQueue::new(Codec::Vp8, 1_004, Duration::MAX, usize::MAX, 0);
        q.push(Instant::ZERO, vec![7; 3_000], 0, true);
        let next = |q: &mut SendQueue| {
            let (mut out, marker) = (Vec::new(), q.peek().map(|c| c.marker));
            q.write_next(&mut out);
            (out.len() - vp8::DESCRIPTOR_LEN, marker)
        };
        assert_eq!(next(&mut q), (1_000, Some(false)));
        q.set_max_payload(504);
        // 2,000 B left in packets of at most 500
        for i in 0..4 {
            assert_eq!(next(&mut q), (500, Some(i == 3)));
        }
        assert!(!q.has_data());
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn queue() -> SendQueue {
        SendQueue::new(Codec::Generic, 101, Duration::from_millis(400), 16 << 20, 0)
    }

    fn drain(q: &mut SendQueue) -> Vec<(Chunk, Vec<u8>)> {
        let mut all = Vec::new();
        while let Some(c) = q.peek() {
            let mut out = Vec::new();
            q.write_next(&mut out);
            all.push((c, out));
        }
        all
    }

    #[test]
    fn a_frame_is_cut_into_equal_packets_and_the_last_has_the_marker() {
        let mut q = queue();
        q.push(at(0), (0..=200).collect(), 9, true);
        let packets = drain(&mut q);
        // 201 bytes in packets of up to 100: three of 67
        assert_eq!(packets.iter().map(|p| p.1.len() - 1).collect::<Vec<_>>(), [67, 67, 67]);
        assert_eq!(packets.iter().map(|p| p.0.marker).collect::<Vec<_>>(), [false, false, true]);
        assert_eq!(packets[0].1[0], 0xc0, "start, key");
        assert_eq!(packets[1].1[0], 0x40);
        assert_eq!(q.len(), (0, 0));
    }

    #[test]
    fn a_late_frame_is_dropped_with_all_that_depend_on_it() {
        let mut q = queue();
        for (i, key) in [true, false, false, true, false].into_iter().enumerate() {
            q.push(at(i as u64 * 100), vec![i as u8; 50], i as u32, key);
        }
        q.expire(at(400));
        assert_eq!(q.take_dropped(), (Dropped::default(), false), "400 ms is not more than 400 ms");
        q.expire(at(401));
        assert_eq!(q.take_dropped(), (Dropped { frames: 3, bytes: 150 }, false), "up to the key frame of 300 ms");
        assert_eq!(drain(&mut q).iter().map(|p| p.0.timestamp).collect::<Vec<_>>(), [3, 4]);
    }

    #[test]
    fn without_a_key_frame_all_go_and_one_is_wanted_before_anything_else_is_taken() {
        let mut q = queue();
        q.push(at(0), vec![1; 50], 0, true);
        q.push(at(100), vec![2; 50], 1, false);
        q.expire(at(450));
        assert_eq!(q.take_dropped(), (Dropped { frames: 2, bytes: 100 }, true));
        q.push(at(460), vec![3; 50], 2, false);
        assert!(!q.has_data());
        q.push(at(470), vec![4; 50], 3, true);
        assert_eq!(q.take_dropped(), (Dropped { frames: 1, bytes: 50 }, false));
        assert_eq!(drain(&mut q).len(), 1);
    }

    #[test]
    fn a_frame_that_has_begun_to_leave_is_finished() {
        let mut q = queue();
        q.push(at(0), vec![1; 250], 0, true);
        q.push(at(0), vec![2; 250], 1, false);
        q.write_next(&mut Vec::new());
        q.expire(at(1_000));
        assert_eq!(q.take_dropped().0.frames, 1);
        assert_eq!(drain(&mut q).iter().map(|p| p.0.timestamp).collect::<Vec<_>>(), [0, 0]);
    }

    #[test]
    fn the_queue_is_bounded_in_bytes_too() {
        let mut q = queue();
        for i in 0..40 {
            q.push(at(0), vec![0; 1 << 20], i, true);
        }
        assert_eq!(q.len(), (16, 16 << 20));
        assert_eq!(q.take_dropped().0.frames, 24);
    }

    #[test]
    fn a_frame_without_room_is_dropped_with_all_up_to_the_next_key_frame_and_what_waits_stays() {
        let mut q = SendQueue::new(Codec::Generic, 101, Duration::MAX, 250, 0);
        q.push(at(0), vec![1; 200], 0, true);
        q.push(at(40), vec![2; 51], 1, false);
        assert_eq!(q.take_dropped(), (Dropped { frames: 1, bytes: 51 }, true));
        // 100 B have left: there is room, but nothing to refer to.
        q.write_next(&mut Vec::new());
        q.push(at(80), vec![3; 50], 2, false);
        q.push(at(120), vec![4; 150], 3, true);
        q.expire(at(1_000_000));
        assert_eq!((q.take_dropped(), q.len()), ((Dropped { frames: 1, bytes: 50 }, false), (2, 250)));
        assert_eq!(q.waits_since(), Some(at(0)));
        assert_eq!(drain(&mut q).iter().map(|p| p.0.timestamp).collect::<Vec<_>>(), [0, 3, 3]);
        assert_eq!(q.waits_since(), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn every_byte_leaves_once_in_packets_that_fit(sizes in prop::collection::vec(1_usize..700, 1..20), vp8 in any::<bool>()) {
            let codec = if vp8 { Codec::Vp8 } else { Codec::Generic };
            let mut q = SendQueue::new(codec, 104, Duration::from_secs(1), usize::MAX, 0x7ffe);
            let all: Vec<u8> = (0..sizes.iter().sum()).map(|i: usize| (i % 251) as u8).collect();
            let mut from = 0;
            for (i, s) in sizes.iter().enumerate() {
                q.push(at(0), all[from..from + s].to_vec(), i as u32, i == 0);
                from += s;
            }
            let mut back = Vec::new();
            for (_, payload) in drain(&mut q) {
                prop_assert!(payload.len() <= 104);
                let (_, data) = if vp8 { vp8::parse(&payload) } else { vp8::parse_generic(&payload) }.unwrap();
                prop_assert!(!data.is_empty());
                back.extend_from_slice(data);
            }
            prop_assert_eq!(back, all);
        }
    }
}
