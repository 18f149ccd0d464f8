//! Figures as data: the abscissa, the schemes, the set-up of a place, the numbers that are shown. One look for
//! every chart, table and point.

use crate::builtin::{base, ours, with};
use crate::{Bench, Claim, Experiment, Outcome, Point, Tools};
use fairpace_lab::RunError;
use fairpace_lab::stats::{Estimate, short};
use fairpace_lab::study::{Case, Measure, Measurements, Number, Precision, Sampling, Study};
use fairpace_report::{Axis, Chart, Section, Series, Table};
use fairpace_scenario::{RawScenario, Scenario, replace_controller};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A scheme of a figure.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scheme {
    /// Key in cases and points.
    pub(crate) key: &'static str,
    /// Name in legends.
    pub(crate) name: &'static str,
    /// Key of its colour.
    pub(crate) colour: &'static str,
    /// The controller of the flows of group `main`, as `compare` takes it; empty: the scenario's.
    pub(crate) controller: &'static str,
    /// The controller of the flows of group `tcp`; empty: the scenario's.
    pub(crate) tcp: &'static str,
    /// The scheme's other changes, after the place was set up.
    pub(crate) set: fn(&mut RawScenario),
}

impl Scheme {
    /// One that only puts its controller in.
    pub(crate) const fn new(key: &'static str, name: &'static str, controller: &'static str) -> Scheme {
        Scheme { key, name, colour: key, controller, tcp: "", set: |_| () }
    }

    /// The same beside another TCP.
    pub(crate) const fn beside(self, tcp: &'static str) -> Scheme {
        Scheme { tcp, ..self }
    }

    /// The same with more changes.
    pub(crate) const fn setting(self, set: fn(&mut RawScenario)) -> Scheme {
        Scheme { set, ..self }
    }

    /// The same in the colour of something else.
    pub(crate) const fn coloured(self, colour: &'static str) -> Scheme {
        Scheme { colour, ..self }
    }

    /// The same under another key; its colour stays.
    pub(crate) const fn at(self, key: &'static str) -> Scheme {
        Scheme { key, ..self }
    }

    /// The scenario of a place under this scheme.
    pub(crate) fn put_into(&self, place: &Scenario) -> Scenario {
        let mut s = with(place, self.set);
        for (group, controller) in [("tcp", self.tcp), ("main", self.controller)] {
            if !controller.is_empty() {
                s = replace_controller(&s, controller, |f| f.group == group).unwrap_or_else(|e| ours(&e));
            }
        }
        s
    }
}

/// A quantity that a figure shows.
pub(crate) struct Quantity<R: 'static> {
    /// `throughput_pps`.
    pub(crate) key: &'static str,
    /// In words.
    pub(crate) label: &'static str,
    /// Its unit; empty for a pure number.
    pub(crate) unit: &'static str,
    /// From a measurement.
    pub(crate) get: Number<R>,
}

impl<R> Quantity<R> {
    /// The number of a measurement; none if it has no such number.
    pub(crate) fn of(&self, run: &R) -> Option<f64> {
        (self.get)(run)
    }
}

/// The abscissa of a figure.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Abscissa {
    /// `p_loss`.
    pub(crate) key: &'static str,
    /// In words.
    pub(crate) label: &'static str,
    /// Its unit; empty for a pure number.
    pub(crate) unit: &'static str,
    /// Logarithmic.
    pub(crate) log: bool,
}

impl Abscissa {
    /// A linear one.
    pub(crate) const fn new(key: &'static str, label: &'static str, unit: &'static str) -> Abscissa {
        Abscissa { key, label, unit, log: false }
    }

    /// A logarithmic one.
    pub(crate) const fn log(key: &'static str, label: &'static str, unit: &'static str) -> Abscissa {
        Abscissa { log: true, ..Abscissa::new(key, label, unit) }
    }

    pub(crate) fn axis(&self) -> Axis {
        let axis = Axis::new(self.label, self.unit);
        if self.log { axis.log() } else { axis }
    }

    /// The head of a table's first column.
    pub(crate) fn head(&self) -> String {
        if self.unit.is_empty() { self.label.to_owned() } else { format!("{} ({})", self.label, self.unit) }
    }
}

/// A figure.
pub(crate) struct Figure<R: 'static> {
    /// The abscissa.
    pub(crate) x: Abscissa,
    /// Its places.
    pub(crate) places: &'static [f64],
    /// The schemes, in the order of the legend.
    pub(crate) schemes: &'static [Scheme],
    /// Sets a place up.
    pub(crate) vary: fn(&mut RawScenario, f64),
    /// The numbers that become points.
    pub(crate) quantities: &'static [Quantity<R>],
}

