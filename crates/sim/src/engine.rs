//! The pending-event set: a timing wheel for what comes soon, coarser ones for what comes late.
//!
//! The event set holds one entry per packet in a flow's own link, one per other link that has something in flight, and one per running timer:
//! some hundred for the busiest of our scenarios, and as many as there are packets in access links with 100,000 flows. The wheel's
//! slots hold events without an order. A slot is opened when time comes to it: its events are put in order in one array, from whose front they are taken; an
//! event that is pushed into that time finds its place there. An event behind the wheel's last slot lies in a slot of a coarse wheel, and goes to a
//! place on the wheel before it when that has come near [Varghese and Lauck 1987, scheme 7]. So an event costs the same however many are pending, and the
//! next few are known ([`EventSet::upcoming`]). Only what comes later than the last slot of all goes into a heap: 16 million slots of a few events each. Events
//! known at the beginning (starts and ends of flows, perhaps tens of thousands) lie in a sorted list, so that they make nothing else slower.
//!
//! The order is total and explicit: by time, and of one instant by target, lowest first. When an entry was made, where it lies and how wide a
//! slot is make no difference, so that nobody changes results by needing an event less. Of targets that have [`Event::DRAWN`] the kind
//! (their highest four bits) comes first, and then a number made of the time and the target: were it always the lowest target, of several links
//! whose packets meet again and again in a queue one would always be in front.
//! `examples/event_set.rs` compares it with a plain heap.

mod entry;
mod order;
mod wheel;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use fairpace_units::Instant;

use entry::Entry;
pub use entry::Event;
use order::{put_in_order, sink};
use wheel::{SLOTS, Wheel};

/// log2 of how much wider the slots of a coarse wheel are than those of the wheel before. So one of them is as wide as an eighth of that
/// wheel.
const COARSER: u32 = 7;
/// Width of a slot at the beginning: 2^15 ns = 33 µs, so that the wheel covers 34 ms, and the coarse ones 4 s and 9 minutes.
const FIRST_SHIFT: u32 = 15;
/// The next events are looked for so many slots ahead: if there are few in these, nobody has to hurry.
const SLOTS_AHEAD: u64 = 4;
/// So many events that were taken stay in their places; if there are more, the others move to the front.
const MOST_TAKEN: usize = 64;
/// So many openings of slots, or events in them, are between two looks at how full slots are; and the means below and above which they become
/// wider and narrower.
const REVIEW_EVERY: u32 = 1_024;
const REVIEW_AT: u32 = REVIEW_EVERY * MOST;
const LEAST: u32 = 4;
const MOST: u32 = 16;
/// So often between two reviews a place was looked for among more than so many events, and the slot is far too wide for what comes now.
const MOST_CROWDED: u32 = 1_024;
const CROWD: usize = 64;
/// So many events are moved by one place, to make room, in the time in which one is brought to a new place.
const MOVES_AT_ONCE: u64 = 32;
/// A slot is 64 ns wide at least, and 2 s at most.
const LEAST_SHIFT: u32 = 6;
const MOST_SHIFT: u32 = 31;

/// Pending events, earliest first, in a total order.
#[derive(Clone, Debug)]
pub struct EventSet {
    /// All events before `until`, in order, from place `first` on.
    soon: Vec<Entry>,
    first: usize,
    until: u64,
    pushed: u64,
    removed: u64,
    max_len: u64,
    /// log2 of a slot's width in ns.
    shift: u32,
    /// The first of its slots begins at `until`.
    wheel: Wheel,
    /// Their slots are wider by [`COARSER`] bits each than those of the wheel before.
    coarse: [Wheel; 2],
    /// No event of `coarse` is in a slot of the wheel before this one.
    coarse_from: u64,
    far: Far,
    /// When the first event of `far` comes; the greatest number if there is none.
    far_at: u64,
    /// Slots opened, and events in them, since the last review.
    opened: u32,
    found: u32,
    /// How often a place was looked for among a crowd, since the last review.
    crowded: u32,
    /// Events that were taken, and what such places cost, since slots had another width, in the time that bringing one event to a new place takes.
    work: u64,
}

impl Default for EventSet {
    fn default() -> Self {
        EventSet {
            soon: Vec::new(),
            first: 0,
            until: 0,
            pushed: 0,
            removed: 0,
            max_len: 0,
            shift: FIRST_SHIFT,
            wheel: Wheel::default(),
            coarse: [Wheel::default(), Wheel::default()],
            coarse_from: 0,
            far: Far::default(),
            far_at: u64::MAX,
            opened: 0,
            found: 0,
            crowded: 0,
            work: 0,
        }
    }
}

