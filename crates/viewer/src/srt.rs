//! SRT in live mode, as a model: a stream of one rate, repaired by retransmission within a constant latency.
//!
//! | part | rule here | in libsrt 1.5 |
//! | --- | --- | --- |
//! | play-out (TSBPD) | a packet is given to the player at sending time + transit of the first + latency | the same; clock drift is not modelled |
//! | loss report (NAK) | at once for each gap; then all that is missing each (SRTT + 4 RTTVAR) / 2, at least 20 ms | `NAKREPORT`, on in live mode |
//! | resending | at once on request, before new data; none that was sent again within SRTT - 4 RTTVAR | `RETRANSMITALGO` 1 |
//! | too late (TLPKTDROP) | receiver: a gap is given up when what follows it is due; sender: after max(latency, 1 s) + 20 ms | the same |
//! | ACK | each 10 ms if something new is in order, answered by ACKACK: the round trip | full ACKs; light ones are left out |
//! | pace | none: packets leave as the input comes, repairs at once | `MAXBW` is 1 Gbit/s unless set |
//! | packet filter | `fec,cols:N`: one XOR packet per N, requests only for what it cannot rebuild (`arq:onreq`) | rows alone |
//!
//! Sources: draft-sharabayko-srt-01 §4.5 to §4.8 (TSBPD, TLPKTDROP, ACK, NAK) and measurements of srt-live-transmit 1.5.1
//! (`docs/experiments/viewers.md`). Not modelled: handshake, keep-alive, encryption, bonding, reordering tolerance, columns of the filter.

use crate::ledger::{Captures, Shown};
use crate::path::{About, End, PathError, Wire};
use crate::stream::{Arrivals, Datagram, Packing, Stream};
use fairpace_media::EncoderModelParams;
use fairpace_units::{Bytes, Dscp, Duration, Ecn, Instant, Rate};
use std::collections::{BTreeMap, BTreeSet};

/// IPv4, UDP and SRT.
const OVERHEAD: Bytes = Bytes::new(28 + 16);
/// Content of a full ACK.
const ACK_BODY: Bytes = Bytes::new(28);
/// Header of a packet of the filter, before the XOR of the payloads.
const FILTER_HEADER: Bytes = Bytes::new(4);
const ACK_INTERVAL: Duration = Duration::from_millis(10);
const MIN_NAK_INTERVAL: Duration = Duration::from_millis(20);
const MIN_SENDER_DROP: Duration = Duration::from_secs(1);
/// Round trip and variation before the first sample.
const START_RTT: Rtt = Rtt { smoothed: Duration::from_millis(100), variation: Duration::from_millis(50) };

/// A smoothed round trip with its variation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rtt {
    smoothed: Duration,
    variation: Duration,
}

impl Rtt {
    fn sample(&mut self, rtt: Duration, first: bool) {
        if first {
            *self = Rtt { smoothed: rtt, variation: rtt / 2 };
        } else {
            let apart = rtt.max(self.smoothed) - rtt.min(self.smoothed);
            self.variation = (self.variation * 3 + apart) / 4;
            self.smoothed = (self.smoothed * 7 + rtt) / 8;
        }
    }
}

/// A message of SRT.
#[derive(Clone, Debug)]
pub enum SrtMessage {
    /// Data, with its sequence number and the time stamp of its first sending.
    Data(u64, Instant),
    /// The filter's packet for the data from `first` on; the time stamps can be rebuilt as the payload can.
    Filter {
        /// Sequence number of the first that it covers.
        first: u64,
        /// Time stamps of all that it covers.
        left: Vec<Instant>,
    },
    /// All before this has come, or was given up; with the receiver's round trip and variation.
    Ack {
        /// Counts the ACKs.
        number: u64,
        /// The next that is awaited.
        before: u64,
        /// The receiver's smoothed round trip.
        rtt: Duration,
        /// Its variation.
        variation: Duration,
    },
    /// An ACK has come.
    AckAck(u64),
    /// These are missing.
    Nak(Vec<u64>),
}

