//! The bytes of the packets that travel through the path: the path moves tokens, the bytes wait
//! here. Bounded, and nothing is allocated once the buffers have grown to their size.

use crate::Mark;
use std::net::SocketAddr;

/// A packet's bytes and how to send them on.
#[derive(Debug, Default)]
struct Slot {
    bytes: Vec<u8>,
    mark: Mark,
    to: Option<SocketAddr>,
    /// How often the slot was used: part of the token, so that an old token finds nothing.
    turn: u32,
    used: bool,
}

/// All packets under way.
#[derive(Debug)]
pub(super) struct Store {
    slots: Vec<Slot>,
    free: Vec<u32>,
    held: usize,
    max_held: usize,
    limit: usize,
}

impl Store {
    /// Room for packets of `limit` bytes together.
    pub(super) fn new(limit: usize) -> Store {
        Store { slots: Vec::new(), free: Vec::new(), held: 0, max_held: 0, limit }
    }

    /// Keeps a packet; `None` if there is no room for it.
    pub(super) fn put(&mut self, bytes: &[u8], mark: Mark, to: Option<SocketAddr>) -> Option<u64> {
        if self.held + bytes.len() > self.limit {
            return None;
        }
        let index = match self.free.pop() {
            Some(index) => index,
            None => {
                self.slots.push(Slot::default());
                u32::try_from(self.slots.len() - 1).ok()?
            }
        };
        let slot = self.slots.get_mut(index as usize)?;
        slot.bytes.clear();
        slot.bytes.extend_from_slice(bytes);
        (slot.mark, slot.to, slot.used) = (mark, to, true);
        slot.turn = slot.turn.wrapping_add(1);
        self.held += bytes.len();
        self.max_held = self.max_held.max(self.held);
        Some(u64::from(slot.turn) << 32 | u64::from(index))
    }

    /// Hands a packet to `use_it` and forgets it; false if the token is not (or no longer) known.
    pub(super) fn take(&mut self, token: u64, use_it: impl FnOnce(&[u8], Mark, Option<SocketAddr>)) -> bool {
        let index = token as u32;
        let Some(slot) = self.slots.get_mut(index as usize) else { return false };
        if !slot.used || slot.turn != (token >> 32) as u32 {
            return false;
        }
        slot.used = false;
        self.held -= slot.bytes.len();
        self.free.push(index);
        use_it(&slot.bytes, slot.mark, slot.to);
        true
    }

    /// Packets under way.
    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Most bytes ever under way.
    pub(super) fn max_held(&self) -> usize {
        self.max_held
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_comes_out_once_as_it_went_in() {
        let mut store = Store::new(1_000);
        let token = store.put(b"abc", Mark::from_tos(4), None).unwrap();
        let mut out = Vec::new();
        assert!(store.take(token, |b, m, _| out.push((b.to_vec(), m))));
        assert_eq!(out, [(b"abc".to_vec(), Mark::from_tos(4))]);
        assert!(!store.take(token, |_, _, _| panic!("twice")));
        // the slot is used again, the old token is still dead
        let second = store.put(b"d", Mark::default(), None).unwrap();
        assert_ne!(second, token);
        assert!(!store.take(token, |_, _, _| panic!("old token")));
        assert!(store.take(second, |b, _, _| assert_eq!(b, b"d")));
        assert!(!store.take(u64::MAX, |_, _, _| panic!("never given out")));
    }

    #[test]
    fn memory_is_bounded_by_bytes_and_freed_room_is_used_again() {
        let mut store = Store::new(2_500);
        let a = store.put(&[1; 1_000], Mark::default(), None).unwrap();
        store.put(&[2; 1_000], Mark::default(), None).unwrap();
        assert_eq!(store.put(&[3; 1_000], Mark::default(), None), None);
        assert!(store.take(a, |_, _, _| {}));
        assert!(store.put(&[4; 1_000], Mark::default(), None).is_some());
        assert_eq!((store.len(), store.slots.len(), store.max_held()), (2, 2, 2_000));
    }
}
