//! One declaration per parameter: a [`Row`] says its name, symbol, type, bounds, default and effect. The reader, the
//! check, the JSON Schema, `fairpace list` and the tables in `docs/` come from it.
//!
//! A [`Param`] is a row and the field of the simulator's parameter struct that it sets. No second struct and no
//! conversion stands between the two, and the default is what that struct's own constructor says.

use crate::quantity::{Chance, Real, Room, Size, Time, refuse};
use fairpace_path::{Capacity, Thresholds};
use fairpace_units::{Bounds, Bytes, Duration, End, Packets, Probability};
use schemars::SchemaGenerator;
use serde::de::{DeserializeSeed, Deserializer, Error, Unexpected, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::borrow::Cow;
use std::fmt;

/// The description of a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// As in a scenario file.
    pub name: &'static str,
    /// The symbol of its source; empty if it has none.
    pub symbol: &'static str,
    /// Its type and its bounds.
    pub form: Form,
    /// The value that holds where the scenario gives none.
    pub usual: Usual,
    /// The consequence of a value out of bounds: "never drops anything".
    pub wrong: &'static str,
    /// The parameter's effect: a sentence without its first capital and its full stop.
    pub doc: &'static str,
}

/// The type of a parameter, and its bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Form {
    /// A span of time.
    Time(Bounds<Duration>),
    /// A number of bytes.
    Size(Bounds<Bytes>),
    /// The room of a queue, in packets or bytes.
    Room,
    /// A number from 0 to 1; narrower bounds.
    Chance(Bounds<f64>),
    /// A number.
    Real(Bounds<f64>),
    /// A list of numbers.
    Reals,
    /// A list of lists of numbers.
    Matrix,
    /// A whole number from one to another.
    Whole(u64, u64),
    /// Yes or no.
    Flag,
    /// One of these words.
    Word(&'static [&'static str]),
}

/// The value that holds where the scenario gives none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Usual {
    /// The value of the model's constructor, whatever else the scenario holds.
    Model,
    /// The value that the model's constructor derives from the rest of the scenario, in words.
    Words(&'static str),
    /// Nothing: it must be given.
    Needed,
    /// Nothing, and it need not be given.
    Optional,
}

/// Any probability.
pub const CHANCE: Form = Form::Chance(Bounds { low: End::At(0.0), high: End::At(1.0) });

impl Row {
    /// A parameter with the model's default.
    pub const fn new(name: &'static str, symbol: &'static str, form: Form, doc: &'static str) -> Row {
        Row { name, symbol, form, usual: Usual::Model, wrong: "is out of range", doc }
    }

    /// With a default that depends on the rest of the scenario.
    #[must_use]
    pub const fn usually(self, words: &'static str) -> Row {
        Row { usual: Usual::Words(words), ..self }
    }

    /// Without a default.
    #[must_use]
    pub const fn needed(self) -> Row {
        Row { usual: Usual::Needed, ..self }
    }

    /// Without a default, and without need of one.
    #[must_use]
    pub const fn optional(self) -> Row {
        Row { usual: Usual::Optional, ..self }
    }

    /// With words of its own for a value out of bounds.
    #[must_use]
    pub const fn wrong(self, wrong: &'static str) -> Row {
        Row { wrong, ..self }
    }
}

impl Form {
    /// The values that may be written, for tables: "a duration, from 1 us to 1 h".
    pub fn allowed(&self) -> String {
        let within = |what: &str, bounds: &dyn fmt::Display| match bounds.to_string() {
            any if any == "any" => what.to_owned(),
            bounds => format!("{what}, {bounds}"),
        };
        match self {
            Form::Time(bounds) => within("a duration", bounds),
            Form::Size(bounds) => within("a size", bounds),
            Form::Room => "packets, bytes, or `unlimited`".to_owned(),
            Form::Chance(bounds) => within("a probability", bounds),
            Form::Real(bounds) => within("a number", bounds),
            Form::Reals => "a list of numbers".to_owned(),
            Form::Matrix => "a list of lists of numbers".to_owned(),
            Form::Whole(min, max) => format!("a whole number from {min} to {max}"),
            Form::Flag => "`true` or `false`".to_owned(),
            Form::Word(words) => words.iter().map(|w| format!("`{w}`")).collect::<Vec<_>>().join(", "),
        }
    }

