//! Transport-wide feedback between two sessions: what arrives of it, what proves it, and what is not believed.

mod pair;

use fairpace_control::Controller;
use fairpace_control::feedback::Form;
use fairpace_rtp::header_ext::Extensions;
use fairpace_rtp::packet::Packet;
use fairpace_rtp::rtcp::{Compound, Rtcp};
use fairpace_rtp::{Out, ReceiverConfig, ReceiverEvent, ReceiverSession, Secret, SenderConfig, StopReason, What};
use fairpace_units::{Dscp, Duration, Ecn, Rate};
use pair::{Pair, Wire, at, flow, lossy, ms, sender_config, tap};

fn config() -> SenderConfig {
    SenderConfig { form: Some(Form::Twcc), ..sender_config() }
}

fn over(config: SenderConfig, scheme: &str, settings: &[(&str, &str)]) -> Pair {
    Pair::new(config, ReceiverConfig::default(), flow(scheme, settings, Rate::mbps(2.0)), ms(50))
}

fn is_twcc(w: &Wire) -> bool {
    let found = |p| matches!(p, Rtcp::TransportFeedback { fmt: 15, .. });
    w.what == What::Feedback && Compound::parse(&w.bytes).unwrap().any(found)
}

#[test]
fn every_controller_that_measures_at_the_sender_runs_on_it_as_on_rfc_8888() {
    for info in fairpace_control::schemes() {
        let rate = |form| {
            let mut p = over(SenderConfig { form, ..sender_config() }, info.name, &[]);
            p.forward.disturb = lossy(3, 0.01);
            p.run_until(at(20.0));
            assert_eq!(p.stopped, None, "{}", info.name);
            assert_eq!(p.sender.stats().rejected, Default::default(), "{}", info.name);
            assert!(p.sender.stats().feedback.packets > 10, "{}", info.name);
            p.sent.iter().map(|l| l.len).sum::<usize>() as f64
        };
        let needs: Box<dyn Controller> =
            fairpace_control::build(info.name, &Default::default(), &Default::default()).unwrap();
        if !Form::Twcc.serves(needs.feedback_form()) {
            continue;
        }
        let ratio = rate(Some(Form::Twcc)) / rate(None);
        assert!((0.9..1.1).contains(&ratio), "{}: {ratio}", info.name);
    }
}

#[test]
fn a_form_that_does_not_serve_the_controller_is_not_asked_for() {
    let mut p = over(config(), "lda", &[]);
    let taken = std::rc::Rc::default();
    p.back.disturb = tap(std::rc::Rc::clone(&taken));
    p.run_until(at(3.0));
    assert!(p.sender.flow().counters().data.sent > 20);
    assert!(!taken.borrow().iter().any(|(_, w)| is_twcc(w)));
}

#[test]
fn all_packets_are_numbered_together_and_leave_not_ect() {
    let mut p = over(config(), "rcs", &[]);
    let (forward, back) = (std::rc::Rc::default(), std::rc::Rc::default());
    p.forward.disturb = tap(std::rc::Rc::clone(&forward));
    p.back.disturb = tap(std::rc::Rc::clone(&back));
    p.run_until(at(5.0));
    let numbers: Vec<u16> = forward
        .borrow()
        .iter()
        .filter(|(_, w)| matches!(w.what, What::Media | What::Dummy))
        .map(|(_, w)| Packet::parse(&w.bytes).unwrap().extensions.transport_number.expect("a number"))
        .collect();
    assert!(p.count(What::Dummy) > 10 && numbers.len() > 100);
    assert!(numbers.windows(2).all(|w| w[1] == w[0].wrapping_add(1)), "none is left out where all must be proven");
    assert!(back.borrow().iter().filter(|(_, w)| is_twcc(w)).count() > 50);
    // A controller that counts marks sends ECN-capable packets, but for this.
    let mut p = over(config(), "tfrc", &[("ecn", "on")]);
    let forward = std::rc::Rc::default();
    p.forward.disturb = tap(std::rc::Rc::clone(&forward));
    p.run_until(at(3.0));
    assert!(forward.borrow().iter().all(|(_, w): &(_, Wire)| w.ecn == Ecn::NotEct) && p.received.len() > 10);
}

