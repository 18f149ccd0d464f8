//! `send --adaptation`: who makes the encoder's rate fit the controller's, and what a user sees of that.

#![allow(clippy::disallowed_methods, reason = "the test itself waits, and measures what a user would")]

mod common {
    pub(crate) mod program;
    pub(crate) mod wire;
}

use common::program::{command, folder, text};
use common::wire::{json, listening};
use serde_json::Value;

/// At 300 kbit/s, 285 of them for media.
const FIXED: &[&str] = &["--control", "fixed", "--set", "rate=300kbit/s", "--seconds", "4s"];

/// Sends to a receiver over a path of 400 ms there and back; the sender's record.
fn sent(source: &str, more: &[&str]) -> Value {
    // Tests run at the same time: each architecture and source has a file of its own.
    let link = folder("adaptation").join(format!("{source}-{}.toml", more[1]));
    std::fs::write(&link, "duration = \"1 min\"\n[path]\nrate = \"2 Mbit/s\"\nrtt = \"400 ms\"\n").unwrap();
    let (receiver, port) = listening(&["receive", "0", "--json", "-4"]);
    let to = format!("127.0.0.1:{port}");
    let (mut relay, entrance) =
        listening(&["relay", link.to_str().unwrap(), "--listen", "0", "--to", &to, "-4", "--seconds", "60s"]);
    let entrance = format!("127.0.0.1:{entrance}");
    let sent = command(&[&["send", source, &entrance, "-4", "--json"], FIXED, more].concat()).output().unwrap();
    let received = receiver.wait_with_output().unwrap();
    relay.kill().unwrap();
    relay.wait().unwrap();
    assert_eq!((sent.status.code(), received.status.code()), (Some(0), Some(0)), "{}", text(&sent.stderr));
    let (sent, received) = (json(&sent), json(&received));
    assert!(received["frames"]["source"].as_u64() > Some(50), "{received}");
    // Whatever the architecture, the controller's rate holds; 400 ms may have led it.
    let rate = sent["data"]["sent_bytes"].as_f64().unwrap() * 8e-3 / sent["elapsed_s"].as_f64().unwrap();
    assert!(rate < 340.0, "{rate} kbit/s: {sent}");
    sent["adaptation"].clone()
}

/// The model; and the real encoder, where there is one.
fn sources() -> &'static [&'static str] {
    if cfg!(feature = "gst") { &["model", "test-pattern"] } else { &["model"] }
}

#[test]
fn an_encoder_at_one_rate_fills_its_buffer_and_what_overflows_is_dropped_and_told() {
    for source in sources() {
        let buffer = &["--adaptation", "buffer", "--encoder-rate", "600kbit/s", "--buffer", "20kB"];
        let a = sent(source, buffer);
        assert_eq!(
            (&a["who"], &a["encoder_rate_bps"], &a["buffer_bytes"]),
            (&"buffer".into(), &6e5.into(), &20_000.into())
        );
        // 20 kB at 285 kbit/s are 561 ms, less the frame that did not fit; twice the rate fills them within a second.
        let (fullest, wait_ms) = (a["fullest_bytes"].as_u64().unwrap(), a["longest_wait_ms"].as_f64().unwrap());
        assert!((12_000..=20_000).contains(&fullest), "{source}: {a}");
        assert!((330.0..=700.0).contains(&wait_ms), "{source}: {a}");
        // Of 300 kB half finds no room, and more where a key frame must be waited for.
        let dropped = a["dropped_bytes"].as_u64().unwrap();
        assert!((60_000..=260_000).contains(&dropped), "{source}: {a}");
    }
}

#[test]
fn an_encoder_that_follows_drops_nothing_and_without_a_buffer_its_frames_wait_less() {
    for source in sources() {
        let [buffered, unbuffered] = ["encoder", "unbuffered"].map(|who| sent(source, &["--adaptation", who]));
        for a in [&buffered, &unbuffered] {
            assert_eq!(
                (&a["dropped_bytes"], &a["buffer_bytes"], &a["encoder_rate_bps"]),
                (&0.into(), &Value::Null, &Value::Null)
            );
        }
        let [paced_ms, led_ms] = [&buffered, &unbuffered].map(|a| a["longest_wait_ms"].as_f64().unwrap());
        // The first frame is a key frame, and four others' worth of the model's, three of VP8's: 160 or 120 ms. A frame that has waited for 420 ms is dropped.
        assert!((80.0..=420.0).contains(&paced_ms), "{source}: {buffered}");
        assert!(led_ms < paced_ms / 2.0, "{source}: {buffered} {unbuffered}");
    }
}