    /// The value to write where it is missing: "a number from 0 to 1".
    pub(crate) fn needed(&self) -> String {
        match self {
            Form::Chance(bounds) => format!("a number {bounds}"),
            Form::Reals => "a probability for each state".to_owned(),
            Form::Matrix => "a row of probabilities for each state".to_owned(),
            other => other.allowed(),
        }
    }

    /// The values that are allowed, if this one is not.
    pub(crate) fn refusal(&self, value: &Value) -> Option<String> {
        fn unless<T: Copy + PartialOrd>(bounds: &Bounds<T>, x: T) -> Option<String>
        where
            Bounds<T>: fmt::Display,
        {
            (!bounds.contain(x)).then(|| bounds.to_string())
        }
        match (self, value) {
            (Form::Time(bounds), Value::Time(time)) => unless(bounds, time.get()),
            (Form::Size(bounds), Value::Size(size)) => unless(bounds, size.get()),
            (Form::Chance(bounds), Value::Chance(p)) => unless(bounds, p.get().get()),
            (Form::Real(bounds), Value::Real(x)) => unless(bounds, x.get()),
            (Form::Whole(min, max), Value::Whole(n)) => {
                (!(min..=max).contains(&n)).then(|| format!("write a whole number from {min} to {max}"))
            }
            (Form::Word(words), Value::Word(word)) => (!words.contains(&word.as_ref())).then(|| self.allowed()),
            (Form::Room, Value::Room(room)) => {
                let zero = matches!(room.get(), Capacity::Packets(Packets::ZERO) | Capacity::Bytes(Bytes::ZERO));
                zero.then(|| "at least one packet or byte".to_owned())
            }
            (Form::Reals, Value::Reals(_)) | (Form::Matrix, Value::Matrix(_)) | (Form::Flag, Value::Flag(_)) => None,
            _ => Some(self.allowed()),
        }
    }

    /// Its schema: the type with its bounds.
    pub(crate) fn schema(&self, generator: &mut SchemaGenerator) -> schemars::Schema {
        let number = |bounds: &Bounds<f64>| {
            let mut schema = schemars::json_schema!({ "type": "number" });
            let ends = [("minimum", "exclusiveMinimum", bounds.low), ("maximum", "exclusiveMaximum", bounds.high)];
            for (at, beyond, end) in ends {
                match end {
                    End::At(x) => schema.insert(at.to_owned(), json!(x)),
                    End::Beyond(x) => schema.insert(beyond.to_owned(), json!(x)),
                    End::Open => None,
                };
            }
            schema
        };
        match self {
            Form::Time(_) => generator.subschema_for::<Time>(),
            Form::Size(_) => generator.subschema_for::<Size>(),
            Form::Room => generator.subschema_for::<Room>(),
            Form::Chance(bounds) => {
                let mut schema = number(bounds);
                schema.insert("format".to_owned(), json!("fairpace-probability"));
                schema
            }
            Form::Real(bounds) => number(bounds),
            Form::Reals => generator.subschema_for::<Vec<Real>>(),
            Form::Matrix => generator.subschema_for::<Vec<Vec<Real>>>(),
            Form::Whole(min, max) => {
                schemars::json_schema!({ "type": "integer", "minimum": min, "maximum": max })
            }
            Form::Flag => schemars::json_schema!({ "type": "boolean" }),
            Form::Word(words) => schemars::json_schema!({ "type": "string", "enum": words }),
        }
    }
}

