//! From the end of a session to the report.

use super::{QuickStartReport, Running, SendEnd, SendReport, TOLD_OF};
use crate::seal::SenderSeal;
use crate::tcp_half::{TcpEnd, TcpSender};
use crate::{DatagramIo, NetError, SocketCounters};
use fairpace_control::StopReason as Tripped;
use fairpace_control::feedback::Form;
use fairpace_rtp::StopReason;
use fairpace_units::{Bytes, Duration, format_duration};

/// A receiver tells of the first packet within 20 ms and a round trip, or three of these if queues grow meanwhile; a session that is
/// not this much older than its first one may end before.
const TOLD: Duration = Duration::from_secs(1);
/// The same of receiver reports: the longest time without one [RFC 3550 §6.2].
const TOLD_BY_REPORTS: Duration = Duration::from_secs(5);
/// The same of the last packets: a path may be down for seconds and come back, and reports come each five seconds at the latest.
const UNTOLD: Duration = Duration::from_secs(5);

impl Running<'_> {
    /// The record of the sender, with the reason why the session stopped.
    pub(super) fn report(mut self, io: &impl DatagramIo, reason: StopReason, cpu: f64) -> SendReport {
        let peer = self.config.peer;
        let now = self.now;
        let refused = !self.refusals.is_empty();
        let vanished = |detail: String| SendEnd::Failed(NetError::PeerVanished { peer, detail });
        let end = self.end.take().unwrap_or_else(|| match reason {
            StopReason::Requested => SendEnd::Finished,
            StopReason::PeerBye => SendEnd::PeerBye,
            StopReason::Unreachable if !refused && self.seal.as_ref().is_some_and(|seal| seal.refused() > 0) => {
                let datagrams = self.seal.as_ref().map_or(0, SenderSeal::refused);
                SendEnd::Failed(NetError::NoCommonKey { peer, datagrams, waited: now.since(self.begun) })
            }
            StopReason::Unreachable => {
                let counters = io.counters();
                let detail = if refused {
                    "its machine says that nobody listens on that port"
                } else if counters.unreachable > 0 {
                    "there is no route to it"
                } else if counters.denied > 0 {
                    "this machine's firewall forbids sending to it"
                } else {
                    "nothing came back"
                };
                let waited = now.since(self.begun);
                SendEnd::Failed(NetError::PeerUnreachable { peer, waited, detail: detail.to_owned() })
            }
            StopReason::Busy => SendEnd::Failed(NetError::PeerBusy { peer }),
            StopReason::PeerEnded => SendEnd::Failed(NetError::PeerEnded { peer }),
            StopReason::NoTcp => {
                let detail = self.tcp_end.as_ref().map_or_else(|| "nothing came back".to_owned(), TcpEnd::detail);
                SendEnd::Failed(NetError::NoTcpHalf { peer, detail })
            }
            StopReason::TcpLost => {
                let how = self.tcp_end.as_ref().map_or_else(String::new, |end| format!(": {}", end.detail()));
                vanished(format!("its TCP connection has ended{how}"))
            }
            StopReason::ConsentExpired => vanished("it has not confirmed for 30 s that it wants this flow".to_owned()),
            StopReason::Breaker(Tripped::FeedbackTimeout { after }) => {
                vanished(format!("nothing was heard from it for {} [RFC 8083 §4.1]", format_duration(after)))
            }
            StopReason::PeerLied | StopReason::Breaker(Tripped::PeerLied) => {
                SendEnd::Failed(NetError::PeerLies { peer, detail: reason.to_string() })
            }
            StopReason::Breaker(reason) => SendEnd::Failed(NetError::Breaker { peer, reason: reason.to_string() }),
        });
        let end = match end {
            SendEnd::Interrupted => self.not_sent(io).unwrap_or(end),
            SendEnd::Finished | SendEnd::PeerBye => {
                self.not_sent(io).or_else(|| self.nothing_arrived()).or_else(|| self.untold()).unwrap_or(end)
            }
            failed @ SendEnd::Failed(_) => failed,
        };
        SendReport {
            peer,
            elapsed: self.validated_at.map_or(Duration::ZERO, |at| now.since(at)),
            validated: self.validated,
            adaptation: self.config.adaptation,
            stats: *self.session.stats(),
            captures: self.captures.count(),
            flow: *self.session.flow().counters(),
            feedback_form: self.session.feedback_form(),
            rwnd: self.session.flow().rwnd(),
            p: self.session.flow().status().p,
            socket: io.counters(),
            tcp: self.tcp.as_ref().map(TcpSender::stats),
            switches: self.switches,
            packet_size: self.session.packet_size(),
            quick_start: self
                .session
                .flow()
                .quick_start()
                .map(|counters| QuickStartReport { counters: *counters, first: self.quick_start }),
            pacing: self.lateness.summary(),
            not_sent: self.outbox.not_sent,
            unsealed: self.seal.as_ref().map_or(0, SenderSeal::refused),
            left_behind: self.session.queue_len().1 + self.tcp.as_ref().map_or(Bytes::ZERO, TcpSender::waiting),
            cpu,
            end,
        }
    }

    /// The end of a session whose receiver answered, and told of no packet in time in which it must have: no success, however it
    /// ended.
    fn nothing_arrived(&self) -> Option<SendEnd> {
        let (stats, elapsed) = (self.session.stats(), self.now.since(self.told_of_since?));
        // TCP acknowledges by itself.
        let told = stats.feedback.packets > 0 || stats.fraction_lost.is_some() || self.tcp.is_some();
        let least = if self.session.feedback_form() == Form::Reports { TOLD_BY_REPORTS } else { TOLD };
        if told || elapsed < least + self.session.flow().srtt().unwrap_or_default() * 3 {
            return None;
        }
        let packets = TOLD_OF.iter().map(|what| stats.sent.of(*what).packets).sum();
        Some(SendEnd::Failed(NetError::NothingArrived { peer: self.config.peer, packets, elapsed }))
    }

    /// The end of a session of whose last packets nobody has told: no success.
    fn untold(&self) -> Option<SendEnd> {
        let (since, packets) = self.untold?;
        let silence = self.now.since(since);
        if self.tcp.is_some() || silence < UNTOLD + self.session.flow().srtt().unwrap_or_default() * 3 {
            return None;
        }
        Some(SendEnd::Failed(NetError::Untold { peer: self.config.peer, packets, silence }))
    }

    /// The end of a session most of whose packets did not leave: no success, however it ended.
    fn not_sent(&self, io: &impl DatagramIo) -> Option<SendEnd> {
        let (packets, not_sent) = (self.session.stats().sent.total().packets, self.outbox.not_sent);
        if not_sent * 2 <= packets {
            return None;
        }
        let SocketCounters { too_large, unreachable, busy, denied, failed, .. } = io.counters();
        let reasons = [
            (too_large, "larger than the device takes"),
            (unreachable, "no route"),
            (busy, "no room"),
            (denied, "forbidden by the firewall"),
            (failed, "other errors"),
        ];
        let told: Vec<_> =
            reasons.iter().filter(|(n, _)| *n > 0).map(|(n, reason)| format!("{reason} ({n} times)")).collect();
        let detail = told.join(", ");
        Some(SendEnd::Failed(NetError::NotSent { peer: self.config.peer, not_sent, packets, detail }))
    }
}
