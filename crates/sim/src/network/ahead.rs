//! The memory that the next events will touch is asked for before they come.
//!
//! With thousands of flows a packet-hop finds hardly anything in the near caches, and would wait for each line in turn: its link, the
//! place in the link's ring, the next link; at the end of a route the packet, its flow, the flow's endpoint. So the event set tells
//! the next few events, and each is looked at three times on its way to the front; what one look reads, an earlier one has asked
//! for. Nothing here changes anything but what is in the caches.

use fairpace_path::PlainLink;

use super::arrivals::NOWHERE;
use super::route::direction_of;
use super::{MEDIUM, Network, Slot, index_of, kind_of};
use crate::engine::EventSet;
use crate::flow_state::FlowState;
use crate::hop::Hop;
use crate::prefetch::{prefetch, prefetch_head};

// The looks at an event, by how many others come before it. At its link; at the packet that comes out, and where it goes; at the
// endpoint where it arrives, and the link that an answer would go into.
const LINK: u32 = EventSet::AHEAD - 1;
const EXIT: u32 = 4;
const ARRIVAL: u32 = 1;

// The looks at a packet in a link which packets leave for different hops, by how many others come out before it: at its place in the
// ring, and at its next hop.
const PLACE: u32 = 20;
const NEXT: u32 = 8;

/// The bytes of a slot that a packet touches which comes out, and one that goes in and need not wait.
const OUT: usize = 128;
const IN: usize = 192;

impl Network {
    /// Asks for what the next events touch.
    #[inline(always)]
    pub(super) fn look_ahead(&mut self) {
        let Some([link, exit]) = self.events.upcoming([LINK, EXIT]) else { return };
        if let Some(slot) = self.slot_of(link) {
            prefetch_head(slot, OUT);
        }
        let route = self.slot_of(exit).map_or(NOWHERE, |slot| self.look_at_exit(slot));
        let route = self.arrivals.note(route, EXIT - ARRIVAL) as usize;
        if let Some(flow) = self.flows.get(route / 2) {
            flow.prefetch_arrival(direction_of(route));
            self.prefetch_slot(flow.first_hops[1 - route % 2]);
        }
    }

    /// Asks for what the next packet touches that comes out of a link; its route if it arrives.
    #[inline(always)]
    fn look_at_exit(&self, slot: &Slot) -> u32 {
        let (Some(next), Some(ticket)) = (slot.next, slot.plain().and_then(PlainLink::place)) else { return NOWHERE };
        if next != Hop::ENDPOINT {
            prefetch(ticket);
            self.prefetch_slot(next);
            return NOWHERE;
        }
        let (Some(packet), Some(flow)) = (self.store.peek(*ticket), self.flows.get(ticket.route() / 2)) else {
            return NOWHERE;
        };
        prefetch(packet);
        prefetch_head(flow, FlowState::HOT);
        ticket.route() as u32
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
            self.prefetch_slot(self.routes.after(ticket.route(), Hop::link(medium), slot.place));
        }
    }

    /// The medium that an event is of.
    #[inline(always)]
    fn slot_of(&self, target: u32) -> Option<&Slot> {
        if kind_of(target) != MEDIUM {
            return None;
        }
        self.media.get(index_of(target) as usize)
    }

    #[inline(always)]
    fn prefetch_slot(&self, hop: Hop) {
        if let Some(slot) = self.media.get(hop.medium as usize) {
            prefetch_head(slot, IN);
        }
    }
}
