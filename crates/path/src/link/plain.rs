//! A plain link: drop-tail, one rate, one distance, perhaps with losses; nothing else is drawn, nothing is dark.
//!
//! An admitted packet's departure is known at once, and nothing can change it. So the ring holds each packet with its
//! departure, and exits follow from departures. Departures are counted late: those before an arrival when it is pushed,
//! since it has to know the queue, and those of packets that come out with nobody pushed in between when they come out.
//! Only lost packets are missed in time, since somebody may wait for what is dropped.
//!
//! A driver may also take exits from [`PlainLink::pass`] and pop nothing. Then nothing is kept of packets that are as large as the one before: how many
//! of them are in a packet's way follows from when the last one departs, and where they take whole nanoseconds they need only the link's [`Lane`]. Only
//! where others meet do all lie in the ring, until the transmitter is idle again. Before somebody reads, the driver tells which packets are inside
//! ([`PlainLink::restore`]).

use super::account::Account;
use super::cold::{Cold, DELIVERED, OFFERED};
use super::lane::Lane;
use super::usage::Usage;
use crate::counters::{Count, LinkCounters};
use crate::delay::checked;
use crate::loss::Loss;
use crate::queue::drop_tail::DropTail;
use crate::queue::parts::{Held, Room};
use crate::quick_start::pass_unaware;
use crate::rate::FixedRate;
use crate::ring::Ring;
use crate::{Datagram, DropReason, LinkError, LinkSpec, LossModel, QueueModel, RateModel};
use fairpace_units::{Bytes, Class, Instant, Packets, Probability, QsOption, RandomStream, Rate};

/// A drop-tail queue, one rate, one distance: see [`Link`](super::Link), which has all its calls.
///
/// The order of fields is that of use: with the 24 bytes that a network keeps before them, a packet that is pushed and popped touches the first three
/// cache lines or, if it has to wait, all four.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct PlainLink<T> {
    /// The latest time that any call has told.
    now: Instant,
    recording: bool,
    lossless: bool,
    /// The packets that have not departed are all as large as the last one, and not in the ring. One as large is in the ring's last place.
    alike: bool,
    /// Nanoseconds on the way.
    propagation: u64,
    cold: Option<Box<Cold<T>>>,
    /// As in [`Usage`].
    idle_ns: u64,
    transmitter: FixedRate,
    /// When the next packet comes out; never if there is none.
    next_exit: Instant,
    /// The bytes of the packets that are not counted as departed.
    held_bytes: u64,
    /// The packets inside, in order of departure.
    ring: Ring<Inside<T>>,
    /// Number of the first of them that is not counted as departed.
    departed: u32,
    /// Number behind the last one that was handed on; or of one that has come out.
    handed_on: u32,
    /// As in [`Usage`]; the sums begin again when they are full, which is kept apart.
    packet_ns: u64,
    byte_ns: u64,
    /// All that was let in.
    admitted: Held,
    losses: Option<Box<Losses>>,
    queue: DropTail,
    /// The largest queue.
    maximum: Held,
}

/// The losses of a link that has some.
#[derive(Clone, Debug)]
struct Losses {
    /// When the first packet departs that is lost and has not yet been dropped; never if there is none.
    next: Instant,
    model: Loss,
}

/// A packet, when it departs, and whether it is lost then: in one number, since many lie in a ring and few are.
#[derive(Clone, Copy, Debug)]
struct Inside<T> {
    departure_and_lost: u64,
    packet: T,
}

/// The bit of a packet that is lost. A departure after 292 years, which does not come, is one at 292 years.
const LOST: u64 = 1 << 63;

impl<T> Inside<T> {
    #[inline(always)]
    fn new(departure: Instant, lost: bool, packet: T) -> Self {
        let departure = departure.as_nanos().min(LOST - 1);
        Inside { departure_and_lost: if lost { departure | LOST } else { departure }, packet }
    }

    #[inline(always)]
    fn departure(&self) -> Instant {
        Instant::from_nanos(self.departure_and_lost & !LOST)
    }

    #[inline(always)]
    fn lost(&self) -> bool {
        self.departure_and_lost & LOST != 0
    }
}

