//! `fairpace compare-worlds`: one scenario in the simulator and in the emulator.

use crate::alone;
use crate::args::CompareWorlds;
use crate::cmd::run::{
    begin_comparison, ended, finish, folder_of, in_real_time, invalid, prepare, takes_results, with_hooks,
    without_randomness, write_page,
};
use crate::error::Outcome;
use crate::provenance::Provenance;
use crate::stop::Stop;
use crate::term::{Columns, note};
use fairpace_emu::Sandbox;
use fairpace_lab::results::{Folder, write_whole};
use fairpace_lab::study::{EMULATED, SIMULATED, World};
use fairpace_lab::worlds::{Difference, as_the_kernel, differences};
use fairpace_lab::{RunError, run};
use fairpace_report::{Section, Table, folder};
use serde_json::json;
use std::collections::BTreeMap;
use std::io::Write as _;

pub(crate) fn run(args: &CompareWorlds) -> Outcome {
    let provenance = Provenance::begin();
    let (scenario, options) = prepare(&args.scenario, &args.seeds, false, args.results.quiet)?;
    // The simulated TCP is the kernel's.
    let (simulated, changes) = as_the_kernel(&scenario).map_err(RunError::from)?;
    for change in &changes {
        note(args.results.quiet, change);
    }
    let _alone = alone::take(args.results.quiet)?;
    let sandbox = Sandbox::enter()?;
    let dir = folder_of(&args.results, &format!("{}-worlds", scenario.name));
    takes_results(&dir)?;
    let names = [SIMULATED, EMULATED].map(str::to_owned);
    begin_comparison(&dir, &names, args.results.force)?;
    let manifest = in_real_time(provenance.manifest(), args.real.ip());
    let open = |world: &str, scenario| Folder::open(&dir.join(world), scenario, world, &manifest, args.results.force);
    let (mut of_sim, mut of_real) = (open(SIMULATED, &simulated)?, open(EMULATED, &scenario)?);
    let stop = Stop::install()?;
    let (sim, real) = with_hooks(&args.results, &args.seeds, &stop, &scenario.name, |hooks| {
        let sim = run::run_in(World::Sim, &simulated, &options, Some(&mut of_sim.store), hooks)?;
        let store = Some(&mut of_real.store);
        let real = fairpace_realtime::run(&scenario, &options, args.real.ip(), &sandbox, None, store, hooks)?;
        Ok::<_, RunError>((sim, real))
    })?;
    let found = differences(&sim, &real);
    for (folder, set) in [(of_sim, &sim), (of_real, &real)] {
        finish(folder, set, &provenance, &manifest, args.results.quiet)?;
    }
    let interrupted = sim.interrupted || real.interrupted;
    let kernel = real
        .runs
        .first()
        .and_then(|r| r.summary.emulated.as_ref())
        .map_or(Vec::new(), |e| kernel_tcp(&e.algorithms, &e.sysctls));
    let still = sim.seeds_differ() == Some(false);
    let remarks: Vec<String> =
        changes.iter().chain(&kernel).cloned().chain(still.then(|| without_randomness(&scenario))).collect();
    let document = json!({
        "scenario": scenario.name,
        "interrupted": interrupted,
        "simulated_as": changes,
        "kernel_tcp": kernel,
        "simulator_is_random": sim.seeds_differ(),
        "invalid": real.invalid().map(|(seed, why)| json!({ "seed": seed, "why": why })).collect::<Vec<_>>(),
        "differences": found,
    });
    write_whole(&dir.join("worlds.json"), format!("{document:#}\n").as_bytes())?;
    let section = Section::new("differences", "Simulator and emulator");
    let section = remarks.iter().fold(section, |section, remark| section.text(remark.as_str())).table(Table {
        title: "Differences".into(),
        caption:
            "means over the seeds with 95 % intervals; the difference is the emulator's number less the simulator's"
                .into(),
        head: HEAD.map(str::to_owned).to_vec(),
        rows: found.iter().map(|d| row(d).to_vec()).collect(),
    });
    if let Some(page) = folder::compare_page_of([(SIMULATED, &sim), (EMULATED, &real)]) {
        write_page(&dir.join("report.html"), &page.section(section))?;
    }
    let mut out = std::io::stdout().lock();
    if args.results.json {
        writeln!(out, "{document}")?;
    } else {
        let mut columns = Columns::new(&HEAD);
        for difference in &found {
            columns.row(row(difference));
        }
        columns.print(&mut out, "")?;
        for remark in kernel.into_iter().chain(still.then(|| without_randomness(&scenario))) {
            writeln!(out, "{remark}")?;
        }
    }
    invalid(&real);
    note(args.results.quiet, &format!("\nresults: {0}/   report: {0}/report.html", dir.display()));
    ended(interrupted)
}

