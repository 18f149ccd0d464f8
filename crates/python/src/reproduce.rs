//! The papers' experiments.

use crate::error::{self, raise};
use crate::run::{count, count_or_none, watched};
use crate::table::{Table, escaped};
use fairpace_lab::table::{Table as Rows, number, text, whole};
use fairpace_papers::{Asked, Effort, Reproduction as All, Tools, check_readings, select};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The results of several experiments.
#[pyclass(module = "fairpace", frozen)]
pub(crate) struct Reproduction {
    all: All,
}

#[pymethods]
impl Reproduction {
    /// Every number: experiment, reading, scheme, place, metric, mean, interval, seeds.
    #[getter]
    fn points(&self) -> PyResult<Table> {
        let mut t = Rows::new(&[
            text("experiment"),
            text("reading"),
            text("scheme"),
            text("place"),
            text("metric"),
            number("mean"),
            number("ci95_low"),
            number("ci95_high"),
            whole("seeds"),
        ]);
        for outcome in &self.all.outcomes {
            for p in &outcome.points {
                let place: Vec<String> = p.x.iter().map(|(axis, x)| format!("{axis}={x}")).collect();
                t.text(&outcome.experiment).text(&p.reading).text(&p.scheme).text(&place.join(" ")).text(&p.metric);
                t.number(p.estimate.mean).number(p.estimate.ci95.map(|c| c[0])).number(p.estimate.ci95.map(|c| c[1]));
                t.whole(p.estimate.n as u64).end();
            }
        }
        Table::new(t)
    }

    /// Every claim: whether it holds, the number that decides it, its interval, its bound.
    #[getter]
    fn claims(&self) -> PyResult<Table> {
        let mut t = Rows::new(&[
            text("claim"),
            text("reading"),
            text("statement"),
            text("verdict"),
            number("measured"),
            number("ci95_low"),
            number("ci95_high"),
            text("bound"),
            text("note"),
        ]);
        for c in self.all.outcomes.iter().flat_map(|o| &o.claims) {
            let verdict = match (c.decided, c.holds) {
                (false, _) => "not decided",
                (true, true) => "holds",
                (true, false) => "fails",
            };
            t.text(&c.id).text(&c.reading).text(&c.statement).text(verdict).number(c.measured);
            t.number(c.ci95.map(|c| c[0])).number(c.ci95.map(|c| c[1])).text(&c.bound).text(&c.note).end();
        }
        Table::new(t)
    }

    /// Experiments that were not run, each with the reason.
    #[getter]
    fn not_run(&self) -> Vec<(&str, &str)> {
        self.all.outcomes.iter().filter_map(|o| Some((o.experiment.as_str(), o.not_run.as_deref()?))).collect()
    }

    /// Writes the report, one page that opens from disk.
    fn report(&self, py: Python<'_>, file: PathBuf) -> PyResult<PathBuf> {
        fairpace_lab::results::write_whole(&file, self.all.page().to_html().as_bytes())
            .map_err(|e| raise(py, "RunError", &e.to_string(), None))?;
        Ok(file)
    }

    /// The first claims, for Jupyter.
    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("<p>{}</p>{}", escaped(&self.__repr__()), self.claims()?._repr_html_(py)?))
    }

    fn __repr__(&self) -> String {
        format!("<Reproduction: {}; {}>", self.all.verdict(), self.all.counted())
    }
}

/// Every experiment: its id, and its subject.
#[pyfunction]
pub(crate) fn experiments() -> Vec<(&'static str, &'static str)> {
    fairpace_papers::experiments().map(|e| (e.id, e.title)).collect()
}

/// Runs experiments of the papers in the simulator: `"rcs"` is all of a paper, `"rcs.fig16"` one figure, `"all"` everything.
/// `quick` has two seeds for every point, `seeds` as many as it says, else each experiment has its own number; `readings` is `"all"`, or names
/// of other readings of the paper's words. `threads` of this machine's cores are used, all with 0. `progress(done, total, what)` is called as
/// runs get done. Claims and points are tables of the `Reproduction` that comes back.
#[pyfunction]
#[pyo3(signature = (*ids, quick=false, seeds=None, readings=None, threads=0, progress=None))]
pub(crate) fn reproduce(
    py: Python<'_>,
    ids: Vec<String>,
    quick: bool,
    #[pyo3(from_py_with = count_or_none)] seeds: Option<usize>,
    readings: Option<Vec<String>>,
    #[pyo3(from_py_with = count)] threads: usize,
    progress: Option<Py<PyAny>>,
) -> PyResult<Reproduction> {
    if ids.is_empty() {
        let hint = "name experiments, such as `rcs.fig16`, or `all`; `fairpace.experiments()` has them";
        return Err(raise(py, "RunError", "no experiment is named", Some(hint)));
    }
    let chosen = select(&ids).map_err(|e| raise(py, "RunError", &e.to_string(), Some(&e.hint())))?;
    let asked = match readings.as_deref() {
        None => Asked::Default,
        Some([all]) if all == "all" => Asked::All,
        Some(names) => Asked::Named(names.to_vec()),
    };
    check_readings(&chosen, &asked).map_err(|e| raise(py, "RunError", &e.to_string(), Some(&e.hint())))?;
    let effort = match seeds {
        Some(0) => {
            return Err(PyValueError::new_err(
                "`seeds` is 0: write a number from 1 on, or None for each experiment's own",
            ));
        }
        Some(_) if quick => {
            return Err(PyValueError::new_err("`quick` has two seeds for every point: give `seeds` or `quick`"));
        }
        Some(n) => Effort::Seeds(n),
        None if quick => Effort::Quick,
        None => Effort::Usual,
    };
    let stop = Arc::new(AtomicBool::new(false));
    let all = watched(py, progress.as_ref(), threads, &stop, |hooks| {
        fairpace_papers::reproduce(&chosen, effort, &asked, &mut Tools::default(), hooks, |_| ())
    })?;
    all.map(|all| Reproduction { all }).map_err(|e| error::run(py, &e))
}
