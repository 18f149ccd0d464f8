//! A network in virtual time: media, flows, and the loop that moves packets between them.
//!
//! One event per packet-hop at most: the exit of a packet from a medium is the event, and what happens then
//! (next hop, endpoint, answer) happens at once; where nobody could tell the difference, exits need none (`early.rs`). A medium has one valid
//! entry at most in the pending-event set, for its next exit, or one for each packet in it; each timer of an endpoint at most one, re-armed lazily: an entry that
//! comes too early, or was overtaken, finds nothing due.
//!
//! The same network runs in real time inside the relay: [`Network::advance`] to now,
//! [`Network::inject`] what arrived, [`Network::take_delivered`] what comes out.
//!
//! Here the loop. `route.rs`: where packets go. `send.rs` and `arrive.rs`: the two ends of a route. `build.rs`: from
//! a configuration to a network. `record.rs`: what is noted, and the report.

mod ahead;
mod arrivals;
mod arrive;
mod build;
mod carrier;
mod comers;
mod coming;
mod early;
mod error;
mod external;
mod notes;
mod places;
mod record;
mod route;
mod send;
mod store;
mod ticket;

use std::collections::{BTreeSet, VecDeque};

use fairpace_control::FlowEvent;
use fairpace_path::{DropReason, Lane, Link};
use fairpace_units::{Duration, Instant};

use crate::base_station::{Allotted, Station};
use crate::config::SimConfig;
use crate::counts::count;
use crate::engine::{Event, EventSet};
use crate::flow_state::{Endpoint, FlowState};
use crate::hop::Hop;
use crate::packet::{Body, FlowId, Packet, QuickStart, Traffic};
use crate::pcapng::{Observer, PacketFate, PcapWriter};
use crate::radio::Radio;
use crate::report::{EngineStats, FlowCounts, LinkRow, SeriesRow, SimReport};
use crate::satellite::Satellite;
use arrivals::Arrivals;
use carrier::Carrier;
use comers::Comers;
pub use error::SimError;
pub use external::{Delivered, Dropped, Entering};
use notes::{Group, Notes, Sampling};
use route::{Routes, route_of};
use store::{PLACE_BITS, Store};
pub use ticket::Ticket;

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

/// Media, flows and pending events.
pub struct Network {
    // The loop.
    now: Instant,
    events: EventSet,
    /// All media; a [`Hop`] has an index of these.
    media: Vec<Slot>,
    /// One per medium.
    entrances: Vec<Entrance>,
    /// The packets that are in links.
    store: Store,
    /// Two per flow: forward and back.
    routes: Routes,
    base_stations: Vec<Station>,
    flows: Vec<FlowState>,
    /// There are [`MANY_FLOWS`](crate::MANY_FLOWS) or more.
    many: bool,
    /// The memory that the next events touch is asked for before they come.
    looks_ahead: bool,
    /// How many events were taken, to look at some together.
    looks: u32,
    /// Of the events that were looked at last, some touch more than most.
    looks_closer: bool,
    arrivals: Arrivals,
    /// Packets that come out of a link before this instant may be brought to the next one at once: see `early.rs`.
    early_until: Instant,
    /// As `early_until`, as they enter the link.
    at_once_until: Instant,
    /// Packets that are brought early and come out at the end of their route before this instant may arrive at once.
    arrive_until: Instant,
    /// The last instant at which one arrived so.
    arrived_until: Instant,
    /// The checkpoints and the ends of flows that are still to come, the next one last.
    looks_planned: Vec<Instant>,
    /// By medium: what is known of packets that come out of a link from which exits are known. Apart from the slots, since nothing else of those is touched
    /// then.
    nexts: Vec<Onward>,
    /// Scratch: packets that are brought, and when.
    batch: Vec<(Instant, Ticket)>,
    stats: EngineStats,
    delivered: VecDeque<Delivered>,
    dropped: VecDeque<Dropped>,
    /// There is an observer or a pcap.
    observed: bool,
    observer: Option<Box<dyn Observer>>,
    pcap: Option<PcapWriter<Vec<u8>>>,

