//! Paths of several hops: the order of hops, a parking lot, two satellites, a medium from outside, and nothing lost
//! uncounted on any of them.

use std::sync::{Arc, Mutex};

use fairpace_path::{
    ArqSpec, Capacity, Channel, CustomMedium, DamaSpec, DelayModel, DropReason, LinkSpec, QueueModel, RateModel, Wire,
};
use fairpace_sim::tcp::{TcpParams, TcpSource};
use fairpace_sim::{
    ConstantConfig, CustomSpec, Direction, FlowConfig, HopConfig, Observer, PacketEvent, PacketFate, Protocol,
    RadioConfig, RouteHop, SimConfig, SimReport, run, run_observed,
};
use fairpace_units::{Bytes, Class, Duration, Instant, Packets, Rate};

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn link(mbps: f64, delay: Duration, queue: u64) -> LinkSpec {
    LinkSpec {
        rate: RateModel::Fixed(Rate::mbps(mbps)),
        delay: DelayModel::constant(delay),
        queue: QueueModel::DropTail { capacity: Capacity::Packets(Packets::new(queue)) },
        ..LinkSpec::default()
    }
}

fn wire(delay: Duration) -> LinkSpec {
    LinkSpec { delay: DelayModel::constant(delay), ..LinkSpec::default() }
}

fn constant(rate: Rate) -> Protocol {
    Protocol::Constant(ConstantConfig { rate, class: Class::Normal, on_off: None, quick_start: None })
}

fn tcp() -> Protocol {
    Protocol::Tcp(TcpParams::default(), TcpSource::Ftp)
}

struct Arrivals(Arc<Mutex<Vec<Instant>>>);

impl Observer for Arrivals {
    fn on_packet(&mut self, event: &PacketEvent) {
        if event.fate == PacketFate::Received && event.packet.direction == Direction::Forward {
            self.0.lock().unwrap().push(event.at);
        }
    }
}

/// When data arrived.
fn arrivals(config: SimConfig) -> (SimReport, Vec<Instant>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let report = run_observed(config, Box::new(Arrivals(seen.clone()))).unwrap();
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    (report, seen)
}

/// Of a 125-byte packet every 100 ms from 0 on.
fn slow(route: Vec<RouteHop>) -> FlowConfig {
    FlowConfig { route, packet_size: Bytes::new(125), ..FlowConfig::new("slow", constant(Rate::kbps(10.0))) }
}

/// Slots of 5 ms, 125 bytes each, without errors.
fn radio() -> RadioConfig {
    let downlink = ArqSpec::downlink(Channel::memoryless(0.0).unwrap(), Capacity::Unlimited);
    RadioConfig { downlink, uplink: None, base_station: None }
}

#[test]
fn hops_are_passed_in_the_order_of_the_route() {
    // A wire of 7 ms, then a radio: at 7 ms, slot 2 from 10 to 15 ms.
    let hops = vec![HopConfig::links("wire", wire(ms(7)), wire(ms(7))), HopConfig::radio(radio())];
    let config =
        |route| SimConfig { duration: ms(90), hops: hops.clone(), flows: vec![slow(route)], ..SimConfig::default() };
    let at = |ms: u64| vec![Instant::ZERO + Duration::from_millis(ms)];
    let there = vec![RouteHop::links(0), RouteHop::user(1, 0)];
    assert_eq!(arrivals(config(there)).1, at(15));
    // The other way around: slot 0, then 7 ms.
    let back = vec![RouteHop::user(1, 0), RouteHop::links(0)];
    assert_eq!(arrivals(config(back)).1, at(12));
    // Only the wire.
    assert_eq!(arrivals(config(vec![RouteHop::links(0)])).1, at(7));
}

#[test]
fn a_radio_may_be_behind_a_satellite_and_a_satellite_behind_another() {
    // Terminal 0 has slot 0 of the carrier, whose end is at 1.899 ms, and 252 ms of propagation: 253.899 ms.
    let satellite = |name: &str| HopConfig::Satellite { name: name.to_owned(), spec: DamaSpec::large() };
    let hops = vec![satellite("first"), satellite("second"), HopConfig::radio(radio())];
    let config =
        |route| SimConfig { duration: ms(900), hops: hops.clone(), flows: vec![slow(route)], ..SimConfig::default() };
    let radio_behind = vec![RouteHop::terminals(0, [0, 1]), RouteHop::user(2, 0)];
    let (_, seen) = arrivals(config(radio_behind));
    // The slot from 255 to 260 ms.
    assert_eq!(seen[0], Instant::ZERO + ms(260));

    let both = vec![RouteHop::terminals(0, [0, 1]), RouteHop::terminals(1, [2, 3])];
    let (report, seen) = arrivals(config(both));
    // At rest terminal 2 has the third slot of each multi-frame of 144 slots: in the first multi-frame from 273.4545 ms,
    // slot 144 + 2, whose end is (147 x 1,504 x 8) / 6.336 us = 279.152 ms, and 252 ms more.
    let end = Instant::from_nanos((147_u64 * 1_504 * 8 * 1_000_000).div_ceil(6_336)) + ms(252);
    assert_eq!(seen[0], end);
    assert_eq!(report.satellites.iter().map(|s| s.name.as_str()).collect::<Vec<_>>(), ["first", "second"]);
    let terminals = |i: usize| report.satellites[i].terminals.iter().map(|t| t.terminal).collect::<Vec<_>>();
    assert_eq!((terminals(0), terminals(1)), (vec![0, 1], vec![2, 3]));
}

