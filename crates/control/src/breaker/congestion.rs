//! §4.3: the rate sent beside ten times TCP's, over CB_INTERVAL reports; and the rate that would be borne.

use super::types::{BreakerParams, Counts, Partial, ReceiverReport};
use fairpace_units::{Bytes, Duration, Rate};
use std::collections::VecDeque;

/// Intervals kept: CB_INTERVAL stays below this for reporting intervals of 15 ms and more.
const MOST_INTERVALS: usize = 1_024;

/// The packets that left in a time.
#[derive(Clone, Copy, Debug, Default)]
struct Sent {
    /// Data.
    data: Bytes,
    /// Packets of data.
    packets: u64,
    /// Data and dummies.
    all: Bytes,
}

/// A reporting interval.
#[derive(Clone, Copy, Debug)]
struct Interval {
    length: Duration,
    lost: f64,
    /// The mean round trip; zero if there is none.
    rtt: Duration,
    sent: Sent,
}

/// The judgement of some intervals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Judged {
    /// The rate of data.
    pub(super) sent: Rate,
    /// Ten times TCP's rate; without end if nothing was lost, or no round trip is known.
    pub(super) allowed: Rate,
    /// The mean fraction of packets lost.
    pub(super) lost: f64,
    /// Whether the last of the intervals, by itself, has more than the allowed rate too.
    pub(super) lasts: bool,
}

impl Judged {
    /// More was sent than is allowed.
    pub(super) fn is_over(&self) -> bool {
        self.sent > self.allowed
    }
}

/// Sums over intervals.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    time: f64,
    lost: f64,
    rtt: f64,
    /// The time of the intervals with a round trip.
    rtt_time: f64,
    data: f64,
    packets: u64,
    all: f64,
}

impl Sums {
    fn add(&mut self, i: &Interval) {
        let seconds = i.length.as_secs_f64();
        self.time += seconds;
        self.lost += i.lost * seconds;
        if !i.rtt.is_zero() {
            self.rtt += i.rtt.as_secs_f64() * seconds;
            self.rtt_time += seconds;
        }
        self.data += i.sent.data.as_f64();
        self.packets += i.sent.packets;
        self.all += i.sent.all.as_f64();
    }

    /// The mean fraction of packets lost, weighted by the length of the intervals [RFC 8083 §4.3].
    fn p(&self) -> f64 {
        self.lost / self.time
    }

    /// The mean round trip; zero if there is none.
    fn tr(&self) -> Duration {
        if self.rtt_time > 0.0 { Duration::from_secs_f64(self.rtt / self.rtt_time) } else { Duration::ZERO }
    }

    /// The rate of data.
    fn rate(&self) -> Rate {
        Rate::bps(self.data * 8.0 / self.time)
    }

    /// Ten times TCP's rate, or no limit.
    fn allowed(&self) -> Rate {
        self.ten_times_tcp().unwrap_or(Rate::MAX)
    }

    /// Ten times TCP's rate; `None` if nothing was lost or sent, or no round trip is known.
    fn ten_times_tcp(&self) -> Option<Rate> {
        let (p, tr) = (self.p(), self.tr());
        if self.packets == 0 || p <= 0.0 || tr.is_zero() {
            return None;
        }
        Some(tcp_rate(Bytes::new((self.data / self.packets as f64) as u64), tr, p) * 10.0)
    }
}

#[derive(Clone, Debug)]
pub(super) struct Congestion {
    params: BreakerParams,
    intervals: VecDeque<Interval>,
    /// Since the last interval that was counted.
    sent: Sent,
    /// Data packets since the last report.
    packets_since_report: u64,
    /// Reports that were not counted, together.
    uncounted: Duration,
}

impl Congestion {
    pub(super) fn new(params: BreakerParams) -> Congestion {
        Congestion {
            params,
            intervals: VecDeque::new(),
            sent: Sent::default(),
            packets_since_report: 0,
            uncounted: Duration::ZERO,
        }
    }

    #[inline]
    pub(super) fn on_sent(&mut self, size: Bytes, is_data: bool) {
        self.sent.all += size;
        if is_data {
            self.sent.data += size;
            self.sent.packets += 1;
            self.packets_since_report += 1;
        }
    }

    /// Data packets sent since the last report.
    pub(super) const fn sent_data(&self) -> u64 {
        self.packets_since_report
    }

