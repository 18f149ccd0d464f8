//! First in, first out; an arrival that finds no room is dropped.

use super::parts::{Held, Room};

/// A drop-tail queue. The queue holds no packets: an admitted packet has its departure computed at once and goes
/// straight to the delay line. So the queue has to know only how much is still there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DropTail {
    room: Room,
}

impl DropTail {
    pub(crate) fn new(room: Room) -> Self {
        DropTail { room }
    }

    /// Whether an arrival of `size` is let in.
    #[inline]
    pub(crate) fn admits(&self, held: Held, size: u64) -> bool {
        self.room.fits(held, size)
    }

    /// How many packets of that size have room.
    pub(crate) fn room_for(&self, size: u64) -> u64 {
        self.room.packets_of(size)
    }

    /// Whether packets and bytes do not exceed its room.
    #[inline(always)]
    pub(crate) fn holds(&self, held: Held) -> bool {
        self.room.holds(held)
    }
}
