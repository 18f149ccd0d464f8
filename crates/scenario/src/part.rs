//! A part of a link as a scenario writes it: `{ kind = "red", max_p = 0.02 }`. A [`Family`] is the parts of one place,
//! such as all queues; a [`Kind`] is one of them, with the table of its parameters.
//!
//! Adding a kind is one constant with its rows, and its name in the family's list.

use crate::field::Param;
use crate::param::{Form, OneOf, Row, Usual, Value};
use schemars::{JsonSchema, SchemaGenerator};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::json;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::mem::discriminant;

/// The parts of one place: all queues, all kinds of loss.
pub trait Family: Sized + 'static {
    /// The simulator's type.
    type Model;
    /// The facts beside the part itself on which defaults and units depend.
    type Context: Default;
    /// Its name in the schema.
    const NAME: &'static str;
    /// The family, in a sentence.
    const DOC: &'static str;
    /// Its kinds. A part without `kind` is of the first one.
    const KINDS: &'static [&'static dyn AnyKind<Self>];
}

/// One kind of part, with the parameters of `M`.
pub struct Kind<F: Family, M: 'static> {
    /// As in a scenario file.
    pub name: &'static str,
    /// The kind: a sentence without its first capital and its full stop.
    pub doc: &'static str,
    /// Parameters with which it is often written, as in `p = 0.01`.
    pub example: &'static str,
    /// Its parameters.
    pub params: &'static [Param<M>],
    /// The parameters that hold where the scenario says nothing.
    pub usual: fn(&Given, &F::Context) -> M,
    /// The check of parameters that are right each by itself against each other.
    pub check: fn(&Given, &F::Context) -> Option<PartProblem>,
    /// The conversion into the simulator's type.
    pub model: fn(M, &Given, &F::Context) -> F::Model,
}

/// A kind whose parameter struct is its own affair.
#[allow(missing_docs)]
pub trait AnyKind<F: Family>: Sync {
    fn name(&self) -> &'static str;
    fn doc(&self) -> &'static str;
    fn example(&self) -> &'static str;
    /// The rows of its parameters, in order.
    fn rows(&self) -> Vec<&'static Row>;
    /// The field of one of its parameters, as set by what is given.
    fn field(&self, given: &Given, context: &F::Context, name: &str) -> Option<Value>;
    /// Its parameters, given or usual, with their names.
    fn values(&self, given: &Given, context: &F::Context) -> Vec<(&'static Row, Value)>;
    fn check(&self, given: &Given, context: &F::Context) -> Option<PartProblem>;
    fn model(&self, given: &Given, context: &F::Context) -> F::Model;
}

impl<F: Family, M> Kind<F, M> {
    fn set(&self, given: &Given, context: &F::Context) -> M {
        let mut model = (self.usual)(given, context);
        for param in self.params {
            if let Some(value) = given.0.get(param.row.name) {
                (param.at)(&mut model).set(value);
            }
        }
        model
    }
}

impl<F: Family, M: 'static> AnyKind<F> for Kind<F, M> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn doc(&self) -> &'static str {
        self.doc
    }

    fn example(&self) -> &'static str {
        self.example
    }

    fn rows(&self) -> Vec<&'static Row> {
        self.params.iter().map(|p| &p.row).collect()
    }

    fn field(&self, given: &Given, context: &F::Context, name: &str) -> Option<Value> {
        let param = self.params.iter().find(|p| p.row.name == name)?;
        Some((param.at)(&mut self.set(given, context)).get(&param.row.form))
    }

    fn values(&self, given: &Given, context: &F::Context) -> Vec<(&'static Row, Value)> {
        let value = |row: &'static Row| {
            let usual = || match row.usual {
                Usual::Model | Usual::Words(_) => self.field(given, context, row.name),
                Usual::Needed | Usual::Optional => None,
            };
            // As it was written, if it was.
            Some((row, given.get(row.name).cloned().or_else(usual)?))
        };
        self.rows().into_iter().filter_map(value).collect()
    }

    fn check(&self, given: &Given, context: &F::Context) -> Option<PartProblem> {
        (self.check)(given, context)
    }

    fn model(&self, given: &Given, context: &F::Context) -> F::Model {
        (self.model)(self.set(given, context), given, context)
    }
}

