//! A sweep does not depend on order, threads, shards, kills or executors, and says what it refuses.

use fairpace_lab::sweep::{
    Batch, Design, Executor, Failed, Metric, Narrow, Plan, SeedRule, Shard, Spec, Sweep, SweepError, SweepStore, Task,
    TaskId, Width, World, perform, read, run,
};
use fairpace_lab::{Column, Hooks};
use fairpace_scenario::Scenario;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

const TEXT: &str = r#"
duration = "4 s"
[path]
rate = "1 Mbit/s"
rtt = "60 ms"
queue = { kind = "drop-tail", capacity = "10 pkt" }
loss = { kind = "random", p = 0.01 }
[[flows]]
name = "video"
controller = "rap"
[[flows]]
name = "tcp"
controller = "tcp-sack"
"#;
const CODE: &str = "test 1";

fn scenario() -> Scenario {
    Scenario::parse(TEXT, "base.toml").unwrap()
}

fn spec(vary: &[&str]) -> Spec {
    Spec { vary: vary.iter().map(|v| (*v).to_owned()).collect(), ..Spec::default() }
}

/// Two axes, six points, two batches of two and one seed each.
fn six() -> Spec {
    let seeds = SeedRule { seeds: 3, batch: 2, narrow: None };
    Spec { seeds, ..spec(&["path.loss.p=0.001..0.1/log3", "flow.video.controller=rap,tfrc"]) }
}

