//! The circuit breaker above every controller: what stops a flow that congestion control does not.
//!
//! Source: [RFC 8083 §4], the sender's side. Three conditions end a flow: nothing is heard from
//! the receiver (§4.1), reports come but the media does not arrive (§4.2), or the flow sends more
//! than ten times what TCP would at the same loss and RTT (§4.3). The breaker is a last resort and much slower than
//! any controller. The breaker never starts a flow again by itself (§4.5).
//!
//! Readings: per-packet feedback is not a report, so it holds off §4.1 but does not feed §4.3
//! (§5); where no receiver reports exist at all, [`crate::Flow`] makes them from its own ledger, and
//! where it has one, its own count of losses is the one that is judged. Only data counts as sent: dummies have a
//! synchronisation source of their own. §4.1's time runs from the first packet that nothing has answered, however far apart
//! the next ones are: a scheme that backs off on a dead path is no less unheard. But an application that had nothing to send
//! for longer than Td was not unheard, and what went unanswered before its pause counts no more. A report that tells of no
//! further packet holds §4.1 off no more than silence would ([`crate::Flow`]). A flow with a TCP half is timed per transport: what TCP acknowledges says nothing
//! of datagrams, whose clock stands still while TCP carries the data; and TCP is dead after the same time without
//! progress. Data over TCP is no matter of §4.2 and §4.3. Deviation: [`crate::Flow`] leaves outages (everything lost
//! for an RTT) out of the loss that §4.3 judges; they are §4.1's. Not implemented: §4.4 (only a person can say that
//! media is unusable).

use core::fmt;
use fairpace_units::{Bytes, Duration, Instant, Rate};
use std::collections::VecDeque;

/// Why a flow was stopped for good.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StopReason {
    /// Packets were sent for that long and nothing at all came back [RFC 8083 §4.1].
    FeedbackTimeout {
        /// Three reporting intervals.
        after: Duration,
    },
    /// So many reports in a row said that no media arrives [RFC 8083 §4.2].
    MediaTimeout {
        /// MEDIA_TIMEOUT.
        reports: u32,
    },
    /// The flow sent more than ten times TCP's rate [RFC 8083 §4.3].
    Congestion {
        /// The rate that the flow sent.
        sent: Rate,
        /// Ten times the TCP rate.
        allowed: Rate,
        /// The mean fraction of packets lost.
        lost: f64,
    },
    /// The receiver acknowledged a packet that was never sent.
    PeerLied,
}

impl StopReason {
    /// A word for tables and JSON.
    pub const fn as_str(&self) -> &'static str {
        match self {
            StopReason::FeedbackTimeout { .. } => "feedback_timeout",
            StopReason::MediaTimeout { .. } => "media_timeout",
            StopReason::Congestion { .. } => "congestion",
            StopReason::PeerLied => "peer_lied",
        }
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StopReason::FeedbackTimeout { after } => {
                write!(f, "nothing was heard from the receiver for {} s [RFC 8083 §4.1]", after.as_secs_f64())
            }
            StopReason::MediaTimeout { reports } => {
                write!(f, "{reports} reports in a row say that no media arrives [RFC 8083 §4.2]")
            }
            StopReason::Congestion { sent, allowed, lost } => write!(
                f,
                "{sent} sent at {:.1} % loss, where ten times TCP's rate is {allowed} [RFC 8083 §4.3]",
                lost * 100.0
            ),
            StopReason::PeerLied => f.write_str("the receiver acknowledged a packet that was never sent"),
        }
    }
}

/// A receiver's report, once per reporting interval (an RTCP SR or RR, or the ledger instead).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReceiverReport {
    /// The highest data number received.
    pub highest_seq: u64,
    /// Data packets lost / expected since the last report; outside `[0, 1]` the report is ignored.
    pub fraction_lost: f64,
    /// How long this report covers.
    pub interval: Duration,
    /// The cumulative number of data packets lost: expected up to `highest_seq` and not received, whatever way they
    /// took; duplicates can make it negative [RFC 3550 §6.4.1].
    pub lost: Option<i64>,
    /// The round trip by LSR and DLSR.
    pub rtt: Option<Duration>,
    /// The bottleneck's rate by packet pairs, in the terms of `packet_size`: [`crate::packet_pair`].
    pub bottleneck: Option<Rate>,
}

