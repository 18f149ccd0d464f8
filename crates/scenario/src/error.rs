//! The errors of scenarios: each names file, line, field, value, and the values allowed, with the remedy.

/// Why a scenario was refused. Shown as `file:line: problem`; [`ScenarioError::hint`] is the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {problem}", place(file, *line))]
pub struct ScenarioError {
    /// The file as it was named.
    pub file: String,
    /// Line of the field, from 1; 0 if the file as a whole is meant.
    pub line: usize,
    /// The fault.
    pub problem: Box<Problem>,
}

fn place(file: &str, line: usize) -> String {
    if line == 0 { file.to_owned() } else { format!("{file}:{line}") }
}

/// A scenario that can be run, but hardly does what was meant. Shown as `file:line: text`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioWarning {
    /// The file as it was named.
    pub file: String,
    /// Line of the field, from 1.
    pub line: usize,
    /// The oddity, and its consequence.
    pub text: String,
}

impl std::fmt::Display for ScenarioWarning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", place(&self.file, self.line), self.text)
    }
}

/// The kinds of trouble. Fields are paths as in `flows[2].controller`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The file cannot be read.
    #[error("cannot be read: {reason}")]
    Unreadable {
        /// As the system says it.
        reason: String,
    },
    /// Not TOML at all.
    #[error("is not TOML: {reason}")]
    Syntax {
        /// As the parser says it.
        reason: String,
    },
    /// A key that means nothing.
    #[error("`{field}` is not a field")]
    UnknownField {
        /// Its path.
        field: String,
        /// The names that may stand there.
        allowed: Vec<String>,
    },
    /// A field that must be there is not.
    #[error("`{field}` is missing")]
    Missing {
        /// Its path.
        field: String,
        /// The form to write.
        allowed: String,
    },
    /// A value of the wrong kind: a number where text with a unit should be.
    #[error("`{field}` is {found}, but must be {allowed}")]
    WrongType {
        /// Its path.
        field: String,
        /// The value found.
        found: String,
        /// The values that are allowed.
        allowed: String,
    },
    /// A value that is not allowed.
    #[error("`{field}` is `{found}`, which {wrong}")]
    BadValue {
        /// Its path.
        field: String,
        /// The value as written.
        found: String,
        /// "is not a duration: the unit is not a time".
        wrong: String,
        /// The values that are allowed.
        allowed: String,
    },
    /// A name that is none of those known.
    #[error("`{field}` is `{found}`, which is not {what}")]
    UnknownName {
        /// Its path.
        field: String,
        /// The name as written.
        found: String,
        /// With its article: "a controller".
        what: &'static str,
        /// The names there are.
        allowed: Vec<String>,
        /// Command that shows them, if there is one.
        list: Option<&'static str>,
    },
    /// A list with nothing in it.
    #[error("`{field}` is empty")]
    Empty {
        /// Its path.
        field: String,
        /// The contents that should be there.
        allowed: String,
    },
    /// Fields that contradict each other, or one that would have no effect.
    #[error("`{field}` {wrong}")]
    Conflict {
        /// Its path.
        field: String,
        /// The fault.
        wrong: String,
        /// The remedy.
        remedy: String,
    },
    /// A file that the scenario names cannot be used.
    #[error("`{field}` names `{path}`, which {reason}")]
    BadFile {
        /// Its path in the scenario.
        field: String,
        /// The file, as resolved.
        path: String,
        /// Why not.
        reason: String,
    },
}

impl ScenarioError {
    /// The remedy, if there is a known one.
    pub fn hint(&self) -> Option<String> {
        match &*self.problem {
            Problem::Unreadable { .. } => {
                Some("name a file of TOML that can be read, as `scenarios/geo.toml` is one".to_owned())
            }
            Problem::Syntax { .. } => {
                Some("the format is TOML (https://toml.io); text is quoted, as in `rtt = \"550 ms\"`".to_owned())
            }
            Problem::UnknownField { field, allowed } => {
                let last = field.rsplit('.').next().unwrap_or(field);
                Some(choices(last, allowed, None))
            }
            Problem::UnknownName { found, allowed, list, .. } => Some(choices(found, allowed, *list)),
            Problem::Missing { allowed, .. } | Problem::BadValue { allowed, .. } | Problem::Empty { allowed, .. } => {
                Some(allowed.clone()).filter(|a| !a.is_empty())
            }
            Problem::Conflict { remedy, .. } => Some(remedy.clone()),
            Problem::WrongType { .. } => None,
            Problem::BadFile { .. } => Some("paths are relative to the scenario file".to_owned()),
        }
    }
}

/// `did you mean ...?` and what there is.
fn choices(found: &str, allowed: &[String], list: Option<&str>) -> String {
    let near = nearest(found, allowed.iter().map(String::as_str));
    let mut hint = near.map_or_else(String::new, |n| format!("did you mean `{n}`? "));
    match list {
        Some(command) => hint.push_str(&format!("`{command}` shows all")),
        None => {
            let names: Vec<String> = allowed.iter().map(|a| format!("`{a}`")).collect();
            hint.push_str(&format!("allowed: {}", names.join(", ")));
        }
    }
    hint
}

/// The name nearest to `found`, if one is near: an edit distance of at most a third of its length,
/// and at least one edit is forgiven.
pub fn nearest<'a>(found: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (found.chars().count() / 3).max(1);
    names.map(|n| (distance(found, n), n)).filter(|(d, _)| *d <= limit).min_by_key(|(d, _)| *d).map(|(_, n)| n)
}

/// Levenshtein's distance, with a swap of neighbours counted as one edit.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().take(64).collect(), b.chars().take(64).collect());
    let width = b.len() + 1;
    let mut table: Vec<usize> = vec![0; (a.len() + 1) * width];
    let at = |i: usize, j: usize| i * width + j;
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            table[at(i, j)] = if i == 0 || j == 0 {
                i + j
            } else {
                let same = usize::from(a[i - 1] != b[j - 1]);
                let mut best =
                    (table[at(i - 1, j)] + 1).min(table[at(i, j - 1)] + 1).min(table[at(i - 1, j - 1)] + same);
                if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                    best = best.min(table[at(i - 2, j - 2)] + 1);
                }
                best
            };
        }
    }
    table[at(a.len(), b.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_found_and_a_far_one_is_not_suggested() {
        let names = ["rcs", "rap", "fixed", "tcp-newreno"];
        assert_eq!(nearest("rsc", names.into_iter()), Some("rcs"));
        assert_eq!(nearest("tcp-newreon", names.into_iter()), Some("tcp-newreno"));
        assert_eq!(nearest("quic", names.into_iter()), None);
    }
}
