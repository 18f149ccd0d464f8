//! Our own ends: the sessions of the wire with a source of frames and a play-out.

use crate::ledger::{Captures, Shown, Taken};
use crate::path::{About, End, PathError, Wire};
use fairpace_control::{BreakerParams, Env, Flow, FlowParams, Safety, build};
use fairpace_media::{
    EncoderModel, EncoderModelParams, FrameSource, Judged, LostFrame, Playout, PlayoutParams, ReceivedFrame, Verdict,
    timestamp_90k,
};
use fairpace_rtp::frames::FrameAssembler;
use fairpace_rtp::packet::Packet;
use fairpace_rtp::{
    Codec, Frame, Out, ReceiverConfig, ReceiverSession, Secret, SenderConfig, SenderEvent, SenderSession, StopReason,
    What,
};
use fairpace_units::{Bytes, Duration, Instant, RandomStream, Rate};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};

/// IPv4 and UDP.
const IP_OVERHEAD: Bytes = Bytes::new(28);
/// How long a packet waits for the rest of its frame, as in `fairpace receive`.
const FRAME_HOLD: Duration = Duration::from_secs(2);

/// How our sender is set up: as `fairpace send` is.
#[derive(Clone, Debug)]
pub struct SenderSetup {
    /// The rate controller, by its name in the registry.
    pub scheme: String,
    /// Its parameters, as a scenario gives them.
    pub settings: BTreeMap<String, String>,
    /// Highest rate, all packets together.
    pub max_rate: Rate,
    /// Lowest rate.
    pub min_rate: Rate,
    /// The circuit breaker; `None` switches it off.
    pub breaker: Option<BreakerParams>,
    /// The session.
    pub session: SenderConfig,
    /// The encoder.
    pub encoder: EncoderModelParams,
}

impl SenderSetup {
    /// That controller, all else as `fairpace send` has it.
    pub fn new(scheme: &str) -> SenderSetup {
        SenderSetup {
            scheme: scheme.to_owned(),
            settings: BTreeMap::new(),
            max_rate: Rate::mbps(10.0),
            min_rate: Rate::kbps(50.0),
            breaker: Some(BreakerParams::default()),
            session: SenderConfig { retransmission: true, fec: true, ..SenderConfig::default() },
            encoder: EncoderModelParams::default(),
        }
    }
}

/// The sender of the wire with an encoder model.
#[derive(Debug)]
pub struct OurSender {
    session: SenderSession,
    source: EncoderModel,
    told_rate: Option<Rate>,
    /// Every frame that the encoder gave, by the tick of its capture.
    captured: BTreeMap<u32, Taken>,
    began: Option<Instant>,
    stopped: Option<(Instant, StopReason)>,
    events: Vec<(Instant, SenderEvent)>,
    states: Vec<(Instant, &'static str, &'static str)>,
}

impl OurSender {
    /// # Errors
    /// [`PathError`]: a parameter of the controller or of the encoder.
    pub fn new(setup: SenderSetup, seed: u64) -> Result<OurSender, PathError> {
        let frame_interval = Some(setup.encoder.frame_interval);
        let session = SenderConfig { codec: Codec::Vp8, ip_overhead: IP_OVERHEAD, frame_interval, ..setup.session };
        let env = Env {
            packet_size: session.packet_size,
            min_rate: setup.min_rate,
            start_rate: None,
            max_rate: setup.max_rate,
            safety: Safety::Default,
        };
        let params = FlowParams { breaker: setup.breaker, ..FlowParams::new(&env) };
        let flow = Flow::new(build(&setup.scheme, &setup.settings, &env)?, params);
        let secret = Secret::from_seed(seed.wrapping_mul(2));
        Ok(OurSender {
            session: SenderSession::new(session, flow, secret),
            source: EncoderModel::new(setup.encoder, RandomStream::named(seed, "video.encoder"))?,
            told_rate: None,
            captured: BTreeMap::new(),
            began: None,
            stopped: None,
            events: Vec::new(),
            states: Vec::new(),
        })
    }

    /// The session, for its counters.
    pub fn session(&self) -> &SenderSession {
        &self.session
    }

