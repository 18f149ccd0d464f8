//! Quick-Start between real sockets of two namespaces: routers, networks that drop or rewrite the option, a receiver that does not know it,
//! a sender without the right to set it; and through the relay. One process with one thread at its start, which the kernel demands: no test
//! harness. Skips, with the reason, where the system gives no namespaces or no devices.

mod common;
#[path = "common/named.rs"]
mod named;

use fairpace_control::quick_start::{QsCounters, QsVerdict};
use fairpace_emu::relay::{Relay, RelayConfig};
use fairpace_emu::{Kept, Running, Sandbox, Side, Testbed, TestbedOptions, drop_privileges_but};
use fairpace_media::ConstantSource;
use fairpace_net::receive::{ReceiveConfig, ReceiveReport, Receiver};
use fairpace_net::send::{self, SendConfig, SendEnd, SendReport};
use fairpace_net::{Buffers, Clock, Family, NetError, UdpSocket};
use fairpace_path::quick_start::RouterParams;
use fairpace_path::{CustomMedium, Datagram, DelayModel, DropReason, LinkSpec, RateModel, Wire};
use fairpace_rtp::What;
use fairpace_sim::{CustomSpec, FlowConfig, HopConfig, Packet, Protocol, SimConfig};
use fairpace_units::{Bytes, Duration, Instant, QsFunction, QsOption, QsRate, Rate};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

fn main() {
    let Some(sandbox) = common::sandbox() else { return };
    named::run(&sandbox, Testbed::open(&config(router(ASKED)), options(&sandbox)), TESTS);
}

const TESTS: &[(&str, named::Test)] = &[
    ("a_router_approves_a_request_of_real_sockets", a_router_approves_a_request_of_real_sockets),
    ("a_network_that_drops_options_is_found_out", a_network_that_drops_options_is_found_out),
    ("a_network_that_rewrites_ttl_or_rate_is_found_out", a_network_that_rewrites_ttl_or_rate_is_found_out),
    ("a_receiver_that_does_not_know_it_is_found_out", a_receiver_that_does_not_know_it_is_found_out),
    ("without_the_right_nothing_begins_or_goes_on_without", without_the_right_nothing_begins_or_goes_on_without),
    ("the_relay_judges_and_sets_the_option_again", the_relay_judges_and_sets_the_option_again),
];

const ONE_WAY: Duration = Duration::from_millis(50);
/// The rate of the requests: code 5.
const ASKED: Rate = Rate::kbps(1_280.0);
const FRAME: Duration = Duration::from_millis(40);
const VIDEO: Rate = Rate::kbps(400.0);

fn options(sandbox: &Sandbox) -> TestbedOptions {
    let namespace = |name| sandbox.namespace(name).expect("a namespace");
    TestbedOptions::new(namespace("senders"), namespace("receivers"))
}

/// A path of one hop.
fn config(hop: HopConfig) -> SimConfig {
    let flow = FlowConfig { packet_size: Bytes::new(1_500), ..FlowConfig::new("real", Protocol::External) };
    SimConfig { duration: Duration::MAX, hops: vec![hop], flows: vec![flow], ..SimConfig::default() }
}

/// 50 ms.
fn wire() -> LinkSpec {
    LinkSpec { delay: DelayModel::constant(ONE_WAY), ..LinkSpec::default() }
}

/// A middlebox in both directions: what becomes of the option of a packet; `false`: the packet is dropped.
struct Middlebox<T> {
    wire: Wire<T>,
    judge: fn(&mut QsOption) -> bool,
    dropped: Vec<(Instant, T)>,
}

impl<T: Datagram + Send> CustomMedium<T> for Middlebox<T> {
    fn push(&mut self, now: Instant, _port: u32, mut packet: T) {
        match packet.quick_start().is_none_or(self.judge) {
            true => self.wire.push(now, packet),
            false => self.dropped.push((now, packet)),
        }
    }
    fn next(&self) -> Instant {
        self.wire.next()
    }
    fn pop(&mut self, now: Instant) -> Option<(u32, T)> {
        Some((0, self.wire.pop(now)?))
    }
    fn take_dropped(&mut self) -> Option<(Instant, DropReason, u32, T)> {
        self.dropped.pop().map(|(at, packet)| (at, DropReason::LinkError, 0, packet))
    }
}

