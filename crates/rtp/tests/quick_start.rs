//! Quick-Start between two sessions: the request on a challenge, the answer behind the echo, and networks and receivers that do not
//! know it.

mod pair;

use fairpace_control::quick_start::{QsCounters, QsVerdict, QuickStartParams};
use fairpace_control::{Env, Flow, FlowParams, build};
use fairpace_rtp::{ReceiverConfig, SenderEvent, What};
use fairpace_units::{Bytes, Dscp, Duration, Instant, QsFunction, QsOption, QsRate, Rate};
use pair::{Disturb, Pair, Wire, at, ms, sender_config};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A TFRC flow that asks for 640 kbit/s, over 100 ms of round trip.
fn pair(receiver: ReceiverConfig) -> Pair {
    asking(receiver, ms(50))
}

fn asking(receiver: ReceiverConfig, one_way: Duration) -> Pair {
    let env = Env { packet_size: Bytes::new(pair::PACKET), max_rate: Rate::mbps(10.0), ..Env::default() };
    let quick_start = QuickStartParams { header: Bytes::ZERO, ..QuickStartParams::new(Rate::kbps(640.0), 7).unwrap() };
    let params = FlowParams { quick_start: Some(quick_start), ..FlowParams::new(&env) };
    let flow = Flow::new(build("tfrc", &BTreeMap::new(), &env).unwrap(), params);
    Pair::new(sender_config(), receiver, flow, one_way)
}

/// The same flow that asks for nothing.
fn without(one_way: Duration) -> Pair {
    let env = Env { packet_size: Bytes::new(pair::PACKET), max_rate: Rate::mbps(10.0), ..Env::default() };
    let flow = Flow::new(build("tfrc", &BTreeMap::new(), &env).unwrap(), FlowParams::new(&env));
    Pair::new(sender_config(), ReceiverConfig::default(), flow, one_way)
}

/// A network that changes packets with an option; `None`: it is dropped.
fn network(mut change: impl FnMut(Wire) -> Option<Wire> + 'static) -> Disturb {
    Box::new(move |_, w| {
        let arrives = if w.quick_start.is_some() { change(w) } else { Some(w) };
        arrives.map(|w| (Duration::ZERO, w)).into_iter().collect()
    })
}

/// One router that knows Quick-Start, and approves that rate at most.
fn router(most: u8) -> Disturb {
    network(move |mut w| {
        if let Some(option) = &mut w.quick_start {
            (option.ip_ttl, option.qs_ttl) = (option.ip_ttl - 1, option.qs_ttl.wrapping_sub(1));
            let to = option.rate.min(QsRate::from_code(most).unwrap());
            if option.function == QsFunction::Request && to < option.rate {
                option.nonce = option.nonce.lowered(option.rate, to, 0x1555_5555);
                option.rate = to;
            }
        }
        Some(w)
    })
}

fn verdicts(p: &Pair) -> Vec<(Instant, QsVerdict)> {
    let verdict = |(at, e): &(Instant, SenderEvent)| match e {
        SenderEvent::QuickStart(verdict) => Some((*at, *verdict)),
        _ => None,
    };
    p.sender_events.iter().filter_map(verdict).collect()
}

fn counters(p: &Pair) -> QsCounters {
    *p.sender.flow().quick_start().unwrap()
}

/// Bytes of media that left in the two seconds after the first.
fn first_two_seconds(p: &Pair) -> usize {
    let first = p.sent.iter().find(|l| l.what == What::Media).unwrap().at;
    p.sent.iter().filter(|l| l.what == What::Media && l.at < first + ms(2_000)).map(|l| l.len).sum()
}

#[test]
fn a_rate_that_the_routers_approve_is_in_use_a_round_trip_after_the_request() {
    let (mut p, asked) = (pair(ReceiverConfig::default()), Rc::new(RefCell::new(Vec::new())));
    let (seen, mut approve) = (Rc::clone(&asked), router(4));
    p.forward.disturb = Box::new(move |now, w| {
        seen.borrow_mut().extend(w.quick_start.map(|option| (now, w.what, option)));
        approve(now, w)
    });
    p.run_until(at(2.0));
    let asked = asked.borrow();
    let [(sent, What::Challenge, request), (told, What::Challenge, report)] = asked[..] else { panic!("{asked:?}") };
    assert_eq!((request.function, request.rate.rate(), request.ip_ttl), (QsFunction::Request, Rate::kbps(640.0), 64));
    assert_eq!((report.function, report.rate), (QsFunction::Report, request.rate));
    // With the first data, and the answer a round trip later.
    assert_eq!(sent, p.sent.iter().find(|l| l.what == What::Media).unwrap().at);
    assert_eq!(verdicts(&p), [(sent + ms(100), QsVerdict::Approved(request.rate))]);
    assert!(told >= sent + ms(100) && told < sent + ms(130), "{told} {sent}");
    assert_eq!(counters(&p), QsCounters { asked: 1, approved: 1, reports: 1, ..QsCounters::default() });
}

#[test]
fn over_a_satellite_more_is_sent_in_the_first_seconds() {
    let (mut p, mut plain) = (asking(ReceiverConfig::default(), ms(300)), without(ms(300)));
    p.forward.disturb = router(4);
    for p in [&mut p, &mut plain] {
        p.run_until(at(4.0));
    }
    // 640 kbit/s for 1.4 s are 112 kB. Slow start sends 4 packets in the first round trip, 8, 16 and a part of 32 in the next ones.
    let (with, without) = (first_two_seconds(&p), first_two_seconds(&plain));
    assert!((90_000..=130_000).contains(&with), "{with}");
    assert!(with as f64 > 2.0 * without as f64, "{with} B, {without} B without");
}

