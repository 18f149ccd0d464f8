//! Files that a command makes while it runs: never over one that is there already, unless `--force` says so.

use crate::error::{Failure, Outcome};
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::libc;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek as _, Write as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// The remedy where a file is in the way.
pub(crate) const REPLACE: &str = "take another name, or replace it with --force";

/// As many files and sockets may be open as the system allows this user at the most.
pub(crate) fn raise_file_limit() {
    if let Ok((_, most)) = getrlimit(Resource::RLIMIT_NOFILE) {
        // If not, the file or socket that is one too many says so.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, most, most);
    }
}

/// Makes the file, or with `force` empties the one that is there. A device or a pipe is opened as it is. The last part of a path may
/// be no symbolic link, which may lead anywhere, but for one to a device or a pipe that root or this user has made (`/dev/stdout`). A pipe
/// that nobody reads from is refused: to wait for a reader would hold up all else.
pub(crate) fn create(path: &Path, force: bool) -> Outcome<File> {
    open(path, force, true)
}

/// As [`create`], but a file that is there keeps its contents until something is written: a run that does not begin takes nothing along.
pub(crate) fn create_late(path: &Path, force: bool) -> Outcome<Late> {
    let file = open(path, force, false)?;
    let has_contents = file.metadata().is_ok_and(|found| found.is_file() && found.len() > 0);
    Ok(Late { file, begun: !has_contents })
}

/// See [`create_late`].
#[derive(Debug)]
pub(crate) struct Late {
    file: File,
    begun: bool,
}

impl From<File> for Late {
    fn from(file: File) -> Late {
        Late { file, begun: true }
    }
}

impl io::Write for Late {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.begun {
            self.file.set_len(0)?;
            self.begun = true;
        }
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

fn open(path: &Path, force: bool, truncate: bool) -> Outcome<File> {
    refuse_dash(path)?;
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
    options.write(true).truncate(truncate).custom_flags(libc::O_NOFOLLOW);
    options.open(path).map_err(|e| {
        if fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink()) {
            let link = format!("`{}` is a symbolic link, which --force does not follow", path.display());
            Failure::usage(link).hint("name the file itself")
        } else {
            unwritable(e)
        }
    })
}

/// As [`create`], for a file whose beginning is written at the end: not to a pipe or a terminal.
pub(crate) fn create_seekable(path: &Path, force: bool) -> Outcome<File> {
    let refused = || {
        let kind = format!(
            "`{}` is a pipe or a terminal: a recording's length is written into its beginning at the end",
            path.display()
        );
        Failure::usage(kind).hint("record to a file; `--forward HOST:PORT` passes media on to a player")
    };
    if fs::metadata(path).is_ok_and(|about| about.file_type().is_fifo() || about.file_type().is_socket()) {
        return Err(refused());
    }
    let mut file = create(path, force)?;
    file.stream_position().map_err(|_| refused())?;
    Ok(file)
}

/// `-`, which is standard output elsewhere, would be a file of that name.
pub(crate) fn refuse_dash(path: &Path) -> Outcome {
    if path == Path::new("-") {
        let dash = Failure::usage("`-` would be a file of that name, and is not standard output here");
        return Err(dash.hint("name a file; `./-` is one called `-`"));
    }
    Ok(())
}

/// A folder for results may be a link to one, which this user or root has made; another user's link may lead anywhere, and lead elsewhere
/// later.
pub(crate) fn refuse_others_link(folder: &Path) -> Outcome {
    let own = [0, nix::unistd::geteuid().as_raw()];
    if fs::symlink_metadata(folder).is_ok_and(|found| found.is_symlink() && !own.contains(&found.uid())) {
        let others = format!("`{}` is another user's link", folder.display());
        return Err(Failure::usage(others).hint("name the folder itself with `--out`"));
    }
    Ok(())
}

/// Refuses two options that name one file, each with its name: either would write over the other.
pub(crate) fn distinct(named: &[(&str, Option<&Path>)]) -> Outcome {
    let mut seen: Vec<(&str, PathBuf)> = Vec::new();
    for (option, path) in named.iter().filter_map(|(option, path)| Some((*option, (*path)?))) {
        let is_device = fs::metadata(path).is_ok_and(|about| about.file_type().is_char_device());
        if path == Path::new("-") || is_device {
            continue;
        }
        let whole = whole(path);
        if let Some((other, _)) = seen.iter().find(|(_, seen)| *seen == whole) {
            let same = format!("`{other}` and `{option}` name the same file, `{}`", path.display());
            return Err(Failure::usage(same).hint("give each a name of its own"));
        }
        seen.push((option, whole));
    }
    Ok(())
}

