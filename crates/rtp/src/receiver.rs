//! The receiving side: datagrams in, media out; feedback, reports and requests back.
//!
//! One receiver serves one sender at a time. Who sent a challenge, or two RTP packets in sequence, holds
//! the place until it is silent for 2 s; until then other addresses get no answer, but the newest challenge among theirs is answered
//! as soon as the place is free. A sender that begins at the address of one that was killed is let in at once, when it has
//! shown that it sees what goes there ([`crate::challenge`]). To no address goes more than three times what came from it.
//!
//! Streams are told apart as the challenge announced them, or else by the default payload types, so that
//! plain RTP from another tool is received too (without nonces, and with probation [RFC 3550 A.1]).
//!
//! If the sender asks for it, or the session description of another tool does, and the media packets carry the
//! stamps that it takes, the receiver measures and reports by the TFRC profile ([`crate::tfrc`]) in place of
//! telling of every packet. If the sender asks for sack vectors, its media is acknowledged by them
//! ([`crate::sack_vector`]). If it asks for receiver reports, they come as often as it asks, each with the rate that its packet
//! pairs measured ([`crate::pair_report`]), and nothing else comes.
//!
//! # The TCP half
//!
//! If the sender announces a TCP connection, the driver takes one in from the sender's address while
//! [`ReceiverSession::wants_tcp`]; its first packet must be a challenge that the sender sent over UDP too
//! ([`ReceiverSession::accept_tcp`]). What comes over it later is part of the same streams
//! ([`ReceiverSession::handle_tcp_packet`]).

use crate::ccfb;
use crate::challenge::{Challenge, Echo, Form, Message};
use crate::claim::{self, Claim};
use crate::out::Counts;
use crate::packet::{self, Packet};
use crate::pair_report::PairReport;
use crate::rtcp::{Compound, Rtcp};
use crate::rtcp_timing::{Due, Parameters, RtcpTiming};
use crate::secret::Purpose;
use crate::sender::Codec;
use crate::source::{Novelty, Source, Validator, Verdict, media_clock, silent};
use crate::tfrc::{self, Profile};
use crate::{Datagram, NtpTime, Out, Secret, StopReason, What, dummy, rtcp, rtx, sack_vector};
use core::net::{IpAddr, SocketAddr};
use core::num::NonZeroU8;
use fairpace_control::packet_pair::BottleneckEstimator;
use fairpace_control::tfrc::receiver::{RatedArrival, ReceiverParams, TfrcReceiver};
use fairpace_control::{Arrival, RateHeader, SackReceiver, SackVector};
use fairpace_units::{Bytes, Class, Dscp, Duration, Ecn, Instant, Kind, RandomStream, Rate, Via};
use std::collections::{BTreeMap, VecDeque};

/// How a receiving session is set up.
#[derive(Clone, Debug)]
pub struct ReceiverConfig {
    /// Per-packet feedback at most this often; zero = at every packet.
    pub feedback_interval: Duration,
    /// Each packet is told in this many reports, so that one lost report loses nothing. 1 to 16.
    pub feedback_repeats: usize,
    /// Sack vectors at most this often, but with every eighth packet; zero = with every packet, as in the paper.
    pub ack_interval: Duration,
    /// The window to advertise with sack vectors, in packets, 0 to 65,534; `None`: none.
    pub rwnd: Option<u32>,
    /// The numbers of the TFRC profile agreed on with a sender that cannot announce them, that is another tool.
    /// What a challenge announces goes before.
    pub rate_profile: Option<Profile>,
    /// Ask for lost media again [RFC 4585, RFC 4588].
    pub nack: bool,
    /// Give up asking for a packet after that long.
    pub nack_deadline: Duration,
    /// RTCP's canonical name; must not tell the host's name. Empty: a random one.
    pub cname: String,
    /// What RTCP's 5 % is taken of.
    pub session_bandwidth: Rate,
    /// RTCP as often as 360 s / (kbit/s) allows, in place of 5 s.
    pub reduced_minimum: bool,
    /// A sender that is silent for this long has vanished: its state is freed.
    pub vanish_after: Duration,
    /// IP and UDP headers: 28 B for IPv4, 48 B for IPv6.
    pub ip_overhead: Bytes,
    /// Code point of normal-class feedback and RTCP. Feedback on dummies is LE whatever this is.
    pub data_dscp: Dscp,
    /// What the wall clock showed at [`Instant::ZERO`].
    pub ntp_at_zero: NtpTime,
}

impl Default for ReceiverConfig {
    fn default() -> Self {
        ReceiverConfig {
            feedback_interval: Duration::from_millis(20),
            feedback_repeats: 3,
            ack_interval: Duration::ZERO,
            rwnd: None,
            rate_profile: None,
            nack: false,
            nack_deadline: Duration::from_secs(2),
            cname: String::new(),
            session_bandwidth: Rate::mbps(1.0),
            reduced_minimum: false,
            vanish_after: Duration::from_secs(15),
            ip_overhead: Bytes::new(28),
            data_dscp: Dscp::DEFAULT,
            ntp_at_zero: NtpTime::default(),
        }
    }
}

/// A media packet, as it comes out of the session. The payload borrows from the datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MediaPacket<'d> {
    /// The media stream, also of a retransmission.
    pub ssrc: u32,
    /// Sequence number in that stream; never wraps.
    pub sequence: u64,
    /// Media time, 90 kHz.
    pub timestamp: u32,
    /// Last packet of its frame.
    pub marker: bool,
    /// Payload type of the media stream.
    pub payload_type: u8,
    /// The RTP payload, descriptor included.
    pub payload: &'d [u8],
    /// When it arrived.
    pub arrived: Instant,
    /// Our clock at arrival less the sender's at departure, in ns; absolute only if both clocks agree.
    /// Modulo 64 s, from -32 s to 32 s.
    pub one_way_delay: Option<i64>,
    /// It came as a retransmission.
    pub retransmitted: bool,
    /// The transport that it came by.
    pub via: Via,
    /// What it carries, if the sender announced it; else VP8 is assumed.
    pub codec: Codec,
}

/// What the application should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReceiverEvent {
    /// Media from a new source begins.
    NewSource {
        /// Its SSRC.
        ssrc: u32,
        /// Where it comes from.
        from: SocketAddr,
        /// Its payload type.
        payload_type: u8,
        /// What it carries.
        codec: Codec,
    },
    /// The sender's TCP half is there.
    TcpUp {
        /// The sender's UDP address.
        from: SocketAddr,
    },
    /// The sender has said goodbye, and has been silent since.
    Bye {
        /// What it said.
        reason: String,
    },
    /// The sender has been silent for too long; its state is freed.
    Vanished,
}

