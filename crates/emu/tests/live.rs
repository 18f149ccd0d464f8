//! Sender, relay and receiver, three threads on loopback: the real thing, without a network.
//!
//! Nothing here asserts a time closer than a busy machine can keep.

use fairpace_control::BreakerParams;
use fairpace_control::feedback::Form;
use fairpace_emu::relay::{Relay, RelayConfig, RelayReport};
use fairpace_media::{ConstantSource, FrameSink, FrameSource, MediaError, ReceivedFrame};
use fairpace_net::receive::{ReceiveConfig, ReceiveEnd, ReceiveReport, Receiver};
use fairpace_net::send::{self, SendConfig, SendEnd, SendObserver, SendReport, SendSample};
use fairpace_net::{Clock, NetError};
use fairpace_path::{Capacity, DelayModel, LinkSpec, LossModel, QueueModel, RateModel, RedParams, Thresholds};
use fairpace_rtp::{SenderEvent, What};
use fairpace_units::{Bytes, Class, Dscp, Duration, Instant, Packets, Probability, Rate};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// A sink that counts, and wants a key frame when a gap is seen.
#[derive(Default)]
struct Counting {
    frames: u64,
    bytes: u64,
    gaps: u64,
    last: Option<u64>,
    finished: bool,
}

impl FrameSink for Counting {
    fn on_frame(&mut self, _: Instant, frame: ReceivedFrame) -> Result<(), MediaError> {
        self.frames += 1;
        self.bytes += frame.data.len() as u64;
        self.gaps += u64::from(self.last.is_some_and(|last| frame.first_sequence != last + 1));
        self.last = Some(frame.last_sequence);
        Ok(())
    }
    fn finish(&mut self, _: Instant) -> Result<(), MediaError> {
        self.finished = true;
        Ok(())
    }
}

/// Notes what the sender tells.
#[derive(Default)]
struct Notes {
    events: Vec<SenderEvent>,
    samples: Vec<SendSample>,
}

impl SendObserver for Notes {
    fn on_event(&mut self, _: Instant, event: &SenderEvent) {
        self.events.push(*event);
    }
    fn on_sample(&mut self, sample: &SendSample) {
        self.samples.push(*sample);
    }
}

/// 1 Mbit/s, 50 ms each way, 1 % loss, 50 packets with two priorities.
fn path(config: &mut RelayConfig) {
    config.forward = LinkSpec {
        rate: RateModel::Fixed(Rate::mbps(1.0)),
        delay: DelayModel::constant(Duration::from_millis(50)),
        queue: QueueModel::TwoPriority { capacity: Capacity::Packets(Packets::new(50)) },
        loss: LossModel::Bernoulli(Probability::new(0.01).unwrap()),
        ..LinkSpec::default()
    };
    config.back.delay = DelayModel::constant(Duration::from_millis(50));
}

struct Run {
    sent: SendReport,
    received: ReceiveReport,
    relayed: RelayReport,
    sink: Counting,
    notes: Notes,
}

/// Sends through the relay until the sender ends; then the receiver has until its BYE, and the
/// relay is stopped.
fn through_the_relay(ip: IpAddr, change: impl FnOnce(&mut SendConfig)) -> Run {
    over(ip, path, Rate::kbps(400.0), change)
}

fn over(ip: IpAddr, path: impl FnOnce(&mut RelayConfig), video: Rate, change: impl FnOnce(&mut SendConfig)) -> Run {
    into(ReceiveConfig::new(0), ip, path, video, change)
}

