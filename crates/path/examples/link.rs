//! Packets through one link: a queue of ten, 8 Mbit/s, one in ten lost, 20 ms. A driver pushes, waits and pops.
//!
//! `cargo run -p fairpace-path --example link`

use fairpace_path::{
    Capacity, DelayModel, DropReason, Link, LinkError, LinkSpec, LossModel, Plain, QueueModel, RateModel,
};
use fairpace_units::{Bytes, Duration, Instant, Packets, Probability, Rate};

/// Packets that arrive at the link.
const PACKETS: u64 = 2_500;

fn main() -> Result<(), LinkError> {
    let spec = LinkSpec {
        rate: RateModel::Fixed(Rate::mbps(8.0)),
        queue: QueueModel::DropTail { capacity: Capacity::Packets(Packets::new(10)) },
        loss: LossModel::Bernoulli(Probability::new(0.1).expect("within [0, 1]")),
        delay: DelayModel::constant(Duration::from_millis(20)),
        ..LinkSpec::default()
    };
    // The seed and the name give the link its random numbers: the same losses in every run.
    let mut link = Link::new(&spec, 1, "bottleneck")?;

    // A packet of 1,000 bytes takes 1 ms: for two seconds more arrive than the link can send.
    let (mut sent, mut received, mut next_arrival) = (0, 0, Instant::ZERO);
    while next_arrival.min(link.next()) != Instant::NEVER {
        let now = next_arrival.min(link.next());
        while link.pop(now).is_some() {
            received += 1;
        }
        if now == next_arrival {
            link.push(now, Plain::new(Bytes::new(1_000)));
            sent += 1;
            next_arrival = if sent < PACKETS { now + Duration::from_micros(800) } else { Instant::NEVER };
        }
    }

    let dropped = |reason| link.counters().dropped(reason).packets.get();
    let (full, lost) = (dropped(DropReason::QueueFull), dropped(DropReason::LinkError));
    println!("{sent} sent, {received} received; {full} found the queue full, {lost} were lost on the way");
    assert_eq!(sent, received + full + lost, "nothing else can become of a packet");
    Ok(())
}

#[test]
fn the_example_runs() {
    main().expect("the link can be built");
}
