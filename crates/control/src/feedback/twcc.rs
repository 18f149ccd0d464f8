//! Transport-wide feedback at both ends: packets of all streams are numbered together, and told of once each, with the
//! times between their arrivals [draft-holmer-rmcat-transport-wide-cc-extensions-01].
//!
//! Readings:
//! - A report begins where the last one ended, or at the lowest number that has come late since; it ends with the highest
//!   number that has arrived.
//! - A gap between two reports is of unknown fate if a report between them has not come, as their count says; else its
//!   packets have not arrived. An unknown packet is neither lost nor acknowledged. A report that is overtaken tells
//!   of it after all.
//! - Nothing proves that a report was lost. So a receiver may leave open a burst of 400 packets, and one for three that the
//!   receiver tells of; what lies beyond that has not arrived.
//! - The report does not say for how long the newest packet was held back. Between two Fairpaces the claims do
//!   ([`Report::held`]); else the round trip is as much too long. The time that the others waited for the newest is
//!   subtracted.

#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing,))]

use super::{Ack, BadFeedback};
use fairpace_units::{Duration, Ecn, Instant, Kind, RandomStream};
use std::collections::VecDeque;

/// The unit of the time between arrivals.
pub const TICK: Duration = Duration::from_micros(250);

/// Ticks in one unit of the reference time, 64 ms.
pub const REFERENCE_TICKS: u64 = 256;

/// Bits of the reference time.
const REFERENCE_BITS: u32 = 24;

/// Packets that one report tells of at most: a report of two bytes each fits any path of 1,280 B.
const MOST_TOLD: u64 = 400;

/// A number further ahead than this is believed only when its successor arrives: one damaged number must not make every
/// report run on to it, nor leave all real packets behind.
const MOST_AHEAD: u64 = 1_000;

/// Packets in a row of which reports may leave open what became of them; and of so many that are told of, one more. Who
/// leaves out more is hiding losses, and the rest counts as lost.
const MOST_UNTOLD: u64 = 400;
const TOLD_FOR_ONE: u64 = 3;

/// Arrivals remembered for reports to come, and packets for reports that have not come.
const MEMORY: usize = 16_384;

/// A number of 16 bits, as the nearest to `near`.
fn unwrap(near: u64, number: u16) -> Option<u64> {
    near.checked_add_signed(i64::from(number.wrapping_sub(near as u16) as i16))
}

/// One report, as on the wire.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The lowest number told of.
    pub base: u16,
    /// The reference of the first time: in 64 ms, on the receiver's clock; 24 bits.
    pub reference: u32,
    /// +1 for each report.
    pub count: u8,
    /// The packets from `base` on: the ticks since the arrival of the one before that has arrived (the first: since
    /// the reference), or `None` if it has not.
    pub deltas: Vec<Option<i16>>,
    /// From the arrival of the newest packet told of to this report. Not part of the draft: zero from other tools.
    pub held: Duration,
}

impl Report {
    /// Each number told of, with its delta.
    pub fn numbers(&self) -> impl Iterator<Item = (u16, Option<i16>)> {
        self.deltas.iter().enumerate().map(|(i, delta)| (self.base.wrapping_add(i as u16), *delta))
    }
}

/// The receiver's end. Hand in arrivals, then call [`Receiver::poll`] until `None`; wake up at [`Receiver::next`].
#[derive(Clone, Debug)]
pub struct Receiver {
    interval: Option<Duration>,
    /// When each packet arrived, from number `first` on; numbers that cannot be below zero begin a cycle up.
    arrivals: VecDeque<Option<Instant>>,
    first: u64,
    /// A number that was too far ahead to be believed on its own.
    candidate: Option<u64>,
    /// The lowest number that arrived since the last report.
    lowest_new: Option<u64>,
    /// Behind the last number told of.
    told_to: u64,
    due: Instant,
    last: Option<Instant>,
    report: Report,
}

impl Receiver {
    /// `None` reports each packet at once.
    pub fn new(interval: Option<Duration>) -> Self {
        Receiver {
            interval: interval.filter(|i| !i.is_zero()),
            arrivals: VecDeque::new(),
            first: 0,
            candidate: None,
            lowest_new: None,
            told_to: 0,
            due: Instant::NEVER,
            last: None,
            report: Report { count: u8::MAX, ..Report::default() },
        }
    }