impl ReceiverReport {
    /// A report that says no more than what the breaker must know.
    pub const fn new(highest_seq: u64, fraction_lost: f64, interval: Duration) -> Self {
        ReceiverReport { highest_seq, fraction_lost, interval, lost: None, rtt: None, bottleneck: None }
    }
}

/// The RFC's parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BreakerParams {
    /// Td: the RTCP interval that timeouts count in, at most 5 s [RFC 8083 §4.1].
    pub td: Duration,
    /// Tdr: how often reports really come.
    pub tdr: Duration,
    /// Tf: the time between video frames.
    pub tf: Duration,
    /// G: frames in a group that depend on each other.
    pub group: u32,
    /// k of §4.2, 5.
    pub k: u32,
    /// At a congestion trip, cut the rate to a tenth and stop only if that has not helped after two
    /// more reports, instead of stopping at once [RFC 8083 §4.3: MAY].
    pub tenfold_first: bool,
}

impl Default for BreakerParams {
    fn default() -> Self {
        BreakerParams {
            td: Duration::from_secs(5),
            tdr: Duration::from_secs(5),
            tf: Duration::from_millis(33),
            group: 1,
            k: 5,
            tenfold_first: false,
        }
    }
}

/// The breaker's action on the flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Trip {
    /// Send at most that from now on.
    Cap(Rate),
    /// That has helped: the cap is lifted.
    Uncap,
    /// Stop for good.
    Stop(StopReason),
}

#[derive(Clone, Copy, Debug)]
struct Interval {
    length: Duration,
    lost: f64,
    sent: Bytes,
    packets: u64,
}

/// Intervals kept: CB_INTERVAL stays below this for reporting intervals of 15 ms and more.
const MOST_INTERVALS: usize = 1_024;

/// The breaker's state.
#[derive(Clone, Debug)]
pub struct Breaker {
    params: BreakerParams,
    /// When the first packet was sent that nothing has answered yet; NEVER if all is answered.
    unanswered_since: Instant,
    /// Packets sent since then.
    unanswered: u32,
    /// Since when the application has had nothing to send; NEVER if it has, or something has left since.
    idle_since: Instant,
    /// Since when TCP carries the data.
    paused_at: Option<Instant>,
    /// How long datagrams had gone unanswered by then: it counts for TCP until that makes progress, so that a path dead in
    /// both is given up after the same time.
    unheard: Duration,
    /// Since when TCP has had something to acknowledge without doing so; NEVER if it has nothing.
    tcp_since: Instant,
    /// Sent since the last report.
    sent: Bytes,
    packets: u64,
    highest_seq: Option<u64>,
    /// Reports in a row without any media, and after how many of them to stop.
    silent: u32,
    media_timeout: u32,
    intervals: VecDeque<Interval>,
    /// Reports since the rate was cut to a tenth.
    since_cut: Option<usize>,
}

/// Reports in which the cut to a tenth must help [RFC 8083 §4.3].
const REPORTS_AFTER_CUT: usize = 2;

impl Breaker {
    /// A breaker that has seen nothing.
    pub fn new(params: BreakerParams) -> Self {
        Breaker {
            params,
            unanswered_since: Instant::NEVER,
            unanswered: 0,
            idle_since: Instant::NEVER,
            paused_at: None,
            unheard: Duration::ZERO,
            tcp_since: Instant::NEVER,
            sent: Bytes::ZERO,
            packets: 0,
            highest_seq: None,
            silent: 0,
            media_timeout: 0,
            intervals: VecDeque::new(),
            since_cut: None,
        }
    }

    /// A packet has left.
    pub fn on_sent(&mut self, now: Instant, size: Bytes, is_data: bool) {
        if self.is_idle(now) {
            self.answered();
        }
        self.unanswered_since = self.unanswered_since.min(now);
        self.unanswered = self.unanswered.saturating_add(1);
        self.idle_since = Instant::NEVER;
        if is_data {
            self.sent += size;
            self.packets += 1;
        }
    }

    /// A packet could leave, and the application has none.
    pub fn on_idle(&mut self, now: Instant) {
        if self.paused_at.is_none() {
            self.idle_since = self.idle_since.min(now);
        }
    }

    /// A pause of the application longer than Td says nothing about the receiver, which only answers what arrives.
    fn is_idle(&self, now: Instant) -> bool {
        now.since(self.idle_since) > self.params.td
    }

