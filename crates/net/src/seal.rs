//! A shared key: without it nobody is heard, nor understands what is sent.
//!
//! ```text
//!  sender                                                     receiver
//!  challenge | salt S | HMAC(key, all before)      ------->   draws R
//!                                                  <-------   echo | salt R | HMAC(key, all before, S)
//!  SRTP and SRTCP, keys by HKDF(key, S R, "sender")   ---->
//!                                                  <-------   SRTCP, keys by HKDF(key, S R, "receiver")
//! ```
//!
//! Both ends hold the same 256-bit [`Key`]. Each adds 128 random bits of its own, so that no two sessions and no two directions
//! have the same keys, even if one end is started again and remembers nothing [RFC 3711 §9.1]. AES-128-GCM protects everything
//! [RFC 7714] but challenges and echoes; these show SSRCs and the codec, and carry an HMAC-SHA256 behind them in an APP packet:
//!
//! ```text
//!  V=2|P| subtype 7 | PT=204 | length = 15
//!  SSRC
//!  "FPCE"
//!  salt (128)
//!  number (32): of a challenge, from 1 on; of an echo 0
//!  HMAC (256): of all bytes of the datagram before it; of an echo with S behind them
//! ```
//!
//! A challenge has a number that counts up, so that of a session each is heard once. A recorded one of an earlier session begins one that never
//! comes to life, because its keys depend on the new R: it may take the place of a receiver that is idle, until that place's time is over.
//! The sender takes up new keys only with an echo that answers a question of its own for the first time and lets it in: an echo that
//! says BUSY or TAKEN, one that comes again, one of another question, and one with an R that was left behind change nothing. So a challenge
//! that somebody carries to the receiver from elsewhere, and the answer to it, do no harm.
//!
//! State is kept for challenges with the right HMAC only ([`asking`]), keys from the first authentic packet on, and for the SSRCs that those
//! or the echo name: the library would keep some for any SSRC before it has judged a packet. The TCP half is sealed packet by packet,
//! before framing.
//!
//! Limit: both ends count the wraps of sequence numbers from the first packet under new keys. If a receiver is started again, and all
//! packets between that moment and a wrap are lost, its count is one behind, and it opens no packet of that stream any more.

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

mod asking;
mod file;
mod window;
mod wire;

use asking::{Asking, Heard};
use fairpace_rtp::{What, packet};
use fairpace_units::Bytes;
use ring::hkdf::{self, HKDF_SHA256, KeyType};
use ring::hmac;
use rtc_srtp::context::Context;
use rtc_srtp::option::ContextOption;
use rtc_srtp::protection_profile::ProtectionProfile;
use std::collections::VecDeque;
use std::net::SocketAddr;
use window::Window;
use wire::{Answer, Facts, SALT, Salt, Trailer};

/// Bytes that a sealed RTP packet is longer than it was.
pub(crate) const OVERHEAD: Bytes = Bytes::new(16);
/// Bytes that a challenge is longer than that, besides.
pub(crate) const CHALLENGE_OVERHEAD: Bytes = Bytes::new(wire::TRAILER as u64 - OVERHEAD.get());

/// A packet that comes so much later than a newer one is taken for a repetition.
const WINDOW: usize = 1_024;
/// The last number of an RTP packet, and the last index of SRTCP [RFC 3711 §3.4]; after each comes 0.
const LAST_SEQUENCE: u64 = 0xffff;
const LAST_INDEX: u64 = 0x7fff_ffff;
/// Senders, or sessions of one, of which a receiver keeps keys; of one address a quarter of them.
const MOST_SESSIONS: usize = 16;
/// Salts of receivers that a sender has met. One of them is started again more often than that: the flow ends.
const MOST_SALTS: usize = 4_096;
/// Challenges of a sender that wait for their echo.
const MOST_ASKED: usize = 64;

/// Whether a challenge or an echo was sealed with a key, which nobody but its owners can tell for right: what follows it is not to be
/// read, and nothing of it may be changed on its way.
pub fn is_sealed(datagram: &[u8]) -> bool {
    wire::split(datagram).is_some()
}

/// The secret that both ends share, 256 bits.
#[derive(Clone)]
pub struct Key([u8; 32]);

impl core::fmt::Debug for Key {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Key(secret)")
    }
}

impl Key {
    /// The key of these bytes; all of them should be random.
    pub const fn new(bytes: [u8; 32]) -> Key {
        Key(bytes)
    }

    /// A key that nobody can guess.
    ///
    /// # Errors
    /// [`NetError::Io`](crate::NetError::Io) if the system has no random bytes.
    pub fn generate() -> Result<Key, crate::NetError> {
        crate::random::random().map(Key)
    }

