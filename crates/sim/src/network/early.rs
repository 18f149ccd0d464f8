//! Exits that are known before they come: an event for each packet in place of one for each link, and none on the way there.
//!
//! When a packet enters a plain link, it is known whether and when it comes out. So its entry in the event set has the packet with it, and when the
//! time has come nobody touches the link ([`Exits::Known`]). Links of a hop go on as before, since the packets of all flows lie behind one another in one
//! ring; and so do links with losses, and those so fast that two packets may come out at one instant, which have no order then.
//!
//! If a link gets its packets from one other alone, nothing can come between. So a packet is brought there as it enters the other, with the instant at
//! which it will arrive, and the first of the two links, a feeder, needs no event ([`Exits::Early`]). Feeders are links that flows share, in front of the
//! flows' own last links: in a dumbbell each packet has two events on its three hops. In runs of many flows the packets of a whole round trip would have
//! their next event entered that long before it comes. There the feeder has an event for 256 packets at most, and brings these when the first of them comes out.
//!
//! And a packet that is brought to the last link of its route arrives at once, with the instant at which it comes out, if its flow's end there lives alone
//! until then: it is TCP's, no timer of it comes before, no packet before this one has an event, and what it answers goes into a link that nobody else enters.
//! In a dumbbell two of six hops have an event then: where the packet meets those of others, and where its acknowledgement does. The flow's counts are ahead
//! until then, too, so nothing arrives so behind the next instant at which somebody looks at them.
//!
//! Results are the same to the bit. The order of events does not depend on what others there are ([`EventSet`](crate::engine::EventSet)). No packet
//! passes a link in no time. The next link draws nothing, and its counts are ahead only while nobody reads them: at the end of the warm-up and
//! of an advance they are right, since only packets that arrive before are brought early. Those behind wait for an event of the feeder, which
//! brings what it then may. A packet that finds no room in the next link waits, too, and is dropped in time. An advance that is
//! to end early goes on until all that was brought early is there.
//!
//! There are no feeders under an observer or a capture. Where packets from outside pass, whose driver may come at any time and whose packets may have no
//! size, there is neither.

use fairpace_path::PlainLink;
use fairpace_units::Instant;

use super::carrier::Carrier;
use super::route::direction_of;
use super::store::PLACE_BITS;
use super::ticket::Ticket;
use super::{Entrance, Exits, MEDIUM, Network, Onward, ShortCuts, Slot, index_of, just_after, target_of};
use crate::config::{Protocol, SimConfig};
use crate::engine::Event;
use crate::hop::Hop;

/// So many packets are brought at a time; in runs of many flows at an event of their feeder.
const BATCH: usize = 256;
/// The memory that a packet touches is asked for when so many others are brought before it, and when so many are, what tells where that lies: long enough
/// before it comes from memory, and short enough that it has not left the nearest cache again.
const NEAR: usize = 3;
const FAR: usize = 12;

impl Network {
    /// Finds the links that know when a packet comes out as it goes in, and those whose packets may be brought to such a one early.
    pub(super) fn find_exits(&mut self, config: &SimConfig) {
        let external = config.flows.iter().any(|flow| matches!(flow.protocol, Protocol::External));
        if self.short_cuts == ShortCuts::None || external {
            return;
        }
        for ((i, slot), entrance) in (0..).zip(&mut self.media).zip(&mut self.entrances) {
            entrance.arrives = slot.next == Some(Hop::ENDPOINT);
            if self.short_cuts.are_taken() && slot.knows_exits() && !self.shared.contains(&i) {
                slot.exits = Exits::Known;
            }
        }
        let entered = self.count_routes();
        self.find_nexts(config, &entered);
        if !self.observed {
            self.find_feeders();
            self.find_answers(&entered);
        }
    }

    /// By medium, how many routes it is on.
    fn count_routes(&self) -> Vec<u32> {
        let mut entered = vec![0; self.media.len()];
        for hop in self.routes.iter().flatten() {
            if let Some(entered) = entered.get_mut(hop.medium as usize) {
                *entered += 1;
            }
        }
        entered
    }