    /// When and why the session ended, if it did.
    pub fn stopped(&self) -> Option<(Instant, StopReason)> {
        self.stopped
    }

    /// The session's events.
    pub fn events(&self) -> &[(Instant, SenderEvent)] {
        &self.events
    }

    /// The controller's states, each with when it was entered, and the reason then.
    pub fn states(&self) -> &[(Instant, &'static str, &'static str)] {
        &self.states
    }

    /// The source's pictures, from when the receiver had answered.
    pub(crate) fn captures(&self) -> Captures<'_> {
        Captures { began: self.began, interval: self.source.format().frame_interval, taken: &self.captured }
    }

    /// The tick of the capture of a frame with this timestamp on the wire.
    pub(crate) fn tick(&self, timestamp: u32) -> u32 {
        timestamp.wrapping_sub(self.session.rtp_timestamp(0))
    }

    fn frames(&mut self, now: Instant) {
        if self.began.is_none() || self.stopped.is_some() {
            return;
        }
        let rate = self.session.media_rate();
        if self.told_rate != Some(rate) {
            self.source.set_rate(rate);
            self.told_rate = Some(rate);
        }
        while self.source.next_frame_at() <= now && self.session.wants_frame() {
            let Ok(Some(f)) = self.source.next_frame(now) else { break };
            let taken = Taken { key: f.key, size: f.size(), step: self.source.size_step() };
            self.captured.insert(f.timestamp_90k, taken);
            self.session.push_frame(now, Frame { data: f.data, timestamp_90k: f.timestamp_90k, key: f.key });
        }
    }

    fn about(&self, what: What, bytes: &[u8]) -> About {
        let tick = || Packet::parse(bytes).map(|packet| self.tick(packet.timestamp));
        match what {
            What::Media => tick().map_or(About::Control, About::Media),
            What::Retransmission => tick().map_or(About::Control, About::Repair),
            What::Fec => About::Fec,
            What::Dummy => About::Dummy,
            _ => About::Control,
        }
    }
}

impl End<Vec<u8>> for OurSender {
    fn on_packet(&mut self, now: Instant, packet: &Wire<Vec<u8>>) {
        self.session.handle_datagram(now, &packet.body, packet.dscp, packet.ecn);
    }

    fn poll(&mut self, now: Instant, out: &mut Vec<Wire<Vec<u8>>>) -> Instant {
        loop {
            self.frames(now);
            let until = loop {
                match self.session.poll(now) {
                    Out::Datagram(d) => {
                        let (dscp, ecn, what, body) = (d.dscp, d.ecn, d.what, d.bytes.to_vec());
                        let size = Bytes::new(body.len() as u64) + IP_OVERHEAD;
                        let about = self.about(what, &body);
                        out.push(Wire { size, dscp, ecn, about, body });
                    }
                    Out::Wait(until) => break until,
                    Out::Stopped(reason) => {
                        self.stopped.get_or_insert((now, reason));
                        break Instant::NEVER;
                    }
                }
            };
            let status = self.session.flow().status();
            if self.states.last().is_none_or(|(_, state, _)| *state != status.state) {
                self.states.push((now, status.state, status.reason));
            }
            while let Some(event) = self.session.next_event() {
                match &event {
                    SenderEvent::PeerValidated { .. } => {
                        self.began.get_or_insert(now);
                    }
                    SenderEvent::KeyFrameRequest => self.source.request_key_frame(),
                    _ => {}
                }
                self.events.push((now, event));
            }
            let frame = if self.began.is_some() && self.stopped.is_none() && self.session.wants_frame() {
                self.source.next_frame_at()
            } else {
                Instant::NEVER
            };
            let next = until.min(frame);
            if next > now {
                return next;
            }
        }
    }
}

/// The receiver of the wire with its play-out.
#[derive(Debug)]
pub struct OurReceiver {
    session: ReceiverSession,
    assembler: FrameAssembler,
    playout: Playout,
    judged: Vec<Judged>,
    /// The timestamp on the wire of the play-out's first frame.
    first_timestamp: Option<u32>,
    peer: SocketAddr,
}

