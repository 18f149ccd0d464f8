//! Flows behind a base station: exact arrival times, the delay outage of [aimd §III-C], windows that are planned anew,
//! nothing lost uncounted, what cannot be is refused.

use std::sync::{Arc, Mutex};

use fairpace_control::{Env, FlowParams, Safety, StopReason};
use fairpace_path::{
    ArqScheme, ArqSpec, ArqUser, Capacity, Channel, DamaSpec, DelayModel, DropReason, LinkSpec, RateModel,
};
use fairpace_sim::tcp::{TcpParams, TcpSource};
use fairpace_sim::{
    Access, BaseStation, BaseStationSpec, Body, ConstantConfig, ControllerSpec, Direction, Entering, FlowConfig,
    HopConfig, MOST_USERS_NOTED, MOST_WINDOWS_NOTED, MediaConfig, Member, Network, Observer, PacketEvent, PacketFate,
    Protocol, RadioConfig, ReceiverBehaviour, RouteHop, SimConfig, SimReport, Source, run, run_observed,
};
use fairpace_units::{Bytes, Class, Duration, Instant, Packets, Rate};

/// τ, in seconds.
const TAU: f64 = 0.005;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn at(seconds: f64) -> Instant {
    Instant::from_secs_f64(seconds)
}

fn packets(n: u64) -> Capacity {
    Capacity::Packets(Packets::new(n))
}

/// The link of [aimd §IV] without memory: a packet of 125 bytes per slot of 5 ms, for each of `buffers` users.
fn downlink(p_e: f64, buffers: &[u64]) -> ArqSpec {
    let channel = Channel::memoryless(p_e).unwrap();
    let user = |n: &u64| ArqUser { weight: 1, buffer: packets(*n), channel: channel.clone() };
    ArqSpec { users: buffers.iter().map(user).collect(), ..ArqSpec::downlink(channel.clone(), Capacity::Unlimited) }
}

fn wire(delay: Duration) -> LinkSpec {
    LinkSpec { delay: DelayModel::constant(delay), ..LinkSpec::default() }
}

/// 100 kbit/s [aimd §IV]: an acknowledgement of 40 bytes takes 3.2 ms.
fn uplink() -> LinkSpec {
    LinkSpec { rate: RateModel::Fixed(Rate::kbps(100.0)), ..LinkSpec::default() }
}

/// R = 17 slots of 5 ms [aimd §IV]: 35 ms there, the slot, 3.2 ms of uplink and 41.8 ms back.
fn topology(downlink: ArqSpec, flows: Vec<FlowConfig>) -> SimConfig {
    SimConfig {
        hops: vec![
            HopConfig::path(wire(ms(35)), wire(Duration::from_micros(41_800))),
            HopConfig::radio(RadioConfig { downlink, uplink: Some(uplink()), base_station: None }),
        ],

        flows,
        ..SimConfig::default()
    }
}

fn env() -> Env {
    Env { packet_size: Bytes::new(125), safety: Safety::Paper, ..Env::default() }
}

fn aimd(rwnd: &str) -> MediaConfig {
    MediaConfig::new(ControllerSpec::named("aimd", env()).with("rwnd", rwnd), FlowParams::new(&env()))
}

fn over(user: u32, name: &str, protocol: Protocol) -> FlowConfig {
    FlowConfig {
        route: vec![RouteHop::links(0), RouteHop::user(1, user)],
        packet_size: Bytes::new(125),
        ..FlowConfig::new(name, protocol)
    }
}

fn constant(rate: Rate) -> Protocol {
    Protocol::Constant(ConstantConfig { rate, class: Class::Normal, on_off: None, quick_start: None })
}

fn radio(config: &mut SimConfig) -> &mut RadioConfig {
    match config.hops.last_mut() {
        Some(HopConfig::Radio { radio, .. }) => radio,
        other => panic!("{other:?}"),
    }
}

type Seen = Arc<Mutex<Vec<PacketEvent>>>;

struct Recorder(Seen);

impl Observer for Recorder {
    fn on_packet(&mut self, event: &PacketEvent) {
        self.0.lock().unwrap().push(*event);
    }
}

