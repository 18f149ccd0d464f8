//! A sender and a receiver with the machines that they run on, and the path between them, in virtual time. All follows from a seed.

use super::watch::{Amplification, HandedOut, OfSender};
use super::weather::{Blow, Way, Weather};
use fairpace_control::feedback::Form;
use fairpace_control::{Env, Flow, FlowParams, TcpProgress, build};
use fairpace_rtp::{
    Frame, NtpTime, Out, ReceiverConfig, ReceiverEvent, ReceiverSession, Secret, SenderConfig, SenderEvent,
    SenderSession, StopReason,
};
use fairpace_units::{Bytes, Dscp, Duration, Ecn, Instant, RandomStream, Rate, Via};
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

const CAP: Rate = Rate::kbps(300.0);
/// As `send` has it.
const LEAST: Rate = Rate::kbps(50.0);
const PACKET: u64 = 1_000;
const SENDER: [u8; 4] = [192, 0, 2, 1];
const RECEIVER: &str = "203.0.113.5:5004";
const FRAME: Duration = Duration::from_millis(66);
/// The most that a path's buffer holds, and a socket.
const BUFFER: Duration = Duration::from_millis(300);
const SOCKET: usize = 256;
/// Datagrams that somebody on the path keeps to play them again.
const KEPT: usize = 64;
/// An operator begins anew after so long.
const RESTART: Duration = Duration::from_secs(15);
/// The most that TCP's socket takes.
const TCP_BUFFER: u64 = 64_000;
/// Polls at one instant: more is a loop without an end.
const MOST_POLLS: u32 = 20_000;

pub(crate) type Settings = &'static [(&'static str, &'static str)];

#[derive(Clone, Debug)]
struct Parcel {
    bytes: Vec<u8>,
    dscp: Dscp,
    ecn: Ecn,
    from: SocketAddr,
    to: SocketAddr,
    /// When its bytes left the peer; `None`: nobody's.
    left: Option<Instant>,
    via: Via,
}

#[derive(Debug, Default)]
struct Pipe {
    free: Instant,
    order: u64,
    inside: BTreeMap<(Instant, u64), Parcel>,
    seen: VecDeque<Parcel>,
    /// When TCP's last packet arrives.
    stream: Instant,
}

impl Pipe {
    fn next(&self) -> Instant {
        self.inside.first_key_value().map_or(Instant::NEVER, |((at, _), _)| *at)
    }

    fn pop(&mut self, now: Instant) -> Option<Parcel> {
        if self.next() > now { None } else { self.inside.pop_first().map(|(_, parcel)| parcel) }
    }

    fn insert(&mut self, at: Instant, parcel: Parcel) {
        self.order += 1;
        self.inside.insert((at, self.order), parcel);
    }