/// The parameters that a scenario gives, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Given(BTreeMap<Cow<'static, str>, Value>);

impl Given {
    /// One parameter.
    #[cfg(test)]
    pub(crate) fn of(name: &'static str, value: Value) -> Given {
        Given(BTreeMap::from([(name.into(), value)]))
    }

    /// The value of a parameter, if it is given.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }
}

/// The fault of a part. Keys are those of its parameters.
#[derive(Clone, Debug, PartialEq)]
pub enum PartProblem {
    /// A parameter has no effect: its key, with what, what to do.
    NoEffect(String, String, String),
    /// A parameter must be there: its key, what to write.
    Missing(String, String),
    /// A value: its key, the value as written, what is wrong, what is allowed.
    Bad(String, String, String, String),
}

impl PartProblem {
    /// The same of a field below `key`.
    #[must_use]
    pub(crate) fn below(self, key: &str) -> PartProblem {
        let full = |name: String| format!("{key}.{name}");
        match self {
            PartProblem::NoEffect(name, with, remedy) => PartProblem::NoEffect(full(name), with, remedy),
            PartProblem::Missing(name, allowed) => PartProblem::Missing(full(name), allowed),
            PartProblem::Bad(name, found, wrong, allowed) => PartProblem::Bad(full(name), found, wrong, allowed),
        }
    }
}

/// A part of a family: its kind, and the parameters that are given.
pub struct Part<F> {
    /// The name of its kind.
    pub kind: Cow<'static, str>,
    given: Given,
    family: PhantomData<fn() -> F>,
}

impl<F: Family> Part<F> {
    /// A part of that kind with its usual parameters. Whether there is such a kind is checked with the scenario.
    pub fn of(kind: &'static str) -> Part<F> {
        Part { kind: kind.into(), given: Given::default(), family: PhantomData }
    }

    /// The same with a parameter of this value. Whether the kind has such a parameter, and whether the value is
    /// allowed, is checked with the scenario.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<Value>) -> Part<F> {
        self.set(name, value);
        self
    }

    /// Gives a parameter this value, as [`Part::with`] does.
    pub fn set(&mut self, name: &'static str, value: impl Into<Value>) {
        self.given.0.insert(name.into(), value.into());
    }

    /// The value of a parameter, if it is given.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.given.get(name)
    }

    /// Reads the texts of parameters that kinds have in different forms. A text that the kind cannot read stays one, and
    /// is refused by the check.
    fn decide(&mut self) {
        for row in self.known().map_or_else(Vec::new, |kind| kind.rows()) {
            if let Some(value @ Value::Word(_)) = self.given.0.get_mut(row.name)
                && let Some(read) = row.form.read(value)
            {
                *value = read;
            }
        }
    }

    fn known(&self) -> Option<&'static dyn AnyKind<F>> {
        F::KINDS.iter().find(|k| k.name() == self.kind).copied()
    }

    /// The fault of the part, if there is one.
    pub(crate) fn problem(&self, context: &F::Context) -> Option<PartProblem> {
        let Some(kind) = self.known() else {
            let wrong = "is not one of the choices".to_owned();
            let names = OneOf(&names::<F>()).to_string();
            return Some(PartProblem::Bad("kind".to_owned(), self.kind.to_string(), wrong, names));
        };
        let rows = kind.rows();
        if let Some(name) = self.given.0.keys().find(|name| rows.iter().all(|r| r.name != *name)) {
            let kinds = F::KINDS.iter().filter(|k| k.rows().iter().any(|r| r.name == *name));
            let kinds: Vec<String> = kinds.map(|k| format!("`kind = \"{}\"`", k.name())).collect();
            let with = format!("kind `{}`", kind.name());
            let remedy = match kinds.is_empty() {
                true => format!("leave `{name}` out"),
                false => format!("write {}, or leave `{name}` out", kinds.join(" or ")),
            };
            return Some(PartProblem::NoEffect(name.to_string(), with, remedy));
        }
        for row in rows {
            match self.given.get(row.name) {
                Some(value) => {
                    let bad =
                        |(wrong, allowed)| PartProblem::Bad(row.name.to_owned(), value.to_string(), wrong, allowed);
                    if let Some(problem) = row.refusal(value).map(bad) {
                        return Some(problem);
                    }
                }
                None if matches!(row.usual, Usual::Needed) => {
                    let allowed = format!("kind `{}` needs it: {}", kind.name(), row.wanted());
                    return Some(PartProblem::Missing(row.name.to_owned(), allowed));
                }
                None => {}
            }
        }
        kind.check(&self.given, context)
    }

    /// The part in the simulator's type. A kind that there is not, which no checked scenario has, is taken for the
    /// first one.
    pub fn model(&self, context: &F::Context) -> F::Model {
        self.known().unwrap_or(F::KINDS[0]).model(&self.given, context)
    }

    /// The same part with its kind's defaults written out.
    #[must_use]
    pub(crate) fn resolved(&self, context: &F::Context) -> Part<F> {
        let Some(kind) = self.known() else { return self.clone() };
        let values = kind.values(&self.given, context).into_iter().map(|(row, value)| (row.name.into(), value));
        Part { kind: self.kind.clone(), given: Given(values.collect()), family: PhantomData }
    }
}

