//! A Quick-Start router in front of an ordinary link: it goes by the load that it has measured.

use fairpace_path::quick_start::{LoadWindow, QsCounters, RouterParams, Statistic};
use fairpace_path::{
    Arq, ArqSpec, Capacity, Channel, Datagram, DelayModel, DropReason, Link, LinkError, LinkSpec, QueueModel, RateModel,
};
use fairpace_units::{Bytes, Class, Duration, Ecn, Instant, Packets, QsFunction, QsNonce, QsOption, QsRate, Rate};

/// 1,000 bytes, and perhaps a question.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Packet {
    option: Option<QsOption>,
    flow: u64,
}

impl Datagram for Packet {
    fn size(&self) -> Bytes {
        Bytes::new(1_000)
    }
    fn class(&self) -> Class {
        Class::Normal
    }
    fn ecn(&self) -> Ecn {
        Ecn::NotEct
    }
    fn set_ecn(&mut self, _: Ecn) {}
    fn flow(&self) -> u64 {
        self.flow
    }
    fn quick_start(&mut self) -> Option<&mut QsOption> {
        self.option.as_mut()
    }
}

const PLAIN: Packet = Packet { option: None, flow: 1 };

fn rate(code: u8) -> QsRate {
    QsRate::from_code(code).expect("a code")
}

fn request(code: u8) -> QsOption {
    QsOption { function: QsFunction::Request, rate: rate(code), qs_ttl: 91, ip_ttl: 63, nonce: QsNonce::new(5) }
}

fn ms(t: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(t)
}

/// 10 Mbit/s: a packet takes 0.8 ms. The whole pool for one source, observed every 100 ms.
fn spec(load: LoadWindow) -> LinkSpec {
    LinkSpec {
        rate: RateModel::Fixed(Rate::mbps(10.0)),
        delay: DelayModel::constant(Duration::from_millis(5)),
        queue: QueueModel::DropTail { capacity: Capacity::Packets(Packets::new(50)) },
        quick_start: Some(RouterParams {
            state_delay: Duration::from_millis(100),
            load,
            per_source: 100,
            source_share: 1.0,
            ..RouterParams::default()
        }),
        ..LinkSpec::default()
    }
}

fn window(statistic: Statistic, observations: usize) -> LoadWindow {
    LoadWindow { statistic, observations }
}

fn link(spec: &LinkSpec) -> Link<Packet> {
    Link::new(spec, 1, "bottleneck").expect("a link")
}

/// Pushes a packet every 8 / `mbps` ms from `from` to `to`.
fn load(link: &mut Link<Packet>, from: u64, to: u64, mbps: u64) {
    for us in (from * 1_000..to * 1_000).step_by(8_000 / mbps as usize) {
        link.push(Instant::ZERO + Duration::from_micros(us), PLAIN);
    }
}

/// The answer of a link to a request for the whole capacity.
fn told(link: &mut Link<Packet>, at: Instant) -> QsRate {
    link.push(at, Packet { option: Some(request(15)), flow: 7 });
    let mut last = None;
    while link.next() != Instant::NEVER {
        let now = link.next();
        while let Some(packet) = link.pop(now) {
            last = packet.option.or(last);
        }
    }
    last.expect("a packet that comes out with its option").rate
}

//= 4782-10.2-1
#[test]
fn an_idle_link_approves_up_to_the_threshold_from_the_first_instant() {
    // 8 Mbit/s: code 7 is 5.12, code 8 10.24.
    assert_eq!(told(&mut link(&spec(LoadWindow::default())), Instant::ZERO), rate(7));
    // 10 x 0.03 = 300 kbit/s: 160.
    let strict = RouterParams { threshold: 0.03, source_share: 1.0, ..RouterParams::default() };
    assert_eq!(
        told(&mut link(&LinkSpec { quick_start: Some(strict), ..spec(LoadWindow::default()) }), ms(50)),
        rate(2)
    );
}

//= 4782-D-2
#[test]
fn the_load_is_that_of_the_interval_before() {
    // 8 - 4 = 4 Mbit/s: 2.56. In the first interval nothing was measured yet.
    for (at, expected) in [(99, 7), (100, 6), (199, 6), (300, 6)] {
        let mut link = link(&spec(LoadWindow::default()));
        load(&mut link, 0, at, 4);
        assert_eq!(told(&mut link, ms(at)), rate(expected), "at {at} ms");
    }
    // Silent since 300 ms: the next interval is empty.
    for (at, expected) in [(399, 6), (400, 7)] {
        let mut link = link(&spec(LoadWindow::default()));
        load(&mut link, 0, 300, 4);
        assert_eq!(told(&mut link, ms(at)), rate(expected), "at {at} ms");
    }
    // Ten seconds later as well.
    let mut link = link(&spec(window(Statistic::Peak, 20)));
    load(&mut link, 0, 300, 4);
    assert_eq!(told(&mut link, ms(10_300)), rate(7));
}

#[test]
fn what_departs_as_an_interval_ends_belongs_to_it() {
    // 125 packets of 0.8 ms: the last departs at 100 ms. All 10 Mbit/s were used; without it 80 kbit/s would be left.
    for (packets, expected) in [(125, 0), (124, 1)] {
        let spec = spec(LoadWindow::default());
        let quick_start = spec.quick_start.map(|r| RouterParams { threshold: 1.0, ..r });
        let queue = QueueModel::DropTail { capacity: Capacity::Packets(Packets::new(200)) };
        let mut link = link(&LinkSpec { quick_start, queue, ..spec });
        (0..packets).for_each(|_| link.push(Instant::ZERO, PLAIN));
        assert_eq!(told(&mut link, ms(100)), rate(expected), "{packets} packets");
    }
}

