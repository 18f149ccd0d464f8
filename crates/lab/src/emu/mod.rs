//! The second world: a scenario's path between two network namespaces, and at its ends the kernel's TCP and the
//! drivers of the wire, in real time.
//!
//! ```text
//!   scenario ─▶ SimConfig ─▶ flows become External ─▶ Testbed (the path) ─▶ what the network counted ─┐
//!                        └─▶ one plan per flow ─▶ threads with sockets ─▶ what the ends know ───────┴▶ SimReport
//! ```
//!
//! What is equal in both worlds, what differs, and by how much: `docs/emu/worlds.md`. This is the only part of
//! the laboratory that runs against a clock; it is [`fairpace_net`]'s.

mod endpoint;
mod media;
mod merge;
mod plan;
mod tcp;
mod udp;
pub mod worlds;

use crate::config::{Record, sim_config};
use crate::metrics::RunSummary;
use crate::pool::Hooks;
use crate::run::{RunError, RunOptions, RunSet, SeedRun, Seeds};
use crate::scenario::Scenario;
use crate::stats::MIN_SEEDS;
use endpoint::Endpoint;
use fairpace_emu::{EmuError, EmuReport, Rights, Running, Sandbox, Side, Testbed, TestbedOptions};
use fairpace_net::{Buffers, UdpSocket};
use fairpace_sim::{FlowConfig, Protocol, SimConfig};
use fairpace_units::{Bytes, Duration, Instant};
use plan::{End, Plan, Plans};
use serde::Serialize;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

/// Where receivers listen: every flow has addresses of its own.
const PORT: u16 = 5004;
/// The stop flag is looked at this often, and flows are told to stop within it.
const LOOK_UP: Duration = Duration::from_millis(5);

/// What an emulated run was made on, and whether its numbers are the path's or the machine's.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Emulated {
    /// Why the numbers are not to be trusted; empty if they are.
    pub invalid: Vec<String>,
    /// What this run is not like in the scenario, or in the simulator.
    pub notes: Vec<String>,
    /// Each TCP flow's congestion control.
    pub algorithms: BTreeMap<String, String>,
    /// Sysctls set for this run, inside its namespaces.
    pub sysctls: BTreeMap<String, String>,
    /// How late packets left the emulator: median.
    pub lateness_p50_ms: f64,
    /// The same, 99th percentile.
    pub lateness_p99_ms: f64,
    /// The same, greatest.
    pub lateness_max_ms: f64,
    /// Share of a processor that the emulator took.
    pub cpu: f64,
    /// Packets between addresses that are no flow's, dropped.
    pub unknown_packets: u64,
}

/// Runs the scenario in real time with as many seeds as asked for, one after the other. The process is in `sandbox`,
/// and nobody else runs in real time on the machine.
///
/// # Errors
/// The scenario has what this world has not, the system refuses, or nothing was finished before the stop flag.
pub fn run(
    scenario: &Scenario,
    options: &RunOptions,
    sandbox: &Sandbox,
    hooks: &Hooks<'_>,
) -> Result<RunSet, RunError> {
    let wanted = match options.seeds {
        Seeds::Count(n) => n.max(1),
        Seeds::Enough => MIN_SEEDS,
    };
    let mut runs = Vec::new();
    for seed in (scenario.seed.get()..).take(wanted) {
        if hooks.stopped() {
            break;
        }
        let rights = if runs.len() + 1 == wanted { Rights::Dropped } else { Rights::Kept };
        runs.push(with_rights(scenario, seed, options.record, sandbox, hooks, rights)?);
        (hooks.progress)(runs.len(), wanted, &format!("{} seed {seed}", scenario.name));
    }
    if runs.is_empty() {
        return Err(RunError::Interrupted);
    }
    let interrupted = hooks.stopped() || runs.iter().any(|r| r.summary.interrupted);
    Ok(RunSet { scenario: scenario.clone(), runs, interrupted })
}

/// One seed, in real time.
///
/// # Errors
/// As [`run`].
pub fn emulate(
    scenario: &Scenario,
    seed: u64,
    record: Record,
    sandbox: &Sandbox,
    hooks: &Hooks<'_>,
) -> Result<SeedRun, RunError> {
    with_rights(scenario, seed, record, sandbox, hooks, Rights::Kept)
}

