//! The circuit breaker above every controller: limits a flow that outruns TCP, and stops one that harms its path.
//!
//! Source: [RFC 8083 §4], the sender's side. Three conditions: nothing is heard from the receiver (§4.1), reports come but
//! the media does not arrive (§4.2), both in `breaker/timeouts.rs`; the flow sends more than ten times what TCP would at
//! the same loss and RTT (§4.3), in `breaker/congestion.rs`. The breaker is a last resort and much slower than
//! any controller. The breaker never starts a flow again by itself (§4.5).
//!
//! §4.3 has steps, in `breaker/cut.rs`:
//!
//! 1. [`Breaker::bearable`]: a responsive flow is held below a share of ten times TCP's rate, before the rule trips.
//! 2. [`Trip::Cut`]: the rule trips; no more than a tenth of the rate that was sent [§4.3: MAY].
//! 3. The next two intervals decide, by packets that left after the cut. Still over, in both together and in the second
//!    alone (a buffer that was full at the cut still loses packets of the first): [`Trip::Stop`] [§4.3: MUST]. Else
//!    [`Trip::Raise`]: twice as much with each interval, then [`Trip::Lift`].
//!
//! A flow that does not give way gets the two intervals at a tenth and then stops: no later one would be better.
//!
//! Readings: per-packet feedback is not a report, so it holds off §4.1 but does not feed §4.3
//! (§5); where no receiver reports exist at all, [`crate::Flow`] makes them from its own ledger, and
//! where it has one, its own count of losses is the one that is judged. Tr is the mean over CB_INTERVAL, as p is: where
//! a buffer fills and drains, the latest round trip belongs to other packets than p. Only data counts as sent: dummies
//! have a synchronisation source of their own; the limit of step 1 counts them. §4.1's time runs from the first packet
//! that nothing has answered, however far apart
//! the next ones are: a scheme that backs off on a dead path is no less unheard. But an application that had nothing to send
//! for longer than Td was not unheard, and what went unanswered before its pause counts no more. A report that tells of no
//! further packet holds §4.1 off no more than silence would ([`crate::Flow`]). §4.2 counts reports and time: as many reports as
//! it says, over as many intervals Tdr, or three of Td if that is less, so that no series of reports ends a flow sooner than silence. A flow with a TCP half is timed per transport: what TCP acknowledges says nothing
//! of datagrams, whose clock stands still while TCP carries the data; and TCP is dead after the same time without
//! progress. Data over TCP is no matter of §4.2 and §4.3. Deviation: [`crate::Flow`] leaves outages (everything lost
//! for an RTT) out of the loss that §4.3 judges; they are §4.1's. Not implemented: §4.4 (only a person can say that
//! media is unusable).

mod congestion;
mod cut;
mod timeouts;
mod types;

use congestion::Congestion;
use cut::Cut;
use fairpace_units::{Bytes, Duration, Instant, Rate};
use timeouts::{MediaTimeout, Silence};

pub use types::{BreakerParams, Counts, Partial, ReceiverReport, StopReason, Trip};

/// The breaker's state.
#[derive(Clone, Debug)]
pub struct Breaker {
    params: BreakerParams,
    silence: Silence,
    media: MediaTimeout,
    congestion: Congestion,
    cut: Cut,
}

impl Breaker {
    /// A breaker that has seen nothing. `responsive`: the flow lowers its rate when the path is full, whatever the
    /// receiver says.
    pub fn new(params: BreakerParams, responsive: bool) -> Self {
        Breaker {
            params,
            silence: Silence::new(params.td),
            media: MediaTimeout::default(),
            congestion: Congestion::new(params),
            cut: Cut::new(responsive),
        }
    }

    /// A packet has left.
    #[inline]
    pub fn on_sent(&mut self, now: Instant, size: Bytes, is_data: bool) {
        self.silence.on_sent(now);
        self.congestion.on_sent(size, is_data);
    }

