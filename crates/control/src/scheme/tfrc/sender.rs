//! The allowed rate X: what a report does to it, and what the lack of one [RFC 5348 §4.2 to §4.5].
//!
//! No packets and no clock here: `tfrc.rs` paces, and knows what is idle or data-limited. Rates are
//! in bytes per second inside, as in the RFC.

use crate::equation::{Equation, TcpPath};
use crate::pacer::seconds;
use fairpace_units::{Bytes, Duration, Instant, Probability, Rate};

/// t_mbi: one packet in this time is the least that TFRC sends [RFC 5348 §4.3].
pub(crate) const T_MBI_S: f64 = 64.0;
/// q, what the old estimate weighs in R; and q2, the same in R_sqmean [RFC 5348 §4.3, §4.5].
const Q: f64 = 0.9;
/// In ns-2 one report raises X by so many packets per R at most.
const MOST_RISE: f64 = 2.0;
/// The part of X_recv that remains when a data-limited sender loses a packet [RFC 5348 §4.3].
const AFTER_LIMITED_LOSS: f64 = 0.85;

/// The specification, one of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rfc {
    /// RFC 3448, of 2003.
    Rfc3448,
    /// RFC 5348, of 2008, which replaces it.
    Rfc5348,
}

/// X_recv_set: the receive rates of the last round trips, with the time of each [RFC 5348 §4.3].
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecvSet {
    /// Newest first.
    items: [(Instant, f64); RecvSet::MOST],
    len: usize,
}

impl RecvSet {
    /// [RFC 5348 §8.2.2].
    const MOST: usize = 3;

    /// {infinity}, as of `now`.
    pub(crate) fn unlimited(now: Instant) -> RecvSet {
        RecvSet::only(now, f64::INFINITY)
    }

    pub(crate) fn only(now: Instant, x: f64) -> RecvSet {
        RecvSet { items: [(now, x); RecvSet::MOST], len: 1 }
    }

    /// max(X_recv_set).
    pub(crate) fn max(&self) -> f64 {
        self.items[..self.len].iter().fold(0.0, |most, (_, x)| x.max(most))
    }

    /// Update X_recv_set: adds `x` and forgets what is older than two RTTs.
    fn update(&mut self, now: Instant, x: f64, r: Duration) {
        let mut kept = RecvSet::only(now, x);
        for &(at, old) in &self.items[..self.len] {
            if now.since(at) <= r * 2 && kept.len < RecvSet::MOST {
                kept.items[kept.len] = (at, old);
                kept.len += 1;
            }
        }
        *self = kept;
    }

    /// Maximize X_recv_set: the largest of it and `x` alone remains, as of `now`. The initial
    /// infinity does not count.
    fn maximize(&mut self, now: Instant, x: f64) {
        let items = self.items[..self.len].iter().map(|(_, old)| *old);
        *self = RecvSet::only(now, items.filter(|old| old.is_finite()).fold(x, f64::max));
    }

    fn halve(&mut self) {
        for (_, x) in &mut self.items[..self.len] {
            *x /= 2.0;
        }
    }
}

/// The contents of one report, wherever it was made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Feedback {
    /// R_sample.
    pub(crate) r_sample: Duration,
    /// t_RTO; `None`: 4R.
    pub(crate) t_rto: Option<Duration>,
    /// X_recv, bytes per second.
    pub(crate) x_recv: f64,
    /// p, in `[0, 1]`.
    pub(crate) p: f64,
    /// A new loss event is reported, or p has risen.
    pub(crate) new_loss: bool,
    /// In all of the time that it covers the application had less than X allowed.
    pub(crate) data_limited: bool,
}

/// The constants of a sender.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SenderParams {
    pub(crate) rfc: Rfc,
    pub(crate) equation: Equation,
    /// Oscillation reduction [RFC 5348 §4.5].
    pub(crate) smoothing: bool,
    /// The no-feedback timer before any RTT is known: 2 s [RFC 5348 §4.2].
    pub(crate) first_timer: Duration,
    /// W_init is RFC 3390's by RFC 3448 too, as in ns-2.
    pub(crate) rfc3390_window: bool,
    /// X comes up to the equation as in ns-2: a packet per R, in each R.
    pub(crate) ns2_increase: bool,
    /// Reports, and the lack of them, set X as in ns-2.
    pub(crate) ns2_reports: bool,
    /// The largest segment, bytes: W_init is made of it.
    pub(crate) mss: f64,
    /// The flow's limits, bytes per second.
    pub(crate) min: f64,
    pub(crate) max: f64,
}

