//! The receiving side: datagrams in, media out; feedback, reports and requests back.
//!
//! One session serves one sender at a time; a receiver of several has a session for each, and a [`Door`] in front. Who sent a challenge has the place while its consent may last: until 30 s of silence,
//! or 10 s after the challenge if no media has come. A tool without challenges, whose first two RTP packets in sequence take the place,
//! holds the place until 2 s of silence. Other addresses are told that the place is held, and the newest challenge among theirs is
//! answered as soon as the place is free. A challenge that names the same stream, or comes from the same machine, waits for 2 s of
//! silence only, and one from the same address for nothing: so a sender that was killed, or whose address has changed, goes on. Whoever takes an announced
//! sender's place has to show that it sees what goes to its address ([`crate::challenge`]). To no address goes more than three times what
//! came from it.
//!
//! With [`ReceiverConfig::one_by_one`] a session is closed before the next sender is let in: the driver writes down what came, and says
//! [`ReceiverSession::next_session`]. Who waits when the receiver ends is told so.
//!
//! Streams are told apart as the challenge announced them, or else by the default payload types, so that
//! plain RTP from another tool is received too (without nonces, and with probation [RFC 3550 A.1]).
//!
//! If the sender asks for it, or the session description of another tool does, and the media packets carry the
//! stamps that it takes, the receiver measures and reports by the TFRC profile ([`crate::feedback::rtp_tfrc`]) in place of
//! telling of every packet. If the sender asks for sack vectors, its media is acknowledged by them
//! ([`crate::feedback::sack_vector`]). If it asks for receiver reports, they come as often as it asks, each with the rate that its packet
//! pairs measured ([`crate::feedback::reports::pairs`]), and nothing else comes.
//!
//! A challenge that says that its packet has a Quick-Start option is answered with what came of the option
//! ([`ReceiverSession::note_quick_start`]).
//!
//! # The TCP half
//!
//! If the sender announces a TCP connection, the driver takes one in from the sender's address while
//! [`ReceiverSession::wants_tcp`]; its first packet must be a challenge that the sender sent over UDP too
//! ([`ReceiverSession::accept_tcp`]). Data that comes over the connection later is part of the same streams
//! ([`ReceiverSession::handle_tcp_packet`]).
//!
//! # Parts
//!
//! Each file of `receiver/` is one part with state of its own, which tells what came of a call; only the session sees all
//! of them. Feedback is made in [`crate::feedback`].

mod allowed;
mod config;
mod door;
mod media_in;
mod place;
mod recovery;
mod requests;
mod rtcp;
pub(crate) mod sources;

pub use allowed::{AllowedSender, NoSuchSender};
pub use config::{MediaPacket, ReceiverConfig, ReceiverEvent, ReceiverStats, StreamStats};
pub use door::{AtDoor, Door, DoorStats, Room, network};

use crate::challenge::{Challenge, Echo, Message};
use crate::feedback::{Envelope, Pace, ReceiverHalf, Request};
use crate::frame_interval;
use crate::packet::{self, Packet};
use crate::quick_start::answer;
use crate::reporting::{Farewell, Reporting};
use crate::rtcp::{Compound, Rtcp};
use crate::secret::Purpose;
use crate::source::silent;
use crate::{Datagram, Out, Secret, StopReason, What};
use core::net::{IpAddr, SocketAddr};
use core::num::NonZeroU8;
use fairpace_control::Promise;
use fairpace_units::{Bytes, Dscp, Duration, Ecn, Instant, QsFunction, QsOption, RandomStream, Via};
use place::{PendingEcho, Place, TOLD_APART, Waiting};
use recovery::Recovery;
use requests::Requests;
use sources::Sources;
use std::collections::VecDeque;

const MOST_EVENTS: usize = 256;

/// A datagram with what the network says of it.
#[derive(Clone, Copy, Debug)]
struct Incoming {
    len: usize,
    dscp: Dscp,
    ecn: Ecn,
    from: SocketAddr,
    via: Via,
    quick_start: Option<QsOption>,
}

