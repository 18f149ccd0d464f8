//! The state of what happens on few links.

use super::usage::Usage;
use crate::counters::Count;
use crate::{Datagram, DropReason, Wire};
use fairpace_units::{Duration, Instant};
use std::collections::VecDeque;

/// Places in [`Cold::low`].
pub(super) const OFFERED: usize = 0;
pub(super) const DELIVERED: usize = 1;

/// The state of what happens on few links, made when it happens there.
#[derive(Clone, Debug)]
pub(super) struct Cold<T> {
    pub(super) drops: [[Count; DropReason::COUNT]; 2],
    /// Packets of low priority that were offered and delivered.
    pub(super) low: [Count; 2],
    pub(super) marked: Count,
    /// Of a plain link: what its sums of time held when they were full.
    pub(super) full: Usage,
    /// Settled packets that will be lost, in order of departure, and why.
    pub(super) doomed: VecDeque<(DropReason, T)>,
    /// Settled packets that may overtake each other on the way.
    pub(super) overtaking: Wire<T>,
    pub(super) dropped: VecDeque<(Instant, DropReason, T)>,
    /// Scratch: those who went without being sent.
    pub(super) gone: Vec<(Instant, T)>,
    /// When a packet last joined a queue that chooses.
    pub(super) last_arrival: Instant,
}

impl<T> Default for Cold<T> {
    fn default() -> Self {
        Cold {
            drops: [[Count::default(); DropReason::COUNT]; 2],
            low: [Count::default(); 2],
            marked: Count::default(),
            full: Usage::default(),
            doomed: VecDeque::new(),
            overtaking: Wire::new(Duration::ZERO),
            dropped: VecDeque::new(),
            gone: Vec::new(),
            last_arrival: Instant::ZERO,
        }
    }
}

impl<T: Datagram> Cold<T> {
    /// Counts a packet that is dropped, and keeps it if somebody wants to take it.
    pub(super) fn drop(&mut self, now: Instant, reason: DropReason, packet: T, recording: bool) {
        self.drops[packet.class() as usize][reason as usize].add(packet.size());
        if recording {
            self.dropped.push_back((now, reason, packet));
        }
    }
}
