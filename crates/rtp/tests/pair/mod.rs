//! A sender and a receiver in virtual time, with a path between them that a test may disturb.

#![allow(dead_code, unreachable_pub)] // each test file uses its part

use fairpace_control::{Env, Flow, FlowParams, build};
use fairpace_rtp::feedback::ccfb::wire::{self as ccfb, Metric};
use fairpace_rtp::feedback::claim::{self, Claim, Claims};
use fairpace_rtp::frames::{AssembledFrame, FrameAssembler};
use fairpace_rtp::rtcp::{Compound, Rtcp};
use fairpace_rtp::{
    Codec, Datagram, Frame, MediaPacket, Out, ReceiverConfig, ReceiverEvent, ReceiverSession, Secret, SenderConfig,
    SenderEvent, SenderSession, StopReason, What,
};
use fairpace_units::{Bytes, Dscp, Duration, Ecn, Instant, QsOption, RandomStream, Rate};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

pub const SENDER: &str = "192.0.2.1:5000";
pub const PACKET: u64 = 1_000;

pub fn at(seconds: f64) -> Instant {
    Instant::from_secs_f64(seconds)
}

pub fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

pub fn flow(scheme: &str, settings: &[(&str, &str)], max: Rate) -> Flow {
    let env = Env { packet_size: Bytes::new(PACKET), max_rate: max, ..Env::default() };
    let settings: BTreeMap<String, String> = settings.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
    Flow::new(build(scheme, &settings, &env).unwrap(), FlowParams::new(&env))
}

pub fn sender_config() -> SenderConfig {
    SenderConfig { packet_size: Bytes::new(PACKET), session_bandwidth: Rate::mbps(1.0), ..SenderConfig::default() }
}

/// A datagram on its way.
#[derive(Clone, Debug)]
pub struct Wire {
    pub bytes: Vec<u8>,
    pub dscp: Dscp,
    pub ecn: Ecn,
    pub what: What,
    /// IPv4's DF is not set.
    pub fragments: bool,
    /// The Quick-Start option of the IP header.
    pub quick_start: Option<QsOption>,
}

/// The disturbance of a datagram: returns the datagrams that arrive, each with an extra delay.
pub type Disturb = Box<dyn FnMut(Instant, Wire) -> Vec<(Duration, Wire)>>;

pub fn undisturbed() -> Disturb {
    Box::new(|_, w| vec![(Duration::ZERO, w)])
}

/// Loses each datagram with probability `p`.
pub fn lossy(seed: u64, p: f64) -> Disturb {
    let mut stream = RandomStream::named(seed, "loss");
    Box::new(move |_, w| if stream.uniform() < p { vec![] } else { vec![(Duration::ZERO, w)] })
}

pub struct Pipe {
    delay: Duration,
    order: u64,
    inside: BTreeMap<(Instant, u64), Wire>,
    pub disturb: Disturb,
}

impl Pipe {
    fn new(delay: Duration) -> Self {
        Pipe { delay, order: 0, inside: BTreeMap::new(), disturb: undisturbed() }
    }

    pub fn push(&mut self, now: Instant, wire: Wire) {
        for (extra, w) in (self.disturb)(now, wire) {
            self.order += 1;
            self.inside.insert((now + self.delay + extra, self.order), w);
        }
    }

    fn next(&self) -> Instant {
        self.inside.first_key_value().map_or(Instant::NEVER, |((t, _), _)| *t)
    }

    fn pop(&mut self, now: Instant) -> Option<Wire> {
        if self.next() > now { None } else { self.inside.pop_first().map(|(_, w)| w) }
    }
}

/// The data that came out at the receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Got {
    pub sequence: u64,
    pub timestamp: u32,
    pub marker: bool,
    pub len: usize,
    pub arrived: Instant,
    pub one_way_delay: Option<i64>,
    pub retransmitted: bool,
    pub recovered: bool,
}

/// Everything a sender did: the trace that equal runs share.
#[derive(Clone, Debug, PartialEq)]
pub struct Left {
    pub at: Instant,
    pub what: What,
    pub len: usize,
}