/// A parameter as written.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
#[allow(missing_docs)]
pub enum Value {
    Time(Time),
    Size(Size),
    Room(Room),
    Chance(Chance),
    Real(Real),
    Reals(Vec<Real>),
    Matrix(Vec<Vec<Real>>),
    Whole(u64),
    Flag(bool),
    Word(Cow<'static, str>),
}

impl From<Room> for Value {
    fn from(room: Room) -> Value {
        Value::Room(room)
    }
}

impl From<Chance> for Value {
    fn from(chance: Chance) -> Value {
        Value::Chance(chance)
    }
}

impl From<Real> for Value {
    fn from(number: Real) -> Value {
        Value::Real(number)
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Time(x) => x.fmt(f),
            Value::Size(x) => x.fmt(f),
            Value::Room(x) => x.fmt(f),
            Value::Chance(x) => x.get().get().fmt(f),
            Value::Real(x) => x.get().fmt(f),
            Value::Whole(x) => x.fmt(f),
            Value::Flag(x) => x.fmt(f),
            Value::Word(x) => x.fmt(f),
            Value::Reals(x) => write!(f, "{} long", x.len()),
            Value::Matrix(x) => write!(f, "{} long", x.len()),
        }
    }
}

/// Reads a value of a form; bounds of whole numbers are part of it, others are checked when the kind is known.
impl<'de> DeserializeSeed<'de> for &Form {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<Value, D::Error> {
        match self {
            Form::Time(_) => Time::deserialize(d).map(Value::Time),
            Form::Size(_) => Size::deserialize(d).map(Value::Size),
            Form::Room => Room::deserialize(d).map(Value::Room),
            Form::Chance(_) => Chance::deserialize(d).map(Value::Chance),
            Form::Real(_) => Real::deserialize(d).map(Value::Real),
            Form::Reals => Vec::deserialize(d).map(Value::Reals),
            Form::Matrix => Vec::deserialize(d).map(Value::Matrix),
            Form::Whole(min, max) => d.deserialize_any(Whole { min: *min, max: *max }).map(Value::Whole),
            Form::Flag => bool::deserialize(d).map(Value::Flag),
            Form::Word(words) => d.deserialize_any(OneOf(words)).map(|word| Value::Word(word.into())),
        }
    }
}

struct Whole {
    min: u64,
    max: u64,
}

impl Visitor<'_> for Whole {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a whole number from {} to {}", self.min, self.max)
    }

    fn visit_u64<E: Error>(self, n: u64) -> Result<u64, E> {
        if (self.min..=self.max).contains(&n) {
            return Ok(n);
        }
        let allowed = format!("write a whole number from {} to {}", self.min, self.max);
        Err(refuse(&n.to_string(), "is out of range", &allowed))
    }

    fn visit_i64<E: Error>(self, n: i64) -> Result<u64, E> {
        match u64::try_from(n) {
            Ok(n) => self.visit_u64(n),
            Err(_) => Err(E::invalid_value(Unexpected::Signed(n), &self)),
        }
    }
}

/// Reads one of these words, with serde's texts for an enum.
pub(crate) struct OneOf<'w>(pub(crate) &'w [&'static str]);

impl fmt::Display for OneOf<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [one] => write!(f, "`{one}`"),
            [one, other] => write!(f, "`{one}` or `{other}`"),
            all => {
                let all: Vec<String> = all.iter().map(|w| format!("`{w}`")).collect();
                write!(f, "one of {}", all.join(", "))
            }
        }
    }
}

impl Visitor<'_> for OneOf<'_> {
    type Value = &'static str;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<&'static str, E> {
        let known = self.0.iter().find(|w| **w == text);
        known.copied().ok_or_else(|| E::custom(format!("unknown variant `{text}`, expected {self}")))
    }
}

/// A row, and the field of `M` that it sets.
pub struct Param<M: 'static> {
    /// The description of the parameter.
    pub row: Row,
    /// Its field.
    pub at: fn(&mut M) -> Field<'_>,
}

