//! The simulation of a plan for a wireless link, for `--verify`.

use fairpace_analysis::qos::plan::{Need, Plan};
use fairpace_control::{Env, FlowParams, Safety};
use fairpace_lab::stats::Estimate;
use fairpace_path::{ArqSpec, Capacity, DelayModel, LinkSpec};
use fairpace_sim::{
    Access, ControllerSpec, FlowConfig, FlowReport, HopConfig, MediaConfig, Protocol, RadioConfig, RouteHop, SimConfig,
};
use fairpace_sim::{SimError, run};
use fairpace_units::{Duration, Packets, Rate};

/// The slots that are measured, after [`WARM_UP`] slots: 75 s and 5 s of the paper's.
const MEASURED: u32 = 15_000;
const WARM_UP: u32 = 1_000;

/// The outcome of one flow's promises.
pub(super) struct Outcome {
    /// Bit/s.
    pub(super) throughput: Estimate,
    /// Part of the packets that arrived.
    pub(super) outage: Estimate,
    /// Part of the packets that were to arrive: dropped or late.
    pub(super) loss: Estimate,
}

/// Each flow alone on wires without queues before and behind the link, all of them greedy.
pub(super) fn simulate(
    link: &ArqSpec,
    beta: f64,
    needs: &[Need],
    plan: &Plan,
    seeds: u32,
) -> Result<Vec<Outcome>, SimError> {
    let mut link = link.clone();
    if let Some(user) = link.users.first_mut() {
        user.buffer = Capacity::Packets(Packets::new(u64::from(plan.buffer)));
    }
    let longest = plan.flows.iter().map(|f| f.r).max().unwrap_or(1);
    // Many round trips, where one takes long.
    let warm_up = link.slot.saturating_mul(WARM_UP.max(longest.saturating_mul(60)));
    let measured = link.slot.saturating_mul(MEASURED.max(longest.saturating_mul(200)));
    let mut config = SimConfig {
        duration: warm_up.saturating_add(measured),
        warmup: warm_up,
        hops: vec![
            HopConfig::path(LinkSpec::default(), LinkSpec::default()),
            HopConfig::radio(RadioConfig { downlink: link.clone(), uplink: None, base_station: None }),
        ],
        ..SimConfig::default()
    };
    for (i, (need, flow)) in needs.iter().zip(&plan.flows).enumerate() {
        let mut flow = flow_config(&link, beta, need, &format!("flow {}", i + 1), flow.rwnd);
        flow.delay_bound = Some(config.delay_bound(&flow, need.max_jitter));
        config.flows.push(flow);
    }
    let mut reports: Vec<Vec<FlowReport>> = Vec::new();
    for seed in 1..=u64::from(seeds) {
        reports.push(run(SimConfig { seed, ..config.clone() })?.flows);
    }
    let each = |i: usize, of: &dyn Fn(&FlowReport) -> f64| {
        let values: Vec<f64> = reports.iter().filter_map(|flows| flows.get(i)).map(of).collect();
        Estimate::of(&values).unwrap_or(Estimate::exact(0.0))
    };
    let outcome = |i| Outcome {
        throughput: each(i, &|f| f.throughput().as_bps()),
        outage: each(i, &|f| ratio(f.measured.outage.packets.as_f64(), f.measured.received.packets.as_f64())),
        loss: each(i, &|f| {
            let (lost, got) = (f.measured.dropped_in_all().packets.as_f64(), f.measured.received.packets.as_f64());
            ratio(lost + f.measured.outage.packets.as_f64(), lost + got)
        }),
    };
    Ok((0..needs.len()).map(outcome).collect())
}

fn flow_config(link: &ArqSpec, beta: f64, need: &Need, name: &str, rwnd: u32) -> FlowConfig {
    let env = Env { packet_size: link.slot_size, safety: Safety::Paper, max_rate: Rate::MAX, ..Env::default() };
    let controller = ControllerSpec::named("aimd", env).with("beta", beta.to_string()).with("rwnd", rwnd.to_string());
    let media = MediaConfig { challenge: false, ..MediaConfig::new(controller, FlowParams::new(&env)) };
    let wires = need.min_rtt.saturating_sub(link.slot);
    let there = wires / 2;
    let wire = |delay: Duration| Some(LinkSpec { delay: DelayModel::constant(delay), ..LinkSpec::default() });
    FlowConfig {
        route: vec![RouteHop::links(0), RouteHop::user(1, 0)],
        share: need.share,
        packet_size: link.slot_size,
        access: Access { forward_in: wire(there), back_out: wire(wires.saturating_sub(there)), ..Access::default() },
        ..FlowConfig::new(name, Protocol::Media(media))
    }
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}
