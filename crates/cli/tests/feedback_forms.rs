//! The forms of feedback through the command, over real sockets: what `send` asks for, what `receive` tells, and what a
//! person reads where the two do not fit.

#![allow(clippy::disallowed_methods, reason = "the test itself sends at a certain time")]

mod common {
    pub(crate) mod program;
    pub(crate) mod wire;
}

use common::program::{command, folder, text};
use common::wire::{json, listening, listening_with_messages};
use serde_json::Value;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::time::Duration;

fn file(name: &str) -> PathBuf {
    folder("feedback-forms").join(name)
}

/// `fairpace send` to `fairpace receive`, with these arguments of each: what both say.
fn exchange(receive: &[&str], send: &[&str]) -> (Value, Value) {
    let (receiver, port) = listening(&[&["receive", "0", "-4", "--json"], receive].concat());
    let to = format!("127.0.0.1:{port}");
    let sent = command(&[&["send", "model", &to, "--json", "--seconds", "2s"], send].concat()).output().unwrap();
    assert_eq!(sent.status.code(), Some(0), "{}", text(&sent.stderr));
    let received = receiver.wait_with_output().unwrap();
    assert_eq!(received.status.code(), Some(0), "{}", text(&received.stderr));
    let (sent, received) = (json(&sent), json(&received));
    assert_eq!(sent["ended"], "finished");
    (sent, received)
}

#[test]
fn a_receiver_that_measures_offers_itself_and_a_sender_takes_the_offer() {
    let offer = file("offer.sdp");
    let (receiver, port) = listening(&[
        "receive",
        "0",
        "-4",
        "--json",
        "--feedback-form",
        "rtp-tfrc",
        "--force",
        "--offer",
        offer.to_str().unwrap(),
    ]);
    let sdp = std::fs::read_to_string(&offer).unwrap();
    for line in [
        &format!("m=video {port} RTP/AVPF 96"),
        "c=IN IP4 127.0.0.1",
        "a=rtcp-mux",
        "a=rtcp-fb:96 tfrc",
        "a=extmap:3 urn:ietf:params:rtp-hdrext:rtt-sendts",
    ] {
        assert!(sdp.lines().any(|l| l == line), "{line} is missing in {sdp}");
    }
    // Another number, as another tool may have: the challenge tells the receiver, which had offered 3.
    let peer = file("peer.sdp");
    std::fs::write(&peer, sdp.replace("extmap:3", "extmap:5/sendrecv")).unwrap();
    let to = format!("127.0.0.1:{port}");
    let args =
        ["send", "model", &to, "--control", "tfrc", "--peer", peer.to_str().unwrap(), "--seconds", "2s", "--json"];
    let sent = command(&args).output().unwrap();
    assert_eq!(sent.status.code(), Some(0), "{}", text(&sent.stderr));
    let received = receiver.wait_with_output().unwrap();
    assert_eq!(received.status.code(), Some(0));
    let (sent, received) = (json(&sent), json(&received));
    assert_eq!(sent["ended"], "finished");
    assert!(received["media"]["received_packets"].as_u64().unwrap() > 20, "{received}");
    // A report takes 66 to 90 bytes; the claims and the metrics of per-packet feedback are never alone so long.
    let feedback = &received["feedback"];
    let (packets, bytes) = (feedback["packets"].as_u64().unwrap(), feedback["bytes"].as_u64().unwrap());
    assert!(packets > 5 && (60..=90).contains(&(bytes / packets)), "{feedback}");
    assert!(sent["feedback"]["packets"].as_u64().unwrap() > 5, "{sent}");
    // Nobody knows of single packets here: that is not "none was lost".
    assert!(sent["data"]["sent_packets"].as_u64().unwrap() > 20, "{sent}");
    assert_eq!((&sent["data"]["acknowledged_packets"], &sent["data"]["lost_packets"]), (&Value::Null, &Value::Null));
    assert!(sent["loss_event_rate"].is_f64(), "{sent}");
}

#[test]
fn aimd_keeps_within_the_window_that_its_receiver_advertises() {
    let aimd = ["--control", "aimd", "--beta", "0.875", "--rwnd", "25"];
    // Where lost packets are sent again, the echo alone says the window.
    let (sent, _) = exchange(&["--rwnd", "20"], &aimd);
    assert_eq!((&sent["feedback"]["form"], &sent["rwnd_packets"]), (&"ccfb".into(), &20.into()));
    let (sent, received) = exchange(&["--rwnd", "20"], &[&aimd[..], &["--no-repair"]].concat());
    assert_eq!((&sent["feedback"]["form"], &sent["rwnd_packets"]), (&"sack-vector".into(), &20.into()));
    // An ACK of 36 bytes for each packet.
    let packets = received["media"]["received_packets"].as_u64().unwrap();
    assert!(packets > 20, "{received}");
    assert_eq!(received["feedback"]["packets"].as_u64(), Some(packets), "{received}");
    assert_eq!(received["feedback"]["bytes"].as_u64(), Some(36 * packets), "{received}");
    assert!(sent["data"]["acknowledged_packets"].as_u64().unwrap() + 20 >= packets, "{sent}");
}