/// As [`emulate`]; the rights of this thread, which are needed to set up the next seed, are dropped before packets
/// move, or kept.
fn with_rights(
    scenario: &Scenario,
    seed: u64,
    record: Record,
    sandbox: &Sandbox,
    hooks: &Hooks<'_>,
    rights: Rights,
) -> Result<SeedRun, RunError> {
    let config = sim_config(scenario, seed, record);
    let mut plans = Plans::new(scenario, &config, seed)?;
    let (senders, receivers) = (sandbox.namespace("senders")?, sandbox.namespace("receivers")?);
    set(&mut plans.about, |key, value| [&senders, &receivers].iter().try_for_each(|n| n.set_sysctl(key, value)))?;
    let external = |f: &FlowConfig| FlowConfig { protocol: Protocol::External, ..f.clone() };
    let network = SimConfig { flows: config.flows.iter().map(external).collect(), ..config.clone() };
    // Segments that leave together are not joined: each is to be acknowledged for itself.
    let options = TestbedOptions { offload: false, ..TestbedOptions::new(senders, receivers) };
    let running = Testbed::open(&network, options)?.start()?;
    let warmup = Instant::ZERO + config.warmup;
    let worked = work(&running, plans.flows, Instant::ZERO + config.duration, warmup, hooks, rights);
    let ran = running.now().since(Instant::ZERO).min(config.duration);
    let (mut report, emulator) = running.finish();
    let endpoints = worked?;
    let emulated = Emulated::new(&emulator, &endpoints, &config, plans.about);
    merge::merge(&mut report, &config, endpoints);
    let mut summary = RunSummary::new(scenario, seed, &report, ran, ran < config.duration);
    "emu".clone_into(&mut summary.world);
    summary.emulated = Some(emulated);
    Ok(SeedRun { seed, summary, report })
}

/// Sets the sysctls. One that this kernel has not (`tcp_rto_min_us` came with Linux 6.11) is noted and left as it is.
fn set(about: &mut plan::About, set: impl Fn(&str, &str) -> Result<(), EmuError>) -> Result<(), EmuError> {
    let mut missing = Vec::new();
    for (key, value) in &about.sysctls {
        match set(key, value) {
            Err(EmuError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                missing.push(key.clone());
            }
            done => done?,
        }
    }
    for key in missing {
        about.sysctls.remove(&key);
        about.notes.push(format!("this kernel has no `{key}`: what the scenario says of it is not so"));
    }
    Ok(())
}

/// The two ends of a flow, ready to be run.
enum Ends {
    Tcp(Box<(tcp::TcpPlan, socket2::Socket, SocketAddr, socket2::Socket)>),
    Udp(Box<(udp::UdpPlan, UdpSocket, UdpSocket)>),
    Media(Box<(media::MediaPlan, UdpSocket, fairpace_net::receive::Receiver)>),
}

fn open(plan: Plan, running: &Running) -> Result<Ends, EmuError> {
    let clock = running.clock();
    let addresses = running.addresses(plan.flow);
    let at = SocketAddr::new(addresses.receiver, PORT);
    let from = SocketAddr::new(addresses.sender, 0);
    let sender = || UdpSocket::connect_from(from, at, Buffers::default(), clock);
    Ok(match plan.end {
        End::Tcp(plan) => {
            let listener = running.enter(Side::Receivers, || plan.listen(at))??;
            let socket = running.enter(Side::Senders, || plan.sender(from))??;
            Ends::Tcp(Box::new((plan, socket, at, listener)))
        }
        End::Udp(plan) => {
            // Nobody reads: what arrives is counted by the path, and thrown away when the buffer is full.
            let least = Buffers { receive: Bytes::new(4_096), send: Bytes::new(4_096) };
            let receiver = running.enter(Side::Receivers, || UdpSocket::bind(at, true, least, clock))??;
            let socket = running.enter(Side::Senders, sender)??;
            Ends::Udp(Box::new((plan, socket, receiver)))
        }
        End::Media(mut plan) => {
            plan.config.peer = at;
            let receiver = running.enter(Side::Receivers, || media::open_receiver(&plan, at, clock))??;
            let socket = running.enter(Side::Senders, sender)??;
            Ends::Media(Box::new((*plan, socket, receiver)))
        }
    })
}

