//! Flows that come one after another are what the same flows are if all are configured before the run. (But for events of one instant, whose order is drawn by the
//! flows' places: dummies of RCS, which two flows send in step while a queue is full, are left out here.)

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use fairpace_control::{BreakerParams, Env, FlowParams, QuickStartParams, Safety};
use fairpace_path::{ArqSpec, Capacity, Channel, DamaSpec, DelayModel, LinkSpec, LossModel, QueueModel, RateModel};
use fairpace_sim::tcp::{DelayedAck, TcpParams, TcpSource, TcpVariant};
use fairpace_sim::{
    Access, Coming, ConstantConfig, ControllerSpec, FlowConfig, FlowId, FlowReport, HopConfig, MANY_FLOWS, MediaConfig,
    Network, Observer, PacketEvent, Protocol, RadioConfig, RouteHop, SimConfig, SimReport, Source, run_observed,
};
use fairpace_units::{Bytes, Class, Duration, Instant, Packets, Probability, RandomStream, Rate};

const FLOWS: usize = MANY_FLOWS + 100;

fn link(mbps: f64, ms: u64, queue: u64, loss: f64) -> LinkSpec {
    LinkSpec {
        rate: RateModel::Fixed(Rate::mbps(mbps)),
        delay: DelayModel::constant(Duration::from_millis(ms)),
        queue: QueueModel::DropTail { capacity: Capacity::Packets(Packets::new(queue)) },
        loss: LossModel::Bernoulli(Probability::new(loss).unwrap()),
        ..LinkSpec::default()
    }
}

fn protocol(random: &mut RandomStream) -> Protocol {
    match random.below(4) {
        0 | 1 => {
            let variant = if random.below(2) == 0 { TcpVariant::NewReno } else { TcpVariant::Sack };
            let source = match random.below(3) {
                0 => TcpSource::Ftp,
                _ => TcpSource::Transfer(Bytes::new(1_000 + random.below(60_000))),
            };
            let delayed_ack = (random.below(3) == 0).then_some(DelayedAck { timeout: Duration::from_millis(100) });
            Protocol::Tcp(TcpParams { variant, delayed_ack, ..TcpParams::default() }, source)
        }
        2 => {
            let rate = Rate::kbps(50.0 + random.below(500) as f64);
            Protocol::Constant(ConstantConfig { rate, class: Class::Normal, on_off: None, quick_start: None })
        }
        _ => {
            let env = Env { safety: Safety::Paper, packet_size: Bytes::new(500), ..Env::default() };
            let scheme = if random.below(2) == 0 { "tfrc" } else { "rap" };
            Protocol::Media(MediaConfig {
                challenge: false,
                source: Source::Constant(Rate::kbps(200.0)),
                send_buffer: Capacity::Packets(Packets::new(4)),
                ..MediaConfig::new(ControllerSpec::named(scheme, env), FlowParams::new(&env))
            })
        }
    }
}

/// Flows that come at random over 20 s, some without an end, over one of some routes.
fn flows(seed: u64, routes: &[Vec<RouteHop>]) -> Vec<FlowConfig> {
    let mut random = RandomStream::named(seed, "flows");
    let random = &mut random;
    let mut start = Instant::ZERO;
    (0..FLOWS)
        .map(|i| {
            start += random.exponential(Duration::from_millis(56));
            let length = Duration::from_millis(1) + random.exponential(Duration::from_millis(800));
            FlowConfig {
                group: ["some", "others"][random.below(2) as usize].to_owned(),
                start,
                stop: (random.below(8) > 0).then(|| start + length),
                route: routes[random.below(routes.len() as u64) as usize].clone(),
                packet_size: Bytes::new(500),
                delay_bound: (random.below(2) == 0).then(|| Duration::from_millis(60)),
                ..FlowConfig::new(format!("flow{i}"), protocol(random))
            }
        })
        .collect()
}

