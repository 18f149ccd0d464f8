//! Faults of links and processes: real `fairpace send` and `fairpace receive` at the two ends of an emulated path, and
//! something that goes wrong between them or with one of them.
//!
//! Each trial has namespaces, a path and two processes of its own, and what arrives is counted where it leaves the
//! path. Facts that must hold on a busy machine too are asserted; speeds are only printed. Skips, with the reason,
//! where the system gives no namespaces or no devices. A word as argument chooses the faults whose names contain it, a second one the
//! controllers of the full list, by commas; one that is named five times is tried five times.
//!
//! Without more: the faults that name a controller, side by side, the fault at 3 s. `FAIRPACE_FAULTS=full`: each fault with
//! every controller, 60 s, the fault at 20 s, some 20 minutes.
//!
//! One process with one thread at its start, which the kernel demands: no test harness.

#![allow(clippy::disallowed_methods, reason = "the test itself waits, and does things to processes at a certain time")]

use fairpace_emu::{EmuError, NetNs, RealTimeLock, Rights, Running, Sandbox, Side, Testbed, TestbedOptions, netlink};
use fairpace_path::{Capacity, DelayModel, GilbertElliott, LinkSpec, LossModel, Outage, QueueModel, RateModel};
use fairpace_sim::{Direction, FlowConfig, HopConfig, Observer, PacketEvent, PacketFate, Protocol, SimConfig};
use fairpace_units::{Bytes, Instant, Packets, Probability, Rate};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStderr, Command, ExitCode, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The most that every sender may send, dummies too; the link carries four times as much.
const MAX_RATE: &str = "500kbit/s";
const MAX_KBPS: f64 = 500.0;
/// Each way.
const DELAY: Duration = Duration::from_millis(20);
const RTT: f64 = 0.04;
const PORT: &str = "5004";
const DEVICE: &str = "fairpace0";
/// How long something is dark, in s.
const DARK: f64 = 5.0;
/// No flow outlives what the receiver has last agreed to by more, in s.
const CONSENT: f64 = 30.0;

/// The finding, or the reason why the fault could not be tried.
type Verdict = Result<String, String>;

struct Fault {
    name: &'static str,
    /// The controller of the short run; `None`: in the full list only.
    quick: Option<&'static str>,
    run: fn(&Trial<'_>) -> Verdict,
}

const FAULTS: &[Fault] = &[
    Fault { name: "receiver_killed", quick: Some("rcs"), run: receiver_killed },
    Fault { name: "receivers_machine_gone", quick: None, run: receivers_machine_gone },
    Fault { name: "sender_killed_and_another_one", quick: Some("tfrc"), run: sender_killed },
    Fault { name: "sender_stopped", quick: Some("rap"), run: sender_stopped },
    Fault { name: "receiver_stopped", quick: Some("aimd"), run: receiver_stopped },
    Fault { name: "senders_interface_down", quick: Some("rcs"), run: |t| interface_down(t, Side::Senders) },
    Fault { name: "receivers_interface_down", quick: None, run: |t| interface_down(t, Side::Receivers) },
    Fault { name: "loss_1_percent", quick: None, run: |t| loss(t, bernoulli(0.01)) },
    Fault { name: "loss_10_percent", quick: None, run: |t| loss(t, bernoulli(0.1)) },
    Fault { name: "loss_50_percent", quick: Some("crp"), run: |t| loss(t, bernoulli(0.5)) },
    Fault { name: "loss_in_bursts", quick: None, run: |t| loss(t, bursts()) },
    Fault { name: "reordering", quick: Some("tfrc"), run: |t| late(t, true) },
    Fault { name: "jitter", quick: None, run: |t| late(t, false) },
    Fault { name: "another_route", quick: Some("srp"), run: another_route },
    Fault { name: "smaller_mtu", quick: Some("mrp"), run: smaller_mtu },
    Fault { name: "feedback_dark", quick: Some("tfrc"), run: |t| dark(t, Direction::Back) },
    Fault { name: "data_dark", quick: Some("rap"), run: |t| dark(t, Direction::Forward) },
    Fault { name: "feedback_dark_for_good", quick: None, run: |t| dark_for_good(t, Direction::Back) },
    Fault { name: "data_dark_for_good", quick: None, run: |t| dark_for_good(t, Direction::Forward) },
    Fault { name: "port_taken", quick: Some("ldaf"), run: port_taken },
];

/// One fault with one controller. Times are in s since the path began.
struct Trial<'a> {
    sandbox: &'a Sandbox,
    control: &'static str,
    /// When it happens.
    at: f64,
    /// For how long processes are stopped.
    stopped: f64,
    /// How long the sender sends.
    seconds: f64,
}

