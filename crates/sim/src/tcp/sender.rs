//! The sending half of TCP.
//! Sources: [RFC 5681], [RFC 6582], [RFC 6675], [RFC 6298], [RFC 3042], [RFC 3168], [RFC 2861], [RFC 6937], [RFC 8985]. Read first: the table of
//! names in [`super`].
//!
//! Readings, all as ns-2 does it, because the tables this is checked against come from there:
//! - The window grows per ACK, not per byte acknowledged, and keeps its fraction when it is halved.
//! - Reno at small windows: a fast retransmit may halve the window to less than two segments, while
//!   ssthresh is a whole number of two at least; the ACK that ends recovery opens the window as any
//!   other. NewReno and SACK halve to ssthresh, and leave with it, as the RFCs say.
//! - Limited transmit sends whatever is next, which after a timeout may be a retransmission.
//! - After a timeout everything from `snd_una` is sent again as the window opens (go back N); the
//!   scoreboard is forgotten.
//! - No second cut in one window: three duplicate ACKs below `recover` are ignored, for Reno too.
//! - A mark halves the window, one segment at least; losses of the same window are repaired without
//!   a second cut. At a window of one the sender falls silent for one timeout, without back-off.
//! - The timer restarts at the first partial ACK only ("impatient", [RFC 6582 §4]).
//!
//! With [`TcpParams::linux`] losses of a SACK sender are found by what was sent later and has arrived [RFC 8985], the window of a
//! recovery is reduced in proportion to what arrives [RFC 6937], a timeout keeps the scoreboard, `min_rto` is what is added to the
//! smoothed RTT at least, and NewReno's timer restarts at each partial ACK. The window is whole and grows by counted ACKs; a pause
//! halves it for each timeout's time [RFC 2861]; a timeout in a window that was cut keeps ssthresh.
//!
//! With [`TcpParams::ns2`] SACK repairs as ns-2's Sack1 does: its pipe is a count, and each hole below a SACK is a loss.
//!
//! ```text
//!            3 dup ACKs above `recover`            ACK of `recover` (Reno: any new ACK)
//!   Open ------------------------------> Recovery -------------------------------------> Open
//!    ^                                      |
//!    |  ACK of `recover`                    | RTO
//!    +------------------- Timeout <---------+--- RTO (from Open too)
//! ```

use std::sync::Arc;

use fairpace_units::{Duration, Ecn, Instant, RandomStream};

use super::receiver::TcpAck;
use super::rto::RtoEstimator;
use super::sack::Scoreboard;
use super::tally::{TcpCounters, TcpStanding, TcpTally};
use super::{TcpParams, TcpVariant};

/// A segment to be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    /// Its number.
    pub seq: u32,
    /// True if it was sent before.
    pub retransmission: bool,
    /// ECT(0) for new data if ECN is on; never for a retransmission [RFC 3168 §6.1.5].
    pub ecn: Ecn,
    /// The first new data after the window was cut says so, if ECN is on [RFC 3168 §6.1.2].
    pub cwr: bool,
}

/// The phase of the sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TcpPhase {
    /// Window below ssthresh.
    SlowStart,
    /// One segment more per round trip.
    CongestionAvoidance,
    /// Fast retransmit and recovery.
    Recovery,
    /// Sending again what a timeout gave up.
    Timeout,
}

impl TcpPhase {
    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            TcpPhase::SlowStart => "slow-start",
            TcpPhase::CongestionAvoidance => "congestion-avoidance",
            TcpPhase::Recovery => "recovery",
            TcpPhase::Timeout => "timeout",
        }
    }
}

/// Proportional rate reduction: the account of a SACK recovery [RFC 6937 §3].
#[derive(Clone, Copy, Debug, Default)]
struct Reduction {
    /// prr_delivered: segments that ACKs of this recovery say have arrived.
    delivered: u32,
    /// prr_out: segments sent in this recovery.
    out: u32,
    /// RecoverFS: the flight when it began.
    flight: f64,
}

/// In a repair of Linux's one SACK above a segment tells that the segment is lost [RFC 8985 §6.2]: nothing is reordered then.
const ONE_ABOVE: u32 = 1;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    Open,
    Recovery,
    Timeout,
}

