//! The sending side: frames in, paced datagrams out, feedback in, rate out.
//!
//! ```text
//!               echo of the normal challenge         echo of the LE one, or a moment later
//!  Challenging ------------------------------> Settling ----------------------------> Running
//!       | three tries, 7 s                                                              | stop, BYE,
//!       v                                                                               v breaker, lie
//!  Stopped(Unreachable)                                               Leaving (one BYE) --> Stopped
//! ```
//!
//! Before Running nothing leaves but challenges. What a peer says is believed if it comes from the SSRC
//! that echoed the challenge, carries a fresh report number and the right sum of nonces
//! ([`crate::claim`]); the rest is counted in [`RejectedFeedback`].
//!
//! A controller that wants a receiver which measures ([`fairpace_control::FeedbackForm::Reports`]) gets the
//! TFRC profile ([`crate::tfrc`]): stamps go out in place of nonces, reports come back in place of
//! acknowledgements. They prove nothing but that somebody there saw a stamp; what the flow makes of them is its
//! to say. Such a receiver may be another tool, which echoes no challenge: then its first report takes the
//! echo's place, and to have something to report on it is sent empty packets, one a second, six at most.
//!
//! A controller that wants sack vectors ([`fairpace_control::FeedbackForm::SackVector`]) gets them
//! ([`crate::sack_vector`]), believed as per-packet feedback is.
//!
//! A controller that goes by receiver reports ([`fairpace_control::FeedbackForm::ReceiverReports`]) gets one each
//! [`fairpace_control::Controller::report_interval`], with the rate that packet pairs measure ([`crate::pair_report`]); sender reports
//! go as often, so that each measures a round trip. A report of no new loss is believed if the sum of nonces proves it; else
//! it counts as one of one packet lost.
//!
//! # The TCP half
//!
//! A controller that begins over TCP ([`fairpace_control::Controller::via`]) has a connection beside the datagrams. When the
//! peer has echoed a challenge, [`SenderSession::wants_tcp`] asks the driver to connect to the same address and port; the
//! first packet there is that challenge once more, and Running begins when the peer has echoed it. From then on each packet
//! out says which way it takes ([`Datagram::via`]). RTCP goes by UDP. The session tells the flow where application data units
//! end: a frame's last packet; the rest of [`fairpace_control::Flow`]'s duties are the driver's
//! ([`SenderSession::on_tcp`], [`SenderSession::on_tcp_drained`], [`SenderSession::take_tcp_order`]).

use crate::ccfb::{Block, Metric, Report};
use crate::challenge::{Challenge, Echo, Form, Message};
use crate::claim::{Claim, Claims};
use crate::header_ext::Extensions;
use crate::out::Counts;
use crate::packet::{self, Packet};
use crate::pair_report::PairReport;
use crate::rtcp::{Compound, Nack, ReportBlock, Rtcp, SenderInfo};
use crate::rtcp_timing::{Due, Parameters, RtcpTiming};
use crate::secret::Purpose;
use crate::send_queue::{LEAST_PAYLOAD, SendQueue};
use crate::sent::{Lookup, Stream};
use crate::tfrc::{self, Profile, Stamp};
use crate::{Datagram, NtpTime, Out, Secret, StopReason, What, dummy, ntp, rtcp, rtx, sack_vector};
use fairpace_control::{
    Ack, FeedbackForm, Flow, Permit, ReceiverReport, SackVector, TcpOrder, TcpProgress, Transmit, packet_pair,
};
use fairpace_units::{Bytes, Class, Dscp, Duration, Ecn, Instant, Kind, RandomStream, Rate, Via};
use std::collections::VecDeque;

/// What the media stream carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum Codec {
    /// Frames of unknown content, with a one-byte descriptor.
    #[default]
    Generic = 0,
    /// VP8 [RFC 7741].
    Vp8 = 1,
}

impl Codec {
    pub(crate) const fn from_wire(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Codec::Generic),
            1 => Some(Codec::Vp8),
            _ => None,
        }
    }

    /// Default payload type of the media stream.
    pub const fn payload_type(self) -> u8 {
        match self {
            Codec::Vp8 => 96,
            Codec::Generic => 97,
        }
    }
}

/// Who began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Admission {
    /// A person named the peer: challenges may go out unasked.
    #[default]
    Initiator,
    /// Somebody asked: until the address is proven, at most three times the bytes received go there.
    Responder,
}

/// How a sending session is set up.
#[derive(Clone, Debug)]
pub struct SenderConfig {
    /// IP size of a full data packet and of every dummy; the flow's `packet_size`. From the headers (60 B over
    /// IPv4, with VP8's descriptor) and a few bytes to 1,500 B; larger frames are cut to it from
    /// [`least_packet_size`](Self::least_packet_size) on.
    pub packet_size: Bytes,
    /// IP and UDP headers: 28 B for IPv4, 48 B for IPv6. Counted in every size that the flow sees.
    pub ip_overhead: Bytes,
    /// What the frames are.
    pub codec: Codec,
    /// Code point of media and of normal-class RTCP. Dummies are LE whatever this is.
    pub data_dscp: Dscp,
    /// RTCP's canonical name; must not tell the host's name. Empty: a random one.
    pub cname: String,
    /// What RTCP's 5 % is taken of.
    pub session_bandwidth: Rate,
    /// RTCP as often as 360 s / (kbit/s) allows, in place of 5 s.
    pub reduced_minimum: bool,
    /// A frame that has waited longer than this is dropped. [`Duration::MAX`]: never.
    pub max_queue_delay: Duration,
    /// Keep media and send it again when asked [RFC 4588].
    pub retransmission: bool,
    /// A packet first sent longer ago than this is not sent again: it would come too late to be shown, in the
    /// place of one that would not. A key frame is asked of the encoder instead. About the play-out delay.
    pub retransmission_limit: Duration,
    /// Believe feedback only with the right sum of nonces. Off: for tests, and peers that prove nothing.
    pub check_nonces: bool,
    /// The numbers to use with a receiver that measures; of no effect if the controller wants every packet told.
    pub rate_profile: Profile,
    /// Who began.
    pub admission: Admission,
    /// Where the numbers of all streams begin, 24 bits, of which the lowest 16 are RTP's; `None`: where nobody can
    /// guess.
    pub first_sequence: Option<u32>,
    /// What the wall clock showed at [`Instant::ZERO`].
    pub ntp_at_zero: NtpTime,
}

impl Default for SenderConfig {
    fn default() -> Self {
        SenderConfig {
            packet_size: Bytes::new(1_200),
            ip_overhead: Bytes::new(28),
            codec: Codec::Generic,
            data_dscp: Dscp::DEFAULT,
            cname: String::new(),
            session_bandwidth: Rate::mbps(1.0),
            reduced_minimum: false,
            max_queue_delay: Duration::from_millis(400),
            retransmission: false,
            retransmission_limit: Duration::from_secs(2),
            check_nonces: true,
            rate_profile: Profile::default(),
            admission: Admission::Initiator,
            first_sequence: None,
            ntp_at_zero: NtpTime::default(),
        }
    }
}

impl SenderConfig {
    /// The smallest [`packet_size`](Self::packet_size) that frames of any length are cut to: the headers and 16 B of
    /// payload, descriptor included; 72 B over IPv4 without retransmission.
    pub fn least_packet_size(&self) -> Bytes {
        Bytes::new((overhead(self) + LEAST_PAYLOAD) as u64)
    }
}

/// One encoded frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The encoder's output.
    pub data: Vec<u8>,
    /// Capture time on a 90 kHz clock.
    pub timestamp_90k: u32,
    /// Can be decoded without any other. Set it on every frame of sources whose frames are independent.
    pub key: bool,
}

/// What the application should know.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SenderEvent {
    /// The peer is there, and wants this.
    PeerValidated {
        /// The first round trip.
        srtt: Duration,
        /// The code point that the normal challenge arrived with; `None` if a report stood in for its echo.
        dscp_seen: Option<Dscp>,
    },
    /// The network keeps or changes a class's code point; told when it becomes known and when it changes.
    DscpSeen {
        /// The class.
        class: Class,
        /// What we sent.
        sent: Dscp,
        /// What arrived.
        arrived: Dscp,
    },
    /// The TCP half is there too.
    TcpUp,
    /// The encoder should produce this much: wire rate of data packets. See [`SenderSession::media_rate`].
    TargetRate(Rate),
    /// The encoder must give a key frame: the peer lost something, or frames were dropped here.
    KeyFrameRequest,
    /// That many frames were dropped because the queue was too old.
    FramesDropped(u64),
    /// It is over.
    Stopped(StopReason),
}

