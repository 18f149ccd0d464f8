//! The TCP half of a media flow: its packets as a stream of bytes over a simulated connection.
//!
//! Source: [tpba §4, §5.1]: a flow has a TCP connection beside its datagrams, and probes with it for the rate that is
//! fair. Read first: [`crate::tcp`].
//!
//! Readings:
//! - Headers take [`HEADER`] bytes of a segment, and as many of a packet: IP, UDP and RTP there, IP and TCP here. The
//!   framing of a packet in the stream is not counted. So a packet as large as a segment is one segment, and of
//!   smaller ones several share a segment.
//! - Nagle [RFC 896]: a segment that is not full leaves when nothing is outstanding, or at once after
//!   [`TcpOrder::NoDelay`].
//! - The application writes while at most one segment waits that has never been sent: with a deep send buffer it would
//!   take long to drain.
//! - TCP delivers in order: a data unit is complete when all segments up to its last byte have arrived.
//! - Acknowledged data counts as bytes on the wire in full segments ([`TcpProgress::on_the_wire`]), as that of a kernel's
//!   TCP does. So a rate that TCP has measured is one on the wire, and a datagram's headers count in it when UDP takes over.
//!
//! Not modelled: connection set-up and close; a connection that was stopped still delivers what it has sent.

use std::collections::VecDeque;

use fairpace_control::{TcpOrder, TcpProgress};
use fairpace_path::Count;
use fairpace_units::{Bytes, Class, Ecn, Instant, RandomStream};

use crate::config;
use crate::counts::count;
use crate::packet::{Body, Outgoing, Packet};
use crate::tcp::{TcpAck, TcpReceiver, TcpSender, TcpVariant};

/// IPv4 and TCP, or IPv4, UDP and RTP.
pub(crate) const HEADER: u32 = 40;

