//! TFRC: what TCP would send at this loss event rate and RTT, and no sawtooth; and its small-packet
//! variant, TFRC-SP.
//!
//! Source: RFC 5348 (RFC 3448 where `rfc = 3448`), RFC 4828 for TFRC-SP (its coarse timers: RFC 5622 §5). Read first: RFC 5348 §4.3,
//! §4.4. X and what changes it: `tfrc/sender.rs`. p: `tfrc/history.rs`. The receiver that measures:
//! `tfrc/receiver.rs`. A start at a rate that the routers approve of [RFC 5634 §3.2]: `quick_start.rs`. Here:
//! pacing, what is data-limited, and the measuring by the sender. The tests of each line of the RFCs are listed in
//! `docs/rfc/5348.md`, `docs/rfc/4828.md`, `docs/rfc/5634.md`.
//!
//! ```text
//!            first RTT:                      a loss:                 a loss, a report:
//!            X = W_init/R                    p > 0                   X = min(X_Bps(p, R), limit)
//!  Waiting -----------------> SlowStart --------------> Avoidance -----.
//!  X = s/1 s                  X = min(2X, limit) once     ^            |
//!                             per R                       '------------'
//!
//!  limit = 2 max(X_recv_set); no report for max(4R, 2s/X): X/2
//! ```
//!
//! # Symbols
//!
//! | RFC | here | unit | set |
//! | --- | --- | --- | --- |
//! | X, X_Bps, X_inst | `Sender::x`, `x_bps`, `x_inst` | byte/s | each report, each expiry |
//! | R, R_sample, R_sqmean | `Sender::r`, `Feedback::r_sample`, `Sender::r_sqmean` | s | each report |
//! | p | `Sender::p` | – | each report |
//! | X_recv, X_recv_set | `Feedback::x_recv`, `sender::RecvSet` | byte/s | each report |
//! | recv_limit, timer_limit | locals of `Sender` | byte/s | |
//! | s | `Sender::s`: mean of `Sizes`; 1,460 bytes in TFRC-SP | bytes | each report |
//! | N, H | mean of `Sizes`, `header` | bytes | each report; parameter |
//! | t_RTO | 4R, in the equation; `t_rto()` with `t_rto = tcp` | s | each report |
//! | RTO, no-feedback timer | `Sender::timer`, `no_feedback` | s | each report, each expiry |
//! | tld | `Sender::tld` | – | X doubled |
//! | NotLimited1, NotLimited2 | `Held` | – | each packet |
//! | t_ipi, t_gran, t_delta | the gap given to `Pacer::sent`, parameter, `t_delta()` | s | each packet |
//!
//! # Readings
//!
//! - **Who measures.** By default the sender [RFC 5348 §7]: losses, and which of them are one event, by
//!   its own numbers and *departure* times; X_recv by its own clock as what is newly acknowledged per
//!   time. The sender reports to itself with the first ACKs that come R after the last report, and at once on a new
//!   loss event, after all ACKs of the same instant: feedback that comes in bundles would else look like a trickle
//!   and a flood by turns. R_sample is the last ACK's.
//! - **Data-limited** is only who had nothing to send when a packet was due. A demand, the flow's limits
//!   or what the circuit breaker bears (`Breaker::bearable`) hold the rate below X too, but then it is
//!   they that are full: a loss must not cost such a flow another 15 %.
//! - §8.2.1 is followed in what it says, not in its two variables, which forget what the second of two
//!   reports within an RTT covers (a loss is reported at once) and call a full sender data-limited. And a
//!   packet that had to wait for its data is no sign of being held back by X: with it as one, the first
//!   report after a pause would cut X to that packet per RTT.
//! - The initial rate, and so the recover_rate, follows R: W_init per RTT whatever the first sample was.
//! - The RTT from the challenge starts slow start as a first report would (§4.2).
//! - In slow start a report that comes a little before `tld + R`, because R just grew, is followed by
//!   one from `tld + R` on: X doubles once per R, not once per two.
//! - Quick-Start: while an approved rate is in use reports change R, p and X_recv_set, and not X. X is then set by
//!   the next report, as if never doubled.
//! - TFRC-SP: N/(N+H) multiplies what the equation and W_init give, not X_recv, which counts data only.
//!
//! # Deviations
//!
//! - **An outage is one loss event** (`outage`): of packets sent while the no-feedback timer expired, X
//!   halved each time, the last leave more than an R apart, and each would be an event of its own. Eight
//!   seconds of nothing left p = 0.67 and, ten seconds later, one packet in 4 s instead of 112 in one. TCP
//!   takes a timeout for one event too. Only where the sender measures: a receiver follows §5.2.
//! - Where the receiver gathers ACKs (every 20 ms on a real path), what it holds them back at most is added to
//!   the no-feedback timer: over 1 ms the timer of 4R would expire between any two bundles.
//! - X stays within the flow's limits, which the RFC does not have; s / t_mbi is its own.
//! - At an RTT below 5 ms a late driver may make up for 5 ms, not one RTT (`pacer.rs` says why); at any
//!   RTT for no more than 25 ms, and for none of the time in which there was nothing to send.
//! - With TFRC-SP a late driver makes up for nothing, unless `t_gran` says that it is coarse.
//!
//! # Not implemented
//!
//! Faster Restart, a variable NDUPACK, TFRC-PS (changing the packets' size instead of their
//! number).

