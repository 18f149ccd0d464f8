//! A receiver that serves one sender, or one after the other, and what senders are told that are not let in.

#![allow(clippy::disallowed_methods, reason = "the test itself waits, and measures what a user would")]

mod common {
    pub(crate) mod program;
    pub(crate) mod wire;
}

use common::program::{command, folder, text};
use common::wire::{json, listening, listening_with_messages};
use serde_json::Value;
use std::io::{BufRead as _, BufReader};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// An empty folder of that test.
fn fresh(name: &str) -> PathBuf {
    let dir = folder("sessions").join(name);
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

/// A sender of that many seconds, once the receiver has answered it.
fn sender(port: u16, seconds: &str) -> Child {
    sender_with(port, seconds, &[])
}

fn sender_with(port: u16, seconds: &str, more: &[&str]) -> Child {
    let to = format!("127.0.0.1:{port}");
    let mut child = asking(&to, &[&["--seconds", seconds, "--json"], more].concat());
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("the receiver answers")));
    child
}

fn asking(to: &str, more: &[&str]) -> Child {
    let mut send = command(&["send", "model", to, "--max-rate", "500 kbit/s"]);
    send.args(more).stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
}

fn interrupt(child: &Child) {
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
}

fn lines(output: &Output) -> Vec<Value> {
    text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Whether it is a recording with pictures, whose end is there.
fn is_recording(path: &Path) -> bool {
    let bytes = std::fs::read(path).unwrap();
    bytes.len() > 100 && bytes.starts_with(b"DKIF") && bytes[28..32] == [0; 4]
}

#[test]
fn who_waits_for_a_receiver_of_one_session_is_told_when_that_is_over_and_nothing_is_mixed() {
    let (receiver, port) = listening(&["receive", "0", "--json"]);
    let first = sender(port, "3s");
    let second = asking(&format!("127.0.0.1:{port}"), &[]).wait_with_output().unwrap();
    let said = text(&second.stderr);
    assert_eq!(second.status.code(), Some(5), "{said}");
    assert!(
        said.contains("has ended, with the session of another sender") && said.contains("--sessions forever"),
        "{said}"
    );
    let (first, received) = (first.wait_with_output().unwrap(), receiver.wait_with_output().unwrap());
    assert_eq!((first.status.code(), received.status.code()), (Some(0), Some(0)));
    let (first, received) = (json(&first), json(&received));
    assert_eq!(received["media"]["expected_packets"], first["data"]["sent_packets"], "{received}");
    assert!(received["frames"]["source"].as_u64() <= first["pictures"].as_u64(), "{received}, {first}");
}

#[test]
fn sessions_follow_each_other_with_files_and_summaries_of_their_own() {
    let dir = fresh("two");
    let (out, stats, key) = (dir.join("a.ivf"), dir.join("s.jsonl"), dir.join("key"));
    let (out, stats, key) = (out.to_str().unwrap(), stats.to_str().unwrap(), key.to_str().unwrap());
    // With a key: who waits has asked under keys of its own.
    assert!(command(&["key", key]).output().unwrap().status.success());
    let receive = ["receive", "0", "--sessions", "2", "--json", "--out", out, "--stats", stats, "--key-file", key];
    let (receiver, port) = listening(&receive);
    let first = sender_with(port, "3s", &["--key-file", key]);
    // The second waits, and is let in when the first has ended.
    let second = asking(&format!("127.0.0.1:{port}"), &["--seconds", "2s", "--json", "--key-file", key]);
    let second = second.wait_with_output().unwrap();
    assert!(text(&second.stderr).contains("the receiver serves another sender"), "{}", text(&second.stderr));
    let (first, received) = (first.wait_with_output().unwrap(), receiver.wait_with_output().unwrap());
    let codes = [&first, &second, &received].map(|o| o.status.code());
    assert_eq!(codes, [Some(0); 3], "{}", text(&received.stderr));
    let sent = [json(&first), json(&second)];
    let told = lines(&received);
    assert_eq!(told.len(), 2, "{told:?}");
    for (n, (sent, told)) in sent.iter().zip(&told).enumerate() {
        assert_eq!((&told["session"], &told["ended"]), (&Value::from(n + 1), &Value::from("bye")));
        assert_eq!(told["media"]["expected_packets"], sent["data"]["sent_packets"], "{told}");
        assert!(told["frames"]["in_time"].as_u64().unwrap() > 10, "{told}");
        assert!(is_recording(&dir.join(format!("a-{}.ivf", n + 1))));
        let stats = std::fs::read_to_string(dir.join(format!("s-{}.jsonl", n + 1))).unwrap();
        let stats: Vec<Value> = stats.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(!stats.is_empty() && stats.iter().all(|line| line["session"] == n + 1), "{stats:?}");
        assert!(stats.last().unwrap()["received_packets"].as_u64() <= told["media"]["received_packets"].as_u64());
    }
    assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 5, "and the key");
    // The next one's files would write over these.
    let refused = command(&receive).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("a-1.ivf` exists already"), "{}", text(&refused.stderr));
}

