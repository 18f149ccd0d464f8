//! Work whose instructions per packet-hop `bench/run` counts, beside `bench_tcp`'s dumbbell and satellite path:
//! `hop_cost dama|radio|media SECONDS` prints the number of packet-hops.
//!
//! - `dama`: 100 terminals of a satellite's return link, from each a line of 16 kbit/s.
//! - `radio`: one AIMD flow with a window of 20 over 5 ms slots, 10 % of them in error.
//! - `media`: ten flows each of RCS and TFRC over 20 Mbit/s, RTT 100 ms, drop-tail 100.

use std::process::ExitCode;

use fairpace_control::{Env, FlowParams, Safety};
use fairpace_path::{ArqSpec, Capacity, Channel, DamaSpec, DelayModel, LinkSpec, QueueModel, RateModel};
use fairpace_sim::{
    ConstantConfig, ControllerSpec, FlowConfig, HopConfig, MediaConfig, Protocol, RadioConfig, RouteHop, SimConfig, run,
};
use fairpace_units::{Bytes, Class, Duration, Packets, Rate};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let config = match words.as_slice() {
        [case, seconds] => seconds.parse().ok().and_then(|seconds| config_of(case, Duration::from_secs(seconds))),
        _ => None,
    };
    let Some(config) = config else {
        eprintln!("usage: hop_cost dama|radio|media SECONDS");
        return ExitCode::from(2);
    };
    match run(config) {
        Ok(report) => println!("hops={} events={}", report.engine.packet_hops, report.engine.events),
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

fn config_of(case: &str, duration: Duration) -> Option<SimConfig> {
    let (hops, flows) = match case {
        "dama" => dama(),
        "radio" => radio()?,
        "media" => media(),
        _ => return None,
    };
    Some(SimConfig { duration, hops, flows, ..SimConfig::default() })
}

type Work = (Vec<HopConfig>, Vec<FlowConfig>);

fn dama() -> Work {
    let terminals = 100;
    let calls = ConstantConfig { rate: Rate::kbps(16.0), class: Class::Normal, on_off: None, quick_start: None };
    let line = |i| FlowConfig {
        start_spread: Duration::from_secs(1),
        route: vec![RouteHop::terminals(0, [i, (i + terminals / 2) % terminals])],
        packet_size: Bytes::new(160),
        ..FlowConfig::new(format!("line-{i}"), Protocol::Constant(calls))
    };
    let satellite = HopConfig::satellite(DamaSpec { terminals, ..DamaSpec::large() });
    (vec![satellite], (0..terminals).map(line).collect())
}

fn radio() -> Option<Work> {
    let wire = |us| LinkSpec { delay: DelayModel::constant(Duration::from_micros(us)), ..LinkSpec::default() };
    let radio = RadioConfig {
        downlink: ArqSpec::downlink(Channel::memoryless(0.1).ok()?, Capacity::Packets(Packets::new(20))),
        uplink: Some(LinkSpec { rate: RateModel::Fixed(Rate::kbps(100.0)), ..LinkSpec::default() }),
        base_station: None,
    };
    let env = Env { packet_size: Bytes::new(125), safety: Safety::Paper, ..Env::default() };
    let aimd = MediaConfig::new(ControllerSpec::named("aimd", env).with("rwnd", "20"), FlowParams::new(&env));
    let flow = FlowConfig {
        route: vec![RouteHop::links(0), RouteHop::user(1, 0)],
        packet_size: Bytes::new(125),
        ..FlowConfig::new("aimd", Protocol::Media(aimd))
    };
    Some((vec![HopConfig::path(wire(35_000), wire(41_800)), HopConfig::radio(radio)], vec![flow]))
}

fn media() -> Work {
    let link = LinkSpec {
        rate: RateModel::Fixed(Rate::mbps(20.0)),
        delay: DelayModel::constant(Duration::from_millis(50)),
        queue: QueueModel::DropTail { capacity: Capacity::Packets(Packets::new(100)) },
        ..LinkSpec::default()
    };
    let flow = |scheme: &str, i: u32| {
        let env = Env::default();
        let media = MediaConfig::new(ControllerSpec::named(scheme, env), FlowParams::new(&env));
        FlowConfig {
            start_spread: Duration::from_secs(1),
            packet_size: env.packet_size,
            ..FlowConfig::new(format!("{scheme}-{i}"), Protocol::Media(media))
        }
    };
    let flows = (0..10).flat_map(|i| [flow("rcs", i), flow("tfrc", i)]).collect();
    (vec![HopConfig::path(link.clone(), link)], flows)
}
