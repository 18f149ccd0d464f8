//! A flow: ledger, RTT, loss detection, caps and circuit breaker around one controller. This is
//! what drivers talk to; the contract is in the crate's documentation.
//!
//! Each part of a flow is a file of [`flow/`](self) with state of its own, which tells what came of a call; only [`Flow`]
//! sees all parts, and the controller.

mod feedback;
mod limits;
mod measured;
mod params;
mod quick_start;
mod receiver_reports;
mod silence;
mod tcp;
mod timers;
mod window;

pub use params::{FlowParams, Permit, Transmit};

use crate::account::Account;
use crate::account::counters::FlowCounters;
use crate::account::log::{FlowEvent, FlowEventKind, Log};
use crate::account::round_trip::{LEAST_RTT, RoundTrip};
use crate::account::watch::Watch;
use crate::breaker::StopReason;
use crate::controller::{Controller, LossPolicy, SendPoll};
use crate::facts::{Sent, Status};
use crate::feedback::Form;
use crate::ledger::Ledger;
use crate::quick_start::{QsCounters, QsVerdict};
use crate::registry::Safety;
use crate::rtt::{RttEstimator, RttParams};
use crate::scheme::tfrc::initial_window;
use crate::stall::Promise;
use fairpace_units::{Bytes, Class, Duration, Ecn, Instant, Kind, QsOption, RandomStream, Rate, Via};
use limits::Limits;
use measured::Measured;
use quick_start::QuickStart;
use receiver_reports::ReceiverReports;
use silence::Silence;
use window::Window;

/// The sender half of a flow.
#[derive(Debug)]
pub struct Flow {
    controller: Box<dyn Controller>,
    policy: LossPolicy,
    packet_size: Bytes,
    data_class: Class,
    form: Form,
    account: Account,
    limits: Limits,
    /// [`FlowParams::lead`]; zero for schemes that space packets by a rule of their own.
    lead: Duration,
    measured: Measured,
    receiver_reports: ReceiverReports,
    window: Window,
    /// `None`: the flow does not give way, or follows its paper alone.
    silence: Option<Silence>,
    quick_start: QuickStart,
    skip: Option<(u32, RandomStream)>,
    tcp_acked: Bytes,
    demand: Option<Rate>,
    /// The rate that the breaker will bear, less a margin; `None` while nothing is lost.
    headroom: Option<Rate>,
    /// Whether the flow would send more than that.
    held: bool,
    started: bool,
    now: Instant,
    promise: Promise,
}

impl Flow {
    /// A flow that has not begun.
    pub fn new(controller: Box<dyn Controller>, params: FlowParams) -> Flow {
        let mut policy = controller.loss_policy();
        if params.safety == Safety::Paper {
            policy.rtt = RttParams { floor: LEAST_RTT, confirmations: 0, ..policy.rtt };
        }
        // A receiver that measures may hide its losses: whether such a flow gives way is the receiver's word.
        let gives_way = controller.is_responsive() && controller.feedback_form() != Form::RtpTfrc;
        let ledger = |first| Ledger::new(first, params.history, policy.dup_threshold);
        Flow {
            account: Account {
                data: ledger(params.first_seq[0]),
                dummy: ledger(params.first_seq[1]),
                round_trip: RoundTrip::new(policy.rtt, policy.rto, params.max_ack_delay),
                watch: Watch::new(params.breaker, controller.report_interval(), gives_way),
                counters: FlowCounters::default(),
                log: Log::new(params.trace, controller.status()),
                last_ack: Instant::ZERO,
                stopped: None,
            },
            limits: Limits::new(&params, controller.may_leave_early()),
            lead: if controller.may_leave_early() { params.lead } else { Duration::ZERO },
            measured: Measured::new(params.bursty_path, controller.receiver_params().reports_as_ns2),
            receiver_reports: ReceiverReports::default(),
            window: Window::default(),
            silence: (params.safety == Safety::Default && controller.is_responsive())
                .then(|| Silence::new(params.packet_size, params.max_ack_delay, controller.report_interval())),
            quick_start: QuickStart::new(params.quick_start),
            skip: params.skip.map(|(every, seed)| (every.max(2), RandomStream::named(seed, "flow.skip"))),
            tcp_acked: Bytes::ZERO,
            demand: None,
            headroom: None,
            held: false,
            started: false,
            now: Instant::ZERO,
            promise: Promise::default(),
            packet_size: params.packet_size,
            data_class: params.data_class,
            form: controller.feedback_form(),
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
            self.account.round_trip.learn(rtt);
        }
        self.account.watch.start(now);
        self.controller.start(now, srtt.map(|rtt| rtt.max(LEAST_RTT)));
        self.account.watch.note_via(now, Via::Udp, self.controller.via());
        self.note(now);
    }

