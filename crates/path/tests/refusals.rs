//! Every way in which a link can be refused, in its exact words.

mod common;

use common::*;
use fairpace_path::{Capacity, DelayModel, Link, LinkSpec, Plain, QueueModel, RateModel};
use fairpace_units::{Bytes, Duration, Packets, Rate};

#[test]
fn every_refusal_names_the_field_what_was_found_and_what_is_allowed() {
    let rate = |rate| LinkSpec { rate, ..LinkSpec::default() };
    let schedule = |entries: &[(f64, f64)]| {
        rate(RateModel::Schedule(entries.iter().map(|&(at, mbps)| (ms(at), Rate::mbps(mbps))).collect()))
    };
    let queue = |queue| LinkSpec { queue, ..LinkSpec::default() };
    let delay = |propagation, jitter| LinkSpec {
        delay: DelayModel { propagation, jitter, reorder: false },
        ..LinkSpec::default()
    };
    let long = Duration::from_secs(1_000_000_001);
    for (spec, message) in [
        (
            rate(RateModel::Fixed(Rate::ZERO)),
            "`rate` is 0 bit/s, at which nothing would ever leave; the least is 0.001 bit/s (for a dead time use an \
             outage or a schedule)",
        ),
        (schedule(&[]), "`rate` is a schedule without entries; it needs at least one, at 0 s"),
        (schedule(&[(1.0, 1.0)]), "`rate[0]` is at 0.001000 s; the first entry of a schedule must be at 0 s"),
        (
            schedule(&[(0.0, 1.0), (5.0, 2.0), (5.0, 1.0)]),
            "`rate[2]` is at 0.005000 s, not after the entry before it at 0.005000 s; a schedule's instants must increase",
        ),
        (
            schedule(&[(0.0, 0.0), (5.0, 0.0)]),
            "`rate` is zero in every entry of the schedule; at least one must be 0.001 bit/s or more",
        ),
        (
            queue(QueueModel::DropTail { capacity: Capacity::Packets(Packets::ZERO) }),
            "`queue.capacity` is 0; the least is 1 packet or 1 byte (the packet in transmission counts)",
        ),
        (
            queue(QueueModel::TwoPriority { capacity: Capacity::Bytes(Bytes::ZERO) }),
            "`queue.capacity` is 0; the least is 1 packet or 1 byte (the packet in transmission counts)",
        ),
        (delay(long, Duration::ZERO), "`delay.propagation` is 1000000001 s; the longest allowed is 1000000000 s"),
        (delay(Duration::ZERO, long), "`delay.jitter` is 1000000001 s; the longest allowed is 1000000000 s"),
    ] {
        assert_eq!(Link::<Plain>::new(&spec, 1, "link").unwrap_err().to_string(), message);
    }
    assert!(Link::<Plain>::new(&rate(RateModel::Fixed(Rate::bps(0.001))), 1, "link").is_ok());
}