    // The records of the medium.
    /// One per medium.
    notes: Vec<Notes>,
    /// How many of the media are links.
    links: u32,
    /// The short cuts that this run takes.
    short_cuts: ShortCuts,
    /// The links of the hops that are links, which flows share.
    shared: Vec<u32>,
    /// Some of them are feeders, or would be if not each exit had an event: see `early.rs`.
    has_feeders: bool,
    /// The end of the present [`Network::advance`].
    until: Instant,
    satellites: Vec<Satellite>,
    radios: Vec<Radio>,
    groups: Vec<Group>,
    comers: Option<Box<Comers>>,
    /// The events of controllers whose flows came and are over.
    flow_events: Vec<(FlowId, FlowEvent)>,
    /// Of many flows: those that have begun and were not over at the last sample.
    sampled: BTreeSet<FlowId>,
    opening: Option<Duration>,
    sampling: Option<Sampling>,
    warmup: Instant,
    trace: bool,
    series: Vec<SeriesRow>,
    link_series: Vec<LinkRow>,
}

/// A medium as the loop sees it, in whole cache lines; what is only read now and then is in [`Notes`]. A packet that is
/// popped from a plain link touches the first three.
#[repr(C, align(64))]
struct Slot {
    /// When its entry in the event set comes up; never if it has none, or one for each packet.
    armed: Instant,
    /// Of a link: the hop that follows it in all routes, if that is the same in all.
    next: Option<Hop>,
    exits: Exits,
    /// Its first place in any route. So a packet need not know where it is, and is never written to
    /// on its way: a copy right after such a write would stall the processor.
    place: u16,
    carrier: Carrier,
}

/// The entrance of a medium: all that a packet touches of a flow's own link that is as large as those before. In a cache line of its own, beside those of
/// the flow's other links.
#[repr(C, align(64))]
struct Entrance {
    /// Open where exits are known.
    lane: Lane,
    /// When the last of its entries in the event set comes up, where exits are known.
    awaited: Instant,
    /// The size of the packets whose entries are marked [`ALIKE`]; greater than any if there are none.
    alike: u32,
    is_link: bool,
    /// Packets arrive when they come out.
    arrives: bool,
}

const _: () = assert!(size_of::<Entrance>() == 64);

impl Entrance {
    /// Whether a packet that comes out at that instant may arrive before its time has come: no packet before it has an event, and nobody looks before.
    #[inline(always)]
    fn may_arrive(&self, now: Instant, exit: Instant, until: Instant) -> bool {
        self.arrives && self.awaited < now && exit < until
    }

    /// The marks of the entry of a packet's exit.
    #[inline(always)]
    fn marks_of(&self, ticket: Ticket) -> u32 {
        let alike = if ticket.is_unmarked(self.alike) { ALIKE } else { 0 };
        if self.arrives { ARRIVES } else { alike }
    }
}

impl ShortCuts {
    fn are_taken(self) -> bool {
        matches!(self, ShortCuts::All | ShortCuts::Looking)
    }
}

/// The way in which packets leave a medium.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Exits {
    /// The medium is asked when the next one comes out, by its one entry in the event set.
    Asked,
    /// A link knows so when a packet goes in: each packet has an entry, which comes with it, and nothing is asked.
    Known,
    /// Packets may be brought to the next link, from which exits are known, before they come out.
    Early,
}

/// The packets that come out of a link from which exits are known: where they go, and what their tickets have in common if the link is on one route alone.
#[derive(Clone, Copy)]
struct Onward {
    hop: Hop,
    route: u32,
    size: u32,
}

/// The cargo of an entry of a known exit is the packet's place in the store. This bit says that the packet arrives then.
const ARRIVES: u32 = 1 << 31;
/// And this that it goes on, is of its link's one route, and as large there as most, without a mark: so nobody need look at it then.
const ALIKE: u32 = 1 << 30;
const _: () = assert!(PLACE_BITS < ALIKE);

const _: () = assert!(size_of::<Slot>() <= 256 && std::mem::offset_of!(Slot, carrier) == 24);

