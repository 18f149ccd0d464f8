//! The TCP connection of a flow that has one beside its datagrams [tpba §5]: framed packets [RFC 4571] in and out of
//! the kernel, and what the kernel's TCP says of itself.
//!
//! Nothing here blocks, and what waits is bounded: at the sender one packet beside the kernel's send buffer, at the receiver
//! a few of the longest packets for each connection. Of connections there is one, and at most [`MOST_CANDIDATES`] that have
//! not yet said who they are; those are closed after [`PROOF_WITHIN`].

mod receiver;
mod sender;
mod stream;

pub use receiver::TcpReceiverStats;
pub(crate) use receiver::{MOST_CANDIDATES, MOST_READS, TcpReceiver};
pub(crate) use sender::TcpSender;
pub use sender::{IdleWindows, TcpConfig, TcpHalfStats};
pub(crate) use stream::TcpEnd;
