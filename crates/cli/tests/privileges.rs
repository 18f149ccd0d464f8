//! Commands that hear the network give up what they do not need once their sockets and files are open.

#![allow(clippy::disallowed_methods, reason = "the test itself waits, and measures what a user would")]

mod common {
    pub(crate) mod program;
    #[allow(dead_code, reason = "each test file uses its part")]
    pub(crate) mod wire;
}

use common::program::{command, folder};
use common::wire::listening;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};

/// The kernel's words on each thread of a process that is ended then.
fn threads(mut child: Child) -> Vec<String> {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", child.id())).unwrap();
    // A thread may end meanwhile.
    let tasks = tasks.filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("status")).ok()).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    tasks
}

fn field<'a>(status: &'a str, name: &str) -> &'a str {
    status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim()
}

/// Run as root this shows that root's capabilities are gone; as another user, that none can be had by a program.
fn assert_nothing_is_left(status: &str, command: &str) {
    for set in ["CapEff:", "CapPrm:", "CapInh:", "CapAmb:"] {
        assert_eq!(field(status, set), "0000000000000000", "{command}: {set} {status}");
    }
    assert_eq!(field(status, "NoNewPrivs:"), "1", "{command}: {status}");
}

/// 2: by a filter, as /proc/PID/status counts (proc(5)).
fn assert_calls_are_filtered(status: &str, command: &str) {
    assert_eq!(field(status, "Seccomp:"), "2", "{command}: {status}");
}

/// `receive`, of one sender and of several, and `relay`, listening.
fn listeners() -> [(&'static str, Vec<String>); 3] {
    let link = folder("privileges").join("link.toml");
    std::fs::write(&link, "duration = \"60 s\"\n[path]\nrate = \"4 Mbit/s\"\nrtt = \"40 ms\"\n").unwrap();
    let relay = ["relay", link.to_str().unwrap(), "--listen", "0", "--to", "127.0.0.1:9", "-4"];
    let several = ["receive", "0", "-4", "--senders", "3"];
    [("receive", &["receive", "0", "-4", "--tcp"][..]), ("receive --senders", &several), ("relay", &relay)]
        .map(|(name, args)| (name, threads(listening(args).0)))
}

/// A sender whose receiver has answered: its source, with all threads of GStreamer where there is one, is open by then.
fn sender() -> Vec<String> {
    sender_with(&[])
}

/// As above, with further arguments.
fn sender_with(further: &[&str]) -> Vec<String> {
    let (mut receiver, port) = listening(&["receive", "0", "-4"]);
    let (source, least) = if cfg!(feature = "gst") { ("test-pattern", 2) } else { ("model", 1) };
    let to = format!("127.0.0.1:{port}");
    let args = ["send", source, &to, "--seconds", "60", "-4"];
    let threads = threads_once_answered(&[&args, further].concat(), least);
    receiver.kill().unwrap();
    receiver.wait().unwrap();
    threads
}

/// A sender of two streams, of which the receiver has answered one.
fn sender_of_streams() -> Vec<String> {
    let (mut receiver, port) = listening(&["receive", "0", "-4", "--senders", "2"]);
    let (source, least) = if cfg!(feature = "gst") { ("test-pattern", 2) } else { ("model", 1) };
    let file = folder("privileges").join("streams.toml");
    let defaults = format!("to = \"127.0.0.1:{port}\"\nseconds = \"60 s\"\nsize = \"320x180\"\n");
    let streams =
        format!("[[streams]]\nname = \"a\"\nsource = \"{source}\"\n[[streams]]\nname = \"b\"\nsource = \"model\"\n");
    std::fs::write(&file, format!("[defaults]\n{defaults}{streams}")).unwrap();
    let threads = threads_once_answered(&["send", "--streams", file.to_str().unwrap(), "-4"], least);
    receiver.kill().unwrap();
    receiver.wait().unwrap();
    threads
}

/// The threads of a sender, at least so many, that is ended then.
fn threads_once_answered(args: &[&str], least: usize) -> Vec<String> {
    let mut child = command(args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let said: Vec<String> =
        lines.map(Result::unwrap).take_while(|line| !line.contains("the receiver answers")).collect();
    let threads = threads(child);
    assert!(threads.len() >= least, "{} threads: {said:?}", threads.len());
    threads
}

#[test]
fn receive_and_relay_have_no_capability_once_they_listen() {
    for (name, threads) in listeners() {
        threads.iter().for_each(|status| assert_nothing_is_left(status, name));
    }
}

#[test]
fn no_thread_of_send_has_a_capability_once_media_leave() {
    sender().iter().for_each(|status| assert_nothing_is_left(status, "send"));
    sender_of_streams().iter().for_each(|status| assert_nothing_is_left(status, "send --streams"));
}

/// CAP_NET_RAW is the 13th: options in the headers of IP packets. Raw sockets, for which it is enough too, the filter refuses.
#[test]
fn a_sender_that_asks_for_quick_start_keeps_the_right_to_ip_options_alone() {
    if !nix::unistd::geteuid().is_root() {
        return println!("skipped: Quick-Start needs root");
    }
    for status in sender_with(&["--control", "tfrc", "--quick-start", "320kbit/s"]) {
        for (set, kept) in [("CapEff:", 1 << 13), ("CapPrm:", 1 << 13), ("CapInh:", 0), ("CapAmb:", 0), ("CapBnd:", 0)]
        {
            assert_eq!(u64::from_str_radix(field(&status, set), 16), Ok(kept), "{set} {status}");
        }
        assert_eq!(field(&status, "NoNewPrivs:"), "1", "{status}");
        if fairpace_emu::CallFilter::supported().is_ok() {
            assert_calls_are_filtered(&status, "send");
        }
    }
}

#[test]
fn all_three_run_under_a_filter_of_system_calls() {
    if let Err(e) = fairpace_emu::CallFilter::supported() {
        return println!("skipped: {e}");
    }
    for (name, threads) in listeners() {
        threads.iter().for_each(|status| assert_calls_are_filtered(status, name));
    }
    sender().iter().for_each(|status| assert_calls_are_filtered(status, "send"));
    sender_of_streams().iter().for_each(|status| assert_calls_are_filtered(status, "send --streams"));
}
