//! The cost of one packet on one link, push and pop together, on one core.
//!
//!     cargo bench -p fairpace-path
//!
//! The driver is the loop of an engine without its heap: arrivals at given instants, and a return
//! at each `next`. The fastest of several rounds is printed (the others shared the machine), with how often the driver came back
//! per packet that came out, and what it costs to make the arrivals and nothing else.
#![allow(clippy::disallowed_methods, missing_docs, reason = "a benchmark reads the clock")]

use fairpace_path::{
    Capacity, CoDelParams, Datagram, DelayModel, FqCoDelParams, Gaps, GilbertElliott, Link, LinkSpec, LossModel,
    PieParams, QueueModel, RateModel, RedParams, Trace,
};
use fairpace_units::{Bytes, Class, Duration, Ecn, Instant, Packets, Probability, RandomStream, Rate};
use std::collections::VecDeque;
use std::hint::black_box;

/// About what the simulator moves: 48 bytes.
#[derive(Clone, Copy)]
struct Packet {
    size: u32,
    class: Class,
    flow: u64,
    _rest: [u64; 4],
}

impl Datagram for Packet {
    fn size(&self) -> Bytes {
        Bytes::new(u64::from(self.size))
    }
    fn class(&self) -> Class {
        self.class
    }
    fn ecn(&self) -> Ecn {
        Ecn::NotEct
    }
    fn set_ecn(&mut self, _: Ecn) {}
    fn flow(&self) -> u64 {
        self.flow
    }
}

const PACKETS: usize = 200_000;
const ROUNDS: usize = 25;

struct Case {
    name: &'static str,
    spec: LinkSpec,
    /// Mean distance of the arrivals.
    every: Duration,
    /// The share of low-priority packets.
    low: f64,
}

fn main() {
    let fixed = RateModel::Fixed(Rate::mbps(100.0)); // 80 us per packet of 1,000 bytes
    let delay = DelayModel::constant(Duration::from_millis(48));
    let capacity = Capacity::Packets(Packets::new(1_000));
    let base = LinkSpec { rate: fixed, delay, queue: QueueModel::DropTail { capacity }, ..LinkSpec::default() };
    let small = QueueModel::TwoPriority { capacity: Capacity::Packets(Packets::new(50)) };
    let p = |p| Probability::new(p).expect("a probability");
    let steps: Vec<_> = (0..2_000_u64)
        .map(|s| (Instant::ZERO + Duration::from_millis(100 * s), Rate::mbps(90.0 + (s % 20) as f64)))
        .collect();
    let csv: String = (0..1_000).map(|s| format!("{},{}\n", s, 80 + s % 40)).collect();
    let csv = Trace::parse_csv(&csv, "2", Gaps::Hold).expect("a trace");
    let opportunities: String = (1..=10_000).map(|ms| format!("{ms}\n").repeat(8)).collect(); // 96 Mbit/s
    let opportunities = Trace::parse_mahimahi(&opportunities).expect("a trace");
    let us = Duration::from_micros;
    let managed = |load, queue| Case {
        name: load,
        spec: LinkSpec { queue, ..base.clone() },
        every: if load.contains("95") { us(84) } else { us(62) },
        low: 0.0,
    };
    let size = Bytes::new(1_000);
    let cases = [
        Case {
            name: "wire (no rate, no loss)",
            spec: LinkSpec { delay, ..LinkSpec::default() },
            every: us(84),
            low: 0.0,
        },
        Case { name: "fixed, drop-tail, 95 % load", spec: base.clone(), every: us(84), low: 0.0 },
        Case { name: "fixed, drop-tail, 130 % load", spec: base.clone(), every: us(62), low: 0.0 },
        Case {
            name: "  + Bernoulli loss 1e-3",
            spec: LinkSpec { loss: LossModel::Bernoulli(p(1e-3)), ..base.clone() },
            every: us(84),
            low: 0.0,
        },
        Case {
            name: "  + Gilbert-Elliott loss",
            spec: LinkSpec {
                loss: LossModel::GilbertElliott(GilbertElliott {
                    good_to_bad: p(1e-3),
                    bad_to_good: p(0.1),
                    loss_in_good: p(0.0),
                    loss_in_bad: p(0.5),
                }),
                ..base.clone()
            },
            every: us(84),
            low: 0.0,
        },
        Case {
            name: "  + jitter, in order",
            spec: LinkSpec { delay: DelayModel { jitter: us(500), ..delay }, ..base.clone() },
            every: us(84),
            low: 0.0,
        },
        Case {
            name: "  + jitter, reordering",
            spec: LinkSpec { delay: DelayModel { jitter: us(500), reorder: true, ..delay }, ..base.clone() },
            every: us(84),
            low: 0.0,
        },
        Case {
            name: "schedule, drop-tail, 95 % load",
            spec: LinkSpec { rate: RateModel::Schedule(steps), ..base.clone() },
            every: us(84),
            low: 0.0,
        },
        Case {
            name: "CSV trace, drop-tail, 95 % load",
            spec: LinkSpec { rate: RateModel::Trace(csv.into()), ..base.clone() },
            every: us(84),
            low: 0.0,
        },
        Case {
            name: "mahimahi trace, drop-tail, 99 % load",
            spec: LinkSpec { rate: RateModel::Trace(opportunities.into()), ..base.clone() },
            every: us(84),
            low: 0.0,
        },
        Case {
            name: "fixed, two-priority, 95 % load",
            spec: LinkSpec { queue: QueueModel::TwoPriority { capacity }, ..base.clone() },
            every: us(84),
            low: 0.0,
        },
        Case {
            name: "fixed, two-priority of 50, 130 % load, half low",
            spec: LinkSpec { queue: small, ..base.clone() },
            every: us(62),
            low: 0.5,
        },
        Case {
            name: "  the same with no delay",
            spec: LinkSpec { queue: small, delay: DelayModel::default(), ..base.clone() },
            every: us(62),
            low: 0.5,
        },
        managed("fixed, RED, 95 % load", QueueModel::Red(RedParams::for_capacity(capacity, size))),
        managed("fixed, RED, 130 % load", QueueModel::Red(RedParams::for_capacity(capacity, size))),
        managed("fixed, PIE, 95 % load", QueueModel::Pie(PieParams::new(capacity, size))),
        managed("fixed, PIE, 130 % load", QueueModel::Pie(PieParams::new(capacity, size))),
        managed("fixed, CoDel, 95 % load", QueueModel::CoDel(CoDelParams::new(capacity))),
        managed("fixed, CoDel, 130 % load", QueueModel::CoDel(CoDelParams::new(capacity))),
        managed("fixed, FQ-CoDel, 8 flows, 95 % load", QueueModel::FqCoDel(FqCoDelParams::new(capacity))),
        managed("fixed, FQ-CoDel, 8 flows, 130 % load", QueueModel::FqCoDel(FqCoDelParams::new(capacity))),
    ];
    println!("{:<52} {:>9} {:>14}", "link", "ns/packet", "returns/packet");
    println!(
        "{:<52} {:>9.1}",
        "(the arrivals alone)",
        fastest(|| arrivals(&Case { every: us(84), low: 0.0, name: "", spec: LinkSpec::default() }))
    );
    let ring =
        Case { name: "(a bare ring of exits, for comparison)", spec: LinkSpec::default(), every: us(84), low: 0.0 };
    println!("{:<52} {:>9.1}", ring.name, fastest(|| bare_ring(&ring)));
    for case in cases {
        let mut returns = 0.0;
        let cost = fastest(|| {
            let (ns, per_packet) = run(&case);
            returns = per_packet;
            ns
        });
        println!("{:<52} {cost:>9.1} {returns:>14.3}", case.name);
    }
}

