//! RCS: rate control for real-time traffic over lossy, long paths, probing with dummy packets.
//!
//! Source: `rcs` (Akyildiz, Akan, Morabito: "A rate control scheme for adaptive real-time
//! applications in IP networks with lossy links and long round trip times"), §III; states Fig. 1,
//! pseudo-code Figs. 2-5. Read first: §III-C and §III-D. Formulas: `rcs/formula.rs`; parameters and
//! readings: `rcs/params.rs`. Experiments: `rcs.fig12` to `rcs.fig22`.
//!
//! ```text
//!            2 SRTT are over               loss                 SRTT over,
//!            S = max(1,nACK)/SRTT          S = S/2              no ACK in it
//!  Initial ------------------> Steady ------------> Detected ----------> Backoff
//!     ^                          ^  ^                  |                  |  |
//!     |                          |  +------------------+                  |  |
//!     |                          |     SRTT over, some ACK in it          |  |
//!     |                          +----------------------------------------+  |
//!     |                                         any ACK                      |
//!     +----------------------------------------------------------------------+
//!                                     T_B is over
//!
//!  sends: Initial   dummies at S_Target for one SRTT, then listens for another
//!         Steady    data at S; S grows by 1/SRTT each SRTT, and with each dummy ACK if wdsn = 0
//!         Detected  data at S, two dummies to each
//!         Backoff   data at S, one dummy to each
//! ```
//!
//! # Symbols
//!
//! | paper | here | unit | set |
//! | --- | --- | --- | --- |
//! | S | `s` | packets/s | every state but Initial's inside |
//! | S_Target | `s_target()` | packets/s | parameter, the application's wish, the flow's limit: the least |
//! | SRTT | `srtt_s` | s | each RTT sample; a phase keeps the one it began with |
//! | IPG = 1/S | the gap given to `Pacer::sent` | s | each packet |
//! | t_next_data, t_next_dummy | `data`, `dummies` (`Pacer`) | – | each packet |
//! | t_0, t_1, t_END, t_next_increase | fields of [`State`] | – | when the phase begins |
//! | n_ACK | `n_ack` in [`State::Initial`] | packets | dummy ACKs in Initial |
//! | wdsn | `wdsn` | packets | -1 after Initial, SRTT·S in Detected, 0 in Backoff |
//! | ack_received | `ack_received` in [`State::Detected`] | – | any ACK |
//! | T_B | `t_b` | – | parameter |
//!
//! # Readings
//!
//! Each is an option in `params.rs`; the default came nearest to the paper's overhead.
//!
//! - **wdsn is a whole number**: SRTT·S is 1.925 at 7 packets/s and 550 ms, and a fraction never
//!   meets the test for zero. `wdsn_rounding`; traps: `up`, `exact`.
//! - **wdsn after Initial is -1**, and Fig. 3 tests for 0: a guard, Initial's late ACKs raise
//!   nothing. The text says "higher than zero" instead: `wdsn_test = text`.
//! - **Losses noticed in Detected** open no second phase (`loss_in_detected`), nor do losses of
//!   packets sent before the phase began (`old_losses`): they are the same event.
//! - **After Backoff** the gap that the blackout left is no new loss (`gap_after_backoff`).
//! - **Both increases** act in Steady (`increase`); dummy ACKs that arrive in Detected do not count
//!   (`dummy_acks_in_detected`): Fig. 4 only notes that an ACK came.
//! - The ACK that ends Backoff only ends it, as Fig. 5 has it.
//! - Figs. 3-5 as printed advance no timer in some branches: a copy would raise S at each pass and
//!   send a packet at each. The equations (4) and the text are followed.
//! - n_ACK counts the dummies of this Initial, not those of a Backoff before it.
//! - Losses are TCP Reno's (§III-C): three later packets acknowledged, or the timeout.
//!
//! # Deviations
//!
//! - SRTT·S_0 dummies are sent in Detected, rounded down, so that all their ACKs regain S_0 and
//!   not a packet more (Fig. 4's clock alone gives one more for some S_0).
//! - A phase's first data packet keeps its place in the schedule instead of leaving at t_0 with
//!   the last one just gone; at most one packet's difference, and never above S.
//! - S stays within the flow's limits, which the paper does not have; unless `safety` is `paper`, what the circuit
//!   breaker bears is one of them (`Breaker::bearable`).
//! - A short packet takes proportionally less of the schedule; S counts full ones.
//! - Without an SRTT (no challenge before): one dummy every 3 s until the first ACK gives one.
//! - Unless `safety` is `paper`: Initial sends at most 1,000 dummies; Backoff halves S every T_B/4
//!   and T_B is at most 15 s; the timed increase is withheld when less than half of what S permits
//!   was sent; dummies are at most a tenth of S where the path treats them like data, and in a Detected whose loss
//!   came while a queue stood (`loss_with_queue`): such a loss is congestion, and two dummies to each data packet for a
//!   round trip of queues would fill a queue without priorities further.
//!
//! # Not implemented
//!
//! ECN: packets go out Not-ECT, and a mark is no loss. Per-flow choice of what a router does with
//! dummies: that is `path`'s.

