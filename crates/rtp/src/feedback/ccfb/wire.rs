//! Congestion control feedback [RFC 8888 §3.1]: which packets arrived, when, and with which ECN mark.
//!
//! ```text
//!  V=2|P|FMT=11|  PT=205  |   length        one block for each stream:
//!  SSRC of the reporter                       SSRC of the stream
//!  block, block, ...                          begin_seq (16) | num_reports (16)
//!  report timestamp (RTS, 1/65,536 s)         R|ECN|ATO (16 bit each), zero-padded to a word
//! ```
//!
//! `num_reports` is read as the *count* of metrics: the RFC's prose about an inclusive range does
//! not fit its own figure, and other stacks count too. A report timestamp is the middle of the
//! reporter's NTP time; an arrival time offset (ATO) counts back from it in 1/1,024 s.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use crate::wire::{Put, Reader};
use crate::{WireError, rtcp};
use fairpace_units::{Duration, Ecn};

/// At most this many metrics in one block [RFC 8888 §3.1, MUST].
pub const MAX_REPORTS: u16 = 16_384;
/// "8,189/1,024 s or more before the report": 0x1FFE.
pub const ATO_TOO_OLD: u16 = 0x1ffe;
/// "No arrival time": 0x1FFF.
pub const ATO_UNKNOWN: u16 = 0x1fff;

/// The news about one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Metric {
    /// The packet has not arrived.
    #[default]
    NotReceived,
    /// The packet has arrived.
    Received {
        /// The mark that it carried; CE if any copy did.
        ecn: Ecn,
        /// Arrival before the report, as on the wire: 1/1,024 s, or one of the two special values.
        ato: u16,
    },
}

impl Metric {
    /// A packet that arrived `before` the report's timestamp. The offset is rounded down, so that an RTT
    /// computed with it errs by less than 1 ms and never below the truth.
    pub fn received(ecn: Ecn, before: Duration) -> Self {
        let ticks = before.as_nanos().saturating_mul(1_024) / 1_000_000_000;
        let ato = u16::try_from(ticks).ok().filter(|&t| t <= 0x1ffd).unwrap_or(ATO_TOO_OLD);
        Metric::Received { ecn, ato }
    }

    /// How long before the report the packet arrived, if that is known.
    pub fn offset(self) -> Option<Duration> {
        match self {
            Metric::Received { ato, .. } if ato < ATO_TOO_OLD => {
                Some(Duration::from_nanos(u64::from(ato) * 1_000_000_000 / 1_024))
            }
            _ => None,
        }
    }

    fn from_wire(bits: u16) -> Self {
        if bits & 0x8000 == 0 {
            return Metric::NotReceived; // the other bits are to be ignored [RFC 8888 §3.1]
        }
        Metric::Received { ecn: Ecn::from_bits((bits >> 13) as u8), ato: bits & 0x1fff }
    }

    fn to_wire(self) -> u16 {
        match self {
            Metric::NotReceived => 0,
            Metric::Received { ecn, ato } => 0x8000 | (ecn as u16) << 13 | ato & 0x1fff,
        }
    }
}

/// A whole report, checked throughout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report<'a> {
    /// Who reports.
    pub reporter: u32,
    /// When, 1/65,536 s of the reporter's NTP time.
    pub timestamp: u32,
    blocks: &'a [u8],
}

/// The news about one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block<'a> {
    /// The stream.
    pub ssrc: u32,
    /// Sequence number of the first metric.
    pub begin: u16,
    metrics: &'a [u8],
}

impl<'a> Report<'a> {
    /// From [`rtcp::Rtcp::CongestionFeedback`]. Work and memory are bounded by the bytes present.
    ///
    /// # Errors
    /// [`WireError`] if a block is longer than the packet or has more than 16,384 metrics, or if the
    /// timestamp is missing.
    pub fn parse(reporter: u32, body: &'a [u8]) -> Result<Self, WireError> {
        let too_short = WireError::Truncated { what: "CCFB", needed: 4, found: body.len() };
        let (blocks, timestamp) = body.split_last_chunk::<4>().ok_or(too_short)?;
        let mut r = Reader::new("CCFB block", blocks);
        while !r.is_empty() {
            Block::read(&mut r)?;
        }
        Ok(Report { reporter, timestamp: u32::from_be_bytes(*timestamp), blocks })
    }

