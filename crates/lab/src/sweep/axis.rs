//! An axis: a field of the scenario and the values that it gets.
//!
//! | text | values |
//! | --- | --- |
//! | `rcs,tfrc` | these, in this order |
//! | `1Mbit/s..10Mbit/s/4` | four, equally far apart: 1, 4, 7, 10 Mbit/s |
//! | `1e-4..1e-2/log5` | five, each the same factor above the one before |
//! | `1e-4..1e-2`, `1e-4..1e-2/log` | any between, for random designs: uniform, or uniform in the logarithm |
//!
//! Both ends are values as they are given, those between them have six significant digits, and all are whole where the field or the unit
//! is. Both ends have a unit or none has; the first one's is kept.

use super::error::SweepError;
use super::numbers::{GROUP_COLUMNS, LINK_COLUMNS};
use fairpace_scenario::FieldPath;
use fairpace_units::{RateSpec, parse_duration, parse_rate, parse_size};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The most values of one axis.
pub const MAX_LEVELS: usize = 100_000;

/// A field and its values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Axis {
    /// The field's path, as given.
    pub field: String,
    /// Its values.
    pub levels: Levels,
}

/// The values of an axis, as text of a scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Levels {
    /// These.
    Values(Vec<String>),
    /// Any value between two ends.
    Between {
        /// The lower end, in `unit`.
        from: f64,
        /// The upper end, in `unit`.
        to: f64,
        /// The unit; empty for a pure number.
        unit: String,
        /// Uniform in the logarithm.
        log: bool,
        /// Whole numbers only.
        whole: bool,
    },
}

impl Axis {
    /// Reads `FIELD=VALUES`, as in `path.loss.p=1e-4..1e-2/log7` and `flow.video.controller=rcs,rap:fine_grain=on`.
    ///
    /// # Errors
    /// [`SweepError::Vary`]: there is no `=`, no value, or a range is none; [`SweepError::Point`]: the field is no path.
    pub fn parse(text: &str) -> Result<Axis, SweepError> {
        let refuse = |wrong: &str, allowed: &str| SweepError::Vary {
            found: text.to_owned(),
            wrong: wrong.to_owned(),
            allowed: allowed.to_owned(),
        };
        let Some((field, values)) = text.split_once('=') else {
            return Err(refuse("has no `=`", "write a field and its values, as in `path.loss.p=1e-4..1e-2/log7`"));
        };
        let path = FieldPath::parse(field)?;
        let pieces = pieces(values, field.trim().ends_with("controller"));
        if pieces.iter().any(String::is_empty) && pieces.iter().any(|p| !p.is_empty()) {
            return Err(refuse("has an empty value", "write a value between two commas, and none behind the last"));
        }
        let mut found: Vec<String> = Vec::new();
        for piece in pieces.iter().filter(|p| !p.is_empty()) {
            match range(piece, path.is_whole()).map_err(|(wrong, allowed)| refuse(&wrong, allowed))? {
                None => found.push(piece.clone()),
                Some((between, Some(n))) => {
                    found.extend((0..n).map(|i| between.spaced(if n == 1 { 0.0 } else { i as f64 / (n - 1) as f64 })))
                }
                Some((between, None)) if pieces.len() == 1 => {
                    return Ok(Axis { field: path.text().to_owned(), levels: between });
                }
                Some((_, None)) => {
                    return Err(refuse(
                        "has a range without a number of values beside other values",
                        "write how many, as in `1..9/5`, or leave the range alone",
                    ));
                }
            }
        }
        if found.is_empty() {
            return Err(refuse("has no value", "write values behind the `=`, as in `path.loss.p=0.001,0.01`"));
        }
        if found.len() > MAX_LEVELS {
            return Err(refuse("has too many values", "at most 100,000 on one axis"));
        }
        Ok(Axis { field: path.text().to_owned(), levels: Levels::Values(found) })
    }

    /// The axis with each of its values once, in the first of its spellings: whole numbers between two ends may come twice, and so may
    /// what is listed, as `50ms` and `0.05 s`.
    pub fn distinct(&self) -> Axis {
        let mut axis = self.clone();
        if let Levels::Values(values) = &mut axis.levels {
            let mut seen = BTreeSet::new();
            values.retain(|value| seen.insert(meaning(value)));
        }
        axis
    }

    /// The listed values; none if any between two ends is one.
    pub fn values(&self) -> Option<&[String]> {
        match &self.levels {
            Levels::Values(values) => Some(values),
            Levels::Between { .. } => None,
        }
    }

