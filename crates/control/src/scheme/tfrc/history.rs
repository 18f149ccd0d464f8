//! TFRC's loss history: from packets that came, came late, came marked or did not come, to p.
//!
//! Source: RFC 5348 §5 (which packets are lost, which losses are one event, the mean interval);
//! RFC 4828 §3, §4.4 (short loss intervals). Worked by hand: `docs/tfrc-loss-history.md`. Compared
//! with a second implementation in `tests/tfrc_oracle.rs`.
//!
//! Two layers. [`LossEvents`]: losses and marks in, p out; the sender uses it alone, with its own
//! numbers and departure times. [`Arrivals`]: what a receiver has, numbers in order of arrival;
//! finds the losses, interpolates their times, and keeps a [`LossEvents`].
//!
//! ```text
//!   arrivals   1 2 3 . 5 6 7 8 9 . . 12 13 14 15        R covers 4, not 10
//!                    |            |
//!                    S_A = 4      S_B = 10              S_C = 15
//!   intervals        |<-- I_1 --->|<---- I_0 ---->      I_1 = 10 - 4, I_0 = 15 - 10 + 1
//! ```
//!
//! # Symbols
//!
//! | RFC | here | unit | set |
//! | --- | --- | --- | --- |
//! | S_A, T_old, R | `Event`: `first`, `at`, `rtt` | –, s, s | the first lost packet of an event; the RTT in force then |
//! | S_C | `highest` | – | each packet received |
//! | I_1 … I_n | `Events::closed`, newest first | packets | a new event |
//! | DF_i | `df` beside each interval | – | a new event |
//! | DF | `Events::discount` | – | asked for |
//! | w_i | [`WEIGHTS`] | – | constant |
//! | S_before, S_after, T_before, T_after | `Line` | –, s | the packet that opens a hole |
//! | N, K (RFC 4828) | `Event::first` to the next, `Event::lost` | packets | each loss |
//!
//! # Readings
//!
//! - **p is a function of which packets are lost or marked, and when**, not of the order in which
//!   that became known. A packet that fills a hole therefore leaves the history as if it had never
//!   been missed; an event that loses its first packet begins at its next one.
//! - Events are told apart in the order of sequence numbers. A mark on a packet that came late has
//!   the time of its arrival, which may be after that of higher numbers: they are then the same event.
//! - S_before is the packet that arrived last before any above the hole, as the RFC defines it; after
//!   reordering that is not the number just below the hole.
//! - R is the one that the packet above the hole carried; an event keeps it.
//! - DF, when an event closes an interval, is the one in force for the last packet before that event
//!   (I_0 = S_B - S_A), not for the packet that let it be noticed.
//! - A lost packet's time is rounded down to whole nanoseconds.
//! - The first packet that arrives begins the record; numbers below it are not in it. Duplicates
//!   are no arrivals.
//! - Short packets: "how long" is from one event's first time to the next one's; the open interval
//!   counts when the last packet came more than 2R after it began, and does not discount before.
//!
//! # Deviations
//!
//! - Before [`LossEvents::set_first_interval`] has been called, the open interval alone is the mean.
//! - Memory is bounded: [`MOST_HOLES`] holes and marks can still be repaired or joined by one below
//!   them; older ones have their effect for good. Of a hole that lasts more than
//!   [`MOST_EVENTS_IN_A_HOLE`] RTTs only the events at its end are told apart: eight fill the history.
//!
//! # Not implemented
//!
//! An NDUPACK that adapts. Judging whether a jump of the numbers is believable: that is RTP's part
//! [RFC 3550 A.1].

use fairpace_units::{Duration, Instant};
use std::collections::VecDeque;

/// n: loss intervals in the mean [RFC 5348 §5.4: no more on the Internet].
pub const INTERVALS: usize = 8;
/// w_0 to w_7 [RFC 5348 §5.4].
pub const WEIGHTS: [f64; INTERVALS] = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];
/// A packet is lost when this many with higher numbers have arrived [RFC 5348 §5.1].
pub const NDUPACK: usize = 3;
/// Holes and marks that are remembered one by one: 16 KiB.
pub const MOST_HOLES: usize = 256;
/// Events told apart in one hole: four histories' worth.
pub const MOST_EVENTS_IN_A_HOLE: u32 = 32;