impl<T: Datagram> PlainLink<T> {
    /// The link that `spec` describes, with the random stream `<name>.loss`; `None` if it is not plain.
    pub(super) fn new(spec: &LinkSpec, seed: u64, name: &str) -> Result<Option<Self>, LinkError> {
        let (RateModel::Fixed(rate), QueueModel::DropTail { capacity }) = (&spec.rate, &spec.queue) else {
            return Ok(None);
        };
        if !spec.delay.jitter.is_zero() || !spec.outage.is_empty() || spec.quick_start.is_some() {
            return Ok(None);
        }
        let transmitter = FixedRate::new(*rate).ok_or(LinkError::RateZero { found: *rate })?;
        let losses = match spec.loss {
            LossModel::None => None,
            LossModel::Bernoulli(p) if p == Probability::ZERO => None,
            _ => {
                let random = RandomStream::named(seed, &format!("{name}.loss"));
                Some(Box::new(Losses { next: Instant::NEVER, model: Loss::new(&spec.loss, random) }))
            }
        };
        Ok(Some(PlainLink {
            now: Instant::ZERO,
            next_exit: Instant::NEVER,
            ring: Ring::default(),
            departed: 0,
            handed_on: 0,
            alike: false,
            recording: false,
            lossless: losses.is_none(),
            queue: DropTail::new(Room::new(*capacity)?),
            propagation: checked("propagation", spec.delay.propagation)?,
            held_bytes: 0,
            cold: None,
            admitted: Held::default(),
            transmitter,
            maximum: Held::default(),
            packet_ns: 0,
            byte_ns: 0,
            idle_ns: 0,
            losses,
        }))
    }

    /// As [`Link::push`](super::Link::push).
    #[inline(always)]
    pub fn push(&mut self, now: Instant, packet: T) {
        self.reach(now);
        let packet = unaware(packet);
        let Some(departure) = self.admit(self.now, packet) else { return self.refuse(packet) };
        if let Some(losses) = &mut self.losses
            && losses.model.next()
        {
            return self.lose(departure, packet);
        }
        if self.next_exit == Instant::NEVER {
            self.next_exit = self.exit_of(departure);
        }
        self.keep(Inside::new(departure, false, packet), self.now);
    }

    /// As [`PlainLink::push`] into a link without losses from which nothing is popped, and whose lane this is: the driver has the packet meanwhile. When it
    /// comes out; `None` if it was dropped. Before counts are read, [`PlainLink::restore`].
    #[inline(never)]
    pub fn pass(&mut self, lane: &mut Lane, now: Instant, packet: T) -> Option<Instant> {
        debug_assert!(self.next_exit == Instant::NEVER, "packets are popped from it");
        debug_assert!(now >= self.now, "time went back from {} to {now}", self.now);
        self.now = self.now.max(now);
        let exit = self.pass_early(lane, self.now, self.now, packet);
        if exit.is_none() {
            self.refuse(unaware(packet));
            *lane = self.lane();
        }
        exit
    }

    /// As [`PlainLink::pass`], of a packet that will arrive at that instant, behind all that have gone in, and before any other. The link's counts have it
    /// at once, so they are right again from that instant on. `None` if the queue will have no room: then it is to be passed when the time has
    /// come.
    #[inline(never)]
    pub fn pass_early(&mut self, lane: &mut Lane, now: Instant, at: Instant, packet: T) -> Option<Instant> {
        debug_assert!(at >= now && at >= self.now && self.is_lossless(), "a packet at {at}, {} now", self.now);
        let packet = unaware(packet);
        let size = packet.size().get();
        let is_normal = packet.class() == Class::Normal;
        if let Some(exit) = is_normal.then(|| lane.pass(at, size)).flatten() {
            return Some(exit);
        }
        self.absorb(lane);
        let as_before = self.transmitter.served_last(size) && is_normal && self.cold.is_none();
        let exit = if as_before && self.alike && self.transmitter.busy_until() > at {
            self.pass_alike(at, size)
        } else {
            self.pass_among(now, at, packet)
        };
        *lane = self.lane();
        exit
    }

