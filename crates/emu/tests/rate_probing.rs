//! `send --control lda` and `tpba` with `receive`, over sockets: receiver reports as the only feedback, and live frames that
//! go by TCP now and by UDP then.

use fairpace_control::feedback::Form;
use fairpace_emu::relay::{Relay, RelayConfig, RelayReport};
use fairpace_media::{ConstantSource, FrameSink, MediaError, ReceivedFrame};
use fairpace_net::receive::{ReceiveConfig, ReceiveEnd, ReceiveReport, Receiver};
use fairpace_net::send::{self, SendConfig, SendEnd, SendObserver, SendReport, SendSample};
use fairpace_net::{Clock, Family, NetError};
use fairpace_path::{Capacity, DelayModel, LinkSpec, LossModel, QueueModel, RateModel};
use fairpace_rtp::What;
use fairpace_units::{Duration, Instant, Packets, Probability, Rate, Via};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Frames by transport, and whether they came in order.
#[derive(Default)]
struct Seen {
    udp: u64,
    tcp: u64,
    both: u64,
    last: Option<u64>,
    disorder: u64,
    /// Each frame of so many keeps the receiver busy for more than a frame's time.
    busy_at: Option<u64>,
}

impl FrameSink for Seen {
    fn on_frame(&mut self, _: Instant, frame: ReceivedFrame) -> Result<(), MediaError> {
        *match frame.via {
            Some(Via::Udp) => &mut self.udp,
            Some(Via::Tcp) => &mut self.tcp,
            None => &mut self.both,
        } += 1;
        self.disorder += u64::from(self.last.is_some_and(|last| frame.first_sequence != last + 1));
        self.last = Some(frame.last_sequence);
        if self.busy_at.is_some_and(|each| (self.udp + self.tcp).is_multiple_of(each)) {
            #[allow(clippy::disallowed_methods)] // a sink that takes its time
            thread::sleep(std::time::Duration::from_millis(90));
        }
        Ok(())
    }
}

#[derive(Default)]
struct Notes {
    switches: Vec<Via>,
    samples: Vec<SendSample>,
}

impl SendObserver for Notes {
    fn on_switch(&mut self, _: Instant, via: Via) {
        self.switches.push(via);
    }
    fn on_sample(&mut self, sample: &SendSample) {
        self.samples.push(*sample);
    }
}

struct Run {
    sent: SendReport,
    received: ReceiveReport,
    relayed: Option<RelayReport>,
    seen: Seen,
    notes: Notes,
}

/// For `seconds`, over `path` or straight.
fn run(scheme: &str, settings: &[(&str, &str)], seconds: u64, path: Option<LinkSpec>, tcp: bool) -> Run {
    run_into(Seen::default(), scheme, settings, seconds, path, tcp)
}

/// The same into that sink.
fn run_into(
    mut seen: Seen,
    scheme: &str,
    settings: &[(&str, &str)],
    seconds: u64,
    path: Option<LinkSpec>,
    tcp: bool,
) -> Run {
    let clock = Clock::start();
    let config = ReceiveConfig { tcp, family: Family::V4, ..ReceiveConfig::new(0) };
    let receiver = Receiver::open(config, clock).unwrap();
    let to = SocketAddr::from((Ipv4Addr::LOCALHOST, receiver.address().unwrap().port()));
    let relay = path.map(|forward| {
        let mut config = RelayConfig::new(0, to);
        config.back.delay = forward.delay;
        config.forward = forward;
        Relay::open(config, clock).unwrap()
    });
    let to = relay.as_ref().map_or(to, |r| SocketAddr::from((Ipv4Addr::LOCALHOST, r.address().unwrap().port())));
    let mut config = SendConfig::new(to);
    scheme.clone_into(&mut config.scheme);
    config.settings = settings.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    config.duration = Some(Duration::from_secs(seconds));
    let (stop, stop_relay) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        let relay = relay.map(|relay| scope.spawn(|| relay.run(|_| {}, &stop_relay).unwrap()));
        let receiver = scope.spawn(|| {
            let report = receiver.run(&mut seen, &mut (), &stop).unwrap();
            (report, seen)
        });
        let mut source = ConstantSource::new(Rate::kbps(300.0), Duration::from_millis(40));
        let mut notes = Notes::default();
        let sent = send::run(&config, clock, &mut source, &mut notes, &stop).unwrap();
        // A receiver that was never spoken to by a proven sender would listen for ever.
        stop.store(matches!(sent.end, SendEnd::Failed(_)), Ordering::Relaxed);
        let (received, seen) = receiver.join().unwrap();
        stop_relay.store(true, Ordering::Relaxed);
        Run { sent, received, relayed: relay.map(|relay| relay.join().unwrap()), seen, notes }
    })
}