/// Runs it, and what became of its packets.
fn watched(config: SimConfig) -> (SimReport, Vec<PacketEvent>) {
    let seen = Seen::default();
    let report = run_observed(config, Box::new(Recorder(seen.clone()))).unwrap();
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    (report, seen)
}

/// When, in milliseconds, what arrived on that side.
fn arrivals(seen: &[PacketEvent], side: Direction) -> Vec<f64> {
    let here = |e: &&PacketEvent| e.fate == PacketFate::Received && e.packet.direction == side;
    seen.iter().filter(here).map(|e| e.at.as_secs_f64() * 1e3).collect()
}

#[test]
fn a_packet_leaves_at_the_end_of_its_slot_and_its_feedback_takes_the_uplink() {
    // The question leaves at 0, is at the base station at 35 ms when slot 7 begins, at the receiver at 40, and its
    // answer, 3.2 ms of uplink and 41.8 ms later, at the sender at 85. Then two packets, the initial window: they are at
    // the base station at 120 and have slots 24 and 25. Their acknowledgements are back at 170 and 175.
    let flow = over(0, "aimd", Protocol::Media(aimd("2")));
    let (report, seen) = watched(SimConfig { duration: ms(180), ..topology(downlink(0.0, &[2]), vec![flow]) });
    assert_eq!(arrivals(&seen, Direction::Forward), [40.0, 125.0, 130.0]);
    assert_eq!(arrivals(&seen, Direction::Back), [85.0, 170.0, 175.0]);
    let radio = &report.radios[0];
    assert_eq!((radio.users[0].uplink, report.links[2].name.as_str()), (2, "radio.user0.uplink"));
    assert_eq!((radio.users[0].whole.used, radio.users[0].whole.idle), (3, 33));
    assert_eq!(report.links[2].whole.transmitted.packets.get(), 3);

    // One that begins 1 ms after a slot waits for the next, and one of 300 bytes takes three slots; both are sent
    // every 100 ms, in dedicated slots every other of which is the other user's.
    let first = FlowConfig { start: at(0.001), ..over(0, "first", constant(Rate::kbps(10.0))) };
    let large = FlowConfig { packet_size: Bytes::new(300), ..over(1, "large", constant(Rate::kbps(24.0))) };
    let spec = ArqSpec { work_conserving: false, ..downlink(0.0, &[5, 5]) };
    let (report, seen) = watched(SimConfig { duration: ms(190), ..topology(spec, vec![first, large]) });
    // At 36 ms: slot 8, 40 to 45 ms, is user 0's. At 35 ms: slots 7, 9 and 11 are user 1's.
    assert_eq!(arrivals(&seen, Direction::Forward), [45.0, 60.0, 145.0, 160.0]);
    assert_eq!(report.radios[0].users.iter().map(|u| u.whole.used).collect::<Vec<_>>(), [2, 6]);
}

#[test]
fn without_an_uplink_feedback_is_there_at_once_and_a_satellite_may_come_before_the_radio() {
    let mut config = topology(downlink(0.0, &[2]), vec![over(0, "aimd", Protocol::Media(aimd("2")))]);
    radio(&mut config).uplink = None;
    let (_, seen) = watched(SimConfig { duration: ms(100), ..config });
    assert_eq!(arrivals(&seen, Direction::Back), [81.8]);

    // Over terminals 0 and 1 of a satellite, then the radio; feedback passes the base station, then the satellite. The
    // question has slot 0 (1.899 ms) and 252 ms, the downlink's slot from 255 ms, and 3.2 ms of uplink; at rest
    // terminal 1 has slot 1 of each multi-frame of 144, which lasts 273.4545... ms.
    let route = vec![RouteHop::terminals(1, [0, 1]), RouteHop::user(2, 0)];
    let flow = FlowConfig { route, ..over(0, "aimd", Protocol::Media(aimd("none"))) };
    let (mut config, _) = planned(downlink(0.0, &[1]), vec![flow]);
    config.hops.insert(1, HopConfig::satellite(DamaSpec::large()));
    let (report, seen) = watched(SimConfig { duration: Duration::from_secs(20), ..config });
    assert_eq!(arrivals(&seen, Direction::Forward)[0], 260.0);
    let back = seen.iter().find(|e| e.fate == PacketFate::Received && e.packet.direction == Direction::Back).unwrap();
    assert!(matches!(back.packet.body, Body::Challenge { rwnd: Some(20), .. }), "{:?}", back.packet.body);
    let slot = 1_504.0 * 8.0 / 6_336.0;
    let answered = 144.0 * slot + 2.0 * slot + 252.0;
    assert!((back.at.as_secs_f64() * 1e3 - answered).abs() < 1e-3, "{} {answered}", back.at);
    // 20 packets per RTT of 0.55 s and more.
    let f = &report.flows[0];
    assert!((300..700).contains(&f.whole.received.packets.get()), "{:?}", f.whole.received);
}

