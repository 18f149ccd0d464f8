//! The oracle: a link that does everything at the instant it happens, written from the
//! definitions and with no thought of speed.
//!
//! The model shares nothing with the crate but the specification types, the units and the names of the random
//! streams. Departures come from the integral of the rate since the busy period began, delivery opportunities are
//! walked one by one, outages are checked one by one.

mod codel;
mod dualpi2;
mod fq_codel;
mod pie;
mod red;
mod rio;

use fairpace_path::{
    Capacity, DropReason, GilbertElliott, InFlight, LinkSpec, LossModel, OutageAt, Plain, QueueModel, RateModel,
};
use fairpace_units::{Bytes, Class, Ecn, Instant, RandomStream};

pub(crate) const WORK_PER_BYTE: u128 = 8 * 1_024 * 1_000_000_000;

/// A rate as the test describes it; the same thing as a [`RateModel`], but readable.
#[derive(Clone, Debug)]
pub(crate) enum Shape {
    Unlimited,
    /// From each nanosecond on, 1/1024 bit/s; repeated after the period, if any.
    Steps(Vec<(u64, u64)>, Option<u64>),
    /// Milliseconds, repeated after the last.
    Opportunities(Vec<u64>),
}

#[derive(Clone, Debug)]
struct Sending {
    packet: Plain,
    start: u64,
    /// Known at the start for rates; for opportunities, when the last byte has gone.
    departure: Option<u64>,
    bytes_left: u64,
    exit_after_departure: u64,
    damaged: bool,
}

/// The decision beside the room in the buffer.
enum Management {
    None,
    Red(red::Red),
    Rio(rio::Rio),
    Pie(pie::Pie),
    CoDel(codel::CoDel),
    FqCoDel(fq_codel::FqCoDel),
    DualPi2(dualpi2::DualPi2),
}

impl Management {
    fn new(model: &QueueModel, random: impl Fn(&str) -> RandomStream) -> Self {
        match *model {
            QueueModel::DropTail { .. } | QueueModel::TwoPriority { .. } => Management::None,
            QueueModel::Red(params) => Management::Red(red::Red::new(params, random("red"))),
            QueueModel::Rio(params) => Management::Rio(rio::Rio::new(params, random("rio"))),
            QueueModel::Pie(params) => Management::Pie(pie::Pie::new(params, random("pie"))),
            QueueModel::CoDel(params) => Management::CoDel(codel::CoDel::new(params)),
            QueueModel::FqCoDel(params) => Management::FqCoDel(fq_codel::FqCoDel::new(params, random("fq_codel"))),
            QueueModel::DualPi2(params) => Management::DualPi2(dualpi2::DualPi2::new(params)),
        }
    }
}

pub(crate) struct Eager {
    spec: LinkSpec,
    shape: Shape,
    loss: RandomStream,
    jitter: RandomStream,
    bad: bool,
    management: Management,
    /// Waiting, oldest first, and since when.
    queue: Vec<(u64, Plain)>,
    sending: Option<Sending>,
    /// Since when nothing has been held.
    idle_since: u64,
    busy_since: u64,
    work_since: u128,
    next_opportunity: usize,
    /// The packets that came out, in order of departure: instant and number.
    pub(crate) exits: Vec<(u64, u64)>,
    pub(crate) drops: Vec<(u64, DropReason, u64)>,
    /// Who left with a mark that the queue made, in order of departure.
    pub(crate) marked: u64,
    pub(crate) now: u64,
    pub(crate) packet_ns: u128,
    pub(crate) busy_ns: u128,
    pub(crate) max_queue: usize,
}

