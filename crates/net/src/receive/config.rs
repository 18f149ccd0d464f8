//! Where to listen, and what to do with the packets that come.

use crate::{Buffers, Family, Key};
use fairpace_rtp::{Codec, ReceiverConfig};
use fairpace_units::{Bytes, Duration};
use std::net::SocketAddr;

/// Where to listen, and what to do with what comes.
#[derive(Clone, Debug)]
pub struct ReceiveConfig {
    /// Port to listen on; 0 takes a free one ([`Receiver::address`](super::Receiver::address) tells which).
    pub port: u16,
    /// On which addresses.
    pub family: Family,
    /// The session: feedback interval, advertised window, requests for lost packets, marks. The header sizes and the
    /// wall clock are filled in.
    pub session: ReceiverConfig,
    /// The key that the sender has too: nobody without it is heard. `None`: all is in clear.
    pub key: Option<Key>,
    /// Socket buffers to ask for.
    pub buffers: Buffers,
    /// Pass media on to this address, as clean RTP of payload type [`ReceiveConfig::forward_type`].
    pub forward: Option<SocketAddr>,
    /// Payload type for the player.
    pub forward_type: u8,
    /// Take in the TCP half of senders that have one (`tpba`): listen on the TCP port of the same number too.
    pub tcp: bool,
    /// The window that it offers there at most; `None`: the kernel's own.
    pub tcp_window: Option<Bytes>,
    /// When a sender's TCP half is there, hear nobody else any more.
    pub one_sender: bool,
    /// How long a packet waits for the rest of its frame.
    pub frame_hold: Duration,
    /// How long a session may last, from its first media packet; until the sender ends if `None`.
    pub duration: Option<Duration>,
    /// How long to wait for a session's sender; for ever if `None`.
    pub patience: Option<Duration>,
    /// Distance of the samples.
    pub sample: Duration,
}

impl ReceiveConfig {
    /// Listens on `port` with the defaults, until the sender says goodbye.
    pub fn new(port: u16) -> ReceiveConfig {
        ReceiveConfig {
            port,
            family: Family::Any,
            session: ReceiverConfig::default(),
            key: None,
            buffers: Buffers::default(),
            forward: None,
            forward_type: Codec::Vp8.payload_type(),
            tcp: false,
            tcp_window: None,
            one_sender: false,
            frame_hold: Duration::from_secs(2),
            duration: None,
            patience: None,
            sample: Duration::from_millis(100),
        }
    }
}
