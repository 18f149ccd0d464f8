//! The receiver's play-out buffer: which frames a viewer would have seen.
//!
//! Frames come in as the network gives them; each leaves once, in the sender's order, with a verdict:
//! shown in time, late, or lost. No clock, no decoder: VP8 frames refer to the frame before
//! them, so whether a frame can be decoded follows from which ones came.
//!
//! ```text
//! due(n)   = capture(n) + least transit so far + delay          when frame n is to be on the screen
//! ready(n) = arrival(n)                    for a key frame
//!            max(arrival(n), ready(n-1))   for any other        when a decoder could have it
//!
//! ready <= due               in time: shown at due
//! ready >  due               late: decoded, so that later frames may refer to it, not shown
//! a packet is missing        lost (hole)
//! refers to a lost frame     lost (reference), until the next complete key frame
//! ```
//!
//! Transit is arrival minus capture on two clocks that need not agree; only its least value is
//! used, as the path without its queues. So the delay budget is what queues, pacing and
//! retransmission may take together, and a slow first frame buys no slack for the others.
//!
//! A hole is believed when a later frame has been there for [`PlayoutParams::reorder_wait`], or when a
//! later key frame goes on the screen. A frame that is only slow (blackout, long queue) stays awaited as
//! long as nothing overtakes it.

use crate::ReceivedFrame;
use fairpace_units::{Bytes, Duration, Instant};
use std::collections::BTreeMap;

/// Frames held at once; more than two minutes at 30 frames/s. Beyond that new ones are refused.
const MAX_HELD: usize = 4_096;
/// A larger gap in the frame numbers is taken as a stream that began anew, not as that many losses.
const MAX_GAP: u64 = 2_048;

/// How the receiver plays out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlayoutParams {
    /// What queues, pacing and retransmissions may take beyond the fastest transit seen.
    pub delay: Duration,
    /// How long a gap may be reordering before it is a hole; with retransmission, at least a
    /// round trip more.
    pub reorder_wait: Duration,
    /// Least time between two requests for a key frame: about a round trip, because the answer
    /// cannot be quicker.
    pub key_request_interval: Duration,
}

impl Default for PlayoutParams {
    /// 500 ms, 20 ms and 600 ms: for a path with a satellite in it, no retransmission.
    fn default() -> Self {
        PlayoutParams {
            delay: Duration::from_millis(500),
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
    /// It came, but a frame that it refers to did not.
    Reference,
}

/// What became of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// On the screen when due.
    InTime,
    /// Decoded, too late to be shown.
    Late,
    /// Never decoded.
    Lost(LostFrame),
}

/// A frame that has left the buffer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Judged {
    /// The sender's frame number.
    pub number: u64,
    /// Capture time since the first frame's; estimated between its neighbours' if nothing of the frame came.
    pub media_time: Duration,
    /// When it was to be shown.
    pub due: Instant,
    /// When a decoder had it; `None` if never.
    pub ready: Option<Instant>,
    /// What became of it.
    pub verdict: Verdict,
    /// Needs no other frame.
    pub key: bool,
    /// The frame; empty if lost by a hole.
    pub data: Vec<u8>,
}

/// One second of play-out, by due time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PlayoutSecond {
    /// Frames shown in time.
    pub in_time: u32,
    /// Frames decoded too late.
    pub late: u32,
    /// Frames with a hole.
    pub lost_hole: u32,
    /// Frames that refer to a lost one.
    pub lost_reference: u32,
    /// What the shown frames weigh.
    pub shown_bytes: Bytes,
}

impl PlayoutSecond {
    /// All frames of the second.
    pub fn frames(&self) -> u32 {
        self.in_time + self.late + self.lost_hole + self.lost_reference
    }

    fn count(&mut self, judged: &Judged) {
        match judged.verdict {
            Verdict::InTime => {
                self.in_time += 1;
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
    /// Times a key frame was asked for.
    pub key_requests: u32,
    /// Frames that came (again) after their verdict.
    pub after_verdict: u32,
    /// Frames refused because the buffer was full.
    pub refused: u32,
    /// The longest time the screen stood still, between two shown frames.
    pub longest_freeze: Duration,
}

#[derive(Debug)]
struct Held {
    /// Ticks of the media clock since the first frame, unwrapped.
    ticks: i64,
    key: bool,
    complete_at: Option<Instant>,
    first_seen: Instant,
    data: Vec<u8>,
}

/// What the decoder could take next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Decoder {
    /// Everything up to the last judged frame is decoded, since this instant.
    Ready(Instant),
    /// Only a key frame helps.
    NeedsKey,
}

/// The buffer. Events: [`push`](Playout::push). Questions: [`poll`](Playout::poll) until it gives
/// `None`, then again at [`next`](Playout::next); [`take_key_request`](Playout::take_key_request).
#[derive(Debug)]
pub struct Playout {
    params: PlayoutParams,
    held: BTreeMap<u64, Held>,
    /// The next number to be judged.
    next_number: Option<u64>,
    decoder: Decoder,
    /// The RTP timestamp and ticks of the newest frame, for unwrapping.
    newest: (u32, i64),
    /// Least arrival minus capture, in nanoseconds of the receiver's clock.
    least_transit: i128,
    /// Frame number, due and media time of the last verdict, for frames of which nothing came.
    last: Option<(u64, Instant, Duration)>,
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
            params,
            held: BTreeMap::new(),
            next_number: None,
            decoder: Decoder::NeedsKey,
            newest: (0, 0),
            least_transit: i128::MAX,
            last: None,
            last_shown: None,
            key_wanted: false,
            key_requested_at: None,
            seconds: Vec::new(),
            totals: PlayoutTotals::default(),
        }
    }