fn into(
    receive: ReceiveConfig,
    ip: IpAddr,
    path: impl FnOnce(&mut RelayConfig),
    video: Rate,
    change: impl FnOnce(&mut SendConfig),
) -> Run {
    let clock = Clock::start();
    let receiver = Receiver::open(receive, clock).unwrap();
    let to = SocketAddr::new(ip, receiver.address().unwrap().port());
    let mut config = RelayConfig::new(0, to);
    path(&mut config);
    let relay = Relay::open(config, clock).unwrap();
    let mut config = SendConfig::new(SocketAddr::new(ip, relay.address().unwrap().port()));
    config.scheme = "rcs".to_owned();
    config.duration = Some(Duration::from_secs(4));
    change(&mut config);
    let (stop, stop_relay) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        let relay = scope.spawn(|| relay.run(|_| {}, &stop_relay).unwrap());
        let receiver = scope.spawn(|| {
            let mut sink = Counting::default();
            let report = receiver.run(&mut sink, &mut (), &stop).unwrap();
            (report, sink)
        });
        let mut source = ConstantSource::new(video, Duration::from_millis(40));
        let mut notes = Notes::default();
        let sent = send::run(&config, clock, &mut source, &mut notes, &stop).unwrap();
        let (received, sink) = receiver.join().unwrap();
        stop_relay.store(true, Ordering::Relaxed);
        Run { sent, received, relayed: relay.join().unwrap(), sink, notes }
    })
}

/// The facts that hold for every scheme and family.
fn check(run: &Run) {
    let Run { sent, received, relayed, sink, notes } = run;
    assert!(matches!(sent.end, SendEnd::Finished), "{:?}", sent.end);
    assert!(matches!(received.end, ReceiveEnd::Bye(_)), "the sender says goodbye: {:?}", received.end);
    assert!(sink.finished && sink.frames > 0);
    assert_eq!(sink.frames, received.frames);
    assert!(relayed.lateness.count > 0);

    // The challenge went out in both classes before anything else, and its echo told the round trip.
    let (srtt, dscp) = sent.validated.unwrap();
    assert!(srtt >= Duration::from_millis(99), "two links of 50 ms: {srtt:?}");
    assert_eq!(dscp, Some(Dscp::DEFAULT));
    assert!(notes.events.iter().any(|e| matches!(e, SenderEvent::PeerValidated { .. })), "{:?}", notes.events);
    assert!(notes.samples.len() > 10);

    // 400 kbit/s of frames at 25/s for 4 s are 100 frames; the first moment goes to the challenge's echo,
    // 1 % of packets are lost, and a slow controller may drop frames at the sender.
    let media = sent.stats.sent.of(What::Media).packets;
    assert!(media > 20, "{sent:?}");
    let stats = &received.stats.media;
    assert!(stats.received <= media, "no duplicates on this path: {stats:?}");
    assert!(stats.received as f64 >= 0.8 * media as f64, "{} of {media} arrived", stats.received);
    assert!(sent.stats.feedback.packets > 20, "{:?}", sent.stats);
    assert_eq!(sent.stats.rejected, Default::default(), "all feedback was believed");

    // The relay's counters and the ends' agree: what was sent with LE was seen with LE.
    let forward = &relayed.series.last().unwrap().forward.counters;
    let low = sent.stats.sent.of(What::Dummy).packets + 1;
    assert_eq!(forward.class(Class::Low).offered.packets.get(), low, "dummies and the second challenge are LE");
    let all = sent.stats.sent.total().packets;
    assert_eq!(forward.total().offered.packets.get(), all, "nothing else travelled there");
    assert_eq!(sent.socket.sent, all);
    assert_eq!(sent.not_sent, 0);
    assert_eq!(forward.class(Class::Normal).offered.packets.get(), all - low);
    assert_eq!(relayed.not_sent, 0);
}

/// The four long runs, side by side: they mostly sleep.
struct Runs {
    fixed: Run,
    rcs: Run,
    rcs_v6: Run,
    rap: Run,
}

static RUNS: LazyLock<Runs> = LazyLock::new(|| {
    let (v4, v6) = (IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST));
    thread::scope(|scope| {
        let fixed = scope.spawn(move || {
            through_the_relay(v4, |c| {
                c.scheme = "fixed".to_owned();
                c.settings.insert("rate".to_owned(), "600 kbit/s".to_owned());
            })
        });
        let rcs = scope.spawn(move || through_the_relay(v4, |_| {}));
        let rcs_v6 = scope.spawn(move || through_the_relay(v6, |_| {}));
        let rap = scope.spawn(move || through_the_relay(v4, |c| c.scheme = "rap".to_owned()));
        let run = |r: thread::ScopedJoinHandle<'_, Run>| r.join().unwrap();
        Runs { fixed: run(fixed), rcs: run(rcs), rcs_v6: run(rcs_v6), rap: run(rap) }
    })
});