/// The short cuts of a run. Results are the same with all of them and with none.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ShortCuts {
    All,
    /// As [`ShortCuts::All`], and what the next events touch is asked for however few flows there are.
    Looking,
    /// Each exit has an event.
    Stepwise,
    /// And no link takes the plain links' path.
    None,
}

// The kind of an entry in the event set: its highest four bits; the rest is an index. Events of one instant come in the order of their
// kinds: what is noted, before anything happens; flows that end, and that begin, in the order of the configuration; media; and timers, since
// a packet that comes at the last instant has come in time. Media, and timers of a kind, have an order that changes from instant to instant.
const WARMUP: u32 = 0;
const CHECKPOINT: u32 = 1;
const PLAN: u32 = 2;
const SAMPLE: u32 = 3;
const STOP: u32 = 4;
const START: u32 = 5;
const MEDIUM: u32 = 8;
const SENDER: u32 = 9;
const SENDER_SOON: u32 = 10;
const RECEIVER: u32 = 11;
const KIND_SHIFT: u32 = Event::INDEX_BITS;
const _: () = assert!(MEDIUM << KIND_SHIFT == Event::DRAWN);

/// An entry's target.
const fn target_of(kind: u32, index: u32) -> u32 {
    kind << KIND_SHIFT | index
}

/// Its kind.
const fn kind_of(target: u32) -> u32 {
    target >> KIND_SHIFT
}

/// Its index.
const fn index_of(target: u32) -> u32 {
    target & ((1 << KIND_SHIFT) - 1)
}

impl Network {
    // The driver's side.

    /// Tells `observer` of every packet from now on.
    pub fn observe(&mut self, observer: Box<dyn Observer>) {
        self.observer = Some(observer);
        self.observed = true;
        self.set_early_until();
    }

    /// Lets everything happen up to and including `to`.
    pub fn advance(&mut self, to: Instant) {
        self.advance_some(to, u64::MAX);
    }

    /// As [`Network::advance`], but after about `work` events and packet-hops it is enough, and what is on the way into flows' own links
    /// behind shared ones: true if everything due by `to` has happened. So a caller can listen to Ctrl-C however much happens at
    /// one instant.
    pub fn advance_some(&mut self, to: Instant, work: u64) -> bool {
        if self.run_until(to, work) {
            return true;
        }
        let ahead = self.brought_until().max(self.arrived_until);
        if ahead > self.now {
            self.run_until(ahead, u64::MAX);
        } else {
            self.end_early();
        }
        ahead >= to
    }

    fn run_until(&mut self, to: Instant, work: u64) -> bool {
        self.until = to;
        self.set_early_until();
        // Two loops, so that a run of few flows has no instruction of the other.
        if self.looks_ahead { self.loop_until::<true>(to, work) } else { self.loop_until::<false>(to, work) }
    }

    /// [`Network::run_until`], with or without looking at the next events before they come.
    #[inline(always)]
    fn loop_until<const AHEAD: bool>(&mut self, to: Instant, work: u64) -> bool {
        // One event may move a whole window of packets that come out at the same time.
        let mut left = work;
        loop {
            if left == 0 && self.events.peek().is_some_and(|next| next <= to) {
                return false;
            }
            let taken = if AHEAD { self.events.take_ahead(to) } else { self.events.take(to) };
            let Some(Event { at, target, cargo }) = taken else { break };
            self.now = at;
            if AHEAD {
                self.look_ahead();
            }
            if kind_of(target) == MEDIUM {
                left = left.saturating_sub(1 + self.medium_event(at, index_of(target), cargo));
            } else {
                left = left.saturating_sub(1);
                self.events.done();
                self.other_event(at, target);
            }
        }
        self.now = self.now.max(to);
        self.end_early();
        true
    }

    /// When something happens next; never if nothing will.
    pub fn next(&self) -> Instant {
        self.events.next().unwrap_or(Instant::NEVER)
    }

