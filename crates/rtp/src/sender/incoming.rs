//! The handling of a datagram from the peer.

use super::admission::{self, Answer};
use super::media_out::{MOST_NACKED, MediaOut};
use super::protect::Facts;
use super::{Phase, SenderEvent, SenderSession};
use crate::StopReason;
use crate::challenge::{Echo, Message};
use crate::feedback::{Attached, Lent, Proof, Refusal, Word};
use crate::packet;
use crate::playout;
use crate::quick_start::answer;
use crate::rtcp::{Compound, ReportBlock, Rtcp};
use fairpace_control::feedback;
use fairpace_units::{Bytes, Class, Dscp, Duration, Ecn, Instant};

/// The LE echo travels with the normal one; this much later it is lost.
const SETTLING: Duration = Duration::from_millis(100);
/// Feedback on packets comes with the round trip and two intervals after an echo; this much later it will not.
const PATIENCE: Duration = Duration::from_millis(250);

impl SenderSession {
    /// A datagram has arrived from the peer's exact address (the driver compares), with these marks.
    pub fn handle_datagram(&mut self, now: Instant, bytes: &[u8], _dscp: Dscp, _ecn: Ecn) {
        let now = self.advance(now);
        self.stats.received += 1;
        if matches!(self.phase, Phase::Leaving(..) | Phase::Stopped(_)) {
            return;
        }
        if self.trust.peer().is_none() {
            self.admitting.on_unproven(bytes.len());
        }
        let compound = if packet::is_rtcp(bytes) { Compound::parse(bytes).ok() } else { None };
        let Some(compound) = compound else {
            self.stats.rejected.malformed += 1;
            return;
        };
        let mut attached = self.feedback.attached(compound);
        let media = self.media.streams.media.ssrc;
        let mut nacks_left = MOST_NACKED;
        let mut quick_start = None;
        for packet in compound {
            match packet {
                Rtcp::ReceiverReport(reporter, blocks) | Rtcp::SenderReport(reporter, _, blocks) => {
                    for block in blocks {
                        self.on_report_block(now, reporter, &block, &attached, bytes.len());
                    }
                }
                Rtcp::PictureLoss(sender, of) if self.trust.is_peer(sender) && of == media => {
                    self.stats.key_frame_requests += 1;
                    // One that left a round trip ago or less had not arrived when this was asked.
                    if !self.media.has_key_within(now, self.flow.srtt().unwrap_or_default()) {
                        self.events.request_key_frame(now);
                    }
                }
                Rtcp::Nack(nack) if self.trust.is_peer(nack.sender) && nack.media == media => {
                    if self.config.retransmission {
                        let deadline = self.deadline();
                        let asked = self.media.on_nack(&nack, &deadline, nacks_left, self.config.refreshes);
                        nacks_left -= asked.packets;
                        self.stats.nacked += asked.packets as u64;
                        self.note_refused(asked.refused);
                    }
                }
                Rtcp::Bye(bye) if bye.ssrcs().any(|s| self.trust.is_peer(s)) => self.reporting.on_bye(now, bye.reason),
                Rtcp::PictureLoss(..) | Rtcp::Nack(_) | Rtcp::Bye(_) => self.stats.rejected.wrong_ssrc += 1,
                Rtcp::App(app) if playout::is_delay(&app) => match playout::parse(&app) {
                    Ok(delay) if self.trust.is_peer(app.ssrc) => self.on_playout(delay),
                    Ok(_) => self.stats.rejected.wrong_ssrc += 1,
                    Err(_) => self.stats.rejected.malformed += 1,
                },
                Rtcp::App(app) if answer::is_quick_start(&app) => match (&mut quick_start, answer::parse(&app)) {
                    (Some(echo), Ok(said)) => *echo = said,
                    (None, Ok(_)) => self.stats.rejected.token += 1,
                    (_, Err(_)) => self.stats.rejected.malformed += 1,
                },
                Rtcp::App(app) if app.name == crate::challenge::NAME => match Message::parse(&app) {
                    Ok(Some(Message::Echo(echo))) => {
                        if self.on_echo(now, &echo) {
                            quick_start = self.quick_start.on_echo(echo.token);
                        }
                    }
                    Ok(_) => self.on_feedback(now, &packet, &mut attached, bytes.len()),
                    Err(_) => self.stats.rejected.malformed += 1,
                },
                Rtcp::CongestionFeedback(..) | Rtcp::TransportFeedback { .. } => {
                    self.on_feedback(now, &packet, &mut attached, bytes.len());
                }
                Rtcp::App(_) | Rtcp::Sdes(_) | Rtcp::Other(_) => {}
            }
        }
        if let Some(echo) = quick_start {
            self.flow.on_quick_start_echo(now, &echo);
        }
        if let Some(verdict) = self.flow.take_quick_start_verdict() {
            self.events.push(SenderEvent::QuickStart(verdict));
        }
        self.note_rate();
    }

