//! The places of a relay: each is for one client at a time, with a socket of its own towards the target and a flow of its own in the path.
//! A plain relay has one; a cell has one for each flow of its scenario that stands for real packets.

use super::config::RelayConfig;
use super::guest::Guest;
use super::hearing::Hearing;
use fairpace_net::{UdpSocket, random};
use fairpace_sim::FlowId;
use fairpace_units::{Bytes, Duration, Instant};
use std::net::SocketAddr;

/// A silent client keeps its place this long.
pub const TAKEOVER_AFTER: Duration = Duration::from_secs(2);

/// A place for one client at a time.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) flow: FlowId,
    pub(super) name: String,
    /// The tolerable delay of its data, and the size of a full packet.
    pub(super) data: (Option<Duration>, Bytes),
    pub(super) target_side: UdpSocket,
    pub(super) client: Option<SocketAddr>,
    pub(super) seen: Instant,
    pub(super) hearing: Hearing,
    /// The client before, if it had shown that it hears.
    pub(super) shown: Option<(SocketAddr, Hearing)>,
    /// Of a cell: what is known of the client that is there.
    pub(super) guest: Option<Guest>,
    /// How many clients it has had: packets under way of an earlier one count for nobody.
    pub(super) turn: u64,
}

/// The answer to a packet from some address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Admission {
    /// The client has this place.
    Known(usize),
    /// A client is new at this place.
    New(usize),
    /// The relay is for others, or others have all places.
    Refused,
}

/// All places.
pub(super) struct Places(pub(super) Vec<Place>);

impl Places {
    /// The place of a client, which is one of its own from now on. Without a free one it takes that of the client that has been silent
    /// longest, if that is long enough. A client that had shown that it hears, and paused, has its place back from one that has shown nothing.
    pub(super) fn admit(&mut self, config: &RelayConfig, from: SocketAddr, at: Instant) -> Admission {
        if let Some(i) = self.0.iter().position(|place| place.client == Some(from)) {
            if let Some(place) = self.0.get_mut(i) {
                place.seen = place.seen.max(at);
            }
            return Admission::Known(i);
        }
        let is_peer = |peer: &SocketAddr| from.ip() == peer.ip() && [0, from.port()].contains(&peer.port());
        if !config.peers.is_empty() && !config.peers.iter().any(is_peer) {
            return Admission::Refused;
        }
        let is_full = self.0.iter().all(|place| place.client.is_some());
        let is_back = |p: &Place| {
            is_full && !p.hearing.has_heard() && p.shown.as_ref().is_some_and(|(client, _)| *client == from)
        };
        if let Some(i) = self.0.iter().position(is_back)
            && let Some(place) = self.0.get_mut(i)
            && let Some((_, hearing)) = place.shown.take()
        {
            place.take(from, at, hearing);
            return Admission::New(i);
        }
        let silence = |place: &Place| match (place.client, &place.guest) {
            (None, _) => Duration::MAX,
            // Who said goodbye still gets what comes for it, until somebody wants the place.
            (Some(_), Some(guest)) if guest.is_gone(at) => Duration::MAX,
            (Some(_), _) => at.since(place.seen),
        };
        // The first of those that are free.
        let longest = self.0.iter().map(silence).max().unwrap_or_default();
        let found = self.0.iter().position(|place| silence(place) == longest && longest >= TAKEOVER_AFTER);
        let Some((i, place)) = found.and_then(|i| Some((i, self.0.get_mut(i)?))) else { return Admission::Refused };
        let hearing = match config.peers.is_empty() {
            false => Hearing::configured(),
            true => Hearing::of(random().ok().map(u32::from_be_bytes)),
        };
        place.take(from, at, hearing);
        Admission::New(i)
    }
}

impl Place {
    /// The client has the place from now on.
    fn take(&mut self, client: SocketAddr, at: Instant, hearing: Hearing) {
        let (before, heard) = (self.client.replace(client), std::mem::replace(&mut self.hearing, hearing));
        if let Some(before) = before.filter(|_| heard.has_heard()) {
            self.shown = Some((before, heard));
        }
        self.seen = self.seen.max(at);
        self.turn += 1;
    }
}
