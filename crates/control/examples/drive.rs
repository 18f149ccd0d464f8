//! The smallest program that drives a controller: RAP over a path of 100 ms that loses one packet in two hundred.
//!
//! `cargo run -p fairpace-control --example drive`

use fairpace_control::feedback::Message;
use fairpace_control::{Ack, Env, Flow, FlowParams, ParamError, Transmit, build};
use fairpace_units::{Duration, Instant};
use std::collections::{BTreeMap, VecDeque};

fn main() -> Result<(), ParamError> {
    let env = Env::default();
    let mut flow = Flow::new(build("rap", &BTreeMap::new(), &env)?, FlowParams::new(&env));
    let rtt = Duration::from_millis(100);
    // Acknowledgements on their way back.
    let mut acks: VecDeque<(Instant, Ack)> = VecDeque::new();
    let (mut now, mut next_line) = (Instant::ZERO, Instant::ZERO);

    flow.start(now, Some(rtt));
    while now < Instant::from_secs_f64(20.0) {
        // 1. Hand in what has happened.
        while let Some((_, ack)) = acks.pop_front_if(|(at, _)| *at <= now) {
            flow.on_feedback(now, Message::acks(&[ack])).expect("RAP goes by acknowledgements");
        }
        // 2. Ask until the answer is to wait.
        let until = loop {
            match flow.poll(now, true) {
                Transmit::Send(permit) => {
                    flow.on_sent(now, permit, env.packet_size);
                    if permit.seq % 200 != 199 {
                        acks.push_back((now + rtt, Ack::immediate(permit.kind, permit.seq)));
                    }
                }
                Transmit::WaitUntil(t) | Transmit::WaitForData(t) | Transmit::WaitForFeedback(t) => break t,
                Transmit::Stopped(reason) => panic!("{reason}"),
            }
        };
        if now >= next_line {
            println!("{:4.1} s {:>12} {}", now.as_secs_f64(), flow.target_rate().to_string(), flow.status().reason);
            next_line += Duration::from_secs(1);
        }
        // 3. Wait for that instant or the next feedback, whichever comes first.
        now = acks.front().map_or(until, |(at, _)| until.min(*at));
    }
    // Three tenths to twice of what TCP would have: sqrt(1.5 / 0.005) / 0.1 s = 173 packets/s.
    let pps = flow.counters().data.acked as f64 / 20.0;
    assert!((52.0..346.0).contains(&pps), "{pps} packets/s");
    Ok(())
}

#[test]
fn the_example_runs() {
    main().expect("`rap` is a controller");
}