    /// The receiver has answered a question that left since the last packets did: it is there, and packets get through, but
    /// none of the flow's is told of. The circuit breaker goes on waiting for news while few packets went unanswered.
    pub fn on_echo(&mut self, now: Instant) {
        let now = self.advance(now);
        if self.is_running() {
            self.account.watch.on_echo(now);
        }
    }

    /// The driver was away, with its machine asleep, for so long that the path may be another. The receiver has answered since, with a
    /// round trip of `rtt`. A flow that gives way begins again at RFC 5348's initial rate, and may double it with each round trip up to
    /// where it was, as TCP does after an idle time [RFC 5681 §4.1].
    pub fn on_sleep(&mut self, now: Instant, rtt: Duration) {
        let now = self.advance(now);
        if !self.is_running() {
            return;
        }
        self.account.round_trip.learn(rtt);
        let initial = Rate::bps(8.0 * initial_window(self.packet_size.as_f64()) / rtt.max(LEAST_RTT).as_secs_f64());
        if let Some(silence) = &mut self.silence
            && let Some(cap) = silence.on_sleep(now, self.controller.status().rate, initial)
        {
            self.limits.quiet(now, Some(cap));
            self.account.log.event(now, FlowEventKind::Unheard { rate: cap });
        }
        self.note(now);
    }

