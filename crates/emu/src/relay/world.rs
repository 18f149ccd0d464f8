//! The path of a relay: the simulator's network, told the real time. Everything that is not the
//! relay's own packets (TCP senders, receivers, their timers) lives in there.

use super::config::RelayConfig;
use super::sample::{FlowSample, LinkSample, RelaySample};
use fairpace_net::{Mark, NetError};
use fairpace_path::LinkError;
use fairpace_sim::{
    BOTTLENECK, Delivered, Direction, Entering, FlowConfig, FlowId, Network, Observer, Protocol, REVERSE, SimConfig,
    SimError, SimReport,
};
use fairpace_units::{Bytes, Duration, Instant, QsOption, Rate};

/// A packet's mark, and its Quick-Start option.
pub(super) type Marks = (Mark, Option<QsOption>);

/// The flow of the relayed packets; its links have no streams of its own.
const RELAYED: &str = "relayed";

pub(super) struct World {
    network: Network,
    relayed: FlowId,
    /// The simulated flows, in the order of the configuration.
    flows: Vec<(String, FlowId)>,
}

impl World {
    pub(super) fn new(config: &RelayConfig) -> Result<World, NetError> {
        let (hops, route) = config.hops();
        let mut flows = vec![FlowConfig { route, ..FlowConfig::new(RELAYED, Protocol::External) }];
        flows.extend(config.flows.iter().cloned());
        let sim = SimConfig {
            seed: config.seed,
            duration: config.duration.unwrap_or(Duration::MAX),
            hops,
            flows,
            ..SimConfig::default()
        };
        let network = Network::new(&sim).map_err(|e| config_error(&e))?;
        let id = |name: &str| network.flow_id(name).unwrap_or_default();
        Ok(World {
            relayed: id(RELAYED),
            flows: config.flows.iter().map(|f| (f.name.clone(), id(&f.name))).collect(),
            network,
        })
    }

    /// `observer` is told of every packet.
    pub(super) fn observe(&mut self, observer: Box<dyn Observer>) {
        self.network.observe(observer);
    }

    /// A packet arrives at the path; not before what was told last.
    pub(super) fn inject(
        &mut self,
        at: Instant,
        direction: Direction,
        size: Bytes,
        (mark, quick_start): Marks,
        token: u64,
    ) {
        let packet = Entering::new(self.relayed, direction, size, token);
        self.network.inject(at, Entering { class: mark.dscp.class(), ecn: mark.ecn, quick_start, ..packet });
    }

    pub(super) fn advance(&mut self, to: Instant) {
        self.network.advance(to);
    }

    pub(super) fn next(&self) -> Instant {
        self.network.next()
    }

    pub(super) fn take_delivered(&mut self) -> Option<Delivered> {
        self.network.take_delivered()
    }

    pub(super) fn take_dropped(&mut self) -> Option<u64> {
        self.network.take_dropped().map(|d| d.token)
    }

    /// The path's record of everything.
    pub(super) fn finish(self) -> SimReport {
        self.network.into_report()
    }

    pub(super) fn sample(&mut self, at: Instant, relayed: Bytes) -> RelaySample {
        self.network.advance(at);
        let now = self.network.now();
        let mut link = |index| {
            let Some(link) = self.network.link(index) else { return LinkSample::default() };
            let capacity = link.capacity_at(now);
            LinkSample {
                counters: link.counters(),
                queue: link.queue_len() as u64,
                queue_bytes: link.queue_bytes(),
                capacity: (capacity < Rate::MAX).then_some(capacity),
            }
        };
        let (forward, back) = (link(BOTTLENECK), link(REVERSE));
        let flow = |(name, id): &(String, FlowId)| FlowSample {
            name: name.clone(),
            counts: self.network.counts(*id).copied().unwrap_or_default(),
        };
        RelaySample { at, forward, back, flows: self.flows.iter().map(flow).collect(), relayed }
    }
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("World").field("flows", &self.flows).finish_non_exhaustive()
    }
}

/// The simulator's names for the two links are not the relay's.
fn config_error(e: &SimError) -> NetError {
    let config = |field, allowed: String| NetError::Config { field, found: "not usable".to_owned(), allowed };
    let link = |e: &LinkError| e.to_string();
    match e {
        SimError::Link { link: name, source } if name == "bottleneck" => config("forward", link(source)),
        SimError::Link { link: name, source } if name == "reverse" => config("back", link(source)),
        e => config("flows", e.to_string()),
    }
}
