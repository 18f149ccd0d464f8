//! Files that a command makes while it runs: never over one that is there already, unless `--force` says so.

use crate::error::{Failure, Outcome};
use nix::libc;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// The remedy where a file is in the way.
pub(crate) const REPLACE: &str = "take another name, or replace it with --force";

/// Makes the file, or with `force` empties the one that is there. A device or a pipe is opened as it is. The last part of a path
/// that is emptied may be no symbolic link, which may lead anywhere.
pub(crate) fn create(path: &Path, force: bool) -> Outcome<File> {
    let unwritable = |e: io::Error| Failure::unwritable(path, &e);
    match OpenOptions::new().write(true).create_new(true).open(path) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
        made => return made.map_err(unwritable),
    }
    let found = fs::symlink_metadata(path).map_err(unwritable)?;
    let kind = fs::metadata(path).map_or(found.file_type(), |meta| meta.file_type());
    if !kind.is_file() && !kind.is_dir() && !kind.is_symlink() {
        return OpenOptions::new().write(true).open(path).map_err(unwritable);
    }
    if !force {
        let exists = Failure::usage(format!("`{}` exists already", path.display()));
        return Err(exists.hint(REPLACE));
    }
    let mut options = OpenOptions::new();
    options.write(true).truncate(true).custom_flags(libc::O_NOFOLLOW);
    options.open(path).map_err(|e| {
        if found.is_symlink() {
            let link = format!("`{}` is a symbolic link, which --force does not follow", path.display());
            Failure::usage(link).hint("name the file itself")
        } else {
            unwritable(e)
        }
    })
}

/// Writes a file whole. One that holds the same already stays as it is.
pub(crate) fn write_whole(path: &Path, bytes: &[u8], force: bool) -> Outcome {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_file() && fs::read(path).is_ok_and(|found| found == bytes) => return Ok(()),
        Ok(found) if !force && (found.is_file() || found.is_symlink()) => {
            let exists = Failure::usage(format!("`{}` exists already, and says something else", path.display()));
            return Err(exists.hint(REPLACE));
        }
        _ => {}
    }
    fairpace_lab::results::write_whole(path, bytes).map_err(|e| Failure::usage(e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    fn folder(name: &str) -> std::path::PathBuf {
        let folder = std::env::temp_dir().join(format!("fairpace-outputs-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn what_is_there_is_replaced_by_force_only() {
        let folder = folder("force");
        let path = folder.join("a.ivf");
        create(&path, false).unwrap().write_all(b"an hour").unwrap();
        let refused = create(&path, false).unwrap_err().to_string();
        assert!(refused.contains("exists already") && refused.contains("--force"), "{refused}");
        assert_eq!(fs::read(&path).unwrap(), b"an hour");
        create(&path, true).unwrap().write_all(b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        write_whole(&path, b"new", false).unwrap();
        assert!(write_whole(&path, b"other", false).is_err());
        write_whole(&path, b"other", true).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"other");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn devices_are_written_to_and_links_are_not_followed() {
        assert!(create(Path::new("/dev/null"), false).is_ok());
        let folder = folder("links");
        let (target, link) = (folder.join("target"), folder.join("link"));
        fs::write(&target, b"somebody's").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        assert!(create(&link, false).is_err());
        let refused = create(&link, true).unwrap_err().to_string();
        assert!(refused.contains("symbolic link"), "{refused}");
        assert!(create(&folder, true).is_err(), "a folder");
        assert_eq!(fs::read(&target).unwrap(), b"somebody's");
        fs::remove_dir_all(folder).unwrap();
    }
}