    /// A packet has arrived with that number; gives the number without wraps, or `None` if the number is not believed and
    /// the packet as good as lost.
    pub fn on_packet(&mut self, now: Instant, number: u16) -> Option<u64> {
        if self.arrivals.is_empty() {
            self.first = (1 << 16) + u64::from(number);
            self.told_to = self.first;
        }
        let highest = self.first + (self.arrivals.len() as u64).saturating_sub(1);
        let number = unwrap(highest, number)?;
        if number > highest + MOST_AHEAD && self.candidate.replace(number) != number.checked_sub(1) {
            return None;
        }
        self.candidate = None;
        // A packet that comes before the first, or too late, is not told of; a jump far ahead leaves the rest behind.
        let mut place = number.checked_sub(self.first)?;
        let excess = (place + 1).saturating_sub(MEMORY as u64).min(self.arrivals.len() as u64);
        self.arrivals.drain(..excess as usize);
        self.first += excess;
        place -= excess;
        if place >= MEMORY as u64 {
            (self.first, place) = (number, 0);
        }
        if self.arrivals.len() <= place as usize {
            self.arrivals.resize(place as usize + 1, None);
        }
        if let Some(slot @ None) = self.arrivals.get_mut(place as usize) {
            *slot = Some(now);
            self.lowest_new = Some(self.lowest_new.map_or(number, |lowest| lowest.min(number)));
            if self.due == Instant::NEVER {
                // The first packet after a pause at once, then one report each interval.
                self.due = match (self.interval, self.last) {
                    (Some(interval), Some(last)) => now.max(last + interval),
                    _ => now,
                };
            }
        }
        Some(number)
    }

    /// The packet that arrived last is to be told of at once.
    pub fn hurry(&mut self, now: Instant) {
        if self.due != Instant::NEVER {
            self.due = now;
        }
    }

    /// The report that is due, with the number without wraps from which on it tells.
    pub fn poll(&mut self, now: Instant) -> Option<(u64, &Report)> {
        if now < self.due {
            return None;
        }
        self.due = Instant::NEVER;
        let end = self.first + self.arrivals.len() as u64;
        let lowest = self.lowest_new.take()?;
        let from = lowest.min(self.told_to).max(self.first);
        let ticks = |at: Instant| at.as_nanos() / TICK.as_nanos() as u64;
        let mut next = from;
        let report = &mut self.report;
        report.deltas.clear();
        let mut last = None;
        while next < end && next - from < MOST_TOLD {
            let arrived = self.arrivals.get((next - self.first) as usize).copied().flatten().map(ticks);
            let delta = match (arrived, last) {
                (None, _) => None,
                (Some(at), None) => {
                    let reference = at / REFERENCE_TICKS;
                    report.reference = (reference & ((1 << REFERENCE_BITS) - 1)) as u32;
                    last = Some(at);
                    Some((at % REFERENCE_TICKS) as i16)
                }
                (Some(at), Some(before)) => {
                    // Eight seconds between two packets: the next report has a reference of its own.
                    let Ok(delta) = i16::try_from(at as i64 - before as i64) else { break };
                    last = Some(at);
                    Some(delta)
                }
            };
            report.deltas.push(delta);
            next += 1;
        }
        let newest = self.arrivals.range((from - self.first) as usize..(next - self.first) as usize).flatten().max();
        report.held = newest.map_or(Duration::ZERO, |at| now.since(*at));
        (report.base, report.count) = (from as u16, report.count.wrapping_add(1));
        self.told_to = self.told_to.max(next);
        self.last = Some(now);
        if next < end {
            // Packets for which this report has no room follow at once.
            (self.lowest_new, self.due) = (Some(next), now);
            self.told_to = next;
        }
        Some((from, &self.report))
    }

    /// When a report is due; [`Instant::NEVER`] if nothing waits.
    pub const fn next(&self) -> Instant {
        self.due
    }
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    /// `None`: the number was left out on purpose.
    packet: Option<(Kind, u64)>,
    acked: bool,
}

/// The contents of a report, in a flow's terms.
#[derive(Clone, Copy, Debug)]
pub struct Heard<'a> {
    /// Packets acknowledged for the first time: data, then dummies, each in the order of their numbers.
    pub acks: &'a [Ack],
    /// When the report was made, on the receiver's clock; from other tools, the newest arrival that the report tells of.
    pub made_at: Duration,
    /// Packets whose fate nobody will tell, unless a report was overtaken.
    pub untold: &'a [(Kind, u64)],
}