fn over_links(seed: u64) -> SimConfig {
    let hops = vec![
        HopConfig::path(link(12.0, 5, 60, 0.002), link(12.0, 5, 60, 0.0)),
        HopConfig::links("behind", link(9.0, 20, 30, 0.0), link(9.0, 20, 30, 0.0)),
    ];
    let routes = [vec![RouteHop::links(0)], vec![RouteHop::links(0), RouteHop::links(1)]];
    SimConfig {
        seed,
        duration: Duration::from_secs(24),
        warmup: Duration::from_secs(4 * (seed % 2)),
        sample: (!seed.is_multiple_of(3)).then(|| Duration::from_millis(300)),
        checkpoints: vec![Instant::from_secs_f64(7.0), Instant::from_secs_f64(11.5)],
        opening: Some(Duration::from_millis(400)),
        trace: seed % 3 == 1,
        hops,
        flows: flows(seed, &routes),
        ..SimConfig::default()
    }
}

fn over_satellite(seed: u64) -> SimConfig {
    let routes: Vec<_> = (0..5)
        .flat_map(|a| (0..5).filter(move |b| *b != a).map(move |b| vec![RouteHop::terminals(0, [a, b])]))
        .collect();
    let hops = vec![HopConfig::satellite(DamaSpec::large())];
    SimConfig { hops, flows: flows(seed, &routes), ..over_links(seed) }
}

fn over_radio(seed: u64) -> SimConfig {
    let downlink = ArqSpec::downlink(Channel::memoryless(0.05).unwrap(), Capacity::Packets(Packets::new(40)));
    let radio = RadioConfig { downlink, uplink: Some(link(10.0, 3, 50, 0.0)), base_station: None };
    let hops = vec![HopConfig::radio(radio)];
    let routes = [vec![RouteHop::user(0, 0)]];
    SimConfig { hops, flows: flows(seed, &routes), ..over_links(seed) }
}

/// The same flows but for the first `own`, told as they come.
fn coming(config: &SimConfig, own: usize) -> SimConfig {
    let mut config = config.clone();
    let later = config.flows.split_off(own);
    SimConfig { coming: Some(Coming::new(move || later.clone().into_iter())), ..config }
}

fn run(config: &SimConfig) -> SimReport {
    let mut network = Network::new(config).unwrap();
    network.advance(Instant::ZERO + config.duration);
    network.into_report()
}

/// All that there is to tell of a run but how many events it took; the flows that began.
fn text(report: &SimReport, end: Instant) -> String {
    let flows: Vec<&FlowReport> = report.flows.iter().filter(|flow| flow.started <= end).collect();
    // Listed ones count before they begin.
    let groups: Vec<_> = report.groups.iter().map(|g| (&g.name, &g.owd, &g.e2ed, &g.opening)).collect();
    let SimReport { links, series, link_series, events, satellites, radios, engine, .. } = report;
    format!(
        "{flows:#?}{groups:#?}{links:#?}{series:#?}{link_series:#?}{events:#?}{satellites:#?}{radios:#?}{}",
        engine.packet_hops
    )
}

/// For a difference, where it is.
fn assert_same(a: &str, b: &str, what: &str) {
    let whole = a;
    if let Some((i, (a, b))) = a.lines().zip(b.lines()).enumerate().find(|(_, (a, b))| a != b) {
        let before: Vec<&str> = whole.lines().take(i).collect();
        let at = before[before.len().saturating_sub(40)..].join("\n");
        panic!("{what}: line {i}: `{a}` and `{b}`, behind\n{at}");
    }
    assert_eq!(a.len(), b.len(), "{what}");
}

#[test]
fn they_report_what_they_would_if_all_were_configured_before() {
    for seed in 0..6 {
        for (what, config) in
            [("links", over_links(seed)), ("satellite", over_satellite(seed)), ("radio", over_radio(seed))]
        {
            let end = Instant::ZERO + config.duration;
            let listed = run(&config);
            let received = listed.flows.iter().filter(|flow| flow.whole.received.packets.get() > 0).count();
            assert!(received > FLOWS / 5, "{what}, seed {seed}: {received} of {FLOWS}");
            for own in [0, 20] {
                let came = run(&coming(&config, own));
                assert_same(&text(&listed, end), &text(&came, end), &format!("{what}, seed {seed}, {own} before"));
            }
        }
    }
}