/// Pr{fewer than w successes in n slots}, memoryless: what eq. (3) of [aimd §III-C] is then.
fn outage(n: u32, w: u32, p_e: f64) -> f64 {
    let choose = |k: u32| (0..k).map(|i| f64::from(n - i) / f64::from(k - i)).product::<f64>();
    (0..w).map(|x| choose(x) * (1.0 - p_e).powi(x as i32) * p_e.powi((n - x) as i32)).sum()
}

/// One AIMD flow with D = 50 ms = 10 slots, for 1,000 s.
fn alone(p_e: f64, rwnd: u32) -> SimReport {
    let mut config = topology(downlink(p_e, &[u64::from(rwnd)]), vec![]);
    let mut flow = over(0, "aimd", Protocol::Media(aimd(&rwnd.to_string())));
    flow.delay_bound = Some(config.delay_bound(&flow, ms(50)));
    config.flows.push(flow);
    run(SimConfig { duration: Duration::from_secs(1_005), warmup: Duration::from_secs(5), ..config }).unwrap()
}

#[test]
fn the_delay_outage_is_that_of_equation_3_and_the_link_is_never_idle() {
    // 200,000 slots. Outages come in clusters, as a lack of successes lasts a few slots: with 10 of them per cluster
    // the standard deviation is sqrt(10 Pr / 180,000). Four of these, and the seed is fixed.
    for (p_e, rwnd) in [(0.1, 20), (0.1, 21), (0.1, 22), (0.02, 25)] {
        let report = alone(p_e, rwnd);
        let f = &report.flows[0];
        let expected = outage(27, rwnd, p_e);
        let allowed = 4.0 * (10.0 * expected / 180_000.0).sqrt();
        let received = f.measured.received.packets.as_f64();
        let by_owd = f.measured.outage.packets.as_f64() / received;
        let by_rtt = f.measured.rtt_outage as f64 / f.measured.rtt_samples as f64;
        for found in [by_owd, by_rtt] {
            assert!((found - expected).abs() < allowed, "p_e {p_e}, rwnd {rwnd}: {found:.5}, {expected:.5}");
        }
        // (1 - p_e) packets per slot; the standard deviation is sqrt(p_e (1 - p_e) / 200,000) = 0.0007.
        assert!((f.throughput_pps() * TAU - (1.0 - p_e)).abs() < 0.003, "{}", f.throughput_pps());
        assert_eq!(f.whole.dropped_in_all().packets.get(), 0, "a buffer of rwnd is enough");
        let user = report.radios[0].users[0].measured;
        assert_eq!((user.used, user.idle, user.link.max_queue.get() <= u64::from(rwnd)), (200_000, 0, true));
        assert!(report.engine.events_per_packet_hop() < 1.1, "{}", report.engine.events_per_packet_hop());
    }
}

