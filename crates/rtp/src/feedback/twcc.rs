//! Transport-wide feedback on the wire [draft-holmer-rmcat-transport-wide-cc-extensions-01]: PT 205, FMT 15.
//! [`fairpace_control::feedback::twcc`] holds the meaning of the bytes; `rtcp-types` reads and writes the chunks.
//!
//! Between two Fairpaces the same claims go before a report as before an RFC 8888 report ([`crate::feedback::claim`]): one, for the
//! packets of all streams together. Their nonces go by the transport-wide number. A receiver that proves nothing is not sent
//! every number: who acknowledges one that was left out lies.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use super::{Arrived, Attached, Envelope, Heard, Lent, Proof, Refusal};
use crate::feedback::claim::{self, Claim};
use crate::receiver::sources::Sources;
use crate::{Secret, rtcp};
use fairpace_control::feedback::BadFeedback;
use fairpace_control::feedback::twcc::{self, Report};
use fairpace_units::{Class, Dscp, Duration, Instant, Kind};
use rtcp_types::RtcpPacketWriter as _;
use rtcp_types::{FciParser as _, Twcc, TwccBuilder, TwccPacketStatus};
use std::collections::VecDeque;

/// Its number among the forms of transport feedback.
pub(crate) const FMT: u8 = 15;

/// Packets that a report may tell of, as in RFC 8888; the field has 16 bits.
const MOST_TOLD: usize = 16_384;

/// One number in so many is left out for a receiver that proves nothing.
const SKIP: u32 = 1_024;

/// In place of an SSRC: none is 0.
const ALL_STREAMS: u32 = 0;

/// Nonces remembered for claims.
const MEMORY: usize = 16_384;
/// A number so far above the first remembered one begins anew.
const MEMORY_NUMBERS: u64 = 2 * MEMORY as u64;

/// Reads a report; the nonces are another packet's to tell.
fn parse(fci: &[u8], report: &mut Report) -> Result<(), Refusal> {
    let twcc = Twcc::parse(fci).map_err(|_| Refusal::Malformed)?;
    (report.base, report.reference) = (twcc.base_sequence_number(), twcc.reference_time());
    report.count = twcc.feedback_packet_count();
    report.held = Duration::ZERO;
    report.deltas.clear();
    for packet in twcc.packets() {
        let Ok((_, status)) = packet else { return Err(Refusal::Malformed) };
        if report.deltas.len() >= MOST_TOLD {
            return Err(Refusal::Malformed);
        }
        report.deltas.push(match status {
            TwccPacketStatus::NotReceived => None,
            TwccPacketStatus::Received { delta } => Some(delta),
        });
    }
    Ok(())
}

/// Appends a report.
fn emit(report: &Report, reporter: u32, media: u32, statuses: &mut Vec<TwccPacketStatus>, out: &mut Vec<u8>) {
    let status = |delta: &Option<i16>| match *delta {
        None => TwccPacketStatus::NotReceived,
        Some(delta) => TwccPacketStatus::Received { delta },
    };
    statuses.clear();
    statuses.extend(report.deltas.iter().map(status));
    let fci = TwccBuilder::new(report.base, report.reference, report.count, statuses, None);
    rtcp::emit_packet(out, rtcp::packet_type::TRANSPORT_FEEDBACK, FMT.into(), |out| {
        out.extend_from_slice(&reporter.to_be_bytes());
        out.extend_from_slice(&media.to_be_bytes());
        let start = out.len();
        // The reference has 24 bits by construction: there is nothing else that can be wrong.
        out.resize(start.saturating_add(fci.calculate_size().unwrap_or(0)), 0);
        if let Some(space) = out.get_mut(start..).filter(|space| !space.is_empty()) {
            fci.write_into_unchecked(space);
        }
    });
}

/// The sender's end.
#[derive(Debug)]
pub(crate) struct Sender {
    packets: twcc::Sender,
    report: Report,
}

impl Sender {
    /// `prove`: the receiver must prove what it claims.
    pub(crate) fn new(first: u16, seed: u64, prove: bool) -> Self {
        let skip = (!prove).then_some((SKIP, seed));
        Sender { packets: twcc::Sender::new(first, skip), report: Report::default() }
    }

    /// The number of the packet that leaves now, and its nonce.
    pub(crate) fn stamp(&self, secret: &Secret) -> (u16, u32) {
        let number = self.packets.next_number();
        (number as u16, secret.nonce(ALL_STREAMS, number))
    }

    pub(crate) fn on_sent(&mut self, kind: Kind, seq: u64) {
        self.packets.on_sent(kind, seq);
    }