    /// The lane of a link from which nothing is popped, as it stands.
    fn lane(&self) -> Lane {
        // Where packets are dropped or have a priority, all are counted one by one.
        if self.cold.is_some() { Lane::default() } else { self.open_lane().unwrap_or_default() }
    }

    /// [`PlainLink::lane`] where packets are alike; `None` if they are too large or too slow for its numbers.
    fn open_lane(&self) -> Option<Lane> {
        let (size, took) = self.transmitter.last()?;
        let narrow = |number: u64| u32::try_from(number).ok();
        // Those before a packet are as large if they have departed, or all are.
        let all_alike = self.alike || self.transmitter.busy_until() <= self.now;
        let most = if all_alike && self.transmitter.is_in_whole_nanoseconds() { self.queue.room_for(size) } else { 1 };
        let limit = most.saturating_mul(took).min(u32::MAX.into());
        let (size, took) = (narrow(size)?, narrow(took)?);
        (took > 0).then_some(Lane {
            busy_until: self.transmitter.busy_until(),
            size,
            took,
            limit: limit as u32,
            propagation: narrow(self.propagation)?,
            ..Lane::default()
        })
    }

    /// Packets that have passed by the lane are in the counts, too.
    fn absorb(&mut self, lane: &mut Lane) {
        let Lane { busy_until, size, took, packets, longest_ns, stay_ns, idle_ns, .. } = *lane;
        if packets == 0 {
            return;
        }
        (lane.packets, lane.longest_ns, lane.stay_ns, lane.idle_ns) = (0, 0, 0, 0);
        self.alike = true;
        self.transmitter.resume(busy_until);
        self.idle_ns += idle_ns;
        let (packets, size) = (u64::from(packets), u64::from(size));
        self.admitted.packets += packets;
        self.admitted.bytes += packets * size;
        let most = u64::from(longest_ns.div_ceil(took));
        self.count_maximum(Held { packets: most, bytes: most * size });
        self.use_up(stay_ns, size);
    }

    /// [`PlainLink::pass_early`] of a packet that meets others as large.
    fn pass_alike(&mut self, at: Instant, size: u64) -> Option<Instant> {
        let packets = 1 + self.transmitter.departures_after(at);
        let with = Held { packets, bytes: packets.saturating_mul(size) };
        if !self.queue.holds(with) {
            return None;
        }
        self.count_maximum(with);
        let departure = self.transmitter.serve_next(size);
        self.admitted.packets += 1;
        self.admitted.bytes += size;
        self.use_up(departure.as_nanos() - at.as_nanos(), size);
        Some(self.exit_of(departure))
    }

    /// [`PlainLink::pass_early`] of a packet that meets others, is the first of its size, or one whose priority is counted.
    fn pass_among(&mut self, now: Instant, at: Instant, packet: T) -> Option<Instant> {
        self.show_alike(at);
        if self.cold.is_none() {
            // Only those that have not departed are in its way.
            self.count_departures(at);
            self.ring.skip_to(self.departed);
        }
        let departure = self.admit(at, packet)?;
        self.keep(Inside::new(departure, false, packet), now);
        self.handed_on = self.ring.end();
        Some(self.exit_of(departure))
    }

    /// A packet arrives at the queue. When it departs; `None` if there is no room.
    #[inline(always)]
    fn admit(&mut self, now: Instant, packet: T) -> Option<Instant> {
        self.count_departures(now);
        let size = packet.size();
        let Held { packets, bytes } = self.held();
        let with = Held { packets: packets + 1, bytes: bytes + size.get() };
        // One alone has room if the last one had, of the same size, and is no more than the most so far.
        if packets != 0 || !self.transmitter.served_last(size.get()) {
            if !self.queue.holds(with) {
                return None;
            }
            self.count_maximum(with);
        }
        if packet.class() == Class::Low {
            self.cold().low[OFFERED].add(size);
        }
        let departure = if packets == 0 {
            self.idle_ns += now.as_nanos() - self.transmitter.busy_until().as_nanos();
            self.transmitter.serve_idle(now, size.get())
        } else {
            self.transmitter.serve_next(size.get())
        };
        self.held_bytes = with.bytes;
        self.admitted.packets += 1;
        self.admitted.bytes += size.get();
        self.use_up(departure.as_nanos() - now.as_nanos(), size.get());
        Some(departure)
    }

