//! The streams that go out: which packet is next, and its bytes.

use super::config::{Frame, SenderConfig, max_payload};
use crate::feedback::SenderHalf;
use crate::header_ext::Extensions;
use crate::packet::{self, Packet};
use crate::rtcp::Nack;
use crate::secret::Purpose;
use crate::send_queue::SendQueue;
use crate::sent::{Stream, Streams};
use crate::{Secret, What, dummy, rtx, vp8};
use fairpace_control::{Flow, packet_pair};
use fairpace_units::{Bytes, Duration, Instant, Rate};
use std::collections::VecDeque;

/// A frame just captured needs its interval to leave, a key frame about three.
const QUEUE_ROOM: Duration = Duration::from_millis(100);
/// As long as most queues on the path would take: faster, and every key frame costs the next ones their quality.
const QUEUE_DRAIN: Duration = Duration::from_millis(500);
/// A packet is sent again at most so many times; so many requests may wait.
const MOST_RETRANSMISSIONS: u8 = 3;
const MOST_PENDING: usize = 256;
/// Of the NACKs of one datagram, no more is looked at: the work stays bounded, however many packets a compound has.
pub(super) const MOST_NACKED: usize = 1_024;

/// The stamps in front of the payload of a packet that leaves now.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stamping<'a> {
    now: Instant,
    /// [`crate::NtpTime::send_time_24`].
    send_time: u32,
    srtt: Option<Duration>,
    feedback: &'a SenderHalf,
    secret: &'a Secret,
}

impl<'a> Stamping<'a> {
    pub(super) fn new(
        now: Instant,
        config: &SenderConfig,
        flow: &Flow,
        feedback: &'a SenderHalf,
        secret: &'a Secret,
    ) -> Self {
        let send_time = config.ntp_at_zero.at(now).send_time_24();
        Stamping { now, send_time, srtt: flow.srtt(), feedback, secret }
    }

    fn header(&self, stream: &Stream, timestamp: u32, marker: bool) -> Packet<'static> {
        let extensions = self.feedback.extensions(self.now, stream, self.srtt, self.secret);
        Packet {
            marker,
            payload_type: stream.payload_type,
            sequence: stream.sequence(stream.count),
            timestamp,
            ssrc: stream.ssrc,
            extensions: Extensions { send_time: Some(self.send_time), ..extensions },
            payload: &[],
        }
    }
}

/// The data that was dropped because the queue was too old.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drops {
    pub(super) frames: u64,
    /// The encoder is to give a key frame, and has not been asked for one.
    pub(super) ask_for_key: bool,
}

/// The packets that a NACK asks for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Requested {
    pub(super) packets: usize,
    /// Packets first sent too long ago.
    pub(super) too_late: u64,
}

#[derive(Debug)]
pub(super) struct MediaOut {
    pub(super) streams: Streams,
    queue: SendQueue,
    history: rtx::History,
    /// Indices of media packets to send again.
    pending: VecDeque<u64>,
    timestamp_offset: u32,
    last_frame: Option<(Instant, u32)>,
    asked_for_key: bool,
}

impl MediaOut {
    /// `has_pairs`: both ends must know packet pairs by their number.
    pub(super) fn new(config: &SenderConfig, secret: &Secret, has_pairs: bool) -> Self {
        let random = |purpose, n| secret.value(purpose, 0, n);
        // Three different SSRCs; the loop ends at once but for one seed in 2^32.
        let mut ssrcs = [0_u32; 3];
        let mut n = 0;
        for i in 0..ssrcs.len() {
            loop {
                let candidate = random(Purpose::Ssrc, n) as u32;
                n += 1;
                if candidate != 0 && !ssrcs.contains(&candidate) {
                    if let Some(s) = ssrcs.get_mut(i) {
                        *s = candidate;
                    }
                    break;
                }
            }
        }
        let [media, dummy, rtx] = ssrcs;
        let stream = |ssrc, payload_type, n| {
            let first = config.first_sequence.unwrap_or(random(Purpose::FirstSequence, n) as u32);
            let first = if has_pairs { first & !(packet_pair::PERIOD as u32 - 1) } else { first };
            Stream::new(ssrc, payload_type, first)
        };
        let first_picture = random(Purpose::PictureId, 0) as u16;
        MediaOut {
            streams: Streams {
                media: stream(media, config.codec.payload_type(), 0),
                dummy: stream(dummy, dummy::PAYLOAD_TYPE, 1),
                rtx: stream(rtx, rtx::PAYLOAD_TYPE, 2),
            },
            queue: SendQueue::new(config.codec, max_payload(config), config.max_queue_delay, first_picture),
            history: rtx::History::default(),
            pending: VecDeque::new(),
            timestamp_offset: random(Purpose::FirstTimestamp, 0) as u32,
            last_frame: None,
            asked_for_key: false,
        }
    }

