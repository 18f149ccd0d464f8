//! The state of a relay's path at one time.

use fairpace_path::LinkCounters;
use fairpace_sim::FlowCounts;
use fairpace_units::{Bytes, Instant, Rate};

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
}
