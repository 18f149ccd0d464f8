//! `fairpace cell` with real senders and a real receiver on loopback, and everything that it refuses.

#![allow(clippy::disallowed_methods, reason = "the test itself waits, and measures what a user would")]

mod common {
    pub(crate) mod program;
    pub(crate) mod turn;
    pub(crate) mod wire;
}

use common::program::{command, folder, text};
use common::turn::wait_for;
use common::wire::{json, listening, listening_with_messages};
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// A cell of slots of 5 ms; its plan, and its flows.
fn scenario(name: &str, plan: &str, flows: &str) -> (PathBuf, String) {
    let dir = folder("cell").join(name);
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    let text = format!(
        "duration = \"20 s\"\nwarmup = \"1 s\"\npacket_size = \"125 B\"\nack_size = \"64 B\"\nfeedback = \"every packet\"\n\
         [path]\nrate = \"10 Mbit/s\"\nrtt = \"75 ms\"\n\
         [wireless]\nrate = \"200 kbit/s\"\nchannel = {{ kind = \"two-state\", error_probability = 0.05 }}\n\
         uplink = {{ rate = \"200 kbit/s\" }}\n{plan}\n{flows}"
    );
    let file = dir.join("cell.toml");
    std::fs::write(&file, text).unwrap();
    (dir, file.to_str().unwrap().to_owned())
}

const PLAN: &str = "plan = { max_jitter = \"50 ms\", outage = 0.01 }";

fn calls(count: u32) -> String {
    format!(
        "[[flows]]\nname = \"call\"\ncount = {count}\ncontroller = \"aimd\"\nuser = 0\ntolerable_jitter = \"50 ms\"\n"
    )
}

/// Starts a sender of so many seconds that always has something to send.
fn sender(port: u16, seconds: &str, more: &[&str]) -> Child {
    let to = format!("127.0.0.1:{port}");
    let args =
        ["send", "constant:150 kbit/s", &to, "--control", "aimd", "--no-repair", "--packet-size", "125B", "--json"];
    command(&args)
        .args(["--seconds", seconds])
        .args(more)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn interrupt(child: Child) {
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    child.wait_with_output().unwrap();
}

fn client<'a>(cell: &'a Value, name: &str) -> &'a Value {
    cell["clients"].as_array().unwrap().iter().find(|c| c["name"] == name).unwrap_or_else(|| panic!("{name}: {cell}"))
}