    fn push(&mut self, now: Instant, mut parcel: Parcel, way: &Way, until: Instant, random: &mut RandomStream) {
        if parcel.via == Via::Tcp {
            // Sent again until it is there.
            let from = if way.loss > 0.9 { until } else { now };
            self.stream = self.stream.max(from + way.delay);
            return self.insert(self.stream, parcel);
        }
        let start = self.free.max(now);
        if start.since(now) > BUFFER || random.uniform() < way.loss {
            return;
        }
        self.free = start + Bytes::new(parcel.bytes.len() as u64 + 28) / way.rate;
        let mut at = self.free + way.delay + way.jitter.mul_f64(random.uniform());
        if self.seen.len() == KEPT {
            self.seen.pop_front();
        }
        self.seen.push_back(parcel.clone());
        if way.bleach {
            (parcel.dscp, parcel.ecn) = (Dscp::DEFAULT, Ecn::NotEct);
        }
        if random.uniform() < way.late {
            at += Duration::from_millis(random.below(500));
        }
        let place = |random: &mut RandomStream, len: usize| random.below(len.max(1) as u64) as usize;
        if random.uniform() < way.corrupt {
            let i = place(random, parcel.bytes.len().min(80));
            parcel.bytes[i] ^= 1 << random.below(8);
        }
        if random.uniform() < way.lie {
            // Behind the headers: all of it has arrived, at once.
            for half in parcel.bytes.chunks_exact_mut(2).skip(8) {
                half[0] |= (random.below(4) as u8) << 6;
            }
        }
        if random.uniform() < way.duplicate {
            self.insert(at + way.delay.mul_f64(random.uniform()), parcel.clone());
        }
        if random.uniform() < way.replay {
            let mut old = self.seen[place(random, self.seen.len())].clone();
            if random.below(2) == 0 {
                let i = place(random, old.bytes.len());
                old.bytes[i] ^= random.bits() as u8;
            }
            self.insert(at + Duration::from_millis(random.below(1_000)), old);
        }
        if random.uniform() < way.forge {
            // In the peer's name, or one's own.
            let mut forged = parcel.clone();
            forged.left = None;
            if random.below(2) == 0 {
                forged.from = SocketAddr::from(([198, 51, 100, 7], 1_000 + random.below(16) as u16));
            }
            let kept = 8.min(forged.bytes.len());
            let from = if random.below(2) == 0 { kept } else { 0 };
            forged.bytes[from..].iter_mut().for_each(|byte| *byte = random.bits() as u8);
            forged.bytes[0] = 0x80 | forged.bytes[0] & 0x3f;
            self.insert(at, forged);
        }
        self.insert(at, parcel);
    }
}

/// The TCP half of a sender, as far as its session sees it.
#[derive(Debug, Default)]
struct Tcp {
    up: bool,
    given: u64,
    acked: u64,
    /// Bytes acknowledged, and when that is known.
    acks: VecDeque<(Instant, u64)>,
}

/// A process, and the machine's socket.
#[derive(Debug, Default)]
struct Machine {
    asleep_until: Instant,
    socket: VecDeque<(Instant, Parcel)>,
    /// When the session wants to be asked.
    next: Instant,
}

pub(crate) struct World {
    pub(crate) now: Instant,
    /// From when on both ends' datagrams are printed.
    pub(crate) trace_from: Instant,
    scheme: &'static str,
    settings: Settings,
    /// Not the scheme's own form of feedback.
    form: Option<Form>,
    random: RandomStream,
    pub(crate) weather: Weather,
    episodes: u64,
    ways: [Pipe; 2],
    machines: [Machine; 2],
    sender: Option<SenderSession>,
    sender_at: SocketAddr,
    began: u64,
    of_sender: OfSender,
    tcp: Tcp,
    receiver: ReceiverSession,
    amplification: Amplification,
    handed_out: HandedOut,
    next_frame: Instant,
    restart_at: Instant,
    /// Steps at this instant.
    steps: u32,
    want_key: bool,
    last_media: Instant,
    pub(crate) told: Told,
}

/// The account of a day.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Told {
    pub(crate) sent: u64,
    pub(crate) received: u64,
    pub(crate) media: u64,
    pub(crate) sessions: u64,
    pub(crate) receivers: u64,
    pub(crate) calm: u64,
    pub(crate) ends: BTreeMap<String, u64>,
    /// All that happened, in one number: a seed replays exactly.
    pub(crate) digest: u64,
}

impl World {
    pub(crate) fn new(scheme: &'static str, settings: Settings, form: Option<Form>, seed: u64) -> World {
        let mut random = RandomStream::named(seed, scheme);
        let weather = Weather::draw(Instant::ZERO, 0, &mut random);
        let receiver = ReceiverSession::new(receiver_config(&mut random), Secret::from_seed(random.bits()));
        World {
            now: Instant::ZERO,
            trace_from: Instant::NEVER,
            scheme,
            settings,
            form,
            weather,
            episodes: 1,
            ways: Default::default(),
            machines: Default::default(),
            sender: None,
            sender_at: SocketAddr::from((SENDER, 5_000)),
            began: 0,
            of_sender: OfSender::new(Instant::ZERO, CAP, PACKET),
            tcp: Tcp::default(),
            receiver,
            amplification: Amplification::default(),
            handed_out: HandedOut::default(),
            next_frame: Instant::ZERO,
            restart_at: Instant::ZERO,
            steps: 0,
            want_key: true,
            last_media: Instant::ZERO,
            told: Told::default(),
            random,
        }
    }