    // --- frames ----------------------------------------------------------------------------------

    pub(super) fn push(&mut self, now: Instant, frame: Frame) {
        if frame.key {
            self.asked_for_key = false;
        }
        let timestamp = frame.timestamp_90k.wrapping_add(self.timestamp_offset);
        self.last_frame = Some((now, timestamp));
        self.queue.push(now, frame.data, timestamp, frame.key);
    }

    pub(super) fn set_max_payload(&mut self, bytes: usize) {
        self.queue.set_max_payload(bytes);
    }

    pub(super) fn take_drops(&mut self) -> Drops {
        let (dropped, wants_key) = self.queue.take_dropped();
        let ask_for_key = wants_key && !self.asked_for_key;
        self.asked_for_key |= ask_for_key;
        Drops { frames: dropped.frames, ask_for_key }
    }

    pub(super) fn expire(&mut self, now: Instant) {
        self.queue.expire(now);
    }

    pub(super) fn next_expiry(&self) -> Instant {
        self.queue.next_expiry()
    }

    pub(super) fn has_data(&self) -> bool {
        self.queue.has_data() || !self.pending.is_empty()
    }

    /// Frames and bytes waiting.
    pub(super) fn waiting(&self) -> (usize, usize) {
        self.queue.len()
    }

    /// The part of `target` for the encoder's bitstream: see [`super::SenderSession::media_rate`].
    pub(super) fn media_rate(&self, target: Rate, config: &SenderConfig) -> Rate {
        let full = config.packet_size.as_f64();
        let headers = config.ip_overhead.as_f64()
            + (packet::HEADER_LEN + Extensions::FULL_LEN) as f64
            + match config.codec {
                crate::codec::Codec::Vp8 => vp8::DESCRIPTOR_LEN as f64,
                crate::codec::Codec::Generic => vp8::GENERIC_LEN as f64,
            };
        let rate = target * ((full - headers) / full).max(0.0);
        let (_, waiting) = self.queue.len();
        let excess = waiting as f64 * 8.0 - rate.as_bps() * QUEUE_ROOM.as_secs_f64();
        let drain = (excess / QUEUE_DRAIN.as_secs_f64()).max(0.0);
        Rate::bps((rate.as_bps() - drain).max(rate.as_bps() / 2.0))
    }

    /// The media clock now: the last frame's timestamp, run on.
    pub(super) fn media_time(&self, now: Instant) -> u32 {
        let (at, timestamp) = self.last_frame.unwrap_or((Instant::ZERO, self.timestamp_offset));
        timestamp.wrapping_add((now.since(at).as_nanos() * 9 / 100_000) as u32)
    }

    // --- packets ---------------------------------------------------------------------------------

    /// A media packet without media, for a receiver that has nothing else to report on.
    pub(super) fn write_empty(&self, stamping: &Stamping<'_>, out: &mut Vec<u8>) {
        let header = stamping.header(&self.streams.media, self.media_time(stamping.now), false);
        out.clear();
        header.emit_header(out);
    }

