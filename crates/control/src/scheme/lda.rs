//! LDA: the loss-delay based adjustment algorithm, on RTCP receiver reports; and LDAF, which does not shrink its increase.
//!
//! Source: [tpba §3], Table 1 and Fig. 2, which restates Sisalem and Schulzrinne (NOSSDAV 1998) for one receiver; LDAF is
//! [tpba §6.2]'s. Read `fixed.rs` first; the packet pairs are in `packet_pair.rs`.
//!
//! ```text
//!   every T_adapt, p_loss = 0:  if r < b:                                                  (A)
//!                                   AIR <- AIR * (1 - r/b)      LDAF: AIR_0 * (1 - r/b)    (B)
//!                                   AIR <- min(AIR, M/(2 tau) * (T_adapt/tau + 1))         (C)
//!                                   r <- r + AIR
//!                               if r >= b: r <- b                                          (A)
//!                  p_loss > 0:  AIR <- AIR_0;  r <- max(r * (1 - p_loss * R_f), r_min)
//! ```
//!
//! # Symbols
//!
//! | paper | here | unit | set |
//! | --- | --- | --- | --- |
//! | r, r_0, r_min | `r`, `r_0`, `r_min` | bits/s | adaptation point; 10 kbit/s; the flow's min_rate |
//! | AIR, AIR_0 | `air`, `air_0` | bits/s | adaptation point; 10 kbit/s |
//! | R_f | `r_f` | – | 3 |
//! | b | `bottleneck` | bits/s | each report, by packet pairs |
//! | p_loss | `tally`: lost / expected | – | since the last adaptation point |
//! | T_adapt, T_rtcp | `t_adapt`, `t_rtcp` | s | 3, 1 |
//! | M, tau | the packet size; SRTT by LSR and DLSR | bits, s | –; each report |
//!
//! # Readings
//!
//! - (C) is printed broken; it is what TCP would add until the next adaptation point, half a packet per RTT in each.
//! - p_loss is over all reports since the last adaptation point, by the cumulative count of lost packets: the 8-bit fraction
//!   is nought below one packet in 256. Where a report has no such count its fraction is taken.
//! - While b is not known (fewer than eight pairs), (A) and (B) have nothing to work with; (C) alone bounds AIR. While no
//!   RTT is known r does not grow.
//! - Without a report since the last adaptation point r stays.
//!
//! # Deviations
//!
//! - r_min holds everywhere; r * (1 - p_loss * R_f) is negative from p_loss = 1/R_f on.
//! - Off the wire of a simulation ([`Safety::Default`]) packets that no report covers for 3 T_rtcp (T_adapt if that is longer)
//!   halve r at each adaptation point [RFC 8085 §3.1.1]; and lines (A) keep r within twice what arrives, as reports tell, so
//!   that neither an idle application nor an overstated b lets it grow. (B) keeps the b of the pairs: with twice what
//!   arrives in its place AIR would halve at each step, and r stop at r_0 + AIR_0.
//! - b counts while more than half of the last pairs left together.
//! - A flow whose application wants less sends less; r stays.
//!
//! # Not implemented
//!
//! Several receivers. (The original is for multicast.)

use crate::breaker::ReceiverReport;
use crate::controller::{Controller, LossPolicy, SendPoll, TimeoutRule};
use crate::facts::{Acked, Loss, Sent, Status};
use crate::feedback::Form;
use crate::pacer::Pacer;
use crate::packet_pair::PERIOD;
use crate::param::{Allowed, ParamError, ParamInfo};
use crate::registry::{Env, Safety, SchemeInfo, Settings};
use crate::rtt::RttEstimator;
use fairpace_units::{Bounds, Bytes, Duration, Instant, Rate};
use tally::Tally;

pub(crate) mod tally;

/// The registry's entry.
pub const LDA: SchemeInfo = SchemeInfo {
    name: "lda",
    title: "LDA: loss-delay based adjustment",
    source: SOURCE,
    make: |settings, env| Ok(Box::new(Lda::new(settings, env)?)),
    params: PARAMS,
};

