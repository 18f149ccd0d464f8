//! How fast packets leave: the transmitter.
//!
//! Rates are kept in 1/1024 bit/s and work in the matching unit, so that time × rate = work in
//! integers. A busy transmitter carries the fraction of a nanosecond from packet to packet: n
//! packets in a row take exactly n times the exact time, rounded up once, and never early.
//!
//! Three kinds of rate: fixed; in steps (a schedule, or a CSV trace), where a packet under way
//! finishes its remaining bits at the new rate; in delivery opportunities (mahimahi's traces),
//! where bytes leave in lumps. See [`crate::trace`] for the recordings.

use crate::steps::{Steps, UNITS_PER_BPS, rate_of_units, rate_units};
use crate::trace::{OPPORTUNITY_BYTES, Opportunities, Shape};
use crate::{LinkError, RateModel};
use fairpace_units::{Instant, Rate};
use std::num::NonZeroU64;
use std::sync::Arc;

/// Work of one byte, in rate units × nanoseconds.
const WORK_PER_BYTE: u64 = 8 * 1_024 * 1_000_000_000;
/// Larger packets are sent in pieces of this size, so that one piece's work and the carried
/// fraction together stay below 2^64.
const PIECE: u64 = 1 << 20;

/// The transmitter of a link. The transmitter serves packets in the order of the calls.
#[derive(Clone, Debug)]
pub(crate) enum Transmitter {
    Unlimited,
    Fixed(FixedRate),
    // Boxed: nearly every link has a fixed rate.
    Steps(Box<SteppedRate>),
    Opportunities(Box<OpportunityRate>),
}

/// When a packet's first and last bit leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Service {
    pub(crate) start: Instant,
    pub(crate) departure: Instant,
}

impl Transmitter {
    pub(crate) fn new(model: &RateModel) -> Result<Self, LinkError> {
        Ok(match model {
            RateModel::Unlimited => Transmitter::Unlimited,
            RateModel::Fixed(rate) => {
                Transmitter::Fixed(FixedRate::new(*rate).ok_or(LinkError::RateZero { found: *rate })?)
            }
            RateModel::Schedule(entries) => {
                Transmitter::Steps(Box::new(SteppedRate::new(Arc::new(steps_of(entries)?))))
            }
            RateModel::Trace(trace) => match &trace.shape {
                Shape::Steps(steps) => Transmitter::Steps(Box::new(SteppedRate::new(Arc::clone(steps)))),
                Shape::Opportunities(o) => Transmitter::Opportunities(Box::new(OpportunityRate::new(Arc::clone(o)))),
            },
        })
    }

    /// When the transmission of a packet begins that arrived at `arrival` and is the next to be
    /// served. Changes nothing.
    #[inline]
    pub(crate) fn earliest_start(&self, arrival: Instant) -> Instant {
        match self {
            Transmitter::Unlimited => arrival,
            Transmitter::Fixed(f) => arrival.max(f.done.rounded_up()),
            Transmitter::Steps(s) => arrival.max(s.done.rounded_up()),
            Transmitter::Opportunities(o) => o.earliest_start(arrival),
        }
    }

    /// Serves the next packet, of `size` bytes, which arrived at `arrival`.
    #[inline]
    pub(crate) fn serve(&mut self, arrival: Instant, size: u64) -> Service {
        match self {
            Transmitter::Unlimited => Service { start: arrival, departure: arrival },
            Transmitter::Fixed(f) => f.serve(arrival, size),
            Transmitter::Steps(s) => s.serve(arrival, size),
            Transmitter::Opportunities(o) => o.serve(arrival, size),
        }
    }

    pub(crate) fn capacity_at(&self, now: Instant) -> Rate {
        match self {
            Transmitter::Unlimited => Rate::MAX,
            Transmitter::Fixed(f) => f.rate(),
            Transmitter::Steps(s) => s.steps.rate_at(now),
            Transmitter::Opportunities(o) => o.opportunities.rate_around(now),
        }
    }

