//! Exits without an event: a packet that enters a link goes at once into the next one, too.
//!
//! When a packet enters a plain link, it is known whether and when it comes out. If the next link gets its packets from nobody
//! else, nothing can come between. So the packet is pushed there at once, with the instant at which it will arrive, and the first of the two
//! links, a feeder, needs no event. Feeders are links that flows share, in front of the flows' own last links: in a dumbbell each
//! packet has two events on its three hops.
//!
//! Results are the same to the bit. The order of events does not depend on what others there are ([`EventSet`](crate::engine::EventSet)). No packet
//! passes a link in no time. The next link draws nothing, and its counts are ahead only while nobody reads them: at the end of the warm-up and
//! of an advance they are right, since only packets that arrive before are brought early. Those behind wait for an event of the feeder, which
//! brings all that it then may. A packet that finds no room in the next link waits, too, and is dropped in time. An advance that is
//! to end early goes on until all that was brought early is there.
//!
//! There are no feeders under an observer or a capture; nor where packets from outside pass, whose driver may come at any time; nor in runs of many
//! flows, where the packets of a whole round trip would lie in the flows' own links, each in memory of its own.

use fairpace_path::PlainLink;
use fairpace_units::Instant;

use super::carrier::{Carrier, Ticket};
use super::{MEDIUM, Network, Slot, Way, just_after, target_of};
use crate::config::{Protocol, SimConfig};
use crate::hop::Hop;

impl Network {
    /// Finds the links whose packets may be brought to the next one early.
    pub(super) fn find_feeders(&mut self, config: &SimConfig) {
        let external = config.flows.iter().any(|flow| matches!(flow.protocol, Protocol::External));
        if self.way == Way::Composed || self.observed || self.many || external {
            return;
        }
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
                    next.plain().is_some_and(PlainLink::is_lossless) && !shared[i] && from[i] == Some(*hop)
                });
                *feeds &= fed;
            }
        }
        for (slot, feeds) in self.media.iter_mut().zip(may) {
            self.has_feeders |= feeds;
            slot.feeds = feeds && self.way == Way::Short;
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
    }

    /// [`Network::push`] for a feeder.
    #[inline(always)]
    pub(super) fn push_into_feeder(&mut self, at: Instant, medium: u32, ticket: Ticket) {
        let early_until = self.early_until;
        let slot = &mut self.media[medium as usize];
        let (idle, place) = (slot.armed == Instant::NEVER, slot.place);
        let Some(link) = slot.plain_mut() else { return };
        link.make_room(at);
        link.push(at, ticket);
        let dropped = link.has_dropped();
        if idle {
            let exit = link.next();
            let hop = Hop::link(medium);
            if exit < early_until && self.bring(exit, self.routes.after(ticket.route(), hop, place), ticket) {
                if let Some(link) = self.media[medium as usize].plain_mut() {
                    link.hand_on();
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

    /// Pushes a packet into the link where it arrives at that instant, if there is room.
    #[inline(always)]
    fn bring(&mut self, at: Instant, hop: Hop, ticket: Ticket) -> bool {
        let Some(slot) = self.media.get_mut(hop.medium as usize) else { return false };
        let Some(link) = slot.plain_mut() else { return false };
        if !link.push_early(at, ticket) {
            return false;
        }
        if slot.armed == Instant::NEVER {
            let next = slot.plain().map_or(Instant::NEVER, PlainLink::next);
            slot.armed = next;
            self.events.push(next, target_of(MEDIUM, hop.medium));
        }
        if ticket.has_option()
            && let Carrier::Link(link) = &mut slot.carrier
        {
            self.store.judge_option(at, ticket, link);
        }
        true
    }

    /// A packet comes out of a feeder that could not be brought early; those behind it perhaps can. How many packets did come out.
    #[inline(never)]
    pub(super) fn feeder_event(&mut self, at: Instant, medium: u32) -> u64 {
        let (i, mut out) = (medium as usize, 0);
        let slot = &mut self.media[i];
        slot.carrier.advance(at);
        if let Some(link) = slot.plain_mut() {
            link.let_go(just_after(at));
        }
        let place = self.media[i].place;
        let after = |network: &Network, ticket: Ticket| network.routes.after(ticket.route(), Hop::link(medium), place);
        while let Some(ticket) = self.media[i].plain_mut().and_then(|link| link.pop(at)) {
            let hop = after(self, ticket);
            self.forward(at, ticket, hop);
            out += 1;
        }
        let next = loop {
            let Some(link) = self.media[i].plain() else { break Instant::NEVER };
            let (exit, first) = (link.next(), link.first_to_pop());
            let Some(ticket) = first.filter(|_| exit < self.early_until) else { break exit };
            let hop = after(self, ticket);
            if !self.bring(exit, hop, ticket) {
                break exit;
            }
            if let Some(link) = self.media[i].plain_mut() {
                link.hand_on();
            }
        };
        self.media[i].armed = next;
        self.collect_drops(medium);
        self.rearm(next, medium);
        out
    }

    /// The flows' own links are ahead up to that instant; 0 if they are not.
    pub(super) fn brought_until(&self) -> Instant {
        let feeders = self.shared.iter().map(|link| &self.media[*link as usize]).filter(|slot| slot.feeds);
        feeders.filter_map(|slot| slot.plain()?.handed_on_until()).max().unwrap_or(Instant::ZERO)
    }

    /// An advance ends: all is as it is with an event for each exit. (Where there is an observer, drops are told in an order that does not depend on
    /// where advances end.)
    pub(super) fn end_early(&mut self) {
        if self.has_feeders && !self.observed {
            self.settle_shared(just_after(self.now));
        }
    }

    /// Brings the links that flows share up to now, and counts what they dropped; what was brought early is out of a feeder if it comes out before
    /// that instant.
    pub(super) fn settle_shared(&mut self, before: Instant) {
        for i in 0..self.shared.len() {
            let medium = self.shared[i];
            let slot = &mut self.media[medium as usize];
            slot.carrier.advance(self.now);
            if slot.feeds
                && let Some(link) = slot.plain_mut()
            {
                link.let_go(before);
            }
            self.collect_drops(medium);
        }
    }
}

impl Slot {
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