    /// Goes on until then. `Err`: what does not hold, and when.
    pub(crate) fn run_until(&mut self, end: Instant) -> Result<(), String> {
        while self.now < end {
            self.step().map_err(|wrong| format!("at {}: {wrong}; {:?}", self.now, self.weather))?;
        }
        Ok(())
    }

    fn step(&mut self) -> Result<(), String> {
        let mut next = self.weather.until;
        for (pipe, machine) in self.ways.iter().zip(&self.machines) {
            next = next.min(pipe.next()).min(machine.next.max(machine.asleep_until));
        }
        if self.sender.is_none() {
            next = next.min(self.restart_at.max(self.machines[0].asleep_until));
        } else if !self.is_asleep(0) {
            next = next.min(self.next_frame);
        }
        self.steps = if next > self.now { 0 } else { self.steps + 1 };
        if self.steps > MOST_POLLS {
            return Err("time stands still".into());
        }
        self.now = self.now.max(next);
        if self.now >= self.weather.until {
            self.turn()?;
        }
        self.carry();
        self.run_sender()?;
        self.run_receiver()
    }

    fn is_asleep(&self, machine: usize) -> bool {
        self.now < self.machines[machine].asleep_until
    }

    /// The weather changes.
    fn turn(&mut self) -> Result<(), String> {
        if self.weather.calm {
            self.told.calm += 1;
            let silent = self.now.since(self.last_media);
            if silent > Duration::from_secs(20) {
                let stopped = self.sender.as_ref().map(|s| (s.is_validated(), s.flow().status()));
                return Err(format!("no media for {silent:?} at the end of a calm: {stopped:?}, {:?}", self.told.ends));
            }
        }
        self.weather = Weather::draw(self.now, self.episodes, &mut self.random);
        self.episodes += 1;
        match self.weather.blow {
            Blow::None => {}
            Blow::SenderStopped => {
                if let Some(sender) = &mut self.sender {
                    sender.stop(self.now);
                    self.machines[0].next = self.now;
                }
            }
            Blow::SenderKilled { same_port } => {
                self.sender = None;
                self.restart_at = self.now + Duration::from_millis(self.random.below(3_000));
                if !same_port {
                    self.move_sender();
                }
            }
            Blow::ReceiverKilled => {
                let config = receiver_config(&mut self.random);
                self.receiver = ReceiverSession::new(config, Secret::from_seed(self.random.bits()));
                self.told.receivers += 1;
                self.machines[1] = Machine { next: self.now, ..Machine::default() };
                self.handed_out.begin_anew();
                if let Some(sender) = self.sender.as_mut().filter(|_| self.tcp.up) {
                    sender.on_tcp_closed(self.now);
                }
            }
            Blow::Sleep(asleep) => {
                for (machine, long) in self.machines.iter_mut().zip(asleep) {
                    machine.asleep_until = self.now + long.unwrap_or_default();
                }
                // Calm is for those who are awake.
                let awake = self.machines.iter().map(|m| m.asleep_until).max().unwrap_or_default();
                self.weather.until = self.weather.until.max(awake);
            }
        }
        Ok(())
    }

    fn move_sender(&mut self) {
        self.sender_at.set_port(5_000 + self.random.below(1_000) as u16);
    }

    /// Takes all that has come to the machines.
    fn carry(&mut self) {
        // The datagrams of one machine come to the other.
        for (pipe, machine) in self.ways.iter_mut().zip(self.machines.iter_mut().rev()) {
            while let Some(parcel) = pipe.pop(self.now) {
                if machine.socket.len() < SOCKET || parcel.via == Via::Tcp {
                    machine.socket.push_back((self.now, parcel));
                }
                machine.next = machine.next.min(self.now);
            }
        }
    }

    // --- the sender --------------------------------------------------------------------------------

