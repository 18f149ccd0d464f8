//! The cost of our paced sender beside the barest loop there is, and of a key at both ends beside none, in turn in the same run: 100
//! Mbit/s over loopback.
//!
//!     cargo bench -p fairpace-net --bench sender [-- --quick]
//!
//! Ours is the whole sender (`send::run`: frames cut into RTP packets, controller, feedback, RTCP) with a pacing quantum of
//! 1 ms, to a whole receiver on a thread of its own. The raw loop sleeps by `clock_nanosleep` with timer slack 1 ns
//! and sends the same bytes over and over, in batches (UDP GSO) as large as ours and as far apart; a thread reads them with
//! `recvmmsg` (no GRO), so that the kernel segments. CPU is that of the sending thread, in which the kernel also does
//! the reception as far as the socket's queue, and wakes the reader. The receiving threads are not counted,
//! nor is the making of the frames, which is an encoder's. How often a reader must be woken is its own affair, and costs the
//! sender all the same: so the raw loop runs a second time, with our receiver's socket options and manner of reading.
//!
//! Frames consist of full packets. The flow's cap lies above its rate: a cap takes no account of a wake-up's
//! lateness, and the rate is the scheme's to keep. Mbit/s are from the second frame asked for to the last, without
//! the challenges before and the wait for the last feedback behind.
//!
//! The second table has both ends' CPU per packet, with a key (`fairpace key`) and without: all that a session does for a packet, the kernel's part
//! included. The sender's thread pays for the kernel's work up to the receiver's socket.
//!
//! Only numbers of one run are comparable. The goal is a ratio, of each round for itself; medians of the rounds.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, missing_docs, reason = "a benchmark reads the clock")]

use fairpace_media::{Codec, EncodedFrame, Format, FrameSource, MediaError};
use fairpace_net::pacing::thread_cpu;
use fairpace_net::receive::{ReceiveConfig, Receiver};
use fairpace_net::send::{self, SendConfig, SendEnd};
use fairpace_net::{Buffers, Clock, DatagramIo, Family, Key, RecvOutcome, Waiter};
use fairpace_units::{Bytes, Duration, Instant, Rate};
use nix::errno::Errno;
use nix::sys::socket::{ControlMessage, MsgFlags, MultiHeaders, recvmmsg, sendmsg};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, ClockNanosleepFlags, clock_gettime, clock_nanosleep};
use std::io::{IoSlice, IoSliceMut};
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;

/// UDP payload, as in every table of this project.
const PAYLOAD: usize = 1_200;
/// With IPv4 and UDP headers.
const SIZE: Bytes = Bytes::new(1_228);
const QUANTUM: Duration = Duration::from_millis(1);

fn main() {
    let quick = std::env::args().any(|a| a == "--quick");
    let (rounds, seconds) = if quick { (1, 1) } else { (9, 2) };
    let each = Duration::from_secs(seconds);
    let schemes = ["fixed", "rcs"];
    let (mut raw, mut raw_read_alike) = (Vec::new(), Vec::new());
    let mut ours: Vec<Vec<Measured>> = schemes.iter().map(|_| Vec::new()).collect();
    let (mut single, mut keyed) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        for (scheme, measured) in schemes.iter().zip(&mut ours) {
            measured.push(sender(scheme, QUANTUM, each, None));
        }
        keyed.push(sender("fixed", QUANTUM, each, Some(Key::generate().unwrap())));
        single.push(sender("fixed", Duration::ZERO, each, None));
        // As large as ours came out, and at the same rate.
        let batch = ours[0].last().unwrap().batch.round() as usize;
        raw.push(bare(batch, each, read));
        raw_read_alike.push(bare(batch, each, read_alike));
    }
    println!(
        "100 Mbit/s over loopback, {PAYLOAD} B of UDP payload: medians of {rounds} rounds of {seconds} s in turn\n"
    );
    println!("{:<30}{:>9}{:>9}{:>12}{:>9}", "", "Mbit/s", "a batch", "cpu-s/Gbit", "ratio");
    let row = |name: &str, m: &[Measured]| {
        let of = |f: fn(&Measured) -> f64| median(m.iter().map(f));
        // Of each round for itself: a slow minute of the machine hits both.
        let ratio = median(m.iter().zip(&raw).map(|(m, raw)| m.cpu / raw.cpu));
        println!("{name:<30}{:>9.1}{:>9.1}{:>12.3}{ratio:>8.2}x", of(|m| m.mbps), of(|m| m.batch), of(|m| m.cpu));
    };
    row("raw GSO loop", &raw);
    row("raw GSO loop, read as ours", &raw_read_alike);
    for (scheme, measured) in schemes.iter().zip(&ours) {
        row(&format!("sender, {scheme}, quantum 1 ms"), measured);
    }
    row("sender, fixed, no quantum", &single);
    println!("goal: quantum 1 ms at most 1.20x\n");
    costs_of_a_key(&ours[0], &keyed);
}