    /// A value as a number in the axis' unit; none of words.
    pub fn number(value: &str) -> Option<f64> {
        quantity(value).map(|(number, unit)| number * factor(unit).map_or(1.0, |(_, each)| each))
    }

    /// Whether all of its values are numbers of one kind.
    pub fn is_numeric(&self) -> bool {
        let kind =
            |value: &String| quantity(value).map(|(_, unit)| factor(unit).map(|(kind, _)| kind).ok_or(unit.to_owned()));
        match &self.levels {
            Levels::Between { .. } => true,
            Levels::Values(values) => {
                let first = values.first().and_then(kind);
                first.is_some() && values.iter().all(|v| kind(v) == first)
            }
        }
    }

    /// The unit of [`Axis::number`]: `bit/s`, `s`, `B`, as written where it is none of these, or empty.
    pub fn unit(&self) -> String {
        let of = |unit: &str| factor(unit).map_or_else(|| unit.to_owned(), |(kind, _)| kind.to_owned());
        match &self.levels {
            Levels::Between { unit, .. } => of(unit),
            Levels::Values(values) => values.first().and_then(|v| quantity(v)).map_or_else(String::new, |(_, u)| of(u)),
        }
    }

    /// The name of the axis' column: the field, and the unit of its numbers (`path.rate_bps`). A field's place in a list and all of a list
    /// are written so that every reader of a folder's name takes them alike: `flows.0.start_s`, `flow.all.start_s`.
    pub fn column(&self) -> String {
        let mut field = self.field.replace('[', ".").replace(']', "").replace('*', "all");
        // A column of a sweep's tables has no dot in its name but for an axis'.
        if !field.contains('.') && is_of_the_tables(&field) {
            field = format!("scenario.{field}");
        }
        if !self.is_numeric() {
            return field;
        }
        let suffix = match self.unit().as_str() {
            "" => "",
            "bit/s" => "_bps",
            "s" => "_s",
            "B" => "_bytes",
            "pkt/s" => "_pps",
            "pkt" | "packets" => "_packets",
            _ => "",
        };
        field + suffix
    }

    /// Whether the numbers span so much, each about the same factor above the one before, that they are drawn in
    /// the logarithm: a factor of 20 in all, and no step of more than three times the least, in the logarithm.
    pub fn is_log(&self) -> bool {
        match &self.levels {
            Levels::Between { log, .. } => *log,
            Levels::Values(values) => {
                let mut numbers: Vec<f64> = values.iter().filter_map(|v| Axis::number(v)).collect();
                numbers.sort_by(f64::total_cmp);
                numbers.dedup();
                let (Some(least), Some(most)) = (numbers.first(), numbers.last()) else { return false };
                let steps = || numbers.windows(2).map(|pair| libm::log(pair[1]) - libm::log(pair[0]));
                let is_even = || steps().fold(0.0, f64::max) <= 3.0 * steps().fold(f64::MAX, f64::min);
                values.iter().all(|v| Axis::number(v).is_some()) && *least > 0.0 && most / least >= 20.0 && is_even()
            }
        }
    }

    /// The value at one end of a range, 0 or 1; the first or the last of listed ones.
    pub fn at_end(&self, end: f64) -> String {
        self.at(end)
    }

    /// The value at a place from 0 to 1.
    pub(super) fn at(&self, place: f64) -> String {
        match &self.levels {
            Levels::Values(values) => {
                let index = (place * values.len() as f64) as usize;
                values.get(index.min(values.len().saturating_sub(1))).cloned().unwrap_or_default()
            }
            between @ Levels::Between { .. } => between.drawn(place),
        }
    }
}

impl Levels {
    /// The value at one of several places that are equally far apart, the two ends among them.
    fn spaced(&self, place: f64) -> String {
        let Levels::Between { from, to, whole, .. } = self else { return String::new() };
        self.text(match place {
            0.0 => *from,
            1.0 => *to,
            _ if *whole => self.between(*from, *to, place).round(),
            _ => short(self.between(*from, *to, place)),
        })
    }

    /// The value for a place that is drawn from 0 to 1. Each of whole numbers stands for what is rounded to it, the ends too.
    fn drawn(&self, place: f64) -> String {
        let Levels::Between { from, to, whole, .. } = self else { return String::new() };
        self.text(match (place, whole) {
            (0.0, _) => *from,
            (1.0, _) => *to,
            (_, true) => self.between(from - 0.5, to + 0.5, place).round().clamp(*from, *to),
            (_, false) => short(self.between(*from, *to, place)),
        })
    }

