//! The second world: a scenario's path between two network namespaces, and at its ends the kernel's TCP and the
//! drivers of the wire, in real time.
//!
//! ```text
//!   scenario ─▶ SimConfig ─▶ flows become External ─▶ Testbed (the path) ─▶ what the network counted ─┐
//!                        └─▶ one plan per flow ─▶ threads with sockets ─▶ what the ends know ───────┴▶ SimReport
//! ```
//!
//! Begin with [`run`]. The page `docs/emu/worlds.md` says where both worlds agree, where they differ, and by how much. The clock is
//! [`fairpace_net`]'s.

#![forbid(unsafe_code)]

mod endpoint;
mod ip;
mod media;
mod merge;
mod plan;
mod tcp;
mod udp;

use endpoint::Endpoint;
use fairpace_emu::{
    Door, EmuError, EmuReport, FlowAddresses, Limits, Rights, Running, Sandbox, Side, Testbed, TestbedOptions,
};
use fairpace_lab::Hooks;
use fairpace_lab::metrics::{Emulated, RunSummary};
use fairpace_lab::run::{RunError, RunOptions, RunSet, SeedRun, Seeds, digest_of, run_in};
use fairpace_lab::stats::MIN_SEEDS;
use fairpace_lab::study::{EMULATED, Store, World};
use fairpace_net::{Buffers, Clock, UdpSocket};
use fairpace_path::RateModel;
use fairpace_scenario::{Record, Scenario, sim_config};
use fairpace_sim::{FlowConfig, HopConfig, Protocol, SimConfig};
use fairpace_units::{Bytes, Duration, Instant, Rate};
pub use ip::Ip;
use nix::errno::Errno;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use plan::{End, Plan, Plans};
use std::io::Write;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;

/// Where receivers listen: every flow has addresses of its own.
const PORT: u16 = 5004;
/// The stop flag is looked at this often, and flows are told to stop within it.
const LOOK_UP: Duration = Duration::from_millis(5);

/// Where the packets of a run go while it goes on.
pub type Packets = Box<dyn Write + Send>;

/// Runs the scenario in real time with as many seeds as asked for ([`Seeds::Enough`]: the fewest), one after the other.
/// The process is in `sandbox`, and nobody else runs in real time on the machine. This thread has no right afterwards.
/// With a store each seed is on disk as soon as it is finished, and those that are there are not run again. `capture` gets every packet
/// of the first seed as pcapng while it runs; without it what [`Record::pcap`] asks for is kept in memory.
///
/// # Errors
/// The scenario has what this world has not, the system refuses, or nothing was finished before the stop flag.
pub fn run(
    scenario: &Scenario,
    options: &RunOptions,
    ip: Ip,
    sandbox: &Sandbox,
    capture: Option<Packets>,
    store: Option<&mut Store>,
    hooks: &Hooks<'_>,
) -> Result<RunSet, RunError> {
    let wanted = match options.seeds {
        Seeds::Count(n) => n.max(1),
        Seeds::Enough => MIN_SEEDS,
    };
    let digest = digest_of(EMULATED, scenario);
    let is_kept = |seed: &u64| !options.record.pcap && store.as_ref().is_some_and(|store| store.has(&digest, *seed));
    let seeds = (scenario.seed.get()..).take(wanted).filter(|seed| !is_kept(seed));
    let record = Record { pcap: options.record.pcap && capture.is_none(), ..options.record };
    let runs = seeds.map(|seed| (scenario.clone(), seed, record));
    let prepared = Prepared::with_capture(runs, ip, sandbox, capture, hooks)?;
    let emulate = |s: &Scenario, seed: u64, _: Record, hooks: &Hooks<'_>| prepared.run(s, seed, hooks);
    let options = RunOptions { seeds: Seeds::Count(wanted), ..*options };
    run_in(World::RealTime(&emulate), scenario, &options, store, &Hooks { threads: 1, ..*hooks })
}

/// Whether this world has what a scenario asks for, as far as can be known with nothing set up.
///
/// # Errors
/// As those of [`run`] that come before its first packet.
pub fn check(scenario: &Scenario, ip: Ip) -> Result<(), RunError> {
    let seed = scenario.seed.get();
    let config = sim_config(scenario, seed, Record::default())?;
    Plans::new(scenario, &config, seed, ip).map(drop).map_err(RunError::world)
}

