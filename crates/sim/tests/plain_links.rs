//! Plain links have a path of their own, through the link and through the network's loop; in runs of thousands of flows the loop looks
//! at events before they come; and packets of links that flows share are brought to the flows' own links before they come out. Random topologies,
//! queues, losses, schedules and flows give the same report, the same packets in the same order, with all of that and without.

use std::fmt::Write;

use fairpace_control::{Env, FlowParams, Safety};
use fairpace_path::{
    ArqSpec, Capacity, Channel, CoDelParams, DelayModel, GilbertElliott, LinkSpec, LossModel, Outage, PieParams,
    QueueModel, RateModel,
};
use fairpace_sim::tcp::{DelayedAck, TcpParams, TcpSource, TcpVariant};
use fairpace_sim::{
    Access, ConstantConfig, ControllerSpec, DelayHistogram, FlowConfig, HopConfig, MANY_FLOWS, MediaConfig, Network,
    Protocol, RadioConfig, RouteHop, SimConfig, SimReport, Source,
};
use fairpace_units::{Bytes, Class, Duration, Instant, Packets, Probability, RandomStream, Rate};

const RUNS: u64 = 60;

fn one_of<T: Copy>(random: &mut RandomStream, choices: &[T]) -> T {
    choices[random.below(choices.len() as u64) as usize]
}

fn probability(p: f64) -> Probability {
    Probability::new(p).unwrap()
}

fn seconds(s: f64) -> Instant {
    Instant::from_secs_f64(s)
}

/// A plain link, or with `any` perhaps one that is not.
fn link(random: &mut RandomStream, any: bool) -> LinkSpec {
    let mbps = one_of(random, &[1.0, 2.5, 10.0, 10.4, 100.0]);
    let rate = match random.below(8) {
        0 if any => RateModel::Unlimited,
        1 if any => RateModel::Schedule(vec![
            (Instant::ZERO, Rate::mbps(mbps)),
            (seconds(1.0), Rate::mbps(mbps * 0.3)),
            (seconds(2.0), Rate::mbps(mbps * 1.3)),
        ]),
        _ => RateModel::Fixed(Rate::mbps(mbps)),
    };
    // The same delays often, so that packets come out of several links at the same instant.
    let propagation = one_of(random, &[0, 1_000, 1_000, 5_000, 48_000]) + random.below(2) * random.below(20_000);
    let jitter = if any && random.below(5) == 0 { random.below(4_000) } else { 0 };
    let delay = DelayModel {
        propagation: Duration::from_micros(propagation),
        jitter: Duration::from_micros(jitter),
        reorder: random.below(2) == 0,
    };
    let capacity = match random.below(4) {
        0 => Capacity::Bytes(Bytes::new(2_000 + random.below(100_000))),
        1 => Capacity::Unlimited,
        _ => Capacity::Packets(Packets::new(1 + random.below(60))),
    };
    let queue = match random.below(9) {
        0 if any => QueueModel::TwoPriority { capacity },
        1 if any => QueueModel::CoDel(CoDelParams::new(capacity)),
        2 if any => QueueModel::Pie(PieParams::new(capacity, Bytes::new(1_000))),
        _ => QueueModel::DropTail { capacity },
    };
    let loss = match random.below(5) {
        0 => LossModel::Bernoulli(probability(random.uniform() * 0.05)),
        1 => LossModel::GilbertElliott(GilbertElliott {
            good_to_bad: probability(0.01),
            bad_to_good: probability(0.3),
            loss_in_good: probability(0.001),
            loss_in_bad: probability(0.7),
        }),
        _ => LossModel::None,
    };
    let dark = any && random.below(8) == 0;
    let outage = if dark { vec![Outage::of(seconds(1.0), Duration::from_millis(150))] } else { Vec::new() };
    LinkSpec { rate, delay, queue, loss, outage, ..LinkSpec::default() }
}

