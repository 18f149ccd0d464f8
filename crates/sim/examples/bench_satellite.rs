//! The simulator over a satellite of many terminals: time and memory of a whole run.
//!
//! `bench_satellite [terminals] [seconds] [small|large]` prints one line of `key=value` pairs (10,000, 3,600,
//! large). Every terminal sends one flow to the terminal on the other side of the list: video calls of
//! 64 kbit/s in packets of 512 bytes under TFRC, which begin at random times and last a minute.

use fairpace_control::{Env, FlowParams, Safety};
use fairpace_path::{Capacity, DamaSpec};
use fairpace_sim::{ControllerSpec, FlowConfig, MediaConfig, Protocol, SimConfig, Source, run};
use fairpace_units::{Bytes, Duration, Instant, Packets, RandomStream, Rate};

fn main() {
    let mut args = std::env::args().skip(1);
    let terminals = args.next().and_then(|s| s.parse().ok()).unwrap_or(10_000);
    let seconds = args.next().and_then(|s| s.parse().ok()).unwrap_or(3_600);
    let frame = args.next().unwrap_or_else(|| "large".to_owned());
    let dama = DamaSpec { terminals, ..if frame == "small" { DamaSpec::small() } else { DamaSpec::large() } };
    let env = Env { safety: Safety::Paper, packet_size: Bytes::new(512), max_rate: Rate::kbps(64.0), ..Env::default() };
    let call = Duration::from_secs(60);
    let mut random = RandomStream::named(1, "bench.start");
    let flows = (0..terminals).map(|i| {
        let start = Instant::from_secs_f64(random.uniform() * (seconds as f64 - 60.0).max(0.0));
        let media = MediaConfig {
            challenge: false,
            source: Source::Constant(Rate::kbps(64.0)),
            send_buffer: Capacity::Packets(Packets::new(128)),
            ..MediaConfig::new(ControllerSpec::named("tfrc", env), FlowParams::new(&env))
        };
        FlowConfig {
            group: "calls".to_owned(),
            start,
            stop: Some(start + call),
            terminals: Some([i, (i + terminals / 2) % terminals]),
            packet_size: Bytes::new(512),
            ..FlowConfig::new(format!("call{i}"), Protocol::Media(media))
        }
    });
    let config = SimConfig {
        duration: Duration::from_secs(seconds),
        flows: flows.collect(),
        dama: Some(dama),
        ..SimConfig::default()
    };
    let report = match run(config) {
        Ok(report) => report,
        Err(error) => {
            eprintln!("error: {error}");
            std::process::exit(2);
        }
    };
    let satellite = report.satellite.unwrap_or_default();
    let sent: u64 = satellite.terminals.iter().map(|t| t.whole.transmitted.packets.get()).sum();
    println!(
        "frame={frame} terminals={terminals} seconds={seconds} carriers={} packets={sent} utilization={:.4} events={} peak_kb={}",
        satellite.carriers,
        satellite.utilization,
        report.engine.events,
        peak_kb(),
    );
}

/// Peak resident memory of this process; 0 where the system does not say.
fn peak_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|l| l.trim().split(' ').next()).and_then(|kb| kb.parse().ok()).unwrap_or(0)
}
