//! Who waits, and who goes when there is no room: one file per queue.
//!
//! Both serve first in, first out. A drop-tail queue never takes back what it admitted, so its
//! departures are known on arrival; a two-priority queue may push a waiting packet out, so it
//! keeps packets until their transmission begins.

pub(crate) mod drop_tail;
pub(crate) mod red;
pub(crate) mod two_priority;

use crate::{Capacity, DropReason, LinkError, QueueModel};
use drop_tail::DropTail;
use fairpace_units::RandomStream;
use red::Red;
use two_priority::TwoPriority;

/// The state of a [`QueueModel`].
#[derive(Clone, Debug)]
pub(crate) enum Queue<T> {
    DropTail(DropTail),
    Red(Box<Red>),
    TwoPriority(TwoPriority<T>),
}

impl<T> Queue<T> {
    /// The queue of the link called `link`; its random stream has the link's name and its own.
    pub(crate) fn new(model: &QueueModel, seed: u64, link: &str) -> Result<Self, LinkError> {
        let random = |name| RandomStream::named(seed, &format!("{link}.{name}"));
        Ok(match model {
            QueueModel::DropTail { capacity } => Queue::DropTail(DropTail::new(Room::new(*capacity)?)),
            QueueModel::Red(params) => Queue::Red(Box::new(Red::new(params, random("red"))?)),
            QueueModel::TwoPriority { capacity } => Queue::TwoPriority(TwoPriority::new(Room::new(*capacity)?)),
        })
    }
}

/// What a queue that decides on arrival does with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Admit,
    /// Admit it with "congestion experienced".
    Mark,
    Drop(DropReason),
}

/// A [`Capacity`] as two limits, of which one is out of reach.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    packets: u64,
    bytes: u64,
}

/// What the queue and the transmitter hold together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
}

impl Room {
    fn new(capacity: Capacity) -> Result<Self, LinkError> {
        let (packets, bytes) = match capacity {
            Capacity::Packets(n) => (n.get(), u64::MAX),
            Capacity::Bytes(n) => (u64::MAX, n.get()),
            Capacity::Unlimited => (u64::MAX, u64::MAX),
        };
        if packets == 0 || bytes == 0 { Err(LinkError::NoCapacity) } else { Ok(Room { packets, bytes }) }
    }

    /// Whether a packet of `size` finds room beside what is held.
    #[inline]
    pub(crate) fn fits(self, held: Held, size: u64) -> bool {
        held.packets < self.packets && held.bytes.saturating_add(size) <= self.bytes
    }
}