impl Eager {
    pub(crate) fn new(spec: &LinkSpec, shape: &Shape, seed: u64, name: &str) -> Self {
        let mut loss = RandomStream::named(seed, &format!("{name}.loss"));
        let bad = match spec.loss {
            LossModel::GilbertElliott(GilbertElliott { good_to_bad: p, bad_to_good: r, .. }) => {
                let (p, r) = (p.get(), r.get());
                loss.uniform() < if p + r > 0.0 { p / (p + r) } else { 0.0 }
            }
            _ => false,
        };
        Eager {
            spec: spec.clone(),
            shape: shape.clone(),
            loss,
            jitter: RandomStream::named(seed, &format!("{name}.jitter")),
            bad,
            management: Management::new(&spec.queue, |queue| RandomStream::named(seed, &format!("{name}.{queue}"))),
            queue: Vec::new(),
            sending: None,
            idle_since: 0,
            busy_since: 0,
            work_since: 0,
            next_opportunity: 0,
            exits: Vec::new(),
            drops: Vec::new(),
            marked: 0,
            now: 0,
            packet_ns: 0,
            busy_ns: 0,
            max_queue: 0,
        }
    }

    pub(crate) fn queue_len(&self) -> usize {
        self.queue.len() + usize::from(self.sending.is_some())
    }

    fn queue_bytes(&self) -> u64 {
        let waiting = self.queue.iter().map(|(_, p)| p);
        waiting.chain(self.sending.as_ref().map(|s| &s.packet)).map(|p| p.size.get()).sum()
    }

    fn full_for(&self, packet: &Plain) -> bool {
        match self.spec.queue.capacity() {
            Capacity::Packets(n) => self.queue_len() as u64 + 1 > n.get(),
            Capacity::Bytes(n) => self.queue_bytes() + packet.size.get() > n.get(),
            Capacity::Unlimited => false,
        }
    }

    /// Classes and sizes of those that wait behind the transmitter. With opportunities, the first one waits in it.
    fn behind_the_transmitter(&self) -> Vec<(Class, Bytes)> {
        let in_it = usize::from(self.sending.is_none());
        self.queue.iter().skip(in_it).map(|(_, p)| (p.class, p.size)).collect()
    }

    pub(crate) fn push(&mut self, now: u64, mut packet: Plain) {
        self.advance(now);
        if matches!(self.shape, Shape::Unlimited) || self.lets_in(now, &mut packet) {
            self.queue.push((now, packet));
            self.remove_for_lack_of_room(now);
            self.start_if_idle(now);
            if !matches!(self.shape, Shape::Unlimited) {
                self.max_queue = self.max_queue.max(self.queue_len());
            }
            self.advance(now);
        }
    }

    /// Whether the arrival joins the queue. If not, it has been dropped.
    fn lets_in(&mut self, now: u64, packet: &mut Plain) -> bool {
        let nobody = self.queue_len() == 0;
        let (full, classes) = (self.full_for(packet), self.behind_the_transmitter());
        let waiting: Vec<Bytes> = classes.iter().map(|(_, size)| *size).collect();
        let early = match &mut self.management {
            Management::None => return self.makes_room(now, packet),
            Management::Red(red) => {
                let idle = if nobody { self.shape.work_between(self.idle_since, now) } else { 0 };
                red.on_arrival(&waiting, idle, full, packet)
            }
            Management::Rio(rio) => {
                let idle = if nobody { self.shape.work_between(self.idle_since, now) } else { 0 };
                rio.on_arrival(&classes, idle, full, packet)
            }
            Management::Pie(pie) => pie.on_arrival(&waiting, self.queue.is_empty(), full, packet),
            Management::CoDel(codel) => {
                if nobody {
                    codel.found_nobody();
                }
                false
            }
            Management::DualPi2(dual) => {
                if nobody {
                    dual.found_nobody();
                }
                false
            }
            Management::FqCoDel(fq) => {
                if nobody {
                    fq.found_nobody();
                }
                fq.on_arrival(packet.flow);
                return true;
            }
        };
        if full || early {
            let reason = if full { DropReason::QueueFull } else { DropReason::Early };
            self.drops.push((now, reason, packet.id));
            return false;
        }
        self.marked += u64::from(packet.ecn == Ecn::Ce);
        true
    }

