//! The receiver's requests: lost packets again, and key frames.

use crate::What;
use crate::rtcp;
use fairpace_control::rtt::RttParams;
use fairpace_control::{RtoParams, RttEstimator};
use fairpace_units::{Duration, Instant};
use std::collections::BTreeMap;

/// A key frame is asked for at most this often: an answer takes a round trip and the time to encode it.
const KEY_FRAME_REQUEST_SPACING: Duration = Duration::from_millis(300);
/// A gap this young may be reordering.
const REORDERING: Duration = Duration::from_millis(10);
/// How an answer's delay is estimated: as a round trip is [RFC 6298], but for the least and the first timeout.
const ANSWER: RtoParams = RtoParams {
    min: Duration::from_millis(20),
    max: Duration::from_secs(2),
    granularity: Duration::from_millis(10),
    srtt_factor: 1.0,
    var_factor: 4.0,
    initial: Duration::from_secs(1),
    backoff: false,
};
/// A first answer says more of the next than a first round trip does: most of it is the path's delay.
fn answers() -> RttEstimator {
    RttEstimator::new(RttParams { initial_var: 0.125, ..RttParams::default() })
}
/// A request is said twice, so far apart: the sender hears both as one.
const REPEATED: Duration = Duration::from_millis(20);
const MOST_MISSING: usize = 512;
/// Each packet that arrives pays for so many missing ones, and what was not spent is kept up to [`MOST_MISSING`]: an outage is
/// asked for at once, but numbers that leap at every packet make no packet dear.
const MISSING_PER_PACKET: usize = 16;

#[derive(Clone, Copy, Debug)]
struct Missing {
    since: Instant,
    tries: u8,
    next: Instant,
    asked: Option<Instant>,
    /// The last request is to be said again, because it may be lost.
    again: bool,
}

#[derive(Debug)]
pub(super) struct Requests {
    /// Ask for lost packets, and give up asking for one after so long.
    nack: Option<Duration>,
    missing: BTreeMap<u64, Missing>,
    /// Missing packets that may be taken down now.
    credit: usize,
    /// How long an answer takes.
    answer: RttEstimator,
    key_frame_wanted: bool,
    last_key_request: Option<Instant>,
    scratch: Vec<u16>,
}

impl Requests {
    pub(super) fn new(nack: Option<Duration>) -> Self {
        Requests {
            nack,
            missing: BTreeMap::new(),
            credit: MOST_MISSING,
            answer: answers(),
            key_frame_wanted: false,
            last_key_request: None,
            scratch: Vec::new(),
        }
    }

    /// The sender has gone.
    pub(super) fn forget(&mut self) {
        self.missing.clear();
        self.key_frame_wanted = false;
        self.answer = answers();
    }

    /// Another stream, or the same one anew.
    pub(super) fn restart(&mut self) {
        self.missing.clear();
    }

    pub(super) const fn want_key_frame(&mut self) {
        self.key_frame_wanted = true;
    }

    /// From now on a packet is asked for until it has been missing for so long.
    pub(super) fn set_patience(&mut self, patience: Duration) {
        self.nack = self.nack.map(|_| patience);
    }

    /// Media packets before that number are of no use any more.
    pub(super) fn forget_before(&mut self, sequence: u64) {
        if self.missing.first_key_value().is_some_and(|(first, _)| *first < sequence) {
            self.missing = self.missing.split_off(&sequence);
        }
    }

    /// The round trip, as far as answers have shown it.
    pub(super) fn rtt(&self) -> Option<Duration> {
        self.answer.srtt()
    }

    /// The sender's first media has come so long after our echo: a round trip and a little.
    pub(super) fn on_first_media(&mut self, elapsed: Duration) {
        if self.answer.srtt().is_none() {
            self.answer.update(elapsed);
        }
    }