fn costs_of_a_key(clear: &[Measured], keyed: &[Measured]) {
    println!("{:<30}{:>12}{:>12}{:>12}{:>9}", "", "sender, us", "receiver", "both", "ratio");
    let each: [fn(&Measured) -> f64; 3] = [|m| m.per_packet[0], |m| m.per_packet[1], |m| m.per_packet.iter().sum()];
    for (name, sessions) in [("a packet, in clear", clear), ("a packet, with a key", keyed)] {
        let [sender, receiver, both] = each.map(|of| median(sessions.iter().map(of)));
        let ratio = median(sessions.iter().zip(clear).map(|(m, clear)| each[2](m) / each[2](clear)));
        println!("{name:<30}{sender:>12.2}{receiver:>12.2}{both:>12.2}{ratio:>8.2}x");
    }
    println!("goal: with a key at most 1.30x\n");
}

#[derive(Clone, Copy)]
struct Measured {
    mbps: f64,
    /// Packets per wake-up that sent any.
    batch: f64,
    /// CPU seconds per Gbit of UDP payload.
    cpu: f64,
    /// CPU microseconds of the sending and of the receiving thread per packet sent; 0 of those that are no session's.
    per_packet: [f64; 2],
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut all: Vec<f64> = values.collect();
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

/// The rate of SIZE-byte packets that carries 100 Mbit/s of UDP payload.
fn rate() -> Rate {
    Rate::mbps(100.0 * SIZE.as_f64() / PAYLOAD as f64)
}

/// One session.
fn sender(scheme: &str, quantum: Duration, each: Duration, key: Option<Key>) -> Measured {
    let clock = Clock::start();
    let receiver = Receiver::open(ReceiveConfig { key: key.clone(), ..ReceiveConfig::new(0) }, clock).unwrap();
    let mut config = SendConfig::new(([127, 0, 0, 1], receiver.address().unwrap().port()).into());
    config.key = key;
    config.session.packet_size = SIZE;
    config.scheme = scheme.to_owned();
    let (name, wanted) = if scheme == "rcs" { ("s_target", rate()) } else { ("rate", rate()) };
    config.settings.insert(name.to_owned(), format!("{} bit/s", wanted.as_bps()));
    config.max_rate = rate() * 1.25;
    config.quantum = quantum;
    config.duration = Some(each);
    // The next frame is always there.
    config.queue_limit = Some(Frames::SIZE);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let receiving = scope.spawn(|| {
            let cpu = thread_cpu();
            let report = receiver.run(&mut (), &mut (), &stop).unwrap();
            assert!(report.unsealed == 0 && report.stats.media.received > 0);
            thread_cpu().saturating_sub(cpu)
        });
        let cpu = thread_cpu();
        let mut frames = Frames::default();
        let sent = send::run(&config, clock, &mut frames, &mut (), &stop).unwrap();
        let cpu = thread_cpu().saturating_sub(cpu).saturating_sub(frames.cpu).as_secs_f64();
        stop.store(true, Ordering::Relaxed);
        let received = receiving.join().unwrap().as_secs_f64();
        assert!(matches!(sent.end, SendEnd::Finished), "{:?}", sent.end);
        let bits = sent.socket.sent_bytes as f64 * 8.0;
        Measured {
            mbps: frames.mbps(),
            batch: sent.socket.sent as f64 / sent.pacing.count as f64,
            cpu: cpu / bits * 1e9,
            per_packet: [cpu, received].map(|cpu| cpu / sent.socket.sent as f64 * 1e6),
        }
    })
}

/// `read` binds a socket, says on which port, and reads until the flag is set.
fn bare(batch: usize, each: Duration, read: fn(&Sender<u16>, &AtomicBool)) -> Measured {
    let stop = AtomicBool::new(false);
    let (tell, port) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let reading = scope.spawn(|| read(&tell, &stop));
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(("127.0.0.1", port.recv().unwrap())).unwrap();
        let measured = raw_loop(&socket, batch, each);
        stop.store(true, Ordering::Relaxed);
        reading.join().unwrap();
        measured
    })
}