    /// Up to when everything has happened.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// A packet of an external flow enters at its first link. Everything due by `now` happens
    /// before; an earlier `now` than the last one counts as that. Routers that know Quick-Start read and
    /// change its option. False if there is no such flow, or it is not external.
    pub fn inject(&mut self, now: Instant, packet: Entering) -> bool {
        self.advance(now);
        let Entering { flow, direction, size, class, ecn, quick_start, carries, token } = packet;
        if !self.flows.get(flow as usize).is_some_and(|flow| matches!(flow.endpoint, Endpoint::External)) {
            return false;
        }
        let size = size.get().min(u64::from(u32::MAX)) as u32;
        let body = Body::External { token, carries, rwnd: None };
        let (sent_at, quick_start) = (self.now, quick_start.map(QuickStart::Option));
        self.send(self.now, Packet { sent_at, body, flow, size, direction, class, ecn, quick_start });
        true
    }

    /// A flow of somebody else's is there: the base stations on its way plan again, and it has a window from them until
    /// [`Network::leave`]. Everything due by `now` happens before. False if there is no such flow, or a base station has it already,
    /// or none is on its way.
    pub fn join(&mut self, now: Instant, flow: FlowId) -> bool {
        self.advance(now);
        let (at, mut joined) = (self.now, false);
        self.each_base_station(|station, arq| joined |= station.join(arq, at, flow));
        joined
    }

    /// That flow has gone, and the others are planned anew. False if no base station had it.
    pub fn leave(&mut self, now: Instant, flow: FlowId) -> bool {
        self.advance(now);
        let (at, mut left) = (self.now, false);
        self.each_base_station(|station, arq| left |= station.leave(arq, at, flow));
        left
    }

    /// The windows of the flows that are there, in the order in which they came, base station by base station, with what each may
    /// expect of its own. Calculated anew each time.
    pub fn windows(&self) -> Vec<Allotted> {
        self.base_stations.iter().flat_map(Station::allotted).collect()
    }

    /// The next packet of an external flow that has come out.
    pub fn take_delivered(&mut self) -> Option<Delivered> {
        self.delivered.pop_front()
    }

    /// The next packet of an external flow that was dropped.
    pub fn take_dropped(&mut self) -> Option<Dropped> {
        self.dropped.pop_front()
    }

    /// The names of all that can drop packets, in the order of [`PacketFate::Dropped`]: the links, then the ports of
    /// all other media, as a satellite's terminals and a radio's users.
    pub fn link_names(&self) -> Vec<String> {
        let all = || self.media.iter().zip(&self.notes);
        let links = all().filter(|(slot, _)| slot.carrier.is_link());
        let others = all().filter(|(slot, _)| !slot.carrier.is_link());
        let ports = others.flat_map(|(slot, notes)| (0..slot.carrier.ports()).map(|i| format!("{} {i}", notes.name)));
        links.map(|(_, notes)| notes.name.to_string()).chain(ports).collect()
    }

    /// The number of the flow of that name; of flows that come, of those that go on.
    pub fn flow_id(&self, name: &str) -> Option<FlowId> {
        (0..).zip(&self.flows).find_map(|(place, flow)| flow.number(place).filter(|_| flow.name() == name))
    }

    /// A link as it stands, brought up to [`Network::now`]: [`BOTTLENECK`] and [`REVERSE`] are the
    /// shared ones. `None` if there is no such link.
    pub fn link(&mut self, index: u32) -> Option<&Link<Ticket>> {
        let (now, medium) = (self.now, self.notes.iter().position(|notes| notes.first_port == index)?);
        let inside = self.known_inside(Some(medium as u32));
        let slot = &mut self.media[medium];
        if slot.carrier.is_link() {
            slot.settle(now, just_after(now));
            slot.restore(&mut self.entrances[medium], medium as u32, &inside);
        }
        match &slot.carrier {
            Carrier::Link(link) => Some(link),
            Carrier::Other(_) => None,
        }
    }

    /// Counts of a flow so far; `None` if there is no such flow, or it came and is over.
    pub fn counts(&self, flow: FlowId) -> Option<&FlowCounts> {
        let own = self.flows.get(flow as usize).filter(|found| found.number(flow) == Some(flow));
        let found =
            own.or_else(|| (0..).zip(&self.flows).find(|(place, f)| f.number(*place) == Some(flow)).map(|(_, f)| f));
        found.map(|f| &f.counts)
    }

