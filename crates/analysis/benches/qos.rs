//! The cost of analysing a wireless link: T_n for n = 1,000 slots and 8 states, the window of eq. (3), the windows of
//! four flows of unequal RTT, and the whole plan for them.
//!
//!     cargo bench -p fairpace-lab --bench qos
//!
//! The fastest of many runs: what else the machine does only ever adds. *Slow*: fading that moves to a neighbouring
//! state at most; *dense*: from every state to every other.
#![allow(clippy::disallowed_methods, missing_docs, reason = "a benchmark reads the clock")]

use fairpace_analysis::qos::plan::{Need, Planner};
use fairpace_analysis::qos::{Process, SharedFlow, Start, largest_split, largest_window};
use fairpace_path::{ArqScheme, ArqSpec, Capacity, Channel};
use fairpace_units::Duration;
use std::hint::black_box;

fn main() {
    let error = vec![0.9, 0.7, 0.5, 0.3, 0.1, 0.05, 0.01, 0.0];
    let slow = |i: usize, j: usize| match i.abs_diff(j) {
        0 if i == 0 || i == 7 => 0.95,
        0 => 0.9,
        1 => 0.05,
        _ => 0.0,
    };
    let dense = |i: usize, j: usize| if i == j { 0.65 } else { 0.05 };
    let channel = |p: &dyn Fn(usize, usize) -> f64| Channel {
        transition: (0..8).map(|i| (0..8).map(|j| p(i, j)).collect()).collect(),
        error: error.clone(),
    };
    for (fading, channel) in [("slow", channel(&slow)), ("dense", channel(&dense))] {
        for (name, scheme) in [
            ("persistent", ArqScheme::Persistent),
            ("optimal", ArqScheme::Optimal),
            ("3 retries", ArqScheme::Limited { retries: 3 }),
        ] {
            let process = Process::new(&channel, scheme, 0).expect("a channel");
            let ms = milliseconds(30, || process.successes(1_000, Start::AfterSuccess));
            println!("T_1000, 8 states, {fading:<5} {name:<10} {ms:8.3} ms");
        }
    }
    for (name, channel, scheme) in [
        ("persistent, p_e 0.1", Channel::memoryless(0.1), ArqScheme::Persistent),
        ("optimal, p_e 0.1, memory 0.35", Channel::two_state(0.1, 0.35), ArqScheme::Optimal),
    ] {
        let channel = channel.expect("a channel");
        let ms = milliseconds(300, || {
            let process = Process::new(&channel, scheme, 0).expect("a channel");
            largest_window(&process, 17, 10, 0.01, Start::AfterSuccess)
        });
        println!("channel to W_max, R 17, D 10, {name:<30} {ms:8.3} ms");
        let flow = |r, share| SharedFlow { r, d: 10, bound: 0.01, share };
        let flows = [flow(17, 1.0), flow(20, 1.0), flow(25, 1.0), flow(60, 2.0)];
        let ms = milliseconds(300, || {
            let process = Process::new(&channel, scheme, 0).expect("a channel");
            largest_split(&process, &flows, Start::AfterSuccess)
        });
        println!("channel to windows of four flows, {name:<30} {ms:8.3} ms");
        let link = ArqSpec { scheme, ..ArqSpec::downlink(channel, Capacity::Unlimited) };
        let needs = [(85, 1.0), (100, 1.0), (125, 1.0), (300, 2.0)].map(|(rtt, share)| Need {
            min_rtt: Duration::from_millis(rtt),
            share,
            ..Need::paper()
        });
        let plan = || Planner::new(&link, 0).expect("a link").plan(0.875, &needs).expect("a plan that can be kept");
        let ms = milliseconds(100, plan);
        println!("link to plan for four flows,      {name:<30} {ms:8.3} ms");
    }
}

fn milliseconds<T>(times: usize, mut run: impl FnMut() -> T) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..times {
        let began = std::time::Instant::now();
        black_box(run());
        best = best.min(began.elapsed().as_secs_f64() * 1e3);
    }
    best
}