    fn find_nexts(&mut self, config: &SimConfig, entered: &[u32]) {
        let next = |slot: &Slot| Onward { hop: slot.next.unwrap_or(Hop::ENDPOINT), route: 0, size: 0 };
        self.nexts = self.media.iter().map(next).collect();
        let sizes = config.flows.iter().flat_map(|flow| [flow.packet_size, flow.ack_size]);
        for ((route, hops), size) in (0..).zip(self.routes.iter()).zip(sizes) {
            for hop in hops {
                let i = hop.medium as usize;
                if let Some(slot) = self.media.get(i)
                    && slot.exits == Exits::Known
                    && entered[i] == 1
                {
                    self.entrances[i].alike = size.get() as u32;
                    self.nexts[i] = Onward { route, size: size.get() as u32, ..self.nexts[i] };
                }
            }
        }
    }

    /// Finds the flows whose answers to a packet go into a link that nobody else enters, and from which exits are known.
    fn find_answers(&mut self, entered: &[u32]) {
        for flow in &mut self.flows {
            let [forward, back] = flow.enters.map(|medium| {
                let i = medium as usize;
                self.media.get(i).is_some_and(|slot| slot.exits == Exits::Known && entered[i] == 1)
            });
            flow.answers_apart = [back, forward];
        }
    }

    fn find_feeders(&mut self) {
        // Where the packets of each medium come from: nobody yet, one medium, or several and senders.
        let mut from = vec![None; self.media.len()];
        for route in self.routes.iter() {
            let mut before = Hop::ENDPOINT;
            for hop in route {
                if let Some(from) = from.get_mut(hop.medium as usize) {
                    let same = from.is_none_or(|other| other == before);
                    *from = Some(if same { before } else { Hop::ENDPOINT });
                }
                before = *hop;
            }
        }
        let mut may = vec![false; self.media.len()];
        for link in &self.shared {
            may[*link as usize] = self.media[*link as usize].plain().is_some();
        }
        let shared = may.clone();
        for route in self.routes.iter() {
            let after = route.iter().skip(1).chain([&Hop::ENDPOINT]);
            for (hop, after) in route.iter().zip(after) {
                let Some(feeds) = may.get_mut(hop.medium as usize) else { continue };
                let fed = self.media.get(after.medium as usize).is_some_and(|next| {
                    let i = after.medium as usize;
                    next.knows_exits() && !shared[i] && from[i] == Some(*hop)
                });
                *feeds &= fed;
            }
        }
        // A route has one feeder at most, the last one.
        let is_feeder = |may: &[bool], hop: &Hop| may.get(hop.medium as usize).is_some_and(|feeds| *feeds);
        for route in self.routes.iter() {
            let last = route.iter().rposition(|hop| is_feeder(&may, hop)).unwrap_or(0);
            for hop in &route[..last] {
                if let Some(feeds) = may.get_mut(hop.medium as usize) {
                    *feeds = false;
                }
            }
        }
        self.has_feeders = may.contains(&true);
        if self.has_feeders {
            for (i, route) in self.routes.iter().enumerate() {
                let after = route.iter().position(|hop| is_feeder(&may, hop)).and_then(|i| route.get(i + 1));
                if let Some(hop) = after {
                    self.flows[i / 2].fed[i % 2] = hop.medium;
                }
            }
        }
        for (slot, feeds) in self.media.iter_mut().zip(may) {
            if feeds && self.short_cuts.are_taken() {
                slot.exits = Exits::Early;
            }
        }
    }

    /// Packets may be brought early up to the end of this advance, and of the warm-up before.
    pub(super) fn set_early_until(&mut self) {
        self.early_until = if self.observed {
            Instant::ZERO
        } else if self.now < self.warmup {
            just_after(self.until).min(self.warmup)
        } else {
            just_after(self.until)
        };
        self.at_once_until = if self.many { Instant::ZERO } else { self.early_until };
        self.arrive_until = self.early_until.min(self.next_look());
    }

    /// When somebody looks at the counts of flows next, or a flow ends.
    fn next_look(&mut self) -> Instant {
        while self.looks_planned.last().is_some_and(|at| *at <= self.now) {
            self.looks_planned.pop();
        }
        let planned = self.looks_planned.last().copied().unwrap_or(Instant::NEVER);
        self.sampling.as_ref().map_or(planned, |sampling| planned.min(sampling.last + sampling.interval))
    }