/// X and everything it depends on.
#[derive(Clone, Debug)]
pub(crate) struct Sender {
    params: SenderParams,
    /// R = 1 s, segments of one byte: every equation goes with s/R, so that what depends on p is
    /// computed only when p changes, or t_RTO / R.
    unit: TcpPath,
    /// s, bytes.
    s: f64,
    /// The part of the equation's rate that headers leave: N/(N+H) in TFRC-SP, else 1.
    share: f64,
    /// X.
    x: f64,
    /// R; `None` before the first RTT.
    r: Option<Duration>,
    r_s: f64,
    r_sqmean: f64,
    /// R_sqmean / sqrt(R_sample): X_inst / X.
    swing: f64,
    set: RecvSet,
    p: f64,
    /// The equation at p, in segments per RTT.
    segments_per_rtt: f64,
    /// tld: when X was last doubled.
    tld: Option<Instant>,
    /// When a report set X by the equation last; with `tld` before: ns-2's `last_change_`.
    changed: Option<Instant>,
    /// A report has set X by the equation, which ends slow start.
    avoiding: bool,
    /// A report has come.
    heard: bool,
    /// Reports and expiries so far: ns-2's `round_id`.
    rounds: u64,
    /// In ns-2's slow start: the pace of the last packet on the way up to X, and what each packet adds (`oldrate_`, `delta_`).
    climbed: f64,
    climb: f64,
    /// X is a rate that routers approved: no report changes it.
    approved: bool,
    /// The report that comes next is the first to change X after an approved rate.
    approved_before: bool,
    /// That report lowers X to X_recv, not to twice as much.
    down_to_received: bool,
    /// How long the no-feedback timer is set for.
    rto: Duration,
    pub(crate) reason: &'static str,
}

impl Sender {
    /// Before anything is known: a packet of `s` bytes per second, the timer at
    /// `first_timer` [RFC 5348 §4.2] [RFC 3448 §4.2].
    pub(crate) fn new(params: SenderParams, s: f64) -> Sender {
        let r = Duration::from_secs(1);
        let unit = TcpPath::new(Bytes::new(1), r, r * 4, 1.0).expect("one byte, 1 s, t_RTO = 4R, b = 1 is a path");
        let mut sender = Sender {
            unit,
            s,
            share: 1.0,
            x: 0.0,
            r: None,
            r_s: 0.0,
            r_sqmean: 0.0,
            swing: 1.0,
            set: RecvSet::unlimited(Instant::ZERO),
            p: 0.0,
            segments_per_rtt: f64::INFINITY,
            tld: None,
            changed: None,
            avoiding: false,
            heard: false,
            rounds: 0,
            climbed: f64::INFINITY,
            climb: 0.0,
            approved: false,
            approved_before: false,
            down_to_received: false,
            rto: params.first_timer,
            reason: "no RTT known yet",
            params,
        };
        sender.set_x(s, "no RTT known yet");
        sender
    }

    /// Before any RTT is known, X is `x` bytes per second.
    pub(crate) fn begin_at(&mut self, x: f64) {
        self.set_x(x, "no RTT known yet");
    }

    /// The first report after an approved rate lowers X to X_recv.
    pub(crate) const fn lower_to_received(&mut self) {
        self.down_to_received = true;
    }

    // --- what is known ---------------------------------------------------------------------------

    /// X, bytes per second.
    pub(crate) fn x(&self) -> f64 {
        self.x
    }

    /// X_inst, what packets are paced at; X unless oscillations are reduced [RFC 5348 §4.5].
    pub(crate) fn x_inst(&self) -> f64 {
        if self.params.smoothing { (self.x * self.swing).max(self.floor()) } else { self.x }
    }

    /// R.
    pub(crate) fn rtt(&self) -> Option<Duration> {
        self.r
    }

    /// p.
    pub(crate) fn p(&self) -> f64 {
        self.p
    }

    /// tld.
    pub(crate) fn last_doubled(&self) -> Option<Instant> {
        self.tld
    }

    /// How long the no-feedback timer runs, from the report or expiry that set it.
    pub(crate) fn timer(&self) -> Duration {
        self.rto
    }

    /// X_Bps: the equation's rate at p and R; infinite at p = 0.
    pub(crate) fn x_bps(&self) -> f64 {
        self.share * self.s * self.segments_per_rtt / self.r_s
    }

    /// s / t_mbi.
    fn floor(&self) -> f64 {
        self.s / T_MBI_S
    }

