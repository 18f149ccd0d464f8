//! Files that a shell writes.

use crate::error::Outcome;
use crate::outputs;
use std::fs::File;
use std::path::{Path, PathBuf};

/// Files that were not there before: taken away again if nothing has run.
pub(super) struct Files {
    new: Vec<PathBuf>,
    /// Others may be replaced.
    force: bool,
}

impl Files {
    pub(super) fn new(force: bool) -> Files {
        Files { new: Vec::new(), force }
    }

    pub(super) fn create(&mut self, file: &Path) -> Outcome<File> {
        let new = !file.exists();
        let created = outputs::create(file, self.force)?;
        self.new.extend(new.then(|| file.to_owned()));
        Ok(created)
    }

    pub(super) fn keep(&mut self) {
        self.new.clear();
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        for file in &self.new {
            let _ = std::fs::remove_file(file);
        }
    }
}