/// A TCP sender. Tell it what arrived ([`TcpSender::on_ack`], [`TcpSender::on_timer`],
/// [`TcpSender::on_data`]), then send what [`TcpSender::poll_transmit`] gives until it gives nothing,
/// then come back at [`TcpSender::poll_timer`] at the latest.
///
/// In the order of use: most acknowledgements touch only what comes before the estimate of the timeout, and the first of that.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct TcpSender {
    /// Of all senders that are alike: one value.
    params: Arc<TcpParams>,
    /// Oldest unacknowledged segment.
    snd_una: u32,
    /// Next to send; below `snd_max` while a timeout's losses are sent again.
    snd_nxt: u32,
    /// One past the highest ever sent.
    snd_max: u32,
    /// One past the last segment the source has.
    data_end: u32,
    cwnd: f64,
    ssthresh: f64,
    /// Segments that were acknowledged since the window last grew or was cut: Linux counts them.
    counted: f64,
    /// Segments that duplicate ACKs say have left the network, less partial ACKs [RFC 5681 §3.2].
    inflation: f64,
    dupacks: u32,
    recover: u32,
    /// False until the first cut: then even the first segment may be fast-retransmitted.
    recover_set: bool,
    mode: Mode,
    /// A recovery of SACK has ended, and nothing has been cut since.
    recovered: bool,
    /// The window that `recover` ends was cut by a mark: its losses are still to be repaired.
    cut_by_mark: bool,
    /// The next new data tells the receiver of a cut.
    cwr_due: bool,
    /// A mark came at a window of one: nothing is sent until the timer runs out.
    silenced: bool,
    jitter_open: bool,
    partial_acks: u32,
    /// The one segment whose RTT is being measured [RFC 6298 §3], and when it left.
    timed: Option<(u32, Instant)>,
    /// A retransmission that goes out whatever the window says.
    retransmit_now: Option<u32>,
    rto_at: Instant,
    /// When a hole of fewer than DupThresh SACKs above is taken for a loss [RFC 8985 §6.2].
    reorder_at: Instant,
    /// When the sending opportunity that waits for its jitter begins.
    jitter_at: Instant,
    last_sent: Instant,
    /// Integral of the window over time, in segments times seconds, up to `accounted`.
    cwnd_area: f64,
    /// The same over the time in which there was an RTT estimate.
    cwnd_area_estimated: f64,
    accounted: Instant,
    counters: TcpCounters,
    /// `pipe_` of ns-2's Sack1: segments in the network, by counting what is sent and what is acknowledged. Below zero where ACKs are
    /// more than was counted.
    counted_pipe: i64,
    rto: RtoEstimator,
    reduction: Reduction,
    scoreboard: Scoreboard,
    jitter: RandomStream,
    /// When the source first had something.
    began: Instant,
    /// One past the highest segment that was ever sent again.
    resent_below: u32,
    /// The first segment that is missing, if it was sent again, and one past the highest that was sent before.
    head_again: (u32, u32),
}

impl TcpSender {
    /// The first bytes of it, which every acknowledgement touches.
    pub(crate) const HOT: usize = std::mem::offset_of!(TcpSender, rto) + RtoEstimator::HOT;

    /// A sender with nothing to send yet; `jitter` is drawn from only if `send_jitter` is not zero.
    pub fn new(params: impl Into<Arc<TcpParams>>, jitter: RandomStream) -> Self {
        let params: Arc<TcpParams> = params.into();
        let max_window = params.max_window.as_f64();
        TcpSender {
            cwnd: if params.handshake { 1.0 } else { params.first_window() },
            ssthresh: params.initial_ssthresh.map_or(max_window, |s| s.as_f64()).max(2.0),
            rto: RtoEstimator::new(&params),
            params,
            snd_una: 0,
            snd_nxt: 0,
            snd_max: 0,
            data_end: 0,
            counted: 0.0,
            inflation: 0.0,
            dupacks: 0,
            mode: Mode::Open,
            recover: 0,
            recover_set: false,
            recovered: false,
            cut_by_mark: false,
            cwr_due: false,
            silenced: false,
            partial_acks: 0,
            scoreboard: Scoreboard::default(),
            reduction: Reduction::default(),
            counted_pipe: 0,
            timed: None,
            rto_at: Instant::NEVER,
            reorder_at: Instant::NEVER,
            retransmit_now: None,
            resent_below: 0,
            head_again: (0, 0),
            jitter,
            jitter_at: Instant::NEVER,
            jitter_open: false,
            last_sent: Instant::ZERO,
            counters: TcpCounters::default(),
            cwnd_area: 0.0,
            cwnd_area_estimated: 0.0,
            began: Instant::NEVER,
            accounted: Instant::NEVER,
        }
    }

