//! The SACK scoreboard: which segments are lost, how many are in the pipe, which goes next.
//! Source: [RFC 6675 §3 to §5]. Segments are whole, so DupThresh segments stand for
//! (DupThresh - 1) × SMSS bytes.
//!
//! Not implemented: rule 4 of NextSeg() (rescue retransmission): a lost tail of a recovery waits for
//! the timeout, as in ns-2's Sack1.

use super::ranges::{Range, RangeSet};
use super::receiver::TcpAck;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The arrivals of a window, and the numbers that follow from these. Each number that an ACK needs is kept up to date by what
/// changes it: an ACK costs the logarithm of the number of holes and what it says anew, however many holes there are.
#[derive(Clone, Debug, Default)]
pub(super) struct Scoreboard {
    sacked: RangeSet,
    /// One past the highest segment retransmitted in this recovery; all unsacked below have been.
    high_rxt: u32,
    /// How many segments below `high_rxt` have a SACK.
    sacked_below_rxt: u32,
    /// Segments below this with no SACK are lost: at least DupThresh segments above have arrived. The number is the
    /// DupThresh-th highest with a SACK; zero if there are fewer.
    lost_below: u32,
    /// Segments with a SACK from `lost_below` on: DupThresh, or all if there are fewer.
    sacked_on_top: u32,
    /// Segments below this with no SACK are lost because the timer ran out, for who keeps the board then.
    given_up_below: u32,
    /// The segments sent in this recovery that may be on their way, in the order of sending: number, and whether it was
    /// a retransmission. Kept only for who looks for lost retransmissions.
    sent: VecDeque<(u32, bool)>,
    /// The number, in the order of sending, of the first of `sent`.
    sent_from: u64,
    /// When each segment of `sent` that has not arrived was sent last: its number in that order.
    sent_last: BTreeMap<u32, u64>,
    /// One past the latest of those in `sent` that have arrived.
    arrived_until: u64,
    /// Segments whose retransmission is lost, to be sent once more.
    lost_again: BTreeSet<u32>,
}

impl Scoreboard {
    /// [RFC 6675 §4] Update(). Returns whether the ACK says anything new.
    pub(super) fn update(&mut self, ack: &TcpAck, snd_max: u32, dup_threshold: u32) -> bool {
        self.note_arrived(Range { start: 0, end: ack.next });
        if self.sacked.is_empty() && ack.sack[0].is_empty() {
            return false; // nearly every ACK
        }
        let high_rxt = self.high_rxt;
        let mut low = self.sacked_below_rxt;
        self.sacked.remove_below(ack.next, |gone| low -= gone.end.min(high_rxt).saturating_sub(gone.start));
        let mut news = 0;
        for block in ack.sack.iter().filter(|b| !b.is_empty()) {
            // A block outside what was sent is a lie or a bug: keep what makes sense of it.
            let sane = Range { start: block.start.max(ack.next), end: block.end.min(snd_max) };
            // In two parts, so that those below `high_rxt` are counted.
            let below = self.sacked.insert(Range { end: sane.end.min(high_rxt), ..sane });
            low += below;
            news += below + self.sacked.insert(Range { start: sane.start.max(high_rxt), ..sane });
            self.note_arrived(sane);
        }
        self.sacked_below_rxt = low;
        self.judge(dup_threshold);
        news > 0
    }

    /// Finds the lost: those with that many SACKs above.
    pub(super) fn judge(&mut self, dup_threshold: u32) {
        self.lost_below = self.nth_from_top(dup_threshold);
        self.sacked_on_top = self.sacked.len().min(dup_threshold);
        if self.given_up_below > self.lost_below {
            self.lost_below = self.given_up_below;
            self.sacked_on_top = self.sacked.count(Range { start: self.lost_below, end: u32::MAX });
        }
    }

    /// The timer has run out and the SACKs are kept: all others below `snd_max` are lost, and none has been sent again.
    pub(super) fn give_up(&mut self, snd_max: u32) {
        self.begin_recovery();
        self.given_up_below = snd_max;
        (self.lost_below, self.sacked_on_top) = (snd_max, 0);
    }