//= 4782-D-2
#[test]
fn average_and_peak_over_four_intervals() {
    // 8, 2, 2, 2 Mbit/s: 3.5 on average, so 4.5 are free, told as 2.56; the peak leaves nothing. An interval later
    // the average is 2: 6 are free, 5.12.
    let measure = |statistic, at| {
        let mut link = link(&spec(window(statistic, 4)));
        load(&mut link, 0, 100, 8);
        load(&mut link, 100, at, 2);
        told(&mut link, ms(at))
    };
    assert_eq!([400, 500].map(|at| measure(Statistic::Average, at)), [rate(6), rate(7)]);
    assert_eq!([400, 500].map(|at| measure(Statistic::Peak, at)), [QsRate::ZERO, rate(7)]);
}

#[test]
fn a_capacity_that_changes_is_known_when_an_interval_has_measured_it() {
    let schedule = RateModel::Schedule(vec![(ms(0), Rate::mbps(10.0)), (ms(250), Rate::mbps(1.0))]);
    let spec = LinkSpec { rate: schedule, ..spec(LoadWindow::default()) };
    // 10; half at 10 and half at 1: 5.5 x 0.8 = 4.4; 0.8.
    for (at, expected) in [(299, 7), (300, 6), (400, 4)] {
        assert_eq!(told(&mut link(&spec), ms(at)), rate(expected), "at {at} ms");
    }
}

#[test]
fn a_link_without_a_rate_approves_whatever_can_be_said() {
    let spec = LinkSpec { rate: RateModel::Unlimited, ..spec(LoadWindow::default()) };
    assert_eq!(told(&mut link(&spec), ms(500)), QsRate::MAX);
}

//= 4782-3.3-3
//= 4782-10.3-1
#[test]
fn a_link_without_a_router_lowers_the_ip_ttl_alone() {
    let LinkSpec { quick_start, .. } = LinkSpec::default();
    let mut link = link(&LinkSpec { quick_start, ..spec(LoadWindow::default()) });
    link.push(Instant::ZERO, Packet { option: Some(request(9)), flow: 7 });
    let out = link.pop(link.next()).expect("it comes out");
    assert_eq!(out.option, Some(QsOption { ip_ttl: 62, ..request(9) }));
    assert_eq!(link.quick_start(), None);
}

/// The packets that come out, with their instants, and the drops with their instants and reasons.
type Fates = (Vec<(Instant, u64)>, Vec<(Instant, DropReason)>);

/// The fates while 9 Mbit/s come in bursts, each with a request in it.
fn fates(quick_start: Option<RouterParams>, code: u8) -> (Fates, QsCounters) {
    let mut link = link(&LinkSpec { quick_start, ..spec(LoadWindow::default()) });
    link.record_drops(true);
    let mut out = Vec::new();
    for burst in 0..40 {
        let now = ms(50 * burst);
        while link.next() <= now {
            let exit = link.next();
            out.extend(std::iter::from_fn(|| link.pop(exit)).map(|p| (exit, p.flow)));
        }
        for flow in 0..56 {
            link.push(now, Packet { option: (flow == 3).then_some(request(code)), flow });
        }
    }
    link.advance(ms(2_000));
    let dropped = std::iter::from_fn(|| link.take_dropped()).map(|(at, why, _)| (at, why)).collect();
    ((out, dropped), link.quick_start().copied().unwrap_or_default())
}

//= 4782-3.3-9
#[test]
fn approved_refused_or_not_understood_the_packets_are_treated_alike() {
    let router = spec(LoadWindow::default()).quick_start;
    let (without, none) = fates(None, 5);
    assert!(without.0.len() > 1_000 && without.1.len() > 100, "{} out, {} dropped", without.0.len(), without.1.len());
    assert_eq!(none, QsCounters::default());
    // Once measured, 8 of 10 Mbit/s are used: with a threshold of 0.8 nothing is left, with 1 there is.
    let with = |threshold, code| fates(router.map(|r| RouterParams { threshold, ..r }), code);
    let (refused, counters) = with(0.8, 15);
    assert_eq!(refused, without);
    assert!(counters.refused[5] >= 30, "{counters:?}");
    let (approved, counters) = with(1.0, 1);
    assert_eq!(approved, without);
    assert!(counters.approved >= 30, "{counters:?}");
}

#[test]
fn a_router_that_cannot_be_is_refused_by_name() {
    let router = RouterParams { threshold: 1.5, ..RouterParams::default() };
    let error = Link::<Packet>::new(&LinkSpec { quick_start: Some(router), ..LinkSpec::default() }, 1, "x");
    let Err(error @ LinkError::QuickStart(_)) = error else { panic!("{error:?}") };
    assert_eq!(error.to_string(), "`quick_start.threshold` is 1.5; it must be above 0 and at most 1");
}

#[test]
fn a_wireless_link_knows_nothing_of_quick_start() {
    let channel = Channel::memoryless(0.0).expect("a channel");
    let mut arq = Arq::new(&ArqSpec::downlink(channel, Capacity::Unlimited), 1, "wlan").expect("a link");
    arq.push(ms(0), 0, Packet { option: Some(request(9)), ..PLAIN });
    // 1,000 bytes are eight slots of 5 ms.
    let (_, out) = arq.pop(ms(40)).expect("it comes out");
    assert_eq!(out.option, Some(QsOption { ip_ttl: 62, ..request(9) }));
}
