//! AIMD(alpha, beta): window-based datagram congestion control for live media over wireless links.
//!
//! Source: `aimd` (Cai, Shen, Mark, Pan: "QoS Support for Multimedia Traffic in Wireless/IP Networks
//! Using AIMD Protocols"), §II and §III-A; where it is silent, TCP's rules [RFC 5681]. Its
//! feedback: [`SackVector`](crate::SackVector), in `sack_vector.rs`. Experiments: `aimd.eq1` to `aimd.plan`.
//!
//! ```text
//!   W = min(cwnd, rwnd)                    packets outstanding at most
//!
//!   a packet newly acknowledged:  cwnd < ssthresh   cwnd <- cwnd + 1            SlowStart
//!                                 otherwise         cwnd <- cwnd + alpha/cwnd   CongestionAvoidance
//!   a packet lost:                cwnd, ssthresh <- beta * outstanding          Backoff, until a packet
//!                                                                               sent after it is acknowledged
//!   timeout:                      ssthresh <- outstanding/2, cwnd <- 1          SlowStart
//!   nothing sent for an RTO:      cwnd <- at most the initial window
//! ```
//!
//! # Symbols
//!
//! | paper | here | unit | set |
//! | --- | --- | --- | --- |
//! | alpha | `alpha`, added to cwnd per RTT | packets | parameter; eq. (1) if `friendly` |
//! | beta | `beta`, the share that *remains* after a decrease | – | 0.875 [aimd §IV] |
//! | cwnd, ssthresh | `cwnd`, `ssthresh` | packets | as above |
//! | rwnd | least of `rwnd` and what the receiver advertises | packets | parameter, feedback |
//! | W | [`Aimd::window`] | packets | – |
//!
//! # Readings
//!
//! - Growth is per newly acknowledged packet, never per feedback message. The ACKs of packets that had left when the
//!   window was last decreased do not make it grow: they speak of the path before.
//! - "Outstanding" is what was outstanding when the feedback came that revealed the loss: the lost packet and those
//!   that the same feedback acknowledges are in it. A window that was full counts with its fraction: whole packets
//!   would make of beta = 0.875 at W = 10.5 a 0.83, and of a fair share 0.9 of it (docs/controllers/aimd.md).
//! - One decrease per window of data: losses of packets that had left at the last decrease are part of it.
//! - A loss in slow start leaves half of what is outstanding, or beta if that is less: one RTT earlier it was half.
//!   (ns-2 does the same; with beta = 0.875 it would take five RTTs of heavy loss.)
//! - "A small value" is `initial_window` at the start and after idle times [RFC 5681 §4.1], and 1 after a timeout
//!   [RFC 5681 §3.1]. A second timeout in a row leaves ssthresh as it is [RFC 5681 §3.1].
//! - cwnd stops at rwnd. (The paper lets it grow on without effect.) So a raised rwnd is filled by growth, one packet
//!   more per acknowledged one at most, and never by a burst.
//! - rwnd = 0: nothing is sent but a probe of one packet per RTO, so that its feedback can open the window.
//!
//! # Deviations
//!
//! - The window grows only while at least half of it was used in this RTT or the one before [RFC 7661 §4.3]: an
//!   encoder that sends less has not tested more.
//! - No faster than the flow's max_rate, or what the application wants, whatever the window; and no more than
//!   [`MAX_WINDOW`] packets.
//! - With `ecn`, a congestion mark counts as a loss [RFC 3168 §6.1.2].
//!
//! # Not implemented
//!
//! Retransmission: there is none in the paper either. A packet that a session sends again is a new one here; feedback on every
//! packet ([`Form::Ccfb`]) then takes the place of sack vectors.

use crate::controller::{Controller, LossPolicy, SendPoll, TimeoutRule, Windows};
use crate::facts::{Acked, Loss, Sent, Status};
use crate::feedback::Form;
use crate::pacer::Pacer;
use crate::param::{Allowed, FLAG, ParamError, ParamInfo};
use crate::registry::{Env, SchemeInfo, Settings};
use crate::rtt::{RtoParams, RttEstimator};
use fairpace_units::{Bounds, Bytes, Duration, Ecn, Instant, Kind, Rate};

