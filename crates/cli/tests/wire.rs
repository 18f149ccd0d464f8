//! Real sockets through the command: a sender, a receiver and a relay on loopback, and everything that can go
//! wrong before and between.

#![allow(clippy::disallowed_methods, reason = "the test itself waits, and measures what a user would")]

mod common {
    pub(crate) mod program;
    pub(crate) mod turn;
    pub(crate) mod wire;
}

use common::program::{command, folder, text};
use common::turn::wait_for;
use common::wire::{json, listening};
use std::io::{BufRead as _, BufReader};
use std::net::UdpSocket;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn file(name: &str) -> PathBuf {
    folder("wire").join(name)
}

#[test]
fn media_goes_through_a_relay_over_both_versions_of_ip_and_is_recorded_and_passed_on() {
    let player = UdpSocket::bind("127.0.0.1:0").unwrap();
    player.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let forward = player.local_addr().unwrap().to_string();
    let link = file("link.toml");
    std::fs::write(&link, "duration = \"10 s\"\n[path]\nrate = \"4 Mbit/s\"\nrtt = \"60 ms\"\nqueue = { kind = \"two-priority\", capacity = \"50 pkt\" }\n[[flows]]\ncontroller = \"rcs\"\n[[flows]]\ncontroller = \"tcp-sack\"\n").unwrap();
    for (ip, host) in [("-4", "127.0.0.1"), ("-6", "[::1]")] {
        if ip == "-6" && UdpSocket::bind("[::1]:0").is_err() {
            eprintln!("skipped: this machine has no IPv6 loopback");
            continue;
        }
        let (sdp, ivf) = (file("x.sdp"), file(&format!("x{ip}.ivf")));
        let capture = file(&format!("x{ip}.pcapng"));
        let mut receive = vec!["receive", "0", ip, "--json", "--force", "--out", ivf.to_str().unwrap()];
        if ip == "-4" {
            receive.extend(["--forward", &forward, "--sdp", sdp.to_str().unwrap()]);
        }
        let (receiver, port) = listening(&receive);
        let to = format!("{host}:{port}");
        let (relay, entrance) = listening(&[
            "relay",
            link.to_str().unwrap(),
            "--listen",
            "0",
            "--to",
            &to,
            ip,
            "--seconds",
            "5s",
            "--json",
            "--force",
            "--pcap",
            capture.to_str().unwrap(),
        ]);
        let entrance = format!("{host}:{entrance}");
        let sent = command(&[
            "send",
            "model",
            &entrance,
            "--control",
            "rcs",
            "--max-rate",
            "1 Mbit/s",
            "--seconds",
            "3s",
            "--json",
            ip,
        ])
        .output()
        .unwrap();
        assert_eq!(sent.status.code(), Some(0), "{}", text(&sent.stderr));
        let received = receiver.wait_with_output().unwrap();
        let relayed = relay.wait_with_output().unwrap();
        assert_eq!((received.status.code(), relayed.status.code()), (Some(0), Some(0)));
        let (sent, received, relayed) = (json(&sent), json(&received), json(&relayed));
        // The TCP flow fills the queue now and then; nothing else is lost.
        let packets = sent["datagrams"]["media"].as_u64().unwrap();
        assert!(packets > 50, "{sent}");
        assert_eq!(received["media"]["expected_packets"].as_u64(), Some(packets), "{received}");
        assert!(received["media"]["received_packets"].as_u64().unwrap() * 10 >= packets * 9, "{received}");
        assert!(received["frames"]["in_time"].as_u64().unwrap() > 20, "{received}");
        assert!(relayed["flows"][0]["delivered_bytes"].as_u64().unwrap() > 100_000, "TCP beside: {relayed}");
        let ivf = std::fs::read(&ivf).unwrap();
        assert_eq!((&ivf[..4], &ivf[28..32]), (&b"DKIF"[..], &[0; 4][..]), "it is finished");
        let capture = std::fs::read(&capture).unwrap();
        assert_eq!(capture[..4], 0x0A0D_0D0A_u32.to_le_bytes());
        // Each packet is there when it enters and when it leaves, with 28 bytes of headers at least.
        assert!(capture.len() as u64 > 2 * 28 * packets, "{} bytes of capture", capture.len());
        // At its end, as of every capture that was not cut off: statistics of 40 bytes of each interface.
        assert!(capture[capture.len() - 3 * 40..].starts_with(&[5, 0, 0, 0, 40, 0, 0, 0]));
        if ip == "-4" {
            let mut packet = [0; 2000];
            let n = player.recv(&mut packet).unwrap();
            // RTP version 2, payload type 96 with or without the marker.
            assert!(n > 12 && packet[0] >> 6 == 2 && packet[1] & 0x7f == 96);
            let sdp = std::fs::read_to_string(&sdp).unwrap();
            assert!(sdp.contains(&format!("m=video {} RTP/AVP 96", player.local_addr().unwrap().port())), "{sdp}");
        }
    }
}

