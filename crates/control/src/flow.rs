//! A flow: ledger, RTT, loss detection, caps and circuit breaker around one controller. This is
//! what drivers talk to; the contract is in the crate's documentation.

use crate::breaker::{Breaker, BreakerParams, ReceiverReport, StopReason, Trip};
use crate::controller::{
    Acked, Controller, FeedbackForm, Loss, LossHow, LossPolicy, RateReport, SendPoll, Sent, Status, TcpOrder,
    TcpProgress, TimeoutRule,
};
use crate::ledger::{Credit, Ledger, LostPacket};
use crate::meter::Meter;
use crate::quick_start::{QsCounters, QsVerdict, QuickStartParams, Requester};
use crate::registry::{Env, Safety};
use crate::rtt::{RttEstimator, RttParams};
use crate::sack_vector::SackVector;
use core::cmp::Ordering;
use fairpace_units::{
    Bytes, Class, Duration, Ecn, Instant, Kind, QsFunction, QsOption, QsRate, QsResponse, RandomStream, Rate, Via,
};

/// How a flow is set up.
#[derive(Clone, Debug)]
pub struct FlowParams {
    /// As in the controller's [`Env`].
    pub packet_size: Bytes,
    /// The most that data and dummies together may use, enforced per packet.
    pub max_rate: Rate,
    /// With [`Safety::Paper`] there is no cap, and every RTT sample is believed.
    pub safety: Safety,
    /// The circuit breaker; `None` switches it off.
    pub breaker: Option<BreakerParams>,
    /// Keep events for [`Flow::drain_events`].
    pub trace: bool,
    /// The class of data packets; dummies are always low.
    pub data_class: Class,
    /// The numbers of the first data packet and the first dummy.
    pub first_seq: [u64; 2],
    /// Packets of each kind remembered at most. An outstanding packet pushed out of the history is
    /// counted as lost and not reported.
    pub history: usize,
    /// Leave out one data number in that many, at random from this seed: a receiver that
    /// acknowledges one of them lies, and the flow stops. `None`: never.
    pub skip: Option<(u32, u64)>,
    /// The longest the receiver may hold an acknowledgement back; what it claims beyond that stays in
    /// the RTT, and only the timeout waits for it. The feedback interval and some room, 25 ms [RFC 9002 §5.3].
    pub max_ack_delay: Duration,
    /// Somewhere on the path capacity is granted in bursts, so that for round trips on end more may arrive than
    /// was sent. What a receiver that measures says it received is then held against what left between the
    /// departures that two reports echo, over the time between the reports, if that is shorter.
    pub bursty_path: bool,
    /// Ask the routers for a rate at the start and after idle times; `None`: never. Only for networks
    /// whose routers are known to do it [RFC 4782 §10.3].
    pub quick_start: Option<QuickStartParams>,
    /// The pacing quantum: when a packet leaves, those that are due within this leave with it, so that a driver wakes
    /// up once for all of them. Rates are unchanged; what may leave within any time w is what may within w and a
    /// quantum without it. A timer less than two quanta before a packet may run with it. Zero: each packet at its own time. Schemes whose spacing is a rule of its own
    /// ([`Controller::may_leave_early`]) are paced without one.
    pub quantum: Duration,
}

impl FlowParams {
    /// What fits a controller built in `env`: cap and breaker on unless `env.safety` is
    /// [`Safety::Paper`].
    pub fn new(env: &Env) -> Self {
        FlowParams {
            packet_size: env.packet_size,
            max_rate: env.max_rate,
            safety: env.safety,
            breaker: (env.safety == Safety::Default).then(BreakerParams::default),
            trace: false,
            data_class: Class::Normal,
            first_seq: [0, 0],
            history: 16_384,
            skip: None,
            max_ack_delay: Duration::from_millis(25),
            bursty_path: false,
            quick_start: None,
            quantum: Duration::ZERO,
        }
    }
}

/// Leave to send one packet. It is used up by [`Flow::on_sent`]; unused, it expires at the next
/// call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permit {
    /// Media or dummy.
    pub kind: Kind,
    /// The priority to mark it with.
    pub class: Class,
    /// The number to send it under, counted per kind.
    pub seq: u64,
    /// The ECN field to send it with.
    pub ecn: Ecn,
    /// The Quick-Start option to put into its IP header, with the TTL to send it with.
    pub quick_start: Option<QsOption>,
    /// The transport to send it by.
    pub via: Via,
}

/// The answer to [`Flow::poll`]. The instant in a waiting answer is when to ask again even if
/// nothing else happens; [`Instant::NEVER`] if that is not needed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Transmit {
    /// Send this packet now, call [`Flow::on_sent`], and ask again.
    Send(Permit),
    /// Nothing before that instant.
    WaitUntil(Instant),
    /// Data may go as soon as there is some.
    WaitForData(Instant),
    /// Nothing before feedback.
    WaitForFeedback(Instant),
    /// The flow has ended and stays so.
    Stopped(StopReason),
}

/// The acknowledgement of one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// Media or dummy.
    pub kind: Kind,
    /// The packet's number.
    pub seq: u64,
    /// The ECN field it arrived with.
    pub ecn: Ecn,
    /// When it arrived, on the receiver's clock, if known.
    pub arrived_at: Option<Duration>,
    /// How long the receiver held the acknowledgement back.
    pub ack_delay: Duration,
}

impl Ack {
    /// An acknowledgement sent at once, with nothing more to say.
    pub const fn immediate(kind: Kind, seq: u64) -> Ack {
        Ack { kind, seq, ecn: Ecn::NotEct, arrived_at: None, ack_delay: Duration::ZERO }
    }
}

/// What became of the packets of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KindCounters {
    /// Packets sent.
    pub sent: u64,
    /// Their bytes.
    pub sent_bytes: Bytes,
    /// Packets acknowledged.
    pub acked: u64,
    /// Their bytes.
    pub acked_bytes: Bytes,
    /// Packets declared lost and not acknowledged since.
    pub lost: u64,
    /// Packets acknowledged after they had been declared lost.
    pub late: u64,
}