fn main() -> ExitCode {
    let wanted = std::env::args().nth(1).unwrap_or_default();
    let controllers = std::env::args().nth(2);
    let full = std::env::var("FAIRPACE_FAULTS").is_ok_and(|v| v == "full");
    let _lock = lock();
    let sandbox = match Sandbox::enter() {
        Ok(sandbox) => sandbox,
        Err(e @ EmuError::NoNamespaces { .. }) => {
            println!("skipped: {e}");
            return ExitCode::SUCCESS;
        }
        Err(e) => panic!("{e}"),
    };
    match Testbed::open(&config(wire(), wire()), options(&sandbox)) {
        Ok(_) => {}
        Err(e @ EmuError::NoTun(_)) => {
            println!("skipped: {e}");
            return ExitCode::SUCCESS;
        }
        Err(e) => panic!("{e}"),
    }
    let faults = FAULTS.iter().filter(|f| f.name.contains(&wanted));
    let trial = |control, at, stopped, seconds| Trial { sandbox: &sandbox, control, at, stopped, seconds };
    let mut good = true;
    if full {
        // All controllers side by side: little traffic each.
        for fault in faults {
            let all = fairpace_control::schemes().iter().map(|s| s.name);
            let chosen: Vec<_> = match &controllers {
                None => all.collect(),
                Some(words) => words.split(',').filter_map(|word| all.clone().find(|name| *name == word)).collect(),
            };
            let each = chosen.into_iter().map(|name| (fault, trial(name, 20.0, 10.0, 60.0)));
            good &= side_by_side(each.collect());
        }
    } else {
        let each = faults.filter_map(|fault| Some((fault, trial(fault.quick?, 3.0, 4.0, 10.5))));
        good = side_by_side(each.collect());
    }
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Waits while another run in real time has the machine.
fn lock() -> RealTimeLock {
    for _ in 0..300 {
        match RealTimeLock::acquire() {
            Ok(lock) => return lock,
            Err(EmuError::Busy { .. }) => std::thread::sleep(Duration::from_secs(1)),
            Err(e) => panic!("{e}"),
        }
    }
    panic!("another run in real time has had the machine for five minutes");
}

/// Whether all of them went well.
fn side_by_side(trials: Vec<(&Fault, Trial<'_>)>) -> bool {
    std::thread::scope(|scope| {
        let started: Vec<_> = trials
            .iter()
            .map(|(fault, trial)| {
                let run = || {
                    let said = (fault.run)(trial);
                    let said = said.unwrap_or_else(|why| format!("not tried: {why}"));
                    println!("{} {}: {said}", fault.name, trial.control);
                };
                let name = format!("{} {}", fault.name, trial.control);
                std::thread::Builder::new().name(name).spawn_scoped(scope, run).expect("a thread")
            })
            .collect();
        // All are waited for; a panic has told of itself.
        let failed = started.into_iter().map(std::thread::ScopedJoinHandle::join).filter(Result::is_err).count();
        failed == 0
    })
}

fn wire() -> LinkSpec {
    let queue = QueueModel::DropTail { capacity: Capacity::Packets(Packets::new(50)) };
    LinkSpec {
        rate: RateModel::Fixed(Rate::mbps(2.0)),
        delay: DelayModel::constant(DELAY),
        queue,
        ..LinkSpec::default()
    }
}

fn bernoulli(p: f64) -> LossModel {
    LossModel::Bernoulli(Probability::new(p).expect("a probability"))
}

/// A tenth of the packets, five on average at a time.
fn bursts() -> LossModel {
    let p = |p| Probability::new(p).expect("a probability");
    LossModel::GilbertElliott(GilbertElliott {
        good_to_bad: p(0.2 / 9.0),
        bad_to_good: p(0.2),
        loss_in_good: p(0.0),
        loss_in_bad: p(1.0),
    })
}

fn config(forward: LinkSpec, back: LinkSpec) -> SimConfig {
    let flow = FlowConfig { packet_size: Bytes::new(1_500), ..FlowConfig::new("media", Protocol::External) };
    SimConfig { hops: vec![HopConfig::path(forward, back)], flows: vec![flow], ..SimConfig::default() }
}

fn options(sandbox: &Sandbox) -> TestbedOptions {
    let [senders, receivers] = ["senders", "receivers"].map(|name| sandbox.namespace(name).expect("may be made"));
    TestbedOptions::new(senders, receivers)
}

/// The arrivals: time (in s), direction, size in bytes.
#[derive(Clone, Default)]
struct ArrivalLog(Arc<Mutex<Vec<(f64, Direction, u32)>>>);

impl Observer for ArrivalLog {
    fn on_packet(&mut self, event: &PacketEvent) {
        if event.fate == PacketFate::Received {
            let row = (event.at.as_secs_f64(), event.packet.direction, event.packet.size);
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(row);
        }
    }
}

impl ArrivalLog {
    fn list(&self, way: Direction, from: f64, to: f64) -> Vec<(f64, u32)> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let here = all.iter().filter(|(at, w, _)| *w == way && *at >= from && *at < to);
        here.map(|(at, _, size)| (*at, *size)).collect()
    }

    /// Kilobits that arrived at the receiver.
    fn kbit(&self, from: f64, to: f64) -> f64 {
        let bytes: u64 = self.list(Direction::Forward, from, to).iter().map(|(_, size)| u64::from(*size)).sum();
        bytes as f64 * 8e-3
    }

    /// Mean rate at the receiver, kbit/s.
    fn kbps(&self, from: f64, to: f64) -> f64 {
        self.kbit(from, to) / (to - from)
    }

    /// How long after `from` the rate of a second is half of `before`, if it is before `end`.
    fn back_after(&self, from: f64, end: f64, before: f64) -> String {
        let tenths = (0..).map(|n| f64::from(n) / 10.0).take_while(|t| from + t + 1.0 <= end);
        let found = tenths.into_iter().find(|t| self.kbit(from + t, from + t + 1.0) >= before / 2.0);
        found.map_or_else(|| "not within the run".to_owned(), |t| format!("{t:.1} s later"))
    }

    /// How long after `from` the first packet of media arrives.
    fn media_after(&self, from: f64) -> Option<f64> {
        let all = self.list(Direction::Forward, from, f64::INFINITY);
        all.iter().find(|(_, size)| *size > 300).map(|(at, _)| at - from)
    }
}

/// A path with its two ends.
struct Stage {
    running: Running,
    seen: ArrivalLog,
}

impl Stage {
    fn open(t: &Trial<'_>, forward: LinkSpec, back: LinkSpec) -> Stage {
        let seen = ArrivalLog::default();
        let options = TestbedOptions { observer: Some(Box::new(seen.clone())), ..options(t.sandbox) };
        let running = Testbed::open(&config(forward, back), options).expect("opens").start().expect("starts");
        Stage { running, seen }
    }

    fn now(&self) -> f64 {
        self.running.now().as_secs_f64()
    }

    /// Waits for that time.
    fn until(&self, at: f64) {
        std::thread::sleep(Duration::from_secs_f64((at - self.now()).max(0.0)));
    }

    fn receiver(&self) -> Process {
        let args = ["receive", PORT, "-4", "--tcp", "--json"];
        let mut receiver = Process::start(self.running.namespace(Side::Receivers), &args);
        let mut line = String::new();
        receiver.stderr.read_line(&mut line).expect("UTF-8");
        assert!(line.contains("listening on"), "{line}");
        receiver
    }

    fn sender(&self, control: &str, seconds: f64) -> Process {
        let to = format!("{}:{PORT}", self.running.addresses(0).receiver);
        let seconds = format!("{seconds}s");
        let (limits, rest) = (["--max-rate", MAX_RATE, "--seconds", &seconds], ["-4", "--json"]);
        let args = [&["send", "model", &to, "--control", control][..], &limits, &rest].concat();
        Process::start(self.running.namespace(Side::Senders), &args)
    }

    fn ends(&self, t: &Trial<'_>) -> (Process, Process) {
        let receiver = self.receiver();
        (receiver, self.sender(t.control, t.seconds))
    }

    /// Changes a device, in the words of `ip link set`.
    fn device(&self, side: Side, words: &[&str]) -> Result<(), String> {
        let ip = || Command::new("ip").args(["link", "set", DEVICE]).args(words).output();
        match self.running.enter(side, ip).expect("entered") {
            Ok(out) if out.status.success() => Ok(()),
            Ok(out) => Err(String::from_utf8_lossy(&out.stderr).trim().to_owned()),
            Err(e) => Err(format!("`ip`: {e}")),
        }
    }

    /// The emulator's remark about itself, if there is one.
    fn finish(self, said: String) -> Verdict {
        let (_, emu) = self.running.finish();
        Ok(if emu.is_valid() { said } else { format!("{said} (not valid: {})", emu.invalid.join("; ")) })
    }
}

/// One of ours at one end; the kernel ends it if this test ends.
struct Process {
    child: Child,
    stderr: BufReader<ChildStderr>,
    /// Its parent, a thread, lives as long as this.
    _parent: Sender<()>,
}

struct Exit {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Process {
    fn start(namespace: &NetNs, args: &[&str]) -> Process {
        let args: Vec<String> = args.iter().map(|&a| a.to_owned()).collect();
        let (started, start) = channel();
        let (parent, over) = channel();
        let parent_thread = move || {
            let mut command = Command::new("setpriv");
            command.args(["--pdeathsig", "KILL", env!("CARGO_BIN_EXE_fairpace")]).args(args).env("NO_COLOR", "1");
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
            started.send(command.spawn()).expect("somebody waits");
            // Nothing is ever sent: the other end goes.
            let _ = over.recv();
        };
        namespace.spawn("parent", Rights::Kept, parent_thread).expect("entered");
        let mut child = start.recv().expect("an answer").expect("`setpriv` of util-linux");
        let stderr = BufReader::new(child.stderr.take().expect("piped"));
        Process { child, stderr, _parent: parent }
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id() as i32), signal).expect("it is there");
    }

    fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("our child").is_some()
    }

    /// Its end, which must come within so many seconds.
    fn end(&mut self, within: u64) -> Exit {
        for _ in 0..within * 50 {
            if self.has_ended() {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(self.has_ended(), "it has not ended for {within} s");
        let code = self.child.wait().expect("our child").code();
        let (mut out, mut err) = (String::new(), String::new());
        self.child.stdout.take().expect("piped").read_to_string(&mut out).expect("UTF-8");
        self.stderr.read_to_string(&mut err).expect("UTF-8");
        Exit { code, out, err }
    }

    /// Processor time so far, in s.
    fn cpu(&self) -> f64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).expect("it is there");
        // Behind the name, which may have blanks; the fields 14 and 15 of proc(5), in hundredths.
        let fields = stat.rsplit_once(')').expect("a name").1.split_whitespace();
        fields.skip(11).take(2).map(|ticks| ticks.parse::<f64>().expect("a number") / 100.0).sum()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Exit {
    /// The process's report about itself.
    fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|e| panic!("{e}: {} {}", self.out, self.err))
    }

    /// Checks that the process ended in order, or with one of these codes.
    fn with_code(self, or: &[i32]) -> Exit {
        assert!(self.code.is_some_and(|c| c == 0 || or.contains(&c)), "{:?}: {}", self.code, self.err);
        self
    }

    /// One clear line, and what to do.
    fn one_error(&self) -> String {
        let errors: Vec<&str> = self.err.lines().filter(|l| l.starts_with("error: ")).collect();
        assert!(errors.len() == 1 && self.err.lines().count() < 10, "{}", self.err);
        format!("`{}`, code {}", errors[0], self.code.unwrap_or(-1))
    }
}