/// A field of a parameter struct of `path` or `sim`.
#[allow(missing_docs)]
pub enum Field<'a> {
    Duration(&'a mut Duration),
    Bytes(&'a mut Bytes),
    Capacity(&'a mut Capacity),
    /// The lower of two thresholds.
    Low(&'a mut Thresholds),
    /// The upper one.
    High(&'a mut Thresholds),
    Number(&'a mut f64),
    Probability(&'a mut Probability),
    U32(&'a mut u32),
    Usize(&'a mut usize),
    Flag(&'a mut bool),
    Word(&'a mut dyn Named),
    Reals(&'a mut Vec<f64>),
    Matrix(&'a mut Vec<Vec<f64>>),
}

/// An enum of the simulator whose variants have names in a scenario.
pub trait Named {
    /// The variant's name.
    fn name(&self) -> &'static str;
    /// Becomes the variant of that name; stays if there is none.
    fn choose(&mut self, name: &str);
}

impl Field<'_> {
    /// Sets it.
    ///
    /// # Panics
    /// In a debug build, if the row's form is not that of the field: a mistake in the table, which a test over all of
    /// them shows.
    pub(crate) fn set(self, value: &Value) {
        let numbers = |row: &Vec<Real>| row.iter().map(|x| x.get()).collect();
        match (self, value) {
            (Field::Duration(at), Value::Time(time)) => *at = time.get(),
            (Field::Bytes(at), Value::Size(size)) => *at = size.get(),
            (Field::Capacity(at), Value::Room(room)) => *at = room.get(),
            (Field::Low(at), Value::Room(room)) => match (room.get(), &at) {
                (Capacity::Packets(min), Thresholds::Packets { max, .. }) => {
                    *at = Thresholds::Packets { min, max: *max }
                }
                (Capacity::Bytes(min), Thresholds::Bytes { max, .. }) => *at = Thresholds::Bytes { min, max: *max },
                (Capacity::Packets(min), _) => *at = Thresholds::Packets { min, max: min },
                (Capacity::Bytes(min), _) => *at = Thresholds::Bytes { min, max: min },
                (Capacity::Unlimited, _) => {}
            },
            (Field::High(at), Value::Room(room)) => match (room.get(), at) {
                (Capacity::Packets(n), Thresholds::Packets { max, .. }) => *max = n,
                (Capacity::Bytes(n), Thresholds::Bytes { max, .. }) => *max = n,
                _ => {}
            },
            (Field::Number(at), Value::Chance(p)) => *at = p.get().get(),
            (Field::Number(at), Value::Real(x)) => *at = x.get(),
            (Field::Probability(at), Value::Chance(p)) => *at = p.get(),
            (Field::U32(at), Value::Whole(n)) => *at = u32::try_from(*n).unwrap_or(u32::MAX),
            (Field::Usize(at), Value::Whole(n)) => *at = usize::try_from(*n).unwrap_or(usize::MAX),
            (Field::Flag(at), Value::Flag(on)) => *at = *on,
            (Field::Word(at), Value::Word(word)) => at.choose(word),
            (Field::Reals(at), Value::Reals(row)) => *at = numbers(row),
            (Field::Matrix(at), Value::Matrix(rows)) => *at = rows.iter().map(numbers).collect(),
            (_, value) => debug_assert!(false, "the table has no field for `{value}`"),
        }
    }

    /// The parameter's value, as a scenario writes a value of that form.
    pub(crate) fn get(self, form: &Form) -> Value {
        let reals = |row: &Vec<f64>| row.iter().copied().map(Real::new).collect();
        let chance = |p: f64| Value::Chance(Chance::new(p).unwrap_or(Chance::ZERO));
        match self {
            Field::Duration(at) => Value::Time((*at).into()),
            Field::Bytes(at) => Value::Size((*at).into()),
            Field::Capacity(at) => Value::Room((*at).into()),
            Field::Low(Thresholds::Packets { min: n, .. }) | Field::High(Thresholds::Packets { max: n, .. }) => {
                Value::Room(Capacity::Packets(*n).into())
            }
            Field::Low(Thresholds::Bytes { min: n, .. }) | Field::High(Thresholds::Bytes { max: n, .. }) => {
                Value::Room(Capacity::Bytes(*n).into())
            }
            Field::Number(at) if matches!(form, Form::Real(_)) => Value::Real(Real::new(*at)),
            Field::Number(at) => chance(*at),
            Field::Probability(at) => chance(at.get()),
            Field::U32(at) => Value::Whole(u64::from(*at)),
            Field::Usize(at) => Value::Whole(*at as u64),
            Field::Flag(at) => Value::Flag(*at),
            Field::Word(at) => Value::Word(at.name().into()),
            Field::Reals(at) => Value::Reals(reals(at)),
            Field::Matrix(at) => Value::Matrix(at.iter().map(reals).collect()),
        }
    }
}