    /// From 64 hexadecimal digits; white space around them is passed over. `None`: something else was found.
    pub fn from_hex(text: &str) -> Option<Key> {
        let mut key = [0; 32];
        let (digits, rest) = text.trim().as_bytes().as_chunks::<2>();
        if digits.len() != key.len() || !rest.is_empty() {
            return None;
        }
        for (byte, pair) in key.iter_mut().zip(digits) {
            let [high, low] = pair.map(|c| char::from(c).to_digit(16));
            *byte = u8::try_from(high? << 4 | low?).ok()?;
        }
        Some(Key(key))
    }

    /// As [`from_hex`](Self::from_hex) reads it.
    pub fn to_hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn derive<const N: usize>(&self, salt: &[u8], purpose: &str) -> [u8; N] {
        struct Length(usize);
        impl KeyType for Length {
            fn len(&self) -> usize {
                self.0
            }
        }
        let mut derived = [0; N];
        let key = hkdf::Salt::new(HKDF_SHA256, salt).extract(&self.0);
        let parts = [b"fairpace 1 ", purpose.as_bytes()];
        let filled = key.expand(&parts, Length(N)).and_then(|okm| okm.fill(&mut derived));
        assert!(filled.is_ok(), "HKDF gives up to 8,160 bytes [RFC 5869 §2.3]");
        derived
    }

    fn mac(&self, purpose: &str) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, &self.derive::<32>(b"", purpose))
    }

    /// One direction of a session.
    #[allow(clippy::expect_used, reason = "of this build and of constants, not of anything that arrives")]
    fn context(&self, sender: &Salt, receiver: &Salt, purpose: &str) -> Context {
        let salt = [sender.as_slice(), receiver].concat();
        let material: [u8; 28] = self.derive(&salt, purpose);
        let (key, salt) = material.split_at(16);
        let [rtp, rtcp] = [LAST_SEQUENCE, LAST_INDEX]
            .map(|last| -> Option<ContextOption> { Some(Box::new(move || Box::new(Window::new(WINDOW, last)))) });
        let provider = rtc_crypto::default_provider().expect("built with `ring`");
        let profile = ProtectionProfile::AeadAes128Gcm;
        Context::new(key, salt, profile, rtp, rtcp, provider.crypto()).expect("the profile's lengths")
    }
}

/// Both directions of a session, at one of its ends.
struct Contexts {
    out: Context,
    back: Context,
}

impl core::fmt::Debug for Contexts {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Contexts(secret)")
    }
}

impl Contexts {
    fn new(key: &Key, sender: &Salt, receiver: &Salt, is_sender: bool) -> Contexts {
        let (sending, receiving) = (key.context(sender, receiver, "sender"), key.context(sender, receiver, "receiver"));
        if is_sender { Contexts { out: sending, back: receiving } } else { Contexts { out: receiving, back: sending } }
    }

    fn seal(&mut self, bytes: &[u8], into: &mut Vec<u8>) -> Option<()> {
        let sealed = if packet::is_rtcp(bytes) { self.out.encrypt_rtcp(bytes) } else { self.out.encrypt_rtp(bytes) };
        into.clear();
        into.extend_from_slice(&sealed.ok()?);
        Some(())
    }

    fn open(&mut self, bytes: &[u8], into: &mut Vec<u8>) -> Option<()> {
        if packet::is_rtcp(bytes) && !wire::is_encrypted_rtcp(bytes) {
            return None;
        }
        let opened = if packet::is_rtcp(bytes) { self.back.decrypt_rtcp(bytes) } else { self.back.decrypt_rtp(bytes) };
        into.clear();
        into.extend_from_slice(&opened.ok()?);
        Some(())
    }
}

/// The sender's end.
#[derive(Debug)]
pub(crate) struct SenderSeal {
    key: Key,
    /// Of challenges, and of echoes.
    macs: [hmac::Key; 2],
    salt: Salt,
    /// Challenges so far.
    number: u32,
    /// The tokens of those that nothing but BUSY has answered, oldest first.
    asked: VecDeque<u64>,
    /// The receiver's salts so far; the last one is in force.
    met: Vec<Salt>,
    /// With the receiver's SSRC.
    session: Option<(u32, Contexts)>,
    buffer: Vec<u8>,
    refused: u64,
}

impl SenderSeal {
    pub(crate) fn new(key: Key, salt: Salt) -> SenderSeal {
        let macs = [key.mac("challenge"), key.mac("echo")];
        let (asked, met) = (VecDeque::new(), Vec::new());
        SenderSeal { key, macs, salt, number: 0, asked, met, session: None, buffer: Vec::new(), refused: 0 }
    }

