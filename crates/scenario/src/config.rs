//! From a scenario to the simulator's configuration: units resolved, flows counted out.

use crate::controllers::{self, Family, safety};
use crate::tcp;
use crate::{
    AccessSpec, Capacity, FlowSpec, Hop, InFlight, Lengths, LossSpec, OnOffSpec, OutageDirection, OutageSpec, PathSpec,
    PlanSpec, Priority, Problem, QuickStartSpec, Real, Room, SatelliteSpec, Scenario, ScenarioError, SourceKind, Speed,
    Terminals, Time, TraceSpec, WindowPlanner, WirelessSpec,
};
use fairpace_control::{FlowParams, QuickStartParams, Safety};
use fairpace_path::quick_start::RouterParams;
use fairpace_path::{Capacity as PathCapacity, DamaSpec, DelayModel, LinkSpec, Outage, RateModel};
use fairpace_sim::tcp::TcpSource;
use fairpace_sim::{
    Access, ConstantConfig, ControllerSpec, DeJitter, DelayBaseline, FlowConfig, HopConfig, MediaConfig, OnOff,
    Protocol, RadioConfig, RouteHop, SimConfig, Source,
};
use fairpace_units::{Bytes, Class, Duration, Instant, QsRate, RandomStream, Rate};
use std::fmt::Display;

/// The interval of the receiver's RTCP reports where the circuit breaker is on: the longest that it may count in [RFC
/// 8083 §4.1].
const REPORT_INTERVAL: Duration = Duration::from_secs(5);

/// A flow that comes and goes lasts at least so long, so that it stops after it has started.
const SHORTEST_FLOW: Duration = Duration::from_millis(1);

/// The records to keep beside the counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Time series, at the scenario's `sample` interval.
    pub series: bool,
    /// Events of the controllers: states, rates, losses.
    pub events: bool,
    /// Every packet, as a pcapng file.
    pub pcap: bool,
}

/// The simulator's configuration for one seed.
///
/// # Errors
/// A part of the scenario that the simulator cannot be given. A [`Scenario`] has been checked for all of them; nothing
/// is left out should a check be missing.
pub fn sim_config(scenario: &Scenario, seed: u64, record: Record) -> Result<SimConfig, ScenarioError> {
    let mut config = SimConfig {
        seed,
        duration: scenario.duration.get(),
        warmup: scenario.warmup.get(),
        hops: hops(scenario)?,
        plans: if record.series { plans(scenario, seed) } else { Vec::new() },
        flows: flows(scenario, seed)?,
        sample: record.series.then(|| scenario.sample.get()),
        trace: record.events,
        pcap: record.pcap,
        ..SimConfig::default()
    };
    let least: Vec<Duration> = config.flows.iter().map(|f| config.min_owd(f)).collect();
    for (flow, least) in config.flows.iter_mut().zip(least) {
        flow.delay_bound = flow.delay_bound.map(|jitter| least + jitter);
    }
    Ok(config)
}

/// The defaults of a Quick-Start router: with `safety = "paper"` without the rules that only we have.
fn router(scenario: &Scenario, defaults: RouterParams) -> RouterParams {
    if safety(scenario) == Safety::Paper { defaults.without_own_rules() } else { defaults }
}

/// A satellite with the agents that the scenario's `safety` wants.
fn dama(scenario: &Scenario, satellite: &SatelliteSpec, size: Bytes) -> DamaSpec {
    let mut spec = satellite.dama(size);
    let defaults = router(scenario, spec.quick_start.router);
    spec.quick_start.router = satellite.quick_start.limits(spec.quick_start.router, defaults);
    spec
}

