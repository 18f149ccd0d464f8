//! Scenario files and quantities as people write them, under fuzzing: the text itself, where `hostile` changes one number.

use fairpace_fuzz::Target;
use fairpace_scenario::{Record, Scenario, Streams, sim_config};
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

/// A file of streams: of each row, and some with none.
const FILES_OF_STREAMS: [&str; 3] = [
    "[[streams]]\nname = \"a\"\nsource = \"model\"\nto = \"host:5004\"\n",
    "[defaults]\nto = \"host.example:5004\"\nmax_rate = \"3 Mbit/s\"\nkey_file = \"stream.key\"\nset = { rate = \"2 Mbit/s\" }\n\
     control = \"fixed\"\n[[streams]]\nname = \"gate\"\nsource = \"gate.mp4\"\n[[streams]]\nname = \"yard\"\n\
     source = \"constant:2 Mbit/s\"\ncontrol = \"rcs\"\nset = {}\n",
    "[[streams]]\nname = \"all\"\nsource = \"test-pattern\"\nto = \"[2001:db8::1]:5004\"\ncontrol = \"tfrc\"\n\
     set = { measured_by = \"receiver\" }\nmax_rate = \"1 Mbit/s\"\nmin_rate = \"60 kbit/s\"\nquantum = \"0 s\"\npacket_size = \"1000 B\"\n\
     size = \"640x360\"\nfps = 25\nseconds = \"60 s\"\nno_repair = true\nno_fec = true\nseed = 7\n",
];

#[test]
fn any_text_is_a_file_of_streams_or_an_error_that_helps() {
    let accepted = std::cell::Cell::new(0);
    let target = Target::new("streams", HERE).seeds(FILES_OF_STREAMS.map(|s| s.as_bytes().to_vec())).text();
    let words = [
        "[defaults]\n",
        "[[streams]]\n",
        "name",
        "source",
        "set",
        "max_rate",
        "size",
        "\"0x0\"",
        "\"1e9 Mbit/s\"",
        "= {",
    ];
    target.words(WORDS).words(words).memory(32 << 20).longest(8_192).cases(12_000).run(|bytes| {
        match Streams::parse(&String::from_utf8_lossy(bytes), "streams.toml") {
            Ok(streams) => {
                accepted.set(accepted.get() + 1);
                for (n, stream) in streams.streams().iter().enumerate() {
                    assert!(stream.most() >= stream.least() && stream.least().as_bps() > 0.0);
                    let _ = (stream.controller(), stream.settings());
                    let refused = streams.refuse(n, "source", "is not there", "a file").to_string();
                    assert!(refused.len() < 16_384, "{refused}");
                }
            }
            Err(error) => {
                let message = format!("{error} [{}]", error.hint().unwrap_or_default());
                assert!(message.len() < 16_384, "{} B: {message}", message.len());
            }
        }
    });
    assert!(accepted.get() > 0, "every case was refused");
}