fn raw_loop(socket: &UdpSocket, batch: usize, each: Duration) -> Measured {
    nix::sys::prctl::set_timerslack(1).unwrap();
    let monotonic = || std::time::Duration::from(clock_gettime(ClockId::CLOCK_MONOTONIC).unwrap());
    let payload = vec![7; batch * PAYLOAD];
    let size = u16::try_from(PAYLOAD).unwrap();
    let tick = std::time::Duration::from_secs_f64((payload.len() * 8) as f64 / 100e6);
    let (cpu, begin) = (thread_cpu(), monotonic());
    let (mut due, mut sent) = (begin, 0);
    while due - begin < each {
        let until = TimeSpec::from(due);
        while clock_nanosleep(ClockId::CLOCK_MONOTONIC, ClockNanosleepFlags::TIMER_ABSTIME, &until).is_err() {}
        let control = [ControlMessage::UdpGsoSegments(&size)];
        sendmsg::<()>(socket.as_raw_fd(), &[IoSlice::new(&payload)], &control, MsgFlags::empty(), None).unwrap();
        sent += 1;
        due += tick;
    }
    let cpu = thread_cpu().saturating_sub(cpu).as_secs_f64();
    let bits = (sent * payload.len()) as f64 * 8.0;
    Measured {
        mbps: bits / (monotonic() - begin).as_secs_f64() / 1e6,
        batch: batch as f64,
        cpu: cpu / bits * 1e9,
        per_packet: [0.0; 2],
    }
}

/// Readers look at their flag at least so often.
const LOOK_UP: Duration = Duration::from_millis(100);

/// As few calls as possible.
fn read(tell: &Sender<u16>, stop: &AtomicBool) {
    let sink = UdpSocket::bind("127.0.0.1:0").unwrap();
    sink.set_read_timeout(Some(LOOK_UP)).unwrap();
    tell.send(sink.local_addr().unwrap().port()).unwrap();
    let mut space = vec![[0_u8; 2_048]; 64];
    while !stop.load(Ordering::Relaxed) {
        let mut slices: Vec<_> = space.iter_mut().map(|s| [IoSliceMut::new(s)]).collect();
        let mut headers = MultiHeaders::<()>::preallocate(64, None);
        match recvmmsg(sink.as_raw_fd(), &mut headers, slices.iter_mut(), MsgFlags::MSG_WAITFORONE, None) {
            Ok(_) | Err(Errno::EAGAIN) => {}
            Err(e) => panic!("{e}"),
        }
    }
}

/// As our receiver reads: marks and stamps of each packet, until nothing is there, and then to sleep.
fn read_alike(tell: &Sender<u16>, stop: &AtomicBool) {
    let clock = Clock::start();
    let mut sink = fairpace_net::UdpSocket::listen(0, Family::Any, Buffers::default(), clock).unwrap();
    tell.send(sink.local_address().unwrap().port()).unwrap();
    let mut waiter = Waiter::new(clock).unwrap();
    let mut buffer = vec![0; 65_536];
    while !stop.load(Ordering::Relaxed) {
        while matches!(sink.recv(&mut buffer), RecvOutcome::Packet(_)) {}
        waiter.wait(clock.now() + LOOK_UP, &[sink.descriptor()]).unwrap();
    }
}

/// Frames of 60 per second at the sender's rate, there whenever they are asked for.
#[derive(Default)]
struct Frames {
    /// When each was asked for.
    given: Vec<Instant>,
    /// CPU time that making them took: an encoder's, not the sender's.
    cpu: Duration,
}

impl Frames {
    const PACKETS: usize = 174;
    /// Beside headers, extensions and payload descriptor, 12 + 16 + 1 B.
    const SIZE: Bytes = Bytes::new((Frames::PACKETS * (PAYLOAD - 29)) as u64);

    /// UDP payload: one is asked for when a packet of the one before it has left.
    fn mbps(&self) -> f64 {
        let [_, second, .., last] = self.given[..] else { return 0.0 };
        ((self.given.len() - 2) * Frames::PACKETS * PAYLOAD * 8) as f64 / last.since(second).as_secs_f64() / 1e6
    }
}

impl FrameSource for Frames {
    fn format(&self) -> Format {
        let frame_interval = Duration::from_nanos(16_666_667);
        Format {
            codec: Codec::Filler,
            width: 0,
            height: 0,
            frame_interval,
            follows_rate: false,
            scaled_from: None,
            sound: false,
            cut_off: false,
        }
    }
    fn set_rate(&mut self, _: Rate) {}
    fn request_key_frame(&mut self) {}
    fn next_frame_at(&self) -> Instant {
        Instant::ZERO
    }
    fn next_frame(&mut self, now: Instant) -> Result<Option<EncodedFrame>, MediaError> {
        self.given.push(now);
        let cpu = thread_cpu();
        let data = vec![7; Frames::SIZE.get() as usize];
        self.cpu += thread_cpu().saturating_sub(cpu);
        Ok(Some(EncodedFrame { data, capture: now, timestamp_90k: (self.given.len() * 1_500) as u32, key: true }))
    }
}
