//! The sending side: frames in, paced datagrams out, feedback in, rate out.
//!
//! ```text
//!               echo of the normal challenge         echo of the LE one, or a moment later
//!  Challenging ------------------------------> Settling ----------------------------> Running
//!       | three tries, 7 s                                                              | stop, BYE,
//!       v                                                                               v breaker, lie
//!  Stopped(Unreachable)                                               Leaving (BYEs) ----> Stopped
//! ```
//!
//! Before Running nothing leaves but challenges, nor in Running after a sleep that consent did not outlive, until one is answered that left
//! since. A peer's feedback is believed if it comes from the SSRC that echoed
//! the challenge, carries a fresh report number and the right sum of nonces ([`crate::feedback::claim`]); the rest is counted
//! in [`RejectedFeedback`].
//!
//! A controller that wants a receiver which measures ([`fairpace_control::feedback::Form::RtpTfrc`]) gets the
//! TFRC profile ([`crate::feedback::rtp_tfrc`]): stamps go out in place of nonces, reports come back in place of
//! acknowledgements. They prove nothing but that somebody there saw a stamp; what the flow makes of them is its
//! to say. Such a receiver may be another tool, which echoes no challenge: then its first report takes the
//! echo's place, and to have something to report on it is sent empty packets, one a second, six at most.
//!
//! A controller that wants sack vectors ([`fairpace_control::feedback::Form::SackVector`]) gets them
//! ([`crate::feedback::sack_vector`]), believed as per-packet feedback is.
//!
//! A controller that goes by receiver reports ([`fairpace_control::feedback::Form::Reports`]) gets one each
//! [`fairpace_control::Controller::report_interval`], with the rate that packet pairs measure ([`crate::feedback::reports::pairs`]); sender reports
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
//!
//! # Quick-Start
//!
//! Where the flow asks the routers for a rate ([`fairpace_control::FlowParams::quick_start`]), the option travels on a challenge right
//! behind the data packet that it belongs to ([`Datagram::quick_start`]), and the receiver's answer behind the echo
//! ([`crate::quick_start::answer`]).
//!
//! # Parts
//!
//! Each file of `sender/` is one part with state of its own, which tells what came of a call; only the session sees all of
//! them. Feedback is judged in [`crate::feedback`].

mod admission;
mod config;
mod encoder_share;
mod events;
mod incoming;
mod media_out;
mod path_mtu;
mod protect;
mod quick_start;
mod repair;
mod rtcp;
mod tcp;
mod tcp_half;

pub use config::{Admission, Frame, LEAST_PATH_MTU, MOST_QUEUED, SenderConfig};
pub use events::{QueueStats, RejectedFeedback, SenderEvent, SenderStats};

use crate::challenge::{Challenge, emit_padding};
use crate::feedback::{SenderHalf, Trust};
use crate::quick_start::answer;
use crate::reporting::{Farewell, Reporting};
use crate::secret::Purpose;
use crate::{Datagram, Out, Secret, StopReason, What, fec};
use admission::Admitting;
use encoder_share::encoder_share;
use events::Events;
use fairpace_control::feedback::Form;
use fairpace_control::{Flow, Permit, Promise, Transmit};
use fairpace_units::{Bytes, Class, Dscp, Duration, Ecn, Instant, Kind, QsFunction, QsOption, RandomStream, Rate, Via};
use media_out::{MediaOut, Stamping, on_the_wire};
use path_mtu::{PathMtu, Question};
use quick_start::QuickStart;
use repair::Deadline;
use rtcp::Blocks;
use tcp_half::{Next, TcpHalf};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    /// So many tries made; the next at that instant.
    Challenging(u32, Instant),
    /// The peer is real; until then its answer about LE is awaited.
    Settling(Instant),
    Running,
    /// Say goodbye, then stop.
    Leaving(StopReason, Farewell),
    Stopped(StopReason),
}

/// Challenges: three, then 1 s, 2 s and 4 s of patience. RFC 8085 §3.1.1: 1 s before any RTT is known.
const TRIES: u32 = 3;
/// So many where the receiver says that it is busy, 15 s: a sender that was killed keeps its place for 13 s from another of its machine.
const BUSY_TRIES: u32 = 5;
const FIRST_PATIENCE: Duration = Duration::from_secs(1);

