//! ARQ: the slotted wireless link of a base station, one packet per slot, with local retransmission.
//!
//! Source: [aimd §III-B, §III-C, §IV, §IV-A]. Page: `docs/links/arq.md`. Read first: [`ArqSpec`]; the channel is
//! `channel.rs`, what can be seen `arq/event.rs`; here the packets.
//!
//! | paper | here | unit | set by |
//! | --- | --- | --- | --- |
//! | time slot, τ | `slot` | time | 5 ms |
//! | packet size | `slot_size` | bytes | 125 |
//! | p_e, λ, M | [`Channel`](crate::Channel) | – | per user |
//! | B | `buffer` | packets or bytes | per user, the sum of its flows' rwnd |
//! | local retransmission delay | `slot`, `retry_delay` | slots | 5 ms: the failed slot itself; 0 more |
//!
//! **In a slot.** The user whose slot it is sends the packet at the head of its queue, or the next piece of it. The
//! transmission fails with the error probability of the state that the user's channel is in. Until the slot ends the
//! packet is in the queue; then it has left, waits for its next try, or is dropped as the scheme says.
//!
//! **Readings.** (a) A packet that arrives at the instant at which a slot begins may use it. (b) The paper's
//! *local retransmission delay* of 5 ms is the slot that failed: persistent ARQ sends again in the next one.
//! (c) The channel steps in every slot, whether or not anything is sent. (d) Silence and `retry_delay` are counted in
//! slots of the link. (e) A packet given up makes way at once: the next one needs no silence.
//! (f) Slots are given to users by smooth weighted round robin: who has waited longest for its part is first,
//! the lower number if equal. In a work-conserving link only those who can send take part and are charged, so that a
//! slot which nobody else can use costs its user nothing.
//!
//! **Deviation.** None known. The paper has one user; dedicated slots and weights are those of its §III-D, step 3.
//!
//! **Not implemented.** Time for acknowledgments on the air; errors in them; selective repeat, in which later packets
//! overtake one that waits; power and interference (the paper leaves them out too).

mod event;
mod spec;

pub use event::{ArqCounters, ArqSlot, SlotOutcome};
pub use spec::{ArqError, ArqScheme, ArqSpec, ArqUser};

use crate::channel::Fading;
use crate::queue::parts::{Held, Room};
use crate::quick_start::pass_unaware;
use crate::{Capacity, Datagram, DropReason, Wire};
use fairpace_units::{Bytes, Instant, Packets, RandomStream};
use std::collections::VecDeque;

/// Slots kept for [`Arq::take_slot`].
const MOST_SLOTS: usize = 1 << 18;

/// A wireless link: packets come in for a user and come out `delay` after their last slot.
///
/// Used like a [`Link`](crate::Link): push what arrives, ask [`Arq::next`], come back then and pop. A user that is not
/// there (`>= users()`) is the caller's mistake, and panics.
///
/// ```
/// use fairpace_path::{Arq, ArqSpec, Capacity, Channel, Plain};
/// use fairpace_units::{Bytes, Duration, Instant};
/// let spec = ArqSpec::downlink(Channel::memoryless(0.0)?, Capacity::Unlimited);
/// let mut arq = Arq::new(&spec, 1, "wlan")?;
/// let at = |ms| Instant::ZERO + Duration::from_millis(ms);
/// arq.push(at(7), 0, Plain::new(Bytes::new(125)));
/// assert_eq!(arq.next(), at(15)); // it uses the slot from 10 ms to 15 ms
/// assert_eq!(arq.pop(at(15)).map(|(user, _)| user), Some(0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Arq<T> {
    spec: ArqSpec,
    /// τ in nanoseconds.
    slot: u64,
    /// The latest time that any call has told.
    now: Instant,
    users: Vec<User<T>>,
    /// Those with a packet, in any order.
    active: Vec<u32>,
    /// The owner of each slot of the frame that repeats for ever; empty if the link is work-conserving.
    frame: Vec<u32>,
    /// The next slot in which somebody sends; the largest number if nobody has a packet.
    next_slot: u64,
    /// The first one at whose end a packet may leave.
    next_departure: u64,
    /// In flight.
    wire: Wire<(u32, T)>,
    recording: bool,
    dropped: VecDeque<(Instant, DropReason, u32, T)>,
    log: Log,
}