/// Whether older intervals count less while the open one is long [RFC 5348 §5.5], and how little at least. Off by default: the RFC
/// makes it optional.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Discounting {
    /// All count.
    #[default]
    Off,
    /// A quarter at least, the RFC's THRESHOLD.
    ToQuarter,
    /// Half at least, as in ns-2 (`minDiscountRatio_`).
    ToHalf,
}

impl Discounting {
    /// The least DF.
    const fn least(self) -> f64 {
        match self {
            Discounting::Off => 1.0,
            Discounting::ToQuarter => 0.25,
            Discounting::ToHalf => 0.5,
        }
    }
}

/// The settings that may be chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HistoryParams {
    /// Whether older intervals count less while the open one is long.
    pub discounting: Discounting,
    /// Count short loss intervals by packets lost [RFC 4828 §4.4]; for TFRC-SP.
    pub short_packets: bool,
}

// --- losses in, p out --------------------------------------------------------------------------------

/// Losses, marks and receptions in; the loss event rate out [RFC 5348 §5.2-5.5].
///
/// Numbers never wrap. Times are of one clock: arrivals at a receiver, departures at a sender.
/// A packet received beyond all losses costs O(1); nothing is allocated in steady state.
///
/// ```
/// use fairpace_control::tfrc::history::{HistoryParams, LossEvents};
/// use fairpace_units::{Duration, Instant};
/// let mut history = LossEvents::new(&HistoryParams::default());
/// let (at, rtt) = (|ms| Instant::ZERO + Duration::from_millis(ms), Duration::from_millis(100));
/// history.on_lost(50, at(500), rtt);
/// history.set_first_interval(50.0);
/// history.on_received(54, at(540));
/// assert_eq!(history.loss_event_rate(), 0.02); // I_0 = 5, I_1 = 50: the mean without I_0
/// history.on_received(549, at(5_490));
/// assert_eq!(history.loss_event_rate(), 0.002); // I_0 = 500
/// ```
#[derive(Clone, Debug)]
pub struct LossEvents {
    params: HistoryParams,
    /// S_C.
    highest: Option<u64>,
    /// The open interval is counted as ns-2 does.
    as_ns2: bool,
    /// When the newest packet came.
    newest: Instant,
    /// The interval before the first event, packets.
    first_interval: Option<f64>,
    /// The holes that are still remembered one by one, by number; no two overlap.
    holes: VecDeque<Hole>,
    /// The events of what is no longer remembered, and up to which number that reaches.
    settled: Events,
    settled_to: Option<u64>,
    /// The events of all: `settled`, then `holes`.
    live: Events,
}

impl LossEvents {
    /// An empty history: p = 0.
    pub fn new(params: &HistoryParams) -> Self {
        LossEvents {
            params: *params,
            highest: None,
            as_ns2: false,
            newest: Instant::ZERO,
            first_interval: None,
            holes: VecDeque::new(),
            settled: Events::default(),
            settled_to: None,
            live: Events::default(),
        }
    }

    /// Packet `seq` came. If it counted as lost, it does not any more [RFC 5348 §5.1]; true if that
    /// left fewer loss events.
    pub fn on_received(&mut self, seq: u64, at: Instant) -> bool {
        self.highest = Some(self.highest.map_or(seq, |h| h.max(seq)));
        self.newest = self.newest.max(at);
        let before = self.live.count;
        self.take_back(seq);
        self.live.count < before
    }

    /// Packet `seq` is lost; `at` is its time, `rtt` the RTT in force. True if that began a new
    /// loss event.
    pub fn on_lost(&mut self, seq: u64, at: Instant, rtt: Duration) -> bool {
        self.insert(Hole { first: seq, last: seq, times: Line::point(seq, at), rtt: nanos(rtt), marked: false })
    }