    /// Segments with a SACK.
    pub(super) fn sacked(&self) -> u32 {
        self.sacked.len()
    }

    /// One past the highest segment with a SACK; zero if there is none.
    pub(super) fn top(&self) -> u32 {
        self.sacked.end().unwrap_or(0)
    }

    /// The segment has a SACK.
    pub(super) fn is_sacked(&self, seq: u32) -> bool {
        self.sacked.containing(seq).is_some()
    }

    /// One past the last segment that three above it tell to be lost; grows with each loss that is found.
    pub(super) fn lost_below(&self) -> u32 {
        self.lost_below
    }

    /// The DupThresh-th highest segment with a SACK; zero if there are fewer.
    fn nth_from_top(&self, n: u32) -> u32 {
        let mut missing = n;
        for r in self.sacked.iter().rev() {
            if r.len() >= missing {
                return r.end - missing;
            }
            missing -= r.len();
        }
        0
    }

    /// [RFC 6675 §4] IsLost().
    pub(super) fn is_lost(&self, seq: u32) -> bool {
        seq < self.lost_below && self.sacked.containing(seq).is_none()
    }

    /// [RFC 6675 §4] SetPipe(): not sacked and not lost counts once, retransmitted counts once.
    pub(super) fn pipe(&self, snd_una: u32, snd_max: u32) -> u32 {
        let not_lost = snd_max - self.lost_below.max(snd_una) - self.sacked_on_top;
        let again = self.high_rxt.saturating_sub(snd_una) - self.sacked_below_rxt;
        let pipe = not_lost + again;
        // Retransmissions that are lost have left the pipe.
        pipe - (self.lost_again.len() as u32).min(pipe)
    }

    /// [RFC 6675 §4] NextSeg() rule 1: the lowest lost segment not yet retransmitted.
    pub(super) fn next_lost(&self, snd_una: u32) -> Option<u32> {
        if let Some(again) = self.lost_again.first() {
            return Some(*again);
        }
        self.first_hole(snd_una.max(self.high_rxt)).filter(|seq| *seq < self.lost_below)
    }

    /// Rule 3: the lowest segment below the highest SACK not yet retransmitted, lost or not.
    pub(super) fn next_unsacked(&self, snd_una: u32) -> Option<u32> {
        let top = self.sacked.end()?;
        self.first_hole(snd_una.max(self.high_rxt)).filter(|seq| *seq < top)
    }

    pub(super) fn on_retransmit(&mut self, seq: u32) {
        if self.high_rxt <= seq {
            // Each range is passed once in a recovery.
            self.sacked_below_rxt += self.sacked.count(Range { start: self.high_rxt, end: seq + 1 });
            self.high_rxt = seq + 1;
        }
        self.lost_again.remove(&seq);
    }

    /// A segment leaves in a recovery that looks for lost retransmissions.
    pub(super) fn note_sent(&mut self, seq: u32, retransmission: bool) {
        self.sent_last.insert(seq, self.sent_from + self.sent.len() as u64);
        self.sent.push_back((seq, retransmission));
    }

    /// An ACK says that these segments have arrived.
    #[inline]
    fn note_arrived(&mut self, these: Range) {
        let nobody_looks = self.sent_last.is_empty() && self.lost_again.is_empty();
        if !nobody_looks && !these.is_empty() {
            self.take_arrived(these);
        }
    }

    fn take_arrived(&mut self, these: Range) {
        while let Some((&seq, &order)) = self.sent_last.range(these.start..these.end).next() {
            self.sent_last.remove(&seq);
            self.arrived_until = self.arrived_until.max(order + 1);
        }
        while let Some(&seq) = self.lost_again.range(these.start..these.end).next() {
            self.lost_again.remove(&seq);
        }
    }