/// The largest window in packets. Half of what a flow remembers by default, so that no outstanding
/// packet is forgotten; far below half of the 24-bit numbers.
pub const MAX_WINDOW: u32 = 8_192;

/// The share of the outstanding data that remains after a loss in slow start, at most.
const SLOW_START_BETA: f64 = 0.5;

/// ssthresh is no lower, in packets [RFC 5681 §3.1 eq. (4)].
const LEAST_SSTHRESH: f64 = 2.0;

/// The registry's entry.
pub const INFO: SchemeInfo = SchemeInfo {
    name: "aimd",
    title: "AIMD(alpha, beta): window-based datagram congestion control",
    source: "Cai, Shen, Mark, Pan, \"QoS Support for Multimedia Traffic in Wireless/IP Networks Using AIMD Protocols\"",
    make: |settings, env| Ok(Box::new(Aimd::new(settings, env)?)),
    params: &[
        ParamInfo {
            name: "alpha",
            symbol: "alpha",
            default: "friendly",
            allowed: &[
                Allowed::Number("packets", Bounds::above(0.0).up_to(100.0)),
                Allowed::Word("friendly", "3(1 - beta)/(1 + beta), as fast as TCP"),
            ],
            doc: "what the window grows by per RTT in congestion avoidance",
        },
        ParamInfo {
            name: "beta",
            symbol: "beta",
            default: "0.875",
            allowed: &[Allowed::Number("", Bounds::above(0.0).below(1.0))],
            doc: "what remains of the outstanding data after a loss; TCP: 0.5",
        },
        ParamInfo {
            name: "rwnd",
            symbol: "rwnd",
            default: "none",
            allowed: &[
                Allowed::Whole("packets", 1, MAX_WINDOW as u64),
                Allowed::Word("none", "what the receiver advertises"),
            ],
            doc: "bound of the window beside what the receiver advertises",
        },
        ParamInfo {
            name: "initial_window",
            symbol: "",
            default: "2",
            allowed: &[Allowed::Whole("packets", 1, 10)],
            doc: "window at the start and after idle times",
        },
        ParamInfo {
            name: "ecn",
            symbol: "",
            default: "off",
            allowed: FLAG,
            doc: "send ECN-capable packets; a mark counts as a loss",
        },
    ],
};

/// The increase per RTT with which AIMD(alpha, beta) is as fast as TCP, whatever the capacity, in
/// packets [aimd §III-A eq. (1)]:
///
/// ```text
///   alpha = 3 (1 - beta) / (1 + beta),   0 < beta < 1,   0 < alpha < 3
/// ```
///
/// ```
/// assert_eq!(fairpace_control::aimd::friendly_alpha(0.5), 1.0);
/// assert!((fairpace_control::aimd::friendly_alpha(0.875) - 0.2).abs() < 1e-15);
/// ```
pub fn friendly_alpha(beta: f64) -> f64 {
    3.0 * (1.0 - beta) / (1.0 + beta)
}

/// AIMD's constants, as its parameters name them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AimdParams {
    /// alpha: growth per RTT, packets.
    pub alpha: f64,
    /// beta: what remains after a decrease, in (0, 1).
    pub beta: f64,
    /// Bound of the window in packets, from 1; `None`: what the receiver advertises.
    pub rwnd: Option<u32>,
    /// cwnd at the start and after idle times, packets.
    pub initial_window: u32,
    /// Whether a congestion mark counts as a loss.
    pub ecn: bool,
}

impl AimdParams {
    /// Reads the settings.
    ///
    /// # Errors
    /// [`ParamError`] names the field, what was found and what is allowed.
    pub fn new(s: &Settings<'_>) -> Result<AimdParams, ParamError> {
        let beta = s.number("beta")?;
        Ok(AimdParams {
            alpha: match s.text("alpha").0 {
                "friendly" => friendly_alpha(beta),
                _ => s.number("alpha")?,
            },
            beta,
            rwnd: match s.text("rwnd").0 {
                "none" => None,
                _ => Some(s.whole("rwnd")? as u32),
            },
            initial_window: s.whole("initial_window")? as u32,
            ecn: s.flag("ecn")?,
        })
    }
}

