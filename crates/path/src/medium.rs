//! A medium of a path, whatever is inside: packets enter at a port and come out labelled with that port.
//!
//! A [`Link`] has one port. A [`Dama`] has one per terminal, an [`Arq`] one per user. A driver treats all media
//! alike, by the loop of a link: push, ask [`Medium::next`], come back then and pop. A medium of somebody else's
//! implements [`CustomMedium`].

use fairpace_units::Instant;

use crate::{Arq, Dama, Datagram, DropReason, Link};

/// One direction of a hop. The rare and large kinds are boxed, so that an array of media is as dense as one of links.
#[allow(clippy::large_enum_variant)] // nearly all are links, and a pointer in between costs each packet
pub enum Medium<T> {
    /// A link between two nodes.
    Link(Link<T>),
    /// A satellite's return link; ports are terminals.
    Dama(Box<Dama<T>>),
    /// A base station's wireless downlink; ports are users.
    Arq(Box<Arq<T>>),
    /// One from outside this crate.
    Custom(Box<dyn CustomMedium<T>>),
}

const _: () = assert!(size_of::<Medium<crate::Plain>>() <= size_of::<Link<crate::Plain>>());

/// A medium from outside this crate. The driver's contract is that of [`Link`]: time never goes backwards, and after a
/// push or a pop the driver asks [`CustomMedium::next`] again. Random numbers come from a named stream, time only
/// from the arguments; so the same seed gives the same packets.
///
/// The smallest one, a wire that loses every tenth packet:
///
/// ```
/// use fairpace_path::{CustomMedium, DropReason, Wire};
/// use fairpace_units::Instant;
///
/// struct EveryTenth<T> {
///     wire: Wire<T>,
///     pushed: u64,
///     dropped: Vec<(Instant, T)>,
/// }
///
/// impl<T: Send> CustomMedium<T> for EveryTenth<T> {
///     fn push(&mut self, now: Instant, _port: u32, packet: T) {
///         self.pushed += 1;
///         match self.pushed % 10 {
///             0 => self.dropped.push((now, packet)),
///             _ => self.wire.push(now, packet),
///         }
///     }
///     fn next(&self) -> Instant {
///         self.wire.next()
///     }
///     fn pop(&mut self, now: Instant) -> Option<(u32, T)> {
///         Some((0, self.wire.pop(now)?))
///     }
///     fn take_dropped(&mut self) -> Option<(Instant, DropReason, u32, T)> {
///         self.dropped.pop().map(|(at, packet)| (at, DropReason::LinkError, 0, packet))
///     }
/// }
/// ```
pub trait CustomMedium<T>: Send {
    /// How many ports there are, numbered from zero; the driver pushes to no other.
    fn ports(&self) -> u32 {
        1
    }

    /// A packet enters at that port.
    fn push(&mut self, now: Instant, port: u32, packet: T);

    /// The earliest instant at which a packet may come out; [`Instant::NEVER`] if none will. An instant that is too
    /// early costs an event, one that is too late makes the packet late.
    fn next(&self) -> Instant;

    /// The next packet that is out by `now`, and the port at which the packet entered. The driver calls again until
    /// there is none.
    fn pop(&mut self, now: Instant) -> Option<(u32, T)>;

    /// The next packet that will not come out: when, why, the port at which the packet entered. The driver calls
    /// after each push and pop until there is none.
    fn take_dropped(&mut self) -> Option<(Instant, DropReason, u32, T)>;
}

impl<T: Datagram> Medium<T> {
    /// How many ports there are, numbered from zero.
    pub fn ports(&self) -> u32 {
        match self {
            Medium::Link(_) => 1,
            Medium::Dama(dama) => dama.terminals(),
            Medium::Arq(arq) => arq.users(),
            Medium::Custom(custom) => custom.ports(),
        }
    }

    /// A packet enters at that port. A port that is not there (`>= ports()`) is the caller's mistake; a [`Dama`] and
    /// an [`Arq`] panic.
    #[inline]
    pub fn push(&mut self, now: Instant, port: u32, packet: T) {
        match self {
            Medium::Link(link) => link.push(now, packet),
            Medium::Dama(dama) => dama.push(now, port, packet),
            Medium::Arq(arq) => arq.push(now, port, packet),
            Medium::Custom(custom) => custom.push(now, port, packet),
        }
    }

    /// The earliest instant at which something may come out, as the medium's own `next` says; [`Instant::NEVER`] if
    /// nothing will. Only a push or a pop changes the answer.
    #[inline]
    pub fn next(&self) -> Instant {
        match self {
            Medium::Link(link) => link.next(),
            Medium::Dama(dama) => dama.next(),
            Medium::Arq(arq) => arq.next(),
            Medium::Custom(custom) => custom.next(),
        }
    }

    /// The next packet that is out by `now`, and the port at which the packet entered. Call again until there is none.
    #[inline]
    pub fn pop(&mut self, now: Instant) -> Option<(u32, T)> {
        match self {
            Medium::Link(link) => link.pop(now).map(|packet| (0, packet)),
            Medium::Dama(dama) => dama.pop(now),
            Medium::Arq(arq) => arq.pop(now),
            Medium::Custom(custom) => custom.pop(now),
        }
    }

    /// Whether [`Medium::take_dropped`] may have one.
    #[inline]
    pub fn may_have_dropped(&self) -> bool {
        match self {
            Medium::Link(link) => link.has_dropped(),
            Medium::Dama(_) | Medium::Arq(_) | Medium::Custom(_) => true,
        }
    }

    /// The next dropped packet, when and why, and the port at which the packet entered, in order of time. Call again
    /// until there is none.
    pub fn take_dropped(&mut self) -> Option<(Instant, DropReason, u32, T)> {
        match self {
            Medium::Link(link) => link.take_dropped().map(|(at, reason, packet)| (at, reason, 0, packet)),
            Medium::Dama(dama) => dama.take_dropped(),
            Medium::Arq(arq) => arq.take_dropped(),
            Medium::Custom(custom) => custom.take_dropped(),
        }
    }

    /// Whether dropped packets are kept for [`Medium::take_dropped`]. Off at first; a custom medium always keeps them.
    pub fn record_drops(&mut self, on: bool) {
        match self {
            Medium::Link(link) => link.record_drops(on),
            Medium::Dama(dama) => dama.record_drops(on),
            Medium::Arq(arq) => arq.record_drops(on),
            Medium::Custom(_) => {}
        }
    }

    /// Brings the medium up to `now` without taking anything out: before reading counters, and at the end of a run.
    /// A custom medium has no counters to read.
    pub fn advance(&mut self, now: Instant) {
        match self {
            Medium::Link(link) => link.advance(now),
            Medium::Dama(dama) => dama.advance(now),
            Medium::Arq(arq) => arq.advance(now),
            Medium::Custom(_) => {}
        }
    }
}
