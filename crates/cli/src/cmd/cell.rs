//! `fairpace cell`: the base station of a wireless cell for real senders.
//!
//! ```text
//!   scenario ─▶ its `aimd` flows become places ─▶ emu's relay, a place for each ─▶ visits: plan beside measurement
//! ```

mod show;

use crate::alone;
use crate::args::Cell as Args;
use crate::cmd::run::{columns, takes_results, write_page};
use crate::confine;
use crate::error::{Failure, Outcome, code};
use crate::outputs;
use crate::provenance::Provenance;
use crate::stats::Stats;
use crate::stop::Stop;
use crate::term::note;
use fairpace_emu::CallFilter;
use fairpace_emu::relay::{MOST_PLACES, Relay, RelayConfig, RelayReport, RelaySample};
use fairpace_lab::metrics::{Emulated, RunSummary};
use fairpace_lab::results::{Folder, Manifest, write_whole};
use fairpace_lab::run::SeedRun;
use fairpace_lab::{RunSet, SeedResults};
use fairpace_net::{Clock, resolve};
use fairpace_report::folder;
use fairpace_scenario::{Count, Hop, Record, Scenario, Time, WindowPlanner, sim_config};
use fairpace_sim::{ControllerSpec, FlowConfig, HopConfig, Protocol, SimConfig};
use fairpace_units::{Duration, Instant, format_duration};
use show::{line, news, object, stats, summary};
use std::io::{IsTerminal as _, Write as _};
use std::path::Path;

/// How often a sender of the wire sends something else than data: a report each 2 to 6 s (`docs/rtp/timing.md`).
const REPORTS: Duration = Duration::from_secs(4);
/// The world of these results, beside `sim` and `emu`.
const WORLD: &str = "cell";

pub(crate) fn run(args: &Args) -> Outcome {
    let provenance = Provenance::begin();
    outputs::distinct(&[("--stats", args.stats.as_deref()), ("--out", args.out.as_deref())])?;
    if args.json && Stats::is_stdout(args.stats.as_deref()) {
        return Err(Failure::usage("`--json` and `--stats -` both write to standard output")
            .hint("give `--stats` a file, or leave one of them out"));
    }
    let mut scenario = Scenario::load(&args.scenario)?;
    fairpace_scenario::controllers::simulated(&scenario)?;
    for warning in scenario.warnings() {
        note(args.quiet, &format!("warning: {warning}"));
    }
    if let Some(seed) = args.seed {
        scenario = scenario.modify(|s| s.seed = Count::new(seed))?;
    }
    if let Some(time) = args.seconds.filter(|_| args.out.is_some()) {
        scenario = scenario.modify(|s| s.duration = Time::seconds(time.as_secs_f64()))?;
    }
    let record = Record { series: args.out.is_some(), events: args.out.is_some(), pcap: false };
    let path = places(&scenario, sim_config(&scenario, scenario.seed.get(), record)?)?;
    let to = resolve(&args.to, args.ip.family())?[0];
    let mut config = RelayConfig::new(args.listen, to);
    config.family = args.ip.family();
    config.peers.clone_from(&args.peer);
    config.seed = path.seed;
    config.duration = args.seconds.or_else(|| args.out.is_some().then_some(path.duration));
    let names: Vec<String> = path.flows.iter().filter(|f| is_place(f)).map(|f| f.name.clone()).collect();
    config.cell = Some(path);

    let _alone = alone::take(args.quiet)?;
    let stop = Stop::install()?;
    let relay = Relay::open(config, Clock::awake())?;
    let mut lines = Stats::open(args.stats.as_deref(), args.force)?;
    let manifest = provenance.manifest();
    let results = args.out.as_deref().map(|dir| begin(dir, &scenario, &manifest, args.force)).transpose()?;
    confine::drop_capabilities()?;
    note(
        args.quiet,
        &format!(
            "relaying {} to {to} through the cell `{}`, {} places: {}; Ctrl-C ends it",
            relay.address()?,
            scenario.name,
            names.len(),
            show::some(&names),
        ),
    );
    let live = !args.quiet && std::io::stderr().is_terminal();
    let mut before: Option<RelaySample> = None;
    let observe = |sample: &RelaySample| {
        for news in news(&names, sample) {
            note(args.quiet, &if live { format!("\r\x1b[K{news}") } else { news });
        }
        lines.sample(sample.at, || stats(sample));
        if live {
            eprint!("\r{}\x1b[K", line(sample, before.as_ref()));
        }
        before = Some(sample.clone());
    };
    let report = match results {
        None => {
            confine::filter_calls(CallFilter::Packets, args.quiet);
            relay.run(observe, stop.flag())?
        }
        // Packets are read where no file can be opened, and files are written where no packet is read.
        Some(_) => apart(|| {
            confine::filter_calls_of_thread(CallFilter::Packets, args.quiet);
            relay.run(observe, stop.flag())
        })?,
    };
    if live {
        eprintln!();
    }
    let object = object(&scenario, &report);
    if let Some(folder) = results {
        finish(folder, &scenario, &report, stop.asked(), &provenance.manifest(), &object)?;
    }
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{}", serde_json::to_string(&object)?)?;
    } else {
        summary(&mut out, &report)?;
    }
    if report.withheld > 0 {
        let what = "were withheld from senders that had not shown that they hear: name them with `--peer` if they are to get all";
        note(args.quiet, &format!("warning: {} packets {what}", report.withheld));
    }
    for why in &report.invalid {
        note(args.quiet, &format!("warning: the cell did not keep up: {why}"));
    }
    if let Some(dir) = &args.out {
        note(args.quiet, &format!("\nresults: {0}/   report: {0}/report.html", dir.display()));
    }
    lines.lost().outcome()?;
    if stop.asked() {
        return Err(Failure::silent(code::INTERRUPTED));
    }
    Ok(())
}

