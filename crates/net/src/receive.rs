//! The receiver: datagrams in, frames out to a sink, feedback back, and media passed on clean to a
//! player.
//!
//! The loop has the shape of every driver. Arrival times are the kernel's. Frames go to the sink as
//! they become complete; the sink judges what is late or lost, and says when it needs a key frame.

use crate::address::{canonical, elsewhere};
use crate::outbox::Outbox;
use crate::pacing::thread_cpu;
use crate::send::{random, secret};
use crate::tcp_half::{MOST_CANDIDATES, MOST_READS, TcpReceiver, TcpReceiverStats};
use crate::{
    Buffers, Clock, DatagramIo, Family, Granted, Mark, NetError, RecvOutcome, SendOutcome, SocketCounters, UdpSocket,
    Waiter,
};
use fairpace_media::{FrameSink, ReceivedFrame};
use fairpace_rtp::forward::Forwarder;
use fairpace_rtp::frames::{AssembledFrame, FrameAssembler};
use fairpace_rtp::packet;
use fairpace_rtp::{Codec, MediaPacket, NtpTime, Out, ReceiverConfig, ReceiverEvent, ReceiverSession, ReceiverStats};
use fairpace_units::{Bytes, Duration, Instant, Via};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

/// Where to listen, and what to do with what comes.
#[derive(Clone, Debug)]
pub struct ReceiveConfig {
    /// Port to listen on; 0 takes a free one ([`Receiver::address`] tells which).
    pub port: u16,
    /// On which addresses.
    pub family: Family,
    /// The session: feedback interval, advertised window, requests for lost packets, marks. The header sizes and the
    /// wall clock are filled in.
    pub session: ReceiverConfig,
    /// Socket buffers to ask for.
    pub buffers: Buffers,
    /// Pass media on to this address, as clean RTP of payload type [`ReceiveConfig::forward_type`].
    pub forward: Option<SocketAddr>,
    /// Payload type for the player.
    pub forward_type: u8,
    /// Take in the TCP half of senders that have one (`tpba`): listen on the TCP port of the same number too.
    pub tcp: bool,
    /// The window that it offers there at most; `None`: the kernel's own.
    pub tcp_window: Option<Bytes>,
    /// When a sender's TCP half is there, hear nobody else any more.
    pub one_sender: bool,
    /// How long a packet waits for the rest of its frame.
    pub frame_hold: Duration,
    /// How long to receive, from the first media packet; until the sender ends if `None`.
    pub duration: Option<Duration>,
    /// How long to wait for a sender; for ever if `None`.
    pub patience: Option<Duration>,
    /// Go on listening after a sender's BYE or disappearance.
    pub keep_listening: bool,
    /// Distance of the samples.
    pub sample: Duration,
}

impl ReceiveConfig {
    /// Listens on `port` with the defaults, until the sender says goodbye.
    pub fn new(port: u16) -> ReceiveConfig {
        ReceiveConfig {
            port,
            family: Family::Any,
            session: ReceiverConfig::default(),
            buffers: Buffers::default(),
            forward: None,
            forward_type: Codec::Vp8.payload_type(),
            tcp: false,
            tcp_window: None,
            one_sender: false,
            frame_hold: Duration::from_secs(2),
            duration: None,
            patience: None,
            keep_listening: false,
            sample: Duration::from_millis(100),
        }
    }
}

/// The receiver at one time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ReceiveSample {
    /// Time since the run began.
    pub at: Instant,
    /// What the session counted.
    pub stats: ReceiverStats,
    /// Complete frames so far.
    pub frames: u64,
    /// Datagrams that this machine's kernel dropped because we were slow: not the path's loss.
    pub kernel_drops: u64,
}

/// One media packet, for delay series.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketNote {
    /// Sequence number; never wraps.
    pub sequence: u64,
    /// When the kernel got it; what came by TCP, when it was read.
    pub arrived: Instant,
    /// Arrival less departure in ns, on two clocks: absolute only if they agree.
    pub one_way_delay: Option<i64>,
    /// RTP payload.
    pub size: Bytes,
    /// It came as a retransmission.
    pub retransmitted: bool,
    /// The transport that it came by.
    pub via: Via,
}

