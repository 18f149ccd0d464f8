//! Results that are read back from disk, under fuzzing: each file of a folder in turn is somebody else's.

use fairpace_fuzz::Target;
use fairpace_lab::study::Store;
use fairpace_lab::summary::Summary;
use fairpace_lab::{Hooks, RunOptions, Seeds, results, run, stats};
use fairpace_report::Page;
use fairpace_report::folder::{compare_page, run_page};
use fairpace_scenario::{Record, Scenario, Time};
use std::fs;
use std::path::{Path, PathBuf};

const HERE: &str = env!("CARGO_MANIFEST_DIR");

/// Short runs: two flows over a queue, a satellite, data units.
const SCENARIOS: [&str; 3] = [
    "duration = \"2 s\"\nsample = \"500 ms\"\n[path]\nrate = \"1 Mbit/s\"\nrtt = \"50 ms\"\n\
     [[flows]]\nname = \"a <b>\"\ncontroller = \"rcs\"\n[[flows]]\ncontroller = \"tcp-sack\"\n",
    "duration = \"6 s\"\nsample = \"2 s\"\n[satellite]\n[[flows]]\ncontroller = \"tfrc\"\nterminals = [1, 2]\n",
    "duration = \"4 s\"\nsafety = \"paper\"\npacket_size = \"552 B\"\n[path]\nrate = \"unlimited\"\nrtt = \"100 ms\"\n\
     [[flows]]\nname = \"media\"\ncontroller = \"tpba\"\ninitial_rtt = \"100 ms\"\n\
     source = { kind = \"adus\", packets = 10 }\ntcp = { variant = \"newreno\", initial_window = 4, max_window = 4 }\n",
];

/// A folder that is gone with the test.
struct Temporary(PathBuf);