    pub(super) fn write_dummy(&self, stamping: &Stamping<'_>, config: &SenderConfig, out: &mut Vec<u8>) {
        let header = stamping.header(&self.streams.dummy, self.media_time(stamping.now), false);
        out.clear();
        let len = config.packet_size.get().saturating_sub(config.ip_overhead.get());
        dummy::emit(&header, len as usize, out);
    }

    /// The next packet of the oldest frame; gives whether it is that frame's last, `None` if there is no frame.
    pub(super) fn write_media(
        &mut self,
        stamping: &Stamping<'_>,
        config: &SenderConfig,
        out: &mut Vec<u8>,
    ) -> Option<bool> {
        let chunk = self.queue.peek()?;
        let header = stamping.header(&self.streams.media, chunk.timestamp, chunk.marker);
        out.clear();
        header.emit_header(out);
        let start = out.len();
        self.queue.write_next(out);
        if config.retransmission {
            let payload = out.get(start..).unwrap_or_default();
            self.history.keep(self.streams.media.count, chunk.timestamp, chunk.marker, payload, stamping.now);
        }
        Some(chunk.marker)
    }

    /// The oldest packet that was asked for again; `false` if there is none.
    pub(super) fn write_retransmission(&mut self, stamping: &Stamping<'_>, out: &mut Vec<u8>) -> bool {
        while let Some(index) = self.pending.pop_front() {
            let original = self.streams.media.sequence(index);
            let Some(kept) = self.history.get_mut(index) else { continue };
            kept.times += 1;
            kept.sent_at = stamping.now;
            let header = stamping.header(&self.streams.rtx, kept.timestamp, kept.marker);
            out.clear();
            header.emit_header(out);
            rtx::emit(original, &kept.payload, out);
            return true;
        }
        false
    }

    /// A packet of `len` bytes has left under the flow's number `seq`.
    pub(super) fn on_sent(&mut self, what: What, seq: u64, len: usize) {
        let stream = match what {
            What::Dummy => &mut self.streams.dummy,
            What::Retransmission => &mut self.streams.rtx,
            _ => &mut self.streams.media,
        };
        stream.on_sent(seq, len.saturating_sub(packet::HEADER_LEN + Extensions::FULL_LEN));
    }

    // --- what was lost ---------------------------------------------------------------------------

    /// A packet first sent longer than `limit` ago is not sent again, nor one sent again within `spacing`. `most`: so many
    /// of the packets are looked at.
    pub(super) fn on_nack(
        &mut self,
        now: Instant,
        nack: &Nack<'_>,
        limit: Duration,
        spacing: Duration,
        most: usize,
    ) -> Requested {
        let mut asked = Requested::default();
        for sequence in nack.lost().take(most) {
            asked.packets += 1;
            let Some(index) = self.streams.media.index(sequence) else { continue };
            let Some(kept) = self.history.get_mut(index) else { continue };
            if now.since(kept.first_sent) > limit {
                asked.too_late += 1;
                continue;
            }
            let again_so_soon = kept.times > 0 && now.since(kept.sent_at) < spacing;
            let wanted = kept.times < MOST_RETRANSMISSIONS && !again_so_soon;
            if wanted && self.pending.len() < MOST_PENDING && !self.pending.contains(&index) {
                self.pending.push_back(index);
            }
        }
        asked
    }

    /// After a blackout everything it took is asked for at once, most of it too late: at a rate just halved, sending
    /// it again would keep the picture away as long as the blackout did. Gives how many requests were dropped.
    pub(super) fn drop_late(&mut self, now: Instant, limit: Duration) -> u64 {
        if self.pending.is_empty() {
            return 0;
        }
        let waiting = self.pending.len();
        let history = &mut self.history;
        self.pending.retain(|index| history.get_mut(*index).is_some_and(|kept| now.since(kept.first_sent) <= limit));
        (waiting - self.pending.len()) as u64
    }
}

/// A full packet's size with its IP header.
pub(super) fn on_the_wire(len: usize, config: &SenderConfig) -> Bytes {
    Bytes::new(len as u64) + config.ip_overhead
}
