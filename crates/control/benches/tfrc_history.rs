//! The cost of TFRC's loss history: a packet in order, a new loss event, a late packet, the whole receiver.
//! Run with `cargo bench -p fairpace-control --bench tfrc_history`.

use fairpace_control::RateHeader;
use fairpace_control::tfrc::history::{Arrivals, Discounting, HistoryParams, MOST_HOLES};
use fairpace_control::tfrc::receiver::{RatedArrival, ReceiverParams, TfrcReceiver};
use fairpace_units::{Bytes, Duration, Ecn, Instant};
use std::hint::black_box;

const R: Duration = Duration::from_millis(100);
const ROUNDS: u64 = 2_000_000;

fn main() {
    let at = |seq: u64| Instant::from_nanos(seq * 1_000_000);
    for discounting in [Discounting::Off, Discounting::ToQuarter] {
        println!("discounting {discounting:?}");
        let params = HistoryParams { discounting, short_packets: false };

        // With as many holes as are remembered, so that each step is as dear as it can be.
        let mut full = Arrivals::new(&params);
        full.on_packet(0, at(0), R, false);
        let mut next = 1;
        for _ in 0..MOST_HOLES + 10 {
            next += 200;
            for seq in [next, next + 1, next + 2] {
                full.on_packet(seq, at(seq), R, false);
            }
            next += 3;
        }

        let mut a = full.clone();
        measure("packet in order", ROUNDS, |i| {
            black_box(a.on_packet(next + i, at(next + i), R, false));
        });
        measure("p", ROUNDS, |_| {
            black_box(a.events().loss_event_rate());
        });

        let mut a = full.clone();
        let ns = measure("200 packets, one lost: a new event", ROUNDS / 200, |i| {
            for seq in 1..200 {
                a.on_packet(next + 200 * i + seq, at(next + 200 * i + seq), R, false);
            }
        });
        println!("{:>44} {:9.1} ns per packet", "", ns / 199.0);

        let mut a = full.clone();
        // The newest of the wide holes is filled from its end, so that it never falls into two.
        let newest = next - 4;
        measure("a late packet, 256 holes remembered", 150, |i| {
            black_box(a.on_packet(newest - i, at(next), R, false));
        });
    }

    let mut receiver = TfrcReceiver::new(ReceiverParams::default());
    let mut reports = 0_u64;
    measure("receiver: packet, one in 1,000 lost, poll", ROUNDS, |i| {
        if i % 1_000 != 999 {
            let header = RateHeader { sent_at: at(i), rtt: Some(R) };
            let arrival = RatedArrival { seq: i, size: Bytes::new(1_000), header, ecn: Ecn::NotEct };
            receiver.on_packet(at(i), &arrival);
            reports += u64::from(receiver.poll(at(i)).is_some());
        }
    });
    assert!(reports > 0);
}

/// Nanoseconds per step, of the best of ten parts: the machine may have other work.
// A benchmark is a driver: it may read the clock.
#[allow(clippy::disallowed_methods)]
fn measure(what: &str, rounds: u64, mut step: impl FnMut(u64)) -> f64 {
    let part = rounds / 10;
    let mut best = f64::INFINITY;
    for begin in (0..10).map(|n| n * part) {
        let began = std::time::Instant::now();
        for i in begin..begin + part {
            step(i);
        }
        best = best.min(began.elapsed().as_nanos() as f64 / part as f64);
    }
    println!("{what:>44} {best:9.1} ns");
    best
}