/// The registry's entry of the variant with a fixed AIR.
pub const LDAF: SchemeInfo = SchemeInfo {
    name: "ldaf",
    title: "LDAF: LDA with a fixed AIR",
    source: SOURCE,
    make: |settings, env| Ok(Box::new(Lda::new(settings, env)?)),
    params: PARAMS,
};

const SOURCE: &str = "Sisalem, Schulzrinne, NOSSDAV 1998; as in Tobe et al., IPSJ Journal 2000";

pub(crate) const R_MIN: ParamInfo = ParamInfo {
    name: "r_min",
    symbol: "r_min",
    default: "min_rate",
    allowed: &[Allowed::FlowRate, Allowed::Word("min_rate", "the flow's lowest")],
    doc: "no loss lowers the rate below this",
};

pub(crate) const R_F: ParamInfo = ParamInfo {
    name: "r_f",
    symbol: "R_f",
    default: "3",
    allowed: &[Allowed::Number("", Bounds::of(0.0, 100.0))],
    doc: "reduction factor: a loss of p takes R_f times p off the rate",
};

pub(crate) const T_ADAPT: ParamInfo = ParamInfo {
    name: "t_adapt",
    symbol: "T_adapt",
    default: "3 s",
    allowed: &[Allowed::Duration(Bounds::of(Duration::from_millis(10), Duration::from_secs(3_600)))],
    doc: "time between two adaptation points",
};

pub(crate) const T_RTCP: ParamInfo = ParamInfo {
    name: "t_rtcp",
    symbol: "T_rtcp",
    default: "1 s",
    allowed: &[Allowed::Duration(Bounds::of(Duration::from_millis(10), Duration::from_secs(5)))],
    doc: "how often the receiver reports",
};

const PARAMS: &[ParamInfo] = &[
    ParamInfo {
        name: "r_0",
        symbol: "r_0",
        default: "start",
        allowed: &[Allowed::FlowRate, Allowed::Word("start", "the flow's start rate, 10 kbit/s if it has none")],
        doc: "the rate at the start",
    },
    R_MIN,
    ParamInfo {
        name: "air_0",
        symbol: "AIR_0",
        default: "10 kbit/s",
        allowed: &[Allowed::Rate],
        doc: "additive increase rate: at most that much more at each adaptation point",
    },
    R_F,
    T_ADAPT,
    T_RTCP,
];

/// The common part of LDA and TPBA's running period: how the rate falls.
#[derive(Clone, Debug)]
pub(crate) struct Reduction {
    pub(crate) r_min: Rate,
    r_f: f64,
    pub(crate) t_adapt: Duration,
    pub(crate) t_rtcp: Duration,
    /// Halve when nothing is heard.
    halve: bool,
}

impl Reduction {
    pub(crate) fn new(settings: &Settings<'_>, env: &Env) -> Result<Reduction, ParamError> {
        Ok(Reduction {
            r_min: settings.rate_or("r_min", "min_rate", env.min_rate, env)?,
            r_f: settings.number("r_f")?,
            t_adapt: settings.duration("t_adapt")?,
            t_rtcp: settings.duration("t_rtcp")?,
            halve: env.safety == Safety::Default,
        })
    }

    /// r * (1 - p_loss * R_f), at least r_min.
    pub(crate) fn after_loss(&self, r: Rate, p: f64) -> Rate {
        (r * (1.0 - p * self.r_f)).max(self.r_min)
    }

    /// Nothing was heard since the last adaptation point: half of r, if reports should have come.
    pub(crate) fn after_silence(&self, now: Instant, r: Rate, tally: &Tally) -> Option<Rate> {
        let patience = self.t_adapt.max(self.t_rtcp * 3);
        let overdue = tally.awaited().is_some_and(|since| now.since(since) >= patience);
        (self.halve && overdue).then(|| (r / 2.0).max(self.r_min))
    }
}

/// LDA or LDAF.
#[derive(Clone, Debug)]
pub struct Lda {
    reduction: Reduction,
    air_0: Rate,
    fixed_air: bool,
    packet_size: Bytes,
    min_rate: Rate,
    max_rate: Rate,
    safety: Safety,
    r: Rate,
    /// The most that the application wants.
    limit: Rate,
    air: Rate,
    bottleneck: Option<Rate>,
    rtt: Option<Duration>,
    tally: Tally,
    next_adapt: Instant,
    pacer: Pacer,
    pairs: Pairs,
    p: Option<f64>,
    reason: &'static str,
}

