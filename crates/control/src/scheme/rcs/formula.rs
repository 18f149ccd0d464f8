//! RCS's arithmetic, in the paper's letters and units: seconds, packets, packets per second.

use super::params::WdsnRounding;

/// Equation (2): S = max(1, n_ACK) / SRTT.
pub(super) fn initial_rate(n_ack: u32, srtt: f64) -> f64 {
    f64::from(n_ack.max(1)) / srtt
}

/// Equation (3): S = min(S + 1/SRTT, S_Target).
pub(super) fn increased(s: f64, srtt: f64, s_target: f64) -> f64 {
    (s + 1.0 / srtt).min(s_target)
}

/// Fig. 4: wdsn = SRTT · S, as a count. `s` is the rate after halving.
pub(super) fn wdsn(srtt: f64, s: f64, rounding: WdsnRounding) -> f64 {
    let x = srtt * s;
    match rounding {
        WdsnRounding::Nearest => libm::floor(x + 0.5),
        // 1e-9 of a packet is what a binary fraction adds or takes: 20/s · 0.55 s is 11, not 12.
        WdsnRounding::Up => libm::ceil(x - 1e-9),
        WdsnRounding::Down => libm::floor(x + 1e-9),
        WdsnRounding::Exact => x,
    }
}

/// §III-D: SRTT · S_0 dummies are sent in Detected, S_0 being the rate before halving. Whole
/// dummies only, so that what is regained, equation (7), stays within S_0.
pub(super) fn dummies_in_detected(srtt: f64, s0: f64) -> u32 {
    libm::floor(srtt * s0 + 1e-9) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// 7 packets/s · 0.55 s / 2 = 1.925: rarely whole, so a fraction never meets zero.
    #[test]
    fn wdsn_of_7_packets_per_second_at_550_ms_by_hand() {
        let of = |rounding| wdsn(0.55, 3.5, rounding);
        assert_eq!((of(WdsnRounding::Nearest), of(WdsnRounding::Up), of(WdsnRounding::Down)), (2.0, 2.0, 1.0));
        assert!((of(WdsnRounding::Exact) - 1.925).abs() < 1e-12);
        // 7 · 0.55 = 3.85 dummies
        assert_eq!(dummies_in_detected(0.55, 7.0), 3);
    }

    /// 22 packets/s, the rate of Figs. 12 to 16: 12.1 dummies, wdsn 6.05.
    #[test]
    fn wdsn_of_22_packets_per_second_at_550_ms_by_hand() {
        assert_eq!(wdsn(0.55, 11.0, WdsnRounding::Nearest), 6.0);
        assert_eq!(wdsn(0.55, 11.0, WdsnRounding::Up), 7.0);
        assert_eq!(dummies_in_detected(0.55, 22.0), 12);
    }

    #[test]
    fn a_whole_product_is_not_spoilt_by_its_binary_fraction() {
        // 20 · 0.55 = 11.000000000000002 and 0.55 · (8 / 0.55) may be 7.999...
        assert_eq!(wdsn(0.55, 20.0, WdsnRounding::Up), 11.0);
        assert_eq!(dummies_in_detected(0.55, 8.0 / 0.55), 8);
    }

    #[test]
    fn equation_2_gives_one_packet_per_srtt_without_any_ack() {
        assert!((initial_rate(0, 0.55) - 1.0 / 0.55).abs() < 1e-12);
        assert!((initial_rate(110, 0.55) - 200.0).abs() < 1e-9);
    }

    proptest! {
        /// Equation (7): S_0/2 + (n_dummy - wdsn)/SRTT is S_0 to within a packet per SRTT, and
        /// never above it, with either rounding of a half or more.
        #[test]
        fn all_dummies_acknowledged_regain_s0_to_within_a_packet(srtt in 0.01_f64..2.0, s0 in 1.0_f64..2_000.0) {
            for rounding in [WdsnRounding::Nearest, WdsnRounding::Up] {
                let s = s0 / 2.0 + (f64::from(dummies_in_detected(srtt, s0)) - wdsn(srtt, s0 / 2.0, rounding)).max(0.0) / srtt;
                prop_assert!(s <= s0 + 1e-6, "{s} > {s0}");
                let least = if rounding == WdsnRounding::Up { 2.0 } else { 1.0 };
                prop_assert!(s > s0 - least / srtt - 1e-6 || s >= s0 / 2.0 && srtt * s0 < 2.0, "{s} << {s0}");
            }
        }
    }
}
