//! What a flow makes of feedback, form by form.

use super::measured::Known;
use super::{Flow, FlowEventKind};
use crate::breaker::{ReceiverReport, StopReason};
use crate::controller::{Acked, Loss, LossHow};
use crate::feedback::{Ack, BadFeedback, Form, Message, Outcome, RateReport};
use crate::ledger::{Credit, LostPacket};
use crate::sack_vector::SackVector;
use core::cmp::Ordering;
use fairpace_units::{Instant, Kind, QsResponse};

impl Flow {
    /// Feedback has arrived. A message of a form that was not asked for is refused before anything else. What is repeated,
    /// too old or invented is counted and changes nothing; what is left is credited once, and told to the controller.
    ///
    /// # Errors
    /// [`BadFeedback`] says why nothing of the message was used.
    #[inline]
    pub fn on_feedback(&mut self, now: Instant, message: Message<'_>) -> Result<Outcome, BadFeedback> {
        let now = self.advance(now);
        if !self.is_running() {
            return Err(BadFeedback::NotRunning);
        }
        if let Some(found) = message.form()
            && found != self.form
        {
            self.counters.bad.report += 1;
            return Err(BadFeedback::Unasked { found, wanted: self.form });
        }
        match message {
            Message::Acks(acks) => self.on_acks(now, acks),
            Message::Untold(packets) => self.on_untold(now, packets),
            Message::SackVector(sack) => self.on_sack_vector(now, sack),
            Message::Measured(report) => self.on_measured(now, report),
            Message::Report(report) => self.on_receiver_report(now, report),
        }
    }

    /// Acknowledgements, each credited once.
    #[inline]
    fn on_acks(&mut self, now: Instant, acks: &[Ack]) -> Result<Outcome, BadFeedback> {
        // What was due before now happened before this feedback, even if the driver came late.
        self.run_controller_timers(now, false);
        let mut outcome = Outcome::default();
        for ack in acks {
            match self.credit(now, ack, true) {
                Ok(()) => outcome.credited += 1,
                Err(bad) => {
                    outcome.ignored += 1;
                    self.count_bad(now, bad);
                }
            }
        }
        self.on_acks_done(now);
        if self.stopped == Some(StopReason::PeerLied) { Err(BadFeedback::Lie) } else { Ok(outcome) }
    }

    /// Packets of which nobody will tell. The controller hears nothing of them.
    fn on_untold(&mut self, now: Instant, packets: &[(Kind, u64)]) -> Result<Outcome, BadFeedback> {
        self.run_controller_timers(now, false);
        for &(kind, seq) in packets {
            match kind {
                Kind::Data if self.data.settle_one(seq) => self.watch.leave_out(seq),
                Kind::Data => {}
                Kind::Dummy => {
                    self.dummy.settle_one(seq);
                }
            }
        }
        Ok(Outcome::default())
    }

    /// An AIMD ACK. Each packet it names is credited once, the oldest first; the RTT is measured by packet ack_a only, and
    /// only when this ACK is the first to name it. An ACK of a packet that has not been sent is counted (`bad.unsent`) and
    /// ignored, with all it says; one without news is counted as `bad.duplicate`. Its rwnd counts unless an ACK with a
    /// larger number has come.
    fn on_sack_vector(&mut self, now: Instant, sack: &SackVector) -> Result<Outcome, BadFeedback> {
        self.run_controller_timers(now, false);
        let next_seq = self.data.next_seq();
        let Some(ack) = sack.unwrap_near(next_seq).filter(|ack| *ack < next_seq) else {
            self.counters.bad.unsent += 1;
            return Err(BadFeedback::Unsent);
        };
        let mut outcome = Outcome::default();
        let mut bad = Credit::Duplicate;
        for seq in sack.numbers(ack) {
            let one = Ack {
                kind: Kind::Data,
                seq,
                ecn: sack.ecn,
                arrived_at: sack.arrived_at.filter(|_| seq == ack),
                ack_delay: sack.ack_delay,
            };
            match self.credit(now, &one, seq == ack) {
                Ok(()) => outcome.credited += 1,
                Err(Credit::Skipped) => {
                    self.count_bad(now, Credit::Skipped);
                    return Err(BadFeedback::Lie);
                }
                Err(why) => {
                    outcome.ignored += 1;
                    bad = why;
                }
            }
        }
        if outcome.credited == 0 {
            self.count_bad(now, bad);
        }
        if self.window.is_newest(ack) {
            self.set_window_limit(now, sack.rwnd);
        }
        self.on_acks_done(now);
        Ok(outcome)
    }