#[test]
fn a_fixed_rate_flow_crosses_the_relay_and_every_count_agrees() {
    let run = &RUNS.fixed;
    check(run);
    assert_eq!(run.sent.stats.sent.of(What::Dummy).packets, 0, "a fixed rate sends no dummies");
    // Half of the link: nothing but the random 1 % is lost. 100 frames of 2 packets.
    assert!(run.sink.frames >= 80, "{}", run.sink.frames);
}

#[test]
fn rcs_probes_with_le_dummies_that_the_relay_sees_as_low() {
    let run = &RUNS.rcs;
    check(run);
    let dummies = run.sent.stats.sent.of(What::Dummy).packets;
    assert!(dummies > 0, "RCS begins with dummies");
    assert!(run.received.stats.dummy.received > 0, "{:?}", run.received.stats);
    assert_eq!(run.received.stats.dummy.dscp, Dscp::LE);
}

#[test]
fn rap_adapts_over_a_real_socket() {
    check(&RUNS.rap);
    let rates: Vec<f64> = RUNS.rap.notes.samples.iter().map(|s| s.rate.as_bps()).collect();
    let (low, high) = rates.iter().fold((f64::MAX, 0.0_f64), |(l, h), r| (l.min(*r), h.max(*r)));
    assert!(high > 1.5 * low, "it moved: {low:.0} to {high:.0} bit/s");
}

/// The equation family, each through a relay of its own, side by side; the last is measured by the receiver.
static EQUATIONS: LazyLock<Vec<(&str, Run)>> = LazyLock::new(|| {
    let schemes = ["srp", "crp", "mrp", "tfrc", "tfrc-sp", "measured"];
    thread::scope(|scope| {
        let run = |scheme: &'static str| {
            scope.spawn(move || {
                let run = through_the_relay(Ipv4Addr::LOCALHOST.into(), |c| {
                    c.scheme = scheme.to_owned();
                    if scheme == "measured" {
                        c.scheme = "tfrc".to_owned();
                        c.settings.insert("measured_by".to_owned(), "receiver".to_owned());
                    }
                });
                (scheme, run)
            })
        };
        let all: Vec<_> = schemes.into_iter().map(run).collect();
        all.into_iter().map(|r| r.join().unwrap()).collect()
    })
});

#[test]
fn every_equation_sends_and_finishes_over_a_real_socket() {
    for (scheme, run) in EQUATIONS.iter() {
        check(run);
        assert_eq!(run.sent.stats.sent.of(What::Dummy).packets, 0, "{scheme} sends no dummies");
        let rates: Vec<f64> = run.notes.samples.iter().map(|s| s.rate.as_bps()).collect();
        let last = *rates.last().unwrap();
        // 400 kbit/s of video over 1 Mbit/s, 1 % loss, RTT 100 ms: TCP's rate at p = 0.01 is some 0.9 Mbit/s for
        // packets of 1,200 B; p is known to a factor of a few after 4 s. The floor is 50 kbit/s, the cap 10 Mbit/s.
        assert!((50e3..=10e6).contains(&last), "{scheme}: {last}");
        let frames = run.sink.frames;
        assert!(frames >= 40, "{scheme}: {frames} frames of 100 were received");
    }
}

#[test]
fn a_receiver_that_measures_reports_about_once_per_round_trip() {
    let (_, run) = EQUATIONS.last().unwrap();
    // 4 s of round trips of 100 ms, and a report at once for each of the loss events.
    let reports = run.received.stats.sent.of(What::Feedback).packets;
    assert!((15..=100).contains(&reports), "{reports}");
    assert_eq!(run.sent.stats.rejected, Default::default());
    // A full compound: IP 28 B, RR 8 B, SDES of some 30 B, the report 28 B.
    let bytes = run.received.stats.sent.of(What::Feedback).bytes;
    assert!((60..=90).contains(&(bytes / reports)), "{bytes} B in {reports}");
}

