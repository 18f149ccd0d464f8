//! What is due though nothing happens: the controller's timer, the timeout, the breaker.

use super::{Flow, FlowEventKind};
use crate::breaker::{ReceiverReport, StopReason, Trip};
use crate::controller::{LossHow, TimeoutRule};
use fairpace_units::Instant;

impl Flow {
    /// When something is due even if nothing happens.
    #[inline]
    pub(super) fn next_timer(&self) -> Instant {
        self.controller.poll_timer().min(self.rto_due()).min(self.watch.next())
    }

    /// When the timeout expires; NEVER while no data is outstanding.
    #[inline]
    fn rto_due(&self) -> Instant {
        let Some(oldest) = self.data.oldest_outstanding() else { return Instant::NEVER };
        let from = match self.policy.timeout {
            TimeoutRule::SinceLastAck => oldest.max(self.last_ack),
            TimeoutRule::PerPacket => oldest,
            TimeoutRule::Never => return Instant::NEVER,
        };
        from + self.round_trip.rto()
    }

    #[inline]
    pub(super) fn run_timers(&mut self, now: Instant) {
        if !self.is_running() {
            return;
        }
        self.run_controller_timers(now, true);
        if self.rto_due() <= now {
            self.expire(now);
            self.run_controller_timers(now, true);
        }
        if self.watch.is_on() {
            if let Some(report) = self.watch.take_report(now) {
                self.judge(now, report);
            }
            let trip = self.watch.on_timer(now);
            self.apply(now, trip);
        }
    }

    /// The timeout has come.
    fn expire(&mut self, now: Instant) {
        self.counters.timeouts += 1;
        match self.policy.timeout {
            TimeoutRule::PerPacket => {
                let limit = now - self.round_trip.rto();
                while let Some(lost) = self.data.next_expired(limit) {
                    self.report_loss(now, lost, LossHow::Timeout);
                }
            }
            TimeoutRule::SinceLastAck => {
                self.counters.data.lost += self.data.lose_all() as u64;
                let seq = self.data.next_seq().saturating_sub(1);
                self.log.event(now, FlowEventKind::Lost { seq, how: LossHow::Timeout });
                self.controller.on_timeout(now, self.round_trip.estimator());
                self.note(now);
            }
            TimeoutRule::Never => {}
        }
        self.round_trip.back_off();
    }

    /// Runs the controller's timer if it is due: at `now` too if `inclusive`, else only before.
    #[inline]
    pub(super) fn run_controller_timers(&mut self, now: Instant, inclusive: bool) {
        // A timer may lead to another one that is due as well, but not for ever.
        for _ in 0..8 {
            let due = self.controller.poll_timer();
            if due > now || (due == now && !inclusive) {
                return;
            }
            self.controller.on_timer(now, self.round_trip.estimator());
            self.note(now);
        }
        debug_assert!(self.controller.poll_timer() > now, "a timer that never stops: {:?}", self.controller);
    }

    /// The breaker judges a report, and what it bears is told to the controller.
    pub(super) fn judge(&mut self, now: Instant, report: ReceiverReport) {
        let srtt = self.round_trip.srtt();
        let trip = self.watch.judge(report, srtt);
        self.apply(now, trip);
        if self.controller.is_responsive() {
            let headroom = self.watch.headroom(srtt);
            if headroom != self.headroom {
                self.headroom = headroom;
                self.tell_demand(now);
            }
        }
    }

    #[inline]
    fn apply(&mut self, now: Instant, trip: Option<Trip>) {
        match trip {
            None => {}
            Some(Trip::Stop(reason)) => self.stop(now, reason),
            Some(Trip::Cap(rate)) => {
                self.limits.cut(Some(rate));
                self.log.event(now, FlowEventKind::Capped { rate });
            }
            Some(Trip::Uncap) => {
                self.limits.cut(None);
                self.log.event(now, FlowEventKind::Uncapped);
            }
        }
    }

    pub(super) fn stop(&mut self, now: Instant, reason: StopReason) {
        if self.stopped.is_none() {
            self.stopped = Some(reason);
            self.log.event(now, FlowEventKind::Tripped { reason });
        }
    }
}
