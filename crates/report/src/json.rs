//! The charts' data as compact JSON, safe inside a `<script>` element.
//!
//! By hand rather than through serde: numbers are cut to seven significant digits (a chart shows four), and
//! whatever is not finite becomes `null`, which the drawing takes for a gap.

use crate::page::{Axis, BandKind, Chart, Page, Style};
use crate::palette;
use std::fmt::Write as _;

/// `{"colours": {key: {...}}, "charts": {id: {...}}}` for the whole page.
pub(super) fn data(page: &Page) -> String {
    let mut out = String::from("{\"colours\":{");
    let looks = palette::assign(keys(page));
    list(&mut out, looks.iter(), |out, (key, look)| {
        string(out, key);
        out.push_str(":{\"light\":");
        string(out, look.light);
        out.push_str(",\"dark\":");
        string(out, look.dark);
        let _ = write!(out, ",\"dash\":{:?},\"mark\":", look.dash);
        string(out, look.mark);
        out.push('}');
    });
    out.push_str("},\"charts\":{");
    let charts = page
        .sections
        .iter()
        .enumerate()
        .flat_map(|(s, sec)| sec.charts.iter().enumerate().map(move |(c, chart)| (s, c, sec.sync, chart)));
    list(&mut out, charts, |out, (s, c, sync, chart)| {
        string(out, &chart_id(s, c));
        out.push(':');
        write_chart(out, chart, sync.then_some(s));
    });
    out.push_str("}}");
    out
}

/// The id that ties a chart's place in the page to its data.
pub(super) fn chart_id(section: usize, chart: usize) -> String {
    format!("c{section}-{chart}")
}

/// Colour keys in order of appearance.
pub(super) fn keys(page: &Page) -> impl Iterator<Item = &str> {
    page.sections.iter().flat_map(|s| {
        let bars = s.bars.iter().flat_map(|b| b.rows.iter().map(|r| r.colour.as_str()));
        let owners = s.slot_maps.iter().flat_map(|m| m.owners.iter().map(|o| o.colour.as_str()));
        let series = s.charts.iter().flat_map(|c| c.series.iter().map(|s| s.colour.as_str()));
        let lanes = s.charts.iter().flat_map(|c| c.lanes.iter().map(|l| l.colour.as_str()));
        let images = s.images.iter().map(|i| i.colour.as_str());
        bars.chain(owners).chain(series).chain(lanes).chain(images).filter(|k| !k.is_empty())
    })
}

fn write_chart(out: &mut String, chart: &Chart, sync: Option<usize>) {
    out.push_str("{\"title\":");
    string(out, &chart.title);
    if let Some(s) = sync {
        let _ = write!(out, ",\"sync\":\"s{s}\"");
    }
    if chart.height > 0 {
        let _ = write!(out, ",\"height\":{}", chart.height);
    }
    for (name, axis) in [("x", &chart.x), ("y", &chart.y)] {
        let _ = write!(out, ",\"{name}\":");
        write_axis(out, axis);
    }
    out.push_str(",\"series\":[");
    list(out, chart.series.iter(), |out, s| {
        out.push_str("{\"name\":");
        string(out, &s.name);
        out.push_str(",\"key\":");
        string(out, &s.colour);
        let style = match s.style {
            Style::Line => "line",
            Style::Stepped => "stepped",
            Style::LinePoints => "linepoints",
            Style::Points => "points",
        };
        let _ = write!(out, ",\"style\":\"{style}\"");
        for (name, on) in [("reference", s.reference), ("hidden", s.hidden)] {
            if on {
                let _ = write!(out, ",\"{name}\":true");
            }
        }
        // All columns as long as the shortest: a caller's slip must not shift one against another.
        let n = s.x.len().min(s.y.len());
        for (name, values) in [("x", &s.x), ("y", &s.y), ("lo", &s.lo), ("hi", &s.hi)] {
            if values.len() >= n && !(values.is_empty() && name.len() == 2) {
                let _ = write!(out, ",\"{name}\":[");
                list(out, values[..n].iter(), |out, v| number(out, *v));
                out.push(']');
            }
        }
        out.push('}');
    });
    out.push_str("],\"bands\":[");
    list(out, chart.bands.iter().filter(|b| b.from.is_finite() && b.to.is_finite()), |out, b| {
        let kind = match b.kind {
            BandKind::Note => "note",
            BandKind::Outage => "outage",
            BandKind::State => "state",
        };
        let _ = write!(out, "{{\"kind\":\"{kind}\",\"label\":");
        string(out, &b.label);
        span(out, b.from, b.to);
        out.push('}');
    });
    out.push_str("],\"lanes\":[");
    list(out, chart.lanes.iter(), |out, lane| {
        out.push_str("{\"name\":");
        string(out, &lane.name);
        out.push_str(",\"key\":");
        string(out, &lane.colour);
        out.push_str(",\"spans\":[");
        list(out, lane.spans.iter().filter(|s| s.from.is_finite() && s.to.is_finite()), |out, s| {
            out.push_str("{\"label\":");
            string(out, &s.label);
            span(out, s.from, s.to);
            out.push('}');
        });
        out.push_str("]}");
    });
    out.push_str("]}");
}

