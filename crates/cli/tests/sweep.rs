//! `fairpace sweep`: the same bytes whatever the threads and shards, what is refused and how, failed points, a full disk, real time.

#![allow(clippy::disallowed_methods, reason = "the test waits until another run in real time is over")]

mod common {
    #[allow(dead_code, reason = "each test file uses its part")]
    pub(crate) mod program;
    pub(crate) mod turn;
}

use common::program::{command, text};
use common::turn::wait_for;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Output;

const SCENARIO: &str = "\
duration = \"4 s\"
[path]
rate = \"1 Mbit/s\"
rtt = \"60 ms\"
queue = { kind = \"drop-tail\", capacity = \"10 pkt\" }
loss = { kind = \"random\", p = 0.01 }
[[flows]]
name = \"video\"
controller = \"rap\"
";

/// A folder with the scenario in it.
fn folder(name: &str) -> (PathBuf, String) {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("sweep").join(name);
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    let file = dir.join("base.toml");
    std::fs::write(&file, SCENARIO).unwrap();
    let file = file.to_str().unwrap().to_owned();
    (dir, file)
}

/// Three loss rates, two rates, two controllers; three seeds.
const VARY: [&str; 8] = [
    "--vary",
    "path.loss.p=0.001..0.1/log3",
    "--vary",
    "path.rate=500kbit/s,1Mbit/s",
    "--vary",
    "flow.video.controller=rap,tfrc",
    "--seeds",
    "3",
];

fn sweep(file: &str, out: &Path, more: &[&str]) -> Output {
    command(&[&["sweep", file, "--out", out.to_str().unwrap()], more].concat()).output().unwrap()
}

#[track_caller]
fn ended(output: &Output, code: i32) -> (String, String) {
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{err}");
    (out, err)
}

/// All files but those that name a time, by their names.
fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    fn walk(root: &Path, at: &Path, found: &mut BTreeMap<String, Vec<u8>>) {
        for entry in std::fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            if path.is_dir() {
                walk(root, &path, found);
            } else if name != "manifest.json" && !name.starts_with(".shard") {
                found.insert(name, std::fs::read(&path).unwrap());
            }
        }
    }
    let mut found = BTreeMap::new();
    walk(dir, dir, &mut found);
    found
}

#[test]
fn threads_and_shards_change_no_byte_of_any_file_and_another_run_repeats_nothing() {
    let (dir, file) = folder("same");
    let one = dir.join("one");
    let (out, _) = ended(&sweep(&file, &one, &[&VARY[..], &["--jobs", "1"]].concat()), 0);
    assert!(out.contains("video: goodput (kbit/s)") && out.contains("… and 2 more\n"), "{out}");
    let expected = files(&one);
    for name in ["groups.csv", "links.csv", "report.html", "sweep.json", "scenario.toml"] {
        assert!(expected.contains_key(name), "{name}");
    }
    let parquet: Vec<&String> = expected.keys().filter(|name| name.ends_with(".parquet")).collect();
    let controllers = ["rap", "tfrc"].map(|c| format!("groups/flow.video.controller={c}/part-0.parquet"));
    assert!(controllers.iter().all(|c| parquet.contains(&c)) && parquet.len() == 4, "{parquet:?}");
    // 12 points, 3 seeds, one group.
    let csv = String::from_utf8(expected["groups.csv"].clone()).unwrap();
    assert_eq!(csv.lines().count(), 1 + 36);
    assert!(
        csv.starts_with("point,path.loss.p,path.rate_bps,flow.video.controller,seed,group,flows,throughput_bps,"),
        "{csv}"
    );
    let page = String::from_utf8(expected["report.html"].clone()).unwrap();
    for part in ["Best settings", "class=\"heat\"", "Over path.loss.p", "not told apart"] {
        assert!(page.contains(part), "{part}");
    }
    let (_, said) = ended(&sweep(&file, &one, &VARY), 0);
    assert!(said.contains("12 taken from an earlier run") && files(&one) == expected, "{said}");
    for jobs in ["2", "8"] {
        let many = dir.join(format!("jobs-{jobs}"));
        ended(&sweep(&file, &many, &[&VARY[..], &["--jobs", jobs]].concat()), 0);
        assert!(files(&many) == expected, "{jobs} threads");
    }
    let shared = dir.join("shards");
    let (_, said) = ended(&sweep(&file, &shared, &[&VARY[..], &["--shard", "2/2"]].concat()), 0);
    assert!(said.contains("6 of 12 points are finished") && !shared.join("report.html").exists(), "{said}");
    ended(&sweep(&file, &shared, &[&VARY[..], &["--shard", "1/2"]].concat()), 0);
    assert!(files(&shared) == expected, "two shards");
    // The report again, from what is there.
    std::fs::remove_file(shared.join("report.html")).unwrap();
    std::fs::remove_dir_all(shared.join("groups")).unwrap();
    ended(&command(&["report", shared.to_str().unwrap()]).output().unwrap(), 0);
    assert!(files(&shared) == expected, "the report again");
}

