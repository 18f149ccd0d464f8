//! Our paced sending beside a bare `clock_nanosleep` loop: lateness at 1,000 and 10,000 packets/s.
//!
//! `cargo run --release -p fairpace-net --example pacing [SECONDS]`, 2 s each by default. The goal:
//! p50 and p99 within 1.25 times of the bare loop's.

use fairpace_net::pacing::compare;
use std::time::Duration;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let seconds: u64 = std::env::args().nth(1).map_or(Ok(2), |s| s.parse())?;
    println!("packets/s  method            p50 us   p99 us  p99.9 us   max us    CPU");
    for pps in [1_000, 10_000] {
        let c = compare(pps, Duration::from_secs(seconds), Duration::from_millis(100))?;
        for (name, s, cpu) in [("ours", c.ours, c.ours_cpu), ("clock_nanosleep", c.bare, c.bare_cpu)] {
            let us = |d: Duration| d.as_secs_f64() * 1e6;
            println!(
                "{pps:>9}  {name:<16} {:>7.1} {:>8.1} {:>9.1} {:>8.1} {:>5.1} %",
                us(s.p50),
                us(s.p99),
                us(s.p999),
                us(s.max),
                cpu * 100.0
            );
        }
        println!("{pps:>9}  ours / bare      {:>7.2} {:>8.2}", c.p50_ratio(), c.p99_ratio());
    }
    Ok(())
}
