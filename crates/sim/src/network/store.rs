//! The packets that are in links, each at a place whose number goes with it.
//!
//! Nearly all are TCP's: segments, and acknowledgements that name no blocks. Of those little need be kept ([`Brief`]), and much depends on how little: where
//! thousands of flows meet, tens of thousands of packets wait, far more than the near caches hold, and each is written once and read once.

use fairpace_path::{Datagram, Link};
use fairpace_units::{Class, Ecn, Instant};

use super::places::Places;
use super::route::{direction_of, route_of};
use super::ticket::Ticket;
use crate::packet::{Body, Packet, QuickStart};
use crate::prefetch::prefetch_head;
use crate::tcp::{Range, SACK_BLOCKS};

/// The packets that are in links.
#[derive(Debug, Default)]
pub(super) struct Store {
    briefs: Vec<Brief>,
    brief_places: Places,
    packets: Vec<Packet>,
    places: Places,
}

/// A TCP packet in short.
#[derive(Clone, Copy, Debug)]
pub(super) struct Brief {
    sent_at: Instant,
    /// Of a segment, or of the next one wanted.
    number: u32,
    route: u32,
    /// As in its ticket, and what is below.
    size_and_marks: u64,
}

// The bits of a brief that are not in a ticket.
const RETRANSMISSION: u64 = 1 << 36;
/// CWR of a segment, ECN-Echo of an acknowledgement.
const ANSWER: u64 = 1 << 37;
const ACK: u64 = 1 << 38;

/// The bits of a place's number.
pub(super) const PLACE_BITS: u32 = (1 << 30) - 1;

/// The bit of a place that says that a brief is there; above it the place among those.
const BRIEF: u32 = 1;

impl Brief {
    /// Of a packet that can be told in short.
    #[inline(always)]
    fn of(packet: Packet) -> Option<Brief> {
        let Packet { sent_at, body, flow, size, direction, class, ecn, quick_start } = packet;
        let (number, marks) = match body {
            Body::TcpData { seq, retransmission, cwr } => {
                let again = if retransmission { RETRANSMISSION } else { 0 };
                (seq, again | if cwr { ANSWER } else { 0 })
            }
            Body::TcpAck { next, sack, ece } if sack == [Range::default(); SACK_BLOCKS] => {
                (next, ACK | if ece { ANSWER } else { 0 })
            }
            _ => return None,
        };
        if quick_start.is_some() {
            return None;
        }
        let route = route_of(flow, direction) as u32;
        Some(Brief { sent_at, number, route, size_and_marks: Ticket::marked(size, class, ecn) | marks })
    }

    #[inline(always)]
    fn ticket(self, place: u32) -> Ticket {
        Ticket::of_route(place, self.route, self.size_and_marks & (RETRANSMISSION - 1))
    }

    /// The whole packet.
    #[inline(always)]
    pub(super) fn packet(self) -> Packet {
        let Brief { sent_at, number, route, size_and_marks } = self;
        let ticket = self.ticket(0);
        let answer = size_and_marks & ANSWER != 0;
        let body = if size_and_marks & ACK != 0 {
            Body::TcpAck { next: number, sack: [Range::default(); SACK_BLOCKS], ece: answer }
        } else {
            Body::TcpData { seq: number, retransmission: size_and_marks & RETRANSMISSION != 0, cwr: answer }
        };
        let (size, class, ecn) = (size_and_marks as u32, ticket.class(), ticket.ecn());
        let direction = direction_of(route as usize);
        Packet { sent_at, body, flow: route / 2, size, direction, class, ecn, quick_start: None }
    }
}

impl Store {
    /// Keeps a packet. Its ticket.
    #[inline(always)]
    pub(super) fn put(&mut self, packet: Packet) -> Ticket {
        let Some(brief) = Brief::of(packet) else { return self.put_whole(packet) };
        let i = self.brief_places.take();
        let place = i << 1 | BRIEF;
        debug_assert!(place <= PLACE_BITS, "a place has 30 bits");
        match self.briefs.get_mut(i as usize) {
            Some(old) => *old = brief,
            None => self.briefs.push(brief),
        }
        brief.ticket(place)
    }

    #[inline(always)]
    fn put_whole(&mut self, packet: Packet) -> Ticket {
        let i = self.places.take();
        let place = i << 1;
        debug_assert!(place <= PLACE_BITS, "a place has 30 bits");
        let ticket = Ticket::new(place, &packet);
        match self.packets.get_mut(i as usize) {
            Some(old) => *old = packet,
            None => self.packets.push(packet),
        }
        ticket
    }

    /// Gives the packet out, as the links have left it.
    #[inline(always)]
    pub(super) fn take(&mut self, ticket: Ticket) -> Packet {
        let place = ticket.place() as u32;
        let mut packet = match self.take_brief(place) {
            Some(brief) => brief.packet(),
            None => self.take_whole(place),
        };
        packet.ecn = ticket.ecn();
        packet
    }

