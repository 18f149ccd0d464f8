//! The state of a relay's path at one time.

use super::guest::{Gone, Visit};
use fairpace_path::LinkCounters;
use fairpace_sim::{FlowCounts, Promise};
use fairpace_units::{Bytes, Instant, Rate};
use std::net::SocketAddr;

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
    /// The news since the last sample: the first 256.
    pub news: Vec<News>,
    /// Packets from addresses for which there was no place, since the beginning.
    pub refused: u64,
}

/// Something that people are told of at once. Numbers are those of places.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum News {
    /// A client has come.
    Came(usize, SocketAddr),
    /// The flow of a client cannot be told a window, since its feedback is sealed.
    Sealed(usize),
    /// The flow of a client does not take windows.
    NoWindow(usize),
    /// A flow has a window, which is new; with the service that it may expect.
    Window(usize, u32, Option<Promise>),
    /// A client has gone.
    Left(usize, SocketAddr, Gone),
    /// A flow sends more than its window allows.
    Ignores(usize),
    /// Somebody has found no place.
    Refused(SocketAddr),
}
