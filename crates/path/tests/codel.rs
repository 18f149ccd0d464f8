//! CoDel by hand [RFC 8289 §5]: 8 Mbit/s and 1,000 bytes, so one packet leaves each millisecond. All
//! packets come at 0 ms unless said otherwise: who begins at t ms has waited t ms.

mod common;

use common::*;
use fairpace_path::DropReason::{Early, QueueFull};
use fairpace_path::{Capacity, CoDelParams, Link, LinkSpec, Plain, QueueModel, RateModel};
use fairpace_units::{Bytes, Ecn, Instant, Packets, Rate};

fn link(params: CoDelParams) -> Link<Plain> {
    with_rate(params, RateModel::Fixed(Rate::mbps(8.0)))
}

fn with_rate(params: CoDelParams, rate: RateModel) -> Link<Plain> {
    let mut link =
        Link::new(&LinkSpec { rate, queue: QueueModel::CoDel(params), ..LinkSpec::default() }, 1, "c").unwrap();
    link.record_drops(true);
    link
}

/// The RFC's constants, no limit.
fn usual() -> CoDelParams {
    CoDelParams::new(Capacity::Unlimited)
}

fn burst(link: &mut Link<Plain>, at: f64, ids: std::ops::Range<u64>) {
    ids.for_each(|id| link.push(ms(at), normal(id)));
}

//= 8289-4.2-1
//= 8289-4.3-1
//= 8289-5.3-1
#[test]
fn the_constants_are_those_of_the_rfc() {
    let params = usual();
    assert_eq!((params.target, params.interval), (span(5.0), span(100.0)));
    assert_eq!(params.mtu, Bytes::new(1_500));
}

//= 8289-3.1-1
//= 8289-5.5-1
//= 8289-5.5-3
//= 8289-5.6-1
//= 8289-5.6-3
#[test]
fn the_first_drop_comes_an_interval_after_the_target_and_the_next_ones_by_the_square_root() {
    let mut link = link(usual());
    burst(&mut link, 0.0, 0..480);
    // Above 5 ms from 5 ms on, so from 105 ms on it may drop: count 1, next at 205. Then 205 + 100/√2
    // = 275.71, + 100/√3 = 333.45, + 50 = 383.45, + 100/√5 = 428.17, + 100/√6 = 468.99. A drop waits for
    // the next transmission to begin, and who is at the head has moved up by those dropped before.
    run(&mut link, []);
    let expected = [(105, 105), (205, 206), (276, 278), (334, 337), (384, 388), (429, 434), (469, 475)];
    assert_eq!(drops(&mut link), expected.map(|(at, id)| (ms(f64::from(at)), Early, id)));
}

//= 8289-5.6-2
#[test]
fn one_short_wait_within_the_interval_begins_it_anew() {
    // 50 packets at 0, and from 43 ms on as many as leave, so that the 51st waits 7 ms: never below the
    // target until 105 ms. With a pause of 3 ms it waits 4 ms once, at 53 ms, and the interval is new.
    let arrivals =
        |pause: f64| (0..400).map(move |i| (ms(if i < 50 { 0.0 } else { f64::from(i) - 7.0 + pause }), i as u64));
    let first_drop = |pause| {
        let mut link = link(CoDelParams { mtu: Bytes::new(1), ..usual() });
        run(&mut link, arrivals(pause).map(|(at, id)| (at, normal(id))));
        drops(&mut link).first().map(|&(at, _, _)| at)
    };
    assert_eq!(first_drop(0.0), Some(ms(105.0)));
    assert_eq!(first_drop(3.0), None); // 4 ms from then on
}

//= 8289-5.6-2
#[test]
fn nothing_is_dropped_while_no_more_than_a_largest_packet_waits() {
    // Two waiting packets of 1,000 bytes: one is left behind the one that is taken.
    for (mtu, drops_some) in [(999, true), (1_000, false)] {
        let params = CoDelParams { mtu: Bytes::new(mtu), target: span(1.0), interval: span(10.0), ..usual() };
        let mut link = link(params);
        let arrivals = (0..200).map(|i| (ms(if i < 3 { 0.0 } else { f64::from(i) - 2.0 }), normal(i as u64)));
        run(&mut link, arrivals);
        assert_eq!(!drops(&mut link).is_empty(), drops_some, "{mtu}");
    }
}

