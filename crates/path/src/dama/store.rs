//! Where packets are: one slab for all, lists of its places for queues and for slots.
//!
//! A packet's place stays the same from push to pop; queues and slots only link places. So an empty queue
//! is two numbers, and nothing is allocated per terminal or per packet once the slab has grown.

use super::clock::SlotClock;
use fairpace_units::{Duration, Instant};

/// No place.
const NONE: u32 = u32::MAX;

/// First in, first out, linked through the slab.
#[derive(Clone, Copy, Debug)]
pub(super) struct List {
    head: u32,
    tail: u32,
}

impl List {
    pub(super) const EMPTY: List = List { head: NONE, tail: NONE };

    pub(super) fn is_empty(self) -> bool {
        self.head == NONE
    }

    /// The place of the first packet.
    pub(super) fn first(self) -> Option<u32> {
        (self.head != NONE).then_some(self.head)
    }
}

/// A packet and what is known of it.
#[derive(Clone, Debug)]
pub(super) struct Stored<T> {
    packet: Option<T>,
    /// When it joined the uplink queue.
    pub(super) joined: Instant,
    /// Its size in bytes.
    pub(super) size: u64,
    /// The bytes of the packet that are not yet in a slot.
    pub(super) left: u64,
    /// Where it came from.
    pub(super) terminal: u32,
    next: u32,
}

/// The slab.
#[derive(Clone, Debug)]
pub(super) struct Store<T> {
    places: Vec<Stored<T>>,
    vacant: List,
    inside: usize,
}

impl<T> Store<T> {
    pub(super) const fn new() -> Self {
        Store { places: Vec::new(), vacant: List::EMPTY, inside: 0 }
    }

    /// How many packets there are.
    pub(super) fn inside(&self) -> usize {
        self.inside
    }

    #[inline(always)]
    pub(super) fn insert(&mut self, packet: T, size: u64, terminal: u32) -> u32 {
        let stored = Stored { packet: Some(packet), joined: Instant::ZERO, size, left: size, terminal, next: NONE };
        self.inside += 1;
        let mut vacant = self.vacant;
        let place = self.pop(&mut vacant);
        self.vacant = vacant;
        match place {
            Some(place) => self.places[place as usize] = stored,
            None => self.places.push(stored),
        }
        place.unwrap_or(self.places.len() as u32 - 1)
    }

    pub(super) fn get(&mut self, place: u32) -> &mut Stored<T> {
        &mut self.places[place as usize]
    }

    /// Takes the packet out and gives its place free.
    pub(super) fn remove(&mut self, place: u32) -> Option<(u32, T)> {
        let stored = &mut self.places[place as usize];
        let (terminal, packet) = (stored.terminal, stored.packet.take()?);
        self.inside -= 1;
        let mut vacant = self.vacant;
        self.push(&mut vacant, place);
        self.vacant = vacant;
        Some((terminal, packet))
    }

    pub(super) fn push(&mut self, list: &mut List, place: u32) {
        self.places[place as usize].next = NONE;
        self.append(list, List { head: place, tail: place });
    }

    pub(super) fn pop(&mut self, list: &mut List) -> Option<u32> {
        let place = list.first()?;
        list.head = self.places[place as usize].next;
        if list.head == NONE {
            list.tail = NONE;
        }
        Some(place)
    }

    /// Puts all of `more` behind `list`.
    pub(super) fn append(&mut self, list: &mut List, more: List) {
        match (list.first(), more.first()) {
            (_, None) => {}
            (None, _) => *list = more,
            _ => {
                self.places[list.tail as usize].next = more.head;
                list.tail = more.tail;
            }
        }
    }

    /// The place after this one in its list.
    pub(super) fn after(&self, place: u32) -> Option<u32> {
        let next = self.places[place as usize].next;
        (next != NONE).then_some(next)
    }
}

/// The packets whose last byte has its slot, by slot: a ring as long as a super-frame and the propagation,
/// with one bit per slot that has any.
#[derive(Clone, Debug)]
pub(super) struct Calendar {
    clock: SlotClock,
    propagation: Duration,
    slots: Vec<List>,
    taken: Vec<u64>,
    /// Slots before this one have ended, and their packets have left their queues.
    departed: u64,
    /// All packets are in slots of `first..end`.
    first: u64,
    end: u64,
    /// When those of `first` arrive; never if there are none.
    next: Instant,
}

impl Calendar {
    /// For packets at most `ahead` slots ahead.
    pub(super) fn new(clock: SlotClock, propagation: Duration, ahead: u64) -> Self {
        let slots = ahead + clock.ended_by(Instant::ZERO + propagation) + 3;
        let slots = slots.next_power_of_two().max(64) as usize;
        Calendar {
            clock,
            propagation,
            slots: vec![List::EMPTY; slots],
            taken: vec![0; slots / 64],
            departed: 0,
            first: u64::MAX,
            end: 0,
            next: Instant::NEVER,
        }
    }

    fn index(&self, slot: u64) -> usize {
        slot as usize & (self.slots.len() - 1)
    }

    /// The packet at `place` has its last byte in that slot, which has not ended.
    pub(super) fn put<T>(&mut self, store: &mut Store<T>, slot: u64, place: u32) {
        let bit = self.index(slot);
        store.push(&mut self.slots[bit], place);
        self.taken[bit / 64] |= 1 << (bit % 64);
        self.end = self.end.max(slot + 1);
        if slot < self.first {
            self.begin_at(slot);
        }
        debug_assert!(slot >= self.departed && self.end - self.first <= self.slots.len() as u64);
    }

    /// When the first packets arrive at the other side.
    pub(super) fn next(&self) -> Instant {
        self.next
    }

    /// The next slot with packets that has ended by `now`: when, and its first packet. Call it until there
    /// is none.
    pub(super) fn depart(&mut self, now: Instant) -> Option<(Instant, u32)> {
        if self.departed >= self.end {
            return None;
        }
        let ended = self.clock.ended_by(now);
        let slot = self.find(self.departed.max(self.first), ended.min(self.end));
        self.departed = slot.map_or(ended, |slot| slot + 1).max(self.departed);
        let slot = slot?;
        let first = self.slots[self.index(slot)].first()?;
        Some((self.clock.end(slot), first))
    }

    /// Moves all that have arrived by `now` to `out`, in order of arrival.
    pub(super) fn arrive<T>(&mut self, now: Instant, store: &mut Store<T>, out: &mut List) {
        while self.next <= now {
            let bit = self.index(self.first);
            self.taken[bit / 64] &= !(1 << (bit % 64));
            store.append(out, std::mem::replace(&mut self.slots[bit], List::EMPTY));
            match self.find(self.first + 1, self.end) {
                Some(slot) => self.begin_at(slot),
                None => (self.first, self.next) = (u64::MAX, Instant::NEVER),
            }
        }
    }

    fn begin_at(&mut self, slot: u64) {
        self.first = slot;
        self.next = self.clock.end(slot) + self.propagation;
    }

    /// The first slot in `from..until` with packets; `from` is not before `first`.
    fn find(&self, from: u64, until: u64) -> Option<u64> {
        let mut slot = from;
        while slot < until {
            let bit = self.index(slot);
            let word = self.taken[bit / 64] >> (bit % 64);
            if word != 0 {
                let found = slot + u64::from(word.trailing_zeros());
                return (found < until).then_some(found);
            }
            slot += 64 - (bit % 64) as u64;
        }
        None
    }
}
