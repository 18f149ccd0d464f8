//! Schemes by name: the parameters that each has, the settings that are given for them, and the controller that is
//! made of both. Which schemes there are is listed in `scheme.rs`.
//!
//! A scheme brings a table of its parameters; `fairpace list`, the scenario's schema, the defaults
//! and the error messages are all read from it. A default is written once, as text, and goes the
//! same way as a setting.

use crate::controller::Controller;
use crate::scheme::SCHEMES;
use core::fmt;
use fairpace_units::{Bounds, Bytes, Duration, Rate, parse_duration, parse_rate};
use std::collections::BTreeMap;

/// One parameter of a scheme: the only place that says its name, its default and what it may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ParamInfo {
    /// As in a scenario file.
    pub name: &'static str,
    /// The paper's symbol; empty if it has none.
    pub symbol: &'static str,
    /// The default, as one would write it.
    pub default: &'static str,
    /// What it may be: one of these.
    pub allowed: &'static [Allowed],
    /// What it does.
    pub doc: &'static str,
}

/// What a parameter may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Allowed {
    /// Words whose meaning the parameter's sentence tells.
    Words(&'static [&'static str]),
    /// A word, and what it stands for.
    Word(&'static str, &'static str),
    /// A rate within the flow's limits.
    FlowRate,
    /// A rate above 0.
    Rate,
    /// A duration.
    Duration(Bounds<Duration>),
    /// A bare number, of these if they have a name: `packets`.
    Number(&'static str, Bounds<f64>),
    /// A whole number from one to another, of these if they have a name.
    Whole(&'static str, u64, u64),
    /// A number before this word, as in `10 SRTT`.
    Times(&'static str, Bounds<f64>),
}

/// On or off.
pub const FLAG: &[Allowed] = &[Allowed::Words(&["on", "off"])];

impl Allowed {
    /// In words; `alone` where nothing else is allowed beside it.
    fn text(&self, alone: bool) -> String {
        let of = |what: &str| if what.is_empty() { String::new() } else { format!(" of {what}") };
        match self {
            Allowed::Words(words) => {
                let quoted: Vec<String> = words.iter().map(|w| format!("`{w}`")).collect();
                match quoted.split_last() {
                    Some((last, rest)) if alone && !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
                    _ => quoted.join(", "),
                }
            }
            Allowed::Word(word, meaning) => format!("`{word}`: {meaning}"),
            Allowed::FlowRate => "a rate within the flow's limits".to_owned(),
            Allowed::Rate => "a rate above 0".to_owned(),
            Allowed::Duration(bounds) if alone => bounds.to_string(),
            Allowed::Duration(bounds) => format!("a duration {bounds}"),
            Allowed::Number("", bounds) if alone => bounds.to_string(),
            Allowed::Number(what, bounds) => format!("a number{} {bounds}", of(what)),
            Allowed::Whole(what, min, max) => format!("a whole number{} from {min} to {max}", of(what)),
            Allowed::Times(word, bounds) => format!("a number of `{word}` {bounds}"),
        }
    }
}

impl ParamInfo {
    /// What it may be, in words: "from 1 ms to 60 s".
    pub fn range(&self) -> String {
        let all: Vec<String> = self.allowed.iter().map(|a| a.text(self.allowed.len() == 1)).collect();
        match all.split_last() {
            Some((last, rest)) if !rest.is_empty() => format!("{}, or {last}", rest.join(", ")),
            _ => all.concat(),
        }
    }

    /// What it is: `rate`, `duration`, `number`, `choice`, `flag`.
    pub fn unit(&self) -> &'static str {
        if self.allowed.iter().any(|a| matches!(a, Allowed::Duration(_))) {
            return "duration";
        }
        match self.allowed.first() {
            _ if self.allowed == FLAG => "flag",
            Some(Allowed::FlowRate | Allowed::Rate) => "rate",
            Some(Allowed::Number(..) | Allowed::Whole(..) | Allowed::Times(..)) => "number",
            _ => "choice",
        }
    }
}

/// One scheme.
#[derive(Clone, Copy, Debug)]
pub struct SchemeInfo {
    /// As in a scenario file.
    pub name: &'static str,
    /// For people.
    pub title: &'static str,
    /// Where it was published.
    pub source: &'static str,
    /// Its parameters.
    pub params: &'static [ParamInfo],
    /// Its constructor; [`build`] calls it.
    pub make: Constructor,
}

/// Makes a controller from settings that name no parameter which the scheme lacks. The values are read, and refused,
/// here.
pub type Constructor = fn(&Settings<'_>, &Env) -> Result<Box<dyn Controller>, ParamError>;

/// Whether the protections that the papers leave out are on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Safety {
    /// As the paper has it: no cap, no breaker, no halving in RCS's Backoff. For simulations.
    Paper,
    /// Fit for a real network.
    #[default]
    Default,
}

/// What a scheme must know about its surroundings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Env {
    /// The size of a full data packet on the wire, and of every dummy: what a paper's "packet" is.
    pub packet_size: Bytes,
    /// No controller goes below this.
    pub min_rate: Rate,
    /// The data rate before anything is known, where a scheme has no rule of its own.
    pub start_rate: Option<Rate>,
    /// No controller goes above this.
    pub max_rate: Rate,
    /// Whether the protections are on.
    pub safety: Safety,
}

