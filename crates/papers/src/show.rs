//! Grids as charts, tables and points: one look for every figure.

use super::bench::{Grid, Metric};
use super::{Claim, Experiment, Outcome, Point};
use fairpace_lab::stats::short;
use fairpace_report::{Axis, Chart, Section, Series, Table};
use std::collections::BTreeMap;

/// How a scheme is called and coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Look {
    /// Key in cells, points and colours.
    pub(super) key: &'static str,
    /// Name in legends.
    pub(super) name: &'static str,
}

/// A quantity that a figure shows.
#[derive(Clone, Copy)]
pub(super) struct Quantity {
    /// `throughput_pps`.
    pub(super) key: &'static str,
    /// In words.
    pub(super) label: &'static str,
    /// Its unit; empty for a pure number.
    pub(super) unit: &'static str,
    /// From a run.
    pub(super) get: Metric,
}

/// The abscissa of a figure.
#[derive(Clone, Copy)]
pub(super) struct Abscissa {
    /// `p_loss`.
    pub(super) key: &'static str,
    /// In words.
    pub(super) label: &'static str,
    /// Its unit.
    pub(super) unit: &'static str,
    /// Logarithmic.
    pub(super) log: bool,
}

impl Abscissa {
    fn axis(&self) -> Axis {
        let axis = Axis::new(self.label, self.unit);
        if self.log { axis.log() } else { axis }
    }

    fn head(&self) -> String {
        if self.unit.is_empty() { self.label.to_owned() } else { format!("{} ({})", self.label, self.unit) }
    }
}

/// The caption that every sweep has: scenario, seeds, intervals.
pub(super) fn caption(experiment: &Experiment, grid: &Grid) -> String {
    let counts = grid.cells.iter().map(|c| c.runs.len());
    let (least, most) = (counts.clone().min().unwrap_or(0), counts.max().unwrap_or(0));
    let seeds = if least == most { format!("{least} seeds") } else { format!("{least} to {most} seeds") };
    format!("{}; {seeds} per point from seed 1 on; bars are 95 % intervals (Student's t)", experiment.file)
}

/// One chart: a line per scheme.
pub(super) fn chart(grid: &Grid, looks: &[Look], title: &str, caption: &str, x: &Abscissa, y: &Quantity) -> Chart {
    let mut chart = Chart::new(title, x.axis(), Axis::new(y.label, y.unit)).caption(caption);
    for look in looks {
        let (mut xs, mut ys, mut lo, mut hi) = (vec![], vec![], vec![], vec![]);
        for at in grid.xs(look.key) {
            if let Some(e) = grid.estimate(look.key, at, y.get) {
                xs.push(at);
                ys.push(e.mean);
                lo.push(e.low());
                hi.push(e.high());
            }
        }
        if !xs.is_empty() {
            chart = chart.series(Series::sweep(look.name, look.key, xs, ys).interval(lo, hi));
        }
    }
    chart
}

/// The chart's numbers: a row per place, a column per scheme.
pub(super) fn table(grid: &Grid, looks: &[Look], title: &str, x: &Abscissa, y: &Quantity) -> Table {
    let mut places: Vec<f64> = grid.cells.iter().map(|c| c.x).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    let mut head = vec![x.head()];
    head.extend(looks.iter().map(|l| l.name.to_owned()));
    let row = |at: f64| {
        let cells = looks.iter().map(|l| grid.estimate(l.key, at, y.get).map_or("–".to_owned(), |e| e.text()));
        std::iter::once(short(at)).chain(cells).collect()
    };
    let unit = if y.unit.is_empty() { String::new() } else { format!(" in {}", y.unit) };
    Table {
        title: title.to_owned(),
        caption: format!("{}{unit}, mean ± half-width of the 95 % interval", y.label),
        head,
        rows: places.into_iter().map(row).collect(),
    }
}

/// Every number of a grid.
pub(super) fn points(grid: &Grid, x: &Abscissa, quantities: &[Quantity]) -> Vec<Point> {
    let mut points = Vec::new();
    for scheme in grid.schemes() {
        for at in grid.xs(scheme) {
            for y in quantities {
                if let Some(estimate) = grid.estimate(scheme, at, y.get) {
                    let x = BTreeMap::from([(x.key.to_owned(), at)]);
                    points.push(Point { scheme: scheme.to_owned(), x, metric: y.key.to_owned(), estimate });
                }
            }
        }
    }
    points
}

/// An outcome whose section has the claims and the heading.
pub(super) fn outcome(
    experiment: &Experiment,
    points: Vec<Point>,
    claims: Vec<Claim>,
    mut section: Section,
) -> Outcome {
    section.claims = claims.iter().map(Claim::report).collect();
    Outcome { experiment: experiment.id.to_owned(), points, claims, not_run: None, section }
}

/// The section of an experiment, with its command.
pub(super) fn section(experiment: &Experiment) -> Section {
    Section::new(experiment.id, format!("{}: {}", experiment.id, experiment.title))
        .text(format!("Repeat with `fairpace reproduce {}`.", experiment.id))
}
