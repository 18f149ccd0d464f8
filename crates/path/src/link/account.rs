//! The account of a link: its counters, made of the few counts that each packet moves.
//!
//! Packets are counted when they depart, when they enter queue and transmitter, and when they are dropped. Offered packets
//! are all of these together; delivered ones are those that have departed, less those lost then and those still on their
//! way. Packets of low priority are counted apart, so those of normal priority are the rest.

use super::cold::Cold;
use super::composed::{Cargo, Composed};
use super::usage::Usage;
use crate::counters::{ClassCounters, Count, LinkCounters};
use crate::queue::Queue;
use crate::queue::parts::Held;
use crate::quick_start::QsCounters;
use crate::{Datagram, DropReason};
use fairpace_units::{Bytes, Class, Instant, Packets};

/// The few counts that each packet moves, as they stand at `now`.
pub(super) struct Account<'a, T> {
    pub(super) now: Instant,
    /// All that has departed.
    pub(super) transmitted: Count,
    /// Packets in queue and transmitter.
    pub(super) held: Held,
    /// Packets that have departed and will come out.
    pub(super) on_the_way: Count,
    /// The largest queue.
    pub(super) maximum: Held,
    /// Time spent so far, and no time in the future.
    pub(super) usage: Usage,
    /// When the last packet departed.
    pub(super) busy_until: Instant,
    pub(super) cold: Option<&'a Cold<T>>,
}

impl<T> Account<'_, T> {
    pub(super) fn counters(self) -> LinkCounters {
        let Account { transmitted, held, cold, .. } = self;
        let now = self.now.as_nanos();
        let busy_until = if held.packets > 0 { now } else { self.busy_until.as_nanos() };
        let drops = cold.map_or_else(Default::default, |cold| cold.drops);
        let [low_offered, low_delivered] = cold.map_or_else(Default::default, |cold| cold.low);
        let dropped = |reasons: &[DropReason]| {
            drops
                .iter()
                .flat_map(|of_class| reasons.iter().map(|reason| of_class[*reason as usize]))
                .fold(Count::default(), Count::plus)
        };
        let held = Count { packets: Packets::new(held.packets), bytes: Bytes::new(held.bytes) };
        let in_queue = dropped(&[DropReason::QueueFull, DropReason::Early, DropReason::PushedOut]);
        let offered = transmitted.plus(held).plus(in_queue);
        let on_the_way = dropped(&[DropReason::LinkError, DropReason::Outage]);
        let delivered = transmitted.minus(on_the_way).minus(self.on_the_way);
        let low = ClassCounters { offered: low_offered, delivered: low_delivered, drops: drops[Class::Low as usize] };
        let normal = ClassCounters {
            offered: offered.minus(low_offered),
            delivered: delivered.minus(low_delivered),
            drops: drops[Class::Normal as usize],
        };
        let mut classes = [normal; 2];
        classes[Class::Low as usize] = low;
        LinkCounters {
            classes,
            transmitted,
            marked: cold.map_or_else(Count::default, |cold| cold.marked),
            max_queue: Packets::new(self.maximum.packets),
            max_queue_bytes: Bytes::new(self.maximum.bytes),
            elapsed_ns: now,
            // Less than nothing while packets have been pushed early.
            busy_ns: busy_until.saturating_sub(self.usage.idle_ns),
            packet_ns: self.usage.packet_ns,
            byte_ns: self.usage.byte_ns,
        }
    }
}

impl<T: Datagram> Composed<T> {
    /// The counts up to the latest time that any call has told.
    pub(super) fn counters(&self) -> LinkCounters {
        let now = self.now.as_nanos();
        // Time in the future is not yet spent, and the packets that still wait have not been added.
        let mut usage = self.usage;
        for packet in self.settled.range(self.departed as usize..) {
            usage.take_back(packet.departure.as_nanos() - now, packet.cargo.size());
        }
        if let Queue::Choosing(queue) = &self.queue {
            queue.for_each(|arrival, packet| usage.add(now - arrival.as_nanos(), packet.size().get()));
        }
        let Composed { now, transmitted, held, maximum, busy_until, .. } = *self;
        let (on_the_way, cold) = (self.on_the_way(), self.cold.as_deref());
        Account { now, transmitted, held, on_the_way, maximum, usage, busy_until, cold }.counters()
    }

    /// The packets that have departed and will come out.
    fn on_the_way(&self) -> Count {
        let mut sum = Count::default();
        for packet in self.settled.range(..self.departed as usize) {
            if let Cargo::Here(packet) = &packet.cargo {
                sum.add(packet.size());
            }
        }
        // Of those that may overtake each other it is not said which have departed, but which have not.
        if let Some(cold) = &self.cold {
            cold.overtaking.iter().for_each(|packet| sum.add(packet.size()));
        }
        for packet in self.settled.range(self.departed as usize..) {
            if let Cargo::Overtaking(size) = packet.cargo {
                sum = sum.minus(Count { packets: Packets::new(1), bytes: Bytes::new(size) });
            }
        }
        sum
    }

    /// The counts of the link's Quick-Start router so far, if there is one.
    pub(super) fn quick_start(&self) -> Option<&QsCounters> {
        self.router.as_ref().map(|r| r.counters())
    }

    /// Forgets the largest queue seen, so that it is that of the time from now on.
    pub(super) fn restart_maximum(&mut self) {
        self.maximum = self.held;
    }

    /// Packets in the queue and in transmission.
    pub(super) fn queue_len(&self) -> usize {
        self.held.packets as usize
    }

    /// Bytes in the queue and in transmission, the packet under way in full.
    pub(super) fn queue_bytes(&self) -> Bytes {
        Bytes::new(self.held.bytes)
    }

    /// Packets that were pushed and have neither come out nor been dropped: waiting, in
    /// transmission or in flight.
    pub(super) fn inside(&self) -> usize {
        let waiting = match &self.queue {
            Queue::DropTail(_) | Queue::Managed(_) => 0,
            Queue::Choosing(queue) => queue.waiting(),
        };
        let here = self.settled.iter().filter(|packet| matches!(packet.cargo, Cargo::Here(_))).count();
        let elsewhere = self.cold.as_ref().map_or(0, |cold| cold.doomed.len() + cold.overtaking.len());
        waiting + here + elsewhere
    }
}
