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

/// The text of a file. A pipe would be waited for, and a device has no end.
pub(super) fn read(path: &Path) -> Result<String, FolderError> {
    let unreadable = |error| FolderError::Unreadable { path: path.to_owned(), error };
    if !std::fs::metadata(path).map_err(unreadable)?.is_file() {
        return Err(unreadable(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")));
    }
    std::fs::read_to_string(path).map_err(unreadable)
}
