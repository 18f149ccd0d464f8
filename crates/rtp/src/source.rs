//! A receiver's knowledge of one stream: is it real [RFC 3550 A.1], what is lost [A.3], how uneven are arrivals
//! [A.8], and what arrived when, for feedback.

use crate::ccfb::Metric;
use crate::rtcp::ReportBlock;
use crate::{NtpTime, ntp};
use fairpace_units::{Dscp, Duration, Ecn, Instant};
use std::collections::VecDeque;

/// Packets in sequence before a source is believed.
pub const MIN_SEQUENTIAL: u8 = 2;
/// A gap up to this is loss.
pub const MAX_DROPOUT: u16 = 3_000;
/// A step back up to this is reordering.
pub const MAX_MISORDER: u16 = 100;

/// Sequence number validation, with numbers that never wrap.
///
/// ```text
///            second in sequence            jump > MAX_DROPOUT, then one in sequence
///  Probation -----------------> Valid ----------------------------------------------> Valid (restarted)
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Validator {
    /// Packets in sequence still to come.
    probation: u8,
    /// Where counting began, extended.
    base: u64,
    /// Highest so far, extended. Cycles in the bits above 16, as in the RFC.
    highest: u64,
    /// After a large jump: the number that would confirm it.
    jump_to: Option<u16>,
    /// How many times the source has started anew.
    pub restarts: u32,
}

/// The fate of a packet's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Part of the stream; its extended number.
    Accepted(u64),
    /// Part of the stream, which has begun anew with it.
    Restarted(u64),
    /// Not (yet) believed.
    Rejected,
}

impl Validator {
    /// Before its first packet. `announced`: a challenge named this SSRC, so that no probation is needed.
    pub fn new(first: u16, announced: bool) -> Self {
        let start = (1 << 16) + u64::from(first);
        Validator {
            probation: if announced { 0 } else { MIN_SEQUENTIAL },
            // One cycle up, so that reordering before the first packet cannot go below zero.
            base: start,
            highest: start - 1,
            jump_to: None,
            restarts: 0,
        }
    }

    /// Whether the source is believed.
    pub const fn is_valid(&self) -> bool {
        self.probation == 0
    }

    /// Extended number of the first packet counted.
    pub const fn base(&self) -> u64 {
        self.base
    }

    /// Extended highest number.
    pub const fn highest(&self) -> u64 {
        self.highest
    }

    /// Takes in a packet's number: `update_seq` of [RFC 3550 A.1].
    pub fn update(&mut self, sequence: u16) -> Verdict {
        let ahead = sequence.wrapping_sub(self.highest as u16);
        if self.probation > 0 {
            if ahead == 1 {
                self.highest += 1;
                self.probation -= 1;
                if self.probation == 0 {
                    self.base = self.highest;
                    return Verdict::Accepted(self.highest);
                }
            } else {
                self.probation = MIN_SEQUENTIAL - 1;
                self.highest = (1 << 16) + u64::from(sequence);
            }
            return Verdict::Rejected;
        }
        if ahead < MAX_DROPOUT {
            self.highest += u64::from(ahead);
            self.jump_to = None;
            Verdict::Accepted(self.highest)
        } else if ahead <= 0_u16.wrapping_sub(MAX_MISORDER) {
            // A large jump. Two in sequence: the other side has restarted without telling us.
            if self.jump_to == Some(sequence) {
                self.highest = ((self.highest >> 16) + 1) << 16 | u64::from(sequence);
                self.base = self.highest;
                self.jump_to = None;
                self.restarts += 1;
                return Verdict::Restarted(self.highest);
            }
            self.jump_to = Some(sequence.wrapping_add(1));
            Verdict::Rejected
        } else {
            // Duplicate or reordered: behind by 2^16 - ahead.
            let behind = u64::from(0_u16.wrapping_sub(ahead));
            Verdict::Accepted(self.highest - behind)
        }
    }
}

/// Interarrival jitter [RFC 3550 A.8], in media time units, with the RFC's integer arithmetic (scaled
/// by 16, rounded).
#[derive(Clone, Copy, Debug, Default)]
pub struct Jitter {
    transit: Option<u32>,
    scaled: u64,
}

