//! A timing wheel: lists of events, each of one slot of time.

use super::entry::Entry;

/// Slots of a wheel.
pub(super) const SLOTS: usize = WORDS * 64;
const WORDS: usize = 16;
/// No list.
const NONE: u32 = u32::MAX;

/// Slots of equal width around a wheel, from the one of number `base` on.
#[derive(Clone, Debug)]
pub(super) struct Wheel {
    pub(super) base: u64,
    /// The events of slot n are in list `slots[n % SLOTS]`.
    pub(super) slots: Box<[u32; SLOTS]>,
    /// The slots that have an event, one bit each; the words that are not 0, one bit each.
    occupied: [u64; WORDS],
    words: u64,
    /// Lists of events, in no order, and which of them no slot has.
    pub(super) lists: Vec<Vec<Entry>>,
    pub(super) free: Vec<u32>,
}

impl Default for Wheel {
    fn default() -> Self {
        Wheel {
            base: 0,
            slots: Box::new([NONE; SLOTS]),
            occupied: [0; WORDS],
            words: 0,
            lists: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl Wheel {
    /// Whether it has a slot of that number.
    #[inline(always)]
    pub(super) fn reaches(&self, slot: u64) -> bool {
        slot.wrapping_sub(self.base) < SLOTS as u64
    }

    /// Adds an event to a slot that it has.
    #[inline(always)]
    pub(super) fn put(&mut self, slot: u64, entry: Entry) {
        let list = self.slots[slot as usize % SLOTS];
        match self.lists.get_mut(list as usize) {
            Some(list) => list.push(entry),
            None => self.begin_list(slot as usize % SLOTS, entry),
        }
    }

    /// The first event of its slot.
    #[inline(never)]
    fn begin_list(&mut self, slot: usize, entry: Entry) {
        let list = self.free.pop().unwrap_or(self.lists.len() as u32);
        match self.lists.get_mut(list as usize) {
            Some(empty) => empty.push(entry),
            None => self.lists.push(vec![entry]),
        }
        self.slots[slot] = list;
        self.occupied[slot / 64] |= 1 << (slot % 64);
        self.words |= 1 << (slot / 64);
    }

    /// The number of the first slot that has an event.
    #[inline]
    pub(super) fn first(&self) -> Option<u64> {
        let from = self.base as usize % SLOTS;
        let (word, bits) = (from / 64, u64::MAX << (from % 64));
        let here = self.occupied[word] & bits;
        let slot = if here != 0 {
            word * 64 + here.trailing_zeros() as usize
        } else if self.words == 0 {
            return None;
        } else {
            // Around the wheel, from the next word on.
            let later = self.words & u64::MAX << word << 1;
            let word = if later != 0 { later } else { self.words }.trailing_zeros() as usize;
            word * 64 + self.occupied[word].trailing_zeros() as usize
        };
        Some(self.base + (slot.wrapping_sub(from) % SLOTS) as u64)
    }

    /// The earliest event of the first slot that has any.
    pub(super) fn earliest(&self) -> Option<&Entry> {
        let list = self.slots[self.first()? as usize % SLOTS];
        self.lists[list as usize].iter().min_by_key(|entry| entry.at)
    }

    /// The list of a slot, which has none then; whoever has emptied it gives it back to `free`.
    #[inline(always)]
    pub(super) fn take(&mut self, slot: usize) -> u32 {
        self.occupied[slot / 64] &= !(1 << (slot % 64));
        if self.occupied[slot / 64] == 0 {
            self.words &= !(1 << (slot / 64));
        }
        std::mem::replace(&mut self.slots[slot], NONE)
    }

    /// Takes all events out.
    pub(super) fn drain(&mut self, into: &mut Vec<Entry>) {
        into.extend(self.lists.iter_mut().flat_map(|list| list.drain(..)));
        self.slots.fill(NONE);
        self.occupied = [0; WORDS];
        self.words = 0;
        self.free = (0..self.lists.len() as u32).collect();
    }
}