#[test]
fn flows_share_a_downlink_by_their_windows_and_by_equation_4_if_their_rtts_differ() {
    // With equal RTTs shares are as the windows. With 17 and 25 slots equal shares need rwnd_2 - rwnd_1 =
    // (E[T_24] - E[T_16]) / 2 = 3.6 [aimd §III-C eq. (4)]: 4 is too much for the far one, 3 too little.
    let share_of_first = |extra_slots: u64, windows: [u32; 2]| {
        let far = Access { back_out: Some(wire(ms(5 * extra_slots))), ..Access::default() };
        let flows = [("near", windows[0], Access::default()), ("far", windows[1], far)].map(|(name, rwnd, access)| {
            FlowConfig { access, ..over(0, name, Protocol::Media(aimd(&rwnd.to_string()))) }
        });
        let config = topology(downlink(0.1, &[u64::from(windows[0] + windows[1])]), flows.to_vec());
        let report = run(SimConfig { duration: Duration::from_secs(205), warmup: Duration::from_secs(5), ..config });
        let [near, far] = [0, 1].map(|i| report.as_ref().unwrap().flows[i].throughput_pps() * TAU);
        // 36,000 packets of 40,000 slots: a standard deviation of 0.0015.
        assert!((near + far - 0.9).abs() < 0.006, "{near} + {far}");
        near / (near + far)
    };
    for (windows, expected) in [([11, 11], 0.5), ([10, 12], 10.0 / 22.0), ([5, 20], 0.2)] {
        let found = share_of_first(0, windows);
        assert!((found - expected).abs() < 0.002, "{windows:?}: {found}");
    }
    // Half a packet of 24 is 2 %: the shares are 0.4 and 0.6 of that away from one half.
    let (less, more) = (share_of_first(8, [10, 14]), share_of_first(8, [10, 13]));
    assert!((0.48..0.499).contains(&less) && (0.501..0.52).contains(&more), "{less}, {more}");
}

#[test]
fn a_window_below_r_leaves_slots_idle_and_a_perfect_channel_carries_w_packets_per_r_slots() {
    for (rwnd, expected) in [(10, 10.0 / 17.0), (16, 16.0 / 17.0), (17, 1.0), (25, 1.0)] {
        let report = alone(0.0, rwnd);
        let f = &report.flows[0];
        assert!((f.throughput_pps() * TAU - expected).abs() < 1e-3, "rwnd {rwnd}: {}", f.throughput_pps());
        // The queue holds W - R, so jitter is that many slots.
        let jitter = f.owd.max().saturating_sub(ms(40)).as_millis() as u64 / 5;
        assert_eq!(jitter, u64::from(rwnd.saturating_sub(17)), "rwnd {rwnd}");
        assert_eq!(f.measured.outage.packets.get(), 0);
    }
}

#[test]
fn the_least_delays_are_those_of_the_first_packet_on_an_empty_path() {
    let link = |kbps: f64, delay| LinkSpec { rate: RateModel::Fixed(Rate::kbps(kbps)), ..wire(delay) };
    let access =
        Access { forward_in: Some(link(3_000.0, ms(1))), back_out: Some(link(64.0, ms(4))), ..Access::default() };
    let spec = ArqSpec { delay: ms(2), ..downlink(0.0, &[10]) };
    let flow = FlowConfig { access, packet_size: Bytes::new(250), ..over(0, "media", Protocol::Media(aimd("1"))) };
    let mut config = topology(spec, vec![flow.clone()]);
    if let HopConfig::Links { forward, .. } = &mut config.hops[0] {
        *forward = link(7_000.0, ms(30));
    }
    // 1 ms and 250 B at 3 Mbit/s, 30 ms and the same at 7, two slots and 2 ms; links round up to nanoseconds.
    let owd = Duration::from_nanos(1_000_000 + 666_667 + 30_000_000 + 285_715 + 10_000_000 + 2_000_000);
    assert_eq!(config.min_owd(&flow), owd);
    // 3.2 ms, 41.8 ms, 4 ms and 40 B at 64 kbit/s.
    assert_eq!(config.min_rtt(&flow), owd + Duration::from_millis(3 + 42 + 4 + 5));
    // 97.952382 ms: 20 slots, so every packet that feedback releases waits 2.047618 ms for its slot.
    assert_eq!(config.delay_bound(&flow, ms(50)), owd + Duration::from_nanos(2_047_618) + ms(50));
    let report = run(SimConfig { duration: Duration::from_secs(20), warmup: ms(500), ..config.clone() }).unwrap();
    let f = &report.flows[0];
    assert_eq!(f.owd.max(), config.delay_bound(&flow, Duration::ZERO), "one packet every 100 ms, in the first slot");
    assert_eq!(f.measured.received.packets.get(), 195);

    // Uncontrolled traffic that begins with the slots has the least delay, and not a nanosecond more or less.
    let outages = |bound| {
        let flow = FlowConfig { delay_bound: Some(bound), ..over(0, "udp", constant(Rate::kbps(10.0))) };
        let config = SimConfig { duration: ms(950), ..topology(downlink(0.0, &[10]), vec![flow]) };
        run(config).unwrap().flows[0].whole.outage.packets.get()
    };
    assert_eq!((outages(ms(40)), outages(ms(40) - Duration::from_nanos(1))), (0, 10));
}

