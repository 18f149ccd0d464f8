//! Objects of Python in the simulator: what controllers and parts of links have in common.

use fairpace_units::Instant;
use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeWarning, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyType};
use std::ffi::CString;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::ThreadId;

/// A call that lasts so long, in s, is told of.
const LONG: f64 = 5.0;
/// When the runs are to stop, it is interrupted each time that it has been seen so often: a method may swallow an exception.
const AGAIN: u32 = 20;

/// Work in a thread of ours from which Python is called again and again. Python makes a state for a thread that comes to it, with memory
/// asked of the kernel, and drops it when the call is over: several times what a short call costs. Here the state stays to the end.
pub(crate) fn in_known_thread<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    Python::attach(|py| py.detach(work))
}

/// An object that is handed to a method, with its fields: `Acked(seq=4, size=1000, ...)`.
pub(crate) fn shown(object: &Bound<'_, PyAny>, fields: &[&str]) -> PyResult<String> {
    let field = |name: &&str| Ok(format!("{name}={}", object.getattr(*name)?.repr()?));
    let fields = fields.iter().map(field).collect::<PyResult<Vec<String>>>()?;
    Ok(format!("{}({})", object.get_type().name()?, fields.join(", ")))
}

/// A class that shows its fields.
macro_rules! shows {
    ($class:ident: $($field:ident),+) => {
        #[pymethods]
        impl $class {
            fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
                crate::object::shown(slf, &[$(stringify!($field)),+])
            }
        }
    };
}
pub(crate) use shows;

/// The exceptions of objects in the runs of one call; the first counts, and stops all of the runs.
#[derive(Debug)]
pub(crate) struct Raised {
    first: Mutex<Option<PyErr>>,
    stop: Arc<AtomicBool>,
    /// Of the objects that there are, and how often the call that is under way was seen.
    calls: Mutex<Vec<(Weak<Calls>, Seen)>>,
}

/// A call that was seen under way.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    count: u64,
    looks: u32,
    /// When it was first seen, in s of Python's monotonic clock.
    since: f64,
    told: bool,
}

/// The calls of an object's methods, for who waits for them.
#[derive(Debug)]
pub(crate) struct Calls {
    /// The object's flow or link, and the seed.
    pub(crate) place: String,
    /// Beginnings and ends of calls: odd while one is under way.
    count: AtomicU64,
    latest: Mutex<Latest>,
}

#[derive(Clone, Copy, Debug)]
struct Latest {
    method: &'static str,
    thread: ThreadId,
    /// As Python calls it.
    ident: u64,
}

impl Calls {
    /// Calls a method.
    pub(crate) fn call<'py>(
        &self,
        object: &Bound<'py, PyAny>,
        method: &'static str,
        arguments: Bound<'py, PyTuple>,
    ) -> PyResult<()> {
        self.note(object.py(), method)?;
        self.count.fetch_add(1, Ordering::Relaxed);
        let returned = object.call_method1(method, arguments);
        self.count.fetch_add(1, Ordering::Relaxed);
        let returned = returned?;
        if returned.is_none() {
            return Ok(());
        }
        let returned = text_of(&returned);
        Err(PyTypeError::new_err(format!(
            "`{method}` returned {returned}, which means nothing: what is wanted is set on `self`"
        )))
    }

    fn note(&self, py: Python<'_>, method: &'static str) -> PyResult<()> {
        let thread = std::thread::current().id();
        let known = *self.latest();
        let ident = match known.thread == thread && known.ident != 0 {
            true => known.ident,
            // The lock is not held: this may wait for the thread that looks.
            false => py.import("threading")?.call_method0("get_ident")?.extract()?,
        };
        *self.latest() = Latest { method, thread, ident };
        Ok(())
    }

    fn latest(&self) -> MutexGuard<'_, Latest> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Raised {
    pub(crate) fn new(stop: &Arc<AtomicBool>) -> Arc<Raised> {
        Arc::new(Raised { first: Mutex::new(None), stop: stop.clone(), calls: Mutex::default() })
    }

    /// The calls of an object at that place.
    pub(crate) fn calls(&self, place: String) -> Arc<Calls> {
        let latest = Latest { method: "", thread: std::thread::current().id(), ident: 0 };
        let calls = Arc::new(Calls { place, count: AtomicU64::new(0), latest: Mutex::new(latest) });
        let mut all = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(calls, _)| calls.strong_count() > 0);
        all.push((Arc::downgrade(&calls), Seen::default()));
        calls
    }

    /// Looks at the calls that are under way, each time that it is called: warns of one that lasts, and when the runs are to stop, raises
    /// `KeyboardInterrupt` in it, which it hears between two of its own instructions.
    ///
    /// # Errors
    /// The warning is an error here.
    pub(crate) fn look(&self, py: Python<'_>) -> PyResult<()> {
        let stops = self.stop.load(Ordering::Relaxed);
        let now: f64 = py.import("time")?.call_method0("monotonic")?.extract()?;
        let mut lasting = Vec::new();
        for (calls, seen) in &mut *self.calls.lock().unwrap_or_else(PoisonError::into_inner) {
            let Some(calls) = calls.upgrade() else { continue };
            let count = calls.count.load(Ordering::Relaxed);
            if count.is_multiple_of(2) || count != seen.count {
                *seen = Seen { count, looks: 0, since: now, told: false };
                continue;
            }
            let is_lasting = !seen.told && now - seen.since >= LONG;
            let is_to_end = stops && seen.looks.is_multiple_of(AGAIN);
            seen.told |= is_lasting;
            seen.looks += u32::from(stops);
            if is_lasting || is_to_end {
                lasting.push((calls, is_lasting, is_to_end));
            }
        }
        for (calls, is_lasting, is_to_end) in lasting {
            let Latest { method, ident, .. } = *calls.latest();
            if is_to_end {
                let ctypes = py.import("ctypes")?;
                let (thread, class) = (
                    ctypes.getattr("c_ulong")?.call1((ident,))?,
                    ctypes.getattr("py_object")?.call1((py.get_type::<PyKeyboardInterrupt>(),))?,
                );
                ctypes.getattr("pythonapi")?.call_method1("PyThreadState_SetAsyncExc", (thread, class))?;
            }
            if is_lasting {
                let text = format!("`{method}` has not returned for 5 s (in {}): the run waits for it", calls.place);
                PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), &CString::new(text)?, 1)?;
            }
        }
        Ok(())
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

/// Refuses an object that has a method set on itself that its class does not define, and that is therefore never called.
pub(crate) fn check_object(object: &Bound<'_, PyAny>, undefined: &[&str]) -> PyResult<()> {
    let Ok(own) = object.getattr("__dict__") else { return Ok(()) };
    for method in undefined {
        if own.contains(method)? && own.get_item(method)?.is_callable() {
            let class = object.get_type().name()?.to_string();
            return Err(PyTypeError::new_err(format!(
                "`{method}` is set on the object and would never be called: define it in the class `{class}`"
            )));
        }
    }
    Ok(())
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
