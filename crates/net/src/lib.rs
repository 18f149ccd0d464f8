//! Fairpace on real sockets: the same controllers and sessions as in the simulator, driven by a clock.
//!
//! - [`send`]: the paced sender. [`receive`]: the receiver, which can pass clean RTP on to a player.
//! - [`doctor`] and [`pacing`]: what this machine allows, measured.
//! - [`kernel_tcp`]: what the kernel's TCP says of a connection, and what it can be told.
//! - [`UdpSocket`], [`Clock`], [`Waiter`]: the only places of the drivers that open a UDP socket, read a clock, or sleep.
//!
//! The drivers have one shape: *hand in what happened, drain the session, sleep*; each is told to stop
//! by an `AtomicBool`, and gives a complete report however it ends. Rules for users, failures and measured
//! numbers: `docs/net/README.md`.

mod address;
mod alarms;
mod clock;
mod datagram;
pub mod doctor;
mod error;
pub mod flow_socket;
pub mod kernel_tcp;
mod lateness;
mod outbox;
pub mod pacing;
mod random;
pub mod receive;
mod seal;
pub mod send;
mod socket;
mod tcp_half;
mod wait;
mod watch;

pub use address::{Family, elsewhere, ip_overhead, resolve};
pub use clock::Clock;
pub use datagram::{
    Backoff, DatagramIo, MAX_BATCH, MAX_BATCH_BYTES, Mark, Received, RecvOutcome, SendOutcome, SocketCounters,
};
pub use error::NetError;
pub use flow_socket::FlowSocket;
pub use lateness::{LatenessHistogram, LatenessSummary};
pub use random::random;
pub use seal::{Key, is_sealed};
pub use socket::{Buffers, Granted, UdpSocket};
pub use tcp_half::{IdleWindows, TcpConfig, TcpHalfStats, TcpReceiverStats};
pub use wait::{Waiter, Woken};
pub use watch::Watch;
