//! Stacked bars, without a script.

use super::text::{caption, colour_style, esc, number, prose};
use crate::page::{BarRow, Bars};
use crate::palette;
use std::fmt::Write as _;

pub(super) fn write(out: &mut String, bars: &Bars, looks: &[(&str, palette::Colour)]) {
    let _ = writeln!(out, "<figure class=\"bars\">\n<h3>{}</h3>\n<ul class=\"parts\">", esc(&bars.title));
    for (i, part) in bars.parts.iter().enumerate() {
        let _ = writeln!(out, "<li><span class=\"part p{}\"></span>{}</li>", i % 5, esc(part));
    }
    out.push_str("</ul>\n");
    // One scale for all rows: a bar that is shorter has fewer.
    let sum = |row: &BarRow| row.values.iter().filter(|v| v.is_finite()).sum::<f64>();
    let longest = bars.rows.iter().map(sum).fold(0.0, f64::max);
    for row in &bars.rows {
        let named = bars.parts.iter().zip(&row.values).map(|(p, v)| format!("{p} {}", number(*v)));
        let spoken = format!("{}: {} {}", row.label, named.collect::<Vec<_>>().join(", "), bars.unit);
        let _ = write!(
            out,
            "<div class=\"bar-row\"{}><span class=\"bar-label\">{}</span><div class=\"bar\" role=\"img\" aria-label=\"{}\">",
            colour_style(looks, &row.colour),
            esc(&row.label),
            esc(&spoken)
        );
        for (i, value) in row.values.iter().enumerate().filter(|(_, v)| v.is_finite() && **v > 0.0) {
            let share = 100.0 * value / longest;
            // Below four percent of the width a number does not fit; it stands in the table.
            let text = if share >= 4.0 { number(*value) } else { String::new() };
            let _ = write!(out, "<span class=\"part p{}\" style=\"width:{share:.3}%\"><b>{text}</b></span>", i % 5);
        }
        out.push_str("</div>");
        if !row.note.is_empty() {
            let _ = write!(out, "<span class=\"bar-note\">{}</span>", prose(&row.note));
        }
        out.push_str("</div>\n");
    }
    caption(out, &bars.caption);
    out.push_str("<details><summary>Numbers</summary><div class=\"scroll\"><table><thead><tr><th></th>");
    for part in &bars.parts {
        let _ = write!(out, "<th class=\"num\">{} ({})</th>", esc(part), esc(&bars.unit));
    }
    out.push_str("</tr></thead><tbody>");
    for row in &bars.rows {
        let _ = write!(out, "<tr><th>{}</th>", esc(&row.label));
        for value in &row.values {
            let _ = write!(out, "<td class=\"num\">{}</td>", number(*value));
        }
        out.push_str("</tr>");
    }
    out.push_str("</tbody></table></div></details>\n</figure>\n");
}
