//! The words of Quick-Start: what a host asks the routers, and what it is told [RFC 4782].
//!
//! How they are written into an IP header is `fairpace-rtp`'s business; who decides, that of
//! `fairpace-path` and `fairpace-control`.

use crate::{Bounds, Rate};
use core::fmt;

/// A rate as the Quick-Start option can say it: nothing, or 40 kbit/s times a power of two
/// [RFC 4782 §3.1].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct QsRate(u8);

impl QsRate {
    /// Code 0: no rate. A request that was refused says this.
    pub const ZERO: QsRate = QsRate(0);
    /// Code 15: 1,310.72 Mbit/s.
    pub const MAX: QsRate = QsRate(15);

    /// The rates that can be asked for, from that of code 1 to that of code 15.
    pub const RANGE: Bounds<Rate> = Bounds::of(QsRate(1).rate(), QsRate::MAX.rate());

    /// The rate of that code; `None` above 15.
    pub const fn from_code(code: u8) -> Option<QsRate> {
        if code <= 15 { Some(QsRate(code)) } else { None }
    }

    /// The code on the wire, 0 to 15.
    pub const fn code(self) -> u8 {
        self.0
    }

    /// The rate in bits per second: 80 kbit/s for code 1, doubling with each.
    pub const fn rate(self) -> Rate {
        match self.0 {
            0 => Rate::ZERO,
            code => Rate::bps(40_000.0 * (1_u32 << code) as f64),
        }
    }

    /// The highest that is not above `rate`.
    pub fn at_most(rate: Rate) -> QsRate {
        (1..=15).rev().map(QsRate).find(|r| r.rate() <= rate).unwrap_or(QsRate::ZERO)
    }

    /// The lowest that is not below `rate`; `None` above [`QsRate::MAX`].
    pub fn at_least(rate: Rate) -> Option<QsRate> {
        (0..=15).map(QsRate).find(|r| r.rate() >= rate)
    }
}

impl fmt::Debug for QsRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (code {})", self.rate(), self.0)
    }
}

/// The nonce of a request: fifteen pairs of bits. A router that lowers the rate from code K to K-1 makes
/// pair K anew, so that whoever claims a higher rate than arrived must guess the pairs between
/// [RFC 4782 §3.4].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct QsNonce(u32);

impl QsNonce {
    /// The low thirty bits of `bits`.
    pub const fn new(bits: u32) -> QsNonce {
        QsNonce(bits & 0x3fff_ffff)
    }

    /// The thirty bits.
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The nonce after a router has lowered the rate: the pairs between the two rates come from `fresh`.
    #[must_use]
    pub const fn lowered(self, from: QsRate, to: QsRate, fresh: u32) -> QsNonce {
        let anew = low_pairs(from) & !low_pairs(to);
        QsNonce((self.0 & !anew) | (fresh & anew))
    }

    /// Whether `self`, sent with a request, can be what comes back with `approved`: the pairs of the rates
    /// up to it are untouched.
    pub const fn agrees(self, returned: QsNonce, approved: QsRate) -> bool {
        (self.0 ^ returned.0) & low_pairs(approved) == 0
    }
}

/// The bits that stay as they were while the rate does not fall below that: 2 K of them.
const fn low_pairs(rate: QsRate) -> u32 {
    (1 << (2 * rate.0)) - 1
}

/// The function of a Quick-Start option, one of two [RFC 4782 §3.1].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum QsFunction {
    /// Function 0000: "may I send at this rate?" Routers answer.
    Request = 0,
    /// Function 1000: "I was told this rate." Routers must not change it.
    Report = 8,
}

/// The Quick-Start option of an IP header, and the TTL of that header, which routers compare with it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct QsOption {
    /// Request or report.
    pub function: QsFunction,
    /// The rate that is asked for, or that was approved.
    pub rate: QsRate,
    /// QS TTL: random at the sender; a router that knows Quick-Start lowers it together with the TTL. Of
    /// no meaning in a report.
    pub qs_ttl: u8,
    /// The TTL (hop limit) of the packet: every router lowers it.
    pub ip_ttl: u8,
    /// The nonce.
    pub nonce: QsNonce,
}

