//! The frame of the page: everything that can be read without a script.
//!
//! Text, claims, bars, tables and pictures are plain HTML; `page.js` draws the charts into the places left
//! for them and fills the long data tables. Every piece of text from outside goes through `text::esc`.

mod bars;
mod chart;
mod heat;
mod slots;
mod table;
mod text;

use crate::page::{Claim, Image, Page, Section};
use crate::{base64, json, palette};
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;
use text::{colour_style, esc, number, prose};

/// uPlot 1.6.32, <https://github.com/leeoniya/uPlot>, MIT; the licence stands beside it.
const UPLOT_JS: &str = include_str!("vendor/uPlot.iife.min.js");
const UPLOT_CSS: &str = include_str!("vendor/uPlot.min.css");
const UPLOT_LICENSE: &str = include_str!("vendor/uPlot.LICENSE");
const PAGE_JS: &str = include_str!("page.js");
const PAGE_CSS: &str = include_str!("page.css");

impl Page {
    /// The page as one HTML file: scripts, styles, data and pictures included.
    pub fn to_html(&self) -> String {
        page(self)
    }
}

fn page(page: &Page) -> String {
    let looks = palette::assign(json::keys(page));
    let mut out = String::with_capacity(256 * 1024);
    // Only these two scripts may run, and nothing may be fetched: the page is safe to pass on.
    let policy = format!(
        "default-src 'none'; script-src '{}' '{}'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'",
        script_hash(UPLOT_JS),
        script_hash(PAGE_JS)
    );
    let _ = write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta name=\"generator\" content=\"Fairpace {}\">\n<link rel=\"icon\" href=\"data:,\">\n\
         <title>{}</title>\n<style>\n{UPLOT_CSS}\n{PAGE_CSS}\n{}</style>\n</head>\n<body>\n",
        env!("CARGO_PKG_VERSION"),
        esc(&page.title),
        colour_rules(&looks),
    );
    header(&mut out, page);
    out.push_str("<div class=\"layout\">\n");
    contents(&mut out, page);
    out.push_str("<main>\n");
    for (i, section) in page.sections.iter().enumerate() {
        write_section(&mut out, i, section, &looks);
    }
    let _ = write!(
        out,
        "</main>\n</div>\n<footer><p>Made by Fairpace {}. Charts: uPlot 1.6.32.</p>\
         <details><summary>Licence of uPlot</summary><pre>{}</pre></details></footer>\n\
         <script type=\"application/json\" id=\"data\">{}</script>\n\
         <script>{UPLOT_JS}</script>\n<script>{PAGE_JS}</script>\n</body>\n</html>\n",
        env!("CARGO_PKG_VERSION"),
        esc(UPLOT_LICENSE),
        json::data(page),
    );
    out
}

/// The source expression of the security policy for an inline script [CSP3 §6.7.2.2].
fn script_hash(script: &str) -> String {
    format!("sha256-{}", base64::encode(&Sha256::digest(script.as_bytes())))
}

/// One custom property per colour key, for both themes.
fn colour_rules(looks: &[(&str, palette::Colour)]) -> String {
    let rules = |pick: fn(&palette::Colour) -> &'static str| {
        looks.iter().enumerate().fold(String::new(), |mut css, (i, (_, look))| {
            let _ = write!(css, "--k{i}:{};", pick(look));
            css
        })
    };
    let (light, dark) = (rules(|c| c.light), rules(|c| c.dark));
    format!(
        ":root{{{light}}}\n@media (prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}}}}}\n\
         :root[data-theme=dark]{{{dark}}}\n"
    )
}

fn header(out: &mut String, page: &Page) {
    let _ = write!(
        out,
        "<header>\n<div class=\"brand\"><span>Fairpace report</span>\
         <button id=\"theme\" type=\"button\" hidden>Dark / light</button></div>\n<h1>{}</h1>\n",
        esc(&page.title)
    );
    if !page.subtitle.is_empty() {
        let _ = writeln!(out, "<p class=\"lede\">{}</p>", prose(&page.subtitle));
    }
    for notice in &page.notices {
        let _ = writeln!(out, "<p class=\"notice\" role=\"note\"><strong>Note</strong> {}</p>", prose(notice));
    }
    if !page.meta.is_empty() {
        out.push_str("<dl class=\"meta\">\n");
        for (name, value) in &page.meta {
            let _ = writeln!(out, "<div><dt>{}</dt><dd>{}</dd></div>", esc(name), prose(value));
        }
        out.push_str("</dl>\n");
    }
    out.push_str("</header>\n");
}

