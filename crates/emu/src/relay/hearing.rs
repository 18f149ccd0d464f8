//! Whether a client hears what the relay sends to it. Anybody can write a victim's address into a packet, and the
//! target's answer would then hit the victim: so an address gets at most three times what came from there, in bytes
//! and in packets, until it has shown that it hears.
//!
//! An address has shown that when it gives back a number that only the target knew and that went to it: the token of a
//! challenge of `fairpace send`, or the cookie of an SRT listener. Nothing general takes their place: the relay
//! cannot tell what of a protocol that it does not know could be guessed by a forger who hears nothing.
//!
//! An SRT listener makes its cookie of the address that calls, which for all clients is the relay's own: one cookie a minute
//! for everybody. So a number that has gone to another host shows nothing, or who asks once in his own name could call in others'.

#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects
    )
)]

use fairpace_rtp::Budget;
use fairpace_rtp::challenge::Message;
use fairpace_rtp::rtcp::{Compound, Rtcp};
use std::collections::VecDeque;
use std::net::IpAddr;

/// Questions remembered of a client. A session of ours asks six times, an SRT listener has a cookie for each minute.
const MAX_QUESTIONS: usize = 64;
/// Numbers remembered that have gone to earlier clients: of an SRT listener an hour's, whose cookies are believed for two minutes.
const MAX_ELSEWHERE: usize = 64;

/// The number in a handshake that is to come back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Proof {
    /// Of a challenge, in the echo.
    Token(u64),
    /// Of an SRT listener's INDUCTION, in the caller's CONCLUSION.
    Cookie(u32),
}

/// A handshake of either protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Handshake {
    Question(Proof),
    Answer(Proof),
}

/// One client: its packets and what went to it.
#[derive(Debug, Default)]
pub(super) struct Hearing {
    /// The client's; none before the first.
    host: Option<IpAddr>,
    /// Questions that have gone to earlier clients, and to which.
    elsewhere: VecDeque<(IpAddr, Proof)>,
    bytes: Budget,
    packets: Budget,
    questions: VecDeque<Proof>,
    /// The client's own questions: the same number from the target says nothing.
    own: VecDeque<Proof>,
    /// There were more of its own than are remembered: whether a number is one of them is not known any more, so that none shows
    /// anything.
    own_lost: bool,
    heard: bool,
}

impl Hearing {
    /// The next client, which need not show anything if it was configured.
    pub(super) fn next(&mut self, host: IpAddr, is_configured: bool) {
        let before = std::mem::take(self);
        let mut elsewhere = before.elsewhere;
        if let Some(host) = before.host {
            for question in before.questions {
                elsewhere.retain(|known| *known != (host, question));
                elsewhere.push_back((host, question));
            }
        }
        while elsewhere.len() > MAX_ELSEWHERE {
            elsewhere.pop_front();
        }
        *self = Hearing { host: Some(host), elsewhere, heard: is_configured, ..Hearing::default() };
    }

    /// Whether the number has gone to another host.
    fn is_known_elsewhere(&self, proof: Proof) -> bool {
        self.elsewhere.iter().any(|(host, told)| *told == proof && Some(*host) != self.host)
    }

    /// A packet came from the client.
    pub(super) fn on_received(&mut self, bytes: &[u8]) {
        if self.heard {
            return;
        }
        self.bytes.on_received(bytes.len());
        self.packets.on_received(1);
        match handshake(bytes) {
            Some(Handshake::Question(proof)) => self.own_lost |= remember(&mut self.own, proof),
            Some(Handshake::Answer(proof)) => {
                let is_told = self.questions.contains(&proof) && !self.is_known_elsewhere(proof);
                self.heard = !self.own_lost && is_told;
            }
            None => {}
        }
    }

    /// Whether a packet for the client may leave. Counts it if so.
    pub(super) fn may_send(&mut self, bytes: &[u8]) -> bool {
        if !self.heard {
            if !self.packets.affords(1) || !self.bytes.afford(bytes.len()) {
                return false;
            }
            self.packets.on_sent(1);
        }
        // Of a client that has shown that it hears, too: the next one must not show what went to this one.
        match handshake(bytes) {
            Some(Handshake::Question(proof)) if !self.own.contains(&proof) => {
                remember(&mut self.questions, proof);
            }
            _ => {}
        }
        true
    }
}

/// Keeps the newest; whether the oldest was forgotten for it.
fn remember(proofs: &mut VecDeque<Proof>, proof: Proof) -> bool {
    if proofs.contains(&proof) {
        return false;
    }
    let full = proofs.len() == MAX_QUESTIONS;
    if full {
        proofs.pop_front();
    }
    proofs.push_back(proof);
    full
}

fn handshake(bytes: &[u8]) -> Option<Handshake> {
    srt_handshake(bytes).or_else(|| {
        Compound::parse(bytes).ok()?.find_map(|packet| match packet {
            Rtcp::App(app) => match Message::parse(&app) {
                Ok(Some(Message::Challenge(c))) => Some(Handshake::Question(Proof::Token(c.token))),
                Ok(Some(Message::Echo(e))) => Some(Handshake::Answer(Proof::Token(e.token))),
                Ok(None) | Err(_) => None,
            },
            _ => None,
        })
    })
}