    fn answered(&mut self) {
        self.unanswered_since = Instant::NEVER;
        self.unanswered = 0;
    }

    /// A packet was given to TCP, or nothing is sent until it has delivered all.
    pub fn await_tcp(&mut self, now: Instant) {
        if self.tcp_since == Instant::NEVER {
            self.tcp_since = now - self.unheard;
        }
    }

    /// TCP has acknowledged something. The clock for the rest starts with the next packet, or by
    /// [`Breaker::await_tcp`].
    pub fn on_tcp_progress(&mut self) {
        self.tcp_since = Instant::NEVER;
        self.unheard = Duration::ZERO;
    }

    /// From now on TCP carries the data.
    pub fn pause(&mut self, now: Instant) {
        self.paused_at = Some(now);
        if self.is_idle(now) {
            self.answered();
        }
        self.idle_since = Instant::NEVER;
        self.unheard = if self.unanswered >= 3 { now.since(self.unanswered_since) } else { Duration::ZERO };
    }

    /// From now on datagrams carry it again.
    pub fn resume(&mut self, now: Instant) {
        if let Some(paused_at) = self.paused_at.take() {
            self.postpone(now.since(paused_at));
        }
    }

    /// The receiver was heard, in whatever form. While TCP carries the data that is about TCP's packets.
    pub fn on_feedback(&mut self) {
        if self.paused_at.is_some() {
            return;
        }
        self.answered();
    }

    /// The driver slept for `late` longer than it was told to: nothing could be heard meanwhile.
    pub fn on_stall(&mut self, late: Duration) {
        if self.paused_at.is_none() {
            self.postpone(late);
        }
        if self.tcp_since != Instant::NEVER {
            self.tcp_since += late;
        }
    }

    fn postpone(&mut self, by: Duration) {
        // NEVER stays so.
        self.unanswered_since += by;
        self.idle_since += by;
    }

    /// When [`Breaker::on_timer`] is wanted.
    pub fn next(&self) -> Instant {
        // Three packets at least: one that is lost before a pause is not a dead path.
        let datagrams =
            if self.unanswered < 3 || self.paused_at.is_some() { Instant::NEVER } else { self.unanswered_since };
        datagrams.min(self.tcp_since) + self.params.td * 3
    }

    /// §4.1: three intervals without a word.
    pub fn on_timer(&mut self, now: Instant) -> Option<Trip> {
        if self.is_idle(now) {
            self.answered();
        }
        let after = self.params.td * 3;
        (now >= self.next()).then_some(Trip::Stop(StopReason::FeedbackTimeout { after }))
    }

    /// A report: §4.2 and §4.3. `rtt` is the sender's own measurement. If the report came from the
    /// receiver, call [`Breaker::on_feedback`] as well.
    pub fn on_report(&mut self, report: &ReceiverReport, rtt: Option<Duration>) -> Option<Trip> {
        if !(0.0..=1.0).contains(&report.fraction_lost) || report.interval.is_zero() {
            return None;
        }
        let (sent, packets) = (self.sent, self.packets);
        (self.sent, self.packets) = (Bytes::ZERO, 0);
        let tr = rtt.unwrap_or(Duration::ZERO);

        let advanced = self.highest_seq.is_none_or(|h| report.highest_seq > h);
        self.highest_seq = Some(self.highest_seq.unwrap_or(0).max(report.highest_seq));
        if advanced {
            (self.silent, self.media_timeout) = (0, 0);
        } else if packets > 0 {
            self.silent += 1;
            // Recomputed at each such report, and only ever extended.
            self.media_timeout = self.media_timeout.max(media_timeout(&self.params, tr));
            if self.silent >= self.media_timeout {
                return Some(Trip::Stop(StopReason::MediaTimeout { reports: self.silent }));
            }
        }

        if self.intervals.len() >= MOST_INTERVALS {
            self.intervals.pop_front();
        }
        self.intervals.push_back(Interval { length: report.interval, lost: report.fraction_lost, sent, packets });
        self.check_congestion(tr)
    }