    /// Its blocks.
    pub fn blocks(&self) -> impl Iterator<Item = Block<'a>> + use<'a> {
        let mut r = Reader::new("CCFB block", self.blocks);
        core::iter::from_fn(move || Block::read(&mut r).ok())
    }
}

impl<'a> Block<'a> {
    fn read(r: &mut Reader<'a>) -> Result<Self, WireError> {
        let ssrc = r.u32()?;
        let begin = r.u16()?;
        let count = r.u16()?;
        if count > MAX_REPORTS {
            return Err(WireError::Field { what: "num_reports", found: count.into(), allowed: "0 to 16384" });
        }
        let metrics = r.take(2 * usize::from(count))?;
        if count % 2 == 1 {
            r.take(2)?;
        }
        Ok(Block { ssrc, begin, metrics })
    }

    /// How many packets it speaks of; zero is legal.
    pub fn len(&self) -> usize {
        self.metrics.len() / 2
    }

    /// Whether it speaks of none.
    pub fn is_empty(&self) -> bool {
        self.metrics.is_empty()
    }

    /// Sequence numbers (modulo 65,536) and what is said of each.
    pub fn metrics(&self) -> impl Iterator<Item = (u16, Metric)> + use<'a> {
        let (words, _) = self.metrics.as_chunks::<2>();
        let begin = self.begin;
        words
            .iter()
            .enumerate()
            .map(move |(i, w)| (begin.wrapping_add(i as u16), Metric::from_wire(u16::from_be_bytes(*w))))
    }
}

/// Bytes that a block of `n` metrics takes.
pub const fn block_len(n: usize) -> usize {
    2_usize.saturating_mul(n).next_multiple_of(4).saturating_add(8)
}

/// Bytes that a report takes beside its blocks: header, reporter, timestamp.
pub const OVERHEAD: usize = 12;