/// Within this time a process that has nothing to wait for has ended, in s: the machine may be busy.
const PATIENCE: u64 = 60;

/// Waits for both in order.
fn both(sender: &mut Process, receiver: &mut Process, or: &[i32]) -> (Value, Exit) {
    let sent = sender.end(PATIENCE + 60).with_code(or);
    (sent.json(), receiver.end(PATIENCE))
}

/// The sender ends by itself, says why, and sends nothing more.
fn gives_up(stage: &Stage, sender: &mut Process, since: f64) -> String {
    let ended = sender.end(PATIENCE);
    let after = stage.now() - since;
    assert!(matches!(ended.code, Some(5 | 6)), "{:?}: {}", ended.code, ended.err);
    // Whatever the controller still sends: the receiver's consent is over by then. Some seconds for the machine's sake.
    assert!(after <= CONSENT + 10.0, "{after}");
    format!("the sender ended {after:.1} s later: {}", ended.one_error())
}

fn receiver_killed(t: &Trial<'_>) -> Verdict {
    let stage = Stage::open(t, wire(), wire());
    let (mut receiver, mut sender) = stage.ends(t);
    stage.until(t.at);
    let before = stage.seen.kbps(t.at - 1.0, t.at);
    assert!(before > 0.0, "nothing has come");
    receiver.signal(Signal::SIGKILL);
    assert_eq!(receiver.end(PATIENCE).code, None);
    let said = gives_up(&stage, &mut sender, t.at);
    stage.finish(said)
}