impl Jitter {
    /// A packet with this timestamp arrived when the media clock showed `arrival`.
    pub fn update(&mut self, timestamp: u32, arrival: u32) {
        let transit = arrival.wrapping_sub(timestamp);
        if let Some(last) = self.transit.replace(transit) {
            let d = u64::from((transit.wrapping_sub(last) as i32).unsigned_abs());
            self.scaled = self.scaled + d - ((self.scaled + 8) >> 4);
        }
    }

    /// The estimate, in media time units.
    pub fn get(&self) -> u32 {
        (self.scaled >> 4).try_into().unwrap_or(u32::MAX)
    }
}

/// The memory of one arrival.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    at: Instant,
    ecn: Ecn,
    nonce: u32,
    received: bool,
    /// Handed out as a retransmission: a late original is a duplicate then, though it is reported.
    repaired: bool,
}

const MISSING: Arrival = Arrival { at: Instant::ZERO, ecn: Ecn::NotEct, nonce: 0, received: false, repaired: false };

/// Arrivals remembered for feedback: more than [`MAX_DROPOUT`], so that a legal gap fits in.
const HISTORY: usize = 4_096;

/// One validated stream.
#[derive(Clone, Debug)]
pub struct Source {
    /// The SSRC of the source.
    pub ssrc: u32,
    pub(crate) validator: Validator,
    /// Packets received, duplicates included, as A.3 wants it.
    pub received: u64,
    /// Packets received twice or more.
    pub duplicates: u64,
    /// Bytes of UDP payload received.
    pub bytes: u64,
    /// Packets that arrived with CE.
    pub ce_marks: u64,
    /// Arrived behind a later one.
    pub reordered: u64,
    pub(crate) jitter: Jitter,
    expected_prior: u64,
    received_prior: u64,
    last_sr: Option<(u32, Instant)>,
    /// Last arrival.
    pub last_arrival: Instant,
    /// The code point of the newest packet.
    pub dscp: Dscp,
    history: VecDeque<Arrival>,
    /// Extended number of `history[0]`.
    history_first: u64,
    /// Highest number that arrived before the packet at hand.
    pub(crate) highest_seen: u64,
    /// The lowest number that arrived since the last report; `None` if nothing did.
    lowest_new: Option<u64>,
    /// The same for the reports before, newest last: what is told again.
    told: VecDeque<u64>,
}

/// The novelty of an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Novelty {
    /// The first copy.
    First,
    /// The first copy, after a retransmission of it.
    Late,
    /// Another copy.
    Duplicate,
    /// Too far back to tell.
    TooOld,
}

impl Source {
    pub(crate) fn new(ssrc: u32, validator: Validator, now: Instant) -> Self {
        Source {
            ssrc,
            history_first: validator.base(),
            validator,
            received: 0,
            duplicates: 0,
            bytes: 0,
            ce_marks: 0,
            reordered: 0,
            jitter: Jitter::default(),
            expected_prior: 0,
            received_prior: 0,
            last_sr: None,
            last_arrival: now,
            dscp: Dscp::DEFAULT,
            history: VecDeque::new(),
            highest_seen: validator.highest(),
            lowest_new: None,
            told: VecDeque::new(),
        }
    }

    /// Forgets the numbers of before a restart.
    pub(crate) fn restart(&mut self) {
        self.history.clear();
        self.history_first = self.validator.base();
        self.lowest_new = None;
        self.told.clear();
        self.expected_prior = 0;
        self.received_prior = 0;
        self.received = 0;
        self.jitter = Jitter::default();
    }

