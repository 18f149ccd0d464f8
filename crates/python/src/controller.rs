//! An object of Python behind [`fairpace_control::Controller`]: in the simulator it stands where a scheme of ours does.
//!
//! The object hears the same facts by the same names (`start`, `on_sent`, `on_ack`, `on_loss`, `on_timeout`, `on_timer`), times
//! in seconds, and says what it wants in three attributes that are read after each call: `rate` (bit/s), `window` (packets
//! outstanding at most; None for no window) and `timer` (when `on_timer` is wanted; None for never). Pacing is done here.
//! A method that its class does not define is not called.
//!
//! An exception of the object, and a value that makes no sense, stop the run, and are raised from there with flow, seed and time as a note.

use crate::object::{Calls, Raised, check_class, check_object, clear_timer, no_object, senseless, shows, timer};
use fairpace_control::{
    Acked as Fact, Controller, Env as Limits, Loss as Lost, Pacer, RttEstimator, SendPoll, Sent as Left, Status,
    Windows,
};
use fairpace_units::{Duration, Ecn, Instant, Rate};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyTuple};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A class, or what else makes controllers, by the name of a flow or a group.
pub(crate) type Classes = BTreeMap<String, Py<PyAny>>;

/// The base class, and what has an object of its own.
const BASE: &str = "Controller";
const EACH: &str = "each flow";

/// The methods that are called by their names.
const METHODS: [&str; 6] = ["start", "on_sent", "on_ack", "on_loss", "on_timeout", "on_timer"];

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

shows!(Env: packet_size, min_rate, max_rate, start_rate);
shows!(Sent: seq, size);
shows!(Acked: seq, size, sent_at, late, rtt, marked, arrived_at, outstanding);
shows!(Loss: seq, sent_at, highest_sent);
shows!(Rtt: smoothed, latest, min, variation);

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

/// A maker of controllers from a class of Python, each an object of its own, whose exceptions come to `raised`, with the place.
pub(crate) fn maker(
    class: Arc<Py<PyAny>>,
    raised: Arc<Raised>,
    place: String,
) -> impl Fn(&Limits) -> Box<dyn Controller> + Send + Sync {
    move |env| Box::new(FromPython::new(&class, *env, raised.clone(), place.clone()))
}

/// Refuses what makes no controllers.
pub(crate) fn check(class: &Bound<'_, PyAny>) -> PyResult<()> {
    check_class(class, BASE, EACH)
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
    calls: Arc<Calls>,
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
            calls: raised.calls(place),
            raised,
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
        let base = py.import("fairpace")?.getattr(BASE)?;
        if !object.is_instance(&base)? {
            return Err(no_object(&object, BASE, EACH));
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
        let undefined = METHODS.into_iter().filter(|name| matches!(defines(name), Ok(false)));
        check_object(&object, &undefined.collect::<Vec<_>>())?;
        self.is_responsive = object.getattr("responsive")?.extract()?;
        self.read(Instant::ZERO, &object)?;
        self.object = Some(object.unbind());
        Ok(())
    }

    /// Reads what the object wants.
    fn read(&mut self, now: Instant, object: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = object.py();
        let rate = object.getattr(pyo3::intern!(py, "rate"))?;
        // True is a number to Python.
        let bps: f64 = if rate.is_instance_of::<PyBool>() { f64::NAN } else { rate.extract().unwrap_or(f64::NAN) };
        if !(bps > 0.0 && bps.is_finite()) {
            return Err(senseless("rate", &rate, "write a rate in bit/s, above 0"));
        }
        let window = object.getattr(pyo3::intern!(py, "window"))?;
        self.window = match window.extract::<Option<f64>>() {
            Ok(found) if found.is_none_or(|w| w >= 1.0) => found,
            _ => return Err(senseless("window", &window, "write a number of packets from 1 on, or None")),
        };
        self.timer = timer(now, object, self.timer)?;
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
                self.calls.call(object.bind(py), name, arguments)?;
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
        let place = format!("in {} at {:.6} s", self.calls.place, now.as_secs_f64());
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
        if let Some(object) = self.object.as_ref()
            && let Err(error) = Python::attach(|py| clear_timer(object.bind(py)))
        {
            return Python::attach(|py| self.give_up(py, error, now));
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
