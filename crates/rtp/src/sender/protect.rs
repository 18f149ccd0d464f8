//! Repair packets beside the media: what was lost, how much protection follows from that, and the next repair packet.
//!
//! Losses are those of first transmissions of media, as feedback on single packets tells them: a packet is judged with the first
//! feedback that comes a round trip and what feedback takes after the packet left. Losses in a row for longer than 250 ms are
//! an outage, against which no repair packet helps, and do not count. All counts fade with a time constant of 15 s.
//!
//! Where feedback tells of no single packets, packets that are asked for again are lost, and the others are not, a round trip and what a
//! request takes after they left. Packets that were recovered before they were asked for are missing there; receiver reports count
//! them as lost, and what these count beyond the requests is added, in bursts of the same length.
//!
//! The sums are over media packets without their header extensions: with those a receiver would hold the nonces of packets that
//! it recovered, and could claim to have received them (`docs/rtp/safety.md`).

use crate::fec::{Conditions, Decision, Encoder, Plan, Protection};
use crate::header_ext::Extensions;
use crate::packet::Packet;
use crate::sent::Stream;
use fairpace_units::{Duration, Instant, Probability, RandomStream};
use std::collections::{BTreeSet, VecDeque};

/// Of the target rate, repair packets and what is sent again take at most that share.
const SHARE: f64 = 0.3;
/// Counts of losses fade by e in so long.
const MEMORY: Duration = Duration::from_secs(15);
/// Losses in a row for longer than that are an outage.
const OUTAGE: Duration = Duration::from_millis(250);
/// Before the packet rate is known, and where it is low: fewer are no outage.
const LEAST_OUTAGE: f64 = 10.0;
/// The times at which packets left are remembered so far apart, and so many.
const MARKS_APART: Duration = Duration::from_millis(20);
const MOST_MARKS: usize = 1_024;
/// Beside 5/4 of a round trip and two intervals of feedback, a packet's report may take so long.
const PATIENCE: Duration = Duration::from_millis(40);
/// Beside 5/4 of a round trip, a request may take so long: until what shows the gap arrives, and until the request is said once more.
const REQUEST_PATIENCE: Duration = Duration::from_millis(250);
/// So many requests are remembered until their packets are judged.
const MOST_ASKED: usize = 4_096;
/// Lengths of packets are averaged over so many.
const AVERAGED: f64 = 100.0;
/// The encoder's plan while nothing is protected.
const NONE: Plan = Plan { window: 1, overhead: Probability::ZERO };
/// No decision before so many packets were judged.
const LEAST_JUDGED: f64 = 50.0;

/// The path as far as the session knows it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    pub(super) srtt: Duration,
    /// Packets wait on the path: losses are its queue's then, and more packets would only make it longer.
    pub(super) is_queueing: bool,
    /// How often feedback comes.
    pub(super) feedback_interval: Duration,
    /// The receiver's play-out delay.
    pub(super) playout: Duration,
    /// Lost packets are sent again when asked for, and the receiver has asked for some.
    pub(super) repairs: bool,
    /// Feedback marks each media packet that arrived. If not, requests and receiver reports tell of losses.
    pub(super) tells_of_media: bool,
}

#[derive(Debug)]
pub(super) struct Protect {
    /// The receiver takes repair packets, and there are some.
    wanted: bool,
    protection: Protection,
    encoder: Encoder,
    random: RandomStream,
    losses: Losses,
    /// The next packet in the form that is protected.
    scratch: Vec<u8>,
    /// Mean payload of media packets and of repair packets, bytes.
    media_bytes: f64,
    repair_bytes: f64,
}

impl Protect {
    pub(super) fn new(random: RandomStream) -> Self {
        Protect {
            wanted: false,
            protection: undecided(),
            encoder: Encoder::new(NONE),
            random,
            losses: Losses::default(),
            scratch: Vec::new(),
            media_bytes: 0.0,
            repair_bytes: 0.0,
        }
    }

    /// Whether the receiver takes repair packets.
    pub(super) fn want(&mut self, wanted: bool) {
        self.wanted = wanted;
        if !wanted {
            self.protection = undecided();
            self.follow();
        }
    }

    /// The decision in force.
    pub(super) const fn decision(&self) -> Decision {
        self.protection.current()
    }

    /// Bytes of repair packets per byte of media at present: a repair packet is as long as the longest that it covers.
    pub(super) fn overhead(&self) -> f64 {
        let longer = if self.media_bytes > 0.0 { (self.repair_bytes / self.media_bytes).max(1.0) } else { 1.0 };
        self.decision().plan.map_or(0.0, |plan| plan.overhead.get() * longer)
    }