mod coarse;
pub mod history;
pub mod params;
pub mod receiver;
mod sender;

use crate::controller::{Controller, LossPolicy, QuickStartHooks, SendPoll, TimeoutRule};
use crate::facts::{Acked, Loss, Sent, Status};
use crate::feedback::{Form, RateReport, ReceiverParams};
use crate::meter::Meter;
use crate::pacer::{Pacer, seconds};
use crate::param::ParamError;
use crate::quick_start::{QsEnd, QuickStart, QuickStartParams, send_rate};
use crate::registry::{Env, SchemeInfo, Settings};
use crate::rtt::RttEstimator;
use coarse::CoarseTimer;
use core::ops::RangeInclusive;
use fairpace_units::{Bytes, Duration, Ecn, Instant, Kind, QsRate, Rate};
use history::{HistoryParams, LossEvents};
pub use params::TfrcParams;
pub use sender::Rfc;
pub(crate) use sender::initial_window;
use sender::{Feedback, Sender, SenderParams};

/// The registry's entry of TFRC.
pub const INFO: SchemeInfo = SchemeInfo {
    name: "tfrc",
    title: "TFRC: TCP-friendly rate control",
    source: "RFC 5348, RFC 3448",
    make: |settings, env| Ok(Box::new(Tfrc::new(settings, env)?)),
    params: params::PARAMS,
};

/// The registry's entry of TFRC-SP.
pub const INFO_SP: SchemeInfo = SchemeInfo {
    name: "tfrc-sp",
    title: "TFRC-SP: TFRC for small packets",
    source: "RFC 4828",
    make: |settings, env| Ok(Box::new(Tfrc::new(settings, env)?)),
    params: params::PARAMS_SP,
};

/// s of TFRC-SP [RFC 4828 §3].
const SP_SEGMENT: f64 = 1_460.0;
/// The least time between packets of TFRC-SP [RFC 4828 §3].
const SP_GAP: Duration = Duration::from_millis(10);
/// In such a time a coarse timer may let three leave [RFC 5622 §5].
const SP_WINDOW: Duration = Duration::from_millis(30);
/// Loss intervals over which the mean size of packets goes, besides the open one [RFC 5348 §4.1].
const SIZE_INTERVALS: usize = 4;

/// TFRC's sender.
#[derive(Clone, Debug)]
pub struct Tfrc {
    params: TfrcParams,
    packet_size: Bytes,
    /// The flow's limits, and what the application wants, bytes per second.
    min: f64,
    max: f64,
    demand: f64,
    sender: Sender,
    /// `None`: t_RTO is 4R.
    coarse: Option<CoarseTimer>,
    sizes: Sizes,
    pacer: Pacer,
    /// The rate at which packets are paced, bytes per second, and the least of it that who is above asks for.
    pace: f64,
    at_least: f64,
    last_size: f64,
    /// When the last three packets left, newest first; for TFRC-SP.
    departures: [Option<Instant>; 3],
    held: Held,
    /// Since when a packet has been due without there being one.
    starved: Option<Instant>,
    /// When the no-feedback timer expires, and whether a packet left since it was set.
    no_feedback: Instant,
    sent_since: bool,
    measured: Measured,
    state: State,
    /// When `no_feedback` or the stage of Quick-Start expires, whichever is earlier.
    timer: Instant,
    quick_start_use: QuickStartUse,
    /// From when to when the last Quick-Start packets left.
    quick_start_packets: Option<RangeInclusive<Instant>>,
}