/// Looks on while a receiver runs. All methods may be left out.
pub trait ReceiveObserver {
    /// Something happened to the session.
    fn on_event(&mut self, _now: Instant, _event: &ReceiverEvent) {}
    /// A media packet came.
    fn on_packet(&mut self, _packet: &PacketNote) {}
    /// The state, every [`ReceiveConfig::sample`].
    fn on_sample(&mut self, _sample: &ReceiveSample) {}
}

impl ReceiveObserver for () {}

/// How a receiver ended.
#[derive(Debug)]
pub enum ReceiveEnd {
    /// The sender said goodbye.
    Bye(String),
    /// The duration was over.
    Finished,
    /// The stop flag was set.
    Interrupted,
    /// No sender came, the sender vanished, or the sink failed.
    Failed(NetError),
}

/// What a receiver did; complete however it ended.
#[derive(Debug)]
pub struct ReceiveReport {
    /// From the first media packet to the end; zero if none came.
    pub elapsed: Duration,
    /// The last sender.
    pub peer: Option<SocketAddr>,
    /// What the session counted.
    pub stats: ReceiverStats,
    /// Complete frames.
    pub frames: u64,
    /// Packets of frames that were never complete.
    pub abandoned_packets: u64,
    /// What the socket counted.
    pub socket: SocketCounters,
    /// Socket buffers, asked and granted.
    pub buffers: Granted,
    /// The TCP half, if there was one.
    pub tcp: Option<TcpReceiverStats>,
    /// Packets passed on to the player.
    pub forwarded: u64,
    /// Packets that could not be passed on (nobody listens there yet, say).
    pub not_forwarded: u64,
    /// Feedback packets that the kernel did not take.
    pub not_sent: u64,
    /// CPU time / time.
    pub cpu: f64,
    /// How it ended.
    pub end: ReceiveEnd,
}

/// A receiver whose port is open and that is ready to run.
#[derive(Debug)]
pub struct Receiver {
    config: ReceiveConfig,
    clock: Clock,
    socket: UdpSocket,
    tcp: Option<TcpReceiver>,
    player: Option<UdpSocket>,
}

/// With port 0, the kernel's choice for UDP may be taken for TCP: so often another is asked for.
const PORTS_TO_TRY: usize = 8;

impl Receiver {
    /// Opens the port.
    ///
    /// # Errors
    /// [`NetError`]: port in use, no permission, no route to the player.
    pub fn open(config: ReceiveConfig, clock: Clock) -> Result<Receiver, NetError> {
        let mut tries = if config.port == 0 { PORTS_TO_TRY } else { 1 };
        loop {
            tries -= 1;
            let socket = UdpSocket::listen(config.port, config.family, config.buffers, clock)?;
            match Self::on(socket, config.clone(), clock) {
                Err(NetError::TcpPortInUse { .. }) if tries > 0 => {}
                other => return other,
            }
        }
    }

    /// As [`Receiver::open`], on a socket that is bound already: port, family and buffers are the socket's.
    ///
    /// # Errors
    /// As [`Receiver::open`].
    pub fn on(socket: UdpSocket, config: ReceiveConfig, clock: Clock) -> Result<Receiver, NetError> {
        if config.sample.is_zero() {
            return Err(NetError::Config {
                field: "sample",
                found: "0 s".to_owned(),
                allowed: "longer than zero".to_owned(),
            });
        }
        if config.forward_type > 127 {
            return Err(NetError::Config {
                field: "forward_type",
                found: config.forward_type.to_string(),
                allowed: "0 to 127, for VP8 usually 96".to_owned(),
            });
        }
        if let Some(to) = config.forward {
            elsewhere("forward", to, socket.local_address()?)?;
        }
        let player = config.forward.map(|to| UdpSocket::connect(to, config.buffers, clock)).transpose()?;
        let mut receiver = Receiver { config, clock, socket, tcp: None, player };
        if receiver.config.tcp {
            let address = receiver.socket.bound_address()?;
            let tcp = TcpReceiver::listen(address, receiver.config.family == Family::V6)?;
            if let Some(window) = receiver.config.tcp_window {
                tcp.limit_window(window)?;
            }
            receiver.tcp = Some(tcp);
        }
        Ok(receiver)
    }