/// The questions to a base station, with their instants.
type Asked = Arc<Mutex<Vec<(Instant, Vec<Member>)>>>;

/// Shares 20 packets equally between all.
struct Equal(Asked);

impl BaseStation for Equal {
    fn plan(&mut self, now: Instant, members: &[Member]) -> Vec<u32> {
        self.0.lock().unwrap().push((now, members.to_vec()));
        members.iter().map(|_| 20 / members.len() as u32).collect()
    }
}

fn planned(downlink: ArqSpec, flows: Vec<FlowConfig>) -> (SimConfig, Asked) {
    let asked = Asked::default();
    let mut config = topology(downlink, flows);
    let theirs = asked.clone();
    if let HopConfig::Radio { radio, .. } = &mut config.hops[1] {
        radio.base_station = Some(BaseStationSpec::new(move || Box::new(Equal(theirs.clone()))));
    }
    (config, asked)
}

#[test]
fn the_base_station_plans_when_flows_come_and_go_and_feedback_carries_its_windows() {
    let far = Access { back_out: Some(wire(ms(40))), ..Access::default() };
    let flows = vec![
        over(0, "stays", Protocol::Media(aimd("none"))),
        FlowConfig {
            start: at(10.0),
            stop: Some(at(20.0)),
            share: 2.0,
            access: far,
            ..over(0, "comes", Protocol::Media(aimd("none")))
        },
        // These are no members: nobody can tell them.
        over(1, "udp", constant(Rate::kbps(50.0))),
        over(1, "tcp", Protocol::Tcp(TcpParams::default(), TcpSource::Transfer(Bytes::new(10_000)))),
        FlowConfig { start: at(5.0), stop: Some(at(4.0)), ..over(1, "never", Protocol::Media(aimd("none"))) },
    ];
    let (mut config, asked) = planned(downlink(0.0, &[1, 30]), flows);
    config.duration = Duration::from_secs(30);
    config.sample = Some(ms(1_000));
    let (report, seen) = watched(config);
    let member = |flow, min_rtt, share| Member { flow, user: 0, min_rtt: ms(min_rtt), share };
    let (stays, comes) = (member(0, 85, 1.0), member(1, 125, 2.0));
    let expected = [(at(0.0), vec![stays]), (at(10.0), vec![stays, comes]), (at(20.0), vec![stays])];
    assert_eq!(*asked.lock().unwrap(), expected);
    let windows: Vec<_> = report.radios[0].windows.iter().map(|w| (w.at, w.flow, w.rwnd)).collect();
    assert_eq!(windows, [(at(0.0), 0, 20), (at(10.0), 0, 10), (at(10.0), 1, 10), (at(20.0), 0, 20)]);

    // Feedback that left the uplink at 10 s or later, 41.8 ms before it arrived, has the new window; the answer to
    // the challenge has the first.
    let mut told = 0;
    for e in seen.iter().filter(|e| (e.packet.flow, e.fate) == (0, PacketFate::Received)) {
        if let Body::SackVector { rwnd, .. } | Body::Challenge { rwnd, .. } = e.packet.body
            && e.packet.direction == Direction::Back
        {
            let passed = e.at.since(Instant::from_nanos(41_800_000)).as_secs_f64();
            assert_eq!(rwnd, Some(if (10.0..20.0).contains(&passed) { 10 } else { 20 }), "at {}", e.at);
            told += 1;
        }
    }
    assert!(told > 3_000, "{told}");
    // At the sender a moment later: cwnd stops at rwnd.
    let row = |second: u64| {
        report.series.iter().find(|r| r.flow == 0 && r.at == Instant::ZERO + Duration::from_secs(second)).unwrap()
    };
    for (second, rwnd) in [(5, 20), (9, 20), (11, 10), (19, 10), (25, 20)] {
        assert_eq!((row(second).rwnd, row(second).cwnd), (Some(rwnd), f64::from(rwnd)), "at {second} s");
    }
    // The buffer of one packet that was configured became 20.
    for f in &report.flows[..2] {
        assert_eq!(f.whole.dropped_in_all().packets.get(), 0, "{}", f.name);
    }
}