mod formula;
pub mod params;

use crate::base_rtt::BaseRtt;
use crate::controller::{Controller, LossPolicy, SendPoll};
use crate::facts::{Acked, Loss, Sent, Status};
use crate::pacer::{Pacer, seconds};
use crate::param::ParamError;
use crate::registry::{Env, Safety, SchemeInfo, Settings};
use crate::rtt::{RtoParams, RttEstimator};
use fairpace_units::{Bytes, Duration, Instant, Kind, Rate};
use params::{BackoffTimeout, Increase, RcsParams, WdsnTest};

/// The registry's entry.
pub const INFO: SchemeInfo = SchemeInfo {
    name: "rcs",
    title: "RCS: rate control with low-priority dummy packets",
    source: "Akyildiz, Akan, Morabito, IEEE/ACM Trans. Networking",
    make: |settings, env| Ok(Box::new(Rcs::new(settings, env)?)),
    params: params::PARAMS,
};

/// One probe in this time while no RTT is known [RFC 8085 §3.1.3].
const PROBE_EVERY_S: f64 = 3.0;
/// Initial's most dummies on a real network: 550 kB would leave for one request at 1,000 per
/// second and 550 ms otherwise.
const MOST_INITIAL_DUMMIES: u32 = 1_000;
/// T_B's upper bound on a real network: when the circuit breaker would end the flow [RFC 8083
/// §4.1].
const MOST_T_B: Duration = Duration::from_secs(15);
/// Dummies per data packet at most, on a path that treats them like data.
const LIMITED_SHARE: f64 = 0.1;

/// Fig. 1. Each state carries what only it needs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum State {
    /// Before [`Controller::start`].
    Idle,
    /// No RTT known: single dummies until an ACK measures one.
    Asking,
    /// Fig. 2: dummies at S_Target for an SRTT, their ACKs counted for two.
    Initial {
        /// t_0: only dummies sent since then are counted.
        since: Instant,
        /// t_1: the last moment to send.
        send_until: Instant,
        /// t_END.
        until: Instant,
        /// Dummies that may still leave.
        dummies_left: u32,
        /// n_ACK.
        n_ack: u32,
    },
    /// Fig. 3: data; S grows.
    Steady {
        /// t_next_increase.
        next_increase: Instant,
    },
    /// Fig. 4: the loss is being judged.
    Detected {
        /// t_END.
        until: Instant,
        /// Dummies that may still leave.
        dummies_left: u32,
        /// The next dummy is the second of its pair.
        second: bool,
        /// Some ACK came: the path is alive.
        ack_received: bool,
    },
    /// Fig. 5: the signal is gone.
    Backoff {
        /// t_0 + T_B.
        until: Instant,
        /// When S is halved next; NEVER in the paper's own scenarios.
        next_halving: Instant,
        /// T_B/4.
        halve_every: Duration,
    },
}

impl State {
    /// The paper's word.
    pub const fn name(&self) -> &'static str {
        match self {
            State::Idle => "Idle",
            State::Asking | State::Initial { .. } => "Initial",
            State::Steady { .. } => "Steady",
            State::Detected { .. } => "Detected",
            State::Backoff { .. } => "Backoff",
        }
    }
}