    fn begin_sender(&mut self) {
        self.began += 1;
        self.told.sessions += 1;
        let env = Env { packet_size: Bytes::new(PACKET), min_rate: LEAST, max_rate: CAP, ..Env::default() };
        let settings = self.settings.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
        let flow = Flow::new(build(self.scheme, &settings, &env).expect("a scheme"), FlowParams::new(&env));
        let repair = self.random.below(2) == 0;
        let config = SenderConfig {
            packet_size: Bytes::new(PACKET),
            session_bandwidth: CAP,
            retransmission: repair,
            fec: repair,
            ntp_at_zero: ntp(&mut self.random),
            form: self.form,
            ..SenderConfig::default()
        };
        self.sender = Some(SenderSession::new(config, flow, Secret::from_seed(self.random.bits())));
        self.of_sender = OfSender::new(self.now, CAP, PACKET);
        self.tcp = Tcp::default();
        self.want_key = true;
        self.machines[0].socket.clear();
    }

    fn run_sender(&mut self) -> Result<(), String> {
        if self.is_asleep(0) {
            return Ok(());
        }
        if self.sender.is_none() {
            if self.now < self.restart_at {
                self.machines[0].next = self.restart_at;
                self.machines[0].socket.clear();
                return Ok(());
            }
            self.begin_sender();
        }
        // A driver looks at its clock or at its socket first.
        if self.random.below(2) == 0 {
            self.drain_sender()?;
        }
        self.read_sender();
        self.frame();
        self.drain_sender()
    }

    fn read_sender(&mut self) {
        let Some(sender) = &mut self.sender else { return };
        let receiver: SocketAddr = RECEIVER.parse().expect("an address");
        if self.tcp.up {
            while let Some((_, acked)) = self.tcp.acks.pop_front_if(|(at, _)| *at <= self.now) {
                self.tcp.acked = acked;
            }
            let mss = Bytes::new(PACKET);
            let progress = TcpProgress {
                acked: Bytes::new(self.tcp.acked),
                unsent: Bytes::ZERO,
                cwnd: Bytes::new(10 * PACKET),
                mss,
                reductions: 0,
                srtt: Some(self.weather.ways[0].delay + self.weather.ways[1].delay),
            };
            sender.on_tcp(self.now, &progress);
            sender.set_tcp_room(self.tcp.given - self.tcp.acked < TCP_BUFFER);
            if sender.is_draining() && self.tcp.given == self.tcp.acked {
                sender.on_tcp_drained(self.now);
            }
            while sender.take_tcp_order().is_some() {}
        }
        while let Some((arrived, parcel)) = self.machines[0].socket.pop_front() {
            if parcel.from != receiver || parcel.to != self.sender_at {
                continue;
            }
            // A stamp that is old is not believed.
            let at = if self.now.since(arrived) > Duration::from_secs(1) { self.now } else { arrived };
            self.told.received += 1;
            if self.now >= self.trace_from {
                let (flow, rejected) = (sender.flow(), sender.stats().rejected);
                let (len, left, status, srtt) = (parcel.bytes.len(), parcel.left, flow.status(), flow.srtt());
                eprintln!("{} <- {len} B of {left:?}; {status:?}, {srtt:?}, {rejected:?}", self.now);
            }
            if let Some(left) = parcel.left {
                self.of_sender.on_word(left);
            }
            match parcel.via {
                Via::Udp => sender.handle_datagram(at, &parcel.bytes, parcel.dscp, parcel.ecn),
                Via::Tcp => sender.handle_tcp_packet(at, &parcel.bytes),
            }
        }
        if sender.wants_tcp() {
            self.tcp.up = true;
            sender.on_tcp_connected(self.now);
            sender.set_tcp_room(true);
        }
    }

    fn frame(&mut self) {
        if self.now < self.next_frame {
            return;
        }
        self.next_frame = self.now + FRAME;
        let Some(sender) = self.sender.as_mut().filter(|s| !self.weather.pause && s.is_validated() && s.wants_frame())
        else {
            return;
        };
        let bytes = (sender.media_rate() * FRAME).get().max(1) as usize;
        let mut data = vec![0xaa; bytes];
        data[0] = u8::from(!self.want_key);
        let timestamp_90k = (self.now.since(Instant::ZERO).as_millis() * 90) as u32;
        sender.push_frame(self.now, Frame { data, timestamp_90k, key: self.want_key });
        self.want_key = false;
    }