#[test]
fn packets_of_a_lost_report_are_neither_lost_nor_acknowledged() {
    let mut p = over(config(), "fixed", &[("rate", "100 pkt/s")]);
    let mut n = 0;
    // Every fourth report is lost; no packet is.
    p.back.disturb = Box::new(move |_, w| {
        n += u32::from(w.what == What::Feedback);
        if w.what == What::Feedback && n % 4 == 0 { vec![] } else { vec![(Duration::ZERO, w)] }
    });
    p.run_until(at(20.0));
    let c = p.sender.flow().counters();
    let acked = c.data.acked as f64 / c.data.sent as f64;
    assert_eq!((c.data.lost, c.timeouts, p.stopped), (0, 0, None), "{c:?}");
    assert!((0.70..0.80).contains(&acked), "{acked}");
}

/// Makes a report, which stands alone in its datagram's rest, say that each packet told of has arrived.
fn call_all_received(report: &mut Vec<u8>) {
    let count = u16::from_be_bytes([report[14], report[15]]);
    report.truncate(20);
    report.extend((0x2000 | count).to_be_bytes());
    report.extend(vec![0; usize::from(count)]);
    while !report.len().is_multiple_of(4) {
        report.push(0);
    }
    let words = report.len() / 4 - 1;
    report[2..4].copy_from_slice(&(words as u16).to_be_bytes());
}

#[test]
fn a_report_that_claims_what_has_not_arrived_is_refused_and_the_third_ends_the_flow() {
    let mut p = over(config(), "fixed", &[("rate", "200 pkt/s")]);
    // Every second packet is lost, so that no report could say in truth that all of its packets have arrived.
    let mut n = 0;
    p.forward.disturb = Box::new(move |_, w| {
        n += u32::from(w.what == What::Media);
        if w.what == What::Media && n % 2 == 0 { vec![] } else { vec![(Duration::ZERO, w)] }
    });
    p.back.disturb = Box::new(|_, mut w| {
        if is_twcc(&w) {
            // Behind the claims.
            let mut report = w.bytes.split_off(24);
            call_all_received(&mut report);
            w.bytes.extend(report);
        }
        vec![(Duration::ZERO, w)]
    });
    p.run_until(at(5.0));
    let rejected = p.sender.stats().rejected;
    let (when, reason) = p.stopped.expect("found out");
    assert_eq!(reason, StopReason::PeerLied);
    // The first media at 0.1 s, and 100 ms for a report of it; three reports of 50 ms.
    assert!(when < at(0.45), "{when}");
    assert_eq!((rejected.nonce, rejected.malformed, rejected.unsent), (3, 0, 0), "{rejected:?}");
    // The first report told of the first packet alone, which had come.
    assert_eq!(p.sender.flow().counters().data.acked, 1, "not one false acknowledgement was credited");
}

/// T1b. A receiver that proves nothing, and says that all has arrived.
#[test]
fn a_report_that_comes_again_is_worth_nothing() {
    let run = |again: bool| {
        let mut p = over(config(), "rcs", &[]);
        p.back.disturb = Box::new(move |_, w| {
            let mut all = vec![(Duration::ZERO, w.clone())];
            all.extend(again.then_some((ms(300), w)));
            all
        });
        p.run_until(at(5.0));
        (p.sender.stats().feedback, p.sender.stats().rejected.replayed, p.sent)
    };
    let (clean, again) = (run(false), run(true));
    assert_eq!((again.0, &again.2), (clean.0, &clean.2));
    assert!(clean.1 == 0 && again.1 > 100, "{} and {}", clean.1, again.1);
}

#[test]
fn a_receiver_that_proves_nothing_and_tells_of_a_number_left_out_ends_the_flow() {
    let run = |lies: bool| {
        let mut p = over(SenderConfig { check_nonces: false, ..config() }, "fixed", &[("rate", "200 pkt/s")]);
        p.back.disturb = Box::new(move |_, mut w| {
            if is_twcc(&w) {
                // Without claims; and each packet told of has arrived.
                w.bytes.drain(..24);
                if lies {
                    call_all_received(&mut w.bytes);
                }
            }
            vec![(Duration::ZERO, w)]
        });
        p.run_until(at(60.0));
        p
    };
    let honest = run(false);
    assert_eq!((honest.stopped, honest.sender.flow().counters().data.lost), (None, 0));
    assert!(honest.sender.flow().counters().data.acked > 10_000);
    let liar = run(true);
    let (when, reason) = liar.stopped.expect("found out");
    assert_eq!(reason, StopReason::PeerLied);
    // Within 8,000 packets with probability 0.9996: 40 s.
    assert!(when < at(45.0), "{when}");
}

