//! The circuit breaker's watch over a flow: what it hears, and the reports that it judges.

use crate::breaker::{Breaker, BreakerParams, ReceiverReport, Trip};
use fairpace_units::{Bytes, Duration, Instant, Kind, Rate, Via};

/// A responsive flow is kept at this share of what the breaker would bear. The loss that both go by is a count of few
/// packets: ten lost in a window vary by a third, and ten times TCP's rate goes with the root of it.
const HEADROOM: f64 = 0.7;

/// So many data packets lost in a row, all that was sent in an SRTT, are an outage. At nine tenths
/// lost at random one run in eight is as long.
const OUTAGE_PACKETS: u64 = 20;

/// The fate of data since the last report.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    heard: bool,
    expected: u64,
    received: u64,
}

#[derive(Debug)]
pub(crate) struct Watch {
    breaker: Option<Breaker>,
    /// The reports come from the receiver; before the first, from the ledger.
    reported: bool,
    every: Duration,
    next_report: Instant,
    tally: Tally,
    /// The highest data number acknowledged, and when it left; `None` before the first.
    newest: Option<(u64, Instant)>,
    /// Packets beyond that of whose fate nobody will tell: not expected.
    untold: u64,
}

impl Watch {
    /// `breaker`: its settings, if it is on; `interval`: how often the controller wants reports.
    pub(crate) fn new(breaker: Option<BreakerParams>, interval: Option<Duration>) -> Watch {
        let tuned = |b: BreakerParams| BreakerParams { tdr: interval.unwrap_or(b.tdr), ..b };
        Watch {
            every: breaker.map_or(Duration::MAX, |b| tuned(b).tdr),
            breaker: breaker.map(|b| Breaker::new(tuned(b))),
            reported: false,
            next_report: Instant::NEVER,
            tally: Tally::default(),
            newest: None,
            untold: 0,
        }
    }

    pub(crate) fn start(&mut self, now: Instant) {
        self.next_report = now + self.every;
    }

    pub(crate) const fn is_on(&self) -> bool {
        self.breaker.is_some()
    }

    #[cfg(test)]
    pub(crate) const fn is_reported(&self) -> bool {
        self.reported
    }

    /// When the newest data packet left that is acknowledged.
    #[inline]
    pub(crate) fn newest_departure(&self) -> Option<Instant> {
        self.newest.map(|(_, departure)| departure)
    }

    #[inline]
    pub(crate) fn on_sent(&mut self, now: Instant, size: Bytes, kind: Kind, via: Via) {
        if let Some(b) = &mut self.breaker {
            match via {
                Via::Udp => b.on_sent(now, size, kind == Kind::Data),
                Via::Tcp => b.await_tcp(now),
            }
        }
    }

    /// A packet is acknowledged for the first time: a replay of old feedback holds nothing off.
    #[inline]
    pub(crate) fn on_news(&mut self) {
        self.tally.heard = true;
        self.on_feedback();
    }

    /// Feedback that is worth something has come.
    #[inline]
    pub(crate) fn on_feedback(&mut self) {
        if let Some(b) = &mut self.breaker {
            b.on_feedback();
        }
    }

    pub(crate) fn on_stall(&mut self, late: Duration) {
        if let Some(b) = &mut self.breaker {
            b.on_stall(late);
        }
    }

    pub(crate) fn on_idle(&mut self, now: Instant) {
        if let Some(b) = &mut self.breaker {
            b.on_idle(now);
        }
    }

    pub(crate) fn on_tcp_progress(&mut self) {
        if let Some(b) = &mut self.breaker {
            b.on_tcp_progress();
        }
    }

    pub(crate) fn await_tcp(&mut self, now: Instant) {
        if let Some(b) = &mut self.breaker {
            b.await_tcp(now);
        }
    }

    /// The transport was `before` and is `after`: the breaker times each on its own.
    pub(crate) fn note_via(&mut self, now: Instant, before: Via, after: Via) {
        if let Some(b) = &mut self.breaker {
            match (before, after) {
                (Via::Udp, Via::Tcp) => b.pause(now),
                (Via::Tcp, Via::Udp) => b.resume(now),
                _ => {}
            }
        }
    }

    /// A data packet is acknowledged. Counts as a receiver would for its report [RFC 3550 §A.3]: what was expected, what
    /// came. A run of losses that swallowed everything for an SRTT is an outage and not expected: §4.1 of RFC 8083 is there
    /// for those, and §4.3 would end every flow that survives one.
    #[inline]
    pub(crate) fn count(&mut self, seq: u64, sent_at: Instant, srtt: Option<Duration>) {
        self.tally.received += 1;
        let Some((highest, highest_sent_at)) = self.newest else {
            self.tally.expected += 1;
            self.newest = Some((seq, sent_at));
            return;
        };
        if seq <= highest {
            return;
        }
        let lost = (seq - highest - 1).saturating_sub(core::mem::take(&mut self.untold));
        let span = sent_at.since(highest_sent_at);
        let outage = lost >= OUTAGE_PACKETS && srtt.is_some_and(|srtt| span >= srtt);
        self.tally.expected += if outage { 1 } else { lost + 1 };
        self.newest = Some((seq, sent_at));
    }

    /// Nobody will tell of data packet `seq`.
    pub(crate) fn leave_out(&mut self, seq: u64) {
        self.untold += u64::from(self.newest.is_none_or(|(highest, _)| seq > highest));
    }

    /// The receiver reports: from now on, it is the one who does.
    pub(crate) const fn on_receiver_report(&mut self) {
        self.reported = true;
        self.next_report = Instant::NEVER;
    }

    /// The breaker judges a report; the ledger's own knowledge of losses, which no receiver can
    /// embellish, replaces the stated one if there is any.
    pub(crate) fn judge(&mut self, mut report: ReceiverReport, srtt: Option<Duration>) -> Option<Trip> {
        let t = core::mem::take(&mut self.tally);
        if t.expected > 0 {
            report.fraction_lost = (1.0 - t.received as f64 / t.expected as f64).max(0.0);
        }
        self.breaker.as_mut()?.on_report(&report, srtt)
    }

    /// The most that a responsive flow should send, so that the breaker need not stop it; `None` while nothing is lost.
    pub(crate) fn headroom(&self, srtt: Option<Duration>) -> Option<Rate> {
        self.breaker.as_ref().and_then(|b| b.bearable(srtt, HEADROOM))
    }

    /// When something is due even if nothing happens.
    #[inline]
    pub(crate) fn next(&self) -> Instant {
        self.breaker.as_ref().map_or(Instant::NEVER, |b| b.next().min(self.next_report))
    }

    /// The report that is due from the ledger, which knows as much where the receiver sends none.
    #[inline]
    pub(crate) fn take_report(&mut self, now: Instant) -> Option<ReceiverReport> {
        if self.breaker.is_none() || self.next_report > now {
            return None;
        }
        self.next_report = now + self.every;
        if self.reported || !self.tally.heard {
            return None;
        }
        let highest_seq = self.newest.map_or(0, |(seq, _)| seq);
        Some(ReceiverReport::new(highest_seq, 0.0, self.every))
    }

    #[inline]
    pub(crate) fn on_timer(&mut self, now: Instant) -> Option<Trip> {
        self.breaker.as_mut().and_then(|b| b.on_timer(now))
    }
}
