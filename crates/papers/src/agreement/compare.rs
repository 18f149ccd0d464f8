//! A number of ours beside one of others: deviation, interval, standard deviations.

use fairpace_lab::stats::{Estimate, deviation, mean, short, t_quantile};

/// A number of others: a formula's, which has no spread, or a mean over seeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Theirs {
    /// The number, or the mean.
    pub(super) mean: f64,
    /// The sample standard deviation over the seeds, where it is known.
    pub(super) sd: Option<f64>,
    /// The number of seeds; 0 for a formula.
    pub(super) seeds: usize,
}

impl Theirs {
    /// A number without spread.
    pub(super) const fn exact(mean: f64) -> Theirs {
        Theirs { mean, sd: None, seeds: 0 }
    }

    /// From one value per seed; none without any.
    pub(super) fn of(values: &[f64]) -> Option<Theirs> {
        (!values.is_empty()).then(|| Theirs { mean: mean(values), sd: Some(deviation(values)), seeds: values.len() })
    }
}

/// How far our mean is from theirs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Deviation {
    /// Ours, over its seeds.
    pub(super) ours: Estimate,
    /// Theirs.
    pub(super) theirs: f64,
    /// Ours over theirs, less 1, with the 95 % interval that the seeds of both sides leave.
    pub(super) relative: Estimate,
    /// The same in standard deviations of the difference of the means; none without spread.
    pub(super) sigmas: Option<f64>,
}

impl Deviation {
    /// From our seeds' values. None without a value, or where theirs is zero and the deviation no number.
    ///
    /// The spread of a row is that of both sides' seeds together, each about its own mean and as a part of it: the same
    /// protocol on the same path is assumed to vary alike. Where theirs is not known, ours stands for it.
    pub(super) fn of(values: &[f64], theirs: Theirs) -> Option<Deviation> {
        let ours = Estimate::of(values)?;
        if theirs.mean == 0.0 {
            return None;
        }
        let relative = ours.mean / theirs.mean - 1.0;
        // Sums of squares about the means, of the means.
        let squares = |sd: f64, mean: f64, n: usize| (sd / mean).powi(2) * (n.max(1) - 1) as f64;
        let (mut sum, mut freedom) = (squares(deviation(values), theirs.mean, ours.n), ours.n - 1);
        if let Some(sd) = theirs.sd.filter(|_| theirs.seeds > 1) {
            sum += squares(sd, theirs.mean, theirs.seeds);
            freedom += theirs.seeds - 1;
        }
        let inverse = |n: usize| if n == 0 { 0.0 } else { 1.0 / n as f64 };
        let variance = if freedom == 0 { 0.0 } else { sum / freedom as f64 };
        let error = (variance * (inverse(ours.n) + inverse(theirs.seeds))).sqrt();
        let half = (freedom > 0).then(|| t_quantile(freedom) * error);
        let ci95 = half.map(|h| [relative - h, relative + h]);
        let sigmas = (error > 0.0).then(|| relative / error);
        Some(Deviation { ours, theirs: theirs.mean, relative: Estimate { mean: relative, ci95, n: ours.n }, sigmas })
    }

    /// Beyond this part of theirs, and by more than its interval is wide: the seeds do not explain it.
    pub(super) fn is_beyond(&self, part: f64) -> bool {
        self.relative.mean.abs() > part.max(self.relative.half_width())
    }

    /// `+1.2 ± 3.0 % (0.8 s)`.
    pub(super) fn text(&self) -> String {
        let percent = |x: f64| 100.0 * x;
        let half =
            self.relative.ci95.map_or(String::new(), |_| format!(" ± {:.1}", percent(self.relative.half_width())));
        let sigmas = self.sigmas.map_or(String::new(), |s| format!(" ({} s)", short((s.abs() * 10.0).round() / 10.0)));
        format!("{:+.1}{half}{sigmas}", percent(self.relative.mean))
    }

    /// `agrees`, `apart`, or `beyond 10 %`: by two standard deviations, and by [`Deviation::is_beyond`].
    pub(super) fn verdict(&self, part: f64) -> &'static str {
        match self.sigmas {
            _ if self.is_beyond(part) => "beyond",
            Some(s) if s.abs() > 2.0 => "apart",
            _ => "agrees",
        }
    }
}

/// The middle of some numbers; none of nothing.
pub(super) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    Some(if values.len() % 2 == 1 { upper } else { mean(&[*values.get(middle - 1)?, upper]) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deviation_has_the_spread_of_both_sides() {
        // Ours: 90, 100, 110 (s = 10), theirs 100 with s = 10 of 3 seeds: variance 0.01, error 0.1 sqrt(2/3) = 0.0816.
        let d = Deviation::of(&[100.0, 110.0, 120.0], Theirs { mean: 100.0, sd: Some(10.0), seeds: 3 }).unwrap();
        assert!((d.relative.mean - 0.1).abs() < 1e-12);
        assert!((d.sigmas.unwrap() - 1.2247).abs() < 1e-3, "{d:?}");
        // t(0.975, 4) = 2.7764.
        assert!((d.relative.half_width() - 0.2267).abs() < 1e-3, "{d:?}");
        assert!(!d.is_beyond(0.05) && d.verdict(0.05) == "agrees");
    }

    #[test]
    fn a_formula_has_no_spread_and_one_that_says_zero_no_deviation() {
        let d = Deviation::of(&[1.19, 1.20, 1.21], Theirs::exact(1.0)).unwrap();
        // s = 0.01: error 0.00577, 34.6 standard deviations.
        assert!((d.sigmas.unwrap() - 34.64).abs() < 0.1 && d.is_beyond(0.1) && d.verdict(0.1) == "beyond", "{d:?}");
        assert!(d.verdict(0.3) == "apart");
        assert_eq!(Deviation::of(&[1.0], Theirs::exact(0.0)), None);
        let alone = Deviation::of(&[1.3], Theirs::exact(1.0)).unwrap();
        assert_eq!((alone.sigmas, alone.relative.ci95, alone.text().as_str()), (None, None, "+30.0"));
    }

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(vec![]), None);
    }
}
