//! A shared key, end to end: two commands on loopback, each controller's kind of feedback, and what a stranger sees and reaches.

#![allow(clippy::disallowed_methods, reason = "the test itself waits, and measures what a user would")]

mod common {
    pub(crate) mod program;
    pub(crate) mod wire;
}

use common::program::{command, folder, text};
use common::wire::{json, listening, listening_with_messages};
use std::io::{BufRead as _, BufReader};
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

fn file(name: &str) -> PathBuf {
    folder("key").join(name)
}

fn make(name: &str) -> PathBuf {
    let path = file(name);
    let _ = std::fs::remove_file(&path);
    let made = command(&["key", path.to_str().unwrap()]).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    path
}

fn receiving<'a>(key: Option<&'a Path>, more: &[&'a str]) -> Vec<&'a str> {
    let mut args = vec!["receive", "0", "-4", "--json"];
    args.extend(key.iter().flat_map(|key| ["--key-file", key.to_str().unwrap()]));
    args.extend(more);
    args
}

fn receive(key: Option<&Path>, more: &[&str]) -> (Child, u16) {
    listening(&receiving(key, more))
}

/// Two seconds of pictures no two pieces of which are alike: the file, and its bytes behind the pictures' headers.
fn clip() -> (PathBuf, Vec<Vec<u8>>) {
    const PICTURES: u32 = 50;
    let path = file("clip.ivf");
    let mut bytes = b"DKIF\0\0\x20\0VP80\x40\x01\xb4\0".to_vec();
    for word in [25, 1, PICTURES, 0] {
        bytes.extend(u32::to_le_bytes(word));
    }
    let (mut state, mut inside) = (1_u64, Vec::new());
    for picture in 0..PICTURES {
        // A key frame's tag, start code and size [RFC 6386 §9.1].
        let mut frame = vec![0x10, 0x02, 0x00, 0x9d, 0x01, 0x2a, 0x40, 0x01, 0xb4, 0x00];
        let content: Vec<u8> = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        })
        .take(1_500)
        .collect();
        frame.extend(&content);
        inside.push(content);
        bytes.extend((frame.len() as u32).to_le_bytes());
        bytes.extend(u64::from(picture).to_le_bytes());
        bytes.extend(frame);
    }
    std::fs::write(&path, bytes).unwrap();
    (path, inside)
}

/// How many of the datagrams have any 16 bytes in a row of these pictures.
fn telling(seen: &[Vec<u8>], pictures: &[Vec<u8>]) -> usize {
    let pieces: std::collections::BTreeSet<&[u8]> = pictures.iter().flat_map(|p| p.windows(16)).collect();
    seen.iter().filter(|datagram| datagram.windows(16).any(|w| pieces.contains(w))).count()
}

const FIXED: &[&str] = &["--control", "fixed", "--set", "rate=500kbit/s"];

fn send_clip(to: u16, key: Option<&Path>, control: &[&str]) -> Output {
    let (clip, to) = (clip().0, format!("127.0.0.1:{to}"));
    let mut args = [&["send", clip.to_str().unwrap(), &to, "--json"], control].concat();
    args.extend(key.iter().flat_map(|key| ["--key-file", key.to_str().unwrap()]));
    command(&args).output().unwrap()
}

fn send(to: u16, key: Option<&Path>, more: &[&str]) -> Output {
    let to = format!("127.0.0.1:{to}");
    let mut args = vec!["send", "model", &to, "--max-rate", "1Mbit/s", "--json"];
    args.extend(key.iter().flat_map(|key| ["--key-file", key.to_str().unwrap()]));
    args.extend(more);
    command(&args).output().unwrap()
}

#[test]
fn with_the_key_media_arrives_whatever_the_feedback_and_the_transport() {
    let key = make("both.key");
    for (control, form, tcp) in [
        ("auto", None, false),
        ("aimd", None, false),
        ("lda", None, false),
        ("tfrc", Some("rtp-tfrc"), false),
        ("rap", Some("twcc"), false),
        ("tpba", None, true),
    ] {
        let form: Vec<_> = form.iter().flat_map(|form| ["--feedback-form", form]).collect();
        let (receiver, port) = receive(Some(&key), &[&form[..], if tcp { &["--tcp"] } else { &[] }].concat());
        let sent = send(port, Some(&key), &[&["--control", control, "--seconds", "2s"][..], &form].concat());
        let received = receiver.wait_with_output().unwrap();
        assert!(sent.status.success() && received.status.success(), "{control}: {sent:?} {received:?}");
        let (sent, received) = (json(&sent), json(&received));
        assert_eq!((&sent["encrypted"], &sent["unsealed_datagrams"]), (&true.into(), &0.into()), "{control}");
        assert_eq!(received["unsealed_datagrams"], 0, "{control}");
        let frames = received["frames"]["in_time"].as_u64().unwrap_or_else(|| panic!("{received}"));
        assert!(frames >= if control == "lda" { 5 } else { 30 }, "{control}: {frames} frames, {received}");
    }
}