    /// How many packets of `size` bytes the link could have carried between two instants, rounded
    /// down; zero if unlimited.
    pub(crate) fn packets_between(&self, from: Instant, to: Instant, size: u64) -> u64 {
        let work = match self {
            Transmitter::Unlimited => return 0,
            Transmitter::Fixed(f) => {
                u128::from(to.as_nanos().saturating_sub(from.as_nanos())) * u128::from(f.rate.get())
            }
            Transmitter::Steps(s) => s.steps.work_before(to).saturating_sub(s.steps.work_before(from)),
            Transmitter::Opportunities(o) => {
                let n = o.opportunities.count_until(to).saturating_sub(o.opportunities.count_until(from));
                u128::from(n) * u128::from(OPPORTUNITY_BYTES * WORK_PER_BYTE)
            }
        };
        let of_one = u128::from(size) * u128::from(WORK_PER_BYTE);
        work.checked_div(of_one).map_or(0, |n| u64::try_from(n).unwrap_or(u64::MAX))
    }

    pub(crate) fn capacity_between(&self, from: Instant, to: Instant) -> Option<f64> {
        Some(match self {
            Transmitter::Unlimited => return None,
            Transmitter::Fixed(f) => f.capacity_between(from, to),
            Transmitter::Steps(s) => {
                let work = s.steps.work_before(to).saturating_sub(s.steps.work_before(from));
                work as f64 / (UNITS_PER_BPS * 1e9)
            }
            Transmitter::Opportunities(o) => {
                let n = o.opportunities.count_until(to).saturating_sub(o.opportunities.count_until(from));
                (n * OPPORTUNITY_BYTES * 8) as f64
            }
        })
    }
}

/// A schedule as steps that do not repeat.
fn steps_of(entries: &[(Instant, Rate)]) -> Result<Steps, LinkError> {
    match entries.first() {
        None => return Err(LinkError::ScheduleEmpty),
        Some(&(found, _)) if found != Instant::ZERO => return Err(LinkError::ScheduleStart { found }),
        Some(_) => {}
    }
    for (index, pair) in entries.windows(2).enumerate() {
        if let [(previous, _), (found, _)] = *pair
            && found <= previous
        {
            return Err(LinkError::ScheduleOrder { index: index + 1, found, previous });
        }
    }
    let steps = Steps::new(entries.iter().map(|&(at, rate)| (at.as_nanos(), rate_units(rate))).collect(), None);
    steps.ok_or(LinkError::ScheduleDead)
}

/// An instant with its fraction of a nanosecond, in units of 1 / (rate of that time).
#[derive(Clone, Copy, Debug, Default)]
struct Exact {
    ns: u64,
    fraction: u64,
}

impl Exact {
    #[inline]
    fn rounded_up(self) -> Instant {
        Instant::from_nanos(self.ns.saturating_add(u64::from(self.fraction > 0)))
    }

    /// When the next packet begins: at once on an idle transmitter, else exactly where the last
    /// one ended.
    #[inline]
    fn next_start(self, arrival: Instant) -> Exact {
        if arrival >= self.rounded_up() { Exact { ns: arrival.as_nanos(), fraction: 0 } } else { self }
    }
}

/// Always the same rate. The fields are in the order of use.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct FixedRate {
    /// Rate units.
    rate: NonZeroU64,
    /// When the last packet served so far is done.
    done: Exact,
    /// How long the last packet took, since most are as large as the one before, and a division takes long.
    last_size: u64,
    last_took: Exact,
}

/// No packet has that size.
const NO_SIZE: u64 = u64::MAX;

impl FixedRate {
    /// `None` if the rate is nearly nothing.
    pub(crate) fn new(rate: Rate) -> Option<Self> {
        let rate = NonZeroU64::new(rate_units(rate))?;
        Some(FixedRate { rate, done: Exact::default(), last_size: NO_SIZE, last_took: Exact::default() })
    }