/// Feedback that was not believed, by reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct RejectedFeedback {
    /// Not RTCP, or RTCP that breaks a rule of form.
    pub malformed: u64,
    /// From an SSRC that has not echoed our challenge, or about a stream that is not ours.
    pub wrong_ssrc: u64,
    /// A report number seen before, too old, or too far ahead.
    pub replayed: u64,
    /// Without claims, with fewer claims than blocks, or in a form that was not asked for; receiver reports of no loss that
    /// nothing proves.
    pub unproven: u64,
    /// The sum of nonces is wrong: a packet is claimed that has not arrived.
    pub nonce: u64,
    /// A packet is claimed that has not been sent.
    pub unsent: u64,
    /// An echo whose token we did not send.
    pub token: u64,
    /// A receiver report about packets not sent, or older than the last one.
    pub report: u64,
    /// A report of a receiver that measures, which cannot be true or is older than another.
    pub measured: u64,
}

/// What a sending session has done.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct SenderStats {
    /// Sent, by kind.
    pub sent: Counts,
    /// Datagrams received.
    pub received: u64,
    /// Feedback accepted, per packet or measured: datagrams and UDP payload bytes.
    pub feedback: crate::Count,
    /// What was not believed.
    pub rejected: RejectedFeedback,
    /// Frames handed in.
    pub frames: u64,
    /// Frames dropped because the queue was too old.
    pub frames_dropped: u64,
    /// Key frames asked for by the peer.
    pub key_frame_requests: u64,
    /// Packets asked for again by the peer.
    pub nacked: u64,
    /// Of those, not sent again because it was too late.
    pub too_late: u64,
    /// BYEs that were ignored because feedback went on.
    pub byes_ignored: u64,
    /// RTT from the last receiver report (LSR, DLSR), for the eye only.
    pub report_rtt: Option<Duration>,
    /// Fraction of media lost in the last receiver report's interval.
    pub fraction_lost: Option<f64>,
    /// Interarrival jitter of the last receiver report.
    pub jitter: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    /// So many tries made; the next at that instant.
    Challenging(u32, Instant),
    /// The peer is real; until then its answer about LE is awaited.
    Settling(Instant),
    Running,
    /// Say goodbye, then stop.
    Leaving(StopReason),
    Stopped(StopReason),
}

/// Challenges: three, then 1 s, 2 s and 4 s of patience. RFC 8085 §3.1.1: 1 s before any RTT is known.
const TRIES: u32 = 3;
const FIRST_PATIENCE: Duration = Duration::from_secs(1);
/// The LE echo travels with the normal one; this much later it is lost.
const SETTLING: Duration = Duration::from_millis(100);
/// Consent ends after 30 s without a sign of the peer [RFC 7675 §5.1]; asked for anew from half of it.
const CONSENT: Duration = Duration::from_secs(30);
const CONSENT_RETRY: Duration = Duration::from_secs(5);
/// A TCP connection may take so long: the SYNs of 0, 1 and 3 s, and some time for the last.
const TCP_PATIENCE: Duration = Duration::from_secs(5);
/// Reports where a controller that goes by them does not say how often.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);
/// So far before a report a packet may belong that came late: as far back as RTP takes for reordering [RFC 3550 A.1].
const LATEST: u64 = 100;
/// To an address that is not proven: at most three times what came from it [RFC 9000 §8.1].
const AMPLIFICATION: u64 = 3;
/// False claims in a row, about different packets, before the flow stops.
const LIES: u32 = 3;
/// How long a BYE waits for feedback that contradicts it, and how long before it counts as such.
const BYE_GRACE: Duration = Duration::from_millis(500);
const BYE_CONTRADICTED: Duration = Duration::from_millis(100);
/// A peer that has echoed no challenge gets a packet to report on at most this often: TFRC's own pace before it
/// has any feedback [RFC 5348 §4.2].
const PROBE_SPACING: Duration = Duration::from_secs(1);
/// So many fit between the first challenge's end and the last one's: at 1 to 6 s.
const MOST_PROBES: usize = 6;
/// Requests for a key frame reach the encoder at most this often.
const KEY_FRAME_SPACING: Duration = Duration::from_millis(200);
/// A frame just captured needs its interval to leave, a key frame about three.
const QUEUE_ROOM: Duration = Duration::from_millis(100);
/// As long as most queues on the path would take: faster, and every key frame costs the next ones their quality.
const QUEUE_DRAIN: Duration = Duration::from_millis(500);
/// A packet is sent again at most so many times; so many requests may wait.
const MOST_RETRANSMISSIONS: u8 = 3;
const MOST_PENDING: usize = 256;
/// Of one NACK, no more is looked at: work per datagram stays bounded.
const MOST_NACKED: usize = 1_024;
const MOST_EVENTS: usize = 256;
const MOST_TOKENS: usize = 32;

/// What every IPv4 host must take [RFC 791 §3.1]: a claim that a path carries less is not believed.
pub const LEAST_PATH_MTU: Bytes = Bytes::new(576);

/// What is in front of a packet's payload, and in front of it when it is sent again.
fn overhead(config: &SenderConfig) -> usize {
    let osn = if config.retransmission { rtx::OSN_LEN } else { 0 };
    config.ip_overhead.get() as usize + packet::HEADER_LEN + Extensions::FULL_LEN + osn
}

/// RTP payload of a full packet, descriptor included.
fn max_payload(config: &SenderConfig) -> usize {
    (config.packet_size.get() as usize).saturating_sub(overhead(config))
}

/// Which report numbers have been seen: 64 back, and as far ahead as 10 minutes of lost reports.
#[derive(Clone, Copy, Debug)]
struct ReplayWindow {
    highest: u32,
    seen: u64,
}

impl ReplayWindow {
    const AHEAD: u32 = 1 << 16;

    /// `next`: the first number to come.
    const fn new(next: u32) -> Self {
        ReplayWindow { highest: next.wrapping_sub(1), seen: u64::MAX }
    }

    const fn is_fresh(&self, number: u32) -> bool {
        let ahead = number.wrapping_sub(self.highest);
        let behind = self.highest.wrapping_sub(number);
        (ahead > 0 && ahead <= Self::AHEAD) || (behind < 64 && self.seen >> behind & 1 == 0)
    }

