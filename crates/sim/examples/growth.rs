//! The cost of a run as its work grows by decades: `cargo run --release -p fairpace-sim --example growth`.
//!
//! `growth rate newreno|sack|sack-linux MBPS SECONDS`: one TCP flow over one link of that rate, RTT 100 ms, a queue of
//! one bandwidth-delay product, so that slow start loses half a window at once.
//! `growth flows N HOPS`: N NewReno flows, each with four access links of its own and 1 Mbit/s of the bottleneck, for so
//! long that there are about HOPS packet-hops. `growth lossy N HOPS`: each access link loses one packet in 10,000.
//! `growth short tcp|constant|media N`: N flows of ten packets, one after another, with rows of series each second; flows are told as they come, and rows and
//! reports taken as they are made. `growth listed tcp|constant|media N`: the same flows, all configured before the run and reported behind it.
//!
//! Prints one line of `key=value` pairs. Times are CPU time of this thread: the build of the network apart, the run as a
//! whole, and of its steps of 100 ms simulated time the mean and the worst (`flows` and `lossy` go in one step, as a run does). `--runs K` repeats the run, and of each step
//! the least time counts: the work is the same each time, and what is above that is the machine's. `--build` ends when
//! the network is built, so that a counter of instructions can tell its share.

use fairpace_control::{Env, FlowParams, Safety};
use fairpace_path::{Capacity, DelayModel, LinkSpec, LossModel, QueueModel, RateModel};
use fairpace_sim::tcp::{TcpParams, TcpSource, TcpVariant};
use fairpace_sim::{
    Access, Coming, ConstantConfig, ControllerSpec, FlowConfig, FlowCounts, HopConfig, MediaConfig, Network, Protocol,
    SimConfig, Source,
};
use fairpace_units::{Bytes, Class, Duration, Instant, Packets, Probability, Rate};

/// The distance of two looks at the clock, in simulated time.
const STEP: Duration = Duration::from_millis(100);
const PACKET: Bytes = Bytes::new(1_000);
const USAGE: &str = "usage: growth [--runs K] [--build] rate newreno|sack|sack-linux MBPS SECONDS
       growth [--runs K] [--build] flows|lossy N HOPS
       growth [--runs K] [--build] short|listed tcp|constant|media N";

fn main() {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let build_only = take(&mut words, "--build", false).is_some();
    let runs = take(&mut words, "--runs", true).and_then(|k| k.parse().ok()).unwrap_or(1_u32);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let Some(config) = config_of(&words) else {
        eprintln!("{USAGE}");
        std::process::exit(2);
    };
    let (flows, duration) = (number_of_flows(&words, &config), config.duration);
    let mut config = Some(config);
    let before = resident_kb("VmRSS:");
    let (mut steps, mut least_build) = (Vec::new(), u64::MAX);
    for run in 0..runs.max(1) {
        // Dropped before the run, as a run does: tens of thousands of flows are large.
        let Some(config) = config.take().or_else(|| config_of(&words)) else { return };
        let begun = cpu_ns();
        let mut network = match Network::new(&config) {
            Ok(network) => network,
            Err(error) => {
                eprintln!("error: {error}");
                std::process::exit(2);
            }
        };
        least_build = least_build.min(cpu_ns() - begun);
        drop(config);
        if build_only {
            println!("flows={flows} build_ns={least_build}");
            return;
        }
        let (end, mut now, mut step) = (Instant::ZERO + duration, Instant::ZERO, 0);
        let step_length = if words[0] == "flows" || words[0] == "lossy" { duration } else { STEP };
        let mut last = cpu_ns();
        let (mut rows, mut over) = (0, FlowCounts::default());
        while now < end {
            now = end.min(now + step_length);
            network.advance(now);
            rows += network.take_series().len();
            network.take_ended().iter().for_each(|(_, flow)| count(&mut over, &flow.whole));
            let at = cpu_ns();
            match steps.get_mut(step) {
                Some(least) => *least = (at - last).min(*least),
                None => steps.push(at - last),
            }
            (last, step) = (at, step + 1);
        }
        let run_kb = resident_kb("VmHWM:");
        let report = network.into_report();
        if run + 1 < runs {
            continue;
        }
        let total: u64 = steps.iter().sum();
        let worst = steps.iter().copied().max().unwrap_or(0);
        let hops = report.engine.packet_hops.max(1);
        report.flows.iter().for_each(|flow| count(&mut over, &flow.whole));
        println!(
            "case={} flows={flows} hops={hops} events={} max_pending={} sent={} retransmitted={} rows={} build_ns={least_build} \
             run_ns={total} ns_per_hop={:.1} mean_step_ns={} worst_step_ns={worst} begin_kb={before} run_kb={run_kb} peak_kb={}",
            words[0],
            report.engine.events,
            report.engine.max_pending,
            over.sent.packets.get(),
            over.retransmitted.packets.get(),
            rows + report.series.len(),
            total as f64 / hops as f64,
            total / steps.len().max(1) as u64,
            resident_kb("VmHWM:"),
        );
    }
}

/// The number of flows, also of those that come.
fn number_of_flows(words: &[&str], config: &SimConfig) -> usize {
    match words {
        ["short", _, flows] => flows.parse().unwrap_or_default(),
        _ => config.flows.len(),
    }
}

fn count(sum: &mut FlowCounts, flow: &FlowCounts) {
    sum.sent.packets += flow.sent.packets;
    sum.retransmitted.packets += flow.retransmitted.packets;
}

/// Takes an option out, with the word behind it if it has a value.
fn take(words: &mut Vec<String>, name: &str, has_value: bool) -> Option<String> {
    let at = words.iter().position(|word| word == name)?;
    let option = words.remove(at);
    if has_value && at < words.len() { Some(words.remove(at)) } else { Some(option) }
}

