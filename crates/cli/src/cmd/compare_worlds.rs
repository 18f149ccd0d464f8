//! `fairpace compare-worlds`: one scenario in the simulator and in the emulator.

use crate::alone;
use crate::args::CompareWorlds;
use crate::cmd::run::{
    begin_comparison, ended, finish, folder_of, in_real_time, invalid, prepare, takes_results, with_hooks, write_page,
};
use crate::error::Outcome;
use crate::provenance::Provenance;
use crate::stop::Stop;
use crate::term::{Columns, note};
use fairpace_emu::Sandbox;
use fairpace_lab::results::{Folder, write_whole};
use fairpace_lab::study::{EMULATED, SIMULATED, World};
use fairpace_lab::worlds::{Difference, differences};
use fairpace_lab::{RunError, run};
use fairpace_report::{Section, Table, folder};
use serde_json::json;
use std::io::Write as _;

pub(crate) fn run(args: &CompareWorlds) -> Outcome {
    let provenance = Provenance::begin();
    let (scenario, options) = prepare(&args.scenario, &args.seeds, false, args.results.quiet)?;
    let _alone = alone::take(args.results.quiet)?;
    let sandbox = Sandbox::enter()?;
    let dir = folder_of(&args.results, &format!("{}-worlds", scenario.name));
    takes_results(&dir)?;
    let names = [SIMULATED, EMULATED].map(str::to_owned);
    begin_comparison(&dir, &names, args.results.force)?;
    let manifest = in_real_time(provenance.manifest(), args.real.ip());
    let open = |world: &str| Folder::open(&dir.join(world), &scenario, world, &manifest, args.results.force);
    let (mut of_sim, mut of_real) = (open(SIMULATED)?, open(EMULATED)?);
    let stop = Stop::install()?;
    let (sim, real) = with_hooks(&args.results, &args.seeds, &stop, &scenario.name, |hooks| {
        let sim = run::run_in(World::Sim, &scenario, &options, Some(&mut of_sim.store), hooks)?;
        let store = Some(&mut of_real.store);
        Ok::<_, RunError>((sim, fairpace_realtime::run(&scenario, &options, args.real.ip(), &sandbox, store, hooks)?))
    })?;
    let found = differences(&sim, &real);
    for (folder, set) in [(of_sim, &sim), (of_real, &real)] {
        finish(folder, set, &provenance, &manifest, args.results.quiet)?;
    }
    let interrupted = sim.interrupted || real.interrupted;
    let document = json!({
        "scenario": scenario.name,
        "interrupted": interrupted,
        "invalid": real.invalid().map(|(seed, why)| json!({ "seed": seed, "why": why })).collect::<Vec<_>>(),
        "differences": found,
    });
    write_whole(&dir.join("worlds.json"), format!("{document:#}\n").as_bytes())?;
    let mut section = Section::new("differences", "Simulator and emulator");
    section = section.table(Table {
        title: "Differences".into(),
        caption:
            "means over the seeds with 95 % intervals; the difference is the emulator's number less the simulator's"
                .into(),
        head: HEAD.map(str::to_owned).to_vec(),
        rows: found.iter().map(|d| row(d).to_vec()).collect(),
    });
    write_page(&dir.join("report.html"), &folder::compare_page(&dir, &names)?.section(section))?;
    let mut out = std::io::stdout().lock();
    if args.results.json {
        writeln!(out, "{document}")?;
    } else {
        let mut columns = Columns::new(&HEAD);
        for difference in &found {
            columns.row(row(difference));
        }
        columns.print(&mut out, "")?;
    }
    invalid(&real);
    note(args.results.quiet, &format!("\nresults: {0}/   report: {0}/report.html", dir.display()));
    ended(interrupted)
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
