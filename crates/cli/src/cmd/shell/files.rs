//! Files that a shell writes.

use crate::error::{Failure, Outcome};
use std::fs::File;
use std::path::{Path, PathBuf};

/// Files that were not there before: taken away again if nothing has run.
#[derive(Default)]
pub(super) struct Files(Vec<PathBuf>);

impl Files {
    pub(super) fn create(&mut self, file: &Path) -> Outcome<File> {
        let new = !file.exists();
        let created = File::create(file).map_err(|e| Failure::unwritable(file, &e))?;
        self.0.extend(new.then(|| file.to_owned()));
        Ok(created)
    }

    pub(super) fn keep(&mut self) {
        self.0.clear();
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        for file in &self.0 {
            let _ = std::fs::remove_file(file);
        }
    }
}
