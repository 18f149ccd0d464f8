//! The errors of the TOML reader, in the words of the fields of a scenario.

use crate::error::{Problem, ScenarioError};
use crate::locate::Locator;
use crate::param::Row;
use crate::quantity::{PART, WHOLE};
use crate::raw::SCENARIO;
use crate::stream::STREAMS;

/// The error from the words of the TOML reader, or of a field's own check.
pub(crate) fn from_toml(error: &toml::de::Error, file: &str, locator: Option<&Locator>) -> ScenarioError {
    let message = error.message();
    let span = error.span().unwrap_or(0..0);
    let Some(locator) = locator else {
        let line = syntax_line(error);
        return ScenarioError {
            file: file.to_owned(),
            line,
            problem: Box::new(Problem::Syntax { reason: one_line(message) }),
        };
    };
    let problem = problem_of(message, locator.path_of(&span));
    ScenarioError { file: file.to_owned(), line: locator.line_at(span.start), problem: Box::new(problem) }
}

/// The problem from the words of a reader of that field.
pub(crate) fn problem_of(message: &str, field: String) -> Problem {
    if let Some(rest) = message.strip_prefix("unknown field `") {
        let (_, expected) = rest.split_once('`').unwrap_or((rest, ""));
        Problem::UnknownField { field, allowed: backticked(expected) }
    } else if let Some(rest) = message.strip_prefix("missing field `") {
        let name = rest.trim_end_matches('`');
        let field = if field.is_empty() { name.to_owned() } else { format!("{field}.{name}") };
        Problem::Missing {
            allowed: row(&field).map_or_else(String::new, |row| format!("{}: {}", row.wanted(), row.doc)),
            field,
        }
    } else if let Some(rest) = message.strip_prefix("unknown variant `") {
        let (found, expected) = rest.split_once('`').unwrap_or((rest, ""));
        Problem::UnknownName {
            field,
            found: found.to_owned(),
            what: "one of the choices",
            allowed: backticked(expected),
            list: None,
        }
    } else if let Some((found, allowed)) = message
        .strip_prefix("invalid type: ")
        .or_else(|| message.strip_prefix("invalid value: "))
        .and_then(|rest| rest.split_once(", expected "))
    {
        let allowed = match allowed {
            // The name of a type of ours says nothing to a reader.
            name if name.starts_with("struct ") => "a table, as in `{ field = value }`".to_owned(),
            WHOLE => row(&field).map_or_else(|| WHOLE.to_owned(), |row| row.form.allowed()),
            other => other.to_owned(),
        };
        Problem::WrongType { field, found: one_line(found), allowed }
    } else {
        let mut parts = message.split(PART);
        match (parts.next(), parts.next(), parts.next()) {
            (Some(found), Some(wrong), Some(allowed)) => Problem::BadValue {
                field,
                found: one_line(found),
                wrong: wrong.to_owned(),
                allowed: allowed.to_owned(),
            },
            _ => Problem::Syntax { reason: one_line(message) },
        }
    }
}

/// The row of the field at that path: the fields of scenarios and of streams' files have no name in common at the top.
fn row(field: &str) -> Option<&'static Row> {
    SCENARIO.find(field).or_else(|| STREAMS.find(field))
}

/// The line of a syntax error, from the parser's own rendering (`line 3, column 5`).
fn syntax_line(error: &toml::de::Error) -> usize {
    let text = error.to_string();
    let number = text.split_once("line ").map_or("", |(_, rest)| rest);
    number.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap_or(1)
}

/// At most 80 characters of one line: a message stays readable whatever the file holds.
fn one_line(text: &str) -> String {
    let flat: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let flat = flat.trim();
    if flat.chars().count() <= 80 { flat.to_owned() } else { flat.chars().take(79).chain(['…']).collect() }
}

fn backticked(text: &str) -> Vec<String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}