/// The hops in the order in which data passes them.
fn hops(scenario: &Scenario) -> Result<Vec<HopConfig>, ScenarioError> {
    let size = scenario.packet_size.get();
    let hop = |(name, hop): (Option<&str>, Hop<'_>)| {
        Ok(match (name, hop) {
            (None, Hop::Link(path)) => {
                let [forward, back] = links(scenario, path)?;
                HopConfig::path(forward, back)
            }
            (Some(name), Hop::Link(link)) => {
                let [forward, back] = links(scenario, link)?;
                HopConfig::links(name, forward, back)
            }
            (None, Hop::Satellite(satellite)) => HopConfig::satellite(dama(scenario, satellite, size)),
            (Some(name), Hop::Satellite(satellite)) => {
                HopConfig::Satellite { name: name.to_owned(), spec: dama(scenario, satellite, size) }
            }
            (None, Hop::Wireless(wireless)) => HopConfig::radio(radio(scenario, wireless, size)?),
            (Some(name), Hop::Wireless(wireless)) => {
                HopConfig::Radio { name: name.to_owned(), radio: radio(scenario, wireless, size)? }
            }
        })
    };
    scenario.hops().into_iter().map(hop).collect()
}

/// The links of a path, there and back.
fn links(scenario: &Scenario, path: &PathSpec) -> Result<[LinkSpec; 2], ScenarioError> {
    let there = path.rtt.get() / 2;
    let back = path.rtt.get() - there;
    let size = scenario.packet_size.get();
    let rate = match (&path.trace, &path.rate) {
        (Some(trace), _) => RateModel::Trace(scenario.recording(trace).ok_or_else(|| unread(scenario, trace))?.clone()),
        (None, Some(rate)) => rate_model(rate, size),
        (None, None) => RateModel::Unlimited,
    };
    let outages = |unwanted: OutageDirection| {
        let seen = path.outages.iter().filter(move |o| o.direction != unwanted);
        let outage = |o: &OutageSpec| Outage {
            start: at(&o.start),
            length: o.length.get(),
            in_flight: match o.in_flight {
                InFlight::Delivered => fairpace_path::InFlight::Delivered,
                InFlight::Lost => fairpace_path::InFlight::Lost,
            },
        };
        seen.map(outage).collect()
    };
    Ok([
        LinkSpec {
            rate,
            delay: DelayModel { propagation: there, jitter: path.jitter.get(), reorder: path.reorder },
            queue: path.queue.model(&size),
            loss: path.loss.model(&()),
            outage: outages(OutageDirection::Reverse),
            quick_start: path.quick_start.as_ref().map(|q| q.params(router(scenario, RouterParams::default()))),
            ..LinkSpec::default()
        },
        LinkSpec {
            rate: rate_model(&path.reverse.rate, size),
            delay: DelayModel { propagation: back, jitter: path.reverse.jitter.get(), reorder: path.reverse.reorder },
            queue: path.reverse.queue.model(&size),
            loss: path.reverse.loss.model(&()),
            outage: outages(OutageDirection::Forward),
            ..LinkSpec::default()
        },
    ])
}

/// The simulator cannot be given this value.
fn refused(scenario: &Scenario, field: &str, found: impl ToString, why: &dyn Display) -> ScenarioError {
    scenario.error(Problem::BadValue {
        field: field.to_owned(),
        found: found.to_string(),
        wrong: format!("cannot be simulated: {why}"),
        allowed: String::new(),
    })
}

fn unread(scenario: &Scenario, trace: &TraceSpec) -> ScenarioError {
    let reason = "was not read".to_owned();
    scenario.error(Problem::BadFile { field: "path.trace.file".to_owned(), path: trace.file.clone(), reason })
}

/// The last hop, with rates in packets of `size`.
fn radio(scenario: &Scenario, wireless: &WirelessSpec, size: Bytes) -> Result<RadioConfig, ScenarioError> {
    let downlink =
        wireless.downlink(size).map_err(|e| refused(scenario, "wireless.channel", &wireless.channel.kind, &e))?;
    let plan = |p: &PlanSpec| {
        p.planner(&downlink).map_err(|e| refused(scenario, "wireless.plan.max_jitter", &p.max_jitter, &e))
    };
    let planner = wireless.plan.as_ref().map(plan).transpose()?;
    Ok(RadioConfig {
        downlink,
        uplink: wireless.uplink.as_ref().map(|up| LinkSpec {
            rate: rate_model(&up.rate, size),
            delay: DelayModel::constant(up.delay.get()),
            queue: up.queue.model(&size),
            loss: up.loss.model(&()),
            ..LinkSpec::default()
        }),
        base_station: planner.map(WindowPlanner::spec),
    })
}

