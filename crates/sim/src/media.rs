//! A rate-controlled flow in the simulator: one driver loop for paced and windowed schemes.
//!
//! Sender: source → send buffer → [`control::Flow`](fairpace_control::Flow). Receiver: `receiver.rs`. A flow that probes
//! with TCP: `tcp_half.rs`. The same loop as on real sockets; here a packet is only its number and size.

mod liar;
mod produce;
mod receiver;
mod send_buffer;
mod source;
pub(crate) mod tcp_half;

use fairpace_control::feedback::{Form, Message};
use fairpace_control::{Arrival, Controller, Flow, FlowParams, ParamError, Permit, StopReason, Transmit};
use fairpace_path::Count;
use fairpace_units::{Bytes, Class, Duration, Ecn, Instant, Kind, QsResponse, RandomStream, Via};

use crate::config::{ControllerSpec, DeJitter, DelayBaseline, MediaConfig};
use crate::packet::{Body, Outgoing, Packet, QuickStart};
use crate::report::{FrameRecord, MediaReport, PacketRecord};
use crate::tcp::{TcpAck, TcpSender};
use receiver::{Batch, Header, Receiver};
use send_buffer::{NO_FRAME, Ready, SendBuffer};
use source::SourceState;
use tcp_half::{TcpHalf, Written};

/// First wait for the answer to a challenge; doubles each time up to [`CHALLENGE_MAX`].
const CHALLENGE_WAIT: Duration = Duration::from_secs(1);
const CHALLENGE_MAX: Duration = Duration::from_secs(16);

/// So much unproven feedback in a row ends a flow, as on the wire (`docs/rtp/safety.md`).
const LIES: u32 = 3;

/// A packet of data that the receiver's application has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delivery {
    /// Its size as a datagram.
    pub(crate) size: u32,
    /// When the source produced it.
    pub(crate) born: Instant,
    /// Whether that is too long ago.
    pub(crate) late: bool,
}

/// The controller that a media flow is to have.
pub(crate) fn controller(config: &MediaConfig) -> Result<Box<dyn Controller>, ParamError> {
    match &config.controller {
        ControllerSpec::Named { scheme, settings, env } => fairpace_control::build(scheme, settings, env),
        ControllerSpec::Custom(make) => Ok(make()),
    }
}

/// Both ends of a media flow.
pub(crate) struct MediaEndpoint {
    pub(crate) flow: Flow,
    initial_rtt: Option<Duration>,
    challenge: bool,
    challenge_at: Instant,
    challenge_wait: Duration,
    asked: bool,
    source: SourceState,
    buffer: SendBuffer,
    packet_size: u32,
    ack_size: u32,
    /// When the flow wants to be asked again.
    flow_at: Instant,
    quiet: bool,
    frames: u64,
    frames_dropped: u64,
    /// Of the source; and of that, what the send buffer had no room for.
    pub(crate) produced: Count,
    pub(crate) overflowed: Count,
    frame_records: Vec<FrameRecord>,
    record_frames: bool,
    packet_records: Vec<PacketRecord>,
    record_packets: Option<Duration>,
    /// Until when data is produced that is recorded.
    recorded_until: Instant,
    playout: Option<Playout>,
    check_nonces: bool,
    feedback_unproven: u64,
    /// Unproven feedback in a row, and whether it was too much.
    lies: u32,
    lied: bool,
    /// How often the sender reports, for the receiver to answer; `None`: never.
    report_interval: Option<Duration>,
    next_report: Instant,
    tcp: Option<Box<TcpHalf>>,
    receiver: Receiver,
}