/// On a thread of its own, to its end.
fn apart<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| scope.spawn(work).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
}

fn is_place(flow: &FlowConfig) -> bool {
    matches!(flow.protocol, Protocol::External)
}

/// The path with a place for each flow whose window the base station plans. When such a flow comes and goes is its sender's to say.
///
/// # Errors
/// No base station plans anything, no flow is planned, or too many are.
fn places(scenario: &Scenario, mut sim: SimConfig) -> Outcome<SimConfig> {
    let plans = |hop: &HopConfig| matches!(hop, HopConfig::Radio { radio, .. } if radio.base_station.is_some());
    if !sim.hops.iter().any(plans) {
        let what = format!("`{}` has no `wireless.plan`: nothing says which delay is promised", scenario.name);
        return Err(Failure::new(code::SCENARIO, what).hint(
            "write `plan = { max_jitter = \"50 ms\" }` under `[wireless]`; `fairpace relay` takes a path without a base station",
        ));
    }
    // Of each hop, the D that its base station promises.
    let mut promised = vec![None; sim.hops.len()];
    for ((hop, jitter), (_, spec)) in sim.hops.iter_mut().zip(&mut promised).zip(scenario.hops()) {
        let (HopConfig::Radio { radio, .. }, Hop::Wireless(wireless)) = (hop, spec) else { continue };
        let Some(plan) = &wireless.plan else { continue };
        *jitter = Some(plan.max_jitter.get());
        // Real senders report and ask, besides their data.
        let planner = plan.planner(&radio.downlink).map(|planner| planner.with_reports(REPORTS));
        radio.base_station = planner.ok().map(WindowPlanner::spec).or(radio.base_station.take());
    }
    let planned: Vec<Option<Duration>> = sim.flows.iter().map(|flow| jitter_of(flow, &promised)).collect();
    let count = planned.iter().flatten().count();
    if !(1..=MOST_PLACES).contains(&count) {
        let what = format!("`{}` has {count} flows of `aimd` behind its base station", scenario.name);
        return Err(Failure::new(code::SCENARIO, what)
            .hint(format!("each is the place of a real sender: write 1 to {MOST_PLACES} `[[flows]]` with `controller = \"aimd\"` and a `user`")));
    }
    let least: Vec<Duration> = sim.flows.iter().map(|flow| sim.min_owd(flow)).collect();
    for ((flow, jitter), least) in sim.flows.iter_mut().zip(planned).zip(least) {
        let Some(jitter) = jitter else { continue };
        flow.protocol = Protocol::External;
        (flow.start, flow.start_spread, flow.stop) = (Instant::ZERO, Duration::ZERO, None);
        flow.delay_bound = flow.delay_bound.or(Some(least + jitter));
    }
    Ok(sim)
}

/// The D that the base station on a flow's way promises, where it plans the flow's window; `promised` has an entry per hop.
fn jitter_of(flow: &FlowConfig, promised: &[Option<Duration>]) -> Option<Duration> {
    let aimd = matches!(&flow.protocol, Protocol::Media(media)
        if matches!(&media.controller, ControllerSpec::Named { scheme, .. } if scheme == "aimd"));
    flow.route.iter().filter(|_| aimd).find_map(|via| promised.get(via.hop as usize).copied().flatten())
}

