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
//! picture that was decoded from the wrong one is nearer to the truth than one that stands. The key frame that ends the damage is
//! asked for before: as soon as no answer to a request can fill the hole in time. A frame that is only slow
//! (blackout, long queue) stays awaited as long as nothing overtakes it.

mod delay;

use crate::ReceivedFrame;
pub use delay::Adaptive;
use delay::AdaptiveDelay;
use fairpace_units::{Bytes, Duration, Instant};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;

/// Frames held at once; more than two minutes at 30 frames/s. Beyond that new ones are refused.
const MAX_HELD: usize = 4_096;
/// A gap of more frames is taken as a stream that began anew, not as that many losses.
const MAX_GAP: u64 = 2_048;

/// Time of an answer beyond its usual one and an eighth: the request leaves 10 ms after the gap is seen, and again after
/// 20 ms; an answer's copy 30 ms after it.
const ANSWER_MARGIN: Duration = Duration::from_millis(50);

/// A gap that looks past repair may be filled all the same, by a repair packet or a slow answer, and the key frame was in vain: one
/// is asked for before the verdict only if that is so much sooner. Measured over 200 ms with 1 % lost at random and a play-out that
/// adapts (0.38 s): 98.2 % of the pictures whole, as without asking early; with 0 or 120 ms here 97.8 %.
const WORTH_ASKING: Duration = Duration::from_millis(200);

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
    /// Pictures that the source took from the first frame judged to the last, by the media times and the time between two pictures that
    /// the sender tells, or the least distance of two frames if that is less: those that were never encoded, or never sent, are among them.
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
    /// The first packet from `expected` on that no frame held has: the frames held behind it are behind a gap.
    gap: u64,
    decoder: Decoder,
    /// The RTP timestamp and ticks of the newest frame, for unwrapping.
    newest: Option<(u32, i64)>,
    /// Least arrival minus capture, in nanoseconds of the receiver's clock.
    least_transit: i128,
    /// The frame interval, in ticks: as the sender told it, or the least distance of two neighbouring frames if that is less.
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
            gap: 0,
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
        let expected = self.expected.unwrap_or(frame.first_sequence);
        if self.expected.is_none() {
            (self.expected, self.gap) = (Some(expected), expected);
        }
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
        self.close_gap(first_sequence);
    }

    /// Moves the gap behind the frames held from that packet on, as far as they close it.
    fn close_gap(&mut self, from: u64) {
        for (&first, held) in self.held.range(from..) {
            if first > self.gap {
                return;
            }
            self.gap = self.gap.max(held.last_sequence.saturating_add(1));
        }
    }

    /// A request for a lost packet and its answer take so long.
    pub fn set_answer_time(&mut self, answer: Duration) {
        self.answer = Some(answer);
        if let Some(adaptive) = self.adaptive.as_mut().filter(|_| self.params.repair) {
            adaptive.set_answer(answer);
        }
    }

    /// The time between two pictures of the source, as the sender says. Two frames that are closer prove less.
    pub fn set_frame_interval(&mut self, interval: Duration) {
        let ticks = (interval.as_nanos() * 9 + 50_000) / 100_000;
        if let Some(told) = i64::try_from(ticks).ok().filter(|ticks| *ticks > 0) {
            self.interval = Some(self.interval.map_or(told, |least| least.min(told)));
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

    /// True if a PLI should go out now; at most once per interval, as long as only a key frame helps, or as a gap is there
    /// that no answer fills in time any more.
    pub fn take_key_request(&mut self, now: Instant) -> bool {
        if now < self.next_key_request() {
            return false;
        }
        self.key_requested_at = Some(now);
        self.totals.key_requests += 1;
        true
    }

    /// When [`take_key_request`](Playout::take_key_request) may say yes again; never if no key frame is wanted.
    pub fn next_key_request(&self) -> Instant {
        let wanted = if self.key_wanted { Some(Instant::ZERO) } else { self.past_repair() };
        let again = self.key_requested_at.map_or(Instant::ZERO, |at| at + self.key_request_interval());
        wanted.map_or(Instant::NEVER, |wanted| wanted.max(again))
    }

    /// When the first gap among the frames held is past repair: the last answer that could fill it before the picture after
    /// it is due would have been here. At once, but for reordering, where no answer can be in time: the damage lasts until a
    /// key frame, and that is here sooner by all that it is asked for sooner. `None` without a gap, where nothing is asked for
    /// again, where a key frame has come behind the gap, and where the verdict is as near.
    fn past_repair(&self) -> Option<Instant> {
        let answer = self.answer.filter(|_| self.params.repair)?;
        let mut behind = self.held.range((Bound::Excluded(self.gap), Bound::Unbounded)).map(|(_, held)| held);
        let head = behind.next()?;
        let (mut noticed, mut key) = (head.arrival, head.key);
        for held in behind {
            (noticed, key) = (noticed.min(held.arrival), key || held.key);
        }
        let one = answer + answer / 8 + ANSWER_MARGIN;
        let left = self.due(head.ticks).since(noticed);
        let wait = match u32::try_from(left.as_nanos() / one.as_nanos().max(1)).unwrap_or(u32::MAX) {
            0 if left < answer => self.params.reorder_wait,
            // One answer may be in time, at the last moment.
            0 => return None,
            answers => one.saturating_mul(answers),
        };
        (!key && left >= wait + WORTH_ASKING).then(|| noticed + wait)
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
        if let Some(adaptive) = &mut self.adaptive {
            let passed = self.last.map_or(0, |(before, _)| (held.ticks - before).max(0));
            match ready {
                Some(ready) => adaptive.on_frame((ready + adaptive.delay()).since(due), media_time(passed)),
                None => adaptive.on_missing(),
            }
        }
        self.last = Some((held.ticks, due));
        // Frames that claim the same packets are nonsense of the peer's.
        while self.held.first_key_value().is_some_and(|(&first, _)| first <= held.last_sequence) {
            self.held.pop_first();
            self.totals.refused += 1;
            self.gap = held.last_sequence.saturating_add(1);
        }
        self.close_gap(self.gap);
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
        (self.expected, self.gap) = (Some(first), first);
        self.close_gap(first);
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
mod tests;
