//! The pending-event set: lanes for what lies a usual distance ahead, a timing wheel for what else comes soon, a heap for
//! what comes late.
//!
//! The event set holds one entry per link that has something in flight and one per running timer, not one per packet:
//! a few hundred for the busiest of our scenarios, and as many as there are access links in use with 100,000 flows. Most
//! lie the same few distances ahead: a transmission time and an access delay. Events that are pushed the same distance
//! ahead come up in the order in which they were pushed, so each such distance has a lane, first in, first out, at no cost
//! that grows with the number of events. Other near events go into the wheel; retransmission timers and long delays go into
//! the heap. Events known at the beginning (starts and ends of flows, perhaps tens of thousands) lie in a sorted list, so
//! that they make nothing else slower. All ends are looked at for each event, so nothing ever moves from one to the other.
//! Where the next few events are to be known ([`EventSet::take_ahead`]), they are taken out of all of these in advance, and an
//! event that is pushed before the last of them goes between them.
//! The order is total, (time, insertion), and does not depend on where an entry is, nor on the width of a slot.
//! `examples/event_set.rs` compares it with a plain heap.

use fairpace_path::Ring;
use fairpace_units::Instant;

/// Distances that have a lane at one time.
const LANES: usize = 5;
/// The lane of a distance of 2^26 ns = 67 ms or more: a source's interval. One, since most that lies so far ahead is a timeout,
/// of which hardly two are alike, and holds its lane for long.
const FAR_LANE: usize = LANES - 1;
const FAR_BITS: u32 = 26;

/// Slots of the wheel.
const SLOTS: usize = 1_024;
const WORDS: usize = SLOTS / 64;
/// No slot, no node.
const NONE: u32 = u32::MAX;
/// Width of a slot at the beginning: 2^15 ns = 33 µs, so that the wheel covers 34 ms.
const FIRST_SHIFT: u32 = 15;
/// Insertions between two looks at how full the slots are.
const REVIEW_EVERY: u32 = 8_192;

/// One pending event. Events at equal times come in the order in which they were pushed.
#[derive(Clone, Copy, Debug)]
struct Entry {
    at: u64,
    order: u64,
    target: u32,
    /// The next entry of the same slot, which is later.
    next: u32,
}

/// Time, then insertion: as one number, which is compared at once.
type Key = u128;
const NEVER: Key = u128::MAX;

#[inline(always)]
fn key(at: u64, order: u64) -> Key {
    (Key::from(at) << 64) | Key::from(order)
}

#[inline(always)]
fn time_of(key: Key) -> u64 {
    (key >> 64) as u64
}

impl Entry {
    #[inline]
    fn key(&self) -> Key {
        key(self.at, self.order)
    }
}

/// An event of a lane, whose events were pushed the same distance ahead, so in order.
#[derive(Clone, Copy, Debug, Default)]
struct LaneEntry {
    at: u64,
    order: u64,
    target: u32,
}

/// Room for the next events: those known, and as many that are pushed before the last of them.
const SOON: usize = 2 * EventSet::AHEAD as usize;
/// The last instant that comes.
const LAST: u64 = u64::MAX - 1;

/// The next few events, in order. Each part of an entry lies apart, since a whole one that is read just after its parts were
/// written would stall the processor.
#[derive(Clone, Copy, Debug, Default)]
struct Soon {
    at: [u64; SOON],
    order: [u64; SOON],
    target: [u32; SOON],
    first: u32,
    len: u32,
    /// The time of the last one; 0 if there is none.
    until: u64,
}

impl Soon {
    #[inline(always)]
    fn place(&self, number: u32) -> usize {
        self.first.wrapping_add(number) as usize % SOON
    }

    #[inline(always)]
    fn push(&mut self, entry: LaneEntry) {
        self.set(self.len, entry);
        self.len += 1;
        self.until = entry.at;
    }

    #[inline(always)]
    fn set(&mut self, number: u32, entry: LaneEntry) {
        let place = self.place(number);
        (self.at[place], self.order[place], self.target[place]) = (entry.at, entry.order, entry.target);
    }

