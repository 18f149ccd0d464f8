//! The cost of TFRC's sender: an acknowledgement, a report in and a rate out, the controller alone and through
//! `Flow`. Run with `cargo bench -p fairpace-control --bench tfrc`.

use fairpace_control::feedback::Message;
use fairpace_control::rtt::RttParams;
use fairpace_control::{Ack, Acked, Env, Flow, FlowParams, RateReport, RttEstimator, Safety, Sent, Transmit, build};
use fairpace_units::{Bytes, Class, Duration, Ecn, Instant, Kind, Rate};
use std::collections::BTreeMap;
use std::hint::black_box;

const SIZE: Bytes = Bytes::new(1_000);
const RTT: Duration = Duration::from_millis(100);
const ROUNDS: u64 = 2_000_000;

fn env() -> Env {
    Env {
        packet_size: SIZE,
        min_rate: Rate::kbps(1.0),
        start_rate: None,
        max_rate: Rate::packets_per_second(1_000.0, SIZE),
        safety: Safety::Default,
    }
}

fn settings(measured_by: &str) -> BTreeMap<String, String> {
    BTreeMap::from([("measured_by".to_owned(), measured_by.to_owned())])
}

fn controller(measured_by: &str) -> Box<dyn fairpace_control::Controller> {
    build("tfrc", &settings(measured_by), &env()).unwrap_or_else(|e| panic!("{e}"))
}

fn at(n: u64) -> Instant {
    Instant::from_nanos(n * 1_000_000)
}

fn main() {
    let mut rtt = RttEstimator::new(RttParams::default());
    rtt.update(RTT);

    // On_ack without a report: packets of 1 ms, reports once per 100 ms come in between and are counted in.
    let mut c = controller("sender");
    c.start(at(0), Some(RTT));
    measure("on_ack, and a report to itself each 100", ROUNDS, |n| {
        let sent_at = at(n);
        c.on_sent(sent_at, &Sent { kind: Kind::Data, class: Class::Normal, seq: n, size: SIZE });
        let now = sent_at + RTT;
        let ack = Acked {
            late: false,
            kind: Kind::Data,
            seq: n,
            size: SIZE,
            sent_at,
            rtt: Some(RTT),
            ecn: Ecn::NotEct,
            arrived_at: None,
            outstanding: 0,
        };
        c.on_ack(now, &ack, &rtt);
        if c.poll_timer() <= now {
            c.on_timer(now, &rtt);
        }
    });

    for (name, same_p) in [("on_report, p as before", true), ("on_report, another p each time", false)] {
        let mut c = controller("receiver");
        c.start(at(0), Some(RTT));
        measure(name, ROUNDS, |n| {
            let now = at(100 * n);
            let loss_event_rate = if same_p { 0.01 } else { 0.01 + 1e-9 * n as f64 };
            let received_rate = Rate::packets_per_second(200.0, SIZE);
            c.on_report(
                now,
                &RateReport { echoed: now - RTT, delay: Duration::ZERO, received_rate, loss_event_rate },
                &rtt,
            );
            black_box(c.target_rate());
        });
    }

    for by in ["sender", "receiver"] {
        through_flow(by);
    }
}

/// Packets at 1,000 per second, one in a thousand lost; for a receiver that measures, a report for each ten.
fn through_flow(by: &str) {
    let mut flow = Flow::new(controller(by), FlowParams { breaker: None, ..FlowParams::new(&env()) });
    flow.start(at(0), Some(RTT));
    let name = match by {
        "sender" => "flow: poll, send, ACK",
        _ => "flow: poll, send, a tenth of a report",
    };
    let mut sent = std::collections::VecDeque::with_capacity(4_096);
    measure(name, ROUNDS, |n| {
        let now = at(n);
        if let Transmit::Send(p) = flow.poll(now, true) {
            flow.on_sent(now, p, SIZE);
            sent.push_back((now, p.seq));
        }
        while let Some((left, seq)) = sent.front().copied().filter(|(left, _)| *left + RTT <= now) {
            sent.pop_front();
            if by == "sender" && seq % 1_000 != 0 {
                let _ = flow.on_feedback(now, Message::acks(&[Ack::immediate(Kind::Data, seq)]));
            } else if by == "receiver" && seq % 10 == 0 {
                let received_rate = Rate::packets_per_second(900.0, SIZE);
                let _ = flow.on_feedback(
                    now,
                    Message::Measured(&RateReport {
                        echoed: left,
                        delay: Duration::ZERO,
                        received_rate,
                        loss_event_rate: 0.0001 + 1e-12 * seq as f64,
                    }),
                );
            }
        }
    });
}

// A benchmark is a driver: it may read the clock. The best of twenty parts: other work on the machine only adds.
#[allow(clippy::disallowed_methods)]
fn measure(name: &str, rounds: u64, mut step: impl FnMut(u64)) {
    let (part, mut best) = (rounds / 20, f64::INFINITY);
    for i in 0..20 {
        let began = std::time::Instant::now();
        for n in 1..=part {
            step(i * part + n);
        }
        best = best.min(began.elapsed().as_nanos() as f64 / part as f64);
    }
    println!("{name:>44}: {best:7.1} ns");
}