fn protocol(random: &mut RandomStream) -> Protocol {
    let tcp = TcpParams {
        variant: one_of(random, &[TcpVariant::Reno, TcpVariant::NewReno, TcpVariant::Sack]),
        linux: random.below(4) == 0,
        ecn: random.below(4) == 0,
        send_jitter: Duration::from_micros(random.below(2) * 800),
        delayed_ack: (random.below(4) == 0).then_some(DelayedAck { timeout: Duration::from_millis(100) }),
        ..TcpParams::default()
    };
    match random.below(9) {
        0 => Protocol::Constant(ConstantConfig {
            rate: Rate::kbps(50.0 + random.below(900) as f64),
            class: one_of(random, &[Class::Normal, Class::Low]),
            on_off: None,
            quick_start: None,
        }),
        1 | 2 => {
            let scheme = one_of(random, &["rcs", "tfrc", "rap", "aimd", "fixed", "srp"]);
            let env = Env { safety: Safety::Paper, ..Env::default() };
            Protocol::Media(MediaConfig {
                challenge: random.below(2) == 0,
                source: Source::Constant(Rate::kbps(200.0 + random.below(3_000) as f64)),
                ..MediaConfig::new(ControllerSpec::named(scheme, env), FlowParams::new(&env))
            })
        }
        3 => Protocol::Tcp(tcp, TcpSource::Transfer(Bytes::new(1_000 + random.below(1_000_000)))),
        _ => Protocol::Tcp(tcp, TcpSource::Ftp),
    }
}

fn config(seed: u64) -> SimConfig {
    let mut random = RandomStream::named(seed, "topology");
    let random = &mut random;
    let any = !seed.is_multiple_of(3);
    let hops = 1 + random.below(3) as u32;
    let many = seed % 20 == 5;
    let flows = if many { MANY_FLOWS as u32 } else { 1 + random.below(20) as u32 };
    let usual = link(random, false);
    let hop_list =
        (0..hops).map(|i| HopConfig::links(format!("hop{i}"), link(random, any), link(random, any))).collect();
    let flows = (0..flows)
        .map(|i| {
            let mut access = || match random.below(4) {
                0 => None,
                1 => Some(link(random, any)),
                _ => Some(usual.clone()),
            };
            let access = Access { forward_in: access(), forward_out: access(), back_in: access(), back_out: access() };
            let first = random.below(hops.into()) as u32;
            FlowConfig {
                group: format!("group{}", if many { 0 } else { i % 3 }),
                start: seconds(random.uniform()),
                stop: (random.below(4) == 0).then(|| seconds(1.5 + random.uniform())),
                route: (first..hops).map(RouteHop::links).collect(),
                access,
                class_override: (random.below(5) == 0).then_some(Class::Low),
                packet_size: Bytes::new(one_of(random, &[1_000, 1_000, 500, 1_500])),
                ..FlowConfig::new(format!("flow{i}"), protocol(random))
            }
        })
        .collect();
    SimConfig {
        seed,
        duration: Duration::from_secs(3),
        warmup: Duration::from_millis(500 * (seed % 3)),
        hops: hop_list,
        flows,
        sample: seed.is_multiple_of(2).then(|| Duration::from_millis(100)),
        pcap: seed % 4 == 1,
        trace: seed % 4 == 2,
        ..SimConfig::default()
    }
}

/// All that a report says.
fn text(report: &SimReport) -> String {
    let delays = |h: &DelayHistogram| {
        let quantiles = [0.0, 0.01, 0.1, 0.5, 0.9, 0.99, 1.0].map(|q| h.quantile(q));
        format!("{} {:?} {:?} {:?} {quantiles:?}", h.count(), h.mean(), h.min(), h.max())
    };
    let SimReport { engine, links, series, link_series, events, pcapng, .. } = report;
    // Exits that have no event are not counted among those; and a timer that was moved on before it came finds that by fewer events.
    let (hops, timers) = (engine.packet_hops, engine.timer_events - engine.idle_events);
    let mut text = format!("{hops} {timers} {links:?} {series:?} {link_series:?} {events:?} {pcapng:?}");
    for group in &report.groups {
        write!(text, "{} {} {}", group.name, delays(&group.owd), delays(&group.e2ed)).unwrap();
    }
    for flow in &report.flows {
        let (tcp, media) = (&flow.tcp, &flow.media);
        write!(text, "{} {:?} {:?} {tcp:?} {media:?}", flow.name, flow.measured, flow.whole).unwrap();
        write!(text, "{:?} {:?}", flow.srtt, flow.checkpoints).unwrap();
        write!(text, "{} {} {:?} {:?}", delays(&flow.owd), delays(&flow.e2ed), flow.finished, flow.stopped).unwrap();
    }
    text
}

