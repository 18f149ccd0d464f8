//! Link models: `Link = queue → rate → loss and outage → delay`, without a clock.
//!
//! A [`Link`] is told what arrives and when ([`Link::push`]), says when to ask again
//! ([`Link::next`]) and hands over what has come out ([`Link::pop`]). A link does no I/O, reads no clock and draws
//! random numbers only from streams named after it, so that the simulator and the relay run the same code.
//!
//! **The driver's contract.** Time never goes backwards. After anything was pushed or popped, ask
//! [`Link::next`] and come back then, not later:
//!
//! ```
//! use fairpace_path::{Capacity, DelayModel, Link, LinkSpec, Plain, QueueModel, RateModel};
//! use fairpace_units::{Bytes, Duration, Instant, Packets, Rate};
//!
//! let spec = LinkSpec {
//!     rate: RateModel::Fixed(Rate::mbps(8.0)),
//!     delay: DelayModel::constant(Duration::from_millis(10)),
//!     queue: QueueModel::DropTail { capacity: Capacity::Packets(Packets::new(2)) },
//!     ..LinkSpec::default()
//! };
//! let mut link = Link::new(&spec, 1, "bottleneck")?;
//! let packet = Plain::new(Bytes::new(1_000)); // 1 ms at 8 Mbit/s
//! for _ in 0..3 {
//!     link.push(Instant::ZERO, packet); // 1. hand in what arrived: one is sent, one waits, one is dropped
//! }
//! let mut out = Vec::new();
//! while link.next() != Instant::NEVER {
//!     let now = link.next(); // 2. wait until then
//!     while let Some(_packet) = link.pop(now) {
//!         out.push(now); // 3. take out all that has arrived
//!     }
//! }
//! assert_eq!(out, [11, 12].map(|ms| Instant::ZERO + Duration::from_millis(ms)));
//! # Ok::<(), fairpace_path::LinkError>(())
//! ```
//!
//! A satellite's return link, shared by terminals that ask for capacity, is a [`Dama`]: driven the same
//! way, with a terminal's number beside each packet. A wireless link with local retransmission is an [`Arq`], whose
//! packets have a user's number. A [`Medium`] is any of these, or one of somebody else's ([`CustomMedium`]).
//!
//! Where to read: [`spec`] (what a scenario fills in), [`link`] (the composition), then one file
//! per mechanism: [`queue`], `rate`, [`trace`], `loss`, `outage`, `delay`, and [`wire`], the
//! smallest possible part and the template for new ones; apart from these, [`dama`], and [`arq`] on its
//! [`channel`].

#![forbid(unsafe_code)]

pub mod arq;
pub mod channel;
pub mod counters;
pub mod dama;
mod datagram;
mod delay;
pub mod link;
mod loss;
mod medium;
mod outage;
pub mod queue;
pub mod quick_start;
mod rate;
pub mod ring;
pub mod spec;
mod steps;
pub mod trace;
pub mod wire;

pub use arq::{Arq, ArqCounters, ArqError, ArqScheme, ArqSlot, ArqSpec, ArqUser, SlotOutcome};
pub use channel::{Channel, ChannelError, FadingError, Modulation, Rayleigh};
pub use counters::{ClassCounters, Count, DropReason, LinkCounters};
pub use dama::{Dama, DamaError, DamaSpec, ReleaseOf, SlotLayout};
pub use datagram::{Datagram, Plain};
pub use link::{Lane, Link, PlainLink};
pub use medium::{CustomMedium, Medium};
pub use ring::Ring;
pub use spec::*;
pub use trace::{Gaps, Trace, TraceError};
pub use wire::Wire;
