//! The Quick-Start router: approves, lowers or refuses a request.
//!
//! Source: RFC 4782 §3.3, §3.4; the target algorithm [RFC 4782 App. D] with the parameters of [qsd App. A].
//! Page: `docs/links/quick-start.md`.
//!
//! | RFC, paper | here | unit | set by |
//! | --- | --- | --- | --- |
//! | `qs_thresh` | `threshold` | – | parameter, 0.8 |
//! | M, `state_delay` | `intervals`, `state_delay` | –, time | parameters, 2 and 150 ms |
//! | `bandwidth` x `utilization` | `Free::used` | bit/s | asked for with each request |
//! | `recent_qs_approvals` | the sum over `approvals` | bit/s | each approval, until it is forgotten |
//! | – | `per_source`, `in_all` | requests/s | parameters, 10 and 100: token buckets |
//! | – | `source_share` | – | parameter, 0.25 |
//!
//! **Readings.** (a) An approval is remembered for M `state_delay` from its own instant on. The RFC's two
//! counters forget it up to one `state_delay` earlier, before it shows in the load where the interval is that
//! of [qsd App. A]. (b) The pool is `threshold` x capacity less the load. A source may hold at most its
//! share of what the others have left of the pool: so the first holds no more than a quarter, and each
//! further greedy one leaves three quarters of what it found. (c) A request over the limits is refused, and
//! its packet forwarded. A source's bucket is emptied before the common one, so that what a flood of one
//! source asks in vain costs the others nothing. (d) What the current rate of a flow is, nobody asks: it is
//! taken for zero, as the RFC does.
//!
//! **Memory** is fixed by the parameters: [`SOURCES`] buckets, and no more approvals than the common bucket
//! lets through while one is remembered. Sources are sorted into the buckets by a hash with a secret key.
//! Sources that meet in one share its limits.
//!
//! **Not implemented.** Use of the Report of Approved Rate, which the RFC leaves open: it passes untouched.

use super::{Free, LoadWindow, QsError};
use fairpace_units::{Duration, Instant, QsFunction, QsNonce, QsOption, QsRate, RandomStream, Rate};
use std::collections::VecDeque;

/// Into how many buckets a router sorts the sources of requests.
pub const SOURCES: usize = 256;

/// A link is observed this often at most.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(1);

/// The most approvals that parameters may let a router remember: 16 bytes each.
const MOST_APPROVALS: f64 = 1e6;

/// The parameters of a Quick-Start router.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RouterParams {
    /// qs_thresh: the share of the capacity that load and approvals together may reach, above 0, at most 1.
    pub threshold: f64,
    /// M: for how many intervals an approval is remembered, at least 1.
    pub intervals: u32,
    /// state_delay: the length of one such interval, at least 1 ms.
    pub state_delay: Duration,
    /// The measure of the load: average or peak, and over how many observations. A link is observed once in
    /// `state_delay`, a satellite's carrier with each TBTP.
    pub load: LoadWindow,
    /// Requests per second that are considered from one source, and how many at once; at least 1.
    pub per_source: u32,
    /// Requests per second that are considered in all, and how many at once; at least 1.
    pub in_all: u32,
    /// The share that one source may hold of what the others leave of the pool, above 0, at most 1. With 1,
    /// sources do not matter.
    pub source_share: f64,
    /// Whether the packets of one flow take several ways from here: then nothing may be approved
    /// [RFC 4782 §3.3].
    pub per_packet_multipath: bool,
}

impl Default for RouterParams {
    /// [qsd App. A]'s threshold and M, [RFC 4782 App. D]'s interval.
    fn default() -> Self {
        RouterParams {
            threshold: 0.8,
            intervals: 2,
            state_delay: Duration::from_millis(150),
            load: LoadWindow::default(),
            per_source: 10,
            in_all: 100,
            source_share: 0.25,
            per_packet_multipath: false,
        }
    }
}

/// Requests per second within which [`RouterParams::without_own_rules`] keeps: its memory stays bounded.
const NO_LIMIT: u32 = 10_000;

impl RouterParams {
    /// The same without the rules that neither RFC 4782 nor [qsd App. A] has: sources do not matter, and requests are
    /// considered up to 10,000 per second.
    #[must_use]
    pub fn without_own_rules(self) -> RouterParams {
        RouterParams { per_source: NO_LIMIT, in_all: NO_LIMIT, source_share: 1.0, ..self }
    }

