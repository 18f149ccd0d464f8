//! Quick-Start from end to end: the request on a data packet, routers on links and terminals, the answer in the
//! next feedback, and the rate that comes of it.

use std::sync::{Arc, Mutex};

use fairpace_control::{Env, FlowParams, QuickStartParams, Safety};
use fairpace_path::quick_start::{Agent, RouterParams};
use fairpace_path::{DamaSpec, DelayModel, LinkSpec, RateModel};
use fairpace_sim::{
    Access, Body, ControllerSpec, Direction, FlowConfig, FlowReport, HopConfig, MediaConfig, Observer, PacketEvent,
    PacketFate, Protocol, QuickStart, RouteHop, SimConfig, SimReport, Source, run, run_observed,
};
use fairpace_units::{Bytes, Duration, Instant, QsFunction, QsRate, Rate};

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// TFRC of 1,000-B packets that asks for `kbps` and knows no RTT.
fn asking(measured_by: &str, kbps: f64) -> MediaConfig {
    let env = Env { safety: Safety::Paper, max_rate: Rate::mbps(20.0), ..Env::default() };
    let quick_start = QuickStartParams { header: Bytes::ZERO, ..QuickStartParams::new(Rate::kbps(kbps), 7).unwrap() };
    MediaConfig {
        challenge: false,
        source: Source::Constant(Rate::kbps(kbps)),
        ..MediaConfig::new(
            ControllerSpec::named("tfrc", env).with("measured_by", measured_by),
            FlowParams { quick_start: Some(quick_start), ..FlowParams::new(&env) },
        )
    }
}

/// 2 Mbit/s and 50 ms, with a router that lets one flow have all that is free.
fn link(knows: bool) -> LinkSpec {
    let router = RouterParams { source_share: 1.0, ..RouterParams::default() };
    LinkSpec {
        rate: RateModel::Fixed(Rate::mbps(2.0)),
        delay: DelayModel::constant(ms(50)),
        quick_start: knows.then_some(router),
        ..LinkSpec::default()
    }
}

fn config(media: MediaConfig, bottleneck: LinkSpec) -> SimConfig {
    SimConfig {
        duration: Duration::from_secs(3),
        hops: vec![HopConfig::path(
            bottleneck,
            LinkSpec { delay: DelayModel::constant(ms(50)), ..LinkSpec::default() },
        )],

        flows: vec![FlowConfig::new("media", Protocol::Media(media))],
        ..SimConfig::default()
    }
}

fn alone(media: MediaConfig, bottleneck: LinkSpec) -> FlowReport {
    run(config(media, bottleneck)).unwrap().flows.remove(0)
}

#[test]
fn an_approved_rate_fills_the_media_rate_from_the_second_round_trip_on() {
    for by in ["receiver", "sender"] {
        let with = alone(asking(by, 640.0), link(true));
        let counts = with.media.as_ref().unwrap().quick_start.unwrap();
        assert_eq!((counts.asked, counts.approved, counts.reports), (1, 1, 1), "{by}: {counts:?}");
        let without = alone(
            MediaConfig { flow: FlowParams { quick_start: None, ..asking(by, 640.0).flow }, ..asking(by, 640.0) },
            link(true),
        );
        assert_eq!(without.media.as_ref().unwrap().quick_start, None);
        // 80 packets/s in 3 s; the first RTT of 0.1 s has one packet, and after it they leave as they come. Without,
        // slow start from one packet per RTT takes some RTTs to 8.
        let [with, without] = [&with, &without].map(|f| (f.whole.sent.packets.get(), f.e2ed.mean()));
        assert!(with.0 >= 230 && with.1 < without.1, "{by}: {with:?} {without:?}");
    }
}

#[test]
fn a_hop_that_does_not_know_it_spoils_the_request_and_a_busy_one_lowers_it() {
    let unaware = alone(asking("receiver", 640.0), link(false));
    let counts = unaware.media.unwrap().quick_start.unwrap();
    assert_eq!((counts.asked, counts.approved, counts.bad_ttl), (1, 0, 1), "{counts:?}");
    // Four fifths of 2 Mbit/s are free: of 5,120 kbit/s 1,280 are approved.
    let report = run(config(asking("receiver", 5_120.0), link(true))).unwrap();
    let router = report.links[0].quick_start.as_deref().unwrap();
    assert_eq!((router.approved, router.reduced), (0, 1));
    assert_eq!(report.links[1].quick_start, None);
    assert_eq!(report.flows[0].media.as_ref().unwrap().quick_start.unwrap().approved, 1);
    // Two routers in a row, the second with 320 kbit/s free of 400.
    let narrow = LinkSpec { rate: RateModel::Fixed(Rate::kbps(400.0)), ..link(true) };
    let mut two = config(asking("receiver", 5_120.0), link(true));
    two.flows[0].access = Access { forward_out: Some(narrow), ..Access::default() };
    let seen = Seen::default();
    let report = run_observed(two, Box::new(Recorder(seen.clone()))).unwrap();
    assert_eq!(report.flows[0].media.as_ref().unwrap().quick_start.unwrap().approved, 1);
    let rates: Vec<_> = seen.lock().unwrap().iter().filter_map(|(.., q)| option(q).map(|o| o.0)).collect();
    // Sent at 5,120, arrived at 320 kbit/s; then the report of that, sent and arrived.
    assert_eq!(rates, [7, 3, 3, 3]);
}

type Seen = Arc<Mutex<Vec<(Instant, PacketFate, Direction, QuickStart)>>>;

/// Packets that say something about Quick-Start.
struct Recorder(Seen);

