//! The path of a relay: the simulator's network, told the real time. Everything that is not the
//! relay's own packets (TCP senders, receivers, their timers) lives in there.

use super::sample::{CellSample, FlowSample, LinkSample, RelaySample};
use fairpace_net::{Mark, NetError};
use fairpace_path::LinkError;
use fairpace_sim::{
    Allotted, BOTTLENECK, Delivered, Dropped, Entering, FlowId, Network, Observer, Protocol, REVERSE, SimConfig,
    SimError, SimReport,
};
use fairpace_units::{Bytes, Duration, Instant, QsOption, Rate};

/// A packet's mark, and its Quick-Start option.
pub(super) type Marks = (Mark, Option<QsOption>);

/// A place for clients' packets: its flow, its name, the tolerable delay of its data and the size of a full packet.
pub(super) type PlaceOf = (FlowId, String, (Option<Duration>, Bytes));

pub(super) struct World {
    network: Network,
    /// The simulated flows, in the order of the configuration.
    flows: Vec<(String, FlowId)>,
}

impl World {
    /// The path, and the places of clients in the order of their flows.
    pub(super) fn new(path: &SimConfig) -> Result<(World, Vec<PlaceOf>), NetError> {
        let network = Network::new(path).map_err(|e| config_error(&e))?;
        let (mut places, mut flows) = (Vec::new(), Vec::new());
        for (id, flow) in (0..).zip(&path.flows) {
            match flow.protocol {
                Protocol::External => places.push((id, flow.name.clone(), (flow.delay_bound, flow.packet_size))),
                _ => flows.push((flow.name.clone(), id)),
            }
        }
        Ok((World { network, flows }, places))
    }

    /// `observer` is told of every packet.
    pub(super) fn observe(&mut self, observer: Box<dyn Observer>) {
        self.network.observe(observer);
    }

    /// A packet arrives at the path; not before what was told last.
    pub(super) fn inject(&mut self, at: Instant, packet: Entering, (mark, quick_start): Marks) {
        self.network.inject(at, Entering { class: mark.dscp.class(), ecn: mark.ecn, quick_start, ..packet });
    }

    /// A client's flow is there, and is to have a window.
    pub(super) fn join(&mut self, at: Instant, flow: FlowId) -> bool {
        self.network.join(at, flow)
    }

    /// A client's flow has gone.
    pub(super) fn leave(&mut self, at: Instant, flow: FlowId) -> bool {
        self.network.leave(at, flow)
    }

    /// The windows of the flows that are there, and what they may expect.
    pub(super) fn windows(&self) -> Vec<Allotted> {
        self.network.windows()
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

    pub(super) fn take_dropped(&mut self) -> Option<Dropped> {
        self.network.take_dropped()
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
        let flows = self.flows.iter().map(flow).collect();
        RelaySample { at, forward, back, flows, relayed, cell: CellSample::default() }
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
