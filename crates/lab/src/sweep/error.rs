//! Why a sweep is refused, or ends early.

use crate::results::WriteError;
use crate::simulate::RunError;
use fairpace_scenario::ScenarioError;
use std::io;
use std::path::PathBuf;

/// Why a sweep is refused, or ends early. Batches that are finished stay on disk in any case.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// A field to be varied, or its values, are not understood, or make no point.
    #[error("`{found}` {wrong}")]
    Vary {
        /// The text as given.
        found: String,
        /// The fault.
        wrong: String,
        /// The values that are allowed, or the remedy.
        allowed: String,
    },
    /// A point is no scenario that can be run.
    #[error("{}{error}", at(settings))]
    Point {
        /// The point's settings; empty: the scenario as a whole.
        settings: String,
        /// The fault.
        error: ScenarioError,
    },
    /// A name that is no metric of the scenario's results.
    #[error("`{found}` is not a metric of this sweep")]
    Metric {
        /// The name as given.
        found: String,
        /// The nearest name, if one is near.
        near: Option<String>,
        /// The names there are.
        allowed: Vec<String>,
    },
    /// A run that cannot be made at all.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A task that is none, or is for another version of the program.
    #[error("{0}")]
    Task(String),
    /// A folder that holds what would be lost.
    #[error("`{}` {holds}", path.display())]
    Occupied {
        /// The folder.
        path: PathBuf,
        /// Its contents: `holds a sweep of another scenario`, …
        holds: String,
    },
    /// A folder that holds other things than a sweep, which nothing replaces.
    #[error("`{}` holds other things than a sweep", path.display())]
    Foreign {
        /// The folder.
        path: PathBuf,
    },
    /// A recording that the scenario names is another one here than where the sweep was laid out.
    #[error("the recording {names} (from `{}` on) is not what it was where the sweep began", folder.display())]
    Recording {
        /// Their names, as the scenario has them.
        names: String,
        /// The folder that the names start from.
        folder: PathBuf,
    },
    /// Another process is at work on the same shard.
    #[error("another process is at work on shard {shard} in `{}`", path.display())]
    Busy {
        /// The folder.
        path: PathBuf,
        /// The shard, as `1/4`.
        shard: String,
    },
    /// A file or folder cannot be read.
    #[error("`{}` cannot be read: {error}", path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// As the system says it.
        error: io::Error,
    },
    /// A file cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

fn at(settings: &str) -> String {
    if settings.is_empty() { String::new() } else { format!("with {settings}: ") }
}

impl SweepError {
    /// The remedy, if there is a known one.
    pub fn hint(&self) -> Option<String> {
        match self {
            SweepError::Vary { allowed, .. } => Some(allowed.clone()).filter(|a| !a.is_empty()),
            SweepError::Point { error, .. } => error.hint(),
            SweepError::Metric { near, allowed, .. } => {
                let near = near.as_ref().map_or_else(String::new, |n| format!("did you mean `{n}`? "));
                Some(format!("{near}there are {}", allowed.join(", ")))
            }
            SweepError::Run(RunError::Scenario(error)) => error.hint(),
            SweepError::Occupied { .. } => Some("name another folder, or let what is there be replaced".to_owned()),
            SweepError::Foreign { .. } => {
                Some("name another folder: what is no sweep is never replaced, nor by force".to_owned())
            }
            SweepError::Recording { .. } => Some(
                "put it back as it was, at every worker to the byte; results of another recording are another sweep's"
                    .to_owned(),
            ),
            SweepError::Busy { .. } => Some("wait until it has ended, or name another folder".to_owned()),
            SweepError::Write(error) if error.error.kind() == io::ErrorKind::StorageFull => Some(
                "the disk is full; every finished batch is kept: make room, and the same sweep goes on from there"
                    .to_owned(),
            ),
            SweepError::Read { .. } | SweepError::Write(_) => {
                Some("is there such a folder, and may you read and write it?".to_owned())
            }
            SweepError::Run(_) | SweepError::Task(_) => None,
        }
    }
}

impl From<ScenarioError> for SweepError {
    fn from(error: ScenarioError) -> SweepError {
        SweepError::Point { settings: String::new(), error }
    }
}
