//! A format of feedback that nobody asked for is refused, however well it proves what it claims.

mod pair;

use fairpace_control::feedback::Form;
use fairpace_rtp::challenge::Message;
use fairpace_rtp::feedback::ccfb::wire::{self as ccfb, Metric};
use fairpace_rtp::feedback::claim::{self, Claim};
use fairpace_rtp::feedback::rtp_tfrc::wire as tfrc;
use fairpace_rtp::feedback::sack_vector::wire as sack_vector;
use fairpace_rtp::packet::Packet;
use fairpace_rtp::rtcp::{Compound, Rtcp};
use fairpace_rtp::{ReceiverConfig, SenderConfig, StopReason, What};
use fairpace_units::{Dscp, Duration, Ecn, Rate};
use pair::{Pair, Wire, at, flow, ms, sender_config, tap};

/// The knowledge of a receiver that has all packets, and means to report them in another format.
struct Knowledge {
    receiver: u32,
    media: u32,
    next_report: u32,
    /// Sequence number, nonce, bits 16 to 23 of the number, and time stamped of the last packets.
    packets: Vec<(u16, u32, u8, u32)>,
}

type Format = (&'static str, fn(&Knowledge, &mut Vec<u8>));

const FORMATS: [Format; 4] = [
    ("congestion-control feedback", |k, out| {
        let nonce_sum = k.packets.iter().fold(0_u32, |sum, p| sum.wrapping_add(p.1));
        claim::emit(out, k.receiver, k.next_report, [Claim { nonce_sum, dscp: Dscp::DEFAULT, ..Claim::default() }]);
        let metrics = k.packets.iter().map(|_| Metric::received(Ecn::NotEct, Duration::ZERO));
        ccfb::emit(out, k.receiver, 0, [(k.media, k.packets[0].0, metrics)]);
    }),
    ("a sack vector", |k, out| {
        let &(sequence, nonce_sum, high, _) = k.packets.last().unwrap();
        let ack = sack_vector::Ack {
            receiver: k.receiver,
            number: k.next_report,
            ack: u32::from(high) << 16 | u32::from(sequence),
            vector: 0,
            rwnd: None,
            dscp: Dscp::DEFAULT,
            ecn: Ecn::NotEct,
            delay: 0,
            arrival: 0,
            nonce_sum,
        };
        ack.emit(out);
    }),
    ("a report of what was measured", |k, out| {
        let echoed = k.packets.last().unwrap().3;
        let (reporter, media) = (k.receiver, k.media);
        tfrc::Report { reporter, media, echoed, delay: 0, received_rate: 100_000, loss_event_rate: 0 }.emit(2, out);
    }),
    ("a transport-wide report", |k, out| {
        let nonce_sum = k.packets.iter().fold(0_u32, |sum, p| sum.wrapping_add(p.1));
        claim::emit(out, k.receiver, k.next_report, [Claim { nonce_sum, dscp: Dscp::DEFAULT, ..Claim::default() }]);
        // Base, count, reference and report number; a run of so many packets that arrived, all in the same quarter of a millisecond.
        let count = k.packets.len() as u16;
        let mut fci = [k.packets[0].0.to_be_bytes(), count.to_be_bytes(), [0; 2], [0; 2]].concat();
        fci.extend_from_slice(&(0x2000 | count).to_be_bytes());
        fci.resize((fci.len() + k.packets.len()).next_multiple_of(4), 0);
        out.extend_from_slice(&[0x8f, 205]);
        out.extend_from_slice(&(2 + fci.len() as u16 / 4).to_be_bytes());
        out.extend_from_slice(&k.receiver.to_be_bytes());
        out.extend_from_slice(&k.media.to_be_bytes());
        out.extend_from_slice(&fci);
    }),
];

/// A flow of 5 s over 100 ms, whose receiver then falls silent; and what somebody knows who has heard it.
fn heard(scheme: &str, settings: &[(&str, &str)], form: Form) -> (Pair, Knowledge) {
    let config = SenderConfig { form: Some(form), ..sender_config() };
    let mut p = Pair::new(config, ReceiverConfig::default(), flow(scheme, settings, Rate::mbps(10.0)), ms(50));
    let (forward, back) = (std::rc::Rc::default(), std::rc::Rc::default());
    p.forward.disturb = tap(std::rc::Rc::clone(&forward));
    p.back.disturb = tap(std::rc::Rc::clone(&back));
    p.run_until(at(5.0));
    p.fps = 0;
    p.receiver_alive = false;
    p.run_until(at(6.0));
    let echo = back.borrow().iter().find_map(|(_, w)| match Compound::parse(&w.bytes).unwrap().next() {
        Some(Rtcp::App(app)) => match Message::parse(&app) {
            Ok(Some(Message::Echo(echo))) => Some(echo),
            _ => None,
        },
        _ => None,
    });
    let echo = echo.expect("a challenge was answered");
    let told = back.borrow().iter().filter(|(_, w)| w.what == What::Feedback).count() as u32;
    let packets: Vec<_> = forward
        .borrow()
        .iter()
        .filter(|(_, w)| w.what == What::Media)
        .map(|(_, w)| {
            let packet = Packet::parse(&w.bytes).unwrap();
            let e = packet.extensions;
            let sent = e.stamp.map_or(0, |(_, stamp)| stamp.sent);
            (packet.sequence, e.nonce.unwrap_or(0), e.number_high.unwrap_or(0), sent)
        })
        .collect();
    let packets = packets[packets.len() - 8..].to_vec();
    let media = p.sender.ssrcs()[0];
    (p, Knowledge { receiver: echo.receiver, media, next_report: echo.next_report.wrapping_add(told), packets })
}

#[test]
fn a_format_that_nobody_asked_for_renews_no_consent_and_counts_for_nothing() {
    let forms = [
        ("rcs", &[][..], Form::Ccfb, "congestion-control feedback"),
        ("aimd", &[], Form::SackVector, "a sack vector"),
        ("tfrc", &[("measured_by", "receiver")], Form::RtpTfrc, "a report of what was measured"),
        ("rcs", &[], Form::Twcc, "a transport-wide report"),
        ("lda", &[], Form::Reports, "receiver reports"),
    ];
    for (scheme, settings, form, asked) in forms {
        for (format, emit) in FORMATS.into_iter().filter(|(format, _)| *format != asked) {
            let (mut p, mut known) = heard(scheme, settings, form);
            let (feedback, acked) = (p.sender.stats().feedback, p.sender.flow().counters().data.acked);
            while p.stopped.is_none() && p.now < at(60.0) {
                let mut bytes = Vec::new();
                emit(&known, &mut bytes);
                known.next_report = known.next_report.wrapping_add(1);
                let wire = Wire {
                    bytes,
                    dscp: Dscp::DEFAULT,
                    ecn: Ecn::NotEct,
                    what: What::Feedback,
                    fragments: false,
                    quick_start: None,
                };
                p.back.push(p.now, wire);
                p.run_until(p.now + ms(1_000));
            }
            let context = format!("{format} to {scheme}, which wants {form:?}");
            assert_eq!(p.sender.stats().feedback, feedback, "{context}: accepted");
            assert_eq!(p.sender.flow().counters().data.acked, acked, "{context}: credited");
            let (when, reason) = p.stopped.unwrap_or_else(|| panic!("{context}: consent was renewed until {}", p.now));
            assert_eq!(reason, StopReason::ConsentExpired, "{context}, at {when}");
            assert!((34.0..35.2).contains(&when.since(at(0.0)).as_secs_f64()), "{context}: at {when}");
        }
    }
}