    // Events.

    /// The source now has segments up to, not including, `end` (`u32::MAX`: without end). Less than
    /// has been sent means: nothing new, what is out is still delivered.
    pub fn on_data(&mut self, now: Instant, end: u32) {
        let was_idle = self.data_end <= self.snd_max && self.snd_una == self.snd_max;
        self.data_end = end.max(self.snd_max);
        if self.began == Instant::NEVER {
            (self.began, self.accounted) = (now, now);
        }
        self.account(now);
        // [RFC 5681 §4.1] after an idle RTO the window restarts at the initial one.
        let restarts = self.params.restart_after_idle && was_idle && self.snd_max > 0;
        let idle = now.since(self.last_sent);
        if restarts && idle > self.rto.rto() {
            let least = self.cwnd.min(self.params.initial_window.as_f64());
            self.cwnd = if self.params.linux { self.decayed(idle, least) } else { least };
        }
    }

    /// The window after so long without sending, as Linux has it: halved for each timeout's time, in whole segments, to `least` at the
    /// lowest; ssthresh remembers three quarters [RFC 2861 §3].
    #[cold]
    fn decayed(&mut self, idle: Duration, least: f64) -> f64 {
        self.ssthresh = self.ssthresh.max((0.75 * self.cwnd).floor());
        let rto = self.rto.rto();
        let (mut cwnd, mut left) = (self.cwnd, idle.saturating_sub(rto));
        while !left.is_zero() && cwnd > least {
            cwnd = (cwnd / 2.0).floor();
            left = left.saturating_sub(rto);
        }
        cwnd.max(least)
    }

    /// The source has no more for now; what is out is still delivered.
    pub fn pause(&mut self) {
        self.data_end = self.snd_max;
    }

    /// Sets the congestion window, in segments, as [tpba §4] does when its flow comes back to TCP; from one to the
    /// largest window. Not while losses are being repaired, which decides the window itself.
    pub fn set_cwnd(&mut self, now: Instant, cwnd: f64) {
        if self.mode == Mode::Open && self.began != Instant::NEVER {
            self.account(now);
            self.cwnd = cwnd.max(1.0).min(self.params.max_window.as_f64());
        }
    }

    /// An ACK has arrived. ACKs of what was never sent, and old ones, are ignored.
    pub fn on_ack(&mut self, now: Instant, ack: &TcpAck) {
        if ack.next > self.snd_max || ack.next < self.snd_una {
            return;
        }
        let (before, linux) = (self.mode, self.is_linux_sack());
        let repairs = before != Mode::Open && linux;
        let (arrived, lost_below, top) = match linux {
            true => (self.arrived(), self.scoreboard.lost_below(), self.scoreboard.top()),
            false => (self.snd_una, 0, 0),
        };
        let threshold = if repairs { ONE_ABOVE } else { self.params.dup_threshold };
        let news = match self.params.variant {
            TcpVariant::Sack => self.scoreboard.update(ack, self.snd_max, threshold),
            TcpVariant::Reno | TcpVariant::NewReno => true,
        };
        if self.mode == Mode::Recovery && self.is_sack1() {
            self.counted_pipe -= 1;
        }
        let advances = ack.next > self.snd_una;
        // Segments that the ACK is the first to tell of.
        let delivered = (ack.next + if linux { self.scoreboard.sacked() } else { 0 }).saturating_sub(arrived);
        if linux {
            self.time_sacked(now, top, advances);
        }
        if advances {
            self.on_new_ack(now, ack.next, ack.ece, delivered);
        } else if self.snd_max > self.snd_una && news {
            self.on_duplicate_ack(now);
        }
        if linux {
            if repairs && self.mode == Mode::Open && self.scoreboard.is_lost(self.snd_una) {
                self.recover_again(now);
            } else if before == Mode::Recovery && self.mode == Mode::Open && !ack.ece {
                self.open_window(delivered);
            }
            if repairs && self.mode != Mode::Open {
                self.scoreboard.find_lost_retransmissions();
            }
            if self.mode == Mode::Recovery {
                let safe = advances && self.scoreboard.lost_below() == lost_below;
                self.reduce(now, delivered, safe);
            }
            self.wait_for_reordered(now, advances);
        }
    }

