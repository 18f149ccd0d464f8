//! DAMA: the return link of a DVB-RCS satellite, which terminals share and ask for capacity of.
//!
//! Source: [qsd §2.1, §2.2, §3.1, Table I, App. A]. Page: `docs/links/dama.md`. Read first: [`DamaSpec`].
//! Pure arithmetic in `dama/ncc.rs`, a carrier's decisions and plan in `dama/carrier.rs`, whose slot is
//! whose in `dama/layout.rs`; here the packets.
//!
//! | paper | here | unit | set by |
//! | --- | --- | --- | --- |
//! | T_f | `slots_per_multi_frame`, [`DamaSpec::multi_frame`] | slots, time | 24 or 144 |
//! | T_b, T_r | `slots_per_super_frame`, [`DamaSpec::super_frame`] | slots, time | three multi-frames |
//! | T_p | `propagation` | time | 252 ms |
//! | T_a, n | `allocation_delay` | super-frames | 6 or 2 |
//! | R(t) | `arrived` | bytes in T_r | each push |
//! | q(t), T_s | `bytes`, `vbdc` | bytes, time | joining, departing; parameter |
//! | F, C | `free`, `cra` | units, rate | the NCC; parameter |
//! | N_B, N_L, a, b | `n_b`, `traffic`, `release_a`, `release_b` | units | each boundary; 1 and 0.5 |
//! | QS-Rate | `approved` | rate | the terminal's agent |
//! | d | `ahead` | super-frames | T_p rounded up |
//!
//! **The loop.** Super-frames have the same boundaries for all. At boundary k each terminal asks, by
//! eq. (1), for what arrived since k - 1. The request is at the NCC T_p later. At boundary k + n - d the NCC
//! answers all requests of k with the TBTP of super-frame k + n, which every terminal has when it begins.
//! Slots serve a terminal's uplink queue as a stream of bytes: a burst takes what had arrived when it
//! began, packets are cut where slots end, and a packet has left when the slot with its last byte ends.
//! T_p later it is at any other terminal: the satellite switches on board.
//!
//! **Readings.** (a) All capacity is counted in units of the granularity, requests rounded up to them. A
//! fraction of a slot is carried to the next super-frame. (b) N_L is the traffic that the request answered
//! reports, in units, or that of the interval just ended ([`ReleaseOf`]), and N_B stays unrounded; a released
//! grant is not below the request or the minimum.
//! (c) Over capacity everyone has the minimum, and the rest is shared in proportion to what is wanted
//! beyond it. (d) F is what the terminal has by FCA at the boundary at which it asks. (e) q(t) counts a
//! packet in full until its last byte has left. (f) What arrives at the instant of a boundary counts for the
//! interval that begins there. (g) Traffic counts when it comes to the terminal, also if Quick-Start then
//! holds it.
//!
//! **Deviation.** None known.
//!
//! **Not implemented.** Loss on the air; the slots that requests take; log-on, ranging and power; fading
//! but for what a listening terminal mishears; terminals of different minimum, constant rate or priority.

mod carrier;
mod clock;
mod event;
mod layout;
mod ncc;
mod spec;
mod store;

pub use event::{BurstTimePlan, DamaEvent, DamaEventKind, TerminalCounters};
pub(crate) use ncc::requested;
pub use spec::{DamaError, DamaSpec, ReleaseOf, SlotLayout};

use crate::quick_start::{Agent, QsAgent, pass_unaware};
use crate::{Datagram, DropReason, Wire};
use carrier::{Carrier, Log, Rules, Scratch, Terminal};
use clock::SlotClock;
use fairpace_units::{Bytes, Duration, Instant, Packets, Rate};
use layout::Layout;
use std::collections::VecDeque;
use store::{Calendar, List, Store};

