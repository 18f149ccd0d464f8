//! A report on packets as a controller reads it: fact by fact, in the order in which the ledger learns them.

use crate::account::Account;
use crate::facts::{Acked, Loss, Status};
use crate::feedback::{Ack, Outcome};
use crate::ledger::{Credit, Missing};
use crate::rtt::RttEstimator;
use core::slice;
use fairpace_units::{Bytes, Duration, Instant, Kind};

/// One fact of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fact {
    /// A packet is acknowledged; once per packet, whatever the feedback repeats.
    Acked(Acked),
    /// A data packet is lost; once per packet, after the acknowledgement that revealed the loss. The packet may be
    /// acknowledged after all ([`Acked::late`]).
    Lost(Loss),
}

/// One report, of which facts remain to be read.
///
/// Reading a fact enters that fact into the flow's ledger: what [`PacketReport::rtt`], [`PacketReport::in_flight`] and
/// [`PacketReport::missing`] say includes the facts read so far and no later one. A controller that reads each packet on
/// its own therefore sees what it would see if each came in a report of its own, and one that judges reports as a whole
/// reads all facts first. Facts that a controller leaves unread are entered after its call.
#[derive(Debug)]
pub struct PacketReport<'a> {
    account: &'a mut Account,
    now: Instant,
    made_at: Option<Duration>,
    acks: slice::Iter<'a, Ack>,
    /// Of a sack vector: the packet that the vector was sent for, the only one that measures the RTT. The other packets are
    /// named for repetition, which is no fault there.
    sacked: Option<u64>,
    /// The last acknowledgement may have revealed losses that are not read yet.
    revealing: bool,
    outcome: Outcome,
    /// The last acknowledgement that was no news.
    bad: Option<Credit>,
}

impl<'a> PacketReport<'a> {
    pub(crate) fn new(
        account: &'a mut Account,
        now: Instant,
        made_at: Option<Duration>,
        acks: &'a [Ack],
        sacked: Option<u64>,
    ) -> Self {
        let acks = acks.iter();
        PacketReport { account, now, made_at, acks, sacked, revealing: false, outcome: Outcome::default(), bad: None }
    }

    /// The next fact; `None` when all are read.
    #[inline]
    #[expect(clippy::should_implement_trait, reason = "between two facts the report answers questions")]
    pub fn next(&mut self) -> Option<Fact> {
        if self.revealing {
            if let Some(loss) = self.account.next_loss(self.now) {
                return Some(Fact::Lost(loss));
            }
            self.revealing = false;
        }
        while let Some(ack) = self.acks.next() {
            match self.account.credit(self.now, ack, self.sacked.is_none_or(|seq| seq == ack.seq)) {
                Ok(acked) => {
                    self.outcome.credited += 1;
                    self.revealing = acked.kind == Kind::Data;
                    return Some(Fact::Acked(acked));
                }
                Err(bad) => self.ignore(bad),
            }
        }
        None
    }

    fn ignore(&mut self, bad: Credit) {
        self.outcome.ignored += 1;
        self.bad = Some(bad);
        if self.sacked.is_none() {
            self.account.count_bad(self.now, bad);
        } else if bad == Credit::Skipped {
            // One lie, and the rest of the vector counts for nothing.
            self.acks = [].iter();
        }
    }

    /// When the report arrived.
    #[inline]
    pub fn now(&self) -> Instant {
        self.now
    }

    /// When the receiver made the report, on its own clock, the one of [`Acked::arrived_at`]; `None` if the feedback does not
    /// say.
    pub fn made_at(&self) -> Option<Duration> {
        self.made_at
    }

    /// The RTT estimator.
    #[inline]
    pub fn rtt(&self) -> &RttEstimator {
        self.account.round_trip.estimator()
    }

    /// The bytes of data that are neither acknowledged nor declared lost.
    pub fn in_flight(&self) -> Bytes {
        self.account.data.in_flight()
    }

    /// The data packets that are outstanding although a later one is acknowledged, the oldest first. The ledger declares
    /// them lost only when [`LossPolicy::dup_threshold`](crate::LossPolicy::dup_threshold) later ones are acknowledged.
    pub fn missing(&self) -> impl Iterator<Item = Missing> {
        self.account.data.missing()
    }

    /// The controller's status after a fact, for the flow's log of changes. A controller that does not say has its changes
    /// logged once, at the end of its call.
    #[inline]
    pub fn note(&mut self, status: impl FnOnce() -> Status) {
        self.account.log.note(self.now, status);
    }

    /// Enters what was left unread; what came of the report, and of its last acknowledgement that was no news.
    #[inline]
    pub(crate) fn finish(mut self) -> (Outcome, Option<Credit>) {
        while self.next().is_some() {}
        (self.outcome, self.bad)
    }
}