    /// [RFC 8985 §6.2 step 5, without a reordering window] a retransmission is lost when something that was sent after it
    /// has arrived.
    pub(super) fn find_lost_retransmissions(&mut self) {
        while self.sent_from < self.arrived_until {
            let Some((seq, retransmission)) = self.sent.pop_front() else { break };
            let order = self.sent_from;
            self.sent_from += 1;
            let Some(&last) = self.sent_last.get(&seq) else { continue };
            // New data that is passed over is a loss like any other: DupThresh tells.
            if retransmission {
                self.lost_again.insert(seq);
            }
            if last == order {
                self.sent_last.remove(&seq);
            }
        }
    }

    /// A recovery begins: nothing has been retransmitted in it yet.
    pub(super) fn begin_recovery(&mut self) {
        (self.high_rxt, self.sacked_below_rxt) = (0, 0);
        self.forget_sent();
    }

    /// After a timeout the receiver may have thrown the blocks away [RFC 6675 §5.1, RFC 2018 §8].
    pub(super) fn clear(&mut self) {
        self.sacked.clear();
        (self.high_rxt, self.sacked_below_rxt, self.lost_below, self.sacked_on_top) = (0, 0, 0, 0);
        self.given_up_below = 0;
        self.forget_sent();
    }

    fn forget_sent(&mut self) {
        self.sent.clear();
        self.sent_last.clear();
        self.lost_again.clear();
        (self.sent_from, self.arrived_until) = (0, 0);
    }

