//! The account of a link: its counters, made of the few counts that each packet moves.
//!
//! Packets are counted when they depart, when they enter queue and transmitter, and when they are dropped. Offered packets
//! are all of these together; delivered ones are those that have departed, less those lost then and those still on their
//! way. Packets of low priority are counted apart, so those of normal priority are the rest.

use super::{Cargo, Link};
use crate::counters::{ClassCounters, Count, LinkCounters};
use crate::queue::Queue;
use crate::quick_start::QsCounters;
use crate::{Datagram, DropReason};
use fairpace_units::{Bytes, Class, Packets};

impl<T: Datagram> Link<T> {
    /// The counts up to the latest time that any call has told: [`Link::advance`] first.
    pub fn counters(&self) -> LinkCounters {
        let now = self.now.as_nanos();
        // Time in the future is not yet spent, and the packets that still wait have not been added.
        let mut usage = self.usage;
        for packet in self.settled.range(self.departed as usize..) {
            let ahead = u128::from(packet.departure.as_nanos() - now);
            usage.packet_ns -= ahead;
            usage.byte_ns -= ahead * u128::from(packet.cargo.size());
        }
        if let Queue::Choosing(queue) = &self.queue {
            queue.for_each(|arrival, packet| usage.add(now - arrival.as_nanos(), packet.size().get()));
        }
        let busy_until = if self.held.packets > 0 { now } else { usage.busy_until.as_nanos() };
        let cold = self.cold.as_deref();
        let drops = cold.map_or_else(Default::default, |cold| cold.drops);
        let [low_offered, low_delivered] = cold.map_or_else(Default::default, |cold| cold.low);
        let dropped = |reasons: &[DropReason]| {
            drops
                .iter()
                .flat_map(|of_class| reasons.iter().map(|reason| of_class[*reason as usize]))
                .fold(Count::default(), Count::plus)
        };
        let held = Count { packets: Packets::new(self.held.packets), bytes: Bytes::new(self.held.bytes) };
        let in_queue = dropped(&[DropReason::QueueFull, DropReason::Early, DropReason::PushedOut]);
        let offered = self.transmitted.plus(held).plus(in_queue);
        let on_the_way = dropped(&[DropReason::LinkError, DropReason::Outage]);
        let delivered = self.transmitted.minus(on_the_way).minus(self.on_the_way());
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
            transmitted: self.transmitted,
            marked: cold.map_or_else(Count::default, |cold| cold.marked),
            max_queue: Packets::new(self.maximum.packets),
            max_queue_bytes: Bytes::new(self.maximum.bytes),
            elapsed_ns: now,
            busy_ns: busy_until - usage.idle_ns,
            packet_ns: usage.packet_ns,
            byte_ns: usage.byte_ns,
        }
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
    pub fn quick_start(&self) -> Option<&QsCounters> {
        self.router.as_ref().map(|r| r.counters())
    }

    /// Forgets the largest queue seen, so that it is that of the time from now on.
    pub fn restart_maximum(&mut self) {
        self.maximum = self.held;
    }

    /// Packets in the queue and in transmission.
    pub fn queue_len(&self) -> usize {
        self.held.packets as usize
    }

    /// Bytes in the queue and in transmission, the packet under way in full.
    pub fn queue_bytes(&self) -> Bytes {
        Bytes::new(self.held.bytes)
    }

    /// Packets that were pushed and have neither come out nor been dropped: waiting, in
    /// transmission or in flight.
    pub fn inside(&self) -> usize {
        let waiting = match &self.queue {
            Queue::DropTail(_) | Queue::Managed(_) => 0,
            Queue::Choosing(queue) => queue.waiting(),
        };
        let here = self.settled.iter().filter(|packet| matches!(packet.cargo, Cargo::Here(_))).count();
        let elsewhere = self.cold.as_ref().map_or(0, |cold| cold.doomed.len() + cold.overtaking.len());
        waiting + here + elsewhere
    }
}
