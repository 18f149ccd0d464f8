//! TCP's throughput as an equation: what a TCP would send on a path that loses `p`.
//!
//! Sources: `lossy` (Ng, Chan), §2 and §5; [RFC 5348 §3.1]. The page `docs/equations.md` says which one to use when,
//! with tables. Users: `rbp.rs` (SRP, CRP, MRP), TFRC, `fairpace plan tcp-rate`.
//!
//! ```text
//!                            s
//!   X(p) = ---------------------------------------
//!          R sqrt(2bp/3)  +  t_RTO T p (1 + 32 p²)
//!          '-----------'     '-------------------'
//!         triple duplicate         timeouts
//!               ACKs
//!
//!   simple     T = 0                       [lossy §2.1], Floyd and Mahdavi
//!   complex    T = min(1, 3 sqrt(3bp/8))   [lossy §2.2], Padhye et al.
//!   modified   T = min(1, P(Q))            [lossy §5]
//!   rfc5348    T = 3 sqrt(3bp/8)           [RFC 5348 §3.1]
//!
//!            (2 - p) p^(w-3)
//!   P(Q) = -------------------   with  w = sqrt(8/(3p))
//!          2 (1 - (1 - p)^w)
//! ```
//!
//! # Symbols
//!
//! | paper | here | unit | set |
//! | --- | --- | --- | --- |
//! | s, MSS | `size` of [`TcpPath`] | bytes | by the caller |
//! | RTT, R | `rtt` | s | by the caller |
//! | R_to, t_RTO | `rto` | s | by the caller |
//! | b | `b`: segments acknowledged by one ACK | – | by the caller; 1 in the papers |
//! | p | loss indications per packet sent (paper), loss events per packet (RFC) | – | by the caller |
//! | C | sqrt(3/(2b)) | – | constant |
//! | T, X | [`Equation::rate`] | bit/s | |
//! | P(Q) | [`timeout_probability`] | – | |
//! | w | [`mean_window`] | packets | |
//!
//! # Readings
//!
//! - P(Q) is the probability that fewer than three of a window's w packets arrive, given that one was
//!   lost. As printed the sum runs to k = w-2 with p^(w-k-1), which is no probability (7.4 at p = 0.01);
//!   read as k = 0 ... 2 with p^(w-k) it is that one: [`timeout_probability_sum`].
//! - The closed form is what the modified equation uses. The closed form is not that sum, only near it (0.75 to 1.3
//!   of it below p = 0.3), and exceeds 1 for 0.251 <= p <= 0.718 (1.605 at p = 0.415): min(1, .).
//! - w stays real, and as printed: without b. With b = 2 in it (w = sqrt(8/(6p))) the timeouts' term
//!   would fall again from p = 0.83 on, by 5 %, and the rate rise.
//! - P(Q) falls again above p = 0.42, from 1.6 to 0.5 at p = 1. p (1 + 32 p²) grows faster: the
//!   modified equation is strictly decreasing on all of (0, 1], as the others are, and has an inverse.
//! - At p = 0 every rate is allowed: [`Rate::MAX`], which also bounds the rate at absurdly small p.
//!
//! # Deviations
//!
//! - b, which the paper has in the complex equation only, stands in the first term of each: with b = 1
//!   each is as printed, with b = 2 all speak of the same TCP with delayed ACKs.
//! - 1 - (1-p)^w by `expm1` and `log1p`: as written it is 0 from p = 1e-18 down, and P(Q) 0/0.

use core::fmt;
use core::str::FromStr;
use fairpace_units::{Bytes, Duration, Probability, Rate};

/// The name of an equation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Equation {
    /// Triple duplicate ACKs alone [lossy §2.1].
    Simple,
    /// With timeouts, for losses in bursts; their share of the losses is at most 1 [lossy §2.2].
    Complex,
    /// With timeouts, for independent losses [lossy §5].
    Modified,
    /// As complex, but the share of timeouts unbounded: TFRC's [RFC 5348 §3.1].
    Tfrc,
}

/// A path as TCP sees it, within what the equations are good for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TcpPath {
    s_bits: f64,
    r_s: f64,
    t_rto_s: f64,
    b: f64,
}

