//! A claim: a statement, the number that decides it, its interval, and the bound it must keep.
//!
//! Claims are decided by the measured mean; where the interval includes the bound, the note says
//! that the run does not decide it at 95 %. Nothing here knows what the answer should be.

use core::fmt::Display;
use fairpace_lab::stats::{Estimate, short};
use fairpace_lab::study::{Measurements, Number, largest, smallest};
use serde::Serialize;

/// The bound that a number must keep.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// At least so much.
    AtLeast(f64),
    /// More than so much.
    Above(f64),
    /// At most so much.
    AtMost(f64),
    /// Less than so much.
    Below(f64),
    /// Between these, ends included.
    Within(f64, f64),
}

impl Bound {
    /// Whether `x` keeps the bound.
    pub fn holds(self, x: f64) -> bool {
        match self {
            Bound::AtLeast(b) => x >= b,
            Bound::Above(b) => x > b,
            Bound::AtMost(b) => x <= b,
            Bound::Below(b) => x < b,
            Bound::Within(low, high) => x >= low && x <= high,
        }
    }

    /// `>= 2.5`; to six decimals.
    pub fn text(self) -> String {
        let round = |b: f64| (b * 1e6).round() / 1e6;
        match self {
            Bound::AtLeast(b) => format!(">= {}", round(b)),
            Bound::Above(b) => format!("> {}", round(b)),
            Bound::AtMost(b) => format!("<= {}", round(b)),
            Bound::Below(b) => format!("< {}", round(b)),
            Bound::Within(low, high) => format!("{} to {}", round(low), round(high)),
        }
    }

    /// Whether an end of the interval says other than the mean.
    fn undecided(self, e: &Estimate) -> bool {
        e.ci95
            .is_some_and(|[low, high]| self.holds(low) != self.holds(e.mean) || self.holds(high) != self.holds(e.mean))
    }
}

/// A run's word on a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The whole interval keeps the bound.
    Holds,
    /// The whole interval breaks it.
    Fails,
    /// The interval includes the bound, or there is no number.
    NotDecided,
}

/// A claim, checked.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Claim {
    /// The reading of the paper.
    pub reading: String,
    /// `rcs.fig17a/gain-5e-3`.
    pub id: String,
    /// The statement.
    pub statement: String,
    /// Whether it holds.
    pub holds: bool,
    /// The number that decides it; none if nothing could be measured, and the claim then fails.
    pub measured: Option<f64>,
    /// Its 95 % interval; none for a number without spread.
    pub ci95: Option<[f64; 2]>,
    /// Whether there is a number and all of its interval says the same.
    pub decided: bool,
    /// The bound that the number must keep.
    pub bound: String,
    /// The meaning of the number, and the best explanation known if the claim fails.
    pub note: String,
}

impl Claim {
    /// Checks a number against a bound. `what` says what the number is.
    pub fn check(
        id: impl Into<String>,
        statement: impl Into<String>,
        measured: Option<Estimate>,
        bound: Bound,
        what: impl Into<String>,
    ) -> Claim {
        let doubt = match measured {
            None => "; could not be measured",
            Some(e) if bound.undecided(&e) => {
                "; the interval includes the bound, so this run does not decide it at 95 %"
            }
            Some(_) => "",
        };
        Claim {
            reading: crate::reading::DEFAULT.to_owned(),
            id: id.into(),
            statement: statement.into(),
            holds: measured.is_some_and(|e| bound.holds(e.mean)),
            measured: measured.map(|e| e.mean),
            ci95: measured.and_then(|e| e.ci95),
            decided: doubt.is_empty(),
            bound: bound.text(),
            note: what.into() + doubt,
        }
    }

    /// Adds an explanation that is printed only if the claim fails. A failure that nobody can explain says so.
    #[must_use]
    pub fn if_it_fails(mut self, why: &str) -> Claim {
        if !self.holds && self.measured.is_some() {
            self.note.push_str(". ");
            self.note.push_str(if why.is_empty() { "Not explained" } else { why });
        }
        self
    }

    /// The run's word on the claim at 95 %.
    pub fn verdict(&self) -> Verdict {
        match (self.decided, self.holds) {
            (false, _) => Verdict::NotDecided,
            (true, true) => Verdict::Holds,
            (true, false) => Verdict::Fails,
        }
    }

    /// One line: `holds  rcs.fig17a/…  statement: 2.81 [2.7, 2.9], >= 2.5`.
    pub fn line(&self) -> String {
        let verdict = if self.holds { "holds" } else { "FAILS" };
        let number = self.measured.map_or("not measured".to_owned(), short);
        let interval = match self.ci95 {
            Some([low, high]) => format!(" [{}, {}]", short(low), short(high)),
            None => String::new(),
        };
        let doubt = if self.decided || self.measured.is_none() { "" } else { " (not decided at 95 %)" };
        format!("{verdict}  {}  {}: {number}{interval}, bound {}{doubt}", self.id, self.statement, self.bound)
    }

