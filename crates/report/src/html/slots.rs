//! The picture of a frame: one block for each stretch of slots that has one owner, without a script.

use super::text::{caption, colour_style, esc};
use crate::page::SlotMap;
use crate::palette;
use std::fmt::Write as _;
use std::ops::Range;

pub(super) fn write(out: &mut String, map: &SlotMap, looks: &[(&str, palette::Colour)]) {
    let _ = writeln!(out, "<figure class=\"slot-map\">\n<h3>{}</h3>\n<ul class=\"slot-legend\">", esc(&map.title));
    for owner in &map.owners {
        let colour = colour_style(looks, &owner.colour);
        let _ = writeln!(out, "<li><span class=\"own\"{colour}>{}</span>{}</li>", esc(&owner.label), esc(&owner.name));
    }
    out.push_str(
        "<li><span class=\"own none\"></span>nobody’s</li></ul>\n<div class=\"scroll\"><div class=\"slot-rows\">\n",
    );
    let columns = map.rows.iter().map(|r| r.slots.len()).max().unwrap_or(0).max(1);
    let frames = if map.frame == 0 { 1.0 } else { columns as f64 / map.frame as f64 };
    for row in &map.rows {
        let name = esc(&row.name);
        let class = if row.name.is_empty() { "" } else { " first" };
        let _ = write!(
            out,
            "<div class=\"slot-row{class}\"><span class=\"slot-name\">{name}</span>\
             <div class=\"slots\" style=\"--frames:{frames}\" role=\"img\" aria-label=\"{}\">",
            esc(&spoken(map, &row.slots))
        );
        for (owner, run) in runs(&row.slots) {
            let width = 100.0 * run.len() as f64 / columns as f64;
            let Some(owner) = owner.and_then(|o| map.owners.get(o)) else {
                let _ = write!(out, "<span class=\"own none\" style=\"width:{width:.4}%\"></span>");
                continue;
            };
            let colour = match looks.iter().position(|(k, _)| *k == owner.colour) {
                Some(i) => format!("--c:var(--k{i});"),
                None => String::new(),
            };
            // A label of n digits needs about so many slots of a multi-frame of 144 on a page of a thousand pixels.
            let room = 1000.0 * run.len() as f64 / columns as f64 >= 3.0 + 6.0 * owner.label.chars().count() as f64;
            let _ = write!(
                out,
                "<span class=\"own\" style=\"{colour}width:{width:.4}%\" title=\"{}: {}\">{}</span>",
                esc(&owner.name),
                esc(&slots_of(&run)),
                if room { esc(&owner.label) } else { String::new() }
            );
        }
        out.push_str("</div></div>\n");
    }
    out.push_str("<div class=\"slot-row\"><span></span><div class=\"slot-ticks\">");
    for quarter in 0..=4 {
        let _ = write!(out, "<span>{}</span>", columns * quarter / 4);
    }
    let _ = writeln!(
        out,
        "</div></div>\n<div class=\"slot-row\"><span></span><div class=\"slot-axis\">{}</div></div>\n</div></div>",
        esc(&map.axis)
    );
    caption(out, &map.caption);
    out.push_str("</figure>\n");
}

/// Stretches of slots that have one owner.
fn runs(slots: &[Option<usize>]) -> Vec<(Option<usize>, Range<usize>)> {
    let mut runs: Vec<(Option<usize>, Range<usize>)> = Vec::new();
    for (i, owner) in slots.iter().enumerate() {
        match runs.last_mut() {
            Some((last, run)) if last == owner => run.end = i + 1,
            _ => runs.push((*owner, i..i + 1)),
        }
    }
    runs
}

fn slots_of(run: &Range<usize>) -> String {
    if run.len() == 1 { format!("slot {}", run.start) } else { format!("slots {} to {}", run.start, run.end - 1) }
}

/// The row in words.
fn spoken(map: &SlotMap, slots: &[Option<usize>]) -> String {
    let mut parts: Vec<String> = Vec::new();
    for (owner, run) in runs(slots) {
        if let Some(owner) = owner.and_then(|o| map.owners.get(o)) {
            parts.push(format!("{}: {}", owner.label, slots_of(&run)));
        }
    }
    if parts.is_empty() { "all slots are nobody’s".to_owned() } else { parts.join(", ") }
}

#[cfg(test)]
mod tests {
    use crate::page::{Page, Section, SlotMap, SlotOwner, SlotRow};

    #[test]
    fn a_row_has_a_block_for_each_stretch_and_what_is_nobodys_stays_visible() {
        let owner =
            |label: &str| SlotOwner { label: label.into(), name: format!("terminal {label}"), colour: label.into() };
        let map = SlotMap {
            title: "Terminal 1 has half of it".into(),
            frame: 2,
            owners: vec![owner("1"), owner("2 <b>")],
            rows: vec![SlotRow { name: "0 s".into(), slots: vec![Some(0), Some(0), None, Some(1)] }],
            ..SlotMap::default()
        };
        let html = Page::new("t").section(Section::new("s", "S").slot_map(map)).to_html();
        let row = html.split("class=\"slots\"").nth(1).unwrap().split("</div>").next().unwrap();
        assert!(row.contains("aria-label=\"1: slots 0 to 1, 2 &lt;b&gt;: slot 3\""), "{row}");
        assert!(row.contains("width:50.0000%\" title=\"terminal 1: slots 0 to 1\">1</span>"), "{row}");
        assert_eq!(row.matches("class=\"own none\" style=\"width:25.0000%\"").count(), 1);
        assert_eq!(row.matches("<span").count(), 3);
        assert!(!html.contains("<b>"));
    }
}
