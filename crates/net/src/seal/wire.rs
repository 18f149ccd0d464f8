//! The HMAC behind challenges and echoes, and what of these the seal has to know.

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

use fairpace_rtp::challenge::{Echo, Message};
use fairpace_rtp::rtcp::{Compound, Rtcp};
use ring::hmac;

/// Random bits that each end adds to the key.
pub(super) const SALT: usize = 16;
pub(super) type Salt = [u8; SALT];

const MAC: usize = 32;
const NUMBER: usize = 4;
const HEADER: usize = 12;
/// All of the APP packet.
pub(super) const TRAILER: usize = HEADER + SALT + NUMBER + MAC;

/// V=2, subtype 7, APP, 15 words behind the first.
const BEGINS: [u8; 4] = [0x87, 204, 0, 15];

/// A datagram that ends with the APP packet.
#[derive(Debug)]
pub(super) struct Trailer<'a> {
    /// The datagram without it.
    pub(super) message: &'a [u8],
    pub(super) salt: Salt,
    pub(super) number: u32,
    /// The bytes before the HMAC.
    pub(super) signed: &'a [u8],
    pub(super) mac: &'a [u8],
}

/// The facts that a challenge or an echo tells the seal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Facts {
    Challenge { token: u64, ssrcs: [u32; 4] },
    Echo { token: u64, receiver: u32, answer: Answer },
}

/// The answer of an echo.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Answer {
    /// The sender has the place.
    LetIn,
    /// A proof is wanted first.
    Proof,
    /// Another sender has the place.
    Busy,
}

/// `None` if there is no such packet at the end; the HMAC is not judged.
pub(super) fn split(bytes: &[u8]) -> Option<Trailer<'_>> {
    let (message, trailer) = bytes.split_at_checked(bytes.len().checked_sub(TRAILER)?)?;
    let (header, rest) = trailer.split_first_chunk::<HEADER>()?;
    let [a, b, c, d, _, _, _, _, name @ ..] = header;
    if [*a, *b, *c, *d] != BEGINS || *name != fairpace_rtp::rtcp::NAME {
        return None;
    }
    let (salt, rest) = rest.split_first_chunk::<SALT>()?;
    let (number, mac) = rest.split_first_chunk::<NUMBER>()?;
    let signed = bytes.get(..bytes.len().checked_sub(MAC)?)?;
    Some(Trailer { message, salt: *salt, number: u32::from_be_bytes(*number), signed, mac })
}

/// Writes the message and the packet behind it.
pub(super) fn append(
    message: &[u8],
    salt: &Salt,
    number: u32,
    sign: impl FnOnce(&[u8]) -> hmac::Tag,
    into: &mut Vec<u8>,
) {
    into.clear();
    into.extend_from_slice(message);
    into.extend_from_slice(&BEGINS);
    into.extend_from_slice(message.get(4..8).unwrap_or(&[0; 4]));
    into.extend_from_slice(&fairpace_rtp::rtcp::NAME);
    into.extend_from_slice(salt);
    into.extend_from_slice(&number.to_be_bytes());
    let tag = sign(into);
    into.extend_from_slice(tag.as_ref());
}

/// The challenge or the echo at the beginning of a datagram.
pub(super) fn read(bytes: &[u8]) -> Option<Facts> {
    let Rtcp::App(app) = Compound::parse(bytes).ok()?.next()? else { return None };
    Some(match Message::parse(&app).ok()?? {
        Message::Challenge(c) => {
            let of = |stream: Option<(u8, u32)>| stream.map_or(c.media.1, |(_, ssrc)| ssrc);
            Facts::Challenge { token: c.token, ssrcs: [c.media.1, c.dummy.1, of(c.retransmission), of(c.fec)] }
        }
        Message::Echo(echo) => {
            let answer = match echo {
                Echo { busy: true, .. } => Answer::Busy,
                Echo { taken: true, .. } => Answer::Proof,
                _ => Answer::LetIn,
            };
            Facts::Echo { token: echo.token, receiver: echo.receiver, answer }
        }
    })
}

/// Whether an SRTCP packet says that it is encrypted [RFC 3711 §3.4]; the library does not look.
pub(super) fn is_encrypted_rtcp(bytes: &[u8]) -> bool {
    bytes.last_chunk::<4>().is_some_and(|index| u32::from_be_bytes(*index) >> 31 == 1)
}

/// The SSRC of a packet, which is in clear.
pub(super) fn ssrc(bytes: &[u8]) -> Option<u32> {
    let at = if fairpace_rtp::packet::is_rtcp(bytes) { 4 } else { 8 };
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}
