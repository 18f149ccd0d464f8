//! FQ-CoDel: flows take turns, each with a CoDel queue of its own, and new ones go first.
//!
//! Source: RFC 8290, §4. Read first: [`super::codel`]. Page: `docs/links/fq-codel.md`.
//!
//! | RFC | here | unit | set by |
//! | --- | --- | --- | --- |
//! | queue | `Flow` | – | a hash of [`Datagram::flow`] |
//! | lists of new and old queues | `new`, `old` | places in `flows` | arrival, each turn |
//! | credits (deficit) | `credits` | bytes | a turn, each packet sent |
//! | quantum | `quantum` | bytes | parameter, 1,514 |
//! | memory limit, packet limit | `room` | packets or bytes | parameter |
//!
//! **Readings.** (a) The limit counts the packet in transmission, which can no longer go. (b) When it
//! is exceeded, half the packets of the queue with the most bytes go, at most 64, at least one, from
//! its head; if that is not enough, again. The arrival may be among them. Of two equally long queues
//! the one that stands first in the lists loses. (c) The RFC's hash is over the 5-tuple with a random
//! number; ours over the number of the flow, with a number from the random stream `<link>.fq_codel`.
//! (d) A transmitter that falls idle asks until both lists are empty. (e) MAXPACKET is compared with
//! the flow's own backlog; Linux takes that of all flows.

use super::codel::{Law, State};
use super::parts::{Fifo, Held, Next, Room};
use crate::{Datagram, FqCoDelParams, LinkError};
use fairpace_units::{Instant, RandomStream};
use std::collections::VecDeque;

/// The most packets that one arrival makes go at once [RFC 8290 §4.1].
const BATCH: usize = 64;

/// All flows' queues and whose turn it is.
#[derive(Clone, Debug)]
pub(crate) struct FqCoDel<T> {
    room: Room,
    law: Law,
    quantum: i64,
    perturbation: u64,
    flows: Vec<Flow<T>>,
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    waiting: usize,
}

#[derive(Clone, Debug)]
struct Flow<T> {
    fifo: Fifo<T>,
    state: State,
    credits: i64,
    /// Whether it stands in one of the lists.
    active: bool,
}

impl<T> FqCoDel<T> {
    pub(crate) fn new(params: &FqCoDelParams, mut random: RandomStream) -> Result<Self, LinkError> {
        let bad = |field, allowed| Err(LinkError::BadQueue { field, found: 0.0, allowed });
        if params.quantum.get() == 0 {
            return bad("quantum", "at least 1 byte");
        }
        if params.flows == 0 {
            return bad("flows", "at least 1");
        }
        let flow = || Flow { fifo: Fifo::default(), state: State::default(), credits: 0, active: false };
        Ok(FqCoDel {
            room: Room::new(params.codel.capacity)?,
            law: Law::new(&params.codel)?,
            quantum: i64::try_from(params.quantum.get()).unwrap_or(i64::MAX),
            perturbation: random.bits(),
            flows: std::iter::repeat_with(flow).take(params.flows as usize).collect(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            waiting: 0,
        })
    }

    /// How many packets wait, the one in transmission not counted.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting
    }

    /// The packets that wait, and when they arrived.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Instant, &T)> {
        self.new.iter().chain(&self.old).flat_map(|&place| self.flows[place as usize].fifo.iter())
    }

    /// The transmitter has asked and found nobody: all queues leave their lists.
    pub(crate) fn found_empty(&mut self) {
        for place in self.new.drain(..).chain(self.old.drain(..)) {
            let flow = &mut self.flows[place as usize];
            flow.state.found_empty();
            flow.active = false;
        }
    }

    /// The queue of a flow: SplitMix64 of the flow's number and the perturbation.
    fn place_of(&self, flow: u64) -> u32 {
        let z = (flow ^ self.perturbation).wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let hash = z ^ (z >> 31);
        ((u128::from(hash) * self.flows.len() as u128) >> 64) as u32
    }
}

impl<T: Datagram> FqCoDel<T> {
    /// A packet arrives and joins its flow's queue; those that go for lack of room go to `gone`
    /// [RFC 8290 §4.1].
    pub(crate) fn arrive(&mut self, now: Instant, held: Held, packet: T, gone: &mut Vec<(Instant, T)>) {
        let mut held = Held { packets: held.packets + 1, bytes: held.bytes + packet.size().get() };
        let place = self.place_of(packet.flow());
        let flow = &mut self.flows[place as usize];
        flow.fifo.push(now, packet);
        self.waiting += 1;
        if !flow.active {
            flow.active = true;
            flow.credits = self.quantum;
            self.new.push_back(place);
        }
        while !self.room.holds(held) && self.waiting > 0 {
            let before = gone.len();
            self.shorten_the_longest(gone);
            for (_, victim) in &gone[before..] {
                held.packets -= 1;
                held.bytes -= victim.size().get();
            }
        }
    }

    fn shorten_the_longest(&mut self, gone: &mut Vec<(Instant, T)>) {
        let mut longest = (0, None);
        for &place in self.new.iter().chain(&self.old) {
            let bytes = self.flows[place as usize].fifo.bytes();
            if longest.1.is_none() || bytes > longest.0 {
                longest = (bytes, Some(place));
            }
        }
        let Some(place) = longest.1 else { return };
        let fifo = &mut self.flows[place as usize].fifo;
        for _ in 0..(fifo.len() / 2).clamp(1, BATCH) {
            gone.extend(fifo.pop());
            self.waiting -= 1;
        }
    }

    /// The packet whose transmission begins [RFC 8290 §4.2].
    pub(crate) fn dequeue(&mut self, now: Instant, gone: &mut Vec<(Instant, T)>) -> Option<Next<T>> {
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let &place = list.front()?;
            let flow = &mut self.flows[place as usize];
            if flow.credits <= 0 {
                flow.credits += self.quantum;
                list.pop_front();
                self.old.push_back(place);
                continue;
            }
            let before = gone.len();
            let next = self.law.dequeue(&mut flow.state, &mut flow.fifo, now, gone);
            self.waiting -= gone.len() - before;
            if let Some(next) = next {
                self.waiting -= 1;
                flow.credits -= i64::try_from(next.packet.size().get()).unwrap_or(i64::MAX);
                return Some(next);
            }
            list.pop_front();
            if is_new {
                // Through the old list once, so that a flow cannot stay new by pausing.
                self.old.push_back(place);
            } else {
                flow.active = false;
            }
        }
    }
}
