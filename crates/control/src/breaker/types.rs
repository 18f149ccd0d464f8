//! The breaker's parameters, the reports that it judges, and its answers.

use core::fmt;
use fairpace_units::{Duration, Rate};

/// Why a flow was stopped for good.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StopReason {
    /// Packets were sent for that long and nothing at all came back [RFC 8083 §4.1].
    FeedbackTimeout {
        /// Three reporting intervals.
        after: Duration,
    },
    /// So many reports in a row said that no media arrives [RFC 8083 §4.2].
    MediaTimeout {
        /// MEDIA_TIMEOUT.
        reports: u32,
    },
    /// The flow sent more than ten times TCP's rate [RFC 8083 §4.3].
    Congestion {
        /// The rate that the flow sent.
        sent: Rate,
        /// Ten times the TCP rate.
        allowed: Rate,
        /// The mean fraction of packets lost.
        lost: f64,
    },
    /// The receiver acknowledged a packet that was never sent.
    PeerLied,
}

impl StopReason {
    /// A word for tables and JSON.
    pub const fn as_str(&self) -> &'static str {
        match self {
            StopReason::FeedbackTimeout { .. } => "feedback_timeout",
            StopReason::MediaTimeout { .. } => "media_timeout",
            StopReason::Congestion { .. } => "congestion",
            StopReason::PeerLied => "peer_lied",
        }
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StopReason::FeedbackTimeout { after } => {
                write!(f, "nothing was heard from the receiver for {} s [RFC 8083 §4.1]", after.as_secs_f64())
            }
            StopReason::MediaTimeout { reports } => {
                write!(f, "{reports} reports in a row say that no media arrives [RFC 8083 §4.2]")
            }
            StopReason::Congestion { sent, allowed, lost } => write!(
                f,
                "{sent} sent at {:.1} % loss, where ten times TCP's rate is {allowed} [RFC 8083 §4.3]",
                lost * 100.0
            ),
            StopReason::PeerLied => f.write_str("the receiver acknowledged a packet that was never sent"),
        }
    }
}

/// A receiver's report, once per reporting interval (an RTCP SR or RR, or the ledger instead).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReceiverReport {
    /// The highest data number received.
    pub highest_seq: u64,
    /// Data packets lost / expected since the last report; outside `[0, 1]` the report is ignored.
    pub fraction_lost: f64,
    /// How long this report covers.
    pub interval: Duration,
    /// The cumulative number of data packets lost: expected up to `highest_seq` and not received, whatever way they
    /// took; duplicates can make it negative [RFC 3550 §6.4.1].
    pub lost: Option<i64>,
    /// The round trip by LSR and DLSR.
    pub rtt: Option<Duration>,
    /// The bottleneck's rate by packet pairs, in the terms of `packet_size`: [`crate::packet_pair`].
    pub bottleneck: Option<Rate>,
}

impl ReceiverReport {
    /// A report that says no more than what the breaker must know.
    pub const fn new(highest_seq: u64, fraction_lost: f64, interval: Duration) -> Self {
        ReceiverReport { highest_seq, fraction_lost, interval, lost: None, rtt: None, bottleneck: None }
    }
}

/// The RFC's parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BreakerParams {
    /// Td: the RTCP interval that timeouts count in, at most 5 s [RFC 8083 §4.1].
    pub td: Duration,
    /// Tdr: how often reports really come.
    pub tdr: Duration,
    /// Tf: the time between video frames.
    pub tf: Duration,
    /// G: frames in a group that depend on each other.
    pub group: u32,
    /// k of §4.2, 5.
    pub k: u32,
}

impl Default for BreakerParams {
    fn default() -> Self {
        BreakerParams {
            td: Duration::from_secs(5),
            tdr: Duration::from_secs(5),
            tf: Duration::from_millis(33),
            group: 1,
            k: 5,
        }
    }
}

impl BreakerParams {
    /// The time after which a stopped flow may ask to begin again: as long as the slowest condition takes to trip
    /// [RFC 8083 §4.5].
    pub fn triggering_interval(&self) -> Duration {
        (self.td * 3).max(self.tdr * 3).max(Duration::from_secs(15))
    }
}

/// The breaker's action on the flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Trip {
    /// §4.3 has tripped: from now on send at most that, a tenth of the rate sent.
    Cut(Rate),
    /// The cut has helped: at most that from now on.
    Raise(Rate),
    /// The limit is back at the rate that tripped: no limit any more.
    Lift,
    /// Stop for good.
    Stop(StopReason),
}

/// A report as §4.3 takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counts {
    /// The loss is that of the packets in question.
    Yes,
    /// The loss is, in part, of packets from before a cut, or too little time has passed since: the interval is judged with
    /// the next one.
    Later,
}

/// The flow since the last report.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Partial {
    /// The time since the last report.
    pub time: Duration,
    /// The fraction of packets lost, in `[0, 1]`.
    pub lost: f64,
    /// The mean round trip; zero if there was no sample.
    pub rtt: Duration,
}
