//! Many streams in one process: what each costs, and how late its packets leave, over decades of their number.
//!
//!     cargo bench -p fairpace-net --bench streams [-- --quick]
//!
//! Synthetic streams of 2 Mbit/s (25 frames a second, each stream's at times of its own, packets of 1,200 B) go over loopback to a receiver of as many senders, in clear. Either end is a
//! process of its own with one thread, the sender's bound to the first processor and the receiver's to the last. CPU is the thread's time over the time of the
//! run, from the first challenge on. Memory is the process's peak, less that of a process with one stream, over the other streams. Lateness is each stream's own
//! (`SendReport::pacing`); of many the median and the worst stream's are given.
//!
//! The goal: 200 streams, the worst p99 at most 2 ms.
//!
//! `-- door` measures in its place how many challenges a receiver judges in a second of its thread's time while all of its places are taken.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, missing_docs, reason = "a benchmark reads the clock")]

use fairpace_media::{ConstantSource, FrameSource, Phased};
use fairpace_net::pacing::thread_cpu;
use fairpace_net::receive::{Hall, ReceiveConfig, ReceiveReport, Receiver};
use fairpace_net::send::{SendConfig, SendEnd, Stream, run_many};
use fairpace_net::{Clock, NetError};
use fairpace_rtp::Codec;
use fairpace_rtp::challenge::Challenge;
use fairpace_rtp::feedback::Request;
use fairpace_units::{Bytes, Class, Duration, Rate};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::unistd::Pid;
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::{SocketAddr, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

const RATE: Rate = Rate::mbps(2.0);

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["receive", places] => receive(places.parse().unwrap()),
        ["send", streams, scheme, seconds, port] => {
            send(streams.parse().unwrap(), scheme, seconds.parse().unwrap(), port.parse().unwrap());
        }
        _ if words.contains(&"door") => {
            for places in [1, 10, 100, 1_000] {
                println!("{places} places: {:.0} challenges a second", door(places));
            }
        }
        _ => table(words.contains(&"--quick")),
    }
}

fn table(quick: bool) {
    let (rounds, seconds) = if quick { (1, 2) } else { (3, 8) };
    println!("streams of 2 Mbit/s in one process, in clear, {seconds} s, medians of {rounds} rounds\n");
    println!(
        "{:<14}{:>9}{:>22}{:>22}{:>20}{:>20}{:>9}",
        "", "Mbit/s", "late p50, p99 (us)", "worst p50, p99 (us)", "sender %, KiB each", "receiver %, KiB", "dropped"
    );
    let mut alone = None;
    for (streams, scheme) in [(1, "fixed"), (10, "fixed"), (100, "fixed"), (200, "fixed"), (200, "auto")] {
        let all: Vec<[f64; 10]> = (0..rounds).map(|_| pair(streams, scheme, seconds)).collect();
        let mut median: [f64; 10] = std::array::from_fn(|i| {
            let mut column: Vec<f64> = all.iter().map(|row| row[i]).collect();
            column.sort_by(f64::total_cmp);
            column[column.len() / 2]
        });
        let alone = *alone.get_or_insert([median[6], median[8]]);
        for (at, alone) in [6, 8].into_iter().zip(alone) {
            median[at] = if streams > 1 { (median[at] - alone) / f64::from(streams - 1) } else { median[at] };
        }
        let [mbps, p50, p99, worst_50, worst_99, cpu, memory, cpu_in, memory_in, dropped] = median;
        let each = |cpu: f64| cpu * 100.0 / f64::from(streams);
        println!(
            "{:<14}{mbps:>9.1}{:>22}{:>22}{:>20}{:>20}{dropped:>9.0}",
            format!("{streams}, {scheme}"),
            format!("{p50:.0}, {p99:.0}"),
            format!("{worst_50:.0}, {worst_99:.0}"),
            format!("{:.3}, {memory:.0}", each(cpu)),
            format!("{:.3}, {memory_in:.0}", each(cpu_in)),
        );
    }
    println!("\n(with one stream, KiB are those of the whole process)\ngoal: 200 streams, worst p99 at most 2000 us");
}

/// Both processes; what either of them says, the sender first.
fn pair(streams: u32, scheme: &str, seconds: u64) -> [f64; 10] {
    let start = |words: &[&str]| -> Child {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
    };
    let numbers = |text: &str| -> Vec<f64> { text.split_whitespace().map(|n| n.parse().unwrap()).collect() };
    let mut receiver = start(&["receive", &streams.to_string()]);
    let mut said = BufReader::new(receiver.stdout.take().unwrap());
    let mut port = String::new();
    said.read_line(&mut port).unwrap();
    let sender = start(&["send", &streams.to_string(), scheme, &seconds.to_string(), port.trim()]);
    let sent = sender.wait_with_output().unwrap();
    assert!(sent.status.success());
    // The end of its input is the end of the receiver.
    drop(receiver.stdin.take());
    let mut received = String::new();
    said.read_to_string(&mut received).unwrap();
    assert!(receiver.wait().unwrap().success());
    let all = [numbers(&String::from_utf8(sent.stdout).unwrap()), numbers(&received)].concat();
    all.try_into().unwrap()
}

/// The thread, and those that it starts, run on the first or the last processor.
fn bind(last: bool) {
    let mut set = CpuSet::new();
    let count = std::thread::available_parallelism().unwrap().get();
    set.set(if last { count - 1 } else { 0 }).unwrap();
    sched_setaffinity(Pid::from_raw(0), &set).unwrap();
}

