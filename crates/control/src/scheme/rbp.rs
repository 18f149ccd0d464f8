//! SRP, CRP, MRP: rate-based protocols that stay below TCP's rate as an equation gives it. One
//! protocol, three equations: simple, complex, modified.
//!
//! Source: `lossy` (Ng, Chan), §3.2 for the protocol, §2 and §5 for the equations. Read
//! `equation.rs` first; which losses are one indication is `tfrc/history.rs`.
//!
//! ```text
//!   every round (one SRTT):
//!     S > X(p)                  S <- X(p), at once
//!     otherwise, without loss   S <- min(S + 1/SRTT, X(p))    (I <- I/(I + 1), I in rounds)
//!     otherwise                 S stays
//!   on a timeout:               S <- min(S/2, X(p))
//! ```
//!
//! # Symbols
//!
//! | paper | here | unit | set |
//! | --- | --- | --- | --- |
//! | Packet_Interval, I = 1/S | `pps` is S | packets/s | end of a round, timeout |
//! | transmission rate of the model, X | `equation_pps` | packets/s | end of a round, timeout |
//! | p | `LossRate`: loss indications per packet sent | – | each ACK, loss, mark, timeout |
//! | RTT, R_to | [`RttEstimator`]: SRTT; SRTT + 4 RTTVAR | s | each ACK |
//! | b | `b` | – | 1 |
//!
//! # Readings
//!
//! - **Over what p is measured** the paper does not say ("the error rate ... in the round"; §3.1 speaks
//!   of the whole run). All are options, `p_over`:
//!   - `intervals` (default): TFRC's weighted mean of the last eight intervals between indications
//!     [RFC 5348 §5.4]. Answers within a few losses, and forgets by losses, not by time.
//!   - `round`: p of the round that ends. At one or two packets per round it knows only 0, 1/2 and 1: a loss
//!     stops the flow nearly, and a round without one lifts the bound unless X is kept.
//!   - `N packets`: the mean over the last N or so, older ones fading; the mean of all until there are N.
//!   - `run`: the mean of all. Ever slower to answer: for long simulations only.
//! - **Before the first loss** p = 0 and the equation allows anything: one more packet per round, as
//!   the rule says, from one packet per RTT (or the flow's start rate). There is no slow start.
//! - A loss indication is TCP's: losses among packets that left within one round trip are one, so is a
//!   timeout, and so are the timeouts that follow it before anything is heard. (`one_per_rtt`)
//! - "Re-calculated if a packet was dropped" is read as a bound: where the equation, after a loss, still
//!   allows more than S, S stays for that round. With `after_loss = equation` S becomes X, even upward, which is what the
//!   sentence says by itself.
//! - In a round without loss X is computed anew as well. With `without_loss = kept` the last one stays in force, since §3.2
//!   computes the rate again only after a loss. With `p_over = round` the difference is large: p is 0 in such a round, and
//!   computed anew X is then infinite.
//! - A round in which nothing was acknowledged proves nothing: it goes on for another SRTT. So a flow of
//!   less than a packet per RTT grows by its ACKs, and one on a dead path does not grow.
//!
//! # Deviations
//!
//! - A timeout halves the rate at least. The paper has no rule, and p alone falls too slowly on a dead
//!   path. Once the gap is longer than the timeout, each lost packet doubles it: TCP's back-off.
//! - The increase is withheld when under half of the permitted packets were sent (as RAP's).
//! - S stays within the flow's limits. Before any RTT is known, one packet per second [RFC 5348 §4.2].
//! - With `ecn`, a mark is a loss.
//! - The gap is for a full packet; a shorter one uses proportionally less.

use crate::controller::{Controller, LossPolicy, SendPoll};
use crate::equation::{Equation, TcpPath};
use crate::facts::{Acked, Loss, Sent, Status};
use crate::pacer::{Pacer, seconds};
use crate::param::{Allowed, FLAG, ParamError, ParamInfo};
use crate::registry::{Env, SchemeInfo, Settings};
use crate::rtt::{RtoParams, RttEstimator};
use fairpace_units::{Bounds, Bytes, Duration, Ecn, Instant, Probability, Rate};
use loss_rate::LossRate;

