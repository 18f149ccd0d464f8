//! The emulator beside a plain TUN copy loop, in turn in the same run: the kernel's TCP without delay, and the
//! accuracy of round trips at 25 ms each way.
//!
//!     cargo bench -p fairpace-emu [-- --quick]
//!
//! The plain loop is what there is at least: one thread, `poll` and a timerfd, `read` and `write` of whole
//! packets, a first-in-first-out delay line, 64 packets per look. The baseline reads no header and counts nothing.
//! Both loops have namespaces, devices and endpoints of the same make, and real-time priority where the system allows
//! it. CPU is that of the loop's thread, in which the kernel also does TCP's reception. The endpoints share the
//! machine's processors with it.
//!
//! Only numbers of one run are comparable. The goals are ratios, of each round for itself; medians of the rounds.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, missing_docs, reason = "a benchmark reads the clock")]

use fairpace_emu::{
    EmuError, EmuReport, FlowAddresses, NetNs, Sandbox, Side, Testbed, TestbedOptions, netlink, spawn_first,
};
use fairpace_net::pacing::thread_cpu;
use fairpace_path::quick_start::RouterParams;
use fairpace_path::{Capacity, DelayModel, GilbertElliott, LinkSpec, LossModel, Outage, QueueModel, RateModel};
use fairpace_sim::{FlowConfig, HopConfig, Protocol, SimConfig};
use fairpace_units::{Duration, Instant, Packets, Probability, Rate};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use socket2::{Domain, Protocol as IpProtocol, SockAddr, Socket, Type};
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::mem::MaybeUninit;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant as Wall;
use tun_rs::{DeviceBuilder, SyncDevice};

fn main() {
    let quick = std::env::args().any(|a| a == "--quick");
    let (rounds, seconds, pings) = if quick { (1, 1.0, 50) } else { (15, 1.0, 200) };
    let sandbox = match Sandbox::enter() {
        Ok(sandbox) => sandbox,
        Err(e @ (EmuError::NoNamespaces { .. } | EmuError::NoTun(_))) => return println!("skipped: {e}"),
        Err(e) => panic!("{e}"),
    };
    throughput(&sandbox, rounds, seconds);
    round_trips(&sandbox, rounds.min(7), pings);
}

/// Every feature of a link, none of which holds up or takes away what the kernel can send.
fn everything() -> LinkSpec {
    let p = |p| Probability::new(p).unwrap();
    LinkSpec {
        rate: RateModel::Fixed(Rate::mbps(100_000.0)),
        delay: DelayModel::constant(Duration::from_nanos(1)),
        queue: QueueModel::TwoPriority { capacity: Capacity::Packets(Packets::new(100_000)) },
        loss: LossModel::GilbertElliott(GilbertElliott {
            good_to_bad: p(1e-12),
            bad_to_good: p(0.5),
            loss_in_good: p(1e-12),
            loss_in_bad: p(0.5),
        }),
        outage: vec![Outage::of(Instant::from_secs_f64(1e6), Duration::from_secs(1))],
        quick_start: Some(RouterParams::default()),
        ..LinkSpec::default()
    }
}

struct Measured {
    mbps: f64,
    cpu_per_gbit: f64,
}

fn throughput(sandbox: &Sandbox, rounds: usize, seconds: f64) {
    let cases: [(&str, &dyn Fn() -> Measured); 4] = [
        ("plain copy loop", &|| plain_tcp(sandbox, seconds)),
        ("emulator, nothing on", &|| our_tcp(sandbox, LinkSpec::default(), false, seconds)),
        ("emulator, every feature on", &|| our_tcp(sandbox, everything(), false, seconds)),
        ("  and segmentation offload", &|| our_tcp(sandbox, everything(), true, seconds)),
    ];
    let mut all: Vec<Vec<Measured>> = cases.iter().map(|_| Vec::new()).collect();
    for _ in 0..rounds {
        for ((_, case), measured) in cases.iter().zip(&mut all) {
            measured.push(case());
        }
    }
    println!("The kernel's TCP, no delay: medians of {rounds} rounds of {seconds} s in turn\n");
    println!("{:<30}{:>9}{:>12}{:>9}{:>12}", "", "Mbit/s", "cpu-s/Gbit", "Mbit/s", "cpu-s/Gbit");
    let plain = &all[0];
    for ((name, _), measured) in cases.iter().zip(&all) {
        let of = |f: fn(&Measured) -> f64| {
            // Of each round for itself: a slow minute of the machine hits both.
            let ratios = measured.iter().zip(plain).map(|(m, plain)| f(m) / f(plain));
            (median(measured.iter().map(f)), median(ratios))
        };
        let ((mbps, faster), (cpu, dearer)) = (of(|m| m.mbps), of(|m| m.cpu_per_gbit));
        println!("{name:<30}{mbps:>9.0}{cpu:>12.3}{faster:>8.2}x{dearer:>11.2}x");
    }
    println!("goals: every feature on: at least 0.90x Mbit/s at most 1.20x CPU; with offload at least 1.80x Mbit/s\n");
}

