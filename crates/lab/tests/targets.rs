//! A sweep under fuzzing: tasks and batches of other processes and machines, and each file of its folder.

use fairpace_fuzz::Target;
use fairpace_lab::Hooks;
use fairpace_lab::study;
use fairpace_lab::sweep::{
    Batch, Executor, Narrow, Plan, SeedRule, Shard, Spec, Sweep, SweepStore, Task, Width, World, perform, read, run,
};
use fairpace_scenario::Scenario;
use sha2::{Digest as _, Sha256};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

const HERE: &str = env!("CARGO_MANIFEST_DIR");
const CODE: &str = "test 1";
const TEXT: &str = "duration = \"1 s\"\nwarmup = \"0 s\"\n[path]\nrate = \"1 Mbit/s\"\nrtt = \"60 ms\"\n\
                    [[flows]]\nname = \"video\"\ncontroller = \"rap\"\n";

/// Two points with two batches of one seed each, the second where the interval asks for one.
fn plan() -> Plan {
    let scenario = Scenario::parse(TEXT, "base.toml").expect("a scenario");
    let narrow = Narrow { metric: "video.throughput_bps".to_owned(), width: Width::Share(0.05), most: 2 };
    let seeds = SeedRule { seeds: 1, batch: 1, narrow: Some(narrow) };
    let spec = Spec { vary: vec!["path.rtt=20ms..40ms/2".to_owned()], seeds, ..Spec::default() };
    Plan::new(&scenario, &spec, World::Sim, CODE).expect("a plan")
}

/// The text of each of its first tasks.
fn tasks() -> Vec<Vec<u8>> {
    let mut sweep = Sweep::new(plan());
    let ids: Vec<_> = std::iter::from_fn(|| sweep.ready()).collect();
    ids.iter().map(|id| elsewhere(sweep.plan().task(id).expect("a task").to_text())).collect()
}

/// The corpus names no folder of this machine.
fn elsewhere(text: String) -> Vec<u8> {
    let here = std::env::current_dir().expect("a folder");
    text.replace(&here.display().to_string(), "/nowhere").into_bytes()
}

/// Flows of a task that is begun.
const MOST_FLOWS: u64 = 1_000;

/// A folder that is gone with the test.
struct Temporary(PathBuf);

impl Temporary {
    fn new(name: &str) -> Temporary {
        let path = std::env::temp_dir().join(format!("fairpace-lab-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Temporary(path)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const WORDS: [&str; 12] = [
    "null",
    "[]",
    "{}",
    "\"",
    "1e300",
    "-1",
    "18446744073709551615",
    "4294967295",
    "\"count\":",
    "\"failed\":{\"seed\":1,\"reason\":\"\"}",
    "\"../..\"",
    "\\n",
];

#[test]
fn any_task_is_performed_or_refused() {
    let stop = AtomicBool::new(true);
    // A task that is one is begun, and stopped before it costs time.
    let hooks = Hooks { stop: &stop, threads: 1, ..Hooks::default() };
    let seeds = tasks();
    let (read, begun) = (std::cell::Cell::new(0_u32), std::cell::Cell::new(0_u32));
    let target = Target::new("task", HERE).seeds(seeds).text().memory(64 << 20).cases(4_000);
    target.words(WORDS).run(|bytes| {
        let text = String::from_utf8_lossy(bytes);
        match Task::from_text(&text) {
            Ok(task) => {
                read.set(read.get() + 1);
                assert_eq!(Task::from_text(&task.to_text()).expect("what was written"), task);
                // A scenario may have a hundred thousand flows, some kilobytes each.
                let flows = |scenario: Scenario| scenario.flows.iter().map(|f| f.count.get()).sum::<u64>();
                if Scenario::parse(&task.scenario, &task.name).is_ok_and(|scenario| flows(scenario) <= MOST_FLOWS) {
                    begun.set(begun.get() + 1);
                    let _ = task.perform(CODE, study::World::Sim, &hooks);
                }
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    });
    assert!(read.get() > 0 && begun.get() > 0, "every case was refused");
}

#[test]
fn any_batch_is_taken_or_refused() {
    let hooks = Hooks { threads: 1, ..Hooks::default() };
    let batch = |task: &Vec<u8>| perform(&String::from_utf8_lossy(task), CODE, &hooks).expect("a batch");
    let seeds: Vec<_> = tasks().iter().map(batch).collect();
    assert!(!seeds.is_empty());
    let plan = plan();
    let taken = std::cell::Cell::new(0_u32);
    let target = Target::new("batch", HERE).seeds(seeds).text().memory(16 << 20).cases(4_000);
    target.words(WORDS).run(|bytes| {
        if let Ok(batch) = Batch::from_bytes(bytes) {
            assert_eq!(Batch::from_bytes(&batch.to_bytes()).expect("what was written").to_bytes(), batch.to_bytes());
        }
        let mut sweep = Sweep::new(plan.clone());
        if sweep.take(bytes).is_ok_and(|taken| taken) {
            taken.set(taken.get() + 1);
        }
        look_at(&mut sweep);
    });
    assert!(taken.get() > 0, "every case was refused");
}

/// Asks a sweep for everything that it tells.
fn look_at(sweep: &mut Sweep) {
    let _ = (sweep.groups().csv(), sweep.links().csv(), sweep.failed(), sweep.counts());
    if let Some(metric) = sweep.plan().metric().cloned() {
        let _ = (metric.rank(sweep), sweep.estimate(0, &metric));
    }
    let _ = std::iter::from_fn(|| sweep.ready()).take(100).count();
}

/// The files of a folder, by their names from there, in order.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(at) = folders.pop() {
        for entry in fs::read_dir(&at).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() { folders.push(path) } else { found.push(path) }
        }
    }
    found.retain(|path| !path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b".")));
    found.sort();
    found
}

