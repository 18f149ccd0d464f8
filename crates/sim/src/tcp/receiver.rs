//! The receiving half of TCP: cumulative ACKs, SACK blocks, delayed ACKs.
//! Sources: [RFC 5681 §4.2], [RFC 2018 §4], [RFC 3168 §6.1.3].

use fairpace_units::{Duration, Instant};

use super::ranges::{Range, RangeSet};

/// At most one ACK for every second segment, after at most `timeout` [RFC 5681 §4.2].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DelayedAck {
    /// Longest wait before a segment is acknowledged; at most 500 ms by the RFC.
    pub timeout: Duration,
}

/// SACK blocks in one ACK: three fit beside a timestamp option [RFC 2018 §3], and ns-2 has three.
pub const SACK_BLOCKS: usize = 3;

/// The contents of a TCP acknowledgement. Numbers count segments.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TcpAck {
    /// The next segment wanted: all below have arrived.
    pub next: u32,
    /// The ranges that have arrived above, most recent first; unused blocks are empty.
    pub sack: [Range; SACK_BLOCKS],
    /// ECN-Echo: a segment arrived with a congestion mark, and no answer to that has arrived since.
    pub ece: bool,
}

/// A TCP receiver. Hand in segments, send the ACKs it returns, call [`TcpReceiver::on_timer`] at
/// [`TcpReceiver::poll_timer`].
///
/// In the order of use: a segment in order touches only what comes before the ranges that are not the last.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct TcpReceiver {
    /// When the one unacknowledged segment must be acknowledged.
    ack_due: Instant,
    rcv_nxt: u32,
    sack: bool,
    /// ECN-Echo in each ACK until the sender's CWR [RFC 3168 §6.1.3].
    ece: bool,
    recent_len: u8,
    delayed_ack: Option<DelayedAck>,
    out_of_order: RangeSet,
    /// A segment of each block reported lately, most recent first [RFC 2018 §4].
    recent: [u32; SACK_BLOCKS],
    duplicates: u64,
}

impl TcpReceiver {
    /// The first bytes of it, which a segment in order touches.
    pub(crate) const HOT: usize = std::mem::offset_of!(TcpReceiver, out_of_order) + RangeSet::HOT;

    /// A receiver that has seen nothing; `sack` says whether its ACKs carry blocks.
    pub fn new(sack: bool, delayed_ack: Option<DelayedAck>) -> Self {
        TcpReceiver {
            delayed_ack,
            sack,
            rcv_nxt: 0,
            out_of_order: RangeSet::default(),
            recent: [0; SACK_BLOCKS],
            recent_len: 0,
            ack_due: Instant::NEVER,
            ece: false,
            duplicates: 0,
        }
    }

    /// The segment that is handed in next carries a congestion mark (CE), the sender's answer to one
    /// (CWR), or both: then the mark is a new one.
    pub fn on_ecn(&mut self, ce: bool, cwr: bool) {
        self.ece = ce || (self.ece && !cwr);
    }

    /// Segment `seq` has arrived. Returns the ACK to send at once, if any.
    #[inline(always)] // an ACK that is returned through memory is copied piece by piece, and stalls
    pub fn on_segment(&mut self, now: Instant, seq: u32) -> Option<TcpAck> {
        if seq != self.rcv_nxt || !self.out_of_order.is_empty() {
            return Some(self.on_segment_beside(seq));
        }
        self.rcv_nxt += 1;
        if let Some(delayed) = self.delayed_ack
            && self.ack_due == Instant::NEVER
        {
            self.ack_due = now + delayed.timeout;
            return None;
        }
        self.ack_due = Instant::NEVER;
        Some(TcpAck { next: self.rcv_nxt, sack: [Range::default(); SACK_BLOCKS], ece: self.ece })
    }

    /// A segment has arrived that is not the next one, or there are holes.
    #[inline(never)]
    fn on_segment_beside(&mut self, seq: u32) -> TcpAck {
        // Such a segment is acknowledged at once: out of order, filling a hole, or a duplicate [RFC 5681 §4.2].
        if seq < self.rcv_nxt || self.out_of_order.insert(Range { start: seq, end: seq + 1 }) == 0 {
            self.duplicates += 1;
        } else if seq == self.rcv_nxt
            && let Some(end) = self.out_of_order.take_prefix(seq)
        {
            self.rcv_nxt = end;
        }
        if self.sack && seq > self.rcv_nxt {
            self.remember(seq);
        }
        self.ack()
    }

    /// The time [`TcpReceiver::poll_timer`] named has come.
    pub fn on_timer(&mut self, now: Instant) -> Option<TcpAck> {
        (now >= self.ack_due).then(|| self.ack())
    }

    /// When a delayed ACK is due; never if none is held back.
    pub fn poll_timer(&self) -> Instant {
        self.ack_due
    }