fn round_trips(sandbox: &Sandbox, rounds: usize, pings: usize) {
    let each_way = Duration::from_millis(25);
    let (mut plain, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        plain.push(plain_ping(sandbox, each_way, pings));
        ours.push(our_ping(sandbox, each_way, pings));
    }
    println!("Round trips at 25 ms each way: {pings} pings, one in 10 ms, medians of {rounds} rounds in turn\n");
    println!("{:<30}{:>9}{:>9}{:>9}", "", "min ms", "mean ms", "mdev us");
    let row = |name: &str, m: &[Trips]| {
        let min = m.iter().map(|t| t.min).fold(f64::INFINITY, f64::min);
        let (mean, mdev) = (median(m.iter().map(|t| t.mean)), median(m.iter().map(|t| t.mdev)));
        println!("{name:<30}{:>9.3}{:>9.3}{:>9.1}", min * 1e3, mean * 1e3, mdev * 1e6);
        min
    };
    row("plain copy loop", &plain);
    let min = row("emulator", &ours);
    let ratio = median(ours.iter().zip(&plain).map(|(ours, plain)| ours.mdev / plain.mdev));
    let early = if min < 0.05 { "YES" } else { "none" };
    println!("mdev {ratio:.2}x (goal: at most 1.20x); packets early: {early}\n");
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut all: Vec<f64> = values.collect();
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

// Endpoints.

/// The kernel's TCP for so long: bits that arrived, and how long that took.
fn transfer(sides: [&NetNs; 2], pair: FlowAddresses, seconds: f64) -> (f64, f64) {
    let address = SocketAddr::new(pair.receiver, 5_001);
    let listener = sides[1].run(|| TcpListener::bind(address).unwrap()).unwrap();
    let receiver = std::thread::spawn(move || {
        let mut stream = listener.accept().unwrap().0;
        let (mut buffer, mut total, begin) = (vec![0; 1 << 18], 0, Wall::now());
        while let n @ 1.. = stream.read(&mut buffer).unwrap() {
            total += n;
        }
        (total as f64 * 8.0, begin.elapsed().as_secs_f64())
    });
    sides[0]
        .run(|| {
            let mut stream = TcpStream::connect(address).unwrap();
            let (block, begin) = (vec![7; 1 << 18], Wall::now());
            while begin.elapsed().as_secs_f64() < seconds {
                stream.write_all(&block).unwrap();
            }
        })
        .unwrap();
    receiver.join().unwrap()
}

struct Trips {
    min: f64,
    mean: f64,
    mdev: f64,
}

/// As `ping` counts: mdev is the standard deviation.
fn pinged(side: &NetNs, pair: FlowAddresses, pings: usize) -> Trips {
    let trips: Vec<f64> =
        side.run(|| (0..pings).map(|n| ping(pair.sender, pair.receiver, n as u16)).collect()).unwrap();
    let n = trips.len() as f64;
    let mean = trips.iter().sum::<f64>() / n;
    let variance = trips.iter().map(|t| (t - mean) * (t - mean)).sum::<f64>() / n;
    Trips { min: trips.iter().copied().fold(f64::INFINITY, f64::min), mean, mdev: variance.sqrt() }
}

fn ping(from: IpAddr, to: IpAddr, n: u16) -> f64 {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(IpProtocol::ICMPV4)).unwrap();
    socket.bind(&SockAddr::from(SocketAddr::new(from, 0))).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    std::thread::sleep(Duration::from_millis(10));
    let mut request = vec![8, 0, 0, 0, 0, 0];
    request.extend(n.to_be_bytes());
    request.extend([7; 48]);
    let begin = Wall::now();
    socket.send_to(&request, &SockAddr::from(SocketAddr::new(to, 0))).unwrap();
    socket.recv(&mut [MaybeUninit::uninit(); 256]).unwrap();
    begin.elapsed().as_secs_f64()
}

// The emulator.

fn testbed(sandbox: &Sandbox, link: LinkSpec, offload: bool) -> Testbed {
    let config = SimConfig {
        hops: vec![HopConfig::path(link.clone(), link)],

        flows: vec![FlowConfig::new("tcp", Protocol::External)],
        ..SimConfig::default()
    };
    let [senders, receivers] = ["senders", "receivers"].map(|name| sandbox.namespace(name).unwrap());
    Testbed::open(&config, TestbedOptions { offload, ..TestbedOptions::new(senders, receivers) }).unwrap()
}

fn our_tcp(sandbox: &Sandbox, link: LinkSpec, offload: bool, seconds: f64) -> Measured {
    let running = testbed(sandbox, link, offload).start().unwrap();
    let sides = Side::BOTH.map(|side| running.namespace(side));
    let (bits, took) = transfer(sides, running.addresses(0), seconds);
    let (sim, emu) = running.finish();
    if std::env::args().any(|a| a == "--verbose") {
        println!("{emu:?}\n{:?}", sim.flows[0].whole);
    }
    let EmuReport { elapsed, cpu, .. } = emu;
    Measured { mbps: bits / took / 1e6, cpu_per_gbit: cpu * elapsed.as_secs_f64() / (bits / 1e9) }
}

