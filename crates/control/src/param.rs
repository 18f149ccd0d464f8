//! The parameters of schemes: their names and defaults, the values that each may have, and the error for a setting that
//! cannot be used.
//!
//! A scheme brings a table of its parameters; `fairpace list`, the scenario's schema, the defaults
//! and the error messages are all read from it. A default is written once, as text, and goes the
//! same way as a setting.

use fairpace_units::{Bounds, Duration};

/// One parameter of a scheme: the only place that says its name, its default and what it may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ParamInfo {
    /// As in a scenario file.
    pub name: &'static str,
    /// The paper's symbol; empty if it has none.
    pub symbol: &'static str,
    /// The default, as one would write it.
    pub default: &'static str,
    /// The values that are allowed: one of these.
    pub allowed: &'static [Allowed],
    /// The parameter's effect.
    pub doc: &'static str,
}

/// A form of allowed values.
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
    /// The allowed values, in words: "from 1 ms to 60 s".
    pub fn range(&self) -> String {
        let all: Vec<String> = self.allowed.iter().map(|a| a.text(self.allowed.len() == 1)).collect();
        match all.split_last() {
            Some((last, rest)) if !rest.is_empty() => format!("{}, or {last}", rest.join(", ")),
            _ => all.concat(),
        }
    }

    /// The kind of value: `rate`, `duration`, `number`, `choice`, `flag`.
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
        /// The values that are allowed.
        allowed: String,
    },
    /// The flow's own limits contradict each other.
    #[error("`{name}` is {found}; allowed is {allowed}")]
    BadEnv {
        /// The field of [`crate::Env`].
        name: &'static str,
        /// The value as given.
        found: String,
        /// The values that are allowed.
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

    /// The remedy, if there is a known one.
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
pub(crate) fn nearest(found: &str, names: impl Iterator<Item = &'static str>) -> Option<&'static str> {
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
