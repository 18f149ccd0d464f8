//! The equations against values computed independently (`vectors/equation.py`), and what must hold for
//! any path. `PROPTEST_CASES` sets the number of cases.

use fairpace_control::equation::{mean_window, timeout_probability, timeout_probability_sum};
use fairpace_control::{Equation, TcpPath};
use fairpace_units::{Bytes, Duration, Probability, Rate};
use proptest::prelude::*;

fn probability(p: f64) -> Probability {
    Probability::new(p).expect("within [0, 1]")
}

/// Equal to 1e-9 of it. A value too small for a double (the timeouts of independent losses at small p) is 0.
fn near(found: f64, expected: f64, what: &str) {
    let ok = if expected < 1e-290 { found < 1e-290 } else { (found / expected - 1.0).abs() < 1e-9 };
    assert!(ok, "{what}: {found:e} is not {expected:e}");
}

/// The rows of a file of vectors, without its comment and its head.
fn rows(csv: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    csv.lines().skip(2).map(|line| line.split(',').collect())
}

fn number(text: &str) -> f64 {
    text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
}

#[test]
fn rates_and_terms_are_those_computed_with_sixty_digits() {
    let mut n = 0;
    for row in rows(include_str!("vectors/equation.csv")) {
        let what = row[..6].join(",");
        let equation: Equation = row[0].parse().expect("an equation");
        let [size, rtt, rto, b, p, triple_dup_s, timeout_s, rate] = [1, 2, 3, 4, 5, 6, 7, 8].map(|i| number(row[i]));
        let ms = |ms: f64| Duration::from_millis(ms as u64);
        let path = TcpPath::new(Bytes::new(size as u64), ms(rtt), ms(rto), b).expect("a fair path");
        let terms = equation.terms(&path, probability(p));
        near(terms.triple_dup_s, triple_dup_s, &what);
        near(terms.timeout_s, timeout_s, &what);
        near(equation.rate(&path, probability(p)).as_bps(), rate, &what);
        near(equation.loss_rate(&path, Rate::bps(rate)).get(), p, &what);
        n += 1;
    }
    assert_eq!(n, 4 * 4 * 22);
}

#[test]
fn the_share_of_timeouts_is_that_computed_with_sixty_digits_and_at_most_one() {
    let mut n = 0;
    for row in rows(include_str!("vectors/timeout_probability.csv")) {
        let [p, w, closed, sum] = [0, 1, 2, 3].map(|i| number(row[i]));
        near(mean_window(probability(p)), w, row[0]);
        near(timeout_probability(probability(p)).get(), closed.min(1.0), row[0]);
        near(timeout_probability_sum(probability(p), w).get(), sum.min(1.0), row[0]);
        n += 1;
    }
    assert_eq!(n, 22);
}

/// [RFC 5348 §3.1] with s = 1,460 B, R = 100 ms, t_RTO = 4R, b = 1. The RFC has no vectors; these are f(p) and
/// X = s/(R f), bytes per second.
#[test]
fn rfc_5348s_equation_at_ten_loss_rates() {
    let path = TcpPath::new(Bytes::new(1_460), Duration::from_millis(100), Duration::from_millis(400), 1.0)
        .expect("a fair path");
    for (p, f, x) in [
        (1e-4, 0.008_172_314_281, 1_786_519.644),
        (0.001, 0.026_052_275_41, 560_411.702),
        (0.005, 0.060_335_181_59, 241_981.537),
        (0.01, 0.089_021_642_42, 164_005.062),
        (0.02, 0.136_520_706_5, 106_943.484),
        (0.05, 0.271_305_240_2, 53_813.926),
        (0.1, 0.564_939_170_8, 25_843.490),
        (0.2, 1.863_717_289, 7_833.806),
        (0.5, 23.960_036_17, 609.348),
        (1.0, 243.315_981_1, 60.004),
    ] {
        let terms = Equation::Tfrc.terms(&path, probability(p));
        // Ten digits of f and three decimals of X were written down.
        assert!(((terms.triple_dup_s + terms.timeout_s) / 0.1 / f - 1.0).abs() < 1e-9, "f({p})");
        let found = Equation::Tfrc.rate(&path, probability(p)).as_bps() / 8.0;
        assert!((found - x).abs() < 0.000_6, "X({p}): {found}, {x}");
    }
}

/// [RFC 5348 §6.3.1] the first loss interval: the p at which the equation gives the rate seen so far.
#[test]
fn the_first_loss_interval_of_rfc_5348_by_the_inverse() {
    let path = TcpPath::new(Bytes::new(1_460), Duration::from_millis(100), Duration::from_millis(400), 1.0)
        .expect("a fair path");
    for (bytes_per_second, p) in [(125_000.0, 0.015_683_6), (0.5 * 1_460.0 / 0.1, 0.206_429)] {
        let found = Equation::Tfrc.loss_rate(&path, Rate::bps(bytes_per_second * 8.0)).get();
        assert!((found / p - 1.0).abs() < 5e-6, "{found}, {p}");
    }
}