    /// Segments that have arrived in order.
    pub fn in_order(&self) -> u32 {
        self.rcv_nxt
    }

    /// Segments that arrived more than once.
    pub fn duplicates(&self) -> u64 {
        self.duplicates
    }

    fn ack(&mut self) -> TcpAck {
        self.ack_due = Instant::NEVER;
        let mut ack = TcpAck { next: self.rcv_nxt, sack: [Range::default(); SACK_BLOCKS], ece: self.ece };
        if !self.out_of_order.is_empty() && self.sack {
            let mut n = 0;
            for seq in &self.recent[..usize::from(self.recent_len)] {
                if let Some(block) = self.out_of_order.containing(*seq)
                    && !ack.sack[..n].contains(&block)
                {
                    ack.sack[n] = block;
                    n += 1;
                }
            }
        }
        ack
    }

    /// Puts the block of `seq` in front; of several marks in one block only the newest stays.
    fn remember(&mut self, seq: u32) {
        let block = self.out_of_order.containing(seq).unwrap_or_default();
        let mut kept = [seq; SACK_BLOCKS];
        let mut n = 1;
        for old in &self.recent[..usize::from(self.recent_len)] {
            let same = block.start <= *old && *old < block.end;
            if !same && *old >= self.rcv_nxt && n < SACK_BLOCKS {
                kept[n] = *old;
                n += 1;
            }
        }
        (self.recent, self.recent_len) = (kept, n as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn r(start: u32, end: u32) -> Range {
        Range { start, end }
    }

    #[test]
    fn the_newest_block_comes_first_and_merged_blocks_are_one() {
        let mut rx = TcpReceiver::new(true, None);
        assert_eq!(rx.on_segment(at(0), 0).unwrap().next, 1);
        assert_eq!(rx.on_segment(at(1), 2).unwrap().sack, [r(2, 3), r(0, 0), r(0, 0)]);
        assert_eq!(rx.on_segment(at(2), 5).unwrap().sack, [r(5, 6), r(2, 3), r(0, 0)]);
        assert_eq!(rx.on_segment(at(3), 8).unwrap().sack, [r(8, 9), r(5, 6), r(2, 3)]);
        assert_eq!(rx.on_segment(at(4), 3).unwrap().sack, [r(2, 4), r(8, 9), r(5, 6)]);
        assert_eq!(rx.on_segment(at(5), 4).unwrap().sack, [r(2, 6), r(8, 9), r(0, 0)]);
        let ack = rx.on_segment(at(6), 1).unwrap();
        assert_eq!((ack.next, ack.sack), (6, [r(8, 9), r(0, 0), r(0, 0)]));
        assert_eq!(rx.in_order(), 6);
    }

    #[test]
    fn delayed_acks_wait_for_the_second_segment_or_the_timer_and_never_for_a_hole() {
        let mut rx = TcpReceiver::new(false, Some(DelayedAck { timeout: Duration::from_millis(200) }));
        assert_eq!(rx.on_segment(at(0), 0), None);
        assert_eq!(rx.poll_timer(), at(200));
        assert_eq!(rx.on_segment(at(1), 1).unwrap().next, 2);
        assert_eq!(rx.poll_timer(), Instant::NEVER);
        assert_eq!(rx.on_segment(at(2), 2), None);
        assert_eq!(rx.on_timer(at(100)), None);
        assert_eq!(rx.on_timer(at(202)).unwrap().next, 3);
        // Out of order and the filling of the hole: both at once.
        assert_eq!(rx.on_segment(at(300), 4).unwrap().next, 3);
        assert_eq!(rx.on_segment(at(301), 3).unwrap().next, 5);
    }

    #[test]
    fn a_mark_is_echoed_until_the_sender_has_answered_and_again_if_the_answer_is_marked() {
        let mut rx = TcpReceiver::new(false, None);
        assert!(!rx.on_segment(at(0), 0).unwrap().ece);
        rx.on_ecn(true, false);
        assert!(rx.on_segment(at(1), 1).unwrap().ece);
        assert!(rx.on_segment(at(2), 2).unwrap().ece, "not answered yet");
        rx.on_ecn(true, true);
        assert!(rx.on_segment(at(3), 3).unwrap().ece, "a new mark");
        rx.on_ecn(false, true);
        assert!(!rx.on_segment(at(4), 4).unwrap().ece);
    }

    #[test]
    fn a_duplicate_is_acknowledged_and_counted_and_changes_nothing() {
        let mut rx = TcpReceiver::new(true, None);
        rx.on_segment(at(0), 0);
        rx.on_segment(at(0), 2);
        assert_eq!(rx.on_segment(at(1), 0).unwrap().next, 1);
        assert_eq!(rx.on_segment(at(1), 2).unwrap().next, 1);
        assert_eq!(rx.duplicates(), 2);
    }
}