impl EventSet {
    /// So many of the next events are known after [`EventSet::take_ahead`], if as many come soon.
    pub const AHEAD: usize = 16;

    /// Adds many events at once, before any is taken.
    pub fn plan(&mut self, events: impl IntoIterator<Item = (Instant, u32)>) {
        debug_assert_eq!(self.until, 0, "some have been taken");
        for (at, target) in events {
            self.pushed += 1;
            self.far.planned.push(Entry::new(at, target, Event::NOTHING));
        }
        self.max_len = self.max_len.max(self.pushed - self.removed);
        self.far.planned.sort_unstable_by(|a, b| b.cmp(a));
        self.far_at = self.far.first_at();
    }

    /// Adds an event, not earlier than the last one taken, at a time that comes.
    #[inline(always)]
    pub fn push(&mut self, at: Instant, target: u32) {
        self.push_with(at, target, Event::NOTHING);
    }

    /// As [`EventSet::push`], with a number that comes out with it.
    #[inline(always)]
    pub fn push_with(&mut self, at: Instant, target: u32, cargo: u32) {
        // Counted one by one from zero: neither ends in our lifetime.
        self.pushed = self.pushed.wrapping_add(1);
        let len = self.pushed.wrapping_sub(self.removed);
        if len > self.max_len {
            self.max_len = len;
        }
        self.place(Entry::new(at, target, cargo));
    }

    /// Brings an event to its place.
    #[inline(always)]
    fn place(&mut self, entry: Entry) {
        if entry.at < self.until {
            return self.insert_soon(entry);
        }
        let slot = entry.at >> self.shift;
        if !self.wheel.reaches(slot) {
            return self.insert_later(entry);
        }
        self.wheel.put(slot, entry);
    }

    /// When the earliest event is; `None` if there is none.
    pub fn next(&self) -> Option<Instant> {
        let mut at = self.soon.get(self.first).map_or(self.far_at, |first| first.at.min(self.far_at));
        if self.first == self.soon.len() {
            for (wheel, bits) in [&self.wheel].into_iter().chain(&self.coarse).zip([0, COARSER, 2 * COARSER]) {
                // A slot is looked through only if it begins before.
                if wheel.first().is_some_and(|slot| slot << (self.shift + bits) < at) {
                    at = wheel.earliest().map_or(at, |entry| at.min(entry.at));
                }
            }
        }
        (at != u64::MAX).then(|| Instant::from_nanos(at))
    }

    /// As [`EventSet::next`]. The slot of that event is open then, so that whoever asks again and again looks for it once.
    pub fn peek(&mut self) -> Option<Instant> {
        if self.first == self.soon.len() {
            self.open(u64::MAX);
        }
        self.next()
    }

    /// Takes the earliest event out if it is due by `to`. The event counts as pending until [`EventSet::done`]; the next push
    /// comes at its time or later.
    #[inline(always)]
    pub fn take(&mut self, to: Instant) -> Option<Event> {
        if self.first == self.soon.len() && !self.open(u64::MAX) {
            return None;
        }
        let entry = self.soon[self.first];
        if entry.at > to.as_nanos() {
            return None;
        }
        self.first += 1;
        Some(entry.event())
    }

    /// As [`EventSet::take`], and [`EventSet::upcoming`] knows the events behind it.
    #[inline(always)]
    pub fn take_ahead(&mut self, to: Instant) -> Option<Event> {
        let taken = self.take(to);
        if self.soon.len() - self.first < EventSet::AHEAD {
            self.open_more();
        }
        taken
    }

    /// Opens the next few slots, until enough events are known.
    #[inline(never)]
    fn open_more(&mut self) {
        let last = self.until.saturating_add(SLOTS_AHEAD << self.shift);
        while self.soon.len() - self.first < EventSet::AHEAD && self.open(last) {}
    }

    /// The events that come after so many others, [`EventSet::AHEAD`] in all; `None` if fewer are known.
    #[inline(always)]
    pub fn upcoming<const N: usize>(&self, after: usize) -> Option<[Event; N]> {
        let known = self.soon.get(self.first + after..self.first + after + N)?;
        let known: &[Entry; N] = known.try_into().ok()?;
        Some(known.map(Entry::event))
    }

