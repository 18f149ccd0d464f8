//! `[satellite]` and `[wireless]` under real packets: in `relay`, between `send` and `receive`, and in `run --world emu`, under a media flow and
//! the kernel's TCP in namespaces. In `shell`: `shell.rs`. Facts, not speeds: the machine may be busy. Where the system allows no namespaces a
//! test says so and ends.

#![allow(clippy::disallowed_methods, reason = "the test waits until another run in real time is over")]

mod common {
    #[allow(dead_code, reason = "each test file uses its part")]
    pub(crate) mod program;
    pub(crate) mod turn;
    #[allow(dead_code, reason = "each test file uses its part")]
    pub(crate) mod wire;
}

use common::program::{command, folder, text};
use common::turn::wait_for;
use common::wire::{json, listening};
use serde_json::Value;

const PRIVILEGE: i32 = 4;

/// Five terminals with demand assignment in the large frame; the first flow goes from terminal 1 to 2, the second from 3 to 4.
const SATELLITE: &str = "\
[satellite]
frame = \"large\"
terminals = 5
[[flows]]
name = \"media\"
controller = \"tfrc\"
source = { kind = \"constant\", rate = \"200 kbit/s\" }
terminals = [1, 2]
";
/// Slots of 5 ms, one in ten of which fails and is repeated, behind 20 ms of wire one way.
const WIRELESS: &str = "\
[path]
rate = \"10 Mbit/s\"
rtt = \"40 ms\"
[wireless]
rate = \"1 Mbit/s\"
slot = \"5 ms\"
channel = { kind = \"two-state\", error_probability = 0.1 }
[[flows]]
name = \"media\"
controller = \"aimd\"
source = { kind = \"constant\", rate = \"200 kbit/s\" }
user = 0
";

fn scenario(name: &str, text: &str) -> String {
    let file = folder("shared-media").join(format!("{name}.toml"));
    std::fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

// --- relay ---------------------------------------------------------------------------------------------------------

/// The words of `send` and `relay` on six seconds of video by that controller over the path.
fn through_the_relay(name: &str, path: &str, controller: &str) -> (Value, Value) {
    let link = scenario(name, &format!("duration = \"60 s\"\n{path}"));
    let (receiver, port) = listening(&["receive", "0", "-4", "--json", "--seconds", "60"]);
    let to = format!("127.0.0.1:{port}");
    let (relay, port) = listening(&["relay", &link, "--listen", "0", "-4", "--to", &to, "--json", "--seconds", "20"]);
    let to = format!("127.0.0.1:{port}");
    let sent = command(&["send", "model", &to, "-4", "--control", controller, "--seconds", "6", "--json"]).output();
    let sent = sent.unwrap();
    assert!(sent.status.success(), "{}", text(&sent.stderr));
    let relayed = relay.wait_with_output().unwrap();
    receiver.wait_with_output().unwrap();
    (json(&sent), json(&relayed))
}

/// Nothing is lost on the way, some was acknowledged, and the first round trip took `least_ms`.
#[track_caller]
fn is_carried(sent: &Value, relayed: &Value, least_ms: f64) {
    assert_eq!(number(&sent["data"]["lost_packets"]), 0.0, "{sent}");
    assert!(number(&sent["data"]["acknowledged_packets"]) > 20.0, "{sent}");
    assert!(number(&sent["first_rtt_ms"]) >= least_ms, "{sent}");
    assert!(number(&relayed["relayed_bytes"]) > 20_000.0, "{relayed}");
    // The counts of a single link are those of no such path.
    assert_eq!((&relayed["forward"], number(&relayed["withheld_packets"])), (&Value::Null, 0.0), "{relayed}");
}

/// Up and down by the geostationary orbit, each way.
#[test]
fn a_satellite_carries_real_packets_in_the_relay() {
    let (sent, relayed) = through_the_relay("relay-satellite", SATELLITE, "tfrc");
    is_carried(&sent, &relayed, 2.0 * 2.0 * 125.0);
}

/// The wire both ways, and a slot.
#[test]
fn a_wireless_link_carries_real_packets_in_the_relay() {
    let (sent, relayed) = through_the_relay("relay-wireless", WIRELESS, "aimd");
    is_carried(&sent, &relayed, 45.0);
}

// --- run --world emu -----------------------------------------------------------------------------------------------

/// The summary of a run in namespaces; `None`, and why, where the system allows none.
fn emulated(name: &str, path: &str, beside: &str) -> Option<Value> {
    let tcp = format!("[[flows]]\nname = \"file\"\ncontroller = \"tcp-cubic\"\n{beside}\n");
    let file = scenario(name, &format!("duration = \"8 s\"\nwarmup = \"2 s\"\n{path}{tcp}"));
    let out = folder("shared-media").join(name);
    let args = ["run", &file, "--world", "emu", "--quiet", "--force", "--out", out.to_str().unwrap()];
    let ran = wait_for(|| command(&args).output().unwrap());
    if ran.status.code() == Some(PRIVILEGE) {
        println!("skipped: {}", text(&ran.stderr));
        return None;
    }
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    let summary: Value = serde_json::from_slice(&std::fs::read(out.join("summary.json")).unwrap()).unwrap();
    assert_eq!((&summary["world"], &summary["emulated"]["algorithms"]["file"]), (&"emu".into(), &"cubic".into()));
    assert_eq!(number(&summary["emulated"]["unknown_packets"]), 0.0);
    Some(summary)
}

/// Both flows are carried, and no packet is earlier than the path's delay.
#[track_caller]
fn are_carried(summary: &Value, least_ms: f64) {
    let flows = summary["flows"].as_array().unwrap();
    assert_eq!(flows.len(), 2);
    for flow in flows {
        assert!(number(&flow["received_packets"]) > 10.0 && number(&flow["owd_ms"]["p50"]) >= least_ms, "{flow}");
    }
}

#[test]
fn a_satellite_carries_media_and_the_kernels_tcp_in_the_emulator() {
    let Some(summary) = emulated("emu-satellite", SATELLITE, "terminals = [3, 4]") else { return };
    are_carried(&summary, 250.0);
    let satellite = &summary["satellite"];
    assert!((777.0..778.0).contains(&number(&satellite["mean_rtt_ms"])), "the large frame: {satellite}");
    let terminals = satellite["terminals"].as_array().unwrap();
    let of = |n: u64| terminals.iter().find(|t| t["terminal"] == n).unwrap();
    // Both senders ask for slots, and get them; both receivers answer through theirs.
    for n in 1..=4 {
        let terminal = of(n);
        assert!(number(&terminal["transmitted_packets"]) > 5.0 && number(&terminal["slots_used"]) > 5.0, "{terminal}");
        assert_eq!(number(&terminal["dropped_packets"]), 0.0, "{terminal}");
    }
}

#[test]
fn a_wireless_link_carries_media_and_the_kernels_tcp_in_the_emulator() {
    let Some(summary) = emulated("emu-wireless", WIRELESS, "user = 0") else { return };
    are_carried(&summary, 20.0);
    let wireless = &summary["wireless"];
    assert_eq!((number(&wireless["slot_ms"]), number(&wireless["slot_bytes"])), (5.0, 625.0));
    let user = &wireless["users"][0];
    // Of some 1,000 slots one in ten fails: a standard deviation is 0.01. Failed packets are sent again, and none is given up.
    assert!(number(&user["slots_used"]) > 300.0 && (0.05..0.16).contains(&number(&user["error_ratio"])), "{user}");
    assert_eq!(number(&user["given_up_packets"]), 0.0, "{user}");
    let all: f64 = summary["flows"].as_array().unwrap().iter().map(|f| number(&f["throughput_bps"])).sum();
    assert!(all <= 1e6, "no more than the slots carry: {all}");
}
