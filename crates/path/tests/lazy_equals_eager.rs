//! The lazy link and an eager one agree on every exit, drop, mark and queue length, for every queue and
//! every kind of rate, loss, outage and delay, however often the lazy one is asked.

mod eager;

use eager::{Eager, Shape};
use fairpace_path::quick_start::RouterParams;
use fairpace_path::{
    Capacity, CoDelParams, DelayModel, DropReason, DualPi2Params, FqCoDelParams, GilbertElliott, InFlight, Link,
    LinkSpec, LossModel, Outage, OutageAt, PieParams, Plain, QueueModel, RedParams, RioParams, Thresholds,
};
use fairpace_units::{Bytes, Class, Duration, Ecn, Instant, Packets, Probability};
use proptest::prelude::*;

const MS: u64 = 1_000_000;

#[derive(Clone, Copy, Debug)]
struct Arrival {
    after_ns: u64,
    size: u64,
    class: Class,
    ecn: Ecn,
    flow: u64,
}

fn arrivals() -> impl Strategy<Value = Vec<Arrival>> {
    // Whole milliseconds often, so that arrivals, departures and changes of rate coincide.
    let after_ns = prop_oneof![3 => Just(0), 3 => (0_u64..4).prop_map(|ms| ms * MS), 3 => 0..3 * MS, 1 => 0..60 * MS];
    let size = prop_oneof![Just(1_000_u64), Just(40), Just(1_500), 1_u64..4_000];
    let class = prop_oneof![Just(Class::Normal), Just(Class::Low)];
    let ecn = prop_oneof![Just(Ecn::NotEct), Just(Ecn::Ect0), Just(Ecn::Ect1)];
    let one = (after_ns, size, class, ecn, 0..4_u64);
    let one = one.prop_map(|(after_ns, size, class, ecn, flow)| Arrival { after_ns, size, class, ecn, flow });
    prop::collection::vec(one, 1..120)
}

fn shape() -> impl Strategy<Value = Shape> {
    // 8 Mbit/s sends 1,000 bytes in exactly 1 ms. Odd rates leave a fraction in every packet.
    let rate =
        prop_oneof![Just(8_000_000 * 1_024_u64), 50_000 * 1_024..20_000_000 * 1_024_u64, Just(7_777_777 * 1_000)];
    let or_zero = prop_oneof![4 => rate.clone(), 1 => Just(0_u64)];
    let steps = (rate.clone(), prop::collection::vec((1_u64..8, or_zero), 1..8)).prop_map(|(first, rest)| {
        let mut entries = vec![(0, first)];
        for (ms, rate) in rest {
            entries.push((entries.last().unwrap().0 + ms * MS, rate));
        }
        entries
    });
    let opportunities = prop::collection::vec(0_u64..5, 1..12).prop_map(|steps| {
        let mut times: Vec<u64> = steps
            .iter()
            .scan(0, |t, step| {
                *t += step;
                Some(*t)
            })
            .collect();
        let last = times.last_mut().unwrap();
        *last = (*last).max(1);
        times
    });
    prop_oneof![
        1 => Just(Shape::Unlimited),
        3 => rate.prop_map(|units| Shape::Steps(vec![(0, units)], None)),
        3 => steps.clone().prop_map(|entries| Shape::Steps(entries, None)),
        3 => steps.prop_map(|entries| {
            // The last sample of a CSV trace holds for the median distance.
            let mut distances: Vec<u64> = entries.windows(2).map(|w| w[1].0 - w[0].0).collect();
            distances.sort_unstable();
            let period = entries.last().unwrap().0 + distances[distances.len() / 2];
            Shape::Steps(entries, Some(period))
        }),
        3 => opportunities.prop_map(Shape::Opportunities),
    ]
}

