//! The results and counts of a flow socket.

use crate::TcpHalfStats;
use fairpace_rtp::ReceiverStats;
use fairpace_units::{Instant, Rate, Via};
use std::net::SocketAddr;

/// The result of [`super::FlowSocket::recv`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Bytes of the buffer that it filled.
    pub len: usize,
    /// The ADU ends with them.
    pub adu_end: bool,
    /// The transport that the ADU came by; `None`: by both, which none does.
    pub via: Option<Via>,
    /// Packets that never came between this ADU and the one before; 0 = none.
    pub missing: u64,
    /// When the ADU was complete, in time since the socket was bound.
    pub completed: Instant,
}

/// The counts of a socket.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct FlowSocketStats {
    /// The peer.
    pub peer: Option<SocketAddr>,
    /// ADUs that have left the queue, or were handed to the program.
    pub adus: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Sender: the state of `tpba`, and the rate that it allows.
    pub state: Option<(&'static str, Rate)>,
    /// The transport of the next packet, or of the last ADU.
    pub via: Via,
    /// Sender: changes of the transport. Receiver: the same, as the ADUs show them.
    pub switches: u64,
    /// Sender: when each of the last 1,024 changes was, and to what.
    pub switched: Vec<(Instant, Via)>,
    /// Sender, when it has ended: what its TCP half did.
    pub tcp: Option<TcpHalfStats>,
    /// Receiver: ADUs of which part came by UDP and part by TCP.
    pub split: u64,
    /// Receiver: packets missing between ADUs.
    pub missing: u64,
    /// Receiver: ADUs that were complete only after others behind them had been handed out.
    pub late: u64,
    /// Receiver: ADUs dropped because the program did not read.
    pub overflowed: u64,
    /// Receiver, when it has ended: what it counted of RTP.
    pub received: Option<ReceiverStats>,
}
