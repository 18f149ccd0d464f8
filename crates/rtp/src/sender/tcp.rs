//! The session's TCP half, for the driver.

use super::{Phase, SenderEvent, SenderSession};
use crate::StopReason;
use crate::challenge::Message;
use crate::rtcp::{Compound, Rtcp};
use fairpace_control::{TcpOrder, TcpProgress};
use fairpace_units::Instant;

impl SenderSession {
    /// Whether the driver is to connect by TCP to the peer's address and port: the peer has echoed a challenge, and the
    /// controller needs the connection.
    pub fn wants_tcp(&self) -> bool {
        matches!(self.phase, Phase::Settling(_)) && self.tcp.is_some_and(|tcp| tcp.is_absent())
    }

    /// Whether this flow has a TCP half.
    pub const fn has_tcp(&self) -> bool {
        self.tcp.is_some()
    }

    /// Whether all that the controller needs is there: the peer has answered, by TCP too if there is a TCP half.
    pub fn is_connected(&self) -> bool {
        self.trust.peer().is_some() && self.tcp.is_none_or(|tcp| tcp.is_up())
    }

    /// The TCP connection is there.
    pub fn on_tcp_connected(&mut self, now: Instant) {
        self.advance(now);
        if let Some(tcp) = &mut self.tcp {
            tcp.on_connected();
        }
    }

    /// The TCP connection could not be made, or has ended; so does the session.
    pub fn on_tcp_closed(&mut self, now: Instant) {
        self.advance(now);
        let was_up = self.tcp.is_some_and(|tcp| tcp.is_up());
        self.end(if was_up { StopReason::TcpLost } else { StopReason::NoTcp });
    }

    /// A packet has come over the TCP connection ([`crate::framing`]).
    pub fn handle_tcp_packet(&mut self, now: Instant, bytes: &[u8]) {
        self.advance(now);
        let echo = Compound::parse(bytes).ok().and_then(|mut compound| match compound.next() {
            Some(Rtcp::App(app)) => Message::parse(&app).ok()?,
            _ => None,
        });
        let awaited = self.tcp.as_mut().and_then(|tcp| Some((tcp.awaited()?, tcp)));
        let (Some((token, tcp)), Some(peer), Some(Message::Echo(echo))) = (awaited, self.trust.peer(), echo) else {
            self.stats.rejected.malformed += 1;
            return;
        };
        if echo.token != token {
            self.stats.rejected.token += 1;
        } else if echo.receiver != peer {
            self.stats.rejected.wrong_ssrc += 1;
        } else {
            tcp.on_greeting();
            self.events.push(SenderEvent::TcpUp);
        }
    }

    /// Whether the TCP connection takes more; packets that go that way wait until it does.
    pub fn set_tcp_room(&mut self, room: bool) {
        if let Some(tcp) = &mut self.tcp {
            tcp.set_room(room);
        }
    }

    /// Whether packets wait until TCP has delivered what it was given: as soon as that is acknowledged,
    /// [`SenderSession::on_tcp_drained`] is due.
    pub fn is_draining(&self) -> bool {
        self.tcp.is_some_and(|tcp| tcp.is_draining())
    }

    /// How far the TCP connection is: at each waking, before anything else.
    pub fn on_tcp(&mut self, now: Instant, progress: &TcpProgress) {
        let now = self.advance(now);
        self.flow.on_tcp(now, progress);
        self.note_rate();
    }

    /// All that was given to the TCP connection is acknowledged.
    pub fn on_tcp_drained(&mut self, now: Instant) {
        let now = self.advance(now);
        self.flow.on_tcp_drained(now);
        self.note_rate();
    }

    /// The next order for the TCP connection; ask until `None` after each call.
    pub fn take_tcp_order(&mut self) -> Option<TcpOrder> {
        self.flow.take_tcp_order()
    }
}