#[test]
fn text_and_statistics_tell_which_architecture_ran() {
    let (receiver, port) = listening(&["receive", "0", "--json"]);
    let stats = folder("adaptation-stats").join("s.jsonl");
    let (to, stats) = (format!("127.0.0.1:{port}"), stats.to_str().unwrap());
    let buffer = ["--adaptation", "buffer", "--encoder-rate", "600kbit/s", "--stats", stats, "--force"];
    let sent = command(&[&["send", "model", &to], FIXED, &buffer].concat()).output().unwrap();
    receiver.wait_with_output().unwrap();
    let (said, told) = (text(&sent.stderr), text(&sent.stdout));
    assert!(said.contains("note: the encoder keeps 600 kbit/s, and 2000000 B may wait"), "{said}");
    assert!(told.contains("adaptation buffer: the encoder keeps one rate"), "{told}");
    assert!(told.contains(" the longest, 0 B were dropped"), "{told}");
    let lines = std::fs::read_to_string(stats).unwrap();
    let last: Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
    assert_eq!((&last["adaptation"], &last["media_rate_bps"]), (&"buffer".into(), &6e5.into()));
    // After 4 s at twice the rate half of 300 kB waits; 3 s later, when the sender gives up on it, a good part of it still does.
    let fullest = last["fullest_queue_bytes"].as_u64().unwrap();
    assert!((100_000..=200_000).contains(&fullest), "{last}");
    let wait_ms = last["longest_wait_ms"].as_f64().unwrap();
    assert!((2_000.0..=7_000.0).contains(&wait_ms), "{last}");
}

#[test]
fn what_cannot_be_and_what_would_have_no_effect_is_refused() {
    let to = "127.0.0.1:9";
    for (more, parts) in [
        (&["--buffer", "1MB"][..], &["`--buffer` is of no effect under `--adaptation encoder`", "hint: add"][..]),
        (
            &["--adaptation", "unbuffered", "--encoder-rate", "1Mbit/s"],
            &["`--encoder-rate` is of no effect under `--adaptation unbuffered`"],
        ),
        // Whatever the rate: without a buffer neither counts.
        (
            &["--encoder-rate", "30Mbit/s", "--buffer", "0B"],
            &["`--buffer` and `--encoder-rate` are of no effect under `--adaptation encoder`", "hint: add"],
        ),
        (
            &["--adaptation", "buffer", "--encoder-rate", "30Mbit/s", "--buffer", "0B"],
            &["`--buffer` is 0 B; allowed: 1 B to 16777216 B"],
        ),
        (
            &["--adaptation", "buffer", "--encoder-rate", "3Mbit/s", "--max-rate", "2Mbit/s"],
            &["`--encoder-rate` is 3 Mbit/s, and the flow may send 2 Mbit/s at most", "hint: lower it"],
        ),
        (&["--adaptation", "buffer", "--buffer", "0B"], &["`--buffer` is 0 B; allowed: 1 B to 16777216 B"]),
        (&["--adaptation", "buffer", "--buffer", "17MiB"], &["`--buffer` is 17825792 B; allowed: 1 B to 16777216 B"]),
        (&["--adaptation", "buffer", "--buffer", "1"], &["`--buffer` is `1`: it has no unit"]),
        (&["--adaptation", "buffer", "--encoder-rate", "0"], &["`--encoder-rate` is `0`"]),
        (&["--adaptation", "nobody"], &["`nobody`", "encoder", "buffer", "unbuffered"]),
        (
            &["--adaptation", "none", "--control", "tfrc-sp"],
            &["`adaptation` is unbuffered for `tfrc-sp`; allowed: encoder or buffer"],
        ),
    ] {
        let refused = command(&[&["send", "model", to], more].concat()).output().unwrap();
        let said = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{more:?}: {said}");
        assert!(parts.iter().all(|part| said.contains(part)), "{more:?}: {said}");
    }
    // No host is asked for before.
    let refused = command(&["send", "model", "no-such-host.invalid:9", "--buffer", "1MB"]).output().unwrap();
    assert!(text(&refused.stderr).contains("`--buffer` is of no effect"), "{refused:?}");
    let constant = ["send", "constant:300 kbit/s", to, "--adaptation", "buffer", "--encoder-rate", "600kbit/s"];
    let refused = command(&constant).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("`--encoder-rate` is of no effect on `constant:300 kbit/s`"), "{refused:?}");
}
