//! One carrier: what its terminals ask for at each boundary, what the NCC gives them, and the plan.
//!
//! The NCC decides at the boundary m = k + n - d on the requests of boundary k, and nothing that happens in
//! between changes its decision. So it is computed at k, and kept until it takes effect at k + n. Only with
//! [`ReleaseOf::InForce`] what is kept of more than was asked for is found at k + n.

use super::clock::SlotClock;
use super::event::{DamaEvent, DamaEventKind};
use super::layout::gcd;
use super::ncc::{Release, least, requested, share, whole_units};
use super::store::List;
use super::{DamaSpec, ReleaseOf};
use crate::quick_start::{Agent, Channel, Observation};
use fairpace_units::{Bytes, Duration, Instant, Rate};
use std::collections::VecDeque;

/// The rules that all carriers share, in units.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    /// Units of a carrier.
    units: u32,
    /// Slots of a super-frame.
    slots: u32,
    /// After how many super-frames of the same grants the fractions of slots are the same.
    period: u64,
    granularity: Rate,
    capacity: Rate,
    /// n: T_a in super-frames.
    delay: u64,
    /// d: T_p in super-frames, rounded up.
    ahead: u64,
    minimum: u32,
    /// C.
    cra: f64,
    /// One byte in T_r; nothing if RBDC is off.
    rbdc_per_byte: f64,
    /// One byte in T_r.
    per_byte: f64,
    /// One byte in T_s; nothing if VBDC is off.
    vbdc_per_byte: f64,
    fca: bool,
    release: Release,
    in_force: bool,
    propagation: Duration,
    /// N: observations that stand for the load.
    window: usize,
    agents: bool,
    pub(super) clock: SlotClock,
}

impl Rules {
    pub(super) fn new(spec: &DamaSpec, clock: SlotClock) -> Self {
        let units = spec.units();
        let granularity = spec.capacity / f64::from(units);
        let slots = spec.slots_per_super_frame;
        let per_byte = f64::from(units) / (f64::from(slots) * spec.slot_size.as_f64());
        let vbdc_per_byte = spec.vbdc.map_or(0.0, |t_s| 8.0 / t_s.as_secs_f64() / granularity.as_bps());
        Rules {
            units,
            slots,
            period: u64::from(units / gcd(units, slots)),
            granularity,
            capacity: spec.capacity,
            delay: u64::from(spec.allocation_delay),
            ahead: u64::from(spec.propagation_super_frames()),
            minimum: spec.minimum,
            cra: spec.cra.as_bps() / granularity.as_bps(),
            rbdc_per_byte: if spec.rbdc { per_byte } else { 0.0 },
            per_byte,
            vbdc_per_byte,
            fca: spec.fca,
            release: Release { a: spec.release_a, b: spec.release_b, minimum: f64::from(spec.minimum) },
            in_force: spec.release_of == ReleaseOf::InForce,
            propagation: spec.propagation,
            window: spec.quick_start.router.load.observations.max(1),
            agents: spec.quick_start.agent != Agent::Off,
            clock,
        }
    }

    pub(super) fn rate(&self, units: f64) -> Rate {
        self.granularity * units
    }
}

/// The state of a terminal beside its counters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terminal {
    /// The packets in the uplink queue that have bytes without a slot.
    pub(super) queue: List,
    /// The number of packets that have joined the uplink queue and not departed.
    pub(super) packets: u32,
    pub(super) bytes: u64,
    /// The slot that the last byte went to, and what is left of it.
    pub(super) slot: u64,
    pub(super) room: u64,
    /// Its places in the plan of this super-frame.
    pub(super) first: u32,
    pub(super) slots: u32,
    /// The fraction of a slot that it still has, in 1/units.
    carry: u64,
    /// The terminal's grant in this super-frame, in units.
    pub(super) grant: u32,
    /// Bytes that came in since the last boundary.
    pub(super) arrived: u64,
    /// Approved Quick-Start rates since then.
    pub(super) approved: Rate,
    /// The terminal's last request, in units.
    pub(super) requested: f64,
    /// N_B: what the NCC gave it last, in units, before rounding.
    n_b: f64,
}