    /// As [`Receiver::on`], with a TCP port that is open already.
    pub(crate) fn with_tcp(
        socket: UdpSocket,
        tcp: TcpReceiver,
        config: ReceiveConfig,
        clock: Clock,
    ) -> Result<Receiver, NetError> {
        let receiver = Self::on(socket, ReceiveConfig { tcp: false, ..config }, clock)?;
        Ok(Receiver { tcp: Some(tcp), ..receiver })
    }

    /// Where senders send to.
    ///
    /// # Errors
    /// [`NetError::Io`] if the kernel does not say.
    pub fn address(&self) -> Result<SocketAddr, NetError> {
        self.socket.local_address()
    }

    /// Receives until the end; see the module.
    ///
    /// # Errors
    /// What prevents the beginning, and the kernel refusing to wait. Everything else is in
    /// [`ReceiveReport::end`].
    pub fn run(
        self,
        sink: &mut dyn FrameSink,
        observer: &mut dyn ReceiveObserver,
        stop: &AtomicBool,
    ) -> Result<ReceiveReport, NetError> {
        let Receiver { config, clock, mut socket, mut tcp, player } = self;
        let buffers = socket.buffers();
        let session = ReceiverConfig {
            // The sender is not known yet: with both families allowed, the larger header counts.
            ip_overhead: Bytes::new(if config.family == Family::V4 { 28 } else { 48 }),
            ntp_at_zero: NtpTime::from_unix(clock.unix_at_zero()),
            ..config.session.clone()
        };
        let mut waiter = Waiter::new(clock)?;
        let now = clock.now();
        let mut run = Running {
            session: ReceiverSession::new(session, secret()?),
            outbox: Outbox::default(),
            assembler: None,
            splice: Splice::default(),
            forwarding: player.map(|socket| Forwarding::new(socket, config.forward_type)).transpose()?,
            now,
            begun: now,
            first_media: None,
            peer: None,
            frames: 0,
            abandoned: 0,
            next_sample: now,
            end: None,
            stopping: false,
            config: &config,
            clock,
        };
        let cpu = thread_cpu();
        let mut buffer = vec![0; 65_536];
        loop {
            if let Err(e) = run.turn(&mut socket, &mut tcp, &mut buffer, sink, observer, stop) {
                run.end = Some(ReceiveEnd::Failed(e));
            }
            match run.drain(&mut socket) {
                Some(until) => {
                    let until = run.until(until, sink).min(tcp.as_ref().map_or(Instant::NEVER, TcpReceiver::next));
                    // On the stack: nothing is allocated per wait.
                    let mut sockets = [socket.descriptor(); MOST_DESCRIPTORS];
                    let others = socket.wake().into_iter();
                    let halves = tcp.iter().flat_map(|tcp| tcp.descriptors(sink.has_room()));
                    let mut n = 1;
                    for (slot, fd) in sockets[1..].iter_mut().zip(others.chain(halves)) {
                        *slot = fd;
                        n += 1;
                    }
                    waiter.wait(until, &sockets[..n])?;
                }
                None => break,
            }
        }
        run.outbox.flush(&mut socket, clock.now());
        let now = run.time();
        if let Err(e) = sink.finish(now) {
            // The first failure is the one to tell.
            if !matches!(run.end, Some(ReceiveEnd::Failed(_))) {
                run.end = Some(ReceiveEnd::Failed(e.into()));
            }
        }
        let elapsed = now.since(run.begun).as_secs_f64().max(1e-9);
        let cpu = thread_cpu().saturating_sub(cpu).as_secs_f64() / elapsed;
        let (forwarded, not_forwarded) = run.forwarding.as_ref().map_or((0, 0), |f| (f.sent, f.not_sent));
        let abandoned = run.abandoned + run.assembler.as_ref().map_or(0, FrameAssembler::abandoned_packets);
        Ok(ReceiveReport {
            elapsed: run.first_media.map_or(Duration::ZERO, |at| now.since(at)),
            peer: run.peer,
            stats: run.session.stats(),
            frames: run.frames,
            abandoned_packets: abandoned,
            socket: socket.counters(),
            buffers,
            tcp: tcp.as_ref().map(TcpReceiver::stats),
            forwarded,
            not_forwarded,
            not_sent: run.outbox.not_sent,
            cpu,
            end: run.end.unwrap_or(ReceiveEnd::Finished),
        })
    }
}