fn middlebox(judge: fn(&mut QsOption) -> bool) -> HopConfig {
    let medium = CustomSpec::new(move |_, _| -> Box<dyn CustomMedium<Packet>> {
        Box::new(Middlebox { wire: Wire::new(ONE_WAY), judge, dropped: Vec::new() })
    });
    HopConfig::Custom { name: "middlebox".to_owned(), medium }
}

/// A link that approves that rate at most, and has room for much more.
fn router(most: Rate) -> HopConfig {
    let quick_start = RouterParams { threshold: 1.0, source_share: 1.0, ..RouterParams::default() };
    // Above code K and below code K + 1.
    let rate = RateModel::Fixed(most * 1.4);
    HopConfig::links("router", LinkSpec { rate, quick_start: Some(quick_start), ..wire() }, wire())
}

/// A TFRC flow that asks.
fn sender(to: SocketAddr, seconds: f64) -> SendConfig {
    let mut config = SendConfig::new(to);
    "tfrc".clone_into(&mut config.scheme);
    config.quick_start = Some(ASKED);
    config.duration = Some(Duration::from_secs_f64(seconds));
    config
}

struct Run {
    sent: SendReport,
    received: ReceiveReport,
}

impl Run {
    fn verdict(&self) -> Option<QsVerdict> {
        self.counted().first.map(|(_, verdict)| verdict)
    }

    fn counted(&self) -> send::QuickStartReport {
        self.sent.quick_start.expect("it asks")
    }

    /// Every packet arrived, and every frame but those that were not to be sent.
    #[track_caller]
    fn is_unharmed(&self) {
        let Run { sent, received } = self;
        assert!(matches!(sent.end, SendEnd::Finished), "{:?}", sent.end);
        assert_eq!(sent.flow.data.lost, 0, "{:?}", sent.flow);
        assert_eq!(sent.stats.rejected, Default::default());
        let media = sent.stats.sent.of(What::Media).packets;
        assert_eq!(received.stats.media.received, media);
        assert!(received.frames >= 20 && received.frames + sent.stats.frames_dropped >= sent.stats.frames);
    }
}

/// Sends over the path: the receiver is set up by `receive`, the sender begins with these rights.
fn over(sandbox: &Sandbox, v6: bool, hop: HopConfig, receive: ReceiveConfig, seconds: f64) -> Run {
    let running = Testbed::open(&config(hop), options(sandbox)).expect("a path").start().expect("a thread");
    let run = between(&running, v6, receive, |to| {
        let mut source = ConstantSource::new(VIDEO, FRAME);
        send::run(&sender(to, seconds), running.clock(), &mut source, &mut (), &AtomicBool::new(false))
    });
    running.finish();
    run.expect("a run")
}

fn between(
    running: &Running,
    v6: bool,
    mut receive: ReceiveConfig,
    send: impl FnOnce(SocketAddr) -> Result<SendReport, NetError> + Send,
) -> Result<Run, NetError> {
    let addresses = if v6 { running.addresses_v6(0) } else { running.addresses(0) };
    receive.family = if v6 { Family::V6 } else { Family::Any };
    let clock = running.clock();
    let receiver = running.enter(Side::Receivers, || Receiver::open(receive, clock)).expect("a namespace")?;
    let to = SocketAddr::new(addresses.receiver, receiver.address()?.port());
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let receiving = scope.spawn(|| receiver.run(&mut (), &mut (), &over));
        let sent = running.enter(Side::Senders, || send(to)).expect("a namespace");
        if !matches!(&sent, Ok(report) if matches!(report.end, SendEnd::Finished)) {
            over.store(true, Ordering::Relaxed);
        }
        let received = receiving.join().expect("no panic");
        Ok(Run { sent: sent?, received: received? })
    })
}

fn code(code: u8) -> QsRate {
    QsRate::from_code(code).expect("a code")
}

const ONE: QsCounters = QsCounters {
    asked: 1,
    approved: 0,
    denied: 0,
    unanswered: 0,
    bad_ttl: 0,
    bad_rate: 0,
    bad_nonce: 0,
    stray: 0,
    reports: 0,
    dropped: 0,
    stripped: 0,
    unknown: 0,
};

