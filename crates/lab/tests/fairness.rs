//! The default beside TCP where TCP leaves room: it takes the room, and nothing of TCP's.

use fairpace_lab::{Hooks, RunOptions, Seeds, run};
use fairpace_scenario::{Record, Scenario};
use std::path::Path;

/// kbit/s of each flow of a group, in the mean over four seeds.
fn kbps(scenario: &Scenario, group: &str) -> f64 {
    let options = RunOptions { seeds: Seeds::Count(4), record: Record { series: false, events: false, pcap: false } };
    let set = run::run(scenario, &options, &Hooks::default()).unwrap();
    let rates = set.runs.iter().map(|run| {
        let found = run.summary.groups.iter().find(|g| g.name == group).unwrap();
        found.throughput_bps / 1e3
    });
    rates.sum::<f64>() / set.runs.len() as f64
}

/// Beside a flow that grew by a quarter in a round, TCP had a third of what it has alone: a buffer of 40 ms had overflowed
/// before the round trip of 550 ms could tell of a queue.
#[test]
fn auto_fills_a_clean_long_path_with_a_short_buffer_and_tcp_has_what_it_has_alone() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/geo-clean.toml");
    let scenario = Scenario::load(&file).unwrap();
    let alone = scenario.modify(|s| s.flows.retain(|f| f.group == "download")).unwrap();
    let (tcp, alone, auto) = (kbps(&scenario, "download"), kbps(&alone, "download"), kbps(&scenario, "video"));
    assert!(tcp > 0.85 * alone, "{tcp:.0} kbit/s beside auto, {alone:.0} alone");
    assert!(auto > 1.5 * alone, "auto {auto:.0} kbit/s, TCP {alone:.0} alone: the room stays empty");
}
