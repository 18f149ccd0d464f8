//! RAP: the rate adaptation protocol, AIMD by the interval between packets.
//!
//! Source: `rap` (Rejaie, Handley, Estrin: "RAP: An end-to-end rate-based congestion control
//! mechanism for realtime streams in the Internet", INFOCOM 1999), §III; where it is silent, ns-2
//! 2.35's agent, whose measured behaviour this follows. The peer of RCS in `rcs.fig17` to
//! `rcs.fig22`. Read `pacer.rs` first.
//!
//! ```text
//!   every SRTT without a loss:  S <- S + 1/SRTT            (IPG <- IPG * SRTT / (IPG + SRTT))
//!   on a loss:                  S <- S/2, then no cut for losses of packets already sent
//!   fine grain, every packet:   gap = IPG * FRTT/XRTT
//! ```
//!
//! # Symbols
//!
//! | paper | here | unit | set |
//! | --- | --- | --- | --- |
//! | IPG = 1/S | `pps` is S | packets/s | first RTT, increase, loss |
//! | SRTT, RTT variance | [`RttEstimator`], both gains delta = 1/2 | s | each ACK |
//! | alpha | one packet per SRTT each SRTT | packets | constant |
//! | beta | 1/2, what remains of S | – | constant |
//! | mu, phi | `mu`, `phi`: timeout = mu·SRTT + phi·variance | – | 1.2, 4 |
//! | K_frtt, K_xrtt | `kfrtt`, `kxrtt`: gains of FRTT, XRTT | – | 0.9, 0.01 |
//!
//! # Readings
//!
//! - No slow start: the first gap is the first RTT. Before it is known, a packet every 2 s (ns-2).
//! - A loss is three later packets acknowledged, or the timeout of that packet; both are the same
//!   loss event if the packet was in flight at the last cut ("cluster losses").
//! - The increase is withheld when under half of the permitted packets were sent in the last SRTT
//!   (ns-2's `dpthresh_`), and its clock starts again at a cut (ns-2).
//! - A cut by timeout costs the packet that was due: the next leaves one new gap later (ns-2).
//!
//! # Deviations
//!
//! - The timeout is checked when it expires; ns-2 checks when a packet is due, up to one gap later.
//! - A rate kept within the flow's limits; neither paper nor ns-2 has any.
//! - Off the wire of a simulation ([`Safety::Default`]) the timeout has a granularity of 10 ms, so
//!   that a driver's lateness on a path of 1 ms is not a loss.
//! - The gap is for a full packet; a shorter one uses proportionally less.
//!
//! # Not implemented
//!
//! Quality adaptation (layers), and the paper's ACK redundancy (our feedback names every packet).

use crate::controller::{Controller, LossPolicy, SendPoll, TimeoutRule};
use crate::facts::{Acked, Loss, LossHow, Sent, Status};
use crate::pacer::{Pacer, seconds};
use crate::param::{Allowed, FLAG, ParamError, ParamInfo};
use crate::registry::{Env, Safety, SchemeInfo, Settings};
use crate::rtt::{RtoParams, RttEstimator, RttParams};
use fairpace_units::{Bounds, Bytes, Duration, Instant, Rate};

/// The registry's entry.
pub const INFO: SchemeInfo = SchemeInfo {
    name: "rap",
    title: "RAP: rate adaptation protocol",
    source: "Rejaie, Handley, Estrin, INFOCOM 1999; behaviour as measured of ns-2 2.35",
    make: |settings, env| Ok(Box::new(Rap::new(settings, env)?)),
    params: &[
        ParamInfo {
            name: "fine_grain",
            symbol: "",
            default: "off",
            allowed: FLAG,
            doc: "stretch each gap by the ratio of short-term to long-term RTT",
        },
        ParamInfo {
            name: "kfrtt",
            symbol: "K_frtt",
            default: "0.9",
            allowed: &[Allowed::Number("", Bounds::of(0.0, 1.0))],
            doc: "gain of the short-term RTT (fine grain only)",
        },
        ParamInfo {
            name: "kxrtt",
            symbol: "K_xrtt",
            default: "0.01",
            allowed: &[Allowed::Number("", Bounds::of(0.0, 1.0))],
            doc: "gain of the long-term RTT (fine grain only)",
        },
        ParamInfo {
            name: "mu",
            symbol: "mu",
            default: "1.2",
            allowed: &[Allowed::Number("", Bounds::of(1.0, 10.0))],
            doc: "timeout: multiple of SRTT",
        },
        ParamInfo {
            name: "phi",
            symbol: "phi",
            default: "4",
            allowed: &[Allowed::Number("", Bounds::of(0.0, 100.0))],
            doc: "timeout: multiple of the RTT variance",
        },
        ParamInfo {
            name: "delta",
            symbol: "delta",
            default: "0.5",
            allowed: &[Allowed::Number("", Bounds::above(0.0).up_to(1.0))],
            doc: "gain of SRTT and of the variance",
        },
        ParamInfo {
            name: "min_sent",
            symbol: "dpthresh",
            default: "0.5",
            allowed: &[Allowed::Number("", Bounds::of(0.0, 1.0))],
            doc: "share of the permitted packets that must have been sent for the rate to grow",
        },
        ParamInfo {
            name: "dup_threshold",
            symbol: "",
            default: "3",
            allowed: &[Allowed::Whole("", 1, 100)],
            doc: "later packets acknowledged that make a packet lost",
        },
        ParamInfo {
            name: "initial_gap",
            symbol: "IPG_0",
            default: "2 s",
            allowed: &[Allowed::Duration(Bounds::of(Duration::from_millis(1), Duration::from_secs(60)))],
            doc: "gap between packets, and timeout, until the first RTT is known",
        },
    ],
};

