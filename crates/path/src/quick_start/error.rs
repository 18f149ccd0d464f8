//! The refusal of parameters of Quick-Start.

/// Why parameters of Quick-Start are refused: the field, what was found, what is allowed.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("`quick_start.{field}` is {found}; it must be {allowed}")]
pub struct QsError {
    /// The parameter.
    pub field: &'static str,
    /// The value given.
    pub found: f64,
    /// The values that are allowed.
    pub allowed: &'static str,
}