/// Two packets of a stream and its goodbye, as who forges addresses can send them, and hear nothing.
fn forge_a_session(port: u16, ssrc: u32) {
    let forger = UdpSocket::bind("127.0.0.1:0").unwrap();
    forger.connect(("127.0.0.1", port)).unwrap();
    let ssrc = ssrc.to_be_bytes();
    for sequence in 0..3_u8 {
        // A packet of a frame in VP8 whose beginning is not there.
        let packet = [&[0x80, 0xe0, 0, sequence, 0, 0, 0, 0][..], &ssrc, &[0, 1, 2, 3]].concat();
        forger.send(&packet).unwrap();
    }
    let goodbye = [&[0x80, 201, 0, 1][..], &ssrc, &[0x81, 203, 0, 1], &ssrc].concat();
    forger.send(&goodbye).unwrap();
    // For so long packets of the stream would take the goodbye back.
    std::thread::sleep(Duration::from_millis(1_200));
}

#[test]
fn packets_of_nobody_use_up_no_session_and_leave_no_file() {
    let dir = fresh("nobody");
    let (out, stats) = (dir.join("a.ivf"), dir.join("s.jsonl"));
    let (out, stats) = (out.to_str().unwrap(), stats.to_str().unwrap());
    let receive = ["receive", "0", "--sessions", "2", "--json", "--out", out, "--stats", stats];
    let (receiver, port) = listening(&receive);
    for ssrc in 1..=3 {
        forge_a_session(port, ssrc);
    }
    let first = sender(port, "2s").wait_with_output().unwrap();
    forge_a_session(port, 4);
    let second = sender(port, "2s").wait_with_output().unwrap();
    let received = receiver.wait_with_output().unwrap();
    let codes = [&first, &second, &received].map(|o| o.status.code());
    assert_eq!(codes, [Some(0); 3], "{}", text(&received.stderr));
    let told: Vec<_> =
        lines(&received).iter().map(|l| (l["session"].clone(), l["ended"].clone(), l["counts"].clone())).collect();
    assert_eq!(told, [1, 2].map(|n| (Value::from(n), Value::from("bye"), Value::from(true))));
    let mut files: Vec<_> = std::fs::read_dir(&dir).unwrap().map(|e| e.unwrap().file_name()).collect();
    files.sort();
    assert_eq!(files, ["a-1.ivf", "a-2.ivf", "s-1.jsonl", "s-2.jsonl"]);
    assert!(is_recording(&dir.join("a-1.ivf")) && is_recording(&dir.join("a-2.ivf")));
}

/// The last of several goes on without them; but where the operator has named the address, or started a receiver of one session, the
/// sender's word is taken.
#[test]
fn packets_of_nobody_end_no_receiver_of_several_sessions() {
    let (receiver, port, said) =
        listening_with_messages(&["receive", "0", "--json", "--sessions", "2", "--seconds", "4s"]);
    assert_eq!(sender(port, "1s").wait_with_output().unwrap().status.code(), Some(0));
    // Until that session is written down nobody is let in.
    std::thread::sleep(Duration::from_secs(1));
    forge_a_session(port, 1);
    // The time that it was forged to begin at is not the session's.
    std::thread::sleep(Duration::from_secs(2));
    let sent = sender(port, "2s").wait_with_output().unwrap();
    let received = receiver.wait_with_output().unwrap();
    assert_eq!((sent.status.code(), received.status.code()), (Some(0), Some(0)));
    let told = lines(&received);
    assert_eq!((told.len(), &told[1]["ended"], &told[1]["counts"]), (2, &"bye".into(), &true.into()), "{told:?}");
    assert!(said.join().unwrap().contains("has not shown that it was there"));

    for word_is_taken in [&["--sessions", "2", "--from", "127.0.0.1"][..], &[]] {
        let (receiver, port) = listening(&[&["receive", "0", "--json"][..], word_is_taken].concat());
        forge_a_session(port, 1);
        if !word_is_taken.is_empty() {
            std::thread::sleep(Duration::from_secs(1));
            forge_a_session(port, 2);
        }
        let received = receiver.wait_with_output().unwrap();
        let told = lines(&received);
        assert_eq!((received.status.code(), &told[0]["ended"]), (Some(0), &"bye".into()), "{told:?}");
        assert_eq!(told[0]["counts"], Value::from(!word_is_taken.is_empty()));
    }
}

