//! The two-priority queue by hand: 8 Mbit/s and 1,000 bytes, so one packet leaves each millisecond
//! [rcs §III-A, §V-A].

mod common;

use common::*;
use fairpace_path::DropReason::{PushedOut, QueueFull};
use fairpace_path::{Capacity, Link, LinkSpec, Plain, QueueModel, RateModel};
use fairpace_units::{Bytes, Class, Rate};

fn link(queue: QueueModel) -> Link<Plain> {
    let spec = LinkSpec { rate: RateModel::Fixed(Rate::mbps(8.0)), queue, ..LinkSpec::default() };
    let mut link = Link::new(&spec, 1, "link").unwrap();
    link.record_drops(true);
    link
}

fn order(link: &mut Link<Plain>) -> Vec<u64> {
    drain(link).into_iter().map(|(_, id)| id).collect()
}

#[test]
fn a_normal_arrival_evicts_the_youngest_low_packet_and_joins_the_tail() {
    let mut link = link(two_priority(4));
    // 1 is in transmission; 2 and 4 wait in the low class, 3 in the normal one: full.
    for p in [normal(1), low(2), normal(3), low(4)] {
        link.push(ms(0.0), p);
    }
    link.push(ms(0.5), normal(5));
    assert_eq!(drops(&mut link), [(ms(0.5), PushedOut, 4)]);
    link.push(ms(0.5), normal(6));
    assert_eq!(drops(&mut link), [(ms(0.5), PushedOut, 2)]);
    // First in, first out: 5 and 6 get the room of 4 and 2, not their places.
    assert_eq!(drain(&mut link), [(ms(1.0), 1), (ms(2.0), 3), (ms(3.0), 5), (ms(4.0), 6)]);
}

#[test]
fn a_normal_arrival_to_a_queue_full_of_normal_packets_is_dropped() {
    let mut link = link(two_priority(3));
    for id in 1..=4 {
        link.push(ms(0.0), normal(id));
    }
    assert_eq!(drops(&mut link), [(ms(0.0), QueueFull, 4)]);
    assert_eq!(order(&mut link), [1, 2, 3]);
}

#[test]
fn a_low_arrival_to_a_full_queue_is_dropped_even_if_all_others_are_low() {
    let mut link = link(two_priority(3));
    for id in 1..=4 {
        link.push(ms(0.0), low(id));
    }
    assert_eq!(drops(&mut link), [(ms(0.0), QueueFull, 4)]);
    assert_eq!(order(&mut link), [1, 2, 3]);
}

#[test]
fn the_low_packet_in_transmission_is_not_evicted() {
    let mut link = link(two_priority(1));
    link.push(ms(0.0), low(1));
    link.push(ms(0.9), normal(2));
    assert_eq!(drops(&mut link), [(ms(0.9), QueueFull, 2)]);
    assert_eq!(order(&mut link), [1]);
}

#[test]
fn at_the_instant_of_a_departure_the_next_packet_is_already_in_transmission() {
    let mut link = link(two_priority(2));
    link.push(ms(0.0), normal(1));
    link.push(ms(0.0), low(2));
    // At 1 ms packet 1 leaves and 2 begins: there is room for 3, and 4 finds nothing to evict.
    link.push(ms(1.0), normal(3));
    link.push(ms(1.0), normal(4));
    assert_eq!(drops(&mut link), [(ms(1.0), QueueFull, 4)]);
    assert_eq!(order(&mut link), [1, 2, 3]);
}

#[test]
fn eviction_from_the_head_of_the_waiting_line_leaves_the_rest_in_order() {
    let mut link = link(two_priority(4));
    for p in [normal(1), low(2), normal(3), normal(4)] {
        link.push(ms(0.0), p);
    }
    link.push(ms(0.0), normal(5));
    assert_eq!(drops(&mut link), [(ms(0.0), PushedOut, 2)]);
    assert_eq!(drain(&mut link), [(ms(1.0), 1), (ms(2.0), 3), (ms(3.0), 4), (ms(4.0), 5)]);
}

#[test]
fn one_large_arrival_evicts_as_many_small_ones_as_it_needs_and_no_more() {
    let mut link = link(QueueModel::TwoPriority { capacity: Capacity::Bytes(Bytes::new(2_000)) });
    // 1,000 bytes in transmission, 4 × 200 waiting: 1,800.
    link.push(ms(0.0), normal(1));
    for id in 2..=5 {
        link.push(ms(0.0), packet(id, Class::Low, 200));
    }
    // 600 more need 400 bytes of room: the two youngest go.
    link.push(ms(0.0), packet(6, Class::Normal, 600));
    assert_eq!(drops(&mut link), [(ms(0.0), PushedOut, 5), (ms(0.0), PushedOut, 4)]);
    assert_eq!(link.queue_bytes(), Bytes::new(2_000));
}

#[test]
fn an_arrival_that_would_not_fit_anyway_evicts_nobody() {
    let mut link = link(QueueModel::TwoPriority { capacity: Capacity::Bytes(Bytes::new(2_000)) });
    link.push(ms(0.0), normal(1));
    link.push(ms(0.0), packet(2, Class::Low, 500));
    link.push(ms(0.0), packet(3, Class::Normal, 1_001));
    assert_eq!(drops(&mut link), [(ms(0.0), QueueFull, 3)]);
    assert_eq!(order(&mut link), [1, 2]);
}

#[test]
fn a_drop_tail_queue_takes_no_notice_of_priority() {
    let mut link = link(drop_tail(2));
    for p in [low(1), low(2), normal(3)] {
        link.push(ms(0.0), p);
    }
    assert_eq!(drops(&mut link), [(ms(0.0), QueueFull, 3)]);
    assert_eq!(order(&mut link), [1, 2]);
}

#[test]
fn the_counters_tell_class_and_reason_apart() {
    let mut link = link(two_priority(2));
    for p in [normal(1), low(2), low(3), normal(4), normal(5)] {
        link.push(ms(0.0), p);
    }
    link.advance(ms(2.0));
    let c = link.counters();
    let one = |class, reason| c.class(class).dropped(reason).packets.get();
    assert_eq!((one(Class::Normal, QueueFull), one(Class::Normal, PushedOut)), (1, 0)); // 5
    assert_eq!((one(Class::Low, QueueFull), one(Class::Low, PushedOut)), (1, 1)); // 3, 2
    assert_eq!(c.dropped(QueueFull).bytes, Bytes::new(2_000));
    // Two packets from 0 to 1 ms, one from 1 to 2 ms.
    assert_eq!((c.mean_queue(), c.utilization()), (1.5, 1.0));
    assert_eq!(c.transmitted.packets.get(), 2);
}
