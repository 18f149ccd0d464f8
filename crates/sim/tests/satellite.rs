//! Flows over the satellite: exact arrival times, nothing lost uncounted at any terminal, the same seed gives
//! the same bytes, what cannot be is refused.

use std::sync::{Arc, Mutex};

use fairpace_control::{Env, FlowParams, QuickStartParams, Safety};
use fairpace_path::dama::DamaEventKind;
use fairpace_path::quick_start::Agent;
use fairpace_path::{Capacity, DamaSpec, DelayModel, DropReason, LinkSpec};
use fairpace_sim::tcp::{TcpParams, TcpSource, TcpVariant};
use fairpace_sim::{
    Access, Body, ConstantConfig, ControllerSpec, FlowConfig, HopConfig, MOST_TERMINALS_NOTED, MediaConfig, Network,
    Observer, PacketEvent, PacketFate, Protocol, RouteHop, SimConfig, SimReport, Source, run, run_observed,
};
use fairpace_units::{Bytes, Class, Duration, Instant, Packets, Rate};

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn at(seconds: f64) -> Instant {
    Instant::from_secs_f64(seconds)
}

/// The end of slot n of a carrier of 6.336 Mbit/s, in whole nanoseconds, and T_p later.
fn exit_after_slot(n: u64) -> Instant {
    Instant::from_nanos(((n + 1) * 1_504 * 8 * 1_000_000).div_ceil(6_336)) + ms(252)
}

fn between(name: &str, terminals: [u32; 2], protocol: Protocol) -> FlowConfig {
    FlowConfig {
        route: vec![RouteHop::terminals(1, terminals)],
        packet_size: Bytes::new(1_316),
        ..FlowConfig::new(name, protocol)
    }
}

fn constant(rate: Rate) -> Protocol {
    Protocol::Constant(ConstantConfig { rate, class: Class::Normal, on_off: None, quick_start: None })
}

/// Media of `kbps` under `scheme`, which begins at once and knows no RTT.
fn media(scheme: ControllerSpec, kbps: f64) -> MediaConfig {
    let env = Env { safety: Safety::Paper, packet_size: Bytes::new(1_316), ..Env::default() };
    MediaConfig {
        challenge: false,
        source: Source::Constant(Rate::kbps(kbps)),
        send_buffer: Capacity::Packets(Packets::new(128)),
        record_packets: Some(Duration::from_secs(30)),
        ..MediaConfig::new(scheme, FlowParams::new(&env))
    }
}

fn spec(scheme: &str, settings: &[(&str, &str)]) -> ControllerSpec {
    let env =
        Env { safety: Safety::Paper, packet_size: Bytes::new(1_316), max_rate: Rate::mbps(1.0), ..Env::default() };
    settings.iter().fold(ControllerSpec::named(scheme, env), |spec, (name, value)| spec.with(name, value))
}

type Seen = Arc<Mutex<Vec<(Instant, PacketFate, Body)>>>;

struct Recorder(Seen);

impl Observer for Recorder {
    fn on_packet(&mut self, event: &PacketEvent) {
        self.0.lock().unwrap().push((event.at, event.fate, event.packet.body));
    }
}

#[test]
fn packets_come_out_after_their_slot_and_answers_wait_for_a_slot_of_their_own() {
    // At rest, terminal i has slot i of each multi-frame of 144, and nothing else in the first two super-frames
    // after it asked. Packets at 0 and 1 s from terminal 2 to terminal 3.
    let controller = spec("fixed", &[("rate", "1 pkt/s")]);
    let flow =
        between("media", [2, 3], Protocol::Media(MediaConfig { source: Source::Greedy, ..media(controller, 0.0) }));
    let config = SimConfig {
        duration: ms(1_900),
        hops: vec![HopConfig::path(LinkSpec::default(), LinkSpec::default()), HopConfig::satellite(DamaSpec::large())],
        flows: vec![FlowConfig { stop: Some(at(1.5)), ..flow }],
        ..SimConfig::default()
    };
    let seen = Seen::default();
    let report = run_observed(config, Box::new(Recorder(seen.clone()))).unwrap();
    let records = &report.flows[0].media.as_ref().unwrap().packet_records;
    // 0 s: slot 2 of the first multi-frame. 1 s: the fourth multi-frame begins at 3 x 273.455 = 820 ms, the fifth at
    // 1,093.8: slot 4 x 144 + 2.
    let received: Vec<_> = records.iter().map(|r| (r.sent, r.received)).collect();
    let (first, second) = (exit_after_slot(2), exit_after_slot(578));
    assert_eq!(received, [(at(0.0), Some(first)), (at(1.0), Some(second))]);
    assert_eq!(first, Instant::from_nanos(257_696_970));
    // The answer to the first: slot 144 + 3, since slot 3 is over. To the second at 1,351.5 ms: the sixth multi-frame
    // begins at 1,367.3, its slot 3 is number 5 x 144 + 3.
    let answers: Vec<_> = seen
        .lock()
        .unwrap()
        .iter()
        .filter(|(_, fate, body)| matches!((fate, body), (PacketFate::Received, Body::MediaAck { .. })))
        .map(|(at, ..)| *at)
        .collect();
    assert_eq!(answers, [exit_after_slot(147), exit_after_slot(723)]);
    let satellite = &report.satellites[0];
    let counts: Vec<_> =
        satellite.terminals.iter().map(|t| (t.terminal, t.whole.delivered.packets.get(), t.inside)).collect();
    assert_eq!(counts, [(2, 2, 0), (3, 2, 0)]);
}