/// The two terms of the denominator: what one packet costs of time, on average.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Terms {
    /// R sqrt(2bp/3): waiting for round trips, halved by triple duplicate ACKs. Seconds per packet.
    pub triple_dup_s: f64,
    /// The rest: waiting for timeouts. Seconds per packet.
    pub timeout_s: f64,
}

/// A path that no TCP could have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` is {found}; allowed is {allowed}")]
pub struct BadPath {
    /// `size`, `rtt`, `rto` or `b`.
    pub field: &'static str,
    /// The value that was given.
    pub found: String,
    /// The values that are allowed.
    pub allowed: String,
}

/// No equation has that name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{found}` is not an equation; there are simple, complex, modified, rfc5348")]
pub struct UnknownEquation {
    /// The name as given.
    pub found: String,
}

impl TcpPath {
    /// The shortest round trip accepted.
    pub const MIN_RTT: Duration = Duration::from_micros(1);
    /// The longest round trip and timeout accepted: a day.
    pub const MAX_RTO: Duration = Duration::from_secs(86_400);

    /// The timeout of a path of which none is known: four round trips [RFC 5348 §3.1], but at least TCP's 1 s
    /// [RFC 6298 §2.4].
    pub fn assumed_rto(rtt: Duration) -> Duration {
        rtt.saturating_mul(4).clamp(Duration::from_secs(1), Self::MAX_RTO.max(rtt))
    }

    /// Segments of `size`, in the terms in which the rate is wanted (with or without headers); a round
    /// trip of `rtt`; a timeout of `rto`, which no TCP has below its round trip; `b` segments for each
    /// ACK: 1, or 2 with delayed ACKs [RFC 5681 §4.2].
    ///
    /// # Errors
    /// [`BadPath`] names the field, what was found and what is allowed.
    ///
    /// ```
    /// use fairpace_control::{Equation, TcpPath};
    /// use fairpace_units::{Bytes, Duration, Probability};
    /// let path = TcpPath::new(Bytes::new(1_460), Duration::from_millis(100), Duration::from_millis(400), 1.0)?;
    /// let p = Probability::new(0.01).expect("within [0, 1]");
    /// assert_eq!(Equation::Tfrc.rate(&path, p).to_string(), "1.312 Mbit/s");
    /// # Ok::<(), fairpace_control::BadPath>(())
    /// ```
    pub fn new(size: Bytes, rtt: Duration, rto: Duration, b: f64) -> Result<TcpPath, BadPath> {
        let bad = |field, found: &dyn fmt::Display, allowed: &str| {
            Err(BadPath { field, found: found.to_string(), allowed: allowed.to_owned() })
        };
        let show = fairpace_units::format_duration;
        if !(1..=65_535).contains(&size.get()) {
            return bad("size", &size, "1 B to 65535 B");
        }
        if !(Self::MIN_RTT..=Self::MAX_RTO).contains(&rtt) {
            return bad("rtt", &show(rtt), "1 us to 24 h");
        }
        if !(rtt..=Self::MAX_RTO).contains(&rto) {
            return bad("rto", &show(rto), &format!("from {} (the rtt) to 24 h", show(rtt)));
        }
        if !(1.0..=2.0).contains(&b) {
            return bad("b", &b, "1 (an ACK for each segment) to 2 (delayed ACKs)");
        }
        Ok(TcpPath { s_bits: size.as_f64() * 8.0, r_s: rtt.as_secs_f64(), t_rto_s: rto.as_secs_f64(), b })
    }
}

