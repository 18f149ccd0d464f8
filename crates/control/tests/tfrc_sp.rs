//! TFRC-SP is TFRC where RFC 4828 says nothing else.

use fairpace_control::feedback::Message;
use fairpace_control::{Ack, Env, Flow, FlowParams, Safety, Transmit, build};
use fairpace_units::{Bytes, Duration, Instant, Rate};
use std::collections::{BTreeMap, VecDeque};

const SIZE: Bytes = Bytes::new(1_460);
const RTT: Duration = Duration::from_secs(1);

/// The allowed rate every half second, bytes per second: ACKs of all packets for 5 s, then none until 60 s.
fn rates(scheme: &str) -> Vec<f64> {
    let env = Env {
        packet_size: SIZE,
        min_rate: Rate::bps(1.0),
        start_rate: None,
        max_rate: Rate::mbps(100.0),
        safety: Safety::Default,
    };
    let controller = build(scheme, &BTreeMap::new(), &env).unwrap_or_else(|e| panic!("{e}"));
    let mut flow = Flow::new(controller, FlowParams { breaker: None, ..FlowParams::new(&env) });
    let mut path: VecDeque<(Instant, Ack)> = VecDeque::new();
    let (mut now, mut rates) = (Instant::ZERO, Vec::new());
    let (last_ack, end) = (Instant::from_secs_f64(5.0), Instant::from_secs_f64(60.0));
    flow.start(now, Some(RTT));
    while now < end {
        while path.front().is_some_and(|(at, _)| *at <= now) {
            let (_, ack) = path.pop_front().expect("looked at");
            let _ = flow.on_feedback(now, Message::acks(&[ack]));
        }
        let until = loop {
            match flow.poll(now, true) {
                Transmit::Send(p) => {
                    if now + RTT <= last_ack {
                        path.push_back((now + RTT, Ack::immediate(p.kind, p.seq)));
                    }
                    flow.on_sent(now, p, SIZE);
                }
                Transmit::WaitUntil(t) | Transmit::WaitForData(t) | Transmit::WaitForFeedback(t) => break t,
                Transmit::Stopped(reason) => panic!("{reason}"),
            }
        };
        let next = path.front().map_or(until, |(at, _)| until.min(*at));
        while Instant::from_secs_f64(rates.len() as f64 / 2.0 + 0.25) < next.min(end) {
            rates.push(flow.status().rate.as_bps() / 8.0);
        }
        now = next;
    }
    assert_eq!(flow.srtt(), Some(RTT));
    rates
}

/// Of 1,460-byte packets with 40 bytes of headers each, 1460/1500 of TFRC's rate is left, in slow start as in the
/// halvings that follow when feedback ends: the same RTT, doublings and expiries.
#[test]
//= 4828-3-4
fn slow_start_and_the_no_feedback_timer_are_tfrcs() {
    let (tfrc, sp) = (rates("tfrc"), rates("tfrc-sp"));
    assert_eq!(tfrc.len(), sp.len());
    // 4,380 bytes per RTT at first, and less than a packet per RTT at last.
    assert_eq!(tfrc[0], 4_380.0);
    assert!(tfrc.iter().any(|x| *x > 20_000.0) && tfrc[119] < 1_460.0, "{tfrc:?}");
    for (i, (tfrc, sp)) in tfrc.iter().zip(&sp).enumerate() {
        let share = sp / tfrc;
        // Slow start's limit is what was received, in whole packets.
        assert!((0.9..=1.0).contains(&share), "at {} s: {tfrc} and {sp}", i as f64 / 2.0 + 0.25);
    }
}