    /// The packet of `permit` has left with `size` bytes.
    pub fn on_sent(&mut self, now: Instant, permit: Permit, size: Bytes) {
        let now = self.advance(now);
        let ledger = match permit.kind {
            Kind::Data => &mut self.account.data,
            Kind::Dummy => &mut self.account.dummy,
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
        let c = self.account.counters.of(permit.kind);
        c.sent += 1;
        c.sent_bytes += size;
        c.lost += u64::from(forgotten && self.form != Form::Reports);
        self.limit(now, permit, size);
        self.controller.on_sent(now, &Sent { kind: permit.kind, class: permit.class, seq, size });
        if let Some(option) = permit.quick_start {
            self.on_option_sent(now, option, false);
        }
        self.note(now);
    }

    /// The caps and the breaker count a packet that has left.
    #[inline]
    fn limit(&mut self, now: Instant, permit: Permit, size: Bytes) {
        self.limits.on_sent(now, size, permit.via);
        self.account.watch.on_sent(now, size, permit.kind, permit.via);
        if let Some(silence) = &mut self.silence
            && permit.via == Via::Udp
        {
            silence.on_sent(now, self.account.round_trip.srtt(), || self.controller.status().rate);
        }
    }

    /// Something new is heard of what was sent.
    #[inline]
    fn heard(&mut self, now: Instant) {
        if let Some(cap) = self.silence.as_mut().and_then(|s| s.on_news(now, self.account.round_trip.srtt())) {
            self.limits.quiet(now, cap);
            if cap.is_none() {
                self.account.log.event(now, FlowEventKind::HeardAgain);
            }
        }
    }

    /// A packet of `size` bytes, for which `permit` was given, has left beside the flow's numbers: data again, under
    /// [`Form::Reports`], where both ends know the packets of the media by these numbers. The packet takes its time as any
    /// other does, and nobody tells of its arrival.
    pub fn on_sent_unnumbered(&mut self, now: Instant, permit: Permit, size: Bytes) {
        let now = self.advance(now);
        debug_assert_eq!((permit.kind, self.form), (Kind::Data, Form::Reports), "the others have numbers for all data");
        let c = self.account.counters.of(permit.kind);
        c.sent += 1;
        c.sent_bytes += size;
        self.limit(now, permit, size);
        self.controller.on_sent_unnumbered(now, size);
        self.note(now);
    }

    /// The Quick-Start option of a permit has left on a packet of its own, which the receiver answers
    /// ([`Flow::on_quick_start_echo`]), and not on the data packet: that one was handed in with a permit without it.
    pub fn on_quick_start_sent(&mut self, now: Instant, option: QsOption) {
        let now = self.advance(now);
        self.on_option_sent(now, option, true);
    }

    fn on_option_sent(&mut self, now: Instant, option: QsOption, apart: bool) {
        let losses = self.losses();
        if self.quick_start.on_sent(now, option, self.account.round_trip.srtt(), losses, apart) {
            self.account.log.event(now, FlowEventKind::QuickStartAsked { rate: option.rate });
            if let Some(hooks) = self.controller.quick_start() {
                hooks.on_asked(now);
            }
        }
    }

    /// The loss rate that is known, and how much data was lost.
    fn losses(&self) -> quick_start::Losses {
        (self.controller.status().p.unwrap_or(0.0), self.account.counters.data.lost)
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

    /// The action to take now. Runs the timers that are due first. Asking twice at the same instant gives the same
    /// answer.
    pub fn poll(&mut self, now: Instant, has_data: bool) -> Transmit {
        let now = self.advance(now);
        self.run_timers(now);
        if let Some(reason) = self.account.stopped {
            return Transmit::Stopped(reason);
        }
        if self.started && self.via() == Via::Tcp && self.controller.poll_send(now, false) == SendPoll::WaitForFeedback
        {
            // TCP is being drained.
            self.account.watch.await_tcp(now);
        }
        let timer = self.next_timer();
        let answer = if !self.started {
            Transmit::WaitForFeedback(Instant::NEVER)
        } else {
            let soon = self.limits.horizon(now);
            let (wanted, in_time) = match self.controller.poll_send(now, has_data) {
                SendPoll::Wait(at) if at <= soon => (self.controller.poll_send(soon, has_data), false),
                SendPoll::Wait(at) if has_data => (self.ask_ahead(now, at), false),
                wanted => (wanted, true),
            };
            match wanted {
                SendPoll::Send(kind) => match self.limits.permit(now, in_time) {
                    Ok(()) => Transmit::Send(self.permit(kind)),
                    Err(free) => {
                        self.account.counters.kept_back = self.limits.kept_back();
                        Transmit::WaitUntil(self.limits.wait(now, free, timer))
                    }
                },
                SendPoll::Wait(at) => Transmit::WaitUntil(self.limits.wait(now, at, timer)),
                SendPoll::WaitForData => {
                    self.account.watch.on_idle(now);
                    Transmit::WaitForData(timer)
                }
                SendPoll::WaitForFeedback => Transmit::WaitForFeedback(timer),
            }
        };
        self.promise.set(match answer {
            Transmit::WaitUntil(t) | Transmit::WaitForData(t) | Transmit::WaitForFeedback(t) => {
                debug_assert!(t > now, "waiting for what is past: {answer:?} at {now:?}");
                t
            }
            Transmit::Send(_) | Transmit::Stopped(_) => now,
        });
        answer
    }

    /// Data waits until `at` or longer, and may lead its schedule: [`FlowParams::lead`].
    fn ask_ahead(&mut self, now: Instant, at: Instant) -> SendPoll {
        let lead = self.lead.min(self.rtt().min().unwrap_or_default());
        if lead.is_zero() {
            return SendPoll::Wait(at);
        }
        match self.controller.poll_send(now + lead, true) {
            data @ SendPoll::Send(Kind::Data) => data,
            // A dummy, or data that is due later.
            _ if at <= now + lead => SendPoll::Wait(at),
            _ => SendPoll::Wait(at - lead),
        }
    }

    fn permit(&mut self, kind: Kind) -> Permit {
        let ecn = if self.controller.heeds_ecn() { Ecn::Ect0 } else { Ecn::NotEct };
        match kind {
            Kind::Data => {
                let limit = |params: &_| self.controller.quick_start()?.limit(params);
                let quick_start = self.quick_start.option(self.now, self.account.round_trip.srtt(), limit);
                let via = self.controller.via();
                Permit { kind, class: self.data_class, seq: self.account.data.next_seq(), ecn, quick_start, via }
            }
            Kind::Dummy => {
                let seq = self.account.dummy.next_seq();
                Permit { kind, class: Class::Low, seq, ecn, quick_start: None, via: Via::Udp }
            }
        }
    }

    /// The rate that the encoder should produce, in wire bytes of data packets.
    pub fn target_rate(&self) -> Rate {
        let mut rate = self.controller.target_rate();
        if let Some(demand) = self.demand {
            rate = rate.min(demand);
        }
        if let Some(cap) = self.limits.cap() {
            rate = rate.min(cap);
        }
        rate
    }

    /// Whether the controller lowers its rate when the path is full.
    pub fn is_responsive(&self) -> bool {
        self.controller.is_responsive()
    }

    /// The controller's state, its rate, and why either last changed.
    pub fn status(&self) -> Status {
        self.controller.status()
    }

    /// Smoothed RTT.
    pub fn srtt(&self) -> Option<Duration> {
        self.account.round_trip.srtt()
    }

    /// The RTT estimator.
    pub fn rtt(&self) -> &RttEstimator {
        self.account.round_trip.estimator()
    }

    /// The timeout in force, back-off included.
    pub fn rto(&self) -> Duration {
        self.account.round_trip.rto()
    }

    /// Data packets neither acknowledged nor declared lost, and their bytes.
    pub fn flight(&self) -> (usize, Bytes) {
        (self.account.data.outstanding(), self.account.data.in_flight())
    }

    /// Why the flow was stopped, if it was.
    pub fn stopped(&self) -> Option<StopReason> {
        self.account.stopped
    }

    /// The counts of packets sent, acknowledged, lost and ignored so far.
    pub fn counters(&self) -> &FlowCounters {
        &self.account.counters
    }

    /// The fate of Quick-Start requests; `None` if the flow sends none.
    pub fn quick_start(&self) -> Option<&QsCounters> {
        self.quick_start.counters()
    }

    /// The newest verdict on a Quick-Start request, once.
    pub const fn take_quick_start_verdict(&mut self) -> Option<QsVerdict> {
        self.quick_start.take_verdict()
    }

    /// The form of feedback that this flow takes.
    pub const fn form(&self) -> Form {
        self.form
    }

    /// The controller itself.
    pub fn controller(&self) -> &dyn Controller {
        &*self.controller
    }

    /// The size of a full packet: what dummies are padded to.
    pub fn packet_size(&self) -> Bytes {
        self.packet_size
    }

    /// The events since the last call; empty unless [`FlowParams::trace`].
    pub fn drain_events(&mut self) -> std::vec::Drain<'_, FlowEvent> {
        self.account.log.drain()
    }

    // --- inside ----------------------------------------------------------------------------------

    #[inline]
    const fn is_running(&self) -> bool {
        self.started && self.account.stopped.is_none()
    }

    /// Time never goes back, and a driver that slept too long is noticed.
    #[inline]
    fn advance(&mut self, now: Instant) -> Instant {
        let now = now.max(self.now);
        self.now = now;
        if let Some(late) = self.promise.stall(now) {
            self.account.counters.stalls += 1;
            // No feedback could be heard, so the breaker's clock stood still.
            self.account.watch.on_stall(late);
            self.account.round_trip.on_stall(now);
        }
        now
    }

    /// Notes what the last call to the controller changed.
    #[inline]
    fn note(&mut self, at: Instant) {
        self.account.log.note(at, || self.controller.status());
    }
}

#[cfg(test)]
mod tests;
