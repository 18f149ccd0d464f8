//! The flows that come one after another, as a network remembers them: see `coming.rs`.

use std::collections::BTreeMap;

use fairpace_units::{Duration, Instant};

use crate::config::{Coming, FlowConfig, SimConfig};
use crate::flow_state::SharedParams;
use crate::hop::RouteHop;
use crate::packet::FlowId;
use crate::report::{FlowCounts, FlowReport};
use crate::tcp::{TcpStanding, TcpTally};

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
    pub(super) ways: Vec<Stock>,
    /// By name, which of the network's groups it is.
    pub(super) groups: BTreeMap<String, u32>,
    pub(super) shared: SharedParams,
    /// In order, and how many of them have been.
    pub(super) checkpoints: Vec<Instant>,
    pub(super) noted: usize,
    /// Flows that are over, and which nobody has taken.
    pub(super) ended: Vec<Ended>,
}

/// A flow that is over.
#[derive(Clone)]
pub(super) struct Ended {
    pub(super) number: FlowId,
    /// Its report, as if the warm-up had not ended since.
    pub(super) report: FlowReport,
    /// The standing of its TCP, and what that had counted at the end of the warm-up.
    pub(super) tcp: Option<(TcpStanding, TcpTally)>,
}

/// The places of flows with one route.
pub(super) struct Stock {
    /// One of them, whose way all others have.
    pub(super) some: FlowId,
    pub(super) vacant: Vec<FlowId>,
    /// Packets may come faster than they were sent.
    pub(super) bursty: bool,
}

impl Ended {
    /// The warm-up ends at that instant.
    pub(super) fn end_warmup(&mut self, at: Instant) {
        self.report.measured = FlowCounts::default();
        self.report.owd.clear();
        self.report.e2ed.clear();
        if let Some((standing, before)) = &mut self.tcp {
            *before = standing.tally(at);
        }
    }

    /// The report of a run that ends at that instant, `window` behind the end of its warm-up.
    pub(super) fn report(mut self, end: Instant, window: Duration) -> (FlowId, FlowReport) {
        self.report.window = window;
        self.report.checkpoints.retain(|(at, _)| *at <= end);
        if let (Some(tcp), Some((standing, before))) = (&mut self.report.tcp, &self.tcp) {
            tcp.measured = standing.tally(end).since(before);
        }
        (self.number, self.report)
    }
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
            ended: Vec::new(),
        }
    }
}