    /// Drop-tail and push-out: whether there is room for the arrival, or has been made.
    fn makes_room(&mut self, now: u64, packet: &Plain) -> bool {
        let may_push_out = matches!(self.spec.queue, QueueModel::TwoPriority { .. }) && packet.class == Class::Normal;
        // Try on a copy: either all that must go go, or none does.
        let before = self.queue.clone();
        let mut victims = Vec::new();
        while may_push_out && self.full_for(packet) {
            let Some(youngest) = self.queue.iter().rposition(|(_, p)| p.class == Class::Low) else { break };
            victims.push(self.queue.remove(youngest).1);
        }
        if self.full_for(packet) {
            self.queue = before;
            self.drops.push((now, DropReason::QueueFull, packet.id));
            return false;
        }
        self.drops.extend(victims.iter().map(|v| (now, DropReason::PushedOut, v.id)));
        true
    }

    /// FQ-CoDel lets everybody in, and then removes from the longest.
    fn remove_for_lack_of_room(&mut self, now: u64) {
        let Management::FqCoDel(fq) = &self.management else { return };
        let unlimited = matches!(self.shape, Shape::Unlimited);
        let full = |queue: &[(u64, Plain)], sending: &Option<Sending>| {
            let sizes: Vec<u64> =
                queue.iter().map(|(_, p)| p).chain(sending.as_ref().map(|s| &s.packet)).map(|p| p.size.get()).collect();
            match self.spec.queue.capacity() {
                Capacity::Packets(n) => sizes.len() as u64 > n.get(),
                Capacity::Bytes(n) => sizes.iter().sum::<u64>() > n.get(),
                Capacity::Unlimited => false,
            }
        };
        while !unlimited && !self.queue.is_empty() && full(&self.queue, &self.sending) {
            for id in fq.victims(&self.queue) {
                self.queue.retain(|(_, p)| p.id != id);
                self.drops.push((now, DropReason::PushedOut, id));
            }
        }
    }

    /// Everything that happens up to `to`, one event after the other.
    pub(crate) fn advance(&mut self, to: u64) {
        loop {
            let departure = self.sending.as_ref().and_then(|s| s.departure).unwrap_or(u64::MAX);
            let opportunity = self.opportunity(self.next_opportunity);
            let update = match &self.management {
                Management::Pie(pie) => pie.next_update,
                Management::DualPi2(dual) => dual.next_update,
                _ => u64::MAX,
            };
            let next = departure.min(opportunity).min(update);
            if next > to || next == u64::MAX {
                break;
            }
            self.pass_time(next);
            if let Management::DualPi2(dual) = &mut self.management
                && update == next
            {
                dual.update(&self.queue);
            } else if departure == next {
                self.depart();
                self.start_if_idle(next);
            } else if let Management::Pie(pie) = &mut self.management
                && opportunity != next
            {
                pie.update(self.queue.is_empty());
            } else {
                self.use_opportunity(next);
                self.next_opportunity += 1;
            }
        }
        self.pass_time(to);
    }

    fn pass_time(&mut self, to: u64) {
        let elapsed = u128::from(to - self.now);
        self.packet_ns += elapsed * self.queue_len() as u128;
        self.busy_ns += if self.queue_len() > 0 { elapsed } else { 0 };
        self.now = to;
    }

    fn opportunity(&self, index: usize) -> u64 {
        let Shape::Opportunities(times) = &self.shape else { return u64::MAX };
        let rounds = (index / times.len()) as u64;
        (rounds * times[times.len() - 1] + times[index % times.len()]) * 1_000_000
    }

