//! A checked scenario in Python.

use crate::error;
use crate::table::escaped;
use fairpace_scenario::{Scenario as Checked, with_controller};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;

/// A scenario: flows over a path, for so long. One that exists has passed every check.
///
/// Made of values as in a scenario file (see `fairpace.tables` for classes of them), or by `load` and `parse`.
#[pyclass(module = "fairpace", frozen, from_py_object)]
#[derive(Clone)]
pub(crate) struct Scenario {
    pub(crate) checked: Checked,
}

/// The scenario that an argument is; a file's name is none.
pub(crate) fn scenario_of(found: &Bound<'_, PyAny>) -> PyResult<Scenario> {
    found.extract().map_err(|_| {
        let text = found.repr().map_or_else(|_| "unprintable".to_owned(), |text| text.to_string());
        let hint = "make one by `fairpace.Scenario(...)`, or read a file by `fairpace.Scenario.load(\"geo.toml\")`";
        PyTypeError::new_err(format!("{text} is no fairpace.Scenario: {hint}"))
    })
}

/// A value of Python as JSON: classes of `fairpace.tables` are dictionaries of the fields that are given.
fn json(value: &Bound<'_, PyAny>) -> PyResult<serde_json::Value> {
    let text: String = value.py().import("fairpace.tables")?.call_method1("_json", (value,))?.extract()?;
    serde_json::from_str(&text).map_err(|e| error::raise(value.py(), "ScenarioError", &e.to_string(), None))
}

/// Checks what is written in `document`. Errors name no line: nobody wrote one.
fn from_json(py: Python<'_>, document: &serde_json::Value) -> PyResult<Scenario> {
    let text = toml::to_string(document)
        .map_err(|e| error::raise(py, "ScenarioError", &format!("the values make no scenario: {e}"), None))?;
    let checked = Checked::parse(&text, "scenario").map_err(|mut e| {
        e.line = 0;
        error::scenario(py, &e)
    })?;
    Ok(Scenario { checked })
}

#[pymethods]
impl Scenario {
    /// Of the tables and fields that a file has; None leaves one out.
    #[new]
    #[pyo3(signature = (**fields))]
    fn new(py: Python<'_>, fields: Option<Bound<'_, PyDict>>) -> PyResult<Scenario> {
        let fields = fields.unwrap_or_else(|| PyDict::new(py));
        for (name, value) in &fields.copy()? {
            if value.is_none() {
                fields.del_item(name)?;
            }
        }
        from_json(py, &json(fields.as_any())?)
    }

    /// Reads a scenario file, and the traces that it names.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Scenario> {
        Checked::load(&path).map(|checked| Scenario { checked }).map_err(|e| error::scenario(py, &e))
    }

    /// Reads a scenario from TOML text; `file` is what errors call it, and paths in it are relative to its folder.
    #[staticmethod]
    #[pyo3(signature = (text, file=PathBuf::from("scenario.toml")), text_signature = "(text, file=\"scenario.toml\")")]
    fn parse(py: Python<'_>, text: &str, file: PathBuf) -> PyResult<Scenario> {
        Checked::parse(text, &file.to_string_lossy())
            .map(|checked| Scenario { checked })
            .map_err(|e| error::scenario(py, &e))
    }

    /// The same scenario with every media flow under another controller: `"rcs"`, or with parameters
    /// `"rap:fine_grain=on,alpha=2"`.
    fn with_controller(&self, py: Python<'_>, controller: &str) -> PyResult<Scenario> {
        with_controller(&self.checked, controller)
            .map(|checked| Scenario { checked })
            .map_err(|e| error::scenario(py, &e))
    }

    /// The scenario as the text of a file.
    #[getter]
    fn toml(&self) -> String {
        self.checked.to_toml()
    }

    /// The scenario as dictionaries and lists.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import("tomllib")?.call_method1("loads", (self.checked.to_toml(),))
    }

    /// Its name.
    #[getter]
    fn name(&self) -> &str {
        &self.checked.name
    }

    /// How long a run of it lasts, in seconds.
    #[getter]
    fn duration_s(&self) -> f64 {
        self.checked.duration.get().as_secs_f64()
    }

    /// The oddities with which it may still be run, and their consequences.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.checked.warnings().iter().map(|w| w.text.clone()).collect()
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        // With everything that is implied written out.
        other.cast::<Scenario>().is_ok_and(|other| other.get().checked.to_toml() == self.checked.to_toml())
    }

    fn __repr__(&self) -> String {
        let flows: Vec<String> = self.checked.flows.iter().map(|f| format!("{} ({})", f.name, f.controller)).collect();
        format!("<Scenario {}: {}, {}>", self.checked.name, self.checked.duration, flows.join(", "))
    }

    /// The scenario as TOML, for Jupyter.
    fn _repr_html_(&self) -> String {
        format!("<pre>{}</pre>", escaped(&self.checked.to_toml()))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (String, PathBuf))> {
        // Recordings that it names are read again, from where they were.
        let file = slf.get().checked.folder().join("scenario.toml");
        Ok((slf.get_type().getattr("parse")?, (slf.get().checked.to_toml(), file)))
    }
}