/// The list of sections, with how many claims hold and fail in each.
fn contents(out: &mut String, page: &Page) {
    if page.sections.len() < 2 {
        return;
    }
    out.push_str("<nav aria-label=\"Contents\"><ol>\n");
    for section in &page.sections {
        let _ = writeln!(
            out,
            "<li><a href=\"#{}\">{}</a>{}</li>",
            esc(&section.id),
            esc(&section.heading),
            tally(&section.claims)
        );
    }
    out.push_str("</ol></nav>\n");
}

fn tally(claims: &[Claim]) -> String {
    if claims.is_empty() {
        return String::new();
    }
    let holds = claims.iter().filter(|c| c.holds).count();
    let fails = claims.len() - holds;
    let mut out = String::from("<span class=\"tally\">");
    if holds > 0 {
        let _ = write!(out, "<span class=\"holds\">{holds} ✔<span class=\"vh\"> hold</span></span>");
    }
    if fails > 0 {
        let _ = write!(out, "<span class=\"fails\">{fails} ✘<span class=\"vh\"> fail</span></span>");
    }
    out.push_str("</span>");
    out
}

fn write_section(out: &mut String, index: usize, section: &Section, looks: &[(&str, palette::Colour)]) {
    let _ = writeln!(
        out,
        "<section id=\"{}\">\n<h2><a href=\"#{0}\">{}</a>{}</h2>",
        esc(&section.id),
        esc(&section.heading),
        tally(&section.claims)
    );
    for paragraph in &section.text {
        let _ = writeln!(out, "<p class=\"text\">{}</p>", prose(paragraph));
    }
    claims(out, &section.claims);
    for stacked in &section.bars {
        bars::write(out, stacked, looks);
    }
    for map in &section.slot_maps {
        slots::write(out, map, looks);
    }
    for map in &section.heat_maps {
        heat::write(out, map);
    }
    if !section.charts.is_empty() {
        let few = if section.charts.len() == 1 { " one" } else { "" };
        let _ = writeln!(out, "<div class=\"charts{}\">", if section.sync { " sync" } else { few });
        for (c, drawn) in section.charts.iter().enumerate() {
            chart::write(out, &json::chart_id(index, c), drawn);
        }
        out.push_str("</div>\n");
    }
    images(out, &section.images, looks);
    for rows in &section.tables {
        table::write(out, rows, section.fold);
    }
    out.push_str("</section>\n");
}

fn claims(out: &mut String, claims: &[Claim]) {
    if claims.is_empty() {
        return;
    }
    out.push_str(
        "<div class=\"scroll\"><table class=\"claims\"><thead><tr><th>Verdict</th><th>Claim</th>\
         <th class=\"num\">Measured</th><th class=\"num\">95 % interval</th><th class=\"num\">Bound</th></tr></thead><tbody>\n",
    );
    for claim in claims {
        let (class, verdict) = if claim.holds { ("holds", "✔ holds") } else { ("fails", "✘ fails") };
        let note = match claim.note.as_str() {
            "" => String::new(),
            note => format!("<p class=\"why\">{}</p>", prose(note)),
        };
        let _ = writeln!(
            out,
            "<tr class=\"{class}\"><td><span class=\"verdict\">{verdict}</span></td><td>{}<code class=\"id\">{}</code>{note}</td>\
             <td class=\"num\">{}</td><td class=\"num\">{}</td><td class=\"num\">{}</td></tr>",
            prose(&claim.statement),
            esc(&claim.id),
            claim.measured.map_or_else(|| "not measured".into(), number),
            claim.ci95.map_or_else(|| "–".into(), |(lo, hi)| format!("{} … {}", number(lo), number(hi))),
            esc(&claim.bound),
        );
    }
    out.push_str("</tbody></table></div>\n");
}