impl SrtMessage {
    fn wire(self, size: Bytes, about: About) -> Wire<SrtMessage> {
        Wire { size: size + OVERHEAD, dscp: Dscp::DEFAULT, ecn: Ecn::NotEct, about, body: self }
    }
}

/// How SRT is set up.
#[derive(Clone, Copy, Debug)]
pub struct SrtSetup {
    /// The encoder's rate; the stream's is higher by MPEG-TS and headers.
    pub rate: Rate,
    /// `latency` of both ends.
    pub latency: Duration,
    /// Packets per packet of the filter (`cols`); `None`: no filter.
    pub filter: Option<u64>,
    /// The encoder.
    pub encoder: EncoderModelParams,
}

#[derive(Clone, Copy, Debug)]
struct Kept {
    left: Instant,
    size: Bytes,
    tick: u32,
    again: Option<Instant>,
}

/// The sender.
#[derive(Debug)]
pub struct SrtSender {
    stream: Stream,
    drop_after: Duration,
    filter: Option<u64>,
    rtt: Rtt,
    /// Packets that are neither acknowledged nor given up.
    kept: BTreeMap<u64, Kept>,
    wanted: BTreeSet<u64>,
    /// First sending of every datagram.
    left: Vec<Instant>,
    ready: Vec<Datagram>,
    acks: Vec<u64>,
}

impl SrtSender {
    /// A stream of that rate; `seed` decides the encoder's noise.
    ///
    /// # Errors
    /// [`PathError`]: a parameter of the encoder.
    pub fn new(setup: SrtSetup, seed: u64) -> Result<SrtSender, PathError> {
        Ok(SrtSender {
            stream: Stream::new(setup.rate, setup.encoder, Packing::Ts, seed)?,
            drop_after: setup.latency.max(MIN_SENDER_DROP) + ACK_INTERVAL * 2,
            filter: setup.filter.filter(|n| *n > 0),
            rtt: START_RTT,
            kept: BTreeMap::new(),
            wanted: BTreeSet::new(),
            left: Vec::new(),
            ready: Vec::new(),
            acks: Vec::new(),
        })
    }

    pub(crate) fn captures(&self) -> Captures<'_> {
        self.stream.captures()
    }

    pub(crate) fn shown(&self, receiver: &SrtReceiver) -> Vec<Shown> {
        self.stream.shown(&self.left, &receiver.arrivals, receiver.latency)
    }

    fn forget_before(&mut self, sequence: u64) {
        self.kept = self.kept.split_off(&sequence);
        self.wanted = self.wanted.split_off(&sequence);
    }

    fn send_again(&mut self, now: Instant, out: &mut Vec<Wire<SrtMessage>>) {
        let too_old = |kept: &Kept| now.since(kept.left) > self.drop_after;
        if let Some(first) = self.kept.iter().find(|(_, kept)| !too_old(kept)).map(|(s, _)| *s) {
            self.forget_before(first);
        } else if !self.kept.is_empty() {
            self.forget_before(u64::MAX);
        }
        let too_soon = self.rtt.smoothed.saturating_sub(self.rtt.variation * 4);
        for sequence in core::mem::take(&mut self.wanted) {
            let Some(kept) = self.kept.get_mut(&sequence) else { continue };
            if kept.again.is_some_and(|at| now.since(at) <= too_soon) {
                continue;
            }
            kept.again = Some(now);
            out.push(SrtMessage::Data(sequence, kept.left).wire(kept.size, About::Repair(kept.tick)));
        }
    }
}

impl End<SrtMessage> for SrtSender {
    fn on_packet(&mut self, _: Instant, packet: &Wire<SrtMessage>) {
        match &packet.body {
            SrtMessage::Ack { number, before, rtt, variation } => {
                self.rtt = Rtt { smoothed: *rtt, variation: *variation };
                self.forget_before(*before);
                self.acks.push(*number);
            }
            SrtMessage::Nak(missing) => self.wanted.extend(missing.iter().filter(|s| self.kept.contains_key(s))),
            SrtMessage::Data(..) | SrtMessage::Filter { .. } | SrtMessage::AckAck(_) => {}
        }
    }