#[test]
fn what_is_wrong_is_refused_before_anything_is_written_with_the_nearest_right_one() {
    let (dir, file) = folder("refused");
    for (args, code, message, hint) in [
        (
            &["--vary", "path.los.p=0.1"][..],
            3,
            "with path.los.p=0.1: base: `path.los` is not a field",
            "did you mean `loss`?",
        ),
        (
            &["--vary", "path.loss.p=0.1,2"],
            3,
            "with path.loss.p=2: base: `path.loss.p` is `2`, which is not a probability",
            "write a number from 0 to 1",
        ),
        (
            &["--vary", "path.rate=1Mbit/s..9Mbit/s/3", "--vary", "flow.video.controller=rsc"],
            3,
            "with path.rate=1 Mbit/s flow.video.controller=rsc: base: `flow.video.controller` is `rsc`, which is not a controller",
            "did you mean `rcs`?",
        ),
        (
            &["--vary", "flow.vidoe.start=1s"],
            3,
            "with flow.vidoe.start=1s: base: `flow.vidoe.start` is `vidoe`, which is not a flow of the scenario",
            "did you mean `video`?",
        ),
        (&["--vary", "path.loss.p="], 2, "`path.loss.p=` has no value", "write values"),
        (
            &["--vary", "path.loss.p=0..1"],
            2,
            "`path.loss.p=0..1` is a range without a number of values",
            "write how many",
        ),
        (
            &["--vary", "path.loss.p=0.1", "--metric", "video.godput_bps"],
            2,
            "`video.godput_bps` is not a metric of this sweep",
            "did you mean `video.goodput_bps`?",
        ),
        (
            &["--vary", "path.loss.p=0.1", "--max-seeds", "9"],
            2,
            "`--ci-width <WIDTH>` is missing",
            "usage: fairpace sweep",
        ),
        (&["--vary", "path.loss.p=0.1", "--ci-width", "5%"], 2, "`--ci-width` needs `--metric`", "name the number"),
        (
            &["--vary", "path.loss.p=0.1", "--metric", "goodput_bps", "--ci-width", "0%"],
            2,
            "`0%` is no width of an interval",
            "write a share",
        ),
        (&["--vary", "path.loss.p=0.1", "--shard", "3/2"], 2, "`3/2` is no shard", "write which one"),
        (
            &["--vary", "path.loss.p=0.1", "--design", "latin"],
            2,
            "a Latin hypercube needs `--points`",
            "write `--points 100`",
        ),
        (
            &["--vary", "path.rtt=0 s", "--vary", "flow.video.controller=tcp-cubic"],
            3,
            "with path.rtt=0 s flow.video.controller=tcp-cubic: ",
            "",
        ),
        (&[], 2, "`--vary <FIELD=VALUES>` is missing", ""),
    ] {
        let out = dir.join("results");
        let (shown, said) = ended(&sweep(&file, &out, args), code);
        assert!(said.starts_with(&format!("error: {message}")), "{args:?}: {said}");
        assert!(said.contains(&format!("\n\nhint: {hint}")), "{args:?}: {said}");
        assert!(shown.is_empty() && !out.exists(), "{args:?}");
    }
}