/// Also of a run that ends before its time, in the warm-up or behind it.
#[test]
fn a_report_in_between_is_that_of_flows_that_were_configured_before() {
    for seed in 0..4 {
        let config = over_links(seed);
        let mut networks = [Network::new(&config).unwrap(), Network::new(&coming(&config, 3)).unwrap()];
        for at in [1.5, 3.0, 4.0, 8.5, 19.25] {
            let now = Instant::from_secs_f64(at);
            let [listed, came] = networks.each_mut().map(|network| {
                network.advance(now);
                text(&network.report(), now)
            });
            assert_same(&listed, &came, &format!("seed {seed}, {at} s"));
        }
        let [listed, came] = networks.map(|network| text(&network.into_report(), Instant::from_secs_f64(19.25)));
        assert_same(&listed, &came, &format!("seed {seed}, cut short"));
    }
}

/// The numbers of the flows whose packets were seen.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<BTreeSet<FlowId>>>);

impl Observer for Seen {
    fn on_packet(&mut self, event: &PacketEvent) {
        self.0.lock().unwrap().insert(event.packet.flow);
    }
}

#[test]
fn observers_hear_of_flows_by_their_numbers_which_tell_them_apart() {
    let config = over_links(3);
    let [listed, came] = [config.clone(), coming(&config, 7)].map(|config| {
        let seen = Seen::default();
        let report = run_observed(config, Box::new(seen.clone())).unwrap();
        let sent = report.flows.iter().filter(|flow| flow.whole.sent.packets.get() > 0).count();
        let seen = std::mem::take(&mut *seen.0.lock().unwrap());
        assert_eq!(seen.len(), sent);
        seen
    });
    assert!(listed == came && listed.len() > FLOWS / 2);
    // And so do those who ask by name or number, as long as the flow goes on.
    let mut network = Network::new(&coming(&config, 7)).unwrap();
    network.advance(config.flows[40].start + Duration::from_nanos(1));
    let number = network.flow_id("flow40").unwrap();
    assert_eq!((number, network.flow_id("flow3"), network.flow_id("flow99")), (40, Some(3), None));
    assert!(network.counts(40).is_some() && network.counts(99).is_none());
}

/// Nothing arrives that would tell that they are over.
#[test]
fn flows_that_the_breaker_stops_are_over_then() {
    let env = Env { packet_size: Bytes::new(500), ..Env::default() };
    let flow = move |i: u32| FlowConfig {
        start: Instant::ZERO + Duration::from_secs(1) * i,
        group: "calls".to_owned(),
        protocol: Protocol::Media(MediaConfig {
            challenge: false,
            report_interval: Some(Duration::from_secs(1)),
            ..MediaConfig::new(
                ControllerSpec::named("tfrc", env),
                FlowParams { breaker: Some(BreakerParams::default()), ..FlowParams::new(&env) },
            )
        }),
        ..FlowConfig::new(format!("call{i}"), Protocol::External)
    };
    let config = SimConfig {
        duration: Duration::from_secs(90),
        hops: vec![HopConfig::path(link(10.0, 20, 50, 1.0), link(10.0, 20, 50, 0.0))],
        coming: Some(Coming::new(move || (0..10).map(flow))),
        ..SimConfig::default()
    };
    let mut network = Network::new(&config).unwrap();
    network.advance(Instant::ZERO + config.duration);
    let mut ended = network.take_ended();
    // The link tells of the last packets that it lost when somebody looks.
    network.report();
    ended.extend(network.take_ended());
    assert!(ended.len() == 10 && ended.iter().all(|(_, flow)| flow.stopped.is_some()), "{}", ended.len());
}

