//! `fairpace run --world emu` and `compare-worlds`: real packets through namespaces of their own, for a few seconds.
//! Facts, not speeds: the machine may be busy. Where the system allows no namespaces a test says so and ends.

#![allow(clippy::disallowed_methods, reason = "the test waits until another run in real time is over")]

use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

const PRIVILEGE: i32 = 4;
const BUSY: i32 = 9;

fn folder(name: &str) -> PathBuf {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("emu").join(name);
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

fn once(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fairpace"));
    command.args(args).env("NO_COLOR", "1").stdin(Stdio::null()).current_dir(env!("CARGO_TARGET_TMPDIR"));
    command.output().unwrap()
}

/// Runs the scenario; waits while another run in real time has the machine. `None` where the system allows none.
fn real(command: &str, name: &str, body: &str, more: &[&str]) -> Option<(PathBuf, Output)> {
    let dir = folder(name);
    let file = dir.join("s.toml");
    std::fs::write(&file, body).unwrap();
    let out = dir.join("results");
    let args = [&[command, file.to_str().unwrap(), "--out", out.to_str().unwrap()], more].concat();
    for _ in 0..300 {
        let output = once(&args);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        match output.status.code() {
            Some(BUSY) => std::thread::sleep(Duration::from_secs(1)),
            Some(PRIVILEGE) => {
                println!("skipped: {said}");
                return None;
            }
            code => {
                assert_eq!(code, Some(0), "{said}");
                return Some((out, output));
            }
        }
    }
    panic!("another run in real time has had the machine for five minutes");
}

fn read(path: PathBuf) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn the_kernels_tcp_fills_a_scenarios_link_and_is_reported_as_the_simulators() {
    let body = "\
duration = \"5 s\"
warmup = \"1 s\"
[path]
rate = \"2 Mbit/s\"
rtt = \"40 ms\"
queue = { kind = \"drop-tail\", capacity = \"20 pkt\" }
[[flows]]
controller = \"tcp-reno\"
[[flows]]
controller = \"tcp-cubic\"
";
    let Some((dir, _)) = real("run", "tcp", body, &["--world", "emu"]) else { return };
    let summary = read(dir.join("summary.json"));
    assert_eq!(summary["world"], "emu");
    let algorithms = &summary["emulated"]["algorithms"];
    assert_eq!((&algorithms["tcp-reno"], &algorithms["tcp-cubic"]), (&"reno".into(), &"cubic".into()));
    let mut all = 0.0;
    for flow in summary["flows"].as_array().unwrap() {
        let (sent, received) = (number(&flow["sent_packets"]), number(&flow["received_packets"]));
        assert!(received > 0.0 && sent > 0.0, "{flow}");
        assert!(number(&flow["owd_ms"]["p50"]) >= 20.0, "no packet is earlier than the path's delay: {flow}");
        assert!(number(&flow["tcp"]["mean_cwnd_packets"]) >= 1.0, "{flow}");
        all += number(&flow["throughput_bps"]);
    }
    assert!(all <= 2.1e6, "the link carries no more than it can: {all}");
    let manifest = read(dir.join("manifest.json"));
    assert_eq!(manifest["world"], "emu");
    assert_eq!(manifest["emulated"][0]["sysctls"]["net.ipv4.tcp_timestamps"], "0");
    let series = std::fs::read_to_string(dir.join("series.csv")).unwrap();
    assert!(series.lines().count() > 10 && series.contains("congestion-avoidance"), "{series}");
    assert!(dir.join("report.html").exists());
}

#[test]
fn media_flows_are_the_drivers_of_the_wire_with_real_priorities() {
    let body = "\
duration = \"6 s\"
feedback = \"20 ms\"
[path]
rate = \"2 Mbit/s\"
rtt = \"40 ms\"
queue = { kind = \"two-priority\", capacity = \"20 pkt\" }
[[flows]]
name = \"video\"
controller = \"rcs\"
parameters = { s_target = \"1 Mbit/s\" }
[[flows]]
name = \"background\"
controller = \"constant\"
class = \"low\"
rate = \"200 kbit/s\"
";
    let Some((dir, _)) = real("run", "media", body, &["--world", "emu"]) else { return };
    let summary = read(dir.join("summary.json"));
    let flow = |name: &str| {
        let flows = summary["flows"].as_array().unwrap();
        flows.iter().find(|f| f["name"] == name).cloned().unwrap()
    };
    let video = flow("video");
    assert!(number(&video["received_packets"]) > 0.0 && number(&video["acknowledged_packets"]) > 0.0, "{video}");
    assert!(number(&video["dummies_packets"]) > 0.0, "RCS begins with dummies: {video}");
    assert!(video["e2e_ms"].is_null() && number(&video["owd_ms"]["p50"]) >= 20.0, "{video}");
    let background = flow("background");
    assert_eq!(number(&background["dummies_packets"]), 0.0, "low priority alone makes no dummy: {background}");
    assert!(number(&background["received_packets"]) > 0.0, "{background}");
    let events = std::fs::read_to_string(dir.join("events.csv")).unwrap();
    assert!(events.contains("video,state"), "what the controller did is told: {events}");
}

/// [T22]: set up with rights over namespaces of our own, then run without any, on every thread.
#[test]
fn no_thread_has_a_privilege_while_packets_move() {
    let body = "\
duration = \"6 s\"
[path]
rate = \"1 Mbit/s\"
rtt = \"20 ms\"
[[flows]]
name = \"tcp\"
controller = \"tcp-sack\"
[[flows]]
name = \"video\"
controller = \"rap\"
[[flows]]
name = \"cbr\"
controller = \"constant\"
rate = \"100 kbit/s\"
";
    let (dir, waiting) = (folder("rights"), std::time::Instant::now());
    let file = dir.join("s.toml");
    std::fs::write(&file, body).unwrap();
    let results = dir.join("results");
    let args = ["run", file.to_str().unwrap(), "--world", "emu", "--out", results.to_str().unwrap()];
    while waiting.elapsed() < Duration::from_secs(300) {
        let mut child = Command::new(env!("CARGO_BIN_EXE_fairpace"))
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (mut none, mut last) = (false, String::new());
        while child.try_wait().unwrap().is_none() {
            let tasks = std::fs::read_dir(format!("/proc/{}/task", child.id())).unwrap();
            let about: Vec<String> = tasks
                .filter_map(|t| std::fs::read_to_string(t.ok()?.path().join("status")).ok())
                .map(|s| s.lines().filter(|l| l.starts_with("Name:") || l.starts_with("CapEff:")).collect())
                .collect();
            let running = about.iter().any(|t| t.contains("emulator"));
            none |= running && about.iter().all(|t| t.ends_with("CapEff:\t0000000000000000"));
            last = if running { about.join("\n") } else { last };
            std::thread::sleep(Duration::from_millis(20));
        }
        match child.wait().unwrap().code() {
            Some(BUSY) => std::thread::sleep(Duration::from_secs(1)),
            Some(PRIVILEGE) => return println!("skipped: no namespaces here"),
            code => return assert_eq!((code, none), (Some(0), true), "{last}"),
        }
    }
    panic!("another run in real time has had the machine for five minutes");
}

/// Root in namespaces of our own may not write where another user may: known before the run, not after it.
#[test]
fn a_folder_that_cannot_be_written_is_refused_before_the_run() {
    let dir = folder("others");
    let file = dir.join("s.toml");
    std::fs::write(&file, "duration = \"1000 s\"\n[path]\nrate = \"1 Mbit/s\"\n[[flows]]\ncontroller = \"tcp-reno\"\n")
        .unwrap();
    let others = dir.join("others");
    std::fs::create_dir(&others).unwrap();
    if std::os::unix::fs::chown(&others, Some(1_000), Some(1_000)).is_err() {
        return println!("skipped: only root can give a folder away");
    }
    for command in [&["run", "--world", "emu"][..], &["compare-worlds"]] {
        let (out, file) = (others.join("results/deep"), file.to_str().unwrap());
        let output = once(&[command, &[file, "--out", out.to_str().unwrap()]].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        match output.status.code() {
            Some(PRIVILEGE | BUSY) => println!("skipped: {said}"),
            code => {
                assert_eq!(code, Some(2), "{said}");
                assert!(said.contains("cannot write") && said.contains("--out"), "{said}");
            }
        }
    }
}

#[test]
fn both_worlds_are_laid_over_each_other() {
    let body = "\
duration = \"3 s\"
[path]
rate = \"1 Mbit/s\"
rtt = \"20 ms\"
queue = { kind = \"drop-tail\", capacity = \"10 pkt\" }
[[flows]]
name = \"tcp\"
controller = \"tcp-sack\"
";
    let Some((dir, output)) = real("compare-worlds", "worlds", body, &["--json"]) else { return };
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    let throughput = &said["differences"][0];
    assert_eq!((&throughput["group"], &throughput["metric"]), (&"tcp".into(), &"throughput_bps".into()));
    let [sim, emu] = ["sim", "emu"].map(|world| number(&throughput[world]["mean"]));
    assert!(sim > 0.0 && emu > 0.0 && sim <= 1.1e6 && emu <= 1.1e6);
    assert!((number(&throughput["difference"]) - (emu - sim)).abs() < 1.0);
    assert_eq!(read(dir.join("worlds.json"))["scenario"], "s");
    let page = std::fs::read_to_string(dir.join("report.html")).unwrap();
    assert!(page.contains("sim, emu") && page.contains("late by p50"), "the page says how well the emulator kept up");
    assert!(dir.join("sim/series.csv").exists() && dir.join("emu/series.csv").exists());
}

#[test]
fn what_only_one_world_has_is_refused_by_the_other() {
    let dir = folder("refused");
    let file = dir.join("s.toml");
    let out = dir.join("results");
    let refused = |body: &str, world: &str, code: i32, wanted: &str| {
        std::fs::write(&file, body).unwrap();
        let args = ["run", file.to_str().unwrap(), "--world", world, "--out", out.to_str().unwrap()];
        let output = once(&args);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if matches!(output.status.code(), Some(PRIVILEGE | BUSY)) {
            println!("skipped: {said}");
            return;
        }
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains(wanted), "{said}");
    };
    let path = "[path]\nrate = \"1 Mbit/s\"\nrtt = \"20 ms\"\n[[flows]]\n";
    refused(&format!("{path}controller = \"tcp-bbr\"\n"), "sim", 3, "--world emu");
    refused(&format!("{path}controller = \"rcs\"\npacket_size = \"2000 B\"\n"), "emu", 2, "65 B to 1500 B");
}