    /// The flows' rows of series since the last call, which no report has then: whoever takes them now and then holds few, however
    /// long the run is.
    pub fn take_series(&mut self) -> Vec<SeriesRow> {
        std::mem::take(&mut self.series)
    }

    /// The results so far; the network goes on.
    pub fn report(&mut self) -> SimReport {
        self.make_report(false)
    }

    /// The results.
    pub fn into_report(mut self) -> SimReport {
        self.make_report(true)
    }

    // The loop.

    /// Something may come out of a medium. How many packets did.
    #[inline(always)]
    fn medium_event(&mut self, at: Instant, medium: u32, cargo: u32) -> u64 {
        if cargo != Event::NOTHING {
            return self.known_exit(at, medium, cargo);
        }
        let Some(slot) = self.media.get_mut(medium as usize) else { return 0 };
        if slot.armed != at {
            // Overtaken: a later push came out earlier (reordering), with an entry of its own.
            self.stats.idle_events += 1;
            self.events.done();
            return 0;
        }
        if slot.exits == Exits::Early {
            return self.feeder_event(at, medium);
        }
        let Carrier::Link(link) = &mut slot.carrier else { return self.empty_apart(at, medium) };
        let Some(link) = link.plain() else { return self.empty_link(at, medium) };
        let (Some(ticket), next) = (link.pop(at), link.next()) else { return self.empty_link(at, medium) };
        if next <= at {
            return self.empty_burst(at, medium, ticket);
        }
        // The link is done before its packet goes on; its entry comes after those that the packet makes.
        let dropped = link.has_dropped();
        slot.armed = next;
        let hop = slot.next;
        self.forward_from(at, ticket, medium, hop);
        if dropped {
            self.collect_drops(medium);
        }
        self.rearm(next, medium);
        1
    }

    /// A packet comes out of a link that knew so when it went in. How many do: one.
    #[inline(always)]
    fn known_exit(&mut self, at: Instant, medium: u32, cargo: u32) -> u64 {
        self.events.done();
        let place = cargo & PLACE_BITS;
        if cargo & ARRIVES == 0 {
            let Onward { hop, route, size } = self.nexts[medium as usize];
            if cargo & ALIKE == 0 {
                self.forward_unlike(at, place, hop);
            } else {
                self.forward(at, Ticket::of_route(place, route, size.into()), hop);
            }
        } else {
            self.arrive(at, place);
        }
        1
    }

    /// The packet of that place goes on as [`Network::forward`] tells.
    #[inline(never)]
    fn forward_unlike(&mut self, at: Instant, place: u32, hop: Hop) {
        self.forward(at, self.store.ticket(place), hop);
    }

    /// A packet leaves a link.
    #[inline(always)]
    fn forward_from(&mut self, at: Instant, ticket: Ticket, medium: u32, hop: Option<Hop>) {
        let hop = match hop {
            Some(hop) => hop,
            None => {
                if self.looks_ahead {
                    self.look_along(medium);
                }
                self.routes.after(ticket.route(), Hop::link(medium), self.media[medium as usize].place)
            }
        };
        self.forward(at, ticket, hop);
    }

    /// Moves `first`, which has come out of a link, and all others that come out of it now. How many.
    #[inline(never)]
    fn empty_burst(&mut self, at: Instant, medium: u32, first: Ticket) -> u64 {
        let hop = self.media[medium as usize].next;
        self.forward_from(at, first, medium, hop);
        1 + self.empty_link(at, medium)
    }

    /// Moves all that comes out of a link of any kind. How many packets did.
    #[inline(never)]
    fn empty_link(&mut self, at: Instant, medium: u32) -> u64 {
        let mut out = 0;
        loop {
            let slot = &mut self.media[medium as usize];
            let Carrier::Link(link) = &mut slot.carrier else { return out };
            let popped = link.pop(at);
            let (next, dropped) = (link.next(), link.has_dropped());
            let last = popped.is_none() || next > at;
            if last {
                slot.armed = next;
            }
            let hop = slot.next;
            if let Some(ticket) = popped {
                self.forward_from(at, ticket, medium, hop);
                out += 1;
            }
            if last {
                if dropped {
                    self.collect_drops(medium);
                }
                self.rearm(next, medium);
                return out;
            }
        }
    }