    /// Linux takes the RTT of what has a SACK, too, and ends the back-off with it; `top`: one past the highest SACK before. And it restarts
    /// the timer while SACKs come of what left before the first segment that is missing was sent again.
    fn time_sacked(&mut self, now: Instant, top: u32, advances: bool) {
        if let Some((seq, sent_at)) = self.timed
            && self.scoreboard.is_sacked(seq)
        {
            self.timed = None;
            self.account(now);
            self.rto.end_backoff();
            self.rto.sample(sent_at, now);
        }
        // Never sent again, so that there is no doubt which copy arrived.
        let found = self.scoreboard.top();
        if found > top.max(self.resent_below) {
            self.rto.end_backoff();
            let (head, sent_before) = self.head_again;
            if !advances && head == self.snd_una && found <= sent_before {
                self.restart_timer(now);
            }
        }
    }

    /// [RFC 8985 §6.2 step 5] a hole below a SACK is a loss after an eighth of the smoothed RTT, which Linux allows for
    /// reordering until there are DupThresh SACKs. `advances`: the hole that was waited for is filled.
    fn wait_for_reordered(&mut self, now: Instant, advances: bool) {
        if self.mode != Mode::Open || self.scoreboard.sacked() == 0 {
            self.reorder_at = Instant::NEVER;
        } else if advances || self.reorder_at == Instant::NEVER {
            self.reorder_at = now + self.rto.srtt().unwrap_or_default() / 8;
        }
    }

    /// SACK finds losses and repairs them as Linux does.
    fn is_linux_sack(&self) -> bool {
        self.params.linux && self.params.variant == TcpVariant::Sack
    }

    /// SACK repairs as ns-2's Sack1 does.
    fn is_sack1(&self) -> bool {
        self.params.ns2 && self.params.variant == TcpVariant::Sack
    }

    /// Segments that ACKs say have arrived, in order or not.
    fn arrived(&self) -> u32 {
        self.snd_una + self.scoreboard.sacked()
    }

    /// [RFC 6937 §3] an ACK in a SACK recovery has said that `delivered` segments more have arrived: the window becomes
    /// the pipe and what may leave now, in proportion to what arrives while the pipe is above ssthresh, and no faster
    /// than slow start below. `safe`: the ACK moved on and no loss was found [RFC 9937 §6.2].
    fn reduce(&mut self, now: Instant, delivered: u32, safe: bool) {
        if delivered == 0 {
            return;
        }
        self.account(now);
        let r = &mut self.reduction;
        r.delivered += delivered;
        let (so_far, out) = (f64::from(r.delivered), f64::from(r.out));
        let pipe = f64::from(self.scoreboard.pipe(self.snd_una, self.snd_max));
        let least = if r.out == 0 { 1.0 } else { 0.0 };
        let more = if pipe > self.ssthresh {
            (so_far * self.ssthresh / r.flight).ceil() - out
        } else {
            let limit = (so_far - out).max(f64::from(delivered)) + f64::from(u32::from(safe));
            limit.min(self.ssthresh - pipe)
        };
        self.cwnd = (pipe + more.max(least)).max(1.0).min(self.params.max_window.as_f64());
    }

    /// The instant [`TcpSender::poll_timer`] named has come.
    pub fn on_timer(&mut self, now: Instant) {
        if now >= self.jitter_at {
            self.jitter_at = Instant::NEVER;
            self.jitter_open = true;
        }
        if now >= self.reorder_at {
            self.reorder_at = Instant::NEVER;
            if self.mode == Mode::Open {
                self.on_loss(now);
            }
            if self.mode == Mode::Recovery {
                self.reduce(now, 1, false);
            }
        }
        if now >= self.rto_at {
            self.on_timeout(now);
        }
    }

    // Actions.

    /// The next segment to send now; ask until there is none.
    #[inline]
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Segment> {
        if let Some(seq) = self.retransmit_now.take() {
            return Some(self.emit(now, seq));
        }
        let next = if self.silenced { None } else { self.next_by_window() };
        if self.params.send_jitter != Duration::ZERO && !self.jitter_open {
            if next.is_some() && self.jitter_at == Instant::NEVER {
                self.jitter_at = now + self.jitter.duration_below(self.params.send_jitter);
            }
            return None;
        }
        match next {
            Some(seq) => {
                self.counted_pipe += 1;
                Some(self.emit(now, seq))
            }
            None => {
                self.jitter_open = false;
                None
            }
        }
    }

