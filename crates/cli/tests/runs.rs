//! Scenarios through the command: what goes wrong is said with file, line and field, what goes well leaves a
//! folder, and an interrupted run leaves a valid one.

#![allow(clippy::disallowed_methods, reason = "the test itself waits, as a user does before Ctrl-C")]

mod common {
    pub(crate) mod program;
}

use common::program::{command, text};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

fn run(args: &[&str]) -> Output {
    command(args).output().unwrap()
}

fn folder(name: &str) -> PathBuf {
    let dir = common::program::folder("runs").join(name);
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

fn scenario(name: &str, body: &str) -> (PathBuf, String) {
    let dir = folder(name);
    let file = dir.join("s.toml");
    std::fs::write(&file, body).unwrap();
    (dir, file.to_str().unwrap().to_owned())
}

const GOOD: &str = "\
duration = \"10 s\"
warmup = \"2 s\"
[path]
rate = \"1 Mbit/s\"
rtt = \"100 ms\"
queue = { kind = \"two-priority\", capacity = \"20 pkt\" }
loss = { kind = \"random\", p = 0.005 }
outages = [{ start = \"5 s\", length = \"1 s\" }]
[[flows]]
controller = \"rcs\"
[[flows]]
controller = \"tcp-newreno\"
";

#[test]
fn a_wrong_scenario_names_file_line_field_value_and_what_is_allowed() {
    for (name, body, wanted) in [
        (
            "field",
            "duratoin = \"10 s\"\n",
            &["s.toml:1: `duratoin` is not a field", "hint: did you mean `duration`?"][..],
        ),
        (
            "unit",
            "duration = \"10 parsecs\"\n",
            &["s.toml:1: `duration` is `10 parsecs`", "the unit is not a time", "as in `550 ms`"],
        ),
        (
            "negative",
            "duration = \"10 s\"\n[path]\nrate = \"-1 Mbit/s\"\n",
            &["s.toml:3: `path.rate`", "-1 Mbit/s", "negative"],
        ),
        ("empty", "duration = \"10 s\"\nflows = []\n[path]\nrate = \"1 Mbit/s\"\n", &["`flows` is empty"]),
        (
            "name",
            "duration = \"10 s\"\n[path]\nrate = \"1 Mbit/s\"\n[[flows]]\ncontroller = \"rsc\"\n",
            &["s.toml:5: `flows[0].controller` is `rsc`", "did you mean `rcs`?"],
        ),
        ("broken", "duration = \n", &["s.toml:1", "is not TOML"]),
    ] {
        let (dir, file) = scenario(name, body);
        for subcommand in ["run", "compare"] {
            let out = run(&[subcommand, &file, "--out", dir.join("out").to_str().unwrap()]);
            let said = text(&out.stderr);
            assert_eq!(out.status.code(), Some(3), "{name}: {said}");
            assert!(said.starts_with("error: "), "{name}: {said}");
            for part in wanted {
                assert!(said.contains(part), "{name}: {part:?} is missing in {said}");
            }
            assert!(!dir.join("out").exists(), "{name}: nothing is written");
        }
    }
}

#[test]
fn a_missing_scenario_is_code_3_and_a_wrong_link_for_the_relay_too() {
    for args in [&["run", "nowhere.toml"][..], &["relay", "nowhere.toml", "--listen", "0", "--to", "127.0.0.1:9"]] {
        let out = run(args);
        assert_eq!(out.status.code(), Some(3));
        assert!(
            text(&out.stderr).starts_with("error: nowhere.toml: cannot be read: there is no such file\n\nhint: "),
            "{}",
            text(&out.stderr)
        );
    }
}

const SATELLITE: &str = "\
duration = \"20 s\"
safety = \"paper\"
[satellite]
quick_start = { agent = \"qsd\", hold = \"max\" }
[[flows]]
name = \"tv\"
controller = \"tfrc\"
parameters = { rfc = 3448, measured_by = \"receiver\" }
source = { kind = \"iptv\" }
terminals = [1, 2]
quick_start = \"320 kbit/s\"
";

#[test]
fn a_satellite_is_run_and_compared_with_a_warning_where_requests_are_held_too_long() {
    let (dir, file) = scenario("satellite", SATELLITE);
    let out = run(&["run", &file, "--json", "--out", dir.join("one").to_str().unwrap()]);
    let said = text(&out.stderr);
    assert_eq!(out.status.code(), Some(0), "{said}");
    assert!(said.contains("s.toml:4: `satellite.quick_start.hold` (T_q) is 1273 ms"), "{said}");
    let value: serde_json::Value = serde_json::from_str(&text(&out.stdout)).unwrap();
    assert_eq!(value["satellite"]["terminals"][0]["terminal"], 1);
    assert_eq!(value["warnings"].as_array().unwrap().len(), 1);
    assert!(value["flows"][0]["e2e_ms"]["max"].as_f64().unwrap() > 1_000.0);
    // Another controller asks for no rate: the request goes, the rest stays.
    let with = "tfrc:rfc=5348,fixed:rate=300kbit/s";
    let out = run(&["compare", &file, "--with", with, "-q", "--out", dir.join("two").to_str().unwrap()]);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let said = text(&out.stdout);
    assert!(said.contains("with fixed:rate=300kbit/s") && said.contains("end to end p95 ms"), "{said}");
}

#[test]
fn a_path_that_the_relay_cannot_apply_is_refused_with_what_to_do() {
    let cell = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/wlan-cell.toml");
    let out = run(&["relay", cell, "--listen", "0", "--to", "127.0.0.1:9"]);
    assert_eq!(out.status.code(), Some(3));
    let expected = "error: `wireless.plan` is given, and here no base station tells senders their windows\n\n\
         hint: `fairpace cell` is the base station of real senders; or leave `plan` out\n";
    assert_eq!(text(&out.stderr), expected);
}

#[test]
fn the_same_seed_gives_the_same_json_on_one_thread_and_on_two() {
    let (dir, file) = scenario("same", GOOD);
    let json = |jobs: &str, out: &str| {
        let out =
            run(&["run", &file, "--json", "-q", "--seeds", "3", "-j", jobs, "--out", dir.join(out).to_str().unwrap()]);
        assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
        text(&out.stdout)
    };
    let (one, two) = (json("1", "a"), json("2", "b"));
    assert_eq!(one, two);
    let value: serde_json::Value = serde_json::from_str(&one).unwrap();
    assert_eq!(value["runs"].as_array().unwrap().len(), 3);
    assert!(!one.contains("NaN"));
    assert_eq!(std::fs::read(dir.join("a/series.csv")).unwrap(), std::fs::read(dir.join("b/series.csv")).unwrap());
}

#[test]
fn a_run_leaves_a_folder_whose_report_can_be_built_again() {
    let (dir, file) = scenario("folder", GOOD);
    let (out, pcap) = (dir.join("out"), dir.join("x.pcapng"));
    let ran = run(&["run", &file, "--out", out.to_str().unwrap(), "--pcap", pcap.to_str().unwrap()]);
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran.stderr));
    assert!(text(&ran.stdout).contains("rcs") && text(&ran.stdout).contains("tcp-newreno"));
    for name in
        ["manifest.json", "scenario.toml", "summary.json", "flows.csv", "series.csv", "links.csv", "report.html"]
    {
        assert!(out.join(name).exists(), "{name}");
    }
    // A pcapng file begins with a section header block.
    assert_eq!(std::fs::read(&pcap).unwrap()[..4], [0x0a, 0x0d, 0x0d, 0x0a]);
    let page = std::fs::read_to_string(out.join("report.html")).unwrap();
    std::fs::remove_file(out.join("report.html")).unwrap();
    assert_eq!(run(&["report", out.to_str().unwrap()]).status.code(), Some(0));
    assert_eq!(std::fs::read_to_string(out.join("report.html")).unwrap(), page);
}

#[test]
fn a_comparison_takes_each_controller_over_the_same_path() {
    let (dir, file) = scenario("compare", GOOD);
    let out = dir.join("out");
    let ran =
        run(&["compare", &file, "--with", "rcs,rap:fine_grain=on,fixed", "--json", "--out", out.to_str().unwrap()]);
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran.stderr));
    let value: serde_json::Value = serde_json::from_slice(&ran.stdout).unwrap();
    let names: Vec<_> = value["runs"].as_array().unwrap().iter().map(|r| r["with"].as_str().unwrap()).collect();
    assert_eq!(names, ["rcs", "rap:fine_grain=on", "fixed"]);
    assert!(out.join("rap-fine_grain-on/flows.csv").exists());
    assert_eq!(run(&["report", out.to_str().unwrap()]).status.code(), Some(0));
    let wrong = run(&["compare", &file, "--with", "rcs,rpa"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(
        text(&wrong.stderr).contains("`rpa`") && text(&wrong.stderr).contains("did you mean `rap`?"),
        "{}",
        text(&wrong.stderr)
    );
}

#[test]
fn a_capture_that_cannot_be_written_is_a_usage_error_before_the_run() {
    let (_, file) = scenario("nopcap", GOOD);
    let out = run(&["run", &file, "--pcap", "/nonexistent/x.pcapng"]);
    let said = text(&out.stderr);
    assert_eq!((out.status.code(), text(&out.stdout).as_str()), (Some(2), ""), "{said}");
    assert!(said.starts_with("error: cannot write `/nonexistent/x.pcapng`"), "{said}");
}

#[test]
fn two_seeds_and_the_file_of_one_run_do_not_go_together() {
    let (_, file) = scenario("pcap", GOOD);
    for option in ["--pcap", "--series"] {
        let out = run(&["run", &file, "--seeds", "2", option, "x"]);
        let said = format!(
            "error: `{option}` writes one run, and `--seeds` asks for several\n\nhint: leave one of them out\n"
        );
        assert_eq!((out.status.code(), text(&out.stderr)), (Some(2), said));
    }
    let out = run(&["run", &file, "--world", "emu", "--series", "x"]);
    let said = text(&out.stderr);
    assert_eq!(out.status.code(), Some(2), "{said}");
    assert!(said.starts_with("error: `--series` is for simulations, and `--world` is `emu`\n\nhint: "), "{said}");
}

#[test]
fn series_in_a_file_of_their_own_are_those_of_the_folder_which_has_none_then() {
    let (dir, file) = scenario("series", GOOD);
    let (usual, apart, rows) = (dir.join("usual"), dir.join("apart"), dir.join("rows.csv"));
    let path = |p: &std::path::Path| p.to_str().unwrap().to_owned();
    for args in [
        vec!["run", &file, "--out", &path(&usual)],
        vec!["run", &file, "--out", &path(&apart), "--series", &path(&rows)],
        vec!["report", &path(&apart)],
    ] {
        let ran = run(&args);
        assert_eq!(ran.status.code(), Some(0), "{args:?}: {}", text(&ran.stderr));
    }
    let read = |p: &std::path::Path| std::fs::read_to_string(p).unwrap();
    assert!(read(&rows) == read(&usual.join("series.csv")));
    assert_eq!(read(&apart.join("series.csv")).lines().count(), 1, "the head");
    for same in ["flows.csv", "links.csv", "link_series.csv", "events.csv", "summary.json"] {
        assert!(read(&apart.join(same)) == read(&usual.join(same)), "{same}");
    }
}

#[test]
fn outputs_that_would_be_written_over_each_other_are_refused_before_anything_runs() {
    let (dir, file) = scenario("meeting", GOOD);
    let path = |name: &str| dir.join(name).to_str().unwrap().to_owned();
    let (out, rows, other) = (path("out"), path("rows.csv"), path("other.csv"));
    let refused = |args: &[&str], said: &str| {
        let ran = run(args);
        let found = text(&ran.stderr);
        assert_eq!(ran.status.code(), Some(2), "{args:?}: {found}");
        assert!(found.contains(said) && found.contains("hint: "), "{args:?}: {found}");
    };
    refused(&["run", &file, "--out", &out, "--pcap", &rows, "--series", &rows], "name the same file");
    assert!(!dir.join("rows.csv").exists() && !dir.join("out").exists());
    assert_eq!(run(&["run", &file, "--out", &out]).status.code(), Some(0));
    let series = || std::fs::read(dir.join("out/series.csv")).unwrap();
    let before = series();
    for (option, name) in [("--series", "out/series.csv"), ("--pcap", "out/flows.csv")] {
        refused(&["run", &file, "--out", &out, option, &path(name), "--force"], "is in the folder of the results");
    }
    refused(&["run", &file, "--out", &out, "--series", &rows], "has the rows of series already");
    assert!(series() == before && !dir.join("rows.csv").exists());
    assert_eq!(run(&["run", &file, "--out", &out, "--series", &other, "--force"]).status.code(), Some(0));
    assert!(std::fs::read(&other).unwrap() == before);
}

#[test]
fn an_interrupted_run_keeps_what_it_has_and_says_so() {
    // An hour of a hundred flows takes far longer than the second after which it is interrupted.
    let body = GOOD
        .replace("\"10 s\"", "\"24 h\"")
        .replace("controller = \"rcs\"", "controller = \"rcs\"\ncount = 50")
        .replace("warmup = \"2 s\"", "warmup = \"0 s\"\nsample = \"10 s\"");
    let (dir, file) = scenario("interrupted", &body);
    let out = dir.join("out");
    let child = command(&["run", &file, "--out", out.to_str().unwrap()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The file is made when signals are heard.
    while !out.join("seeds.jsonl").exists() {
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_millis(1000));
    let pid = i32::try_from(child.id()).unwrap();
    assert!(Command::new("kill").args(["-INT", &pid.to_string()]).status().unwrap().success());
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(130), "{}", text(&ended.stderr));
    assert!(text(&ended.stderr).contains("interrupted"), "{}", text(&ended.stderr));
    let summary: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(out.join("summary.json")).unwrap()).unwrap();
    assert_eq!(summary["interrupted"], true);
    assert!(std::fs::read_to_string(out.join("report.html")).unwrap().contains("interrupted"));
}

#[test]
fn reproduce_without_a_name_runs_nothing_and_tells_the_names() {
    let out = run(&["reproduce"]);
    assert_eq!(out.status.code(), Some(2));
    let said = text(&out.stderr);
    for name in ["rcs", "lossy", "tpba", "viewers", "`all`", "`fairpace list experiments`"] {
        assert!(said.contains(name), "{name}: {said}");
    }
}

#[test]
fn reproduce_refuses_what_is_no_experiment_before_it_runs_anything() {
    let out = run(&["reproduce", "rcs.fig99"]);
    assert_eq!(out.status.code(), Some(2));
    assert!(
        text(&out.stderr).starts_with("error: `rcs.fig99` is not an experiment\n\nhint: "),
        "{}",
        text(&out.stderr)
    );
}

#[test]
fn readings_that_cannot_be_run_are_refused_by_name_before_anything_is_made() {
    let out = folder("readings-refused").join("out");
    for (experiment, flags, wanted) in [
        (
            "rcs.fig16",
            &["--reading", "in-flight-deliverd"][..],
            &[
                "error: `in-flight-deliverd` is not a reading of `rcs.fig16`",
                "did you mean `in-flight-delivered`? `fairpace list experiments` shows all",
            ][..],
        ),
        (
            "rcs",
            &["--reading", "in-flight-deliverd"],
            &["is not a reading of any of these experiments", "did you mean `in-flight-delivered`?"],
        ),
        (
            "rcs.fig22a-b",
            &["--reading", "cold-100s+cold-300s"],
            &[
                "error: the readings `cold-100s` and `cold-300s` of `rcs.fig22a-b` contradict each other",
                "name one of them, or each in a `--reading` of its own",
            ],
        ),
        // A set counts as its members.
        (
            "rcs.fig22a-b",
            &["--reading", "cold-100s-t-b-none+cold-300s"],
            &["the readings `cold-100s` and `cold-300s` of `rcs.fig22a-b` contradict each other"],
        ),
        (
            "rcs.fig16",
            &["--readings", "all", "--quick"],
            &["error: `--quick` runs the default readings only", "leave `--readings all` out"],
        ),
        ("tpba.table3", &["--readings", "all", "--world", "emu"], &["error: `--reading` is for the simulator only"]),
    ] {
        let args = [&["reproduce", experiment, "--out", out.to_str().unwrap()], flags].concat();
        let refused = run(&args);
        let said = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{args:?}: {said}");
        assert!(wanted.iter().all(|words| said.contains(words)), "{args:?}: {said}");
        assert!(!out.exists(), "{args:?}");
    }
}

#[test]
fn each_point_and_claim_says_its_reading_and_a_quick_run_has_the_default_alone() {
    let out = folder("readings-json");
    let reproduce = |flags: &[&str], name: &str| {
        let dir = out.join(name);
        let args = [&["reproduce", "rcs.fig16", "--json", "--out", dir.to_str().unwrap()], flags].concat();
        let done = run(&args);
        assert_eq!(done.status.code(), Some(0), "{args:?}: {}", text(&done.stderr));
        let found: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
        let readings = |part: &str| {
            let of = |x: &serde_json::Value| x["reading"].as_str().unwrap().to_owned();
            let mut all: Vec<String> = found[part].as_array().unwrap().iter().map(of).collect();
            all.dedup();
            all
        };
        (found["reading"].clone(), readings("points"), readings("claims"), dir.join("readings.md"))
    };
    let both = ["default", "in-flight-delivered"].map(str::to_owned).to_vec();
    let (counts, points, claims, page) = reproduce(&["--readings", "all"], "all");
    assert_eq!((counts.as_str(), &points, &claims), (Some("default"), &both, &both));
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("| claim | default | in-flight-delivered |\n"), "{page}");
    let (counts, points, claims, page) = reproduce(&["--quick"], "quick");
    assert_eq!((counts.as_str(), points, claims), (Some("default"), both[..1].to_vec(), both[..1].to_vec()));
    assert!(!page.exists(), "one reading needs no table");
    let (counts, points, ..) = reproduce(&["--quick", "--reading", "in-flight-delivered"], "named");
    assert_eq!((counts.as_str(), points), (Some("in-flight-delivered"), both[1..].to_vec()));
}

#[test]
fn reproducing_several_experiments_ends_with_the_share_of_each() {
    let out = folder("shares");
    let done = run(&["reproduce", "rcs.fig12", "rcs.fig16", "--out", out.to_str().unwrap()]);
    let said = text(&done.stderr);
    let (_, shares) = said.split_once("time of each experiment:\n").unwrap_or_else(|| panic!("{said}"));
    let percent = |line: &str| line.split_once('%').and_then(|(number, _)| number.trim().parse::<f64>().ok());
    let each: Vec<f64> = shares.lines().map_while(percent).collect();
    assert_eq!(each.len(), 2, "{said}");
    assert!((each.iter().sum::<f64>() - 100.0).abs() < 0.2, "{said}");
    assert!(shares.contains("rcs.fig12") && shares.contains("rcs.fig16"), "{said}");
}

#[test]
fn reproduce_killed_in_the_middle_goes_on_from_its_points_and_ends_as_if_nothing_had_happened() {
    let (whole, cut) = (folder("reproduce-whole"), folder("reproduce-killed"));
    let reproduce = |out: &PathBuf| {
        command(&["reproduce", "qsd.appendix", "--quick", "--jobs", "1", "--out", out.to_str().unwrap()])
    };
    let found = |out: &PathBuf| std::fs::read(out.join("experiments.jsonl")).unwrap();
    let points = |out: &PathBuf| std::fs::read_to_string(out.join("points.jsonl")).unwrap_or_default();
    assert!(reproduce(&whole).output().unwrap().status.success());
    // Four ways, 19 phases of each.
    let all = points(&whole).lines().count();
    assert_eq!(all, 4 * 19);

    let mut child = reproduce(&cut).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while points(&cut).lines().count() < 5 {
        std::thread::sleep(Duration::from_millis(5));
    }
    // On Unix this is SIGKILL.
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!cut.join("experiments.jsonl").exists(), "it was killed before its end");
    let kept = points(&cut).matches('\n').count();
    assert!((5..all).contains(&kept), "{kept}");
    // The remains of a kill in the middle of a write.
    let mut text = points(&cut);
    text.push_str("{\"version\":\"0.1.0");
    std::fs::write(cut.join("points.jsonl"), text).unwrap();

    let again = reproduce(&cut).output().unwrap();
    assert!(again.status.success(), "{}", text_of(&again));
    assert_eq!(found(&cut), found(&whole));
    let account = text_of(&again);
    assert!(account.contains(&format!("{kept} taken from an earlier run")), "{account}");
    assert!(account.contains(&format!("{all} simulations")), "{account}");
    for name in ["page.json", "report.html"] {
        assert!(std::fs::read(cut.join(name)).unwrap() == std::fs::read(whole.join(name)).unwrap(), "{name} differs");
    }
    // No point was measured twice, and none was lost.
    let mut keys: Vec<String> = points(&cut)
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .map(|point| format!("{} {}", point["digest"], point["seed"]))
        .collect();
    keys.sort();
    keys.dedup();
    assert_eq!((keys.len(), points(&cut).lines().count()), (all, all + 1), "one line is torn");
}

/// Ten seeds of a simulation that takes a moment.
const SEVERAL: &[&str] = &["--seeds", "10", "--jobs", "1", "--out"];

#[test]
fn seeds_that_are_finished_outlive_a_kill_and_the_same_command_goes_on() {
    let (dir, file) = scenario("seeds-killed", &GOOD.replace("\"10 s\"", "\"200 s\""));
    let (whole, cut) = (dir.join("whole"), dir.join("cut"));
    let started = |out: &PathBuf| {
        let mut run = command(&[&["run", &file], SEVERAL, &[out.to_str().unwrap()]].concat());
        run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let kept = || std::fs::read_to_string(cut.join("seeds.jsonl")).map_or(0, |text| text.matches('\n').count());
    let first = started(&whole).wait_with_output().unwrap();
    assert_eq!(first.status.code(), Some(0), "{}", text_of(&first));
    for kill in 1..=3 {
        let before = kept();
        let mut child = started(&cut);
        while kept() <= before {
            assert!(child.try_wait().unwrap().is_none(), "it ended before kill {kill}");
            std::thread::sleep(Duration::from_millis(2));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let manifest = std::fs::read(cut.join("manifest.json")).unwrap();
        let manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
        assert_eq!(manifest["complete"], false);
    }
    let left = kept();
    assert!((3..10).contains(&left), "{left}");
    // As a kill within a write leaves it.
    std::fs::write(cut.join(".fairpace-unfinished-x1y2z3"), "half a tab").unwrap();
    let again = started(&cut).wait_with_output().unwrap();
    assert_eq!(again.status.code(), Some(0), "{}", text_of(&again));
    assert!(text_of(&again).contains(&format!("{left} taken from an earlier run")), "{}", text_of(&again));
    assert_eq!(again.stdout, first.stdout);
    for name in ["summary.json", "flows.csv", "series.csv", "links.csv", "events.csv", "report.html"] {
        assert!(std::fs::read(cut.join(name)).unwrap() == std::fs::read(whole.join(name)).unwrap(), "{name} differs");
    }
    assert_eq!(kept(), 10, "no seed was run twice");
    let names = |dir: &PathBuf| -> std::collections::BTreeSet<_> {
        std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name()).collect()
    };
    assert_eq!(names(&cut), names(&whole));
}

#[test]
fn on_a_full_disk_it_ends_at_once_and_goes_on_when_there_is_room() {
    let (dir, file) = scenario("full-disk", &GOOD.replace("\"10 s\"", "\"60 s\""));
    let disk = dir.join("disk");
    std::fs::create_dir(&disk).unwrap();
    let program = env!("CARGO_BIN_EXE_fairpace");
    // In a mount namespace of its own; the page of the second run says how many seeds were there.
    let script = "
        mount -t tmpfs -o size=$1 tmpfs \"$2\" || exit 77
        shift 2
        \"$@\" > /dev/null; echo \"first: $?\" >&2
        mount -o remount,size=64m tmpfs \"$DISK\"
        \"$@\" > /dev/null; echo \"second: $?\" >&2";
    let results = disk.join("results");
    for (name, size, args) in [
        ("run", "300k", vec!["run", &file, "--seeds", "10", "--jobs", "1"]),
        ("reproduce", "4k", vec!["reproduce", "qsd.appendix", "--quick", "--jobs", "1"]),
    ] {
        let mut shell = Command::new("unshare");
        shell.args(["--user", "--map-root-user", "--mount", "sh", "-c", script, "sh", size]).arg(&disk).arg(program);
        shell.args(&args).args(["--out", results.to_str().unwrap()]).env("DISK", &disk).env("NO_COLOR", "1");
        let out = shell.output().unwrap();
        let said = text_of(&out);
        if out.status.code() == Some(77) || said.contains("Operation not permitted") {
            return println!("skipped: nobody may mount here: {said}");
        }
        let (first, second) = said.split_once("first: ").unwrap();
        assert!(second.starts_with("1\n"), "{name}: {said}");
        assert!(first.contains("No space left on device") && first.contains("make room"), "{name}: {said}");
        assert!(second.contains("taken from an earlier run") && second.contains("second: 0"), "{name}: {said}");
    }
}

#[test]
fn a_folder_with_other_results_is_refused_before_anything_is_run() {
    let (dir, file) = scenario("occupied", GOOD);
    let other = dir.join("other.toml");
    std::fs::write(&other, GOOD.replace("\"10 s\"", "\"11 s\"")).unwrap();
    let other = other.to_str().unwrap();
    let (ran, compared, points) = (dir.join("ran"), dir.join("compared"), dir.join("points"));
    let (ran, compared, points) = (ran.to_str().unwrap(), compared.to_str().unwrap(), points.to_str().unwrap());
    let foreign = dir.join("foreign");
    std::fs::create_dir(&foreign).unwrap();
    std::fs::write(foreign.join("thesis.txt"), "years").unwrap();
    let foreign = foreign.to_str().unwrap();
    let reproduce = ["reproduce", "qsd.appendix", "--quick", "--out"];
    for made in [
        [&["run", &file, "--out"][..], &[ran]].concat(),
        [&["compare", &file, "--with", "rcs,fixed", "--out"][..], &[compared]].concat(),
        [&reproduce[..], &[points]].concat(),
    ] {
        let first = run(&made);
        assert_eq!(first.status.code(), Some(0), "{made:?}: {}", text(&first.stderr));
        // The same again takes what is there.
        let again = run(&made);
        assert_eq!(again.status.code(), Some(0), "{made:?}: {}", text(&again.stderr));
        assert_eq!(again.stdout, first.stdout);
        assert!(text(&again.stderr).contains("taken from an earlier run"), "{made:?}: {}", text(&again.stderr));
    }
    for (args, holds) in [
        (vec!["run", other, "--out", ran], "holds results of another scenario"),
        (vec!["compare", other, "--with", "rcs,fixed", "--out", compared], "holds results of another scenario"),
        (vec!["compare", &file, "--with", "rcs", "--out", compared], "holds other things than this comparison"),
        (vec!["compare", &file, "--with", "rcs,rcs", "--out", compared], "names one controller twice"),
        (vec!["run", &file, "--out", foreign], "holds other things than results"),
        (vec!["compare", &file, "--with", "rcs", "--out", foreign], "holds other things than this comparison"),
        (vec!["reproduce", "qsd.appendix", "--quick", "--out", foreign], "holds other things than points"),
        (vec!["reproduce", "rcs.fig12", "--quick", "--out", points], "the claims of \"qsd.appendix\""),
        (vec!["demo", "model", "--seconds", "3s", "--out", foreign], "is not empty"),
        (vec!["run", &file, "--pcap", other, "--out", ran], "exists already"),
    ] {
        let out = run(&args);
        let said = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains(holds) && said.contains("hint: "), "{args:?}: {said}");
        assert!(said.contains("--force") || holds.contains("twice"), "{args:?}: {said}");
    }
    assert_eq!(std::fs::read_dir(foreign).unwrap().count(), 1, "nothing was added");
    // By force it is another run's folder.
    let forced = run(&["run", other, "--force", "--out", ran]);
    assert_eq!(forced.status.code(), Some(0), "{}", text(&forced.stderr));
    assert!(!text(&forced.stderr).contains("taken from"), "{}", text(&forced.stderr));
}

#[test]
fn results_do_not_follow_links_out_of_their_folder() {
    let (dir, file) = scenario("links", GOOD);
    let secret = dir.join("secret");
    std::fs::write(&secret, "somebody's").unwrap();
    let out = dir.join("out");
    for name in ["seeds.jsonl", "summary.json", "manifest.json", "report.html"] {
        let _ = std::fs::remove_dir_all(&out);
        std::fs::create_dir(&out).unwrap();
        std::os::unix::fs::symlink(&secret, out.join(name)).unwrap();
        let _ = run(&["run", &file, "--force", "--out", out.to_str().unwrap()]);
        assert_eq!(std::fs::read_to_string(&secret).unwrap(), "somebody's", "{name}");
    }
}

/// Everything that was said to people.
fn text_of(out: &Output) -> String {
    text(&out.stderr)
}

#[test]
fn as_much_as_the_paper_is_no_number_of_seeds() {
    let out = run(&["reproduce", "rcs.fig12", "--full", "--seeds", "3"]);
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).contains("`--full` cannot be used with `--seeds`"), "{}", text(&out.stderr));
}

#[test]
fn a_folder_without_results_has_no_report() {
    let dir = folder("nothing");
    let out = run(&["report", dir.to_str().unwrap()]);
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).contains("holds no results"), "{}", text(&out.stderr));
}
