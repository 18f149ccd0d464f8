//! Numbers over the phases: their spread, claims about them, curves of them along an abscissa.

use crate::claim::Statement;
use crate::figure::{Abscissa, point, table};
use crate::{Claim, Point};
use fairpace_lab::stats::{Estimate, short};
use fairpace_report::{Axis, Chart, Series, Table};

/// Over the phases, at one place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spread {
    pub(super) median: f64,
    pub(super) least: f64,
    pub(super) greatest: f64,
    /// Ends of the middle 95 %.
    pub(super) middle: [f64; 2],
    pub(super) n: usize,
}

impl Spread {
    /// None of nothing, or of what is not finite.
    pub(super) fn of(mut values: Vec<f64>) -> Option<Spread> {
        values.sort_by(f64::total_cmp);
        if values.iter().any(|v| !v.is_finite()) {
            return None;
        }
        let (least, greatest) = (*values.first()?, *values.last()?);
        let at = |q: f64| quantile(&values, q);
        Some(Spread { median: at(0.5), least, greatest, middle: [at(0.025), at(0.975)], n: values.len() })
    }

    /// The median, with the middle 95 %.
    fn estimate(&self) -> Estimate {
        Estimate { mean: self.median, ci95: Some(self.middle), n: self.n }
    }

    /// `1.2 (0.9 to 1.5)`: the median, the least, the greatest.
    pub(super) fn text(&self) -> String {
        format!("{} ({} to {})", short(self.median), short(self.least), short(self.greatest))
    }
}

/// The value that a part `q` of sorted ones does not exceed; in between, linear.
fn quantile(sorted: &[f64], q: f64) -> f64 {
    let place = q * (sorted.len().max(1) - 1) as f64;
    let (below, part) = (place.floor() as usize, place.fract());
    match (sorted.get(below), sorted.get(below + 1)) {
        (Some(a), Some(b)) => a + (b - a) * part,
        (Some(a), None) => *a,
        (None, _) => f64::NAN,
    }
}

/// For how long a request is held back.
pub(super) const T_Q: Abscissa = Abscissa::new("t_q_ms", "T_q", "ms");

/// So many T_q from 0 to the longest, in whole milliseconds.
pub(super) fn steps(longest_ms: f64, n: usize) -> Vec<f64> {
    (0..n).map(|i| (longest_ms * i as f64 / (n - 1) as f64).round()).collect()
}

/// A number of a spread.
pub(super) type Statistic = fn(&Spread) -> f64;
pub(super) const MEDIAN: Statistic = |s| s.median;
pub(super) const GREATEST: Statistic = |s| s.greatest;

/// A number along an abscissa, in each place over the phases.
pub(super) struct Curve {
    /// Name in legends and heads.
    pub(super) name: String,
    /// Key of its colour.
    pub(super) colour: &'static str,
    /// The places with their spreads.
    pub(super) at: Vec<(f64, Option<Spread>)>,
}

impl Curve {
    /// The medians, with bars from the least to the greatest.
    fn series(&self) -> Series {
        let known: Vec<(f64, Spread)> = self.at.iter().filter_map(|(x, s)| Some((*x, (*s)?))).collect();
        let of = |number: fn(&Spread) -> f64| known.iter().map(|(_, s)| number(s)).collect::<Vec<f64>>();
        let x = known.iter().map(|(x, _)| *x).collect();
        Series::sweep(&self.name, self.colour, x, of(|s| s.median)).interval(of(|s| s.least), of(|s| s.greatest))
    }

    /// The medians in the order of the places; NaN where there is none.
    pub(super) fn medians(&self) -> Vec<f64> {
        self.at.iter().map(|(_, s)| s.map_or(f64::NAN, |s| s.median)).collect()
    }

    /// Its points under a scheme, with the coordinates that all of them share.
    pub(super) fn points(
        &self,
        scheme: &str,
        x: &Abscissa,
        shared: &[(&str, f64)],
        metrics: &[(&str, Statistic)],
    ) -> Vec<Point> {
        let mut points = Vec::new();
        for (at, spread) in self.at.iter().filter_map(|(at, s)| Some((*at, (*s)?))) {
            let place = [&[(x.key, at)], shared].concat();
            points.extend(metrics.iter().filter_map(|(key, of)| of_phases(scheme, &place, key, of(&spread), spread.n)));
        }
        points
    }
}

/// A chart of curves over delays in seconds.
pub(super) fn curves_chart(title: String, caption: String, x: &Abscissa, y: &str, curves: &[Curve]) -> Chart {
    let chart = Chart::new(title, x.axis(), Axis::new(y, "s")).caption(caption);
    curves.iter().map(Curve::series).fold(chart, Chart::series)
}

/// The chart's numbers: a row per place, a column per curve.
pub(super) fn curves_table(title: String, caption: String, x: &Abscissa, curves: &[Curve]) -> Table {
    let head = std::iter::once(x.head()).chain(curves.iter().map(|c| c.name.clone()));
    let places = curves.first().map_or(&[][..], |c| &c.at).iter().enumerate();
    let cell = |i: usize| move |c: &Curve| c.at.get(i).and_then(|at| at.1).map_or("–".to_owned(), |s| s.text());
    let rows = places.map(|(i, (x, _))| std::iter::once(short(*x)).chain(curves.iter().map(cell(i))).collect());
    table(title, caption, head, rows)
}

impl Statement {
    /// Decided by the median over the phases; the interval is the middle 95 % of them. Nothing is undecided: the phases
    /// are no sample.
    pub(super) fn over_phases(self, values: Vec<f64>) -> Claim {
        let (kept, n) = (values.iter().filter(|v| self.bound.holds(**v)).count(), values.len());
        let of = format!(": median over the phases, and the middle 95 % of them; kept in {kept} of {n}");
        self.census(Spread::of(values).map(|s| s.estimate()), &of)
    }
}

/// A number of an experiment over so many phases.
pub(super) fn of_phases(scheme: &str, x: &[(&str, f64)], metric: &str, value: f64, n: usize) -> Option<Point> {
    point(scheme, x, metric, value.is_finite().then_some(Estimate { mean: value, ci95: None, n }))
}