    /// Packet `seq` came with a congestion mark: a loss, but for good. True if that began a new
    /// loss event.
    pub fn on_marked(&mut self, seq: u64, at: Instant, rtt: Duration) -> bool {
        let before = self.live.count;
        self.on_received(seq, at);
        self.insert(Hole { first: seq, last: seq, times: Line::point(seq, at), rtt: nanos(rtt), marked: true });
        self.live.count > before
    }

    /// p, in `(0, 1]`; 0 before the first loss [RFC 5348 §5.4, §5.5].
    pub fn loss_event_rate(&self) -> f64 {
        let Some(open) = &self.live.open else { return 0.0 };
        // S_C - S_A + 1 [RFC 5348 §5.3]; 1 if nothing higher came yet. In ns-2 the event's own packet belongs to the interval before only.
        let itself = if self.as_ns2 && self.live.len > 0 { 0.0 } else { 1.0 };
        let i_0 = (self.highest.unwrap_or(0).max(open.first) - open.first) as f64 + itself;
        let counts = !(self.params.short_packets && open.lasts_at_most_two_rtts(self.newest));
        1.0 / self.live.mean(i_0, counts, &self.params)
    }

    /// The interval before the first event, in packets [RFC 5348 §6.3.1]; to be given after the
    /// call that returned true for it. At least 1.
    pub fn set_first_interval(&mut self, packets: f64) {
        self.first_interval = Some(packets.clamp(1.0, 2_f64.powi(53)));
        if self.settled.count == 0 {
            self.replay();
        }
    }

    /// No loss event is known: p = 0.
    pub fn is_empty(&self) -> bool {
        self.live.count == 0
    }

    /// Loss events so far.
    pub fn events(&self) -> u64 {
        self.live.count
    }

    /// The closed intervals of the mean, newest first, packets: I_1 to I_n.
    pub fn intervals(&self) -> impl Iterator<Item = f64> + '_ {
        self.live.closed().iter().map(|i| i.packets)
    }

    /// Whether `seq` counts as lost and could still come.
    fn is_missing(&self, seq: u64) -> bool {
        let i = self.holes.partition_point(|h| h.last < seq);
        self.holes.get(i).is_some_and(|h| h.first <= seq && !h.marked)
    }

    /// A hole, or a part of one, is found not to be there.
    fn take_back(&mut self, seq: u64) {
        if self.holes.back().is_none_or(|h| seq > h.last) {
            return; // The common case: beyond all losses.
        }
        let i = self.holes.partition_point(|h| h.last < seq);
        let hole = self.holes[i];
        if seq < hole.first || hole.marked {
            return;
        }
        match (hole.first < seq, seq < hole.last) {
            (true, true) => {
                self.holes[i].last = seq - 1;
                self.holes.insert(i + 1, Hole { first: seq + 1, ..hole });
            }
            (true, false) => self.holes[i].last = seq - 1,
            (false, true) => self.holes[i].first = seq + 1,
            (false, false) => drop(self.holes.remove(i)),
        }
        self.replay();
        self.settle();
    }

    /// Takes in a hole or a mark; true if that left more loss events.
    fn insert(&mut self, hole: Hole) -> bool {
        if self.settled_to.is_some_and(|s| hole.first <= s) {
            return false; // Too late to be told apart.
        }
        let before = self.live.count;
        if self.holes.back().is_none_or(|h| h.last < hole.first) {
            self.holes.push_back(hole);
            self.live.add(&hole, &self.params, self.first_interval);
        } else {
            let i = self.holes.partition_point(|h| h.last < hole.first);
            if self.holes[i].first <= hole.last {
                return false; // Known already.
            }
            self.holes.insert(i, hole);
            self.replay();
        }
        self.settle();
        self.live.count > before
    }

    fn replay(&mut self) {
        self.live = self.settled.clone();
        for hole in &self.holes {
            self.live.add(hole, &self.params, self.first_interval);
        }
    }

    fn settle(&mut self) {
        while self.holes.len() > MOST_HOLES {
            if let Some(hole) = self.holes.pop_front() {
                self.settled_to = Some(hole.last);
                self.settled.add(&hole, &self.params, self.first_interval);
            }
        }
    }
}

