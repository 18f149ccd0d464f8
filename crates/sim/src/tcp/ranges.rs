//! A set of segment numbers, kept as disjoint half-open ranges in rising order.
//!
//! A receiver's out-of-order store and a sender's scoreboard are both such sets. There are as many
//! ranges as there are holes: few on most paths, and a hundred thousand after slow start has lost every second segment
//! of 10 Gbit/s × 100 ms. Hence a search tree: what is found, added or taken out costs the logarithm of their number,
//! wherever it is, where a sorted array moves all that lies behind. A flag per segment would cost a write per segment of
//! each SACK block on every ACK.

use std::collections::BTreeMap;

/// Half-open range of segment numbers, `start..end`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Range {
    /// First segment in the range.
    pub start: u32,
    /// First segment after the range.
    pub end: u32,
}

impl Range {
    /// Number of segments.
    pub const fn len(self) -> u32 {
        self.end - self.start
    }

    /// True for a range of no segments, which is how an unused SACK block looks.
    pub const fn is_empty(self) -> bool {
        self.start >= self.end
    }
}

/// Disjoint, non-adjacent ranges in rising order. One alone takes no memory of its own.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct RangeSet {
    /// The highest range, where most is added; empty if there is none.
    last: Range,
    /// Segments in all of them.
    len: u32,
    /// The end of each of the others, by its start.
    below: BTreeMap<u32, u32>,
}

impl RangeSet {
    /// The first bytes of it, which tell whether it is empty.
    pub(super) const HOT: usize = size_of::<Range>();

    /// Adds `add`, merging what it touches. Returns how many segments were not in the set before.
    pub fn insert(&mut self, add: Range) -> u32 {
        if add.is_empty() {
            return 0;
        }
        let news = if self.last.is_empty() {
            self.last = add;
            add.len()
        } else if add.start > self.last.end {
            self.below.insert(self.last.start, self.last.end);
            self.last = add;
            add.len()
        } else if add.start >= self.last.start {
            let news = add.end.saturating_sub(self.last.end);
            self.last.end += news;
            news
        } else {
            self.insert_below(add)
        };
        self.len += news;
        news
    }

    /// [`RangeSet::insert`] of what begins before the last range.
    fn insert_below(&mut self, add: Range) -> u32 {
        // The range that begins at or before ours may hold it already, or be the first that it touches.
        let (mut merged, mut had) = (add, 0);
        if let Some((&start, &end)) = self.below.range(..=add.start).next_back()
            && end >= add.start
        {
            if end >= add.end {
                return 0;
            }
            had = end - start;
            merged.start = start;
        }
        // All others begin within ours, or just behind it.
        while let Some((&start, &end)) = self.below.range(merged.start + 1..).next()
            && start <= add.end
        {
            self.below.remove(&start);
            had += end - start;
            merged.end = merged.end.max(end);
        }
        if self.last.start <= add.end {
            self.below.remove(&merged.start);
            had += self.last.len();
            merged.end = merged.end.max(self.last.end);
            self.last = merged;
        } else {
            self.below.insert(merged.start, merged.end);
        }
        merged.len() - had
    }

    /// Removes every segment below `seq`. `removed` is told of each range, or part of one, that goes.
    pub fn remove_below(&mut self, seq: u32, mut removed: impl FnMut(Range)) {
        while let Some(first) = self.below.first_entry()
            && *first.key() < seq
        {
            let (start, end) = first.remove_entry();
            let gone = Range { start, end: end.min(seq) };
            self.len -= gone.len();
            removed(gone);
            if seq < end {
                self.below.insert(seq, end);
            }
        }
        if !self.last.is_empty() && self.last.start < seq {
            let gone = Range { end: self.last.end.min(seq), ..self.last };
            self.len -= gone.len();
            removed(gone);
            self.last = if gone == self.last { Range::default() } else { Range { start: seq, ..self.last } };
        }
    }

