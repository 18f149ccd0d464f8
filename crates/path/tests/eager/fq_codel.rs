//! FQ-CoDel by RFC 8290 §4: one common list of packets, two lists of queues.

use super::codel::{Chosen, CoDel};
use fairpace_path::{FqCoDelParams, Plain};
use fairpace_units::RandomStream;
use std::collections::BTreeMap;

pub(crate) struct FqCoDel {
    params: FqCoDelParams,
    perturbation: u64,
    codel: BTreeMap<u64, CoDel>,
    credits: BTreeMap<u64, i64>,
    new: Vec<u64>,
    old: Vec<u64>,
}

impl FqCoDel {
    pub(crate) fn new(params: FqCoDelParams, mut random: RandomStream) -> Self {
        let perturbation = random.bits();
        let (codel, credits) = (BTreeMap::new(), BTreeMap::new());
        FqCoDel { params, perturbation, codel, credits, new: Vec::new(), old: Vec::new() }
    }

    /// SplitMix64 of flow and perturbation, spread evenly over the queues.
    fn queue_of(&self, flow: u64) -> u64 {
        let mut z = (flow ^ self.perturbation).wrapping_add(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        (u128::from(z) * u128::from(self.params.flows) / (1 << 64)) as u64
    }

    pub(crate) fn on_arrival(&mut self, flow: u64) {
        let queue = self.queue_of(flow);
        if !self.new.contains(&queue) && !self.old.contains(&queue) {
            self.new.push(queue);
            self.credits.insert(queue, self.params.quantum.get() as i64);
        }
    }

    pub(crate) fn found_nobody(&mut self) {
        let chosen = self.dequeue(&mut Vec::new(), 0);
        assert!(chosen.packet.is_none() && self.new.is_empty() && self.old.is_empty());
    }

    /// Half the packets of the queue with the most bytes, from its head.
    pub(crate) fn victims(&self, packets: &[(u64, Plain)]) -> Vec<u64> {
        let of = |queue: u64| packets.iter().map(|(_, p)| p).filter(move |p| self.queue_of(p.flow) == queue);
        let bytes = |queue: u64| of(queue).map(|p| p.size.get()).sum::<u64>();
        let most = self.new.iter().chain(&self.old).map(|&q| bytes(q)).max().unwrap();
        let longest = *self.new.iter().chain(&self.old).find(|&&q| bytes(q) == most).unwrap();
        let count = (of(longest).count() / 2).clamp(1, 64);
        of(longest).take(count).map(|p| p.id).collect()
    }

    pub(crate) fn dequeue(&mut self, packets: &mut Vec<(u64, Plain)>, now: u64) -> Chosen {
        let mut dropped = Vec::new();
        loop {
            let from_new = !self.new.is_empty();
            let list = if from_new { &mut self.new } else { &mut self.old };
            if list.is_empty() {
                return Chosen { dropped, ..Chosen::default() };
            }
            let queue = list[0];
            if self.credits[&queue] <= 0 {
                list.remove(0);
                self.old.push(queue);
                *self.credits.get_mut(&queue).unwrap() += self.params.quantum.get() as i64;
                continue;
            }
            let mut codel = self.codel.remove(&queue).unwrap_or_else(|| CoDel::new(self.params.codel));
            let mut chosen = codel.dequeue(packets, |p| self.queue_of(p.flow) == queue, now);
            self.codel.insert(queue, codel);
            dropped.append(&mut chosen.dropped);
            if let Some(packet) = chosen.packet {
                *self.credits.get_mut(&queue).unwrap() -= packet.size.get() as i64;
                return Chosen { dropped, ..chosen };
            }
            let list = if from_new { &mut self.new } else { &mut self.old };
            list.remove(0);
            if from_new {
                self.old.push(queue);
            }
        }
    }
}
