//! The proof that makes a report believable: the receiver shows that it holds the packets it acknowledges.
//!
//! Each packet carries a nonce ([`crate::header_ext`]). In front of every CCFB packet our receiver
//! puts an APP packet (`FPCE`, subtype 2) with, for each block and in the same order, the sum of the
//! nonces of the packets that the block claims, modulo 2^32. Who acknowledges a packet that has not
//! arrived does not know its nonce, and the sum is right with probability 2^-32. The report number
//! makes replays visible; the DSCP shows whether the network has bleached the class.
//!
//! ```text
//!  V=2|P| subtype 2 | PT=204 | length
//!  SSRC of the receiver
//!  "FPCE"
//!  report number (32), +1 for each
//!  for each block: nonce sum (32)
//!                  DSCP that the newest packet arrived with (8) | µs (24)
//! ```
//!
//! The µs are how long the newest packet was held before the report, for reports that have no place for that; 0 before
//! RFC 8888's, 16.7 s and more saturate.
//!
//! APP comes first because Wireshark takes a datagram for RTCP by its first packet, and does not
//! expect feedback there.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use crate::rtcp::{App, NAME};
use crate::wire::{Put, Reader, micros};
use crate::{WireError, rtcp};
use fairpace_units::{Dscp, Duration};

const SUBTYPE: u8 = 2;

/// The claims of one feedback datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claims<'a> {
    /// Who reports.
    pub receiver: u32,
    /// +1 for each feedback datagram, both classes together.
    pub number: u32,
    blocks: &'a [u8],
}

/// The claim of one CCFB block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Claim {
    /// Sum of the nonces of all packets that the block reports as received.
    pub nonce_sum: u32,
    /// The code point of the stream's newest packet.
    pub dscp: Dscp,
    /// From the newest packet's arrival to the report, whole µs; zero where the report itself tells.
    pub held: Duration,
}

/// Bytes of a claims packet for that many blocks.
pub const fn len(blocks: usize) -> usize {
    blocks.saturating_mul(8).saturating_add(16)
}

impl<'a> Claims<'a> {
    /// From an APP packet; `None` if it is not one of these.
    ///
    /// # Errors
    /// [`WireError`] if it is one, and does not hold whole claims.
    pub fn parse(app: &App<'a>) -> Result<Option<Self>, WireError> {
        if app.name != NAME || app.subtype != SUBTYPE {
            return Ok(None);
        }
        let mut r = Reader::new("claims", app.data);
        let number = r.u32()?;
        if !r.len().is_multiple_of(8) {
            return Err(WireError::Truncated { what: "claim", needed: 8, found: r.len() % 8 });
        }
        Ok(Some(Claims { receiver: app.ssrc, number, blocks: r.rest() }))
    }

    /// One for each block of the CCFB packet that follows.
    pub fn claims(&self) -> impl Iterator<Item = Claim> + use<'a> {
        let (words, _) = self.blocks.as_chunks::<8>();
        words.iter().map(|&[a, b, c, d, dscp, x, y, z]| Claim {
            nonce_sum: u32::from_be_bytes([a, b, c, d]),
            dscp: Dscp::new(dscp),
            held: Duration::from_micros(u32::from_be_bytes([0, x, y, z]).into()),
        })
    }
}

/// Writes a claims packet.
pub fn emit(out: &mut Vec<u8>, receiver: u32, number: u32, claims: impl IntoIterator<Item = Claim>) {
    rtcp::emit_packet(out, rtcp::packet_type::APP, SUBTYPE.into(), |out| {
        out.put_u32(receiver);
        out.put(&NAME);
        out.put_u32(number);
        for c in claims {
            out.put_u32(c.nonce_sum);
            let held = micros(c.held).min((1 << 24) - 1);
            out.put_u32(u32::from(c.dscp.get()) << 24 | held);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtcp::{Compound, Rtcp};
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10_000))]

        #[test]
        fn what_is_written_is_read_back(
            receiver: u32, number: u32, claims in prop::collection::vec((any::<u32>(), 0_u8..64, 0_u64..1 << 24), 0..6),
        ) {
            let claims: Vec<Claim> = claims
                .iter()
                .map(|c| Claim { nonce_sum: c.0, dscp: Dscp::new(c.1), held: Duration::from_micros(c.2) })
                .collect();
            let mut out = Vec::new();
            emit(&mut out, receiver, number, claims.clone());
            prop_assert_eq!(out.len(), len(claims.len()));
            let Some(Rtcp::App(app)) = Compound::parse(&out).unwrap().next() else { panic!() };
            let back = Claims::parse(&app).unwrap().unwrap();
            prop_assert_eq!((back.receiver, back.number), (receiver, number));
            prop_assert_eq!(back.claims().collect::<Vec<_>>(), claims);
        }

        #[test]
        fn any_data_is_read_or_refused(data in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Ok(Some(c)) = Claims::parse(&App { ssrc: 1, subtype: SUBTYPE, name: NAME, data: &data }) {
                let _ = c.claims().count();
            }
        }
    }
}
