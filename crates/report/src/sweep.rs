//! The page of a sweep: the best settings, response curves, heat maps, and the points that came to nothing.

use crate::page::{Axis as Drawn, Chart, HeatMap, HeatRow, Page, Section, Series, Style, Table};
use fairpace_lab::stats::Estimate;
use fairpace_lab::sweep::{Axis, Design, Metric, Ranked, Sweep, metrics};
use std::collections::BTreeSet;

/// Rows of the table of best settings.
const BEST_ROWS: usize = 15;
/// Curves of a chart; more are averaged.
const MOST_CURVES: usize = 8;
/// Charts of one axis.
const MOST_CHARTS: usize = 8;
/// Places of an axis of a heat map.
const MOST_PLACES: usize = 40;
/// Heat maps of one metric.
const MOST_MAPS: usize = 6;
/// Failed points that are listed.
const MOST_FAILED: usize = 200;
/// The columns of each group that are drawn beside the metric in question.
const DRAWN: [&str; 4] = ["throughput_bps", "loss_ratio", "owd_p95_ms", "e2e_p95_ms"];

/// The look of a column: the quantity, the unit, and the factor to it.
pub fn shown(column: &str) -> (String, &'static str, f64) {
    let plain = |name: &str| name.replace('_', " ");
    if let Some(name) = column.strip_suffix("_bps") {
        (plain(name), "kbit/s", 1e-3)
    } else if let Some(name) = column.strip_suffix("_pps") {
        (plain(name), "pkt/s", 1.0)
    } else if let Some(name) = column.strip_suffix("_ms") {
        (plain(name).replace("owd", "one-way delay").replace("e2e", "end-to-end delay"), "ms", 1.0)
    } else if let Some(name) = column.strip_suffix("_packets") {
        (plain(name), "pkt", 1.0)
    } else if let Some(name) = column.strip_suffix("_bytes") {
        (plain(name), "B", 1.0)
    } else if ["loss_ratio", "overhead", "lost_in_send_buffer", "late", "outage", "utilization"].contains(&column) {
        (plain(column), "%", 100.0)
    } else {
        (plain(column), "", 1.0)
    }
}

/// The metric's name and unit for people: `video: goodput (kbit/s)`.
pub fn title(metric: &Metric) -> String {
    let (name, unit, _) = shown(metric.column);
    if unit.is_empty() { format!("{}: {name}", metric.of) } else { format!("{}: {name} ({unit})", metric.of) }
}

/// A metric's number for people, scaled to the unit of [`title`].
pub fn text(metric: &Metric, estimate: &Estimate) -> String {
    scaled(metric, estimate).text()
}

fn scaled(metric: &Metric, estimate: &Estimate) -> Estimate {
    let (_, _, scale) = shown(metric.column);
    Estimate { mean: estimate.mean * scale, ci95: estimate.ci95.map(|ci| ci.map(|x| x * scale)), ..*estimate }
}

