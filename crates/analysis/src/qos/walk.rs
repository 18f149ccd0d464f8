//! The recursion behind T_n(x): the joint distribution of the count so far, the channel's state and the try
//! that is next, slot by slot.
//!
//! For each count x and each try that is pending there is a vector over the channel's states. A slot of the
//! user moves what is due in it: the successes, with x + 1, to the user's next slot; the failures, with x,
//! to the slot after the silence. The pending weight is kept per slot ahead, so that silent slots cost nothing.

use super::matrix::{Group, LANES, Matrix, groups};
use super::process::{Process, Seed};
use std::collections::VecDeque;

/// The addition of one slot to the count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rule {
    /// Successes count.
    pub(super) successes: bool,
    /// Packets that are given up count.
    pub(super) give_ups: bool,
    /// Only the realisations with a success in this slot are kept.
    forced: bool,
}

impl Rule {
    /// Delivered packets.
    pub(super) const SUCCESSES: Rule = Rule { successes: true, give_ups: false, forced: false };
    /// Packets that leave the queue.
    pub(super) const DEPARTURES: Rule = Rule { successes: true, give_ups: true, forced: false };
    /// Nothing counts.
    pub(super) const UNCOUNTED: Rule = Rule { successes: false, give_ups: false, forced: false };
    /// Nothing counts, and all but a success is ruled out.
    pub(super) const FORCED: Rule = Rule { successes: false, give_ups: false, forced: true };
}

/// Below this at its ends, a distribution is cut: subnormal numbers would cost a hundred times as much.
const NOTHING: f64 = 1e-40;

const ZERO: Group = [0.0; LANES];

/// The recursion. Counts from `most` on are dropped.
pub(super) struct Walk<'a> {
    process: &'a Process,
    /// Slots still to come.
    left: usize,
    /// Place in the cycle of the next slot.
    at: usize,
    /// How many counts are kept: x = 0 .. most.
    most: usize,
    /// By slots ahead, by stage.
    pub(super) pending: VecDeque<Vec<Block>>,
    /// The weight pending beyond the last slot: only its count matters.
    pub(super) beyond: Vec<f64>,
    spare: Vec<Block>,
}

/// Mass by count and by the channel's state; zero outside `low .. high`.
#[derive(Clone, Debug, Default)]
pub(super) struct Block {
    pub(super) low: usize,
    pub(super) high: usize,
    /// The states of each count below `most`; empty before the first use.
    pub(super) mass: Vec<Group>,
}