/// Descriptors of a run that is set up: namespaces, devices, and those of threads that wait; and of the process itself.
const FILES: u64 = 16;
/// And of each of its flows, at work.
const FILES_PER_FLOW: u64 = 6;

/// Raises this process's limit of open files as far as it may, for `runs` runs that have `wanted` of them open.
fn allow_files(wanted: u64, runs: usize) -> Result<(), EmuError> {
    let refused = |e: Errno| EmuError::Io { what: "raise the limit of open files".to_owned(), source: e.into() };
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).map_err(refused)?;
    if wanted > most {
        let allowed = format!(
            "as many as have {wanted} files open, and this process may have {most}: fewer experiments or seeds per command"
        );
        return Err(EmuError::Config { field: "runs", found: runs.to_string(), allowed });
    }
    setrlimit(Resource::RLIMIT_NOFILE, most, most).map_err(refused)
}

fn flows_of(scenario: &Scenario) -> u64 {
    scenario.flows.iter().map(|f| f.count.get()).sum()
}

/// All runs of a command, set up before the first of them begins: to set one up takes rights, and while packets move
/// nobody has any.
pub struct Prepared {
    /// In the order in which they were asked for; `None` is one that has begun.
    runs: Mutex<Vec<Option<Ready>>>,
}

impl Prepared {
    /// Sets up every run: a scenario, a seed, and what to record. Then the rights of this thread are given up.
    ///
    /// # Errors
    /// A scenario has what this world has not, the system refuses, or the stop flag was set.
    pub fn new(
        runs: impl IntoIterator<Item = (Scenario, u64, Record)>,
        ip: Ip,
        sandbox: &Sandbox,
        hooks: &Hooks<'_>,
    ) -> Result<Prepared, RunError> {
        Prepared::with_capture(runs, ip, sandbox, None, hooks)
    }

    /// The first of the runs has its packets written to `capture`.
    fn with_capture(
        runs: impl IntoIterator<Item = (Scenario, u64, Record)>,
        ip: Ip,
        sandbox: &Sandbox,
        mut capture: Option<Packets>,
        hooks: &Hooks<'_>,
    ) -> Result<Prepared, RunError> {
        let runs: Vec<_> = runs.into_iter().collect();
        let files = |(scenario, ..): &(Scenario, u64, Record)| FILES + FILES_PER_FLOW * flows_of(scenario);
        let wanted = runs.iter().map(files).sum::<u64>() + FILES;
        allow_files(wanted, runs.len()).map_err(RunError::world)?;
        let mut ready = Vec::new();
        for (scenario, seed, record) in runs {
            if hooks.stopped() {
                return Err(RunError::Interrupted);
            }
            let config = sim_config(&scenario, seed, record)?;
            let set_up = Ready::new(scenario, seed, config, ip, sandbox, capture.take());
            ready.push(Some(set_up.map_err(RunError::world)?));
        }
        fairpace_emu::drop_privileges().map_err(RunError::world)?;
        Ok(Prepared { runs: Mutex::new(ready) })
    }

    /// One of them, in real time.
    ///
    /// # Errors
    /// The system refuses, or the run is none of those that were set up.
    pub fn run(&self, scenario: &Scenario, seed: u64, hooks: &Hooks<'_>) -> Result<SeedRun, RunError> {
        let its = |r: &Option<Ready>| r.as_ref().is_some_and(|r| r.seed == seed && r.scenario == *scenario);
        let ready = {
            let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
            runs.iter_mut().find(|r| its(r)).and_then(Option::take)
        };
        let not_there = || EmuError::Config {
            field: "seed",
            found: format!("{seed} of the scenario {}", scenario.name),
            allowed: "a run that was set up, once".to_owned(),
        };
        ready.ok_or_else(not_there).and_then(|ready| ready.run(hooks)).map_err(RunError::world)
    }
}

/// One run, set up: its namespaces, devices, and what else takes a right. Nothing moves yet.
struct Ready {
    scenario: Scenario,
    seed: u64,
    ip: Ip,
    config: SimConfig,
    about: plan::About,
    testbed: Testbed,
    doors: [Door; 2],
    flows: Vec<(Option<Instant>, Early)>,
}

