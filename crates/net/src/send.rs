//! The paced sender: frames from a source, through an RTP session, onto a socket.
//!
//! The loop has the shape of every driver: hand in what happened (datagrams, frames), drain the
//! session, sleep. The source is not asked for a frame before the peer has answered the challenge:
//! nothing is captured that must not be sent yet.
//!
//! The session is ended by the source or the duration (after all waiting data has left), the stop flag, the peer's
//! BYE, or an error that is the peer's (exit code 5) or the circuit breaker's (6). The report is complete in each
//! case.
//!
//! [`run`] sends one stream, [`run_many`] several on one thread, with one timer; each is a session of its own.

mod adaptation;
mod config;
mod ended;
mod many;
mod report;

use crate::outbox::Outbox;
use crate::pacing::thread_cpu;
use crate::random::secret;
use crate::seal::{self, SenderSeal};
use crate::tcp_half::{TcpEnd, TcpSender};
use crate::{Clock, DatagramIo, LatenessHistogram, MAX_BATCH, Mark, NetError, RecvOutcome, UdpSocket, Waiter};
pub use adaptation::{ADAPTATIONS, Adaptation, BUFFER, BadAdaptation, ENCODER_RATE, LEAD};
pub use config::{MAX_QUANTUM, MakeController, SendConfig};
use fairpace_control::feedback::Form;
use fairpace_control::quick_start::QsVerdict;
use fairpace_media::{Format, FrameSource};
use fairpace_rtp::{Frame, NtpTime, Out, SenderConfig, SenderEvent, SenderSession, StopReason, What};
use fairpace_units::{Bytes, Dscp, Duration, Ecn, Instant, Rate, Via, format_duration};
pub use many::{Stream, run_many};
use nix::errno::Errno;
pub use report::{QuickStartReport, SendEnd, SendObserver, SendReport, SendSample};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

/// Sends until the end; see the module. If this machine's device carries less than the packet size, packets are as large as it
/// carries from the beginning, the controller's too.
///
/// # Errors
/// What prevents the beginning: no such controller, a packet size out of range, no socket, no route, no right to set IP options where
/// Quick-Start is asked for. Any later fault is in [`SendReport::end`].
pub fn run(
    config: &SendConfig,
    clock: Clock,
    source: &mut dyn FrameSource,
    observer: &mut dyn SendObserver,
    stop: &AtomicBool,
) -> Result<SendReport, NetError> {
    config.check()?;
    let mut socket = UdpSocket::connect(config.peer, config.buffers, clock)?;
    let mut config = config.clone();
    fit_to_device(&mut config, &socket, clock, observer)?;
    run_on(&mut socket, &config, clock, source, observer, stop)
}

/// Makes packets as large as the socket's device carries, if that is less than the configuration says.
fn fit_to_device(
    config: &mut SendConfig,
    socket: &UdpSocket,
    clock: Clock,
    observer: &mut dyn SendObserver,
) -> Result<(), NetError> {
    let mut room = socket.device_mtu();
    if config.quick_start.is_some() {
        socket.may_quick_start()?;
        // A packet with the option is as long as the device carries, too.
        room = room.map(|mtu| Bytes::new(mtu.get().saturating_sub(OPTION_ROOM)));
    }
    if config.cut(room) {
        observer.on_event(clock.now(), &SenderEvent::PacketSize(config.session.packet_size));
    }
    Ok(())
}

/// As [`run`], on a socket that is already connected to the peer.
///
/// # Errors
/// As [`run`].
pub fn run_on(
    io: &mut impl DatagramIo,
    config: &SendConfig,
    clock: Clock,
    source: &mut dyn FrameSource,
    observer: &mut dyn SendObserver,
    stop: &AtomicBool,
) -> Result<SendReport, NetError> {
    let mut run = Running::begin(config, clock, source.format())?;
    let cpu = thread_cpu();
    let mut waiter = Waiter::new(clock)?;
    let mut buffer = vec![0; DATAGRAM];
    let mut readable = true;
    let reason = loop {
        match run.turn(io, source, &mut buffer, readable, stop) {
            Drained::Wait(until) => {
                run.notify(source, observer);
                let until = run.until(until, source);
                // Woken by the timer alone, there is nothing to read, and a paced packet must not wait for that.
                readable = run.sleep(&mut waiter, until, io, source)?;
            }
            Drained::Stopped(reason) => break reason,
        }
    };
    Ok(run.finish(io, source, observer, reason, thread_cpu().saturating_sub(cpu)))
}

