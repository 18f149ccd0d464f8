//! The composition: queue → rate → loss and outage → delay, caught up lazily.
//!
//! Every call that takes a time first brings the link up to it: departures at that instant count
//! before the arrival that is being pushed. Between calls nothing happens, so a driver needs one
//! event per packet and link: the packet's exit.
//!
//! - **A queue that admits** (drop-tail, RED, RIO, PIE). An admitted packet will be sent, whatever comes later. So start,
//!   departure, damage and exit are settled on arrival, and the packet goes straight to the delay line; the queue is
//!   only a ring of departure times.
//! - **A queue that chooses** (two priorities, CoDel, FQ-CoDel). A waiting packet may still be dropped,
//!   or be overtaken, so it is settled when its transmission begins. That is found out at the next
//!   call: the begin lies at the departure of the packet before, whose exit is never earlier, so the
//!   driver is there in time. Only after a packet that was lost with nobody in flight behind it is an
//!   extra call needed.
//!
//! Both work with a delay of zero too, since a packet's exit never comes before its departure,
//! and the next one's begin coincides with that.

use crate::counters::{ClassCounters, Count, LinkCounters};
use crate::delay::Delay;
use crate::loss::Loss;
use crate::outage::Outages;
use crate::queue::Queue;
use crate::queue::parts::{Held, Next, Occupancy, Verdict};
use crate::quick_start::{LinkRouter, QsCounters, pass_unaware};
use crate::rate::{Service, Transmitter};
use crate::{Datagram, DropReason, LinkError, LinkSpec, Wire};
use fairpace_units::{Bytes, Duration, Ecn, Instant, Packets, QsOption, RandomStream, Rate};
use std::collections::VecDeque;

/// A link between two nodes, one direction.
///
/// In a run of many flows most media are access links that carry a packet now and then, and what a packet costs there is
/// the memory that it touches. So a plain link is small: what most links never need is apart, models that draw or
/// choose are behind pointers, and rings take memory with their first packet.
#[derive(Clone, Debug)]
pub struct Link<T> {
    /// The latest time that any call has told.
    now: Instant,
    /// When the next transmission of a queue that chooses begins; never if nobody waits.
    next_start: Instant,
    /// When the Quick-Start router looks at the load next; never without one.
    next_observation: Instant,
    /// The contents of the queue and the transmitter: packets waiting or settled, not yet departed.
    held: Held,
    queue: Queue<T>,
    transmitter: Transmitter,
    delay: Delay,
    loss: Loss,
    outages: Option<Box<Outages>>,
    /// When the last packet settled so far departs.
    last_departure: Instant,
    /// Since when there has always been a packet in the queue or the transmitter.
    occupied_since: Instant,
    /// The packets that are settled but have not departed, in order of departure.
    settled: VecDeque<Settled>,
    /// The packets that are settled and will come out.
    wire: Wire<T>,
    /// Offered and delivered, by class.
    passed: [Passed; 2],
    transmitted: Count,
    /// The largest queue.
    maximum: Held,
    usage: Usage,
    recording: bool,
    cold: Option<Box<Cold<T>>>,
    /// The Quick-Start router in front of the queue.
    router: Option<Box<LinkRouter>>,
}

/// The counts of a class that every packet changes.
#[derive(Clone, Copy, Debug, Default)]
struct Passed {
    offered: Count,
    delivered: Count,
}

/// The state of what happens on few links, made when it happens there.
#[derive(Clone, Debug)]
struct Cold<T> {
    drops: [[Count; DropReason::COUNT]; 2],
    marked: Count,
    /// Settled packets that will be lost, in order of departure.
    doomed: VecDeque<T>,
    dropped: VecDeque<(Instant, DropReason, T)>,
    /// Scratch: those who went without being sent.
    gone: Vec<(Instant, T)>,
    /// When a packet last joined a queue that chooses.
    last_arrival: Instant,
}

impl<T> Default for Cold<T> {
    fn default() -> Self {
        Cold {
            drops: [[Count::default(); DropReason::COUNT]; 2],
            marked: Count::default(),
            doomed: VecDeque::new(),
            dropped: VecDeque::new(),
            gone: Vec::new(),
            last_arrival: Instant::ZERO,
        }
    }
}