#[test]
fn congestion_marks_come_back_and_lower_the_rate_in_place_of_losses() {
    // 1 Mbit/s that marks instead of dropping; the video wants three times as much.
    for ip in [IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST)] {
        let marking = |c: &mut RelayConfig| {
            path(c);
            c.forward.loss = LossModel::None;
            let capacity = Capacity::Packets(Packets::new(200));
            let thresholds = Thresholds::Packets { min: Packets::new(5), max: Packets::new(30) };
            let usual = RedParams::for_capacity(capacity, Bytes::new(1_200));
            c.forward.queue = QueueModel::Red(RedParams { ecn: true, weight: 0.05, thresholds, ..usual });
        };
        let run = over(ip, marking, Rate::mbps(3.0), |c| {
            c.scheme = "tfrc".to_owned();
            c.settings.insert("ecn".to_owned(), "on".to_owned());
            c.duration = Some(Duration::from_secs(6));
        });
        assert!(matches!(run.sent.end, SendEnd::Finished), "{:?}", run.sent.end);
        // Only packets that say that they are ECN-capable are marked: ECT(0) has come through two sockets.
        let marks = run.received.stats.media.ce_marks;
        assert!(marks > 0, "{:?}", run.received.stats.media);
        assert_eq!(run.sent.stats.rejected, Default::default());
        let samples = &run.notes.samples;
        let highest = samples.iter().map(|s| s.rate.as_bps()).fold(0.0, f64::max);
        let last: Vec<f64> = samples.iter().rev().take(10).map(|s| s.rate.as_bps()).collect();
        let last = last.iter().sum::<f64>() / last.len() as f64;
        assert!(highest > 1.2e6, "it went beyond the link: {highest:.0}");
        assert!((0.2e6..1.6e6).contains(&last), "and came down to it: {last:.0}");
        // Few losses, of packets that filled the queue in slow start: the rate is not theirs.
        let lost = run.received.stats.media.lost;
        assert!(lost * 5 < marks as i64 + 50, "{lost} lost, {marks} marked");
    }
}

/// AIMD over both versions of IP, its 24-bit numbers wrapping, ACKs lost too; and one that is told a small window.
static WINDOWS: LazyLock<[Run; 3]> = LazyLock::new(|| {
    let losing = |c: &mut RelayConfig| {
        path(c);
        c.back.loss = LossModel::Bernoulli(Probability::new(0.1).unwrap());
    };
    let aimd = move |c: &mut SendConfig| {
        c.scheme = "aimd".to_owned();
        c.session.first_sequence = Some((1 << 24) - 60);
    };
    let told = |c: &mut RelayConfig| {
        path(c);
        c.forward.loss = LossModel::None;
    };
    thread::scope(|scope| {
        let v4 = scope.spawn(move || over(Ipv4Addr::LOCALHOST.into(), losing, Rate::kbps(400.0), aimd));
        let v6 = scope.spawn(move || over(Ipv6Addr::LOCALHOST.into(), losing, Rate::kbps(400.0), aimd));
        let told = scope.spawn(move || {
            let mut receive = ReceiveConfig::new(0);
            receive.session.rwnd = Some(5);
            into(receive, Ipv4Addr::LOCALHOST.into(), told, Rate::mbps(2.0), |c| {
                c.scheme = "aimd".to_owned();
                c.settings.insert("initial_window".to_owned(), "10".to_owned());
            })
        });
        [v4, v6, told].map(|run| run.join().unwrap())
    })
});

