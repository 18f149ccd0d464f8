//! Properties of the whole network: nothing is lost uncounted, the same seed gives the same bytes,
//! flows do not disturb each other's randomness, one event per packet-hop, external packets.

use std::sync::Arc;

use fairpace_control::{BreakerParams, Env, FlowParams, Safety};
use fairpace_path::quick_start::RouterParams;
use fairpace_path::{Capacity, DelayModel, DropReason, LinkSpec, LossModel, Outage, QueueModel, RateModel, RedParams};
use fairpace_sim::tcp::{DelayedAck, TcpParams, TcpSource, TcpVariant};
use fairpace_sim::{
    Access, ConstantConfig, ControllerSpec, Direction, EncodedSize, Entering, FlowConfig, FrameSource, HopConfig,
    MediaConfig, Network, OnOff, Protocol, ReceiverBehaviour, SimConfig, SimError, SimReport, Source, run,
};
use fairpace_units::{
    Bytes, Class, Duration, Ecn, Instant, Packets, Probability, QsFunction, QsNonce, QsOption, QsRate, Rate,
};

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn at(seconds: f64) -> Instant {
    Instant::from_secs_f64(seconds)
}

fn link(mbps: f64, delay: Duration, queue: u64, p: f64) -> LinkSpec {
    LinkSpec {
        rate: RateModel::Fixed(Rate::mbps(mbps)),
        delay: DelayModel::constant(delay),
        queue: QueueModel::TwoPriority { capacity: Capacity::Packets(Packets::new(queue)) },
        loss: LossModel::Bernoulli(Probability::new(p).unwrap()),
        ..LinkSpec::default()
    }
}

fn media(scheme: &str, safety: Safety) -> MediaConfig {
    let env = Env { max_rate: Rate::mbps(4.0), safety, ..Env::default() };
    MediaConfig {
        initial_rtt: Some(ms(100)),
        ..MediaConfig::new(ControllerSpec::named(scheme, env), FlowParams::new(&env))
    }
}

fn tcp(variant: TcpVariant, source: TcpSource) -> Protocol {
    Protocol::Tcp(TcpParams { variant, ..TcpParams::default() }, source)
}

/// One flow of every kind through a small two-priority bottleneck with loss, jitter and an outage, one
/// of them through RED first.
fn everything(seed: u64) -> SimConfig {
    let access = || Some(link(100.0, ms(2), 1_000, 0.001));
    let on_off = OnOff { on: ms(900), off: ms(400), exponential: true };
    let frames: Arc<[Bytes]> = (1..40).map(|i| Bytes::new(300 * (i % 7) + 50)).collect();
    let protocols = [
        ("reno", tcp(TcpVariant::Reno, TcpSource::Ftp)),
        ("newreno", tcp(TcpVariant::NewReno, TcpSource::OnOff(on_off))),
        ("sack", tcp(TcpVariant::Sack, TcpSource::Transfer(Bytes::new(3_000_123)))),
        (
            "delayed",
            Protocol::Tcp(
                TcpParams {
                    delayed_ack: Some(DelayedAck { timeout: ms(100) }),
                    send_jitter: ms(1),
                    ..TcpParams::default()
                },
                TcpSource::Ftp,
            ),
        ),
        ("rcs", Protocol::Media(media("rcs", Safety::Paper))),
        ("rap", Protocol::Media(MediaConfig { feedback: Some(ms(20)), ..media("rap", Safety::Default) })),
        ("crp", Protocol::Media(media("crp", Safety::Paper))),
        ("tfrc", Protocol::Media(media("tfrc", Safety::Paper))),
        (
            "tfrc-reports",
            Protocol::Media(MediaConfig {
                controller: media("tfrc", Safety::Paper).controller.with("measured_by", "receiver"),
                receiver: ReceiverBehaviour::HideLosses { share: 0.1 },
                ..media("tfrc", Safety::Paper)
            }),
        ),
        (
            "frames",
            Protocol::Media(MediaConfig {
                source: Source::Frames { sizes: frames, interval: ms(33), header: Bytes::new(40) },
                report_interval: Some(ms(1_000)),
                record_frames: true,
                initial_rtt: None,
                ..media("rcs", Safety::Default)
            }),
        ),
        (
            "low",
            Protocol::Constant(ConstantConfig {
                rate: Rate::kbps(800.0),
                class: Class::Low,
                on_off: Some(on_off),
                quick_start: None,
            }),
        ),
    ];
    let mut flows: Vec<FlowConfig> = protocols
        .into_iter()
        .map(|(name, protocol)| FlowConfig {
            start_spread: ms(500),
            access: Access { forward_in: access(), forward_out: access(), back_in: access(), back_out: access() },
            ..FlowConfig::new(name, protocol)
        })
        .collect();
    flows[0].stop = Some(at(15.0));
    // A managed queue that one TCP keeps full; the weight is for 12 packets/s.
    let red = RedParams::for_capacity(Capacity::Packets(Packets::new(30)), Bytes::new(1_000));
    let red = RedParams { weight: 0.1, ..red };
    flows[3].access.forward_in = Some(LinkSpec { queue: QueueModel::Red(red), ..link(0.1, ms(2), 0, 0.001) });
    let mut bottleneck = link(8.0, ms(40), 40, 0.01);
    bottleneck.delay.jitter = ms(5);
    bottleneck.delay.reorder = true;
    bottleneck.outage = vec![Outage::of(at(8.0), ms(700))];
    SimConfig {
        seed,
        duration: Duration::from_secs(25),
        warmup: Duration::from_secs(5),
        hops: vec![HopConfig::path(bottleneck, link(2.0, ms(40), 200, 0.005))],

        flows,
        sample: Some(ms(500)),
        checkpoints: vec![at(3.0), at(20.0)],
        trace: true,
        ..SimConfig::default()
    }
}

