//! The receiver's play-out buffer: which frames a viewer would have seen.
//!
//! Frames come in as they become complete; each leaves once, in the sender's order, with a verdict:
//! shown in time, late, or lost. No clock, no decoder: VP8 frames refer to the frame before
//! them, so whether a frame can be decoded follows from which ones came. Neighbours are known by their
//! packets' sequence numbers; how many frames a gap held is estimated from the media times around it.
//! Frames that the sender dropped before sending leave no gap: the sender counts those.
//!
//! ```text
//! due(n)   = capture(n) + least transit so far + delay          when frame n is to be on the screen
//! ready(n) = arrival(n)                    for a key frame
//!            max(arrival(n), ready(n-1))   for any other        when a decoder could have it
//!
//! ready <= due               in time: shown at due
//! ready >  due               late: decoded, so that later frames may refer to it, not shown
//! a packet is missing        lost (hole)
//! refers to a lost frame     damaged: shown at due, until the next complete key frame; lost (reference) if damaged
//!                            pictures are not to be shown, or no key frame has come yet
//! ```
//!
//! Transit is arrival minus capture on two clocks that need not agree; only its least value is
//! used, as the path without its queues. So the delay budget is what queues, pacing and
//! retransmission may take together, and a slow first frame buys no slack for the others.
//!
//! A hole is believed when a later frame has been complete for [`PlayoutParams::reorder_wait`], or when a
//! later key frame goes on the screen; with [`PlayoutParams::damaged`] also when the frame after it is due, because a
//! picture that was decoded from the wrong one is nearer to the truth than one that stands. A frame that is only slow
//! (blackout, long queue) stays awaited as long as nothing overtakes it.

mod delay;

use crate::ReceivedFrame;
pub use delay::Adaptive;
use delay::AdaptiveDelay;
use fairpace_units::{Bytes, Duration, Instant};
use std::collections::{BTreeMap, VecDeque};

/// Frames held at once; more than two minutes at 30 frames/s. Beyond that new ones are refused.
const MAX_HELD: usize = 4_096;
/// A gap of more frames is taken as a stream that began anew, not as that many losses.
const MAX_GAP: u64 = 2_048;

/// How the receiver plays out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlayoutParams {
    /// The time that queues, pacing and retransmissions may take beyond the fastest transit seen; with
    /// [`adaptive`](Self::adaptive), the first.
    pub delay: Duration,
    /// The delay follows what the frames need, within these bounds; `None`: it stays as it is.
    pub adaptive: Option<Adaptive>,
    /// Lost packets are asked for again: a gap waits for the answer.
    pub repair: bool,
    /// Frames that refer to a lost one are decoded from what there is, and shown. VP8's decoders go on; the damage lasts to the
    /// next key frame, which is asked for.
    pub damaged: bool,
    /// How long a gap may be reordering before it is a hole. With repair: until the delay and a round trip are over, if that
    /// is longer.
    pub reorder_wait: Duration,
    /// Least time between two requests for a key frame, if no round trip is known: about one, because the answer
    /// cannot be quicker.
    pub key_request_interval: Duration,
}

impl Default for PlayoutParams {
    /// A constant 500 ms, 20 ms and 600 ms: for a path with a satellite in it, no retransmission; damaged pictures are shown.
    fn default() -> Self {
        PlayoutParams {
            delay: Duration::from_millis(500),
            adaptive: None,
            repair: false,
            damaged: true,
            reorder_wait: Duration::from_millis(20),
            key_request_interval: Duration::from_millis(600),
        }
    }
}

/// Why a frame was lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LostFrame {
    /// Packets of it did not come.
    Hole,
    /// The frame came, but a frame that it refers to did not.
    Reference,
}

/// The fate of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// On the screen when due.
    InTime,
    /// On the screen when due, decoded without a frame that it refers to.
    Damaged,
    /// Decoded, too late to be shown.
    Late,
    /// Never decoded.
    Lost(LostFrame),
}

/// A frame that has left the buffer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Judged {
    /// Counts the frames that left, from 0.
    pub number: u64,
    /// Capture time since the first frame's; estimated between its neighbours' if it did not come.
    pub media_time: Duration,
    /// When it was to be shown.
    pub due: Instant,
    /// When a decoder had it; `None` if never.
    pub ready: Option<Instant>,
    /// The frame's fate.
    pub verdict: Verdict,
    /// Needs no other frame; unknown, so false, if it did not come.
    pub key: bool,
    /// The frame; empty if it did not come.
    pub data: Vec<u8>,
}

/// One second of play-out, by due time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PlayoutSecond {
    /// Frames shown in time.
    pub in_time: u32,
    /// Frames shown when due, decoded without one that they refer to.
    pub damaged: u32,
    /// Frames decoded too late.
    pub late: u32,
    /// Frames with a hole (those that left no trace at all are estimated).
    pub lost_hole: u32,
    /// Frames that refer to a lost one.
    pub lost_reference: u32,
    /// The size of all shown frames together.
    pub shown_bytes: Bytes,
}