    /// The rate from now on that keeps the mean over CB_INTERVAL reports at `share` of what the congestion rule allows,
    /// if loss stays as it was: less than that share where more was sent before, but at least a quarter of it. `None`
    /// while nothing was lost or no RTT is known.
    pub fn bearable(&self, rtt: Option<Duration>, share: f64) -> Option<Rate> {
        let tr = rtt?;
        let (_, allowed, _) = self.ten_times_tcp(tr)?;
        let wanted = cb_interval(&self.params, tr).min(MOST_INTERVALS);
        // The next judgement is over these and the reports to come.
        let kept = self.intervals.len().min(wanted.saturating_sub(1));
        let to_come = self.intervals.back()?.length.as_secs_f64() * (wanted - kept) as f64;
        let last = self.intervals.iter().rev().take(kept);
        let (time, sent) = last.fold((0.0, 0.0), |(t, s), i| (t + i.length.as_secs_f64(), s + i.sent.as_f64() * 8.0));
        let mean = allowed.as_bps() * share;
        Some(Rate::bps((mean * (time + to_come) - sent) / to_come).clamp(Rate::bps(mean / 4.0), Rate::bps(mean)))
    }

    fn check_congestion(&mut self, tr: Duration) -> Option<Trip> {
        let mut wanted = cb_interval(&self.params, tr).min(MOST_INTERVALS);
        if let Some(n) = &mut self.since_cut {
            *n += 1;
            wanted = REPORTS_AFTER_CUT;
        }
        while self.intervals.len() > wanted {
            self.intervals.pop_front();
        }
        if self.intervals.len() < wanted {
            return None;
        }
        let over = self.over_tcp(tr);
        match (over, self.since_cut) {
            (None, Some(n)) if n >= REPORTS_AFTER_CUT => {
                self.since_cut = None;
                Some(Trip::Uncap)
            }
            (None, _) => None,
            (Some((sent, ..)), None) if self.params.tenfold_first => {
                self.intervals.clear();
                self.since_cut = Some(0);
                Some(Trip::Cap(sent / 10.0))
            }
            (Some((sent, allowed, lost)), _) => Some(Trip::Stop(StopReason::Congestion { sent, allowed, lost })),
        }
    }

    /// The sent rate, the allowed rate, and the mean loss, if the sent rate is too much.
    fn over_tcp(&self, tr: Duration) -> Option<(Rate, Rate, f64)> {
        self.ten_times_tcp(tr).filter(|(sent, allowed, _)| sent > allowed)
    }

    /// The sent rate, the allowed rate, and the mean loss.
    fn ten_times_tcp(&self, tr: Duration) -> Option<(Rate, Rate, f64)> {
        let (mut time, mut lost, mut sent, mut packets) = (0.0, 0.0, 0.0, 0);
        for i in &self.intervals {
            let seconds = i.length.as_secs_f64();
            time += seconds;
            lost += i.lost * seconds;
            sent += i.sent.as_f64();
            packets += i.packets;
        }
        let p = lost / time;
        if packets == 0 || p <= 0.0 || tr.is_zero() {
            return None;
        }
        let x = tcp_rate(Bytes::new((sent / packets as f64) as u64), tr, p);
        Some((Rate::bps(sent * 8.0 / time), x * 10.0, p))
    }
}

/// MEDIA_TIMEOUT = ceil(k · max(Tf, Tr, Tdr) / Tdr) reports [RFC 8083 §4.2].
fn media_timeout(p: &BreakerParams, tr: Duration) -> u32 {
    let longest = p.tf.max(tr).max(p.tdr).as_secs_f64();
    ceil(f64::from(p.k) * longest / p.tdr.as_secs_f64()) as u32
}

/// CB_INTERVAL = ceil(3 · min(max(10·G·Tf, 10·Tr, 3·Tdr), max(15, 3·Td)) / (3·Tdr)) reports
/// [RFC 8083 §4.3].
fn cb_interval(p: &BreakerParams, tr: Duration) -> usize {
    let (tf, tr, tdr, td) = (p.tf.as_secs_f64(), tr.as_secs_f64(), p.tdr.as_secs_f64(), p.td.as_secs_f64());
    let wanted = (10.0 * f64::from(p.group) * tf).max(10.0 * tr).max(3.0 * tdr);
    let most = 15.0_f64.max(3.0 * td);
    ceil(3.0 * wanted.min(most) / (3.0 * tdr)) as usize
}

/// The simplified TCP equation, X = s / (Tr · sqrt(2·b·p/3)) with b = 1 [RFC 8083 §4.3].
fn tcp_rate(s: Bytes, tr: Duration, p: f64) -> Rate {
    Rate::bps(s.as_f64() * 8.0 / (tr.as_secs_f64() * (2.0 * p / 3.0).sqrt()))
}