    /// A packet could leave, and the application has none.
    pub fn on_idle(&mut self, now: Instant) {
        self.silence.on_idle(now);
    }

    /// A packet was given to TCP, or nothing is sent until it has delivered all.
    pub fn await_tcp(&mut self, now: Instant) {
        self.silence.await_tcp(now);
    }

    /// TCP has acknowledged something. The clock for the rest starts with the next packet, or by
    /// [`Breaker::await_tcp`].
    pub fn on_tcp_progress(&mut self) {
        self.silence.on_tcp_progress();
    }

    /// From now on TCP carries the data.
    pub fn pause(&mut self, now: Instant) {
        self.silence.pause(now);
    }

    /// From now on datagrams carry it again.
    pub fn resume(&mut self, now: Instant) {
        self.silence.resume(now);
    }

    /// The receiver was heard, in whatever form. While TCP carries the data that is about TCP's packets.
    #[inline]
    pub fn on_feedback(&mut self) {
        self.silence.on_feedback();
    }

    /// The receiver has answered a question that left just now, but has told of no packet. While few packets went
    /// unanswered, at a rate of a packet per second or less, that is loss and no dead path: §4.1's clock starts anew.
    pub fn on_echo(&mut self, now: Instant) {
        self.silence.on_echo(now);
    }

    /// The driver slept for `late` longer than it was told to: nothing could be heard meanwhile.
    pub fn on_stall(&mut self, late: Duration) {
        self.silence.on_stall(late);
    }

    /// When [`Breaker::on_timer`] is wanted.
    #[inline]
    pub fn next(&self) -> Instant {
        self.silence.next()
    }

    /// §4.1: three intervals without a word.
    #[inline]
    pub fn on_timer(&mut self, now: Instant) -> Option<Trip> {
        self.silence.on_timer(now).map(Trip::Stop)
    }

    /// A report: §4.2 and §4.3. `rtt` is the sender's own measurement, the mean since the last report. If the report came
    /// from the receiver, call [`Breaker::on_feedback`] as well.
    pub fn on_report(&mut self, report: &ReceiverReport, rtt: Option<Duration>, counts: Counts) -> Option<Trip> {
        if !(0.0..=1.0).contains(&report.fraction_lost) || report.interval.is_zero() {
            return None;
        }
        let tr = rtt.unwrap_or(Duration::ZERO);
        if let Some(reason) = self.media.on_report(report, self.congestion.sent_data(), &self.params, tr) {
            return Some(Trip::Stop(reason));
        }
        self.congestion.on_report(report, tr, counts);
        if counts == Counts::Later {
            return None;
        }
        let judged = self.congestion.judge(self.intervals_wanted())?;
        let trip = self.cut.on_judgement(judged);
        if let Some(Trip::Cut(_)) = trip {
            self.congestion.forget();
        }
        trip
    }

    /// Whether a cut is in force of which it is not yet known whether it helps: only packets that left after it count, and
    /// no interval is shorter than a round trip.
    pub const fn is_deciding(&self) -> bool {
        self.cut.intervals_wanted().is_some()
    }

    fn intervals_wanted(&self) -> usize {
        self.cut.intervals_wanted().unwrap_or_else(|| self.congestion.wanted())
    }

    /// The rate from now on, dummies included, that keeps the mean over CB_INTERVAL reports at `share` of what the
    /// congestion rule allows, if loss stays as it was: less than that share where more was sent before, but at least a
    /// quarter of it. While two intervals decide, half of `share`: so few packets tell of so much loss only roughly. `None` while nothing was lost or no RTT is known. `partial`: what is known beyond the last report.
    pub fn bearable(&self, partial: Option<Partial>, share: f64) -> Option<Rate> {
        self.congestion.bearable(self.intervals_wanted(), partial, if self.is_deciding() { share / 2.0 } else { share })
    }
}

#[cfg(test)]
mod tests;