/// Feedback that was ignored, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BadFeedback {
    /// The packet had been acknowledged before; or a receiver report tells of no packet beyond the last report's, and
    /// nothing else comes.
    pub duplicate: u64,
    /// The packet is too old to be remembered.
    pub stale: u64,
    /// The packet has not been sent yet.
    pub unsent: u64,
    /// The number was left out on purpose: a lie.
    pub skipped: u64,
    /// RTT samples and claims of delay that were not believable (their ACKs counted).
    pub rtt: u64,
    /// Reports with impossible values, those that are older than one that has come, and feedback of another form
    /// than receiver reports where the scheme goes by nothing else.
    pub report: u64,
}

/// Everything a flow counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowCounters {
    /// Media.
    pub data: KindCounters,
    /// Dummies.
    pub dummy: KindCounters,
    /// Timeouts: no ACK although data was outstanding.
    pub timeouts: u64,
    /// Times the driver came back more than a second late.
    pub stalls: u64,
    /// Feedback that was ignored.
    pub bad: BadFeedback,
}

impl FlowCounters {
    fn of(&mut self, kind: Kind) -> &mut KindCounters {
        match kind {
            Kind::Data => &mut self.data,
            Kind::Dummy => &mut self.dummy,
        }
    }
}

/// What a flow did, for logs and pictures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FlowEventKind {
    /// The controller's state changed.
    StateChanged {
        /// Its state before.
        from: &'static str,
        /// Its state now.
        to: &'static str,
        /// Why.
        reason: &'static str,
    },
    /// The data rate changed.
    RateChanged {
        /// The rate now.
        rate: Rate,
        /// Why.
        reason: &'static str,
    },
    /// Data was lost.
    Lost {
        /// The packet's number; after a timeout of everything outstanding, the highest given up.
        seq: u64,
        /// How it was noticed.
        how: LossHow,
    },
    /// The circuit breaker cut the rate.
    Capped {
        /// The most that may be sent from now on.
        rate: Rate,
    },
    /// The cut has helped: the cap is lifted.
    Uncapped,
    /// The flow was stopped for good.
    Tripped {
        /// Why.
        reason: StopReason,
    },
    /// The routers were asked for a rate.
    QuickStartAsked {
        /// The rate.
        rate: QsRate,
    },
    /// What became of that.
    QuickStartAnswered {
        /// What the answer is worth.
        verdict: QsVerdict,
    },
}

/// One event and its time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowEvent {
    /// When.
    pub at: Instant,
    /// What.
    pub what: FlowEventKind,
}

/// A driver that comes back later than this after the instant it was told was not running: no
/// feedback could be heard, so the breaker's clock stood still.
const STALL: Duration = Duration::from_secs(1);

/// No round trip is shorter, whatever the scenario says: rates go with 1/RTT.
const LEAST_RTT: Duration = Duration::from_micros(10);

/// A responsive flow is kept at this share of what the breaker would bear. The loss that both go by is a count of few
/// packets: ten lost in a window vary by a third, and ten times TCP's rate goes with the root of it.
const HEADROOM: f64 = 0.7;

/// How early a packet may leave under the cap, so that a stream paced at exactly the cap is not
/// sent to sleep again for a rounded nanosecond.
const CAP_TOLERANCE: Duration = Duration::from_micros(1);

/// So many data packets lost in a row, all that was sent in an SRTT, are an outage. At nine tenths
/// lost at random one run in eight is as long.
const OUTAGE_PACKETS: u64 = 20;

/// How far what a report echoes may lie from a real departure: a header may carry milliseconds only.
const ECHO_TOLERANCE: Duration = Duration::from_millis(1);

/// Of the most that was ever allowed, what a receiver may say that it received: a queue that empties
/// delivers a little faster than was sent.
const ARRIVAL_MARGIN: f64 = 1.05;

/// What was sent bounds what can have been received over an RTT divided by this, or longer: reports
/// come once per RTT, a little more or less.
const SENT_SPANS: u32 = 2;

/// What is remembered to judge the next report of a receiver that measures.
#[derive(Clone, Debug)]
struct Reports {
    /// What the last one echoed, and its p.
    last: Option<(Instant, f64)>,
    /// What was sent, by departure, as far as reports echo.
    sent: Meter,
    /// The same by when the report came, with [`FlowParams::bursty_path`].
    reported: Option<Meter>,
    /// The highest rate that was allowed when a report came.
    most: Rate,
}

/// What became of data since the last report.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    heard: bool,
    expected: u64,
    received: u64,
}

/// The sender half of a flow.
#[derive(Debug)]
pub struct Flow {
    controller: Box<dyn Controller>,
    policy: LossPolicy,
    packet_size: Bytes,
    data_class: Class,
    rtt: RttEstimator,
    max_ack_delay: Duration,
    /// The least time from a departure to its acknowledgement.
    min_elapsed: Duration,
    /// A data packet has measured the RTT: dummies, which wait longer in a priority queue, no
    /// longer do.
    rtt_from_data: bool,
    /// The timeout in force, back-off included.
    rto: Duration,
    /// Timeouts in a row, for back-off.
    rto_shift: u32,
    last_ack: Instant,
    data: Ledger,
    dummy: Ledger,
    /// The cap on everything sent; `None` if there is none.
    cap: Option<Rate>,
    /// What the breaker has cut the flow to.
    breaker_cap: Option<Rate>,
    /// When the next packet may leave under the cap.
    cap_free: Instant,
    /// How early a packet may leave; zero for schemes that space packets by a rule of their own.
    quantum: Duration,
    /// What is due until then leaves with the last packet that left in its time.
    quantum_end: Instant,
    breaker: Option<Breaker>,
    /// The breaker's reports come from the receiver; before the first, from the ledger.
    reports_received: bool,
    /// The controller goes by receiver reports and nothing else.
    only_reports: bool,
    rate_reports: Reports,
    report_every: Duration,
    next_report: Instant,
    /// What has become of data since the last report.
    tally: Tally,
    /// The highest data number acknowledged, and when it left; `None` before the first.
    highest_acked: Option<(u64, Instant)>,
    skip: Option<(u32, RandomStream)>,
    quick_start: Option<Box<Requester>>,
    /// p when the last Quick-Start request left, and how much data was lost then.
    lost_when_asked: (f64, u64),
    stopped: Option<StopReason>,
    started: bool,
    now: Instant,
    /// Until when the driver was told it may sleep.
    promised: Instant,
    demand: Option<Rate>,
    /// Highest number and cumulative loss of the last receiver report that told the latter.
    told_lost: Option<(u64, i64)>,
    /// The highest number that a receiver report has named.
    reported: Option<u64>,
    tcp_acked: Bytes,
    /// What the breaker will bear, less a margin; `None` while nothing is lost.
    headroom: Option<Rate>,
    /// The largest number that a sack vector has named as received, and the window that it gave last.
    sacked: Option<u64>,
    rwnd: Option<u32>,
    counters: FlowCounters,
    trace: bool,
    last_status: Status,
    events: Vec<FlowEvent>,
}

