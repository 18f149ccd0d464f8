//! One receiver serves one sender at a time: who has the place, who asks for it, and what may be sent there.

use crate::budget::Budget;
use crate::challenge::{CONSENT, Challenge, LEN};
use crate::source::silent;
use core::net::SocketAddr;
use fairpace_units::{Class, Dscp, Duration, Ecn, Instant, QsOption};
use std::collections::VecDeque;

/// A sender that has not announced itself gives way after so much silence.
pub(super) const TAKEOVER: Duration = Duration::from_secs(2);
/// One that has, for a sender of its machine, as after a restart on another port: twice the longest time between the sender reports of one
/// that has nothing else to send [RFC 3550 §6.3.1]. Others of that machine, or behind its router, ask as well.
const SAME_MACHINE: Duration = Duration::from_secs(13);
/// One that has keeps the place while it may go on without an answer, so that nobody takes the place in a pause ([`CONSENT`]); but for so
/// long only where no media has come yet: challenges alone keep nobody else out.
const IDLE: Duration = Duration::from_secs(10);
/// A challenge of another address waits so long for the place: as long as a sender waits for the answer to its last one.
const WAITS: Duration = Duration::from_secs(4);
/// Other senders are told that the place is held at most so often, all together.
pub(super) const TOLD_APART: Duration = Duration::from_millis(100);
const MOST_ECHOES: usize = 16;
/// Streams that are known to have ended: those of some four senders.
const MOST_ENDED: usize = 32;
/// A sender asks in two classes, three times at most.
const MOST_RECENT_TOKENS: usize = 6;

/// The sender that has the place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer {
    pub(super) address: SocketAddr,
    pub(super) heard: Instant,
    /// When it took the place.
    since: Instant,
    pub(super) announced: Option<Challenge>,
    /// Media of its own has come.
    has_media: bool,
    /// The tokens of its last challenges, newest first: with one of them its TCP connection must begin.
    tokens: [Option<u64>; MOST_RECENT_TOKENS],
    /// Its TCP connection has been taken in.
    pub(super) tcp: bool,
    /// The sender sees what goes to its address.
    proven: bool,
    /// The numbers that were told last for a proof, newest first: its challenge and an echo may cross.
    told: [Option<u32>; 2],
    pub(super) budget: Budget,
}

impl Peer {
    /// The challenge has been taken in. One that comes again says nothing: somebody may have kept it.
    fn announce(&mut self, now: Instant, challenge: Challenge) {
        if self.has_asked(challenge.token) {
            return;
        }
        self.heard = now;
        self.announced = Some(challenge);
        self.tokens.rotate_right(1);
        if let Some(newest) = self.tokens.first_mut() {
            *newest = Some(challenge.token);
        }
    }

    /// From when on another address may take the place, from which it is kept for so long.
    fn gives_way(&self, kept: Duration) -> Instant {
        let silent = self.heard + if self.announced.is_none() { TAKEOVER } else { kept };
        if self.announced.is_none() || self.has_media { silent } else { silent.min(self.since + IDLE) }
    }

    /// How long the place is kept from a challenge of another address. One that names the sender's stream comes from the sender, after a change
    /// of address; one from its machine may, after a restart: with a key nobody else asks. A proof shows whether it is so.
    fn kept_from(&self, challenge: &Challenge, from: SocketAddr, keyed: bool) -> Duration {
        let is_stream = self.announced.is_some_and(|c| c.media.1 == challenge.media.1);
        match (is_stream, self.address.ip() == from.ip()) {
            (true, _) => TAKEOVER,
            (_, true) if keyed => TAKEOVER,
            (_, true) => SAME_MACHINE,
            _ => CONSENT,
        }
    }

    /// Whether one of its last challenges had this token.
    pub(super) fn has_asked(&self, token: u64) -> bool {
        self.tokens.contains(&Some(token))
    }
}

/// A challenge that is to be answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct PendingEcho {
    pub(super) to: SocketAddr,
    pub(super) token: u64,
    pub(super) class: Class,
    pub(super) dscp: Dscp,
    pub(super) ecn: Ecn,
    pub(super) arrived: Instant,
    /// The proof that is wanted before this sender is let in.
    pub(super) taken: Option<u32>,
    /// A sender of another address has the place, or the session that is over is not closed yet.
    pub(super) busy: bool,
    /// The Quick-Start option that the datagram came with, if the sender says that it sent one.
    pub(super) quick_start: Option<Option<QsOption>>,
}