    /// mahimahi's loop: 1,500 bytes for whoever is there.
    fn use_opportunity(&mut self, now: u64) {
        let mut bytes = 1_500;
        while bytes > 0 {
            if self.sending.is_none() {
                let Some(packet) = self.choose(now) else { return };
                self.begin(now, packet, None);
            }
            let sending = self.sending.as_mut().unwrap();
            let used = sending.bytes_left.min(bytes);
            sending.bytes_left -= used;
            bytes -= used;
            if sending.bytes_left == 0 {
                sending.departure = Some(now);
                self.depart();
            }
        }
    }

    fn start_if_idle(&mut self, now: u64) {
        if self.sending.is_some() || matches!(self.shape, Shape::Opportunities(_)) {
            return;
        }
        let Some(packet) = self.choose(now) else {
            // All who waited were dropped: the busy period is over.
            self.work_since = 0;
            return;
        };
        // A new busy period, unless the last packet's end and this one's start coincide.
        if self.work_since == 0 {
            self.busy_since = now;
        }
        self.work_since += u128::from(packet.size.get()) * WORK_PER_BYTE;
        let departure = match &self.shape {
            Shape::Unlimited => now,
            shape => first_instant_with(shape, self.busy_since, self.work_since).max(now),
        };
        self.begin(now, packet, Some(departure));
    }

    /// Who is next, if anybody waits.
    fn choose(&mut self, now: u64) -> Option<Plain> {
        if self.queue.is_empty() {
            return None;
        }
        let chosen = match &mut self.management {
            // Nothing ever waits for an unlimited transmitter.
            _ if matches!(self.shape, Shape::Unlimited) => return Some(self.queue.remove(0).1),
            Management::None | Management::Red(_) | Management::Rio(_) => return Some(self.queue.remove(0).1),
            Management::Pie(pie) => {
                let (arrival, packet) = self.queue.remove(0);
                pie.delay = now - arrival;
                return Some(packet);
            }
            Management::CoDel(codel) => codel.dequeue(&mut self.queue, |_| true, now),
            Management::FqCoDel(fq) => fq.dequeue(&mut self.queue, now),
            Management::DualPi2(dual) => dual.dequeue(&mut self.queue, now),
        };
        self.drops.extend(chosen.dropped.into_iter().map(|id| (now, DropReason::Early, id)));
        self.marked += u64::from(chosen.marked);
        chosen.packet
    }

    fn begin(&mut self, now: u64, packet: Plain, departure: Option<u64>) {
        let mut delay = self.spec.delay.propagation.as_nanos() as u64;
        if !self.spec.delay.jitter.is_zero() {
            delay += self.jitter.duration_below(self.spec.delay.jitter).as_nanos() as u64;
        }
        let damaged = match self.spec.loss {
            LossModel::None => false,
            LossModel::Bernoulli(p) => self.loss.uniform() < p.get(),
            LossModel::GilbertElliott(m) => {
                let lost = self.loss.uniform() < if self.bad { m.loss_in_bad } else { m.loss_in_good }.get();
                let change = self.loss.uniform() < if self.bad { m.bad_to_good } else { m.good_to_bad }.get();
                self.bad = self.bad != change;
                lost
            }
        };
        let bytes_left = packet.size.get();
        self.sending =
            Some(Sending { packet, start: now, departure, bytes_left, exit_after_departure: delay, damaged });
    }

    fn depart(&mut self) {
        let sent = self.sending.take().unwrap();
        let departure = sent.departure.unwrap();
        self.idle_since = departure;
        if self.queue.is_empty() {
            self.work_since = 0;
        }
        let mut exit = departure.saturating_add(sent.exit_after_departure);
        if !self.spec.delay.reorder {
            exit = exit.max(self.exits.iter().map(|&(at, _)| at).max().unwrap_or(0));
        }
        let shift = match self.spec.outage_at {
            OutageAt::Transmitter => 0,
            OutageAt::Receiver => exit - departure,
        };
        let dark = self.spec.outage.iter().any(|o| {
            let (first, last) = match o.in_flight {
                InFlight::Delivered => (sent.start + shift, departure + shift),
                InFlight::Lost => (sent.start, exit),
            };
            let (a, b) = (o.start.as_nanos(), (o.start + o.length).as_nanos());
            // Some instant of [first, last) in [a, b), or the only one if it takes no time.
            first.max(a) < last.min(b) || (a <= first && first < b)
        });
        if dark {
            self.drops.push((departure, DropReason::Outage, sent.packet.id));
        } else if sent.damaged {
            self.drops.push((departure, DropReason::LinkError, sent.packet.id));
        } else {
            self.exits.push((exit, sent.packet.id));
        }
    }
}

