//! A sender on a socket that fails: what is not sent is counted, the socket is left alone for at
//! least a millisecond, and nothing spins or gives up.

mod common;

use common::{connect, loopback, run_beside};
use fairpace_media::{ConstantSource, FrameSource as _};
use fairpace_net::receive::ReceiveReport;
use fairpace_net::send::{self, SendEnd, SendReport};
use fairpace_net::{Clock, DatagramIo, Mark, NetError, RecvOutcome, SendOutcome, SocketCounters, UdpSocket};
use fairpace_rtp::What;
use fairpace_units::{Bytes, Duration, Instant, Rate};
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;

/// A socket that fails as its rule says; the rule is given the run's time and the number of the call.
struct Faulty<F> {
    inner: UdpSocket,
    clock: Clock,
    rule: F,
    calls: u64,
    failures: u64,
    reads: u64,
}

impl<F: FnMut(Instant, u64, usize) -> Option<SendOutcome>> DatagramIo for Faulty<F> {
    fn send(&mut self, to: Option<SocketAddr>, bytes: &[u8], mark: Mark) -> SendOutcome {
        self.calls += 1;
        if let Some(failure) = (self.rule)(self.clock.now(), self.calls, bytes.len()) {
            self.failures += 1;
            return failure;
        }
        self.inner.send(to, bytes, mark)
    }
    fn send_batch(&mut self, to: Option<SocketAddr>, bytes: &[u8], segment: usize, mark: Mark) -> (usize, SendOutcome) {
        for (sent, one) in bytes.chunks(segment).enumerate() {
            let outcome = self.send(to, one, mark);
            if outcome != SendOutcome::Sent {
                return (sent, outcome);
            }
        }
        (bytes.len().div_ceil(segment), SendOutcome::Sent)
    }
    fn recv(&mut self, buffer: &mut [u8]) -> RecvOutcome {
        self.reads += 1;
        self.inner.recv(buffer)
    }
    fn descriptor(&self) -> BorrowedFd<'_> {
        self.inner.descriptor()
    }
    fn counters(&self) -> SocketCounters {
        self.inner.counters()
    }
}

/// Sends at a fixed 800 kbit/s for 1.5 s over loopback through the faulty socket. Gives both reports, the
/// calls and the failures.
fn with_faults(mut rule: impl FnMut(Instant, u64) -> Option<SendOutcome>) -> (SendReport, ReceiveReport, u64, u64) {
    with_faults_by_size(move |t, n, _| rule(t, n))
}

/// As [`with_faults`]; the rule is given the UDP payload's length too.
fn with_faults_by_size(
    rule: impl FnMut(Instant, u64, usize) -> Option<SendOutcome>,
) -> (SendReport, ReceiveReport, u64, u64) {
    with_faults_for(Duration::from_millis(1_500), rule)
}

/// The same for as long as is said.
fn with_faults_for(
    duration: Duration,
    rule: impl FnMut(Instant, u64, usize) -> Option<SendOutcome>,
) -> (SendReport, ReceiveReport, u64, u64) {
    let (receiver, mut config, clock) = loopback();
    config.scheme = "fixed".to_owned();
    config.settings.insert("rate".to_owned(), "800 kbit/s".to_owned());
    config.duration = Some(duration);
    let mut io = Faulty { inner: connect(&config, clock), clock, rule, calls: 0, failures: 0, reads: 0 };
    let mut source = ConstantSource::new(Rate::kbps(500.0), Duration::from_millis(20));
    let (sent, received) =
        run_beside(receiver, |stop| send::run_on(&mut io, &config, clock, &mut source, &mut (), stop)).unwrap();
    (sent, received, io.calls, io.failures)
}