    /// The receiver, or a base station on the way, allows at most `rwnd` packets outstanding, as it says when the
    /// flow is set up; later [`Message::SackVector`] brings it. `None` says nothing: what was said last stands.
    pub fn set_window_limit(&mut self, now: Instant, rwnd: Option<u32>) {
        let now = self.advance(now);
        if self.window.set(rwnd) {
            self.controller.set_window_limit(now, rwnd);
            self.note(now);
        }
    }

    /// The window that the receiver, or a base station on the way, said last, packets.
    pub fn rwnd(&self) -> Option<u32> {
        self.window.rwnd()
    }

    fn count_bad(&mut self, now: Instant, credit: Credit) {
        let bad = &mut self.counters.bad;
        match credit {
            Credit::New { .. } => {}
            Credit::Duplicate => bad.duplicate += 1,
            Credit::Stale => bad.stale += 1,
            Credit::Unsent => bad.unsent += 1,
            Credit::Skipped => {
                bad.skipped += 1;
                self.stop(now, StopReason::PeerLied);
            }
        }
    }

    /// After the last ACK of some feedback.
    #[inline]
    fn on_acks_done(&mut self, now: Instant) {
        if self.quick_start.is_on()
            && let Some(departure) = self.watch.newest_departure()
        {
            self.on_option_feedback(now, departure);
        }
    }

    /// Credits one packet; what the ledger makes of it if that is not new. `measures`: the ACK was sent because of it,
    /// so it is a sample of the RTT.
    #[inline]
    fn credit(&mut self, now: Instant, ack: &Ack, measures: bool) -> Result<(), Credit> {
        let ledger = match ack.kind {
            Kind::Data => &mut self.data,
            Kind::Dummy => &mut self.dummy,
        };
        let (sent_at, size, late) = match ledger.acknowledge(ack.seq) {
            Credit::New { sent_at, size, late } => (sent_at, size, late),
            other => return Err(other),
        };
        let outstanding = ledger.outstanding();
        let c = self.counters.of(ack.kind);
        c.acked += 1;
        c.acked_bytes += size;
        if late {
            c.late += 1;
            c.lost -= 1;
        }
        self.last_ack = now;
        self.watch.on_news();
        let sample = self.round_trip.on_ack(ack.kind, now.since(sent_at), ack.ack_delay, measures);
        self.counters.bad.rtt += sample.bad;
        if ack.kind == Kind::Data {
            self.watch.count(ack.seq, sent_at, self.round_trip.srtt());
        }
        let Ack { kind, seq, ecn, arrived_at, .. } = *ack;
        let acked = Acked { kind, seq, size, sent_at, rtt: sample.rtt, ecn, arrived_at, outstanding };
        self.controller.on_ack(now, &acked, self.round_trip.estimator());
        self.note(now);
        self.report_losses(now, ack.kind);
        Ok(())
    }

    #[inline]
    fn report_losses(&mut self, now: Instant, kind: Kind) {
        if kind == Kind::Dummy {
            while self.dummy.next_loss().is_some() {
                self.counters.dummy.lost += 1;
            }
            return;
        }
        while let Some(lost) = self.data.next_loss() {
            self.report_loss(now, lost, LossHow::LaterAcks);
        }
    }

    pub(super) fn report_loss(&mut self, now: Instant, lost: LostPacket, how: LossHow) {
        self.counters.data.lost += 1;
        let highest_sent = self.data.next_seq().saturating_sub(1);
        self.log.event(now, FlowEventKind::Lost { seq: lost.seq, how });
        let loss = Loss { seq: lost.seq, sent_at: lost.sent_at, highest_sent, how };
        self.controller.on_loss(now, &loss, self.round_trip.estimator());
        self.note(now);
    }

