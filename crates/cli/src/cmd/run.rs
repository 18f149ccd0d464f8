//! `fairpace run` and `fairpace compare`: scenarios in the simulator, and one in real time.

use crate::alone;
use crate::args::{Compare, Results, Run, Seeds as SeedArgs, World};
use crate::capture::Capture;
use crate::error::{Failure, OCCUPIED, Outcome, code};
use crate::outputs;
use crate::provenance::Provenance;
use crate::stop::Stop;
use crate::term::{Columns, Ink, note, paint, progress};
use fairpace_emu::Sandbox;
use fairpace_lab::results::{Folder, Manifest, remove_torn, write_whole};
use fairpace_lab::study::{self, EMULATED, SIMULATED};
use fairpace_lab::summary::Metric;
use fairpace_lab::worlds::jitter_of_a_packet;
use fairpace_lab::{Hooks, RunError, RunOptions, RunSet, Seeds, Table, run, variants};
use fairpace_report::{Page, folder};
use fairpace_scenario::controllers::parameter_names;
use fairpace_scenario::{Count, Problem, Record, Scenario, ScenarioError, nearest, with_controller};
use nix::unistd::{AccessFlags, access};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// The file in a folder of several runs that says which there are.
pub(crate) const COMPARE_FILE: &str = "compare.json";

pub(crate) fn run_one(args: &Run) -> Outcome {
    let provenance = Provenance::begin();
    for (option, file) in [("--pcap", &args.pcap), ("--series", &args.series)] {
        if file.is_some() && args.seeds.seeds > 1 {
            let one = format!("`{option}` writes one run, and `--seeds` asks for several");
            return Err(Failure::usage(one).hint("leave one of them out"));
        }
    }
    let (scenario, options) = prepare(&args.scenario, &args.seeds, args.pcap.is_some(), args.results.quiet)?;
    check_world(args)?;
    let dir = folder_of(&args.results, &scenario.name);
    refuse_meeting(args, &dir)?;
    // Before anything starts a thread: namespaces are a process's with one thread.
    let real = match args.world {
        World::Sim => None,
        World::Emu => Some((alone::take(args.results.quiet)?, Sandbox::enter()?)),
    };
    for file in [&args.pcap, &args.series].into_iter().flatten() {
        writable(file, args.results.force)?;
    }
    outputs::refuse_others_link(&dir)?;
    let (world, manifest) = match args.world {
        World::Sim => (SIMULATED, provenance.manifest()),
        World::Emu => {
            takes_results(&dir)?;
            (EMULATED, in_real_time(provenance.manifest(), args.real.ip()))
        }
    };
    let stop = Stop::install()?;
    let mut folder = Folder::open(&dir, &scenario, world, &manifest, args.results.force)?;
    let output = |file: &Option<PathBuf>| -> Outcome<(Option<Capture>, Option<_>)> {
        Ok(file.as_ref().map(|file| Capture::create(file, args.results.force)).transpose()?.unzip())
    };
    let ((capture, packets), (rows, series)) = (output(&args.pcap)?, output(&args.series)?);
    let set = with_hooks(&args.results, &args.seeds, &stop, &scenario.name, |hooks| {
        let store = Some(&mut folder.store);
        match &real {
            None if packets.is_none() && series.is_none() => {
                run::run_in(study::World::Sim, &scenario, &options, store, hooks)
            }
            None => {
                let outputs = Mutex::new(run::Outputs { packets, series });
                let one = |s: &Scenario, seed, record, hooks: &Hooks<'_>| {
                    let outputs = outputs.lock().map(|mut outputs| std::mem::take(&mut *outputs)).unwrap_or_default();
                    run::simulate_into(outputs, s, seed, record, hooks)
                };
                run::run_by(&one, &scenario, &options, hooks)
            }
            Some((_, sandbox)) => {
                fairpace_realtime::run(&scenario, &options, args.real.ip(), sandbox, packets, store, hooks)
            }
        }
    })?;
    finish(folder, &set, &provenance, &manifest, args.results.quiet)?;
    write_page(&dir.join("report.html"), &folder::run_page_of(&set))?;
    // Behind the results: packets and rows that find no room take nothing else along.
    for written in [capture, rows].into_iter().flatten() {
        written.finish()?;
    }
    let mut out = std::io::stdout().lock();
    if args.results.json {
        writeln!(out, "{}", set.json())?;
    } else {
        table(&mut out, &[(String::new(), &set)])?;
    }
    invalid(&set);
    tell_stillness(args.results.quiet, &scenario, [&set]);
    note(args.results.quiet, &format!("\nresults: {0}/   report: {0}/report.html", dir.display()));
    ended(set.interrupted)
}

