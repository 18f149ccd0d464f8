//! A flow's account of its packets: the ledgers, the round trip, the breaker's watch, the counters and the log.
//!
//! An account knows no controller. So a [`PacketReport`](crate::PacketReport) can enter acknowledgements one by one while the
//! controller reads them.

pub(crate) mod counters;
pub(crate) mod log;
pub(crate) mod round_trip;
pub(crate) mod watch;

use crate::breaker::StopReason;
use crate::facts::{Acked, Loss, LossHow};
use crate::feedback::Ack;
use crate::ledger::{Credit, Ledger, LostPacket};
use counters::FlowCounters;
use fairpace_units::{Instant, Kind};
use log::{FlowEventKind, Log};
use round_trip::RoundTrip;
use watch::Watch;

#[derive(Debug)]
pub(crate) struct Account {
    pub(crate) data: Ledger,
    pub(crate) dummy: Ledger,
    pub(crate) round_trip: RoundTrip,
    pub(crate) watch: Watch,
    pub(crate) counters: FlowCounters,
    pub(crate) log: Log,
    /// When the last packet was acknowledged.
    pub(crate) last_ack: Instant,
    pub(crate) stopped: Option<StopReason>,
}

impl Account {
    /// Credits one packet; the ledger's word if the acknowledgement is no news. `measures`: the acknowledgement was sent
    /// because of this packet, so the RTT can be sampled. Ask [`Account::next_loss`] until `None` before the next packet.
    #[inline]
    pub(crate) fn credit(&mut self, now: Instant, ack: &Ack, measures: bool) -> Result<Acked, Credit> {
        let ledger = match ack.kind {
            Kind::Data => &mut self.data,
            Kind::Dummy => &mut self.dummy,
        };
        let (sent_at, size, late, measures) = match ledger.acknowledge(ack.seq) {
            Credit::New { sent_at, size, late, measures: of_path } => (sent_at, size, late, measures && of_path),
            other => return Err(other),
        };
        let outstanding = ledger.outstanding();
        let c = self.counters.of(ack.kind);
        c.acked += 1;
        c.acked_bytes += size;
        if late {
            c.late += 1;
            c.lost -= 1;
        }
        self.last_ack = now;
        self.watch.on_news();
        let sample = self.round_trip.on_ack(now, ack.kind, now.since(sent_at), ack.ack_delay, measures);
        self.counters.bad.rtt += sample.bad;
        match ack.kind {
            Kind::Data => self.watch.count(ack.seq, sent_at, sample.rtt, self.round_trip.srtt()),
            Kind::Dummy => {
                // No scheme hears of lost dummies.
                while self.dummy.next_loss().is_some() {
                    self.counters.dummy.lost += 1;
                }
            }
        }
        let Ack { kind, seq, ecn, arrived_at, .. } = *ack;
        Ok(Acked { kind, seq, size, sent_at, late, rtt: sample.rtt, ecn, arrived_at, outstanding })
    }

    /// The next data packet that the last acknowledgement has shown to be lost, the oldest first.
    #[inline]
    pub(crate) fn next_loss(&mut self, now: Instant) -> Option<Loss> {
        let lost = self.data.next_loss()?;
        Some(self.lose(now, lost, LossHow::LaterAcks))
    }

    /// A data packet has been given up as lost.
    pub(crate) fn lose(&mut self, now: Instant, lost: LostPacket, how: LossHow) -> Loss {
        self.counters.data.lost += 1;
        let highest_sent = self.data.next_seq().saturating_sub(1);
        self.log.event(now, FlowEventKind::Lost { seq: lost.seq, how });
        Loss { seq: lost.seq, sent_at: lost.sent_at, highest_sent, how }
    }

    /// Counts an acknowledgement that is no news; a packet that was never sent on purpose stops the flow.
    pub(crate) fn count_bad(&mut self, now: Instant, credit: Credit) {
        let bad = &mut self.counters.bad;
        match credit {
            Credit::New { .. } => {}
            Credit::Duplicate => bad.duplicate += 1,
            Credit::Stale => bad.stale += 1,
            Credit::Unsent => bad.unsent += 1,
            Credit::Skipped => {
                bad.skipped += 1;
                self.stop(now, StopReason::PeerLied);
            }
        }
    }

    pub(crate) fn stop(&mut self, now: Instant, reason: StopReason) {
        if self.stopped.is_none() {
            self.stopped = Some(reason);
            self.log.event(now, FlowEventKind::Tripped { reason });
        }
    }
}
