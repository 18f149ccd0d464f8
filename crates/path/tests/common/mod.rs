//! Short words for the tests that are worked by hand.
#![allow(dead_code, reason = "each test file uses some of them")]

use fairpace_path::{Capacity, DropReason, Link, Plain, QueueModel};
use fairpace_units::{Bytes, Class, Duration, Instant, Packets};

pub(crate) fn ms(t: f64) -> Instant {
    Instant::from_secs_f64(t / 1e3)
}

pub(crate) fn span(t: f64) -> Duration {
    ms(t).since(Instant::ZERO)
}

pub(crate) fn packet(id: u64, class: Class, size: u64) -> Plain {
    Plain { class, id, ..Plain::new(Bytes::new(size)) }
}

pub(crate) fn normal(id: u64) -> Plain {
    packet(id, Class::Normal, 1_000)
}

pub(crate) fn low(id: u64) -> Plain {
    packet(id, Class::Low, 1_000)
}

pub(crate) fn drop_tail(packets: u64) -> QueueModel {
    QueueModel::DropTail { capacity: Capacity::Packets(Packets::new(packets)) }
}

pub(crate) fn two_priority(packets: u64) -> QueueModel {
    QueueModel::TwoPriority { capacity: Capacity::Packets(Packets::new(packets)) }
}

/// Everything that comes out, with its instant, as an engine would see it.
pub(crate) fn drain(link: &mut Link<Plain>) -> Vec<(Instant, u64)> {
    run(link, [])
}

/// Pushes the packets at their instants, and takes out everything on time.
pub(crate) fn run(link: &mut Link<Plain>, arrivals: impl IntoIterator<Item = (Instant, Plain)>) -> Vec<(Instant, u64)> {
    let mut out = Vec::new();
    let mut take_until = |link: &mut Link<Plain>, until: Instant| {
        while link.next() < until {
            let now = link.next();
            while let Some(packet) = link.pop(now) {
                out.push((now, packet.id));
            }
        }
    };
    for (at, packet) in arrivals {
        take_until(link, at);
        link.push(at, packet);
    }
    take_until(link, Instant::NEVER);
    out
}

pub(crate) fn drops(link: &mut Link<Plain>) -> Vec<(Instant, DropReason, u64)> {
    std::iter::from_fn(|| link.take_dropped()).map(|(at, reason, p)| (at, reason, p.id)).collect()
}