    /// W_init / R, also the recover_rate [RFC 5348 §4.2, §4.4]; one packet per RTT before
    /// [RFC 3448 §4.3], unless `w_init` has it otherwise.
    pub(crate) fn initial_rate(&self) -> f64 {
        let w_init = match self.params.rfc {
            Rfc::Rfc3448 if !self.params.rfc3390_window => self.s,
            Rfc::Rfc5348 | Rfc::Rfc3448 => initial_window(self.params.mss),
        };
        self.share * w_init / self.r_s
    }

    /// The loss interval at which the equation gives `x_target`, or half a packet per RTT if that is
    /// more, in packets [RFC 5348 §6.3.1].
    pub(crate) fn interval_for(&self, x_target: f64, r: Duration) -> f64 {
        let segments_per_rtt = (x_target * r.as_secs_f64() / (self.share * self.s)).max(0.5);
        1.0 / self.params.equation.loss_rate(&self.unit, Rate::bps(segments_per_rtt * 8.0)).get()
    }

    // --- what happens ----------------------------------------------------------------------------

    /// The mean size of packets has changed, or the share that headers leave.
    pub(crate) fn set_segment(&mut self, s: f64, share: f64) {
        (self.s, self.share) = (s, share);
    }

    /// The flow begins, with a first RTT if one was measured already [RFC 5348 §4.2].
    pub(crate) fn start(&mut self, now: Instant, rtt: Option<Duration>) {
        self.set = RecvSet::unlimited(now);
        let Some(rtt) = rtt else { return };
        self.set_rtt(rtt);
        if self.params.rfc == Rfc::Rfc5348 {
            self.begin(now);
            self.rto = self.expiry();
        }
    }

    /// A report: the steps of RFC 5348 §4.3, in its order.
    pub(crate) fn on_feedback(&mut self, now: Instant, f: &Feedback) {
        let first = !self.heard;
        let had_rtt = self.r.is_some();
        self.heard = true;
        self.rounds += 1;
        // 1) and 2)
        let sample_s = f.r_sample.as_secs_f64();
        self.set_rtt(if first { f.r_sample } else { seconds(Q * self.r_s + (1.0 - Q) * sample_s) });
        // 3)
        self.rto = self.expiry();
        // 4)
        if let Some(t_rto) = f.t_rto {
            self.set_timeout(t_rto);
        }
        self.set_p(f.p);
        match self.params.rfc {
            Rfc::Rfc5348 if !had_rtt => {
                self.set = RecvSet::unlimited(now);
                self.begin(now);
            }
            Rfc::Rfc5348 => {
                let limit = self.update_set(now, f);
                if !self.approved {
                    let limit = self.limit_after_approval(limit, f.x_recv);
                    self.update_x(now, limit);
                }
            }
            Rfc::Rfc3448 => {
                self.set = RecvSet::only(now, f.x_recv);
                if !self.approved {
                    let limit = self.limit_after_approval(2.0 * f.x_recv, f.x_recv);
                    self.update_x(now, limit);
                }
                if !self.params.ns2_reports {
                    self.rto = self.expiry();
                }
            }
        }
        if !self.approved {
            self.note_report(now);
        }
        // 5)
        let root = sample_s.sqrt();
        self.r_sqmean = if first { root } else { Q * self.r_sqmean + (1.0 - Q) * root };
        self.swing = self.r_sqmean / root;
    }

    /// X_recv_set takes in X_recv; gives recv_limit [RFC 5348 §4.3, step 4].
    fn update_set(&mut self, now: Instant, f: &Feedback) -> f64 {
        match (f.data_limited, f.new_loss) {
            (true, true) => {
                self.set.halve();
                self.set.maximize(now, AFTER_LIMITED_LOSS * f.x_recv);
                return self.set.max();
            }
            (true, false) => self.set.maximize(now, f.x_recv),
            (false, _) => self.set.update(now, f.x_recv, self.r.unwrap_or(Duration::ZERO)),
        }
        2.0 * self.set.max()
    }

    /// The limit of the first report after an approved rate: X_recv where that is the reading of [qsd §3.3 (c)].
    fn limit_after_approval(&mut self, limit: f64, x_recv: f64) -> f64 {
        let first = core::mem::replace(&mut self.approved_before, false);
        if first && self.down_to_received { x_recv } else { limit }
    }

