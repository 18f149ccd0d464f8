//! A flow's handling of feedback, form by form.

use super::Flow;
use super::measured::Known;
use super::quick_start::Approval;
use crate::account::log::FlowEventKind;
use crate::account::round_trip::LEAST_RTT;
use crate::breaker::{ReceiverReport, StopReason};
use crate::feedback::{Ack, BadFeedback, Form, Message, Outcome, RateReport};
use crate::ledger::Credit;
use crate::packet_report::PacketReport;
use crate::quick_start::{QsEcho, QsVerdict};
use crate::sack_vector::{SackVector, VECTOR_BITS};
use core::cmp::Ordering;
use fairpace_units::{Duration, Instant, Kind, QsResponse};

impl Flow {
    /// Feedback has arrived. A message of a form that was not asked for is refused before anything else. A repeated,
    /// too old or invented acknowledgement is counted and changes nothing; the others are credited once, and passed
    /// to the controller.
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
            && !found.serves(self.form)
        {
            self.account.counters.bad.report += 1;
            return Err(BadFeedback::Unasked { found, wanted: self.form });
        }
        match message {
            Message::Acks { acks, made_at } => self.on_acks(now, acks, made_at),
            Message::Untold(packets) => self.on_untold(now, packets),
            Message::SackVector(sack) => self.on_sack_vector(now, sack),
            Message::Measured(report) => self.on_measured(now, report),
            Message::Report(report) => self.on_receiver_report(now, report),
        }
    }

    /// Acknowledgements, each credited once.
    #[inline]
    fn on_acks(&mut self, now: Instant, acks: &[Ack], made_at: Option<Duration>) -> Result<Outcome, BadFeedback> {
        // Timers due before now fired before this feedback, even if the driver came late.
        self.run_controller_timers(now, false);
        let (outcome, _) = self.on_packets(now, acks, made_at, None);
        self.on_acks_done(now);
        if self.account.stopped == Some(StopReason::PeerLied) { Err(BadFeedback::Lie) } else { Ok(outcome) }
    }

    /// The controller reads a report; what it leaves unread is credited too. `sacked`: of a sack vector, the packet that
    /// the vector was sent for. Gives what came of the report, and of the last acknowledgement in it that was no news.
    #[inline]
    fn on_packets(
        &mut self,
        now: Instant,
        acks: &[Ack],
        made_at: Option<Duration>,
        sacked: Option<u64>,
    ) -> (Outcome, Option<Credit>) {
        let mut report = PacketReport::new(&mut self.account, now, made_at, acks, sacked);
        self.controller.on_packets(&mut report);
        let (outcome, bad) = report.finish();
        if outcome.credited > 0 {
            self.heard(now);
            self.note(now);
        }
        (outcome, bad)
    }

    /// Packets of which nobody will tell. The controller hears nothing of them.
    fn on_untold(&mut self, now: Instant, packets: &[(Kind, u64)]) -> Result<Outcome, BadFeedback> {
        self.run_controller_timers(now, false);
        for &(kind, seq) in packets {
            match kind {
                Kind::Data if self.account.data.settle_one(seq) => self.account.watch.leave_out(seq),
                Kind::Data => {}
                Kind::Dummy => {
                    self.account.dummy.settle_one(seq);
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
        let next_seq = self.account.data.next_seq();
        let Some(ack) = sack.unwrap_near(next_seq).filter(|ack| *ack < next_seq) else {
            self.account.counters.bad.unsent += 1;
            return Err(BadFeedback::Unsent);
        };
        let one = Ack { ecn: sack.ecn, ack_delay: sack.ack_delay, ..Ack::immediate(Kind::Data, ack) };
        let mut acks = [one; VECTOR_BITS as usize + 1];
        let mut named = 0;
        for (slot, seq) in acks.iter_mut().zip(sack.numbers(ack)) {
            let arrived_at = sack.arrived_at.filter(|_| seq == ack);
            *slot = Ack { seq, arrived_at, ..one };
            named += 1;
        }
        let made_at = sack.arrived_at.map(|at| at + sack.ack_delay);
        let (outcome, bad) = self.on_packets(now, &acks[..named], made_at, Some(ack));
        match bad {
            Some(Credit::Skipped) => {
                self.account.count_bad(now, Credit::Skipped);
                return Err(BadFeedback::Lie);
            }
            Some(bad) if outcome.credited == 0 => self.account.count_bad(now, bad),
            _ => {}
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
        if let Some(rwnd) = self.window.set(rwnd) {
            self.controller.set_window_limit(now, rwnd);
            self.note(now);
        }
    }

    /// The window that the receiver, or a base station on the way, said last, packets.
    pub fn rwnd(&self) -> Option<u32> {
        self.window.rwnd()
    }

    /// After the last ACK of some feedback.
    #[inline]
    fn on_acks_done(&mut self, now: Instant) {
        if self.quick_start.is_on()
            && let Some(departure) = self.account.watch.newest_departure()
        {
            self.on_option_feedback(now, departure);
        }
    }

    /// A report of a receiver that measures. A report that cannot be true, or is older than one that has come, is
    /// counted (`bad.report`) and ignored; the others are cut to possible values, and passed to the controller.
    fn on_measured(&mut self, now: Instant, report: &RateReport) -> Result<Outcome, BadFeedback> {
        self.run_controller_timers(now, false);
        if !self.measured.is_believable(now, report, &self.account.data) {
            self.account.counters.bad.report += 1;
            return Err(BadFeedback::Impossible);
        }
        self.account.last_ack = now;
        self.account.watch.on_feedback();
        self.account.counters.bad.rtt += self.account.round_trip.on_echo(now, now.since(report.echoed), report.delay);
        let known = Known {
            now,
            srtt: self.account.round_trip.srtt(),
            packet_size: self.packet_size,
            allowed: self.controller.status().rate,
        };
        let report = self.measured.take(report, &mut self.account.data, known);
        self.heard(now);
        self.controller.on_report(now, &report, self.account.round_trip.estimator());
        self.note(now);
        if self.quick_start.is_on() {
            self.on_option_feedback(now, report.echoed);
        }
        Ok(Outcome::default())
    }

    /// A receiver report (RTCP SR or RR): the breaker judges it, and the controller is told if it goes by nothing else.
    fn on_receiver_report(&mut self, now: Instant, report: &ReceiverReport) -> Result<Outcome, BadFeedback> {
        if report.highest_seq >= self.account.data.next_seq() || !(0.0..=1.0).contains(&report.fraction_lost) {
            self.account.counters.bad.report += 1;
            return Err(BadFeedback::Impossible);
        }
        let only_reports = self.form == Form::Reports;
        let order = self.receiver_reports.order(report);
        if only_reports && order != Ordering::Greater {
            let bad = &mut self.account.counters.bad;
            *(if order == Ordering::Less { &mut bad.report } else { &mut bad.duplicate }) += 1;
            return Err(BadFeedback::Old);
        }
        // One that tells of no further packet says that nothing arrives, or is a repetition: it holds nothing off.
        if order == Ordering::Greater && (only_reports || self.account.data.is_unheard_of(report.highest_seq)) {
            self.account.watch.on_feedback();
            self.heard(now);
        }
        self.account.watch.on_receiver_report();
        let report = self.receiver_reports.take(report);
        if only_reports {
            self.tell_report(now, &report);
        }
        self.judge(now, report);
        Ok(Outcome::default())
    }

    fn tell_report(&mut self, now: Instant, report: &ReceiverReport) {
        self.run_controller_timers(now, false);
        self.account.counters.bad.rtt += self.account.round_trip.on_report(now, report.rtt);
        self.account.data.settle_up_to(report.highest_seq);
        if let Some(lost) = report.lost {
            self.account.counters.data.lost =
                lost.clamp(0, i64::MAX).unsigned_abs().min(self.account.counters.data.sent);
        }
        self.controller.on_receiver_report(now, report, self.account.round_trip.estimator());
        self.note(now);
    }

    /// Feedback has come on what left until `departure`.
    fn on_option_feedback(&mut self, now: Instant, departure: Instant) {
        if let Some(verdict) = self.quick_start.on_feedback(now, departure) {
            self.account.log.event(now, FlowEventKind::QuickStartAnswered { verdict });
        }
    }

    /// The receiver's answer to a Quick-Start request has arrived. If it came in the same packet as ACKs or
    /// a report, hand those in first. An invalid answer is counted ([`Flow::quick_start`]) and taken for a refusal.
    pub fn on_quick_start_response(&mut self, now: Instant, response: &QsResponse) {
        if !self.quick_start.is_on() || !self.is_running() {
            return;
        }
        let now = self.advance(now);
        self.run_controller_timers(now, false);
        let losses = self.losses();
        let judged = self.quick_start.on_response(now, response, losses);
        self.on_judged(now, judged);
    }

    /// The receiver has answered the packet apart that the last request left on ([`Flow::on_quick_start_sent`]).
    pub fn on_quick_start_echo(&mut self, now: Instant, echo: &QsEcho) {
        if !self.quick_start.is_on() || !self.is_running() {
            return;
        }
        let now = self.advance(now);
        self.run_controller_timers(now, false);
        let losses = self.losses();
        let judged = self.quick_start.on_echo(now, echo, losses);
        self.on_judged(now, judged);
    }

    fn on_judged(&mut self, now: Instant, judged: Option<(QsVerdict, Option<Approval>)>) {
        let Some((verdict, approval)) = judged else { return };
        self.account.log.event(now, FlowEventKind::QuickStartAnswered { verdict });
        if let Some(a) = approval {
            let rtt = self.account.round_trip.srtt().unwrap_or(a.elapsed).max(LEAST_RTT);
            if let Some(hooks) = self.controller.quick_start() {
                hooks.on_approved(now, a.rate, a.header, rtt);
            }
            self.note(now);
        }
    }
}