#[test]
fn access_links_stay_before_and_behind_the_terminals() {
    let wire = |ms| Some(LinkSpec { delay: DelayModel::constant(Duration::from_millis(ms)), ..LinkSpec::default() });
    let controller = spec("fixed", &[("rate", "1 pkt/s")]);
    let flow =
        between("media", [0, 1], Protocol::Media(MediaConfig { source: Source::Greedy, ..media(controller, 0.0) }));
    let config = SimConfig {
        duration: ms(900),
        hops: vec![HopConfig::path(LinkSpec::default(), LinkSpec::default()), HopConfig::satellite(DamaSpec::large())],
        flows: vec![FlowConfig {
            access: Access { forward_in: wire(7), forward_out: wire(11), back_in: wire(13), back_out: wire(17) },
            ..flow
        }],
        ..SimConfig::default()
    };
    let report = run(config).unwrap();
    let flow = &report.flows[0];
    // At terminal 0 at 7 ms, when its slot is over; the next is slot 144. Back at 565.4 ms: the terminal has it at
    // 551.4, and its slot 1 of the third multi-frame (546.9 ms) is over: the fourth's.
    let received = exit_after_slot(144) + ms(11);
    assert_eq!(flow.media.as_ref().unwrap().packet_records[0].received, Some(received));
    assert_eq!(flow.owd.min(), received.since(at(0.0)));
    let answered = exit_after_slot(3 * 144 + 1) + ms(17);
    assert!(answered > at(0.9), "{answered}");
    assert_eq!(flow.whole.acknowledged, 0);
}

/// Every kind of flow between five terminals of small frames and short queues.
fn everything(seed: u64) -> SimConfig {
    let sack = TcpParams { variant: TcpVariant::Sack, ..TcpParams::default() };
    let quick_start = QuickStartParams::new(Rate::kbps(256.0), seed).unwrap();
    let tfrc = media(spec("tfrc", &[("rfc", "3448"), ("measured_by", "receiver")]), 256.0);
    let asking =
        MediaConfig { flow: FlowParams { quick_start: Some(quick_start), ..tfrc.flow.clone() }, ..tfrc.clone() };
    let flows = vec![
        between("tcp", [0, 1], Protocol::Tcp(sack, TcpSource::Ftp)),
        between("back", [1, 0], Protocol::Tcp(TcpParams::default(), TcpSource::Transfer(Bytes::new(200_000)))),
        between("tfrc", [2, 3], Protocol::Media(tfrc)),
        FlowConfig { start: at(5.0), stop: Some(at(20.0)), ..between("asks", [2, 1], Protocol::Media(asking)) },
        FlowConfig { start: at(15.0), ..between("too-much", [4, 0], constant(Rate::mbps(8.0))) },
        FlowConfig::new("beside", constant(Rate::kbps(100.0))),
    ];
    SimConfig {
        seed,
        duration: Duration::from_secs(25),
        warmup: Duration::from_secs(5),
        hops: vec![
            HopConfig::path(LinkSpec::default(), LinkSpec::default()),
            HopConfig::satellite(DamaSpec {
                queue: Packets::new(100),
                ..DamaSpec::small().with_agent(Agent::Qsd { hold: ms(50) })
            }),
        ],
        flows,
        sample: Some(ms(500)),
        plans: vec![at(0.0), at(20.0)],
        trace: true,
        pcap: true,
        ..SimConfig::default()
    }
}