impl Default for Env {
    fn default() -> Self {
        Env {
            packet_size: Bytes::new(1_000),
            min_rate: Rate::bps(100.0),
            start_rate: None,
            max_rate: Rate::mbps(10.0),
            safety: Safety::Default,
        }
    }
}

/// A setting that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParamError {
    /// No scheme has that name.
    #[error("`{found}` is not a controller; there are {}", .allowed.join(", "))]
    UnknownScheme {
        /// The name as given.
        found: String,
        /// All names.
        allowed: Vec<&'static str>,
        /// The nearest of them, if one is near.
        nearest: Option<&'static str>,
    },
    /// The scheme has no such parameter.
    #[error("`{scheme}` has no parameter `{found}`; it has {}", list(.allowed))]
    UnknownParam {
        /// The scheme.
        scheme: &'static str,
        /// The name as given.
        found: String,
        /// All of the scheme's parameters.
        allowed: Vec<&'static str>,
        /// The nearest of them, if one is near.
        nearest: Option<&'static str>,
    },
    /// The value cannot be used.
    #[error("`{scheme}.{name}` is `{found}`; allowed is {allowed}")]
    BadValue {
        /// The scheme.
        scheme: &'static str,
        /// The parameter.
        name: &'static str,
        /// The value as given.
        found: String,
        /// What is allowed.
        allowed: String,
    },
    /// The flow's own limits contradict each other.
    #[error("`{name}` is {found}; allowed is {allowed}")]
    BadEnv {
        /// The field of [`Env`].
        name: &'static str,
        /// The value as given.
        found: String,
        /// What is allowed.
        allowed: String,
    },
}

impl ParamError {
    /// The setting at fault; `None` if it is the scheme's name or the flow's limits.
    pub fn field(&self) -> Option<&str> {
        match self {
            ParamError::UnknownScheme { .. } => None,
            ParamError::UnknownParam { found, .. } => Some(found),
            ParamError::BadValue { name, .. } | ParamError::BadEnv { name, .. } => Some(name),
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            ParamError::UnknownScheme { nearest: Some(n), .. } | ParamError::UnknownParam { nearest: Some(n), .. } => {
                Some(format!("did you mean `{n}`?"))
            }
            _ => None,
        }
    }
}