    /// Whether media packets are cut so that repair packets over them fit.
    pub(super) fn is_on(&self) -> bool {
        self.decision().plan.is_some()
    }

    /// Whether a repair packet is due.
    pub(super) fn has_data(&self) -> bool {
        self.is_on() && self.encoder.is_due()
    }

    /// A media packet leaves for the first time. `fits`: a repair packet over it is not too long.
    pub(super) fn on_media(&mut self, now: Instant, header: &Packet<'_>, payload: &[u8], count: u64, fits: bool) {
        if !self.wanted {
            return;
        }
        self.losses.on_sent(now, count, header.marker);
        average(&mut self.media_bytes, payload.len());
        if !self.is_on() || !fits {
            return;
        }
        self.scratch.clear();
        plain(header, payload, &mut self.scratch);
        // Cannot fail: the packet is shorter than what is protected, and of version 2.
        let _ = self.encoder.on_sent(&self.scratch);
    }

    /// The receiver asks for the media packet with that index.
    pub(super) fn on_asked(&mut self, index: u64) {
        if self.wanted && index >= self.losses.next && self.losses.asked.len() < MOST_ASKED {
            self.losses.asked.insert(index);
        }
    }

    /// A receiver report: of the media packets up to that index, so many are lost in all.
    pub(super) const fn on_report(&mut self, index: u64, lost: i64) {
        self.losses.reported = Some((index, lost));
    }

    /// A media packet leaves again.
    pub(super) fn on_again(&mut self) {
        self.losses.again += 1.0;
    }

    /// Appends the payload of the repair packet that is due; `false` if there is none.
    pub(super) fn write(&mut self, out: &mut Vec<u8>) -> bool {
        let before = out.len();
        let written = self.is_on() && self.encoder.poll(&mut self.random, out);
        if written {
            average(&mut self.repair_bytes, out.len() - before);
        }
        written
    }

    /// Feedback has come: judges what it tells of. Gives whether protection was switched on or off.
    pub(super) fn on_feedback(&mut self, now: Instant, facts: &Facts, media: &mut Stream) -> bool {
        if !self.wanted {
            return false;
        }
        let judged = if facts.tells_of_media {
            let patience = facts.srtt * 5 / 4 + facts.feedback_interval * 2 + PATIENCE;
            self.losses.judge(now, patience, |index| media.sent(index).map(|sent| sent.acked))
        } else {
            self.losses.judge_by_requests(now, facts.srtt * 5 / 4 + REQUEST_PATIENCE)
        };
        if !judged || self.losses.sent < LEAST_JUDGED {
            return false;
        }
        let was_on = self.is_on();
        let share = |part: f64, of: f64| Probability::new((part / of.max(1.0)).min(1.0)).unwrap_or(Probability::ZERO);
        let l = &self.losses;
        let conditions = Conditions {
            loss: if facts.is_queueing { Probability::ZERO } else { share(l.lost, l.sent) },
            burst: l.lost / l.bursts.max(1.0),
            rtt: facts.srtt,
            playout: facts.playout,
            packets_per_s: l.rate(),
            frame: l.sent / l.frames.max(1.0),
            retransmission: facts.repairs,
            sent_again: share(l.again, l.sent + l.again),
        };
        self.protection.update(now, &conditions);
        self.follow();
        if self.is_on() != was_on {
            self.encoder.clear();
        }
        self.is_on() != was_on
    }

    fn follow(&mut self) {
        self.encoder.set_plan(self.decision().plan.unwrap_or(NONE));
    }
}

/// No decision yet: nothing is protected.
fn undecided() -> Protection {
    Protection::new(Probability::new(SHARE).unwrap_or(Probability::ZERO))
}

fn average(mean: &mut f64, bytes: usize) {
    let step = if *mean == 0.0 { 1.0 } else { 1.0 / AVERAGED };
    *mean += (bytes as f64 - *mean) * step;
}

/// Appends a media packet in the form that is protected: without header extensions, contributing sources and padding.
pub(crate) fn plain(header: &Packet<'_>, payload: &[u8], out: &mut Vec<u8>) {
    Packet { extensions: Extensions::default(), payload, ..*header }.emit(out);
}