impl Flow {
    /// A flow that has not begun.
    pub fn new(controller: Box<dyn Controller>, params: FlowParams) -> Flow {
        let mut policy = controller.loss_policy();
        if params.safety == Safety::Paper {
            policy.rtt = RttParams { floor: LEAST_RTT, confirmations: 0, ..policy.rtt };
        }
        let ledger = |first| Ledger::new(first, params.history, policy.dup_threshold);
        let rtt = RttEstimator::new(policy.rtt);
        let every = controller.report_interval();
        Flow {
            rto: rtt.rto(&policy.rto),
            rtt,
            max_ack_delay: params.max_ack_delay,
            min_elapsed: Duration::MAX,
            rtt_from_data: false,
            rto_shift: 0,
            last_ack: Instant::ZERO,
            data: ledger(params.first_seq[0]),
            dummy: ledger(params.first_seq[1]),
            cap: (params.safety == Safety::Default).then_some(params.max_rate),
            breaker_cap: None,
            cap_free: Instant::ZERO,
            quantum_end: Instant::ZERO,
            quantum: if controller.may_leave_early() { params.quantum } else { Duration::ZERO },
            report_every: params.breaker.map_or(Duration::MAX, |b| every.unwrap_or(b.tdr)),
            breaker: params.breaker.map(|b| Breaker::new(BreakerParams { tdr: every.unwrap_or(b.tdr), ..b })),
            reports_received: false,
            only_reports: controller.feedback_form() == FeedbackForm::ReceiverReports,
            rate_reports: Reports {
                last: None,
                sent: Meter::starting(Instant::ZERO),
                reported: params.bursty_path.then(|| Meter::starting(Instant::ZERO)),
                most: Rate::ZERO,
            },
            next_report: Instant::NEVER,
            tally: Tally::default(),
            highest_acked: None,
            skip: params.skip.map(|(every, seed)| (every.max(2), RandomStream::named(seed, "flow.skip"))),
            quick_start: params.quick_start.map(|p| Box::new(Requester::new(p))),
            lost_when_asked: (0.0, 0),
            stopped: None,
            started: false,
            now: Instant::ZERO,
            promised: Instant::NEVER,
            demand: None,
            told_lost: None,
            reported: None,
            tcp_acked: Bytes::ZERO,
            headroom: None,
            sacked: None,
            rwnd: None,
            counters: FlowCounters::default(),
            trace: params.trace,
            last_status: controller.status(),
            events: Vec::new(),
            packet_size: params.packet_size,
            data_class: params.data_class,
            policy,
            controller,
        }
    }

    // --- what happened ---------------------------------------------------------------------------

    /// The flow begins; before this, nothing is sent. `srtt`: the round trip that the challenge's
    /// echo measured, if any.
    pub fn start(&mut self, now: Instant, srtt: Option<Duration>) {
        let now = self.advance(now);
        if self.started {
            return;
        }
        self.started = true;
        if let Some(rtt) = srtt {
            self.rtt.update(rtt.max(LEAST_RTT));
            self.update_rto();
        }
        self.next_report = now + self.report_every;
        self.controller.start(now, srtt.map(|rtt| rtt.max(LEAST_RTT)));
        self.note_via(now, Via::Udp);
        self.note(now);
    }

    /// The packet of `permit` has left with `size` bytes.
    pub fn on_sent(&mut self, now: Instant, permit: Permit, size: Bytes) {
        let now = self.advance(now);
        let ledger = match permit.kind {
            Kind::Data => &mut self.data,
            Kind::Dummy => &mut self.dummy,
        };
        debug_assert_eq!(permit.seq, ledger.next_seq(), "an old permit was used again");
        let (seq, forgotten) = match permit.via {
            Via::Udp => ledger.sent(now, size),
            Via::Tcp => ledger.sent_reliably(now, size),
        };
        if let (Kind::Data, Some((every, stream))) = (permit.kind, &mut self.skip)
            && stream.below(u64::from(*every)) == 0
        {
            ledger.skip(now);
        }
        let c = self.counters.of(permit.kind);
        c.sent += 1;
        c.sent_bytes += size;
        c.lost += u64::from(forgotten && !self.only_reports);
        if let Some(cap) = self.cap() {
            self.cap_free = self.cap_free.max(now) + size / cap;
        }
        if let Some(b) = &mut self.breaker {
            match permit.via {
                Via::Udp => b.on_sent(now, size, permit.kind == Kind::Data),
                Via::Tcp => b.await_tcp(now),
            }
        }
        self.controller.on_sent(now, &Sent { kind: permit.kind, class: permit.class, seq, size });
        if let Some(option) = permit.quick_start {
            self.on_option_sent(now, option);
        }
        self.note(now);
    }

    fn on_option_sent(&mut self, now: Instant, option: QsOption) {
        let Some(q) = &mut self.quick_start else { return };
        q.on_sent(now, option, self.rtt.srtt());
        if option.function == QsFunction::Request {
            self.lost_when_asked = self.losses();
            self.event(now, FlowEventKind::QuickStartAsked { rate: option.rate });
            if let Some(hooks) = self.controller.quick_start() {
                hooks.on_asked(now);
            }
        }
    }

