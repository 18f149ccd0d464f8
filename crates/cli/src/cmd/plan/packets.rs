//! The packet simulation of what the fluid model says, for `--verify`.

use fairpace_analysis::fluid::{Flow, Strategy};
use fairpace_control::{Env, FlowParams, QuickStartParams, Safety};
use fairpace_path::quick_start::Agent;
use fairpace_path::{DamaSpec, LinkSpec};
use fairpace_sim::{
    ControllerSpec, FlowConfig, HopConfig, MediaConfig, Protocol, RouteHop, SimConfig, SimError, Source, run,
};
use fairpace_units::{Bytes, Duration, Instant, Rate};

/// Phases, evenly over the super-frame.
pub(super) const PHASES: u32 = 24;
/// Data made so long after the start is followed, for as long again.
const FOLLOWED: Duration = Duration::from_secs(30);

/// The longest end-to-end delay of a packet in each phase, seconds, rising.
pub(super) fn longest_delays(
    spec: &DamaSpec,
    flow: &Flow,
    strategy: Strategy,
    first_timer: Duration,
) -> Result<Vec<f64>, SimError> {
    let agent = match strategy {
        Strategy::None => Agent::Off,
        Strategy::Qs => Agent::Qs,
        Strategy::Qsd(hold) => Agent::Qsd { hold },
    };
    let spec = spec.clone().with_agent(agent);
    let media = media(flow, strategy, first_timer);
    let mut longest = Vec::new();
    for i in 0..PHASES {
        // Idle until the answers to its first requests are all in force; a boundary is rounded to nanoseconds.
        let idle = spec.super_frame() * (spec.allocation_delay + 2) + Duration::from_micros(1);
        let start = Instant::ZERO + idle + spec.super_frame() * i / PHASES;
        let config = SimConfig {
            duration: (start + 2 * FOLLOWED).since(Instant::ZERO),
            hops: vec![HopConfig::path(LinkSpec::default(), LinkSpec::default()), HopConfig::satellite(spec.clone())],
            flows: vec![FlowConfig {
                start,
                route: vec![RouteHop::terminals(1, [0, 1])],
                packet_size: flow.packet,
                ..FlowConfig::new("stream", Protocol::Media(media.clone()))
            }],
            ..SimConfig::default()
        };
        let report = run(config)?;
        let packets = report.flows.iter().filter_map(|f| f.media.as_ref()).flat_map(|m| &m.packet_records);
        longest.push(packets.filter_map(|p| p.e2ed()).max().unwrap_or_default().as_secs_f64());
    }
    longest.sort_by(f64::total_cmp);
    Ok(longest)
}

/// TFRC as in the paper: RFC 3448, measured by the receiver, no challenge, sizes that count everything.
fn media(flow: &Flow, strategy: Strategy, first_timer: Duration) -> MediaConfig {
    let env = Env { packet_size: flow.packet, safety: Safety::Paper, max_rate: Rate::MAX, ..Env::default() };
    // Nobody guesses the nonce here: any seed does.
    let asks = || QuickStartParams::new(flow.quick_start.rate(), 1).ok();
    let quick_start = asks().filter(|_| strategy != Strategy::None);
    let quick_start = quick_start.map(|params| QuickStartParams { header: Bytes::ZERO, ..params });
    let controller = ControllerSpec::named("tfrc", env)
        .with("rfc", "3448")
        .with("measured_by", "receiver")
        .with("smoothing", "off")
        .with("first_timer", format!("{} ms", first_timer.as_millis()));
    MediaConfig {
        challenge: false,
        source: Source::Constant(flow.rate),
        record_packets: Some(FOLLOWED),
        ..MediaConfig::new(controller, FlowParams { quick_start, ..FlowParams::new(&env) })
    }
}