    /// When [`TcpSender::on_timer`] wants to be called; never if no timer runs.
    pub fn poll_timer(&self) -> Instant {
        self.rto_at.min(self.poll_jitter())
    }

    /// The retransmission timer alone; it moves with nearly every ACK.
    #[inline]
    pub(crate) fn poll_timeout(&self) -> Instant {
        self.rto_at
    }

    /// The end of the current send jitter, or of the wait for what may be reordered.
    #[inline]
    pub(crate) fn poll_jitter(&self) -> Instant {
        self.jitter_at.min(self.reorder_at)
    }

    // Questions.

    /// Congestion window in segments, without inflation.
    pub fn cwnd(&self) -> f64 {
        self.cwnd
    }

    /// Slow-start threshold in segments.
    pub fn ssthresh(&self) -> f64 {
        self.ssthresh
    }

    /// Smoothed RTT, as its clock measured it.
    pub fn srtt(&self) -> Option<Duration> {
        self.rto.srtt()
    }

    /// The timeout it would arm now.
    pub fn rto(&self) -> Duration {
        self.rto.rto()
    }

    /// The present phase.
    pub fn phase(&self) -> TcpPhase {
        match self.mode {
            Mode::Recovery => TcpPhase::Recovery,
            Mode::Timeout => TcpPhase::Timeout,
            Mode::Open if self.cwnd < self.ssthresh => TcpPhase::SlowStart,
            Mode::Open => TcpPhase::CongestionAvoidance,
        }
    }

    /// Counts so far.
    pub fn counters(&self) -> TcpCounters {
        self.counters
    }

    /// Counts and averages up to `now`, which must not be earlier than the last call's.
    pub fn tally(&self, now: Instant) -> TcpTally {
        self.standing().tally(now)
    }

    /// All that is to be known of it when it is over.
    pub(crate) fn standing(&self) -> TcpStanding {
        TcpStanding {
            counters: self.counters,
            cwnd: self.cwnd,
            ssthresh: self.ssthresh,
            cwnd_area: self.cwnd_area,
            cwnd_area_estimated: self.cwnd_area_estimated,
            began: self.began,
            accounted: self.accounted,
            rto: self.rto.clone(),
        }
    }

    /// Segments acknowledged in order.
    pub fn acknowledged(&self) -> u32 {
        self.snd_una
    }

    /// Segments that the source has and that have never been sent.
    pub fn unsent(&self) -> u32 {
        self.data_end - self.snd_max
    }

    /// Segments sent and not acknowledged in order.
    pub fn outstanding(&self) -> u32 {
        self.snd_max - self.snd_una
    }

    // Transitions.

    /// The window, or whether there is an RTT estimate, changes now: both have held so far.
    #[inline]
    fn account(&mut self, now: Instant) {
        let area = self.cwnd * (now.as_nanos() - self.accounted.as_nanos()) as f64 * 1e-9;
        self.cwnd_area += area;
        if self.rto.srtt().is_some() {
            self.cwnd_area_estimated += area;
        }
        self.accounted = now;
    }

    fn on_new_ack(&mut self, now: Instant, next: u32, ece: bool, delivered: u32) {
        self.account(now);
        let acked = next - self.snd_una;
        let after_recover = next >= self.recover;
        let opens = self.params.handshake && self.snd_una == 0;
        // Karn's rule: with Linux's SACK a sample goes on when a segment below is sent again, and counts unless the ACK covers both.
        let certain = !self.is_linux_sack() || self.snd_una >= self.resent_below;
        self.snd_una = next;
        self.snd_nxt = self.snd_nxt.max(next);
        if let Some((seq, sent_at)) = self.timed
            && next > seq
        {
            self.timed = None;
            if certain {
                self.rto.end_backoff();
                self.rto.sample(sent_at, now);
            }
        } else if certain && self.is_linux_sack() && self.rto.is_backed_off() {
            self.rto.end_backoff();
        }
        match self.mode {
            Mode::Recovery if !after_recover && self.params.variant != TcpVariant::Reno => {
                return self.on_partial_ack(now, acked);
            }
            Mode::Recovery => self.leave_recovery(ece),
            Mode::Timeout | Mode::Open => {
                if after_recover {
                    self.mode = Mode::Open;
                }
                if self.is_sack1() {
                    self.scoreboard.clear();
                }
                if opens {
                    self.cwnd = self.params.first_window();
                } else if !ece {
                    // [RFC 3168 §6.1.2] an ACK with an echo opens nothing.
                    self.open_window(delivered);
                }
            }
        }
        self.dupacks = 0;
        self.partial_acks = 0;
        self.restart_timer(now);
        if ece && self.params.ecn {
            self.on_echo(now);
        }
    }