    /// The entry of a medium has come up and been seen to: its next one.
    #[inline(always)]
    fn rearm(&mut self, next: Instant, medium: u32) {
        self.events.done();
        if next != Instant::NEVER {
            self.events.push(next, target_of(MEDIUM, medium));
        }
    }

    /// Moves all that comes out of a medium other than a link. How many packets did.
    #[inline(never)]
    fn empty_apart(&mut self, at: Instant, medium: u32) -> u64 {
        let (i, mut out) = (medium as usize, 0);
        while let Carrier::Other(other) = &mut self.media[i].carrier
            && let Some((port, packet)) = other.pop(at)
        {
            let (route, here) = (route_of(packet.flow, packet.direction), Hop { medium, port });
            let hop = self.routes.after(route, here, self.media[i].place);
            self.forward_packet(at, packet, hop);
            out += 1;
        }
        if self.trace {
            self.collect_log(medium);
        }
        let next = match &self.media[i].carrier {
            Carrier::Other(other) => other.next(),
            Carrier::Link(_) => Instant::NEVER,
        };
        self.collect_drops(medium);
        self.rearm(next, medium);
        self.media[i].armed = next;
        out
    }

    /// A packet in a link goes into the next hop of its route, or arrives.
    #[inline(always)] // a call costs 0.4 % more instructions
    fn forward(&mut self, at: Instant, ticket: Ticket, hop: Hop) {
        if hop.medium != Hop::ENDPOINT.medium {
            return self.push(at, hop, ticket);
        }
        self.store.keep_marks(ticket);
        self.arrive(at, ticket.place() as u32);
    }

    /// As [`Network::forward`], for a packet that is in no link.
    #[inline(always)]
    fn forward_packet(&mut self, at: Instant, packet: Packet, hop: Hop) {
        match self.media.get(hop.medium as usize) {
            Some(Slot { carrier: Carrier::Other(_), .. }) => self.push_apart(at, hop, packet),
            None if hop == Hop::ENDPOINT => self.arrive_from_afar(at, packet),
            Some(_) | None => {
                let ticket = self.store.put(packet);
                self.enter(at, ticket, hop);
            }
        }
    }

    /// [`Network::push`] apart from the loop.
    #[inline(never)]
    fn enter(&mut self, at: Instant, ticket: Ticket, hop: Hop) {
        self.push(at, hop, ticket);
    }

    /// Lets the endpoint of one of many flows go if the flow is over.
    #[inline(always)]
    fn retire(&mut self, flow: FlowId) {
        if self.many && self.flows[flow as usize].retire() {
            self.let_go(flow);
        }
    }

    /// A packet goes into a medium, or through a base station.
    #[inline(always)]
    fn push(&mut self, at: Instant, hop: Hop, ticket: Ticket) {
        if let Some(entrance) = self.entrances.get_mut(hop.medium as usize)
            && let Some(exit) = entrance.lane.pass(at, ticket.unmarked_size())
        {
            entrance.awaited = exit;
            let marks = entrance.marks_of(ticket);
            return self.await_exit(exit, hop.medium, ticket, marks);
        }
        let Some(slot) = self.media.get_mut(hop.medium as usize) else { return self.pass_node(at, hop, ticket) };
        let Carrier::Link(link) = &mut slot.carrier else { return self.push_whole(at, hop, ticket) };
        if ticket.has_option() {
            self.store.judge_option(at, ticket, link);
        }
        let Some(link) = link.plain() else { return self.push_composed(at, hop, ticket) };
        match slot.exits {
            Exits::Asked => {}
            Exits::Known => {
                let entrance = &mut self.entrances[hop.medium as usize];
                return match link.pass(&mut entrance.lane, at, ticket) {
                    Some(exit) => {
                        entrance.awaited = exit;
                        let marks = entrance.marks_of(ticket);
                        self.await_exit(exit, hop.medium, ticket, marks);
                    }
                    None => self.collect_drops(hop.medium),
                };
            }
            Exits::Early => return self.push_into_feeder(at, hop.medium, ticket),
        }
        link.push(at, ticket);
        let dropped = link.has_dropped();
        // An entry that is there already is for a packet that comes out before.
        if slot.armed == Instant::NEVER {
            let next = link.next();
            slot.armed = next;
            if next != Instant::NEVER {
                self.events.push(next, target_of(MEDIUM, hop.medium));
            }
        }
        if dropped {
            self.collect_drops(hop.medium);
        }
    }