/// One carrier.
#[derive(Clone, Debug)]
pub(super) struct Carrier {
    /// Its first terminal.
    pub(super) first: usize,
    /// How many it has.
    pub(super) count: usize,
    /// Units asked for and given, by super-frame modulo n, then by terminal.
    given: Vec<u32>,
    /// The requests to be answered when they take effect; empty if requests are answered before.
    asked: Vec<f64>,
    /// Units given beyond that (FCA); empty without it.
    free: Vec<u32>,
    /// Who gets the next unit that cannot be shared equally.
    turn: usize,
    /// For how many boundaries nothing has changed.
    calm: u64,
    /// Nothing changes until a packet comes: the boundaries are skipped.
    pub(super) resting: bool,
    /// The super-frame of the plan.
    planned: u64,
    /// Bytes in slots of this super-frame.
    pub(super) sent: u64,
    /// The terminals' knowledge of the carrier; only if the terminals have agents.
    channel: Option<Channel>,
    /// The NCC's broadcasts that the terminals have not yet heard.
    broadcast: VecDeque<(Instant, Observation)>,
}

/// Where events go.
#[derive(Clone, Debug, Default)]
pub(super) struct Log {
    pub(super) on: bool,
    pub(super) events: VecDeque<DamaEvent>,
    pub(super) lost: u64,
}

impl Log {
    /// The number of events kept for a driver that does not fetch them: the latest ones.
    const KEPT: usize = 1 << 18;

    pub(super) fn add(&mut self, at: Instant, terminal: usize, what: DamaEventKind) {
        if self.events.len() == Log::KEPT {
            self.events.pop_front();
            self.lost += 1;
        }
        self.events.push_back(DamaEvent { at, terminal: terminal as u32, what });
    }
}

/// Memory that every boundary uses again.
#[derive(Clone, Debug, Default)]
pub(super) struct Scratch {
    /// In units, before and after rounding.
    exact: Vec<f64>,
    wanted: Vec<u32>,
    order: Vec<(u64, u32)>,
}

impl Carrier {
    /// A carrier at rest, and its terminals: each has its minimum and constant rate.
    pub(super) fn new(
        rules: &Rules,
        spec: &DamaSpec,
        first: usize,
        terminals: &mut Vec<Terminal>,
        count: usize,
    ) -> Self {
        let least = rules.cra.max(f64::from(rules.minimum));
        let mut given = vec![whole_units(least); count];
        share(&mut given, rules.minimum, rules.units, &mut Vec::new());
        let (mut free, mut turn) = (vec![0; if rules.fca { count } else { 0 }], 0);
        if rules.fca {
            give_freely(&mut free, &mut turn, rules.units - given.iter().sum::<u32>());
        }
        let mut before = 0;
        for (i, &asked) in given.iter().enumerate() {
            let grant = asked + free.get(i).copied().unwrap_or(0);
            terminals.push(Terminal {
                queue: List::EMPTY,
                packets: 0,
                bytes: 0,
                slot: 0,
                room: 0,
                first: 0,
                slots: 0,
                // The fractions begin in turn, so that not all come to a whole slot at once.
                carry: before * u64::from(rules.slots) % u64::from(rules.units),
                grant,
                arrived: 0,
                approved: Rate::ZERO,
                requested: rules.cra,
                n_b: least.min(f64::from(asked)),
            });
            before += u64::from(grant);
        }
        let n = rules.delay as usize;
        let mut carrier = Carrier {
            first,
            count,
            given: given.repeat(n),
            asked: if rules.in_force { vec![rules.cra; n * count] } else { Vec::new() },
            free: free.repeat(n),
            turn,
            calm: 0,
            // With FCA something changes at every boundary.
            resting: !rules.fca,
            planned: 0,
            sent: 0,
            channel: rules.agents.then(|| Channel::new(spec.quick_start.router.load)),
            broadcast: VecDeque::new(),
        };
        plan(rules, &mut terminals[first..], &mut Scratch::default());
        let resting = carrier.decided(rules, 0);
        if let Some(channel) = &mut carrier.channel {
            channel.decided(resting);
            (0..rules.window).for_each(|_| channel.observe(resting));
        }
        carrier
    }

    /// Its terminals among all.
    pub(super) fn range(&self) -> std::ops::Range<usize> {
        self.first..self.first + self.count
    }

    /// A packet comes, or everything must be seen, in `super_frame`: brings a carrier at rest up to it.
    pub(super) fn wake(&mut self, rules: &Rules, terminals: &mut [Terminal], super_frame: u64, scratch: &mut Scratch) {
        if !self.resting {
            return;
        }
        (self.resting, self.calm) = (false, 0);
        if self.planned == super_frame {
            return;
        }
        // The plans between, of which only the fractions remain: they soon repeat.
        let mut plans = super_frame - self.planned;
        while plans > rules.period {
            let carry = |t: &Terminal| t.carry;
            let before: Vec<u64> = terminals.iter().map(carry).collect();
            (0..rules.period).for_each(|_| plan(rules, terminals, scratch));
            plans -= rules.period;
            if terminals.iter().map(carry).eq(before) {
                plans = (plans - 1) % rules.period + 1;
            }
        }
        (0..plans).for_each(|_| plan(rules, terminals, scratch));
        self.sent = 0;
        let resting = self.decided(rules, super_frame);
        // Of what was broadcast meanwhile, as much as anybody remembers.
        let remembered = rules.window as u64 + rules.ahead + 1;
        for m in (self.planned + 1).max((super_frame + 1).saturating_sub(remembered))..=super_frame {
            self.broadcast.push_back((rules.clock.boundary(m) + rules.propagation, resting));
        }
        self.planned = super_frame;
    }