    /// [RFC 6582 §3.2 step 3] part of the window is still missing: send its first segment again.
    /// SACK chooses from the scoreboard instead [RFC 6675 §5 step B, C].
    fn on_partial_ack(&mut self, now: Instant, acked: u32) {
        self.partial_acks += 1;
        self.rto.end_backoff();
        if self.is_sack1() {
            // Both the segment that was lost and its retransmission have left: no slower than slow start.
            self.counted_pipe -= 1;
        }
        if self.params.variant == TcpVariant::Sack {
            return self.restart_timer(now);
        }
        self.retransmit_now = Some(self.snd_una);
        // Deflate by what left the network, plus one for the segment sent again.
        self.inflation = (self.inflation - f64::from(acked)).max(-self.cwnd) + 1.0;
        if self.partial_acks == 1 || self.params.linux {
            self.restart_timer(now);
        }
    }

    fn on_duplicate_ack(&mut self, now: Instant) {
        self.dupacks += 1;
        if self.mode == Mode::Recovery {
            self.inflation += 1.0;
            return;
        }
        let by_board = self.params.variant == TcpVariant::Sack && !self.params.ns2;
        let enough = self.dupacks == self.params.dup_threshold || (by_board && self.scoreboard.is_lost(self.snd_una));
        if enough {
            self.on_loss(now);
        }
    }

    /// A loss has been found: the window is cut. [RFC 6582 §3.2 step 2] duplicates of a window that was cut before mean nothing
    /// new, but losses of one that a mark has cut are repaired.
    fn on_loss(&mut self, now: Instant) {
        // SACK's recovery point ends with its recovery [RFC 6675 §5]: a loss of the very next segment is a new one.
        let is_next = self.recovered && self.snd_una == self.recover;
        if !is_next && !self.is_new_window() {
            if self.cut_by_mark {
                self.enter_recovery(now);
                self.cut_by_mark = false;
                self.recover = self.snd_max;
            }
            return;
        }
        self.enter_recovery(now);
        let left = self.cut_from() * self.remaining();
        self.cut(left);
        self.cwnd = match self.params.variant {
            TcpVariant::Reno => left,
            TcpVariant::Sack if self.params.ns2 => left,
            // Nothing but the first retransmission leaves until more arrives.
            TcpVariant::Sack if self.is_linux_sack() => f64::from(self.scoreboard.pipe(self.snd_una, self.snd_max))
                .max(1.0)
                .min(self.params.max_window.as_f64()),
            TcpVariant::NewReno | TcpVariant::Sack => self.ssthresh,
        };
    }

    /// No data that was sent before the last cut is unacknowledged. Linux with SACK needs no acknowledgement of a segment beyond that
    /// data.
    fn is_new_window(&self) -> bool {
        !self.recover_set || self.snd_una > self.recover || (self.snd_una == self.recover && self.is_linux_sack())
    }

    /// [RFC 3168 §6.1.2] a mark is answered as a loss, once per window, but nothing is sent again.
    #[cold]
    fn on_echo(&mut self, now: Instant) {
        // The segment at `recover` is the first to tell the receiver of the cut: echoes go on until it is acknowledged, with Linux too.
        if self.recover_set && self.snd_una <= self.recover {
            return;
        }
        self.counters.ecn_cuts += 1;
        // At a window of one there is nothing left to halve but the rate: one segment per timeout.
        if self.cwnd < 2.0 && self.snd_una == self.snd_max {
            self.silenced = true;
            self.rto_at = self.rto.expiry(now);
        }
        let left = self.cwnd * self.remaining();
        self.cut(left);
        self.cut_by_mark = true;
        self.cwnd = if self.params.linux { left.floor() } else { left }.max(1.0);
    }

