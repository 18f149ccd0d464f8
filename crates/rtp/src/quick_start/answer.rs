//! A Quick-Start request on a challenge, and the receiver's answer behind its echo [RFC 4782 §4.2] [RFC 5634 §2.2.1].
//!
//! ```text
//!  V=2|P| subtype 9 | PT=204 | length = 4
//!  SSRC of the media stream, or of the receiver
//!  "FPCE"
//!  option | rate | TTL Diff | 0
//!  QS Nonce (30 bits, low) (32)
//! ```
//!
//! Behind a challenge all eight bytes are zero: the packet of this datagram has a Quick-Start option, and the echo may be as much longer.
//! Behind an echo, option is 1 where the option came, with rate, TTL Diff and nonce as they arrived, and 0 where the datagram came
//! without it. A receiver that does not know Quick-Start passes over the packet, and its echo has none.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use crate::WireError;
use crate::rtcp::{self, App, NAME};
use crate::wire::{Put, Reader};
use fairpace_control::quick_start::QsEcho;
use fairpace_units::{QsNonce, QsOption, QsRate, QsResponse};

const SUBTYPE: u8 = 9;

/// Whether the packet is of this kind.
pub(crate) fn is_quick_start(app: &App<'_>) -> bool {
    app.name == NAME && app.subtype == SUBTYPE
}

/// Appends the packet behind a challenge.
pub fn emit_request(ssrc: u32, out: &mut Vec<u8>) {
    emit(ssrc, [0; 4], 0, out);
}

/// Appends the answer behind an echo: the option that the datagram of the challenge came with.
pub fn emit_answer(ssrc: u32, option: Option<&QsOption>, out: &mut Vec<u8>) {
    let came = option.map_or([0; 4], |o| [1, o.rate.code(), o.ttl_diff(), 0]);
    emit(ssrc, came, option.map_or(0, |o| o.nonce.get()), out);
}

fn emit(ssrc: u32, head: [u8; 4], nonce: u32, out: &mut Vec<u8>) {
    rtcp::emit_packet(out, rtcp::packet_type::APP, SUBTYPE.into(), |out| {
        out.put_u32(ssrc);
        out.put(&NAME);
        out.put(&head);
        out.put_u32(nonce);
    });
}

/// Reads the answer behind an echo: [`QsEcho::Came`] or [`QsEcho::Missing`].
///
/// # Errors
/// [`WireError`] if the packet is too short, or says neither, or names a rate that the option does not have.
pub fn parse(app: &App<'_>) -> Result<QsEcho, WireError> {
    let mut r = Reader::new("Quick-Start answer", app.data);
    let (came, rate, ttl_diff, _) = (r.u8()?, r.u8()?, r.u8()?, r.u8()?);
    let nonce = QsNonce::new(r.u32()?);
    match came {
        0 => Ok(QsEcho::Missing),
        1 => {
            let found = u32::from(rate);
            let rate = QsRate::from_code(rate);
            let rate = rate.ok_or(WireError::Field { what: "Quick-Start rate", found, allowed: "0 to 15" })?;
            Ok(QsEcho::Came(QsResponse { rate, ttl_diff, nonce }))
        }
        found => Err(WireError::Field { what: "Quick-Start answer", found: found.into(), allowed: "0 or 1" }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtcp::{Compound, Rtcp};
    use fairpace_units::QsFunction;

    fn read(bytes: &[u8]) -> Result<QsEcho, WireError> {
        let Some(Rtcp::App(app)) = Compound::parse(bytes).unwrap().next() else { panic!("an APP packet") };
        assert!(is_quick_start(&app));
        parse(&app)
    }

    #[test]
    fn an_answer_says_what_came_and_is_as_long_as_the_request() {
        let option = QsOption {
            function: QsFunction::Request,
            rate: QsRate::from_code(5).unwrap(),
            qs_ttl: 200,
            ip_ttl: 62,
            nonce: QsNonce::new(0x2abc_def1),
        };
        let (mut request, mut answer, mut missing) = (Vec::new(), Vec::new(), Vec::new());
        emit_request(7, &mut request);
        emit_answer(9, Some(&option), &mut answer);
        emit_answer(9, None, &mut missing);
        // V=2, subtype 9; APP; 4 words behind the first; SSRC 9; the name; came, rate 5, 62 - 200 + 256 = 118; nonce.
        let bytes = [0x89, 204, 0, 4, 0, 0, 0, 9, b'F', b'P', b'C', b'E', 1, 5, 118, 0, 0x2a, 0xbc, 0xde, 0xf1];
        assert_eq!(answer, bytes);
        assert_eq!([request.len(), missing.len()], [20, 20]);
        assert_eq!(read(&answer), Ok(QsEcho::Came(option.response())));
        assert_eq!(read(&missing), Ok(QsEcho::Missing));
    }

    #[test]
    fn what_no_receiver_says_is_refused() {
        for (at, value) in [(12, 2), (13, 16)] {
            let mut bytes = vec![0x89, 204, 0, 4, 0, 0, 0, 9, b'F', b'P', b'C', b'E', 1, 5, 118, 0, 0, 0, 0, 0];
            bytes[at] = value;
            assert!(read(&bytes).is_err(), "{value} at {at}");
        }
        let short = [0x89, 204, 0, 3, 0, 0, 0, 9, b'F', b'P', b'C', b'E', 1, 5, 118, 0];
        assert!(read(&short).is_err());
    }
}
