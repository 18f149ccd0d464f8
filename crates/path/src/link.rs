//! The composition: queue → rate → loss and outage → delay, caught up lazily.
//!
//! Every call that takes a time first brings the link up to it: departures at that instant count
//! before the arrival that is being pushed. Between calls nothing happens, so a driver needs one
//! event per packet and link: the packet's exit.
//!
//! - **Drop-tail and RED.** What is admitted will be sent, whatever comes later. So start, departure,
//!   damage and exit are settled on arrival, and the packet goes straight to the delay line; the
//!   queue is only a ring of departure times.
//! - **Two priorities.** A waiting packet may still be pushed out, so it is settled when its
//!   transmission begins. That is found out at the next call: the begin lies at the departure of
//!   the packet before, whose exit is never earlier, so the driver is there in time. Only after a
//!   packet that was lost with nobody in flight behind it is an extra call needed.
//!
//! Both work with a delay of zero too, since a packet's exit never comes before its departure,
//! and the next one's begin coincides with that.

use crate::counters::LinkCounters;
use crate::delay::Delay;
use crate::loss::Loss;
use crate::outage::Outages;
use crate::queue::red::Found;
use crate::queue::{Held, Queue, Verdict};
use crate::rate::{Service, Transmitter};
use crate::{Datagram, DropReason, LinkError, LinkSpec, Wire};
use fairpace_units::{Bytes, Duration, Ecn, Instant, Packets, RandomStream, Rate};
use std::collections::VecDeque;

/// A link between two nodes, one direction.
#[derive(Clone, Debug)]
pub struct Link<T> {
    /// The latest time that any call has told.
    now: Instant,
    queue: Queue<T>,
    transmitter: Transmitter,
    loss: Loss,
    outages: Outages,
    delay: Delay,
    /// What is settled but has not departed, in order of departure.
    settled: VecDeque<Settled>,
    /// Those of `settled` that will be lost, in the same order.
    doomed: VecDeque<T>,
    /// What is settled and will come out.
    wire: Wire<T>,
    /// What is in the queue and the transmitter: waiting or settled, not yet departed.
    held: Held,
    /// When the transmission of the two-priority queue's head begins.
    next_start: Instant,
    /// When the last packet settled so far departs.
    last_departure: Instant,
    /// Since when there has always been a packet in the queue or the transmitter.
    occupied_since: Instant,
    usage: Usage,
    counters: LinkCounters,
    recording: bool,
    dropped: VecDeque<(Instant, DropReason, T)>,
}

/// A packet whose departure and fate are known.
#[derive(Clone, Copy, Debug)]
struct Settled {
    departure: Instant,
    size: u64,
    fate: Fate,
}

/// Time spent in queue and transmitter, summed over packets when their departure becomes known,
/// which may be in the future. Little's law turns it into the averages over time: one addition
/// per packet instead of one for each change of the queue.
#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    packet_ns: u128,
    byte_ns: u128,
    busy_ns: u64,
}

impl Usage {
    #[inline]
    fn add(&mut self, stay_ns: u64, size: u64) {
        self.packet_ns += u128::from(stay_ns);
        self.byte_ns += u128::from(stay_ns) * u128::from(size);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Arrives,
    Damaged,
    Dark,
}

impl<T: Datagram> Link<T> {
    /// Builds the link that `spec` describes. Its random streams are called `<name>.loss`,
    /// `<name>.jitter` and, if its queue draws, `<name>.red`, of the run's `seed`.
    ///
    /// # Errors
    /// [`LinkError`] names the field of `spec` that cannot be.
    pub fn new(spec: &LinkSpec, seed: u64, name: &str) -> Result<Self, LinkError> {
        Ok(Link {
            now: Instant::ZERO,
            queue: Queue::new(&spec.queue, seed, name)?,
            transmitter: Transmitter::new(&spec.rate)?,
            loss: Loss::new(&spec.loss, RandomStream::named(seed, &format!("{name}.loss"))),
            outages: Outages::new(&spec.outage, spec.outage_at),
            delay: Delay::new(&spec.delay, RandomStream::named(seed, &format!("{name}.jitter")))?,
            settled: VecDeque::new(),
            doomed: VecDeque::new(),
            wire: Wire::new(Duration::ZERO),
            held: Held::default(),
            next_start: Instant::NEVER,
            last_departure: Instant::ZERO,
            occupied_since: Instant::ZERO,
            usage: Usage::default(),
            counters: LinkCounters::default(),
            recording: false,
            dropped: VecDeque::new(),
        })
    }

