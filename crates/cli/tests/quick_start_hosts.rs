//! How soon a video begins between two hosts over a satellite with demand assignment: `send` and `receive` in networks of their own, `relay`
//! in a third between them; for each T_q that [qsd §3.4] names, beside the simulator with the same scenario and the fluid model. And beside
//! the kernel's TCP, which `relay` does not carry: in `run --world emu`. Skips, with the reason, without root.

#![allow(clippy::disallowed_methods, reason = "the test itself waits, and measures what a user would")]

mod common {
    #[allow(dead_code, reason = "each test file uses its part")]
    pub(crate) mod capture;
    pub(crate) mod program;
    pub(crate) mod turn;
    pub(crate) mod wire;
}

use common::capture::packets;
use common::program::{command, folder, text};
use common::turn::wait_for;
use common::wire::{json, listening};
use fairpace_analysis::fluid::{self, Flow, Link, Strategy};
use fairpace_path::DamaSpec;
use fairpace_units::{Bytes, Duration, QsRate, Rate};
use nix::sched::{CloneFlags, setns, unshare};
use serde_json::Value;
use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Instant;

/// The video has begun when its receiver has so much: the first second.
const FIRST: u64 = 32_000;
/// 25 frames per second of one packet each, 60 B of headers in it: 236 kbit/s.
const FRAMES: &str = "constant:224 kbit/s";
const PACKET: u64 = 1_180;
const RATE_KBPS: f64 = 236.0;
/// Packets of the video are longer, all others shorter.
const SHORT: u32 = 200;
/// Real packets are so much later than the simulator's, in ms, or less: at the edge of a multi-frame that decides on 273 ms.
const LATER_MS: [u64; 4] = [0, 5, 10, 20];
/// Runs of a machine that was too busy are made again, so many times in all, and none begins after so many seconds.
const TRIES: usize = 3;
const LAST_TRY_S: u64 = 25;

/// The terminal's treatment of a request, if there is one.
#[derive(Clone, Copy)]
struct Way {
    name: &'static str,
    /// The table `satellite.quick_start`.
    agent: &'static str,
    /// In the fluid model (`docs/fluid.md`), which knows no packets where X_recv counts one or none.
    fluid: Option<fn(&Link) -> Strategy>,
}

const WAYS: [Way; 5] = [
    Way { name: "none", agent: "", fluid: None },
    Way { name: "qs", agent: "agent = \"qs\"", fluid: None },
    Way { name: "zero", agent: "agent = \"qsd\"\nhold = \"0 s\"", fluid: Some(|_| Strategy::Qsd(Duration::ZERO)) },
    Way {
        name: "opt",
        agent: "agent = \"qsd\"\nhold = \"opt\"",
        fluid: Some(|link| Strategy::Qsd(Duration::from_secs_f64(link.t_q_opt_s()))),
    },
    Way {
        name: "max",
        agent: "agent = \"qsd\"\nhold = \"max\"",
        fluid: Some(|link| Strategy::Qsd(Duration::from_secs_f64(link.t_q_max_s()))),
    },
];

impl Way {
    fn asks(&self) -> bool {
        !self.agent.is_empty()
    }

    /// The scenario of all worlds, whose video begins at `start_s`.
    fn scenario(&self, start_s: f64, further: &str) -> String {
        let agent = if self.asks() { format!("[satellite.quick_start]\n{}\n", self.agent) } else { String::new() };
        let ask = if self.asks() { "quick_start = \"320 kbit/s\"\n" } else { "" };
        format!(
            "duration = \"9 s\"\n[satellite]\nframe = \"large\"\nterminals = 5\n{agent}[[flows]]\nname = \"tv\"\n\
             controller = \"tfrc\"\nparameters = {{ rfc = 3448, measured_by = \"receiver\" }}\n{ask}\
             source = {{ kind = \"constant\", rate = \"{RATE_KBPS} kbit/s\" }}\npacket_size = \"{PACKET} B\"\n\
             min_rate = \"50 kbit/s\"\nterminals = [1, 2]\nstart = \"{start_s} s\"\n{further}"
        )
    }
}

/// A beginning, in seconds of the path's time.
#[derive(Clone, Copy, Debug)]
struct Beginning {
    /// The challenge.
    asked: f64,
    /// The first packet of the video.
    left: f64,
    /// The receiver has had [`FIRST`] bytes.
    begun: f64,
}

impl Beginning {
    /// Of the flow of that IP protocol.
    fn of(capture: &Path, protocol: u8) -> Option<Beginning> {
        let all: Vec<_> = packets(capture).into_iter().filter(|p| p.header.get(9) == Some(&protocol)).collect();
        let video = || all.iter().filter(|p| p.length > SHORT);
        let mut bytes = 0;
        let begun = video().filter(|p| p.interface == 1).find(|p| {
            bytes += u64::from(p.length);
            bytes >= FIRST
        })?;
        let left = video().find(|p| p.interface == 0)?;
        Some(Beginning { asked: all.first()?.at_s, left: left.at_s, begun: begun.at_s })
    }

    fn start_up(&self) -> f64 {
        self.begun - self.asked
    }
}