#[test]
fn aimd_is_acknowledged_by_sack_vectors_across_the_wrap_and_lost_acks_lose_nothing() {
    for run in &WINDOWS[..2] {
        check(run);
        assert_eq!(run.sent.feedback_form, Form::SackVector);
        let media = &run.received.stats.media;
        assert!(media.received > 60, "beyond the wrap: {media:?}");
        // One ACK of 36 bytes for each packet; 10 % of them are lost on their way.
        let acks = run.received.stats.sent.of(What::Feedback);
        assert_eq!((acks.packets, acks.bytes), (media.received, 36 * media.received));
        assert!(run.sent.stats.feedback.packets < acks.packets, "some were lost");
        // Nobody believes that a packet is lost that has arrived, but for the last ones.
        let data = &run.sent.flow.data;
        assert_eq!(run.sent.flow.bad, Default::default());
        assert!(data.lost - data.late <= media.lost as u64 + 1, "{data:?} {media:?}");
        assert!(data.acked - data.late + data.lost + 10 >= data.sent, "{data:?}");
        assert!(run.sink.frames >= 40, "{} frames of 100", run.sink.frames);
        assert_eq!(run.sent.rwnd, None);
    }
}

#[test]
fn the_receivers_window_bounds_what_is_on_its_way() {
    let run = &WINDOWS[2];
    check(run);
    assert_eq!(run.sent.rwnd, Some(5));
    for s in &run.notes.samples {
        let data = &s.flow.data;
        let outstanding = data.sent - (data.acked - data.late) - data.lost;
        assert!(outstanding <= 5, "{outstanding} at {}: {data:?}", s.at);
    }
    // Five packets of 1,200 B per round trip of at least 100 ms are 480 kbit/s; the source gives 2 Mbit/s.
    let rate = run.received.stats.media.bytes as f64 * 8.0 / run.sent.elapsed.as_secs_f64();
    assert!((50e3..500e3).contains(&rate), "{rate:.0} bit/s");
}

#[test]
fn rcs_works_the_same_over_ipv6() {
    check(&RUNS.rcs_v6);
    assert_eq!(RUNS.rcs_v6.received.stats.dummy.dscp, Dscp::LE);
}

/// A direct pair, without a relay.
fn direct(ip: IpAddr, change: impl FnOnce(&mut SendConfig, &mut ReceiveConfig)) -> (Receiver, SendConfig, Clock) {
    let clock = Clock::start();
    let mut send = SendConfig::new(SocketAddr::new(ip, 1));
    let mut receive = ReceiveConfig::new(0);
    change(&mut send, &mut receive);
    let receiver = Receiver::open(receive, clock).unwrap();
    send.peer.set_port(receiver.address().unwrap().port());
    (receiver, send, clock)
}

fn source() -> impl FrameSource {
    ConstantSource::new(Rate::kbps(300.0), Duration::from_millis(40))
}

/// Sets a flag when the sender's clock shows this time.
struct SetAt<'a>(Instant, &'a AtomicBool);

impl SendObserver for SetAt<'_> {
    fn on_sample(&mut self, sample: &SendSample) {
        if sample.at >= self.0 {
            self.1.store(true, Ordering::Relaxed);
        }
    }
}

#[test]
fn a_receivers_goodbye_ends_the_sender_in_good_order() {
    let (receiver, config, clock) = direct(Ipv4Addr::LOCALHOST.into(), |_, _| {});
    let (stop, leave) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        let receiving = scope.spawn(|| receiver.run(&mut Counting::default(), &mut (), &leave).unwrap());
        let mut observer = SetAt(Instant::from_secs_f64(0.7), &leave);
        let report = send::run(&config, clock, &mut source(), &mut observer, &stop).unwrap();
        assert!(matches!(receiving.join().unwrap().end, ReceiveEnd::Interrupted));
        assert!(matches!(report.end, SendEnd::PeerBye), "{:?}", report.end);
    });
}

