//! From a configuration to a network in which nothing has happened yet.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use fairpace_path::{Arq, Dama, Lane, Link, LinkCounters, LinkSpec, Medium};
use fairpace_units::Instant;

use super::ahead::LOOKS_FROM;
use super::arrivals::Arrivals;
use super::carrier::Carrier;
use super::notes::{Group, Notes, Sampling};
use super::route::{Routes, route_of};
use super::store::Store;
use super::{
    CHECKPOINT, Entrance, Exits, Network, PLAN, SAMPLE, START, STOP, ShortCuts, SimError, Slot, WARMUP, target_of,
};
use crate::base_station::{Member, Station};
use crate::check::{bad, check};
use crate::config::{FlowConfig, SimConfig};
use crate::engine::EventSet;
use crate::flow_state::{FlowState, MANY_FLOWS, MOST_FLOWS_TRACED, SharedParams};
use crate::hop::{Hop, HopConfig};
use crate::packet::{Direction, FlowId};
use crate::pcapng::PcapWriter;
use crate::radio::Radio;
use crate::report::EngineStats;
use crate::satellite::Satellite;

/// The media of a shared hop.
pub(super) struct SharedHop {
    name: String,
    /// The carrier of data: an index of the network's media.
    medium: u32,
    back: Back,
    is_satellite: bool,
}

/// The carrier of feedback over a hop.
enum Back {
    /// The same medium.
    Same,
    /// A link of its own.
    Link(u32),
    /// A link per user, the first one's here, and behind them a base station if somebody plans.
    Uplinks { first: u32, station: Option<u32> },
}

/// The way of a flow through the hops.
pub(super) struct Way {
    /// The base station that would give it windows, and its user there.
    pub(super) windows: Option<(u32, u32)>,
    /// Packets may come faster than they were sent.
    pub(super) bursty: bool,
}

/// The word for a port in reports: `terminal` of the satellite with the usual name, `<name> terminal` of others.
fn port_word(name: &str, usual: &str, word: &str) -> String {
    if name == usual { word.to_owned() } else { format!("{name} {word}") }
}

impl Network {
    /// Builds everything; nothing has happened yet.
    ///
    /// # Errors
    /// [`SimError`] names the field, flow or link that cannot be.
    pub fn new(config: &SimConfig) -> Result<Network, SimError> {
        Network::build(config, ShortCuts::All)
    }

    /// As [`Network::new`], with an event for each exit of a packet from a link. For tests: the results are the same.
    ///
    /// # Errors
    /// As [`Network::new`].
    pub fn stepwise(config: &SimConfig) -> Result<Network, SimError> {
        Network::build(config, ShortCuts::Stepwise)
    }

    /// As [`Network::stepwise`], with all links put together of their parts, however plain they are. For tests: the results are the same.
    ///
    /// # Errors
    /// As [`Network::new`].
    pub fn composed(config: &SimConfig) -> Result<Network, SimError> {
        Network::build(config, ShortCuts::None)
    }

    /// As [`Network::new`], and the memory that the next events touch is asked for before they come, however few flows there are. For tests: the results
    /// are the same.
    ///
    /// # Errors
    /// As [`Network::new`].
    pub fn looking(config: &SimConfig) -> Result<Network, SimError> {
        Network::build(config, ShortCuts::Looking)
    }