    /// The boundary at which `super_frame` begins: requests, decision, plan.
    pub(super) fn begin(
        &mut self,
        rules: &Rules,
        terminals: &mut [Terminal],
        super_frame: u64,
        scratch: &mut Scratch,
        log: &mut Log,
    ) {
        let at = rules.clock.boundary(super_frame);
        let now = self.entry(super_frame, rules);
        let mut calm = !rules.fca;
        if rules.in_force && super_frame > rules.delay {
            calm &= !self.settle(rules, terminals, now, scratch);
        }
        for (i, terminal) in terminals.iter_mut().enumerate() {
            terminal.grant = self.total(now + i);
        }
        plan(rules, terminals, scratch);
        self.planned = super_frame;
        let sent = std::mem::take(&mut self.sent);
        if self.channel.is_some() {
            let decided = self.decided(rules, super_frame + rules.ahead);
            let observation = Observation { sent: rules.rate(sent as f64 * rules.per_byte), ..decided };
            self.broadcast.push_back((at + rules.propagation, observation));
            self.listen(at);
            if let Some(channel) = &mut self.channel {
                channel.decided(observation);
            }
        }
        if log.on {
            self.log(rules, terminals, super_frame, log);
        }
        scratch.exact.clear();
        scratch.wanted.clear();
        for (i, terminal) in terminals.iter_mut().enumerate() {
            let traffic = terminal.arrived as f64 * rules.per_byte;
            let request = self.request(rules, terminal, now + i);
            let wanted = if let Some(asked) = self.asked.get_mut(now + i) {
                calm &= *asked == request;
                *asked = request;
                // The least that the terminal will have.
                request.max(rules.release.minimum)
            } else {
                rules.release.wanted(request, terminal.n_b, traffic)
            };
            calm &= terminal.arrived == 0 && terminal.packets == 0 && request == terminal.requested;
            terminal.requested = request;
            (terminal.arrived, terminal.approved) = (0, Rate::ZERO);
            scratch.exact.push(wanted);
            scratch.wanted.push(whole_units(wanted));
        }
        share(&mut scratch.wanted, rules.minimum, rules.units, &mut scratch.order);
        let mut left = rules.units;
        for (i, terminal) in terminals.iter_mut().enumerate() {
            let units = scratch.wanted[i];
            let n_b = scratch.exact[i].min(f64::from(units));
            calm &= units == self.given[now + i];
            if !rules.in_force {
                calm &= n_b == terminal.n_b;
                terminal.n_b = n_b;
            }
            self.given[now + i] = units;
            left -= units;
        }
        if rules.fca && !rules.in_force {
            give_freely(&mut self.free[now..now + self.count], &mut self.turn, left);
        }
        self.calm = if calm { self.calm + 1 } else { 0 };
        // All decisions that are still to take effect are the same as this one.
        self.resting = self.calm > rules.delay;
    }

    /// The requests that were made n boundaries ago take effect, by what is in force until now and the traffic
    /// of the interval that ends: whether any N_B changes [`ReleaseOf::InForce`].
    fn settle(&mut self, rules: &Rules, terminals: &mut [Terminal], now: usize, scratch: &mut Scratch) -> bool {
        scratch.exact.clear();
        scratch.wanted.clear();
        for (i, terminal) in terminals.iter().enumerate() {
            let traffic = terminal.arrived as f64 * rules.per_byte;
            let wanted = rules.release.wanted(self.asked[now + i], terminal.n_b, traffic);
            scratch.exact.push(wanted);
            scratch.wanted.push(whole_units(wanted));
        }
        share(&mut scratch.wanted, rules.minimum, rules.units, &mut scratch.order);
        let (mut left, mut changed) = (rules.units, false);
        for (i, terminal) in terminals.iter_mut().enumerate() {
            let units = scratch.wanted[i];
            let n_b = scratch.exact[i].min(f64::from(units));
            changed |= n_b != terminal.n_b;
            terminal.n_b = n_b;
            self.given[now + i] = units;
            left -= units;
        }
        if rules.fca {
            give_freely(&mut self.free[now..now + self.count], &mut self.turn, left);
        }
        changed
    }