    /// Media packet `sequence` has arrived, where `highest` was the highest so far.
    pub(super) fn on_media(&mut self, now: Instant, highest: u64, sequence: u64) {
        if self.nack.is_none() {
            return;
        }
        self.missing.remove(&sequence);
        self.credit = self.credit.saturating_add(MISSING_PER_PACKET).min(MOST_MISSING);
        let first = highest.saturating_add(1).max(sequence.saturating_sub(self.credit as u64));
        for lost in first..sequence {
            self.credit = self.credit.saturating_sub(1);
            let m = Missing { since: now, tries: 0, next: now + REORDERING, asked: None, again: false };
            self.missing.insert(lost, m);
        }
        while self.missing.len() > MOST_MISSING {
            self.missing.pop_first();
        }
    }

    /// Packet `sequence` has come as a retransmission.
    pub(super) fn on_repaired(&mut self, now: Instant, sequence: u64) {
        if let Some(m) = self.missing.remove(&sequence)
            && let (1, Some(asked)) = (m.tries, m.asked)
        {
            // Karn's rule: only an answer to a single question measures a round trip.
            self.answer.update(now.since(asked));
        }
    }

    /// Writes the request that is due about stream `media`.
    pub(super) fn poll(&mut self, now: Instant, ssrc: u32, media: u32, out: &mut Vec<u8>) -> Option<What> {
        if self.key_frame_wanted && self.last_key_request.is_none_or(|at| now.since(at) >= KEY_FRAME_REQUEST_SPACING) {
            self.key_frame_wanted = false;
            self.last_key_request = Some(now);
            out.clear();
            rtcp::emit_picture_loss(out, ssrc, media);
            return Some(What::KeyFrameRequest);
        }
        if self.missing.values().any(|m| m.next <= now) {
            self.scratch.clear();
            let (patience, timeout) = (self.nack.unwrap_or(Duration::ZERO), self.answer.rto(&ANSWER));
            self.missing.retain(|_, m| now.since(m.since) < patience);
            for (sequence, m) in self.missing.iter_mut().filter(|(_, m)| m.next <= now) {
                m.again = !m.again;
                if m.again {
                    m.tries = m.tries.saturating_add(1);
                    m.asked = Some(now);
                    m.next = now + REPEATED;
                } else {
                    // A retry before the answer can be there would fetch it twice.
                    m.next = now + timeout;
                }
                self.scratch.push(*sequence as u16);
            }
            if !self.scratch.is_empty() {
                out.clear();
                rtcp::emit_nack(out, ssrc, media, &self.scratch);
                return Some(What::Nack);
            }
        }
        None
    }

    /// When a request is due.
    pub(super) fn next(&self) -> Instant {
        let key_frame = match (self.key_frame_wanted, self.last_key_request) {
            (true, Some(last)) => last + KEY_FRAME_REQUEST_SPACING,
            _ => Instant::NEVER,
        };
        self.missing.values().fold(key_frame, |t, m| t.min(m.next))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Work is what is taken down: each number is put in once and taken out once.
    #[test]
    fn numbers_that_leap_at_every_packet_are_taken_down_in_bounded_numbers() {
        let mut requests = Requests::new(Some(Duration::from_secs(1)));
        let (mut highest, mut taken_down) = (10_000, 0);
        for _ in 0..1_000 {
            let sequence = highest + 2_900;
            requests.on_media(Instant::ZERO, highest, sequence);
            taken_down += requests.missing.range(highest..sequence).count();
            highest = sequence;
        }
        assert!(taken_down <= 512 + 16 * 1_000, "{taken_down}");
        assert_eq!(requests.missing.len(), 512);
    }

    #[test]
    fn the_end_of_an_outage_is_asked_for_at_once_and_again_after_thirty_two_packets() {
        let mut requests = Requests::new(Some(Duration::from_secs(1)));
        let mut outage = |from: u64, length: u64| {
            requests.on_media(Instant::ZERO, from, from + length + 1);
            requests.missing.range(from..).count()
        };
        assert_eq!(outage(1_000, 600), 512);
        assert_eq!(outage(2_000, 600), 16, "the credit is spent");
        for n in 0..31 {
            assert_eq!(outage(3_000 + n, 0), 0);
        }
        assert_eq!(outage(4_000, 600), 512);
    }
}
