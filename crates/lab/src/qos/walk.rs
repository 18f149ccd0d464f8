//! The recursion behind T_n(x): the joint distribution of the count so far, the channel's state and the try
//! that is next, slot by slot.
//!
//! For each count x and each try that is pending there is a vector over the channel's states. A slot of the
//! user moves what is due in it: the successes, with x + 1, to the user's next slot; the failures, with x,
//! to the slot after the silence. What is pending is kept per slot ahead, so that silent slots cost nothing.

use super::process::Process;
use std::collections::VecDeque;

/// What a slot adds to the count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rule {
    /// The share of the successes that count; the others happen, but add nothing.
    pub(super) successes: f64,
    /// Whether packets that are given up count, with the same share.
    pub(super) give_ups: bool,
    /// Only the realisations with a success in this slot are kept.
    pub(super) forced: bool,
}

impl Rule {
    /// Delivered packets.
    pub(super) const SUCCESSES: Rule = Rule { successes: 1.0, give_ups: false, forced: false };
    /// Packets that leave the queue.
    pub(super) const DEPARTURES: Rule = Rule { successes: 1.0, give_ups: true, forced: false };
    /// Nothing counts.
    pub(super) const UNCOUNTED: Rule = Rule { successes: 0.0, give_ups: false, forced: false };
}

/// Where the count begins: a place in the cycle of slots, and the tries that are pending there.
#[derive(Clone, Debug)]
pub(super) struct Seed {
    /// Place of the first slot in the cycle.
    pub(super) at: usize,
    /// Slots ahead, stage, mass by the channel's state in that slot.
    pub(super) pending: Vec<(usize, usize, Vec<f64>)>,
}

/// Below this at its ends, a distribution is cut: subnormal numbers would cost a hundred times as much.
const NOTHING: f64 = 1e-40;

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
    pending: VecDeque<Vec<Block>>,
    /// What is pending beyond the last slot: only its count matters.
    beyond: Vec<f64>,
    spare: Vec<Block>,
}