impl Lda {
    /// Reads the settings.
    ///
    /// # Errors
    /// [`ParamError`] names the field, what was found and what is allowed.
    pub fn new(settings: &Settings<'_>, env: &Env) -> Result<Lda, ParamError> {
        let start = env.start_rate.unwrap_or(Rate::kbps(10.0)).clamp(env.min_rate, env.max_rate);
        let reduction = Reduction::new(settings, env)?;
        let air_0 = settings.rate("air_0", env)?;
        Ok(Lda {
            r: settings.rate_or("r_0", "start", start, env)?.max(reduction.r_min),
            reduction,
            air_0,
            air: air_0,
            fixed_air: settings.scheme() == LDAF.name,
            packet_size: env.packet_size,
            min_rate: env.min_rate,
            max_rate: env.max_rate,
            safety: env.safety,
            limit: env.max_rate,
            bottleneck: None,
            rtt: None,
            tally: Tally::new(),
            next_adapt: Instant::NEVER,
            pacer: Pacer::starting(Instant::NEVER),
            pairs: Pairs::new(),
            p: None,
            reason: "r_0",
        })
    }

    /// The sent rate.
    fn sending(&self) -> Rate {
        self.r.min(self.limit).max(self.min_rate)
    }

    fn set_rate(&mut self, r: Rate, reason: &'static str) {
        self.r = r.clamp(self.reduction.r_min, self.max_rate);
        self.reason = reason;
        self.regap();
    }

    fn regap(&mut self) {
        self.pacer.regap(self.pairs.owed_bits / self.sending().as_bps());
    }

    fn adapt(&mut self, now: Instant) {
        let Some(heard) = self.tally.take() else {
            match self.reduction.after_silence(now, self.r, &self.tally) {
                Some(r) => {
                    self.air = self.air_0;
                    self.set_rate(r, "no reports: halved");
                }
                None => self.reason = "no report",
            }
            return;
        };
        self.p = Some(heard.p);
        if heard.p > 0.0 {
            self.air = self.air_0;
            self.set_rate(self.reduction.after_loss(self.r, heard.p), "packets lost");
            return;
        }
        let b = self.bottleneck.filter(|_| self.pairs.are_believed());
        let twice = heard.delivered.filter(|_| self.safety == Safety::Default).map(|d| d * 2.0);
        let bound = b.unwrap_or(Rate::MAX).min(twice.unwrap_or(Rate::MAX));
        let mut r = self.r;
        if r < bound {
            let air = if self.fixed_air { self.air_0 } else { self.air };
            self.air = (air * b.map_or(1.0, |b| 1.0 - r.as_bps() / b.as_bps())).min(self.tcp_increase());
            r = r + self.air;
        }
        if r >= bound {
            self.set_rate(bound, "at the bottleneck's rate, or twice what arrives");
        } else {
            self.set_rate(r, "no loss");
        }
    }

    /// (C): what TCP would add in T_adapt; nothing while no RTT is known.
    fn tcp_increase(&self) -> Rate {
        let Some(tau) = self.rtt.map(|rtt| rtt.as_secs_f64()).filter(|tau| *tau > 0.0) else { return Rate::ZERO };
        let bits = self.packet_size.as_f64() * 8.0;
        Rate::bps(bits / (2.0 * tau) * (self.reduction.t_adapt.as_secs_f64() / tau + 1.0))
    }
}

impl Controller for Lda {
    fn start(&mut self, now: Instant, srtt: Option<Duration>) {
        self.pacer = Pacer::starting(now);
        self.rtt = srtt;
        self.next_adapt = now + self.reduction.t_adapt;
    }

    fn on_sent(&mut self, now: Instant, sent: &Sent) {
        self.tally.on_sent(now, sent.seq, sent.size);
        let rate = self.sending();
        self.pairs.on_sent(now, sent, rate, self.max_rate);
        self.pacer.sent(now, self.pairs.owed_bits / rate.as_bps(), self.rtt.unwrap_or_default());
    }

