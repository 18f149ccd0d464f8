//! A timing wheel: events by slot of time, those of a slot in no order.

use super::entry::Entry;
use crate::prefetch::prefetch;

/// Slots of a wheel.
pub(super) const SLOTS: usize = WORDS * 64;
const WORDS: usize = 16;
/// So many events lie together.
pub(super) const CHUNK: usize = 16;
/// No chunk.
const NONE: u32 = u32::MAX;

/// Slots of equal width around a wheel, from the one of number `base` on.
///
/// The events of a slot are in chunks, of which it knows the last one. A chunk that was emptied last is filled first, since it is likely in
/// the cache; and how full chunks are stands apart, where it stays in the nearest, so that nobody waits for a chunk that gets an event.
#[derive(Clone, Debug)]
pub(super) struct Wheel {
    pub(super) base: u64,
    /// The last chunk of slot n is `slots[n % SLOTS]`.
    slots: Box<[u32; SLOTS]>,
    /// The slots that have an event, one bit each; the words that are not 0, one bit each.
    occupied: [u64; WORDS],
    words: u64,
    chunks: Vec<[Entry; CHUNK]>,
    /// One per chunk.
    fill: Vec<Fill>,
    /// The chunks that no slot has.
    free: Vec<u32>,
}

/// How full a chunk is.
#[derive(Clone, Copy, Debug)]
struct Fill {
    len: u32,
    /// The chunk of the same slot that was full before.
    before: u32,
}

impl Default for Wheel {
    fn default() -> Self {
        Wheel {
            base: 0,
            slots: Box::new([NONE; SLOTS]),
            occupied: [0; WORDS],
            words: 0,
            chunks: Vec::new(),
            fill: Vec::new(),
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
        let chunk = self.slots[slot as usize % SLOTS] as usize;
        if let (Some(fill), Some(chunk)) = (self.fill.get_mut(chunk), self.chunks.get_mut(chunk))
            && let Some(place) = chunk.get_mut(fill.len as usize)
        {
            *place = entry;
            fill.len += 1;
        } else {
            self.begin_chunk(slot as usize % SLOTS, entry);
        }
    }

    /// The first event of its chunk.
    #[inline(never)]
    fn begin_chunk(&mut self, slot: usize, entry: Entry) {
        let chunk = self.free.pop().unwrap_or(self.chunks.len() as u32);
        if chunk as usize == self.chunks.len() {
            self.chunks.push([Entry::default(); CHUNK]);
            self.fill.push(Fill { len: 0, before: NONE });
        }
        self.chunks[chunk as usize][0] = entry;
        self.fill[chunk as usize] = Fill { len: 1, before: self.slots[slot] };
        self.slots[slot] = chunk;
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
        let mut chunk = self.slots[self.first()? as usize % SLOTS];
        let of_slot = std::iter::from_fn(|| {
            let entries = self.events_of(chunk)?;
            chunk = self.fill[chunk as usize].before;
            Some(entries)
        });
        of_slot.flatten().min_by_key(|entry| entry.at)
    }

    /// All events, in no order.
    pub(super) fn events(&self) -> impl Iterator<Item = &Entry> {
        (0..self.chunks.len() as u32).filter_map(|chunk| self.events_of(chunk)).flatten()
    }

    fn events_of(&self, chunk: u32) -> Option<&[Entry]> {
        self.chunks.get(chunk as usize)?.get(..self.fill[chunk as usize].len as usize)
    }

    /// Asks for the events of a slot's last chunk.
    #[inline(always)]
    pub(super) fn prefetch(&self, slot: u64) {
        if let Some(chunk) = self.chunks.get(self.slots[slot as usize % SLOTS] as usize) {
            prefetch(chunk);
        }
    }

    /// Takes the last chunk out of a slot: the chunk, of which so many places have events, and whether it was the only one. `None` if the slot has none.
    #[inline(always)]
    pub(super) fn take_chunk(&mut self, slot: u64) -> Option<(&[Entry; CHUNK], usize, bool)> {
        let slot = slot as usize % SLOTS;
        let chunk = self.slots[slot];
        let Fill { len, before } = std::mem::replace(self.fill.get_mut(chunk as usize)?, Fill { len: 0, before: NONE });
        self.slots[slot] = before;
        if before == NONE {
            self.occupied[slot / 64] &= !(1 << (slot % 64));
            if self.occupied[slot / 64] == 0 {
                self.words &= !(1 << (slot / 64));
            }
        }
        self.free.push(chunk);
        Some((self.chunks.get(chunk as usize)?, len as usize, before == NONE))
    }

    /// Takes all events out.
    pub(super) fn drain(&mut self, into: &mut Vec<Entry>) {
        into.extend(self.events());
        self.slots.fill(NONE);
        self.occupied = [0; WORDS];
        self.words = 0;
        self.chunks.clear();
        self.fill.clear();
        self.free.clear();
    }
}
