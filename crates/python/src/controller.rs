//! An object of Python behind [`fairpace_control::Controller`]: in the simulator it stands where a scheme of ours does.
//!
//! The object hears the same facts by the same names (`start`, `on_sent`, `on_ack`, `on_loss`, `on_timeout`, `on_timer`), times
//! in seconds, and says what it wants in three attributes that are read after each call: `rate` (bit/s), `window` (packets
//! outstanding at most; None for no window) and `timer` (when `on_timer` is wanted; None for never). Pacing is done here.
//! A method that its class does not define is not called.
//!
//! An exception of the object, and a value that makes no sense, stop the run, and are raised from there with flow, seed and time as a note.

use crate::error::raise;
use fairpace_control::{
    Acked as Fact, Controller, Env as Limits, Loss as Lost, Pacer, RttEstimator, SendPoll, Sent as Left, Status,
    Windows,
};
use fairpace_lab::metrics::RunSummary;
use fairpace_lab::run::SeedRun;
use fairpace_lab::run::simulate_observed;
use fairpace_lab::{Hooks, RunError};
use fairpace_scenario::{Record, Scenario, controllers, instances, nearest, sim_config};
use fairpace_sim::{ControllerSpec, Protocol};
use fairpace_units::{Duration, Ecn, Instant, Rate};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyType};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A class, or what else makes controllers, by the name of a flow or a group.
pub(crate) type Classes = BTreeMap<String, Py<PyAny>>;

/// The limits of a controller's flow.
#[pyclass(module = "fairpace", frozen, get_all)]
pub(crate) struct Env {
    /// The size of a full data packet on the wire, bytes.
    packet_size: u64,
    /// No controller goes below this, bit/s.
    min_rate: f64,
    /// No controller goes above this, bit/s.
    max_rate: f64,
    /// The rate before anything is known, bit/s; None if the scenario says none.
    start_rate: Option<f64>,
}

/// One packet has left.
#[pyclass(module = "fairpace", frozen, get_all)]
pub(crate) struct Sent {
    /// Its number.
    seq: u64,
    /// Its size on the wire, bytes.
    size: u64,
}

/// One packet is acknowledged, for the first time.
#[pyclass(module = "fairpace", frozen, get_all)]
pub(crate) struct Acked {
    /// Its number.
    seq: u64,
    /// Its size on the wire, bytes.
    size: u64,
    /// When it left, s.
    sent_at: f64,
    /// Whether the packet had been declared lost.
    late: bool,
    /// The round trip that it measured, s; None if that was not believable.
    rtt: Option<f64>,
    /// Whether the packet arrived with a congestion mark.
    marked: bool,
    /// When it arrived, s on the receiver's clock; None if the feedback does not say.
    arrived_at: Option<f64>,
    /// Packets that are neither acknowledged nor declared lost.
    outstanding: usize,
}

/// One packet is declared lost.
#[pyclass(module = "fairpace", frozen, get_all)]
pub(crate) struct Loss {
    /// Its number.
    seq: u64,
    /// When it left, s.
    sent_at: f64,
    /// The highest number sent so far.
    highest_sent: u64,
}

/// The round trip, as far as it is known.
#[pyclass(module = "fairpace", frozen, get_all)]
pub(crate) struct Rtt {
    /// The smoothed one, s; None before the first sample.
    smoothed: Option<f64>,
    /// The last sample, s.
    latest: Option<f64>,
    /// The least so far, s.
    min: Option<f64>,
    /// How far samples lie from the smoothed one in the mean, s.
    variation: f64,
}