fn names<F: Family>() -> Vec<&'static str> {
    F::KINDS.iter().map(|k| k.name()).collect()
}

/// The forms that the kinds have for a parameter of that name; bounds aside, each once.
fn forms<F: Family>(name: &str) -> Vec<&'static Form> {
    let mut all: Vec<&'static Form> = Vec::new();
    for row in F::KINDS.iter().flat_map(|k| k.rows()).filter(|row| row.name == name) {
        if all.iter().all(|known| discriminant(*known) != discriminant(&row.form)) {
            all.push(&row.form);
        }
    }
    all
}

/// The rows of all kinds, each name once, in order of appearance.
fn rows<F: Family>() -> Vec<&'static Row> {
    let mut all: Vec<&'static Row> = Vec::new();
    for row in F::KINDS.iter().flat_map(|k| k.rows()) {
        if all.iter().all(|known| known.name != row.name) {
            all.push(row);
        }
    }
    all
}

impl<F: Family> Default for Part<F> {
    fn default() -> Self {
        Part::of(F::KINDS[0].name())
    }
}

impl<F> Clone for Part<F> {
    fn clone(&self) -> Self {
        Part { kind: self.kind.clone(), given: self.given.clone(), family: PhantomData }
    }
}

impl<F> PartialEq for Part<F> {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind && self.given == other.given
    }
}

impl<F> fmt::Debug for Part<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Part").field("kind", &self.kind).field("given", &self.given.0).finish()
    }
}

impl<F: Family> Serialize for Part<F> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut map = s.serialize_map(None)?;
        map.serialize_entry("kind", &self.kind)?;
        for (name, value) in &self.given.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl<'de, F: Family> Deserialize<'de> for Part<F> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_any(Table(PhantomData))
    }
}

/// Reads the table of a part: each parameter by the row of that name, so that an error has the place of the value.
/// A later check decides which of them the kind has.
struct Table<F>(PhantomData<F>);

impl<'de, F: Family> Visitor<'de> for Table<F> {
    type Value = Part<F>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "struct {}", F::NAME)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Part<F>, A::Error> {
        let mut part = Part::default();
        let rows = rows::<F>();
        while let Some(key) = map.next_key_seed(Key(&rows))? {
            match key {
                None => part.kind = map.next_value_seed(Name(&names::<F>()))?.into(),
                Some(row) => {
                    let value = match forms::<F>(row.name)[..] {
                        [form] => map.next_value_seed(form)?,
                        // The kind decides, and may come later.
                        _ => map.next_value_seed(&Form::Text)?,
                    };
                    part.given.0.insert(row.name.into(), value);
                }
            }
        }
        part.decide();
        Ok(part)
    }
}

/// A key: `kind`, or a row's name.
struct Key<'r>(&'r [&'static Row]);

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = Option<&'static Row>;

    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<Self::Value, D::Error> {
        d.deserialize_identifier(self)
    }
}