fn list(names: &[&'static str]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// The name nearest to what was typed, if at most a third of the letters differ.
fn nearest(found: &str, names: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    names
        .map(|name| (distance(found, name), name))
        .min()
        .filter(|(d, name)| d * 3 <= found.len().max(name.len()).max(3))
        .map(|(_, name)| name)
}

/// Letters to insert, delete, replace or swap with their neighbour (restricted
/// Damerau-Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().take(64).collect(), b.chars().take(64).collect());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            rows[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let replace = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
                let mut best = replace.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
                if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                    best = best.min(rows[i - 2][j - 2] + 1);
                }
                best
            };
        }
    }
    rows[a.len()][b.len()]
}

/// A scheme's settings, read through its table: every default and every error comes from there.
#[derive(Debug)]
pub struct Settings<'a> {
    scheme: &'static SchemeInfo,
    given: &'a BTreeMap<String, String>,
}

impl<'a> Settings<'a> {
    /// Refuses parameters that the scheme does not have.
    ///
    /// # Errors
    /// [`ParamError::UnknownParam`].
    pub fn new(scheme: &'static SchemeInfo, given: &'a BTreeMap<String, String>) -> Result<Self, ParamError> {
        let names = || scheme.params.iter().map(|p| p.name);
        match given.keys().find(|key| !names().any(|name| name == key.as_str())) {
            None => Ok(Settings { scheme, given }),
            Some(key) => Err(ParamError::UnknownParam {
                scheme: scheme.name,
                found: key.clone(),
                allowed: names().collect(),
                nearest: nearest(key, names()),
            }),
        }
    }

    /// The name of the scheme that is being built.
    pub fn scheme(&self) -> &'static str {
        self.scheme.name
    }

    /// The text of a setting, or its default; and its entry.
    pub fn text(&self, name: &str) -> (&str, &'static ParamInfo) {
        let info = self.scheme.params.iter().find(|p| p.name == name);
        // A scheme that asks for what its own table lacks is a bug that the first test shows.
        let info = info.unwrap_or_else(|| panic!("`{}` has no parameter `{name}` in its table", self.scheme.name));
        (self.given.get(name).map_or(info.default, |text| text.trim()), info)
    }

    /// The error for this setting.
    pub fn bad(&self, name: &str) -> ParamError {
        let (text, info) = self.text(name);
        ParamError::BadValue {
            scheme: self.scheme.name,
            name: info.name,
            found: text.to_owned(),
            allowed: info.range(),
        }
    }

    /// A rate within the flow's limits, or the `word` that stands for `value`.
    ///
    /// # Errors
    /// [`ParamError::BadValue`].
    pub fn rate_or(&self, name: &str, word: &str, value: Rate, env: &Env) -> Result<Rate, ParamError> {
        let (text, info) = self.text(name);
        if text == word {
            return Ok(value);
        }
        let rate = parse_rate(text).map_err(|_| self.bad(name))?.with_packets_of(env.packet_size);
        if rate < env.min_rate || rate > env.max_rate {
            return Err(ParamError::BadValue {
                scheme: self.scheme.name,
                name: info.name,
                found: text.to_owned(),
                allowed: format!("from {} (the flow's min_rate) to {} (its max_rate)", env.min_rate, env.max_rate),
            });
        }
        Ok(rate)
    }

    /// A rate above nought.
    ///
    /// # Errors
    /// [`ParamError::BadValue`].
    pub fn rate(&self, name: &str, env: &Env) -> Result<Rate, ParamError> {
        let rate = parse_rate(self.text(name).0).map(|r| r.with_packets_of(env.packet_size));
        rate.ok().filter(|r| *r > Rate::ZERO).ok_or_else(|| self.bad(name))
    }

    /// A duration within the bounds of the table.
    ///
    /// # Errors
    /// [`ParamError::BadValue`].
    pub fn duration(&self, name: &str) -> Result<Duration, ParamError> {
        let (text, info) = self.text(name);
        let read = parse_duration(text).ok();
        read.filter(|d| info.allowed.iter().any(|a| matches!(a, Allowed::Duration(bounds) if bounds.contain(*d))))
            .ok_or_else(|| self.bad(name))
    }

    /// A bare number within the bounds of the table.
    ///
    /// # Errors
    /// [`ParamError::BadValue`].
    pub fn number(&self, name: &str) -> Result<f64, ParamError> {
        let (text, info) = self.text(name);
        let read = text.parse().ok();
        read.filter(|x| info.allowed.iter().any(|a| matches!(a, Allowed::Number(_, bounds) if bounds.contain(*x))))
            .ok_or_else(|| self.bad(name))
    }

    /// A whole number within the bounds of the table.
    ///
    /// # Errors
    /// [`ParamError::BadValue`].
    pub fn whole(&self, name: &str) -> Result<u64, ParamError> {
        let (text, info) = self.text(name);
        let within =
            |n: &u64| info.allowed.iter().any(|a| matches!(a, Allowed::Whole(_, min, max) if (min..=max).contains(&n)));
        text.parse().ok().filter(within).ok_or_else(|| self.bad(name))
    }

    /// A number before the word that the table has for it; `None` if something else is written.
    ///
    /// # Errors
    /// [`ParamError::BadValue`].
    pub fn times(&self, name: &str) -> Result<Option<f64>, ParamError> {
        let (text, info) = self.text(name);
        let with_word = info.allowed.iter().find_map(|a| match a {
            Allowed::Times(word, bounds) => Some((text.strip_suffix(word)?, bounds)),
            _ => None,
        });
        let Some((number, bounds)) = with_word else { return Ok(None) };
        let number = number.trim().parse().ok().filter(|x| bounds.contain(*x));
        number.map(Some).ok_or_else(|| self.bad(name))
    }

    /// `on` or `off`.
    ///
    /// # Errors
    /// [`ParamError::BadValue`].
    pub fn flag(&self, name: &str) -> Result<bool, ParamError> {
        self.choice(name, &[("on", true), ("off", false), ("true", true), ("false", false)])
    }

    /// One of several words.
    ///
    /// # Errors
    /// [`ParamError::BadValue`].
    pub fn choice<T: Copy>(&self, name: &str, options: &[(&str, T)]) -> Result<T, ParamError> {
        let (text, _) = self.text(name);
        options.iter().find(|(word, _)| *word == text).map(|(_, value)| *value).ok_or_else(|| self.bad(name))
    }
}

