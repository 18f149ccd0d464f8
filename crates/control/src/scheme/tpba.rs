//! TPBA: TCP-rate-probing-based adaptation. Now and then the flow's data goes over TCP, to measure the rate that is fair;
//! between times it goes over UDP at that rate.
//!
//! Source: [tpba §4], Table 2 and Fig. 5; [tpba §7] for the other two stop rules. Read `lda.rs` first, whose decrease this
//! shares; what a driver owes the TCP half is in the crate's documentation.
//!
//! ```text
//!   probing    TCP carries the data; every T_TCP: r[i] = what was acknowledged / T_TCP
//!              until |r[i-2] - r[i]| < epsilon and |r[i-1] - r[i]| < epsilon; then r_s = r[i],
//!              TCP_NODELAY, and at the end of the data unit:
//!   draining   nothing is written until TCP has delivered (`drained = sent`: sent) all; then
//!   running    UDP at r = r_s; every T_adapt: r <- max(r * (1 - p_loss * R_f), r_min)
//!              for T_running; then, at the end of the data unit:
//!              cwnd_new = max(ceil(cwnd_old * r_f / (t_maxseg * r_s)), 1) * t_maxseg, and probing
//! ```
//!
//! # Symbols
//!
//! | paper | here | unit | set |
//! | --- | --- | --- | --- |
//! | T_running, T_TCP, T_adapt, T_rtcp | `t_running`, `t_tcp`, `t_adapt`, `t_rtcp` | s | 10, 1, 3, 1 |
//! | epsilon, z | `epsilon`, `z` | bits/s, % | 30 kbit/s, 5 |
//! | R_f, r_min | `r_f`, `r_min` | –, bits/s | 3, the flow's min_rate |
//! | `r[i-2]`, `r[i-1]`, `r[i]` | `rates` | bits/s | each cycle of the probing period |
//! | r_s | `r_s` | bits/s | the last cycle of the probing period |
//! | `r[i]` of the running period; its last, r_f | `r` | bits/s | adaptation point |
//! | cwnd_old, cwnd_new | `cwnd_old`, [`TcpOrder::SetCwnd`] | bytes | running begins; probing begins |
//! | t_maxseg | [`TcpProgress::mss`] | bytes | – |
//!
//! # Readings
//!
//! - The flow starts probing. TCP's rate is in bytes on the wire, as all rates here are.
//! - cwnd_old is the window when the running period began (the text), not when it ended (Table 2): TCP is idle between.
//! - A cycle in which nothing was acknowledged is no rate: three of them are an idle application or a dead TCP, and no
//!   reason to leave for UDP. The count of three begins again after it.
//! - `stop = percent`: both differences are below z % of `r[i]`. `stop = cwnd-cycle`: `r[i]` is the mean over the time between
//!   two reductions of cwnd, the first of which begins the first cycle, compared the same way. A cycle that no
//!   reduction ends within T_running (the receiver's window or the application holds TCP back) ends there.
//! - TCP's buffer is "evacuated" when all in it is acknowledged. `drained = sent`: when all of it has been sent.
//! - If the end of a data unit is long in coming, r_s is the last `r[i]` before it. If the last packet that left was the
//!   end of one, draining begins at once.
//! - "Transit immediately to the rate-probing period after successive large reductions" is `reprobe_below`, off: the running
//!   period is over when r is below that share of r_s.
//!
//! # Deviations
//!
//! - r_min holds everywhere, r_s included.
//! - Off the wire of a simulation ([`Safety::Default`](crate::Safety::Default)) r is halved where reports stay away, as
//!   LDA's. The clock of the breaker's feedback timeout stands still while TCP carries the data, so that a path which lets
//!   nothing but TCP through ends the flow after 15 s of UDP without a word; and 15 s without progress end it while TCP has what it was given
//!   since, or is being drained. (TCP's own timeouts, which are longer, end the rest.)
//! - [`Controller::target_rate`] while probing: what TCP's window allows, cwnd/SRTT, at most twice the last `r[i]` (in
//!   the first cycle: no more than what was acknowledged and is under way, over the time so far). The
//!   last `r[i]` alone would tell an encoder to make what it makes: TCP would measure the encoder, and the
//!   rate never rise.
//! - An application that wants less gets less; r stays, and is never raised in a running period.
//! - `keep_cwnd = off` orders no window: TCP restarts as [RFC 5681 §4.1] has it.
//!
//! # Not implemented
//!
//! T_TCP from the statistics of the RTT, which [tpba §4] leaves open.