/// A satellite's return link: packets come in at a terminal and come out T_p after their last slot.
///
/// Used like a [`Link`](crate::Link): push what arrives, ask [`Dama::next`], come back then and pop. A
/// terminal that is not there (`>= terminals()`) is the caller's mistake, and panics.
///
/// ```
/// use fairpace_path::{Dama, DamaSpec, Plain};
/// use fairpace_units::{Bytes, Duration, Instant};
/// let mut dama = Dama::new(&DamaSpec::large(), 1, "satellite")?;
/// dama.push(Instant::ZERO, 0, Plain::new(Bytes::new(1_316)));
/// let exit = dama.next(); // terminal 0 has the first slot of each multi-frame: 1.899 ms, then T_p
/// assert_eq!(exit, Instant::ZERO + Duration::from_nanos(1_898_990) + Duration::from_millis(252));
/// assert_eq!(dama.pop(exit).map(|(from, _)| from), Some(0));
/// # Ok::<(), fairpace_path::DamaError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Dama<T> {
    spec: DamaSpec,
    /// For the random streams of agents that are made when they are first needed.
    seed: u64,
    name: String,
    clock: SlotClock,
    layout: Layout,
    rules: Rules,
    /// The latest time that any call has told.
    now: Instant,
    /// The super-frame that `now` lies in, and when the next one begins.
    super_frame: u64,
    boundary: Instant,
    carriers: Vec<Carrier>,
    /// Terminals on each, but for the last.
    per_carrier: usize,
    /// Carriers that are not at rest.
    awake: usize,
    terminals: Vec<Terminal>,
    counters: Vec<TerminalCounters>,
    /// One each, made with its first request; empty if the agents are off.
    agents: Vec<Option<Box<QsAgent>>>,
    store: Store<T>,
    /// Held by an agent: until when, and where.
    held: Wire<u32>,
    /// Packets in uplink queues whose last byte has no slot yet.
    unsettled: usize,
    /// Those whose last byte has one.
    calendar: Calendar,
    /// Those that have arrived.
    arrived: List,
    recording: bool,
    dropped: VecDeque<(Instant, DropReason, u32, T)>,
    log: Log,
    scratch: Scratch,
}

impl<T: Datagram> Dama<T> {
    /// Builds the link that `spec` describes. Random numbers are drawn by the Quick-Start agents only, from
    /// streams whose names begin with `<name>.terminal<number>` and `seed`.
    ///
    /// # Errors
    /// [`DamaError`] names the field of `spec` that cannot be.
    pub fn new(spec: &DamaSpec, seed: u64, name: &str) -> Result<Self, DamaError> {
        spec.validate()?;
        let clock = SlotClock::new(spec);
        let rules = Rules::new(spec, clock);
        let (all, each) = (spec.terminals as usize, spec.terminals_per_carrier() as usize);
        let mut terminals = Vec::with_capacity(all);
        let carriers = (0..all)
            .step_by(each)
            .map(|first| Carrier::new(&rules, spec, first, &mut terminals, each.min(all - first)))
            .collect::<Vec<_>>();
        let agents = if spec.quick_start.agent == Agent::Off { Vec::new() } else { vec![None; all] };
        Ok(Dama {
            spec: spec.clone(),
            seed,
            name: name.to_owned(),
            clock,
            layout: Layout::new(spec),
            rules,
            now: Instant::ZERO,
            super_frame: 0,
            boundary: clock.boundary(1),
            awake: carriers.iter().filter(|carrier| !carrier.resting).count(),
            carriers,
            per_carrier: each,
            terminals,
            counters: vec![TerminalCounters::default(); all],
            agents,
            store: Store::new(),
            held: Wire::new(Duration::ZERO),
            unsettled: 0,
            calendar: Calendar::new(clock, spec.propagation, u64::from(spec.slots_per_super_frame)),
            arrived: List::EMPTY,
            recording: false,
            dropped: VecDeque::new(),
            log: Log::default(),
            scratch: Scratch::default(),
        })
    }

    /// A packet comes to a terminal from its side of the network.
    pub fn push(&mut self, now: Instant, terminal: u32, mut packet: T) {
        self.run_until(now);
        let (i, size) = (terminal as usize, packet.size());
        self.wake(i);
        self.counters[i].offered.add(size);
        self.terminals[i].arrived += size.get();
        let until = self.ask_agent(i, &mut packet);
        let place = self.store.insert(packet, size.get(), terminal);
        if until > self.now {
            self.held.insert(until, place);
        } else {
            self.join(self.now, place);
        }
    }