impl QsOption {
    /// TTL Diff: the TTL less the QS TTL, modulo 256. The same at both ends if every router on the way
    /// knew Quick-Start [RFC 4782 §3.3].
    pub const fn ttl_diff(&self) -> u8 {
        self.ip_ttl.wrapping_sub(self.qs_ttl)
    }

    /// The answer of a receiver to this request [RFC 4782 §4.3].
    pub const fn response(&self) -> QsResponse {
        QsResponse { rate: self.rate, ttl_diff: self.ttl_diff(), nonce: self.nonce }
    }
}

/// The receiver's answer to a request, in its transport's feedback [RFC 4782 §4.2] [RFC 5634 §2.2.1].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct QsResponse {
    /// The rate that the request arrived with.
    pub rate: QsRate,
    /// Its TTL Diff as it arrived.
    pub ttl_diff: u8,
    /// Its nonce as it arrived.
    pub nonce: QsNonce,
}

#[cfg(test)]
mod tests {
    use super::*;

    //= 4782-3.1-7
    #[test]
    fn sixteen_rates_from_nothing_to_1310_mbit_s() {
        let kbps: Vec<_> = (0..=15).map(|code| QsRate::from_code(code).unwrap().rate().as_bps() / 1e3).collect();
        let table = [
            0.0,
            80.0,
            160.0,
            320.0,
            640.0,
            1_280.0,
            2_560.0,
            5_120.0,
            10_240.0,
            20_480.0,
            40_960.0,
            81_920.0,
            163_840.0,
            327_680.0,
            655_360.0,
            1_310_720.0,
        ];
        assert_eq!(kbps, table);
        assert_eq!(QsRate::from_code(16), None);
    }

    #[test]
    fn a_rate_between_two_codes_is_rounded_the_way_it_is_asked() {
        let media = Rate::kbps(256.0);
        assert_eq!(QsRate::at_most(media).rate(), Rate::kbps(160.0));
        assert_eq!(QsRate::at_least(media).unwrap().rate(), Rate::kbps(320.0));
        assert_eq!(QsRate::at_most(Rate::kbps(79.9)), QsRate::ZERO);
        assert_eq!(QsRate::at_most(Rate::mbps(9_999.0)), QsRate::MAX);
        assert_eq!(QsRate::at_least(Rate::mbps(1_310.73)), None);
        for code in 0..=15 {
            let exact = QsRate::from_code(code).unwrap();
            assert_eq!((QsRate::at_most(exact.rate()), QsRate::at_least(exact.rate())), (exact, Some(exact)));
        }
    }

    //= 4782-3.4-2
    #[test]
    fn lowering_by_n_steps_touches_2n_bits() {
        let [ten, seven] = [10, 7].map(|code| QsRate::from_code(code).unwrap());
        let sent = QsNonce::new(0);
        let lowered = sent.lowered(ten, seven, u32::MAX);
        assert_eq!(lowered.get(), 0b11_1111 << 14);
        assert!(sent.agrees(lowered, seven), "the pairs below are untouched");
        assert!(!sent.agrees(lowered, ten), "who claims the old rate must have guessed three pairs");
    }

    //= 4782-3.1-3
    #[test]
    fn ttl_diff_survives_routers_that_know_quick_start() {
        // The two routers of RFC 4782's figures: 63 and 91 at the sender.
        let sent = QsOption {
            function: QsFunction::Request,
            rate: QsRate::MAX,
            qs_ttl: 91,
            ip_ttl: 63,
            nonce: QsNonce::new(1),
        };
        let all_know = QsOption { qs_ttl: 88, ip_ttl: 60, ..sent };
        let one_does_not = QsOption { qs_ttl: 89, ip_ttl: 60, ..sent };
        assert_eq!(sent.ttl_diff(), 228);
        assert_eq!(all_know.ttl_diff(), sent.ttl_diff());
        assert_ne!(one_does_not.ttl_diff(), sent.ttl_diff());
    }
}
