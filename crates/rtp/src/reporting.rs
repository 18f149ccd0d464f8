//! RTCP as either end keeps it: own reports at their pace [RFC 3550 §6.2], and the other end's goodbye, which packets that
//! go on coming contradict.

use crate::rtcp_timing::{Due, RtcpTiming};
use fairpace_units::{Bytes, Duration, Instant};

/// A goodbye ends the session after so long, if nothing has contradicted it.
const BYE_GRACE: Duration = Duration::from_millis(500);
/// A goodbye is said so long after the one before: three times, because nothing tells that it was heard, and 15 s of silence would
/// have to say it.
const GOODBYES: [Duration; 2] = [Duration::from_millis(100), Duration::from_millis(150)];

/// The goodbyes of the end that leaves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Farewell {
    said: usize,
    /// When the next is due.
    next: Instant,
}

impl Farewell {
    pub(crate) const fn new(now: Instant) -> Self {
        Farewell { said: 0, next: now }
    }

    /// When the next goodbye leaves; `None` if all have been said.
    pub(crate) fn next(&self) -> Option<Instant> {
        (self.said <= GOODBYES.len()).then_some(self.next)
    }

    /// One has left.
    pub(crate) fn on_said(&mut self, now: Instant) {
        self.next = now + GOODBYES.get(self.said).copied().unwrap_or_default();
        self.said += 1;
    }
}

#[derive(Debug)]
pub(crate) struct Reporting {
    /// `None` while there is nobody to report to.
    timing: Option<RtcpTiming>,
    /// When the other end said goodbye, and why.
    goodbye: Option<(Instant, String)>,
    /// A packet that comes so long after a goodbye was not overtaken by it.
    reordering: Duration,
}

impl Reporting {
    /// `reordering`: what comes so long after a goodbye contradicts it.
    pub(crate) const fn new(reordering: Duration) -> Self {
        Reporting { timing: None, goodbye: None, reordering }
    }

    /// There is somebody to report to, at that pace.
    pub(crate) fn start(&mut self, timing: RtcpTiming) {
        self.timing = Some(timing);
    }

    /// The other end has gone.
    pub(crate) fn forget(&mut self) {
        (self.timing, self.goodbye) = (None, None);
    }

    /// A report is wanted each `interval`.
    pub(crate) fn fix_interval(&mut self, now: Instant, interval: Duration) {
        if let Some(t) = &mut self.timing {
            t.fix_interval(now, interval);
        }
    }

    /// The other end has so many streams that send.
    pub(crate) fn set_senders(&mut self, now: Instant, senders: u32) {
        if let Some(t) = &mut self.timing {
            t.set_group(now, 1 + senders, senders, false);
        }
    }

    /// A full compound of that size has come.
    pub(crate) fn on_received(&mut self, size: Bytes) {
        if let Some(t) = &mut self.timing {
            t.on_received(size);
        }
    }

    /// Whether a report is to leave now.
    pub(crate) fn is_due(&mut self, now: Instant) -> bool {
        match &mut self.timing {
            Some(t) if t.next() <= now => t.on_timer(now) == Due::Report,
            _ => false,
        }
    }

    /// A report of that size has left.
    pub(crate) fn on_sent(&mut self, now: Instant, size: Bytes) {
        if let Some(t) = &mut self.timing {
            t.on_sent(now, size);
        }
    }

    /// When a report, or the end that a goodbye announced, is due.
    pub(crate) fn next(&self) -> Instant {
        let report = self.timing.as_ref().map_or(Instant::NEVER, RtcpTiming::next);
        report.min(self.goodbye.as_ref().map_or(Instant::NEVER, |(at, _)| *at + BYE_GRACE))
    }

    /// The other end says goodbye; the first one counts.
    pub(crate) fn on_bye(&mut self, now: Instant, reason: &[u8]) {
        self.goodbye.get_or_insert_with(|| (now, String::from_utf8_lossy(reason).into_owned()));
    }

    /// The goodbye was another's.
    pub(crate) fn cancel_bye(&mut self) {
        self.goodbye = None;
    }

    /// The other end speaks: whether this contradicts a goodbye, which was a forgery and is ignored.
    pub(crate) fn contradict_bye(&mut self, now: Instant) -> bool {
        let reordering = self.reordering;
        self.goodbye.take_if(|(at, _)| now.since(*at) >= reordering).is_some()
    }

    /// Why the other end has gone, if a goodbye said so and nothing has contradicted it.
    pub(crate) fn take_end(&mut self, now: Instant) -> Option<String> {
        self.goodbye.take_if(|(at, _)| now.since(*at) >= BYE_GRACE).map(|(_, reason)| reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goodbye_ends_after_its_grace_unless_a_packet_too_late_for_reordering_contradicts_it() {
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let mut r = Reporting::new(Duration::from_millis(100));
        assert_eq!(r.next(), Instant::NEVER);
        r.on_bye(at(1_000), b"over");
        r.on_bye(at(1_200), b"again");
        assert!(!r.contradict_bye(at(1_099)), "it was overtaken");
        assert_eq!((r.next(), r.take_end(at(1_499))), (at(1_500), None));
        assert_eq!(r.take_end(at(1_500)).as_deref(), Some("over"));
        assert_eq!(r.take_end(at(2_000)), None, "once");
        r.on_bye(at(3_000), b"forged");
        assert!(r.contradict_bye(at(3_100)));
        assert_eq!((r.next(), r.take_end(at(4_000))), (Instant::NEVER, None));
    }
}
