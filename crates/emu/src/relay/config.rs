//! The path of a relay, and the addresses between which it relays.

use fairpace_net::{Buffers, Family};
use fairpace_path::LinkSpec;
use fairpace_sim::{FlowConfig, HopConfig, Protocol, RouteHop, SimConfig};
use fairpace_units::{Bytes, Duration};
use std::net::SocketAddr;

/// The flow of the packets of a relay without places; its links have no streams of its own.
const RELAYED: &str = "relayed";

/// When the path's time zero is: its schedules, outages and TCP flows count from there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Begin {
    /// When the first packet of a client comes.
    #[default]
    FirstPacket,
    /// When the relay starts.
    AtOnce,
}

/// The path of a relay, and the addresses between which it relays.
#[derive(Clone, Debug)]
pub struct RelayConfig {
    /// Port to listen on; 0 takes a free one ([`Relay::address`](super::Relay::address) tells which).
    pub listen: u16,
    /// On which addresses.
    pub family: Family,
    /// Where packets go.
    pub to: SocketAddr,
    /// The only clients, which may be sent to before they have shown that they hear; with port 0 any port of that address.
    /// None: whoever sends to the port is a client, as long as there is a place.
    pub peers: Vec<SocketAddr>,
    /// The path from client to target.
    pub forward: LinkSpec,
    /// The path from target to client.
    pub back: LinkSpec,
    /// The path, if it is more than these two links, which then count for nothing: hops of any kind, and by which of them, at which
    /// ports, the clients' packets go.
    pub shared: Option<(Vec<HopConfig>, Vec<RouteHop>)>,
    /// The path of a cell, in place of all that: its flows with [`Protocol::External`] are places for clients, one at a time each, at most
    /// [`MOST_PLACES`](super::MOST_PLACES); the others are simulated beside them. Its base stations plan the windows of the clients' flows,
    /// which are written into their feedback. Seed and duration are those of this configuration.
    pub cell: Option<SimConfig>,
    /// Flows of the simulator that share both; their times count from the path's time zero. The
    /// name `relayed` is taken.
    pub flows: Vec<FlowConfig>,
    /// Seed of the path's random streams.
    pub seed: u64,
    /// When the path's time begins.
    pub begin: Begin,
    /// How long to run, in the path's time; until stopped if `None`.
    pub duration: Option<Duration>,
    /// Distance of the samples.
    pub sample: Duration,
    /// Bytes of packets under way at most: what does not fit is dropped and makes the run invalid.
    pub memory: Bytes,
    /// 99 of 100 packets must be released within this of their time, or the run is invalid.
    pub lateness_limit: Duration,
    /// Socket buffers to ask for.
    pub buffers: Buffers,
}

impl RelayConfig {
    /// The path, and all flows on it: the clients' are external.
    pub(super) fn path(&self) -> SimConfig {
        let duration = self.duration.unwrap_or(Duration::MAX);
        if let Some(cell) = &self.cell {
            return SimConfig { seed: self.seed, duration, ..cell.clone() };
        }
        let pair = || (vec![HopConfig::path(self.forward.clone(), self.back.clone())], vec![RouteHop::links(0)]);
        let (hops, route) = self.shared.clone().unwrap_or_else(pair);
        let mut flows = vec![FlowConfig { route, ..FlowConfig::new(RELAYED, Protocol::External) }];
        flows.extend(self.flows.iter().cloned());
        SimConfig { seed: self.seed, duration, hops, flows, ..SimConfig::default() }
    }

    /// A relay that changes nothing, from `listen` to `to`.
    pub fn new(listen: u16, to: SocketAddr) -> RelayConfig {
        RelayConfig {
            listen,
            family: Family::Any,
            to,
            peers: Vec::new(),
            forward: LinkSpec::default(),
            back: LinkSpec::default(),
            shared: None,
            cell: None,
            flows: Vec::new(),
            seed: 1,
            begin: Begin::FirstPacket,
            duration: None,
            sample: Duration::from_secs(1),
            memory: Bytes::new(64 << 20),
            lateness_limit: Duration::from_millis(10),
            buffers: Buffers { receive: Bytes::new(4 << 20), send: Bytes::new(1 << 20) },
        }
    }
}