/// Opens a port and receives.
///
/// # Errors
/// As [`Receiver::open`] and [`Receiver::run`].
pub fn run(
    config: ReceiveConfig,
    clock: Clock,
    sink: &mut dyn FrameSink,
    observer: &mut dyn ReceiveObserver,
    stop: &AtomicBool,
) -> Result<ReceiveReport, NetError> {
    Receiver::open(config, clock)?.run(sink, observer, stop)
}

/// The datagrams', the sink's, the TCP port, its candidates, and the stream.
const MOST_DESCRIPTORS: usize = 4 + MOST_CANDIDATES;

/// The stop flag is looked at this often, if nothing else happens.
const LOOK_UP: Duration = Duration::from_millis(50);

struct Running<'a> {
    config: &'a ReceiveConfig,
    clock: Clock,
    session: ReceiverSession,
    outbox: Outbox,
    assembler: Option<FrameAssembler>,
    splice: Splice,
    forwarding: Option<Forwarding>,
    /// The latest time told to the session.
    now: Instant,
    begun: Instant,
    first_media: Option<Instant>,
    peer: Option<SocketAddr>,
    frames: u64,
    abandoned: u64,
    next_sample: Instant,
    end: Option<ReceiveEnd>,
    stopping: bool,
}

impl Running<'_> {
    fn time(&mut self) -> Instant {
        self.now = self.now.max(self.clock.now());
        self.now
    }

    /// Everything that has happened, once round.
    fn turn(
        &mut self,
        socket: &mut UdpSocket,
        tcp: &mut Option<TcpReceiver>,
        buffer: &mut [u8],
        sink: &mut dyn FrameSink,
        observer: &mut dyn ReceiveObserver,
        stop: &AtomicBool,
    ) -> Result<(), NetError> {
        if let Some(tcp) = tcp {
            // The session's time stays behind the datagrams': they are taken in at the kernel's.
            tcp.greet(self.now.max(self.clock.now()), &mut self.session);
            self.take_tcp(tcp, sink, observer)?;
        }
        for _ in 0..256 {
            match socket.recv(buffer) {
                RecvOutcome::Packet(p) => {
                    let bytes = buffer.get(..p.len).unwrap_or_default();
                    // A sender goes on by UDP only when all that went by TCP is in our kernel: that comes first.
                    if let Some(tcp) = tcp
                        && !packet::is_rtcp(bytes)
                        && !self.take_tcp(tcp, sink, observer)?
                    {
                        tcp.overtaken();
                        continue;
                    }
                    self.now = self.now.max(p.at);
                    let now = self.now;
                    let media = self.session.handle_datagram(now, bytes, p.mark.dscp, p.mark.ecn, p.from);
                    if let Some(media) = media {
                        self.first_media.get_or_insert(now);
                        self.media(&media, p.at, sink, observer)?;
                    }
                }
                RecvOutcome::Refused => {}
                RecvOutcome::Empty | RecvOutcome::Failed(_) => break,
            }
        }
        let now = self.time();
        if sink.next() <= now || socket.wake().is_some() {
            sink.poll(now)?;
        }
        if sink.take_key_request(now) {
            self.session.request_key_frame(now);
        }
        self.events(socket, observer)?;
        self.heed(now, stop);
        if now >= self.next_sample {
            while self.next_sample <= now {
                self.next_sample += self.config.sample;
            }
            let (stats, frames) = (self.session.stats(), self.frames);
            let kernel_drops = socket.counters().kernel_drops;
            observer.on_sample(&ReceiveSample { at: now, stats, frames, kernel_drops });
        }
        Ok(())
    }

    /// What has come by TCP, as far as the sink has room for it; `false` if there is more.
    fn take_tcp(
        &mut self,
        tcp: &mut TcpReceiver,
        sink: &mut dyn FrameSink,
        observer: &mut dyn ReceiveObserver,
    ) -> Result<bool, NetError> {
        let mut reads = MOST_READS;
        while sink.has_room() {
            let Some(packet) = tcp.next_packet(&mut reads) else { return Ok(true) };
            let now = self.time();
            if let Some(media) = self.session.handle_tcp_packet(now, packet) {
                self.first_media.get_or_insert(now);
                self.media(&media, now, sink, observer)?;
            }
        }
        Ok(!tcp.has_more())
    }

    fn media(
        &mut self,
        packet: &MediaPacket<'_>,
        arrived: Instant,
        sink: &mut dyn FrameSink,
        observer: &mut dyn ReceiveObserver,
    ) -> Result<(), NetError> {
        // A datagram waits here for what TCP brought, before it or after it: the session's time is later then.
        let waited = i64::try_from(packet.arrived.since(arrived).as_nanos()).unwrap_or(0);
        observer.on_packet(&PacketNote {
            sequence: packet.sequence,
            arrived,
            one_way_delay: packet.one_way_delay.map(|delay| delay - waited),
            size: Bytes::new(packet.payload.len() as u64),
            retransmitted: packet.retransmitted,
            via: packet.via,
        });
        if let Some(forwarding) = &mut self.forwarding {
            forwarding.pass(packet);
            if forwarding.player_came(packet.arrived) {
                self.session.request_key_frame(self.now);
            }
        }
        if self.splice.note(packet) {
            // Frames of two sources do not mix.
            self.abandoned += self.assembler.take().map_or(0, |a| a.abandoned_packets());
        }
        let hold = self.config.frame_hold;
        let assembler = self.assembler.get_or_insert_with(|| FrameAssembler::new(packet.codec, hold));
        assembler.push(packet);
        while let Some(frame) = assembler.next_frame() {
            self.frames += 1;
            sink.on_frame(self.now, self.splice.frame(frame))?;
        }
        Ok(())
    }

    fn events(&mut self, socket: &mut UdpSocket, observer: &mut dyn ReceiveObserver) -> Result<(), NetError> {
        let now = self.now;
        while let Some(event) = self.session.next_event() {
            match &event {
                ReceiverEvent::NewSource { from, .. } => {
                    self.peer = Some(canonical(*from));
                }
                ReceiverEvent::Bye { reason } if !self.config.keep_listening => {
                    self.end.get_or_insert(ReceiveEnd::Bye(reason.clone()));
                }
                ReceiverEvent::Vanished if !self.config.keep_listening => {
                    let detail = format!("nothing came for {} s", self.config.session.vanish_after.as_secs_f64());
                    let unknown = SocketAddr::from(([0, 0, 0, 0], 0));
                    let peer = self.peer.unwrap_or(unknown);
                    self.end.get_or_insert(ReceiveEnd::Failed(NetError::PeerVanished { peer, detail }));
                }
                ReceiverEvent::TcpUp { from } if self.config.one_sender => {
                    self.peer = Some(canonical(*from));
                    socket.connect_to(*from)?;
                }
                ReceiverEvent::Bye { .. } | ReceiverEvent::Vanished | ReceiverEvent::TcpUp { .. } => {}
            }
            observer.on_event(now, &event);
        }
        Ok(())
    }

    /// Reasons to stop that are not the sender's.
    fn heed(&mut self, now: Instant, stop: &AtomicBool) {
        if self.end.is_none() {
            self.end = if stop.load(Ordering::Relaxed) {
                Some(ReceiveEnd::Interrupted)
            } else if self.ends_at().is_some_and(|at| now >= at) {
                Some(match self.first_media {
                    Some(_) => ReceiveEnd::Finished,
                    None => {
                        ReceiveEnd::Failed(NetError::NoSender { port: self.config.port, waited: now.since(self.begun) })
                    }
                })
            } else {
                None
            };
        }
        if self.end.is_some() && !self.stopping {
            self.stopping = true;
            self.session.stop(now);
        }
    }

    /// When the duration, or the patience, ends.
    fn ends_at(&self) -> Option<Instant> {
        match self.first_media {
            Some(at) => self.config.duration.map(|d| at + d),
            // A sender whose TCP half is there has come, though it may have nothing to send yet.
            None if self.session.has_tcp() => None,
            None => self.config.patience.map(|p| self.begun + p),
        }
    }

    /// Asks the session until it waits; `None` when it has stopped.
    fn drain(&mut self, socket: &mut UdpSocket) -> Option<Instant> {
        if self.end.is_some() && !self.stopping {
            self.stopping = true;
            let now = self.time();
            self.session.stop(now);
        }
        loop {
            let now = self.time();
            if let Some(until) = self.outbox.blocked_until(now) {
                // A receiver that is to stop does not wait for room in the kernel.
                return (!self.stopping).then_some(until);
            }
            match self.session.poll(now) {
                Out::Datagram(d) => {
                    let mark = Mark { dscp: d.dscp, ecn: d.ecn };
                    self.outbox.push(socket, now, d.bytes, mark, d.to);
                }
                Out::Wait(until) => {
                    self.outbox.flush(socket, now);
                    return Some(until);
                }
                Out::Stopped(_) => return None,
            }
        }
    }

    /// Until when to sleep.
    fn until(&self, session: Instant, sink: &dyn FrameSink) -> Instant {
        let mut until = session.min(sink.next()).min(self.next_sample).min(self.clock.now() + LOOK_UP);
        if let Some(at) = self.ends_at() {
            until = until.min(at);
        }
        until
    }
}