    fn drain_sender(&mut self) -> Result<(), String> {
        let Some(sender) = &mut self.sender else { return Ok(()) };
        let mut ended = None;
        for polls in 0.. {
            if polls > MOST_POLLS {
                return Err("the sender's polls have no end".into());
            }
            match sender.poll(self.now) {
                Out::Datagram(d) => {
                    self.of_sender.on_sent(self.now, d.what, d.bytes.len())?;
                    self.told.sent += 1;
                    if self.now >= self.trace_from {
                        eprintln!("{} -> {:?} {} B", self.now, d.what, d.bytes.len());
                    }
                    self.told.digest = digest(self.told.digest, self.now, d.bytes.len());
                    let parcel = Parcel {
                        bytes: d.bytes.to_vec(),
                        dscp: d.dscp,
                        ecn: d.ecn,
                        from: self.sender_at,
                        to: RECEIVER.parse().expect("an address"),
                        left: Some(self.now),
                        via: d.via,
                    };
                    if d.via == Via::Tcp {
                        self.tcp.given += parcel.bytes.len() as u64;
                    }
                    let way = &self.weather.ways[0];
                    self.ways[0].push(self.now, parcel, way, self.weather.until, &mut self.random);
                    if d.via == Via::Tcp {
                        let known = self.ways[0].stream + self.weather.ways[1].delay;
                        self.tcp.acks.push_back((known, self.tcp.given));
                        sender.set_tcp_room(self.tcp.given - self.tcp.acked < TCP_BUFFER);
                    }
                }
                Out::Wait(until) if until <= self.now => {
                    return Err(format!("the sender waits for what is past: {until}"));
                }
                Out::Wait(until) => {
                    let acked = self.tcp.acks.front().map_or(Instant::NEVER, |(at, _)| *at);
                    self.machines[0].next = until.min(acked.max(self.now + Duration::from_millis(1)));
                    break;
                }
                Out::Stopped(reason) => {
                    ended = Some(reason);
                    break;
                }
            }
        }
        while let Some(event) = sender.next_event() {
            self.want_key |= event == SenderEvent::KeyFrameRequest;
        }
        let (frames, bytes) = sender.queue_len();
        if frames > 10_000 || bytes.get() > 16 << 20 {
            return Err(format!("{frames} frames of {bytes} wait"));
        }
        if let Some(reason) = ended {
            // Words from before the calm may still be on their way.
            let calm = self.weather.calm && self.now.since(self.weather.since) > Duration::from_secs(10);
            if calm && reason == StopReason::PeerLied {
                return Err("an honest receiver is taken for a liar".into());
            }
            let name = format!("{reason:?}");
            let name = name.split([' ', '(', '{']).next().unwrap_or_default().to_owned();
            *self.told.ends.entry(name).or_default() += 1;
            self.sender = None;
            self.restart_at = self.now + RESTART;
            self.machines[0].next = self.restart_at;
            if self.random.below(2) == 0 {
                self.move_sender();
            }
        }
        Ok(())
    }

    // --- the receiver ------------------------------------------------------------------------------