/// No refusals come back either.
fn receivers_machine_gone(t: &Trial<'_>) -> Verdict {
    let stage = Stage::open(t, wire(), wire());
    let (_receiver, mut sender) = stage.ends(t);
    stage.until(t.at);
    stage.device(Side::Receivers, &["down"])?;
    let said = gives_up(&stage, &mut sender, t.at);
    stage.finish(said)
}

fn sender_killed(t: &Trial<'_>) -> Verdict {
    let stage = Stage::open(t, wire(), wire());
    let (mut receiver, first) = stage.ends(t);
    stage.until(t.at);
    assert!(stage.seen.kbps(t.at - 1.0, t.at) > 0.0, "nothing has come");
    first.signal(Signal::SIGKILL);
    let killed = stage.now();
    let mut second = stage.sender(t.control, 4.0);
    let (sent, received) = both(&mut second, &mut receiver, &[]);
    assert!(received.code == Some(0) && received.json()["ended"] == "bye", "{}", received.err);
    // By then the packets that the first one had under way have arrived.
    let media = stage.seen.media_after(killed + 0.2).expect("the second one's media");
    let challenges = stage.seen.list(Direction::Forward, killed + 0.2, killed + 0.2 + media).len();
    assert!(sent["data"]["sent_packets"].as_u64() > Some(0), "{sent}");
    let media = media + 0.2;
    stage.finish(format!("media of another sender {media:.1} s later, after {challenges} packets without any"))
}

