//! The composition of any parts: queue → rate → loss and outage → delay.
//!
//! - **A queue that admits** (drop-tail, RED, RIO, PIE). An admitted packet will be sent, whatever comes later. So start,
//!   departure, damage and exit are settled on arrival.
//! - **A queue that chooses** (two priorities, CoDel, FQ-CoDel, DualPI2). A waiting packet may still be dropped,
//!   or be overtaken, so it is settled when its transmission begins. That is found out at the next
//!   call: the begin lies at the departure of the packet before, whose exit is never earlier, so the
//!   driver is there in time. Only after a packet that was lost with nobody in flight behind it is an
//!   extra call needed.
//!
//! Both work with a delay of zero too, since a packet's exit never comes before its departure,
//! and the next one's begin coincides with that.
//!
//! Settled packets lie in one ring in order of departure, from the queue to the far end: those at its front have
//! departed and are on their way, the others still count as queued. Packets are counted when they pass the boundary
//! between the two; all other counts follow from that and from the packets on either side (`account.rs`).

use super::cold::{Cold, DELIVERED, OFFERED};
use super::usage::Usage;
use crate::counters::Count;
use crate::delay::Delay;
use crate::loss::Loss;
use crate::outage::Outages;
use crate::queue::Queue;
use crate::queue::parts::Held;
use crate::quick_start::LinkRouter;
use crate::rate::{Service, Transmitter};
use crate::{Datagram, DropReason, LinkError, LinkSpec};
use fairpace_units::{Bytes, Class, Instant, RandomStream, Rate};
use std::collections::VecDeque;

/// A link of any parts.
///
/// The order of fields is that of use: a packet that comes out touches the first two cache lines, one that goes in all.
#[derive(Clone, Debug)]
#[repr(C)]
pub(super) struct Composed<T> {
    /// The latest time that any call has told.
    pub(super) now: Instant,
    /// When the next packet comes out that is settled; never if there is none.
    pub(super) next_exit: Instant,
    /// When the next settled packet departs; never if there is none.
    pub(super) next_departure: Instant,
    /// When the next transmission of a queue that chooses begins; never if nobody waits.
    pub(super) next_start: Instant,
    /// The packets that are settled, in order of departure.
    pub(super) settled: VecDeque<Settled<T>>,
    /// How many of them, from the front, have departed. The first of those comes out.
    pub(super) departed: u32,
    pub(super) recording: bool,
    /// The contents of the queue and the transmitter: packets waiting or settled, not yet departed.
    pub(super) held: Held,
    /// All that has departed.
    pub(super) transmitted: Count,
    /// When the Quick-Start router looks at the load next; never without one.
    pub(super) next_observation: Instant,
    pub(super) cold: Option<Box<Cold<T>>>,
    pub(super) outages: Option<Box<Outages>>,
    pub(super) usage: Usage,
    /// When the last packet settled so far departs, or the last one that waited was dropped.
    pub(super) busy_until: Instant,
    /// The largest queue.
    pub(super) maximum: Held,
    pub(super) transmitter: Transmitter,
    pub(super) queue: Queue<T>,
    pub(super) delay: Delay,
    pub(super) loss: Loss,
    /// The Quick-Start router in front of the queue.
    pub(super) router: Option<Box<LinkRouter>>,
}

/// A packet whose departure and fate are known.
#[derive(Clone, Debug)]
pub(super) struct Settled<T> {
    pub(super) departure: Instant,
    /// When it comes out, if it lies here until then.
    exit: Instant,
    pub(super) cargo: Cargo<T>,
}

/// Where a settled packet is; if elsewhere, its size.
#[derive(Clone, Debug)]
pub(super) enum Cargo<T> {
    /// Here; it comes out.
    Here(T),
    /// Among those that may overtake each other.
    Overtaking(u64),
    /// Among those that will be lost.
    Doomed(u64),
}

