//! The handling of an RTP packet in the session.

use super::place::TAKEOVER;
use super::sources::{Role, Standing};
use super::{Incoming, MediaPacket, ReceiverEvent, ReceiverSession, ReceiverStats};
use crate::challenge::CONSENT;
use crate::codec::Codec;
use crate::feedback::Arrived;
use crate::packet::Packet;
use crate::source::{Novelty, media_clock, silent};
use crate::{dummy, rtx};
use core::net::SocketAddr;
use fairpace_units::{Bytes, Instant};

impl ReceiverSession {
    pub(super) fn on_rtp<'d>(
        &mut self,
        now: Instant,
        packet: &Packet<'d>,
        incoming: &Incoming,
        bytes: &'d [u8],
    ) -> Option<MediaPacket<'d>> {
        let &Incoming { len, dscp, ecn, from, via, .. } = incoming;
        if !self.may_speak(now, from) {
            return None;
        }
        let (role, announced) = self.role(now, packet, from)?;
        if !announced && self.place.has_ended(now, packet.ssrc) {
            self.stats.unproven += 1;
            return None;
        }
        let sequence = self.validate(now, packet, incoming, role, announced)?;
        self.place.peer.as_mut()?.heard = now;
        let is_media = role == Role::Media && self.is_media(now, packet, from, announced);
        if is_media {
            self.place.on_media();
        }
        let announced = self.place.peer?.announced;
        let codec = announced.map_or(Codec::Vp8, |c| c.codec);
        let (role, _, source) = self.sources.source_mut(packet.ssrc)?;
        let nonce = packet.extensions.nonce.unwrap_or(0);
        let highest_before = if source.received == 0 { sequence } else { source.highest_seen };
        let novelty = source.on_packet(now, sequence, nonce, dscp, ecn, len);
        source.highest_seen = source.highest_seen.max(sequence);
        if matches!(novelty, Novelty::First | Novelty::Late) {
            if role == Role::Media {
                source.jitter.update(packet.timestamp, media_clock(now));
            }
            let size = Bytes::new(len as u64) + self.config.ip_overhead;
            let announced = announced.is_some();
            let arrived = Arrived { packet, sequence, size, ecn, via, role, is_media, announced };
            self.feedback.ask(self.request());
            if let Some(form) = self.feedback.on_packet(now, &arrived) {
                self.event(ReceiverEvent::NotTold { form });
            }
        }
        if self.reports.contradict_bye(now) {
            self.stats.byes_ignored += 1;
        }
        let media_ssrc = self.sources.media()?;
        if novelty != Novelty::First {
            return None;
        }
        let (ssrc, sequence, payload_type, payload, retransmitted) = match role {
            Role::Media if is_media => {
                if let Some(echoed) = self.echoed.take() {
                    self.requests.on_first_media(now.since(echoed));
                }
                self.requests.on_media(now, highest_before, sequence);
                self.recovery.on_media(packet);
                (packet.ssrc, sequence, packet.payload_type, packet.payload, false)
            }
            Role::Dummy | Role::Media => return None,
            Role::Fec => {
                self.stats.malformed += u64::from(!self.recovery.on_repair(bytes));
                return None;
            }
            Role::Retransmission => {
                let (original, payload) = rtx::parse(packet.payload).ok()?;
                let (_, payload_type, media) = self.sources.source_mut(media_ssrc)?;
                let highest = media.validator.highest();
                let behind = (highest as u16).wrapping_sub(original);
                let sequence = highest
                    .checked_sub(u64::from(behind))
                    .filter(|s| behind < 0x8000 && *s >= media.validator.base())?;
                if !media.repair(sequence) {
                    return None; // it has arrived meanwhile
                }
                self.stats.repaired += 1;
                self.requests.on_repaired(now, sequence);
                let first = Packet { sequence: original, ssrc: media_ssrc, payload_type, payload, ..*packet };
                self.recovery.on_media(&first);
                (media_ssrc, sequence, payload_type, payload, true)
            }
        };
        Some(MediaPacket {
            ssrc,
            sequence,
            timestamp: packet.timestamp,
            marker: packet.marker,
            payload_type,
            payload,
            arrived: now,
            one_way_delay: self.one_way_delay(now, packet),
            retransmitted,
            recovered: false,
            via,
            codec,
        })
    }

    /// The next packet that follows from repair packets and has not come meanwhile, into `buffer`: its extended number and the
    /// encoding.
    pub(super) fn recover(&mut self, buffer: &mut Vec<u8>) -> Option<(u64, Codec)> {
        let codec = self.place.peer?.announced?.codec;
        loop {
            *buffer = self.recovery.poll()?;
            let Ok(packet) = Packet::parse(buffer) else { continue };
            let Some((Role::Media, payload_type, media)) = self.sources.source_mut(packet.ssrc) else { continue };
            let highest = media.validator.highest();
            let ahead = i64::from(packet.sequence.wrapping_sub(highest as u16) as i16);
            let sequence = highest.saturating_add_signed(ahead);
            if packet.payload_type != payload_type || sequence < media.validator.base() || !media.repair(sequence) {
                continue;
            }
            let before = media.highest_seen;
            media.highest_seen = before.max(sequence);
            self.requests.on_media(self.now, before, sequence);
            self.stats.recovered += 1;
            return Some((sequence, codec));
        }
    }

    /// The role of a packet's stream, and whether a challenge announced it. `None`: while a sender that announces its
    /// streams is there, no others are taken from its address.
    fn role(&mut self, now: Instant, packet: &Packet<'_>, from: SocketAddr) -> Option<(Role, bool)> {
        if let Some((peer, c)) = self.place.peer.filter(|p| p.address == from).and_then(|p| Some((p, p.announced?))) {
            let announced = match packet.ssrc {
                s if s == c.media.1 => Some(Role::Media),
                s if s == c.dummy.1 => Some(Role::Dummy),
                s if c.retransmission.is_some_and(|r| s == r.1) => Some(Role::Retransmission),
                s if self.config.fec && c.fec.is_some_and(|f| s == f.1) => Some(Role::Fec),
                _ => None,
            };
            if announced.is_none() && !silent(now, peer.heard, CONSENT) {
                self.stats.unproven += 1;
                return None;
            }
            if let Some(role) = announced {
                return Some((role, true));
            }
        }
        Some(match packet.payload_type {
            dummy::PAYLOAD_TYPE => (Role::Dummy, false),
            rtx::PAYLOAD_TYPE => (Role::Retransmission, false),
            _ => (Role::Media, false),
        })
    }

    /// Whether this is the media stream, or takes its place: as announced, or because the old one is silent.
    fn is_media(&mut self, now: Instant, packet: &Packet<'_>, from: SocketAddr, announced: bool) -> bool {
        if self.sources.media() == Some(packet.ssrc) {
            return true;
        }
        if self.sources.is_playing(now, TAKEOVER) && !announced {
            return false;
        }
        if let Some(old) = self.sources.media() {
            let mut counts = ReceiverStats::default();
            self.sources.count_into(&mut counts);
            self.stats.media = counts.media.behind(&self.stats.media);
            self.sources.remove(old);
        }
        self.sources.play(packet.ssrc);
        self.requests.restart();
        self.reports.cancel_bye();
        if !announced && let Some(p) = &mut self.place.peer {
            p.announced = None; // another tool, at the same address
        }
        let codec = self.place.peer.and_then(|p| p.announced).map_or(Codec::Vp8, |c| c.codec);
        self.event(ReceiverEvent::NewSource { ssrc: packet.ssrc, from, payload_type: packet.payload_type, codec });
        true
    }

    /// The packet's extended number, if its source is believed.
    fn validate(
        &mut self,
        now: Instant,
        packet: &Packet<'_>,
        incoming: &Incoming,
        role: Role,
        announced: bool,
    ) -> Option<u64> {
        match self.sources.validate(packet, announced) {
            Standing::Known(n) => Some(n),
            Standing::Restarted(n) => {
                self.feedback.restart();
                self.requests.restart();
                self.recovery.restart();
                Some(n)
            }
            Standing::New(..) if !self.place.is_held_by(incoming.from) && self.ends_for_another(now) => None,
            Standing::New(n, validator) => {
                self.accept_sender(now, incoming.from, incoming.len);
                self.sources.admit(now, packet, role, validator, n);
                self.reports.set_senders(now, self.sources.count());
                Some(n)
            }
            Standing::Unproven => {
                self.stats.unproven += 1;
                None
            }
        }
    }

    fn one_way_delay(&self, now: Instant, packet: &Packet<'_>) -> Option<i64> {
        let sent = packet.extensions.send_time?;
        let here = self.config.ntp_at_zero.at(now).send_time_24();
        // Sign of 24 bits; 2^-18 s each.
        let ticks = i64::from((here.wrapping_sub(sent) << 8) as i32 >> 8);
        Some(ticks * 1_000_000_000 / (1 << 18))
    }
}