/// The modified equation lies between the simple and the complex one up to p = 0.238, where P(Q) grows past
/// Padhye's 3 sqrt(3p/8); a little below the complex one to 0.296; equal to it while both shares are 1; above it
/// from 0.719 on, where P(Q) has come down again.
#[test]
fn the_modified_equation_lies_between_its_parents_up_to_0_238() {
    let path =
        TcpPath::new(Bytes::new(256), Duration::from_millis(550), Duration::from_secs(1), 1.0).expect("a fair path");
    let rate = |e: Equation, p: f64| e.rate(&path, probability(p)).as_bps();
    for i in 1..=1_000 {
        let p = f64::from(i) / 1_000.0;
        let [simple, complex, modified] = [Equation::Simple, Equation::Complex, Equation::Modified].map(|e| rate(e, p));
        assert!(modified <= simple && complex < simple, "{p}");
        assert_eq!(modified > complex, !(0.2385..0.7185).contains(&p), "{p}: {modified}, {complex}");
        assert_eq!(modified < complex, (0.2385..0.2963).contains(&p), "{p}: {modified}, {complex}");
    }
}

fn equation() -> impl Strategy<Value = Equation> {
    (0..4_usize).prop_map(|i| Equation::NAMES[i].1)
}

/// A path and the numbers it was made of: size in bytes, RTT and RTO in microseconds, b.
fn path() -> impl Strategy<Value = (TcpPath, u64, u64, u64, f64)> {
    (1..=65_000_u64, 100..100_000_000_u64, 1.0..100.0_f64, prop_oneof![Just(1.0), Just(2.0), 1.0..=2.0_f64]).prop_map(
        |(size, rtt_us, rtts, b)| {
            let rto_us = (rtt_us as f64 * rtts) as u64;
            (made(size, rtt_us, rto_us, b), size, rtt_us, rto_us, b)
        },
    )
}

fn made(size: u64, rtt_us: u64, rto_us: u64, b: f64) -> TcpPath {
    let (rtt, rto) = (Duration::from_micros(rtt_us), Duration::from_micros(rto_us));
    TcpPath::new(Bytes::new(size), rtt, rto, b).unwrap_or_else(|e| panic!("{e}"))
}

/// Every magnitude from 1e-8 to 1.
fn loss() -> impl Strategy<Value = f64> {
    (-8.0..=0.0_f64).prop_map(|x| 10_f64.powf(x))
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(10_000),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_rate_is_finite_and_falls_with_loss_and_rtt_and_grows_with_size(
        e in equation(), (path, size, rtt_us, rto_us, b) in path(), p in loss(), step in 1e-9..1.0_f64,
    ) {
        let p = probability(p);
        let rate = e.rate(&path, p);
        prop_assert!(rate > Rate::ZERO && rate < Rate::MAX);
        let worse = probability((p.get() * (1.0 + step)).min(1.0));
        prop_assert!(worse == p || e.rate(&path, worse) < rate, "not decreasing at p = {p}");
        let longer = made(size, rtt_us + rtt_us / 100, rto_us + rtt_us / 100, b);
        prop_assert!(e.rate(&longer, p) < rate, "not decreasing in R");
        prop_assert!(e.rate(&made(size + 1, rtt_us, rto_us, b), p) > rate, "not increasing in s");
        prop_assert!(e.rate(&made(size, rtt_us, rto_us + 1_000, b), p) <= rate, "increasing in the RTO");
    }

    #[test]
    fn the_inverse_gives_back_the_loss_rate(e in equation(), (path, ..) in path(), p in loss()) {
        let back = e.loss_rate(&path, e.rate(&path, probability(p))).get();
        prop_assert!((back / p - 1.0).abs() < 1e-12, "{back}");
    }

    #[test]
    fn the_inverse_of_any_rate_is_where_the_equation_gives_it(
        e in equation(), (path, ..) in path(), bps in (0.0..14.9_f64).prop_map(|x| 10_f64.powf(x)),
    ) {
        let p = e.loss_rate(&path, Rate::bps(bps));
        let least = e.rate(&path, Probability::ONE).as_bps();
        if bps <= least {
            prop_assert_eq!(p, Probability::ONE);
        } else {
            prop_assert!((e.rate(&path, p).as_bps() / bps - 1.0).abs() < 1e-12, "{p}");
        }
    }

    /// Absurdly small losses, where squares and windows overflow.
    #[test]
    fn nothing_is_infinite_anywhere_in_the_unit_interval(e in equation(), (path, ..) in path(), bits in any::<u64>()) {
        let p = probability(f64::from_bits(bits % (1.0_f64.to_bits() + 1)));
        let terms = e.terms(&path, p);
        prop_assert!(terms.triple_dup_s.is_finite() && terms.timeout_s.is_finite());
        prop_assert!(terms.timeout_s >= 0.0 && e.rate(&path, p) > Rate::ZERO);
    }
}
