//! The flows that come one after another, as a network remembers them: see `coming.rs`.

use std::collections::BTreeMap;

use fairpace_units::Instant;

use crate::config::{Coming, FlowConfig, SimConfig};
use crate::flow_state::SharedParams;
use crate::hop::RouteHop;
use crate::packet::FlowId;
use crate::report::FlowReport;

/// The flows that are still to come, and the reports of those that are over.
pub(super) struct Comers {
    pub(super) flows: Box<dyn Iterator<Item = FlowConfig> + Send>,
    /// The number of the next one.
    pub(super) number: FlowId,
    pub(super) seed: u64,
    /// When the run ends.
    pub(super) end: Instant,
    /// By route, which of the `ways` it is.
    pub(super) routes: BTreeMap<Vec<RouteHop>, u32>,
    pub(super) ways: Vec<Places>,
    /// By name, which of the network's groups it is.
    pub(super) groups: BTreeMap<String, u32>,
    pub(super) shared: SharedParams,
    /// In order, and how many of them have been.
    pub(super) checkpoints: Vec<Instant>,
    pub(super) noted: usize,
    /// Reports of flows that are over, which nobody has taken.
    pub(super) over: Vec<(FlowId, FlowReport)>,
}

/// The places of flows with one route.
pub(super) struct Places {
    /// One of them, whose way all others have.
    pub(super) some: FlowId,
    pub(super) vacant: Vec<FlowId>,
    /// As in [`FlowState::new`].
    pub(super) bursty: bool,
}

impl Comers {
    pub(super) fn new(coming: &Coming, sim: &SimConfig) -> Self {
        let mut checkpoints = sim.checkpoints.clone();
        checkpoints.sort_unstable();
        Comers {
            flows: coming.flows(),
            number: sim.flows.len() as FlowId,
            seed: sim.seed,
            end: Instant::ZERO + sim.duration,
            routes: BTreeMap::new(),
            ways: Vec::new(),
            groups: BTreeMap::new(),
            shared: SharedParams::default(),
            checkpoints,
            noted: 0,
            over: Vec::new(),
        }
    }
}
