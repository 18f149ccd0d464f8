//! How a flow socket is set up.

use crate::send::SendConfig;
use crate::{Buffers, NetError, TcpConfig};
use fairpace_control::BreakerParams;
use fairpace_rtp::{Codec, SenderConfig};
use fairpace_units::{Bytes, Dscp, Duration, Rate};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// How a socket is set up.
#[derive(Clone, Debug)]
pub struct FlowSocketConfig {
    /// Parameters of `tpba`, by name, as `fairpace list tpba` shows them.
    pub settings: BTreeMap<String, String>,
    /// Lowest rate.
    pub min_rate: Rate,
    /// Highest rate; there is no way to send without one.
    pub max_rate: Rate,
    /// IP size of a full packet; TCP's segments are as large. 576 to 1,500 B.
    pub packet_size: Bytes,
    /// Code point of data.
    pub dscp: Dscp,
    /// The TCP half of a sender.
    pub tcp: TcpConfig,
    /// The circuit breaker of a sender; `None` switches it off.
    pub breaker: Option<BreakerParams>,
    /// [`super::FlowSocket::send`] waits while so much waits to leave; no ADU may be longer.
    pub send_queue: Bytes,
    /// So much may wait for [`super::FlowSocket::recv`]. Beyond that TCP is not read, and what comes by UDP is dropped.
    pub receive_queue: Bytes,
    /// An ADU waits so long for packets before it that are missing.
    pub reorder_wait: Duration,
    /// [`super::FlowSocket::close`] waits at most so long for what waits to leave and to be acknowledged.
    pub linger: Duration,
    /// [`super::FlowSocket::accept`] waits so long; for ever if `None`.
    pub patience: Option<Duration>,
    /// Buffers of the UDP socket to ask for.
    pub buffers: Buffers,
}

impl Default for FlowSocketConfig {
    fn default() -> Self {
        FlowSocketConfig {
            settings: BTreeMap::new(),
            min_rate: Rate::kbps(50.0),
            max_rate: Rate::mbps(10.0),
            packet_size: Bytes::new(1_200),
            dscp: Dscp::DEFAULT,
            tcp: TcpConfig::default(),
            breaker: Some(BreakerParams::default()),
            send_queue: Bytes::new(64 << 10),
            receive_queue: Bytes::new(1 << 20),
            reorder_wait: Duration::from_millis(200),
            linger: Duration::from_secs(10),
            patience: None,
            buffers: Buffers::default(),
        }
    }
}

impl FlowSocketConfig {
    /// Refuses wrong parameters now and not at the first packet.
    pub(super) fn check(&self) -> Result<(), NetError> {
        if !(576..=1_500).contains(&self.packet_size.get()) {
            let found = self.packet_size.to_string();
            return Err(NetError::Config { field: "packet_size", found, allowed: "576 to 1500 B".to_owned() });
        }
        let nobody = SocketAddr::from(([0, 0, 0, 0], 0));
        self.send_config(nobody).controller().map(|_| ())
    }

    /// How the sender below is set up.
    pub(super) fn send_config(&self, peer: SocketAddr) -> SendConfig {
        SendConfig {
            scheme: "tpba".to_owned(),
            settings: self.settings.clone(),
            min_rate: self.min_rate.min(self.max_rate),
            max_rate: self.max_rate,
            breaker: self.breaker,
            codec: Codec::Generic,
            tcp: self.tcp.clone(),
            // Two packets are enough that the next one is always there.
            queue_limit: Some(self.packet_size + self.packet_size),
            leave_within: self.linger,
            session: SenderConfig {
                packet_size: self.packet_size,
                data_dscp: self.dscp,
                max_queue_delay: Some(Duration::MAX),
                ..SenderConfig::default()
            },
            buffers: self.buffers,
            ..SendConfig::new(peer)
        }
    }
}
