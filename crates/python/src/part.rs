//! An object of Python before a link: a [`CustomMedium`] whose packets it forwards, delays, marks and drops.
//!
//! The object hears of each packet that enters (`on_packet`) and of its timer (`on_timer`), times in seconds, and says what becomes of
//! packets by `forward(packet, at)` and `drop(packet, reason)` of its base class; those of which it says nothing it holds. Packets of the
//! other direction pass untouched.
//!
//! An exception of the object, and a decision that makes no sense, stop the run, and are raised from there with link, seed and time as
//! a note.

use crate::controller::Classes;
use crate::error::raise;
use crate::object::{Calls, Raised, check_class, clear_timer, no_object, senseless, shows, timer};
use fairpace_path::{CustomMedium, Datagram as _, DropReason};
use fairpace_scenario::{Record, Scenario, nearest, sim_config};
use fairpace_sim::{CustomSpec, HopConfig, Packet as Carried, RouteHop, SimConfig};
use fairpace_units::{Class, Ecn, Instant, RandomStream};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// The base class, and what has an object of its own.
const BASE: &str = "LinkPart";
const EACH: &str = "each link of each run";

/// The surroundings of a part.
#[pyclass(module = "fairpace", frozen, get_all)]
pub(crate) struct LinkEnv {
    /// The link that the part stands before.
    link: String,
    /// The seed for random numbers of the part's own: another one for each link and each seed of the scenario.
    seed: u64,
}

/// A packet that enters a part.
#[pyclass(module = "fairpace", frozen, get_all)]
pub(crate) struct Packet {
    /// Its number at this part, from 0.
    number: u64,
    /// Its size on the wire, bytes.
    size: u64,
    /// The name of its flow.
    flow: Py<PyString>,
    /// Whether it is of the lower priority.
    low: bool,
    /// Whether it may be marked instead of dropped.
    ecn_capable: bool,
    /// Whether it is marked: "congestion experienced".
    marked: bool,
}

shows!(LinkEnv: link, seed);
shows!(Packet: number, size, flow, low, ecn_capable, marked);

/// The parts of Python in the runs of one call.
pub(crate) struct Parts {
    /// The link, and the class of its part.
    classes: Vec<(String, Arc<Py<PyAny>>)>,
    raised: Arc<Raised>,
}

impl Parts {
    /// Looks whether each name is a link's.
    pub(crate) fn new(py: Python<'_>, scenario: &Scenario, classes: Classes, raised: &Arc<Raised>) -> PyResult<Parts> {
        let mut all = Vec::new();
        let hops = if classes.is_empty() {
            Vec::new()
        } else {
            let config = sim_config(scenario, scenario.seed.get(), Record::default());
            config.map_err(|e| crate::error::scenario(py, &e))?.hops
        };
        for (link, class) in classes {
            if !hops.iter().any(|hop| Way::of(hop, &link).is_some()) {
                let names = hops.iter().flat_map(HopConfig::names);
                let near = nearest(&link, names).map(|n| format!("did you mean `{n}`?"));
                let known: Vec<&str> = hops.iter().flat_map(HopConfig::names).collect();
                let known = format!("there are {}", known.join(", "));
                let text = format!("the scenario has no link `{link}`");
                return Err(raise(py, "ScenarioError", &text, Some(near.as_deref().unwrap_or(&known))));
            }
            check_class(class.bind(py), BASE, EACH)?;
            all.push((link, Arc::new(class)));
        }
        Ok(Parts { classes: all, raised: raised.clone() })
    }

    /// Puts each part before its link, on the way of every flow that passes there.
    pub(crate) fn insert(&self, config: &mut SimConfig, seed: u64) {
        let flows: Arc<Vec<String>> = Arc::new(config.flows.iter().map(|flow| flow.name.clone()).collect());
        for (link, class) in &self.classes {
            let found = config.hops.iter().enumerate().find_map(|(i, hop)| Some((i, Way::of(hop, link)?)));
            let Some((hop, way)) = found else { continue };
            let (class, raised, flows) = (class.clone(), self.raised.clone(), flows.clone());
            let link = link.clone();
            let medium = HopConfig::Custom {
                name: format!("before {link}"),
                medium: CustomSpec::new(move |_, _| {
                    let part = FromPython::new(&class, &link, seed, flows.clone(), raised.clone());
                    Box::new(OneWay { part, way, passing: VecDeque::new(), now: Instant::ZERO })
                }),
            };
            // Feedback passes the hops the other way round: before a link for feedback is behind its hop.
            let at = match way {
                Way::There => hop,
                Way::Back => hop + 1,
            };
            config.hops.insert(at, medium);
            for flow in &mut config.flows {
                for via in &mut flow.route {
                    via.hop += u32::from(via.hop as usize >= at);
                }
                let moved = if at == hop { hop + 1 } else { hop };
                let Some(place) = flow.route.iter().position(|via| via.hop as usize == moved) else { continue };
                let place = if at == hop { place } else { place + 1 };
                flow.route.insert(place, RouteHop { hop: at as u32, ports: [DATA, FEEDBACK] });
            }
        }
    }
}

