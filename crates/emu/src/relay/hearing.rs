//! Whether a client hears what the relay sends to it. Anybody can write a victim's address into a packet, and the
//! target's answer would then hit the victim: so an address gets at most three times what came from there, in bytes
//! and in packets, until it has shown that it hears.
//!
//! An address has shown that when it gives back a number that only the target knew and that went to it: the token of a
//! challenge of `fairpace send`, or the cookie of an SRT listener. Nothing general takes their place: the relay
//! cannot tell what of a protocol that it does not know could be guessed by a forger who hears nothing.
//!
//! An SRT listener makes its cookie of the caller's address, which for all clients is the relay's, and of the minute: who has called once in
//! his own name knows it for every name. So each client is told another one, the listener's with bits of the relay's own, which are taken
//! off again from what comes back.

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

/// Questions remembered of a client. A session of ours asks six times, an SRT listener has a cookie for each minute.
const MAX_QUESTIONS: usize = 64;

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
    /// The bits that are added to cookies for this client; none before the first client, and for one that was configured.
    mask: u32,
    /// A cookie has gone to it with them.
    is_masked: bool,
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
    /// A client that was configured: it need not show anything.
    pub(super) fn configured() -> Hearing {
        Hearing { heard: true, ..Hearing::default() }
    }

    /// A client that has shown nothing yet. Nobody can guess `mask`; without one it cannot show anything.
    pub(super) fn of(mask: Option<u32>) -> Hearing {
        Hearing { mask: mask.unwrap_or(0), own_lost: mask.is_none(), ..Hearing::default() }
    }

    /// Whether the client has shown that it hears.
    pub(super) const fn has_heard(&self) -> bool {
        self.heard
    }

    /// A packet came from the client. Its cookie is the listener's afterwards.
    pub(super) fn on_received(&mut self, bytes: &mut [u8]) {
        if !self.heard {
            self.look(bytes);
        }
        if self.is_masked && srt_kind(bytes) == Some(CONCLUSION) {
            self.mask(bytes);
        }
    }

    /// A packet for the client came from the target. Its cookie is the client's own afterwards.
    pub(super) fn on_answer(&mut self, bytes: &mut [u8]) {
        match srt_kind(bytes) {
            Some(INDUCTION) => self.is_masked |= self.mask(bytes),
            Some(CONCLUSION) if self.is_masked => {
                self.mask(bytes);
            }
            _ => {}
        }
    }

    /// Adds the client's bits to a cookie, or takes them off again; whether there is one. None becomes zero, which means that there is none.
    fn mask(&self, bytes: &mut [u8]) -> bool {
        let Some(at) = bytes.get_mut(COOKIE..).and_then(|b| b.first_chunk_mut::<4>()) else { return false };
        let cookie = u32::from_be_bytes(*at);
        if cookie != 0 && cookie != self.mask {
            *at = (cookie ^ self.mask).to_be_bytes();
        }
        cookie != 0 && self.mask != 0
    }

    fn look(&mut self, bytes: &[u8]) {
        self.bytes.on_received(bytes.len());
        self.packets.on_received(1);
        match handshake(bytes) {
            Some(Handshake::Question(proof)) => self.own_lost |= remember(&mut self.own, proof),
            Some(Handshake::Answer(proof)) => self.heard = !self.own_lost && self.questions.contains(&proof),
            None => {}
        }
    }

    /// Whether a packet for the client may leave. Counts it if so.
    pub(super) fn may_send(&mut self, bytes: &[u8]) -> bool {
        if self.heard {
            return true;
        }
        if !self.packets.affords(1) || !self.bytes.afford(bytes.len()) {
            return false;
        }
        self.packets.on_sent(1);
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

/// The kinds of SRT's handshakes that have a cookie [draft-sharabayko-srt-01 §3.2.1].
const INDUCTION: u32 = 1;
const CONCLUSION: u32 = u32::MAX;
/// Where the kind stands, 20 bytes behind the header of 16, and the cookie, 8 bytes later.
const KIND: usize = 36;
const COOKIE: usize = 44;

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// The kind of a handshake of SRT: a control packet of type 0.
fn srt_kind(bytes: &[u8]) -> Option<u32> {
    const CONTROL_HANDSHAKE: u16 = 0x8000;
    (u16::from_be_bytes(*bytes.first_chunk()?) == CONTROL_HANDSHAKE).then(|| word(bytes, KIND))?
}

fn srt_handshake(bytes: &[u8]) -> Option<Handshake> {
    // The caller's INDUCTION has no cookie.
    let kind = srt_kind(bytes)?;
    let cookie = word(bytes, COOKIE).filter(|cookie| *cookie != 0)?;
    match kind {
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
        client.on_received(&mut [0; 100]);
        assert!(client.may_send(&challenge(7)));
        client.on_received(&mut echo(8));
        assert!(!client.heard, "a guess");
        client.on_received(&mut echo(7));
        assert!(client.heard);
        // A target that gives back what it gets, and a forger that asked it.
        let mut forger = Hearing::default();
        forger.on_received(&mut challenge(7));
        assert!(forger.may_send(&challenge(7)));
        forger.on_received(&mut echo(7));
        assert!(!forger.heard);
    }

    /// A handshake of SRT with a cookie.
    fn srt(kind: u32, cookie: u32) -> Vec<u8> {
        let mut out = vec![0; 64];
        out[0] = 0x80;
        out[KIND..KIND + 4].copy_from_slice(&kind.to_be_bytes());
        out[COOKIE..COOKIE + 4].copy_from_slice(&cookie.to_be_bytes());
        out
    }

    #[test]
    fn each_client_is_told_a_cookie_of_its_own_and_shows_nothing_by_the_listeners() {
        // Calls, and concludes with what it was told, or with what it believes to be the cookie.
        let calls = |client: &mut Hearing, listeners: u32, believed: Option<u32>| {
            client.on_received(&mut srt(INDUCTION, 0));
            let mut told = srt(INDUCTION, listeners);
            client.on_answer(&mut told);
            assert!(client.may_send(&told));
            let told = word(&told, COOKIE).unwrap();
            let mut back = srt(CONCLUSION, believed.unwrap_or(told));
            client.on_received(&mut back);
            (client.heard, told, word(&back, COOKIE).unwrap())
        };
        let mut client = Hearing::of(Some(0x1234_5678));
        let (is_heard, told, back) = calls(&mut client, 7, None);
        assert!(is_heard && told == 7 ^ 0x1234_5678 && back == 7, "the listener gets its own: {told:x}, {back:x}");
        // Again, as when the answer was lost, and the listener's conclusion.
        let mut again = srt(CONCLUSION, told);
        client.on_received(&mut again);
        assert_eq!(word(&again, COOKIE), Some(7));
        client.on_answer(&mut again);
        assert_eq!(word(&again, COOKIE), Some(told));
        // In another's name, with what the forger was told, or with what he knows of the listener.
        for believed in [7, told] {
            assert!(!calls(&mut Hearing::of(Some(0x9abc_def0)), 7, Some(believed)).0);
        }
        // A cookie that would become none, and callers who meet in the middle, whose conclusions have cookies of their own.
        assert_eq!(calls(&mut Hearing::of(Some(7)), 7, None), (true, 7, 7));
        let mut meets = srt(CONCLUSION, 9);
        Hearing::of(Some(5)).on_received(&mut meets);
        assert_eq!(word(&meets, COOKIE), Some(9));
        // Without random bits nothing is shown; a client that was configured is told the listener's.
        assert!(!calls(&mut Hearing::of(None), 7, None).0);
        assert_eq!(calls(&mut Hearing::configured(), 7, None), (true, 7, 7));
    }

    #[test]
    fn a_client_with_more_questions_than_are_remembered_shows_nothing_by_what_its_target_gives_back() {
        let asked = MAX_QUESTIONS as u64 + 1;
        let mut forger = Hearing::default();
        for token in 1..=asked {
            forger.on_received(&mut challenge(token));
        }
        // The first is no longer among the remembered.
        assert!(forger.may_send(&challenge(1)));
        forger.on_received(&mut echo(1));
        assert!(!forger.heard);
        // With one less all are known, and a question of the target's still shows something.
        let mut client = Hearing::default();
        for token in 1..asked {
            client.on_received(&mut challenge(token));
        }
        assert!(client.may_send(&challenge(asked)));
        client.on_received(&mut echo(asked));
        assert!(client.heard);
    }
}