impl Observer for Recorder {
    fn on_packet(&mut self, event: &PacketEvent) {
        if let Some(quick_start) = event.packet.quick_start {
            let data = matches!(event.packet.body, Body::Media { .. });
            assert_eq!(data, event.packet.direction == Direction::Forward);
            self.0.lock().unwrap().push((event.at, event.fate, event.packet.direction, quick_start));
        }
    }
}

fn option(quick_start: &QuickStart) -> Option<(u8, QsFunction)> {
    match quick_start {
        QuickStart::Option(option) => Some((option.rate.code(), option.function)),
        QuickStart::Response(_) => None,
    }
}

#[test]
fn the_answer_comes_in_the_next_feedback_of_either_form() {
    for (by, feedback) in [("receiver", None), ("sender", None), ("sender", Some(ms(30)))] {
        let seen = Seen::default();
        let media = MediaConfig { feedback, ..asking(by, 640.0) };
        run_observed(config(media, link(true)), Box::new(Recorder(seen.clone()))).unwrap();
        let seen = seen.lock().unwrap();
        // The request in the first packet: 4 ms of transmission and 50. The answer at once, there at 104 ms; the report
        // of the rate in the next packet.
        let times: Vec<_> = seen.iter().map(|(at, _, direction, _)| (at.as_nanos() / 1_000_000, *direction)).collect();
        let (there, back) = (Direction::Forward, Direction::Back);
        assert_eq!(times[..5], [(0, there), (54, there), (54, back), (104, back), (104, there)], "{by} {feedback:?}");
        assert_eq!(option(&seen[4].3), Some((QsRate::at_least(Rate::kbps(640.0)).unwrap().code(), QsFunction::Report)));
        assert_eq!(times.len(), 6, "nothing more until the interval is over");
    }
}

/// One flow of 256 kbit/s over the large frame, with the agents doing that: delay of the 40 packets after 5 s.
fn over_the_satellite(agent: Agent, ask: bool) -> (SimReport, Duration) {
    let mut media = asking("receiver", 256.0);
    media.source = Source::Constant(Rate::kbps(256.0));
    media.controller = media.controller.with("rfc", "3448");
    media.record_packets = Some(Duration::from_secs(30));
    if !ask {
        media.flow.quick_start = None;
    }
    let flow =
        FlowConfig { route: vec![RouteHop::terminals(1, [1, 2])], ..FlowConfig::new("iptv", Protocol::Media(media)) };
    let report = run(SimConfig {
        duration: Duration::from_secs(30),
        hops: vec![
            HopConfig::path(LinkSpec::default(), LinkSpec::default()),
            HopConfig::satellite(DamaSpec::large().with_agent(agent)),
        ],
        flows: vec![flow],
        trace: true,
        ..SimConfig::default()
    })
    .unwrap();
    let delays = report.flows[0].media.as_ref().unwrap().packet_records.iter().filter_map(|r| r.e2ed());
    let most = delays.max().unwrap();
    (report, most)
}

#[test]
fn terminals_answer_requests_and_qsd_holds_the_first_packet() {
    let (_, none) = over_the_satellite(Agent::Off, false);
    let (report, qs) = over_the_satellite(Agent::Qs, true);
    let counts = report.flows[0].media.as_ref().unwrap().quick_start.unwrap();
    assert_eq!((counts.asked, counts.approved), (1, 1), "{counts:?}");
    let hold = ms(1_273);
    let (report, qsd) = over_the_satellite(Agent::Qsd { hold }, true);
    let satellite = &report.satellites[0];
    assert_eq!(satellite.terminals[0].quick_start.unwrap().approved, 1);
    let first = report.flows[0].media.as_ref().unwrap().packet_records[0];
    // Held for T_q, then at most a multi-frame until its slot, the slot, and T_p.
    let least = hold + ms(252);
    let owd = first.owd().unwrap();
    assert!(owd > least && owd < least + ms(276), "{owd:?}");
    // [qsd Fig. 5]: the greatest delay falls from one strategy to the next.
    assert!(qsd < qs && qs < none, "{none:?} {qs:?} {qsd:?}");
}

#[test]
fn a_request_that_is_held_and_overtaken_is_still_answered() {
    // Speech in packets of 160 B: while the first is held for 1,273 ms, those after it pass.
    let env = Env { safety: Safety::Paper, packet_size: Bytes::new(160), ..Env::default() };
    for by in ["receiver", "sender"] {
        let media = MediaConfig {
            challenge: false,
            source: Source::Constant(Rate::kbps(16.0)),
            record_packets: Some(Duration::from_secs(30)),
            ..MediaConfig::new(
                ControllerSpec::named("tfrc-sp", env).with("measured_by", by),
                FlowParams {
                    quick_start: Some(QuickStartParams::new(Rate::kbps(16.0), 7).unwrap()),
                    ..FlowParams::new(&env)
                },
            )
        };
        let flow = FlowConfig {
            route: vec![RouteHop::terminals(1, [1, 2])],
            packet_size: Bytes::new(160),
            ..FlowConfig::new("voip", Protocol::Media(media))
        };
        let report = run(SimConfig {
            duration: Duration::from_secs(30),
            hops: vec![
                HopConfig::path(LinkSpec::default(), LinkSpec::default()),
                HopConfig::satellite(DamaSpec::large().with_agent(Agent::Qsd { hold: ms(1_273) })),
            ],
            flows: vec![flow],
            ..SimConfig::default()
        })
        .unwrap();
        let media = report.flows[0].media.as_ref().unwrap();
        let overtook = media.packet_records.iter().filter(|r| r.received < media.packet_records[0].received).count();
        assert!(overtook > 0, "{by}");
        let counts = media.quick_start.unwrap();
        assert_eq!((counts.asked, counts.approved, counts.unanswered, counts.stray), (1, 1, 0, 0), "{by}: {counts:?}");
    }
}
