//! The TCP half of a media flow: its packets as a stream of bytes over a simulated connection.
//!
//! Source: [tpba §4, §5.1]: a flow has a TCP connection beside its datagrams, and probes with it for the rate that is
//! fair. Read first: [`crate::tcp`].
//!
//! Readings:
//! - Headers take [`HEADER`] bytes of a segment, and as many of a packet: IP, UDP and RTP there, IP and TCP here. What
//!   frames a packet in the stream is not counted. So a packet as large as a segment is one segment, and of smaller ones
//!   several share a segment.
//! - Nagle [RFC 896]: a segment that is not full leaves when nothing is outstanding, or at once after
//!   [`TcpOrder::NoDelay`].
//! - The application writes while at most one segment waits that has never been sent: with a deep send buffer it would
//!   take long to drain.
//! - TCP delivers in order: a data unit is complete when all segments up to its last byte have arrived.
//! - What is acknowledged counts in sizes of whole packets, as they would have been on the wire as datagrams.
//!
//! Not modelled: connection set-up and close; a connection that was stopped still delivers what it has sent.

use std::collections::VecDeque;

use fairpace_control::{TcpOrder, TcpProgress};
use fairpace_path::Count;
use fairpace_units::{Bytes, Class, Ecn, Instant, RandomStream};

use super::Outgoing;
use crate::config;
use crate::packet::{Body, Packet};
use crate::report::count;
use crate::tcp::{TcpAck, TcpReceiver, TcpSender, TcpVariant};

/// IPv4 and TCP, or IPv4, UDP and RTP.
pub(crate) const HEADER: u32 = 40;

/// What of `size` bytes on the wire is payload.
pub(super) fn payload(size: u32) -> u32 {
    if size > HEADER { size - HEADER } else { size }
}

/// A packet of the flow in the stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Written {
    /// Its number among the flow's data packets.
    pub(super) seq: u64,
    pub(super) frame: u32,
    pub(super) born: Instant,
    /// As a datagram on the wire.
    pub(super) size: u32,
}

/// Both ends of the connection.
pub(super) struct TcpHalf {
    pub(super) tx: TcpSender,
    rx: TcpReceiver,
    segment_size: u32,
    /// Bytes that the application has written into the stream.
    written: u64,
    /// Where the segments end in the stream that are not acknowledged; the first has number `first` and begins at
    /// `acked_to`.
    segments: VecDeque<u64>,
    first: u32,
    acked_to: u64,
    /// What is not acknowledged, and where it ends in the stream.
    packets: VecDeque<(u64, Written)>,
    /// So many of them have been handed to the receiver's application.
    delivered: usize,
    /// Up to where the stream has arrived.
    arrived_to: u64,
    /// Acknowledged so far, as datagrams on the wire.
    acked: u64,
    no_delay: bool,
    /// The flow has been told so much at that instant: what was acknowledged, and the window's reductions.
    told: (Instant, u64, u64),
    /// Nothing new is sent.
    stopped: bool,
    /// Nothing at all.
    closed: bool,
    ack: Option<TcpAck>,
    class: Class,
}

impl TcpHalf {
    pub(super) fn new(config: &config::TcpHalf, packet_size: u32, jitter: RandomStream) -> Self {
        TcpHalf {
            tx: TcpSender::new(config.params.clone(), jitter),
            rx: TcpReceiver::new(config.params.variant == TcpVariant::Sack, config.params.delayed_ack),
            segment_size: config.segment_size.map_or(packet_size, |size| size.get() as u32),
            written: 0,
            segments: VecDeque::new(),
            first: 0,
            acked_to: 0,
            packets: VecDeque::new(),
            delivered: 0,
            arrived_to: 0,
            acked: 0,
            no_delay: false,
            told: (Instant::NEVER, 0, 0),
            stopped: false,
            closed: false,
            ack: None,
            class: Class::Normal,
        }
    }

    // The sender's side.

    /// The application may write another packet.
    pub(super) fn has_room(&self) -> bool {
        self.tx.unsent() == 0
    }

    pub(super) fn write(&mut self, now: Instant, packet: Written, class: Class) {
        self.written += u64::from(payload(packet.size));
        self.packets.push_back((self.written, packet));
        self.class = class;
        self.form_segments(now);
    }

    /// What may leave becomes segments; they keep their bounds when they are sent again.
    fn form_segments(&mut self, now: Instant) {
        if self.stopped {
            return;
        }
        let before = self.segments.len();
        let full = u64::from(payload(self.segment_size));
        let mut formed = self.segments.back().copied().unwrap_or(self.acked_to);
        while self.written - formed >= full {
            formed += full;
            self.segments.push_back(formed);
        }
        let waits = self.tx.unsent() > 0 || self.segments.len() > before;
        if self.written > formed && !waits && (self.no_delay || self.segments.is_empty()) {
            self.segments.push_back(self.written);
        }
        if self.segments.len() > before {
            self.tx.on_data(now, self.first + self.segments.len() as u32);
        }
    }

