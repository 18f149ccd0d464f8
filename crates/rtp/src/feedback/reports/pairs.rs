//! The addition to a receiver report for schemes that live on those: the bottleneck's rate as packet pairs measure
//! it, and the proof that nothing was lost.
//!
//! ```text
//!  V=2|P| subtype 4 | PT=204 | length = 4
//!  SSRC of the receiver
//!  "FPCE"
//!  bottleneck's rate, 1,000 bit/s (32); 0 = not known
//!  sum of the nonces of all media packets that have arrived so far, modulo 2^32 (32)
//! ```
//!
//! The pair report follows the RR in one datagram. Between two reports that tell of no new loss the sum must have
//! grown by the nonces of all packets between them (and by that of one that was counted as lost before, and came
//! late): a receiver that hides a loss does not know what it lost. So no rate grows on a receiver's word alone. A
//! loss that is told needs no proof: it only lowers the rate.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use crate::rtcp::{App, NAME};
use crate::wire::{Put, Reader};
use crate::{WireError, rtcp};
use fairpace_units::Rate;

const SUBTYPE: u8 = 4;

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairReport {
    /// Who reports.
    pub receiver: u32,
    /// The bottleneck's rate, IP and UDP headers included.
    pub bottleneck: Option<Rate>,
    /// Sum of the nonces of all media packets that have arrived, modulo 2^32.
    pub nonce_sum: u32,
}

impl PairReport {
    /// From an APP packet; `None` if it is not one of these.
    ///
    /// # Errors
    /// [`WireError`] if it is one, and too short.
    pub fn parse(app: &App<'_>) -> Result<Option<Self>, WireError> {
        if app.name != NAME || app.subtype != SUBTYPE {
            return Ok(None);
        }
        let mut r = Reader::new("packet-pair report", app.data);
        let kbps = r.u32()?;
        let bottleneck = (kbps > 0).then(|| Rate::kbps(kbps.into()));
        Ok(Some(PairReport { receiver: app.ssrc, bottleneck, nonce_sum: r.u32()? }))
    }

    /// Appends the packet to `out`.
    pub fn emit(&self, out: &mut Vec<u8>) {
        // Saturates at 4.3 Tbit/s; what is not a number becomes 0, not known.
        let kbps = self.bottleneck.map_or(0, |rate| (rate.as_bps() / 1e3).round() as u32);
        rtcp::emit_packet(out, rtcp::packet_type::APP, SUBTYPE.into(), |out| {
            out.put_u32(self.receiver);
            out.put(&NAME);
            out.put_u32(kbps);
            out.put_u32(self.nonce_sum);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtcp::{Compound, Rtcp};
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10_000))]

        #[test]
        fn what_is_written_is_read_back(receiver: u32, nonce_sum: u32, kbps: u32) {
            let bottleneck = (kbps > 0).then(|| Rate::kbps(f64::from(kbps)));
            let report = PairReport { receiver, bottleneck, nonce_sum };
            let mut out = Vec::new();
            report.emit(&mut out);
            prop_assert_eq!(out.len(), 20);
            let Some(Rtcp::App(app)) = Compound::parse(&out).unwrap().next() else { panic!() };
            prop_assert_eq!(PairReport::parse(&app), Ok(Some(report)));
        }

        #[test]
        fn any_data_is_read_or_refused(data in prop::collection::vec(any::<u8>(), 0..20), subtype in 0_u8..32) {
            let read = PairReport::parse(&App { ssrc: 1, subtype, name: NAME, data: &data });
            prop_assert_eq!(matches!(read, Ok(Some(_))), subtype == SUBTYPE && data.len() >= 8);
        }
    }

    #[test]
    fn a_rate_that_is_none_is_not_known_and_a_huge_one_saturates() {
        let read = |bps| {
            let mut out = Vec::new();
            PairReport { receiver: 1, bottleneck: Some(Rate::bps(bps)), nonce_sum: 0 }.emit(&mut out);
            let Some(Rtcp::App(app)) = Compound::parse(&out).unwrap().next() else { panic!() };
            PairReport::parse(&app).unwrap().unwrap().bottleneck
        };
        assert_eq!([read(0.0), read(400.0)], [None, None], "below 500 bit/s");
        assert_eq!(read(1e20), Some(Rate::kbps(f64::from(u32::MAX))));
    }
}