#[derive(Clone, Debug)]
struct User<T> {
    fading: Fading,
    weight: i64,
    /// The share that the user is owed, in parts of a slot.
    credit: i64,
    /// Its slots in the frame, in order; empty if the link is work-conserving.
    own: Vec<u32>,
    room: Room,
    /// With their arrivals, the one under way first.
    queue: VecDeque<(Instant, T)>,
    held: Held,
    /// The first slot that the head of the queue may use.
    ready: u64,
    /// Pieces of it that are still to be sent.
    pieces: u64,
    /// Failures of the next piece.
    failures: u32,
    /// Without ARQ: a piece of it failed.
    damaged: bool,
    /// The first slot after its last silence.
    silent_until: u64,
    /// The first slot that found a packet since the queue was last empty, and the instant before it.
    first_slot: u64,
    occupied_since: Instant,
    /// Slots that found a packet before that, and all slots of silence, also those to come.
    backlogged: u64,
    silent: u64,
    /// Up to what has left.
    packet_ns: u128,
    byte_ns: u128,
    busy_ns: u64,
    counters: ArqCounters,
}

/// Slots that were used, if they are kept.
#[derive(Clone, Debug, Default)]
struct Log {
    on: bool,
    slots: VecDeque<ArqSlot>,
    lost: u64,
}

impl<T: Datagram> Arq<T> {
    /// Builds the link that `spec` describes. Each user's channel draws from the stream
    /// `<name>.user<number>.channel` of the run's `seed`, one number per slot.
    ///
    /// # Errors
    /// [`ArqError`] names the field of `spec` that cannot be.
    pub fn new(spec: &ArqSpec, seed: u64, name: &str) -> Result<Self, ArqError> {
        spec.validate()?;
        let frame = if spec.work_conserving { Vec::new() } else { spec.frame() };
        let users = spec.users.iter().enumerate().map(|(i, user)| {
            let random = RandomStream::named(seed, &format!("{name}.user{i}.channel"));
            let own = (0u32..).zip(&frame).filter(|&(_, &owner)| owner as usize == i).map(|(at, _)| at).collect();
            let room = Room::new(user.buffer).map_err(|_| ArqError::NoBuffer { user: i })?;
            Ok(User::new(Fading::new(&user.channel, random), user.weight, own, room))
        });
        Ok(Arq {
            slot: u64::try_from(spec.slot.as_nanos()).unwrap_or(u64::MAX),
            spec: spec.clone(),
            now: Instant::ZERO,
            users: users.collect::<Result<_, _>>()?,
            active: Vec::new(),
            frame,
            next_slot: u64::MAX,
            next_departure: u64::MAX,
            wire: Wire::new(spec.delay),
            recording: false,
            dropped: VecDeque::new(),
            log: Log::default(),
        })
    }

    /// A packet for that user arrives at the base station.
    pub fn push(&mut self, now: Instant, user: u32, mut packet: T) {
        self.run_until(now);
        let now = self.now;
        if let Some(option) = packet.quick_start() {
            pass_unaware(option);
        }
        let (size, class) = (packet.size(), packet.class());
        let first_slot = now.as_nanos().div_ceil(self.slot);
        let u = &mut self.users[user as usize];
        u.counters.link.classes[class as usize].offered.add(size);
        if !u.room.fits(u.held, size.get()) {
            u.counters.link.classes[class as usize].drops[DropReason::QueueFull as usize].add(size);
            if self.recording {
                self.dropped.push_back((now, DropReason::QueueFull, user, packet));
            }
            return;
        }
        u.held.packets += 1;
        u.held.bytes += size.get();
        u.counters.link.max_queue = u.counters.link.max_queue.max(Packets::new(u.held.packets));
        u.counters.link.max_queue_bytes = u.counters.link.max_queue_bytes.max(Bytes::new(u.held.bytes));
        u.queue.push_back((now, packet));
        if u.held.packets == 1 {
            (u.first_slot, u.occupied_since) = (first_slot, now);
            u.begin(first_slot, self.spec.slot_size);
            self.active.push(user);
            self.foresee(user, first_slot);
        }
    }

