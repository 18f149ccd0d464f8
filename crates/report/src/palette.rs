//! One colour, one dash pattern and one mark per scheme, the same on the whole page and in every report.
//!
//! The hues are Okabe and Ito's, which stay apart under the common kinds of colour blindness (M. Okabe,
//! K. Ito, "Color Universal Design", 2008); darkened for white paper, lightened for the dark page, so that
//! lines keep a contrast of at least 3:1 against both. Dashes and marks differ too: the page must be
//! readable without colour.

/// How a scheme looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Colour {
    /// On the light page, `#rrggbb`.
    pub light: &'static str,
    /// On the dark page, `#rrggbb`.
    pub dark: &'static str,
    /// Dash pattern in CSS pixels; empty = solid.
    pub dash: &'static [u8],
    /// Mark: `circle`, `square`, `triangle`, `diamond`, `cross`, `plus`.
    pub mark: &'static str,
}

const fn colour(light: &'static str, dark: &'static str, dash: &'static [u8], mark: &'static str) -> Colour {
    Colour { light, dark, dash, mark }
}

const BLUE: (&str, &str) = ("#0067a5", "#5cb3f0");
const VERMILION: (&str, &str) = ("#c74c00", "#ff8a4a");
const ORANGE: (&str, &str) = ("#a66f00", "#f0b429");
const GREEN: (&str, &str) = ("#00785a", "#2fc79c");
const PURPLE: (&str, &str) = ("#a8467f", "#e08fc0");
const SLATE: (&str, &str) = ("#4a5560", "#a9b4bf");
const SKY: (&str, &str) = ("#2f7fae", "#8fd0f5");
const OLIVE: (&str, &str) = ("#6d6f00", "#cfd04a");

