//! The TFRC profile: the receiver measures, and its reports steer the sender. Both ends are ours, or one of them
//! stands for another tool that knows no challenges.

mod pair;

use fairpace_rtp::feedback::rtp_tfrc::wire::{self as tfrc, Profile};
use fairpace_rtp::packet::Packet;
use fairpace_rtp::rtcp::{Compound, Rtcp};
use fairpace_rtp::{ReceiverConfig, SenderConfig, SenderEvent, StopReason, What};
use fairpace_units::{Bytes, Ecn, Rate};
use pair::*;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

const MEASURED: &[(&str, &str)] = &[("measured_by", "receiver")];

fn measured(receiver: ReceiverConfig) -> Pair {
    Pair::new(sender_config(), receiver, flow("tfrc", MEASURED, Rate::mbps(10.0)), ms(50))
}

/// As another tool: no challenge reaches the receiver, so that none is echoed.
fn unchallenged(receiver: ReceiverConfig) -> Pair {
    let mut p = measured(receiver);
    p.forward.disturb =
        Box::new(|_, w| if w.what == What::Challenge { vec![] } else { vec![(fairpace_units::Duration::ZERO, w)] });
    p
}

/// The path's round trip; stamps count whole microseconds.
fn is_round_trip(rtt: Option<fairpace_units::Duration>) -> bool {
    rtt.is_some_and(|r| r <= ms(100) && r > ms(100) - fairpace_units::Duration::from_micros(1))
}

/// The reports among what came back.
fn reports(tapped: &VecDeque<(fairpace_units::Instant, Wire)>) -> Vec<(u8, tfrc::Report)> {
    let all = tapped.iter().filter(|(_, w)| w.what == What::Feedback);
    all.map(|(_, w)| {
        let packets: Vec<_> = Compound::parse(&w.bytes).unwrap().collect();
        let [Rtcp::ReceiverReport(..), Rtcp::Sdes(_), Rtcp::TransportFeedback { fmt, sender, media, fci }] =
            packets[..]
        else {
            panic!("{packets:?}")
        };
        (fmt, tfrc::Report::parse(sender, media, fci).unwrap())
    })
    .collect()
}

#[test]
fn reports_come_once_per_round_trip_in_a_full_compound_and_steer_the_rate() {
    let mut p = measured(ReceiverConfig::default());
    let tapped = Rc::new(RefCell::new(VecDeque::new()));
    p.back.disturb = tap(tapped.clone());
    p.forward.disturb = lossy(3, 0.01);
    p.run_until(at(20.0));
    assert_eq!((p.stopped, p.sender.stats().rejected), (None, Default::default()));
    let reports = reports(&tapped.borrow());
    // One per RTT of 100 ms, and a few more: one at once for each new loss event, at 1 % of some 100 packets/s.
    assert!((190..=260).contains(&reports.len()), "{}", reports.len());
    assert!(reports.iter().all(|(fmt, r)| *fmt == 2 && r.media == p.sender.ssrcs()[0]));
    let last = reports.last().unwrap().1.measured(p.now);
    assert!((0.003..0.03).contains(&last.loss_event_rate), "{}", last.loss_event_rate);
    assert_eq!(p.sender.stats().feedback.packets, reports.len() as u64);
    // The equation at p = 0.01, R = 0.1 s, s = 1,000 B: 1.12·sqrt(p^-1)... = 89 kB/s = 0.9 Mbit/s; p wanders.
    let rate = p.sender.flow().status().rate.as_bps();
    assert!((0.4e6..2.5e6).contains(&rate), "{rate}");
    assert!(is_round_trip(p.sender.flow().srtt()), "{:?}", p.sender.flow().srtt());
    let c = p.sender.flow().counters();
    assert!(c.data.sent > 1_000, "{c:?}");
}

#[test]
//= 5348-3.2.1-1
fn a_stamp_takes_the_place_of_the_nonce_and_says_the_rtt_once_it_is_known() {
    let profile = Profile { extension: 9, fmt: 20 };
    let sender = SenderConfig { rate_profile: profile, retransmission: true, ..sender_config() };
    let mut p = Pair::new(sender, ReceiverConfig::default(), flow("tfrc", MEASURED, Rate::mbps(1.0)), ms(50));
    let (sent, back) = (Rc::new(RefCell::new(VecDeque::new())), Rc::new(RefCell::new(VecDeque::new())));
    p.forward.disturb = tap(sent.clone());
    p.back.disturb = tap(back.clone());
    p.run_until(at(5.0));
    let (mut before, mut number) = (None, None);
    for (left, w) in sent.borrow().iter().filter(|(_, w)| w.what == What::Media) {
        assert_eq!(w.ecn, Ecn::NotEct);
        let packet = Packet::parse_with(&w.bytes, 9).unwrap();
        assert!(
            number.replace(packet.sequence).is_none_or(|n: u16| n.wrapping_add(1) == packet.sequence),
            "numbers run on"
        );
        let read = packet.extensions;
        assert!(read.nonce.is_none() && read.send_time.is_some());
        let (id, stamp) = read.stamp.unwrap();
        // The challenge's echo was the first measurement.
        assert!(id == 9 && stamp.rtt >= 99_999 && stamp.rtt <= 100_000, "{id} {stamp:?}");
        let micros = (left.as_nanos() / 1_000) as u32;
        let offset = stamp.sent.wrapping_sub(micros);
        assert_eq!(*before.get_or_insert(offset), offset, "one clock");
        assert!(w.bytes.len() as u64 + 28 <= PACKET);
    }
    assert!(before.is_some());
    assert!(reports(&back.borrow()).iter().all(|(fmt, _)| *fmt == 20), "the challenge announced it");
    assert_eq!(p.sender.stats().sent.of(What::Retransmission).packets, 0);
}