/// The path from the root, through links, of a file that may not be there yet.
fn whole(path: &Path) -> PathBuf {
    if let Ok(whole) = fs::canonicalize(path) {
        return whole;
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    path.file_name().map_or(folder.clone(), |name| folder.join(name))
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
    let follow = if found.is_symlink() { 0 } else { libc::O_NOFOLLOW };
    options.write(true).custom_flags(follow | libc::O_NONBLOCK);
    let opened = options.open(path).map_err(|e| match e.raw_os_error() {
        Some(libc::ENXIO) => {
            let unread = format!("nobody reads from the pipe `{}`", path.display());
            Failure::usage(unread).hint(format!("start its reader first, as in `cat {}`", path.display()))
        }
        _ => Failure::unwritable(path, &e),
    })?;
    fcntl(&opened, FcntlArg::F_SETFL(OFlag::empty())).map_err(io::Error::from)?;
    let about = opened.metadata().map_err(|e| Failure::unwritable(path, &e))?;
    if (about.dev(), about.ino()) != (end.dev(), end.ino()) {
        let other = format!("`{}` was replaced by something else while it was opened", path.display());
        return Err(Failure::usage(other).hint("take another name"));
    }
    Ok(Some(opened))
}

/// Writes a file whole. One that holds the same already stays as it is; what is a device or a pipe is written to.
pub(crate) fn write_whole(path: &Path, bytes: &[u8], force: bool) -> Outcome {
    refuse_dash(path)?;
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
    fairpace_lab::results::write_whole(path, bytes).map_err(|e| Failure::unwritable(&e.path, &e.error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

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
    fn a_dash_is_no_file_and_no_two_options_name_the_same() {
        let refused = [create(Path::new("-"), true).map(|_| ()), write_whole(Path::new("-"), b"v=0", true)];
        for refused in refused {
            assert!(refused.unwrap_err().to_string().contains("`./-`"));
        }
        let folder = folder("distinct");
        let (a, b, link) = (folder.join("a"), folder.join("b"), folder.join("link"));
        std::os::unix::fs::symlink(&folder, &link).unwrap();
        let same = folder.join("../").join(folder.file_name().unwrap()).join("a");
        for other in [&a, &same, &link.join("a")] {
            let named = [("--out", Some(&*a)), ("--sdp", None), ("--stats", Some(&**other))];
            let refused = distinct(&named).unwrap_err().to_string();
            assert!(refused.contains("`--out` and `--stats` name the same file"), "{refused}");
        }
        let null = Path::new("/dev/null");
        for (one, other) in [(&*a, &*b), (null, null), (Path::new("-"), Path::new("-"))] {
            distinct(&[("--out", Some(one)), ("--stats", Some(other))]).unwrap();
        }
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_folder_may_be_a_link_of_ones_own_and_no_other_users() {
        let folder = folder("link-of");
        let (target, link) = (folder.join("target"), folder.join("link"));
        fs::create_dir_all(&target).unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        for path in [&target, &link, &folder.join("new")] {
            refuse_others_link(path).unwrap();
        }
        // Only root can give a link away.
        if nix::unistd::geteuid().is_root() {
            std::os::unix::fs::lchown(&link, Some(65_534), None).unwrap();
            let refused = refuse_others_link(&link).unwrap_err().to_string();
            assert!(refused.contains("another user's link"), "{refused}");
        }
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
            let unread = write_whole(path, b"v=0", force).unwrap_err().to_string();
            assert!(unread.contains("nobody reads from the pipe") && unread.contains("start its reader"), "{unread}");
            // Opened both ways, so that the reader need not wait for a writer.
            let mut reader = OpenOptions::new().read(true).write(true).open(&pipe).unwrap();
            write_whole(path, b"v=0", force).unwrap();
            let mut text = [0; 3];
            reader.read_exact(&mut text).unwrap();
            assert_eq!(text, *b"v=0");
            let recording = create_seekable(path, force).unwrap_err().to_string();
            assert!(recording.contains("is a pipe"), "{recording}");
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