/// The states of the picture above, and the window that the receiver has closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// cwnd is below ssthresh: one packet more per packet acknowledged.
    SlowStart,
    /// alpha packets more per RTT.
    CongestionAvoidance,
    /// A loss has lowered the window; nothing sent after it is acknowledged yet.
    Backoff,
    /// rwnd = 0: single probes only.
    Closed {
        /// The flow would be in Backoff if the window were open.
        backing_off: bool,
    },
}

impl State {
    /// As in events and series.
    fn name(self) -> &'static str {
        match self {
            State::SlowStart => "SlowStart",
            State::CongestionAvoidance => "CongestionAvoidance",
            State::Backoff => "Backoff",
            State::Closed { .. } => "Closed",
        }
    }

    /// Whether nothing sent after the last decrease is acknowledged yet.
    fn is_backing_off(self) -> bool {
        matches!(self, State::Backoff | State::Closed { backing_off: true })
    }
}

/// AIMD's sender.
#[derive(Clone, Debug)]
pub struct Aimd {
    params: AimdParams,
    packet_size: Bytes,
    min_rate: Rate,
    max_rate: Rate,
    /// `max_rate`, or what the application wants if that is less.
    limit: Rate,
    /// The rate told to the encoder before an RTT is known.
    start_rate: Option<Rate>,
    cwnd: f64,
    /// Infinite until the first loss.
    ssthresh: f64,
    /// The window that the receiver advertises; `None`: none.
    advertised: Option<u32>,
    /// Data packets neither acknowledged nor lost.
    outstanding: usize,
    /// The same before the feedback that came at `flight_at`.
    flight: usize,
    flight_at: Instant,
    next_seq: u64,
    /// The last packet that had left when the window was last decreased.
    recover: Option<u64>,
    state: State,
    /// The last timeout was not followed by an ACK.
    timed_out: bool,
    /// The most that was outstanding in the round before and in this one; a round ends with the ACK of `round_end`.
    peaks: [usize; 2],
    round_end: u64,
    last_sent: Option<Instant>,
    srtt: Option<Duration>,
    rto: Duration,
    pacer: Pacer,
    reason: &'static str,
}

impl Aimd {
    /// Reads the settings.
    ///
    /// # Errors
    /// [`ParamError`] names the field, what was found and what is allowed.
    pub fn new(settings: &Settings<'_>, env: &Env) -> Result<Aimd, ParamError> {
        let params = AimdParams::new(settings)?;
        let mut aimd = Aimd {
            packet_size: env.packet_size,
            min_rate: env.min_rate,
            max_rate: env.max_rate,
            limit: env.max_rate,
            start_rate: env.start_rate,
            cwnd: f64::from(params.initial_window),
            ssthresh: f64::INFINITY,
            advertised: None,
            outstanding: 0,
            flight: 0,
            flight_at: Instant::ZERO,
            next_seq: 0,
            recover: None,
            state: State::SlowStart,
            timed_out: false,
            peaks: [0, 0],
            round_end: 0,
            last_sent: None,
            srtt: None,
            rto: RtoParams::default().initial,
            pacer: Pacer::starting(Instant::NEVER),
            reason: "not started",
            params,
        };
        aimd.bound();
        Ok(aimd)
    }

    /// The congestion window, packets; from 1 to [`Aimd::rwnd`], or 1 if that is 0.
    pub fn cwnd(&self) -> f64 {
        self.cwnd
    }

    /// The slow start threshold, packets; infinite until the first loss.
    pub fn ssthresh(&self) -> f64 {
        self.ssthresh
    }

    /// rwnd in force, packets: the least of the parameter, what the receiver advertises, and [`MAX_WINDOW`].
    pub fn rwnd(&self) -> u32 {
        MAX_WINDOW.min(self.params.rwnd.unwrap_or(u32::MAX)).min(self.advertised.unwrap_or(u32::MAX))
    }

    /// W = min(cwnd, rwnd), packets.
    pub fn window(&self) -> f64 {
        self.cwnd.min(f64::from(self.rwnd()))
    }

