//! A stream of one rate, packed into datagrams, and a player that shows what it has: the ends of tools that do not adapt.

use crate::ledger::{Captures, Shown, Taken};
use crate::path::PathError;
use fairpace_media::{EncodedFrame, EncoderModel, EncoderModelParams, FrameSource, LostFrame, Verdict};
use fairpace_units::{Bytes, Duration, Instant, RandomStream, Rate};
use std::collections::BTreeMap;

/// TS packets per datagram, and their size: what ffmpeg and SRT's tools send.
const TS_DATAGRAM: u64 = 7 * TS_PACKET;
const TS_PACKET: u64 = 188;
/// Of a TS packet, without its header.
const TS_PAYLOAD: u64 = 184;
/// PES header with two time stamps, and the adaptation field with the clock, per frame.
const PES_HEADER: u64 = 19 + 8;
/// PAT and PMT come so often in ffmpeg's streams.
const TABLES_EACH: Duration = Duration::from_millis(100);
/// RTP payload of a packet that fills its MTU with room for options.
const RTP_PAYLOAD: u64 = 1_200;

/// How frames become datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packing {
    /// MPEG-TS in datagrams of 1,316 bytes that are sent when full: one may end a frame and begin the next.
    Ts,
    /// Each frame in RTP packets of its own.
    Rtp,
}

/// A frame's place among the datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) tick: u32,
    pub(crate) key: bool,
    pub(crate) first: u64,
    pub(crate) last: u64,
}

/// A datagram of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Datagram {
    pub(crate) sequence: u64,
    /// Its payload, without the transport's headers.
    pub(crate) size: Bytes,
    /// The frame that it begins with.
    pub(crate) tick: u32,
}

/// An encoder at one rate, and the datagrams of its frames.
#[derive(Debug)]
pub(crate) struct Stream {
    source: EncoderModel,
    packing: Packing,
    taken: BTreeMap<u32, Taken>,
    spans: Vec<Span>,
    /// Datagrams so far.
    sequence: u64,
    /// MPEG-TS so far.
    written: u64,
    tables_at: Instant,
    interval: Duration,
}

impl Stream {
    pub(crate) fn new(
        rate: Rate,
        encoder: EncoderModelParams,
        packing: Packing,
        seed: u64,
    ) -> Result<Stream, PathError> {
        let encoder = EncoderModelParams { start_rate: rate, max_rate: encoder.max_rate.max(rate), ..encoder };
        Ok(Stream {
            source: EncoderModel::new(encoder, RandomStream::named(seed, "video.encoder"))?,
            packing,
            taken: BTreeMap::new(),
            spans: Vec::new(),
            sequence: 0,
            written: 0,
            tables_at: Instant::ZERO,
            interval: encoder.frame_interval,
        })
    }

