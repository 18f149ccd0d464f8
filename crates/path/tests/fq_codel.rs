//! FQ-CoDel by hand [RFC 8290]: 8 Mbit/s and 1,000 bytes, so one packet leaves each millisecond.

mod common;

use common::*;
use fairpace_path::DropReason::{Early, PushedOut};
use fairpace_path::{Capacity, FqCoDelParams, Link, LinkSpec, Plain, QueueModel, RateModel};
use fairpace_units::{Bytes, Ecn, Packets, Rate};

fn link(params: FqCoDelParams) -> Link<Plain> {
    let rate = RateModel::Fixed(Rate::mbps(8.0));
    let queue = QueueModel::FqCoDel(params);
    let mut link = Link::new(&LinkSpec { rate, queue, ..LinkSpec::default() }, 1, "f").unwrap();
    link.record_drops(true);
    link
}

fn usual() -> FqCoDelParams {
    FqCoDelParams::new(Capacity::Unlimited)
}

/// A packet of a flow; the number tells both.
fn of(flow: u64, n: u64) -> Plain {
    Plain { flow, ..normal(100 * flow + n) }
}

fn sized(flow: u64, n: u64, size: u64) -> Plain {
    Plain { size: Bytes::new(size), ..of(flow, n) }
}

fn order(link: &mut Link<Plain>) -> Vec<u64> {
    drain(link).into_iter().map(|(_, id)| id).collect()
}

//= 8290-5.2.1-1
//= 8290-5.2.2-1
//= 8290-5.2.4-1
//= 8290-5.2.5-1
//= 8290-5.2.6-1
#[test]
fn the_constants_are_those_of_the_rfc() {
    let p = usual();
    assert_eq!((p.codel.interval, p.codel.target), (span(100.0), span(5.0)));
    assert_eq!((p.quantum, p.flows, p.codel.ecn), (Bytes::new(1_514), 1_024, true));
}

//= 8290-4.1-1
//= 8290-4.2-1
#[test]
fn flows_take_turns_of_a_quantum_and_what_is_overdrawn_is_paid_back() {
    let mut link = link(usual());
    (1..=5).for_each(|n| link.push(ms(0.0), of(1, n)));
    (1..=4).for_each(|n| link.push(ms(0.0), of(2, n)));
    // 101 begins at once. Credits of 1: 1514 − 1000 = 514, so it sends 102, −486; flow 2 likewise; then
    // 1 has 1028: 103, 104 (−972); 2 the same; 1 has 542: 105.
    assert_eq!(order(&mut link), [101, 102, 201, 202, 103, 104, 203, 204, 105]);
}

//= 8290-4.1-2
//= 8290-4.2-2
#[test]
fn a_sparse_flow_waits_for_the_packet_in_transmission_and_no_longer() {
    let mut link = link(usual());
    let greedy = (0..80).map(|n| (ms(0.0), of(1, n)));
    let exits = run(&mut link, greedy.chain([(ms(10.5), of(2, 0)), (ms(40.5), of(2, 1))]));
    let of_the_sparse: Vec<_> = exits.into_iter().filter(|&(_, id)| id >= 200).collect();
    assert_eq!(of_the_sparse, [(ms(12.0), 200), (ms(42.0), 201)]);
}

//= 8290-4.2-3
#[test]
fn an_emptied_new_queue_goes_through_the_old_list_before_it_can_be_new_again() {
    let mut link = link(usual());
    (0..20).for_each(|n| link.push(ms(0.0), of(1, n)));
    link.push(ms(3.5), of(2, 0)); // new: sent from 4 to 5 ms
    link.push(ms(5.5), of(2, 1)); // its queue was found empty at 5 ms and stands at the end of the old list
    // At 6 ms flow 1, in its turn: at 0 and 1 ms 100 and 101, −486; at 2 and 3 ms with 1028 102 and 103,
    // −972; found without credit at 5 ms behind the new list, 542: 104, −458. At 6 ms flow 2 is first in
    // the old list, with 514 left: 201.
    let exits = drain(&mut link);
    let place = exits.iter().position(|&(_, id)| id == 201).unwrap();
    assert_eq!(exits[..8].iter().map(|e| e.1).collect::<Vec<_>>(), [100, 101, 102, 103, 200, 104, 201, 105]);
    assert_eq!(exits[place].0, ms(7.0));
}

//= 8290-4.2-4
#[test]
fn bytes_are_shared_equally_whatever_the_sizes() {
    let mut link = link(usual());
    for n in 0..99 {
        link.push(ms(0.0), sized(1, n, 1_500));
        (0..5).for_each(|i| link.push(ms(0.0), Plain { id: 1_000 + 5 * n + i, ..sized(2, 0, 300) }));
    }
    let mut bytes = [0.0, 0.0];
    while link.next() < ms(180.0) {
        let now = link.next();
        while let Some(packet) = link.pop(now) {
            bytes[packet.flow as usize - 1] += packet.size.as_f64();
        }
    }
    assert!((bytes[0] / bytes[1] - 1.0).abs() < 0.03, "{bytes:?}");
}

