//! The pending-event set beside a plain binary heap: `cargo run --release -p fairpace-sim --example event_set`.
//!
//! Hold model: remove the earliest, add one a random time later; so many pending all the time. "near":
//! delays of 0 to 2 ms, as transmissions and access delays; "mixed": half of these, half 100 to 300 ms,
//! as timers and long paths. Best of three, in ns of CPU time per event.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use fairpace_sim::engine::{Event, EventSet};
use fairpace_units::{Instant, RandomStream};

const EVENTS: u64 = 3_000_000;

fn main() {
    println!("{:>9} {:<6} {:>10} {:>12} {:>7}", "pending", "delays", "event set", "binary heap", "ratio");
    for pending in [20, 200, 1_000, 10_000, 100_000] {
        for mixed in [false, true] {
            let ours = best(|| wheel(pending, mixed));
            let plain = best(|| heap(pending, mixed));
            let delays = if mixed { "mixed" } else { "near" };
            println!("{pending:>9} {delays:<6} {ours:>10.1} {plain:>12.1} {:>7.2}", plain / ours);
        }
    }
}

fn best(f: impl Fn() -> u64) -> f64 {
    let mut least = u64::MAX;
    let mut seen = None;
    for _ in 0..3 {
        let before = user_ns();
        let sum = f();
        least = least.min(user_ns() - before);
        assert!(seen.is_none_or(|s| s == sum), "the same events each time");
        seen = Some(sum);
    }
    least as f64 / EVENTS as f64
}

fn delay(random: &mut RandomStream, mixed: bool) -> u64 {
    let bits = random.bits();
    if mixed && bits & 1 == 1 { 100_000_000 + bits % 200_000_000 } else { bits % 2_000_000 }
}

fn wheel(pending: u64, mixed: bool) -> u64 {
    let mut random = RandomStream::named(1, "hold");
    let mut set = EventSet::default();
    for i in 0..pending {
        set.push(Instant::from_nanos(delay(&mut random, mixed)), i as u32);
    }
    let mut sum = 0_u64;
    for _ in 0..EVENTS {
        let Event { at, target, .. } = set.take(Instant::NEVER).expect("as many as before");
        set.done();
        sum = sum.wrapping_mul(31).wrapping_add(at.as_nanos());
        set.push(Instant::from_nanos(at.as_nanos() + delay(&mut random, mixed)), target);
    }
    sum
}

fn heap(pending: u64, mixed: bool) -> u64 {
    let mut random = RandomStream::named(1, "hold");
    let mut heap = BinaryHeap::new();
    for i in 0..pending {
        heap.push(Reverse((delay(&mut random, mixed), i, i as u32)));
    }
    let mut sum = 0_u64;
    for n in 0..EVENTS {
        let mut top = heap.peek_mut().expect("as many as before");
        let Reverse((at, _, target)) = *top;
        sum = sum.wrapping_mul(31).wrapping_add(at);
        *top = Reverse((at + delay(&mut random, mixed), pending + n, target));
    }
    sum
}

/// CPU time of this process so far, in ns, as the scheduler counts it; 0 where it does not say.
fn user_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0)
}