/// The page. `metric` is the one by which settings are ranked; `folder` is where the sweep lies, for the commands that repeat a point.
pub fn page(sweep: &Sweep, metric: &Metric, folder: &str) -> Page {
    let plan = sweep.plan();
    let points = plan.points().len();
    let finished = (0..points).filter(|p| !sweep.runs(*p).is_empty()).count();
    let failed = sweep.failed();
    let ranked = metric.rank(sweep);
    let subtitle = match ranked.first() {
        Some(best) => {
            format!("{}: best {} with {}", title(metric), text(metric, &best.estimate), plan.label(best.point))
        }
        None => format!("no finished point has a `{}`", metric.name()),
    };
    let base = plan.base();
    let name = if base.title.is_empty() { base.name.clone() } else { base.title.clone() };
    let seeds: BTreeSet<usize> = (0..points).map(|p| sweep.runs(p).len()).filter(|n| *n > 0).collect();
    let seeds = match (seeds.first(), seeds.last()) {
        (Some(a), Some(b)) if a == b => a.to_string(),
        (Some(a), Some(b)) => format!("{a} to {b}"),
        _ => "0".to_owned(),
    };
    let mut page = Page::new(format!("Sweep of {name}"))
        .subtitle(subtitle)
        .meta("scenario", base.name.clone())
        .meta("world", plan.world().name())
        .meta("points", format!("{finished} of {points}"))
        .meta("seeds per point", seeds)
        .meta("program", plan.code());
    for axis in plan.axes() {
        page = page.meta(axis.field.clone(), range(axis));
    }
    if !sweep.is_complete() {
        page = page.notice(format!(
            "Not finished: {} of {points} points are missing. The same command goes on.",
            points - finished - failed.len()
        ));
    }
    if !failed.is_empty() {
        page = page.notice(format!(
            "{} points came to nothing and are in no number here; they are listed at the end.",
            failed.len()
        ));
    }
    let invalid = (0..points).filter(|p| sweep.runs(*p).iter().any(|r| !r.invalid.is_empty())).count();
    if invalid > 0 {
        page = page.notice(format!(
            "In {invalid} points the machine could not keep up with a run: their numbers are not to be trusted."
        ));
    }
    page = page.section(best(sweep, metric, &ranked));
    if let Some(section) = heat(sweep, metric) {
        page = page.section(section);
    }
    for section in responses(sweep, metric) {
        page = page.section(section);
    }
    if !failed.is_empty() {
        let row = |f: &fairpace_lab::sweep::Failed| {
            let id = &plan.points()[f.point].id;
            let world = if plan.world().name() == "emu" { " --world emu" } else { "" };
            let command = format!("`fairpace run {folder}/failed/{id}.toml --seed {}{world}`", f.seed);
            vec![plan.label(f.point), f.seed.to_string(), f.reason.clone(), command]
        };
        page = page.section(Section::new("failed", "Points that came to nothing").table(Table {
            title: format!("{} points", failed.len()),
            caption: format!("at most {MOST_FAILED} are listed; `failed.csv` has all"),
            head: ["settings", "seed", "reason", "again"].map(String::from).to_vec(),
            rows: failed.iter().take(MOST_FAILED).map(row).collect(),
        }));
    }
    page
}

fn range(axis: &Axis) -> String {
    match axis.values() {
        Some([first, .., last]) if axis.is_numeric() => {
            format!("{first} … {last}, {} values", axis.values().map_or(0, <[String]>::len))
        }
        Some(values) => values.join(", "),
        None => {
            let ends = [axis.at_end(0.0), axis.at_end(1.0)];
            format!("{} … {}", ends[0], ends[1])
        }
    }
}

fn best(sweep: &Sweep, metric: &Metric, ranked: &[Ranked]) -> Section {
    let plan = sweep.plan();
    let alike = ranked.iter().skip(1).filter(|r| !r.is_worse()).count();
    let mut section = Section::new("best", "Best settings");
    if ranked.len() > 1 {
        section = section.text(format!(
            "{alike} of the {} other points cannot be told from the best: the 95 % interval of the difference, seed by seed, has zero in it. \
             The best of many is also the luckiest of them, so its own number is a little too good.",
            ranked.len() - 1
        ));
    }
    let head = ["rank".to_owned()].into_iter().chain(plan.axes().iter().map(|a| a.field.clone()));
    let row = |(place, r): (usize, &Ranked)| {
        let mut row = vec![(place + 1).to_string()];
        row.extend(plan.points()[r.point].values.iter().cloned());
        row.push(text(metric, &r.estimate));
        row.push(match &r.to_best {
            None => "–".to_owned(),
            Some(d) => format!("{}{}", text(metric, d), if r.is_worse() { "" } else { " (not told apart)" }),
        });
        row.push(r.estimate.n.to_string());
        row
    };
    section = section.table(Table {
        title: title(metric),
        caption: format!("of {} points; means over the seeds with 95 % intervals", ranked.len()),
        head: head.chain([title(metric), "less the best".to_owned(), "seeds".to_owned()]).collect(),
        rows: ranked.iter().take(BEST_ROWS).enumerate().map(row).collect(),
    });
    let others = metrics(sweep)
        .into_iter()
        .filter(|m| DRAWN.contains(&m.column) || m.column == "jain_index" || m.column == "utilization");
    let rows = others.filter_map(|m| {
        let first = *m.rank(sweep).first()?;
        let mut row = vec![title(&m)];
        row.extend(plan.points()[first.point].values.iter().cloned());
        row.push(text(&m, &first.estimate));
        Some(row)
    });
    let head =
        ["by".to_owned()].into_iter().chain(plan.axes().iter().map(|a| a.field.clone())).chain(["best".to_owned()]);
    section.table(Table {
        title: "The best by other metrics".to_owned(),
        caption: "each by itself: less of a loss or a delay is better, more of anything else".to_owned(),
        head: head.collect(),
        rows: rows.collect(),
    })
}

