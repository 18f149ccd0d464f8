//! Plain RTP: one rate, no feedback, no repair, a jitter buffer of constant length.
//!
//! `ffmpeg -f rtp` and many cameras send so. A key frame comes at a constant interval, because nobody can ask for one.

use crate::ledger::{Captures, Shown};
use crate::path::{About, End, PathError, Wire};
use crate::stream::{Arrivals, Datagram, Packing, Stream};
use fairpace_media::EncoderModelParams;
use fairpace_units::{Bytes, Dscp, Duration, Ecn, Instant, Rate};

/// IPv4, UDP and RTP.
const OVERHEAD: Bytes = Bytes::new(28 + 12);

/// A datagram of plain RTP.
#[derive(Clone, Copy, Debug)]
pub struct RtpPacket {
    sequence: u64,
    left: Instant,
}

/// The sender.
#[derive(Debug)]
pub struct PlainSender {
    stream: Stream,
    left: Vec<Instant>,
    ready: Vec<Datagram>,
}

impl PlainSender {
    /// A stream of that rate; `seed` decides the encoder's noise.
    ///
    /// # Errors
    /// [`PathError`]: a parameter of the encoder.
    pub fn new(rate: Rate, encoder: EncoderModelParams, seed: u64) -> Result<PlainSender, PathError> {
        let stream = Stream::new(rate, encoder, Packing::Rtp, seed)?;
        Ok(PlainSender { stream, left: Vec::new(), ready: Vec::new() })
    }

    pub(crate) fn captures(&self) -> Captures<'_> {
        self.stream.captures()
    }

    pub(crate) fn shown(&self, receiver: &PlainReceiver) -> Vec<Shown> {
        self.stream.shown(&self.left, &receiver.arrivals, receiver.latency)
    }
}

impl End<RtpPacket> for PlainSender {
    fn on_packet(&mut self, _: Instant, _: &Wire<RtpPacket>) {}

    fn poll(&mut self, now: Instant, out: &mut Vec<Wire<RtpPacket>>) -> Instant {
        self.stream.poll(now, &mut self.ready);
        for datagram in self.ready.drain(..) {
            self.left.push(now);
            out.push(Wire {
                size: datagram.size + OVERHEAD,
                dscp: Dscp::DEFAULT,
                ecn: Ecn::NotEct,
                about: About::Media(datagram.tick),
                body: RtpPacket { sequence: datagram.sequence, left: now },
            });
        }
        self.stream.next()
    }
}

/// The receiver.
#[derive(Debug)]
pub struct PlainReceiver {
    arrivals: Arrivals,
    latency: Duration,
}

impl PlainReceiver {
    /// One whose jitter buffer is so long.
    pub fn new(latency: Duration) -> PlainReceiver {
        PlainReceiver { arrivals: Arrivals::default(), latency }
    }
}

impl End<RtpPacket> for PlainReceiver {
    fn on_packet(&mut self, now: Instant, packet: &Wire<RtpPacket>) {
        self.arrivals.note(packet.body.sequence, packet.body.left, now);
    }

    fn poll(&mut self, _: Instant, _: &mut Vec<Wire<RtpPacket>>) -> Instant {
        Instant::NEVER
    }
}
