//! The dumbbell in virtual time: links, flows, and the loop that moves packets between them.
//!
//! One event per packet-hop: the exit of a packet from a link is the event, and what happens then
//! (next link, endpoint, answer) happens at once. Each link has at most one entry in the
//! pending-event set, for its next exit; each half of an endpoint at most one, for its next timer,
//! re-armed lazily: an entry that comes too early finds nothing due and is armed again.
//!
//! The same network runs in real time inside the relay: [`Network::advance`] to now,
//! [`Network::inject`] what arrived, [`Network::take_delivered`] what comes out.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use fairpace_control::{Ack, RateReport, SackVector};
use fairpace_path::{Arq, ArqError, Dama, DamaError, DropReason, Link, LinkCounters, LinkError, LinkSpec};
use fairpace_units::{Bytes, Class, Duration, Ecn, Instant, Kind, QsOption};

use crate::check::{bad, check};
use crate::config::{FlowConfig, SimConfig};
use crate::engine::EventSet;
use crate::flow_state::{Endpoint, FlowState, MANY_FLOWS, MOST_FLOWS_TRACED};
use crate::media::{MediaEndpoint, Outgoing};
use crate::packet::{Body, Carries, Direction, FlowId, Packet, QuickStart};
use crate::pcapng::{Observer, PacketEvent, PacketFate, PcapWriter};
use crate::radio::{Member, Radio, RadioConfig};
use crate::report::{
    DelayHistogram, EngineStats, FlowCounts, GroupReport, LinkReport, LinkRow, SeriesRow, SimReport, count, per_second,
};
use crate::satellite::Satellite;
use crate::tcp::TcpAck;

/// Why a configuration cannot run.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SimError {
    /// Nothing to simulate.
    #[error("`flows` is empty; at least one flow is needed")]
    NoFlows,
    /// Two flows of one name would share their random streams.
    #[error("two flows are called `{name}`; names must be unique")]
    DuplicateName {
        /// The name.
        name: String,
    },
    /// A link cannot be built.
    #[error("{link}: {source}")]
    Link {
        /// `bottleneck`, `reverse` or `flow.<name>.<side>`.
        link: String,
        /// What is wrong with it.
        source: LinkError,
    },
    /// The satellite cannot be built.
    #[error("satellite: {0}")]
    Satellite(#[from] DamaError),
    /// A flow through a satellite that is not there.
    #[error("flow `{flow}`: `terminals` is given, and there is no satellite; give `dama`, or leave `terminals` out")]
    NoSatellite {
        /// The flow's name.
        flow: String,
    },
    /// A terminal that is not there.
    #[error("flow `{flow}`: `terminals` has {found}; the satellite has {terminals} terminals, numbered from 0")]
    NoTerminal {
        /// The flow's name.
        flow: String,
        /// The terminal given.
        found: u32,
        /// How many there are.
        terminals: u32,
    },
    /// A flow that would not need the satellite.
    #[error("flow `{flow}`: `terminals` has {terminal} twice; sender and receiver must be at different ones")]
    SameTerminal {
        /// The flow's name.
        flow: String,
        /// The terminal.
        terminal: u32,
    },
    /// The radio's downlink cannot be built.
    #[error("radio.downlink: {0}")]
    Radio(#[from] ArqError),
    /// A flow over a radio that is not there.
    #[error("flow `{flow}`: `user` is given, and there is no radio; give `radio`, or leave `user` out")]
    NoRadio {
        /// The flow's name.
        flow: String,
    },
    /// A user that is not there.
    #[error("flow `{flow}`: `user` is {found}; the radio has {users} users, numbered from 0")]
    NoUser {
        /// The flow's name.
        flow: String,
        /// The user given.
        found: u32,
        /// How many there are.
        users: u32,
    },
    /// Two hops in one place.
    #[error("flow `{flow}`: `user` and `access.{side}` are given; the user's link is that hop, leave one of them out")]
    TwoHops {
        /// The flow's name.
        flow: String,
        /// `forward_out` or `back_in`.
        side: &'static str,
    },
    /// A controller cannot be built.
    #[error("flow `{flow}`: {source}")]
    Controller {
        /// The flow's name.
        flow: String,
        /// What is wrong with its settings.
        source: fairpace_control::ParamError,
    },
    /// A flow over TCP and UDP in turn has no TCP.
    #[error("flow `{flow}`: `{controller}` sends over TCP too, and `tcp` is missing; give it one")]
    NoTcpHalf {
        /// The flow's name.
        flow: String,
        /// Its controller.
        controller: String,
    },
    /// A TCP that nothing would be sent over.
    #[error("flow `{flow}`: `tcp` is given, and `{controller}` sends over UDP only; leave it out")]
    UselessTcpHalf {
        /// The flow's name.
        flow: String,
        /// Its controller.
        controller: String,
    },
    /// A value that cannot be.
    #[error("`{field}` is {found}; {allowed}")]
    BadValue {
        /// The field.
        field: String,
        /// What it is.
        found: String,
        /// What it may be.
        allowed: &'static str,
    },
}

/// A packet of an external flow that is about to enter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entering {
    /// Its flow.
    pub flow: FlowId,
    /// Which way it goes.
    pub direction: Direction,
    /// Its IP size.
    pub size: Bytes,
    /// Which class a two-priority queue puts it in.
    pub class: Class,
    /// Its ECN field.
    pub ecn: Ecn,
    /// Its Quick-Start option, if it has one.
    pub quick_start: Option<QsOption>,
    /// What it is counted as.
    pub carries: Carries,
    /// What it comes out with: the caller's.
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
    /// Which way it went.
    pub direction: Direction,
    /// What was given to [`Network::inject`].
    pub token: u64,
    /// Its ECN field.
    pub ecn: Ecn,
    /// Its Quick-Start option as the routers left it, if it entered with one.
    pub quick_start: Option<QsOption>,
    /// When it came out.
    pub at: Instant,
}

/// A packet of an external flow that will not come out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dropped {
    /// Its flow.
    pub flow: FlowId,
    /// Which way it went.
    pub direction: Direction,
    /// What was given to [`Network::inject`].
    pub token: u64,
    /// Why.
    pub reason: DropReason,
    /// Where: an index of [`Network::link_names`].
    pub link: u32,
    /// When.
    pub at: Instant,
}