/// Bytes by which a Quick-Start option makes a packet longer, at most: IPv6's header of hop-by-hop options.
const OPTION_ROOM: u64 = 16;
/// The stop flag is looked at this often, if nothing else happens.
const LOOK_UP: Duration = Duration::from_millis(50);
/// Bytes of the longest datagram, and more.
const DATAGRAM: usize = 65_536;
/// Packets that a receiver tells of.
const TOLD_OF: [What; 4] = [What::Media, What::Retransmission, What::Fec, What::Dummy];
/// That the last byte given to TCP is acknowledged is no event of the socket's: it is looked at this often.
const DRAINING: Duration = Duration::from_millis(1);
/// The last packets' feedback is awaited for a round trip and this.
const LINGER: Duration = Duration::from_millis(100);
/// T10: a refusal may be forged; three within this time are news.
const REFUSALS: usize = 3;
const REFUSALS_WITHIN: Duration = Duration::from_secs(5);

enum Drained {
    Wait(Instant),
    Stopped(StopReason),
}

struct Running<'a> {
    config: &'a SendConfig,
    clock: Clock,
    session: SenderSession,
    seal: Option<SenderSeal>,
    outbox: Outbox,
    tcp: Option<TcpSender>,
    /// How the TCP half ended, if it has.
    tcp_end: Option<TcpEnd>,
    /// The transport of the last packet.
    via: Via,
    switches: u64,
    /// Not told yet.
    switched: Option<Via>,
    /// The latest time told to the session.
    now: Instant,
    begun: Instant,
    validated: Option<(Duration, Option<Dscp>)>,
    validated_at: Option<Instant>,
    /// When the first packet left that feedback tells of.
    told_of_since: Option<Instant>,
    /// Packets that the receiver would tell of and that left since it last told of any, and when the first did.
    untold: Option<(Instant, u64)>,
    /// Packets acknowledged so far.
    acked: u64,
    /// When the peer was last heard.
    heard: Instant,
    refusals: VecDeque<Instant>,
    told_rate: Option<Rate>,
    /// The first verdict on a Quick-Start request, and when it came.
    quick_start: Option<(Duration, QsVerdict)>,
    captures: Captures,
    /// When the session wanted to be asked next.
    planned: Option<Instant>,
    lateness: LatenessHistogram,
    next_sample: Instant,
    /// The source has ended: stop when the queue is empty, and at the second instant anyway.
    leaving: Option<Leaving>,
    end: Option<SendEnd>,
}

/// The pictures of a source, by the times at which its frames were taken.
#[derive(Clone, Copy, Debug, Default)]
struct Captures {
    frames: u64,
    first: Option<Instant>,
    last: Instant,
    interval: Duration,
}

impl Captures {
    fn note(&mut self, capture: Instant, interval: Duration) {
        self.frames += 1;
        self.first.get_or_insert(capture);
        (self.last, self.interval) = (self.last.max(capture), interval);
    }