/// Counts of media packets, fading.
#[derive(Clone, Debug, Default)]
struct Losses {
    /// When packets left: the instant, and how many had left by then.
    marks: VecDeque<(Instant, u64)>,
    /// The next packet to judge.
    next: u64,
    /// Lost in a row up to there.
    run: f64,
    /// When counts faded last.
    faded: Option<Instant>,
    seconds: f64,
    sent: f64,
    lost: f64,
    bursts: f64,
    frames: f64,
    again: f64,
    /// Packets that were asked for and are not judged.
    asked: BTreeSet<u64>,
    /// The newest receiver report that is not compared: up to that index, so many are lost.
    reported: Option<(u64, i64)>,
    /// Lost by requests, and by reports beyond them, since the beginning.
    asked_in_all: i64,
    added_in_all: i64,
}

impl Losses {
    /// The media packet with the index `count` leaves.
    fn on_sent(&mut self, now: Instant, count: u64, ends_frame: bool) {
        self.frames += f64::from(u8::from(ends_frame));
        let full = self.marks.len() >= MOST_MARKS;
        match self.marks.back_mut() {
            Some((at, behind)) if now.since(*at) < MARKS_APART => *behind = count + 1,
            Some(last) if full => *last = (now, count + 1),
            _ => self.marks.push_back((now, count + 1)),
        }
    }

    /// Packets per second.
    fn rate(&self) -> f64 {
        if self.seconds > 0.0 { self.sent / self.seconds } else { 0.0 }
    }

    /// Judges as `judge` does: what was asked for is lost.
    fn judge_by_requests(&mut self, now: Instant, patience: Duration) -> bool {
        let asked = std::mem::take(&mut self.asked);
        let mut lost = 0;
        let judged = self.judge(now, patience, |index| {
            let is_lost = asked.contains(&index);
            lost += i64::from(is_lost);
            Some(!is_lost)
        });
        self.asked_in_all += lost;
        self.asked = asked;
        self.asked = self.asked.split_off(&self.next);
        if let Some((_, lost)) = self.reported.take_if(|(index, _)| *index < self.next) {
            let missing = (lost - self.asked_in_all - self.added_in_all).max(0);
            self.added_in_all += missing;
            // An outage is asked for; what is recovered is not one.
            let mean = if self.bursts > 0.0 { (self.lost / self.bursts).max(1.0) } else { 1.0 };
            self.lost += missing as f64;
            self.bursts += missing as f64 / mean;
        }
        judged
    }

    /// Judges the packets that left `patience` ago and longer, by whether they arrived (`None`: that is not known any more); `false` if
    /// there were none.
    fn judge(&mut self, now: Instant, patience: Duration, mut arrived: impl FnMut(u64) -> Option<bool>) -> bool {
        let mut behind = self.next;
        // A mark that is followed by others is complete.
        while let Some((at, end)) = self.marks.front()
            && *at + patience + MARKS_APART <= now
        {
            behind = behind.max(*end);
            self.marks.pop_front();
        }
        if behind == self.next {
            return false;
        }
        self.fade(now);
        for index in self.next..behind {
            match arrived(index) {
                Some(false) => self.run += 1.0,
                Some(true) => self.end_run(),
                None => {}
            }
        }
        self.next = behind;
        true
    }

    /// A packet has arrived.
    fn end_run(&mut self) {
        let run = std::mem::take(&mut self.run);
        self.sent += 1.0;
        if run > 0.0 && run <= LEAST_OUTAGE.max(self.rate() * OUTAGE.as_secs_f64()) {
            self.sent += run;
            self.lost += run;
            self.bursts += 1.0;
        }
    }