/// A challenge from another address than the sender's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub(super) challenge: Challenge,
    pub(super) echo: PendingEcho,
    pub(super) len: usize,
    /// Bytes of the echo that told its sender to wait.
    pub(super) told: usize,
}

#[derive(Debug, Default)]
pub(super) struct Place {
    /// Challenges come from those who have a key.
    keyed: bool,
    pub(super) peer: Option<Peer>,
    echoes: VecDeque<PendingEcho>,
    /// The newest of another address, one of each class.
    waiting: Vec<Waiting>,
    /// How often the place was taken.
    taken: u64,
    /// When another sender was told last that the place is held.
    told: Option<Instant>,
    /// A session is over, and nobody is let in.
    closed: bool,
    /// The streams that ended by a goodbye, of either end, and when; the newest last.
    ended: VecDeque<(u32, Instant)>,
}

impl Place {
    /// Nobody has the place. `keyed`: only who has a key is heard.
    pub(super) fn new(keyed: bool) -> Place {
        Place { keyed, ..Place::default() }
    }

    /// Whether `from` is the sender, or may become it without a word.
    pub(super) fn is_open_to(&self, now: Instant, from: SocketAddr) -> bool {
        !self.closed && self.peer.is_none_or(|p| p.address == from || now >= p.gives_way(CONSENT))
    }

    /// Whether `from` is the sender, or may become it with this challenge. Packets that nobody has announced, which may come from anywhere
    /// in anybody's name, keep nobody out who shows where he is.
    pub(super) fn is_open_to_challenge(&self, now: Instant, challenge: &Challenge, from: SocketAddr) -> bool {
        let kept = |p: &Peer| p.kept_from(challenge, from, self.keyed);
        let may = |p: &Peer| p.announced.is_none() || now >= p.gives_way(kept(p));
        !self.closed && self.peer.as_ref().is_none_or(|p| p.address == from || may(p))
    }

    /// Whether the challenge is to show that its sender sees what goes to `from`: it takes the place of another one, or of another stream.
    pub(super) fn needs_proof(&self, challenge: &Challenge, from: SocketAddr) -> bool {
        let differs = |p: &Peer| p.address != from || p.announced.is_some_and(|c| c.media.1 != challenge.media.1);
        self.peer.as_ref().is_some_and(differs)
    }

    /// Whether `from` has the place.
    pub(super) fn is_held_by(&self, from: SocketAddr) -> bool {
        self.peer.is_some_and(|p| p.address == from)
    }

    /// How often the place was taken.
    pub(super) const fn holders(&self) -> u64 {
        self.taken
    }

    /// `from` has the place from now on; nothing is known of it but `bytes` received.
    pub(super) fn take(&mut self, now: Instant, from: SocketAddr, bytes: usize) {
        self.taken += 1;
        let mut budget = Budget::default();
        budget.on_received(bytes);
        self.peer = Some(Peer {
            address: from,
            heard: now,
            since: now,
            announced: None,
            has_media: false,
            tokens: [None; MOST_RECENT_TOKENS],
            tcp: false,
            proven: false,
            told: [None; 2],
            budget,
        });
    }

    pub(super) fn on_bytes(&mut self, from: SocketAddr, len: usize) {
        if let Some(peer) = self.peer.as_mut().filter(|p| p.address == from) {
            peer.budget.on_received(len);
        }
    }

    /// The sender's challenge has been taken in.
    pub(super) fn announce(&mut self, now: Instant, challenge: Challenge) {
        if let Some(peer) = &mut self.peer {
            peer.announce(now, challenge);
        }
    }

    /// The sender's media has come.
    pub(super) const fn on_media(&mut self) {
        if let Some(peer) = &mut self.peer {
            peer.has_media = true;
        }
    }

    /// Whether media of the sender's own has come, or its TCP connection.
    pub(super) fn has_session(&self) -> bool {
        self.peer.is_some_and(|p| p.has_media || p.tcp)
    }

    /// Whether the sender at that address is to show that it sees what goes there.
    pub(super) fn wants_proof(&self, from: SocketAddr) -> bool {
        self.peer.is_some_and(|p| p.address == from && !p.proven)
    }

    /// That number goes to the sender as the proof to show.
    pub(super) fn tell(&mut self, number: u32) {
        if let Some(peer) = self.peer.as_mut().filter(|p| p.told.first() != Some(&Some(number))) {
            peer.told = [Some(number), peer.told.first().copied().flatten()];
        }
    }