    /// For the report.
    pub fn report(&self) -> fairpace_report::Claim {
        fairpace_report::Claim {
            id: self.id.clone(),
            statement: self.statement.clone(),
            holds: self.holds,
            measured: self.measured,
            ci95: self.ci95.map(|[low, high]| (low, high)),
            bound: self.bound.clone(),
            note: self.note.clone(),
        }
    }
}

/// The statement of a claim, before any number decides it. Each of the forms below takes the number from measurements.
#[derive(Clone, Debug)]
pub(crate) struct Statement {
    id: String,
    text: String,
    /// The bound that the number must keep.
    pub(crate) bound: Bound,
    what: String,
    reason: String,
}

impl Statement {
    /// `what` says what the number is; where a form looks for the worst place, `{at}` stands for that place.
    pub(crate) fn new(id: String, text: impl Into<String>, bound: Bound, what: impl Into<String>) -> Statement {
        Statement { id, text: text.into(), bound, what: what.into(), reason: String::new() }
    }

    /// The best explanation known, printed only if the claim fails.
    #[must_use]
    pub(crate) fn because(mut self, reason: impl Into<String>) -> Statement {
        self.reason = reason.into();
        self
    }

    /// Decided by a number with its interval.
    pub(crate) fn number(self, measured: Option<Estimate>) -> Claim {
        Claim::check(self.id, self.text, measured, self.bound, self.what).if_it_fails(&self.reason)
    }

    /// Decided by a number over all that there is, if there is one: its interval is no confidence interval, and leaves no doubt.
    /// `of` adds to what the number is.
    pub(crate) fn census(self, measured: Option<Estimate>, of: &str) -> Claim {
        let certain = measured.map(|e| Estimate { ci95: None, ..e });
        let claim = Claim::check(self.id, self.text, certain, self.bound, self.what + of);
        Claim { ci95: measured.and_then(|e| e.ci95), ..claim }.if_it_fails(&self.reason)
    }

    /// Decided by a number without spread; one that is not finite could not be measured.
    pub(crate) fn exact(self, value: impl Into<Option<f64>>) -> Claim {
        self.number(value.into().and_then(exact))
    }

    /// Decided by `a / b` at a place, seed by seed.
    pub(crate) fn ratio_at<R>(self, of: &Measurements<R>, a: &str, b: &str, x: f64, number: Number<R>) -> Claim {
        self.number(of.ratio(a, b, x, number))
    }

    /// Decided by a scheme's number at one place over that at another, seed by seed.
    pub(crate) fn relative<R>(self, of: &Measurements<R>, scheme: &str, x: f64, to: f64, number: Number<R>) -> Claim {
        self.number(of.relative(scheme, x, to, number))
    }

    /// Decided where the claim is in most danger: at the smallest number if the bound is a lower one, at the largest if
    /// it is an upper one, and farthest from the middle of an interval. One place without a number leaves all unknown.
    pub(crate) fn everywhere<X: Copy + Default + Display>(
        mut self,
        of: impl IntoIterator<Item = (X, Option<Estimate>)>,
    ) -> Claim {
        let (at, worst) = match self.bound {
            Bound::AtLeast(_) | Bound::Above(_) => smallest(of),
            Bound::AtMost(_) | Bound::Below(_) => largest(of),
            Bound::Within(low, high) => farthest(of, (low + high) / 2.0),
        };
        self.what = self.what.replace("{at}", &at.to_string());
        self.number(worst)
    }

    /// Decided by the step between neighbouring places where the claim is in most danger; `{at}` is the later of the two.
    pub(crate) fn monotone(self, places: &[f64], step: impl Fn(f64, f64) -> Option<Estimate>) -> Claim {
        let steps = places.windows(2).map(|pair| (pair[1], step(pair[0], pair[1])));
        self.everywhere(steps.collect::<Vec<_>>())
    }

    /// Decided by the largest change of a scheme's number, up or down, against that at a place of reference.
    pub(crate) fn spread<R>(
        self,
        of: &Measurements<R>,
        scheme: &str,
        places: &[f64],
        reference: f64,
        number: Number<R>,
    ) -> Claim {
        let others = places.iter().filter(|x| **x != reference);
        self.everywhere(others.map(|&x| (x, of.relative(scheme, x, reference, number).map(about_one))))
    }
}

/// A number without spread, if it is finite.
pub(crate) fn exact(value: f64) -> Option<Estimate> {
    value.is_finite().then(|| Estimate::exact(value))
}