use crate::breaker::ReceiverReport;
use crate::controller::{Controller, LossPolicy, SendPoll, TcpHooks, TcpOrder, TcpProgress, TimeoutRule};
use crate::facts::{Acked, Loss, Sent, Status};
use crate::feedback::Form;
use crate::lda::tally::Tally;
use crate::lda::{R_F, R_MIN, Reduction, T_ADAPT, T_RTCP, after};
use crate::pacer::Pacer;
use crate::param::{Allowed, FLAG, ParamError, ParamInfo};
use crate::registry::{Env, SchemeInfo, Settings};
use crate::rtt::RttEstimator;
use fairpace_units::{Bounds, Bytes, Duration, Instant, Kind, Rate, Via};

/// The registry's entry.
pub const INFO: SchemeInfo = SchemeInfo {
    name: "tpba",
    title: "TPBA: rate probing by TCP",
    source: "Tobe, Tamura, Nishino, Tokuda, IPSJ Journal 2000",
    make: |settings, env| Ok(Box::new(Tpba::new(settings, env)?)),
    params: &[
        ParamInfo {
            name: "t_running",
            symbol: "T_running",
            default: "10 s",
            allowed: &[Allowed::Duration(Bounds::of(Duration::from_millis(10), Duration::from_secs(3_600)))],
            doc: "length of a running period (UDP)",
        },
        ParamInfo {
            name: "t_tcp",
            symbol: "T_TCP",
            default: "1 s",
            allowed: &[Allowed::Duration(Bounds::of(Duration::from_millis(1), Duration::from_secs(60)))],
            doc: "length of a cycle of the probing period (TCP)",
        },
        ParamInfo {
            name: "stop",
            symbol: "",
            default: "epsilon",
            allowed: &[Allowed::Words(&["epsilon", "percent", "cwnd-cycle"])],
            doc: "when the probing period ends: three rates within epsilon, or within z %, or the same of rates over the time between reductions of cwnd",
        },
        ParamInfo {
            name: "epsilon",
            symbol: "epsilon",
            default: "30 kbit/s",
            allowed: &[Allowed::Rate],
            doc: "allowed difference (`stop = epsilon`)",
        },
        ParamInfo {
            name: "z",
            symbol: "z",
            default: "5",
            allowed: &[Allowed::Number("", Bounds::of(0.1, 100.0))],
            doc: "allowed difference in percent (the other two stop rules)",
        },
        R_MIN,
        R_F,
        T_ADAPT,
        T_RTCP,
        ParamInfo {
            name: "keep_cwnd",
            symbol: "",
            default: "on",
            allowed: FLAG,
            doc: "set TCP's congestion window to cwnd_new where probing begins; off: TCP restarts as after any idle time",
        },
        ParamInfo {
            name: "drained",
            symbol: "",
            default: "acknowledged",
            allowed: &[Allowed::Words(&["acknowledged", "sent"])],
            doc: "when TCP has given way to UDP: all that it was given is acknowledged, or all of it has been sent, so that data over UDP may overtake the last of it",
        },
        ParamInfo {
            name: "reprobe_below",
            symbol: "",
            default: "0",
            allowed: &[Allowed::Number("", Bounds::of(0.0, 1.0))],
            doc: "the running period is over when its rate is below this share of r_s; 0: never",
        },
    ],
};

/// When the probing period ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    Epsilon,
    Percent,
    CwndCycle,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Period {
    Probing {
        /// r_s is found: on to UDP at the end of the data unit.
        found: bool,
    },
    Draining,
    Running,
}