    /// The queue is that long, with the packet that arrives.
    #[inline(always)]
    fn count_maximum(&mut self, with: Held) {
        if with.packets > self.maximum.packets {
            self.maximum.packets = with.packets;
        }
        if with.bytes > self.maximum.bytes {
            self.maximum.bytes = with.bytes;
        }
    }

    /// The packets that have not departed by then are in the ring, and those before them are not.
    fn show_alike(&mut self, now: Instant) {
        if !std::mem::take(&mut self.alike) {
            return;
        }
        // As large as the last one, whichever it is.
        let Some(packet) = self.ring.last().map(|inside| inside.packet) else { return };
        self.ring.skip_to(self.ring.end());
        (self.departed, self.held_bytes) = (self.ring.end(), 0);
        for after in (0..self.transmitter.departures_after(now)).rev() {
            self.ring.push(Inside::new(self.transmitter.departure_before(after), false, packet));
            self.held_bytes += packet.size().get();
        }
        self.handed_on = self.ring.end();
    }

    /// Tells of a link from which nothing is popped which packets are inside, and when they come out, in that order: all others are out. To be
    /// called after [`Link::advance`](super::Link::advance), before counts are read. The lane stays as it is, but what has passed is in the counts.
    pub fn restore(&mut self, lane: &mut Lane, inside: impl IntoIterator<Item = (Instant, T)>) {
        debug_assert!(self.lossless && self.next_exit == Instant::NEVER, "packets are popped from it");
        let mut inside = inside.into_iter().peekable();
        // Of those that come out, some are counted as they do.
        self.let_go(inside.peek().map_or(Instant::NEVER, |(exit, _)| *exit));
        self.absorb(lane);
        self.alike = false;
        self.ring.skip_to(self.ring.end());
        (self.departed, self.held_bytes) = (self.ring.end(), 0);
        for (exit, packet) in inside {
            let departure = Instant::from_nanos(exit.as_nanos().saturating_sub(self.propagation));
            self.ring.push(Inside::new(departure, false, packet));
            if departure > self.now {
                self.held_bytes += packet.size().get();
            } else {
                self.departed = self.ring.end();
            }
        }
        self.handed_on = self.ring.end();
    }

    /// As [`Link::next`](super::Link::next).
    #[inline(always)]
    pub fn next(&self) -> Instant {
        self.next_exit.max(self.now)
    }

    /// As [`Link::pop`](super::Link::pop).
    #[inline(always)]
    pub fn pop(&mut self, now: Instant) -> Option<T> {
        self.reach(now);
        if self.next_exit > self.now {
            return None;
        }
        // The first one comes out: a lost one in front of it departed before, and was dropped by `reach`.
        let packet = self.let_out()?;
        self.next_exit = match self.ring.front() {
            None => Instant::NEVER,
            Some(inside) if !inside.lost() => self.exit_of(inside.departure()),
            Some(_) => self.first_exit(),
        };
        Some(packet)
    }

    /// The first packet in the ring, which is not lost, is out.
    #[inline(always)]
    fn let_out(&mut self) -> Option<T> {
        let number = self.ring.first();
        let Inside { packet, .. } = self.ring.pop()?;
        if self.departed == number {
            self.departed = self.ring.first();
            self.held_bytes -= packet.size().get();
        }
        if packet.class() == Class::Low {
            self.cold().low[DELIVERED].add(packet.size());
        }
        Some(packet)
    }

    /// Tells when packets come out, and which, from that on which comes out at [`PlainLink::next`], so many at most. A driver may bring them to where they go
    /// before the time has come: [`PlainLink::pass_early`] there, and [`PlainLink::hand_on`] here.
    #[inline(always)]
    pub fn to_pop(&self, most: usize, into: &mut Vec<(Instant, T)>) {
        let mut left = most;
        for part in self.ring.slices_from(self.number_to_pop()) {
            let told = into.len();
            let each = |inside: &Inside<T>| (self.exit_of(inside.departure()), inside.packet);
            if self.lossless {
                into.extend(part.iter().take(left).map(each));
            } else {
                into.extend(part.iter().filter(|inside| !inside.lost()).take(left).map(each));
            }
            left -= into.len() - told;
        }
    }

