//! Errors of the library as exceptions of the package, in the words of the command.

use fairpace_lab::RunError;
use fairpace_scenario::ScenarioError;
use pyo3::prelude::*;

/// Raises the package's exception of that name, with the remedy as a note beneath the message.
pub(crate) fn raise(py: Python<'_>, class: &str, message: &str, hint: Option<&str>) -> PyErr {
    let made = || -> PyResult<Bound<'_, PyAny>> {
        let error = py.import("fairpace._errors")?.getattr(class)?.call1((message,))?;
        error.setattr("hint", hint)?;
        if let Some(hint) = hint {
            error.call_method1("add_note", (format!("hint: {hint}"),))?;
        }
        Ok(error)
    };
    made().map_or_else(|failed| failed, PyErr::from_value)
}

/// A scenario that is refused.
pub(crate) fn scenario(py: Python<'_>, error: &ScenarioError) -> PyErr {
    raise(py, "ScenarioError", &error.to_string(), error.hint().as_deref())
}

/// A run that came to nothing.
pub(crate) fn run(py: Python<'_>, error: &RunError) -> PyErr {
    match error {
        RunError::Scenario(error) => scenario(py, error),
        RunError::Interrupted => raise(py, "Interrupted", &error.to_string(), None),
        other => raise(py, "RunError", &other.to_string(), None),
    }
}