    /// All events that are to be taken, in no order.
    pub fn pending(&self) -> impl Iterator<Item = Event> {
        let Far { heap, planned } = &self.far;
        let wheels = [&self.wheel].into_iter().chain(&self.coarse).flat_map(Wheel::events);
        self.soon[self.first..]
            .iter()
            .chain(wheels)
            .chain(heap.iter().map(|Reverse(entry)| entry))
            .chain(planned)
            .map(|entry| entry.event())
    }

    /// The event that was taken is no longer pending.
    #[inline(always)]
    pub fn done(&mut self) {
        self.removed = self.removed.wrapping_add(1);
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

    /// Adds an event to those in order. Those behind it make room, or, if they are fewer, those before
    /// it, which move up to where one was taken.
    #[inline(never)]
    fn insert_soon(&mut self, entry: Entry) {
        let waiting = &self.soon[self.first..];
        if waiting.len() > CROWD {
            self.crowded += 1;
            self.work += waiting.len() as u64 / MOVES_AT_ONCE;
            if self.crowded > MOST_CROWDED && self.may_move_all() {
                self.thin_out();
                return self.place(entry);
            }
        }
        if self.first == 0 || waiting.get(waiting.len() / 2).is_none_or(|other| !other.is_after(&entry)) {
            if self.soon.len() == self.soon.capacity() {
                self.soon.drain(..self.first);
                self.first = 0;
            }
            self.soon.push(entry);
            sink(&mut self.soon[self.first..]);
            return;
        }
        self.first -= 1;
        let mut place = &mut self.soon[self.first..];
        while let [here, next, ..] = place
            && !next.is_after(&entry)
        {
            *here = *next;
            place = &mut place[1..];
        }
        place[0] = entry;
    }

    /// A slot that became wide while little happened is too wide when many events come: it takes as many bits less as leave the mean
    /// slot [`MOST`].
    #[cold]
    fn thin_out(&mut self) {
        self.crowded = 0;
        let bits = ((self.soon.len() - self.first) / MOST as usize).ilog2();
        let shift = self.shift.saturating_sub(bits).max(LEAST_SHIFT);
        // Many events of one instant are in no slot apart.
        if shift < self.shift {
            self.set_width(shift);
        }
    }

    /// Adds an event behind the wheel's last slot.
    #[inline(never)]
    fn insert_later(&mut self, entry: Entry) {
        let mut shift = self.shift;
        for wheel in &mut self.coarse {
            shift += COARSER;
            let slot = entry.at >> shift;
            if wheel.reaches(slot) {
                return wheel.put(slot, entry);
            }
        }
        self.far.heap.push(Reverse(entry));
        self.far_at = self.far.first_at();
    }

    /// Each coarse wheel begins where the one before it ends, or less than one of its slots sooner: what it has before goes to its place in that.
    #[inline(never)]
    fn pour(&mut self) {
        let mut ends = self.wheel.base.saturating_add(SLOTS as u64);
        for i in 0..self.coarse.len() {
            ends >>= COARSER;
            while let Some(slot) = self.coarse[i].first().filter(|slot| *slot < ends) {
                while let Some((&chunk, len, _)) = self.coarse[i].take_chunk(slot) {
                    chunk.into_iter().take(len).for_each(|entry| self.place(entry));
                }
            }
            self.coarse[i].base = ends;
            if i == 0 {
                self.coarse_from = ends << COARSER;
            }
            ends = ends.saturating_add(SLOTS as u64);
        }
    }

    /// The slot of the wheel in which the first slot begins that has events on a coarse one.
    fn first_coarse(&self) -> Option<u64> {
        let wheels = self.coarse.iter().zip([COARSER, 2 * COARSER]);
        wheels.filter_map(|(wheel, bits)| Some(wheel.first()? << bits)).min()
    }

    /// Puts the events of the next slot that has any in order, if it does not begin after `last`.
    #[inline(never)]
    fn open(&mut self, last: u64) -> bool {
        if (self.opened == REVIEW_EVERY || self.found > REVIEW_AT) && self.review() {
            return true;
        }
        let (mut wheel, far) = (self.wheel.first().unwrap_or(u64::MAX), self.far_at >> self.shift);
        // Events on a coarse wheel come first only where there are no others for long.
        while wheel.min(far) >= self.coarse_from
            && let Some(coarse) = self.first_coarse().filter(|coarse| *coarse <= wheel.min(far))
        {
            if coarse << self.shift > last {
                return false;
            }
            self.open_until(coarse);
            self.pour();
            wheel = self.wheel.first().unwrap_or(u64::MAX);
        }
        let slot = wheel.min(far);
        if (self.far_at == u64::MAX && wheel == u64::MAX) || slot << self.shift > last {
            return false;
        }
        if self.first == self.soon.len() {
            self.soon.clear();
            self.first = 0;
        } else if self.first > MOST_TAKEN {
            self.soon.drain(..self.first);
            self.first = 0;
        }
        self.open_until(slot + 1);
        self.opened += 1;
        if wheel == slot {
            self.open_slot(slot);
        }
        // Only now, since the wheel's last slot lies where this one was.
        if self.wheel.base + SLOTS as u64 >= self.coarse_from + (1 << COARSER) {
            self.pour();
        }
        self.bring_far();
        true
    }

    /// Puts what comes before `until` from the heap, and of what was planned, in order.
    #[inline(always)]
    fn bring_far(&mut self) {
        while self.far_at < self.until
            && let Some(entry) = self.far.pop()
        {
            let place = self.soon[self.first..].partition_point(|other| entry.is_after(other));
            self.soon.insert(self.first + place, entry);
            self.found = self.found.saturating_add(1);
            self.far_at = self.far.first_at();
        }
    }

    /// Puts the events of a slot in order, behind those before it.
    #[inline(always)]
    fn open_slot(&mut self, slot: u64) {
        self.wheel.prefetch(slot + 1);
        let begin = self.soon.len();
        while let Some((chunk, len, alone)) = self.wheel.take_chunk(slot) {
            self.found += len as u32;
            let at = self.soon.len();
            // As a whole: how many events there are, no branch could predict.
            self.soon.extend_from_slice(chunk);
            self.soon.truncate(at + len);
            if alone {
                break;
            }
        }
        put_in_order(&mut self.soon[begin..]);
    }

    /// Slots that are too full become narrower, and those with too few events wider. True if the list of those in order got some by it.
    #[cold]
    fn review(&mut self) -> bool {
        self.crowded = 0;
        self.work += u64::from(self.found);
        let found = std::mem::take(&mut self.found) / std::mem::take(&mut self.opened).max(1);
        if !self.may_move_all() {
            return false;
        }
        let shift = if found > MOST && self.shift > LEAST_SHIFT {
            self.shift.saturating_sub((found / MOST).ilog2().max(1)).max(LEAST_SHIFT)
        } else if found < LEAST && self.shift < MOST_SHIFT {
            self.shift + 1
        } else {
            return false;
        };
        let known = self.soon.len() - self.first;
        self.set_width(shift);
        self.soon.len() - self.first > known
    }

    /// Whether another width of slots costs no more than what was done since the last one.
    fn may_move_all(&self) -> bool {
        self.work >= self.len() as u64
    }

    /// Brings all events but those of the heap to new places. Their order does not depend on the width.
    fn set_width(&mut self, shift: u32) {
        let from = self.soon.get(self.first).map_or(self.until, |first| first.at.saturating_add(1).min(self.until));
        let mut entries = self.soon.split_off(self.first);
        for wheel in [&mut self.wheel].into_iter().chain(&mut self.coarse) {
            wheel.drain(&mut entries);
        }
        self.shift = shift;
        self.work = 0;
        self.open_until(from.div_ceil(1 << shift));
        self.pour();
        let (mut soon, later): (Vec<_>, Vec<_>) = entries.into_iter().partition(|entry| entry.at < self.until);
        soon.sort_unstable();
        (self.soon, self.first) = (soon, 0);
        later.into_iter().for_each(|entry| self.place(entry));
        self.bring_far();
    }

    /// All events before the slot of that number are those in order.
    fn open_until(&mut self, next_slot: u64) {
        self.wheel.base = next_slot;
        self.until = if next_slot > u64::MAX >> self.shift { u64::MAX } else { next_slot << self.shift };
    }
}

/// A heap of entries, beside a list of those that were known at the beginning.
#[derive(Clone, Debug, Default)]
struct Far {
    heap: BinaryHeap<Reverse<Entry>>,
    /// Sorted, the last one first.
    planned: Vec<Entry>,
}

impl Far {
    fn first_at(&self) -> u64 {
        let heap = self.heap.peek().map(|Reverse(entry)| entry.at);
        let planned = self.planned.last().map(|entry| entry.at);
        heap.into_iter().chain(planned).min().unwrap_or(u64::MAX)
    }