    /// The end of step 4: congestion avoidance by the equation, or slow start.
    fn update_x(&mut self, now: Instant, limit: f64) {
        let least = if self.params.ns2_reports { self.s / self.r_s } else { 0.0 };
        if self.params.ns2_reports && self.p == 0.0 {
            return self.slow_start_as_ns2(now, limit, least);
        }
        if self.p > 0.0 {
            let x_bps = self.x_bps();
            let risen = self.risen(now);
            // In ns-2 the loss that ends slow start leaves what the equation has, whatever was received.
            let limit = if self.params.ns2_reports && !self.avoiding { f64::INFINITY } else { limit.max(least) };
            if self.params.ns2_increase && self.avoiding && x_bps.min(limit) > risen {
                return self.set_x(risen.max(self.floor()), "a packet per RTT more");
            }
            let reason = if limit < x_bps { "twice what was received" } else { "the equation" };
            self.set_x(x_bps.min(limit).max(self.floor()), reason);
        } else if self.tld.is_none_or(|tld| self.r.is_some_and(|r| now.since(tld) >= r)) {
            let reason = if limit < 2.0 * self.x { "twice what was received" } else { "doubled" };
            self.set_x((2.0 * self.x).min(limit).max(self.initial_rate()), reason);
            self.tld = Some(now);
        }
    }

    /// ns-2's `slowstart`: W_init/R until the third report or expiry; then X is doubled once per R, to twice what was received at most, and
    /// halved where it is more than that.
    fn slow_start_as_ns2(&mut self, now: Instant, limit: f64, least: f64) {
        let is_due = self.tld.is_none_or(|tld| self.r.is_some_and(|r| now.since(tld) > r));
        let before = self.x;
        let (x, reason) = if self.rounds <= 2 {
            (self.x.max(self.initial_rate()), "first RTT")
        } else if self.x < limit && is_due {
            (
                (2.0 * self.x).min(limit).max(least),
                if limit < 2.0 * self.x { "twice what was received" } else { "doubled" },
            )
        } else if self.x > limit {
            (limit / 2.0, "what was received")
        } else {
            return;
        };
        self.set_x(x, reason);
        self.tld = Some(now);
        // Up from the X before in the packets of one R; down at once.
        let packets = self.x * self.r_s / self.s;
        (self.climbed, self.climb) = (before.min(self.x), (self.x - before).max(0.0) / packets);
    }

    /// In ns-2's slow start, from the third report or expiry on, packets leave at the X before at first, and each a little faster
    /// (`slow_increase_`): the pace behind the packet that leaves now; `None` where that is X.
    pub(crate) fn climb(&mut self) -> Option<f64> {
        if self.p > 0.0 || self.rounds <= 2 || self.climbed >= self.x {
            return None;
        }
        self.climbed += self.climb;
        Some(self.climbed)
    }

    /// X and a packet per RTT for each RTT since X was set, two packets at most.
    fn risen(&self, now: Instant) -> f64 {
        let since = self.changed.or(self.tld).unwrap_or(Instant::ZERO);
        let rounds = (now.since(since).as_secs_f64() / self.r_s).min(MOST_RISE);
        self.x + self.s / self.r_s * rounds
    }

    /// A report has set X. The one that ends slow start leaves the time of the doubling before, as in ns-2.
    fn note_report(&mut self, now: Instant) {
        if self.p > 0.0 && core::mem::replace(&mut self.avoiding, true) {
            self.changed = Some(now);
        }
    }

    /// The no-feedback timer has expired; `idle`: nothing was sent since it was set
    /// [RFC 5348 §4.4].
    pub(crate) fn on_timer(&mut self, now: Instant, idle: bool) {
        let before = self.x;
        self.rounds += 1;
        match self.params.rfc {
            _ if self.params.ns2_reports && !idle => self.set_x((self.x / 2.0).max(self.floor()), "no feedback"),
            Rfc::Rfc5348 => self.expire(now, idle),
            Rfc::Rfc3448 => self.expire_3448(now, idle),
        }
        // Both RFCs' arithmetic can raise X that has not come up to the equation, or to what was received, yet.
        self.x = self.x.min(before);
        self.rto = self.expiry();
    }

    // --- Quick-Start [RFC 5634 §3.2] -------------------------------------------------------------

    /// X is an approved rate. `rtt`: R, if there is none yet. That nothing limits X before the first reports
    /// is meant for W_init: from here on it is what was allowed so far.
    pub(crate) fn quick_start(&mut self, now: Instant, x: f64, rtt: Duration) {
        if self.r.is_none() {
            self.set_rtt(rtt);
        }
        if self.set.max().is_infinite() {
            self.set = RecvSet::only(now, self.x / 2.0);
        }
        self.approved = true;
        self.set_x(x, "Quick-Start");
        self.rto = self.expiry();
    }