/// Index of the shared link towards the receivers in [`SimReport::links`].
pub const BOTTLENECK: u32 = 0;
/// Index of the shared link towards the senders.
pub const REVERSE: u32 = 1;

/// Runs a configuration to its end.
///
/// # Errors
/// [`SimError`] names the field, flow or link that cannot be.
pub fn run(config: SimConfig) -> Result<SimReport, SimError> {
    let mut network = Network::new(&config)?;
    let end = Instant::ZERO + config.duration;
    drop(config); // tens of thousands of flows are large
    network.advance(end);
    Ok(network.into_report())
}

/// As [`run`], and tells `observer` of every packet.
///
/// # Errors
/// As [`run`].
pub fn run_observed(config: SimConfig, observer: Box<dyn Observer>) -> Result<SimReport, SimError> {
    let mut network = Network::new(&config)?;
    network.observe(observer);
    let end = Instant::ZERO + config.duration;
    drop(config);
    network.advance(end);
    Ok(network.into_report())
}

/// Links, flows and pending events.
pub struct Network {
    now: Instant,
    events: EventSet,
    links: Vec<LinkSlot>,
    satellite: Option<Box<Satellite>>,
    radio: Option<Box<Radio>>,
    flows: Vec<FlowState>,
    groups: Vec<Group>,
    /// There are [`MANY_FLOWS`] or more.
    many: bool,
    /// Of many flows: those that have begun and were not over at the last sample.
    sampled: BTreeSet<FlowId>,
    opening: Option<Duration>,
    /// Two per flow: forward and back.
    routes: Vec<Route>,
    stats: EngineStats,
    /// Packets that came out of links.
    moved: u64,
    delivered: VecDeque<Delivered>,
    dropped: VecDeque<Dropped>,
    observer: Option<Box<dyn Observer>>,
    pcap: Option<PcapWriter<Vec<u8>>>,
    sampling: Option<Sampling>,
    warmup: Instant,
    trace: bool,
    series: Vec<SeriesRow>,
    link_series: Vec<LinkRow>,
}

struct LinkSlot {
    link: Link<Packet>,
    /// When its entry in the event set comes up; never if it has none.
    armed: Instant,
    /// Its place in [`Route::links`]. So a packet need not know where it is, and is never written to
    /// on its way: a copy right after such a write would stall the processor.
    stage: usize,
    name: String,
    at_warmup: LinkCounters,
}

#[derive(Clone, Copy)]
struct Route {
    /// Before, through and behind the shared link; [`NO_LINK`] where there is none. With [`TERMINAL`] it is a
    /// terminal of the satellite, with [`DOWNLINK`] a user of the radio; a link or
    /// terminal behind the base station has [`BASE_STATION`] too.
    links: [u32; 3],
}

const NO_LINK: u32 = u32::MAX;
/// Added to the number of a terminal; there are fewer than 2^24.
const TERMINAL: u32 = 1 << 31;
/// Added to the number of a user; there are fewer than 2^24 too.
const DOWNLINK: u32 = 1 << 30;
/// Added to a link or terminal that packets enter behind the base station, which writes windows into them. The number
/// of a link is below 2^28.
const BASE_STATION: u32 = 1 << 29;
/// The place of the shared link, or the satellite, in a route.
const SHARED: usize = 1;
/// The place of the radio.
const LAST: usize = 2;

/// Flows that are reported together.
struct Group {
    name: String,
    flows: u32,
    /// Its delays are noted here as well as, coarsely, at each of its many flows; if not, they are added up in
    /// the end.
    shared: bool,
    owd: DelayHistogram,
    e2ed: DelayHistogram,
    opening: DelayHistogram,
}

impl Group {
    fn new(name: String) -> Self {
        let delays = DelayHistogram::default;
        Group { name, flows: 0, shared: false, owd: delays(), e2ed: delays(), opening: delays() }
    }
}

struct Sampling {
    interval: Duration,
    links: [LinkCounters; 2],
    last: Instant,
}

