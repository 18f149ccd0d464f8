//! The shared part of a path: hops in the order in which data passes them, and a flow's way through them.

use std::fmt;
use std::sync::Arc;

use fairpace_path::{CustomMedium, DamaSpec, LinkSpec};

use crate::packet::Packet;
use crate::radio::RadioConfig;

/// A hop that flows share: what carries data there, and feedback back.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)] // a few per run, set up once
pub enum HopConfig {
    /// A link each way. Their random streams have their names.
    Links {
        /// The name of the link for data.
        name: String,
        /// From senders to receivers.
        forward: LinkSpec,
        /// The name of the link for feedback.
        back_name: String,
        /// From receivers to senders.
        back: LinkSpec,
    },
    /// A satellite that both ways go through. Its ports are terminals; its random streams are `<name>.*`.
    Satellite {
        /// The satellite's name.
        name: String,
        /// Its return link.
        spec: DamaSpec,
    },
    /// The links behind a base station. Ports are users; random streams are `<name>.*`.
    Radio {
        /// The radio's name.
        name: String,
        /// Downlink, uplinks, and who plans.
        radio: RadioConfig,
    },
    /// A medium from outside, which both ways go through.
    Custom {
        /// The medium's name.
        name: String,
        /// Makes the medium.
        medium: CustomSpec,
    },
}

impl HopConfig {
    /// The links `bottleneck` and `reverse`.
    pub fn path(forward: LinkSpec, back: LinkSpec) -> Self {
        HopConfig::Links { name: "bottleneck".to_owned(), forward, back_name: "reverse".to_owned(), back }
    }

    /// The links `<name>` and `<name>.reverse`.
    pub fn links(name: impl Into<String>, forward: LinkSpec, back: LinkSpec) -> Self {
        let name = name.into();
        HopConfig::Links { back_name: format!("{name}.reverse"), name, forward, back }
    }

    /// A satellite called `satellite`.
    pub fn satellite(spec: DamaSpec) -> Self {
        HopConfig::Satellite { name: "satellite".to_owned(), spec }
    }

    /// A radio called `radio`.
    pub fn radio(radio: RadioConfig) -> Self {
        HopConfig::Radio { name: "radio".to_owned(), radio }
    }

    /// The hop's name, and that of its link back.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let back = match self {
            HopConfig::Links { back_name, .. } => Some(back_name.as_str()),
            HopConfig::Satellite { .. } | HopConfig::Radio { .. } | HopConfig::Custom { .. } => None,
        };
        std::iter::once(self.name()).chain(back)
    }

    /// The links there and back, if the hop is a pair of links.
    pub fn as_links(&self) -> Option<[&LinkSpec; 2]> {
        match self {
            HopConfig::Links { forward, back, .. } => Some([forward, back]),
            HopConfig::Satellite { .. } | HopConfig::Radio { .. } | HopConfig::Custom { .. } => None,
        }
    }

    /// The hop's name.
    pub fn name(&self) -> &str {
        match self {
            HopConfig::Links { name, .. }
            | HopConfig::Satellite { name, .. }
            | HopConfig::Radio { name, .. }
            | HopConfig::Custom { name, .. } => name,
        }
    }
}

/// A medium from outside, made anew for each run with the run's seed and the hop's name.
#[derive(Clone)]
pub struct CustomSpec(Arc<Make>);

type Make = dyn Fn(u64, &str) -> Box<dyn CustomMedium<Packet>> + Send + Sync;

impl CustomSpec {
    /// From what makes one.
    pub fn new(make: impl Fn(u64, &str) -> Box<dyn CustomMedium<Packet>> + Send + Sync + 'static) -> Self {
        CustomSpec(Arc::new(make))
    }

    pub(crate) fn make(&self, seed: u64, name: &str) -> Box<dyn CustomMedium<Packet>> {
        (self.0)(seed, name)
    }
}

impl fmt::Debug for CustomSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("custom medium")
    }
}

/// A flow's way through one hop.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct RouteHop {
    /// An index of [`SimConfig::hops`](crate::SimConfig::hops).
    pub hop: u32,
    /// The ports at which data and feedback enter: the terminals at the sender and at the receiver, which differ; the
    /// receiver's user, twice. Links have only port 0.
    pub ports: [u32; 2],
}

impl RouteHop {
    /// Through links.
    pub const fn links(hop: u32) -> Self {
        RouteHop { hop, ports: [0, 0] }
    }

    /// Between two terminals of a satellite.
    pub const fn terminals(hop: u32, terminals: [u32; 2]) -> Self {
        RouteHop { hop, ports: terminals }
    }

    /// To a user of a radio.
    pub const fn user(hop: u32, user: u32) -> Self {
        RouteHop { hop, ports: [user, user] }
    }
}

/// Where a packet goes next: a port of a medium; a base station, which packets pass in no time; or its endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Hop {
    /// An index of the network's media; of what is none, numbers are counted down from the largest.
    pub(crate) medium: u32,
    /// One of the medium's ports; a link has only port 0.
    pub(crate) port: u32,
}

impl Hop {
    /// The end of every route.
    pub(crate) const ENDPOINT: Hop = Hop::link(u32::MAX);

    pub(crate) const fn link(medium: u32) -> Self {
        Hop { medium, port: 0 }
    }

    pub(crate) const fn through(base_station: u32) -> Self {
        Hop::link(u32::MAX - 1 - base_station)
    }

    /// The number of the base station, for a hop that is neither a medium nor the endpoint.
    pub(crate) const fn base_station(self) -> u32 {
        u32::MAX - 1 - self.medium
    }
}
