//! The place of a chart: its title, its sum in words and its numbers. `page.js` draws the rest.

use super::text::{caption, esc, number};
use crate::page::{Chart, Series};
use std::fmt::Write as _;

/// Up to this many points the numbers of a chart stand in the page itself; longer tables are built when opened.
const ROWS_IN_PAGE: usize = 80;

pub(super) fn write(out: &mut String, id: &str, chart: &Chart) {
    let _ = write!(
        out,
        "<figure class=\"chart\" data-chart=\"{id}\">\n<h3>{}</h3>\n<div class=\"legend\"></div>\n\
         <div class=\"plot\" role=\"img\" aria-label=\"{}\"></div>\n",
        esc(&chart.title),
        esc(&format!("{}. {}", chart.title, summary(chart).join(" "))),
    );
    caption(out, &chart.caption);
    out.push_str("<details><summary>Numbers</summary>\n<ul class=\"summary\">");
    for line in summary(chart) {
        let _ = write!(out, "<li>{}</li>", esc(&line));
    }
    out.push_str("</ul>\n");
    let points = chart.series.iter().map(|s| s.x.len()).max().unwrap_or(0);
    if points > ROWS_IN_PAGE {
        out.push_str("<div class=\"scroll numbers\" data-lazy></div>");
    } else {
        out.push_str("<div class=\"scroll numbers\">");
        numbers(out, chart);
        out.push_str("</div>");
    }
    out.push_str("</details>\n</figure>\n");
}

/// The chart in words: one line per series or lane.
fn summary(chart: &Chart) -> Vec<String> {
    let unit = match chart.y.unit.as_str() {
        "" => String::new(),
        unit => format!(" {unit}"),
    };
    let mut lines: Vec<String> = chart
        .series
        .iter()
        .map(|s| {
            let values = || s.y.iter().copied().filter(|v| v.is_finite());
            let n = values().count();
            if n == 0 {
                return format!("{}: no values.", s.name);
            }
            let (low, high) = values().fold((f64::MAX, f64::MIN), |(l, h), v| (l.min(v), h.max(v)));
            let mean = values().sum::<f64>() / n as f64;
            format!(
                "{}: {n} points, from {} to {}{unit}, mean of the points {}.",
                s.name,
                number(low),
                number(high),
                number(mean)
            )
        })
        .collect();
    for lane in &chart.lanes {
        let mut sums: Vec<(&str, f64, usize)> = Vec::new();
        for span in lane.spans.iter().filter(|s| s.to >= s.from) {
            match sums.iter_mut().find(|(label, ..)| *label == span.label) {
                Some(sum) => (sum.1, sum.2) = (sum.1 + span.to - span.from, sum.2 + 1),
                None => sums.push((&span.label, span.to - span.from, 1)),
            }
        }
        let parts = sums.iter().map(|(label, total, n)| format!("{label} {} {} ({n}×)", number(*total), chart.x.unit));
        lines.push(format!("{}: {}.", lane.name, parts.collect::<Vec<_>>().join(", ")));
    }
    for band in &chart.bands {
        lines.push(format!("{}: {} to {} {}.", band.label, number(band.from), number(band.to), chart.x.unit));
    }
    lines
}

/// The chart's points as a table: one row per abscissa, one column per series.
fn numbers(out: &mut String, chart: &Chart) {
    let mut xs: Vec<f64> = chart.series.iter().flat_map(|s| s.x.iter().copied()).filter(|x| x.is_finite()).collect();
    xs.sort_by(f64::total_cmp);
    xs.dedup();
    if xs.is_empty() {
        return;
    }
    let _ = write!(out, "<table><thead><tr><th class=\"num\">{}</th>", esc(&with_unit(&chart.x.label, &chart.x.unit)));
    for s in &chart.series {
        let _ = write!(out, "<th class=\"num\">{}</th>", esc(&with_unit(&s.name, &chart.y.unit)));
    }
    out.push_str("</tr></thead><tbody>");
    for x in xs {
        let _ = write!(out, "<tr><th class=\"num\">{}</th>", number(x));
        for s in &chart.series {
            let _ = write!(out, "<td class=\"num\">{}</td>", cell(s, x));
        }
        out.push_str("</tr>");
    }
    out.push_str("</tbody></table>");
}

fn cell(s: &Series, x: f64) -> String {
    let Some((i, y)) = s.x.iter().position(|v| *v == x).and_then(|i| Some((i, *s.y.get(i)?))) else {
        return String::new();
    };
    match (s.lo.get(i), s.hi.get(i)) {
        (Some(lo), Some(hi)) if lo.is_finite() && hi.is_finite() => {
            format!("{} <span class=\"ci\">{} … {}</span>", number(y), number(*lo), number(*hi))
        }
        _ => number(y),
    }
}

fn with_unit(label: &str, unit: &str) -> String {
    if unit.is_empty() { label.to_owned() } else { format!("{label} ({unit})") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::{Axis, Lane, Span};

    #[test]
    fn a_timeline_is_summed_up_in_words() {
        let span = |from, to, label: &str| Span { from, to, label: label.into() };
        let lane = Lane {
            name: "RCS".into(),
            colour: "rcs".into(),
            spans: vec![span(0.0, 2.0, "Steady"), span(2.0, 3.0, "Backoff"), span(3.0, 7.0, "Steady")],
        };
        let chart = Chart::new("states", Axis::new("time", "s"), Axis::default()).lane(lane);
        assert_eq!(summary(&chart), ["RCS: Steady 6 s (2×), Backoff 1 s (1×)."]);
    }
}
