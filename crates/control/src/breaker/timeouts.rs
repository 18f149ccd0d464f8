//! The two timeouts: nothing is heard (§4.1), and no media arrives (§4.2).

use super::congestion::ceil;
use super::types::{BreakerParams, ReceiverReport, StopReason};
use fairpace_units::{Duration, Instant};

/// An echo starts the clock of §4.1 anew while no more packets than these are unanswered. Where half of all packets are lost,
/// both ways, three packets go unanswered in a row with a probability of (3/4)^3 = 0.42, thirty with 2e-4.
const FEW_PACKETS: u32 = 30;

/// §4.1: the time since the first packet that nothing has answered, for each transport.
#[derive(Clone, Debug)]
pub(super) struct Silence {
    td: Duration,
    /// When the first packet was sent that nothing has answered yet; NEVER if all is answered.
    unanswered_since: Instant,
    /// Packets sent since then.
    unanswered: u32,
    /// Since when the application has had nothing to send; NEVER if it has, or something has left since.
    idle_since: Instant,
    /// Since when TCP carries the data.
    paused_at: Option<Instant>,
    /// How long datagrams had gone unanswered by then: it counts for TCP until that makes progress, so that a path dead in
    /// both is given up after the same time.
    unheard: Duration,
    /// Since when TCP has had something to acknowledge without doing so; NEVER if it has nothing.
    tcp_since: Instant,
}

impl Silence {
    pub(super) const fn new(td: Duration) -> Silence {
        Silence {
            td,
            unanswered_since: Instant::NEVER,
            unanswered: 0,
            idle_since: Instant::NEVER,
            paused_at: None,
            unheard: Duration::ZERO,
            tcp_since: Instant::NEVER,
        }
    }

    #[inline]
    pub(super) fn on_sent(&mut self, now: Instant) {
        if self.is_idle(now) {
            self.answered();
        }
        self.unanswered_since = self.unanswered_since.min(now);
        self.unanswered = self.unanswered.saturating_add(1);
        self.idle_since = Instant::NEVER;
    }

    /// A packet could leave, and the application has none.
    pub(super) fn on_idle(&mut self, now: Instant) {
        if self.paused_at.is_none() {
            self.idle_since = self.idle_since.min(now);
        }
    }

    /// A pause of the application longer than Td says nothing about the receiver, which only answers what arrives.
    fn is_idle(&self, now: Instant) -> bool {
        now.since(self.idle_since) > self.td
    }

    fn answered(&mut self) {
        self.unanswered_since = Instant::NEVER;
        self.unanswered = 0;
    }

    /// A packet was given to TCP, or nothing is sent until it has delivered all.
    pub(super) fn await_tcp(&mut self, now: Instant) {
        if self.tcp_since == Instant::NEVER {
            self.tcp_since = now - self.unheard;
        }
    }

    /// TCP has acknowledged something. The clock for the rest starts with the next packet, or by
    /// [`Silence::await_tcp`].
    pub(super) fn on_tcp_progress(&mut self) {
        self.tcp_since = Instant::NEVER;
        self.unheard = Duration::ZERO;
    }

    /// From now on TCP carries the data.
    pub(super) fn pause(&mut self, now: Instant) {
        self.paused_at = Some(now);
        if self.is_idle(now) {
            self.answered();
        }
        self.idle_since = Instant::NEVER;
        self.unheard = if self.unanswered >= 3 { now.since(self.unanswered_since) } else { Duration::ZERO };
    }

    /// From now on datagrams carry it again.
    pub(super) fn resume(&mut self, now: Instant) {
        if let Some(paused_at) = self.paused_at.take() {
            self.postpone(now.since(paused_at));
        }
    }

    /// The receiver was heard, in whatever form. While TCP carries the data that is about TCP's packets.
    pub(super) fn on_feedback(&mut self) {
        if self.paused_at.is_some() {
            return;
        }
        self.answered();
    }

    /// The receiver has answered a question, but has told of no packet.
    pub(super) fn on_echo(&mut self, now: Instant) {
        if self.paused_at.is_none() && self.unanswered_since < now && self.unanswered <= FEW_PACKETS {
            self.unanswered_since = now;
        }
    }

    /// The driver slept for `late` longer than it was told to: nothing could be heard meanwhile.
    pub(super) fn on_stall(&mut self, late: Duration) {
        if self.paused_at.is_none() {
            self.postpone(late);
        }
        if self.tcp_since != Instant::NEVER {
            self.tcp_since += late;
        }
    }

    fn postpone(&mut self, by: Duration) {
        // NEVER stays so.
        self.unanswered_since += by;
        self.idle_since += by;
    }

    /// When [`Silence::on_timer`] is wanted.
    pub(super) fn next(&self) -> Instant {
        // Three packets at least: one that is lost before a pause is not a dead path.
        let datagrams =
            if self.unanswered < 3 || self.paused_at.is_some() { Instant::NEVER } else { self.unanswered_since };
        datagrams.min(self.tcp_since) + self.td * 3
    }

    /// §4.1: three intervals without a word.
    pub(super) fn on_timer(&mut self, now: Instant) -> Option<StopReason> {
        if self.is_idle(now) {
            self.answered();
        }
        let after = self.td * 3;
        (now >= self.next()).then_some(StopReason::FeedbackTimeout { after })
    }
}

/// §4.2: reports in a row that tell of no further packet while data was sent, over as much time as so many reports take, or
/// as silence may: reports that come faster than they should end nothing sooner.
#[derive(Clone, Debug, Default)]
pub(super) struct MediaTimeout {
    highest_seq: Option<u64>,
    /// Reports in a row without any media, and after how many of them to stop.
    silent: u32,
    reports: u32,
    /// The time that they cover.
    silent_for: Duration,
}

impl MediaTimeout {
    /// The highest number that a report has named; zero before the first.
    #[cfg(test)]
    pub(super) fn highest_seq(&self) -> u64 {
        self.highest_seq.unwrap_or(0)
    }

    /// `sent`: data packets left since the last report.
    pub(super) fn on_report(
        &mut self,
        report: &ReceiverReport,
        sent: u64,
        params: &BreakerParams,
        tr: Duration,
    ) -> Option<StopReason> {
        let highest_seq = report.highest_seq;
        let advanced = self.highest_seq.is_none_or(|h| highest_seq > h);
        self.highest_seq = Some(self.highest_seq.unwrap_or(0).max(highest_seq));
        if advanced {
            (self.silent, self.reports, self.silent_for) = (0, 0, Duration::ZERO);
        } else if sent > 0 {
            self.silent += 1;
            self.silent_for += report.interval;
            // Recomputed at each such report, and only ever extended.
            self.reports = self.reports.max(media_timeout(params, tr));
            let least = (params.tdr * self.reports).min(params.td * 3);
            if self.silent >= self.reports && self.silent_for >= least {
                return Some(StopReason::MediaTimeout { reports: self.silent });
            }
        }
        None
    }
}

/// MEDIA_TIMEOUT = ceil(k · max(Tf, Tr, Tdr) / Tdr) reports [RFC 8083 §4.2].
pub(super) fn media_timeout(p: &BreakerParams, tr: Duration) -> u32 {
    let longest = p.tf.max(tr).max(p.tdr).as_secs_f64();
    ceil(f64::from(p.k) * longest / p.tdr.as_secs_f64()) as u32
}