fn our_ping(sandbox: &Sandbox, each_way: Duration, pings: usize) -> Trips {
    let link = LinkSpec { delay: DelayModel::constant(each_way), ..LinkSpec::default() };
    let running = testbed(sandbox, link, true).start().unwrap();
    let trips = pinged(running.namespace(Side::Senders), running.addresses(0), pings);
    running.finish();
    trips
}

// The plain loop.

/// Two namespaces and devices like the emulator's, with a plain loop between them.
struct Plain {
    sides: [NetNs; 2],
    stop: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<Duration>,
}

const PAIR: FlowAddresses = FlowAddresses {
    sender: IpAddr::V4(std::net::Ipv4Addr::new(10, 77, 0, 1)),
    receiver: IpAddr::V4(std::net::Ipv4Addr::new(10, 77, 128, 1)),
};

impl Plain {
    fn start(sandbox: &Sandbox, each_way: Duration) -> Plain {
        let sides = ["senders", "receivers"].map(|name| sandbox.namespace(name).unwrap());
        let device = |side: Side| {
            sides[side as usize]
                .run(|| {
                    let device = DeviceBuilder::new().name("plain").mtu(1_500).build_sync().unwrap();
                    device.set_nonblocking(true).unwrap();
                    netlink::queue("plain", 4_096).unwrap();
                    netlink::address(PAIR.at(side), 16, "plain").unwrap();
                    device
                })
                .unwrap()
        };
        let devices = Side::BOTH.map(device);
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = spawn_first("plain", move || copy(&devices, each_way, &stopped)).unwrap();
        Plain { sides, stop, thread }
    }

    fn finish(self) -> Duration {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

/// Copies until told to stop; the CPU time it took.
fn copy(devices: &[SyncDevice; 2], each_way: Duration, stop: &AtomicBool) -> Duration {
    let _ = nix::sys::prctl::set_timerslack(1);
    let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_NONBLOCK).unwrap();
    let now = || nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC).map(Duration::from).unwrap();
    let cpu = thread_cpu();
    let mut lines: [VecDeque<(Duration, Vec<u8>)>; 2] = Default::default();
    let mut spare: Vec<Vec<u8>> = Vec::new();
    let mut buffer = vec![0; 2_048];
    let mut armed = Duration::MAX;
    while !stop.load(Ordering::Relaxed) {
        let next = lines.iter().filter_map(|l| l.front()).map(|(due, _)| *due).min();
        if let Some(due) = next.filter(|due| *due != armed) {
            timer.set(Expiration::OneShot(TimeSpec::from_duration(due)), TimerSetTimeFlags::TFD_TIMER_ABSTIME).unwrap();
            armed = due;
        }
        let mut fds =
            [devices[0].as_fd(), devices[1].as_fd(), timer.as_fd()].map(|fd| PollFd::new(fd, PollFlags::POLLIN));
        poll(&mut fds, PollTimeout::from(20_u8)).unwrap();
        let readable: [bool; 2] = [0, 1].map(|i: usize| fds[i].any() == Some(true));
        for i in (0..2).filter(|i| readable[*i]) {
            for _ in 0..64 {
                let Ok(n) = nix::unistd::read(&devices[i], &mut buffer) else { break };
                if each_way.is_zero() {
                    let _ = nix::unistd::write(&devices[1 - i], &buffer[..n]);
                } else {
                    let mut packet = spare.pop().unwrap_or_default();
                    packet.clear();
                    packet.extend_from_slice(&buffer[..n]);
                    lines[i].push_back((now() + each_way, packet));
                }
            }
        }
        let now = now();
        for i in 0..2 {
            while lines[i].front().is_some_and(|(due, _)| *due <= now)
                && let Some((_, packet)) = lines[i].pop_front()
            {
                let _ = nix::unistd::write(&devices[1 - i], &packet);
                spare.push(packet);
            }
        }
    }
    thread_cpu().saturating_sub(cpu)
}

fn plain_tcp(sandbox: &Sandbox, seconds: f64) -> Measured {
    let plain = Plain::start(sandbox, Duration::ZERO);
    let (bits, took) = transfer([&plain.sides[0], &plain.sides[1]], PAIR, seconds);
    let cpu = plain.finish();
    Measured { mbps: bits / took / 1e6, cpu_per_gbit: cpu.as_secs_f64() / (bits / 1e9) }
}

fn plain_ping(sandbox: &Sandbox, each_way: Duration, pings: usize) -> Trips {
    let plain = Plain::start(sandbox, each_way);
    let trips = pinged(&plain.sides[0], PAIR, pings);
    plain.finish();
    trips
}