/// Refuses outputs that would be written over each other: two in one file, one among the files of the results, or rows that lie in the folder
/// already and would leave it.
fn refuse_meeting(args: &Run, dir: &Path) -> Outcome {
    let place = |file: &Path| {
        let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Some((parent.canonicalize().ok()?, file.file_name()?.to_owned()))
    };
    let outputs = [("--pcap", &args.pcap), ("--series", &args.series)];
    let mut places = Vec::new();
    for (option, file) in outputs {
        let Some(file) = file else { continue };
        let Some(found) = place(file) else { continue };
        if dir.canonicalize().is_ok_and(|dir| dir == found.0) {
            let within = format!("`{option} {}` is in the folder of the results", file.display());
            return Err(Failure::usage(within).hint("name a file elsewhere: the folder has names of its own"));
        }
        places.push(found);
    }
    if let [one, other] = &places[..]
        && one == other
    {
        return Err(Failure::usage("`--pcap` and `--series` name the same file").hint("give each a file of its own"));
    }
    if args.series.is_some() && !args.results.force && dir.join("series.csv").exists() {
        let has = format!("`{}` has the rows of series already", dir.display());
        return Err(
            Failure::usage(has).hint("another folder (--out), or --force, which leaves the head of `series.csv` there")
        );
    }
    Ok(())
}

/// The manifest of runs in real time, which IPv4 and IPv6 decide, too.
pub(crate) fn in_real_time(manifest: Manifest, ip: fairpace_realtime::Ip) -> Manifest {
    let suffix = if ip == fairpace_realtime::Ip::V6 { fairpace_lab::sweep::IPV6 } else { "" };
    Manifest { program: format!("{}{suffix}", manifest.program), ..manifest }
}

/// Writes the files, after a word on the seeds that were there already.
pub(crate) fn finish(folder: Folder, set: &RunSet, provenance: &Provenance, begun: &Manifest, quiet: bool) -> Outcome {
    if let Some(kept) = folder.account() {
        note(quiet, &format!("{kept}; --force measures anew"));
    }
    let manifest = Manifest { program: begun.program.clone(), ..provenance.manifest() };
    Ok(folder.finish(set, &manifest, Some(&columns))?)
}

/// A table as Parquet, beside its CSV.
pub(crate) fn columns(table: &Table) -> std::io::Result<Vec<u8>> {
    fairpace_columns::to_parquet(table).map_err(std::io::Error::other)
}

/// Refuses the options that the chosen world does not support.
fn check_world(args: &Run) -> Outcome {
    match args.world {
        World::Sim if args.real.ip() == fairpace_realtime::Ip::V6 => {
            Err(Failure::usage("`--ipv6` is for real packets, and `--world` is `sim`")
                .hint("use `--world emu`, or leave it out: in the simulator packets have their size and no headers"))
        }
        World::Emu if args.series.is_some() => {
            Err(Failure::usage("`--series` is for simulations, and `--world` is `emu`")
                .hint("leave it out: in real time `series.csv` is in the results folder"))
        }
        World::Emu if args.seeds.jobs.is_some() => Err(one_after_the_other()),
        World::Sim | World::Emu => Ok(()),
    }
}