impl<T: Datagram> Cargo<T> {
    #[inline]
    pub(super) fn size(&self) -> u64 {
        match self {
            Cargo::Here(packet) => packet.size().get(),
            Cargo::Overtaking(size) | Cargo::Doomed(size) => *size,
        }
    }
}

impl<T: Datagram> Composed<T> {
    /// As [`Link::new`](super::Link::new).
    pub(super) fn new(spec: &LinkSpec, seed: u64, name: &str) -> Result<Self, LinkError> {
        let transmitter = Transmitter::new(&spec.rate)?;
        let router = match &spec.quick_start {
            Some(params) => {
                let random = RandomStream::named(seed, &format!("{name}.quick_start"));
                Some(Box::new(LinkRouter::new(params, random, transmitter.capacity_at(Instant::ZERO))?))
            }
            None => None,
        };
        let outages = Outages::new(&spec.outage, spec.outage_at);
        Ok(Composed {
            now: Instant::ZERO,
            next_start: Instant::NEVER,
            next_observation: router.as_ref().map_or(Instant::NEVER, |r| Instant::ZERO + r.interval()),
            next_exit: Instant::NEVER,
            next_departure: Instant::NEVER,
            settled: VecDeque::new(),
            departed: 0,
            held: Held::default(),
            maximum: Held::default(),
            transmitted: Count::default(),
            queue: Queue::new(&spec.queue, seed, name)?,
            transmitter,
            delay: Delay::new(&spec.delay, RandomStream::named(seed, &format!("{name}.jitter")))?,
            loss: Loss::new(&spec.loss, RandomStream::named(seed, &format!("{name}.loss"))),
            usage: Usage::default(),
            busy_until: Instant::ZERO,
            outages: (!outages.is_empty()).then(|| Box::new(outages)),
            cold: None,
            router,
            recording: false,
        })
    }

    /// A packet arrives at the queue.
    #[inline(never)] // so that plain links have the loop for themselves
    pub(super) fn push(&mut self, now: Instant, mut packet: T) {
        self.settle_until(now);
        let now = self.now;
        let source = packet.flow();
        if let Some(option) = packet.quick_start() {
            // By value: a packet whose address goes out of here would be copied, option or not.
            *option = self.route(now, source, *option);
        }
        let size = packet.size();
        if packet.class() == Class::Low {
            self.cold().low[OFFERED].add(size);
        }
        match &mut self.queue {
            // Nothing ever waits for an unlimited transmitter.
            _ if matches!(self.transmitter, Transmitter::Unlimited) => self.pass_through(now, packet),
            Queue::DropTail(queue) if queue.admits(self.held, size.get()) => {
                self.hold(now, size);
                self.note_maximum();
                self.settle(now, packet);
            }
            Queue::DropTail(_) => self.drop_now(now, DropReason::QueueFull, packet),
            Queue::Managed(_) => self.push_managed(now, packet, size),
            Queue::Choosing(_) => self.push_choosing(now, packet, size),
        }
    }

    /// The earliest instant at which something may come out; [`Instant::NEVER`] if nothing will.
    /// The instant is exact, except that a queue that chooses behind a lost packet may make it too early. Only a push
    /// or a pop changes it.
    #[inline]
    pub(super) fn next(&self) -> Instant {
        let mut next = self.next_exit;
        // A packet that waits comes out after those on the way, unless it may overtake them.
        if self.next_start != Instant::NEVER && (next == Instant::NEVER || self.delay.may_reorder()) {
            next = next.min(self.delay.earliest_exit(self.next_start));
        }
        next.max(self.now)
    }

    /// The next packet that is out by `now`. Call it until there is none.
    #[inline(never)] // likewise
    pub(super) fn pop(&mut self, now: Instant) -> Option<T> {
        self.settle_until(now);
        if self.next_exit > self.now {
            return None;
        }
        let packet = match self.settled.pop_front() {
            Some(Settled { cargo: Cargo::Here(packet), .. }) => {
                self.departed -= 1;
                packet
            }
            other => return self.pop_overtaking(other),
        };
        self.next_exit = match self.settled.front() {
            Some(Settled { cargo: Cargo::Here(_), exit, .. }) => *exit,
            Some(_) => self.first_exit(),
            None => Instant::NEVER,
        };
        if packet.class() == Class::Low {
            self.cold().low[DELIVERED].add(packet.size());
        }
        Some(packet)
    }

