//! Lost media again, or a key frame in its place: whichever puts the picture back sooner.
//!
//! ```text
//! deadline(n) = captured(n) + play-out - queueing     packet n leaves later: its frame comes too late to be shown
//! queueing    = srtt - least rtt
//!
//! asked for n:   n is not kept any more, or was sent 8 times           refresh, where the encoder gives key frames
//!                sent again less than 3/4 srtt ago                     the answer is on its way: nothing
//!                else                                                  n waits, the oldest first
//! at each turn:  n is late, and behind it is a key frame               n is dropped, unless it brings back more than it costs:
//!                                                                      so much of its group in time as is late
//!                late, behind the last key frame, and together more    refresh
//!                than another key frame weighs
//! refresh:       nothing that waits is sent again, frames that have not begun to leave are dropped, and the encoder is
//!                asked for a key frame; until that leaves, requests change nothing
//! copy:          what leaves again, and could not come in time a second time, leaves twice, 30 ms apart; not while packets
//!                queue on the path (srtt > 5/4 least rtt + 20 ms)
//! silence:       while nothing is heard of what was sent, a key frame each 300 ms, so that what comes through first
//!                can be shown
//! ```
//!
//! A late frame is decoded all the same: others refer to it. After a blackout everything that it took is asked for at once: to
//! send all of it again would keep the picture away for as long as the blackout did; to send nothing of it again, a single lost
//! packet would cost a key frame.

use crate::rtcp::Nack;
use crate::rtx::{History, Kept};
use crate::send_queue::Chunk;
use crate::sent::Stream;
use fairpace_units::{Duration, Instant};
use std::collections::{BTreeSet, VecDeque};

/// A packet is sent again at most so many times; so many requests may wait.
const MOST_TIMES: u8 = 8;
const MOST_WAITING: usize = 512;
/// A key frame's weight in ordinary frames, as the encoder is set (a third of a second's budget at most).
const KEY_FRAME_WEIGHT: f64 = 4.0;
/// So many of them are remembered, of the packets that are kept.
const MOST_KEY_FRAMES: usize = 64;
/// Between a packet that leaves again and its copy: longer than most bursts of losses take.
const COPY_SPACING: Duration = Duration::from_millis(30);
/// More than that are no single losses, for which copies are made.
const MOST_COPIED: usize = 8;
/// Ordinary frames are averaged over so many.
const FRAMES_AVERAGED: f64 = 16.0;
/// While nothing is heard, key frames come so often.
const SILENCE_SPACING: Duration = Duration::from_millis(300);
/// Of the times at which packets left, those so far apart are remembered, and so many.
const SENDINGS_APART: Duration = Duration::from_millis(10);
const MOST_SENDINGS: usize = 1_024;
/// Feedback is missed when so many of its usual gaps have passed, and at least this time.
const MISSED_GAPS: u32 = 4;
const LEAST_SILENCE: Duration = Duration::from_millis(150);

/// The times by which a request is judged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline {
    pub(super) now: Instant,
    /// The receiver's play-out delay.
    pub(super) playout: Duration,
    pub(super) srtt: Duration,
    pub(super) least_rtt: Duration,
}

impl Deadline {
    /// Frames captured before this come too late to be shown if they leave now.
    fn horizon(&self) -> Instant {
        self.now - self.playout.saturating_sub(self.queueing())
    }

    /// How long packets wait in the path's queues.
    pub(super) fn queueing(&self) -> Duration {
        self.srtt.saturating_sub(self.least_rtt)
    }

    /// Whether packets wait on the path: losses are its queue's then, and a copy would only make it longer.
    pub(super) fn is_queueing(&self) -> bool {
        self.srtt > self.least_rtt * 5 / 4 + Duration::from_millis(20)
    }

    /// How much may wait before a picture is taken, where a frame may wait for so long at most: three fifths of it, as a rate that adapts
    /// may fall before the picture leaves, or four fifths of a constant rate; more while no packets queue on the path, as far as
    /// the play-out delay leaves time for a repair. At low rates an encoder's largest pictures take some 0.4 s each.
    pub(super) fn room_to_wait(&self, most: Duration, is_responsive: bool) -> Duration {
        let least = most.mul_f64(if is_responsive { 0.6 } else { 0.8 });
        let before_repair = self.playout.saturating_sub(self.srtt * 3 / 2);
        if self.is_queueing() { least } else { before_repair.clamp(least, most) }
    }

    /// Whether what leaves now and is lost could be asked for and come again in time.
    fn allows_another(&self, captured: Instant) -> bool {
        captured >= self.horizon() + self.srtt * 5 / 4
    }
}

