//! `fairpace sweep`: a thin shell around `fairpace_lab::sweep`. In real time each batch is a process of its own
//! (`fairpace sweep-task`), since a process enters the emulator's namespaces once.

mod dask;

use super::run::{folder_of, in_real_time, takes_results, without_randomness};
use crate::alone;
use crate::args::{Design as DesignArg, Sweep as Args, SweepTask, World};
use crate::error::{Failure, Outcome, code};
use crate::outputs;
use crate::provenance::Provenance;
use crate::stop::Stop;
use crate::term::{Columns, note, progress};
use fairpace_columns::{folder_name, partitioned, to_parquet};
use fairpace_emu::Sandbox;
use fairpace_lab::results::{WriteError, write_whole};
use fairpace_lab::sweep::{
    Axis, Batch, Design, Executor, Metric, Narrow, Plan, SeedRule, Shard, Spec, Sweep, SweepError, SweepStore, Task,
    Width, World as Where, metrics, read as read_sweep, run as run_sweep,
};
use fairpace_lab::{Hooks, RunError, study};
use fairpace_realtime::Prepared;
use fairpace_report::sweep as pages;
use fairpace_scenario::{Count, Record, Scenario};
use nix::sys::signal::Signal;
use serde_json::json;
use std::collections::BTreeSet;
use std::io::{IsTerminal as _, Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

/// Folders of Parquet files, at most.
const MOST_FOLDERS: usize = 100;
/// Bytes in the name of such a folder, at most: file systems take 255.
const LONGEST_NAME: usize = 255;
/// The end of a task's process is looked for this often.
const LOOK_UP: Duration = Duration::from_millis(20);

pub(crate) fn run(args: &Args) -> Outcome {
    let provenance = Provenance::begin();
    let (world, shard) = check(args)?;
    let scenario = load(&args.scenario, args)?;
    let manifest = match world {
        Where::Sim => provenance.manifest(),
        Where::Emu => in_real_time(provenance.manifest(), args.real.ip()),
    };
    let spec = spec(args)?;
    let plan = Plan::new(&scenario, &spec, world, &manifest.program)?;
    plan.ranked_by()?;
    if plan.points().len() < plan.asked() {
        let (asked, found) = (plan.asked(), plan.points().len());
        note(
            args.results.quiet,
            &format!("note: {found} of the {asked} points are different; equal ones are run once"),
        );
    }
    let dir = folder_of(&args.results, &format!("{}-sweep", scenario.name));
    outputs::refuse_others_link(&dir)?;
    if world == Where::Emu {
        takes_results(&dir)?;
    }
    let stop = Stop::install()?;
    if world == Where::Emu {
        emulates(&plan, shard, args, &stop)?;
    }
    if let Some(address) = &args.dask {
        let is_interrupted =
            by_dask(args, &dask::request(args, address, &scenario, &spec, &dir), &dir, &provenance, &stop)?;
        let sweep = read_sweep(&dir, &Hooks::default())?;
        return end(args, &dir, &provenance, shard, &sweep, &writer(&dir), is_interrupted);
    }
    let hooks = Hooks { stop: stop.flag(), threads: args.jobs.unwrap_or(0) as usize, ..Hooks::default() };
    let store = SweepStore::open(&dir, &plan, shard, args.results.force, &hooks)?;
    let mut sweep = Sweep::of_share(plan, |point| shard.has(point));
    let loaded = store.load(&mut sweep, args.retry, &hooks)?;
    if let Some(text) = loaded.account() {
        note(args.results.quiet, &format!("batches in `{}`: {text}", dir.display()));
    }
    // The exit code of a task's process that had to end the sweep.
    let refused = OnceLock::new();
    let ran = perform(args, &mut sweep, &store, &provenance, &stop, &refused);
    let is_interrupted = match ran {
        Err(SweepError::Run(RunError::Interrupted)) => true,
        Err(error) => {
            let failure = Failure::from(error);
            return Err(Failure { code: refused.get().copied().unwrap_or(failure.code), ..failure });
        }
        Ok(()) => false,
    };
    if shard.of > 1 {
        // Batches that other shards have finished since.
        store.load(&mut sweep, false, &hooks)?;
    }
    end(args, &dir, &provenance, shard, &sweep, &|name, bytes| store.write(name, bytes), is_interrupted)
}

/// Refuses a point that the emulator cannot run: before any is.
fn emulates(plan: &Plan, shard: Shard, args: &Args, stop: &Stop) -> Outcome {
    for point in (0..plan.points().len()).filter(|point| shard.has(*point)) {
        if stop.asked() {
            return Err(Failure::new(code::INTERRUPTED, "interrupted before the first batch"));
        }
        fairpace_realtime::check(&plan.scenario(point)?, args.real.ip()).map_err(|error| {
            let failure = Failure::from(error);
            Failure { message: format!("with {}: {}", plan.label(point), failure.message), ..failure }
        })?;
    }
    Ok(())
}

/// Writes tables and report, and says what came out.
fn end(
    args: &Args,
    dir: &Path,
    provenance: &Provenance,
    shard: Shard,
    sweep: &Sweep,
    write: Write<'_>,
    is_interrupted: bool,
) -> Outcome {
    let metric = sweep.plan().ranked_by()?;
    // One of several shards leaves tables and report to the last.
    if sweep.is_complete() || shard.of == 1 {
        finish(dir, sweep, &metric, write)?;
        let manifest = json!({ "made_by": provenance.manifest(), "complete": sweep.is_complete(), "points": sweep.plan().points().len() });
        write(Path::new("manifest.json"), format!("{manifest:#}\n").as_bytes())?;
    }
    say(args, dir, sweep, &metric)?;
    if is_interrupted {
        return Err(Failure::new(code::INTERRUPTED, "interrupted: every finished batch is kept")
            .hint("the same command goes on from there"));
    }
    let failed = sweep.failed();
    if let Some(first) = failed.first() {
        let message = format!(
            "{} of {} points came to nothing; the first, {}: {}",
            failed.len(),
            sweep.plan().points().len(),
            sweep.plan().label(first.point),
            first.reason
        );
        return Err(Failure::new(code::FAILED, message).hint(format!(
            "`{}` has the command that repeats each; --retry runs them again",
            dir.join("failed.csv").display()
        )));
    }
    Ok(())
}

/// Refuses options that do not go together.
fn check(args: &Args) -> Outcome<(Where, Shard)> {
    let shard = args.shard.as_deref().map_or(Ok(Shard::default()), Shard::parse)?;
    if args.results.force && shard.of > 1 {
        return Err(Failure::usage("`--force` replaces a whole sweep, and `--shard` runs a share of it")
            .hint("remove the folder before the shards begin, or name another with `--out`"));
    }
    if shard.of > 1 && args.results.out.is_none() {
        return Err(Failure::usage("`--shard` needs `--out`").hint("name the folder that all shards share"));
    }
    let is_random = matches!(args.design, DesignArg::Random | DesignArg::Latin);
    if is_random != args.points.is_some() {
        return Err(match args.design {
            DesignArg::Random => Failure::usage("a random design needs `--points`").hint("write `--points 100`"),
            DesignArg::Latin => Failure::usage("a Latin hypercube needs `--points`").hint("write `--points 100`"),
            _ => Failure::usage("`--points` is for random designs")
                .hint("write `--design latin --points 100`, or give each range a number of values"),
        });
    }
    if args.design_seed.is_some() && !is_random {
        return Err(
            Failure::usage("`--design-seed` is for random designs").hint("leave it out, or write `--design random`")
        );
    }
    if args.ci_width.is_some() && args.metric.is_none() {
        return Err(Failure::usage("`--ci-width` needs `--metric`")
            .hint("name the number that is to be known, as in `--metric video.goodput_bps`"));
    }
    if args.dask.is_some() && args.world == World::Emu {
        return Err(
            Failure::usage("`--dask` is for simulations, and `--world emu` is in real time").hint("leave one out")
        );
    }
    match args.world {
        World::Sim if args.real.ip() == fairpace_realtime::Ip::V6 => {
            Err(Failure::usage("`--ipv6` is for real packets, and `--world` is `sim`")
                .hint("use `--world emu`, or leave it out"))
        }
        World::Sim => Ok((Where::Sim, shard)),
        World::Emu if args.jobs.is_some() => {
            Err(Failure::usage("`--jobs` is for simulations: in real time batches run one after the other")
                .hint("leave it out"))
        }
        World::Emu => Ok((Where::Emu, shard)),
    }
}

fn load(file: &Path, args: &Args) -> Outcome<Scenario> {
    let mut scenario = Scenario::load(file)?;
    for warning in scenario.warnings() {
        note(args.results.quiet, &format!("warning: {warning}"));
    }
    if let Some(seed) = args.seed {
        scenario = scenario.modify(|s| s.seed = Count::new(seed))?;
    }
    Ok(scenario)
}

fn spec(args: &Args) -> Outcome<Spec> {
    let points = args.points.unwrap_or(0) as usize;
    let design = match args.design {
        DesignArg::Grid => Design::Grid,
        DesignArg::List => Design::List,
        DesignArg::Random => Design::Random { points, seed: args.design_seed.unwrap_or(1) },
        DesignArg::Latin => Design::LatinHypercube { points, seed: args.design_seed.unwrap_or(1) },
    };
    let narrow = match (&args.ci_width, &args.metric) {
        (Some(width), Some(metric)) => {
            Some(Narrow { metric: metric.clone(), width: Width::parse(width)?, most: args.most_seeds() })
        }
        _ => None,
    };
    let seeds = SeedRule { seeds: args.seeds, batch: args.batch.min(args.seeds.max(1)), narrow };
    Ok(Spec { vary: args.vary.clone(), design, seeds, metric: args.metric.clone() })
}

/// Runs what is left, and tells of it.
fn perform(
    args: &Args,
    sweep: &mut Sweep,
    store: &SweepStore,
    provenance: &Provenance,
    stop: &Stop,
    refused: &OnceLock<u8>,
) -> Result<(), SweepError> {
    let threads = args.jobs.unwrap_or(u32::from(args.world == World::Emu)) as usize;
    with_progress(args, provenance, sweep.counts().0, |report| {
        let hooks = Hooks { progress: report, stop: stop.flag(), threads };
        match args.world {
            World::Sim => run_sweep(sweep, Some(store), Executor::Sim, &hooks),
            World::Emu => {
                let child = |task: &Task| in_a_process(task, args, stop, refused);
                run_sweep(sweep, Some(store), Executor::Each(&child), &hooks)
            }
        }
    })
}

/// Has what is left run by the cluster of a Dask scheduler, and tells of it in the same way. Whether it was interrupted.
fn by_dask(args: &Args, asked: &serde_json::Value, dir: &Path, provenance: &Provenance, stop: &Stop) -> Outcome<bool> {
    let mut cluster = dask::Cluster::begin(asked, stop, args.results.quiet)?;
    let before = cluster.done();
    if !cluster.found().is_empty() {
        note(args.results.quiet, &format!("batches in `{}`: {}", dir.display(), cluster.found()));
    }
    let noted = |text: &str| note(args.results.quiet, text);
    with_progress(args, provenance, before, |report| cluster.wait(report, &noted))
}

/// Does work while its progress is told: a bar on a terminal, else a line for each tenth. `before`: batches that are there already.
fn with_progress<R>(
    args: &Args,
    provenance: &Provenance,
    before: usize,
    work: impl FnOnce(&(dyn Fn(usize, usize, &str) + Sync)) -> R,
) -> R {
    let is_terminal = std::io::stderr().is_terminal();
    let bar = progress(args.results.quiet, 1, "batches");
    let begun = provenance.elapsed_s();
    let told = Mutex::new(0);
    let report = |done: usize, total: usize, what: &str| {
        bar.set_length(total as u64);
        bar.set_position(done as u64);
        bar.set_message(what.to_owned());
        let tenth = done * 10 / total.max(1);
        if let Ok(mut told) = told.lock()
            && !is_terminal
            && tenth > *told
        {
            *told = tenth;
            let each = (provenance.elapsed_s() - begun) / (done - before).max(1) as f64;
            let left = each * (total - done) as f64;
            note(args.results.quiet, &format!("{done} of {total} batches, about {left:.0} s left"));
        }
    };
    let done = work(&report);
    bar.finish_and_clear();
    done
}

/// Performs a task in a process of its own. One that ends without a batch, or of a signal, has failed; one that lacks a privilege or the
/// machine ends the sweep.
fn in_a_process(task: &Task, args: &Args, stop: &Stop, refused: &OnceLock<u8>) -> Result<Vec<u8>, SweepError> {
    let failed =
        |what: &str, error: std::io::Error| SweepError::Task(format!("the task's process cannot be {what}: {error}"));
    let mut command = Command::new(std::env::current_exe().map_err(|e| failed("found", e))?);
    command.arg("sweep-task").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if args.real.ip() == fairpace_realtime::Ip::V6 {
        command.arg("--ipv6");
    }
    let mut child = command.spawn().map_err(|e| failed("started", e))?;
    if let Some(mut input) = child.stdin.take() {
        // One that has ended already says why.
        let _ = input.write_all(task.to_text().as_bytes());
    }
    let (mut out, mut err) = (child.stdout.take(), child.stderr.take());
    let output = std::thread::scope(|scope| {
        let out = scope.spawn(move || {
            let mut bytes = Vec::new();
            let _ = out.as_mut().map(|o| o.read_to_end(&mut bytes));
            bytes
        });
        let err = scope.spawn(move || {
            let mut text = String::new();
            let _ = err.as_mut().map(|e| e.read_to_string(&mut text));
            text
        });
        let status = loop {
            match child.try_wait() {
                Ok(None) if stop.asked() => {
                    let _ = child.kill();
                    break child.wait();
                }
                Ok(None) => std::thread::park_timeout(LOOK_UP),
                Ok(Some(status)) => break Ok(status),
                Err(error) => break Err(error),
            }
        };
        status.map(|status| (status, out.join().unwrap_or_default(), err.join().unwrap_or_default()))
    });
    let (status, out, said) = output.map_err(|e| failed("waited for", e))?;
    let said = said.trim().trim_start_matches("error: ").to_owned();
    match status.code() {
        _ if stop.asked() => Err(RunError::Interrupted.into()),
        Some(0) => Ok(out),
        Some(n) if [code::PRIVILEGE, code::BUSY, code::USAGE].contains(&(n as u8)) => {
            refused.get_or_init(|| n as u8);
            Err(SweepError::Task(said))
        }
        Some(n) => Ok(Batch::lost(task, format!("exit code {n}: {said}")).to_bytes()),
        None => {
            let signal = status.signal().and_then(|s| Signal::try_from(s).ok());
            let signal = signal.map_or_else(|| "a signal".to_owned(), |s| s.to_string());
            Ok(Batch::lost(task, format!("the process was ended by {signal}")).to_bytes())
        }
    }
}

/// `fairpace sweep-task`: one batch in real time.
pub(crate) fn task(args: &SweepTask) -> Outcome {
    // With who asked for it the batch has no reader.
    let _ = nix::sys::prctl::set_pdeathsig(Signal::SIGKILL);
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    let task = Task::from_text(text.trim())?;
    let program = in_real_time(Provenance::begin().manifest(), args.real.ip()).program;
    let _alone = alone::take(true)?;
    let sandbox = Sandbox::enter()?;
    let scenario = Scenario::parse_from(&task.scenario, &task.name, task.folder.clone())?;
    let stop = Stop::install()?;
    let hooks = Hooks { stop: stop.flag(), ..Hooks::default() };
    let runs = (task.first..).take(task.count as usize).map(|seed| (scenario.clone(), seed, Record::default()));
    let prepared = Prepared::new(runs, args.real.ip(), &sandbox, &hooks)?;
    let emulate = |s: &Scenario, seed: u64, _: Record, hooks: &Hooks<'_>| prepared.run(s, seed, hooks);
    let batch = task.perform(&program, study::World::RealTime(&emulate), &hooks)?;
    Ok(std::io::stdout().write_all(&batch.to_bytes())?)
}

/// Writes a file of a sweep's folder, by its name there, whole or not at all.
type Write<'a> = &'a dyn Fn(&Path, &[u8]) -> Result<(), WriteError>;

/// Writes tables and report over those that are there. The same batches give the same bytes.
pub(crate) fn finish(dir: &Path, sweep: &Sweep, metric: &Metric, write: Write<'_>) -> Outcome {
    let folders = folders(sweep);
    let by: Vec<&str> = folders.iter().map(String::as_str).collect();
    for (name, table) in [("groups", sweep.groups()), ("links", sweep.links())] {
        write(Path::new(&format!("{name}.csv")), table.csv().as_bytes())?;
        let mut written = BTreeSet::new();
        for (file, part) in partitioned(&table, &by) {
            let bytes = to_parquet(&part).map_err(|e| Failure::new(code::FAILED, e.to_string()))?;
            let file = Path::new(name).join(file);
            write(&file, &bytes)?;
            written.insert(dir.join(file));
        }
        // Parts of a sweep that had other values.
        remove_others(&dir.join(name), &written).map_err(|e| Failure::file("tidy up", dir, &e))?;
    }
    failures(dir, sweep, write)?;
    let page = pages::page(sweep, metric, dir);
    Ok(write(Path::new("report.html"), page.to_html().as_bytes())?)
}

/// The axes whose values become folders: those of words, as long as their values make no more than [`MOST_FOLDERS`] together, each with a
/// name of at most [`LONGEST_NAME`]; the first axis if there are none.
fn folders(sweep: &Sweep) -> Vec<String> {
    let axes = sweep.plan().axes();
    let mut product = 1;
    let mut few = |axis: &Axis| {
        let values = axis.values().unwrap_or(&[]);
        let all = values.len().saturating_mul(product);
        // A name is looked at where there are few of them only.
        let column = axis.column();
        let is_few = (1..=MOST_FOLDERS).contains(&all)
            && values.iter().all(|value| folder_name(&column, value).len() <= LONGEST_NAME);
        product = if is_few { all } else { product };
        is_few
    };
    let words: Vec<String> = axes.iter().filter(|a| !a.is_numeric() && few(a)).map(|a| a.column()).collect();
    if !words.is_empty() {
        return words;
    }
    axes.iter().take(1).filter(|a| few(a)).map(|a| a.column()).collect()
}

fn remove_others(folder: &Path, written: &BTreeSet<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            remove_others(&path, written)?;
            // Only one that is empty goes.
            let _ = std::fs::remove_dir(&path);
        } else if path.extension().is_some_and(|e| e == "parquet") && !written.contains(&path) {
            std::fs::remove_file(&path)?;
        }
    }
    Ok(())
}