/// The ports of a part.
const DATA: u32 = 0;
const FEEDBACK: u32 = 1;

/// The direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    There,
    Back,
}

impl Way {
    /// The direction of the hop's link of that name.
    fn of(hop: &HopConfig, link: &str) -> Option<Way> {
        match hop.names().position(|name| name == link)? {
            0 => Some(Way::There),
            _ => Some(Way::Back),
        }
    }

    fn port(self) -> u32 {
        match self {
            Way::There => DATA,
            Way::Back => FEEDBACK,
        }
    }
}

/// A hop that is the part in one direction, and nothing in the other.
struct OneWay {
    part: FromPython,
    way: Way,
    /// Packets of the other direction.
    passing: VecDeque<Carried>,
    /// When the last of them came.
    now: Instant,
}

impl CustomMedium<Carried> for OneWay {
    fn ports(&self) -> u32 {
        2
    }

    fn push(&mut self, now: Instant, port: u32, packet: Carried) {
        if port == self.way.port() {
            self.part.push(now, packet);
        } else {
            self.passing.push_back(packet);
            self.now = now;
        }
    }

    fn next(&self) -> Instant {
        if self.passing.is_empty() { self.part.next() } else { self.now.min(self.part.next()) }
    }

    fn pop(&mut self, now: Instant) -> Option<(u32, Carried)> {
        let port = self.way.port();
        match self.passing.pop_front() {
            Some(packet) => Some((DATA + FEEDBACK - port, packet)),
            None => Some((port, self.part.pop(now)?)),
        }
    }

    fn take_dropped(&mut self) -> Option<(Instant, DropReason, u32, Carried)> {
        let (at, reason, packet) = self.part.dropped.pop_front()?;
        Some((at, reason, self.way.port(), packet))
    }
}

/// A part whose decisions an object of Python makes.
struct FromPython {
    /// None once it has raised: then nothing comes out any more, and the run is about to end.
    object: Option<Py<PyAny>>,
    raised: Arc<Raised>,
    calls: Arc<Calls>,
    flows: Arc<Vec<String>>,
    /// The same as objects, as they are asked for.
    names: BTreeMap<u32, Py<PyString>>,
    entered: u64,
    held: BTreeMap<u64, Carried>,
    /// Packets that come out, by the instant and their order.
    out: BTreeMap<(Instant, u64), Carried>,
    decided: u64,
    dropped: VecDeque<(Instant, DropReason, Carried)>,
    timer: Instant,
}

impl FromPython {
    fn new(class: &Py<PyAny>, link: &str, seed: u64, flows: Arc<Vec<String>>, raised: Arc<Raised>) -> FromPython {
        let mut this = FromPython {
            object: None,
            calls: raised.calls(format!("the part before link `{link}`, seed {seed}")),
            raised,
            flows,
            names: BTreeMap::new(),
            entered: 0,
            held: BTreeMap::new(),
            out: BTreeMap::new(),
            decided: 0,
            dropped: VecDeque::new(),
            timer: Instant::NEVER,
        };
        let env = LinkEnv { link: link.to_owned(), seed: RandomStream::named(seed, &format!("{link}.part")).bits() };
        Python::attach(|py| {
            let made = class.bind(py).call1((env,)).and_then(|object| {
                let base = py.import("fairpace")?.getattr(BASE)?;
                if !object.is_instance(&base)? {
                    return Err(no_object(&object, BASE, EACH));
                }
                this.read(Instant::ZERO, &object)?;
                Ok(object.unbind())
            });
            match made {
                Ok(object) => this.object = Some(object),
                Err(error) => this.give_up(py, error, Instant::ZERO),
            }
        });
        this
    }