/// The picture above, and Quick-Start, which may take the place of any of its states.
#[derive(Clone, Copy, Debug)]
enum State {
    /// No RTT is known.
    Waiting,
    /// No loss event so far, or none that is still one: p = 0.
    SlowStart,
    /// X goes by the equation: p > 0.
    Avoidance,
    /// A rate that the routers approved of is in use; no report changes it.
    QuickStart(QuickStart),
}

impl State {
    /// As in events and series.
    fn name(&self) -> &'static str {
        match self {
            State::Waiting => "Waiting",
            State::SlowStart => "SlowStart",
            State::Avoidance => "Avoidance",
            State::QuickStart(q) => q.state(),
        }
    }
}

/// Whether a Quick-Start request would be of use, and what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum QuickStartUse {
    /// At the start, and back from an idle time: yes.
    Wanted,
    /// Not now.
    Settled,
    /// One is on its way and nothing else may be sent before feedback (`qs_wait`).
    Awaited,
    /// Something was lost at an approved rate, or marked: never again [RFC 4782 §4.6].
    Spoilt,
}

/// The measurements that the sender makes in place of a receiver.
#[derive(Clone, Debug)]
struct Measured {
    events: LossEvents,
    /// The data acknowledged, for X_recv.
    acked: Meter,
    /// X_target of [RFC 5348 §6.3.1]: the highest X_recv so far, bytes per second.
    most: f64,
    /// t_recvdata: when the latest packet acknowledged left.
    latest: Instant,
    /// The longest that ACKs were gathered before they were sent.
    held_back: Duration,
    /// From when on an ACK calls for the next report.
    due: Instant,
    /// A report is called for since then: it is made when all that came with it is counted.
    wanted_at: Instant,
    /// A loss event has begun since the last report.
    new_event: bool,
    /// The interval before the first loss event is given.
    seeded: bool,
    /// The first packet's number, and whether it was in the first loss event.
    first: Option<u64>,
    lost_first: bool,
    outage: Outage,
}

/// A time without feedback in which the no-feedback timer expired, by departures.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Outage {
    /// There was none yet.
    None,
    /// Nothing that left after `from` was acknowledged so far.
    Since { from: Instant },
    /// All data that left between these two was lost.
    Over { from: Instant, until: Instant },
}

impl Measured {
    fn note_loss(&mut self, now: Instant, seq: u64, new_event: bool) {
        if new_event {
            self.lost_first |= !self.seeded && self.first == Some(seq);
            self.new_event = true;
            self.wanted_at = now;
        }
    }
}

impl Tfrc {
    /// Reads the settings.
    ///
    /// # Errors
    /// [`ParamError`] names the field, what was found and what is allowed.
    pub fn new(settings: &Settings<'_>, env: &Env) -> Result<Tfrc, ParamError> {
        let params = TfrcParams::new(settings)?;
        let bytes_per_s = |rate: Rate| rate.as_bps() / 8.0;
        let small = params.small_packets.is_some();
        let mss = if small { SP_SEGMENT } else { env.packet_size.as_f64() };
        let (min, max) = (bytes_per_s(env.min_rate), bytes_per_s(env.max_rate));
        let TfrcParams { rfc, equation, smoothing, first_timer, rfc3390_window, ns2_increase, ns2_reports, .. } =
            params;
        let sender = SenderParams {
            rfc,
            equation,
            smoothing,
            first_timer,
            rfc3390_window,
            ns2_increase,
            ns2_reports,
            mss,
            min,
            max,
        };
        let mut sender = Sender::new(sender, mss);
        if params.first_packet {
            sender.begin_at(env.packet_size.as_f64());
        }
        if params.qs_received {
            sender.lower_to_received();
        }
        let mut tfrc = Tfrc {
            packet_size: env.packet_size,
            min,
            max,
            demand: f64::INFINITY,
            sender,
            coarse: params.tcp_timeout.then(CoarseTimer::default),
            sizes: Sizes::default(),
            pacer: Pacer::starting(Instant::NEVER),
            pace: min,
            at_least: 0.0,
            last_size: 0.0,
            departures: [None; 3],
            held: Held::default(),
            starved: None,
            no_feedback: Instant::NEVER,
            sent_since: false,
            measured: Measured {
                events: LossEvents::new(&HistoryParams { discounting: params.discounting, short_packets: small }),
                acked: Meter::starting(Instant::ZERO),
                most: 0.0,
                latest: Instant::ZERO,
                held_back: Duration::ZERO,
                due: Instant::NEVER,
                wanted_at: Instant::NEVER,
                new_event: false,
                seeded: false,
                first: None,
                lost_first: false,
                outage: Outage::None,
            },
            state: State::Waiting,
            timer: Instant::NEVER,
            quick_start_use: QuickStartUse::Wanted,
            quick_start_packets: None,
            params,
        };
        tfrc.set_pace();
        Ok(tfrc)
    }

