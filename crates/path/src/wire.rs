//! A delay and nothing else: the smallest possible part, and the template for new ones.
//!
//! Every part has the same four questions: `push(now, packet)`, `next()`, `pop(now)` and its
//! counters. [`Wire`] answers the first three in one line each; [`Link`](crate::Link) ends in one.

use fairpace_units::{Duration, Instant};
use std::collections::VecDeque;

/// Hands over each packet a constant time after it was pushed.
///
/// ```
/// use fairpace_path::Wire;
/// use fairpace_units::{Duration, Instant};
/// let mut wire = Wire::new(Duration::from_millis(5));
/// wire.push(Instant::ZERO, "packet");
/// let exit = Instant::ZERO + Duration::from_millis(5);
/// assert_eq!(wire.next(), exit);
/// assert_eq!(wire.pop(exit), Some("packet"));
/// assert_eq!(wire.next(), Instant::NEVER);
/// ```
#[derive(Clone, Debug)]
pub struct Wire<T> {
    delay: Duration,
    /// In order of exit; those that leave at the same instant in order of entry.
    flying: VecDeque<(Instant, T)>,
}

impl<T> Wire<T> {
    /// A wire that long.
    pub const fn new(delay: Duration) -> Self {
        Wire { delay, flying: VecDeque::new() }
    }

    /// The packet enters now.
    pub fn push(&mut self, now: Instant, packet: T) {
        self.insert(now + self.delay, packet);
    }

    /// When the next packet comes out; never if there is none.
    #[inline]
    pub fn next(&self) -> Instant {
        self.flying.front().map_or(Instant::NEVER, |&(exit, _)| exit)
    }

    /// The next packet, if it is out by now.
    #[inline]
    pub fn pop(&mut self, now: Instant) -> Option<T> {
        if self.next() > now {
            return None;
        }
        self.flying.pop_front().map(|(_, packet)| packet)
    }

    /// The packets on the wire, in order of exit.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.flying.iter().map(|(_, packet)| packet)
    }

    /// How many packets are on the wire.
    pub fn len(&self) -> usize {
        self.flying.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.flying.is_empty()
    }

    /// The packet comes out at `exit`, before those that come out later and after all others.
    #[inline]
    pub(crate) fn insert(&mut self, exit: Instant, packet: T) {
        match self.flying.back() {
            Some(&(last, _)) if last > exit => {
                let place = self.flying.partition_point(|&(at, _)| at <= exit);
                self.flying.insert(place, (exit, packet));
            }
            _ => self.flying.push_back((exit, packet)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_out_at_the_same_instant_comes_out_in_order_of_entry() {
        let mut wire = Wire::new(Duration::ZERO);
        let at = Instant::from_nanos;
        for (exit, packet) in [(5, 'a'), (9, 'd'), (5, 'b'), (9, 'e'), (7, 'c')] {
            wire.insert(at(exit), packet);
        }
        assert_eq!(wire.len(), 5);
        assert_eq!(wire.pop(at(4)), None);
        let order: String = std::iter::from_fn(|| wire.pop(at(9))).collect();
        assert_eq!(order, "abcde");
        assert!(wire.is_empty());
    }
}
