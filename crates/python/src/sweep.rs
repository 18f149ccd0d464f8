//! Sweeps: the plan, the batches and the folder are Rust's; who performs a task is the caller's to say.

use crate::error::{self, raise};
use crate::run::{count, count_or_none, watched};
use crate::scenario::{Scenario, scenario_of};
use crate::table::{Table, escaped};
use fairpace_lab::results::write_whole;
use fairpace_lab::sweep::{
    Batch, Design, Executor, Narrow, Plan, SeedRule, Shard, Spec, Sweep as Work, SweepError, SweepStore, TaskId, Width,
    World,
};
use fairpace_lab::table::{Table as Rows, number, text, whole};
use fairpace_lab::{Hooks, RunError, sweep as lab};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A task by its place: the point's number, the first seed counted from the scenario's, how many seeds.
type Id = (usize, u64, u32);

fn id((point, offset, count): Id) -> TaskId {
    TaskId { point, offset, count }
}

fn refused(py: Python<'_>, error: &SweepError) -> PyErr {
    match error {
        SweepError::Run(error) => error::run(py, error),
        SweepError::Vary { .. } | SweepError::Point { .. } | SweepError::Metric { .. } => {
            raise(py, "ScenarioError", &error.to_string(), error.hint().as_deref())
        }
        SweepError::Occupied { .. } => raise(py, "FolderError", &error.to_string(), error.hint().as_deref()),
        SweepError::Foreign { .. } => raise(py, "ForeignFolderError", &error.to_string(), error.hint().as_deref()),
        other => raise(py, "RunError", &other.to_string(), other.hint().as_deref()),
    }
}

/// A sweep: a scenario with other values in some of its fields, each point with several seeds.
#[pyclass(module = "fairpace", frozen)]
pub(crate) struct Sweep {
    work: Mutex<Work>,
    store: Mutex<Option<Arc<SweepStore>>>,
    /// The batches that were in the folder, counted in words; none if there was none.
    #[pyo3(get)]
    found: Option<String>,
}

/// Why there is no report.
enum Unwritten {
    Refused(SweepError),
    Disk(String),
}

impl From<SweepError> for Unwritten {
    fn from(error: SweepError) -> Unwritten {
        Unwritten::Refused(error)
    }
}

impl Sweep {
    fn write_report(&self, file: &Path, metric: Option<&str>) -> Result<(), Unwritten> {
        let folder = file.parent().unwrap_or(Path::new(""));
        let write =
            |file: &Path, text: &str| write_whole(file, text.as_bytes()).map_err(|e| Unwritten::Disk(e.to_string()));
        let work = self.work();
        let metric = metric.map_or_else(|| work.plan().ranked_by(), |name| work.plan().metric_named(name))?;
        for (name, text) in fairpace_report::sweep::failures(&work, folder)? {
            let place = folder.join(name);
            if let Some(within) = place.parent() {
                std::fs::create_dir_all(within).map_err(|e| Unwritten::Disk(format!("{}: {e}", within.display())))?;
            }
            write(&place, &text)?;
        }
        write(file, &fairpace_report::sweep::page(&work, &metric, folder).to_html())
    }