    fn build(config: &SimConfig, short_cuts: ShortCuts) -> Result<Network, SimError> {
        if config.flows.is_empty() && config.coming.is_none() {
            return Err(SimError::NoFlows);
        }
        if config.sample.is_some_and(|s| s.is_zero()) {
            return Err(bad("sample", "0 s", "it must be longer than zero, or left out"));
        }
        let mut network = Network {
            now: Instant::ZERO,
            events: EventSet::default(),
            media: Vec::new(),
            entrances: Vec::new(),
            store: Store::default(),
            routes: Routes::with_capacity(2 * config.flows.len()),
            base_stations: Vec::new(),
            flows: Vec::with_capacity(config.flows.len()),
            many: config.flows.len() >= MANY_FLOWS || config.coming.is_some(),
            looks_ahead: match short_cuts {
                ShortCuts::All => config.flows.len() >= LOOKS_FROM,
                ShortCuts::Looking => true,
                ShortCuts::Stepwise | ShortCuts::None => false,
            },
            looks: 0,
            looks_closer: false,
            arrivals: Arrivals::default(),
            early_until: Instant::ZERO,
            at_once_until: Instant::ZERO,
            arrive_until: Instant::ZERO,
            arrived_until: Instant::ZERO,
            looks_planned: Vec::new(),
            nexts: Vec::new(),
            batch: Vec::new(),
            stats: EngineStats::default(),
            delivered: VecDeque::new(),
            dropped: VecDeque::new(),
            observed: config.pcap,
            observer: None,
            pcap: None,
            notes: Vec::new(),
            links: 0,
            short_cuts,
            shared: Vec::new(),
            has_feeders: false,
            until: Instant::ZERO,
            satellites: Vec::new(),
            radios: Vec::new(),
            groups: Vec::new(),
            comers: None,
            flow_events: Vec::new(),
            sampled: BTreeSet::new(),
            opening: config.opening,
            sampling: config.sample.map(Sampling::new),
            warmup: Instant::ZERO + config.warmup,
            trace: config.trace,
            series: Vec::new(),
            link_series: Vec::new(),
        };
        let mut hops = Vec::with_capacity(config.hops.len());
        let mut hop_names = BTreeSet::new();
        for hop in &config.hops {
            for name in hop.names() {
                if !hop_names.insert(name) {
                    return Err(SimError::DuplicateHop { name: name.to_owned() });
                }
            }
            hops.push(network.add_hop(hop, config)?);
        }
        let mut planned = Vec::new();
        if !config.warmup.is_zero() {
            planned.push((network.warmup, target_of(WARMUP, 0)));
        }
        planned.extend(config.checkpoints.iter().map(|at| (*at, target_of(CHECKPOINT, 0))));
        planned.extend(config.plans.iter().map(|at| (*at, target_of(PLAN, 0))));
        if let Some(interval) = config.sample {
            planned.push((Instant::ZERO + interval, target_of(SAMPLE, 0)));
        }
        let (mut names, mut groups) = (BTreeSet::new(), BTreeMap::new());
        let mut shared = SharedParams::default();
        for (i, flow) in (0..).zip(&config.flows) {
            if !names.insert(flow.name.as_str()) {
                return Err(SimError::DuplicateName { name: flow.name.clone() });
            }
            let group = *groups.entry(flow.group.as_str()).or_insert(network.groups.len());
            network.add_flow(flow, group, config, &hops, &mut shared)?;
            planned.extend(network.flows.last().map(|state| (state.started, target_of(START, i))));
            planned.extend(flow.stop.map(|stop| (stop, target_of(STOP, i))));
        }
        network.looks_planned =
            config.checkpoints.iter().copied().chain(config.flows.iter().filter_map(|f| f.stop)).collect();
        network.looks_planned.sort_unstable_by(|a, b| b.cmp(a));
        network.events.plan(planned);
        if let Some(coming) = &config.coming {
            network.expect(coming, config, &hops)?;
        }
        network.number_ports();
        network.find_places();
        network.find_exits(config);
        network.expect_next();
        if config.pcap {
            network.pcap = Some(PcapWriter::new(Vec::new(), network.link_names()));
        }
        Ok(network)
    }

    fn add_medium(&mut self, name: String, mut carrier: Carrier) -> u32 {
        carrier.record_drops();
        let (first_port, is_link) = (self.links, carrier.is_link());
        self.links += u32::from(is_link);
        self.entrances.push(Entrance {
            lane: Lane::default(),
            awaited: Instant::ZERO,
            alike: u32::MAX,
            is_link,
            arrives: false,
        });
        self.media.push(Slot { carrier, armed: Instant::NEVER, next: None, exits: Exits::Asked, place: 0 });
        self.notes.push(Notes { name: name.into(), first_port, at_warmup: None });
        self.media.len() as u32 - 1
    }

    fn add_link(&mut self, name: String, spec: &LinkSpec, seed: u64) -> Result<Hop, SimError> {
        let new = if self.short_cuts == ShortCuts::None { Link::composed } else { Link::new };
        let link = new(spec, seed, &name).map_err(|source| SimError::Link { link: name.clone(), source })?;
        Ok(Hop::link(self.add_medium(name, Carrier::Link(link))))
    }