#[test]
fn a_killed_receiver_is_noticed_by_its_machines_refusals_and_its_silence() {
    let (receiver, mut config, clock) = direct(Ipv4Addr::LOCALHOST.into(), |_, _| {});
    config.refused_silence = Duration::from_millis(300); // 5 s in earnest
    let receiver_address = config.peer;
    // The receiver's answers come through a bare socket pair that is closed in the middle, as when
    // its process is killed: no BYE, and the port is closed.
    let front = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    config.peer = front.local_addr().unwrap();
    let (stop, kill) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        let receiving = scope.spawn(|| receiver.run(&mut Counting::default(), &mut (), &stop).unwrap());
        scope.spawn(|| forward_until(front, receiver_address, &kill));
        let mut observer = SetAt(Instant::from_secs_f64(0.7), &kill);
        let report = send::run(&config, clock, &mut source(), &mut observer, &AtomicBool::new(false)).unwrap();
        stop.store(true, Ordering::Relaxed);
        receiving.join().unwrap();
        let SendEnd::Failed(error) = &report.end else { panic!("{:?}", report.end) };
        assert!(matches!(error, NetError::PeerVanished { .. }), "{error}");
        assert!(error.to_string().contains("nobody listens"), "{error}");
        // Long before the breaker's 15 s
        assert!(report.elapsed < Duration::from_secs(5), "{:?}", report.elapsed);
    });
}

/// Passes datagrams on in both directions, marks and all ignored, until told to close.
fn forward_until(front: std::net::UdpSocket, to: SocketAddr, kill: &AtomicBool) {
    let back = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    back.connect(to).unwrap();
    for socket in [&front, &back] {
        socket.set_read_timeout(Some(Duration::from_millis(2))).unwrap();
    }
    let mut client = None;
    let mut buffer = [0; 2_048];
    while !kill.load(Ordering::Relaxed) {
        if let Ok((n, from)) = front.recv_from(&mut buffer) {
            client = Some(from);
            back.send(&buffer[..n]).unwrap();
        }
        if let (Ok(n), Some(client)) = (back.recv(&mut buffer), client) {
            front.send_to(&buffer[..n], client).unwrap();
        }
    }
}

#[test]
fn without_a_goodbye_the_sender_stops_within_three_reporting_intervals() {
    let (receiver, mut config, clock) = direct(Ipv4Addr::LOCALHOST.into(), |_, _| {});
    let mut relay_config = RelayConfig::new(0, config.peer);
    relay_config.sample = Duration::from_millis(100);
    let relay = Relay::open(relay_config, clock).unwrap();
    config.peer = SocketAddr::new(config.peer.ip(), relay.address().unwrap().port());
    let td = Duration::from_millis(500);
    config.breaker = Some(BreakerParams { td, tdr: td, ..BreakerParams::default() });
    let (stop, stop_relay) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        // After 1.5 s the relay, and with it the path to the receiver, is gone.
        scope.spawn(|| {
            relay
                .run(
                    |s| {
                        if s.at >= Instant::from_secs_f64(1.5) {
                            stop_relay.store(true, Ordering::Relaxed);
                        }
                    },
                    &stop_relay,
                )
                .unwrap();
        });
        let receiving = scope.spawn(|| receiver.run(&mut Counting::default(), &mut (), &stop).unwrap());
        let report = send::run(&config, clock, &mut source(), &mut (), &AtomicBool::new(false)).unwrap();
        stop.store(true, Ordering::Relaxed);
        receiving.join().unwrap();
        let SendEnd::Failed(error) = &report.end else { panic!("{:?}", report.end) };
        assert!(matches!(error, NetError::PeerVanished { .. }), "{error}");
        assert!(error.hint().is_some());
        // 1.5 s of life, three times 0.5 s of silence, and generous slack for a busy machine.
        assert!(report.elapsed >= Duration::from_millis(1_400), "{:?}", report.elapsed);
        assert!(report.elapsed <= Duration::from_secs(8), "{:?}", report.elapsed);
        assert!(report.stats.sent.of(What::Media).packets > 0, "the partial report is complete");
    });
}