/// When to note whose slot is whose: as the first flow starts, as its first request is answered, and in the middle of
/// what is left.
fn plans(scenario: &Scenario, seed: u64) -> Vec<Instant> {
    let Some(satellite) = &scenario.satellite else { return Vec::new() };
    let spec = satellite.dama(scenario.packet_size.get());
    let starts = scenario.flows.iter().filter_map(|f| instances(scenario, f, seed).first().map(|i| i.start));
    let first = starts.min().unwrap_or(Instant::ZERO);
    let end = Instant::ZERO + scenario.duration.get();
    // The request is made at the boundary after the start, and in force for a super-frame T_a later.
    let answered = first + spec.super_frame() * 3 / 2 + spec.allocation_delay();
    let middle = answered + end.since(answered) / 2;
    [first, answered, middle].into_iter().filter(|at| *at < end).collect()
}

/// One flow of an entry.
pub struct Instance {
    /// Its name.
    pub name: String,
    start: Instant,
    stop: Option<Instant>,
}

impl Instance {
    /// How long it goes on between two instants.
    pub fn within(&self, from: Instant, to: Instant) -> Duration {
        self.stop.map_or(to, |stop| stop.min(to)).since(self.start.max(from))
    }
}

/// The flows that one entry makes with a seed, in order of their numbers.
pub fn instances(scenario: &Scenario, flow: &FlowSpec, seed: u64) -> Vec<Instance> {
    let count = flow.count.get();
    if let Some(a) = &flow.arrivals {
        let mean = |time: &Option<Time>| time.as_ref().map_or(Duration::ZERO, Time::get);
        let (interval, length) = (mean(&a.interval), mean(&a.length));
        return arrivals(&flow.name, at(&flow.start), scenario.duration.get(), count, interval, length, seed);
    }
    let (start, stop) = (at(&flow.start), flow.stop.as_ref().map(at));
    match count {
        1 => vec![Instance { name: flow.name.clone(), start, stop }],
        n => (1..=n).map(|i| Instance { name: format!("{}-{i}", flow.name), start, stop }).collect(),
    }
}

/// Flows that come and go: `count` sources, each with starts that are a Poisson process, of mean `interval` all
/// together, and lengths that are exponential. Numbered in the order of their starts.
fn arrivals(
    name: &str,
    from: Instant,
    duration: Duration,
    count: u64,
    interval: Duration,
    length: Duration,
    seed: u64,
) -> Vec<Instance> {
    let end = Instant::ZERO + duration;
    let mut spans = Vec::new();
    for source in 1..=count {
        // A stream for each source: one source more leaves the others' flows where they were, but for the interval.
        let mut random = RandomStream::named(seed, &format!("flow.{name}.arrivals.{source}"));
        let mut next = from + random.exponential(interval * count as u32);
        while next < end {
            spans.push((next, next + random.exponential(length).max(SHORTEST_FLOW)));
            next += random.exponential(interval * count as u32);
        }
    }
    spans.sort_unstable();
    let flow = |(i, (start, stop)): (usize, (Instant, Instant))| Instance {
        name: format!("{name}-{}", i + 1),
        start,
        stop: (stop < end).then_some(stop),
    };
    spans.into_iter().enumerate().map(flow).collect()
}

fn flows(scenario: &Scenario, seed: u64) -> Result<Vec<FlowConfig>, ScenarioError> {
    let each =
        scenario.flows.iter().flat_map(|flow| instances(scenario, flow, seed).into_iter().map(move |i| (flow, i)));
    each.map(|(flow, Instance { name, start, stop })| {
        Ok(FlowConfig {
            group: flow.group.clone(),
            start,
            start_spread: flow.start_spread.get(),
            stop,
            access: access(scenario, flow, &name, seed),
            route: route(scenario, flow, &name, seed)?,
            share: flow.share.map_or(1.0, Real::get),
            // Above the least delay, which is known when all is.
            delay_bound: flow.tolerable_jitter.as_ref().map(Time::get),
            packet_size: controllers::packet_size(scenario, flow),
            ack_size: scenario.ack_size.get(),
            class_override: None,
            protocol: protocol(scenario, flow, &name, seed)?,
            name,
        })
    })
    .collect()
}