fn span(out: &mut String, from: f64, to: f64) {
    out.push_str(",\"from\":");
    number(out, from);
    out.push_str(",\"to\":");
    number(out, to);
}

fn write_axis(out: &mut String, axis: &Axis) {
    out.push_str("{\"label\":");
    string(out, &axis.label);
    out.push_str(",\"unit\":");
    string(out, &axis.unit);
    if axis.log {
        out.push_str(",\"log\":true");
    }
    for (name, end) in [("min", axis.min), ("max", axis.max)] {
        if let Some(v) = end.filter(|v| v.is_finite()) {
            let _ = write!(out, ",\"{name}\":");
            number(out, v);
        }
    }
    out.push('}');
}

fn list<T>(out: &mut String, items: impl Iterator<Item = T>, mut each: impl FnMut(&mut String, T)) {
    for (i, item) in items.enumerate() {
        if i > 0 {
            out.push(',');
        }
        each(out, item);
    }
}

/// Seven significant digits, shortest form; `null` for what is not finite.
fn number(out: &mut String, v: f64) {
    if !v.is_finite() {
        out.push_str("null");
        return;
    }
    // Through the decimal form, so that the digits cut are decimal ones; "0" loses a minus sign on the way.
    let cut: f64 = format!("{v:.6e}").parse().unwrap_or(v);
    let plain = format!("{}", if cut == 0.0 { 0.0 } else { cut });
    let short = format!("{cut:e}");
    out.push_str(if short.len() < plain.len() { &short } else { &plain });
}

/// A JSON string in which `<`, `>`, `&` and the line separators are escaped: neither `</script>` nor `<!--`
/// can arise, and the text is valid JavaScript as well.
fn string(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c if (c as u32) < 0x20 => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Section, Series};

    fn num(v: f64) -> String {
        let mut s = String::new();
        number(&mut s, v);
        s
    }

    #[test]
    fn numbers_keep_seven_digits_and_are_never_nan() {
        assert_eq!(num(1.0 / 3.0), "0.3333333");
        assert_eq!(num(1_234_567.89), "1234568");
        assert_eq!(num(-0.0), "0");
        assert_eq!(num(1e-9), "1e-9");
        for v in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(num(v), "null");
        }
    }

    #[test]
    fn a_closing_script_tag_in_a_name_cannot_end_the_data() {
        let mut s = String::new();
        string(&mut s, "</script><!-- \"\\\u{7}");
        assert_eq!(s, "\"\\u003c/script\\u003e\\u003c!-- \\\"\\\\\\u0007\"");
    }

    #[test]
    fn a_page_written_and_read_again_is_the_same_page() {
        let series = Series::sweep("a", "rcs", vec![1.0, 2.0], vec![f64::NAN, 5.0]);
        let page = Page::new("t").section(Section::new("s", "s").chart(Chart::default().series(series)));
        let again: Page = serde_json::from_str(&serde_json::to_string(&page).unwrap()).unwrap();
        assert_eq!(again.to_html(), page.to_html());
    }

    #[test]
    fn columns_of_unequal_length_are_cut_to_the_shortest() {
        let series =
            Series::line("a", "rcs", vec![1.0, 2.0, 3.0], vec![4.0, 5.0]).interval(vec![1.0], vec![9.0, 9.0, 9.0]);
        let page = Page::default().section(Section::new("s", "s").chart(Chart::default().series(series)));
        let json = data(&page);
        assert!(json.contains("\"x\":[1,2],\"y\":[4,5],\"hi\":[9,9]"), "{json}");
        assert!(!json.contains("\"lo\""), "{json}");
    }
}