/// Rate probing by TCP.
#[derive(Clone, Debug)]
pub struct Tpba {
    reduction: Reduction,
    t_running: Duration,
    t_tcp: Duration,
    stop: Stop,
    epsilon: Rate,
    z: f64,
    keep_cwnd: bool,
    reprobe_below: f64,
    /// UDP begins when all is sent, not when all is acknowledged.
    drained_when_sent: bool,
    min_rate: Rate,
    max_rate: Rate,
    /// The most that the application wants.
    limit: Rate,
    period: Period,
    /// No data has left since the last end of a data unit.
    between_adus: bool,
    tcp: TcpProgress,
    /// When TCP told that.
    tcp_at: Instant,
    /// Where the cycle began, and what was acknowledged by then; `None`: the first reduction of cwnd begins one.
    cycle: Option<(Instant, Bytes)>,
    /// r[i-2], r[i-1], r[i], as many as there are.
    rates: Vec<Rate>,
    /// The last r[i] of either period; `None` before the first.
    last: Option<Rate>,
    r_s: Rate,
    r: Rate,
    cwnd_old: Bytes,
    next_cycle: Instant,
    next_adapt: Instant,
    running_until: Instant,
    tally: Tally,
    pacer: Pacer,
    owed_bits: f64,
    srtt: Duration,
    order_cwnd: Option<Bytes>,
    order_no_delay: Option<bool>,
    p: Option<f64>,
    reason: &'static str,
}

impl Tpba {
    /// Reads the settings.
    ///
    /// # Errors
    /// [`ParamError`] names the field, what was found and what is allowed.
    pub fn new(settings: &Settings<'_>, env: &Env) -> Result<Tpba, ParamError> {
        let reduction = Reduction::new(settings, env)?;
        let start_rate = env.start_rate.unwrap_or(Rate::kbps(10.0)).clamp(reduction.r_min, env.max_rate);
        let stops = [("epsilon", Stop::Epsilon), ("percent", Stop::Percent), ("cwnd-cycle", Stop::CwndCycle)];
        Ok(Tpba {
            reduction,
            t_running: settings.duration("t_running")?,
            t_tcp: settings.duration("t_tcp")?,
            stop: settings.choice("stop", &stops)?,
            epsilon: settings.rate("epsilon", env)?,
            z: settings.number("z")?,
            keep_cwnd: settings.flag("keep_cwnd")?,
            reprobe_below: settings.number("reprobe_below")?,
            drained_when_sent: settings.choice("drained", &[("acknowledged", false), ("sent", true)])?,
            min_rate: env.min_rate,
            max_rate: env.max_rate,
            limit: env.max_rate,
            period: Period::Probing { found: false },
            between_adus: false,
            tcp: TcpProgress::default(),
            tcp_at: Instant::ZERO,
            cycle: None,
            rates: Vec::with_capacity(3),
            last: None,
            r_s: start_rate,
            r: start_rate,
            cwnd_old: Bytes::ZERO,
            next_cycle: Instant::NEVER,
            next_adapt: Instant::NEVER,
            running_until: Instant::NEVER,
            tally: Tally::new(),
            pacer: Pacer::starting(Instant::NEVER),
            owed_bits: 0.0,
            srtt: Duration::ZERO,
            order_cwnd: None,
            order_no_delay: None,
            p: None,
            reason: "start",
        })
    }

    // --- probing ---------------------------------------------------------------------------------

    fn probe(&mut self, now: Instant, reason: &'static str) {
        self.period = Period::Probing { found: false };
        self.reason = reason;
        self.rates.clear();
        self.tcp_at = now;
        self.begin_cycle(now);
        if self.stop == Stop::CwndCycle {
            self.cycle = None;
        }
    }

    /// A cycle begins with what is acknowledged now.
    fn begin_cycle(&mut self, now: Instant) {
        self.cycle = Some((self.tcp_at, self.tcp.acked));
        let length = if self.stop == Stop::CwndCycle { self.t_running } else { self.t_tcp };
        self.next_cycle = now + length;
    }

    /// A cycle is over: r[i].
    fn end_cycle(&mut self, now: Instant) {
        let measured = self.cycle.and_then(|(from, acked)| {
            let seconds = self.tcp_at.since(from).as_secs_f64();
            (seconds > 0.0).then(|| Rate::bps((self.tcp.acked - acked).as_f64() * 8.0 / seconds))
        });
        self.begin_cycle(now);
        let Some(rate) = measured else { return };
        if rate == Rate::ZERO {
            self.rates.clear();
            self.reason = "nothing acknowledged";
            return;
        }
        if self.rates.len() == 3 {
            self.rates.remove(0);
        }
        self.rates.push(rate);
        self.last = Some(rate);
        self.r_s = rate.clamp(self.reduction.r_min, self.max_rate);
        self.r = self.r_s;
        self.reason = "measured by TCP";
        if self.period == (Period::Probing { found: false }) && self.is_steady() {
            self.period = Period::Probing { found: true };
            self.order_no_delay = Some(true);
            self.reason = "three rates agree";
            if self.between_adus {
                self.period = Period::Draining;
            }
        }
    }