fn plan(spec: &Spec) -> Plan {
    Plan::new(&scenario(), spec, World::Sim, CODE).unwrap()
}

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("fairpace-sweep-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Folder(path)
    }

    fn open(&self, plan: &Plan, shard: Shard) -> SweepStore {
        SweepStore::open(&self.0, plan, shard, false, &Hooks::default()).unwrap()
    }

    /// Every batch by its name.
    fn batches(&self) -> BTreeMap<String, Vec<u8>> {
        let mut found = BTreeMap::new();
        for folder in std::fs::read_dir(self.0.join("batches")).unwrap() {
            for file in std::fs::read_dir(folder.unwrap().path()).unwrap() {
                let path = file.unwrap().path();
                found.insert(path.file_name().unwrap().to_str().unwrap().to_owned(), std::fs::read(&path).unwrap());
            }
        }
        found
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn tables(sweep: &Sweep) -> String {
    sweep.groups().csv() + &sweep.links().csv()
}

/// In this thread, one task after the other; the last asked for is handed in first.
fn by_hand(spec: &Spec) -> String {
    let mut sweep = Sweep::new(plan(spec));
    while !sweep.is_complete() {
        let mut tasks = Vec::new();
        while let Some(id) = sweep.ready() {
            tasks.push(sweep.plan().task(&id).unwrap().to_text());
        }
        for task in tasks.iter().rev() {
            let bytes = perform(task, CODE, &Hooks::default()).unwrap();
            assert!(sweep.take(&bytes).unwrap());
            assert!(sweep.take(&bytes).unwrap(), "twice does no harm");
        }
    }
    tables(&sweep)
}

fn narrow(width: Width) -> Spec {
    let narrow = Narrow { metric: "video.throughput_bps".to_owned(), width, most: 12 };
    Spec { seeds: SeedRule { seeds: 2, batch: 2, narrow: Some(narrow) }, ..six() }
}

#[test]
fn threads_order_and_shards_change_no_byte() {
    for (name, spec) in [("fixed", six()), ("narrow", narrow(Width::Share(0.05)))] {
        let expected = by_hand(&spec);
        let mut files = None;
        for threads in [1, 2, 8] {
            let folder = Folder::new(&format!("{name}-{threads}"));
            let plan = plan(&spec);
            let store = folder.open(&plan, Shard::default());
            let mut sweep = Sweep::new(plan);
            let hooks = Hooks { threads, ..Hooks::default() };
            run(&mut sweep, Some(&store), Executor::Sim, &hooks).unwrap();
            assert_eq!(tables(&sweep), expected, "{name}, {threads} threads");
            assert_eq!(*files.get_or_insert_with(|| folder.batches()), folder.batches());
        }
        let folder = Folder::new(&format!("{name}-shards"));
        for index in [2, 1] {
            let (plan, shard) = (plan(&spec), Shard { index, of: 2 });
            let store = folder.open(&plan, shard);
            let mut sweep = Sweep::of_share(plan, |point| shard.has(point));
            run(&mut sweep, Some(&store), Executor::Sim, &Hooks::default()).unwrap();
            assert!(sweep.is_share_complete() && !sweep.is_complete());
        }
        assert_eq!(files.unwrap(), folder.batches());
        let whole = read(&folder.0, &Hooks::default()).unwrap();
        assert!(whole.is_complete());
        assert_eq!(tables(&whole), expected, "{name}, two shards");
    }
}

#[test]
fn seeds_are_added_batch_by_batch_until_the_interval_is_narrow() {
    let mut sweep = Sweep::new(plan(&narrow(Width::Share(0.05))));
    run(&mut sweep, None, Executor::Sim, &Hooks::default()).unwrap();
    let metric = sweep.plan().metric().unwrap().clone();
    let counts: Vec<usize> = (0..6).map(|p| sweep.runs(p).len()).collect();
    for (point, count) in counts.iter().enumerate() {
        assert!(count % 2 == 0 && (2..=12).contains(count));
        let estimate = sweep.estimate(point, &metric).unwrap();
        assert!(*count == 12 || estimate.half_width() <= 0.05 * estimate.mean, "point {point}: {estimate:?}");
    }
    assert!(counts.iter().any(|n| *n > 2), "{counts:?}");
    let wide = |p: &usize| {
        let estimate = sweep.estimate(*p, &metric).unwrap();
        estimate.half_width() > 0.05 * estimate.mean
    };
    assert_eq!(sweep.too_wide(), (0..6).filter(wide).collect::<Vec<_>>());
    // Nothing is as narrow as this.
    let mut sweep = Sweep::new(plan(&narrow(Width::Absolute(1e-9))));
    assert!(sweep.too_wide().is_empty(), "no point is finished");
    run(&mut sweep, None, Executor::Sim, &Hooks::default()).unwrap();
    assert_eq!(sweep.too_wide(), [0, 1, 2, 3, 4, 5]);
    let wide = Spec { ..narrow(Width::Absolute(1e9)) };
    let mut sweep = Sweep::new(plan(&wide));
    run(&mut sweep, None, Executor::Sim, &Hooks::default()).unwrap();
    assert!((0..6).all(|p| sweep.runs(p).len() == 2));
}

#[test]
fn another_session_repeats_nothing_that_is_whole_and_runs_again_what_is_torn() {
    let folder = Folder::new("resume");
    let performed = AtomicUsize::new(0);
    let counted = |task: &Task| {
        performed.fetch_add(1, Ordering::Relaxed);
        Ok(task.perform(CODE, fairpace_lab::study::World::Sim, &Hooks::default())?.to_bytes())
    };
    let go = |spec: &Spec| {
        let plan = plan(spec);
        let store = folder.open(&plan, Shard::default());
        let mut sweep = Sweep::new(plan);
        let loaded = store.load(&mut sweep, false, &Hooks::default()).unwrap();
        run(&mut sweep, Some(&store), Executor::Each(&counted), &Hooks::default()).unwrap();
        (loaded, performed.swap(0, Ordering::Relaxed), tables(&sweep))
    };
    let (_, first, expected) = go(&six());
    assert_eq!(first, 12);
    assert_eq!(go(&six()).1, 0);
    let all = folder.batches();
    // Cut at several places, and one changed digit: none counts, and nothing else is run again.
    let (name, bytes) = all.iter().nth(3).unwrap();
    let path = folder.0.join("batches").join(&name[..2]).join(name);
    let mut changed = bytes.clone();
    let digit = changed.iter().rposition(u8::is_ascii_digit).unwrap();
    changed[digit] = if changed[digit] == b'1' { b'2' } else { b'1' };
    for torn in [Vec::new(), bytes[..10].to_vec(), bytes[..bytes.len() - 1].to_vec(), changed] {
        std::fs::write(&path, &torn).unwrap();
        let (loaded, made, found) = go(&six());
        assert_eq!((loaded.torn, loaded.taken, made), (1, 11, 1));
        assert_eq!((found, folder.batches()), (expected.clone(), all.clone()));
    }
    // A killed process' unfinished file goes; one of another shard stays.
    let at = folder.0.join("batches").join(&name[..2]);
    let (own, other) = (at.join(".fairpace-unfinished-1-of-1-x"), at.join(".fairpace-unfinished-2-of-2-x"));
    // So does what it had begun of the tables.
    let part = folder.0.join("groups").join("controller=rcs").join(".fairpace-unfinished-1-of-1-x");
    std::fs::create_dir_all(part.parent().unwrap()).unwrap();
    for file in [&own, &other, &part] {
        std::fs::write(file, "{").unwrap();
    }
    let (loaded, made, _) = go(&six());
    assert_eq!((loaded.torn, made, own.exists(), other.exists(), part.exists()), (0, 0, false, true, false));
    std::fs::remove_file(&other).unwrap();
    // More values of an axis: only the new points run.
    let more = Spec { vary: vec!["path.loss.p=0.001..0.1/log3,0.2".into(), six().vary[1].clone()], ..six() };
    let (loaded, made, _) = go(&more);
    assert_eq!((loaded.taken, made), (12, 4));
}

#[test]
fn a_stop_loses_only_what_is_under_way() {
    let folder = Folder::new("stop");
    let stop = AtomicBool::new(false);
    let plan = plan(&six());
    let store = folder.open(&plan, Shard::default());
    let mut sweep = Sweep::new(plan);
    let progress = |done: usize, _: usize, _: &str| stop.store(done >= 4, Ordering::Relaxed);
    let hooks = Hooks { progress: &progress, stop: &stop, threads: 1 };
    let ended = run(&mut sweep, Some(&store), Executor::Sim, &hooks);
    assert!(matches!(ended, Err(SweepError::Run(fairpace_lab::RunError::Interrupted))));
    let kept = folder.batches().len();
    assert!((4..12).contains(&kept), "{kept}");
    let mut again = Sweep::new(Plan::new(&scenario(), &six(), World::Sim, CODE).unwrap());
    assert_eq!(store.load(&mut again, false, &Hooks::default()).unwrap().taken, kept);
    run(&mut again, Some(&store), Executor::Sim, &Hooks::default()).unwrap();
    assert_eq!(tables(&again), by_hand(&six()));
}

#[test]
fn a_point_that_comes_to_nothing_stops_no_other_and_is_run_again_when_asked() {
    let folder = Folder::new("failing");
    let broken = AtomicBool::new(true);
    let asked = Mutex::new(Vec::new());
    let perform = |task: &Task| {
        asked.lock().unwrap().push(task.first);
        let is_bad = task.settings[0].1 == "0.01" && task.settings[1].1 == "tfrc" && broken.load(Ordering::Relaxed);
        if is_bad {
            return Ok(Batch::lost(task, "the machine went up in smoke").to_bytes());
        }
        Ok(task.perform(CODE, fairpace_lab::study::World::Sim, &Hooks::default())?.to_bytes())
    };
    let go = |again| {
        let plan = plan(&six());
        let store = folder.open(&plan, Shard::default());
        let mut sweep = Sweep::new(plan);
        store.load(&mut sweep, again, &Hooks::default()).unwrap();
        let hooks = Hooks { threads: 1, ..Hooks::default() };
        run(&mut sweep, Some(&store), Executor::Each(&perform), &hooks).unwrap();
        assert!(sweep.is_complete());
        (sweep, std::mem::take(&mut *asked.lock().unwrap()).len())
    };
    let (sweep, made) = go(false);
    // The second batch of the point that failed is not asked for.
    assert_eq!(made, 11);
    let failed = sweep.failed();
    assert_eq!(failed.len(), 1);
    assert_eq!((failed[0].point, failed[0].seed, failed[0].reason.as_str()), (3, 1, "the machine went up in smoke"));
    assert_eq!(sweep.plan().label(3), "path.loss.p=0.01 flow.video.controller=tfrc");
    assert!(sweep.runs(3).is_empty());
    assert_eq!(sweep.groups().len(), 5 * 3 * 2);
    broken.store(false, Ordering::Relaxed);
    assert_eq!(go(false).1, 0, "it stays failed");
    let (sweep, made) = go(true);
    assert_eq!(made, 2);
    assert!(sweep.failed().is_empty());
    assert_eq!(tables(&sweep), by_hand(&six()));
}

#[test]
fn a_run_that_panics_is_a_failed_point_with_the_message() {
    let plan = plan(&six());
    let mut sweep = Sweep::new(plan);
    let task = sweep.ready().map(|id| sweep.plan().task(&id).unwrap()).unwrap();
    let fails =
        |_: &Scenario, seed: u64, _: fairpace_scenario::Record, _: &Hooks<'_>| -> Result<_, fairpace_lab::RunError> {
            panic!("an invariant is broken at seed {seed}")
        };
    let world = fairpace_lab::study::World::RealTime(&fails);
    let task = Task { world: "emu".to_owned(), ..task };
    let batch = task.perform(CODE, world, &Hooks::default()).unwrap();
    assert_eq!(batch.failed.unwrap().reason, "the program has a fault: an invariant is broken at seed 1");
}