// What an entry of the event set is about: the low four bits; the rest is an index.
const LINK: u32 = 0;
const SENDER: u32 = 1;
const RECEIVER: u32 = 2;
const START: u32 = 3;
const STOP: u32 = 4;
const SAMPLE: u32 = 5;
const WARMUP: u32 = 6;
const CHECKPOINT: u32 = 7;
const SENDER_SOON: u32 = 8;
const SATELLITE: u32 = 9;
const PLAN: u32 = 10;
const RADIO: u32 = 11;
const KIND_BITS: u32 = 4;
const KIND_MASK: u32 = 0xf;

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
        let (mut names, mut groups) = (BTreeSet::new(), BTreeMap::new());
        let mut network = Network {
            now: Instant::ZERO,
            events: EventSet::default(),
            links: Vec::new(),
            satellite: None,
            radio: None,
            flows: Vec::with_capacity(config.flows.len()),
            groups: Vec::new(),
            many: config.flows.len() >= MANY_FLOWS,
            sampled: BTreeSet::new(),
            opening: config.opening,
            routes: Vec::with_capacity(2 * config.flows.len()),
            stats: EngineStats::default(),
            moved: 0,
            delivered: VecDeque::new(),
            dropped: VecDeque::new(),
            observer: None,
            pcap: None,
            sampling: config.sample.map(|interval| Sampling {
                interval,
                links: [LinkCounters::default(); 2],
                last: Instant::ZERO,
            }),
            warmup: Instant::ZERO + config.warmup,
            trace: config.trace,
            series: Vec::new(),
            link_series: Vec::new(),
        };
        network.add_link("bottleneck".to_owned(), &config.bottleneck, config.seed, SHARED)?;
        network.add_link("reverse".to_owned(), &config.reverse, config.seed, SHARED)?;
        if let Some(spec) = &config.dama {
            let dama = Dama::new(spec, config.seed, "satellite")?;
            network.satellite = Some(Box::new(Satellite::new(dama, config.trace)));
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
        if config.pcap {
            network.pcap = Some(PcapWriter::new(Vec::new(), network.link_names()));
        }
        Ok(network)
    }

    fn add_link(&mut self, name: String, spec: &LinkSpec, seed: u64, stage: usize) -> Result<u32, SimError> {
        let mut link = Link::new(spec, seed, &name).map_err(|source| SimError::Link { link: name.clone(), source })?;
        link.record_drops(true);
        self.links.push(LinkSlot { link, armed: Instant::NEVER, stage, name, at_warmup: LinkCounters::default() });
        Ok(self.links.len() as u32 - 1)
    }

    fn add_radio(&mut self, radio: &RadioConfig, config: &SimConfig) -> Result<(), SimError> {
        let arq = Arq::new(&radio.downlink, config.seed, "radio")?;
        let first_uplink = self.links.len() as u32;
        let uplink = radio.uplink.clone().unwrap_or_default();
        for user in 0..arq.users() {
            self.add_link(format!("radio.user{user}.uplink"), &uplink, config.seed, 0)?;
        }
        self.radio = Some(Box::new(Radio::new(arq, radio, first_uplink, config.trace)));
        Ok(())
    }

    fn add_flow(&mut self, config: &FlowConfig, group: usize, sim: &SimConfig) -> Result<(), SimError> {
        check(config)?;
        let [there, back] = match config.terminals {
            Some(terminals) => self.attach(config, terminals)?,
            None => [BOTTLENECK, REVERSE],
        };
        let on_air = config.user.map(|user| self.check_user(config, user)).transpose()?;
        for (shared, first, last) in [
            (there, ("forward_in", &config.access.forward_in), ("forward_out", &config.access.forward_out)),
            (back, ("back_in", &config.access.back_in), ("back_out", &config.access.back_out)),
        ] {
            let mut route = Route { links: [NO_LINK, shared, NO_LINK] };
            for (stage, (side, spec)) in [(0, first), (2, last)] {
                if let Some(spec) = spec {
                    route.links[stage] =
                        self.add_link(format!("flow.{}.{side}", config.name), spec, sim.seed, stage)?;
                }
            }
            self.routes.push(route);
        }
        if let Some([downlink, uplink]) = on_air
            && let [.., there, back] = &mut self.routes[..]
        {
            (there.links[LAST], back.links[0]) = (downlink, uplink);
            back.links[SHARED] |= BASE_STATION;
        }
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
            flow.rtt_bound = flow.delay_bound.saturating_add(nanos(feedback));
        }
        if let (Some(user), Some(radio), true) = (config.user, &mut self.radio, flow.takes_window) {
            let min_rtt = sim.min_rtt(config);
            radio.attach(Member { flow: self.flows.len() as FlowId, user, min_rtt, share: config.share });
        }
        self.flows.push(flow);
        Ok(())
    }

    /// A flow goes over the radio: its last hop there, and its first one back.
    fn check_user(&self, config: &FlowConfig, user: u32) -> Result<[u32; 2], SimError> {
        let flow = || config.name.clone();
        let Some(radio) = &self.radio else { return Err(SimError::NoRadio { flow: flow() }) };
        let users = radio.arq.users();
        if user >= users {
            return Err(SimError::NoUser { flow: flow(), found: user, users });
        }
        for (side, link) in [("forward_out", &config.access.forward_out), ("back_in", &config.access.back_in)] {
            if link.is_some() {
                return Err(SimError::TwoHops { flow: flow(), side });
            }
        }
        Ok([DOWNLINK | user, radio.first_uplink + user])
    }

    /// A flow goes through the satellite: its ways there and back.
    fn attach(&mut self, config: &FlowConfig, terminals: [u32; 2]) -> Result<[u32; 2], SimError> {
        let flow = config.name.clone();
        let Some(satellite) = &mut self.satellite else { return Err(SimError::NoSatellite { flow }) };
        let all = satellite.dama.terminals();
        if let Some(&found) = terminals.iter().find(|i| **i >= all) {
            return Err(SimError::NoTerminal { flow, found, terminals: all });
        }
        if terminals[0] == terminals[1] {
            return Err(SimError::SameTerminal { flow, terminal: terminals[0] });
        }
        for terminal in terminals {
            satellite.attach(terminal);
        }
        Ok(terminals.map(|i| TERMINAL | i))
    }

    // The driver's side.

    /// Tells `observer` of every packet from now on.
    pub fn observe(&mut self, observer: Box<dyn Observer>) {
        self.observer = Some(observer);
    }

    /// Lets everything happen up to and including `to`.
    pub fn advance(&mut self, to: Instant) {
        self.advance_some(to, u64::MAX);
    }

    /// As [`Network::advance`], but after about `work` events and packet-hops it is enough: true if
    /// everything due by `to` has happened. So a caller can listen to Ctrl-C however much happens at
    /// one instant.
    pub fn advance_some(&mut self, to: Instant, work: u64) -> bool {
        // One event may move a whole window of packets that come out at the same time.
        let enough = (self.stats.events + self.moved).saturating_add(work);
        while let Some((at, target)) = self.events.peek() {
            if at > to {
                break;
            }
            if self.stats.events + self.moved >= enough {
                return false;
            }
            self.now = at;
            self.stats.events += 1;
            match target & KIND_MASK {
                LINK => self.link_event(at, (target >> KIND_BITS) as usize),
                SATELLITE => self.satellite_event(at),
                RADIO => self.radio_event(at),
                _ => {
                    self.events.pop();
                    self.other_event(at, target);
                }
            }
        }
        self.now = self.now.max(to);
        true
    }

    /// When something happens next; never if nothing will.
    pub fn next(&self) -> Instant {
        self.events.peek().map_or(Instant::NEVER, |(at, _)| at)
    }

    /// Up to when everything has happened.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// A packet of an external flow enters at its first link. Everything due by `now` happens
    /// before; an earlier `now` than the last one counts as that. Routers that know Quick-Start read and
    /// change its option. False if there is no such flow.
    pub fn inject(&mut self, now: Instant, packet: Entering) -> bool {
        self.advance(now);
        let Entering { flow, direction, size, class, ecn, quick_start, carries, token } = packet;
        if flow as usize >= self.flows.len() {
            return false;
        }
        let size = size.get().min(u64::from(u32::MAX)) as u32;
        let body = Body::External { token, carries };
        let (sent_at, quick_start) = (self.now, quick_start.map(QuickStart::Option));
        self.send(self.now, Packet { sent_at, body, flow, size, direction, class, ecn, quick_start });
        true
    }

    /// The next packet of an external flow that has come out.
    pub fn take_delivered(&mut self) -> Option<Delivered> {
        self.delivered.pop_front()
    }

    /// The next packet of an external flow that was dropped.
    pub fn take_dropped(&mut self) -> Option<Dropped> {
        self.dropped.pop_front()
    }

    /// What can drop packets, in the order of [`PacketFate::Dropped`]: the links, the satellite's terminals, the
    /// radio's users.
    pub fn link_names(&self) -> Vec<String> {
        let links = self.links.iter().map(|slot| slot.name.clone());
        let terminals = 0..self.satellite.as_ref().map_or(0, |s| s.dama.terminals());
        let users = 0..self.radio.as_ref().map_or(0, |r| r.arq.users());
        let behind = terminals.map(|i| format!("terminal {i}")).chain(users.map(|i| format!("user {i}")));
        links.chain(behind).collect()
    }

    /// The index of the flow of that name.
    pub fn flow_id(&self, name: &str) -> Option<FlowId> {
        self.flows.iter().position(|f| f.name() == name).map(|i| i as FlowId)
    }

    /// A link as it stands, brought up to [`Network::now`]: [`BOTTLENECK`] and [`REVERSE`] are the
    /// shared ones. `None` if there is no such link.
    pub fn link(&mut self, index: u32) -> Option<&Link<Packet>> {
        let now = self.now;
        let slot = self.links.get_mut(index as usize)?;
        slot.link.advance(now);
        Some(&slot.link)
    }

    /// Counts of a flow so far; `None` if there is no such flow.
    pub fn counts(&self, flow: FlowId) -> Option<&FlowCounts> {
        self.flows.get(flow as usize).map(|f| &f.counts)
    }

    /// What was found so far; the network goes on.
    pub fn report(&mut self) -> SimReport {
        self.make_report(false)
    }

    /// What was found.
    pub fn into_report(mut self) -> SimReport {
        self.make_report(true)
    }

    // The loop.

    #[inline]
    fn link_event(&mut self, at: Instant, link: usize) {
        self.stats.link_events += 1;
        if self.links[link].armed != at {
            // Overtaken: a later push came out earlier (reordering), with an entry of its own.
            self.stats.idle_events += 1;
            self.events.pop();
            return;
        }
        let stage = self.links[link].stage + 1;
        let mut out = 0_u64;
        let next = loop {
            match self.links[link].link.pop(at) {
                Some(packet) => self.forward(at, packet, stage),
                None => break self.links[link].link.next(),
            }
            out += 1;
            let next = self.links[link].link.next();
            if next > at {
                break next;
            }
        };
        self.moved += out;
        if out == 0 {
            self.stats.idle_events += 1;
        }
        self.collect_drops(link);
        // The entry of this link is still the earliest: nothing pushed meanwhile is earlier.
        if next == Instant::NEVER {
            self.events.pop();
        } else {
            self.events.replace_top(next, (link as u32) << KIND_BITS | LINK);
        }
        self.links[link].armed = next;
    }

    fn satellite_event(&mut self, at: Instant) {
        self.stats.link_events += 1;
        self.events.pop();
        let Some(satellite) = &mut self.satellite else { return };
        if satellite.armed != at {
            self.stats.idle_events += 1;
            return;
        }
        let mut out = 0_u64;
        // What is pushed meanwhile is not earlier, and arms nothing.
        while let Some(satellite) = &mut self.satellite
            && let Some((_, packet)) = satellite.dama.pop(at)
        {
            self.forward_apart(at, packet, SHARED + 1);
            out += 1;
        }
        self.moved += out;
        self.stats.idle_events += u64::from(out == 0);
        self.collect_satellite_drops();
        let Some(satellite) = &mut self.satellite else { return };
        if self.trace {
            satellite.collect_events();
        }
        satellite.armed = satellite.dama.next();
        if satellite.armed != Instant::NEVER {
            self.events.push(satellite.armed, SATELLITE);
        }
    }

    /// [`Network::forward`] for all but links.
    #[inline(never)]
    fn forward_apart(&mut self, at: Instant, packet: Packet, stage: usize) {
        self.forward(at, packet, stage);
    }

    fn radio_event(&mut self, at: Instant) {
        self.stats.link_events += 1;
        self.events.pop();
        let Some(radio) = &mut self.radio else { return };
        if radio.armed != at {
            self.stats.idle_events += 1;
            return;
        }
        let mut out = 0_u64;
        while let Some(radio) = &mut self.radio
            && let Some((_, packet)) = radio.arq.pop(at)
        {
            self.forward_apart(at, packet, LAST + 1);
            out += 1;
        }
        self.moved += out;
        self.stats.idle_events += u64::from(out == 0);
        self.collect_radio_drops();
        let Some(radio) = &mut self.radio else { return };
        if self.trace {
            radio.collect_slots();
        }
        radio.armed = radio.arq.next();
        if radio.armed != Instant::NEVER {
            self.events.push(radio.armed, RADIO);
        }
    }

    /// A packet goes where no link of its own is, or past the base station.
    #[inline(never)]
    fn push_to_port(&mut self, at: Instant, link: u32, mut packet: Packet) {
        if link & DOWNLINK != 0 {
            self.push_to_user(at, link & !DOWNLINK, packet);
        } else if link & BASE_STATION != 0 {
            if let Some(radio) = &self.radio {
                radio.write_window(&mut packet);
            }
            self.push(at, link & !BASE_STATION, packet);
        } else {
            self.push_to_terminal(at, link & !TERMINAL, packet);
        }
    }

    /// A packet for that user comes to the base station.
    fn push_to_user(&mut self, at: Instant, user: u32, packet: Packet) {
        let Some(radio) = &mut self.radio else { return };
        radio.arq.push(at, user, packet);
        let next = radio.arq.next();
        if next < radio.armed {
            // An entry that is overtaken stays behind and finds nothing due.
            radio.armed = next;
            self.events.push(next, RADIO);
        }
        self.collect_radio_drops();
    }

    fn collect_radio_drops(&mut self) {
        while let Some(radio) = &mut self.radio
            && let Some((at, reason, packet)) = radio.arq.take_dropped()
        {
            let route = &self.routes[packet.flow as usize * 2 + packet.direction as usize];
            let user = route.links[LAST] & !DOWNLINK;
            let terminals = self.satellite.as_ref().map_or(0, |s| s.dama.terminals());
            self.drop_packet(at, reason, packet, self.links.len() as u32 + terminals + user);
        }
    }

    /// A packet comes to a terminal.
    fn push_to_terminal(&mut self, at: Instant, terminal: u32, packet: Packet) {
        let Some(satellite) = &mut self.satellite else { return };
        satellite.dama.push(at, terminal, packet);
        let next = satellite.dama.next();
        if next < satellite.armed {
            // An entry that is overtaken stays behind and finds nothing due.
            satellite.armed = next;
            self.events.push(next, SATELLITE);
        }
        self.collect_satellite_drops();
    }

    fn collect_satellite_drops(&mut self) {
        while let Some(satellite) = &mut self.satellite
            && let Some((at, reason, packet)) = satellite.dama.take_dropped()
        {
            let route = &self.routes[packet.flow as usize * 2 + packet.direction as usize];
            let terminal = route.links[SHARED] & !(TERMINAL | BASE_STATION);
            self.drop_packet(at, reason, packet, self.links.len() as u32 + terminal);
        }
    }

    /// A packet goes into the first link of its route that is not before `stage`, or arrives.
    #[inline(always)] // a call costs 0.4 % more instructions
    fn forward(&mut self, at: Instant, packet: Packet, stage: usize) {
        let route = &self.routes[packet.flow as usize * 2 + packet.direction as usize];
        for link in &route.links[stage..] {
            if *link != NO_LINK {
                return self.push(at, *link, packet);
            }
        }
        self.arrive(at, packet);
        self.retire(packet.flow as usize);
    }

    /// Lets the endpoint of one of many flows go if the flow is over.
    #[inline]
    fn retire(&mut self, i: usize) {
        if self.many {
            self.flows[i].retire();
        }
    }

    #[inline]
    fn push(&mut self, at: Instant, link: u32, packet: Packet) {
        if link >= BASE_STATION {
            return self.push_to_port(at, link, packet);
        }
        let link = link as usize;
        let slot = &mut self.links[link];
        slot.link.push(at, packet);
        let next = slot.link.next();
        if next < slot.armed {
            // An entry that is overtaken stays behind and finds nothing due: see `link_event`.
            slot.armed = next;
            self.events.push(next, (link as u32) << KIND_BITS | LINK);
        }
        self.collect_drops(link);
    }

    /// A packet enters the network.
    #[inline]
    fn send(&mut self, at: Instant, packet: Packet) {
        let flow = &mut self.flows[packet.flow as usize];
        let counts = &mut flow.counts;
        let counter = match packet.body {
            Body::Media { kind: Kind::Dummy, .. } => &mut counts.dummies_sent,
            _ if packet.direction == Direction::Back => &mut counts.feedback_sent,
            Body::External { carries: Carries::Dummy, .. } => &mut counts.dummies_sent,
            Body::Challenge { .. } | Body::SenderReport | Body::External { carries: Carries::Control, .. } => {
                &mut counts.feedback_sent
            }
            Body::TcpData { retransmission: true, .. } => {
                count(&mut counts.retransmitted, 1, packet.size);
                &mut counts.sent
            }
            _ => &mut counts.sent,
        };
        count(counter, 1, packet.size);
        self.tell(at, &packet, PacketFate::Sent);
        self.forward(at, packet, 0);
    }

    #[inline]
    fn collect_drops(&mut self, link: usize) {
        while let Some((at, reason, packet)) = self.links[link].link.take_dropped() {
            self.drop_packet(at, reason, packet, link as u32);
        }
    }

    #[cold]
    fn drop_packet(&mut self, at: Instant, reason: DropReason, packet: Packet, link: u32) {
        let counts = &mut self.flows[packet.flow as usize].counts;
        let counter = match packet.body {
            Body::Media { kind: Kind::Dummy, .. } => &mut counts.dummies_dropped,
            _ if packet.direction == Direction::Back => &mut counts.feedback_dropped,
            Body::External { carries: Carries::Dummy, .. } => &mut counts.dummies_dropped,
            Body::Challenge { .. } | Body::SenderReport | Body::External { carries: Carries::Control, .. } => {
                &mut counts.feedback_dropped
            }
            _ => &mut counts.drops[reason as usize],
        };
        count(counter, 1, packet.size);
        if let Body::External { token, .. } = packet.body {
            let Packet { flow, direction, .. } = packet;
            self.dropped.push_back(Dropped { flow, direction, token, reason, link, at });
        }
        self.tell(at, &packet, PacketFate::Dropped { reason, link });
        self.retire(packet.flow as usize);
    }

    /// A packet has passed its last link.
    #[inline]
    fn arrive(&mut self, at: Instant, packet: Packet) {
        self.tell(at, &packet, PacketFate::Received);
        let i = packet.flow as usize;
        let flow = &mut self.flows[i];
        let size = packet.size;
        if packet.ecn == Ecn::Ce && packet.direction == Direction::Forward {
            count(&mut flow.counts.marked, 1, size);
        }
        match packet.body {
            Body::TcpData { seq, cwr, .. } => {
                count(&mut flow.counts.received, 1, size);
                self.note_owd(i, at.since(packet.sent_at), size);
                let flow = &mut self.flows[i];
                let Endpoint::Tcp(tcp) = &mut flow.endpoint else { return self.arrive_at_half(at, &packet, seq, cwr) };
                let before = tcp.rx.in_order();
                if cwr || packet.ecn == Ecn::Ce {
                    tcp.rx.on_ecn(packet.ecn == Ecn::Ce, cwr);
                }
                let ack = tcp.rx.on_segment(at, seq);
                count(&mut flow.counts.unique, u64::from(tcp.rx.in_order() - before), size);
                let timer = tcp.rx.poll_timer();
                self.arm(i, RECEIVER, timer);
                if let Some(ack) = ack {
                    self.send_tcp_ack(at, i, ack);
                }
            }
            Body::TcpAck { next, sack, ece } => {
                count(&mut flow.counts.feedback_received, 1, size);
                let ack = TcpAck { next, sack, ece };
                let acknowledged = match &mut flow.endpoint {
                    Endpoint::Tcp(tcp) => {
                        let before = tcp.tx.acknowledged();
                        tcp.tx.on_ack(at, &ack);
                        tcp.note_progress(at);
                        tcp.tx.acknowledged() - before
                    }
                    Endpoint::Media(media) => media.on_tcp_ack(at, &ack),
                    _ => return,
                };
                flow.counts.acknowledged += u64::from(acknowledged);
                self.pump(at, i);
            }
            Body::Media { kind, frame, rtt_us, seq, born } => {
                let Endpoint::Media(media) = &mut flow.endpoint else { return };
                if kind == Kind::Data {
                    count(&mut flow.counts.received, 1, size);
                    count(&mut flow.counts.unique, 1, size);
                    let late = media.on_data(at, seq, frame, born);
                    count(&mut flow.counts.late, u64::from(late), size);
                    self.note_owd(i, at.since(packet.sent_at), size);
                    self.note_e2ed(i, at.since(born), born);
                } else {
                    count(&mut flow.counts.dummies_received, 1, size);
                }
                let Endpoint::Media(media) = &mut self.flows[i].endpoint else { return };
                media.on_packet(at, &packet, kind, seq, rtt_us);
                self.pump_feedback(at, i);
            }
            Body::MediaAck { kind, ecn, proven, seq, arrived_at } => {
                count(&mut flow.counts.feedback_received, 1, size);
                let arrived_at = Some(arrived_at.since(Instant::ZERO));
                let ack = Ack { kind, seq, ecn, arrived_at, ack_delay: Duration::ZERO };
                self.feed(at, &packet, |media| media.on_ack(at, ack, proven));
            }
            Body::Feedback { start, len, proven } => {
                count(&mut flow.counts.feedback_received, 1, size);
                self.feed(at, &packet, |media| media.on_feedback(at, start, len, proven));
            }
            Body::SackVector { vector, ecn, proven, ack, rwnd, delay_us, sent_at } => {
                count(&mut flow.counts.feedback_received, 1, size);
                flow.counts.rtt_samples += 1;
                flow.counts.rtt_outage += u64::from(nanos(at.since(sent_at)) > flow.rtt_bound);
                let ack_delay = Duration::from_micros(delay_us.into());
                let arrived_at = Some(packet.sent_at.since(Instant::ZERO).saturating_sub(ack_delay));
                let sack = SackVector { ack, vector, rwnd, ecn, ack_delay, arrived_at };
                self.feed(at, &packet, |media| media.on_sack_vector(at, &sack, proven));
            }
            Body::RateReport { delay_us, echoed, received_rate, loss_event_rate } => {
                count(&mut flow.counts.feedback_received, 1, size);
                let delay = Duration::from_micros(delay_us.into());
                let report = RateReport { echoed, delay, received_rate, loss_event_rate };
                self.feed(at, &packet, |media| media.on_rate_report(at, &report));
            }
            Body::Report { number } => {
                count(&mut flow.counts.feedback_received, 1, size);
                self.feed(at, &packet, |media| media.on_report(at, number));
            }
            Body::SenderReport => {
                count(&mut flow.counts.feedback_received, 1, size);
                let Endpoint::Media(media) = &mut flow.endpoint else { return };
                media.on_sender_report(at, packet.sent_at);
            }
            Body::Challenge { asked_at, rwnd } => {
                count(&mut flow.counts.feedback_received, 1, size);
                if packet.direction == Direction::Forward {
                    self.send(at, Packet { direction: Direction::Back, sent_at: at, ..packet });
                } else {
                    self.feed(at, &packet, |media| media.on_challenge_answered(at, asked_at, rwnd));
                }
            }
            Body::Constant { .. } => {
                count(&mut flow.counts.received, 1, size);
                count(&mut flow.counts.unique, 1, size);
                self.note_owd(i, at.since(packet.sent_at), size);
            }
            Body::External { token, carries } => {
                let Packet { flow: id, direction, ecn, quick_start, .. } = packet;
                let quick_start = match quick_start {
                    Some(QuickStart::Option(option)) => Some(option),
                    Some(QuickStart::Response(_)) | None => None,
                };
                match (direction, carries) {
                    (Direction::Forward, Carries::Data) => {
                        count(&mut flow.counts.received, 1, size);
                        count(&mut flow.counts.unique, 1, size);
                        self.note_owd(i, at.since(packet.sent_at), size);
                    }
                    (Direction::Forward, Carries::Dummy) => count(&mut flow.counts.dummies_received, 1, size),
                    (Direction::Forward, Carries::Control) | (Direction::Back, _) => {
                        count(&mut flow.counts.feedback_received, 1, size);
                    }
                }
                self.delivered.push_back(Delivered { flow: id, direction, token, ecn, quick_start, at });
            }
        }
    }

    /// A segment of the TCP half of a media flow has arrived.
    #[cold]
    fn arrive_at_half(&mut self, at: Instant, packet: &Packet, seq: u32, cwr: bool) {
        let i = packet.flow as usize;
        let flow = &mut self.flows[i];
        let Endpoint::Media(media) = &mut flow.endpoint else { return };
        let unique = media.on_segment(at, packet, seq, cwr);
        flow.counts.unique.packets += unique.packets;
        flow.counts.unique.bytes += unique.bytes;
        while let Endpoint::Media(media) = &mut self.flows[i].endpoint
            && let Some((size, born, late)) = media.take_delivered(at, packet)
        {
            count(&mut self.flows[i].counts.late, u64::from(late), size);
            self.note_e2ed(i, at.since(born), born);
        }
        self.pump_feedback(at, i);
    }

    #[inline]
    fn note_owd(&mut self, i: usize, owd: Duration, size: u32) {
        let flow = &mut self.flows[i];
        flow.owd.record(owd);
        if nanos(owd) > flow.delay_bound {
            count(&mut flow.counts.outage, 1, size);
        }
        // (With few flows the group's memory is not touched.)
        if self.many
            && let Some(group) = self.groups.get_mut(flow.group as usize).filter(|group| group.shared)
        {
            group.owd.record(owd);
        }
    }

    fn note_e2ed(&mut self, i: usize, e2ed: Duration, born: Instant) {
        let flow = &mut self.flows[i];
        flow.e2ed.record(e2ed);
        let group = &mut self.groups[flow.group as usize];
        if group.shared {
            group.e2ed.record(e2ed);
        }
        if self.opening.is_some_and(|opening| born.since(flow.started) < opening) {
            group.opening.record(e2ed);
        }
    }

    /// Feedback for a media sender, then whatever it may send because of it.
    fn feed(&mut self, at: Instant, packet: &Packet, what: impl FnOnce(&mut MediaEndpoint)) {
        let i = packet.flow as usize;
        let flow = &mut self.flows[i];
        let Endpoint::Media(media) = &mut flow.endpoint else { return };
        let before = media.flow.counters().data.acked;
        what(media);
        if let Some(QuickStart::Response(response)) = &packet.quick_start {
            media.on_quick_start_response(at, response);
        }
        flow.counts.acknowledged += media.flow.counters().data.acked.saturating_sub(before);
        self.pump(at, i);
    }

    /// Sends all that a sender wants to send now, and arms its timer.
    #[inline]
    fn pump(&mut self, at: Instant, i: usize) {
        loop {
            let flow = &mut self.flows[i];
            let (body, size, class, ecn, quick_start) = match &mut flow.endpoint {
                Endpoint::Tcp(tcp) => match tcp.tx.poll_transmit(at) {
                    Some(s) => {
                        let body = Body::TcpData { seq: s.seq, retransmission: s.retransmission, cwr: s.cwr };
                        (body, tcp.size_of(s.seq), Class::Normal, s.ecn, None)
                    }
                    None => break,
                },
                Endpoint::Media(media) => match media.poll_transmit(at) {
                    Some(Outgoing { body, size, class, ecn, quick_start }) => (body, size, class, ecn, quick_start),
                    None => break,
                },
                Endpoint::Constant(constant) => match constant.poll_transmit(at) {
                    Some((seq, size, class)) => {
                        let option = constant.quick_start().map(QuickStart::Option);
                        (Body::Constant { seq }, size, class, Ecn::NotEct, option)
                    }
                    None => break,
                },
                Endpoint::External | Endpoint::Planned(_) | Endpoint::Over(_) => break,
            };
            let class = flow.class_override.unwrap_or(class);
            let direction = Direction::Forward;
            self.send(at, Packet { sent_at: at, body, flow: i as u32, size, direction, class, ecn, quick_start });
        }
        let flow = &mut self.flows[i];
        let (slow, fast) = match &flow.endpoint {
            Endpoint::Tcp(tcp) => (tcp.tx.poll_timeout(), tcp.poll_fast_timer()),
            Endpoint::Media(media) => {
                (flow.counts.produced, flow.counts.overflowed) = (media.produced, media.overflowed);
                if let Some(radio) = &mut self.radio
                    && media.stopped().is_some()
                {
                    radio.leave(at, i as FlowId);
                }
                (media.poll_slow_timer(), media.poll_timer())
            }
            Endpoint::Constant(constant) => (Instant::NEVER, constant.poll_timer()),
            Endpoint::External | Endpoint::Planned(_) | Endpoint::Over(_) => return,
        };
        self.arm(i, SENDER, slow);
        self.arm(i, SENDER_SOON, fast);
    }

    /// Sends all that a media receiver wants to send now, and arms its timer.
    fn pump_feedback(&mut self, at: Instant, i: usize) {
        loop {
            let flow = &mut self.flows[i];
            let Endpoint::Media(media) = &mut flow.endpoint else { return };
            let Some(Outgoing { body, size, class, quick_start, .. }) = media.poll_feedback(at) else {
                let timer = media.poll_feedback_timer();
                return self.arm(i, RECEIVER, timer);
            };
            let class = flow.class_override.unwrap_or(class);
            self.send_back(at, i, body, size, class, quick_start);
        }
    }

    #[inline]
    fn send_tcp_ack(&mut self, at: Instant, i: usize, ack: TcpAck) {
        let flow = &self.flows[i];
        let class = flow.class_override.unwrap_or(Class::Normal);
        let TcpAck { next, sack, ece } = ack;
        self.send_back(at, i, Body::TcpAck { next, sack, ece }, flow.ack_size, class, None);
    }

    #[inline]
    fn send_back(
        &mut self,
        at: Instant,
        i: usize,
        body: Body,
        size: u32,
        class: Class,
        quick_start: Option<QuickStart>,
    ) {
        let (direction, ecn) = (Direction::Back, Ecn::NotEct);
        self.send(at, Packet { sent_at: at, body, flow: i as u32, size, direction, class, ecn, quick_start });
    }

    /// Makes sure that this timer of flow `i` is looked at by `at`.
    #[inline]
    fn arm(&mut self, i: usize, kind: u32, at: Instant) {
        let armed = &mut self.flows[i].armed[slot_of(kind)];
        if at < *armed {
            *armed = at;
            self.events.push(at, (i as u32) << KIND_BITS | kind);
        }
    }

    /// An entry of a timer has come up: false if it was overtaken by an earlier one.
    fn disarm(&mut self, i: usize, kind: u32, at: Instant) -> bool {
        let armed = &mut self.flows[i].armed[slot_of(kind)];
        let valid = *armed == at;
        if valid {
            *armed = Instant::NEVER;
        } else {
            self.stats.idle_events += 1;
        }
        valid
    }

    fn other_event(&mut self, at: Instant, target: u32) {
        self.stats.timer_events += 1;
        let i = (target >> KIND_BITS) as usize;
        match target & KIND_MASK {
            kind @ (SENDER | SENDER_SOON) => {
                if !self.disarm(i, kind, at) {
                    return;
                }
                match &mut self.flows[i].endpoint {
                    Endpoint::Tcp(tcp) => {
                        self.stats.idle_events += u64::from(at < tcp.poll_timer());
                        tcp.on_timer(at);
                    }
                    Endpoint::Constant(constant) => constant.on_timer(at),
                    // Media's timers run inside `poll_transmit`.
                    Endpoint::Media(_) | Endpoint::External | Endpoint::Planned(_) | Endpoint::Over(_) => {}
                }
                self.pump(at, i);
            }
            RECEIVER => {
                if !self.disarm(i, RECEIVER, at) {
                    return;
                }
                match &mut self.flows[i].endpoint {
                    Endpoint::Tcp(tcp) => {
                        let ack = tcp.rx.on_timer(at);
                        let timer = tcp.rx.poll_timer();
                        self.arm(i, RECEIVER, timer);
                        match ack {
                            Some(ack) => self.send_tcp_ack(at, i, ack),
                            None => self.stats.idle_events += 1,
                        }
                    }
                    Endpoint::Media(_) => self.pump_feedback(at, i),
                    Endpoint::Constant(_) | Endpoint::External | Endpoint::Planned(_) | Endpoint::Over(_) => {}
                }
            }
            START => {
                self.flows[i].start(at);
                if self.many && self.sampling.is_some() && !self.flows[i].ended {
                    self.sampled.insert(i as FlowId);
                }
                if let Some(radio) = &mut self.radio
                    && !self.flows[i].ended
                {
                    radio.join(at, i as FlowId);
                }
                self.pump(at, i);
            }
            STOP => {
                self.flows[i].stop();
                if let Some(radio) = &mut self.radio {
                    radio.leave(at, i as FlowId);
                }
                self.retire(i);
            }
            SAMPLE => self.sample(at),
            WARMUP => self.end_warmup(at),
            PLAN => {
                if let Some(satellite) = &mut self.satellite {
                    satellite.note_plans(at);
                }
            }
            CHECKPOINT => {
                for flow in &mut self.flows {
                    flow.note_checkpoint(at);
                }
            }
            _ => debug_assert!(false, "links and satellite have their own"),
        }
    }

    // What is noted.

    #[inline]
    fn tell(&mut self, at: Instant, packet: &Packet, fate: PacketFate) {
        if self.observer.is_some() || self.pcap.is_some() {
            self.tell_observers(at, packet, fate);
        }
    }

    #[cold]
    fn tell_observers(&mut self, at: Instant, packet: &Packet, fate: PacketFate) {
        let event = PacketEvent { at, packet: *packet, fate };
        if let Some(pcap) = &mut self.pcap {
            pcap.write(&event);
        }
        if let Some(observer) = &mut self.observer {
            observer.on_packet(&event);
        }
    }

    fn end_warmup(&mut self, at: Instant) {
        for slot in &mut self.links {
            slot.link.advance(at);
            slot.link.restart_maximum();
            slot.at_warmup = *slot.link.counters();
        }
        if let Some(satellite) = &mut self.satellite {
            satellite.end_warmup(at);
        }
        if let Some(radio) = &mut self.radio {
            radio.end_warmup(at);
        }
        for flow in &mut self.flows {
            flow.end_warmup(at);
        }
        for group in &mut self.groups {
            for delays in [&mut group.owd, &mut group.e2ed, &mut group.opening] {
                delays.clear();
            }
        }
    }

    fn sample(&mut self, at: Instant) {
        let Some(sampling) = &mut self.sampling else { return };
        let interval = at.since(sampling.last);
        sampling.last = at;
        for (i, before) in sampling.links.iter_mut().enumerate() {
            let link = &mut self.links[i].link;
            link.advance(at);
            let since = link.counters().since(before);
            *before = *link.counters();
            self.link_series.push(LinkRow {
                at,
                link: i as u32,
                queue_packets: link.queue_len() as u64,
                queue_bytes: link.queue_bytes(),
                throughput: per_second(since.transmitted.bytes, interval),
                capacity: link.capacity_at(at),
                drops: since.total().dropped_in_all().packets.get(),
            });
        }
        if let Some(satellite) = &mut self.satellite {
            satellite.sample(at, interval);
        }
        if let Some(radio) = &mut self.radio {
            radio.sample(at, interval);
        }
        let next = at + sampling.interval;
        if self.many {
            for i in &self.sampled {
                self.series.push(self.flows[*i as usize].sample(at, *i, interval));
            }
            self.sampled.retain(|i| !matches!(self.flows[*i as usize].endpoint, Endpoint::Over(_)));
        } else {
            for (i, flow) in (0..).zip(&mut self.flows) {
                self.series.push(flow.sample(at, i, interval));
            }
        }
        self.events.push(next, SAMPLE);
    }

    fn group_reports(&self) -> Vec<GroupReport> {
        let of = |group: &Group| GroupReport {
            name: group.name.clone(),
            flows: group.flows,
            owd: group.owd.clone(),
            e2ed: group.e2ed.clone(),
            opening: group.opening.clone(),
        };
        let mut reports: Vec<_> = self.groups.iter().map(of).collect();
        for flow in &self.flows {
            let (group, report) = (&self.groups[flow.group as usize], &mut reports[flow.group as usize]);
            if group.flows == 1 {
                (report.owd, report.e2ed) = (flow.owd.clone(), flow.e2ed.clone());
            } else if !group.shared {
                report.owd.add(&flow.owd);
                report.e2ed.add(&flow.e2ed);
            }
        }
        reports
    }

    fn make_report(&mut self, last: bool) -> SimReport {
        let end = self.now;
        let window = end.since(self.warmup);
        let mut report = SimReport { engine: self.stats, ..SimReport::default() };
        for i in 0..self.links.len() {
            self.links[i].link.advance(end);
            self.collect_drops(i);
        }
        for slot in &self.links {
            let whole = *slot.link.counters();
            let measured = whole.since(&slot.at_warmup);
            let carried = measured.transmitted.bytes.as_f64() * 8.0;
            let could = slot.link.capacity_between(self.warmup, end).filter(|bits| *bits > 0.0);
            report.engine.packet_hops += whole.transmitted.packets.get();
            report.links.push(LinkReport {
                name: slot.name.clone(),
                whole,
                measured,
                utilization: could.map(|bits| carried / bits),
                inside: slot.link.inside() as u64,
                quick_start: slot.link.quick_start().copied(),
            });
        }
        if let Some(satellite) = &mut self.satellite {
            satellite.dama.advance(end);
            self.collect_satellite_drops();
        }
        if let Some(satellite) = &mut self.satellite {
            report.engine.packet_hops += satellite.transmitted();
            report.satellite = Some(satellite.report(self.warmup, end));
        }
        if let Some(radio) = &mut self.radio {
            radio.arq.advance(end);
            self.collect_radio_drops();
        }
        if let Some(radio) = &mut self.radio {
            report.engine.packet_hops += radio.transmitted();
            report.radio = Some(radio.report());
        }
        report.engine.max_pending = self.events.max_len() as u64;
        report.groups = self.group_reports();
        for (i, flow) in (0..).zip(&mut self.flows) {
            report.flows.push(flow.report(end, window, &self.groups[flow.group as usize].name, last));
            if self.trace {
                report.events.extend(flow.drain_events().into_iter().map(|event| (i, event)));
            }
        }
        if last {
            report.series = std::mem::take(&mut self.series);
            report.link_series = std::mem::take(&mut self.link_series);
            // Writing to memory cannot fail.
            report.pcapng = self.pcap.take().and_then(|pcap| pcap.finish().ok());
        } else {
            report.series.clone_from(&self.series);
            report.link_series.clone_from(&self.link_series);
        }
        report
    }
}

/// 585 years at most.
fn nanos(d: Duration) -> u64 {
    d.as_nanos() as u64
}

/// Where [`FlowState::armed`] keeps that timer.
const fn slot_of(kind: u32) -> usize {
    match kind {
        SENDER => 0,
        RECEIVER => 1,
        _ => 2,
    }
}
