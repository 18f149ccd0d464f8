//! The receiver's requests: lost packets again, and key frames.

use crate::What;
use crate::rtcp;
use fairpace_units::{Duration, Instant};
use std::collections::BTreeMap;

/// A key frame is asked for at most this often: an answer takes a round trip and the time to encode it.
const KEY_FRAME_REQUEST_SPACING: Duration = Duration::from_millis(300);
/// A gap this young may be reordering.
const REORDERING: Duration = Duration::from_millis(10);
const FIRST_NACK_RTT: Duration = Duration::from_millis(300);
const MOST_NACKS: u8 = 4;
const MOST_MISSING: usize = 512;

#[derive(Clone, Copy, Debug)]
struct Missing {
    since: Instant,
    tries: u8,
    next: Instant,
    asked: Option<Instant>,
}

#[derive(Debug)]
pub(super) struct Requests {
    /// Ask for lost packets, and give up asking for one after so long.
    nack: Option<Duration>,
    missing: BTreeMap<u64, Missing>,
    /// How long an answer takes.
    rtt: Duration,
    key_frame_wanted: bool,
    last_key_request: Option<Instant>,
    scratch: Vec<u16>,
}

impl Requests {
    pub(super) const fn new(nack: Option<Duration>) -> Self {
        Requests {
            nack,
            missing: BTreeMap::new(),
            rtt: FIRST_NACK_RTT,
            key_frame_wanted: false,
            last_key_request: None,
            scratch: Vec::new(),
        }
    }

    /// The sender has gone.
    pub(super) fn forget(&mut self) {
        self.missing.clear();
        self.key_frame_wanted = false;
    }

    /// Another stream, or the same one anew.
    pub(super) fn restart(&mut self) {
        self.missing.clear();
    }

    pub(super) const fn want_key_frame(&mut self) {
        self.key_frame_wanted = true;
    }

    /// Media packet `sequence` has arrived, where `highest` was the highest so far.
    pub(super) fn on_media(&mut self, now: Instant, highest: u64, sequence: u64) {
        if self.nack.is_none() {
            return;
        }
        self.missing.remove(&sequence);
        for lost in (highest + 1).max(sequence.saturating_sub(MOST_MISSING as u64))..sequence {
            let m = Missing { since: now, tries: 0, next: now + REORDERING, asked: None };
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
            self.rtt = (self.rtt * 7 + now.since(asked)) / 8;
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
            let (deadline, rtt) = (self.nack.unwrap_or(Duration::ZERO), self.rtt);
            self.missing.retain(|_, m| now.since(m.since) < deadline && (m.tries < MOST_NACKS || m.next > now));
            for (sequence, m) in self.missing.iter_mut().filter(|(_, m)| m.next <= now) {
                m.tries += 1;
                m.asked = Some(now);
                // A retry before the answer can be there would fetch it twice.
                m.next = now + (rtt * 5 / 4).max(REORDERING) * u32::from(m.tries);
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