    fn first_hole(&self, from: u32) -> Option<u32> {
        Some(self.sacked.containing(from).map_or(from, |r| r.end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(next: u32, blocks: &[(u32, u32)]) -> TcpAck {
        let mut ack = TcpAck { next, ..TcpAck::default() };
        for (slot, (start, end)) in ack.sack.iter_mut().zip(blocks) {
            *slot = Range { start: *start, end: *end };
        }
        ack
    }

    #[test]
    fn a_segment_is_lost_when_three_above_it_have_arrived() {
        let mut s = Scoreboard::default();
        assert!(s.update(&ack(10, &[(11, 12)]), 20, 3));
        assert!(!s.is_lost(10));
        s.update(&ack(10, &[(13, 15)]), 20, 3);
        // sacked 11, 13, 14: three above 10; only two above 12
        assert!(s.is_lost(10) && !s.is_lost(12) && !s.is_lost(11));
        assert!(!s.update(&ack(10, &[(13, 15), (11, 12)]), 20, 3), "nothing new");
    }

    #[test]
    fn the_pipe_counts_what_is_neither_sacked_nor_lost_and_what_was_sent_again() {
        let mut s = Scoreboard::default();
        s.begin_recovery();
        s.update(&ack(10, &[(11, 12), (13, 16)]), 20, 3);
        // 10 lost; 12 lost (13, 14, 15 above); 16..20 in flight: pipe 4
        assert_eq!(s.pipe(10, 20), 4);
        assert_eq!(s.next_lost(10), Some(10));
        s.on_retransmit(10);
        assert_eq!((s.pipe(10, 20), s.next_lost(10)), (5, Some(12)));
        s.on_retransmit(12);
        assert_eq!((s.pipe(10, 20), s.next_lost(10)), (6, None));
        // The ACK of both: only 16..20 left.
        s.update(&ack(16, &[]), 20, 3);
        assert_eq!(s.pipe(16, 20), 4);
    }

    #[test]
    fn a_block_beyond_what_was_sent_is_cut_to_it() {
        let mut s = Scoreboard::default();
        s.update(&ack(10, &[(5, 4_000_000_000)]), 12, 3);
        assert_eq!(s.pipe(10, 12), 0);
    }

    /// By definition: the RFC's prose segment by segment.
    #[test]
    fn ranges_give_what_the_definition_gives() {
        let mut random = fairpace_units::RandomStream::named(1, "scoreboard");
        for _ in 0..500 {
            let (una, max) = (100, 140);
            let mut s = Scoreboard::default();
            s.begin_recovery();
            let sacked: Vec<bool> = (0..max).map(|q| q > una && random.below(3) > 0).collect();
            for q in una..max {
                if sacked[q as usize] {
                    s.update(&ack(una, &[(q, q + 1)]), max, 3);
                }
            }
            let rxt = una + random.below(30) as u32;
            if rxt > una {
                s.on_retransmit(rxt - 1);
            }
            let above = |q: u32| (q + 1..max).filter(|h| sacked[*h as usize]).count();
            let mut pipe = 0;
            for q in (una..max).filter(|q| !sacked[*q as usize]) {
                assert_eq!(s.is_lost(q), above(q) >= 3, "segment {q}");
                pipe += u32::from(above(q) < 3) + u32::from(q < rxt);
            }
            assert_eq!(s.pipe(una, max), pipe);
            let next = (una..max).find(|q| !sacked[*q as usize] && *q >= rxt && above(*q) >= 3);
            assert_eq!(s.next_lost(una), next);
        }
    }

    /// By definition, over a whole connection: what is known of each segment, looked through at each question.
    #[derive(Default)]
    struct Walk {
        una: u32,
        max: u32,
        threshold: usize,
        given_up_below: u32,
        sacked: BTreeSet<u32>,
        high_rxt: u32,
        sent: Vec<(u32, bool)>,
        lost_again: BTreeSet<u32>,
    }

    impl Walk {
        fn arrived(&self, seq: u32) -> bool {
            seq < self.una || self.sacked.contains(&seq)
        }

        fn is_lost(&self, seq: u32) -> bool {
            let told = seq < self.given_up_below || self.sacked.range(seq..).count() >= self.threshold;
            told && !self.sacked.contains(&seq)
        }

        fn unsacked(&self) -> impl Iterator<Item = u32> + '_ {
            (self.una..self.max).filter(|seq| !self.sacked.contains(seq))
        }

        fn pipe(&self) -> u32 {
            let counted = self.unsacked().map(|q| u32::from(!self.is_lost(q)) + u32::from(q < self.high_rxt));
            let pipe: u32 = counted.sum();
            pipe - (self.lost_again.len() as u32).min(pipe)
        }

        fn next_lost(&self) -> Option<u32> {
            let first = self.unsacked().find(|q| *q >= self.high_rxt && self.is_lost(*q));
            self.lost_again.first().copied().or(first)
        }

        fn next_unsacked(&self) -> Option<u32> {
            let top = *self.sacked.last()?;
            self.unsacked().find(|q| *q >= self.high_rxt && *q < top)
        }

        fn find_lost_retransmissions(&mut self) {
            let Some(last) = self.sent.iter().rposition(|(seq, _)| self.arrived(*seq)) else { return };
            for (seq, retransmission) in self.sent.drain(..=last).collect::<Vec<_>>() {
                if retransmission && !self.arrived(seq) {
                    self.lost_again.insert(seq);
                }
            }
        }
    }

    proptest::proptest! {
        // Numbers that are kept up to date are those that the walk finds, after each of any steps: the window slides,
        // blocks come in any order, are lies, and are forgotten or kept at a timeout; with and without a look at lost retransmissions.
        #[test]
        fn the_pipe_that_is_kept_is_that_of_the_walk(
            look in proptest::prelude::any::<bool>(),
            threshold in 1_u32..4,
            steps in proptest::collection::vec((0_u32..12, 0_u32..40, 1_u32..12), 1..150),
        ) {
            let (mut s, mut w) = (Scoreboard::default(), Walk { threshold: threshold as usize, ..Walk::default() });
            for (what, at, n) in steps {
                match what {
                    // New data leaves.
                    0..=2 => for _ in 0..n {
                        if look {
                            s.note_sent(w.max, false);
                            w.sent.push((w.max, false));
                        }
                        w.max += 1;
                    },
                    // A recovery sends what the board names.
                    3..=5 => for _ in 0..n.min(3) {
                        let Some(seq) = w.next_lost().or_else(|| w.next_unsacked()) else { break };
                        s.on_retransmit(seq);
                        w.high_rxt = w.high_rxt.max(seq + 1);
                        w.lost_again.remove(&seq);
                        if look {
                            s.note_sent(seq, true);
                            w.sent.push((seq, true));
                        }
                    },
                    6 => {
                        s.begin_recovery();
                        (w.high_rxt, w.sent, w.lost_again) = (0, Vec::new(), BTreeSet::new());
                    }
                    7 if n == 1 => {
                        s.clear();
                        w = Walk { una: w.una, max: w.max, threshold: w.threshold, ..Walk::default() };
                    }
                    7 if n == 2 => {
                        s.give_up(w.max);
                        (w.given_up_below, w.high_rxt, w.sent, w.lost_again) = (w.max, 0, Vec::new(), BTreeSet::new());
                    }
                    // An ACK: it may move on, up to the first hole or beyond, and has blocks, the second of which may
                    // reach beyond all that was sent.
                    _ => {
                        let next = if n % 3 == 0 { (w.una + at / 4).min(w.max) } else { w.una };
                        let (a, b) = (next + 1 + at % 20, next + 1 + at);
                        let blocks = [(a, a + n), (b, b + n % 4)];
                        let before = w.sacked.clone();
                        w.una = next;
                        w.sacked = w.sacked.split_off(&next);
                        for (start, end) in blocks {
                            w.sacked.extend(start..end.min(w.max).max(start));
                        }
                        w.sacked.retain(|seq| *seq < w.max);
                        let news = w.sacked.difference(&before).count() > 0;
                        proptest::prop_assert_eq!(s.update(&ack(next, &blocks), w.max, threshold), news);
                        if look {
                            s.find_lost_retransmissions();
                            w.find_lost_retransmissions();
                        }
                        let (una, sacked) = (w.una, &w.sacked);
                        w.lost_again.retain(|seq| *seq >= una && !sacked.contains(seq));
                    }
                }
                proptest::prop_assert_eq!(s.pipe(w.una, w.max), w.pipe());
                proptest::prop_assert_eq!(s.sacked() as usize, w.sacked.len());
                proptest::prop_assert_eq!(s.next_lost(w.una), w.next_lost());
                proptest::prop_assert_eq!(s.next_unsacked(w.una), w.next_unsacked());
                for seq in w.una..w.max {
                    proptest::prop_assert_eq!(s.is_lost(seq), w.is_lost(seq));
                }
            }
        }
    }

    /// A walk over the holes at each ACK would take some 10^10 steps.
    #[test]
    fn a_hundred_thousand_holes_cost_no_ack_more_than_the_search_for_its_own() {
        let n = 100_000;
        let mut s = Scoreboard::default();
        s.begin_recovery();
        for i in 0..n {
            let seq = 2 * i + 1;
            assert!(s.update(&ack(0, &[(seq, seq + 1)]), 2 * n, 3));
            // Lost: the holes below the third block from the top.
            assert_eq!(s.pipe(0, 2 * n), 2 * n - if i < 2 { i + 1 } else { 2 * i });
        }
        for i in 0..n - 2 {
            assert_eq!(s.next_lost(2 * i), Some(2 * i));
            s.on_retransmit(2 * i);
            s.update(&ack(2 * i + 2, &[]), 2 * n, 3);
            assert_eq!(s.pipe(2 * i + 2, 2 * n), 2);
        }
    }

    #[test]
    fn a_retransmission_that_was_taken_for_lost_and_arrives_is_not_sent_again() {
        let mut s = Scoreboard::default();
        s.begin_recovery();
        s.update(&ack(10, &[(11, 15)]), 20, 3);
        for (seq, retransmission) in [(10, true), (20, false)] {
            s.note_sent(seq, retransmission);
        }
        s.on_retransmit(10);
        s.update(&ack(10, &[(20, 21), (11, 15)]), 21, 3);
        s.find_lost_retransmissions();
        assert_eq!(s.next_lost(10), Some(10));
        // Overtaken, not lost; and nothing that was sent since has arrived.
        s.update(&ack(15, &[(20, 21)]), 21, 3);
        s.find_lost_retransmissions();
        assert_eq!(s.next_lost(15), None);
    }
}