#[test]
fn a_second_sender_ends_with_code_5_and_is_told_of_the_first() {
    let (mut receiver, port) = listening(&["receive", "0", "--json"]);
    let to = format!("127.0.0.1:{port}");
    let send = |more: &[&str]| {
        command(&["send", "model", &to, "--max-rate", "500 kbit/s"])
            .args(more)
            .stderr(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let mut first = send(&["--seconds", "60s"]);
    let mut said = BufReader::new(first.stderr.take().unwrap()).lines().map_while(Result::ok);
    assert!(said.any(|line| line.contains("the receiver answers")));
    let second = send(&[]).wait_with_output().unwrap();
    let said = text(&second.stderr);
    assert_eq!(second.status.code(), Some(5), "{said}");
    assert!(said.contains("note: the receiver serves another sender"), "{said}");
    assert!(
        said.contains("is busy: it serves another sender") && said.contains("hint: wait for the other sender to end"),
        "{said}"
    );
    assert!(!said.contains("firewall"), "{said}");
    assert!(first.try_wait().unwrap().is_none(), "the first goes on");
    first.kill().unwrap();
    receiver.kill().unwrap();
    first.wait().unwrap();
    receiver.wait().unwrap();
}

#[test]
fn a_port_in_use_an_address_that_is_none_and_a_wrong_setting_send_nothing() {
    let taken = UdpSocket::bind("0.0.0.0:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let to = format!("127.0.0.1:{port}");
    taken.set_nonblocking(true).unwrap();
    let plain_sdp = file("plain.sdp");
    std::fs::write(&plain_sdp, "v=0\r\nm=video 5004 RTP/AVP 96\r\n").unwrap();
    let plain_sdp = plain_sdp.to_str().unwrap();
    for (args, code, parts) in [
        (&["receive", &port, "-4"][..], 2, &["error: UDP port", "is in use", "\n\nhint: "][..]),
        (
            &["receive", "0", "-4", "--from", "2001:db8::1"],
            2,
            &["names IPv6 addresses, and only IPv4 is listened to", "\n\nhint: leave"],
        ),
        (&["receive", "0", "--from", "0.0.0.0"], 2, &["nothing is sent from `0.0.0.0`"]),
        (&["receive", "70000"], 2, &["`<PORT>` is `70000`: it is not a UDP port"]),
        (
            &["send", "model", "localhost"],
            2,
            &["error: `localhost` is not HOST:PORT", "hint: write `example.org:5004`"],
        ),
        (&["send", "model", "no.such.host.invalid:5004"], 5, &["cannot resolve `no.such.host.invalid`"]),
        (&["send", "model", &to, "--control", "rsc"], 2, &["`rsc` is not a controller", "did you mean `rcs`?"]),
        (
            &["send", "model", &to, "--control", "fixed", "--set", "rat=1Mbit/s"],
            2,
            &["`fixed` has no parameter `rat`", "did you mean `rate`?"],
        ),
        (
            &["send", "model", &to, "--control", "fixed", "--set", "rate=20Mbit/s"],
            2,
            &["`fixed.rate` is `20Mbit/s`; allowed is"],
        ),
        (&["send", "model", &to, "--max-rate", "-3Mbit/s"], 2, &["`--max-rate` is `-3Mbit/s`: it is negative"]),
        (
            &["send", "model", &to, "--size", "641x360"],
            2,
            &["`--size` is `641x360`: it must be of even numbers of pixels"],
        ),
        (&["send", "model", &to, "--size", "small"], 2, &["`--size` is `small`: it is not a size"]),
        (&["send", "model", &to, "--stats", "/nowhere/x"], 2, &["`/nowhere/x`", "hint: "]),
        (&["send", "udp://239.0.0.1:5", &to], 2, &["is a URL", "hint: let ffmpeg read it"]),
        (&["send", "model", &to, "--seconds", "-1"], 2, &["`--seconds` is `-1`: it is negative"]),
        (&["send", "model", &to, "--quantum", "6ms"], 2, &["`--quantum` is `6ms`: it is more than 5 ms"]),
        (&["send", "model", &to, "--quantum", "-1ms"], 2, &["`--quantum` is `-1ms`", "hint: "]),
        (&["send", "model", &to, "--packet-size", "71B"], 2, &["`packet_size` is 71 B; allowed: 74 B to 1500 B"]),
        (&["send", "model", &to, "--packet-size", "1501B"], 2, &["`packet_size` is 1501 B; allowed: 74 B to 1500 B"]),
        (&["send", "model", "[::1]:9", "--packet-size", "93B"], 2, &["`packet_size` is 93 B; allowed: 94 B to 1500 B"]),
        (
            &["send", "model", &to, "--packet-size", "71B", "--no-repair"],
            2,
            &["`packet_size` is 71 B; allowed: 72 B to 1500 B"],
        ),
        (&["send", "model", &to, "--packet-size", "-1B"], 2, &["`--packet-size` is `-1B`", "hint: "]),
        (
            &["send", "model", &to, "--control", "tcp-bbr"],
            2,
            &["`tcp-bbr` runs in the emulator only", "hint: as a flow of a scenario", "--world emu"],
        ),
        (&["reproduce", "rcs.fig12", "--world", "emu"], 2, &["`rcs.fig12` runs in the simulator only", "name `tpba`"]),
        (&["receive", "-1"], 2, &["`<PORT>` is `-1`: it is not a UDP port"]),
        (
            &["send", "model", "255.255.255.255:9"],
            2,
            &["`HOST:PORT` is 255.255.255.255:9; allowed: the address of one"],
        ),
        (
            &["receive", "5998", "--forward", "127.0.0.1:5998"],
            2,
            &["`forward` is 127.0.0.1:5998; allowed: another port"],
        ),
        (
            &["receive", "0", "--forward", &to, "--sdp", "/nowhere/x.sdp"],
            2,
            &["cannot write `/nowhere/x.sdp`", "hint: `--sdp FILE`"],
        ),
        (&["send", "/nowhere/clip.mp4", &to], 2, &["`/nowhere/clip.mp4`: cannot open", "hint: check the path"]),
        (&["demo", "/nowhere/clip.mp4"], 2, &["`/nowhere/clip.mp4`: cannot open"]),
        (&["demo", "--control", "rcs,rsc"], 2, &["`rsc` is not a controller"]),
        (&["demo", "--control", "rcs,tfcr,mrp"], 2, &["`tfcr` is not a controller", "did you mean `tfrc`?"]),
        (
            &["send", "model", &to, "--control", "rcs", "--feedback-form", "rtp-tfrc"],
            2,
            &["`rcs` must hear of every packet", "hint: use `--control tfrc`"],
        ),
        (
            &["send", "model", &to, "--control", "tfrc", "--feedback-form", "ccfb", "--set", "measured_by=receiver"],
            2,
            &["`--set measured_by=receiver` contradicts `--feedback-form`"],
        ),
        (
            &["send", "model", &to, "--control", "tfcr", "--feedback-form", "rtp-tfrc"],
            2,
            &["`tfcr` is not a controller", "did you mean `tfrc`?"],
        ),
        (
            &["receive", "0", "--feedback-form", "ccfb", "--offer", plain_sdp],
            2,
            &["`--offer` describes a receiver of RTP-TFRC", "hint: add `--feedback-form rtp-tfrc`"],
        ),
        (
            &["send", "model", &to, "--control", "tfrc", "--peer", plain_sdp, "--feedback-form", "twcc"],
            2,
            &["`--peer` is for RTP-TFRC, and `--feedback-form` is `twcc`", "hint: leave out one"],
        ),
        (
            &["send", "model", &to, "--control", "lda", "--feedback-form", "twcc"],
            2,
            &["`lda` is told of packets by RTCP receiver reports", "hint: leave out `--feedback-form`"],
        ),
        (
            &["send", "model", &to, "--control", "tfrc", "--peer", plain_sdp],
            2,
            &["plain.sdp` does not offer RTP-TFRC", "hint: it needs `a=rtcp-fb:… tfrc`"],
        ),
        (&["send", "model", &to, "--control", "tfrc", "--peer", "/nowhere.sdp"], 1, &["cannot read `/nowhere.sdp`"]),
        (
            &["send", "model", &to, "--control", "aimd", "--beta", "1"],
            2,
            &["`aimd.beta` is `1`; allowed is above 0, below 1"],
        ),
        (&["send", "model", &to, "--control", "aimd", "--rwnd", "0"], 2, &["`aimd.rwnd` is `0`; allowed is a whole"]),
        (&["send", "model", &to, "--control", "aimd", "--alpha", "-1"], 2, &["`aimd.alpha` is `-1`; allowed is"]),
        (
            &["send", "model", &to, "--control", "aimd", "--beta", "0.5", "--set", "beta=0.6"],
            2,
            &["`--beta 0.5` contradicts `--set beta=0.6`"],
        ),
        (
            &["send", "model", &to, "--control", "rap", "--beta", "0.5"],
            2,
            &["`--beta` is for the controller `aimd`, and this is `rap`", "hint: use `--control aimd`"],
        ),
        (&["send", "model", &to, "--rwnd", "25"], 2, &["`--rwnd` is for the controller `aimd`, and this is `auto`"]),
        (
            &["send", "model", &to, "--control", "lda", "--feedback-form", "ccfb"],
            2,
            &["`lda` is told of packets by RTCP receiver reports", "hint: leave out `--feedback-form`"],
        ),
        (
            &["send", "model", &to, "--control", "aimd", "--feedback-form", "rtp-tfrc"],
            2,
            &["`aimd` must hear of every packet"],
        ),
        (&["receive", "0", "--playout", "11s"], 2, &["`--playout` is `11s`: it must be at most 10 s"]),
        (&["receive", "0", "--rwnd", "0"], 2, &["`--rwnd` is `0`: it must be at least 1", "from 1 to 8192"]),
        (&["receive", "0", "--rwnd", "none"], 2, &["`--rwnd` is `none`: it is not a whole number"]),
        (&["demo", "--seconds", "1s"], 2, &["`--seconds` is 1 s"]),
        (
            &["receive", "0", "--out", "/nowhere/x.ivf"],
            2,
            &["cannot write `/nowhere/x.ivf`", "hint: is there such a folder"],
        ),
    ] {
        let out = command(args).output().unwrap();
        let said = text(&out.stderr);
        assert_eq!(out.status.code(), Some(code), "{args:?}: {said}");
        for part in parts {
            assert!(said.contains(part), "{args:?}: {part:?} is missing in {said}");
        }
    }
    assert!(taken.recv(&mut [0; 100]).is_err(), "nothing was sent");
}

#[test]
fn a_peer_that_never_answers_gets_challenges_only_and_is_code_5() {
    let deaf = UdpSocket::bind("127.0.0.1:0").unwrap();
    deaf.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let to = deaf.local_addr().unwrap().to_string();
    let out = command(&["send", "model", &to]).output().unwrap();
    assert_eq!(out.status.code(), Some(5), "{}", text(&out.stderr));
    let said = text(&out.stderr);
    assert!(
        said.contains(&format!("error: {to} did not answer")) && said.contains("hint: is `fairpace receive"),
        "{said}"
    );
    // Three tries in each of the two classes, none larger than a challenge needs to be.
    let mut packet = [0; 2000];
    let sizes: Vec<usize> = std::iter::from_fn(|| deaf.recv(&mut packet).ok()).collect();
    assert!((3..=8).contains(&sizes.len()) && sizes.iter().all(|n| *n < 200), "{sizes:?}");
}

#[test]
fn a_relay_takes_a_scenario_that_is_a_path_and_nothing_else() {
    let link = file("path-only.toml");
    std::fs::write(&link, "duration = \"10 s\"\n[path]\nrate = \"4 Mbit/s\"\nrtt = \"60 ms\"\n").unwrap();
    let (relay, _) = listening(&["relay", link.to_str().unwrap(), "--listen", "0", "--to", "127.0.0.1:9", "--json"]);
    assert!(Command::new("kill").args(["-INT", &relay.id().to_string()]).status().unwrap().success());
    let out = relay.wait_with_output().unwrap();
    assert_eq!(out.status.code(), Some(130), "{}", text(&out.stderr));
    // To be run it needs flows.
    let out = command(&["run", link.to_str().unwrap()]).output().unwrap();
    assert_eq!(out.status.code(), Some(3));
    assert!(text(&out.stderr).contains("at least one `[[flows]]`"), "{}", text(&out.stderr));
}

#[test]
fn a_relay_reflects_three_times_what_came_and_to_a_named_peer_everything() {
    let link = file("reflects.toml");
    std::fs::write(&link, "duration = \"10 s\"\n[path]\nrate = \"4 Mbit/s\"\nrtt = \"2 ms\"\n").unwrap();
    let target = UdpSocket::bind("127.0.0.1:0").unwrap();
    target.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let to = target.local_addr().unwrap().to_string();
    for (peer, reflected) in [(&[][..], 3), (&["--peer", "127.0.0.1"][..], 10)] {
        let mut args = vec!["relay", link.to_str().unwrap(), "--listen", "0", "--to", &to, "-4", "--json"];
        args.extend(peer);
        let (relay, entrance) = listening(&args);
        let client = UdpSocket::bind("127.0.0.1:0").unwrap();
        client.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
        client.send_to(&[1; 38], ("127.0.0.1", entrance)).unwrap();
        let mut packet = [0; 2000];
        let (_, from) = target.recv_from(&mut packet).unwrap();
        for _ in 0..10 {
            target.send_to(&[7; 38], from).unwrap();
        }
        assert_eq!(std::iter::from_fn(|| client.recv(&mut packet).ok()).count(), reflected, "{peer:?}");
        assert!(Command::new("kill").args(["-INT", &relay.id().to_string()]).status().unwrap().success());
        assert_eq!(json(&relay.wait_with_output().unwrap())["withheld_packets"], 10 - reflected);
    }
    let wrong = ["relay", link.to_str().unwrap(), "--listen", "0", "--to", &to, "--peer", "there"];
    let out = command(&wrong).output().unwrap();
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).contains("write one, with its port or without"), "{}", text(&out.stderr));
}

#[test]
fn ctrl_c_ends_a_receiver_in_order_with_code_130() {
    let ivf = file("interrupted.ivf");
    let (receiver, _) = listening(&["receive", "0", "--json", "--force", "--out", ivf.to_str().unwrap()]);
    assert!(Command::new("kill").args(["-INT", &receiver.id().to_string()]).status().unwrap().success());
    let begun = Instant::now();
    let out = receiver.wait_with_output().unwrap();
    assert_eq!(out.status.code(), Some(130));
    assert!(begun.elapsed() < Duration::from_secs(2));
    let json: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(json["ended"], "interrupted");
    assert_eq!(std::fs::read(&ivf).unwrap()[28..], [0; 4], "a recording that is finished, of nothing");
}

#[test]
fn ctrl_c_ends_a_sender_that_waits_for_its_source_with_code_130() {
    let sender = command(&["send", "-", "127.0.0.1:9"]).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(500));
    assert!(Command::new("kill").args(["-INT", &sender.id().to_string()]).status().unwrap().success());
    let out = wait_beside_its_stdin(sender);
    assert_eq!((out.status.code(), text(&out.stderr)), (Some(130), String::new()));
}