    fn accept(&mut self, number: u32) {
        let ahead = number.wrapping_sub(self.highest);
        if ahead > 0 && ahead <= Self::AHEAD {
            self.seen = self.seen.checked_shl(ahead).unwrap_or(0) | 1;
            self.highest = number;
        } else {
            let behind = self.highest.wrapping_sub(number);
            self.seen |= 1_u64.checked_shl(behind).unwrap_or(0);
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Token {
    value: u64,
    class: Class,
    sent: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Peer {
    ssrc: u32,
    reports: ReplayWindow,
}

/// A sending session. See the crate's documentation for the driver's contract.
#[derive(Debug)]
pub struct SenderSession {
    config: SenderConfig,
    secret: Secret,
    flow: Flow,
    phase: Phase,
    now: Instant,
    media: Stream,
    dummy: Stream,
    rtx: Stream,
    queue: SendQueue,
    history: rtx::History,
    /// Indices of media packets to send again.
    pending: VecDeque<u64>,
    /// Challenges to send at once.
    questions: VecDeque<Class>,
    tokens: VecDeque<Token>,
    tokens_made: u64,
    /// What an echo wanted to see again.
    proof: Option<u32>,
    unproven_in: u64,
    unproven_out: u64,
    peer: Option<Peer>,
    lies: u32,
    consent: Instant,
    next_consent_try: Instant,
    bye: Option<Instant>,
    dscp_seen: [Option<Dscp>; 2],
    timing: Option<RtcpTiming>,
    /// The profile in use, if the receiver measures.
    measuring: Option<Measuring>,
    /// Packets are acknowledged by sack vectors.
    sack_vectors: bool,
    /// What receiver reports have told, if the controller goes by nothing else.
    reporting: Option<Reporting>,
    tcp: Option<TcpHalf>,
    /// Report number and `ack_a` of the last ACK that was not believed, if none was since.
    false_ack: Option<(u32, u32)>,
    /// Highest media index in a receiver report, and when that came.
    last_report: Option<(u64, Instant)>,
    running_since: Instant,
    first_rtt: Duration,
    /// The last report's timestamp, unwrapped: 1/65,536 s.
    report_clock: Option<u64>,
    timestamp_offset: u32,
    last_frame: Option<(Instant, u32)>,
    last_key_request: Option<Instant>,
    asked_for_key: bool,
    target_told: Rate,
    events: VecDeque<SenderEvent>,
    stats: SenderStats,
    acks: Vec<Ack>,
    buf: Vec<u8>,
}

/// What is kept of a receiver that measures.
#[derive(Clone, Copy, Debug)]
struct Measuring {
    profile: Profile,
    /// Added to every time sent, so that nobody can guess one.
    offset: u32,
    /// The newest stamp's time, µs since [`Instant::ZERO`].
    stamped: Option<u64>,
    /// When an empty packet may next leave to a peer that has not answered.
    next_probe: Instant,
    /// The times sent of those that have left, newest first: the first report must echo one of them exactly.
    probes: [Option<u64>; MOST_PROBES],
}

/// What receiver reports have told so far.
#[derive(Clone, Copy, Debug)]
struct Reporting {
    /// T_rtcp.
    interval: Duration,
    /// Index of the first packet that the next report can tell of.
    next: u64,
    /// The sum of nonces in the last report.
    nonce_sum: u32,
    /// Packets lost so far as the peer counts.
    lost: i64,
    /// Losses that it has not told of, and did not prove away.
    unproven: i64,
}

/// What a receiver report makes of that.
#[derive(Clone, Copy, Debug)]
struct LostSoFar {
    after: Reporting,
    /// Nothing new was lost, and the sum of nonces says so.
    proven: bool,
    /// The least that was lost, of what the report is about.
    least_fraction: f64,
}

/// The flow's TCP connection.
#[derive(Clone, Copy, Debug)]
struct TcpHalf {
    state: TcpState,
    /// The token that the peer has echoed over UDP.
    token: u64,
    /// When patience with the connection ends.
    deadline: Instant,
    /// More can be given to it.
    room: bool,
    /// Nothing more is given to it, and what was given is on its way.
    draining: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TcpState {
    Absent,
    Connected,
    Greeted,
    Up,
}

/// What some feedback claims of one stream.
#[derive(Clone, Copy, Debug)]
struct Claimed {
    /// What the sum must be.
    nonce_sum: u32,
    /// Packets among it that were never sent.
    unsent: bool,
    /// Index of the last packet claimed.
    last: u64,
}

impl Claimed {
    /// Of the packets with these indices, in order; `None`: never sent.
    fn new(secret: &Secret, ssrc: u32, told: impl Iterator<Item = Option<u64>>) -> Self {
        let mut claimed = Claimed { nonce_sum: 0, unsent: false, last: 0 };
        for index in told {
            match index {
                Some(index) => {
                    claimed.nonce_sum = claimed.nonce_sum.wrapping_add(secret.nonce(ssrc, index));
                    claimed.last = index;
                }
                None => claimed.unsent = true,
            }
        }
        claimed
    }
}

/// Whole µs since [`Instant::ZERO`].
const fn micros(t: Instant) -> u64 {
    t.as_nanos() / 1_000
}

enum Step {
    Send(Dscp, Ecn, What, Via),
    Wait(Instant),
    Stopped(StopReason),
    Again,
}

impl SenderSession {
    /// A session that sends `flow`'s packets. It begins with the first `poll`.
    ///
    /// `flow` must have been made with the same `packet_size`, and without a `skip`: nonces do better. There are
    /// no retransmissions to a receiver that measures, nor under sack vectors, nor where receiver reports are all there is:
    /// they have numbers of their own, and would not be in what it measures, nor among the vector's.
    pub fn new(mut config: SenderConfig, flow: Flow, secret: Secret) -> Self {
        if config.cname.is_empty() {
            config.cname = secret.cname();
        }
        let random = |purpose, n| secret.value(purpose, 0, n);
        let form = flow.controller().feedback_form();
        let measuring = (form == FeedbackForm::Reports).then(|| Measuring {
            profile: config.rate_profile,
            offset: random(Purpose::FirstTimestamp, 1) as u32,
            stamped: None,
            next_probe: Instant::ZERO,
            probes: [None; MOST_PROBES],
        });
        config.retransmission &= form == FeedbackForm::Acks;
        let interval = flow.controller().report_interval().unwrap_or(REPORT_INTERVAL);
        let reporting = (form == FeedbackForm::ReceiverReports).then_some(Reporting {
            interval,
            next: 0,
            nonce_sum: 0,
            lost: 0,
            unproven: 0,
        });
        let absent =
            TcpHalf { state: TcpState::Absent, token: 0, deadline: Instant::NEVER, room: false, draining: false };
        let tcp = (flow.via() == Via::Tcp).then_some(absent);
        // Three different SSRCs; the loop ends at once but for one seed in 2^32.
        let mut ssrcs = [0_u32; 3];
        let mut n = 0;
        for i in 0..ssrcs.len() {
            loop {
                let candidate = random(Purpose::Ssrc, n) as u32;
                n += 1;
                if candidate != 0 && !ssrcs.contains(&candidate) {
                    if let Some(s) = ssrcs.get_mut(i) {
                        *s = candidate;
                    }
                    break;
                }
            }
        }
        let [media, dummy, rtx] = ssrcs;
        let stream = |ssrc, payload_type, n| {
            let first = config.first_sequence.unwrap_or(random(Purpose::FirstSequence, n) as u32);
            // Both ends know packet pairs by their number.
            let first = if reporting.is_some() { first & !(packet_pair::PERIOD as u32 - 1) } else { first };
            Stream::new(ssrc, payload_type, first)
        };
        let max_payload = max_payload(&config);
        SenderSession {
            media: stream(media, config.codec.payload_type(), 0),
            dummy: stream(dummy, dummy::PAYLOAD_TYPE, 1),
            rtx: stream(rtx, rtx::PAYLOAD_TYPE, 2),
            queue: SendQueue::new(
                config.codec,
                max_payload,
                config.max_queue_delay,
                random(Purpose::PictureId, 0) as u16,
            ),
            history: rtx::History::default(),
            pending: VecDeque::new(),
            questions: VecDeque::new(),
            tokens: VecDeque::new(),
            tokens_made: 0,
            proof: None,
            unproven_in: 0,
            unproven_out: 0,
            peer: None,
            lies: 0,
            consent: Instant::ZERO,
            next_consent_try: Instant::NEVER,
            bye: None,
            dscp_seen: [None; 2],
            timing: None,
            measuring,
            sack_vectors: form == FeedbackForm::SackVector,
            reporting,
            tcp,
            false_ack: None,
            last_report: None,
            running_since: Instant::ZERO,
            first_rtt: Duration::ZERO,
            report_clock: None,
            timestamp_offset: random(Purpose::FirstTimestamp, 0) as u32,
            last_frame: None,
            last_key_request: None,
            asked_for_key: false,
            target_told: Rate::ZERO,
            events: VecDeque::new(),
            stats: SenderStats::default(),
            acks: Vec::new(),
            buf: Vec::with_capacity(2_048),
            phase: Phase::Challenging(0, Instant::ZERO),
            now: Instant::ZERO,
            config,
            secret,
            flow,
        }
    }

    // --- what happened ---------------------------------------------------------------------------

    /// The encoder has produced a frame.
    pub fn push_frame(&mut self, now: Instant, frame: Frame) {
        let now = self.advance(now);
        self.stats.frames += 1;
        if frame.key {
            self.asked_for_key = false;
        }
        let timestamp = frame.timestamp_90k.wrapping_add(self.timestamp_offset);
        self.last_frame = Some((now, timestamp));
        self.queue.push(now, frame.data, timestamp, frame.key);
        self.note_drops();
    }

    /// A datagram has arrived from the peer's exact address (the driver compares), with these marks.
    pub fn handle_datagram(&mut self, now: Instant, bytes: &[u8], _dscp: Dscp, _ecn: Ecn) {
        let now = self.advance(now);
        self.stats.received += 1;
        if matches!(self.phase, Phase::Leaving(_) | Phase::Stopped(_)) {
            return;
        }
        if self.peer.is_none() {
            self.unproven_in = self.unproven_in.saturating_add(bytes.len() as u64);
        }
        let compound = if packet::is_rtcp(bytes) { Compound::parse(bytes).ok() } else { None };
        let Some(compound) = compound else {
            self.stats.rejected.malformed += 1;
            return;
        };
        if compound.is_full()
            && let Some(t) = &mut self.timing
        {
            t.on_received(Bytes::new(bytes.len() as u64) + self.config.ip_overhead);
        }
        let mut claims = None;
        let pairs = self.reporting.and_then(|_| {
            compound.into_iter().find_map(|packet| match packet {
                Rtcp::App(app) => PairReport::parse(&app).ok()?,
                _ => None,
            })
        });
        for packet in compound {
            match packet {
                Rtcp::App(app) => match (Message::parse(&app), Claims::parse(&app), sack_vector::Ack::parse(&app)) {
                    (Ok(Some(Message::Echo(echo))), ..) => self.on_echo(now, &echo),
                    (_, Ok(Some(c)), _) => claims = Some(c),
                    (.., Ok(Some(ack))) => self.on_sack_vector(now, &ack, bytes.len()),
                    (Ok(_), Ok(None), Ok(None)) => {}
                    _ => self.stats.rejected.malformed += 1,
                },
                Rtcp::CongestionFeedback(reporter, body) => match Report::parse(reporter, body) {
                    Ok(report) => self.on_feedback(now, claims.take(), &report, bytes.len()),
                    Err(_) => self.stats.rejected.malformed += 1,
                },
                Rtcp::ReceiverReport(reporter, blocks) | Rtcp::SenderReport(reporter, _, blocks) => {
                    for block in blocks {
                        self.on_report_block(now, reporter, &block, pairs, bytes.len());
                    }
                }
                Rtcp::PictureLoss(sender, media) if self.is_peer(sender) && media == self.media.ssrc => {
                    self.stats.key_frame_requests += 1;
                    self.request_key_frame(now);
                }
                Rtcp::Nack(nack) if self.is_peer(nack.sender) && nack.media == self.media.ssrc => {
                    self.on_nack(now, &nack)
                }
                Rtcp::Bye(bye) if bye.ssrcs().any(|s| self.is_peer(s)) => self.bye = self.bye.or(Some(now)),
                Rtcp::PictureLoss(..) | Rtcp::Nack(_) | Rtcp::Bye(_) => self.stats.rejected.wrong_ssrc += 1,
                Rtcp::TransportFeedback { fmt, sender, media, fci }
                    if self.measuring.is_some_and(|m| m.profile.fmt == fmt) =>
                {
                    match tfrc::Report::parse(sender, media, fci) {
                        Ok(report) => self.on_measured(now, &report, bytes.len()),
                        Err(_) => self.stats.rejected.malformed += 1,
                    }
                }
                Rtcp::TransportFeedback { .. } | Rtcp::Sdes(_) | Rtcp::Other(_) => {}
            }
        }
        self.note_rate();
    }

    // --- the TCP half ----------------------------------------------------------------------------

    /// Whether the driver is to connect by TCP to the peer's address and port: the peer has echoed a challenge, and the
    /// controller needs the connection.
    pub fn wants_tcp(&self) -> bool {
        matches!(self.phase, Phase::Settling(_)) && self.tcp.is_some_and(|t| t.state == TcpState::Absent)
    }

    /// Whether this flow has a TCP half.
    pub const fn has_tcp(&self) -> bool {
        self.tcp.is_some()
    }

    /// Whether all that the controller needs is there: the peer has answered, by TCP too if there is a TCP half.
    pub fn is_connected(&self) -> bool {
        self.peer.is_some() && self.tcp.is_none_or(|t| t.state == TcpState::Up)
    }

    /// The TCP connection is there.
    pub fn on_tcp_connected(&mut self, now: Instant) {
        self.advance(now);
        if let Some(t) = self.tcp.as_mut().filter(|t| t.state == TcpState::Absent) {
            t.state = TcpState::Connected;
        }
    }

    /// The TCP connection could not be made, or has ended; so does the session.
    pub fn on_tcp_closed(&mut self, now: Instant) {
        self.advance(now);
        self.end(match self.tcp {
            Some(TcpHalf { state: TcpState::Up, .. }) => StopReason::TcpLost,
            _ => StopReason::NoTcp,
        });
    }

    /// A packet has come over the TCP connection ([`crate::framing`]).
    pub fn handle_tcp_packet(&mut self, now: Instant, bytes: &[u8]) {
        self.advance(now);
        let expected = self.tcp.filter(|t| t.state == TcpState::Greeted).zip(self.peer);
        let echo = Compound::parse(bytes).ok().and_then(|mut compound| match compound.next() {
            Some(Rtcp::App(app)) => Message::parse(&app).ok()?,
            _ => None,
        });
        let (Some((t, peer)), Some(Message::Echo(echo))) = (expected, echo) else {
            self.stats.rejected.malformed += 1;
            return;
        };
        if echo.token != t.token {
            self.stats.rejected.token += 1;
        } else if echo.receiver != peer.ssrc {
            self.stats.rejected.wrong_ssrc += 1;
        } else {
            self.tcp = Some(TcpHalf { state: TcpState::Up, room: true, ..t });
            self.event(SenderEvent::TcpUp);
        }
    }

    /// Whether the TCP connection takes more; packets that go that way wait until it does.
    pub fn set_tcp_room(&mut self, room: bool) {
        if let Some(t) = self.tcp.as_mut().filter(|t| t.state == TcpState::Up) {
            t.room = room;
        }
    }

    /// Whether packets wait until TCP has delivered what it was given: as soon as that is acknowledged,
    /// [`SenderSession::on_tcp_drained`] is due.
    pub fn is_draining(&self) -> bool {
        self.tcp.is_some_and(|t| t.draining)
    }

    /// How far the TCP connection is: at each waking, before anything else.
    pub fn on_tcp(&mut self, now: Instant, progress: &TcpProgress) {
        let now = self.advance(now);
        self.flow.on_tcp(now, progress);
        self.note_rate();
    }

    /// All that was given to the TCP connection is acknowledged.
    pub fn on_tcp_drained(&mut self, now: Instant) {
        let now = self.advance(now);
        self.flow.on_tcp_drained(now);
        self.note_rate();
    }

    /// What the TCP connection is to do; ask until `None` after each call.
    pub fn take_tcp_order(&mut self) -> Option<TcpOrder> {
        self.flow.take_tcp_order()
    }

    /// Ends the session: one BYE if the peer is proven, then [`Out::Stopped`].
    pub fn stop(&mut self, now: Instant) {
        self.advance(now);
        self.end(StopReason::Requested);
    }

    /// The application wants at most this much; see [`Flow::set_demand`].
    pub fn set_demand(&mut self, now: Instant, max: Option<Rate>) {
        let now = self.advance(now);
        self.flow.set_demand(now, max);
        self.note_rate();
    }

    /// The path carries no IP packet larger than `size`: media that has not left and dummies are cut to fit.
    /// Never raises the size, and never goes below [`LEAST_PATH_MTU`], because such news can be forged. The controller
    /// goes on counting in its own packets, so that less is sent than it allows, not more.
    pub fn limit_packet_size(&mut self, size: Bytes) {
        let size = size.max(LEAST_PATH_MTU);
        if size < self.config.packet_size {
            self.config.packet_size = size;
            self.queue.set_max_payload(max_payload(&self.config));
        }
    }

    // --- questions -------------------------------------------------------------------------------

    /// IP size of a full packet, as it was asked for or as [`limit_packet_size`](Self::limit_packet_size) has left it.
    pub fn packet_size(&self) -> Bytes {
        self.config.packet_size
    }

    /// What to do now. Call until it says [`Out::Wait`] or [`Out::Stopped`].
    pub fn poll(&mut self, now: Instant) -> Out<'_> {
        let now = self.advance(now);
        self.drop_late_retransmissions(now);
        let step = loop {
            match self.step(now) {
                Step::Again => {}
                step => break step,
            }
        };
        self.note_rate();
        match step {
            Step::Send(dscp, ecn, what, via) => {
                self.stats.sent.add(what, self.buf.len());
                Out::Datagram(Datagram { bytes: &self.buf, dscp, ecn, what, to: None, via })
            }
            Step::Wait(until) => Out::Wait(until),
            Step::Stopped(reason) => Out::Stopped(reason),
            Step::Again => Out::Wait(now), // not reached: the loop goes on
        }
    }

    /// The next thing to know, oldest first. Of several target rates only the latest is kept.
    pub fn next_event(&mut self) -> Option<SenderEvent> {
        self.events.pop_front()
    }

    /// What the encoder's packets may use on the wire.
    pub fn target_rate(&self) -> Rate {
        self.flow.target_rate()
    }

    /// What the encoder's *bitstream* may use: the target rate less the headers of full packets, and less what
    /// empties the queue of more than [`QUEUE_ROOM`] within [`QUEUE_DRAIN`]; never below half of it. An encoder
    /// that gives a little too much, or a driver that is often late, would else fill the queue until frames are
    /// dropped, on a path that loses nothing.
    pub fn media_rate(&self) -> Rate {
        let full = self.config.packet_size.as_f64();
        let headers = self.config.ip_overhead.as_f64()
            + (packet::HEADER_LEN + Extensions::FULL_LEN) as f64
            + match self.config.codec {
                Codec::Vp8 => crate::vp8::DESCRIPTOR_LEN as f64,
                Codec::Generic => crate::vp8::GENERIC_LEN as f64,
            };
        let rate = self.flow.target_rate() * ((full - headers) / full).max(0.0);
        let (_, waiting) = self.queue.len();
        let excess = waiting as f64 * 8.0 - rate.as_bps() * QUEUE_ROOM.as_secs_f64();
        let drain = (excess / QUEUE_DRAIN.as_secs_f64()).max(0.0);
        Rate::bps((rate.as_bps() - drain).max(rate.as_bps() / 2.0))
    }

    /// Frames and bytes waiting to leave.
    pub fn queue_len(&self) -> (usize, Bytes) {
        let (frames, bytes) = self.queue.len();
        (frames, Bytes::new(bytes as u64))
    }

    /// Whether the peer has echoed a challenge.
    pub const fn is_validated(&self) -> bool {
        self.peer.is_some()
    }

    /// The flow, for its status and counters.
    pub const fn flow(&self) -> &Flow {
        &self.flow
    }

    /// The flow, to drain its events.
    pub const fn flow_mut(&mut self) -> &mut Flow {
        &mut self.flow
    }

    /// Counters.
    pub const fn stats(&self) -> &SenderStats {
        &self.stats
    }

    /// SSRCs of media, dummies and retransmissions.
    pub const fn ssrcs(&self) -> [u32; 3] {
        [self.media.ssrc, self.dummy.ssrc, self.rtx.ssrc]
    }

    // --- phases ----------------------------------------------------------------------------------

    fn advance(&mut self, now: Instant) -> Instant {
        self.now = self.now.max(now);
        self.now
    }

    fn step(&mut self, now: Instant) -> Step {
        match self.phase {
            Phase::Challenging(tries, next) => self.step_challenging(now, tries, next),
            Phase::Settling(until) => {
                let [_, low] = self.dscp_seen;
                if now < until && low.is_none() {
                    return Step::Wait(until);
                }
                if let Some(step) = self.step_connecting(now) {
                    return step;
                }
                self.begin(now);
                Step::Again
            }
            Phase::Running => self.step_running(now),
            Phase::Leaving(reason) => {
                self.phase = Phase::Stopped(reason);
                self.buf.clear();
                self.sender_report(now);
                let ssrcs = [self.media.ssrc, self.dummy.ssrc, self.rtx.ssrc];
                rtcp::emit_bye(&mut self.buf, &ssrcs, &reason.to_string());
                Step::Send(self.config.data_dscp, Ecn::NotEct, What::Bye, Via::Udp)
            }
            Phase::Stopped(reason) => Step::Stopped(reason),
        }
    }

    fn step_challenging(&mut self, now: Instant, tries: u32, next: Instant) -> Step {
        while let Some(class) = self.questions.pop_front() {
            let allowed = match self.config.admission {
                Admission::Initiator => true,
                Admission::Responder => {
                    self.unproven_out + self.challenge_len() <= AMPLIFICATION.saturating_mul(self.unproven_in)
                }
            };
            if allowed {
                self.unproven_out += self.challenge_len();
                return self.challenge(now, class);
            }
        }
        if now < next {
            return self.step_unanswered(now, tries, next);
        }
        if tries >= TRIES {
            self.end(StopReason::Unreachable);
            return Step::Again;
        }
        self.questions.extend([Class::Normal, Class::Low]);
        self.phase = Phase::Challenging(tries + 1, now + FIRST_PATIENCE * (1 << tries));
        Step::Again
    }

    /// The first challenge has not been answered in time: a receiver that measures may be another tool, whose
    /// report says as much as an echo. It needs packets to report on; they are empty.
    fn step_unanswered(&mut self, now: Instant, tries: u32, next: Instant) -> Step {
        let Some(m) = self.measuring.filter(|_| tries > 1 && self.config.admission == Admission::Initiator) else {
            return Step::Wait(next);
        };
        if now < m.next_probe {
            return Step::Wait(next.min(m.next_probe));
        }
        self.flow.start(now, None);
        match self.flow.poll(now, true) {
            Transmit::Send(permit) => {
                let [a, b, c, d, e, _] = m.probes;
                let probes = [Some(micros(now)), a, b, c, d, e];
                self.measuring = Some(Measuring { next_probe: now + PROBE_SPACING, probes, ..m });
                let header = self.header(now, &self.media, self.media_time(now), false);
                self.buf.clear();
                header.emit_header(&mut self.buf);
                self.leave(now, permit, What::Media)
            }
            Transmit::WaitUntil(t) | Transmit::WaitForData(t) | Transmit::WaitForFeedback(t) => Step::Wait(next.min(t)),
            Transmit::Stopped(reason) => {
                self.end(StopReason::Breaker(reason));
                Step::Again
            }
        }
    }

    /// What the TCP half does before anything is sent; `None` if there is none, or it is up.
    fn step_connecting(&mut self, now: Instant) -> Option<Step> {
        let t = self.tcp.filter(|t| t.state != TcpState::Up)?;
        if now >= t.deadline {
            self.end(StopReason::NoTcp);
            return Some(Step::Again);
        }
        if t.state != TcpState::Connected {
            return Some(Step::Wait(t.deadline));
        }
        self.tcp = Some(TcpHalf { state: TcpState::Greeted, ..t });
        self.write_challenge(t.token, Class::Normal);
        Some(Step::Send(self.config.data_dscp, Ecn::NotEct, What::Challenge, Via::Tcp))
    }

    fn challenge(&mut self, now: Instant, class: Class) -> Step {
        let value = self.secret.value(Purpose::Token, self.media.ssrc, self.tokens_made);
        self.tokens_made += 1;
        if self.tokens.len() >= MOST_TOKENS {
            self.tokens.pop_front();
        }
        self.tokens.push_back(Token { value, class, sent: now });
        self.write_challenge(value, class);
        Step::Send(self.dscp(class), Ecn::NotEct, What::Challenge, Via::Udp)
    }

    fn challenge_len(&self) -> u64 {
        Challenge::len(self.form(), self.proof) as u64
    }

    fn form(&self) -> Form {
        match (self.measuring, self.reporting) {
            (Some(m), _) => Form::Measured(m.profile),
            (_, Some(r)) => Form::receiver_reports(r.interval, self.tcp.is_some()),
            (None, None) if self.sack_vectors => Form::SackVector,
            (None, None) => Form::Packets,
        }
    }

    fn write_challenge(&mut self, token: u64, class: Class) {
        self.buf.clear();
        Challenge {
            token,
            class,
            codec: self.config.codec,
            media: (self.media.payload_type, self.media.ssrc),
            dummy: (self.dummy.payload_type, self.dummy.ssrc),
            retransmission: self.config.retransmission.then_some((self.rtx.payload_type, self.rtx.ssrc)),
            form: self.form(),
            proof: self.proof,
        }
        .emit(&mut self.buf);
    }

    const fn dscp(&self, class: Class) -> Dscp {
        match class {
            Class::Normal => self.config.data_dscp,
            Class::Low => Dscp::LE,
        }
    }

    fn on_echo(&mut self, now: Instant, echo: &Echo) {
        // A token answers once.
        let Some(i) = self.tokens.iter().position(|t| t.value == echo.token) else {
            self.stats.rejected.token += 1;
            return;
        };
        let Some(token) = self.tokens.remove(i) else { return };
        if echo.taken {
            // Somebody else's stream came from here, before or by forgery: this one shows that it is here.
            if self.proof.replace(echo.next_report) != Some(echo.next_report) {
                self.questions.extend([Class::Normal, Class::Low]);
            }
            return;
        }
        self.consent = now;
        self.next_consent_try = now + CONSENT / 2;
        self.saw_dscp(token.class, echo.dscp);
        if self.peer.is_some() {
            return;
        }
        if token.class == Class::Low {
            // LE came first, or alone: the address is real, but the first RTT of the normal class is wanted
            // for what the flow sends there. It is on its way if the path works at all.
            return;
        }
        let round_trip = now.since(token.sent);
        let srtt = round_trip.checked_sub(echo.delay).unwrap_or(round_trip);
        self.peer = Some(Peer { ssrc: echo.receiver, reports: ReplayWindow::new(echo.next_report) });
        self.questions.clear();
        if let Some(t) = &mut self.tcp {
            (t.token, t.deadline) = (token.value, now + TCP_PATIENCE);
        }
        if self.sack_vectors {
            self.flow.set_window_limit(now, echo.rwnd.map(|rwnd| rwnd.get().into()));
        }
        self.phase = Phase::Settling(now + SETTLING.max(srtt / 2));
        self.first_rtt = srtt;
        self.event(SenderEvent::PeerValidated { srtt, dscp_seen: Some(echo.dscp) });
    }

    fn begin(&mut self, now: Instant) {
        self.phase = Phase::Running;
        self.running_since = now;
        self.flow.start(now, Some(self.first_rtt));
        let params = Parameters {
            session_bandwidth: self.config.session_bandwidth,
            reduced_minimum: self.config.reduced_minimum,
            // SR 28 B, SDES of three chunks of about 20 B
            first_size: self.config.ip_overhead + Bytes::new(92),
            fixed_interval: self.reporting.map(|r| r.interval),
        };
        let random = RandomStream::named(self.secret.value(Purpose::RtcpTiming, 0, 0), "rtcp.sender");
        let mut timing = RtcpTiming::new(now, params, true, random);
        timing.set_group(now, 2, 1, true);
        self.timing = Some(timing);
    }

    fn saw_dscp(&mut self, class: Class, arrived: Dscp) {
        let i = usize::from(class == Class::Low);
        let Some(seen) = self.dscp_seen.get_mut(i) else { return };
        if seen.replace(arrived) == Some(arrived) {
            return;
        }
        if class == Class::Low {
            // Bleached: routers treat dummies like data, so they must not outweigh it.
            self.flow.set_dummies_limited(arrived.class() != Class::Low);
        }
        self.event(SenderEvent::DscpSeen { class, sent: self.dscp(class), arrived });
    }

    fn step_running(&mut self, now: Instant) -> Step {
        if self.bye.is_some_and(|at| now.since(at) >= BYE_GRACE) {
            self.phase = Phase::Stopped(StopReason::PeerBye);
            self.event(SenderEvent::Stopped(StopReason::PeerBye));
            return Step::Again;
        }
        if now.since(self.consent) >= CONSENT {
            self.end(StopReason::ConsentExpired);
            return Step::Again;
        }
        if now >= self.next_consent_try {
            self.next_consent_try = now + CONSENT_RETRY;
            self.questions.push_back(Class::Normal);
        }
        if let Some(class) = self.questions.pop_front() {
            return self.challenge(now, class);
        }
        if self.report_due(now) {
            self.buf.clear();
            self.sender_report(now);
            let size = Bytes::new(self.buf.len() as u64) + self.config.ip_overhead;
            if let Some(t) = &mut self.timing {
                t.on_sent(now, size);
            }
            return Step::Send(self.config.data_dscp, Ecn::NotEct, What::Report, Via::Udp);
        }
        self.queue.expire(now);
        self.note_drops();
        let full = self.flow.via() == Via::Tcp && self.tcp.is_some_and(|t| !t.room);
        let has_data = (self.queue.has_data() || !self.pending.is_empty()) && !full;
        let answer = self.flow.poll(now, has_data);
        if let Some(t) = &mut self.tcp {
            // TCP has its own window: this flow waits for nothing else.
            t.draining = matches!(answer, Transmit::WaitForFeedback(_)) && self.flow.via() == Via::Tcp;
        }
        let until = match answer {
            Transmit::Send(permit) => return self.transmit(now, permit),
            Transmit::WaitUntil(t) | Transmit::WaitForData(t) | Transmit::WaitForFeedback(t) => t,
            Transmit::Stopped(reason) => {
                self.end(match reason {
                    fairpace_control::StopReason::PeerLied => StopReason::PeerLied,
                    reason => StopReason::Breaker(reason),
                });
                return Step::Again;
            }
        };
        let report = self.timing.as_ref().map_or(Instant::NEVER, RtcpTiming::next);
        let bye = self.bye.map_or(Instant::NEVER, |at| at + BYE_GRACE);
        let consent = self.next_consent_try.min(self.consent + CONSENT);
        Step::Wait(until.min(report).min(bye).min(consent).min(self.queue.next_expiry()))
    }

    fn end(&mut self, reason: StopReason) {
        self.phase = match self.phase {
            Phase::Stopped(_) | Phase::Leaving(_) => return,
            // Not a word to an address that is not proven.
            Phase::Challenging(..) => Phase::Stopped(reason),
            Phase::Settling(_) | Phase::Running => Phase::Leaving(reason),
        };
        self.event(SenderEvent::Stopped(reason));
    }

    // --- sending ---------------------------------------------------------------------------------

    fn transmit(&mut self, now: Instant, permit: Permit) -> Step {
        let (what, adu_end) = match permit.kind {
            Kind::Dummy => (self.write_dummy(now), false),
            Kind::Data => match self.write_retransmission(now) {
                Some(what) => (what, false),
                None => self.write_media(now),
            },
        };
        let step = self.leave(now, permit, what);
        if adu_end {
            self.flow.on_adu_end(now);
        }
        step
    }

    /// The packet in the buffer goes out.
    fn leave(&mut self, now: Instant, permit: Permit, what: What) -> Step {
        if let Some(m) = &mut self.measuring {
            m.stamped = Some(micros(now));
        }
        let stream = match what {
            What::Dummy => &mut self.dummy,
            What::Retransmission => &mut self.rtx,
            _ => &mut self.media,
        };
        let payload = self.buf.len().saturating_sub(packet::HEADER_LEN + Extensions::FULL_LEN);
        stream.on_sent(permit.seq, payload);
        self.flow.on_sent(now, permit, Bytes::new(self.buf.len() as u64) + self.config.ip_overhead);
        let dscp = match permit.class {
            Class::Normal => self.config.data_dscp,
            Class::Low => Dscp::LE,
        };
        Step::Send(dscp, permit.ecn, what, permit.via)
    }

    fn header(&self, now: Instant, stream: &Stream, timestamp: u32, marker: bool) -> Packet<'static> {
        Packet {
            marker,
            payload_type: stream.payload_type,
            sequence: stream.sequence(stream.count),
            timestamp,
            ssrc: stream.ssrc,
            extensions: Extensions {
                send_time: Some(self.config.ntp_at_zero.at(now).send_time_24()),
                nonce: self.measuring.is_none().then(|| self.secret.nonce(stream.ssrc, stream.count)),
                number_high: self.sack_vectors.then(|| (stream.number_24(stream.count) >> 16) as u8),
                stamp: self.measuring.map(|m| {
                    let sent = (micros(now) as u32).wrapping_add(m.offset);
                    (m.profile.extension, Stamp::new(self.flow.srtt(), sent))
                }),
            },
            payload: &[],
        }
    }

    fn write_dummy(&mut self, now: Instant) -> What {
        let header = self.header(now, &self.dummy, self.media_time(now), false);
        self.buf.clear();
        let len = self.config.packet_size.get().saturating_sub(self.config.ip_overhead.get());
        dummy::emit(&header, len as usize, &mut self.buf);
        What::Dummy
    }

    /// The next packet of the oldest frame, and whether it is that frame's last.
    fn write_media(&mut self, now: Instant) -> (What, bool) {
        let Some(chunk) = self.queue.peek() else {
            // A scheme that asks for data where there is none gets a dummy's worth of nothing: never reached,
            // since `has_data` told it.
            debug_assert!(false, "a permit for data without data");
            return (self.write_dummy(now), false);
        };
        let header = self.header(now, &self.media, chunk.timestamp, chunk.marker);
        self.buf.clear();
        header.emit_header(&mut self.buf);
        let start = self.buf.len();
        self.queue.write_next(&mut self.buf);
        if self.config.retransmission {
            let payload = self.buf.get(start..).unwrap_or_default();
            self.history.keep(self.media.count, chunk.timestamp, chunk.marker, payload, now);
        }
        (What::Media, chunk.marker)
    }

    fn write_retransmission(&mut self, now: Instant) -> Option<What> {
        while let Some(index) = self.pending.pop_front() {
            let original = self.media.sequence(index);
            let Some(kept) = self.history.get_mut(index) else { continue };
            kept.times += 1;
            kept.sent_at = now;
            let (timestamp, marker) = (kept.timestamp, kept.marker);
            let header = self.header(now, &self.rtx, timestamp, marker);
            self.buf.clear();
            header.emit_header(&mut self.buf);
            if let Some(kept) = self.history.get_mut(index) {
                rtx::emit(original, &kept.payload, &mut self.buf);
            }
            return Some(What::Retransmission);
        }
        None
    }

    /// The media clock now: the last frame's timestamp, run on.
    fn media_time(&self, now: Instant) -> u32 {
        let (at, timestamp) = self.last_frame.unwrap_or((Instant::ZERO, self.timestamp_offset));
        timestamp.wrapping_add((now.since(at).as_nanos() * 9 / 100_000) as u32)
    }

    fn report_due(&mut self, now: Instant) -> bool {
        match &mut self.timing {
            Some(t) if t.next() <= now => t.on_timer(now) == Due::Report,
            _ => false,
        }
    }

    fn sender_report(&mut self, now: Instant) {
        SenderInfo {
            ntp: self.config.ntp_at_zero.at(now),
            rtp_timestamp: self.media_time(now),
            packet_count: self.media.count as u32,
            octet_count: self.media.octets as u32,
        }
        .emit(self.media.ssrc, &mut self.buf);
        let ssrcs = [self.media.ssrc, self.dummy.ssrc, self.rtx.ssrc];
        let used = if self.config.retransmission { &ssrcs[..] } else { &ssrcs[..2] };
        rtcp::emit_sdes(&mut self.buf, used, &self.config.cname);
    }

    // --- feedback --------------------------------------------------------------------------------

    fn is_peer(&self, ssrc: u32) -> bool {
        self.peer.is_some_and(|p| p.ssrc == ssrc)
    }

    fn stream(&mut self, ssrc: u32) -> Option<(Kind, &mut Stream)> {
        if ssrc == self.media.ssrc {
            Some((Kind::Data, &mut self.media))
        } else if ssrc == self.dummy.ssrc {
            Some((Kind::Dummy, &mut self.dummy))
        } else if ssrc == self.rtx.ssrc {
            Some((Kind::Data, &mut self.rtx))
        } else {
            None
        }
    }

    fn on_feedback(&mut self, now: Instant, claims: Option<Claims<'_>>, report: &Report<'_>, len: usize) {
        let Some(mut peer) = self.peer.filter(|p| p.ssrc == report.reporter) else {
            self.stats.rejected.wrong_ssrc += 1;
            return;
        };
        if self.measuring.is_some() || self.sack_vectors {
            // Not asked for; and where the receiver measures there are no nonces to prove it with.
            self.stats.rejected.unproven += 1;
            return;
        }
        if self.config.check_nonces || claims.is_some() {
            let Some(claims) = claims.filter(|c| c.receiver == peer.ssrc) else {
                self.stats.rejected.unproven += 1;
                return;
            };
            if !peer.reports.is_fresh(claims.number) {
                self.stats.rejected.replayed += 1;
                return;
            }
            let mut proofs = claims.claims();
            for block in report.blocks() {
                let Some(claim) = proofs.next() else {
                    self.stats.rejected.unproven += 1;
                    return;
                };
                if !self.is_block_proven(&block, claim) {
                    return;
                }
            }
            peer.reports.accept(claims.number);
            self.peer = Some(peer);
        }
        self.lies = 0;
        self.believed(now, len);
        let reported_at = self.unwrap_clock(report.timestamp);
        let mut acks = core::mem::take(&mut self.acks);
        acks.clear();
        for block in report.blocks() {
            let Some((kind, stream)) = self.stream(block.ssrc) else { continue };
            for (sequence, metric) in block.metrics() {
                let Metric::Received { ecn, .. } = metric else { continue };
                let Lookup::Known(sent) = stream.lookup(sequence) else { continue };
                if core::mem::replace(&mut sent.acked, true) {
                    continue; // told before: reports overlap
                }
                let offset = metric.offset();
                acks.push(Ack {
                    kind,
                    seq: sent.number,
                    ecn,
                    arrived_at: offset.and_then(|o| ntp::from_65536ths(reported_at).checked_sub(o)),
                    // An unknown delay must not become an RTT: longer than any round trip, it is not believed.
                    ack_delay: offset.unwrap_or(Duration::MAX),
                });
            }
        }
        acks.sort_unstable_by_key(|a| (a.kind, a.seq));
        self.flow.on_acks(now, &acks);
        self.acks = acks;
        if let Some(claims) = claims {
            let pairs: [Option<(Class, Dscp)>; 4] = {
                let mut pairs = [None; 4];
                for (slot, (block, claim)) in pairs.iter_mut().zip(report.blocks().zip(claims.claims())) {
                    let class = if block.ssrc == self.dummy.ssrc { Class::Low } else { Class::Normal };
                    *slot = Some((class, claim.dscp));
                }
                pairs
            };
            for (class, dscp) in pairs.into_iter().flatten() {
                self.saw_dscp(class, dscp);
            }
        }
    }

    /// An ACK with a sack vector.
    fn on_sack_vector(&mut self, now: Instant, ack: &sack_vector::Ack, len: usize) {
        let Some(mut peer) = self.peer.filter(|p| p.ssrc == ack.receiver) else {
            self.stats.rejected.wrong_ssrc += 1;
            return;
        };
        if !self.sack_vectors {
            self.stats.rejected.unproven += 1;
            return;
        }
        if !peer.reports.is_fresh(ack.number) {
            self.stats.rejected.replayed += 1;
            return;
        }
        let ssrc = self.media.ssrc;
        let newest = self.media.index_24(ack.ack);
        if self.config.check_nonces {
            let told = ack.claimed().rev().map(|behind| newest?.checked_sub(behind));
            let claimed = Claimed::new(&self.secret, ssrc, told);
            // A false ACK that comes twice is one lie; and a packet's number that was damaged on its way stands in all
            // ACKs until a larger one arrives.
            let told_before = self.false_ack.is_some_and(|(number, before)| {
                ack.number.wrapping_sub(number) as i32 <= 0 || (claimed.unsent && ack.ack == before)
            });
            let first = newest.map(|newest| newest.saturating_sub(8));
            if !self.is_proven(ssrc, claimed, first, ack.nonce_sum, told_before) {
                self.false_ack = Some((ack.number, ack.ack));
                return;
            }
            self.false_ack = None;
        }
        peer.reports.accept(ack.number);
        self.peer = Some(peer);
        self.lies = 0;
        self.believed(now, len);
        let arrived_at = ntp::from_65536ths(self.unwrap_clock(ack.arrival));
        let Some(sent) = newest.and_then(|index| self.media.sent(index)) else { return };
        // Data has no other stream here: the flow's numbers run as this one's.
        let told = SackVector {
            ack: (sent.number & 0xff_ffff) as u32,
            vector: ack.vector,
            rwnd: ack.rwnd.map(u32::from),
            ecn: ack.ecn,
            ack_delay: Duration::from_micros(ack.delay.into()),
            arrived_at: Some(arrived_at),
        };
        self.flow.on_sack_vector(now, &told);
        self.saw_dscp(Class::Normal, ack.dscp);
    }

    /// The peer's clock, 1/65,536 s, nearest to what it said last: its 32 bits wrap every 18.2 hours.
    fn unwrap_clock(&mut self, time: u32) -> u64 {
        let clock = self.report_clock.unwrap_or(1 << 32 | u64::from(time));
        let step = time.wrapping_sub(clock as u32) as i32;
        let unwrapped = clock.saturating_add_signed(step.into());
        self.report_clock = Some(clock.max(unwrapped));
        unwrapped
    }

    /// Feedback is worth something: the peer is there, and wants this.
    fn believed(&mut self, now: Instant, len: usize) {
        self.consent = now;
        self.next_consent_try = now + CONSENT / 2;
        if self.bye.is_some_and(|at| now.since(at) > BYE_CONTRADICTED) {
            self.bye = None;
            self.stats.byes_ignored += 1;
        }
        self.stats.feedback.packets += 1;
        self.stats.feedback.bytes += len as u64;
    }

    /// A report of a receiver that measures. It proves only that somebody saw the stamp that it echoes; the flow
    /// judges whether the rest can be true, and is news.
    fn on_measured(&mut self, now: Instant, report: &tfrc::Report, len: usize) {
        let Some(m) = self.measuring else { return };
        let from_peer = match self.peer {
            Some(peer) => peer.ssrc == report.reporter,
            // No stamp was sent before `step_unanswered`: then there is nothing to echo.
            None => matches!(self.phase, Phase::Challenging(..)),
        };
        if !from_peer || report.media != self.media.ssrc {
            self.stats.rejected.wrong_ssrc += 1;
            return;
        }
        let echoed = tfrc::unwrap(micros(now), report.echoed.wrapping_sub(m.offset));
        // The flow takes a time for a departure's that is within a millisecond of it; in place of a challenge's
        // echo that would be ten bits less to guess.
        let proven = self.peer.is_some() || m.probes.contains(&Some(echoed));
        if !proven || m.stamped.is_none_or(|newest| echoed > newest) {
            self.stats.rejected.measured += 1;
            return;
        }
        // What left within that microsecond had arrived.
        let measured = report.measured(Instant::from_nanos(echoed * 1_000 + 999).min(now));
        let refused = self.flow.counters().bad.report;
        self.flow.on_rate_report(now, &measured);
        if self.flow.counters().bad.report > refused {
            self.stats.rejected.measured += 1;
            return;
        }
        if self.peer.is_none() {
            self.peer = Some(Peer { ssrc: report.reporter, reports: ReplayWindow::new(0) });
            self.questions.clear();
            self.first_rtt = self.flow.srtt().unwrap_or_default();
            self.event(SenderEvent::PeerValidated { srtt: self.first_rtt, dscp_seen: None });
            self.begin(now);
        }
        self.believed(now, len);
    }

    /// Whether the receiver holds all packets that the block claims.
    fn is_block_proven(&mut self, block: &Block<'_>, claim: Claim) -> bool {
        let secret = self.secret;
        let Some((_, stream)) = self.stream(block.ssrc) else {
            self.stats.rejected.wrong_ssrc += 1;
            return false;
        };
        let told = block.metrics().filter(|(_, metric)| *metric != Metric::NotReceived);
        let claimed = Claimed::new(&secret, block.ssrc, told.map(|(sequence, _)| stream.index(sequence)));
        let first = stream.index(block.begin);
        self.is_proven(block.ssrc, claimed, first, claim.nonce_sum, false)
    }

    /// Whether the sum proves the claim; counts and judges if not. `first`: where the range begins that is told of,
    /// if that packet was sent. `told_before`: the same feedback has been judged.
    fn is_proven(
        &mut self,
        ssrc: u32,
        claimed: Claimed,
        first: Option<u64>,
        nonce_sum: u32,
        told_before: bool,
    ) -> bool {
        if !claimed.unsent && claimed.nonce_sum == nonce_sum {
            return true;
        }
        let Some((_, stream)) = self.stream(ssrc) else { return false };
        // Reports overlap: one nonce that was damaged on its way spoils each report that tells of it. Only
        // ranges that do not overlap count as one lie after another.
        if !told_before && (claimed.unsent || first.is_none_or(|first| first >= stream.lied_until)) {
            stream.lied_until = stream.lied_until.max(claimed.last + 1);
            self.lies += 1;
        }
        if claimed.unsent {
            self.stats.rejected.unsent += 1;
        } else {
            self.stats.rejected.nonce += 1;
        }
        if self.lies >= LIES {
            self.end(StopReason::PeerLied);
        }
        false
    }

    fn on_report_block(
        &mut self,
        now: Instant,
        reporter: u32,
        block: &ReportBlock,
        pairs: Option<PairReport>,
        len: usize,
    ) {
        if !self.is_peer(reporter) || self.stream(block.ssrc).is_none() {
            self.stats.rejected.wrong_ssrc += 1;
            return;
        }
        if block.ssrc != self.media.ssrc || self.phase != Phase::Running {
            return;
        }
        let sequence = block.highest as u16;
        let last = self.last_report.map_or(0, |(index, _)| index);
        let (Some(index), Some(number)) = (self.media.index(sequence), self.media.number_of(sequence)) else {
            self.stats.rejected.report += 1;
            return;
        };
        if index < last {
            self.stats.rejected.report += 1;
            return;
        }
        let since = self.last_report.map_or(self.running_since, |(_, at)| at);
        self.last_report = Some((index, now));
        let fraction = f64::from(block.fraction_lost) / 256.0;
        self.stats.fraction_lost = Some(fraction);
        self.stats.jitter = Some(Duration::from_nanos(u64::from(block.jitter) * 100_000 / 9));
        let rtt = block.rtt(self.config.ntp_at_zero.at(now).middle()).filter(|r| *r < CONSENT);
        if rtt.is_some() {
            self.stats.report_rtt = rtt;
        }
        let mut report = ReceiverReport::new(number, fraction, now.since(since));
        if let Some(r) = self.reporting {
            let pairs = pairs.filter(|p| p.receiver == reporter);
            let told = self.lost_so_far(r, index, block, pairs);
            if told.proven {
                self.believed(now, len);
            }
            self.reporting = Some(told.after);
            report.lost = Some(told.after.lost.saturating_add(told.after.unproven));
            report.fraction_lost = fraction.max(told.least_fraction);
            report.rtt = rtt;
            report.bottleneck = pairs.and_then(|p| p.bottleneck);
        }
        self.flow.on_receiver_report(now, &report);
    }

    /// What a report about all packets up to `index` says of losses. That none is new must be proven: the sum of nonces has
    /// grown by those of all packets since the last report, and by that of one that came late and was counted as lost
    /// before. What is not proven is one loss more.
    fn lost_so_far(&mut self, r: Reporting, index: u64, block: &ReportBlock, pairs: Option<PairReport>) -> LostSoFar {
        let lost = i64::from(block.cumulative_lost);
        let nonce_sum = pairs.map_or(r.nonce_sum, |p| p.nonce_sum);
        let after = Reporting { next: index + 1, nonce_sum, lost, ..r };
        let grown = nonce_sum.wrapping_sub(r.nonce_sum);
        let claimed = (r.next..=index).fold(0_u32, |sum, i| sum.wrapping_add(self.secret.nonce(self.media.ssrc, i)));
        let beyond = grown.wrapping_sub(claimed);
        let late = || {
            let mut before = r.next.saturating_sub(LATEST)..r.next;
            lost.checked_add(1) == Some(r.lost) && before.any(|i| self.secret.nonce(self.media.ssrc, i) == beyond)
        };
        let proven = (pairs.is_some() && (beyond == 0 || late())) || !self.config.check_nonces;
        if lost > r.lost || proven {
            return LostSoFar { after, proven, least_fraction: 0.0 };
        }
        self.stats.rejected.unproven += 1;
        let expected = (index + 1).saturating_sub(r.next).max(1);
        let unproven = r.unproven.saturating_add(1 + r.lost - lost);
        let after = Reporting { unproven, ..after };
        LostSoFar { after, proven, least_fraction: 1.0 / expected as f64 }
    }

    fn on_nack(&mut self, now: Instant, nack: &Nack<'_>) {
        if !self.config.retransmission {
            return;
        }
        let spacing = self.flow.srtt().unwrap_or_default() / 2;
        let mut too_late = 0;
        for sequence in nack.lost().take(MOST_NACKED) {
            self.stats.nacked += 1;
            let Some(index) = self.media.index(sequence) else { continue };
            let Some(kept) = self.history.get_mut(index) else { continue };
            if now.since(kept.first_sent) > self.config.retransmission_limit {
                too_late += 1;
                continue;
            }
            let again_so_soon = kept.times > 0 && now.since(kept.sent_at) < spacing;
            let wanted = kept.times < MOST_RETRANSMISSIONS && !again_so_soon;
            if wanted && self.pending.len() < MOST_PENDING && !self.pending.contains(&index) {
                self.pending.push_back(index);
            }
        }
        self.note_too_late(now, too_late);
    }

    /// After a blackout everything it took is asked for at once, most of it too late: at a rate just halved, sending
    /// it again would keep the picture away as long as the blackout did.
    fn drop_late_retransmissions(&mut self, now: Instant) {
        if self.pending.is_empty() {
            return;
        }
        let limit = self.config.retransmission_limit;
        let waiting = self.pending.len();
        let history = &mut self.history;
        self.pending.retain(|index| history.get_mut(*index).is_some_and(|kept| now.since(kept.first_sent) <= limit));
        let dropped = waiting - self.pending.len();
        self.note_too_late(now, dropped as u64);
    }

    fn note_too_late(&mut self, now: Instant, packets: u64) {
        if packets > 0 {
            self.stats.too_late += packets;
            self.request_key_frame(now);
        }
    }

    // --- events ----------------------------------------------------------------------------------

    fn event(&mut self, event: SenderEvent) {
        if self.events.len() >= MOST_EVENTS {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }

    fn request_key_frame(&mut self, now: Instant) {
        if self.last_key_request.is_none_or(|at| now.since(at) >= KEY_FRAME_SPACING) {
            self.last_key_request = Some(now);
            self.event(SenderEvent::KeyFrameRequest);
        }
    }

    fn note_drops(&mut self) {
        let (dropped, wants_key) = self.queue.take_dropped();
        if dropped.frames > 0 {
            self.stats.frames_dropped += dropped.frames;
            self.event(SenderEvent::FramesDropped(dropped.frames));
        }
        if wants_key && !self.asked_for_key {
            self.asked_for_key = true;
            self.event(SenderEvent::KeyFrameRequest);
        }
    }

    fn note_rate(&mut self) {
        let rate = self.flow.target_rate();
        if rate != self.target_told && self.phase == Phase::Running {
            self.target_told = rate;
            self.events.retain(|e| !matches!(e, SenderEvent::TargetRate(_)));
            self.event(SenderEvent::TargetRate(rate));
        }
    }
}