    /// So many of [`PlainLink::to_pop`] have been brought to where they go, and are not popped. They are inside until
    /// [`PlainLink::let_go`].
    #[inline(always)]
    pub fn hand_on(&mut self, packets: usize) {
        if self.lossless {
            self.handed_on = self.number_to_pop().wrapping_add(packets as u32);
        } else {
            for _ in 0..packets {
                self.handed_on = self.number_to_pop().wrapping_add(1);
            }
        }
        let next = self.ring.get(self.number_to_pop());
        self.next_exit = next.map_or(Instant::NEVER, |inside| self.exit_of(inside.departure()));
    }

    /// When the last packet comes out that was handed on and is inside; `None` if none is.
    pub fn handed_on_until(&self) -> Option<Instant> {
        let number = self.is_behind(self.ring.first()).then(|| self.handed_on.wrapping_sub(1))?;
        self.ring.get(number).map(|inside| self.exit_of(inside.departure()))
    }

    /// Packets that were handed on and come out before that instant, which is no later than the next one after what any call has told,
    /// are out. To be called after [`Link::advance`](super::Link::advance), before counts are read, and before a pop.
    pub fn let_go(&mut self, before: Instant) {
        let no_low = self.cold.as_ref().is_none_or(|cold| cold.low[OFFERED] == Count::default());
        let behind = self.lossless && no_low && self.is_behind(self.ring.first());
        if behind
            && let Some(last) = self.ring.get(self.handed_on.wrapping_sub(1))
            && self.exit_of(last.departure()) < before
        {
            return self.ring.skip_to(self.handed_on);
        }
        while let Some(inside) = self.ring.front() {
            if inside.lost() {
                if self.ring.first() == self.departed {
                    break;
                }
                self.ring.pop();
            } else if self.is_behind(self.ring.first()) && self.exit_of(inside.departure()) < before {
                self.let_out();
            } else {
                break;
            }
        }
        if !self.is_behind(self.ring.first()) {
            self.handed_on = self.ring.first();
        }
    }

    /// A packet that was let in goes into the ring. If that is full, one that was handed on and is out by now leaves its place.
    #[inline(always)]
    fn keep(&mut self, inside: Inside<T>, now: Instant) {
        if self.ring.is_full() && self.is_behind(self.ring.first()) {
            return self.keep_in_full(inside, now);
        }
        self.ring.push(inside);
    }

    /// [`PlainLink::keep`] in a full ring whose first packet was handed on.
    #[inline(always)]
    fn keep_in_full(&mut self, inside: Inside<T>, now: Instant) {
        match self.ring.front() {
            Some(first) if first.lost() => {
                self.let_go(now);
                self.ring.push(inside);
            }
            Some(first) if self.exit_of(first.departure()) < now => {
                if first.packet.class() == Class::Low {
                    let size = first.packet.size();
                    self.cold().low[DELIVERED].add(size);
                }
                self.ring.turn(inside);
            }
            _ => self.ring.push(inside),
        }
    }

    /// Whether packets from that number on were handed on. (Numbers go around after the largest.)
    #[inline(always)]
    fn is_behind(&self, number: u32) -> bool {
        self.handed_on.wrapping_sub(number) as i32 > 0
    }

    /// The number of the first packet that is neither lost nor handed on, or of the next one if there is none.
    #[inline(always)]
    fn number_to_pop(&self) -> u32 {
        let first = self.ring.first();
        let mut number = if self.is_behind(first) { self.handed_on } else { first };
        while self.ring.get(number).is_some_and(Inside::lost) {
            number = number.wrapping_add(1);
        }
        number
    }

    /// Whether no packet is lost on the way.
    pub fn is_lossless(&self) -> bool {
        self.lossless
    }

