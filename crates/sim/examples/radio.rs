//! One AIMD flow over the radio of [aimd §IV]: its delay outage beside eq. (3), and what planning windows anew drops.
//! The tables of `docs/sim/README.md`, "The radio".
//!
//! `cargo run --release -p fairpace-sim --example radio`: a few seconds. Exits with 1 if an outage is more than four
//! standard deviations from eq. (3)'s, or if anything is dropped.

use fairpace_control::{Env, FlowParams, Safety};
use fairpace_path::{ArqSpec, Capacity, Channel, DelayModel, LinkSpec, RateModel};
use fairpace_sim::{
    BaseStation, BaseStationSpec, ControllerSpec, FlowConfig, HopConfig, MediaConfig, Member, Protocol, RadioConfig,
    RouteHop, SimConfig, run,
};
use fairpace_units::{Bytes, Duration, Instant, Packets, Rate};

/// R and D in slots, and the slot.
const R: u32 = 17;
const D: u32 = 10;
const SLOT: Duration = Duration::from_millis(5);

type Error = Box<dyn std::error::Error>;

fn main() -> Result<(), Error> {
    let mut good = true;
    println!("| rwnd, p_e | outage by eq. (3) | by one-way delay | by RTT | packets per slot |");
    println!("| --- | --- | --- | --- | --- |");
    for (rwnd, p_e) in [(19, 0.1), (20, 0.1), (21, 0.1), (22, 0.1), (24, 0.02), (15, 0.1)] {
        let mut config = topology(p_e, u64::from(rwnd), None)?;
        let mut flow = aimd("aimd", &rwnd.to_string());
        flow.delay_bound = Some(config.delay_bound(&flow, SLOT * D));
        config.flows.push(flow);
        (config.duration, config.warmup) = (Duration::from_secs(2_000), Duration::from_secs(5));
        let report = run(config)?;
        let flow = &report.flows[0];
        let received = flow.measured.received.packets.as_f64();
        let by_owd = flow.measured.outage.packets.as_f64() / received;
        let by_rtt = flow.measured.rtt_outage as f64 / flow.measured.rtt_samples as f64;
        let expected = fewer_successes(R + D, rwnd, p_e);
        // Outages come in clusters of ten or less.
        let deviation = (10.0 * expected / received).sqrt();
        good &= (by_owd - expected).abs() < 4.0 * deviation && (by_rtt - expected).abs() < 4.0 * deviation;
        let per_slot = flow.throughput_pps() * SLOT.as_secs_f64();
        println!("| {rwnd}, {:.0} % | {expected:.5} | {by_owd:.5} | {by_rtt:.5} | {per_slot:.4} |", p_e * 100.0);
    }

    println!("\n| planned anew every 0.7 to 2 s: flows at a time, p_e | packets | dropped |\n| --- | --- | --- |");
    for (beside, p_e) in [(1, 0.0), (3, 0.0), (1, 0.02), (3, 0.02), (1, 0.1), (3, 0.1)] {
        let mut config = topology(p_e, 1, Some(BaseStationSpec::new(|| Box::new(Equal))))?;
        config.flows.push(aimd("stays", "none"));
        for (i, k) in (1..=beside).flat_map(|i| (0..50).map(move |k| (i, k))) {
            let start = Instant::ZERO + Duration::from_millis(4_000 * k + 700 * i);
            let stop = Some(start + Duration::from_secs(2));
            config.flows.push(FlowConfig { start, stop, ..aimd(&format!("comes-{i}-{k}"), "none") });
        }
        config.duration = Duration::from_secs(200);
        let report = run(config)?;
        let sent: u64 = report.flows.iter().map(|f| f.whole.sent.packets.get()).sum();
        let dropped: u64 = report.flows.iter().map(|f| f.whole.dropped_in_all().packets.get()).sum();
        good &= dropped == 0;
        println!("| {}, {:.0} % | {sent} | {dropped} |", beside + 1, p_e * 100.0);
    }
    if good { Ok(()) } else { Err("an outage is too far off, or packets were dropped".into()) }
}

/// 20 packets in equal parts.
struct Equal;

impl BaseStation for Equal {
    fn plan(&mut self, _: Instant, members: &[Member]) -> Vec<u32> {
        members.iter().map(|_| 20 / members.len() as u32).collect()
    }
}

/// 35 ms there, a slot, 3.2 ms of uplink and 41.8 ms back: R = 17 slots.
fn topology(p_e: f64, buffer: u64, base_station: Option<BaseStationSpec>) -> Result<SimConfig, Error> {
    let wire = |us| LinkSpec { delay: DelayModel::constant(Duration::from_micros(us)), ..LinkSpec::default() };
    let buffer = Capacity::Packets(Packets::new(buffer));
    Ok(SimConfig {
        hops: vec![
            HopConfig::path(wire(35_000), wire(41_800)),
            HopConfig::radio(RadioConfig {
                downlink: ArqSpec::downlink(Channel::memoryless(p_e)?, buffer),
                uplink: Some(LinkSpec { rate: RateModel::Fixed(Rate::kbps(100.0)), ..LinkSpec::default() }),
                base_station,
            }),
        ],

        ..SimConfig::default()
    })
}

fn aimd(name: &str, rwnd: &str) -> FlowConfig {
    let env = Env { packet_size: Bytes::new(125), safety: Safety::Paper, ..Env::default() };
    let media = MediaConfig::new(ControllerSpec::named("aimd", env).with("rwnd", rwnd), FlowParams::new(&env));
    FlowConfig {
        route: vec![RouteHop::links(0), RouteHop::user(1, 0)],
        packet_size: Bytes::new(125),
        ..FlowConfig::new(name, Protocol::Media(media))
    }
}

/// Eq. (3) without memory: Pr{fewer than w successes in n slots}.
fn fewer_successes(n: u32, w: u32, p_e: f64) -> f64 {
    let choose = |k: u32| (0..k).map(|i| f64::from(n - i) / f64::from(k - i)).product::<f64>();
    (0..w).map(|x| choose(x) * (1.0 - p_e).powi(x as i32) * p_e.powi((n - x) as i32)).sum()
}
