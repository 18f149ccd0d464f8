//! Recordings stay: killed processes leave files that can be read, and nothing that is there is written over.

#![allow(clippy::disallowed_methods, reason = "the test itself waits, and measures what a user would")]

mod common {
    #[allow(dead_code, reason = "each test file uses its part")]
    pub(crate) mod capture;
    pub(crate) mod program;
    pub(crate) mod turn;
    #[allow(dead_code, reason = "each test file uses its part")]
    pub(crate) mod wire;
}

use common::capture::{PACKET, STATISTICS, blocks};
use common::program::{command, folder, text};
use common::turn::wait_for;
use common::wire::{json, listening, listening_with_messages};
use fairpace_media::IvfReader;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// A path where nothing is.
fn fresh(name: &str) -> PathBuf {
    let path = folder("kept").join(name);
    let _ = std::fs::remove_file(&path);
    path
}

fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// The pictures in a recording, and the time of the last one.
fn pictures(recording: &Path) -> (usize, Duration) {
    let bytes = std::fs::read(recording).unwrap();
    let Ok(mut reader) = IvfReader::new(&bytes[..], "recording") else { return (0, Duration::ZERO) };
    let (mut count, mut last) = (0, Duration::ZERO);
    // A torn last frame ends it.
    while let Ok(Some(frame)) = reader.next_frame() {
        (count, last) = (count + 1, Duration::from_nanos(frame.time.as_nanos() as u64));
    }
    (count, last)
}

/// Whether the recording says that its end is missing.
fn is_cut_off(recording: &Path) -> bool {
    IvfReader::new(&std::fs::read(recording).unwrap()[..], "recording").unwrap().is_cut_off()
}