/// The payload in `size` bytes on the wire.
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
    /// The packets that are not acknowledged, and where each ends in the stream.
    packets: VecDeque<(u64, Written)>,
    /// So many of them have been handed to the receiver's application.
    delivered: usize,
    /// Up to where the stream has arrived.
    arrived_to: u64,
    no_delay: bool,
    /// The flow has been told so much at that instant: what was acknowledged, what was not sent, and the window's
    /// reductions.
    told: (Instant, u64, u64, u64),
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
            no_delay: false,
            told: (Instant::NEVER, 0, 0, 0),
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

    /// Turns the packets that may leave into segments; a segment keeps its bounds when sent again.
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
        while self.packets.front().is_some_and(|(end, _)| *end <= self.acked_to) {
            self.packets.pop_front();
            self.delivered -= 1;
        }
        self.form_segments(now);
    }

    /// Nothing that was written waits for its acknowledgement.
    pub(super) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Bytes of the stream that have not been sent yet.
    fn unsent(&self) -> u64 {
        let sent = self.segments.len().saturating_sub(self.tx.unsent() as usize);
        let sent_to = sent.checked_sub(1).map_or(self.acked_to, |last| self.segments[last]);
        self.written - sent_to
    }

    /// How far it is; `None` if the flow knows.
    pub(super) fn take_progress(&mut self, now: Instant) -> Option<TcpProgress> {
        let reductions = self.tx.counters().reductions();
        let unsent = self.unsent();
        let news = (now, self.acked_to, unsent, reductions);
        if self.told == news {
            return None;
        }
        self.told = news;
        Some(TcpProgress {
            acked: TcpProgress::on_the_wire(
                Bytes::new(self.acked_to),
                Bytes::new(payload(self.segment_size).into()),
                Bytes::new(self.segment_size.into()),
            ),
            unsent: Bytes::new(unsent),
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
            // A segment that has not arrived is not acknowledged, so the queue still holds it.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Direction;
    use fairpace_units::Duration;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    enum Message {
        Data(Packet, u32),
        Ack(TcpAck),
    }

    /// Writes packets of those sizes as there is room, over 50 ms each way; the segments of those places in the order of
    /// leaving are lost. Returns the delivered packets, in order, and the sizes of the segments.
    fn carry(sizes: &[u32], segment_size: u32, lost: &BTreeSet<usize>) -> (TcpHalf, Vec<Written>, Vec<u32>) {
        let config = config::TcpHalf { segment_size: Some(Bytes::new(segment_size.into())), ..Default::default() };
        let mut half = TcpHalf::new(&config, 1_000, RandomStream::named(1, "test"));
        let (mut wire, mut delivered, mut segments) = (BTreeMap::new(), Vec::new(), Vec::new());
        let (mut now, mut written) = (Instant::ZERO, 0);
        while written < sizes.len() || !half.is_empty() {
            loop {
                if let Some(out) = half.poll_transmit(now) {
                    let Body::TcpData { seq, .. } = out.body else { panic!("a segment") };
                    let (size, class, ecn) = (out.size, out.class, out.ecn);
                    let direction = Direction::Forward;
                    let packet = Packet {
                        sent_at: now,
                        body: out.body,
                        flow: 0,
                        size,
                        direction,
                        class,
                        ecn,
                        quick_start: None,
                    };
                    if !lost.contains(&segments.len()) {
                        wire.insert((now + Duration::from_millis(50), segments.len()), Message::Data(packet, seq));
                    }
                    segments.push(size);
                } else if written < sizes.len() && half.has_room() {
                    let seq = written as u64;
                    half.write(now, Written { seq, frame: 0, born: now, size: sizes[written] }, Class::Normal);
                    written += 1;
                    if written == sizes.len() {
                        half.obey(now, TcpOrder::NoDelay(true));
                    }
                } else {
                    break;
                }
            }
            let next = wire.first_key_value().map_or(Instant::NEVER, |((at, _), _)| *at);
            now = next.min(half.poll_timeout());
            assert!(now < Instant::from_secs_f64(3_600.0), "it goes on");
            if next > now {
                continue; // the timeout runs in `poll_transmit`
            }
            match wire.pop_first() {
                Some(((_, order), Message::Data(packet, seq))) => {
                    half.on_segment(now, &packet, seq, false);
                    delivered.extend(std::iter::from_fn(|| half.take_delivered()));
                    if let Some(ack) = half.poll_ack(now) {
                        wire.insert((now + Duration::from_millis(50), order), Message::Ack(ack));
                    }
                }
                Some((_, Message::Ack(ack))) => half.on_ack(now, &ack),
                None => {}
            }
        }
        (half, delivered, segments)
    }

    /// 64 B each in segments of 552 B: the first leaves alone, the window of two has room for one more segment, and each
    /// ACK lets full ones out. The 30th is the last: 1 + 3 * 8 + 5.
    #[test]
    fn small_packets_fill_segments_but_for_the_first_and_the_last() {
        let (_, delivered, segments) = carry(&[104; 30], 552, &BTreeSet::new());
        assert_eq!(delivered.len(), 30);
        assert_eq!(segments, [104, 552, 552, 552, 40 + 5 * 64]);
    }

    proptest! {
        #[test]
        fn what_is_written_is_delivered_once_in_order_and_acknowledged_in_full(
            sizes in proptest::collection::vec(41_u32..2_000, 1..80),
            segment_size in 41_u32..1_500,
            lost in proptest::collection::btree_set(0_usize..300, 0..30),
        ) {
            // A byte at a time takes a while.
            let sizes = if segment_size < 100 { &sizes[..sizes.len().min(4)] } else { &sizes[..] };
            let (mut half, delivered, segments) = carry(sizes, segment_size, &lost);
            let got: Vec<(u64, u32)> = delivered.iter().map(|w| (w.seq, w.size)).collect();
            let written: Vec<(u64, u32)> = (0..).zip(sizes.iter().copied()).collect();
            prop_assert_eq!(got, written);
            let all: u64 = sizes.iter().map(|size| u64::from(payload(*size))).sum();
            let wire = all * u64::from(segment_size) / u64::from(payload(segment_size));
            let progress = half.take_progress(Instant::from_secs_f64(3_600.0));
            prop_assert_eq!(progress.map(|p| p.acked), Some(Bytes::new(wire)));
            prop_assert!(segments.iter().all(|size| (41..=segment_size).contains(size)), "{:?}", segments);
        }
    }
}