    pub(crate) fn on_report(
        &mut self,
        (reporter, media, fci): (u32, u32, &[u8]),
        attached: &mut Attached<'_>,
        lent: Lent<'_>,
    ) -> Result<Heard<'_>, Refusal> {
        let Lent { trust, streams, .. } = lent;
        trust.check_peer(reporter)?;
        if streams.by_ssrc(media).is_none() {
            return Err(Refusal::WrongSsrc);
        }
        parse(fci, &mut self.report)?;
        let claims = attached.claims.take();
        let proven = claims.is_some();
        let mut seen = [None; 4];
        if trust.check_nonces || claims.is_some() {
            let claims = claims.filter(|c| trust.is_peer(c.receiver)).ok_or(Refusal::Unproven)?;
            trust.check_number(claims.number)?;
            let claim = claims.claims().next().ok_or(Refusal::Unproven)?;
            let received = self.report.numbers().filter_map(|(number, delta)| delta.map(|_| number));
            let told = received.map(|number| self.packets.sent_as(number).ok());
            let first = self.packets.sent_as(self.report.base).ok();
            let claimed = trust.claimed(ALL_STREAMS, first, told);
            trust.judge(claimed, claim.nonce_sum, false, streams)?;
            trust.accept(claims.number);
            seen[0] = Some((Class::Normal, claim.dscp));
            self.report.held = claim.held;
        }
        let heard = self.packets.on_report(&self.report).map_err(|bad| {
            if bad == BadFeedback::Lie {
                // There is no doubt.
                trust.lies = u32::MAX;
            }
            Refusal::Unsent
        })?;
        trust.forgive();
        // A packet that no report tells of counts neither as lost nor as arrived.
        let told = heard.acks.iter().map(|ack| (ack.kind, ack.seq)).chain(heard.untold.iter().copied());
        told.filter(|(kind, _)| *kind == Kind::Data).for_each(|(_, seq)| streams.media.settle(seq));
        let (message, proof) = Proof::of_acks(proven, heard.acks, Some(heard.made_at));
        Ok(Heard { untold: heard.untold, message, proof, seen, reporter })
    }
}

/// The receiver's end.
#[derive(Debug)]
pub(crate) struct Receiver {
    packets: twcc::Receiver,
    /// The nonces of the packets from number `first` on.
    nonces: VecDeque<u32>,
    first: u64,
    /// The stream of the newest packet: a report names one of the streams that it tells of.
    newest: u32,
    statuses: Vec<TwccPacketStatus>,
}

impl Receiver {
    /// One report each `interval`; zero: with each packet.
    pub(crate) fn new(interval: Duration) -> Self {
        let packets = twcc::Receiver::new((!interval.is_zero()).then_some(interval));
        Receiver { packets, nonces: VecDeque::new(), first: 0, newest: 0, statuses: Vec::new() }
    }

    /// A packet of any stream has arrived: whether it can be told of, that is, has a number.
    pub(crate) fn on_packet(&mut self, now: Instant, arrived: &Arrived<'_>) -> bool {
        let extensions = &arrived.packet.extensions;
        let Some(number) = extensions.transport_number else { return false };
        self.newest = arrived.packet.ssrc;
        let Some(number) = self.packets.on_packet(now, number) else { return true };
        if self.nonces.is_empty() || number.saturating_sub(self.first) >= MEMORY_NUMBERS {
            self.nonces.clear();
            self.first = number;
        }
        let Some(place) = number.checked_sub(self.first) else { return true };
        while self.nonces.len() <= place as usize {
            self.nonces.push_back(0);
        }
        if let Some(nonce) = self.nonces.get_mut(place as usize) {
            *nonce = extensions.nonce.unwrap_or(0);
        }
        let excess = self.nonces.len().saturating_sub(MEMORY);
        self.nonces.drain(..excess);
        self.first = self.first.saturating_add(excess as u64);
        true
    }

    pub(crate) const fn next(&self) -> Instant {
        self.packets.next()
    }