    /// Whether a router can go by them.
    ///
    /// # Errors
    /// [`QsError`] names the parameter that cannot be.
    pub fn validate(&self) -> Result<(), QsError> {
        let bad = |field, found, allowed| Err(QsError { field, found, allowed });
        for (field, found) in [("threshold", self.threshold), ("source_share", self.source_share)] {
            if !(found > 0.0 && found <= 1.0) {
                return bad(field, found, "above 0 and at most 1");
            }
        }
        for (field, found) in [("intervals", self.intervals), ("per_source", self.per_source), ("in_all", self.in_all)]
        {
            if found == 0 {
                return bad(field, 0.0, "at least 1");
            }
        }
        let remembered = self.remembered().as_secs_f64();
        if self.state_delay < SHORTEST_INTERVAL {
            return bad("state_delay", self.state_delay.as_secs_f64(), "at least 0.001 s");
        }
        if f64::from(self.in_all) * (remembered + 1.0) > MOST_APPROVALS {
            let allowed = "so small that at most 1000000 requests are considered while an approval is remembered";
            return bad("in_all", f64::from(self.in_all), allowed);
        }
        self.load.validate()
    }

    /// For how long an approval counts.
    fn remembered(&self) -> Duration {
        self.state_delay.saturating_mul(self.intervals)
    }
}

/// A router's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QsVerdict {
    /// The rate that was asked for.
    Approved(QsRate),
    /// A lower one, not zero.
    Reduced(QsRate),
    /// Nothing: the option says rate zero from here on.
    Refused(Refusal),
    /// Not a question: a Report of Approved Rate passes as it is.
    Report,
}

impl QsVerdict {
    /// The rate that was approved, in full or lowered.
    pub fn approved(self) -> Option<QsRate> {
        match self {
            QsVerdict::Approved(rate) | QsVerdict::Reduced(rate) => Some(rate),
            QsVerdict::Refused(_) | QsVerdict::Report => None,
        }
    }

    /// Whether the router looked at what is free, so that finding it out was paid for.
    pub fn was_considered(self) -> bool {
        self.approved().is_some() || matches!(self, QsVerdict::Refused(Refusal::SourceShare | Refusal::NothingFree))
    }
}

/// Why a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The request asked for nothing, or a router before had refused it.
    NoRate,
    /// Several ways lead on from here.
    Multipath,
    /// Too many requests from this source.
    SourceLimit,
    /// Too many requests.
    TotalLimit,
    /// Its source holds its share already.
    SourceShare,
    /// Load and approvals have reached the threshold.
    NothingFree,
}

/// The counts of a router so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct QsCounters {
    /// Approved as asked.
    pub approved: u64,
    /// Approved, lowered.
    pub reduced: u64,
    /// Refused, for each [`Refusal`] in their order.
    pub refused: [u64; 6],
    /// Reports that passed.
    pub reports: u64,
    /// Of those that were lowered or refused, the ones that [`RouterParams::source_share`] left less than was free.
    pub below_free: u64,
}

impl QsCounters {
    /// Requests whose answer a rule of our own decided: the limits on requests, and the share of a source.
    pub fn by_own_rules(&self) -> u64 {
        let of = |why: Refusal| self.refused.get(why as usize).copied().unwrap_or(0);
        of(Refusal::SourceLimit) + of(Refusal::TotalLimit) + self.below_free
    }
}

/// A hop that does not know Quick-Start lowers the TTL of the IP header and nothing else
/// [RFC 4782 §3.3].
pub fn pass_unaware(option: &mut QsOption) {
    option.ip_ttl = option.ip_ttl.saturating_sub(1);
}

/// A Quick-Start router in front of one outgoing link.
#[derive(Clone, Debug)]
pub struct QsRouter {
    params: RouterParams,
    random: RandomStream,
    /// Keeps an attacker from choosing sources that meet an honest one's.
    key: u64,
    /// The rate that each bucket of sources may still ask for.
    sources: Box<[Bucket]>,
    in_all: Bucket,
    /// The remembered approvals, in order of time.
    approvals: VecDeque<Approval>,
    counters: QsCounters,
}

/// An approval that may not show in the load yet.
#[derive(Clone, Copy, Debug)]
struct Approval {
    /// When it is forgotten.
    until: Instant,
    source: u8,
    rate: QsRate,
}

impl QsRouter {
    /// A router that has approved nothing yet.
    ///
    /// # Errors
    /// [`QsError`] names the parameter that cannot be.
    pub fn new(params: &RouterParams, mut random: RandomStream) -> Result<Self, QsError> {
        params.validate()?;
        Ok(QsRouter {
            params: *params,
            key: random.bits(),
            random,
            sources: vec![Bucket::default(); SOURCES].into(),
            in_all: Bucket::default(),
            approvals: VecDeque::new(),
            counters: QsCounters::default(),
        })
    }