impl MediaEndpoint {
    pub(crate) fn new(
        config: &MediaConfig,
        packet_size: Bytes,
        ack_size: Bytes,
        seed: u64,
        tcp_jitter: RandomStream,
        trace: bool,
    ) -> Result<Self, ParamError> {
        let controller = controller(config)?;
        let params = FlowParams {
            trace: trace || config.flow.trace,
            // The sender knows how often feedback was agreed to come.
            max_ack_delay: config.feedback.unwrap_or(Duration::ZERO),
            ..config.flow.clone()
        };
        let size = packet_size.get() as u32;
        let receiver = Receiver::new(config, &*controller, seed);
        let only_reports = receiver.form() == Form::Reports;
        Ok(MediaEndpoint {
            report_interval: receiver.report_interval.filter(|_| only_reports),
            next_report: Instant::NEVER,
            tcp: config.tcp.as_ref().map(|tcp| Box::new(TcpHalf::new(tcp, size, tcp_jitter))),
            receiver,
            flow: Flow::new(controller, params),
            initial_rtt: config.initial_rtt,
            challenge: config.challenge,
            challenge_at: Instant::NEVER,
            challenge_wait: CHALLENGE_WAIT,
            asked: false,
            source: SourceState::new(&config.source, size, seed),
            buffer: SendBuffer::new(config.send_buffer),
            packet_size: size,
            ack_size: ack_size.get() as u32,
            flow_at: Instant::NEVER,
            quiet: true,
            frames: 0,
            frames_dropped: 0,
            produced: Count::default(),
            overflowed: Count::default(),
            frame_records: Vec::new(),
            record_frames: config.record_frames,
            packet_records: Vec::new(),
            record_packets: config.record_packets,
            recorded_until: Instant::ZERO,
            playout: config.de_jitter.map(|buffer| Playout { buffer, baseline: None }),
            check_nonces: config.check_nonces,
            feedback_unproven: 0,
            lies: 0,
            lied: false,
        })
    }

    // The sender's side: what happened.

    pub(crate) fn start(&mut self, now: Instant) {
        match self.initial_rtt {
            None if self.challenge => self.challenge_at = now,
            rtt => self.begin(now, rtt),
        }
    }

    /// Nothing new is sent from now on. Data that the flow's TCP has sent is still delivered, unless the flow was
    /// ended.
    pub(crate) fn stop(&mut self) {
        let ended = self.stopped().is_some();
        if let Some(tcp) = &mut self.tcp {
            tcp.stop();
            if ended {
                tcp.close();
            }
        }
        self.quiet = true;
        self.challenge_at = Instant::NEVER;
        self.flow_at = Instant::NEVER;
    }

    /// The answer says from when the question was, and the window that the base station allows, if it does.
    pub(crate) fn on_challenge_answered(&mut self, now: Instant, asked_at: Instant, rwnd: Option<u32>) {
        if self.asked {
            self.asked = false;
            self.challenge_at = Instant::NEVER;
            self.flow.set_window_limit(now, rwnd);
            self.begin(now, Some(now.since(asked_at)));
        }
    }

    /// Feedback has arrived; the flow counts what it makes of it.
    pub(crate) fn on_feedback(&mut self, now: Instant, message: Message<'_>, proven: bool) {
        if self.believes(proven) {
            let _ = self.flow.on_feedback(now, message);
        }
    }

    /// Feedback that left at `made_at` has arrived: `len` entries of the receiver's log from number `start` on.
    pub(crate) fn on_batch(&mut self, now: Instant, made_at: Instant, (start, len): (u64, u32), proven: bool) {
        if !self.believes(proven) {
            return;
        }
        let Batch { untold, acks } = self.receiver.logged(start, len);
        if !untold.is_empty() {
            let _ = self.flow.on_feedback(now, Message::Untold(untold));
        }
        if !acks.is_empty() {
            let made_at = Some(made_at.since(Instant::ZERO));
            let _ = self.flow.on_feedback(now, Message::Acks { acks, made_at });
        }
    }

    fn believes(&mut self, proven: bool) -> bool {
        if proven || !self.check_nonces {
            self.lies = 0;
            return true;
        }
        self.feedback_unproven += 1;
        self.lies += 1;
        if self.lies == LIES {
            self.lied = true;
            self.stop();
        }
        false
    }

    /// The receiver's RTCP report of that number has arrived.
    pub(crate) fn on_report(&mut self, now: Instant, number: u64) {
        if let Some(report) = self.receiver.told(now, number) {
            let _ = self.flow.on_feedback(now, Message::Report(&report));
        }
    }