    pub(crate) fn captures(&self) -> Captures<'_> {
        Captures { began: Some(Instant::ZERO), interval: self.interval, taken: &self.taken }
    }

    pub(crate) fn next(&self) -> Instant {
        self.source.next_frame_at()
    }

    /// Appends the datagrams that are full by now.
    pub(crate) fn poll(&mut self, now: Instant, out: &mut Vec<Datagram>) {
        while self.source.next_frame_at() <= now {
            let Ok(Some(frame)) = self.source.next_frame(now) else { break };
            let taken = Taken { key: frame.key, size: frame.size(), step: self.source.size_step() };
            self.taken.insert(frame.timestamp_90k, taken);
            match self.packing {
                Packing::Ts => self.write(now, &frame, out),
                Packing::Rtp => self.pack(&frame, out),
            }
        }
    }

    fn pack(&mut self, frame: &EncodedFrame, out: &mut Vec<Datagram>) {
        let (tick, key, size) = (frame.timestamp_90k, frame.key, frame.size().get().max(1));
        let packets = size.div_ceil(RTP_PAYLOAD);
        let first = self.sequence;
        for packet in 0..packets {
            let left = size - packet * RTP_PAYLOAD;
            out.push(Datagram { sequence: first + packet, size: Bytes::new(left.min(RTP_PAYLOAD)), tick });
        }
        self.sequence += packets;
        self.spans.push(Span { tick, key, first, last: self.sequence - 1 });
    }

    fn write(&mut self, now: Instant, frame: &EncodedFrame, out: &mut Vec<Datagram>) {
        if self.tables_at <= now {
            self.written += 2 * TS_PACKET;
            self.tables_at = now + TABLES_EACH;
        }
        let begin = self.written;
        self.written += (frame.size().get() + PES_HEADER).div_ceil(TS_PAYLOAD) * TS_PACKET;
        let (tick, key) = (frame.timestamp_90k, frame.key);
        self.spans.push(Span { tick, key, first: begin / TS_DATAGRAM, last: (self.written - 1) / TS_DATAGRAM });
        while (self.sequence + 1) * TS_DATAGRAM <= self.written {
            // The frame of its first byte: this one, or the one that was waiting for it.
            let first = self.spans.iter().rev().take_while(|s| s.last >= self.sequence).last().map_or(tick, |s| s.tick);
            out.push(Datagram { sequence: self.sequence, size: Bytes::new(TS_DATAGRAM), tick: first });
            self.sequence += 1;
        }
    }

    /// The frames as a player shows them that decodes at once what has arrived when it is due: a decoder goes on after a
    /// loss, with a damaged picture, until the next whole key frame.
    ///
    /// `left` is when each datagram was sent first; `latency` the player's, beyond the first one's transit.
    pub(crate) fn shown(&self, left: &[Instant], arrivals: &Arrivals, latency: Duration) -> Vec<Shown> {
        let arrival = |sequence: u64| {
            let left = *left.get(usize::try_from(sequence).ok()?)?;
            Some((arrivals.due(left, latency)?, arrivals.at(sequence)))
        };
        let mut clean = false;
        let mut shown = Vec::new();
        for span in &self.spans {
            let parts: Option<Vec<(Instant, Option<Instant>)>> = (span.first..=span.last).map(arrival).collect();
            // Its last datagram was not full, or nothing ever arrived.
            let Some(parts) = parts else { continue };
            let due = parts.iter().map(|p| p.0).max().unwrap_or_default();
            let in_time = parts.iter().filter(|(due, at)| at.is_some_and(|at| at <= *due)).count();
            let ready = parts.iter().map(|p| p.1).collect::<Option<Vec<_>>>().and_then(|all| all.into_iter().max());
            let whole = in_time == parts.len();
            clean = whole && (span.key || clean);
            let verdict = match (whole, ready) {
                (true, _) if clean => Verdict::InTime,
                (true, _) => Verdict::Lost(LostFrame::Reference),
                (false, Some(_)) => Verdict::Late,
                (false, None) => Verdict::Lost(LostFrame::Hole),
            };
            let missing = u32::try_from(parts.len() - in_time).unwrap_or(u32::MAX);
            shown.push(Shown {
                tick: span.tick,
                due,
                ready,
                verdict,
                damaged: !clean && in_time > 0,
                missing,
                skipped: 0,
            });
        }
        shown
    }
}

/// When datagrams left, and when they were there: the clock of a player that shows each a constant time after the first
/// one's transit.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arrivals {
    /// The first datagram's.
    transit: Option<Duration>,
    at: BTreeMap<u64, Instant>,
}

impl Arrivals {
    /// A datagram is there; only its first arrival counts.
    pub(crate) fn note(&mut self, sequence: u64, left: Instant, now: Instant) {
        self.transit.get_or_insert(now.since(left));
        self.at.entry(sequence).or_insert(now);
    }

    pub(crate) fn has(&self, sequence: u64) -> bool {
        self.at.contains_key(&sequence)
    }

    /// When a datagram that left then is due.
    pub(crate) fn due(&self, left: Instant, latency: Duration) -> Option<Instant> {
        Some(left + self.transit? + latency)
    }

    fn at(&self, sequence: u64) -> Option<Instant> {
        self.at.get(&sequence).copied()
    }
}