    /// The receiver shows frames so long after the fastest of them came.
    fn on_playout(&mut self, delay: Duration) {
        self.playout = delay;
        self.media.set_max_queue_delay(self.config.max_queue_delay(delay));
    }

    /// An echo has come: whether it is the first to a question of ours, from a receiver that has a place for us.
    fn on_echo(&mut self, now: Instant, echo: &Echo) -> bool {
        let (class, token, is_newest, srtt, was_held) = match self.admitting.on_echo(now, echo) {
            Answer::Unknown => {
                self.stats.rejected.token += 1;
                return false;
            }
            Answer::Taken | Answer::Held => return false,
            Answer::Busy { news } => {
                if news {
                    self.events.push(SenderEvent::ReceiverBusy);
                }
                return false;
            }
            Answer::Ends => {
                // A session that runs is ended by its own receiver's goodbye, or by silence.
                if self.trust.peer().is_none() {
                    self.end(StopReason::PeerEnded);
                }
                return false;
            }
            Answer::There { class, token, is_newest, rtt, was_held } => (class, token, is_newest, rtt, was_held),
        };
        if was_held {
            self.flow.on_sleep(now, srtt);
            self.events.push(SenderEvent::Awake);
            // The decoder has waited for longer than it keeps what it had.
            self.events.request_key_frame(now);
        }
        self.saw_dscp(class, echo.dscp);
        self.flow.on_echo(now);
        self.path_mtu.on_echo(now, token);
        if self.admitting.doubts() {
            let interval = self.feedback_interval.min(admission::LONGEST_INTERVAL);
            self.path_mtu.on_untold(now + self.flow.srtt().unwrap_or(srtt) + interval * 2 + PATIENCE);
        }
        // If LE came first, or alone, the address is real, but the first RTT of the normal class is wanted for what the
        // flow sends there. That RTT is on its way if the path works at all.
        if let Some(peer) = self.trust.peer() {
            // An echo of an earlier question, or receiver, may have been overtaken.
            if !is_newest {
                return true;
            }
            if echo.receiver == peer {
                self.trust.resume(echo.next_report);
            } else {
                // Nobody else knows the token: there is another receiver at the peer's address.
                self.take_up(now, echo);
                self.events.push(SenderEvent::ReceiverChanged);
                // The decoder there has nothing to go on from.
                self.events.request_key_frame(now);
            }
            return true;
        }
        if class == Class::Low {
            return true;
        }
        self.take_up(now, echo);
        self.admitting.settle();
        if let Some(tcp) = &mut self.tcp {
            tcp.on_peer(now, token);
        }
        self.phase = Phase::Settling(now + SETTLING.max(srtt / 2));
        self.first_rtt = srtt;
        self.events.push(SenderEvent::PeerValidated { srtt, dscp_seen: Some(echo.dscp) });
        true
    }

    /// The receiver that has sent this echo is the peer. The flow goes on as it is: what was lost, and the round trip, are
    /// facts of the path. False claims go on being counted, so that a liar gains nothing by another SSRC.
    fn take_up(&mut self, now: Instant, echo: &Echo) {
        self.trust.admit(echo.receiver, echo.next_report);
        self.blocks.change_receiver();
        self.media.protect.want(self.config.fec && echo.fec);
        self.media.cut_anew(&self.config);
        self.feedback_interval = self.feedback.report_interval().unwrap_or(echo.feedback_interval);
        if self.flow.form() == feedback::Form::SackVector {
            self.flow.set_window_limit(now, echo.rwnd.map(|rwnd| rwnd.get().into()));
        }
    }

    fn saw_dscp(&mut self, class: Class, arrived: Dscp) {
        if !self.admitting.saw(class, arrived) {
            return;
        }
        if class == Class::Low {
            // Bleached: routers treat dummies like data, so they must not outweigh it.
            self.flow.set_dummies_limited(arrived.class() != Class::Low);
        }
        self.events.push(SenderEvent::DscpSeen { class, sent: self.dscp(class), arrived });
    }

