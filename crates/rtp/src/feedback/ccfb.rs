//! An acknowledgement of every packet: RFC 8888 ([`wire`]), with claims that prove it ([`super::claim`]).

pub mod wire;

use self::wire::{Metric, Report};
use super::trust::PeerClock;
use super::{Attached, Envelope, Heard, Lent, Proof, Refusal, Seen};
use crate::feedback::claim::{self, Claim};
use crate::ntp;
use crate::receiver::sources::Sources;
use crate::sent::Lookup;
use fairpace_control::Ack;
use fairpace_units::{Class, Dscp, Duration, Instant, Kind};
use std::collections::VecDeque;

/// Metrics in one block, and bytes of one feedback datagram: fits any path of 1,280 B.
const MOST_METRICS: u64 = 480;
pub(crate) const MOST_FEEDBACK: usize = 1_200;

/// The sender's end.
#[derive(Debug, Default)]
pub(crate) struct Sender {
    clock: PeerClock,
    acks: Vec<Ack>,
}

impl Sender {
    pub(crate) fn on_report(
        &mut self,
        report: &Report<'_>,
        attached: &mut Attached<'_>,
        lent: Lent<'_>,
    ) -> Result<Heard<'_>, Refusal> {
        let Lent { trust, streams, .. } = lent;
        trust.check_peer(report.reporter)?;
        let claims = attached.claims.take();
        let proven = claims.is_some();
        if trust.check_nonces || claims.is_some() {
            let claims = claims.filter(|c| trust.is_peer(c.receiver)).ok_or(Refusal::Unproven)?;
            trust.check_number(claims.number)?;
            let mut proofs = claims.claims();
            for block in report.blocks() {
                let claim = proofs.next().ok_or(Refusal::Unproven)?;
                let (_, stream) = streams.by_ssrc(block.ssrc).ok_or(Refusal::WrongSsrc)?;
                let told = block.metrics().filter(|(_, metric)| *metric != Metric::NotReceived);
                let told = told.map(|(sequence, _)| stream.index(sequence));
                let claimed = trust.claimed(block.ssrc, stream.index(block.begin), told);
                trust.judge(claimed, claim.nonce_sum, false, streams)?;
            }
            trust.accept(claims.number);
        }
        trust.forgive();
        let reported_at = self.clock.unwrap(report.timestamp);
        self.acks.clear();
        for block in report.blocks() {
            let Some((kind, stream)) = streams.by_ssrc(block.ssrc) else { continue };
            for (sequence, metric) in block.metrics() {
                let Metric::Received { ecn, .. } = metric else { continue };
                let Lookup::Known(sent) = stream.lookup(sequence) else { continue };
                if core::mem::replace(&mut sent.acked, true) {
                    continue; // told before: reports overlap
                }
                let offset = metric.offset();
                self.acks.push(Ack {
                    kind,
                    seq: sent.number,
                    ecn,
                    arrived_at: offset.and_then(|o| ntp::from_65536ths(reported_at).checked_sub(o)),
                    // An unknown delay must not become an RTT: longer than any round trip, it is not believed.
                    ack_delay: offset.unwrap_or(Duration::MAX),
                });
            }
        }
        self.acks.sort_unstable_by_key(|a| (a.kind, a.seq));
        let mut seen: Seen = [None; 4];
        let claims = claims.iter().flat_map(|c| c.claims());
        for (slot, (block, claim)) in seen.iter_mut().zip(report.blocks().zip(claims)) {
            let low = matches!(streams.by_ssrc(block.ssrc), Some((Kind::Dummy, _)));
            *slot = Some((if low { Class::Low } else { Class::Normal }, claim.dscp));
        }
        let made_at = Some(ntp::from_65536ths(reported_at));
        let (message, proof) = Proof::of_acks(proven, &self.acks, made_at);
        Ok(Heard { untold: &[], message, proof, seen, reporter: report.reporter })
    }
}

/// A class's feedback.
#[derive(Debug)]
struct ClassFeedback {
    class: Class,
    due: Instant,
    last: Option<Instant>,
    /// Ranges still to be told: SSRC, from, to (inclusive).
    jobs: VecDeque<(u32, u64, u64)>,
}

/// The receiver's end: what is told of each packet, in the class that the packet came in.
#[derive(Debug)]
pub(crate) struct Receiver {
    interval: Duration,
    repeats: usize,
    classes: [ClassFeedback; 2],
}

impl Receiver {
    /// One report each `interval`; each packet in `repeats` of them.
    pub(crate) fn new(interval: Duration, repeats: usize) -> Self {
        let class = |class| ClassFeedback { class, due: Instant::NEVER, last: None, jobs: VecDeque::new() };
        Receiver { interval, repeats, classes: [class(Class::Normal), class(Class::Low)] }
    }

    /// The sender has gone.
    pub(crate) fn forget(&mut self) {
        for f in &mut self.classes {
            f.due = Instant::NEVER;
            f.jobs.clear();
        }
    }

    /// A packet has arrived in that class.
    pub(crate) fn on_packet(&mut self, now: Instant, class: Class) {
        if let Some(f) = self.classes.iter_mut().find(|f| f.class == class) {
            let due = f.last.map_or(now, |last| (last + self.interval).max(now));
            f.due = f.due.min(due);
        }
    }

    pub(crate) fn next(&self) -> Instant {
        self.classes.iter().fold(Instant::NEVER, |t, f| t.min(f.due))
    }

    /// Writes the next feedback that is due; gives the code point to send it with.
    pub(crate) fn poll(
        &mut self,
        now: Instant,
        sources: &mut Sources,
        envelope: &mut Envelope<'_>,
        out: &mut Vec<u8>,
    ) -> Option<Dscp> {
        for f in &mut self.classes {
            if f.jobs.is_empty() {
                if now < f.due {
                    continue;
                }
                f.due = Instant::NEVER;
                f.last = Some(now);
                for (role, source) in sources.valid_mut() {
                    if role.class() != f.class || !source.has_news() {
                        continue;
                    }
                    if let Some((mut from, to)) = source.take_range(self.repeats) {
                        while from <= to {
                            let end = to.min(from + MOST_METRICS - 1);
                            f.jobs.push_back((source.ssrc, from, end));
                            from = end + 1;
                        }
                    }
                }
            }
            if f.jobs.is_empty() {
                continue;
            }
            // As many jobs as one datagram holds.
            let mut len = claim::len(0) + wire::OVERHEAD;
            let mut n = 0;
            for &(_, from, to) in &f.jobs {
                len += claim::len(1) - claim::len(0) + wire::block_len((to - from + 1) as usize);
                if n > 0 && len > MOST_FEEDBACK {
                    break;
                }
                n += 1;
            }
            let batch = f.jobs.iter().take(n).filter_map(|&(ssrc, from, to)| Some((sources.source(ssrc)?, from, to)));
            let claims = batch.clone().map(|(s, from, to)| Claim {
                nonce_sum: (from..=to).fold(0, |sum, q| sum.wrapping_add(s.metric(q, now).1)),
                dscp: s.dscp,
                held: Duration::ZERO,
            });
            out.clear();
            claim::emit(out, envelope.ssrc, envelope.take_number(), claims);
            let blocks = batch.map(|(s, from, to)| (s.ssrc, from as u16, (from..=to).map(move |q| s.metric(q, now).0)));
            wire::emit(out, envelope.ssrc, envelope.ntp_at_zero.at(now).middle(), blocks);
            let dscp = if f.class == Class::Low { Dscp::LE } else { envelope.dscp };
            f.jobs.drain(..n);
            return Some(dscp);
        }
        None
    }
}
