//! The fields of the simulator's parameter structs that rows set and read.

use crate::param::{Form, Row, Value};
use crate::quantity::{Chance, Real};
use fairpace_path::{Capacity, Thresholds};
use fairpace_units::{Bytes, Duration, Probability};

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