/// The fixed looks. A variant shares its scheme's hue and differs in dash and mark.
const FIXED: &[(&str, Colour)] = &[
    ("auto", colour(OLIVE.0, OLIVE.1, &[], "square")),
    ("rcs", colour(BLUE.0, BLUE.1, &[], "circle")),
    ("rcs1", colour(BLUE.0, BLUE.1, &[], "circle")),
    ("rcs2", colour(SKY.0, SKY.1, &[8, 3], "square")),
    ("rcs-no-backoff", colour(SKY.0, SKY.1, &[8, 3, 2, 3], "square")),
    ("rap", colour(VERMILION.0, VERMILION.1, &[7, 4], "triangle")),
    ("rap-fine", colour(ORANGE.0, ORANGE.1, &[2, 3], "diamond")),
    ("rap-fine-grain", colour(ORANGE.0, ORANGE.1, &[2, 3], "diamond")),
    ("fixed", colour(PURPLE.0, PURPLE.1, &[10, 3, 3, 3], "square")),
    ("tfrc", colour(ORANGE.0, ORANGE.1, &[], "diamond")),
    ("tfrc-sp", colour(ORANGE.0, ORANGE.1, &[8, 3], "square")),
    ("mrp", colour(OLIVE.0, OLIVE.1, &[6, 3], "triangle")),
    ("crp", colour(SKY.0, SKY.1, &[3, 2], "plus")),
    ("srp", colour(SLATE.0, SLATE.1, &[9, 3, 2, 3], "cross")),
    ("tfrc-modified", colour(BLUE.0, BLUE.1, &[7, 4], "triangle")),
    ("tcp", colour(GREEN.0, GREEN.1, &[4, 3], "plus")),
    ("tcp-reno", colour(GREEN.0, GREEN.1, &[4, 3], "plus")),
    ("tcp-newreno", colour(GREEN.0, GREEN.1, &[9, 3], "cross")),
    ("tcp-sack", colour(OLIVE.0, OLIVE.1, &[9, 3, 2, 3], "diamond")),
    ("tcp-reno-alone", colour(SLATE.0, SLATE.1, &[], "square")),
    ("tcp-beside-crp", colour(GREEN.0, GREEN.1, &[4, 3], "circle")),
    ("tcp-beside-tfrc", colour(GREEN.0, GREEN.1, &[4, 3], "circle")),
    ("tcp-beside-srp", colour(PURPLE.0, PURPLE.1, &[9, 3], "square")),
    ("tcp-beside-mrp", colour(PURPLE.0, PURPLE.1, &[9, 3], "square")),
    ("tcp-beside-tfrc-modified", colour(PURPLE.0, PURPLE.1, &[9, 3], "square")),
    ("tcp-sack-alone", colour(PURPLE.0, PURPLE.1, &[9, 3], "triangle")),
    ("no-qs", colour(SLATE.0, SLATE.1, &[], "square")),
    ("qs", colour(VERMILION.0, VERMILION.1, &[7, 4], "triangle")),
    ("qsd-0", colour(ORANGE.0, ORANGE.1, &[3, 2], "diamond")),
    ("qsd-opt", colour(BLUE.0, BLUE.1, &[], "circle")),
    ("qsd-max", colour(GREEN.0, GREEN.1, &[9, 3, 2, 3], "cross")),
    ("terminal 0", colour(SLATE.0, SLATE.1, &[], "square")),
    ("terminal 1", colour(BLUE.0, BLUE.1, &[], "circle")),
    ("terminal 2", colour(GREEN.0, GREEN.1, &[9, 3], "triangle")),
    ("terminal 3", colour(PURPLE.0, PURPLE.1, &[6, 3], "diamond")),
    ("terminal 4", colour(ORANGE.0, ORANGE.1, &[10, 3, 2, 3], "cross")),
    ("terminal 5", colour(SKY.0, SKY.1, &[3, 2], "plus")),
    ("aimd", colour(BLUE.0, BLUE.1, &[], "circle")),
    ("tpba", colour(BLUE.0, BLUE.1, &[], "circle")),
    ("lda", colour(VERMILION.0, VERMILION.1, &[7, 4], "triangle")),
    ("ldaf", colour(ORANGE.0, ORANGE.1, &[3, 2], "diamond")),
    ("flow 1", colour(GREEN.0, GREEN.1, &[4, 3], "plus")),
    ("flow 2", colour(ORANGE.0, ORANGE.1, &[9, 3], "diamond")),
    ("flow 3", colour(BLUE.0, BLUE.1, &[], "circle")),
    ("flow 4", colour(PURPLE.0, PURPLE.1, &[9, 3, 2, 3], "square")),
    ("user 0", colour(BLUE.0, BLUE.1, &[], "circle")),
    ("user 1", colour(GREEN.0, GREEN.1, &[9, 3], "triangle")),
    ("user 2", colour(PURPLE.0, PURPLE.1, &[6, 3], "diamond")),
    ("user 3", colour(ORANGE.0, ORANGE.1, &[10, 3, 2, 3], "cross")),
    ("failed", colour(VERMILION.0, VERMILION.1, &[5, 4], "triangle")),
    ("silent", colour(SLATE.0, SLATE.1, &[2, 2], "plus")),
    ("asked", colour(VERMILION.0, VERMILION.1, &[5, 4], "triangle")),
    ("sent", colour(SLATE.0, SLATE.1, &[2, 2], "plus")),
    ("link", colour(SLATE.0, SLATE.1, &[3, 3], "plus")),
    ("reference", colour(SLATE.0, SLATE.1, &[5, 4], "plus")),
];

/// For words that are no scheme, by the order in which they appear on the page.
const OTHERS: &[Colour] = &[
    colour(SLATE.0, SLATE.1, &[], "square"),
    colour(OLIVE.0, OLIVE.1, &[6, 3], "triangle"),
    colour(SKY.0, SKY.1, &[3, 2], "diamond"),
    colour(PURPLE.0, PURPLE.1, &[9, 3], "cross"),
    colour(ORANGE.0, ORANGE.1, &[10, 3, 2, 3], "circle"),
    colour(GREEN.0, GREEN.1, &[2, 2], "square"),
];

/// The look of a scheme, or `None` for a word that names none.
pub fn colour_of(key: &str) -> Option<Colour> {
    FIXED.iter().find(|(name, _)| *name == key).map(|(_, c)| *c)
}