/// What was received of one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct StreamStats {
    /// Whose.
    pub ssrc: u32,
    /// Packets, duplicates included.
    pub received: u64,
    /// Packets that should have come.
    pub expected: u64,
    /// The difference; negative if duplicates outweigh losses.
    pub lost: i64,
    /// Packets that came twice or more.
    pub duplicates: u64,
    /// Packets that came behind a later one.
    pub reordered: u64,
    /// Packets with CE.
    pub ce_marks: u64,
    /// UDP payload.
    pub bytes: u64,
    /// Interarrival jitter [RFC 3550 A.8].
    pub jitter: Duration,
    /// Code point of the newest packet.
    pub dscp: Dscp,
    /// How often the source has begun anew without saying so.
    pub restarts: u32,
}

/// What a receiving session has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ReceiverStats {
    /// Sent, by kind. Feedback, of either form, is counted apart from RTCP's own reports.
    pub sent: Counts,
    /// Datagrams received.
    pub received: u64,
    /// Their UDP payload.
    pub received_bytes: u64,
    /// Neither RTP nor RTCP, or broken.
    pub malformed: u64,
    /// From an address other than the sender that holds the place.
    pub wrong_address: u64,
    /// From sources that are not believed yet.
    pub unproven: u64,
    /// Media packets repaired by retransmission.
    pub repaired: u64,
    /// Feedback and reports not sent because more than three times the bytes received would have gone out.
    pub held_back: u64,
    /// BYEs that were ignored because packets went on coming.
    pub byes_ignored: u64,
    /// Media, dummies, retransmissions.
    pub media: StreamStats,
    /// Dummies.
    pub dummy: StreamStats,
    /// Retransmissions.
    pub retransmission: StreamStats,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Media,
    Dummy,
    Retransmission,
}

impl Role {
    const fn class(self) -> Class {
        match self {
            Role::Dummy => Class::Low,
            Role::Media | Role::Retransmission => Class::Normal,
        }
    }
}

#[derive(Debug)]
enum Entry {
    Probation(Validator),
    Valid(Role, u8, Box<Source>),
}

#[derive(Clone, Copy, Debug)]
struct Peer {
    address: SocketAddr,
    heard: Instant,
    announced: Option<Challenge>,
    /// The tokens of its last challenges, newest first: with one of them its TCP connection must begin.
    tokens: [Option<u64>; MOST_RECENT_TOKENS],
    /// Its TCP connection has been taken in.
    tcp: bool,
    bytes_in: u64,
    bytes_out: u64,
}

/// A class's feedback.
#[derive(Debug)]
struct ClassFeedback {
    class: Class,
    due: Instant,
    last: Option<Instant>,
    /// Ranges still to be told: SSRC, from, to (inclusive).
    jobs: VecDeque<(u32, u64, u64)>,
}

/// What is measured of a stream that carries stamps.
#[derive(Debug)]
struct Measuring {
    ssrc: u32,
    profile: Profile,
    receiver: TfrcReceiver,
    /// The newest time sent, µs; unwrapped.
    clock: u64,
}

/// What is acknowledged by sack vectors.
#[derive(Debug)]
struct Acknowledging {
    ssrc: u32,
    /// A packet's number, whose lowest 24 bits the sender knows, less its extended sequence number, modulo 2^64: the
    /// sender has counted another number of wraps.
    offset: u64,
    receiver: SackReceiver,
    /// The last packet that came too late to be told of.
    too_late: Option<u64>,
    /// ACKs that were due when the next packet came, and when they were made.
    due: VecDeque<(Instant, SackVector)>,
}

/// What receiver reports tell of a stream beside RTCP's own numbers.
#[derive(Debug)]
struct Pairs {
    ssrc: u32,
    estimator: BottleneckEstimator,
    /// Of all packets that have arrived.
    nonce_sum: u32,
}

#[derive(Clone, Copy, Debug)]
struct Missing {
    since: Instant,
    tries: u8,
    next: Instant,
    asked: Option<Instant>,
}

/// SSRCs in probation, and believed ones [safety: memory is bounded].
const MOST_SOURCES: usize = 1_024;
const MOST_VALID: usize = 8;
/// The place is free after so much silence.
const TAKEOVER: Duration = Duration::from_secs(2);
const AMPLIFICATION: u64 = 3;
/// Metrics in one block, and bytes of one feedback datagram: fits any path of 1,280 B.
const MOST_METRICS: u64 = 480;
const MOST_FEEDBACK: usize = 1_200;
const BYE_GRACE: Duration = Duration::from_millis(500);
const KEY_FRAME_SPACING: Duration = Duration::from_millis(300);
/// A gap this young may be reordering.
const REORDERING: Duration = Duration::from_millis(10);
const FIRST_NACK_RTT: Duration = Duration::from_millis(300);
const MOST_NACKS: u8 = 4;
const MOST_MISSING: usize = 512;
const MOST_ECHOES: usize = 16;
/// A sender asks in two classes, three times at most.
const MOST_RECENT_TOKENS: usize = 6;
/// ACKs that wait for a driver that hands in many packets before it drains.
const MOST_ACKS: usize = 256;
const MOST_EVENTS: usize = 256;

#[derive(Clone, Copy, Debug)]
struct PendingEcho {
    to: SocketAddr,
    token: u64,
    class: Class,
    dscp: Dscp,
    ecn: Ecn,
    arrived: Instant,
    /// The proof that is wanted before this sender is let in.
    taken: Option<u32>,
}

/// A challenge from another address than the sender's.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    challenge: Challenge,
    echo: PendingEcho,
    len: usize,
}

