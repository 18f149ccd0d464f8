//! Times without signal, by hand: 8 Mbit/s and 1,000 bytes, 1 ms each, 100 ms of propagation.

mod common;

use common::*;
use fairpace_path::{DelayModel, DropReason, InFlight, Link, LinkSpec, LossModel, Outage, OutageAt, Plain, RateModel};
use fairpace_units::{Probability, Rate};

fn outage(from: f64, to: f64) -> Outage {
    Outage::of(ms(from), ms(to).since(ms(from)))
}

/// One of the whole link.
fn blackout(from: f64, to: f64) -> Outage {
    Outage { in_flight: InFlight::Lost, ..outage(from, to) }
}

fn survivors(outage: Vec<Outage>, outage_at: OutageAt) -> Vec<u64> {
    let spec = LinkSpec {
        rate: RateModel::Fixed(Rate::mbps(8.0)),
        delay: DelayModel::constant(span(100.0)),
        outage,
        outage_at,
        ..LinkSpec::default()
    };
    let mut link: Link<Plain> = Link::new(&spec, 1, "link").unwrap();
    // Packet n is transmitted from n to n + 1 ms.
    for id in 0..10 {
        link.push(ms(0.0), normal(id));
    }
    let out = drain(&mut link).into_iter().map(|(_, id)| id).collect();
    link.advance(ms(1_000.0));
    let total = link.counters().total();
    assert_eq!(total.dropped(DropReason::Outage), total.dropped_in_all());
    out
}

#[test]
fn a_packet_is_lost_if_any_part_of_its_transmission_is_dark() {
    assert_eq!(survivors(vec![outage(2.5, 4.5)], OutageAt::Transmitter), [0, 1, 5, 6, 7, 8, 9]);
    assert_eq!(survivors(vec![outage(2.5, 2.6)], OutageAt::Transmitter), [0, 1, 3, 4, 5, 6, 7, 8, 9]);
}

#[test]
fn an_outage_that_begins_as_the_last_bit_leaves_or_ends_as_the_first_does_no_harm() {
    assert_eq!(survivors(vec![outage(3.0, 5.0)], OutageAt::Transmitter), [0, 1, 2, 5, 6, 7, 8, 9]);
}

#[test]
fn at_the_receiver_the_packets_in_flight_are_lost_instead() {
    // Packet n arrives from 100 + n to 101 + n ms.
    assert_eq!(survivors(vec![outage(2.5, 4.5)], OutageAt::Receiver), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    assert_eq!(survivors(vec![outage(102.5, 104.5)], OutageAt::Receiver), [0, 1, 5, 6, 7, 8, 9]);
}

#[test]
fn an_outage_of_the_whole_link_also_loses_what_is_in_flight() {
    // Packet n is on its way from n to 101 + n ms, whichever end an ordinary outage would be at.
    for at in [OutageAt::Transmitter, OutageAt::Receiver] {
        assert_eq!(survivors(vec![blackout(2.5, 4.5)], at), [5, 6, 7, 8, 9], "sent and not yet there: 0 to 4");
        assert_eq!(survivors(vec![blackout(4.0, 4.5)], at), [5, 6, 7, 8, 9], "0 to 3 in flight, 4 in transmission");
        assert_eq!(survivors(vec![blackout(102.5, 104.5)], at), [0, 1], "the last bits of 2 to 9 are not there yet");
        assert_eq!(survivors(vec![blackout(105.0, 105.5)], at), [0, 1, 2, 3, 4], "4 is there as it begins");
        assert_eq!(survivors(vec![blackout(110.0, 200.0)], at), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    }
    // Each outage has a kind of its own.
    let both = vec![outage(7.0, 8.0), blackout(2.0, 3.0)];
    assert_eq!(survivors(both, OutageAt::Transmitter), [3, 4, 5, 6, 8, 9]);
}

#[test]
fn outages_may_come_unsorted_overlap_and_be_empty() {
    let mixed = vec![outage(7.0, 8.0), outage(1.0, 3.0), outage(2.0, 4.0), outage(5.5, 5.5)];
    assert_eq!(survivors(mixed, OutageAt::Transmitter), [0, 4, 5, 6, 8, 9]);
}

#[test]
fn on_an_unlimited_link_the_instant_of_sending_decides() {
    let spec = LinkSpec { outage: vec![outage(10.0, 20.0)], ..LinkSpec::default() };
    let mut link: Link<Plain> = Link::new(&spec, 1, "link").unwrap();
    for (id, t) in [9.0, 10.0, 19.9, 20.0].into_iter().enumerate() {
        link.push(ms(t), normal(id as u64));
    }
    assert_eq!(drain(&mut link).iter().map(|&(_, id)| id).collect::<Vec<_>>(), [0, 3]);
}

#[test]
fn a_packet_that_is_damaged_in_an_outage_counts_as_outage_and_still_draws() {
    let run = |outage| {
        let loss = LossModel::Bernoulli(Probability::new(0.5).unwrap());
        let mut link: Link<Plain> = Link::new(&LinkSpec { outage, loss, ..LinkSpec::default() }, 3, "link").unwrap();
        for id in 0..200 {
            link.push(ms(id as f64), normal(id));
        }
        let out: Vec<u64> = drain(&mut link).iter().map(|&(_, id)| id).collect();
        (out, link.counters().dropped(DropReason::Outage).packets.get())
    };
    let (clear, none) = run(vec![]);
    let (dark, fifty) = run(vec![outage(50.0, 100.0)]);
    assert_eq!((none, fifty), (0, 50));
    let outside = |id: &u64| !(50..100).contains(id);
    assert_eq!(dark, clear.into_iter().filter(outside).collect::<Vec<_>>());
}
