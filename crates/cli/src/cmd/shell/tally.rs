//! The fates of a shell's packets, where the path is more than a link each way.

use crate::cmd::relay::Fates;
use fairpace_path::{Count, DropReason};
use fairpace_sim::{Direction, Observer, PacketEvent, PacketFate};
use fairpace_units::{Bytes, Packets};
use std::sync::{Arc, Mutex, PoisonError};

/// Counts both ways: who looks has the same numbers as who notes.
#[derive(Clone, Default)]
pub(super) struct Tally(Arc<Mutex<[Fates; 2]>>);

impl Tally {
    /// Who is to be told of each packet.
    pub(super) fn observer(&self) -> Box<dyn Observer> {
        Box::new(self.clone())
    }

    /// Up and down: the packets' fates, and how many have none yet.
    pub(super) fn counters(&self) -> [(Fates, u64); 2] {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).map(|all| {
            let dropped: Packets = all.drops.iter().map(|dropped| dropped.packets).sum();
            (all, (all.offered.packets - all.delivered.packets - dropped).get())
        })
    }
}

impl Observer for Tally {
    fn on_packet(&mut self, event: &PacketEvent) {
        let mut both = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let way = &mut both[match event.packet.direction {
            Direction::Forward => 0,
            Direction::Back => 1,
        }];
        let count: &mut Count = match event.fate {
            PacketFate::Sent => &mut way.offered,
            PacketFate::Received => &mut way.delivered,
            PacketFate::Dropped { reason, .. } => {
                let Some(dropped) = DropReason::ALL.iter().position(|r| *r == reason) else { return };
                &mut way.drops[dropped]
            }
        };
        count.packets += Packets::new(1);
        count.bytes += Bytes::new(u64::from(event.packet.size));
    }
}