#[test]
fn there_may_be_no_end_of_them() {
    let seconds = |i: u32| Instant::ZERO + Duration::from_millis(500) * i;
    let flow = move |i| FlowConfig {
        start: seconds(i),
        group: "calls".to_owned(),
        ..FlowConfig::new(
            format!("call{i}"),
            Protocol::Tcp(TcpParams::default(), TcpSource::Transfer(Bytes::new(9_000))),
        )
    };
    let coming = Some(Coming::new(move || (0..).map(flow)));
    let report = run(&SimConfig { duration: Duration::from_secs(10), coming, ..SimConfig::default() });
    assert_eq!((report.flows.len(), report.groups[0].flows), (21, 21));
    // Over links that take no time.
    assert!(report.flows.iter().all(|flow| flow.finished == Some(flow.started)));
}

/// A report that is asked for in between has them too, and takes none away.
#[test]
fn reports_that_are_taken_as_flows_end_are_those_of_the_whole_run() {
    [over_links(2), over_links(5)].iter().for_each(take_as_they_end);
}

fn take_as_they_end(config: &SimConfig) {
    let end = Instant::ZERO + config.duration;
    let whole = run(&coming(config, 5));
    let mut network = Network::new(&coming(config, 5)).unwrap();
    let (mut taken, mut most): (Vec<(FlowId, FlowReport)>, _) = (Vec::new(), 0);
    for half in 1..=48 {
        network.advance(Instant::ZERO + Duration::from_millis(500) * half);
        let so_far = network.report();
        let over = network.take_ended();
        assert_eq!(so_far.flows.len(), network.report().flows.len() + over.len());
        most = most.max(over.len());
        taken.extend(over);
    }
    assert!(most < 40 && taken.len() > FLOWS / 2, "{most} of {} at a time", taken.len());
    let rest = network.into_report();
    let mut all: Vec<FlowReport> = rest.flows.clone();
    all.extend(taken.into_iter().map(|(number, flow)| {
        assert_eq!(flow.name, format!("flow{number}"));
        flow
    }));
    all.sort_by_key(|flow| flow.name[4..].parse::<u32>().unwrap());
    let together = SimReport { flows: all, ..rest };
    assert_same(&text(&whole, end), &text(&together, end), "taken");
}

#[test]
fn what_is_wrong_with_any_of_them_is_told_before_the_run() {
    let good = over_links(1);
    let error = |change: fn(&mut FlowConfig)| {
        let mut config = good.clone();
        change(&mut config.flows[200]);
        Network::new(&coming(&config, 0)).err().expect("it is wrong").to_string()
    };
    let says = |change, parts: &[&str]| {
        let text = error(change);
        for part in parts.iter().chain(&["flow200"]) {
            assert!(text.contains(part), "{part}: {text}");
        }
    };
    says(|f| f.start = Instant::ZERO, &["start", "in the order"]);
    says(|f| f.stop = Some(f.start), &["stop", "after `start`"]);
    says(|f| f.start_spread = Duration::from_secs(1), &["start_spread"]);
    says(|f| f.access = Access { back_out: Some(LinkSpec::default()), ..Access::default() }, &["access", "a hop"]);
    says(|f| f.protocol = Protocol::External, &["protocol", "`flows`"]);
    says(|f| f.ack_size = Bytes::ZERO, &["ack_size", "1 to 65535"]);
    says(|f| f.route = vec![RouteHop::links(7)], &["route", "7"]);
    let with = |scheme| {
        let env = Env::default();
        Protocol::Media(MediaConfig::new(ControllerSpec::named(scheme, env), FlowParams::new(&env)))
    };
    let mut config = good.clone();
    config.flows[200].protocol = with("no-such");
    assert!(Network::new(&coming(&config, 0)).err().unwrap().to_string().contains("no-such"));
    config.flows[200].protocol = with("aimd");
    assert!(Network::new(&coming(&config, 0)).err().unwrap().to_string().contains("windows are planned"));
    config.flows[200].protocol = with("tfrc");
    if let Protocol::Media(media) = &mut config.flows[200].protocol {
        media.flow.quick_start = Some(QuickStartParams::new(Rate::mbps(1.0), 1).unwrap());
    }
    assert!(Network::new(&coming(&config, 0)).err().unwrap().to_string().contains("by source"));
    config.flows.clear();
    assert!(Network::new(&coming(&config, 0)).err().unwrap().to_string().contains("at least one flow"));
}