/// Two senders that nobody answers, side by side: to a port that is bound but not read, and to one that is
/// closed.
static UNANSWERED: LazyLock<(SendReport, SendReport)> = LazyLock::new(|| {
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let closed = std::net::UdpSocket::bind("[::1]:0").unwrap().local_addr().unwrap();
    let go = |to: SocketAddr| {
        send::run(&SendConfig::new(to), Clock::start(), &mut source(), &mut (), &AtomicBool::new(false)).unwrap()
    };
    thread::scope(|scope| {
        let refused = scope.spawn(|| go(closed));
        (go(silent.local_addr().unwrap()), refused.join().unwrap())
    })
});

#[test]
fn a_peer_that_never_answers_gets_challenges_only_and_the_error_says_so() {
    let report = &UNANSWERED.0;
    let SendEnd::Failed(NetError::PeerUnreachable { waited, .. }) = &report.end else { panic!("{:?}", report.end) };
    assert!(*waited >= Duration::from_secs(6), "1 + 2 + 4 s of patience: {waited:?}");
    let sent = report.stats.sent;
    assert_eq!(sent.total().packets, sent.of(What::Challenge).packets, "T12: nothing but challenges");
    assert_eq!(sent.of(What::Challenge).packets, 6, "three tries in two classes");
    assert_eq!(report.stats.frames, 0, "nothing was captured");
}

#[test]
fn a_closed_port_is_told_apart_from_silence() {
    let report = &UNANSWERED.1;
    let SendEnd::Failed(error) = &report.end else { panic!("{:?}", report.end) };
    assert!(error.to_string().contains("nobody listens"), "{error}");
    assert!(error.hint().unwrap().contains(&format!("fairpace receive {}", report.peer.port())));
}

#[test]
fn the_stop_flag_ends_both_ends_with_valid_reports() {
    let (receiver, config, clock) = direct(Ipv4Addr::LOCALHOST.into(), |_, _| {});
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let receiving =
            scope.spawn(|| receiver.run(&mut Counting::default(), &mut (), &AtomicBool::new(false)).unwrap());
        let mut observer = SetAt(Instant::from_secs_f64(0.5), &stop);
        let report = send::run(&config, clock, &mut source(), &mut observer, &stop).unwrap();
        assert!(matches!(report.end, SendEnd::Interrupted), "{:?}", report.end);
        assert_eq!(report.stats.sent.of(What::Bye).packets, 3, "and says goodbye");
        assert!(matches!(receiving.join().unwrap().end, ReceiveEnd::Bye(_)));
    });
}

#[test]
fn a_receiver_without_a_sender_gives_up_when_its_patience_ends() {
    let mut config = ReceiveConfig::new(0);
    config.patience = Some(Duration::from_millis(100));
    let receiver = Receiver::open(config, Clock::start()).unwrap();
    let report = receiver.run(&mut Counting::default(), &mut (), &AtomicBool::new(false)).unwrap();
    assert!(matches!(report.end, ReceiveEnd::Failed(NetError::NoSender { .. })), "{:?}", report.end);
}

#[test]
fn media_is_passed_on_clean_for_a_player() {
    let player = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    player.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let (receiver, mut config, clock) = direct(Ipv6Addr::LOCALHOST.into(), |_, receive| {
        receive.forward = Some(player.local_addr().unwrap());
    });
    config.duration = Some(Duration::from_secs(1));
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let receiving = scope.spawn(|| receiver.run(&mut Counting::default(), &mut (), &stop).unwrap());
        send::run(&config, clock, &mut source(), &mut (), &stop).unwrap();
        let report = receiving.join().unwrap();
        let mut ssrcs = std::collections::BTreeSet::new();
        let mut sequences = Vec::new();
        let mut buffer = [0; 2_048];
        while let Ok(n) = player.recv(&mut buffer) {
            let packet = &buffer[..n];
            assert_eq!(packet[0], 0x80, "version 2, no padding, no extension, no CSRC");
            assert_eq!(packet[1] & 0x7f, 96, "VP8's payload type, never a dummy's");
            sequences.push(u16::from_be_bytes([packet[2], packet[3]]));
            ssrcs.insert(packet[8..12].to_vec());
        }
        assert_eq!(sequences.len() as u64, report.forwarded);
        assert_eq!(report.forwarded, report.stats.media.received);
        assert_eq!(ssrcs.len(), 1);
        assert!(sequences.windows(2).all(|w| w[1] == w[0].wrapping_add(1)), "no dummies, no holes: {sequences:?}");
    });
}