    /// The constants in force; `alpha` is the number, whichever way it was given.
    pub fn params(&self) -> &AimdParams {
        &self.params
    }

    /// The state by rwnd, by whether a decrease is being waited out, and by cwnd and ssthresh, of which something
    /// has changed.
    fn review(&mut self, backing_off: bool) {
        self.enter(match () {
            () if self.rwnd() == 0 => State::Closed { backing_off },
            () if backing_off => State::Backoff,
            () if self.in_slow_start() => State::SlowStart,
            () => State::CongestionAvoidance,
        });
    }

    /// The one place where the state changes.
    fn enter(&mut self, state: State) {
        use State::{Backoff, Closed, CongestionAvoidance, SlowStart};
        let legal = match (self.state, state) {
            (SlowStart | CongestionAvoidance | Backoff, _) => true,
            // A loss or an ACK while rwnd is 0; a window that opens goes on where it was closed.
            (Closed { .. }, Closed { .. } | SlowStart | CongestionAvoidance) => true,
            (Closed { backing_off }, Backoff) => backing_off,
        };
        assert!(legal, "AIMD may not go from {} to {}", self.state.name(), state.name());
        self.state = state;
    }

    /// cwnd stops at rwnd.
    fn bound(&mut self) {
        self.cwnd = self.cwnd.min(f64::from(self.rwnd())).max(1.0);
    }

    fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Keeps what was outstanding before the feedback of this instant.
    fn note_flight(&mut self, now: Instant) {
        if now != self.flight_at {
            (self.flight_at, self.flight) = (now, self.outstanding);
        }
    }

    /// Whether half of the window, or more, was used in this round or the one before. Packet `acked` may begin a new
    /// round.
    fn window_used(&mut self, acked: u64) -> bool {
        if acked >= self.round_end {
            self.peaks = [self.peaks[1], self.flight];
            self.round_end = self.next_seq;
        }
        2.0 * self.peaks[0].max(self.peaks[1]) as f64 >= self.window().floor()
    }

    /// So much of the window is in use: what is outstanding, or all of it if there is no room for another packet. After
    /// a lowered rwnd more than the window may be.
    fn in_use(&self, outstanding: usize) -> f64 {
        let window = if (outstanding + 1) as f64 > self.window() { self.window() } else { 0.0 };
        window.max(outstanding as f64)
    }

    fn grow(&mut self) {
        let (step, reason) = if self.in_slow_start() {
            (1.0, "slow start")
        } else {
            ((self.params.alpha / self.cwnd).min(1.0), "additive increase")
        };
        self.cwnd += step;
        self.reason = reason;
        self.bound();
    }

    /// Packet `seq` was lost or marked.
    fn decrease(&mut self, seq: u64, reason: &'static str) {
        if self.recover.is_some_and(|last| seq <= last) {
            return;
        }
        let beta = if self.in_slow_start() { self.params.beta.min(SLOW_START_BETA) } else { self.params.beta };
        let left = beta * self.in_use(self.flight);
        self.ssthresh = left.max(LEAST_SSTHRESH);
        // After a lowered rwnd or an idle time more than the window may be outstanding: no loss raises it.
        self.cwnd = self.cwnd.min(left);
        self.bound();
        self.recover = self.next_seq.checked_sub(1);
        self.review(true);
        self.reason = reason;
    }

    fn rate(&self) -> Rate {
        let bytes = self.window() * self.packet_size.as_f64();
        let rate = match (self.srtt, self.start_rate) {
            (Some(srtt), _) => Rate::bps(bytes * 8.0 / srtt.as_secs_f64()),
            (None, Some(start)) => start,
            (None, None) => Rate::bps(bytes * 8.0 / self.rto.as_secs_f64()),
        };
        rate.min(self.limit).max(self.min_rate)
    }
}

impl Controller for Aimd {
    fn start(&mut self, now: Instant, srtt: Option<Duration>) {
        self.pacer = Pacer::starting(now);
        self.srtt = srtt;
        self.reason = "start";
    }