/// RCS's sender.
#[derive(Clone, Debug)]
pub struct Rcs {
    params: RcsParams,
    packet_size: Bytes,
    safety: Safety,
    /// The flow's limits, packets/s.
    min_pps: f64,
    max_pps: f64,
    /// The most that the application wants, packets/s.
    demand_pps: f64,
    state: State,
    /// S, packets/s.
    s: f64,
    /// SRTT, seconds.
    srtt_s: f64,
    /// Dummy ACKs still to be swallowed before one raises S; whole unless rounding is `exact`.
    wdsn: f64,
    data: Pacer,
    dummies: Pacer,
    last_dummy: Option<Instant>,
    dummies_limited: bool,
    /// The round trip without queues.
    base_rtt: BaseRtt,
    /// The last loss came while a queue stood: its phase has a tenth of the dummies.
    queue_stands: bool,
    /// The highest data number sent.
    highest_sent: Option<u64>,
    /// Losses up to this number belong to the last Detected phase.
    before_detected: Option<u64>,
    /// Losses up to this number belong to the last blackout.
    before_signal: Option<u64>,
    /// Data sent since the last timed increase, in full packets.
    sent: f64,
    reason: &'static str,
}

impl Rcs {
    /// Reads the settings.
    ///
    /// # Errors
    /// [`ParamError`] names the field, what was found and what is allowed.
    pub fn new(settings: &Settings<'_>, env: &Env) -> Result<Rcs, ParamError> {
        let pps = |rate: Rate| rate.as_packets_per_second(env.packet_size);
        let params = RcsParams::new(settings, env)?;
        let min_pps = pps(env.min_rate);
        Ok(Rcs {
            s: env.start_rate.map_or(min_pps, pps).min(pps(params.s_target)),
            params,
            packet_size: env.packet_size,
            safety: env.safety,
            min_pps,
            max_pps: pps(env.max_rate),
            demand_pps: f64::INFINITY,
            state: State::Idle,
            srtt_s: 1.0, // [RFC 8085 §3.1.1], until one is known
            wdsn: -1.0,
            data: Pacer::starting(Instant::NEVER),
            dummies: Pacer::starting(Instant::NEVER),
            last_dummy: None,
            dummies_limited: false,
            base_rtt: BaseRtt::new(),
            queue_stands: false,
            highest_sent: None,
            before_detected: None,
            before_signal: None,
            sent: 0.0,
            reason: "not started",
        })
    }

    /// The state and what belongs to it.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// S, packets per second.
    pub fn s(&self) -> f64 {
        self.s
    }

    /// wdsn.
    pub fn wdsn(&self) -> f64 {
        self.wdsn
    }

    /// S_Target in force, packets per second.
    fn s_target(&self) -> f64 {
        let target = self.params.s_target.as_packets_per_second(self.packet_size);
        target.min(self.demand_pps).min(self.max_pps).max(self.min_pps)
    }

    // --- events ----------------------------------------------------------------------------------

    /// `DUMMY_ACK_ARRIVAL` [rcs Fig. 3].
    fn on_dummy_ack(&mut self) {
        if self.params.increase == Increase::Timed {
            return;
        }
        let raises = match self.params.wdsn_test {
            WdsnTest::Figure => self.wdsn == 0.0,
            WdsnTest::Text => self.wdsn <= 0.0,
        };
        if raises {
            let s = formula::increased(self.s, self.srtt_s, self.s_target());
            self.set_rate(s, "dummy acknowledged");
        } else {
            // From -1 this counts down for ever: after Initial no dummy raises S until the next
            // loss sets wdsn. Doubles count exactly to 2^53.
            self.wdsn -= 1.0;
        }
    }

    /// `t >= t_next_increase` [rcs Fig. 3, equations (3) and (4)].
    fn on_timed_increase(&mut self, now: Instant, due: Instant) {
        let permitted = self.s * self.srtt_s;
        if self.params.increase == Increase::Dummy {
            // S grows by dummy ACKs only.
        } else if self.safety == Safety::Default && self.sent < 0.5 * permitted {
            self.reason = "increase withheld: too little sent";
        } else {
            let s = formula::increased(self.s, self.srtt_s, self.s_target());
            self.set_rate(s, "timed increase");
        }
        self.sent = 0.0;
        // A driver that comes late gets one increase, not all it missed.
        let next = due + seconds(self.srtt_s);
        let next_increase = if next > now { next } else { now + seconds(self.srtt_s) };
        self.state = State::Steady { next_increase };
    }

