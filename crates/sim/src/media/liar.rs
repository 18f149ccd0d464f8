//! Receivers that lie, to see what their senders make of it. `docs/sim/liars.md` has the table.
//!
//! A liar sits between what arrives and the honest machinery: it adds arrivals that never were,
//! changes what feedback says, or sends it again. A liar knows its own memory and nothing else, except that it takes
//! the RTT to be twice the one-way delay, which no receiver knows so well.

use std::collections::{BTreeSet, VecDeque};

use fairpace_control::{Arrival, RateReport, ReceiverReport};
use fairpace_units::{Duration, Instant, Kind, QsNonce, QsRate, QsResponse, RandomStream};

use crate::config::ReceiverBehaviour;
use crate::packet::Outgoing;

/// Numbers that one packet can make it claim at most.
const MOST_CLAIMS: u64 = 10_000;

/// Claims remembered in case they come true.
const MOST_REMEMBERED: usize = 65_536;

/// Feedback kept to be sent again: the first so much of it, from when the flow was fast.
const MOST_KEPT: usize = 256;

/// How far ahead of what it got an inventor's numbers lie: far beyond what is in flight.
const INVENTED_AHEAD: u64 = 1 << 20;

/// Copies of each feedback packet in a flood.
const FLOOD: u32 = 100;

/// An RTCP report, and the sender's report that it answers: when that left, and for how long the answer was held (LSR,
/// DLSR).
#[derive(Clone, Copy)]
pub(super) struct SentReport {
    pub(super) report: ReceiverReport,
    pub(super) echo: Option<(Instant, Duration)>,
}

/// The memory of a liar. Numbers are counted per kind.
pub(super) struct Liar {
    behaviour: ReceiverBehaviour,
    /// The receiver reports its measurements, and acknowledges nothing.
    reports: bool,
    /// The lowest number neither received nor claimed so far; `None` before the first packet.
    next: [Option<u64>; 2],
    /// Claimed, not received (yet).
    claimed: BTreeSet<(u8, u64)>,
    /// Share of a packet that it has yet to claim.
    owed: f64,
    /// Twice the last one-way delay, and the arrivals within it: as many as are in flight.
    rtt: Duration,
    recent: [VecDeque<Instant>; 2],
    kept: Vec<Outgoing>,
    replayed: usize,
    again: Option<(Outgoing, u32)>,
    guesses: RandomStream,
}

impl Liar {
    /// `None` if it is honest.
    pub(super) fn new(behaviour: ReceiverBehaviour, reports: bool, seed: u64) -> Option<Box<Liar>> {
        (behaviour != ReceiverBehaviour::Honest).then(|| {
            Box::new(Liar {
                behaviour,
                reports,
                next: [None; 2],
                claimed: BTreeSet::new(),
                owed: 0.0,
                rtt: Duration::ZERO,
                recent: [VecDeque::new(), VecDeque::new()],
                kept: Vec::new(),
                replayed: 0,
                again: None,
                guesses: RandomStream::named(seed, "liar.guesses"),
            })
        })
    }

    /// A packet has arrived that left at `sent_at`: which arrivals to show to the honest part, in
    /// order.
    pub(super) fn on_packet(&mut self, now: Instant, arrival: &Arrival, sent_at: Instant) -> Vec<Arrival> {
        let kind = arrival.kind as usize;
        self.rtt = now.since(sent_at) * 2;
        let recent = &mut self.recent[kind];
        recent.push_back(now);
        while recent.front().is_some_and(|at| now.since(*at) > self.rtt) {
            recent.pop_front();
        }
        if self.claimed.remove(&(kind as u8, arrival.seq)) {
            // Again: perhaps it had not even left when it was claimed.
            return vec![*arrival];
        }
        let next = self.next[kind].unwrap_or(arrival.seq);
        let missing = next.max(arrival.seq.saturating_sub(MOST_CLAIMS))..arrival.seq;
        self.next[kind] = Some(next.max(arrival.seq + 1));
        let mut shown = Vec::new();
        match self.behaviour {
            ReceiverBehaviour::HideLosses { share } => {
                for seq in missing {
                    self.owed += share;
                    if self.owed >= 1.0 {
                        self.owed -= 1.0;
                        shown.push(self.claim(arrival, seq));
                    }
                }
                shown.push(*arrival);
            }
            ReceiverBehaviour::EarlyAcks { factor } if !self.reports => {
                shown.push(*arrival);
                // To look `factor` times as near, a packet must be acknowledged so many before it is here.
                let ahead = (self.recent[kind].len() as f64 * (1.0 - 1.0 / factor)) as u64;
                let from = next.max(arrival.seq + 1);
                let to = (arrival.seq + 1 + ahead).min(from + MOST_CLAIMS);
                shown.extend((from..to).map(|seq| self.claim(arrival, seq)));
                self.next[kind] = Some(from.max(to));
            }
            ReceiverBehaviour::Invented if !self.reports => {
                shown.push(*arrival);
                shown.push(self.claim(arrival, arrival.seq.saturating_add(INVENTED_AHEAD)));
            }
            _ => shown.push(*arrival),
        }
        shown
    }

    fn claim(&mut self, like: &Arrival, seq: u64) -> Arrival {
        self.claimed.insert((like.kind as u8, seq));
        if self.claimed.len() > MOST_REMEMBERED {
            self.claimed.pop_first();
        }
        Arrival { seq, ..*like }
    }