impl Visitor<'_> for Key<'_> {
    type Value = Option<&'static Row>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a parameter")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
        if name == "kind" {
            return Ok(None);
        }
        self.0.iter().find(|r| r.name == name).map(|r| Some(*r)).ok_or_else(|| {
            let all: Vec<&str> = std::iter::once("kind").chain(self.0.iter().map(|r| r.name)).collect();
            E::custom(format!("unknown field `{name}`, expected one of `{}`", all.join("`, `")))
        })
    }
}

/// The name of a kind.
struct Name<'n>(&'n [&'static str]);

impl<'de> DeserializeSeed<'de> for Name<'_> {
    type Value = &'static str;

    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<&'static str, D::Error> {
        d.deserialize_any(OneOf(self.0))
    }
}

impl<F: Family> JsonSchema for Part<F> {
    fn schema_name() -> Cow<'static, str> {
        F::NAME.into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> schemars::Schema {
        let mut properties = serde_json::Map::new();
        let kinds: Vec<String> = F::KINDS.iter().map(|k| format!("`{}`: {}", k.name(), k.doc())).collect();
        let kind = json!({ "enum": names::<F>(), "default": F::KINDS[0].name(), "description": kinds.join("; ") });
        properties.insert("kind".to_owned(), kind);
        for row in rows::<F>() {
            let mut schema = match forms::<F>(row.name)[..] {
                [form] => form.schema(generator),
                ref forms => {
                    let any: Vec<schemars::Schema> = forms.iter().map(|form| form.schema(generator)).collect();
                    schemars::json_schema!({ "anyOf": any })
                }
            };
            schema.insert("description".to_owned(), json!(said_of::<F>(row.name)));
            properties.insert(row.name.to_owned(), schema.to_value());
        }
        schemars::json_schema!({
            "description": F::DOC, "type": "object", "properties": properties, "additionalProperties": false,
        })
    }
}

/// The descriptions of a parameter by kind: "`red`: the chance at `max_threshold`; 0.1 if absent".
fn said_of<F: Family>(name: &str) -> String {
    let mut said: Vec<(Vec<&str>, String)> = Vec::new();
    for kind in F::KINDS {
        let Some(row) = kind.rows().into_iter().find(|r| r.name == name) else { continue };
        let default = match usual(*kind, row) {
            Some(default) => format!("; {default} if absent"),
            None if matches!(row.usual, Usual::Needed) => "; must be given".to_owned(),
            None => String::new(),
        };
        let text = format!("{}{default}", row.doc);
        match said.iter_mut().find(|(_, known)| *known == text) {
            Some((kinds, _)) => kinds.push(kind.name()),
            None => said.push((vec![kind.name()], text)),
        }
    }
    let each = said.into_iter().map(|(kinds, text)| format!("`{}`: {text}", kinds.join("`, `")));
    each.collect::<Vec<_>>().join(". ")
}

/// The value that holds where a scenario does not give a parameter, in words.
fn usual<F: Family>(kind: &dyn AnyKind<F>, row: &Row) -> Option<String> {
    match row.usual {
        Usual::Words(words) => Some(words.to_owned()),
        Usual::Model => {
            let values = kind.values(&Given::default(), &F::Context::default());
            values.into_iter().find(|(r, _)| r.name == row.name).map(|(_, value)| value.to_string())
        }
        Usual::Needed | Usual::Optional => None,
    }
}

/// A kind and its parameters, for lists and documents.
#[derive(Clone, Debug)]
pub struct About {
    /// The kind's name.
    pub name: &'static str,
    /// The kind in a sentence.
    pub doc: &'static str,
    /// Parameters with which it is often written.
    pub example: &'static str,
    /// Its parameters, each with what holds where the scenario says nothing.
    pub parameters: Vec<(&'static Row, Option<String>)>,
}

/// Every kind of a family.
pub fn about<F: Family>() -> Vec<About> {
    let one = |kind: &&'static dyn AnyKind<F>| About {
        name: kind.name(),
        doc: kind.doc(),
        example: kind.example(),
        parameters: kind.rows().into_iter().map(|row| (row, usual(*kind, row))).collect(),
    };
    F::KINDS.iter().map(one).collect()
}

#[cfg(test)]
mod tests;
