//! Every way in which a link can be refused, in its exact words; RED's are tested with it.

mod common;

use common::*;
use fairpace_path::{
    Capacity, CoDelParams, DelayModel, DualPi2Params, FqCoDelParams, Link, LinkSpec, PieParams, Plain, QueueModel,
    RateModel,
};
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
    let (zero, usual) = (Duration::ZERO, CoDelParams::new(Capacity::Unlimited));
    let (codel, fq) = (QueueModel::CoDel, FqCoDelParams::new(Capacity::Unlimited));
    let pie = PieParams::new(Capacity::Unlimited, Bytes::new(1_000));
    let dual = DualPi2Params::new(Capacity::Unlimited);
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
        (queue(codel(CoDelParams { target: zero, ..usual })), "`queue.target` is 0; it must be above 0 s"),
        (queue(codel(CoDelParams { interval: zero, ..usual })), "`queue.interval` is 0; it must be above 0 s"),
        (queue(codel(CoDelParams { mtu: Bytes::ZERO, ..usual })), "`queue.mtu` is 0; it must be at least 1 byte"),
        (queue(QueueModel::FqCoDel(FqCoDelParams { flows: 0, ..fq })), "`queue.flows` is 0; it must be at least 1"),
        (
            queue(QueueModel::FqCoDel(FqCoDelParams { quantum: Bytes::ZERO, ..fq })),
            "`queue.quantum` is 0; it must be at least 1 byte",
        ),
        (
            queue(QueueModel::FqCoDel(FqCoDelParams { codel: CoDelParams { mtu: Bytes::ZERO, ..usual }, ..fq })),
            "`queue.mtu` is 0; it must be at least 1 byte",
        ),
        (queue(QueueModel::Pie(PieParams { target: zero, ..pie })), "`queue.target` is 0; it must be above 0 s"),
        (
            queue(QueueModel::Pie(PieParams { update_interval: zero, ..pie })),
            "`queue.update_interval` is 0; it must be above 0 s",
        ),
        (
            queue(QueueModel::Pie(PieParams { alpha: -1.0, ..pie })),
            "`queue.alpha` is -1; it must be from 0 to 1000000000",
        ),
        (
            queue(QueueModel::Pie(PieParams { beta: f64::NAN, ..pie })),
            "`queue.beta` is NaN; it must be from 0 to 1000000000",
        ),
        (
            queue(QueueModel::DualPi2(DualPi2Params { target: zero, ..dual })),
            "`queue.target` is 0; it must be above 0 s",
        ),
        (
            queue(QueueModel::DualPi2(DualPi2Params { alpha: -1.0, ..dual })),
            "`queue.alpha` is -1; it must be from 0 to 1000000000",
        ),
        (
            queue(QueueModel::Pie(PieParams { mark_threshold: 1.1, ..pie })),
            "`queue.mark_threshold` is 1.1; it must be from 0 to 1",
        ),
        (
            queue(QueueModel::Pie(PieParams { mean_packet_size: Bytes::ZERO, ..pie })),
            "`queue.mean_packet_size` is 0; it must be at least 1 byte",
        ),
        (delay(long, Duration::ZERO), "`delay.propagation` is 1000000001 s; the longest allowed is 1000000000 s"),
        (delay(Duration::ZERO, long), "`delay.jitter` is 1000000001 s; the longest allowed is 1000000000 s"),
    ] {
        assert_eq!(Link::<Plain>::new(&spec, 1, "link").unwrap_err().to_string(), message);
    }
    assert!(Link::<Plain>::new(&rate(RateModel::Fixed(Rate::bps(0.001))), 1, "link").is_ok());
}
