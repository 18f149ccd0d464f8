//! The radio behind the backbone: users' downlinks in slots ([`Arq`](fairpace_path::Arq)), their uplinks, and the base
//! station that tells senders their windows.
//!
//! Source: [aimd §III-C, §III-D, §IV Fig. 2].

use std::fmt;
use std::sync::Arc;

use fairpace_units::{Duration, Instant};

use crate::packet::FlowId;

/// A flow over the radio, as the base station sees it when it plans.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Member {
    /// Which flow.
    pub flow: FlowId,
    /// Whose downlink it takes, from zero.
    pub user: u32,
    /// R of the paper, as time: [`SimConfig::min_rtt`](crate::SimConfig::min_rtt).
    pub min_rtt: Duration,
    /// p of eq. (4), not normalized: what it is to have of its user's downlink is this / the sum of it over that
    /// user's members. Above zero.
    pub share: f64,
}

/// The resource allocation of a base station [aimd §III-D, steps 4 and 5].
pub trait BaseStation: Send {
    /// The flow that is last in `members` has begun, or one that was among them has ended: the `rwnd` of each
    /// member from now on, in packets, in their order. Each is in the feedback of its flow from then on, and in the
    /// answer to its challenge; a user's buffer becomes the sum of its members' windows. A member without a
    /// number, or with zero, keeps what it had.
    fn plan(&mut self, now: Instant, members: &[Member]) -> Vec<u32>;
}

/// A base station, made anew for each run.
#[derive(Clone)]
pub struct BaseStationSpec(pub Arc<dyn Fn() -> Box<dyn BaseStation> + Send + Sync>);

impl BaseStationSpec {
    /// From what makes one.
    pub fn new(make: impl Fn() -> Box<dyn BaseStation> + Send + Sync + 'static) -> Self {
        BaseStationSpec(Arc::new(make))
    }
}

impl fmt::Debug for BaseStationSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("base station")
    }
}
