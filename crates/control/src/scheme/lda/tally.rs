//! The contents of receiver reports on a flow between two adaptation points. LDA's, and that of TPBA's running
//! period.

use crate::breaker::ReceiverReport;
use fairpace_units::{Bytes, Instant, Rate};

/// The sum of the reports since the last adaptation point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Heard {
    /// p_loss: lost / expected, in `[0, 1]`.
    pub(crate) p: f64,
    /// The rate of arrivals, and one packet more; `None` until two reports have come.
    pub(crate) delivered: Option<Rate>,
}

/// Reports since the last adaptation point, on packets from a number on.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    /// The first number that counts; `None` before it has left.
    first: Option<u64>,
    /// Highest number and cumulative loss as of the last report.
    highest: Option<u64>,
    lost_then: Option<i64>,
    /// Since the last adaptation point: numbers expected, the growth of the cumulative count, and what was lost by the
    /// fraction where there is no such count.
    expected: u64,
    lost: i64,
    lost_stated: f64,
    /// When the oldest packet left that left after the last news.
    awaited: Option<Instant>,
    /// The last report with news, the last one before this adaptation interval, and what was expected between them.
    news_at: Option<Instant>,
    news_from: Option<Instant>,
    expected_between: u64,
    /// Sent in this interval.
    sent: (u64, Bytes),
}

impl Tally {
    pub(crate) fn new() -> Tally {
        Tally {
            first: None,
            highest: None,
            lost_then: Some(0),
            expected: 0,
            lost: 0,
            lost_stated: 0.0,
            awaited: None,
            news_at: None,
            news_from: None,
            expected_between: 0,
            sent: (0, Bytes::ZERO),
        }
    }

    /// Only packets that leave from now on count.
    pub(crate) fn begin(&mut self) {
        *self = Tally { highest: self.highest, lost_then: self.lost_then, ..Tally::new() };
    }

    pub(crate) fn on_sent(&mut self, now: Instant, seq: u64, size: Bytes) {
        self.first.get_or_insert(seq);
        self.awaited.get_or_insert(now);
        self.sent.0 += 1;
        self.sent.1 += size;
    }

    pub(crate) fn on_report(&mut self, now: Instant, report: &ReceiverReport) {
        if self.highest.is_some_and(|highest| report.highest_seq <= highest) {
            return;
        }
        let before = self.highest.replace(report.highest_seq);
        let lost_then = core::mem::replace(&mut self.lost_then, report.lost);
        let Some(first) = self.first.filter(|first| report.highest_seq >= *first) else { return };
        let news = report.highest_seq - before.map_or(first, |highest| first.max(highest + 1)) + 1;
        self.expected += news;
        match (lost_then, report.lost) {
            (Some(then), Some(lost)) => self.lost = self.lost.saturating_add(lost.saturating_sub(then)),
            _ => self.lost_stated += report.fraction_lost * news as f64,
        }
        self.awaited = None;
        if self.news_at.replace(now).is_some() {
            self.expected_between += news;
        } else {
            self.news_from = Some(now);
        }
    }

    /// An adaptation point: what was heard since the last one; `None` if there was no news.
    pub(crate) fn take(&mut self) -> Option<Heard> {
        if self.expected == 0 {
            return None;
        }
        let p = ((self.lost.max(0) as f64 + self.lost_stated) / self.expected as f64).clamp(0.0, 1.0);
        let time = self.news_at.zip(self.news_from).map_or(0.0, |(to, from)| to.since(from).as_secs_f64());
        let (packets, bytes) = self.sent;
        let delivered = (time > 0.0 && packets > 0).then(|| {
            let size = bytes.as_f64() / packets as f64;
            Rate::bps((self.expected_between as f64 * (1.0 - p) + 1.0) * size * 8.0 / time)
        });
        (self.expected, self.lost, self.lost_stated) = (0, 0, 0.0);
        (self.expected_between, self.news_from, self.sent) = (0, self.news_at, (0, Bytes::ZERO));
        Some(Heard { p, delivered })
    }

    /// When the oldest packet left that no report can have covered; `None` if there is none.
    pub(crate) fn awaited(&self) -> Option<Instant> {
        self.awaited
    }
}