fn a_router_approves_a_request_of_real_sockets(sandbox: &Sandbox) {
    for v6 in [false, true] {
        for (most, approved) in [(ASKED, code(5)), (Rate::kbps(320.0), code(3))] {
            let run = over(sandbox, v6, router(most), ReceiveConfig::new(0), 1.5);
            run.is_unharmed();
            assert_eq!(run.verdict(), Some(QsVerdict::Approved(approved)), "IPv6: {v6}");
            assert_eq!(run.counted().counters, QsCounters { approved: 1, reports: 1, ..ONE });
            assert_eq!((run.sent.socket.options, run.sent.socket.options_denied), (2, 0));
        }
        // 100 kbit/s or less of room: nothing that the option can say.
        let run = over(sandbox, v6, router(Rate::kbps(50.0)), ReceiveConfig::new(0), 1.0);
        assert_eq!(run.verdict(), Some(QsVerdict::Denied));
    }
}

fn a_network_that_drops_options_is_found_out(sandbox: &Sandbox) {
    for v6 in [false, true] {
        let run = over(sandbox, v6, middlebox(|_| false), ReceiveConfig::new(0), 5.0);
        run.is_unharmed();
        let (at, verdict) = run.counted().first.expect("an answer");
        // 3 s, which a terminal may hold the request for, and round trips; the first began some 0.1 s after the run.
        assert_eq!(verdict, QsVerdict::Dropped);
        assert!((3.1..4.2).contains(&at.as_secs_f64()), "{at:?}");
        assert_eq!(run.counted().counters, QsCounters { dropped: 1, ..ONE });
        assert_eq!(run.sent.socket.options, 1, "no report either");
    }
}

fn a_network_that_rewrites_ttl_or_rate_is_found_out(sandbox: &Sandbox) {
    for v6 in [false, true] {
        let ttl = |option: &mut QsOption| {
            option.ip_ttl = 33;
            true
        };
        let run = over(sandbox, v6, middlebox(ttl), ReceiveConfig::new(0), 1.5);
        run.is_unharmed();
        assert_eq!((run.verdict(), run.counted().counters.bad_ttl), (Some(QsVerdict::BadTtl), 1));
        let rate = |option: &mut QsOption| {
            if option.function == QsFunction::Request {
                option.rate = code(9);
            }
            true
        };
        let run = over(sandbox, v6, middlebox(rate), ReceiveConfig::new(0), 1.5);
        run.is_unharmed();
        assert_eq!((run.verdict(), run.counted().counters.bad_rate), (Some(QsVerdict::BadRate), 1));
        // A router that does not know the option lowers the TTL alone.
        let unaware = HopConfig::links("unaware", LinkSpec { rate: RateModel::Fixed(ASKED), ..wire() }, wire());
        let run = over(sandbox, v6, unaware, ReceiveConfig::new(0), 1.5);
        run.is_unharmed();
        assert_eq!((run.verdict(), run.counted().counters.bad_ttl), (Some(QsVerdict::BadTtl), 1));
        // A router that lowers the rate, and one behind it that lifts it again: the nonce has not the pairs.
        let lifted = |option: &mut QsOption| {
            if option.function == QsFunction::Request {
                option.nonce = option.nonce.lowered(code(5), code(2), !option.nonce.get());
            }
            true
        };
        let run = over(sandbox, v6, middlebox(lifted), ReceiveConfig::new(0), 1.5);
        run.is_unharmed();
        assert_eq!((run.verdict(), run.counted().counters.bad_nonce), (Some(QsVerdict::BadNonce), 1));
    }
}

fn a_receiver_that_does_not_know_it_is_found_out(sandbox: &Sandbox) {
    for v6 in [false, true] {
        let mut unknowing = ReceiveConfig::new(0);
        unknowing.session.quick_start = false;
        let run = over(sandbox, v6, router(ASKED), unknowing, 1.5);
        run.is_unharmed();
        assert_eq!(run.verdict(), Some(QsVerdict::Unknown), "IPv6: {v6}");
        assert_eq!(run.counted().counters, QsCounters { unknown: 1, ..ONE });
        assert_eq!(run.sent.socket.options, 1);
    }
}