    /// When the last packet served so far is done.
    #[inline(always)]
    pub(crate) fn busy_until(&self) -> Instant {
        self.done.rounded_up()
    }

    /// Whether the last packet had that size; false after [`FixedRate::forget`] until there is one.
    #[inline(always)]
    pub(crate) fn served_last(&self, size: u64) -> bool {
        self.last_size == size
    }

    /// The size of the last packet, and how long it is served if it comes when the transmitter is idle, in nanoseconds; `None` after
    /// [`FixedRate::forget`] until there is one.
    pub(crate) fn last(&self) -> Option<(u64, u64)> {
        (self.last_size != NO_SIZE).then(|| (self.last_size, self.last_took.rounded_up().as_nanos()))
    }

    /// Whether packets as large as the last one depart without fractions, one behind the other.
    pub(crate) fn is_in_whole_nanoseconds(&self) -> bool {
        self.done.fraction == 0 && self.last_took.fraction == 0
    }

    /// Packets as large as the last one were served meanwhile, and the last of them is done then. Unless they take whole nanoseconds, that one found the
    /// transmitter idle.
    pub(crate) fn resume(&mut self, busy_until: Instant) {
        let fraction = self.last_took.fraction;
        self.done = Exact { ns: busy_until.as_nanos().saturating_sub(u64::from(fraction > 0)), fraction };
    }

    /// Whether a byte takes so long at least.
    pub(crate) fn takes_a_nanosecond(&self) -> bool {
        self.rate.get() <= WORK_PER_BYTE
    }

    /// Forgets the last packet's size.
    pub(crate) fn forget(&mut self) {
        self.last_size = NO_SIZE;
    }

    /// Serves the next packet from that instant on, since the transmitter is idle. When it is done.
    #[inline(always)]
    pub(crate) fn serve_idle(&mut self, arrival: Instant, size: u64) -> Instant {
        if size != self.last_size {
            self.measure(size);
        }
        let Exact { ns, fraction } = self.last_took;
        self.done = Exact { ns: arrival.as_nanos().saturating_add(ns), fraction };
        self.done.rounded_up()
    }

    /// Serves the next packet where the last one ended. When it is done.
    #[inline(always)]
    pub(crate) fn serve_next(&mut self, size: u64) -> Instant {
        if size != self.last_size {
            self.measure(size);
        }
        // Two fractions, each below the whole.
        let (took, fraction) = (self.last_took, self.done.fraction + self.last_took.fraction);
        let (more, fraction) =
            if fraction >= self.rate.get() { (1, fraction - self.rate.get()) } else { (0, fraction) };
        self.done = Exact { ns: self.done.ns.saturating_add(took.ns).saturating_add(more), fraction };
        self.done.rounded_up()
    }

    /// Of packets served one behind the other and all as large as the last one, a byte at least: how many are done after that instant, at which the first of
    /// them had come.
    #[inline]
    pub(crate) fn departures_after(&self, at: Instant) -> u64 {
        let (Exact { ns, fraction }, took, rate) = (self.done, self.last_took, self.rate.get());
        let Some(ns) = ns.checked_sub(at.as_nanos()) else { return 0 };
        if ns < took.ns {
            return u64::from(ns > 0 || fraction > 0);
        }
        // In units of work; with narrow numbers, where they do, a division takes a tenth of the time.
        let narrow = |exact: Exact| exact.ns.checked_mul(rate)?.checked_add(exact.fraction);
        match (narrow(Exact { ns, fraction }), narrow(took)) {
            (Some(left), Some(one)) => left.div_ceil(one.max(1)),
            _ => {
                let wide = |exact: Exact| u128::from(exact.ns) * u128::from(rate) + u128::from(exact.fraction);
                wide(Exact { ns, fraction }).div_ceil(wide(took).max(1)) as u64
            }
        }
    }

    /// When the packet is done before which so many are served, the last one included, all as large as that.
    pub(crate) fn departure_before(&self, packets: u64) -> Instant {
        let (rate, packets) = (u128::from(self.rate.get()), u128::from(packets));
        let work = |exact: Exact| u128::from(exact.ns) * rate + u128::from(exact.fraction);
        let left = work(self.done) - work(self.last_took) * packets;
        Instant::from_nanos(left.div_ceil(rate) as u64)
    }

