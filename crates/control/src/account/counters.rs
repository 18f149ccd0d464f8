//! The counts of a flow.

use fairpace_units::{Bytes, Kind};

/// The counts of the packets of one kind by their fate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KindCounters {
    /// Packets sent.
    pub sent: u64,
    /// Their bytes.
    pub sent_bytes: Bytes,
    /// Packets acknowledged.
    pub acked: u64,
    /// Their bytes.
    pub acked_bytes: Bytes,
    /// Packets declared lost and not acknowledged since.
    pub lost: u64,
    /// Packets acknowledged after they had been declared lost.
    pub late: u64,
}

/// Feedback that was ignored, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IgnoredFeedback {
    /// The packet had been acknowledged before; or a receiver report tells of no packet beyond the last report's, and
    /// nothing else comes.
    pub duplicate: u64,
    /// The packet is too old to be remembered.
    pub stale: u64,
    /// The packet has not been sent yet.
    pub unsent: u64,
    /// The number was left out on purpose: a lie.
    pub skipped: u64,
    /// RTT samples and claims of delay that were not believable (their ACKs counted).
    pub rtt: u64,
    /// Reports with impossible values, those that are older than one that has come, and feedback of a form that was not
    /// asked for.
    pub report: u64,
}

/// Everything a flow counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowCounters {
    /// Media.
    pub data: KindCounters,
    /// Dummies.
    pub dummy: KindCounters,
    /// Timeouts: no ACK although data was outstanding.
    pub timeouts: u64,
    /// Times the driver came back more than a second late.
    pub stalls: u64,
    /// Times that the circuit breaker cut the rate to a tenth.
    pub cuts: u64,
    /// Packets that a cap of ours kept back: the configured one, the breaker's, or that of a silence.
    pub kept_back: u64,
    /// Times that the rate was halved in a silence.
    pub silences: u64,
    /// Feedback that was ignored.
    pub bad: IgnoredFeedback,
}

impl FlowCounters {
    /// Times that a rule of our own, which no paper has, touched the flow: caps, the circuit breaker, the rule for a
    /// silence. Always zero under [`Safety::Paper`](crate::Safety::Paper).
    pub fn by_own_rules(&self) -> u64 {
        self.cuts + self.kept_back + self.silences
    }

    pub(crate) const fn of(&mut self, kind: Kind) -> &mut KindCounters {
        match kind {
            Kind::Data => &mut self.data,
            Kind::Dummy => &mut self.dummy,
        }
    }
}