    /// The media of a hop, and where they are.
    fn add_hop(&mut self, config: &HopConfig, sim: &SimConfig) -> Result<SharedHop, SimError> {
        let name = config.name();
        let medium = self.media.len() as u32;
        let mut hop = SharedHop { name: name.to_owned(), medium, back: Back::Same, is_satellite: false };
        match config {
            HopConfig::Links { forward, back_name, back, .. } => {
                self.add_link(name.to_owned(), forward, sim.seed)?;
                let reverse = self.add_link(back_name.clone(), back, sim.seed)?.medium;
                hop.back = Back::Link(reverse);
                self.shared.extend([medium, reverse]);
                if let Some(sampling) = &mut self.sampling {
                    sampling.links.extend([medium, reverse].map(|link| (link, LinkCounters::default())));
                }
            }
            HopConfig::Satellite { spec, .. } => {
                let built = Dama::new(spec, sim.seed, name);
                let mut dama = built.map_err(|source| SimError::Satellite { hop: hop.name.clone(), source })?;
                self.satellites.push(Satellite::new(name, medium, &mut dama, sim.trace));
                self.add_medium(
                    port_word(name, "satellite", "terminal"),
                    Carrier::Other(Box::new(Medium::Dama(Box::new(dama)))),
                );
                hop.is_satellite = true;
            }
            HopConfig::Radio { radio, .. } => {
                let built = Arq::new(&radio.downlink, sim.seed, name);
                let mut arq = built.map_err(|source| SimError::Radio { hop: hop.name.clone(), source })?;
                let station = radio.base_station.as_ref().map(|spec| {
                    self.base_stations.push(Station::new(medium, spec));
                    self.base_stations.len() as u32 - 1
                });
                let users = arq.users();
                self.radios.push(Radio::new(name, medium, &mut arq, self.links, sim.trace));
                self.add_medium(port_word(name, "radio", "user"), Carrier::Other(Box::new(Medium::Arq(Box::new(arq)))));
                let uplink = radio.uplink.clone().unwrap_or_default();
                for user in 0..users {
                    self.add_link(format!("{name}.user{user}.uplink"), &uplink, sim.seed)?;
                }
                hop.back = Back::Uplinks { first: medium + 1, station };
            }
            HopConfig::Custom { medium, .. } => {
                self.add_medium(name.to_owned(), Carrier::Other(Box::new(Medium::Custom(medium.make(sim.seed, name)))));
            }
        }
        Ok(hop)
    }

    fn add_flow(
        &mut self,
        config: &FlowConfig,
        group: usize,
        sim: &SimConfig,
        hops: &[SharedHop],
        shared: &mut SharedParams,
    ) -> Result<(), SimError> {
        check(config)?;
        let Way { windows, bursty } = self.add_way(config, sim.seed, hops)?;
        if group == self.groups.len() {
            self.groups.push(Group::new(config.group.clone()));
        }
        let group_state = &mut self.groups[group];
        group_state.flows += 1;
        group_state.shared = self.many && group_state.flows > 1;
        let trace = sim.trace && (!self.many || group_state.flows <= MOST_FLOWS_TRACED);
        let mut flow = FlowState::new(config, group as u32, sim.seed, trace, self.many, bursty, shared)?;
        if flow.takes_window {
            let feedback = sim.min_rtt(config).saturating_sub(sim.min_owd(config));
            flow.rtt_bound = flow.delay_bound.saturating_add(super::nanos(feedback));
        }
        if let (Some((station, user)), true) = (windows, flow.takes_window) {
            let min_rtt = sim.min_rtt(config);
            let member = Member { flow: self.flows.len() as FlowId, user, min_rtt, share: config.share };
            self.base_stations[station as usize].attach(member);
        }
        self.add_place(flow);
        Ok(())
    }

    /// The flow that has the last two routes.
    pub(super) fn add_place(&mut self, mut flow: FlowState) {
        flow.enters = [Direction::Forward, Direction::Back]
            .map(|direction| self.routes.first(route_of(self.flows.len() as FlowId, direction)).medium);
        self.flows.push(flow);
    }

