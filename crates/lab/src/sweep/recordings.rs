//! The recordings that a scenario names: their contents decide results, and their names say nothing of them.

use super::error::SweepError;
use crate::study::Recordings;
use fairpace_scenario::Scenario;

/// Refuses a scenario whose recordings have another digest than they had where the sweep was laid out.
pub(super) fn check_recordings(scenario: &Scenario, expected: &str) -> Result<(), SweepError> {
    if recordings(scenario) == expected {
        return Ok(());
    }
    Err(changed(scenario))
}

/// The refusal of a scenario's recording.
pub(super) fn changed(scenario: &Scenario) -> SweepError {
    let names: Vec<String> = scenario.path.trace.iter().map(|trace| format!("`{}`", trace.file)).collect();
    SweepError::Recording { names: names.join(", "), folder: scenario.folder().to_owned() }
}

/// The digest of the recordings that a scenario names, every step of them.
pub(super) fn recordings(scenario: &Scenario) -> String {
    let mut known = Recordings::default();
    scenario.recordings().map(|trace| known.digest(trace).to_owned()).collect()
}