    /// Whether no two packets come out at one instant, since each byte takes a nanosecond at least.
    pub fn spaces_packets(&self) -> bool {
        self.transmitter.takes_a_nanosecond()
    }

    /// The packet inside that comes out after so many others, perhaps as lost.
    #[inline(always)]
    pub fn peek(&self, ahead: u32) -> Option<&T> {
        if ahead >= self.ring.len() {
            return None;
        }
        self.ring.get(self.ring.first().wrapping_add(ahead)).map(|inside| &inside.packet)
    }

    pub(super) fn advance(&mut self, now: Instant) {
        self.reach(now);
        self.count_departures(self.now);
    }

    pub(super) fn record_drops(&mut self, on: bool) {
        self.recording = on;
    }

    /// As [`Link::has_dropped`](super::Link::has_dropped).
    #[inline(always)]
    pub fn has_dropped(&self) -> bool {
        self.cold.as_ref().is_some_and(|cold| !cold.dropped.is_empty())
    }

    pub(super) fn take_dropped(&mut self) -> Option<(Instant, DropReason, T)> {
        self.cold.as_mut()?.dropped.pop_front()
    }

    pub(super) fn capacity_at(&self, _now: Instant) -> Rate {
        self.transmitter.rate()
    }

    pub(super) fn capacity_between(&self, from: Instant, to: Instant) -> Option<f64> {
        Some(self.transmitter.capacity_between(from, to))
    }

    pub(super) fn restart_maximum(&mut self) {
        self.show_alike(self.now);
        self.count_departures(self.now);
        self.maximum = self.held();
        self.transmitter.forget();
    }

    pub(super) fn queue_len(&self) -> usize {
        self.waiting().count()
    }

    pub(super) fn queue_bytes(&self) -> Bytes {
        self.waiting().fold(Bytes::ZERO, |sum, inside| sum + inside.packet.size())
    }

    pub(super) fn inside(&self) -> usize {
        // Of lost ones those in front have been dropped, and perhaps some that departed behind others.
        let gone = |inside: &&Inside<T>| inside.lost() && inside.departure() <= self.now;
        self.ring.len() as usize - self.ring.iter().filter(gone).count()
    }

    pub(super) fn counters(&self) -> LinkCounters {
        let full = self.cold.as_ref().map_or_else(Usage::default, |cold| cold.full);
        let mut usage = Usage { idle_ns: self.idle_ns, ..full.plus(self.packet_ns, self.byte_ns) };
        let mut held = Count::default();
        for inside in self.waiting() {
            let size = inside.packet.size();
            held.add(size);
            usage.take_back(inside.departure().as_nanos() - self.now.as_nanos(), size.get());
        }
        let Held { packets, bytes } = self.admitted;
        let admitted = Count { packets: Packets::new(packets), bytes: Bytes::new(bytes) };
        let mut on_the_way = Count::default();
        for inside in self.ring.iter().filter(|inside| !inside.lost() && inside.departure() <= self.now) {
            on_the_way.add(inside.packet.size());
        }
        Account {
            now: self.now,
            transmitted: admitted.minus(held),
            held: Held { packets: held.packets.get(), bytes: held.bytes.get() },
            on_the_way,
            maximum: self.maximum,
            usage,
            busy_until: self.transmitter.busy_until(),
            cold: self.cold.as_deref(),
        }
        .counters()
    }

    /// Time goes on; packets that have been lost meanwhile are dropped.
    #[inline(always)]
    fn reach(&mut self, now: Instant) {
        debug_assert!(now >= self.now, "time went back from {} to {now}", self.now);
        debug_assert!(now < Instant::NEVER, "never does not come");
        self.now = self.now.max(now);
        if let Some(losses) = &self.losses
            && losses.next <= self.now
        {
            self.count_departures(self.now);
        }
    }

    /// Counts those whose last bit has left by then.
    #[inline(always)]
    fn count_departures(&mut self, now: Instant) {
        if self.lossless && self.transmitter.busy_until() <= now {
            (self.departed, self.held_bytes) = (self.ring.end(), 0);
            return;
        }
        while let Some(&inside) = self.ring.get(self.departed)
            && inside.departure() <= now
        {
            self.held_bytes -= inside.packet.size().get();
            self.departed = self.departed.wrapping_add(1);
            if inside.lost() {
                self.drop_lost(inside.departure(), inside.packet);
            }
        }
    }