impl<'a> Walk<'a> {
    /// `slots` slots from `seed` on, counts below `most` (at least 1) of them.
    pub(super) fn new(process: &'a Process, seed: &Seed, slots: usize, most: usize) -> Walk<'a> {
        let mut walk = Walk {
            process,
            left: slots,
            at: seed.at,
            most,
            pending: VecDeque::new(),
            beyond: vec![0.0; most],
            spare: Vec::new(),
        };
        for (ahead, stage, mass) in &seed.pending {
            if *ahead >= slots {
                walk.beyond[0] += mass.iter().sum::<f64>();
                continue;
            }
            let size = walk.size();
            let block = walk.block(*ahead, *stage);
            block.reach(0, 1, size);
            for (m, add) in block.mass.as_flattened_mut().iter_mut().zip(mass) {
                *m += add;
            }
        }
        walk
    }

    /// The mass of realisations with count `x` whose next slot is a success.
    pub(super) fn success_at(&self, x: usize) -> f64 {
        self.outcome_at(x, |_, e| 1.0 - e)
    }

    /// The mass of realisations with count `x` in whose next slot a packet is given up.
    pub(super) fn give_up_at(&self, x: usize) -> f64 {
        self.outcome_at(x, |stage, e| if self.process.after_failure(stage).is_none() { e } else { 0.0 })
    }

    fn outcome_at(&self, x: usize, of: impl Fn(usize, f64) -> f64) -> f64 {
        let due = self.pending.front().into_iter().flatten().enumerate();
        let mut sum = 0.0;
        for (stage, block) in due.filter(|(_, b)| (b.low..b.high).contains(&x)) {
            let states = block.mass[x * self.width()..].as_flattened().iter().zip(&self.process.error);
            sum += states.map(|(m, e)| m * of(stage, *e)).sum::<f64>();
        }
        sum
    }

    /// Adds the mass by count, over all states, to `counts`.
    pub(super) fn add_to(&self, counts: &mut [f64]) {
        for (c, m) in counts.iter_mut().zip(&self.beyond) {
            *c += m;
        }
        for block in self.pending.iter().flatten() {
            let counts = counts[block.low..].iter_mut();
            for (c, states) in counts.zip(block.counts(self.width())) {
                *c += sum(states);
            }
        }
    }

    /// The mass of all counts that are kept.
    pub(super) fn total(&self) -> f64 {
        let mut counts = vec![0.0; self.most];
        self.add_to(&mut counts);
        counts.iter().sum()
    }

    /// Drops all realisations with a count below `x`, and says how much that is.
    pub(super) fn drop_below(&mut self, x: usize) -> f64 {
        let x = x.min(self.most);
        let mut dropped: f64 = self.beyond[..x].iter().sum();
        self.beyond[..x].fill(0.0);
        let width = self.width();
        for block in self.pending.iter_mut().flatten() {
            let end = x.clamp(block.low, block.high);
            let below = &mut block.mass[block.low * width..end * width];
            dropped += sum(below);
            below.fill(ZERO);
            block.low = end;
        }
        dropped
    }

    /// Renames the counts: what has count x has from now on one of `names(x)`, with those probabilities. Counts below
    /// `most` are kept.
    pub(super) fn recount(&mut self, most: usize, names: impl Fn(usize) -> [(usize, f64); 2]) {
        let width = self.width();
        let mut beyond = vec![0.0; most];
        let named = |x| names(x).into_iter().filter(|(to, p)| *p > 0.0 && *to < most);
        for (x, m) in self.beyond.iter().enumerate() {
            named(x).for_each(|(to, p)| beyond[to] += m * p);
        }
        for block in self.pending.iter_mut().flatten() {
            let mut new = Block::default();
            for (x, from) in (block.low..block.high).zip(block.counts(width)) {
                for (to, p) in named(x) {
                    new.reach(to, to + 1, most * width);
                    let into = new.mass[to * width..(to + 1) * width].as_flattened_mut();
                    into.iter_mut().zip(from.as_flattened()).for_each(|(to, m)| *to += m * p);
                }
            }
            *block = new;
        }
        (self.most, self.beyond) = (most, beyond);
        self.spare.clear();
    }

    /// The next slot.
    pub(super) fn step(&mut self, rule: Rule) {
        debug_assert!(self.left > 0, "more slots than were asked for");
        let width = self.width();
        let mut due = self.pending.pop_front().unwrap_or_default();
        due.iter_mut().for_each(|b| b.trim(width));
        let turn = self.process.turn_at[self.at];
        self.at = (self.at + 1) % self.process.turn_at.len();
        self.left = self.left.saturating_sub(1);
        if rule.forced {
            self.pending.iter_mut().flatten().for_each(|b| b.clear(width));
            self.beyond.fill(0.0);
        }
        match turn {
            Some(turn) => self.turn(turn, &due, rule),
            None => debug_assert!(due.iter().all(|b| b.low == b.high), "a try in a slot of somebody else"),
        }
        for mut block in due {
            block.clear(width);
            self.spare.push(block);
        }
    }

    /// The tries `due` in the user's turn `turn`.
    fn turn(&mut self, turn: usize, due: &[Block], rule: Rule) {
        let process = self.process;
        let turn = &process.turns[turn];
        for (stage, block) in due.iter().enumerate().filter(|(_, b)| b.low < b.high) {
            // The failures that go to the same slot as the successes share one product with them.
            let with_next = match process.after_failure(stage) {
                _ if rule.forced => None,
                None => Some(rule.give_ups),
                // The next try is just as after a success.
                Some(0) if turn.retry == turn.next => Some(false),
                Some(to) => {
                    self.put(block, |e| (e, 0.0), &turn.over_retry, turn.retry, to);
                    None
                }
            };
            let either = |mass: f64, counts: bool| if counts { (0.0, mass) } else { (mass, 0.0) };
            let weights = |e: f64| {
                let good = either(1.0 - e, rule.successes);
                let bad = with_next.map_or((0.0, 0.0), |counts| either(e, counts));
                (good.0 + bad.0, good.1 + bad.1)
            };
            self.put(block, weights, &turn.over_next, turn.next, 0);
        }
    }

    /// Of the tries `from`, the part `weights(e).0` with its count and the part `weights(e).1` with one more, becomes
    /// tries of `stage` in `ahead` slots. Until then the channel moves `over` them. (This slot has been taken from
    /// the front.)
    fn put(&mut self, from: &Block, weights: impl Fn(f64) -> (f64, f64), over: &Matrix, ahead: usize, stage: usize) {
        let (width, size) = (self.width(), self.size());
        let (stays, counts): (Vec<f64>, Vec<f64>) = self.process.error.iter().map(|e| weights(*e)).unzip();
        let (stays, counts) = (groups(&stays), groups(&counts));
        let zero = vec![ZERO; width];
        let mut part = zero.clone();
        let weigh = |(same, less): (&[Group], &[Group]), part: &mut [Group]| {
            for ((((p, m), s), l), c) in part.iter_mut().zip(same).zip(&stays).zip(less).zip(&counts) {
                for i in 0..LANES {
                    p[i] = m[i] * s[i] + l[i] * c[i];
                }
            }
        };
        // Each count's masses beside those of one less.
        let same = from.counts(width).chain([&zero[..]]);
        let masses = same.zip([&zero[..]].into_iter().chain(from.counts(width)));
        if ahead > self.left {
            for (b, masses) in self.beyond[from.low..].iter_mut().zip(masses) {
                weigh(masses, &mut part);
                *b += sum(&part);
            }
            return;
        }
        let spare = self.spare.pop().unwrap_or_default();
        let most = self.most;
        let to = self.block(ahead - 1, stage);
        let unused = if to.mass.is_empty() { std::mem::replace(to, spare) } else { spare };
        to.reach(from.low, (from.high + 1).min(most), size);
        for (to, masses) in to.mass[from.low * width..].chunks_exact_mut(width).zip(masses) {
            weigh(masses, &mut part);
            over.add_product(&part, to);
        }
        if !unused.mass.is_empty() {
            self.spare.push(unused);
        }
    }

    fn block(&mut self, ahead: usize, stage: usize) -> &mut Block {
        if self.pending.len() <= ahead {
            self.pending.resize_with(ahead + 1, Vec::new);
        }
        let stages = &mut self.pending[ahead];
        if stages.len() <= stage {
            stages.resize_with(stage + 1, Block::default);
        }
        &mut stages[stage]
    }

    /// Groups per count.
    pub(super) fn width(&self) -> usize {
        self.process.error.len().div_ceil(LANES)
    }

    /// Groups per block.
    fn size(&self) -> usize {
        self.width() * self.most
    }
}

impl Block {
    /// The states of each count from `low` to below `high`.
    pub(super) fn counts(&self, width: usize) -> std::slice::ChunksExact<'_, Group> {
        self.mass[self.low * width..self.high * width].chunks_exact(width)
    }

    fn clear(&mut self, width: usize) {
        self.mass[self.low * width..self.high * width].fill(ZERO);
        (self.low, self.high) = (0, 0);
    }

    /// Makes room for counts `low .. high`.
    pub(super) fn reach(&mut self, low: usize, high: usize, size: usize) {
        self.mass.resize(size, ZERO);
        (self.low, self.high) =
            if self.low == self.high { (low, high) } else { (self.low.min(low), self.high.max(high)) };
    }

    /// Cuts off at both ends what is next to nothing.
    pub(super) fn trim(&mut self, width: usize) {
        let nothing = |states: &mut [Group]| {
            let nothing = sum(states) < NOTHING;
            if nothing {
                states.fill(ZERO);
            }
            nothing
        };
        while self.low < self.high && nothing(&mut self.mass[self.low * width..(self.low + 1) * width]) {
            self.low += 1;
        }
        while self.low < self.high && nothing(&mut self.mass[(self.high - 1) * width..self.high * width]) {
            self.high -= 1;
        }
    }
}

fn sum(states: &[Group]) -> f64 {
    states.as_flattened().iter().sum()
}