impl Rtt {
    fn new(rtt: &RttEstimator) -> Rtt {
        Rtt {
            smoothed: rtt.srtt().map(|t| t.as_secs_f64()),
            latest: rtt.latest().map(|t| t.as_secs_f64()),
            min: rtt.min().map(|t| t.as_secs_f64()),
            variation: rtt.rttvar().as_secs_f64(),
        }
    }
}

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

    fn note(&self, py: Python<'_>, error: PyErr, place: &str) {
        // An exception that takes no notes is still raised.
        let _ = error.value(py).call_method1("add_note", (place,));
        self.first.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// The flows of a scenario whose controllers are Python's.
pub(crate) struct Replaced {
    /// By the name of a flow or a group: what results call it, which is the class's name, and the class.
    classes: Vec<(String, String, Arc<Py<PyAny>>)>,
    raised: Arc<Raised>,
}

impl Replaced {
    /// Looks whether each name is a media flow's, or a group's.
    pub(crate) fn new(
        py: Python<'_>,
        scenario: &Scenario,
        classes: Classes,
        stop: &Arc<AtomicBool>,
    ) -> PyResult<Replaced> {
        let mut all = Vec::new();
        for (key, class) in classes {
            let of_key = || scenario.flows.iter().filter(|f| f.name == key || f.group == key);
            if of_key().next().is_none() {
                let names = || scenario.flows.iter().flat_map(|f| [f.name.as_str(), f.group.as_str()]);
                let near = nearest(&key, names()).map(|n| format!("did you mean `{n}`?"));
                return Err(raise(py, "ScenarioError", &format!("the scenario has no flow `{key}`"), near.as_deref()));
            }
            let other = of_key().find(|f| controllers::family(&f.controller) != Some(controllers::Family::Media));
            if let Some(other) = other {
                let what = format!("flow `{key}` is `{}`: it has no rate controller to replace", other.controller);
                let hint = "name a flow of a media controller, such as `fixed`";
                return Err(raise(py, "ScenarioError", &what, Some(hint)));
            }
            check_class(class.bind(py))?;
            let name =
                class.bind(py).getattr("__name__").and_then(|n| n.extract()).unwrap_or_else(|_| "custom".to_owned());
            all.push((key, name, Arc::new(class)));
        }
        let raised = Raised::new(stop);
        Ok(Replaced { classes: all, raised })
    }

    /// The first exception of an object, if there was one.
    pub(crate) fn raised(&self) -> Option<PyErr> {
        self.raised.take()
    }

    /// Simulates one seed.
    pub(crate) fn simulate(
        &self,
        scenario: &Scenario,
        seed: u64,
        record: Record,
        hooks: &Hooks<'_>,
    ) -> Result<SeedRun, RunError> {
        let mut config = sim_config(scenario, seed, record)?;
        // The simulator's flows are those of each entry, one entry after the other.
        let each =
            scenario.flows.iter().flat_map(|flow| instances(scenario, flow, seed).into_iter().map(move |_| flow));
        let mut replaced = BTreeMap::new();
        for (flow, entry) in config.flows.iter_mut().zip(each) {
            let found = self.classes.iter().find(|(key, ..)| *key == entry.name || *key == entry.group);
            let (Some((_, name, class)), Protocol::Media(media)) = (found, &mut flow.protocol) else { continue };
            let ControllerSpec::Named { env, .. } = media.controller else { continue };
            let place = format!("flow `{}`, seed {seed}", flow.name);
            let make = maker(class.clone(), self.raised.clone(), place);
            media.controller = ControllerSpec::Custom(Arc::new(move || make(&env)));
            replaced.insert(flow.name.clone(), name);
        }
        let (report, now) = simulate_observed(&scenario.name, &config, None, hooks)?;
        let interrupted = now < Instant::ZERO + config.duration;
        let mut summary = RunSummary::new(scenario, seed, &report, now.since(Instant::ZERO), interrupted);
        for flow in &mut summary.flows {
            if let Some(name) = replaced.get(&flow.name) {
                flow.controller.clone_from(name);
            }
        }
        Ok(SeedRun { seed, summary, report })
    }
}

fn no_controller(found: &Bound<'_, PyAny>) -> PyErr {
    let found = found.repr().map_or_else(|_| "this".to_owned(), |text| text.to_string());
    PyTypeError::new_err(format!(
        "{found} is no fairpace.Controller: give a class; each flow gets an object of its own"
    ))
}

/// A maker of controllers from a class of Python, each an object of its own, whose exceptions come to `raised`, with the place.
pub(crate) fn maker(
    class: Arc<Py<PyAny>>,
    raised: Arc<Raised>,
    place: String,
) -> impl Fn(&Limits) -> Box<dyn Controller> + Send + Sync {
    move |env| Box::new(FromPython::new(&class, *env, raised.clone(), place.clone()))
}

/// Refuses what makes no controllers.
pub(crate) fn check_class(class: &Bound<'_, PyAny>) -> PyResult<()> {
    let base = class.py().import("fairpace")?.getattr("Controller")?;
    let is_other = class.cast::<PyType>().is_ok_and(|class| !class.is_subclass(&base).unwrap_or(false));
    if is_other || !class.is_callable() { Err(no_controller(class)) } else { Ok(()) }
}

/// The methods that a class defines.
#[derive(Clone, Copy, Debug, Default)]
struct Defined {
    start: bool,
    on_sent: bool,
    on_ack: bool,
    on_loss: bool,
    on_timeout: bool,
    on_timer: bool,
}

/// The controller whose decisions an object of Python makes.
#[derive(Debug)]
struct FromPython {
    /// None once it has raised: then nothing leaves any more, and the run is about to end.
    object: Option<Py<PyAny>>,
    defined: Defined,
    is_responsive: bool,
    env: Limits,
    raised: Arc<Raised>,
    place: String,
    /// The rate that the object wants.
    wanted: Rate,
    /// That, within the limits.
    rate: Rate,
    /// `env.max_rate`, or less if the application wants less.
    limit: Rate,
    window: Option<f64>,
    timer: Instant,
    outstanding: usize,
    srtt: Duration,
    reason: &'static str,
    pacer: Pacer,
}

impl FromPython {
    fn new(class: &Py<PyAny>, env: Limits, raised: Arc<Raised>, place: String) -> FromPython {
        let mut this = FromPython {
            object: None,
            defined: Defined::default(),
            is_responsive: true,
            env,
            raised,
            place,
            wanted: env.min_rate,
            rate: env.start_rate.unwrap_or(env.min_rate),
            limit: env.max_rate,
            window: None,
            timer: Instant::NEVER,
            outstanding: 0,
            srtt: Duration::ZERO,
            reason: "start",
            pacer: Pacer::starting(Instant::NEVER),
        };
        Python::attach(|py| {
            if let Err(error) = this.make(py, class) {
                this.give_up(py, error, Instant::ZERO);
            }
        });
        this
    }

    fn make(&mut self, py: Python<'_>, class: &Py<PyAny>) -> PyResult<()> {
        let env = Env {
            packet_size: self.env.packet_size.get(),
            min_rate: self.env.min_rate.as_bps(),
            max_rate: self.env.max_rate.as_bps(),
            start_rate: self.env.start_rate.map(Rate::as_bps),
        };
        let object = class.bind(py).call1((env,))?;
        let base = py.import("fairpace")?.getattr("Controller")?;
        if !object.is_instance(&base)? {
            return Err(no_controller(&object));
        }
        // The base class's methods do nothing.
        let defines = |name: &str| -> PyResult<bool> {
            let own = object.get_type().getattr(name)?;
            Ok(!own.is(&base.getattr(name)?))
        };
        self.defined = Defined {
            start: defines("start")?,
            on_sent: defines("on_sent")?,
            on_ack: defines("on_ack")?,
            on_loss: defines("on_loss")?,
            on_timeout: defines("on_timeout")?,
            on_timer: defines("on_timer")?,
        };
        self.is_responsive = object.getattr("responsive")?.extract()?;
        self.read(Instant::ZERO, &object)?;
        self.object = Some(object.unbind());
        Ok(())
    }

    /// Reads what the object wants.
    fn read(&mut self, now: Instant, object: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = object.py();
        let bad = |name: &str, found: &Bound<'_, PyAny>, allowed: &str| -> PyErr {
            let found = found.repr().map_or_else(|_| "unprintable".to_owned(), |text| text.to_string());
            PyValueError::new_err(format!("`{name}` is {found}: {allowed}"))
        };
        let rate = object.getattr(pyo3::intern!(py, "rate"))?;
        let bps: f64 = rate.extract().unwrap_or(f64::NAN);
        if !(bps > 0.0 && bps.is_finite()) {
            return Err(bad("rate", &rate, "write a rate in bit/s, above 0"));
        }
        let window = object.getattr(pyo3::intern!(py, "window"))?;
        self.window = match window.extract::<Option<f64>>() {
            Ok(found) if found.is_none_or(|w| w >= 1.0) => found,
            _ => return Err(bad("window", &window, "write a number of packets from 1 on, or None")),
        };
        let timer = object.getattr(pyo3::intern!(py, "timer"))?;
        self.timer = match timer.extract::<Option<f64>>() {
            Ok(None) => Instant::NEVER,
            // One that was set before may be due by now: it goes off in a moment.
            Ok(Some(at))
                if at.is_finite()
                    && at >= 0.0
                    && (Instant::from_secs_f64(at) == self.timer || Instant::from_secs_f64(at) > now) =>
            {
                Instant::from_secs_f64(at)
            }
            _ => return Err(bad("timer", &timer, "write a time in seconds that is yet to come, or None")),
        };
        self.wanted = Rate::bps(bps);
        self.keep_within();
        Ok(())
    }

    /// Brings the rate up to date with what is wanted and what is allowed.
    fn keep_within(&mut self) {
        let rate = self.wanted.clamp(self.env.min_rate, self.limit);
        if rate != self.rate {
            self.rate = rate;
            self.pacer.regap(self.gap());
        }
    }

    /// Calls a method, and reads what the object wants then.
    fn call(
        &mut self,
        now: Instant,
        name: &'static str,
        arguments: impl for<'py> FnOnce(Python<'py>) -> PyResult<Bound<'py, PyTuple>>,
    ) {
        let Some(object) = self.object.take() else { return };
        Python::attach(|py| {
            let before = (self.rate, self.window);
            let called = arguments(py).and_then(|arguments| {
                object.bind(py).call_method1(name, arguments)?;
                self.read(now, object.bind(py))
            });
            if before != (self.rate, self.window) {
                self.reason = name;
            }
            match called {
                Ok(()) => self.object = Some(object.clone_ref(py)),
                Err(error) => self.give_up(py, error, now),
            }
        });
    }

    fn give_up(&mut self, py: Python<'_>, error: PyErr, now: Instant) {
        let place = format!("in {} at {:.6} s", self.place, now.as_secs_f64());
        self.raised.note(py, error, &place);
        self.object = None;
    }

    /// Seconds from one full packet to the next.
    fn gap(&self) -> f64 {
        self.env.packet_size.as_f64() * 8.0 / self.rate.as_bps()
    }
}