    fn enter_recovery(&mut self, now: Instant) {
        debug_assert_ne!(self.mode, Mode::Recovery);
        self.mode = Mode::Recovery;
        self.counters.fast_retransmits += 1;
        self.account(now);
        self.inflation = f64::from(self.params.dup_threshold);
        self.partial_acks = 0;
        self.scoreboard.begin_recovery();
        if self.is_linux_sack() {
            self.scoreboard.judge(ONE_ABOVE);
        }
        self.reduction = Reduction { flight: self.cut_from().max(1.0), ..Reduction::default() };
        self.counted_pipe = i64::from(self.outstanding()) - i64::from(self.params.dup_threshold);
        self.retransmit_now = Some(self.snd_una);
        self.restart_timer(now);
    }

    /// A segment that was sent in the repair that has just ended is known to be lost: Linux begins the next one at once, and sends nothing again
    /// that it has sent again already.
    #[cold]
    fn recover_again(&mut self, now: Instant) {
        self.mode = Mode::Recovery;
        self.counters.fast_retransmits += 1;
        self.account(now);
        self.reduction = Reduction { flight: self.cwnd, ..Reduction::default() };
        if self.cut_by_mark {
            // The same ACK had an echo, which has cut the window: once for both.
            self.cut_by_mark = false;
        } else {
            self.cut(self.cwnd * self.remaining());
        }
    }

    fn on_timeout(&mut self, now: Instant) {
        self.rto_at = Instant::NEVER;
        self.silenced = false;
        if self.snd_una == self.snd_max {
            return;
        }
        self.counters.timeouts += 1;
        self.counters.timeout_sequences += u64::from(!self.rto.is_backed_off());
        self.account(now);
        // Linux lowers ssthresh once for the losses of one window.
        let before =
            (self.params.linux && self.mode != Mode::Open && self.snd_una < self.recover).then_some(self.ssthresh);
        self.mode = Mode::Timeout;
        self.cut(self.cut_from() / 2.0);
        self.ssthresh = before.unwrap_or(self.ssthresh);
        self.cwnd = 1.0;
        self.inflation = 0.0;
        self.dupacks = 0;
        self.partial_acks = 0;
        self.retransmit_now = None;
        self.reorder_at = Instant::NEVER;
        if self.is_linux_sack() {
            self.scoreboard.give_up(self.snd_max);
        } else {
            self.scoreboard.clear();
            self.snd_nxt = self.snd_una;
        }
        self.rto.back_off(now);
        self.restart_timer(now);
    }

    /// The data in flight without the additions of limited transmit and inflation: the smaller of the window and the
    /// outstanding data.
    fn flight(&self) -> f64 {
        f64::from(self.outstanding()).min(self.cwnd)
    }

    /// The segments of which a cut leaves a share: the flight [RFC 5681 eq. (4)]; with Linux the window, whatever is out.
    fn cut_from(&self) -> f64 {
        if self.params.linux { self.cwnd } else { self.flight() }
    }

    /// The share that a cut leaves: half, or [`TcpParams::decrease`] where slow start is over and something was cut
    /// before.
    fn remaining(&self) -> f64 {
        if self.recover_set && self.cwnd >= self.ssthresh { self.params.decrease } else { 0.5 }
    }

    /// [RFC 5681 eq. (4)] ssthresh is what is `left` of the flight, half of it by default, two at least; whole segments
    /// for Reno.
    fn cut(&mut self, left: f64) {
        let left = match self.params.variant {
            TcpVariant::Reno => left.floor(),
            TcpVariant::NewReno | TcpVariant::Sack => {
                if self.params.ns2 || self.params.linux {
                    left.floor()
                } else {
                    left
                }
            }
        };
        self.counted = 0.0;
        self.ssthresh = left.max(2.0);
        self.recover = self.snd_max;
        self.recovered = false;
        self.recover_set = true;
        self.cut_by_mark = false;
        self.cwr_due = self.params.ecn;
    }

    fn leave_recovery(&mut self, ece: bool) {
        self.mode = Mode::Open;
        self.inflation = 0.0;
        match self.params.variant {
            TcpVariant::Reno if ece => {}
            TcpVariant::Reno => self.open_window(1),
            // [RFC 6582 §3.2 step 3, option 1]: no burst if little is left in the network.
            TcpVariant::NewReno => self.cwnd = self.ssthresh.min(f64::from(self.outstanding().max(1)) + 1.0),
            TcpVariant::Sack => {
                // Sack1's window was halved, and keeps its fraction.
                self.cwnd = if self.params.ns2 { self.cwnd } else { self.ssthresh };
                self.recovered = true;
            }
        }
    }