#[test]
fn a_folder_of_another_scenario_or_program_or_of_something_else_is_refused() {
    let (dir, file) = folder("occupied");
    let out = dir.join("results");
    let one = ["--vary", "path.loss.p=0.01,0.02", "--seeds", "1"];
    ended(&sweep(&file, &out, &one), 0);
    let before = files(&out);
    std::fs::write(&file, SCENARIO.replace("4 s", "5 s")).unwrap();
    let (_, said) = ended(&sweep(&file, &out, &one), 2);
    assert!(said.contains("holds a sweep of another scenario: it has `duration = \"4 s\"` where this has `duration = \"5 s\"`\n\nhint: name"), "{said}");
    std::fs::write(&file, SCENARIO).unwrap();
    let about = String::from_utf8(before["sweep.json"].clone()).unwrap();
    let other = about.replacen(", program ", ", program 00", 1);
    assert_ne!(about, other);
    std::fs::write(out.join("sweep.json"), &other).unwrap();
    let (_, said) = ended(&sweep(&file, &out, &one), 2);
    assert!(said.contains("holds a sweep of another version of the program: `") && said.contains("--force"), "{said}");
    std::fs::write(out.join("sweep.json"), &about).unwrap();
    assert!(files(&out) == before);
    let (_, said) = ended(&sweep(&file, &dir, &one), 2);
    assert!(said.contains("holds other things than a sweep"), "{said}");
    let (_, said) = ended(&sweep(&file, &dir, &[&one[..], &["--force"]].concat()), 2);
    assert!(said.contains("never replaced, nor by force"), "{said}");
}

#[test]
fn a_failed_point_is_listed_with_the_command_that_repeats_it_and_run_again_when_asked() {
    // Names that a shell would take apart, and a recording beside the scenario.
    let (dir, file) = folder("the failed point's");
    std::fs::write(&file, SCENARIO.replace("rate = \"1 Mbit/s\"", "trace = { file = \"link.mahimahi\" }")).unwrap();
    let every_12_ms: String = (1..=500).map(|i| format!("{}\n", i * 12)).collect();
    std::fs::write(dir.join("link.mahimahi"), every_12_ms).unwrap();
    let out = dir.join("results");
    let args = ["--vary", "path.loss.p=0.01,0.02", "--seeds", "2"];
    ended(&sweep(&file, &out, &args), 0);
    let expected = files(&out);
    // One batch as a run that failed would have left it.
    let (name, bytes) = expected.iter().find(|(name, _)| name.starts_with("batches/")).unwrap();
    let body = String::from_utf8(bytes.clone()).unwrap().lines().nth(1).unwrap().to_owned();
    let (head, _) = body.split_once(",\"runs\":").unwrap();
    let body = format!("{head},\"runs\":[],\"failed\":{{\"seed\":1,\"reason\":\"a part, \\\"b\\\", broke\"}}}}");
    let sum: String = Sha256::digest(body.as_bytes()).iter().map(|b| format!("{b:02x}")).collect();
    std::fs::write(out.join(name), format!("{{\"sha256\":\"{sum}\"}}\n{body}\n")).unwrap();
    let named_from_here = [&["sweep", &file, "--out", "results"], &args[..]].concat();
    let (_, said) = ended(&command(&named_from_here).current_dir(&dir).output().unwrap(), 1);
    assert!(said.contains("error: 1 of 2 points came to nothing; the first, path.loss.p=0.0"), "{said}");
    assert!(said.contains("a part, \"b\", broke\n\nhint: ") && said.contains("--retry"), "{said}");
    let list = std::fs::read_to_string(out.join("failed.csv")).unwrap();
    let row = list.lines().nth(1).unwrap();
    assert!(row.contains(",1,\"a part, \"\"b\"\", broke\",\"fairpace run "), "{row}");
    // The command that is listed runs, from anywhere.
    let listed = row.rsplit_once(",\"").unwrap().1.strip_suffix('"').unwrap().replace("\"\"", "\"");
    let listed = listed.strip_prefix("fairpace ").unwrap();
    let shell = format!("'{}' {listed} --out again", env!("CARGO_BIN_EXE_fairpace"));
    let elsewhere = dir.join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let again = std::process::Command::new("sh").args(["-c", &shell]).current_dir(&elsewhere).output().unwrap();
    ended(&again, 0);
    assert!(std::fs::read_to_string(out.join("report.html")).unwrap().contains("Points that came to nothing"));
    let (_, said) = ended(&sweep(&file, &out, &[&args[..], &["--retry"]].concat()), 0);
    assert!(said.contains("1 that came to nothing, run again") && files(&out) == expected, "{said}");
}

#[test]
fn the_metric_of_a_sweep_ranks_in_a_later_report_too() {
    let (dir, file) = folder("metric");
    let out = dir.join("results");
    let args = ["--vary", "path.rate=500kbit/s,1Mbit/s", "--seeds", "1"];
    let report = || std::fs::read_to_string(out.join("report.html")).unwrap();
    ended(&sweep(&file, &out, &[&args[..], &["--metric", "bottleneck.utilization"]].concat()), 0);
    let first = report();
    assert!(first.contains("bottleneck: utilization") && !first.contains("video: goodput"));
    ended(&command(&["report", out.to_str().unwrap()]).output().unwrap(), 0);
    assert!(report() == first);
    // Another metric is no other sweep.
    let (_, said) = ended(&sweep(&file, &out, &args), 0);
    assert!(said.contains("2 taken from an earlier run") && report().contains("video: goodput"), "{said}");
}