    /// The earliest instant at which something may come out; [`Instant::NEVER`] if nothing will. While a
    /// packet's last byte has no slot it is a lower bound, and asked again then it is a later one. Only a
    /// push or a pop changes it.
    pub fn next(&self) -> Instant {
        if !self.arrived.is_empty() {
            return self.now;
        }
        // A packet without a slot goes into a slot of the next super-frame at the earliest, or after its hold.
        let queued = if self.unsettled > 0 { self.boundary } else { Instant::NEVER };
        let waiting = queued.min(self.held.next());
        self.calendar.next().min(waiting + self.spec.propagation).max(self.now)
    }

    /// The next packet that is out by `now`, and the terminal that it came from. Call it until there is
    /// none. Packets of different carriers that come out at the same instant have no natural order; theirs is
    /// arbitrary, but always the same.
    pub fn pop(&mut self, now: Instant) -> Option<(u32, T)> {
        self.run_until(now);
        if self.calendar.next() <= self.now {
            self.depart(self.now);
            self.calendar.arrive(self.now, &mut self.store, &mut self.arrived);
        }
        let place = self.store.pop(&mut self.arrived)?;
        let size = self.store.get(place).size;
        let (terminal, packet) = self.store.remove(place)?;
        self.counters[terminal as usize].delivered.add(Bytes::new(size));
        Some((terminal, packet))
    }

    /// Brings the link up to `now` without taking anything out: before reading anything, and at the end of
    /// a run.
    pub fn advance(&mut self, now: Instant) {
        self.run_until(now);
        self.depart(self.now);
    }

    /// How many terminals there are; they are numbered from zero.
    pub fn terminals(&self) -> u32 {
        self.spec.terminals
    }

    /// How many carriers there are.
    pub fn carriers(&self) -> u32 {
        self.carriers.len() as u32
    }

    /// The carrier of a terminal.
    pub fn carrier_of(&self, terminal: u32) -> u32 {
        terminal / self.per_carrier as u32
    }

    /// The specification from which this link was built.
    pub fn spec(&self) -> &DamaSpec {
        &self.spec
    }

    /// The counts of a terminal so far; call [`Dama::advance`] first.
    pub fn counters(&self, terminal: u32) -> &TerminalCounters {
        &self.counters[terminal as usize]
    }

    /// Packets in a terminal's uplink queue, the one under way included, those that its agent holds not.
    pub fn queue_len(&self, terminal: u32) -> usize {
        self.terminals[terminal as usize].packets as usize
    }

    /// Bytes in a terminal's uplink queue, the packet under way in full.
    pub fn queue_bytes(&self, terminal: u32) -> Bytes {
        Bytes::new(self.terminals[terminal as usize].bytes)
    }

    /// Packets that were pushed and have neither come out nor been dropped: held, waiting or on their way.
    pub fn inside(&self) -> usize {
        self.store.inside()
    }

    /// The capacity that a terminal asked for at the last boundary.
    pub fn requested(&self, terminal: u32) -> Rate {
        self.rules.rate(self.terminals[terminal as usize].requested)
    }

    /// The capacity of a terminal in this super-frame, FCA included.
    pub fn granted(&self, terminal: u32) -> Rate {
        self.rules.rate(f64::from(self.terminals[terminal as usize].grant))
    }

    /// The Quick-Start agent of a terminal; `None` before its first request, or if the agents are off.
    pub fn agent(&self, terminal: u32) -> Option<&QsAgent> {
        self.agents.get(terminal as usize)?.as_deref()
    }