/// The sender's end: which packet has which number.
#[derive(Clone, Debug)]
pub struct Sender {
    sent: VecDeque<Sent>,
    /// The number of `sent[0]`; the lowest 16 bits go onto the wire.
    first: u64,
    /// Leave out one number in so many.
    skip: Option<(u32, RandomStream)>,
    /// Behind the highest number told of.
    told_to: u64,
    count: Option<u8>,
    /// How many packets reports may leave open, times [`TOLD_FOR_ONE`].
    allowance: u64,
    /// The latest reference, without wraps.
    reference: Option<u64>,
    acks: Vec<Ack>,
    untold: Vec<(Kind, u64)>,
}

impl Sender {
    /// The first packet will have the number `first`. `skip`: leave out one number in so many, at random from this seed; who
    /// acknowledges one of them lies.
    pub fn new(first: u16, skip: Option<(u32, u64)>) -> Self {
        // One cycle up, so that no number lies below zero.
        let first = (1 << 16) + u64::from(first);
        Sender {
            sent: VecDeque::new(),
            first,
            skip: skip.map(|(every, seed)| (every.max(2), RandomStream::named(seed, "transport_wide.skip"))),
            told_to: first,
            count: None,
            allowance: MOST_UNTOLD * TOLD_FOR_ONE,
            reference: None,
            acks: Vec::new(),
            untold: Vec::new(),
        }
    }

    /// The number that the next packet will have.
    pub fn next_number(&self) -> u64 {
        self.first + self.sent.len() as u64
    }

    /// Packet `seq` of that kind has left, under [`Sender::next_number`].
    pub fn on_sent(&mut self, kind: Kind, seq: u64) {
        self.push(Some((kind, seq)));
        if let Some((every, stream)) = &mut self.skip
            && stream.below(u64::from(*every)) == 0
        {
            self.push(None);
        }
    }

    fn push(&mut self, packet: Option<(Kind, u64)>) {
        if self.sent.len() >= MEMORY {
            self.sent.pop_front();
            self.first += 1;
        }
        self.sent.push_back(Sent { packet, acked: false });
    }

    /// The packet sent under this number of 16 bits, nearest to what was sent last: the number without wraps.
    ///
    /// # Errors
    /// [`BadFeedback::Unsent`] if no packet had that number yet, [`BadFeedback::Lie`] if it was left out on purpose.
    pub fn sent_as(&self, number: u16) -> Result<u64, BadFeedback> {
        let number = unwrap(self.next_number(), number).ok_or(BadFeedback::Unsent)?;
        self.check(number).map(|()| number)
    }

    fn check(&self, number: u64) -> Result<(), BadFeedback> {
        match number.checked_sub(self.first).map(|i| self.sent.get(i as usize)) {
            Some(None) => Err(BadFeedback::Unsent),
            Some(Some(Sent { packet: None, .. })) => Err(BadFeedback::Lie),
            // A forgotten packet was sent.
            Some(Some(_)) | None => Ok(()),
        }
    }

    /// The packet that had number `number`, without wraps, if remembered.
    pub fn packet(&self, number: u64) -> Option<(Kind, u64)> {
        self.sent.get(usize::try_from(number.checked_sub(self.first)?).ok()?)?.packet
    }