impl Ready {
    fn new(
        scenario: Scenario,
        seed: u64,
        config: SimConfig,
        ip: Ip,
        sandbox: &Sandbox,
        capture: Option<Packets>,
    ) -> Result<Ready, EmuError> {
        if ip == Ip::V6 && !fairpace_emu::sandbox::has_ipv6() {
            let allowed = "IPv4 only: this kernel has no IPv6".to_owned();
            return Err(EmuError::Config { field: "ipv6", found: "given".to_owned(), allowed });
        }
        let mut plans = Plans::new(&scenario, &config, seed, ip)?;
        let (senders, receivers) = (sandbox.namespace("senders")?, sandbox.namespace("receivers")?);
        set(&mut plans.about, |key, value| [&senders, &receivers].iter().try_for_each(|n| n.set_sysctl(key, value)))?;
        let asks = |plan: &Plan| matches!(&plan.end, End::Media(media) if media.config.quick_start.is_some());
        let sending = if plans.flows.iter().any(asks) { Rights::IpOptions } else { Rights::Dropped };
        let doors = [senders.door(sending)?, receivers.door(Rights::Dropped)?];
        let external = |f: &FlowConfig| FlowConfig { protocol: Protocol::External, ..f.clone() };
        let network = SimConfig { flows: config.flows.iter().map(external).collect(), ..config.clone() };
        // Segments that leave together are not joined: each is to be acknowledged for itself.
        let limits = packet_time(&config).map_or_else(Limits::default, Limits::for_packet_time);
        let options = TestbedOptions { offload: false, limits, capture, ..TestbedOptions::new(senders, receivers) };
        let testbed = Testbed::open(&network, options)?;
        let flows = plans.flows.into_iter().map(|plan| Ok((plan.stop, early(plan, &testbed, ip)?)));
        let flows = flows.collect::<Result<_, EmuError>>()?;
        Ok(Ready { scenario, seed, ip, config, about: plans.about, testbed, doors, flows })
    }

    fn run(self, hooks: &Hooks<'_>) -> Result<SeedRun, EmuError> {
        let Ready { scenario, seed, ip, config, about, testbed, doors, flows } = self;
        let running = testbed.start()?;
        let ends = Times { end: Instant::ZERO + config.duration, warmup: Instant::ZERO + config.warmup };
        let worked = work(&running, ip, &doors, flows, ends, hooks);
        let ran = running.now().since(Instant::ZERO).min(config.duration);
        let (mut report, emulator) = running.finish();
        let endpoints = worked?;
        let emulated = emulated(&emulator, &endpoints, &config, about);
        merge::merge(&mut report, &config, ip, endpoints);
        let mut summary = RunSummary::new(&scenario, seed, &report, ran, ran < config.duration);
        "emu".clone_into(&mut summary.world);
        summary.emulated = Some(emulated);
        Ok(SeedRun { seed, summary, report })
    }
}

/// The time that the bottleneck, the slowest link on the way of data, takes for a packet of the flows; at the highest of
/// its rates where they change. None if no link takes time, or a shared medium is on the way.
fn packet_time(config: &SimConfig) -> Option<Duration> {
    let packet = config.flows.iter().map(|f| f.packet_size).max()?;
    let rate = |hop: &HopConfig| match hop {
        HopConfig::Links { forward, .. } => Some(match &forward.rate {
            RateModel::Unlimited => None,
            RateModel::Fixed(rate) => Some(*rate),
            RateModel::Schedule(steps) => {
                steps.iter().map(|(_, rate)| *rate).max_by(|a, b| a.as_bps().total_cmp(&b.as_bps()))
            }
            RateModel::Trace(trace) => Some(trace.mean_rate()),
        }),
        _ => None,
    };
    let rates: Vec<Option<Rate>> = config.hops.iter().map(rate).collect::<Option<_>>()?;
    let slowest = rates.into_iter().flatten().min_by(|a, b| a.as_bps().total_cmp(&b.as_bps()))?;
    Some(packet / slowest)
}