impl Controller for FromPython {
    fn start(&mut self, now: Instant, srtt: Option<Duration>) {
        self.srtt = srtt.unwrap_or(self.srtt);
        self.pacer = Pacer::starting(now);
        if self.defined.start {
            let seconds = srtt.map(|t| t.as_secs_f64());
            self.call(now, "start", |py| (now.as_secs_f64(), seconds).into_pyobject(py));
        }
    }

    fn on_sent(&mut self, now: Instant, sent: &Left) {
        self.outstanding += 1;
        self.pacer.sent(now, sent.size.as_f64() * 8.0 / self.rate.as_bps(), self.srtt);
        if self.defined.on_sent {
            let fact = Sent { seq: sent.seq, size: sent.size.get() };
            self.call(now, "on_sent", |py| (now.as_secs_f64(), fact).into_pyobject(py));
        }
    }

    fn on_ack(&mut self, now: Instant, ack: &Fact, rtt: &RttEstimator) {
        self.srtt = rtt.srtt().unwrap_or(self.srtt);
        self.outstanding = ack.outstanding;
        if self.defined.on_ack {
            let fact = Acked {
                seq: ack.seq,
                size: ack.size.get(),
                sent_at: ack.sent_at.as_secs_f64(),
                late: ack.late,
                rtt: ack.rtt.map(|t| t.as_secs_f64()),
                marked: ack.ecn == Ecn::Ce,
                arrived_at: ack.arrived_at.map(|t| t.as_secs_f64()),
                outstanding: ack.outstanding,
            };
            self.call(now, "on_ack", |py| (now.as_secs_f64(), fact, Rtt::new(rtt)).into_pyobject(py));
        }
    }