fn spec(shape: &Shape) -> impl Strategy<Value = LinkSpec> + use<> {
    let rate = shape.model();
    let capacity = prop_oneof![
        3 => (1_u64..8).prop_map(|n| Capacity::Packets(Packets::new(n))),
        2 => (8_u64..90).prop_map(|n| Capacity::Packets(Packets::new(n))),
        2 => (1_u64..9_000).prop_map(|n| Capacity::Bytes(Bytes::new(n))),
        1 => Just(Capacity::Unlimited),
    ];
    let queue = prop_oneof![
        2 => capacity.clone().prop_map(|capacity| QueueModel::DropTail { capacity }),
        2 => capacity.clone().prop_map(|capacity| QueueModel::TwoPriority { capacity }),
        2 => red(capacity.clone()).prop_map(QueueModel::Red),
        3 => rio(capacity.clone()),
        2 => pie(capacity.clone()),
        2 => codel(capacity.clone()).prop_map(QueueModel::CoDel),
        3 => fq_codel(capacity.clone()),
        3 => dualpi2(capacity),
    ];
    let ms = prop_oneof![Just(0), (0_u64..20).prop_map(|ms| ms * MS), 0..20 * MS].prop_map(Duration::from_nanos);
    let delay = (ms.clone(), prop_oneof![2 => Just(Duration::ZERO), 1 => ms.clone()], any::<bool>())
        .prop_map(|(propagation, jitter, reorder)| DelayModel { propagation, jitter, reorder });
    let p = || (0.0..=1.0).prop_map(|p| Probability::new(p).unwrap());
    let loss = prop_oneof![
        2 => Just(LossModel::None),
        1 => p().prop_map(LossModel::Bernoulli),
        1 => (p(), p(), p(), p()).prop_map(|(a, b, c, d)| LossModel::GilbertElliott(GilbertElliott {
            good_to_bad: a, bad_to_good: b, loss_in_good: c, loss_in_bad: d,
        })),
    ];
    let in_flight = prop_oneof![Just(InFlight::Delivered), Just(InFlight::Lost)];
    let outage = (0..200_u64, ms, in_flight).prop_map(|(at, length, in_flight)| Outage {
        start: Instant::from_nanos(at * MS),
        length,
        in_flight,
    });
    let outage = prop_oneof![2 => Just(Vec::new()), 1 => prop::collection::vec(outage, 1..4)];
    let outage_at = prop_oneof![Just(OutageAt::Transmitter), Just(OutageAt::Receiver)];
    // A Quick-Start router looks at the load now and then, which must change nothing.
    let router =
        (1..20_u64).prop_map(|ms| RouterParams { state_delay: Duration::from_millis(ms), ..RouterParams::default() });
    let quick_start = prop::option::of(router);
    (queue, delay, loss, outage, outage_at, quick_start).prop_map(
        move |(queue, delay, loss, outage, outage_at, quick_start)| LinkSpec {
            rate: rate.clone(),
            delay,
            queue,
            loss,
            outage,
            outage_at,
            quick_start,
        },
    )
}

/// Thresholds so that averages of a few packets soon matter.
fn thresholds() -> impl Strategy<Value = Thresholds> {
    prop_oneof![
        (0_u64..4, 1_u64..5)
            .prop_map(|(min, more)| Thresholds::Packets { min: Packets::new(min), max: Packets::new(min + more) }),
        (0_u64..3_000, 1_u64..4_000)
            .prop_map(|(min, more)| Thresholds::Bytes { min: Bytes::new(min), max: Bytes::new(min + more) }),
    ]
}

fn rio(capacity: impl Strategy<Value = Capacity>) -> impl Strategy<Value = QueueModel> {
    // Thresholds in another unit than those of all packets are possible, too.
    (red(capacity), thresholds(), 0.01_f64..=1.0).prop_map(|(all, inside, inside_max_probability)| {
        QueueModel::Rio(RioParams { all, inside, inside_max_probability })
    })
}

