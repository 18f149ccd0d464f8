//! Media, dummy packets and feedback as RTP and RTCP, without I/O: bytes and times in, bytes and
//! times out. Everything that goes over the wire is described, with every number, in `docs/rtp/README.md`.
//!
//! # The driver's contract: *hand in, then drain*
//!
//! **After each thing that happened (a datagram, a frame, a timer), call `poll` until it answers
//! [`Out::Wait`] or [`Out::Stopped`], sending each [`Out::Datagram`] at once.** Asking again at the
//! same instant changes nothing; every input may bring the answer forward.
//!
//! ```text
//! loop {
//!     // 1. hand in what happened, with the time it happened
//!     session.handle_datagram(now, bytes, dscp, ecn);
//!     session.push_frame(now, frame);
//!     // 2. drain
//!     let until = loop {
//!         match session.poll(now) {
//!             Out::Datagram(d) => socket.send(d.bytes, d.dscp, d.ecn),
//!             Out::Wait(until) => break until,
//!             Out::Stopped(reason) => return reason,
//!         }
//!     };
//!     // 3. look at session.next_event(), then sleep until `until` or input
//! }
//! ```
//!
//! - [`SenderSession`] drives a [`fairpace_control::Flow`]: it sends nothing but a challenge until
//!   the peer has echoed it, then data and dummy packets when the flow permits them.
//! - [`ReceiverSession`] validates sources, answers challenges, reports every packet in its own
//!   class, and hands out media.
//!
//! Nothing from the network can make a parser panic or grow memory without a bound: a bad packet
//! is counted and dropped.

#![forbid(unsafe_code)]
// Bytes from the network get here. The modules that are parsers refuse unchecked arithmetic, too.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

pub mod base_station;
mod budget;
pub mod challenge;
mod codec;
pub mod dummy;
pub mod fec;
pub mod feedback;
pub mod forward;
pub mod frame_interval;
pub mod frames;
pub mod framing;
pub mod header_ext;
mod ntp;
mod out;
pub mod packet;
pub mod playout;
pub mod quick_start;
mod receiver;
mod reporting;
pub mod rtcp;
pub mod rtcp_timing;
pub mod rtx;
pub mod sdp;
mod secret;
mod send_queue;
mod sender;
mod sent;
pub mod source;
mod stamp;
pub mod vp8;
mod wire;

pub use budget::Budget;
pub use codec::Codec;
pub use ntp::NtpTime;
pub use out::{Count, Counts, Datagram, Out, StopReason, What};
pub use receiver::{
    AllowedSender, AtDoor, Door, DoorStats, MediaPacket, NoSuchSender, ReceiverConfig, ReceiverEvent, ReceiverSession,
    ReceiverStats, Room, StreamStats, network,
};
pub use secret::Secret;
pub use sender::{
    Admission, Frame, LEAST_PATH_MTU, MOST_QUEUED, QueueStats, RejectedFeedback, SenderConfig, SenderEvent,
    SenderSession, SenderStats,
};
pub use wire::WireError;