    /// X, the allowed rate before oscillation reduction.
    pub fn x(&self) -> Rate {
        Rate::bps(self.sender.x() * 8.0)
    }

    /// R; `None` before the first RTT.
    pub fn rtt(&self) -> Option<Duration> {
        self.sender.rtt()
    }

    /// Packets are paced at `least` or X, whichever is more, bytes per second: X itself stays what it is.
    pub(super) fn pace_at_least(&mut self, least: f64) {
        self.at_least = least;
        self.set_pace();
    }

    /// The no-feedback timer expires, with the next [`Controller::on_timer`].
    pub(super) fn is_silent(&self, now: Instant) -> bool {
        self.measured.wanted_at > now && self.no_feedback <= now
    }

    // --- states ----------------------------------------------------------------------------------

    /// The one place where the state changes.
    fn enter(&mut self, state: State) {
        use State::{Avoidance, QuickStart, SlowStart, Waiting};
        let legal = match (&self.state, &state) {
            // The first report may tell of a loss already.
            (Waiting, SlowStart | Avoidance | QuickStart(_)) => true,
            // A loss event that was none, because its packets came after all, leads back.
            (SlowStart | Avoidance | QuickStart(_), SlowStart | Avoidance | QuickStart(_)) => true,
            (_, Waiting) => false,
        };
        assert!(legal, "TFRC may not go from {} to {}: an RTT once known stays", self.state.name(), state.name());
        self.state = state;
    }

    /// The state in which reports set X, as R and p are.
    fn state_by_rtt_and_p(&self) -> State {
        match (self.sender.rtt(), self.sender.p()) {
            (None, _) => State::Waiting,
            (Some(_), p) if p > 0.0 => State::Avoidance,
            (Some(_), _) => State::SlowStart,
        }
    }

    /// The approved rate is no longer in use.
    fn end_quick_start(&mut self) {
        self.sender.end_quick_start();
        self.enter(self.state_by_rtt_and_p());
    }

    // --- reports ---------------------------------------------------------------------------------

    /// A report of either kind, on what left until `departure`.
    fn on_feedback(&mut self, now: Instant, f: &Feedback, departure: Instant) {
        if f.new_loss {
            self.sizes.next_interval();
        }
        let mean = self.mean_size();
        match self.params.small_packets {
            None => self.sender.set_segment(mean, 1.0),
            Some(header) => self.sender.set_segment(SP_SEGMENT, mean / (mean + header)),
        }
        if self.quick_start_use != QuickStartUse::Spoilt {
            self.quick_start_use = QuickStartUse::Settled;
        }
        if let State::QuickStart(q) = &mut self.state {
            // A loss ends it at once, and for good [RFC 5634 §3.2.5] [RFC 4782 §4.6].
            if f.new_loss {
                self.quick_start_use = QuickStartUse::Spoilt;
            }
            if f.new_loss || q.on_feedback(now, departure) {
                self.end_quick_start();
            }
        }
        self.sender.on_feedback(now, f);
        if !matches!(self.state, State::QuickStart(_)) {
            self.enter(self.state_by_rtt_and_p());
        }
        self.restart_timer(now);
        if matches!(self.state, State::SlowStart) {
            self.hasten(now);
        }
    }

    /// In ns-2 the next packet leaves at once, whatever X is; here no sooner than the flow's limits and the application allow.
    fn hasten(&mut self, now: Instant) {
        if !self.params.ns2_pacing {
            return;
        }
        let gap = seconds(self.last_size / self.max.min(self.demand).max(self.min));
        let allowed = self.departures[0].map_or(now, |left| left + gap);
        self.pacer.hasten(now.max(allowed));
    }