/// RAP's constants, as its parameters name them.
#[derive(Clone, Debug, PartialEq)]
pub struct RapParams {
    /// Fine-grain adaptation.
    pub fine_grain: bool,
    /// K_frtt.
    pub kfrtt: f64,
    /// K_xrtt.
    pub kxrtt: f64,
    /// mu.
    pub mu: f64,
    /// phi.
    pub phi: f64,
    /// delta.
    pub delta: f64,
    /// ns-2's dpthresh / 100.
    pub min_sent: f64,
    /// Later packets acknowledged that make a packet lost.
    pub dup_threshold: u8,
    /// IPG before any RTT.
    pub initial_gap: Duration,
}

impl RapParams {
    /// Reads the settings.
    ///
    /// # Errors
    /// [`ParamError`] names the field, what was found and what is allowed.
    pub fn new(s: &Settings<'_>) -> Result<RapParams, ParamError> {
        Ok(RapParams {
            fine_grain: s.flag("fine_grain")?,
            kfrtt: s.number("kfrtt")?,
            kxrtt: s.number("kxrtt")?,
            mu: s.number("mu")?,
            phi: s.number("phi")?,
            delta: s.number("delta")?,
            min_sent: s.number("min_sent")?,
            dup_threshold: s.whole("dup_threshold")? as u8,
            initial_gap: s.duration("initial_gap")?,
        })
    }
}

/// RAP's sender.
#[derive(Clone, Debug)]
pub struct Rap {
    params: RapParams,
    packet_size: Bytes,
    safety: Safety,
    min_pps: f64,
    max_pps: f64,
    /// `max_pps`, or what the application wants if that is less.
    limit_pps: f64,
    /// S = 1/IPG.
    pps: f64,
    /// SRTT in seconds; `None` before the first sample.
    srtt_s: Option<f64>,
    /// FRTT and XRTT in seconds.
    frtt_s: f64,
    xrtt_s: f64,
    pacer: Pacer,
    last_sent: Instant,
    next_increase: Instant,
    /// Data packets since the last increase, or since what restarted its clock; partial packets
    /// count as such.
    sent: f64,
    /// The highest number sent at the last cut: losses up to it belong to that cut. `None` before the first.
    recover: Option<u64>,
    reason: &'static str,
}

impl Rap {
    /// Reads the settings.
    ///
    /// # Errors
    /// [`ParamError`] names the field, what was found and what is allowed.
    pub fn new(settings: &Settings<'_>, env: &Env) -> Result<Rap, ParamError> {
        let params = RapParams::new(settings)?;
        let pps = |rate: Rate| rate.as_packets_per_second(env.packet_size);
        let mut rap = Rap {
            packet_size: env.packet_size,
            safety: env.safety,
            min_pps: pps(env.min_rate),
            max_pps: pps(env.max_rate),
            limit_pps: pps(env.max_rate),
            pps: 0.0,
            srtt_s: None,
            frtt_s: 0.0,
            xrtt_s: 0.0,
            pacer: Pacer::starting(Instant::NEVER),
            last_sent: Instant::ZERO,
            next_increase: Instant::NEVER,
            sent: 0.0,
            recover: None,
            reason: "no RTT known yet",
            params,
        };
        rap.set_rate(1.0 / rap.params.initial_gap.as_secs_f64(), "no RTT known yet");
        Ok(rap)
    }

    /// The first RTT is known: IPG = RTT, and the increase's clock starts.
    fn begin(&mut self, now: Instant, rtt: Duration) {
        let rtt_s = rtt.as_secs_f64();
        (self.frtt_s, self.xrtt_s) = (rtt_s, rtt_s);
        self.srtt_s = Some(rtt_s);
        self.set_rate(1.0 / rtt_s, "first RTT");
        self.restart_increase(now);
    }

    fn restart_increase(&mut self, now: Instant) {
        self.next_increase = self.srtt_s.map_or(Instant::NEVER, |s| now + seconds(s));
        self.sent = 0.0;
    }