#[test]
fn real_senders_are_told_windows_as_they_come_and_go_and_their_delays_stand_beside_the_plan() {
    let (dir, file) = scenario("told", PLAN, &calls(2));
    let (receiver, port) = listening(&["receive", "0", "-4", "--senders", "2", "--sessions", "forever"]);
    let (to, out, stats) = (format!("127.0.0.1:{port}"), dir.join("out"), dir.join("stats.jsonl"));
    let (out, stats) = (out.to_str().unwrap(), stats.to_str().unwrap());
    let args = [
        "cell",
        &file,
        "-4",
        "--listen",
        "0",
        "--to",
        &to,
        "--seconds",
        "12",
        "--json",
        "--out",
        out,
        "--stats",
        stats,
    ];
    let (cell, entrance, said) = listening_with_messages(&args);
    let stays = sender(entrance, "60", &[]);
    let goes = sender(entrance, "5", &[]);
    std::thread::sleep(std::time::Duration::from_secs(1));
    let mut third = sender(entrance, "60", &[]);
    let goes = goes.wait_with_output().unwrap();
    // There was no place for it; now there may be, and it has nothing to do there.
    let _ = third.kill();
    third.wait().unwrap();
    let cell = cell.wait_with_output().unwrap();
    let said = said.join().unwrap();
    assert_eq!(cell.status.code(), Some(0), "{said}");
    interrupt(stays);
    interrupt(receiver);

    assert_eq!(goes.status.code(), Some(0), "{}", text(&goes.stderr));
    let told = json(&goes);
    let cell = json(&cell);
    let (first, second) = (client(&cell, "call-1"), client(&cell, "call-2"));
    for flow in [first, second] {
        assert_eq!(flow["standing"], "planned", "{said}");
        assert!(flow["windows_written"].as_u64().unwrap() > 100 && flow["packets"].as_u64().unwrap() > 100, "{flow}");
        let [has, plan] = ["throughput_bps", "throughput_by_plan_bps"].map(|key| flow[key].as_f64().unwrap());
        assert!((0.5..1.3).contains(&(has / plan)), "{has} where {plan} were planned");
        // A machine beside others: the real bound is `scripts/cell-outage`'s.
        assert!(flow["outage"].as_f64().unwrap() < 0.1, "{flow}");
        assert!(flow["outage_by_plan"].as_f64().unwrap() <= 0.01, "{flow}");
        assert_eq!((&flow["over_window_packets"], &flow["ignores_window"]), (&0.into(), &false.into()), "{flow}");
    }
    assert!(cell["refused_packets"].as_u64().unwrap() > 0 && said.contains("no place for 127.0.0.1:"), "{said}");
    assert!(said.contains("has come") && said.contains("has said goodbye") && said.contains("% late"), "{said}");
    // The windows of the plan are those that the sender heard of: alone, then for two, then alone again.
    let windows: Vec<u64> = cell["windows"].as_array().unwrap().iter().map(|w| w["rwnd"].as_u64().unwrap()).collect();
    let (most, least) = (windows.iter().max().unwrap(), windows.iter().min().unwrap());
    assert!(windows.len() >= 4 && *most >= 2 * *least, "{windows:?}");
    let heard = told["rwnd_packets"].as_u64();
    assert!(heard.is_some_and(|rwnd| windows.contains(&rwnd) && rwnd < *most), "{told} of {windows:?}");

    let lines = std::fs::read_to_string(stats).unwrap();
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.len() >= 10 && lines.iter().any(|line| line["clients"].as_array().unwrap().len() == 2), "{lines:?}");
    let read = |name: &str| std::fs::read_to_string(dir.join("out").join(name)).unwrap();
    let summary: Value = serde_json::from_str(&read("summary.json")).unwrap();
    assert!(summary.to_string().contains("\"world\":\"cell\""), "{summary}");
    assert_eq!(read("windows.csv").lines().count(), windows.len() + 1);
    assert!(read("users.csv").lines().count() > 10 && read("report.html").contains("call"));
    let kept: Value = serde_json::from_str(&read("cell.json")).unwrap();
    assert_eq!(kept, cell);
    // Not over what is there.
    let again = wait_for(|| command(&["cell", &file, "--listen", "0", "--to", &to, "--out", out]).output().unwrap());
    assert_eq!(again.status.code(), Some(2), "{}", text(&again.stderr));
}

#[test]
fn sealed_feedback_passes_unchanged_and_is_told_of() {
    let (dir, file) = scenario("sealed", PLAN, &calls(1));
    let key = dir.join("stream.key");
    let made = command(&["key", key.to_str().unwrap()]).output().unwrap();
    assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
    let key = ["--key-file", key.to_str().unwrap()];
    let (receiver, port) = listening(&[&["receive", "0", "-4", "--json", "--rwnd", "9"], &key[..]].concat());
    let to = format!("127.0.0.1:{port}");
    let (cell, entrance, said) =
        listening_with_messages(&["cell", &file, "-4", "--listen", "0", "--to", &to, "--seconds", "5", "--json"]);
    let sent = sender(entrance, "3", &key).wait_with_output().unwrap();
    let (cell, received) = (cell.wait_with_output().unwrap(), receiver.wait_with_output().unwrap());
    let said = said.join().unwrap();
    assert_eq!([&sent, &received, &cell].map(|o| o.status.code()), [Some(0); 3], "{said} {}", text(&sent.stderr));
    let (cell, sent, received) = (json(&cell), json(&sent), json(&received));
    let flow = client(&cell, "call");
    assert_eq!((flow["standing"].as_str(), flow["windows_written"].as_u64()), (Some("sealed"), Some(0)), "{flow}");
    assert!(flow["sealed_feedback_packets"].as_u64().unwrap() > 50 && said.contains("sealed with a key"), "{said}");
    // Nothing was harmed: what the receiver said is what the sender heard.
    assert_eq!(sent["rwnd_packets"], 9, "{sent}");
    assert_eq!((&received["unsealed_datagrams"], &sent["unsealed_datagrams"]), (&0.into(), &0.into()));
    assert!(cell["windows"].as_array().unwrap().is_empty() && cell["outage"].is_null(), "{cell}");
}