    /// From the first frame to the last, those left out included.
    fn count(&self) -> u64 {
        let span = self.first.map_or(Duration::ZERO, |first| self.last.since(first));
        let intervals = (span + self.interval / 2).as_nanos() / self.interval.as_nanos().max(1);
        if self.interval.is_zero() {
            self.frames
        } else {
            self.frames.max(intervals as u64 + u64::from(self.frames > 0))
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Leaving {
    at_most: Instant,
    /// Since when nothing waits.
    empty_since: Option<Instant>,
}

impl<'a> Running<'a> {
    /// A session that has not sent anything yet, of frames of that format.
    fn begin(config: &'a SendConfig, clock: Clock, format: Format) -> Result<Running<'a>, NetError> {
        if config.sample.is_zero() {
            return Err(NetError::Config {
                field: "sample",
                found: "0 s".to_owned(),
                allowed: "longer than zero".to_owned(),
            });
        }
        if config.quantum > MAX_QUANTUM {
            return Err(NetError::Config {
                field: "quantum",
                found: format_duration(config.quantum),
                allowed: format!("at most {}", format_duration(MAX_QUANTUM)),
            });
        }
        let ntp_at_zero = NtpTime::from_unix(clock.unix_at_zero());
        let session = SenderConfig {
            ntp_at_zero,
            refreshes: format.follows_rate,
            // A stream that is encoded already has times of its own.
            frame_interval: Some(format.frame_interval).filter(|interval| format.follows_rate && !interval.is_zero()),
            ..config.wire_session()?
        };
        let session = config.adaptation.apply(session);
        let draw = || seal::draw().ok_or_else(|| NetError::io("read random bits", Errno::EIO));
        let seal = config.key.clone().map(|key| Ok::<_, NetError>(SenderSeal::new(key, draw()?))).transpose()?;
        let session = SenderSession::new(session, config.flow()?, secret()?);
        let via = session.flow().via();
        let now = clock.now();
        Ok(Running {
            config,
            clock,
            session,
            seal,
            outbox: Outbox::default(),
            tcp: None,
            tcp_end: None,
            via,
            switches: 0,
            switched: None,
            now,
            begun: now,
            validated: None,
            validated_at: None,
            told_of_since: None,
            untold: None,
            acked: 0,
            heard: now,
            refusals: VecDeque::new(),
            told_rate: None,
            quick_start: None,
            captures: Captures::default(),
            planned: None,
            lateness: LatenessHistogram::new(),
            next_sample: now,
            leaving: None,
            end: None,
        })
    }

    /// Once round: what has come, what is due. `readable`: datagrams may have come.
    fn turn(
        &mut self,
        io: &mut impl DatagramIo,
        source: &mut dyn FrameSource,
        buffer: &mut [u8],
        readable: bool,
        stop: &AtomicBool,
    ) -> Drained {
        if readable {
            self.receive(io, buffer);
        }
        self.tcp(io);
        self.check_end(stop);
        self.frames(source);
        self.drain(io)
    }

    /// The record, once the session has stopped; `cpu` is the time that it took.
    fn finish(
        mut self,
        io: &mut impl DatagramIo,
        source: &mut dyn FrameSource,
        observer: &mut dyn SendObserver,
        reason: StopReason,
        cpu: Duration,
    ) -> SendReport {
        self.notify(source, observer);
        self.outbox.flush(io, self.clock.now());
        let elapsed = self.clock.now().since(self.begun).as_secs_f64().max(1e-9);
        self.report(io, reason, cpu.as_secs_f64() / elapsed)
    }

    fn time(&mut self) -> Instant {
        self.now = self.now.max(self.clock.now());
        self.now
    }

    /// Everything that has come, each at the time the kernel got it.
    fn receive(&mut self, io: &mut impl DatagramIo, buffer: &mut [u8]) {
        // A flood must not keep the sender from sending.
        for _ in 0..256 {
            match io.recv(buffer) {
                RecvOutcome::Packet(p) => {
                    if p.from != self.config.peer {
                        continue;
                    }
                    self.now = self.now.max(p.at);
                    let bytes = buffer.get(..p.len).unwrap_or_default();
                    let opened = match &mut self.seal {
                        Some(seal) => seal.open(bytes),
                        None => Some(bytes),
                    };
                    let Some(bytes) = opened else { continue };
                    self.heard = self.heard.max(p.at);
                    self.session.handle_datagram(self.now, bytes, p.mark.dscp, p.mark.ecn);
                    let counters = self.session.flow().counters();
                    let acked = counters.data.acked + counters.dummy.acked;
                    // These two acknowledge no packet.
                    let reports = matches!(self.session.feedback_form(), Form::Reports | Form::RtpTfrc);
                    if acked > self.acked || reports {
                        self.untold = None;
                    }
                    self.acked = acked;
                }
                RecvOutcome::Refused => self.refused(1),
                RecvOutcome::Hint => {}
                RecvOutcome::Empty | RecvOutcome::Failed(_) => break,
            }
        }
    }

    fn refused(&mut self, times: u32) {
        for _ in 0..times {
            let now = self.time();
            self.refusals.push_back(now);
            if self.refusals.len() > REFUSALS {
                self.refusals.pop_front();
            }
        }
    }

    /// Whether the peer's machine says that nobody listens, and nobody does.
    fn is_gone(&self) -> bool {
        let (Some(first), Some(last)) = (self.refusals.front(), self.refusals.back()) else { return false };
        self.refusals.len() == REFUSALS
            && last.since(*first) <= REFUSALS_WITHIN
            && last.since(self.heard) >= self.config.refused_silence
    }

    /// Reasons to stop that are not the session's.
    fn check_end(&mut self, stop: &AtomicBool) {
        let now = self.time();
        if self.end.is_some() {
            return;
        }
        if stop.load(Ordering::Relaxed) {
            self.stop(now, SendEnd::Interrupted);
        } else if self.validated.is_some() && self.is_gone() {
            let silence = format_duration(now.since(self.heard));
            let detail = format!("its machine says that nobody listens there, and it was silent for {silence}");
            self.stop(now, SendEnd::Failed(NetError::PeerVanished { peer: self.config.peer, detail }));
        } else if let (Some(from), Some(duration)) = (self.validated_at, self.config.duration)
            && now >= from + duration
        {
            self.leave(now);
        }
        if let Some(mut leaving) = self.leaving {
            let in_tcp = self.tcp.as_ref().is_some_and(|tcp| !tcp.is_drained());
            if self.session.queue_len().0 > 0 || in_tcp {
                leaving.empty_since = None;
            } else {
                leaving.empty_since.get_or_insert(now);
            }
            self.leaving = Some(leaving);
            if now >= self.left_at(&leaving) {
                self.stop(now, SendEnd::Finished);
            }
        }
    }

    fn left_at(&self, leaving: &Leaving) -> Instant {
        let linger = self.session.flow().srtt().unwrap_or_default() + LINGER;
        leaving.empty_since.map_or(leaving.at_most, |since| leaving.at_most.min(since + linger))
    }

    fn leave(&mut self, now: Instant) {
        let at_most = now + self.config.leave_within;
        self.leaving.get_or_insert(Leaving { at_most, empty_since: None });
    }

    fn stop(&mut self, now: Instant, end: SendEnd) {
        self.end = Some(end);
        self.session.stop(now);
    }

    /// Frames that are due go into the session.
    fn frames(&mut self, source: &mut dyn FrameSource) {
        let now = self.time();
        if !self.takes_frames(source) {
            return;
        }
        let rate = self.encoder_rate();
        if self.told_rate != Some(rate) {
            source.set_rate(rate);
            self.told_rate = Some(rate);
        }
        while self.takes_frames(source) && source.next_frame_at() <= now {
            match source.next_frame(now) {
                Ok(Some(f)) => {
                    self.captures.note(f.capture, source.format().frame_interval);
                    let frame = Frame { data: f.data, timestamp_90k: f.timestamp_90k, key: f.key };
                    self.session.push_frame(now, frame);
                }
                Ok(None) => break,
                Err(e) => {
                    self.stop(now, SendEnd::Failed(NetError::Media(e)));
                    return;
                }
            }
        }
        if source.next_frame_at() == Instant::NEVER {
            self.leave(now);
        }
    }

    /// The rate that the encoder is asked for.
    fn encoder_rate(&self) -> Rate {
        match self.config.adaptation {
            Adaptation::Buffer { rate, .. } => rate,
            Adaptation::Encoder | Adaptation::Unbuffered => self.session.media_rate(),
        }
    }

    /// Whether the source is to be asked for frames.
    fn takes_frames(&self, source: &dyn FrameSource) -> bool {
        let has_room = match (self.config.queue_limit, self.config.adaptation) {
            (Some(limit), _) => self.session.queue_len().1 < limit,
            // A source that is encoded already cannot leave a picture out.
            _ if !source.format().follows_rate => true,
            (None, Adaptation::Encoder) => self.session.wants_frame(),
            // The buffer has room or drops.
            (None, Adaptation::Buffer { .. }) => true,
            (None, Adaptation::Unbuffered) => self.session.wants_frame() && self.session.queue_len().0 == 0,
        };
        let is_over = self.leaving.is_some() || self.end.is_some();
        self.session.is_connected() && self.validated.is_some() && !is_over && has_room
    }

    /// The TCP half's share of a turn.
    fn tcp(&mut self, io: &impl DatagramIo) {
        if self.tcp_end.is_some() || (self.tcp.is_none() && !self.session.wants_tcp()) {
            return;
        }
        let now = self.time();
        if self.tcp.is_none() {
            let tos = self.config.session.data_dscp.tos(Ecn::NotEct);
            let size = self.config.session.packet_size;
            match TcpSender::connect(io.local_ip(), self.config.peer, size, tos, &self.config.tcp) {
                Ok(tcp) => self.tcp = Some(tcp),
                Err(e) => return self.stop(now, SendEnd::Failed(e)),
            }
        }
        if let Some(tcp) = &mut self.tcp
            && let Err(end) = tcp.turn(now, &mut self.session, &mut self.seal)
        {
            self.tcp_is_over(now, end);
        }
    }

    /// Whether there is a TCP connection to look at.
    const fn has_tcp(&self) -> bool {
        self.tcp.is_some() && self.tcp_end.is_none()
    }

    fn tcp_is_over(&mut self, now: Instant, end: TcpEnd) {
        self.tcp_end = Some(end);
        self.session.on_tcp_closed(now);
    }

    /// Sleeps until the instant, or until a socket or the source's thread has news; `true` if the datagrams' may have.
    fn sleep(
        &self,
        waiter: &mut Waiter,
        until: Instant,
        io: &impl DatagramIo,
        source: &dyn FrameSource,
    ) -> Result<bool, NetError> {
        // On the stack: nothing is allocated per wait.
        let until = until.min(self.clock.now() + LOOK_UP);
        let mut sockets = [io.descriptor(); 3];
        let (mut n, mut room) = (1, 0);
        if let Some(tcp) = self.tcp.as_ref().filter(|_| self.tcp_end.is_none()) {
            sockets[n] = tcp.descriptor();
            room |= u64::from(tcp.awaits_room()) << n;
            n += 1;
        }
        if let Some(wake) = io.wake().filter(|_| self.takes_frames(source)) {
            sockets[n] = wake;
            n += 1;
        }
        // A datagram that comes within a quantum or two is read, with its time of arrival, when they are over:
        // packets are due then.
        if n == 1 && until.since(self.clock.now()) <= self.config.quantum * 2 {
            waiter.sleep(until)?;
            return Ok(true);
        }
        let woken = waiter.wait_for_room(until, &sockets[..n], room)?;
        Ok(woken.readable & 1 == 1)
    }

    /// The device, or a message, says that packets were too large.
    fn heed_mtu(&mut self, io: &mut impl DatagramIo) {
        if let Some((len, mtu)) = self.outbox.too_large.take() {
            self.session.on_too_large(self.now, len, mtu);
        }
        if let Some(mtu) = io.take_mtu_hint() {
            self.session.hint_path_mtu(self.now, mtu);
        }
    }

    /// Asks the session until it waits.
    fn drain(&mut self, io: &mut impl DatagramIo) -> Drained {
        // At most as many packets at one go as a second has milliseconds: then the socket is looked at again.
        const BUDGET: usize = 1_000;
        let mut given = 0;
        loop {
            // Packets of one batch leave at one time.
            if self.config.quantum.is_zero() || given % MAX_BATCH == 0 {
                self.time();
            }
            let now = self.now;
            if let Some(until) = self.outbox.blocked_until(now) {
                return Drained::Wait(until);
            }
            match self.session.poll(now) {
                Out::Datagram(d) => {
                    if d.what == What::Media && d.via != self.via {
                        self.via = d.via;
                        self.switches += 1;
                        self.switched = Some(d.via);
                    }
                    let sealed = match &mut self.seal {
                        Some(seal) => seal.seal(d.what, d.bytes),
                        None => Some(d.bytes),
                    };
                    let Some(bytes) = sealed else { continue };
                    if TOLD_OF.contains(&d.what) {
                        self.told_of_since.get_or_insert(now);
                        self.untold.get_or_insert((now, 0)).1 += 1;
                    }
                    if d.via == Via::Tcp {
                        // The last datagrams before it first: TCP's window would overtake them.
                        self.outbox.flush(io, now);
                        let pushed = self.tcp.as_mut().map(|tcp| tcp.push(bytes));
                        match pushed {
                            Some(Ok(room)) => self.session.set_tcp_room(room),
                            Some(Err(end)) => self.tcp_is_over(now, end),
                            None => {}
                        }
                        given += 1;
                        if given < BUDGET {
                            continue;
                        }
                        self.outbox.flush(io, now);
                        return Drained::Wait(now);
                    }
                    if let Some(planned) = self.planned.take()
                        && planned <= now
                        && matches!(d.what, What::Media | What::Dummy)
                    {
                        self.lateness.record(now.since(planned));
                    }
                    let mark = Mark { dscp: d.dscp, ecn: d.ecn };
                    self.outbox.set_fragments(io, now, d.fragments);
                    match &d.quick_start {
                        Some(option) => self.outbox.push_option(io, now, bytes, mark, option),
                        None if TOLD_OF.contains(&d.what) => self.outbox.push(io, now, bytes, mark, None),
                        // Behind a packet that is too large for the path they would be lost with it: then nothing tells that it is the
                        // size, and the path seems dead.
                        None => self.outbox.push_alone(io, now, bytes, mark, None),
                    }
                    self.heed_mtu(io);
                    given += 1;
                    if given < BUDGET {
                        continue;
                    }
                    self.outbox.flush(io, now);
                    return Drained::Wait(now);
                }
                Out::Wait(until) => {
                    if self.session.is_draining()
                        && let Some(Err(end)) = self.tcp.as_mut().map(TcpSender::drain)
                    {
                        self.tcp_is_over(now, end);
                    }
                    self.outbox.flush(io, now);
                    self.heed_mtu(io);
                    let refused = std::mem::take(&mut self.outbox.refused);
                    self.refused(refused);
                    self.planned = Some(until);
                    return Drained::Wait(until);
                }
                Out::Stopped(reason) => return Drained::Stopped(reason),
            }
        }
    }

    /// Passes news on to the source and the observer.
    fn notify(&mut self, source: &mut dyn FrameSource, observer: &mut dyn SendObserver) {
        let now = self.now;
        if let Some(via) = self.switched.take() {
            observer.on_switch(now, via);
        }
        while let Some(event) = self.session.next_event() {
            match event {
                SenderEvent::PeerValidated { srtt, dscp_seen } => {
                    self.validated = Some((srtt, dscp_seen));
                    self.validated_at = Some(now);
                }
                SenderEvent::KeyFrameRequest => source.request_key_frame(),
                SenderEvent::QuickStart(verdict) => {
                    self.quick_start.get_or_insert((now.since(self.begun), verdict));
                }
                _ => {}
            }
            observer.on_event(now, &event);
        }
        if self.config.trace {
            for event in self.session.flow_mut().drain_events() {
                observer.on_flow_event(&event);
            }
        }
        if now >= self.next_sample {
            while self.next_sample <= now {
                self.next_sample += self.config.sample;
            }
            let status = self.session.flow().status();
            observer.on_sample(&SendSample {
                at: now,
                state: status.state,
                reason: status.reason,
                via: self.session.flow().via(),
                rate: status.rate,
                media_rate: self.encoder_rate(),
                protection: self.session.protection(),
                srtt: self.session.flow().srtt(),
                rto: self.session.flow().rto(),
                tcp_cwnd: self.tcp.as_ref().and_then(TcpSender::cwnd),
                adaptation: self.config.adaptation,
                queue: self.session.queue_len(),
                queue_wait: self.session.queue_wait(),
                queue_stats: self.session.stats().queue,
                flow: *self.session.flow().counters(),
            });
        }
    }

    /// Until when to sleep.
    fn until(&mut self, session: Instant, source: &dyn FrameSource) -> Instant {
        let mut until = session.min(self.next_sample);
        if self.takes_frames(source) {
            until = until.min(source.next_frame_at());
        }
        if self.session.is_draining() {
            until = until.min(self.clock.now() + DRAINING);
        }
        if self.leaving.is_none()
            && self.end.is_none()
            && let (Some(from), Some(duration)) = (self.validated_at, self.config.duration)
        {
            until = until.min(from + duration);
        }
        // Once it has left, the time at which it might is over.
        if let Some(leaving) = self.leaving.filter(|_| self.end.is_none()) {
            until = until.min(self.left_at(&leaving));
        }
        until
    }
}