#[test]
fn a_task_of_another_program_or_world_is_refused_and_what_is_none_too() {
    let mut sweep = Sweep::new(plan(&six()));
    let id = sweep.ready().unwrap();
    let text = sweep.plan().task(&id).unwrap().to_text();
    let refused = |text: &str, code: &str| perform(text, code, &Hooks::default()).unwrap_err().to_string();
    assert_eq!(refused(&text, "test 2"), "the task is for the program `test 1`, and this is `test 2`");
    let emu = text.replace("\"world\":\"sim\"", "\"world\":\"emu\"");
    assert_eq!(refused(&emu, CODE), "the task is for the world `emu`, and this is `sim`");
    assert!(refused("{}", CODE).starts_with("this is no task: "));
    assert!(refused(&text.replace("task/1", "task/9"), CODE).contains("`fairpace-task/9`"));
    assert!(sweep.take(b"{}").is_err());
    // A batch of another program is not this sweep's.
    let bytes = perform(&text, CODE, &Hooks::default()).unwrap();
    let other = String::from_utf8(bytes.clone()).unwrap().replace("test 1", "test 2");
    assert!(!sweep.take(other.as_bytes()).unwrap() && sweep.open() == 1);
    sweep.give_back(&id);
    assert_eq!((sweep.open(), sweep.ready()), (0, Some(id)));
    assert!(sweep.take(&bytes).unwrap() && sweep.open() == 0);
}