impl PlayoutSecond {
    /// All frames of the second.
    pub fn frames(&self) -> u32 {
        self.in_time + self.damaged + self.late + self.lost_hole + self.lost_reference
    }

    fn count(&mut self, judged: &Judged) {
        match judged.verdict {
            Verdict::InTime => {
                self.in_time += 1;
                self.shown_bytes += Bytes::new(judged.data.len() as u64);
            }
            Verdict::Damaged => {
                self.damaged += 1;
                self.shown_bytes += Bytes::new(judged.data.len() as u64);
            }
            Verdict::Late => self.late += 1,
            Verdict::Lost(LostFrame::Hole) => self.lost_hole += 1,
            Verdict::Lost(LostFrame::Reference) => self.lost_reference += 1,
        }
    }
}

/// Totals of a play-out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PlayoutTotals {
    /// All frames by verdict.
    pub frames: PlayoutSecond,
    /// Pictures that the source took from the first frame judged to the last, by the media times and the least distance of two frames:
    /// those that were never encoded, or never sent, are among them.
    pub captures: u64,
    /// Times a key frame was asked for.
    pub key_requests: u32,
    /// Frames that came again, or after they had been given up.
    pub again: u32,
    /// Frames refused: the buffer was full, or they made no sense.
    pub refused: u32,
    /// The longest time the screen stood still, between two shown frames.
    pub longest_freeze: Duration,
}

#[derive(Debug)]
struct Held {
    last_sequence: u64,
    absent_before: u64,
    /// Ticks of the media clock since the first frame, unwrapped.
    ticks: i64,
    key: bool,
    arrival: Instant,
    data: Vec<u8>,
}

/// The next event and its time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Next {
    /// The first frame held follows the last one judged.
    Frame(Instant, Verdict),
    /// There is a gap before it, which will not be filled any more.
    Gap(Instant),
}

/// The decoder's readiness: the frames that it could take next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Decoder {
    /// Everything up to the last judged frame is decoded, since this instant; `whole`: and nothing that it refers to is lost.
    Ready { since: Instant, whole: bool },
    /// Only a key frame helps.
    NeedsKey,
}

/// The buffer. Events: [`push`](Playout::push). Questions: [`poll`](Playout::poll) until it gives
/// `None`, then again at [`next`](Playout::next); [`take_key_request`](Playout::take_key_request).
#[derive(Debug)]
pub struct Playout {
    params: PlayoutParams,
    adaptive: Option<AdaptiveDelay>,
    /// A request for a lost packet and its answer take so long, as far as is known.
    answer: Option<Duration>,
    /// Complete frames by their first sequence number.
    held: BTreeMap<u64, Held>,
    /// Judged, to be handed out: a gap is several frames at once.
    out: VecDeque<Judged>,
    /// The sequence number after the last frame judged.
    expected: Option<u64>,
    decoder: Decoder,
    /// The RTP timestamp and ticks of the newest frame, for unwrapping.
    newest: Option<(u32, i64)>,
    /// Least arrival minus capture, in nanoseconds of the receiver's clock.
    least_transit: i128,
    /// Least distance of two neighbouring frames, in ticks: the frame interval.
    interval: Option<i64>,
    /// Ticks of the first frame judged.
    first: Option<i64>,
    /// Ticks and due of the last verdict.
    last: Option<(i64, Instant)>,
    judged: u64,
    last_shown: Option<Instant>,
    key_wanted: bool,
    key_requested_at: Option<Instant>,
    seconds: Vec<PlayoutSecond>,
    totals: PlayoutTotals,
}

impl Playout {
    /// An empty buffer, which waits for a key frame.
    pub fn new(params: PlayoutParams) -> Self {
        Playout {
            adaptive: params.adaptive.map(|bounds| AdaptiveDelay::new(bounds, params.delay)),
            params,
            answer: None,
            held: BTreeMap::new(),
            out: VecDeque::new(),
            expected: None,
            decoder: Decoder::NeedsKey,
            newest: None,
            least_transit: i128::MAX,
            interval: None,
            first: None,
            last: None,
            judged: 0,
            last_shown: None,
            key_wanted: false,
            key_requested_at: None,
            seconds: Vec::new(),
            totals: PlayoutTotals::default(),
        }
    }

