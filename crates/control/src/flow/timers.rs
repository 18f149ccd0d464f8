//! The timers of a flow: the controller's timer, the timeout, the breaker.

use super::Flow;
use super::silence::Silence;
use crate::account::log::FlowEventKind;
use crate::breaker::{ReceiverReport, Trip};
use crate::controller::TimeoutRule;
use crate::facts::LossHow;
use fairpace_units::{Duration, Instant};

impl Flow {
    /// When something is due even if nothing happens.
    #[inline]
    pub(super) fn next_timer(&self) -> Instant {
        let silence = self.silence.as_ref().map_or(Instant::NEVER, Silence::next);
        self.controller.poll_timer().min(self.rto_due()).min(self.account.watch.next()).min(silence)
    }

    /// When the timeout expires; NEVER while no data is outstanding.
    #[inline]
    fn rto_due(&self) -> Instant {
        let Some(oldest) = self.account.data.oldest_outstanding() else { return Instant::NEVER };
        let from = match self.policy.timeout {
            TimeoutRule::SinceLastAck => oldest.max(self.account.last_ack),
            TimeoutRule::PerPacket => oldest,
            TimeoutRule::Never => return Instant::NEVER,
        };
        from + self.account.round_trip.rto()
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
        let srtt = self.account.round_trip.srtt();
        if let Some(rate) = self.silence.as_mut().and_then(|silence| silence.on_timer(now, srtt)) {
            self.account.counters.silences += 1;
            self.limits.quiet(now, Some(rate));
            self.account.log.event(now, FlowEventKind::Unheard { rate });
        }
        if self.account.watch.is_on() {
            if let Some(report) = self.account.watch.take_report(now) {
                self.judge(now, report);
            }
            let trip = self.account.watch.on_timer(now);
            self.apply(now, trip);
            // Here and not where feedback is read: feedback of one instant may come in several parts.
            if self.account.watch.is_hold_due(now) {
                self.hold(now, self.account.round_trip.srtt());
            }
        }
    }

    /// The timeout has come.
    fn expire(&mut self, now: Instant) {
        self.account.counters.timeouts += 1;
        match self.policy.timeout {
            TimeoutRule::PerPacket => {
                let limit = now - self.account.round_trip.rto();
                while let Some(lost) = self.account.data.next_expired(limit) {
                    let loss = self.account.lose(now, lost, LossHow::Timeout);
                    self.controller.on_loss(now, &loss, self.account.round_trip.estimator());
                    self.note(now);
                }
            }
            TimeoutRule::SinceLastAck => {
                self.account.counters.data.lost += self.account.data.lose_all() as u64;
                let seq = self.account.data.next_seq().saturating_sub(1);
                self.account.log.event(now, FlowEventKind::Lost { seq, how: LossHow::Timeout });
                self.controller.on_timeout(now, self.account.round_trip.estimator());
                self.note(now);
            }
            TimeoutRule::Never => {}
        }
        self.account.round_trip.back_off();
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
            self.controller.on_timer(now, self.account.round_trip.estimator());
            self.note(now);
        }
        debug_assert!(self.controller.poll_timer() > now, "a timer that never stops: {:?}", self.controller);
    }

    /// The breaker judges a report, and what it bears is told to the controller.
    pub(super) fn judge(&mut self, now: Instant, report: ReceiverReport) {
        let srtt = self.account.round_trip.srtt();
        let trip = self.account.watch.judge(now, report, srtt);
        self.apply(now, trip);
        self.hold(now, srtt);
    }

    /// Holds a responsive flow below what the breaker bears.
    fn hold(&mut self, now: Instant, srtt: Option<Duration>) {
        if !self.controller.is_responsive() {
            return;
        }
        let (headroom, period) = self.account.watch.headroom(now, srtt);
        let wanted = self.controller.status().rate;
        let held = self.limits.take_refused() || headroom.is_some_and(|rate| rate < wanted);
        if headroom != self.headroom {
            self.headroom = headroom;
            self.limits.hold(headroom, period);
            self.tell_demand(now);
        }
        match (headroom, core::mem::replace(&mut self.held, held && headroom.is_some())) {
            (Some(rate), false) if self.held => self.account.log.event(now, FlowEventKind::Held { rate }),
            (_, true) if !self.held => self.account.log.event(now, FlowEventKind::Released),
            _ => {}
        }
    }

    #[inline]
    pub(super) fn apply(&mut self, now: Instant, trip: Option<Trip>) {
        match trip {
            None => {}
            Some(Trip::Stop(reason)) => self.account.stop(now, reason),
            Some(Trip::Cut(rate)) => {
                self.account.counters.cuts += 1;
                self.account.watch.begin_after(self.account.data.next_seq());
                self.limits.cut(Some(rate));
                self.account.log.event(now, FlowEventKind::Capped { rate });
            }
            Some(Trip::Raise(rate)) => {
                self.limits.cut(Some(rate));
                self.account.log.event(now, FlowEventKind::Raised { rate });
            }
            Some(Trip::Lift) => {
                self.limits.cut(None);
                self.account.log.event(now, FlowEventKind::Uncapped);
            }
        }
    }
}
