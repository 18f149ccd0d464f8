//! The results of runs, as the command's folders have them.

use crate::error::raise;
use crate::scenario::Scenario;
use crate::table::Table;
use fairpace_lab::results::{self, Folder, Manifest};
use fairpace_lab::{RunSet, study};
use fairpace_report::{colour_of, folder};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use std::path::PathBuf;

/// One scenario's results over its seeds.
#[pyclass(module = "fairpace", frozen)]
pub(crate) struct Results {
    set: RunSet,
}

impl Results {
    pub(crate) fn new(set: RunSet) -> Results {
        Results { set }
    }
}

#[pymethods]
impl Results {
    /// Results hold all that was recorded, and stay where they are.
    fn __reduce__(&self) -> PyResult<Py<PyAny>> {
        Err(PyTypeError::new_err(
            "results are neither pickled nor copied: take a table to another process, as in `results.flows`, or sweep with `executor=...`",
        ))
    }

    /// The scenario as it was run.
    #[getter]
    fn scenario(&self) -> Scenario {
        Scenario { checked: self.set.scenario.clone() }
    }

    /// The seeds, one per run.
    #[getter]
    fn seeds(&self) -> Vec<u64> {
        self.set.runs.iter().map(|run| run.seed()).collect()
    }

    /// Every group's numbers over the seeds: mean, 95 % interval, seeds.
    #[getter]
    fn metrics(&self) -> PyResult<Table> {
        Table::new(self.set.metrics_table())
    }

    /// The mean of one number of a group over the seeds, and its 95 % interval (none of a single seed):
    /// `results.mean("video", "throughput_bps")`.
    fn mean(&self, py: Python<'_>, group: &str, metric: &str) -> PyResult<(f64, Option<(f64, f64)>)> {
        let all = self.set.metrics();
        let found = all.iter().find(|m| m.group == group && m.metric.name() == metric).ok_or_else(|| {
            let names: Vec<String> = all.iter().map(|m| format!("{} {}", m.group, m.metric.name())).collect();
            let hint = format!("there are: {}", names.join(", "));
            raise(py, "RunError", &format!("no group `{group}` with a number `{metric}`"), Some(&hint))
        })?;
        Ok((found.estimate.mean, found.estimate.ci95.map(|[low, high]| (low, high))))
    }

    /// The names of its tables.
    #[getter]
    fn tables(&self) -> Vec<&str> {
        self.set.table_names().into_iter().collect()
    }

    /// A table of all seeds by its name: `flows`, `links`, `series`, `link_series`, `events`, and what a satellite, a wireless
    /// link and data units have.
    fn table(&self, py: Python<'_>, name: &str) -> PyResult<Table> {
        let rows = self.set.table(name).ok_or_else(|| {
            let there = self.set.table_names().into_iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ");
            raise(
                py,
                "RunError",
                &format!("these results have no table `{name}`"),
                Some(&format!("there are: {there}")),
            )
        })?;
        Table::new(rows)
    }

    /// One row per flow and seed: its throughput, losses, delays over the whole run.
    #[getter]
    fn flows(&self, py: Python<'_>) -> PyResult<Table> {
        self.table(py, "flows")
    }

    /// One row per link and seed.
    #[getter]
    fn links(&self, py: Python<'_>) -> PyResult<Table> {
        self.table(py, "links")
    }

    /// Each flow over time: a row per seed, time (`t_s`) and flow, at the scenario's `sample`; without rows where `series=False`.
    #[getter]
    fn series(&self, py: Python<'_>) -> PyResult<Table> {
        self.table(py, "series")
    }

    /// Each link over time: a row per seed, time (`t_s`) and link.
    #[getter]
    fn link_series(&self, py: Python<'_>) -> PyResult<Table> {
        self.table(py, "link_series")
    }

    /// The controllers' changes, and the reason of each; without rows where `events=False`.
    #[getter]
    fn events(&self, py: Python<'_>) -> PyResult<Table> {
        self.table(py, "events")
    }

    /// The output of `fairpace run --json`, as dictionaries and lists.
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import("json")?.call_method1("loads", (self.set.json().to_string(),))
    }

    /// True if somebody stopped the run: what is here is valid, but not all that was asked for.
    #[getter]
    fn interrupted(&self) -> bool {
        self.set.interrupted
    }

    /// Writes a results folder with its report, as `fairpace run --out` does; one that has something in it needs `force`.
    #[pyo3(signature = (folder, *, force=false))]
    fn save(&self, py: Python<'_>, folder: PathBuf, force: bool) -> PyResult<PathBuf> {
        let manifest = Manifest { version: VERSION.to_owned(), program: VERSION.to_owned(), ..Manifest::default() };
        let io = |message: String| raise(py, "RunError", &message, Some("name another folder"));
        // Results of other controllers are of the same scenario, so that nothing else tells them apart.
        let is_empty = std::fs::read_dir(&folder).map_or(true, |mut entries| entries.next().is_none());
        if !(force || is_empty) {
            let message = format!("`{}` is not empty", folder.display());
            return Err(raise(py, "FolderError", &message, Some("name another folder, or say `force=True`")));
        }
        let begun = Folder::open(&folder, &self.set.scenario, study::SIMULATED, &manifest, force)
            .map_err(|e| io(e.to_string()))?;
        begun.finish(&self.set, &manifest, None).map_err(|e| io(e.to_string()))?;
        let page = self::folder::run_page_of(&self.set);
        let report = folder.join("report.html");
        results::write_whole(&report, page.to_html().as_bytes()).map_err(|e| io(e.to_string()))?;
        Ok(report)
    }

    fn __repr__(&self) -> String {
        let n = self.set.runs.len();
        let mut text = format!("<Results of {}, {n} seed{}", self.set.scenario.name, if n == 1 { "" } else { "s" });
        for m in self.set.metrics().iter().filter(|m| m.metric.name() == "throughput_bps") {
            text.push_str(&format!("; {}: {:.0} kbit/s", m.group, m.estimate.mean / 1000.0));
        }
        text + ">"
    }

    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        self.metrics()?._repr_html_(py)
    }
}

/// The version that results of the package are made by.
const VERSION: &str = concat!("fairpace ", env!("CARGO_PKG_VERSION"), " (Python)");

/// The look of a controller in every report: colour on white, dash pattern, mark; none for a name that has no fixed look.
#[pyfunction]
pub(crate) fn colour(name: &str) -> Option<(&'static str, Vec<u16>, &'static str)> {
    colour_of(name).map(|c| (c.light, c.dash.iter().copied().map(u16::from).collect(), c.mark))
}
