//! The written summary of a run is read back unchanged.

use fairpace_lab::results::SeedResults;
use fairpace_lab::run::simulate;
use fairpace_lab::summary::Summary;
use fairpace_lab::{Hooks, RunOptions, RunSet, Seeds, run};
use fairpace_scenario::{Record, Scenario};
use std::path::Path;
use std::sync::atomic::AtomicBool;

fn load(name: &str) -> Scenario {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").join(name);
    Scenario::load(&file).unwrap_or_else(|e| panic!("{e}"))
}

fn reads_back(set: &RunSet) {
    let text = set.json().to_string();
    let read = Summary::from_json(&text).unwrap_or_else(|e| panic!("{}: {e}", set.scenario.name));
    assert_eq!(serde_json::to_value(&read).unwrap().to_string(), text);
    assert_eq!(read.runs().len(), set.runs.len());
}

/// Numbers that are not finite would be `null`, which no number is read from.
#[test]
fn a_run_that_was_stopped_before_anything_happened_reads_back() {
    let stop = AtomicBool::new(true);
    let hooks = Hooks { stop: &stop, ..Hooks::default() };
    for name in ["geo.toml", "dvb-rcs-idle.toml", "wlan-voice.toml", "rate-probing.toml"] {
        let scenario = load(name);
        let run = simulate(&scenario, 1, Record::default(), &hooks).unwrap();
        assert!(run.summary.interrupted && run.summary.duration_s == 0.0);
        let runs = vec![SeedResults::new(&scenario, run).unwrap()];
        reads_back(&RunSet { scenario, runs, interrupted: true });
    }
}

#[test]
fn runs_of_one_seed_and_of_several_read_back() {
    for (name, n) in [("dvb-rcs-idle.toml", 1), ("wlan-voice.toml", 1), ("rate-probing.toml", 1), ("geo.toml", 2)] {
        let options = RunOptions { seeds: Seeds::Count(n), record: Record::default() };
        reads_back(&run::run(&load(name), &options, &Hooks::default()).unwrap());
    }
}