    /// `PACKET_LOSS_DETECTION` [rcs Figs. 3, 4].
    fn on_loss_event(&mut self, now: Instant, reason: &'static str) {
        match self.state {
            State::Steady { .. } => self.detect(now, reason),
            State::Detected { .. } if self.params.restart_in_detected => self.detect(now, reason),
            _ => {}
        }
    }

    // --- transitions -----------------------------------------------------------------------------

    /// The one place where the state changes.
    fn enter(&mut self, state: State, reason: &'static str) {
        use State::{Asking, Backoff, Detected, Idle, Initial, Steady};
        let legal = matches!(
            (&self.state, &state),
            (Idle, Asking | Initial { .. })
                | (Asking, Initial { .. })
                | (Initial { .. }, Steady { .. })
                | (Steady { .. }, Detected { .. })
                | (Detected { .. }, Steady { .. } | Backoff { .. })
                | (Backoff { .. }, Steady { .. } | Initial { .. })
        );
        let again =
            self.params.restart_in_detected && matches!((&self.state, &state), (Detected { .. }, Detected { .. }));
        assert!(legal || again, "RCS may not go from {} to {} [rcs Fig. 1]", self.state.name(), state.name());
        self.state = state;
        self.reason = reason;
    }

    /// Fig. 2.
    fn begin_initial(&mut self, now: Instant, reason: &'static str) {
        let dummies_left = match self.safety {
            Safety::Paper => u32::MAX,
            Safety::Default => MOST_INITIAL_DUMMIES,
        };
        let send_until = now + seconds(self.srtt_s);
        let until = send_until + seconds(self.srtt_s);
        self.enter(State::Initial { since: now, send_until, until, dummies_left, n_ack: 0 }, reason);
        // t_next_dummy = t_0 + IPG_Dummy
        let first = now + seconds(self.dummy_gap(1.0 / self.s_target()));
        self.begin_dummies(first);
    }

    /// The end of Fig. 2.
    fn end_initial(&mut self, now: Instant, n_ack: u32) {
        self.wdsn = -1.0;
        self.data = Pacer::starting(now);
        self.set_rate(formula::initial_rate(n_ack, self.srtt_s), "Initial's dummies acknowledged");
        self.begin_steady(now, "Initial is over");
    }

    /// Fig. 3.
    fn begin_steady(&mut self, now: Instant, reason: &'static str) {
        self.sent = 0.0;
        self.enter(State::Steady { next_increase: now + seconds(self.srtt_s) }, reason);
    }

    /// Fig. 4.
    fn detect(&mut self, now: Instant, reason: &'static str) {
        let s0 = self.s;
        self.queue_stands = self.params.heed_queue && self.base_rtt.shows_queue(seconds(self.srtt_s));
        let reason = if self.queue_stands { "loss while a queue stands" } else { reason };
        self.set_rate(s0 / 2.0, reason);
        self.wdsn = formula::wdsn(self.srtt_s, self.s, self.params.wdsn_rounding);
        self.before_detected = self.highest_sent;
        let share = if self.queue_stands { LIMITED_SHARE } else { 1.0 };
        let dummies_left = formula::dummies_in_detected(self.srtt_s, share * s0);
        let until = now + seconds(self.srtt_s);
        self.enter(State::Detected { until, dummies_left, second: false, ack_received: false }, reason);
        self.begin_dummies(now + seconds(1.0 / (3.0 * self.s)));
    }

    /// The end of Fig. 4.
    fn end_detected(&mut self, now: Instant, ack_received: bool) {
        if ack_received {
            self.begin_steady(now, "ACKs came in Detected");
        } else if self.params.backoff {
            self.begin_backoff(now);
        } else {
            self.begin_steady(now, "no ACK in Detected, and no Backoff");
        }
    }

    /// Fig. 5.
    fn begin_backoff(&mut self, now: Instant) {
        self.wdsn = 0.0;
        let mut t_b = match self.params.t_b {
            BackoffTimeout::Srtts(n) => seconds(n * self.srtt_s),
            BackoffTimeout::After(d) => d,
            BackoffTimeout::None => Duration::MAX,
        };
        let mut next_halving = Instant::NEVER;
        if self.safety == Safety::Default {
            t_b = t_b.min(MOST_T_B);
            next_halving = now + t_b / 4;
        }
        let state = State::Backoff { until: now + t_b, next_halving, halve_every: t_b / 4 };
        self.enter(state, "no ACK in Detected");
        self.begin_dummies(now + seconds(1.0 / (2.0 * self.s)));
    }