    /// A frame is complete.
    pub fn push(&mut self, frame: ReceivedFrame) {
        let expected = *self.expected.get_or_insert(frame.first_sequence);
        if frame.first_sequence < expected || self.held.contains_key(&frame.first_sequence) {
            self.totals.again += 1;
            return;
        }
        if self.held.len() >= MAX_HELD || frame.last_sequence < frame.first_sequence {
            self.totals.refused += 1;
            return;
        }
        // Serial arithmetic against the newest: right as long as frames lie within 6.6 h.
        let (newest, newest_ticks) = self.newest.unwrap_or((frame.timestamp_90k, 0));
        let ticks = newest_ticks + i64::from(frame.timestamp_90k.wrapping_sub(newest) as i32);
        if self.newest.is_none() || ticks > newest_ticks {
            self.newest = Some((frame.timestamp_90k, ticks));
        }
        self.least_transit = self.least_transit.min(i128::from(frame.arrival.as_nanos()) - nanos(ticks));
        if frame.key {
            self.key_wanted = false;
        }
        let ReceivedFrame { first_sequence, last_sequence, absent_before, data, key, arrival, .. } = frame;
        self.held.insert(first_sequence, Held { last_sequence, absent_before, ticks, key, arrival, data });
    }

    /// A request for a lost packet and its answer take so long.
    pub fn set_answer_time(&mut self, answer: Duration) {
        self.answer = Some(answer);
        if let Some(adaptive) = self.adaptive.as_mut().filter(|_| self.params.repair) {
            adaptive.set_answer(answer);
        }
    }

    /// The delay at which frames are shown now.
    pub fn delay(&self) -> Duration {
        self.adaptive.as_ref().map_or(self.params.delay, AdaptiveDelay::delay)
    }

    /// How long a later frame waits for what is missing before it.
    fn patience(&self) -> Duration {
        let answer = self.answer.filter(|_| self.params.repair);
        answer.map_or(self.params.reorder_wait, |answer| self.params.reorder_wait.max(self.delay() + answer))
    }

    /// Least time between two requests for a key frame.
    fn key_request_interval(&self) -> Duration {
        self.answer.unwrap_or(self.params.key_request_interval).max(Duration::from_millis(100))
    }

    /// The next frame whose fate is decided at `now`, in the sender's order.
    pub fn poll(&mut self, now: Instant) -> Option<Judged> {
        // A gap without frames (the stream began anew) puts nothing out.
        while self.out.is_empty() {
            match self.decide()? {
                Next::Frame(at, verdict) if at <= now => self.judge_frame(now, verdict),
                Next::Gap(at) if at <= now => self.judge_gap(now),
                _ => return None,
            }
        }
        self.out.pop_front()
    }

    /// When [`poll`](Playout::poll) will have something, if nothing else comes.
    pub fn next(&self) -> Instant {
        match self.decide() {
            _ if !self.out.is_empty() => Instant::ZERO,
            Some(Next::Frame(at, _) | Next::Gap(at)) => at,
            None => Instant::NEVER,
        }
    }

    /// The stream is over: as [`poll`](Playout::poll), but waits for nothing.
    pub fn finish(&mut self, now: Instant) -> Option<Judged> {
        while self.out.is_empty() {
            match self.decide()? {
                Next::Frame(_, verdict) => self.judge_frame(now, verdict),
                Next::Gap(_) => self.judge_gap(now),
            }
        }
        self.out.pop_front()
    }

    /// True if a PLI should go out now; at most once per interval, as long as only a key frame helps.
    pub fn take_key_request(&mut self, now: Instant) -> bool {
        let due = self.key_requested_at.is_none_or(|at| now >= at + self.key_request_interval());
        if !self.key_wanted || !due {
            return false;
        }
        self.key_requested_at = Some(now);
        self.totals.key_requests += 1;
        true
    }

    /// When [`take_key_request`](Playout::take_key_request) may say yes again; never if no key frame is wanted.
    pub fn next_key_request(&self) -> Instant {
        match (self.key_wanted, self.key_requested_at) {
            (false, _) => Instant::NEVER,
            (true, None) => Instant::ZERO,
            (true, Some(at)) => at + self.key_request_interval(),
        }
    }

    /// Packets before that number are judged, or given up: whatever comes of them is of no use. Zero before the first frame.
    pub fn given_up_before(&self) -> u64 {
        self.expected.unwrap_or(0)
    }

    /// One entry per second of the run, by due time, as far as judged.
    pub fn seconds(&self) -> &[PlayoutSecond] {
        &self.seconds
    }

    /// Everything so far.
    pub fn totals(&self) -> &PlayoutTotals {
        &self.totals
    }

    /// The next event in the sender's order; `None` while nothing is held.
    fn decide(&self) -> Option<Next> {
        let (&first, head) = self.held.first_key_value()?;
        if self.expected.is_some_and(|expected| first > expected) {
            // Packets are missing before it: what overtook them says when to give them up.
            let patience = self.patience();
            let overtaken = self.held.values().map(|held| held.arrival + patience).min();
            let superseded = self.held.values().filter(|held| held.key).map(|held| self.due(held.ticks)).min();
            let goes_on = self.goes_on().then(|| self.due(head.ticks).max(head.arrival + self.params.reorder_wait));
            return overtaken.into_iter().chain(superseded).chain(goes_on).min().map(Next::Gap);
        }
        let Some((ready, whole)) = self.ready(head) else {
            return Some(Next::Frame(head.arrival, Verdict::Lost(LostFrame::Reference)));
        };
        let due = self.due(head.ticks);
        Some(match (ready <= due, whole) {
            (true, true) => Next::Frame(due, Verdict::InTime),
            (true, false) => Next::Frame(due, Verdict::Damaged),
            (false, _) => Next::Frame(ready, Verdict::Late),
        })
    }