    /// [`Network::push`] for a feeder.
    #[inline(always)]
    pub(super) fn push_into_feeder(&mut self, at: Instant, medium: u32, ticket: Ticket) {
        let at_once_until = self.at_once_until;
        let slot = &mut self.media[medium as usize];
        let idle = slot.armed == Instant::NEVER;
        let Some(link) = slot.plain_mut() else { return };
        link.push(at, ticket);
        let (exit, dropped) = (link.next(), link.has_dropped());
        if idle {
            if exit < at_once_until && self.bring(exit, ticket) {
                if let Some(link) = self.media[medium as usize].plain_mut() {
                    link.hand_on(1);
                }
            } else if exit != Instant::NEVER {
                self.media[medium as usize].armed = exit;
                self.events.push(exit, target_of(MEDIUM, medium));
            }
        }
        if dropped {
            self.collect_drops(medium);
        }
    }

    /// A packet goes into the link behind its feeder, where it arrives at that instant, if there is room.
    #[inline(always)]
    fn bring(&mut self, at: Instant, ticket: Ticket) -> bool {
        let (route, direction) = (ticket.route(), direction_of(ticket.route()));
        let flow = &self.flows[route / 2];
        let medium = flow.fed[direction as usize];
        let Some(entrance) = self.entrances.get_mut(medium as usize) else { return false };
        let Some(exit) = entrance.lane.pass(at, ticket.unmarked_size()) else {
            return self.bring_slowly(at, medium, ticket);
        };
        if entrance.may_arrive(self.now, exit, self.arrive_until) && flow.may_arrive(exit, direction) {
            self.arrive_early(exit, ticket);
        } else {
            entrance.awaited = exit;
            let marks = entrance.marks_of(ticket);
            self.await_exit(exit, medium, ticket, marks);
        }
        true
    }

    /// [`Network::bring`] of a packet that the link's lane does not take. The end is the same: told once, it would look for link and flow twice there.
    #[inline(never)]
    fn bring_slowly(&mut self, at: Instant, medium: u32, ticket: Ticket) -> bool {
        let i = medium as usize;
        let Some(link) = self.media[i].plain_mut() else { return false };
        let Some(exit) = link.pass_early(&mut self.entrances[i].lane, self.now, at, ticket) else { return false };
        if ticket.has_option()
            && let Carrier::Link(link) = &mut self.media[i].carrier
        {
            self.store.judge_option(at, ticket, link);
        }
        let (flow, direction) = (&self.flows[ticket.route() / 2], direction_of(ticket.route()));
        let entrance = &mut self.entrances[i];
        if entrance.may_arrive(self.now, exit, self.arrive_until) && flow.may_arrive(exit, direction) {
            self.arrive_early(exit, ticket);
        } else {
            entrance.awaited = exit;
            let marks = entrance.marks_of(ticket);
            self.await_exit(exit, medium, ticket, marks);
        }
        true
    }

    /// A packet that was brought to the last link of its route arrives, at the instant at which it comes out there.
    #[inline(always)]
    fn arrive_early(&mut self, at: Instant, ticket: Ticket) {
        self.arrived_until = self.arrived_until.max(at);
        self.store.keep_marks(ticket);
        self.arrive(at, ticket.place() as u32);
    }

    /// A packet comes out of a feeder that was not brought early; those behind it perhaps can be. How many packets did come out.
    #[inline(never)]
    pub(super) fn feeder_event(&mut self, at: Instant, medium: u32) -> u64 {
        let (i, mut out) = (medium as usize, 0);
        let slot = &mut self.media[i];
        slot.carrier.advance(at);
        if let Some(link) = slot.plain_mut() {
            link.let_go(just_after(at));
        }
        while let Some(ticket) = self.media[i].plain_mut().and_then(|link| link.pop(at)) {
            if !self.bring(at, ticket) {
                let route = ticket.route();
                self.forward(at, ticket, Hop::link(self.flows[route / 2].fed[route % 2]));
            }
            out += 1;
        }
        while self.bring_some(medium) && !self.many {}
        let next = self.media[i].plain().map_or(Instant::NEVER, PlainLink::next);
        self.media[i].armed = next;
        self.collect_drops(medium);
        self.rearm(next, medium);
        out
    }

    /// The flows' own links are ahead up to that instant; 0 if they are not.
    pub(super) fn brought_until(&self) -> Instant {
        let feeders =
            self.shared.iter().map(|link| &self.media[*link as usize]).filter(|slot| slot.exits == Exits::Early);
        feeders.filter_map(|slot| slot.plain()?.handed_on_until()).max().unwrap_or(Instant::ZERO)
    }