/// Media on its way to a player.
#[derive(Debug)]
struct Forwarding {
    forwarder: Forwarder,
    socket: UdpSocket,
    packet: Vec<u8>,
    sent: u64,
    not_sent: u64,
    /// When its machine last said that nobody listens; `None` once somebody does.
    refused: Option<Instant>,
}

/// A player that is not there yet refuses every packet, or one a second where its kernel limits ICMP. After so
/// long without a refusal it has come.
const PLAYER_CAME: Duration = Duration::from_millis(1_200);

impl Forwarding {
    fn new(socket: UdpSocket, payload_type: u8) -> Result<Forwarding, NetError> {
        // An SSRC of our own: the player sees one stream even if the sender restarts.
        let ssrc = u32::from_ne_bytes(random()?);
        let forwarder = Forwarder::new(ssrc, payload_type);
        Ok(Forwarding { forwarder, socket, packet: Vec::new(), sent: 0, not_sent: 0, refused: None })
    }

    fn pass(&mut self, media: &MediaPacket<'_>) {
        if !self.forwarder.forward(media, &mut self.packet) {
            return;
        }
        // A player that is not there yet refuses; the refusal is about the packet before.
        let mut outcome = self.socket.send(None, &self.packet, Mark::default());
        if outcome == SendOutcome::Refused {
            self.refused = Some(media.arrived);
            outcome = self.socket.send(None, &self.packet, Mark::default());
        }
        if outcome == SendOutcome::Sent {
            self.sent += 1;
        } else {
            self.not_sent += 1;
        }
    }

