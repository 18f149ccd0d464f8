//! The same scenario under other controllers: what a comparison runs.

use crate::controllers::{self, Family};
use crate::{FlowSpec, Parameter, Priority, Problem, RawScenario, Scenario, ScenarioError};
use fairpace_control::feedback::Form;

/// The scenario with every media flow under another controller; TCP and background stay. If there is
/// no media flow, all TCP flows change instead.
///
/// # Errors
/// The name is not a controller, or a parameter is refused.
pub fn with_controller(scenario: &Scenario, spec: &str) -> Result<Scenario, ScenarioError> {
    let is = |f: &FlowSpec, family| controllers::family(&f.controller) == Some(family);
    let replaced = if scenario.flows.iter().any(|f| is(f, Family::Media)) { Family::Media } else { Family::Tcp };
    replace_controller(scenario, spec, |f| is(f, replaced))
}

/// As [`with_controller`], for the flows that `chosen` says.
///
/// # Errors
/// As [`with_controller`].
pub fn replace_controller(
    scenario: &Scenario,
    spec: &str,
    chosen: impl Fn(&FlowSpec) -> bool,
) -> Result<Scenario, ScenarioError> {
    let (name, settings) = spec.split_once(':').unwrap_or((spec, ""));
    let refuse = |problem| ScenarioError { file: "compare".to_owned(), line: 0, problem: Box::new(problem) };
    let family = controllers::family(name).filter(|f| *f != Family::Constant).ok_or_else(|| {
        let names = controllers::names().into_iter().filter(|n| *n != controllers::CONSTANT);
        refuse(Problem::UnknownName {
            field: "controller".to_owned(),
            found: name.to_owned(),
            what: "a controller to compare",
            allowed: names.map(str::to_owned).collect(),
            list: Some("fairpace list controllers"),
        })
    })?;
    let mut variant = RawScenario::clone(scenario);
    for flow in variant.flows.iter_mut().filter(|f| chosen(f)) {
        // Parameters of another scheme mean nothing here; those of the same one stay.
        if flow.controller != name {
            flow.parameters.clear();
        }
        name.clone_into(&mut flow.controller);
        if family == Family::Tcp {
            flow.source = None;
            flow.feedback = None;
            flow.initial_rtt = None;
            (flow.quick_start, flow.send_buffer, flow.tolerable_delay) = (None, None, None);
            (flow.max_rate, flow.min_rate, flow.start_rate) = (None, None, None);
            flow.class = Priority::Normal;
        } else {
            flow.tcp = None;
            flow.transfer = None;
            flow.on_off = None;
        }
        for setting in settings.split(',').filter(|s| !s.trim().is_empty()) {
            let Some((key, value)) = setting.split_once('=') else {
                return Err(refuse(Problem::BadValue {
                    field: "controller".to_owned(),
                    found: spec.to_owned(),
                    wrong: format!("has `{setting}` where a parameter should be"),
                    allowed: "write parameters as in `rap:fine_grain=on`".to_owned(),
                }));
            };
            flow.parameters.insert(key.trim().to_owned(), Parameter::Text(value.trim().to_owned()));
        }
    }
    for index in 0..variant.flows.len() {
        let flow = &variant.flows[index];
        if controllers::family(&flow.controller) != Some(Family::Media) {
            continue;
        }
        let mut controller = controllers::build(&variant, flow).map_err(|e| {
            refuse(match e.allowed_names {
                Some(allowed) => Problem::UnknownField { field: format!("{name}:{}", e.name), allowed },
                None => Problem::BadValue {
                    field: format!("{name}:{}", e.name),
                    found: e.found,
                    wrong: e.wrong,
                    allowed: e.allowed,
                },
            })
        })?;
        if matches!(controller.feedback_form(), Form::RtpTfrc | Form::Reports) {
            variant.flows[index].feedback = None;
        }
        if !controllers::uses_quick_start(&variant, &variant.flows[index], &mut *controller) {
            variant.flows[index].quick_start = None;
        }
    }
    scenario.modify(|raw| *raw = variant)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two controllers over a lossy link, and background.
    const SMALL: &str = include_str!("../tests/small.toml");

    fn small() -> Scenario {
        Scenario::parse(SMALL, "small.toml").unwrap()
    }

    #[test]
    fn a_receiver_that_measures_keeps_no_feedback_interval() {
        let text = "[path]\nrate = \"1 Mbit/s\"\n[[flows]]\ncontroller = \"rap\"\nfeedback = \"50 ms\"\n";
        let scenario = Scenario::parse(text, "x.toml").unwrap();
        let kept = |spec| replace_controller(&scenario, spec, |_| true).unwrap().flows[0].feedback.is_some();
        assert!(kept("tfrc") && !kept("tfrc:measured_by=receiver"));
    }

    #[test]
    fn a_comparison_with_nonsense_is_refused_before_anything_runs() {
        let refuse = |name: &str| with_controller(&small(), name).unwrap_err();
        let error = refuse("rpa");
        assert_eq!(error.to_string(), "compare: `controller` is `rpa`, which is not a controller to compare");
        assert_eq!(error.hint().unwrap(), "did you mean `rap`? `fairpace list controllers` shows all");
        let error = refuse("rap:fine=on");
        assert_eq!(error.to_string(), "compare: `rap:fine` is not a field");
        let error = refuse("rap:fine_grain");
        assert_eq!(
            error.to_string(),
            "compare: `controller` is `rap:fine_grain`, which has `fine_grain` where a parameter should be"
        );
        let error = refuse("rap:mu=0.1");
        assert_eq!(error.to_string(), "compare: `rap:mu` is `0.1`, which is out of range or not of the right kind");
        assert!(refuse("constant").to_string().ends_with("which is not a controller to compare"));
    }
}