/// A handshake with a cookie [draft-sharabayko-srt-01 §3.2.1]: a control packet of type 0; its header of 16 bytes, 20
/// bytes later the handshake's type, 8 bytes later the cookie.
fn srt_handshake(bytes: &[u8]) -> Option<Handshake> {
    const CONTROL_HANDSHAKE: u16 = 0x8000;
    const INDUCTION: u32 = 1;
    const CONCLUSION: u32 = u32::MAX;
    if u16::from_be_bytes(*bytes.first_chunk()?) != CONTROL_HANDSHAKE {
        return None;
    }
    let word = |at: usize| Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?));
    // The caller's INDUCTION has none.
    let cookie = word(44).filter(|cookie| *cookie != 0)?;
    match word(36)? {
        INDUCTION => Some(Handshake::Question(Proof::Cookie(cookie))),
        CONCLUSION => Some(Handshake::Answer(Proof::Cookie(cookie))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairpace_rtp::Codec;
    use fairpace_rtp::challenge::{Challenge, Echo};
    use fairpace_rtp::feedback::Request;
    use fairpace_units::{Class, Dscp, Duration, Ecn};

    fn challenge(token: u64) -> Vec<u8> {
        let mut out = Vec::new();
        let (class, codec, form) = (Class::Normal, Codec::Vp8, Request::Ccfb);
        let (media, dummy) = ((96, 1), (97, 2));
        let question =
            Challenge { token, class, codec, media, dummy, retransmission: None, fec: None, form, proof: None };
        question.emit(&mut out);
        out
    }

    fn echo(token: u64) -> Vec<u8> {
        let mut out = Vec::new();
        let (receiver, dscp, ecn, delay) = (3, Dscp::DEFAULT, Ecn::NotEct, Duration::ZERO);
        let (feedback_interval, next_report) = (Duration::ZERO, 1);
        let (taken, fec, busy, ends, show, rwnd) = (false, false, false, false, false, None);
        let answer = Echo {
            receiver,
            token,
            dscp,
            ecn,
            delay,
            rwnd,
            feedback_interval,
            next_report,
            taken,
            fec,
            busy,
            ends,
            show,
        };
        answer.emit(&mut out);
        out
    }

    #[test]
    fn a_number_that_went_there_first_shows_that_a_client_hears_and_its_own_shows_nothing() {
        let mut client = Hearing::default();
        client.on_received(&[0; 100]);
        assert!(client.may_send(&challenge(7)));
        client.on_received(&echo(8));
        assert!(!client.heard, "a guess");
        client.on_received(&echo(7));
        assert!(client.heard);
        // A target that gives back what it gets, and a forger that asked it.
        let mut forger = Hearing::default();
        forger.on_received(&challenge(7));
        assert!(forger.may_send(&challenge(7)));
        forger.on_received(&echo(7));
        assert!(!forger.heard);
    }

    /// A handshake of SRT with a cookie.
    fn srt(kind: u32, cookie: u32) -> Vec<u8> {
        let mut out = vec![0; 64];
        out[..2].copy_from_slice(&[0x80, 0]);
        out[36..40].copy_from_slice(&kind.to_be_bytes());
        out[44..48].copy_from_slice(&cookie.to_be_bytes());
        out
    }

    #[test]
    fn a_cookie_that_has_gone_to_another_host_shows_nothing() {
        const INDUCTION: u32 = 1;
        const CONCLUSION: u32 = u32::MAX;
        let (forger, victim) = ([192, 0, 2, 1].into(), [192, 0, 2, 2].into());
        let calls = |relay: &mut Hearing, host: IpAddr, cookie: u32| {
            relay.next(host, false);
            relay.on_received(&srt(INDUCTION, 0));
            assert!(relay.may_send(&srt(INDUCTION, cookie)));
            relay.on_received(&srt(CONCLUSION, cookie));
            relay.heard
        };
        let mut relay = Hearing::default();
        assert!(calls(&mut relay, forger, 7), "he hears it himself");
        assert!(!calls(&mut relay, victim, 7), "and calls in the name of another");
        assert!(calls(&mut relay, forger, 7), "from his next port");
        assert!(calls(&mut relay, victim, 8), "the next minute's");
        // Nor does one that went to a client after it had shown that it hears.
        let mut relay = Hearing::default();
        relay.next(forger, true);
        assert!(relay.may_send(&srt(INDUCTION, 9)));
        assert!(!calls(&mut relay, victim, 9));
        // Memory is bounded.
        for n in 0..1_000_u32 {
            assert!(calls(&mut relay, [10, 0, (n >> 8) as u8, n as u8].into(), 100 + n));
        }
        assert!(relay.elsewhere.len() <= MAX_ELSEWHERE && relay.is_known_elsewhere(Proof::Cookie(1_098)));
    }

    #[test]
    fn a_client_with_more_questions_than_are_remembered_shows_nothing_by_what_its_target_gives_back() {
        let asked = MAX_QUESTIONS as u64 + 1;
        let mut forger = Hearing::default();
        for token in 1..=asked {
            forger.on_received(&challenge(token));
        }
        // The first is no longer among the remembered.
        assert!(forger.may_send(&challenge(1)));
        forger.on_received(&echo(1));
        assert!(!forger.heard);
        // With one less all are known, and a question of the target's still shows something.
        let mut client = Hearing::default();
        for token in 1..asked {
            client.on_received(&challenge(token));
        }
        assert!(client.may_send(&challenge(asked)));
        client.on_received(&echo(asked));
        assert!(client.heard);
    }
}