    fn is_steady(&self) -> bool {
        let [before_last, last, now] = self.rates[..] else { return false };
        let allowed = match self.stop {
            Stop::Epsilon => self.epsilon.as_bps(),
            Stop::Percent | Stop::CwndCycle => now.as_bps() * self.z / 100.0,
        };
        [before_last, last].iter().all(|r| (r.as_bps() - now.as_bps()).abs() < allowed)
    }

    /// The rate that TCP allows an encoder.
    fn probing_target(&self) -> Rate {
        let window = self.tcp.srtt.map(|srtt| Rate::bps(self.tcp.cwnd.as_f64() * 8.0 / srtt.as_secs_f64()));
        match (self.last, window.filter(|w| *w > Rate::ZERO)) {
            (Some(r), Some(w)) => w.min(r * 2.0),
            (None, Some(w)) => w.min(self.so_far()),
            (r, None) => r.unwrap_or(self.r),
        }
    }

    /// The data acknowledged and under way, over the time of the cycle so far: while there is no r[i], start-up is
    /// not taken for the rate.
    fn so_far(&self) -> Rate {
        let (from, acked) = self.cycle.unwrap_or((Instant::ZERO, Bytes::ZERO));
        let bytes = (self.tcp.acked - acked + self.tcp.cwnd).as_f64();
        Rate::bps(bytes * 8.0 / self.tcp_at.since(from).as_secs_f64())
    }

    // --- running ---------------------------------------------------------------------------------

    fn run(&mut self, now: Instant, reason: &'static str) {
        self.period = Period::Running;
        self.reason = reason;
        self.r = self.r_s;
        self.cwnd_old = self.tcp.cwnd;
        self.next_adapt = now + self.reduction.t_adapt;
        self.running_until = now + self.t_running;
        self.tally.begin();
        self.pacer = Pacer::starting(now);
    }

    fn adapt(&mut self, now: Instant) {
        let lower = match self.tally.take() {
            Some(heard) => {
                self.p = Some(heard.p);
                (heard.p > 0.0).then(|| (self.reduction.after_loss(self.r, heard.p), "packets lost"))
            }
            None => self.reduction.after_silence(now, self.r, &self.tally).map(|r| (r, "no reports: halved")),
        };
        if let Some((r, reason)) = lower {
            (self.r, self.reason) = (r, reason);
            self.regap();
        }
    }

    fn regap(&mut self) {
        self.pacer.regap(self.owed_bits / self.sending().as_bps());
    }

    /// The rate sent over UDP.
    fn sending(&self) -> Rate {
        self.r.min(self.limit).max(self.min_rate)
    }

    /// The running period's result for TCP: cwnd_new.
    fn leave_running(&mut self, now: Instant, reason: &'static str) {
        let mss = self.tcp.mss.as_f64();
        if self.keep_cwnd && mss > 0.0 {
            let share = (self.sending().as_bps() / self.r_s.as_bps()).min(1.0);
            // Rounding errors of binary fractions are forgiven: 10 segments stay 10.
            let segments = libm::ceil(self.cwnd_old.as_f64() * share / mss * (1.0 - 1e-12)).max(1.0);
            self.order_cwnd = Some(Bytes::new((segments * mss) as u64));
        }
        self.order_no_delay = Some(false);
        self.last = Some(self.sending());
        self.probe(now, reason);
    }
}

impl Controller for Tpba {
    fn start(&mut self, now: Instant, srtt: Option<Duration>) {
        self.srtt = srtt.unwrap_or_default();
        self.probe(now, "start");
    }

    fn on_sent(&mut self, now: Instant, sent: &Sent) {
        self.between_adus = false;
        if self.period == Period::Running {
            self.tally.on_sent(now, sent.seq, sent.size);
            self.owed_bits = sent.size.as_f64() * 8.0;
            self.pacer.sent(now, self.owed_bits / self.sending().as_bps(), self.srtt);
        }
    }