/// Two lines of which the first has the sum of the second: else nobody would look at what is in it.
fn summed(body: &[u8]) -> Vec<u8> {
    let sum: String = Sha256::digest(body).iter().map(|byte| format!("{byte:02x}")).collect();
    [format!("{{\"sha256\":\"{sum}\"}}\n").as_bytes(), body, b"\n"].concat()
}

#[test]
fn any_file_of_a_sweeps_folder_is_taken_or_refused() {
    let base = Temporary::new("sweep");
    let hooks = Hooks { threads: 1, ..Hooks::default() };
    let plan = plan();
    let store = SweepStore::open(&base.0, &plan, Shard::default(), false, &hooks).expect("a folder");
    run(&mut Sweep::new(plan.clone()), Some(&store), Executor::Sim, &hooks).expect("a sweep");
    drop(store);
    let names = files(&base.0);
    assert!(names.len() >= 4, "{names:?}");
    // A number of the file, whether its sum is made to fit, and its content.
    let mut seeds = Vec::new();
    for (n, name) in names.iter().enumerate() {
        let content = elsewhere(fs::read_to_string(name).expect("text"));
        seeds.push([&[n as u8, 0], content.as_slice()].concat());
        if let [_, body, b""] = content.split(|byte| *byte == b'\n').collect::<Vec<_>>()[..] {
            seeds.push([&[n as u8, 1], body].concat());
        }
    }
    let whole = std::cell::Cell::new(0_u32);
    let contents: Vec<_> = names.iter().map(|name| fs::read(name).expect("a file")).collect();
    let target = Target::new("sweep", HERE).seeds(seeds).text().memory(64 << 20).cases(1_500);
    target.words(WORDS).words(["\"points\":", "..", "/log9", "path.rtt", "\"vary\":"]).run(|bytes| {
        let [file, fits, content @ ..] = bytes else { return };
        // The others as they were: the case before may have been a finding.
        names.iter().zip(&contents).for_each(|(name, content)| fs::write(name, content).expect("written"));
        let name = &names[usize::from(*file) % names.len()];
        let fits = fits & 1 == 1 && name.parent() != Some(&base.0);
        fs::write(name, if fits { summed(content) } else { content.to_vec() }).expect("written");
        let found = read(&base.0, &hooks);
        // Whoever goes on there takes what is this sweep's, or refuses.
        if let Ok(store) = SweepStore::open(&base.0, &plan, Shard::default(), false, &hooks) {
            let mut sweep = Sweep::new(plan.clone());
            if store.load(&mut sweep, false, &hooks).is_ok() {
                look_at(&mut sweep);
            }
        }
        if let Ok(mut sweep) = found {
            whole.set(whole.get() + 1);
            look_at(&mut sweep);
        }
    });
    assert!(whole.get() > 0, "every case was refused");
}