#[test]
fn lda_goes_by_receiver_reports_through_the_relay() {
    let path = LinkSpec {
        rate: RateModel::Fixed(Rate::mbps(1.0)),
        delay: DelayModel::constant(Duration::from_millis(50)),
        queue: QueueModel::DropTail { capacity: Capacity::Packets(Packets::new(50)) },
        loss: LossModel::Bernoulli(Probability::new(0.02).unwrap()),
        ..LinkSpec::default()
    };
    let settings = [("r_0", "500kbps"), ("t_rtcp", "250ms"), ("t_adapt", "1s")];
    let Run { sent, received, relayed, seen, .. } = run("lda", &settings, 6, Some(path), false);
    assert!(matches!(sent.end, SendEnd::Finished), "{:?}", sent.end);
    assert!(matches!(received.end, ReceiveEnd::Bye(_)), "{:?}", received.end);
    assert_eq!(sent.feedback_form, Form::Reports);
    let stats = &received.stats;
    assert_eq!(stats.sent.of(What::Feedback).packets, 0, "reports and nothing else");
    assert!((12..=32).contains(&stats.sent.of(What::Report).packets), "{:?}", stats.sent);
    assert!(sent.stats.report_rtt.unwrap() >= Duration::from_millis(99), "LSR and DLSR: {:?}", sent.stats.report_rtt);
    // Reports told of all that the relay dropped, but for the last moments; nothing was called unproven.
    let dropped = relayed.unwrap().series.last().unwrap().forward.counters.total().dropped_in_all().packets.get();
    assert!(sent.flow.data.lost <= dropped, "{} told, {dropped} dropped", sent.flow.data.lost);
    assert_eq!(sent.stats.rejected, Default::default());
    assert!(seen.udp > 60 && seen.tcp + seen.both == 0, "{} frames", seen.udp);
}

#[test]
fn live_frames_under_tpba_change_their_transport_and_none_is_lost_or_split() {
    let settings = [("t_running", "300ms"), ("t_tcp", "50ms"), ("epsilon", "1Gbps")];
    let Run { sent, received, seen, notes, .. } = run("tpba", &settings, 5, None, true);
    assert!(matches!(sent.end, SendEnd::Finished), "{:?}", sent.end);
    assert!(matches!(received.end, ReceiveEnd::Bye(_)), "{:?}", received.end);
    assert!(sent.switches >= 4 && seen.udp > 0 && seen.tcp > 0, "{} changes", sent.switches);
    assert_eq!(notes.switches.first(), Some(&Via::Udp), "it begins by TCP");
    assert_eq!((seen.both, seen.disorder), (0, 0));
    assert_eq!(seen.udp + seen.tcp, sent.stats.frames - sent.stats.frames_dropped);
    assert_eq!(received.tcp.map(|t| t.accepted), Some(1));
    let tcp = sent.tcp.unwrap();
    assert_eq!(tcp.algorithm, "reno");
    assert!(tcp.idle.periods >= 2 && tcp.acked.get() > 0, "{tcp:?}");
    assert!(notes.samples.iter().any(|s| s.state == "running" && s.via == Via::Udp));
}

/// Packets that wait in both of its sockets when it comes back are taken in the order in which they were sent.
#[test]
fn a_receiver_that_was_busy_at_a_change_of_the_transport_keeps_the_order() {
    let settings = [("t_running", "200ms"), ("t_tcp", "50ms"), ("epsilon", "1Gbps")];
    let busy = Seen { busy_at: Some(3), ..Seen::default() };
    let Run { sent, seen, .. } = run_into(busy, "tpba", &settings, 8, None, true);
    assert!(matches!(sent.end, SendEnd::Finished), "{:?}", sent.end);
    assert!(sent.switches >= 8, "{} changes", sent.switches);
    assert_eq!((seen.both, seen.disorder), (0, 0), "{} by UDP, {} by TCP", seen.udp, seen.tcp);
}

#[test]
fn tpba_against_a_receiver_without_the_option_says_what_to_add() {
    let Run { sent, .. } = run("tpba", &[], 5, None, false);
    let SendEnd::Failed(error) = &sent.end else { panic!("{:?}", sent.end) };
    assert!(matches!(error, NetError::NoTcpHalf { .. }), "{error}");
    assert_eq!(sent.stats.sent.of(What::Media).packets, 0);
    assert!(error.hint().unwrap().contains("--tcp"));
}
