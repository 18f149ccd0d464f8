//! TFRC over RTP with another implementation: Farstream 0.2.9, as Debian ships it.
//!
//! A Python script (`farstream/peer.py`) brings up its session; `farstream/shim.c` mends two of its defects from
//! outside. Its RTP and RTCP have a port each, ours share one: a thread between them tells them apart by the second
//! byte, and changes nothing. Needs `gir1.2-farstream-0.2`, `python3-gi` and a C compiler; skipped without them, and
//! where the machine is too busy for a session between two processes to say anything.

#![allow(clippy::disallowed_methods, reason = "the thread between waits for what comes")]

use fairpace_media::ConstantSource;
use fairpace_net::Clock;
use fairpace_net::receive::{ReceiveConfig, Receiver};
use fairpace_net::send::{self, SendConfig, SendEnd};
use fairpace_rtp::What;
use fairpace_rtp::feedback::rtp_tfrc::wire::{Profile, Report};
use fairpace_rtp::packet::{Packet, is_rtcp};
use fairpace_rtp::rtcp::{Compound, Rtcp};
use fairpace_units::{Duration, Instant, Rate};
use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader};
use std::net::{SocketAddr, UdpSocket};
use std::panic::{catch_unwind, resume_unwind};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver as Lines};
use std::thread;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/farstream/peer.py");
const SHIM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/farstream/shim.c");
/// Debian's own: others do not see Debian's modules.
const PYTHON: &str = "/usr/bin/python3";

/// The shim, if everything is there that the peer needs; else why not.
fn shim(name: &str) -> Result<String, String> {
    let imports = "import gi; gi.require_version('Farstream', '0.2'); from gi.repository import Farstream";
    let python = Command::new(PYTHON).args(["-c", imports]).stderr(Stdio::null()).status();
    if !python.is_ok_and(|s| s.success()) {
        return Err("no Farstream for Python (Debian: apt-get install gir1.2-farstream-0.2 python3-gi)".into());
    }
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.so")).display().to_string();
    let libraries = ["-Wl,--no-as-needed", "-ldl", "-l:libgstreamer-1.0.so.0", "-l:libgstrtp-1.0.so.0"];
    let made = Command::new("cc").args(["-shared", "-fPIC", "-o", &out, SHIM]).args(libraries).output();
    match made {
        Ok(o) if o.status.success() => Ok(out),
        Ok(o) => Err(format!("the shim cannot be made: {}", String::from_utf8_lossy(&o.stderr))),
        Err(e) => Err(format!("no C compiler `cc`: {e}")),
    }
}

/// If a thread of ours has been kept waiting for so long, the other process has been too.
const BUSY: Duration = Duration::from_millis(20);
/// A session that has not ended by then never will.
const LONGEST: Duration = Duration::from_secs(45);

/// Three attempts at a session, because it is as the system lets the other process run. If all of them fail on a
/// machine that was busy meanwhile, that says nothing.
fn attempt(name: &str, session: fn(&str, &AtomicU64)) {
    let shim = match shim(name) {
        Ok(shim) => shim,
        Err(why) => return eprintln!("skipped: {why}"),
    };
    let late = AtomicU64::new(0);
    for left in (0..3).rev() {
        let Err(panic) = catch_unwind(|| session(&shim, &late)) else { return };
        let late = Duration::from_micros(late.load(Ordering::Relaxed));
        if left == 0 && late > BUSY {
            return eprintln!("skipped: this machine is too busy: a thread that slept for 1 ms woke up {late:?} late");
        }
        if left == 0 {
            resume_unwind(panic);
        }
    }
}

/// The other tool, and what it says.
struct Peer {
    process: Child,
    lines: Lines<String>,
    /// Where it takes RTP and RTCP.
    at: [SocketAddr; 2],
    said: Vec<String>,
}