    /// An ACK of its TCP has arrived: so many segments more are acknowledged.
    pub(crate) fn on_tcp_ack(&mut self, now: Instant, ack: &TcpAck) -> u32 {
        let Some(tcp) = &mut self.tcp else { return 0 };
        let before = tcp.tx.acknowledged();
        tcp.on_ack(now, ack);
        tcp.tx.acknowledged() - before
    }

    /// The receiver's answer to a Quick-Start request has arrived; after the feedback of the same packet.
    pub(crate) fn on_quick_start_response(&mut self, now: Instant, response: &QsResponse) {
        self.flow.on_quick_start_response(now, response);
    }

    // The sender's side: what to do.

    /// The next packet to send now; ask until there is none.
    pub(crate) fn poll_transmit(&mut self, now: Instant) -> Option<Outgoing> {
        if now >= self.challenge_at {
            self.asked = true;
            self.challenge_at = now + self.challenge_wait;
            self.challenge_wait = (self.challenge_wait * 2).min(CHALLENGE_MAX);
            let body = Body::Challenge { asked_at: now, rwnd: None };
            return Some(Outgoing::feedback(body, self.ack_size, Class::Normal));
        }
        if let Some(segment) = self.poll_tcp(now) {
            return Some(segment);
        }
        if self.quiet {
            return None;
        }
        if now >= self.next_report {
            self.next_report = now + self.report_interval.unwrap_or(Duration::MAX);
            return Some(Outgoing::feedback(Body::SenderReport, self.ack_size, Class::Normal));
        }
        self.produce(now);
        loop {
            // A packet for which TCP has no room must wait; TCP's ACKs will say for how long.
            let room = self.tcp.as_ref().is_none_or(|tcp| self.flow.via() == Via::Udp || tcp.has_room());
            let has_data = room && (self.source.is_greedy() || !self.buffer.is_empty());
            let answer = self.flow.poll(now, has_data);
            let out = match answer {
                Transmit::Send(permit) => self.send(now, permit),
                Transmit::WaitUntil(at) | Transmit::WaitForData(at) | Transmit::WaitForFeedback(at) => {
                    self.flow_at = at;
                    None
                }
                Transmit::Stopped(_) => {
                    self.stop();
                    return None;
                }
            };
            // A timer of the flow's, or the end of a data unit, may have changed what TCP is to do.
            let out = out.or_else(|| self.poll_tcp(now));
            match answer {
                Transmit::Send(_) if out.is_none() => {}
                Transmit::WaitForFeedback(_) if out.is_none() && self.tell_drained(now) => {}
                _ => return out,
            }
        }
    }

    /// The packet of that permit leaves: it is given back, or to TCP.
    fn send(&mut self, now: Instant, permit: Permit) -> Option<Outgoing> {
        let fresh = Ready { frame: NO_FRAME, size: self.packet_size, born: now, last: true };
        let Ready { frame, size, born, last } = match permit.kind {
            Kind::Dummy => fresh,
            Kind::Data => {
                self.produce_adu(now);
                self.buffer.pop().unwrap_or(fresh)
            }
        };
        self.flow.on_sent(now, permit, Bytes::new(u64::from(size)));
        if let Some(record) = self.frame_records.get_mut(frame as usize) {
            record.sent = Some(now);
            record.over_tcp += u32::from(permit.via == Via::Tcp);
        }
        if permit.kind == Kind::Data && born < self.recorded_until {
            self.packet_records.push(PacketRecord { seq: permit.seq, born, sent: now, received: None });
        }
        let Some(tcp) = &mut self.tcp else { return Some(self.datagram(permit, frame, size, born)) };
        let datagram = match permit.via {
            Via::Udp => Some(self.datagram(permit, frame, size, born)),
            Via::Tcp => {
                tcp.write(now, Written { seq: permit.seq, frame, born, size }, permit.class);
                None
            }
        };
        if last {
            self.flow.on_adu_end(now);
        }
        datagram
    }

