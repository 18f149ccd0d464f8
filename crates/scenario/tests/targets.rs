//! Scenario files and quantities as people write them, under fuzzing: the text itself, where `hostile` changes one number.

use fairpace_fuzz::Target;
use fairpace_scenario::{Record, Scenario, sim_config};
use fairpace_sim::Network;
use fairpace_units::{Duration, Instant, parse_duration, parse_rate, parse_size};
use std::fs;
use std::path::{Path, PathBuf};

const HERE: &str = env!("CARGO_MANIFEST_DIR");

/// Every scenario file that names no recording and has at most 3 KiB.
fn scenarios() -> Vec<Vec<u8>> {
    let mut folders = vec![Path::new(HERE).join("../../scenarios")];
    let mut files: Vec<PathBuf> = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    let text = |path: &PathBuf| path.extension().is_some_and(|e| e == "toml").then(|| fs::read(path).expect("a file"));
    let mut all: Vec<_> = files.iter().filter_map(text).collect();
    all.retain(|text| text.len() <= 3_072 && !text.windows(5).any(|w| w == b"trace"));
    all
}

const WORDS: [&str; 40] = [
    "[path]",
    "[[flows]]",
    "[satellite]",
    "[wireless]",
    "[flows.source]",
    "name",
    "controller",
    "count",
    "rate",
    "rtt",
    "queue",
    "loss",
    "outages",
    "duration",
    "sample",
    "seed",
    "warmup",
    "feedback",
    "parameters",
    "terminals",
    "hops",
    "start",
    "class",
    "tcp",
    "kind",
    "\"rcs\"",
    "\"tfrc\"",
    "\"aimd\"",
    "\"fq-codel\"",
    "\"random\"",
    " Mbit/s",
    " s",
    " pkt",
    "[",
    "]",
    "{",
    "}",
    "\"",
    "=",
    "1979-05-27",
];

#[test]
fn any_text_is_a_scenario_or_an_error_that_helps() {
    let seeds = scenarios();
    assert!(seeds.len() > 30, "{} files", seeds.len());
    let accepted = std::cell::Cell::new(0);
    let target = Target::new("scenario", HERE).seeds(seeds).text().words(WORDS).memory(256 << 20).longest(8_192);
    target.cases(12_000).run(|bytes| {
        let scenario = match Scenario::parse(&String::from_utf8_lossy(bytes), "no/such/folder/fuzz.toml") {
            Ok(scenario) => scenario,
            Err(error) => {
                let message = error.to_string();
                return assert!(!message.is_empty() && message.len() < 4_096, "{} B: {message}", message.len());
            }
        };
        accepted.set(accepted.get() + 1);
        let again = scenario.to_toml();
        let read = Scenario::parse(&again, "no/such/folder/fuzz.toml").unwrap_or_else(|e| panic!("{e}\n{again}"));
        assert_eq!(read.to_toml(), again);
        // Every tenth is run for some events.
        if accepted.get() % 10 == 0 {
            let mut config = sim_config(&scenario, 1, Record::default()).unwrap_or_else(|e| panic!("{e}"));
            (config.duration, config.warmup) = (config.duration.min(Duration::from_millis(100)), Duration::ZERO);
            let end = Instant::ZERO + config.duration;
            let mut network = Network::new(&config).unwrap_or_else(|e| panic!("{e}"));
            network.advance_some(end, 2_000);
        }
    });
    assert!(accepted.get() > 0, "every case was refused");
}

#[test]
fn any_quantity_is_read_or_refused() {
    let seeds =
        ["10 ms", "1.5 Mbit/s", "100 pkt/s", "1316 B", "2 KiB", "0.5s", "1e3 kbit/s", "unlimited", "0 s", "7 us"];
    // 4 KiB that are no text become 12 KiB of signs for that, of which each error keeps a copy, and a message has one.
    let target = Target::new("quantity", HERE).seeds(seeds.map(|s| s.as_bytes().to_vec())).text().memory(128 << 10);
    target.words([" ", "e", "Mbit/s", "pkt/s", "ms", "min", "h", "kB", "MiB", "_", "\u{b5}s"]).cases(150_000).run(
        |bytes| {
            let text = String::from_utf8_lossy(bytes);
            let (duration, rate, size) = (parse_duration(&text), parse_rate(&text), parse_size(&text));
            if let Ok(rate) = rate {
                let rate = rate.with_packets_of(fairpace_units::Bytes::new(1_000));
                assert!(rate.as_bps() >= 0.0 && rate.as_bps().is_finite(), "{text:?}: {rate:?}");
            }
            for message in
                [duration.err().map(|e| e.to_string()), size.err().map(|e| e.to_string())].into_iter().flatten()
            {
                assert!(message.len() < 600 + text.len(), "{message}");
            }
        },
    );
}