/// The files of the points that came to nothing; none of an earlier end stay.
fn failures(dir: &Path, sweep: &Sweep, write: Write<'_>) -> Outcome {
    let files = pages::failures(sweep, dir)?;
    if files.is_empty() {
        for gone in
            [std::fs::remove_file(dir.join(pages::FAILED_LIST)), std::fs::remove_dir_all(dir.join(pages::FAILED))]
        {
            match gone {
                Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(Failure::file("tidy up", dir, &e)),
                _ => {}
            }
        }
    }
    for (file, text) in files {
        write(&file, text.as_bytes())?;
    }
    Ok(())
}

/// The best settings, to stdout.
fn say(args: &Args, dir: &Path, sweep: &Sweep, metric: &Metric) -> Outcome {
    const SHOWN: usize = 10;
    let plan = sweep.plan();
    let ranked = metric.rank(sweep);
    let finished = (0..plan.points().len()).filter(|p| sweep.is_finished(*p)).count();
    let too_wide = sweep.too_wide();
    let mut out = std::io::stdout().lock();
    if args.results.json {
        let best: Vec<_> = ranked
            .iter()
            .take(SHOWN)
            .map(|r| {
                let settings: serde_json::Map<String, serde_json::Value> =
                    plan.settings(r.point).into_iter().map(|(k, v)| (k, v.into())).collect();
                json!({ "settings": settings, "estimate": r.estimate, "less_the_best": r.to_best })
            })
            .collect();
        let failed: Vec<_> = sweep.failed().iter().map(|f| json!({ "point": plan.points()[f.point].id, "settings": plan.label(f.point), "seed": f.seed, "reason": f.reason })).collect();
        let document = json!({ "scenario": plan.base().name, "world": plan.world().name(), "points": plan.points().len(),
            "finished": finished, "complete": sweep.is_complete(), "metric": metric.name(), "best": best, "too_wide": too_wide.iter().map(|p| &plan.points()[*p].id).collect::<Vec<_>>(), "failed": failed });
        writeln!(out, "{document}")?;
    } else {
        let title = pages::title(metric);
        let head: Vec<&str> = plan.axes().iter().map(|a| a.field.as_str()).chain([title.as_str(), "seeds"]).collect();
        let mut columns = Columns::new(&head);
        for r in ranked.iter().take(SHOWN) {
            let values = plan.points()[r.point].values.iter().cloned();
            columns.row(values.chain([pages::text(metric, &r.estimate), r.estimate.n.to_string()]));
        }
        columns.print(&mut out, "")?;
        if ranked.len() > SHOWN {
            writeln!(out, "… and {} more", ranked.len() - SHOWN)?;
        }
    }
    if ranked.is_empty() && finished > sweep.failed().len() {
        let others: Vec<String> = metrics(sweep).iter().map(|m| format!("`{}`", m.name())).collect();
        note(
            args.results.quiet,
            &format!("no point has a number for `{}`; there are {}", metric.name(), others.join(", ")),
        );
    }
    if !ranked.is_empty() && ranked.iter().all(|r| r.estimate.n > 1 && r.estimate.half_width() == 0.0) {
        note(args.results.quiet, &without_randomness(plan.base()));
    }
    if let (Some(first), Some(width)) = (too_wide.first(), &args.ci_width) {
        note(
            args.results.quiet,
            &format!(
                "{} of {} points have an interval wider than {width} with {} seeds, the first with {}; `--max-seeds` allows more",
                too_wide.len(),
                plan.points().len(),
                args.most_seeds(),
                plan.label(*first)
            ),
        );
    }
    if sweep.is_complete() {
        note(args.results.quiet, &format!("\nresults: {0}/   report: {0}/report.html", dir.display()));
    } else {
        let of = plan.points().len();
        note(
            args.results.quiet,
            &format!(
                "\n{finished} of {of} points are finished; `fairpace report {}` makes tables and report of what is there",
                dir.display()
            ),
        );
    }
    Ok(())
}

/// The folder of a sweep, its tables and its report anew.
pub(crate) fn again(dir: &Path) -> Outcome<fairpace_report::Page> {
    let hooks = Hooks::default();
    let sweep = read_sweep(dir, &hooks)?;
    let metric = sweep.plan().ranked_by()?;
    finish(dir, &sweep, &metric, &writer(dir))?;
    Ok(pages::page(&sweep, &metric, dir))
}

/// Writes files of a folder that no process of ours has locked.
fn writer(dir: &Path) -> impl Fn(&Path, &[u8]) -> Result<(), WriteError> + '_ {
    |name, bytes| {
        let path = dir.join(name);
        let folder = path.parent().unwrap_or(dir);
        std::fs::create_dir_all(folder).map_err(|error| WriteError { path: folder.to_owned(), error })?;
        write_whole(&path, bytes)
    }
}