    /// True once, when a player has begun to listen in the middle of the stream: it can show nothing before a
    /// key frame, and the encoder gives one in 10 s if nobody asks.
    fn player_came(&mut self, now: Instant) -> bool {
        let came = self.refused.is_some_and(|at| now.since(at) >= PLAYER_CAME);
        if came {
            self.refused = None;
        }
        came
    }
}

/// Makes one stream of a sender that starts again: its new random numbers go on where the old ones
/// stopped, one packet and the time that passed further on, so that the sink sees a gap and not
/// another century.
#[derive(Clone, Copy, Debug, Default)]
struct Splice {
    ssrc: Option<u32>,
    sequence_offset: u64,
    timestamp_offset: u32,
    /// Sequence number, timestamp and arrival of the furthest packet, as handed out.
    furthest: Option<(u64, u32, Instant)>,
}

impl Splice {
    /// Takes in a packet before its frame is assembled; true if its source is a new one.
    fn note(&mut self, packet: &MediaPacket<'_>) -> bool {
        let new = self.ssrc != Some(packet.ssrc);
        if new {
            self.ssrc = Some(packet.ssrc);
            (self.sequence_offset, self.timestamp_offset) = match self.furthest {
                None => (0, 0),
                Some((sequence, timestamp, at)) => {
                    let passed = fairpace_media::timestamp_90k(Instant::ZERO + packet.arrived.since(at));
                    let timestamp = timestamp.wrapping_add(passed.max(1));
                    ((sequence + 2).wrapping_sub(packet.sequence), timestamp.wrapping_sub(packet.timestamp))
                }
            };
        }
        let (sequence, timestamp) = self.apply(packet.sequence, packet.timestamp);
        if self.furthest.is_none_or(|(furthest, ..)| sequence > furthest) {
            self.furthest = Some((sequence, timestamp, packet.arrived));
        }
        new
    }

