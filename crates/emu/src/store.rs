//! The bytes of the packets that travel through a path in real time: the path moves tokens, the bytes wait
//! here. Bounded, and nothing is allocated once the buffers have grown to their size.

#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

/// A packet's bytes and what is to be remembered of it.
#[derive(Debug)]
struct Slot<M> {
    bytes: Vec<u8>,
    meta: M,
    /// How often the slot was used: part of the token, so that an old token finds nothing.
    turn: u32,
    used: bool,
}

/// A slot that was used by a packet longer than this lets its buffer go: few packets are, and what the free
/// slots keep would add up otherwise.
const KEEP: usize = 4_096;

/// The least size that a packet counts as, in bytes: so much is remembered of each here and in the path, however
/// short it is (180 B measured with empty datagrams).
const LEAST: usize = 256;

fn cost(bytes: usize) -> usize {
    bytes.max(LEAST)
}

/// All packets under way, each with an `M` of its owner.
#[derive(Debug)]
pub(crate) struct Store<M> {
    slots: Vec<Slot<M>>,
    free: Vec<u32>,
    held: usize,
    max_held: usize,
    limit: usize,
}

impl<M> Store<M> {
    /// Room for packets of `limit` bytes together, each counted as 256 at least.
    pub(crate) fn new(limit: usize) -> Store<M> {
        Store { slots: Vec::new(), free: Vec::new(), held: 0, max_held: 0, limit }
    }

    /// Keeps a packet, given in parts; `None` if there is no room for it.
    pub(crate) fn put(&mut self, parts: &[&[u8]], meta: M) -> Option<u64> {
        let length: usize = parts.iter().map(|p| p.len()).sum();
        if self.held + cost(length) > self.limit {
            return None;
        }
        let (index, slot) = match self.free.pop() {
            Some(index) => {
                let slot = self.slots.get_mut(index as usize)?;
                slot.meta = meta;
                (index, slot)
            }
            None => {
                let index = u32::try_from(self.slots.len()).ok()?;
                self.slots.push(Slot { bytes: Vec::new(), meta, turn: 0, used: false });
                (index, self.slots.last_mut()?)
            }
        };
        slot.bytes.clear();
        slot.bytes.reserve(length);
        for part in parts {
            slot.bytes.extend_from_slice(part);
        }
        (slot.used, slot.turn) = (true, slot.turn.wrapping_add(1));
        self.held += cost(length);
        self.max_held = self.max_held.max(self.held);
        Some(u64::from(slot.turn) << 32 | u64::from(index))
    }

    /// A packet that is kept; `None` if the token is not (or no longer) known.
    pub(crate) fn get(&self, token: u64) -> Option<(&[u8], &M)> {
        let slot = self.slots.get(token as u32 as usize)?;
        (slot.used && slot.turn == (token >> 32) as u32).then_some((slot.bytes.as_slice(), &slot.meta))
    }

    /// As [`Store::get`], to be changed.
    pub(crate) fn get_mut(&mut self, token: u64) -> Option<(&mut [u8], &mut M)> {
        let slot = self.slots.get_mut(token as u32 as usize)?;
        (slot.used && slot.turn == (token >> 32) as u32).then_some((slot.bytes.as_mut_slice(), &mut slot.meta))
    }

    /// Forgets a packet; false if the token is not (or no longer) known.
    pub(crate) fn remove(&mut self, token: u64) -> bool {
        let index = token as u32;
        let Some(slot) = self.slots.get_mut(index as usize) else { return false };
        if !slot.used || slot.turn != (token >> 32) as u32 {
            return false;
        }
        slot.used = false;
        self.held -= cost(slot.bytes.len());
        if slot.bytes.capacity() > KEEP {
            slot.bytes = Vec::new();
        }
        self.free.push(index);
        true
    }

    /// Packets under way.
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Most bytes ever under way, counted so.
    pub(crate) fn max_held(&self) -> usize {
        self.max_held
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_comes_out_once_as_it_went_in() {
        let mut store = Store::new(1_000);
        let token = store.put(&[b"a", b"bc"], 4).unwrap();
        assert_eq!(store.get(token), Some((&b"abc"[..], &4)));
        if let Some((bytes, meta)) = store.get_mut(token) {
            (bytes[0], *meta) = (b'A', 5);
        }
        assert_eq!(store.get(token), Some((&b"Abc"[..], &5)));
        assert!(store.remove(token) && !store.remove(token) && store.get(token).is_none());
        // the slot is used again, the old token is still dead
        let second = store.put(&[b"d"], 6).unwrap();
        assert_ne!(second, token);
        assert!(store.get(token).is_none() && store.get_mut(token).is_none() && !store.remove(token));
        assert_eq!(store.get(second), Some((&b"d"[..], &6)));
        assert!(store.get(u64::MAX).is_none(), "never given out");
    }

    #[test]
    fn memory_is_bounded_by_bytes_and_freed_room_is_used_again() {
        let mut store = Store::new(2_500);
        let a = store.put(&[&[1; 1_000]], ()).unwrap();
        store.put(&[&[2; 1_000]], ()).unwrap();
        assert_eq!(store.put(&[&[3; 500], &[3; 1]], ()), None);
        assert!(store.remove(a));
        assert!(store.put(&[&[4; 1_000]], ()).is_some());
        assert_eq!((store.len(), store.slots.len(), store.max_held()), (2, 2, 2_000));
    }

    /// Or a flood of empty datagrams took seven times the room that there is.
    #[test]
    fn short_packets_take_room_too() {
        let mut store = Store::new(10 * LEAST);
        let tokens: Vec<u64> = std::iter::from_fn(|| store.put(&[&[0; 28]], ())).take(100).collect();
        assert_eq!((tokens.len(), store.max_held()), (10, 10 * LEAST));
        assert!(tokens.into_iter().all(|token| store.remove(token)));
        assert_eq!((store.held, store.len()), (0, 0));
    }

    #[test]
    fn free_slots_do_not_keep_long_buffers() {
        let mut store = Store::new(1 << 20);
        let long = store.put(&[&[0; 60_000]], ()).unwrap();
        store.remove(long);
        assert!(store.slots.iter().all(|s| s.bytes.capacity() <= KEEP));
    }
}
