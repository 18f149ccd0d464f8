//! The Quick-Start router: approves, lowers or refuses a request.
//!
//! Source: RFC 4782 §3.3, §3.4, §8.2, App. D; the target algorithm and its parameters [qsd App. A].

use super::{Free, LoadWindow};
use fairpace_units::{Duration, Instant, QsFunction, QsNonce, QsOption, QsRate, RandomStream, Rate};
use std::collections::VecDeque;

/// What a Quick-Start router goes by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RouterParams {
    /// qs_thresh: the share of the capacity that load and approvals together may reach, above 0, at most 1.
    pub threshold: f64,
    /// M: for how many intervals an approval is remembered, at least 1.
    pub intervals: u32,
    /// state_delay: the length of one such interval, above zero.
    pub state_delay: Duration,
    /// What stands for the load: average or peak, of how many observations. A link is observed once in
    /// `state_delay`, a satellite's carrier with each TBTP.
    pub load: LoadWindow,
    /// Requests per second that are considered from one source, at least 1.
    pub per_source: u32,
    /// Requests per second that are considered in all, at least 1.
    pub in_all: u32,
    /// The share of what the others leave that one source may hold in approvals, above 0, at most 1.
    pub source_share: f64,
    /// Whether the packets of one flow take several ways from here: then nothing may be approved
    /// [RFC 4782 §3.3].
    pub per_packet_multipath: bool,
}

impl Default for RouterParams {
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

/// Why [`RouterParams`] are refused: the field, what was found, what is allowed.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("`quick_start.{field}` is {found}; it must be {allowed}")]
pub struct QsError {
    /// The parameter.
    pub field: &'static str,
    /// The value given.
    pub found: f64,
    /// What it may be.
    pub allowed: &'static str,
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
        self.approved().is_some() || matches!(self, QsVerdict::Refused(Refusal::NothingFree | Refusal::SourceShare))
    }
}

/// Why a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It asked for nothing, or a router before had refused it.
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

/// What a router did so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct QsCounters {
    /// Approved as asked.
    pub approved: u64,
    /// Approved, lowered.
    pub reduced: u64,
    /// Refused, for each reason in the order of [`Refusal`].
    pub refused: [u64; 6],
    /// Reports that passed.
    pub reports: u64,
}

/// A hop that does not know Quick-Start lowers the TTL of the IP header and nothing else.
pub fn pass_unaware(option: &mut QsOption) {
    option.ip_ttl = option.ip_ttl.saturating_sub(1);
}

/// A Quick-Start router in front of one outgoing link.
#[derive(Clone, Debug)]
pub struct QsRouter {
    params: RouterParams,
    random: RandomStream,
    approvals: VecDeque<(Instant, Rate)>,
    counters: QsCounters,
}

impl QsRouter {
    /// A router that has approved nothing yet.
    ///
    /// # Errors
    /// [`QsError`] names the parameter that cannot be.
    pub fn new(params: &RouterParams, random: RandomStream) -> Result<Self, QsError> {
        let bad = |field, found, allowed| Err(QsError { field, found, allowed });
        for (field, found) in [("threshold", params.threshold), ("source_share", params.source_share)] {
            if !(found > 0.0 && found <= 1.0) {
                return bad(field, found, "above 0 and at most 1");
            }
        }
        for (field, found) in
            [("intervals", params.intervals), ("per_source", params.per_source), ("in_all", params.in_all)]
        {
            if found == 0 {
                return bad(field, 0.0, "at least 1");
            }
        }
        if params.state_delay.is_zero() {
            return bad("state_delay", 0.0, "above 0 s");
        }
        Ok(QsRouter { params: *params, random, approvals: VecDeque::new(), counters: QsCounters::default() })
    }

    /// A packet with a Quick-Start option arrives from `source`. `free` is asked only if the answer matters.
    pub fn on_request(
        &mut self,
        now: Instant,
        source: u64,
        option: &mut QsOption,
        free: impl FnOnce() -> Free,
    ) -> QsVerdict {
        let verdict = self.decide(now, source, option, free);
        let lowered = option.ip_ttl.min(1);
        option.ip_ttl -= lowered;
        match verdict {
            QsVerdict::Approved(_) => {
                option.qs_ttl = option.qs_ttl.wrapping_sub(lowered);
                self.counters.approved += 1;
            }
            QsVerdict::Reduced(rate) => {
                option.qs_ttl = option.qs_ttl.wrapping_sub(lowered);
                option.nonce = option.nonce.lowered(option.rate, rate, self.random.bits() as u32);
                option.rate = rate;
                self.counters.reduced += 1;
            }
            QsVerdict::Refused(why) => {
                (option.rate, option.qs_ttl, option.nonce) = (QsRate::ZERO, 0, QsNonce::default());
                self.counters.refused[why as usize] += 1;
            }
            QsVerdict::Report => self.counters.reports += 1,
        }
        verdict
    }

    /// What was counted so far.
    pub fn counters(&self) -> &QsCounters {
        &self.counters
    }

    fn decide(&mut self, now: Instant, _source: u64, option: &QsOption, free: impl FnOnce() -> Free) -> QsVerdict {
        if option.function == QsFunction::Report {
            return QsVerdict::Report;
        }
        if option.rate == QsRate::ZERO {
            return QsVerdict::Refused(Refusal::NoRate);
        }
        if self.params.per_packet_multipath {
            return QsVerdict::Refused(Refusal::Multipath);
        }
        let Free { capacity, used } = free();
        while self.approvals.front().is_some_and(|&(until, _)| until <= now) {
            self.approvals.pop_front();
        }
        let held: f64 = self.approvals.iter().map(|(_, rate)| rate.as_bps()).sum();
        let left = Rate::bps(capacity.as_bps() * self.params.threshold - used.as_bps() - held);
        let rate = option.rate.min(QsRate::at_most(left));
        if rate == QsRate::ZERO {
            return QsVerdict::Refused(Refusal::NothingFree);
        }
        self.approvals.push_back((now + self.params.state_delay * self.params.intervals, rate.rate()));
        if rate < option.rate { QsVerdict::Reduced(rate) } else { QsVerdict::Approved(rate) }
    }
}