/// Mass by the channel's state and by count; zero outside `low .. high`.
#[derive(Clone, Debug, Default)]
struct Block {
    low: usize,
    high: usize,
    /// `most` numbers per state; none while there is nothing.
    mass: Vec<f64>,
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
            let most = walk.most;
            let block = walk.block(*ahead, *stage);
            block.reach(0, 1, mass.len(), most);
            for (i, m) in mass.iter().enumerate() {
                block.mass[i * most] += m;
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
            for (state, e) in block.mass.chunks(self.most).zip(&self.process.error) {
                sum += state[x] * of(stage, *e);
            }
        }
        sum
    }

    /// Adds the mass by count, over all states, to `counts`.
    pub(super) fn add_to(&self, counts: &mut [f64]) {
        for (c, m) in counts.iter_mut().zip(&self.beyond) {
            *c += m;
        }
        for block in self.pending.iter().flatten().filter(|b| b.low < b.high) {
            for state in block.mass.chunks(self.most) {
                for (c, m) in counts[block.low..block.high].iter_mut().zip(&state[block.low..block.high]) {
                    *c += m;
                }
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
        let before = self.total();
        self.beyond[..x].fill(0.0);
        for block in self.pending.iter_mut().flatten() {
            for state in block.mass.chunks_mut(self.most) {
                state[..x].fill(0.0);
            }
            block.low = block.low.max(x).min(block.high);
        }
        before - self.total()
    }

    /// The next slot.
    pub(super) fn step(&mut self, rule: Rule) {
        debug_assert!(self.left > 0, "more slots than were asked for");
        let due = self.pending.pop_front().unwrap_or_default();
        let turn = self.process.turn_at[self.at];
        self.at = (self.at + 1) % self.process.turn_at.len();
        self.left = self.left.saturating_sub(1);
        if rule.forced {
            self.pending.iter_mut().flatten().for_each(Block::clear);
            self.beyond.fill(0.0);
        }
        let Some(turn) = turn else {
            debug_assert!(due.iter().all(|b| b.low == b.high), "a try in a slot of somebody else");
            return;
        };
        self.turn(turn, &due, rule);
        self.spare.extend(due);
    }

    /// The tries `due` in the user's turn `turn`.
    fn turn(&mut self, turn: usize, due: &[Block], rule: Rule) {
        let process = self.process;
        let turn = &process.turns[turn];
        let mut next = self.fresh();
        for (stage, block) in due.iter().enumerate().filter(|(_, b)| b.low < b.high) {
            let counted = rule.successes;
            self.part(block, |e| (1.0 - e) * (1.0 - counted), |e| (1.0 - e) * counted, &mut next);
            if rule.forced {
                continue;
            }
            match process.after_failure(stage) {
                // A try after a failure is just as after a success: one product does for both.
                Some(to) if to == 0 && turn.retry == turn.next => self.part(block, |e| e, |_| 0.0, &mut next),
                Some(to) => {
                    let mut again = self.fresh();
                    self.part(block, |e| e, |_| 0.0, &mut again);
                    self.put(again, &turn.over_retry, turn.retry, to);
                }
                None if rule.give_ups => self.part(block, |e| e * (1.0 - counted), |e| e * counted, &mut next),
                None => self.part(block, |e| e, |_| 0.0, &mut next),
            }
        }
        self.put(next, &turn.over_next, turn.next, 0);
    }

    /// Adds to `to` the part `stays(e)` of `from` with its count, and the part `counts(e)` with one more.
    fn part(&self, from: &Block, stays: impl Fn(f64) -> f64, counts: impl Fn(f64) -> f64, to: &mut Block) {
        let (low, high) = (from.low, (from.high + 1).min(self.most));
        to.reach(low, high, self.process.error.len(), self.most);
        let states = from.mass.chunks(self.most).zip(to.mass.chunks_mut(self.most));
        for ((from_state, to_state), &e) in states.zip(&self.process.error) {
            let (a, b) = (stays(e), counts(e));
            if a > 0.0 {
                for (to, m) in to_state[low..from.high].iter_mut().zip(&from_state[low..from.high]) {
                    *to += a * m;
                }
            }
            if b > 0.0 && low + 1 < high {
                for (to, m) in to_state[low + 1..high].iter_mut().zip(&from_state[low..high - 1]) {
                    *to += b * m;
                }
            }
        }
    }

    /// Lets the channel move `over` the `ahead` slots until the try of `stage` that `from` becomes. The slot
    /// itself has been taken from the front.
    fn put(&mut self, mut from: Block, over: &super::matrix::Matrix, ahead: usize, stage: usize) {
        from.trim(self.most);
        if from.low == from.high {
            self.spare.push(from);
            return;
        }
        let (low, high, most) = (from.low, from.high, self.most);
        if ahead > self.left {
            for state in from.mass.chunks(most) {
                for (b, m) in self.beyond[low..high].iter_mut().zip(&state[low..high]) {
                    *b += m;
                }
            }
        } else {
            let states = self.process.error.len();
            let mut to = std::mem::take(self.block(ahead - 1, stage));
            if to.mass.is_empty() {
                to = self.fresh();
            }
            to.reach(low, high, states, most);
            multiply(&from.mass, over, &mut to.mass, most, low, high);
            *self.block(ahead - 1, stage) = to;
        }
        self.spare.push(from);
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

    fn fresh(&mut self) -> Block {
        let mut block = self.spare.pop().unwrap_or_default();
        block.clear();
        block
    }
}

impl Block {
    fn clear(&mut self) {
        self.mass.fill(0.0);
        (self.low, self.high) = (0, 0);
    }

    /// Makes room for counts `low .. high`.
    fn reach(&mut self, low: usize, high: usize, states: usize, most: usize) {
        if self.mass.is_empty() {
            self.mass.resize(states * most, 0.0);
        }
        if low >= high {
            return;
        }
        (self.low, self.high) =
            if self.low == self.high { (low, high) } else { (self.low.min(low), self.high.max(high)) };
    }

    /// Cuts off at both ends what is next to nothing.
    fn trim(&mut self, most: usize) {
        let at = |mass: &[f64], x: usize| mass.iter().skip(x).step_by(most).sum::<f64>();
        while self.low < self.high && at(&self.mass, self.low) < NOTHING {
            self.low += 1;
        }
        while self.low < self.high && at(&self.mass, self.high - 1) < NOTHING {
            self.high -= 1;
        }
    }
}

/// Adds `from` times the matrix to `to`, for counts `low .. high`. Eight counts at a time stay in registers.
fn multiply(from: &[f64], over: &super::matrix::Matrix, to: &mut [f64], most: usize, low: usize, high: usize) {
    const WIDE: usize = 8;
    let states = from.len() / most;
    let mut x = low;
    while x < high {
        let wide = WIDE.min(high - x);
        for j in 0..states {
            let mut sum = [0.0; WIDE];
            for i in 0..states {
                let p = over.row(i)[j];
                let from = &from[i * most + x..i * most + x + wide];
                if let Ok(from) = <&[f64; WIDE]>::try_from(from) {
                    for (s, m) in sum.iter_mut().zip(from) {
                        *s += p * m;
                    }
                } else {
                    for (s, m) in sum.iter_mut().zip(from) {
                        *s += p * m;
                    }
                }
            }
            for (to, s) in to[j * most + x..j * most + x + wide].iter_mut().zip(&sum) {
                *to += s;
            }
        }
        x += wide;
    }
}