    /// The approved rate is no longer to be used: the next report computes X anew.
    pub(crate) fn end_quick_start(&mut self) {
        (self.approved, self.approved_before) = (false, self.approved || self.approved_before);
        self.tld = None;
    }

    /// X is what the last report makes it, and not more.
    pub(crate) fn recompute(&mut self) {
        let limit = 2.0 * self.set.max();
        let least = if self.p > 0.0 { self.floor() } else { self.initial_rate() };
        self.set_x(self.x.min(self.x_bps()).min(limit).max(least), "Quick-Start is over");
    }

    /// X goes back to `x`.
    pub(crate) fn fall_back(&mut self, x: f64, reason: &'static str) {
        self.set_x(x, reason);
        self.rto = self.expiry();
    }

    // --- the no-feedback timer -------------------------------------------------------------------

    fn expire(&mut self, now: Instant, idle: bool) {
        let x_recv = self.set.max();
        let recover_rate = self.initial_rate();
        let below = if self.p > 0.0 { x_recv < recover_rate } else { self.x < 2.0 * recover_rate };
        if idle && (self.r.is_none() || below) {
            self.reason = "idle: no feedback, and none expected";
        } else if self.p == 0.0 {
            self.set_x((self.x / 2.0).max(self.floor()), "no feedback");
        } else {
            let x_bps = self.x_bps();
            // Update_Limits(timer_limit)
            let timer_limit = (if x_bps > 2.0 * x_recv { x_recv } else { x_bps / 2.0 }).max(self.floor());
            self.set = RecvSet::only(now, timer_limit / 2.0);
            self.update_x(now, timer_limit);
            self.reason = "no feedback";
        }
    }

    /// [RFC 3448 §4.4]: through X_recv, and an idle sender keeps two packets per RTT.
    fn expire_3448(&mut self, now: Instant, idle: bool) {
        if !self.heard {
            return self.set_x((self.x / 2.0).max(self.floor()), "no feedback");
        }
        let x_recv = self.set.max();
        if idle && x_recv < 4.0 * self.s / self.r_s {
            self.reason = "idle: no feedback, and none expected";
            return;
        }
        let x_calc = self.x_bps();
        let x_recv = if x_calc > 2.0 * x_recv { (x_recv / 2.0).max(self.floor() / 2.0) } else { x_calc / 4.0 };
        self.set = RecvSet::only(now, x_recv);
        self.update_x(now, 2.0 * x_recv);
        self.reason = "no feedback";
    }

    // --- inside ----------------------------------------------------------------------------------

    /// The first RTT: slow start begins [RFC 5348 §4.2].
    fn begin(&mut self, now: Instant) {
        self.tld = Some(now);
        self.set_x(self.initial_rate(), "first RTT");
    }

    fn set_rtt(&mut self, r: Duration) {
        self.r = Some(r);
        self.r_s = r.as_secs_f64();
    }

    /// t_RTO, in R.
    fn set_timeout(&mut self, t_rto: Duration) {
        let second = Duration::from_secs(1);
        let ratio = seconds(t_rto.as_secs_f64() / self.r_s);
        if let Ok(unit) = TcpPath::new(Bytes::new(1), second, ratio, 1.0)
            && unit != self.unit
        {
            self.unit = unit;
            self.p = f64::NAN; // computed anew
        }
    }

    fn set_p(&mut self, p: f64) {
        if p != self.p {
            self.p = p;
            let p = Probability::new(p).unwrap_or(Probability::ONE);
            // Of segments of one byte, on a path of one second: bytes per second.
            self.segments_per_rtt = if p > Probability::ZERO {
                self.params.equation.rate(&self.unit, p).as_bps() / 8.0
            } else {
                f64::INFINITY
            };
        }
    }

    /// X, within the flow's limits.
    fn set_x(&mut self, x: f64, reason: &'static str) {
        self.x = x.min(self.params.max).max(self.params.min);
        self.reason = reason;
    }

    /// max(4R, 2s/X); in ns-2 2R, not four.
    fn expiry(&self) -> Duration {
        let rounds = if self.params.ns2_reports { 2.0 } else { 4.0 };
        seconds((rounds * self.r_s).max(2.0 * self.s / self.x))
    }
}

/// W_init = min(4 MSS, max(2 MSS, 4380 bytes)) [RFC 5348 §4.2] [RFC 3390].
pub(crate) fn initial_window(mss: f64) -> f64 {
    (4.0 * mss).min((2.0 * mss).max(4_380.0))
}

#[cfg(test)]
mod tests;