/// The metrics that are drawn: the metric in question, and a few of each group.
fn drawn(sweep: &Sweep, metric: &Metric) -> Vec<Metric> {
    let others = metrics(sweep).into_iter().filter(|m| m != metric && DRAWN.contains(&m.column));
    [metric.clone()].into_iter().chain(others).take(MOST_CHARTS).collect()
}

/// The look of an axis: the field, the unit, and the factor to it.
fn abscissa(axis: &Axis) -> (Drawn, f64) {
    let (unit, scale) = match axis.unit().as_str() {
        "bit/s" => ("kbit/s".to_owned(), 1e-3),
        "s" => ("ms".to_owned(), 1e3),
        other => (other.to_owned(), 1.0),
    };
    let drawn = Drawn::new(axis.field.clone(), unit);
    (if axis.is_log() { drawn.log() } else { drawn }, scale)
}

fn responses(sweep: &Sweep, metric: &Metric) -> Vec<Section> {
    let plan = sweep.plan();
    let axes = plan.axes().iter().enumerate().filter(|(_, axis)| axis.is_numeric());
    let mut sections = Vec::new();
    for (place, axis) in axes {
        let mut section = Section::new(format!("over-{}", place + 1), format!("Over {}", axis.field));
        for metric in drawn(sweep, metric) {
            if let Some(chart) = response(sweep, &metric, place) {
                section = section.chart(chart);
            }
        }
        if !section.charts.is_empty() {
            sections.push(section);
        }
    }
    sections
}

/// One value of an axis and what was measured there.
struct Measured {
    x: f64,
    mean: f64,
    low: f64,
    high: f64,
}

/// A metric along one axis, a curve for each setting of the others if these are few; else a curve for each word of the first axis of
/// words, averaged over all other axes.
fn response(sweep: &Sweep, metric: &Metric, place: usize) -> Option<Chart> {
    let plan = sweep.plan();
    let axis = &plan.axes()[place];
    let (x_axis, x_scale) = abscissa(axis);
    let is_scattered = matches!(plan.spec().design, Design::Random { .. } | Design::LatinHypercube { .. });
    let words: Vec<usize> = (0..plan.axes().len()).filter(|i| *i != place && !plan.axes()[*i].is_numeric()).collect();
    let rest: Vec<usize> = (0..plan.axes().len()).filter(|i| *i != place).collect();
    let key = |by: &[usize], point: usize| -> String {
        by.iter().map(|i| plan.points()[point].values[*i].clone()).collect::<Vec<_>>().join(", ")
    };
    let all = 0..plan.points().len();
    let combinations: BTreeSet<String> = all.clone().map(|p| key(&rest, p)).collect();
    let is_averaged = !is_scattered && combinations.len() > MOST_CURVES;
    let by: Vec<usize> = match (is_scattered || is_averaged, words.first()) {
        (false, _) => rest,
        (true, Some(word)) => vec![*word],
        (true, None) => Vec::new(),
    };
    let mut curves: Vec<(String, Vec<Measured>)> = Vec::new();
    for point in all {
        let x = Axis::number(&plan.points()[point].values[place])? * x_scale;
        let Some(e) = sweep.estimate(point, metric).map(|e| scaled(metric, &e)) else { continue };
        let measured = Measured { x, mean: e.mean, low: e.low(), high: e.high() };
        let name = key(&by, point);
        match curves.iter_mut().find(|(n, _)| *n == name) {
            Some((_, curve)) => curve.push(measured),
            None => curves.push((name, vec![measured])),
        }
    }
    if curves.is_empty() {
        return None;
    }
    let (name, unit, _) = shown(metric.column);
    let mut chart = Chart::new(title(metric), x_axis, Drawn::new(name, unit));
    for (name, mut curve) in curves.into_iter().take(2 * MOST_CURVES) {
        curve.sort_by(|a, b| a.x.total_cmp(&b.x));
        if is_averaged {
            curve = averaged(curve);
        }
        let column = |of: fn(&Measured) -> f64| curve.iter().map(of).collect::<Vec<f64>>();
        let colour = name.split([',', ':']).next().unwrap_or("").to_owned();
        let shown = if name.is_empty() { metric.of.clone() } else { name.clone() };
        let colour = if crate::colour_of(&colour).is_some() { colour } else { shown.clone() };
        let series = Series::sweep(shown, colour, column(|m| m.x), column(|m| m.mean));
        let series = Series { style: if is_scattered { Style::Points } else { Style::LinePoints }, ..series };
        chart = chart.series(series.interval(column(|m| m.low), column(|m| m.high)));
    }
    let caption = match (is_averaged, is_scattered) {
        (true, _) => "means over all other axes; the bars go from the least to the greatest of the points there",
        (_, true) => "a mark for each point; means over the seeds with 95 % intervals",
        _ => "means over the seeds with 95 % intervals",
    };
    Some(chart.caption(format!("{}; {caption}", plan.base().name)))
}

