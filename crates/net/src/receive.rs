//! The receiver: datagrams in, frames out to a sink, feedback back, and media passed on clean to a
//! player.
//!
//! The loop has the shape of every driver. Arrival times are the kernel's. Frames go to the sink as
//! they become complete; the sink judges what is late or lost, and says when it needs a key frame.
//!
//! A receiver serves one session ([`Receiver::run`]), one after the other ([`Sessions`]), or several at a time ([`Receiver::serve_many`]).

#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

mod config;
mod forwarding;
mod many;
mod report;
mod splice;

use crate::address::{canonical, elsewhere};
use crate::outbox::Outbox;
use crate::pacing::thread_cpu;
use crate::random::secret;
use crate::seal::{self, ReceiverSeal};
use crate::tcp_half::{MOST_CANDIDATES, MOST_READS, TcpReceiver};
use crate::{Clock, DatagramIo, Family, Mark, NetError, Received, RecvOutcome, UdpSocket, Waiter};
pub use config::ReceiveConfig;
use fairpace_media::FrameSink;
use fairpace_rtp::frames::FrameAssembler;
use fairpace_rtp::packet::{self, Packet};
use fairpace_rtp::{MediaPacket, NtpTime, Out, ReceiverConfig, ReceiverEvent, ReceiverSession, What};
use fairpace_units::{Bytes, Duration, Instant};
use forwarding::Forwarding;
pub use many::{Hall, HallReport, MOST_PLACES};
pub use report::{PacketNote, ReceiveEnd, ReceiveObserver, ReceiveReport, ReceiveSample};
use splice::Splice;
use std::net::SocketAddr;
use std::ops::DerefMut;
use std::sync::atomic::{AtomicBool, Ordering};

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
        let mut socket = socket;
        if config.session.quick_start {
            socket.look_for_quick_start()?;
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

    /// Receives until the end of the first session of a sender that counts ([`ReceiveReport::counts`]); see the module.
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
        self.begin()?.serve(Last::Whoever, sink, observer, stop)
    }

    /// Ready to serve one session after the other.
    ///
    /// # Errors
    /// What prevents the beginning.
    pub fn begin(self) -> Result<Sessions, NetError> {
        let Receiver { config, clock, socket, tcp, player } = self;
        let seal = config.key.clone().map(ReceiverSeal::new);
        let forwarding = player.map(|socket| Forwarding::new(socket, config.forward_type)).transpose()?;
        let port = Port::new(config, clock, seal, forwarding)?;
        Ok(Sessions { port, socket, tcp, waiter: Waiter::new(clock)?, buffer: vec![0; 65_536] })
    }
}

/// A receiver's sessions, one after the other: each with a sink and a record of its own. While one is closed and the next has not begun,
/// senders that ask wait, and are told so.
///
/// Sockets, key, the sender's place and the player are those of all sessions; all else is a session's own.
#[derive(Debug)]
pub struct Sessions {
    port: Port,
    socket: UdpSocket,
    tcp: Option<TcpReceiver>,
    waiter: Waiter,
    buffer: Vec<u8>,
}

/// Whether a session is the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Last {
    /// Another one follows.
    No,
    /// The last if its sender counts ([`ReceiveReport::counts`]); else the session goes on with the next sender.
    IfItCounts,
    /// The last, whoever its sender is: a tool of plain RTP is told from a forger by nothing.
    Whoever,
}

