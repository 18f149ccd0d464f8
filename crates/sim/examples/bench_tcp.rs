//! The simulator's half of `bench/run`: the same work as `bench/ns2.tcl`.
//!
//! `bench_tcp db|sat [seed] [seconds]` prints one line of `key=value` pairs. The time is taken by the
//! caller, who sees this process as a whole.
//!
//! Common: NewReno, every segment acknowledged, 1,000 B on the wire, initial window 2, starts
//! evenly over the first second, 3 hops each way, access delay 1 ms on each side.
//! - `db`: 100 flows, bottleneck 100 Mbit/s, 48 ms, drop-tail 1,000, access 1 Gbit/s, 100 s.
//! - `sat`: 10 flows, bottleneck 10.4 Mbit/s, 273 ms, drop-tail 50, loss 1e-3, access 100 Mbit/s, 1,000 s.

use fairpace_path::{Capacity, DelayModel, LinkSpec, LossModel, QueueModel, RateModel};
use fairpace_sim::tcp::{TcpParams, TcpSource};
use fairpace_sim::{Access, FlowConfig, HopConfig, Protocol, SimConfig, run};
use fairpace_units::{Duration, Instant, Packets, Probability, Rate};

fn main() {
    let mut args = std::env::args().skip(1);
    let case = args.next().unwrap_or_default();
    let seed = args.next().and_then(|s| s.parse().ok()).unwrap_or(1);
    let seconds = args.next().and_then(|s| s.parse().ok());
    let config = match case.as_str() {
        "db" => case_of(seed, 100, seconds.unwrap_or(100), Rate::mbps(100.0), 48, 1_000, 0.0, Rate::mbps(1_000.0)),
        "sat" => case_of(seed, 10, seconds.unwrap_or(1_000), Rate::mbps(10.4), 273, 50, 1e-3, Rate::mbps(100.0)),
        _ => {
            eprintln!("usage: bench_tcp db|sat [seed] [seconds]");
            std::process::exit(2);
        }
    };
    let report = match run(config) {
        Ok(report) => report,
        Err(error) => {
            eprintln!("error: {error}");
            std::process::exit(2);
        }
    };
    let (forward, back) = (&report.links[0].whole, &report.links[1].whole);
    let sent: u64 = report.flows.iter().map(|f| f.whole.sent.packets.get()).sum();
    let again: u64 = report.flows.iter().map(|f| f.whole.retransmitted.packets.get()).sum();
    let e = report.engine;
    println!(
        "case={case} forward={} back={} drops={} hops={} events={} timers={} idle={} max_pending={} retransmitted={:.4} peak_kb={}",
        forward.transmitted.packets.get(),
        back.transmitted.packets.get(),
        forward.total().dropped_in_all().packets.get(),
        e.packet_hops,
        e.events,
        e.timer_events,
        e.idle_events,
        e.max_pending,
        again as f64 / sent as f64,
        peak_kb(),
    );
}

/// Peak resident memory of this process; 0 where the system does not say.
fn peak_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|l| l.trim().split(' ').next()).and_then(|kb| kb.parse().ok()).unwrap_or(0)
}

#[allow(clippy::too_many_arguments)] // two calls, side by side, above
fn case_of(
    seed: u64,
    flows: u32,
    seconds: u64,
    rate: Rate,
    delay_ms: u64,
    queue: u64,
    loss: f64,
    access_rate: Rate,
) -> SimConfig {
    let link = |rate, delay_ms, queue, loss| LinkSpec {
        rate: RateModel::Fixed(rate),
        delay: DelayModel::constant(Duration::from_millis(delay_ms)),
        queue: QueueModel::DropTail { capacity: Capacity::Packets(Packets::new(queue)) },
        loss,
        ..LinkSpec::default()
    };
    let error = Probability::new(loss).map_or(LossModel::None, LossModel::Bernoulli);
    let access = Some(link(access_rate, 1, 10_000, LossModel::None));
    let flows = (0..flows)
        .map(|i| FlowConfig {
            start: Instant::from_secs_f64(f64::from(i) / f64::from(flows)),
            access: Access {
                forward_in: access.clone(),
                forward_out: access.clone(),
                back_in: access.clone(),
                back_out: access.clone(),
            },
            ..FlowConfig::new(format!("tcp{i}"), Protocol::Tcp(TcpParams::default(), TcpSource::Ftp))
        })
        .collect();
    SimConfig {
        seed,
        duration: Duration::from_secs(seconds),
        hops: vec![HopConfig::path(
            link(rate, delay_ms, queue, if loss > 0.0 { error } else { LossModel::None }),
            link(rate, delay_ms, queue, LossModel::None),
        )],

        flows,
        ..SimConfig::default()
    }
}