/// Neighbouring numbers that are missing, or one packet that came marked.
#[derive(Clone, Copy, Debug)]
struct Hole {
    first: u64,
    last: u64,
    times: Line,
    /// Nanoseconds.
    rtt: u64,
    marked: bool,
}

impl Hole {
    /// The lowest number whose time is later than `t`.
    fn begins_after(&self, t: Instant) -> Option<u64> {
        self.times.first_after(t).map(|s| s.max(self.first)).filter(|s| *s <= self.last)
    }

    /// Only events from here on are told apart.
    fn told_apart_from(&self) -> u64 {
        let apart = Duration::from_nanos(self.rtt.saturating_mul(u64::from(MOST_EVENTS_IN_A_HOLE)));
        self.begins_after(self.times.at(self.last) - apart).unwrap_or(self.last)
    }
}

/// T_loss = T_before + (T_after - T_before) (S_loss - S_before) / (S_after - S_before)
/// [RFC 5348 §5.2], to the nanosecond below.
#[derive(Clone, Copy, Debug)]
struct Line {
    before: u64,
    t_before: Instant,
    after: u64,
    t_after: Instant,
}

impl Line {
    const fn point(seq: u64, at: Instant) -> Self {
        Line { before: seq, t_before: at, after: seq, t_after: at }
    }

    fn span(&self) -> (u128, u128) {
        let nanos = self.t_after.since(self.t_before).as_nanos();
        (nanos, u128::from(self.after.saturating_sub(self.before)))
    }

    /// T_loss of `seq`.
    fn at(&self, seq: u64) -> Instant {
        let (nanos, packets) = self.span();
        let share = nanos * u128::from(seq.saturating_sub(self.before)) / packets.max(1);
        self.t_before + Duration::from_nanos(u64::try_from(share).unwrap_or(u64::MAX))
    }

    /// The lowest number whose T_loss is later than `t`.
    fn first_after(&self, t: Instant) -> Option<u64> {
        if t < self.t_before {
            return Some(self.before);
        }
        // floor(nanos k / packets) > t - t_before, that is nanos k >= (t - t_before + 1) packets
        let (nanos, packets) = self.span();
        let least = (t.since(self.t_before).as_nanos() + 1) * packets;
        let k = if nanos == 0 { return None } else { least.div_ceil(nanos) };
        u64::try_from(k).ok().and_then(|k| self.before.checked_add(k))
    }
}

/// One loss event.
#[derive(Clone, Copy, Debug)]
struct Event {
    /// S_A: its first packet.
    first: u64,
    /// T_old: that packet's time.
    at: Instant,
    /// R in force then, nanoseconds.
    rtt: u64,
    /// K: packets lost or marked before the next event.
    lost: u64,
}

impl Event {
    /// T_old + R >= t: what happened then belongs to this event [RFC 5348 §5.2].
    fn end(&self) -> Instant {
        self.at + Duration::from_nanos(self.rtt)
    }

    fn lasts_at_most_two_rtts(&self, until: Instant) -> bool {
        until <= self.end() + Duration::from_nanos(self.rtt)
    }
}

/// A closed loss interval.
#[derive(Clone, Copy, Debug, Default)]
struct Interval {
    packets: f64,
    /// DF_i.
    df: f64,
}

/// The loss events as they follow from holes and marks given in the order of their numbers.
#[derive(Clone, Debug, Default)]
struct Events {
    intervals: [Interval; INTERVALS],
    len: usize,
    open: Option<Event>,
    count: u64,
}

impl Events {
    fn closed(&self) -> &[Interval] {
        &self.intervals[..self.len]
    }

    /// The next hole or mark.
    fn add(&mut self, hole: &Hole, params: &HistoryParams, first_interval: Option<f64>) {
        let (mut seq, mut at) = (hole.first, hole.times.at(hole.first));
        let mut earliest = hole.first;
        loop {
            let begins = match &self.open {
                Some(event) if at <= event.end() => hole.begins_after(event.end()).map(|s| s.max(earliest)),
                _ => Some(seq.max(earliest)),
            };
            if let Some(event) = &mut self.open {
                event.lost += begins.map_or(hole.last - seq + 1, |s| s - seq);
            }
            let Some(first) = begins else { return };
            self.begin(Event { first, at: hole.times.at(first), rtt: hole.rtt, lost: 1 }, params, first_interval);
            if first == hole.last {
                return;
            }
            (seq, at) = (first + 1, hole.times.at(first + 1));
            earliest = hole.told_apart_from();
        }
    }

