//! The account of a TCP sender: counts, and averages over time.

use super::rto::{RtoAreas, RtoEstimator};
use fairpace_units::{Duration, Instant};

/// The counts of a sender so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TcpCounters {
    /// Segments sent, retransmissions included.
    pub sent: u64,
    /// Segments sent again.
    pub retransmitted: u64,
    /// Times fast recovery was entered.
    pub fast_retransmits: u64,
    /// Times the timer ran out.
    pub timeouts: u64,
    /// Of these, those with no back-off in force: a timeout and those that follow it before a fresh
    /// RTT sample are one sequence.
    pub timeout_sequences: u64,
    /// Times a congestion mark cut the window (ECN).
    pub ecn_cuts: u64,
}

impl TcpCounters {
    /// Loss indications, as the throughput models count them: fast retransmits and timeout
    /// sequences [Padhye et al. 1998 §II]. Divided by [`TcpCounters::sent`] they are the models' p.
    /// Cuts by marks are counted apart.
    pub const fn loss_indications(&self) -> u64 {
        self.fast_retransmits + self.timeout_sequences
    }

    /// Times the congestion window was reduced: fast retransmits, timeouts and cuts by marks.
    pub const fn reductions(&self) -> u64 {
        self.fast_retransmits + self.timeouts + self.ecn_cuts
    }

    /// The counts after `earlier`.
    #[must_use]
    pub const fn since(&self, earlier: &TcpCounters) -> TcpCounters {
        TcpCounters {
            sent: self.sent - earlier.sent,
            retransmitted: self.retransmitted - earlier.retransmitted,
            fast_retransmits: self.fast_retransmits - earlier.fast_retransmits,
            timeouts: self.timeouts - earlier.timeouts,
            timeout_sequences: self.timeout_sequences - earlier.timeout_sequences,
            ecn_cuts: self.ecn_cuts - earlier.ecn_cuts,
        }
    }
}

/// The record of a sender up to an instant: counts, and integrals over time that give exact averages between two
/// instants ([`TcpTally::since`]).
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct TcpTally {
    /// Counts.
    pub counters: TcpCounters,
    pub(super) cwnd_area: f64,
    /// Of the time in which there was an RTT estimate.
    pub(super) cwnd_area_estimated: f64,
    pub(super) time: f64,
    pub(super) rto: RtoAreas,
}

/// Integrals over time of what a sender says of itself: each in its unit times seconds, and the seconds.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct TcpAreas {
    /// Of the window, in segments.
    pub cwnd: f64,
    /// Over so much time.
    pub time: f64,
    /// Of the smoothed RTT, in seconds.
    pub srtt: f64,
    /// Of the timeout, in seconds.
    pub rto: f64,
    /// Over so much time, in which there was an estimate of both.
    pub estimated: f64,
}

/// The standing of a sender: what its reports are made of, without what it sends by.
#[derive(Clone, Debug)]
pub(crate) struct TcpStanding {
    pub(crate) counters: TcpCounters,
    pub(crate) cwnd: f64,
    pub(crate) ssthresh: f64,
    pub(super) cwnd_area: f64,
    pub(super) cwnd_area_estimated: f64,
    pub(super) began: Instant,
    pub(super) accounted: Instant,
    pub(super) rto: RtoEstimator,
}

impl TcpStanding {
    /// Counts and averages up to `now`, if nothing has changed since.
    pub(crate) fn tally(&self, now: Instant) -> TcpTally {
        let held = now.since(self.accounted).as_secs_f64();
        let estimated = if self.rto.srtt().is_some() { self.cwnd * held } else { 0.0 };
        TcpTally {
            counters: self.counters,
            cwnd_area: self.cwnd_area + self.cwnd * held,
            cwnd_area_estimated: self.cwnd_area_estimated + estimated,
            time: now.since(self.began).as_secs_f64(),
            rto: self.rto.areas(now),
        }
    }
}

impl TcpTally {
    /// Of another TCP than this one: the kernel's.
    pub const fn of(counters: TcpCounters, areas: &TcpAreas) -> TcpTally {
        TcpTally {
            counters,
            cwnd_area: areas.cwnd,
            // The kernel never forgets its estimate.
            cwnd_area_estimated: if areas.time > 0.0 { areas.cwnd * areas.estimated / areas.time } else { 0.0 },
            time: areas.time,
            rto: RtoAreas { srtt: areas.srtt, rto: areas.rto, time: areas.estimated },
        }
    }

    /// The additions after `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &TcpTally) -> TcpTally {
        TcpTally {
            counters: self.counters.since(&earlier.counters),
            cwnd_area: self.cwnd_area - earlier.cwnd_area,
            cwnd_area_estimated: self.cwnd_area_estimated - earlier.cwnd_area_estimated,
            time: self.time - earlier.time,
            rto: RtoAreas {
                srtt: self.rto.srtt - earlier.rto.srtt,
                rto: self.rto.rto - earlier.rto.rto,
                time: self.rto.time - earlier.rto.time,
            },
        }
    }

    /// Mean congestion window over the time since the connection began, in segments, without
    /// inflation; `None` if no time has passed.
    pub fn mean_cwnd(&self) -> Option<f64> {
        (self.time > 0.0).then(|| self.cwnd_area / self.time)
    }

    /// Mean congestion window over the time in which there was an RTT estimate, which excludes the rest of a long series
    /// of timeouts; `None` if there was none.
    pub fn mean_cwnd_while_estimated(&self) -> Option<f64> {
        (self.rto.time > 0.0).then(|| self.cwnd_area_estimated / self.rto.time)
    }

    /// Mean smoothed RTT over the time in which there was an estimate; `None` if there was none.
    pub fn mean_srtt(&self) -> Option<Duration> {
        (self.rto.time > 0.0).then(|| Duration::from_secs_f64(self.rto.srtt / self.rto.time))
    }

    /// Mean timeout without back-off, T0 of the throughput models, over the same time.
    pub fn mean_rto(&self) -> Option<Duration> {
        (self.rto.time > 0.0).then(|| Duration::from_secs_f64(self.rto.rto / self.rto.time))
    }
}