fn sender_stopped(t: &Trial<'_>) -> Verdict {
    let stage = Stage::open(t, wire(), wire());
    let (mut receiver, mut sender) = stage.ends(t);
    stage.until(t.at);
    let before = stage.seen.kbps(t.at - 1.0, t.at);
    sender.signal(Signal::SIGSTOP);
    stage.until(t.at + t.stopped);
    let resumed = stage.now();
    sender.signal(Signal::SIGCONT);
    let (sent, received) = both(&mut sender, &mut receiver, &[]);
    assert_eq!(received.code, Some(0), "{}", received.err);
    // Where it arrives, that is later by the delay.
    let first = stage.seen.kbit(resumed, resumed + 1.0 + DELAY.as_secs_f64());
    let allowed = MAX_KBPS * (1.0 + RTT);
    // All that it has not sent would be many times as much.
    assert!(first <= 2.0 * allowed, "{first:.0} kbit in the first second; {allowed:.0} allowed");
    assert!(stage.seen.kbit(resumed, f64::INFINITY) > 0.0, "nothing came any more: {sent}");
    let stopped = t.stopped;
    stage.finish(format!(
        "before {before:.0} kbit/s; stopped for {stopped} s; then {first:.0} kbit in the first second ({allowed:.0} allowed)"
    ))
}