    /// Acknowledgements have arrived. Duplicates, replays and inventions are counted and ignored.
    pub fn on_acks(&mut self, now: Instant, acks: &[Ack]) {
        let now = self.advance(now);
        if !self.started || self.stopped.is_some() {
            return;
        }
        if self.only_reports {
            self.counters.bad.report += 1;
            return;
        }
        // What was due before now happened before this feedback, even if the driver came late.
        self.run_controller_timers(now, false);
        for ack in acks {
            match self.credit(now, ack, true) {
                Ok(()) => {}
                Err(bad) => self.count_bad(now, bad),
            }
        }
        self.on_acks_done(now);
    }

    /// An AIMD ACK has arrived. Each packet it names is credited once, the oldest first; the RTT is measured by
    /// packet ack_a only, and only when this ACK is the first to name it. An ACK of a packet that has not been sent
    /// is counted (`bad.unsent`) and ignored, with all it says; one without news is counted as `bad.duplicate`. Its
    /// rwnd counts unless an ACK with a larger number has come.
    pub fn on_sack_vector(&mut self, now: Instant, sack: &SackVector) {
        let now = self.advance(now);
        if !self.started || self.stopped.is_some() {
            return;
        }
        if self.only_reports {
            self.counters.bad.report += 1;
            return;
        }
        self.run_controller_timers(now, false);
        let next_seq = self.data.next_seq();
        let Some(ack) = sack.unwrap_near(next_seq).filter(|ack| *ack < next_seq) else {
            self.counters.bad.unsent += 1;
            return;
        };
        let mut news = false;
        let mut bad = Credit::Duplicate;
        for seq in sack.numbers(ack) {
            let one = Ack {
                kind: Kind::Data,
                seq,
                ecn: sack.ecn,
                arrived_at: sack.arrived_at.filter(|_| seq == ack),
                ack_delay: sack.ack_delay,
            };
            match self.credit(now, &one, seq == ack) {
                Ok(()) => news = true,
                Err(Credit::Skipped) => return self.count_bad(now, Credit::Skipped),
                Err(why) => bad = why,
            }
        }
        if !news {
            self.count_bad(now, bad);
        }
        if self.sacked.is_none_or(|last| ack >= last) {
            self.sacked = Some(ack);
            self.set_window_limit(now, sack.rwnd);
        }
        self.on_acks_done(now);
    }

    /// The receiver, or a base station on the way, allows at most `rwnd` packets outstanding, as it says when the
    /// flow is set up; later [`Flow::on_sack_vector`] brings it. `None` says nothing: what was said last stands.
    pub fn set_window_limit(&mut self, now: Instant, rwnd: Option<u32>) {
        let now = self.advance(now);
        if rwnd.is_some() && rwnd != self.rwnd {
            self.rwnd = rwnd;
            self.controller.set_window_limit(now, rwnd);
            self.note(now);
        }
    }

    /// The window that the receiver, or a base station on the way, said last, packets.
    pub fn rwnd(&self) -> Option<u32> {
        self.rwnd
    }

    fn count_bad(&mut self, now: Instant, credit: Credit) {
        let bad = &mut self.counters.bad;
        match credit {
            Credit::New { .. } => {}
            Credit::Duplicate => bad.duplicate += 1,
            Credit::Stale => bad.stale += 1,
            Credit::Unsent => bad.unsent += 1,
            Credit::Skipped => {
                bad.skipped += 1;
                self.stop(now, StopReason::PeerLied);
            }
        }
    }

    /// After the last ACK of some feedback.
    fn on_acks_done(&mut self, now: Instant) {
        if self.quick_start.is_some()
            && let Some((_, departure)) = self.highest_acked
        {
            self.on_option_feedback(now, departure);
        }
    }

    /// Credits one packet; what the ledger makes of it if that is not new. `measures`: the ACK was sent because of it,
    /// so it is a sample of the RTT.
    fn credit(&mut self, now: Instant, ack: &Ack, measures: bool) -> Result<(), Credit> {
        let ledger = match ack.kind {
            Kind::Data => &mut self.data,
            Kind::Dummy => &mut self.dummy,
        };
        let (sent_at, size, late) = match ledger.acknowledge(ack.seq) {
            Credit::New { sent_at, size, late } => (sent_at, size, late),
            other => return Err(other),
        };
        let outstanding = ledger.outstanding();
        let c = self.counters.of(ack.kind);
        c.acked += 1;
        c.acked_bytes += size;
        if late {
            c.late += 1;
            c.lost -= 1;
        }
        self.last_ack = now;
        let mut news = self.rto_shift > 0;
        self.rto_shift = 0;
        // Only news holds the breaker off: a replay of old feedback must change nothing.
        self.tally.heard = true;
        if let Some(b) = &mut self.breaker {
            b.on_feedback();
        }
        let mut rtt = None;
        if measures && (ack.kind == Kind::Data || !self.rtt_from_data) {
            let elapsed = now.since(sent_at);
            let held = self.believed_delay(elapsed, ack.ack_delay);
            rtt = self.rtt.sample(elapsed, held);
            if rtt.is_none() {
                self.counters.bad.rtt += 1;
            } else {
                self.rtt_from_data |= ack.kind == Kind::Data;
                news = true;
            }
        }
        if news {
            self.update_rto();
        }
        if ack.kind == Kind::Data {
            self.tally(ack.seq, sent_at);
        }
        let Ack { kind, seq, ecn, arrived_at, .. } = *ack;
        let acked = Acked { kind, seq, size, sent_at, rtt, ecn, arrived_at, outstanding };
        self.controller.on_ack(now, &acked, &self.rtt);
        self.note(now);
        self.report_losses(now, ack.kind);
        Ok(())
    }

    /// How much of a claimed delay counts: no more than was agreed, and nothing that would make the
    /// round trip shorter than the shortest seen with the delay still in it [RFC 9002 §5.3]. So a
    /// claim can hide waiting in queues, a little of it, and never the path.
    fn believed_delay(&mut self, elapsed: Duration, claimed: Duration) -> Duration {
        if claimed > elapsed {
            // Impossible or unknown. To take no sample would let the claim freeze the RTT as well.
            self.counters.bad.rtt += 1;
            return Duration::ZERO;
        }
        self.rtt.note_ack_delay(claimed);
        self.min_elapsed = self.min_elapsed.min(elapsed);
        claimed.min(self.max_ack_delay).min(elapsed - self.min_elapsed)
    }