impl Equation {
    /// All of them by name.
    pub const NAMES: [(&'static str, Equation); 4] = [
        ("simple", Equation::Simple),
        ("complex", Equation::Complex),
        ("modified", Equation::Modified),
        ("rfc5348", Equation::Tfrc),
    ];

    /// As in scenarios and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Equation::Simple => "simple",
            Equation::Complex => "complex",
            Equation::Modified => "modified",
            Equation::Tfrc => "rfc5348",
        }
    }

    /// X(p): what a TCP sends on `path` at the loss rate `p`. Strictly decreasing in p; at most
    /// [`Rate::MAX`], which it is at p = 0.
    pub fn rate(self, path: &TcpPath, p: Probability) -> Rate {
        let Terms { triple_dup_s, timeout_s } = self.terms(path, p);
        Rate::bps(path.s_bits / (triple_dup_s + timeout_s))
    }

    /// The two terms of the denominator, seconds per packet; both 0 at p = 0.
    pub fn terms(self, path: &TcpPath, p: Probability) -> Terms {
        let &TcpPath { r_s: r, t_rto_s: t_rto, b, .. } = path;
        let p = p.get();
        let share = match self {
            Equation::Simple => 0.0,
            Equation::Complex => (3.0 * (3.0 * b * p / 8.0).sqrt()).min(1.0),
            Equation::Modified => p_q(p),
            Equation::Tfrc => 3.0 * (3.0 * b * p / 8.0).sqrt(),
        };
        Terms { triple_dup_s: r * (2.0 * b * p / 3.0).sqrt(), timeout_s: t_rto * share * p * (1.0 + 32.0 * p * p) }
    }

    /// The p at which [`Equation::rate`] gives `rate`: 1 for what is less than the rate at p = 1, 0 for
    /// [`Rate::MAX`]. Good to the last digits, in some 60 evaluations.
    pub fn loss_rate(self, path: &TcpPath, rate: Rate) -> Probability {
        if rate >= Rate::MAX {
            return Probability::ZERO;
        }
        let wanted_s = path.s_bits / rate.as_bps();
        // The simple equation backwards. The others add a term, so their p is no larger.
        let x = wanted_s / path.r_s;
        let simple = (1.5 / path.b * x * x).min(1.0);
        let seconds = |p: Probability| {
            let t = self.terms(path, p);
            t.triple_dup_s + t.timeout_s
        };
        if self == Equation::Simple || wanted_s >= seconds(Probability::ONE) {
            return probability(simple);
        }
        // Between numbers of one sign the order of floats is that of their bits: halving the bits halves
        // the number of floats left, and ends at two neighbours, from any magnitude.
        let (mut below, mut above) = (0, simple.to_bits());
        while above - below > 1 {
            let middle = below + (above - below) / 2;
            if seconds(probability(f64::from_bits(middle))) < wanted_s {
                below = middle;
            } else {
                above = middle;
            }
        }
        probability(f64::from_bits(above))
    }
}

impl FromStr for Equation {
    type Err = UnknownEquation;
    fn from_str(name: &str) -> Result<Equation, UnknownEquation> {
        let found = Equation::NAMES.iter().find(|(n, _)| *n == name);
        found.map(|(_, equation)| *equation).ok_or_else(|| UnknownEquation { found: name.to_owned() })
    }
}

impl fmt::Display for Equation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// w = sqrt(8/(3p)): the window at which TCP loses a packet, on average, if every 1/p-th is lost
/// [lossy §2.1]. Infinite at p = 0.
pub fn mean_window(p: Probability) -> f64 {
    window(p.get())
}

/// P(Q) in closed form, at most 1: the share of losses that end in a timeout when losses are independent
/// [lossy §5]. 0 at p = 0.
pub fn timeout_probability(p: Probability) -> Probability {
    probability(p_q(p.get()))
}

/// P(Q) by its sum, as corrected: of a window of `w` packets, real and at least 1, no more than two
/// arrive, given that one is lost.
///
/// ```text
///           2
///   P(Q) = sum  C(w, k) (1-p)^k p^(w-k) / (1 - (1-p)^w),   at most 1
///          k=0
/// ```
pub fn timeout_probability_sum(p: Probability, w: f64) -> Probability {
    let p = p.get();
    if p == 0.0 {
        return Probability::ZERO;
    }
    let q = 1.0 - p;
    // p^(w-2) (p² + w q p + C(w,2) q²)
    let sum = power(p, w - 2.0) * (p * p + w * q * p + w * (w - 1.0) / 2.0 * q * q);
    probability(sum / one_is_lost(p, w))
}

fn window(p: f64) -> f64 {
    (8.0 / (3.0 * p)).sqrt()
}

fn p_q(p: f64) -> f64 {
    if p == 0.0 {
        return 0.0;
    }
    let w = window(p);
    ((2.0 - p) * power(p, w - 3.0) / (2.0 * one_is_lost(p, w))).min(1.0)
}

/// p^x, to 1e-13 where it is not 0. `pow`, exact to the last digit, takes four times as long (60 ns for 16).
fn power(p: f64, x: f64) -> f64 {
    libm::exp(x * libm::log(p))
}

