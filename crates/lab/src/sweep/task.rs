//! One batch of seeds of one point: the text of the task, and the bytes of its result.

use super::error::SweepError;
use super::numbers::RunNumbers;
use super::recordings::check_recordings;
use crate::pool::Hooks;
use crate::simulate::{RunError, SeedRun, simulate};
use crate::study;
use fairpace_scenario::{Record, Scenario};
use serde::{Deserialize, Serialize};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

/// The most seeds of one point.
pub const MAX_SWEEP_SEEDS: u32 = 100_000;

pub(super) const TASK: &str = "fairpace-task/1";
const BATCH: &str = "fairpace-batch/1";

/// One batch of seeds of one point, with everything that decides its result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// `fairpace-task/1`.
    pub format: String,
    /// The program that is to run it, to the byte: another one refuses it.
    pub code: String,
    /// `sim` or `emu`.
    pub world: String,
    /// The point ([`Point::id`](super::Point)).
    pub point: String,
    /// Field and value of each axis, for people.
    pub settings: Vec<(String, String)>,
    /// The first seed.
    pub first: u64,
    /// The number of seeds, counting up.
    pub count: u32,
    /// The folder that names of recordings start from.
    pub folder: PathBuf,
    /// The scenario's name.
    pub name: String,
    /// The digest of the recordings that the scenario names; empty if it names none.
    #[serde(default)]
    pub recordings: String,
    /// The point's scenario as TOML, every default filled in.
    pub scenario: String,
}

/// The result of a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Batch {
    /// `fairpace-batch/1`.
    pub format: String,
    /// The program that ran it.
    pub code: String,
    /// `sim` or `emu`.
    pub world: String,
    /// The point.
    pub point: String,
    /// Field and value of each axis, for people.
    pub settings: Vec<(String, String)>,
    /// The first seed.
    pub first: u64,
    /// The number of seeds.
    pub count: u32,
    /// One per seed; up to the one that failed, if one did.
    pub runs: Vec<RunNumbers>,
    /// Why a seed came to nothing; the point is then out of the results.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<Failure>,
}

/// Why a seed came to nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The seed.
    pub seed: u64,
    /// The error.
    pub reason: String,
}