    /// N: the mean size of packets, or what it is said to be before the first.
    fn mean_size(&self) -> f64 {
        self.sizes.mean().unwrap_or(self.packet_size.as_f64())
    }

    /// H: TFRC-SP has its own, and counts headers once [RFC 5634 §3.3.3].
    fn header(&self, header: Bytes) -> f64 {
        self.params.small_packets.unwrap_or(header.as_f64())
    }

    /// The time of a stage of Quick-Start is up.
    fn on_quick_start_timer(&mut self, now: Instant) {
        let State::QuickStart(q) = &mut self.state else { return };
        let Some(end) = q.on_timer(now) else { return self.set_timer() };
        let (before, fallback) = (q.before(), q.fallback());
        self.end_quick_start();
        self.set_timer();
        match end {
            QsEnd::Unused => self.sender.fall_back(before, "Quick-Start was not used"),
            QsEnd::TimeUp => self.sender.recompute(),
            QsEnd::NoFeedback => {
                self.sender.fall_back(fallback, "no feedback after Quick-Start");
                self.restart_timer(now);
            }
        }
        self.set_pace();
    }

    fn restart_timer(&mut self, now: Instant) {
        self.no_feedback = now + self.sender.timer() + self.measured.held_back;
        self.sent_since = false;
        self.set_timer();
        self.set_pace();
    }

    fn set_timer(&mut self) {
        self.timer = match &self.state {
            State::QuickStart(q) => self.no_feedback.min(q.next()),
            _ => self.no_feedback,
        };
    }

    /// The sender's report to itself [RFC 5348 §6.2, §7].
    fn report(&mut self, now: Instant, rtt: &RttEstimator) {
        let m = &mut self.measured;
        m.wanted_at = Instant::NEVER;
        let Some(r_sample) = rtt.latest() else { return };
        m.held_back = rtt.ack_delay();
        let r = self.sender.rtt().unwrap_or(r_sample);
        // At least a packet per RTT [§6.2]: after a pause of any length X begins there.
        let one_per_rtt = self.sizes.mean().unwrap_or(0.0) / r.as_secs_f64();
        let x_recv = m.acked.rate(now, r).unwrap_or(0.0).max(one_per_rtt);
        m.most = m.most.max(x_recv);
        m.acked.mark(now, r);
        if !m.seeded && !m.events.is_empty() {
            // The interval before the first event is what the equation needs for the rate so far [§6.3.1].
            let so_far = if m.lost_first { 0.0 } else { m.most };
            m.events.set_first_interval(self.sender.interval_for(so_far, r));
            m.seeded = true;
        }
        let p = m.events.loss_event_rate();
        let new_loss = core::mem::take(&mut m.new_event) || p > self.sender.p();
        let data_limited = self.held.was_data_limited(m.latest, r);
        let t_rto = self.t_rto(r_sample);
        let latest = self.measured.latest;
        self.on_feedback(now, &Feedback { r_sample, t_rto, x_recv, p, new_loss, data_limited }, latest);
        let r = self.sender.rtt().unwrap_or(r_sample);
        self.measured.due = now + r;
        if let (true, Some(tld)) = (p == 0.0, self.sender.last_doubled()) {
            self.measured.due = self.measured.due.min(tld + r);
        }
    }

    /// t_RTO, if it is not 4R [RFC 5348 §3.1].
    fn t_rto(&mut self, r_sample: Duration) -> Option<Duration> {
        Some(self.coarse.as_mut()?.update(r_sample))
    }

    // --- pacing ----------------------------------------------------------------------------------

    /// The rate has changed: so has when the next packet may leave, but in ns-2 when those behind it may.
    fn set_pace(&mut self) {
        self.pace = self.limited(self.sender.x_inst());
        if !self.params.ns2_pacing {
            self.pacer.regap(self.last_size / self.pace);
        }
    }

    /// A pace within what everyone else allows.
    fn limited(&self, pace: f64) -> f64 {
        let mut pace = pace.max(self.at_least).min(self.demand).min(self.max);
        if let State::QuickStart(q) = &self.state {
            pace = pace.min(q.rate());
        }
        if self.params.small_packets.is_some() {
            pace = pace.min(self.packet_size.as_f64() / SP_GAP.as_secs_f64());
        }
        pace.max(self.min)
    }