    fn between(&self, from: f64, to: f64, place: f64) -> f64 {
        match self {
            Levels::Between { log: true, .. } => libm::exp(libm::log(from) + (libm::log(to) - libm::log(from)) * place),
            _ => from + (to - from) * place,
        }
    }

    fn text(&self, number: f64) -> String {
        match self {
            Levels::Between { unit, .. } if !unit.is_empty() => format!("{number} {unit}"),
            _ => number.to_string(),
        }
    }
}

/// Whether a table of a sweep has a column of that name, whatever its axes are.
fn is_of_the_tables(name: &str) -> bool {
    let numbers = || GROUP_COLUMNS.iter().map(|c| c.0).chain(LINK_COLUMNS.iter().map(|c| c.0));
    ["point", "seed", "group", "link", "invalid"].contains(&name) || numbers().any(|column| column == name)
}

/// The same for two spellings of one value.
pub(super) fn meaning(value: &str) -> (String, u64) {
    // Zero has two signs.
    let bits = |number: f64| (decimal(number) + 0.0).to_bits();
    match quantity(value).map(|(number, unit)| (number, unit, factor(unit))) {
        Some((number, _, Some((kind, each)))) => (kind.to_owned(), bits(number * each)),
        Some((number, unit @ ("" | "pkt" | "packets"), None)) => (unit.to_owned(), bits(number)),
        // A file's name may begin with a digit, too.
        _ => (format!("{value}\0"), 0),
    }
}

/// Without the noise of a product: twelve significant digits.
fn decimal(x: f64) -> f64 {
    format!("{x:.11e}").parse().unwrap_or(x)
}

/// Six significant digits.
fn short(x: f64) -> f64 {
    format!("{x:.5e}").parse().unwrap_or(x)
}

/// The values between commas; commas within brackets or quotes are theirs. A controller's further settings stay with the controller.
fn pieces(text: &str, controllers: bool) -> Vec<String> {
    let (mut depth, mut quoted) = (0_i32, false);
    let mut found = vec![String::new()];
    for c in text.chars() {
        match c {
            '"' => quoted = !quoted,
            '[' | '{' if !quoted => depth += 1,
            ']' | '}' if !quoted => depth -= 1,
            _ => {}
        }
        match found.last_mut() {
            Some(last) if c != ',' || quoted || depth > 0 => last.push(c),
            _ => found.push(String::new()),
        }
    }
    let mut joined: Vec<String> = Vec::new();
    for piece in found.into_iter().map(|p| p.trim().to_owned()) {
        let is_setting = controllers && piece.contains('=') && !piece.split('=').next().unwrap_or("").contains(':');
        match joined.last_mut() {
            Some(last) if is_setting && !last.is_empty() => {
                last.push(if last.contains(':') { ',' } else { ':' });
                last.push_str(&piece);
            }
            _ => joined.push(piece),
        }
    }
    joined
}

type Refusal = (String, &'static str);

/// A range with its number of values, if the text is one.
fn range(text: &str, whole_field: bool) -> Result<Option<(Levels, Option<usize>)>, Refusal> {
    let Some((from, rest)) = text.split_once("..") else { return Ok(None) };
    let begins = |t: &str| t.trim_start().starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
    // Names of files may have two dots, too.
    if !begins(from) || !begins(rest) || from.contains('/') && quantity(from).is_none() {
        return Ok(None);
    }
    let (to, spacing) = match rest.rsplit_once('/') {
        // Units have a stroke too, and no digit behind it.
        Some((to, spacing))
            if spacing.starts_with("log") || spacing.starts_with("lin") || begins(spacing) || spacing.is_empty() =>
        {
            (to, spacing)
        }
        _ => (rest, ""),
    };
    let log = spacing.starts_with("log");
    let number = spacing.trim_start_matches("log").trim_start_matches("lin");
    let count = match number {
        "" if !rest.ends_with('/') => None,
        n => Some(n.parse::<usize>().ok().filter(|n| (1..=MAX_LEVELS).contains(n)).ok_or_else(|| {
            (
                format!("has `{spacing}` where the number of values should be"),
                "write `/5` or `/log5`, from 1 to 100,000 values",
            )
        })?),
    };
    let ends = quantity(from).zip(quantity(to));
    let Some(((from_number, from_unit), (to_number, to_unit))) = ends else {
        return Err((
            format!("has the range `{text}` whose ends are not numbers"),
            "write two numbers, each with its unit, as in `1 Mbit/s..10 Mbit/s/5`",
        ));
    };
    let to_number = if from_unit == to_unit {
        to_number
    } else {
        match (factor(from_unit), factor(to_unit)) {
            (Some((a, from_each)), Some((b, to_each))) if a == b => decimal(to_number * to_each / from_each),
            _ => {
                return Err((
                    format!("has the range `{text}` whose ends are in `{from_unit}` and `{to_unit}`"),
                    "write both ends in units of one kind",
                ));
            }
        }
    };
    if to_number < from_number {
        return Err((format!("has the range `{text}` which ends below its beginning"), "write the smaller end first"));
    }
    if log && from_number <= 0.0 {
        return Err((
            format!("has the range `{text}`, of which there is no logarithm"),
            "begin above zero, or leave `log` out",
        ));
    }
    let whole = whole_field || ["pkt", "packets", "B", "bytes"].contains(&from_unit);
    if whole && (from_number.fract() != 0.0 || to_number.fract() != 0.0) {
        return Err((format!("has the range `{text}`, of whole numbers"), "write whole numbers at both ends"));
    }
    let unit = from_unit.to_owned();
    Ok(Some((Levels::Between { from: from_number, to: to_number, unit, log, whole }, count)))
}

/// A number and what stands behind it.
fn quantity(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    if !text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) {
        return None;
    }
    let ends = text.char_indices().map(|(i, c)| i + c.len_utf8());
    let (end, number) = ends.filter_map(|end| Some((end, text[..end].parse::<f64>().ok()?))).next_back()?;
    let unit = text[end..].trim();
    (number.is_finite() && !unit.starts_with(|c: char| c.is_ascii_digit() || c == '.')).then_some((number, unit))
}