    fn pop(&mut self) -> Option<Entry> {
        match (self.heap.peek(), self.planned.last()) {
            (Some(Reverse(entry)), Some(planned)) if planned.is_after(entry) => {}
            (_, Some(_)) => return self.planned.pop(),
            _ => {}
        }
        self.heap.pop().map(|Reverse(entry)| entry)
    }
}

#[cfg(test)]
mod tests {
    use super::entry::rank;
    use super::*;
    use fairpace_units::RandomStream;

    /// The two ways of taking an event.
    type Take = fn(&mut EventSet, Instant) -> Option<(Instant, u32)>;
    const WAYS: [Take; 2] = [take, take_ahead];

    fn take(set: &mut EventSet, to: Instant) -> Option<(Instant, u32)> {
        set.take(to).map(|event| (event.at, event.target))
    }

    fn take_ahead(set: &mut EventSet, to: Instant) -> Option<(Instant, u32)> {
        set.take_ahead(to).map(|event| (event.at, event.target))
    }

    fn pop(set: &mut EventSet, way: Take) -> Option<(Instant, u32)> {
        let taken = way(set, Instant::NEVER);
        set.done();
        taken
    }

    #[test]
    fn events_of_one_instant_come_in_the_order_of_their_targets_however_they_went_in() {
        for take in WAYS {
            for step in [1, 37, 99] {
                let mut set = EventSet::default();
                for i in 0..100 {
                    set.push(Instant::from_nanos(7), i * step % 100);
                }
                for target in 0..100 {
                    assert_eq!(pop(&mut set, take), Some((Instant::from_nanos(7), target)));
                }
                assert!(set.is_empty());
            }
        }
    }

