//! A set of segment numbers, kept as disjoint half-open ranges in rising order.
//!
//! A receiver's out-of-order store and a sender's scoreboard are both such sets. There are as many
//! ranges as there are holes, which is few; a flag per segment would cost a write per segment of
//! each SACK block on every ACK.

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
    ranges: Vec<Range>,
}

impl RangeSet {
    /// Adds `add`, merging what it touches. Returns how many segments were not in the set before.
    pub fn insert(&mut self, add: Range) -> u32 {
        if add.is_empty() {
            return 0;
        }
        // Everything from the first range that ends at or after our start, to the last that begins
        // at or before our end, becomes one range.
        let first = self.ranges.partition_point(|r| r.end < add.start);
        let last = first + self.ranges[first..].partition_point(|r| r.start <= add.end);
        let Some(touched) = self.ranges.get(first..last).filter(|t| !t.is_empty()) else {
            self.ranges.insert(first, add);
            return add.len();
        };
        let had: u32 = touched.iter().map(|r| r.len()).sum();
        let merged = Range { start: touched[0].start.min(add.start), end: touched[touched.len() - 1].end.max(add.end) };
        self.ranges[first] = merged;
        self.ranges.drain(first + 1..last);
        merged.len() - had
    }

    /// Removes every segment below `seq`.
    pub fn remove_below(&mut self, seq: u32) {
        let whole = self.ranges.partition_point(|r| r.end <= seq);
        self.ranges.drain(..whole);
        if let Some(first) = self.ranges.first_mut() {
            first.start = first.start.max(seq);
        }
    }

    /// The range that contains `seq`.
    pub fn containing(&self, seq: u32) -> Option<Range> {
        let i = self.ranges.partition_point(|r| r.end <= seq);
        self.ranges.get(i).copied().filter(|r| r.start <= seq)
    }

    /// If the set begins at `seq`, takes that first range out and returns its end.
    pub fn take_prefix(&mut self, seq: u32) -> Option<u32> {
        let first = *self.ranges.first()?;
        (first.start <= seq && seq < first.end).then(|| {
            self.ranges.remove(0);
            first.end
        })
    }

    /// The ranges in rising order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Range> + '_ {
        self.ranges.iter().copied()
    }

    /// True if the set holds nothing.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// One past the highest segment in the set.
    pub fn end(&self) -> Option<u32> {
        self.ranges.last().map(|r| r.end)
    }

    /// Forgets everything, keeps the memory.
    pub fn clear(&mut self) {
        self.ranges.clear();
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
                    fast.remove_below(start);
                    plain.retain(|s| *s >= start);
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
                let ranges: Vec<Range> = fast.iter().collect();
                prop_assert!(ranges.windows(2).all(|w| w[0].end < w[1].start));
            }
        }
    }
}
