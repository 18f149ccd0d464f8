//! Acknowledgements with a sack vector ([`wire`]), which prove what they claim as per-packet feedback does.
//!
//! One vector tells of nine packets, so that a nonce that was damaged on its way spoils nine sums. A window of fewer packets would
//! run into its timeout before the nonce has left the vector, and then send one packet for each timeout. So an ACK whose sum is
//! wrong by as much as the one before it is believed about what that one did not claim (`Refused::unclaimed`): what is wrong is
//! in both, and the difference of the sums proves the rest.

pub mod wire;

use self::wire::Ack;
use super::trust::{PeerClock, Trust};
use super::{Arrived, Envelope, Heard, Lent, Proof, Refusal};
use crate::ntp;
use crate::receiver::sources::Sources;
use crate::sent::Streams;
use crate::wire::micros;
use fairpace_control::feedback::Message;
use fairpace_control::sack_vector::VECTOR_BITS;
use fairpace_control::{Arrival, SackReceiver, SackVector};
use fairpace_units::{Class, Duration, Instant, Kind};
use std::collections::VecDeque;

/// ACKs that wait for a driver that hands in many packets before it drains.
const MOST_ACKS: usize = 256;

/// An ACK that was not believed.
#[derive(Clone, Copy, Debug)]
struct Refused {
    number: u32,
    ack: u32,
    vector: u8,
    /// The excess of its sum of nonces.
    excess: u32,
}

impl Refused {
    /// The vector of `ack` without what this ACK claimed, if the rest of it and packet `ack_a` are proven: its sum has as much
    /// `excess`, and both tell of some packet. Who has not the nonces of the rest would have to guess their sum, whatever this ACK said.
    fn unclaimed(self, ack: &Ack, excess: u32) -> Option<u8> {
        let step = ack.ack.wrapping_sub(self.ack) & 0xff_ffff;
        if !(1..=VECTOR_BITS).contains(&step) || excess != self.excess {
            return None;
        }
        // Bit 0 is packet `ack_a` of this ACK, then of `ack`.
        let claimed = (u32::from(self.vector) << 1 | 1) << step;
        Some(ack.vector & !(claimed >> 1) as u8)
    }
}

/// The sender's end.
#[derive(Debug, Default)]
pub(crate) struct Sender {
    clock: PeerClock,
    /// The newest ACK that was not believed, if none was believed whole since.
    refused: Option<Refused>,
    /// The vector that is being told.
    told: Option<SackVector>,
}

impl Sender {
    pub(crate) fn on_ack(&mut self, ack: &Ack, lent: Lent<'_>) -> Result<Heard<'_>, Refusal> {
        let Lent { trust, streams, .. } = lent;
        trust.check_peer(ack.receiver)?;
        trust.check_number(ack.number)?;
        let newest = streams.media.index_24(ack.ack);
        let vector = self.proven(ack, newest, trust, streams)?;
        trust.accept(ack.number);
        let arrived_at = ntp::from_65536ths(self.clock.unwrap(ack.arrival));
        // Data has no other stream here: the flow's numbers run as this one's.
        let sent = newest.and_then(|index| streams.media.sent(index));
        self.told = sent.map(|sent| SackVector {
            ack: (sent.number & 0xff_ffff) as u32,
            vector,
            rwnd: ack.rwnd.map(u32::from),
            ecn: ack.ecn,
            ack_delay: Duration::from_micros(ack.delay.into()),
            arrived_at: Some(arrived_at),
        });
        let seen = [self.told.is_some().then_some((Class::Normal, ack.dscp)), None, None, None];
        let message = self.told.as_ref().map(Message::SackVector);
        Ok(Heard { untold: &[], message, proof: Proof::Proven, seen, reporter: ack.receiver })
    }

    /// The vector of `ack`, whose packet `ack_a` has index `newest`, as far as it is proven.
    fn proven(
        &mut self,
        ack: &Ack,
        newest: Option<u64>,
        trust: &mut Trust,
        streams: &mut Streams,
    ) -> Result<u8, Refusal> {
        if trust.check_nonces {
            let told = ack.claimed().rev().map(|behind| newest?.checked_sub(behind));
            let claimed = trust.claimed(streams.media.ssrc, newest.map(|newest| newest.saturating_sub(8)), told);
            let excess = ack.nonce_sum.wrapping_sub(claimed.nonce_sum);
            let unclaimed = self.refused.filter(|_| !claimed.unsent && excess != 0);
            if let Some(vector) = unclaimed.and_then(|refused| refused.unclaimed(ack, excess)) {
                return Ok(vector);
            }
            // A false ACK that comes twice is one lie; and a packet's number that was damaged on its way stands in all
            // ACKs until a larger one arrives.
            let older = self.refused.is_some_and(|r| ack.number.wrapping_sub(r.number) as i32 <= 0);
            let same = self.refused.is_some_and(|r| claimed.unsent && ack.ack == r.ack);
            if let Err(refusal) = trust.judge(claimed, ack.nonce_sum, older || same, streams) {
                if !older {
                    self.refused = Some(Refused { number: ack.number, ack: ack.ack, vector: ack.vector, excess });
                }
                return Err(refusal);
            }
            self.refused = None;
        }
        trust.forgive();
        Ok(ack.vector)
    }
}

/// The state of acknowledging.
#[derive(Debug)]
struct Acknowledging {
    ssrc: u32,
    /// A packet's number, whose lowest 24 bits the sender knows, less its extended sequence number, modulo 2^64: the
    /// sender has counted another number of wraps.
    offset: u64,
    receiver: SackReceiver,
    /// The last packet that came too late to be told of.
    too_late: Option<u64>,
    /// ACKs that were due when the next packet came, and when they were made.
    due: VecDeque<(Instant, SackVector)>,
}

/// The receiver's end.
#[derive(Debug)]
pub(crate) struct Receiver {
    interval: Duration,
    rwnd: Option<u32>,
    state: Option<Acknowledging>,
}

impl Receiver {
    pub(crate) const fn new(interval: Duration, rwnd: Option<u32>) -> Self {
        Receiver { interval, rwnd, state: None }
    }