#[test]
fn a_sender_that_has_stopped_sleeps_between_its_goodbyes() {
    let (receiver, mut config, clock) = loopback();
    config.scheme = "fixed".to_owned();
    config.settings.insert("rate".to_owned(), "100 kbit/s".to_owned());
    config.duration = Some(Duration::from_millis(100));
    let mut io =
        Faulty { inner: connect(&config, clock), clock, rule: |_, _, _| None, calls: 0, failures: 0, reads: 0 };
    let mut source = ConstantSource::new(Rate::kbps(50.0), Duration::from_millis(20));
    let (sent, _) =
        run_beside(receiver, |stop| send::run_on(&mut io, &config, clock, &mut source, &mut (), stop)).unwrap();
    assert!(matches!(sent.end, SendEnd::Finished), "{:?}", sent.end);
    // Each turn of the loop reads until nothing is left, and has something to send, to read, or some ten milliseconds to wait.
    let packets = sent.stats.sent.total().packets + sent.socket.received;
    assert!(io.reads <= 5 * packets + 50, "{} reads for {packets} packets", io.reads);
}

#[test]
fn a_kernel_without_room_now_and_then_delays_packets_and_loses_none() {
    let (sent, received, _, failures) = with_faults(|_, n| (n % 5 == 0).then_some(SendOutcome::Busy));
    assert!(failures > 10, "{failures}");
    assert!(matches!(sent.end, SendEnd::Finished), "{:?}", sent.end);
    assert_eq!(sent.not_sent, 0);
    // The last of three goodbyes may find no room: nobody waits for it.
    let total = sent.stats.sent.total().packets;
    assert!((total - 1..=total).contains(&sent.socket.sent), "{} of {total}", sent.socket.sent);
    assert_eq!(received.stats.media.received, sent.stats.sent.of(What::Media).packets);
    assert_eq!(sent.flow.data.lost, 0);
}

#[test]
fn a_second_without_any_room_costs_few_calls_and_little_cpu() {
    // From 0.3 to 1.3 s.
    let dark = |t: Instant| t >= Instant::from_secs_f64(0.3) && t < Instant::from_secs_f64(1.3);
    let (sent, received, _, failures) = with_faults(|t, _| dark(t).then_some(SendOutcome::Busy));
    assert!(matches!(sent.end, SendEnd::Finished), "{:?}", sent.end);
    // 1 + 2 + ... + 64 ms, then every 64 ms: about 22 in a second. A loop would make a million.
    assert!((5..=60).contains(&failures), "{failures}");
    assert!(sent.cpu < 0.5, "{}", sent.cpu);
    assert!(received.stats.media.received > 10, "it went on afterwards");
}

#[test]
fn an_interface_that_is_down_for_a_while_is_survived_and_counted() {
    let dark = |t: Instant| t >= Instant::from_secs_f64(0.3) && t < Instant::from_secs_f64(0.9);
    let (sent, received, _, failures) = with_faults(|t, _| dark(t).then_some(SendOutcome::Unreachable));
    assert!(matches!(sent.end, SendEnd::Finished), "{:?}", sent.end);
    assert!(failures > 3 && failures <= 200, "{failures}");
    // Packets that the kernel did not take are counted, and the path is not blamed for more than those.
    assert!(sent.not_sent >= failures, "{} {failures}", sent.not_sent);
    assert_eq!(sent.socket.sent + sent.not_sent, sent.stats.sent.total().packets);
    assert!(received.stats.media.received > 10);
}

#[test]
fn a_session_of_which_nothing_arrived_is_no_success() {
    // The path swallows whatever is larger than the handshake.
    let (sent, received, _, swallowed) = with_faults_by_size(|_, _, bytes| (bytes > 200).then_some(SendOutcome::Sent));
    assert_eq!((received.stats.media.received, sent.not_sent), (0, 0));
    assert!(swallowed > 20, "{swallowed}");
    let SendEnd::Failed(error @ NetError::NothingArrived { packets, .. }) = &sent.end else { panic!("{:?}", sent.end) };
    assert_eq!(*packets, sent.stats.sent.of(What::Media).packets);
    assert!(error.to_string().contains(&format!("has told of none of the {packets} packets")), "{error}");
    assert!(error.hint().unwrap().contains("--packet-size"), "{:?}", error.hint());
}