/// `wait_with_output` would close it first.
fn wait_beside_its_stdin(mut child: std::process::Child) -> std::process::Output {
    let stdin = child.stdin.take();
    let out = child.wait_with_output().unwrap();
    drop(stdin);
    out
}

#[test]
fn a_demo_leaves_a_report_and_an_interrupted_one_a_partial_report() {
    let dir = file("demo");
    let args = [
        "demo",
        "model",
        "--control",
        "rcs",
        "--seconds",
        "3s",
        "--json",
        "-q",
        "--force",
        "--out",
        dir.to_str().unwrap(),
    ];
    let out = wait_for(|| command(&args).output().unwrap());
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let json: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let run = &json["schemes"][0];
    assert_eq!(run["ended"]["kind"], "completed");
    assert!(run["totals"]["data_packets_sent"].as_u64().unwrap() > 20, "{run}");
    // The way is 275 ms, and two TCP flows share it: no packet is faster, and none waits a second.
    let p50 = run["totals"]["delay_p50_ms"].as_f64().unwrap();
    assert!((275.0..1_000.0).contains(&p50), "{p50}");
    assert!(
        run["beside_kbps"].as_array().unwrap().len() == 2 && run["totals"]["beside_kbps"].as_f64().unwrap() > 10.0,
        "{run}"
    );
    assert!(std::fs::read_to_string(dir.join("report.html")).unwrap().contains("What the viewer got"));

    let dir = file("demo-interrupted");
    let _ = std::fs::remove_dir_all(&dir);
    let out = wait_for(|| {
        let args =
            ["demo", "model", "--control", "rcs,fixed", "--seconds", "30s", "--force", "--out", dir.to_str().unwrap()];
        let child = command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(2_500));
        assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
        child.wait_with_output().unwrap()
    });
    assert_eq!(out.status.code(), Some(130), "{}", text(&out.stderr));
    let json: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(dir.join("demo.json")).unwrap()).unwrap();
    assert_eq!((json["interrupted"].as_bool(), json["schemes"].as_array().map(Vec::len)), (Some(true), Some(1)));
    assert_eq!(json["schemes"][0]["ended"]["kind"], "interrupted");
    let page = std::fs::read_to_string(dir.join("report.html")).unwrap();
    assert!(page.contains("Interrupted after 0 complete turns"));
}