    fn report_losses(&mut self, now: Instant, kind: Kind) {
        if kind == Kind::Dummy {
            while self.dummy.next_loss().is_some() {
                self.counters.dummy.lost += 1;
            }
            return;
        }
        while let Some(lost) = self.data.next_loss() {
            self.report_loss(now, lost, LossHow::LaterAcks);
        }
    }

    fn report_loss(&mut self, now: Instant, lost: LostPacket, how: LossHow) {
        self.counters.data.lost += 1;
        let highest_sent = self.data.next_seq().saturating_sub(1);
        self.event(now, FlowEventKind::Lost { seq: lost.seq, how });
        let loss = Loss { seq: lost.seq, sent_at: lost.sent_at, highest_sent, how };
        self.controller.on_loss(now, &loss, &self.rtt);
        self.note(now);
    }

    /// A report of a receiver that measures has arrived. What cannot be true is counted (`bad.report`)
    /// and ignored, and so is what is older than a report that has come; the rest is cut to what can
    /// be true, and told to the controller. p cannot be checked: it is as good as the receiver's word.
    pub fn on_rate_report(&mut self, now: Instant, report: &RateReport) {
        let now = self.advance(now);
        if !self.started || self.stopped.is_some() {
            return;
        }
        self.run_controller_timers(now, false);
        if !self.is_believable(now, report) {
            self.counters.bad.report += 1;
            return;
        }
        self.last_ack = now;
        if let Some(b) = &mut self.breaker {
            b.on_feedback();
        }
        // A report may be held back for as long as no packet comes; but its round trip is no shorter than
        // the shortest with the delay still in it, and the first was sent at once.
        let elapsed = now.since(report.echoed);
        self.min_elapsed = self.min_elapsed.min(elapsed);
        let held = report.delay.min(elapsed - self.min_elapsed);
        if self.rtt.sample(elapsed, held).is_none() {
            self.counters.bad.rtt += 1;
        }
        self.update_rto();
        let report = RateReport { received_rate: self.believable_rate(report), ..*report };
        self.rate_reports.last = Some((report.echoed, report.loss_event_rate));
        self.controller.on_report(now, &report, &self.rtt);
        self.note(now);
        if self.quick_start.is_some() {
            self.on_option_feedback(now, report.echoed);
        }
    }

    /// Feedback has come on what left until `departure`.
    fn on_option_feedback(&mut self, now: Instant, departure: Instant) {
        let Some(q) = &mut self.quick_start else { return };
        if let Some(verdict) = q.on_feedback(now, departure) {
            self.event(now, FlowEventKind::QuickStartAnswered { verdict });
        }
    }

    /// The receiver's answer to a Quick-Start request has arrived. If it came in the same packet as ACKs or
    /// a report, hand those in first. What is not valid is counted ([`Flow::quick_start`]) and is a refusal.
    pub fn on_quick_start_response(&mut self, now: Instant, response: &QsResponse) {
        if self.quick_start.is_none() || !self.started || self.stopped.is_some() {
            return;
        }
        let now = self.advance(now);
        self.run_controller_timers(now, false);
        let Some(q) = &mut self.quick_start else { return };
        let (verdict, elapsed) = q.on_response(now, response);
        let header = q.params().header;
        self.event(now, FlowEventKind::QuickStartAnswered { verdict });
        // Nothing is begun that a loss would end at once [RFC 5634 §3.2.3].
        let (p, lost) = self.losses();
        let lossless = p <= self.lost_when_asked.0 && lost <= self.lost_when_asked.1;
        if let (QsVerdict::Approved(rate), true) = (verdict, lossless) {
            let rtt = self.rtt.srtt().unwrap_or(elapsed).max(LEAST_RTT);
            if let Some(hooks) = self.controller.quick_start() {
                hooks.on_approved(now, rate, header, rtt);
            }
            self.note(now);
        }
    }

    /// The loss rate that is known, and how much data was lost.
    fn losses(&self) -> (f64, u64) {
        (self.controller.status().p.unwrap_or(0.0), self.counters.data.lost)
    }

    fn is_believable(&self, now: Instant, r: &RateReport) -> bool {
        let news = self.rate_reports.last.is_none_or(|(echoed, p)| {
            // The same packet twice is news only if it revealed a loss.
            r.echoed > echoed || (r.echoed == echoed && r.loss_event_rate > p)
        });
        self.controller.feedback_form() == FeedbackForm::Reports
            && news
            && (0.0..=1.0).contains(&r.loss_event_rate)
            && r.echoed <= now
            && r.delay <= now.since(r.echoed)
            && self.data.left_around(r.echoed, ECHO_TOLERANCE)
    }

    /// X_recv, at most what was sent in the time that the report covers, or the packet per RTT that it
    /// always is [RFC 5348 §6.2], and little more than the most that was ever allowed. Settles the
    /// ledger.
    fn believable_rate(&mut self, r: &RateReport) -> Rate {
        let srtt = self.rtt.srtt().unwrap_or(Duration::ZERO);
        let span = srtt / SENT_SPANS;
        let reports = &mut self.rate_reports;
        let settled = self.data.settle(r.echoed);
        let mut sent = 0.0_f64;
        let meters = [(Some(&mut reports.sent), r.echoed), (reports.reported.as_mut(), self.now)];
        for (meter, at) in meters.into_iter().filter_map(|(meter, at)| Some((meter?, at))) {
            match reports.last {
                None => *meter = Meter::starting(at),
                Some(_) => meter.add(settled.get()),
            }
            sent = sent.max(meter.rate(at, span).unwrap_or(f64::INFINITY));
            meter.mark(at, span);
        }
        let sent = if sent.is_finite() { Rate::bps(sent * 8.0) } else { Rate::MAX };
        reports.most = reports.most.max(self.controller.status().rate);
        let one_per_rtt = Rate::bps(self.packet_size.as_f64() * 8.0 / srtt.as_secs_f64());
        r.received_rate.min(sent.max(one_per_rtt)).min(reports.most * ARRIVAL_MARGIN)
    }