#[test]
fn a_folder_of_something_else_is_refused_and_stays_as_it_is() {
    let folder = Folder::new("occupied");
    let open = |plan: &Plan, anew| SweepStore::open(&folder.0, plan, Shard::default(), anew, &Hooks::default());
    let first = plan(&six());
    let store = open(&first, false).unwrap();
    assert!(matches!(open(&first, false), Err(SweepError::Busy { .. })));
    let beside = SweepStore::open(&folder.0, &first, Shard { index: 1, of: 2 }, false, &Hooks::default());
    assert!(beside.is_ok(), "another shard is another process's");
    let mut sweep = Sweep::new(first);
    run(&mut sweep, Some(&store), Executor::Sim, &Hooks::default()).unwrap();
    drop(store);
    let kept = folder.batches();
    let refused = |plan: &Plan| open(plan, false).unwrap_err().to_string();
    let other_code = Plan::new(&scenario(), &six(), World::Sim, "test 2").unwrap();
    assert!(
        refused(&other_code)
            .ends_with("holds a sweep of another version of the program: `test 1`, and this is `test 2`")
    );
    let longer = Scenario::parse(&TEXT.replace("4 s", "5 s"), "base.toml").unwrap();
    let other = Plan::new(&longer, &six(), World::Sim, CODE).unwrap();
    let words = "holds a sweep of another scenario: it has `duration = \"4 s\"` where this has `duration = \"5 s\"`";
    assert!(refused(&other).ends_with(words));
    let real = Plan::new(&scenario(), &six(), World::Emu, CODE).unwrap();
    assert!(refused(&real).ends_with("holds a sweep of another world: `sim`"));
    assert_eq!(folder.batches(), kept);
    assert!(matches!(open(&other_code, true), Err(SweepError::Busy { .. })), "another shard is at work");
    drop(beside);
    // The tables of the sweep that goes, and a file that no sweep makes.
    std::fs::create_dir_all(folder.0.join("groups/rtt=1")).unwrap();
    for name in ["groups.csv", "manifest.json", "report.html", "groups/rtt=1/part.parquet", "notes.txt"] {
        std::fs::write(folder.0.join(name), "x").unwrap();
    }
    open(&other_code, true).unwrap();
    assert!(folder.batches().is_empty());
    let left = ["groups.csv", "manifest.json", "report.html", "groups", "notes.txt"].map(|n| folder.0.join(n).exists());
    assert_eq!(left, [false, false, false, false, true]);
    // Somebody's folder.
    let somebodys = Folder::new("somebodys");
    std::fs::create_dir_all(&somebodys.0).unwrap();
    std::fs::write(somebodys.0.join("thesis.tex"), "x").unwrap();
    for anew in [false, true] {
        let error = SweepStore::open(&somebodys.0, &plan(&six()), Shard::default(), anew, &Hooks::default());
        assert!(error.unwrap_err().to_string().ends_with("holds other things than a sweep"));
    }
    assert_eq!(std::fs::read_dir(&somebodys.0).unwrap().count(), 1);
}