    /// A packet in a link will come out at that instant: its entry has it meanwhile, marked with [`ARRIVES`] or [`ALIKE`] if it is so.
    #[inline(always)]
    fn await_exit(&mut self, exit: Instant, medium: u32, ticket: Ticket, marks: u32) {
        self.store.keep_marks(ticket);
        let cargo = ticket.place() as u32 | marks;
        // One that comes out never has an entry, too, which tells that it is inside.
        self.events.push_with(exit, target_of(MEDIUM, medium), cargo);
    }

    /// [`Network::push`] for links that are not plain.
    #[inline(never)]
    fn push_composed(&mut self, at: Instant, hop: Hop, ticket: Ticket) {
        let slot = &mut self.media[hop.medium as usize];
        let Carrier::Link(link) = &mut slot.carrier else { return };
        link.push(at, ticket);
        let (next, dropped) = (link.next(), link.has_dropped());
        if next < slot.armed {
            // An entry that is overtaken stays behind and finds nothing due: see `medium_event`.
            slot.armed = next;
            self.events.push(next, target_of(MEDIUM, hop.medium));
        }
        if dropped {
            self.collect_drops(hop.medium);
        }
    }

    /// [`Network::push`] from a link into another medium.
    #[inline(never)]
    fn push_whole(&mut self, at: Instant, hop: Hop, ticket: Ticket) {
        let packet = self.store.take(ticket);
        self.push_apart(at, hop, packet);
    }

    /// [`Network::push`] for all media but links.
    #[inline(never)]
    fn push_apart(&mut self, at: Instant, hop: Hop, packet: Packet) {
        let slot = &mut self.media[hop.medium as usize];
        let Carrier::Other(other) = &mut slot.carrier else { return };
        other.push(at, hop.port, packet);
        let next = other.next();
        if next < slot.armed {
            slot.armed = next;
            self.events.push(next, target_of(MEDIUM, hop.medium));
        }
        self.collect_drops(hop.medium);
    }

    /// A packet passes a base station, which takes no time.
    #[inline(never)]
    fn pass_node(&mut self, at: Instant, hop: Hop, ticket: Ticket) {
        if let Some(station) = self.base_stations.get(hop.base_station() as usize) {
            self.store.whole_mut(ticket).into_iter().for_each(|packet| station.write_window(packet));
        }
        let next = self.routes.after(ticket.route(), hop, 0);
        self.forward(at, ticket, next);
    }

    #[inline(never)]
    fn collect_drops(&mut self, medium: u32) {
        while let Some((at, reason, port, packet)) = self.media[medium as usize].carrier.take_dropped(&mut self.store) {
            self.drop_packet(at, reason, packet, self.notes[medium as usize].first_port + port);
        }
    }

    #[cold]
    fn drop_packet(&mut self, at: Instant, reason: DropReason, packet: Packet, link: u32) {
        let counts = &mut self.flows[packet.flow as usize].counts;
        let counter = match packet.traffic() {
            Traffic::Data => &mut counts.drops[reason as usize],
            Traffic::Dummy => &mut counts.dummies_dropped,
            Traffic::Feedback => &mut counts.feedback_dropped,
        };
        count(counter, 1, packet.size);
        if let Body::External { token, .. } = packet.body {
            let Packet { flow, direction, .. } = packet;
            self.dropped.push_back(Dropped { flow, direction, token, reason, link, at });
        }
        self.note_fate(at, &packet, PacketFate::Dropped { reason, link });
        self.retire(packet.flow);
    }
}

/// The first instant after that one.
fn just_after(at: Instant) -> Instant {
    Instant::from_nanos(at.as_nanos().saturating_add(1))
}

/// 585 years at most.
fn nanos(d: Duration) -> u64 {
    d.as_nanos() as u64
}