/// Many flows, which begin far apart and send a burst each.
fn sparse(seed: u64) -> SimConfig {
    let mut random = RandomStream::named(seed, "sparse");
    let random = &mut random;
    let (usual, shared) = (link(random, false), [link(random, false), link(random, false)]);
    let [forward, back] = shared;
    let apart = one_of(random, &[0.001, 0.02, 0.1]);
    let flows = MANY_FLOWS as u32 + random.below(30) as u32;
    let burst = |random: &mut RandomStream| {
        let tcp = TcpParams { initial_window: Packets::new(1 + random.below(30)), ..TcpParams::default() };
        Protocol::Tcp(tcp, TcpSource::Transfer(Bytes::new(1_000 + random.below(40_000))))
    };
    let flow = |i: u32| {
        let mut access = || (random.below(4) > 0).then(|| usual.clone());
        let access = Access { forward_in: access(), forward_out: access(), back_in: access(), back_out: access() };
        FlowConfig {
            start: seconds(apart * f64::from(i / one_of(random, &[1, 1, 4]))),
            access,
            ..FlowConfig::new(format!("flow{i}"), burst(random))
        }
    };
    SimConfig {
        seed,
        duration: Duration::from_secs_f64(apart * f64::from(flows) + 1.0),
        hops: vec![HopConfig::path(forward, back)],
        flows: (0..flows).map(flow).collect(),
        ..SimConfig::default()
    }
}

/// All flows have links of their own behind the shared ones, often alike, so that packets meet at one instant; some with so little room that packets
/// of a burst do not find any, some slower than the link before them.
fn dumbbell(seed: u64) -> SimConfig {
    let mut random = RandomStream::named(seed, "dumbbell");
    let random = &mut random;
    let lossless = |random: &mut RandomStream| LinkSpec { loss: LossModel::None, ..link(random, false) };
    let usual = lossless(random);
    let hops = 1 + random.below(2) as u32;
    let hop_list: Vec<_> =
        (0..hops).map(|i| HopConfig::links(format!("hop{i}"), link(random, false), link(random, false))).collect();
    let flows = if seed % 20 == 7 { MANY_FLOWS as u32 } else { 1 + random.below(20) as u32 };
    let flows = (0..flows)
        .map(|i| {
            let mut access = || Some(if random.below(4) == 0 { lossless(random) } else { usual.clone() });
            let access = Access { forward_in: access(), forward_out: access(), back_in: access(), back_out: access() };
            FlowConfig {
                group: format!("group{}", i % 3),
                start: seconds(one_of(random, &[0.0, 0.01, 0.2]) * f64::from(i % 8)),
                stop: (random.below(4) == 0).then(|| seconds(1.5 + random.uniform())),
                route: (random.below(hops.into()) as u32..hops).map(RouteHop::links).collect(),
                access,
                class_override: (random.below(5) == 0).then_some(Class::Low),
                packet_size: Bytes::new(one_of(random, &[1_000, 1_000, 500, 1_500])),
                ..FlowConfig::new(format!("flow{i}"), protocol(random))
            }
        })
        .collect();
    SimConfig {
        seed,
        duration: Duration::from_secs(3),
        warmup: Duration::from_millis(500 * (seed % 3)),
        hops: hop_list,
        flows,
        sample: seed.is_multiple_of(2).then(|| Duration::from_millis(one_of(random, &[10, 100]))),
        checkpoints: (0..random.below(4)).map(|_| seconds(3.0 * random.uniform())).collect(),
        pcap: seed % 16 == 1,
        trace: seed % 4 == 2,
        ..SimConfig::default()
    }
}