#[test]
fn a_failure_among_seeds_that_are_not_asked_for_is_none() {
    let folder = Folder::new("beyond");
    let perform = |task: &Task| {
        // The third seed of one point.
        let is_bad = task.first == 3 && task.settings[0].1 == "0.01" && task.settings[1].1 == "tfrc";
        if is_bad {
            return Ok(Batch::lost(task, "once").to_bytes());
        }
        Ok(task.perform(CODE, fairpace_lab::study::World::Sim, &Hooks::default())?.to_bytes())
    };
    let go = |seeds| {
        let plan = plan(&Spec { seeds: SeedRule { seeds, batch: 2, narrow: None }, ..six() });
        let store = folder.open(&plan, Shard::default());
        let mut sweep = Sweep::new(plan);
        store.load(&mut sweep, false, &Hooks::default()).unwrap();
        run(&mut sweep, Some(&store), Executor::Each(&perform), &Hooks::default()).unwrap();
        sweep
    };
    assert_eq!(go(3).failed().len(), 1);
    let fewer = go(2);
    assert_eq!((fewer.failed().len(), fewer.runs(3).len(), fewer.groups().len()), (0, 2, 6 * 2 * 2));
}

#[test]
fn a_field_has_one_axis_whatever_its_name() {
    let refuse = |vary: &[&str]| Plan::new(&scenario(), &spec(vary), World::Sim, CODE).err().map(|e| e.to_string());
    for (one, other) in [
        ("flow.video.start=0 s,1 s", "flows[0].start=2 s"),
        ("path.loss.p=0.1", "path.loss={kind=\"none\"}"),
        ("path.rate=1 Mbit/s", "path.rate=2 Mbit/s"),
        ("flow.*.start=1 s", "flow.tcp.start=0 s"),
    ] {
        let text = refuse(&[one, other]).unwrap();
        let field = |axis: &str| axis.split('=').next().unwrap().to_owned();
        assert_eq!(text, format!("`{}` is varied by `{}` already", field(other), field(one)));
    }
    assert_eq!(refuse(&["flow.video.start=1 s", "flow.tcp.start=0 s", "flows[1].stop=9 s"]), None);
}