#[test]
fn packets_from_outside_come_out_with_the_window_that_the_base_station_has_for_their_flow() {
    let outside = ["a", "b"].map(|name| over(0, name, Protocol::External));
    let (config, asked) = planned(downlink(0.0, &[30]), outside.to_vec());
    let mut network = Network::new(&config).unwrap();
    let feedback = |network: &mut Network, flow| {
        let (at, size) = (network.now() + ms(10), Bytes::new(64));
        assert!(network.inject(at, Entering::new(flow, Direction::Back, size, 7)));
        network.advance(at + ms(200));
        network.take_delivered().unwrap().rwnd
    };
    assert_eq!(feedback(&mut network, 0), None, "nobody has come");
    let now = network.now();
    assert!(network.join(now, 0) && !network.join(now, 0) && !network.join(now, 9));
    assert_eq!((feedback(&mut network, 0), feedback(&mut network, 1)), (Some(20), None));
    let later = network.now() + ms(5);
    assert!(network.join(later, 1));
    assert_eq!((feedback(&mut network, 0), feedback(&mut network, 1)), (Some(10), Some(10)));
    let rows: Vec<_> = network.windows().iter().map(|w| (w.flow, w.rwnd, w.promise.is_ok())).collect();
    assert_eq!(rows, [(0, Some(10), false), (1, Some(10), false)]);
    // Data has none, which its receiver has no use for.
    network.inject(later + ms(500), Entering::new(0, Direction::Forward, Bytes::new(125), 8));
    network.advance(later + ms(900));
    assert_eq!(network.take_delivered().unwrap().rwnd, None);
    let now = network.now();
    assert!(network.leave(now, 0) && !network.leave(now, 0));
    assert_eq!(feedback(&mut network, 1), Some(20));
    assert_eq!(asked.lock().unwrap().len(), 3, "each change is planned once");
}

#[test]
fn flows_that_come_and_go_without_end_fill_no_memory_with_their_windows() {
    let outside = ["a", "b"].map(|name| over(0, name, Protocol::External));
    let (config, _) = planned(downlink(0.0, &[30]), outside.to_vec());
    let mut network = Network::new(&config).unwrap();
    assert!(network.join(Instant::ZERO, 0));
    // Each coming and going changes the window of who stays twice.
    for n in 1..=MOST_WINDOWS_NOTED as u64 / 2 + 10 {
        let now = Instant::ZERO + ms(n);
        assert!(network.join(now, 1) && network.leave(now, 1));
    }
    let report = network.into_report();
    assert_eq!(report.radios[0].windows.len(), MOST_WINDOWS_NOTED);
}

#[test]
fn a_users_buffer_is_the_sum_of_its_members_windows() {
    // Beside two members with 10 each, twice what the link carries: the queue fills to the last place.
    let mut flows = vec![over(0, "udp", constant(Rate::kbps(400.0)))];
    flows.extend(["a", "b"].map(|name| over(0, name, Protocol::Media(aimd("none")))));
    let (mut config, _) = planned(downlink(0.1, &[100]), flows);
    (config.duration, config.warmup) = (Duration::from_secs(20), Duration::from_secs(5));
    let report = run(config).unwrap();
    let user = &report.radios[0].users[0];
    assert_eq!((user.measured.link.max_queue.get(), user.whole.link.max_queue.get() > 20), (20, false));
    assert!(report.flows[0].measured.dropped(DropReason::QueueFull).packets.get() > 1_000);
}