/// The estimate whose mean is farthest from the middle, and where it was.
fn farthest<X: Copy + Default>(
    of: impl IntoIterator<Item = (X, Option<Estimate>)>,
    middle: f64,
) -> (X, Option<Estimate>) {
    let mut worst: (X, Option<Estimate>) = (X::default(), None);
    for (x, estimate) in of {
        let Some(new) = estimate else { return (x, None) };
        if worst.1.is_none_or(|old| (new.mean - middle).abs() > (old.mean - middle).abs()) {
            worst = (x, estimate);
        }
    }
    worst
}

/// |ratio - 1| with the interval that belongs to it.
fn about_one(e: Estimate) -> Estimate {
    let less = e.mean < 1.0;
    let shift = |x: f64| if less { -(x - 1.0) } else { x - 1.0 };
    let ci95 = e.ci95.map(|[low, high]| if less { [shift(high), shift(low)] } else { [shift(low), shift(high)] });
    Estimate { mean: shift(e.mean), ci95, n: e.n }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairpace_lab::study::Cell;
    use std::rc::Rc;

    #[test]
    fn a_bound_is_written_without_the_dust_of_arithmetic() {
        assert_eq!(Bound::Within(339.0 * 0.98, 339.0 * 1.02).text(), "332.22 to 345.78");
        assert_eq!(Bound::AtMost(0.314_579_545).text(), "<= 0.31458");
    }

    #[test]
    fn a_claim_holds_by_its_mean_and_says_when_the_interval_includes_the_bound() {
        let e = Estimate { mean: 2.6, ci95: Some([2.4, 2.8]), n: 5 };
        let claim = Claim::check("x/y", "at least 2.5", Some(e), Bound::AtLeast(2.5), "ratio of means");
        assert!(claim.holds && !claim.decided);
        assert!(
            claim.line().ends_with(": 2.600 [2.400, 2.800], bound >= 2.5 (not decided at 95 %)"),
            "{}",
            claim.line()
        );
        assert_eq!(
            claim.note,
            "ratio of means; the interval includes the bound, so this run does not decide it at 95 %"
        );
        let sure = Estimate { mean: 2.6, ci95: Some([2.55, 2.65]), n: 5 };
        assert_eq!(Claim::check("x/y", "", Some(sure), Bound::AtLeast(2.5), "ratio").note, "ratio");
    }

    #[test]
    fn each_bound_has_two_sides() {
        for (bound, inside, outside) in [
            (Bound::AtLeast(1.0), 1.0, 0.999),
            (Bound::Above(1.0), 1.001, 1.0),
            (Bound::AtMost(1.0), 1.0, 1.001),
            (Bound::Below(1.0), 0.999, 1.0),
            (Bound::Within(1.0, 2.0), 2.0, 2.001),
        ] {
            assert!(bound.holds(inside) && !bound.holds(outside), "{}", bound.text());
        }
    }

    #[test]
    fn what_could_not_be_measured_fails_and_says_so() {
        let claim = Claim::check("x/y", "s", None, Bound::Above(0.0), "mean");
        assert!(!claim.holds && !claim.decided);
        let census = Statement::new("x/y".to_owned(), "s", Bound::Above(0.0), "median").census(None, ", of 0");
        assert_eq!(
            (census.holds, census.decided, census.note.as_str()),
            (false, false, "median, of 0; could not be measured")
        );
        assert_eq!(claim.note, "mean; could not be measured");
        assert_eq!(claim.line(), "FAILS  x/y  s: not measured, bound > 0");
    }

    const PLACES: [f64; 3] = [1.0, 2.0, 3.0];

    /// `a` has 4, 3, 1 at the three places and `b` 1, 2, 4, in each of two seeds.
    fn found() -> Measurements<f64> {
        let cell = |(scheme, x, value): (&str, f64, f64)| Cell {
            scheme: scheme.to_owned(),
            x: vec![x],
            runs: [value; 2].map(Rc::new).to_vec(),
        };
        let all =
            [("a", 1.0, 4.0), ("a", 2.0, 3.0), ("a", 3.0, 1.0), ("b", 1.0, 1.0), ("b", 2.0, 2.0), ("b", 3.0, 4.0)];
        Measurements { cells: all.into_iter().map(cell).collect() }
    }

    /// Each form on these schemes, with the numbers that decide it under a lower and under an upper bound.
    type Form = fn(Statement, &Measurements<f64>, &str, &str) -> Claim;
    const VALUE: Number<f64> = |r| Some(*r);
    const FORMS: [(Form, f64, f64); 6] = [
        (|s, f, a, _| s.number(f.estimate(a, 2.0, VALUE)), 3.0, 3.0),
        (|s, f, a, b| s.ratio_at(f, a, b, 2.0, VALUE), 1.5, 1.5),
        (|s, f, _, b| s.relative(f, b, 3.0, 1.0, VALUE), 4.0, 4.0),
        // 4, 1.5, 0.25.
        (|s, f, a, b| s.everywhere(PLACES.map(|x| (x, f.ratio(a, b, x, VALUE)))), 0.25, 4.0),
        // 2 - 1, 4 - 2.
        (|s, f, _, b| s.monotone(&PLACES, |from, to| f.growth(b, from, to, VALUE)), 1.0, 2.0),
        // |1 / 2 - 1|, |4 / 2 - 1|.
        (|s, f, _, b| s.spread(f, b, &PLACES, 2.0, VALUE), 0.5, 1.0),
    ];

    fn says(bound: Bound) -> Statement {
        Statement::new("x/y".to_owned(), "s", bound, "at {at}").because("it was so")
    }

    #[test]
    fn each_form_holds_up_to_its_number_and_fails_beyond() {
        let found = found();
        for (n, (form, low, high)) in FORMS.into_iter().enumerate() {
            let verdict = |bound| form(says(bound), &found, "a", "b");
            assert_eq!(verdict(Bound::AtLeast(low)).measured, Some(low), "{n}");
            assert_eq!(verdict(Bound::AtMost(high)).measured, Some(high), "{n}");
            for (bound, holds) in [
                (Bound::AtLeast(low), true),
                (Bound::Above(low), false),
                (Bound::AtLeast(low + 1e-9), false),
                (Bound::AtMost(high), true),
                (Bound::Below(high), false),
                (Bound::AtMost(high - 1e-9), false),
                (Bound::Within(low, high), true),
                (Bound::Within(low - 2.0, low - 1.0), false),
                (Bound::Within(high + 1.0, high + 2.0), false),
            ] {
                let claim = verdict(bound);
                assert_eq!(claim.holds, holds, "{n}: {}", claim.line());
                assert_eq!(claim.note.contains("it was so"), !holds, "{n}: {}", claim.note);
            }
        }
    }

    #[test]
    fn each_form_fails_when_the_schemes_change_places_or_one_is_missing() {
        let mut found = found();
        for (n, (form, low, _)) in FORMS.into_iter().enumerate() {
            let missing = form(says(Bound::AtLeast(0.0)), &found, "c", "c");
            assert_eq!((missing.holds, missing.measured), (false, None), "{n}");
            let swapped = form(says(Bound::AtLeast(low)), &found, "b", "a");
            // Only what is everywhere as it was: the ratios are each other's inverses.
            assert_eq!(swapped.holds, n == 3, "{n}: {}", swapped.line());
        }
        // One place of three: nothing is known of all of them.
        found.cells.retain(|c| c.scheme != "b" || c.at() != 2.0);
        for (n, (form, ..)) in FORMS.into_iter().enumerate().filter(|(n, _)| ![0, 2].contains(n)) {
            assert_eq!(form(says(Bound::AtLeast(0.0)), &found, "a", "b").measured, None, "{n}");
        }
    }

    #[test]
    fn a_number_without_spread_decides_and_one_that_is_none_does_not() {
        let exact = |value: f64| says(Bound::AtMost(1.0)).exact(value);
        assert!(exact(1.0).holds && !exact(1.1).holds);
        assert_eq!((exact(f64::NAN).holds, exact(f64::NAN).measured), (false, None));
        // All that there is: the interval goes over the bound, and still nothing is undecided.
        let census =
            |mean| says(Bound::AtMost(1.0)).census(Some(Estimate { mean, ci95: Some([0.5, 1.5]), n: 9 }), ", of 9");
        assert!(census(1.0).holds && census(1.0).decided && !census(1.1).holds);
        assert_eq!(census(1.0).note, "at {at}, of 9");
    }

    #[test]
    fn the_place_of_danger_is_named_and_depends_on_the_bound() {
        let found = found();
        let at = |bound| says(bound).everywhere(PLACES.map(|x| (x, found.estimate("a", x, VALUE)))).note;
        assert!(at(Bound::Above(0.0)).starts_with("at 3") && at(Bound::Below(9.0)).starts_with("at 1"));
        // Farthest from 2.5: 4 before 1, which is as far.
        assert!(at(Bound::Within(0.0, 5.0)).starts_with("at 1"));
    }

    #[test]
    fn a_change_is_measured_in_both_directions() {
        let e = |mean, low, high| Estimate { mean, ci95: Some([low, high]), n: 5 };
        let below = about_one(e(0.9, 0.85, 0.95));
        assert!((below.mean - 0.1).abs() < 1e-12 && (below.low() - 0.05).abs() < 1e-12, "{below:?}");
        let above = about_one(e(1.2, 1.1, 1.3));
        assert!((above.mean - 0.2).abs() < 1e-12 && (above.high() - 0.3).abs() < 1e-12, "{above:?}");
    }
}