    fn cut(&mut self, now: Instant, highest_sent: u64, how: LossHow) {
        self.recover = Some(highest_sent);
        let reason = match how {
            LossHow::LaterAcks => "packet lost",
            LossHow::Timeout => "timeout",
        };
        self.set_rate(self.pps / 2.0, reason);
        self.restart_increase(now);
        if how == LossHow::Timeout {
            self.pacer.hold_until(now + seconds(self.gap_s()));
        }
    }

    fn set_rate(&mut self, pps: f64, reason: &'static str) {
        self.pps = pps.min(self.limit_pps).max(self.min_pps);
        self.reason = reason;
    }

    /// The gap after a full packet: IPG, stretched by FRTT/XRTT with fine grain, within the limits.
    fn gap_s(&self) -> f64 {
        let ratio = if self.params.fine_grain && self.xrtt_s > 0.0 { self.frtt_s / self.xrtt_s } else { 1.0 };
        (ratio / self.pps).clamp(1.0 / self.max_pps, 1.0 / self.min_pps)
    }

    fn rate(&self) -> Rate {
        Rate::packets_per_second(self.pps, self.packet_size)
    }
}

impl Controller for Rap {
    fn start(&mut self, now: Instant, srtt: Option<Duration>) {
        self.pacer = Pacer::starting(now);
        if let Some(rtt) = srtt {
            self.begin(now, rtt);
        }
    }

    fn on_sent(&mut self, now: Instant, sent: &Sent) {
        let share = sent.size.as_f64() / self.packet_size.as_f64();
        self.sent += share;
        self.last_sent = now;
        let slack = self.srtt_s.map_or(Duration::ZERO, seconds);
        self.pacer.sent(now, self.gap_s() * share, slack);
    }

    fn on_ack(&mut self, now: Instant, ack: &Acked, rtt: &RttEstimator) {
        let Some(sample) = ack.rtt else { return };
        if self.srtt_s.is_none() {
            self.begin(now, sample);
            // The next packet is due one RTT after the last, which is now.
            self.pacer = Pacer::starting(self.last_sent + sample);
            return;
        }
        self.srtt_s = rtt.srtt().map(|s| s.as_secs_f64());
        let sample_s = sample.as_secs_f64();
        self.frtt_s += self.params.kfrtt * (sample_s - self.frtt_s);
        self.xrtt_s += self.params.kxrtt * (sample_s - self.xrtt_s);
    }

    fn on_loss(&mut self, now: Instant, loss: &Loss, _rtt: &RttEstimator) {
        if self.recover.is_none_or(|last| loss.seq > last) {
            self.cut(now, loss.highest_sent, loss.how);
        }
    }

    fn on_timeout(&mut self, _now: Instant, _rtt: &RttEstimator) {}

    fn on_timer(&mut self, now: Instant, _rtt: &RttEstimator) {
        let Some(srtt_s) = self.srtt_s else { return };
        // The packets that could have been sent since the clock started; a driver that slept is excused.
        if self.sent >= self.params.min_sent * self.pps * srtt_s {
            self.set_rate(self.pps + 1.0 / srtt_s, "timed increase");
        } else {
            self.reason = "increase withheld: too little sent";
        }
        self.sent = 0.0;
        let next = self.next_increase + seconds(srtt_s);
        self.next_increase = if next > now { next } else { now + seconds(srtt_s) };
    }

    fn set_demand(&mut self, _now: Instant, max: Option<Rate>) {
        let wanted = max.unwrap_or(Rate::MAX).as_packets_per_second(self.packet_size);
        self.limit_pps = wanted.min(self.max_pps).max(self.min_pps);
        if self.pps > self.limit_pps {
            self.set_rate(self.limit_pps, "the application wants less");
        }
    }

    fn poll_send(&mut self, now: Instant, has_data: bool) -> SendPoll {
        self.pacer.poll_data(now, has_data)
    }

    fn poll_timer(&self) -> Instant {
        self.next_increase
    }

    fn target_rate(&self) -> Rate {
        self.rate()
    }

    fn status(&self) -> Status {
        let state = if self.srtt_s.is_none() { "Waiting" } else { "Adapting" };
        Status { state, rate: self.rate(), reason: self.reason, p: None }
    }

    fn loss_policy(&self) -> LossPolicy {
        LossPolicy {
            dup_threshold: self.params.dup_threshold,
            timeout: TimeoutRule::PerPacket,
            rtt: RttParams {
                alpha: self.params.delta,
                beta: self.params.delta,
                initial_var: 0.0,
                ..RttParams::default()
            },
            rto: RtoParams {
                srtt_factor: self.params.mu,
                var_factor: self.params.phi,
                min: Duration::ZERO,
                granularity: match self.safety {
                    Safety::Paper => Duration::ZERO,
                    Safety::Default => Duration::from_millis(10),
                },
                initial: self.params.initial_gap,
                ..RtoParams::default()
            },
        }
    }
}

#[cfg(test)]
mod tests;