    /// Of 3,000 instants, each a millisecond after the last, any of n comes first in a n-th, give or take five standard deviations.
    #[test]
    fn of_drawn_targets_of_a_kind_none_is_favoured_and_kinds_keep_their_order() {
        let drawn = |kind: u32, index: u32| Event::DRAWN | kind << Event::INDEX_BITS | index;
        let sets: [&[u32]; 8] = [
            &[0, 1],
            &[1, 2],
            &[6, 7],
            &[3, 300],
            &[70_000, 70_001],
            &[2, 3, 4],
            &[0, 1, 2, 3, 4],
            &[7, 8, 9, 10, 11, 12],
        ];
        for indices in sets {
            let mut first = vec![0; indices.len()];
            let instants = 3_000;
            for n in 0..instants {
                let mut set = EventSet::default();
                let targets = indices.iter().map(|index| drawn(0, *index));
                for target in [drawn(1, indices[0])].into_iter().chain(targets).chain([5]) {
                    set.push(Instant::from_nanos(n * 1_000_000), target);
                }
                let order: Vec<_> = std::iter::from_fn(|| pop(&mut set, take)).map(|(_, target)| target).collect();
                assert_eq!((order[0], order.last()), (5, Some(&drawn(1, indices[0]))));
                first[indices.iter().position(|index| order[1] == drawn(0, *index)).unwrap()] += 1;
            }
            let (instants, share) = (instants as f64, 1.0 / indices.len() as f64);
            let most_off = 5.0 * (instants * share * (1.0 - share)).sqrt();
            assert!(
                first.iter().all(|n| (f64::from(*n) - share * instants).abs() < most_off),
                "{indices:?}: {first:?}"
            );
        }
    }

    #[test]
    fn what_is_said_to_come_comes_if_nothing_is_pushed() {
        let mut set = EventSet::default();
        for target in 0..20 {
            set.push(Instant::from_nanos(u64::from(target) * 40_000 % 70_000), target);
        }
        let (mut expected, mut known) = (None, 0);
        while let Some((_, target)) = take_ahead(&mut set, Instant::NEVER) {
            set.done();
            assert!(expected.is_none_or(|expected| expected == target));
            let upcoming = set.upcoming::<{ EventSet::AHEAD }>(0);
            assert!(upcoming.is_none() || set.len() >= EventSet::AHEAD);
            expected = upcoming.map(|events| events[0].target);
            known += u32::from(upcoming.is_some());
        }
        assert!(set.is_empty() && known > 0);
    }

