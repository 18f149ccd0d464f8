//! One declaration per parameter: a [`Row`] says its name, symbol, type, bounds, default and effect. The reader, the
//! check, the JSON Schema, `fairpace list` and the tables in `docs/` come from it.
//!
//! Rows stand in two places. Parts of a link (`part.rs`): a [`Param`](crate::Param) is a row and the field of the
//! simulator's parameter struct that it sets; no second struct and no conversion stands between the two, and the default
//! is what that struct's own constructor says. Tables of a scenario (`table.rs`): a struct here holds what is written.

use crate::quantity::{Chance, PART, Real, Room, Size, Speed, Time, refuse};
use fairpace_path::Capacity;
use fairpace_units::{Bounds, Bytes, Duration, Packets, Rate, RateSpec};
use schemars::SchemaGenerator;
use serde::de::value::{Error as Unread, StrDeserializer};
use serde::de::{DeserializeSeed, Deserializer, Error, IntoDeserializer, Unexpected, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::borrow::Cow;
use std::fmt;

/// The description of a parameter.
#[derive(Clone, Copy, Debug)]
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
    /// Behind the bounds: "what fits into a datagram".
    pub note: &'static str,
    /// The parameter's effect: a sentence without its first capital and its full stop.
    pub doc: &'static str,
}

/// The type of a parameter, and its bounds.
#[derive(Clone, Copy, Debug)]
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
    /// A rate in bits or packets per second.
    Rate(Bounds<Rate>),
    /// Any text.
    Text,
    /// A table.
    Table(&'static Table),
    /// A list of tables.
    Tables(&'static Table),
    /// A value of one of these forms.
    Either(&'static [Form]),
    /// A type of its own: what may be written, in words, and its schema.
    Other(&'static str, fn(&mut SchemaGenerator) -> schemars::Schema),
}

/// A table of a scenario file.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// Its name in the JSON Schema.
    pub name: &'static str,
    /// The table: a sentence without its first capital and its full stop.
    pub doc: &'static str,
    /// Its fields, in order.
    pub rows: &'static [Row],
    /// The defaults, as a file would write them.
    pub(crate) usual: fn() -> Json,
    /// The reader's refusal of a table, if it refuses.
    #[cfg(test)]
    pub(crate) reader: fn(Json) -> Option<String>,
}

/// The value that holds where the scenario gives none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
pub const CHANCE: Form = Form::Chance(Bounds::of(0.0, 1.0));

impl Row {
    /// A parameter with the model's default.
    pub const fn new(name: &'static str, symbol: &'static str, form: Form, doc: &'static str) -> Row {
        let wrong = if matches!(form, Form::Room) { "is nothing" } else { "is out of range" };
        Row { name, symbol, form, usual: Usual::Model, wrong, note: "", doc }
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

    /// With a note behind the bounds.
    #[must_use]
    pub const fn note(self, note: &'static str) -> Row {
        Row { note, ..self }
    }

    /// The values that may be written, for tables: "a size, from 1 B to 65507 B, what fits into a datagram".
    pub fn allowed(&self) -> String {
        self.noted(self.form.allowed())
    }

    /// The value to write where it is missing: "a list of numbers, a probability for each state".
    pub(crate) fn wanted(&self) -> String {
        self.noted(self.form.wanted())
    }

    /// The fault of a value and the values that are allowed, if this one is not.
    pub(crate) fn refusal(&self, value: &Value) -> Option<(String, String)> {
        let out = || self.form.refusal(value).map(|allowed| (self.wrong.to_owned(), self.noted(allowed)));
        self.form.unread(value).or_else(out)
    }

    fn noted(&self, allowed: String) -> String {
        if self.note.is_empty() { allowed } else { format!("{allowed}, {}", self.note) }
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
            Form::Rate(bounds) => within("a rate", bounds),
            Form::Text => "text".to_owned(),
            Form::Table(_) => "a table".to_owned(),
            Form::Tables(_) => "a list of tables".to_owned(),
            Form::Either(forms) => forms.iter().map(Form::allowed).collect::<Vec<_>>().join(", or "),
            Form::Other(words, _) => (*words).to_owned(),
        }
    }

    /// The value to write where it is missing: "a number from 0 to 1".
    fn wanted(&self) -> String {
        match self {
            Form::Chance(bounds) => format!("a number {bounds}"),
            Form::Time(_) => format!("{}, such as `\"10 s\"`", self.allowed()),
            Form::Rate(_) => format!("{}, such as `\"2 Mbit/s\"`", self.allowed()),
            Form::Word(words) => OneOf(words).to_string(),
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
            (Form::Rate(bounds), Value::Rate(rate)) => match rate.get() {
                RateSpec::Bits(rate) => unless(bounds, rate),
                RateSpec::PacketsPerSecond(_) => None, // judged as `with_packets_of` some size
            },
            (Form::Text, Value::Word(_)) => None,
            _ => Some(self.allowed()),
        }
    }

    /// A value of this form that stands there as text, if it is one.
    pub(crate) fn read(&self, value: &Value) -> Option<Value> {
        let Value::Word(text) = value else { return None };
        self.deserialize(text.as_ref().into_deserializer() as StrDeserializer<'_, Unread>).ok()
    }

    /// The fault of a text that is no value of this form, and the values that are allowed.
    pub(crate) fn unread(&self, value: &Value) -> Option<(String, String)> {
        let (Value::Word(text), false) = (value, matches!(self, Form::Word(_) | Form::Text)) else { return None };
        let said =
            self.deserialize(text.as_ref().into_deserializer() as StrDeserializer<'_, Unread>).err()?.to_string();
        let mut parts = said.split(PART).skip(1);
        let wrong = parts.next().unwrap_or("is not of the right kind").to_owned();
        Some((wrong, parts.next().map_or_else(|| self.allowed(), str::to_owned)))
    }
}

/// A parameter as written.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
#[allow(missing_docs)]
pub enum Value {
    Time(Time),
    Size(Size),
    Rate(Speed),
    Room(Room),
    Chance(Chance),
    Real(Real),
    Reals(Vec<Real>),
    Matrix(Vec<Vec<Real>>),
    Whole(u64),
    Flag(bool),
    Word(Cow<'static, str>),
}

impl Value {
    /// A rate in packets per second as that in bits, for packets of `size`; any other value as it is.
    pub(crate) fn with_packets_of(self, size: Bytes) -> Value {
        match self {
            Value::Rate(rate) => Value::Rate(RateSpec::Bits(rate.get().with_packets_of(size)).into()),
            other => other,
        }
    }
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
            Value::Rate(x) => x.fmt(f),
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
            Form::Rate(_) => Speed::deserialize(d).map(Value::Rate),
            Form::Text => String::deserialize(d).map(|text| Value::Word(text.into())),
            Form::Table(_) | Form::Tables(_) | Form::Either(_) | Form::Other(..) => {
                Err(D::Error::custom("has no value of its own"))
            }
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
