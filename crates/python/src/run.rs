//! Runs: the interpreter's lock is free while they last, Ctrl-C ends them, and progress is told as they go.

use crate::controller::Classes;
use crate::error;
use crate::object::Raised;
use crate::replaced::Replaced;
use crate::results::Results;
use crate::scenario::{Scenario, scenario_of};
use fairpace_lab::{Hooks, RunOptions, Seeds, run as lab};
use fairpace_scenario::Record;
use pyo3::exceptions::{PyOverflowError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How often work in hand looks whether Python has a signal for it.
const LOOK: Duration = Duration::from_millis(50);

/// The most seeds of a run, as of the command.
const MOST_SEEDS: usize = 100_000;

/// The progress of work in hand: done, total, the label of the last.
type Done = (usize, usize, String);

/// Does long work on another thread, while this one tells of progress and hears Ctrl-C. An exception of Python meanwhile, in a
/// signal handler or in `progress`, stops the work, and is raised when it has ended.
pub(crate) fn watched<R: Send>(
    py: Python<'_>,
    progress: Option<&Py<PyAny>>,
    threads: usize,
    stop: &Arc<AtomicBool>,
    work: impl FnOnce(&Hooks<'_>) -> R + Send,
) -> PyResult<R> {
    watched_with(py, progress, threads, stop, None, work)
}

/// The same where objects of Python take part in the work: their calls are looked at.
pub(crate) fn watched_with<R: Send>(
    py: Python<'_>,
    progress: Option<&Py<PyAny>>,
    threads: usize,
    stop: &Arc<AtomicBool>,
    objects: Option<&Raised>,
    work: impl FnOnce(&Hooks<'_>) -> R + Send,
) -> PyResult<R> {
    let latest: Mutex<Option<Done>> = Mutex::new(None);
    let note = |done: usize, total: usize, what: &str| {
        *latest.lock().unwrap_or_else(PoisonError::into_inner) = Some((done, total, what.to_owned()));
    };
    let mut raised: Option<PyErr> = None;
    let mut tell = || {
        let news = latest.lock().unwrap_or_else(PoisonError::into_inner).take();
        let told = Python::attach(|py| {
            py.check_signals()?;
            if let Some(objects) = objects {
                objects.look(py)?;
            }
            match (progress, news) {
                (Some(progress), Some(news)) if raised.is_none() => progress.call1(py, news).map(drop),
                _ => Ok(()),
            }
        });
        if let Err(error) = told {
            stop.store(true, Ordering::Relaxed);
            raised.get_or_insert(error);
        }
    };
    let done = py.detach(|| {
        std::thread::scope(|scope| {
            let (ended, end) = channel();
            let hooks = Hooks { progress: &note, stop, threads };
            let worker = scope.spawn(move || {
                let done = work(&hooks);
                // Nobody listens once this thread has given up, which it does not.
                let _ = ended.send(());
                done
            });
            while end.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                tell();
            }
            tell();
            worker.join()
        })
    });
    match (raised, done) {
        (Some(error), _) => Err(error),
        (None, Ok(done)) => Ok(done),
        (None, Err(_)) => {
            Err(PyRuntimeError::new_err("a mistake in Fairpace ended the work; standard error has its place"))
        }
    }
}

/// A count, which is never below zero.
pub(crate) fn count<T: TryFrom<u64>>(found: &Bound<'_, PyAny>) -> PyResult<T> {
    let wrong = |why: &str| Err(PyValueError::new_err(format!("{found} {why}: write a whole number from 0 on")));
    match found.extract::<u64>().map(T::try_from) {
        Ok(Ok(n)) => Ok(n),
        Ok(Err(_)) => wrong("is more than can be counted"),
        Err(other) if !other.is_instance_of::<PyOverflowError>(found.py()) => Err(other),
        Err(_) if found.lt(0)? => wrong("is no count"),
        Err(_) => wrong("is more than can be counted"),
    }
}

/// A count, or none.
pub(crate) fn count_or_none<T: TryFrom<u64>>(found: &Bound<'_, PyAny>) -> PyResult<Option<T>> {
    if found.is_none() { Ok(None) } else { count(found).map(Some) }
}

/// How many seeds: a number from 1 on, or none for "until the interval is narrow enough".
fn wanted(seeds: Option<usize>) -> PyResult<Seeds> {
    match seeds {
        None => Ok(Seeds::Enough),
        Some(0) => {
            Err(PyValueError::new_err("`seeds` is 0: write a number from 1 on, or None for as many as are needed"))
        }
        Some(n) if n > MOST_SEEDS => {
            Err(PyValueError::new_err(format!("`seeds` is {n}: at most {MOST_SEEDS}; a sweep keeps each on disk")))
        }
        Some(n) => Ok(Seeds::Count(n)),
    }
}

/// Runs a scenario in the simulator: `Results`, whose tables have a row per seed and flow, link, or time.
///
/// `seeds` is how many runs with random numbers of their own, counted on from the scenario's seed, up to 100,000; None: as many as the 95 %
/// interval of each group's throughput needs to be within 5 % (5 to 20). `series=False` and `events=False` leave out what is recorded over
/// time, and its memory. `threads` of this machine's cores are used, all with 0; results do not depend on it. `progress(done, total, what)` is
/// called in this thread as seeds get done, and may raise to end the run.
///
/// `controllers` has classes derived from `Controller` for media flows (or groups) by name, `parts` classes derived from `LinkPart` for links:
/// each stands before the link of its name. Where they are most of the work `threads=1` is fastest.
///
/// Raises `ScenarioError` for names that the scenario has not, `RunError` where it cannot be run, and what a class of one's own raises, with
/// flow, seed and time as a note. Ctrl-C raises KeyboardInterrupt.
#[pyfunction]
#[pyo3(
    signature = (scenario, *, seeds=Some(1), series=true, events=true, threads=0, progress=None, controllers=None, parts=None),
    text_signature = "(scenario, *, seeds=1, series=True, events=True, threads=0, progress=None, controllers=None, parts=None)"
)]
#[allow(clippy::too_many_arguments)] // they are Python's, and have names there
pub(crate) fn run(
    py: Python<'_>,
    #[pyo3(from_py_with = scenario_of)] scenario: Scenario,
    #[pyo3(from_py_with = count_or_none)] seeds: Option<usize>,
    series: bool,
    events: bool,
    #[pyo3(from_py_with = count)] threads: usize,
    progress: Option<Py<PyAny>>,
    controllers: Option<Classes>,
    parts: Option<Classes>,
) -> PyResult<Results> {
    let options = RunOptions { seeds: wanted(seeds)?, record: Record { series, events, pcap: false } };
    let checked = &scenario.checked;
    let stop = Arc::new(AtomicBool::new(false));
    let (controllers, parts) = (controllers.unwrap_or_default(), parts.unwrap_or_default());
    let is_own = controllers.is_empty() && parts.is_empty();
    let replaced = (!is_own).then(|| Replaced::new(py, checked, controllers, parts, &stop)).transpose()?;
    let objects = replaced.as_ref().map(Replaced::objects);
    let ran = watched_with(py, progress.as_ref(), threads, &stop, objects, |hooks| match &replaced {
        None => lab::run(checked, &options, hooks),
        Some(replaced) => {
            lab::run_by(&|s, seed, record, hooks| replaced.simulate(s, seed, record, hooks), checked, &options, hooks)
        }
    })?;
    if let Some(raised) = replaced.as_ref().and_then(Replaced::raised) {
        return Err(raised);
    }
    ran.map(Results::new).map_err(|e| error::run(py, &e))
}
