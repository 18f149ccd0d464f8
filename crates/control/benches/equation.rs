//! The cost of an equation, forwards and backwards, and of what SRP, CRP and MRP do with it: a round's step and
//! an acknowledgement, the controller alone. Run with `cargo bench -p fairpace-control --bench equation`.

use fairpace_control::{Acked, Controller, Env, Equation, Loss, LossHow, RttEstimator, Sent, TcpPath, build};
use fairpace_units::{Bytes, Class, Duration, Ecn, Instant, Kind, Probability, Rate};
use std::collections::BTreeMap;
use std::hint::black_box;

const SIZE: Bytes = Bytes::new(1_000);
const RTT: Duration = Duration::from_millis(550);

fn main() {
    let path = TcpPath::new(SIZE, RTT, Duration::from_secs(1), 1.0).unwrap_or_else(|e| panic!("{e}"));
    let losses: Vec<Probability> =
        (1..=1_000).map(|i| Probability::new(f64::from(i) / 1_000.0).unwrap_or(Probability::ONE)).collect();
    for (name, equation) in Equation::NAMES {
        let rates: Vec<Rate> = losses.iter().map(|p| equation.rate(&path, *p)).collect();
        let rate = nanoseconds(|i| {
            black_box(equation.rate(black_box(&path), losses[i % losses.len()]));
        });
        let inverse = nanoseconds(|i| {
            black_box(equation.loss_rate(black_box(&path), rates[i % rates.len()]));
        });
        println!("{name:>8}: rate {rate:6.1} ns   inverse {inverse:7.1} ns");
    }
    for scheme in ["srp", "crp", "mrp"] {
        let mut alone = Alone::new(scheme);
        let ack = nanoseconds(|_| alone.acknowledge());
        let mut alone = Alone::new(scheme);
        let step = nanoseconds(|_| alone.step());
        println!("{scheme:>8}: ACK {ack:5.1} ns   step of a round (ACK or loss in, rate out) {step:5.1} ns");
    }
}

/// The best of many short runs: what else the machine does only ever adds.
// A benchmark is a driver: it may read the clock.
#[allow(clippy::disallowed_methods)]
fn nanoseconds(mut f: impl FnMut(usize)) -> f64 {
    const TIMES: usize = 5_000;
    let mut best = f64::INFINITY;
    for _ in 0..400 {
        let began = std::time::Instant::now();
        for i in 0..TIMES {
            f(i);
        }
        best = best.min(began.elapsed().as_nanos() as f64 / TIMES as f64);
    }
    best
}

/// A controller without the flow around it, one packet in a hundred lost so far.
struct Alone {
    controller: Box<dyn Controller>,
    rtt: RttEstimator,
    now: Instant,
    seq: u64,
}

impl Alone {
    fn new(scheme: &str) -> Alone {
        let mut controller = build(scheme, &BTreeMap::new(), &Env::default()).unwrap_or_else(|e| panic!("{e}"));
        let mut rtt = RttEstimator::new(controller.loss_policy().rtt);
        rtt.update(RTT);
        controller.start(Instant::ZERO, Some(RTT));
        let sent = Sent { kind: Kind::Data, class: Class::Normal, seq: 0, size: SIZE };
        controller.on_sent(Instant::ZERO, &sent);
        let mut alone = Alone { controller, rtt, now: Instant::ZERO, seq: 0 };
        for _ in 0..1_000 {
            alone.step();
        }
        alone
    }

    fn next(&mut self) -> u64 {
        self.now += Duration::from_millis(10);
        self.seq += 1;
        self.seq - 1
    }

    fn acknowledge(&mut self) {
        let (kind, seq, sent_at) = (Kind::Data, self.next(), self.now);
        let ack = Acked {
            kind,
            seq,
            size: SIZE,
            sent_at,
            late: false,
            rtt: Some(RTT),
            ecn: Ecn::NotEct,
            arrived_at: None,
            outstanding: 0,
        };
        self.controller.on_ack(self.now, black_box(&ack), &self.rtt);
    }

    fn lose(&mut self) {
        let seq = self.next();
        let loss = Loss { seq, sent_at: self.now, highest_sent: seq, how: LossHow::LaterAcks };
        self.controller.on_loss(self.now, &loss, &self.rtt);
    }

    /// Feedback in, the round's end, the rate out. One round in a hundred has a loss.
    fn step(&mut self) {
        if self.seq % 100 == 50 {
            self.lose()
        } else {
            self.acknowledge()
        }
        self.controller.on_timer(self.now, &self.rtt);
        black_box(self.controller.target_rate());
    }
}