    pub(super) fn obey(&mut self, now: Instant, order: TcpOrder) {
        match order {
            TcpOrder::SetCwnd(cwnd) => self.tx.set_cwnd(now, cwnd.as_f64() / f64::from(self.segment_size)),
            TcpOrder::NoDelay(on) => {
                self.no_delay = on;
                self.form_segments(now);
            }
        }
    }

    pub(super) fn on_ack(&mut self, now: Instant, ack: &TcpAck) {
        let before = self.tx.acknowledged();
        self.tx.on_ack(now, ack);
        for _ in before..self.tx.acknowledged() {
            self.acked_to = self.segments.pop_front().unwrap_or(self.acked_to);
            self.first += 1;
        }
        while let Some((_, packet)) = self.packets.front().filter(|(end, _)| *end <= self.acked_to) {
            self.acked += u64::from(packet.size);
            self.packets.pop_front();
            self.delivered -= 1;
        }
        self.form_segments(now);
    }

    /// Nothing that was written waits for its acknowledgement.
    pub(super) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// How far it is; `None` if the flow knows.
    pub(super) fn take_progress(&mut self, now: Instant) -> Option<TcpProgress> {
        let reductions = self.tx.counters().reductions();
        let news = (now, self.acked, reductions);
        if self.told == news {
            return None;
        }
        self.told = news;
        Some(TcpProgress {
            acked: Bytes::new(self.acked),
            cwnd: Bytes::new((self.tx.cwnd() * f64::from(self.segment_size)) as u64),
            mss: Bytes::new(u64::from(self.segment_size)),
            reductions,
            srtt: self.tx.srtt(),
        })
    }

    pub(super) fn poll_transmit(&mut self, now: Instant) -> Option<Outgoing> {
        if self.closed {
            return None;
        }
        if now >= self.tx.poll_timer() {
            self.tx.on_timer(now);
        }
        let segment = self.tx.poll_transmit(now)?;
        let place = (segment.seq - self.first) as usize;
        let start = place.checked_sub(1).map_or(self.acked_to, |before| self.segments[before]);
        let size = (self.segments[place] - start) as u32 + self.segment_size - payload(self.segment_size);
        let body = Body::TcpData { seq: segment.seq, retransmission: segment.retransmission, cwr: segment.cwr };
        Some(Outgoing { body, size, class: self.class, ecn: segment.ecn, quick_start: None })
    }

    /// The retransmission timeout.
    pub(super) fn poll_timeout(&self) -> Instant {
        if self.closed { Instant::NEVER } else { self.tx.poll_timeout() }
    }

    /// The other timer.
    pub(super) fn poll_jitter(&self) -> Instant {
        if self.closed { Instant::NEVER } else { self.tx.poll_jitter() }
    }

    /// Nothing new is sent; what was sent is still delivered.
    pub(super) fn stop(&mut self) {
        self.stopped = true;
        self.tx.pause();
    }

    /// Nothing is sent any more.
    pub(super) fn close(&mut self) {
        self.closed = true;
    }

    /// Nothing will be sent any more, and nothing again.
    pub(super) fn is_over(&self) -> bool {
        self.closed || (self.stopped && self.tx.outstanding() == 0)
    }

    // The receiver's side.

    /// A segment has arrived: what has come in order because of it.
    pub(super) fn on_segment(&mut self, now: Instant, packet: &Packet, seq: u32, cwr: bool) -> Count {
        let before = self.rx.in_order();
        if cwr || packet.ecn == Ecn::Ce {
            self.rx.on_ecn(packet.ecn == Ecn::Ce, cwr);
        }
        let ack = self.rx.on_segment(now, seq);
        self.ack = ack.or(self.ack);
        let mut unique = Count::default();
        for seq in before..self.rx.in_order() {
            // What has not arrived is not acknowledged, so it is here.
            let Some(end) = self.segments.get((seq - self.first) as usize) else { continue };
            count(&mut unique, 1, (end - self.arrived_to) as u32 + self.segment_size - payload(self.segment_size));
            self.arrived_to = *end;
        }
        unique
    }

    /// The next packet that has come whole and in order.
    pub(super) fn take_delivered(&mut self) -> Option<Written> {
        let (_, packet) = self.packets.get(self.delivered).filter(|(end, _)| *end <= self.arrived_to)?;
        self.delivered += 1;
        Some(*packet)
    }

    pub(super) fn poll_ack(&mut self, now: Instant) -> Option<TcpAck> {
        self.ack.take().or_else(|| self.rx.on_timer(now))
    }

    pub(super) fn poll_ack_timer(&self) -> Instant {
        self.rx.poll_timer()
    }
}