#[test]
fn a_cell_that_cannot_keep_its_promise_says_so_and_gives_the_least() {
    // Three packets in the queue of a channel that fails a third of its slots are late more often than this.
    let plan = "plan = { max_jitter = \"10 ms\", outage = 0.00001 }";
    let (_, file) = scenario("more", plan, &calls(3));
    let (receiver, port) = listening(&["receive", "0", "-4", "--senders", "3", "--sessions", "forever"]);
    let to = format!("127.0.0.1:{port}");
    let (cell, entrance, said) =
        listening_with_messages(&["cell", &file, "-4", "--listen", "0", "--to", &to, "--seconds", "4", "--json"]);
    let senders = [(); 3].map(|()| sender(entrance, "60", &[]));
    // A sender that takes no windows is served, and not planned.
    let cell = cell.wait_with_output().unwrap();
    senders.into_iter().for_each(interrupt);
    interrupt(receiver);
    let (said, cell) = (said.join().unwrap(), json(&cell));
    assert!(
        cell["short_plans"].as_u64().unwrap() >= 1 && said.contains("the cell is asked for more than it has"),
        "{said}"
    );
    for flow in cell["clients"].as_array().unwrap() {
        assert_eq!((&flow["window"], &flow["standing"]), (&1.into(), &"planned".into()), "{flow}");
        assert!(flow["packets"].as_u64().unwrap() > 5, "served all the same: {flow}");
    }
}

#[test]
fn a_sender_that_takes_no_window_passes_unplanned() {
    let (_, file) = scenario("unplanned", PLAN, &calls(1));
    let (receiver, port) = listening(&["receive", "0", "-4"]);
    let to = format!("127.0.0.1:{port}");
    let (cell, entrance, said) =
        listening_with_messages(&["cell", &file, "-4", "--listen", "0", "--to", &to, "--seconds", "4", "--json"]);
    let to = format!("127.0.0.1:{entrance}");
    let args = ["send", "constant:40 kbit/s", &to, "--control", "rap", "--packet-size", "125B", "--seconds", "2"];
    let sent = command(&args).output().unwrap();
    let (cell, received) = (cell.wait_with_output().unwrap(), receiver.wait_with_output().unwrap());
    assert_eq!([&sent, &received, &cell].map(|o| o.status.code()), [Some(0); 3], "{}", text(&sent.stderr));
    let (said, cell) = (said.join().unwrap(), json(&cell));
    let flow = client(&cell, "call");
    assert_eq!((&flow["standing"], &flow["window"]), (&"takes no window".into(), &Value::Null), "{flow}");
    assert!(said.contains("its sender takes no window") && flow["packets"].as_u64().unwrap() > 10, "{said}");
}

#[test]
fn what_is_no_cell_is_refused_with_what_to_do() {
    let planned = scenario("refused", PLAN, &calls(65)).1;
    let plain = scenario("no-plan", "", &calls(1)).1;
    let tcp = scenario("no-aimd", PLAN, "[[flows]]\ncontroller = \"tcp-sack\"\nuser = 0\n").1;
    for (file, more, code, says) in [
        (&plain, vec![], 3, "has no `wireless.plan`: nothing says which delay is promised"),
        (&tcp, vec![], 3, "has 0 flows of `aimd` behind its base station"),
        (&planned, vec![], 3, "has 65 flows of `aimd` behind its base station"),
        (&planned, vec!["--json", "--stats", "-"], 2, "both write to standard output"),
    ] {
        let out = command(&["cell", file, "--listen", "0", "--to", "127.0.0.1:9"]).args(more).output().unwrap();
        let said = text(&out.stderr);
        assert_eq!(out.status.code(), Some(code), "{said}");
        assert!(said.contains(says) && said.contains("\n\nhint: "), "{said}");
    }
}