    fn push(&mut self, now: Instant, packet: Carried) {
        let number = self.entered;
        self.entered += 1;
        self.held.insert(number, packet);
        self.call(now, "on_packet", |this, py| {
            let flow = this.names.entry(packet.flow).or_insert_with(|| {
                let name = this.flows.get(packet.flow as usize).map_or("", String::as_str);
                PyString::new(py, name).unbind()
            });
            let fact = Packet {
                number,
                size: packet.size().get(),
                flow: flow.clone_ref(py),
                low: packet.class() == Class::Low,
                ecn_capable: packet.ecn() != Ecn::NotEct,
                marked: packet.ecn() == Ecn::Ce,
            };
            (now.as_secs_f64(), fact).into_pyobject(py)
        });
    }

    fn next(&self) -> Instant {
        self.out.first_key_value().map_or(self.timer, |((at, _), _)| self.timer.min(*at))
    }

    fn pop(&mut self, now: Instant) -> Option<Carried> {
        while self.timer <= now && self.object.is_some() {
            // A timer goes off once, unless the object sets another, which is later.
            self.timer = Instant::NEVER;
            self.call(now, "on_timer", |this, py| {
                if let Some(object) = &this.object {
                    clear_timer(object.bind(py))?;
                }
                (now.as_secs_f64(),).into_pyobject(py)
            });
        }
        let first = self.out.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }

    /// Calls a method, and does what the object decides then.
    fn call(
        &mut self,
        now: Instant,
        name: &'static str,
        arguments: impl for<'py> FnOnce(&mut Self, Python<'py>) -> PyResult<Bound<'py, PyTuple>>,
    ) {
        Python::attach(|py| {
            let Some(object) = self.object.as_ref().map(|object| object.clone_ref(py)) else { return };
            let called = arguments(self, py).and_then(|arguments| {
                self.calls.call(object.bind(py), name, arguments)?;
                self.read(now, object.bind(py))
            });
            if let Err(error) = called {
                self.give_up(py, error, now);
            }
        });
    }

    /// Reads the timer and what has been decided.
    fn read(&mut self, now: Instant, object: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = object.py();
        self.timer = timer(now, object, self.timer)?;
        let decisions = object.getattr(pyo3::intern!(py, "_decisions"))?;
        let decisions = decisions.cast::<PyList>()?;
        if decisions.is_empty() {
            return Ok(());
        }
        for decision in decisions {
            let (packet, at, mark, reason): (Bound<'_, PyAny>, Bound<'_, PyAny>, bool, Bound<'_, PyAny>) =
                decision.extract()?;
            self.decide(now, &packet, &at, mark, &reason)?;
        }
        decisions.del_slice(0, decisions.len())
    }

    fn decide(
        &mut self,
        now: Instant,
        packet: &Bound<'_, PyAny>,
        at: &Bound<'_, PyAny>,
        mark: bool,
        reason: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let number = packet.cast::<Packet>().ok().map(|packet| packet.get().number);
        let Some((number, mut carried)) = number.and_then(|number| Some((number, self.held.remove(&number)?))) else {
            return Err(senseless("packet", packet, "only a packet that is held can be forwarded or dropped, once"));
        };
        if !reason.is_none() {
            let word: &str = reason.extract().unwrap_or_default();
            let Some(known) = DropReason::ALL.into_iter().find(|known| known.as_str() == word) else {
                let known = DropReason::ALL.map(DropReason::as_str).join(", ");
                return Err(senseless("reason", reason, &format!("there are {known}")));
            };
            self.dropped.push_back((now, known, carried));
            return Ok(());
        }
        if mark {
            if carried.ecn() == Ecn::NotEct {
                let text = format!("packet {number} of `{}` cannot be marked: drop it", self.flow_of(&carried));
                return Err(PyValueError::new_err(text));
            }
            carried.set_ecn(Ecn::Ce);
        }
        let when = match at.extract::<Option<f64>>() {
            Ok(None) => now,
            Ok(Some(s)) if s.is_finite() && Instant::from_secs_f64(s) >= now => Instant::from_secs_f64(s),
            _ => return Err(senseless("at", at, "write a time in seconds that is not past, or None for at once")),
        };
        self.out.insert((when, self.decided), carried);
        self.decided += 1;
        Ok(())
    }

    fn flow_of(&self, packet: &Carried) -> &str {
        self.flows.get(packet.flow as usize).map_or("", String::as_str)
    }

    fn give_up(&mut self, py: Python<'_>, error: PyErr, now: Instant) {
        let place = format!("in {} at {:.6} s", self.calls.place, now.as_secs_f64());
        self.raised.note(py, error, &place);
        self.object = None;
        self.timer = Instant::NEVER;
    }
}