#[test]
fn a_session_without_media_of_which_nobody_could_tell_is_a_success() {
    let (receiver, mut config, clock) = loopback();
    config.scheme = "fixed".to_owned();
    config.settings.insert("rate".to_owned(), "800 kbit/s".to_owned());
    config.duration = Some(Duration::from_millis(1_500));
    let mut io = connect(&config, clock);
    // The first picture is due after the end.
    let mut source = ConstantSource::new(Rate::bps(8.0), Duration::from_secs(60));
    source.next_frame(clock.now()).unwrap();
    let (sent, _) =
        run_beside(receiver, |stop| send::run_on(&mut io, &config, clock, &mut source, &mut (), stop)).unwrap();
    assert_eq!(sent.stats.sent.of(What::Media).packets, 0);
    assert!(matches!(sent.end, SendEnd::Finished), "{:?}", sent.end);
}

#[test]
fn one_packet_that_arrived_is_enough() {
    let mut first = true;
    let (sent, received, _, _) = with_faults_by_size(|_, _, bytes| {
        let swallowed = bytes > 200 && !std::mem::take(&mut first);
        swallowed.then_some(SendOutcome::Sent)
    });
    assert_eq!(received.stats.media.received, 1);
    assert!(matches!(sent.end, SendEnd::Finished), "{:?}", sent.end);
}

/// The path goes down and does not come back: the sender does not know what arrived.
#[test]
fn a_session_that_ends_in_silence_is_no_success() {
    let dark = |t: Instant| t >= Instant::from_secs_f64(1.0);
    let (sent, ..) = with_faults_for(Duration::from_secs(7), |t, _, _| dark(t).then_some(SendOutcome::Sent));
    let SendEnd::Failed(error @ NetError::Untold { packets, silence, .. }) = &sent.end else {
        panic!("{:?}", sent.end)
    };
    assert!(*packets > 50 && *silence > Duration::from_secs(5), "{error}");
    assert!(*packets < sent.stats.sent.of(What::Media).packets, "{error}");
    assert!(error.hint().unwrap().contains("receiver's summary"), "{:?}", error.hint());
}

#[test]
fn when_the_path_shrinks_packets_get_smaller_and_go_on() {
    // From 0.5 s on the path carries IP packets of 600 B, 572 B of UDP payload. Before, each frame of
    // 1,250 B takes two packets of more than 625 B.
    let mtu = Bytes::new(600);
    let shrunk = |t: Instant, bytes: usize| t > Instant::from_secs_f64(0.5) && bytes > 572;
    let rule = |t: Instant, _, bytes: usize| shrunk(t, bytes).then_some(SendOutcome::TooLarge { mtu: Some(mtu) });
    let (sent, received, _, failures) = with_faults_by_size(rule);
    assert!(matches!(sent.end, SendEnd::Finished), "{:?}", sent.end);
    // The first one tells; after it only questions about larger sizes fail.
    assert!((1..=9).contains(&failures), "{failures}");
    assert_eq!((sent.not_sent, sent.packet_size), (failures, mtu));
    let media = sent.stats.sent.of(What::Media).packets;
    assert!((1..=3).contains(&(media - received.stats.media.received)), "all others arrived");
}

#[test]
fn refusals_without_silence_stop_nothing() {
    // T10: forged "port unreachable" messages, while the receiver goes on answering.
    let (sent, received, _, failures) = with_faults(|_, n| (n % 3 == 0).then_some(SendOutcome::Refused));
    assert!(failures > 20);
    assert!(matches!(sent.end, SendEnd::Finished), "{:?}", sent.end);
    assert_eq!(sent.not_sent + sent.socket.sent, sent.stats.sent.total().packets);
    assert!(received.stats.media.received > 50, "{:?}", received.stats.media);
}

#[test]
fn a_session_most_of_whose_packets_did_not_leave_is_no_success() {
    // After the beginning the firewall takes two packets of three, and the receiver goes on telling of the rest.
    let dark = |t: Instant| t >= Instant::from_secs_f64(0.2);
    let (sent, ..) = with_faults(|t, n| (dark(t) && n % 3 > 0).then_some(SendOutcome::Failed(nix::errno::Errno::EIO)));
    let SendEnd::Failed(NetError::NotSent { not_sent, packets, .. }) = sent.end else { panic!("{:?}", sent.end) };
    assert!(not_sent * 2 > packets && not_sent == sent.not_sent, "{not_sent} of {packets}");
}