mod loss_rate;

pub use loss_rate::POver;

/// The registry's entry: the simple equation.
pub const SRP: SchemeInfo = SchemeInfo {
    name: "srp",
    title: "SRP: rate-based protocol below TCP's simple equation",
    source: SOURCE,
    make: |settings, env| Ok(Box::new(Rbp::new(settings, env)?)),
    params: PARAMS,
};

/// The registry's entry: the complex equation.
pub const CRP: SchemeInfo = SchemeInfo {
    name: "crp",
    title: "CRP: rate-based protocol below TCP's complex equation",
    source: SOURCE,
    make: |settings, env| Ok(Box::new(Rbp::new(settings, env)?)),
    params: PARAMS,
};

/// The registry's entry: the modified equation.
pub const MRP: SchemeInfo = SchemeInfo {
    name: "mrp",
    title: "MRP: rate-based protocol below TCP's equation modified for random loss",
    source: SOURCE,
    make: |settings, env| Ok(Box::new(Rbp::new(settings, env)?)),
    params: PARAMS,
};

const SOURCE: &str = "Ng, Chan, Equation-based TCP-friendly congestion control under lossy environment, 2005";

const PARAMS: &[ParamInfo] = &[
    ParamInfo {
        name: "p_over",
        symbol: "p",
        default: "intervals",
        allowed: &[Allowed::Words(&["intervals", "round", "run"]), Allowed::Times("packets", Bounds::of(2.0, 1e6))],
        doc: "over what the loss rate is measured: the last eight loss intervals, the round, the run, or the last packets",
    },
    ParamInfo {
        name: "one_per_rtt",
        symbol: "",
        default: "on",
        allowed: FLAG,
        doc: "losses that left within one round trip are one indication, as TCP counts them; off: each lost packet is one",
    },
    ParamInfo {
        name: "without_loss",
        symbol: "X",
        default: "anew",
        allowed: &[Allowed::Words(&["anew", "kept"])],
        doc: "in a round without loss the equation's rate is computed anew, or the last one is kept",
    },
    ParamInfo {
        name: "after_loss",
        symbol: "S",
        default: "bound",
        allowed: &[Allowed::Words(&["bound", "equation"])],
        doc: "after a round with loss the equation's rate bounds the rate, or is the rate, higher or not",
    },
    ParamInfo {
        name: "b",
        symbol: "b",
        default: "1",
        allowed: &[Allowed::Number("", Bounds::of(1.0, 2.0))],
        doc: "packets per ACK of the TCP to be fair to: 1, or 2 with delayed ACKs",
    },
    ParamInfo {
        name: "ecn",
        symbol: "",
        default: "off",
        allowed: FLAG,
        doc: "send packets as ECN-capable; a mark is a loss indication",
    },
    ParamInfo {
        name: "dup_threshold",
        symbol: "",
        default: "3",
        allowed: &[Allowed::Whole("", 1, 100)],
        doc: "later packets acknowledged that make a packet lost",
    },
    ParamInfo {
        name: "min_rto",
        symbol: "",
        default: "200 ms",
        allowed: &[Allowed::Duration(Bounds::of(Duration::from_millis(1), Duration::from_secs(60)))],
        doc: "lower bound of the timeout SRTT + 4 RTTVAR, in the equation too",
    },
];

/// The rate before any RTT is known [RFC 5348 §4.2].
const PPS_WITHOUT_RTT: f64 = 1.0;

/// The share of the permitted packets that must have been sent for the rate to grow: RAP's in ns-2.
const MIN_SENT: f64 = 0.5;

/// The protocols' constants, as their parameters name them.
#[derive(Clone, Debug, PartialEq)]
pub struct RbpParams {
    /// X(p).
    pub equation: Equation,
    /// Over what p is measured.
    pub p_over: POver,
    /// Losses within a round trip are one indication.
    pub one_per_rtt: bool,
    /// X stays in a round without loss.
    pub keeps_equation: bool,
    /// A round with loss sets S to X(p), even up.
    pub sets_rate: bool,
    /// b.
    pub b: f64,
    /// Marks count as losses.
    pub ecn: bool,
    /// Later packets acknowledged that make a packet lost.
    pub dup_threshold: u8,
    /// Lower bound of the timeout.
    pub min_rto: Duration,
}

