//! The notes that a network takes beside what its loop needs.

use fairpace_path::LinkCounters;
use fairpace_units::{Duration, Instant};

use crate::delay_histogram::DelayHistogram;

/// The records of a medium beside its `Slot`.
pub(super) struct Notes {
    /// A link's name; of other media, the word that their ports are numbered with.
    pub(super) name: Box<str>,
    /// The number of its port 0 in reports: see [`Network::link_names`](super::Network::link_names).
    pub(super) first_port: u32,
    /// Of a link; `None` while these are zero.
    pub(super) at_warmup: Option<Box<LinkCounters>>,
}

/// Flows that are reported together.
pub(super) struct Group {
    pub(super) name: String,
    pub(super) flows: u32,
    /// The distribution of its delays is noted here as well as, coarsely, at each of its many flows; if not, it is added up in
    /// the end, as all else of them.
    pub(super) shared: bool,
    pub(super) owd: DelayHistogram,
    pub(super) e2ed: DelayHistogram,
    pub(super) opening: DelayHistogram,
}

impl Group {
    pub(super) fn new(name: String) -> Self {
        let delays = DelayHistogram::default;
        Group { name, flows: 0, shared: false, owd: delays(), e2ed: delays(), opening: delays() }
    }
}

/// Rows of series come at an interval.
pub(super) struct Sampling {
    pub(super) interval: Duration,
    /// The links that have rows, and their counters at the last one.
    pub(super) links: Vec<(u32, LinkCounters)>,
    pub(super) last: Instant,
}

impl Sampling {
    pub(super) fn new(interval: Duration) -> Self {
        Sampling { interval, links: Vec::new(), last: Instant::ZERO }
    }
}