/// All schemes with their parameters.
pub fn schemes() -> &'static [SchemeInfo] {
    SCHEMES
}

/// Makes a controller.
///
/// # Errors
/// [`ParamError`]: the scheme or a parameter is unknown, a value is out of range, or the limits in
/// `env` contradict each other.
///
/// ```
/// use fairpace_control::{Env, build};
/// use std::collections::BTreeMap;
/// let settings = BTreeMap::from([("rate".to_owned(), "1.5 Mbit/s".to_owned())]);
/// assert!(build("fixed", &settings, &Env::default()).is_ok());
/// let error = build("fixd", &settings, &Env::default()).unwrap_err();
/// assert_eq!(error.hint().as_deref(), Some("did you mean `fixed`?"));
/// ```
pub fn build(scheme: &str, settings: &BTreeMap<String, String>, env: &Env) -> Result<Box<dyn Controller>, ParamError> {
    env.check()?;
    let names = || SCHEMES.iter().map(|s| s.name);
    match SCHEMES.iter().find(|s| s.name == scheme) {
        Some(info) => (info.make)(&Settings::new(info, settings)?, env),
        None => Err(ParamError::UnknownScheme {
            found: scheme.to_owned(),
            allowed: names().collect(),
            nearest: nearest(scheme, names()),
        }),
    }
}