impl Sessions {
    /// The next session, until its end. If it is the last the receiver ends with it, and says so to senders that wait. The receiver ends, too, with the
    /// stop flag and where it cannot go on: [`ReceiveReport::goes_on`] tells.
    ///
    /// # Errors
    /// The kernel refuses to wait. Everything else is in [`ReceiveReport::end`].
    pub fn serve(
        &mut self,
        last: Last,
        sink: &mut dyn FrameSink,
        observer: &mut dyn ReceiveObserver,
        stop: &AtomicBool,
    ) -> Result<ReceiveReport, NetError> {
        let Sessions { port, socket, tcp, waiter, buffer } = self;
        port.session.next_session();
        let before = port.counts(socket);
        let mut run = Serving::new(port, last, false);
        let cpu = thread_cpu();
        loop {
            if let Err(e) = run.turn(socket, tcp, buffer, sink, observer, stop) {
                run.end = Some(ReceiveEnd::Failed(e));
            }
            match run.drain(socket) {
                Some(until) => {
                    let until = run.until(until, sink).min(tcp.as_ref().map_or(Instant::NEVER, TcpReceiver::next));
                    let until = until.min(run.port.clock.now() + LOOK_UP);
                    // On the stack: nothing is allocated per wait.
                    let mut sockets = [socket.descriptor(); MOST_DESCRIPTORS];
                    let others = socket.wake().into_iter();
                    let halves = tcp.iter().flat_map(|tcp| tcp.descriptors(sink.has_room()));
                    let mut n = 1;
                    for (slot, fd) in sockets[1..].iter_mut().zip(others.chain(halves)) {
                        *slot = fd;
                        n += 1;
                    }
                    waiter.wait(until, sockets.get(..n).unwrap_or(&sockets))?;
                }
                None => break,
            }
        }
        Ok(run.finish(socket, tcp.as_ref(), &before, sink, cpu))
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

/// A sender's place: the parts that all sessions share that have it one after the other.
#[derive(Debug)]
struct Port {
    config: ReceiveConfig,
    clock: Clock,
    session: ReceiverSession,
    seal: Option<ReceiverSeal>,
    outbox: Outbox,
    forwarding: Option<Forwarding>,
    /// The latest time told to the session.
    now: Instant,
    next_sample: Instant,
}

/// The counts of a port since it was opened.
#[derive(Clone, Copy)]
struct PortCounts {
    kernel_drops: u64,
    forwarded: u64,
    not_forwarded: u64,
    not_sent: u64,
    unsealed: u64,
}

impl Port {
    fn new(
        config: ReceiveConfig,
        clock: Clock,
        seal: Option<ReceiverSeal>,
        forwarding: Option<Forwarding>,
    ) -> Result<Port, NetError> {
        let session = ReceiverConfig {
            // The sender is not known yet: with both families allowed, the larger header counts.
            ip_overhead: Bytes::new(if config.family == Family::V4 { 28 } else { 48 })
                + if config.key.is_some() { seal::OVERHEAD } else { Bytes::ZERO },
            ntp_at_zero: NtpTime::from_unix(clock.unix_at_zero()),
            one_by_one: true,
            ask_proof: config.key.is_none(),
            keyed: config.key.is_some(),
            ..config.session.clone()
        };
        let now = clock.now();
        Ok(Port {
            session: ReceiverSession::new(session, secret()?),
            seal,
            outbox: Outbox::default(),
            forwarding,
            now,
            next_sample: now,
            config,
            clock,
        })
    }

    fn time(&mut self) -> Instant {
        self.now = self.now.max(self.clock.now());
        self.now
    }

    fn counts(&self, socket: &UdpSocket) -> PortCounts {
        let (forwarded, not_forwarded) = self.forwarding.as_ref().map_or((0, 0), |f| (f.sent, f.not_sent));
        PortCounts {
            kernel_drops: socket.counters().kernel_drops,
            forwarded,
            not_forwarded,
            not_sent: self.outbox.not_sent,
            unsealed: self.seal.as_ref().map_or(0, ReceiverSeal::refused),
        }
    }
}

/// One session, at a place that others have after it, or at its own.
struct Serving<P> {
    port: P,
    assembler: Option<FrameAssembler>,
    splice: Splice,
    begun: Instant,
    first_media: Option<Instant>,
    /// The first media since a sender last went that does not count: the session's duration begins here.
    timed_from: Option<Instant>,
    /// SSRC and sequence number of the media packet that came last.
    newest: Option<(u32, u16)>,
    peer: Option<SocketAddr>,
    frames: u64,
    abandoned: u64,
    last: Last,
    /// Other sessions go on at the same time: whatever ends this one, but for the stop flag, does not end the receiver.
    several: bool,
    end: Option<ReceiveEnd>,
    stopping: bool,
}

impl<P: DerefMut<Target = Port>> Serving<P> {
    fn new(mut port: P, last: Last, several: bool) -> Serving<P> {
        let begun = port.time();
        Serving {
            port,
            assembler: None,
            splice: Splice::default(),
            begun,
            first_media: None,
            timed_from: None,
            newest: None,
            peer: None,
            frames: 0,
            abandoned: 0,
            last,
            several,
            end: None,
            stopping: false,
        }
    }

    /// The record, once the session is over; `cpu` is the thread's time at its beginning.
    fn finish(
        mut self,
        socket: &mut UdpSocket,
        tcp: Option<&TcpReceiver>,
        before: &PortCounts,
        sink: &mut dyn FrameSink,
        cpu: Duration,
    ) -> ReceiveReport {
        let now = self.port.clock.now();
        self.port.outbox.flush(socket, now);
        let now = self.port.time();
        if let Err(e) = sink.finish(now) {
            // The first failure is the one to tell.
            if !matches!(self.end, Some(ReceiveEnd::Failed(_))) {
                self.end = Some(ReceiveEnd::Failed(e.into()));
            }
        }
        let goes_on = !self.ends_all();
        let elapsed = now.since(self.begun).as_secs_f64().max(1e-9);
        let cpu = thread_cpu().saturating_sub(cpu).as_secs_f64() / elapsed;
        let abandoned = self.abandoned + self.assembler.as_ref().map_or(0, FrameAssembler::abandoned_packets);
        let counts = self.port.counts(socket);
        ReceiveReport {
            elapsed: self.first_media.map_or(Duration::ZERO, |at| now.since(at)),
            peer: self.peer,
            stats: self.port.session.stats(),
            frames: self.frames,
            abandoned_packets: abandoned,
            socket: socket.counters(),
            kernel_drops: counts.kernel_drops - before.kernel_drops,
            buffers: socket.buffers(),
            tcp: tcp.map(TcpReceiver::stats),
            forwarded: counts.forwarded - before.forwarded,
            not_forwarded: counts.not_forwarded - before.not_forwarded,
            not_sent: counts.not_sent - before.not_sent,
            unsealed: counts.unsealed - before.unsealed,
            cpu,
            counts: self.sender_counts(),
            goes_on,
            end: self.end.unwrap_or(ReceiveEnd::Finished),
        }
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
            let port = &mut *self.port;
            tcp.greet(port.now.max(port.clock.now()), &mut port.session, &mut port.seal);
        }
        let mut unsealed = Vec::new();
        for _ in 0..256 {
            match socket.recv(buffer) {
                RecvOutcome::Packet(p) => {
                    let bytes = buffer.get(..p.len).unwrap_or_default();
                    // A sender goes on by UDP only when all that went by TCP is in our kernel: that comes first.
                    // Later packets are there too, if we were busy.
                    if let Some(tcp) = tcp
                        && !packet::is_rtcp(bytes)
                        && !self.take_tcp(tcp, Some(bytes), sink, observer)?
                    {
                        tcp.overtaken();
                        continue;
                    }
                    if let Some(bytes) = self.open(bytes, &p, &mut unsealed) {
                        self.datagram(bytes, &p, sink, observer)?;
                    }
                }
                RecvOutcome::Refused | RecvOutcome::Hint => {}
                RecvOutcome::Empty | RecvOutcome::Failed(_) => break,
            }
        }
        if let Some(tcp) = tcp {
            self.take_tcp(tcp, None, sink, observer)?;
        }
        self.upkeep(socket, sink, observer, stop)
    }

    /// The datagram without its seal; `None` if the key does not open it.
    fn open<'b>(&mut self, bytes: &'b [u8], about: &Received, unsealed: &'b mut Vec<u8>) -> Option<&'b [u8]> {
        let port = &mut *self.port;
        port.now = port.now.max(about.at);
        match &mut port.seal {
            Some(seal) => seal.open(bytes, canonical(about.from), seal::draw, unsealed),
            None => Some(bytes),
        }
    }

    /// A datagram has come.
    fn datagram(
        &mut self,
        bytes: &[u8],
        about: &Received,
        sink: &mut dyn FrameSink,
        observer: &mut dyn ReceiveObserver,
    ) -> Result<(), NetError> {
        let media = self.judge(bytes, about);
        self.pass_on(media, about, sink, observer)
    }

    /// A datagram has come; the media in it, if its source is believed.
    fn judge<'b>(&mut self, bytes: &'b [u8], about: &Received) -> Option<MediaPacket<'b>> {
        if let Some(option) = about.quick_start {
            self.port.session.note_quick_start(option);
        }
        let now = self.port.now;
        self.port.session.handle_datagram(now, bytes, about.mark.dscp, about.mark.ecn, about.from)
    }

    /// The media of a datagram goes to the sink, and what follows from it and from repair packets.
    fn pass_on(
        &mut self,
        media: Option<MediaPacket<'_>>,
        about: &Received,
        sink: &mut dyn FrameSink,
        observer: &mut dyn ReceiveObserver,
    ) -> Result<(), NetError> {
        if let Some(media) = media {
            self.on_first_media(self.port.now);
            self.media(&media, about.at, sink, observer)?;
        }
        let mut buffer = Vec::new();
        while let Some(media) = self.port.session.next_recovered(&mut buffer) {
            self.media(&media, about.at, sink, observer)?;
        }
        Ok(())
    }

    /// All that is due, behind what has come.
    fn upkeep(
        &mut self,
        socket: &mut UdpSocket,
        sink: &mut dyn FrameSink,
        observer: &mut dyn ReceiveObserver,
        stop: &AtomicBool,
    ) -> Result<(), NetError> {
        let now = self.port.time();
        if sink.next() <= now || socket.wake().is_some() {
            sink.poll(now)?;
        }
        if let Some(answer) = self.port.session.rtt() {
            sink.set_answer_time(answer);
        }
        if let Some(interval) = self.port.session.frame_interval() {
            sink.set_frame_interval(interval);
        }
        if let Some(delay) = sink.playout_delay() {
            self.port.session.set_playout(now, delay);
        }
        self.port.session.forget_before(self.splice.own(sink.given_up_before()));
        if sink.take_key_request(now) {
            self.port.session.request_key_frame(now);
        }
        self.events(socket, observer)?;
        self.check_end(now, stop);
        if now >= self.port.next_sample {
            let port = &mut *self.port;
            while port.next_sample <= now {
                port.next_sample += port.config.sample;
            }
            let (stats, frames) = (self.port.session.stats(), self.frames);
            let PortCounts { kernel_drops, unsealed, .. } = self.port.counts(socket);
            let fates = sink.fates();
            observer.on_sample(&ReceiveSample { at: now, stats, frames, fates, kernel_drops, unsealed });
        }
        Ok(())
    }

    /// Takes the data that has come by TCP, up to the media that this datagram goes on from, as far as the sink has room;
    /// `false` if there is more.
    fn take_tcp(
        &mut self,
        tcp: &mut TcpReceiver,
        before: Option<&[u8]>,
        sink: &mut dyn FrameSink,
        observer: &mut dyn ReceiveObserver,
    ) -> Result<bool, NetError> {
        let (mut reads, mut unsealed) = (MOST_READS, Vec::new());
        while sink.has_room() {
            if before.is_some_and(|datagram| self.is_next(datagram)) {
                return Ok(true);
            }
            let Some(packet) = tcp.next_packet(&mut reads) else { return Ok(true) };
            let port = &mut *self.port;
            let opened = match (&mut port.seal, port.session.peer()) {
                (Some(seal), Some(peer)) => seal.open(packet, canonical(peer), seal::draw, &mut unsealed),
                (Some(_), None) => None,
                (None, _) => Some(packet),
            };
            let Some(packet) = opened else { continue };
            self.port.now = self.port.now.max(self.port.clock.now());
            let now = self.port.now;
            if let Some(media) = self.port.session.handle_tcp_packet(now, packet) {
                self.on_first_media(now);
                self.media(&media, now, sink, observer)?;
            }
        }
        Ok(!tcp.has_more())
    }

    const fn on_first_media(&mut self, now: Instant) {
        if self.timed_from.is_none() {
            self.timed_from = Some(now);
        }
        if self.first_media.is_none() {
            self.first_media = self.timed_from;
        }
    }

    /// Whether a datagram is the media packet behind the newest one.
    fn is_next(&self, datagram: &[u8]) -> bool {
        let next = self.newest.map(|(ssrc, sequence)| (ssrc, sequence.wrapping_add(1)));
        Packet::parse(datagram).is_ok_and(|packet| next == Some((packet.ssrc, packet.sequence)))
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
            recovered: packet.recovered,
            via: packet.via,
        });
        if !(packet.retransmitted || packet.recovered) {
            self.newest = Some((packet.ssrc, packet.sequence as u16));
        }
        let port = &mut *self.port;
        if let Some(forwarding) = &mut port.forwarding {
            forwarding.pass(packet);
            if forwarding.player_came(packet.arrived) {
                port.session.request_key_frame(port.now);
            }
        }
        if self.splice.note(packet) {
            // Frames of two sources do not mix.
            self.abandoned += self.assembler.take().map_or(0, |a| a.abandoned_packets());
        }
        let hold = self.port.config.frame_hold;
        let assembler = self.assembler.get_or_insert_with(|| FrameAssembler::new(packet.codec, hold));
        assembler.push(packet);
        while let Some(frame) = assembler.next_frame() {
            self.frames += 1;
            sink.on_frame(self.port.now, self.splice.frame(frame))?;
        }
        Ok(())
    }

    fn events(&mut self, socket: &mut UdpSocket, observer: &mut dyn ReceiveObserver) -> Result<(), NetError> {
        let now = self.port.now;
        while let Some(event) = self.port.session.next_event() {
            match &event {
                ReceiverEvent::NewSource { from, .. } => {
                    self.peer = Some(canonical(*from));
                }
                ReceiverEvent::Bye { .. } | ReceiverEvent::Vanished if self.goes_on_after_its_sender() => {
                    self.port.session.same_session();
                    self.timed_from = None;
                    observer.on_event(now, &event);
                    observer.on_uncounted(now);
                    continue;
                }
                ReceiverEvent::Bye { reason } => {
                    self.end.get_or_insert(ReceiveEnd::Bye(reason.clone()));
                }
                ReceiverEvent::Replaced if self.last != Last::No => {
                    if !self.sender_counts() {
                        self.timed_from = None;
                    }
                    self.port.session.same_session();
                }
                ReceiverEvent::Replaced => {
                    self.end.get_or_insert(ReceiveEnd::Replaced);
                }
                ReceiverEvent::Vanished => {
                    let detail = format!("nothing came for {} s", self.port.config.session.vanish_after.as_secs_f64());
                    let unknown = SocketAddr::from(([0, 0, 0, 0], 0));
                    let peer = self.peer.unwrap_or(unknown);
                    self.end.get_or_insert(ReceiveEnd::Failed(NetError::PeerVanished { peer, detail }));
                }
                ReceiverEvent::TcpUp { from } if self.port.config.one_sender => {
                    self.peer = Some(canonical(*from));
                    socket.connect_to(*from)?;
                }
                ReceiverEvent::TcpUp { .. } | ReceiverEvent::NotTold { .. } => {}
            }
            observer.on_event(now, &event);
        }
        Ok(())
    }

    /// Whether the sender is one of those that the receiver was started for: somebody is there.
    fn sender_counts(&self) -> bool {
        self.port.config.key.is_some() || !self.port.config.session.from.is_empty() || self.port.session.stats().proven
    }

    /// Nobody who forges addresses ends a receiver of several sessions.
    fn goes_on_after_its_sender(&self) -> bool {
        self.last == Last::IfItCounts && self.end.is_none() && !self.sender_counts()
    }

    /// Reasons to stop that are not the sender's.
    fn check_end(&mut self, now: Instant, stop: &AtomicBool) {
        if self.end.is_none() {
            self.end = if stop.load(Ordering::Relaxed) {
                Some(ReceiveEnd::Interrupted)
            } else if self.ends_at().is_some_and(|at| now >= at) {
                Some(match self.first_media {
                    Some(_) => ReceiveEnd::Finished,
                    None => ReceiveEnd::Failed(NetError::NoSender {
                        port: self.port.config.port,
                        waited: now.since(self.begun),
                    }),
                })
            } else {
                None
            };
        }
        self.close(now);
    }

    /// Says goodbye, once there is an end.
    fn close(&mut self, now: Instant) {
        if self.end.is_none() || self.stopping {
            return;
        }
        self.stopping = true;
        if self.ends_all() {
            self.port.session.stop(now);
        } else {
            self.port.session.dismiss(now);
        }
    }

    /// Whether the receiver ends with this session.
    fn ends_all(&self) -> bool {
        self.last != Last::No
            || match &self.end {
                Some(ReceiveEnd::Bye(_) | ReceiveEnd::Finished | ReceiveEnd::Replaced) | None => false,
                Some(ReceiveEnd::Interrupted) => true,
                Some(ReceiveEnd::Failed(e)) => !self.several && !matches!(e, NetError::PeerVanished { .. }),
            }
    }

    /// When the duration, or the patience, ends.
    fn ends_at(&self) -> Option<Instant> {
        match self.first_media {
            Some(_) if self.goes_on_after_its_sender() => None,
            Some(_) => self.timed_from.zip(self.port.config.duration).map(|(at, d)| at + d),
            // A sender whose TCP half is there has come, though it may have nothing to send yet.
            None if self.port.session.has_tcp() => None,
            None => self.port.config.patience.map(|p| self.begun + p),
        }
    }

    /// Asks the session until it waits; `None` when it has stopped.
    fn drain(&mut self, socket: &mut UdpSocket) -> Option<Instant> {
        let now = self.port.time();
        self.close(now);
        loop {
            let port = &mut *self.port;
            let now = port.time();
            if let Some(until) = port.outbox.blocked_until(now) {
                // A receiver that is to stop does not wait for room in the kernel.
                return (!self.stopping).then_some(until);
            }
            match port.session.poll(now) {
                Out::Datagram(d) => {
                    let mark = Mark { dscp: d.dscp, ecn: d.ecn };
                    let sealed = match (&mut port.seal, d.to) {
                        (Some(seal), Some(to)) => seal.seal(d.what, d.bytes, canonical(to)),
                        (Some(_), None) => None,
                        (None, _) => Some(d.bytes),
                    };
                    match sealed {
                        // An answer decides whether anything is sent at all: a router that drops a batch for a large report in it does
                        // not take it along.
                        Some(bytes) if d.what == What::Echo => port.outbox.push_alone(socket, now, bytes, mark, d.to),
                        Some(bytes) => port.outbox.push(socket, now, bytes, mark, d.to),
                        None => {}
                    }
                }
                Out::Wait(until) => {
                    port.outbox.flush(socket, now);
                    let is_over = self.stopping && !self.ends_all() && self.port.session.peer().is_none();
                    return (!is_over).then_some(until);
                }
                Out::Stopped(_) => return None,
            }
        }
    }

    /// Until when to sleep.
    fn until(&self, session: Instant, sink: &dyn FrameSink) -> Instant {
        let mut until = session.min(sink.next()).min(self.port.next_sample);
        // A farewell has times of its own.
        if let Some(at) = self.ends_at().filter(|_| !self.stopping) {
            until = until.min(at);
        }
        until
    }
}