#[test]
fn without_the_key_a_receiver_says_nothing_and_a_sender_finds_nobody() {
    let (key, other) = (make("one.key"), make("other.key"));
    for (theirs, ours) in [(Some(&key), Some(&other)), (Some(&key), None), (None, Some(&key))] {
        let (mut receiver, port) = receive(theirs.map(PathBuf::as_path), &[]);
        let sent = send(port, ours.map(PathBuf::as_path), &["--seconds", "2s"]);
        assert_eq!(sent.status.code(), Some(5), "{sent:?}");
        // A receiver with a key answers nobody who has it not; one without answers, and not with what the key opens.
        let why = if theirs.is_some() { "did not answer" } else { "none sealed with it" };
        let said = text(&sent.stderr);
        assert!(said.contains(why) && said.contains("`--key-file`"), "{sent:?}");
        receiver.kill().unwrap();
        receiver.wait().unwrap();
    }
}

/// A relay of the test's own between the two, which keeps copies and lets strangers in.
fn between(to: u16, run: impl FnOnce(u16) -> Output) -> (Output, Vec<Vec<u8>>) {
    let (front, back) = (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
    for socket in [&front, &back] {
        socket.set_read_timeout(Some(Duration::from_millis(2))).unwrap();
    }
    back.connect(("127.0.0.1", to)).unwrap();
    let port = front.local_addr().unwrap().port();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let passing = scope.spawn(|| {
            let (mut seen, mut sender, mut buffer) = (Vec::<Vec<u8>>::new(), None, [0; 2_048]);
            while !over.load(Ordering::Relaxed) {
                while let Ok((n, from)) = front.recv_from(&mut buffer) {
                    sender = Some(from);
                    seen.push(buffer[..n].to_vec());
                    let _ = back.send(&buffer[..n]);
                    // All that was seen comes again now and then, and with one bit changed.
                    if seen.len() % 10 == 0 {
                        let mut old = seen[seen.len() / 2].clone();
                        let _ = back.send(&old);
                        let at = old.len() - 1;
                        old[at] ^= 1;
                        let _ = back.send(&old);
                    }
                }
                while let (Ok(n), Some(sender)) = (back.recv(&mut buffer), sender) {
                    seen.push(buffer[..n].to_vec());
                    let _ = front.send_to(&buffer[..n], sender);
                    let mut changed = buffer[..n].to_vec();
                    changed[n - 1] ^= 1;
                    let _ = front.send_to(&changed, sender);
                    let _ = front.send_to(&buffer[..n], sender);
                }
            }
            seen
        });
        let output = run(port);
        over.store(true, Ordering::Relaxed);
        (output, passing.join().unwrap())
    })
}

#[test]
fn who_reads_along_sees_no_picture_and_who_repeats_or_changes_what_passes_is_not_heard() {
    let (key, (_, pictures)) = (make("between.key"), clip());
    let (receiver, port) = receive(Some(&key), &[]);
    let (sent, seen) = between(port, |port| send_clip(port, Some(&key), FIXED));
    let received = receiver.wait_with_output().unwrap();
    assert!(sent.status.success() && received.status.success(), "{sent:?} {received:?}");
    let (sent, received) = (json(&sent), json(&received));
    assert!(sent["unsealed_datagrams"].as_u64().unwrap() > 20, "{sent}");
    assert!(received["unsealed_datagrams"].as_u64().unwrap() > 5, "{received}");
    assert!(received["frames"]["in_time"].as_u64().unwrap() > 30, "{received}");
    assert!(seen.len() > 100 && telling(&seen, &pictures) == 0, "{} datagrams", seen.len());
    // The same look finds them without a key.
    let (receiver, port) = receive(None, &[]);
    let (_, seen) = between(port, |port| send_clip(port, None, FIXED));
    receiver.wait_with_output().unwrap();
    assert!(telling(&seen, &pictures) > 50, "{} datagrams", seen.len());
}

#[test]
fn a_key_file_is_made_once_read_by_its_owner_alone_and_refused_with_the_reason() {
    let path = make("made.key");
    let name = path.to_str().unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let before = std::fs::read(&path).unwrap();
    let again = command(&["key", name]).output().unwrap();
    assert_eq!(again.status.code(), Some(2), "{again:?}");
    assert_eq!(std::fs::read(&path).unwrap(), before, "left as it was");
    let refused = |said: &str| {
        let mut args = command(&["receive", "0", "--key-file", name]);
        let mut child = args.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // One that was not refused would wait for a sender.
        let until = Instant::now() + Duration::from_secs(20);
        while child.try_wait().unwrap().is_none() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
        child.kill().unwrap();
        let out = child.wait_with_output().unwrap();
        assert_eq!(out.status.code(), Some(2), "{out:?}");
        assert!(text(&out.stderr).contains(said), "{said}: {out:?}");
    };
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    refused("others may read the key");
    // Only root can give a file away, and may read it then.
    if nix::unistd::geteuid().is_root() {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        std::os::unix::fs::chown(&path, Some(65_534), None).unwrap();
        refused("another user's");
        std::os::unix::fs::chown(&path, Some(0), None).unwrap();
    }
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    for bad in [&b""[..], b"abc", &[b'0'; 63], &[b'z'; 64], &[0xff; 64], &[b'0'; 100_000], &[b'0'; 64]] {
        std::fs::write(&path, bad).unwrap();
        refused("key");
    }
    std::fs::remove_file(&path).unwrap();
    refused("cannot read the key");
    // A pipe into which nobody writes is not waited for.
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRUSR | nix::sys::stat::Mode::S_IWUSR).unwrap();
    refused("holds no key");
    std::fs::remove_file(&path).unwrap();
}