    /// The range that contains `seq`.
    pub fn containing(&self, seq: u32) -> Option<Range> {
        let range = if seq >= self.last.start {
            self.last
        } else {
            let (&start, &end) = self.below.range(..=seq).next_back()?;
            Range { start, end }
        };
        (seq < range.end).then_some(range)
    }

    /// If the set begins at `seq`, takes that first range out and returns its end.
    pub fn take_prefix(&mut self, seq: u32) -> Option<u32> {
        let first = self.iter().next().filter(|first| first.start <= seq && seq < first.end)?;
        if self.below.pop_first().is_none() {
            self.last = Range::default();
        }
        self.len -= first.len();
        Some(first.end)
    }

    /// The ranges in rising order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Range> + '_ {
        let last = (!self.last.is_empty()).then_some(self.last);
        self.below.iter().map(|(&start, &end)| Range { start, end }).chain(last)
    }

    /// How many segments of `within` are in the set; the time is that of the ranges there.
    pub fn count(&self, within: Range) -> u32 {
        if within.is_empty() {
            return 0;
        }
        let first = self.containing(within.start).map_or(within.start, |r| r.start);
        let part = |start: u32, end: u32| end.min(within.end).saturating_sub(start.max(within.start));
        let below: u32 = self.below.range(first..within.end).map(|(&start, &end)| part(start, end)).sum();
        below + part(self.last.start, self.last.end)
    }

    /// Number of segments.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// True if the set holds nothing.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.last.is_empty()
    }

    /// One past the highest segment in the set.
    pub fn end(&self) -> Option<u32> {
        (!self.last.is_empty()).then_some(self.last.end)
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        *self = RangeSet::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_segment_that_closes_a_hole_joins_both_sides() {
        let mut set = RangeSet::default();
        assert_eq!(set.insert(Range { start: 2, end: 4 }), 2);
        assert_eq!(set.insert(Range { start: 5, end: 6 }), 1);
        assert_eq!(set.insert(Range { start: 4, end: 5 }), 1);
        assert_eq!(set.iter().collect::<Vec<_>>(), [Range { start: 2, end: 6 }]);
    }

    proptest! {
        // By definition: the same operations on a plain set of numbers.
        #[test]
        fn it_is_a_set_of_numbers(ops in prop::collection::vec((0_u32..60, 0_u32..9, 0_u32..4), 1..60)) {
            let (mut fast, mut plain) = (RangeSet::default(), BTreeSet::new());
            for (start, len, op) in ops {
                if op == 0 {
                    let mut gone = Vec::new();
                    fast.remove_below(start, |r| gone.extend(r.start..r.end));
                    prop_assert_eq!(gone, plain.range(..start).copied().collect::<Vec<_>>());
                    plain.retain(|s| *s >= start);
                } else if op == 1 {
                    let end = plain.first().map(|first| (*first..).find(|s| !plain.contains(s)).unwrap());
                    let end = end.filter(|end| plain.first().is_some_and(|first| (*first..*end).contains(&start)));
                    prop_assert_eq!(fast.take_prefix(start), end);
                    plain.retain(|s| end.is_none_or(|end| *s >= end));
                } else {
                    let before = plain.len();
                    plain.extend(start..start + len);
                    prop_assert_eq!(fast.insert(Range { start, end: start + len }) as usize, plain.len() - before);
                }
                let members: Vec<u32> = fast.iter().flat_map(|r| r.start..r.end).collect();
                prop_assert_eq!(members, plain.iter().copied().collect::<Vec<_>>());
                for seq in 0..70 {
                    prop_assert_eq!(fast.containing(seq).is_some(), plain.contains(&seq));
                }
                prop_assert_eq!(fast.len() as usize, plain.len());
                let within = Range { start, end: start + 3 * len };
                prop_assert_eq!(fast.count(within) as usize, plain.range(start..start + 3 * len).count());
                prop_assert_eq!(fast.end(), plain.last().map(|s| s + 1));
                let ranges: Vec<Range> = fast.iter().collect();
                prop_assert!(ranges.windows(2).all(|w| w[0].end < w[1].start));
            }
        }
    }
}