/// All ways of one configuration give the same report. How many events the shortest has, and how many those where each exit has one.
fn compare(config: &SimConfig) -> [u64; 2] {
    let (seed, end) = (config.seed, Instant::ZERO + config.duration);
    let ways = [Network::new, Network::looking, Network::stepwise, Network::composed];
    let [short, looking, stepwise, composed] = ways.map(|way| {
        let mut network = way(config).unwrap();
        network.advance(end);
        network.into_report()
    });
    assert!(short.engine.packet_hops > 0, "seed {seed}");
    // Not by `assert_eq`, which would print megabytes.
    assert!(text(&short) == text(&looking), "seed {seed}, looking");
    assert!(text(&short) == text(&stepwise), "seed {seed}, short");
    assert!(text(&stepwise) == text(&composed), "seed {seed}, composed");
    [short.engine.events, stepwise.engine.events]
}

#[test]
fn every_random_network_gives_the_same_report_without_the_plain_links_path() {
    for seed in 0..RUNS {
        compare(&config(seed));
    }
}

#[test]
fn bursts_of_many_flows_that_begin_far_apart_give_the_same_report_without_a_look_ahead() {
    for seed in 0..RUNS / 3 {
        compare(&sparse(seed));
    }
}

#[test]
fn packets_that_are_brought_early_give_the_same_report() {
    let counts: Vec<_> = (0..RUNS).map(|seed| compare(&dumbbell(seed))).collect();
    let fewer = counts.iter().filter(|[short, stepwise]| 4 * short < 3 * stepwise).count();
    assert!(fewer as u64 > RUNS / 4, "{fewer} of {} with a quarter of the events less", counts.len());
}

/// Behind a radio some flows pass a pair of links: their feedback comes from a shared link into their user's uplink, which the others enter directly.
fn behind_a_radio(seed: u64) -> SimConfig {
    let mut random = RandomStream::named(seed, "uplinks");
    let random = &mut random;
    let downlink = ArqSpec::downlink(Channel::memoryless(0.0).unwrap(), Capacity::Unlimited);
    let uplink = LinkSpec { loss: LossModel::None, ..link(random, false) };
    let radio = RadioConfig { downlink, uplink: Some(uplink), base_station: None };
    let hops = vec![HopConfig::radio(radio), HopConfig::links("behind", link(random, false), link(random, false))];
    let flows = (0..1 + random.below(4))
        .map(|i| {
            let both = vec![RouteHop::user(0, 0), RouteHop::links(1)];
            let route = if random.below(2) == 0 { both } else { vec![RouteHop::user(0, 0)] };
            // Some have a link of their own behind the uplink, so that not all go the same way from there.
            let back_out = (random.below(3) == 0).then(|| LinkSpec { loss: LossModel::None, ..link(random, false) });
            let access = Access { back_out, ..Access::default() };
            FlowConfig { route, access, ..FlowConfig::new(format!("flow{i}"), protocol(random)) }
        })
        .collect();
    SimConfig { seed, duration: Duration::from_secs(3), hops, flows, ..SimConfig::default() }
}

#[test]
fn an_uplink_that_others_enter_too_is_fed_by_events() {
    for seed in 0..RUNS {
        compare(&behind_a_radio(seed));
    }
}

/// In pieces of any length, cut at any instant, after any number of events: at the end of each piece counts and links are as they are with an
/// event for each exit, and in the end the report.
#[test]
fn a_run_in_pieces_shows_the_same_counts_after_each_and_the_same_report() {
    for seed in RUNS..2 * RUNS {
        let config = dumbbell(seed);
        let mut random = RandomStream::named(seed, "pieces");
        let mut whole = Network::new(&config).unwrap();
        whole.advance(Instant::ZERO + config.duration);
        let (mut short, mut stepwise) = (Network::new(&config).unwrap(), Network::stepwise(&config).unwrap());
        let mut now = Instant::ZERO;
        let end = Instant::ZERO + config.duration;
        while now < end {
            let longest = one_of(&mut random, &[10_000_000, 700_000_000]);
            now = end.min(now + Duration::from_nanos(1 + random.below(longest)));
            while !short.advance_some(now, 1 + random.below(2_000)) {
                // Somebody reads, perhaps between two exits of one instant. (A report takes the events of a trace.)
                if random.below(4) == 0 && !config.trace {
                    short.report();
                }
            }
            stepwise.advance(now);
            for link in 0..short.link_names().len() as u32 {
                let state = |network: &mut Network| {
                    let link = network.link(link).unwrap();
                    (link.counters(), link.queue_len(), link.queue_bytes(), link.inside())
                };
                assert_eq!(state(&mut short), state(&mut stepwise), "seed {seed}, link {link} at {now}");
            }
            for flow in 0..config.flows.len() as u32 {
                assert_eq!(short.counts(flow), stepwise.counts(flow), "seed {seed}, flow {flow} at {now}");
            }
        }
        let text = [whole, short, stepwise].map(|network| text(&network.into_report()));
        assert!(text[0] == text[1] && text[1] == text[2], "seed {seed}");
    }
}