    #[inline(always)]
    fn get(&self, number: u32) -> LaneEntry {
        let place = self.place(number);
        LaneEntry { at: self.at[place], order: self.order[place], target: self.target[place] }
    }

    /// Time and target of the first; never if there is none.
    #[inline(always)]
    fn first(&self) -> (u64, u32) {
        let place = self.place(0);
        if self.len == 0 { (u64::MAX, 0) } else { (self.at[place], self.target[place]) }
    }

    #[inline(always)]
    fn pop(&mut self) {
        self.first = self.first.wrapping_add(1);
        self.len -= 1;
        if self.len == 0 {
            self.until = 0;
        }
    }

    fn pop_last(&mut self) -> LaneEntry {
        let last = self.get(self.len - 1);
        self.len -= 1;
        self.until = if self.len == 0 { 0 } else { self.get(self.len - 1).at };
        last
    }

    /// Behind all that are not later.
    fn insert(&mut self, entry: LaneEntry) {
        let mut number = self.len;
        while number > 0 && self.get(number - 1).at > entry.at {
            self.set(number, self.get(number - 1));
            number -= 1;
        }
        self.set(number, entry);
        self.len += 1;
        self.until = self.get(self.len - 1).at;
    }
}

/// Pending events, earliest first, in a total order.
#[derive(Clone, Debug)]
pub struct EventSet {
    /// The time of the earliest entry of all lanes, and which lane has it.
    lane_at: u64,
    first_lane: u32,
    /// The time of the earliest entry that is in no lane.
    other_at: u64,
    near_key: Key,
    far_key: Key,
    near_target: u32,
    /// The time of the latest event taken.
    now: u64,
    /// The time of the latest event that has left lanes, wheel and heap: the wheel begins there.
    begin: u64,
    /// With [`EventSet::take_ahead`]: the next events, out of lanes, wheel and heap.
    soon: Soon,
    pushed: u64,
    removed: u64,
    max_len: u64,
    /// Of each lane its distance, its first entry in parts, at `u64::MAX` if there is none, and the entries behind that.
    distances: [u64; LANES],
    head_at: [u64; LANES],
    head_order: [u64; LANES],
    head_target: [u32; LANES],
    lanes: [Ring<LaneEntry>; LANES],

    /// First entry of each slot; the lists are in order.
    slots: Box<[u32; SLOTS]>,
    /// The slots that have an entry, one bit each.
    occupied: [u64; WORDS],
    nodes: Vec<Entry>,
    /// First of the unused nodes.
    free: u32,
    /// log2 of a slot's width in ns.
    shift: u32,
    /// The earliest entry of the wheel and its slot; `NONE` if the wheel is empty.
    first: u32,
    first_slot: u32,
    far: Far,
    /// Entries walked past, and insertions, since the last review.
    walked: u32,
    insertions: u32,
}

impl Default for EventSet {
    fn default() -> Self {
        EventSet {
            lane_at: u64::MAX,
            first_lane: 0,
            other_at: u64::MAX,
            near_key: NEVER,
            far_key: NEVER,
            near_target: 0,
            now: 0,
            begin: 0,
            soon: Soon::default(),
            pushed: 0,
            removed: 0,
            max_len: 0,
            distances: [0; LANES],
            head_at: [u64::MAX; LANES],
            head_order: [0; LANES],
            head_target: [0; LANES],
            lanes: Default::default(),
            slots: Box::new([NONE; SLOTS]),
            occupied: [0; WORDS],
            nodes: Vec::new(),
            free: NONE,
            shift: FIRST_SHIFT,
            first: NONE,
            first_slot: 0,
            far: Far::default(),
            walked: 0,
            insertions: 0,
        }
    }
}

impl EventSet {
    /// So many of the next events are known after [`EventSet::take_ahead`], if as many are pending.
    pub const AHEAD: u32 = 8;