/// The hops that a flow passes, and its ports there.
fn route(scenario: &Scenario, flow: &FlowSpec, name: &str, seed: u64) -> Result<Vec<RouteHop>, ScenarioError> {
    let hops = scenario.hops();
    let missing = |key: &str| {
        let field = format!("flows.{}.{key}", flow.name);
        scenario.error(Problem::Missing { field, allowed: "the flow passes a hop that needs it".to_owned() })
    };
    let through = |i: usize| {
        let ports = match hops[i].1 {
            Hop::Link(_) => [0, 0],
            Hop::Satellite(_) => terminals(scenario, flow, name, seed).ok_or_else(|| missing("terminals"))?,
            Hop::Wireless(_) => [flow.user.ok_or_else(|| missing("user"))?.get() as u32; 2],
        };
        Ok(RouteHop { hop: i as u32, ports })
    };
    scenario.way(flow).into_iter().map(through).collect()
}

/// Where a flow enters and leaves the satellite.
fn terminals(scenario: &Scenario, flow: &FlowSpec, name: &str, seed: u64) -> Option<[u32; 2]> {
    let n = scenario.satellite.as_ref()?.terminals.get();
    match flow.terminals? {
        Terminals::Fixed(both) => Some(both.map(|t| t as u32)),
        Terminals::Random => {
            let mut random = RandomStream::named(seed, &format!("flow.{name}.terminals"));
            let from = random.below(n);
            // One of the others: those from `from` on move up by one.
            let other = random.below(n.saturating_sub(1).max(1));
            Some([from, other + u64::from(other >= from)].map(|t| t as u32))
        }
    }
}

fn protocol(scenario: &Scenario, flow: &FlowSpec, name: &str, seed: u64) -> Result<Protocol, ScenarioError> {
    let size = controllers::packet_size(scenario, flow);
    let class = match flow.class {
        Priority::Normal => Class::Normal,
        Priority::Low => Class::Low,
    };
    Ok(match controllers::family(&flow.controller).ok_or_else(|| unknown(scenario, flow))? {
        Family::Tcp => {
            let source = match (&flow.on_off, &flow.transfer) {
                (Some(o), _) => TcpSource::OnOff(on_off(o)),
                (None, Some(size)) => TcpSource::Transfer(size.get()),
                (None, None) => TcpSource::Ftp,
            };
            Protocol::Tcp(tcp::params(&flow.controller, flow.tcp.as_ref()), source)
        }
        Family::Media => {
            let env = controllers::env(scenario, flow);
            let mut params = FlowParams::new(&env);
            params.data_class = class;
            params.quick_start = flow.quick_start.as_ref().map(|q| ask(scenario, q, name, size, seed)).transpose()?;
            let settings = flow.parameters.iter().map(|(k, v)| (k.clone(), v.text())).collect();
            let controller = ControllerSpec::Named { scheme: flow.controller.clone(), settings, env };
            let mut media = MediaConfig::new(controller, params);
            media.source = source(flow, name, size);
            let feedback = flow.feedback.as_ref().unwrap_or(&scenario.feedback).get();
            (media.form, media.feedback) = (feedback.form, feedback.interval);
            media.initial_rtt = flow.initial_rtt.as_ref().map(Time::get);
            media.challenge = env.safety == Safety::Default;
            media.send_buffer = flow.send_buffer.as_ref().map_or(PathCapacity::Unlimited, Room::get);
            media.de_jitter =
                flow.tolerable_delay.as_ref().map(|t| DeJitter { tolerable: t.get(), above: DelayBaseline::default() });
            media.report_interval = (env.safety == Safety::Default).then_some(REPORT_INTERVAL);
            media.record_frames = matches!(media.source, Source::Adus { .. });
            media.tcp = controllers::has_tcp(&flow.controller).then(|| tcp::half(flow.tcp.as_ref()));
            Protocol::Media(media)
        }
        Family::Constant => Protocol::Constant(ConstantConfig {
            rate: flow.rate.as_ref().map_or(Rate::ZERO, |r| r.get().with_packets_of(size)),
            class,
            on_off: flow.on_off.as_ref().map(on_off),
            quick_start: flow.quick_start.as_ref().map(|q| flood(scenario, q, size)).transpose()?,
        }),
    })
}