impl RbpParams {
    /// Reads the settings of `srp`, `crp` or `mrp`.
    ///
    /// # Errors
    /// [`ParamError`] names the field, what was found and what is allowed.
    pub fn new(s: &Settings<'_>) -> Result<RbpParams, ParamError> {
        Ok(RbpParams {
            equation: match s.scheme() {
                "srp" => Equation::Simple,
                "crp" => Equation::Complex,
                _ => Equation::Modified,
            },
            p_over: p_over(s)?,
            one_per_rtt: s.flag("one_per_rtt")?,
            keeps_equation: s.choice("without_loss", &[("anew", false), ("kept", true)])?,
            sets_rate: s.choice("after_loss", &[("bound", false), ("equation", true)])?,
            b: s.number("b")?,
            ecn: s.flag("ecn")?,
            dup_threshold: s.whole("dup_threshold")? as u8,
            min_rto: s.duration("min_rto")?,
        })
    }
}

fn p_over(s: &Settings<'_>) -> Result<POver, ParamError> {
    if let Some(n) = s.times("p_over")? {
        return if n.fract() == 0.0 { Ok(POver::Packets(n)) } else { Err(s.bad("p_over")) };
    }
    let words = [("intervals", POver::Intervals), ("round", POver::Round), ("run", POver::Packets(f64::INFINITY))];
    s.choice("p_over", &words)
}

/// The sender of SRP, CRP and MRP.
#[derive(Clone, Debug)]
pub struct Rbp {
    params: RbpParams,
    packet_size: Bytes,
    min_pps: f64,
    max_pps: f64,
    start_pps: Option<f64>,
    /// `max_pps`, or what the application wants if that is less.
    limit_pps: f64,
    /// S.
    pps: f64,
    /// X(p), as last computed; infinite at p = 0.
    equation_pps: f64,
    /// SRTT in seconds; `None` before the first sample.
    srtt_s: Option<f64>,
    losses: LossRate,
    round: Round,
    next_round: Instant,
    state: State,
    pacer: Pacer,
    last_sent: Instant,
    /// The last packet's size as a share of a full one.
    last_share: f64,
    reason: &'static str,
}

/// Where S is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// No RTT is known.
    Waiting {
        /// A timeout has come, and nothing was acknowledged since.
        timed_out: bool,
    },
    /// S < X(p): it grows.
    Below,
    /// S is all that the equation allows.
    AtEquation,
    /// A timeout has come, and nothing was acknowledged since.
    TimedOut,
}

impl State {
    /// As in events and series.
    fn name(self) -> &'static str {
        match self {
            State::Waiting { .. } => "Waiting",
            State::Below => "Below",
            State::AtEquation => "AtEquation",
            State::TimedOut => "TimedOut",
        }
    }

    /// Whether a timeout has come, and nothing was acknowledged since.
    fn is_timed_out(self) -> bool {
        matches!(self, State::TimedOut | State::Waiting { timed_out: true })
    }
}

/// The events since the round began.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    /// Packets that S permitted, and packets sent; partial ones count as such.
    permitted: f64,
    sent: f64,
    acked: bool,
    lost: bool,
}

impl Rbp {
    /// Reads the settings.
    ///
    /// # Errors
    /// [`ParamError`] names the field, what was found and what is allowed.
    pub fn new(settings: &Settings<'_>, env: &Env) -> Result<Rbp, ParamError> {
        let params = RbpParams::new(settings)?;
        let pps = |rate: Rate| rate.as_packets_per_second(env.packet_size);
        let (min_pps, max_pps) = (pps(env.min_rate), pps(env.max_rate));
        Ok(Rbp {
            packet_size: env.packet_size,
            min_pps,
            max_pps,
            start_pps: env.start_rate.map(pps),
            limit_pps: max_pps,
            pps: PPS_WITHOUT_RTT.min(max_pps).max(min_pps),
            equation_pps: f64::INFINITY,
            srtt_s: None,
            losses: LossRate::new(params.p_over, params.one_per_rtt),
            round: Round::default(),
            next_round: Instant::NEVER,
            state: State::Waiting { timed_out: false },
            pacer: Pacer::starting(Instant::NEVER),
            last_sent: Instant::ZERO,
            last_share: 0.0,
            reason: "no RTT known yet",
            params,
        })
    }

