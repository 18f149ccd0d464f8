//! The streams that come in: which are believed, and what has arrived of each.

use super::config::{ReceiverStats, StreamStats};
use crate::packet::Packet;
use crate::rtcp::ReportBlock;
use crate::source::{Source, Validator, Verdict, silent};
use fairpace_units::{Class, Duration, Instant};
use std::collections::{BTreeMap, VecDeque};

/// SSRCs in probation, and believed ones [safety: memory is bounded].
const MOST_SOURCES: usize = 1_024;
const MOST_VALID: usize = 8;

/// The contents of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Media,
    Dummy,
    Retransmission,
    Fec,
}

impl Role {
    pub(crate) const fn class(self) -> Class {
        match self {
            Role::Dummy => Class::Low,
            Role::Media | Role::Retransmission | Role::Fec => Class::Normal,
        }
    }
}

/// The state of a stream.
#[derive(Debug)]
enum Entry {
    Probation(Validator),
    Valid(Role, u8, Box<Source>),
}

/// The standing of a stream, judged by a packet's number.
#[derive(Clone, Copy, Debug)]
pub(super) enum Standing {
    /// Not (yet) believed.
    Unproven,
    /// Part of a believed stream; the extended number.
    Known(u64),
    /// The same, and the stream has begun anew with this packet.
    Restarted(u64),
    /// The packet has made its stream believable.
    New(u64, Validator),
}

#[derive(Debug, Default)]
pub(crate) struct Sources {
    known: BTreeMap<u32, Entry>,
    /// SSRCs in probation, oldest first.
    newcomers: VecDeque<u32>,
    media: Option<u32>,
}

impl Sources {
    pub(super) fn clear(&mut self) {
        *self = Sources::default();
    }

    pub(super) fn len(&self) -> usize {
        self.known.len()
    }

    /// The stream that is played.
    pub(crate) const fn media(&self) -> Option<u32> {
        self.media
    }

    /// `ssrc` is played from now on.
    pub(super) const fn play(&mut self, ssrc: u32) {
        self.media = Some(ssrc);
    }

    /// Whether the stream that is played has had a packet within `patience`.
    pub(super) fn is_playing(&self, now: Instant, patience: Duration) -> bool {
        let current = self.media.and_then(|m| self.source(m));
        current.is_some_and(|s| !silent(now, s.last_arrival, patience))
    }

    /// Nothing is known of that stream any more.
    pub(super) fn remove(&mut self, ssrc: u32) {
        self.known.remove(&ssrc);
    }

    /// A believed stream.
    pub(crate) fn source(&self, ssrc: u32) -> Option<&Source> {
        match self.known.get(&ssrc) {
            Some(Entry::Valid(_, _, source)) => Some(source),
            _ => None,
        }
    }

    /// The same with role and payload type, to change.
    pub(super) fn source_mut(&mut self, ssrc: u32) -> Option<(Role, u8, &mut Source)> {
        match self.known.get_mut(&ssrc) {
            Some(Entry::Valid(role, payload_type, source)) => Some((*role, *payload_type, source)),
            _ => None,
        }
    }

    fn valid(&self) -> impl Iterator<Item = (Role, &Source)> {
        self.known.values().filter_map(|e| match e {
            Entry::Valid(role, _, s) => Some((*role, &**s)),
            Entry::Probation(_) => None,
        })
    }

    /// All believed streams, to change.
    pub(crate) fn valid_mut(&mut self) -> impl Iterator<Item = (Role, &mut Source)> {
        self.known.values_mut().filter_map(|e| match e {
            Entry::Valid(role, _, s) => Some((*role, &mut **s)),
            Entry::Probation(_) => None,
        })
    }

    /// The SSRCs of believed streams: at most eight.
    pub(super) fn ssrcs(&self) -> impl Iterator<Item = u32> {
        self.valid().map(|(_, source)| source.ssrc)
    }

    /// Believed streams.
    pub(super) fn count(&self) -> u32 {
        self.valid().count() as u32
    }