fn unknown(scenario: &Scenario, flow: &FlowSpec) -> ScenarioError {
    scenario.error(controllers::unknown("controller", &flow.controller))
}

fn ask(
    scenario: &Scenario,
    ask: &QuickStartSpec,
    name: &str,
    size: Bytes,
    seed: u64,
) -> Result<QuickStartParams, ScenarioError> {
    ask.sender(name, size, seed).map_err(|e| refused(scenario, "quick_start", &ask.rate, &e))
}

/// The Quick-Start rate that a constant flow requests with each of its packets.
fn flood(scenario: &Scenario, ask: &QuickStartSpec, size: Bytes) -> Result<QsRate, ScenarioError> {
    let rate = QsRate::at_least(ask.rate.get().with_packets_of(size));
    rate.ok_or_else(|| refused(scenario, "quick_start", &ask.rate, &"the option cannot say it"))
}

fn on_off(o: &OnOffSpec) -> OnOff {
    OnOff { on: o.on.get(), off: o.off.get(), exponential: o.lengths == Lengths::Exponential }
}

fn source(flow: &FlowSpec, name: &str, size: Bytes) -> Source {
    let rate = |r: &Option<Speed>| r.as_ref().map(|r| r.get().with_packets_of(size));
    match &flow.source {
        None => Source::Greedy,
        Some(s) => match s.kind {
            SourceKind::Saturated => Source::Greedy,
            SourceKind::Adus => Source::Adus { packets: s.packets.map_or(1, |n| n.get() as u32) },
            SourceKind::Constant | SourceKind::Voip | SourceKind::VideoCall | SourceKind::Iptv => {
                Source::Constant(rate(&s.rate).unwrap_or_default())
            }
            SourceKind::Encoder => crate::encoder::source(name, rate(&s.rate), size),
        },
    }
}

fn access(scenario: &Scenario, flow: &FlowSpec, name: &str, seed: u64) -> Access {
    let size = scenario.packet_size.get();
    // There and back.
    let own = |spec: &Option<AccessSpec>, end: &str| {
        let Some(spec) = spec else { return (None, None) };
        // Its own stream: switching the spread on shifts no other draw.
        let extra = RandomStream::named(seed, &format!("flow.{name}.{end}")).duration_below(spec.rtt_spread.get());
        let rtt = spec.rtt.get() + extra;
        let link = |propagation, loss: &LossSpec| {
            Some(LinkSpec {
                rate: rate_model(&spec.rate, size),
                delay: DelayModel::constant(propagation),
                queue: spec.queue.model(&size),
                loss: loss.model(&()),
                // Who asks has equipment that knows what is asked [qsd §2.4].
                quick_start: flow.quick_start.as_ref().map(|_| RouterParams::default()),
                ..LinkSpec::default()
            })
        };
        (link(rtt / 2, &spec.loss), link(rtt - rtt / 2, &spec.reverse_loss))
    };
    let (forward_in, back_out) = own(&flow.access, "access");
    let (forward_out, back_in) = own(&flow.far_access, "far_access");
    Access { forward_in, forward_out, back_in, back_out }
}

fn at(time: &Time) -> Instant {
    Instant::ZERO + time.get()
}

fn rate_model(capacity: &Capacity, size: Bytes) -> RateModel {
    match capacity {
        Capacity::Unlimited => RateModel::Unlimited,
        Capacity::Fixed(speed) => RateModel::Fixed(speed.get().with_packets_of(size)),
        Capacity::Steps(steps) => {
            RateModel::Schedule(steps.iter().map(|s| (at(&s.at), s.rate.get().with_packets_of(size))).collect())
        }
    }
}

#[cfg(test)]
mod tests;
