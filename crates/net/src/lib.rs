//! Fairpace on real sockets: the paced sender, the receiver, the relay, and what this machine allows.

mod address;
mod clock;
pub mod doctor;
mod error;
mod lateness;
mod outbox;
pub mod pacing;
pub mod receive;
pub mod relay;
pub mod send;
mod socket;
mod wait;

pub use address::resolve;
pub use clock::Clock;
pub use error::NetError;
pub use lateness::{Lateness, LatenessSummary};
pub use socket::{
    Backoff, Buffers, DatagramIo, Family, Granted, MAX_BATCH, MAX_BATCH_BYTES, Mark, Received, RecvOutcome,
    SendOutcome, SocketCounters, UdpSocket,
};
pub use wait::{Waiter, Woken};
