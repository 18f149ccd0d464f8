//! Forged RTCP against a live `send`, from the receiver's own address and port, in a network of the test's own, beside a session without it:
//! no frame is lost; one in fifty may be late. Each attack prints a line of JSON. Skips, with the reason, without root.
//!
//!     cargo test -p fairpace --test forged_feedback -- --nocapture                           # 5,000 a second for 2 s each
//!     FAIRPACE_ATTACKS=full cargo test --release -p fairpace --test forged_feedback -- --nocapture   # 56,000 a second for 8 s each
//!
//! The forger is the strongest there is without being on the path: somebody has told it both ports and SSRCs, and it has seen some
//! seconds of what the receiver sent. Its packets are marked by their TTL, and come faster than the receiver's.

#![allow(clippy::disallowed_methods, reason = "the test forges at a pace, for a time")]

mod common {
    #[allow(dead_code, reason = "each test file uses its part")]
    pub(crate) mod program;
    #[allow(dead_code, reason = "each test file uses its part")]
    pub(crate) mod wire;
}

use common::program::command;
use common::wire::{json, listening};
use nix::sched::{CloneFlags, unshare};
use serde_json::{Value, json as object};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io::Read as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The TTL of forged packets.
const MARK: u8 = 63;
/// Real packets have the system's.
const HEADERS: usize = 28;
/// The type of RTCP packets that are the project's own, and the subtype of an echo.
const APP: u8 = 204;
const ECHO: u8 = 1;
/// Forged packets leave in batches, so far apart.
const BATCH_EACH: Duration = Duration::from_millis(1);

/// A kind of attack, and what it makes of the `n`-th real packet and random bits.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Attack {
    None,
    RandomBytes,
    RandomSsrc,
    WrongNumbers,
    Replay,
    Echo,
    Bye,
}

const ATTACKS: [(Attack, &str); 7] = [
    (Attack::None, "nothing"),
    (Attack::RandomBytes, "random bytes"),
    (Attack::RandomSsrc, "feedback with random SSRCs"),
    (Attack::WrongNumbers, "feedback with the right SSRCs and random numbers"),
    (Attack::Replay, "real feedback again"),
    (Attack::Echo, "echoes of challenges with random tokens"),
    (Attack::Bye, "BYE with the right SSRC"),
];

/// How hard, and how long.
struct Strength {
    per_second: u32,
    lasts: Duration,
}

impl Strength {
    fn wanted() -> Strength {
        if std::env::var("FAIRPACE_ATTACKS").is_ok_and(|v| v == "full") {
            Strength { per_second: 56_000, lasts: Duration::from_secs(8) }
        } else {
            Strength { per_second: 5_000, lasts: Duration::from_secs(2) }
        }
    }
}

/// Random bits that need not be good ones (xorshift64).
struct Bits(u64);

impl Bits {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn fill(&mut self, bytes: &mut [u8]) {
        bytes.iter_mut().for_each(|byte| *byte = self.next() as u8);
    }
}

/// The RTCP packets of a datagram.
fn packets(mut datagram: &mut [u8]) -> impl Iterator<Item = &mut [u8]> {
    std::iter::from_fn(move || {
        let rest = std::mem::take(&mut datagram);
        if rest.len() < 12 {
            return None;
        }
        let words = usize::from(u16::from_be_bytes([rest[2], rest[3]])) + 1;
        let packet;
        (packet, datagram) = rest.split_at_mut((4 * words).min(rest.len()));
        Some(packet)
    })
}

/// The forger's knowledge of the two.
#[derive(Default)]
struct Seen {
    /// The sender's port.
    sender: u16,
    /// RTCP that the receiver sent, echoes apart.
    feedback: Vec<Vec<u8>>,
    echo: Vec<u8>,
}

impl Seen {
    /// Looks on for a while: until feedback and an echo have come, and a second and a half at least.
    fn of(receiver: u16) -> Seen {
        let socket = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::UDP)).expect("root may");
        socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let mut socket = socket;
        let (mut seen, begun) = (Seen::default(), Instant::now());
        while begun.elapsed() < Duration::from_millis(1_500) || seen.feedback.len() < 10 || seen.echo.is_empty() {
            let mut packet = [0; 2_048];
            let n = socket.read(&mut packet).expect("packets pass");
            let port = |at: usize| u16::from_be_bytes([packet[at], packet[at + 1]]);
            if n <= HEADERS + 8 || packet[0] != 0x45 || port(20) != receiver {
                continue;
            }
            seen.sender = port(22);
            let bytes = packet[HEADERS..n].to_vec();
            let is_echo = bytes[1] == APP && bytes[0] & 31 == ECHO;
            if is_echo { seen.echo = bytes } else { seen.feedback.push(bytes) }
        }
        seen
    }

    /// The next forged datagram.
    fn forge(&self, attack: Attack, bits: &mut Bits) -> Vec<u8> {
        let any = |bits: &mut Bits| self.feedback[bits.next() as usize % self.feedback.len()].clone();
        let mut bytes = match attack {
            Attack::RandomBytes => vec![0; 8 + bits.next() as usize % 200],
            Attack::Echo => self.echo.clone(),
            _ => any(bits),
        };
        match attack {
            Attack::RandomBytes => bits.fill(&mut bytes),
            Attack::RandomSsrc => packets(&mut bytes).for_each(|packet| bits.fill(&mut packet[4..8])),
            // Header, SSRCs and names stay, and half of the other words.
            Attack::WrongNumbers | Attack::Echo => packets(&mut bytes).for_each(|packet| {
                packet.chunks_mut(4).skip(3).for_each(|word| {
                    if bits.next() & 1 == 1 {
                        bits.fill(word);
                    }
                });
            }),
            Attack::Bye => {
                bytes.truncate(8);
                bytes[..4].copy_from_slice(&[0x81, 203, 0, 1]);
            }
            Attack::Replay | Attack::None => {}
        }
        bytes
    }
}