/// Whoever is let in can begin a session, and another one, for ever.
#[test]
fn no_more_sessions_leave_files_than_are_to_be_kept() {
    let dir = fresh("kept");
    let (out, stats) = (dir.join("a.ivf"), dir.join("s.jsonl"));
    let (out, stats) = (out.to_str().unwrap(), stats.to_str().unwrap());
    let keep = ["--sessions", "3", "--keep-sessions", "1", "--out", out, "--stats", stats];
    let (receiver, port, said) = listening_with_messages(&[&["receive", "0", "--json"][..], &keep].concat());
    for _ in 0..3 {
        assert_eq!(sender(port, "1s").wait_with_output().unwrap().status.code(), Some(0));
    }
    let received = receiver.wait_with_output().unwrap();
    assert_eq!((received.status.code(), lines(&received).len()), (Some(0), 3));
    let mut files: Vec<_> = std::fs::read_dir(&dir).unwrap().map(|e| e.unwrap().file_name()).collect();
    files.sort();
    assert_eq!(files, ["a-1.ivf", "s-1.jsonl"]);
    let said = said.join().unwrap();
    assert_eq!(said.matches("later ones leave none").count(), 1, "{said}");
}

#[test]
fn a_receiver_for_ever_ends_by_ctrl_c_and_leaves_no_file_of_a_session_that_never_came() {
    let dir = fresh("forever");
    let out = dir.join("a.ivf");
    let (receiver, port, said) =
        listening_with_messages(&["receive", "0", "--sessions", "forever", "--out", out.to_str().unwrap()]);
    let first = sender(port, "2s").wait_with_output().unwrap();
    assert_eq!(first.status.code(), Some(0));
    let until = Instant::now() + Duration::from_secs(60);
    while !dir.join("a-2.ivf").exists() {
        assert!(Instant::now() < until, "the second session is not prepared");
        std::thread::sleep(Duration::from_millis(20));
    }
    interrupt(&receiver);
    let received = receiver.wait_with_output().unwrap();
    assert_eq!(received.status.code(), Some(130));
    let (told, said) = (text(&received.stdout), said.join().unwrap());
    assert!(told.contains("session 1, with 127.0.0.1:") && !told.contains("session 2"), "{told}");
    assert!(said.contains("waiting for the next sender") && said.contains("a-1.ivf"), "{said}");
    assert!(is_recording(&dir.join("a-1.ivf")));
    assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 1, "no `a-2.ivf`");
}

#[test]
fn a_sender_is_told_in_a_line_that_the_receiver_has_ended() {
    let (receiver, port) = listening(&["receive", "0", "--seconds", "2s", "--json"]);
    let sent = asking(&format!("127.0.0.1:{port}"), &["--seconds", "60s"]).wait_with_output().unwrap();
    receiver.wait_with_output().unwrap();
    assert_eq!(sent.status.code(), Some(0));
    assert!(text(&sent.stderr).contains("the receiver has said goodbye"), "{}", text(&sent.stderr));
}

/// A recording that cannot grow, as on a full disk.
#[test]
fn a_recording_that_was_cut_off_by_the_disk_is_not_said_to_be_recorded() {
    let out = fresh("full").join("a.ivf");
    let script = format!(
        "trap '' XFSZ; ulimit -f 64; exec '{}' receive 0 --out '{}'",
        env!("CARGO_BIN_EXE_fairpace"),
        out.display()
    );
    let mut bash = Command::new("bash");
    bash.args(["-c", &script]).env("NO_COLOR", "1").stdin(Stdio::null());
    let mut receiver = bash.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(receiver.stderr.take().unwrap()).lines().map_while(Result::ok);
    let listening = said.next().unwrap();
    let port = listening.split([':', ';']).find_map(|word| word.parse().ok()).unwrap_or_else(|| panic!("{listening}"));
    let sent = sender(port, "30s");
    let said: Vec<String> = said.collect();
    let (received, sent) = (receiver.wait().unwrap(), sent.wait_with_output().unwrap());
    assert_eq!((received.code(), sent.status.code()), (Some(1), Some(0)), "{said:?}");
    assert!(said.iter().any(|line| line.contains("cannot write")), "{said:?}");
    assert!(!said.iter().any(|line| line.contains("recorded")), "{said:?}");
}