    /// The earliest instant at which something may come out; [`Instant::NEVER`] if nothing will. The answer is exact
    /// for what is in flight. While packets wait it is a lower bound, as if nobody else sent and nothing failed any
    /// more, but that `Limited` may give up who is first: asked again then, it may be a later one. Only a push makes
    /// it an earlier one.
    pub fn next(&self) -> Instant {
        let departure = match self.next_departure {
            u64::MAX => Instant::NEVER,
            slot => self.end(slot) + self.spec.delay,
        };
        self.wire.next().min(departure).max(self.now)
    }

    /// The next packet that is out by `now`, and the user that it is for. Call it until there is none.
    pub fn pop(&mut self, now: Instant) -> Option<(u32, T)> {
        self.run_until(now);
        let (user, packet) = self.wire.pop(self.now)?;
        let classes = &mut self.users[user as usize].counters.link.classes;
        classes[packet.class() as usize].delivered.add(packet.size());
        Some((user, packet))
    }

    /// Brings the link up to `now` without taking anything out: before reading anything, and at the end of
    /// a run.
    pub fn advance(&mut self, now: Instant) {
        self.run_until(now);
        let (now, slots) = (self.now, self.now.as_nanos() / self.slot);
        for user in &mut self.users {
            user.settle(now, slots);
        }
    }

    /// How many users there are; they are numbered from zero.
    pub fn users(&self) -> u32 {
        self.users.len() as u32
    }

    /// The specification from which this link was built, with the buffers as they were then.
    pub fn spec(&self) -> &ArqSpec {
        &self.spec
    }

    /// The counts of a user so far; call [`Arq::advance`] first.
    pub fn counters(&self, user: u32) -> &ArqCounters {
        &self.users[user as usize].counters
    }

    /// Packets in a user's queue, the one under way included; [`Arq::advance`] first.
    pub fn queue_len(&self, user: u32) -> usize {
        self.users[user as usize].queue.len()
    }

    /// Bytes in a user's queue, the packet under way in full; [`Arq::advance`] first.
    pub fn queue_bytes(&self, user: u32) -> Bytes {
        Bytes::new(self.users[user as usize].held.bytes)
    }

    /// Packets that were pushed and have neither come out nor been dropped: waiting, under way or in flight.
    pub fn inside(&self) -> usize {
        self.users.iter().map(|user| user.queue.len()).sum::<usize>() + self.wire.len()
    }

    /// From now on a user's queue holds that much. Packets that it then holds beyond that stay; arrivals are
    /// refused until there is room again.
    ///
    /// # Errors
    /// [`ArqError::NoBuffer`] if it is nothing.
    pub fn set_buffer(&mut self, user: u32, buffer: Capacity) -> Result<(), ArqError> {
        let room = Room::new(buffer).map_err(|_| ArqError::NoBuffer { user: user as usize })?;
        self.users[user as usize].room = room;
        Ok(())
    }

    /// Forgets the largest queue that a user had, so that it is that of the time from now on.
    pub fn restart_maximum(&mut self, user: u32) {
        let user = &mut self.users[user as usize];
        user.counters.link.max_queue = Packets::new(user.held.packets);
        user.counters.link.max_queue_bytes = Bytes::new(user.held.bytes);
    }

    /// Whether dropped packets are kept for [`Arq::take_dropped`]. Off at first.
    pub fn record_drops(&mut self, on: bool) {
        self.recording = on;
    }

    /// The next dropped packet, when and why, and its user, in order of time. Call again until there is none.
    pub fn take_dropped(&mut self) -> Option<(Instant, DropReason, u32, T)> {
        self.dropped.pop_front()
    }

    /// Whether used slots are kept for [`Arq::take_slot`]. Off at first.
    pub fn record_slots(&mut self, on: bool) {
        self.log.on = on;
    }

    /// The next slot in which somebody sent, in order of time. Call it until there is none. Of those that are not
    /// taken, the last 262,144 are kept.
    pub fn take_slot(&mut self) -> Option<ArqSlot> {
        self.log.slots.pop_front()
    }