/// A receiving session. See the crate's documentation for the driver's contract.
#[derive(Debug)]
pub struct ReceiverSession {
    config: ReceiverConfig,
    secret: Secret,
    ssrc: u32,
    now: Instant,
    promise: Promise,
    place: Place,
    sources: Sources,
    feedback: ReceiverHalf,
    /// The number of the next feedback.
    next_number: u32,
    reports: Reporting,
    requests: Requests,
    recovery: Recovery,
    playout: PlayoutNews,
    /// The time between two pictures of the source, as the sender told it.
    frame_interval: Option<Duration>,
    /// When the first echo in the normal class left, until media comes. A later one, for a proof, does not bring it.
    echoed: Option<Instant>,
    /// The Quick-Start option of the datagram that is handed in next.
    option: Option<QsOption>,
    stopping: Option<Farewell>,
    /// The sender that has the place is told goodbye; the receiver goes on.
    dismissing: Option<Farewell>,
    events: VecDeque<ReceiverEvent>,
    stats: ReceiverStats,
    buf: Vec<u8>,
}

/// The play-out delay, and the one that the sender was told last.
#[derive(Clone, Copy, Debug, Default)]
struct PlayoutNews {
    delay: Option<Duration>,
    told: Option<Duration>,
}

impl PlayoutNews {
    /// A delay that differs by a tenth and more from the one that was told.
    fn untold(&self) -> Option<Duration> {
        let told = self.told.unwrap_or_default();
        self.delay.filter(|delay| delay.max(&told).saturating_sub(*delay.min(&told)) * 10 > told)
    }
}

enum Step {
    Send(SocketAddr, Dscp, What),
    Wait(Instant),
    Stopped,
    Again,
}

impl ReceiverSession {
    /// A session that waits for a sender.
    pub fn new(mut config: ReceiverConfig, secret: Secret) -> Self {
        if config.cname.is_empty() {
            config.cname = secret.cname();
        }
        let pace = Pace {
            feedback_interval: config.feedback_interval,
            feedback_repeats: config.feedback_repeats,
            ack_interval: config.ack_interval,
            rwnd: config.rwnd,
        };
        ReceiverSession {
            ssrc: (secret.value(Purpose::Ssrc, 0, 0) as u32).max(1),
            // Random, so that a forger must guess it.
            next_number: secret.value(Purpose::FirstSequence, 0, 0) as u32,
            recovery: Recovery::default(),
            requests: Requests::new(config.nack.then_some(config.nack_deadline)),
            place: Place::new(config.keyed),
            config,
            secret,
            now: Instant::ZERO,
            promise: Promise::default(),
            sources: Sources::default(),
            feedback: ReceiverHalf::new(pace),
            reports: Reporting::new(rtcp::REORDERING),
            playout: PlayoutNews::default(),
            frame_interval: None,
            echoed: None,
            option: None,
            stopping: None,
            dismissing: None,
            events: VecDeque::new(),
            stats: ReceiverStats::default(),
            buf: Vec::with_capacity(2_048),
        }
    }

    // --- what happened ---------------------------------------------------------------------------

    /// The datagram that is handed in next came with this Quick-Start option in its IP header.
    pub const fn note_quick_start(&mut self, option: QsOption) {
        self.option = Some(option);
    }