/// The folder of the results, before anything runs.
fn begin(dir: &Path, scenario: &Scenario, manifest: &Manifest, force: bool) -> Outcome<Folder> {
    outputs::refuse_others_link(dir)?;
    takes_results(dir)?;
    Ok(Folder::open(dir, scenario, WORLD, manifest, force)?)
}

/// Writes the results of a run, and beside them what `--json` prints.
fn finish(
    folder: Folder,
    scenario: &Scenario,
    report: &RelayReport,
    interrupted: bool,
    manifest: &Manifest,
    object: &serde_json::Value,
) -> Outcome {
    let dir = folder.path().to_owned();
    let seed = scenario.seed.get();
    let mut summary = RunSummary::new(scenario, seed, &report.path, report.elapsed, interrupted);
    WORLD.clone_into(&mut summary.world);
    let ms = |d: Duration| d.as_secs_f64() * 1e3;
    summary.emulated = Some(Emulated {
        invalid: report.invalid.clone(),
        notes: vec![format!("{} real senders in {}", report.clients, format_duration(report.elapsed))],
        algorithms: Default::default(),
        sysctls: Default::default(),
        lateness_p50_ms: ms(report.lateness.p50),
        lateness_p99_ms: ms(report.lateness.p99),
        lateness_max_ms: ms(report.lateness.max),
        unread_p50_ms: 0.0,
        unread_p99_ms: 0.0,
        unread_max_ms: 0.0,
        cpu: report.cpu,
        real_time_priority: false,
        unknown_packets: report.strangers,
    });
    let run = SeedRun { seed, summary, report: report.path.clone() };
    let runs = vec![SeedResults::new(scenario, run)?];
    let set = RunSet { scenario: scenario.clone(), runs, interrupted };
    folder.finish(&set, manifest, Some(&columns))?;
    write_whole(&dir.join("cell.json"), format!("{}\n", serde_json::to_string_pretty(object)?).as_bytes())?;
    write_page(&dir.join("report.html"), &folder::run_page_of(&set))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairpace_sim::RouteHop;

    const CELL: &str = "packet_size = \"125 B\"\nack_size = \"64 B\"\n[path]\nrate = \"10 Mbit/s\"\nrtt = \"75 ms\"\n\
        [wireless]\nrate = \"200 kbit/s\"\nuplink = { rate = \"200 kbit/s\" }\nplan = { max_jitter = \"50 ms\" }\n\
        [[flows]]\nname = \"plain\"\ncontroller = \"aimd\"\nuser = 0\n\
        [[flows]]\nname = \"own\"\ncontroller = \"aimd\"\nuser = 0\ntolerable_jitter = \"20 ms\"\n\
        [[flows]]\nname = \"other\"\ncontroller = \"rap\"\nuser = 0\n";

    fn of_cell() -> (Scenario, SimConfig) {
        let scenario = Scenario::parse(CELL, "cell.toml").unwrap();
        let sim = sim_config(&scenario, 1, Record::default()).unwrap();
        (scenario, sim)
    }

    #[test]
    fn a_place_has_the_jitter_of_its_scenario_or_that_of_the_plan() {
        let (scenario, sim) = of_cell();
        let least: Vec<Duration> = sim.flows.iter().map(|flow| sim.min_owd(flow)).collect();
        let own = sim.flows[1].delay_bound;
        let path = places(&scenario, sim).unwrap();
        assert_eq!(path.flows.iter().map(is_place).collect::<Vec<_>>(), [true, true, false]);
        assert_eq!(path.flows[0].delay_bound, Some(least[0] + Duration::from_millis(50)));
        assert!(own.is_some() && path.flows[1].delay_bound == own);
    }

    #[test]
    fn behind_two_radios_each_flow_has_its_own_ones_jitter() {
        let (_, sim) = of_cell();
        let promised = [20, 70].map(|ms| Some(Duration::from_millis(ms)));
        let promised = [None, promised[0], promised[1], None];
        let behind = |flow: &FlowConfig, hops: &[u32]| {
            let route = hops.iter().map(|&hop| RouteHop { hop, ports: [0, 0] }).collect();
            jitter_of(&FlowConfig { route, ..flow.clone() }, &promised)
        };
        assert_eq!(behind(&sim.flows[0], &[0, 1]), promised[1]);
        assert_eq!(behind(&sim.flows[0], &[0, 2]), promised[2]);
        assert_eq!(behind(&sim.flows[0], &[0, 3]), None);
        assert_eq!(behind(&sim.flows[2], &[0, 1]), None, "no window reaches it");
    }
}