    /// The two routes of a flow, and its own links.
    pub(super) fn add_way(&mut self, config: &FlowConfig, seed: u64, hops: &[SharedHop]) -> Result<Way, SimError> {
        let (mut there, mut back) = (Vec::new(), Vec::new());
        let (mut windows, mut bursty) = (None, false);
        for (i, via) in config.route.iter().enumerate() {
            let hop = self.check_via(config, i, hops)?;
            let [port, back_port] = via.ports;
            // A terminal's queue drains at what it is granted, faster than it was filled.
            bursty |= hop.is_satellite;
            there.push(Hop { medium: hop.medium, port });
            match hop.back {
                Back::Same => back.push(Hop { medium: hop.medium, port: back_port }),
                Back::Link(reverse) => back.push(Hop::link(reverse)),
                Back::Uplinks { first, station } => {
                    // Feedback passes the base station behind its uplink; the route is turned around below.
                    back.extend(station.map(Hop::through));
                    back.push(Hop::link(first + back_port));
                    windows = windows.or(station.map(|station| (station, port)));
                }
            }
        }
        back.reverse();
        let mut access = |side: &str, spec: &Option<LinkSpec>| {
            spec.as_ref().map(|spec| self.add_link(format!("flow.{}.{side}", config.name), spec, seed)).transpose()
        };
        let sides = &config.access;
        let (first, last) = (access("forward_in", &sides.forward_in)?, access("forward_out", &sides.forward_out)?);
        let (back_first, back_last) = (access("back_in", &sides.back_in)?, access("back_out", &sides.back_out)?);
        self.routes.push(first.into_iter().chain(there).chain(last));
        self.routes.push(back_first.into_iter().chain(back).chain(back_last));
        Ok(Way { windows, bursty })
    }

    /// The hop of one place in a flow's route, if the flow can pass it so.
    fn check_via<'a>(
        &mut self,
        config: &FlowConfig,
        i: usize,
        hops: &'a [SharedHop],
    ) -> Result<&'a SharedHop, SimError> {
        let (flow, via) = (config.name.clone(), config.route[i]);
        let Some(hop) = hops.get(via.hop as usize) else {
            return Err(SimError::NoHop { flow, found: via.hop, hops: hops.len() });
        };
        let name = hop.name.clone();
        if config.route[..i].iter().any(|earlier| earlier.hop == via.hop) {
            return Err(SimError::HopTwice { flow, hop: name });
        }
        let ports = self.media[hop.medium as usize].carrier.ports();
        if let Some(&found) = via.ports.iter().find(|port| **port >= ports) {
            return Err(SimError::NoPort { flow, hop: name, found, ports });
        }
        let same = via.ports[0] == via.ports[1];
        if hop.is_satellite && same {
            return Err(SimError::SameTerminal { flow, hop: name, terminal: via.ports[0] });
        }
        if matches!(hop.back, Back::Uplinks { .. }) && !same {
            return Err(SimError::TwoUsers { flow, hop: name, users: via.ports });
        }
        if let Some(satellite) = self.satellites.iter_mut().find(|s| s.medium == hop.medium) {
            for terminal in via.ports {
                satellite.attach(terminal);
            }
        }
        Ok(hop)
    }

    /// Ports are numbered for reports: the links first, then the others' ports.
    fn number_ports(&mut self) {
        let mut next = self.links;
        for (slot, notes) in self.media.iter().zip(&mut self.notes) {
            if !slot.carrier.is_link() {
                notes.first_port = next;
                next += slot.carrier.ports();
            }
        }
    }

    /// Where in its route a packet is looked for when it comes out of a medium: no route has that medium earlier. And
    /// where it goes from there, if all packets go to the same place.
    fn find_places(&mut self) {
        self.routes.shrink();
        let mut unseen = vec![true; self.media.len()];
        for route in self.routes.iter() {
            let after = route.iter().copied().skip(1).chain([Hop::ENDPOINT]);
            for ((place, hop), after) in (0..).zip(route).zip(after) {
                let i = hop.medium as usize;
                let Some(slot) = self.media.get_mut(i) else { continue };
                let first = std::mem::take(&mut unseen[i]);
                slot.place = if first { place } else { place.min(slot.place) };
                let same = first || slot.next == Some(after);
                slot.next = (same && slot.carrier.is_link()).then_some(after);
            }
        }
    }
}