    /// Whether the decoder goes on after a hole.
    fn goes_on(&self) -> bool {
        self.params.damaged && matches!(self.decoder, Decoder::Ready { .. })
    }

    /// When a decoder could have the next frame, and whether nothing that it refers to is lost; `None` if it cannot be decoded.
    fn ready(&self, head: &Held) -> Option<(Instant, bool)> {
        match (head.key, self.decoder) {
            (true, _) => Some((head.arrival, true)),
            (false, Decoder::Ready { since, whole }) => Some((head.arrival.max(since), whole)),
            (false, Decoder::NeedsKey) => None,
        }
    }

    /// Takes the next frame out with this verdict.
    fn judge_frame(&mut self, now: Instant, verdict: Verdict) {
        let Some((_, held)) = self.held.pop_first() else { return };
        let ready = self.ready(&held);
        let due = self.due(held.ticks);
        self.decoder = ready.map_or(Decoder::NeedsKey, |(since, whole)| Decoder::Ready { since, whole });
        if ready.is_none() {
            self.want_key();
        }
        let ready = ready.map(|(since, _)| since);
        if let Some((before, _)) = self.last {
            // After a gap as well, but there the distance is only larger.
            let distance = held.ticks - before;
            if distance > 0 {
                self.interval = Some(self.interval.map_or(distance, |least| least.min(distance)));
            }
        }
        self.count_captures(held.ticks);
        self.expected = Some(held.last_sequence.saturating_add(1));
        if let (Some(ready), Some(adaptive)) = (ready, &mut self.adaptive) {
            let passed = self.last.map_or(0, |(before, _)| (held.ticks - before).max(0));
            adaptive.on_frame((ready + adaptive.delay()).since(due), media_time(passed));
        }
        self.last = Some((held.ticks, due));
        // Frames that claim the same packets are nonsense of the peer's.
        while self.held.first_key_value().is_some_and(|(&first, _)| first <= held.last_sequence) {
            self.held.pop_first();
            self.totals.refused += 1;
        }
        let number = self.judged;
        let media_time = media_time(held.ticks);
        self.emit(now, Judged { number, media_time, due, ready, verdict, key: held.key, data: held.data });
    }

    /// The pictures that the source took until this one.
    fn count_captures(&mut self, ticks: i64) {
        let first = *self.first.get_or_insert(ticks);
        let intervals = self.interval.map_or(0, |interval| ((ticks - first).max(0) + interval / 2) / interval.max(1));
        // A frame of a gap is one of them; a stream that began anew with other media times is not.
        let judged = u64::from(self.totals.frames.frames()) + 1;
        self.totals.captures = self.totals.captures.max(judged).max(u64::try_from(intervals).unwrap_or(0) + 1);
    }

    /// Gives up what is missing before the first frame held.
    fn judge_gap(&mut self, now: Instant) {
        let Some((&first, head)) = self.held.first_key_value() else { return };
        let (head_ticks, head_due) = (head.ticks, self.due(head.ticks));
        let gap = first.saturating_sub(self.expected.unwrap_or(first));
        // Of a frame of six packets one may be missing: the other five are no lost frames.
        let packets = gap.min(head.absent_before.max(1));
        self.expected = Some(first);
        self.decoder = match self.decoder {
            Decoder::Ready { since, .. } if self.params.damaged => Decoder::Ready { since, whole: false },
            _ => Decoder::NeedsKey,
        };
        self.want_key();
        let (last_ticks, last_due) = self.last.unwrap_or((head_ticks, head_due));
        let distance = (head_ticks - last_ticks).max(0);
        // As many frames as fit between the neighbours, at least one, and no more than packets are missing.
        let frames = match self.interval {
            Some(interval) => ((distance + interval / 2) / interval - 1).max(1) as u64,
            None => 1,
        };
        if frames > MAX_GAP {
            return;
        }
        let frames = frames.min(packets);
        for i in 1..=frames {
            let ticks = last_ticks + distance * i as i64 / (frames as i64 + 1);
            let due = last_due + head_due.since(last_due) * i as u32 / (frames as u32 + 1);
            let verdict = Verdict::Lost(LostFrame::Hole);
            let number = self.judged;
            let media_time = media_time(ticks);
            self.emit(now, Judged { number, media_time, due, ready: None, verdict, key: false, data: Vec::new() });
        }
    }