/// Every kind of flow over three users.
fn everything(seed: u64) -> SimConfig {
    let tcp = |source| Protocol::Tcp(TcpParams::default(), source);
    let mut spec = downlink(0.2, &[30, 5, 10]);
    spec.users[1].weight = 2;
    spec.users[2].channel = Channel::two_state(0.1, 0.35).unwrap();
    spec.scheme = ArqScheme::Limited { retries: 2 };
    let flows = vec![
        over(0, "aimd", Protocol::Media(aimd("none"))),
        FlowConfig { start: at(3.0), stop: Some(at(15.0)), ..over(0, "comes", Protocol::Media(aimd("none"))) },
        over(1, "udp", constant(Rate::kbps(200.0))),
        FlowConfig { packet_size: Bytes::new(576), ..over(2, "tcp", tcp(TcpSource::Ftp)) },
        over(2, "short", tcp(TcpSource::Transfer(Bytes::new(50_000)))),
        over(2, "rap", {
            let controller = ControllerSpec::named("rap", env());
            Protocol::Media(MediaConfig {
                source: Source::Constant(Rate::kbps(40.0)),
                ..MediaConfig::new(controller, FlowParams::new(&env()))
            })
        }),
        FlowConfig::new("beside", constant(Rate::kbps(100.0))),
    ];
    let (config, _) = planned(spec, flows);
    SimConfig {
        seed,
        duration: Duration::from_secs(25),
        warmup: Duration::from_secs(5),
        sample: Some(ms(500)),
        trace: true,
        pcap: true,
        ..config
    }
}

#[test]
fn every_packet_is_received_dropped_or_still_inside() {
    let report = run(everything(1)).unwrap();
    let radio = &report.radios[0];
    let mut inside = report.links.iter().map(|l| l.inside).sum::<u64>();
    for u in &radio.users {
        let all = u.whole.link.total();
        let out = all.delivered.packets + all.dropped_in_all().packets;
        assert_eq!(all.offered.packets.get(), out.get() + u.inside, "user {}", u.user);
        assert!(all.delivered.packets.get() > 100, "{u:?}");
        let slots = u.whole.used + u.whole.silent + u.whole.waiting + u.whole.idle;
        assert_eq!(slots, 5_000, "each slot of each user is one of four");
        inside += u.inside;
    }
    let (mut sent, mut ended) = (0, 0);
    for f in &report.flows {
        let c = &f.whole;
        sent += (c.sent.packets + c.feedback_sent.packets).get();
        ended += (c.received.packets + c.feedback_received.packets).get();
        ended += (c.dropped_in_all().packets + c.feedback_dropped.packets).get();
        assert!(c.received.packets.get() > 20, "{} got through: {c:?}", f.name);
    }
    assert_eq!(sent, ended + inside);
    assert!(report.flows[2].whole.dropped(DropReason::QueueFull).packets.get() > 100);
    // 0.2 to the third of the packets of one slot is given up.
    let given_up: u64 = report.flows.iter().map(|f| f.whole.dropped(DropReason::LinkError).packets.get()).sum();
    assert!(given_up > 20, "{given_up}");
    let text = String::from_utf8_lossy(report.pcapng.as_ref().unwrap()).into_owned();
    assert!(text.contains("queue_full at user 1") && text.contains("link_error at user 2"));
}

