//! The measurements of a study, and the statistics over them.

use crate::stats::Estimate;
use std::rc::Rc;

/// The runs of one case.
#[derive(Clone, Debug)]
pub struct Cell<R> {
    /// The scheme's key.
    pub scheme: String,
    /// The place: a coordinate per axis.
    pub x: Vec<f64>,
    /// One per seed, in their order.
    pub runs: Vec<Rc<R>>,
}

impl<R> Cell<R> {
    /// The first coordinate; 0 if there is no axis.
    pub fn at(&self) -> f64 {
        self.x.first().copied().unwrap_or(0.0)
    }

    /// One number per seed that has it.
    pub fn values(&self, number: impl Fn(&R) -> Option<f64>) -> Vec<f64> {
        self.runs.iter().filter_map(|r| number(r)).collect()
    }

    /// The mean over the seeds that have the number, with its interval.
    pub fn estimate(&self, number: impl Fn(&R) -> Option<f64>) -> Option<Estimate> {
        Estimate::of(&self.values(number))
    }

    /// A number that every run has.
    pub fn mean(&self, number: impl Fn(&R) -> f64) -> Option<Estimate> {
        self.estimate(|r| Some(number(r)))
    }
}

/// Everything measured by one study.
#[derive(Clone, Debug)]
pub struct Measurements<R> {
    /// The cases, in the order in which they were asked for.
    pub cells: Vec<Cell<R>>,
}

impl<R> Measurements<R> {
    /// The schemes, in order of appearance.
    pub fn schemes(&self) -> Vec<&str> {
        let mut schemes = Vec::new();
        for cell in &self.cells {
            if !schemes.contains(&cell.scheme.as_str()) {
                schemes.push(&cell.scheme);
            }
        }
        schemes
    }

    /// The cells of a scheme, in the order in which they were asked for.
    pub fn of<'f>(&'f self, scheme: &'f str) -> impl Iterator<Item = &'f Cell<R>> {
        self.cells.iter().filter(move |c| c.scheme == scheme)
    }

    /// The places of a scheme on the first axis, in rising order.
    pub fn xs(&self, scheme: &str) -> Vec<f64> {
        let mut xs: Vec<f64> = self.of(scheme).map(Cell::at).collect();
        xs.sort_by(f64::total_cmp);
        xs
    }

    /// The cell of a scheme at a place of the first axis.
    pub fn cell(&self, scheme: &str, x: f64) -> Option<&Cell<R>> {
        self.cells.iter().find(|c| c.scheme == scheme && (c.at() - x).abs() <= 1e-9 * x.abs())
    }

    /// The runs of a scheme at a place, one per seed; none if it was not measured there.
    pub fn runs(&self, scheme: &str, x: f64) -> &[Rc<R>] {
        self.cell(scheme, x).map_or(&[], |c| &c.runs)
    }

    /// One number per seed that has it.
    pub fn values(&self, scheme: &str, x: f64, number: impl Fn(&R) -> Option<f64>) -> Vec<f64> {
        self.cell(scheme, x).map_or(Vec::new(), |c| c.values(number))
    }

    /// The mean over the seeds with its interval.
    pub fn estimate(&self, scheme: &str, x: f64, number: impl Fn(&R) -> Option<f64>) -> Option<Estimate> {
        self.cell(scheme, x)?.estimate(number)
    }

    /// The means of a scheme along its places, in rising order.
    pub fn along(&self, scheme: &str, number: impl Fn(&R) -> Option<f64>) -> Vec<(f64, Option<Estimate>)> {
        self.xs(scheme).into_iter().map(|x| (x, self.estimate(scheme, x, &number))).collect()
    }

    /// Where a scheme's number falls through a level on its way from the first of these places to the last: linear
    /// between two places, seed by seed. None if in one seed it does not, or a place has no number.
    pub fn crossing(
        &self,
        scheme: &str,
        places: &[f64],
        level: f64,
        number: impl Fn(&R) -> Option<f64>,
    ) -> Option<Estimate> {
        let of_seed = |i: usize| {
            let point = |&x: &f64| Some((x, number(self.runs(scheme, x).get(i)?)?));
            let line: Vec<(f64, f64)> = places.iter().map(point).collect::<Option<_>>()?;
            let falls = |pair: &&[(f64, f64)]| pair[0].1 > level && pair[1].1 <= level;
            let [(x, a), (next, b)] = *line.windows(2).find(falls)? else { return None };
            Some(x + (next - x) * (a - level) / (a - b))
        };
        let seeds = places.iter().map(|&x| self.runs(scheme, x).len()).min()?;
        Estimate::of(&(0..seeds).map(of_seed).collect::<Option<Vec<f64>>>()?)
    }

    /// `combine(a, b)` of two cases (scheme, place), seed by seed, over the seeds for which there is such a number.
    pub fn paired(&self, a: (&str, f64), b: (&str, f64), combine: impl Fn(&R, &R) -> Option<f64>) -> Option<Estimate> {
        let pairs = self.runs(a.0, a.1).iter().zip(self.runs(b.0, b.1));
        Estimate::of(&pairs.filter_map(|(a, b)| combine(a, b)).collect::<Vec<f64>>())
    }

    /// `a / b` at the same place, seed by seed.
    pub fn ratio(&self, a: &str, b: &str, x: f64, number: impl Fn(&R) -> Option<f64>) -> Option<Estimate> {
        self.paired((a, x), (b, x), |a, b| Some(number(a)? / number(b)?))
    }

    /// `a - b` at the same place, seed by seed.
    pub fn difference(&self, a: &str, b: &str, x: f64, number: impl Fn(&R) -> Option<f64>) -> Option<Estimate> {
        self.paired((a, x), (b, x), |a, b| Some(number(a)? - number(b)?))
    }

    /// The number at one place over the number at another, same scheme, seed by seed.
    pub fn relative(&self, scheme: &str, x: f64, to: f64, number: impl Fn(&R) -> Option<f64>) -> Option<Estimate> {
        self.paired((scheme, x), (scheme, to), |a, b| Some(number(a)? / number(b)?))
    }

    /// The number at one place less the number at another, same scheme, seed by seed.
    pub fn growth(&self, scheme: &str, from: f64, to: f64, number: impl Fn(&R) -> Option<f64>) -> Option<Estimate> {
        self.paired((scheme, to), (scheme, from), |a, b| Some(number(a)? - number(b)?))
    }
}

/// The estimate with the smallest mean, and where it was.
pub fn smallest<X: Copy + Default>(of: impl IntoIterator<Item = (X, Option<Estimate>)>) -> (X, Option<Estimate>) {
    extreme(of, |new, best| new < best)
}

/// The estimate with the largest mean, and where it was.
pub fn largest<X: Copy + Default>(of: impl IntoIterator<Item = (X, Option<Estimate>)>) -> (X, Option<Estimate>) {
    extreme(of, |new, best| new > best)
}

/// One place without a number makes the whole unknown: a claim about "everywhere" needs them all.
fn extreme<X: Copy + Default>(
    of: impl IntoIterator<Item = (X, Option<Estimate>)>,
    better: fn(f64, f64) -> bool,
) -> (X, Option<Estimate>) {
    let mut best: (X, Option<Estimate>) = (X::default(), None);
    for (x, estimate) in of {
        match (estimate, best.1) {
            (None, _) => return (x, None),
            (Some(new), Some(old)) if !better(new.mean, old.mean) => {}
            (Some(_), _) => best = (x, estimate),
        }
    }
    best
}