/// The verdict on requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Requested {
    /// Packets asked for.
    pub(super) packets: usize,
    /// Of these, not sent again: superseded, or given up for a key frame.
    pub(super) refused: u64,
}

/// Packets that wait to be sent again, and the bytes of their payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Waiting {
    pub(super) packets: usize,
    pub(super) bytes: usize,
}

#[derive(Debug, Default)]
pub(super) struct Repair {
    history: History,
    /// Packets that wait to be sent again, by index.
    waiting: BTreeSet<u64>,
    waiting_bytes: usize,
    /// Of the last key frames, index of the first packet, and time of capture.
    keys: VecDeque<(u64, Instant)>,
    /// Copies that are to leave, and when.
    copies: VecDeque<(Instant, u64)>,
    /// A key frame was asked for in place of what was lost, and has not left.
    refreshing: bool,
    /// Mean size of the frames that are no key frames, bytes.
    frame_bytes: f64,
    silence: Silence,
}

impl Repair {
    /// Whether something waits to be sent again.
    pub(super) fn has_data(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The packets that wait to be sent again, and their payload.
    pub(super) fn waiting(&self) -> Waiting {
        Waiting { packets: self.waiting.len(), bytes: self.waiting_bytes }
    }

    /// An encoded frame has come.
    pub(super) fn on_frame(&mut self, bytes: usize, key: bool) {
        if !key {
            let step = if self.frame_bytes == 0.0 { 1.0 } else { 1.0 / FRAMES_AVERAGED };
            self.frame_bytes += (bytes as f64 - self.frame_bytes) * step;
        }
    }

    /// The first packet of a key frame leaves, under that index.
    pub(super) fn on_key_frame(&mut self, index: u64, captured: Instant) {
        if self.keys.len() == MOST_KEY_FRAMES {
            self.keys.pop_front();
        }
        self.keys.push_back((index, captured));
        self.refreshing = false;
    }

    /// Whether a key frame is awaited in place of what was lost.
    pub(super) const fn is_refreshing(&self) -> bool {
        self.refreshing
    }

    /// The packet with that index leaves for the first time.
    pub(super) fn keep(&mut self, index: u64, chunk: &Chunk, payload: &[u8], now: Instant) {
        self.history.keep(index, chunk, payload, now);
        while self.waiting.first().is_some_and(|oldest| *oldest < self.history.first()) {
            self.waiting.pop_first();
        }
    }

    /// The peer asks for packets again; of them no more than `most` are looked at. `refreshes`: the encoder gives a key frame
    /// when asked; if not, a packet that cannot come again holds up none of the others.
    pub(super) fn on_nack(
        &mut self,
        nack: &Nack<'_>,
        stream: &Stream,
        deadline: &Deadline,
        most: usize,
        refreshes: bool,
    ) -> Requested {
        let mut asked = Requested::default();
        for sequence in nack.lost().take(most) {
            asked.packets += 1;
            let Some(index) = stream.index(sequence) else { continue };
            if self.refreshing {
                asked.refused += 1;
                continue;
            }
            let Some(kept) = self.history.get_mut(index).filter(|kept| kept.times < MOST_TIMES) else {
                // Before the last key frame nobody needs it.
                if refreshes && self.keys.back().is_none_or(|(key, _)| index >= *key) {
                    asked.refused += self.give_up();
                }
                asked.refused += 1;
                continue;
            };
            let answered = kept.times > 0 && deadline.now.since(kept.sent_at) < deadline.srtt * 3 / 4;
            if !answered && self.waiting.len() < MOST_WAITING && self.waiting.insert(index) {
                self.waiting_bytes += kept.payload.len();
            }
        }
        asked
    }

    /// Judges anew what waits; gives how many packets were given up. `refreshes`: the encoder gives a key frame when asked.
    pub(super) fn review(&mut self, deadline: &Deadline, refreshes: bool) -> u64 {
        while self.copies.front().is_some_and(|(at, _)| *at <= deadline.now) {
            let Some((_, index)) = self.copies.pop_front() else { break };
            if let Some(kept) = self.history.get_mut(index).filter(|kept| kept.times < MOST_TIMES) {
                kept.is_copy = self.waiting.insert(index);
            }
        }
        if self.waiting.is_empty() {
            return 0;
        }
        let horizon = deadline.horizon();
        let before = self.waiting.len();
        let (mut late, mut bytes) = (0, 0);
        let (history, keys) = (&mut self.history, &self.keys);
        self.waiting.retain(|index| {
            let Some(kept) = history.get_mut(*index) else { return false };
            let is_late = kept.captured < horizon;
            let next = keys.partition_point(|(key, _)| key <= index);
            if is_late && let Some((_, next_key)) = keys.get(next) {
                let begun = next.checked_sub(1).and_then(|i| keys.get(i)).map_or(kept.captured, |(_, key)| *key);
                if horizon.since(begun.min(horizon)) > next_key.since(horizon.min(*next_key)) {
                    return false;
                }
            } else if is_late {
                late += kept.payload.len();
            }
            bytes += kept.payload.len();
            true
        });
        self.waiting_bytes = bytes;
        let superseded = (before - self.waiting.len()) as u64;
        let refresh = refreshes && late as f64 > KEY_FRAME_WEIGHT * self.frame_bytes;
        superseded + if refresh { self.give_up() } else { 0 }
    }

    /// When a copy is to leave; NEVER if none is.
    pub(super) fn next_copy(&self) -> Instant {
        self.copies.front().map_or(Instant::NEVER, |(at, _)| *at)
    }

    /// A key frame in place of all that waits: of so many packets.
    fn give_up(&mut self) -> u64 {
        let given_up = self.waiting.len() as u64;
        self.waiting.clear();
        self.copies.clear();
        self.waiting_bytes = 0;
        self.refreshing = true;
        given_up
    }

    /// The oldest packet that waits, which leaves now, and its index.
    pub(super) fn next(&mut self, deadline: &Deadline) -> Option<(u64, &Kept)> {
        let index = self.waiting.pop_first()?;
        let kept = self.history.get_mut(index)?;
        // A copy has no copy, however late it leaves: where packets wait for the rate, that would never end.
        let is_copy = core::mem::take(&mut kept.is_copy);
        kept.times += 1;
        kept.sent_at = deadline.now;
        self.waiting_bytes = self.waiting_bytes.saturating_sub(kept.payload.len());
        let copied = !is_copy && !deadline.allows_another(kept.captured) && !deadline.is_queueing();
        if copied && self.waiting.len() < MOST_COPIED {
            self.copies.push_back((deadline.now + COPY_SPACING, index));
        }
        Some((index, kept))
    }

    /// Data leaves, for the first time or again.
    pub(super) fn on_sent(&mut self, now: Instant) {
        self.silence.on_sent(now);
    }

    /// Feedback on packets has come, about those that left a round trip ago.
    pub(super) fn on_feedback(&mut self, now: Instant, srtt: Duration) {
        self.silence.on_feedback(now, srtt);
    }

    /// When a key frame is to be encoded because nothing is heard; NEVER while all that should have been heard of was.
    pub(super) fn next_key_in_silence(&self, srtt: Duration) -> Instant {
        self.silence.next(srtt)
    }

    /// A key frame is encoded because nothing is heard.
    pub(super) const fn on_key_in_silence(&mut self, now: Instant) {
        self.silence.asked = Some(now);
    }
}

/// Packets that are not heard of, and the gaps between feedback.
#[derive(Clone, Debug, Default)]
struct Silence {
    /// When packets left that are not heard of yet, one in 10 ms.
    unheard: VecDeque<Instant>,
    heard: Option<Instant>,
    /// The usual gap; `None` before the second feedback.
    gap: Option<Duration>,
    asked: Option<Instant>,
}

impl Silence {
    fn on_sent(&mut self, now: Instant) {
        let apart = self.unheard.back().is_none_or(|last| now.since(*last) >= SENDINGS_APART);
        if apart && self.unheard.len() < MOST_SENDINGS {
            self.unheard.push_back(now);
        }
    }

