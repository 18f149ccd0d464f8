//! A table of a scenario file that is a struct here: `[path]`, one of `[[flows]]`. The struct's fields hold what is
//! written, and serde reads them; its [`Row`] has everything else about a field.
//!
//! All tables are one tree, from [`SCENARIO`](crate::SCENARIO) down. The check of bounds, the JSON Schema, `fairpace list`
//! and the tables in `docs/` walk that tree; a test compares the rows with what the reader takes.

use crate::param::{Form, Row, Table, Usual, Value};
use crate::part::PartProblem;
use crate::quantity::Size;
use fairpace_units::Bytes;
use serde::de::{Deserialize as _, DeserializeOwned, DeserializeSeed};
use serde_json::Value as Json;

/// A table, where it stands in a scenario, and its fields.
#[derive(Clone, Debug)]
pub struct AboutTable {
    /// Its place, as in `flows[].access`; empty for the top of the file.
    pub at: String,
    /// Its name in the JSON Schema.
    pub name: &'static str,
    /// The table in a sentence.
    pub doc: &'static str,
    /// Its fields, each with its default.
    pub fields: Vec<(&'static Row, Option<String>)>,
}

impl Table {
    /// The table that `T` is read from, with the defaults of `T`.
    pub(crate) const fn of<T>(name: &'static str, doc: &'static str, rows: &'static [Row]) -> Table
    where
        T: serde::Serialize + DeserializeOwned + Default,
    {
        Table {
            name,
            doc,
            rows,
            usual: || written(&T::default()),
            #[cfg(test)]
            reader: |t| T::deserialize(t).err().map(text),
        }
    }

    /// The same with the defaults that a model has.
    #[must_use]
    pub(crate) const fn usually(self, usual: fn() -> Json) -> Table {
        Table { usual, ..self }
    }

    /// This table and all that are in it, each once, where it stands first.
    pub fn about(&'static self) -> Vec<AboutTable> {
        let about = |(at, table): (String, &'static Table)| AboutTable {
            at,
            name: table.name,
            doc: table.doc,
            fields: table.rows.iter().map(|row| (row, table.default_of(row))).collect(),
        };
        self.all().into_iter().map(about).collect()
    }

    /// The same as they are, each with its place.
    fn all(&'static self) -> Vec<(String, &'static Table)> {
        let mut found = Vec::new();
        self.visit("", &mut found);
        found
    }

    fn visit(&'static self, at: &str, found: &mut Vec<(String, &'static Table)>) {
        if found.iter().any(|(_, known)| known.name == self.name) {
            return;
        }
        found.push((at.to_owned(), self));
        for row in self.rows {
            let at = if at.is_empty() { row.name.to_owned() } else { format!("{at}.{}", row.name) };
            row.form.each_table(&mut |table, list| {
                table.visit(&if list { format!("{at}[]") } else { at.clone() }, found);
            });
        }
    }

    /// The row of a field by its path below this table, as in `flows[2].on_off.on`; none for what is not in the tree.
    pub(crate) fn find(&self, path: &str) -> Option<&'static Row> {
        let (first, rest) = path.split_once('.').unwrap_or((path, ""));
        let name = first.split('[').next().unwrap_or(first);
        let row = self.rows.iter().find(|row| row.name == name)?;
        if rest.is_empty() {
            return Some(row);
        }
        let mut found = None;
        row.form.each_table(&mut |table, _| found = found.or_else(|| table.find(rest)));
        found
    }

    /// The first value that is out of its bounds, or that no file could hold. Rates in packets per second are judged by
    /// the nearest `packet_size` above them.
    pub(crate) fn problem(&self, table: &Json) -> Option<PartProblem> {
        self.problem_with(table, Bytes::ZERO)
    }

    fn problem_with(&self, table: &Json, packet: Bytes) -> Option<PartProblem> {
        if !table.is_object() {
            return Some(unreadable(self.name, table, "a table".to_owned()));
        }
        let own = table.get("packet_size").and_then(|size| Size::deserialize(size).ok());
        let packet = own.map_or(packet, |size| size.get());
        self.rows.iter().find_map(|row| row.form.problem(row, table.get(row.name)?, packet))
    }