impl Peer {
    /// `None`, with a word about it, if it does not come up here.
    fn start(shim: &str, port: u16, seconds: u32) -> Option<Peer> {
        let mut process = Command::new(PYTHON)
            .args([SCRIPT, &port.to_string(), &seconds.to_string()])
            .env("LD_PRELOAD", shim)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let out = BufReader::new(process.stdout.take().unwrap());
        let (give, lines) = mpsc::channel();
        thread::spawn(move || out.lines().map_while(Result::ok).try_for_each(|l| give.send(l)));
        let mut peer = Peer { process, lines, at: [SocketAddr::from(([127, 0, 0, 1], 0)); 2], said: Vec::new() };
        while peer.at.iter().any(|a| a.port() == 0) {
            let Ok(line) = peer.lines.recv_timeout(LONGEST) else {
                eprintln!("skipped: Farstream does not come up; run {SCRIPT} to see why");
                return None;
            };
            if let ["local", component, ip, port] = line.split(' ').collect::<Vec<_>>()[..] {
                peer.at[usize::from(component == "2")] = format!("{ip}:{port}").parse().unwrap();
            }
            peer.said.push(line);
        }
        Some(peer)
    }

    /// Everything it has said in the end.
    fn finish(mut self) -> Vec<String> {
        self.process.wait().unwrap();
        self.said.extend(self.lines.iter());
        std::mem::take(&mut self.said)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Two ports in a row that are free, RTP's even.
fn two_ports() -> [UdpSocket; 2] {
    loop {
        let rtp = UdpSocket::bind("0.0.0.0:0").unwrap();
        let port = rtp.local_addr().unwrap().port();
        if port.is_multiple_of(2)
            && let Ok(rtcp) = UdpSocket::bind(("0.0.0.0", port + 1))
        {
            return [rtp, rtcp];
        }
    }
}

/// The datagrams that the peer sent.
type Passed = Mutex<Vec<Vec<u8>>>;

/// The way between the two: its peer's timers do not work at the round trips of one machine.
const DELAY: Duration = Duration::from_millis(15);

/// Passes datagrams between the peer's two ports and our one, until told to end, or says itself that it takes too
/// long. `media`: also RTP towards us. `late`: the longest delay of its own, µs.
fn between(
    fronts: &[UdpSocket; 2],
    ours: &UdpSocket,
    peer: [SocketAddr; 2],
    media: bool,
    from: &Passed,
    end: &AtomicBool,
    late: &AtomicU64,
) {
    let clock = Clock::start();
    for socket in fronts.iter().chain([ours]) {
        socket.set_nonblocking(true).unwrap();
    }
    let mut us = ours.peer_addr().ok();
    let (mut to_us, mut to_peer) = (VecDeque::new(), VecDeque::new());
    let mut buffer = [0; 2_048];
    while !end.load(Ordering::Relaxed) {
        let asleep = clock.now();
        thread::sleep(Duration::from_millis(1));
        let slept = clock.now().since(asleep).saturating_sub(Duration::from_millis(1));
        late.fetch_max(slept.as_micros() as u64, Ordering::Relaxed);
        if clock.now().since(Instant::ZERO) > LONGEST {
            end.store(true, Ordering::Relaxed);
        }
        for front in fronts {
            while let Ok((n, _)) = front.recv_from(&mut buffer) {
                from.lock().unwrap().push(buffer[..n].to_vec());
                if media || is_rtcp(&buffer[..n]) {
                    to_us.push_back((clock.now() + DELAY, buffer[..n].to_vec()));
                }
            }
        }
        while let Ok((n, who)) = ours.recv_from(&mut buffer) {
            us = Some(who);
            to_peer.push_back((clock.now() + DELAY, buffer[..n].to_vec()));
        }
        let now = clock.now();
        // Whoever is not there yet, or has left, does not get it.
        while let Some((_, bytes)) = to_us.pop_front_if(|(due, _)| *due <= now) {
            let _ = if ours.peer_addr().is_ok() {
                ours.send(&bytes).ok()
            } else {
                us.and_then(|us| ours.send_to(&bytes, us).ok())
            };
        }
        while let Some((_, bytes)) = to_peer.pop_front_if(|(due, _)| *due <= now) {
            let i = usize::from(is_rtcp(&bytes));
            let _ = fronts[i].send_to(&bytes, peer[i]);
        }
    }
}

#[test]
fn our_reports_move_the_rate_of_another_implementations_sender() {
    attempt("farstream-sends", it_sends);
}

fn it_sends(shim: &str, late: &AtomicU64) {
    let mut config = ReceiveConfig::new(0);
    config.session.rate_profile = Some(Profile::default());
    config.duration = Some(Duration::from_secs(7));
    let receiver = Receiver::open(config, Clock::start()).unwrap();
    let to = SocketAddr::from(([127, 0, 0, 1], receiver.address().unwrap().port()));
    let fronts = two_ports();
    let ours = UdpSocket::bind("127.0.0.1:0").unwrap();
    ours.connect(to).unwrap();
    let Some(peer) = Peer::start(shim, fronts[0].local_addr().unwrap().port(), 9) else { return };
    let (end, passed, at) = (AtomicBool::new(false), Passed::default(), peer.at);
    let report = thread::scope(|scope| {
        scope.spawn(|| between(&fronts, &ours, at, true, &passed, &end, late));
        let report = receiver.run(&mut (), &mut (), &end);
        end.store(true, Ordering::Relaxed);
        report.unwrap()
    });
    let said = peer.finish();
    assert!(report.stats.media.received > 5, "{report:?}");
    assert_eq!(report.stats.malformed, 0);
    assert!(report.stats.sent.of(What::Feedback).packets > 2, "{:?}", report.stats);
    let stamps: Vec<_> = passed
        .lock()
        .unwrap()
        .iter()
        .filter(|b| !is_rtcp(b))
        .map(|b| Packet::parse(b).unwrap().extensions.stamp.expect("each packet is stamped").1)
        .collect();
    assert!(stamps.first().unwrap().rtt().is_none(), "it knows no RTT before our first report");
    let rtt = stamps.last().unwrap().rtt().expect("and learns it from ours");
    assert!(rtt < Duration::from_secs(1), "{rtt:?}");
    assert!(stamps.windows(2).all(|w| w[1].sent >= w[0].sent), "microseconds of one clock");
    let rates: Vec<u64> = said.iter().filter_map(|l| l.strip_prefix("bitrate ")?.parse().ok()).collect();
    // The sender begins with one packet of 1,460 B a second, 11,680 bit/s, and without reports only ever halves that.
    let reports = report.stats.sent.of(What::Feedback).packets;
    assert!(rates.iter().any(|r| *r > 11_680), "{rates:?} after {reports} reports");
}

#[test]
fn another_implementations_reports_steer_our_sender() {
    attempt("farstream-receives", it_receives);
}

fn it_receives(shim: &str, late: &AtomicU64) {
    let fronts = two_ports();
    let ours = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut config = SendConfig::new(ours.local_addr().unwrap());
    config.scheme = "tfrc".to_owned();
    config.settings.insert("measured_by".to_owned(), "receiver".to_owned());
    config.duration = Some(Duration::from_secs(10));
    let Some(peer) = Peer::start(shim, fronts[0].local_addr().unwrap().port(), 20) else { return };
    let (end, passed, at) = (AtomicBool::new(false), Passed::default(), peer.at);
    let report = thread::scope(|scope| {
        scope.spawn(|| between(&fronts, &ours, at, false, &passed, &end, late));
        let mut source = ConstantSource::new(Rate::kbps(300.0), Duration::from_millis(40));
        let stop = AtomicBool::new(false);
        let report = send::run(&config, Clock::start(), &mut source, &mut (), &stop);
        end.store(true, Ordering::Relaxed);
        report.unwrap()
    });
    assert!(matches!(report.end, SendEnd::Finished), "{:?}", report.end);
    // The peer echoes no challenge: its first report was the answer.
    let (rtt, None) = report.validated.unwrap() else { panic!("{:?}", report.validated) };
    assert!(rtt < Duration::from_secs(1), "{rtt:?}");
    assert!(report.stats.feedback.packets > 5, "{:?}", report.stats);
    assert_eq!(
        (report.stats.rejected.malformed, report.stats.rejected.measured),
        (0, 0),
        "{:?}",
        report.stats.rejected
    );
    // 10 s of 25 frames of 1,500 B, two packets each; but its RTCP begins with an interval of some seconds, and
    // without reports the rate is halved meanwhile.
    let sent = report.flow.data.sent;
    assert!((50..=700).contains(&sent), "{sent}");
    let passed = passed.lock().unwrap();
    let reports = passed.iter().filter(|b| is_rtcp(b)).flat_map(|b| Compound::parse(b).unwrap().collect::<Vec<_>>());
    let rates: Vec<u32> = reports
        .filter_map(|r| match r {
            Rtcp::TransportFeedback { fmt: 2, sender, media, fci } => Some(Report::parse(sender, media, fci).unwrap()),
            _ => None,
        })
        .map(|r| r.received_rate)
        .collect();
    assert!(rates.iter().any(|r| (10_000..200_000).contains(r)), "about 40 kB/s: {rates:?}");
}