    /// Any ACK in Backoff.
    fn end_backoff(&mut self, now: Instant) {
        self.before_signal = self.highest_sent;
        self.begin_steady(now, "an ACK came in Backoff");
    }

    // --- rates and gaps --------------------------------------------------------------------------

    fn set_rate(&mut self, pps: f64, reason: &'static str) {
        self.s = pps.min(self.s_target()).max(self.min_pps);
        self.reason = reason;
    }

    fn rate(&self) -> Rate {
        Rate::packets_per_second(self.s, self.packet_size)
    }

    /// A new phase's dummies, the first not before `first` and not too close to the last phase's
    /// last if they are limited.
    fn begin_dummies(&mut self, first: Instant) {
        self.dummies = Pacer::starting(first);
        if self.dummies_limited
            && let Some(last) = self.last_dummy
        {
            self.dummies.hold_until(last + seconds(self.dummy_gap(0.0)));
        }
    }

    /// `gap`, or ten times IPG where dummies are limited to a tenth of S.
    fn dummy_gap(&self, gap: f64) -> f64 {
        let queue = self.queue_stands && matches!(self.state, State::Detected { .. });
        if !self.dummies_limited && !queue {
            return gap;
        }
        let s = if matches!(self.state, State::Initial { .. }) { self.s_target() } else { self.s };
        gap.max(1.0 / (LIMITED_SHARE * s))
    }

    /// When the next dummy may leave; `None` if this state sends no more.
    fn next_dummy(&self) -> Option<Instant> {
        let next = self.dummies.next();
        match self.state {
            State::Asking | State::Backoff { .. } => Some(next),
            State::Initial { send_until, dummies_left, .. } => (dummies_left > 0 && next <= send_until).then_some(next),
            State::Detected { dummies_left, .. } => (dummies_left > 0).then_some(next),
            State::Idle | State::Steady { .. } => None,
        }
    }

    fn sends_data(&self) -> bool {
        matches!(self.state, State::Steady { .. } | State::Detected { .. } | State::Backoff { .. })
    }

    /// The gap after the dummy just sent.
    fn after_dummy(&mut self) -> f64 {
        let ipg = 1.0 / self.s;
        let gap = match &mut self.state {
            State::Asking => PROBE_EVERY_S,
            State::Initial { dummies_left, .. } => {
                *dummies_left = dummies_left.saturating_sub(1);
                1.0 / self.s_target()
            }
            State::Detected { dummies_left, second, .. } => {
                *dummies_left = dummies_left.saturating_sub(1);
                *second = !*second;
                // At thirds of the data's interval: IPG/3 to the second dummy, 2 IPG/3 past the
                // next data packet.
                if *second { ipg / 3.0 } else { 2.0 * ipg / 3.0 }
            }
            State::Idle | State::Steady { .. } | State::Backoff { .. } => ipg,
        };
        self.dummy_gap(gap)
    }
}

impl Controller for Rcs {
    fn start(&mut self, now: Instant, srtt: Option<Duration>) {
        if self.state != State::Idle {
            return;
        }
        match srtt {
            Some(srtt) => {
                self.srtt_s = srtt.as_secs_f64();
                self.begin_initial(now, "started");
            }
            None => {
                self.enter(State::Asking, "no RTT known yet");
                self.dummies = Pacer::starting(now);
            }
        }
    }

    fn on_sent(&mut self, now: Instant, sent: &Sent) {
        let slack = seconds(self.srtt_s);
        match sent.kind {
            Kind::Data => {
                let share = sent.size.as_f64() / self.packet_size.as_f64();
                self.highest_sent = self.highest_sent.max(Some(sent.seq));
                self.sent += share;
                self.data.sent(now, share / self.s, slack);
            }
            Kind::Dummy => {
                self.last_dummy = Some(now);
                let gap = self.after_dummy();
                self.dummies.sent(now, gap, slack);
            }
        }
    }