const UDP: u8 = 17;
const TCP: u8 = 6;

fn file(name: &str) -> PathBuf {
    folder("quick-start-hosts").join(name)
}

/// The simulator's.
fn simulated(way: &Way, start_s: f64, further: &str) -> Beginning {
    let name = format!("sim-{}-{start_s}-{}", way.name, further.len());
    let (scenario, capture) = (file(&format!("{name}.toml")), file(&format!("{name}.pcapng")));
    std::fs::write(&scenario, way.scenario(start_s, further)).unwrap();
    let out = file(&name);
    let [scenario, capture_of, out] = [&scenario, &capture, &out].map(|path| path.to_str().unwrap());
    let ran = command(&["run", scenario, "--quiet", "--force", "--pcap", capture_of, "--out", out]).output().unwrap();
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    Beginning::of(&capture, UDP).expect("the video begins")
}

/// The least and the most start-up of the simulator's for a real beginning.
fn simulated_near(way: &Way, asked: f64, further: &str) -> [f64; 2] {
    let starts = LATER_MS.map(|ms| asked + ms as f64 / 1e3);
    let all = starts.map(|start| simulated(way, (start * 1e4).round() / 1e4, further).start_up());
    [all.into_iter().fold(f64::INFINITY, f64::min), all.into_iter().fold(0.0, f64::max)]
}

/// The start-up after the first packet by the fluid model, and what the real one may differ by: a tenth, and a multi-frame, as
/// the last packet comes by the slots of one or of the next.
fn fluid(strategy: fn(&Link) -> Strategy, left: f64) -> (f64, f64) {
    let link = Link::try_from(&DamaSpec::large()).unwrap();
    let quick_start = QsRate::at_least(Rate::kbps(320.0)).unwrap();
    let flow = Flow { rate: Rate::kbps(RATE_KBPS), packet: Bytes::new(PACKET), quick_start };
    let phase = Duration::from_secs_f64(left % link.t_b.as_secs_f64());
    let run = fluid::run(&link, &flow, strategy(&link), phase);
    let start_up = run.receiver.time_of(FIRST as f64 * 8.0).unwrap();
    (start_up, 0.1 * start_up + link.t_f.as_secs_f64())
}

/// Real-time priority for this thread and what it starts from now on, or none: where the system gives it, a busy machine is in time all the same.
fn urgent(is_urgent: bool) {
    let (thread, policy) = (nix::unistd::gettid().to_string(), if is_urgent { ["-f", "10"] } else { ["-o", "0"] });
    let _ = Command::new("chrt").args([policy[0], "-p", policy[1], &thread]).output();
}

/// Whether one more try is to be made.
fn again(attempt: usize, begun: Instant) -> bool {
    attempt < TRIES && begun.elapsed().as_secs() < LAST_TRY_S
}

fn ip(words: &str) {
    let done = Command::new("ip").args(words.split(' ')).output().expect("`ip`");
    assert!(done.status.success(), "ip {words}: {}", text(&done.stderr));
}

/// A new network, in which this thread is from now on.
fn network() -> File {
    unshare(CloneFlags::CLONE_NEWNET).expect("root may");
    ip("link set lo up");
    File::open("/proc/thread-self/ns/net").expect("/proc")
}

/// In which this thread, and whatever it starts, is from now on.
fn enter(network: &File) {
    setns(network, CloneFlags::CLONE_NEWNET).expect("this thread has made it");
}

/// Sender, router and receiver in a row. The networks end with these files and the programs in them.
fn in_a_row() -> [File; 3] {
    let [sender, receiver, router] = [network(), network(), network()];
    let path = |network: &File| format!("/proc/{}/fd/{}", std::process::id(), network.as_raw_fd());
    for (near, far, host, net) in [("left", "out", &sender, 1), ("right", "in", &receiver, 2)] {
        ip(&format!("link add {near} type veth peer name {far} netns {}", path(host)));
        for (network, device, end) in [(&router, near, 1), (host, far, 2)] {
            enter(network);
            ip(&format!("address add 10.8.{net}.{end}/24 dev {device}"));
            ip(&format!("link set {device} up"));
        }
        enter(&router);
    }
    [sender, router, receiver]
}

/// The same between two hosts through the relay, and what the sender and the relay say at the end.
fn between_hosts(way: &Way) -> (Option<Beginning>, Value, Value) {
    let [sender, router, receiver] = in_a_row();
    urgent(true);
    let (scenario, capture) = (file(&format!("{}.toml", way.name)), file(&format!("{}.pcapng", way.name)));
    std::fs::write(&scenario, way.scenario(0.0, "")).unwrap();
    let [scenario, pcap] = [&scenario, &capture].map(|path| path.to_str().unwrap());
    enter(&receiver);
    let (receiving, port) = listening(&["receive", "0", "-4", "--json"]);
    enter(&router);
    let to = format!("10.8.2.2:{port}");
    let relay =
        ["relay", scenario, "--listen", "0", "-4", "--to", &to, "--json", "--seconds", "9500ms", "--pcap", pcap];
    let (relaying, port) = listening(&[&relay[..], &["--force"]].concat());
    enter(&sender);
    let to = format!("10.8.1.1:{port}");
    let size = format!("{}B", PACKET + 20);
    let mut send = vec!["send", FRAMES, &to, "-4", "--seconds", "5", "--json", "--packet-size", &size, "--no-repair"];
    send.extend(["--control", "tfrc", "--set", "rfc=3448", "--set", "measured_by=receiver"]);
    if way.asks() {
        send.extend(["--quick-start", "320kbit/s"]);
    }
    let sent = command(&send).output().unwrap();
    assert!(sent.status.success(), "{}: {}", way.name, text(&sent.stderr));
    let relayed = relaying.wait_with_output().unwrap();
    receiving.wait_with_output().unwrap();
    urgent(false);
    (Beginning::of(&capture, UDP), json(&sent), json(&relayed))
}

