//! CoDel: drops at the head, when all have waited too long for too long.
//!
//! Source: RFC 8289, §5 (pseudo-code). Page: `docs/links/codel.md`. Used by [`super::fq_codel`] too.
//!
//! | RFC | here | unit | set by |
//! | --- | --- | --- | --- |
//! | TARGET, INTERVAL | `target`, `interval` | time | parameter, 5 ms and 100 ms |
//! | MAXPACKET | `mtu` | bytes | parameter, 1,500 |
//! | `first_above_time_` | `first_above` | instant, none | a dequeue above or below the target |
//! | `dropping_`, `drop_next_` | `dropping`, `drop_next` | –, instant | entering, each drop |
//! | `count_`, `lastcount_` | `count`, `last_count` | drops | each drop, entering |
//!
//! **Readings.** (a) The sojourn time ends when the transmission begins. (b) The hard limit counts
//! the packet in transmission, the backlog that MAXPACKET is compared with does not: it is what
//! remains after the packet that is taken. (c) With ECN a packet that would be dropped is marked and
//! sent if it is ECN-capable; a mark counts as a drop and ends the dequeue, as in Linux. (d) A transmitter that falls idle asks the queue once more: this ends
//! the dropping state.
//!
//! **Deviation.** Times are whole nanoseconds, so INTERVAL/√count is rounded down to one.

use super::parts::{Fifo, Held, Next, Room, check_times};
use crate::{CoDelParams, Datagram, LinkError};
use fairpace_units::{Ecn, Instant};

/// A CoDel queue: the packets that wait, and the law by which they go.
#[derive(Clone, Debug)]
pub(crate) struct CoDel<T> {
    room: Room,
    law: Law,
    fifo: Fifo<T>,
    state: State,
}

impl<T> CoDel<T> {
    pub(crate) fn new(params: &CoDelParams) -> Result<Self, LinkError> {
        let (room, law) = (Room::new(params.capacity)?, Law::new(params)?);
        Ok(CoDel { room, law, fifo: Fifo::default(), state: State::default() })
    }

    pub(crate) fn fifo(&self) -> &Fifo<T> {
        &self.fifo
    }

    /// The transmitter has asked and found nobody.
    pub(crate) fn found_empty(&mut self) {
        self.state.found_empty();
    }
}

impl<T: Datagram> CoDel<T> {
    /// A packet arrives; it comes back if there is no room.
    pub(crate) fn arrive(&mut self, now: Instant, held: Held, packet: T) -> Result<(), T> {
        if !self.room.fits(held, packet.size().get()) {
            return Err(packet);
        }
        self.fifo.push(now, packet);
        Ok(())
    }

    /// The packet whose transmission begins; those dropped on the way go to `gone`.
    pub(crate) fn dequeue(&mut self, now: Instant, gone: &mut Vec<(Instant, T)>) -> Option<Next<T>> {
        self.law.dequeue(&mut self.state, &mut self.fifo, now, gone)
    }
}

/// The constants, in nanoseconds and bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Law {
    target: u64,
    interval: u64,
    mtu: u64,
    ecn: bool,
}

/// CoDel's memory of one queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    first_above: Option<Instant>,
    dropping: bool,
    drop_next: Instant,
    count: u64,
    last_count: u64,
}

impl State {
    /// A dequeue from an empty queue: below the target, and out of the dropping state.
    pub(super) fn found_empty(&mut self) {
        self.first_above = None;
        self.dropping = false;
    }
}

impl Law {
    pub(super) fn new(params: &CoDelParams) -> Result<Self, LinkError> {
        check_times([("target", params.target), ("interval", params.interval)])?;
        if params.mtu.get() == 0 {
            return Err(LinkError::BadQueue { field: "mtu", found: 0.0, allowed: "at least 1 byte" });
        }
        let nanos = |duration| (Instant::ZERO + duration).as_nanos();
        let (target, interval) = (nanos(params.target), nanos(params.interval));
        Ok(Law { target, interval, mtu: params.mtu.get(), ecn: params.ecn })
    }

    /// [RFC 8289 §5.5, `dequeue`]
    pub(super) fn dequeue<T: Datagram>(
        &self,
        state: &mut State,
        fifo: &mut Fifo<T>,
        now: Instant,
        gone: &mut Vec<(Instant, T)>,
    ) -> Option<Next<T>> {
        let (mut head, mut ok_to_drop) = self.take(state, fifo, now);
        if state.dropping {
            if !ok_to_drop {
                state.dropping = false;
            }
            // A large backlog may make several drops due at once.
            while state.dropping && now >= state.drop_next {
                state.count += 1;
                if self.marks(&mut head) {
                    state.drop_next = self.control_law(state.drop_next, state.count);
                    break;
                }
                gone.extend(head.take().map(|next| (next.arrival, next.packet)));
                (head, ok_to_drop) = self.take(state, fifo, now);
                if ok_to_drop {
                    state.drop_next = self.control_law(state.drop_next, state.count);
                } else {
                    state.dropping = false;
                }
            }
        } else if ok_to_drop {
            if !self.marks(&mut head) {
                gone.extend(head.take().map(|next| (next.arrival, next.packet)));
                head = self.take(state, fifo, now).0;
            }
            state.dropping = true;
            // Dropped not long ago: begin at about the frequency that helped then.
            let delta = state.count - state.last_count;
            let recent = now.since(state.drop_next).as_nanos() < u128::from(self.interval) * 16;
            state.count = if delta > 1 && recent { delta } else { 1 };
            state.drop_next = self.control_law(now, state.count);
            state.last_count = state.count;
        }
        head
    }

    /// The head, and whether it has been late for an interval [RFC 8289 §5.6, `dodequeue`].
    fn take<T: Datagram>(&self, state: &mut State, fifo: &mut Fifo<T>, now: Instant) -> (Option<Next<T>>, bool) {
        let Some((arrival, packet)) = fifo.pop() else {
            state.first_above = None;
            return (None, false);
        };
        let next = Next { arrival, packet, marked: false };
        let sojourn_time = now.as_nanos() - arrival.as_nanos();
        if sojourn_time < self.target || fifo.bytes() <= self.mtu {
            state.first_above = None;
            return (Some(next), false);
        }
        let ok_to_drop = match state.first_above {
            None => {
                state.first_above = Some(after(now, self.interval));
                false
            }
            Some(first_above) => now >= first_above,
        };
        (Some(next), ok_to_drop)
    }

    fn marks<T: Datagram>(&self, next: &mut Option<Next<T>>) -> bool {
        match next {
            Some(next) if self.ecn && next.packet.ecn() != Ecn::NotEct => {
                next.packet.set_ecn(Ecn::Ce);
                next.marked = true;
                true
            }
            _ => false,
        }
    }

    /// t + INTERVAL / √count: drops at this distance make TCP's rate fall linearly [RFC 8289 §5.6].
    fn control_law(&self, t: Instant, count: u64) -> Instant {
        after(t, (self.interval as f64 / (count as f64).sqrt()) as u64)
    }
}

fn after(t: Instant, nanos: u64) -> Instant {
    Instant::from_nanos(t.as_nanos().saturating_add(nanos))
}
