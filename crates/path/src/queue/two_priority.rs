//! First in, first out with push-out [rcs §III-A, §V-A].
//!
//! Service order does not depend on priority; room does. A normal arrival to a full queue pushes
//! out the youngest waiting low-priority packet and takes its place *at the tail*; if there is
//! none, it is dropped. A low-priority arrival to a full queue is dropped. The packet in
//! transmission is never pushed out.
//!
//! Readings: the paper says only that low-priority packets "are discarded first" when the queue
//! overflows, under FIFO with preemption. The paper does not say which of them goes. Here the youngest goes: the
//! older ones keep their earned places, and the least waiting is wasted.

use super::parts::{Held, Next, Room};
use crate::Datagram;
use fairpace_units::{Class, Instant};
use std::collections::VecDeque;

/// The packets that wait for the transmitter.
#[derive(Clone, Debug)]
pub(crate) struct TwoPriority<T> {
    room: Room,
    /// In order of arrival. A packet that was pushed out leaves an empty place, which is skipped
    /// when it comes to the front. There are never more places than about four times the room:
    /// while a place waits, at most one room's worth departs, and only that much can be refilled.
    places: VecDeque<Option<(Instant, T)>>,
    /// The serial number of the first place.
    first: u64,
    /// Serial numbers of the places that hold low-priority packets, youngest last.
    low: VecDeque<u64>,
    low_bytes: u64,
    waiting: usize,
}

impl<T> TwoPriority<T> {
    pub(crate) fn new(room: Room) -> Self {
        TwoPriority { room, places: VecDeque::new(), first: 0, low: VecDeque::new(), low_bytes: 0, waiting: 0 }
    }

    /// How many packets wait, the one in transmission not counted.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting
    }

    /// The packets that wait, oldest first, and when they arrived.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Instant, &T)> {
        self.places.iter().flatten().map(|(arrival, packet)| (*arrival, packet))
    }
}

impl<T: Datagram> TwoPriority<T> {
    /// A packet arrives; it comes back if there is no room, even after pushing others out.
    pub(crate) fn arrive(
        &mut self,
        now: Instant,
        mut held: Held,
        packet: T,
        gone: &mut Vec<(Instant, T)>,
    ) -> Result<(), T> {
        let size = packet.size().get();
        if !self.admits(held, size, packet.class()) {
            return Err(packet);
        }
        while let Some(victim) = self.push_out(held, size) {
            held.packets -= 1;
            held.bytes -= victim.1.size().get();
            gone.push(victim);
        }
        self.enqueue(now, packet);
        Ok(())
    }

    /// Whether an arrival is let in, perhaps after pushing others out.
    fn admits(&self, held: Held, size: u64, class: Class) -> bool {
        if class == Class::Low {
            return self.room.fits(held, size);
        }
        let packets = held.packets - self.low.len() as u64;
        self.room.fits(Held { packets, bytes: held.bytes - self.low_bytes }, size)
    }

    /// The packet that must go before an admitted arrival of `size` fits; `None` when it does.
    /// Several small ones may have to go for one large one.
    fn push_out(&mut self, held: Held, size: u64) -> Option<(Instant, T)> {
        if self.room.fits(held, size) {
            return None;
        }
        let place = self.low.pop_back()?;
        let index = usize::try_from(place - self.first).ok()?;
        let victim = self.places.get_mut(index)?.take()?;
        self.low_bytes -= victim.1.size().get();
        self.waiting -= 1;
        self.skip_empty();
        Some(victim)
    }

    /// An admitted arrival takes its place at the tail.
    fn enqueue(&mut self, now: Instant, packet: T) {
        if packet.class() == Class::Low {
            self.low.push_back(self.first + self.places.len() as u64);
            self.low_bytes += packet.size().get();
        }
        self.places.push_back(Some((now, packet)));
        self.waiting += 1;
    }

    /// The head goes to the transmitter.
    pub(crate) fn dequeue(&mut self) -> Option<Next<T>> {
        let (arrival, packet) = self.places.pop_front()??;
        if self.low.front() == Some(&self.first) {
            self.low.pop_front();
            self.low_bytes -= packet.size().get();
        }
        self.first += 1;
        self.waiting -= 1;
        self.skip_empty();
        Some(Next { arrival, packet, marked: false })
    }

    /// Keeps the invariant that the first place, if any, holds a packet.
    fn skip_empty(&mut self) {
        while let Some(None) = self.places.front() {
            self.places.pop_front();
            self.first += 1;
        }
    }
}