    /// Writes the report that is due, if one is.
    pub(crate) fn poll(
        &mut self,
        now: Instant,
        sources: &Sources,
        envelope: &mut Envelope<'_>,
        out: &mut Vec<u8>,
    ) -> Option<()> {
        let (from, report) = self.packets.poll(now)?;
        let received = (from..).zip(&report.deltas).filter_map(|(number, delta)| delta.map(|_| number));
        let nonce = |number: u64| self.nonces.get(usize::try_from(number.checked_sub(self.first)?).ok()?).copied();
        let nonce_sum = received.fold(0_u32, |sum, number| sum.wrapping_add(nonce(number).unwrap_or(0)));
        let dscp = sources.media().and_then(|media| sources.source(media)).map_or(Dscp::DEFAULT, |s| s.dscp);
        out.clear();
        claim::emit(out, envelope.ssrc, envelope.take_number(), [Claim { nonce_sum, dscp, held: report.held }]);
        emit(report, envelope.ssrc, self.newest, &mut self.statuses, out);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtcp::{Compound, Rtcp};
    use proptest::prelude::*;

    fn read(bytes: &[u8]) -> Option<(u32, u32, Report)> {
        match Compound::parse(bytes).ok()?.next()? {
            Rtcp::TransportFeedback { fmt: FMT, sender, media, fci } => {
                let mut report = Report::default();
                parse(fci, &mut report).ok()?;
                Some((sender, media, report))
            }
            _ => None,
        }
    }

    fn written(report: &Report) -> Vec<u8> {
        let mut out = Vec::new();
        emit(report, 0x0a0b_0c0d, 0x1122_3344, &mut Vec::new(), &mut out);
        out
    }

    /// By hand from the draft, §3.1: numbers 65,534 to 1; 65,535 lost; arrivals 100 ms, 100.25 ms and 99.75 ms after
    /// reference 2 (128 ms), so 400 and 1 and -2 ticks: a large delta, a small one, and a negative one. One vector of two
    /// bits each: 10 00 01 10, and nothing for three more.
    #[test]
    fn the_bytes_are_those_worked_out_by_hand() {
        let deltas = vec![Some(400), None, Some(1), Some(-2)];
        let report = Report { base: 0xfffe, reference: 2, count: 7, deltas, held: Duration::ZERO };
        #[rustfmt::skip]
        let bytes = [
            0x8f, 205, 0, 6,           // V=2, FMT 15, PT 205, 7 words
            0x0a, 0x0b, 0x0c, 0x0d,
            0x11, 0x22, 0x33, 0x44,
            0xff, 0xfe, 0, 4,          // base 65534, four packets
            0, 0, 2, 7,                // reference 128 ms, the eighth report
            0xe1, 0x80,                // 11 10 00 01 10 00 00 00
            0x01, 0x90,                // 400 ticks
            0x01, 0xff, 0xfe, 0x00,    // 1 tick, -2 ticks, padding
        ];
        assert_eq!(written(&report), bytes);
        assert_eq!(read(&bytes), Some((0x0a0b_0c0d, 0x1122_3344, report)));
    }

    /// A run of 200 packets a tick apart, one chunk; and a vector of one bit each, 14 packets, from another tool.
    #[test]
    fn run_lengths_and_vectors_of_one_bit_are_read() {
        let report =
            Report { base: 5, reference: 0xff_ffff, count: 0, deltas: vec![Some(1); 200], held: Duration::ZERO };
        let bytes = written(&report);
        assert_eq!(&bytes[20..22], [0x20, 200]);
        assert_eq!(read(&bytes), Some((0x0a0b_0c0d, 0x1122_3344, report)));
        #[rustfmt::skip]
        let vector = [
            0x8f, 205, 0, 6, 0, 0, 0, 1, 0, 0, 0, 2,
            0, 9, 0, 14, 0, 0, 1, 3,
            0x80 | 0x20, 0x03,         // T = 1, S = 0: received, 11 not, received, received
            4, 5, 6, 0, 0, 0,
        ];
        let (_, _, report) = read(&vector).expect("a report");
        let mut deltas = vec![None; 14];
        (deltas[0], deltas[12], deltas[13]) = (Some(4), Some(5), Some(6));
        assert_eq!(report, Report { base: 9, reference: 1, count: 3, deltas, held: Duration::ZERO });
    }

    #[test]
    fn a_report_that_is_cut_or_names_the_reserved_symbol_is_refused() {
        let bytes =
            written(&Report { base: 5, reference: 1, count: 0, deltas: vec![Some(1); 20], held: Duration::ZERO });
        let mut short = bytes[..bytes.len() - 12].to_vec();
        short[3] -= 3;
        assert_eq!(read(&short), None, "deltas are missing");
        let mut reserved = bytes.clone();
        reserved[20] |= 0x60;
        assert_eq!(read(&reserved), None);
        assert_eq!(read(&bytes[..16]), None);
    }

    #[test]
    fn more_than_16384_packets_are_refused() {
        let report = |n| Report { base: 5, reference: 1, count: 0, deltas: vec![None; n], held: Duration::ZERO };
        assert!(read(&written(&report(16_384))).is_some());
        assert_eq!(read(&written(&report(16_385))), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn what_is_written_is_read_back(
            base: u16, reference in 0_u32..1 << 24, count: u8,
            deltas in prop::collection::vec(prop_oneof![Just(None), (-300_i16..300).prop_map(Some), any::<i16>().prop_map(Some)], 1..300),
        ) {
            let report = Report { base, reference, count, deltas, held: Duration::ZERO };
            prop_assert_eq!(read(&written(&report)), Some((0x0a0b_0c0d, 0x1122_3344, report)));
        }

        #[test]
        fn any_fci_is_read_or_refused(fci in prop::collection::vec(any::<u8>(), 0..64)) {
            let mut report = Report::default();
            let _ = parse(&fci, &mut report);
            prop_assert!(report.deltas.len() <= MOST_TOLD);
        }
    }
}