    fn fade(&mut self, now: Instant) {
        let span = now.since(self.faded.replace(now).unwrap_or(now)).as_secs_f64();
        let kept = libm::exp(-span / MEMORY.as_secs_f64());
        for count in
            [&mut self.seconds, &mut self.sent, &mut self.lost, &mut self.bursts, &mut self.frames, &mut self.again]
        {
            *count *= kept;
        }
        self.seconds += span;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    /// A packet each 10 ms, of which `lost` says which; judged 200 ms later.
    fn measured(packets: u64, lost: impl Fn(u64) -> bool) -> Losses {
        let (mut losses, mut stream) = (Losses::default(), Stream::new(1, 96, 0));
        for n in 0..packets {
            losses.on_sent(at(10 * n), n, n % 4 == 3);
            stream.on_sent(n, 1_000);
            if !lost(n)
                && let Some(sent) = stream.sent(n)
            {
                sent.acked = true;
            }
            losses.judge(at(10 * n), Duration::from_millis(200), |index| stream.sent(index).map(|sent| sent.acked));
        }
        losses
    }

    #[test]
    fn loss_bursts_rate_and_frames_are_measured() {
        // 60 s; two in a row of each hundred.
        let l = measured(6_000, |n| n % 100 < 2);
        let close = |found: f64, expected: f64| assert!((found / expected - 1.0).abs() < 0.1, "{found} {expected}");
        close(l.lost / l.sent, 0.02);
        close(l.lost / l.bursts, 2.0);
        close(l.rate(), 100.0);
        close(l.sent / l.frames, 4.0);
    }

    #[test]
    fn an_outage_is_no_loss() {
        // 25 packets take 250 ms.
        let l = measured(6_000, |n| n % 100 == 0 || (5_000..5_027).contains(&n));
        assert!((l.lost / l.sent - 0.01).abs() < 0.002 && l.lost / l.bursts < 1.01, "{l:?}");
        let l = measured(6_000, |n| (5_000..5_024).contains(&n));
        assert!((l.lost / l.bursts - 24.0).abs() < 8.0 || l.bursts < 1.0, "{l:?}");
        assert!(l.lost > 5.0, "{l:?}");
    }

    #[test]
    fn random_loss_is_protected_against_and_that_of_a_queue_is_not() {
        // A packet of fifty is lost; an answer takes 200 ms of the 200 that there are.
        let protects = |is_queueing| {
            let (mut protect, mut stream) = (Protect::new(RandomStream::named(1, "test")), Stream::new(1, 96, 0));
            protect.want(true);
            let (srtt, playout) = (Duration::from_millis(200), Duration::from_millis(200));
            let feedback_interval = Duration::from_millis(20);
            let facts = Facts { srtt, is_queueing, feedback_interval, playout, repairs: true, tells_of_media: true };
            for n in 0..6_000 {
                protect.losses.on_sent(at(10 * n), n, n % 4 == 3);
                stream.on_sent(n, 1_000);
                if let Some(sent) = stream.sent(n) {
                    sent.acked = n % 50 != 0;
                }
                protect.on_feedback(at(10 * n), &facts, &mut stream);
            }
            protect.is_on()
        };
        assert!(protects(false));
        assert!(!protects(true));
    }

    /// As `measured`, by requests for what `asked` says and a receiver report each 5 s of all that `lost` says.
    fn by_requests(packets: u64, lost: impl Fn(u64) -> bool, asked: impl Fn(u64) -> bool) -> Losses {
        let mut losses = Losses::default();
        let mut so_many = 0;
        for n in 0..packets {
            losses.on_sent(at(10 * n), n, n % 4 == 3);
            so_many += i64::from(lost(n));
            if lost(n) && asked(n) {
                losses.asked.insert(n);
            }
            if n % 500 == 499 {
                losses.reported = Some((n, so_many));
            }
            losses.judge_by_requests(at(10 * n), Duration::from_millis(200));
        }
        losses
    }

    #[test]
    fn where_feedback_tells_of_no_packets_requests_do_and_reports_add_what_nobody_asked_for() {
        // A report each 5 s lags, and counts fade over 15.
        let close = |found: f64, expected: f64| assert!((found / expected - 1.0).abs() < 0.2, "{found} {expected}");
        let lost = |n| n % 100 < 2;
        let all = by_requests(6_000, lost, |_| true);
        close(all.lost / all.sent, 0.02);
        close(all.lost / all.bursts, 2.0);
        assert!(all.added_in_all <= 2 && all.asked.len() <= 4, "{all:?}");
        // From 20 s on half of the bursts are recovered before they are asked for, and later all of them.
        let some = by_requests(6_000, lost, |n| n < 2_000 || n % 200 < 100);
        close(some.lost / some.sent, 0.02);
        close(some.lost / some.bursts, 2.0);
        let none = by_requests(6_000, lost, |n| n < 2_000);
        close(none.lost / none.sent, 0.02);
        close(none.lost / none.bursts, 2.0);
        // An outage of half a second is none of them, and does not come back by the reports.
        let outage = by_requests(6_000, |n| lost(n) || (5_000..5_050).contains(&n), |_| true);
        close(outage.lost / outage.sent, 0.02);
        assert!(outage.added_in_all <= 2, "{outage:?}");
    }

    #[test]
    fn the_times_that_are_remembered_are_bounded() {
        let mut losses = Losses::default();
        for n in 0..100_000 {
            losses.on_sent(at(100 * n), n, true);
        }
        assert_eq!(losses.marks.len(), MOST_MARKS);
        assert_eq!(losses.marks.back().map(|(_, end)| *end), Some(100_000));
    }
}