    /// Adds many events at once, in the order in which they would have been pushed, before any is taken.
    pub fn plan(&mut self, events: impl IntoIterator<Item = (Instant, u32)>) {
        debug_assert_eq!(self.soon.len, 0, "some have been taken ahead");
        for (at, target) in events {
            self.pushed += 1;
            self.far.planned.push(Entry { at: at.as_nanos(), order: self.pushed, target, next: NONE });
        }
        self.max_len = self.max_len.max(self.pushed - self.removed);
        self.far.planned.sort_unstable_by_key(|entry| std::cmp::Reverse(entry.key()));
        self.far_key = self.far.first_key();
        self.others_changed();
    }

    /// Adds an event, not earlier than the last one taken, at a time that comes.
    #[inline(always)]
    pub fn push(&mut self, at: Instant, target: u32) {
        let at = at.as_nanos();
        // Counted one by one from zero: neither ends in our lifetime.
        self.pushed = self.pushed.wrapping_add(1);
        let len = self.pushed.wrapping_sub(self.removed);
        if len > self.max_len {
            self.max_len = len;
        }
        if at < self.soon.until {
            return self.push_soon(LaneEntry { at, order: self.pushed, target });
        }
        let distance = at.wrapping_sub(self.now);
        for lane in 0..LANES {
            if self.distances[lane] == distance {
                return self.push_lane(lane, at, target);
            }
        }
        self.push_apart(at, target);
    }

    /// Adds an event that lies that lane's distance ahead.
    #[inline(always)]
    fn push_lane(&mut self, lane: usize, at: u64, target: u32) {
        let order = self.pushed;
        if self.head_at[lane] != u64::MAX {
            return self.lanes[lane].push(LaneEntry { at, order, target });
        }
        (self.head_at[lane], self.head_order[lane], self.head_target[lane]) = (at, order, target);
        if at < self.lane_at {
            (self.lane_at, self.first_lane) = (at, lane as u32);
        }
    }

    /// Adds an event that lies no lane's distance ahead.
    #[inline(never)]
    fn push_apart(&mut self, at: u64, target: u32) {
        let distance = at.wrapping_sub(self.now);
        let lanes = if distance >> FAR_BITS == 0 { 0..FAR_LANE } else { FAR_LANE..LANES };
        if let Some(lane) = lanes.into_iter().find(|lane| self.head_at[*lane] == u64::MAX) {
            self.distances[lane] = distance;
            return self.push_lane(lane, at, target);
        }
        let entry = Entry { at, order: self.pushed, target, next: NONE };
        if self.reaches(at) { self.insert_near(entry) } else { self.insert_far(entry) }
    }

    /// Whether the wheel reaches so far from now on.
    fn reaches(&self, at: u64) -> bool {
        (at >> self.shift).wrapping_sub(self.begin >> self.shift) < SLOTS as u64
    }

    /// When the earliest event is; `None` if there is none.
    #[inline]
    pub fn next(&self) -> Option<Instant> {
        (!self.is_empty()).then(|| Instant::from_nanos(self.soon.first().0.min(self.lane_at).min(self.other_at)))
    }

    /// Takes the earliest event out if it is due by `to`. The event counts as pending until [`EventSet::done`]; the next push
    /// comes at its time or later. Not after [`EventSet::take_ahead`].
    #[inline(always)]
    pub fn take(&mut self, to: Instant) -> Option<(Instant, u32)> {
        debug_assert_eq!(self.soon.len, 0, "some have been taken ahead");
        let taken = self.pull(to.as_nanos())?;
        self.now = taken.at;
        Some((Instant::from_nanos(taken.at), taken.target))
    }

    /// As [`EventSet::take`], and [`EventSet::upcoming`] knows the events behind it. One set is asked in one of the two ways.
    #[inline(always)]
    pub fn take_ahead(&mut self, to: Instant) -> Option<(Instant, u32)> {
        if self.soon.len == 0 {
            self.refill();
            if self.soon.len == 0 {
                return None;
            }
        }
        let (at, target) = self.soon.first();
        if at > to.as_nanos() {
            return None;
        }
        self.now = at;
        self.soon.pop();
        if self.soon.len != EventSet::AHEAD - 1 {
            self.refill();
        } else if let Some(entry) = self.pull(LAST) {
            self.soon.push(entry);
        }
        Some((Instant::from_nanos(at), target))
    }

