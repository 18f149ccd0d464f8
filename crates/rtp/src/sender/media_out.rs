//! The streams that go out: which packet is next, and its bytes.

use super::config::{Frame, SenderConfig, max_payload};
use super::protect::Protect;
use super::repair::{Deadline, Repair, Requested};
use crate::feedback::SenderHalf;
use crate::header_ext::Extensions;
use crate::packet::{self, Packet};
use crate::rtcp::Nack;
use crate::secret::Purpose;
use crate::send_queue::{Chunk, SendQueue};
use crate::sent::{Stream, Streams};
use crate::{Secret, What, dummy, fec, rtx, vp8};
use fairpace_control::{Flow, packet_pair};
use fairpace_units::{Bytes, Duration, Instant, RandomStream, Rate, Via};

/// A frame just captured needs its interval to leave, a key frame about three.
const QUEUE_ROOM: Duration = Duration::from_millis(100);
/// As long as most queues on the path would take: faster, and every key frame costs the next ones their quality.
const QUEUE_DRAIN: Duration = Duration::from_millis(500);
/// A frame that is too old and takes longer than that to finish is given up.
const MOST_TO_FINISH: Duration = Duration::from_millis(300);
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

/// The data that was dropped because the queue was too old, or full.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drops {
    pub(super) frames: u64,
    pub(super) bytes: u64,
    /// The encoder is to give a key frame, and has not been asked for one.
    pub(super) ask_for_key: bool,
}

#[derive(Debug)]
pub(super) struct MediaOut {
    pub(super) streams: Streams,
    queue: SendQueue,
    pub(super) repair: Repair,
    pub(super) protect: Protect,
    timestamp_offset: u32,
    last_frame: Option<(Instant, u32)>,
    asked_for_key: bool,
    /// When the last key frame came from the encoder.
    last_key: Option<Instant>,
}

