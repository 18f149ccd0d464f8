//! The files beside a scenario's: recordings of links.

use crate::path::TraceSpec;
use fairpace_path::Trace;
use std::path::PathBuf;
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

/// A system error in plain words, without the number.
pub(crate) fn reason(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "there is no such file".to_owned(),
        std::io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    }
}
