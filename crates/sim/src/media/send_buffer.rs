//! Frames between their source and the controller.

use crate::counts::count;
use fairpace_path::{Capacity, Count};
use fairpace_units::Instant;
use std::collections::VecDeque;

/// The frame of a packet that belongs to none.
pub(super) const NO_FRAME: u32 = u32::MAX;

/// One frame, cut into packets: `full` of `full_size`, then one of `last_size` if that is not zero.
#[derive(Clone, Copy)]
pub(super) struct Pending {
    pub(super) frame: u32,
    pub(super) full: u32,
    pub(super) full_size: u32,
    pub(super) last_size: u32,
    pub(super) born: Instant,
}

impl Pending {
    pub(super) fn packets(&self) -> u64 {
        u64::from(self.full) + u64::from(self.last_size > 0)
    }

    pub(super) fn bytes(&self) -> u64 {
        u64::from(self.full) * u64::from(self.full_size) + u64::from(self.last_size)
    }

    pub(super) fn add_to(&self, counter: &mut Count) {
        count(counter, u64::from(self.full), self.full_size);
        count(counter, u64::from(self.last_size > 0), self.last_size);
    }
}

/// A packet that may leave: its frame, its size on the wire, when its source produced it, whether it is the frame's
/// last.
pub(super) struct Ready {
    pub(super) frame: u32,
    pub(super) size: u32,
    pub(super) born: Instant,
    pub(super) last: bool,
}

/// Data that waits for the controller, in order; what does not fit is refused whole.
pub(super) struct SendBuffer {
    frames: VecDeque<Pending>,
    packets: u64,
    pub(super) bytes: u64,
    limit: Capacity,
}

impl SendBuffer {
    pub(super) fn new(limit: Capacity) -> Self {
        SendBuffer { frames: VecDeque::new(), packets: 0, bytes: 0, limit }
    }

    pub(super) fn push(&mut self, frame: Pending) -> bool {
        let (packets, bytes) = (self.packets + frame.packets(), self.bytes + frame.bytes());
        let fits = match self.limit {
            Capacity::Packets(most) => packets <= most.get(),
            Capacity::Bytes(most) => bytes <= most.get(),
            Capacity::Unlimited => true,
        };
        if fits {
            (self.packets, self.bytes) = (packets, bytes);
            self.frames.push_back(frame);
        }
        fits
    }

    /// The next packet.
    pub(super) fn pop(&mut self) -> Option<Ready> {
        let front = self.frames.front_mut()?;
        let (frame, born) = (front.frame, front.born);
        let size = if front.full > 0 {
            front.full -= 1;
            front.full_size
        } else {
            std::mem::take(&mut front.last_size)
        };
        let last = front.full == 0 && front.last_size == 0;
        if last {
            self.frames.pop_front();
        }
        self.packets -= 1;
        self.bytes -= u64::from(size);
        Some(Ready { frame, size, born, last })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }
}