    fn apply(&self, sequence: u64, timestamp: u32) -> (u64, u32) {
        (sequence.wrapping_add(self.sequence_offset), timestamp.wrapping_add(self.timestamp_offset))
    }

    fn frame(&self, frame: AssembledFrame) -> ReceivedFrame {
        let (first_sequence, timestamp_90k) = self.apply(frame.first_sequence, frame.timestamp);
        let (last_sequence, _) = self.apply(frame.last_sequence, frame.timestamp);
        ReceivedFrame {
            first_sequence,
            last_sequence,
            absent_before: frame.absent_before,
            timestamp_90k,
            data: frame.data,
            key: frame.key,
            via: frame.via,
            arrival: frame.completed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(ssrc: u32, sequence: u64, timestamp: u32, ms: u64) -> MediaPacket<'static> {
        MediaPacket {
            ssrc,
            sequence,
            timestamp,
            marker: true,
            payload_type: 96,
            payload: &[],
            arrived: Instant::from_nanos(ms * 1_000_000),
            one_way_delay: None,
            retransmitted: false,
            via: Via::Udp,
            codec: Codec::Vp8,
        }
    }

    #[test]
    fn a_sender_that_starts_again_goes_on_behind_its_old_numbers() {
        let mut splice = Splice::default();
        assert!(splice.note(&packet(1, 70_000, u32::MAX - 10, 0)));
        assert!(!splice.note(&packet(1, 70_001, u32::MAX - 5, 10)));
        assert_eq!(splice.apply(70_001, u32::MAX - 5), (70_001, u32::MAX - 5), "the first is left as it is");
        // 500 ms later from another SSRC: one number is left out, 45,000 ticks pass (and wrap)
        assert!(splice.note(&packet(2, 100, 7, 510)));
        assert_eq!(splice.apply(100, 7), (70_003, 45_000 - 6));
        // a packet from before the first one received of the new source still lies behind the old ones
        assert_eq!(splice.apply(99, 7).0, 70_002);
    }
}
