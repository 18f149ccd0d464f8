//! A scenario's file, and those beside it: recordings of links.

use crate::error::{Problem, ScenarioError};
use crate::path::TraceSpec;
use fairpace_path::Trace;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The files beside the scenario's.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Files {
    /// The folder that relative names start from.
    pub(crate) folder: PathBuf,
    /// Recordings that were read, each with the entry that names it.
    pub(crate) traces: Vec<(TraceSpec, Arc<Trace>)>,
}

impl Files {
    /// The recording that an entry names, if it was read.
    pub(crate) fn recording(&self, spec: &TraceSpec) -> Option<&Arc<Trace>> {
        self.traces.iter().find(|(known, _)| known == spec).map(|(_, trace)| trace)
    }
}

/// The longest file that is read.
const MAX_FILE: u64 = 1 << 20;

/// The text of a file of 1 MiB at most.
pub(crate) fn read_text(path: &Path) -> Result<String, ScenarioError> {
    let file = path.display().to_string();
    let unreadable = |reason: String| ScenarioError {
        file: file.clone(),
        line: 0,
        problem: Box::new(Problem::Unreadable { reason }),
    };
    let about = std::fs::metadata(path).map_err(|e| unreadable(reason(&e)))?;
    if !about.is_file() {
        return Err(unreadable(if about.is_dir() { "it is a folder" } else { "it is not a regular file" }.to_owned()));
    }
    if about.len() > MAX_FILE {
        return Err(unreadable(format!("it has {} bytes; at most 1 MiB is read", about.len())));
    }
    let bytes = std::fs::read(path).map_err(|e| unreadable(reason(&e)))?;
    String::from_utf8(bytes).map_err(|_| unreadable("it is not UTF-8 text".to_owned()))
}

/// A system error in plain words, without the number.
pub(crate) fn reason(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "there is no such file".to_owned(),
        std::io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    }
}
