//! RTCP at the sender: the pace of its reports, what they say, and what receiver reports say.

use super::config::SenderConfig;
use super::events::SenderStats;
use super::media_out::MediaOut;
use crate::Secret;
use crate::frame_interval;
use crate::rtcp::{self, ReportBlock, SenderInfo};
use crate::rtcp_timing::{Parameters, RtcpTiming};
use crate::secret::Purpose;
use fairpace_control::{LONGEST_RTT, ReceiverReport};
use fairpace_units::{Bytes, Duration, Instant, RandomStream};

/// Feedback that comes so long after a goodbye contradicts the goodbye.
pub(super) const REORDERING: Duration = Duration::from_millis(100);

/// A receiver report about our media.
#[derive(Clone, Copy, Debug)]
pub(super) struct MediaReport {
    /// Index of the highest packet received.
    pub(super) index: u64,
    /// No report before has told of that packet.
    pub(super) is_news: bool,
    pub(super) report: ReceiverReport,
    /// The round trip by LSR and DLSR.
    pub(super) rtt: Option<Duration>,
}

/// The pace of the sender's reports from now on. `interval`: how often, if the form of feedback says so.
pub(super) fn timing(now: Instant, config: &SenderConfig, secret: &Secret, interval: Option<Duration>) -> RtcpTiming {
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
    timing
}

/// When a report was made, as far as it tells: highest media index, and LSR with DLSR, zero before the receiver has had an SR.
#[derive(Clone, Copy, Debug)]
struct Made {
    index: u64,
    last_sr: u32,
    delay: u32,
}

impl Made {
    /// Whether this was made after `last`. A repetition was not, whenever it comes: it names no further packet at no later
    /// time. LSR and DLSR are compared first, because sequence numbers wrap within minutes, and LSR after 18 hours.
    fn is_after(&self, last: &Made) -> bool {
        let later = self.last_sr.wrapping_sub(last.last_sr) as i32;
        self.index >= last.index
            && match (last.last_sr, self.last_sr) {
                (0, 0) => self.index > last.index,
                (0, _) => true,
                (_, 0) => false,
                _ => later > 0 || (later == 0 && (self.delay, self.index) > (last.delay, last.index)),
            }
    }
}

/// The news in receiver reports about our media.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    /// The last receiver report, and when it came.
    last: Option<(Made, Instant)>,
    running_since: Instant,
}

impl Blocks {
    /// Media is sent from now on.
    pub(super) const fn start(&mut self, now: Instant) {
        self.running_since = now;
    }

    /// Another receiver tells from now on, which has had no SR.
    pub(super) fn change_receiver(&mut self) {
        if let Some((made, _)) = &mut self.last {
            (made.last_sr, made.delay) = (0, 0);
        }
    }

    /// The report in a block about our media; `None` if that report is impossible, or not newer than all that have come.
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
        let made = Made { index, last_sr: block.last_sr, delay: block.delay_since_last_sr };
        if self.last.is_some_and(|(last, _)| !made.is_after(&last)) {
            return None;
        }
        let is_news = self.last.is_none_or(|(last, _)| index > last.index);
        let since = self.last.map_or(self.running_since, |(_, at)| at);
        self.last = Some((made, now));
        let fraction = f64::from(block.fraction_lost) / 256.0;
        stats.fraction_lost = Some(fraction);
        stats.jitter = Some(Duration::from_nanos(u64::from(block.jitter) * 100_000 / 9));
        let rtt = block.rtt(config.ntp_at_zero.at(now).middle()).filter(|r| *r < LONGEST_RTT);
        if rtt.is_some() {
            stats.report_rtt = rtt;
        }
        Some(MediaReport { index, is_news, report: ReceiverReport::new(number, fraction, now.since(since)), rtt })
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
    let used = match (config.fec, config.retransmission) {
        (true, _) => &ssrcs[..],
        (false, true) => &ssrcs[..3],
        (false, false) => &ssrcs[..2],
    };
    rtcp::emit_sdes(out, used, &config.cname);
    if let Some(interval) = config.frame_interval {
        frame_interval::emit(stream.ssrc, interval, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_later_by_lsr_across_its_wrap_and_by_dlsr_and_index_at_the_same_lsr() {
        let made = |index, last_sr, delay| Made { index, last_sr, delay };
        let before = made(10, u32::MAX - 5, 3);
        for after in [made(10, 7, 0), made(11, 7, 0), made(10, u32::MAX - 5, 4), made(11, u32::MAX - 5, 3)] {
            assert!(after.is_after(&before) && !before.is_after(&after), "{after:?}");
        }
        // The same again, one about fewer packets, and one from before there was an SR.
        for not_after in [before, made(9, 7, 0), made(11, 0, 0), made(11, u32::MAX - 6, 9)] {
            assert!(!not_after.is_after(&before), "{not_after:?}");
        }
        assert!(made(11, 0, 0).is_after(&made(10, 0, 0)) && !made(10, 0, 0).is_after(&made(10, 0, 0)));
    }
}