#[test]
fn the_clock_of_the_stamps_may_wrap() {
    // 71.6 min of one packet a second hold one wrap wherever the clock begins.
    let mut p = measured(ReceiverConfig::default());
    p.fps = 1;
    p.frame_bytes = Some(900);
    let end = 4_400.0;
    p.run_until(at(end));
    assert_eq!((p.stopped, p.sender.stats().rejected), (None, Default::default()));
    assert!(p.received.len() as f64 > end - 3.0, "{}", p.received.len());
    assert!(p.sender.stats().feedback.packets as f64 > end - 3.0, "each packet is reported");
    assert!(is_round_trip(p.sender.flow().srtt()), "{:?}", p.sender.flow().srtt());
}

#[test]
fn another_tools_report_stands_in_for_the_echo() {
    let mut p = unchallenged(ReceiverConfig { rate_profile: Some(Profile::default()), ..ReceiverConfig::default() });
    p.run_until(at(10.0));
    assert_eq!(p.stopped, None);
    let (when, event) = p.sender_events[0];
    // The first empty packet leaves at 1 s, when the first challenge has not been answered; a source is believed
    // at its second packet, a second later, and its report is back after one round trip.
    let SenderEvent::PeerValidated { srtt, dscp_seen: None } = event else { panic!("{event:?}") };
    assert!(when == at(2.1) && is_round_trip(Some(srtt)), "{when} {srtt:?}");
    let early: Vec<_> = p.sent.iter().filter(|l| l.what == What::Media && l.at < at(2.1)).collect();
    assert_eq!(early.iter().map(|l| (l.at, l.len)).collect::<Vec<_>>(), [(at(1.0), 28), (at(2.0), 28)]);
    assert!(p.received.len() > 500, "{}", p.received.len());
    assert_eq!(p.sender.stats().rejected, Default::default());
}

#[test]
fn the_first_report_echoes_a_stamp_to_the_microsecond_or_stands_in_for_nothing() {
    let mut p = unchallenged(ReceiverConfig { rate_profile: Some(Profile::default()), ..ReceiverConfig::default() });
    p.back.disturb = Box::new(|_, mut w| {
        if w.what == What::Feedback {
            // The last byte of the time echoed: the report is the last 28 bytes.
            let n = w.bytes.len();
            w.bytes[n - 13] ^= 1;
        }
        vec![(fairpace_units::Duration::ZERO, w)]
    });
    p.run_until(at(60.0));
    assert_eq!(p.stopped, Some((at(7.0), StopReason::Unreachable)));
    assert!(p.sender.stats().rejected.measured >= 4, "{:?}", p.sender.stats().rejected);
}

#[test]
fn a_tool_that_does_not_answer_at_all_gets_six_empty_packets() {
    let mut p = unchallenged(ReceiverConfig { rate_profile: Some(Profile::default()), ..ReceiverConfig::default() });
    p.receiver_alive = false;
    p.run_until(at(60.0));
    assert_eq!(p.stopped, Some((at(7.0), StopReason::Unreachable)));
    let media: Vec<_> = p.sent.iter().filter(|l| l.what == What::Media).map(|l| (l.at, l.len)).collect();
    assert_eq!(media, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0].map(|t| (at(t), 28)));
    assert_eq!(p.count(What::Challenge), 6);
}

#[test]
fn a_sender_asked_for_by_somebody_else_sends_nothing_before_an_echo() {
    let mut p = unchallenged(ReceiverConfig { rate_profile: Some(Profile::default()), ..ReceiverConfig::default() });
    let config = SenderConfig { admission: fairpace_rtp::Admission::Responder, ..sender_config() };
    let flow = flow("tfrc", MEASURED, Rate::mbps(10.0));
    p.sender = fairpace_rtp::SenderSession::new(config, flow, fairpace_rtp::Secret::from_seed(1));
    p.run_until(at(60.0));
    assert_eq!((p.count(What::Media), p.stopped.map(|s| s.1)), (0, Some(StopReason::Unreachable)));
}

#[test]
fn without_the_agreement_plain_packets_are_told_one_by_one() {
    // The receiver has not been told of the profile: stamps mean nothing to it, and CCFB goes back.
    let mut p = unchallenged(ReceiverConfig::default());
    p.run_until(at(6.0));
    let stats = p.receiver.stats();
    assert!(stats.sent.of(What::Feedback).packets > 0);
    assert!(!p.sender.is_validated());
}

#[test]
fn a_rate_too_high_for_the_path_comes_down_to_it() {
    // A link of 1 Mbit/s in front, 50 packets deep: everything that does not fit is lost.
    let mut p = measured(ReceiverConfig::default());
    let mut free = at(0.0);
    p.forward.disturb = Box::new(move |now, w| {
        let takes = Bytes::new(w.bytes.len() as u64 + 28) / Rate::mbps(1.0);
        let wait = free.since(now);
        if wait > takes * 50 {
            return vec![];
        }
        free = free.max(now) + takes;
        vec![(free.since(now), w)]
    });
    p.run_until(at(30.0));
    assert_eq!((p.stopped, p.sender.stats().rejected), (None, Default::default()));
    let bytes: usize = p.sent.iter().filter(|l| l.at > at(10.0)).map(|l| l.len + 28).sum();
    let rate = bytes as f64 * 8.0 / 20.0;
    assert!((0.7e6..1.1e6).contains(&rate), "{rate}");
}