/// Packets of low priority come out of two links at one instant, and somebody reads between the two.
#[test]
fn a_reading_between_two_exits_of_one_instant_counts_none_twice() {
    let own = LinkSpec {
        rate: RateModel::Fixed(Rate::mbps(8.0)),
        delay: DelayModel::constant(Duration::from_millis(1)),
        ..LinkSpec::default()
    };
    let constant = ConstantConfig { rate: Rate::mbps(1.0), class: Class::Low, on_off: None, quick_start: None };
    let flow = |name: &str| FlowConfig {
        access: Access { forward_in: Some(own.clone()), ..Access::default() },
        class_override: Some(Class::Low),
        ..FlowConfig::new(name, Protocol::Constant(constant))
    };
    let config = SimConfig {
        duration: Duration::from_millis(20),
        hops: vec![HopConfig::path(own.clone(), own.clone())],
        flows: vec![flow("a"), flow("b")],
        ..SimConfig::default()
    };
    let [read, unread] = [true, false].map(|reads| {
        let mut network = Network::new(&config).unwrap();
        while !network.advance_some(Instant::ZERO + config.duration, 1) {
            if reads {
                network.report();
            }
        }
        text(&network.into_report())
    });
    assert!(read == unread);
}

/// A packet takes longer than time is counted: it never comes out, and is inside.
#[test]
fn a_link_from_which_nothing_ever_comes_out_has_all_inside() {
    let slow =
        LinkSpec { rate: RateModel::Fixed(Rate::bps(0.001)), ..link(&mut RandomStream::named(1, "slow"), false) };
    let slow =
        LinkSpec { loss: LossModel::None, queue: QueueModel::DropTail { capacity: Capacity::Unlimited }, ..slow };
    let constant = ConstantConfig { rate: Rate::mbps(10.0), class: Class::Normal, on_off: None, quick_start: None };
    let config = SimConfig {
        duration: Duration::from_secs(4),
        hops: vec![HopConfig::path(LinkSpec::default(), LinkSpec::default())],
        flows: vec![FlowConfig {
            access: Access { forward_out: Some(slow), ..Access::default() },
            packet_size: Bytes::new(65_000),
            ..FlowConfig::new("a", Protocol::Constant(constant))
        }],
        ..SimConfig::default()
    };
    let [short, stepwise] = [Network::new(&config), Network::stepwise(&config)].map(|network| {
        let mut network = network.unwrap();
        network.advance(Instant::ZERO + config.duration);
        network.into_report()
    });
    let out = short.links.iter().find(|link| link.name == "flow.a.forward_out").unwrap();
    assert!(out.inside > 50, "{} inside", out.inside);
    assert!(text(&short) == text(&stepwise));
}

/// Stopped after any number of events, between two instants: the report is that of a run with an event for each exit up to then.
#[test]
fn a_run_that_is_left_early_reports_what_has_happened() {
    let mut left = 0;
    for seed in 2 * RUNS..4 * RUNS {
        // Under a capture nothing is brought early.
        let config = SimConfig { pcap: false, ..dumbbell(seed) };
        let mut random = RandomStream::named(seed, "left");
        let [mut short, mut stepwise] = [Network::new(&config), Network::stepwise(&config)].map(Result::unwrap);
        let all = short.advance_some(Instant::ZERO + config.duration, 1_000 + random.below(20_000));
        if all || short.next() <= short.now() {
            continue;
        }
        left += 1;
        stepwise.advance(short.now());
        let [short, stepwise] = [short, stepwise].map(|network| text(&network.into_report()));
        assert!(short == stepwise, "seed {seed}");
    }
    assert!(left > RUNS / 2, "{left} runs were left early");
}