    fn on_ack(&mut self, now: Instant, ack: &Acked, rtt: &RttEstimator) {
        if let Some(srtt) = rtt.srtt() {
            self.srtt_s = srtt.as_secs_f64();
        }
        if let Some(sample) = ack.rtt {
            self.base_rtt.on_sample(now, sample);
        }
        let is_dummy = ack.kind == Kind::Dummy;
        match &mut self.state {
            State::Idle => {}
            State::Asking => {
                if rtt.srtt().is_some() {
                    self.begin_initial(now, "first RTT");
                }
            }
            State::Initial { since, n_ack, .. } => {
                if is_dummy && ack.sent_at >= *since {
                    *n_ack += 1;
                }
            }
            State::Steady { .. } => {
                if is_dummy {
                    self.on_dummy_ack();
                }
            }
            State::Detected { ack_received, .. } => {
                *ack_received = true;
                if is_dummy && self.params.count_dummy_acks_in_detected {
                    self.on_dummy_ack();
                }
            }
            State::Backoff { .. } => self.end_backoff(now),
        }
    }

    fn on_loss(&mut self, now: Instant, loss: &Loss, _rtt: &RttEstimator) {
        let up_to = |last: Option<u64>| last.is_some_and(|last| loss.seq <= last);
        let old = up_to(self.before_detected) && !self.params.count_old_losses;
        let gap = up_to(self.before_signal) && !self.params.count_gap_after_backoff;
        if !old && !gap {
            self.on_loss_event(now, "packet lost");
        }
    }

    fn on_timeout(&mut self, now: Instant, _rtt: &RttEstimator) {
        self.on_loss_event(now, "timeout");
    }

    fn on_timer(&mut self, now: Instant, _rtt: &RttEstimator) {
        match self.state {
            State::Initial { until, n_ack, .. } if until <= now => self.end_initial(now, n_ack),
            State::Steady { next_increase } if next_increase <= now => self.on_timed_increase(now, next_increase),
            State::Detected { until, ack_received, .. } if until <= now => self.end_detected(now, ack_received),
            State::Backoff { until, .. } if until <= now => self.begin_initial(now, "T_B is over"),
            State::Backoff { until, next_halving, halve_every } if next_halving <= now => {
                self.set_rate(self.s / 2.0, "Backoff goes on");
                let next_halving = (next_halving + halve_every).max(now + Duration::from_nanos(1));
                self.state = State::Backoff { until, next_halving, halve_every };
            }
            _ => {}
        }
    }

    fn set_demand(&mut self, _now: Instant, max: Option<Rate>) {
        self.demand_pps = max.map_or(f64::INFINITY, |rate| rate.as_packets_per_second(self.packet_size));
        if self.s > self.s_target() {
            self.set_rate(self.s, "the application wants less");
        }
    }

    fn set_dummies_limited(&mut self, limited: bool) {
        self.dummies_limited = limited;
        if limited && let Some(last) = self.last_dummy {
            self.dummies.hold_until(last + seconds(self.dummy_gap(0.0)));
        }
    }

    fn poll_send(&mut self, now: Instant, has_data: bool) -> SendPoll {
        let mut wait = Instant::NEVER;
        if self.sends_data() {
            // Data first: where the flow's cap holds packets back, dummies give way.
            match self.data.poll_data(now, has_data) {
                SendPoll::Wait(at) => wait = at,
                SendPoll::WaitForData => {}
                now_or_feedback => return now_or_feedback,
            }
        }
        match self.next_dummy() {
            Some(at) if at <= now => SendPoll::Send(Kind::Dummy),
            Some(at) => SendPoll::Wait(at.min(wait)),
            None if wait == Instant::NEVER && self.sends_data() => SendPoll::WaitForData,
            None => SendPoll::Wait(wait),
        }
    }

    fn poll_timer(&self) -> Instant {
        match self.state {
            State::Idle | State::Asking => Instant::NEVER,
            State::Initial { until, .. } | State::Detected { until, .. } => until,
            State::Steady { next_increase } => next_increase,
            State::Backoff { until, next_halving, .. } => until.min(next_halving),
        }
    }

    fn target_rate(&self) -> Rate {
        self.rate()
    }

    fn status(&self) -> Status {
        Status { state: self.state.name(), rate: self.rate(), reason: self.reason, p: None }
    }

    fn loss_policy(&self) -> LossPolicy {
        LossPolicy {
            dup_threshold: self.params.dup_threshold,
            rto: RtoParams { min: self.params.min_rto, backoff: self.params.rto_backoff, ..RtoParams::default() },
            ..LossPolicy::default()
        }
    }
}

#[cfg(test)]
mod tests;