impl<R: Serialize + DeserializeOwned + Send + 'static> Figure<R> {
    /// The figure, or, where a run is for its claims only, the schemes on which they rest.
    pub(crate) fn asked_for(self, tools: &Tools<'_>, claimed: &'static [Scheme]) -> Figure<R> {
        if tools.claims_only { Figure { schemes: claimed, ..self } } else { self }
    }

    /// Its cases: every scheme in every place.
    pub(crate) fn cases(&self, base: &Scenario) -> Vec<Case> {
        self.schemes.iter().flat_map(|scheme| self.of(base, scheme)).collect()
    }

    /// One scheme in every place.
    pub(crate) fn of(&self, base: &Scenario, scheme: &Scheme) -> Vec<Case> {
        let place = |x: f64| with(base, |s| (self.vary)(s, x));
        self.places.iter().map(|&x| Case::new(scheme.key, x, scheme.put_into(&place(x)))).collect()
    }

    /// Its measurements, as many as the precision needs.
    pub(crate) fn measured(
        &self,
        e: &Experiment,
        bench: &mut Bench<'_>,
        measure: Measure<R>,
        precision: Precision<R>,
    ) -> Result<Measurements<R>, RunError> {
        enough(e, bench, measure, self.cases(&base(e)), precision)
    }

    /// Every number of every case.
    pub(crate) fn points(&self, found: &Measurements<R>) -> Vec<Point> {
        let mut points = Vec::new();
        for scheme in found.schemes() {
            for at in found.xs(scheme) {
                let of = |y: &Quantity<R>| point(scheme, &[(self.x.key, at)], y.key, found.estimate(scheme, at, y.get));
                points.extend(self.quantities.iter().filter_map(of));
            }
        }
        points
    }

    /// One chart: a line per scheme.
    pub(crate) fn chart(
        &self,
        found: &Measurements<R>,
        y: &Quantity<R>,
        title: impl Into<String>,
        caption: &str,
    ) -> Chart {
        let line = |scheme: &Scheme| {
            let places = found.xs(scheme.key).into_iter();
            curve(scheme.name, scheme.colour, places.map(|at| (at, found.estimate(scheme.key, at, y.get))))
        };
        let lines = self.schemes.iter().map(line).filter(|line| !line.x.is_empty());
        lines.fold(Chart::new(title, self.x.axis(), Axis::new(y.label, y.unit)).caption(caption), Chart::series)
    }

    /// Every quantity of one scheme: a row per place, a column per quantity.
    pub(crate) fn table_of(&self, found: &Measurements<R>, scheme: &str, title: impl Into<String>) -> Table {
        let head = |y: &Quantity<R>| Abscissa::new(y.key, y.label, y.unit).head();
        let head = std::iter::once(self.x.head()).chain(self.quantities.iter().map(head));
        let cell = |at: f64| move |y: &Quantity<R>| text(found.estimate(scheme, at, y.get));
        let row = |at: f64| std::iter::once(short(at)).chain(self.quantities.iter().map(cell(at))).collect();
        table(title, "mean ± half-width of the 95 % interval", head, found.xs(scheme).into_iter().map(row))
    }

    /// The section with a chart of a quantity and, below it, its numbers.
    pub(crate) fn shown_in(
        &self,
        section: Section,
        found: &Measurements<R>,
        y: &Quantity<R>,
        title: impl Into<String>,
        caption: &str,
    ) -> Section {
        let numbers = format!("Numbers: {} against {}", y.label, self.x.label);
        section.chart(self.chart(found, y, title, caption)).table(self.table(found, y, numbers))
    }

    /// The chart's numbers: a row per place, a column per scheme.
    pub(crate) fn table(&self, found: &Measurements<R>, y: &Quantity<R>, title: impl Into<String>) -> Table {
        let mut places: Vec<f64> = found.cells.iter().map(|c| c.at()).collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        let cell = |at: f64| move |s: &Scheme| text(found.estimate(s.key, at, y.get));
        let row = |at: f64| std::iter::once(short(at)).chain(self.schemes.iter().map(cell(at))).collect();
        let unit = if y.unit.is_empty() { String::new() } else { format!(" in {}", y.unit) };
        let head = std::iter::once(self.x.head()).chain(self.schemes.iter().map(|s| s.name.to_owned()));
        let caption = format!("{}{unit}, mean ± half-width of the 95 % interval", y.label);
        table(title, caption, head, places.into_iter().map(row))
    }
}

/// A table in the making, in which each row's numbers become points as well.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    rows: Vec<Vec<String>>,
    /// The points of all rows so far.
    pub(crate) points: Vec<Point>,
}

