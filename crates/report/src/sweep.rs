//! The page of a sweep: the best settings, response curves, heat maps, and the points that came to nothing.

use crate::page::{Axis as Drawn, Chart, HeatMap, HeatRow, Page, Section, Series, Style, Table};
use fairpace_lab::stats::Estimate;
use fairpace_lab::sweep::{Axis, Design, Failed, Metric, Plan, Ranked, Sweep, SweepError, again, metrics};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

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

/// The folder of the failed points' scenarios, in that of a sweep.
pub const FAILED: &str = "failed";
/// The list of them.
pub const FAILED_LIST: &str = "failed.csv";

/// The files of the points that came to nothing, by their names in the sweep's `folder`: a scenario of each, and last a list with the
/// commands that repeat them. None if no point has failed.
///
/// # Errors
/// A point has no scenario any more: a recording is no longer what it was.
pub fn failures(sweep: &Sweep, folder: &Path) -> Result<Vec<(PathBuf, String)>, SweepError> {
    let (plan, failed) = (sweep.plan(), sweep.failed());
    let mut files = Vec::new();
    let mut list = String::from("point,settings,seed,reason,command\n");
    let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
    for f in &failed {
        let id = &plan.points()[f.point].id;
        let (settings, reason) = (quoted(&plan.label(f.point)), quoted(&f.reason));
        list.push_str(&format!("{id},{settings},{},{reason},{}\n", f.seed, quoted(&repeat(plan, folder, f))));
        files.push((failed_file(id), plan.scenario_apart(f.point)?.to_toml()));
    }
    if !failed.is_empty() {
        files.push((FAILED_LIST.into(), list));
    }
    Ok(files)
}

fn failed_file(id: &str) -> PathBuf {
    Path::new(FAILED).join(format!("{id}.toml"))
}

/// The command that repeats a failed point, to be copied to wherever a shell is.
fn repeat(plan: &Plan, folder: &Path, failed: &Failed) -> String {
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    again(plan, &folder.join(failed_file(&plan.points()[failed.point].id)), failed.seed)
}