    #[test]
    fn an_event_comes_out_with_the_number_that_it_was_pushed_with() {
        let mut set = EventSet::default();
        for n in 0..1_000 {
            let at = Instant::from_nanos(u64::from(n) * 7_919_000 % 1_000_000_000);
            if n % 3 == 0 { set.push(at, n) } else { set.push_with(at, n, n + 1) }
        }
        while let Some(event) = set.take(Instant::NEVER) {
            set.done();
            let expected = if event.target % 3 == 0 { Event::NOTHING } else { event.target + 1 };
            assert_eq!(event.cargo, expected);
        }
        assert!(set.is_empty());
    }

    /// More events before the last of those that are kept apart than there is room for, and then one behind the last.
    #[test]
    fn bursts_between_the_next_events_come_in_order() {
        let at = Instant::from_nanos;
        let mut set = EventSet::default();
        (0..=8).for_each(|n| set.push(at(n * 1_000_000), n as u32));
        assert_eq!(pop(&mut set, take_ahead), Some((at(0), 0)));
        (0..8).for_each(|n| set.push(at(500_000), 100 + n));
        set.push(at(7_500_000), 200);
        set.push(at(7_200_000), 201);
        let order: Vec<_> = std::iter::from_fn(|| pop(&mut set, take_ahead)).map(|(_, target)| target).collect();
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
                    let found = pop(&mut set, take_ahead);
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
                (1..).zip(&known).map(|(order, k)| (k.0, rank(k.0, k.1), order, k.1)).collect();
            let (mut now, mut order) = (0, 500);
            for step in 0..60_000 {
                // Grows to some thousand, then shrinks.
                let grow = if step < 30_000 { 6 } else { 3 };
                let take = !list.is_empty() && random.below(10) >= grow;
                let replace = take && random.below(2) == 0;
                if take {
                    let (at, .., target) = list.pop_first().unwrap();
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
                let target = random.below(1_000) as u32 | if random.below(2) == 0 { Event::DRAWN } else { 0 };
                if take && !replace {
                    continue;
                }
                set.push(Instant::from_nanos(at), target);
                order += 1;
                list.insert((at, rank(at, target), order, target));
                assert_eq!(set.len(), list.len());
            }
            while let Some((at, .., target)) = list.pop_first() {
                assert_eq!(pop(&mut set, way), Some((Instant::from_nanos(at), target)));
            }
            assert!(set.is_empty() && set.next().is_none());
        }
    }

    /// 100,000 events of three timers, and then 20,000 timers at a time: slots have become wide, and must not stay so.
    #[test]
    fn many_events_after_quiet_times_cost_no_more_than_without() {
        for take in WAYS {
            let mut random = RandomStream::named(1, "quiet");
            let (mut set, mut list) = (EventSet::default(), std::collections::BTreeSet::new());
            let (mut now, mut most) = (0, 0);
            for order in 0..200_000 {
                let timers = if order < 100_000 { 3 } else { 20_000 };
                let at = now + 1 + random.below(100_000_000);
                set.push(Instant::from_nanos(at), order);
                list.insert((at, order));
                if list.len() > timers {
                    let (at, target) = list.pop_first().unwrap();
                    assert_eq!(take(&mut set, Instant::NEVER), Some((Instant::from_nanos(at), target)), "{order}");
                    set.done();
                    now = at;
                }
                if order > 160_000 {
                    most = most.max(set.soon.len() - set.first);
                }
            }
            assert!(most < 32 * CROWD, "{most} in order");
        }
    }

    /// After 5,000 events of one instant, for which slots became as narrow as they can be, timers of milliseconds go onto the wheel again, not
    /// through the coarse ones.
    #[test]
    fn slots_become_wide_again_after_many_events_of_one_instant() {
        for take in WAYS {
            let mut random = RandomStream::named(1, "instant");
            let mut set = EventSet::default();
            for order in 0..5_000 {
                set.push(Instant::from_nanos(1_000), order);
            }
            for order in 0..100_000 {
                let (at, _) = take(&mut set, Instant::NEVER).unwrap();
                set.done();
                let ahead = if order < 5_000 { 10 } else { 1_000_000 + random.below(20_000_000) };
                set.push(at + fairpace_units::Duration::from_nanos(ahead), order);
            }
            let coarse: usize = set.coarse.iter().map(|wheel| wheel.events().count()).sum();
            assert!(coarse < 2_500, "{coarse} on coarse wheels, slots of 2^{} ns", set.shift);
        }
    }