#[test]
fn what_cannot_be_run_is_refused_before_anything_is_written() {
    let folder = Folder::new("refused");
    // The last of six points only.
    let bad = spec(&["path.rtt=10 ms,20 ms", "path.loss.p=0,0.5,2"]);
    let error = SweepStore::open(&folder.0, &plan(&bad), Shard::default(), false, &Hooks::default()).unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with("with path.rtt=10 ms path.loss.p=2: base: `path.loss.p` is `2`, which is not a probability"),
        "{text}"
    );
    assert!(error.hint().is_some() && !folder.0.exists());
    let kernel = spec(&["flow.tcp.controller=tcp-sack,tcp-cubic"]);
    let text = plan(&kernel).check(&Hooks::default()).unwrap_err().to_string();
    assert!(text.contains("tcp-cubic"), "{text}");
    let refuse = |spec: &Spec| Plan::new(&scenario(), spec, World::Sim, CODE).unwrap_err();
    assert!(refuse(&spec(&["path.los.p=1"])).hint().unwrap().starts_with("did you mean `loss`?"));
    assert!(refuse(&spec(&[])).to_string().contains("has no axis"));
    let few = Spec { seeds: SeedRule { seeds: 0, ..SeedRule::default() }, ..six() };
    assert!(refuse(&few).to_string().contains("0 seeds"));
    let metric = Spec {
        seeds: SeedRule {
            narrow: Some(Narrow { metric: "video.godput_bps".into(), width: Width::Share(0.1), most: 9 }),
            ..SeedRule::default()
        },
        ..six()
    };
    assert!(refuse(&metric).hint().unwrap().starts_with("did you mean `video.goodput_bps`?"));
    assert_eq!(plan(&six()).metric_named("bottleneck.utilization").unwrap().of, "bottleneck");
}

#[test]
fn the_failure_of_a_point_is_its_first_in_whatever_order_batches_come() {
    let rule = SeedRule { seeds: 6, batch: 2, narrow: None };
    let spec = Spec { seeds: rule, ..spec(&["path.rate=1 Mbit/s"]) };
    let orders = [[0, 1, 2], [2, 1, 0], [1, 2, 0], [2, 0, 1]];
    for order in orders {
        let mut sweep = Sweep::new(plan(&spec));
        let tasks: Vec<TaskId> = std::iter::from_fn(|| sweep.ready()).collect();
        assert_eq!(tasks.len(), 3);
        let mut came_in = Vec::new();
        for at in order {
            let task = sweep.plan().bare_task(&tasks[at]);
            let came = match at {
                0 => perform(&sweep.plan().task(&tasks[0]).unwrap().to_text(), CODE, &Hooks::default()).unwrap(),
                _ => Batch::lost(&task, format!("seed {}", task.first)).to_bytes(),
            };
            assert!(sweep.take(&came).unwrap());
            came_in.push(at);
            // Where a later one has failed, the first two are still waited for.
            assert_eq!(sweep.is_complete(), came_in.contains(&0) && came_in.contains(&1), "{order:?}");
        }
        assert_eq!(sweep.failed(), [Failed { point: 0, seed: 3, reason: "seed 3".to_owned() }], "{order:?}");
    }
    // One that was killed when the last had failed goes on with those before, and not with those behind.
    let mut sweep = Sweep::new(plan(&spec));
    let lost = Batch::lost(&sweep.plan().bare_task(&TaskId { point: 0, offset: 2, count: 2 }), "of it");
    assert!(sweep.take_batch(lost));
    let left: Vec<u64> = std::iter::from_fn(|| sweep.ready()).map(|task| task.offset).collect();
    assert_eq!(left, [0]);
}

#[test]
fn in_a_list_a_value_may_stand_with_several_of_another_axis() {
    let vary = ["path.rate=1 Mbit/s,1 Mbit/s,2 Mbit/s,1000 kbit/s", "flow.video.controller=rap,tfrc,tfrc,rap"];
    let listed = plan(&Spec { design: Design::List, ..spec(&vary) });
    let values: Vec<String> = listed.points().iter().map(|p| p.values.join(" ")).collect();
    assert_eq!(values, ["1 Mbit/s rap", "1 Mbit/s tfrc", "2 Mbit/s tfrc"]);
    // A value is the same however it is spelt, in a later session too.
    let ids = |vary: &str| plan(&spec(&[vary])).points().iter().map(|p| p.id.clone()).collect::<Vec<_>>();
    assert_eq!(ids("path.rate=1 Mbit/s,2000kbit/s"), ids("path.rate=1000 kbit/s..2Mbit/s/2"));
    assert_ne!(ids("path.rate=1 Mbit/s"), ids("path.rate=1001 kbit/s"));
    // A grid has each value once, and so has an axis.
    let grid = plan(&spec(&vary));
    assert_eq!(grid.points().len(), 4);
    assert!([&listed, &grid].iter().all(|plan| plan.axes().iter().all(|axis| axis.values().unwrap().len() == 2)));
}