    /// The datagram as it leaves; `None` if there is nobody yet who could read it.
    pub(crate) fn seal(&mut self, what: What, bytes: &[u8]) -> Option<&[u8]> {
        if what == What::Challenge {
            let Facts::Challenge { token, .. } = wire::read(bytes)? else { return None };
            if self.asked.len() >= MOST_ASKED {
                self.asked.pop_front();
            }
            self.asked.push_back(token);
            self.number = self.number.checked_add(1)?;
            let [challenges, _] = &self.macs;
            wire::append(bytes, &self.salt, self.number, |signed| hmac::sign(challenges, signed), &mut self.buffer);
        } else {
            let (_, contexts) = self.session.as_mut()?;
            contexts.seal(bytes, &mut self.buffer)?;
        }
        Some(&self.buffer)
    }

    /// The datagram as it was before it was sealed; `None` if it was not, or by somebody without the key, or has come before.
    pub(crate) fn open(&mut self, bytes: &[u8]) -> Option<&[u8]> {
        if self.judge(bytes).is_none() {
            self.refused = self.refused.saturating_add(1);
            return None;
        }
        Some(&self.buffer)
    }

    /// Datagrams that were refused.
    pub(crate) const fn refused(&self) -> u64 {
        self.refused
    }

    fn judge(&mut self, bytes: &[u8]) -> Option<()> {
        if let Some(Trailer { message, salt, signed, mac, .. }) = wire::split(bytes) {
            let [_, echoes] = &self.macs;
            let signed = [signed, self.salt.as_slice()].concat();
            hmac::verify(echoes, &signed, mac).ok()?;
            let Facts::Echo { token, receiver, answer } = wire::read(message)? else { return None };
            let at = self.asked.iter().position(|asked| *asked == token)?;
            if answer == Answer::LetIn && self.met.last() != Some(&salt) {
                if self.met.contains(&salt) || self.met.len() >= MOST_SALTS {
                    return None;
                }
                self.met.push(salt);
                self.session = Some((receiver, Contexts::new(&self.key, &self.salt, &salt, true)));
            }
            // Who is busy may let this challenge in yet.
            if answer != Answer::Busy {
                self.asked.remove(at);
            }
            self.buffer.clear();
            self.buffer.extend_from_slice(message);
            return Some(());
        }
        let (receiver, contexts) = self.session.as_mut()?;
        (wire::ssrc(bytes)? == *receiver).then_some(())?;
        contexts.open(bytes, &mut self.buffer)
    }
}

/// A session of a sender, at the receiver: a packet under its keys has come.
#[derive(Debug)]
struct Session {
    address: SocketAddr,
    salt: Salt,
    own: Salt,
    ssrcs: [u32; 4],
    heard: Heard,
    contexts: Contexts,
}

/// The receiver's end.
#[derive(Debug)]
pub(crate) struct ReceiverSeal {
    key: Key,
    macs: [hmac::Key; 2],
    asking: Asking,
    /// Oldest first.
    sessions: Vec<Session>,
    buffer: Vec<u8>,
    refused: u64,
}

impl ReceiverSeal {
    pub(crate) fn new(key: Key) -> ReceiverSeal {
        let macs = [key.mac("challenge"), key.mac("echo")];
        let (asking, sessions) = (Asking::default(), Vec::new());
        ReceiverSeal { key, macs, asking, sessions, buffer: Vec::new(), refused: 0 }
    }

    /// The datagram as it leaves for `to`; `None` if nobody there could read it, or nobody is known to be there: but for echoes,
    /// nothing leaves before a packet of the session has come.
    pub(crate) fn seal(&mut self, what: What, bytes: &[u8], to: SocketAddr) -> Option<&[u8]> {
        if what == What::Echo {
            let Facts::Echo { token, .. } = wire::read(bytes)? else { return None };
            let session = self.sessions.iter().rev().find(|s| s.address == to && s.heard.has_token(token));
            let asker = || self.asking.of(to).find(|asker| asker.heard.has_token(token));
            let (salt, own) = session.map(|s| (s.salt, s.own)).or_else(|| asker().map(|a| (a.salt, a.own)))?;
            let [_, echoes] = &self.macs;
            let sign = |signed: &[u8]| hmac::sign(echoes, &[signed, salt.as_slice()].concat());
            wire::append(bytes, &own, 0, sign, &mut self.buffer);
        } else {
            let session = self.sessions.iter_mut().rev().find(|s| s.address == to)?;
            session.contexts.seal(bytes, &mut self.buffer)?;
        }
        Some(&self.buffer)
    }