#[test]
fn every_packet_is_received_dropped_or_still_inside_at_every_terminal() {
    let report = run(everything(1)).unwrap();
    let satellite = &report.satellites[0];
    assert_eq!(satellite.terminals.iter().map(|t| t.terminal).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    let mut dropped = 0;
    for t in &satellite.terminals {
        let c = &t.whole;
        let out = c.delivered.packets + c.dropped.packets;
        assert_eq!(c.offered.packets.get(), out.get() + t.inside, "terminal {}", t.terminal);
        assert!(c.transmitted.packets.get() > 20 && c.slots_used > 15, "{t:?}");
        dropped += c.dropped.packets.get();
    }
    let inside: u64 = satellite.terminals.iter().map(|t| t.inside).sum();
    let (mut sent, mut ended, mut lost) = (0, 0, 0);
    for f in &report.flows {
        let c = &f.whole;
        sent += (c.sent.packets + c.feedback_sent.packets).get();
        ended += (c.received.packets + c.feedback_received.packets).get();
        lost += (c.dropped_in_all().packets + c.feedback_dropped.packets).get();
        assert!(c.received.packets.get() > 20, "{} got through: {c:?}", f.name);
    }
    assert_eq!((sent, lost), (ended + lost + inside, dropped));
    // 8 Mbit/s into 6.336, and a queue of 100.
    let full = report.flows[4].whole.dropped(DropReason::QueueFull).packets.get();
    assert!(full > 1_000 && full <= dropped, "{full}");
    assert!((0.5..=1.0).contains(&satellite.utilization), "{}", satellite.utilization);
    let text = String::from_utf8_lossy(report.pcapng.as_ref().unwrap()).into_owned();
    assert!(text.contains("queue_full at terminal 4"));
}

#[test]
fn samples_events_and_plans_say_what_the_counters_say() {
    let report = run(everything(1)).unwrap();
    let satellite = &report.satellites[0];
    assert_eq!(satellite.series.len(), 50 * 5);
    for t in &satellite.terminals {
        let rows = || satellite.series.iter().filter(|r| r.terminal == t.terminal);
        let bytes: f64 = rows().map(|r| r.throughput.as_bps() * 0.5 / 8.0).sum();
        assert!((bytes - t.whole.transmitted.bytes.as_f64()).abs() < 1.0, "terminal {}", t.terminal);
        assert_eq!(rows().map(|r| r.slots_used).sum::<u64>(), t.whole.slots_used);
        assert_eq!(rows().map(|r| r.drops).sum::<u64>(), t.whole.dropped.packets.get());
    }
    let seen = |what: fn(&DamaEventKind) -> bool| satellite.events.iter().filter(|e| what(&e.what)).count();
    assert!(seen(|w| matches!(w, DamaEventKind::Request { .. })) > 100);
    assert!(seen(|w| matches!(w, DamaEventKind::Grant { .. })) > 100);
    assert_eq!(satellite.events_left_out, 0);
    assert!(satellite.events.is_sorted_by_key(|e| e.at));
    // At rest each of five has its minimum, 44 kbit/s: half a slot in a small super-frame of 72.
    let of = |i: usize, t: u32| satellite.plans[i].plan.owners.iter().filter(|o| **o == Some(t)).count();
    let owned: Vec<_> = (0..5).map(|t| of(0, t)).collect();
    assert!(owned.iter().all(|n| *n <= 1), "{owned:?}");
    // Under load all slots are somebody's, and most that of who asks for most.
    assert_eq!((0..5).map(|t| of(1, t)).sum::<usize>(), 72);
    assert!(of(1, 4) > 40, "{}", of(1, 4));
    assert_eq!(satellite.plans.len(), 2);
}

#[test]
fn the_same_seed_gives_the_same_bytes_in_one_go_and_in_steps() {
    let whole = format!("{:?}", run(everything(3)).unwrap());
    assert_eq!(whole, format!("{:?}", run(everything(3)).unwrap()));
    let mut network = Network::new(&everything(3)).unwrap();
    while network.now() < at(25.0) {
        let step = (network.now() + ms(7)).min(at(25.0));
        network.advance(step);
    }
    assert!(whole == format!("{:?}", network.into_report()));
}

#[test]
fn tcp_gets_capacity_for_what_it_sends() {
    // Alone on a carrier: the window doubles each RTT as on any long path, and the grants follow a T_a later.
    let report = run(SimConfig {
        duration: Duration::from_secs(120),
        warmup: Duration::from_secs(60),
        hops: vec![HopConfig::path(LinkSpec::default(), LinkSpec::default()), HopConfig::satellite(DamaSpec::large())],
        flows: vec![between("tcp", [0, 1], Protocol::Tcp(TcpParams::default(), TcpSource::Ftp))],
        ..SimConfig::default()
    })
    .unwrap();
    let flow = &report.flows[0];
    let mbps = flow.goodput().as_bps() / 1e6;
    assert!((3.0..=6.336).contains(&mbps), "{mbps}");
    assert!(flow.owd.min() >= ms(253));
}

#[test]
fn a_hop_over_the_satellite_costs_about_one_event() {
    let flows = (0..20).map(|i| between(&format!("f{i}"), [i % 5, (i + 1) % 5], constant(Rate::kbps(200.0)))).collect();
    let config = SimConfig {
        duration: Duration::from_secs(60),
        hops: vec![HopConfig::path(LinkSpec::default(), LinkSpec::default()), HopConfig::satellite(DamaSpec::large())],
        flows,
        ..SimConfig::default()
    };
    let engine = run(config).unwrap().engine;
    assert!(engine.packet_hops > 20_000);
    // One exit and one send for each packet.
    let cost = engine.events_per_packet_hop();
    assert!((1.0..=2.2).contains(&cost), "{cost}");
}

fn with_flow(terminals: [u32; 2], dama: Option<DamaSpec>) -> Result<SimReport, String> {
    let flows = vec![between("f", terminals, constant(Rate::kbps(100.0)))];
    let path = HopConfig::path(LinkSpec::default(), LinkSpec::default());
    let hops = std::iter::once(path).chain(dama.map(HopConfig::satellite)).collect();
    run(SimConfig { hops, flows, ..SimConfig::default() }).map_err(|e| e.to_string())
}

#[test]
fn what_cannot_be_is_refused_with_the_flow_and_what_is_allowed() {
    let large = || Some(DamaSpec::large());
    assert_eq!(with_flow([0, 1], None).unwrap_err(), "flow `f`: `route` has hop 1; there are 1 hops, numbered from 0");
    assert_eq!(
        with_flow([0, 5], large()).unwrap_err(),
        "flow `f`: `route` has port 5 of `satellite`; that has 5 ports, numbered from 0"
    );
    assert_eq!(
        with_flow([3, 3], large()).unwrap_err(),
        "flow `f`: `route` has terminal 3 of `satellite` twice; sender and receiver must be at different ones"
    );
    let none = DamaSpec { terminals: 0, ..DamaSpec::large() };
    assert!(with_flow([0, 1], Some(none)).unwrap_err().starts_with("satellite: `terminals` is 0"));
}

#[test]
fn of_many_terminals_those_that_carry_flows_are_reported_and_the_first_64_of_these_noted() {
    let flows = (0..100).map(|i| between(&format!("f{i}"), [2 * i, 2 * i + 1], constant(Rate::kbps(20.0)))).collect();
    let report = run(SimConfig {
        duration: Duration::from_secs(10),
        hops: vec![
            HopConfig::path(LinkSpec::default(), LinkSpec::default()),
            HopConfig::satellite(DamaSpec { terminals: 10_000, ..DamaSpec::large() }),
        ],
        flows,
        sample: Some(Duration::from_secs(1)),
        plans: vec![at(5.0)],
        trace: true,
        ..SimConfig::default()
    })
    .unwrap();
    let satellite = &report.satellites[0];
    assert_eq!((satellite.carriers, satellite.terminals.len()), (70, 200));
    assert_eq!(satellite.series.len(), 10 * MOST_TERMINALS_NOTED);
    let last = satellite.events.iter().map(|e| e.terminal).max();
    assert!(last.is_some_and(|t| t < MOST_TERMINALS_NOTED as u32), "{last:?}");
    // 143 terminals on each carrier: the first 64 are on one.
    assert_eq!(satellite.plans.iter().map(|p| p.carrier).collect::<Vec<_>>(), [0]);
}