    /// Brings the next packets of a feeder to where they go, [`BATCH`] at most: true if there may be more.
    fn bring_some(&mut self, medium: u32) -> bool {
        let mut batch = std::mem::take(&mut self.batch);
        if let Some(link) = self.media[medium as usize].plain() {
            link.to_pop(BATCH + FAR, &mut batch);
        }
        let mut brought = 0;
        while brought < BATCH
            && let Some(&(exit, ticket)) = batch.get(brought)
            && exit < self.early_until
        {
            if self.looks_ahead {
                self.look_near(batch.get(brought + NEAR));
                self.look_far(batch.get(brought + FAR));
            }
            if !self.bring(exit, ticket) {
                break;
            }
            brought += 1;
        }
        if let Some(link) = self.media[medium as usize].plain_mut() {
            link.hand_on(brought);
        }
        batch.clear();
        self.batch = batch;
        brought == BATCH
    }

    /// An advance ends: all is as it is with an event for each exit. (Where there is an observer, drops are told in an order that does not depend on
    /// where advances end.)
    pub(super) fn end_early(&mut self) {
        if self.has_feeders && !self.observed {
            self.settle_shared(just_after(self.now));
        }
    }

    /// The packets inside of all links whose packets the entries of their exits have, or of the one of that number.
    pub(super) fn known_inside(&self, medium: Option<u32>) -> Inside {
        let mut packets: Vec<_> = self
            .events
            .pending()
            .filter(|event| event.cargo != Event::NOTHING && medium.is_none_or(|of| of == index_of(event.target)))
            .map(|Event { at, target, cargo }| (index_of(target), at, self.store.ticket(cargo & PLACE_BITS)))
            .collect();
        packets.sort_unstable_by_key(|(medium, at, _)| (*medium, *at));
        Inside(packets)
    }

    /// Brings the links that flows share up to now, and counts what they dropped; what was brought early is out of a feeder if it comes out before
    /// that instant.
    pub(super) fn settle_shared(&mut self, before: Instant) {
        for i in 0..self.shared.len() {
            let medium = self.shared[i];
            self.media[medium as usize].settle(self.now, before);
            self.collect_drops(medium);
        }
    }
}

/// The packets in links whose packets nobody pops, with the number of the link and the instant of the exit, in the order of both.
pub(super) struct Inside(Vec<(u32, Instant, Ticket)>);

impl Inside {
    /// The packets of one link.
    fn of(&self, medium: u32) -> impl Iterator<Item = (Instant, Ticket)> {
        let begin = self.0.partition_point(|(other, ..)| *other < medium);
        self.0[begin..].iter().take_while(move |(other, ..)| *other == medium).map(|(_, at, ticket)| (*at, *ticket))
    }
}

impl Slot {
    /// Tells a link that has been settled, and whose packets nobody pops, which are inside: before it is read.
    pub(super) fn restore(&mut self, entrance: &mut Entrance, medium: u32, inside: &Inside) {
        if self.exits == Exits::Known
            && let Some(link) = self.plain_mut()
        {
            link.restore(&mut entrance.lane, inside.of(medium));
        }
    }

    /// Whether it is a link in which each packet's exit is known when it goes in, no two at one instant, and after which all go the same way.
    fn knows_exits(&self) -> bool {
        self.next.is_some() && self.plain().is_some_and(|link| link.is_lossless() && link.spaces_packets())
    }

    /// Brings the medium up to now; of packets that were brought on before they came out, those are out that come out before that instant.
    pub(super) fn settle(&mut self, now: Instant, before: Instant) {
        self.carrier.advance(now);
        if self.exits == Exits::Early
            && let Some(link) = self.plain_mut()
        {
            link.let_go(before);
        }
    }

    /// The link that it is, if it is a plain one.
    #[inline(always)]
    pub(super) fn plain(&self) -> Option<&PlainLink<Ticket>> {
        match &self.carrier {
            Carrier::Link(link) => link.as_plain(),
            Carrier::Other(_) => None,
        }
    }

    #[inline(always)]
    pub(super) fn plain_mut(&mut self) -> Option<&mut PlainLink<Ticket>> {
        match &mut self.carrier {
            Carrier::Link(link) => link.plain(),
            Carrier::Other(_) => None,
        }
    }
}