    /// The owners of a carrier's slots in this super-frame.
    pub fn plan(&self, carrier: u32) -> BurstTimePlan {
        let mut carrier = self.carriers[carrier as usize].clone();
        let range = carrier.range();
        let mut terminals = self.terminals[range.clone()].to_vec();
        carrier.wake(&self.rules, &mut terminals, self.super_frame, &mut Scratch::default());
        // The terminals' places are in the order of the terminals.
        let owner = |slot| {
            let place = self.layout.place(slot);
            let i = terminals.partition_point(|t| t.first + t.slots <= place);
            (i < terminals.len()).then_some((range.start + i) as u32)
        };
        BurstTimePlan {
            super_frame: self.super_frame,
            start: self.clock.boundary(self.super_frame),
            slot: self.spec.slot(),
            owners: (0..self.spec.slots_per_super_frame).map(owner).collect(),
        }
    }

    /// Whether dropped packets are kept for [`Dama::take_dropped`]. Off at first.
    pub fn record_drops(&mut self, on: bool) {
        self.recording = on;
    }

    /// The next dropped packet, when and why, and its terminal, in order of time. Call again until there is none.
    pub fn take_dropped(&mut self) -> Option<(Instant, DropReason, u32, T)> {
        self.dropped.pop_front()
    }

    /// Whether events are kept for [`Dama::take_event`]. Off at first.
    pub fn record_events(&mut self, on: bool) {
        self.log.on = on;
    }

    /// The next event, in order of time. Call it until there is none. Of those that are not taken, the last
    /// 262,144 are kept.
    pub fn take_event(&mut self) -> Option<DamaEvent> {
        self.log.events.pop_front()
    }

    /// Events that were not kept.
    pub fn events_lost(&self) -> u64 {
        self.log.lost
    }

    /// Brings requests, plans and queues up to `now`, in order of time.
    fn run_until(&mut self, now: Instant) {
        debug_assert!(now >= self.now, "time went back from {} to {now}", self.now);
        debug_assert!(now < Instant::NEVER, "never does not come");
        self.now = self.now.max(now);
        loop {
            let held = self.held.next();
            if self.boundary <= self.now.min(held) {
                self.pass_boundary(self.now.min(held));
            } else if let Some(place) = self.held.pop(self.now) {
                let terminal = self.store.get(place).terminal;
                self.wake(terminal as usize);
                self.join(held, place);
            } else {
                return;
            }
        }
    }

    /// The next super-frame begins; when all carriers rest, the one at `until`.
    fn pass_boundary(&mut self, until: Instant) {
        let at = self.boundary;
        if self.awake == 0 {
            self.super_frame = self.clock.super_frame_at(until);
        } else {
            self.super_frame += 1;
        }
        self.boundary = self.clock.boundary(self.super_frame + 1);
        if self.awake == 0 {
            return;
        }
        self.depart(at);
        self.calendar.arrive(at, &mut self.store, &mut self.arrived);
        let first_slot = self.super_frame * u64::from(self.spec.slots_per_super_frame);
        for c in 0..self.carriers.len() {
            let carrier = &mut self.carriers[c];
            if carrier.resting {
                continue;
            }
            let range = carrier.range();
            let terminals = &mut self.terminals[range.clone()];
            carrier.begin(&self.rules, terminals, self.super_frame, &mut self.scratch, &mut self.log);
            if carrier.resting {
                self.awake -= 1;
            }
            for i in range {
                if !self.terminals[i].queue.is_empty() {
                    self.serve(c, i, first_slot);
                }
            }
        }
    }

    /// Traffic comes to this terminal: its carrier is at rest no more.
    fn wake(&mut self, terminal: usize) {
        let carrier = &mut self.carriers[terminal / self.per_carrier];
        if carrier.resting {
            let range = carrier.range();
            carrier.wake(&self.rules, &mut self.terminals[range], self.super_frame, &mut self.scratch);
            self.awake += 1;
        }
    }

