//! The packets of the network in its media: whole ones, or tickets for those in the store (`store.rs`).

use fairpace_path::{DropReason, Link, Medium};
use fairpace_units::Instant;

use super::store::Store;
use super::ticket::Ticket;
use crate::packet::Packet;

/// A medium as the network has it: links carry tickets, all others whole packets.
#[allow(clippy::large_enum_variant)] // nearly all are links, and a pointer in between costs each packet
pub(super) enum Carrier {
    Link(Link<Ticket>),
    Other(Box<Medium<Packet>>),
}

impl Carrier {
    pub(super) fn is_link(&self) -> bool {
        matches!(self, Carrier::Link(_))
    }

    /// The medium, if it is no link.
    pub(super) fn other(&mut self) -> Option<&mut Medium<Packet>> {
        match self {
            Carrier::Link(_) => None,
            Carrier::Other(medium) => Some(medium),
        }
    }

    pub(super) fn ports(&self) -> u32 {
        match self {
            Carrier::Link(_) => 1,
            Carrier::Other(medium) => medium.ports(),
        }
    }

    pub(super) fn advance(&mut self, now: Instant) {
        match self {
            Carrier::Link(link) => link.advance(now),
            Carrier::Other(medium) => medium.advance(now),
        }
    }

    pub(super) fn record_drops(&mut self) {
        match self {
            Carrier::Link(link) => link.record_drops(true),
            Carrier::Other(medium) => medium.record_drops(true),
        }
    }

    /// The next packet that was dropped: when, why, and at which port it entered.
    pub(super) fn take_dropped(&mut self, store: &mut Store) -> Option<(Instant, DropReason, u32, Packet)> {
        match self {
            Carrier::Link(link) => {
                let (at, reason, ticket) = link.take_dropped()?;
                Some((at, reason, 0, store.take(ticket)))
            }
            Carrier::Other(medium) => medium.take_dropped(),
        }
    }
}