    fn run_receiver(&mut self) -> Result<(), String> {
        if self.is_asleep(1) {
            return Ok(());
        }
        if self.random.below(2) == 0 {
            self.drain_receiver()?;
        }
        while let Some((arrived, parcel)) = self.machines[1].socket.pop_front() {
            let at = if self.now.since(arrived) > Duration::from_secs(1) { self.now } else { arrived };
            self.amplification.on_received(parcel.from, parcel.bytes.len());
            if self.now >= self.trace_from {
                let (len, left) = (parcel.bytes.len(), parcel.left);
                eprintln!("{} the receiver <- {}: {len} B of {left:?}", self.now, parcel.from);
            }
            if parcel.via == Via::Tcp && !self.receiver.has_tcp() {
                if self.receiver.wants_tcp()
                    && let Some(bytes) = self.receiver.accept_tcp(at, &parcel.bytes, parcel.from.ip())
                {
                    let (from, to) = (parcel.to, parcel.from);
                    let back = Parcel { bytes, from, to, left: Some(self.now), ..parcel };
                    let way = &self.weather.ways[1];
                    self.ways[1].push(self.now, back, way, self.weather.until, &mut self.random);
                }
                continue;
            }
            let media = match parcel.via {
                Via::Udp => self.receiver.handle_datagram(at, &parcel.bytes, parcel.dscp, parcel.ecn, parcel.from),
                Via::Tcp => self.receiver.handle_tcp_packet(at, &parcel.bytes),
            };
            let media = media.map(|m| m.sequence);
            self.receiver_events();
            if let Some(sequence) = media {
                self.on_media(sequence)?;
            }
            let mut buffer = Vec::new();
            while let Some(sequence) = self.receiver.next_recovered(&mut buffer).map(|m| m.sequence) {
                self.on_media(sequence)?;
            }
        }
        self.drain_receiver()
    }

    fn on_media(&mut self, sequence: u64) -> Result<(), String> {
        self.told.media += 1;
        self.last_media = self.now;
        self.told.digest = digest(self.told.digest, self.now, sequence as usize);
        self.handed_out.on_media(sequence)
    }

    fn receiver_events(&mut self) {
        while let Some(event) = self.receiver.next_event() {
            if matches!(event, ReceiverEvent::NewSource { .. }) {
                self.handed_out.begin_anew();
                self.receiver.request_key_frame(self.now);
            }
        }
    }

    fn drain_receiver(&mut self) -> Result<(), String> {
        for polls in 0.. {
            if polls > MOST_POLLS {
                return Err("the receiver's polls have no end".into());
            }
            match self.receiver.poll(self.now) {
                Out::Datagram(d) => {
                    let to = d.to.ok_or("a datagram of the receiver to nobody")?;
                    if self.now >= self.trace_from {
                        eprintln!("{} the receiver -> {to}: {:?} {} B", self.now, d.what, d.bytes.len());
                    }
                    self.amplification.on_sent(to, d.bytes.len())?;
                    if to.ip() != IpAddr::from(SENDER) {
                        continue;
                    }
                    let parcel = Parcel {
                        bytes: d.bytes.to_vec(),
                        dscp: d.dscp,
                        ecn: d.ecn,
                        from: RECEIVER.parse().expect("an address"),
                        to,
                        left: Some(self.now),
                        via: d.via,
                    };
                    let way = &self.weather.ways[1];
                    self.ways[1].push(self.now, parcel, way, self.weather.until, &mut self.random);
                }
                Out::Wait(until) if until <= self.now => {
                    return Err(format!("the receiver waits for what is past: {until}"));
                }
                Out::Wait(until) => {
                    self.machines[1].next = until;
                    break;
                }
                Out::Stopped(reason) => return Err(format!("the receiver has ended: {reason}")),
            }
        }
        self.receiver_events();
        if self.receiver.sources() > 1_032 {
            return Err(format!("{} sources", self.receiver.sources()));
        }
        Ok(())
    }
}

fn receiver_config(random: &mut RandomStream) -> ReceiverConfig {
    let repair = random.below(2) == 0;
    ReceiverConfig {
        nack: repair,
        fec: repair,
        session_bandwidth: CAP,
        ntp_at_zero: ntp(random),
        ask_proof: random.below(2) == 0,
        ..ReceiverConfig::default()
    }
}

/// Wall clocks agree about nothing, and may be about to wrap.
fn ntp(random: &mut RandomStream) -> NtpTime {
    NtpTime::from_unix(Duration::from_secs(random.below(1 << 33)))
}

fn digest(before: u64, at: Instant, n: usize) -> u64 {
    (before.rotate_left(7) ^ at.as_nanos() ^ n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