/// The basic unit of a unit's kind, and how many of those it has.
fn factor(unit: &str) -> Option<(&'static str, f64)> {
    let one = format!("1 {unit}");
    if unit.is_empty() {
        None
    } else if let Ok(time) = parse_duration(&one) {
        Some(("s", time.as_secs_f64()))
    } else if let Ok(size) = parse_size(&one) {
        Some(("B", size.as_f64()))
    } else {
        match parse_rate(&one).ok()? {
            RateSpec::Bits(rate) => Some(("bit/s", rate.as_bps())),
            RateSpec::PacketsPerSecond(_) => Some(("pkt/s", 1.0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Vec<String> {
        Axis::parse(text).unwrap().distinct().values().unwrap().to_vec()
    }

    #[test]
    fn values_are_listed_or_lie_between_two_ends() {
        assert_eq!(values("flow.video.controller=rcs, tfrc"), ["rcs", "tfrc"]);
        assert_eq!(values("path.rate=1Mbit/s..10Mbit/s/4"), ["1 Mbit/s", "4 Mbit/s", "7 Mbit/s", "10 Mbit/s"]);
        assert_eq!(values("path.loss.p=1e-4..1e-2/log3"), ["0.0001", "0.001", "0.01"]);
        // 10^(1/2) to six digits.
        assert_eq!(values("path.loss.p=1..10/log3")[1], "3.16228");
        assert_eq!(
            values("path.rate=500kbit/s..1.5Mbit/s/3,9 Mbit/s"),
            ["500 kbit/s", "1000 kbit/s", "1500 kbit/s", "9 Mbit/s"]
        );
        assert_eq!(values("path.queue.capacity=1pkt..10pkt/log4"), ["1 pkt", "2 pkt", "5 pkt", "10 pkt"]);
        assert_eq!(values("flow.tcp.count=1..3/5"), ["1", "2", "3"]);
        assert_eq!(values("path.loss.p=0.1,0.1,0.10,1e-1"), ["0.1"]);
        assert_eq!(values("path.rtt=50ms,50 ms,0.05 s,60 ms,9 ms,0.009 s"), ["50ms", "60 ms", "9 ms"]);
        assert_eq!(values("path.trace.file=3g.mahimahi,03g.mahimahi").len(), 2);
        assert_eq!(values("path.rtt=300ms..1.001s/2,700 ms"), ["300 ms", "1001 ms", "700 ms"]);
        assert_eq!(values("path.queue.capacity=500 B..2.01 kB/2"), ["500 B", "2010 B"]);
        assert_eq!(values("path.queue.capacity=5 pkt,5 B,5 kB,5000 B"), ["5 pkt", "5 B", "5 kB"]);
        // The ends as they are given.
        assert_eq!(values("path.rate=1234567bit/s..9999999bit/s/2"), ["1234567 bit/s", "9999999 bit/s"]);
    }

    #[test]
    fn commas_within_a_table_or_a_controllers_settings_are_theirs() {
        assert_eq!(values("path.queue={kind=\"codel\"},{kind=\"red\",max_p=0.1}").len(), 2);
        let found = values("flow.video.controller=rcs,rap:fine_grain=on,alpha=2,fixed");
        assert_eq!(found, ["rcs", "rap:fine_grain=on,alpha=2", "fixed"]);
        assert_eq!(values("path.trace.file=../a.csv,../b.csv"), ["../a.csv", "../b.csv"]);
    }

    #[test]
    fn what_is_no_axis_is_refused_with_what_to_write() {
        for (text, wrong) in [
            ("path.loss.p", "has no `=`"),
            ("path.loss.p=", "has no value"),
            ("path.loss.p=,", "has no value"),
            ("path.loss.p=1..2/0", "where the number of values should be"),
            ("path.loss.p=1..2/1e9", "has `1e9` where the number of values should be"),
            ("path.rtt=1 s..2 s/-3", "has `-3` where the number of values should be"),
            ("path.rtt=1 s..2 s/", "where the number of values should be"),
            ("path.loss.p=0.1,,0.2", "has an empty value"),
            ("path.loss.p=0.1,", "has an empty value"),
            ("flow.video.controller=rap:alpha=2,,beta=1", "has an empty value"),
            ("=3", "axis: `field` is ``, which is not a path"),
            ("flow.video.name=a,b", "is not varied"),
            ("flows[0].group=a,b", "is not varied"),
            ("path.loss.p=0..2/log3", "no logarithm"),
            ("path.loss.p=2..1/3", "ends below its beginning"),
            ("path.rate=1 Mbit/s..3 s/3", "`Mbit/s` and `s`"),
            ("path.loss.p=0..1,2", "a range without a number"),
            ("seed=1,2", "is not varied"),
            ("flow.tcp.count=1..2.6/3", "of whole numbers"),
        ] {
            let error = Axis::parse(text).unwrap_err();
            assert!(error.to_string().contains(wrong) && error.hint().is_some(), "{text}: {error}");
        }
    }

    #[test]
    fn numbers_have_the_unit_of_their_kind() {
        let axis = Axis::parse("path.rate=500 kbit/s,2 Mbit/s").unwrap();
        assert!(axis.is_numeric() && axis.unit() == "bit/s" && !axis.is_log());
        assert_eq!(Axis::number("2 Mbit/s"), Some(2e6));
        assert_eq!(Axis::number("250 ms"), Some(0.25));
        let words = Axis::parse("flow.video.controller=rcs,rap").unwrap();
        assert!(!words.is_numeric() && words.unit().is_empty());
        assert!(!Axis::parse("path.queue.capacity=1 pkt,unlimited").unwrap().is_numeric());
        assert!(Axis::parse("path.loss.p=1e-4..1e-2/log3").unwrap().is_log());
        assert!(Axis::parse("path.queue.capacity=1,2,5,10,20,50").unwrap().is_log());
        assert!(!Axis::parse("path.loss.p=0.01..1/50").unwrap().is_log());
    }

    #[test]
    fn a_column_is_called_as_every_reader_takes_it_and_as_no_other_column() {
        let column = |text: &str| Axis::parse(text).unwrap().column();
        assert_eq!(column("flow.*.start=0 s,1 s"), "flow.all.start_s");
        assert_eq!(column("flows[1].start=0 s,1 s"), "flows.1.start_s");
        assert_eq!(column("flows=[],[{name=\"a\"}]"), "scenario.flows");
        assert_eq!(column("duration=1 s,2 s"), "duration_s");
    }

    #[test]
    fn a_controllers_whole_parameters_are_whole_between_two_ends() {
        assert_eq!(values("flow.video.parameters.dup_threshold=1..4/3"), ["1", "3", "4"]);
        assert_eq!(values("flow.video.parameters.kxrtt=0..1/3"), ["0", "0.5", "1"]);
    }

    #[test]
    fn whole_numbers_that_are_drawn_are_as_likely_at_the_ends_as_between() {
        let linear = Axis::parse("flow.tcp.count=1..3").unwrap();
        let places = || (0..300).map(|i| (f64::from(i) + 0.5) / 300.0);
        for n in ["1", "2", "3"] {
            assert_eq!(places().filter(|place| linear.at(*place) == n).count(), 100, "{n}");
        }
        // In the logarithm a number's share is that of what is rounded to it: from 0.5 to 1.5 of 0.5 to 3.5.
        let log = Axis::parse("flow.tcp.count=1..3/log").unwrap();
        let ones = places().filter(|place| log.at(*place) == "1").count();
        assert_eq!(ones, (300.0_f64 * (1.5_f64 / 0.5).ln() / (3.5_f64 / 0.5).ln()).round() as usize);
    }
}