    /// A receiver report has arrived (RTCP SR or RR): the breaker judges it, and the controller is told if it goes by
    /// nothing else.
    pub fn on_receiver_report(&mut self, now: Instant, report: &ReceiverReport) {
        let now = self.advance(now);
        if !self.started || self.stopped.is_some() {
            return;
        }
        if report.highest_seq >= self.data.next_seq() || !(0.0..=1.0).contains(&report.fraction_lost) {
            self.counters.bad.report += 1;
            return;
        }
        let order = self.reported.map_or(Ordering::Greater, |highest| report.highest_seq.cmp(&highest));
        if self.only_reports && order != Ordering::Greater {
            let bad = &mut self.counters.bad;
            *(if order == Ordering::Less { &mut bad.report } else { &mut bad.duplicate }) += 1;
            return;
        }
        self.reported = self.reported.max(Some(report.highest_seq));
        // One that tells of no further packet says that nothing arrives, or is a repetition: it holds nothing off.
        let news = self.only_reports || self.data.is_unheard_of(report.highest_seq);
        if let Some(b) = self.breaker.as_mut().filter(|_| news && order == Ordering::Greater) {
            b.on_feedback();
        }
        self.reports_received = true;
        self.next_report = Instant::NEVER;
        let mut report = *report;
        if let Some(lost) = report.lost {
            // Finer than the 8 bits of the fraction, which are nought for less than one packet in 256.
            if let Some((highest, lost_then)) = self.told_lost
                && report.highest_seq > highest
            {
                let expected = (report.highest_seq - highest) as f64;
                report.fraction_lost = (lost.saturating_sub(lost_then) as f64 / expected).clamp(0.0, 1.0);
            }
            self.told_lost = Some((report.highest_seq, lost));
        }
        if self.only_reports {
            self.tell_report(now, &report);
        }
        self.judge(now, report);
    }

    fn tell_report(&mut self, now: Instant, report: &ReceiverReport) {
        self.run_controller_timers(now, false);
        if let Some(rtt) = report.rtt
            && self.rtt.sample(rtt, Duration::ZERO).is_none()
        {
            self.counters.bad.rtt += 1;
        }
        self.update_rto();
        self.data.settle_up_to(report.highest_seq);
        if let Some(lost) = report.lost {
            self.counters.data.lost = lost.clamp(0, i64::MAX).unsigned_abs().min(self.counters.data.sent);
        }
        self.controller.on_receiver_report(now, report, &self.rtt);
        self.note(now);
    }

    // --- the TCP half ----------------------------------------------------------------------------

    /// How far the flow's TCP half is. A driver says so whenever it wakes for the flow, before anything else of that
    /// instant, and at each instant that [`Flow::poll`] named.
    pub fn on_tcp(&mut self, now: Instant, progress: &TcpProgress) {
        let now = self.advance(now);
        if !self.started || self.stopped.is_some() {
            return;
        }
        if progress.acked > self.tcp_acked {
            self.tcp_acked = progress.acked;
            if let Some(b) = &mut self.breaker {
                b.on_tcp_progress();
            }
            // The first receiver report may be a whole period away.
            if let (None, Some(srtt)) = (self.rtt.srtt(), progress.srtt) {
                self.rtt.update(srtt.max(LEAST_RTT));
                self.update_rto();
            }
        }
        if let Some(tcp) = self.controller.tcp() {
            tcp.on_progress(now, progress);
        }
        self.note(now);
    }

    /// The last packet of an application data unit has left: the one place where the transport may change, but for
    /// [`Flow::on_tcp_drained`].
    pub fn on_adu_end(&mut self, now: Instant) {
        let now = self.advance(now);
        if !self.started || self.stopped.is_some() {
            return;
        }
        self.run_controller_timers(now, false);
        let via = self.via();
        if let Some(tcp) = self.controller.tcp() {
            tcp.on_adu_end(now);
        }
        self.note_via(now, via);
        self.note(now);
    }

    /// TCP's send buffer is empty, and all that was in it is acknowledged.
    pub fn on_tcp_drained(&mut self, now: Instant) {
        let now = self.advance(now);
        if !self.started || self.stopped.is_some() {
            return;
        }
        self.run_controller_timers(now, false);
        let via = self.via();
        if let Some(b) = &mut self.breaker {
            b.on_tcp_progress();
        }
        if let Some(tcp) = self.controller.tcp() {
            tcp.on_drained(now);
        }
        self.note_via(now, via);
        self.note(now);
    }

    /// The transport was `before`: the breaker times each on its own.
    fn note_via(&mut self, now: Instant, before: Via) {
        if let Some(b) = &mut self.breaker {
            match (before, self.controller.via()) {
                (Via::Udp, Via::Tcp) => b.pause(now),
                (Via::Tcp, Via::Udp) => b.resume(now),
                _ => {}
            }
        }
    }

    /// What the TCP half is to do; ask until `None` after each call.
    pub fn take_tcp_order(&mut self) -> Option<TcpOrder> {
        self.controller.tcp()?.take_order()
    }

    /// The transport of the next packet.
    pub fn via(&self) -> Via {
        self.controller.via()
    }

    /// As a receiver would for its report [RFC 3550 §A.3]: what was expected, what came. A run of
    /// losses that swallowed everything for an SRTT is an outage and not expected: §4.1 of
    /// RFC 8083 is there for those, and §4.3 would end every flow that survives one.
    fn tally(&mut self, seq: u64, sent_at: Instant) {
        self.tally.received += 1;
        let Some((highest, highest_sent_at)) = self.highest_acked else {
            self.tally.expected += 1;
            self.highest_acked = Some((seq, sent_at));
            return;
        };
        if seq <= highest {
            return;
        }
        let lost = seq - highest - 1;
        let span = sent_at.since(highest_sent_at);
        let outage = lost >= OUTAGE_PACKETS && self.rtt.srtt().is_some_and(|srtt| span >= srtt);
        self.tally.expected += if outage { 1 } else { lost + 1 };
        self.highest_acked = Some((seq, sent_at));
    }