    /// How early a packet may leave [RFC 5348 §8.3].
    fn t_delta(&self) -> Duration {
        if self.params.t_gran.is_zero() {
            return Duration::ZERO;
        }
        let t_ipi = Duration::from_secs_f64((self.last_size / self.pace).min(1.0));
        t_ipi.min(self.params.t_gran).min(self.sender.rtt().unwrap_or(Duration::ZERO)) / 2
    }

    /// When the next packet may leave.
    fn next(&self) -> Instant {
        let next = self.pacer.next() - self.t_delta();
        match (self.params.small_packets, self.departures) {
            (None, _) => next,
            (Some(_), [.., third]) if self.params.t_gran >= SP_GAP => third.map_or(next, |t| next.max(t + SP_WINDOW)),
            (Some(_), [last, ..]) => last.map_or(next, |t| next.max(t + SP_GAP)),
        }
    }
}

impl Controller for Tfrc {
    fn start(&mut self, now: Instant, srtt: Option<Duration>) {
        self.sender.start(now, srtt);
        if srtt.is_some() {
            self.enter(State::SlowStart);
        }
        self.measured.acked = Meter::starting(now);
        self.measured.due = now + srtt.unwrap_or(Duration::ZERO);
        self.pacer = Pacer::starting(now);
        self.restart_timer(now);
    }

    fn on_sent(&mut self, now: Instant, sent: &Sent) {
        let size = sent.size.as_f64();
        let r = self.sender.rtt().unwrap_or(Duration::ZERO);
        let in_time = self.starved.take().is_none_or(|since| since >= now);
        self.held.on_sent(now, in_time, r);
        self.sizes.add(sent.size);
        self.sent_since = true;
        if let State::QuickStart(q) = &mut self.state {
            q.on_sent(now);
            self.quick_start_packets = q.packets();
            self.set_timer();
        }
        self.last_size = size;
        self.measured.first = self.measured.first.or(Some(sent.seq));
        self.departures = [Some(now), self.departures[0], self.departures[1]];
        let climbing = self.params.ns2_pacing && matches!(self.state, State::SlowStart);
        let pace = if climbing { self.sender.climb() } else { None };
        self.pacer.sent(now, size / pace.map_or(self.pace, |pace| self.limited(pace)), r);
    }

    fn on_ack(&mut self, now: Instant, ack: &Acked, rtt: &RttEstimator) {
        if self.params.receiver_measures || ack.kind != Kind::Data {
            return;
        }
        let r = self.sender.rtt().or(rtt.latest()).unwrap_or(Duration::ZERO);
        let m = &mut self.measured;
        m.acked.add(ack.size.get());
        m.latest = m.latest.max(ack.sent_at);
        if let Outage::Since { from } = m.outage
            && ack.sent_at > from
        {
            m.outage = Outage::Over { from, until: ack.sent_at };
        }
        if self.params.ecn && ack.ecn == Ecn::Ce {
            let new = m.events.on_marked(ack.seq, ack.sent_at, r);
            m.note_loss(now, ack.seq, new);
            if self.quick_start_packets.as_ref().is_some_and(|packets| packets.contains(&ack.sent_at)) {
                self.quick_start_use = QuickStartUse::Spoilt;
            }
        } else if m.events.on_received(ack.seq, ack.sent_at) {
            // A loss event is gone: that is worth a report too [RFC 5348 §6].
            m.wanted_at = now;
        }
        if now >= m.due {
            m.wanted_at = now;
        }
        if let State::QuickStart(q) = &mut self.state {
            if q.on_ack(now, ack.sent_at) {
                m.wanted_at = now;
            }
            self.set_timer();
        }
    }

    fn on_loss(&mut self, now: Instant, loss: &Loss, rtt: &RttEstimator) {
        if !self.params.receiver_measures {
            let mut r = self.sender.rtt().or(rtt.latest()).unwrap_or(Duration::ZERO);
            if let Outage::Over { from, until } = self.measured.outage
                && loss.sent_at > from
            {
                // The event that begins here lasts as long as the outage.
                r = r.max(until.since(loss.sent_at));
            }
            let new = self.measured.events.on_lost(loss.seq, loss.sent_at, r);
            self.measured.note_loss(now, loss.seq, new);
            if self.quick_start_packets.as_ref().is_some_and(|packets| packets.contains(&loss.sent_at)) {
                self.quick_start_use = QuickStartUse::Spoilt;
            }
        }
    }