/// Runs all flows to the end. What their ends know, in order of the flows.
fn work(
    running: &Running,
    plans: Vec<Plan>,
    end: Instant,
    warmup: Instant,
    hooks: &Hooks<'_>,
    rights: Rights,
) -> Result<Vec<Endpoint>, EmuError> {
    let clock = running.clock();
    let stops: Vec<Option<Instant>> = plans.iter().map(|p| p.stop).collect();
    let flags: Vec<AtomicBool> = plans.iter().map(|_| AtomicBool::new(false)).collect();
    let over = AtomicBool::new(false);
    let ends = plans.into_iter().map(|p| open(p, running)).collect::<Result<Vec<_>, _>>()?;
    std::thread::scope(|scope| {
        let (over, flags) = (&over, &flags);
        let threads: Vec<_> = ends
            .into_iter()
            .zip(flags)
            .map(|(ends, stop)| scope.spawn(move || flow(ends, running, warmup, stop, over)))
            .collect();
        let dropped = if rights == Rights::Dropped { fairpace_emu::drop_privileges() } else { Ok(()) };
        while dropped.is_ok() {
            let now = clock.now();
            if now >= end || hooks.stopped() {
                break;
            }
            for (stop, flag) in stops.iter().zip(flags) {
                if stop.is_some_and(|at| now >= at) {
                    flag.store(true, Ordering::Relaxed);
                }
            }
            pause(LOOK_UP.min(end.since(now)));
        }
        over.store(true, Ordering::Relaxed);
        flags.iter().for_each(|flag| flag.store(true, Ordering::Relaxed));
        let ended = threads.into_iter().map(|t| t.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        let ended = ended.collect();
        dropped.map(|()| ended)
    })
}

/// Endpoints that have their sockets need no right any more.
fn without_rights(work: impl FnOnce() -> Endpoint) -> Endpoint {
    let refused = fairpace_emu::drop_privileges().err();
    let mut endpoint = work();
    if let Some(e) = refused {
        endpoint.trouble.get_or_insert(e.to_string());
    }
    endpoint
}

/// One flow, both ends. `stop` is the flow's end, `over` the run's.
fn flow(ends: Ends, running: &Running, warmup: Instant, stop: &AtomicBool, over: &AtomicBool) -> Endpoint {
    let clock = running.clock();
    match ends {
        Ends::Tcp(ends) => without_rights(|| {
            let (plan, socket, to, listener) = *ends;
            std::thread::scope(|scope| {
                let reader = scope.spawn(|| tcp::receive(&plan, &listener, clock, warmup, over));
                let mut endpoint = tcp::send(&plan, socket, to, clock, warmup, over);
                endpoint.in_order = reader.join().ok();
                endpoint
            })
        }),
        Ends::Udp(ends) => without_rights(|| {
            let (plan, socket, receiver) = *ends;
            let endpoint = udp::send(&plan, socket, clock, warmup, over);
            drop(receiver);
            endpoint
        }),
        Ends::Media(ends) => {
            let (plan, socket, receiver) = *ends;
            let (id, scheme, start, units) = (plan.flow, plan.config.scheme.clone(), plan.start, plan.units());
            let both = || {
                std::thread::scope(|scope| {
                    // It outlives its sender, as somebody who waits for the last packets does.
                    let reader = scope.spawn(|| media::receive(receiver, units, over));
                    let mut endpoint = media::send(plan, socket, clock, warmup, stop);
                    if let Ok((records, trouble)) = reader.join() {
                        endpoint.records = records;
                        endpoint.trouble = endpoint.trouble.or(trouble);
                    }
                    endpoint
                })
            };
            // A sender with a TCP half connects in mid-run, from the senders' namespace.
            match running.namespace(Side::Senders).enter() {
                Ok(()) => without_rights(both),
                Err(e) => Endpoint { trouble: Some(e.to_string()), ..Endpoint::new(id, scheme, start) },
            }
        }
    }
}

fn pause(time: Duration) {
    std::thread::park_timeout(std::time::Duration::from_nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)));
}

impl Emulated {
    fn new(report: &EmuReport, endpoints: &[Endpoint], config: &SimConfig, about: plan::About) -> Emulated {
        let ms = |d: Duration| d.as_secs_f64() * 1e3;
        let mut invalid = report.invalid.clone();
        for endpoint in endpoints {
            if let Some(trouble) = &endpoint.trouble {
                let name = config.flows.get(endpoint.flow as usize).map_or("", |f| &f.name);
                invalid.push(format!("an end of the flow {name} failed: {trouble}"));
            }
        }
        Emulated {
            invalid,
            notes: about.notes,
            algorithms: about.algorithms,
            sysctls: about.sysctls,
            lateness_p50_ms: ms(report.lateness.p50),
            lateness_p99_ms: ms(report.lateness.p99),
            lateness_max_ms: ms(report.lateness.max),
            cpu: report.cpu,
            unknown_packets: report.unknown(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    #[test]
    fn a_sysctl_that_the_kernel_has_not_is_noted_and_one_that_it_refuses_is_an_error() {
        let about = || plan::About {
            sysctls: [("net.new", "1"), ("net.old", "2")].map(|(k, v)| (k.to_owned(), v.to_owned())).into(),
            ..plan::About::default()
        };
        let answer = |kind: io::ErrorKind| {
            move |key: &str, _: &str| match key {
                "net.new" => Err(EmuError::Io { what: "set it".to_owned(), source: kind.into() }),
                _ => Ok(()),
            }
        };
        let mut old = about();
        set(&mut old, answer(io::ErrorKind::NotFound)).unwrap();
        assert_eq!(old.sysctls.keys().collect::<Vec<_>>(), ["net.old"]);
        assert!(old.notes.len() == 1 && old.notes[0].contains("`net.new`"), "{:?}", old.notes);
        assert!(set(&mut about(), answer(io::ErrorKind::InvalidInput)).is_err());
    }
}