impl Numbers {
    /// Adds a row: words, then numbers by metric. One without a metric is shown only.
    pub(crate) fn row(
        &mut self,
        words: impl IntoIterator<Item = impl Into<String>>,
        (scheme, x): (&str, &[(&str, f64)]),
        numbers: &[(&str, Option<Estimate>)],
    ) {
        let cell = |(_, e): &(&str, Option<Estimate>)| match e {
            Some(Estimate { mean, ci95: None, .. }) if mean.fract() == 0.0 => mean.to_string(),
            Some(Estimate { ci95: None, .. }) => brief(*e),
            _ => text(*e),
        };
        self.rows.push(words.into_iter().map(Into::into).chain(numbers.iter().map(cell)).collect());
        let with_metric = numbers.iter().filter(|(metric, _)| !metric.is_empty());
        self.points.extend(with_metric.filter_map(|(metric, e)| point(scheme, x, *metric, *e)));
    }

    /// The table of all rows.
    pub(crate) fn table<H: Into<String>>(
        &mut self,
        title: impl Into<String>,
        caption: impl Into<String>,
        head: impl IntoIterator<Item = H>,
    ) -> Table {
        table(title, caption, head, std::mem::take(&mut self.rows))
    }
}

/// Cases with as many seeds as the precision needs.
pub(crate) fn enough<R: Serialize + DeserializeOwned + Send + 'static>(
    e: &Experiment,
    bench: &mut Bench<'_>,
    measure: Measure<R>,
    cases: Vec<Case>,
    precision: Precision<R>,
) -> Result<Measurements<R>, RunError> {
    Study { name: e.id.to_owned(), measure, cases, sampling: Sampling::Enough(precision) }.run(bench)
}

/// Cases with so many seeds each.
pub(crate) fn counted<R: Serialize + DeserializeOwned + Send + 'static>(
    e: &Experiment,
    bench: &mut Bench<'_>,
    measure: Measure<R>,
    cases: Vec<Case>,
    seeds: usize,
) -> Result<Measurements<R>, RunError> {
    Study { name: e.id.to_owned(), measure, cases, sampling: Sampling::Count(seeds) }.run(bench)
}

/// The caption of a figure with as many seeds as it needs: scenario, seeds, intervals.
pub(crate) fn caption<R>(e: &Experiment, found: &Measurements<R>) -> String {
    let counts = found.cells.iter().map(|c| c.runs.len());
    let (least, most) = (counts.clone().min().unwrap_or(0), counts.max().unwrap_or(0));
    let seeds = if least == most { format!("{least} seeds") } else { format!("{least} to {most} seeds") };
    format!("{}; {seeds} per point from seed 1 on; bars are 95 % intervals (Student's t)", e.file)
}

/// A line over places, with the intervals of its estimates; places without one are left out.
pub(crate) fn curve(
    name: impl Into<String>,
    colour: impl Into<String>,
    of: impl IntoIterator<Item = (f64, Option<Estimate>)>,
) -> Series {
    let known: Vec<(f64, Estimate)> = of.into_iter().filter_map(|(x, e)| Some((x, e?))).collect();
    let of = |number: fn(&Estimate) -> f64| known.iter().map(|(_, e)| number(e)).collect::<Vec<f64>>();
    let x = known.iter().map(|(x, _)| *x).collect();
    Series::sweep(name, colour, x, of(|e| e.mean)).interval(of(Estimate::low), of(Estimate::high))
}

/// The section with the reasons why runs in real time are not valid, if there are any.
pub(crate) fn with_doubts<'r>(section: Section, invalid: impl IntoIterator<Item = &'r Vec<String>>) -> Section {
    let all: Vec<&Vec<String>> = invalid.into_iter().collect();
    let bad: Vec<&&Vec<String>> = all.iter().filter(|run| !run.is_empty()).collect();
    let words =
        |first: &&&Vec<String>| format!("{} of {} runs are not valid: {}", bad.len(), all.len(), first.join("; "));
    bad.first().map(words).into_iter().fold(section, Section::text)
}

/// A table of text.
pub(crate) fn table<H: Into<String>>(
    title: impl Into<String>,
    caption: impl Into<String>,
    head: impl IntoIterator<Item = H>,
    rows: impl IntoIterator<Item = Vec<String>>,
) -> Table {
    Table {
        title: title.into(),
        caption: caption.into(),
        head: head.into_iter().map(H::into).collect(),
        rows: rows.into_iter().collect(),
    }
}

/// A number of an experiment; none without an estimate.
pub(crate) fn point(
    scheme: &str,
    x: &[(&str, f64)],
    metric: impl Into<String>,
    estimate: Option<Estimate>,
) -> Option<Point> {
    Some(Point {
        reading: crate::reading::DEFAULT.to_owned(),
        scheme: scheme.to_owned(),
        x: x.iter().map(|(key, at)| ((*key).to_owned(), *at)).collect(),
        metric: metric.into(),
        estimate: estimate?,
    })
}