    /// Brings the next events into `soon`, if there are too few.
    #[cold]
    fn refill(&mut self) {
        while self.soon.len < EventSet::AHEAD
            && let Some(entry) = self.pull(LAST)
        {
            self.soon.push(entry);
        }
    }

    /// Adds an event before the last of those in `soon`, which goes into the heap if there is no room.
    #[inline(never)]
    fn push_soon(&mut self, entry: LaneEntry) {
        if self.soon.len as usize == SOON {
            let LaneEntry { at, order, target } = self.soon.pop_last();
            self.insert_far(Entry { at, order, target, next: NONE });
        }
        self.soon.insert(entry);
    }

    /// Takes the earliest entry out of lanes, wheel and heap if it is due by `to`.
    #[inline(always)]
    fn pull(&mut self, to: u64) -> Option<LaneEntry> {
        if self.lane_at >= self.other_at {
            return self.pull_apart(to);
        }
        if self.lane_at > to {
            return None;
        }
        Some(self.pull_lane(self.first_lane as usize))
    }

    /// Takes the first entry of that lane out, which is the earliest event.
    #[inline(always)]
    fn pull_lane(&mut self, lane: usize) -> LaneEntry {
        let taken = LaneEntry { at: self.head_at[lane], order: self.head_order[lane], target: self.head_target[lane] };
        self.begin = taken.at;
        match self.lanes[lane].pop() {
            Some(LaneEntry { at, order, target }) => {
                (self.head_at[lane], self.head_order[lane], self.head_target[lane]) = (at, order, target);
            }
            None => self.head_at[lane] = u64::MAX,
        }
        let (mut first, mut lane_at) = (0, self.head_at[0]);
        for other in 1..LANES {
            if self.head_at[other] <= lane_at {
                if self.head_at[other] == lane_at {
                    first = self.earlier_lane(first, other);
                } else {
                    (first, lane_at) = (other, self.head_at[other]);
                }
            }
        }
        (self.first_lane, self.lane_at) = (first as u32, lane_at);
        taken
    }

    /// Of two lanes whose first entries are at the same time, the one whose entry was pushed first.
    #[cold]
    fn earlier_lane(&self, a: usize, b: usize) -> usize {
        if self.head_order[a] < self.head_order[b] { a } else { b }
    }

    /// The targets of the events that come after so many others, each fewer than [`EventSet::AHEAD`]; `None` if fewer are
    /// pending.
    #[inline(always)]
    pub fn upcoming<const N: usize>(&self, after: [u32; N]) -> Option<[u32; N]> {
        (self.soon.len >= EventSet::AHEAD).then(|| after.map(|number| self.soon.target[self.soon.place(number)]))
    }

    /// The event that was taken is no longer pending.
    #[inline(always)]
    pub fn done(&mut self) {
        self.removed = self.removed.wrapping_add(1);
    }

    /// [`EventSet::pull`] where the earliest event is perhaps in no lane.
    #[inline(never)]
    fn pull_apart(&mut self, to: u64) -> Option<LaneEntry> {
        if self.other_at > to || (self.near_key == NEVER && self.far_key == NEVER) {
            return None;
        }
        if self.lane_at == self.other_at {
            let lane = self.first_lane as usize;
            if key(self.lane_at, self.head_order[lane]) < self.near_key.min(self.far_key) {
                return Some(self.pull_lane(lane));
            }
        }
        let first = self.near_key.min(self.far_key);
        self.begin = self.other_at;
        let target = if self.near_key < self.far_key {
            let target = self.near_target;
            self.pop_near();
            target
        } else {
            let target = self.far.pop()?.target;
            self.far_key = self.far.first_key();
            target
        };
        self.others_changed();
        Some(LaneEntry { at: time_of(first), order: first as u64, target })
    }

