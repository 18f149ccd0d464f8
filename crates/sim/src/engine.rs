//! The pending-event set: a binary heap of (time, insertion), with replace-top.
//!
//! It holds one entry per link that has something in flight and one per running timer, not one per
//! packet: a few hundred for the busiest of our scenarios. At that size a plain heap whose top is
//! replaced in place costs less than a timing wheel or a wider heap; `examples/event_set.rs`
//! measures all three, `docs/sim/performance.md` has the numbers.

use fairpace_units::Instant;

/// One pending event. Events at equal times come in the order in which they were pushed.
#[derive(Clone, Copy, Debug)]
struct Entry {
    at: Instant,
    order: u64,
    target: u32,
}

impl Entry {
    #[inline]
    fn key(&self) -> u128 {
        // One comparison of two words instead of two with a branch between.
        (u128::from(self.at.as_nanos()) << 64) | u128::from(self.order)
    }
}

/// Pending events, earliest first, in a total order.
#[derive(Clone, Debug, Default)]
pub struct EventSet {
    heap: Vec<Entry>,
    pushed: u64,
    max_len: usize,
}

impl EventSet {
    /// Adds an event.
    #[inline]
    pub fn push(&mut self, at: Instant, target: u32) {
        let entry = self.entry(at, target);
        self.heap.push(entry);
        self.max_len = self.max_len.max(self.heap.len());
        self.sift_up(self.heap.len() - 1, entry);
    }

    /// The earliest event.
    #[inline]
    pub fn peek(&self) -> Option<(Instant, u32)> {
        self.heap.first().map(|e| (e.at, e.target))
    }

    /// Removes the earliest event.
    #[inline]
    pub fn pop(&mut self) {
        if let Some(last) = self.heap.pop()
            && !self.heap.is_empty()
        {
            self.sift_down(last);
        }
    }

    /// Removes the earliest event and adds another, in one pass.
    #[inline]
    pub fn replace_top(&mut self, at: Instant, target: u32) {
        let entry = self.entry(at, target);
        self.sift_down(entry);
    }

    /// Events pending now.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// True if nothing is pending.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// The most events ever pending.
    pub fn max_len(&self) -> usize {
        self.max_len
    }

    #[inline]
    fn entry(&mut self, at: Instant, target: u32) -> Entry {
        self.pushed += 1;
        Entry { at, order: self.pushed, target }
    }

    #[inline]
    fn sift_up(&mut self, mut hole: usize, entry: Entry) {
        let key = entry.key();
        while hole > 0 {
            let parent = (hole - 1) / 2;
            if self.heap[parent].key() <= key {
                break;
            }
            self.heap[hole] = self.heap[parent];
            hole = parent;
        }
        self.heap[hole] = entry;
    }

    /// Puts `entry` at the top and lets it sink.
    #[inline]
    fn sift_down(&mut self, entry: Entry) {
        let key = entry.key();
        let heap = &mut self.heap[..];
        let mut hole = 0;
        loop {
            let left = 2 * hole + 1;
            if left >= heap.len() {
                break;
            }
            let right = left + 1;
            let child = left + usize::from(right < heap.len() && heap[right].key() < heap[left].key());
            if key <= heap[child].key() {
                break;
            }
            heap[hole] = heap[child];
            hole = child;
        }
        heap[hole] = entry;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairpace_units::RandomStream;

    #[test]
    fn equal_times_come_out_in_the_order_they_went_in() {
        let mut set = EventSet::default();
        for target in 0..100 {
            set.push(Instant::from_nanos(7), target);
        }
        for target in 0..100 {
            assert_eq!(set.peek(), Some((Instant::from_nanos(7), target)));
            set.pop();
        }
        assert!(set.is_empty());
    }

    /// By definition: a sorted list.
    #[test]
    fn it_gives_what_a_sorted_list_gives() {
        let mut random = RandomStream::named(1, "events");
        let mut set = EventSet::default();
        let mut list: Vec<(u64, u64, u32)> = Vec::new();
        let mut order = 0;
        for _ in 0..20_000 {
            let (at, target) = (random.below(50), random.below(1_000) as u32);
            let replace = random.below(3) == 0 && !list.is_empty();
            if replace || (random.below(2) == 0 && !list.is_empty()) {
                list.sort_unstable();
                let (at, _, target) = list.remove(0);
                assert_eq!(set.peek(), Some((Instant::from_nanos(at), target)));
                if !replace {
                    set.pop();
                    continue;
                }
            }
            order += 1;
            list.push((at, order, target));
            if replace {
                set.replace_top(Instant::from_nanos(at), target);
            } else {
                set.push(Instant::from_nanos(at), target);
            }
            assert_eq!(set.len(), list.len());
        }
    }
}