    fn on_sent(&mut self, now: Instant, sent: &Sent) {
        if sent.kind != Kind::Data {
            return;
        }
        if self.last_sent.is_some_and(|last| now.since(last) > self.rto)
            && self.cwnd > f64::from(self.params.initial_window)
        {
            self.cwnd = f64::from(self.params.initial_window);
            self.review(self.state.is_backing_off());
            self.reason = "back from idle";
        }
        self.last_sent = Some(now);
        self.next_seq = sent.seq + 1;
        self.outstanding += 1;
        (self.flight_at, self.flight) = (now, self.outstanding);
        self.peaks[1] = self.peaks[1].max(self.outstanding);
        let gap_s = sent.size.as_f64() * 8.0 / self.limit.as_bps();
        self.pacer.sent(now, gap_s, self.srtt.unwrap_or(Duration::ZERO));
    }

    fn on_ack(&mut self, now: Instant, ack: &Acked, rtt: &RttEstimator) {
        if ack.kind != Kind::Data {
            return;
        }
        self.note_flight(now);
        self.outstanding = ack.outstanding;
        self.timed_out = false;
        if ack.rtt.is_some() {
            self.srtt = rtt.srtt();
            self.rto = rtt.rto(&RtoParams::default());
        }
        let used = self.window_used(ack.seq);
        if self.params.ecn && ack.ecn == Ecn::Ce {
            self.decrease(ack.seq, "congestion mark");
        }
        if self.recover.is_none_or(|last| ack.seq > last) {
            if used {
                self.grow();
            }
            self.review(false);
        }
    }

    fn on_loss(&mut self, now: Instant, loss: &Loss, _rtt: &RttEstimator) {
        self.note_flight(now);
        self.outstanding = self.outstanding.saturating_sub(1);
        self.decrease(loss.seq, "packet lost");
    }

    fn on_timeout(&mut self, _now: Instant, rtt: &RttEstimator) {
        let in_use = self.in_use(self.outstanding);
        (self.outstanding, self.flight) = (0, 0);
        self.rto = rtt.rto(&RtoParams::default());
        self.recover = self.next_seq.checked_sub(1);
        if self.rwnd() == 0 {
            return self.review(false);
        }
        if !self.timed_out {
            self.ssthresh = (in_use / 2.0).max(LEAST_SSTHRESH);
        }
        self.timed_out = true;
        self.cwnd = 1.0;
        self.review(false);
        self.reason = "timeout";
    }

    fn on_timer(&mut self, _now: Instant, _rtt: &RttEstimator) {}

    fn set_demand(&mut self, _now: Instant, max: Option<Rate>) {
        self.limit = max.unwrap_or(Rate::MAX).min(self.max_rate).max(self.min_rate);
    }

    fn set_window_limit(&mut self, _now: Instant, rwnd: u32) {
        self.advertised = Some(rwnd);
        self.bound();
        self.review(self.state.is_backing_off());
    }

    fn windows(&self) -> Option<Windows> {
        Some(Windows { cwnd: self.cwnd, rwnd: self.rwnd() })
    }

    fn feedback_form(&self) -> Form {
        Form::SackVector
    }

    fn heeds_ecn(&self) -> bool {
        self.params.ecn
    }

    fn poll_send(&mut self, now: Instant, has_data: bool) -> SendPoll {
        if (self.outstanding + 1) as f64 > self.window() {
            let probe = self.rwnd() == 0 && self.outstanding == 0;
            if !probe {
                return SendPoll::WaitForFeedback;
            }
            let due = self.last_sent.map_or(now, |last| last + self.rto);
            if due > now {
                return SendPoll::Wait(due);
            }
        }
        self.pacer.poll_data(now, has_data)
    }

    fn poll_timer(&self) -> Instant {
        Instant::NEVER
    }

    fn target_rate(&self) -> Rate {
        self.rate()
    }

    fn status(&self) -> Status {
        Status { state: self.state.name(), rate: self.rate(), reason: self.reason, p: None }
    }

    fn loss_policy(&self) -> LossPolicy {
        LossPolicy {
            dup_threshold: 3,
            timeout: TimeoutRule::SinceLastAck,
            rto: RtoParams { backoff: true, ..RtoParams::default() },
            ..LossPolicy::default()
        }
    }
}

#[cfg(test)]
mod tests;