impl OurReceiver {
    /// A receiver that waits for a sender.
    pub fn new(config: ReceiverConfig, playout: PlayoutParams, seed: u64) -> OurReceiver {
        let config = ReceiverConfig { ip_overhead: IP_OVERHEAD, ..config };
        let session = ReceiverSession::new(config, Secret::from_seed(seed.wrapping_mul(2) + 1));
        OurReceiver {
            session,
            assembler: FrameAssembler::new(Codec::Vp8, FRAME_HOLD),
            playout: Playout::new(playout),
            judged: Vec::new(),
            first_timestamp: None,
            peer: SocketAddr::from((Ipv4Addr::new(192, 0, 2, 1), 5_004)),
        }
    }

    /// The session, for its counters.
    pub fn session(&self) -> &ReceiverSession {
        &self.session
    }

    /// The play-out, for its totals.
    pub fn playout(&self) -> &Playout {
        &self.playout
    }

    /// The frames as the play-out judged them.
    pub(crate) fn shown(&self, sender: &OurSender) -> Vec<Shown> {
        let first = self.first_timestamp.map_or(0, |timestamp| sender.tick(timestamp));
        let shown = |judged: &Judged| Shown {
            tick: first.wrapping_add(timestamp_90k(Instant::ZERO + judged.media_time)),
            due: judged.due,
            ready: judged.ready,
            verdict: judged.verdict,
            damaged: judged.verdict == Verdict::Damaged,
            missing: 0,
            skipped: u32::from(judged.verdict == Verdict::Lost(LostFrame::Hole)),
        };
        self.judged.iter().map(shown).collect()
    }

    /// The media that was pushed last may complete frames.
    fn take_frames(&mut self, now: Instant) {
        while let Some(frame) = self.assembler.next_frame() {
            self.first_timestamp.get_or_insert(frame.timestamp);
            self.playout.push(ReceivedFrame {
                first_sequence: frame.first_sequence,
                last_sequence: frame.last_sequence,
                absent_before: frame.absent_before,
                timestamp_90k: frame.timestamp,
                data: frame.data,
                key: frame.key,
                via: frame.via,
                arrival: frame.completed,
            });
            self.judge(now);
        }
    }

    fn judge(&mut self, now: Instant) {
        while let Some(judged) = self.playout.poll(now) {
            self.judged.push(Judged { data: Vec::new(), ..judged });
        }
    }
}

impl End<Vec<u8>> for OurReceiver {
    fn on_packet(&mut self, now: Instant, packet: &Wire<Vec<u8>>) {
        let peer = self.peer;
        if let Some(media) = self.session.handle_datagram(now, &packet.body, packet.dscp, packet.ecn, peer) {
            self.assembler.push(&media);
            self.take_frames(now);
        }
        let mut buffer = Vec::new();
        while let Some(media) = self.session.next_recovered(&mut buffer) {
            self.assembler.push(&media);
        }
        self.take_frames(now);
    }

    fn poll(&mut self, now: Instant, out: &mut Vec<Wire<Vec<u8>>>) -> Instant {
        self.judge(now);
        self.session.forget_before(self.playout.given_up_before());
        if let Some(answer) = self.session.rtt() {
            self.playout.set_answer_time(answer);
        }
        if let Some(interval) = self.session.frame_interval() {
            self.playout.set_frame_interval(interval);
        }
        self.session.set_playout(now, self.playout.delay());
        if self.playout.take_key_request(now) {
            self.session.request_key_frame(now);
        }
        let until = loop {
            match self.session.poll(now) {
                Out::Datagram(d) => out.push(Wire {
                    size: Bytes::new(d.bytes.len() as u64) + IP_OVERHEAD,
                    dscp: d.dscp,
                    ecn: d.ecn,
                    about: About::Control,
                    body: d.bytes.to_vec(),
                }),
                Out::Wait(until) => break until,
                Out::Stopped(_) => break Instant::NEVER,
            }
        };
        until.min(self.playout.next()).min(self.playout.next_key_request())
    }

    fn finish(&mut self, now: Instant) {
        while let Some(judged) = self.playout.finish(now) {
            self.judged.push(Judged { data: Vec::new(), ..judged });
        }
    }
}
