//! RED in a link, by hand: 8 Mbit/s and 1,000 bytes, so one packet leaves each millisecond.

mod common;

use common::*;
use fairpace_path::DropReason::{Early, QueueFull};
use fairpace_path::{Capacity, Datagram, Link, LinkSpec, Plain, QueueModel, RateModel, RedParams, Thresholds};
use fairpace_units::{Bytes, Ecn, Packets, Rate};

fn link(params: RedParams) -> Link<Plain> {
    let rate = RateModel::Fixed(Rate::mbps(8.0));
    let mut link =
        Link::new(&LinkSpec { rate, queue: QueueModel::Red(params), ..LinkSpec::default() }, 1, "r").unwrap();
    link.record_drops(true);
    link
}

/// Weight 1, so that the average is the queue; certain drops from `max` on.
fn steep(capacity: u64, min: u64, max: u64) -> RedParams {
    RedParams {
        thresholds: Thresholds::Packets { min: Packets::new(min), max: Packets::new(max) },
        weight: 1.0,
        gentle: false,
        ..RedParams::for_capacity(Capacity::Packets(Packets::new(capacity)), Bytes::new(1_000))
    }
}

#[test]
fn the_packet_in_transmission_does_not_count_in_the_average() {
    let mut link = link(steep(100, 1, 3));
    for id in 1..=6 {
        link.push(ms(0.0), normal(id));
    }
    // Three wait behind the first when the fifth and the sixth come.
    assert_eq!(drops(&mut link), [(ms(0.0), Early, 5), (ms(0.0), Early, 6)]);
}

#[test]
fn the_packet_in_transmission_counts_at_the_hard_limit() {
    let mut link = link(steep(3, 5, 15));
    for id in 1..=4 {
        link.push(ms(0.0), normal(id));
    }
    assert_eq!(drops(&mut link), [(ms(0.0), QueueFull, 4)]);
}

#[test]
fn the_average_falls_while_the_link_is_idle_by_the_packets_that_could_have_left() {
    let thresholds = Thresholds::Bytes { min: Bytes::new(2_000), max: Bytes::new(3_090) };
    let mut link = link(RedParams { thresholds, weight: 0.5, ..steep(100, 1, 2) });
    let mut burst = |at: f64| {
        for id in 1..=6 {
            link.push(ms(at), normal(id));
        }
        drops(&mut link)
    };
    // Found waiting: 0, 0, 1, 2, 3, 4 kB. Averages 0, 0, 500, 1250, 2125, 3062.5: just not enough.
    assert_eq!(burst(0.0), []);
    // The last leaves at 6 ms. At 8.9 ms two more could have left: 3062.5 / 4 = 765.6, and the
    // arrivals make it 383, 191, 596, 1298, 2149, 3074.
    assert_eq!(burst(8.9), []);
    // The last leaves at 14.9 ms: with no idle time 1537, 769, 884, 1442, 2221, 3110.
    assert_eq!(burst(14.9), [(ms(14.9), Early, 6)]);
}

#[test]
fn marks_are_set_and_counted_and_only_on_packets_that_can_bear_them() {
    let params = RedParams { max_probability: 1.0, wait: false, ecn: true, ..steep(100, 1, 50) };
    let mut link = link(params);
    for id in 0..400 {
        let ecn = if id % 2 == 0 { Ecn::Ect0 } else { Ecn::NotEct };
        link.push(ms(id as f64 * 0.9), Plain { ecn, ..normal(id) });
    }
    link.advance(ms(1_000.0));
    let mut marked = Vec::new();
    while let Some(packet) = link.pop(ms(1_000.0)) {
        if packet.ecn() == Ecn::Ce {
            marked.push(packet.id);
        }
    }
    assert!(marked.len() > 5 && marked.iter().all(|id| id % 2 == 0), "{marked:?}");
    assert_eq!(link.counters().marked.packets, Packets::new(marked.len() as u64));
    let dropped = drops(&mut link);
    assert!(dropped.len() > 5 && dropped.iter().all(|&(_, reason, id)| reason == Early && id % 2 == 1));
}

#[test]
fn an_unlimited_link_never_has_a_queue_to_manage() {
    let mut link =
        Link::new(&LinkSpec { queue: QueueModel::Red(steep(1, 1, 2)), ..LinkSpec::default() }, 1, "r").unwrap();
    assert_eq!(run(&mut link, (0..9).map(|id| (ms(0.0), normal(id)))).len(), 9);
}
