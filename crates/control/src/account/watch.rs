//! The circuit breaker's watch over a flow: what it hears, and the reports that it judges.

use crate::breaker::{Breaker, BreakerParams, Counts, Partial, ReceiverReport, Trip};
use fairpace_units::{Bytes, Duration, Instant, Kind, Rate, Via};

/// A responsive flow is kept at this share of what the breaker would bear. The loss that both go by is a count of few
/// packets: ten lost in a window vary by a third, and ten times TCP's rate goes with the root of it.
const HEADROOM: f64 = 0.7;

/// So many data packets lost in a row, all that was sent in an SRTT, are an outage. At nine tenths
/// lost at random one run in eight is as long.
const OUTAGE_PACKETS: u64 = 20;

/// The hold on a responsive flow is brought up to date this often, or once per round trip if that is longer.
const HOLD_PERIOD: Duration = Duration::from_secs(1);

/// The fate of data since the last report.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    heard: bool,
    expected: u64,
    received: u64,
    /// The sum of the round trips, and their number.
    rtts: Duration,
    samples: u32,
}

impl Tally {
    /// The fraction lost; `None` if nothing is known of any packet.
    fn lost(&self) -> Option<f64> {
        (self.expected > 0).then(|| (1.0 - self.received as f64 / self.expected as f64).max(0.0))
    }

    /// The mean round trip.
    fn rtt(&self) -> Option<Duration> {
        (self.samples > 0).then(|| Duration::from_secs_f64(self.rtts.as_secs_f64() / f64::from(self.samples)))
    }
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
    /// Packets below this left before a cut: they count no more.
    after: u64,
    /// The next report of a receiver tells, in part, of packets from before the cut.
    mixed: bool,
    /// When the last report was judged.
    judged_at: Instant,
    /// When the last report came that ended an interval of the breaker.
    counted_at: Instant,
    /// When the hold is to be brought up to date; NEVER if nothing is held.
    next_hold: Instant,
}

impl Watch {
    /// `breaker`: its settings, if it is on; `interval`: how often the controller wants reports; `responsive`: whether the
    /// controller lowers its rate when the path is full.
    pub(crate) fn new(breaker: Option<BreakerParams>, interval: Option<Duration>, responsive: bool) -> Watch {
        let tuned = |b: BreakerParams| BreakerParams { tdr: interval.unwrap_or(b.tdr), ..b };
        Watch {
            every: breaker.map_or(Duration::MAX, |b| tuned(b).tdr),
            breaker: breaker.map(|b| Breaker::new(tuned(b), responsive)),
            reported: false,
            next_report: Instant::NEVER,
            tally: Tally::default(),
            newest: None,
            untold: 0,
            after: 0,
            mixed: false,
            judged_at: Instant::ZERO,
            counted_at: Instant::ZERO,
            next_hold: Instant::NEVER,
        }
    }

    pub(crate) fn start(&mut self, now: Instant) {
        self.next_report = now + self.every;
        (self.judged_at, self.counted_at) = (now, now);
        if self.breaker.is_some() {
            self.next_hold = now + HOLD_PERIOD;
        }
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

    /// The receiver has answered a question.
    pub(crate) fn on_echo(&mut self, now: Instant) {
        if let Some(b) = &mut self.breaker {
            b.on_echo(now);
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
    pub(crate) fn count(&mut self, seq: u64, sent_at: Instant, rtt: Option<Duration>, srtt: Option<Duration>) {
        if seq < self.after {
            return;
        }
        self.tally.received += 1;
        if let Some(rtt) = rtt {
            self.tally.rtts += rtt;
            self.tally.samples += 1;
        }
        let Some((highest, highest_sent_at)) = self.newest else {
            self.tally.expected += 1;
            self.newest = Some((seq, sent_at));
            return;
        };
        if seq <= highest {
            return;
        }
        let lost = (seq - self.after.max(highest + 1)).saturating_sub(core::mem::take(&mut self.untold));
        let span = sent_at.since(highest_sent_at);
        let outage = lost >= OUTAGE_PACKETS && srtt.is_some_and(|srtt| span >= srtt);
        self.tally.expected += if outage { 1 } else { lost + 1 };
        self.newest = Some((seq, sent_at));
    }

    /// A cut: only packets from number `seq` on count.
    pub(crate) fn begin_after(&mut self, seq: u64) {
        self.after = seq;
        self.mixed = true;
        self.tally = Tally { heard: self.tally.heard, ..Tally::default() };
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
    pub(crate) fn judge(&mut self, now: Instant, mut report: ReceiverReport, srtt: Option<Duration>) -> Option<Trip> {
        let breaker = self.breaker.as_mut()?;
        self.judged_at = now;
        let t = core::mem::take(&mut self.tally);
        let mut counts = Counts::Yes;
        if breaker.is_deciding() && t.rtt().max(srtt).is_some_and(|rtt| now.since(self.counted_at) < rtt) {
            // Shorter than a round trip: an interval after a cut shows nothing of it.
            counts = Counts::Later;
            self.tally = t;
        } else if let Some(lost) = t.lost() {
            report.fraction_lost = lost;
            self.mixed = false;
        } else if self.mixed {
            // A receiver's own count includes packets from before the cut until a report has told of one after it.
            counts = Counts::Later;
            self.mixed = report.highest_seq < self.after;
        }
        if counts == Counts::Yes {
            self.counted_at = now;
        }
        breaker.on_report(&report, t.rtt().or(srtt), counts)
    }

    /// Whether the flow's hold is to be brought up to date between two reports: something is known beyond the last one.
    #[inline]
    pub(crate) fn is_hold_due(&self, now: Instant) -> bool {
        self.next_hold <= now && self.tally.expected > 0
    }

    /// The most that a responsive flow should send, dummies included, so that the breaker need not cut it, and the time
    /// over which that is a mean; `None` while nothing is lost.
    pub(crate) fn headroom(&mut self, now: Instant, srtt: Option<Duration>) -> (Option<Rate>, Duration) {
        let period = srtt.map_or(HOLD_PERIOD, |srtt| srtt.max(HOLD_PERIOD));
        self.next_hold = now + period;
        let partial = self.tally.lost().map(|lost| Partial {
            time: now.since(self.judged_at),
            lost,
            rtt: self.tally.rtt().or(srtt).unwrap_or(Duration::ZERO),
        });
        (self.breaker.as_ref().and_then(|b| b.bearable(partial, HEADROOM)), period)
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
