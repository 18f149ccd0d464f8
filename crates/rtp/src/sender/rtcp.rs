//! RTCP at the sender: sender reports at their pace, what receiver reports say, and a goodbye.

use super::admission::LONGEST_RTT;
use super::config::SenderConfig;
use super::events::SenderStats;
use super::media_out::MediaOut;
use crate::Secret;
use crate::rtcp::{self, ReportBlock, SenderInfo};
use crate::rtcp_timing::{Due, Parameters, RtcpTiming};
use crate::secret::Purpose;
use fairpace_control::ReceiverReport;
use fairpace_units::{Bytes, Duration, Instant, RandomStream};

/// How long a BYE waits for feedback that contradicts it, and how long before it counts as such.
const BYE_GRACE: Duration = Duration::from_millis(500);
const BYE_CONTRADICTED: Duration = Duration::from_millis(100);

/// A receiver report about our media.
#[derive(Clone, Copy, Debug)]
pub(super) struct MediaReport {
    /// Index of the highest packet received.
    pub(super) index: u64,
    pub(super) report: ReceiverReport,
    /// The round trip by LSR and DLSR.
    pub(super) rtt: Option<Duration>,
}

#[derive(Debug, Default)]
pub(super) struct Reports {
    timing: Option<RtcpTiming>,
    /// Highest media index in a receiver report, and when that came.
    last: Option<(u64, Instant)>,
    running_since: Instant,
    /// When the peer said goodbye.
    bye: Option<Instant>,
}

impl Reports {
    /// `interval`: how often, if the form of feedback says so.
    pub(super) fn start(&mut self, now: Instant, config: &SenderConfig, secret: &Secret, interval: Option<Duration>) {
        self.running_since = now;
        let params = Parameters {
            session_bandwidth: config.session_bandwidth,
            reduced_minimum: config.reduced_minimum,
            // SR 28 B, SDES of three chunks of about 20 B
            first_size: config.ip_overhead + Bytes::new(92),
            fixed_interval: interval,
        };
        let random = RandomStream::named(secret.value(Purpose::RtcpTiming, 0, 0), "rtcp.sender");
        let mut timing = RtcpTiming::new(now, params, true, random);
        timing.set_group(now, 2, 1, true);
        self.timing = Some(timing);
    }

    /// A full compound of that size has come.
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
        report.min(self.bye.map_or(Instant::NEVER, |at| at + BYE_GRACE))
    }

    pub(super) fn on_bye(&mut self, now: Instant) {
        self.bye = self.bye.or(Some(now));
    }

    /// The peer speaks: whether this contradicts a BYE, which is then ignored.
    pub(super) fn contradict_bye(&mut self, now: Instant) -> bool {
        let contradicted = self.bye.is_some_and(|at| now.since(at) > BYE_CONTRADICTED);
        if contradicted {
            self.bye = None;
        }
        contradicted
    }

    /// Whether the peer has said goodbye, and nothing has contradicted it.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        self.bye.is_some_and(|at| now.since(at) >= BYE_GRACE)
    }

    /// The report in a block about our media; `None` if that report is impossible, or older than one that has come.
    pub(super) fn on_block(
        &mut self,
        now: Instant,
        block: &ReportBlock,
        media: &mut MediaOut,
        config: &SenderConfig,
        stats: &mut SenderStats,
    ) -> Option<MediaReport> {
        let sequence = block.highest as u16;
        let media = &mut media.streams.media;
        let (index, number) = (media.index(sequence)?, media.number_of(sequence)?);
        if self.last.is_some_and(|(last, _)| index < last) {
            return None;
        }
        let since = self.last.map_or(self.running_since, |(_, at)| at);
        self.last = Some((index, now));
        let fraction = f64::from(block.fraction_lost) / 256.0;
        stats.fraction_lost = Some(fraction);
        stats.jitter = Some(Duration::from_nanos(u64::from(block.jitter) * 100_000 / 9));
        let rtt = block.rtt(config.ntp_at_zero.at(now).middle()).filter(|r| *r < LONGEST_RTT);
        if rtt.is_some() {
            stats.report_rtt = rtt;
        }
        Some(MediaReport { index, report: ReceiverReport::new(number, fraction, now.since(since)), rtt })
    }
}

/// Appends a sender report and the names that go with it.
pub(super) fn write_report(now: Instant, media: &MediaOut, config: &SenderConfig, out: &mut Vec<u8>) {
    let stream = &media.streams.media;
    SenderInfo {
        ntp: config.ntp_at_zero.at(now),
        rtp_timestamp: media.media_time(now),
        packet_count: stream.count as u32,
        octet_count: stream.octets as u32,
    }
    .emit(stream.ssrc, out);
    let ssrcs = media.streams.ssrcs();
    let used = if config.retransmission { &ssrcs[..] } else { &ssrcs[..2] };
    rtcp::emit_sdes(out, used, &config.cname);
}