fn without_the_right_nothing_begins_or_goes_on_without(sandbox: &Sandbox) {
    for v6 in [false, true] {
        let running =
            Testbed::open(&config(router(ASKED)), options(sandbox)).expect("a path").start().expect("a thread");
        // Nothing is begun that is known not to work.
        let refused = between(&running, v6, ReceiveConfig::new(0), |to| {
            drop_privileges_but(Kept::Nothing).expect("always allowed");
            let mut source = ConstantSource::new(VIDEO, FRAME);
            send::run(&sender(to, 1.0), running.clock(), &mut source, &mut (), &AtomicBool::new(false))
        });
        assert!(matches!(&refused, Err(NetError::Denied { what }) if what.contains("Quick-Start")));
        // A right that goes in mid-run takes nothing but the option along.
        let run = between(&running, v6, ReceiveConfig::new(0), |to| {
            drop_privileges_but(Kept::Nothing).expect("always allowed");
            let mut socket = UdpSocket::connect(to, Buffers::default(), running.clock())?;
            let mut source = ConstantSource::new(VIDEO, FRAME);
            send::run_on(&mut socket, &sender(to, 1.5), running.clock(), &mut source, &mut (), &AtomicBool::new(false))
        })
        .unwrap_or_else(|e| panic!("{e}"));
        run.is_unharmed();
        assert_eq!((run.verdict(), run.sent.socket.options), (Some(QsVerdict::Stripped), 0));
        assert_eq!(run.sent.socket.options_denied, 1);
        // The one right that is kept is enough.
        let run = between(&running, v6, ReceiveConfig::new(0), |to| {
            drop_privileges_but(Kept::IpOptions).expect("always allowed");
            let mut source = ConstantSource::new(VIDEO, FRAME);
            send::run(&sender(to, 1.0), running.clock(), &mut source, &mut (), &AtomicBool::new(false))
        })
        .unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(run.verdict(), Some(QsVerdict::Approved(code(5))));
        running.finish();
    }
}

/// Over loopback of a namespace: the relay's router lowers the rate, the TTL arrives as behind one router; and a relay without the right
/// is a network that takes the option off.
fn the_relay_judges_and_sets_the_option_again(sandbox: &Sandbox) {
    let namespace = sandbox.namespace("relayed").expect("a namespace");
    for (v6, kept) in [(false, Kept::IpOptions), (true, Kept::IpOptions), (false, Kept::Nothing), (true, Kept::Nothing)]
    {
        let run = namespace.run(|| {
            let ip: IpAddr = if v6 { Ipv6Addr::LOCALHOST.into() } else { Ipv4Addr::LOCALHOST.into() };
            let clock = Clock::start();
            let receiver = Receiver::open(ReceiveConfig::new(0), clock)?;
            let mut config = RelayConfig::new(0, SocketAddr::new(ip, receiver.address()?.port()));
            let HopConfig::Links { forward, .. } = router(Rate::kbps(320.0)) else { unreachable!("a link") };
            config.forward = forward;
            let relay = Relay::open(config, clock)?;
            let to = SocketAddr::new(ip, relay.address()?.port());
            let (over, stop) = (AtomicBool::new(false), AtomicBool::new(false));
            thread::scope(|scope| {
                let relaying = scope.spawn(|| {
                    drop_privileges_but(kept).expect("always allowed");
                    assert_eq!(relay.may_quick_start().is_ok(), kept == Kept::IpOptions);
                    relay.run(|_| {}, &stop)
                });
                let receiving = scope.spawn(|| receiver.run(&mut (), &mut (), &over));
                let mut source = ConstantSource::new(Rate::kbps(200.0), FRAME);
                let sent = send::run(&sender(to, 1.5), clock, &mut source, &mut (), &AtomicBool::new(false))?;
                let received = receiving.join().expect("no panic")?;
                stop.store(true, Ordering::Relaxed);
                let relayed = relaying.join().expect("no panic")?;
                Ok::<_, NetError>((Run { sent, received }, relayed))
            })
        });
        let (run, relayed) = run.expect("a thread").unwrap_or_else(|e| panic!("{e}"));
        run.is_unharmed();
        let decided = relayed.path.links[0].quick_start.as_deref().expect("a router");
        assert_eq!((decided.approved, decided.reduced), (0, 1));
        let socket = relayed.target_sockets[0];
        if kept == Kept::IpOptions {
            assert_eq!(run.verdict(), Some(QsVerdict::Approved(code(3))));
            assert_eq!((socket.options, socket.options_denied, decided.reports), (2, 0, 1));
        } else {
            assert_eq!(run.verdict(), Some(QsVerdict::Stripped));
            assert_eq!((socket.options, socket.options_denied), (0, 1));
        }
    }
}