impl MediaOut {
    /// `has_pairs`: both ends must know packet pairs by their number.
    pub(super) fn new(config: &SenderConfig, secret: &Secret, has_pairs: bool) -> Self {
        let random = |purpose, n| secret.value(purpose, 0, n);
        // Four different SSRCs; the loop ends at once but for one seed in 2^32.
        let mut ssrcs = [0_u32; 4];
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
        let [media, dummy, rtx, repair] = ssrcs;
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
                fec: stream(repair, fec::PAYLOAD_TYPE, 3),
            },
            queue: SendQueue::new(
                config.codec,
                max_payload(config, false),
                config.max_queue_delay(config.playout),
                usize::try_from(config.max_queue.get()).unwrap_or(usize::MAX),
                first_picture,
            ),
            repair: Repair::default(),
            protect: Protect::new(RandomStream::named(random(Purpose::Repair, 0), "rtp.fec")),
            timestamp_offset: random(Purpose::FirstTimestamp, 0) as u32,
            last_frame: None,
            asked_for_key: false,
            last_key: None,
        }
    }

    // --- frames ----------------------------------------------------------------------------------

    pub(super) fn push(&mut self, now: Instant, frame: Frame) {
        if frame.key {
            self.asked_for_key = false;
            self.last_key = Some(now);
        }
        let timestamp = self.rtp_timestamp(frame.timestamp_90k);
        self.last_frame = Some((now, timestamp));
        self.repair.on_frame(frame.data.len(), frame.key);
        self.queue.push(now, frame.data, timestamp, frame.key);
    }

    /// A frame that has not begun to leave may wait so long from now on.
    pub(super) const fn set_max_queue_delay(&mut self, delay: Duration) {
        self.queue.set_max_delay(delay);
    }

    pub(super) const fn rtp_timestamp(&self, timestamp_90k: u32) -> u32 {
        timestamp_90k.wrapping_add(self.timestamp_offset)
    }

    /// Whether a key frame came from the encoder within the last `span`.
    pub(super) fn has_key_within(&self, now: Instant, span: Duration) -> bool {
        self.last_key.is_some_and(|at| now.since(at) < span)
    }

    /// The packet size has changed, or whether packets are protected.
    pub(super) fn cut_anew(&mut self, config: &SenderConfig) {
        self.queue.set_max_payload(max_payload(config, self.protect.is_on()));
    }

    pub(super) fn take_drops(&mut self) -> Drops {
        let (dropped, wants_key) = self.queue.take_dropped();
        let ask_for_key = wants_key && !self.asked_for_key;
        self.asked_for_key |= ask_for_key;
        Drops { frames: dropped.frames, bytes: dropped.bytes, ask_for_key }
    }

    /// Drops what is too old, at a rate of `rate` on the wire.
    pub(super) fn expire(&mut self, now: Instant, rate: Rate) {
        self.queue.give_up_begun(now, (rate.as_bps() / 8.0 * MOST_TO_FINISH.as_secs_f64()) as usize);
        self.queue.expire(now);
    }

    pub(super) fn next_expiry(&self) -> Instant {
        self.queue.next_expiry()
    }

    /// Repair packets are for datagrams: TCP loses nothing.
    pub(super) fn has_data(&self, via: Via) -> bool {
        self.queue.has_data() || self.repair.has_data() || (via == Via::Udp && self.protect.has_data())
    }

    /// The first packet of a pair was the last that left, and the second is here.
    pub(super) fn is_within_pair(&self) -> bool {
        let last = self.streams.media.count.checked_sub(1);
        last.is_some_and(|last| last.is_multiple_of(packet_pair::PERIOD)) && self.queue.has_data()
    }

    /// Frames and bytes waiting.
    pub(super) fn waiting(&self) -> (usize, usize) {
        self.queue.len()
    }

    /// Since when the oldest frame waits.
    pub(super) fn waits_since(&self) -> Option<Instant> {
        self.queue.waits_since()
    }

    /// The part of `target` for the encoder's bitstream: see [`super::SenderSession::media_rate`]; of `target` no more than `share`.
    pub(super) fn media_rate(&self, target: Rate, config: &SenderConfig, share: f64) -> Rate {
        let full = config.packet_size.as_f64();
        let headers = config.ip_overhead.as_f64()
            + (packet::HEADER_LEN + Extensions::FULL_LEN) as f64
            + match config.codec {
                crate::codec::Codec::Vp8 => vp8::DESCRIPTOR_LEN as f64,
                crate::codec::Codec::Generic => vp8::GENERIC_LEN as f64,
            };
        let rate = target * ((full - headers) / full).max(0.0) * (1.0 / (1.0 + self.protect.overhead()));
        let waiting = self.queue.len().1 + self.repair.waiting().bytes;
        let excess = waiting as f64 * 8.0 - rate.as_bps() * QUEUE_ROOM.as_secs_f64();
        let drain = (excess / QUEUE_DRAIN.as_secs_f64()).max(0.0);
        Rate::bps((rate.as_bps() * share - drain).max(rate.as_bps() / 2.0))
    }

    /// Whether all that waits leaves within `room` at that rate on the wire.
    pub(super) fn drains_within(&self, rate: Rate, config: &SenderConfig, room: Duration) -> bool {
        let header = (config.packet_size.get() as usize).saturating_sub(max_payload(config, self.protect.is_on()));
        let again = self.repair.waiting();
        let media = (self.queue.len().1 + self.queue.packets() * header) as f64 * (1.0 + self.protect.overhead());
        let wire = media + (again.bytes + again.packets * header) as f64;
        wire * 8.0 <= rate.as_bps() * room.as_secs_f64()
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

    /// The next packet of the oldest frame; `None` if there is no frame.
    pub(super) fn write_media(
        &mut self,
        stamping: &Stamping<'_>,
        config: &SenderConfig,
        out: &mut Vec<u8>,
    ) -> Option<Chunk> {
        let chunk = self.queue.peek()?;
        let header = stamping.header(&self.streams.media, chunk.timestamp, chunk.marker);
        out.clear();
        header.emit_header(out);
        let start = out.len();
        self.queue.write_next(out);
        if chunk.begins_key {
            self.repair.on_key_frame(self.streams.media.count, chunk.captured);
        }
        let payload = out.get(start..).unwrap_or_default();
        let fits = payload.len() <= max_payload(config, true);
        self.protect.on_media(stamping.now, &header, payload, self.streams.media.count, fits);
        if config.retransmission {
            self.repair.keep(self.streams.media.count, &chunk, payload, stamping.now);
        }
        Some(chunk)
    }

    /// The oldest packet that was asked for again; `false` if there is none.
    pub(super) fn write_retransmission(
        &mut self,
        stamping: &Stamping<'_>,
        deadline: &Deadline,
        config: &SenderConfig,
        out: &mut Vec<u8>,
    ) -> bool {
        let (index, kept) = loop {
            let Some((index, kept)) = self.repair.next(deadline) else { return false };
            // One from before the path carried less can come no more.
            if kept.payload.len() <= max_payload(config, false) {
                break (index, kept);
            }
        };
        let header = stamping.header(&self.streams.rtx, kept.timestamp, kept.marker);
        out.clear();
        header.emit_header(out);
        rtx::emit(self.streams.media.sequence(index), &kept.payload, out);
        self.protect.on_again();
        true
    }

    /// The repair packet that is due; `false` if there is none. Media that waits for longer than 100 ms at `rate` goes first.
    pub(super) fn write_fec(
        &mut self,
        stamping: &Stamping<'_>,
        rate: Rate,
        config: &SenderConfig,
        out: &mut Vec<u8>,
    ) -> bool {
        let is_behind = self.queue.has_data() && !self.drains_within(rate, config, QUEUE_ROOM);
        if !self.protect.has_data() || is_behind {
            return false;
        }
        let header = stamping.header(&self.streams.fec, self.media_time(stamping.now), false);
        out.clear();
        fec::emit_packet_header(&header, self.streams.media.ssrc, out);
        // Over packets from before the path carried less, the repair packet would be too large.
        self.protect.write(out) && on_the_wire(out.len(), config) <= config.packet_size
    }

    /// A packet of `len` bytes has left under the flow's number `seq`.
    pub(super) fn on_sent(&mut self, now: Instant, what: What, seq: u64, len: usize) {
        let stream = match what {
            What::Dummy => &mut self.streams.dummy,
            What::Retransmission => &mut self.streams.rtx,
            What::Fec => &mut self.streams.fec,
            _ => &mut self.streams.media,
        };
        if matches!(what, What::Media | What::Retransmission | What::Fec) {
            self.repair.on_sent(now);
        }
        stream.on_sent(seq, len.saturating_sub(packet::HEADER_LEN + Extensions::FULL_LEN));
    }

    // --- what was lost ---------------------------------------------------------------------------

    /// The peer asks for packets again; of them no more than `most` are looked at. `refreshes`: the encoder gives a key frame
    /// when asked.
    pub(super) fn on_nack(&mut self, nack: &Nack<'_>, deadline: &Deadline, most: usize, refreshes: bool) -> Requested {
        let indexes = nack.lost().take(most).filter_map(|sequence| self.streams.media.index(sequence));
        indexes.for_each(|index| self.protect.on_asked(index));
        let requested = self.repair.on_nack(nack, &self.streams.media, deadline, most, refreshes);
        self.refresh_if_wanted();
        requested
    }

    /// Judges anew what waits to be sent again; gives how many packets were given up.
    pub(super) fn review(&mut self, deadline: &Deadline, refreshes: bool) -> u64 {
        let given_up = self.repair.review(deadline, refreshes);
        self.refresh_if_wanted();
        given_up
    }

    /// Frames that refer to what is given up are worth nothing.
    fn refresh_if_wanted(&mut self) {
        if self.repair.is_refreshing() && !self.asked_for_key {
            self.queue.drop_until_key();
        }
    }
}

/// A full packet's size with its IP header.
pub(super) fn on_the_wire(len: usize, config: &SenderConfig) -> Bytes {
    Bytes::new(len as u64) + config.ip_overhead
}