    /// The request of a terminal, in units [qsd eq. (1), §3.4].
    fn request(&self, rules: &Rules, terminal: &Terminal, now: usize) -> f64 {
        let r = terminal.arrived as f64 * rules.rbdc_per_byte;
        let q_by_t_s = terminal.bytes as f64 * rules.vbdc_per_byte;
        let f = self.free.get(now).map_or(0.0, |&units| f64::from(units));
        requested(r, q_by_t_s, f, rules.cra) + terminal.approved.as_bps() / rules.granularity.as_bps()
    }

    /// Where the decisions for a super-frame are kept. The entries of super-frame k are read before the entries of k
    /// + n are written in their place.
    fn entry(&self, super_frame: u64, rules: &Rules) -> usize {
        (super_frame % rules.delay) as usize * self.count
    }

    fn total(&self, index: usize) -> u32 {
        self.given[index] + self.free.get(index).copied().unwrap_or(0)
    }

    /// The NCC's decision for a super-frame.
    fn decided(&self, rules: &Rules, super_frame: u64) -> Observation {
        let entry = self.entry(super_frame, rules);
        let sum = |units: &[u32]| {
            let units = units.get(entry..entry + self.count).unwrap_or(&[]);
            rules.rate(units.iter().map(|&units| f64::from(units)).sum())
        };
        Observation {
            capacity: rules.capacity,
            assigned: sum(&self.given),
            free_assigned: sum(&self.free),
            sent: Rate::ZERO,
        }
    }

    /// The terminals' knowledge of the carrier at `now`.
    pub(super) fn listen(&mut self, now: Instant) -> Option<&Channel> {
        let channel = self.channel.as_mut()?;
        while let Some(&(at, observation)) = self.broadcast.front()
            && at <= now
        {
            self.broadcast.pop_front();
            channel.observe(observation);
        }
        Some(channel)
    }

    fn log(&self, rules: &Rules, terminals: &[Terminal], super_frame: u64, log: &mut Log) {
        let at = rules.clock.boundary(super_frame);
        let from = rules.clock.boundary(super_frame + rules.ahead);
        let (now, next) = (self.entry(super_frame, rules), self.entry(super_frame + rules.ahead, rules));
        for (i, terminal) in terminals.iter().enumerate() {
            let request = DamaEventKind::Request {
                traffic: rules.rate(terminal.arrived as f64 * rules.per_byte),
                queue: Bytes::new(terminal.bytes),
                quick_start: terminal.approved,
                rate: rules.rate(self.request(rules, terminal, now + i)),
            };
            log.add(at, self.first + i, request);
            let tbtp = DamaEventKind::Tbtp { rate: rules.rate(f64::from(self.total(next + i))), from };
            log.add(at, self.first + i, tbtp);
            let grant = DamaEventKind::Grant { rate: rules.rate(f64::from(terminal.grant)), slots: terminal.slots };
            log.add(at, self.first + i, grant);
        }
    }
}

/// Turns units into places of the next super-frame. A fraction of a slot is carried over. When more whole slots are
/// due than the super-frame has, the terminals that reached theirs last wait.
fn plan(rules: &Rules, terminals: &mut [Terminal], scratch: &mut Scratch) {
    let (slots, of) = (u64::from(rules.slots), u64::from(rules.units));
    let mut sum = 0;
    for terminal in &mut *terminals {
        let credit = terminal.carry + u64::from(terminal.grant) * slots;
        terminal.slots = (credit / of) as u32;
        terminal.carry = credit % of;
        sum += u64::from(terminal.slots);
    }
    while sum > slots {
        let order = &mut scratch.order;
        order.clear();
        let some = terminals.iter().enumerate().filter(|(_, t)| t.slots > 0);
        order.extend(some.map(|(i, t)| (t.carry, i as u32)));
        for &(_, i) in least(order, (sum - slots) as usize) {
            let terminal = &mut terminals[i as usize];
            terminal.slots -= 1;
            terminal.carry += of;
            sum -= 1;
        }
    }
    let mut first = 0;
    for terminal in terminals {
        terminal.first = first;
        first += terminal.slots;
    }
}

/// The remaining slots go to all terminals in equal parts, and the indivisible rest to one terminal after the other,
/// in `turn`.
fn give_freely(free: &mut [u32], turn: &mut usize, left: u32) {
    free.fill(left / free.len() as u32);
    for _ in 0..left as usize % free.len() {
        free[*turn] += 1;
        *turn = (*turn + 1) % free.len();
    }
}