#[test]
fn every_packet_is_received_dropped_or_still_inside() {
    let report = run(everything(1)).unwrap();
    for l in &report.links {
        let total = l.whole.total();
        assert_eq!(
            total.offered.packets.get(),
            total.delivered.packets.get() + total.dropped_in_all().packets.get() + l.inside,
            "{}",
            l.name
        );
    }
    let inside: u64 = report.links.iter().map(|l| l.inside).sum();
    let (mut sent, mut ended) = (0, 0);
    for f in &report.flows {
        let c = &f.whole;
        sent += (c.sent.packets + c.dummies_sent.packets + c.feedback_sent.packets).get();
        ended += (c.received.packets + c.dummies_received.packets + c.feedback_received.packets).get();
        ended += (c.dropped_in_all().packets + c.dummies_dropped.packets + c.feedback_dropped.packets).get();
        assert!(c.received.packets.get() > 100, "{} got through: {c:?}", f.name);
        assert!(c.unique.packets <= c.received.packets);
    }
    assert_eq!(sent, ended + inside);
    // Every reason for a drop has happened.
    for reason in DropReason::ALL {
        assert!(report.links.iter().any(|l| l.whole.dropped(reason).packets.get() > 0), "{reason:?}");
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_seed_others() {
    let bytes = |seed| format!("{:?}", run(everything(seed)).unwrap());
    let first = bytes(1);
    assert_eq!(first, bytes(1));
    assert_ne!(first, bytes(2));
}

#[test]
fn advancing_in_small_steps_changes_nothing() {
    let whole = run(everything(3)).unwrap();
    let mut network = Network::new(&everything(3)).unwrap();
    while network.now() < at(25.0) {
        let step = (network.now() + ms(7)).min(at(25.0));
        network.advance(step);
    }
    assert_eq!(format!("{:?}", network.into_report()), format!("{whole:?}"));
}

#[test]
fn another_flow_changes_no_draw_of_those_that_were_there() {
    // On wires of their own, two flows share nothing but the seed.
    let access = |p| Access { forward_in: Some(link(5.0, ms(30), 50, p)), ..Access::default() };
    let flow = |name: &str| FlowConfig {
        start_spread: ms(700),
        access: access(0.02),
        ..FlowConfig::new(name, tcp(TcpVariant::Sack, TcpSource::Ftp))
    };
    let config = |flows| SimConfig { duration: Duration::from_secs(20), flows, ..SimConfig::default() };
    let alone = run(config(vec![flow("a")])).unwrap();
    let beside = run(config(vec![flow("z"), flow("a")])).unwrap();
    let counts = |r: &SimReport| {
        let f = r.flows.iter().find(|f| f.name == "a").unwrap();
        (f.started, f.whole, f.tcp, f.owd.mean())
    };
    assert_eq!(counts(&alone), counts(&beside));
    assert!(alone.flows[0].whole.dropped(DropReason::LinkError).packets.get() > 20);
}

#[test]
fn a_packet_hop_costs_one_event_and_two_of_six_do_where_flows_have_links_of_their_own() {
    let capacity = Capacity::Packets(Packets::new(100));
    for (queue, expected) in
        [(QueueModel::DropTail { capacity }, 0.33..=0.37), (QueueModel::TwoPriority { capacity }, 0.99..=1.05)]
    {
        let link = |mbps, delay| LinkSpec { queue, ..link(mbps, delay, 1, 0.0) };
        let access = || Some(link(100.0, ms(1)));
        let flows = (0..10)
            .map(|i| FlowConfig {
                access: Access { forward_in: access(), forward_out: access(), back_in: access(), back_out: access() },
                ..FlowConfig::new(format!("f{i}"), tcp(TcpVariant::NewReno, TcpSource::Ftp))
            })
            .collect();
        let config = SimConfig {
            duration: Duration::from_secs(20),
            hops: vec![HopConfig::path(link(10.0, ms(50)), link(10.0, ms(50)))],
            flows,
            ..SimConfig::default()
        };
        let engine = run(config).unwrap().engine;
        assert!(engine.packet_hops > 100_000);
        let cost = engine.events_per_packet_hop();
        assert!(expected.contains(&cost), "{queue:?}: {cost}");
        // Ten timers, and the packets and acknowledgements that are under way: a second of 10 Mbit/s at most.
        assert!(engine.max_pending <= 10 + 2 * 1_250, "{}", engine.max_pending);
    }
}

#[test]
fn packets_that_overtake_each_other_leave_no_entries_behind() {
    // 1,000 packets/s with up to 20 ms of jitter and nothing else: the next exit is about 1 ms away, so
    // one packet in some ten to twenty comes out before it and overtakes the link's entry. The overtaken entry must
    // not be armed again.
    let delay = DelayModel { propagation: Duration::ZERO, jitter: ms(20), reorder: true };
    let rate = Rate::packets_per_second(1_000.0, Bytes::new(1_000));
    let config = SimConfig {
        duration: Duration::from_secs(60),
        hops: vec![HopConfig::path(LinkSpec { delay, ..LinkSpec::default() }, LinkSpec::default())],
        flows: vec![FlowConfig::new(
            "cbr",
            Protocol::Constant(ConstantConfig { rate, class: Class::Normal, on_off: None, quick_start: None }),
        )],
        ..SimConfig::default()
    };
    let engine = run(config).unwrap().engine;
    // One exit and one send for each packet, and some overtaken entries.
    let cost = engine.events_per_packet_hop();
    assert!((2.0..2.3).contains(&cost), "{cost}");
    assert!(engine.idle_events > 1_000 && engine.max_pending < 30, "{engine:?}");
}

#[test]
fn a_link_is_full_and_its_delays_are_what_they_must_be() {
    // 1,000 pkt/s, 25 ms each way, buffer of 100: the window swings between half and whole of
    // 50 + 100 packets, so the link never idles, and the delay lies in 26 .. 125 ms.
    let config = SimConfig {
        duration: Duration::from_secs(60),
        warmup: Duration::from_secs(20),
        hops: vec![HopConfig::path(link(8.0, ms(25), 100, 0.0), link(8.0, ms(25), 100, 0.0))],

        flows: vec![FlowConfig::new("tcp", tcp(TcpVariant::NewReno, TcpSource::Ftp))],
        ..SimConfig::default()
    };
    let report = run(config).unwrap();
    let f = &report.flows[0];
    assert!((998.0..=1_001.0).contains(&f.throughput_pps()), "{}", f.throughput_pps());
    assert!(report.links[0].utilization.unwrap() > 0.999);
    assert!(f.owd.min() >= ms(26) && f.owd.max() <= ms(125), "{:?} {:?}", f.owd.min(), f.owd.max());
    assert!(f.owd.quantile(0.5) > f.owd.quantile(0.1));
    assert_eq!(f.owd.count(), f.measured.received.packets.get());
}

#[test]
fn a_transfer_ends_and_says_when() {
    let config = |bytes| SimConfig {
        duration: Duration::from_secs(30),
        hops: vec![HopConfig::path(link(8.0, ms(25), 100, 0.0), link(8.0, ms(25), 100, 0.0))],

        flows: vec![FlowConfig::new("tcp", tcp(TcpVariant::NewReno, TcpSource::Transfer(Bytes::new(bytes))))],
        ..SimConfig::default()
    };
    let report = run(config(1_500)).unwrap();
    let f = &report.flows[0];
    assert_eq!((f.whole.sent.packets.get(), f.whole.sent.bytes.get()), (2, 1_500));
    // Two packets back to back: 1.5 ms of transmission, 25 ms, 40 B back (40 us), 25 ms.
    assert_eq!(f.finished, Some(Instant::from_nanos(51_540_000)));
    assert_eq!(run(config(1_000_000)).unwrap().flows[0].whole.unique.packets.get(), 1_000);
}

/// A SYN and its ACK take 40 us each way and 50 ms: the transfer ends so much later, and its 1,500 B are there as before.
#[test]
fn a_transfer_begins_when_its_connection_is_open() {
    let opened = TcpParams { handshake: true, ..TcpParams::default() };
    let config = SimConfig {
        duration: Duration::from_secs(30),
        hops: vec![HopConfig::path(link(8.0, ms(25), 100, 0.0), link(8.0, ms(25), 100, 0.0))],
        flows: vec![FlowConfig::new("tcp", Protocol::Tcp(opened, TcpSource::Transfer(Bytes::new(1_500))))],
        ..SimConfig::default()
    };
    let report = run(config).unwrap();
    let f = &report.flows[0];
    assert_eq!((f.whole.sent.packets.get(), f.whole.sent.bytes.get()), (3, 1_540));
    assert_eq!(f.finished, Some(Instant::from_nanos(51_540_000 + 50_080_000)));
}

#[test]
fn low_priority_traffic_gives_way() {
    // 1,000 pkt/s of room; 900 normal and 900 low: the low ones get what is left.
    let constant = |name: &str, class| {
        let rate = Rate::packets_per_second(900.0, Bytes::new(1_000));
        FlowConfig::new(name, Protocol::Constant(ConstantConfig { rate, class, on_off: None, quick_start: None }))
    };
    let mut overridden = constant("overridden", Class::Normal);
    overridden.class_override = Some(Class::Low);
    for low in [constant("low", Class::Low), overridden] {
        let config = SimConfig {
            duration: Duration::from_secs(20),
            warmup: Duration::from_secs(2),
            hops: vec![HopConfig::path(link(8.0, ms(10), 20, 0.0), LinkSpec::default())],
            // The low one first: at equal instants it is served first, and must still give way.
            flows: vec![low, constant("normal", Class::Normal)],
            ..SimConfig::default()
        };
        let report = run(config).unwrap();
        let pps: Vec<f64> = report.flows.iter().map(|f| f.throughput_pps()).collect();
        assert!((99.0..=101.0).contains(&pps[0]) && (899.0..=901.0).contains(&pps[1]), "{pps:?}");
        assert_eq!(report.flows[1].whole.dropped_in_all().packets.get(), 0);
    }
}

struct Encoder(Arc<std::sync::Mutex<Vec<f64>>>);

impl FrameSource for Encoder {
    fn next_frame(&mut self, now: Instant, target: Rate) -> EncodedSize {
        self.0.lock().unwrap().push(target.as_bps());
        // Exactly the target: payload of one frame of 40 ms, with 40 B of header per 960 B of it.
        let size = (target.as_bps() * 0.04 / 8.0 * 0.96) as u64;
        EncodedSize { size: Bytes::new(size.max(1)), key: now == Instant::ZERO, interval: ms(40) }
    }
}

#[test]
fn an_encoder_is_told_the_rate_and_its_frames_arrive() {
    let targets = Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = targets.clone();
    let config = SimConfig {
        duration: Duration::from_secs(60),
        warmup: Duration::from_secs(30),
        hops: vec![HopConfig::path(link(2.0, ms(50), 50, 0.0), link(2.0, ms(50), 50, 0.0))],

        flows: vec![FlowConfig::new(
            "video",
            Protocol::Media(MediaConfig {
                source: Source::Adaptive {
                    build: Arc::new(move |_| Box::new(Encoder(seen.clone()))),
                    header: Bytes::new(40),
                },
                record_frames: true,
                ..media("rap", Safety::Paper)
            }),
        )],
        ..SimConfig::default()
    };
    let report = run(config).unwrap();
    let f = &report.flows[0];
    let m = f.media.as_ref().unwrap();
    assert_eq!(m.frames as usize, targets.lock().unwrap().len());
    assert_eq!(m.frames, 60 * 25 + 1);
    let complete = m.frame_records.iter().filter(|r| r.complete.is_some()).count();
    // The missing frames: a frame of seven packets dies with one of them at each overflow of the queue, and some
    // still wait at the end.
    assert!(complete as f64 > 0.85 * m.frames as f64, "{complete} of {}", m.frames);
    assert!(m.frame_records.iter().all(|r| r.complete.is_none_or(|c| c >= r.captured + ms(50))));
    // RAP fills 2 Mbit/s less what its halvings leave idle.
    let mbps = f.throughput().as_bps() / 1e6;
    assert!((1.3..=2.0).contains(&mbps), "{mbps}");
}

#[test]
fn the_breaker_stops_a_flow_whose_packets_all_vanish() {
    let env = Env { safety: Safety::Default, ..Env::default() };
    let dead = LinkSpec { loss: LossModel::Bernoulli(Probability::new(1.0).unwrap()), ..link(2.0, ms(50), 50, 0.0) };
    let config = SimConfig {
        duration: Duration::from_secs(60),
        hops: vec![HopConfig::path(dead, LinkSpec::default())],
        flows: vec![FlowConfig::new(
            "fixed",
            Protocol::Media(MediaConfig {
                initial_rtt: Some(ms(100)),
                report_interval: Some(ms(1_000)),
                ..MediaConfig::new(
                    ControllerSpec::named("fixed", env),
                    FlowParams { breaker: Some(BreakerParams::default()), ..FlowParams::new(&env) },
                )
            }),
        )],
        ..SimConfig::default()
    };
    let report = run(config).unwrap();
    let f = &report.flows[0];
    assert!(f.stopped.is_some());
    // [RFC 8083 §4.1] three reporting intervals of at most 5 s without any feedback.
    let seconds = f.whole.sent.bytes.as_f64() * 8.0 / 1e6; // at 1 Mbit/s
    assert!((14.0..=17.0).contains(&seconds), "{seconds}");
}

#[test]
fn a_challenge_comes_before_any_data_and_again_until_it_is_answered() {
    let config = |p| SimConfig {
        duration: Duration::from_secs(40),
        hops: vec![HopConfig::path(link(2.0, ms(100), 50, p), link(2.0, ms(100), 50, 0.0))],

        flows: vec![FlowConfig::new(
            "rap",
            Protocol::Media(MediaConfig { initial_rtt: None, ..media("rap", Safety::Paper) }),
        )],
        ..SimConfig::default()
    };
    let dead = run(config(1.0)).unwrap();
    let f = &dead.flows[0];
    // At 0, 1, 3, 7, 15 and 31 s.
    assert_eq!((f.whole.sent.packets.get(), f.whole.feedback_sent.packets.get()), (0, 6));
    let alive = run(config(0.0)).unwrap();
    assert!(alive.flows[0].whole.sent.packets.get() > 100);
}

#[test]
fn external_packets_come_out_with_their_token_or_are_reported_dropped() {
    let config = SimConfig {
        hops: vec![HopConfig::path(
            LinkSpec {
                queue: QueueModel::DropTail { capacity: Capacity::Packets(Packets::new(3)) },
                ..link(8.0, ms(10), 1, 0.0)
            },
            LinkSpec { delay: DelayModel::constant(ms(5)), ..LinkSpec::default() },
        )],
        flows: vec![
            FlowConfig::new("outside", Protocol::External),
            FlowConfig { start: at(1.0), ..FlowConfig::new("tcp", tcp(TcpVariant::NewReno, TcpSource::Ftp)) },
        ],
        ..SimConfig::default()
    };
    let mut n = Network::new(&config).unwrap();
    let id = n.flow_id("outside").unwrap();
    let size = Bytes::new(1_000);
    for token in 0..5 {
        n.inject(at(0.1), Entering { ecn: Ecn::Ect0, ..Entering::new(id, Direction::Forward, size, token) });
    }
    n.inject(at(0.1), Entering { class: Class::Low, ..Entering::new(id, Direction::Back, size, 99) });
    // The way back has no rate: 5 ms. The way there: 1 ms each, then 10 ms.
    assert_eq!(n.next(), at(0.105));
    n.advance(at(0.2));
    let out: Vec<_> = std::iter::from_fn(|| n.take_delivered()).map(|d| (d.token, d.at, d.direction, d.ecn)).collect();
    assert_eq!(
        out,
        [
            (99, at(0.105), Direction::Back, Ecn::NotEct),
            (0, at(0.111), Direction::Forward, Ecn::Ect0),
            (1, at(0.112), Direction::Forward, Ecn::Ect0),
            (2, at(0.113), Direction::Forward, Ecn::Ect0),
        ]
    );
    let lost: Vec<_> = std::iter::from_fn(|| n.take_dropped()).map(|d| (d.token, d.reason, d.at)).collect();
    assert_eq!(lost, [(3, DropReason::QueueFull, at(0.1)), (4, DropReason::QueueFull, at(0.1))]);
    // The simulator's TCP shares the link from 1 s on.
    n.advance(at(3.0));
    assert!(n.report().flows[1].whole.received.packets.get() > 500);
    // An instant that is already over counts as now; an unknown flow is refused, and one of the simulator's.
    assert!(n.inject(at(0.5), Entering::new(id, Direction::Forward, size, 7)));
    for flow in [42, n.flow_id("tcp").unwrap()] {
        assert!(!n.inject(at(3.0), Entering::new(flow, Direction::Forward, size, 8)));
    }
    assert_eq!(n.now(), at(3.0));
}

#[test]
fn routers_answer_the_quick_start_request_of_an_external_packet() {
    let router = RouterParams::default();
    let aware = LinkSpec { quick_start: Some(router), ..link(10.0, ms(1), 100, 0.0) };
    let config = SimConfig {
        hops: vec![HopConfig::path(aware, LinkSpec::default())],
        flows: vec![FlowConfig::new("outside", Protocol::External)],
        ..SimConfig::default()
    };
    let mut n = Network::new(&config).unwrap();
    let asked = QsOption {
        function: QsFunction::Request,
        rate: QsRate::MAX,
        qs_ttl: 100,
        ip_ttl: 64,
        nonce: QsNonce::new(0x1234_5678),
    };
    for (direction, option) in
        [(Direction::Forward, Some(asked)), (Direction::Back, Some(asked)), (Direction::Back, None)]
    {
        n.inject(at(1.0), Entering { quick_start: option, ..Entering::new(0, direction, Bytes::new(100), 0) });
    }
    n.advance(at(2.0));
    let out: Vec<_> = std::iter::from_fn(|| n.take_delivered()).map(|d| (d.direction, d.quick_start)).collect();
    // The way back has a router that knows nothing of it: it lowers its own TTL only.
    let unaware = QsOption { ip_ttl: 63, ..asked };
    assert_eq!(out[..2], [(Direction::Back, Some(unaware)), (Direction::Back, None)]);
    // 1.3 Gbit/s are not to be had of 10 Mbit/s; what there is, is.
    let answered = out[2].1.unwrap();
    assert_eq!(answered.ttl_diff(), asked.ttl_diff());
    assert!(answered.rate > QsRate::ZERO && answered.rate.rate() <= Rate::mbps(10.0), "{answered:?}");
}

#[test]
fn samples_add_up_to_the_counts() {
    let config = everything(4);
    let report = run(config.clone()).unwrap();
    let rows: Vec<_> = report.series.iter().filter(|r| r.flow == 0).collect();
    // The flow stops at 15 s of 25, and packets under way arrive: a row more, and none after.
    let ends = config.flows[0].stop.unwrap();
    assert_eq!(rows.len(), report.series.iter().filter(|r| r.flow == 0 && r.at <= ends + ms(1_000)).count());
    assert!(rows.last().unwrap().at > ends, "what came after the stop has a row");
    let bytes: f64 = rows.iter().map(|r| r.throughput.as_bps() * 0.5 / 8.0).sum();
    assert!((bytes - report.flows[0].whole.received.bytes.as_f64()).abs() < 1.0);
    assert!(rows.iter().any(|r| r.cwnd > 2.0) && rows.iter().any(|r| r.state == "congestion-avoidance"));
    assert_eq!(report.link_series.len(), 100);
    let f = &report.flows[0];
    let (a, b) = (f.checkpoints[0].1, f.checkpoints[1].1);
    assert!(a.sent.packets < b.sent.packets && b.sent.packets <= f.whole.sent.packets);
    assert!(report.events.len() > 20, "controllers were traced");
}

#[test]
fn what_cannot_run_is_refused_with_the_field_and_what_is_allowed() {
    let flow = |protocol| FlowConfig::new("f", protocol);
    let with = |flows| SimConfig { flows, ..SimConfig::default() };
    let message = |config| run(config).unwrap_err().to_string();
    assert_eq!(run(with(vec![])).unwrap_err(), SimError::NoFlows);
    assert_eq!(
        message(with(vec![flow(Protocol::External), flow(Protocol::External)])),
        "two flows are called `f`; names must be unique"
    );
    let params = TcpParams { initial_window: Packets::ZERO, ..TcpParams::default() };
    assert_eq!(
        message(with(vec![flow(Protocol::Tcp(params, TcpSource::Ftp))])),
        "`flow `f`: initial_window` is 0; it must be at least 1"
    );
    let slow = ConstantConfig { rate: Rate::ZERO, class: Class::Normal, on_off: None, quick_start: None };
    assert!(message(with(vec![flow(Protocol::Constant(slow))])).contains("at least 1 bit/s"));
    let unknown = media("rsc", Safety::Paper);
    assert!(message(with(vec![flow(Protocol::Media(unknown))])).starts_with("flow `f`: `rsc` is not a controller"));
    let no_room =
        LinkSpec { queue: QueueModel::DropTail { capacity: Capacity::Packets(Packets::ZERO) }, ..LinkSpec::default() };
    let config =
        SimConfig { hops: vec![HopConfig::path(no_room, LinkSpec::default())], ..with(vec![flow(Protocol::External)]) };
    assert!(message(config).starts_with("bottleneck: `queue.capacity` is 0"));
}

/// Ten TCP flows over a RED queue of 1.2 Mbit/s for 60 s.
fn over_red(ecn: bool) -> SimReport {
    let red = RedParams::for_capacity(Capacity::Packets(Packets::new(50)), Bytes::new(1_000));
    let flow = |i| {
        let params = TcpParams { ecn, ..TcpParams::default() };
        FlowConfig {
            start_spread: ms(1_000),
            ..FlowConfig::new(format!("f{i}"), Protocol::Tcp(params, TcpSource::Ftp))
        }
    };
    let config = SimConfig {
        warmup: Duration::from_secs(10),
        hops: vec![HopConfig::path(
            LinkSpec { queue: QueueModel::Red(RedParams { ecn: true, ..red }), ..link(1.2, ms(40), 50, 0.0) },
            link(10.0, ms(40), 1_000, 0.0),
        )],

        flows: (0..10).map(flow).collect(),
        ..SimConfig::default()
    };
    run(config).unwrap()
}

#[test]
fn with_ecn_a_marking_queue_takes_marks_instead_of_packets() {
    let of = |report: &SimReport| {
        let sum = |f: fn(&fairpace_sim::FlowReport) -> u64| report.flows.iter().map(f).sum::<u64>();
        let cuts = sum(|f| f.tcp.unwrap().measured.counters.ecn_cuts);
        (sum(|f| f.measured.marked.packets.get()), cuts, sum(|f| f.measured.retransmitted.packets.get()))
    };
    let (plain, marked) = (over_red(false), over_red(true));
    let (marks, cuts, again) = of(&plain);
    assert_eq!((marks, cuts), (0, 0));
    assert!(again > 300, "the queue drops from those that do not ask for marks: {again}");
    let (marks, cuts, still) = of(&marked);
    // Each mark is an answer, but for those of one window.
    assert!(cuts > 300 && cuts <= marks, "{cuts} cuts, {marks} marks");
    assert!(still * 10 < again, "{still} retransmissions with ECN, {again} without");
    assert!(marked.links[0].utilization.unwrap() > 0.99);
}
