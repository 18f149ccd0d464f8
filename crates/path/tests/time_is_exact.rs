//! When packets leave: serialization by hand and by definition.

mod common;

use common::*;
use fairpace_path::{DelayModel, Link, LinkSpec, Plain, QueueModel, RateModel};
use fairpace_units::{Bytes, Class, Duration, Instant, Packets, Rate};
use proptest::prelude::*;

fn link(rate: RateModel) -> Link<Plain> {
    Link::new(&LinkSpec { rate, ..LinkSpec::default() }, 1, "link").unwrap()
}

fn schedule(entries: &[(f64, f64)]) -> RateModel {
    RateModel::Schedule(entries.iter().map(|&(at, mbps)| (ms(at), Rate::mbps(mbps))).collect())
}

#[test]
fn thirteen_thousand_packets_at_1300_per_second_take_ten_seconds_to_the_nanosecond() {
    // One takes 769,230.77 ns: rounded each for itself they would be 3 us late.
    let mut link = link(RateModel::Fixed(Rate::packets_per_second(1_300.0, Bytes::new(1_000))));
    for id in 0..13_000 {
        link.push(Instant::ZERO, normal(id));
    }
    let out = drain(&mut link);
    assert_eq!(out[0].0, Instant::from_nanos(769_231)); // rounded up: never early
    assert_eq!(out[12_999].0, ms(10_000.0));
}

#[test]
fn a_packet_under_way_finishes_its_remaining_bits_at_the_new_rate() {
    // 8,000 bits: 1.5 ms at 2 Mbit/s are 3,000; the other 5,000 at 0.8 Mbit/s take 6.25 ms.
    let mut slower = link(schedule(&[(0.0, 2.0), (1.5, 0.8)]));
    slower.push(ms(0.0), normal(1));
    assert_eq!(drain(&mut slower), [(ms(7.75), 1)]);
    // Through three rates: 2,000 + 4,000 bits in the first 3 ms, 2,000 at 8 Mbit/s.
    let mut faster = link(schedule(&[(0.0, 1.0), (2.0, 4.0), (3.0, 8.0)]));
    faster.push(ms(0.0), normal(1));
    assert_eq!(drain(&mut faster), [(ms(3.25), 1)]);
}

#[test]
fn an_arrival_within_the_last_nanosecond_waits_for_its_fraction() {
    // 769,230.77 ns each; the second arrives 0.77 ns before the first is done.
    let mut link = link(RateModel::Fixed(Rate::packets_per_second(1_300.0, Bytes::new(1_000))));
    let at = Instant::from_nanos;
    let arrivals = [(at(0), normal(1)), (at(769_230), normal(2))];
    assert_eq!(run(&mut link, arrivals), [(at(769_231), 1), (at(1_538_462), 2)]);
}

#[test]
fn work_of_a_fraction_of_a_nanosecond_is_left_for_the_next_rate() {
    // The link stalls 0.77 ns before the packet is done: it waits for the link to come back.
    let (rate, at) = (Rate::packets_per_second(1_300.0, Bytes::new(1_000)), Instant::from_nanos);
    let entries = vec![(at(0), rate), (at(769_230), Rate::ZERO), (at(10_000_000), rate)];
    let mut link = link(RateModel::Schedule(entries));
    assert_eq!(run(&mut link, [(at(0), normal(1))]), [(at(10_000_001), 1)]);
}

#[test]
fn rate_zero_stalls_the_packet_in_hand_until_the_next_change() {
    let mut link = link(schedule(&[(0.0, 8.0), (0.5, 0.0), (100.0, 8.0)]));
    link.push(ms(0.0), normal(1));
    link.push(ms(50.0), normal(2));
    assert_eq!(drain(&mut link), [(ms(100.5), 1), (ms(101.5), 2)]);
}

#[test]
fn a_link_that_stays_at_rate_zero_never_delivers_and_says_so() {
    for queue in [drop_tail(5), two_priority(5)] {
        let rate = schedule(&[(0.0, 8.0), (0.5, 0.0)]);
        let mut link = Link::new(&LinkSpec { rate, queue, ..LinkSpec::default() }, 1, "link").unwrap();
        link.push(ms(0.0), normal(1));
        link.push(ms(0.0), normal(2));
        assert_eq!(link.next(), Instant::NEVER);
        assert_eq!(link.pop(ms(1e9)), None);
        assert_eq!((link.queue_len(), link.inside()), (2, 2));
    }
}

#[test]
fn an_idle_transmitter_does_not_save_up_time() {
    let mut link = link(RateModel::Fixed(Rate::mbps(8.0)));
    let arrivals = [(ms(0.0), normal(1)), (ms(10.0), normal(2)), (ms(10.0), normal(3))];
    assert_eq!(run(&mut link, arrivals), [(ms(1.0), 1), (ms(11.0), 2), (ms(12.0), 3)]);
}

#[test]
fn the_capacity_counts_the_packet_in_transmission_as_ns2_does() {
    // ns-2 with queue-limit 50 sends one packet and lets 49 wait; the 51st of a burst is dropped.
    let spec = LinkSpec { rate: RateModel::Fixed(Rate::mbps(8.0)), queue: drop_tail(50), ..LinkSpec::default() };
    let mut link = Link::new(&spec, 1, "link").unwrap();
    for id in 0..60 {
        link.push(ms(0.0), normal(id));
    }
    assert_eq!(link.queue_len(), 50);
    assert_eq!(link.counters().max_queue, Packets::new(50));
    assert_eq!(drain(&mut link).len(), 50);
}