    /// Remembers an accepted packet.
    pub(crate) fn on_packet(
        &mut self,
        now: Instant,
        sequence: u64,
        nonce: u32,
        dscp: Dscp,
        ecn: Ecn,
        size: usize,
    ) -> Novelty {
        self.received += 1;
        self.bytes += size as u64;
        self.last_arrival = now;
        self.ce_marks += u64::from(ecn == Ecn::Ce);
        if sequence == self.validator.highest() {
            self.dscp = dscp;
        } else {
            self.reordered += 1;
        }
        if self.history.is_empty() && sequence < self.history_first {
            self.history_first = sequence;
        }
        // A packet from before the first one: make room in front, as far as reordering may go.
        while sequence < self.history_first
            && self.history.len() < HISTORY
            && self.history_first > self.validator.base() - u64::from(MAX_MISORDER)
        {
            self.history.push_front(MISSING);
            self.history_first -= 1;
        }
        let Some(mut i) = sequence.checked_sub(self.history_first) else { return Novelty::TooOld };
        while i >= HISTORY as u64 {
            if self.history.pop_front().is_none() {
                self.history_first = sequence;
                i = 0;
                break;
            }
            self.history_first += 1;
            i -= 1;
        }
        let i = i as usize;
        if i >= self.history.len() {
            self.history.resize(i + 1, MISSING);
        }
        let Some(slot) = self.history.get_mut(i) else { return Novelty::TooOld };
        if slot.received {
            // The first arrival counts, and CE if any copy had it [RFC 8888 §3.1, MUST].
            if ecn == Ecn::Ce {
                slot.ecn = Ecn::Ce;
            }
            self.duplicates += 1;
            return Novelty::Duplicate;
        }
        let repaired = slot.repaired;
        *slot = Arrival { at: now, ecn, nonce, received: true, repaired };
        self.lowest_new = Some(self.lowest_new.map_or(sequence, |l| l.min(sequence)));
        if repaired { Novelty::Late } else { Novelty::First }
    }

    /// A retransmission of that packet has come: `true` if it is the first copy of any kind.
    pub(crate) fn repair(&mut self, sequence: u64) -> bool {
        let slot =
            sequence.checked_sub(self.history_first).and_then(|i| self.history.get_mut(usize::try_from(i).ok()?));
        match slot {
            Some(a) if !a.received && !a.repaired => {
                a.repaired = true;
                true
            }
            _ => false,
        }
    }

    /// Whether something arrived that no report has told yet.
    pub(crate) const fn has_news(&self) -> bool {
        self.lowest_new.is_some()
    }

    /// The range to report now: what is new, and what the last `repeats` − 1 reports told.
    pub(crate) fn take_range(&mut self, repeats: usize) -> Option<(u64, u64)> {
        let lowest = self.lowest_new.take()?;
        let start = self.told.iter().copied().fold(lowest, u64::min).max(self.history_first);
        self.told.push_back(lowest);
        while self.told.len() >= repeats.max(1) {
            self.told.pop_front();
        }
        Some((start, self.validator.highest()))
    }

    /// The report on packet `sequence` at this moment, with its nonce if it arrived.
    pub(crate) fn metric(&self, sequence: u64, now: Instant) -> (Metric, u32) {
        let arrival = sequence
            .checked_sub(self.history_first)
            .and_then(|i| self.history.get(usize::try_from(i).ok()?))
            .filter(|a| a.received);
        arrival.map_or((Metric::NotReceived, 0), |a| (Metric::received(a.ecn, now.since(a.at)), a.nonce))
    }

    /// An SR of this source arrived.
    pub(crate) fn on_sender_report(&mut self, now: Instant, ntp: NtpTime) {
        self.last_sr = Some((ntp.middle(), now));
    }

    /// Packets expected so far [RFC 3550 A.3].
    pub fn expected(&self) -> u64 {
        (self.validator.highest() + 1).saturating_sub(self.validator.base())
    }

    /// Packets lost so far; negative if duplicates outweigh losses.
    pub fn cumulative_lost(&self) -> i64 {
        self.expected() as i64 - self.received as i64
    }

    /// The block of an RR about this source; opens the next interval.
    pub(crate) fn report_block(&mut self, now: Instant) -> ReportBlock {
        let expected = self.expected();
        let expected_interval = expected - self.expected_prior.min(expected);
        let received_interval = self.received - self.received_prior.min(self.received);
        (self.expected_prior, self.received_prior) = (expected, self.received);
        let lost_interval = expected_interval.saturating_sub(received_interval);
        let fraction = (lost_interval * 256).checked_div(expected_interval).map_or(0, |f| f.min(255));
        let (last_sr, delay) = self.last_sr.map_or((0, 0), |(sr, at)| (sr, ntp::to_65536ths(now.since(at))));
        ReportBlock {
            ssrc: self.ssrc,
            fraction_lost: fraction as u8,
            cumulative_lost: self.cumulative_lost().clamp(-0x0080_0000, 0x007f_ffff) as i32,
            // Our numbers start one cycle up; the wire's start at zero.
            highest: self.validator.highest().wrapping_sub(1 << 16) as u32,
            jitter: self.jitter.get(),
            last_sr,
            delay_since_last_sr: delay,
        }
    }
}