    /// A packet spends so much time in queue and transmitter.
    #[inline(always)]
    fn use_up(&mut self, stay_ns: u64, size: u64) {
        let sums = (self.packet_ns.checked_add(stay_ns), stay_ns.checked_mul(size));
        if let (Some(packet_ns), Some(more)) = sums
            && let Some(byte_ns) = self.byte_ns.checked_add(more)
        {
            (self.packet_ns, self.byte_ns) = (packet_ns, byte_ns);
        } else {
            self.use_up_afresh(stay_ns, size);
        }
    }

    /// The sums are full.
    #[cold]
    fn use_up_afresh(&mut self, stay_ns: u64, size: u64) {
        let (packet_ns, byte_ns) = (self.packet_ns, self.byte_ns);
        let cold = self.cold();
        cold.full = cold.full.plus(packet_ns, byte_ns);
        cold.full.add(stay_ns, size);
        (self.packet_ns, self.byte_ns) = (0, 0);
    }

    /// The packets that are not counted as departed.
    #[inline(always)]
    fn held(&self) -> Held {
        Held { packets: self.ring.end().wrapping_sub(self.departed).into(), bytes: self.held_bytes }
    }

    /// The packets whose last bit has not left.
    fn waiting(&self) -> impl Iterator<Item = &Inside<T>> {
        self.ring.iter_from(self.departed).skip_while(|inside| inside.departure() <= self.now)
    }

    /// When a packet comes out that departs then.
    #[inline(always)]
    fn exit_of(&self, departure: Instant) -> Instant {
        Instant::from_nanos(departure.as_nanos().saturating_add(self.propagation))
    }

    /// The queue has no room.
    #[cold]
    fn refuse(&mut self, packet: T) {
        let (now, recording) = (self.now, self.recording);
        if packet.class() == Class::Low {
            self.cold().low[OFFERED].add(packet.size());
        }
        self.cold().drop(now, DropReason::QueueFull, packet, recording);
    }

    /// A packet that was let in will be lost.
    #[cold]
    fn lose(&mut self, departure: Instant, packet: T) {
        if let Some(losses) = &mut self.losses {
            losses.next = losses.next.min(departure);
        }
        self.keep(Inside::new(departure, true, packet), self.now);
    }

    /// A packet that is lost has departed, and is counted so.
    #[cold]
    fn drop_lost(&mut self, departure: Instant, packet: T) {
        let recording = self.recording;
        self.cold().drop(departure, DropReason::LinkError, packet, recording);
        let later = self.ring.iter_from(self.departed).find(|inside| inside.lost());
        let next = later.map_or(Instant::NEVER, Inside::departure);
        if let Some(losses) = &mut self.losses {
            losses.next = next;
        }
        self.trim();
    }

    /// No lost packet that has departed is at the front.
    fn trim(&mut self) {
        while self.ring.first() != self.departed && self.ring.front().is_some_and(Inside::lost) {
            self.ring.pop();
        }
    }

    /// The exit of the first packet that comes out, behind such as will be lost.
    #[cold]
    fn first_exit(&mut self) -> Instant {
        self.trim();
        let first = self.ring.iter().find(|inside| !inside.lost());
        first.map_or(Instant::NEVER, |inside| self.exit_of(inside.departure()))
    }

    #[inline]
    fn cold(&mut self) -> &mut Cold<T> {
        self.cold.get_or_insert_default()
    }
}

/// A packet has passed a router that does not know Quick-Start.
#[inline(always)]
fn unaware<T: Datagram>(mut packet: T) -> T {
    if let Some(option) = packet.quick_start() {
        // By value: a packet whose address goes out of here would be copied, option or not.
        *option = pass(*option);
    }
    packet
}

/// A Quick-Start option passes a router that does not know it.
#[cold]
pub(super) fn pass(mut option: QsOption) -> QsOption {
    pass_unaware(&mut option);
    option
}