/// A receiving session. See the crate's documentation for the driver's contract.
#[derive(Debug)]
pub struct ReceiverSession {
    config: ReceiverConfig,
    secret: Secret,
    ssrc: u32,
    now: Instant,
    peer: Option<Peer>,
    sources: BTreeMap<u32, Entry>,
    /// SSRCs in probation, oldest first.
    newcomers: VecDeque<u32>,
    media: Option<u32>,
    echoes: VecDeque<PendingEcho>,
    /// The newest of another address, one of each class.
    waiting: Vec<Waiting>,
    /// How often the place was taken.
    places: u64,
    feedback: [ClassFeedback; 2],
    next_report: u32,
    measuring: Option<Measuring>,
    acknowledging: Option<Acknowledging>,
    pairs: Option<Pairs>,
    timing: Option<RtcpTiming>,
    key_frame_wanted: bool,
    last_key_request: Option<Instant>,
    missing: BTreeMap<u64, Missing>,
    nack_rtt: Duration,
    bye: Option<(Instant, String)>,
    stopping: Option<bool>,
    events: VecDeque<ReceiverEvent>,
    stats: ReceiverStats,
    buf: Vec<u8>,
    scratch: Vec<u16>,
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
        let class = |class| ClassFeedback { class, due: Instant::NEVER, last: None, jobs: VecDeque::new() };
        ReceiverSession {
            ssrc: (secret.value(Purpose::Ssrc, 0, 0) as u32).max(1),
            // Random, so that a forger must guess it.
            next_report: secret.value(Purpose::FirstSequence, 0, 0) as u32,
            config,
            secret,
            now: Instant::ZERO,
            peer: None,
            sources: BTreeMap::new(),
            newcomers: VecDeque::new(),
            media: None,
            echoes: VecDeque::new(),
            waiting: Vec::new(),
            places: 0,
            feedback: [class(Class::Normal), class(Class::Low)],
            measuring: None,
            acknowledging: None,
            pairs: None,
            timing: None,
            key_frame_wanted: false,
            last_key_request: None,
            missing: BTreeMap::new(),
            nack_rtt: FIRST_NACK_RTT,
            bye: None,
            stopping: None,
            events: VecDeque::new(),
            stats: ReceiverStats::default(),
            buf: Vec::with_capacity(2_048),
            scratch: Vec::new(),
        }
    }

    // --- what happened ---------------------------------------------------------------------------

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
        self.take_in(now, bytes, dscp, ecn, from, Via::Udp)
    }

    fn take_in<'d>(
        &mut self,
        now: Instant,
        bytes: &'d [u8],
        dscp: Dscp,
        ecn: Ecn,
        from: SocketAddr,
        via: Via,
    ) -> Option<MediaPacket<'d>> {
        let now = self.advance(now);
        self.stats.received += 1;
        self.stats.received_bytes += bytes.len() as u64;
        if let Some(peer) = self.peer.as_mut().filter(|p| p.address == from) {
            peer.bytes_in += bytes.len() as u64;
        }
        if packet::is_rtcp(bytes) {
            match Compound::parse(bytes) {
                Ok(compound) => self.on_rtcp(now, compound, bytes.len(), dscp, ecn, from),
                Err(_) => self.stats.malformed += 1,
            }
            return None;
        }
        let stamp = self.profile().unwrap_or_default().extension;
        match Packet::parse_with(bytes, stamp) {
            Ok(packet) => self.on_rtp(now, &packet, bytes.len(), dscp, ecn, from, via),
            Err(_) => {
                self.stats.malformed += 1;
                None
            }
        }
    }

    /// Whether a TCP connection from the sender's address is to be taken in: it has announced one.
    pub fn wants_tcp(&self) -> bool {
        self.peer.is_some_and(|p| !p.tcp && p.announced.is_some_and(|c| c.announces_tcp()))
    }

    /// Whether the sender's TCP connection is part of the session; false again when another sender takes its place.
    pub fn has_tcp(&self) -> bool {
        self.peer.is_some_and(|p| p.tcp)
    }

    /// The first packet of a TCP connection from `from`. If the connection is the sender's, it is part of the session from
    /// now on, and what comes back is to be sent over it ([`crate::framing`]); else the driver closes it.
    pub fn accept_tcp(&mut self, now: Instant, bytes: &[u8], from: IpAddr) -> Option<Vec<u8>> {
        let now = self.advance(now);
        let peer = self.peer.filter(|p| p.address.ip() == from && self.wants_tcp());
        let asked = Compound::parse(bytes).ok().and_then(|mut compound| match compound.next() {
            Some(Rtcp::App(app)) => Message::parse(&app).ok()?,
            _ => None,
        });
        let (Some(mut peer), Some(Message::Challenge(c))) = (peer, asked) else {
            self.stats.malformed += 1;
            return None;
        };
        if !peer.tokens.contains(&Some(c.token)) {
            self.stats.unproven += 1;
            return None;
        }
        (peer.tcp, peer.heard) = (true, now);
        peer.bytes_in += bytes.len() as u64;
        self.peer = Some(peer);
        self.event(ReceiverEvent::TcpUp { from: peer.address });
        let mut out = Vec::new();
        self.echo_of(c.token, Duration::ZERO, Dscp::DEFAULT, Ecn::NotEct).emit(&mut out);
        Some(out)
    }

    /// A packet has come over the sender's TCP connection. Media comes back at once, without a copy; call `poll`
    /// afterwards all the same.
    pub fn handle_tcp_packet<'d>(&mut self, now: Instant, bytes: &'d [u8]) -> Option<MediaPacket<'d>> {
        let peer = self.peer.filter(|p| p.tcp)?;
        self.take_in(now, bytes, Dscp::DEFAULT, Ecn::NotEct, peer.address, Via::Tcp)
    }

    /// The decoder needs a key frame. Asks the sender, at most every 300 ms; call again while it lasts.
    pub fn request_key_frame(&mut self, now: Instant) {
        self.advance(now);
        self.key_frame_wanted = true;
    }

    /// Ends the session: a BYE if there is a sender, then [`Out::Stopped`].
    pub fn stop(&mut self, now: Instant) {
        self.advance(now);
        self.stopping = self.stopping.or(Some(false));
    }

    // --- questions -------------------------------------------------------------------------------

    /// What to do now. Call until it says [`Out::Wait`] or [`Out::Stopped`].
    pub fn poll(&mut self, now: Instant) -> Out<'_> {
        let now = self.advance(now);
        loop {
            match self.step(now) {
                Step::Again => {}
                Step::Wait(until) => return Out::Wait(until),
                Step::Stopped => return Out::Stopped(StopReason::Requested),
                Step::Send(to, dscp, what) => {
                    // An echo is no longer than its challenge; all else counts against what the peer sent.
                    if what != What::Echo && !self.afford(self.buf.len()) {
                        self.stats.held_back += 1;
                        continue;
                    }
                    self.stats.sent.add(what, self.buf.len());
                    let (ecn, via) = (Ecn::NotEct, Via::Udp);
                    return Out::Datagram(Datagram { bytes: &self.buf, dscp, ecn, what, to: Some(to), via });
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
        self.peer.map(|p| p.address)
    }

    /// Sources known, believed or not: at most 1,032.
    pub fn sources(&self) -> usize {
        self.sources.len()
    }

    /// Counters, and the state of the current streams.
    pub fn stats(&self) -> ReceiverStats {
        let mut stats = self.stats;
        for entry in self.sources.values() {
            let Entry::Valid(role, _, s) = entry else { continue };
            let slot = match role {
                Role::Media if self.media == Some(s.ssrc) => &mut stats.media,
                Role::Media => continue,
                Role::Dummy => &mut stats.dummy,
                Role::Retransmission => &mut stats.retransmission,
            };
            *slot = StreamStats {
                ssrc: s.ssrc,
                received: s.received,
                expected: s.expected(),
                lost: s.cumulative_lost(),
                duplicates: s.duplicates,
                reordered: s.reordered,
                ce_marks: s.ce_marks,
                bytes: s.bytes,
                jitter: Duration::from_nanos(u64::from(s.jitter.get()) * 100_000 / 9),
                dscp: s.dscp,
                restarts: s.validator.restarts,
            };
        }
        stats
    }

    // --- arrivals --------------------------------------------------------------------------------

    fn advance(&mut self, now: Instant) -> Instant {
        self.now = self.now.max(now);
        self.now
    }

    /// Whether `from` is the sender, or may become it.
    fn may_speak(&mut self, now: Instant, from: SocketAddr) -> bool {
        let free = self.peer.is_none_or(|p| p.address == from || silent(now, p.heard, TAKEOVER));
        self.stats.wrong_address += u64::from(!free);
        free
    }

    fn take_place(&mut self, now: Instant, from: SocketAddr, bytes: usize) {
        if self.peer.is_none_or(|p| p.address != from) {
            self.forget();
            self.places += 1;
            self.peer = Some(Peer {
                address: from,
                heard: now,
                announced: None,
                tokens: [None; MOST_RECENT_TOKENS],
                tcp: false,
                bytes_in: bytes as u64,
                bytes_out: 0,
            });
            let params = Parameters {
                session_bandwidth: self.config.session_bandwidth,
                reduced_minimum: self.config.reduced_minimum,
                // RR with two blocks 56 B, SDES about 20 B
                first_size: self.config.ip_overhead + Bytes::new(76),
                fixed_interval: None,
            };
            let n = u64::from(self.next_report);
            let random = RandomStream::named(self.secret.value(Purpose::RtcpTiming, self.ssrc, n), "rtcp.receiver");
            self.timing = Some(RtcpTiming::new(now, params, false, random));
        }
    }

    /// Frees what is known of the sender.
    fn forget(&mut self) {
        // What was received stays known until the next sender comes.
        self.stats = self.stats();
        self.peer = None;
        self.sources.clear();
        self.newcomers.clear();
        self.media = None;
        self.measuring = None;
        self.acknowledging = None;
        self.pairs = None;
        self.timing = None;
        self.missing.clear();
        self.bye = None;
        self.key_frame_wanted = false;
        for f in &mut self.feedback {
            f.due = Instant::NEVER;
            f.jobs.clear();
        }
    }

    fn on_rtcp(&mut self, now: Instant, compound: Compound<'_>, len: usize, dscp: Dscp, ecn: Ecn, from: SocketAddr) {
        let free = self.may_speak(now, from);
        let is_peer = self.peer.is_some_and(|p| p.address == from);
        if let Some(t) = self.timing.as_mut().filter(|_| is_peer && compound.is_full()) {
            t.on_received(Bytes::new(len as u64) + self.config.ip_overhead);
        }
        for packet in compound {
            match packet {
                Rtcp::App(app) => match Message::parse(&app) {
                    Ok(Some(Message::Challenge(c))) => {
                        let (token, class) = (c.token, c.class);
                        let echo = PendingEcho { to: from, token, class, dscp, ecn, arrived: now, taken: None };
                        if free {
                            self.on_challenge(now, c, echo, len);
                        } else {
                            self.waiting.retain(|w| w.echo.to == from && w.challenge.class != class);
                            self.waiting.push(Waiting { challenge: c, echo, len });
                        }
                    }
                    _ if !free => {}
                    Ok(_) => {}
                    Err(_) => self.stats.malformed += 1,
                },
                Rtcp::SenderReport(ssrc, info, _) if is_peer => {
                    // A sender that has nothing to send is there all the same.
                    if self.announced_media() == Some(ssrc)
                        && let Some(p) = &mut self.peer
                    {
                        p.heard = now;
                    }
                    if let Some(Entry::Valid(_, _, s)) = self.sources.get_mut(&ssrc) {
                        s.on_sender_report(now, info.ntp);
                    }
                }
                // A sender may leave before its first frame: the stream that it announced is its own too.
                Rtcp::Bye(bye) if is_peer && bye.ssrcs().any(|s| self.media.or(self.announced_media()) == Some(s)) => {
                    let reason = String::from_utf8_lossy(bye.reason).into_owned();
                    self.bye.get_or_insert((now, reason));
                }
                _ => {}
            }
        }
    }

    /// A challenge from the sender's address, or from any if the place is free.
    fn on_challenge(&mut self, now: Instant, c: Challenge, mut echo: PendingEcho, len: usize) {
        // Silent or not: it may have nothing to send, and go on.
        let held = self.peer.is_some_and(|p| p.address == echo.to);
        if held && self.announced_media().or(self.media).is_some_and(|m| m != c.media.1) {
            // Drawn anew for each holder of the place, so that none knows what the next one is asked for.
            let proof = self.secret.value(Purpose::Place, c.media.1, self.places) as u32;
            if c.proof == Some(proof) {
                self.forget();
            } else {
                echo.taken = Some(proof);
            }
        }
        if echo.taken.is_none() {
            self.take_place(now, echo.to, len);
            if let Some(p) = &mut self.peer {
                p.heard = now;
                p.announced = Some(c);
                p.tokens.rotate_right(1);
                if let Some(newest) = p.tokens.first_mut() {
                    *newest = Some(c.token);
                }
            }
            if let (Form::ReceiverReports { interval, .. }, Some(t)) = (c.form, &mut self.timing) {
                t.fix_interval(now, interval);
            }
        }
        if self.echoes.len() < MOST_ECHOES {
            self.echoes.push_back(echo);
        }
    }

    /// When a challenge from another address is due to be answered; NEVER if there is none.
    fn place_free(&self) -> Instant {
        let free = self.peer.map_or(Instant::ZERO, |p| p.heard + TAKEOVER);
        if self.waiting.is_empty() { Instant::NEVER } else { free }
    }

    fn announced_media(&self) -> Option<u32> {
        self.peer?.announced.map(|c| c.media.1)
    }

    /// How the sender wants to be reported to, if not packet by packet.
    fn profile(&self) -> Option<Profile> {
        match self.peer.and_then(|p| p.announced).map(|c| c.form) {
            None => self.config.rate_profile,
            Some(Form::Measured(profile)) => Some(profile),
            Some(Form::Packets | Form::SackVector | Form::ReceiverReports { .. }) => None,
        }
    }

    /// Whether the sender wants sack vectors.
    fn wants_sack_vectors(&self) -> bool {
        self.peer.and_then(|p| p.announced).is_some_and(|c| c.form == Form::SackVector)
    }

    /// Whether the sender wants receiver reports and nothing else.
    fn wants_reports(&self) -> bool {
        matches!(self.peer.and_then(|p| p.announced).map(|c| c.form), Some(Form::ReceiverReports { .. }))
    }

    /// What a packet's stream is, and whether a challenge announced it. `None`: while a sender that announces
    /// its streams is there, no others are taken from its address.
    fn role(&mut self, now: Instant, packet: &Packet<'_>, from: SocketAddr) -> Option<(Role, bool)> {
        if let Some((peer, c)) = self.peer.filter(|p| p.address == from).and_then(|p| Some((p, p.announced?))) {
            let announced = match packet.ssrc {
                s if s == c.media.1 => Some(Role::Media),
                s if s == c.dummy.1 => Some(Role::Dummy),
                s if c.retransmission.is_some_and(|r| s == r.1) => Some(Role::Retransmission),
                _ => None,
            };
            if announced.is_none() && !silent(now, peer.heard, TAKEOVER) {
                self.stats.unproven += 1;
                return None;
            }
            if let Some(role) = announced {
                return Some((role, true));
            }
        }
        Some(match packet.payload_type {
            dummy::PAYLOAD_TYPE => (Role::Dummy, false),
            rtx::PAYLOAD_TYPE => (Role::Retransmission, false),
            _ => (Role::Media, false),
        })
    }

    /// Whether this is the media stream, or takes its place: as announced, or because the old one is silent.
    fn is_media(&mut self, now: Instant, packet: &Packet<'_>, from: SocketAddr, announced: bool) -> bool {
        if self.media == Some(packet.ssrc) {
            return true;
        }
        let current = self.media.and_then(|m| self.sources.get(&m));
        let busy = matches!(current, Some(Entry::Valid(_, _, s)) if !silent(now, s.last_arrival, TAKEOVER));
        if busy && !announced {
            return false;
        }
        self.media = Some(packet.ssrc);
        self.missing.clear();
        self.bye = None;
        if !announced && let Some(p) = &mut self.peer {
            p.announced = None; // another tool, at the same address
        }
        let codec = self.peer.and_then(|p| p.announced).map_or(Codec::Vp8, |c| c.codec);
        self.event(ReceiverEvent::NewSource { ssrc: packet.ssrc, from, payload_type: packet.payload_type, codec });
        true
    }

    #[allow(clippy::too_many_arguments)] // one call, all of them plain facts
    fn on_rtp<'d>(
        &mut self,
        now: Instant,
        packet: &Packet<'d>,
        len: usize,
        dscp: Dscp,
        ecn: Ecn,
        from: SocketAddr,
        via: Via,
    ) -> Option<MediaPacket<'d>> {
        if !self.may_speak(now, from) {
            return None;
        }
        let (role, announced) = self.role(now, packet, from)?;
        let sequence = self.validate(now, packet, from, len, role, announced)?;
        self.peer.as_mut()?.heard = now;
        let is_media = role == Role::Media && self.is_media(now, packet, from, announced);
        let codec = self.peer?.announced.map_or(Codec::Vp8, |c| c.codec);
        let Some(Entry::Valid(role, _, source)) = self.sources.get_mut(&packet.ssrc) else { return None };
        let role = *role;
        let nonce = packet.extensions.nonce.unwrap_or(0);
        let highest_before = if source.received == 0 { sequence } else { source.highest_seen };
        let novelty = source.on_packet(now, sequence, nonce, dscp, ecn, len);
        source.highest_seen = source.highest_seen.max(sequence);
        if matches!(novelty, Novelty::First | Novelty::Late) {
            if role == Role::Media {
                source.jitter.update(packet.timestamp, media_clock(now));
            }
            let told = if self.wants_reports() {
                if is_media {
                    self.note_pair(now, packet, sequence, len, via);
                }
                true
            } else {
                is_media
                    && (self.measure(now, packet, sequence, len, ecn) || self.acknowledge(now, packet, sequence, ecn))
            };
            if !told {
                self.schedule_feedback(now, role.class());
            }
        }
        self.notice_life(now);
        let media_ssrc = self.media?;
        if novelty != Novelty::First {
            return None;
        }
        match role {
            Role::Media if is_media => {
                self.note_gap(now, highest_before, sequence);
                Some(MediaPacket {
                    ssrc: packet.ssrc,
                    sequence,
                    timestamp: packet.timestamp,
                    marker: packet.marker,
                    payload_type: packet.payload_type,
                    payload: packet.payload,
                    arrived: now,
                    one_way_delay: self.one_way_delay(now, packet),
                    retransmitted: false,
                    via,
                    codec,
                })
            }
            Role::Dummy | Role::Media => None,
            Role::Retransmission => {
                let (original, payload) = rtx::parse(packet.payload).ok()?;
                let Some(Entry::Valid(_, payload_type, media)) = self.sources.get_mut(&media_ssrc) else { return None };
                let highest = media.validator.highest();
                let behind = (highest as u16).wrapping_sub(original);
                let sequence = highest
                    .checked_sub(u64::from(behind))
                    .filter(|s| behind < 0x8000 && *s >= media.validator.base())?;
                if !media.repair(sequence) {
                    return None; // it has arrived meanwhile
                }
                let payload_type = *payload_type;
                self.stats.repaired += 1;
                if let Some(m) = self.missing.remove(&sequence)
                    && let (1, Some(asked)) = (m.tries, m.asked)
                {
                    // Karn's rule: only an answer to a single question measures a round trip.
                    self.nack_rtt = (self.nack_rtt * 7 + now.since(asked)) / 8;
                }
                Some(MediaPacket {
                    ssrc: media_ssrc,
                    sequence,
                    timestamp: packet.timestamp,
                    marker: packet.marker,
                    payload_type,
                    payload,
                    arrived: now,
                    one_way_delay: self.one_way_delay(now, packet),
                    retransmitted: true,
                    via,
                    codec,
                })
            }
        }
    }

    /// Feeds a stamped packet to the receiver that measures; `false` if the stream is not to be measured.
    fn measure(&mut self, now: Instant, packet: &Packet<'_>, sequence: u64, len: usize, ecn: Ecn) -> bool {
        let Some(profile) = self.profile() else { return false };
        let Some((_, stamp)) = packet.extensions.stamp else {
            // A stamp was damaged on its way, or the other tool agreed to stamp and does not.
            return self.measuring.is_some() || self.peer.is_some_and(|p| p.announced.is_some());
        };
        let size = Bytes::new(len as u64) + self.config.ip_overhead;
        if self.measuring.as_ref().is_none_or(|m| m.ssrc != packet.ssrc) {
            // One wrap up, so that a packet overtaken by the first does not lie before all time.
            let clock = 1 << 32 | u64::from(stamp.sent);
            self.measuring = Some(Measuring {
                ssrc: packet.ssrc,
                profile,
                receiver: TfrcReceiver::new(ReceiverParams::default()),
                clock,
            });
        }
        let Some(m) = &mut self.measuring else { return false };
        let sent = tfrc::unwrap(m.clock, stamp.sent);
        m.clock = m.clock.max(sent);
        let header = RateHeader { sent_at: Instant::from_nanos(sent.saturating_mul(1_000)), rtt: stamp.rtt() };
        m.receiver.on_packet(now, &RatedArrival { seq: sequence, size, header, ecn });
        true
    }

    /// What the next receiver report tells of this packet beside its being there.
    fn note_pair(&mut self, now: Instant, packet: &Packet<'_>, sequence: u64, len: usize, via: Via) {
        if self.pairs.as_ref().is_none_or(|p| p.ssrc != packet.ssrc) {
            let estimator = BottleneckEstimator::new();
            self.pairs = Some(Pairs { ssrc: packet.ssrc, estimator, nonce_sum: 0 });
        }
        let Some(pairs) = &mut self.pairs else { return };
        pairs.nonce_sum = pairs.nonce_sum.wrapping_add(packet.extensions.nonce.unwrap_or(0));
        if via == Via::Udp {
            // Our numbers begin a multiple of the period up, so they divide as the sender's do.
            pairs.estimator.on_packet(now, sequence, Bytes::new(len as u64) + self.config.ip_overhead);
        }
    }

    /// Feeds a packet to the receiver that makes sack vectors; `false` if the sender does not want them.
    fn acknowledge(&mut self, now: Instant, packet: &Packet<'_>, sequence: u64, ecn: Ecn) -> bool {
        if !self.wants_sack_vectors() {
            return false;
        }
        // Without the high bits of its number, which were damaged on their way, it is as good as lost.
        let Some(high) = packet.extensions.number_high else { return true };
        // One wrap of 24 bits up, so that no number before the first lies below zero.
        let high = 1 << 8 | u64::from(high);
        let offset = ((high << 16) + u64::from(packet.sequence)).wrapping_sub(sequence);
        // Two in sequence far behind the largest number: that one was damaged on its way, and all after it would be
        // too late.
        let same = |a: &Acknowledging| {
            let resumed = a.too_late.is_some_and(|last| last + 1 == sequence);
            a.ssrc == packet.ssrc && a.offset.wrapping_sub(offset) & 0xff_ffff == 0 && !resumed
        };
        if !self.acknowledging.as_ref().is_some_and(same) {
            let interval = self.config.ack_interval;
            let mut receiver = SackReceiver::new((!interval.is_zero()).then_some(interval));
            receiver.set_rwnd(self.config.rwnd);
            let due = VecDeque::new();
            let ssrc = packet.ssrc;
            self.acknowledging = Some(Acknowledging { ssrc, offset, receiver, too_late: None, due });
        }
        let Some(a) = &mut self.acknowledging else { return true };
        // What is due leaves for itself, though the driver has not asked for it.
        while let Some(sack) = a.receiver.poll(now) {
            if a.due.len() >= MOST_ACKS {
                a.due.pop_front();
            }
            a.due.push_back((now, sack));
        }
        let seq = sequence.wrapping_add(a.offset);
        let refused = a.receiver.refused();
        a.receiver.on_packet(now, &Arrival { kind: Kind::Data, class: Class::Normal, seq, ecn });
        a.too_late = (a.receiver.refused() > refused).then_some(sequence);
        true
    }

    /// The packet's extended number, if its source is believed.
    fn validate(
        &mut self,
        now: Instant,
        packet: &Packet<'_>,
        from: SocketAddr,
        len: usize,
        role: Role,
        announced: bool,
    ) -> Option<u64> {
        let entry = match self.sources.get_mut(&packet.ssrc) {
            Some(entry) => entry,
            None => {
                if !announced {
                    if self.newcomers.len() >= MOST_SOURCES
                        && let Some(oldest) = self.newcomers.pop_front()
                        && matches!(self.sources.get(&oldest), Some(Entry::Probation(_)))
                    {
                        self.sources.remove(&oldest);
                    }
                    self.newcomers.push_back(packet.ssrc);
                }
                let validator = Validator::new(packet.sequence, announced);
                self.sources.entry(packet.ssrc).or_insert(Entry::Probation(validator))
            }
        };
        match entry {
            Entry::Valid(_, _, source) => match source.validator.update(packet.sequence) {
                Verdict::Accepted(n) => Some(n),
                Verdict::Restarted(n) => {
                    self.measuring = None;
                    source.restart();
                    source.highest_seen = n;
                    self.missing.clear();
                    Some(n)
                }
                Verdict::Rejected => {
                    self.stats.unproven += 1;
                    None
                }
            },
            Entry::Probation(validator) => {
                let Verdict::Accepted(n) = validator.update(packet.sequence) else {
                    self.stats.unproven += 1;
                    return None;
                };
                let validator = *validator;
                self.admit(now, packet, from, len, role, validator, n);
                Some(n)
            }
        }
    }

    #[allow(clippy::too_many_arguments)] // one call, all of them plain facts
    fn admit(
        &mut self,
        now: Instant,
        packet: &Packet<'_>,
        from: SocketAddr,
        len: usize,
        role: Role,
        validator: Validator,
        sequence: u64,
    ) {
        if self.peer.is_none_or(|p| p.address != from) {
            self.take_place(now, from, len);
        }
        self.newcomers.retain(|s| *s != packet.ssrc);
        self.evict_idle();
        let mut source = Source::new(packet.ssrc, validator, now);
        source.highest_seen = sequence;
        self.sources.insert(packet.ssrc, Entry::Valid(role, packet.payload_type, Box::new(source)));
        let (members, senders) = self.group();
        if let Some(t) = &mut self.timing {
            t.set_group(now, members, senders, false);
        }
    }

    fn valid(&self) -> impl Iterator<Item = (Role, &Source)> {
        self.sources.values().filter_map(|e| match e {
            Entry::Valid(role, _, s) => Some((*role, &**s)),
            Entry::Probation(_) => None,
        })
    }

    fn group(&self) -> (u32, u32) {
        let senders = self.valid().count() as u32;
        (1 + senders, senders)
    }

    /// Makes room for one more believed source: the one silent longest goes.
    fn evict_idle(&mut self) {
        if self.valid().count() < MOST_VALID {
            return;
        }
        let idlest = self.valid().min_by_key(|(_, s)| (s.last_arrival, s.ssrc)).map(|(_, s)| s.ssrc);
        if let Some(ssrc) = idlest {
            self.sources.remove(&ssrc);
        }
    }

    fn one_way_delay(&self, now: Instant, packet: &Packet<'_>) -> Option<i64> {
        let sent = packet.extensions.send_time?;
        let here = self.config.ntp_at_zero.at(now).send_time_24();
        // Sign of 24 bits; 2^-18 s each.
        let ticks = i64::from((here.wrapping_sub(sent) << 8) as i32 >> 8);
        Some(ticks * 1_000_000_000 / (1 << 18))
    }

    /// Packets came after a BYE: it was a forgery, or reordering.
    fn notice_life(&mut self, now: Instant) {
        if self.bye.as_ref().is_some_and(|(at, _)| now.since(*at) >= BYE_GRACE / 2) {
            self.bye = None;
            self.stats.byes_ignored += 1;
        }
    }

    // --- what is due -----------------------------------------------------------------------------

    fn schedule_feedback(&mut self, now: Instant, class: Class) {
        let interval = self.config.feedback_interval;
        if let Some(f) = self.feedback.iter_mut().find(|f| f.class == class) {
            let due = f.last.map_or(now, |last| (last + interval).max(now));
            f.due = f.due.min(due);
        }
    }

    fn note_gap(&mut self, now: Instant, highest: u64, sequence: u64) {
        if !self.config.nack {
            return;
        }
        self.missing.remove(&sequence);
        for lost in (highest + 1).max(sequence.saturating_sub(MOST_MISSING as u64))..sequence {
            let m = Missing { since: now, tries: 0, next: now + REORDERING, asked: None };
            self.missing.insert(lost, m);
        }
        while self.missing.len() > MOST_MISSING {
            self.missing.pop_first();
        }
    }

    fn afford(&mut self, len: usize) -> bool {
        let Some(p) = &mut self.peer else { return false };
        let out = p.bytes_out + len as u64;
        if out > AMPLIFICATION.saturating_mul(p.bytes_in) {
            return false;
        }
        p.bytes_out = out;
        true
    }

    fn step(&mut self, now: Instant) -> Step {
        if let Some(echo) = self.echoes.pop_front() {
            return self.echo(now, &echo);
        }
        if now >= self.place_free() {
            for w in core::mem::take(&mut self.waiting) {
                // One that asks no more has given up.
                if !silent(now, w.echo.arrived, TAKEOVER) {
                    self.on_challenge(now, w.challenge, w.echo, w.len);
                }
            }
            return Step::Again;
        }
        let Some(peer) = self.peer else {
            return if self.stopping.is_some() { Step::Stopped } else { Step::Wait(Instant::NEVER) };
        };
        let to = peer.address;
        match self.stopping {
            Some(true) => return Step::Stopped,
            Some(false) => {
                self.stopping = Some(true);
                self.buf.clear();
                self.receiver_report(now);
                rtcp::emit_bye(&mut self.buf, &[self.ssrc], "stopped");
                return Step::Send(to, self.config.data_dscp, What::Bye);
            }
            None => {}
        }
        if silent(now, peer.heard, self.config.vanish_after) {
            self.forget();
            self.event(ReceiverEvent::Vanished);
            return Step::Again;
        }
        if self.bye.as_ref().is_some_and(|(at, _)| now.since(*at) >= BYE_GRACE)
            && let Some((_, reason)) = self.bye.take()
        {
            self.forget();
            self.event(ReceiverEvent::Bye { reason });
            return Step::Again;
        }
        if let Some(what) = self.step_measured(now) {
            return Step::Send(to, self.config.data_dscp, what);
        }
        if let Some(what) = self.step_sack_vector(now) {
            return Step::Send(to, self.config.data_dscp, what);
        }
        if let Some((dscp, what)) = self.step_feedback(now) {
            return Step::Send(to, dscp, what);
        }
        if let Some(what) = self.step_requests(now) {
            return Step::Send(to, self.config.data_dscp, what);
        }
        if self.report_due(now) {
            self.buf.clear();
            self.receiver_report(now);
            let size = Bytes::new(self.buf.len() as u64) + self.config.ip_overhead;
            if let Some(t) = &mut self.timing {
                t.on_sent(now, size);
            }
            return Step::Send(to, self.config.data_dscp, What::Report);
        }
        let mut until = (peer.heard + self.config.vanish_after).min(self.place_free());
        until = self.feedback.iter().fold(until, |t, f| t.min(f.due));
        if let Some(m) = &self.measuring {
            until = until.min(m.receiver.next());
        }
        if let Some(a) = &self.acknowledging {
            until = until.min(a.receiver.next());
        }
        if let Some((at, _)) = &self.bye {
            until = until.min(*at + BYE_GRACE);
        }
        if let Some(t) = &self.timing {
            until = until.min(t.next());
        }
        if let (true, Some(last)) = (self.key_frame_wanted, self.last_key_request) {
            until = until.min(last + KEY_FRAME_SPACING);
        }
        until = self.missing.values().fold(until, |t, m| t.min(m.next));
        Step::Wait(until)
    }

    fn echo(&mut self, now: Instant, pending: &PendingEcho) -> Step {
        self.buf.clear();
        let mut echo = self.echo_of(pending.token, now.since(pending.arrived), pending.dscp, pending.ecn);
        if let Some(proof) = pending.taken {
            (echo.taken, echo.next_report) = (true, proof);
        }
        echo.emit(&mut self.buf);
        if let Some(p) = self.peer.as_mut().filter(|p| p.address == pending.to) {
            p.bytes_out += self.buf.len() as u64;
        }
        let dscp = if pending.class == Class::Low { Dscp::LE } else { self.config.data_dscp };
        Step::Send(pending.to, dscp, What::Echo)
    }

    fn echo_of(&self, token: u64, delay: Duration, dscp: Dscp, ecn: Ecn) -> Echo {
        let acked = self.wants_sack_vectors();
        Echo {
            receiver: self.ssrc,
            token,
            dscp,
            ecn,
            delay,
            rwnd: self.config.rwnd.filter(|_| acked).and_then(|rwnd| NonZeroU8::new(u8::try_from(rwnd).ok()?)),
            feedback_interval: if acked { self.config.ack_interval } else { self.config.feedback_interval },
            next_report: self.next_report,
            taken: false,
        }
    }

    /// The report of the TFRC profile, when it is due. It is as urgent as per-packet feedback, and paced by the
    /// receiver that measures, about once per RTT; other tools take it only in a compound that begins with an RR
    /// and an SDES [RFC 4585 §3.1]. The RR is empty: the blocks' loss fractions count from report to report, and
    /// those of RTCP's own pace are what the circuit breaker goes by.
    fn step_measured(&mut self, now: Instant) -> Option<What> {
        let m = self.measuring.as_mut()?;
        let report = m.receiver.poll(now)?;
        let echoed = (report.echoed.as_nanos() / 1_000) as u32;
        let (report, fmt) = (tfrc::Report::new(self.ssrc, m.ssrc, echoed, &report), m.profile.fmt);
        self.buf.clear();
        rtcp::emit_receiver_report(&mut self.buf, self.ssrc, &[]);
        rtcp::emit_sdes(&mut self.buf, &[self.ssrc], &self.config.cname);
        report.emit(fmt, &mut self.buf);
        Some(What::Feedback)
    }

    /// The next ACK with a sack vector, if one is due.
    fn step_sack_vector(&mut self, now: Instant) -> Option<What> {
        let a = self.acknowledging.as_mut()?;
        let (made, sack) = match a.due.pop_front() {
            Some(due) => due,
            None => (now, a.receiver.poll(now)?),
        };
        let Some(Entry::Valid(_, _, source)) = self.sources.get(&a.ssrc) else { return None };
        let highest = source.validator.highest().wrapping_add(a.offset);
        let ack = sack.unwrap_near(highest.wrapping_add(1))?;
        let sequence = |number: u64| number.wrapping_sub(a.offset);
        let nonce_sum =
            sack.numbers(ack).fold(0_u32, |sum, number| sum.wrapping_add(source.metric(sequence(number), now).1));
        let arrived = Instant::ZERO + sack.arrived_at.unwrap_or_default();
        self.buf.clear();
        sack_vector::Ack {
            receiver: self.ssrc,
            number: self.next_report,
            ack: sack.ack,
            vector: sack.vector,
            rwnd: sack.rwnd.map(sack_vector::rwnd_to_wire),
            dscp: source.dscp,
            ecn: sack.ecn,
            delay: sack_vector::micros(sack.ack_delay + now.since(made)),
            arrival: self.config.ntp_at_zero.at(arrived).middle(),
            nonce_sum,
        }
        .emit(&mut self.buf);
        self.next_report = self.next_report.wrapping_add(1);
        Some(What::Feedback)
    }

    fn step_feedback(&mut self, now: Instant) -> Option<(Dscp, What)> {
        for i in 0..self.feedback.len() {
            let f = self.feedback.get_mut(i)?;
            if f.jobs.is_empty() {
                if now < f.due {
                    continue;
                }
                f.due = Instant::NEVER;
                f.last = Some(now);
                for entry in self.sources.values_mut() {
                    let Entry::Valid(role, _, source) = entry else { continue };
                    if role.class() != f.class || !source.has_news() {
                        continue;
                    }
                    if let Some((mut from, to)) = source.take_range(self.config.feedback_repeats) {
                        while from <= to {
                            let end = to.min(from + MOST_METRICS - 1);
                            f.jobs.push_back((source.ssrc, from, end));
                            from = end + 1;
                        }
                    }
                }
            }
            if f.jobs.is_empty() {
                continue;
            }
            // As many jobs as one datagram holds.
            let mut len = claim::len(0) + ccfb::OVERHEAD;
            let mut n = 0;
            for &(_, from, to) in &f.jobs {
                len += claim::len(1) - claim::len(0) + ccfb::block_len((to - from + 1) as usize);
                if n > 0 && len > MOST_FEEDBACK {
                    break;
                }
                n += 1;
            }
            let dscp = if f.class == Class::Low { Dscp::LE } else { self.config.data_dscp };
            let batch = f.jobs.iter().take(n).filter_map(|&(ssrc, from, to)| match self.sources.get(&ssrc) {
                Some(Entry::Valid(_, _, s)) => Some((&**s, from, to)),
                _ => None,
            });
            self.buf.clear();
            let claims = batch.clone().map(|(s, from, to)| Claim {
                nonce_sum: (from..=to).fold(0, |sum, q| sum.wrapping_add(s.metric(q, now).1)),
                dscp: s.dscp,
            });
            claim::emit(&mut self.buf, self.ssrc, self.next_report, claims);
            let blocks = batch.map(|(s, from, to)| (s.ssrc, from as u16, (from..=to).map(move |q| s.metric(q, now).0)));
            let timestamp = self.config.ntp_at_zero.at(now).middle();
            ccfb::emit(&mut self.buf, self.ssrc, timestamp, blocks);
            self.next_report = self.next_report.wrapping_add(1);
            self.feedback.get_mut(i)?.jobs.drain(..n);
            return Some((dscp, What::Feedback));
        }
        None
    }

    fn step_requests(&mut self, now: Instant) -> Option<What> {
        let media = self.media?;
        if self.key_frame_wanted && self.last_key_request.is_none_or(|at| now.since(at) >= KEY_FRAME_SPACING) {
            self.key_frame_wanted = false;
            self.last_key_request = Some(now);
            self.buf.clear();
            rtcp::emit_picture_loss(&mut self.buf, self.ssrc, media);
            return Some(What::KeyFrameRequest);
        }
        if self.missing.values().any(|m| m.next <= now) {
            self.scratch.clear();
            let (deadline, rtt) = (self.config.nack_deadline, self.nack_rtt);
            self.missing.retain(|_, m| now.since(m.since) < deadline && (m.tries < MOST_NACKS || m.next > now));
            for (sequence, m) in self.missing.iter_mut().filter(|(_, m)| m.next <= now) {
                m.tries += 1;
                m.asked = Some(now);
                // A retry before the answer can be there would fetch it twice.
                m.next = now + (rtt * 5 / 4).max(REORDERING) * u32::from(m.tries);
                self.scratch.push(*sequence as u16);
            }
            if !self.scratch.is_empty() {
                self.buf.clear();
                rtcp::emit_nack(&mut self.buf, self.ssrc, media, &self.scratch);
                return Some(What::Nack);
            }
        }
        None
    }

    fn report_due(&mut self, now: Instant) -> bool {
        match &mut self.timing {
            Some(t) if t.next() <= now => t.on_timer(now) == Due::Report,
            _ => false,
        }
    }

    fn receiver_report(&mut self, now: Instant) {
        let blocks: Vec<_> = self
            .sources
            .values_mut()
            .filter_map(|e| match e {
                Entry::Valid(_, _, s) => Some(s.report_block(now)),
                Entry::Probation(_) => None,
            })
            .collect();
        rtcp::emit_receiver_report(&mut self.buf, self.ssrc, &blocks);
        rtcp::emit_sdes(&mut self.buf, &[self.ssrc], &self.config.cname);
        if let Some(pairs) = self.pairs.as_ref().filter(|_| self.wants_reports()) {
            let bottleneck = pairs.estimator.estimate();
            PairReport { receiver: self.ssrc, bottleneck, nonce_sum: pairs.nonce_sum }.emit(&mut self.buf);
        }
    }

    fn event(&mut self, event: ReceiverEvent) {
        if self.events.len() >= MOST_EVENTS {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }
}
