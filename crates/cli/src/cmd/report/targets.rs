//! Results that `fairpace report` reads back, under fuzzing: the file that says what a folder is comes from somebody else.

use super::of_folder;
use crate::demo::model::{self, DemoResult, SchemeRun, StillFile, TurnEnd};
use fairpace_fuzz::Target;
use fairpace_lab::{Hooks, RunOptions, Seeds, results, run};
use fairpace_scenario::{Record, Scenario};
use std::fs;
use std::path::{Path, PathBuf};

const HERE: &str = env!("CARGO_MANIFEST_DIR");

/// A folder that is gone with the test.
struct Temporary(PathBuf);

impl Temporary {
    fn new(name: &str) -> Temporary {
        let path = std::env::temp_dir().join(format!("fairpace-report-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder");
        Temporary(path)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Two turns: one that came to its end, with a picture, and one that was stopped.
fn demo() -> DemoResult {
    let curve = || vec![(0.0, 1.0), (1.0, 2.5), (2.0, 0.0)];
    let turn = |label: &str, ended| SchemeRun {
        scheme: label.to_lowercase(),
        label: label.to_owned(),
        ended,
        elapsed_s: 2.0,
        target_kbps: curve(),
        received_kbps: curve(),
        delay_ms: curve(),
        states: vec![(0.0, 1.5, "steady".to_owned())],
        beside_kbps: vec![curve()],
        stills: vec![StillFile { at_s: 1.0, file: Some("still.png".to_owned()), stood_still_s: 0.2 }],
        video: Some("rcs.ivf".to_owned()),
        ..SchemeRun::default()
    };
    let breaker = TurnEnd::Breaker { at_s: 1.2, reason: "ten times TCP's rate".to_owned() };
    let mut demo = DemoResult {
        format: model::FORMAT.to_owned(),
        source: "a clip".to_owned(),
        seconds: 2.0,
        schemes: vec![turn("RCS", TurnEnd::Completed), turn("RAP", breaker)],
        ..DemoResult::default()
    };
    demo.path.beside = vec!["tcp".to_owned()];
    demo.path.capacity_kbps = curve();
    demo.path.outages_s = vec![(0.5, 0.2)];
    demo
}

/// Writes the bytes as the folder's file, and looks at the page.
fn try_file(folder: &Path, file: &str, bytes: &[u8]) -> bool {
    fs::write(folder.join(file), bytes).expect("written");
    let Ok(page) = of_folder(folder) else { return false };
    assert!(page.to_html().len() < 32 << 20);
    true
}

#[test]
fn any_demo_gives_a_page_or_an_error() {
    let base = Temporary::new("demo");
    // Only this picture is the folder's.
    fs::write(base.0.join("still.png"), [0; 40]).expect("written");
    let seed = serde_json::to_vec(&demo()).expect("JSON");
    assert!(try_file(&base.0, model::FILE, &seed), "the demo as it is");
    let pages = std::cell::Cell::new(0_u32);
    let target = Target::new("demo", HERE).seeds([seed]).text().memory(64 << 20).cases(1_500);
    let words =
        ["null", "[]", "<script>", "1e300", "-1e300", "\"../../etc/hostname\"", "\"kind\":\"failed\"", "1e-300"];
    target.words(words).run(|bytes| pages.set(pages.get() + u32::from(try_file(&base.0, model::FILE, bytes))));
    assert!(pages.get() > 0, "every case was refused");
}

#[test]
fn any_comparison_gives_a_page_or_an_error() {
    let base = Temporary::new("compare");
    let text = "duration = \"1 s\"\nsample = \"500 ms\"\n[path]\nrate = \"1 Mbit/s\"\nrtt = \"50 ms\"\n\
                [[flows]]\nname = \"media\"\ncontroller = \"rcs\"\n";
    let scenario = Scenario::parse(text, "run.toml").unwrap_or_else(|e| panic!("{e}"));
    let record = Record { series: true, events: false, pcap: false };
    let set = run::run(&scenario, &RunOptions { seeds: Seeds::Count(1), record }, &Hooks::default()).expect("a run");
    for name in ["rcs", "rap"] {
        results::write(&base.0.join(name), &set, &results::Manifest::default(), None).expect("a folder");
    }
    let seed = br#"{"runs":["rcs","rap"],"metrics":[]}"#.to_vec();
    assert!(try_file(&base.0, super::COMPARE_FILE, &seed), "the comparison as it is");
    let pages = std::cell::Cell::new(0_u32);
    let target = Target::new("compare", HERE).seeds([seed]).text().memory(64 << 20).cases(1_500);
    let words = ["null", "[]", "\"rcs\",", "\"..\"", "\"/\"", "\"runs\":", "\"rap\"", "{}"];
    target.words(words).run(|bytes| pages.set(pages.get() + u32::from(try_file(&base.0, super::COMPARE_FILE, bytes))));
    assert!(pages.get() > 0, "every case was refused");
}