    fn poll(&mut self, now: Instant, out: &mut Vec<Wire<SrtMessage>>) -> Instant {
        for number in self.acks.drain(..) {
            out.push(SrtMessage::AckAck(number).wire(Bytes::ZERO, About::Control));
        }
        self.send_again(now, out);
        self.stream.poll(now, &mut self.ready);
        for d in core::mem::take(&mut self.ready) {
            self.left.push(now);
            self.kept.insert(d.sequence, Kept { left: now, size: d.size, tick: d.tick, again: None });
            out.push(SrtMessage::Data(d.sequence, now).wire(d.size, About::Media(d.tick)));
            let Some(columns) = self.filter else { continue };
            if (d.sequence + 1).is_multiple_of(columns) {
                let first = d.sequence + 1 - columns;
                let left = usize::try_from(first).ok().and_then(|first| self.left.get(first..));
                let left = left.map(<[Instant]>::to_vec).unwrap_or_default();
                let parity = SrtMessage::Filter { first, left };
                out.push(parity.wire(d.size + FILTER_HEADER, About::Repair(d.tick)));
            }
        }
        self.stream.next()
    }
}

/// The receiver.
#[derive(Debug)]
pub struct SrtReceiver {
    latency: Duration,
    filter: Option<u64>,
    arrivals: Arrivals,
    /// Arrived and not yet given to the player, with the time for it.
    waiting: BTreeMap<u64, Instant>,
    /// Missing, and asked for.
    missing: BTreeSet<u64>,
    /// Missing; the filter may still rebuild them.
    hoped: BTreeSet<u64>,
    /// Packets of the filter that may still be of use.
    filters: BTreeMap<u64, Vec<Instant>>,
    /// The first that has not come, nor anything after it.
    end: u64,
    /// All before has been played or given up.
    played: u64,
    fresh: bool,
    next_nak: Instant,
    rtt: Rtt,
    sampled: bool,
    acked: u64,
    ack_number: u64,
    ack_at: Instant,
    /// When ACKs left whose answer has not come.
    unanswered: BTreeMap<u64, Instant>,
}

impl SrtReceiver {
    /// One with the latency and the filter of that set-up.
    pub fn new(setup: SrtSetup) -> SrtReceiver {
        SrtReceiver {
            latency: setup.latency,
            filter: setup.filter.filter(|n| *n > 0),
            arrivals: Arrivals::default(),
            waiting: BTreeMap::new(),
            missing: BTreeSet::new(),
            hoped: BTreeSet::new(),
            filters: BTreeMap::new(),
            end: 0,
            played: 0,
            fresh: false,
            next_nak: Instant::NEVER,
            rtt: START_RTT,
            sampled: false,
            acked: 0,
            ack_number: 0,
            ack_at: Instant::NEVER,
            unanswered: BTreeMap::new(),
        }
    }

    fn on_data(&mut self, now: Instant, sequence: u64, left: Instant) {
        if sequence < self.played || self.arrivals.has(sequence) {
            return;
        }
        self.arrivals.note(sequence, left, now);
        let due = self.arrivals.due(left, self.latency).unwrap_or(now);
        self.waiting.insert(sequence, due);
        self.missing.remove(&sequence);
        self.hoped.remove(&sequence);
        if self.end < sequence {
            let gap = self.end.max(self.played)..sequence;
            if self.filter.is_some() {
                self.hoped.extend(gap);
            } else {
                self.missing.extend(gap);
                self.fresh = true;
            }
        }
        self.end = self.end.max(sequence + 1);
        if self.ack_at == Instant::NEVER {
            self.ack_at = now + ACK_INTERVAL;
        }
        self.rebuild(now);
    }

