//! The controller of a flow: its surroundings, its parameters, and the controller itself.

use super::KERNEL_TCP;
use crate::{FlowSpec, Problem, RawScenario, SafetyMode, ScenarioError};
use fairpace_control::ParamError;
use fairpace_control::{Controller, Env, Safety};
use fairpace_units::{Bytes, Rate};
use std::collections::BTreeMap;

/// Whether the simulator has all controllers of the scenario.
///
/// # Errors
/// A flow has one of [`KERNEL_TCP`].
pub fn simulated(scenario: &RawScenario) -> Result<(), ScenarioError> {
    let of_kernel = |flow: &FlowSpec| KERNEL_TCP.contains(&flow.controller.as_str());
    let Some((i, flow)) = scenario.flows.iter().enumerate().find(|(_, flow)| of_kernel(flow)) else { return Ok(()) };
    let problem = Problem::BadValue {
        field: format!("flows[{i}].controller"),
        found: flow.controller.clone(),
        wrong: "is the kernel's and cannot be simulated".to_owned(),
        allowed: "add `--world emu`, or write `tcp-reno`, `tcp-newreno` or `tcp-sack`".to_owned(),
    };
    Err(scenario.error(problem))
}

/// A parameter that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadParameter {
    /// Its name as written.
    pub name: String,
    /// Its value as written.
    pub found: String,
    /// "is not a duration: ...".
    pub wrong: String,
    /// The names or values that are allowed.
    pub allowed: String,
    /// The names there are, if it is the name that is unknown.
    pub allowed_names: Option<Vec<String>>,
}

/// The surroundings that a flow of the scenario gives its controller.
pub fn env(scenario: &RawScenario, flow: &FlowSpec) -> Env {
    let packet_size = packet_size(scenario, flow);
    let defaults = Env::default();
    let safety = safety(scenario);
    // The cap is a defence of real networks; the papers have none.
    let cap = if safety == Safety::Paper { Rate::MAX } else { defaults.max_rate };
    let rate = |r: &crate::Speed| r.get().with_packets_of(packet_size);
    let max_rate = flow.max_rate.as_ref().map_or(cap, rate);
    Env {
        packet_size,
        min_rate: flow.min_rate.as_ref().map_or(defaults.min_rate, rate).min(max_rate),
        start_rate: flow.start_rate.as_ref().map(rate),
        max_rate,
        safety,
    }
}

/// The protections that the scenario has on.
pub fn safety(scenario: &RawScenario) -> Safety {
    match scenario.safety {
        SafetyMode::Paper => Safety::Paper,
        SafetyMode::Default => Safety::Default,
    }
}

/// The size of the flow's data packets.
pub fn packet_size(scenario: &RawScenario, flow: &FlowSpec) -> Bytes {
    flow.packet_size.as_ref().map_or(scenario.packet_size.get(), crate::Size::get)
}

/// Makes the controller of a media flow.
///
/// # Errors
/// [`BadParameter`].
pub fn build(scenario: &RawScenario, flow: &FlowSpec) -> Result<Box<dyn Controller>, BadParameter> {
    let settings: BTreeMap<String, String> = flow.parameters.iter().map(|(k, v)| (k.clone(), v.text())).collect();
    fairpace_control::build(&flow.controller, &settings, &env(scenario, flow)).map_err(|error| refused(&error))
}

/// Whether the controller of a flow with a Quick-Start request would ever send it.
pub fn uses_quick_start(scenario: &RawScenario, flow: &FlowSpec, controller: &mut dyn Controller) -> bool {
    let Some(ask) = &flow.quick_start else { return false };
    let size = packet_size(scenario, flow);
    let params = ask.sender(&flow.name, size, 0).ok();
    params.zip(controller.quick_start()).is_some_and(|(params, hooks)| hooks.limit(&params).is_some())
}

impl BadParameter {
    /// The same, of the field at that place.
    pub(crate) fn problem(&self, field: String) -> Problem {
        match &self.allowed_names {
            Some(names) => Problem::UnknownField { field, allowed: names.clone() },
            None => Problem::BadValue {
                field,
                found: self.found.clone(),
                wrong: self.wrong.clone(),
                allowed: self.allowed.clone(),
            },
        }
    }
}

pub(crate) fn refused(error: &ParamError) -> BadParameter {
    let wrong = || "is out of range or not of the right kind".to_owned();
    match error {
        ParamError::UnknownParam { found, allowed, .. } => BadParameter {
            name: found.clone(),
            found: String::new(),
            wrong: String::new(),
            allowed: String::new(),
            allowed_names: Some(allowed.iter().map(|n| (*n).to_owned()).collect()),
        },
        ParamError::BadValue { name, found, allowed, .. } | ParamError::BadEnv { name, found, allowed } => {
            BadParameter {
                name: (*name).to_owned(),
                found: found.clone(),
                wrong: wrong(),
                allowed: allowed.clone(),
                allowed_names: None,
            }
        }
        // The name is checked before.
        ParamError::UnknownScheme { found, .. } => BadParameter {
            name: String::new(),
            found: found.clone(),
            wrong: "is not a controller".to_owned(),
            allowed: String::new(),
            allowed_names: None,
        },
    }
}

/// The parameters that a flow's controller has, with their defaults; none for TCP and `constant`.
pub fn defaults(flow: &FlowSpec) -> impl Iterator<Item = (String, String)> + use<> {
    let scheme = fairpace_control::schemes().iter().find(|s| s.name == flow.controller);
    let params = scheme.map_or(&[][..], |s| s.params);
    params.iter().map(|p| (p.name.to_owned(), p.default.to_owned()))
}
