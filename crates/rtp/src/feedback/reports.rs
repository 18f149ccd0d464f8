//! RTCP receiver reports as the only feedback, with what packet pairs measure and a proof that nothing was lost
//! ([`pairs`]).

pub mod pairs;

use super::{Arrived, Attached, Lent};
use crate::Secret;
use crate::feedback::reports::pairs::PairReport;
use crate::rtcp::ReportBlock;
use fairpace_control::ReceiverReport;
use fairpace_control::packet_pair::BottleneckEstimator;
use fairpace_units::{Duration, Instant, Via};

/// So far before a report a packet may belong that came late: as far back as RTP takes for reordering [RFC 3550 A.1].
const LATEST: u64 = 100;

/// The worth of a receiver report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    /// The receiver holds all that the report says.
    Proven,
    /// The report tells of a new loss: that only lowers the rate.
    Loss,
    /// The report tells of no new loss, and nothing proves that there is none.
    Unproven,
}

/// The sender's end: what receiver reports have told so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sender {
    /// T_rtcp.
    interval: Duration,
    /// Index of the first packet that the next report can tell of.
    next: u64,
    /// The sum of nonces in the last report.
    nonce_sum: u32,
    /// Packets lost so far as the peer counts.
    lost: i64,
    /// Losses that it has not told of, and did not prove away.
    unproven: i64,
}

impl Sender {
    pub(crate) const fn new(interval: Duration) -> Self {
        Sender { interval, next: 0, nonce_sum: 0, lost: 0, unproven: 0 }
    }

    pub(crate) const fn interval(&self) -> Duration {
        self.interval
    }

    /// A report about all packets up to `index`. That none is newly lost must be proven: the sum of nonces has grown by
    /// those of all packets since the last report, and by that of one that came late and was counted as lost before.
    /// A packet without proof counts as one loss more.
    pub(crate) fn on_report(
        &mut self,
        index: u64,
        (reporter, block): (u32, &ReportBlock),
        report: &mut ReceiverReport,
        secret: Secret,
        attached: &Attached<'_>,
        lent: &Lent<'_>,
    ) -> Word {
        let pairs = attached.pairs.filter(|p| p.receiver == reporter);
        let media = lent.streams.media.ssrc;
        let lost = i64::from(block.cumulative_lost);
        let before = *self;
        let nonce_sum = pairs.map_or(before.nonce_sum, |p| p.nonce_sum);
        (self.next, self.nonce_sum, self.lost) = (index + 1, nonce_sum, lost);
        let grown = nonce_sum.wrapping_sub(before.nonce_sum);
        let claimed = (before.next..=index).fold(0_u32, |sum, i| sum.wrapping_add(secret.nonce(media, i)));
        let beyond = grown.wrapping_sub(claimed);
        let late = || {
            let mut earlier = before.next.saturating_sub(LATEST)..before.next;
            lost.checked_add(1) == Some(before.lost) && earlier.any(|i| secret.nonce(media, i) == beyond)
        };
        let proven = (pairs.is_some() && (beyond == 0 || late())) || !lent.trust.check_nonces;
        let word = match (proven, lost > before.lost) {
            (true, _) => Word::Proven,
            (false, true) => Word::Loss,
            (false, false) => Word::Unproven,
        };
        if word == Word::Unproven {
            let expected = (index + 1).saturating_sub(before.next).max(1);
            self.unproven = before.unproven.saturating_add(1 + before.lost - lost);
            report.fraction_lost = report.fraction_lost.max(1.0 / expected as f64);
        }
        report.lost = Some(self.lost.saturating_add(self.unproven));
        report.bottleneck = pairs.and_then(|p| p.bottleneck);
        word
    }
}

/// The facts about one stream that reports give beside RTCP's own numbers.
#[derive(Debug)]
struct Pairs {
    ssrc: u32,
    estimator: BottleneckEstimator,
    /// Of all packets that have arrived.
    nonce_sum: u32,
}

/// The receiver's end.
#[derive(Debug, Default)]
pub(crate) struct Receiver {
    pairs: Option<Pairs>,
}

impl Receiver {
    /// A media packet has arrived.
    pub(crate) fn on_packet(&mut self, now: Instant, arrived: &Arrived<'_>) {
        let packet = arrived.packet;
        if self.pairs.as_ref().is_none_or(|p| p.ssrc != packet.ssrc) {
            let estimator = BottleneckEstimator::new();
            self.pairs = Some(Pairs { ssrc: packet.ssrc, estimator, nonce_sum: 0 });
        }
        let Some(pairs) = &mut self.pairs else { return };
        pairs.nonce_sum = pairs.nonce_sum.wrapping_add(packet.extensions.nonce.unwrap_or(0));
        if arrived.via == Via::Udp {
            // Our numbers begin a multiple of the period up, so they divide as the sender's do.
            pairs.estimator.on_packet(now, arrived.sequence, arrived.size);
        }
    }

    /// Appends to a receiver report what the sender is to be told beside.
    pub(crate) fn append(&self, receiver: u32, out: &mut Vec<u8>) {
        if let Some(pairs) = &self.pairs {
            let bottleneck = pairs.estimator.estimate();
            PairReport { receiver, bottleneck, nonce_sum: pairs.nonce_sum }.emit(out);
        }
    }
}