    /// As [`SenderSeal::open`], of a datagram from `from`, into the buffer `into`. `draw` gives random bits for a session that begins.
    pub(crate) fn open<'b>(
        &mut self,
        bytes: &[u8],
        from: SocketAddr,
        draw: impl FnOnce() -> Option<Salt>,
        into: &'b mut Vec<u8>,
    ) -> Option<&'b [u8]> {
        if self.judge(bytes, from, draw, into).is_none() {
            self.refused = self.refused.saturating_add(1);
            return None;
        }
        Some(into)
    }

    /// Those that asked from that address, and their keys, go over to an end of its own: of a receiver of several, each sender has one.
    pub(crate) fn part(&mut self, from: SocketAddr) -> ReceiverSeal {
        let mut own = ReceiverSeal::new(self.key.clone());
        for asker in self.asking.take(from) {
            own.asking.put(from, asker.salt, asker.own, asker.ssrcs, asker.heard);
        }
        own
    }

    /// The end of a sender that has gone gives back which challenges it has heard: none of them is heard again. No keys remain, nor
    /// the random bits that some were made of: `draw` gives others, without which the sender has to ask with a salt of another session.
    pub(crate) fn take_back(&mut self, own: &mut ReceiverSeal, mut draw: impl FnMut() -> Option<Salt>) {
        for session in std::mem::take(&mut own.sessions) {
            let Session { address, salt, ssrcs, heard, .. } = session;
            if let Some(fresh) = draw() {
                self.asking.put(address, salt, fresh, ssrcs, heard);
            }
        }
        for (from, asker) in own.asking.take_all() {
            self.asking.put(from, asker.salt, asker.own, asker.ssrcs, asker.heard);
        }
    }

    /// Datagrams that were refused.
    pub(crate) const fn refused(&self) -> u64 {
        self.refused
    }

    fn judge(
        &mut self,
        bytes: &[u8],
        from: SocketAddr,
        draw: impl FnOnce() -> Option<Salt>,
        into: &mut Vec<u8>,
    ) -> Option<()> {
        if let Some(Trailer { message, salt, number, signed, mac }) = wire::split(bytes) {
            let [challenges, _] = &self.macs;
            hmac::verify(challenges, signed, mac).ok()?;
            let Facts::Challenge { token, ssrcs } = wire::read(message)? else { return None };
            let session = self.sessions.iter_mut().find(|s| s.address == from && s.salt == salt);
            let heard = match session {
                Some(session) => &mut session.heard,
                None if self.asking.get_mut(from, &salt).is_some() => &mut self.asking.get_mut(from, &salt)?.heard,
                None => &mut self.asking.push(from, salt, draw()?, ssrcs)?.heard,
            };
            heard.take(number, token).then_some(())?;
            into.clear();
            into.extend_from_slice(message);
            return Some(());
        }
        let ssrc = wire::ssrc(bytes)?;
        let theirs = |s: &&mut Session| s.address == from && s.ssrcs.contains(&ssrc);
        if self.sessions.iter_mut().rev().filter(theirs).any(|session| session.contexts.open(bytes, into).is_some()) {
            return Some(());
        }
        let key = &self.key;
        let (salt, contexts) = self.asking.of(from).filter(|asker| asker.ssrcs.contains(&ssrc)).find_map(|asker| {
            let mut contexts = Contexts::new(key, &asker.salt, &asker.own, false);
            contexts.open(bytes, into).map(|()| (asker.salt, contexts))
        })?;
        let asker = self.asking.remove(from, &salt)?;
        self.make_room(from);
        let (own, ssrcs, heard) = (asker.own, asker.ssrcs, asker.heard);
        self.sessions.push(Session { address: from, salt, own, ssrcs, heard, contexts });
        Some(())
    }

    /// Room for one more session of that address: its oldest, or the oldest of all, gives way.
    fn make_room(&mut self, from: SocketAddr) {
        let of_address = self.sessions.iter().filter(|s| s.address == from).count();
        let has_share = of_address >= MOST_SESSIONS / 4;
        if !has_share && self.sessions.len() < MOST_SESSIONS {
            return;
        }
        if let Some(at) = self.sessions.iter().position(|s| !has_share || s.address == from) {
            self.sessions.remove(at);
        }
    }
}

/// Random bits for [`ReceiverSeal::open`], of the system's.
pub(crate) fn draw() -> Option<Salt> {
    crate::random::random::<SALT>().ok()
}

#[cfg(test)]
mod targets;
#[cfg(test)]
mod tests;