    /// How long a packet of that size takes, piece by piece.
    #[cold]
    fn measure(&mut self, size: u64) {
        let mut took = Exact::default();
        let mut left = size;
        while left > 0 {
            let piece = left.min(PIECE);
            let work = piece * WORK_PER_BYTE + took.fraction;
            took = Exact { ns: took.ns.saturating_add(work / self.rate), fraction: work % self.rate };
            left -= piece;
        }
        (self.last_size, self.last_took) = (size, took);
    }

    pub(crate) fn rate(&self) -> Rate {
        rate_of_units(self.rate.get())
    }

    /// In bits.
    pub(crate) fn capacity_between(&self, from: Instant, to: Instant) -> f64 {
        self.rate().as_bps() * to.since(from).as_secs_f64()
    }

    #[inline]
    fn serve(&mut self, arrival: Instant, size: u64) -> Service {
        self.done = self.done.next_start(arrival);
        Service { start: self.busy_until(), departure: self.serve_next(size) }
    }
}

/// A rate that changes in steps.
#[derive(Clone, Debug)]
pub(crate) struct SteppedRate {
    steps: Arc<Steps>,
    /// The step in which `done` lies: its index, and the instant its repetition began.
    index: usize,
    base: u64,
    /// That step's rate, and the instant after it.
    rate: u64,
    end: u64,
    /// When the last packet served so far is done.
    done: Exact,
}

impl SteppedRate {
    fn new(steps: Arc<Steps>) -> Self {
        let (rate, end) = steps.get(0);
        SteppedRate { steps, index: 0, base: 0, rate, end, done: Exact::default() }
    }

    fn serve(&mut self, arrival: Instant, size: u64) -> Service {
        let mut at = self.done.next_start(arrival);
        let start = at.rounded_up();
        if at.ns >= self.end {
            let (base, index) = self.steps.find(at.ns);
            self.enter(base, index);
        }
        let mut left = size;
        loop {
            let piece = left.min(PIECE);
            at = self.transmit(at, piece * WORK_PER_BYTE);
            left -= piece;
            if left == 0 {
                break;
            }
        }
        self.done = at;
        Service { start, departure: at.rounded_up() }
    }

    /// When that much work is done, begun at `at`. Integers throughout: what remains at a change
    /// of rate is exact, because changes happen at whole nanoseconds.
    fn transmit(&mut self, mut at: Exact, mut work: u64) -> Exact {
        const NEVER: Exact = Exact { ns: u64::MAX, fraction: 0 };
        loop {
            // `None` at rate zero: the transmitter stalls until the next step.
            let total = work + at.fraction;
            if let Some(time) = total.checked_div(self.rate) {
                let done = Exact { ns: at.ns.saturating_add(time), fraction: total % self.rate };
                if done.ns < self.end || (done.ns == self.end && done.fraction == 0) {
                    return done;
                }
                // Not done by the end of this step, so what is done fits `work`.
                let possible = u128::from(self.end - at.ns) * u128::from(self.rate);
                work -= u64::try_from(possible - u128::from(at.fraction)).unwrap_or(work);
            }
            if self.end == u64::MAX {
                return NEVER;
            }
            at = Exact { ns: self.end, fraction: 0 };
            match self.steps.period {
                Some(period) if self.index + 1 == self.steps.len() => {
                    // Whole repetitions at once: a crawling trace would take for ever step by step.
                    let whole = u128::from(work.saturating_sub(1)) / self.steps.work_per_period;
                    work -= u64::try_from(whole * self.steps.work_per_period).unwrap_or(work);
                    let skip = u64::try_from(whole).unwrap_or(u64::MAX).saturating_mul(period);
                    let base = self.base.saturating_add(period).saturating_add(skip);
                    if base == u64::MAX {
                        return NEVER;
                    }
                    at.ns = base;
                    self.enter(base, 0);
                }
                _ => self.enter(self.base, self.index + 1),
            }
        }
    }