/// A sending session. See the crate's documentation for the driver's contract.
#[derive(Debug)]
pub struct SenderSession {
    config: SenderConfig,
    secret: Secret,
    flow: Flow,
    phase: Phase,
    now: Instant,
    promise: Promise,
    admitting: Admitting,
    trust: Trust,
    feedback: SenderHalf,
    media: MediaOut,
    reporting: Reporting,
    blocks: Blocks,
    path_mtu: PathMtu,
    /// The packet size that the application knows of.
    told_size: Bytes,
    tcp: Option<TcpHalf>,
    quick_start: QuickStart,
    first_rtt: Duration,
    /// How often the peer means to tell.
    feedback_interval: Duration,
    /// The receiver's play-out delay, as far as it is known.
    playout: Duration,
    /// The flow sends data, if there is any.
    ready: bool,
    events: Events,
    stats: SenderStats,
    buf: Vec<u8>,
}

enum Step {
    Send(Dscp, Ecn, What, Via),
    /// A challenge with a Quick-Start option in its IP header.
    Ask(QsOption),
    /// A challenge that must not be cut on the way.
    Probe,
    Wait(Instant),
    Stopped(StopReason),
    Again,
}

impl SenderSession {
    /// A session that sends `flow`'s packets. The session begins with the first `poll`.
    ///
    /// `flow` must have been made with the same `packet_size`, and without a `skip`: nonces do better. A flow that goes by sack
    /// vectors, in which packets that are sent again have no place, is told of each packet instead where
    /// [`SenderConfig::retransmission`] is on and no form is asked for; under sack vectors nothing is sent again.
    pub fn new(mut config: SenderConfig, flow: Flow, secret: Secret) -> Self {
        if config.cname.is_empty() {
            config.cname = secret.cname();
        }
        let offset = secret.value(Purpose::FirstTimestamp, 0, 1) as u32;
        let (asked, path_mtu) = (config.packet_size, PathMtu::new(config.least_path_mtu(), config.packet_size));
        config.packet_size = path_mtu.size();
        let usual = if config.retransmission { flow.form().with_repair() } else { flow.form() };
        let form = config.form.filter(|form| form.serves(flow.form())).unwrap_or(usual);
        let feedback = SenderHalf::new(form, flow.controller(), config.rate_profile, offset, config.check_nonces);
        let random = RandomStream::named(secret.value(Purpose::ConsentTiming, 0, 0), "rtp.consent");
        config.retransmission &= feedback.allows_repair();
        config.fec &= feedback.allows_repair();
        SenderSession {
            media: MediaOut::new(&config, &secret, feedback.has_pairs()),
            admitting: Admitting::new(config.admission, random),
            trust: Trust::new(secret, config.check_nonces),
            feedback,
            reporting: Reporting::new(rtcp::REORDERING),
            blocks: Blocks::default(),
            path_mtu,
            told_size: asked,
            tcp: (flow.via() == Via::Tcp).then_some(TcpHalf::new()),
            quick_start: QuickStart::default(),
            first_rtt: Duration::ZERO,
            feedback_interval: Duration::ZERO,
            playout: config.playout,
            ready: false,
            events: Events::default(),
            stats: SenderStats::default(),
            buf: Vec::with_capacity(2_048),
            phase: Phase::Challenging(0, Instant::ZERO),
            now: Instant::ZERO,
            promise: Promise::default(),
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
        self.media.push(now, frame);
        self.stats.queue.fullest = self.stats.queue.fullest.max(self.queue_len().1);
        self.note_drops();
    }

    /// Ends the session: BYEs within 250 ms if the peer is proven, then [`Out::Stopped`].
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

    /// An ICMP message says that the path carries no IP packet larger than `mtu`. Such news can be forged, so that they only raise the
    /// question: packets are cut if the peer answers small ones and no full one [RFC 8899 §4.6.1].
    pub fn hint_path_mtu(&mut self, now: Instant, mtu: Bytes) {
        let now = self.advance(now);
        self.path_mtu.on_hint(now, mtu);
    }

    /// This machine refuses to send a datagram of `len` bytes of payload in one piece; its device may carry IP packets of `mtu`.
    /// Media that has not left and dummies are cut to fit.
    pub fn on_too_large(&mut self, now: Instant, len: usize, mtu: Option<Bytes>) {
        let now = self.advance(now);
        self.path_mtu.on_refused(now, on_the_wire(len, &self.config), mtu);
        self.resize();
    }

    // --- questions -------------------------------------------------------------------------------

    /// IP size of a full packet: as it was asked for, or less if the path carries less. The controller goes on counting in packets
    /// of the size asked for, so that less is sent than it allows, not more.
    pub fn packet_size(&self) -> Bytes {
        self.config.packet_size
    }

    /// The next action. Call until it says [`Out::Wait`] or [`Out::Stopped`].
    pub fn poll(&mut self, now: Instant) -> Out<'_> {
        let now = self.advance(now);
        let given_up = self.media.review(&self.deadline(), self.config.refreshes);
        self.note_refused(given_up);
        let step = loop {
            match self.step(now) {
                Step::Again => {}
                step => break step,
            }
        };
        self.note_rate();
        self.promise.set(if let Step::Wait(until) = step { until } else { now });
        match step {
            Step::Send(dscp, ecn, what, via) => {
                self.stats.sent.add(what, self.buf.len());
                let (fragments, quick_start) = (self.path_mtu.fragments(), None);
                Out::Datagram(Datagram { bytes: &self.buf, dscp, ecn, what, to: None, via, fragments, quick_start })
            }
            Step::Ask(option) => {
                let (dscp, what) = (self.config.data_dscp, What::Challenge);
                self.stats.sent.add(what, self.buf.len());
                let (ecn, via, fragments) = (Ecn::NotEct, Via::Udp, self.path_mtu.fragments());
                let quick_start = Some(option);
                Out::Datagram(Datagram { bytes: &self.buf, dscp, ecn, what, to: None, via, fragments, quick_start })
            }
            Step::Probe => {
                let (dscp, what) = (self.config.data_dscp, What::Challenge);
                self.stats.sent.add(what, self.buf.len());
                let (ecn, via, fragments, quick_start) = (Ecn::NotEct, Via::Udp, false, None);
                Out::Datagram(Datagram { bytes: &self.buf, dscp, ecn, what, to: None, via, fragments, quick_start })
            }
            Step::Wait(until) => Out::Wait(until),
            Step::Stopped(reason) => Out::Stopped(reason),
            Step::Again => Out::Wait(now), // not reached: the loop goes on
        }
    }