/// 1 - (1-p)^w, keeping the digits of small p.
fn one_is_lost(p: f64, w: f64) -> f64 {
    -libm::expm1(w * libm::log1p(-p))
}

/// A value computed from probabilities is a probability but for its last digits.
fn probability(p: f64) -> Probability {
    Probability::new(p.clamp(0.0, 1.0)).unwrap_or(Probability::ONE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn p(p: f64) -> Probability {
        Probability::new(p).expect("within [0, 1]")
    }

    fn path(rtt_ms: u64, rto_ms: u64, b: f64) -> TcpPath {
        TcpPath::new(Bytes::new(1_000), Duration::from_millis(rtt_ms), Duration::from_millis(rto_ms), b)
            .expect("a fair path")
    }

    fn near(found: f64, expected: f64) {
        assert!((found / expected - 1.0).abs() < 1e-12, "{found} is not {expected}");
    }

    #[test]
    fn the_simple_equation_by_hand() {
        // 8,000 bit / (0.1 s · sqrt(2 · 0.06 / 3)) = 8,000 / (0.1 · 0.2) = 400 kbit/s, 50 packets/s
        near(Equation::Simple.rate(&path(100, 400, 1.0), p(0.06)).as_bps(), 400_000.0);
        // b = 2: sqrt(2) less
        near(Equation::Simple.rate(&path(100, 400, 2.0), p(0.03)).as_bps(), 400_000.0);
    }

    #[test]
    fn the_two_terms_of_the_complex_equation_by_hand() {
        // p = 0.06: 0.1 · 0.2 = 0.02 s; 3 sqrt(3 · 0.06 / 8) = 0.45; 0.4 · 0.45 · 0.06 · (1 + 32 · 0.0036) = 0.01204416 s
        let t = Equation::Complex.terms(&path(100, 400, 1.0), p(0.06));
        near(t.triple_dup_s, 0.02);
        near(t.timeout_s, 0.012_044_16);
        // p = 0.5: 3 sqrt(1.5 / 8) = 1.299, so 1 and unbounded 1.299; 0.4 · 0.5 · (1 + 8) = 1.8 s
        near(Equation::Complex.terms(&path(100, 400, 1.0), p(0.5)).timeout_s, 1.8);
        near(Equation::Tfrc.terms(&path(100, 400, 1.0), p(0.5)).timeout_s, 1.8 * 3.0 * 0.187_5_f64.sqrt());
    }

    #[test]
    fn the_modified_equation_by_hand() {
        // p = 1/6: w = sqrt(16) = 4. P(Q) = (11/6)(1/6) / (2 (1 - (5/6)^4)) = (11/36) / (2 · 671/1296) = 198/671
        near(mean_window(p(1.0 / 6.0)), 4.0);
        near(timeout_probability(p(1.0 / 6.0)).get(), 198.0 / 671.0);
        // the sum: (1 + 4 · 5 + 6 · 25) / 1296 / (671/1296) = 171/671
        near(timeout_probability_sum(p(1.0 / 6.0), 4.0).get(), 171.0 / 671.0);
        // 0.1 · sqrt(1/9) = 1/30 s; 0.4 · 198/671 · 1/6 · (1 + 32/36)
        let t = Equation::Modified.terms(&path(100, 400, 1.0), p(1.0 / 6.0));
        near(t.triple_dup_s, 1.0 / 30.0);
        near(t.timeout_s, 0.4 * 198.0 / 671.0 / 6.0 * 68.0 / 36.0);
    }

    #[test]
    fn the_sum_is_the_chance_that_fewer_than_three_arrive() {
        // By definition, for whole windows: C(w, k) from Pascal's triangle.
        let mut pascal = vec![1.0];
        for w in 1..=60_usize {
            pascal =
                (0..=w).map(|k| if k == 0 || k == w { 1.0 } else { pascal[k - 1] + pascal[k] }).collect::<Vec<f64>>();
            for x in [0.01_f64, 0.1, 0.3, 0.5, 0.9] {
                let sum: f64 =
                    (0..w.min(3)).map(|k| pascal[k] * (1.0 - x).powi(k as i32) * x.powi((w - k) as i32)).sum();
                let expected = sum / (1.0 - (1.0 - x).powi(w as i32));
                let found = timeout_probability_sum(p(x), w as f64).get();
                assert!((found - expected).abs() <= 1e-12 * expected, "w {w}, p {x}: {found}, {expected}");
            }
        }
    }

    #[test]
    fn the_closed_form_is_cut_at_one_where_it_would_exceed_it() {
        // unclamped it is 1 at p = 0.25084 and 0.71883, 1.605 at 0.415, 1/2 at 1
        for x in [0.251, 0.3, 0.415, 0.6, 0.718] {
            assert_eq!(timeout_probability(p(x)), Probability::ONE, "{x}");
        }
        assert!(timeout_probability(p(0.25)).get() < 1.0 && timeout_probability(p(0.72)).get() < 1.0);
        near(timeout_probability(p(1.0)).get(), 0.5);
        assert_eq!(timeout_probability_sum(p(1.0), mean_window(p(1.0))), Probability::ONE);
    }

    #[test]
    fn no_digit_is_lost_at_small_p_and_nothing_is_divided_by_zero() {
        // written out, 1 - (1 - 1e-18)^w is 0; it is x - x²/2 with x = w p = 1.633e9 · 1e-18
        let x = (8.0 / 3.0_f64).sqrt() * 1e-9;
        near(one_is_lost(1e-18, window(1e-18)), x - x * x / 2.0);
        for x in [f64::from_bits(1), f64::MIN_POSITIVE, 1e-18, 1e-16, 1e-8] {
            assert!(timeout_probability(p(x)).get() < 1e-100, "{x}");
            let rate = Equation::Modified.rate(&path(550, 1_000, 1.0), p(x));
            assert_eq!(rate, Equation::Simple.rate(&path(550, 1_000, 1.0), p(x)), "{x}");
            assert!(rate > Rate::ZERO && rate <= Rate::MAX);
        }
    }

    #[test]
    fn without_loss_every_rate_is_allowed_and_back() {
        for (_, e) in Equation::NAMES {
            assert_eq!(e.rate(&path(550, 1_000, 1.0), Probability::ZERO), Rate::MAX, "{e}");
            assert_eq!(e.loss_rate(&path(550, 1_000, 1.0), Rate::MAX), Probability::ZERO, "{e}");
            assert_eq!(e.loss_rate(&path(550, 1_000, 1.0), Rate::ZERO), Probability::ONE, "{e}");
        }
        assert_eq!(timeout_probability(Probability::ZERO), Probability::ZERO);
        assert_eq!(timeout_probability_sum(Probability::ZERO, f64::INFINITY), Probability::ZERO);
    }

    #[test]
    fn a_path_that_no_tcp_could_have_is_refused_by_field() {
        let ms = Duration::from_millis;
        let of = |size, rtt, rto, b| TcpPath::new(Bytes::new(size), rtt, rto, b).map_err(|e| e.to_string());
        let cases = [
            (of(0, ms(100), ms(400), 1.0), "`size` is 0 B; allowed is 1 B to 65535 B"),
            (of(65_536, ms(100), ms(400), 1.0), "`size` is 65536 B; allowed is 1 B to 65535 B"),
            (of(1_000, Duration::ZERO, ms(400), 1.0), "`rtt` is 0 s; allowed is 1 us to 24 h"),
            (of(1_000, Duration::MAX, Duration::MAX, 1.0), "`rtt` is 18446744073709551616 s; allowed is 1 us to 24 h"),
            (of(1_000, ms(100), ms(99), 1.0), "`rto` is 99 ms; allowed is from 100 ms (the rtt) to 24 h"),
            (
                of(1_000, ms(100), ms(400), 0.5),
                "`b` is 0.5; allowed is 1 (an ACK for each segment) to 2 (delayed ACKs)",
            ),
            (
                of(1_000, ms(100), ms(400), f64::NAN),
                "`b` is NaN; allowed is 1 (an ACK for each segment) to 2 (delayed ACKs)",
            ),
        ];
        for (found, expected) in cases {
            assert_eq!(found, Err(expected.to_owned()));
        }
    }

    #[test]
    fn each_equation_is_found_by_its_name() {
        for (name, equation) in Equation::NAMES {
            assert_eq!((name.parse(), equation.to_string().as_str()), (Ok(equation), name));
        }
        let e = "Padhye".parse::<Equation>().expect_err("not a name");
        assert_eq!(e.to_string(), "`Padhye` is not an equation; there are simple, complex, modified, rfc5348");
    }
}