    /// The state by SRTT, by whether a timeout is being waited out, and by S and X(p), of which something has changed.
    fn review(&mut self, timed_out: bool) {
        self.enter(match self.srtt_s {
            None => State::Waiting { timed_out },
            Some(_) if timed_out => State::TimedOut,
            Some(_) if self.pps < self.equation_pps => State::Below,
            Some(_) => State::AtEquation,
        });
    }

    /// The one place where the state changes.
    fn enter(&mut self, state: State) {
        use State::{AtEquation, Below, TimedOut, Waiting};
        let legal = match (self.state, state) {
            // An RTT becomes known by an ACK, which ends a timeout.
            (Waiting { .. }, Waiting { .. } | Below | AtEquation) => true,
            (Waiting { .. }, TimedOut) => false,
            (Below | AtEquation | TimedOut, Below | AtEquation | TimedOut) => true,
            (Below | AtEquation | TimedOut, Waiting { .. }) => false,
        };
        assert!(legal, "an RBP may not go from {} to {}", self.state.name(), state.name());
        self.state = state;
    }

    /// The first RTT is known: one packet in each, and rounds begin.
    fn begin(&mut self, now: Instant, rtt: Duration) {
        let rtt_s = rtt.as_secs_f64();
        self.srtt_s = Some(rtt_s);
        self.set_rate(self.start_pps.unwrap_or(1.0 / rtt_s), "first RTT");
        self.begin_round(now, now);
    }

    /// The round that should have begun at `due` begins.
    fn begin_round(&mut self, due: Instant, now: Instant) {
        let Some(srtt_s) = self.srtt_s else { return };
        self.next_round = due + seconds(srtt_s);
        if self.next_round <= now {
            self.next_round = now + seconds(srtt_s);
        }
    }

    /// Another round is counted.
    fn end_round(&mut self) {
        self.round = Round::default();
        self.losses.begin_round();
    }

    /// X(p) as it is now, in packets/s.
    fn update_equation(&mut self, rtt: &RttEstimator) {
        let p = self.losses.p();
        let srtt = rtt.srtt().unwrap_or(TcpPath::MIN_RTT).clamp(TcpPath::MIN_RTT, TcpPath::MAX_RTO);
        let rto = rtt.rto(&self.rto_params()).clamp(srtt, TcpPath::MAX_RTO);
        let path = TcpPath::new(self.packet_size, srtt, rto, self.params.b);
        self.equation_pps = match (path, Probability::new(p)) {
            (Ok(path), Ok(p)) if p > Probability::ZERO => {
                self.params.equation.rate(&path, p).as_packets_per_second(self.packet_size)
            }
            _ => f64::INFINITY,
        };
        self.review(self.state.is_timed_out());
    }

    fn set_rate(&mut self, pps: f64, reason: &'static str) {
        self.pps = pps.min(self.limit_pps).max(self.min_pps);
        self.review(self.state.is_timed_out());
        self.reason = reason;
        // A gap of minutes that was right for the old rate is not waited out.
        self.pacer.regap(self.last_share / self.pps);
    }

    fn rate(&self) -> Rate {
        Rate::packets_per_second(self.pps, self.packet_size)
    }

    fn rto_params(&self) -> RtoParams {
        RtoParams { min: self.params.min_rto, ..RtoParams::default() }
    }
}

impl Controller for Rbp {
    fn start(&mut self, now: Instant, srtt: Option<Duration>) {
        self.pacer = Pacer::starting(now);
        if let Some(rtt) = srtt {
            self.begin(now, rtt);
        }
    }