impl Temporary {
    fn new(name: &str) -> Temporary {
        let path = std::env::temp_dir().join(format!("fairpace-targets-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder");
        Temporary(path)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// One of those, or a ready one over a wireless link, made short.
fn scenario(n: usize) -> Scenario {
    if let Some(text) = SCENARIOS.get(n) {
        return Scenario::parse(text, "run.toml").unwrap_or_else(|e| panic!("{e}"));
    }
    let file = Path::new(HERE).join("../../scenarios/wlan-voice.toml");
    let whole = Scenario::load(&file).unwrap_or_else(|e| panic!("{e}"));
    let short = whole.modify(|s| (s.duration, s.warmup) = (Time::seconds(3.0), Time::seconds(1.0)));
    short.unwrap_or_else(|e| panic!("{e}"))
}

/// The folder of a run of one seed, made by the run itself.
fn write(n: usize, folder: &Path) {
    let record = Record { series: true, events: true, pcap: false };
    let set = run::run(&scenario(n), &RunOptions { seeds: Seeds::Count(1), record }, &Hooks::default()).expect("a run");
    results::write(folder, &set, &results::Manifest::default(), None).expect("a folder");
}

/// The files that the page is made of, in the order of their names.
fn files(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder").map(|e| e.expect("an entry").file_name());
    let mut names: Vec<_> = entries.map(|name| name.to_string_lossy().into_owned()).collect();
    names.retain(|name| name != "manifest.json");
    names.sort();
    names
}

/// As many first lines as 2 KiB hold: tables need no more.
fn beginning(text: &[u8]) -> &[u8] {
    let end = text.iter().take(2_048).rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    if text.len() <= 2_048 || end == 0 { text } else { &text[..end] }
}

#[test]
fn any_file_of_a_results_folder_gives_a_page_or_an_error() {
    let base = Temporary::new("folder");
    let runs = [0, 1, 2, 3].map(|n| base.0.join(n.to_string()));
    for (n, run) in runs.iter().enumerate() {
        write(n, run);
    }
    let of_run: Vec<Vec<String>> = runs.iter().map(|run| files(run)).collect();
    let mut seeds = Vec::new();
    for (n, names) in of_run.iter().enumerate() {
        for (i, name) in names.iter().enumerate() {
            // Tables are short from here on.
            let text = fs::read(runs[n].join(name)).expect("a file");
            let text = if name.ends_with(".csv") || name.ends_with(".jsonl") { beginning(&text) } else { &text };
            fs::write(runs[n].join(name), text).expect("written");
            seeds.push([&[n as u8, i as u8][..], text].concat());
        }
    }
    assert!(seeds.len() >= 25, "{} files", seeds.len());
    assert!(runs.iter().all(|run| run_page(run).is_ok()), "the pages as they are");
    let target = Target::new("folder", HERE).seeds(seeds).text().memory(64 << 20).cases(2_000);
    let pages = std::cell::Cell::new(0_u32);
    target.words(["null", "[]", "{}", "\"", "<script>", "true", "1e999", "\n", ",,"]).run(|bytes| {
        let [run, file, text @ ..] = bytes else { return };
        let n = usize::from(*run) % runs.len();
        let path = runs[n].join(&of_run[n][usize::from(*file) % of_run[n].len()]);
        let whole = fs::read(&path).expect("a file");
        fs::write(&path, text).expect("written");
        let page = run_page(&runs[n]);
        let _ = compare_page(&base.0, &["0".to_owned(), "1".to_owned(), "2".to_owned(), "3".to_owned()]);
        fs::write(&path, whole).expect("written");
        if let Ok(page) = page {
            pages.set(pages.get() + 1);
            assert!(page.to_html().len() < 32 << 20);
        }
    });
    assert!(pages.get() > 0, "every case was refused");
}

#[test]
fn any_page_that_is_read_back_becomes_html_without_a_tag_of_its_own() {
    let base = Temporary::new("page");
    write(0, &base.0);
    let page = run_page(&base.0).expect("a page");
    let seed = serde_json::to_vec(&page).expect("JSON");
    let target = Target::new("page", HERE).seeds([seed]).text().memory(64 << 20).cases(1_500);
    target.words(["null", "[]", "<script>", "</script>", "\\u003c", "\"title\":", "1e300"]).run(|bytes| {
        let Ok(page) = serde_json::from_slice::<Page>(bytes) else { return };
        let html = page.to_html();
        let scripts = |text: &str| text.to_lowercase().matches("<script").count();
        assert_eq!(scripts(&html), 3, "the two of the page, and its data");
    });
}

#[test]
fn any_kept_seeds_are_taken_or_left() {
    let base = Temporary::new("seeds");
    let path = base.0.join("seeds.jsonl");
    let scenario = scenario(0)
        .modify(|s| {
            (s.duration, s.sample) = (Time::seconds(0.2), Time::seconds(0.1));
        })
        .expect("a scenario");
    let options = |n| RunOptions { seeds: Seeds::Count(n), record: Record::default() };
    let mut store = Store::open(&path, "this").expect("a file");
    let sim = fairpace_lab::study::World::Sim;
    run::run_in(sim, &scenario, &options(2), Some(&mut store), &Hooks::default()).expect("a run");
    drop(store);
    let kept = fs::read(&path).expect("the seeds");
    assert_eq!(kept.iter().filter(|byte| **byte == b'\n').count(), 2);
    let target = Target::new("seeds", HERE).seeds([kept]).text().memory(16 << 20).cases(800);
    target.words(["\n", "null", "\"seed\":", "{", "}", "\"this\"", "\\u0000", "[[[[[[[["]).run(|bytes| {
        fs::write(&path, bytes).expect("written");
        let mut store = Store::open(&path, "this").expect("any file is opened");
        let _ = store.account();
        // Seeds that are not there are simulated, which takes no time.
        let set = run::run_in(sim, &scenario, &options(2), Some(&mut store), &Hooks { threads: 1, ..Hooks::default() });
        if let Ok(set) = set {
            assert!(set.runs.len() <= 2);
            let _ = set.json();
        }
        // Nothing that was there is gone.
        assert!(fs::read(&path).expect("the seeds").starts_with(bytes));
    });
}

#[test]
fn any_summary_is_read_or_refused() {
    let base = Temporary::new("summary");
    write(1, &base.0);
    let one = fs::read(base.0.join("summary.json")).expect("a summary");
    let several =
        [&b"{\"runs\":["[..], &one, b"],\"metrics\":[],\"seeds\":[1],\"interrupted\":false,\"world\":\"sim\"}"]
            .concat();
    let target = Target::new("summary", HERE).seeds([one, several]).text().memory(4 << 20).cases(4_000);
    target.words(["null", "\"runs\":", "[]", "{}"]).run(|bytes| {
        if let Ok(summary) = Summary::from_json(&String::from_utf8_lossy(bytes)) {
            let again = serde_json::to_string(&summary).expect("what was read can be written");
            assert!(Summary::from_json(&again).is_ok(), "{again}");
        }
    });
}

#[test]
fn any_numbers_have_statistics() {
    let seeds = [[1.0_f64, 2.0, 3.0], [f64::MAX, f64::MIN, 0.0], [f64::NAN, f64::INFINITY, -0.0]];
    let seeds = seeds.map(|numbers| numbers.iter().flat_map(|x| x.to_be_bytes()).collect());
    Target::new("stats", HERE).seeds(seeds).memory(1 << 20).cases(60_000).run(|bytes| {
        let (words, _) = bytes.as_chunks::<8>();
        let values: Vec<f64> = words.iter().map(|word| f64::from_be_bytes(*word)).collect();
        if let Some(estimate) = stats::Estimate::of(&values) {
            let _ = (estimate.text(), estimate.low(), estimate.high());
        }
        let _ = (stats::mean(&values), stats::deviation(&values), stats::half_width(&values));
        assert!(stats::seeds_wanted(&values) <= 1_000_000);
        let _ = stats::jain_index(&values);
        for value in values {
            assert!(stats::short(value).len() < 400);
        }
    });
}