    fn on_loss(&mut self, now: Instant, loss: &Lost, rtt: &RttEstimator) {
        self.outstanding = self.outstanding.saturating_sub(1);
        if self.defined.on_loss {
            let fact = Loss { seq: loss.seq, sent_at: loss.sent_at.as_secs_f64(), highest_sent: loss.highest_sent };
            self.call(now, "on_loss", |py| (now.as_secs_f64(), fact, Rtt::new(rtt)).into_pyobject(py));
        }
    }

    fn on_timeout(&mut self, now: Instant, rtt: &RttEstimator) {
        // All that was outstanding counts as lost.
        self.outstanding = 0;
        if self.defined.on_timeout {
            self.call(now, "on_timeout", |py| (now.as_secs_f64(), Rtt::new(rtt)).into_pyobject(py));
        }
    }

    fn on_timer(&mut self, now: Instant, rtt: &RttEstimator) {
        // A timer goes off once, unless the object sets another.
        self.timer = Instant::NEVER;
        if let Some(object) = self.object.as_ref() {
            let cleared = Python::attach(|py| object.bind(py).setattr(pyo3::intern!(py, "timer"), py.None()));
            if let Err(error) = cleared {
                return Python::attach(|py| self.give_up(py, error, now));
            }
        }
        if self.defined.on_timer {
            self.call(now, "on_timer", |py| (now.as_secs_f64(), Rtt::new(rtt)).into_pyobject(py));
        }
    }

    fn set_demand(&mut self, _now: Instant, max: Option<Rate>) {
        self.limit = max.unwrap_or(self.env.max_rate).clamp(self.env.min_rate, self.env.max_rate);
        self.keep_within();
    }

    fn poll_send(&mut self, now: Instant, has_data: bool) -> SendPoll {
        if self.object.is_none() {
            return SendPoll::Wait(Instant::NEVER);
        }
        if self.window.is_some_and(|window| self.outstanding as f64 + 1.0 > window) {
            return SendPoll::WaitForFeedback;
        }
        self.pacer.poll_data(now, has_data)
    }

    fn poll_timer(&self) -> Instant {
        self.timer
    }

    fn target_rate(&self) -> Rate {
        self.rate
    }

    fn windows(&self) -> Option<Windows> {
        self.window.map(|cwnd| Windows { cwnd, rwnd: u32::MAX })
    }

    fn is_responsive(&self) -> bool {
        self.is_responsive
    }

    fn status(&self) -> Status {
        Status { state: "Python", rate: self.rate, reason: self.reason, p: None }
    }
}