    /// A packet with a Quick-Start option arrives from `source`: changes the option, and says what was
    /// decided. The packet is forwarded in any case, and those that follow it are treated like all
    /// others. `free` is asked only for a request that the limits let through. Time must not go back.
    pub fn on_request(
        &mut self,
        now: Instant,
        source: u64,
        option: &mut QsOption,
        free: impl FnOnce() -> Free,
    ) -> QsVerdict {
        let verdict = self.decide(now, source, option, free);
        let hop = option.ip_ttl.min(1);
        option.ip_ttl -= hop;
        match verdict {
            QsVerdict::Approved(_) => {
                option.qs_ttl = option.qs_ttl.wrapping_sub(hop);
                self.counters.approved += 1;
            }
            QsVerdict::Reduced(rate) => {
                option.qs_ttl = option.qs_ttl.wrapping_sub(hop);
                option.nonce = option.nonce.lowered(option.rate, rate, (self.random.bits() >> 32) as u32);
                option.rate = rate;
                self.counters.reduced += 1;
            }
            QsVerdict::Refused(why) => {
                (option.rate, option.qs_ttl, option.nonce) = (QsRate::ZERO, 0, QsNonce::default());
                if let Some(refused) = self.counters.refused.get_mut(why as usize) {
                    *refused += 1;
                }
            }
            QsVerdict::Report => self.counters.reports += 1,
        }
        verdict
    }

    /// The sum of what was approved and is not forgotten at `now`.
    pub fn recent_approvals(&mut self, now: Instant) -> Rate {
        self.forget(now);
        Rate::bps(self.approvals.iter().map(|a| a.rate.rate().as_bps()).sum())
    }

    /// The counts so far.
    pub fn counters(&self) -> &QsCounters {
        &self.counters
    }

    /// The bytes that its lists occupy, used or not.
    pub fn memory(&self) -> usize {
        size_of_val(&*self.sources) + self.approvals.capacity() * size_of::<Approval>()
    }

    /// The target algorithm [RFC 4782 App. D], for those requests that may be considered.
    #[allow(clippy::indexing_slicing, reason = "a byte counts up to the buckets that there are")]
    fn decide(&mut self, now: Instant, source: u64, option: &QsOption, free: impl FnOnce() -> Free) -> QsVerdict {
        let refused = QsVerdict::Refused;
        if option.function == QsFunction::Report {
            return QsVerdict::Report;
        }
        if option.rate == QsRate::ZERO {
            return refused(Refusal::NoRate);
        }
        if self.params.per_packet_multipath {
            return refused(Refusal::Multipath);
        }
        let source = self.sorted(source);
        if !self.sources[usize::from(source)].take(now, self.params.per_source) {
            return refused(Refusal::SourceLimit);
        }
        if !self.in_all.take(now, self.params.in_all) {
            return refused(Refusal::TotalLimit);
        }
        self.forget(now);
        let (mut own, mut others) = (0.0, 0.0);
        for approval in &self.approvals {
            *(if approval.source == source { &mut own } else { &mut others }) += approval.rate.rate().as_bps();
        }
        let Free { capacity, used } = free();
        let left = capacity.as_bps() * self.params.threshold - used.as_bps() - others;
        let allowed = Rate::bps(left * self.params.source_share - own);
        let rate = option.rate.min(QsRate::at_most(allowed));
        if rate < option.rate.min(QsRate::at_most(Rate::bps(left - own))) {
            self.counters.below_free += 1;
        }
        if rate == QsRate::ZERO {
            let exhausted = QsRate::at_most(Rate::bps(left - own)) == QsRate::ZERO;
            return refused(if exhausted { Refusal::NothingFree } else { Refusal::SourceShare });
        }
        self.approvals.push_back(Approval { until: now + self.params.remembered(), source, rate });
        if rate < option.rate { QsVerdict::Reduced(rate) } else { QsVerdict::Approved(rate) }
    }

    fn forget(&mut self, now: Instant) {
        while self.approvals.front().is_some_and(|a| a.until <= now) {
            self.approvals.pop_front();
        }
    }

    /// The bucket of that source: the high byte of a hash of it (the finalizer of SplitMix64).
    fn sorted(&self, source: u64) -> u8 {
        let z = source ^ self.key;
        let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z >> 56) as u8
    }
}

/// A token bucket that holds the tokens of one second, full at first.
#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    /// When it would be full again.
    full_at: Instant,
}

impl Bucket {
    /// Takes a token if there is one; `per_second` of them come in a second, and as many fit in.
    fn take(&mut self, now: Instant, per_second: u32) -> bool {
        let token = Duration::from_secs(1) / per_second;
        let full_at = self.full_at.max(now) + token;
        let there = full_at <= now + token * per_second;
        if there {
            self.full_at = full_at;
        }
        there
    }
}

#[cfg(test)]
mod tests;
