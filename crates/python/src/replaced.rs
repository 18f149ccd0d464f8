//! Runs in which objects of Python stand where schemes and parts of links of ours do.

use crate::controller::{self, Classes};
use crate::error::raise;
use crate::object::{Raised, in_known_thread};
use crate::part::Parts;
use fairpace_lab::metrics::RunSummary;
use fairpace_lab::run::{SeedRun, simulate_observed};
use fairpace_lab::{Hooks, RunError};
use fairpace_scenario::{Record, Scenario, controllers, instances, nearest, sim_config};
use fairpace_sim::{ControllerSpec, Protocol};
use fairpace_units::Instant;
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The flows of a scenario whose controllers are Python's, and the links with parts of Python's before them.
pub(crate) struct Replaced {
    /// By the name of a flow or a group: what results call it, which is the class's name, and the class.
    classes: Vec<(String, String, Arc<Py<PyAny>>)>,
    parts: Parts,
    raised: Arc<Raised>,
}

impl Replaced {
    /// Looks whether each name is a media flow's, or a group's; and those of `parts`, whether each is a link's.
    pub(crate) fn new(
        py: Python<'_>,
        scenario: &Scenario,
        classes: Classes,
        parts: Classes,
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
            controller::check(class.bind(py))?;
            let name =
                class.bind(py).getattr("__name__").and_then(|n| n.extract()).unwrap_or_else(|_| "custom".to_owned());
            all.push((key, name, Arc::new(class)));
        }
        let raised = Raised::new(stop);
        let parts = Parts::new(py, scenario, parts, &raised)?;
        Ok(Replaced { classes: all, parts, raised })
    }

    /// The objects' exceptions and calls.
    pub(crate) fn objects(&self) -> &Raised {
        &self.raised
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
            let make = controller::maker(class.clone(), self.raised.clone(), place);
            media.controller = ControllerSpec::Custom(Arc::new(move || make(&env)));
            replaced.insert(flow.name.clone(), name);
        }
        self.parts.insert(&mut config, seed);
        let (report, now) = in_known_thread(|| simulate_observed(&scenario.name, &config, None, hooks))?;
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
