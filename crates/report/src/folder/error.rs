//! The faults of a folder.

use std::io;
use std::path::{Path, PathBuf};

/// Why no page could be made of a folder.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// A file is missing or unreadable.
    #[error("`{}` cannot be read: {error}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's message.
        error: io::Error,
    },
    /// A file is not what it should be.
    #[error("`{}` is not as a run writes it: {problem}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The fault.
        problem: String,
    },
}

/// The text of a file.
pub(super) fn read(path: &Path) -> Result<String, FolderError> {
    std::fs::read_to_string(path).map_err(|error| FolderError::Unreadable { path: path.to_owned(), error })
}