    /// Slots that were not kept.
    pub fn slots_lost(&self) -> u64 {
        self.log.lost
    }

    /// When a slot ends.
    fn end(&self, slot: u64) -> Instant {
        Instant::from_nanos(slot.saturating_add(1).saturating_mul(self.slot))
    }

    /// Brings everything up to `now`: a slot's outcome is known when it ends.
    fn run_until(&mut self, now: Instant) {
        debug_assert!(now >= self.now, "time went back from {} to {now}", self.now);
        debug_assert!(now < Instant::NEVER, "never does not come");
        self.now = self.now.max(now);
        while self.next_slot < u64::MAX && self.end(self.next_slot) <= self.now {
            let slot = self.next_slot;
            if let Some(user) = self.choose(slot) {
                self.send(slot, user);
            }
            (self.next_slot, self.next_departure) = (u64::MAX, u64::MAX);
            // With many users it is likely to be this one's.
            if let Some(&owner) = self.frame.get(self.place(slot + 1))
                && !self.users[owner as usize].queue.is_empty()
            {
                self.foresee(owner, slot + 1);
            }
            for i in 0..self.active.len() {
                if self.next_departure == slot + 1 {
                    break;
                }
                self.foresee(self.active[i], slot + 1);
            }
        }
    }

    /// Where in the frame a slot is.
    fn place(&self, slot: u64) -> usize {
        (slot % self.frame.len().max(1) as u64) as usize
    }

    /// A user with a packet may send from that slot on.
    fn foresee(&mut self, user: u32, from: u64) {
        let user = &self.users[user as usize];
        let from = user.ready.max(from);
        let first = match user.own.first() {
            None => from,
            Some(&own) => {
                let period = self.frame.len() as u64;
                let place = user.own.partition_point(|&at| u64::from(at) < from % period);
                let begin = from - from % period;
                user.own.get(place).map_or(begin + period + u64::from(own), |&at| begin + u64::from(at))
            }
        };
        let most = match self.spec.scheme {
            // If it is given up in that slot, the next one may be through in the slot after it.
            ArqScheme::Limited { .. } => 2,
            _ => u64::MAX,
        };
        self.next_slot = self.next_slot.min(first);
        self.next_departure = self.next_departure.min(first.saturating_add(user.pieces.min(most) - 1));
    }

    /// The owner of the slot.
    fn choose(&mut self, slot: u64) -> Option<u32> {
        if !self.frame.is_empty() {
            return self.frame.get(self.place(slot)).copied();
        }
        let mut total = 0;
        let mut best: Option<(i64, u32)> = None;
        for &i in &self.active {
            let user = &mut self.users[i as usize];
            if user.ready > slot {
                continue;
            }
            total += user.weight;
            user.credit += user.weight;
            if best.is_none_or(|(credit, other)| user.credit > credit || user.credit == credit && i < other) {
                best = Some((user.credit, i));
            }
        }
        let (_, i) = best?;
        self.users[i as usize].credit -= total;
        Some(i)
    }

    /// That user sends in that slot, which has ended.
    fn send(&mut self, slot: u64, i: u32) {
        let end = self.end(slot);
        let user = &mut self.users[i as usize];
        let failed = user.fading.fails(slot);
        user.counters.used += 1;
        user.counters.failed += u64::from(failed);
        user.failures = if failed { user.failures.saturating_add(1) } else { 0 };
        user.damaged |= failed;
        let (done, arrived) = match self.spec.scheme {
            ArqScheme::None => (user.pieces == 1, user.pieces == 1 && !user.damaged),
            _ if !failed => (user.pieces == 1, user.pieces == 1),
            ArqScheme::Limited { retries } => (user.failures > retries, false),
            ArqScheme::Persistent | ArqScheme::Optimal => (false, false),
        };
        let again = failed && !done && self.spec.scheme != ArqScheme::None;
        let silence = if again { self.spec.scheme.silence() + self.spec.retry_delay } else { 0 };
        if self.log.on {
            let outcome = match failed {
                true => SlotOutcome::Failure { silence, lost: !again },
                false => SlotOutcome::Success { last: done },
            };
            self.log.add(ArqSlot { slot, start: Instant::from_nanos(slot * self.slot), user: i, outcome });
        }
        user.ready = slot + 1 + u64::from(silence);
        if silence > 0 {
            user.silent_until = user.ready;
            user.silent += u64::from(silence);
        }
        if !done {
            user.pieces -= u64::from(!again);
            return;
        }
        let Some(packet) = user.leave(end, slot, self.spec.slot_size) else { return };
        if user.queue.is_empty() {
            self.active.retain(|&other| other != i);
        }
        if arrived {
            self.wire.push(end, (i, packet));
            return;
        }
        user.counters.link.classes[packet.class() as usize].drops[DropReason::LinkError as usize].add(packet.size());
        if self.recording {
            self.dropped.push_back((end, DropReason::LinkError, i, packet));
        }
    }
}