    /// Whether that number was told to the sender.
    pub(super) fn has_told(&self, number: u32) -> bool {
        self.peer.is_some_and(|p| p.told.contains(&Some(number)))
    }

    /// The sender sees what goes to its address.
    pub(super) const fn prove(&mut self) {
        if let Some(peer) = &mut self.peer {
            peer.proven = true;
        }
    }

    /// Nobody is let in.
    pub(super) const fn close(&mut self) {
        self.closed = true;
    }

    /// The place is free again.
    pub(super) const fn open(&mut self) {
        self.closed = false;
    }

    /// These streams are over.
    pub(super) fn end_streams(&mut self, now: Instant, ssrcs: impl Iterator<Item = u32>) {
        for ssrc in ssrcs {
            if self.ended.len() >= MOST_ENDED {
                self.ended.pop_front();
            }
            self.ended.push_back((ssrc, now));
        }
    }

    /// Whether that stream has ended by a goodbye of late: packets of it that come late begin no session. After [`CONSENT`], which is longer
    /// than packets are on their way, the stream may begin again.
    pub(super) fn has_ended(&self, now: Instant, ssrc: u32) -> bool {
        self.ended.iter().any(|(ended, at)| *ended == ssrc && !silent(now, *at, CONSENT))
    }

    /// Whether that stream has ended just now: a challenge may have left before its sender knew.
    pub(super) fn has_just_ended(&self, now: Instant, ssrc: u32) -> bool {
        self.ended.iter().any(|(ended, at)| *ended == ssrc && !silent(now, *at, WAITS))
    }

    /// Nothing could be heard for so long.
    pub(super) fn on_stall(&mut self, late: Duration) {
        if let Some(peer) = &mut self.peer {
            peer.heard += late;
            peer.since += late;
        }
    }

    /// The SSRC of the media stream that the sender has announced.
    pub(super) fn announced_media(&self) -> Option<u32> {
        self.peer?.announced.map(|c| c.media.1)
    }

    pub(super) fn push_echo(&mut self, echo: PendingEcho) {
        if self.echoes.len() < MOST_ECHOES {
            self.echoes.push_back(echo);
        }
    }

    pub(super) fn next_echo(&mut self) -> Option<PendingEcho> {
        self.echoes.pop_front()
    }

    /// An echo of `len` bytes leaves to that address.
    pub(super) fn on_echoed(&mut self, to: SocketAddr, len: usize) {
        if let Some(p) = self.peer.as_mut().filter(|p| p.address == to) {
            p.budget.on_sent(len);
        }
    }

    /// A challenge from another address waits until the place is free, and its sender is told so.
    pub(super) fn queue(&mut self, now: Instant, mut waiting: Waiting) {
        let normal = waiting.challenge.class == Class::Normal;
        if normal && self.told.is_none_or(|told| now.since(told) >= TOLD_APART) {
            self.told = Some(now);
            waiting.told = LEN;
            self.push_echo(PendingEcho { busy: true, ..waiting.echo });
        }
        self.wait(waiting);
    }

    /// A challenge waits until the place is free.
    pub(super) fn wait(&mut self, waiting: Waiting) {
        let (to, class) = (waiting.echo.to, waiting.challenge.class);
        self.waiting.retain(|w| w.echo.to == to && w.challenge.class != class);
        self.waiting.push(waiting);
    }

    /// When a challenge from another address is due to be answered; NEVER if there is none.
    pub(super) fn free_at(&self) -> Instant {
        if self.closed {
            return Instant::NEVER;
        }
        let kept = |p: &Peer, w: &Waiting| p.kept_from(&w.challenge, w.echo.to, self.keyed);
        let free = |w: &Waiting| self.peer.map_or(Instant::ZERO, |p| p.gives_way(kept(&p, w)));
        self.waiting.iter().map(free).min().unwrap_or(Instant::NEVER)
    }

    /// The challenges that waited, but for those that are given up: who asks no more has gone.
    pub(super) fn take_waiting(&mut self, now: Instant) -> Vec<Waiting> {
        let mut waiting = core::mem::take(&mut self.waiting);
        waiting.retain(|w| !silent(now, w.echo.arrived, WAITS));
        waiting
    }

    /// Whether `len` bytes more may go to the sender, which is not proven to want them. Counts them if so.
    pub(super) fn afford(&mut self, len: usize) -> bool {
        self.peer.as_mut().is_some_and(|p| p.budget.afford(len))
    }
}