    /// The earliest entry that is in no lane may be another one.
    #[inline]
    fn others_changed(&mut self) {
        self.other_at = time_of(self.near_key).min(time_of(self.far_key));
    }

    /// How many events were taken and done.
    pub fn handled(&self) -> u64 {
        self.removed
    }

    /// Events pending now.
    pub fn len(&self) -> usize {
        (self.pushed - self.removed) as usize
    }

    /// True if nothing is pending.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The most events ever pending.
    pub fn max_len(&self) -> usize {
        self.max_len as usize
    }

    fn insert_near(&mut self, entry: Entry) {
        let at = entry.at;
        let index = if self.free == NONE {
            self.nodes.push(entry);
            self.nodes.len() as u32 - 1
        } else {
            let index = self.free;
            let node = &mut self.nodes[index as usize];
            self.free = node.next;
            *node = entry;
            index
        };
        let slot = (at >> self.shift) as usize % SLOTS;
        let head = self.slots[slot];
        if head == NONE {
            self.slots[slot] = index;
            self.occupied[slot / 64] |= 1 << (slot % 64);
        } else if at < self.nodes[head as usize].at {
            self.nodes[index as usize].next = head;
            self.slots[slot] = index;
        } else {
            // After all that are not later: insertion order at equal times.
            let mut before = head;
            loop {
                let next = self.nodes[before as usize].next;
                if next == NONE || self.nodes[next as usize].at > at {
                    self.nodes[index as usize].next = next;
                    self.nodes[before as usize].next = index;
                    break;
                }
                self.walked += 1;
                before = next;
            }
        }
        if at < time_of(self.near_key) {
            (self.first, self.first_slot) = (index, slot as u32);
            (self.near_key, self.near_target) = (entry.key(), entry.target);
            self.others_changed();
        }
        self.insertions += 1;
        if self.insertions == REVIEW_EVERY {
            self.review();
        }
    }

    #[cold]
    fn insert_far(&mut self, entry: Entry) {
        self.far.push(entry);
        self.far_key = self.far.first_key();
        self.others_changed();
    }

    #[inline]
    fn pop_near(&mut self) {
        let index = self.first;
        let slot = self.first_slot as usize;
        let node = &mut self.nodes[index as usize];
        let next = node.next;
        node.next = self.free;
        self.free = index;
        self.slots[slot] = next;
        if next != NONE {
            return self.set_first(slot);
        }
        self.occupied[slot / 64] &= !(1 << (slot % 64));
        self.find_first(slot);
    }

    /// The first occupied slot from `slot` on, around the wheel.
    #[inline]
    fn find_first(&mut self, slot: usize) {
        let word = slot / 64;
        let here = self.occupied[word] & (u64::MAX << (slot % 64));
        if here != 0 {
            return self.set_first(word * 64 + here.trailing_zeros() as usize);
        }
        for step in 1..=WORDS {
            let word = (word + step) % WORDS;
            let bits = self.occupied[word];
            if bits != 0 {
                return self.set_first(word * 64 + bits.trailing_zeros() as usize);
            }
        }
        (self.first, self.near_key) = (NONE, NEVER);
    }

    #[inline]
    fn set_first(&mut self, slot: usize) {
        self.first = self.slots[slot];
        self.first_slot = slot as u32;
        let node = &self.nodes[self.first as usize];
        (self.near_key, self.near_target) = (node.key(), node.target);
    }

    /// Slots too full to walk through become narrower. (Empty ones cost little: 64 are skipped at
    /// once.) The order of events does not depend on it.
    #[cold]
    fn review(&mut self) {
        if self.walked > 4 * REVIEW_EVERY && self.shift > 6 {
            let near: Vec<u32> = self.slots.iter().copied().filter(|head| *head != NONE).collect();
            let mut entries = Vec::new();
            for mut index in near {
                while index != NONE {
                    let node = self.nodes[index as usize];
                    entries.push(node);
                    index = node.next;
                }
            }
            entries.sort_unstable_by_key(Entry::key);
            self.slots.fill(NONE);
            self.occupied = [0; WORDS];
            self.nodes.clear();
            (self.free, self.first, self.near_key) = (NONE, NONE, NEVER);
            self.shift -= 2;
            self.insertions = 0;
            for entry in entries {
                let entry = Entry { next: NONE, ..entry };
                if self.reaches(entry.at) { self.insert_near(entry) } else { self.insert_far(entry) }
            }
        }
        (self.walked, self.insertions) = (0, 0);
    }
}