impl Task {
    /// The task as one line of JSON.
    pub fn to_text(&self) -> String {
        // Its keys are text, and it has no number that JSON has not.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads a task.
    ///
    /// # Errors
    /// [`SweepError::Task`]: the text is none.
    pub fn from_text(text: &str) -> Result<Task, SweepError> {
        let task: Task = serde_json::from_str(text).map_err(|e| SweepError::Task(format!("this is no task: {e}")))?;
        if task.format != TASK {
            return Err(SweepError::Task(format!(
                "the task is of the form `{}`, and this program knows `{TASK}`",
                task.format
            )));
        }
        if !(1..=MAX_SWEEP_SEEDS).contains(&task.count) || task.first.checked_add(task.count.into()).is_none() {
            return Err(SweepError::Task(format!(
                "the task asks for {} seeds from {} on: write from 1 to {MAX_SWEEP_SEEDS}",
                task.count, task.first
            )));
        }
        Ok(task)
    }

    /// Runs it in a world. `code` is that of this program.
    ///
    /// # Errors
    /// The task is for another program or another world, its scenario cannot be read here or names another recording, or the stop flag was
    /// set. A
    /// failure of the run itself is a result: [`Batch::failed`].
    pub fn perform(&self, code: &str, world: study::World<'_>, hooks: &Hooks<'_>) -> Result<Batch, SweepError> {
        if self.code != code {
            return Err(SweepError::Task(format!("the task is for the program `{}`, and this is `{code}`", self.code)));
        }
        if self.world != world.name() {
            return Err(SweepError::Task(format!(
                "the task is for the world `{}`, and this is `{}`",
                self.world,
                world.name()
            )));
        }
        let scenario = Scenario::parse_from(&self.scenario, &self.name, self.folder.clone())?;
        check_recordings(&scenario, &self.recordings)?;
        self.perform_on(&scenario, |scenario, seed| world.run(scenario, seed, Record::default(), hooks))
    }

    /// The same with the scenario as it was read already.
    pub(super) fn perform_on(
        &self,
        scenario: &Scenario,
        run: impl Fn(&Scenario, u64) -> Result<SeedRun, RunError>,
    ) -> Result<Batch, SweepError> {
        let mut batch = Batch {
            format: BATCH.to_owned(),
            code: self.code.clone(),
            world: self.world.clone(),
            point: self.point.clone(),
            settings: self.settings.clone(),
            first: self.first,
            count: self.count,
            // Not as many as a text asks for: memory grows with what has been run.
            runs: Vec::new(),
            failed: None,
        };
        for seed in (self.first..).take(self.count as usize) {
            // A bug of ours ends this point, not the sweep.
            let run = catch_unwind(AssertUnwindSafe(|| run(scenario, seed)));
            let reason = match run {
                Ok(Ok(run)) if run.summary.interrupted => return Err(RunError::Interrupted.into()),
                Ok(Ok(run)) => {
                    batch.runs.push(RunNumbers::of(&run.summary));
                    continue;
                }
                Ok(Err(RunError::Interrupted)) => return Err(RunError::Interrupted.into()),
                Ok(Err(error)) => error.to_string(),
                Err(panic) => {
                    let text = panic.downcast_ref::<String>().map(String::as_str);
                    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
                    format!("the program has a fault: {text}")
                }
            };
            batch.failed = Some(Failure { seed, reason });
            break;
        }
        Ok(batch)
    }
}

impl Batch {
    /// The batch as one line of JSON: the same bytes for the same task, wherever it ran.
    pub fn to_bytes(&self) -> Vec<u8> {
        // Its keys are text, and its numbers are finite.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Reads a batch.
    ///
    /// # Errors
    /// [`SweepError::Task`]: the bytes are none.
    pub fn from_bytes(bytes: &[u8]) -> Result<Batch, SweepError> {
        let batch: Batch =
            serde_json::from_slice(bytes).map_err(|e| SweepError::Task(format!("this is no result of a task: {e}")))?;
        let (runs, count) = (batch.runs.len(), batch.count as usize);
        let has_all = runs == count || batch.failed.is_some() && runs < count;
        let is_own =
            |(n, run): (u64, &RunNumbers)| run.seed.checked_sub(batch.first) == Some(n) && run.has_each_column();
        let fit = (0..).zip(&batch.runs).all(is_own);
        if batch.format != BATCH || !has_all || !fit {
            return Err(SweepError::Task(format!("this is no result of the form `{BATCH}`")));
        }
        Ok(batch)
    }

    /// A batch in which the task came to nothing, for an executor that lost it again and again: a worker that died of it.
    pub fn lost(task: &Task, reason: impl Into<String>) -> Batch {
        Batch {
            format: BATCH.to_owned(),
            code: task.code.clone(),
            world: task.world.clone(),
            point: task.point.clone(),
            settings: task.settings.clone(),
            first: task.first,
            count: task.count,
            runs: Vec::new(),
            failed: Some(Failure { seed: task.first, reason: reason.into() }),
        }
    }
}

/// Runs a task in the simulator: text in, bytes out, and nothing else decides them. `code` is that of this program.
///
/// # Errors
/// The errors of [`Task::perform`].
pub fn perform(task: &str, code: &str, hooks: &Hooks<'_>) -> Result<Vec<u8>, SweepError> {
    Ok(Task::from_text(task)?.perform(code, study::World::Sim, hooks)?.to_bytes())
}

/// Runs one seed in the simulator.
pub(super) fn simulated(scenario: &Scenario, seed: u64, hooks: &Hooks<'_>) -> Result<SeedRun, RunError> {
    simulate(scenario, seed, Record::default(), hooks)
}