    fn on_sent_unnumbered(&mut self, now: Instant, size: Bytes) {
        if self.period == Period::Running {
            self.owed_bits = size.as_f64() * 8.0;
            self.pacer.sent(now, self.owed_bits / self.sending().as_bps(), self.srtt);
        }
    }

    fn on_ack(&mut self, _now: Instant, _ack: &Acked, _rtt: &RttEstimator) {}

    fn on_loss(&mut self, _now: Instant, _loss: &Loss, _rtt: &RttEstimator) {}

    fn on_timeout(&mut self, _now: Instant, _rtt: &RttEstimator) {}

    fn on_receiver_report(&mut self, now: Instant, report: &ReceiverReport, rtt: &RttEstimator) {
        self.tally.on_report(now, report);
        self.srtt = rtt.srtt().unwrap_or(self.srtt);
    }

    fn on_timer(&mut self, now: Instant, _rtt: &RttEstimator) {
        match self.period {
            Period::Probing { .. } => self.end_cycle(now),
            // Only so that the driver tells how far TCP is.
            Period::Draining => self.next_cycle = after(self.next_cycle, self.t_tcp, now),
            Period::Running => {
                self.adapt(now);
                self.next_adapt = after(self.next_adapt, self.reduction.t_adapt, now);
            }
        }
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

    fn via(&self) -> Via {
        if self.period == Period::Running { Via::Udp } else { Via::Tcp }
    }

    fn tcp(&mut self) -> Option<&mut dyn TcpHooks> {
        Some(self)
    }

    fn poll_send(&mut self, now: Instant, has_data: bool) -> SendPoll {
        match self.period {
            Period::Probing { .. } if has_data => SendPoll::Send(Kind::Data),
            Period::Probing { .. } => SendPoll::WaitForData,
            Period::Draining => SendPoll::WaitForFeedback,
            Period::Running => self.pacer.poll_data(now, has_data),
        }
    }

    fn poll_timer(&self) -> Instant {
        if self.period == Period::Running { self.next_adapt } else { self.next_cycle }
    }

    fn target_rate(&self) -> Rate {
        match self.period {
            Period::Probing { found: false } => {
                self.probing_target().clamp(self.min_rate, self.max_rate).min(self.limit).max(self.min_rate)
            }
            _ => self.sending(),
        }
    }

    fn status(&self) -> Status {
        let state = match self.period {
            Period::Probing { .. } => "probing",
            Period::Draining => "draining",
            Period::Running => "running",
        };
        Status { state, rate: self.sending(), reason: self.reason, p: self.p }
    }

    fn loss_policy(&self) -> LossPolicy {
        LossPolicy { timeout: TimeoutRule::Never, ..LossPolicy::default() }
    }
}

impl TcpHooks for Tpba {
    fn on_progress(&mut self, now: Instant, progress: &TcpProgress) {
        let reduced = progress.reductions > self.tcp.reductions;
        let acked = progress.acked.max(self.tcp.acked);
        self.tcp = TcpProgress { acked, ..*progress };
        self.tcp_at = now;
        if reduced && self.stop == Stop::CwndCycle && matches!(self.period, Period::Probing { .. }) {
            self.end_cycle(now);
        }
        if self.drained_when_sent && self.period == Period::Draining && progress.unsent == Bytes::ZERO {
            self.run(now, "TCP has sent all");
        }
    }

    fn on_adu_end(&mut self, now: Instant) {
        self.between_adus = true;
        match self.period {
            Period::Probing { found: true } => {
                self.period = Period::Draining;
                self.reason = "end of a data unit";
            }
            Period::Running if now >= self.running_until => self.leave_running(now, "T_running is over"),
            Period::Running if self.r < self.r_s * self.reprobe_below => {
                self.leave_running(now, "the rate has fallen far below r_s");
            }
            _ => {}
        }
    }

    fn on_drained(&mut self, now: Instant) {
        if self.period == Period::Draining {
            self.run(now, "TCP is drained");
        }
    }

    fn take_order(&mut self) -> Option<TcpOrder> {
        let cwnd = self.order_cwnd.take().map(TcpOrder::SetCwnd);
        cwnd.or_else(|| self.order_no_delay.take().map(TcpOrder::NoDelay))
    }
}

#[cfg(test)]
mod tests;