/// Looks for all `keys` of a page, in their order of appearance: fixed ones for schemes, the others in turn.
pub(super) fn assign<'a>(keys: impl Iterator<Item = &'a str>) -> Vec<(&'a str, Colour)> {
    let mut out: Vec<(&str, Colour)> = Vec::new();
    let mut others = 0;
    for key in keys {
        if out.iter().any(|(seen, _)| *seen == key) {
            continue;
        }
        let look = colour_of(key).unwrap_or_else(|| {
            others += 1;
            OTHERS[(others - 1) % OTHERS.len()]
        });
        out.push((key, look));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative luminance by WCAG 2.2, from its definition.
    fn luminance(hex: &str) -> f64 {
        let channel = |i: usize| {
            let v = f64::from(u8::from_str_radix(&hex[i..i + 2], 16).unwrap()) / 255.0;
            if v <= 0.04045 { v / 12.92 } else { ((v + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
    }

    fn contrast(a: &str, b: &str) -> f64 {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    #[test]
    fn every_line_keeps_a_contrast_of_three_to_one_on_both_pages() {
        // 3:1 is what WCAG 2.2 §1.4.11 asks of graphics. The page's grounds: page.css, --surface.
        for (name, c) in FIXED.iter().map(|(n, c)| (*n, c)).chain(OTHERS.iter().map(|c| ("other", c))) {
            assert!(contrast(c.light, "#ffffff") >= 3.0, "{name} on white: {}", contrast(c.light, "#ffffff"));
            assert!(contrast(c.dark, "#161b21") >= 3.0, "{name} on dark: {}", contrast(c.dark, "#161b21"));
        }
    }

    #[test]
    fn schemes_that_share_a_hue_differ_in_dash_and_mark() {
        let of = |k| colour_of(k).unwrap();
        for (a, b) in [
            ("rcs", "rcs2"),
            ("tcp-reno", "tcp-newreno"),
            ("rap", "rap-fine-grain"),
            ("rcs", "rap"),
            ("tfrc", "tfrc-sp"),
        ] {
            assert_ne!(of(a).dash, of(b).dash, "{a}, {b}");
            assert_ne!(of(a).mark, of(b).mark, "{a}, {b}");
        }
    }

    #[test]
    fn the_lines_of_one_figure_have_a_colour_each_or_differ_in_dash_and_mark() {
        // The schemes of Fig. 17 and of Fig. 20, the equations beside TCP, and what a demo may compare. Reno and
        // NewReno share a hue.
        let sweep = ["rcs", "rap", "rap-fine", "tcp-reno", "tcp-newreno", "tcp-sack"];
        let beside = ["tcp-reno", "tcp-reno-alone", "tcp-sack", "tcp-sack-alone", "rcs"];
        let equations = ["tcp-reno", "srp", "crp", "mrp", "tfrc"];
        let demo = ["rcs", "rap", "fixed", "tfrc", "mrp", "srp"];
        let quick_start = ["no-qs", "qs", "qsd-0", "qsd-opt", "qsd-max"];
        // Pairs and the TCP beside each [lossy].
        let pairs = [["srp", "crp"], ["crp", "mrp"], ["tfrc", "tfrc-modified"]];
        let pairs =
            pairs.map(|[a, b]| [a.to_owned(), b.to_owned(), format!("tcp-beside-{a}"), format!("tcp-beside-{b}")]);
        let pairs: Vec<Vec<&str>> = pairs.iter().map(|p| p.iter().map(String::as_str).collect()).collect();
        for figure in
            [&sweep[..], &beside, &equations, &demo, &quick_start].into_iter().chain(pairs.iter().map(Vec::as_slice))
        {
            for (i, a) in figure.iter().enumerate() {
                for b in &figure[i + 1..] {
                    let (x, y) = (colour_of(a).expect(a), colour_of(b).expect(b));
                    let tcp = (*a, *b) == ("tcp-reno", "tcp-newreno");
                    assert!(tcp || x.light != y.light && x.dark != y.dark, "{a} and {b} have one colour");
                    assert_ne!((x.dash, x.mark), (y.dash, y.mark), "{a}, {b}");
                }
            }
        }
    }

    #[test]
    fn a_key_keeps_its_look_wherever_it_appears_again() {
        let looks = assign(["x", "rcs", "y", "x"].into_iter());
        assert_eq!(looks.iter().map(|(k, _)| *k).collect::<Vec<_>>(), ["x", "rcs", "y"]);
        assert_ne!(looks[0].1, looks[2].1);
        assert_eq!(looks[1].1, colour_of("rcs").unwrap());
    }
}