#[test]
fn an_interval_that_stayed_too_wide_and_a_metric_without_numbers_are_told() {
    let (dir, file) = folder("told");
    let out = dir.join("results");
    let args = ["--vary", "path.rate=500kbit/s,1Mbit/s", "--seeds", "2"];
    let narrow = ["--metric", "video.throughput_bps", "--ci-width", "0.0001%", "--max-seeds", "3"];
    let (_, said) = ended(&sweep(&file, &out, &[&args[..], &narrow].concat()), 0);
    assert!(
        said.contains(
            "2 of 2 points have an interval wider than 0.0001% with 3 seeds, the first with path.rate=500kbit/s"
        ),
        "{said}"
    );
    let report = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(report.contains("the interval of 2 of 2 points is wider than was asked for"));
    let (_, said) = ended(&sweep(&file, &out, &[&args[..], &["--metric", "video.outage"]].concat()), 0);
    assert!(said.contains("no point has a number for `video.outage`; there are `video.flows`, "), "{said}");
}

/// A disk of 256 KiB, in a namespace of its own; then of 16 MiB.
#[test]
fn a_full_disk_loses_no_finished_batch_and_with_room_the_sweep_goes_on() {
    let (dir, file) = folder("full");
    let (disk, program) = (dir.join("disk"), env!("CARGO_BIN_EXE_fairpace"));
    std::fs::create_dir_all(&disk).unwrap();
    let sweep =
        format!("{program} sweep {file} --vary path.loss.p=0..0.5/200 --seeds 1 --quiet --out {0}/r", disk.display());
    let script = format!(
        "mount -t tmpfs -o size=256k tmpfs {0} || exit 77\n{sweep} 2>&1; echo code $?\n\
         echo kept $(find {0}/r/batches -name '[0-9a-f]*.json' | wc -l)\n\
         mount -o remount,size=16m {0}\n{sweep} 2>&1; echo code $?\n\
         echo kept $(find {0}/r/batches -name '[0-9a-f]*.json' | wc -l)\n",
        disk.display()
    );
    let unshare = std::process::Command::new("unshare").args(["-rm", "sh", "-c", &script]).output();
    let output = match unshare {
        Ok(output) if output.status.code() == Some(0) => output,
        other => return println!("skipped: no namespaces: {other:?}"),
    };
    let said = text(&output.stdout);
    assert!(said.contains("cannot be written: ") && said.contains("hint: the disk is full"), "{said}");
    assert!(said.contains("code 1\n"), "{said}");
    let kept: Vec<usize> = said.lines().filter_map(|l| l.strip_prefix("kept ")?.parse().ok()).collect();
    assert!(kept[0] > 0 && kept[0] < 200 && kept[1] == 200, "{said}");
    assert!(said.trim_end().ends_with("code 0\nkept 200"), "{said}");
}

#[test]
fn what_has_no_effect_and_what_the_emulator_has_not_is_refused_and_equal_points_are_told() {
    let (dir, file) = folder("without effect");
    let out = dir.join("results");
    let two = ["--vary", "flow.video.controller=rap,tfrc", "--seeds", "1"];
    for (more, words) in [
        (&["--design-seed", "3"][..], "`--design-seed` is for random designs"),
        (
            &["--metric", "video.goodput_bps", "--ci-width", "5%", "--seeds", "4", "--max-seeds", "3"],
            "is less than the 4",
        ),
        (&["--vary", "flow.video.count=1,9000", "--world", "emu"], "flow.video.count=9000: "),
    ] {
        let args = if more.contains(&"--seeds") { [&two[..2], more].concat() } else { [&two[..], more].concat() };
        let (_, said) = ended(&sweep(&file, &out, &args), 2);
        assert!(said.contains(words) && !out.exists(), "{said}");
    }
    let (_, said) = ended(&sweep(&file, &out, &[&two[..], &["--design", "random", "--points", "30"]].concat()), 0);
    assert!(said.contains("note: 2 of the 30 points are different"), "{said}");
    // More seeds than `--max-seeds` allows where it is not given.
    let narrow = ["--metric", "video.goodput_bps", "--ci-width", "99%", "--seeds", "60", "--batch", "60", "--force"];
    let (_, said) = ended(&sweep(&file, &out, &[&two[..2], &narrow].concat()), 0);
    // Not a terminal: a line for each tenth of the batches, with the time that is left.
    assert!(said.contains("2 of 2 batches, about 0 s left"), "{said}");
}

