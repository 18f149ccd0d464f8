//! The packets of the network: whole ones in one store, and tickets for them in the links.
//!
//! A packet is written once, when it is sent, and read once, when it arrives. In between each link has to know little of
//! it, and what a hop costs is how much is copied and touched there.

use std::fmt;

use fairpace_path::{Datagram, DropReason, Link, Medium};
use fairpace_units::{Bytes, Class, Ecn, Instant};

use super::places::Places;
use super::route::route_of;
use crate::packet::{Packet, QuickStart};

/// A packet on its way through links: all that they have to know, and where the rest of it is. Two words, which are copied
/// at once.
#[derive(Clone, Copy)]
pub struct Ticket {
    /// The packet's place in the store; above that, the number of its route: each direction of each flow has one.
    place_and_route: u64,
    /// The packet's size; above that its marks.
    size_and_marks: u64,
}

/// Bits of the marks: the class, the ECN field, and whether the packet has a Quick-Start option, which a link's router reads
/// in the store.
const LOW: u64 = 1 << 32;
const ECN_SHIFT: u32 = 33;
const ECN: u64 = 0b11 << ECN_SHIFT;
const OPTION: u64 = 1 << 35;

impl Ticket {
    #[inline(always)]
    fn new(place: u32, packet: &Packet) -> Ticket {
        let route = route_of(packet.flow, packet.direction) as u64;
        let low = if packet.class == Class::Low { LOW } else { 0 };
        let option = if matches!(packet.quick_start, Some(QuickStart::Option(_))) { OPTION } else { 0 };
        let marks = low | option | ((packet.ecn as u64) << ECN_SHIFT);
        Ticket { place_and_route: u64::from(place) | (route << 32), size_and_marks: u64::from(packet.size) | marks }
    }

    /// The ticket of a packet without marks.
    #[inline(always)]
    pub(super) fn unmarked(place: u32, route: u32, size: u32) -> Ticket {
        Ticket { place_and_route: u64::from(place) | (u64::from(route) << 32), size_and_marks: size.into() }
    }

    /// Whether its packet has that size, and no mark.
    #[inline(always)]
    pub(super) fn is_unmarked(self, size: u32) -> bool {
        self.size_and_marks == u64::from(size)
    }

    #[inline(always)]
    pub(super) fn place(self) -> usize {
        self.place_and_route as u32 as usize
    }

    #[inline(always)]
    pub(super) fn route(self) -> usize {
        (self.place_and_route >> 32) as usize
    }

    /// The packet's size in bytes if it has no mark but that of ECN; a number above all sizes if it has.
    #[inline(always)]
    pub(super) fn unmarked_size(self) -> u64 {
        self.size_and_marks & !ECN
    }

    #[inline(always)]
    pub(super) fn has_option(self) -> bool {
        self.size_and_marks & OPTION != 0
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (size, class, ecn) = (self.size(), self.class(), self.ecn());
        write!(f, "Ticket(place {}, route {}, {size}, {class:?}, {ecn:?})", self.place(), self.route())
    }
}

impl Datagram for Ticket {
    #[inline(always)]
    fn size(&self) -> Bytes {
        Bytes::new(self.size_and_marks & 0xffff_ffff)
    }
    #[inline(always)]
    fn class(&self) -> Class {
        if self.size_and_marks & LOW == 0 { Class::Normal } else { Class::Low }
    }
    #[inline(always)]
    fn ecn(&self) -> Ecn {
        Ecn::from_bits((self.size_and_marks >> ECN_SHIFT) as u8)
    }
    #[inline(always)]
    fn set_ecn(&mut self, ecn: Ecn) {
        self.size_and_marks = (self.size_and_marks & !ECN) | ((ecn as u64) << ECN_SHIFT);
    }
    #[inline(always)]
    fn flow(&self) -> u64 {
        self.route() as u64
    }
}

/// The packets that are in links.
#[derive(Debug, Default)]
pub(super) struct Store {
    packets: Vec<Packet>,
    places: Places,
}

impl Store {
    /// Keeps a packet. Its ticket.
    #[inline(always)]
    pub(super) fn put(&mut self, packet: Packet) -> Ticket {
        let place = self.places.take();
        debug_assert!(place <= super::PLACE_BITS, "the cargo of an entry has 30 bits for a place");
        let ticket = Ticket::new(place, &packet);
        match self.packets.get_mut(place as usize) {
            Some(old) => *old = packet,
            None => self.packets.push(packet),
        }
        ticket
    }

    /// Gives the packet out, as the links have left it.
    #[inline(always)]
    pub(super) fn take(&mut self, ticket: Ticket) -> Packet {
        self.places.give_back(ticket.place() as u32);
        let mut packet = self.packets[ticket.place()];
        packet.ecn = ticket.ecn();
        packet
    }

    /// Gives the packet of that place out.
    #[inline(always)]
    pub(super) fn take_from(&mut self, place: u32) -> Packet {
        self.places.give_back(place);
        self.packets[place as usize]
    }

    /// The packet of that place, also right after it was given out.
    #[inline(always)]
    pub(super) fn at_place(&self, place: u32) -> Packet {
        self.packets[place as usize]
    }

    /// The ticket of the packet of that place.
    #[inline(always)]
    pub(super) fn ticket(&self, place: u32) -> Ticket {
        Ticket::new(place, &self.packets[place as usize])
    }

    /// The packet has the marks of its ticket from now on. Only links that are not plain set any.
    #[inline(always)]
    pub(super) fn keep_marks(&mut self, ticket: Ticket) {
        if ticket.ecn() == Ecn::Ce {
            self.packets[ticket.place()].ecn = Ecn::Ce;
        }
    }

    /// A packet with a Quick-Start option is about to enter a link, whose router may change the option.
    #[cold]
    pub(super) fn judge_option(&mut self, at: Instant, ticket: Ticket, link: &mut Link<Ticket>) {
        if let Some(QuickStart::Option(option)) = &mut self.packets[ticket.place()].quick_start {
            *option = link.judge(at, ticket.flow(), *option);
        }
    }

    /// The packet of a place, if there is such a place, to look at.
    #[inline(always)]
    pub(super) fn at(&self, place: u32) -> Option<&Packet> {
        self.packets.get(place as usize)
    }

    /// The packet while it stays.
    pub(super) fn get_mut(&mut self, ticket: Ticket) -> &mut Packet {
        &mut self.packets[ticket.place()]
    }
}

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
