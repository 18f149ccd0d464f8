//! Text, numbers and colours as HTML has them.

use crate::palette;
use std::fmt::Write as _;

/// `style` attribute that sets `--c` to a key's colour.
pub(super) fn colour_style(looks: &[(&str, palette::Colour)], key: &str) -> String {
    match looks.iter().position(|(k, _)| *k == key) {
        Some(i) => format!(" style=\"--c:var(--k{i})\""),
        None => String::new(),
    }
}

pub(super) fn caption(out: &mut String, text: &str) {
    if !text.is_empty() {
        let _ = writeln!(out, "<figcaption>{}</figcaption>", prose(text));
    }
}

/// Four significant digits, thousands apart; for reading, not for computing.
pub(super) fn number(v: f64) -> String {
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
pub(super) fn prose(text: &str) -> String {
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
    fn backticks_make_code_and_a_lone_one_stays() {
        assert_eq!(prose("run `a < b` now"), "run <code>a &lt; b</code> now");
        assert_eq!(prose("a `b"), "a `b");
        assert_eq!(prose("`a`b`c`"), "<code>a</code>b<code>c</code>");
    }
}