#[test]
fn a_killed_receiver_and_a_killed_relay_leave_all_but_the_last_second() {
    for round in 0..3_u32 {
        let (recording, capture, stats) = (fresh("killed.ivf"), fresh("killed.pcapng"), fresh("killed.jsonl"));
        let link = fresh("link.toml");
        std::fs::write(&link, "duration = \"60 s\"\n[path]\nrate = \"4 Mbit/s\"\nrtt = \"40 ms\"\n").unwrap();
        let path = |p: &Path| p.to_str().unwrap().to_owned();
        let (receiver, port) = listening(&["receive", "0", "-4", "--out", &path(&recording), "--stats", &path(&stats)]);
        let to = format!("127.0.0.1:{port}");
        let relay_args = ["relay", &path(&link), "--listen", "0", "--to", &to, "-4", "--pcap", &path(&capture)];
        let (relay, entrance) = listening(&relay_args.map(str::to_owned).each_ref().map(String::as_str));
        let mut sender = command(&["send", "model", &format!("127.0.0.1:{entrance}"), "--max-rate", "1 Mbit/s"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // From the first line of statistics on it has run for a second.
        let began = Instant::now();
        while std::fs::read_to_string(&stats).is_ok_and(|text| text.lines().count() < 2) {
            assert!(began.elapsed() < Duration::from_secs(30), "nothing is received");
            std::thread::sleep(Duration::from_millis(20));
        }
        let (before, carried) = (pictures(&recording), blocks(&capture, PACKET));
        std::thread::sleep(Duration::from_millis(2_000 + 170 * u64::from(round)));
        kill(receiver);
        kill(relay);
        sender.kill().unwrap();
        sender.wait().unwrap();
        let (after, carried_after) = (pictures(&recording), blocks(&capture, PACKET));
        // Two seconds have gone by, of which the last may be lost; the play-out holds back half a second of the first.
        let gained = after.1.saturating_sub(before.1);
        assert!(after.0 > before.0 && gained >= Duration::from_millis(900), "{before:?}, {after:?}");
        assert!(is_cut_off(&recording), "nothing says that the recording's end is missing");
        assert_eq!(blocks(&capture, STATISTICS), 0, "a capture without statistics was cut off");
        assert!(carried_after >= carried + 50, "{carried} packets, {carried_after} after two seconds more");
        for line in std::fs::read_to_string(&stats).unwrap().lines() {
            assert!(serde_json::from_str::<serde_json::Value>(line).is_ok(), "{line}");
        }
        // Whoever sends it is told.
        let mut sender = command(&["send", &path(&recording), "127.0.0.1:9"]).stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(sender.stderr.take().unwrap()).lines().map_while(Result::ok);
        assert!(said.any(|line| line.contains("the recording was cut off")));
        kill(sender);
    }
}

#[test]
fn a_full_disk_is_called_that() {
    let out = command(&["receive", "0", "--out", "/dev/full"]).output().unwrap();
    let said = text(&out.stderr);
    assert_eq!(out.status.code(), Some(1), "{said}");
    assert!(said.contains("`/dev/full`: cannot write: ") && said.contains("hint: the disk is full"), "{said}");
}

/// A disk of 16 KiB that has no room left, in a mount namespace of its own.
#[test]
fn files_that_are_written_whole_find_the_disk_full_too() {
    let dir = folder("kept").join("full");
    let _ = std::fs::remove_dir_all(&dir);
    let disk = dir.join("disk");
    std::fs::create_dir_all(&disk).unwrap();
    let scenario = dir.join("s.toml");
    let link = "duration = \"2 s\"\n[path]\nrate = \"1 Mbit/s\"\nrtt = \"40 ms\"\n[[flows]]\ncontroller = \"rap\"\n";
    std::fs::write(&scenario, link).unwrap();
    let path = |p: PathBuf| p.to_str().unwrap().to_owned();
    let (scenario, results, others) = (path(scenario), path(dir.join("results")), path(dir.join("others")));
    let file = |name: &str| path(disk.join(name));
    let (pcap, sdp, offer, page) = (file("x.pcapng"), file("x.sdp"), file("o.sdp"), file("x.html"));
    let series = file("x.csv");
    let script = "
        mount -t tmpfs -o size=16k tmpfs \"$1\" || exit 77
        head -c 16k /dev/zero > \"$1/filler\"
        shift
        \"$@\" > /dev/null";
    for (args, code) in [
        (vec!["run", &scenario, "--quiet", "--out", &results], 0),
        (vec!["run", &scenario, "--quiet", "--out", &results, "--pcap", &pcap], 1),
        (vec!["run", &scenario, "--quiet", "--out", &others, "--series", &series], 1),
        (vec!["report", &results, "--out", &page], 1),
        (vec!["receive", "0", "-4", "--forward", "127.0.0.1:9", "--sdp", &sdp], 1),
        (vec!["receive", "0", "-4", "--feedback-form", "rtp-tfrc", "--offer", &offer], 1),
    ] {
        let mut shell = std::process::Command::new("unshare");
        shell.args(["--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"]).arg(&disk);
        let ran = shell.arg(env!("CARGO_BIN_EXE_fairpace")).args(&args).env("NO_COLOR", "1").output().unwrap();
        let said = text(&ran.stderr);
        if ran.status.code() == Some(77) || said.contains("Operation not permitted") || said.starts_with("unshare:") {
            return println!("skipped: nobody may mount here: {said}");
        }
        assert_eq!(ran.status.code(), Some(code), "{args:?}: {said}");
        let is_told = said.contains("No space left on device") && said.contains("hint: the disk is full");
        assert_eq!(is_told, code == 1, "{args:?}: {said}");
    }
}

#[test]
fn statistics_that_find_the_disk_full_end_no_stream_and_are_told_at_its_end() {
    let full = ["--json", "--stats", "/dev/full", "--force"];
    let (receiver, port, said) = listening_with_messages(&[&["receive", "0", "-4"][..], &full].concat());
    let to = format!("127.0.0.1:{port}");
    let sent = command(&[&["send", "model", &to, "--seconds", "3s"][..], &full].concat()).output().unwrap();
    let received = receiver.wait_with_output().unwrap();
    for (said, out, packets) in [
        (text(&sent.stderr), &sent, "/data/sent_packets"),
        (said.join().unwrap(), &received, "/media/received_packets"),
    ] {
        assert_eq!(out.status.code(), Some(1), "{said}");
        assert_eq!(said.matches("no more lines to `/dev/full`").count(), 1, "{said}");
        assert!(said.contains("cannot write all lines of `/dev/full`") && said.contains("the disk is full"), "{said}");
        let record = json(out);
        assert!(record.pointer(packets).and_then(serde_json::Value::as_u64) > Some(20), "{record}");
    }
}

#[test]
fn nothing_that_is_there_is_written_over() {
    let kept = fresh("kept.ivf");
    std::fs::write(&kept, "an hour of video").unwrap();
    let path = kept.to_str().unwrap();
    let link = fresh("kept.toml");
    std::fs::write(&link, "duration = \"60 s\"\n[path]\nrate = \"4 Mbit/s\"\nrtt = \"40 ms\"\n").unwrap();
    let commands: [&[&str]; 5] = [
        &["receive", "0", "--out", path],
        &["receive", "0", "--stats", path],
        &["receive", "0", "--forward", "127.0.0.1:9", "--sdp", path],
        &["relay", link.to_str().unwrap(), "--listen", "0", "--to", "127.0.0.1:9", "--pcap", path],
        &["send", "model", "127.0.0.1:9", "--stats", path],
    ];
    for args in commands {
        let out = wait_for(|| command(args).output().unwrap());
        let said = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains("exists already") && said.contains("--force"), "{args:?}: {said}");
        assert_eq!(std::fs::read_to_string(&kept).unwrap(), "an hour of video", "{args:?}");
    }
}
