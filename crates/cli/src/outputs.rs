//! Files that a command makes while it runs: never over one that is there already, unless `--force` says so.

use crate::error::{Failure, Outcome};
use nix::libc;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

/// The remedy where a file is in the way.
pub(crate) const REPLACE: &str = "take another name, or replace it with --force";

/// Makes the file, or with `force` empties the one that is there. A device or a pipe is opened as it is. The last part of a path may
/// be no symbolic link, which may lead anywhere, but for one to a device or a pipe that root or this user has made (`/dev/stdout`).
pub(crate) fn create(path: &Path, force: bool) -> Outcome<File> {
    let unwritable = |e: io::Error| Failure::unwritable(path, &e);
    match OpenOptions::new().write(true).create_new(true).open(path) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
        made => return made.map_err(unwritable),
    }
    if let Some(special) = special(path)? {
        return Ok(special);
    }
    if !force {
        let exists = Failure::usage(format!("`{}` exists already", path.display()));
        return Err(exists.hint(REPLACE));
    }
    let mut options = OpenOptions::new();
    options.write(true).truncate(true).custom_flags(libc::O_NOFOLLOW);
    options.open(path).map_err(|e| {
        if fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink()) {
            let link = format!("`{}` is a symbolic link, which --force does not follow", path.display());
            Failure::usage(link).hint("name the file itself")
        } else {
            unwritable(e)
        }
    })
}

/// The device or pipe of that name, opened for writing; `None` if the name is a file's, a folder's, a link's to one, or nobody's.
fn special(path: &Path) -> Outcome<Option<File>> {
    let kind = |about: &fs::Metadata| !about.is_file() && !about.is_dir() && !about.is_symlink();
    let (Ok(found), Ok(end)) = (fs::symlink_metadata(path), fs::metadata(path)) else { return Ok(None) };
    if !kind(&end) {
        return Ok(None);
    }
    if ![0, nix::unistd::geteuid().as_raw()].contains(&found.uid()) {
        let others = format!("`{}` is another user's pipe, device or link to one", path.display());
        return Err(Failure::usage(others).hint("take another name"));
    }
    let mut options = OpenOptions::new();
    options.write(true).custom_flags(if found.is_symlink() { 0 } else { libc::O_NOFOLLOW });
    let opened = options.open(path).map_err(|e| Failure::unwritable(path, &e))?;
    let about = opened.metadata().map_err(|e| Failure::unwritable(path, &e))?;
    if (about.dev(), about.ino()) != (end.dev(), end.ino()) {
        let other = format!("`{}` was replaced by something else while it was opened", path.display());
        return Err(Failure::usage(other).hint("take another name"));
    }
    Ok(Some(opened))
}

/// Writes a file whole. One that holds the same already stays as it is; what is a device or a pipe is written to.
pub(crate) fn write_whole(path: &Path, bytes: &[u8], force: bool) -> Outcome {
    if let Some(mut special) = special(path)? {
        return special.write_all(bytes).map_err(|e| Failure::unwritable(path, &e));
    }
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
    use std::io::Read as _;
    use std::os::unix::fs::FileTypeExt as _;

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

    #[test]
    fn pipes_stay_pipes_and_another_users_are_not_opened() {
        let folder = folder("pipes");
        let pipe = folder.join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let link = folder.join("link");
        std::os::unix::fs::symlink(&pipe, &link).unwrap();
        for (path, force) in [(&pipe, false), (&pipe, true), (&link, false)] {
            // With a reader: else a pipe is opened when one comes, as everywhere.
            let reader = std::thread::spawn({
                let pipe = pipe.clone();
                move || {
                    let mut text = String::new();
                    File::open(pipe).unwrap().read_to_string(&mut text).unwrap();
                    text
                }
            });
            write_whole(path, b"v=0", force).unwrap();
            assert_eq!(reader.join().unwrap(), "v=0");
            assert!(fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo(), "still a pipe");
        }
        // Only root can give a file away.
        if nix::unistd::geteuid().is_root() {
            let nobody = Some(nix::unistd::Uid::from_raw(65_534));
            nix::unistd::chown(&pipe, nobody, None).unwrap();
            for refused in [create(&pipe, true).map(|_| ()), write_whole(&pipe, b"v=0", true)] {
                let refused = refused.unwrap_err().to_string();
                assert!(refused.contains("another user's"), "{refused}");
            }
        }
        fs::remove_dir_all(folder).unwrap();
    }
}