    /// Whether it holds every packet that it acknowledges there.
    pub(super) fn holds(&self, acks: impl IntoIterator<Item = (Kind, u64)>) -> bool {
        acks.into_iter().all(|(kind, seq)| !self.claimed.contains(&(kind as u8, seq)))
    }

    /// The lie about how long feedback was held: the time added to the true one.
    pub(super) fn extra_delay(&self) -> Duration {
        match self.behaviour {
            ReceiverBehaviour::LieDelay { share } => Duration::from_secs_f64(self.rtt.as_secs_f64() * share),
            _ => Duration::ZERO,
        }
    }

    /// The answer to a Quick-Start request, falsified if this liar raises rates.
    pub(super) fn raise(&mut self, response: QsResponse) -> QsResponse {
        let ReceiverBehaviour::RaiseQuickStart { steps } = self.behaviour else { return response };
        let code = (response.rate.code() + steps).min(QsRate::MAX.code());
        let rate = QsRate::from_code(code).unwrap_or(QsRate::MAX);
        // The pairs of the rates between were made anew by whoever lowered it: as `lowered` does.
        let nonce = QsNonce::new(self.guesses.bits() as u32);
        QsResponse { rate, nonce: response.nonce.lowered(rate, response.rate, nonce.get()), ..response }
    }

    /// Falsifies a report.
    pub(super) fn embellish(&self, now: Instant, report: &mut RateReport) {
        match self.behaviour {
            ReceiverBehaviour::InflateRate { factor } => report.received_rate = report.received_rate * factor,
            ReceiverBehaviour::ZeroLossReports => report.loss_event_rate = 0.0,
            ReceiverBehaviour::LieDelay { .. } => report.delay += self.extra_delay(),
            // The report echoes a packet that has left and not come, as if the path were so much shorter.
            ReceiverBehaviour::EarlyAcks { factor } => {
                report.echoed += Duration::from_secs_f64(self.rtt.as_secs_f64() * (1.0 - 1.0 / factor));
            }
            ReceiverBehaviour::Invented => report.echoed = now + Duration::from_secs(10),
            _ => {}
        }
    }

    /// The same of an RTCP report that is all the feedback there is.
    pub(super) fn embellish_receiver_report(&self, told: &mut SentReport) {
        let report = &mut told.report;
        match self.behaviour {
            ReceiverBehaviour::InflateRate { factor } => report.bottleneck = report.bottleneck.map(|b| b * factor),
            ReceiverBehaviour::ZeroLossReports => (report.fraction_lost, report.lost) = (0.0, Some(0)),
            ReceiverBehaviour::LieDelay { .. } => {
                told.echo = told.echo.map(|(left, held)| (left, held + self.extra_delay()));
            }
            // As if the sender's report had left later.
            ReceiverBehaviour::EarlyAcks { factor } => {
                let shorter = Duration::from_secs_f64(self.rtt.as_secs_f64() * (1.0 - 1.0 / factor));
                told.echo = told.echo.map(|(left, held)| (left + shorter, held));
            }
            ReceiverBehaviour::Invented => report.highest_seq = report.highest_seq.saturating_add(INVENTED_AHEAD),
            _ => {}
        }
    }

    /// Feedback that is sent once more, if any is.
    pub(super) fn repeat(&mut self) -> Option<Outgoing> {
        let (feedback, left) = self.again.as_mut()?;
        let feedback = *feedback;
        *left -= 1;
        if *left == 0 {
            self.again = None;
        }
        Some(feedback)
    }

    /// This feedback leaves.
    pub(super) fn on_feedback(&mut self, feedback: Outgoing) {
        match self.behaviour {
            ReceiverBehaviour::Flood => self.again = Some((feedback, FLOOD - 1)),
            ReceiverBehaviour::Replay => {
                if self.kept.len() < MOST_KEPT {
                    self.kept.push(feedback);
                }
                self.again = Some((self.kept[self.replayed % self.kept.len()], 1));
                self.replayed += 1;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_raised_answer_keeps_the_nonce_below_and_guesses_two_bits_for_each_step() {
        let answer = QsResponse { rate: QsRate::from_code(2).unwrap(), ttl_diff: 9, nonce: QsNonce::new(0b1010) };
        let mut liar = Liar::new(ReceiverBehaviour::RaiseQuickStart { steps: 3 }, true, 1).unwrap();
        let raised: Vec<_> = (0..4_096).map(|_| liar.raise(answer)).collect();
        let right = |bits: u32| raised.iter().filter(|r| r.nonce.get() & 0x3ff == bits << 4 | 0b1010).count();
        for r in &raised {
            assert_eq!((r.rate.code(), r.ttl_diff, r.nonce.get() & 0xf, r.nonce.get() >> 10), (5, 9, 0b1010, 0));
        }
        // Each of 64 guesses 64 times, with a standard deviation of 8.
        for bits in [0, 21, 63] {
            assert!(right(bits).abs_diff(64) < 32, "{bits}: {}", right(bits));
        }
        let most = liar.raise(QsResponse { rate: QsRate::from_code(14).unwrap(), ..answer });
        assert_eq!(most.rate, QsRate::MAX);
    }
}
