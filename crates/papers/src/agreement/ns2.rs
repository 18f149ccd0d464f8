//! Every row of ns-2's tables beside the scenario that repeats the row.

mod rows;
mod seen;

use self::rows::{Column, Kind, Row, Table};
use self::seen::{MEASURE, Seen};
use super::compare::{Deviation, median};
use crate::builtin::base;
use crate::figure::{Abscissa, Numbers, counted, table};
use crate::{Bench, Bound, Claim, Experiment, Outcome, Tools};
use fairpace_lab::RunError;
use fairpace_lab::stats::{Estimate, short};
use fairpace_lab::study::Case;
use fairpace_report::{Axis, Chart, Series, Style, Table as Shown};
use std::collections::BTreeMap;

/// The seeds of each row; the tables have three to a hundred.
const SEEDS: usize = 16;
/// The same for the longer runs.
const FEWER: usize = 8;
/// A row's number may be so far from ns-2's.
const APART: f64 = 0.1;
/// The median of all rows' numbers.
const MEDIAN: f64 = 0.02;

pub(super) fn satellite(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    compare(e, bench, &[Table::RapSatellite, Table::TcpSatellite], FEWER)
}

pub(super) fn mixed(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    compare(e, bench, &[Table::Mixed, Table::MixedJitter], SEEDS)
}

pub(super) fn channel(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    compare(e, bench, &[Table::Channel], SEEDS)
}

pub(super) fn dumbbell(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let tables = [Table::Lossy, Table::Variants, Table::Clean, Table::CleanJitter, Table::Aimd];
    compare(e, bench, &tables, SEEDS)
}

/// A row's number in both simulators.
struct Compared {
    row: usize,
    column: &'static Column,
    /// None where both say zero.
    deviation: Option<Deviation>,
}

fn compare(e: &Experiment, bench: &mut Bench<'_>, tables: &[Table], seeds: usize) -> Result<Outcome, RunError> {
    let rows: Vec<Row> = tables.iter().flat_map(|t| t.rows()).collect();
    let base = base(e);
    let case = |(index, row): (usize, &Row)| Case::new(row.key(), index as f64, row.scenario(&base));
    let cases = rows.iter().enumerate().map(case).collect();
    let found = counted(e, bench, MEASURE, cases, bench.seeds(seeds, 20))?;
    let mut all = Vec::new();
    for (index, (row, cell)) in rows.iter().zip(&found.cells).enumerate() {
        for column in row.table.columns() {
            let values = cell.values(|seen: &Seen| (column.of)(seen));
            let deviation = Deviation::of(&values, row.theirs(column));
            all.push(Compared { row: index, column, deviation });
        }
    }
    let mut numbers = Numbers::default();
    for (index, row) in rows.iter().enumerate() {
        let of_row: Vec<&Compared> = all.iter().filter(|c| c.row == index).collect();
        let metrics: Vec<(String, Option<Estimate>)> = of_row
            .iter()
            .filter_map(|c| c.deviation.map(|d| (c.column.name, d)))
            .flat_map(|(name, d)| [(name.to_owned(), Some(d.ours)), (format!("{name}_deviation"), Some(d.relative))])
            .collect();
        let metrics: Vec<(&str, Option<Estimate>)> = metrics.iter().map(|(name, e)| (name.as_str(), *e)).collect();
        numbers.row([row.label()], (&row.key(), &row.places()), &metrics);
    }
    let points = std::mem::take(&mut numbers.points);
    let section = e
        .section()
        .text(
            "A deviation is our mean over the seeds by ns-2's, less 1, in percent, with its 95 % interval; s is the standard \
             deviation of the difference of the two means, by the spread of both sides' seeds.",
        )
        .table(overview(&all))
        .table(outside(&rows, &all));
    let section = PLACES.iter().filter_map(|x| chart(e, x, &rows, &all)).fold(section, |s, c| s.chart(c));
    let section = tables.iter().fold(section, |s, t| s.table(each(*t, &rows, &all)));
    Ok(e.outcome(points, claims(e, &all), section))
}

/// Of each kind of number: how near is the middle, and how many are beyond what seeds explain.
fn claims(e: &Experiment, all: &[Compared]) -> Vec<Claim> {
    let mut claims = Vec::new();
    for (kind, key, what) in
        [(Kind::Rate, "rates", "rates"), (Kind::Other, "other", "losses, windows, times, fairness")]
    {
        let of_kind = || all.iter().filter(|c| c.column.kind == kind).filter_map(|c| c.deviation);
        let middle = median(of_kind().map(|d| d.relative.mean.abs()).collect());
        claims.push(
            e.claim(
                format!("{key}-median"),
                format!("the median deviation from ns-2's {what} is at most 2 % (ours)"),
                Bound::AtMost(MEDIAN),
                format!("median of |ours / ns-2's - 1| over {} numbers", of_kind().count()),
            )
            .exact(middle),
        );
        claims.push(
            e.claim(
                format!("{key}-within"),
                format!("none of these {what} is beyond 10 % unless its own seeds spread wider (ours)"),
                Bound::AtMost(0.0),
                format!("numbers, of {}, beyond 10 % and beyond their 95 % intervals", of_kind().count()),
            )
            .exact(of_kind().filter(|d| d.is_beyond(APART)).count() as f64),
        );
    }
    claims
}