    /// The next thing to know, oldest first. Of several target rates only the latest is kept.
    pub fn next_event(&mut self) -> Option<SenderEvent> {
        self.events.pop()
    }

    /// The rate on the wire that the encoder's packets may use.
    pub fn target_rate(&self) -> Rate {
        self.flow.target_rate()
    }

    /// The rate that the encoder's *bitstream* may use: the target rate, nine to seven tenths of it where the controller gives way, by how much of the
    /// play-out delay the path's queue takes; less the headers of full packets, and less what empties the queue of more than 100 ms within 500 ms; never below half of it. An encoder that gives a
    /// little too much, or a driver that is often late, would else fill the queue until frames are dropped, on a path
    /// that loses nothing. A rate that adapts falls without notice, and what was encoded for more waits here, before it waits on the path.
    pub fn media_rate(&self) -> Rate {
        let share = encoder_share(self.flow.is_responsive(), &self.deadline());
        self.media.media_rate(self.flow.target_rate(), &self.config, share)
    }

    /// The receiver's play-out delay, as far as it is known.
    pub const fn playout(&self) -> Duration {
        self.playout
    }

    /// Whether a frame that is encoded now would leave soon. If not, a live source is not to encode this picture: it would only
    /// age in the queue, until it is dropped with all that refer to it. False before the flow sends its first data.
    ///
    /// Soon is three fifths of the longest that a frame may wait (the field `max_queue_delay` of [`SenderConfig`]), four fifths where the rate does not adapt; and more, up to all of
    /// it, while no packets queue on the path and what is left of the play-out delay suffices for a repair.
    pub fn wants_frame(&self) -> bool {
        let most = self.config.max_queue_delay(self.playout);
        let room = self.deadline().room_to_wait(most, self.flow.is_responsive());
        self.phase == Phase::Running
            && self.ready
            && !self.admitting.is_held()
            && self.media.drains_within(self.flow.target_rate(), &self.config, room)
    }