impl Env {
    fn check(&self) -> Result<(), ParamError> {
        let bad = |name, found: &dyn fmt::Display, allowed: &str| {
            Err(ParamError::BadEnv { name, found: found.to_string(), allowed: allowed.to_owned() })
        };
        if !(1..=65_535).contains(&self.packet_size.get()) {
            return bad("packet_size", &self.packet_size, "1 B to 65535 B");
        }
        if self.min_rate <= Rate::ZERO {
            return bad("min_rate", &self.min_rate, "above 0");
        }
        if self.max_rate < self.min_rate {
            return bad("max_rate", &self.max_rate, &format!("at least min_rate, {}", self.min_rate));
        }
        match self.start_rate {
            Some(r) if r < self.min_rate || r > self.max_rate => {
                let allowed = format!("from {} (min_rate) to {} (max_rate)", self.min_rate, self.max_rate);
                bad("start_rate", &r, &allowed)
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairpace_units::End;

    fn given(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
    }

    fn error(scheme: &str, pairs: &[(&str, &str)], env: &Env) -> ParamError {
        match build(scheme, &given(pairs), env) {
            Err(e) => e,
            Ok(c) => panic!("accepted: {c:?}"),
        }
    }

    #[test]
    fn every_scheme_is_built_from_its_own_defaults_and_from_each_default_written_out() {
        for scheme in schemes() {
            let plain = build(scheme.name, &BTreeMap::new(), &Env::default()).expect(scheme.name);
            let defaults = scheme.params.iter().map(|p| (p.name.to_owned(), p.default.to_owned())).collect();
            let written = build(scheme.name, &defaults, &Env::default()).expect(scheme.name);
            assert_eq!(format!("{plain:?}"), format!("{written:?}"));
        }
    }

    #[test]
    fn every_parameter_has_a_range_and_a_sentence() {
        for p in schemes().iter().flat_map(|s| s.params) {
            assert!(!p.range().is_empty() && !p.doc.is_empty() && !p.default.is_empty(), "{}", p.name);
            assert!(["rate", "duration", "number", "choice", "flag"].contains(&p.unit()), "{}", p.name);
        }
    }

    /// Values at the ends of what a parameter may be, and values just beyond them.
    fn ends(allowed: &Allowed) -> (Vec<String>, Vec<String>) {
        fn of<T: Copy>(bounds: &Bounds<T>, next: fn(T, f64) -> T, text: fn(T) -> String) -> (Vec<String>, Vec<String>) {
            let (mut good, mut bad) = (Vec::new(), Vec::new());
            for (end, outwards) in [(bounds.low, 0.999), (bounds.high, 1.001)] {
                let inwards = 2.0 - outwards;
                match end {
                    End::At(x) => {
                        good.push(text(x));
                        bad.push(text(next(x, outwards)));
                    }
                    End::Beyond(x) => {
                        good.push(text(next(x, inwards)));
                        bad.push(text(x));
                    }
                    End::Open => {}
                }
            }
            (good, bad)
        }
        // Beyond nought lies the negative; a thousandth of it is no step.
        let step = |x: f64, by: f64| if x == 0.0 { by - 1.0 } else { x * by };
        match allowed {
            Allowed::Number(_, bounds) => of(bounds, step, |x| x.to_string()),
            Allowed::Times(word, bounds) => {
                let (good, _) = of(bounds, step, |x| x.to_string());
                let with = |x: String| format!("{x} {word}");
                (good.into_iter().map(with).collect(), vec![with("-1".to_owned()), with("1e12".to_owned())])
            }
            Allowed::Whole(_, min, max) => {
                let below = min.checked_sub(1).map_or_else(|| "-1".to_owned(), |n| n.to_string());
                (vec![min.to_string(), max.to_string()], vec![below, (max + 1).to_string()])
            }
            Allowed::Duration(bounds) => of(bounds, |d, by| d.mul_f64(by), |d| format!("{} ns", d.as_nanos())),
            Allowed::Words(words) => (words.iter().map(|w| (*w).to_owned()).collect(), vec!["no such word".to_owned()]),
            Allowed::Word(word, _) => (vec![(*word).to_owned()], vec![format!("{word}?")]),
            Allowed::FlowRate => (vec!["100 bit/s".to_owned(), "10 Mbit/s".to_owned()], vec!["11 Mbit/s".to_owned()]),
            Allowed::Rate => (vec!["1 bit/s".to_owned()], vec!["0 bit/s".to_owned()]),
        }
    }

    #[test]
    fn every_word_and_every_end_of_a_table_is_what_its_scheme_takes_and_nothing_beyond() {
        let mut tried = 0;
        for scheme in schemes() {
            for p in scheme.params {
                for (good, bad) in p.allowed.iter().map(ends) {
                    let take = |text: &String| build(scheme.name, &given(&[(p.name, text)]), &Env::default());
                    for text in &good {
                        assert!(take(text).is_ok(), "{}.{} refuses `{text}`", scheme.name, p.name);
                    }
                    for text in bad.iter().filter(|text| **text != "0 ns") {
                        let Err(e) = take(text) else { panic!("{}.{} takes `{text}`", scheme.name, p.name) };
                        assert_eq!(e.field(), Some(p.name), "{e}");
                    }
                    tried += good.len() + bad.len();
                }
            }
        }
        assert!(tried > 200, "{tried}");
    }

    #[test]
    fn an_unknown_scheme_names_the_nearest() {
        let e = error("rsc", &[], &Env::default());
        let all: Vec<_> = schemes().iter().map(|s| s.name).collect();
        assert_eq!(e.to_string(), format!("`rsc` is not a controller; there are {}", all.join(", ")));
        assert!(all.starts_with(&["rcs", "rap"]) && all.contains(&"fixed"), "{all:?}");
        assert_eq!(e.hint().as_deref(), Some("did you mean `rcs`?"));
        assert_eq!(error("tcp-friendly-thing", &[], &Env::default()).hint(), None);
    }

    #[test]
    fn an_unknown_parameter_names_all_and_the_nearest() {
        let e = error("fixed", &[("rat", "1 Mbit/s")], &Env::default());
        assert_eq!(e.to_string(), "`fixed` has no parameter `rat`; it has rate");
        assert_eq!((e.hint().as_deref(), e.field()), (Some("did you mean `rate`?"), Some("rat")));
        let e = error("rcs", &[("s_taget", "1 Mbit/s")], &Env::default());
        assert_eq!(e.hint().as_deref(), Some("did you mean `s_target`?"));
    }

    #[test]
    fn a_bad_value_says_what_was_found_and_what_is_allowed() {
        let of = |scheme, name, value| error(scheme, &[(name, value)], &Env::default()).to_string();
        assert_eq!(
            of("rcs", "t_b", "10"),
            "`rcs.t_b` is `10`; allowed is a number of `SRTT` from 1 to 1000, a duration from 100 ms to 1 h, or `none`: without limit"
        );
        assert_eq!(
            of("fixed", "rate", "20 Mbit/s"),
            "`fixed.rate` is `20 Mbit/s`; allowed is from 100 bit/s (the flow's min_rate) to 10 Mbit/s (its max_rate)"
        );
        assert_eq!(of("rap", "mu", "NaN"), "`rap.mu` is `NaN`; allowed is from 1 to 10");
        assert_eq!(of("rap", "fine_grain", "yes"), "`rap.fine_grain` is `yes`; allowed is `on` or `off`");
    }

    #[test]
    fn limits_that_contradict_each_other_are_refused() {
        let env = Env::default();
        let of = |env: Env| error("fixed", &[], &env).to_string();
        assert_eq!(of(Env { packet_size: Bytes::ZERO, ..env }), "`packet_size` is 0 B; allowed is 1 B to 65535 B");
        assert_eq!(of(Env { min_rate: Rate::ZERO, ..env }), "`min_rate` is 0 bit/s; allowed is above 0");
        assert_eq!(
            of(Env { max_rate: Rate::bps(1.0), ..env }),
            "`max_rate` is 1 bit/s; allowed is at least min_rate, 100 bit/s"
        );
        assert_eq!(
            of(Env { start_rate: Some(Rate::mbps(11.0)), ..env }),
            "`start_rate` is 11 Mbit/s; allowed is from 100 bit/s (min_rate) to 10 Mbit/s (max_rate)"
        );
    }
}