/// A plain link is so many bytes, packets apart: 1,280 before what is cold was apart.
const _: () = assert!(size_of::<Link<crate::Plain>>() <= 416);

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
    /// `<name>.jitter` and, if its queue draws, `<name>.red`, `<name>.rio`, `<name>.pie` or `<name>.fq_codel`, of the
    /// run's `seed`.
    ///
    /// # Errors
    /// [`LinkError`] names the field of `spec` that cannot be.
    pub fn new(spec: &LinkSpec, seed: u64, name: &str) -> Result<Self, LinkError> {
        let transmitter = Transmitter::new(&spec.rate)?;
        let router = match &spec.quick_start {
            Some(params) => {
                let random = RandomStream::named(seed, &format!("{name}.quick_start"));
                Some(Box::new(LinkRouter::new(params, random, transmitter.capacity_at(Instant::ZERO))?))
            }
            None => None,
        };
        let outages = Outages::new(&spec.outage, spec.outage_at);
        Ok(Link {
            now: Instant::ZERO,
            next_start: Instant::NEVER,
            next_observation: router.as_ref().map_or(Instant::NEVER, |r| Instant::ZERO + r.interval()),
            held: Held::default(),
            queue: Queue::new(&spec.queue, seed, name)?,
            transmitter,
            delay: Delay::new(&spec.delay, RandomStream::named(seed, &format!("{name}.jitter")))?,
            loss: Loss::new(&spec.loss, RandomStream::named(seed, &format!("{name}.loss"))),
            outages: (!outages.is_empty()).then(|| Box::new(outages)),
            last_departure: Instant::ZERO,
            occupied_since: Instant::ZERO,
            settled: VecDeque::new(),
            wire: Wire::new(Duration::ZERO),
            passed: [Passed::default(); 2],
            transmitted: Count::default(),
            maximum: Held::default(),
            usage: Usage::default(),
            recording: false,
            cold: None,
            router,
        })
    }

    /// A packet arrives at the queue.
    #[inline(always)] // a call costs 5 % more instructions
    pub fn push(&mut self, now: Instant, mut packet: T) {
        self.settle_until(now);
        let now = self.now;
        let source = packet.flow();
        if let Some(option) = packet.quick_start() {
            // By value: a packet whose address goes out of here would be copied, option or not.
            *option = self.route(now, source, *option);
        }
        let (size, class) = (packet.size(), packet.class());
        self.passed[class as usize].offered.add(size);
        if self.held.packets == 0 {
            self.occupied_since = now;
        }
        match &mut self.queue {
            // Nothing ever waits for an unlimited transmitter.
            _ if matches!(self.transmitter, Transmitter::Unlimited) => {
                self.settle(now, packet);
            }
            Queue::DropTail(queue) if queue.admits(self.held, size.get()) => {
                self.hold(size);
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
    pub fn next(&self) -> Instant {
        let mut next = self.wire.next();
        // A packet that waits comes out after those on the wire, unless it may overtake them.
        if next == Instant::NEVER || self.delay.may_reorder() {
            next = next.min(self.delay.earliest_exit(self.next_start));
        }
        next.max(self.now)
    }

    /// The next packet that is out by `now`. Call it until there is none.
    #[inline(always)] // likewise
    pub fn pop(&mut self, now: Instant) -> Option<T> {
        self.settle_until(now);
        let packet = self.wire.pop(self.now)?;
        self.passed[packet.class() as usize].delivered.add(packet.size());
        Some(packet)
    }

    /// Brings the link up to `now` without taking anything out: before reading the counters, and
    /// at the end of a run.
    pub fn advance(&mut self, now: Instant) {
        self.settle_until(now);
    }

    /// The counts up to the latest time that any call has told: [`Link::advance`] first.
    pub fn counters(&self) -> LinkCounters {
        let now = self.now;
        // Time in the future is not yet spent, and the packets that still wait have not been added.
        let mut usage = self.usage;
        for packet in &self.settled {
            let ahead = u128::from(packet.departure.as_nanos() - now.as_nanos());
            usage.packet_ns -= ahead;
            usage.byte_ns -= ahead * u128::from(packet.size);
        }
        usage.busy_ns -= self.last_departure.as_nanos().saturating_sub(now.as_nanos());
        if let Queue::Choosing(queue) = &self.queue {
            queue.for_each(|arrival, packet| usage.add(now.as_nanos() - arrival.as_nanos(), packet.size().get()));
            // With opportunities, packets may wait while nothing is in transmission.
            if queue.waiting() > 0 {
                usage.busy_ns += now.as_nanos().saturating_sub(self.busy_from());
            }
        }
        let cold = self.cold.as_deref();
        let class = |i: usize| ClassCounters {
            offered: self.passed[i].offered,
            delivered: self.passed[i].delivered,
            drops: cold.map_or_else(Default::default, |cold| cold.drops[i]),
        };
        LinkCounters {
            classes: [class(0), class(1)],
            transmitted: self.transmitted,
            marked: cold.map_or_else(Count::default, |cold| cold.marked),
            max_queue: Packets::new(self.maximum.packets),
            max_queue_bytes: Bytes::new(self.maximum.bytes),
            elapsed_ns: now.as_nanos(),
            busy_ns: usage.busy_ns,
            packet_ns: usage.packet_ns,
            byte_ns: usage.byte_ns,
        }
    }

    /// The counts of the link's Quick-Start router so far, if there is one.
    pub fn quick_start(&self) -> Option<&QsCounters> {
        self.router.as_ref().map(|r| r.counters())
    }

    /// Forgets the largest queue seen, so that it is that of the time from now on.
    pub fn restart_maximum(&mut self) {
        self.maximum = self.held;
    }

    /// Whether dropped packets are kept for [`Link::take_dropped`]. Off at first.
    pub fn record_drops(&mut self, on: bool) {
        self.recording = on;
    }

    /// Whether [`Link::take_dropped`] has one.
    #[inline]
    pub fn has_dropped(&self) -> bool {
        self.cold.as_ref().is_some_and(|cold| !cold.dropped.is_empty())
    }

    /// The next dropped packet, why and when it was dropped, in order of time. Call it until there
    /// is none.
    pub fn take_dropped(&mut self) -> Option<(Instant, DropReason, T)> {
        self.cold.as_mut()?.dropped.pop_front()
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
        let doomed = self.cold.as_ref().map_or(0, |cold| cold.doomed.len());
        waiting + doomed + self.wire.len()
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

    /// Tells the Quick-Start router what was sent in each of its intervals that end before that instant. All that
    /// departed until then is counted, and nothing later.
    #[cold]
    fn observe_before(&mut self, instant: Instant) {
        let Some(router) = &mut self.router else { return };
        while self.next_observation < instant {
            let (end, interval) = (self.next_observation, router.interval());
            let bits = self.transmitter.capacity_between(end - interval, end);
            let capacity = bits.map_or(Rate::MAX, |bits| Rate::bps(bits / interval.as_secs_f64()));
            router.observe(capacity, self.transmitted.bytes);
            self.next_observation = end + interval;
        }
    }

    /// The fate of a Quick-Start option in front of the queue.
    #[cold]
    fn route(&mut self, now: Instant, source: u64, mut option: QsOption) -> QsOption {
        self.observe_before(now + Duration::from_nanos(1));
        match &mut self.router {
            Some(router) => router.on_request(now, source, &mut option),
            None => pass_unaware(&mut option),
        }
        option
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
        if self.next_observation < packet.departure {
            self.observe_before(packet.departure);
        }
        self.transmitted.add(Bytes::new(packet.size));
        let reason = match packet.fate {
            Fate::Arrives => return,
            Fate::Damaged => DropReason::LinkError,
            Fate::Dark => DropReason::Outage,
        };
        if let Some(lost) = self.cold.as_mut().and_then(|cold| cold.doomed.pop_front()) {
            self.drop_now(packet.departure, reason, lost);
        }
    }

    /// Until when the busy time is counted, if there is a packet in the queue or the transmitter.
    #[inline]
    fn busy_from(&self) -> u64 {
        self.last_departure.max(self.occupied_since).as_nanos()
    }

    /// A packet is let in.
    #[inline(always)] // as `push`
    fn hold(&mut self, size: Bytes) {
        self.held.packets += 1;
        self.held.bytes += size.get();
        self.note_maximum();
    }

    #[inline]
    fn note_maximum(&mut self) {
        self.maximum.packets = self.maximum.packets.max(self.held.packets);
        self.maximum.bytes = self.maximum.bytes.max(self.held.bytes);
    }

    /// The next packet to be transmitted is this one, and nothing can change that: what becomes of
    /// it? Returns when its transmission begins.
    #[inline]
    fn settle(&mut self, arrival: Instant, packet: T) -> Instant {
        let size = packet.size().get();
        let Service { start, departure } = self.transmitter.serve(arrival, size);
        // Both draw for every packet, so that no outcome shifts the draws of later packets.
        let exit = self.delay.exit_of(departure);
        let damaged = self.loss.next();
        let fate = match damaged {
            _ if self.outages.as_ref().is_some_and(|o| o.hit(start, departure, exit)) => Fate::Dark,
            true => Fate::Damaged,
            false => Fate::Arrives,
        };
        if fate == Fate::Arrives {
            self.delay.keep_order_after(exit);
            self.wire.insert(exit, packet);
        } else {
            self.cold().doomed.push_back(packet);
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
        start
    }

    /// A packet arrives at a queue that admits by more than its room.
    fn push_managed(&mut self, now: Instant, mut packet: T, size: Bytes) {
        let Queue::Managed(queue) = &mut self.queue else { return };
        let held = self.held;
        let found = match self.settled.front() {
            Some(sent) => {
                let waiting = Held { packets: held.packets - 1, bytes: held.bytes - sent.size };
                Occupancy { held, waiting, could_have_left: 0 }
            }
            None => {
                let idle_since = self.last_departure;
                let could_have_left = self.transmitter.packets_between(idle_since, now, queue.mean_packet_size());
                Occupancy { held, waiting: held, could_have_left }
            }
        };
        match queue.decide(now, found, packet.class(), size.get(), packet.ecn() != Ecn::NotEct) {
            Verdict::Drop(reason) => return self.drop_now(now, reason, packet),
            Verdict::Mark => {
                packet.set_ecn(Ecn::Ce);
                self.cold().marked.add(size);
            }
            Verdict::Admit => {}
        }
        self.hold(size);
        let start = self.settle(now, packet);
        if let Queue::Managed(queue) = &mut self.queue {
            queue.admitted(now, start);
        }
    }

    /// A packet arrives at a queue that chooses.
    fn push_choosing(&mut self, now: Instant, packet: T, size: Bytes) {
        let Queue::Choosing(queue) = &mut self.queue else { return };
        if self.held.packets == 0 {
            queue.found_empty();
        }
        let cold = self.cold.get_or_insert_default();
        if let Err(refused) = queue.arrive(now, self.held, packet, &mut cold.gone) {
            return self.drop_now(now, DropReason::QueueFull, refused);
        }
        let waiting = queue.waiting();
        cold.last_arrival = now;
        let pushed_out = !cold.gone.is_empty();
        self.held.packets += 1;
        self.held.bytes += size.get();
        if pushed_out {
            self.drop_gone(now, DropReason::PushedOut);
        }
        self.note_maximum();
        if waiting == 0 {
            self.next_start = Instant::NEVER;
        } else if self.next_start == Instant::NEVER {
            self.next_start = self.transmitter.earliest_start(now);
            self.settle_until(now);
        }
    }

    /// The transmitter is free for the next packet of a queue that chooses.
    fn begin_transmission(&mut self) {
        let start = self.next_start;
        let Queue::Choosing(queue) = &mut self.queue else { return };
        let cold = self.cold.get_or_insert_default();
        let next = queue.dequeue(start, &mut cold.gone);
        let (waiting, last_arrival) = (queue.waiting(), cold.last_arrival);
        if !cold.gone.is_empty() {
            self.drop_gone(start, DropReason::Early);
        }
        if let Some(Next { arrival, packet, marked }) = next {
            if marked {
                self.cold().marked.add(packet.size());
            }
            self.settle(arrival, packet);
        }
        // All who wait arrived before this transmission began, and can begin when it ends, whoever
        // is chosen then.
        self.next_start = if waiting == 0 { Instant::NEVER } else { self.transmitter.earliest_start(last_arrival) };
    }

    /// Those in `gone` have left the queue without being sent.
    fn drop_gone(&mut self, now: Instant, reason: DropReason) {
        let mut gone = std::mem::take(&mut self.cold().gone);
        for (arrival, packet) in gone.drain(..) {
            let size = packet.size().get();
            self.usage.add(now.as_nanos() - arrival.as_nanos(), size);
            self.held.packets -= 1;
            self.held.bytes -= size;
            self.drop_now(now, reason, packet);
        }
        self.cold().gone = gone;
        if self.held.packets == 0 {
            self.usage.busy_ns += now.as_nanos().saturating_sub(self.busy_from());
        }
    }

    #[inline]
    fn cold(&mut self) -> &mut Cold<T> {
        self.cold.get_or_insert_default()
    }

    #[cfg(test)]
    pub(crate) fn queue(&self) -> &Queue<T> {
        &self.queue
    }

    fn drop_now(&mut self, now: Instant, reason: DropReason, packet: T) {
        let recording = self.recording;
        let cold = self.cold();
        cold.drops[packet.class() as usize][reason as usize].add(packet.size());
        if recording {
            cold.dropped.push_back((now, reason, packet));
        }
    }
}