/// A player that begins to listen while the sender runs, and goes on until the test ends.
struct Coming {
    at_sample: u32,
    address: SocketAddr,
    player: Option<std::net::UdpSocket>,
}

impl SendObserver for Coming {
    fn on_sample(&mut self, _: &SendSample) {
        self.at_sample = self.at_sample.saturating_sub(1);
        if self.at_sample == 0 {
            self.player.get_or_insert_with(|| std::net::UdpSocket::bind(self.address).unwrap());
        }
    }
}

#[test]
fn a_player_that_comes_late_gets_a_key_frame_and_one_that_was_there_costs_none() {
    for late in [false, true] {
        let player = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = player.local_addr().unwrap();
        let player = (!late).then_some(player);
        let (receiver, mut config, clock) = direct(Ipv4Addr::LOCALHOST.into(), |_, receive| {
            receive.forward = Some(address);
        });
        config.duration = Some(Duration::from_secs(2));
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let receiving = scope.spawn(|| receiver.run(&mut Counting::default(), &mut (), &stop).unwrap());
            // The player comes with the third sample: 300 ms after the beginning.
            let mut coming = Coming { at_sample: 3, address, player };
            send::run(&config, clock, &mut source(), &mut coming, &stop).unwrap();
            let report = receiving.join().unwrap();
            let asked = report.stats.sent.of(What::KeyFrameRequest).packets;
            assert_eq!(asked, u64::from(late), "late: {late}");
        });
    }
}

#[test]
fn what_cannot_begin_is_an_error_with_a_name() {
    let clock = Clock::start();
    let peer = "127.0.0.1:9".parse().unwrap();
    let go =
        |config: &SendConfig| send::run(config, clock, &mut source(), &mut (), &AtomicBool::new(false)).unwrap_err();
    let error = go(&SendConfig { scheme: "rcss".to_owned(), ..SendConfig::new(peer) });
    assert!(error.to_string().contains("rcss") && error.hint().unwrap().contains("rcs"), "{error}");
    assert!(matches!(error, NetError::Control(_)), "{error:?}");
    let mut config = SendConfig::new(peer);
    config.settings.insert("nonsense".to_owned(), "1".to_owned());
    assert!(go(&config).to_string().contains("nonsense"));
    for nobody in ["224.0.0.1:9", "[ff02::1]:9", "255.255.255.255:9", "0.0.0.0:9", "[::]:9", "[::ffff:224.0.0.1]:9"] {
        let error = go(&SendConfig::new(nobody.parse().unwrap()));
        assert!(matches!(error, NetError::Config { field: "HOST:PORT", .. }), "{nobody}: {error}");
    }
    for size in [71, 1_501] {
        let mut config = SendConfig::new(peer);
        config.session.packet_size = Bytes::new(size);
        let error = go(&config);
        assert_eq!(error.to_string(), format!("`packet_size` is {size} B; allowed: 72 B to 1500 B"));
    }
    // A relay or a forwarder that sends to itself.
    let free = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut itself = ReceiveConfig::new(free.port());
    itself.forward = Some(free);
    let error = Receiver::open(itself, clock).unwrap_err();
    assert!(matches!(error, NetError::Config { field: "forward", .. }), "{error}");
    let error = Relay::open(RelayConfig::new(free.port(), free), clock).unwrap_err();
    assert!(matches!(error, NetError::Config { field: "to", .. }), "{error}");
    let first = Receiver::open(ReceiveConfig::new(0), clock).unwrap();
    let port = first.address().unwrap().port();
    let error = Receiver::open(ReceiveConfig::new(port), clock).unwrap_err();
    assert!(error.to_string().contains(&format!("port {port} is in use")), "{error}");
    assert!(matches!(error, NetError::PortInUse { .. }), "{error:?}");
}