fn red(capacity: impl Strategy<Value = Capacity>) -> impl Strategy<Value = RedParams> {
    let thresholds = thresholds();
    let chances = (0.01_f64..=1.0, prop_oneof![Just(1.0), 0.01_f64..=1.0]);
    let switches = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    let params = (capacity, thresholds, chances, switches, 200_u64..2_000);
    params.prop_map(|(capacity, thresholds, (max_probability, weight), (gentle, wait, by_size, ecn), mean)| {
        let mean_packet_size = Bytes::new(mean);
        RedParams { capacity, thresholds, max_probability, weight, gentle, wait, by_size, mean_packet_size, ecn }
    })
}

/// Times of some packets, so that delays of a few packets matter.
fn pie(capacity: impl Strategy<Value = Capacity>) -> impl Strategy<Value = QueueModel> {
    let us = |range: core::ops::Range<u64>| range.prop_map(Duration::from_micros);
    let times = (us(1..5_000), us(1..8_000), us(0..9_000));
    let gains = (0.0..200.0_f64, 0.0..500.0_f64, 0.0..=1.0_f64);
    (capacity, times, gains, 1_u64..2_000, any::<bool>()).prop_map(
        |(capacity, (target, update_interval, max_burst), (alpha, beta, mark_threshold), mean, ecn)| {
            QueueModel::Pie(PieParams {
                capacity,
                target,
                update_interval,
                max_burst,
                alpha,
                beta,
                mean_packet_size: Bytes::new(mean),
                ecn,
                mark_threshold,
            })
        },
    )
}

fn codel(capacity: impl Strategy<Value = Capacity>) -> impl Strategy<Value = CoDelParams> {
    (capacity, 1_u64..4_000, 1_u64..6_000, 1_u64..2_000, any::<bool>()).prop_map(
        |(capacity, target, interval, mtu, ecn)| CoDelParams {
            capacity,
            target: Duration::from_micros(target),
            interval: Duration::from_micros(interval),
            mtu: Bytes::new(mtu),
            ecn,
        },
    )
}

fn fq_codel(capacity: impl Strategy<Value = Capacity>) -> impl Strategy<Value = QueueModel> {
    let quantum = prop_oneof![1_u64..300, 300..4_000_u64].prop_map(Bytes::new);
    (codel(capacity), quantum, prop_oneof![Just(1_u32), 2..20_u32])
        .prop_map(|(codel, quantum, flows)| QueueModel::FqCoDel(FqCoDelParams { codel, quantum, flows }))
}

/// Times of some packets, and gains that soon overload.
fn dualpi2(capacity: impl Strategy<Value = Capacity>) -> impl Strategy<Value = QueueModel> {
    let us = |range: core::ops::Range<u64>| range.prop_map(Duration::from_micros);
    let times = (us(1..5_000), us(500..8_000), us(0..3_000), us(0..3_000));
    let gains = (0.0..200.0_f64, 0.0..500.0_f64, 0.1..8.0_f64, 0.01..0.99_f64);
    (capacity, times, gains, 0_u32..4, 1_u64..2_000).prop_map(
        |(capacity, (target, update_interval, threshold, range), gains, threshold_packets, mtu)| {
            let (alpha, beta, coupling, classic_weight) = gains;
            QueueModel::DualPi2(DualPi2Params {
                capacity,
                target,
                update_interval,
                alpha,
                beta,
                coupling,
                threshold,
                range,
                threshold_packets,
                classic_weight,
                mtu: Bytes::new(mtu),
            })
        },
    )
}

/// How the driver treats the link between two arrivals.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Driver {
    /// Comes back at every `next`, as an engine does.
    OnTime,
    /// Takes out at the next arrival what is out by then.
    AtArrivals,
    /// Takes nothing out before the end.
    AtTheEnd,
}