    /// [RFC 5681 §3.1]; per ACK, with Linux per segment that it tells of.
    fn open_window(&mut self, delivered: u32) {
        if self.params.linux {
            let slow = f64::from(delivered).min((self.ssthresh - self.cwnd).max(0.0));
            self.cwnd += slow;
            self.counted += (f64::from(delivered) - slow) * self.params.increase;
            if self.counted >= self.cwnd && self.cwnd >= self.ssthresh {
                let more = (self.counted / self.cwnd).floor();
                self.counted -= more * self.cwnd;
                self.cwnd += more;
            }
        } else if self.cwnd < self.ssthresh {
            self.cwnd += 1.0;
        } else {
            self.cwnd += self.params.increase / self.cwnd;
        }
        self.cwnd = self.cwnd.min(self.params.max_window.as_f64());
    }

    /// The segment that the window (SACK: the pipe) lets out next.
    fn next_by_window(&self) -> Option<u32> {
        let limit = self.snd_una.saturating_add(self.params.max_window.get().min(u64::from(u32::MAX)) as u32);
        let by_pipe = self.mode == Mode::Recovery || (self.mode == Mode::Timeout && self.is_linux_sack());
        if by_pipe && self.is_sack1() {
            if self.counted_pipe >= self.cwnd as i64 {
                return None;
            }
            let new = (self.snd_nxt < self.data_end.min(limit)).then_some(self.snd_nxt);
            return self.scoreboard.next_unsacked(self.snd_una).or(new);
        }
        if by_pipe && self.params.variant == TcpVariant::Sack {
            if f64::from(self.scoreboard.pipe(self.snd_una, self.snd_max)) + 1.0 > self.cwnd {
                return None;
            }
            let new = (self.snd_nxt < self.data_end.min(limit)).then_some(self.snd_nxt);
            let again = self.scoreboard.next_lost(self.snd_una);
            return again.or(new).or_else(|| self.scoreboard.next_unsacked(self.snd_una));
        }
        let mut window = self.cwnd + self.inflation;
        if self.mode != Mode::Recovery && self.params.limited_transmit {
            window = self.cwnd + f64::from(self.dupacks.min(self.params.dup_threshold - 1));
        }
        let right = self.snd_una.saturating_add(window as u32);
        (self.snd_nxt < self.data_end.min(right).min(limit)).then_some(self.snd_nxt)
    }

    fn emit(&mut self, now: Instant, seq: u32) -> Segment {
        let retransmission = seq < self.snd_max;
        let is_syn = seq == 0 && self.params.handshake;
        let ecn = if self.params.ecn && !retransmission && !is_syn { Ecn::Ect0 } else { Ecn::NotEct };
        let cwr = self.cwr_due && !retransmission;
        self.cwr_due &= retransmission;
        self.counters.sent += 1;
        self.reduction.out += 1;
        self.last_sent = now;
        let linux = self.is_linux_sack();
        if retransmission {
            self.counters.retransmitted += 1;
            self.scoreboard.on_retransmit(seq);
            self.resent_below = self.resent_below.max(seq + 1);
            if self.timed.is_some_and(|(timed, _)| timed == seq || (timed > seq && !linux)) {
                self.timed = None; // Karn: its ACK may now be due to this copy
            }
        } else {
            self.snd_max = seq + 1;
            if self.timed.is_none() {
                self.timed = Some((seq, now));
            }
        }
        if self.mode != Mode::Open && linux {
            self.scoreboard.note_sent(seq, retransmission);
        }
        self.snd_nxt = self.snd_nxt.max(seq + 1);
        // Linux gives the first segment that is missing a whole timeout each time it is sent.
        let head_again = retransmission && seq == self.snd_una && linux;
        if head_again {
            self.head_again = (seq, self.snd_max);
        }
        if self.rto_at == Instant::NEVER || head_again {
            self.restart_timer(now);
        }
        Segment { seq, retransmission, ecn, cwr }
    }

    /// [RFC 6298 §5.1 to §5.3]
    fn restart_timer(&mut self, now: Instant) {
        let waiting = self.snd_una < self.snd_max || self.retransmit_now.is_some();
        self.rto_at = if waiting { self.rto.expiry(now) } else { Instant::NEVER };
    }
}

#[cfg(test)]
mod tests;
