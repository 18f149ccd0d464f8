//! `fairpace run --world emu` and `compare-worlds`: real packets through namespaces of their own, for a few seconds.
//! Facts, not speeds: the machine may be busy. Where the system allows no namespaces a test says so and ends.

#![allow(clippy::disallowed_methods, reason = "the test waits until another run in real time is over")]

mod common {
    #[allow(dead_code, reason = "each test file uses its part")]
    pub(crate) mod capture;
    pub(crate) mod turn;
}

use common::capture::{PACKET, STATISTICS, blocks};
use common::turn::{BUSY, wait_for};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const PRIVILEGE: i32 = 4;

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
    let args = [&[command, file.to_str().unwrap(), "--force", "--out", out.to_str().unwrap()], more].concat();
    let output = wait_for(|| once(&args));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.code() == Some(PRIVILEGE) {
        println!("skipped: {said}");
        return None;
    }
    assert_eq!(output.status.code(), Some(0), "{said}");
    Some((out, output))
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

/// Two hops one behind the other: the kernel's CUBIC crosses both, its Reno the first, and a call by transport-wide
/// feedback the second.
#[test]
fn a_path_of_two_hops_carries_the_kernels_tcp_and_media_each_where_it_enters_and_leaves() {
    let link = |rate: &str, rtt: &str| {
        format!(
            "link = {{ rate = \"{rate}\", rtt = \"{rtt}\", queue = {{ kind = \"drop-tail\", capacity = \"20 pkt\" }} }}"
        )
    };
    let (first, second) = (link("2 Mbit/s", "40 ms"), link("1 Mbit/s", "20 ms"));
    let body = format!(
        "\
duration = \"6 s\"
warmup = \"2 s\"
[[hop]]
name = \"first\"
{first}
[[hop]]
name = \"second\"
{second}
[[flows]]
name = \"long\"
controller = \"tcp-cubic\"
[[flows]]
name = \"short\"
controller = \"tcp-reno\"
leave = \"first\"
[[flows]]
name = \"call\"
controller = \"rap\"
enter = \"second\"
feedback = \"twcc 20 ms\"
source = {{ kind = \"constant\", rate = \"200 kbit/s\" }}
"
    );
    let Some((dir, _)) = real("run", "hops", &body, &["--world", "emu"]) else { return };
    let summary = read(dir.join("summary.json"));
    let algorithms = &summary["emulated"]["algorithms"];
    assert_eq!((&algorithms["long"], &algorithms["short"]), (&"cubic".into(), &"reno".into()));
    assert_eq!(number(&summary["emulated"]["unknown_packets"]), 0.0);
    let flow = |name: &str| {
        let flows = summary["flows"].as_array().unwrap();
        flows.iter().find(|f| f["name"] == name).cloned().unwrap()
    };
    // 20 ms of the first hop's propagation, 10 ms of the second's: nobody is earlier than the hops on the way.
    let (long, short, call) = (flow("long"), flow("short"), flow("call"));
    for (flow, least) in [(&long, 30.0), (&short, 20.0), (&call, 10.0)] {
        assert!(number(&flow["received_packets"]) > 0.0 && number(&flow["owd_ms"]["p50"]) >= least, "{flow}");
    }
    // The second hop is the narrower one, and has the call as well; the first gives the short flow the rest.
    let rate = |flow: &Value| number(&flow["throughput_bps"]);
    assert!(rate(&long) + rate(&call) <= 1.05e6, "{long} {call}");
    assert!(rate(&short) + rate(&long) <= 2.1e6 && rate(&short) > 0.3e6, "{short} {long}");
    assert!(number(&call["acknowledged_packets"]) > 20.0, "{call}");
    let links = std::fs::read_to_string(dir.join("links.csv")).unwrap();
    assert!(links.contains("first") && links.contains("second"), "each hop is counted: {links}");
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
    let series = std::fs::read_to_string(dir.join("series.csv")).unwrap();
    let rto = series.lines().next().unwrap().split(',').position(|c| c == "rto_ms").unwrap();
    let rtos =
        series.lines().filter(|l| l.contains(",video,")).filter_map(|l| l.split(',').nth(rto)?.parse::<f64>().ok());
    assert!(rtos.clone().count() > 10 && rtos.clone().all(|ms| ms >= 40.0), "{series}");
    let emulated = &summary["emulated"];
    assert!(number(&emulated["unread_p50_ms"]) <= number(&emulated["unread_max_ms"]), "{emulated}");
    let events = std::fs::read_to_string(dir.join("events.csv")).unwrap();
    assert!(events.contains("video,state"), "what the controller did is told: {events}");
}

/// A thread's name and number, and whether it has no capability in any set, and no program can give it one.
fn thread(status: &str) -> (String, String, bool) {
    let field = |name: &str| status.lines().find_map(|l| l.strip_prefix(name)).unwrap_or_default().trim().to_owned();
    let sets = ["CapEff:", "CapPrm:", "CapInh:", "CapAmb:", "CapBnd:"];
    let none = sets.iter().all(|set| field(set).bytes().all(|b| b == b'0'));
    (field("Name:"), field("Pid:"), none && field("NoNewPrivs:") == "1")
}

/// [T22]: all seeds are set up with rights over namespaces of our own, then all are run without any, on every thread.
#[test]
fn no_thread_has_a_privilege_while_packets_move() {
    let body = "\
duration = \"3 s\"
[path]
rate = \"1 Mbit/s\"
rtt = \"20 ms\"
[[flows]]
name = \"tcp\"
controller = \"tcp-sack\"
[[flows]]
name = \"tpba\"
controller = \"tpba\"
[[flows]]
name = \"cbr\"
controller = \"constant\"
rate = \"100 kbit/s\"
";
    let (dir, waiting) = (folder("rights"), std::time::Instant::now());
    let file = dir.join("s.toml");
    std::fs::write(&file, body).unwrap();
    let results = dir.join("results");
    let args = [
        "run",
        file.to_str().unwrap(),
        "--world",
        "emu",
        "--seeds",
        "2",
        "--force",
        "--out",
        results.to_str().unwrap(),
    ];
    while waiting.elapsed() < Duration::from_secs(300) {
        let mut child = Command::new(env!("CARGO_BIN_EXE_fairpace"))
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut loops = BTreeSet::new();
        while child.try_wait().unwrap().is_none() {
            let tasks = std::fs::read_dir(format!("/proc/{}/task", child.id())).unwrap();
            let statuses = tasks.filter_map(|t| std::fs::read_to_string(t.ok()?.path().join("status")).ok());
            let threads: Vec<_> = statuses.map(|s| thread(&s)).collect();
            let moving: Vec<_> = threads.iter().filter(|(name, ..)| name == "emulator").collect();
            assert!(moving.is_empty() || threads.iter().all(|(.., none)| *none), "{threads:?}");
            loops.extend(moving.into_iter().map(|(_, number, _)| number.clone()));
            std::thread::sleep(Duration::from_millis(20));
        }
        match child.wait().unwrap().code() {
            Some(BUSY) => std::thread::sleep(Duration::from_secs(1)),
            Some(PRIVILEGE) => return println!("skipped: no namespaces here"),
            code => return assert_eq!((code, loops.len()), (Some(0), 2), "both seeds were seen at it"),
        }
    }
    panic!("another run in real time has had the machine for five minutes");
}

/// Lengths, first bytes and next headers (of IPv6) of the packets in a pcapng file.
fn packets(file: &[u8]) -> Vec<(u32, u8, u8)> {
    let word = |at: usize| file.get(at..at + 4).map(|b| u32::from_le_bytes(b.try_into().unwrap()));
    let (mut at, mut all) = (0, Vec::new());
    while let (Some(kind), Some(length)) = (word(at), word(at + 4)) {
        // An enhanced packet block: interface, time (two words), kept, original length, bytes.
        if kind == 6 {
            all.push((word(at + 24).unwrap(), file[at + 28], file[at + 28 + 6]));
        }
        at += length as usize;
    }
    all
}

#[test]
fn a_scenario_runs_over_ipv6_with_packets_of_its_size() {
    let body = "\
duration = \"5 s\"
packet_size = \"800 B\"
[path]
rate = \"2 Mbit/s\"
rtt = \"40 ms\"
[[flows]]
controller = \"tcp-sack\"
[[flows]]
controller = \"rap\"
[[flows]]
controller = \"tpba\"
[[flows]]
controller = \"constant\"
rate = \"100 kbit/s\"
";
    let capture = folder("six-pcap").join("x.pcapng");
    let more = ["--world", "emu", "--ipv6", "--pcap", capture.to_str().unwrap()];
    let Some((dir, _)) = real("run", "six", body, &more) else { return };
    let summary = read(dir.join("summary.json"));
    assert_eq!(summary["emulated"]["unknown_packets"], 0, "{summary}");
    for flow in summary["flows"].as_array().unwrap() {
        assert!(number(&flow["received_packets"]) > 5.0, "{flow}");
    }
    let packets = packets(&std::fs::read(capture).unwrap());
    assert!(packets.iter().all(|(_, first, _)| first >> 4 == 6), "IPv6 only");
    // The answer to a packet that came after its receiver had gone holds that packet, behind 48 bytes of headers.
    let icmp = |next: u8| next == 58;
    assert_eq!(
        packets.iter().filter(|(_, _, next)| !icmp(*next)).map(|(length, ..)| *length).max(),
        Some(800),
        "full packets are as long as they should be"
    );
}

#[test]
fn the_capture_of_a_run_in_real_time_that_is_killed_holds_all_but_the_last_second() {
    let dir = folder("killed");
    let (file, capture, out) = (dir.join("s.toml"), dir.join("x.pcapng"), dir.join("results"));
    let body = "duration = \"60 s\"\n[path]\nrate = \"1 Mbit/s\"\nrtt = \"40 ms\"\n[[flows]]\ncontroller = \"constant\"\nrate = \"400 kbit/s\"\n";
    std::fs::write(&file, body).unwrap();
    let [file, pcap, out] = [&file, &capture, &out].map(|p| p.to_str().unwrap());
    let until = Instant::now() + Duration::from_secs(300);
    loop {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fairpace"));
        command.args(["run", file, "--world", "emu", "--quiet", "--out", out, "--pcap", pcap]);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let begun = Instant::now();
        let ended = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            if blocks(&capture, PACKET) >= 20 || begun.elapsed() > Duration::from_secs(60) {
                let before = blocks(&capture, PACKET);
                std::thread::sleep(Duration::from_secs(2));
                child.kill().unwrap();
                child.wait().unwrap();
                // Fifty packets a second or so, each sent and received; two seconds have gone by, of which the last may be lost.
                let after = blocks(&capture, PACKET);
                assert!(before >= 20 && after >= before + 40, "{before} packets, {after} two seconds later");
                assert_eq!(blocks(&capture, STATISTICS), 0, "a capture without statistics was cut off");
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        };
        match ended.code() {
            Some(BUSY) if Instant::now() < until => std::thread::sleep(Duration::from_millis(200)),
            Some(PRIVILEGE) => return println!("skipped: no namespaces here"),
            code => panic!("it ended with {code:?}"),
        }
    }
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
fn more_runs_than_this_process_may_have_files_for_are_refused_with_the_remedy() {
    let dir = folder("files");
    let file = dir.join("s.toml");
    std::fs::write(&file, "duration = \"1 s\"\n[path]\nrate = \"1 Mbit/s\"\n[[flows]]\ncontroller = \"rap\"\n")
        .unwrap();
    let limited = || {
        let mut shell = Command::new("sh");
        shell.args(["-c", "ulimit -n 200; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_fairpace"), "run"]).arg(&file);
        shell.args(["--world", "emu", "--seeds", "20", "--force", "--out"]).arg(dir.join("results"));
        shell.stdin(Stdio::null()).output().unwrap()
    };
    let output = wait_for(limited);
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(PRIVILEGE) {
        return println!("skipped: {said}");
    }
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("`runs` is 20") && said.contains("fewer experiments or seeds per command"), "{said}");
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
        let args = ["run", file.to_str().unwrap(), "--world", world, "--force", "--out", out.to_str().unwrap()];
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
    let file = file.to_str().unwrap();
    for (args, wanted) in [(["--world", "emu", "--jobs=2"], "`--jobs`"), (["--world", "sim", "--ipv6"], "--world emu")]
    {
        let output = once(&[&["run", file], &args[..]].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && said.contains(wanted) && said.contains("hint: "), "{said}");
    }
}
