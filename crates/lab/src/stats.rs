//! Means over seeds with their 95 % confidence intervals, and when there are seeds enough.
//!
//! Method: Student's t interval over independent seeds. Rule for the number of seeds: at least
//! five, until the half-width is below 5 % of the mean, at most twenty.

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};
use std::sync::OnceLock;

/// The fewest seeds of a point that is to have an interval.
pub const MIN_SEEDS: usize = 5;
/// The most seeds of any point.
pub const MAX_SEEDS: usize = 20;
/// The half-width that is narrow enough, as a fraction of the mean.
pub const TARGET_HALF_WIDTH: f64 = 0.05;

/// A mean over seeds with its 95 % confidence interval (Student's t).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The mean over the seeds.
    pub mean: f64,
    /// The 95 % interval; none from a single seed.
    pub ci95: Option<[f64; 2]>,
    /// How many seeds.
    pub n: usize,
}

impl Estimate {
    /// From one value per seed, in seed order. None if there is no value, or one that is not finite.
    pub fn of(values: &[f64]) -> Option<Estimate> {
        let n = values.len();
        if n == 0 || values.iter().any(|v| !v.is_finite()) {
            return None;
        }
        let mean = mean(values);
        let ci95 = half_width(values).map(|h| [mean - h, mean + h]);
        Some(Estimate { mean, ci95, n })
    }

    /// A number that has no spread: derived from a deterministic trace.
    pub fn exact(value: f64) -> Estimate {
        Estimate { mean: value, ci95: None, n: 1 }
    }

    /// Half the interval's width, 0 if there is none.
    pub fn half_width(&self) -> f64 {
        self.ci95.map_or(0.0, |[low, high]| (high - low) / 2.0)
    }

    /// Lower end of the interval, or the mean.
    pub fn low(&self) -> f64 {
        self.ci95.map_or(self.mean, |c| c[0])
    }

    /// Upper end of the interval, or the mean.
    pub fn high(&self) -> f64 {
        self.ci95.map_or(self.mean, |c| c[1])
    }

    /// The number for people: `76.5 ± 1.2`, or `76.5 (n = 1)`.
    pub fn text(&self) -> String {
        match self.ci95 {
            Some(_) => {
                // As many decimals as the mean has, and one digit that is not zero.
                let mean = short(self.mean);
                let decimals = mean.split_once('.').map_or(0, |(_, d)| d.len());
                let same = format!("{:.decimals$}", self.half_width());
                let nothing = same.chars().all(|c| matches!(c, '0' | '.'));
                let half = if nothing || mean.contains('e') { short(self.half_width()) } else { same };
                format!("{mean} ± {half}")
            }
            None => format!("{} (n = {})", short(self.mean), self.n),
        }
    }
}

/// The arithmetic mean, added in order; 0 of nothing.
pub fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

/// The sample standard deviation (n - 1 in the denominator); 0 of fewer than two.
pub fn deviation(values: &[f64]) -> f64 {
    // Equal values have none, not what rounding their mean leaves.
    if values.windows(2).all(|w| w[0] == w[1]) {
        return 0.0;
    }
    let m = mean(values);
    let squares: f64 = values.iter().map(|v| (v - m) * (v - m)).sum();
    // `sqrt` is correctly rounded everywhere: the same bits on each machine.
    (squares / (values.len() - 1) as f64).sqrt()
}

/// Half the width of the 95 % interval of the mean: t(0.975, n - 1) s / sqrt(n). None below two values.
pub fn half_width(values: &[f64]) -> Option<f64> {
    let n = values.len();
    if n < 2 {
        return None;
    }
    Some(t_quantile(n - 1) * deviation(values) / (n as f64).sqrt())
}

/// The 97.5 % quantile of Student's t with `freedom` degrees of freedom.
pub fn t_quantile(freedom: usize) -> f64 {
    // A root search takes tens of microseconds, and sweeps ask for the same few quantiles a million times.
    static KNOWN: [OnceLock<f64>; 256] = [const { OnceLock::new() }; 256];
    match KNOWN.get(freedom) {
        Some(known) => *known.get_or_init(|| search(freedom)),
        None => search(freedom),
    }
}

fn search(freedom: usize) -> f64 {
    match StudentsT::new(0.0, 1.0, freedom.max(1) as f64) {
        // Rounded to 10 digits: the quantile comes from a root search whose last bits are not promised.
        Ok(t) => (t.inverse_cdf(0.975) * 1e9).round() / 1e9,
        Err(_) => 1.96,
    }
}

/// How many seeds a point needs, from those it has: never fewer than it has, never above
/// [`MAX_SEEDS`]. Equal to the number given when the interval is narrow enough.
pub fn seeds_wanted(values: &[f64]) -> usize {
    let n = values.len();
    if n < MIN_SEEDS {
        return MIN_SEEDS;
    }
    let (m, Some(h)) = (mean(values).abs(), half_width(values)) else { return n };
    let target = TARGET_HALF_WIDTH * m;
    if h <= target || n >= MAX_SEEDS {
        return n;
    }
    if target == 0.0 {
        return MAX_SEEDS;
    }
    // The half-width falls as 1 / sqrt(n); at least one more seed, lest rounding stops too early.
    let factor = h / target;
    let wanted = (n as f64 * factor * factor).ceil();
    if wanted >= MAX_SEEDS as f64 { MAX_SEEDS } else { (wanted as usize).clamp(n + 1, MAX_SEEDS) }
}

