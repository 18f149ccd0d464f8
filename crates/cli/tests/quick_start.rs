//! `send --quick-start` through `relay` with a satellite, and what is refused. Skips, with the reason, without root.

#![allow(clippy::disallowed_methods, reason = "the test itself waits, and measures what a user would")]

mod common {
    #[allow(dead_code, reason = "each test file uses its part")]
    pub(crate) mod program;
    #[allow(dead_code, reason = "each test file uses its part")]
    pub(crate) mod wire;
}

use common::program::{command, folder, text};
use common::wire::{json, listening};
use serde_json::Value;
use std::process::{Command, Stdio};

/// A scenario file with that path.
fn scenario(name: &str, text: &str) -> String {
    let file = folder("quick-start").join(format!("{name}.toml"));
    std::fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

/// An idle satellite whose terminals behave like that, the flow of terminals 1 and 2.
fn satellite(agent: &str) -> String {
    format!(
        "duration = \"60 s\"\n[satellite]\nframe = \"large\"\nterminals = 5\n[satellite.quick_start]\n{agent}\n\
         [[flows]]\nname = \"tv\"\ncontroller = \"tfrc\"\nterminals = [1, 2]\n"
    )
}

/// The words of `send` and `relay` on six seconds over that path.
fn over(link: &str, further: &[&str]) -> (Value, Value) {
    let (receiver, port) = listening(&["receive", "0", "-4", "--json"]);
    let to = format!("127.0.0.1:{port}");
    let (relay, port) = listening(&["relay", link, "--listen", "0", "-4", "--to", &to, "--json", "--seconds", "9"]);
    let to = format!("127.0.0.1:{port}");
    let args = ["send", "model", &to, "-4", "--control", "tfrc", "--seconds", "6", "--json"];
    let sent = command(&[&args, further].concat()).output().unwrap();
    assert!(sent.status.success(), "{}", text(&sent.stderr));
    let relayed = relay.wait_with_output().unwrap();
    receiver.wait_with_output().unwrap();
    (json(&sent), json(&relayed))
}

#[test]
fn a_video_asks_the_terminals_of_a_satellite_in_the_relay() {
    if !nix::unistd::geteuid().is_root() {
        return println!("skipped: Quick-Start needs root");
    }
    let link = scenario("qsd", &satellite("agent = \"qsd\"\nhold = \"opt\""));
    let (sent, relayed) = over(&link, &["--quick-start", "320kbit/s"]);
    assert_eq!(
        (&sent["quick_start"]["answer"], &sent["quick_start"]["approved_bps"]),
        (&"approved".into(), &320e3.into())
    );
    assert_eq!(sent["quick_start"]["packets_with_option"], 2);
    assert_eq!((&relayed["quick_start"]["approved"], &relayed["quick_start"]["reports"]), (&1.into(), &1.into()));
    assert_eq!((&relayed["forward"], &sent["data"]["lost_packets"]), (&Value::Null, &0.into()));
    assert!(sent["data"]["acknowledged_packets"].as_u64() > Some(60), "{sent}");
    // A satellite's round trip, and the time for which the terminal holds the request.
    let after = sent["quick_start"]["answered_after_ms"].as_f64().unwrap() - sent["first_rtt_ms"].as_f64().unwrap();
    assert!((900.0..2_500.0).contains(&after), "{after}");
    // A terminal that does not know Quick-Start is found out, and the stream goes on.
    let link =
        scenario("off", &satellite("agent = \"none\"").replace("[satellite.quick_start]\nagent = \"none\"\n", ""));
    let (sent, relayed) = over(&link, &["--quick-start", "320kbit/s"]);
    assert_eq!((&sent["quick_start"]["answer"], &relayed["quick_start"]), (&"bad_ttl".into(), &Value::Null));
    assert_eq!(sent["data"]["lost_packets"], 0);
}

#[test]
fn real_packets_pass_a_base_station_in_the_relay() {
    let link = scenario(
        "radio",
        "duration = \"60 s\"\n[path]\nrate = \"10 Mbit/s\"\nrtt = \"40 ms\"\n[wireless]\nrate = \"2 Mbit/s\"\n[[flows]]\nname = \"video\"\ncontroller = \"tfrc\"\nuser = 0\n",
    );
    let (sent, relayed) = over(&link, &[]);
    assert!(sent["data"]["acknowledged_packets"].as_u64() > Some(60), "{sent}");
    assert_eq!((&sent["quick_start"], &relayed["forward"]), (&Value::Null, &Value::Null));
}

#[test]
fn what_cannot_be_is_refused_before_the_first_packet() {
    let refused = |args: &[&str], words: &[&str]| {
        let out = command(args).output().unwrap();
        let said = text(&out.stderr);
        assert!(!out.status.success() && words.iter().all(|word| said.contains(word)), "{args:?}: {said}");
    };
    let to = "127.0.0.1:9";
    refused(&["send", "model", to, "--quick-start", "320kbit/s"], &["quick_start", "`auto`", "tfrc", "tfrc-sp"]);
    refused(&["send", "model", to, "--control", "tfrc", "--quick-start", "2Gbit/s"], &["1310.72 Mbit/s"]);
    refused(&["send", "model", to, "--control", "tfrc", "--quick-start", "0"], &["--quick-start"]);
    let only_tcp = satellite("agent = \"qs\"").replace("\"tfrc\"", "\"tcp-sack\"");
    let link = scenario("only-tcp", &only_tcp);
    refused(&["relay", &link, "--listen", "0", "--to", to], &["no flow but TCP's"]);
    // Without the right.
    let mut unprivileged = Command::new("setpriv");
    unprivileged.args([
        "--no-new-privs",
        "--bounding-set",
        "-all",
        "--inh-caps",
        "-all",
        env!("CARGO_BIN_EXE_fairpace"),
    ]);
    unprivileged.args(["send", "model", to, "--control", "tfrc", "--quick-start", "320kbit/s"]).env("NO_COLOR", "1");
    match unprivileged.stdin(Stdio::null()).output() {
        Ok(out) => {
            let said = text(&out.stderr);
            assert_eq!(out.status.code(), Some(4), "{said}");
            assert!(
                said.contains("no permission to put the Quick-Start option") && said.contains("cap_net_raw"),
                "{said}"
            );
        }
        Err(e) => println!("skipped: `setpriv`: {e}"),
    }
}
