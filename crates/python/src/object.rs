//! Objects of Python in the simulator: what controllers and parts of links have in common.

use fairpace_units::Instant;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyType;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The exceptions of objects in the runs of one call; the first counts, and stops all of the runs.
#[derive(Debug)]
pub(crate) struct Raised {
    first: Mutex<Option<PyErr>>,
    stop: Arc<AtomicBool>,
}

impl Raised {
    pub(crate) fn new(stop: &Arc<AtomicBool>) -> Arc<Raised> {
        Arc::new(Raised { first: Mutex::new(None), stop: stop.clone() })
    }

    /// The first, if there was one.
    pub(crate) fn take(&self) -> Option<PyErr> {
        self.first.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Takes note of an exception and where that was, and stops the runs.
    pub(crate) fn note(&self, py: Python<'_>, error: PyErr, place: &str) {
        // An exception that takes no notes is still raised.
        let _ = error.value(py).call_method1("add_note", (place,));
        self.first.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// The exception for an object that is none of the base class `base`; `each` has one of its own.
pub(crate) fn no_object(found: &Bound<'_, PyAny>, base: &str, each: &str) -> PyErr {
    let found = text_of(found);
    PyTypeError::new_err(format!("{found} is no fairpace.{base}: give a class; {each} gets an object of its own"))
}

/// Refuses what makes no objects of the base class.
pub(crate) fn check_class(class: &Bound<'_, PyAny>, base: &str, each: &str) -> PyResult<()> {
    let known = class.py().import("fairpace")?.getattr(base)?;
    let is_other = class.cast::<PyType>().is_ok_and(|class| !class.is_subclass(&known).unwrap_or(false));
    if is_other || !class.is_callable() { Err(no_object(class, base, each)) } else { Ok(()) }
}

/// The exception for an attribute that makes no sense.
pub(crate) fn senseless(name: &str, found: &Bound<'_, PyAny>, allowed: &str) -> PyErr {
    PyValueError::new_err(format!("`{name}` is {}: {allowed}", text_of(found)))
}

fn text_of(found: &Bound<'_, PyAny>) -> String {
    found.repr().map_or_else(|_| "unprintable".to_owned(), |text| text.to_string())
}

/// The instant of an object's `timer`; `before` is the one that was read last.
pub(crate) fn timer(now: Instant, object: &Bound<'_, PyAny>, before: Instant) -> PyResult<Instant> {
    let found = object.getattr(pyo3::intern!(object.py(), "timer"))?;
    match found.extract::<Option<f64>>() {
        Ok(None) => Ok(Instant::NEVER),
        // One that was set before may be due by now: it goes off in a moment.
        Ok(Some(at))
            if at.is_finite()
                && at >= 0.0
                && (Instant::from_secs_f64(at) == before || Instant::from_secs_f64(at) > now) =>
        {
            Ok(Instant::from_secs_f64(at))
        }
        _ => Err(senseless("timer", &found, "write a time in seconds that is yet to come, or None")),
    }
}

/// Takes an object's `timer` back, as it goes off.
pub(crate) fn clear_timer(object: &Bound<'_, PyAny>) -> PyResult<()> {
    object.setattr(pyo3::intern!(object.py(), "timer"), object.py().None())
}