/// The first whole nanosecond by which that much work is done, begun at `from`.
fn first_instant_with(shape: &Shape, from: u64, mut work: u128) -> u64 {
    let Shape::Steps(entries, period) = shape else { unreachable!() };
    let mut at = from;
    loop {
        let base = period.map_or(0, |p| at / p * p);
        let index = entries.iter().rposition(|&(start, _)| base + start <= at).unwrap();
        let end = match entries.get(index + 1) {
            Some(&(start, _)) => base + start,
            None => period.map_or(u64::MAX, |p| base + p),
        };
        let rate = u128::from(entries[index].1);
        if rate * u128::from(end - at) >= work {
            return at + u64::try_from(work.div_ceil(rate)).unwrap();
        }
        if end == u64::MAX {
            return u64::MAX;
        }
        work -= rate * u128::from(end - at);
        at = end;
    }
}

impl Shape {
    /// The work that the link can carry in that time, in 1/1024 bit per nanosecond: the integral of the rate, or the
    /// opportunities after `from`, up to and with `to`.
    fn work_between(&self, from: u64, to: u64) -> u128 {
        match self {
            Shape::Unlimited => 0,
            Shape::Steps(entries, period) => {
                let before = |t: u64| -> u128 {
                    let length = period.unwrap_or(u64::MAX);
                    let one = |until: u64| -> u128 {
                        let ends = entries.iter().skip(1).map(|e| e.0).chain([length]);
                        let steps = entries.iter().zip(ends);
                        steps.map(|(&(a, r), b)| u128::from(until.min(b).saturating_sub(a)) * u128::from(r)).sum()
                    };
                    u128::from(t / length) * one(length) + one(t % length)
                };
                before(to) - before(from)
            }
            Shape::Opportunities(times) => {
                let last = times[times.len() - 1] * 1_000_000;
                let until = |t: u64| -> u64 {
                    let within = times.iter().filter(|&&ms| ms * 1_000_000 <= t % last).count() as u64;
                    t / last * times.len() as u64 + within
                };
                u128::from(until(to) - until(from)) * 1_500 * WORK_PER_BYTE
            }
        }
    }

    pub(crate) fn model(&self) -> RateModel {
        use fairpace_path::{Gaps, Trace};
        use fairpace_units::Rate;
        use std::fmt::Write;
        let rate = |units: u64| Rate::bps(units as f64 / 1_024.0);
        match self {
            Shape::Unlimited => RateModel::Unlimited,
            Shape::Steps(entries, None) => match entries[..] {
                [(0, units)] => RateModel::Fixed(rate(units)),
                _ => RateModel::Schedule(
                    entries.iter().map(|&(ns, units)| (Instant::from_nanos(ns), rate(units))).collect(),
                ),
            },
            Shape::Steps(entries, Some(_)) => {
                let mut text = "time_ms,rate_bps\n".to_owned();
                for (ns, units) in entries {
                    writeln!(text, "{},{}", ns / 1_000_000, *units as f64 / 1_024.0).unwrap();
                }
                RateModel::Trace(Trace::parse_csv(&text, "rate_bps", Gaps::Hold).unwrap().into())
            }
            Shape::Opportunities(times) => {
                let text: String = times.iter().map(|ms| format!("{ms}\n")).collect();
                RateModel::Trace(Trace::parse_mahimahi(&text).unwrap().into())
            }
        }
    }
}