fn images(out: &mut String, images: &[Image], looks: &[(&str, palette::Colour)]) {
    if images.is_empty() {
        return;
    }
    // As many columns as schemes, so that one row is one moment beside each.
    let mut keys: Vec<&str> = images.iter().map(|i| i.colour.as_str()).collect();
    keys.sort_unstable();
    keys.dedup();
    let columns =
        if (2..=4).contains(&keys.len()) { format!(" style=\"--columns:{}\"", keys.len()) } else { String::new() };
    let _ = writeln!(out, "<div class=\"images\"{columns}>");
    for image in images {
        let picture = match image.data.as_slice() {
            [] => "<div class=\"blank\">nothing on the screen</div>".to_owned(),
            data => format!(
                "<img alt=\"{}\" src=\"data:{};base64,{}\">",
                esc(&image.caption),
                esc(&image.media_type),
                base64::encode(data)
            ),
        };
        let style = colour_style(looks, &image.colour);
        let _ = writeln!(out, "<figure{style}>{picture}<figcaption>{}</figcaption></figure>", prose(&image.caption));
    }
    out.push_str("</div>\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::{Axis, BarRow, Bars, Chart, Series, Table};

    #[test]
    fn text_from_outside_cannot_become_markup() {
        let evil = "<img src=x onerror=alert(1)>'\"&`<b>`";
        let page = Page::new(evil)
            .subtitle(evil)
            .notice(evil)
            .meta(evil, evil)
            .section(
                Section::new(evil, evil)
                    .text(evil)
                    .table(Table {
                        title: evil.into(),
                        caption: evil.into(),
                        head: vec![evil.into()],
                        rows: vec![vec![evil.into()]],
                    })
                    .claim(Claim {
                        id: evil.into(),
                        statement: evil.into(),
                        bound: evil.into(),
                        note: evil.into(),
                        ..Claim::default()
                    })
                    .chart(Chart::new(evil, Axis::new(evil, evil), Axis::new(evil, evil)).series(Series::line(
                        evil,
                        evil,
                        vec![1.0],
                        vec![1.0],
                    )))
                    .bars(Bars {
                        title: evil.into(),
                        parts: vec![evil.into()],
                        rows: vec![BarRow {
                            label: evil.into(),
                            note: evil.into(),
                            values: vec![1.0],
                            ..BarRow::default()
                        }],
                        ..Bars::default()
                    })
                    .image(Image { caption: evil.into(), ..Image::default() }),
            )
            .to_html();
        assert!(!page.contains("<img src=x"));
        assert!(!page.contains("<b>`"));
    }

    #[test]
    fn a_claim_says_its_verdict_in_words_and_a_failed_one_is_counted() {
        let claim = |holds| Claim {
            id: "x".into(),
            statement: "s".into(),
            holds,
            measured: Some(2.5),
            ci95: Some((2.0, 3.0)),
            bound: ">= 2".into(),
            ..Claim::default()
        };
        let page = Page::new("t").section(Section::new("a", "A").claim(claim(true)).claim(claim(false)));
        let html = page.to_html();
        assert!(html.contains("✔ holds") && html.contains("✘ fails"));
        assert!(html.contains("1 ✔") && html.contains("1 ✘"));
        assert!(html.contains("2 … 3") && html.contains("&gt;= 2"));
    }

    #[test]
    fn the_policy_names_the_hashes_of_exactly_the_scripts_in_the_page() {
        let html = Page::new("t").to_html();
        assert_eq!(html.matches("<script>").count(), 2);
        assert!(html.contains(&script_hash(UPLOT_JS)) && html.contains(&script_hash(PAGE_JS)));
        // A script must not close its own element.
        assert!(!PAGE_JS.contains("</script") && !UPLOT_JS.contains("</script"));
    }

    #[test]
    fn nothing_in_the_page_points_to_the_network() {
        let html = Page::new("t").section(Section::new("a", "A")).to_html();
        for loaded in ["src=\"http", "href=\"http", "url(", "@import", "fetch(", "XMLHttpRequest"] {
            assert!(!html.contains(loaded), "{loaded}");
        }
    }
}