    /// Only a key frame helps now; one that is already here will do so without asking.
    fn want_key(&mut self) {
        self.key_wanted = !self.held.values().any(|held| held.key);
    }

    fn emit(&mut self, now: Instant, judged: Judged) {
        self.judged += 1;
        self.count(now, &judged);
        self.out.push_back(judged);
    }

    fn count(&mut self, now: Instant, judged: &Judged) {
        // A peer's clock cannot make the table longer than the run.
        let second = judged.due.min(now + self.delay()).as_nanos() / 1_000_000_000;
        let second = usize::try_from(second).unwrap_or(usize::MAX);
        if second >= self.seconds.len() {
            self.seconds.resize(second + 1, PlayoutSecond::default());
        }
        self.seconds[second].count(judged);
        self.totals.frames.count(judged);
        if matches!(judged.verdict, Verdict::InTime | Verdict::Damaged) {
            if let Some(last) = self.last_shown {
                self.totals.longest_freeze = self.totals.longest_freeze.max(judged.due.since(last));
            }
            self.last_shown = Some(judged.due);
        }
    }

    /// When a frame captured at these ticks is to be shown. Never later than `delay` after its own
    /// arrival, because the least transit is not above its own.
    fn due(&self, ticks: i64) -> Instant {
        // Something has come, or there would be nothing to ask about.
        let at = nanos(ticks).saturating_add(self.least_transit);
        Instant::from_nanos(at.clamp(0, i128::from(u64::MAX)) as u64) + self.delay()
    }
}

/// 90-kHz ticks in nanoseconds.
fn nanos(ticks: i64) -> i128 {
    i128::from(ticks) * 100_000 / 9
}