fn check(shape: &Shape, spec: &LinkSpec, arrivals: &[Arrival], driver: Driver) -> Result<(), TestCaseError> {
    let mut eager = Eager::new(spec, shape, 9, "link");
    let mut lazy: Link<Plain> = Link::new(spec, 9, "link").unwrap();
    lazy.record_drops(true);
    let mut popped: Vec<(u64, u64)> = Vec::new();
    let mut wasted = 0;
    let mut now = 0;
    for (id, arrival) in arrivals.iter().enumerate() {
        now += arrival.after_ns;
        let Arrival { size, class, ecn, flow, .. } = *arrival;
        let packet = Plain { size: Bytes::new(size), class, ecn, id: id as u64, flow };
        if driver != Driver::AtTheEnd {
            wasted += drain(&mut lazy, driver, now, &mut popped)?;
        }
        eager.push(now, packet);
        lazy.push(Instant::from_nanos(now), packet);
        prop_assert_eq!(lazy.queue_len(), eager.queue_len(), "queue at {} ns", now);
        conserved(&lazy)?;
        counted(&lazy, &arrivals[..=id], arrivals, &popped)?;
    }
    // Some traces leave a packet every few seconds only.
    let end = now + 120_000 * MS;
    wasted += drain(&mut lazy, driver, end, &mut popped)?;
    lazy.advance(Instant::from_nanos(end));
    eager.advance(end);
    conserved(&lazy)?;
    counted(&lazy, arrivals, arrivals, &popped)?;

    let mut expected: Vec<(u64, u64)> = eager.exits.iter().copied().filter(|&(at, _)| at <= end).collect();
    expected.sort_by_key(|&(at, _)| at); // stable: equal exits stay in order of departure
    if driver == Driver::OnTime {
        prop_assert_eq!(&popped, &expected);
        let lost = eager.drops.iter().filter(|d| matches!(d.1, DropReason::LinkError | DropReason::Outage)).count();
        // One call per exit, but for a queue that chooses and cannot know the exit of a packet whose
        // first opportunity has not come, or that may overtake.
        let unknown = spec.delay.reorder || matches!(shape, Shape::Opportunities(_));
        let admits = matches!(
            spec.queue,
            QueueModel::DropTail { .. } | QueueModel::Red(_) | QueueModel::Rio(_) | QueueModel::Pie(_)
        );
        let allowed = if !admits { lost + usize::from(unknown) * arrivals.len() } else { 0 };
        prop_assert!(wasted <= allowed, "{} wasted calls, {} lost", wasted, lost);
    } else {
        let ids = |v: &[(u64, u64)]| v.iter().map(|&(_, id)| id).collect::<Vec<_>>();
        prop_assert_eq!(ids(&popped), ids(&expected));
    }
    let mut drops = Vec::new();
    while let Some((at, reason, packet)) = lazy.take_dropped() {
        drops.push((at.as_nanos(), reason, packet.id));
    }
    prop_assert_eq!(&drops, &eager.drops);
    let counters = lazy.counters();
    prop_assert_eq!(counters.marked.packets.get(), eager.marked);
    prop_assert_eq!(counters.busy().as_nanos(), eager.busy_ns);
    prop_assert_eq!(counters.max_queue, Packets::new(eager.max_queue as u64));
    let mean = eager.packet_ns as f64 / end as f64;
    prop_assert!((counters.mean_queue() - mean).abs() <= 1e-12 * mean);
    Ok(())
}

/// Takes out what is out by `until`; returns how many calls were in vain.
fn drain(
    link: &mut Link<Plain>,
    driver: Driver,
    until: u64,
    popped: &mut Vec<(u64, u64)>,
) -> Result<usize, TestCaseError> {
    let mut wasted = 0;
    if driver == Driver::OnTime {
        while link.next() <= Instant::from_nanos(until) {
            let now = link.next();
            let before = popped.len();
            while let Some(packet) = link.pop(now) {
                popped.push((now.as_nanos(), packet.id));
            }
            wasted += usize::from(popped.len() == before);
            prop_assert!(link.next() > now, "no progress at {}", now);
            conserved(link)?;
        }
    } else {
        while let Some(packet) = link.pop(Instant::from_nanos(until)) {
            popped.push((until, packet.id));
            conserved(link)?;
        }
    }
    Ok(wasted)
}