fn receiver_stopped(t: &Trial<'_>) -> Verdict {
    let stage = Stage::open(t, wire(), wire());
    let (mut receiver, mut sender) = stage.ends(t);
    stage.until(t.at);
    let before = stage.seen.kbps(t.at - 1.0, t.at);
    receiver.signal(Signal::SIGSTOP);
    stage.until(t.at + t.stopped);
    let resumed = stage.now();
    receiver.signal(Signal::SIGCONT);
    let (_, received) = both(&mut sender, &mut receiver, &[]);
    let end = stage.now();
    assert_eq!(received.code, Some(0), "{}", received.err);
    assert!(stage.seen.kbit(resumed + 1.0, end) > 0.0, "nothing came any more");
    let silent = stage.seen.kbps(resumed - 1.0, resumed);
    let half = stage.seen.back_after(resumed, end, before);
    let stopped = t.stopped;
    stage.finish(format!(
        "before {before:.0} kbit/s, {silent:.0} in the last second of {stopped} s without feedback, half of it again {half}"
    ))
}

fn interface_down(t: &Trial<'_>, side: Side) -> Verdict {
    let stage = Stage::open(t, wire(), wire());
    let (mut receiver, mut sender) = stage.ends(t);
    stage.until(t.at);
    let before = stage.seen.kbps(t.at - 1.0, t.at);
    let cpu = |sender: &Process, receiver: &Process| if side == Side::Senders { sender.cpu() } else { receiver.cpu() };
    stage.device(side, &["down"])?;
    let begun = cpu(&sender, &receiver);
    stage.until(t.at + DARK);
    assert!(!sender.has_ended() && !receiver.has_ended(), "{}", sender.end(0).err);
    let share = (cpu(&sender, &receiver) - begun) / DARK;
    let up = stage.now();
    stage.device(side, &["up"])?;
    let (sent, received) = both(&mut sender, &mut receiver, &[]);
    let end = stage.now();
    assert_eq!(received.code, Some(0), "{}", received.err);
    assert!(share < 0.5, "it spins: {share}");
    if side == Side::Senders {
        assert!(sent["not_sent_packets"].as_u64() > Some(0), "{sent}");
    }
    let first = stage.seen.media_after(up).expect("media comes again");
    let half = stage.seen.back_after(up, end, before);
    let (cpu, not_sent) = (share * 100.0, &sent["not_sent_packets"]);
    stage.finish(format!(
        "before {before:.0} kbit/s; {cpu:.0} % CPU and {not_sent} packets not sent in {DARK} s; media {first:.1} s after, half the rate {half}"
    ))
}

fn loss(t: &Trial<'_>, loss: LossModel) -> Verdict {
    let link = LinkSpec { loss, ..wire() };
    let stage = Stage::open(t, link.clone(), link);
    let (mut receiver, mut sender) = stage.ends(t);
    // The circuit breaker may find it too much.
    let sent = sender.end(PATIENCE + 60).with_code(&[5, 6]);
    let end = stage.now();
    if sent.code == Some(5) {
        // Three challenges in two classes, and their answers; or a flow that backed off before it was told of anything.
        let untold = sent.err.split("has told of none of the ").nth(1);
        let untold = untold.and_then(|rest| rest.trim_start_matches("last ").split(' ').next());
        // Of a quarter of the packets it is told, with a loss of one half each way: of none of forty, once in 100,000 times.
        let is_chance = untold.and_then(|n| n.parse::<u32>().ok()).is_some_and(|n| n < 40);
        assert!(is_chance || sent.err.contains("did not answer"), "{}", sent.err);
        return stage.finish(sent.one_error());
    }
    // Without the BYE, which may be lost, it waits for 30 s.
    let received = receiver.end(PATIENCE);
    let how = if sent.code == Some(0) { String::new() } else { format!("; {}", sent.one_error()) };
    let (sent, received) = (sent.json(), received.json());
    let number = |v: &Value| v.as_u64().unwrap_or_else(|| panic!("{v} is no number"));
    assert!(number(&received["media"]["received_packets"]) > 0, "{received}");
    // A receiver report that tells of a new loss is heeded, and proves nothing: half of all lost, each may be one.
    let by_reports = sent["feedback"]["form"] == "reports" && number(&sent["data"]["lost_packets"]) > 0;
    assert!(by_reports || number(&sent["feedback"]["packets"]) > 0, "{sent}");
    let last = stage.seen.kbps(end - 5.0, end - 1.0);
    let (lost, of) = (&received["media"]["lost_packets"], &received["media"]["expected_packets"]);
    stage.finish(format!("{lost} of {of} packets lost, {last:.0} kbit/s in the end{how}"))
}

