//! A results folder holds the same bytes however many threads made it.

use fairpace_lab::{Hooks, RunOptions, Seeds, results, run};
use fairpace_scenario::{Record, Scenario};

/// One second of 1,300 packets/s, lossy, two controllers and background.
const SMALL: &str = include_str!("../../scenario/tests/small.toml");

fn small() -> Scenario {
    Scenario::parse(SMALL, "small.toml").unwrap()
}

const OPTIONS: RunOptions =
    RunOptions { seeds: Seeds::Count(4), record: Record { series: true, events: true, pcap: false } };

#[test]
fn the_same_scenario_and_seeds_give_the_same_bytes_with_one_thread_and_with_two() {
    let folder = |threads: usize| {
        let hooks = Hooks { threads, ..Hooks::default() };
        let set = run::run(&small(), &OPTIONS, &hooks).unwrap();
        let path = std::env::temp_dir().join(format!("fairpace-bytes-{}-{threads}", std::process::id()));
        results::write(&path, &set, &results::Manifest::default(), None).unwrap();
        let mut files: Vec<_> = std::fs::read_dir(&path).unwrap().map(|f| f.unwrap().path()).collect();
        files.sort();
        let bytes: Vec<_> =
            files.iter().map(|f| (f.file_name().unwrap().to_owned(), std::fs::read(f).unwrap())).collect();
        std::fs::remove_dir_all(&path).unwrap();
        bytes
    };
    let (one, two) = (folder(1), folder(2));
    assert_eq!(one.len(), 8);
    assert!(one == two, "threads change the results");
}