/// In = out + dropped + held [P17]; packets and bytes, of each class.
fn conserved(link: &Link<Plain>) -> Result<(), TestCaseError> {
    let total = link.counters().total();
    let accounted = total.delivered.packets + total.dropped_in_all().packets + Packets::new(link.inside() as u64);
    prop_assert_eq!(total.offered.packets, accounted);
    for class in [Class::Normal, Class::Low] {
        let counters = link.counters();
        let c = counters.class(class);
        prop_assert!(c.offered.bytes >= c.delivered.bytes + c.dropped_in_all().bytes);
    }
    if link.inside() == 0 {
        prop_assert_eq!(total.offered.bytes, total.delivered.bytes + total.dropped_in_all().bytes);
    }
    prop_assert!(link.queue_len() <= link.inside());
    Ok(())
}

/// The counts of offered and delivered packets, of each class, are those of the packets that went in and came out.
fn counted(
    link: &Link<Plain>,
    pushed: &[Arrival],
    all: &[Arrival],
    popped: &[(u64, u64)],
) -> Result<(), TestCaseError> {
    let counters = link.counters();
    for class in [Class::Normal, Class::Low] {
        let sum = |of: &mut dyn Iterator<Item = &Arrival>| {
            of.filter(|a| a.class == class).fold((0, 0), |(n, bytes), a| (n + 1, bytes + a.size))
        };
        let c = counters.class(class);
        let [offered, delivered] = [c.offered, c.delivered].map(|c| (c.packets.get(), c.bytes.get()));
        prop_assert_eq!(offered, sum(&mut pushed.iter()));
        prop_assert_eq!(delivered, sum(&mut popped.iter().map(|&(_, id)| &all[id as usize])));
    }
    Ok(())
}

/// 2,000 cases take under a second; more if the environment asks for more.
fn cases() -> ProptestConfig {
    let default = ProptestConfig::default();
    ProptestConfig { cases: default.cases.max(2_000), ..default }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn the_lazy_link_does_what_an_eager_one_does(
        (shape, spec) in shape().prop_flat_map(|shape| { let spec = spec(&shape); (Just(shape), spec) }),
        arrivals in arrivals(),
        driver in prop_oneof![Just(Driver::OnTime), Just(Driver::AtArrivals), Just(Driver::AtTheEnd)],
    ) {
        check(&shape, &spec, &arrivals, driver)?;
    }

    #[test]
    fn without_low_priority_packets_a_two_priority_queue_is_a_drop_tail_one(
        spec in shape().prop_flat_map(|shape| spec(&shape)),
        mut arrivals in arrivals(),
    ) {
        arrivals.iter_mut().for_each(|a| a.class = Class::Normal);
        let capacity = spec.queue.capacity();
        let mut results = Vec::new();
        for queue in [QueueModel::DropTail { capacity }, QueueModel::TwoPriority { capacity }] {
            let mut link: Link<Plain> = Link::new(&LinkSpec { queue, ..spec.clone() }, 9, "link").unwrap();
            let (mut popped, mut now) = (Vec::new(), 0);
            for (id, a) in arrivals.iter().enumerate() {
                now += a.after_ns;
                drain(&mut link, Driver::OnTime, now, &mut popped)?;
                let packet = Plain { id: id as u64, ..Plain::new(Bytes::new(a.size)) };
                link.push(Instant::from_nanos(now), packet);
            }
            drain(&mut link, Driver::OnTime, now + 120_000 * MS, &mut popped)?;
            link.advance(Instant::from_nanos(now + 120_000 * MS));
            results.push((popped, link.counters()));
        }
        prop_assert_eq!(&results[0], &results[1]);
    }
}