    /// Rebuilds what the filter can, and asks for the rest of the groups that are over.
    fn rebuild(&mut self, now: Instant) {
        let Some(columns) = self.filter else { return };
        let mut rebuilt = Vec::new();
        self.filters.retain(|first, left| {
            let mut absent = (*first..first + columns).filter(|s| !self.arrivals.has(*s));
            let (one, more) = (absent.next(), absent.next());
            if let (Some(sequence), None) = (one, more) {
                let place = usize::try_from(sequence - first).unwrap_or(usize::MAX);
                rebuilt.extend(left.get(place).map(|left| (sequence, *left)));
            }
            one.is_some() && first + columns > self.played
        });
        for (sequence, left) in rebuilt {
            self.on_data(now, sequence, left);
        }
        let over = self.end.saturating_sub(1) / columns * columns;
        let lost: Vec<u64> = self.hoped.range(..over).copied().collect();
        for sequence in lost {
            self.hoped.remove(&sequence);
            self.fresh |= self.missing.insert(sequence);
        }
    }

    fn play(&mut self, now: Instant) {
        while let Some(entry) = self.waiting.first_entry() {
            if *entry.get() > now {
                break;
            }
            self.played = entry.remove_entry().0 + 1;
            self.missing = self.missing.split_off(&self.played);
            self.hoped = self.hoped.split_off(&self.played);
        }
    }

    fn report(&mut self, now: Instant, out: &mut Vec<Wire<SrtMessage>>) {
        if self.missing.is_empty() {
            (self.next_nak, self.fresh) = (Instant::NEVER, false);
            return;
        }
        if self.fresh || now >= self.next_nak {
            let missing: Vec<u64> = self.missing.iter().copied().collect();
            let runs = 1 + missing.windows(2).filter(|w| w.first().map(|s| s + 1) != w.get(1).copied()).count();
            out.push(SrtMessage::Nak(missing).wire(Bytes::new(8 * runs as u64), About::Control));
            let interval = (self.rtt.smoothed + self.rtt.variation * 4) / 2;
            (self.next_nak, self.fresh) = (now + interval.max(MIN_NAK_INTERVAL), false);
        }
    }

    fn acknowledge(&mut self, now: Instant, out: &mut Vec<Wire<SrtMessage>>) {
        if now < self.ack_at {
            return;
        }
        self.ack_at = Instant::NEVER;
        let before = self.missing.first().or(self.hoped.first()).copied().unwrap_or(self.end);
        if before > self.acked {
            self.acked = before;
            self.ack_number += 1;
            self.unanswered.insert(self.ack_number, now);
            let (rtt, variation) = (self.rtt.smoothed, self.rtt.variation);
            let ack = SrtMessage::Ack { number: self.ack_number, before, rtt, variation };
            out.push(ack.wire(ACK_BODY, About::Control));
        }
    }
}

impl End<SrtMessage> for SrtReceiver {
    fn on_packet(&mut self, now: Instant, packet: &Wire<SrtMessage>) {
        self.play(now);
        match &packet.body {
            SrtMessage::Data(sequence, left) => self.on_data(now, *sequence, *left),
            SrtMessage::Filter { first, left } => {
                if let Some(columns) = self.filter {
                    // Those at the group's end are missing, too, if nothing later has come.
                    let gap = self.end.max(self.played)..first + columns;
                    self.end = self.end.max(first + columns);
                    self.hoped.extend(gap);
                    self.filters.insert(*first, left.clone());
                    self.rebuild(now);
                }
            }
            SrtMessage::AckAck(number) => {
                if let Some(sent) = self.unanswered.remove(number) {
                    self.rtt.sample(now.since(sent), !self.sampled);
                    self.sampled = true;
                    self.unanswered = self.unanswered.split_off(number);
                }
            }
            SrtMessage::Ack { .. } | SrtMessage::Nak(_) => {}
        }
    }

    fn poll(&mut self, now: Instant, out: &mut Vec<Wire<SrtMessage>>) -> Instant {
        self.play(now);
        self.report(now, out);
        self.acknowledge(now, out);
        let due = self.waiting.first_key_value().map_or(Instant::NEVER, |(_, due)| *due);
        due.min(self.next_nak).min(self.ack_at)
    }
}
