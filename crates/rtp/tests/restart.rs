//! A receiver that is started again while the sender sends, and who else would like to be taken for one.

mod pair;

use fairpace_control::feedback::Form;
use fairpace_rtp::challenge::{Echo, Message};
use fairpace_rtp::rtcp::{self, Compound, Rtcp};
use fairpace_rtp::{ReceiverConfig, ReceiverEvent, ReceiverSession, Secret, SenderConfig, SenderEvent, What};
use fairpace_units::{Dscp, Duration, Ecn, Rate};
use pair::*;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

fn another(seed: u64) -> ReceiverSession {
    ReceiverSession::new(ReceiverConfig::default(), Secret::from_seed(seed))
}

fn changes(p: &Pair) -> Vec<fairpace_units::Instant> {
    p.sender_events.iter().filter(|e| e.1 == SenderEvent::ReceiverChanged).map(|e| e.0).collect()
}

/// Gone at 10 s, there again a second later. Its first feedback, or 500 ms after the last question, brings the question:
/// less than a second, a round trip of 100 ms, and where reports are all there is their interval of 1 s.
#[test]
fn a_receiver_that_is_started_again_is_the_peer_within_two_seconds_whatever_the_feedback() {
    let twcc = SenderConfig { form: Some(Form::Twcc), ..sender_config() };
    let cases = [
        ("rcs", &[][..], sender_config()),
        ("rcs", &[], twcc),
        ("aimd", &[], sender_config()),
        ("lda", &[], sender_config()),
        ("tfrc", &[("measured_by", "receiver")], sender_config()),
    ];
    for (scheme, settings, config) in cases {
        let flow = flow(scheme, settings, Rate::mbps(2.0));
        let mut p = Pair::new(config, ReceiverConfig::default(), flow, ms(50));
        p.run_until(at(10.0));
        p.receiver_alive = false;
        p.run_until(at(11.0));
        p.receiver_alive = true;
        p.receiver = another(3);
        let (srtt, lost) = (p.sender.flow().srtt(), p.sender.flow().counters().data.lost);
        p.run_until(at(13.0));
        let found = changes(&p);
        assert!(found.len() == 1 && found[0] < at(12.7), "{scheme}: {found:?}");
        // Asked for then, or within the 200 ms before.
        let asked = |e: &(fairpace_units::Instant, SenderEvent)| {
            e.1 == SenderEvent::KeyFrameRequest && e.0 <= found[0] && e.0 + ms(200) >= found[0]
        };
        assert!(p.sender_events.iter().any(asked), "{scheme}: {:?}", p.sender_events);
        // The path is the same, and what is known of it is kept.
        let now = p.sender.flow().srtt();
        assert!(now.is_some() && srtt.is_some() && p.sender.flow().counters().data.lost >= lost, "{scheme}: {now:?}");
        let (before, rejected) = (p.sender.stats().feedback.packets, p.sender.stats().rejected);
        p.run_until(at(30.0));
        let stats = p.sender.stats();
        assert!(stats.feedback.packets > before + 10, "{scheme}: {stats:?}");
        assert_eq!(stats.rejected.wrong_ssrc, rejected.wrong_ssrc, "{scheme}: believed from then on");
        assert_eq!((p.stopped, stats.rejected.nonce, stats.rejected.unsent), (None, 0, 0), "{scheme}: {stats:?}");
        let media = p.receiver_events.iter().filter(|e| matches!(e.1, ReceiverEvent::NewSource { .. })).count();
        assert_eq!(media, 2, "{scheme}: {:?}", p.receiver_events);
        assert!(p.received.iter().any(|g| g.arrived > at(29.0)), "{scheme}");
    }
}

#[test]
fn a_receiver_may_be_started_again_many_times() {
    let mut p = Pair::usual("rap", &[]);
    for n in 0..10_u32 {
        p.run_until(at(f64::from(n + 1) * 4.0));
        p.receiver = another(u64::from(n) + 3);
    }
    p.run_until(at(44.0));
    assert_eq!((changes(&p).len(), p.stopped), (10, None));
}

/// Off the path nobody knows a token: forged echoes change nothing, and forged feedback brings no more than two questions a
/// second. An echo of the first receiver that the second one's has overtaken changes nothing either.
#[test]
fn nobody_takes_a_receivers_place_without_the_newest_token() {
    let seen = Rc::new(RefCell::new(VecDeque::new()));
    let mut p = Pair::usual("rcs", &[]);
    p.forward.disturb = tap(Rc::clone(&seen));
    p.run_until(at(5.0));
    let (asked, [media, ..]) = (p.count(What::Challenge), p.sender.ssrcs());
    for n in 0..1_000_u64 {
        let mut bytes = Vec::new();
        let echo = Echo {
            receiver: 77,
            token: n.wrapping_mul(0x9e37_79b9_7f4a_7c15),
            dscp: Dscp::DEFAULT,
            ecn: Ecn::NotEct,
            delay: Duration::ZERO,
            rwnd: None,
            feedback_interval: Duration::ZERO,
            next_report: 0,
            taken: false,
            busy: false,
            ends: false,
            show: false,
            fec: false,
        };
        echo.emit(&mut bytes);
        p.sender.handle_datagram(p.now, &bytes, Dscp::DEFAULT, Ecn::NotEct);
        bytes.clear();
        rtcp::emit_receiver_report(&mut bytes, 77, &[rtcp::ReportBlock { ssrc: media, ..Default::default() }]);
        p.sender.handle_datagram(p.now, &bytes, Dscp::DEFAULT, Ecn::NotEct);
        p.run_until(at(5.0 + 0.01 * n as f64));
    }
    let asked = p.count(What::Challenge) - asked;
    assert!((2..=21).contains(&asked), "{asked} questions in 10 s");
    assert_eq!((changes(&p).len(), p.sender.stats().rejected.token), (0, 1_000));

    // The first receiver's answers are held back by somebody on its way, and come after the second one's.
    let held = Rc::new(RefCell::new(VecDeque::new()));
    let into = Rc::clone(&held);
    p.back.disturb = Box::new(move |now, w: Wire| {
        into.borrow_mut().push_back((now, w));
        vec![]
    });
    p.run_until(at(17.0));
    p.receiver = another(3);
    p.back.disturb = undisturbed();
    p.run_until(at(20.0));
    assert_eq!(changes(&p).len(), 1);
    let is_echo = |w: &Wire| {
        Compound::parse(&w.bytes).is_ok_and(
            |mut c| matches!(c.next(), Some(Rtcp::App(a)) if matches!(Message::parse(&a), Ok(Some(Message::Echo(_))))),
        )
    };
    let late: Vec<_> = held.borrow().iter().filter(|(_, w)| is_echo(w)).map(|(_, w)| w.bytes.clone()).collect();
    assert!(!late.is_empty());
    for bytes in late {
        p.sender.handle_datagram(p.now, &bytes, Dscp::DEFAULT, Ecn::NotEct);
    }
    p.run_until(at(25.0));
    assert_eq!((changes(&p).len(), p.stopped), (1, None));
}