    /// The value that holds where a scenario does not give a field, in words; none if the field must be given.
    fn default_of(&self, row: &Row) -> Option<String> {
        match row.usual {
            Usual::Words(words) => Some(words.to_owned()),
            Usual::Model => row.form.words((self.usual)().get(row.name)?),
            Usual::Needed | Usual::Optional => None,
        }
    }
}

impl Form {
    /// The tables that a value may be, or be a list of.
    fn each_table(&self, visit: &mut dyn FnMut(&'static Table, bool)) {
        match self {
            Form::Table(table) => visit(table, false),
            Form::Tables(table) => visit(table, true),
            Form::Either(forms) => forms.iter().for_each(|form| form.each_table(visit)),
            _ => {}
        }
    }

    /// The first value that is out of its bounds, in what is written for `row`.
    fn problem(&self, row: &Row, written: &Json, packet: Bytes) -> Option<PartProblem> {
        match (self, written) {
            (Form::Table(table), Json::Object(_)) => table.problem_with(written, packet).map(|p| p.below(row.name)),
            (Form::Tables(table), Json::Array(all)) => {
                let each = |(i, one)| table.problem_with(one, packet).map(|p| p.below(&format!("{}[{i}]", row.name)));
                all.iter().enumerate().find_map(each)
            }
            (Form::Either(forms), _) => match forms.iter().find(|form| form.takes(written)) {
                Some(form) => form.problem(row, written, packet),
                None => Some(unreadable(row.name, written, row.allowed())),
            },
            (Form::Other(..), _) => None,
            _ => {
                // A program may set a value that no file could hold.
                let text = || written.as_str().map(|text| Value::Word(text.to_owned().into()));
                let Some(value) = self.value(written).or_else(text) else {
                    return Some(unreadable(row.name, written, row.allowed()));
                };
                let found = value.to_string();
                let (wrong, allowed) = Row { form: *self, ..*row }.refusal(&value.with_packets_of(packet))?;
                Some(PartProblem::Bad(row.name.to_owned(), found, wrong, allowed))
            }
        }
    }

    /// Whether what is written is of this form.
    fn takes(&self, written: &Json) -> bool {
        match self {
            Form::Table(_) => written.is_object(),
            Form::Tables(_) => written.is_array(),
            // Its type has read it, or a program made it of that type.
            Form::Other(..) => true,
            _ => self.value(written).is_some(),
        }
    }

    /// A value as written, whether within the bounds or not; none if the form is another.
    fn value(&self, written: &Json) -> Option<Value> {
        match self {
            Form::Whole(..) => written.as_u64().map(Value::Whole),
            form => form.deserialize(written).ok(),
        }
    }

    /// A default in words.
    fn words(&self, written: &Json) -> Option<String> {
        match (self, written) {
            (Form::Either(forms), _) => forms.iter().find_map(|form| form.words(written)),
            (Form::Word(_), Json::String(word)) => self.value(written).map(|_| format!("`{word}`")),
            (Form::Tables(_), Json::Array(all)) if all.is_empty() => Some("none".to_owned()),
            (Form::Other(..), Json::Object(part)) => {
                part.get("kind").map(|kind| format!("`{}`", kind.as_str().unwrap_or("")))
            }
            (Form::Other(..), Json::String(text)) => Some(text.clone()),
            _ => self.value(written).map(|value| value.to_string()),
        }
    }
}

/// The fault of a value that is of none of its field's forms.
fn unreadable(field: &str, written: &Json, allowed: String) -> PartProblem {
    let found = written.as_str().map_or_else(|| written.to_string(), str::to_owned);
    PartProblem::Bad(field.to_owned(), found, "is not of the right kind".to_owned(), allowed)
}

/// A table as a file would write it.
pub(crate) fn written<T: serde::Serialize>(table: &T) -> Json {
    serde_json::to_value(table).unwrap_or_default()
}

#[cfg(test)]
fn text(error: serde_json::Error) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests;