/// The page. `metric` is the one by which settings are ranked; `folder` is where the sweep lies, for the commands that repeat a point.
pub fn page(sweep: &Sweep, metric: &Metric, folder: &Path) -> Page {
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
            "Points that came to nothing: {}. They are in no number here, and are listed at the end.",
            failed.len()
        ));
    }
    let wide = sweep.too_wide().len();
    if wide > 0 {
        page = page.notice(format!(
            "With all the seeds that a point may have, the interval of {wide} of {points} points is wider than was asked for."
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
        let row = |f: &Failed| {
            let command = format!("`{}`", repeat(plan, folder, f));
            vec![plan.label(f.point), f.seed.to_string(), f.reason.clone(), command]
        };
        page = page.section(Section::new("failed", "Points that came to nothing").table(Table {
            title: format!("Failed points: {}", failed.len()),
            caption: format!("at most {MOST_FAILED} are listed; `{FAILED_LIST}` has all"),
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
        let ranked = m.rank(sweep);
        let first = ranked.first()?;
        let is_same = ranked.len() > 1 && ranked.iter().all(|r| r.estimate.mean == first.estimate.mean);
        let setting = |value: &String| if is_same { "any".to_owned() } else { value.clone() };
        let mut row = vec![title(&m)];
        row.extend(plan.points()[first.point].values.iter().map(setting));
        row.push(text(&m, &first.estimate));
        Some(row)
    });
    let head =
        ["by".to_owned()].into_iter().chain(plan.axes().iter().map(|a| a.field.clone())).chain(["best".to_owned()]);
    section.table(Table {
        title: "The best by other metrics".to_owned(),
        caption:
            "each by itself: less of a loss or a delay is better, more of anything else; `any`: the same at all points"
                .to_owned(),
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
    // A number says nothing without its field; a word, such as a controller, does.
    let named = |axis: &Axis, value: &str| match axis.field.rsplit('.').next() {
        Some(field) if axis.is_numeric() => format!("{field} {value}"),
        _ => value.to_owned(),
    };
    let key = |by: &[usize], point: usize| -> String {
        let of = |i: &usize| named(&plan.axes()[*i], &plan.points()[point].values[*i]);
        by.iter().map(of).collect::<Vec<_>>().join(", ")
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
    // Maps of several settings are read beside each other.
    let all = (0..plan.points().len()).filter_map(|p| sweep.estimate(p, metric)).map(|e| scaled(metric, &e).mean);
    let ends = all.fold([f64::INFINITY, f64::NEG_INFINITY], |[a, b], m| [a.min(m), b.max(m)]);
    let scale = (keys.len() > 1 && ends[0] <= ends[1]).then_some(ends);
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
            caption: format!(
                "means over the seeds{over}; the best has a frame{}",
                if scale.is_some() { "; the same tints in all maps here" } else { "" }
            ),
            x: plan.axes()[x].field.clone(),
            y: plan.axes()[y].field.clone(),
            columns: values(x).to_vec(),
            rows: rows.collect(),
            lower_is_better: metric.lower_is_better(),
            scale,
        });
    }
    Some(section)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairpace_lab::sweep::{Batch, GROUP_COLUMNS, Plan, RunNumbers, SeedRule, Spec, World};
    use fairpace_scenario::Scenario;

    const TEXT: &str = "[path]\nrate = \"1 Mbit/s\"\nrtt = \"50 ms\"\nloss = { kind = \"random\", p = 0.1 }\n\
                        [[flows]]\nname = \"video\"\ncontroller = \"rap\"\n";

    /// A sweep with two seeds of each point; goodput and throughput in kbit/s are the function's, one more with the second seed. A
    /// quarter is lost at all points.
    fn sweep(vary: &[&str], kbps: impl Fn(&[String]) -> Option<f64>) -> Sweep {
        let seeds = SeedRule { seeds: 2, batch: 2, narrow: None };
        let spec = Spec { vary: vary.iter().map(|v| (*v).to_owned()).collect(), seeds, ..Spec::default() };
        let scenario = Scenario::parse(TEXT, "base.toml").unwrap();
        let mut sweep = Sweep::new(Plan::new(&scenario, &spec, World::Sim, "1").unwrap());
        while let Some(id) = sweep.ready() {
            let task = sweep.plan().task(&id).unwrap();
            let mut batch = Batch::lost(&task, "smoke");
            let values: Vec<String> = task.settings.iter().map(|(_, v)| v.clone()).collect();
            if let Some(kbps) = kbps(&values) {
                let run = |seed: u64| {
                    let number = |name: &str| match name {
                        "goodput_bps" | "throughput_bps" => Some((kbps + (seed - 1) as f64) * 1e3),
                        "loss_ratio" => Some(0.25),
                        _ => None,
                    };
                    let numbers = GROUP_COLUMNS.iter().map(|(name, _)| number(name)).collect();
                    let groups = vec![("video".to_owned(), numbers)];
                    RunNumbers { seed, groups, links: Vec::new(), invalid: Vec::new() }
                };
                batch = Batch { failed: None, runs: vec![run(1), run(2)], ..batch };
            }
            assert!(sweep.take_batch(batch));
        }
        sweep
    }

    fn goodput(sweep: &Sweep) -> Metric {
        sweep.plan().metric_named("goodput_bps").unwrap()
    }

    #[test]
    fn each_cell_of_a_heat_map_is_the_mean_of_its_own_point() {
        let loss = |v: &[String]| if v[0] == "0.1" { 100.0 } else { 200.0 };
        let kbps = |v: &[String]| Some(loss(v) + if v[1] == "1 Mbit/s" { 1.0 } else { 2.0 });
        let found = sweep(&["path.loss.p=0.1,0.2", "path.rate=1 Mbit/s,2 Mbit/s"], kbps);
        let page = page(&found, &goodput(&found), Path::new("x"));
        let map = &page.sections.iter().find(|s| s.id == "map").unwrap().heat_maps[0];
        assert_eq!((map.x.as_str(), map.y.as_str()), ("path.loss.p", "path.rate"));
        assert_eq!(map.columns, ["0.1", "0.2"]);
        // Half of one more, by the second seed.
        let rows: Vec<(&str, &[f64])> = map.rows.iter().map(|r| (r.name.as_str(), &r.values[..])).collect();
        assert_eq!(rows, [("1 Mbit/s", &[101.5, 201.5][..]), ("2 Mbit/s", &[102.5, 202.5][..])]);
        let best = &page.sections[0].tables[0].rows[0];
        assert_eq!(best[1..3], ["0.2", "2 Mbit/s"]);
        // t(1) 12.706 * 0.7071 / sqrt(2) = 6.353
        assert_eq!(best[3], "202.5 ± 6.4");
        // 202.5 - 201.5 in each seed: without spread, so told apart.
        assert!(
            page.sections[0].tables[0].rows[1][4].starts_with("-1.000 ± 0"),
            "{:?}",
            page.sections[0].tables[0].rows[1]
        );
        let chart = &page.sections.iter().find(|s| s.id == "over-2").unwrap().charts[0];
        assert_eq!(chart.x.unit, "kbit/s");
        assert_eq!((&chart.series[0].x[..], &chart.series[0].y[..]), (&[1e3, 2e3][..], &[101.5, 102.5][..]));
    }

    #[test]
    fn many_settings_of_the_other_axes_are_averaged_from_the_least_to_the_greatest() {
        let kbps = |v: &[String]| v[1].trim_end_matches(" s").parse::<f64>().ok();
        let found = sweep(&["path.loss.p=0.1,0.2", "path.rtt=1 s..9 s/9"], kbps);
        let chart = response(&found, &goodput(&found), 0).unwrap();
        let line = &chart.series[0];
        assert_eq!(
            (chart.series.len(), &line.y[..], &line.lo[..], &line.hi[..]),
            (1, &[5.5, 5.5][..], &[1.5, 1.5][..], &[9.5, 9.5][..])
        );
        assert!(chart.caption.contains("means over all other axes"));
    }

    #[test]
    fn no_setting_is_named_best_by_a_metric_that_is_the_same_at_all_points() {
        let found = sweep(&["path.loss.p=0.1,0.2"], |v| v[0].parse().ok());
        let page = page(&found, &goodput(&found), Path::new("x"));
        let others: Vec<[&str; 2]> = page.sections[0].tables[1].rows.iter().map(|r| [&*r[0], &*r[1]]).collect();
        assert_eq!(others, [["video: throughput (kbit/s)", "0.2"], ["video: loss ratio (%)", "any"]]);
    }

    #[test]
    fn a_failed_point_is_listed_with_its_command_and_in_no_number() {
        let found = sweep(&["path.loss.p=0.1,0.2"], |v| (v[0] == "0.1").then_some(5.0));
        let page = page(&found, &goodput(&found), Path::new("/results/x"));
        let table = &page.sections.iter().find(|s| s.id == "failed").unwrap().tables[0];
        assert_eq!(table.rows[0][..3], ["path.loss.p=0.2", "1", "smoke"]);
        assert!(
            table.rows[0][3].starts_with("`fairpace run /results/x/failed/")
                && table.rows[0][3].ends_with(".toml --seed 1`")
        );
        assert!(page.notices[0].starts_with("Points that came to nothing: 1."));
        assert_eq!(page.sections[0].tables[0].rows.len(), 1);
    }
}