    /// A media packet has arrived.
    pub(crate) fn on_packet(&mut self, now: Instant, arrived: &Arrived<'_>) {
        let Arrived { packet, sequence, ecn, .. } = *arrived;
        // Without the high bits of its number, which were damaged on their way, it is as good as lost.
        let Some(high) = packet.extensions.number_high else { return };
        // One wrap of 24 bits up, so that no number before the first lies below zero.
        let high = 1 << 8 | u64::from(high);
        let offset = ((high << 16) + u64::from(packet.sequence)).wrapping_sub(sequence);
        // Two in sequence far behind the largest number: that one was damaged on its way, and all after it would be
        // too late.
        let same = |a: &Acknowledging| {
            let resumed = a.too_late.is_some_and(|last| last + 1 == sequence);
            a.ssrc == packet.ssrc && a.offset.wrapping_sub(offset) & 0xff_ffff == 0 && !resumed
        };
        if !self.state.as_ref().is_some_and(same) {
            let mut receiver = SackReceiver::new((!self.interval.is_zero()).then_some(self.interval));
            receiver.set_rwnd(self.rwnd);
            let due = VecDeque::new();
            self.state = Some(Acknowledging { ssrc: packet.ssrc, offset, receiver, too_late: None, due });
        }
        let Some(a) = &mut self.state else { return };
        // An acknowledgement that is due leaves by itself, though the driver has not asked for it.
        while let Some(sack) = a.receiver.poll(now) {
            if a.due.len() >= MOST_ACKS {
                a.due.pop_front();
            }
            a.due.push_back((now, sack));
        }
        let seq = sequence.wrapping_add(a.offset);
        let refused = a.receiver.refused();
        a.receiver.on_packet(now, &Arrival { kind: Kind::Data, class: Class::Normal, seq, ecn });
        a.too_late = (a.receiver.refused() > refused).then_some(sequence);
    }

    pub(crate) fn next(&self) -> Instant {
        self.state.as_ref().map_or(Instant::NEVER, |a| a.receiver.next())
    }

    /// Writes the next ACK, if one is due.
    pub(crate) fn poll(
        &mut self,
        now: Instant,
        sources: &Sources,
        envelope: &mut Envelope<'_>,
        out: &mut Vec<u8>,
    ) -> Option<()> {
        let a = self.state.as_mut()?;
        let (made, sack) = match a.due.pop_front() {
            Some(due) => due,
            None => (now, a.receiver.poll(now)?),
        };
        let source = sources.source(a.ssrc)?;
        let highest = source.validator.highest().wrapping_add(a.offset);
        let ack = sack.unwrap_near(highest.wrapping_add(1))?;
        let sequence = |number: u64| number.wrapping_sub(a.offset);
        let nonce_sum =
            sack.numbers(ack).fold(0_u32, |sum, number| sum.wrapping_add(source.metric(sequence(number), now).1));
        let arrived = Instant::ZERO + sack.arrived_at.unwrap_or_default();
        out.clear();
        Ack {
            receiver: envelope.ssrc,
            number: envelope.take_number(),
            ack: sack.ack,
            vector: sack.vector,
            rwnd: sack.rwnd.map(wire::rwnd_to_wire),
            dscp: source.dscp,
            ecn: sack.ecn,
            delay: micros(sack.ack_delay + now.since(made)),
            arrival: envelope.ntp_at_zero.at(arrived).middle(),
            nonce_sum,
        }
        .emit(out);
        Some(())
    }
}
