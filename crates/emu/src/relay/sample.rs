//! The state of a relay's path at one time.

use super::guest::Visit;
use super::news::News;
use fairpace_path::LinkCounters;
use fairpace_sim::FlowCounts;
use fairpace_units::{Bytes, Instant, Rate};

/// The newest of a list without end: where there are `most`, the older half goes.
#[derive(Debug)]
pub(super) struct Newest<T> {
    most: usize,
    items: Vec<T>,
}

impl<T> Newest<T> {
    pub(super) const fn new(most: usize) -> Self {
        Newest { most, items: Vec::new() }
    }

    pub(super) fn push(&mut self, item: T) {
        if self.items.len() >= self.most {
            self.items.drain(..self.most / 2);
        }
        self.items.push(item);
    }

    pub(super) fn into_vec(self) -> Vec<T> {
        self.items
    }
}

/// One direction of the path at one time.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct LinkSample {
    /// Everything counted since the path's beginning.
    pub counters: LinkCounters,
    /// Packets in the queue, the one in transmission included.
    pub queue: u64,
    /// Bytes in it.
    pub queue_bytes: Bytes,
    /// How fast packets leave now; `None` if unlimited.
    pub capacity: Option<Rate>,
}

/// One simulated flow at one time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlowSample {
    /// Its name.
    pub name: String,
    /// Everything counted since the path's beginning; `since` of an earlier sample gives the interval.
    pub counts: FlowCounts,
}

/// The path at one time.
#[derive(Clone, PartialEq, Debug)]
pub struct RelaySample {
    /// The path's time.
    pub at: Instant,
    /// Client to target.
    pub forward: LinkSample,
    /// Target to client.
    pub back: LinkSample,
    /// The simulated flows.
    pub flows: Vec<FlowSample>,
    /// Bytes of the clients' packets delivered to the target, headers included, since the beginning.
    pub relayed: Bytes,
    /// Of a cell.
    pub cell: CellSample,
}

/// The clients of a cell at one time.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct CellSample {
    /// Those that are there, in the order of their places.
    pub clients: Vec<Visit>,
    /// The news since the last sample: of each kind the last of each place.
    pub news: Vec<News>,
    /// Packets from addresses for which there was no place, since the beginning.
    pub refused: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_list_without_end_the_newest_are_kept() {
        let mut newest = Newest::new(10);
        let mut longest = 0;
        for n in 0..1_000 {
            newest.push(n);
            longest = longest.max(newest.items.len());
        }
        assert_eq!(longest, 10);
        let kept = newest.into_vec();
        assert!(kept.len() >= 5 && kept == (1_000 - kept.len()..1_000).collect::<Vec<_>>(), "{kept:?}");
    }
}
