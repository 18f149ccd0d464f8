//! Media passed on to a player.

use crate::random::random;
use crate::{DatagramIo, Mark, NetError, SendOutcome, UdpSocket};
use fairpace_rtp::MediaPacket;
use fairpace_rtp::forward::Forwarder;
use fairpace_units::{Duration, Instant};

/// Media on its way to a player.
#[derive(Debug)]
pub(super) struct Forwarding {
    forwarder: Forwarder,
    socket: UdpSocket,
    packet: Vec<u8>,
    /// Packets passed on.
    pub(super) sent: u64,
    /// Packets that could not be.
    pub(super) not_sent: u64,
    /// When its machine last said that nobody listens; `None` once somebody does.
    refused: Option<Instant>,
}

/// A player that is not there yet refuses every packet, or one a second where its kernel limits ICMP. After so
/// long without a refusal it has come.
const PLAYER_CAME: Duration = Duration::from_millis(1_200);

impl Forwarding {
    pub(super) fn new(socket: UdpSocket, payload_type: u8) -> Result<Forwarding, NetError> {
        // An SSRC of our own: the player sees one stream even if the sender restarts.
        let ssrc = u32::from_ne_bytes(random()?);
        let forwarder = Forwarder::new(ssrc, payload_type);
        Ok(Forwarding { forwarder, socket, packet: Vec::new(), sent: 0, not_sent: 0, refused: None })
    }

    pub(super) fn pass(&mut self, media: &MediaPacket<'_>) {
        if !self.forwarder.forward(media, &mut self.packet) {
            return;
        }
        // A player that is not there yet refuses; the refusal is about the packet before.
        let mut outcome = self.socket.send(None, &self.packet, Mark::default());
        if outcome == SendOutcome::Refused {
            self.refused = Some(media.arrived);
            outcome = self.socket.send(None, &self.packet, Mark::default());
        }
        if outcome == SendOutcome::Sent {
            self.sent += 1;
        } else {
            self.not_sent += 1;
        }
    }

    /// True once, when a player has begun to listen in the middle of the stream: it can show nothing before a
    /// key frame, and the encoder gives one in 10 s if nobody asks.
    pub(super) fn player_came(&mut self, now: Instant) -> bool {
        let came = self.refused.is_some_and(|at| now.since(at) >= PLAYER_CAME);
        if came {
            self.refused = None;
        }
        came
    }
}
