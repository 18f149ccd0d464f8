//! The names that `flows[].controller` may have, and what stands behind them: the registry of media
//! controllers, the simulator's TCP, and no control at all.

use crate::{FlowSpec, Problem, RawScenario, SafetyMode, Scenario, ScenarioError};
use fairpace_control::ParamError;
use fairpace_control::{Controller, Env, Safety};
use fairpace_units::{Bytes, Rate};
use std::collections::BTreeMap;

/// TCP in three variants.
pub const TCP: [&str; 3] = ["tcp-reno", "tcp-newreno", "tcp-sack"];
/// TCP of the kernel's only: these run in the emulator, and nowhere else.
pub const KERNEL_TCP: [&str; 2] = ["tcp-cubic", "tcp-bbr"];
/// Packets at a fixed rate, no feedback: background traffic.
pub const CONSTANT: &str = "constant";

/// The kind of flow that a controller makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// A media controller of the registry.
    Media,
    /// The simulator's TCP.
    Tcp,
    /// Background traffic without feedback.
    Constant,
}

/// Every name there is, media controllers first.
pub fn names() -> Vec<&'static str> {
    fairpace_control::schemes().iter().map(|s| s.name).chain(TCP).chain(KERNEL_TCP).chain([CONSTANT]).collect()
}

/// The kind of flow that the name makes, if it names a controller at all.
pub fn family(name: &str) -> Option<Family> {
    if TCP.contains(&name) || KERNEL_TCP.contains(&name) {
        Some(Family::Tcp)
    } else if name == CONSTANT {
        Some(Family::Constant)
    } else {
        fairpace_control::schemes().iter().any(|s| s.name == name).then_some(Family::Media)
    }
}

/// Whether the simulator has all controllers of the scenario.
///
/// # Errors
/// A flow has one of [`KERNEL_TCP`].
pub fn simulated(scenario: &Scenario) -> Result<(), ScenarioError> {
    let Some(flow) = scenario.flows.iter().find(|f| KERNEL_TCP.contains(&f.controller.as_str())) else { return Ok(()) };
    let problem = Problem::BadValue {
        field: "controller".to_owned(),
        found: flow.controller.clone(),
        wrong: "is the kernel's and cannot be simulated".to_owned(),
        allowed: "add `--world emu`, or write `tcp-reno`, `tcp-newreno` or `tcp-sack`".to_owned(),
    };
    Err(scenario.error(problem))
}

/// A name that no controller has.
pub(crate) fn unknown(field: &str, found: &str) -> Problem {
    Problem::UnknownName {
        field: field.to_owned(),
        found: found.to_owned(),
        what: "a controller",
        allowed: names().into_iter().map(str::to_owned).collect(),
        list: Some("fairpace list controllers"),
    }
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

/// Whether a media controller sends over a TCP of the flow's own too.
pub fn has_tcp(controller: &str) -> bool {
    controller == fairpace_control::tpba::INFO.name
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

fn refused(error: &ParamError) -> BadParameter {
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

/// Whether the refused setting is one of the flow's own limits and not a parameter.
pub fn is_limit(name: &str) -> bool {
    matches!(name, "min_rate" | "max_rate" | "start_rate" | "packet_size")
}

/// The parameters that a flow's controller has, with their defaults; none for TCP and `constant`.
pub fn defaults(flow: &FlowSpec) -> impl Iterator<Item = (String, String)> + use<> {
    let scheme = fairpace_control::schemes().iter().find(|s| s.name == flow.controller);
    let params = scheme.map_or(&[][..], |s| s.params);
    params.iter().map(|p| (p.name.to_owned(), p.default.to_owned()))
}

/// The names of a controller's parameters.
pub fn parameter_names(controller: &str) -> Vec<&'static str> {
    let scheme = fairpace_control::schemes().iter().find(|s| s.name == controller);
    scheme.map_or(Vec::new(), |s| s.params.iter().map(|p| p.name).collect())
}

/// Every controller's parameters in one text, for the schema.
pub fn parameters_text() -> String {
    let mut text = String::from("The controller's own parameters, by name.");
    for scheme in fairpace_control::schemes() {
        let params: Vec<String> =
            scheme.params.iter().map(|p| format!("{} ({}; default {})", p.name, p.doc, p.default)).collect();
        text.push_str(&format!(
            " {}: {}.",
            scheme.name,
            if params.is_empty() { "none".to_owned() } else { params.join(", ") }
        ));
    }
    text
}
