//! A receiver's knowledge of one stream: is it real [RFC 3550 A.1], what is lost [A.3], how uneven are arrivals
//! [A.8], and what arrived when, for feedback.

mod jitter;
mod validator;

pub use jitter::Jitter;
pub use validator::{MAX_DROPOUT, MAX_MISORDER, MIN_SEQUENTIAL, Validator, Verdict};

use crate::feedback::ccfb::wire::Metric;
use crate::rtcp::ReportBlock;
use crate::{NtpTime, ntp};
use fairpace_units::{Dscp, Duration, Ecn, Instant};
use std::collections::VecDeque;

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

/// Packets may follow from repair packets before any later one has come: the reach of a repair packet.
pub(crate) const MOST_AHEAD: u64 = crate::fec::MASK_BITS as u64;

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

    /// Packet `sequence` has come by a retransmission or followed from repair packets: `true` if no copy of any kind came before. Reports
    /// go on saying that the packet was lost.
    pub(crate) fn repair(&mut self, sequence: u64) -> bool {
        let ahead = sequence.saturating_sub(self.validator.highest());
        if ahead > 0 && ahead <= MOST_AHEAD && !self.history.is_empty() {
            let len = usize::try_from(sequence + 1 - self.history_first).unwrap_or(usize::MAX);
            if len <= HISTORY && len > self.history.len() {
                self.history.resize(len, MISSING);
            }
        }
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