    /// A new event: the open interval closes.
    fn begin(&mut self, event: Event, params: &HistoryParams, first_interval: Option<f64>) {
        let closed = match &self.open {
            None => first_interval,
            Some(old) => {
                let n = (event.first - old.first) as f64; // S_B - S_A [RFC 5348 §5.3]
                if params.short_packets && old.lasts_at_most_two_rtts(event.at) {
                    Some(n / old.lost as f64) // N/K [RFC 4828 §4.4]
                } else {
                    let df = self.discount(n, params);
                    for older in &mut self.intervals[..self.len] {
                        older.df *= df;
                    }
                    Some(n)
                }
            }
        };
        if let Some(packets) = closed {
            self.len = (self.len + 1).min(INTERVALS);
            self.intervals[..self.len].rotate_right(1);
            self.intervals[0] = Interval { packets, df: 1.0 };
        }
        self.open = Some(event);
        self.count += 1;
    }

    /// The mean of I_1 to I_k [RFC 5348 §5.4, §5.5: I_tot1/W_tot1].
    fn closed_mean(&self) -> Option<f64> {
        let (mut i_tot, mut w_tot) = (0.0, 0.0);
        for (interval, w) in self.closed().iter().zip(WEIGHTS) {
            i_tot += interval.packets * w * interval.df;
            w_tot += w * interval.df;
        }
        (self.len > 0).then(|| i_tot / w_tot)
    }

    /// DF = max(2 I_mean/I_0, THRESHOLD) if I_0 > 2 I_mean, else 1 [RFC 5348 §5.5].
    fn discount(&self, i_0: f64, params: &HistoryParams) -> f64 {
        match self.closed_mean() {
            Some(mean) if i_0 > 2.0 * mean => (2.0 * mean / i_0).max(params.discounting.least()),
            _ => 1.0,
        }
    }

    /// I_mean: the larger of the means with and without the open interval [RFC 5348 §5.4]; without
    /// it if it does not count [RFC 4828 §3].
    fn mean(&self, i_0: f64, counts: bool, params: &HistoryParams) -> f64 {
        let Some(without) = self.closed_mean() else { return i_0 };
        if !counts {
            return without;
        }
        let df = self.discount(i_0, params);
        let (mut i_tot, mut w_tot) = (i_0 * WEIGHTS[0], WEIGHTS[0]);
        // I_1 to I_(k-1): the oldest makes room for I_0.
        for (interval, w) in self.intervals[..self.len - 1].iter().zip(&WEIGHTS[1..]) {
            i_tot += interval.packets * w * interval.df * df;
            w_tot += w * interval.df * df;
        }
        without.max(i_tot / w_tot)
    }
}

fn nanos(d: Duration) -> u64 {
    u64::try_from(d.as_nanos()).unwrap_or(u64::MAX)
}

// --- arrivals in -----------------------------------------------------------------------------------------

/// The meaning of one arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// A duplicate, or so late that it cannot be told from one: nothing changed.
    Known,
    /// A new packet; no more and no fewer loss events.
    New,
    /// The arrival revealed a new loss event.
    LossEvent,
    /// The arrival filled a hole, and a loss event is gone.
    Repaired,
}

/// Finds losses in the sequence numbers as they arrive [RFC 5348 §5.1, §5.2]. Of packets, only the
/// three highest numbers and the last to arrive are remembered; the rest is [`LossEvents`]'.
#[derive(Clone, Debug)]
pub struct Arrivals {
    events: LossEvents,
    /// The highest numbers received, highest first.
    top: [Top; NDUPACK],
    len: usize,
    /// All missing numbers below this one are with `events`.
    declared: u64,
    /// S_before: the last packet to arrive.
    last: (u64, Instant),
    /// As ns-2 does, not as the RFC says.
    as_ns2: bool,
}

