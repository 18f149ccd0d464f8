//! Scenarios and numbers that are built in: ours, and read by tests, so that they cannot be wrong where an experiment runs.

use super::Experiment;
use fairpace_scenario::{RawScenario, Scenario, Speed, Time};
use std::fmt::Display;

/// The experiment's scenario.
pub(super) fn base(experiment: &Experiment) -> Scenario {
    Scenario::parse(experiment.scenario, experiment.file).unwrap_or_else(|e| ours(&e))
}

/// Ends the program: reading a built-in scenario cannot fail.
pub(super) fn ours(error: &dyn Display) -> ! {
    unreachable!("this is built in: {error}")
}

/// A scenario, changed, and checked again.
pub(super) fn with(scenario: &Scenario, change: impl FnOnce(&mut RawScenario)) -> Scenario {
    scenario.modify(change).unwrap_or_else(|e| ours(&e))
}

pub(super) fn time_ms(ms: f64) -> Time {
    Time::ms(ms)
}

pub(super) fn kbps(rate: f64) -> Speed {
    Speed::kbps(rate)
}