    fn on_report(&mut self, now: Instant, report: &RateReport, rtt: &RttEstimator) {
        let Some(r_sample) = rtt.latest() else { return };
        let r = self.sender.rtt().unwrap_or(r_sample);
        let data_limited = self.held.was_data_limited(report.echoed, r);
        let (p, x_recv) = (report.loss_event_rate, report.received_rate.as_bps() / 8.0);
        let new_loss = p > self.sender.p();
        let t_rto = self.t_rto(r_sample);
        self.on_feedback(now, &Feedback { r_sample, t_rto, x_recv, p, new_loss, data_limited }, report.echoed);
    }

    fn on_timeout(&mut self, _now: Instant, _rtt: &RttEstimator) {}

    fn on_timer(&mut self, now: Instant, rtt: &RttEstimator) {
        if self.measured.wanted_at <= now {
            self.report(now, rtt);
        } else if matches!(&self.state, State::QuickStart(q) if q.next() <= now) {
            self.on_quick_start_timer(now);
        } else if self.no_feedback <= now {
            if let State::QuickStart(q) = self.state {
                self.end_quick_start();
                self.sender.fall_back(q.fallback(), "no feedback after Quick-Start");
            }
            if self.quick_start_use == QuickStartUse::Awaited {
                self.quick_start_use = QuickStartUse::Settled;
            } else if !self.sent_since && self.quick_start_use == QuickStartUse::Settled {
                self.quick_start_use = QuickStartUse::Wanted;
            }
            let m = &mut self.measured;
            if self.params.outage_is_one_event && self.sent_since && !matches!(m.outage, Outage::Since { .. }) {
                m.outage = Outage::Since { from: m.latest };
            }
            self.sender.on_timer(now, !self.sent_since);
            self.restart_timer(now);
            self.hasten(now);
        }
    }

    fn set_demand(&mut self, _now: Instant, max: Option<Rate>) {
        self.demand = max.map_or(f64::INFINITY, |rate| rate.as_bps() / 8.0);
        self.set_pace();
    }

    fn feedback_form(&self) -> Form {
        if self.params.receiver_measures { Form::RtpTfrc } else { Form::Ccfb }
    }

    fn receiver_params(&self) -> ReceiverParams {
        let TfrcParams { equation, discounting, small_packets, losses_as_ns2, ns2_reports, .. } = self.params;
        ReceiverParams { equation, discounting, small_packets, as_ns2: losses_as_ns2, reports_as_ns2: ns2_reports }
    }

    fn heeds_ecn(&self) -> bool {
        self.params.ecn
    }

    fn quick_start(&mut self) -> Option<&mut dyn QuickStartHooks> {
        Some(self)
    }

    /// TFRC-SP's 10 ms between two packets are a MUST [RFC 4828 §3].
    fn may_leave_early(&self) -> bool {
        self.params.small_packets.is_none()
    }

    fn poll_send(&mut self, now: Instant, has_data: bool) -> SendPoll {
        let next = self.next();
        if next > now {
            SendPoll::Wait(next)
        } else if self.quick_start_use == QuickStartUse::Awaited {
            self.pacer.starve();
            SendPoll::WaitForFeedback
        } else if has_data {
            SendPoll::Send(Kind::Data)
        } else {
            self.starved.get_or_insert(now);
            self.pacer.starve();
            SendPoll::WaitForData
        }
    }

    fn poll_timer(&self) -> Instant {
        self.timer.min(self.measured.wanted_at)
    }

    fn target_rate(&self) -> Rate {
        Rate::bps(self.pace * 8.0)
    }

    fn status(&self) -> Status {
        let (state, p) = (self.state.name(), self.sender.p());
        Status { state, rate: self.target_rate(), reason: self.sender.reason, p: Some(p) }
    }

    fn loss_policy(&self) -> LossPolicy {
        let mut policy = LossPolicy { timeout: TimeoutRule::Never, ..LossPolicy::default() };
        if self.params.receiver_measures {
            // One sample per report: what `Flow` calls SRTT, and packets carry, is R.
            policy.rtt.alpha = 0.1;
        }
        policy
    }
}