    /// The breaker judges a report; the ledger's own knowledge of losses, which no receiver can
    /// embellish, replaces the stated one if there is any.
    fn judge(&mut self, now: Instant, mut report: ReceiverReport) {
        let t = core::mem::take(&mut self.tally);
        if t.expected > 0 {
            report.fraction_lost = (1.0 - t.received as f64 / t.expected as f64).max(0.0);
        }
        let rtt = self.rtt.srtt();
        let trip = self.breaker.as_mut().and_then(|b| b.on_report(&report, rtt));
        self.apply(now, trip);
        if self.controller.is_responsive() {
            let headroom = self.breaker.as_ref().and_then(|b| b.bearable(rtt, HEADROOM));
            if headroom != self.headroom {
                self.headroom = headroom;
                self.tell_demand(now);
            }
        }
    }

    // --- commands --------------------------------------------------------------------------------

    /// The application wants at most `max`; `None` if it has no limit of its own.
    pub fn set_demand(&mut self, now: Instant, max: Option<Rate>) {
        let now = self.advance(now);
        if self.demand != max {
            self.demand = max;
            self.tell_demand(now);
        }
    }

    fn tell_demand(&mut self, now: Instant) {
        let max = match (self.demand, self.headroom) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        self.controller.set_demand(now, max);
        self.note(now);
    }

    /// The path treats dummies like data: keep them at or below a tenth of the data rate.
    pub fn set_dummies_limited(&mut self, limited: bool) {
        self.controller.set_dummies_limited(limited);
    }

    // --- questions -------------------------------------------------------------------------------

    /// What to do now. Runs the timers that are due first. Asking twice at the same instant gives
    /// the same answer.
    pub fn poll(&mut self, now: Instant, has_data: bool) -> Transmit {
        let now = self.advance(now);
        self.run_timers(now);
        if let Some(reason) = self.stopped {
            return Transmit::Stopped(reason);
        }
        if self.started && self.via() == Via::Tcp && self.controller.poll_send(now, false) == SendPoll::WaitForFeedback
        {
            // TCP is being drained.
            if let Some(b) = &mut self.breaker {
                b.await_tcp(now);
            }
        }
        let timer = self.next_timer();
        let answer = if !self.started {
            Transmit::WaitForFeedback(Instant::NEVER)
        } else {
            // Early is only what is due within the quantum that began with a packet in its time: a driver that asks in
            // between, for feedback or a timer, begins none.
            let soon = self.quantum_end.max(now);
            let (wanted, in_time) = match self.controller.poll_send(now, has_data) {
                SendPoll::Wait(at) if at <= soon => (self.controller.poll_send(soon, has_data), false),
                wanted => (wanted, true),
            };
            match wanted {
                SendPoll::Send(kind) => {
                    let free = self.cap_free - CAP_TOLERANCE;
                    if free > soon {
                        Transmit::WaitUntil(self.wait(now, free, timer))
                    } else {
                        if in_time && free <= now {
                            self.quantum_end = now + self.quantum;
                        }
                        Transmit::Send(self.permit(kind))
                    }
                }
                SendPoll::Wait(at) => Transmit::WaitUntil(self.wait(now, at, timer)),
                SendPoll::WaitForData => {
                    if let Some(b) = &mut self.breaker {
                        b.on_idle(now);
                    }
                    Transmit::WaitForData(timer)
                }
                SendPoll::WaitForFeedback => Transmit::WaitForFeedback(timer),
            }
        };
        self.promised = match answer {
            Transmit::WaitUntil(t) | Transmit::WaitForData(t) | Transmit::WaitForFeedback(t) => {
                debug_assert!(t > now, "waiting for what is past: {answer:?} at {now:?}");
                t
            }
            Transmit::Send(_) | Transmit::Stopped(_) => now,
        };
        answer
    }

    /// Until when to wait for a packet due at `at`. One that is near is waited for, and a timer before it runs then: on the
    /// shortest paths there is a timer in each RTT, and each would be a wake-up.
    fn wait(&self, now: Instant, at: Instant, timer: Instant) -> Instant {
        if at <= now + self.quantum * 2 { at } else { at.min(timer) }
    }

    /// The cap in force.
    fn cap(&self) -> Option<Rate> {
        match (self.cap, self.breaker_cap) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    fn permit(&mut self, kind: Kind) -> Permit {
        let ecn = if self.controller.heeds_ecn() { Ecn::Ect0 } else { Ecn::NotEct };
        match kind {
            Kind::Data => {
                let quick_start = self.option();
                let via = self.controller.via();
                Permit { kind, class: self.data_class, seq: self.data.next_seq(), ecn, quick_start, via }
            }
            Kind::Dummy => {
                let seq = self.dummy.next_seq();
                Permit { kind, class: Class::Low, seq, ecn, quick_start: None, via: Via::Udp }
            }
        }
    }

    /// The Quick-Start option of a data packet that leaves now: a report that is owed, else a request if
    /// one may be sent and the controller has a use for it.
    fn option(&mut self) -> Option<QsOption> {
        let q = self.quick_start.as_ref()?;
        q.report().or_else(|| {
            let limit =
                q.may_ask(self.now, self.rtt.srtt()).then(|| self.controller.quick_start()?.limit(q.params()))??;
            q.request(QsRate::at_most(limit))
        })
    }

    /// What the encoder should produce, in wire bytes of data packets.
    pub fn target_rate(&self) -> Rate {
        let mut rate = self.controller.target_rate();
        if let Some(demand) = self.demand {
            rate = rate.min(demand);
        }
        if let Some(cap) = self.cap() {
            rate = rate.min(cap);
        }
        rate
    }

    /// The controller's state, its rate, and why either last changed.
    pub fn status(&self) -> Status {
        self.controller.status()
    }

    /// Smoothed RTT.
    pub fn srtt(&self) -> Option<Duration> {
        self.rtt.srtt()
    }

    /// The RTT estimator.
    pub fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }

    /// The timeout in force, back-off included.
    pub fn rto(&self) -> Duration {
        self.rto
    }

    /// Data packets neither acknowledged nor declared lost, and their bytes.
    pub fn flight(&self) -> (usize, Bytes) {
        (self.data.outstanding(), self.data.in_flight())
    }

