//! The flow's TCP connection, as the session sees it.

use fairpace_units::{Duration, Instant};

/// A TCP connection may take so long: the SYNs of 0, 1 and 3 s, and some time for the last.
const TCP_PATIENCE: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Absent,
    Connected,
    Greeted,
    Up,
}

/// The next step of the TCP half before anything is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// The connection is there.
    Ready,
    /// The challenge with this token goes over the connection.
    Greet(u64),
    /// Nothing before that instant.
    Wait(Instant),
    /// The connection has taken too long.
    Failed,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct TcpHalf {
    state: State,
    /// The token that the peer has echoed over UDP.
    token: u64,
    /// When patience with the connection ends.
    deadline: Instant,
    /// More can be given to it.
    room: bool,
    /// Nothing more is given to it, and what was given is on its way.
    draining: bool,
}

impl TcpHalf {
    pub(super) const fn new() -> Self {
        TcpHalf { state: State::Absent, token: 0, deadline: Instant::NEVER, room: false, draining: false }
    }

    /// The peer has echoed the challenge with that token over UDP.
    pub(super) fn on_peer(&mut self, now: Instant, token: u64) {
        (self.token, self.deadline) = (token, now + TCP_PATIENCE);
    }

    pub(super) fn is_absent(&self) -> bool {
        self.state == State::Absent
    }

    pub(super) fn is_up(&self) -> bool {
        self.state == State::Up
    }

    pub(super) fn on_connected(&mut self) {
        if self.state == State::Absent {
            self.state = State::Connected;
        }
    }

    pub(super) fn step(&mut self, now: Instant) -> Next {
        match self.state {
            State::Up => Next::Ready,
            _ if now >= self.deadline => Next::Failed,
            State::Connected => {
                self.state = State::Greeted;
                Next::Greet(self.token)
            }
            State::Absent | State::Greeted => Next::Wait(self.deadline),
        }
    }

    /// The token that an echo over the connection must carry; `None` if none is awaited.
    pub(super) fn awaited(&self) -> Option<u64> {
        (self.state == State::Greeted).then_some(self.token)
    }

    /// That echo has come.
    pub(super) const fn on_greeting(&mut self) {
        (self.state, self.room) = (State::Up, true);
    }

    pub(super) fn set_room(&mut self, room: bool) {
        if self.is_up() {
            self.room = room;
        }
    }

    pub(super) const fn has_room(&self) -> bool {
        self.room
    }

    pub(super) const fn set_draining(&mut self, draining: bool) {
        self.draining = draining;
    }

    pub(super) const fn is_draining(&self) -> bool {
        self.draining
    }
}