#[test]
fn a_wire_of_unlimited_rate_holds_nothing_back_and_has_no_queue() {
    let spec = LinkSpec { delay: DelayModel::constant(span(5.0)), queue: drop_tail(1), ..LinkSpec::default() };
    let mut link = Link::new(&spec, 1, "link").unwrap();
    for id in 0..3 {
        link.push(ms(1.0), normal(id));
    }
    assert_eq!(drain(&mut link), [(ms(6.0), 0), (ms(6.0), 1), (ms(6.0), 2)]);
    assert_eq!(link.counters().max_queue, Packets::ZERO);
    assert_eq!(link.capacity_between(ms(0.0), ms(1.0)), None);
}

#[test]
fn the_capacity_of_a_schedule_can_be_asked_for() {
    let link = link(schedule(&[(0.0, 2.0), (12_000.0, 0.8), (20_000.0, 2.0)]));
    assert_eq!(link.capacity_at(ms(11_999.0)), Rate::mbps(2.0));
    assert_eq!(link.capacity_at(ms(12_000.0)), Rate::mbps(0.8));
    // 12 s at 2 and 8 s at 0.8 Mbit/s, then 10 s at 2.
    assert_eq!(link.capacity_between(ms(0.0), ms(30_000.0)), Some(24e6 + 6.4e6 + 20e6));
}

#[test]
fn a_packet_larger_than_a_piece_takes_its_exact_time() {
    // 3 MiB + 1 byte at 1 Mbit/s: 25,165,832 bits.
    let mut link = link(RateModel::Fixed(Rate::mbps(1.0)));
    link.push(ms(0.0), packet(1, Class::Normal, 3 * 1_048_576 + 1));
    assert_eq!(drain(&mut link), [(Instant::from_nanos(25_165_832_000), 1)]);
}

#[test]
fn the_measured_window_is_the_difference_of_two_copies() {
    let mut link = link(RateModel::Fixed(Rate::mbps(8.0)));
    link.push(ms(0.0), normal(1));
    link.advance(ms(10.0));
    let (before, _) = (link.counters(), link.restart_maximum());
    link.push(ms(12.0), normal(2));
    link.advance(ms(14.0));
    let window = link.counters().since(&before);
    assert_eq!(window.elapsed(), span(4.0));
    assert_eq!((window.utilization(), window.mean_queue()), (0.25, 0.25)); // 1 of 4 ms
    assert_eq!(window.total().offered.packets, Packets::new(1));
    assert_eq!(window.max_queue, Packets::new(1));
}

proptest! {
    #[test]
    fn n_packets_in_a_row_take_n_times_the_exact_time(
        bps in 1_000_u64..10_000_000_000, size in 1_u64..3_000, n in 1_u64..2_000, start in 0..1_000_000_000_u64,
    ) {
        let mut link = link(RateModel::Fixed(Rate::bps(bps as f64)));
        for id in 0..n {
            link.push(Instant::from_nanos(start), packet(id, Class::Normal, size));
        }
        let out = drain(&mut link);
        let exact = (u128::from(n * size) * 8_000_000_000).div_ceil(u128::from(bps)) as u64;
        prop_assert_eq!(out.last().unwrap().0, Instant::from_nanos(start + exact));
    }

    #[test]
    fn no_window_ever_carries_more_than_the_rate_and_nothing_comes_out_early(
        rates in prop::collection::vec((1_u64..50, 0.0..20.0_f64), 0..5),
        arrivals in prop::collection::vec((0..3_000_u64, 1..1_600_u64, any::<bool>()), 2..60),
        two in any::<bool>(),
    ) {
        let mut entries = vec![(Instant::ZERO, Rate::mbps(5.0))];
        for (after, mbps) in rates {
            entries.push((entries.last().unwrap().0 + Duration::from_millis(after), Rate::mbps(mbps)));
        }
        entries.push((entries.last().unwrap().0 + Duration::from_millis(10), Rate::mbps(3.0)));
        let queue = if two { two_priority(10) } else { QueueModel::default() };
        let delay = DelayModel::constant(span(7.0));
        let mut link = Link::new(&LinkSpec { rate: RateModel::Schedule(entries), queue, delay, ..LinkSpec::default() }, 1, "l").unwrap();
        let (mut now, mut sent) = (Instant::ZERO, Vec::new());
        for &(after_us, size, is_low) in &arrivals {
            now += Duration::from_micros(after_us);
            sent.push((now, size, if is_low { Class::Low } else { Class::Normal }));
        }
        let out = run(&mut link, sent.iter().enumerate().map(|(id, &(at, size, class))| (at, packet(id as u64, class, size))));
        // Bits that arrived after packet i and up to packet j left between the two departures.
        let left: Vec<(Instant, u64)> = out.iter().map(|&(at, id)| (at - span(7.0), sent[id as usize].1 * 8)).collect();
        for i in 0..left.len() {
            let mut bits = 0;
            for j in i + 1..left.len() {
                bits += left[j].1;
                // Departures are rounded up by less than 1 ns, which is 0.02 bit at 20 Mbit/s.
                let room = link.capacity_between(left[i].0, left[j].0).unwrap() + 0.021;
                prop_assert!(bits as f64 <= room, "{} bits in {} from {} to {}", bits, room, left[i].0, left[j].0);
            }
        }
        for (at, id) in out {
            let (arrival, size, _) = sent[id as usize];
            let bits = link.capacity_between(arrival, at - span(7.0)).unwrap();
            prop_assert!(bits >= size as f64 * 8.0 - 1e-3);
        }
    }
}
