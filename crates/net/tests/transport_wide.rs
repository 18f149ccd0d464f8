//! Transport-wide feedback over real sockets: what leaves, how it is marked when it arrives, and what comes back.

mod common;

use common::{loopback_to, run_beside};
use fairpace_control::feedback::Form;
use fairpace_media::ConstantSource;
use fairpace_net::receive::{ReceiveConfig, ReceiveReport};
use fairpace_net::send::{self, SendConfig, SendEnd, SendReport};
use fairpace_net::{Buffers, DatagramIo, Mark, RecvOutcome, UdpSocket, Waiter};
use fairpace_rtp::What;
use fairpace_rtp::packet::{self, Packet};
use fairpace_rtp::rtcp::{Compound, Rtcp};
use fairpace_units::{Duration, Ecn, Instant, Rate};
use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// The packets that went past between sender and receiver.
#[derive(Default)]
struct Seen {
    /// Media and dummies, and how each was marked.
    packets: Vec<Mark>,
    /// Transport-wide numbers, one for each packet of media or dummies that had one.
    numbers: Vec<u16>,
    /// Reports by their form.
    twcc: usize,
    ccfb: usize,
}

impl Seen {
    fn forward(&mut self, bytes: &[u8], mark: Mark) {
        if !packet::is_rtcp(bytes) {
            self.packets.push(mark);
            self.numbers.extend(Packet::parse(bytes).unwrap().extensions.transport_number);
        }
    }

    fn back(&mut self, bytes: &[u8]) {
        for packet in Compound::parse(bytes).unwrap() {
            match packet {
                Rtcp::TransportFeedback { fmt: 15, .. } => self.twcc += 1,
                Rtcp::CongestionFeedback(..) => self.ccfb += 1,
                _ => {}
            }
        }
    }
}

/// Each way, so that RCS has a round trip to send dummies in.
const DELAY: Duration = Duration::from_millis(25);

/// Two seconds of 400 kbit/s, with a socket in the middle that sees how packets arrive, and passes them on with their marks.
fn run(receive: ReceiveConfig, change: impl FnOnce(&mut SendConfig)) -> (SendReport, ReceiveReport, Seen) {
    let (receiver, mut config, clock) = loopback_to(receive);
    let bind = || UdpSocket::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), true, Buffers::default(), clock).unwrap();
    let mut front = bind();
    let mut back = UdpSocket::connect(config.peer, Buffers::default(), clock).unwrap();
    config.peer = front.local_address().unwrap();
    config.duration = Some(Duration::from_secs(2));
    change(&mut config);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let tap = scope.spawn(|| {
            let (mut seen, mut buffer, mut sender) = (Seen::default(), vec![0; 2_048], None);
            let mut waiter = Waiter::new(clock).unwrap();
            let mut held: VecDeque<(Instant, bool, Vec<u8>, Mark)> = VecDeque::new();
            while !over.load(Ordering::Relaxed) {
                while let RecvOutcome::Packet(p) = front.recv(&mut buffer) {
                    sender = Some(p.from);
                    seen.forward(&buffer[..p.len], p.mark);
                    held.push_back((clock.now() + DELAY, true, buffer[..p.len].to_vec(), p.mark));
                }
                while let RecvOutcome::Packet(p) = back.recv(&mut buffer) {
                    seen.back(&buffer[..p.len]);
                    held.push_back((clock.now() + DELAY, false, buffer[..p.len].to_vec(), p.mark));
                }
                while let Some((_, forward, bytes, mark)) = held.pop_front_if(|(at, ..)| *at <= clock.now()) {
                    let (out, to) = if forward { (&mut back, None) } else { (&mut front, sender) };
                    out.send(to, &bytes, mark);
                }
                let there = [front.descriptor(), back.descriptor()];
                let next = held.front().map_or(Instant::NEVER, |(at, ..)| *at);
                waiter.wait(next.min(clock.now() + Duration::from_millis(20)), &there).unwrap();
            }
            seen
        });
        let mut source = ConstantSource::new(Rate::kbps(400.0), Duration::from_millis(20));
        let ran = run_beside(receiver, |stop| send::run(&config, clock, &mut source, &mut (), stop));
        over.store(true, Ordering::Relaxed);
        let (sent, received) = ran.unwrap();
        (sent, received, tap.join().unwrap())
    })
}