    fn enter(&mut self, base: u64, index: usize) {
        let (rate, end) = self.steps.get(index);
        (self.base, self.index, self.rate, self.end) = (base, index, rate, base.saturating_add(end));
    }
}

/// Bytes leave in lumps, at the instants of a recording, as in mahimahi's `mm-link`.
///
/// An opportunity carries up to 1,500 bytes of the packets that were waiting *before* it: several
/// small ones, or part of a large one, which carries over. Any part of an opportunity that is left when no packet
/// waits is lost.
#[derive(Clone, Debug)]
pub(crate) struct OpportunityRate {
    opportunities: Arc<Opportunities>,
    /// The next opportunity: its index, and the instant its repetition began.
    index: usize,
    base: u64,
    /// The opportunity in use: its instant, and the bytes it has left.
    at: Instant,
    left: u64,
}

impl OpportunityRate {
    fn new(opportunities: Arc<Opportunities>) -> Self {
        OpportunityRate { opportunities, index: 0, base: 0, at: Instant::ZERO, left: 0 }
    }

    fn earliest_start(&self, arrival: Instant) -> Instant {
        if self.usable(arrival) {
            return self.at;
        }
        let (base, index) = self.opportunities.first_after(arrival, self.base, self.index);
        self.opportunities.instant(base, index)
    }

    fn serve(&mut self, arrival: Instant, size: u64) -> Service {
        if !self.usable(arrival) {
            (self.base, self.index) = self.opportunities.first_after(arrival, self.base, self.index);
            self.take_next();
        }
        let start = self.at;
        let mut left = size;
        while left > self.left {
            left -= self.left;
            self.take_next();
        }
        self.left -= left;
        Service { start, departure: self.at }
    }

    /// Whether the opportunity in use has something left for a packet of that arrival.
    fn usable(&self, arrival: Instant) -> bool {
        self.left > 0 && self.at > arrival
    }

    fn take_next(&mut self) {
        self.at = self.opportunities.instant(self.base, self.index);
        self.left = OPPORTUNITY_BYTES;
        (self.base, self.index) = self.opportunities.following(self.base, self.index);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairpace_units::RandomStream;

    /// By definition: each departure is kept. Rates at which packets take whole nanoseconds, and parts of some; also such as need wide numbers.
    #[test]
    fn departures_of_packets_alike_follow_from_the_last_one() {
        for seed in 0..400 {
            let mut random = RandomStream::named(seed, "alike");
            let kbps = [8_000.0, 1.0 + random.below(50_000) as f64, 1e7, 1.0][seed as usize % 4];
            let size = [1_000, 1 + random.below(3_000), 1 << 32][random.below(3) as usize];
            let mut transmitter = FixedRate::new(Rate::kbps(kbps)).unwrap();
            let arrival = Instant::from_nanos(random.below(1_000_000));
            let mut departures = vec![transmitter.serve_idle(arrival, size)];
            departures.extend((0..random.below(40)).map(|_| transmitter.serve_next(size)));
            for (before, departure) in (0..).zip(departures.iter().rev()) {
                assert_eq!(transmitter.departure_before(before), *departure, "seed {seed}");
            }
            let last = departures.last().map_or(0, |at| at.as_nanos());
            let around = departures.iter().flat_map(|at| [at.as_nanos() - 1, at.as_nanos(), at.as_nanos() + 1]);
            // The first is on its way from its arrival on.
            for at in around.chain((0..40).map(|_| random.below(last + 2))).filter(|at| *at >= arrival.as_nanos()) {
                let after = departures.iter().filter(|departure| departure.as_nanos() > at).count() as u64;
                let found = transmitter.departures_after(Instant::from_nanos(at));
                assert_eq!(found, after, "seed {seed}: at {at} of {departures:?}");
            }
        }
    }
}