/// A random part of the delay: up to 50 ms and each packet its own, which puts every fourth out of order, or up to 30 ms in
/// order.
fn late(t: &Trial<'_>, reorder: bool) -> Verdict {
    let jitter = Duration::from_millis(if reorder { 50 } else { 30 });
    let link = LinkSpec { delay: DelayModel { propagation: DELAY, jitter, reorder }, ..wire() };
    let stage = Stage::open(t, link.clone(), link);
    let (mut receiver, mut sender) = stage.ends(t);
    let (sent, received) = both(&mut sender, &mut receiver, &[]);
    let end = stage.now();
    let received = received.json();
    let media = &received["media"];
    let number = |name: &str| media[name].as_u64().unwrap_or_else(|| panic!("{media}"));
    let (came, reordered) = (number("received_packets"), number("reordered"));
    assert!(came > 0 && number("duplicates") == 0, "{media}");
    // In order but for what changes from TCP to UDP with `tpba`, and comes by both.
    assert!(reorder || reordered * 100 <= came, "{media}");
    let share = 100.0 * reordered as f64 / came as f64;
    let last = stage.seen.kbps(end - 5.0, end - 1.0);
    let (lost, timeouts) = (&sent["data"]["lost_packets"], &sent["timeouts"]);
    stage.finish(format!(
        "{share:.0} % of {came} packets out of order, {lost} taken for lost, {timeouts} timeouts, {last:.0} kbit/s in the end"
    ))
}

/// Another path between the same two ends, whose round trip takes 600 ms, for a while.
fn another_route(t: &Trial<'_>) -> Verdict {
    let stage = Stage::open(t, wire(), wire());
    let again = |side| stage.running.enter(side, || NetNs::current("again")).expect("entered").expect("/proc");
    let seen = ArrivalLog::default();
    let options = TestbedOptions {
        network: 1,
        stray: Some(0),
        observer: Some(Box::new(seen.clone())),
        ..TestbedOptions::new(again(Side::Senders), again(Side::Receivers))
    };
    let long = LinkSpec { delay: DelayModel::constant(Duration::from_millis(300)), ..wire() };
    let detour = Testbed::open(&config(long.clone(), long), options).expect("opens").start().expect("starts");
    let route = |device| {
        let pair = stage.running.addresses(0);
        for side in Side::BOTH {
            let change = || netlink::route(pair.at(side.far()), 32, device, None);
            stage.running.enter(side, change).expect("entered").expect("a route");
        }
    };
    let (mut receiver, mut sender) = stage.ends(t);
    stage.until(t.at);
    let before = stage.seen.kbps(t.at - 1.0, t.at);
    let changed = detour.now().as_secs_f64();
    route("fairpace1");
    stage.until(t.at + DARK);
    let back = stage.now();
    route(DEVICE);
    let long_way = seen.kbps(changed + 0.3, changed + DARK);
    let (sent, received) = both(&mut sender, &mut receiver, &[]);
    let end = stage.now();
    assert_eq!(received.code, Some(0), "{}", received.err);
    assert!(long_way > 0.0 && stage.seen.kbit(back + 0.5, end) > 0.0, "{sent}");
    let half = stage.seen.back_after(back, end, before);
    let (timeouts, lost) = (&sent["timeouts"], &sent["data"]["lost_packets"]);
    detour.finish();
    stage.finish(format!(
        "before {before:.0} kbit/s, {long_way:.0} while the round trip takes 600 ms, half the rate before {half}; {timeouts} timeouts, {lost} taken for lost"
    ))
}