/// Two links of 1,000 packets/s one behind the other, a flow over both and one over each.
fn parking_lot() -> SimConfig {
    let hop = |name: &str| HopConfig::links(name, link(8.0, ms(10), 50), wire(ms(10)));
    let flow = |name: &str, hops: &[u32]| FlowConfig {
        route: hops.iter().map(|hop| RouteHop::links(*hop)).collect(),
        ..FlowConfig::new(name, tcp())
    };
    SimConfig {
        duration: Duration::from_secs(120),
        warmup: Duration::from_secs(20),
        hops: vec![hop("first"), hop("second")],
        flows: vec![flow("long", &[0, 1]), flow("cross-1", &[0]), flow("cross-2", &[1])],
        sample: Some(Duration::from_secs(1)),
        ..SimConfig::default()
    }
}

#[test]
fn over_a_parking_lot_the_long_flow_gets_less_than_the_cross_flows() {
    let report = run(parking_lot()).unwrap();
    let [long, cross_1, cross_2] = [0, 1, 2].map(|i| report.flows[i].throughput_pps());
    // A full drop-tail queue takes packets of all flows that pass, so each flow halves its window whenever a queue is
    // full. Windows grow by one per RTT, so that the mean window is 1.5 T / RTT with T from one halving to the next, and
    // the rate 1.5 T / RTT^2. The long flow is halved by two queues, T / 2, and has twice the RTT: (1/2) (1/2)^2 = 1/8
    // of what the others get. Timeouts and bursts move that; half to twice as much is allowed.
    for cross in [cross_1, cross_2] {
        assert!((0.0625..=0.25).contains(&(long / cross)), "{long} beside {cross}");
        // Both links are full.
        assert!((950.0..=1_000.5).contains(&(long + cross)), "{long} beside {cross}");
    }
}

#[test]
fn each_hop_has_its_rows_and_loses_nothing_uncounted() {
    let report = run(parking_lot()).unwrap();
    let names: Vec<_> = report.links.iter().map(|l| l.name.as_str()).collect();
    assert_eq!(names, ["first", "first.reverse", "second", "second.reverse"]);
    for (i, link) in (0..).zip(&report.links) {
        let all = link.whole.total();
        let out = all.delivered.packets.get() + all.dropped_in_all().packets.get();
        assert_eq!(all.offered.packets.get(), out + link.inside, "{}", link.name);
        assert_eq!(report.link_series.iter().filter(|row| row.link == i).count(), 120, "{}", link.name);
    }
    for flow in &report.flows {
        let c = flow.whole;
        let sent = c.sent.packets.get() + c.feedback_sent.packets.get();
        let ended = c.received.packets.get() + c.feedback_received.packets.get() + c.dropped_in_all().packets.get();
        assert_eq!(sent - ended - c.feedback_dropped.packets.get(), c.under_way(), "{}", flow.name);
    }
    // The first link was offered exactly the packets that the long flow and the first cross flow have sent.
    let sent = |i: usize| report.flows[i].whole.sent.packets.get();
    assert_eq!(report.links[0].whole.total().offered.packets.get(), sent(0) + sent(1));
}

/// Loses every tenth packet, and delays the others.
struct EveryTenth<T> {
    wire: Wire<T>,
    pushed: u64,
    dropped: Vec<(Instant, T)>,
}

impl<T: Send> CustomMedium<T> for EveryTenth<T> {
    fn push(&mut self, now: Instant, _port: u32, packet: T) {
        self.pushed += 1;
        match self.pushed % 10 {
            0 => self.dropped.push((now, packet)),
            _ => self.wire.push(now, packet),
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

#[test]
fn a_medium_from_outside_is_a_hop_like_any_other() {
    let medium =
        CustomSpec::new(|_, _| Box::new(EveryTenth { wire: Wire::new(ms(20)), pushed: 0, dropped: Vec::new() }));
    let hops = vec![
        HopConfig::links("wire", wire(ms(5)), wire(ms(5))),
        HopConfig::Custom { name: "tenth".to_owned(), medium },
    ];
    let flow = slow(vec![RouteHop::links(0), RouteHop::links(1)]);
    // 100 packets at 0, 0.1, ... 9.9 s, the tenth of which goes, and so on.
    let (report, seen) = arrivals(SimConfig { duration: ms(9_990), hops, flows: vec![flow], ..SimConfig::default() });
    let flow = &report.flows[0].whole;
    assert_eq!((flow.sent.packets.get(), flow.received.packets.get()), (100, 90));
    assert_eq!(flow.dropped(DropReason::LinkError).packets.get(), 10);
    assert_eq!(
        (seen[0], seen[8], seen[9]),
        (Instant::ZERO + ms(25), Instant::ZERO + ms(825), Instant::ZERO + ms(1_025))
    );
}

#[test]
fn two_hops_of_one_name_are_refused() {
    let mut config = parking_lot();
    config.hops[1] = HopConfig::links("first", wire(ms(1)), wire(ms(1)));
    assert_eq!(run(config).unwrap_err().to_string(), "two hops are called `first`; names must be unique");
}