/// Within a tenth of what the simulator has for packets that are a little later.
fn assert_near(what: &str, real: f64, [least, most]: [f64; 2]) {
    println!("{what}: real {real:.2} s, simulated {least:.2} to {most:.2}");
    assert!((0.9 * least..=1.1 * most).contains(&real), "{what}: {real:.2} s, simulated {least:.2} to {most:.2}");
}

/// Whether the machine let a run be what it is, and if not what it says.
fn is_valid(what: &str, invalid: &Value, attempt: usize) -> bool {
    let valid = invalid.as_array().is_none_or(|all| all.is_empty());
    if !valid {
        println!("{what}: not valid, attempt {} of {TRIES}: {invalid}", attempt + 1);
    }
    valid
}

fn begins_as_simulated(way: &Way) {
    let begun = Instant::now();
    for attempt in (0..).take_while(|n| again(*n, begun)) {
        let (beginning, sent, relayed) = between_hosts(way);
        if !is_valid(way.name, &relayed["invalid"], attempt) {
            continue;
        }
        let real = beginning.unwrap_or_else(|| panic!("{}: the video does not begin: {sent}", way.name));
        if way.asks() {
            assert_eq!(sent["quick_start"]["answer"], "approved", "{}: {sent}", way.name);
            assert_eq!(relayed["quick_start"]["approved"], 1, "{}: {relayed}", way.name);
        }
        assert_near(way.name, real.start_up(), simulated_near(way, real.asked, ""));
        if let Some(strategy) = way.fluid {
            let (has, (model, within)) = (real.begun - real.left, fluid(strategy, real.left));
            let said = format!("{}: from its first packet on {has:.2} s, by the fluid model {model:.2}", way.name);
            println!("{said}");
            assert!((has - model).abs() <= within, "{said}");
        }
        return;
    }
    println!("skipped: {}: this machine has too much else to do", way.name);
}

/// The kernel's CUBIC between two other terminals, set and recorded.
fn begins_beside_the_kernels_tcp() {
    let way = &WAYS[3];
    let beside = |tcp: &str| {
        format!("[[flows]]\nname = \"beside\"\ncontroller = \"{tcp}\"\nterminals = [3, 4]\nstart = \"100 ms\"\n")
    };
    let (_network, begun) = (network(), Instant::now());
    for attempt in (0..).take_while(|n| again(*n, begun)) {
        let [scenario, capture, out] = ["emu.toml", "emu.pcapng", "emu"].map(file);
        std::fs::write(&scenario, way.scenario(0.1, &beside("tcp-cubic"))).unwrap();
        let [scenario, pcap, dir] = [&scenario, &capture, &out].map(|path| path.to_str().unwrap());
        let args = ["run", scenario, "--world", "emu", "--quiet", "--force", "--pcap", pcap, "--out", dir];
        urgent(true);
        let ran = wait_for(|| command(&args).output().unwrap());
        urgent(false);
        if ran.status.code() == Some(4) {
            return println!("skipped: {}", text(&ran.stderr).lines().next().unwrap_or_default());
        }
        assert!(ran.status.success(), "{}", text(&ran.stderr));
        let summary: Value = serde_json::from_str(&std::fs::read_to_string(out.join("summary.json")).unwrap()).unwrap();
        if !is_valid("beside TCP", &summary["emulated"]["invalid"], attempt) {
            continue;
        }
        assert!(summary["emulated"]["algorithms"].to_string().contains("cubic"), "{}", summary["emulated"]);
        let real = Beginning::of(&capture, UDP).expect("the video begins");
        let tcp = Beginning::of(&capture, TCP).expect("TCP begins");
        println!("beside TCP: the kernel's CUBIC has its first {FIRST} B after {:.2} s", tcp.start_up());
        return assert_near("beside TCP", real.start_up(), simulated_near(way, real.asked, &beside("tcp-sack")));
    }
    println!("skipped: beside TCP: this machine has too much else to do");
}

#[test]
fn a_video_between_two_hosts_begins_as_soon_as_simulated_for_each_hold() {
    if !nix::unistd::geteuid().is_root() {
        return println!("skipped: networks and Quick-Start need root");
    }
    thread::scope(|scope| {
        for way in &WAYS {
            scope.spawn(|| begins_as_simulated(way));
        }
        scope.spawn(begins_beside_the_kernels_tcp);
    });
}
