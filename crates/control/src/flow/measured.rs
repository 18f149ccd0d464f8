//! The memory by which reports of a receiver that measures are judged.

use crate::feedback::RateReport;
use crate::ledger::Ledger;
use crate::meter::Meter;
use fairpace_units::{Bytes, Duration, Instant, Rate};

/// How far what a report echoes may lie from a real departure: a header may carry milliseconds only.
const ECHO_TOLERANCE: Duration = Duration::from_millis(1);

/// Of the most that was ever allowed, what a receiver may say that it received: a queue that empties
/// delivers a little faster than was sent.
const ARRIVAL_MARGIN: f64 = 1.05;

/// The data sent bounds the data received over an RTT divided by this, or longer: reports come once per RTT, a little
/// more or less.
const SENT_SPANS: u32 = 2;

#[derive(Clone, Debug)]
pub(super) struct Measured {
    /// A report may be repeated, once: ns-2's receiver makes another if no packet comes for a while, not a copy, as that packet is older then.
    /// And whether the last one was.
    repeats: bool,
    repeated: bool,
    /// The last report.
    last: Option<RateReport>,
    /// The data sent, by departure, as far as reports echo.
    sent: Meter,
    /// The same by when the report came, with [`super::FlowParams::bursty_path`].
    reported: Option<Meter>,
    /// The highest rate that was allowed when a report came.
    most: Rate,
}

/// The flow's knowledge when a report comes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    pub(super) now: Instant,
    pub(super) srtt: Option<Duration>,
    pub(super) packet_size: Bytes,
    /// The rate that the controller allows.
    pub(super) allowed: Rate,
}

impl Measured {
    pub(super) fn new(bursty_path: bool, repeats: bool) -> Measured {
        Measured {
            repeats,
            repeated: false,
            last: None,
            sent: Meter::starting(Instant::ZERO),
            reported: bursty_path.then(|| Meter::starting(Instant::ZERO)),
            most: Rate::ZERO,
        }
    }

    /// Whether a report can be true, and is news.
    pub(super) fn is_believable(&self, now: Instant, r: &RateReport, data: &Ledger) -> bool {
        let news = self.last.is_none_or(|last| {
            // The same packet twice is news only if it revealed a loss, or where reports are repeated.
            let may_repeat = self.repeats && !self.repeated && r.delay > last.delay;
            r.echoed > last.echoed
                || (r.echoed == last.echoed && (may_repeat || r.loss_event_rate > last.loss_event_rate))
        });
        news && (0.0..=1.0).contains(&r.loss_event_rate)
            && r.echoed <= now
            && r.delay <= now.since(r.echoed)
            && data.left_around(r.echoed, ECHO_TOLERANCE)
    }

    /// A believable report, cut to what can be true: X_recv is at most what was sent in the time that the report covers, or
    /// the packet per RTT that it always is [RFC 5348 §6.2], and little more than the most that was ever allowed. p cannot
    /// be checked: it is as good as the receiver's word. Settles the ledger.
    pub(super) fn take(&mut self, r: &RateReport, data: &mut Ledger, known: Known) -> RateReport {
        let srtt = known.srtt.unwrap_or(Duration::ZERO);
        let span = srtt / SENT_SPANS;
        let settled = data.settle(r.echoed);
        let mut sent = 0.0_f64;
        let meters = [(Some(&mut self.sent), r.echoed), (self.reported.as_mut(), known.now)];
        for (meter, at) in meters.into_iter().filter_map(|(meter, at)| Some((meter?, at))) {
            match self.last {
                None => *meter = Meter::starting(at),
                Some(_) => meter.add(settled.get()),
            }
            sent = sent.max(meter.rate(at, span).unwrap_or(f64::INFINITY));
            meter.mark(at, span);
        }
        let before = self.last.filter(|last| last.echoed == r.echoed);
        self.repeated = before.is_some();
        // Of two reports of a packet the higher p: a copy of the first is no news behind the second.
        let p = before.map_or(0.0, |last| last.loss_event_rate).max(r.loss_event_rate);
        self.last = Some(RateReport { loss_event_rate: p, ..*r });
        let sent = if sent.is_finite() { Rate::bps(sent * 8.0) } else { Rate::MAX };
        self.most = self.most.max(known.allowed);
        let one_per_rtt = Rate::bps(known.packet_size.as_f64() * 8.0 / srtt.as_secs_f64());
        let received_rate = r.received_rate.min(sent.max(one_per_rtt)).min(self.most * ARRIVAL_MARGIN);
        RateReport { received_rate, ..*r }
    }
}
