//! The frame of the page: everything that can be read without a script.
//!
//! Text, claims, bars, tables and pictures are plain HTML; `page.js` draws the charts into the places left
//! for them and fills the long data tables. Every piece of text from outside goes through [`esc`].

use super::{BarRow, Bars, Chart, Claim, Image, Page, Section, Series, Table, base64, json, palette, slots};
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;

/// uPlot 1.6.32, <https://github.com/leeoniya/uPlot>, MIT; the licence stands beside it.
const UPLOT_JS: &str = include_str!("vendor/uPlot.iife.min.js");
const UPLOT_CSS: &str = include_str!("vendor/uPlot.min.css");
const UPLOT_LICENSE: &str = include_str!("vendor/uPlot.LICENSE");
const PAGE_JS: &str = include_str!("page.js");
const PAGE_CSS: &str = include_str!("page.css");

/// Up to this many points the numbers of a chart stand in the page itself; longer tables are built when opened.
const ROWS_IN_PAGE: usize = 80;

pub(super) fn page(page: &Page) -> String {
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

/// `style` attribute that sets `--c` to a key's colour.
pub(super) fn colour_style(looks: &[(&str, palette::Colour)], key: &str) -> String {
    match looks.iter().position(|(k, _)| *k == key) {
        Some(i) => format!(" style=\"--c:var(--k{i})\""),
        None => String::new(),
    }
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
    for bars in &section.bars {
        write_bars(out, bars, looks);
    }
    for map in &section.slot_maps {
        slots::write(out, map, looks);
    }
    if !section.charts.is_empty() {
        let few = if section.charts.len() == 1 { " one" } else { "" };
        let _ = writeln!(out, "<div class=\"charts{}\">", if section.sync { " sync" } else { few });
        for (c, chart) in section.charts.iter().enumerate() {
            write_chart(out, &json::chart_id(index, c), chart);
        }
        out.push_str("</div>\n");
    }
    images(out, &section.images, looks);
    for table in &section.tables {
        write_table(out, table, section.fold);
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

fn write_bars(out: &mut String, bars: &Bars, looks: &[(&str, palette::Colour)]) {
    let _ = writeln!(out, "<figure class=\"bars\">\n<h3>{}</h3>\n<ul class=\"parts\">", esc(&bars.title));
    for (i, part) in bars.parts.iter().enumerate() {
        let _ = writeln!(out, "<li><span class=\"part p{}\"></span>{}</li>", i % 4, esc(part));
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
            let _ = write!(out, "<span class=\"part p{}\" style=\"width:{share:.3}%\"><b>{text}</b></span>", i % 4);
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

fn write_chart(out: &mut String, id: &str, chart: &Chart) {
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

/// What the chart says, in words: one line per series or lane.
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

fn write_table(out: &mut String, table: &Table, fold: bool) {
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

pub(super) fn caption(out: &mut String, text: &str) {
    if !text.is_empty() {
        let _ = writeln!(out, "<figcaption>{}</figcaption>", prose(text));
    }
}

/// Four significant digits, thousands apart; for reading, not for computing.
fn number(v: f64) -> String {
    if !v.is_finite() {
        return "–".into();
    }
    if v == 0.0 {
        return "0".into();
    }
    let size = v.abs();
    if !(1e-3..1e9).contains(&size) {
        return format!("{v:.2e}").replace('-', "−");
    }
    let digits = (3 - size.log10().floor() as i32).max(0) as usize;
    let text = format!("{size:.digits$}");
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let mut grouped = String::new();
    for (i, c) in whole.chars().enumerate() {
        // A narrow no-break space between thousands, from 10,000 up: as print does.
        if i > 0 && (whole.len() - i).is_multiple_of(3) && whole.len() > 4 {
            grouped.push('\u{202f}');
        }
        grouped.push(c);
    }
    let fraction = fraction.trim_end_matches('0');
    let sign = if v < 0.0 { "−" } else { "" };
    if fraction.is_empty() { format!("{sign}{grouped}") } else { format!("{sign}{grouped}.{fraction}") }
}

/// Text for HTML, in elements and attributes alike.
pub(super) fn esc(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// Text for HTML in which `code` stands between backticks.
fn prose(text: &str) -> String {
    let mut out = String::new();
    for (i, piece) in text.split('`').enumerate() {
        // Odd pieces lie between two backticks; a last one without its partner is plain text.
        match i % 2 == 1 && text.split('`').count() > i + 1 {
            true => {
                let _ = write!(out, "<code>{}</code>", esc(piece));
            }
            false if i % 2 == 1 => {
                let _ = write!(out, "`{}", esc(piece));
            }
            false => out.push_str(&esc(piece)),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Axis, Lane, Span};

    #[test]
    fn numbers_read_with_four_digits_and_grouped_thousands() {
        let cases = [
            (0.0, "0"),
            (21.5, "21.5"),
            (1.0 / 3.0, "0.3333"),
            (-2.5, "−2.5"),
            (1300.0, "1300"),
            (12_345.6, "12\u{202f}346"),
            (1_234_567.0, "1\u{202f}234\u{202f}567"),
            (1e-4, "1.00e−4"),
            (f64::NAN, "–"),
        ];
        for (v, text) in cases {
            assert_eq!(number(v), text);
        }
    }

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
    fn backticks_make_code_and_a_lone_one_stays() {
        assert_eq!(prose("run `a < b` now"), "run <code>a &lt; b</code> now");
        assert_eq!(prose("a `b"), "a `b");
        assert_eq!(prose("`a`b`c`"), "<code>a</code>b<code>c</code>");
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
