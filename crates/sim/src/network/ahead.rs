//! The memory that the next events will touch is asked for before they come.
//!
//! With thousands of flows a packet-hop finds hardly anything in the nearest caches, and would wait for each line in turn: its link, the next link; at
//! the end of a route the packet, its flow, the flow's endpoint. So the event set tells the next few events, and each is looked at three times on its
//! way to the front; what one look reads, an earlier one has asked for. Packets that a feeder brings (`early.rs`) have no event, and are looked at twice as those before them are brought. Nothing here changes anything but what is in the caches.

use fairpace_units::Instant;

use super::route::direction_of;
use super::store::PLACE_BITS;
use super::ticket::Ticket;
use super::{ALIKE, ARRIVES, MEDIUM, Network, SENDER, Slot, index_of, kind_of};
use crate::engine::{Event, EventSet};
use crate::flow_state::FlowState;
use crate::hop::Hop;
use crate::packet::Direction;
use crate::prefetch::{prefetch, prefetch_head};

/// From so many flows on. The memory that fewer touch mostly lies in a second-level cache of 512 kB, and asking takes longer than waiting.
pub(super) const LOOKS_FROM: usize = 1_500;

/// So many events are looked at together: without a branch for each, which nobody could predict.
const TOGETHER: usize = 4;

// The looks at events, by how many others come before them. At their packets, and the links that these come out of, or where they go from one that
// is not touched then; at the flows where they
// arrive; at the flows' endpoints, and the links that answers would go into.
const PACKETS: usize = EventSet::AHEAD - TOGETHER;
const FLOWS: usize = PACKETS - TOGETHER;

// The looks at a packet in a link which packets leave for different hops, by how many others come out before it: at its place in the
// ring, and at its next hop.
const PLACE: u32 = 20;
const NEXT: u32 = 8;

/// The bytes of a slot that a packet touches first which comes out.
const OUT: usize = 64;

impl Network {
    /// Asks for what the next events touch.
    #[inline(always)]
    pub(super) fn look_ahead(&mut self) {
        self.looks = self.looks.wrapping_add(1);
        if self.looks.is_multiple_of(TOGETHER as u32) {
            self.look_at_some();
        }
    }

    #[inline(never)]
    fn look_at_some(&mut self) {
        let Some(events) = self.events.upcoming::<TOGETHER>(PACKETS) else { return };
        let mut others = false;
        for Event { target, cargo, .. } in events {
            if let Some(next) = self.nexts.get(index_of(target) as usize) {
                prefetch(next);
            }
            others |= cargo & (ARRIVES | ALIKE) != ALIKE;
        }
        if others || self.looks_closer {
            self.look_closer(events);
            self.looks_closer = others || !self.arrivals.all().is_empty();
        }
    }

    /// Looks at events of which some, or some looked at before, are not of packets that are alike: these touch more than what tells where they go.
    #[inline(never)]
    fn look_closer(&mut self, events: [Event; TOGETHER]) {
        for Event { target, cargo, .. } in events {
            if cargo == Event::NOTHING {
                if let Some(slot) = self.slot_of(target) {
                    prefetch_head(slot, OUT);
                } else if let Some(flow) = self.flow_of(target) {
                    flow.prefetch(Direction::Back);
                }
            } else if cargo & ALIKE == 0 {
                self.store.prefetch(cargo & PLACE_BITS);
            }
        }
        for route in self.arrivals.all() {
            let route = *route as usize;
            if let Some(flow) = self.flows.get(route / 2) {
                self.look_at_arrival(flow, direction_of(route));
            }
        }
        self.arrivals.clear();
        let Some(events) = self.events.upcoming::<TOGETHER>(FLOWS) else { return };
        for Event { target, cargo, .. } in events {
            if cargo == Event::NOTHING
                && let Some(flow) = self.flow_of(target)
            {
                flow.prefetch_arrival(Direction::Back);
            }
        }
        // Where packets are brought early few arrive by an event, elsewhere every other one.
        if events.iter().any(|event| event.cargo & ARRIVES != 0) {
            for Event { cargo, .. } in events {
                if cargo != Event::NOTHING {
                    let route = self.store.ticket(cargo & PLACE_BITS).route() as u32;
                    self.arrivals.note(route, cargo & ARRIVES != 0);
                }
            }
        }
        for route in self.arrivals.all() {
            if let Some(flow) = self.flows.get(*route as usize / 2) {
                flow.prefetch(direction_of(*route as usize));
            }
        }
    }

    /// Asks for what the next packets of a link touch which packets leave for different hops.
    #[inline(always)]
    pub(super) fn look_along(&self, medium: u32) {
        let Some(slot) = self.media.get(medium as usize) else { return };
        let Some(link) = slot.plain() else { return };
        if let Some(ticket) = link.peek(PLACE) {
            prefetch(ticket);
        }
        if let Some(ticket) = link.peek(NEXT) {
            self.prefetch_entrance(self.routes.after(ticket.route(), Hop::link(medium), slot.place).medium);
        }
    }

    /// Asks for what a packet touches, beside its flow, that is brought to the link behind its feeder and arrives there.
    #[inline(always)]
    pub(super) fn look_near(&self, packet: Option<&(Instant, Ticket)>) {
        let Some((_, ticket)) = packet else { return };
        let (route, direction) = (ticket.route(), direction_of(ticket.route()));
        self.store.prefetch(ticket.place() as u32);
        if let Some(flow) = self.flows.get(route / 2) {
            self.prefetch_entrance(flow.fed[direction as usize]);
            self.look_at_arrival(flow, direction);
        }
    }

    /// Asks for the packet's flow, which also tells where the rest lies.
    #[inline(always)]
    pub(super) fn look_far(&self, packet: Option<&(Instant, Ticket)>) {
        let Some((_, ticket)) = packet else { return };
        if let Some(flow) = self.flows.get(ticket.route() / 2) {
            flow.prefetch(direction_of(ticket.route()));
        }
    }

    /// Asks for what a packet touches, beside the flow itself, that arrives in that direction.
    #[inline(always)]
    fn look_at_arrival(&self, flow: &FlowState, direction: Direction) {
        flow.prefetch_arrival(direction);
        self.prefetch_entrance(flow.enters[1 - direction as usize]);
    }

    /// The medium that an event is of.
    #[inline(always)]
    fn slot_of(&self, target: u32) -> Option<&Slot> {
        if kind_of(target) != MEDIUM {
            return None;
        }
        self.media.get(index_of(target) as usize)
    }

    /// The flow whose timer an event is of.
    #[inline(always)]
    fn flow_of(&self, target: u32) -> Option<&FlowState> {
        if kind_of(target) < SENDER {
            return None;
        }
        self.flows.get(index_of(target) as usize)
    }

    #[inline(always)]
    fn prefetch_entrance(&self, medium: u32) {
        if let Some(entrance) = self.entrances.get(medium as usize) {
            prefetch(entrance);
        }
    }
}