    /// A frame, or a part of one, has come. The same frame may come again with more of it.
    pub fn push(&mut self, frame: ReceivedFrame) {
        let next = match self.next_number {
            Some(next) if frame.number < next => {
                self.totals.after_verdict += 1;
                return;
            }
            Some(next) if frame.number - next <= MAX_GAP => next,
            Some(_) => {
                // Began anew: what is held belongs to the old stream and is judged no more.
                self.held.clear();
                self.decoder = Decoder::NeedsKey;
                self.last = None;
                frame.number
            }
            None => {
                self.newest = (frame.timestamp_90k, 0);
                frame.number
            }
        };
        self.next_number = Some(next);
        if self.held.len() >= MAX_HELD && !self.held.contains_key(&frame.number) {
            self.totals.refused += 1;
            return;
        }
        // Serial arithmetic against the newest: right as long as frames lie within 6.6 h.
        let ticks = self.newest.1 + i64::from(frame.timestamp_90k.wrapping_sub(self.newest.0) as i32);
        if ticks > self.newest.1 {
            self.newest = (frame.timestamp_90k, ticks);
        }
        if frame.complete {
            self.least_transit = self.least_transit.min(i128::from(frame.arrival.as_nanos()) - nanos(ticks));
            if frame.key {
                self.key_wanted = false;
            }
        }
        let held = self.held.entry(frame.number).or_insert(Held {
            ticks,
            key: frame.key,
            complete_at: None,
            first_seen: frame.arrival,
            data: Vec::new(),
        });
        if held.complete_at.is_none() && frame.complete {
            held.complete_at = Some(frame.arrival);
            held.key = frame.key;
            held.data = frame.data;
        }
    }

    /// The next frame whose fate is decided at `now`, in the sender's order.
    pub fn poll(&mut self, now: Instant) -> Option<Judged> {
        match self.decide() {
            Some((at, verdict)) if at <= now => Some(self.judge(now, verdict)),
            _ => None,
        }
    }

    /// When [`poll`](Playout::poll) will have something, if nothing else comes.
    pub fn next(&self) -> Instant {
        self.decide().map_or(Instant::NEVER, |(at, _)| at)
    }

    /// The stream is over: as [`poll`](Playout::poll), but waits for nothing.
    pub fn finish(&mut self, now: Instant) -> Option<Judged> {
        if self.held.is_empty() {
            return None;
        }
        // A frame that nothing overtook is still awaited: it will not come any more.
        let verdict = self.decide().map_or(Verdict::Lost(LostFrame::Hole), |(_, verdict)| verdict);
        Some(self.judge(now, verdict))
    }