    /// Gives the packet of that place out if it is a brief.
    #[inline(always)]
    pub(super) fn take_brief(&mut self, place: u32) -> Option<Brief> {
        if place & BRIEF == 0 {
            return None;
        }
        self.brief_places.give_back(place >> 1);
        Some(self.briefs[(place >> 1) as usize])
    }

    /// Gives the packet of that place out, which is no brief.
    #[inline(always)]
    pub(super) fn take_whole(&mut self, place: u32) -> Packet {
        self.places.give_back(place >> 1);
        self.packets[(place >> 1) as usize]
    }

    /// The packet of that place, also right after it was given out.
    #[inline(always)]
    pub(super) fn at_place(&self, place: u32) -> Packet {
        let i = (place >> 1) as usize;
        if place & BRIEF != 0 { self.briefs[i].packet() } else { self.packets[i] }
    }

    /// The ticket of the packet of that place.
    #[inline(always)]
    pub(super) fn ticket(&self, place: u32) -> Ticket {
        let i = (place >> 1) as usize;
        if place & BRIEF != 0 { self.briefs[i].ticket(place) } else { Ticket::new(place, &self.packets[i]) }
    }

    /// The packet has the marks of its ticket from now on. Only links that are not plain set any.
    #[inline(always)] // a call, however rare, takes registers away from others
    pub(super) fn keep_marks(&mut self, ticket: Ticket) {
        if ticket.ecn() == Ecn::Ce {
            let i = ticket.place() >> 1;
            if ticket.place() as u32 & BRIEF == 0 {
                self.packets[i].ecn = Ecn::Ce;
            } else {
                self.briefs[i].size_and_marks |= Ticket::marked(0, Class::Normal, Ecn::Ce);
            }
        }
    }

    /// A packet with a Quick-Start option is about to enter a link, whose router may change the option.
    #[cold]
    pub(super) fn judge_option(&mut self, at: Instant, ticket: Ticket, link: &mut Link<Ticket>) {
        if let Some(packet) = self.whole_mut(ticket)
            && let Some(QuickStart::Option(option)) = &mut packet.quick_start
        {
            *option = link.judge(at, ticket.flow(), *option);
        }
    }

    /// The packet while it stays, if it is no brief.
    pub(super) fn whole_mut(&mut self, ticket: Ticket) -> Option<&mut Packet> {
        let place = ticket.place() as u32;
        if place & BRIEF != 0 { None } else { self.packets.get_mut((place >> 1) as usize) }
    }

    /// Asks for the packet of a place.
    #[inline(always)]
    pub(super) fn prefetch(&self, place: u32) {
        let i = (place >> 1) as usize;
        if place & BRIEF != 0 {
            if let Some(brief) = self.briefs.get(i) {
                prefetch_head(brief, 1);
            }
        } else if let Some(packet) = self.packets.get(i) {
            prefetch_head(packet, 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Direction;

    const _: () = assert!(size_of::<Brief>() == 24);

    #[test]
    fn a_packet_comes_out_of_the_store_as_it_went_in_with_the_marks_of_its_ticket() {
        let flags = [false, true];
        let mut bodies = Vec::new();
        for (retransmission, cwr) in flags.into_iter().flat_map(|a| flags.map(|b| (a, b))) {
            bodies.push((Body::TcpData { seq: 4_000_000_000, retransmission, cwr }, true));
        }
        for ece in flags {
            let none = [Range::default(); SACK_BLOCKS];
            bodies.push((Body::TcpAck { next: 7, sack: none, ece }, true));
            let some = [Range { start: 9, end: 12 }, Range::default(), Range::default()];
            bodies.push((Body::TcpAck { next: 7, sack: some, ece }, false));
        }
        bodies.push((Body::Constant { seq: 1 << 40 }, false));
        let mut store = Store::default();
        for (body, is_brief) in bodies {
            for (class, ecn) in [Class::Normal, Class::Low].into_iter().flat_map(|c| (0..4).map(move |e| (c, e))) {
                for direction in [Direction::Forward, Direction::Back] {
                    let (sent_at, ecn) = (Instant::from_nanos(1 << 60 | 3), Ecn::from_bits(ecn));
                    let packet =
                        Packet { sent_at, body, flow: 99_999, size: 65_535, direction, class, ecn, quick_start: None };
                    let ticket = store.put(packet);
                    let place = ticket.place() as u32;
                    assert_eq!(place & BRIEF != 0, is_brief);
                    assert_eq!((ticket.class(), ticket.ecn(), ticket.size().get()), (class, ecn, 65_535));
                    assert_eq!(format!("{:?}", store.ticket(place)), format!("{ticket:?}"));
                    assert_eq!(ticket.is_unmarked(65_535), class == Class::Normal && ecn == Ecn::NotEct);
                    assert_eq!(format!("{:?}", store.at_place(place)), format!("{packet:?}"));
                    let mut marked = ticket;
                    marked.set_ecn(Ecn::Ce);
                    store.keep_marks(marked);
                    assert_eq!(format!("{:?}", store.ticket(place)), format!("{marked:?}"));
                    assert_eq!(format!("{:?}", store.take(marked)), format!("{:?}", Packet { ecn: Ecn::Ce, ..packet }));
                }
            }
        }
    }
}