/// `--jobs` in real time.
fn one_after_the_other() -> Failure {
    Failure::usage("`--jobs` is for simulations: in real time seeds run one after the other").hint("leave it out")
}

pub(crate) fn run_several(args: &Compare) -> Outcome {
    let provenance = Provenance::begin();
    let (scenario, options) = prepare(&args.scenario, &args.seeds, false, args.results.quiet)?;
    let controllers = join_settings(&args.control);
    for spec in &controllers {
        split_settings("--with", spec)?;
        with_controller(&scenario, spec).map_err(|e| refused(spec, e))?;
    }
    let folders: BTreeSet<String> = controllers.iter().map(|name| folder::folder_name(name)).collect();
    if folders.len() < controllers.len() {
        return Err(Failure::usage(format!("`--with {}` names one controller twice", controllers.join(",")))
            .hint("each has a folder of its name: name it once"));
    }
    let dir = folder_of(&args.results, &format!("{}-compare", scenario.name));
    begin_comparison(&dir, &controllers, args.results.force)?;
    let stop = Stop::install()?;
    let manifest = provenance.manifest();
    let mut left = Vec::new();
    for (name, variant) in variants(&scenario, &controllers)? {
        let of_it = dir.join(folder::folder_name(&name));
        let folder = Folder::open(&of_it, &variant, SIMULATED, &manifest, args.results.force)?;
        left.push((name, variant, folder));
    }
    let mut sets = Vec::new();
    for (name, variant, mut folder) in left {
        let store = Some(&mut folder.store);
        let ran = with_hooks(&args.results, &args.seeds, &stop, &scenario.name, |hooks| {
            match run::run_in(study::World::Sim, &variant, &options, store, hooks) {
                Err(RunError::Interrupted) => Ok(None),
                ran => ran.map(Some),
            }
        })?;
        let Some(set) = ran else { break };
        finish(folder, &set, &provenance, &manifest, args.results.quiet)?;
        sets.push((name, set));
    }
    if sets.is_empty() {
        return Err(RunError::Interrupted.into());
    }
    let names: Vec<String> = sets.iter().map(|(name, _)| name.clone()).collect();
    say_compared(&dir, &names)?;
    if let Some(page) = folder::compare_page_of(sets.iter().map(|(name, set)| (name.as_str(), set))) {
        write_page(&dir.join("report.html"), &page)?;
    }
    let interrupted = sets.len() < controllers.len() || sets.iter().any(|(_, s)| s.interrupted);
    let mut out = std::io::stdout().lock();
    if args.results.json {
        let runs: Vec<_> = sets
            .iter()
            .map(|(name, set)| {
                let mut run = set.json();
                run["with"] = json!(name);
                run
            })
            .collect();
        writeln!(out, "{}", json!({ "scenario": scenario.name, "interrupted": interrupted, "runs": runs }))?;
    } else {
        let sets: Vec<(String, &RunSet)> = sets.iter().map(|(name, set)| (name.clone(), set)).collect();
        table(&mut out, &sets)?;
    }
    tell_stillness(args.results.quiet, &scenario, sets.iter().map(|(_, set)| set));
    note(args.results.quiet, &format!("\nresults: {0}/   report: {0}/report.html", dir.display()));
    ended(interrupted)
}

/// Makes the folder of a comparison, or goes on in the one that is there if it compares some of these.
pub(crate) fn begin_comparison(dir: &Path, names: &[String], force: bool) -> Outcome {
    outputs::refuse_others_link(dir)?;
    std::fs::create_dir_all(dir).map_err(|e| Failure::file("make", dir, &e))?;
    remove_torn(dir).map_err(|e| Failure::file("tidy up", dir, &e))?;
    let is_empty = || std::fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_none());
    if !force && !is_empty() {
        let found = std::fs::read(dir.join(COMPARE_FILE)).unwrap_or_default();
        let found: serde_json::Value = serde_json::from_slice(&found).unwrap_or_default();
        let is_ours = |run: &serde_json::Value| names.iter().any(|name| run == name);
        if !found["runs"].as_array().is_some_and(|runs| runs.iter().all(is_ours)) {
            let holds = format!("`{}` holds other things than this comparison", dir.display());
            return Err(Failure::usage(holds).hint(OCCUPIED));
        }
    }
    say_compared(dir, names)
}