/// Jain's fairness index, (sum x)^2 / (n sum x^2): 1 if all are equal, 1/n if one has all [rcs eq. (8)].
/// None if nobody got anything.
pub fn jain_index(x: &[f64]) -> Option<f64> {
    let sum: f64 = x.iter().sum();
    let squares: f64 = x.iter().map(|x| x * x).sum();
    if squares > 0.0 { Some(sum * sum / (x.len() as f64 * squares)) } else { None }
}

/// A number for people, three or four significant digits.
pub fn short(x: f64) -> String {
    let magnitude = x.abs();
    if magnitude == 0.0 {
        "0".to_owned()
    } else if magnitude >= 1_000.0 {
        format!("{x:.0}")
    } else if magnitude >= 100.0 {
        format!("{x:.1}")
    } else if magnitude >= 10.0 {
        format!("{x:.2}")
    } else if magnitude >= 1.0 {
        format!("{x:.3}")
    } else if magnitude >= 0.001 {
        format!("{x:.4}")
    } else {
        format!("{x:.2e}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t_quantiles_are_those_of_the_printed_tables() {
        // Table of Student's t, two-sided 95 %: 1, 4, 9, 19 and 1,000 degrees of freedom.
        for (freedom, t) in [(1, 12.706), (4, 2.776), (9, 2.262), (19, 2.093), (1_000, 1.962)] {
            assert!((t_quantile(freedom) - t).abs() < 6e-4, "{freedom}: {}", t_quantile(freedom));
        }
    }

    #[test]
    fn the_interval_of_five_numbers_is_the_one_worked_by_hand() {
        // 8, 9, 10, 11, 12: mean 10, s = sqrt(10 / 4) = 1.58114, h = 2.77645 * 1.58114 / sqrt(5) = 1.96324
        let e = Estimate::of(&[8.0, 9.0, 10.0, 11.0, 12.0]).unwrap();
        assert_eq!((e.mean, e.n), (10.0, 5));
        assert!((e.half_width() - 1.963_24).abs() < 1e-4, "{}", e.half_width());
        assert_eq!(e.text(), "10.00 ± 1.96");
    }

    #[test]
    fn an_interval_is_printed_to_the_decimals_of_its_mean_but_never_as_nothing() {
        let text = |mean: f64, h: f64| Estimate { mean, ci95: Some([mean - h, mean + h]), n: 5 }.text();
        assert_eq!(text(106.28, 0.7024), "106.3 ± 0.7");
        assert_eq!(text(0.21391, 0.0017), "0.2139 ± 0.0017");
        assert_eq!(text(118.0, 0.01), "118.0 ± 0.0100");
    }

    #[test]
    fn equal_numbers_have_no_spread_although_their_mean_is_rounded() {
        let e = Estimate::of(&[0.1; 3]).unwrap();
        assert!(e.mean != 0.1, "{}", e.mean);
        assert_eq!(e.text(), "0.1000 ± 0");
    }

    #[test]
    fn one_seed_has_no_interval_and_says_so() {
        let e = Estimate::of(&[3.0]).unwrap();
        assert_eq!((e.ci95, e.text().as_str()), (None, "3.000 (n = 1)"));
    }

    #[test]
    fn what_is_not_finite_is_no_estimate() {
        assert_eq!(Estimate::of(&[1.0, f64::NAN]), None);
        assert_eq!(Estimate::of(&[]), None);
    }

    #[test]
    fn seeds_are_added_until_the_half_width_is_five_percent_and_never_beyond_twenty() {
        assert_eq!(seeds_wanted(&[1.0]), MIN_SEEDS);
        assert_eq!(seeds_wanted(&[100.0, 101.0, 99.0, 100.0, 100.0]), 5);
        // s / mean = 15.8 %, half-width 19.6 % of the mean: wants 5 * (19.6 / 5)^2 = 77, gets 20.
        assert_eq!(seeds_wanted(&[8.0, 9.0, 10.0, 11.0, 12.0]), 20);
        // s = 0.5, h = 2.776 * 0.5 / sqrt(5) = 0.6208 = 6.2 % of 10: wants 5 * (6.208 / 5)^2 = 7.7, so 8.
        assert_eq!(seeds_wanted(&[9.5, 9.5, 10.0, 10.5, 10.5]), 8);
        assert_eq!(seeds_wanted(&[0.0; 5]), 5);
        assert_eq!(seeds_wanted(&[1.0; 20]), 20);
    }

    #[test]
    fn jain_is_one_for_equals_and_one_nth_for_a_monopoly() {
        assert_eq!(jain_index(&[7.0; 10]), Some(1.0));
        assert_eq!(jain_index(&[0.0, 0.0, 0.0, 5.0]), Some(0.25));
        // (1 + 2 + 3)^2 / (3 * 14) = 36 / 42
        assert!((jain_index(&[1.0, 2.0, 3.0]).unwrap() - 36.0 / 42.0).abs() < 1e-12);
        assert_eq!(jain_index(&[0.0; 4]), None);
        assert_eq!(jain_index(&[]), None);
    }
}
