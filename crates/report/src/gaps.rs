//! Numbers in `page.json`: one that is not finite is `null` there, and NaN, a gap, when it is read back.

use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

pub(crate) fn serialize<S: Serializer>(values: &[f64], s: S) -> Result<S::Ok, S::Error> {
    values.iter().map(|v| v.is_finite().then_some(*v)).collect::<Vec<_>>().serialize(s)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<f64>, D::Error> {
    Ok(Vec::<Option<f64>>::deserialize(d)?.into_iter().map(|v| v.unwrap_or(f64::NAN)).collect())
}