    fn datagram(&mut self, permit: Permit, frame: u32, size: u32, born: Instant) -> Outgoing {
        let note = self.receiver.note(permit.kind, permit.seq, self.flow.srtt());
        let body = Body::Media { kind: permit.kind, frame, note, seq: permit.seq, born };
        let quick_start = permit.quick_start.map(QuickStart::Option);
        let ecn = if self.receiver.tells_of_marks() { permit.ecn } else { Ecn::NotEct };
        Outgoing { body, size, class: permit.class, ecn, quick_start }
    }

    /// Tells the flow how far its TCP is, and lets that send.
    fn poll_tcp(&mut self, now: Instant) -> Option<Outgoing> {
        let tcp = self.tcp.as_mut()?;
        if !self.quiet {
            if let Some(progress) = tcp.take_progress(now) {
                self.flow.on_tcp(now, &progress);
            }
            while let Some(order) = self.flow.take_tcp_order() {
                tcp.obey(now, order);
            }
        }
        tcp.poll_transmit(now)
    }

    /// If nothing more is sent before TCP has delivered all, and it has: true if datagrams go on.
    fn tell_drained(&mut self, now: Instant) -> bool {
        let drained = self.flow.via() == Via::Tcp && self.tcp.as_ref().is_some_and(|tcp| tcp.is_empty());
        if drained {
            self.flow.on_tcp_drained(now);
        }
        drained && self.flow.via() == Via::Udp
    }

    /// When the sender wants to be asked again.
    pub(crate) fn poll_timer(&self) -> Instant {
        let own =
            if self.quiet { self.challenge_at } else { self.flow_at.min(self.source.next()).min(self.next_report) };
        own.min(self.tcp.as_ref().map_or(Instant::NEVER, |tcp| tcp.poll_jitter()))
    }

    /// The same for the timeout of its TCP, which moves with nearly every ACK.
    pub(crate) fn poll_slow_timer(&self) -> Instant {
        self.tcp.as_ref().map_or(Instant::NEVER, |tcp| tcp.poll_timeout())
    }

    pub(crate) fn stopped(&self) -> Option<StopReason> {
        if self.lied { Some(StopReason::PeerLied) } else { self.flow.stopped() }
    }

    /// The sender of its TCP half, if it has one.
    pub(crate) fn tcp(&self) -> Option<&TcpSender> {
        self.tcp.as_ref().map(|tcp| &tcp.tx)
    }

    /// Its TCP half, if it has one, sends nothing any more.
    pub(crate) fn tcp_is_over(&self) -> bool {
        self.tcp.as_ref().is_none_or(|tcp| tcp.is_over())
    }

    pub(crate) fn waiting(&self) -> Bytes {
        Bytes::new(self.buffer.bytes)
    }

    // The receiver's side.

    /// A data packet has arrived that its source produced at `born`: whether it comes too late. A late packet is
    /// discarded behind the transport, which gives feedback about it all the same.
    pub(crate) fn on_data(&mut self, now: Instant, seq: u64, frame: u32, born: Instant) -> bool {
        if let Ok(place) = self.packet_records.binary_search_by_key(&seq, |record| record.seq) {
            self.packet_records[place].received = Some(now);
        }
        let late = self.playout.as_mut().is_some_and(|playout| playout.is_late(now.since(born)));
        if let Some(record) = self.frame_records.get_mut(frame as usize)
            && !late
        {
            record.received += 1;
            if record.received == record.packets {
                record.complete = Some(now);
            }
        }
        late
    }

    /// A packet has arrived: for the feedback.
    pub(crate) fn on_packet(&mut self, now: Instant, packet: &Packet, kind: Kind, seq: u64, note: u32) {
        let arrival = Arrival { kind, class: packet.class, seq, ecn: packet.ecn };
        let header = Header { sent_at: packet.sent_at, note };
        self.receiver.on_packet(now, &arrival, Bytes::new(u64::from(packet.size)), &header, Via::Udp);
        if let Some(QuickStart::Option(option)) = &packet.quick_start {
            self.receiver.on_quick_start(now, option);
        }
    }