/// Up to the next whole number, forgiving what binary fractions add: 3 · 5 / 5 is 3.
fn ceil(x: f64) -> f64 {
    libm::ceil(x * (1.0 - 1e-12))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn s(x: f64) -> Duration {
        Duration::from_secs_f64(x)
    }

    fn params(tf: f64, tdr: f64) -> BreakerParams {
        BreakerParams { tf: s(tf), tdr: s(tdr), ..BreakerParams::default() }
    }

    fn report(highest_seq: u64, fraction_lost: f64) -> ReceiverReport {
        ReceiverReport::new(highest_seq, fraction_lost, s(5.0))
    }

    /// Ten times TCP's rate is 3.718 Mbit/s, 0.7 of it 2.603. After one report of 5 s at 5 Mbit/s the other two of the
    /// window may have (2.603 · 15 - 5 · 5) / 10 = 1.404 Mbit/s; after a slow one no more than the share itself.
    #[test]
    fn what_was_sent_before_is_taken_off_what_is_bearable() {
        let bearable = |rate: Rate| {
            let mut b = Breaker::new(params(0.033, 5.0));
            congested(&mut b, rate, 1);
            b.bearable(Some(s(0.1)), 0.7).map(|r| (r.as_bps() / 1e3).round())
        };
        assert_eq!(bearable(Rate::mbps(5.0)), Some(1_404.0));
        assert_eq!(bearable(Rate::mbps(1.0)), Some(2_603.0));
        assert_eq!(bearable(Rate::mbps(50.0)), Some(651.0), "a quarter of the share at least");
        assert_eq!(Breaker::new(params(0.033, 5.0)).bearable(Some(s(0.1)), 0.7), None);
    }

    /// [RFC 8083 §4.2], k = 5: ceil(5·5/5), ceil(5·0.6/0.5), ceil(5·1/0.5).
    #[test]
    fn media_timeout_vectors() {
        assert_eq!(media_timeout(&params(0.033, 5.0), s(0.1)), 5);
        assert_eq!(media_timeout(&params(0.033, 0.5), s(0.6)), 6);
        assert_eq!(media_timeout(&params(1.0, 0.5), s(0.1)), 10);
    }

    /// [RFC 8083 §4.3]: 3·min(15, 15)/15 = 3; 3·min(6, 15)/1.5 = 12.
    #[test]
    fn cb_interval_vectors() {
        assert_eq!(cb_interval(&params(0.033, 5.0), s(0.1)), 3);
        assert_eq!(cb_interval(&params(0.033, 0.5), s(0.6)), 12);
    }

    /// 1200 / (0.1 · sqrt(0.2 / 3)) = 46,475.8 byte/s; ten times that is 3.718 Mbit/s.
    #[test]
    fn tcp_rate_vector() {
        let x = tcp_rate(Bytes::new(1_200), s(0.1), 0.1);
        assert!((x.as_bps() / 8.0 - 46_475.8).abs() < 0.05, "{}", x.as_bps() / 8.0);
    }

    /// Sends at `rate` for `reports` intervals of 5 s, each reported with a tenth lost.
    fn congested(b: &mut Breaker, rate: Rate, reports: u64) -> Option<Trip> {
        for n in 1..=reports {
            for _ in 0..(rate * s(5.0)).get() / 1_200 {
                b.on_sent(Instant::ZERO, Bytes::new(1_200), true);
            }
            let trip = b.on_report(&report(n, 0.1), Some(s(0.1)));
            if trip.is_some() {
                assert_eq!(n, reports, "too early");
                return trip;
            }
        }
        None
    }

    #[test]
    fn ten_times_tcps_rate_stops_the_flow_after_three_reports() {
        let b = || Breaker::new(params(0.033, 5.0));
        assert_eq!(congested(&mut b(), Rate::mbps(3.71), 3), None);
        assert_eq!(congested(&mut b(), Rate::mbps(3.73), 2), None);
        let Some(Trip::Stop(StopReason::Congestion { sent, allowed, lost })) = congested(&mut b(), Rate::mbps(3.73), 3)
        else {
            panic!("did not trip")
        };
        assert!((sent.as_bps() / 3.73e6 - 1.0).abs() < 1e-3 && (lost - 0.1).abs() < 1e-12);
        assert!((allowed.as_bps() - 3_718_064.0).abs() < 100.0, "{}", allowed.as_bps());
    }

    #[test]
    fn the_mean_loss_is_weighted_by_the_length_of_the_intervals() {
        let mut b = Breaker::new(params(0.033, 5.0));
        // (0.3 · 1 + 0 · 9 + 0 · 5) / 15 = 0.02: 10 X = 8.314 Mbit/s; unweighted 0.1: 3.718 Mbit/s
        for (n, (lost, length)) in [(0.3, 1.0), (0.0, 9.0), (0.0, 5.0)].into_iter().enumerate() {
            for _ in 0..(Rate::mbps(6.0) * s(length)).get() / 1_200 {
                b.on_sent(Instant::ZERO, Bytes::new(1_200), true);
            }
            let r = ReceiverReport::new(n as u64 + 1, lost, s(length));
            assert_eq!(b.on_report(&r, Some(s(0.1))), None);
        }
    }

    #[test]
    fn a_trip_may_cut_to_a_tenth_first_and_stops_if_two_more_reports_are_no_better() {
        let cut = || {
            let mut b = Breaker::new(BreakerParams { tenfold_first: true, ..params(0.033, 5.0) });
            let Some(Trip::Cap(cap)) = congested(&mut b, Rate::mbps(5.0), 3) else { panic!("did not cut") };
            assert!((cap.as_bps() - 5e5).abs() < 1e3);
            b.highest_seq = None;
            b
        };
        let worse = congested(&mut cut(), Rate::mbps(5.0), 2);
        assert!(matches!(worse, Some(Trip::Stop(StopReason::Congestion { .. }))));
        let mut b = cut();
        assert_eq!(congested(&mut b, Rate::kbps(500.0), 2), Some(Trip::Uncap));
        // From the beginning: three reports, then a cut again.
        b.highest_seq = None;
        b.intervals.clear();
        assert!(matches!(congested(&mut b, Rate::mbps(5.0), 3), Some(Trip::Cap(_))));
    }

    #[test]
    fn no_loss_or_no_rtt_never_trips_on_congestion() {
        let mut b = Breaker::new(params(0.033, 5.0));
        for n in 1..100 {
            b.on_sent(Instant::ZERO, Bytes::new(u64::from(u32::MAX)), true);
            assert_eq!(b.on_report(&report(n, 0.0), Some(s(0.1))), None);
        }
        for n in 100..200 {
            b.on_sent(Instant::ZERO, Bytes::new(u64::from(u32::MAX)), true);
            assert_eq!(b.on_report(&report(n, 1.0), None), None);
        }
    }

    #[test]
    fn five_reports_without_media_stop_the_flow() {
        let mut b = Breaker::new(params(0.033, 5.0));
        b.on_sent(Instant::ZERO, Bytes::new(1_200), true);
        assert_eq!(b.on_report(&report(9, 0.0), Some(s(0.1))), None);
        for n in 1..=5 {
            b.on_sent(Instant::ZERO, Bytes::new(1_200), true);
            let expected = (n == 5).then_some(Trip::Stop(StopReason::MediaTimeout { reports: 5 }));
            assert_eq!(b.on_report(&report(9, 0.0), Some(s(0.1))), expected);
        }
    }

    #[test]
    fn reports_without_media_while_nothing_is_sent_are_no_timeout() {
        let mut b = Breaker::new(params(0.033, 5.0));
        for _ in 0..100 {
            assert_eq!(b.on_report(&report(9, 0.0), Some(s(0.1))), None);
        }
    }

    #[test]
    fn a_longer_rtt_extends_the_media_timeout_and_a_shorter_one_does_not_take_it_back() {
        let mut b = Breaker::new(params(0.033, 0.5));
        let r = ReceiverReport::new(9, 0.0, s(0.5));
        b.on_report(&r, Some(s(0.1)));
        let mut n = 0;
        loop {
            b.on_sent(Instant::ZERO, Bytes::new(1_200), true);
            n += 1;
            // Tr = 0.6 s once: ceil(5 · 0.6 / 0.5) = 6 instead of 5
            if b.on_report(&r, Some(s(if n == 2 { 0.6 } else { 0.1 }))).is_some() {
                break;
            }
        }
        assert_eq!(n, 6);
    }

    #[test]
    fn fifteen_seconds_of_silence_stop_the_flow_and_any_feedback_holds_it_off() {
        let at = Instant::from_secs_f64;
        let mut b = Breaker::new(BreakerParams::default());
        for n in 0..150 {
            b.on_sent(at(f64::from(n) * 0.1), Bytes::new(1_200), true);
            assert_eq!(b.on_timer(at(f64::from(n) * 0.1)), None);
        }
        assert_eq!(b.next(), at(15.0));
        let mut heard = b.clone();
        heard.on_feedback();
        assert_eq!((heard.next(), heard.on_timer(at(15.0))), (Instant::NEVER, None));
        let stop = Trip::Stop(StopReason::FeedbackTimeout { after: s(15.0) });
        assert_eq!(b.on_timer(at(15.0)), Some(stop));
    }

    /// Ten seconds by UDP and five by TCP. An acknowledgement of TCP starts TCP's clock anew, and leaves that of the
    /// datagrams.
    #[test]
    fn fifteen_seconds_of_silence_by_one_transport_and_then_the_other_stop_the_flow() {
        let at = Instant::from_secs_f64;
        let mut b = Breaker::new(BreakerParams::default());
        for n in 0..=100 {
            b.on_sent(at(f64::from(n) * 0.1), Bytes::new(1_200), true);
        }
        b.pause(at(10.0));
        assert_eq!(b.next(), Instant::NEVER);
        b.await_tcp(at(10.0));
        b.await_tcp(at(11.0));
        assert_eq!(b.next(), at(15.0));
        let mut alive = b.clone();
        alive.on_tcp_progress();
        alive.await_tcp(at(12.0));
        assert_eq!(alive.next(), at(27.0));
        alive.on_tcp_progress();
        alive.on_feedback();
        alive.resume(at(13.0));
        assert_eq!(alive.next(), at(18.0));
        // An application that had nothing to send meanwhile was not unheard.
        let mut idle = Breaker::new(BreakerParams::default());
        for t in [0.0, 0.1, 0.2] {
            idle.on_sent(at(t), Bytes::new(1_200), true);
        }
        idle.on_idle(at(0.3));
        idle.pause(at(10.0));
        idle.await_tcp(at(10.0));
        assert_eq!(idle.next(), at(25.0));
    }

    /// Timeouts that double, as a window makes them: the seventh packet leaves at 12.6 s, 6.4 s after the sixth.
    #[test]
    fn packets_far_apart_that_nothing_answers_are_one_silence() {
        let at = Instant::from_secs_f64;
        let mut b = Breaker::new(BreakerParams::default());
        for t in [0.0, 0.2, 0.6, 1.4, 3.0, 6.2, 12.6] {
            b.on_sent(at(t), Bytes::new(1_200), true);
            // Another packet is there after a moment each time.
            b.on_idle(at(t + 0.01));
            b.on_sent(at(t + 0.02), Bytes::new(1_200), true);
        }
        assert_eq!((b.next(), b.on_timer(at(14.9))), (at(15.0), None));
        assert!(b.on_timer(at(15.0)).is_some());
    }

    /// Three packets, all lost, before a pause of the application; the next three are timed anew.
    #[test]
    fn a_pause_of_the_application_is_not_a_dead_path() {
        let at = Instant::from_secs_f64;
        let mut b = Breaker::new(BreakerParams::default());
        for from in [0.0, 60.0] {
            for t in [0.0, 0.1, 0.2] {
                b.on_sent(at(from + t), Bytes::new(1_200), true);
            }
            assert_eq!(b.next(), at(from + 15.0));
            b.on_idle(at(from + 0.3));
            b.on_idle(at(from + 10.0));
            assert_eq!((b.on_timer(at(from + 15.0)), b.next()), (None, Instant::NEVER));
        }
        // One of less than Td changes nothing.
        let mut b = Breaker::new(BreakerParams::default());
        for t in [0.0, 0.1, 0.2, 5.1] {
            b.on_sent(at(t), Bytes::new(1_200), true);
            b.on_idle(at(t + 0.01));
        }
        b.on_sent(at(10.0), Bytes::new(1_200), true);
        assert_eq!(b.next(), at(15.0));
    }

    #[test]
    fn a_report_with_nonsense_in_it_is_ignored() {
        let mut b = Breaker::new(BreakerParams::default());
        for lost in [f64::NAN, -0.1, 1.1, f64::INFINITY] {
            assert_eq!(b.on_report(&report(1, lost), Some(s(0.1))), None);
        }
        assert_eq!(b.highest_seq, None);
    }
}