fn asking(scheme: &'static str) -> impl FnOnce(&mut SendConfig) {
    move |c| {
        c.scheme = scheme.to_owned();
        c.session.form = Some(Form::Twcc);
    }
}

/// Checks all that holds where the sender asked for transport-wide feedback.
fn check(sent: &SendReport, received: &ReceiveReport, seen: &Seen) {
    assert!(matches!(sent.end, SendEnd::Finished), "{:?}", sent.end);
    assert_eq!(sent.feedback_form, Form::Twcc);
    let all = sent.stats.sent.of(What::Media).packets + sent.stats.sent.of(What::Dummy).packets;
    assert_eq!(seen.numbers.len() as u64, all, "each is numbered, and nothing is lost on loopback");
    assert!(seen.numbers.windows(2).all(|w| w[1] == w[0].wrapping_add(1)), "media and dummies together");
    assert!(seen.packets.len() > 40 && seen.packets.iter().all(|m| m.ecn == Ecn::NotEct), "{:?}", seen.packets);
    assert!(seen.twcc > 20 && seen.ccfb == 0, "{} of the form, {} of RFC 8888", seen.twcc, seen.ccfb);
    // The receiver's claims are believed, and all that arrived is acknowledged but for the last packets.
    assert_eq!((sent.stats.rejected, sent.flow.bad), (Default::default(), Default::default()));
    assert_eq!(sent.flow.data.lost, 0, "{:?}", sent.flow.data);
    assert!(sent.flow.data.acked + 10 >= sent.flow.data.sent, "{:?}", sent.flow.data);
    assert_eq!(received.stats.media.received, sent.stats.sent.of(What::Media).packets);
}

#[test]
fn media_and_dummies_are_numbered_told_of_and_believed() {
    let (sent, received, seen) = run(ReceiveConfig::new(0), asking("rcs"));
    check(&sent, &received, &seen);
    assert!(sent.flow.dummy.acked > 0, "RCS begins with dummies: {:?}", sent.flow.dummy);
}

#[test]
fn packets_leave_not_ect_whatever_the_controller_would_heed() {
    let ecn = |c: &mut SendConfig| {
        c.scheme = "tfrc".to_owned();
        c.settings.insert("ecn".to_owned(), "on".to_owned());
    };
    let (sent, received, seen) = run(ReceiveConfig::new(0), |c| {
        ecn(c);
        c.session.form = Some(Form::Twcc);
    });
    check(&sent, &received, &seen);
    // By RFC 8888, which tells of marks, the same sender's packets arrive ECN-capable.
    let (_, _, seen) = run(ReceiveConfig::new(0), ecn);
    assert!(seen.packets.iter().all(|m| m.ecn == Ecn::Ect0) && seen.ccfb > 20, "{:?}", seen.packets);
}

/// The form that a person chose at the receiver is for tools that cannot ask: a Fairpace asks, and is told as it asks.
#[test]
fn a_receiver_set_to_one_form_tells_a_sender_that_asks_as_it_asks() {
    let set = |form| {
        let mut receive = ReceiveConfig::new(0);
        receive.session.form = Some(form);
        receive
    };
    let (sent, received, seen) = run(set(Form::Ccfb), asking("tfrc"));
    check(&sent, &received, &seen);
    let (sent, _, seen) = run(set(Form::Twcc), |c| c.scheme = "tfrc".to_owned());
    assert_eq!((sent.feedback_form, seen.twcc, seen.numbers.len()), (Form::Ccfb, 0, 0));
    assert!(seen.ccfb > 20 && sent.flow.data.acked > 20, "{} {:?}", seen.ccfb, sent.flow.data);
}