fn fastest(mut round: impl FnMut() -> f64) -> f64 {
    (0..ROUNDS).map(|_| round()).fold(f64::INFINITY, f64::min)
}

/// The next arrival: uniform in [0, 2 every), and of which class and flow.
fn next_arrival(random: &mut RandomStream, case: &Case, now: &mut Instant) -> Packet {
    let bits = random.bits();
    let spread = case.every.as_nanos() as u64 * 2;
    *now += Duration::from_nanos(((bits & 0xffff_ffff) * spread) >> 32);
    let class = if ((bits >> 40) as f64) < case.low * f64::from(1 << 24) { Class::Low } else { Class::Normal };
    Packet { size: 1_000, class, flow: bits >> 61, _rest: [0; 4] }
}

fn arrivals(case: &Case) -> f64 {
    let (mut random, mut now) = (RandomStream::named(1, "bench"), Instant::ZERO);
    let clock = std::time::Instant::now();
    for _ in 0..PACKETS {
        black_box(next_arrival(&mut random, case, &mut now));
    }
    clock.elapsed().as_secs_f64() * 1e9 / PACKETS as f64
}

/// The least that a link can do: remember each packet for 48 ms.
fn bare_ring(case: &Case) -> f64 {
    let mut ring: VecDeque<(Instant, Packet)> = VecDeque::new();
    let (mut random, mut now) = (RandomStream::named(1, "bench"), Instant::ZERO);
    let clock = std::time::Instant::now();
    for _ in 0..PACKETS {
        let packet = next_arrival(&mut random, case, &mut now);
        while ring.front().is_some_and(|&(exit, _)| exit <= now) {
            black_box(ring.pop_front());
        }
        ring.push_back((Instant::from_nanos(now.as_nanos() + 48_000_000), packet));
    }
    clock.elapsed().as_secs_f64() * 1e9 / PACKETS as f64
}

fn run(case: &Case) -> (f64, f64) {
    let mut link: Link<Packet> = Link::new(&case.spec, 1, "bench").expect("a link");
    let (mut random, mut now) = (RandomStream::named(1, "bench"), Instant::ZERO);
    let (mut returns, mut out) = (0_u64, 0_u64);
    let clock = std::time::Instant::now();
    for _ in 0..PACKETS {
        let packet = next_arrival(&mut random, case, &mut now);
        while link.next() <= now {
            let exit = link.next();
            returns += 1;
            while let Some(packet) = link.pop(exit) {
                black_box(packet);
                out += 1;
            }
        }
        link.push(now, packet);
    }
    let ns = clock.elapsed().as_secs_f64() * 1e9 / PACKETS as f64;
    (ns, returns as f64 / out as f64)
}