/// The payloads to and from `port` while `run` runs, over UDP and over TCP, as Wireshark's command line takes them off the loopback device;
/// `None`, and said why, where it cannot.
fn captured(port: u16, run: impl FnOnce()) -> Option<[Vec<Vec<u8>>; 2]> {
    let path = folder("key").join(format!("{port}.pcapng"));
    let (filter, name) = (format!("port {port}"), path.to_str().unwrap());
    let mut tshark = Command::new("tshark");
    tshark.args(["-i", "lo", "-f", &filter, "-w", name]).stdout(Stdio::null()).stderr(Stdio::piped());
    let Ok(mut capturing) = tshark.spawn() else {
        println!("skipped: there is no `tshark`");
        return None;
    };
    let mut said = BufReader::new(capturing.stderr.take().unwrap()).lines();
    let mut words = Vec::new();
    if !said.by_ref().map_while(Result::ok).any(|line| {
        words.push(line);
        words.last().is_some_and(|line| line.contains("Capturing on"))
    }) {
        capturing.wait().unwrap();
        println!("skipped: `tshark` cannot capture here: {words:?}");
        return None;
    }
    // The words come before the first packet is taken.
    std::thread::sleep(Duration::from_secs(1));
    run();
    std::thread::sleep(Duration::from_secs(1));
    let pid = nix::unistd::Pid::from_raw(i32::try_from(capturing.id()).unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).unwrap();
    capturing.wait().unwrap();
    let bytes = |line: &str| -> Vec<u8> {
        line.as_bytes().chunks(2).map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
    };
    let payloads = ["udp.payload", "tcp.payload"].map(|field| {
        let read = Command::new("tshark").args(["-r", name, "-T", "fields", "-e", field]).output().unwrap();
        assert!(read.status.success(), "{read:?}");
        text(&read.stdout).lines().filter(|line| !line.is_empty()).map(bytes).collect()
    });
    std::fs::remove_file(&path).unwrap();
    Some(payloads)
}

#[test]
fn tshark_finds_pictures_without_a_key_and_none_with_one() {
    let (key, (_, pictures)) = (make("tshark.key"), clip());
    for (key, tcp) in [(None, false), (Some(&*key), false), (None, true), (Some(&*key), true)] {
        let (mut receiver, port) = receive(key, if tcp { &["--tcp"] } else { &[] });
        let control: &[&str] = if tcp { &["--control", "tpba"] } else { FIXED };
        let seen = captured(port, || {
            let sent = send_clip(port, key, control);
            assert!(sent.status.success(), "{sent:?}");
        });
        let Some([datagrams, segments]) = seen else {
            receiver.kill().unwrap();
            receiver.wait().unwrap();
            return;
        };
        let received = json(&receiver.wait_with_output().unwrap());
        assert!(received["frames"]["in_time"].as_u64().unwrap() > 30, "{received}");
        let found = [&datagrams, &segments].map(|seen| telling(seen, &pictures));
        let counts = [datagrams.len(), segments.len()];
        println!(
            "key {}, TCP {tcp}: {counts:?} datagrams and segments, {found:?} with a piece of a picture",
            key.is_some()
        );
        // A controller that measures TCP first has its first pictures go that way.
        let carried = if tcp { (counts[1], found[1]) } else { (counts[0], found[0]) };
        assert!(carried.0 > 20, "{counts:?}");
        if key.is_some() {
            assert_eq!(found, [0, 0]);
        } else {
            assert!(carried.1 > 10, "{found:?} of {counts:?}");
        }
    }
}

#[test]
fn each_end_says_at_its_beginning_whether_it_is_protected() {
    let key = make("said.key");
    for (key, words) in [(None, "unauthenticated, in clear"), (Some(&*key), "encrypted (AES-128-GCM)")] {
        let (mut receiver, port, said) = listening_with_messages(&receiving(key, &[]));
        let sent = send(port, key, &["--seconds", "1s"]);
        assert!(text(&sent.stderr).lines().take(3).any(|line| line.contains(words)), "{sent:?}");
        receiver.kill().unwrap();
        receiver.wait().unwrap();
        let said = said.join().unwrap();
        assert!(said.contains(words), "{said}");
    }
}