    /// A segment of its TCP has arrived: what has come in order because of it. Then ask
    /// [`MediaEndpoint::take_delivered`] until there is nothing more.
    pub(crate) fn on_segment(&mut self, now: Instant, packet: &Packet, seq: u32, cwr: bool) -> Count {
        self.tcp.as_mut().map_or(Count::default(), |tcp| tcp.on_segment(now, packet, seq, cwr))
    }

    /// The next packet that TCP has delivered because of that segment.
    pub(crate) fn take_delivered(&mut self, now: Instant, segment: &Packet) -> Option<Delivery> {
        let Written { seq, frame, born, size } = self.tcp.as_mut()?.take_delivered()?;
        let late = self.on_data(now, seq, frame, born);
        let arrival = Arrival { kind: Kind::Data, class: segment.class, seq, ecn: segment.ecn };
        let header = Header { sent_at: segment.sent_at, note: 0 };
        self.receiver.on_packet(now, &arrival, Bytes::new(u64::from(size)), &header, Via::Tcp);
        Some(Delivery { size, born, late })
    }

    /// A report of the sender has arrived that left at `sent_at`.
    pub(crate) fn on_sender_report(&mut self, now: Instant, sent_at: Instant) {
        self.receiver.on_sender_report(now, sent_at);
    }

    /// The next feedback or report to send now; ask until there is none.
    pub(crate) fn poll_feedback(&mut self, now: Instant) -> Option<Outgoing> {
        if let Some(TcpAck { next, sack, ece }) = self.tcp.as_mut().and_then(|tcp| tcp.poll_ack(now)) {
            return Some(Outgoing::feedback(Body::TcpAck { next, sack, ece }, self.ack_size, Class::Normal));
        }
        self.receiver.poll(now, self.ack_size)
    }

    pub(crate) fn poll_feedback_timer(&self) -> Instant {
        self.receiver.next().min(self.tcp.as_ref().map_or(Instant::NEVER, |tcp| tcp.poll_ack_timer()))
    }

    /// The receiver has told of everything that came, but for RTCP reports.
    pub(crate) fn owes_nothing(&self) -> bool {
        self.receiver.next_feedback() == Instant::NEVER
    }

    /// How it stands. `last`: it is not asked again, and gives its records away.
    pub(crate) fn report(&mut self, last: bool) -> MediaReport {
        let status = self.flow.status();
        let mut report = MediaReport {
            counters: *self.flow.counters(),
            rate: status.rate,
            state: status.state,
            frames: self.frames,
            frames_dropped: self.frames_dropped,
            send_buffer: self.waiting(),
            feedback_expired: self.receiver.expired,
            feedback_unproven: self.feedback_unproven,
            quick_start: self.flow.quick_start().copied(),
            frame_records: Vec::new(),
            packet_records: Vec::new(),
        };
        if last {
            report.frame_records = std::mem::take(&mut self.frame_records);
            report.packet_records = std::mem::take(&mut self.packet_records);
            report.packet_records.shrink_to_fit();
        } else {
            report.frame_records.clone_from(&self.frame_records);
            report.packet_records.clone_from(&self.packet_records);
        }
        report
    }

    fn begin(&mut self, now: Instant, rtt: Option<Duration>) {
        self.quiet = false;
        // Half a period before the receiver's, so that those have something to answer.
        self.next_report = self.report_interval.map_or(Instant::NEVER, |every| now + every / 2);
        self.recorded_until = self.record_packets.map_or(Instant::ZERO, |time| now + time);
        self.flow.start(now, rtt);
        self.source.start(now);
    }
}

/// The de-jitter buffer at work. Only the verdict is modelled: a packet in time is played out at its time.
struct Playout {
    buffer: DeJitter,
    /// The end-to-end delay that lateness is measured from; `None` before the first packet.
    baseline: Option<Duration>,
}

impl Playout {
    fn is_late(&mut self, e2ed: Duration) -> bool {
        let baseline = match (self.baseline, self.buffer.above) {
            (None, _) => e2ed,
            (Some(first), DelayBaseline::First) => first,
            (Some(least), DelayBaseline::Least) => least.min(e2ed),
        };
        self.baseline = Some(baseline);
        e2ed.saturating_sub(baseline) > self.buffer.tolerable
    }
}