/// Says in the folder which runs it has.
pub(crate) fn say_compared(dir: &Path, names: &[String]) -> Outcome {
    let about = json!({ "format": "fairpace-compare/1", "runs": names });
    Ok(write_whole(&dir.join(COMPARE_FILE), format!("{about}\n").as_bytes())?)
}

/// `rap:fine_grain=on,alpha=2` has come apart at its commas: what has a `=` and no name of its own belongs to
/// the controller before it.
pub(crate) fn join_settings(pieces: &[String]) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for piece in pieces {
        let setting = piece.contains('=') && !piece.split('=').next().unwrap_or_default().contains(':');
        match out.last_mut() {
            Some(last) if setting => {
                last.push(if last.contains(':') { ',' } else { ':' });
                last.push_str(piece);
            }
            _ => out.push(piece.clone()),
        }
    }
    out
}

/// `rap:fine_grain=on` as its name and its settings; `option` is where it stands.
pub(crate) fn split_settings<'a>(option: &str, spec: &'a str) -> Outcome<(&'a str, BTreeMap<String, String>)> {
    let (name, given) = spec.split_once(':').unwrap_or((spec, ""));
    let mut settings = BTreeMap::new();
    for setting in given.split(',').map(str::trim).filter(|s| !s.is_empty()) {
        let Some((key, value)) = setting.split_once('=') else {
            let near = did_you_mean(setting, &parameter_names(name));
            return Err(Failure::usage(format!("`{option}` has `{setting}` where a parameter should be"))
                .hint(format!("{near}write parameters as in `rap:fine_grain=on`")));
        };
        settings.insert(key.trim().to_owned(), value.trim().to_owned());
    }
    Ok((name, settings))
}

fn did_you_mean(found: &str, names: &[impl AsRef<str>]) -> String {
    nearest(found, names.iter().map(AsRef::as_ref)).map_or_else(String::new, |n| format!("did you mean `{n}`? "))
}

/// A controller of the command line that the scenario cannot take: the line is wrong, not the file.
fn refused(spec: &str, error: ScenarioError) -> Failure {
    let name = spec.split(':').next().unwrap_or(spec);
    match error.problem.as_ref() {
        Problem::UnknownField { field, allowed } => {
            let found = field.rsplit(':').next().unwrap_or(field);
            Failure::usage(format!("`--with` has `{spec}`, and `{name}` has no parameter `{found}`")).hint(format!(
                "{}there are `{}`",
                did_you_mean(found, allowed),
                allowed.join("`, `")
            ))
        }
        _ => Failure { code: code::USAGE, ..error.into() },
    }
}

pub(crate) fn prepare(file: &Path, seeds: &SeedArgs, pcap: bool, quiet: bool) -> Outcome<(Scenario, RunOptions)> {
    let mut scenario = Scenario::load(file)?;
    for warning in scenario.warnings() {
        note(quiet, &format!("warning: {warning}"));
    }
    if let Some(seed) = seeds.seed {
        scenario = scenario.modify(|s| s.seed = Count::new(seed))?;
    }
    let record = Record { series: true, events: true, pcap };
    Ok((scenario, RunOptions { seeds: Seeds::Count(seeds.seeds as usize), record }))
}