    /// Brings the link up to `now` without taking anything out: before reading the counters, and
    /// at the end of a run.
    pub(super) fn advance(&mut self, now: Instant) {
        self.settle_until(now);
    }

    /// Whether dropped packets are kept for [`Link::take_dropped`]. Off at first.
    pub(super) fn record_drops(&mut self, on: bool) {
        self.recording = on;
    }

    /// Whether [`Link::take_dropped`] has one.
    #[inline]
    pub(super) fn has_dropped(&self) -> bool {
        self.cold.as_ref().is_some_and(|cold| !cold.dropped.is_empty())
    }

    /// The next dropped packet, why and when it was dropped, in order of time. Call it until there
    /// is none.
    pub(super) fn take_dropped(&mut self) -> Option<(Instant, DropReason, T)> {
        self.cold.as_mut()?.dropped.pop_front()
    }

    /// How fast packets leave at that time; [`Rate::MAX`] if serialization takes none. For a
    /// mahimahi trace, the mean over the second around `now`.
    pub(super) fn capacity_at(&self, now: Instant) -> Rate {
        self.transmitter.capacity_at(now)
    }

    /// How many bits the link could have carried between two instants; `None` if unlimited.
    pub(super) fn capacity_between(&self, from: Instant, to: Instant) -> Option<f64> {
        self.transmitter.capacity_between(from, to)
    }

    /// Brings everything up to `now`, in order of time.
    #[inline]
    pub(super) fn settle_until(&mut self, now: Instant) {
        debug_assert!(now >= self.now, "time went back from {} to {now}", self.now);
        debug_assert!(now < Instant::NEVER, "never does not come");
        self.now = self.now.max(now);
        if self.next_departure <= self.now {
            self.depart_until(self.now);
        }
        if self.next_start <= self.now {
            self.begin_transmissions();
        }
    }

    /// Lets those depart whose last bit has left by `now`.
    pub(super) fn depart_until(&mut self, now: Instant) {
        self.next_departure = loop {
            let Some(Settled { departure, cargo, .. }) = self.settled.get(self.departed as usize) else {
                break Instant::NEVER;
            };
            let (departure, size, here) = (*departure, cargo.size(), matches!(cargo, Cargo::Here(_)));
            if departure > now {
                break departure;
            }
            if self.next_observation < departure {
                self.observe_before(departure);
            }
            self.departed += 1;
            self.held.packets -= 1;
            self.held.bytes -= size;
            self.transmitted.add(Bytes::new(size));
            if !here {
                self.depart_elsewhere();
            }
        };
    }

    /// A packet has departed that lies elsewhere. (One that lies here is at the front of those that have.)
    #[cold]
    fn depart_elsewhere(&mut self) {
        let Some(Settled { departure, cargo, .. }) = self.settled.get(self.departed as usize - 1) else { return };
        let departure = *departure;
        if matches!(cargo, Cargo::Doomed(_))
            && let Some((reason, lost)) = self.cold().doomed.pop_front()
        {
            self.drop_now(departure, reason, lost);
        }
        self.trim();
    }

    /// Nothing that lies elsewhere is at the front of those that have departed.
    fn trim(&mut self) {
        while self.departed > 0
            && let Some(Settled { cargo: Cargo::Overtaking(_) | Cargo::Doomed(_), .. }) = self.settled.front()
        {
            self.settled.pop_front();
            self.departed -= 1;
        }
    }

    /// The exit of the first packet that comes out, behind such as will be lost.
    #[cold]
    fn first_exit(&mut self) -> Instant {
        self.trim();
        let first = self.settled.iter().find(|settled| matches!(settled.cargo, Cargo::Here(_)));
        first.map_or(Instant::NEVER, |settled| settled.exit)
    }