    /// Frames and bytes waiting to leave.
    pub fn queue_len(&self) -> (usize, Bytes) {
        let (frames, bytes) = self.media.waiting();
        (frames, Bytes::new(bytes as u64))
    }

    /// How long the oldest frame has waited; zero if none waits.
    pub fn queue_wait(&self) -> Duration {
        self.media.waits_since().map_or(Duration::ZERO, |since| self.now.since(since))
    }

    /// Whether the peer has echoed a challenge.
    pub fn is_validated(&self) -> bool {
        self.trust.peer().is_some()
    }

    /// The form of feedback that was asked for, or the controller's own.
    pub const fn feedback_form(&self) -> Form {
        self.feedback.form()
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

    /// The RTP timestamp of a frame with this time of capture: that of [`Frame::timestamp_90k`] behind a random offset.
    pub const fn rtp_timestamp(&self, timestamp_90k: u32) -> u32 {
        self.media.rtp_timestamp(timestamp_90k)
    }

    /// How much media is protected by repair packets, and why.
    pub const fn protection(&self) -> fec::Decision {
        self.media.protect.decision()
    }

    /// SSRCs of media, dummies, retransmissions and repair packets.
    pub const fn ssrcs(&self) -> [u32; 4] {
        self.media.streams.ssrcs()
    }

    // --- phases ----------------------------------------------------------------------------------

    /// Time never goes back, and a driver that slept too long is noticed.
    fn advance(&mut self, now: Instant) -> Instant {
        self.now = self.now.max(now);
        if self.promise.stall(self.now).is_some() && self.phase == Phase::Running {
            self.admitting.on_stall(self.now);
        }
        self.now
    }

    fn step(&mut self, now: Instant) -> Step {
        match self.phase {
            Phase::Challenging(tries, next) => self.step_challenging(now, tries, next),
            Phase::Settling(until) => {
                if now < until && !self.admitting.knows_low() {
                    return Step::Wait(until);
                }
                match self.tcp.as_mut().map_or(Next::Ready, |tcp| tcp.step(now)) {
                    Next::Ready => {
                        self.begin(now);
                        Step::Again
                    }
                    Next::Greet(token) => {
                        self.write_challenge(token, Class::Normal);
                        Step::Send(self.config.data_dscp, Ecn::NotEct, What::Challenge, Via::Tcp)
                    }
                    Next::Wait(until) => Step::Wait(until),
                    Next::Failed => {
                        self.end(StopReason::NoTcp);
                        Step::Again
                    }
                }
            }
            Phase::Running => self.step_running(now),
            Phase::Leaving(reason, mut farewell) => {
                match farewell.next() {
                    None => {
                        self.phase = Phase::Stopped(reason);
                        return Step::Again;
                    }
                    Some(next) if next > now => return Step::Wait(next),
                    Some(_) => farewell.on_said(now),
                }
                self.phase = Phase::Leaving(reason, farewell);
                self.buf.clear();
                rtcp::write_report(now, &self.media, &self.config, &mut self.buf);
                if self.admitting.is_showing() {
                    // The last occasion: a session may be shorter than it takes to ask again.
                    let token = self.admitting.token(now, Class::Normal, self.media.streams.media.ssrc, &self.secret);
                    self.challenge_of(token, Class::Normal).emit(&mut self.buf);
                }
                let ssrcs = self.media.streams.ssrcs();
                let used = if self.config.fec { &ssrcs[..] } else { &ssrcs[..3] };
                crate::rtcp::emit_bye(&mut self.buf, used, &reason.to_string());
                Step::Send(self.config.data_dscp, Ecn::NotEct, What::Bye, Via::Udp)
            }
            Phase::Stopped(reason) => Step::Stopped(reason),
        }
    }

    fn step_challenging(&mut self, now: Instant, tries: u32, next: Instant) -> Step {
        let request = self.feedback.request(self.tcp.is_some());
        let len = Challenge::len(request, self.admitting.proof(), self.config.fec);
        if let Some(class) = self.admitting.next_unproven(len) {
            return self.challenge(now, class);
        }
        if now < next {
            return self.step_unanswered(now, tries, next);
        }
        if tries >= if self.admitting.is_busy() { BUSY_TRIES } else { TRIES } {
            self.end(StopReason::Unreachable);
            return Step::Again;
        }
        self.admitting.ask_both();
        self.phase = Phase::Challenging(tries + 1, now + FIRST_PATIENCE * (1 << tries.min(TRIES - 1)));
        Step::Again
    }

    /// The first challenge has not been answered in time: a receiver that measures may be another tool, whose
    /// report says as much as an echo. Such a receiver needs packets to report on; the ones sent here are empty.
    fn step_unanswered(&mut self, now: Instant, tries: u32, next: Instant) -> Step {
        let probing = tries > 1 && self.admitting.is_initiator() && !self.admitting.is_busy();
        let Some(measured) = self.feedback.measured().filter(|_| probing) else { return Step::Wait(next) };
        if now < measured.next_probe() {
            return Step::Wait(next.min(measured.next_probe()));
        }
        self.flow.start(now, None);
        match self.flow.poll(now, true) {
            Transmit::Send(permit) => {
                measured.on_probe(now);
                let stamping = Stamping::new(now, &self.config, &self.flow, &self.feedback, &self.secret);
                self.media.write_empty(&stamping, &mut self.buf);
                self.leave(now, permit, What::Media)
            }
            Transmit::WaitUntil(t) | Transmit::WaitForData(t) | Transmit::WaitForFeedback(t) => Step::Wait(next.min(t)),
            Transmit::Stopped(reason) => {
                self.end(StopReason::Breaker(reason));
                Step::Again
            }
        }
    }

    fn challenge(&mut self, now: Instant, class: Class) -> Step {
        let token = self.admitting.token(now, class, self.media.streams.media.ssrc, &self.secret);
        self.write_challenge(token, class);
        Step::Send(self.dscp(class), Ecn::NotEct, What::Challenge, Via::Udp)
    }

    /// A challenge of the path's MTU.
    fn ask_size(&mut self, now: Instant, question: Question) -> Step {
        let token = self.admitting.token(now, Class::Normal, self.media.streams.media.ssrc, &self.secret);
        self.path_mtu.on_asked(question, token);
        self.write_challenge(token, Class::Normal);
        if let Question::Large(size) = question {
            let headers = self.config.ip_overhead + self.config.challenge_overhead;
            let len = size.get().saturating_sub(headers.get()) as usize;
            emit_padding(self.media.streams.media.ssrc, len, &mut self.buf);
        }
        Step::Probe
    }

    /// A challenge with the Quick-Start option of the data packet that has just left: no data is lost where a network drops packets with
    /// options, and the echo says how the option came.
    fn ask_rate(&mut self, now: Instant, option: QsOption) -> Step {
        let media = self.media.streams.media.ssrc;
        let token = self.admitting.token(now, Class::Normal, media, &self.secret);
        self.write_challenge(token, Class::Normal);
        if option.function == QsFunction::Request {
            answer::emit_request(media, &mut self.buf);
            self.quick_start.on_asked(token);
        }
        self.flow.on_quick_start_sent(now, option);
        Step::Ask(option)
    }

    /// Packets are of the size that the path is taken to carry.
    fn resize(&mut self) {
        let size = self.path_mtu.size();
        if size != self.config.packet_size {
            self.config.packet_size = size;
            self.media.cut_anew(&self.config);
        }
        if self.path_mtu.is_settled() && size != self.told_size {
            self.told_size = size;
            self.events.push(SenderEvent::PacketSize(size));
        }
    }

    fn write_challenge(&mut self, token: u64, class: Class) {
        self.buf.clear();
        self.challenge_of(token, class).emit(&mut self.buf);
    }

    fn challenge_of(&self, token: u64, class: Class) -> Challenge {
        let streams = &self.media.streams;
        Challenge {
            token,
            class,
            codec: self.config.codec,
            media: (streams.media.payload_type, streams.media.ssrc),
            dummy: (streams.dummy.payload_type, streams.dummy.ssrc),
            retransmission: self.config.retransmission.then_some((streams.rtx.payload_type, streams.rtx.ssrc)),
            fec: self.config.fec.then_some((streams.fec.payload_type, streams.fec.ssrc)),
            form: self.feedback.request(self.tcp.is_some()),
            proof: self.admitting.proof(),
        }
    }

    const fn dscp(&self, class: Class) -> Dscp {
        match class {
            Class::Normal => self.config.data_dscp,
            Class::Low => Dscp::LE,
        }
    }

    fn begin(&mut self, now: Instant) {
        self.phase = Phase::Running;
        self.flow.start(now, Some(self.first_rtt));
        self.reporting.start(rtcp::timing(now, &self.config, &self.secret, self.feedback.report_interval()));
        self.blocks.start(now);
    }

    fn step_running(&mut self, now: Instant) -> Step {
        if self.reporting.take_end(now).is_some() {
            self.phase = Phase::Stopped(StopReason::PeerBye);
            self.events.push(SenderEvent::Stopped(StopReason::PeerBye));
            return Step::Again;
        }
        if self.admitting.is_expired(now) {
            self.end(StopReason::ConsentExpired);
            return Step::Again;
        }
        if let Some(class) = self.admitting.next_question(now, self.flow.srtt()) {
            return self.challenge(now, class);
        }
        self.media.expire(now, self.flow.target_rate());
        self.note_drops();
        if self.admitting.is_held() {
            return Step::Wait(self.admitting.next().min(self.media.next_expiry()));
        }
        if let Some(option) = self.quick_start.take_due() {
            return self.ask_rate(now, option);
        }
        let question = self.path_mtu.poll(now, self.flow.srtt().unwrap_or_default());
        self.resize();
        if let Some(question) = question {
            return self.ask_size(now, question);
        }
        if self.reporting.is_due(now) {
            self.buf.clear();
            rtcp::write_report(now, &self.media, &self.config, &mut self.buf);
            self.reporting.on_sent(now, on_the_wire(self.buf.len(), &self.config));
            return Step::Send(self.config.data_dscp, Ecn::NotEct, What::Report, Via::Udp);
        }
        if now >= self.next_key_in_silence() {
            self.media.repair.on_key_in_silence(now);
            self.events.request_key_frame(now);
        }
        let full = self.flow.via() == Via::Tcp && self.tcp.is_some_and(|tcp| !tcp.has_room());
        let answer = self.flow.poll(now, self.media.has_data(self.flow.via()) && !full);
        if let Some(tcp) = &mut self.tcp {
            // TCP has its own window: this flow waits for nothing else.
            tcp.set_draining(matches!(answer, Transmit::WaitForFeedback(_)) && self.flow.via() == Via::Tcp);
        }
        // Dummies may go first, to find out how much the path bears.
        self.ready |= match answer {
            Transmit::Send(permit) => permit.kind == Kind::Data,
            Transmit::WaitForData(_) | Transmit::WaitForFeedback(_) => true,
            Transmit::WaitUntil(_) | Transmit::Stopped(_) => false,
        };
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
        let repair = self.next_key_in_silence().min(self.media.repair.next_copy());
        let until = until.min(repair).min(self.media.next_expiry()).min(self.path_mtu.next());
        Step::Wait(until.min(self.reporting.next()).min(self.admitting.next()))
    }

    fn end(&mut self, reason: StopReason) {
        let silent = matches!(
            reason,
            StopReason::Unreachable
                | StopReason::ConsentExpired
                | StopReason::Breaker(fairpace_control::StopReason::FeedbackTimeout { .. })
        );
        let reason = if silent && self.admitting.is_busy() { StopReason::Busy } else { reason };
        self.phase = match self.phase {
            Phase::Stopped(_) | Phase::Leaving(..) => return,
            // Not a word to an address that is not proven.
            Phase::Challenging(..) => Phase::Stopped(reason),
            Phase::Settling(_) | Phase::Running => Phase::Leaving(reason, Farewell::new(self.now)),
        };
        self.events.push(SenderEvent::Stopped(reason));
    }

    // --- sending ---------------------------------------------------------------------------------

    fn transmit(&mut self, now: Instant, permit: Permit) -> Step {
        let stamping = Stamping::new(now, &self.config, &self.flow, &self.feedback, &self.secret);
        let (deadline, rate) = (self.deadline(), self.flow.target_rate());
        let (media, out) = (&mut self.media, &mut self.buf);
        // Nothing comes between the packets of a pair.
        let is_data = permit.kind == Kind::Data && !(self.feedback.has_pairs() && media.is_within_pair());
        let (what, adu_end) = if is_data && media.write_retransmission(&stamping, &deadline, &self.config, out) {
            (What::Retransmission, false)
        } else if is_data && permit.via == Via::Udp && media.write_fec(&stamping, rate, &self.config, out) {
            (What::Fec, false)
        } else {
            let written =
                if permit.kind == Kind::Data { media.write_media(&stamping, &self.config, out) } else { None };
            match written {
                Some(chunk) => {
                    let queue = &mut self.stats.queue;
                    queue.longest_wait = queue.longest_wait.max(now.since(chunk.captured));
                    (What::Media, chunk.marker)
                }
                // All that waited was too long for what the path carries now, or has been forgotten.
                None if permit.kind == Kind::Data => return Step::Again,
                None => {
                    media.write_dummy(&stamping, &self.config, out);
                    (What::Dummy, false)
                }
            }
        };
        let step = self.leave(now, permit, what);
        if adu_end {
            self.flow.on_adu_end(now);
        }
        step
    }

    /// The packet in the buffer goes out.
    fn leave(&mut self, now: Instant, mut permit: Permit, what: What) -> Step {
        if let Some(option) = permit.quick_start.take() {
            self.quick_start.set_due(option);
        }
        let size = on_the_wire(self.buf.len(), &self.config);
        self.feedback.on_sent(now, permit.kind, permit.seq);
        self.media.on_sent(now, what, permit.seq, self.buf.len());
        if matches!(what, What::Retransmission | What::Fec) && self.feedback.has_pairs() {
            self.flow.on_sent_unnumbered(now, permit, size);
        } else {
            self.flow.on_sent(now, permit, size);
        }
        self.admitting.on_sent(now, self.flow.srtt(), self.feedback_interval);
        let ecn = if self.feedback.tells_of_marks() { permit.ecn } else { Ecn::NotEct };
        Step::Send(self.dscp(permit.class), ecn, what, permit.via)
    }

    // --- events ----------------------------------------------------------------------------------

    fn note_drops(&mut self) {
        let drops = self.media.take_drops();
        if drops.frames > 0 {
            self.stats.frames_dropped += drops.frames;
            self.stats.queue.dropped += Bytes::new(drops.bytes);
            self.events.push(SenderEvent::FramesDropped(drops.frames));
        }
        if drops.ask_for_key {
            self.events.push(SenderEvent::KeyFrameRequest);
        }
    }

    /// The times by which it is judged whether a packet is sent again.
    fn deadline(&self) -> Deadline {
        let srtt = self.flow.srtt().unwrap_or_default();
        let least_rtt = self.flow.rtt().min().unwrap_or(srtt);
        Deadline { now: self.now, playout: self.playout, srtt, least_rtt }
    }

    /// When a key frame is to be encoded because nothing is heard; NEVER if the source gives none.
    fn next_key_in_silence(&self) -> Instant {
        if !self.config.refreshes {
            return Instant::NEVER;
        }
        self.media.repair.next_key_in_silence(self.flow.srtt().unwrap_or_default())
    }

    fn note_refused(&mut self, packets: u64) {
        self.stats.too_late += packets;
        self.note_drops();
    }

    fn note_rate(&mut self) {
        if self.phase == Phase::Running {
            self.events.tell_rate(self.flow.target_rate());
        }
    }
}
