//! The parts that queues are made of: room, packets in order of arrival, and what a queue is asked and answers.

use crate::{Capacity, Datagram, DropReason, LinkError, QueueModel};
use fairpace_units::{Duration, Instant};
use std::collections::VecDeque;

/// A packet that leaves the queue for the transmitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Next<T> {
    pub(crate) arrival: Instant,
    pub(crate) packet: T,
    /// Whether the queue has just marked it.
    pub(crate) marked: bool,
}

/// Packets in order of arrival, and their bytes together.
#[derive(Clone, Debug)]
pub(crate) struct Fifo<T> {
    packets: VecDeque<(Instant, T)>,
    bytes: u64,
}

impl<T> Default for Fifo<T> {
    fn default() -> Self {
        Fifo { packets: VecDeque::new(), bytes: 0 }
    }
}

impl<T> Fifo<T> {
    pub(crate) fn len(&self) -> usize {
        self.packets.len()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Instant, &T)> {
        self.packets.iter().map(|(arrival, packet)| (*arrival, packet))
    }
}

impl<T: Datagram> Fifo<T> {
    pub(crate) fn push(&mut self, now: Instant, packet: T) {
        self.bytes += packet.size().get();
        self.packets.push_back((now, packet));
    }

    pub(crate) fn pop(&mut self) -> Option<(Instant, T)> {
        let head = self.packets.pop_front()?;
        self.bytes -= head.1.size().get();
        Some(head)
    }
}

/// The packets ahead of an arrival in a queue that admits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Occupancy {
    /// In queue and transmitter, for the hard limit.
    pub(crate) held: Held,
    /// Behind the transmitter.
    pub(crate) waiting: Held,
    /// How many packets of mean size could have left since the link fell idle; zero if it did not.
    pub(crate) could_have_left: u64,
}

/// The decision of an admitting queue about an arrival.
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

/// The packets and bytes that the queue and the transmitter hold together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
}

impl Room {
    pub(crate) fn new(capacity: Capacity) -> Result<Self, LinkError> {
        let (packets, bytes) = match capacity {
            Capacity::Packets(n) => (n.get(), u64::MAX),
            Capacity::Bytes(n) => (u64::MAX, n.get()),
            Capacity::Unlimited => (u64::MAX, u64::MAX),
        };
        if packets == 0 || bytes == 0 { Err(LinkError::NoCapacity) } else { Ok(Room { packets, bytes }) }
    }

    /// Whether so much does not exceed it.
    #[inline]
    pub(crate) fn holds(self, held: Held) -> bool {
        held.packets <= self.packets && held.bytes <= self.bytes
    }

    /// How many packets of that size there is room for.
    pub(crate) fn packets_of(self, size: u64) -> u64 {
        self.packets.min(self.bytes.checked_div(size).unwrap_or(u64::MAX))
    }

    /// Whether a packet of `size` finds room beside what is held.
    #[inline]
    pub(crate) fn fits(self, held: Held, size: u64) -> bool {
        held.packets < self.packets && held.bytes.saturating_add(size) <= self.bytes
    }
}

/// Refuses parameters that are no time: those of zero.
pub(crate) fn check_times(times: [(&'static str, Duration); 2]) -> Result<(), LinkError> {
    let zero = times.into_iter().find(|(_, time)| time.is_zero());
    zero.map_or(Ok(()), |(field, _)| Err(LinkError::BadQueue { field, found: 0.0, allowed: "above 0 s" }))
}

/// Refuses gains of a controller of the wait (PIE, DualPI2) out of their range.
pub(crate) fn check_gains(alpha: f64, beta: f64) -> Result<(), LinkError> {
    let gains = [("alpha", alpha), ("beta", beta)];
    let bad = gains.into_iter().find(|(_, gain)| !QueueModel::GAINS.contain(*gain));
    bad.map_or(Ok(()), |(field, found)| Err(LinkError::BadQueue { field, found, allowed: "from 0 to 1000000000" }))
}
