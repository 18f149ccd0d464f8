//! A rate-controlled flow in the simulator: one driver loop for paced and windowed schemes.
//!
//! Sender: source → send buffer → [`control::Flow`](fairpace_control::Flow). Receiver: `receiver.rs`.
//! The same loop as on real sockets; here a packet is only its number and size.

mod liar;
mod receiver;

use std::collections::VecDeque;

use fairpace_control::{
    Ack, AnyController, Arrival, Flow, FlowParams, ParamError, RateHeader, RateReport, ReceiverReport, SackVector,
    StopReason, Transmit,
};
use fairpace_path::{Capacity, Count};
use fairpace_units::{Bytes, Class, Duration, Ecn, Instant, Kind, QsResponse};

use crate::config::{ControllerSpec, DeJitter, DelayBaseline, EncodedSize, FrameSource, MediaConfig, Source};
use crate::packet::{Body, Packet, QuickStart};
use crate::report::{FrameRecord, MediaReport, PacketRecord, count};
use receiver::Receiver;

/// First wait for the answer to a challenge; doubles each time up to [`CHALLENGE_MAX`].
const CHALLENGE_WAIT: Duration = Duration::from_secs(1);
const CHALLENGE_MAX: Duration = Duration::from_secs(16);

/// So much unproven feedback in a row ends a flow, as on the wire (`docs/rtp/safety.md`).
const LIES: u32 = 3;

/// A packet to send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outgoing {
    pub(crate) body: Body,
    pub(crate) size: u32,
    pub(crate) class: Class,
    pub(crate) ecn: Ecn,
    pub(crate) quick_start: Option<QuickStart>,
}

impl Outgoing {
    /// Feedback is not marked: nobody would slow down because of it.
    fn feedback(body: Body, size: u32, class: Class) -> Self {
        Outgoing { body, size, class, ecn: Ecn::NotEct, quick_start: None }
    }
}

/// The controller that a media flow is to have.
pub(crate) fn controller(config: &MediaConfig) -> Result<AnyController, ParamError> {
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
    receiver: Receiver,
}