/// Writes a report; each item of `blocks` is (SSRC, begin_seq, metrics).
pub fn emit<M>(out: &mut Vec<u8>, reporter: u32, timestamp: u32, blocks: impl IntoIterator<Item = (u32, u16, M)>)
where
    M: IntoIterator<Item = Metric>,
{
    rtcp::emit_packet(out, rtcp::packet_type::TRANSPORT_FEEDBACK, rtcp::fmt::CCFB.into(), |out| {
        out.put_u32(reporter);
        for (ssrc, begin, metrics) in blocks {
            let start = out.len();
            out.put_u32(ssrc);
            out.put_u16(begin);
            out.put_u16(0);
            let mut count = 0_u16;
            for m in metrics.into_iter().take(MAX_REPORTS.into()) {
                out.put_u16(m.to_wire());
                count = count.saturating_add(1);
            }
            if let Some([_, _, _, _, _, _, high, low]) = out.get_mut(start..).and_then(|b| b.first_chunk_mut()) {
                [*high, *low] = count.to_be_bytes();
            }
            out.pad_to_words(start);
        }
        out.put_u32(timestamp);
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtcp::{Compound, Rtcp};
    use proptest::prelude::*;

    fn parse(bytes: &[u8]) -> Result<Report<'_>, WireError> {
        match Compound::parse(bytes)?.next() {
            Some(Rtcp::CongestionFeedback(reporter, body)) => Report::parse(reporter, body),
            other => panic!("{other:?}"),
        }
    }

    fn received(ato: u16) -> Metric {
        Metric::Received { ecn: Ecn::NotEct, ato }
    }

    #[test]
    fn the_boundary_offsets_are_the_rfcs() {
        // 0.5 s = 512/1,024; 8,189/1,024 s = 0x1FFD is the last exact one; beyond it 0x1FFE
        assert_eq!(Metric::received(Ecn::NotEct, Duration::from_millis(500)), received(512));
        assert_eq!(
            Metric::received(Ecn::NotEct, Duration::from_nanos(8_189 * 1_000_000_000 / 1_024 + 1)),
            received(0x1ffd)
        );
        assert_eq!(
            Metric::received(Ecn::NotEct, Duration::from_nanos(8_190 * 1_000_000_000 / 1_024 + 1)),
            received(0x1ffe)
        );
        assert_eq!(Metric::received(Ecn::NotEct, Duration::MAX), received(0x1ffe));
        assert_eq!(received(512).offset(), Some(Duration::from_millis(500)));
        assert_eq!(received(0x1ffe).offset(), None);
        assert_eq!(received(0x1fff).offset(), None);
    }

    #[test]
    fn the_bytes_are_those_of_the_rfcs_figure() {
        let mut out = Vec::new();
        let metrics = vec![Metric::Received { ecn: Ecn::Ce, ato: 1 }, Metric::NotReceived, received(512)];
        emit(&mut out, 0x0a0b_0c0d, 0x0102_0304, [(0x1122_3344, 0xfffe, metrics)]);
        #[rustfmt::skip]
        assert_eq!(out, [
            0x8b, 205, 0, 6,           // V=2, FMT 11, PT 205, 7 words
            0x0a, 0x0b, 0x0c, 0x0d,
            0x11, 0x22, 0x33, 0x44,
            0xff, 0xfe, 0, 3,          // begin_seq 65534, three metrics
            0xe0, 0x01, 0x00, 0x00,    // R=1 CE ATO 1; not received
            0x82, 0x00, 0x00, 0x00,    // R=1 ATO 512; padding
            0x01, 0x02, 0x03, 0x04,
        ]);
        let report = parse(&out).unwrap();
        let seqs: Vec<u16> = report.blocks().flat_map(|b| b.metrics().map(|m| m.0)).collect();
        assert_eq!(seqs, [65_534, 65_535, 0], "the range wraps");
    }

    #[test]
    fn a_block_of_no_metrics_is_legal() {
        let mut out = Vec::new();
        emit(&mut out, 1, 2, [(3, 4, vec![])]);
        let report = parse(&out).unwrap();
        assert_eq!(report.blocks().map(|b| (b.ssrc, b.begin, b.len())).collect::<Vec<_>>(), [(3, 4, 0)]);
        assert_eq!(
            parse(&{
                let mut o = Vec::new();
                emit::<Vec<_>>(&mut o, 1, 2, []);
                o
            })
            .unwrap()
            .blocks()
            .count(),
            0
        );
    }

    #[test]
    fn more_than_16384_metrics_are_refused() {
        let mut out = Vec::new();
        emit(&mut out, 1, 2, [(3, 4, vec![received(0); 16_384])]);
        assert!(parse(&out).is_ok());
        // the same block, padded to one word more and counted as 16,385
        out.splice(16..16, [0; 4]);
        let words = out.len() / 4 - 1;
        out[2..4].copy_from_slice(&(words as u16).to_be_bytes());
        out[14..16].copy_from_slice(&16_385_u16.to_be_bytes());
        assert_eq!(parse(&out), Err(WireError::Field { what: "num_reports", found: 16_385, allowed: "0 to 16384" }));
    }

    #[test]
    fn bits_of_a_packet_not_received_are_ignored() {
        assert_eq!(Metric::from_wire(0x7fff), Metric::NotReceived);
    }

    fn any_metric() -> impl Strategy<Value = Metric> {
        (0_u8..4, 0_u16..0x2000, any::<bool>()).prop_map(|(ecn, ato, there)| {
            if there { Metric::Received { ecn: Ecn::from_bits(ecn), ato } } else { Metric::NotReceived }
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10_000))]

        #[test]
        fn what_is_written_is_read_back(
            head: (u32, u32),
            blocks in prop::collection::vec((any::<u32>(), any::<u16>(), prop::collection::vec(any_metric(), 0..9)), 0..5),
        ) {
            let mut out = Vec::new();
            emit(&mut out, head.0, head.1, blocks.clone());
            let len: usize = blocks.iter().map(|b| block_len(b.2.len())).sum();
            prop_assert_eq!(out.len(), OVERHEAD + len);
            let report = parse(&out).unwrap();
            prop_assert_eq!((report.reporter, report.timestamp), head);
            let back: Vec<_> = report.blocks().map(|b| (b.ssrc, b.begin, b.metrics().map(|m| m.1).collect::<Vec<_>>())).collect();
            prop_assert_eq!(back, blocks);
        }

        #[test]
        fn any_body_is_read_or_refused(body in prop::collection::vec(any::<u8>(), 0..64)) {
            if let Ok(report) = Report::parse(1, &body) {
                let _ = report.blocks().map(|b| b.metrics().count()).sum::<usize>();
            }
        }
    }
}