    fn on_sent(&mut self, now: Instant, sent: &Sent) {
        let share = sent.size.as_f64() / self.packet_size.as_f64();
        self.losses.on_sent(sent.seq);
        self.round.sent += share;
        (self.last_sent, self.last_share) = (now, share);
        let slack = self.srtt_s.map_or(Duration::ZERO, seconds);
        self.pacer.sent(now, share / self.pps, slack);
    }

    fn on_ack(&mut self, now: Instant, ack: &Acked, rtt: &RttEstimator) {
        self.review(false);
        self.round.acked = true;
        if self.params.ecn && ack.ecn == Ecn::Ce {
            self.round.lost = true;
            self.losses.on_marked(ack.seq, ack.sent_at, rtt.srtt().unwrap_or_default());
        } else {
            self.losses.on_acked(ack.seq, ack.sent_at);
        }
        match (self.srtt_s, ack.rtt) {
            (Some(_), Some(_)) => self.srtt_s = rtt.srtt().map(|s| s.as_secs_f64()),
            (None, Some(sample)) => self.begin(now, sample),
            (_, None) => {}
        }
    }

    fn on_loss(&mut self, _now: Instant, loss: &Loss, rtt: &RttEstimator) {
        self.round.lost = true;
        self.losses.on_lost(loss.seq, loss.sent_at, rtt.srtt().unwrap_or_default());
    }

    fn on_timeout(&mut self, now: Instant, rtt: &RttEstimator) {
        // All outstanding data is lost; the timeouts after the first belong to the same indication.
        let indication = !self.state.is_timed_out();
        self.review(true);
        self.losses.on_timeout(indication, self.last_sent, rtt.srtt().unwrap_or_default());
        self.update_equation(rtt);
        self.set_rate((self.pps / 2.0).min(self.equation_pps), "timeout");
        self.end_round();
        self.begin_round(now, now);
    }

    fn on_timer(&mut self, now: Instant, rtt: &RttEstimator) {
        let Some(srtt_s) = self.srtt_s else { return };
        if self.round.lost || !self.params.keeps_equation {
            self.update_equation(rtt);
        }
        self.round.permitted += self.pps * srtt_s;
        if self.pps > self.equation_pps {
            self.set_rate(self.equation_pps, "the equation allows less");
        } else if self.round.lost && self.params.sets_rate && self.equation_pps.is_finite() {
            self.set_rate(self.equation_pps, "computed anew after a loss");
        } else if self.round.lost {
            self.reason = "increase withheld: loss";
        } else if !self.round.acked {
            self.reason = "increase withheld: nothing acknowledged";
        } else if self.round.sent < MIN_SENT * self.round.permitted {
            self.reason = "increase withheld: too little sent";
        } else {
            self.set_rate((self.pps + 1.0 / srtt_s).min(self.equation_pps), "one more packet per round");
        }
        if self.round.acked {
            self.end_round();
        }
        self.begin_round(self.next_round, now);
    }

    fn set_demand(&mut self, _now: Instant, max: Option<Rate>) {
        let wanted = max.unwrap_or(Rate::MAX).as_packets_per_second(self.packet_size);
        self.limit_pps = wanted.min(self.max_pps).max(self.min_pps);
        if self.pps > self.limit_pps {
            self.set_rate(self.limit_pps, "the application wants less");
        }
    }

    fn heeds_ecn(&self) -> bool {
        self.params.ecn
    }

    fn poll_send(&mut self, now: Instant, has_data: bool) -> SendPoll {
        self.pacer.poll_data(now, has_data)
    }

    fn poll_timer(&self) -> Instant {
        self.next_round
    }

    fn target_rate(&self) -> Rate {
        self.rate()
    }

    fn status(&self) -> Status {
        Status { state: self.state.name(), rate: self.rate(), reason: self.reason, p: Some(self.losses.p_gone_by()) }
    }

    fn loss_policy(&self) -> LossPolicy {
        LossPolicy { dup_threshold: self.params.dup_threshold, rto: self.rto_params(), ..LossPolicy::default() }
    }
}

#[cfg(test)]
mod tests;
