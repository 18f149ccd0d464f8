//! The recursion from the other end: what the remaining slots add to the count, by the try that they begin with.
//!
//! A distribution of n slots is put together from the first half ([`Walk`]) and the second half: half of the
//! work, as the work grows with the square of the slots.

use super::matrix::{Group, LANES, Matrix, groups};
use super::process::Process;
use super::walk::{Block, Rule, Walk};
use std::collections::VecDeque;

/// For each of the next slots and each stage: by count and by the channel's state in that slot, the probability that
/// exactly so many are counted from a try there on until the last slot. None in slots of others.
pub(super) struct Rest(VecDeque<Option<Vec<Block>>>);

impl Rest {
    /// Of the slots `from .. to`, slot 0 being at place `at` of the cycle.
    pub(super) fn new(process: &Process, at: usize, from: usize, to: usize, rule: Rule) -> Rest {
        let width = process.error.len().div_ceil(LANES);
        let backward: Vec<(Matrix, Matrix)> =
            process.turns.iter().map(|t| (t.over_next.transposed(), t.over_retry.transposed())).collect();
        let longest = process.turns.iter().map(|t| t.retry).max().unwrap_or(1);
        // After the last slot nothing is added.
        let mut nothing = Block::default();
        nothing.reach(0, 1, width);
        nothing.mass.fill([1.0; LANES]);
        let mut rest: VecDeque<Option<Vec<Block>>> = VecDeque::new();
        for slot in (from..to).rev() {
            let turn = process.turn_at[(at + slot) % process.turn_at.len()];
            let tries = turn.map(|turn| {
                let (over_next, over_retry) = &backward[turn];
                let turn = &process.turns[turn];
                let ahead = |slots: usize, stage: usize| {
                    let block = rest.get(slots - 1).and_then(Option::as_ref).and_then(|stages| stages.get(stage));
                    block.unwrap_or(&nothing)
                };
                let next = before(ahead(turn.next, 0), over_next, width);
                let stages = (0..process.stages).map(|stage| {
                    let again = match process.after_failure(stage) {
                        Some(0) if turn.retry == turn.next => None,
                        Some(to) => Some(before(ahead(turn.retry, to), over_retry, width)),
                        None => None,
                    };
                    let given_up_counts = rule.give_ups && process.after_failure(stage).is_none();
                    let part = |e: f64, good: bool, bad: bool| {
                        (if good { 1.0 - e } else { 0.0 }) + if bad && again.is_none() { e } else { 0.0 }
                    };
                    let weights = |good: bool, bad: bool| -> Vec<Group> {
                        groups(&process.error.iter().map(|e| part(*e, good, bad)).collect::<Vec<_>>())
                    };
                    let size = (to - slot + 1) * width;
                    let mut block = Block::default();
                    add(&next, &weights(!rule.successes, !given_up_counts), 0, size, width, &mut block);
                    add(&next, &weights(rule.successes, given_up_counts), 1, size, width, &mut block);
                    if let Some(again) = &again {
                        add(again, &groups(&process.error), 0, size, width, &mut block);
                    }
                    block.trim(width);
                    block
                });
                stages.collect()
            });
            rest.push_front(tries);
            rest.truncate(longest);
        }
        Rest(rest)
    }

    /// Adds the distribution of the whole: `first` up to the first of these slots, and from there on this.
    pub(super) fn add_to(&self, first: &Walk, counts: &mut [f64]) {
        let width = first.width();
        for (count, m) in counts.iter_mut().zip(&first.beyond) {
            *count += m;
        }
        for (tries, rest) in first.pending.iter().zip(&self.0) {
            for (block, rest) in tries.iter().zip(rest.iter().flatten()) {
                // State by state: a polynomial product.
                for i in 0..width * LANES {
                    let of = |block: &Block| -> Vec<f64> { block.counts(width).map(|s| s.as_flattened()[i]).collect() };
                    let (mass, rest_mass) = (of(block), of(rest));
                    for (x, m) in (block.low..).zip(mass).filter(|(_, m)| *m > 0.0) {
                        for (count, r) in counts[x + rest.low..].iter_mut().zip(&rest_mass) {
                            *count += m * r;
                        }
                    }
                }
            }
        }
    }
}

/// The channel moves before `after` begins.
fn before(after: &Block, over: &Matrix, width: usize) -> Block {
    let mut block = Block::default();
    block.reach(after.low, after.high, after.high * width);
    let into = block.mass[after.low * width..].chunks_exact_mut(width);
    for (to, from) in into.zip(after.counts(width)) {
        over.add_product(from, to);
    }
    block
}

/// Adds `from`, weighed by state, with `more` on top of its counts.
fn add(from: &Block, weights: &[Group], more: usize, size: usize, width: usize, to: &mut Block) {
    if weights.iter().all(|w| *w == [0.0; LANES]) {
        return;
    }
    to.reach(from.low + more, from.high + more, size);
    let into = to.mass[(from.low + more) * width..].chunks_exact_mut(width);
    for (to, from) in into.zip(from.counts(width)) {
        for ((to, from), w) in to.iter_mut().zip(from).zip(weights) {
            for i in 0..LANES {
                to[i] += from[i] * w[i];
            }
        }
    }
}