impl QuickStartHooks for Tfrc {
    /// The rate of TFRC if nothing but losses limited it [RFC 5634 §3.2.1], or 100 packets per second for TFRC-SP
    /// [RFC 5634 §3.3.1].
    fn limit(&self, params: &QuickStartParams) -> Option<Rate> {
        if self.quick_start_use != QuickStartUse::Wanted || matches!(self.state, State::QuickStart(_)) {
            return None;
        }
        let (size, header) = (self.mean_size(), self.header(params.header));
        let gross = (size + header) / size;
        let mut limit = if self.sender.p() > 0.0 { self.sender.x_bps() * gross } else { f64::INFINITY };
        if self.params.small_packets.is_some() {
            limit = limit.min((size + header) / SP_GAP.as_secs_f64());
        }
        let limit = if limit.is_finite() { Rate::bps(limit * 8.0) } else { Rate::MAX };
        let rate = QsRate::at_most(limit).min(params.rate);
        (send_rate(rate, size, header).min(self.max) > self.sender.x()).then_some(limit)
    }

    fn on_asked(&mut self, _now: Instant) {
        self.quick_start_use = if self.params.qs_wait { QuickStartUse::Awaited } else { QuickStartUse::Settled };
    }

    fn on_approved(&mut self, now: Instant, rate: QsRate, header: Bytes, rtt: Duration) {
        let rate = send_rate(rate, self.mean_size(), self.header(header)).min(self.max);
        let before = self.sender.x();
        if self.quick_start_use == QuickStartUse::Awaited {
            self.quick_start_use = QuickStartUse::Settled;
        }
        if rate > before {
            let rtt = self.sender.rtt().unwrap_or(rtt);
            self.enter(State::QuickStart(QuickStart::begin(now, rate, before, rtt, self.params.qs_validation)));
            self.sender.quick_start(now, rate, rtt);
            self.restart_timer(now);
        }
    }
}

/// The mean size of packets over the open loss interval and the last four [RFC 5348 §4.1].
#[derive(Clone, Debug, Default)]
struct Sizes {
    /// Bytes and packets sent, newest interval first.
    intervals: [(u64, u64); SIZE_INTERVALS + 1],
}

impl Sizes {
    fn add(&mut self, size: Bytes) {
        let (bytes, packets) = &mut self.intervals[0];
        *bytes += size.get();
        *packets += 1;
    }

    fn next_interval(&mut self) {
        self.intervals.rotate_right(1);
        self.intervals[0] = (0, 0);
    }

    /// `None` while nothing was sent.
    fn mean(&self) -> Option<f64> {
        let (bytes, packets) = self.intervals.iter().fold((0, 0), |(b, n), (bytes, packets)| (b + bytes, n + packets));
        (packets > 0).then(|| bytes as f64 / packets as f64)
    }
}

/// When the sender was held back by X and not by a lack of data: the last stretches of time, newest first
/// [RFC 5348 §8.2.1].
#[derive(Clone, Debug, Default)]
struct Held {
    /// The first and the last packet of each that left as soon as X allowed it.
    stretches: [Option<(Instant, Instant)>; 4],
    /// The last packet to leave was such a one.
    now: bool,
    reported: bool,
}

impl Held {
    /// A packet leaves; `in_time`: as soon as X allowed it. Stretches less than an RTT apart count as one:
    /// no report can cover just the time between them.
    fn on_sent(&mut self, now: Instant, in_time: bool, r: Duration) {
        let went_on = core::mem::replace(&mut self.now, in_time);
        if !in_time {
            return;
        }
        match &mut self.stretches[0] {
            Some((_, last)) if went_on || now.since(*last) < r => *last = now,
            _ => {
                self.stretches.rotate_right(1);
                self.stretches[0] = Some((now, now));
            }
        }
    }

    /// A report echoes `t_new`: it covers the RTT before that. True if the sender was data-limited in all
    /// of it.
    fn was_data_limited(&mut self, t_new: Instant, r: Duration) -> bool {
        // The first report, of a packet that nothing preceded, says nothing about a limit (§4.3).
        let first = !core::mem::replace(&mut self.reported, true);
        let held = self.stretches.iter().flatten().any(|(first, last)| *first <= t_new && *last + r > t_new);
        !held && !first
    }
}

#[cfg(test)]
mod tests;