    /// Takes in a packet's number. `announced`: a challenge named this stream, so that no probation is needed.
    pub(super) fn validate(&mut self, packet: &Packet<'_>, announced: bool) -> Standing {
        let entry = match self.known.get_mut(&packet.ssrc) {
            Some(entry) => entry,
            None => {
                if !announced {
                    if self.newcomers.len() >= MOST_SOURCES
                        && let Some(oldest) = self.newcomers.pop_front()
                        && matches!(self.known.get(&oldest), Some(Entry::Probation(_)))
                    {
                        self.known.remove(&oldest);
                    }
                    self.newcomers.push_back(packet.ssrc);
                }
                let validator = Validator::new(packet.sequence, announced);
                self.known.entry(packet.ssrc).or_insert(Entry::Probation(validator))
            }
        };
        match entry {
            Entry::Valid(_, _, source) => match source.validator.update(packet.sequence) {
                Verdict::Accepted(n) => Standing::Known(n),
                Verdict::Restarted(n) => {
                    source.restart();
                    source.highest_seen = n;
                    Standing::Restarted(n)
                }
                Verdict::Rejected => Standing::Unproven,
            },
            Entry::Probation(validator) => match validator.update(packet.sequence) {
                Verdict::Accepted(n) => Standing::New(n, *validator),
                _ => Standing::Unproven,
            },
        }
    }

    /// A stream is believed from now on.
    pub(super) fn admit(&mut self, now: Instant, packet: &Packet<'_>, role: Role, validator: Validator, sequence: u64) {
        self.newcomers.retain(|s| *s != packet.ssrc);
        self.evict_idle();
        let mut source = Source::new(packet.ssrc, validator, now);
        source.highest_seen = sequence;
        self.known.insert(packet.ssrc, Entry::Valid(role, packet.payload_type, Box::new(source)));
    }

    /// Makes room for one more believed source: the one silent longest goes.
    fn evict_idle(&mut self) {
        if self.valid().count() < MOST_VALID {
            return;
        }
        let idlest = self.valid().min_by_key(|(_, s)| (s.last_arrival, s.ssrc)).map(|(_, s)| s.ssrc);
        if let Some(ssrc) = idlest {
            self.known.remove(&ssrc);
        }
    }

    /// The blocks of a receiver report.
    pub(super) fn report_blocks(&mut self, now: Instant) -> Vec<ReportBlock> {
        self.valid_mut().map(|(_, s)| s.report_block(now)).collect()
    }

    /// Adds the state of the current streams to the counts of earlier ones.
    pub(super) fn count_into(&self, stats: &mut ReceiverStats) {
        for (role, s) in self.valid() {
            let slot = match role {
                Role::Media if self.media == Some(s.ssrc) => &mut stats.media,
                Role::Media => continue,
                Role::Dummy => &mut stats.dummy,
                Role::Retransmission => &mut stats.retransmission,
                Role::Fec => &mut stats.fec,
            };
            let current = StreamStats {
                ssrc: s.ssrc,
                received: s.received,
                expected: s.expected(),
                lost: s.cumulative_lost(),
                duplicates: s.duplicates,
                reordered: s.reordered,
                ce_marks: s.ce_marks,
                bytes: s.bytes,
                jitter: Duration::from_nanos(u64::from(s.jitter.get()) * 100_000 / 9),
                dscp: s.dscp,
                restarts: s.validator.restarts,
            };
            *slot = current.behind(slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_streams_are_believed_and_the_one_silent_longest_gives_way() {
        let mut sources = Sources::default();
        for ssrc in 1..=1_000 {
            let packet = Packet {
                marker: false,
                payload_type: 96,
                sequence: 7,
                timestamp: 0,
                ssrc,
                extensions: Default::default(),
                payload: &[],
            };
            let Standing::New(number, validator) = sources.validate(&packet, true) else { panic!("it was announced") };
            let now = Instant::ZERO + Duration::from_millis(ssrc.into());
            sources.admit(now, &packet, Role::Media, validator, number);
            assert_eq!(sources.count(), ssrc.min(MOST_VALID as u32));
            assert!(sources.len() <= MOST_VALID);
        }
        assert_eq!(sources.ssrcs().collect::<Vec<_>>(), (993..=1_000).collect::<Vec<_>>());
    }
}