/// Of a run.
#[derive(Clone, Copy)]
struct Times {
    end: Instant,
    warmup: Instant,
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

/// A flow before packets move: TCP's sockets are open, since their algorithm may take a right.
enum Early {
    Tcp(Box<(tcp::TcpPlan, socket2::Socket, SocketAddr, socket2::Socket)>),
    Udp(udp::UdpPlan),
    Media(Box<media::MediaPlan>),
}

/// The two ends of a flow, ready to be run.
enum Ends {
    Tcp(Box<(tcp::TcpPlan, socket2::Socket, SocketAddr, socket2::Socket)>),
    Udp(Box<(udp::UdpPlan, UdpSocket, UdpSocket)>),
    Media(Box<(media::MediaPlan, UdpSocket, fairpace_net::receive::Receiver)>),
}

fn ends_of(addresses: FlowAddresses) -> (SocketAddr, SocketAddr) {
    (SocketAddr::new(addresses.sender, 0), SocketAddr::new(addresses.receiver, PORT))
}

fn early(plan: Plan, testbed: &Testbed, ip: Ip) -> Result<Early, EmuError> {
    Ok(match plan.end {
        End::Tcp(plan) => {
            let addresses = match ip {
                Ip::V4 => testbed.addresses(plan.flow),
                Ip::V6 => testbed.addresses_v6(plan.flow),
            };
            let (from, at) = ends_of(addresses);
            let listener = testbed.enter(Side::Receivers, || plan.listen(at, from))??;
            let socket = testbed.enter(Side::Senders, || plan.sender(from))??;
            Early::Tcp(Box::new((plan, socket, at, listener)))
        }
        End::Udp(plan) => Early::Udp(plan),
        End::Media(plan) => Early::Media(plan),
    })
}

fn open(early: Early, running: &Running, ip: Ip, doors: &[Door; 2]) -> Result<Ends, EmuError> {
    let clock = running.clock();
    let ends = |flow| ends_of(if ip == Ip::V4 { running.addresses(flow) } else { running.addresses_v6(flow) });
    let sender = |(from, at)| {
        doors[Side::Senders as usize].run(move || UdpSocket::connect_from(from, at, Buffers::default(), clock))
    };
    let receivers = &doors[Side::Receivers as usize];
    Ok(match early {
        Early::Tcp(ends) => Ends::Tcp(ends),
        Early::Udp(plan) => {
            let ends = ends(plan.flow);
            // Nobody reads: what arrives is counted by the path, and thrown away when the buffer is full.
            let least = Buffers { receive: Bytes::new(4_096), send: Bytes::new(4_096) };
            let receiver = receivers.run(move || UdpSocket::bind(ends.1, true, least, clock))??;
            Ends::Udp(Box::new((plan, sender(ends)??, receiver)))
        }
        Early::Media(mut plan) => {
            let ends = ends(plan.flow);
            plan.config.peer = ends.1;
            let config = plan.receiver.clone();
            let receiver = receivers.run(move || media::open_receiver(config, ends.1, clock))??;
            Ends::Media(Box::new((*plan, sender(ends)??, receiver)))
        }
    })
}

/// Runs all flows to the end. Returns the records of their ends, in order of the flows.
fn work(
    running: &Running,
    ip: Ip,
    doors: &[Door; 2],
    flows: Vec<(Option<Instant>, Early)>,
    times: Times,
    hooks: &Hooks<'_>,
) -> Result<Vec<Endpoint>, EmuError> {
    let clock = running.clock();
    let over = AtomicBool::new(false);
    let (stops, flows): (Vec<_>, Vec<_>) = flows.into_iter().unzip();
    let flags: Vec<Arc<AtomicBool>> = stops.iter().map(|_| Arc::default()).collect();
    let ends = flows.into_iter().map(|f| open(f, running, ip, doors)).collect::<Result<Vec<_>, _>>()?;
    std::thread::scope(|scope| {
        let over = &over;
        let threads: Vec<_> = ends
            .into_iter()
            .zip(&flags)
            .map(|(ends, stop)| scope.spawn(move || flow(ends, clock, doors, times.warmup, stop, over)))
            .collect();
        loop {
            let now = clock.now();
            if now >= times.end || hooks.stopped() {
                break;
            }
            for (stop, flag) in stops.iter().zip(&flags) {
                if stop.is_some_and(|at| now >= at) {
                    flag.store(true, Ordering::Relaxed);
                }
            }
            pause(LOOK_UP.min(times.end.since(now)));
        }
        over.store(true, Ordering::Relaxed);
        flags.iter().for_each(|flag| flag.store(true, Ordering::Relaxed));
        let ended = threads.into_iter().map(|t| t.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        Ok(ended.collect())
    })
}

/// One flow, both ends. `stop` is the flow's end, `over` the run's.
fn flow(
    ends: Ends,
    clock: Clock,
    doors: &[Door; 2],
    warmup: Instant,
    stop: &Arc<AtomicBool>,
    over: &AtomicBool,
) -> Endpoint {
    match ends {
        Ends::Tcp(ends) => {
            let (plan, socket, to, listener) = *ends;
            std::thread::scope(|scope| {
                let reader = scope.spawn(|| tcp::receive(&plan, &listener, clock, warmup, over));
                let mut endpoint = tcp::send(&plan, socket, to, clock, warmup, over);
                endpoint.in_order = reader.join().ok();
                endpoint
            })
        }
        Ends::Udp(ends) => {
            let (plan, socket, receiver) = *ends;
            let endpoint = udp::send(&plan, socket, clock, warmup, over);
            drop(receiver);
            endpoint
        }
        Ends::Media(ends) => {
            let (plan, socket, receiver) = *ends;
            let (id, scheme, start, units) = (plan.flow, plan.config.scheme.clone(), plan.start, plan.units());
            std::thread::scope(|scope| {
                // The receiver outlives its sender, to get the last packets.
                let reader = scope.spawn(|| media::receive(receiver, units, over));
                let stop = Arc::clone(stop);
                let send = move || media::send(plan, socket, clock, warmup, &stop);
                // A sender with a TCP half connects in mid-run, from the senders' namespace.
                let sender = doors[Side::Senders as usize].run(move || Builder::new().spawn(send));
                let mut endpoint = match sender {
                    Ok(Ok(thread)) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
                    failed => Endpoint {
                        trouble: Some(
                            failed.map_or_else(|e| e.to_string(), |_| "there is no thread for it".to_owned()),
                        ),
                        ..Endpoint::new(id, scheme, start)
                    },
                };
                if let Ok((records, trouble)) = reader.join() {
                    endpoint.records = records;
                    endpoint.trouble = endpoint.trouble.or(trouble);
                }
                endpoint
            })
        }
    }
}

fn pause(time: Duration) {
    std::thread::park_timeout(std::time::Duration::from_nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)));
}

