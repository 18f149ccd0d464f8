//! From a configuration to a network in which nothing has happened yet.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use fairpace_path::{Arq, Dama, Link, LinkCounters, LinkSpec, Medium};
use fairpace_units::Instant;

use super::record::{Group, Notes, Sampling};
use super::route::{Hop, Routes};
use super::{BOTTLENECK, REVERSE};
use super::{CHECKPOINT, KIND_BITS, Network, PLAN, SAMPLE, START, STOP, SimError, Slot, WARMUP};
use crate::base_station::{Member, Station};
use crate::check::{bad, check};
use crate::config::{FlowConfig, SimConfig};
use crate::engine::EventSet;
use crate::flow_state::{FlowState, MANY_FLOWS, MOST_FLOWS_TRACED};
use crate::packet::{FlowId, Packet};
use crate::pcapng::PcapWriter;
use crate::radio::{Radio, RadioConfig};
use crate::report::EngineStats;
use crate::satellite::Satellite;

impl Network {
    /// Builds everything; nothing has happened yet.
    ///
    /// # Errors
    /// [`SimError`] names the field, flow or link that cannot be.
    pub fn new(config: &SimConfig) -> Result<Network, SimError> {
        if config.flows.is_empty() {
            return Err(SimError::NoFlows);
        }
        if config.sample.is_some_and(|s| s.is_zero()) {
            return Err(bad("sample", "0 s", "it must be longer than zero, or left out"));
        }
        let mut network = Network {
            now: Instant::ZERO,
            events: EventSet::default(),
            media: Vec::new(),
            routes: Routes::with_capacity(2 * config.flows.len()),
            base_stations: Vec::new(),
            flows: Vec::with_capacity(config.flows.len()),
            many: config.flows.len() >= MANY_FLOWS,
            stats: EngineStats::default(),
            delivered: VecDeque::new(),
            dropped: VecDeque::new(),
            observer: None,
            pcap: None,
            notes: Vec::new(),
            links: 0,
            satellites: Vec::new(),
            radios: Vec::new(),
            groups: Vec::new(),
            sampled: BTreeSet::new(),
            opening: config.opening,
            sampling: config.sample.map(Sampling::new),
            warmup: Instant::ZERO + config.warmup,
            trace: config.trace,
            series: Vec::new(),
            link_series: Vec::new(),
        };
        network.add_link("bottleneck".to_owned(), &config.bottleneck, config.seed)?;
        network.add_link("reverse".to_owned(), &config.reverse, config.seed)?;
        if let Some(sampling) = &mut network.sampling {
            sampling.links.extend([BOTTLENECK, REVERSE].map(|link| (link, LinkCounters::default())));
        }
        if let Some(spec) = &config.dama {
            let mut dama = Dama::new(spec, config.seed, "satellite")?;
            let place = network.media.len() as u32;
            network.satellites.push(Satellite::new(place, &mut dama, config.trace));
            network.add_medium("terminal".to_owned(), Medium::Dama(Box::new(dama)));
        }
        if let Some(radio) = &config.radio {
            network.add_radio(radio, config)?;
        }
        // Bookkeeping comes before traffic at the same instant.
        let mut planned = Vec::new();
        if !config.warmup.is_zero() {
            planned.push((network.warmup, WARMUP));
        }
        planned.extend(config.checkpoints.iter().map(|at| (*at, CHECKPOINT)));
        planned.extend(config.plans.iter().map(|at| (*at, PLAN)));
        if let Some(interval) = config.sample {
            planned.push((Instant::ZERO + interval, SAMPLE));
        }
        let (mut names, mut groups) = (BTreeSet::new(), BTreeMap::new());
        for (i, flow) in (0..).zip(&config.flows) {
            if !names.insert(flow.name.as_str()) {
                return Err(SimError::DuplicateName { name: flow.name.clone() });
            }
            let group = *groups.entry(flow.group.as_str()).or_insert(network.groups.len());
            network.add_flow(flow, group, config)?;
            planned.extend(network.flows.last().map(|state| (state.started, i << KIND_BITS | START)));
            planned.extend(flow.stop.map(|stop| (stop, i << KIND_BITS | STOP)));
        }
        network.events.plan(planned);
        network.number_ports();
        network.find_places();
        if config.pcap {
            network.pcap = Some(PcapWriter::new(Vec::new(), network.link_names()));
        }
        Ok(network)
    }

    fn add_medium(&mut self, name: String, mut medium: Medium<Packet>) -> u32 {
        medium.record_drops(true);
        let first_port = self.links;
        self.links += u32::from(matches!(medium, Medium::Link(_)));
        self.media.push(Slot { medium, armed: Instant::NEVER, first_port, place: 0 });
        self.notes.push(Notes { name: name.into(), at_warmup: LinkCounters::default() });
        self.media.len() as u32 - 1
    }

    fn add_link(&mut self, name: String, spec: &LinkSpec, seed: u64) -> Result<Hop, SimError> {
        let link = Link::new(spec, seed, &name).map_err(|source| SimError::Link { link: name.clone(), source })?;
        Ok(Hop::link(self.add_medium(name, Medium::Link(link))))
    }

