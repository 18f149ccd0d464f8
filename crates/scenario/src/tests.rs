//! Scenarios that are accepted, as they are printed, and those that are refused (`tests/`).

mod fields;
mod hops;
mod refusals;

use super::*;
use std::path::{Path, PathBuf};

const GOOD: &str = r#"
duration = "10 s"

[path]
rate = "1300 pkt/s"
rtt = "550 ms"
queue = { kind = "two-priority", capacity = "50 pkt" }
loss = { kind = "random", p = 1e-3 }

[[flows]]
controller = "fixed"
count = 2
"#;

/// `geo.toml:3: ...` and the hint, for a scenario that must be refused.
fn refusal(text: &str) -> String {
    match Scenario::parse(text, "geo.toml") {
        Ok(s) => panic!("accepted:\n{text}\n{s:?}"),
        Err(e) => match e.hint() {
            Some(hint) => format!("{e}\nhint: {hint}"),
            None => e.to_string(),
        },
    }
}

/// [`GOOD`] with one line replaced or, if no line starts so, added on top.
fn with(line: &str, replacement: &str) -> String {
    if GOOD.lines().any(|l| l.starts_with(line)) {
        let lines = GOOD.lines().map(|l| if l.starts_with(line) { replacement } else { l });
        lines.collect::<Vec<_>>().join("\n")
    } else {
        format!("{replacement}\n{GOOD}")
    }
}

#[test]
fn a_small_scenario_reads_and_fills_in_names_and_defaults() {
    let s = Scenario::parse(GOOD, "folder/geo.toml").unwrap();
    assert_eq!((s.name.as_str(), s.seed.get(), s.flows.len()), ("geo", 1, 1));
    assert_eq!((s.flows[0].name.as_str(), s.flows[0].group.as_str()), ("fixed", "fixed"));
    assert_eq!(s.feedback.get().interval, Some(fairpace_units::Duration::from_millis(20)));
}

#[test]
fn what_a_scenario_prints_reads_back_to_itself_and_holds_every_default() {
    let s = Scenario::parse(GOOD, "geo.toml").unwrap();
    let printed = s.to_toml();
    for line in [
        "seed = 1",
        "warmup = \"0 s\"",
        "safety = \"default\"",
        "rate = \"start\"",
        "capacity = \"50 pkt\"",
        "p = 0.001",
    ] {
        assert!(printed.contains(line), "{line} is not in\n{printed}");
    }
    let again = Scenario::parse(&printed, "geo.toml").unwrap();
    assert_eq!(again.to_toml(), printed);
}

#[test]
fn the_published_schema_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scenario.schema.json");
    let schema = Scenario::json_schema();
    if std::env::var_os("FAIRPACE_BLESS").is_some() {
        std::fs::write(&path, &schema).unwrap();
    }
    let published = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(published == schema, "docs/scenario.schema.json is stale: run this test with FAIRPACE_BLESS=1");
}

#[test]
fn files_that_are_no_scenarios_are_refused_without_reading_on() {
    let folder = std::env::temp_dir().join(format!("fairpace-scenario-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let noise: Vec<u8> = (0..1 << 20).map(|i: u32| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let cases = [
        (folder.join("missing.toml"), "there is no such file"),
        (folder.clone(), "it is a folder"),
        ("/dev/null".into(), "it is not a regular file"),
        ("/dev/full".into(), "it is not a regular file"),
        (file("empty.toml", b""), "`path.rate` is missing"),
        (file("noise.toml", &noise), "it is not UTF-8 text"),
        (file("large.toml", &vec![b'#'; (1 << 20) + 1]), "it has 1048577 bytes; at most 1 MiB is read"),
        (file("nul.toml", b"\0"), "is not TOML"),
        (PathBuf::from("x".repeat(4_096)), "File name too long"),
    ];
    for (path, expected) in cases {
        let error = Scenario::load(&path).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
        assert!(error.hint().is_some());
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
