//! RTCP at the receiver: its reports at their pace, and the sender's goodbye.

use super::config::ReceiverConfig;
use crate::rtcp_timing::{Due, Parameters, RtcpTiming};
use fairpace_units::{Bytes, Duration, Instant, RandomStream};

const BYE_GRACE: Duration = Duration::from_millis(500);

#[derive(Debug, Default)]
pub(super) struct Reports {
    /// `None` while nobody has the place.
    timing: Option<RtcpTiming>,
    /// When the sender said goodbye, and why.
    bye: Option<(Instant, String)>,
}

impl Reports {
    /// A sender has the place.
    pub(super) fn start(&mut self, now: Instant, config: &ReceiverConfig, random: RandomStream) {
        let params = Parameters {
            session_bandwidth: config.session_bandwidth,
            reduced_minimum: config.reduced_minimum,
            // RR with two blocks 56 B, SDES about 20 B
            first_size: config.ip_overhead + Bytes::new(76),
            fixed_interval: None,
        };
        self.timing = Some(RtcpTiming::new(now, params, false, random));
    }

    /// The sender has gone.
    pub(super) fn forget(&mut self) {
        *self = Reports::default();
    }

    /// The sender wants a report each `interval`.
    pub(super) fn fix_interval(&mut self, now: Instant, interval: Duration) {
        if let Some(t) = &mut self.timing {
            t.fix_interval(now, interval);
        }
    }

    /// So many streams send.
    pub(super) fn set_senders(&mut self, now: Instant, senders: u32) {
        if let Some(t) = &mut self.timing {
            t.set_group(now, 1 + senders, senders, false);
        }
    }

    /// A full compound of that size has come from the sender.
    pub(super) fn on_received(&mut self, size: Bytes) {
        if let Some(t) = &mut self.timing {
            t.on_received(size);
        }
    }

    /// Whether a report is to leave now.
    pub(super) fn is_due(&mut self, now: Instant) -> bool {
        match &mut self.timing {
            Some(t) if t.next() <= now => t.on_timer(now) == Due::Report,
            _ => false,
        }
    }

    /// A report of that size has left.
    pub(super) fn on_sent(&mut self, now: Instant, size: Bytes) {
        if let Some(t) = &mut self.timing {
            t.on_sent(now, size);
        }
    }

    /// When a report, or the end that a BYE announced, is due.
    pub(super) fn next(&self) -> Instant {
        let report = self.timing.as_ref().map_or(Instant::NEVER, RtcpTiming::next);
        report.min(self.bye.as_ref().map_or(Instant::NEVER, |(at, _)| *at + BYE_GRACE))
    }

    pub(super) fn on_bye(&mut self, now: Instant, reason: &[u8]) {
        self.bye.get_or_insert_with(|| (now, String::from_utf8_lossy(reason).into_owned()));
    }

    /// Another stream begins: the goodbye was another's.
    pub(super) fn cancel_bye(&mut self) {
        self.bye = None;
    }

    /// Packets came after a BYE: it was a forgery, or reordering. Gives whether one is ignored for it.
    pub(super) fn contradict_bye(&mut self, now: Instant) -> bool {
        let contradicted = self.bye.as_ref().is_some_and(|(at, _)| now.since(*at) >= BYE_GRACE / 2);
        if contradicted {
            self.bye = None;
        }
        contradicted
    }

    /// Why the sender has ended, if it said so and has been silent since.
    pub(super) fn take_end(&mut self, now: Instant) -> Option<String> {
        self.bye.take_if(|(at, _)| now.since(*at) >= BYE_GRACE).map(|(_, reason)| reason)
    }
}