/// A span on a 90 kHz clock, modulo 2^32.
pub(crate) fn media_clock(t: Instant) -> u32 {
    (u128::from(t.as_nanos()) * 90_000 / 1_000_000_000) as u32
}

/// Whether a peer that was heard last then has been silent for `limit`.
pub(crate) fn silent(now: Instant, last: Instant, limit: Duration) -> bool {
    now.since(last) >= limit
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_source_is_believed_at_its_second_packet_in_sequence() {
        let mut v = Validator::new(10, false);
        assert_eq!(v.update(10), Verdict::Rejected);
        assert_eq!(v.update(12), Verdict::Rejected, "not in sequence: begins again");
        assert_eq!(v.update(13), Verdict::Accepted((1 << 16) + 13));
        assert!(v.is_valid());
        let mut announced = Validator::new(10, true);
        assert_eq!(announced.update(10), Verdict::Accepted((1 << 16) + 10));
    }

    fn valid(first: u16) -> Validator {
        let mut v = Validator::new(first, true);
        v.update(first);
        v
    }

    #[test]
    fn a_gap_below_3000_is_loss_and_one_above_is_a_jump() {
        let mut v = valid(0);
        assert_eq!(v.update(2_999), Verdict::Accepted((1 << 16) + 2_999));
        let mut v = valid(0);
        assert_eq!(v.update(3_000), Verdict::Rejected);
        assert_eq!(v.highest(), 1 << 16);
    }

    #[test]
    fn two_in_sequence_after_a_jump_are_a_restart() {
        let mut v = valid(0);
        assert_eq!(v.update(40_000), Verdict::Rejected);
        assert_eq!(v.update(40_002), Verdict::Rejected);
        assert_eq!(v.update(40_003), Verdict::Restarted((2 << 16) + 40_003));
        assert_eq!((v.base(), v.restarts), ((2 << 16) + 40_003, 1));
    }

    #[test]
    fn a_hundred_back_is_reordering_and_more_is_a_jump() {
        // A.1: udelta <= RTP_SEQ_MOD - MAX_MISORDER is a jump, so 99 back is reordering and 100 is not.
        let mut v = valid(1_000);
        assert_eq!(v.update(901), Verdict::Accepted((1 << 16) + 901));
        assert_eq!(v.update(900), Verdict::Rejected);
    }

    #[test]
    fn the_wrap_counts_a_cycle_and_reordering_across_it_does_not() {
        let mut v = valid(65_534);
        assert_eq!(v.update(1), Verdict::Accepted((2 << 16) + 1));
        assert_eq!(v.update(65_535), Verdict::Accepted((1 << 16) + 65_535));
        assert_eq!(v.update(2), Verdict::Accepted((2 << 16) + 2));
    }

    #[test]
    fn jitter_moves_a_sixteenth_of_the_way_with_rounding() {
        // Transit 0, then 160 later: J = 0 + 160 - ((0 + 8) >> 4) = 160 scaled = 10 units; then equal
        // transit: 160 - ((160 + 8) >> 4 = 10) = 150 scaled = 9 units.
        let mut j = Jitter::default();
        j.update(0, 0);
        j.update(3_000, 3_160);
        assert_eq!(j.get(), 10);
        j.update(6_000, 6_160);
        assert_eq!(j.get(), 9);
        // A timestamp that wraps changes nothing.
        let mut w = Jitter::default();
        w.update(u32::MAX - 1_000, 0);
        w.update(1_999, 3_000);
        assert_eq!(w.get(), 0);
    }

    fn source(first: u16) -> Source {
        Source::new(1, Validator::new(first, true), Instant::ZERO)
    }

    fn receive(s: &mut Source, sequence: u16) -> Novelty {
        let Verdict::Accepted(n) = s.validator.update(sequence) else { panic!("rejected {sequence}") };
        s.on_packet(Instant::ZERO, n, u32::from(sequence), Dscp::DEFAULT, Ecn::NotEct, 100)
    }

    #[test]
    fn loss_is_counted_as_in_a_3() {
        let mut s = source(65_530);
        // 65530..=65535 and 0..=3 are ten; two are missing.
        for n in [65_530, 65_531, 65_533, 65_534, 65_535, 0, 1, 3] {
            receive(&mut s, n);
        }
        let block = s.report_block(Instant::ZERO);
        assert_eq!((s.expected(), block.cumulative_lost), (10, 2));
        assert_eq!(block.fraction_lost, 51, "2/10 of 256 = 51.2");
        assert_eq!(block.highest, (1 << 16) + 3, "one cycle");
        // The hole fills and a duplicate comes: lost_interval is negative, the fraction zero.
        receive(&mut s, 2);
        receive(&mut s, 2);
        receive(&mut s, 2);
        let block = s.report_block(Instant::ZERO);
        assert_eq!((block.fraction_lost, block.cumulative_lost), (0, -1));
    }

    #[test]
    fn each_packet_is_told_in_as_many_reports_as_asked() {
        let mut s = source(0);
        let mut told = [0; 30];
        for n in 0..30_u16 {
            receive(&mut s, n);
            let (from, to) = s.take_range(3).unwrap();
            (from..=to).for_each(|m| told[(m - (1 << 16)) as usize] += 1);
        }
        assert!(told[..28].iter().all(|&t| t == 3), "{told:?}");
        assert_eq!(s.take_range(3), None, "nothing new, no report");
    }

    #[test]
    fn a_late_packet_is_told_as_often_as_any_other() {
        let mut s = source(0);
        for n in 0..50 {
            if n != 20 {
                receive(&mut s, n);
                s.take_range(3);
            }
        }
        receive(&mut s, 20);
        for (n, covered) in [(50, true), (51, true), (52, true), (53, false)] {
            let (from, _) = s.take_range(3).unwrap();
            assert_eq!(from <= (1 << 16) + 20, covered, "before packet {n}");
            receive(&mut s, n);
        }
    }

    #[test]
    fn a_duplicate_keeps_the_first_arrival_and_any_ce() {
        let mut s = source(5);
        let n = (1 << 16) + 5;
        s.validator.update(5);
        s.on_packet(Instant::from_nanos(0), n, 9, Dscp::DEFAULT, Ecn::Ect0, 100);
        let later = Instant::from_secs_f64(0.5);
        assert_eq!(s.on_packet(later, n, 9, Dscp::DEFAULT, Ecn::Ce, 100), Novelty::Duplicate);
        assert_eq!(s.metric(n, later), (Metric::Received { ecn: Ecn::Ce, ato: 512 }, 9));
    }

    #[test]
    fn history_is_bounded() {
        let mut s = source(0);
        for n in 0..20_000_u32 {
            receive(&mut s, n as u16);
        }
        assert_eq!(s.history.len(), HISTORY);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn any_arrivals_keep_the_accounts_straight(start: u16, steps in prop::collection::vec(-120_i32..3_200, 1..80)) {
            let mut s = source(start);
            let mut n = i32::from(start);
            let mut accepted = 0;
            for step in steps {
                n = (n + step).rem_euclid(1 << 16);
                match s.validator.update(n as u16) {
                    Verdict::Accepted(full) => {
                        accepted += 1;
                        s.on_packet(Instant::ZERO, full, 0, Dscp::DEFAULT, Ecn::NotEct, 1);
                        prop_assert_eq!(full as u16, n as u16);
                    }
                    Verdict::Restarted(full) => {
                        s.restart();
                        accepted = 1;
                        s.on_packet(Instant::ZERO, full, 0, Dscp::DEFAULT, Ecn::NotEct, 1);
                    }
                    Verdict::Rejected => {}
                }
                prop_assert!(s.history.len() <= HISTORY);
                prop_assert_eq!(s.received, accepted);
                if let Some((from, to)) = s.take_range(3) {
                    prop_assert!(from <= to && to - from < HISTORY as u64);
                }
                let _ = s.report_block(Instant::ZERO);
            }
        }
    }
}
