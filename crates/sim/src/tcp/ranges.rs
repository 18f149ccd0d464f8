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

/// Disjoint, non-adjacent ranges in rising order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RangeSet {
    /// The end of each range, by its start.
    ranges: BTreeMap<u32, u32>,
    /// Segments in all of them.
    len: u32,
}

impl RangeSet {
    /// Adds `add`, merging what it touches. Returns how many segments were not in the set before.
    pub fn insert(&mut self, add: Range) -> u32 {
        if add.is_empty() {
            return 0;
        }
        // Most often it lies at the upper end: no search.
        match self.ranges.last_entry() {
            Some(mut last) if *last.key() <= add.start && add.start <= *last.get() => {
                let news = add.end.saturating_sub(*last.get());
                *last.get_mut() += news;
                self.len += news;
                return news;
            }
            Some(last) if add.start <= *last.get() => {}
            _ => {
                self.ranges.insert(add.start, add.end);
                self.len += add.len();
                return add.len();
            }
        }
        // The range that begins at or before ours may hold it already, or be the first that it touches.
        let mut merged = add;
        let mut had = 0;
        if let Some((&start, end)) = self.ranges.range_mut(..=add.start).next_back()
            && *end >= add.start
        {
            if *end >= add.end {
                return 0;
            }
            had = *end - start;
            merged.start = start;
        }
        // All others begin within ours, or just behind it.
        while let Some((&start, &end)) = self.ranges.range(merged.start + 1..).next()
            && start <= add.end
        {
            self.ranges.remove(&start);
            had += end - start;
            merged.end = merged.end.max(end);
        }
        self.ranges.insert(merged.start, merged.end);
        let news = merged.len() - had;
        self.len += news;
        news
    }

    /// Removes every segment below `seq`. `removed` is told of each range, or part of one, that goes.
    pub fn remove_below(&mut self, seq: u32, mut removed: impl FnMut(Range)) {
        while let Some(first) = self.ranges.first_entry()
            && *first.key() < seq
        {
            let (start, end) = first.remove_entry();
            let gone = Range { start, end: end.min(seq) };
            self.len -= gone.len();
            removed(gone);
            if seq < end {
                self.ranges.insert(seq, end);
            }
        }
    }

    /// The range that contains `seq`.
    pub fn containing(&self, seq: u32) -> Option<Range> {
        let (&start, &end) = self.ranges.range(..=seq).next_back()?;
        (seq < end).then_some(Range { start, end })
    }

    /// If the set begins at `seq`, takes that first range out and returns its end.
    pub fn take_prefix(&mut self, seq: u32) -> Option<u32> {
        let first = self.ranges.first_entry()?;
        let (start, end) = (*first.key(), *first.get());
        (start <= seq && seq < end).then(|| {
            first.remove();
            self.len -= end - start;
            end
        })
    }

    /// The ranges in rising order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Range> + '_ {
        self.ranges.iter().map(|(&start, &end)| Range { start, end })
    }

    /// How many segments of `within` are in the set; the time is that of the ranges there.
    pub fn count(&self, within: Range) -> u32 {
        if within.is_empty() {
            return 0;
        }
        let first = self.containing(within.start).map_or(within.start, |r| r.start);
        let ranges = self.ranges.range(first..within.end);
        ranges.map(|(&start, &end)| end.min(within.end) - start.max(within.start)).sum()
    }

    /// Number of segments.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// True if the set holds nothing.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// One past the highest segment in the set.
    pub fn end(&self) -> Option<u32> {
        self.ranges.last_key_value().map(|(_, &end)| end)
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.ranges.clear();
        self.len = 0;
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