    /// A report has arrived.
    ///
    /// # Errors
    /// [`BadFeedback::Unsent`] or [`BadFeedback::Lie`] if the report tells of the arrival of a packet that was not sent, or
    /// begins behind all that was; nothing of it is used.
    pub fn on_report(&mut self, report: &Report) -> Result<Heard<'_>, BadFeedback> {
        let next = self.next_number();
        let base = unwrap(next, report.base).filter(|base| *base < next).ok_or(BadFeedback::Unsent)?;
        for (number, _) in (base..).zip(&report.deltas).filter(|(_, delta)| delta.is_some()) {
            self.check(number)?;
        }
        self.acks.clear();
        self.untold.clear();
        let ahead = self.count.map_or(1, |last| report.count.wrapping_sub(last));
        if (1..128).contains(&ahead) {
            if ahead > 1 {
                for number in self.told_to.max(self.first)..base.min(next) {
                    if let Some(Sent { packet: Some(packet), acked: false }) =
                        self.sent.get((number - self.first) as usize)
                    {
                        let Some(left) = self.allowance.checked_sub(TOLD_FOR_ONE) else { break };
                        self.allowance = left;
                        self.untold.push(*packet);
                    }
                }
            }
            self.count = Some(report.count);
        }
        let end = base.saturating_add(report.deltas.len() as u64).min(next);
        self.told_to = self.told_to.max(end);
        let mut at = self.unwrap_reference(report.reference) * REFERENCE_TICKS;
        // The newest packet's arrival is the nearest to when the report was made.
        let newest = report.deltas.iter().flatten().fold((at as i64, at as i64), |(now, newest), delta| {
            let now = now + i64::from(*delta);
            (now, newest.max(now))
        });
        let newest = newest.1.max(0) as u64;
        let ticks = |n: u64| Duration::from_micros(n.saturating_mul(TICK.as_micros() as u64));
        for (number, delta) in (base..).zip(&report.deltas) {
            let Some(delta) = delta else { continue };
            at = at.saturating_add_signed(i64::from(*delta));
            let Some(sent) = number.checked_sub(self.first).and_then(|i| self.sent.get_mut(i as usize)) else {
                continue;
            };
            let (Some((kind, seq)), false) = (sent.packet, sent.acked) else { continue };
            sent.acked = true;
            self.allowance = (self.allowance + 1).min(MOST_UNTOLD * TOLD_FOR_ONE);
            self.acks.push(Ack {
                kind,
                seq,
                ecn: Ecn::NotEct,
                arrived_at: Some(ticks(at)),
                ack_delay: ticks(newest.saturating_sub(at)) + report.held,
            });
        }
        // As other forms tell: data first.
        self.acks.sort_unstable_by_key(|ack| (ack.kind, ack.seq));
        let made_at = ticks(newest) + report.held;
        Ok(Heard { acks: &self.acks, made_at, untold: &self.untold })
    }

    /// The reference without wraps, nearest to the latest one: 24 bits wrap every 12.4 days.
    fn unwrap_reference(&mut self, reference: u32) -> u64 {
        let shift = 64 - REFERENCE_BITS;
        let latest = self.reference.unwrap_or(1 << REFERENCE_BITS | u64::from(reference));
        let step = ((u64::from(reference).wrapping_sub(latest) << shift) as i64) >> shift;
        let unwrapped = latest.saturating_add_signed(step);
        self.reference = Some(latest.max(unwrapped));
        unwrapped
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ms(n: u64) -> Instant {
        Instant::from_nanos(n * 1_000_000)
    }

    /// Packets `seq` of data under the numbers that follow `first`, all sent.
    fn sender(first: u16, n: u64) -> Sender {
        let mut s = Sender::new(first, None);
        (0..n).for_each(|seq| s.on_sent(Kind::Data, seq));
        s
    }

    fn seqs(heard: &Heard<'_>) -> (Vec<u64>, Vec<u64>) {
        (heard.acks.iter().map(|a| a.seq).collect(), heard.untold.iter().map(|p| p.1).collect())
    }

    fn report(base: u16, count: u8, deltas: &[Option<i16>]) -> Report {
        Report { base, reference: 10, count, deltas: deltas.to_vec(), held: Duration::ZERO }
    }

    const HERE: Option<i16> = Some(4);

    #[test]
    fn arrivals_are_told_in_ticks_from_a_reference_of_64_ms() {
        let mut r = Receiver::new(Some(Duration::from_millis(20)));
        r.on_packet(ms(100), 65_535);
        assert_eq!(
            (r.next(), r.poll(ms(100)).map(|(_, report)| report.clone())),
            (
                ms(100),
                Some(Report {
                    // 100 ms = 1 · 64 ms + 144 ticks.
                    base: 65_535,
                    reference: 1,
                    count: 0,
                    deltas: vec![Some(144)],
                    held: Duration::ZERO,
                })
            )
        );
        r.on_packet(ms(105), 1);
        r.on_packet(ms(104), 0);
        assert_eq!((r.next(), r.poll(ms(119)).is_none()), (ms(120), true));
        let (_, second) = r.poll(ms(120)).expect("due");
        let held = Duration::from_millis(15);
        assert_eq!(second, &Report { base: 0, reference: 1, count: 1, deltas: vec![Some(160), Some(4)], held });
        // 3 does not come, 2 comes late: told of again from there on.
        r.on_packet(ms(121), 4);
        assert_eq!(r.poll(ms(140)).map(|(_, report)| report.deltas.clone()), Some(vec![None, None, Some(228)]));
        r.on_packet(ms(141), 2);
        assert_eq!(
            r.poll(ms(160)).map(|(_, report)| (report.base, report.deltas.clone())),
            Some((2, vec![Some(52), None, Some(-80),]))
        );
        assert_eq!((r.next(), r.poll(ms(900)).is_none()), (Instant::NEVER, true));
    }

    #[test]
    fn what_one_report_has_no_room_for_follows_at_once() {
        let mut r = Receiver::new(Some(Duration::from_millis(20)));
        r.on_packet(ms(0), 0);
        r.poll(ms(0));
        (1..1_000).for_each(|n| {
            r.on_packet(ms(1), n);
        });
        let told: Vec<_> =
            std::iter::from_fn(|| r.poll(ms(20)).map(|(from, report)| (from, report.deltas.len()))).collect();
        assert_eq!(told, [(65_537, 400), (65_937, 400), (66_337, 199)]);
        // More than 8.19 s apart: a reference of its own.
        r.on_packet(ms(30), 1_000);
        r.on_packet(ms(9_000), 1_001);
        let told: Vec<_> = std::iter::from_fn(|| r.poll(ms(9_000)).map(|(_, report)| report.reference)).collect();
        assert_eq!(told, [0, 140]);
    }

    #[test]
    fn one_damaged_number_neither_silences_nor_lengthens_reports_and_a_true_jump_is_followed() {
        for damaged in [1_050_u16, 9_000, 20_000, 32_000] {
            let mut r = Receiver::new(None);
            let mut told = Vec::new();
            for number in (0..40).chain([damaged]).chain(40..80) {
                r.on_packet(ms(u64::from(number)), number);
                while let Some((_, report)) = r.poll(ms(u64::from(number))) {
                    assert_eq!(report.deltas.len(), 1, "{damaged}");
                    told.push(report.base);
                }
            }
            assert_eq!(told, (0..80).collect::<Vec<_>>(), "{damaged}");
            // So many were lost in a row: the first packet after that is too, the second is believed.
            assert_eq!([20_000, 20_001, 20_002].map(|n| r.on_packet(ms(500), n).is_some()), [false, true, true]);
        }
    }

    #[test]
    fn who_leaves_out_what_was_lost_hides_a_burst_and_a_fourth_and_no_more() {
        let mut s = sender(0, 8_000);
        let (mut told, mut untold) = (0, 0);
        // Two packets are told of, two left open, and the count says each time that a report was lost.
        for i in 0..2_000_u16 {
            let heard = s.on_report(&report(4 * i, (2 * i) as u8, &[HERE, HERE])).expect("nothing in it is false");
            (told, untold) = (told + heard.acks.len() as u64, untold + heard.untold.len() as u64);
            assert!(untold <= MOST_UNTOLD + told / TOLD_FOR_ONE, "{untold} after {told}");
        }
        assert_eq!((told, untold), (4_000, 1_732), "400 and one for three of the 3,998 told before");
        let beyond = s.on_report(&report(8_000, 17, &[None; 5])).map(|_| ());
        assert_eq!(beyond, Err(BadFeedback::Unsent), "a report from behind all that was sent would settle the flight");
    }

    #[test]
    fn memory_is_bounded_however_far_numbers_jump() {
        let mut r = Receiver::new(Some(Duration::from_secs(3_600)));
        let mut number = 0_u16;
        for n in 0..200_000_u64 {
            number = number.wrapping_add(if n % 50 == 0 { 30_000 } else { 1 });
            r.on_packet(ms(n), number);
            assert!(r.arrivals.len() <= MEMORY);
        }
        let mut s = sender(0, 100_000);
        assert_eq!(s.sent.len(), MEMORY);
        assert!(s.on_report(&report(99_999_u64 as u16, 0, &[HERE])).is_ok());
    }

    #[test]
    fn each_packet_is_acknowledged_once_with_its_arrival_and_its_wait_for_the_newest() {
        let mut s = sender(65_534, 5);
        let first = report(65_534, 0, &[HERE, None, Some(8), Some(-2)]);
        let heard = s.on_report(&first).expect("true");
        assert_eq!(seqs(&heard), (vec![0, 2, 3], vec![]));
        let ticks = |n: u32| TICK * n;
        // 4, 12 and 10 ticks after the reference; the reference itself counts a wrap up.
        let base = heard.acks[0].arrived_at.expect("told") - ticks(4);
        let told: Vec<_> = heard.acks.iter().map(|a| (a.arrived_at.expect("told") - base, a.ack_delay)).collect();
        assert_eq!(told, [(ticks(4), ticks(8)), (ticks(12), ticks(0)), (ticks(10), ticks(2))]);
        assert_eq!(heard.made_at - base, ticks(12), "as late as the newest arrival, where nothing says more");
        let held = Report { held: ms(3).since(Instant::ZERO), ..first.clone() };
        let heard = s.on_report(&held).expect("again");
        assert_eq!((seqs(&heard), heard.made_at - base), ((vec![], vec![]), ticks(12) + held.held));
        assert_eq!(seqs(&s.on_report(&report(65_535, 1, &[HERE])).expect("late")), (vec![1], vec![]));
    }

    #[test]
    fn a_gap_is_of_unknown_fate_only_if_a_report_is_missing_and_an_overtaken_report_tells_after_all() {
        let mut s = sender(0, 20);
        s.on_report(&report(0, 254, &[HERE, HERE])).expect("true");
        // 255 is missing: 2 to 4 are untold.
        assert_eq!(seqs(&s.on_report(&report(5, 0, &[HERE])).expect("true")), (vec![5], vec![2, 3, 4]));
        // The next in order begins beyond the last's end: 6 and 7 have not arrived.
        assert_eq!(seqs(&s.on_report(&report(8, 1, &[HERE])).expect("true")), (vec![8], vec![]));
        assert_eq!(seqs(&s.on_report(&report(2, 255, &[HERE, None, HERE])).expect("true")), (vec![2, 4], vec![]));
    }

    #[test]
    fn a_packet_not_sent_and_a_number_left_out_are_refused_with_all_that_the_report_says() {
        let mut s = sender(0, 4);
        assert_eq!(s.on_report(&report(3, 0, &[HERE, HERE])).err(), Some(BadFeedback::Unsent));
        assert_eq!(seqs(&s.on_report(&report(0, 0, &[HERE, HERE, HERE, HERE, None])).expect("true")).0, [0, 1, 2, 3]);
        let mut s = Sender::new(0, Some((2, 7)));
        (0..200).for_each(|seq| s.on_sent(Kind::Data, seq));
        let left_out: Vec<u64> = (s.first..s.next_number()).filter(|n| s.packet(*n).is_none()).collect();
        assert!((60..140).contains(&left_out.len()), "one in two: {}", left_out.len());
        for n in left_out {
            assert_eq!(s.on_report(&report(n as u16, 0, &[HERE])).err(), Some(BadFeedback::Lie));
        }
    }

    #[test]
    fn the_reference_counts_on_across_its_wrap() {
        let mut s = sender(0, 4);
        let mut at = |base, count, reference| {
            let report = Report { base, reference, count, deltas: vec![HERE], held: Duration::ZERO };
            s.on_report(&report).expect("true").acks[0].arrived_at.expect("told")
        };
        let before = at(0, 0, (1 << 24) - 1);
        assert_eq!(at(1, 1, 0) - before, TICK * 256);
        assert_eq!(at(2, 2, 5) - before, TICK * 256 * 6);
        // Overtaken across the wrap.
        assert_eq!(at(3, 3, (1 << 24) - 1), before);
    }

    proptest! {
        /// Whatever is lost on either way, in whatever order packets come: what is acknowledged has arrived, once; and what
        /// was told in a report that came is never untold.
        #[test]
        fn acknowledgements_are_true_whatever_is_lost(
            first: u16,
            fates in prop::collection::vec((any::<bool>(), 0_u64..60), 1..400),
            lost in prop::collection::vec(any::<bool>(), 60),
        ) {
            let mut s = Sender::new(first, None);
            let mut r = Receiver::new(Some(Duration::from_millis(20)));
            let mut arrivals: Vec<(Instant, u64, u16)> = Vec::new();
            for (seq, (arrives, delay)) in (0_u64..).zip(&fates) {
                let number = s.next_number() as u16;
                s.on_sent(Kind::Data, seq);
                if *arrives {
                    arrivals.push((ms(1_000 + 3 * seq + delay), seq, number));
                }
            }
            arrivals.sort_unstable();
            let (mut acked, mut untold) = (std::collections::BTreeSet::new(), std::collections::BTreeSet::new());
            let mut reports = 0;
            for (at, _, number) in &arrivals {
                r.on_packet(*at, *number);
                while let Some((_, report)) = r.poll(*at) {
                    reports += 1;
                    if lost[reports % lost.len()] {
                        continue;
                    }
                    let heard = s.on_report(report).expect("true");
                    for (_, seq) in heard.untold {
                        prop_assert!(!acked.contains(seq));
                        untold.insert(*seq);
                    }
                    for ack in heard.acks {
                        prop_assert!(acked.insert(ack.seq), "twice");
                        prop_assert!(fates[ack.seq as usize].0, "never arrived");
                    }
                }
            }
            if !lost.contains(&true) {
                prop_assert!(untold.is_empty());
            }
        }
    }
}