    pub(super) fn on_report(&mut self, report: &ReceiverReport, tr: Duration, counts: Counts) {
        self.packets_since_report = 0;
        let length = core::mem::replace(&mut self.uncounted, Duration::ZERO) + report.interval;
        if counts == Counts::Later {
            self.uncounted = length;
            return;
        }
        if self.intervals.len() >= MOST_INTERVALS {
            self.intervals.pop_front();
        }
        let sent = core::mem::take(&mut self.sent);
        self.intervals.push_back(Interval { length, lost: report.fraction_lost, rtt: tr, sent });
    }

    /// A cut: what was before it counts no more.
    pub(super) fn forget(&mut self) {
        self.intervals.clear();
    }

    /// CB_INTERVAL, at the mean round trip of the last intervals.
    pub(super) fn wanted(&self) -> usize {
        let last = self.intervals.back().map_or(Duration::ZERO, |i| i.rtt);
        let most = cb_interval(&self.params, last).min(MOST_INTERVALS);
        // The mean over the intervals of the longest window that the last round trip asks for.
        cb_interval(&self.params, self.sums(most).tr().max(last)).min(MOST_INTERVALS)
    }

    fn sums(&self, most: usize) -> Sums {
        let mut sums = Sums::default();
        self.intervals.iter().rev().take(most).for_each(|i| sums.add(i));
        sums
    }

    /// The judgement of the last `wanted` intervals; `None` until there are so many. Older ones are forgotten.
    pub(super) fn judge(&mut self, wanted: usize) -> Option<Judged> {
        while self.intervals.len() > wanted {
            self.intervals.pop_front();
        }
        if self.intervals.len() < wanted {
            return None;
        }
        let (sums, last) = (self.sums(wanted), self.sums(1));
        Some(Judged { sent: sums.rate(), allowed: sums.allowed(), lost: sums.p(), lasts: last.rate() > last.allowed() })
    }

    /// See [`super::Breaker::bearable`]; `wanted` intervals are judged next.
    pub(super) fn bearable(&self, wanted: usize, partial: Option<Partial>, share: f64) -> Option<Rate> {
        // The next judgement is over these and the reports to come.
        let kept = self.intervals.len().min(wanted.saturating_sub(1));
        let mut judged = self.sums(wanted);
        let mut before = self.sums(kept);
        let report = self.intervals.back().map_or(self.params.tdr, |i| i.length);
        let mut to_come = report.as_secs_f64() * (wanted - kept) as f64;
        if let Some(partial) = partial {
            let since = Interval {
                length: partial.time + self.uncounted,
                lost: partial.lost,
                rtt: partial.rtt,
                sent: self.sent,
            };
            judged = before;
            judged.add(&since);
            before.add(&since);
            to_come = (to_come - since.length.as_secs_f64()).max(1.0);
        }
        let mean = judged.ten_times_tcp()?.as_bps() * share;
        let rate = (mean * (before.time + to_come) - before.all * 8.0) / to_come;
        Some(Rate::bps(rate).clamp(Rate::bps(mean / 4.0), Rate::bps(mean)))
    }
}

/// CB_INTERVAL = ceil(3 · min(max(10·G·Tf, 10·Tr, 3·Tdr), max(15, 3·Td)) / (3·Tdr)) reports
/// [RFC 8083 §4.3].
pub(super) fn cb_interval(p: &BreakerParams, tr: Duration) -> usize {
    let (tf, tr, tdr, td) = (p.tf.as_secs_f64(), tr.as_secs_f64(), p.tdr.as_secs_f64(), p.td.as_secs_f64());
    let wanted = (10.0 * f64::from(p.group) * tf).max(10.0 * tr).max(3.0 * tdr);
    let most = 15.0_f64.max(3.0 * td);
    ceil(3.0 * wanted.min(most) / (3.0 * tdr)) as usize
}

/// The simplified TCP equation, X = s / (Tr · sqrt(2·b·p/3)) with b = 1 [RFC 8083 §4.3].
pub(super) fn tcp_rate(s: Bytes, tr: Duration, p: f64) -> Rate {
    Rate::bps(s.as_f64() * 8.0 / (tr.as_secs_f64() * (2.0 * p / 3.0).sqrt()))
}

/// Up to the next whole number, forgiving what binary fractions add: 3 · 5 / 5 is 3.
pub(super) fn ceil(x: f64) -> f64 {
    libm::ceil(x * (1.0 - 1e-12))
}
