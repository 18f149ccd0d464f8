//! A machine that sleeps with its lid closed, or a program that is stopped: the driver comes back late, by a clock that went on meanwhile.

mod pair;

use fairpace_control::schemes;
use fairpace_rtp::{ReceiverEvent, SenderEvent, StopReason, What};
use fairpace_units::{Duration, Instant, Rate};
use pair::*;

const HOUR: Duration = Duration::from_secs(3_600);

/// All schemes but the one that needs a TCP connection.
fn all() -> impl Iterator<Item = &'static str> {
    schemes().iter().map(|info| info.name).filter(|name| *name != "tpba")
}

/// A pair that has run for 20 s at 2 Mbit/s at most.
fn begun(scheme: &str) -> Pair {
    let mut p = Pair::new(sender_config(), Default::default(), flow(scheme, &[], Rate::mbps(2.0)), ms(50));
    p.run_until(at(20.0));
    assert_eq!(p.stopped, None, "{scheme}");
    p
}

/// The sent since then, by kind.
fn since(p: &Pair, from: Instant) -> impl Iterator<Item = &Left> {
    p.sent.iter().filter(move |left| left.at >= from)
}

#[test]
fn after_an_hours_sleep_nothing_leaves_but_questions_until_the_receiver_answers() {
    for scheme in all() {
        let mut p = begun(scheme);
        // Both sleep, and what is on its way waits in their sockets.
        p.now += HOUR;
        let woken = p.now;
        p.run_until(woken + ms(99));
        let early: Vec<_> = since(&p, woken).filter(|left| left.what != What::Challenge).collect();
        assert!(early.is_empty(), "{scheme}: {early:?}");
        assert!(since(&p, woken).count() >= 1, "{scheme} asks");
        p.run_until(woken + Duration::from_secs(10));
        assert_eq!(p.stopped, None, "{scheme}");
        assert!(p.sender_events.iter().any(|(at, e)| *at >= woken && *e == SenderEvent::Awake), "{scheme}");
        let late = |got: &&Got| got.arrived > woken + Duration::from_secs(9);
        assert!(p.received.iter().filter(late).count() > 0, "{scheme} goes on");
    }
}

#[test]
fn an_answer_that_waited_for_an_hour_lets_nobody_in() {
    for scheme in all() {
        let mut p = Pair::new(sender_config(), Default::default(), flow(scheme, &[], Rate::mbps(2.0)), ms(50));
        // The first answer is on its way, and waits in the socket.
        p.run_until(Instant::ZERO + ms(70));
        p.now += HOUR;
        let woken = p.now;
        p.run_until(woken + ms(99));
        let early: Vec<_> = since(&p, woken).filter(|left| left.what != What::Challenge).collect();
        assert!(early.is_empty(), "{scheme}: {early:?}");
        p.run_until(woken + Duration::from_secs(10));
        assert_eq!(p.stopped, None, "{scheme}");
        assert!(p.received.iter().any(|got| got.arrived > woken), "{scheme} is let in by a new answer");
    }
}

/// The rate of before is not the path's, which may be another.
#[test]
fn after_a_sleep_a_flow_that_gives_way_begins_at_the_initial_rate() {
    for scheme in all().filter(|name| *name != "fixed") {
        let mut p = begun(scheme);
        p.now += HOUR;
        let woken = p.now;
        p.run_until(woken + Duration::from_secs(1));
        let Some(first) = since(&p, woken).find(|left| left.what == What::Media).map(|left| left.at) else {
            continue; // slower than a packet a second
        };
        // Four packets a round trip, twice that in the next [RFC 5348 §4.2]; and one that may leave at once.
        let sent = |from: Instant, to: Instant| since(&p, from).filter(|l| l.at < to && l.what != What::Report).count();
        let most = 4 + 8 + 1 + 2;
        assert!(sent(first, first + ms(200)) <= most, "{scheme}: {}", sent(first, first + ms(200)));
    }
}

#[test]
fn a_receiver_that_is_gone_after_the_sleep_is_asked_for_30_s_and_sent_nothing() {
    for scheme in all() {
        let mut p = begun(scheme);
        p.receiver_alive = false;
        p.now += HOUR;
        let woken = p.now;
        p.run_until(woken + Duration::from_secs(40));
        let Some((when, StopReason::ConsentExpired)) = p.stopped else { panic!("{scheme}: {:?}", p.stopped) };
        assert_eq!(when, woken + Duration::from_secs(30), "{scheme}");
        let other: Vec<_> = since(&p, woken).filter(|l| !matches!(l.what, What::Challenge | What::Bye)).collect();
        assert!(other.is_empty(), "{scheme}: {other:?}");
    }
}

/// Packets that left before the sleep and were acknowledged after it, or waited in a socket meanwhile, took no hour on their way.
#[test]
fn sleep_is_no_round_trip() {
    for scheme in all() {
        for slept in [Duration::from_secs(10), HOUR] {
            let mut p = begun(scheme);
            p.now += slept;
            let woken = p.now;
            p.run_until(woken + Duration::from_secs(5));
            let srtt = p.sender.flow().srtt().unwrap();
            assert!(srtt < ms(200), "{scheme}, asleep for {slept:?}: {srtt:?}");
        }
    }
}

/// Consent lasts for 30 s: a stop of ten is none of its matter.
#[test]
fn a_program_that_was_stopped_for_ten_seconds_goes_on_at_once() {
    for scheme in all() {
        let mut p = begun(scheme);
        p.now += Duration::from_secs(10);
        let woken = p.now;
        p.run_until(woken + ms(300));
        assert!(since(&p, woken).any(|left| left.what == What::Challenge), "{scheme} asks");
        p.run_until(woken + Duration::from_secs(10));
        assert_eq!(p.stopped, None, "{scheme}");
        assert!(p.sender_events.iter().all(|(_, e)| *e != SenderEvent::Awake), "{scheme}");
    }
}

/// The receiver alone sleeps, for less than the sender waits.
#[test]
fn a_receiver_that_slept_has_not_heard_silence() {
    let mut p = begun("rcs");
    let events = p.receiver_events.len();
    let mut late = Pair::usual("rcs", &[]);
    late.run_until(at(2.0));
    // Nothing of these 40 s was its to hear.
    late.now += Duration::from_secs(40);
    late.run_until(late.now + Duration::from_secs(5));
    let vanished = |p: &Pair| p.receiver_events.iter().any(|(_, e)| *e == ReceiverEvent::Vanished);
    assert!(!vanished(&late), "{:?}", late.receiver_events);
    // Awake it hears silence.
    p.forward.disturb = Box::new(|_, _| vec![]);
    p.run_until(at(60.0));
    assert!(vanished(&p) && p.receiver_events.len() == events + 1);
}
