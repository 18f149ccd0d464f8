//! Who waits, and who goes when there is no room or too long a wait: one file per queue.
//!
//! Two kinds. A queue that **admits** decides on arrival and never takes back what it admitted, so
//! the link knows each departure at once, and the queue holds no packets. A queue that **chooses**
//! decides when a transmission begins who is next, and may drop who waits, so it keeps packets until
//! then.

pub(crate) mod codel;
pub(crate) mod drop_tail;
pub(crate) mod dualpi2;
pub(crate) mod fq_codel;
pub(crate) mod parts;
pub(crate) mod pie;
pub(crate) mod red;
pub(crate) mod rio;
pub(crate) mod two_priority;

use crate::{Datagram, LinkError, QueueModel};
use codel::CoDel;
use drop_tail::DropTail;
use dualpi2::DualPi2;
use fairpace_units::{Class, Instant, RandomStream};
use fq_codel::FqCoDel;
use parts::{Held, Next, Occupancy, Room, Verdict};
use pie::Pie;
use red::Red;
use rio::Rio;
use two_priority::TwoPriority;

/// The state of a [`QueueModel`].
#[derive(Clone, Debug)]
pub(crate) enum Queue<T> {
    DropTail(DropTail),
    Managed(Managed),
    Choosing(Box<Choosing<T>>),
}

/// A queue that admits by more than its room.
#[derive(Clone, Debug)]
pub(crate) enum Managed {
    Red(Box<Red>),
    Pie(Box<Pie>),
    Rio(Box<Rio>),
}

/// A queue that chooses who is next.
#[derive(Clone, Debug)]
pub(crate) enum Choosing<T> {
    TwoPriority(TwoPriority<T>),
    CoDel(Box<CoDel<T>>),
    FqCoDel(Box<FqCoDel<T>>),
    DualPi2(Box<DualPi2<T>>),
}

impl<T> Queue<T> {
    /// The queue of the link called `link`; its random stream has the link's name and its own.
    pub(crate) fn new(model: &QueueModel, seed: u64, link: &str) -> Result<Self, LinkError> {
        let random = |name| RandomStream::named(seed, &format!("{link}.{name}"));
        Ok(match model {
            QueueModel::DropTail { capacity } => Queue::DropTail(DropTail::new(Room::new(*capacity)?)),
            QueueModel::Red(params) => Queue::Managed(Managed::Red(Box::new(Red::new(params, random("red"))?))),
            QueueModel::Rio(params) => Queue::Managed(Managed::Rio(Box::new(Rio::new(params, random("rio"))?))),
            QueueModel::Pie(params) => Queue::Managed(Managed::Pie(Box::new(Pie::new(params, random("pie"))?))),
            QueueModel::TwoPriority { capacity } => {
                Queue::Choosing(Box::new(Choosing::TwoPriority(TwoPriority::new(Room::new(*capacity)?))))
            }
            QueueModel::CoDel(params) => Queue::Choosing(Box::new(Choosing::CoDel(Box::new(CoDel::new(params)?)))),
            QueueModel::FqCoDel(params) => {
                Queue::Choosing(Box::new(Choosing::FqCoDel(Box::new(FqCoDel::new(params, random("fq_codel"))?))))
            }
            QueueModel::DualPi2(params) => {
                Queue::Choosing(Box::new(Choosing::DualPi2(Box::new(DualPi2::new(params)?))))
            }
        })
    }
}

impl Managed {
    /// The size of a mean packet, in bytes.
    pub(crate) fn mean_packet_size(&self) -> u64 {
        match self {
            Managed::Red(red) => red.mean_packet_size(),
            Managed::Pie(pie) => pie.mean_packet_size(),
            Managed::Rio(rio) => rio.mean_packet_size(),
        }
    }

    /// Whether an arrival of `size` is let in.
    pub(crate) fn decide(
        &mut self,
        now: Instant,
        found: Occupancy,
        class: Class,
        size: u64,
        ecn_capable: bool,
    ) -> Verdict {
        match self {
            Managed::Red(red) => red.decide(found, size, ecn_capable),
            Managed::Pie(pie) => pie.decide(now, found, size, ecn_capable),
            Managed::Rio(rio) => rio.decide(found, class, size, ecn_capable),
        }
    }

    /// A packet that was let in at `arrival` has its transmission begin at `start`.
    pub(crate) fn admitted(&mut self, arrival: Instant, start: Instant) {
        if let Managed::Pie(pie) = self {
            pie.admitted(arrival, start);
        }
    }
}

impl<T> Choosing<T> {
    /// How many packets wait, the one in transmission not counted.
    pub(crate) fn waiting(&self) -> usize {
        match self {
            Choosing::TwoPriority(queue) => queue.waiting(),
            Choosing::CoDel(queue) => queue.fifo().len(),
            Choosing::FqCoDel(queue) => queue.waiting(),
            Choosing::DualPi2(queue) => queue.waiting(),
        }
    }

    /// Calls `each` with the packets that wait and when they arrived.
    pub(crate) fn for_each(&self, mut each: impl FnMut(Instant, &T)) {
        match self {
            Choosing::TwoPriority(queue) => queue.iter().for_each(|(arrival, packet)| each(arrival, packet)),
            Choosing::CoDel(queue) => queue.fifo().iter().for_each(|(arrival, packet)| each(arrival, packet)),
            Choosing::FqCoDel(queue) => queue.iter().for_each(|(arrival, packet)| each(arrival, packet)),
            Choosing::DualPi2(queue) => queue.iter().for_each(|(arrival, packet)| each(arrival, packet)),
        }
    }

    /// The last packet has left and nobody waited: the transmitter has asked in vain.
    pub(crate) fn found_empty(&mut self) {
        match self {
            Choosing::TwoPriority(_) => {}
            Choosing::CoDel(queue) => queue.found_empty(),
            Choosing::FqCoDel(queue) => queue.found_empty(),
            Choosing::DualPi2(queue) => queue.found_empty(),
        }
    }
}

impl<T: Datagram> Choosing<T> {
    /// A packet arrives. A packet that is not let in comes back; packets that are dropped to make room for the new
    /// one go to `gone`, with their arrivals.
    pub(crate) fn arrive(
        &mut self,
        now: Instant,
        held: Held,
        packet: T,
        gone: &mut Vec<(Instant, T)>,
    ) -> Result<(), T> {
        match self {
            Choosing::TwoPriority(queue) => queue.arrive(now, held, packet, gone),
            Choosing::CoDel(queue) => queue.arrive(now, held, packet),
            Choosing::FqCoDel(queue) => {
                queue.arrive(now, held, packet, gone);
                Ok(())
            }
            Choosing::DualPi2(queue) => queue.arrive(now, held, packet),
        }
    }

    /// A transmission can begin: whose? Packets that are dropped on the way go to `gone`, with their
    /// arrivals.
    pub(crate) fn dequeue(&mut self, now: Instant, gone: &mut Vec<(Instant, T)>) -> Option<Next<T>> {
        match self {
            Choosing::TwoPriority(queue) => queue.dequeue(),
            Choosing::CoDel(queue) => queue.dequeue(now, gone),
            Choosing::FqCoDel(queue) => queue.dequeue(now, gone),
            Choosing::DualPi2(queue) => queue.dequeue(now, gone),
        }
    }
}