    /// A packet that may be feedback, or belong to some.
    fn on_feedback<'d>(&mut self, now: Instant, packet: &Rtcp<'d>, attached: &mut Attached<'d>, len: usize) {
        let challenging = matches!(self.phase, Phase::Challenging(..));
        let before = self.acked();
        let lent = Lent { now, challenging, trust: &mut self.trust, streams: &mut self.media.streams };
        let heard = match self.feedback.on_packet(packet, attached, lent) {
            Ok(Some(heard)) => heard,
            Ok(None) => return,
            Err(refusal) => {
                self.stats.rejected.count(refusal);
                if refusal == Refusal::WrongSsrc {
                    self.admitting.suspect(now);
                }
                if self.trust.has_lied() {
                    self.end(StopReason::PeerLied);
                }
                return;
            }
        };
        if !heard.untold.is_empty() {
            // The flow's counters hold the outcome.
            let _ = self.flow.on_feedback(now, feedback::Message::Untold(heard.untold));
        }
        let taken = heard.message.map(|message| self.flow.on_feedback(now, message));
        let (proof, seen, reporter) = (heard.proof, heard.seen, heard.reporter);
        if proof == Proof::ByFlow {
            match taken {
                Some(Ok(_)) => {}
                Some(Err(_)) => {
                    self.stats.rejected.measured += 1;
                    return;
                }
                // Without news and without proof nothing is renewed.
                None => return,
            }
        }
        if self.trust.peer().is_none() {
            // The report stands in for the echo of a challenge.
            self.trust.admit(reporter, 0);
            self.admitting.settle();
            self.first_rtt = self.flow.srtt().unwrap_or_default();
            self.events.push(SenderEvent::PeerValidated { srtt: self.first_rtt, dscp_seen: None });
            self.begin(now);
        }
        self.believed(now, len);
        // A receiver that measures tells of no single packet.
        if proof == Proof::ByFlow || self.acked() > before {
            self.heard();
        }
        for (class, dscp) in seen.into_iter().flatten() {
            self.saw_dscp(class, dscp);
        }
    }

    /// The peer has told of packets.
    fn heard(&mut self) {
        self.admitting.heard();
        self.path_mtu.heard();
    }

    /// Packets told of so far.
    fn acked(&self) -> u64 {
        let counters = self.flow.counters();
        counters.data.acked + counters.dummy.acked
    }

    /// Feedback is worth something: the peer is there, and wants this.
    fn believed(&mut self, now: Instant, len: usize) {
        self.admitting.renew(now);
        self.media.repair.on_feedback(now, self.flow.srtt().unwrap_or_default());
        self.count_fates(now);
        self.protect(now);
        if self.reporting.contradict_bye(now) {
            self.stats.byes_ignored += 1;
        }
        self.stats.feedback.packets += 1;
        self.stats.feedback.bytes += len as u64;
    }

    /// Decides anew how much protection media needs.
    fn protect(&mut self, now: Instant) {
        let deadline = self.deadline();
        let facts = Facts {
            srtt: deadline.srtt,
            is_queueing: deadline.is_queueing(),
            feedback_interval: self.feedback_interval,
            playout: self.playout,
            repairs: self.config.retransmission && self.stats.nacked > 0,
            tells_of_media: self.feedback.tells_of_media(),
        };
        let MediaOut { protect, streams, .. } = &mut self.media;
        if protect.on_feedback(now, &facts, &mut streams.media) {
            self.media.cut_anew(&self.config);
        }
    }

    fn on_report_block(
        &mut self,
        now: Instant,
        reporter: u32,
        block: &ReportBlock,
        attached: &Attached<'_>,
        len: usize,
    ) {
        if !self.trust.is_peer(reporter) || self.media.streams.by_ssrc(block.ssrc).is_none() {
            self.stats.rejected.wrong_ssrc += 1;
            self.admitting.suspect(now);
            return;
        }
        if block.ssrc != self.media.streams.media.ssrc || self.phase != Phase::Running {
            return;
        }
        let Some(mut told) = self.blocks.on_block(now, block, &mut self.media, &self.config, &mut self.stats) else {
            self.stats.rejected.report += 1;
            return;
        };
        // LSR and DLSR are the receiver's word. A path that has become shorter is measured by a question.
        if let (Some(rtt), Some(least)) = (&mut told.rtt, self.admitting.least_believed())
            && *rtt < least
        {
            *rtt = least;
            self.admitting.suspect(now);
        }
        self.reporting.on_received(Bytes::new(len as u64) + self.config.ip_overhead);
        if told.is_news {
            self.heard();
        }
        if !self.feedback.tells_of_media() {
            self.media.protect.on_report(told.index, block.cumulative_lost.into());
            self.protect(now);
        }
        let lent = Lent { now, challenging: false, trust: &mut self.trust, streams: &mut self.media.streams };
        let from = (reporter, block);
        let word = self.feedback.on_receiver_report(told.index, from, &mut told.report, self.secret, attached, &lent);
        if word.is_some() {
            told.report.rtt = told.rtt;
        }
        match word {
            Some(Word::Proven) => self.believed(now, len),
            Some(Word::Unproven) => self.stats.rejected.unproven += 1,
            Some(Word::Loss) | None => {}
        }
        // The flow's counters hold the outcome.
        let _ = self.flow.on_feedback(now, feedback::Message::Report(&told.report));
        if self.feedback.form() == feedback::Form::Reports {
            let lost = u64::try_from(block.cumulative_lost).unwrap_or(0);
            self.path_mtu.on_fates(now, told.index.saturating_sub(lost), lost);
        }
    }

    /// Packets that are lost may be lost for their size.
    fn count_fates(&mut self, now: Instant) {
        let counters = self.flow.counters();
        self.path_mtu.on_fates(now, self.acked(), counters.data.lost + counters.dummy.lost);
    }
}