#[test]
fn in_real_time_each_batch_is_a_process_and_the_numbers_are_the_kernels() {
    let (dir, file) = folder("real");
    std::fs::write(&file, SCENARIO.replace("4 s", "1 s").replace("\"rap\"", "\"tcp-sack\"")).unwrap();
    let out = dir.join("results");
    let args = ["--vary", "path.rate=1Mbit/s,2Mbit/s", "--seeds", "1", "--world", "emu"];
    let output = wait_for(|| sweep(&file, &out, &args));
    let (_, said) = (text(&output.stdout), text(&output.stderr));
    if output.status.code() == Some(4) || said.contains("privilege") || said.contains("namespace") {
        return println!("skipped: {said}");
    }
    assert_eq!(output.status.code(), Some(0), "{said}");
    let csv = std::fs::read_to_string(out.join("groups.csv")).unwrap();
    let rows: Vec<Vec<&str>> = csv.lines().map(|l| l.split(',').collect()).collect();
    assert_eq!(rows[0].last(), Some(&"invalid"));
    let place = rows[0].iter().position(|n| *n == "goodput_bps").unwrap();
    let goodput: Vec<f64> = rows[1..].iter().map(|r| r[place].parse().unwrap()).collect();
    assert!(goodput.len() == 2 && goodput.iter().all(|g| *g > 0.0), "{csv}");
    // A batch that is there is not run again, although real time repeats nothing.
    let before = files(&out);
    ended(&wait_for(|| sweep(&file, &out, &args)), 0);
    assert!(files(&out) == before);
}

#[test]
fn values_whose_text_is_longer_than_a_name_of_a_file_are_in_columns_and_make_no_folders() {
    let (dir, file) = folder("long");
    let out = dir.join("results");
    let gaps: Vec<String> = (1..9).map(|s| format!("{{start=\"{s}00 ms\",length=\"50 ms\"}}")).collect();
    let long = format!("path.outages=[],[{}]", gaps.join(","));
    let args = ["--vary", &long, "--vary", "flow.video.controller=rap,tfrc", "--seeds", "1"];
    ended(&sweep(&file, &out, &args), 0);
    let there = files(&out);
    assert!(there.contains_key("report.html") && there.contains_key("links.csv"), "{:?}", there.keys());
    let parquet: Vec<&String> = there.keys().filter(|name| name.starts_with("groups/")).collect();
    assert_eq!(
        parquet,
        ["groups/flow.video.controller=rap/part-0.parquet", "groups/flow.video.controller=tfrc/part-0.parquet"]
    );
    let head = std::fs::read_to_string(out.join("groups.csv")).unwrap().lines().next().unwrap().to_owned();
    assert!(head.contains(",path.outages,"), "{head}");
}

#[test]
fn a_sweep_in_real_time_waits_for_no_other_run_and_says_which_has_the_machine() {
    if !nix::unistd::geteuid().is_root() {
        return println!("skipped: a network namespace of one's own needs root");
    }
    let (dir, file) = folder("taken");
    let out = dir.join("results");
    // The lock is that of its network namespace: nobody else's run is in this one.
    let lock = "lock=/run/fairpace-real-time-$(stat -Lc %i /proc/self/ns/net).lock
                flock \"$lock\" \"$@\"; code=$?; rm -f \"$lock\"; exit $code";
    let words = ["--vary", "path.rate=1Mbit/s,2Mbit/s", "--seeds", "1", "--world", "emu"];
    let output = std::process::Command::new("unshare")
        .args(["--net", "--", "sh", "-c", lock, "sh", env!("CARGO_BIN_EXE_fairpace"), "sweep", &file, "--out"])
        .arg(&out)
        .args(words)
        .output()
        .unwrap();
    let (_, said) = ended(&output, 9);
    assert!(said.contains("another run in real time is under way"), "{said}");
    // Nothing was measured, and the folder is there for the next try.
    assert!(!out.join("groups.csv").exists() && files(&out).keys().all(|name| !name.contains("batches/")));
}