/// The most memory that the process had, KiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn send(streams: usize, scheme: &str, seconds: u64, port: u16) {
    bind(false);
    let mut config = SendConfig::new(SocketAddr::from(([127, 0, 0, 1], port)));
    config.session.packet_size = Bytes::new(1_200);
    config.scheme = scheme.to_owned();
    config.duration = Some(Duration::from_secs(seconds));
    config.sample = Duration::from_secs(1);
    if scheme == "fixed" {
        // With headers, and room for a frame's last packet, which is short.
        config.settings.insert("rate".to_owned(), format!("{} bit/s", (RATE * 1.1).as_bps()));
    }
    config.max_rate = RATE * 1.5;
    let interval = Duration::from_millis(40);
    let phase = |n: usize| interval.mul_f64(n as f64 / streams as f64);
    let mut sources: Vec<_> =
        (0..streams).map(|n| Phased::new(ConstantSource::new(RATE, interval), phase(n))).collect();
    let mut observers = vec![(); streams];
    let mut all: Vec<_> = sources
        .iter_mut()
        .zip(&mut observers)
        .map(|(source, observer)| Stream { config: config.clone(), source: source as &mut dyn FrameSource, observer })
        .collect();
    let mut reports = Vec::new();
    run_many(&mut all, Clock::start(), &AtomicBool::new(false), |_, report| reports.push(report.unwrap())).unwrap();
    assert!(reports.iter().all(|report| matches!(report.end, SendEnd::Finished)));
    let bits: f64 = reports.iter().map(|r| r.socket.sent_bytes as f64 * 8.0 / r.elapsed.as_secs_f64()).sum();
    let us = |of: fn(&fairpace_net::LatenessSummary) -> Duration| {
        let mut all: Vec<_> = reports.iter().map(|report| of(&report.pacing).as_secs_f64() * 1e6).collect();
        all.sort_by(f64::total_cmp);
        [all[all.len() / 2], all[all.len() - 1]]
    };
    let ([p50, worst_50], [p99, worst_99]) = (us(|late| late.p50), us(|late| late.p99));
    let cpu = reports.last().unwrap().cpu;
    println!("{} {p50} {p99} {worst_50} {worst_99} {cpu} {}", bits / 1e6, peak());
}

/// Takes every frame of every session, and drops it.
#[derive(Default)]
struct Drain {
    dropped: u64,
}

impl Hall for Drain {
    type Sink = ();
    type Observer = ();

    fn begin(&mut self, _: u64, _: SocketAddr) -> Result<((), ()), NetError> {
        Ok(((), ()))
    }

    fn end(&mut self, _: u64, report: ReceiveReport, _: Option<()>) {
        self.dropped = report.socket.kernel_drops;
    }
}

/// A challenge of that stream.
fn challenge(token: u64, ssrc: u32, proof: Option<u32>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let (class, codec, form) = (Class::Normal, Codec::Generic, Request::Ccfb);
    let (media, dummy) = ((96, ssrc), (97, ssrc + 1));
    Challenge { token, class, codec, media, dummy, retransmission: None, fec: None, form, proof }.emit(&mut bytes);
    bytes
}

/// The challenges that a receiver of so many, all of whose places are taken, judges in a second of its thread's time.
fn door(places: usize) -> f64 {
    let clock = Clock::start();
    let mut config = ReceiveConfig::new(0);
    config.sample = Duration::from_secs(1);
    let receiver = Receiver::open(config, clock).unwrap();
    let to = ("127.0.0.1", receiver.address().unwrap().port());
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, most, most).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let served = scope.spawn(|| {
            let counts = receiver.serve_many(places, None, &mut Drain::default(), &stop).unwrap();
            (counts, thread_cpu())
        });
        let senders: Vec<UdpSocket> = (0..places).map(|_| UdpSocket::bind("127.0.0.1:0").unwrap()).collect();
        for (ssrc, sender) in (1_000_u32..).step_by(10).zip(&senders) {
            sender.connect(to).unwrap();
            let mut echo = [0; 100];
            let mut ask = |token, proof| {
                sender.send(&challenge(token, ssrc, proof)).unwrap();
                let len = sender.recv(&mut echo).unwrap();
                u32::from_be_bytes(echo[len - 4..len].try_into().unwrap())
            };
            let proof = ask(1, None);
            ask(2, Some(proof));
            let media = [&[0x80, 0xe0, 0, 1, 0, 0, 0, 0][..], &ssrc.to_be_bytes(), &[0; 10]].concat();
            sender.send(&media).unwrap();
        }
        let other = UdpSocket::bind("127.0.0.1:0").unwrap();
        other.connect(to).unwrap();
        let end = clock.now() + Duration::from_secs(2);
        let mut token = 0;
        while clock.now() < end {
            token += 1;
            other.send(&challenge(token, 7, None)).unwrap();
        }
        stop.store(true, Ordering::Relaxed);
        let (counts, cpu) = served.join().unwrap();
        counts.door.full as f64 / cpu.as_secs_f64()
    })
}

fn receive(places: usize) {
    bind(true);
    let mut config = ReceiveConfig::new(0);
    config.sample = Duration::from_secs(1);
    config.buffers.receive = Bytes::new(16 << 20);
    let clock = Clock::start();
    let receiver = Receiver::open(config, clock).unwrap();
    println!("{}", receiver.address().unwrap().port());
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _ = std::io::stdin().read(&mut [0]);
            stop.store(true, Ordering::Relaxed);
        });
        let (cpu, begin, mut drain) = (thread_cpu(), clock.now(), Drain::default());
        receiver.serve_many(places, None, &mut drain, &stop).unwrap();
        let cpu = thread_cpu().saturating_sub(cpu).as_secs_f64() / clock.now().since(begin).as_secs_f64();
        println!("{cpu} {} {}", peak(), drain.dropped);
    });
}