pub(crate) fn with_hooks<T, E>(
    results: &Results,
    seeds: &SeedArgs,
    stop: &Stop,
    name: &str,
    work: impl FnOnce(&Hooks<'_>) -> Result<T, E>,
) -> Outcome<T>
where
    Failure: From<E>,
{
    let bar = progress(results.quiet, 1, name);
    let report = |done: usize, total: usize, what: &str| {
        bar.set_length(total as u64);
        bar.set_position(done as u64);
        bar.set_message(what.to_owned());
    };
    let hooks = Hooks { progress: &report, stop: stop.flag(), threads: seeds.jobs.unwrap_or(0) as usize };
    let result = work(&hooks);
    bar.finish_and_clear();
    Ok(result?)
}

/// Whether the file can and may be written, found before a long run; what is there stays as it is.
fn writable(file: &Path, force: bool) -> Outcome {
    let unwritable = |e: std::io::Error| Failure::unwritable(file, &e);
    // Not by way of a symbolic link, which may lead to where nothing is to be made.
    let mut options = OpenOptions::new();
    options.append(true).custom_flags(nix::libc::O_NOFOLLOW);
    match options.create_new(true).open(file) {
        Ok(_) => std::fs::remove_file(file).map_err(unwritable),
        Err(e) if e.kind() == ErrorKind::AlreadyExists && !force => {
            Err(Failure::usage(format!("`{}` exists already", file.display())).hint(outputs::REPLACE))
        }
        Err(e) if e.kind() == ErrorKind::AlreadyExists => {
            options.create_new(false).open(file).map(|_| ()).map_err(unwritable)
        }
        Err(e) => Err(unwritable(e)),
    }
}

/// Whether the folder can be made and written, found before a run in real time: in namespaces of our own root is a
/// user as any other.
pub(crate) fn takes_results(dir: &Path) -> Outcome {
    let there = |path: &&Path| path.exists();
    let folders = dir.ancestors().map(|p| if p.as_os_str().is_empty() { Path::new(".") } else { p });
    let Some(nearest) = folders.into_iter().find(there) else { return Ok(()) };
    access(nearest, AccessFlags::W_OK | AccessFlags::X_OK).map_err(|e| {
        Failure::unwritable(dir, &e.into())
            .hint("runs in real time have no rights beyond their user's, root's too: give `--out` a folder of your own")
    })
}

pub(crate) fn folder_of(results: &Results, name: &str) -> PathBuf {
    results.out.clone().unwrap_or_else(|| Path::new("results").join(folder::folder_name(name)))
}

pub(crate) fn write_page(file: &Path, page: &Page) -> Outcome {
    Ok(write_whole(file, page.to_html().as_bytes())?)
}

/// Names the runs in real time that are not to be trusted, on stderr even if nothing else is to be said.
pub(crate) fn invalid(set: &RunSet) {
    for (seed, why) in set.invalid() {
        note(false, &format!("{}: seed {seed}: {why}", paint("not valid", Ink::Bold)));
    }
}

/// Says where the seeds of all these are one run each, which has no interval.
fn tell_stillness<'a>(quiet: bool, scenario: &Scenario, sets: impl IntoIterator<Item = &'a RunSet>) {
    if sets.into_iter().all(|set| set.seeds_differ() == Some(false)) {
        note(quiet, &without_randomness(scenario));
    }
}

/// A scenario whose seeds are all one run is told so, with the remedy.
pub(crate) fn without_randomness(scenario: &Scenario) -> String {
    let remedy = jitter_of_a_packet(scenario).map_or(String::new(), |time| {
        let us = time.as_secs_f64() * 1e6;
        format!(
            ": with `jitter = \"{us:.0} us\"` in [path], the time of a packet, seeds differ and packets are not in step"
        )
    });
    format!("nothing in this scenario is random: the simulator's seeds are one run, without an interval{remedy}")
}

pub(crate) fn ended(interrupted: bool) -> Outcome {
    if interrupted {
        return Err(Failure::new(code::INTERRUPTED, "interrupted: what was finished is kept")
            .hint("the report says so too; run it again for all of it"));
    }
    Ok(())
}