    fn on_sent_unnumbered(&mut self, now: Instant, size: Bytes) {
        self.pairs.owed_bits = size.as_f64() * 8.0;
        self.pacer.sent(now, self.pairs.owed_bits / self.sending().as_bps(), self.rtt.unwrap_or_default());
    }

    fn on_ack(&mut self, _now: Instant, _ack: &Acked, _rtt: &RttEstimator) {}

    fn on_loss(&mut self, _now: Instant, _loss: &Loss, _rtt: &RttEstimator) {}

    fn on_receiver_report(&mut self, now: Instant, report: &ReceiverReport, rtt: &RttEstimator) {
        self.tally.on_report(now, report);
        self.rtt = rtt.srtt().or(self.rtt);
        if let Some(b) = report.bottleneck.filter(|b| *b > Rate::ZERO) {
            self.bottleneck = Some(b.min(self.max_rate));
        }
    }

    fn on_timeout(&mut self, _now: Instant, _rtt: &RttEstimator) {}

    fn on_timer(&mut self, now: Instant, _rtt: &RttEstimator) {
        self.adapt(now);
        self.next_adapt = after(self.next_adapt, self.reduction.t_adapt, now);
    }

    fn set_demand(&mut self, _now: Instant, max: Option<Rate>) {
        self.limit = max.unwrap_or(self.max_rate);
        self.regap();
    }

    fn feedback_form(&self) -> Form {
        Form::Reports
    }

    fn report_interval(&self) -> Option<Duration> {
        Some(self.reduction.t_rtcp)
    }

    fn poll_send(&mut self, now: Instant, has_data: bool) -> SendPoll {
        self.pacer.poll_data(now, has_data)
    }

    fn poll_timer(&self) -> Instant {
        self.next_adapt
    }

    fn target_rate(&self) -> Rate {
        self.sending()
    }

    fn status(&self) -> Status {
        Status { state: "Adapting", rate: self.sending(), reason: self.reason, p: self.p }
    }

    fn loss_policy(&self) -> LossPolicy {
        LossPolicy { timeout: TimeoutRule::Never, ..LossPolicy::default() }
    }
}

/// The next of a clock's ticks; what a driver slept through is left out.
pub(crate) fn after(tick: Instant, period: Duration, now: Instant) -> Instant {
    let next = tick + period;
    if next > now { next } else { now + period }
}

/// The sender's half of packet pairs: the second leaves with the first, and the gap after it is for both.
#[derive(Clone, Debug)]
struct Pairs {
    /// The first of a pair, waiting for its second: number, departure, bits.
    first: Option<(u64, Instant, f64)>,
    /// Bits that the gap after the last packet is for.
    owed_bits: f64,
    /// Whether the last pairs left together, a bit each.
    together: u16,
}

/// A pair whose second was later than this, and than the cap explains, is none.
const TOGETHER: Duration = Duration::from_millis(1);

impl Pairs {
    fn new() -> Pairs {
        Pairs { first: None, owed_bits: 0.0, together: u16::MAX }
    }

    fn on_sent(&mut self, now: Instant, sent: &Sent, rate: Rate, cap: Rate) {
        let mut bits = sent.size.as_f64() * 8.0;
        if let Some((seq, at, owed)) = self.first.take() {
            let apart = now.since(at);
            let together = sent.seq == seq + 1 && apart <= sent.size / cap + TOGETHER;
            self.together = self.together << 1 | u16::from(together);
            // The time since has paid for part of it.
            bits += (owed - apart.as_secs_f64() * rate.as_bps()).max(0.0);
        }
        if sent.seq.is_multiple_of(PERIOD) {
            self.first = Some((sent.seq, now, bits));
            bits = 0.0;
        }
        self.owed_bits = bits;
    }

    /// The receiver's median is of pairs that left together.
    fn are_believed(&self) -> bool {
        self.together.count_ones() > u16::BITS / 2
    }
}

#[cfg(test)]
mod tests;