impl MediaEndpoint {
    pub(crate) fn new(
        config: &MediaConfig,
        packet_size: Bytes,
        ack_size: Bytes,
        seed: u64,
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
        Ok(MediaEndpoint {
            receiver: Receiver::new(config, &controller, seed),
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

    /// Nothing new is sent from now on.
    pub(crate) fn stop(&mut self) {
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

    pub(crate) fn on_ack(&mut self, now: Instant, ack: Ack, proven: bool) {
        if self.believes(proven) {
            self.flow.on_acks(now, &[ack]);
        }
    }

    pub(crate) fn on_sack_vector(&mut self, now: Instant, sack: &SackVector, proven: bool) {
        if self.believes(proven) {
            self.flow.on_sack_vector(now, sack);
        }
    }

    /// Feedback `start..start + len` of the receiver's log has arrived.
    pub(crate) fn on_feedback(&mut self, now: Instant, start: u64, len: u32, proven: bool) {
        if !self.believes(proven) {
            return;
        }
        for acks in self.receiver.logged(start, len) {
            if !acks.is_empty() {
                self.flow.on_acks(now, acks);
            }
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

    pub(crate) fn on_report(&mut self, now: Instant, report: &ReceiverReport) {
        self.flow.on_receiver_report(now, report);
    }

    /// The receiver's answer to a Quick-Start request has arrived; after the feedback of the same packet.
    pub(crate) fn on_quick_start_response(&mut self, now: Instant, response: &QsResponse) {
        self.flow.on_quick_start_response(now, response);
    }

    pub(crate) fn on_rate_report(&mut self, now: Instant, report: &RateReport) {
        self.flow.on_rate_report(now, report);
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
        if self.quiet {
            return None;
        }
        self.produce(now);
        let has_data = self.source.is_greedy() || !self.buffer.is_empty();
        match self.flow.poll(now, has_data) {
            Transmit::Send(permit) => {
                let fresh = Ready { frame: NO_FRAME, size: self.packet_size, born: now };
                let Ready { frame, size, born } = match permit.kind {
                    Kind::Dummy => fresh,
                    Kind::Data => self.buffer.pop().unwrap_or(fresh),
                };
                self.flow.on_sent(now, permit, Bytes::new(u64::from(size)));
                if let Some(record) = self.frame_records.get_mut(frame as usize) {
                    record.sent = Some(now);
                }
                if permit.kind == Kind::Data && born < self.recorded_until {
                    self.packet_records.push(PacketRecord { seq: permit.seq, born, sent: now, received: None });
                }
                let rtt_us = self.flow.srtt().map_or(0, micros);
                let body = Body::Media { kind: permit.kind, frame, rtt_us, seq: permit.seq, born };
                let quick_start = permit.quick_start.map(QuickStart::Option);
                return Some(Outgoing { body, size, class: permit.class, ecn: permit.ecn, quick_start });
            }
            Transmit::WaitUntil(at) | Transmit::WaitForData(at) | Transmit::WaitForFeedback(at) => self.flow_at = at,
            Transmit::Stopped(_) => self.stop(),
        }
        None
    }

    /// When the sender wants to be asked again.
    pub(crate) fn poll_timer(&self) -> Instant {
        if self.quiet { self.challenge_at } else { self.flow_at.min(self.source.next()) }
    }

    pub(crate) fn stopped(&self) -> Option<StopReason> {
        if self.lied { Some(StopReason::PeerLied) } else { self.flow.stopped() }
    }

    pub(crate) fn waiting(&self) -> Bytes {
        Bytes::new(self.buffer.bytes)
    }

    // The receiver's side.

    /// A data packet has arrived that its source produced at `born`: whether it comes too late. What is late
    /// is discarded behind the transport, which gives feedback about it all the same.
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
    pub(crate) fn on_packet(&mut self, now: Instant, packet: &Packet, kind: Kind, seq: u64, rtt_us: u32) {
        let arrival = Arrival { kind, class: packet.class, seq, ecn: packet.ecn };
        let rtt = (rtt_us > 0).then(|| Duration::from_micros(rtt_us.into()));
        let header = RateHeader { sent_at: packet.sent_at, rtt };
        self.receiver.on_packet(now, &arrival, Bytes::new(u64::from(packet.size)), &header);
        if let Some(QuickStart::Option(option)) = &packet.quick_start {
            self.receiver.on_quick_start(now, option);
        }
    }

    /// The next feedback or report to send now; ask until there is none.
    pub(crate) fn poll_feedback(&mut self, now: Instant) -> Option<Outgoing> {
        self.receiver.poll(now, self.ack_size)
    }

    pub(crate) fn poll_feedback_timer(&self) -> Instant {
        self.receiver.next()
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
        self.recorded_until = self.record_packets.map_or(Instant::ZERO, |time| now + time);
        self.flow.start(now, rtt);
        self.source.start(now);
    }

    /// Everything the source has produced by now goes into the send buffer.
    fn produce(&mut self, now: Instant) {
        while self.source.next() <= now {
            let at = self.source.next();
            match &mut self.source {
                SourceState::Greedy => return,
                SourceState::Constant { spacing_ns, began, sent, next } => {
                    *sent += 1;
                    *next = Instant::from_nanos(began.as_nanos() + (*sent as f64 * *spacing_ns) as u64);
                    let size = self.packet_size;
                    self.offer(Pending { frame: NO_FRAME, full: 1, full_size: size, last_size: 0, born: at });
                }
                SourceState::Frames { sizes, index, interval, header, next } => {
                    let size = sizes[*index % sizes.len()];
                    *index += 1;
                    *next = at + *interval;
                    let (header, frame) = (*header, EncodedSize { size, key: false, interval: *interval });
                    self.push_frame(at, frame, header);
                }
                SourceState::Adaptive { encoder, header, next } => {
                    let frame = encoder.next_frame(at, self.flow.target_rate());
                    *next = at + frame.interval.max(Duration::from_nanos(1));
                    let header = *header;
                    self.push_frame(at, frame, header);
                }
            }
        }
    }

    fn push_frame(&mut self, at: Instant, frame: EncodedSize, header: u32) {
        let payload = self.packet_size.saturating_sub(header).max(1);
        let size = frame.size.get().min(1 << 30) as u32;
        if size == 0 {
            return; // skipped by the encoder
        }
        let rest = size % payload;
        let last_size = if rest == 0 { 0 } else { rest + header };
        let index = if self.record_frames { self.frame_records.len() as u32 } else { NO_FRAME };
        let full_size = payload + header;
        let kept = self.offer(Pending { frame: index, full: size / payload, full_size, last_size, born: at });
        if self.record_frames {
            self.frame_records.push(FrameRecord {
                captured: at,
                size: frame.size,
                key: frame.key,
                packets: if kept { size.div_ceil(payload) } else { 0 },
                received: 0,
                sent: None,
                complete: None,
            });
        }
    }

    /// A frame for the send buffer: whether there was room.
    fn offer(&mut self, frame: Pending) -> bool {
        self.frames += 1;
        frame.add_to(&mut self.produced);
        let kept = self.buffer.push(frame);
        if !kept {
            self.frames_dropped += 1;
            frame.add_to(&mut self.overflowed);
        }
        kept
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

const NO_FRAME: u32 = u32::MAX;

/// As packets carry times; 71 minutes at most.
fn micros(d: Duration) -> u32 {
    u32::try_from(d.as_micros()).unwrap_or(u32::MAX)
}

enum SourceState {
    Greedy,
    Constant { spacing_ns: f64, began: Instant, sent: u64, next: Instant },
    Frames { sizes: std::sync::Arc<[Bytes]>, index: usize, interval: Duration, header: u32, next: Instant },
    Adaptive { encoder: Box<dyn FrameSource>, header: u32, next: Instant },
}

impl SourceState {
    fn new(source: &Source, packet_size: u32, seed: u64) -> Self {
        let next = Instant::NEVER;
        match source {
            Source::Greedy => SourceState::Greedy,
            Source::Constant(rate) => {
                let spacing_ns = f64::from(packet_size) * 8e9 / rate.as_bps();
                SourceState::Constant { spacing_ns, began: Instant::ZERO, sent: 0, next }
            }
            Source::Frames { sizes, interval, header } => SourceState::Frames {
                sizes: sizes.clone(),
                index: 0,
                interval: *interval,
                header: header.get() as u32,
                next,
            },
            Source::Adaptive { build, header } => {
                SourceState::Adaptive { encoder: build(seed), header: header.get() as u32, next }
            }
        }
    }

    fn is_greedy(&self) -> bool {
        matches!(self, SourceState::Greedy)
    }

    fn start(&mut self, now: Instant) {
        match self {
            SourceState::Greedy => {}
            SourceState::Constant { began, next, .. } => (*began, *next) = (now, now),
            SourceState::Frames { next, .. } | SourceState::Adaptive { next, .. } => *next = now,
        }
    }

    fn next(&self) -> Instant {
        match self {
            SourceState::Greedy => Instant::NEVER,
            SourceState::Constant { next, .. }
            | SourceState::Frames { next, .. }
            | SourceState::Adaptive { next, .. } => *next,
        }
    }
}

/// One frame, cut into packets: `full` of `full_size`, then one of `last_size` if that is not zero.
#[derive(Clone, Copy)]
struct Pending {
    frame: u32,
    full: u32,
    full_size: u32,
    last_size: u32,
    born: Instant,
}

impl Pending {
    fn packets(&self) -> u64 {
        u64::from(self.full) + u64::from(self.last_size > 0)
    }

    fn bytes(&self) -> u64 {
        u64::from(self.full) * u64::from(self.full_size) + u64::from(self.last_size)
    }

    fn add_to(&self, counter: &mut Count) {
        count(counter, u64::from(self.full), self.full_size);
        count(counter, u64::from(self.last_size > 0), self.last_size);
    }
}

/// A packet that may leave: its frame, its size on the wire, when its source produced it.
struct Ready {
    frame: u32,
    size: u32,
    born: Instant,
}

/// Data that waits for the controller, in order; what does not fit is refused whole.
struct SendBuffer {
    frames: VecDeque<Pending>,
    packets: u64,
    bytes: u64,
    limit: Capacity,
}

impl SendBuffer {
    fn new(limit: Capacity) -> Self {
        SendBuffer { frames: VecDeque::new(), packets: 0, bytes: 0, limit }
    }

    fn push(&mut self, frame: Pending) -> bool {
        let (packets, bytes) = (self.packets + frame.packets(), self.bytes + frame.bytes());
        let fits = match self.limit {
            Capacity::Packets(most) => packets <= most.get(),
            Capacity::Bytes(most) => bytes <= most.get(),
            Capacity::Unlimited => true,
        };
        if fits {
            (self.packets, self.bytes) = (packets, bytes);
            self.frames.push_back(frame);
        }
        fits
    }

    /// The next packet.
    fn pop(&mut self) -> Option<Ready> {
        let front = self.frames.front_mut()?;
        let (frame, born) = (front.frame, front.born);
        let size = if front.full > 0 {
            front.full -= 1;
            front.full_size
        } else {
            std::mem::take(&mut front.last_size)
        };
        if front.full == 0 && front.last_size == 0 {
            self.frames.pop_front();
        }
        self.packets -= 1;
        self.bytes -= u64::from(size);
        Some(Ready { frame, size, born })
    }

    fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }
}