/// Sends forged packets to the sender as if from the receiver's port; how many in all.
fn flood(seen: &Seen, receiver: u16, attack: Attack, strength: &Strength) -> u64 {
    let socket = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::from(255))).expect("root may");
    let target = SockAddr::from(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    let mut bits = Bits(0x9e37_79b9_7f4a_7c15);
    let (begun, mut forged) = (Instant::now(), 0);
    while begun.elapsed() < strength.lasts {
        let due = (begun.elapsed().as_secs_f64() * f64::from(strength.per_second)) as u64;
        while forged < due {
            let bytes = seen.forge(attack, &mut bits);
            // The kernel fills in length and checksum of IP; UDP's may be absent in IPv4.
            let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0x40, 0, MARK, 17, 0, 0, 127, 0, 0, 1, 127, 0, 0, 1];
            packet.extend(receiver.to_be_bytes());
            packet.extend(seen.sender.to_be_bytes());
            packet.extend(((bytes.len() + 8) as u16).to_be_bytes());
            packet.extend([0, 0]);
            packet.extend(bytes);
            socket.send_to(&packet, &target).expect("loopback takes it");
            forged += 1;
        }
        std::thread::sleep(BATCH_EACH);
    }
    forged
}

/// Datagrams that sockets of this network gave to their programs, and those for which there was no room.
fn udp_counters() -> [u64; 2] {
    let text = std::fs::read_to_string("/proc/thread-self/net/snmp").unwrap();
    let [names, values] = [0, 1].map(|n| text.lines().filter(|line| line.starts_with("Udp: ")).nth(n).unwrap());
    let of = |name| names.split(' ').zip(values.split(' ')).find(|(n, _)| *n == name).unwrap().1.parse().unwrap();
    ["InDatagrams", "RcvbufErrors"].map(of)
}

/// One session under one attack: what became of its frames.
fn under(attack: Attack, name: &str, strength: &Strength) -> Value {
    let seconds = (strength.lasts.as_secs() + 3).to_string();
    let (receiver, port) = listening(&["receive", "0", "-4", "--json"]);
    let to = format!("127.0.0.1:{port}");
    let args = ["send", "model", &to, "--seconds", &seconds, "--json", "-q"];
    let sender = command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let seen = Seen::of(port);
    let before = udp_counters();
    let forged = if attack == Attack::None { 0 } else { flood(&seen, port, attack, strength) };
    let [read, no_room] = [0, 1].map(|n| udp_counters()[n] - before[n]);
    // The sender took them in: an attack that reaches nobody shows nothing.
    assert!(10 * (read + no_room) >= 9 * forged, "{name}: {forged}, {read}, {no_room}");
    let sent = sender.wait_with_output().unwrap();
    assert!(sent.status.success(), "{name}: {sent:?}");
    let (sent, received) = (json(&sent), json(&receiver.wait_with_output().unwrap()));
    let frames = &received["frames"];
    object!({
        "attack": name,
        "per_second": (forged as f64 / strength.lasts.as_secs_f64()).round(),
        "no_room": no_room,
        "ended": sent["ended"],
        "pictures": sent["pictures"],
        "in_time": frames["in_time"],
        "late": frames["late"],
        // With holes, or in need of one that is lost; and those of which nothing came.
        "lost": frames["lost"],
        "damaged": frames["damaged"],
        "missing": sent["pictures"].as_u64().unwrap_or(0).saturating_sub(
            ["in_time", "late", "damaged", "lost"].iter().filter_map(|name| frames[*name].as_u64()).sum()),
        "lost_packets": received["media"]["lost_packets"],
        "media_kbps": (received["media"]["bytes"].as_f64().unwrap_or(0.0) * 8e-3 / received["elapsed_s"].as_f64().unwrap_or(1.0)).round(),
        "sender_cpu": sent["cpu"],
    })
}

#[test]
fn forged_feedback_costs_no_frame() {
    if let Err(e) = unshare(CloneFlags::CLONE_NEWNET) {
        return println!("skipped: a network of its own needs root: {e}");
    }
    assert!(Command::new("ip").args(["link", "set", "lo", "up"]).status().expect("`ip` of iproute2").success());
    let strength = Strength::wanted();
    let lines: Vec<Value> = ATTACKS.iter().map(|(attack, name)| under(*attack, name, &strength)).collect();
    println!();
    lines.iter().for_each(|line| println!("{line}"));
    let number = |line: &Value, name: &str| line[name].as_f64().unwrap_or(f64::NAN);
    for line in &lines {
        for fate in ["lost", "damaged"] {
            assert_eq!(number(line, fate), 0.0, "{fate}: {line}");
        }
        // A busy machine may be late for a frame now and then, or leave one out, with an attack or without.
        for fate in ["late", "missing"] {
            let more = number(line, fate) - number(&lines[0], fate);
            assert!(more <= number(line, "pictures") / 50.0, "{fate}: {line}");
        }
        assert!(number(line, "media_kbps") >= 0.9 * number(&lines[0], "media_kbps"), "{line}");
        assert_eq!(line["ended"], "finished", "{line}");
    }
}
