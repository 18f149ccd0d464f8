//! The heat map: a table whose cells are the darker the more is in them, each with its number, without a script.

use super::text::{caption, esc, number};
use crate::page::HeatMap;
use std::fmt::Write as _;

/// The strongest tint, in percent of the accent: text keeps a contrast of at least 4.5:1 on it in both themes.
const STRONGEST: f64 = 55.0;

pub(super) fn write(out: &mut String, map: &HeatMap) {
    let all = || map.rows.iter().flat_map(|r| r.values.iter().copied()).filter(|v| v.is_finite());
    let (least, most) = all().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(v), b.max(v)));
    let best = if map.lower_is_better { least } else { most };
    let [least, most] = map.scale.unwrap_or([least, most]);
    let _ = writeln!(
        out,
        "<figure class=\"heat\">\n<h3>{}</h3>\n<div class=\"scroll\"><table><thead><tr><th></th><th class=\"x\" colspan=\"{}\">{}</th></tr>\n<tr><th>{}</th>",
        esc(&map.title),
        map.columns.len().max(1),
        esc(&map.x),
        esc(&map.y)
    );
    for column in &map.columns {
        let _ = write!(out, "<th>{}</th>", esc(column));
    }
    out.push_str("</tr></thead><tbody>\n");
    for row in &map.rows {
        let _ = write!(out, "<tr><th>{}</th>", esc(&row.name));
        for value in &row.values {
            if !value.is_finite() {
                out.push_str("<td class=\"none\">–</td>");
                continue;
            }
            let share = if most > least { ((value - least) / (most - least)).clamp(0.0, 1.0) } else { 0.5 };
            let class = if *value == best { " class=\"best\"" } else { "" };
            let _ = write!(out, "<td{class} style=\"--t:{:.1}%\">{}</td>", share * STRONGEST, esc(&number(*value)));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
    caption(out, &map.caption);
    out.push_str("</figure>\n");
}

#[cfg(test)]
mod tests {
    use crate::page::{HeatMap, HeatRow, Page, Section};

    #[test]
    fn the_most_has_the_strongest_tint_every_cell_its_number_and_a_hole_stays_one() {
        let row = |name: &str, values: &[f64]| HeatRow { name: name.into(), values: values.to_vec() };
        let map = HeatMap {
            title: "Goodput <b>".into(),
            columns: vec!["1".into(), "2".into()],
            rows: vec![row("a", &[10.0, 30.0]), row("b", &[f64::NAN, 20.0])],
            ..HeatMap::default()
        };
        let html = Page::new("t").section(Section::new("s", "S").heat_map(map)).to_html();
        let cells = html.split("<figure class=\"heat\">").nth(1).unwrap();
        assert!(
            cells.contains("<td style=\"--t:0.0%\">10</td><td class=\"best\" style=\"--t:55.0%\">30</td>"),
            "{cells}"
        );
        assert!(cells.contains("<td class=\"none\">–</td><td style=\"--t:27.5%\">20</td>"));
        assert!(!html.contains("<b>"));
        // On a scale that several maps share the frame stays with the best of each.
        let map = HeatMap { rows: vec![row("a", &[10.0, 20.0])], scale: Some([0.0, 40.0]), ..HeatMap::default() };
        let html = Page::new("t").section(Section::new("s", "S").heat_map(map)).to_html();
        assert!(html.contains("<td style=\"--t:13.8%\">10</td><td class=\"best\" style=\"--t:27.5%\">20</td>"));
    }
}