    /// A packet is let in.
    #[inline(always)] // as `push`
    pub(super) fn hold(&mut self, now: Instant, size: Bytes) {
        if self.held.packets == 0 {
            self.usage.idle_ns += now.as_nanos() - self.busy_until.as_nanos();
        }
        self.held.packets += 1;
        self.held.bytes += size.get();
    }

    #[inline]
    pub(super) fn note_maximum(&mut self) {
        self.maximum.packets = self.maximum.packets.max(self.held.packets);
        self.maximum.bytes = self.maximum.bytes.max(self.held.bytes);
    }

    /// The next packet to be transmitted is this one, and nothing can change that: what becomes of
    /// it? Returns when its transmission begins.
    #[inline]
    pub(super) fn settle(&mut self, arrival: Instant, packet: T) -> Instant {
        let size = packet.size().get();
        let Service { start, departure } = self.transmitter.serve(arrival, size);
        self.usage.add(departure.as_nanos() - arrival.as_nanos(), size);
        self.busy_until = departure;
        self.next_departure = self.next_departure.min(departure);
        // Both draw for every packet, so that no outcome shifts the draws of later packets.
        let exit = self.delay.exit_of(departure);
        let damaged = self.loss.next();
        let dark = self.outages.as_ref().is_some_and(|outages| outages.hit(start, departure, exit));
        if damaged || dark {
            let reason = if dark { DropReason::Outage } else { DropReason::LinkError };
            self.doom(departure, reason, packet);
        } else if self.delay.has_jitter() {
            self.send_with_jitter(departure, exit, packet);
        } else {
            if self.next_exit == Instant::NEVER {
                self.next_exit = exit;
            }
            self.settled.push_back(Settled { departure, exit, cargo: Cargo::Here(packet) });
        }
        start
    }

    /// A packet will be lost.
    #[cold]
    fn doom(&mut self, departure: Instant, reason: DropReason, packet: T) {
        self.settled.push_back(Settled { departure, exit: Instant::NEVER, cargo: Cargo::Doomed(packet.size().get()) });
        self.cold().doomed.push_back((reason, packet));
    }

    /// A packet will come out at `exit`, which was drawn.
    fn send_with_jitter(&mut self, departure: Instant, exit: Instant, packet: T) {
        self.delay.keep_order_after(exit);
        let cargo = if self.delay.may_reorder() {
            let size = packet.size().get();
            self.cold().overtaking.insert(exit, packet);
            Cargo::Overtaking(size)
        } else {
            Cargo::Here(packet)
        };
        self.next_exit = self.next_exit.min(exit);
        self.settled.push_back(Settled { departure, exit, cargo });
    }

    /// Takes out the next packet of those that may overtake each other; `front` is what was at the front of the ring.
    #[cold]
    fn pop_overtaking(&mut self, front: Option<Settled<T>>) -> Option<T> {
        // One that has not departed.
        if let Some(front) = front {
            self.settled.push_front(front);
        }
        let now = self.now;
        let cold = self.cold();
        let packet = cold.overtaking.pop(now);
        let next = cold.overtaking.next();
        if let Some(packet) = &packet
            && packet.class() == Class::Low
        {
            cold.low[DELIVERED].add(packet.size());
        }
        self.next_exit = next;
        packet
    }

    /// A packet arrives at a transmitter that takes no time.
    fn pass_through(&mut self, now: Instant, packet: T) {
        self.hold(now, packet.size());
        self.settle(now, packet);
        self.depart_until(now);
    }

    #[inline]
    pub(super) fn cold(&mut self) -> &mut Cold<T> {
        self.cold.get_or_insert_default()
    }

    #[cfg(test)]
    pub(crate) fn queue(&self) -> &Queue<T> {
        &self.queue
    }

    pub(super) fn drop_now(&mut self, now: Instant, reason: DropReason, packet: T) {
        let recording = self.recording;
        self.cold().drop(now, reason, packet, recording);
    }
}