fn config_of(words: &[&str]) -> Option<SimConfig> {
    match words {
        ["rate", variant, mbps, seconds] => one_flow(variant, mbps.parse().ok()?, seconds.parse().ok()?),
        ["flows", flows, hops] => Some(many(flows.parse().ok()?, hops.parse().ok()?, LossModel::None)),
        ["lossy", flows, hops] => {
            let loss = LossModel::Bernoulli(Probability::new(1e-4).ok()?);
            Some(many(flows.parse().ok()?, hops.parse().ok()?, loss))
        }
        ["short", kind, flows] => short(kind, flows.parse().ok()?, false),
        ["listed", kind, flows] => short(kind, flows.parse().ok()?, true),
        _ => None,
    }
}

fn link(rate: Rate, delay: Duration, queue: u64) -> LinkSpec {
    LinkSpec {
        rate: RateModel::Fixed(rate),
        delay: DelayModel::constant(delay),
        queue: QueueModel::DropTail { capacity: Capacity::Packets(Packets::new(queue)) },
        ..LinkSpec::default()
    }
}

fn one_flow(variant: &str, mbps: f64, seconds: u64) -> Option<SimConfig> {
    let (variant, linux) = match variant {
        "newreno" => (TcpVariant::NewReno, false),
        "sack" => (TcpVariant::Sack, false),
        "sack-linux" => (TcpVariant::Sack, true),
        _ => return None,
    };
    let product = (mbps * 1e6 * 0.1 / 8.0 / PACKET.as_f64()) as u64;
    let params = TcpParams { variant, linux, max_window: Packets::new(10_000_000), ..TcpParams::default() };
    let path = |queue| link(Rate::mbps(mbps), Duration::from_millis(50), queue);
    Some(SimConfig {
        duration: Duration::from_secs(seconds),
        hops: vec![HopConfig::path(path(product.max(10)), path(10 * product.max(10)))],
        flows: vec![FlowConfig::new("tcp", Protocol::Tcp(params, TcpSource::Ftp))],
        ..SimConfig::default()
    })
}

/// 125 packets/s and flow, six hops for a packet and its acknowledgement.
fn many(flows: u32, hops: u64, loss: LossModel) -> SimConfig {
    let access = Some(LinkSpec { loss, ..link(Rate::mbps(100.0), Duration::from_millis(1), 10_000) });
    let rate = Rate::mbps(f64::from(flows));
    let queue = u64::from(flows) * 10;
    let seconds = hops as f64 / (f64::from(flows) * 125.0 * 6.0);
    let spread = seconds.min(1.0);
    SimConfig {
        duration: Duration::from_secs_f64(seconds),
        hops: vec![HopConfig::path(
            link(rate, Duration::from_millis(48), queue),
            link(rate, Duration::from_millis(48), queue),
        )],
        flows: (0..flows)
            .map(|i| FlowConfig {
                group: "tcp".to_owned(),
                start: Instant::from_secs_f64(spread * f64::from(i) / f64::from(flows)),
                access: Access {
                    forward_in: access.clone(),
                    forward_out: access.clone(),
                    back_in: access.clone(),
                    back_out: access.clone(),
                },
                ..FlowConfig::new(format!("tcp{i}"), Protocol::Tcp(TcpParams::default(), TcpSource::Ftp))
            })
            .collect(),
        ..SimConfig::default()
    }
}

/// A flow each 20 ms, ten packets of it within 10 ms, or one window after another.
fn short(kind: &str, flows: u32, listed: bool) -> Option<SimConfig> {
    let apart = Duration::from_millis(20);
    let rate = Rate::mbps(8.0);
    let protocol = match kind {
        "tcp" => Protocol::Tcp(TcpParams::default(), TcpSource::Transfer(Bytes::new(10 * PACKET.get()))),
        "constant" => {
            Protocol::Constant(ConstantConfig { rate, class: Class::Normal, on_off: None, quick_start: None })
        }
        "media" => {
            let env = Env { safety: Safety::Paper, packet_size: PACKET, ..Env::default() };
            Protocol::Media(MediaConfig {
                challenge: false,
                source: Source::Constant(rate),
                send_buffer: Capacity::Packets(Packets::new(2)),
                ..MediaConfig::new(ControllerSpec::named("tfrc", env), FlowParams::new(&env))
            })
        }
        _ => return None,
    };
    let ends = kind != "tcp";
    let each = move || {
        let protocol = protocol.clone();
        (0..flows).map(move |i| {
            let start = Instant::ZERO + apart * i;
            FlowConfig {
                group: "short".to_owned(),
                start,
                stop: ends.then(|| start + Duration::from_millis(10)),
                ..FlowConfig::new(format!("short{i}"), protocol.clone())
            }
        })
    };
    Some(SimConfig {
        duration: apart * flows + Duration::from_secs(1),
        hops: vec![HopConfig::path(
            link(Rate::mbps(100.0), Duration::from_millis(5), 1_000),
            link(Rate::mbps(100.0), Duration::from_millis(5), 1_000),
        )],
        flows: if listed { each().collect() } else { Vec::new() },
        coming: (!listed).then(|| Coming::new(each)),
        sample: Some(Duration::from_secs(1)),
        ..SimConfig::default()
    })
}

/// A number of kB that the system says of this process; 0 where it does not.
fn resident_kb(which: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(which));
    line.and_then(|l| l.trim().split(' ').next()).and_then(|kb| kb.parse().ok()).unwrap_or(0)
}

/// CPU time of this thread so far, in ns; 0 where the system has no such clock.
fn cpu_ns() -> u64 {
    let clock = nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID;
    nix::time::clock_gettime(clock).map_or(0, |t| Duration::from(t).as_nanos() as u64)
}