pub struct Pair {
    pub now: Instant,
    pub sender: SenderSession,
    pub receiver: ReceiverSession,
    pub forward: Pipe,
    pub back: Pipe,
    /// Frames per second; bytes per frame come from the target rate, or are fixed.
    pub fps: u64,
    pub frame_bytes: Option<usize>,
    pub receiver_alive: bool,
    /// No IP packet may be larger.
    pub largest: u64,
    receiver_ssrc: u32,
    next_frame: Instant,
    frames: u64,
    want_key: bool,
    pub sent: Vec<Left>,
    pub received: Vec<Got>,
    pub assembled: Vec<AssembledFrame>,
    assembler: FrameAssembler,
    pub sender_events: Vec<(Instant, SenderEvent)>,
    pub receiver_events: Vec<(Instant, ReceiverEvent)>,
    /// When the sender decided to end, and why; its goodbyes follow.
    pub stopped: Option<(Instant, StopReason)>,
    pub receiver_stopped: Option<Instant>,
    /// The datagrams of the receiver that go to others than the sender; `None`: there must be none.
    pub strangers: Option<Vec<(SocketAddr, Vec<u8>)>>,
    /// Instants at which something happened, of either end.
    pub turns: u64,
}

impl Pair {
    pub fn new(sender: SenderConfig, receiver: ReceiverConfig, flow: Flow, one_way: Duration) -> Self {
        let codec = sender.codec;
        Pair {
            now: Instant::ZERO,
            sender: SenderSession::new(sender, flow, Secret::from_seed(1)),
            receiver: ReceiverSession::new(receiver, Secret::from_seed(2)),
            forward: Pipe::new(one_way),
            back: Pipe::new(one_way),
            fps: 25,
            frame_bytes: None,
            receiver_alive: true,
            largest: PACKET,
            receiver_ssrc: 0,
            next_frame: Instant::ZERO,
            frames: 0,
            want_key: true,
            sent: Vec::new(),
            received: Vec::new(),
            assembled: Vec::new(),
            assembler: FrameAssembler::new(codec, Duration::from_secs(2)),
            sender_events: Vec::new(),
            receiver_events: Vec::new(),
            stopped: None,
            receiver_stopped: None,
            strangers: None,
            turns: 0,
        }
    }

    /// The usual: 100 ms round trip, feedback every 20 ms.
    pub fn usual(scheme: &str, settings: &[(&str, &str)]) -> Self {
        let flow = flow(scheme, settings, Rate::mbps(10.0));
        Pair::new(sender_config(), ReceiverConfig::default(), flow, ms(50))
    }

    fn drain_sender(&mut self) -> Instant {
        loop {
            match self.sender.poll(self.now) {
                Out::Datagram(Datagram { bytes, dscp, ecn, what, to, fragments, quick_start, .. }) => {
                    assert_eq!(to, None);
                    self.sent.push(Left { at: self.now, what, len: bytes.len() });
                    assert!(bytes.len() as u64 + 28 <= self.largest, "{what:?} of {} B", bytes.len());
                    let wire = Wire { bytes: bytes.to_vec(), dscp, ecn, what, fragments, quick_start };
                    self.forward.push(self.now, wire);
                }
                Out::Wait(until) => {
                    assert!(until > self.now, "waits for what is past: {until} at {}", self.now);
                    return until;
                }
                Out::Stopped(reason) => {
                    self.stopped.get_or_insert((self.now, reason));
                    return Instant::NEVER;
                }
            }
        }
    }

    fn drain_receiver(&mut self) -> Instant {
        if !self.receiver_alive {
            return Instant::NEVER;
        }
        loop {
            match self.receiver.poll(self.now) {
                Out::Datagram(Datagram { bytes, dscp, ecn, what, to, fragments, quick_start, .. }) => {
                    let sender = SENDER.parse().unwrap();
                    if let (Some(strangers), Some(to)) = (&mut self.strangers, to.filter(|to| *to != sender)) {
                        strangers.push((to, bytes.to_vec()));
                        continue;
                    }
                    assert_eq!(to, Some(sender));
                    self.receiver_ssrc = u32::from_be_bytes(bytes[4..8].try_into().unwrap());
                    let wire = Wire { bytes: bytes.to_vec(), dscp, ecn, what, fragments, quick_start };
                    self.back.push(self.now, wire);
                }
                Out::Wait(until) => {
                    assert!(until > self.now, "waits for what is past: {until} at {}", self.now);
                    return until;
                }
                Out::Stopped(_) => {
                    self.receiver_stopped.get_or_insert(self.now);
                    return Instant::NEVER;
                }
            }
        }
    }

    fn push_frame(&mut self) {
        let bytes = self.frame_bytes.unwrap_or_else(|| {
            (self.sender.media_rate() * Duration::from_nanos(1_000_000_000 / self.fps)).get().max(1) as usize
        });
        // The first byte is VP8's frame tag: bit 0 is 0 for a key frame.
        let mut data = vec![0xaa; bytes];
        data[0] = u8::from(!self.want_key);
        let frame = Frame { data, timestamp_90k: (self.frames * 90_000 / self.fps) as u32, key: self.want_key };
        self.want_key = false;
        self.frames += 1;
        self.sender.push_frame(self.now, frame);
    }