#[test]
fn samples_and_slots_say_what_the_counters_say() {
    let radio = run(everything(1)).unwrap().radios.remove(0);
    assert_eq!(radio.series.len(), 50 * 3);
    for u in &radio.users {
        let rows = || radio.series.iter().filter(|r| r.user == u.user);
        let bytes: f64 = rows().map(|r| r.throughput.as_bps() * 0.5 / 8.0).sum();
        assert!((bytes - u.whole.link.transmitted.bytes.as_f64()).abs() < 1.0, "user {}", u.user);
        assert_eq!(rows().map(|r| r.used).sum::<u64>(), u.whole.used);
        assert_eq!(rows().map(|r| r.failed).sum::<u64>(), u.whole.failed);
        let dropped = u.whole.link.total().dropped_in_all().packets.get();
        assert_eq!(rows().map(|r| r.drops).sum::<u64>(), dropped);
        assert_eq!(radio.slots.iter().filter(|s| s.user == u.user).count() as u64, u.whole.used);
    }
    assert_eq!(radio.slots_left_out, 0);
    assert!(radio.slots.is_sorted_by_key(|s| s.slot));
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
fn hundreds_of_short_flows_join_and_leave_and_the_last_leaves_nobody() {
    // Ten at a time over 70 users, each for 2 s.
    let flows = (0..300u32).map(|i| FlowConfig {
        start: Instant::ZERO + ms(200) * i,
        stop: Some(Instant::ZERO + ms(200) * (i + 10)),
        group: "short".to_owned(),
        ..over(i % 70, &format!("short-{i}"), Protocol::Media(aimd("none")))
    });
    let (mut config, asked) = planned(downlink(0.05, &[10; 70]), flows.collect());
    config.duration = Duration::from_secs(64);
    config.sample = Some(Duration::from_secs(1));
    let report = run(config).unwrap();
    let asked = asked.lock().unwrap();
    let sizes: Vec<usize> = asked.iter().map(|(_, members)| members.len()).collect();
    assert_eq!((sizes.len(), sizes.iter().max(), sizes.last()), (600, Some(&10), Some(&0)));
    assert!(report.flows.iter().all(|f| f.whole.received.packets.get() > 10));
    let radio = &report.radios[0];
    assert_eq!((radio.users.len(), radio.series.len()), (70, 64 * MOST_USERS_NOTED as usize));
    assert!(radio.slots.is_empty(), "not traced");
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    let error = |config: SimConfig| match run(config) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("it ran"),
    };
    let one = |flow| topology(downlink(0.1, &[5, 5]), vec![flow]);
    let udp = |user| over(user, "udp", constant(Rate::kbps(10.0)));
    let mut none = one(udp(0));
    none.hops.truncate(1);
    assert_eq!(error(none), "flow `udp`: `route` has hop 1; there are 1 hops, numbered from 0");
    assert_eq!(error(one(udp(2))), "flow `udp`: `route` has port 2 of `radio`; that has 2 ports, numbered from 0");
    let two_users = FlowConfig { route: vec![RouteHop { hop: 1, ports: [0, 1] }], ..udp(0) };
    let message = "flow `udp`: `route` has users [0, 1] of `radio`; its receiver is one user, twice the same number";
    assert_eq!(error(one(two_users)), message);
    let twice = FlowConfig { route: vec![RouteHop::links(0), RouteHop::user(1, 0), RouteHop::links(0)], ..udp(0) };
    assert_eq!(
        error(one(twice)),
        "flow `udp`: `route` has `bottleneck` twice; a packet passes each hop once at the most"
    );
    for share in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let message = error(one(FlowConfig { share, ..udp(0) }));
        assert!(message.contains("flow `udp`: share") && message.contains("above zero"), "{message}");
    }
    let message = error(topology(downlink(0.1, &[5, 0]), vec![udp(0)]));
    assert!(message.starts_with("radio.downlink: `users[1].buffer` is 0"), "{message}");
    let mut slow = one(udp(0));
    radio(&mut slow).uplink = Some(LinkSpec { rate: RateModel::Fixed(Rate::ZERO), ..LinkSpec::default() });
    assert!(error(slow).starts_with("radio.user0.uplink: `rate` is 0"));
}

#[test]
fn a_receiver_that_claims_what_it_never_got_is_believed_only_if_nobody_asks_for_proof() {
    // Without ARQ one packet in ten is lost, and the liar hides it.
    let lying = |check_nonces| {
        let liar = MediaConfig { receiver: ReceiverBehaviour::HideLosses { share: 1.0 }, check_nonces, ..aimd("none") };
        let spec = ArqSpec { scheme: ArqScheme::None, ..downlink(0.1, &[20]) };
        let (config, asked) = planned(spec, vec![over(0, "liar", Protocol::Media(liar))]);
        let flow = run(SimConfig { duration: Duration::from_secs(60), ..config }).unwrap().flows.remove(0);
        let plans = asked.lock().unwrap().iter().map(|(_, members)| members.len()).collect::<Vec<_>>();
        (flow, plans)
    };
    let (believed, plans) = lying(false);
    assert_eq!(believed.media.as_ref().unwrap().counters.data.lost, 0);
    assert!(believed.throughput_pps() > 150.0, "{}", believed.throughput_pps());
    assert_eq!(plans, [1]);
    let (asked, plans) = lying(true);
    assert_eq!(asked.stopped, Some(StopReason::PeerLied));
    assert!(asked.media.unwrap().feedback_unproven >= 3);
    assert_eq!(plans, [1, 0], "who is stopped is a member no more");
}