/// A line for each column of the tables.
fn overview(all: &[Compared]) -> Shown {
    let mut columns: BTreeMap<&str, Vec<Deviation>> = BTreeMap::new();
    for c in all {
        columns.entry(c.column.name).or_default().extend(c.deviation);
    }
    let row = |(name, d): (&&str, &Vec<Deviation>)| {
        let percent = |x: Option<f64>| x.map_or("–".to_owned(), |x| short(100.0 * x));
        let of = |f: fn(&Deviation) -> f64| median(d.iter().map(f).collect());
        let worst = d.iter().map(|d| d.relative.mean).max_by(|a, b| a.abs().total_cmp(&b.abs()));
        let apart = d.iter().filter(|d| d.sigmas.is_some_and(|s| s.abs() > 2.0)).count();
        vec![
            (*name).to_owned(),
            d.len().to_string(),
            percent(of(|d| d.relative.mean)),
            percent(of(|d| d.relative.mean.abs())),
            percent(worst),
            apart.to_string(),
            d.iter().filter(|d| d.is_beyond(APART)).count().to_string(),
        ]
    };
    let head =
        ["number", "rows", "median, %", "median without sign, %", "farthest, %", "beyond 2 s", "beyond 10 % and seeds"];
    table(
        "Deviation from ns-2, by number",
        "over all rows with a number that is not zero",
        head,
        columns.iter().map(row),
    )
}

/// The numbers beyond 10 %, whether or not seeds explain them.
fn outside(rows: &[Row], all: &[Compared]) -> Shown {
    let far = all.iter().filter_map(|c| Some((c, c.deviation.filter(|d| d.relative.mean.abs() > APART)?)));
    let row = |(c, d): (&Compared, Deviation)| {
        let verdict = if d.is_beyond(APART) { "beyond" } else { "seeds spread wider" };
        let words = [rows[c.row].label(), c.column.name.to_owned(), d.ours.text(), short(d.theirs), d.text()];
        words.into_iter().chain([verdict.to_owned()]).collect()
    };
    let head = ["row", "number", "ours", "ns-2", "deviation, %", "verdict"];
    table("Numbers beyond 10 %", "deviation with its 95 % interval", head, far.map(row))
}

/// Every row of a table: ours, and how far from ns-2's.
fn each(of: Table, rows: &[Row], all: &[Compared]) -> Shown {
    let cell = |row: usize| {
        move |column: &'static Column| {
            let found = all.iter().find(|c| c.row == row && c.column.name == column.name);
            match found.and_then(|c| c.deviation) {
                Some(d) => format!("{}: {} {}", short(d.ours.mean), d.text(), d.verdict(APART)),
                None => "–".to_owned(),
            }
        }
    };
    let line = |(index, row): (usize, &Row)| {
        std::iter::once(row.label()).chain(of.columns().iter().map(cell(index))).collect::<Vec<String>>()
    };
    let lines = rows.iter().enumerate().filter(|(_, row)| row.table == of).map(line);
    let head = std::iter::once("row").chain(of.columns().iter().map(|c| c.name));
    table(
        format!("{}.csv", of.name()),
        "ours: deviation from ns-2 in %, ± 95 % (standard deviations), verdict",
        head,
        lines,
    )
}

/// The abscissae of the charts.
const PLACES: [Abscissa; 4] = [
    Abscissa::log("p", "loss at random", ""),
    Abscissa::log("rtt_s", "round trip by propagation", "s"),
    Abscissa::log("buffer_pkts", "buffer", "packets"),
    Abscissa::log("flows", "flows", ""),
];

/// The deviations of the rates over a place; none if all rows have one place.
fn chart(e: &Experiment, x: &Abscissa, rows: &[Row], all: &[Compared]) -> Option<Chart> {
    let at = |row: &Row| row.places().iter().find(|(key, _)| *key == x.key).map(|(_, at)| *at).filter(|at| *at > 0.0);
    let mut lines: BTreeMap<String, Vec<(f64, Deviation)>> = BTreeMap::new();
    for c in all.iter().filter(|c| c.column.kind == Kind::Rate) {
        if let (Some(at), Some(d)) = (at(&rows[c.row]), c.deviation) {
            lines.entry(format!("{} {}", rows[c.row].protocol(c.column), c.column.name)).or_default().push((at, d));
        }
    }
    let places = || lines.values().flatten().map(|(x, _)| *x);
    if places().fold(f64::INFINITY, f64::min) == places().fold(f64::NEG_INFINITY, f64::max) || lines.is_empty() {
        return None;
    }
    let far = lines.values().flatten().max_by(|a, b| a.1.relative.mean.abs().total_cmp(&b.1.relative.mean.abs()))?;
    let title = format!("Rates against {}: farthest from ns-2 is {:+.1} %", x.label, 100.0 * far.1.relative.mean);
    let chart = Chart::new(title, x.axis(), Axis::new("deviation", "%")).caption(format!("{}; 95 % intervals", e.file));
    let series = lines.into_iter().map(|(name, mut points)| {
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let percent = |f: fn(&Estimate) -> f64| points.iter().map(|(_, d)| 100.0 * f(&d.relative)).collect();
        let x = points.iter().map(|(x, _)| *x).collect();
        let line = Series::sweep(name.clone(), name, x, percent(|e| e.mean));
        Series { style: Style::Points, ..line.interval(percent(Estimate::low), percent(Estimate::high)) }
    });
    Some(series.fold(chart, Chart::series))
}

#[cfg(test)]
mod tests;