    fn add_radio(&mut self, config: &RadioConfig, sim: &SimConfig) -> Result<(), SimError> {
        let mut arq = Arq::new(&config.downlink, sim.seed, "radio")?;
        let downlink = self.media.len() as u32;
        self.base_stations.extend(config.base_station.as_ref().map(|spec| Station::new(downlink, spec)));
        let users = arq.users();
        self.radios.push(Radio::new(downlink, &mut arq, self.links, sim.trace));
        self.add_medium("user".to_owned(), Medium::Arq(Box::new(arq)));
        let uplink = config.uplink.clone().unwrap_or_default();
        for user in 0..users {
            self.add_link(format!("radio.user{user}.uplink"), &uplink, sim.seed)?;
        }
        Ok(())
    }

    fn add_flow(&mut self, config: &FlowConfig, group: usize, sim: &SimConfig) -> Result<(), SimError> {
        check(config)?;
        let [there, back] = match config.terminals {
            Some(terminals) => self.attach(config, terminals)?,
            None => [BOTTLENECK, REVERSE].map(Hop::link),
        };
        let on_air = config.user.map(|user| self.check_user(config, user)).transpose()?;
        let mut access = |side: &str, spec: &Option<LinkSpec>| {
            spec.as_ref().map(|spec| self.add_link(format!("flow.{}.{side}", config.name), spec, sim.seed)).transpose()
        };
        let sides = &config.access;
        let (forward_in, forward_out) =
            (access("forward_in", &sides.forward_in)?, access("forward_out", &sides.forward_out)?);
        let (back_in, back_out) = (access("back_in", &sides.back_in)?, access("back_out", &sides.back_out)?);
        let [downlink, uplink] = on_air.map_or([None, None], |hops| hops.map(Some));
        // Feedback passes the base station behind its uplink.
        let station = uplink.filter(|_| !self.base_stations.is_empty()).map(|_| Hop::through(0));
        self.routes.push([forward_in, Some(there), downlink.or(forward_out)].into_iter().flatten());
        self.routes.push([uplink.or(back_in), station, Some(back), back_out].into_iter().flatten());

        if group == self.groups.len() {
            self.groups.push(Group::new(config.group.clone()));
        }
        let group_state = &mut self.groups[group];
        group_state.flows += 1;
        group_state.shared = self.many && group_state.flows > 1;
        let trace = sim.trace && (!self.many || group_state.flows <= MOST_FLOWS_TRACED);
        let mut flow = FlowState::new(config, group as u32, sim.seed, trace, self.many)?;
        if flow.takes_window {
            let feedback = sim.min_rtt(config).saturating_sub(sim.min_owd(config));
            flow.rtt_bound = flow.delay_bound.saturating_add(super::nanos(feedback));
        }
        if let (Some(user), Some(station), true) = (config.user, self.base_stations.first_mut(), flow.takes_window) {
            let min_rtt = sim.min_rtt(config);
            station.attach(Member { flow: self.flows.len() as FlowId, user, min_rtt, share: config.share });
        }
        self.flows.push(flow);
        Ok(())
    }

    /// A flow goes over the radio: its last hop there, and its first one back.
    fn check_user(&self, config: &FlowConfig, user: u32) -> Result<[Hop; 2], SimError> {
        let flow = || config.name.clone();
        let Some(radio) = self.radios.first() else { return Err(SimError::NoRadio { flow: flow() }) };
        let users = self.media[radio.medium as usize].medium.ports();
        if user >= users {
            return Err(SimError::NoUser { flow: flow(), found: user, users });
        }
        for (side, link) in [("forward_out", &config.access.forward_out), ("back_in", &config.access.back_in)] {
            if link.is_some() {
                return Err(SimError::TwoHops { flow: flow(), side });
            }
        }
        Ok([Hop { medium: radio.medium, port: user }, Hop::link(radio.medium + 1 + user)])
    }

    /// A flow goes through the satellite: its ways there and back.
    fn attach(&mut self, config: &FlowConfig, terminals: [u32; 2]) -> Result<[Hop; 2], SimError> {
        let flow = config.name.clone();
        let Some(satellite) = self.satellites.first_mut() else { return Err(SimError::NoSatellite { flow }) };
        let medium = satellite.medium;
        let all = self.media[medium as usize].medium.ports();
        if let Some(&found) = terminals.iter().find(|i| **i >= all) {
            return Err(SimError::NoTerminal { flow, found, terminals: all });
        }
        if terminals[0] == terminals[1] {
            return Err(SimError::SameTerminal { flow, terminal: terminals[0] });
        }
        for terminal in terminals {
            satellite.attach(terminal);
        }
        Ok(terminals.map(|port| Hop { medium, port }))
    }

    /// Ports are numbered for reports: the links first, then the others' ports.
    fn number_ports(&mut self) {
        let mut next = self.links;
        for slot in &mut self.media {
            if !matches!(slot.medium, Medium::Link(_)) {
                slot.first_port = next;
                next += slot.medium.ports();
            }
        }
    }

    /// Where in its route a packet is looked for when it comes out of a medium: no route has that medium earlier.
    fn find_places(&mut self) {
        self.routes.shrink();
        let mut places = vec![u16::MAX; self.media.len()];
        for route in self.routes.iter() {
            for (place, hop) in (0..).zip(route) {
                if let Some(first) = places.get_mut(hop.medium as usize) {
                    *first = place.min(*first);
                }
            }
        }
        for (slot, place) in self.media.iter_mut().zip(places) {
            slot.place = place;
        }
    }
}