    fn on_feedback(&mut self, now: Instant, srtt: Duration) {
        if let Some(before) = self.heard.replace(now) {
            let gap = now.since(before);
            // The length of a silence is no usual gap.
            self.gap =
                Some(self.gap.map_or(gap, |usual| (usual * 7 + gap.min(usual * MISSED_GAPS + LEAST_SILENCE)) / 8));
        }
        while self.unheard.front().is_some_and(|sent| now.since(*sent) >= srtt) {
            self.unheard.pop_front();
        }
        self.asked = None;
    }

    /// When the silence, or what followed the last key frame of it, is long enough for a key frame.
    fn next(&self, srtt: Duration) -> Instant {
        let (Some(heard), Some(gap), Some(sent)) = (self.heard, self.gap, self.unheard.front()) else {
            return Instant::NEVER;
        };
        let patience = (gap * MISSED_GAPS).max(LEAST_SILENCE);
        let silent = (heard + patience).max(*sent + srtt + LEAST_SILENCE);
        self.asked.map_or(silent, |at| silent.max(at + SILENCE_SPACING))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtcp::{Compound, Rtcp, emit_nack};

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    const SRTT: Duration = Duration::from_millis(500);

    #[test]
    fn more_may_wait_where_the_rate_is_constant_and_where_no_packets_wait_on_the_path() {
        let ms = Duration::from_millis;
        let room = |is_responsive, srtt, playout| {
            let deadline = Deadline { now: at(0), playout: ms(playout), srtt: ms(srtt), least_rtt: ms(100) };
            deadline.room_to_wait(ms(playout * 3 / 5), is_responsive).as_nanos() / 1_000_000
        };
        // A queue, and none: 500 - 150 ms are more than most of it, 300 - 150 within, 200 - 150 less than the least.
        assert_eq!(
            [room(true, 200, 500), room(true, 100, 500), room(true, 100, 300), room(true, 100, 200)],
            [180, 300, 150, 72]
        );
        assert_eq!(
            [room(false, 200, 500), room(false, 100, 500), room(false, 100, 300), room(false, 100, 200)],
            [240, 300, 150, 96]
        );
    }

    /// Ten frames of one packet of 1,000 B were captured 40 ms apart from zero on, and `asked` of them are asked for two seconds
    /// later, with a play-out of 700 ms: all too late.
    fn asked_for_late(asked: u16) -> (Repair, Stream, Deadline) {
        let (mut repair, mut stream) = (Repair::default(), Stream::new(1, 96, 0));
        for n in 0..10 {
            let captured = at(40 * n);
            let chunk = Chunk { timestamp: 0, marker: true, captured, begins_key: n == 0 };
            repair.on_frame(1_000, n == 0);
            if n == 0 {
                repair.on_key_frame(0, captured);
            }
            repair.keep(n, &chunk, &[0; 1_000], captured);
            stream.on_sent(n, 1_000);
        }
        let deadline = Deadline {
            now: at(2_000),
            playout: Duration::from_millis(700),
            srtt: Duration::from_millis(100),
            least_rtt: Duration::from_millis(100),
        };
        assert_eq!(ask(&mut repair, &stream, &deadline, asked).packets, usize::from(asked));
        (repair, stream, deadline)
    }

    fn ask(repair: &mut Repair, stream: &Stream, deadline: &Deadline, asked: u16) -> Requested {
        ask_source(repair, stream, deadline, asked, true)
    }

    fn ask_source(r: &mut Repair, stream: &Stream, deadline: &Deadline, asked: u16, refreshes: bool) -> Requested {
        let mut bytes = Vec::new();
        emit_nack(&mut bytes, 2, 1, &(0..asked).collect::<Vec<_>>());
        let Some(Rtcp::Nack(nack)) = Compound::parse(&bytes).ok().and_then(|mut c| c.next()) else { panic!("a NACK") };
        r.on_nack(&nack, stream, deadline, 100, refreshes)
    }

    #[test]
    fn no_more_than_512_packets_wait_to_be_sent_again_however_many_are_asked_for() {
        let (mut repair, mut stream) = (Repair::default(), Stream::new(1, 96, 0));
        for n in 0..2_000 {
            let chunk = Chunk { timestamp: 0, marker: true, captured: at(n), begins_key: n == 0 };
            repair.keep(n, &chunk, &[0; 100], at(n));
            stream.on_sent(n, 100);
        }
        let deadline = Deadline { now: at(2_000), playout: Duration::from_secs(10), srtt: SRTT, least_rtt: SRTT };
        let mut bytes = Vec::new();
        for from in [0, 900] {
            bytes.clear();
            emit_nack(&mut bytes, 2, 1, &(from..from + 900).collect::<Vec<_>>());
            let Some(Rtcp::Nack(nack)) = Compound::parse(&bytes).ok().and_then(|mut c| c.next()) else {
                panic!("a NACK")
            };
            assert_eq!(repair.on_nack(&nack, &stream, &deadline, 1_024, false).packets, 900);
        }
        assert_eq!(repair.waiting(), Waiting { packets: 512, bytes: 51_200 });
    }

    #[test]
    fn more_than_a_key_frames_weight_of_late_packets_is_given_up_for_one() {
        // Four ordinary frames are the weight.
        let (mut repair, _, deadline) = asked_for_late(4);
        assert_eq!((repair.review(&deadline, true), repair.is_refreshing()), (0, false));
        assert_eq!(repair.waiting(), Waiting { packets: 4, bytes: 4_000 });
        let (mut repair, stream, deadline) = asked_for_late(5);
        assert_eq!((repair.review(&deadline, true), repair.is_refreshing()), (5, true));
        assert!(!repair.has_data());
        // Until the key frame leaves, requests change nothing.
        assert_eq!(ask(&mut repair, &stream, &deadline, 3), Requested { packets: 3, refused: 3 });
        repair.on_key_frame(10, at(2_010));
        assert_eq!((repair.is_refreshing(), ask(&mut repair, &stream, &deadline, 3).refused), (false, 0));
        // A source that gives no key frame: all of it is sent.
        let (mut repair, _, deadline) = asked_for_late(5);
        assert_eq!((repair.review(&deadline, false), repair.is_refreshing()), (0, false));
        assert_eq!(repair.waiting(), Waiting { packets: 5, bytes: 5_000 });
    }

    /// The first packet has left eight times; it and two others are asked for.
    #[test]
    fn a_packet_that_cannot_come_again_brings_a_key_frame_or_where_there_is_none_holds_up_no_other() {
        for refreshes in [true, false] {
            let (mut repair, stream, deadline) = asked_for_late(1);
            for _ in 1..=MOST_TIMES {
                repair.waiting.insert(0);
                assert!(repair.next(&deadline).is_some());
            }
            let asked = ask_source(&mut repair, &stream, &deadline, 3, refreshes);
            // With a key frame on its way, the others are refused too.
            let refused = if refreshes { 3 } else { 1 };
            assert_eq!((asked, repair.is_refreshing()), (Requested { packets: 3, refused }, refreshes));
            assert_eq!(repair.waiting().packets, if refreshes { 0 } else { 2 });
        }
    }

    /// One of ten packets is asked for when there is time for one answer only, and packets wait a second each for the rate.
    #[test]
    fn an_answer_has_one_copy_however_late_that_leaves() {
        let (mut repair, stream, mut deadline) = asked_for_late(0);
        deadline.playout = Duration::from_millis(2_050);
        assert_eq!(ask(&mut repair, &stream, &deadline, 1).refused, 0);
        let mut left = 0;
        for second in 0..20 {
            deadline.now = at(2_000 + 1_000 * second);
            repair.review(&deadline, false);
            left += usize::from(repair.next(&deadline).is_some());
        }
        assert_eq!((left, repair.next_copy()), (2, Instant::NEVER));
        // Nor has a packet that has left as often as any may.
        repair.history.get_mut(0).unwrap().times = MOST_TIMES;
        repair.copies.push_back((deadline.now, 0));
        repair.review(&deadline, false);
        assert!(!repair.has_data());
    }

    #[test]
    fn feedback_that_is_rare_by_its_form_is_no_silence() {
        let mut s = Silence::default();
        // A packet each 20 ms, a report each 5 s.
        for ms in (0..40_000).step_by(20) {
            s.on_sent(at(ms));
            if ms % 5_000 == 0 && ms > 0 {
                s.on_feedback(at(ms), SRTT);
            }
            assert!(s.next(SRTT) > at(ms), "{ms} ms");
        }
    }

    #[test]
    fn a_lone_packet_is_not_missed_before_its_round_trip_is_over() {
        let mut s = Silence::default();
        for ms in (500..2_000).step_by(20) {
            s.on_sent(at(ms - 500));
            s.on_feedback(at(ms), SRTT);
        }
        // Nothing is sent for 2 s; what then leaves is heard of 500 ms later, or missed 150 ms after that.
        (1_500..2_500).step_by(20).for_each(|ms| s.on_feedback(at(ms), SRTT));
        assert_eq!(s.next(SRTT), Instant::NEVER);
        s.on_sent(at(4_000));
        assert_eq!(s.next(SRTT), at(4_650));
    }

    #[test]
    fn a_blackout_is_noticed_150_ms_after_the_last_feedback_however_long_the_round_trip() {
        let mut s = Silence::default();
        for ms in (0..4_000).step_by(20) {
            s.on_sent(at(ms));
            if ms >= 500 {
                s.on_feedback(at(ms), SRTT);
            }
        }
        // The packet of 3.5 s is the first that nothing told of.
        assert_eq!(s.next(SRTT), at(3_500 + 500 + 150));
        s.asked = Some(at(4_150));
        assert_eq!(s.next(SRTT), at(4_450));
        assert!(s.unheard.len() <= MOST_SENDINGS);
    }
}