    /// Why the flow was stopped, if it was.
    pub fn stopped(&self) -> Option<StopReason> {
        self.stopped
    }

    /// What was sent, acknowledged, lost and ignored so far.
    pub fn counters(&self) -> &FlowCounters {
        &self.counters
    }

    /// What became of Quick-Start requests; `None` if the flow sends none.
    pub fn quick_start(&self) -> Option<&QsCounters> {
        self.quick_start.as_ref().map(|q| q.counters())
    }

    /// The controller itself.
    pub fn controller(&self) -> &dyn Controller {
        &*self.controller
    }

    /// The size of a full packet: what dummies are padded to.
    pub fn packet_size(&self) -> Bytes {
        self.packet_size
    }

    /// What happened since the last call; empty unless [`FlowParams::trace`].
    pub fn drain_events(&mut self) -> std::vec::Drain<'_, FlowEvent> {
        self.events.drain(..)
    }

    // --- inside ----------------------------------------------------------------------------------

    /// Time never goes back, and a driver that slept too long is noticed.
    fn advance(&mut self, now: Instant) -> Instant {
        let now = now.max(self.now);
        self.now = now;
        let late = now.since(self.promised);
        if late > STALL {
            self.counters.stalls += 1;
            if let Some(b) = &mut self.breaker {
                b.on_stall(late);
            }
        }
        if !late.is_zero() {
            self.promised = now;
        }
        now
    }

    /// When something is due even if nothing happens.
    fn next_timer(&self) -> Instant {
        let breaker = self.breaker.as_ref().map_or(Instant::NEVER, |b| b.next().min(self.next_report));
        self.controller.poll_timer().min(self.rto_due()).min(breaker)
    }

    /// When the timeout expires; NEVER while no data is outstanding.
    fn rto_due(&self) -> Instant {
        let Some(oldest) = self.data.oldest_outstanding() else { return Instant::NEVER };
        let from = match self.policy.timeout {
            TimeoutRule::SinceLastAck => oldest.max(self.last_ack),
            TimeoutRule::PerPacket => oldest,
            TimeoutRule::Never => return Instant::NEVER,
        };
        from + self.rto
    }

    fn update_rto(&mut self) {
        let p = &self.policy.rto;
        let backoff = if p.backoff { 1 << self.rto_shift.min(16) } else { 1 };
        self.rto = self.rtt.rto(p).saturating_mul(backoff).min(p.max);
    }

    fn run_timers(&mut self, now: Instant) {
        if self.stopped.is_some() || !self.started {
            return;
        }
        self.run_controller_timers(now, true);
        if self.rto_due() <= now {
            self.expire(now);
            self.run_controller_timers(now, true);
        }
        if self.breaker.is_some() {
            if self.next_report <= now {
                self.report_from_ledger(now);
            }
            let trip = self.breaker.as_mut().and_then(|b| b.on_timer(now));
            self.apply(now, trip);
        }
    }

    /// The timeout has come.
    fn expire(&mut self, now: Instant) {
        self.counters.timeouts += 1;
        match self.policy.timeout {
            TimeoutRule::PerPacket => {
                let limit = now - self.rto;
                while let Some(lost) = self.data.next_expired(limit) {
                    self.report_loss(now, lost, LossHow::Timeout);
                }
            }
            TimeoutRule::SinceLastAck => {
                self.counters.data.lost += self.data.lose_all() as u64;
                let seq = self.data.next_seq().saturating_sub(1);
                self.event(now, FlowEventKind::Lost { seq, how: LossHow::Timeout });
                self.controller.on_timeout(now, &self.rtt);
                self.note(now);
            }
            TimeoutRule::Never => {}
        }
        self.rto_shift += 1;
        self.update_rto();
    }

    /// Runs the controller's timer if it is due: at `now` too if `inclusive`, else only before.
    fn run_controller_timers(&mut self, now: Instant, inclusive: bool) {
        // A timer may lead to another one that is due as well, but not for ever.
        for _ in 0..8 {
            let due = self.controller.poll_timer();
            if due > now || (due == now && !inclusive) {
                return;
            }
            self.controller.on_timer(now, &self.rtt);
            self.note(now);
        }
        debug_assert!(self.controller.poll_timer() > now, "a timer that never stops: {:?}", self.controller);
    }

    /// Where the receiver sends no reports, the ledger knows as much.
    fn report_from_ledger(&mut self, now: Instant) {
        self.next_report = now + self.report_every;
        if self.reports_received || !self.tally.heard {
            return;
        }
        let highest_seq = self.highest_acked.map_or(0, |(seq, _)| seq);
        self.judge(now, ReceiverReport::new(highest_seq, 0.0, self.report_every));
    }

    fn apply(&mut self, now: Instant, trip: Option<Trip>) {
        match trip {
            None => {}
            Some(Trip::Stop(reason)) => self.stop(now, reason),
            Some(Trip::Cap(rate)) => {
                self.breaker_cap = Some(rate);
                self.event(now, FlowEventKind::Capped { rate });
            }
            Some(Trip::Uncap) => {
                self.breaker_cap = None;
                self.event(now, FlowEventKind::Uncapped);
            }
        }
    }

    fn stop(&mut self, now: Instant, reason: StopReason) {
        if self.stopped.is_none() {
            self.stopped = Some(reason);
            self.event(now, FlowEventKind::Tripped { reason });
        }
    }

    fn event(&mut self, at: Instant, what: FlowEventKind) {
        if self.trace {
            self.events.push(FlowEvent { at, what });
        }
    }

    /// Notes what the last call changed.
    fn note(&mut self, at: Instant) {
        if !self.trace {
            return;
        }
        let (was, is) = (self.last_status, self.controller.status());
        if was.state != is.state {
            let what = FlowEventKind::StateChanged { from: was.state, to: is.state, reason: is.reason };
            self.events.push(FlowEvent { at, what });
        }
        if was.rate != is.rate {
            self.events.push(FlowEvent { at, what: FlowEventKind::RateChanged { rate: is.rate, reason: is.reason } });
        }
        self.last_status = is;
    }
}

#[cfg(test)]
mod tests;