impl<T: Datagram> User<T> {
    fn new(fading: Fading, weight: u32, own: Vec<u32>, room: Room) -> Self {
        User {
            fading,
            weight: i64::from(weight),
            credit: 0,
            own,
            room,
            queue: VecDeque::new(),
            held: Held::default(),
            ready: 0,
            pieces: 0,
            failures: 0,
            damaged: false,
            silent_until: 0,
            first_slot: 0,
            occupied_since: Instant::ZERO,
            backlogged: 0,
            silent: 0,
            packet_ns: 0,
            byte_ns: 0,
            busy_ns: 0,
            counters: ArqCounters::default(),
        }
    }

    /// The head of the queue may be sent from that slot on.
    fn begin(&mut self, slot: u64, slot_size: Bytes) {
        let size = self.queue.front().map_or(0, |(_, packet)| packet.size().get());
        self.pieces = size.div_ceil(slot_size.get()).max(1);
        (self.ready, self.failures, self.damaged) = (slot, 0, false);
    }

    /// The head of the queue leaves it at the end of that slot.
    fn leave(&mut self, end: Instant, slot: u64, slot_size: Bytes) -> Option<T> {
        let (arrival, packet) = self.queue.pop_front()?;
        let (size, stay) = (packet.size(), end.since(arrival).as_nanos());
        self.held.packets -= 1;
        self.held.bytes -= size.get();
        self.packet_ns += stay;
        self.byte_ns += stay * u128::from(size.get());
        self.counters.link.transmitted.add(size);
        if self.queue.is_empty() {
            self.backlogged += slot + 1 - self.first_slot;
            self.busy_ns += end.as_nanos() - self.occupied_since.as_nanos();
        } else {
            self.begin(slot + 1, slot_size);
        }
        Some(packet)
    }

    /// The counters up to `now`, when so many slots have ended.
    fn settle(&mut self, now: Instant, slots: u64) {
        let (mut backlogged, mut busy_ns) = (self.backlogged, self.busy_ns);
        let (mut packet_ns, mut byte_ns) = (self.packet_ns, self.byte_ns);
        if !self.queue.is_empty() {
            backlogged += slots.saturating_sub(self.first_slot);
            busy_ns += now.as_nanos() - self.occupied_since.as_nanos();
        }
        for (arrival, packet) in &self.queue {
            let stay = now.since(*arrival).as_nanos();
            packet_ns += stay;
            byte_ns += stay * u128::from(packet.size().get());
        }
        let counters = &mut self.counters;
        // Silence to come is not yet over.
        counters.silent = self.silent - self.silent_until.saturating_sub(slots);
        counters.waiting = backlogged - counters.used - counters.silent;
        counters.idle = slots - backlogged;
        counters.link.elapsed_ns = now.as_nanos();
        (counters.link.busy_ns, counters.link.packet_ns, counters.link.byte_ns) = (busy_ns, packet_ns, byte_ns);
    }
}

impl Log {
    fn add(&mut self, slot: ArqSlot) {
        if self.slots.len() == MOST_SLOTS {
            self.slots.pop_front();
            self.lost += 1;
        }
        self.slots.push_back(slot);
    }
}