    /// A packet arrives at the queue.
    #[inline]
    pub fn push(&mut self, now: Instant, packet: T) {
        self.settle_until(now);
        let now = self.now;
        let (size, class) = (packet.size(), packet.class());
        self.counters.classes[class as usize].offered.add(size);
        if self.held.packets == 0 {
            self.occupied_since = now;
        }
        match &mut self.queue {
            // Nothing ever waits for an unlimited transmitter.
            _ if matches!(self.transmitter, Transmitter::Unlimited) => self.settle(now, packet),
            Queue::DropTail(queue) if queue.admits(self.held, size.get()) => {
                self.hold(size);
                self.settle(now, packet);
            }
            Queue::TwoPriority(queue) if queue.admits(self.held, size.get(), class) => self.enqueue(now, packet, size),
            Queue::Red(_) => self.push_red(now, packet, size),
            _ => self.drop_now(now, DropReason::QueueFull, packet),
        }
    }

    /// A packet arrives at a RED queue.
    fn push_red(&mut self, now: Instant, mut packet: T, size: Bytes) {
        let Queue::Red(queue) = &mut self.queue else { return };
        let held = self.held;
        let found = match self.settled.front() {
            Some(sent) => {
                let waiting = Held { packets: held.packets - 1, bytes: held.bytes - sent.size };
                Found { held, waiting, could_have_left: 0 }
            }
            None => {
                let idle_since = self.last_departure;
                let could_have_left = self.transmitter.packets_between(idle_since, now, queue.mean_packet_size());
                Found { held, waiting: held, could_have_left }
            }
        };
        match queue.decide(found, size.get(), packet.ecn() != Ecn::NotEct) {
            Verdict::Drop(reason) => return self.drop_now(now, reason, packet),
            Verdict::Mark => {
                packet.set_ecn(Ecn::Ce);
                self.counters.marked.add(size);
            }
            Verdict::Admit => {}
        }
        self.hold(size);
        self.settle(now, packet);
    }

    /// The earliest instant at which something may come out; [`Instant::NEVER`] if nothing will.
    /// It is exact, but for a two-priority queue behind a lost packet, where it may be early. Only
    /// a push or a pop changes it.
    #[inline]
    pub fn next(&self) -> Instant {
        let mut next = self.wire.next();
        // A packet that waits comes out after those on the wire, unless it may overtake them.
        if next == Instant::NEVER || self.delay.may_reorder() {
            next = next.min(self.delay.earliest_exit(self.next_start));
        }
        next.max(self.now)
    }

    /// The next packet that is out by `now`. Call it until there is none.
    #[inline]
    pub fn pop(&mut self, now: Instant) -> Option<T> {
        self.settle_until(now);
        let packet = self.wire.pop(self.now)?;
        self.counters.classes[packet.class() as usize].delivered.add(packet.size());
        Some(packet)
    }

    /// Brings the link up to `now` without taking anything out: before reading the counters, and
    /// at the end of a run.
    pub fn advance(&mut self, now: Instant) {
        self.settle_until(now);
        let now = self.now;
        // What lies in the future is not yet spent, and who still waits has not been added.
        let mut usage = self.usage;
        for packet in &self.settled {
            let ahead = u128::from(packet.departure.as_nanos() - now.as_nanos());
            usage.packet_ns -= ahead;
            usage.byte_ns -= ahead * u128::from(packet.size);
        }
        usage.busy_ns -= self.last_departure.as_nanos().saturating_sub(now.as_nanos());
        if let Queue::TwoPriority(queue) = &self.queue {
            for (arrival, packet) in queue.iter() {
                usage.add(now.as_nanos() - arrival.as_nanos(), packet.size().get());
            }
            // With opportunities, packets may wait while nothing is in transmission.
            if queue.waiting() > 0 {
                usage.busy_ns += now.as_nanos().saturating_sub(self.busy_from());
            }
        }
        self.counters.elapsed_ns = now.as_nanos();
        self.counters.packet_ns = usage.packet_ns;
        self.counters.byte_ns = usage.byte_ns;
        self.counters.busy_ns = usage.busy_ns;
    }

    /// What was counted so far; [`Link::advance`] first.
    pub fn counters(&self) -> &LinkCounters {
        &self.counters
    }

    /// Forgets the largest queue seen, so that it is that of the time from now on.
    pub fn restart_maximum(&mut self) {
        self.counters.max_queue = Packets::new(self.held.packets);
        self.counters.max_queue_bytes = Bytes::new(self.held.bytes);
    }

    /// Whether dropped packets are kept for [`Link::take_dropped`]. Off at first.
    pub fn record_drops(&mut self, on: bool) {
        self.recording = on;
    }

    /// The next dropped packet, why and when it was dropped, in order of time. Call it until there
    /// is none.
    pub fn take_dropped(&mut self) -> Option<(Instant, DropReason, T)> {
        self.dropped.pop_front()
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
            Queue::DropTail(_) | Queue::Red(_) => 0,
            Queue::TwoPriority(queue) => queue.waiting(),
        };
        waiting + self.doomed.len() + self.wire.len()
    }

    /// How fast packets leave at that time; [`Rate::MAX`] if serialization takes none. For a
    /// mahimahi trace, the mean over the second around `now`.
    pub fn capacity_at(&self, now: Instant) -> Rate {
        self.transmitter.capacity_at(now)
    }