#[test]
fn tpba_probes_by_the_receivers_tcp_half_and_without_one_says_so() {
    let send = |port: u16, seconds: &str| {
        let to = format!("127.0.0.1:{port}");
        let args = ["send", "model", &to, "--control", "tpba", "--max-rate", "1Mbit/s", "--seconds", seconds, "--json"];
        command(&args).output().unwrap()
    };
    let (receiver, port) = listening(&["receive", "0", "-4", "--tcp", "--json"]);
    let sent = send(port, "3s");
    assert_eq!(sent.status.code(), Some(0), "{}", text(&sent.stderr));
    let said: serde_json::Value = serde_json::from_slice(&sent.stdout).unwrap();
    assert!(said["tcp"]["acknowledged_bytes"].as_u64().unwrap() > 10_000, "{said}");
    let received = receiver.wait_with_output().unwrap();
    assert_eq!(received.status.code(), Some(0), "{}", text(&received.stderr));
    // A second receiver has the UDP port of that number, and nobody the TCP port.
    let (mut receiver, port) = listening(&["receive", "0", "-4"]);
    let sent = send(port, "20s");
    receiver.kill().unwrap();
    receiver.wait().unwrap();
    let said = text(&sent.stderr);
    assert_eq!(sent.status.code(), Some(5), "{said}");
    assert!(
        said.contains("answers by UDP, but not by TCP") && said.contains("hint: ") && said.contains("--tcp"),
        "{said}"
    );
}

#[test]
fn a_file_that_is_no_video_is_said_to_be_none_before_anything_is_sent() {
    let path = file("novel.mp4");
    std::fs::write(&path, "It was a dark and stormy night. ".repeat(100)).unwrap();
    let out = command(&["send", path.to_str().unwrap(), "127.0.0.1:9"]).output().unwrap();
    let said = text(&out.stderr);
    assert_eq!(out.status.code(), Some(2), "{said}");
    assert!(said.starts_with("error: `") && said.contains("novel.mp4`") && said.contains("hint: "), "{said}");
}