/// One line per group, for each run: means over the seeds, with intervals if there are several.
fn table(out: &mut impl std::io::Write, sets: &[(String, &RunSet)]) -> Outcome {
    let several = sets.len() > 1;
    for (name, set) in sets {
        if several {
            writeln!(out, "{}", paint(&format!("with {name}"), Ink::Bold))?;
        }
        let groups = set.runs.first().map_or(&[][..], |r| &r.summary.groups);
        let mut numbers = vec![
            ("kbit/s each", Metric::ThroughputBps, 1e-3),
            ("pkt/s each", Metric::ThroughputPps, 1.0),
            ("loss %", Metric::LossRatio, 100.0),
            ("dummies %", Metric::Overhead, 100.0),
            ("delay p95 ms", Metric::OwdP95Ms, 1.0),
            ("Jain", Metric::JainIndex, 1.0),
        ];
        if groups.iter().any(|g| g.outage.is_some()) {
            numbers.push(("delay outage %", Metric::Outage, 100.0));
        }
        // Where sources have rates of their own, packets wait before they are sent.
        if groups.iter().any(|g| g.lost_in_send_buffer.is_some()) {
            numbers.push(("end to end p95 ms", Metric::E2eP95Ms, 1.0));
            numbers.push(("lost unsent %", Metric::LostInSendBuffer, 100.0));
            numbers.push(("late %", Metric::Late, 100.0));
        }
        let head: Vec<&str> = ["group", "flows"].into_iter().chain(numbers.iter().map(|(title, ..)| *title)).collect();
        let mut columns = Columns::new(&head);
        let metrics = set.metrics();
        for group in groups {
            let cell = |metric: Metric, scale: f64| {
                let found = metrics.iter().find(|m| m.group == group.name && m.metric == metric);
                found.map_or_else(
                    || "–".to_owned(),
                    |m| number(m.estimate.mean * scale, m.estimate.ci95.map(|c| (c[1] - c[0]) / 2.0 * scale)),
                )
            };
            let cells = numbers.iter().map(|(_, metric, scale)| cell(*metric, *scale));
            columns.row([group.name.clone(), group.flows.to_string()].into_iter().chain(cells));
        }
        columns.print(out, if several { "  " } else { "" })?;
        for run in &set.runs {
            for flow in &run.summary.flows {
                if let Some(why) = &flow.stopped {
                    writeln!(out, "  seed {}: the circuit breaker stopped {}: {why}", run.seed(), flow.name)?;
                }
            }
        }
    }
    Ok(())
}

fn number(mean: f64, half: Option<f64>) -> String {
    let digits = match mean.abs() {
        m if m >= 100.0 => 0,
        m if m >= 10.0 => 1,
        _ => 3,
    };
    match half {
        Some(half) => format!("{mean:.digits$} ± {half:.digits$}"),
        None => format!("{mean:.digits$}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{join_settings, writable};

    #[test]
    fn nothing_is_made_where_a_symbolic_link_leads() {
        let folder = std::env::temp_dir().join(format!("fairpace-writable-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (link, target, new) = (folder.join("link"), folder.join("target"), folder.join("new"));
        std::os::unix::fs::symlink(&target, &link).unwrap();
        for force in [false, true] {
            assert!(writable(&link, force).is_err());
            assert!(!target.exists() && link.is_symlink());
            writable(&new, force).unwrap();
            assert!(!new.exists());
        }
        // Nor is one followed that leads to a file.
        std::fs::write(&target, "another's").unwrap();
        assert!(writable(&link, true).is_err());
        std::fs::write(&new, "there").unwrap();
        assert!(writable(&new, false).is_err());
        writable(&new, true).unwrap();
        assert_eq!(std::fs::read_to_string(&new).unwrap(), "there");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn settings_stay_with_their_controller() {
        let pieces: Vec<String> =
            "rcs,rap:fine_grain=on,alpha=2,fixed,rcs,t_b=3".split(',').map(String::from).collect();
        assert_eq!(join_settings(&pieces), ["rcs", "rap:fine_grain=on,alpha=2", "fixed", "rcs:t_b=3"]);
    }
}
