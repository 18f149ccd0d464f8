//! The cost of a satellite's return link by its size: 100, 1,000 and 10,000 terminals, all of them sending.
//!
//!     cargo bench -p fairpace-path --bench dama
//!
//! Each terminal sends 1,316-byte packets at random, ten of them 0.66 s apart on average and then none for a
//! minute: about a tenth of the terminals are active at a time, and every carrier is awake. Printed per
//! terminal: processor time per simulated second, and the peak memory of the link with what is in it; the growth
//! exponent is the slope of the total over the number of terminals in the log-log plane (1: linear). Then
//! the same with everyone silent but one. The time includes the bench's own heap of arrivals.
#![allow(clippy::disallowed_methods, missing_docs, reason = "a benchmark reads the clock")]

use fairpace_path::{Dama, DamaSpec, Plain};
use fairpace_units::{Bytes, Duration, Instant, RandomStream};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::black_box;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts what is allocated.
struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

#[allow(unsafe_code, reason = "an allocator is; it only counts")]
// SAFETY: every call is passed on to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = NOW.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(now, Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const SIZES: [u32; 3] = [100, 1_000, 10_000];
/// The fastest counts: the others shared the machine.
const ROUNDS: usize = 3;

struct Cost {
    seconds: f64,
    bytes: f64,
    packets: u64,
}

fn main() {
    println!(
        "{:<34} {:>10} {:>16} {:>14} {:>12} {:>12}",
        "return link", "terminals", "us/terminal/s", "B/terminal", "packets/s", "1 h takes"
    );
    for (name, spec, active) in [
        ("large frame, all active", DamaSpec::large(), true),
        ("small frame, all active", DamaSpec::small(), true),
        ("large frame, one active", DamaSpec::large(), false),
        ("small frame, one active", DamaSpec::small(), false),
    ] {
        let costs = SIZES.map(|terminals| {
            // About as much work for each size, at least two minutes.
            let simulated =
                (if active { 600_000.0 } else { 12_000_000.0 } / f64::from(terminals)).clamp(120.0, 3_600.0);
            let spec = DamaSpec { terminals, ..spec.clone() };
            let rounds = (0..ROUNDS).map(|_| run(&spec, simulated, active));
            let cost = rounds.min_by(|a, b| a.seconds.total_cmp(&b.seconds)).expect("a round");
            let each = f64::from(terminals);
            println!(
                "{name:<34} {terminals:>10} {:>16.3} {:>14.0} {:>12.0} {:>10.2} s",
                cost.seconds / simulated / each * 1e6,
                cost.bytes / each,
                cost.packets as f64 / simulated,
                cost.seconds / simulated * 3_600.0
            );
            (each.ln(), (cost.seconds / simulated).ln(), cost.bytes.ln())
        });
        println!(
            "{:<34} growth exponent: time {:.2}, memory {:.2}",
            "",
            slope(costs.map(|c| (c.0, c.1))),
            slope(costs.map(|c| (c.0, c.2)))
        );
    }
}

/// Least squares.
fn slope(points: [(f64, f64); 3]) -> f64 {
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / 3.0;
    let (x, y) = (mean(|p| p.0), mean(|p| p.1));
    points.iter().map(|p| (p.0 - x) * (p.1 - y)).sum::<f64>() / points.iter().map(|p| (p.0 - x).powi(2)).sum::<f64>()
}

/// Drives the link for that many simulated seconds.
fn run(spec: &DamaSpec, simulated: f64, active: bool) -> Cost {
    let end = Instant::from_secs_f64(simulated);
    let mut random = RandomStream::named(1, "bench");
    let sources = if active { spec.terminals } else { 1 };
    let mut arrivals: BinaryHeap<Reverse<(Instant, u32)>> = (0..sources)
        .map(|terminal| Reverse((Instant::ZERO + random.exponential(Duration::from_secs(1)), terminal)))
        .collect();
    let before = NOW.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let mut dama = Dama::new(spec, 1, "bench").expect("a link");
    let mut packets = 0;
    let start = cpu_seconds();
    while let Some(&Reverse((at, terminal))) = arrivals.peek()
        && at < end
    {
        while dama.next() <= at {
            let now = dama.next();
            while let Some(packet) = dama.pop(now) {
                black_box(packet);
                packets += 1;
            }
        }
        dama.push(at, terminal, Plain::new(Bytes::new(1_316)));
        // 16 kbit/s: 658 ms a packet; a tenth of the time.
        let gap = if random.uniform() < 0.9 {
            random.exponential(Duration::from_millis(658))
        } else {
            Duration::from_secs(60)
        };
        arrivals.pop();
        arrivals.push(Reverse((at + gap, terminal)));
    }
    dama.advance(end);
    // The kernel counts in steps.
    let seconds = (cpu_seconds() - start).max(1e-3);
    let bytes = (PEAK.load(Ordering::Relaxed) - before) as f64;
    Cost { seconds, bytes, packets }
}

/// The processor time of this process, from the kernel; the wall clock's where it does not say.
fn cpu_seconds() -> f64 {
    static BEGAN: LazyLock<std::time::Instant> = LazyLock::new(std::time::Instant::now);
    let schedstat = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let nanos: Option<f64> = schedstat.split(' ').next().and_then(|nanos| nanos.parse().ok());
    nanos.map_or_else(|| BEGAN.elapsed().as_secs_f64(), |nanos| nanos / 1e9)
}