/// The machine and its verdict, for the run's summary.
fn emulated(report: &EmuReport, endpoints: &[Endpoint], config: &SimConfig, about: plan::About) -> Emulated {
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
        unread_p50_ms: ms(report.unread.p50),
        unread_p99_ms: ms(report.unread.p99),
        unread_max_ms: ms(report.unread.max),
        cpu: report.cpu,
        real_time_priority: report.real_time,
        unknown_packets: report.unknown(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    #[test]
    fn the_packet_time_is_that_of_the_slowest_link() {
        let of = |path: &str| {
            let text = format!("{path}\n[[flows]]\ncontroller = \"rap\"\n");
            let scenario = Scenario::parse(&text, "s.toml").unwrap();
            packet_time(&sim_config(&scenario, 1, Record::default()).unwrap())
        };
        assert_eq!(of("[path]\nrate = \"2 Mbit/s\""), Some(Duration::from_millis(4)));
        let steps = "[path]\nrate = [{ at = \"0 s\", rate = \"1 Mbit/s\" }, { at = \"1 s\", rate = \"8 Mbit/s\" }]";
        assert_eq!(of(steps), Some(Duration::from_millis(1)), "at the highest rate");
        let hops = "[[hop]]\nname = \"a\"\nlink = { rate = \"8 Mbit/s\" }\n[[hop]]\nname = \"b\"\nlink = { rate = \"1 Mbit/s\" }";
        assert_eq!(of(hops), Some(Duration::from_millis(8)));
        assert_eq!(of("[path]\nrtt = \"10 ms\"\nrate = \"unlimited\""), None);
    }

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
