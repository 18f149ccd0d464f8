//! Every scenario that is shipped reads, prints back to itself, and runs.

use fairpace_lab::{Hooks, RunOptions, Seeds, run};
use fairpace_scenario::{Record, Scenario, Time};
use std::path::{Path, PathBuf};

fn shipped() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut files = Vec::new();
    for folder in [root.clone(), root.join("papers")] {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|e| e == "toml") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

#[test]
fn every_shipped_scenario_reads_and_prints_back_to_itself() {
    let files = shipped();
    assert!(files.len() >= 18, "{files:?}");
    for file in files {
        let scenario = Scenario::load(&file).unwrap_or_else(|e| panic!("{e}\nhint: {:?}", e.hint()));
        let printed = scenario.to_toml();
        // Printed beside the original, so that the traces it names are found.
        let again = Scenario::parse(&printed, &file.display().to_string());
        let again = again.unwrap_or_else(|e| panic!("{e}\nhint: {:?}\n{printed}", e.hint()));
        assert_eq!(again.to_toml(), printed, "{}", file.display());
        assert!(!scenario.title.is_empty(), "{} has no title", file.display());
    }
}

#[test]
fn every_shipped_scenario_runs_and_something_arrives() {
    let options = RunOptions { seeds: Seeds::Count(1), record: Record { series: true, events: true, pcap: false } };
    for file in shipped() {
        let mut scenario = Scenario::load(&file).unwrap();
        // Enough to be past the start of nearly every flow; what is beyond is dropped from the scenario.
        let end = fairpace_units::Duration::from_secs(15);
        if scenario.duration.get() > end {
            let shorter = scenario.modify(|s| {
                (s.duration, s.warmup) = (end.into(), Time::seconds(0.0));
                if s.sample.get() > end {
                    s.sample = end.into();
                }
                s.path.outages.retain(|o| o.start.get() < end);
                s.flows.retain(|f| f.start.get() < end);
            });
            scenario = shorter.unwrap_or_else(|e| panic!("{e}"));
        }
        let set =
            run::run(&scenario, &options, &Hooks::default()).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        let groups = &set.runs[0].summary.groups;
        for group in groups {
            // Of flows that come and go there need not be one in the first seconds.
            let may_be_empty = scenario.flows.iter().any(|f| f.group == group.name && f.arrivals.is_some());
            let arrived = group.throughput_bps > 0.0 || may_be_empty;
            assert!(arrived, "{}: nothing of `{}` arrived", file.display(), group.name);
        }
        assert!(groups.iter().any(|g| g.throughput_bps > 0.0), "{}: nothing arrived", file.display());
    }
}