    /// A report of a receiver that measures. What cannot be true is counted (`bad.report`) and ignored, and so is what is
    /// older than a report that has come; the rest is cut to what can be true, and told to the controller.
    fn on_measured(&mut self, now: Instant, report: &RateReport) -> Result<Outcome, BadFeedback> {
        self.run_controller_timers(now, false);
        if !self.measured.is_believable(now, report, &self.data) {
            self.counters.bad.report += 1;
            return Err(BadFeedback::Impossible);
        }
        self.last_ack = now;
        self.watch.on_feedback();
        self.counters.bad.rtt += self.round_trip.on_echo(now.since(report.echoed), report.delay);
        let known = Known {
            now,
            srtt: self.round_trip.srtt(),
            packet_size: self.packet_size,
            allowed: self.controller.status().rate,
        };
        let report = self.measured.take(report, &mut self.data, known);
        self.controller.on_report(now, &report, self.round_trip.estimator());
        self.note(now);
        if self.quick_start.is_on() {
            self.on_option_feedback(now, report.echoed);
        }
        Ok(Outcome::default())
    }

    /// A receiver report (RTCP SR or RR): the breaker judges it, and the controller is told if it goes by nothing else.
    fn on_receiver_report(&mut self, now: Instant, report: &ReceiverReport) -> Result<Outcome, BadFeedback> {
        if report.highest_seq >= self.data.next_seq() || !(0.0..=1.0).contains(&report.fraction_lost) {
            self.counters.bad.report += 1;
            return Err(BadFeedback::Impossible);
        }
        let only_reports = self.form == Form::Reports;
        let order = self.receiver_reports.order(report);
        if only_reports && order != Ordering::Greater {
            let bad = &mut self.counters.bad;
            *(if order == Ordering::Less { &mut bad.report } else { &mut bad.duplicate }) += 1;
            return Err(BadFeedback::Old);
        }
        // One that tells of no further packet says that nothing arrives, or is a repetition: it holds nothing off.
        if order == Ordering::Greater && (only_reports || self.data.is_unheard_of(report.highest_seq)) {
            self.watch.on_feedback();
        }
        self.watch.on_receiver_report();
        let report = self.receiver_reports.take(report);
        if only_reports {
            self.tell_report(now, &report);
        }
        self.judge(now, report);
        Ok(Outcome::default())
    }

    fn tell_report(&mut self, now: Instant, report: &ReceiverReport) {
        self.run_controller_timers(now, false);
        self.counters.bad.rtt += self.round_trip.on_report(report.rtt);
        self.data.settle_up_to(report.highest_seq);
        if let Some(lost) = report.lost {
            self.counters.data.lost = lost.clamp(0, i64::MAX).unsigned_abs().min(self.counters.data.sent);
        }
        self.controller.on_receiver_report(now, report, self.round_trip.estimator());
        self.note(now);
    }

    /// Feedback has come on what left until `departure`.
    fn on_option_feedback(&mut self, now: Instant, departure: Instant) {
        if let Some(verdict) = self.quick_start.on_feedback(now, departure) {
            self.log.event(now, FlowEventKind::QuickStartAnswered { verdict });
        }
    }

    /// The receiver's answer to a Quick-Start request has arrived. If it came in the same packet as ACKs or
    /// a report, hand those in first. What is not valid is counted ([`Flow::quick_start`]) and is a refusal.
    pub fn on_quick_start_response(&mut self, now: Instant, response: &QsResponse) {
        if !self.quick_start.is_on() || !self.is_running() {
            return;
        }
        let now = self.advance(now);
        self.run_controller_timers(now, false);
        let losses = self.losses();
        let Some((verdict, approval)) = self.quick_start.on_response(now, response, losses) else { return };
        self.log.event(now, FlowEventKind::QuickStartAnswered { verdict });
        if let Some(a) = approval {
            let rtt = self.round_trip.srtt().unwrap_or(a.elapsed).max(super::LEAST_RTT);
            if let Some(hooks) = self.controller.quick_start() {
                hooks.on_approved(now, a.rate, a.header, rtt);
            }
            self.note(now);
        }
    }
}
