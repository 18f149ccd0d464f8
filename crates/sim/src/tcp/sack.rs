//! The SACK scoreboard: which segments are lost, how many are in the pipe, which goes next.
//! Source: [RFC 6675 §3 to §5]. Segments are whole, so DupThresh segments stand for
//! (DupThresh - 1) × SMSS bytes.
//!
//! Not implemented: rule 4 of NextSeg() (rescue retransmission): a lost tail of a recovery waits for
//! the timeout, as in ns-2's Sack1.

use super::ranges::{Range, RangeSet};
use super::receiver::TcpAck;
use std::collections::{BTreeSet, VecDeque};

#[derive(Clone, Debug, Default)]
pub(super) struct Scoreboard {
    sacked: RangeSet,
    /// One past the highest segment retransmitted in this recovery; all unsacked below have been.
    high_rxt: u32,
    /// Segments below this with no SACK are lost: at least DupThresh segments above have arrived.
    lost_below: u32,
    /// The segments sent in this recovery that have not arrived, in the order of sending: number, and whether it was a
    /// retransmission. Kept only for who looks for lost retransmissions.
    sent: VecDeque<(u32, bool)>,
    /// Segments whose retransmission is lost, to be sent once more.
    lost_again: BTreeSet<u32>,
}

impl Scoreboard {
    /// [RFC 6675 §4] Update(). Returns whether the ACK says anything new.
    pub(super) fn update(&mut self, ack: &TcpAck, snd_max: u32, dup_threshold: u32) -> bool {
        if self.sacked.is_empty() && ack.sack[0].is_empty() {
            return false; // nearly every ACK
        }
        self.sacked.remove_below(ack.next);
        let mut news = 0;
        for block in ack.sack.iter().filter(|b| !b.is_empty()) {
            // A block outside what was sent is a lie or a bug: keep what makes sense of it.
            let sane = Range { start: block.start.max(ack.next), end: block.end.min(snd_max) };
            news += self.sacked.insert(sane);
        }
        self.lost_below = self.nth_from_top(dup_threshold);
        news > 0
    }

    /// Segments with a SACK.
    pub(super) fn sacked(&self) -> u32 {
        self.sacked.iter().map(Range::len).sum()
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
        let mut pipe = 0;
        self.for_each_hole(snd_una, snd_max, |hole| {
            pipe += hole.end.saturating_sub(hole.start.max(self.lost_below));
            pipe += hole.end.min(self.high_rxt).saturating_sub(hole.start);
        });
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
        self.high_rxt = self.high_rxt.max(seq + 1);
        self.lost_again.remove(&seq);
    }

    /// A segment leaves in a recovery that looks for lost retransmissions.
    pub(super) fn note_sent(&mut self, seq: u32, retransmission: bool) {
        self.sent.push_back((seq, retransmission));
    }

    /// [RFC 8985 §6.2 step 5, without a reordering window] a retransmission is lost when something that was sent after it
    /// has arrived.
    pub(super) fn find_lost_retransmissions(&mut self, snd_una: u32) {
        let arrived = |s: &Self, seq: u32| seq < snd_una || s.sacked.containing(seq).is_some();
        let last = self.sent.iter().rposition(|(seq, _)| arrived(self, *seq));
        let Some(last) = last else { return };
        let before: Vec<(u32, bool)> = self.sent.drain(..=last).collect();
        for (seq, retransmission) in before {
            // New data that is passed over is a loss like any other: DupThresh tells.
            if retransmission && !arrived(self, seq) {
                self.lost_again.insert(seq);
            }
        }
        let sacked = &self.sacked;
        self.lost_again.retain(|seq| *seq >= snd_una && sacked.containing(*seq).is_none());
    }

    /// A recovery begins: nothing has been retransmitted in it yet.
    pub(super) fn begin_recovery(&mut self) {
        self.high_rxt = 0;
        self.sent.clear();
        self.lost_again.clear();
    }

    /// After a timeout the receiver may have thrown the blocks away [RFC 6675 §5.1, RFC 2018 §8].
    pub(super) fn clear(&mut self) {
        self.sacked.clear();
        self.sent.clear();
        self.lost_again.clear();
        (self.high_rxt, self.lost_below) = (0, 0);
    }

    fn first_hole(&self, from: u32) -> Option<u32> {
        Some(self.sacked.containing(from).map_or(from, |r| r.end))
    }

    fn for_each_hole(&self, snd_una: u32, snd_max: u32, mut f: impl FnMut(Range)) {
        let mut start = snd_una;
        for r in self.sacked.iter() {
            if start < r.start {
                f(Range { start, end: r.start });
            }
            start = r.end;
        }
        if start < snd_max {
            f(Range { start, end: snd_max });
        }
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
}