    /// True if a PLI should go out now; at most once per interval, as long as only a key frame helps.
    pub fn take_key_request(&mut self, now: Instant) -> bool {
        let due = self.key_requested_at.is_none_or(|at| now >= at + self.params.key_request_interval);
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
            (true, Some(at)) => at + self.params.key_request_interval,
        }
    }

    /// One entry per second of the run, by due time, as far as judged.
    pub fn seconds(&self) -> &[PlayoutSecond] {
        &self.seconds
    }

    /// Everything so far.
    pub fn totals(&self) -> &PlayoutTotals {
        &self.totals
    }

    /// What happens to the next frame in order, and when; `None` while nothing says that it will not come.
    fn decide(&self) -> Option<(Instant, Verdict)> {
        let n = self.next_number?;
        let (&first, head) = self.held.first_key_value()?;
        if let (true, Some(complete_at)) = (first == n, head.complete_at) {
            let ready = match (head.key, self.decoder) {
                (true, _) => complete_at,
                (false, Decoder::Ready(before)) => complete_at.max(before),
                (false, Decoder::NeedsKey) => return Some((complete_at, Verdict::Lost(LostFrame::Reference))),
            };
            let due = self.due(head.ticks);
            return Some(if ready <= due { (due, Verdict::InTime) } else { (ready, Verdict::Late) });
        }
        // Incomplete, or nothing of it came: what overtook it says when to give it up.
        let later = || self.held.range(n + 1..).map(|(_, held)| held);
        let overtaken = later().map(|held| held.first_seen + self.params.reorder_wait).min();
        let superseded = later().filter(|held| held.key && held.complete_at.is_some()).map(|h| self.due(h.ticks)).min();
        let at = overtaken.into_iter().chain(superseded).min()?;
        Some((at, Verdict::Lost(LostFrame::Hole)))
    }

    /// Takes the next frame out with this verdict: the only place where frames leave.
    fn judge(&mut self, now: Instant, verdict: Verdict) -> Judged {
        let n = self.next_number.unwrap_or_default();
        let held = self.held.remove(&n);
        let (due, media_time) = match &held {
            Some(held) => (self.due(held.ticks), media_time(held.ticks)),
            None => self.between(n),
        };
        let before = if let Decoder::Ready(at) = self.decoder { at } else { Instant::ZERO };
        let (key, complete_at, data) =
            held.map_or((false, None, Vec::new()), |held| (held.key, held.complete_at, held.data));
        let ready = match verdict {
            Verdict::Lost(_) => None,
            _ => complete_at.map(|at| if key { at } else { at.max(before) }),
        };
        match (verdict, ready) {
            (Verdict::Lost(_), _) | (_, None) => {
                self.decoder = Decoder::NeedsKey;
                // A key frame that is already here will heal it without asking.
                self.key_wanted = !self.held.values().any(|held| held.key && held.complete_at.is_some());
            }
            (_, Some(ready)) => self.decoder = Decoder::Ready(ready),
        }
        let judged = Judged { number: n, media_time, due, ready, verdict, key, data };
        self.next_number = Some(n + 1);
        self.last = Some((n, due, media_time));
        self.count(now, &judged);
        judged
    }

    fn count(&mut self, now: Instant, judged: &Judged) {
        // A peer's clock cannot make the table longer than the run.
        let second = judged.due.min(now + self.params.delay).as_nanos() / 1_000_000_000;
        let second = usize::try_from(second).unwrap_or(usize::MAX);
        if second >= self.seconds.len() {
            self.seconds.resize(second + 1, PlayoutSecond::default());
        }
        self.seconds[second].count(judged);
        self.totals.frames.count(judged);
        if judged.verdict == Verdict::InTime {
            if let Some(last) = self.last_shown {
                self.totals.longest_freeze = self.totals.longest_freeze.max(judged.due.since(last));
            }
            self.last_shown = Some(judged.due);
        }
    }

    /// When a frame captured at these ticks is to be shown. Never later than `delay` after its own
    /// arrival, because the least transit is not above its own.
    fn due(&self, ticks: i64) -> Instant {
        let at = if self.least_transit == i128::MAX {
            // Nothing complete yet: only reached for a stream of holes.
            nanos(ticks)
        } else {
            nanos(ticks) + self.least_transit
        };
        Instant::from_nanos(at.clamp(0, i128::from(u64::MAX)) as u64) + self.params.delay
    }

    /// Due and media time of a frame of which nothing came: evenly between its neighbours.
    fn between(&self, n: u64) -> (Instant, Duration) {
        let after = self.held.first_key_value().map(|(&k, held)| (k, self.due(held.ticks), media_time(held.ticks)));
        match (self.last, after) {
            (Some((a, due_a, time_a)), Some((b, due_b, time_b))) if b > a => {
                let part = |whole: Duration| whole.mul_f64((n - a) as f64 / (b - a) as f64);
                (due_a + part(due_b.since(due_a)), time_a + part(time_b.saturating_sub(time_a)))
            }
            (Some((_, due, time)), _) | (None, Some((_, due, time))) => (due, time),
            (None, None) => (Instant::ZERO, Duration::ZERO),
        }
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

    /// Frame `number` of a 25 frames/s stream, complete at `arrival` ms.
    fn frame(number: u64, key: bool, arrival: u64) -> ReceivedFrame {
        ReceivedFrame {
            number,
            timestamp_90k: (number as u32).wrapping_mul(3_600).wrapping_add(0xffff_fff0),
            data: vec![1; 100],
            complete: true,
            key,
            arrival: at(arrival),
        }
    }

    fn params(delay: u64) -> PlayoutParams {
        PlayoutParams { delay: Duration::from_millis(delay), ..PlayoutParams::default() }
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
    fn after_a_hole_nothing_is_shown_until_a_key_frame() {
        let mut p = Playout::new(params(100));
        p.push(frame(0, true, 300));
        p.push(ReceivedFrame { complete: false, ..frame(1, false, 340) });
        p.push(frame(2, false, 380));
        p.push(frame(3, true, 420));
        p.push(frame(4, false, 460));
        let verdicts = drain(&mut p, 1_000);
        assert_eq!(
            verdicts,
            [(0, Verdict::InTime), (1, HOLE), (2, REFERENCE), (3, Verdict::InTime), (4, Verdict::InTime)]
        );
    }

    #[test]
    fn a_frame_lost_whole_is_a_hole_at_its_own_place_in_time() {
        let mut p = Playout::new(params(100));
        p.push(frame(0, true, 300));
        p.push(frame(2, false, 380));
        assert_eq!(p.poll(at(400)).map(|j| j.number), Some(0));
        let lost = p.poll(at(400)).unwrap();
        // Between frames 0 (due 400) and 2 (due 480).
        assert_eq!((lost.number, lost.verdict, lost.due), (1, HOLE, at(440)));
        assert_eq!(lost.media_time, Duration::from_millis(40));
    }

    #[test]
    fn a_frame_that_nothing_overtook_is_awaited_however_long_the_blackout() {
        let mut p = Playout::new(params(100));
        p.push(frame(0, true, 300));
        p.push(ReceivedFrame { complete: false, ..frame(1, false, 340) });
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
    fn a_stream_joined_in_the_middle_asks_for_a_key_frame() {
        let mut p = Playout::new(params(100));
        p.push(frame(70, false, 300));
        assert_eq!(drain(&mut p, 300), [(70, REFERENCE)]);
        assert!(p.take_key_request(at(300)));
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
        assert_eq!(p.totals().after_verdict, 2);
    }

    #[test]
    fn the_end_judges_what_is_left() {
        let mut p = Playout::new(params(1_000));
        p.push(frame(0, true, 300));
        p.push(ReceivedFrame { complete: false, ..frame(1, false, 340) });
        let left: Vec<_> = std::iter::from_fn(|| p.finish(at(400))).map(|j| (j.number, j.verdict)).collect();
        assert_eq!(left, [(0, Verdict::InTime), (1, HOLE)]);
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
    fn a_stream_that_begins_anew_is_not_a_million_losses() {
        let mut p = Playout::new(params(100));
        p.push(frame(0, true, 300));
        drain(&mut p, 400);
        p.push(frame(1_000_000, true, 500));
        assert_eq!(drain(&mut p, 5_000).len(), 1);
        assert_eq!(p.totals().frames.lost_hole, 0);
    }

    /// The definition, without a buffer: judge all frames when everything is known. Arrivals in
    /// order, so a missing frame is simply missing.
    fn oracle(came: &[Option<u64>], keys: &[bool], delay: u64) -> Vec<Verdict> {
        let mut ready: Option<u64> = None; // of the frame before; None: cannot be decoded
        came.iter()
            .zip(keys)
            .enumerate()
            .map(|(n, (came, &key))| {
                let Some(arrival) = *came else {
                    ready = None;
                    return HOLE;
                };
                ready = if key { Some(arrival) } else { ready.map(|r| r.max(arrival)) };
                match ready {
                    None => REFERENCE,
                    Some(r) if r <= n as u64 * 40 + 300 + delay => Verdict::InTime,
                    Some(_) => Verdict::Late,
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
        ) {
            // Frame 0 comes complete with the least transit, as does the last (so that all is judged).
            let mut previous = 300;
            let mut came = vec![Some(300)];
            let mut keys = vec![true];
            for (n, &(lost, key, queue)) in steps.iter().enumerate() {
                let arrival = previous.max((n as u64 + 1) * 40 + 300 + queue);
                previous = arrival;
                came.push((!lost).then_some(arrival));
                keys.push(key);
            }
            came.push(Some(previous.max(came.len() as u64 * 40 + 300)));
            keys.push(true);
            let mut p = Playout::new(params(delay));
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
            prop_assert_eq!(got, oracle(&came, &keys, delay));
        }

        /// Whatever a peer sends: each number is judged at most once, in order, and nothing panics.
        #[test]
        fn any_input_is_judged_in_order_and_once(
            input in prop::collection::vec((0_u64..60, any::<u32>(), any::<bool>(), any::<bool>(), 0_u64..1_000), 0..200),
        ) {
            let mut p = Playout::new(params(100));
            let (mut now, mut last) = (0, None);
            for (number, timestamp_90k, complete, key, step) in input {
                now += step;
                p.push(ReceivedFrame { number, timestamp_90k, complete, key, data: vec![0; 8], arrival: at(now) });
                while let Some(j) = p.poll(at(now)) {
                    prop_assert!(last < Some(j.number));
                    last = Some(j.number);
                }
                let _ = p.take_key_request(at(now));
            }
            while let Some(j) = p.finish(at(now)) {
                prop_assert!(last < Some(j.number));
                last = Some(j.number);
            }
            prop_assert!(p.held.is_empty());
        }
    }
}
