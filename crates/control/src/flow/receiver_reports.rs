//! The state of one flow's data by RTCP receiver reports.

use crate::breaker::ReceiverReport;
use core::cmp::Ordering;

#[derive(Debug, Default)]
pub(super) struct ReceiverReports {
    /// The highest number that a report has named.
    highest: Option<u64>,
    /// Highest number and cumulative loss of the last report that told the latter.
    lost: Option<(u64, i64)>,
}

impl ReceiverReports {
    /// How the packets that a report tells of compare with those of the reports before: `Greater` tells of a further one.
    pub(super) fn order(&self, report: &ReceiverReport) -> Ordering {
        self.highest.map_or(Ordering::Greater, |highest| report.highest_seq.cmp(&highest))
    }

    /// Takes a report in, and gives the report with the loss since the last one, as finely as both tell: the 8 bits of the
    /// fraction are nought for less than one packet in 256.
    pub(super) fn take(&mut self, report: &ReceiverReport) -> ReceiverReport {
        self.highest = self.highest.max(Some(report.highest_seq));
        let mut report = *report;
        if let Some(lost) = report.lost {
            if let Some((highest, lost_then)) = self.lost
                && report.highest_seq > highest
            {
                let expected = (report.highest_seq - highest) as f64;
                report.fraction_lost = (lost.saturating_sub(lost_then) as f64 / expected).clamp(0.0, 1.0);
            }
            self.lost = Some((report.highest_seq, lost));
        }
        report
    }
}