fn smaller_mtu(t: &Trial<'_>) -> Verdict {
    const MTU: u32 = 700;
    let stage = Stage::open(t, wire(), wire());
    let (mut receiver, mut sender) = stage.ends(t);
    stage.until(t.at);
    let largest = |from, to| stage.seen.list(Direction::Forward, from, to).iter().map(|(_, size)| *size).max();
    let before = largest(0.0, t.at);
    stage.device(Side::Senders, &["mtu", &MTU.to_string()])?;
    let (sent, received) = both(&mut sender, &mut receiver, &[]);
    assert_eq!(received.code, Some(0), "{}", received.err);
    let after = largest(t.at + 1.0, f64::INFINITY);
    assert!(before > Some(MTU), "{before:?}");
    assert!(after > Some(300) && after <= Some(MTU), "{after:?}");
    let lost = &sent["not_sent_packets"];
    let (before, after) = (before.unwrap_or(0), after.unwrap_or(0));
    let media = stage.seen.media_after(t.at + 0.1).expect("media goes on") + 0.1;
    // Whoever begins now knows it, and loses nothing to find out.
    let (mut receiver, began) = (stage.receiver(), stage.now());
    let (sent, received) = both(&mut stage.sender(t.control, 2.0), &mut receiver, &[]);
    assert_eq!(received.code, Some(0), "{}", received.err);
    assert_eq!((&sent["packet_size_bytes"], &sent["not_sent_packets"]), (&MTU.into(), &0.into()));
    let largest_then = largest(began, f64::INFINITY);
    assert!(largest_then > Some(300) && largest_then <= Some(MTU), "{largest_then:?}");
    stage.finish(format!(
        "{lost} packets not sent; the largest has {after} B instead of {before}; media goes on {media:.2} s later; the next sender's largest has {} B from the beginning",
        largest_then.unwrap_or(0)
    ))
}

/// The direction given loses everything for a while.
fn dark(t: &Trial<'_>, way: Direction) -> Verdict {
    let outage = Outage::of(Instant::from_secs_f64(t.at), Duration::from_secs_f64(DARK));
    let link = LinkSpec { outage: vec![outage], ..wire() };
    let stage = match way {
        Direction::Forward => Stage::open(t, link, wire()),
        Direction::Back => Stage::open(t, wire(), link),
    };
    let (mut receiver, mut sender) = stage.ends(t);
    let (sent, received) = both(&mut sender, &mut receiver, &[]);
    let end = stage.now();
    assert_eq!(received.code, Some(0), "{}", received.err);
    let (before, over) = (stage.seen.kbps(t.at - 1.0, t.at), t.at + DARK);
    let during = stage.seen.list(way, t.at + 0.2, over - 0.2).len();
    assert_eq!(during, 0, "it is not dark");
    let media = stage.seen.media_after(over).expect("media comes again");
    let (last, first) = (stage.seen.kbps(over - 1.0, over), stage.seen.kbps(over, over + 1.0));
    let half = stage.seen.back_after(over, end, before);
    let timeouts = &sent["timeouts"];
    stage.finish(format!(
        "before {before:.0} kbit/s, {last:.0} in the last second of {DARK} s; then media {media:.1} s later, {first:.0} kbit/s in the first second, half the rate {half}; {timeouts} timeouts"
    ))
}

fn dark_for_good(t: &Trial<'_>, way: Direction) -> Verdict {
    let outage = Outage::of(Instant::from_secs_f64(t.at), Duration::from_secs(3_600));
    let link = LinkSpec { outage: vec![outage], ..wire() };
    let stage = match way {
        Direction::Forward => Stage::open(t, link, wire()),
        Direction::Back => Stage::open(t, wire(), link),
    };
    let (_receiver, mut sender) = stage.ends(t);
    stage.until(t.at);
    let said = gives_up(&stage, &mut sender, t.at);
    let last = stage.seen.kbps(stage.now() - 2.0, stage.now());
    stage.finish(format!("{said}; {last:.0} kbit/s arrived in its last 2 s"))
}

fn port_taken(t: &Trial<'_>) -> Verdict {
    let stage = Stage::open(t, wire(), wire());
    let (mut receiver, mut sender) = (stage.receiver(), stage.sender(t.control, 3.0));
    let mut second = Process::start(stage.running.namespace(Side::Receivers), &["receive", PORT, "-4"]);
    let refused = second.end(PATIENCE);
    assert!(refused.code == Some(2) && refused.err.contains("is in use"), "{}", refused.err);
    let said = refused.one_error();
    // The first one does not notice.
    let (_, received) = both(&mut sender, &mut receiver, &[]);
    assert!(received.code == Some(0), "{}", received.err);
    assert!(received.json()["media"]["received_packets"].as_u64() > Some(0), "{}", received.out);
    stage.finish(said)
}