    /// Events at distances over six decades: in order, and none in the heap that comes before the coarse wheels end, though slots are as narrow as
    /// 100,000 flows make them.
    #[test]
    fn late_events_wait_on_coarse_wheels_and_come_in_order() {
        for take in WAYS {
            let mut random = RandomStream::named(1, "coarse");
            let (mut set, mut list) = (EventSet::default(), std::collections::BTreeSet::new());
            let (mut now, mut coarse) = (0, 0);
            for order in 0..300_000_u32 {
                let decade = 10_u64.pow(3 + random.below(7) as u32);
                let at = now + random.below(decade);
                set.push(Instant::from_nanos(at), order);
                list.insert((at, order));
                if list.len() > 20_000 {
                    let (at, target) = list.pop_first().unwrap();
                    assert_eq!(take(&mut set, Instant::NEVER), Some((Instant::from_nanos(at), target)), "{order}");
                    set.done();
                    now = at;
                }
                coarse = coarse.max(set.coarse.iter().map(|wheel| wheel.events().count()).sum());
                assert_eq!(set.next(), list.first().map(|(at, _)| Instant::from_nanos(*at)));
            }
            assert!(coarse > 5_000 && set.far.heap.is_empty(), "{coarse} coarse, {} in the heap", set.far.heap.len());
            while let Some((at, target)) = list.pop_first() {
                assert_eq!(pop(&mut set, take), Some((Instant::from_nanos(at), target)));
            }
            assert!(set.is_empty() && set.next().is_none());
        }
    }

    /// Hours of nothing between events: the wheels go to the next one at once.
    #[test]
    fn empty_hours_between_events_cost_nothing() {
        for take in WAYS {
            let mut set = EventSet::default();
            let hours = |n: u64| Instant::from_nanos(n * 3_600_000_000_000);
            for n in 0..2_000 {
                set.push(hours(n), n as u32);
                set.push(hours(n) + fairpace_units::Duration::from_millis(n), 10_000 + n as u32);
                if n > 0 {
                    let before = n - 1;
                    let late = hours(before) + fairpace_units::Duration::from_millis(before);
                    assert_eq!(pop(&mut set, take), Some((hours(before), before as u32)));
                    assert_eq!(pop(&mut set, take), Some((late, 10_000 + before as u32)));
                }
            }
            assert_eq!(set.len(), 2);
        }
    }

    /// Planned events far apart, some timers between: slots that are opened ahead lie soon, also where slots have become wider since.
    #[test]
    fn what_is_opened_ahead_is_soon_after_slots_became_wider() {
        let mut random = RandomStream::named(1, "ahead");
        let mut set = EventSet::default();
        set.plan((1..200).map(|n| (Instant::from_nanos(n * 5_000_000_000), 0)));
        let mut now = 0;
        for order in 0..200_000 {
            set.push(Instant::from_nanos(now + 1 + random.below(30_000_000)), order);
            if order > 5 {
                let (at, _) = take_ahead(&mut set, Instant::NEVER).unwrap();
                set.done();
                now = at.as_nanos();
            }
            assert!(
                set.until <= now + (SLOTS_AHEAD + 2) * (1 << set.shift).max(30_000_000),
                "{now}: until {}",
                set.until
            );
            assert!(set.soon.len() < 64 * CROWD, "{now}: {}", set.soon.len());
        }
    }

    #[test]
    fn few_events_that_all_come_before_a_wider_slot_are_not_lost() {
        for seed in 0..20 {
            let mut random = RandomStream::named(seed, "few");
            let (mut set, mut list) = (EventSet::default(), std::collections::BTreeSet::new());
            let mut now = 0;
            for order in 0..100_000 {
                if order >= 3 {
                    let (at, target) = list.pop_first().unwrap();
                    let taken = if seed % 2 == 0 {
                        take(&mut set, Instant::NEVER)
                    } else {
                        take_ahead(&mut set, Instant::NEVER)
                    };
                    assert_eq!(taken, Some((Instant::from_nanos(at), target)), "seed {seed}, {order}");
                    set.done();
                    now = at;
                }
                let at = now + random.below(if seed % 4 < 2 || order % 20 > 0 { 30_000_000 } else { 3_000_000_000 });
                set.push(Instant::from_nanos(at), order);
                list.insert((at, order));
            }
        }
    }
}