//= 8289-5.5-2
#[test]
fn below_the_target_the_dropping_ends() {
    let mut link = link(usual());
    burst(&mut link, 0.0, 0..210);
    run(&mut link, []);
    // 208 would be sent at 206 ms and so on to 208 ms: the drop due at 275.71 never comes.
    assert_eq!(drops(&mut link), [(ms(105.0), Early, 105), (ms(205.0), Early, 206)]);
    burst(&mut link, 300.0, 300..400);
    run(&mut link, []);
    assert_eq!(drops(&mut link), []); // out of the dropping state, a new interval runs until 405 ms
}

//= 8289-5.5-4
#[test]
fn dropping_again_soon_begins_at_the_frequency_that_helped() {
    let second = |pause: f64| {
        let mut link = link(usual());
        burst(&mut link, 0.0, 0..480); // count 7, begun at 1; drop_next 468.99 + 100/√7 = 506.79
        run(&mut link, []);
        drops(&mut link);
        burst(&mut link, pause, 1_000..1_300);
        run(&mut link, []);
        drops(&mut link).into_iter().map(|(at, _, _)| at).take(2).collect::<Vec<Instant>>()
    };
    // Soon: count 7 − 1 = 6, so 100/√6 = 40.82 ms between the first and the second drop.
    assert_eq!(second(500.0), [ms(605.0), ms(646.0)]);
    // 16 intervals after 506.79 ms the past is forgotten: count 1.
    assert_eq!(second(2_001.0), [ms(2_106.0), ms(2_147.0)]); // 2106 − 506.79 = 1599.2 < 1600
    assert_eq!(second(2_002.0), [ms(2_107.0), ms(2_207.0)]);
}

//= 8289-5.5-5
#[test]
fn drops_that_were_due_while_the_link_stood_still_come_together() {
    let at = |t: f64| ms(t);
    let steps = [(0.0, 8.0), (250.0, 0.0), (400.0, 8.0)].map(|(t, mbps)| (at(t), Rate::mbps(mbps)));
    let mut link = with_rate(usual(), RateModel::Schedule(steps.to_vec()));
    burst(&mut link, 0.0, 0..400);
    run(&mut link, []);
    let found = drops(&mut link);
    // 105 and 205 as ever. Who begins at 250 ms is sent from 400 to 401 ms; then 275.71, 333.45 and
    // 383.45 have passed: three at once. The next at 428.17.
    let times: Vec<Instant> = found.iter().map(|&(at, _, _)| at).collect();
    assert_eq!(times[..6], [105.0, 205.0, 401.0, 401.0, 401.0, 429.0].map(ms));
}

//= 8289-4.1-1
#[test]
fn the_link_never_falls_idle_by_a_drop() {
    let mut link = link(CoDelParams { target: span(1.0), interval: span(1.0), mtu: Bytes::new(1), ..usual() });
    burst(&mut link, 0.0, 0..1_000);
    let out = run(&mut link, []);
    assert!(drops(&mut link).len() > 100);
    assert!(out.windows(2).all(|w| w[1].0 == w[0].0 + span(1.0)));
}

#[test]
fn ecn_capable_packets_are_marked_in_the_place_of_drops() {
    let ect = |id| Plain { ecn: Ecn::Ect0, ..normal(id) };
    let mut link = link(CoDelParams { ecn: true, ..usual() });
    (0..300).for_each(|id| link.push(ms(0.0), ect(id)));
    let mut marked = Vec::new();
    while link.next() < Instant::NEVER {
        let now = link.next();
        while let Some(packet) = link.pop(now) {
            if packet.ecn == Ecn::Ce {
                marked.push((now, packet.id));
            }
        }
    }
    // Who begins when a drop is due goes with a mark, and arrives a millisecond later: nobody moves up.
    assert_eq!(marked, [(ms(106.0), 105), (ms(206.0), 205), (ms(277.0), 276)]);
    assert_eq!((drops(&mut link), link.counters().marked.packets), (vec![], Packets::new(3)));
}

//= 8289-5.4-1
#[test]
fn arrivals_beyond_the_room_are_dropped_at_the_tail() {
    let mut link = link(CoDelParams::new(Capacity::Packets(Packets::new(3))));
    burst(&mut link, 0.0, 0..5);
    assert_eq!(drops(&mut link), [(ms(0.0), QueueFull, 3), (ms(0.0), QueueFull, 4)]);
}