#[test]
fn outputs_that_could_not_be_written_to_are_refused_before_anything_starts() {
    let dir = fresh("outputs");
    let (pipe, one) = (dir.join("pipe"), dir.join("one"));
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let (pipe, one) = (pipe.to_str().unwrap(), one.to_str().unwrap());
    for (args, why) in [
        (vec!["receive", "0", "--stats", pipe], "nobody reads from the pipe"),
        (vec!["send", "model", "127.0.0.1:9", "--stats", pipe], "nobody reads from the pipe"),
        (vec!["receive", "0", "--out", pipe], "is a pipe"),
        (vec!["receive", "0", "--out", "-"], "`-` would be a file"),
        (vec!["receive", "0", "--sessions", "2", "--out", "-"], "`-` would be a file"),
        (vec!["receive", "0", "--stats", one, "--out", one], "`--out` and `--stats` name the same file"),
        (vec!["receive", "0", "--sessions", "0"], "a whole number from 1 on, or `forever`"),
        (vec!["receive", "0", "--keep-sessions", "3"], "how many of several sessions leave files"),
    ] {
        let mut child = command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let until = Instant::now() + Duration::from_secs(20);
        while child.try_wait().unwrap().is_none() {
            if Instant::now() > until {
                child.kill().unwrap();
                panic!("{args:?} hangs");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let out = child.wait_with_output().unwrap();
        assert_eq!(out.status.code(), Some(2), "{args:?}: {}", text(&out.stderr));
        assert!(text(&out.stderr).contains(why), "{args:?}: {}", text(&out.stderr));
    }
    assert!(!Path::new(one).exists());
    // A reader that goes away ends the lines, and the note has the name of what was written to.
    let script = format!("'{}' receive 0 --stats - --seconds 60s | true", env!("CARGO_BIN_EXE_fairpace"));
    let mut bash = Command::new("bash");
    bash.args(["-c", &script]).env("NO_COLOR", "1").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut bash = bash.spawn().unwrap();
    let mut said = BufReader::new(bash.stderr.take().unwrap()).lines().map_while(Result::ok);
    let ended = said.find(|line| line.contains("no more lines")).unwrap();
    assert!(ended.contains("no more lines to standard output"), "{ended}");
    let receiver = Command::new("pgrep").args(["-P", &bash.id().to_string()]).output().unwrap();
    for pid in text(&receiver.stdout).lines() {
        Command::new("kill").args(["-INT", pid]).status().unwrap();
    }
    bash.wait().unwrap();
}

#[test]
fn a_pipe_with_a_reader_gets_the_lines_of_all_sessions() {
    let pipe = fresh("pipe").join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let reader = std::fs::OpenOptions::new().read(true).write(true).open(&pipe).unwrap();
    let (receiver, port) = listening(&["receive", "0", "--sessions", "2", "--stats", pipe.to_str().unwrap()]);
    for _ in 0..2 {
        assert_eq!(sender(port, "2s").wait_with_output().unwrap().status.code(), Some(0));
    }
    assert_eq!(receiver.wait_with_output().unwrap().status.code(), Some(0));
    let mut of = [0; 2];
    for line in BufReader::new(reader).lines().map_while(Result::ok) {
        let line: Value = serde_json::from_str(&line).unwrap();
        of[line["session"].as_u64().unwrap() as usize - 1] += 1;
        if of[1] > 0 {
            break;
        }
    }
    assert!(of[0] > 0, "{of:?}");
}

/// Nobody gets in, and each end says why as far as it can know.
#[test]
fn without_a_common_key_or_outside_the_addresses_that_are_let_in_both_ends_say_the_likely_cause() {
    let dir = fresh("keys");
    let keys = ["a.key", "b.key"].map(|name| dir.join(name).to_str().unwrap().to_owned());
    for key in &keys {
        assert!(command(&["key", key]).output().unwrap().status.success());
    }
    let [a, b] = &keys;
    let the_key = ["--key-file", a];
    for (receive, send, sender_says, receiver_says) in [
        (vec![], the_key.to_vec(), "none sealed with it", ""),
        (the_key.to_vec(), vec![], "the same `--key-file` as this end", "that the key does not open"),
        (the_key.to_vec(), vec!["--key-file", b], "the same `--key-file` as this end", "that the key does not open"),
        (vec!["--from", "192.0.2.1"], vec![], "does its `--from` let this end in", "`--from` does not name"),
    ] {
        let (receiver, port, said) = listening_with_messages(&[&["receive", "0"], &receive[..]].concat());
        let sent = asking(&format!("127.0.0.1:{port}"), &send).wait_with_output().unwrap();
        interrupt(&receiver);
        let received = receiver.wait_with_output().unwrap();
        let (sent_said, said) = (text(&sent.stderr), said.join().unwrap());
        assert_eq!(sent.status.code(), Some(5), "{sent_said}");
        assert!(sent_said.contains(sender_says) && !sent_said.contains("encrypted with the key"), "{sent_said}");
        if sender_says.contains("sealed") {
            assert!(!sent_said.contains("firewall"), "{sent_said}");
        }
        if !receiver_says.is_empty() {
            let told = text(&received.stdout);
            assert!(told.contains("datagrams not taken in: ") && told.contains(receiver_says), "{told}");
            assert!(said.contains(receiver_says), "while it runs: {said}");
        }
    }
}