/// One for each abscissa: the mean of those there, from the least to the greatest.
fn averaged(curve: Vec<Measured>) -> Vec<Measured> {
    let mut out: Vec<Measured> = Vec::new();
    for group in curve.chunk_by(|a, b| a.x == b.x) {
        let means = || group.iter().map(|m| m.mean);
        let mean = means().sum::<f64>() / group.len() as f64;
        let (low, high) = means().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), m| (a.min(m), b.max(m)));
        out.push(Measured { x: group[0].x, mean, low, high });
    }
    out
}

/// The metric over two axes of listed values: the first two that are numbers, or the first two of all. One map for each setting of the
/// others if these are few, else the mean over them.
fn heat(sweep: &Sweep, metric: &Metric) -> Option<Section> {
    let plan = sweep.plan();
    if plan.spec().design != Design::Grid {
        return None;
    }
    let fits = |axis: &Axis| axis.values().is_some_and(|v| (2..=MOST_PLACES).contains(&v.len()));
    let listed = |numeric: bool| {
        plan.axes().iter().enumerate().filter(move |(_, a)| fits(a) && a.is_numeric() == numeric).map(|(i, _)| i)
    };
    let chosen: Vec<usize> = listed(true).chain(listed(false)).take(2).collect();
    let [x, y] = chosen[..] else { return None };
    let others: Vec<usize> = (0..plan.axes().len()).filter(|i| *i != x && *i != y).collect();
    let key = |point: usize| -> String {
        others
            .iter()
            .map(|i| format!("{}={}", plan.axes()[*i].field, plan.points()[point].values[*i]))
            .collect::<Vec<_>>()
            .join(" ")
    };
    let mut keys: Vec<String> = Vec::new();
    for point in 0..plan.points().len() {
        let key = key(point);
        if !keys.contains(&key) {
            keys.push(key);
            if keys.len() > MOST_MAPS {
                break;
            }
        }
    }
    let is_averaged = keys.len() > MOST_MAPS;
    if is_averaged {
        keys = vec![String::new()];
    }
    let mut section = Section::new("map", format!("Over {} and {}", plan.axes()[x].field, plan.axes()[y].field));
    for wanted in keys {
        let mut cells: Vec<Vec<Vec<f64>>> = Vec::new();
        let values = |i: usize| plan.axes()[i].values().unwrap_or(&[]);
        cells.resize_with(values(y).len(), || vec![Vec::new(); values(x).len()]);
        for point in (0..plan.points().len()).filter(|p| is_averaged || key(*p) == wanted) {
            let at = |i: usize| values(i).iter().position(|v| *v == plan.points()[point].values[i]);
            let found = sweep.estimate(point, metric).map(|e| scaled(metric, &e).mean);
            if let (Some(row), Some(column), Some(mean)) = (at(y), at(x), found) {
                cells[row][column].push(mean);
            }
        }
        let mean = |of: &Vec<f64>| if of.is_empty() { f64::NAN } else { of.iter().sum::<f64>() / of.len() as f64 };
        let rows = cells
            .iter()
            .zip(values(y))
            .map(|(row, name)| HeatRow { name: name.clone(), values: row.iter().map(mean).collect() });
        let with = if wanted.is_empty() { String::new() } else { format!(", {wanted}") };
        let over = if is_averaged { ", and over all other axes" } else { "" };
        section = section.heat_map(HeatMap {
            title: format!("{}{with}", title(metric)),
            caption: format!("means over the seeds{over}; the best has a frame"),
            x: plan.axes()[x].field.clone(),
            y: plan.axes()[y].field.clone(),
            columns: values(x).to_vec(),
            rows: rows.collect(),
            lower_is_better: metric.lower_is_better(),
        });
    }
    Some(section)
}
