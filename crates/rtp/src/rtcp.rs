//! RTCP: SR, RR, SDES, BYE, APP [RFC 3550 §6.4 to §6.7], PLI and NACK [RFC 4585 §6].
//!
//! Our own `Repr`s and not the `rtcp-types` crate (0.3.0), for two reasons found in it: it panics on
//! an APP packet whose padding is longer than its body, and it reads an SDES chunk past its end if
//! the next SSRC begins with a zero byte. The tests compare both where both are right.
//!
//! The checks of [RFC 3550 A.2] are all made in [`Compound::parse`], before anything is acted upon.
//! Reduced-size packets [RFC 5506] are accepted: a datagram may begin with feedback.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

mod description;
mod packet;
mod reports;
mod requests;

pub use description::{Bye, Sdes, emit_bye, emit_sdes};
pub(crate) use packet::emit_packet;
pub use packet::{App, NAME, fmt, packet_type};
pub use reports::{ReportBlock, ReportBlocks, SenderInfo, emit_receiver_report};
pub use requests::{Nack, emit_nack, emit_picture_loss};

use crate::wire::Reader;
use crate::{NtpTime, WireError};
use packet_type as pt;

/// One packet of a compound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rtcp<'a> {
    /// SR.
    SenderReport(u32, SenderInfo, ReportBlocks<'a>),
    /// RR: who reports, and what.
    ReceiverReport(u32, ReportBlocks<'a>),
    /// SDES.
    Sdes(Sdes<'a>),
    /// BYE.
    Bye(Bye<'a>),
    /// APP.
    App(App<'a>),
    /// Generic NACK.
    Nack(Nack<'a>),
    /// PLI: who asks, for which stream.
    PictureLoss(u32, u32),
    /// CCFB: its body behind the sender's SSRC, for [`crate::feedback::ccfb`].
    CongestionFeedback(u32, &'a [u8]),
    /// Transport feedback of another form, of which there may be one on whose number both ends agree
    /// ([`crate::feedback::rtp_tfrc`]).
    TransportFeedback {
        /// Its form.
        fmt: u8,
        /// Who reports.
        sender: u32,
        /// About which stream.
        media: u32,
        /// The feedback control information, as the format has it [RFC 4585 §6.1].
        fci: &'a [u8],
    },
    /// Something else, well-formed: its packet type.
    Other(u8),
}

/// A datagram of RTCP packets whose form has been checked throughout.
#[derive(Clone, Copy, Debug)]
pub struct Compound<'a>(&'a [u8]);

impl<'a> Compound<'a> {
    /// Checks a datagram [RFC 3550 A.2].
    ///
    /// # Errors
    /// [`WireError`] if any packet in it has a version other than 2, a length past the end, a body
    /// shorter than its count demands, or padding where there must be none.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, WireError> {
        let mut rest = bytes;
        if rest.is_empty() {
            return Err(WireError::Truncated { what: "RTCP header", needed: 4, found: 0 });
        }
        while !rest.is_empty() {
            (_, rest) = next(rest)?;
        }
        Ok(Compound(bytes))
    }

    /// Whether it begins with SR or RR, as a full compound must.
    pub fn is_full(&self) -> bool {
        matches!(self.0, [_, pt::SENDER_REPORT | pt::RECEIVER_REPORT, ..])
    }
}

impl<'a> Iterator for Compound<'a> {
    type Item = Rtcp<'a>;
    fn next(&mut self) -> Option<Rtcp<'a>> {
        let (packet, rest) = next(self.0).ok()?;
        self.0 = rest;
        Some(packet)
    }
}

/// Reads the first packet and says what is left.
fn next(bytes: &[u8]) -> Result<(Rtcp<'_>, &[u8]), WireError> {
    let mut r = Reader::new("RTCP packet", bytes);
    let flags = r.u8()?;
    if flags >> 6 != 2 {
        return Err(WireError::Field { what: "RTCP version", found: u32::from(flags >> 6), allowed: "2" });
    }
    let packet_type = r.u8()?;
    if !(192..=223).contains(&packet_type) {
        return Err(WireError::Field { what: "RTCP packet type", found: packet_type.into(), allowed: "192 to 223" });
    }
    let words = usize::from(r.u16()?);
    let mut body = r.take(4 * words)?;
    let rest = r.rest();
    if flags & 0x20 != 0 {
        if !rest.is_empty() {
            return Err(WireError::Field { what: "RTCP padding", found: 1, allowed: "on the last packet only" });
        }
        let padding = body.last().copied().unwrap_or(0);
        let kept = body.len().checked_sub(usize::from(padding)).filter(|_| padding > 0 && padding % 4 == 0);
        let Some(kept) = kept.and_then(|n| body.get(..n)) else {
            return Err(WireError::Field {
                what: "RTCP padding",
                found: padding.into(),
                allowed: "a multiple of 4, from 4 up to the body's length",
            });
        };
        body = kept;
    }
    Ok((parse_body(packet_type, flags & 0x1f, body)?, rest))
}

fn parse_body(packet_type: u8, count: u8, body: &[u8]) -> Result<Rtcp<'_>, WireError> {
    let mut r = Reader::new("RTCP body", body);
    Ok(match (packet_type, count) {
        (pt::SENDER_REPORT, _) => {
            let ssrc = r.u32()?;
            let info = SenderInfo {
                ntp: NtpTime(r.u64()?),
                rtp_timestamp: r.u32()?,
                packet_count: r.u32()?,
                octet_count: r.u32()?,
            };
            Rtcp::SenderReport(ssrc, info, ReportBlocks(r.take(ReportBlock::LEN * usize::from(count))?))
        }
        (pt::RECEIVER_REPORT, _) => {
            let ssrc = r.u32()?;
            Rtcp::ReceiverReport(ssrc, ReportBlocks(r.take(ReportBlock::LEN * usize::from(count))?))
        }
        (pt::SDES, _) => {
            let sdes = Sdes { rest: body, left: count };
            let mut check = sdes;
            while check.left > 0 {
                check.next_chunk()?;
            }
            Rtcp::Sdes(sdes)
        }
        (pt::BYE, _) => {
            let ssrcs = r.take(4 * usize::from(count))?;
            let reason = if r.is_empty() {
                &[]
            } else {
                let len = usize::from(r.u8()?);
                // The bug that `tests/targets.rs` must find.
                #[cfg(feature = "canary")]
                assert!(len <= r.len(), "the canary: a reason longer than the packet");
                r.take(len)?
            };
            Rtcp::Bye(Bye { ssrcs, reason })
        }
        (pt::APP, subtype) => {
            let ssrc = r.u32()?;
            let name = r.u32()?.to_be_bytes();
            Rtcp::App(App { ssrc, subtype, name, data: r.rest() })
        }
        (pt::TRANSPORT_FEEDBACK, fmt::NACK) => Rtcp::Nack(Nack { sender: r.u32()?, media: r.u32()?, pairs: r.rest() }),
        (pt::TRANSPORT_FEEDBACK, fmt::CCFB) => Rtcp::CongestionFeedback(r.u32()?, r.rest()),
        (pt::TRANSPORT_FEEDBACK, fmt) if body.len() >= 8 => {
            Rtcp::TransportFeedback { fmt, sender: r.u32()?, media: r.u32()?, fci: r.rest() }
        }
        (pt::PAYLOAD_FEEDBACK, fmt::PLI) => Rtcp::PictureLoss(r.u32()?, r.u32()?),
        _ => Rtcp::Other(packet_type),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairpace_units::Duration;
    use proptest::prelude::*;
    use rtcp_types::RtcpPacketParser;

    fn compound() -> Vec<u8> {
        let mut out = Vec::new();
        emit_receiver_report(&mut out, 1, &[ReportBlock { ssrc: 2, ..Default::default() }]);
        emit_sdes(&mut out, &[1], "abc");
        out
    }

    #[test]
    fn the_violations_of_a_2_are_refused() {
        assert!(Compound::parse(&compound()).is_ok_and(|c| c.is_full()));
        type Break = fn(&mut Vec<u8>);
        let violations: [(&str, Break); 8] = [
            ("empty datagram", |b| b.clear()),
            ("version 1 in the first packet", |b| b[0] = 0x41),
            ("version 1 in the second packet", |b| b[32] = 0x41),
            ("padding before the last packet", |b| b[0] |= 0x20),
            ("length of the last packet past the end", |b| b[35] += 1),
            ("lengths that leave a remainder", |b| b.push(0)),
            ("more report blocks than the body holds", |b| b[0] += 1),
            ("a packet type that is not RTCP", |b| b[33] = 96),
        ];
        for (what, break_it) in violations {
            let mut bytes = compound();
            break_it(&mut bytes);
            assert!(Compound::parse(&bytes).is_err(), "{what}");
        }
    }

    #[test]
    fn padding_on_the_last_packet_is_removed_and_must_be_whole_words() {
        let mut out = Vec::new();
        App { ssrc: 1, subtype: 3, name: *b"TEST", data: &[7, 7, 7, 7, 0, 0, 0, 4] }.emit(&mut out);
        out[0] |= 0x20;
        let app = Compound::parse(&out).unwrap().next();
        assert_eq!(app, Some(Rtcp::App(App { ssrc: 1, subtype: 3, name: *b"TEST", data: &[7; 4] })));
        let mut two = out.clone();
        emit_bye(&mut two, &[1], "");
        assert!(Compound::parse(&two).is_err(), "padding before the last packet");
        for bad in [0, 1, 3, 20, 255] {
            *out.last_mut().unwrap() = bad;
            assert!(Compound::parse(&out).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_sdes_chunk_ends_where_it_ends_even_if_the_next_ssrc_begins_with_zero() {
        let mut out = Vec::new();
        emit_sdes(&mut out, &[0x0102_0304, 0x0000_0005], "a");
        let Some(Rtcp::Sdes(sdes)) = Compound::parse(&out).unwrap().next() else { panic!() };
        assert_eq!(sdes.collect::<Vec<_>>(), [(0x0102_0304, Some(&b"a"[..])), (5, Some(&b"a"[..]))]);
    }

    #[test]
    fn the_round_trip_time_of_the_rfcs_figure_is_6_125_s() {
        // RFC 3550 figure 2: A = b710:8000, LSR = b705:2000, DLSR = 0005:4000 -> 0006:2000 = 6.125 s
        let block = ReportBlock { last_sr: 0xb705_2000, delay_since_last_sr: 0x0005_4000, ..Default::default() };
        assert_eq!(block.rtt(0xb710_8000), Some(Duration::from_millis(6_125)));
        assert_eq!(block.rtt(0xb70a_5fff), None, "one tick negative");
        assert_eq!(ReportBlock::default().rtt(5), None, "no SR was seen");
    }

    #[test]
    fn negative_cumulative_loss_survives_24_bits() {
        for lost in [-1, -0x0080_0000, 0x007f_ffff, 0] {
            let mut out = Vec::new();
            let block = ReportBlock { cumulative_lost: lost, fraction_lost: 255, ..Default::default() };
            emit_receiver_report(&mut out, 1, &[block]);
            let Some(Rtcp::ReceiverReport(1, mut blocks)) = Compound::parse(&out).unwrap().next() else { panic!() };
            assert_eq!(blocks.next(), Some(block));
        }
    }

    #[test]
    fn nacks_pack_17_numbers_into_a_word_across_the_wrap() {
        let lost = [65_530, 65_535, 0, 10, 11, 500];
        let mut out = Vec::new();
        emit_nack(&mut out, 1, 2, &lost);
        // 65530 with its 16 followers reaches 10; 11 and 500 begin words of their own
        assert_eq!(out.len(), 12 + 3 * 4);
        let Some(Rtcp::Nack(nack)) = Compound::parse(&out).unwrap().next() else { panic!() };
        assert_eq!(nack.lost().collect::<Vec<_>>(), lost);
        let theirs = rtcp_types::TransportFeedback::parse(&out).unwrap();
        let theirs = theirs.parse_fci::<rtcp_types::Nack<'_>>().unwrap();
        assert_eq!(theirs.entries().collect::<Vec<_>>(), lost);
    }

    #[test]
    fn bye_carries_its_reason() {
        let mut out = Vec::new();
        emit_bye(&mut out, &[9, 10], "breaker");
        let Some(Rtcp::Bye(bye)) = Compound::parse(&out).unwrap().next() else { panic!() };
        assert_eq!((bye.ssrcs().collect::<Vec<_>>(), bye.reason), (vec![9, 10], &b"breaker"[..]));
        let theirs = rtcp_types::Bye::parse(&out).unwrap();
        assert_eq!(theirs.reason(), Some(&b"breaker"[..]));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10_000))]

        #[test]
        fn reports_are_read_back_by_us_and_by_another_implementation(
            a: (u32, u8, i32, u32), b: (u32, u32, u32), info: (u64, u32, u32, u32),
        ) {
            let block = ReportBlock {
                ssrc: a.0, fraction_lost: a.1, cumulative_lost: a.2 >> 8, highest: a.3,
                jitter: b.0, last_sr: b.1, delay_since_last_sr: b.2,
            };
            let mut out = Vec::new();
            emit_receiver_report(&mut out, 77, &[block, block]);
            let len = out.len();
            let sr = SenderInfo { ntp: NtpTime(info.0), rtp_timestamp: info.1, packet_count: info.2, octet_count: info.3 };
            sr.emit(78, &mut out);
            let mut c = Compound::parse(&out).unwrap();
            let Some(Rtcp::ReceiverReport(77, blocks)) = c.next() else { panic!() };
            prop_assert_eq!(blocks.collect::<Vec<_>>(), vec![block, block]);
            prop_assert!(matches!(c.next(), Some(Rtcp::SenderReport(78, i, _)) if i == sr));
            let theirs = rtcp_types::ReceiverReport::parse(&out[..len]).unwrap();
            let their_block = theirs.report_blocks().next().unwrap();
            prop_assert_eq!(their_block.cumulative_lost(), block.cumulative_lost as u32 & 0xff_ffff);
            prop_assert_eq!(their_block.extended_sequence_number(), block.highest);
            prop_assert_eq!(their_block.interarrival_jitter(), block.jitter);
            let theirs = rtcp_types::SenderReport::parse(&out[len..]).unwrap();
            prop_assert_eq!(theirs.ntp_timestamp(), sr.ntp.0);
            prop_assert_eq!(theirs.packet_count(), sr.packet_count);
        }

        #[test]
        fn nacks_are_read_back(start: u16, steps in prop::collection::vec(1_u16..40, 0..60)) {
            let lost: Vec<u16> = steps.iter().scan(start, |s, d| { *s = s.wrapping_add(*d); Some(*s) }).collect();
            let mut out = Vec::new();
            emit_nack(&mut out, 1, 2, &lost);
            let Some(Rtcp::Nack(nack)) = Compound::parse(&out).unwrap().next() else { panic!() };
            prop_assert_eq!(nack.lost().collect::<Vec<_>>(), lost);
        }

        #[test]
        fn any_bytes_are_read_or_refused(mut bytes in prop::collection::vec(any::<u8>(), 0..120), kind in 198_u8..208) {
            if let [first, second, high, ..] = bytes.as_mut_slice() { *first |= 0x80; *first &= 0xbf; *second = kind; *high = 0; }
            if let Ok(c) = Compound::parse(&bytes) {
                for packet in c {
                    match packet {
                        Rtcp::Nack(n) => { let _ = n.lost().count(); }
                        Rtcp::Bye(b) => { let _ = b.ssrcs().count(); }
                        Rtcp::Sdes(s) => { let _ = s.count(); }
                        Rtcp::SenderReport(_, _, r) | Rtcp::ReceiverReport(_, r) => { let _ = r.count(); }
                        _ => {}
                    }
                }
            }
        }
    }
}