    fn work(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The folder, until it is left to others.
    fn store(&self) -> Option<Arc<SweepStore>> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[pymethods]
impl Sweep {
    /// Lays the points out and looks at each. With a folder, the batches that it has of this sweep are taken; with
    /// `retry` without those that came to nothing.
    #[new]
    #[pyo3(signature = (scenario, vary, code, *, design, points, design_seed, seeds, batch, narrow, metric, folder, shard, force,
        retry))]
    #[allow(clippy::too_many_arguments)] // `fairpace.sweep` has defaults for them
    fn new(
        py: Python<'_>,
        #[pyo3(from_py_with = scenario_of)] scenario: Scenario,
        vary: Vec<String>,
        code: &str,
        design: &str,
        #[pyo3(from_py_with = count_or_none)] points: Option<usize>,
        #[pyo3(from_py_with = count_or_none)] design_seed: Option<u64>,
        #[pyo3(from_py_with = count)] seeds: u32,
        #[pyo3(from_py_with = count)] batch: u32,
        narrow: Option<(String, String, u32)>,
        metric: Option<String>,
        folder: Option<PathBuf>,
        shard: &str,
        force: bool,
        retry: bool,
    ) -> PyResult<Sweep> {
        let drawn =
            || points.ok_or_else(|| PyValueError::new_err(format!("design \"{design}\" needs `points`: how many")));
        let design_seed = design_seed.unwrap_or(1);
        let design = match design {
            "grid" => Design::Grid,
            "list" => Design::List,
            "random" => Design::Random { points: drawn()?, seed: design_seed },
            "latin" => Design::LatinHypercube { points: drawn()?, seed: design_seed },
            other => {
                let allowed = "there are \"grid\", \"list\", \"random\", \"latin\"";
                return Err(PyValueError::new_err(format!("`design` is \"{other}\": {allowed}")));
            }
        };
        if seeds == 0 || batch == 0 {
            return Err(PyValueError::new_err("`seeds` and `batch` are at least 1"));
        }
        let narrow = narrow
            .map(|(metric, width, most)| Ok::<_, SweepError>(Narrow { metric, width: Width::parse(&width)?, most }))
            .transpose()
            .map_err(|e| refused(py, &e))?;
        let metric = metric.or_else(|| narrow.as_ref().map(|n| n.metric.clone()));
        let spec = Spec { vary, design, seeds: SeedRule { seeds, batch, narrow }, metric };
        let stop = Arc::new(AtomicBool::new(false));
        let made = watched(py, None, 0, &stop, |hooks: &Hooks<'_>| {
            let plan = Plan::new(&scenario.checked, &spec, World::Sim, code)?;
            plan.ranked_by()?;
            let Some(folder) = &folder else {
                plan.check(hooks)?;
                return Ok(Sweep { work: Mutex::new(Work::new(plan)), store: Mutex::default(), found: None });
            };
            let shard = Shard::parse(shard)?;
            let store = SweepStore::open(folder, &plan, shard, force, hooks)?;
            let mut work = Work::of_share(plan, |point| shard.has(point));
            let found = store.load(&mut work, retry, hooks)?.account();
            Ok(Sweep { work: Mutex::new(work), store: Mutex::new(Some(Arc::new(store))), found })
        })?;
        made.map_err(|e: SweepError| refused(py, &e))
    }

    /// Runs what is left on this machine's cores.
    #[pyo3(signature = (threads=0, progress=None))]
    fn run(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = count)] threads: usize,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        let stop = Arc::new(AtomicBool::new(false));
        let ran = watched(py, progress.as_ref(), threads, &stop, |hooks| {
            lab::run(&mut self.work(), self.store().as_deref(), Executor::Sim, hooks)
        })?;
        match ran {
            // All that is done is kept; the caller raises its own exception.
            Err(SweepError::Run(RunError::Interrupted)) | Ok(()) => Ok(()),
            Err(error) => Err(refused(py, &error)),
        }
    }

    /// The next task that may begin, each once; None if there is none now.
    fn ready(&self) -> Option<Id> {
        self.work().ready().map(|task| (task.point, task.offset, task.count))
    }

    /// A task as text, for `perform`.
    fn task(&self, py: Python<'_>, task: Id) -> PyResult<String> {
        self.work().plan().task(&id(task)).map(|task| task.to_text()).map_err(|e| refused(py, &e))
    }

    /// Takes the batch of a task, on disk first where the sweep has a folder. Twice does no harm; that of another task is refused.
    fn take(&self, py: Python<'_>, task: Id, bytes: Vec<u8>) -> PyResult<()> {
        let taken = py.detach(|| {
            let batch = Batch::from_bytes(&bytes)?;
            let asked = self.work().plan().bare_task(&id(task));
            if (&batch.point, batch.first, batch.count) == (&asked.point, asked.first, asked.count) {
                if let Some(store) = self.store() {
                    store.keep(&bytes)?;
                }
                if self.work().take_batch(batch) {
                    return Ok(());
                }
            }
            Err(SweepError::Task(format!(
                "{}: the batch that came is another task's",
                self.work().plan().label(task.0)
            )))
        });
        taken.map_err(|e| refused(py, &e))
    }

    /// A task whose worker is lost may be had again.
    fn give_back(&self, task: Id) {
        self.work().give_back(&id(task));
    }

    /// Takes note that a task comes to nothing wherever it is performed: its point has failed.
    fn lost(&self, py: Python<'_>, task: Id, reason: &str) -> PyResult<()> {
        let made = self.work().plan().task(&id(task)).map(|task| Batch::lost(&task, reason).to_bytes());
        self.take(py, task, made.map_err(|e| refused(py, &e))?)
    }

    /// Leaves the folder to whoever goes on there: results stay, and no batch that comes now is kept.
    fn close(&self) {
        self.store.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// Batches that are in, and batches that are needed as far as is known.
    #[getter]
    fn counts(&self) -> (usize, usize) {
        self.work().counts()
    }

    /// Whether every point of this share is finished or failed.
    #[getter]
    fn complete(&self) -> bool {
        self.work().is_share_complete()
    }

    /// One row per point, seed and group: the point's settings, and the group's numbers.
    #[getter]
    fn groups(&self) -> PyResult<Table> {
        Table::new(self.work().groups())
    }

    /// One row per point, seed and link.
    #[getter]
    fn links(&self) -> PyResult<Table> {
        Table::new(self.work().links())
    }

    /// Points that came to nothing: settings, seed, reason.
    #[getter]
    fn failed(&self) -> Vec<(String, u64, String)> {
        let work = self.work();
        work.failed().into_iter().map(|f| (work.plan().label(f.point), f.seed, f.reason)).collect()
    }

    /// Finished points whose interval is wider than `ci_width` with as many seeds as they may have: their settings.
    #[getter]
    fn too_wide(&self) -> Vec<String> {
        let work = self.work();
        work.too_wide().into_iter().map(|point| work.plan().label(point)).collect()
    }

    /// The points in the order of a metric, the best first: settings, mean, interval, difference to the best seed by seed.
    fn best(&self, py: Python<'_>, metric: &str) -> PyResult<Table> {
        let work = self.work();
        let metric = work.plan().metric_named(metric).map_err(|e| refused(py, &e))?;
        let mut t = Rows::new(&[
            text("point"),
            text("settings"),
            number("mean"),
            number("ci95_low"),
            number("ci95_high"),
            number("to_best"),
            number("to_best_low"),
            number("to_best_high"),
            whole("seeds"),
        ]);
        for ranked in metric.rank(&work) {
            let settings = work.plan().settings(ranked.point);
            let settings: Vec<String> = settings.into_iter().map(|(field, value)| format!("{field}={value}")).collect();
            let (e, d) = (ranked.estimate, ranked.to_best);
            t.text(&work.plan().points()[ranked.point].id).text(&settings.join(" "));
            t.number(e.mean).number(e.ci95.map(|c| c[0])).number(e.ci95.map(|c| c[1]));
            t.number(d.map(|d| d.mean)).number(d.and_then(|d| d.ci95).map(|c| c[0]));
            t.number(d.and_then(|d| d.ci95).map(|c| c[1])).whole(e.n as u64).end();
        }
        Table::new(t)
    }

    /// Writes the report, one page that opens from disk: the best settings by `metric` (that of the sweep if None is given), response
    /// curves, heat maps, failed points. These have their scenarios in `failed` and a list in `failed.csv` beside it.
    #[pyo3(signature = (file, *, metric=None))]
    fn report(&self, py: Python<'_>, file: PathBuf, metric: Option<&str>) -> PyResult<PathBuf> {
        // Disks take their time, and workers' batches may come meanwhile.
        py.detach(|| self.write_report(&file, metric))
            .map_err(|unwritten| match unwritten {
                Unwritten::Refused(error) => refused(py, &error),
                Unwritten::Disk(words) => raise(py, "RunError", &words, None),
            })
            .map(|()| file)
    }

    /// The scenario of a point, by its number.
    fn scenario(&self, py: Python<'_>, #[pyo3(from_py_with = count)] point: usize) -> PyResult<Scenario> {
        let points = self.work().plan().points().len();
        if point >= points {
            return Err(PyValueError::new_err(format!("point {point}: there are {points}, from 0")));
        }
        self.work().plan().scenario(point).map(|checked| Scenario { checked }).map_err(|e| refused(py, &e))
    }

    /// The points that were asked for; equal ones are one.
    #[getter]
    fn asked(&self) -> usize {
        self.work().plan().asked()
    }

    /// The points in the order of the sweep's own metric, the first rows of them, for Jupyter.
    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        let name = self.work().plan().ranked_by().map(|metric| metric.name()).map_err(|e| refused(py, &e))?;
        let best = self.best(py, &name)?._repr_html_(py)?;
        Ok(format!("<p>{}: by <code>{name}</code></p>{best}", escaped(&self.__repr__())))
    }

    /// How many points it has.
    fn __len__(&self) -> usize {
        self.work().plan().points().len()
    }

    fn __repr__(&self) -> String {
        let work = self.work();
        let (done, needed) = work.counts();
        let fields: Vec<String> = work.plan().axes().iter().map(|axis| axis.field.clone()).collect();
        format!(
            "<Sweep of {}: {} points over {}; {done} of {needed} batches>",
            work.plan().base().name,
            work.plan().points().len(),
            fields.join(", ")
        )
    }
}

/// Performs a task: text in, bytes out, whoever calls it and wherever. `code` is the version of the program here; a task of another
/// one is refused.
#[pyfunction]
pub(crate) fn perform(py: Python<'_>, task: &str, code: &str) -> PyResult<Vec<u8>> {
    let stop = Arc::new(AtomicBool::new(false));
    let done = watched(py, None, 1, &stop, |hooks| lab::perform(task, code, hooks))?;
    done.map_err(|e| refused(py, &e))
}
