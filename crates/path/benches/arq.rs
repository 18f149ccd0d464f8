//! The cost of the wireless link: per packet by scheme, channel and number of users, and for slots in which nothing
//! is sent.
//!
//!     cargo bench -p fairpace-path --bench arq
//!
//! Slots of 5 ms and packets of one slot. *Full*: every user has 25 packets in its queue and gets a new one for each
//! that comes out; else packets come at random. The driver is the loop of an engine without its heap: it comes back at
//! each `next`. Printed: processor time per packet that came out, the least of several rounds (others shared the
//! machine), and how often the driver came back for it; then the conversion of a fading channel into its chain.
#![allow(clippy::disallowed_methods, missing_docs, reason = "a benchmark reads the clock")]

use fairpace_path::{Arq, ArqScheme, ArqSpec, ArqUser, Capacity, Channel, FadingError, Modulation, Plain, Rayleigh};
use fairpace_units::{Bytes, Duration, Instant, RandomStream};
use std::hint::black_box;
use std::sync::LazyLock;

const PACKETS: u64 = 200_000;
const ROUNDS: usize = 7;
const PACKET: Plain = Plain::new(Bytes::new(125));

struct Case {
    name: &'static str,
    spec: ArqSpec,
    /// Between packets on average; `None`: full.
    every: Option<Duration>,
}

fn main() {
    let memoryless = Channel::memoryless(0.1).expect("a channel");
    let memory = Channel::two_state(0.1, 0.35).expect("a channel");
    let error = FadingError::Modulation { kind: Modulation::Qpsk, bits: 1_000 };
    let rayleigh = |states, doppler| {
        Channel::rayleigh(&Rayleigh { states, mean_snr_db: 25.0, doppler, error }).expect("a channel")
    };
    let spec = |scheme, users: usize, channel: &Channel| {
        let downlink = ArqSpec::downlink(channel.clone(), Capacity::Unlimited);
        ArqSpec { scheme, users: vec![downlink.users[0].clone(); users], ..downlink }
    };
    let full = |name, scheme, users, channel: &Channel| Case { name, spec: spec(scheme, users, channel), every: None };
    let (persistent, optimal) = (ArqScheme::Persistent, ArqScheme::Optimal);
    let weights = |users: usize| (1..=users as u32).map(|weight| weight.min(10));
    let weighted = |users: usize| -> Vec<ArqUser> {
        let one = spec(persistent, 1, &memoryless).users[0].clone();
        weights(users).map(|weight| ArqUser { weight, ..one.clone() }).collect()
    };
    let dedicated =
        |users| ArqSpec { work_conserving: false, users: weighted(users), ..spec(persistent, 1, &memoryless) };
    let cases = [
        full("full, no errors", persistent, 1, &Channel::memoryless(0.0).expect("a channel")),
        full("full, persistent, p_e 0.1", persistent, 1, &memoryless),
        full("full, optimal, p_e 0.1, memory 0.35", optimal, 1, &memory),
        full("full, persistent, Rayleigh, 8 states", persistent, 1, &rayleigh(8, 0.046)),
        full("full, 4 users", persistent, 4, &memoryless),
        full("full, 100 users", persistent, 100, &memoryless),
        full("full, 1,000 users", persistent, 1_000, &memoryless),
        Case { name: "full, 100 users, slots dedicated by weight", spec: dedicated(100), every: None },
        Case {
            name: "80 % load, persistent, p_e 0.1",
            spec: spec(persistent, 1, &memoryless),
            every: Some(Duration::from_micros(6_944)),
        },
        Case {
            name: "a packet per second: 200 slots",
            spec: spec(persistent, 1, &memory),
            every: Some(Duration::from_secs(1)),
        },
        Case {
            name: "a packet per hour: 720,000 slots",
            spec: spec(persistent, 1, &memory),
            every: Some(Duration::from_secs(3_600)),
        },
        Case {
            name: "a packet per week: 121,000,000 slots",
            spec: spec(persistent, 1, &memory),
            every: Some(Duration::from_secs(604_800)),
        },
    ];
    println!("{:<46} {:>12} {:>14}", "wireless link", "ns/packet", "returns/packet");
    for case in &cases {
        let rounds = (0..ROUNDS).map(|_| run(case));
        let (ns, returns) = rounds.min_by(|a, b| a.0.total_cmp(&b.0)).expect("a round");
        println!("{:<46} {ns:>12.1} {returns:>14.3}", case.name);
    }
    println!("\n{:<46} {:>12}", "Rayleigh fading into a chain", "ms");
    for (states, doppler) in [(2, 0.046), (8, 0.046), (64, 0.046), (8, 0.001), (8, 0.000_01)] {
        // The kernel counts in steps of some milliseconds.
        let (start, mut times) = (cpu_seconds(), 0.0);
        while cpu_seconds() - start < 0.2 {
            black_box(rayleigh(states, doppler));
            times += 1.0;
        }
        let name = format!("{states} states, f_D tau {doppler}");
        println!("{name:<46} {:>12.2}", (cpu_seconds() - start) / times * 1e3);
    }
}

/// Nanoseconds and returns of the driver, both per packet that came out.
fn run(case: &Case) -> (f64, f64) {
    let mut arq = Arq::new(&case.spec, 1, "bench").expect("a link");
    let mut random = RandomStream::named(1, "bench");
    let (mut out, mut returns) = (0_u64, 0_u64);
    let most = match case.every {
        Some(every) if every > Duration::from_secs(100_000) => 2_000,
        Some(every) if every > Duration::from_secs(60) => 100,
        _ => PACKETS,
    };
    let start = cpu_seconds();
    let mut next_arrival = Instant::ZERO;
    if case.every.is_none() {
        next_arrival = Instant::NEVER;
        for user in (0..arq.users()).flat_map(|user| [user; 25]) {
            arq.push(Instant::ZERO, user, PACKET);
        }
    }
    while out < most {
        let now = arq.next();
        if now > next_arrival {
            arq.push(next_arrival, 0, PACKET);
            next_arrival += random.exponential(case.every.unwrap_or_default());
            continue;
        }
        returns += 1;
        while let Some((user, packet)) = arq.pop(now) {
            out += 1;
            if case.every.is_none() {
                arq.push(now, user, packet);
            }
        }
    }
    black_box(arq.counters(0));
    ((cpu_seconds() - start) * 1e9 / out as f64, returns as f64 / out as f64)
}

/// The processor time of this process, from the kernel; the wall clock's where it does not say.
fn cpu_seconds() -> f64 {
    static BEGAN: LazyLock<std::time::Instant> = LazyLock::new(std::time::Instant::now);
    let schedstat = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let nanos: Option<f64> = schedstat.split(' ').next().and_then(|nanos| nanos.parse().ok());
    nanos.map_or_else(|| BEGAN.elapsed().as_secs_f64(), |nanos| nanos / 1e9)
}