#[test]
fn a_sender_that_asks_for_transport_wide_feedback_gets_and_believes_it() {
    let (sent, received) = exchange(&[], &["--control", "rap", "--feedback-form", "twcc"]);
    assert_eq!(sent["feedback"]["form"], "twcc");
    let count = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("{value} is no count: {sent}"));
    // Only the packets since the last report are left to tell of at the end.
    let (told, all) = (count(&sent["data"]["acknowledged_packets"]), count(&sent["data"]["sent_packets"]));
    assert!(told > 10 && told + 10 >= all && count(&sent["data"]["lost_packets"]) == 0, "{sent}");
    assert!(count(&sent["feedback"]["packets"]) > 20 && count(&received["feedback"]["packets"]) > 20, "{received}");
    // A receiver that is set to another form tells as it is asked.
    let (sent, _) = exchange(&["--feedback-form", "twcc"], &["--control", "rap"]);
    assert_eq!(sent["feedback"]["form"], "ccfb");
    assert!(sent["data"]["acknowledged_packets"].as_u64().unwrap() > 10, "{sent}");
}

/// Another tool's media, which cannot ask: a plain socket that sends RTP, with a transport-wide number or without one.
#[test]
fn a_receiver_tells_a_tool_that_cannot_ask_by_the_form_it_was_given_or_says_what_to_do() {
    for numbered in [true, false] {
        let (receiver, port, said) =
            listening_with_messages(&["receive", "0", "-4", "--json", "--feedback-form", "twcc", "--seconds", "4s"]);
        let tool = UdpSocket::bind("127.0.0.1:0").unwrap();
        tool.connect(("127.0.0.1", port)).unwrap();
        tool.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        let (mut twcc, mut ccfb, mut buffer) = (0, 0, [0; 2_000]);
        for n in 0..50_u16 {
            let mut packet = vec![0x90, 96];
            packet.extend(n.to_be_bytes());
            packet.extend((u32::from(n) * 1_800).to_be_bytes());
            packet.extend([0, 0, 0, 7]);
            // One-byte header extensions [RFC 8285 §4.2]: element 5 (or 9, which means nothing), two bytes.
            packet.extend([0xbe, 0xde, 0, 1, if numbered { 0x51 } else { 0x91 }]);
            packet.extend(n.to_be_bytes());
            packet.push(0);
            packet.extend([0x10; 400]);
            tool.send(&packet).unwrap();
            // Feedback comes within the timeout; the packet type is the second byte of each packet of a compound.
            while let Ok(length) = tool.recv(&mut buffer) {
                let mut rest = &buffer[..length];
                while let [first, kind, high, low, ..] = *rest {
                    twcc += u32::from(kind == 205 && first & 0x1f == 15);
                    ccfb += u32::from(kind == 205 && first & 0x1f == 11);
                    rest = &rest[(4 * (usize::from(u16::from_be_bytes([high, low])) + 1)).min(rest.len())..];
                }
            }
        }
        let out = receiver.wait_with_output().unwrap();
        assert_eq!(out.status.code(), Some(0));
        let all = json(&out)["feedback"]["packets"].as_u64().unwrap();
        assert!(all > 10, "{all}");
        assert_eq!((twcc > 10, ccfb > 10), (numbered, !numbered), "{twcc} transport-wide, {ccfb} of RFC 8888");
        let said = said.join().unwrap();
        let remedy = "let the sender add it, or leave out `--feedback-form twcc`";
        assert_eq!(said.contains("no transport-wide number") && said.contains(remedy), !numbered, "{said}");
    }
}

#[test]
fn a_line_of_numbers_is_written_each_second_while_both_ends_run() {
    let (sent, received) = (file("sent.jsonl"), file("received.jsonl"));
    exchange(
        &["--force", "--stats", received.to_str().unwrap()],
        &["--force", "--stats", sent.to_str().unwrap(), "--control", "tfrc"],
    );
    let lines = |path: &Path| -> Vec<Value> {
        let text = std::fs::read_to_string(path).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let (sent, received) = (lines(&sent), lines(&received));
    assert!(!sent.is_empty() && !received.is_empty(), "{sent:?} {received:?}");
    let last = sent.last().unwrap();
    assert!(last["sent_packets"].as_u64().unwrap() > 0 && last["rate_bps"].as_f64().unwrap() > 0.0, "{last}");
    assert!(last["state"].is_string() && last["reason"].is_string() && last["srtt_ms"].is_number(), "{last}");
    let last = received.last().unwrap();
    assert!(last["complete_frames"].as_u64().unwrap() > 0 && last["lost_packets"] == 0, "{last}");
    // Nothing is lost: all that is judged is in time, or late where this machine is slow.
    let frames = |of: &str| last[format!("{of}_frames")].as_u64().unwrap();
    assert!(frames("in_time") > 0 && frames("in_time") + frames("late") <= frames("source"), "{last}");
    assert_eq!((frames("hole"), frames("reference")), (0, 0), "{last}");
    let judged = frames("in_time") + frames("late");
    assert_eq!(frames("never_sent"), frames("source") - judged, "{last}");
    assert!(last["longest_freeze_ms"].as_f64().is_some(), "{last}");
}