#[test]
fn tables_have_a_row_for_each_seed_and_group_and_numbers_in_basic_units() {
    let spec =
        Spec { design: Design::List, ..spec(&["path.rate=500 kbit/s,1 Mbit/s", "flow.video.controller=rap,tfrc"]) };
    let mut sweep = Sweep::new(plan(&spec));
    run(&mut sweep, None, Executor::Sim, &Hooks::default()).unwrap();
    let table = sweep.groups();
    let names: Vec<&str> = table.columns().take(6).map(|(name, _)| name).collect();
    assert_eq!(names, ["point", "path.rate_bps", "flow.video.controller", "seed", "group", "flows"]);
    assert_eq!(table.len(), 2 * 5 * 2);
    let Some(Column::Number(rates)) = table.column("path.rate_bps") else { panic!("numbers") };
    assert_eq!((rates[0], rates[19]), (Some(5e5), Some(1e6)));
    // The same as a run of that scenario.
    let by_hand = Scenario::parse(&TEXT.replace("1 Mbit/s", "500 kbit/s"), "base.toml").unwrap();
    let run =
        fairpace_lab::run::simulate(&by_hand, 1, fairpace_scenario::Record::default(), &Hooks::default()).unwrap();
    let Some(Column::Number(found)) = table.column("goodput_bps") else { panic!("numbers") };
    assert_eq!(found[0], Some(run.summary.group("video").unwrap().goodput_bps));
    assert!(!table.csv().contains("NaN"));
}

#[test]
fn settings_are_ranked_by_pairs_of_the_same_seeds() {
    let mut sweep = Sweep::new(plan(&spec(&["path.rate=500 kbit/s,1 Mbit/s,2 Mbit/s"])));
    run(&mut sweep, None, Executor::Sim, &Hooks::default()).unwrap();
    let metric = sweep.plan().metric_named("tcp.goodput_bps").unwrap();
    let ranked = metric.rank(&sweep);
    let means: Vec<f64> = ranked.iter().map(|r| r.estimate.mean).collect();
    assert!(means.windows(2).all(|w| w[0] >= w[1]), "{means:?}");
    assert!(ranked[0].to_best.is_none());
    let last = ranked[2].to_best.unwrap();
    // The mean of differences is the difference of means.
    assert!((last.mean - (means[2] - means[0])).abs() < 1e-6 * means[0] && last.n == 5);
    let delay: Metric = sweep.plan().metric_named("tcp.owd_p95_ms").unwrap();
    let ranked = delay.rank(&sweep);
    assert!(ranked[0].estimate.mean <= ranked[1].estimate.mean, "less of a delay is better");
}

#[test]
fn unreadable_batches_are_named() {
    let folder = Folder::new("unreadable");
    let plan = plan(&six());
    let store = folder.open(&plan, Shard::default());
    let at = folder.0.join("batches").join("zz");
    std::fs::create_dir_all(at.join("0-1-2.json")).unwrap();
    let error = store.load(&mut Sweep::new(plan), false, &Hooks::default()).unwrap_err();
    assert!(error.to_string().contains("0-1-2.json` cannot be read"), "{error}");
    assert!(Path::new(&folder.0).exists());
}

/// Another process may say anything.
#[test]
fn a_batch_with_a_short_row_or_another_seed_and_a_task_without_seeds_are_refused() {
    let mut sweep = Sweep::new(plan(&six()));
    let id = sweep.ready().unwrap();
    let task = sweep.plan().task(&id).unwrap();
    let whole = Batch::from_bytes(&perform(&task.to_text(), CODE, &Hooks::default()).unwrap()).unwrap();
    let changes: [fn(&mut Batch); 5] = [
        |b| b.runs[0].groups[0].1.truncate(1),
        |b| b.runs[1].links[0].1.push(None),
        |b| b.runs[1].seed += 1,
        |b| b.first += 1,
        |b| b.count += 1,
    ];
    for (n, change) in changes.iter().enumerate() {
        let mut batch = whole.clone();
        change(&mut batch);
        assert!(Batch::from_bytes(&batch.to_bytes()).is_err(), "change {n}");
    }
    for (first, count) in [(1, 0), (1, u32::MAX), (u64::MAX, 1)] {
        assert!(Task::from_text(&Task { first, count, ..task.clone() }.to_text()).is_err(), "{count} from {first}");
    }
}
