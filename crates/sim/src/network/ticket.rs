//! A ticket: all that links have of a packet, which is written once, when it is sent, and read once, when it arrives. In between each link has to know little of
//! it, and what a hop costs is how much is copied and touched there.

use std::fmt;

use fairpace_path::Datagram;
use fairpace_units::{Bytes, Class, Ecn};

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
    pub(super) fn new(place: u32, packet: &Packet) -> Ticket {
        let option = if matches!(packet.quick_start, Some(QuickStart::Option(_))) { OPTION } else { 0 };
        let route = route_of(packet.flow, packet.direction) as u32;
        Ticket::of_route(place, route, Ticket::marked(packet.size, packet.class, packet.ecn) | option)
    }

    /// The ticket of a packet on that route, of that size and with those marks.
    #[inline(always)]
    pub(super) fn of_route(place: u32, route: u32, size_and_marks: u64) -> Ticket {
        Ticket { place_and_route: u64::from(place) | (u64::from(route) << 32), size_and_marks }
    }

    /// A size and marks, as a ticket has them.
    #[inline(always)]
    pub(super) fn marked(size: u32, class: Class, ecn: Ecn) -> u64 {
        u64::from(size) | if class == Class::Low { LOW } else { 0 } | ((ecn as u64) << ECN_SHIFT)
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
