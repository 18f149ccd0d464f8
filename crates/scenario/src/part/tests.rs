//! Tests of the rows of every part.

use super::*;

/// A row whose field has another type would set nothing.
#[test]
fn every_row_of_every_part_sets_the_field_that_it_reads() {
    fn all<F: Family>(name: &str, context: &F::Context) {
        for kind in F::KINDS {
            let values = kind.values(&Given::default(), context);
            for row in kind.rows() {
                let usual = values.iter().find(|(r, _)| r.name == row.name).map(|(_, value)| value);
                let other = another(row, usual);
                let given = Given::of(row.name, other.clone());
                let found = kind.values(&given, context).into_iter().find(|(r, _)| r.name == row.name);
                assert_eq!(found.map(|(_, v)| v), Some(other.clone()), "{name} {} {}", kind.name(), row.name);
                assert_eq!(kind.field(&given, context, row.name), Some(other), "{name} {} {}", kind.name(), row.name);
            }
        }
    }
    all::<crate::queue::Queue>("queue", &fairpace_units::Bytes::new(1_000));
    all::<crate::loss::Loss>("loss", &());
    all::<crate::channel::Fading>("channel", &crate::channel::Slot::default());
}

/// A value of the row's form that is not the usual one.
fn another(row: &Row, usual: Option<&Value>) -> Value {
    use crate::{Chance, Real, Size, Time};
    let chance = |p: f64| Value::Chance(Chance::new(p).unwrap());
    let two = match row.form {
        Form::Time(_) => [Value::Time(Time::ms(7.0)), Value::Time(Time::ms(8.0))],
        Form::Size(_) => [Value::Size(Size::bytes(7)), Value::Size(Size::bytes(8))],
        Form::Room => [Value::Room(crate::Room::packets(7)), Value::Room(crate::Room::packets(8))],
        Form::Chance(_) => [chance(0.25), chance(0.5)],
        Form::Real(_) => [Value::Real(Real::new(7.5)), Value::Real(Real::new(8.5))],
        Form::Reals => [Value::Reals(vec![Real::new(0.5)]), Value::Reals(vec![])],
        Form::Matrix => [Value::Matrix(vec![vec![Real::new(1.0)]]), Value::Matrix(vec![])],
        Form::Whole(min, _) => [Value::Whole(min + 1), Value::Whole(min + 2)],
        Form::Flag => [Value::Flag(true), Value::Flag(false)],
        Form::Rate(_) => [Value::Rate(crate::Speed::bps(7.0)), Value::Rate(crate::Speed::bps(8.0))],
        Form::Text | Form::Table(_) | Form::Tables(_) | Form::Either(_) | Form::Other(..) => {
            panic!("`{}` is in a part", row.name)
        }
        Form::Word(words) => [Value::Word(words[1].into()), Value::Word(words[0].into())],
    };
    two.into_iter().find(|v| Some(v) != usual).unwrap()
}

/// `min_threshold` is a room for RED and a time for DualPI2.
#[test]
fn the_kind_decides_the_form_of_a_parameter_wherever_it_stands() {
    let read = |text: &str| toml::from_str::<Part<crate::queue::Queue>>(text).unwrap();
    let (room, time) = (Value::Room(crate::Room::packets(5)), Value::Time(crate::Time::ms(5.0)));
    let red = "kind = \"red\"\nmin_threshold = \"5 pkt\"";
    assert_eq!(read(red).get("min_threshold"), Some(&room));
    for text in ["kind = \"dualpi2\"\nmin_threshold = \"5 ms\"", "min_threshold = \"5 ms\"\nkind = \"dualpi2\""] {
        assert_eq!(read(text).get("min_threshold"), Some(&time));
    }
    let problem = |text: &str| read(text).problem(&fairpace_units::Bytes::new(1_000));
    let Some(PartProblem::Bad(name, found, wrong, allowed)) = problem(&red.replace("pkt", "ms")) else {
        panic!("it was taken")
    };
    assert_eq!((name.as_str(), found.as_str()), ("min_threshold", "5 ms"));
    assert_eq!(wrong, "is not a capacity: the unit is not a size");
    assert!(allowed.contains("as in `50 pkt`"), "{allowed}");
}
