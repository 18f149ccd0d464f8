//! Packets of somebody else's: what goes in and what comes out.

use fairpace_path::DropReason;
use fairpace_units::{Bytes, Class, Ecn, Instant, QsOption};

use crate::packet::{Carries, Direction, FlowId};

/// A packet of an external flow that is about to enter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entering {
    /// Its flow.
    pub flow: FlowId,
    /// The packet's direction.
    pub direction: Direction,
    /// Its IP size.
    pub size: Bytes,
    /// The packet's class in a two-priority queue.
    pub class: Class,
    /// Its ECN field.
    pub ecn: Ecn,
    /// Its Quick-Start option, if it has one.
    pub quick_start: Option<QsOption>,
    /// The kind of traffic that the packet counts as.
    pub carries: Carries,
    /// The caller's token, returned when the packet comes out.
    pub token: u64,
}

impl Entering {
    /// A data packet of the normal class, without ECN or Quick-Start.
    pub const fn new(flow: FlowId, direction: Direction, size: Bytes, token: u64) -> Entering {
        let (class, ecn) = (Class::Normal, Ecn::NotEct);
        Entering { flow, direction, size, class, ecn, quick_start: None, carries: Carries::Data, token }
    }
}

/// A packet of an external flow that has come out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Delivered {
    /// Its flow.
    pub flow: FlowId,
    /// The packet's direction.
    pub direction: Direction,
    /// The token given to [`Network::inject`](crate::Network::inject).
    pub token: u64,
    /// Its ECN field.
    pub ecn: Ecn,
    /// Its Quick-Start option as the routers left it, if it entered with one.
    pub quick_start: Option<QsOption>,
    /// The window that a base station on the way has for its flow, in packets; `None`: nobody said one. Whoever injected the packet
    /// writes it into the packet's bytes, where these have a place for it.
    pub rwnd: Option<u32>,
    /// When it came out.
    pub at: Instant,
}

/// A packet of an external flow that will not come out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dropped {
    /// Its flow.
    pub flow: FlowId,
    /// The packet's direction.
    pub direction: Direction,
    /// The token given to [`Network::inject`](crate::Network::inject).
    pub token: u64,
    /// The part that dropped it, and for what reason.
    pub reason: DropReason,
    /// The link, an index of [`Network::link_names`](crate::Network::link_names).
    pub link: u32,
    /// The instant of the drop.
    pub at: Instant,
}