    /// How many bits the link could have carried between two instants; `None` if unlimited.
    pub fn capacity_between(&self, from: Instant, to: Instant) -> Option<f64> {
        self.transmitter.capacity_between(from, to)
    }

    /// Brings everything up to `now`, in order of time.
    #[inline]
    fn settle_until(&mut self, now: Instant) {
        debug_assert!(now >= self.now, "time went back from {} to {now}", self.now);
        debug_assert!(now < Instant::NEVER, "never does not come");
        self.now = self.now.max(now);
        self.depart_until(self.now);
        while self.next_start <= self.now {
            self.begin_transmission();
            self.depart_until(self.now);
        }
    }

    #[inline]
    fn depart_until(&mut self, now: Instant) {
        while let Some(first) = self.settled.front()
            && first.departure <= now
        {
            let first = *first;
            self.settled.pop_front();
            self.held.packets -= 1;
            self.held.bytes -= first.size;
            self.depart(first);
        }
    }

    /// The last bit has left.
    #[inline]
    fn depart(&mut self, packet: Settled) {
        self.counters.transmitted.add(Bytes::new(packet.size));
        let reason = match packet.fate {
            Fate::Arrives => return,
            Fate::Damaged => DropReason::LinkError,
            Fate::Dark => DropReason::Outage,
        };
        if let Some(lost) = self.doomed.pop_front() {
            self.drop_now(packet.departure, reason, lost);
        }
    }

    /// Until when the busy time is counted, if there is a packet in the queue or the transmitter.
    #[inline]
    fn busy_from(&self) -> u64 {
        self.last_departure.max(self.occupied_since).as_nanos()
    }

    /// A packet is let in.
    #[inline]
    fn hold(&mut self, size: Bytes) {
        self.held.packets += 1;
        self.held.bytes += size.get();
        self.counters.max_queue = self.counters.max_queue.max(Packets::new(self.held.packets));
        self.counters.max_queue_bytes = self.counters.max_queue_bytes.max(Bytes::new(self.held.bytes));
    }

    /// The next packet to be transmitted is this one, and nothing can change that: what becomes of
    /// it?
    #[inline]
    fn settle(&mut self, arrival: Instant, packet: T) {
        let size = packet.size().get();
        let Service { start, departure } = self.transmitter.serve(arrival, size);
        // Both draw for every packet, so that no outcome shifts the draws of later packets.
        let exit = self.delay.exit_of(departure);
        let damaged = self.loss.next();
        let fate = match damaged {
            _ if self.outages.hit(start, departure, exit) => Fate::Dark,
            true => Fate::Damaged,
            false => Fate::Arrives,
        };
        if fate == Fate::Arrives {
            self.delay.keep_order_after(exit);
            self.wire.insert(exit, packet);
        } else {
            self.doomed.push_back(packet);
        }
        let settled = Settled { departure, size, fate };
        if matches!(self.transmitter, Transmitter::Unlimited) {
            self.depart(settled);
        } else {
            let stay = departure.as_nanos() - arrival.as_nanos();
            self.usage.add(stay, size);
            self.usage.busy_ns += departure.as_nanos() - self.busy_from();
            self.last_departure = departure;
            self.settled.push_back(settled);
        }
    }

    /// A packet is let into the two-priority queue, after those that must make room.
    fn enqueue(&mut self, now: Instant, packet: T, size: Bytes) {
        let Queue::TwoPriority(queue) = &mut self.queue else { return };
        let idle = queue.waiting() == 0;
        while let Some((arrival, victim)) = queue.push_out(self.held, size.get()) {
            self.usage.add(now.as_nanos() - arrival.as_nanos(), victim.size().get());
            self.held.packets -= 1;
            self.held.bytes -= victim.size().get();
            self.counters.classes[victim.class() as usize].drops[DropReason::PushedOut as usize].add(victim.size());
            if self.recording {
                self.dropped.push_back((now, DropReason::PushedOut, victim));
            }
        }
        queue.enqueue(now, packet);
        self.hold(size);
        if idle {
            self.next_start = self.transmitter.earliest_start(now);
        }
        self.settle_until(now);
    }

    /// The head of the two-priority queue can no longer be pushed out.
    fn begin_transmission(&mut self) {
        let Queue::TwoPriority(queue) = &mut self.queue else { return };
        let head = queue.dequeue();
        let following = queue.head_arrival();
        if let Some((arrival, packet)) = head {
            self.settle(arrival, packet);
        }
        self.next_start = following.map_or(Instant::NEVER, |arrival| self.transmitter.earliest_start(arrival));
    }

    fn drop_now(&mut self, now: Instant, reason: DropReason, packet: T) {
        self.counters.classes[packet.class() as usize].drops[reason as usize].add(packet.size());
        if self.recording {
            self.dropped.push_back((now, reason, packet));
        }
    }
}
