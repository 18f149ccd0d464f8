//! Tables of text.

use super::text::{caption, esc, prose};
use crate::page::Table;
use std::fmt::Write as _;

pub(super) fn write(out: &mut String, table: &Table, fold: bool) {
    out.push_str("<figure class=\"table\">\n");
    if !table.title.is_empty() {
        let _ = writeln!(out, "<h3>{}</h3>", esc(&table.title));
    }
    let numeric = |column: usize| {
        let mut cells = table.rows.iter().filter_map(|r| r.get(column)).filter(|c| !c.is_empty()).peekable();
        cells.peek().is_some() && cells.all(|c| looks_numeric(c))
    };
    let class: Vec<&str> = (0..table.head.len()).map(|i| if numeric(i) { " class=\"num\"" } else { "" }).collect();
    if fold {
        let _ = writeln!(out, "<details><summary>All {} rows</summary>", table.rows.len());
    }
    out.push_str("<div class=\"scroll\"><table><thead><tr>");
    for (i, head) in table.head.iter().enumerate() {
        let _ = write!(out, "<th{}>{}</th>", class[i], prose(head));
    }
    out.push_str("</tr></thead><tbody>\n");
    for row in &table.rows {
        out.push_str("<tr>");
        for (i, text) in row.iter().enumerate() {
            let tag = if i == 0 { "th" } else { "td" };
            let _ = write!(out, "<{tag}{}>{}</{tag}>", class.get(i).unwrap_or(&""), prose(text));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
    if fold {
        out.push_str("</details>\n");
    }
    caption(out, &table.caption);
    out.push_str("</figure>\n");
}

fn looks_numeric(text: &str) -> bool {
    let text = text.trim_start_matches(['−', '-', '+', '±', '<', '>', '~', ' ']);
    text.starts_with(|c: char| c.is_ascii_digit()) || matches!(text, "" | "–" | "—" | "n/a")
}