    /// Until when the terminal's agent holds a packet.
    fn ask_agent(&mut self, i: usize, packet: &mut T) -> Instant {
        let source = packet.flow();
        let Some(option) = packet.quick_start() else { return self.now };
        let Some(agent) = self.agents.get_mut(i) else {
            pass_unaware(option);
            return self.now;
        };
        if agent.is_none() {
            let name = format!("{}.terminal{i}", self.name);
            let made = QsAgent::new(&self.spec.quick_start, self.spec.mean_rtt(), self.seed, &name);
            // The specification was validated: it can be made.
            *agent = made.ok().map(Box::new);
        }
        let carrier = &mut self.carriers[i / self.per_carrier];
        let (Some(agent), Some(channel)) = (agent, carrier.listen(self.now)) else { return self.now };
        let decision = agent.on_request(self.now, option, source, channel);
        self.terminals[i].approved = self.terminals[i].approved + decision.add_to_request;
        if self.log.on {
            self.log.add(self.now, i, DamaEventKind::QuickStart(decision));
        }
        decision.hold_until
    }

    /// A packet comes to its terminal's uplink queue.
    fn join(&mut self, now: Instant, place: u32) {
        self.depart(now);
        let stored = self.store.get(place);
        stored.joined = now;
        let (i, size) = (stored.terminal as usize, stored.size);
        let terminal = &mut self.terminals[i];
        if u64::from(terminal.packets) >= self.spec.queue.get() {
            return self.drop_packet(now, place);
        }
        terminal.packets += 1;
        terminal.bytes += size;
        let counters = &mut self.counters[i];
        counters.max_queue = counters.max_queue.max(Packets::new(u64::from(terminal.packets)));
        let alone = terminal.queue.is_empty();
        self.store.push(&mut terminal.queue, place);
        self.unsettled += 1;
        if alone {
            let carrier = i / self.per_carrier;
            self.serve(carrier, i, self.clock.first_from(now));
        }
    }

    fn drop_packet(&mut self, now: Instant, place: u32) {
        let size = self.store.get(place).size;
        let Some((terminal, packet)) = self.store.remove(place) else { return };
        self.counters[terminal as usize].dropped.add(Bytes::new(size));
        if self.recording {
            self.dropped.push_back((now, DropReason::QueueFull, terminal, packet));
        }
    }

    /// Puts a terminal's queue into its slots of this super-frame that begin with `from` or later.
    fn serve(&mut self, carrier: usize, i: usize, from: u64) {
        let per_super_frame = u64::from(self.spec.slots_per_super_frame);
        let begin = self.super_frame * per_super_frame;
        let terminal = &mut self.terminals[i];
        while let Some(place) = terminal.queue.first() {
            let stored = self.store.get(place);
            if terminal.room == 0 || terminal.slot < from {
                let after = from.max(begin).max(terminal.slot + u64::from(self.counters[i].slots_used > 0)) - begin;
                let next = match u32::try_from(after) {
                    Ok(after) => self.layout.next_slot(terminal.first, terminal.slots, after),
                    Err(_) => None,
                };
                let Some(slot) = next else { return };
                terminal.slot = begin + u64::from(slot);
                terminal.room = self.spec.slot_size.get();
                self.counters[i].slots_used += 1;
            }
            let burst = stored.left.min(terminal.room);
            stored.left -= burst;
            terminal.room -= burst;
            self.carriers[carrier].sent += burst;
            if stored.left == 0 {
                let _ = self.store.pop(&mut terminal.queue);
                self.unsettled -= 1;
                self.calendar.put(&mut self.store, terminal.slot, place);
            }
        }
    }

    /// The last bytes of those whose slot has ended by `now` have left their queues.
    fn depart(&mut self, now: Instant) {
        while let Some((at, first)) = self.calendar.depart(now) {
            let mut place = Some(first);
            while let Some(here) = place {
                let stored = self.store.get(here);
                let (i, size, joined) = (stored.terminal as usize, stored.size, stored.joined);
                let terminal = &mut self.terminals[i];
                terminal.packets -= 1;
                terminal.bytes -= size;
                let counters = &mut self.counters[i];
                counters.transmitted.add(Bytes::new(size));
                counters.wait_ns += u128::from(at.as_nanos() - joined.as_nanos());
                place = self.store.after(here);
            }
        }
    }
}