/// T9. Where nothing is proven, the SSRCs alone tell the receiver's reports from others.
#[test]
fn a_report_from_another_receiver_or_about_another_stream_is_not_believed() {
    let mut p = over(SenderConfig { check_nonces: false, ..config() }, "fixed", &[("rate", "200 pkt/s")]);
    let back = std::rc::Rc::default();
    p.back.disturb = tap(std::rc::Rc::clone(&back));
    p.run_until(at(2.0));
    // The newest report is still on its way; without its claims.
    let report = back.borrow().iter().rev().find(|(_, w)| is_twcc(w)).map(|(_, w)| w.bytes[24..].to_vec()).unwrap();
    let before = (*p.sender.flow().counters(), p.sender.stats().feedback);
    // The last byte of each SSRC.
    for (place, whose) in [(7, "receiver"), (11, "stream")] {
        let mut forged = report.clone();
        forged[place] ^= 1;
        p.sender.handle_datagram(p.now, &forged, Dscp::DEFAULT, Ecn::NotEct);
        assert_eq!((*p.sender.flow().counters(), p.sender.stats().feedback), before, "of another {whose}");
    }
    assert_eq!(p.sender.stats().rejected.wrong_ssrc, 2);
    p.sender.handle_datagram(p.now, &report, Dscp::DEFAULT, Ecn::NotEct);
    assert!(p.sender.flow().counters().data.acked > before.0.data.acked, "the true one");
}

/// Two seconds of another tool's media, 50 packets/s without a challenge: the packets of all feedback, and the events.
fn of_another_tool(form: Option<Form>, numbered: bool) -> (Vec<&'static str>, Vec<ReceiverEvent>) {
    let mut receiver = ReceiverSession::new(ReceiverConfig { form, ..ReceiverConfig::default() }, Secret::from_seed(1));
    let (mut kinds, mut events) = (Vec::new(), Vec::new());
    for n in 0..100_u16 {
        let now = at(f64::from(n) * 0.02);
        let transport_number = numbered.then_some(n.wrapping_add(65_500));
        let (sequence, timestamp) = (n, u32::from(n) * 1_800);
        let extensions = Extensions { transport_number, ..Extensions::default() };
        let (marker, payload_type, ssrc, payload) = (true, 96, 7, &[0; 500][..]);
        let mut bytes = Vec::new();
        Packet { marker, payload_type, sequence, timestamp, ssrc, extensions, payload }.emit(&mut bytes);
        receiver.handle_datagram(now, &bytes, Dscp::DEFAULT, Ecn::NotEct, pair::SENDER.parse().unwrap());
        while let Out::Datagram(d) = receiver.poll(now) {
            if d.what == What::Feedback {
                kinds.extend(Compound::parse(d.bytes).unwrap().filter_map(|p| match p {
                    Rtcp::TransportFeedback { fmt: 15, .. } => Some("twcc"),
                    Rtcp::CongestionFeedback(..) => Some("ccfb"),
                    _ => None,
                }));
            }
        }
        events.extend(std::iter::from_fn(|| receiver.next_event()));
    }
    (kinds, events)
}

#[test]
fn another_tool_is_told_as_was_agreed_and_one_that_does_not_number_packet_by_packet_with_a_word_of_it() {
    let lacking = ReceiverEvent::NotTold { form: Form::Twcc };
    let (kinds, events) = of_another_tool(Some(Form::Twcc), true);
    assert!(kinds.len() > 50 && kinds.iter().all(|k| *k == "twcc"), "{kinds:?}");
    assert!(!events.contains(&lacking), "{events:?}");
    let (kinds, events) = of_another_tool(Some(Form::Twcc), false);
    assert!(kinds.len() > 50 && kinds.iter().all(|k| *k == "ccfb"), "{kinds:?}");
    assert_eq!(events.iter().filter(|e| **e == lacking).count(), 1, "{events:?}");
    let (kinds, events) = of_another_tool(None, true);
    assert!(kinds.len() > 50 && kinds.iter().all(|k| *k == "ccfb"), "{kinds:?}");
    assert!(!events.contains(&lacking), "{events:?}");
}