fn media_time(ticks: i64) -> Duration {
    Duration::from_nanos(u64::try_from(nanos(ticks)).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * MS)
    }

    /// Frame `number` of a 25 frames/s stream, of two packets, complete at `arrival` ms.
    fn frame(number: u64, key: bool, arrival: u64) -> ReceivedFrame {
        ReceivedFrame {
            first_sequence: 100 + 2 * number,
            last_sequence: 101 + 2 * number,
            absent_before: u64::MAX,
            timestamp_90k: (number as u32).wrapping_mul(3_600).wrapping_add(0xffff_fff0),
            data: vec![1; 100],
            key,
            via: None,
            arrival: at(arrival),
        }
    }

    fn params(delay: u64) -> PlayoutParams {
        PlayoutParams { delay: Duration::from_millis(delay), ..PlayoutParams::default() }
    }

    /// No damaged pictures.
    fn whole(delay: u64) -> PlayoutParams {
        PlayoutParams { damaged: false, ..params(delay) }
    }

    fn drain(p: &mut Playout, now: u64) -> Vec<(u64, Verdict)> {
        std::iter::from_fn(|| p.poll(at(now))).map(|j| (j.number, j.verdict)).collect()
    }

    const HOLE: Verdict = Verdict::Lost(LostFrame::Hole);
    const REFERENCE: Verdict = Verdict::Lost(LostFrame::Reference);

    #[test]
    fn a_frame_is_shown_exactly_when_due_and_not_before() {
        let mut p = Playout::new(params(200));
        p.push(frame(0, true, 300));
        assert_eq!(p.next(), at(500));
        assert_eq!(drain(&mut p, 499), []);
        assert_eq!(drain(&mut p, 500), [(0, Verdict::InTime)]);
    }

    #[test]
    fn one_millisecond_decides_between_in_time_and_late() {
        // Frame 0 sets the least transit to 300 ms. Frame 1, captured at 40 ms, is due at
        // 40 + 300 + 200 = 540 ms.
        for (arrival, verdict) in [(540, Verdict::InTime), (541, Verdict::Late)] {
            let mut p = Playout::new(params(200));
            p.push(frame(0, true, 300));
            p.push(frame(1, false, arrival));
            assert_eq!(drain(&mut p, 600), [(0, Verdict::InTime), (1, verdict)]);
        }
    }

    #[test]
    fn a_late_frame_still_serves_as_reference() {
        let mut p = Playout::new(params(100));
        p.push(frame(0, true, 300));
        p.push(frame(1, false, 460)); // due at 440
        p.push(frame(2, false, 470)); // due at 480
        assert_eq!(drain(&mut p, 480), [(0, Verdict::InTime), (1, Verdict::Late), (2, Verdict::InTime)]);
    }

    #[test]
    fn a_frame_waits_for_the_late_one_that_it_refers_to() {
        let mut p = Playout::new(params(100));
        p.push(frame(0, true, 300));
        p.push(frame(2, false, 470)); // due at 480
        p.push(frame(1, false, 485)); // came last: within the 20 ms for reordering
        assert_eq!(drain(&mut p, 485), [(0, Verdict::InTime), (1, Verdict::Late), (2, Verdict::Late)]);
    }

    #[test]
    fn after_a_hole_pictures_are_damaged_or_not_shown_until_a_key_frame() {
        for (params, after) in [(params(100), Verdict::Damaged), (whole(100), REFERENCE)] {
            let mut p = Playout::new(params);
            p.push(frame(0, true, 300));
            p.push(frame(2, false, 380));
            p.push(frame(3, true, 420));
            p.push(frame(4, false, 460));
            let verdicts = drain(&mut p, 1_000);
            assert_eq!(
                verdicts,
                [(0, Verdict::InTime), (1, HOLE), (2, after), (3, Verdict::InTime), (4, Verdict::InTime)]
            );
            let shown = p.totals().frames;
            assert_eq!((shown.in_time, shown.damaged, shown.frames()), (3, u32::from(after == Verdict::Damaged), 5));
            // From frame 0 to 2, or to 3.
            let freeze = if after == Verdict::Damaged { 80 } else { 120 };
            assert_eq!(p.totals().longest_freeze, Duration::from_millis(freeze));
        }
    }

    #[test]
    fn a_gap_is_given_up_when_the_picture_after_it_is_due_however_long_its_answer_takes() {
        // Lost packets come again, and an answer takes 300 ms: without damaged pictures the gap is awaited until 780 ms.
        for (damaged, given_up) in [(true, 480), (false, 780)] {
            let mut p = Playout::new(PlayoutParams { repair: true, damaged, ..params(100) });
            p.set_answer_time(Duration::from_millis(300));
            p.push(frame(0, true, 300));
            p.push(frame(2, false, 380));
            assert_eq!(drain(&mut p, given_up - 1), [(0, Verdict::InTime)], "{damaged}");
            assert_eq!(drain(&mut p, given_up)[0], (1, HOLE), "{damaged}");
            assert!(p.take_key_request(at(given_up)), "damage lasts until a key frame");
        }
        // A late one that overtook may still have been reordered.
        let mut p = Playout::new(params(100));
        p.push(frame(0, true, 300));
        p.push(frame(2, false, 600));
        assert_eq!(drain(&mut p, 619), [(0, Verdict::InTime)]);
        p.push(frame(1, false, 619));
        assert_eq!(drain(&mut p, 619), [(1, Verdict::Late), (2, Verdict::Late)]);
    }

    #[test]
    fn nothing_is_shown_before_the_first_key_frame() {
        let mut p = Playout::new(params(100));
        p.push(frame(0, false, 300));
        p.push(frame(1, false, 340));
        assert_eq!(drain(&mut p, 1_000), [(0, REFERENCE), (1, REFERENCE)]);
    }

    #[test]
    fn the_frames_of_a_gap_are_holes_each_at_its_own_place_in_time() {
        let mut p = Playout::new(params(100));
        p.push(frame(0, true, 300));
        p.push(frame(1, false, 340));
        p.push(frame(4, false, 460));
        let all: Vec<_> = std::iter::from_fn(|| p.poll(at(600))).collect();
        let of = |j: &Judged| (j.number, j.verdict, j.due, j.media_time.as_millis());
        // Frames are 40 ms apart, so two fit between frames 1 (due 440) and 4 (due 560).
        assert_eq!(of(&all[2]), (2, HOLE, at(480), 80));
        assert_eq!(of(&all[3]), (3, HOLE, at(520), 120));
        assert_eq!(of(&all[4]), (4, Verdict::Damaged, at(560), 160));
    }

    #[test]
    fn a_gap_holds_no_more_frames_than_packets() {
        // The encoder left pictures out: 160 ms between two frames, of which one packet is missing.
        let mut p = Playout::new(params(100));
        p.push(frame(0, true, 300));
        p.push(frame(1, false, 340));
        p.push(ReceivedFrame { first_sequence: 105, last_sequence: 106, ..frame(5, true, 500) });
        let lost = drain(&mut p, 900).iter().filter(|(_, v)| *v == HOLE).count();
        assert_eq!(lost, 1);
    }

    #[test]
    fn a_gap_holds_no_more_frames_than_packets_that_did_not_come() {
        // A low rate: the encoder left five pictures out around one of six packets, of which one is missing.
        let mut p = Playout::new(params(100));
        p.push(frame(0, true, 300));
        p.push(frame(1, false, 340));
        p.push(ReceivedFrame { first_sequence: 110, last_sequence: 110, absent_before: 1, ..frame(8, true, 620) });
        let lost = drain(&mut p, 900).iter().filter(|(_, v)| *v == HOLE).count();
        assert_eq!(lost, 1);
    }

    #[test]
    fn a_gap_is_given_up_as_soon_as_a_later_key_frame_is_due() {
        let mut p = Playout::new(PlayoutParams { reorder_wait: Duration::from_secs(5), ..whole(100) });
        p.push(frame(0, true, 300));
        p.push(frame(2, false, 380));
        p.push(frame(3, true, 420)); // due at 520
        assert_eq!(drain(&mut p, 519), [(0, Verdict::InTime)]);
        assert_eq!(drain(&mut p, 520), [(1, HOLE), (2, REFERENCE), (3, Verdict::InTime)]);
    }

    #[test]
    fn a_frame_that_nothing_overtook_is_awaited_however_long_the_blackout() {
        let mut p = Playout::new(params(100));
        p.push(frame(0, true, 300));
        assert_eq!(drain(&mut p, 3_000), [(0, Verdict::InTime)]);
        assert_eq!(p.next(), Instant::NEVER);
        p.push(frame(1, false, 3_340));
        assert_eq!(drain(&mut p, 3_340), [(1, Verdict::Late)]);
        assert!(!p.take_key_request(at(3_340)), "nothing is broken");
    }

    #[test]
    fn a_slow_first_frame_buys_no_slack_for_the_others() {
        let mut p = Playout::new(params(100));
        p.push(frame(0, true, 700)); // transit 700
        p.push(frame(1, false, 720)); // transit 680
        p.push(frame(2, false, 380 + 300)); // transit 600: the least
        // Due with 600 + 100: 700, 740, 780. Frame 0 came right then.
        assert_eq!(drain(&mut p, 740), [(0, Verdict::InTime), (1, Verdict::InTime)]);
        assert_eq!(p.next(), at(780));
    }

    #[test]
    fn a_key_frame_is_asked_for_once_per_interval_until_it_comes() {
        let mut p = Playout::new(params(100));
        p.push(frame(0, true, 300));
        p.push(frame(2, false, 380));
        assert!(!p.take_key_request(at(399)));
        drain(&mut p, 400); // 20 ms after it was overtaken
        assert!(p.take_key_request(at(400)));
        assert!(!p.take_key_request(at(400)) && !p.take_key_request(at(999)));
        assert_eq!(p.next_key_request(), at(1_000));
        assert!(p.take_key_request(at(1_000)));
        p.push(frame(20, true, 1_100));
        assert!(!p.take_key_request(at(5_000)));
        assert_eq!(p.totals().key_requests, 2);
    }

    #[test]
    fn no_key_frame_is_asked_for_when_one_is_already_here() {
        let mut p = Playout::new(params(100));
        p.push(frame(0, true, 300));
        p.push(frame(2, true, 380));
        assert_eq!(drain(&mut p, 400), [(0, Verdict::InTime), (1, HOLE)]);
        assert!(!p.take_key_request(at(400)));
        assert_eq!(p.next_key_request(), Instant::NEVER);
    }

    #[test]
    fn a_stream_joined_in_the_middle_asks_for_a_key_frame() {
        let mut p = Playout::new(params(100));
        p.push(frame(70, false, 300));
        assert_eq!(drain(&mut p, 300), [(0, REFERENCE)]);
        assert!(p.take_key_request(at(300)));
    }

    #[test]
    fn pictures_that_were_never_encoded_count_as_the_sources() {
        let mut p = Playout::new(params(100));
        // Of ten pictures in 360 ms, four were sent.
        for (n, picture) in [0_u64, 1, 5, 9].into_iter().enumerate() {
            let n = n as u64;
            p.push(ReceivedFrame { timestamp_90k: 3_600 * picture as u32, ..frame(n, n == 0, 300 + 40 * picture) });
        }
        drain(&mut p, 2_000);
        assert_eq!((p.totals().frames.in_time, p.totals().captures), (4, 10));
    }

    #[test]
    fn what_comes_after_its_verdict_is_counted_and_ignored() {
        let mut p = Playout::new(params(100));
        p.push(frame(0, true, 300));
        p.push(frame(2, false, 380));
        drain(&mut p, 500);
        p.push(frame(1, false, 501));
        p.push(frame(0, true, 502));
        assert_eq!(drain(&mut p, 9_000), []);
        assert_eq!(p.totals().again, 2);
    }

    #[test]
    fn the_end_judges_what_is_left() {
        let mut p = Playout::new(params(1_000));
        p.push(frame(0, true, 300));
        p.push(frame(2, false, 380));
        let left: Vec<_> = std::iter::from_fn(|| p.finish(at(381))).map(|j| (j.number, j.verdict)).collect();
        assert_eq!(left, [(0, Verdict::InTime), (1, HOLE), (2, Verdict::Damaged)]);
        assert_eq!(p.finish(at(400)), None);
    }

    #[test]
    fn a_second_of_the_table_holds_the_frames_due_in_it() {
        let mut p = Playout::new(params(100));
        // Transit 860: due at 960 ms (second 0), 1,000 and 1,040 ms (second 1).
        for n in 0..3 {
            p.push(frame(n, n == 0, 860 + 40 * n));
        }
        drain(&mut p, 2_000);
        let counts: Vec<_> = p.seconds().iter().map(|s| (s.in_time, s.shown_bytes.get())).collect();
        assert_eq!(counts, [(1, 100), (2, 200)]);
        assert_eq!(p.totals().longest_freeze, Duration::from_millis(40));
    }

    #[test]
    fn a_stream_that_begins_anew_is_not_half_a_million_losses() {
        let mut p = Playout::new(params(100));
        p.push(frame(0, true, 300));
        p.push(frame(1, false, 340));
        drain(&mut p, 440);
        p.push(frame(500_000, true, 500));
        assert_eq!(drain(&mut p, 5_000), [(2, Verdict::InTime)]);
        assert_eq!(p.totals().frames.lost_hole, 0);
    }

    /// The definition, without a buffer: judge all frames when everything is known. Arrivals in
    /// order, so a missing frame is simply missing.
    fn oracle(came: &[Option<u64>], keys: &[bool], delay: u64, damaged: bool) -> Vec<Verdict> {
        let mut ready: Option<u64> = None; // of the frame before; None: cannot be decoded
        let mut whole = true;
        came.iter()
            .zip(keys)
            .enumerate()
            .map(|(n, (came, &key))| {
                let Some(arrival) = *came else {
                    ready = ready.filter(|_| damaged);
                    whole = false;
                    return HOLE;
                };
                whole |= key;
                ready = if key { Some(arrival) } else { ready.map(|r| r.max(arrival)) };
                match ready {
                    None => REFERENCE,
                    Some(r) if r > n as u64 * 40 + 300 + delay => Verdict::Late,
                    Some(_) if whole => Verdict::InTime,
                    Some(_) => Verdict::Damaged,
                }
            })
            .collect()
    }

    proptest! {
        /// Over streams with losses and growing queues, polled at the instants it names, the
        /// buffer says what the definition says.
        #[test]
        fn every_frame_gets_the_verdict_of_the_definition(
            steps in prop::collection::vec((prop::bool::weighted(0.1), prop::bool::weighted(0.1), 0_u64..200), 1..100),
            delay in 0_u64..300,
            damaged: bool,
        ) {
            // Frames 0 and 1 come with the least transit (so that the interval is known before the first gap),
            // and so does the last, a key frame, so that all is judged.
            let mut previous = 340;
            let mut came = vec![Some(300), Some(340)];
            let mut keys = vec![true, false];
            for &(lost, key, queue) in &steps {
                let arrival = previous.max(came.len() as u64 * 40 + 300 + queue);
                previous = arrival;
                came.push((!lost).then_some(arrival));
                keys.push(key);
            }
            came.push(Some(previous.max(came.len() as u64 * 40 + 300)));
            keys.push(true);
            let mut p = Playout::new(PlayoutParams { damaged, ..params(delay) });
            let mut got = Vec::new();
            for (n, arrival) in came.iter().enumerate() {
                let Some(arrival) = *arrival else { continue };
                while p.next() < at(arrival) {
                    let now = p.next();
                    got.push(p.poll(now).expect("it named this instant").verdict);
                }
                p.push(frame(n as u64, keys[n], arrival));
            }
            while p.next() != Instant::NEVER {
                let now = p.next();
                got.push(p.poll(now).expect("it named this instant").verdict);
            }
            prop_assert_eq!(got, oracle(&came, &keys, delay, damaged));
        }

        /// Whatever a peer sends: frames leave in order, none is judged twice, all held ones leave, and nothing panics.
        #[test]
        fn any_input_is_judged_in_order_and_once(
            input in prop::collection::vec((0_u64..200, 0_u64..9, any::<u32>(), any::<bool>(), 0_u64..1_000), 0..200),
        ) {
            let mut p = Playout::new(params(100));
            let (mut now, mut judged, mut pushed) = (0, 0, 0_u64);
            for (first, length, timestamp_90k, key, step) in input {
                now += step;
                let (first_sequence, last_sequence) = (first, (first + length).saturating_sub(1));
                let data = vec![0; 8];
                let absent_before = first % 7;
                let (via, arrival) = (None, at(now));
                p.push(ReceivedFrame { first_sequence, last_sequence, absent_before, timestamp_90k, key, via, data, arrival });
                pushed += 1;
                while let Some(j) = p.poll(at(now)) {
                    prop_assert_eq!(j.number, judged);
                    judged += 1;
                }
                let _ = p.take_key_request(at(now));
            }
            while let Some(j) = p.finish(at(now)) {
                prop_assert_eq!(j.number, judged);
                judged += 1;
            }
            prop_assert!(p.held.is_empty());
            let t = p.totals();
            let came = judged - u64::from(t.frames.lost_hole);
            prop_assert_eq!(came + u64::from(t.again) + u64::from(t.refused), pushed);
        }
    }
}