    /// A datagram has arrived, with these marks, from that address. Media comes back at once, without
    /// a copy; call `poll` afterwards all the same.
    pub fn handle_datagram<'d>(
        &mut self,
        now: Instant,
        bytes: &'d [u8],
        dscp: Dscp,
        ecn: Ecn,
        from: SocketAddr,
    ) -> Option<MediaPacket<'d>> {
        let quick_start = self.option.take();
        self.take_in(now, bytes, Incoming { len: bytes.len(), dscp, ecn, from, via: Via::Udp, quick_start })
    }

    fn take_in<'d>(&mut self, now: Instant, bytes: &'d [u8], incoming: Incoming) -> Option<MediaPacket<'d>> {
        let now = self.advance(now);
        let from = &self.config.from;
        if !from.is_empty() && !from.iter().any(|allowed| allowed.allows(incoming.from)) {
            self.stats.not_allowed += 1;
            return None;
        }
        self.stats.received += 1;
        self.stats.received_bytes += bytes.len() as u64;
        self.place.on_bytes(incoming.from, bytes.len());
        if packet::is_rtcp(bytes) {
            match Compound::parse(bytes) {
                Ok(compound) => self.on_rtcp(now, compound, &incoming),
                Err(_) => self.stats.malformed += 1,
            }
            return None;
        }
        let stamp = self.request().profile().unwrap_or_default().extension;
        match Packet::parse_with(bytes, stamp) {
            Ok(packet) => self.on_rtp(now, &packet, &incoming, bytes),
            Err(_) => {
                self.stats.malformed += 1;
                None
            }
        }
    }

    /// The next media packet that follows from repair packets, in `buffer`. Ask until `None` after each datagram: such a packet is
    /// media as if it had arrived, but for reports, which call it lost.
    pub fn next_recovered<'b>(&mut self, buffer: &'b mut Vec<u8>) -> Option<MediaPacket<'b>> {
        let (sequence, codec) = self.recover(buffer)?;
        let packet = Packet::parse(buffer).ok()?;
        Some(MediaPacket {
            ssrc: packet.ssrc,
            sequence,
            timestamp: packet.timestamp,
            marker: packet.marker,
            payload_type: packet.payload_type,
            payload: packet.payload,
            arrived: self.now,
            one_way_delay: None,
            retransmitted: false,
            recovered: true,
            via: Via::Udp,
            codec,
        })
    }

    /// Whether a TCP connection from the sender's address is to be taken in: it has announced one.
    pub fn wants_tcp(&self) -> bool {
        self.place.peer.is_some_and(|p| !p.tcp && p.announced.is_some_and(|c| c.announces_tcp()))
    }

    /// Whether the sender's TCP connection is part of the session; false again when another sender takes its place.
    pub fn has_tcp(&self) -> bool {
        self.place.peer.is_some_and(|p| p.tcp)
    }

    /// The first packet of a TCP connection from `from`. If the connection is the sender's, it is part of the session from
    /// now on, and what comes back is to be sent over it ([`crate::framing`]); else the driver closes it.
    pub fn accept_tcp(&mut self, now: Instant, bytes: &[u8], from: IpAddr) -> Option<Vec<u8>> {
        let now = self.advance(now);
        let wanted = self.wants_tcp();
        let asked = Compound::parse(bytes).ok().and_then(|mut compound| match compound.next() {
            Some(Rtcp::App(app)) => Message::parse(&app).ok()?,
            _ => None,
        });
        let peer = self.place.peer.as_mut().filter(|p| wanted && p.address.ip() == from);
        let (Some(peer), Some(Message::Challenge(c))) = (peer, asked) else {
            self.stats.malformed += 1;
            return None;
        };
        if !peer.has_asked(c.token) {
            self.stats.unproven += 1;
            return None;
        }
        (peer.tcp, peer.heard) = (true, now);
        peer.budget.on_received(bytes.len());
        let from = peer.address;
        self.prove();
        self.event(ReceiverEvent::TcpUp { from });
        let mut out = Vec::new();
        self.echo_of(c.token, Duration::ZERO, Dscp::DEFAULT, Ecn::NotEct).emit(&mut out);
        Some(out)
    }

    /// A packet has come over the sender's TCP connection. Media comes back at once, without a copy; call `poll`
    /// afterwards all the same.
    pub fn handle_tcp_packet<'d>(&mut self, now: Instant, bytes: &'d [u8]) -> Option<MediaPacket<'d>> {
        let from = self.place.peer.filter(|p| p.tcp)?.address;
        let (dscp, ecn) = (Dscp::DEFAULT, Ecn::NotEct);
        self.take_in(now, bytes, Incoming { len: bytes.len(), dscp, ecn, from, via: Via::Tcp, quick_start: None })
    }

    /// The decoder needs a key frame. Asks the sender, at most every 300 ms; call again while it lasts.
    pub fn request_key_frame(&mut self, now: Instant) {
        self.advance(now);
        self.requests.want_key_frame();
    }

    /// The time between two pictures of the source, as far as the sender has told it.
    pub const fn frame_interval(&self) -> Option<Duration> {
        self.frame_interval
    }

    /// Frames are shown so long after the fastest of them came ([`crate::playout`]). The sender is told, and lost packets are asked
    /// for until they are a round trip older than that.
    pub fn set_playout(&mut self, now: Instant, delay: Duration) {
        self.advance(now);
        self.playout.delay = Some(delay);
        self.requests.set_patience(delay + self.requests.rtt().unwrap_or(delay));
    }

    /// Media packets before that number are of no use any more, whatever comes: they are not asked for again.
    pub fn forget_before(&mut self, sequence: u64) {
        self.requests.forget_before(sequence);
    }

    /// The session that was over is written down: the next sender may have the place. Counts begin at zero.
    pub fn next_session(&mut self) {
        self.take_leave();
        self.stats = ReceiverStats::default();
        self.place.open();
    }

    /// As [`next_session`](Self::next_session), where what comes next belongs to the same session: counts go on.
    pub fn same_session(&mut self) {
        self.take_leave();
        self.place.open();
    }

    /// A sender that was being dismissed is gone, whether it was told as often as it should be or not.
    fn take_leave(&mut self) {
        if self.dismissing.is_some() {
            self.forget();
        }
    }

    /// Ends the session of the sender that has the place, if there is one: BYEs within 250 ms, then [`peer`](Self::peer) is `None`.
    pub fn dismiss(&mut self, now: Instant) {
        let now = self.advance(now);
        if self.place.peer.is_some() {
            self.dismissing.get_or_insert(Farewell::new(now));
        }
    }

    /// Ends the receiver: BYEs within 250 ms if there is a sender, a word to senders that wait, then [`Out::Stopped`].
    pub fn stop(&mut self, now: Instant) {
        let farewell = Farewell::new(self.advance(now));
        self.stopping.get_or_insert(farewell);
    }

    // --- questions -------------------------------------------------------------------------------

    /// The next action. Call until it says [`Out::Wait`] or [`Out::Stopped`].
    pub fn poll(&mut self, now: Instant) -> Out<'_> {
        let now = self.advance(now);
        loop {
            match self.step(now) {
                Step::Again => {}
                Step::Wait(until) => {
                    self.promise.set(until);
                    return Out::Wait(until);
                }
                Step::Stopped => return Out::Stopped(StopReason::Requested),
                Step::Send(to, dscp, what) => {
                    // An echo is no longer than its challenge; all else counts against what the peer sent.
                    if what != What::Echo && !self.place.afford(self.buf.len()) {
                        self.stats.held_back += 1;
                        continue;
                    }
                    self.stats.sent.add(what, self.buf.len());
                    let (ecn, via) = (Ecn::NotEct, Via::Udp);
                    return Out::Datagram(Datagram {
                        bytes: &self.buf,
                        dscp,
                        ecn,
                        what,
                        to: Some(to),
                        via,
                        fragments: false,
                        quick_start: None,
                    });
                }
            }
        }
    }

    /// The next thing to know, oldest first.
    pub fn next_event(&mut self) -> Option<ReceiverEvent> {
        self.events.pop_front()
    }

    /// The address of the sender that holds the place.
    pub fn peer(&self) -> Option<SocketAddr> {
        self.place.peer.map(|p| p.address)
    }

    /// The round trip of a request and its answer; `None` before the sender's first media.
    pub fn rtt(&self) -> Option<Duration> {
        self.requests.rtt()
    }

    /// Sources known, believed or not: at most 1,032.
    pub fn sources(&self) -> usize {
        self.sources.len()
    }

    /// Counters, and the state of the current streams.
    pub fn stats(&self) -> ReceiverStats {
        let mut stats = self.stats;
        self.sources.count_into(&mut stats);
        stats
    }

    // --- the sender's place ----------------------------------------------------------------------

    /// Time never goes back. While the driver, or its machine, slept, nobody could be heard.
    fn advance(&mut self, now: Instant) -> Instant {
        self.now = self.now.max(now);
        if let Some(late) = self.promise.stall(self.now) {
            self.place.on_stall(late);
        }
        self.now
    }

    /// Whether `from` is the sender, or may become it.
    fn may_speak(&mut self, now: Instant, from: SocketAddr) -> bool {
        let free = self.place.is_open_to(now, from);
        self.stats.wrong_address += u64::from(!free);
        free
    }

    fn accept_sender(&mut self, now: Instant, from: SocketAddr, bytes: usize) {
        if !self.place.is_held_by(from) {
            self.forget();
            if self.config.ask_proof {
                // Drawn anew for each holder of the place: the number is the proof, and the holder before knows his.
                self.next_number = self.secret.value(Purpose::FirstSequence, 0, self.place.holders()) as u32;
            }
            self.place.take(now, from, bytes);
            self.stats.proven = false;
            let n = u64::from(self.next_number);
            let random = RandomStream::named(self.secret.value(Purpose::RtcpTiming, self.ssrc, n), "rtcp.receiver");
            self.reports.start(rtcp::timing(now, &self.config, random));
        }
    }

    /// The sender that has the place has shown to the driver that it sees what goes to its address, as at a [`Door`].
    pub fn on_proven(&mut self) {
        if self.place.peer.is_some() {
            self.prove();
        }
    }

    /// The sender sees what goes to its address.
    fn prove(&mut self) {
        self.place.prove();
        self.stats.proven = true;
    }

    /// The sender has gone.
    fn end_session(&mut self, now: Instant, event: Option<ReceiverEvent>) {
        if self.config.one_by_one {
            // Who falls silent, or is replaced, may come again with the same stream.
            if matches!(event, None | Some(ReceiverEvent::Bye { .. })) {
                let announced = self.place.peer.and_then(|p| p.announced).map(|c| {
                    [Some(c.media), Some(c.dummy), c.retransmission, c.fec].into_iter().flatten().map(|(_, ssrc)| ssrc)
                });
                self.place.end_streams(now, self.sources.ssrcs().chain(announced.into_iter().flatten()));
            }
            self.place.close();
        }
        self.forget();
        if let Some(event) = event {
            self.event(event);
        }
    }

    /// Another sender may have the place: whether that ends a session first.
    fn ends_for_another(&mut self, now: Instant) -> bool {
        let ends = self.config.one_by_one && self.place.has_session();
        if ends {
            self.end_session(now, Some(ReceiverEvent::Replaced));
        }
        ends
    }

    /// Frees what is known of the sender.
    fn forget(&mut self) {
        // The counts of the last sender stay until the next one comes.
        self.stats = self.stats();
        self.place.peer = None;
        self.sources.clear();
        self.feedback.forget();
        self.reports.forget();
        self.requests.forget();
        self.recovery.forget();
        (self.playout.told, self.echoed, self.frame_interval) = (None, None, None);
        self.dismissing = None;
    }

    fn on_rtcp(&mut self, now: Instant, compound: Compound<'_>, incoming: &Incoming) {
        let &Incoming { len, dscp, ecn, from, .. } = incoming;
        let is_asked = |packet| matches!(packet, Rtcp::App(app) if answer::is_quick_start(&app));
        let came = incoming.quick_start.filter(|option| option.function == QsFunction::Request);
        let quick_start = (self.config.quick_start && compound.into_iter().any(is_asked)).then_some(came);
        let free = self.may_speak(now, from);
        let is_peer = self.place.is_held_by(from);
        let mut full = (is_peer && compound.is_full()).then(|| Bytes::new(len as u64) + self.config.ip_overhead);
        let mut asked = false;
        for packet in compound {
            match packet {
                Rtcp::App(app) if frame_interval::is_interval(&app) => match frame_interval::parse(&app) {
                    Ok(interval) if is_peer && self.place.announced_media() == Some(app.ssrc) => {
                        self.frame_interval = Some(interval);
                    }
                    Ok(_) => {}
                    Err(_) => self.stats.malformed += 1,
                },
                Rtcp::App(app) => match Message::parse(&app) {
                    // One of a datagram: a proof has 32 bits, and more of them would be more guesses.
                    Ok(Some(Message::Challenge(_))) if asked => {}
                    Ok(Some(Message::Challenge(challenge))) => {
                        asked = true;
                        if self.place.has_just_ended(now, challenge.media.1) {
                            continue;
                        }
                        let (token, class) = (challenge.token, challenge.class);
                        let (to, arrived, taken, busy) = (from, now, None, false);
                        let echo = PendingEcho { to, token, class, dscp, ecn, arrived, taken, busy, quick_start };
                        if self.place.is_open_to_challenge(now, &challenge, from) {
                            self.on_challenge(now, challenge, echo, len);
                        } else {
                            self.place.queue(now, Waiting { challenge, echo, len, told: 0 });
                        }
                    }
                    _ if !free => {}
                    Ok(_) => {}
                    Err(_) => self.stats.malformed += 1,
                },
                Rtcp::SenderReport(ssrc, info, _) if is_peer => {
                    // A sender that has nothing to send is there all the same.
                    if self.place.announced_media() == Some(ssrc)
                        && let Some(p) = &mut self.place.peer
                    {
                        p.heard = now;
                    }
                    let mut is_own = self.place.announced_media() == Some(ssrc);
                    if let Some((_, _, source)) = self.sources.source_mut(ssrc) {
                        is_own = true;
                        source.on_sender_report(now, info.ntp);
                    }
                    // Others, in its name, have no say in how often reports leave.
                    if let Some(size) = full.take_if(|_| is_own) {
                        self.reports.on_received(size);
                    }
                }
                // A sender may leave before its first frame: the stream that it announced is its own too.
                Rtcp::Bye(bye) if is_peer => {
                    let media = self.sources.media().or(self.place.announced_media());
                    if bye.ssrcs().any(|s| media == Some(s)) {
                        self.reports.on_bye(now, bye.reason);
                    }
                }
                _ => {}
            }
        }
    }

    /// A challenge from the sender's address, or from any if the place is free.
    fn on_challenge(&mut self, now: Instant, c: Challenge, mut echo: PendingEcho, len: usize) {
        // Silent or not: it may have nothing to send, and go on.
        let other_tool = self.place.is_held_by(echo.to)
            && self.place.announced_media().is_none()
            && self.sources.media().is_some_and(|m| m != c.media.1);
        let mut is_shown = self.place.is_held_by(echo.to) && c.proof.is_some_and(|proof| self.place.has_told(proof));
        if other_tool || self.place.needs_proof(&c, echo.to) {
            // Drawn anew for each holder of the place, so that none knows what the next one is asked for.
            let proof = self.secret.proof(c.media.1, echo.to, self.place.holders());
            if c.proof == Some(proof) {
                if self.place.announced_media() != Some(c.media.1) && self.ends_for_another(now) {
                    return self.place.wait(Waiting { challenge: c, echo, len, told: 0 });
                }
                self.forget();
                is_shown = true;
            } else {
                echo.taken = Some(proof);
            }
        }
        if echo.taken.is_none() {
            self.accept_sender(now, echo.to, len);
            self.place.announce(now, c);
            if is_shown {
                self.prove();
            }
            self.feedback.ask(c.form);
            match c.fec.filter(|_| self.config.fec) {
                Some(_) => self.recovery.begin(c.media.1),
                None => self.recovery.forget(),
            }
            if let Some(interval) = c.form.report_interval() {
                self.reports.fix_interval(now, interval);
            }
        }
        self.place.push_echo(echo);
    }

    /// The feedback that the sender asks for; another tool asks for nothing, and agrees on a profile.
    fn request(&self) -> Request {
        let agreed = || Request::agreed(self.config.form, self.config.rate_profile);
        self.place.peer.and_then(|p| p.announced).map_or_else(agreed, |c| c.form)
    }

    // --- what is due -----------------------------------------------------------------------------

    fn step(&mut self, now: Instant) -> Step {
        if let Some(echo) = self.place.next_echo() {
            return self.echo(now, &echo);
        }
        if self.stopping.is_some() {
            // Who waits for the place waits in vain.
            for w in self.place.take_waiting(now) {
                self.place.push_echo(PendingEcho { busy: true, ..w.echo });
            }
            if let Some(echo) = self.place.next_echo() {
                return self.echo(now, &echo);
            }
        } else if now >= self.place.free_at() {
            for w in self.place.take_waiting(now) {
                if self.place.is_open_to_challenge(now, &w.challenge, w.echo.to) {
                    self.on_challenge(now, w.challenge, w.echo, w.len);
                    self.place.on_echoed(w.echo.to, w.told);
                }
            }
            return Step::Again;
        }
        let Some(peer) = self.place.peer else {
            return if self.stopping.is_some() { Step::Stopped } else { Step::Wait(Instant::NEVER) };
        };
        let (to, dscp) = (peer.address, self.config.data_dscp);
        let stopping = self.stopping.is_some();
        if let Some(farewell) = self.stopping.as_mut().or(self.dismissing.as_mut()) {
            match farewell.next() {
                None if stopping => return Step::Stopped,
                None => {
                    self.end_session(now, None);
                    return Step::Again;
                }
                Some(next) if next > now => return Step::Wait(next),
                Some(_) => farewell.on_said(now),
            }
            self.write_report(now);
            crate::rtcp::emit_bye(&mut self.buf, &[self.ssrc], "stopped");
            return Step::Send(to, dscp, What::Bye);
        }
        if silent(now, peer.heard, self.config.vanish_after) {
            if self.config.one_by_one && !self.place.has_session() {
                // Challenges alone, which anybody can send, neither begin a session nor end one.
                self.forget();
            } else {
                self.end_session(now, Some(ReceiverEvent::Vanished));
            }
            return Step::Again;
        }
        if let Some(reason) = self.reports.take_end(now) {
            self.end_session(now, Some(ReceiverEvent::Bye { reason }));
            return Step::Again;
        }
        let mut envelope = Envelope {
            ssrc: self.ssrc,
            cname: &self.config.cname,
            number: &mut self.next_number,
            dscp,
            ntp_at_zero: self.config.ntp_at_zero,
        };
        if let Some(dscp) = self.feedback.poll(now, &mut self.sources, &mut envelope, &mut self.buf) {
            return Step::Send(to, dscp, What::Feedback);
        }
        if let Some(delay) =
            self.playout.untold().filter(|_| peer.announced.is_some() && self.sources.media().is_some())
        {
            self.playout.told = Some(delay);
            self.buf.clear();
            crate::playout::emit(self.ssrc, delay, &mut self.buf);
            return Step::Send(to, dscp, What::Report);
        }
        let request = self.sources.media().and_then(|media| self.requests.poll(now, self.ssrc, media, &mut self.buf));
        if let Some(what) = request {
            return Step::Send(to, dscp, what);
        }
        if self.reports.is_due(now) {
            self.write_report(now);
            self.reports.on_sent(now, Bytes::new(self.buf.len() as u64) + self.config.ip_overhead);
            return Step::Send(to, dscp, What::Report);
        }
        let until = (peer.heard + self.config.vanish_after).min(self.place.free_at());
        Step::Wait(until.min(self.feedback.next()).min(self.reports.next()).min(self.requests.next()))
    }

    fn echo(&mut self, now: Instant, pending: &PendingEcho) -> Step {
        self.buf.clear();
        let mut echo = self.echo_of(pending.token, now.since(pending.arrived), pending.dscp, pending.ecn);
        if let Some(proof) = pending.taken {
            (echo.taken, echo.next_report) = (true, proof);
        } else if self.config.ask_proof && !pending.busy && self.place.wants_proof(pending.to) {
            echo.show = true;
            self.place.tell(echo.next_report);
        }
        if pending.busy {
            (echo.busy, echo.ends, echo.receiver, echo.next_report) = (true, self.stopping.is_some(), 0, 0);
            (echo.fec, echo.rwnd, echo.feedback_interval) = (false, None, Duration::ZERO);
        }
        echo.emit(&mut self.buf);
        if let Some(option) = pending.quick_start.filter(|_| !pending.busy) {
            answer::emit_answer(self.ssrc, option.as_ref(), &mut self.buf);
        }
        self.place.on_echoed(pending.to, self.buf.len());
        if pending.class == fairpace_units::Class::Normal && !pending.busy {
            self.echoed.get_or_insert(now);
        }
        let dscp = if pending.class == fairpace_units::Class::Low { Dscp::LE } else { self.config.data_dscp };
        Step::Send(pending.to, dscp, What::Echo)
    }

    fn echo_of(&self, token: u64, delay: Duration, dscp: Dscp, ecn: Ecn) -> Echo {
        let (rwnd, feedback_interval) = self.feedback.advertised();
        Echo {
            receiver: self.ssrc,
            token,
            dscp,
            ecn,
            delay,
            rwnd: rwnd.and_then(|rwnd| NonZeroU8::new(u8::try_from(rwnd).ok()?)),
            feedback_interval,
            next_report: self.next_number,
            taken: false,
            fec: self.config.fec,
            busy: false,
            ends: false,
            show: false,
        }
    }

    /// An RTCP report into the buffer.
    fn write_report(&mut self, now: Instant) {
        self.buf.clear();
        crate::rtcp::emit_receiver_report(&mut self.buf, self.ssrc, &self.sources.report_blocks(now));
        crate::rtcp::emit_sdes(&mut self.buf, &[self.ssrc], &self.config.cname);
        self.feedback.append_to_report(self.ssrc, &mut self.buf);
        if let Some(delay) = self.playout.told {
            crate::playout::emit(self.ssrc, delay, &mut self.buf);
        }
    }

    fn event(&mut self, event: ReceiverEvent) {
        if self.events.len() >= MOST_EVENTS {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }
}
