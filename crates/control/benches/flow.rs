//! The cost of one packet: poll, send, acknowledge. Run with `cargo bench -p fairpace-control`.

use fairpace_control::feedback::Message;
use fairpace_control::{Ack, Env, Flow, FlowParams, ReceiverReport, Safety, Transmit, build, schemes};
use fairpace_units::{Bytes, Duration, Instant, Rate};
use std::collections::{BTreeMap, VecDeque};

const SIZE: Bytes = Bytes::new(1_000);
const PACKETS: u64 = 4_000_000;

fn main() {
    // Half of TPBA's packets are TCP's; the other half cost what LDA's do.
    for scheme in schemes().iter().filter(|s| s.name != "tpba") {
        for safety in [Safety::Paper, Safety::Default] {
            measure(scheme.name, safety);
        }
    }
}

// A benchmark is a driver: it may read the clock.
#[allow(clippy::disallowed_methods)]
fn measure(scheme: &str, safety: Safety) {
    let env = Env {
        packet_size: SIZE,
        min_rate: Rate::kbps(1.0),
        start_rate: Some(Rate::packets_per_second(1_000.0, SIZE)),
        max_rate: Rate::packets_per_second(1_000.0, SIZE),
        safety,
    };
    let controller = match build(scheme, &BTreeMap::new(), &env) {
        Ok(c) => c,
        Err(e) => panic!("{e}"),
    };
    let mut flow = Flow::new(controller, FlowParams { breaker: None, ..FlowParams::new(&env) });
    let rtt = Duration::from_millis(550);
    let every = flow.controller().report_interval();
    let mut next_report = every.map_or(Instant::NEVER, |every| Instant::ZERO + every);
    let (mut arrived, mut highest) = (0, 0);
    let mut acks: VecDeque<(Instant, Ack)> = VecDeque::with_capacity(4_096);
    let (mut now, mut packets, mut polls) = (Instant::ZERO, 0_u64, 0_u64);
    flow.start(now, Some(rtt));
    let began = std::time::Instant::now();
    while packets < PACKETS {
        while let Some((at, ack)) = acks.front().copied().filter(|(at, _)| *at <= now) {
            debug_assert!(at <= now);
            acks.pop_front();
            if every.is_some() {
                (arrived, highest) = (arrived + 1, ack.seq);
            } else {
                let _ = flow.on_feedback(now, Message::acks(&[ack]));
            }
        }
        if let Some(every) = every.filter(|_| now >= next_report) {
            next_report += every;
            if arrived > 0 {
                let report = ReceiverReport::new(highest, 0.0, every);
                let _ = flow.on_feedback(
                    now,
                    Message::Report(&ReceiverReport { lost: Some(highest as i64 + 1 - arrived), ..report }),
                );
            }
        }
        let until = loop {
            polls += 1;
            match flow.poll(now, true) {
                Transmit::Send(p) => {
                    flow.on_sent(now, p, SIZE);
                    packets += 1;
                    // One in a thousand is lost, so that every state is visited.
                    if packets % 1_000 != 0 {
                        acks.push_back((now + rtt, Ack::immediate(p.kind, p.seq)));
                    }
                }
                Transmit::WaitUntil(t) | Transmit::WaitForData(t) | Transmit::WaitForFeedback(t) => break t,
                Transmit::Stopped(reason) => panic!("{reason}"),
            }
        };
        now = acks.front().map_or(until, |(at, _)| until.min(*at)).min(next_report);
    }
    let ns = began.elapsed().as_nanos() as f64 / packets as f64;
    println!(
        "{scheme:>6} {:>7}: {ns:6.1} ns per packet (send, ACK and {:.1} polls)",
        format!("{safety:?}").to_lowercase(),
        polls as f64 / packets as f64
    );
}