/// One of the highest numbers received.
#[derive(Clone, Copy, Debug)]
struct Top {
    seq: u64,
    /// The times and the RTT of what is missing just below it.
    times: Line,
    rtt: u64,
}

impl Arrivals {
    /// Nothing has arrived.
    pub fn new(params: &HistoryParams) -> Self {
        let nothing = Top { seq: 0, times: Line::point(0, Instant::ZERO), rtt: 0 };
        Arrivals {
            events: LossEvents::new(params),
            top: [nothing; NDUPACK],
            len: 0,
            declared: 0,
            last: (0, Instant::ZERO),
            as_ns2: false,
        }
    }

    /// A gap is a loss as soon as a later packet comes, and begins one loss event at most, however long it
    /// is; and the open interval has one packet fewer: what ns-2 2.35 does (`numPkts_ 1`, `PreciseLoss_ 1`, `est_loss_WALI`). To be asked for before the first packet.
    #[must_use]
    pub fn as_ns2(mut self, as_ns2: bool) -> Self {
        (self.as_ns2, self.events.as_ns2) = (as_ns2, as_ns2);
        self
    }

    /// The loss events so far.
    pub fn events(&self) -> &LossEvents {
        &self.events
    }

    /// [`LossEvents::set_first_interval`].
    pub fn set_first_interval(&mut self, packets: f64) {
        self.events.set_first_interval(packets);
    }

    /// A packet has arrived; `rtt` is the RTT it carries, `marked`: with CE.
    pub fn on_packet(&mut self, seq: u64, now: Instant, rtt: Duration, marked: bool) -> Heard {
        if self.len == 0 {
            self.declared = seq.saturating_add(1);
            self.last = (seq, now);
            self.keep(0, Top { seq, times: Line::point(seq, now), rtt: nanos(rtt) });
        } else if seq < self.declared {
            // Late: it fills a hole, or is none of ours.
            if !self.events.is_missing(seq) {
                return Heard::Known;
            }
        } else if self.top[..self.len].iter().any(|t| t.seq == seq) {
            return Heard::Known;
        }
        let before = self.events.events();
        self.events.on_received(seq, now);
        if seq >= self.declared {
            let place = self.top[..self.len].iter().take_while(|t| t.seq > seq).count();
            let (times, rtt) = match place.checked_sub(1) {
                // The highest so far opens a hole, if there is one, just below it.
                None => (Line { before: self.last.0, t_before: self.last.1, after: seq, t_after: now }, nanos(rtt)),
                // One that comes within a hole splits it.
                Some(above) => (self.top[above].times, self.top[above].rtt),
            };
            self.keep(place, Top { seq, times, rtt });
        }
        if marked {
            self.declare_below(seq);
            self.events.on_marked(seq, now, rtt);
        }
        self.last = (seq, now);
        match self.events.events().cmp(&before) {
            core::cmp::Ordering::Less => Heard::Repaired,
            core::cmp::Ordering::Equal => Heard::New,
            core::cmp::Ordering::Greater => Heard::LossEvent,
        }
    }

    /// Takes a number in among the highest. Below NDUPACK of them, what is missing is lost.
    fn keep(&mut self, place: usize, top: Top) {
        let enough = if self.as_ns2 { 1 } else { NDUPACK };
        self.len = (self.len + 1).min(enough);
        self.top[place..self.len].rotate_right(1);
        self.top[place] = top;
        if self.len == enough {
            self.declare_below(self.top[enough - 1].seq);
        }
    }

    /// Declares packets missing below `seq`, one of the highest, lost.
    fn declare_below(&mut self, seq: u64) {
        for top in self.top[..self.len].iter().rev().filter(|t| t.seq <= seq) {
            if self.declared < top.seq {
                let (first, last) = (self.declared, top.seq - 1);
                let times = if self.as_ns2 { Line::point(first, top.times.at(first)) } else { top.times };
                self.events.insert(Hole { first, last, times, rtt: top.rtt, marked: false });
            }
            self.declared = self.declared.max(top.seq.saturating_add(1));
        }
    }
}

#[cfg(test)]
mod tests;
