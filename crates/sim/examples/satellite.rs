//! The cost of simulating a satellite of many terminals: `cargo run --release -p fairpace-sim --example satellite [N
//! ...]`.
//!
//! N terminals (100, 1,000 and 10,000), on as many carriers of 6.336 Mbit/s as their minimum slots need. From each
//! one telephone line of 16 kbit/s (160 B every 80 ms) to the terminal halfway round: calls of 60 s, then 540 s of
//! silence, exponential. One simulated hour; each N in a process of its own, so that peak memory is its own. The
//! growth exponent is the slope of CPU time to the line before in the log-log plane (1: linear). Ends with 1 if the peak is
//! above 2 GiB.
//!
//! Then one TFRC flow of 256 kbit/s for 30 s between two of five terminals, at each of 100 phases: the run that the
//! experiments of [qsd] repeat 456 times for a curve.
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::process::{Command, ExitCode};
use std::time::Instant as Clock;

use fairpace_control::{Env, FlowParams, Safety};
use fairpace_path::{Capacity, DamaSpec, LinkSpec};
use fairpace_sim::{
    ConstantConfig, ControllerSpec, FlowConfig, HopConfig, MediaConfig, OnOff, Protocol, RouteHop, SimConfig,
    SimReport, Source, run,
};
use fairpace_units::{Bytes, Class, Duration, Instant, Packets, Rate};

const MOST_KB: u64 = 2 << 20;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |s: &String| s.parse().ok();
    match args.first().map(String::as_str) {
        Some("one") => return one(args.get(1).and_then(number).unwrap_or(100)),
        Some("phases") => return phases(),
        _ => {}
    }
    let mut sizes: Vec<u32> = args.iter().filter_map(number).collect();
    if sizes.is_empty() {
        sizes = vec![100, 1_000, 10_000];
    }
    println!(
        "{:>9} {:>8} {:>12} {:>8} {:>8} {:>9} {:>12} {:>9} {:>12} {:>8}",
        "terminals",
        "carriers",
        "packet-hops",
        "wall s",
        "CPU s",
        "us/hop",
        "ms/terminal",
        "peak MB",
        "KB/terminal",
        "growth"
    );
    let (mut before, mut good) = (None, true);
    for size in sizes {
        let Some([carriers, hops, wall, seconds, kb]) = measure(&["one", &size.to_string()]) else {
            return ExitCode::from(2);
        };
        let growth = before.map_or("-".to_owned(), |(n, s): (u32, f64)| {
            format!("{:.2}", (seconds / s).ln() / (f64::from(size) / f64::from(n)).ln())
        });
        println!(
            "{size:>9} {carriers:>8} {hops:>12} {wall:>8.2} {seconds:>8.2} {:>9.3} {:>12.2} {:>9.1} {:>12.1} {growth:>8}",
            seconds * 1e6 / hops,
            seconds * 1e3 / f64::from(size),
            kb / 1024.0,
            kb / f64::from(size),
        );
        before = Some((size, seconds));
        good &= kb <= MOST_KB as f64;
    }
    let Some([runs, hops, _, seconds, kb]) = measure(&["phases"]) else { return ExitCode::from(2) };
    println!(
        "one flow over 30 s: {:.2} ms a run, {:.0} packet-hops in each, {:.1} MB in all; 456 phases x 5 strategies: {:.1} s of one CPU",
        seconds * 1e3 / runs,
        hops / runs,
        kb / 1024.0,
        seconds / runs * 456.0 * 5.0
    );
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs this program again and reads five numbers.
fn measure(args: &[&str]) -> Option<[f64; 5]> {
    let out = Command::new(std::env::current_exe().ok()?).args(args).output().ok()?;
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let numbers: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let found = numbers.try_into().ok();
    if found.is_none() {
        eprintln!("error: {}", String::from_utf8_lossy(&out.stderr));
    }
    found
}

fn one(terminals: u32) -> ExitCode {
    let line = OnOff { on: Duration::from_secs(60), off: Duration::from_secs(540), exponential: true };
    let flows = (0..terminals)
        .map(|i| {
            let (rate, class) = (Rate::kbps(16.0), Class::Normal);
            let calls = ConstantConfig { rate, class, on_off: Some(line), quick_start: None };
            FlowConfig {
                group: "calls".to_owned(),
                start_spread: Duration::from_secs(600),
                route: vec![RouteHop::terminals(1, [i, (i + terminals / 2) % terminals])],
                packet_size: Bytes::new(160),
                ..FlowConfig::new(format!("line-{i}"), Protocol::Constant(calls))
            }
        })
        .collect();
    let config = SimConfig {
        duration: Duration::from_secs(3_600),
        hops: vec![
            HopConfig::path(LinkSpec::default(), LinkSpec::default()),
            HopConfig::satellite(DamaSpec { terminals, ..DamaSpec::large() }),
        ],
        flows,
        ..SimConfig::default()
    };
    let began = Clock::now();
    let Some(report) = checked(config) else { return ExitCode::from(2) };
    let seconds = began.elapsed().as_secs_f64();
    let carriers = report.satellites.first().map_or(0, |s| s.carriers);
    println!("{carriers} {} {seconds} {} {}", report.engine.packet_hops, cpu_s(), peak_kb());
    ExitCode::SUCCESS
}

fn phases() -> ExitCode {
    let env =
        Env { packet_size: Bytes::new(1_316), max_rate: Rate::mbps(2.0), safety: Safety::Paper, ..Env::default() };
    let controller = ControllerSpec::named("tfrc", env).with("rfc", "3448").with("measured_by", "receiver");
    let media = MediaConfig {
        challenge: false,
        source: Source::Constant(Rate::kbps(256.0)),
        send_buffer: Capacity::Packets(Packets::new(128)),
        record_packets: Some(Duration::from_secs(30)),
        ..MediaConfig::new(controller, FlowParams::new(&env))
    };
    let (runs, mut hops, began) = (100, 0, Clock::now());
    for phase in 0..runs {
        let flow = FlowConfig {
            start: Instant::from_secs_f64(f64::from(phase) * 820.363_636e-3 / f64::from(runs)),
            route: vec![RouteHop::terminals(1, [1, 2])],
            packet_size: Bytes::new(1_316),
            ..FlowConfig::new("iptv", Protocol::Media(media.clone()))
        };
        let config = SimConfig {
            duration: Duration::from_secs(31),
            hops: vec![
                HopConfig::path(LinkSpec::default(), LinkSpec::default()),
                HopConfig::satellite(DamaSpec::large()),
            ],
            flows: vec![flow],
            ..SimConfig::default()
        };
        let Some(report) = checked(config) else { return ExitCode::from(2) };
        hops += report.engine.packet_hops;
    }
    println!("{runs} {hops} {} {} {}", began.elapsed().as_secs_f64(), cpu_s(), peak_kb());
    ExitCode::SUCCESS
}

fn checked(config: SimConfig) -> Option<SimReport> {
    run(config).map_err(|error| eprintln!("error: {error}")).ok()
}

/// CPU time of this process so far, as the scheduler counts it; 0 where it does not say.
fn cpu_s() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|ns| ns.parse().ok()).map_or(0.0, |ns: f64| ns / 1e9)
}

/// Peak resident memory of this process; 0 where the system does not say.
fn peak_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|l| l.trim().split(' ').next()).and_then(|kb| kb.parse().ok()).unwrap_or(0)
}