/// The kernel's TCP in a run, as it was: a line for each algorithm.
fn kernel_tcp(algorithms: &BTreeMap<String, String>, sysctls: &BTreeMap<String, String>) -> Vec<String> {
    let is_on = |key: &str| sysctls.get(&format!("net.ipv4.{key}")).is_some_and(|v| v != "0");
    let on = |yes: bool| if yes { "on" } else { "off" };
    let mut flows: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (flow, algorithm) in algorithms {
        flows.entry(algorithm).or_default().push(flow);
    }
    let line = |(algorithm, flows): (&str, Vec<&str>)| {
        let hystart = match algorithm {
            "cubic" => match std::fs::read_to_string("/sys/module/tcp_cubic/parameters/hystart") {
                Ok(text) => on(text.trim() != "0"),
                Err(_) => "not known",
            },
            _ => "not there",
        };
        let flows = flows.join(", ");
        let (sack, timestamps) = (on(is_on("tcp_sack")), on(is_on("tcp_timestamps")));
        format!("kernel TCP of {flows}: {algorithm}, SACK {sack}, timestamps {timestamps}, HyStart {hystart}, TSO off")
    };
    flows.into_iter().map(line).collect()
}

const HEAD: [&str; 6] = ["group", "what", "simulator", "emulator", "difference", "in %"];

fn row(d: &Difference) -> [String; 6] {
    let scaled = |e: fairpace_lab::stats::Estimate| fairpace_lab::stats::Estimate {
        mean: e.mean * d.scale,
        ci95: e.ci95.map(|c| c.map(|x| x * d.scale)),
        ..e
    };
    let difference = fairpace_lab::stats::Estimate { mean: d.difference, ci95: d.difference_ci95, n: d.emu.n };
    let percent = d.relative.map_or_else(|| "–".to_owned(), |r| format!("{:+.1}", r * 100.0));
    let [sim, emu, difference] = [d.sim, d.emu, difference].map(|e| scaled(e).text());
    [d.group.clone(), d.title.to_owned(), sim, emu, difference, percent]
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairpace_scenario::Scenario;

    #[test]
    fn the_kernels_tcp_is_called_what_it_is() {
        let sysctls = [("net.ipv4.tcp_sack", "1"), ("net.ipv4.tcp_timestamps", "0")];
        let text = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
        };
        let algorithms = text(&[("a", "reno"), ("b", "reno")]);
        assert_eq!(
            kernel_tcp(&algorithms, &text(&sysctls)),
            ["kernel TCP of a, b: reno, SACK on, timestamps off, HyStart not there, TSO off"]
        );
    }

    #[test]
    fn a_scenario_without_randomness_is_offered_a_packets_time_of_jitter() {
        let text = "[path]\nrate = \"2 Mbit/s\"\nrtt = \"20 ms\"\n[[flows]]\ncontroller = \"tcp-sack\"\n";
        let said = without_randomness(&Scenario::parse(text, "s.toml").unwrap());
        assert!(
            said.contains("nothing in this scenario is random") && said.contains("`jitter = \"4000 us\"`"),
            "{said}"
        );
    }
}