#[test]
fn a_lower_rate_is_used_and_a_router_that_refuses_is_heard() {
    let mut p = pair(ReceiverConfig::default());
    p.forward.disturb = router(3);
    p.run_until(at(1.0));
    assert_eq!(verdicts(&p).first().map(|v| v.1), Some(QsVerdict::Approved(QsRate::from_code(3).unwrap())));
    let mut p = pair(ReceiverConfig::default());
    p.forward.disturb = network(|mut w| {
        let refused = |o: QsOption| QsOption { rate: QsRate::ZERO, qs_ttl: 0, nonce: Default::default(), ..o };
        w.quick_start = w.quick_start.map(refused);
        Some(w)
    });
    p.run_until(at(1.0));
    assert_eq!(verdicts(&p).iter().map(|v| v.1).collect::<Vec<_>>(), [QsVerdict::Denied]);
    assert_eq!(counters(&p), QsCounters { asked: 1, denied: 1, reports: 1, ..QsCounters::default() });
}

/// Each way in which a network or a receiver does not take part: the flow is the one that never asked, packet by packet, and asks no more.
#[test]
fn where_quick_start_does_not_work_the_flow_is_as_if_it_had_not_asked() {
    let unharmed =
        |name: &str, receiver: ReceiverConfig, disturb: Disturb, expected: QsVerdict, counted: QsCounters| {
            let (mut p, mut plain) = (pair(receiver), without(ms(50)));
            p.forward.disturb = disturb;
            for p in [&mut p, &mut plain] {
                p.run_until(at(8.0));
            }
            let found = verdicts(&p);
            assert_eq!(found.iter().map(|v| v.1).collect::<Vec<_>>(), [expected], "{name}");
            assert_eq!(counters(&p), counted, "{name}");
            let media = |p: &Pair| {
                let sent = p.sent.iter().filter(|l| l.what == What::Media);
                (sent.map(|l| (l.at, l.len)).collect::<Vec<_>>(), p.assembled.len())
            };
            assert_eq!(media(&p), media(&plain), "{name}");
            assert_eq!(p.sender.flow().counters().data.lost, 0, "{name}");
            found[0].0
        };
    let one = QsCounters { asked: 1, ..QsCounters::default() };
    let dropping = network(|_| None);
    let dropped = QsCounters { dropped: 1, ..one };
    let told = unharmed("options dropped", ReceiverConfig::default(), dropping, QsVerdict::Dropped, dropped);
    // A terminal may hold a request for 3 s.
    assert!((at(3.0)..at(3.6)).contains(&told), "{told}");
    let stripping = network(|w| Some(Wire { quick_start: None, ..w }));
    let stripped = QsCounters { stripped: 1, ..one };
    let told = unharmed("option taken off", ReceiverConfig::default(), stripping, QsVerdict::Stripped, stripped);
    assert!(told < at(0.6), "{told}");
    let unknowing = ReceiverConfig { quick_start: false, ..ReceiverConfig::default() };
    let unknown = QsCounters { unknown: 1, ..one };
    unharmed("receiver", unknowing, pair::undisturbed(), QsVerdict::Unknown, unknown);
    let rewriting = network(|mut w| {
        if let Some(option) = w.quick_start.as_mut().filter(|o| o.function == QsFunction::Request) {
            option.ip_ttl = 33;
        }
        Some(w)
    });
    let bad_ttl = QsCounters { bad_ttl: 1, reports: 1, ..one };
    unharmed("TTL rewritten", ReceiverConfig::default(), rewriting, QsVerdict::BadTtl, bad_ttl);
    let raising = network(|mut w| {
        let raise = |o: QsOption| QsOption { rate: QsRate::from_code(o.rate.code() + 1).unwrap(), ..o };
        w.quick_start = w.quick_start.map(|o| if o.function == QsFunction::Request { raise(o) } else { o });
        Some(w)
    });
    let bad_rate = QsCounters { bad_rate: 1, reports: 1, ..one };
    unharmed("rate raised", ReceiverConfig::default(), raising, QsVerdict::BadRate, bad_rate);
}

/// The answer is no longer than the question, and nothing but the echo of the request's own challenge is an answer.
#[test]
fn an_answer_counts_behind_the_echo_of_the_request_only() {
    let (mut p, longest) = (pair(ReceiverConfig::default()), Rc::new(RefCell::new([0; 2])));
    p.forward.disturb = router(4);
    let seen = Rc::clone(&longest);
    let mut early: Option<Wire> = None;
    p.back.disturb = Box::new(move |_, w| {
        let mut arrives = vec![(Duration::ZERO, w.clone())];
        if w.what == What::Echo {
            let [shortest, longest] = &mut *seen.borrow_mut();
            *longest = w.bytes.len().max(*longest);
            *shortest = if *shortest == 0 { w.bytes.len() } else { w.bytes.len().min(*shortest) };
            // The answer behind another echo that nobody has seen yet, and once more by itself.
            if w.dscp == Dscp::LE {
                early = Some(w);
                return vec![];
            }
            if w.bytes.len() > 36 {
                let mut forged = early.clone().unwrap();
                forged.bytes.extend_from_slice(&w.bytes[36..]);
                let mut alone = w;
                alone.bytes.drain(..36);
                arrives = [forged, alone].map(|w| (Duration::ZERO, w)).into();
            }
        }
        arrives
    });
    p.run_until(at(1.5));
    assert_eq!(*longest.borrow(), [36, 56]);
    assert_eq!(verdicts(&p), []);
    assert_eq!(p.sender.stats().rejected.token, 2, "{:?}", p.sender.stats().rejected);
}