/// An estimate with its half-width.
pub(crate) fn text(estimate: Option<Estimate>) -> String {
    estimate.map_or("–".to_owned(), |e| e.text())
}

/// Its mean alone.
pub(crate) fn brief(estimate: Option<Estimate>) -> String {
    estimate.map_or("–".to_owned(), |e| short(e.mean))
}

/// An estimate of a number that is so many times as large; `by` is not negative.
pub(crate) fn scaled(e: Estimate, by: f64) -> Estimate {
    Estimate { mean: e.mean * by, ci95: e.ci95.map(|[low, high]| [low * by, high * by]), n: e.n }
}

impl Experiment {
    /// A claim of this experiment, to be decided by one of the forms.
    pub(crate) fn claim(
        &self,
        key: impl core::fmt::Display,
        statement: impl Into<String>,
        bound: crate::Bound,
        what: impl Into<String>,
    ) -> crate::claim::Statement {
        crate::claim::Statement::new(format!("{}/{key}", self.id), statement, bound, what)
    }

    /// The section of the report, with the command that repeats it.
    pub(crate) fn section(&self) -> Section {
        Section::new(self.id, format!("{}: {}", self.id, self.title))
            .text(format!("Repeat with `fairpace reproduce {}`.", self.id))
    }

    /// The outcome; its section gets the claims.
    pub(crate) fn outcome(&self, points: Vec<Point>, claims: Vec<Claim>, mut section: Section) -> Outcome {
        section.claims = claims.iter().map(Claim::report).collect();
        Outcome { experiment: self.id.to_owned(), points, claims, section, ..Outcome::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairpace_lab::study::Cell;
    use std::rc::Rc;

    const TWICE: Quantity<f64> = Quantity { key: "twice", label: "double", unit: "kbit/s", get: |y| Some(2.0 * y) };
    const FIGURE: Figure<f64> = Figure {
        x: Abscissa::new("x", "place", "m"),
        places: &[1.0, 2.0],
        schemes: &[Scheme::new("a", "A", "")],
        vary: |_, _| (),
        quantities: &[TWICE],
    };

    fn found() -> Measurements<f64> {
        let cell = |(x, y): (f64, f64)| Cell { scheme: "a".to_owned(), x: vec![x], runs: vec![Rc::new(y), Rc::new(y)] };
        Measurements { cells: [(2.0, 5.0), (1.0, 3.0)].map(cell).to_vec() }
    }

    #[test]
    fn a_figure_is_shown_as_a_chart_and_below_it_its_numbers() {
        let section = FIGURE.shown_in(Section::new("id", "heading"), &found(), &TWICE, "title", "caption");
        let ([chart], [table]) = (&section.charts[..], &section.tables[..]) else { panic!("one of each") };
        assert_eq!((chart.title.as_str(), chart.series[0].y.as_slice()), ("title", [6.0, 10.0].as_slice()));
        assert_eq!(
            (table.title.as_str(), table.head.join("|")),
            ("Numbers: double against place", "place (m)|A".into())
        );
        assert_eq!(table.rows.iter().map(|row| row[0].as_str()).collect::<Vec<_>>(), ["1.000", "2.000"]);
        let of_one = FIGURE.table_of(&found(), "a", "all");
        assert_eq!(
            (of_one.head.join("|"), &of_one.rows[1][1]),
            ("place (m)|double (kbit/s)".into(), &table.rows[1][1])
        );
    }

    #[test]
    fn the_numbers_of_a_row_are_cells_and_those_with_a_metric_points() {
        let mut numbers = Numbers::default();
        let spread = Estimate { mean: 2.0, ci95: Some([1.5, 2.5]), n: 5 };
        let all = [("rate", Some(spread)), ("", Some(Estimate::exact(7.0))), ("lost", None)];
        numbers.row(["words"], ("a", &[("x", 3.0)]), &all);
        let table = numbers.table("title", "caption", ["", "rate", "other", "lost"]);
        assert_eq!(table.rows, [["words", &spread.text(), "7", "–"]]);
        let [point] = &numbers.points[..] else { panic!("{:?}", numbers.points) };
        assert_eq!((point.scheme.as_str(), point.metric.as_str(), point.x["x"]), ("a", "rate", 3.0));
        // The next table begins empty.
        assert!(numbers.table("title", "caption", [""]).rows.is_empty());
    }

    #[test]
    fn doubts_are_said_of_runs_that_are_not_valid_and_of_no_others() {
        let of = |invalid: &[Vec<String>]| with_doubts(Section::new("id", "heading"), invalid).text;
        assert!(of(&[vec![], vec![]]).is_empty());
        let bad = vec!["late".to_owned(), "slow".to_owned()];
        assert_eq!(of(&[vec![], bad, vec!["other".to_owned()]]), ["2 of 3 runs are not valid: late; slow"]);
    }
}