//= 8290-4.1-3
#[test]
fn when_there_is_no_room_the_longest_queue_loses_half_of_itself_from_its_head() {
    let capacity = Capacity::Packets(Packets::new(10));
    let mut link = link(FqCoDelParams::new(capacity));
    (0..7).for_each(|n| link.push(ms(0.0), of(1, n))); // one in transmission, six wait
    (0..3).for_each(|n| link.push(ms(0.0), of(2, n)));
    assert_eq!(link.queue_len(), 10);
    link.push(ms(0.5), of(2, 3));
    assert_eq!(drops(&mut link), [101, 102, 103].map(|id| (ms(0.5), PushedOut, id)));
    assert_eq!(order(&mut link), [100, 104, 200, 201, 105, 106, 202, 203]);
}

//= 8290-4.1-3
#[test]
fn no_more_than_64_go_at_once() {
    let mut link = link(FqCoDelParams::new(Capacity::Packets(Packets::new(400))));
    (0..401).for_each(|n| link.push(ms(0.0), of(1, n)));
    assert_eq!(drops(&mut link).len(), 64);
}

#[test]
fn the_arrival_goes_if_it_is_alone_in_the_longest_queue() {
    let mut link = link(FqCoDelParams::new(Capacity::Bytes(Bytes::new(2_500))));
    link.push(ms(0.0), of(1, 0));
    link.push(ms(0.0), of(1, 1));
    link.push(ms(0.0), sized(2, 0, 1_200));
    assert_eq!(drops(&mut link), [(ms(0.0), PushedOut, 200)]);
    assert_eq!(order(&mut link), [100, 101]);
}

//= 8289-4.4-1
//= 8290-4.2-5
#[test]
fn codel_drops_only_in_the_queue_that_stands() {
    let params = FqCoDelParams { codel: fairpace_path::CoDelParams { ecn: false, ..usual().codel }, ..usual() };
    let mut link = link(params);
    let greedy = (0..600).map(|i| (ms(0.0), Plain { id: i, ..of(1, 0) }));
    let sparse = (0..40).map(|i| (ms(0.3 + 10.0 * i as f64), Plain { id: 1_000 + i, ..of(2, 0) }));
    let mut arrivals: Vec<_> = greedy.chain(sparse).collect();
    arrivals.sort_by_key(|a| a.0);
    let out = run(&mut link, arrivals);
    assert_eq!(out.iter().filter(|(_, id)| *id >= 1_000).count(), 40);
    let dropped = drops(&mut link);
    assert!(dropped.len() > 5 && dropped.iter().all(|&(_, reason, id)| reason == Early && id < 600));
}

//= 8290-5.2.6-1
#[test]
fn ecn_capable_packets_are_marked() {
    let mut link = link(usual());
    (0..300).for_each(|id| link.push(ms(0.0), Plain { ecn: Ecn::Ect0, id, ..of(1, 0) }));
    drain(&mut link);
    assert_eq!(drops(&mut link), []);
    assert_eq!(link.counters().marked.packets, Packets::new(3)); // at 105, 205 and 276 ms
}

//= 8290-4.1-4
#[test]
fn flows_that_share_a_queue_are_one_flow() {
    let mut link = link(FqCoDelParams { flows: 1, ..usual() });
    (0..3).for_each(|n| link.push(ms(0.0), of(1, n)));
    link.push(ms(0.0), of(2, 0));
    assert_eq!(order(&mut link), [100, 101, 102, 200]);
}

//= 8290-4.1-4
#[test]
fn the_hash_differs_from_run_to_run_and_spreads_evenly() {
    // The flows of 64 that share a queue with flow 0 among 8 queues: those that come after its packets.
    let shares = |seed: u64| -> Vec<bool> {
        (1..=64)
            .map(|flow| {
                let params = FqCoDelParams { flows: 8, quantum: Bytes::new(1_000), ..usual() };
                let spec = LinkSpec {
                    rate: RateModel::Fixed(Rate::mbps(8.0)),
                    queue: QueueModel::FqCoDel(params),
                    ..LinkSpec::default()
                };
                let mut link = Link::new(&spec, seed, "f").unwrap();
                (0..4).for_each(|n| link.push(ms(0.0), of(0, n)));
                link.push(ms(0.0), of(flow, 0));
                order(&mut link).last() == Some(&(100 * flow))
            })
            .collect()
    };
    assert_ne!(shares(1), shares(2));
    // An eighth of 20 × 64: 160, sd = sqrt(160 × 7 / 8) = 11.8, and flow 0's own queue once per seed.
    let all: usize = (1..=20).map(|seed| shares(seed).iter().filter(|&&s| s).count()).sum();
    assert!((all as f64 - 160.0).abs() < 4.0 * 11.8, "{all}");
}