/// A binary heap of entries, beside a list of those that were known at the beginning.
#[derive(Clone, Debug, Default)]
struct Far {
    heap: Vec<Entry>,
    /// Sorted, the last one first.
    planned: Vec<Entry>,
}

impl Far {
    fn first(&self) -> Option<&Entry> {
        match (self.heap.first(), self.planned.last()) {
            (Some(a), Some(b)) => Some(if a.key() < b.key() { a } else { b }),
            (a, b) => a.or(b),
        }
    }

    fn first_key(&self) -> Key {
        self.first().map_or(NEVER, Entry::key)
    }

    fn push(&mut self, entry: Entry) {
        let mut hole = self.heap.len();
        self.heap.push(entry);
        while hole > 0 {
            let parent = (hole - 1) / 2;
            if self.heap[parent].key() <= entry.key() {
                break;
            }
            self.heap[hole] = self.heap[parent];
            hole = parent;
        }
        self.heap[hole] = entry;
    }

    fn pop(&mut self) -> Option<Entry> {
        if let Some(planned) = self.planned.last()
            && self.heap.first().is_none_or(|top| planned.key() < top.key())
        {
            return self.planned.pop();
        }
        let top = *self.heap.first()?;
        let entry = self.heap.pop()?;
        if self.heap.is_empty() {
            return Some(top);
        }
        let mut hole = 0;
        loop {
            let left = 2 * hole + 1;
            if left >= self.heap.len() {
                break;
            }
            let right = left + 1;
            let smaller = right < self.heap.len() && self.heap[right].key() < self.heap[left].key();
            let child = if smaller { right } else { left };
            if entry.key() <= self.heap[child].key() {
                break;
            }
            self.heap[hole] = self.heap[child];
            hole = child;
        }
        self.heap[hole] = entry;
        Some(top)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairpace_units::RandomStream;

    /// The two ways of taking an event.
    type Take = fn(&mut EventSet, Instant) -> Option<(Instant, u32)>;
    const WAYS: [Take; 2] = [EventSet::take, EventSet::take_ahead];

    fn pop(set: &mut EventSet, take: Take) -> Option<(Instant, u32)> {
        let taken = take(set, Instant::NEVER);
        set.done();
        taken
    }

    #[test]
    fn equal_times_come_out_in_the_order_they_went_in() {
        for take in WAYS {
            let mut set = EventSet::default();
            for target in 0..100 {
                set.push(Instant::from_nanos(7), target);
            }
            for target in 0..100 {
                assert_eq!(pop(&mut set, take), Some((Instant::from_nanos(7), target)));
            }
            assert!(set.is_empty());
        }
    }

    #[test]
    fn what_is_said_to_come_comes_if_nothing_is_pushed() {
        let mut set = EventSet::default();
        for target in 0..20 {
            set.push(Instant::from_nanos(u64::from(target) * 40_000_000 % 70_000_000), target);
        }
        let mut expected = None;
        while let Some((_, target)) = set.take_ahead(Instant::NEVER) {
            set.done();
            assert!(expected.is_none_or(|expected| expected == target));
            let upcoming = set.upcoming([0, EventSet::AHEAD - 1]);
            assert_eq!(upcoming.is_some(), set.len() >= EventSet::AHEAD as usize);
            expected = upcoming.map(|[next, _]| next);
        }
        assert!(set.is_empty());
    }

    /// More events before the last of those that are kept apart than there is room for, and then one behind the last.
    #[test]
    fn bursts_between_the_next_events_come_in_order() {
        let at = Instant::from_nanos;
        let mut set = EventSet::default();
        (0..=8).for_each(|n| set.push(at(n * 1_000_000), n as u32));
        assert_eq!(pop(&mut set, EventSet::take_ahead), Some((at(0), 0)));
        (0..8).for_each(|n| set.push(at(500_000), 100 + n));
        set.push(at(7_500_000), 200);
        set.push(at(7_200_000), 201);
        let order: Vec<_> =
            std::iter::from_fn(|| pop(&mut set, EventSet::take_ahead)).map(|(_, target)| target).collect();
        assert_eq!(order, [100, 101, 102, 103, 104, 105, 106, 107, 1, 2, 3, 4, 5, 6, 7, 201, 200, 8]);
        for seed in 0..200 {
            let mut random = RandomStream::named(seed, "bursts");
            let (mut set, mut list) = (EventSet::default(), std::collections::BTreeSet::new());
            let (mut now, mut order) = (0, 0_u32);
            for step in 0..2_000 {
                let burst = if step < 1_500 { random.below(14) } else { 0 };
                for _ in 0..burst {
                    let spread = [10, 1_000, 1_000_000][random.below(3) as usize];
                    let time = now + random.below(spread);
                    order += 1;
                    set.push(at(time), order);
                    list.insert((time, order));
                }
                for _ in 0..random.below(13) {
                    let expected = list.pop_first();
                    let found = pop(&mut set, EventSet::take_ahead);
                    assert_eq!(found, expected.map(|(time, order)| (at(time), order)), "seed {seed}, step {step}");
                    now = expected.map_or(now, |(time, _)| time);
                }
            }
        }
    }

    /// By definition: a sorted list. Times from dense to sparse, so that wheel, heap, equal times,
    /// and narrower slots all take part.
    #[test]
    fn it_gives_what_a_sorted_list_gives_at_every_density() {
        let spreads = [3, 1_000, 100_000, 10_000_000, 1_000_000_000];
        for (spread, way) in spreads.into_iter().flat_map(|spread| WAYS.map(|way| (spread, way))) {
            let mut random = RandomStream::named(spread, "events");
            let mut set = EventSet::default();
            let known: Vec<(u64, u32)> = (0..500).map(|i| (random.below(20_000 * spread), i)).collect();
            set.plan(known.iter().map(|(at, target)| (Instant::from_nanos(*at), *target)));
            let mut list: std::collections::BTreeSet<_> =
                (1..).zip(&known).map(|(order, k)| (k.0, order, k.1)).collect();
            let (mut now, mut order) = (0, 500);
            for step in 0..60_000 {
                // Grows to some thousand, then shrinks.
                let grow = if step < 30_000 { 6 } else { 3 };
                let take = !list.is_empty() && random.below(10) >= grow;
                let replace = take && random.below(2) == 0;
                if take {
                    let (at, _, target) = list.pop_first().unwrap();
                    assert_eq!(set.next(), Some(Instant::from_nanos(at)));
                    if at > 0 {
                        assert_eq!(way(&mut set, Instant::from_nanos(at - 1)), None);
                    }
                    assert_eq!(way(&mut set, Instant::from_nanos(at)), Some((Instant::from_nanos(at), target)));
                    set.done();
                    now = at;
                }
                // Every other one lies one of a few distances ahead.
                let far = if random.below(8) == 0 { 50 } else { 1 };
                let at =
                    now + if random.below(2) == 0 { random.below(spread) * far } else { random.below(7) * spread / 7 };
                let target = random.below(1_000) as u32;
                if take && !replace {
                    continue;
                }
                set.push(Instant::from_nanos(at), target);
                order += 1;
                list.insert((at, order, target));
                assert_eq!(set.len(), list.len());
            }
            while let Some((at, _, target)) = list.pop_first() {
                assert_eq!(pop(&mut set, way), Some((Instant::from_nanos(at), target)));
            }
            assert!(set.is_empty() && set.next().is_none());
        }
    }
}