    pub fn run_until(&mut self, end: Instant) {
        let from: SocketAddr = SENDER.parse().unwrap();
        while self.now <= end {
            self.turns += 1;
            while let Some(w) = self.forward.pop(self.now) {
                if let Some(option) = w.quick_start {
                    self.receiver.note_quick_start(option);
                }
                if self.receiver_alive
                    && let Some(m) = self.receiver.handle_datagram(self.now, &w.bytes, w.dscp, w.ecn, from)
                {
                    self.received.push(got(&m));
                    self.assembler.push(&m);
                }
                let mut buffer = Vec::new();
                while let Some(m) = self.receiver.next_recovered(&mut buffer) {
                    self.received.push(got(&m));
                    self.assembler.push(&m);
                }
                while let Some(f) = self.assembler.next_frame() {
                    self.assembled.push(f);
                }
            }
            while let Some(w) = self.back.pop(self.now) {
                self.sender.handle_datagram(self.now, &w.bytes, w.dscp, w.ecn);
            }
            if self.now >= self.next_frame && self.sender.is_validated() && self.fps > 0 && self.stopped.is_none() {
                self.push_frame();
                self.next_frame = self.now + Duration::from_nanos(1_000_000_000 / self.fps);
            }
            let mut next = self.drain_sender().min(self.drain_receiver());
            while let Some(e) = self.sender.next_event() {
                self.want_key |= e == SenderEvent::KeyFrameRequest;
                if let SenderEvent::Stopped(reason) = e {
                    self.stopped.get_or_insert((self.now, reason));
                }
                self.sender_events.push((self.now, e));
            }
            while let Some(e) = self.receiver.next_event() {
                self.receiver_events.push((self.now, e));
            }
            if self.sender.is_validated() && self.fps > 0 && self.stopped.is_none() {
                next = next.min(self.next_frame.max(self.now));
            }
            next = next.min(self.forward.next()).min(self.back.next());
            if next > end {
                self.now = end;
                return;
            }
            self.now = next;
        }
    }

    /// The SSRC that the receiver answers with.
    pub fn receiver_ssrc(&self) -> u32 {
        self.receiver_ssrc
    }

    /// Sent by the sender of that kind.
    pub fn count(&self, what: What) -> usize {
        self.sent.iter().filter(|l| l.what == what).count()
    }
}

pub fn got(m: &MediaPacket<'_>) -> Got {
    Got {
        sequence: m.sequence,
        timestamp: m.timestamp,
        marker: m.marker,
        len: m.payload.len(),
        arrived: m.arrived,
        one_way_delay: m.one_way_delay,
        retransmitted: m.retransmitted,
        recovered: m.recovered,
    }
}

pub fn codec(config: SenderConfig, codec: Codec) -> SenderConfig {
    SenderConfig { codec, ..config }
}

/// Rewrites each feedback datagram: what the block claims, and whether the receiver's SSRC is right.
pub fn rewrite(
    mut change: impl FnMut(&mut u32, &mut Vec<(u32, u16, Vec<Metric>)>, &mut Vec<Claim>) + 'static,
) -> Disturb {
    Box::new(move |_, mut w| {
        if w.what == What::Feedback {
            let packets: Vec<_> = Compound::parse(&w.bytes).unwrap().collect();
            let [Rtcp::App(app), Rtcp::CongestionFeedback(mut reporter, body)] = packets[..] else { panic!() };
            let claims = Claims::parse(&app).unwrap().unwrap();
            let report = ccfb::Report::parse(reporter, body).unwrap();
            let mut blocks: Vec<_> =
                report.blocks().map(|b| (b.ssrc, b.begin, b.metrics().map(|m| m.1).collect::<Vec<_>>())).collect();
            let mut all: Vec<_> = claims.claims().collect();
            change(&mut reporter, &mut blocks, &mut all);
            let mut bytes = Vec::new();
            claim::emit(&mut bytes, reporter, claims.number, all);
            ccfb::emit(&mut bytes, reporter, report.timestamp, blocks);
            w.bytes = bytes;
        }
        vec![(Duration::ZERO, w)]
    })
}

/// The fate of a packet that has just arrived.
pub fn received() -> Metric {
    Metric::received(Ecn::NotEct, Duration::ZERO)
}

/// Keeps copies of what passes.
pub fn tap(into: std::rc::Rc<std::cell::RefCell<VecDeque<(Instant, Wire)>>>) -> Disturb {
    Box::new(move |now, w| {
        into.borrow_mut().push_back((now, w.clone()));
        vec![(Duration::ZERO, w)]
    })
}
