//! A process that opens a receiver's next files, so that the process that hears the network opens none.
//!
//! `receive --sessions` gives each session files of its own, and the second session's are opened while packets come: under its filter
//! (`confine.rs`) the receiver can open no file. So another process is started before. That process
//! reads nothing but single bytes from the receiver's end of a socket: "the next", and "the last were not used". The files that are opened, handed back and
//! removed have the names that the process was started with, and numbers that the process counts, up to a bound: whoever is let in makes no
//! more files than that, whatever becomes of the receiver. The end of the socket is the end of the process.

use crate::confine;
use crate::error::{Failure, Outcome, code};
use crate::outputs;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, IoSlice, IoSliceMut, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

/// The first argument of such a process.
const OPENER: &str = "open-numbered-files";
const FORCE: &str = "force";
/// Files of a session: the recording and the statistics.
const MOST_FILES: usize = 2;
const LONGEST: usize = 4_096;

const NEXT: u8 = b'n';
const UNUSED: u8 = b'u';
const OPENED: u8 = b'o';
const ENOUGH: u8 = b'e';
const FAILED: u8 = b'f';

/// The receiver's end.
pub(crate) struct Opener {
    socket: UnixStream,
    paths: Vec<PathBuf>,
    /// The number of the files that were opened last.
    session: u64,
    /// The next ones are asked for, and not fetched.
    asked: bool,
}

/// The files of a session, each with its name.
pub(crate) type Opened = Vec<(File, PathBuf)>;

impl Opener {
    /// Starts the process, which opens files of these names, numbered, for so many sessions at most. None of them may be there already,
    /// unless `force` says so.
    pub(crate) fn start(paths: &[&Path], most: u64, force: bool) -> Outcome<Opener> {
        for path in paths {
            outputs::refuse_dash(path)?;
        }
        for path in paths.iter().filter(|_| !force) {
            if let Some(found) = first_numbered(path) {
                let exists = format!("`{}` exists already", found.display());
                return Err(Failure::usage(exists).hint(outputs::REPLACE));
            }
        }
        let (ours, theirs) = UnixStream::pair()?;
        let program = std::env::current_exe()?;
        let mut command = Command::new(program);
        command.arg(OPENER).arg(most.to_string()).arg(if force { FORCE } else { "" }).args(paths);
        command.stdin(Stdio::from(OwnedFd::from(theirs))).stdout(Stdio::null()).spawn()?;
        Ok(Opener {
            socket: ours,
            paths: paths.iter().map(|path| (*path).to_owned()).collect(),
            session: 0,
            asked: false,
        })
    }

    /// Lets the process open the next session's files, and does not wait for them.
    pub(crate) fn ask(&mut self) -> Outcome {
        if !std::mem::replace(&mut self.asked, true) {
            self.socket.write_all(&[NEXT])?;
        }
        Ok(())
    }

    /// The next session's files, in the order of the names; `None` if as many sessions as may have some have.
    pub(crate) fn next(&mut self) -> Outcome<Option<Opened>> {
        self.ask()?;
        self.asked = false;
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FILES))];
        let mut passed = RecvAncillaryBuffer::new(&mut space);
        let mut said = [0; LONGEST];
        let flags = RecvFlags::CMSG_CLOEXEC;
        let got =
            recvmsg(&self.socket, &mut [IoSliceMut::new(&mut said)], &mut passed, flags).map_err(io::Error::from)?;
        let said = said.get(..got.bytes).unwrap_or_default();
        let files = passed.drain().flat_map(|message| match message {
            RecvAncillaryMessage::ScmRights(files) => files.collect::<Vec<OwnedFd>>(),
            _ => Vec::new(),
        });
        let files: Vec<File> = files.map(File::from).collect();
        match said {
            [OPENED] if files.len() == self.paths.len() => {
                self.session += 1;
                Ok(Some(files.into_iter().zip(self.paths.iter().map(|path| numbered(path, self.session))).collect()))
            }
            [ENOUGH] => Ok(None),
            [FAILED, why @ ..] => Err(Failure::new(code::FAILED, String::from_utf8_lossy(why))),
            _ => Err(Failure::new(code::FAILED, "the process that opens files has ended")),
        }
    }

    /// No session came for those that were asked for.
    pub(crate) fn unasked(&mut self) -> Outcome {
        // Where they could not be opened there is nothing to take away.
        if self.asked && matches!(self.next(), Ok(Some(_))) { self.unused() } else { Ok(()) }
    }

    /// No session came for the last ones, or none that leaves files: their number is the next one's.
    pub(crate) fn unused(&mut self) -> Outcome {
        let mut said = [0];
        self.socket.write_all(&[UNUSED])?;
        self.socket.read_exact(&mut said)?;
        if said == [OPENED] {
            self.session -= 1;
        }
        Ok(())
    }
}

/// `a-2.ivf` of `a.ivf`.
pub(crate) fn numbered(path: &Path, session: u64) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!("-{session}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

/// A file of that name with any number.
fn first_numbered(path: &Path) -> Option<PathBuf> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let is_number = |name: &OsStr| {
        let number = Path::new(name).file_stem()?.to_str()?.rsplit_once('-')?.1.parse().ok()?;
        (numbered(path, number).file_name()? == name).then_some(number)
    };
    let numbers = fs::read_dir(folder).ok()?.filter_map(|entry| is_number(&entry.ok()?.file_name()));
    numbers.min().map(|number| numbered(path, number))
}

/// The arguments for [`run`], if this process is to be such a one. First thing in `main`.
pub(crate) fn arguments() -> Option<Vec<OsString>> {
    let mut all = std::env::args_os().skip(1);
    (all.next()? == OPENER).then(|| all.collect())
}

/// The process: opens files until the receiver has ended.
pub(crate) fn run(arguments: &[OsString]) -> Outcome {
    let [most, force, paths @ ..] = arguments else { return Ok(()) };
    let Some(most) = most.to_str().and_then(|most| most.parse::<u64>().ok()) else { return Ok(()) };
    confine::drop_capabilities()?;
    // Ctrl-C is for the receiver, which may yet say that the last files are not needed. This process ends when it does.
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::default())?;
    }
    let force = force == FORCE;
    serve(&UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?), paths, most, force)
}

fn serve(mut socket: &UnixStream, paths: &[OsString], most: u64, force: bool) -> Outcome {
    let (mut session, mut made) = (0, false);
    let mut word = [0];
    while socket.read(&mut word)? == 1 {
        match word {
            [NEXT] if session >= most => socket.write_all(&[ENOUGH])?,
            [NEXT] => {
                let opened = open_all(paths, session + 1, force);
                made = opened.is_ok();
                session += u64::from(made);
                hand_over(socket, opened)?;
            }
            [UNUSED] => {
                // Only what this process has made, and nothing twice.
                let gone = std::mem::take(&mut made)
                    && paths.iter().map(|path| numbered(Path::new(path), session)).all(|path| {
                        fs::symlink_metadata(&path).is_ok_and(|about| about.is_file()) && fs::remove_file(&path).is_ok()
                    });
                session -= u64::from(gone);
                socket.write_all(&[if gone { OPENED } else { FAILED }])?;
            }
            _ => return Ok(()),
        }
    }
    Ok(())
}

/// The files of a session: all, or none is left of those that were made.
fn open_all(paths: &[OsString], session: u64, force: bool) -> Outcome<Vec<File>> {
    let mut opened = Vec::new();
    for path in paths {
        match outputs::create_seekable(&numbered(Path::new(path), session), force) {
            Ok(file) => opened.push(file),
            Err(failure) => {
                for path in paths.iter().take(opened.len()) {
                    // If not, the next session has its name, and says so.
                    let _ = fs::remove_file(numbered(Path::new(path), session));
                }
                return Err(failure);
            }
        }
    }
    Ok(opened)
}

fn hand_over(socket: &UnixStream, opened: Outcome<Vec<File>>) -> Outcome {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FILES))];
    let mut passed = SendAncillaryBuffer::new(&mut space);
    let (files, failure) = opened.map_or_else(|failure| (Vec::new(), Some(failure)), |files| (files, None));
    let files: Vec<_> = files.iter().map(|file| file.as_fd()).collect();
    let said = match failure {
        None => {
            passed.push(SendAncillaryMessage::ScmRights(&files));
            vec![OPENED]
        }
        Some(failure) => {
            let mut said = vec![FAILED];
            said.extend(failure.message.bytes().take(LONGEST - 1));
            said
        }
    };
    sendmsg(socket, &[IoSlice::new(&said)], &mut passed, SendFlags::NOSIGNAL).map_err(io::Error::from)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_session_whose_second_file_cannot_be_made_none_is_left_and_its_number_is_the_next_ones() {
        let folder = std::env::temp_dir().join(format!("fairpace-open-all-{}", std::process::id()));
        fs::create_dir_all(folder.join("s-1.jsonl")).unwrap();
        let paths = ["a.ivf", "s.jsonl"].map(|name| folder.join(name).into_os_string());
        let refused = open_all(&paths, 1, false).unwrap_err();
        assert!(refused.to_string().contains("s-1.jsonl"), "{refused}");
        assert!(!folder.join("a-1.ivf").exists());
        fs::remove_dir(folder.join("s-1.jsonl")).unwrap();
        assert_eq!(open_all(&paths, 1, false).unwrap().len(), 2);
        assert!(folder.join("a-1.ivf").exists() && folder.join("s-1.jsonl").exists());
        fs::remove_dir_all(folder).unwrap();
    }

    /// Both ends of the socket, the process's on a thread.
    #[test]
    fn both_ends_agree_on_the_number_after_one_that_failed() {
        let folder = std::env::temp_dir().join(format!("fairpace-agree-{}", std::process::id()));
        fs::create_dir_all(folder.join("a-1.ivf")).unwrap();
        let (socket, theirs) = UnixStream::pair().unwrap();
        let paths = vec![folder.join("a.ivf")];
        let names: Vec<OsString> = paths.iter().map(|path| path.clone().into_os_string()).collect();
        let process = std::thread::spawn(move || serve(&theirs, &names, 3, false));
        let mut opener = Opener { socket, paths, session: 0, asked: false };
        assert!(opener.next().unwrap_err().to_string().contains("a-1.ivf"));
        fs::remove_dir(folder.join("a-1.ivf")).unwrap();
        opener.ask().unwrap();
        opener.unasked().unwrap();
        assert!(!folder.join("a-1.ivf").exists());
        for number in 1..=3 {
            let opened = opener.next().unwrap().unwrap();
            assert_eq!(opened[0].1, folder.join(format!("a-{number}.ivf")));
            assert!(opened[0].1.exists(), "{number}");
        }
        assert!(opener.next().unwrap().is_none());
        opener.unasked().unwrap();
        drop(opener);
        process.join().unwrap().unwrap();
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn numbers_stand_before_the_extension_and_are_found_again() {
        let folder = std::env::temp_dir().join(format!("fairpace-opener-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("a.ivf");
        assert_eq!(numbered(&path, 2), folder.join("a-2.ivf"));
        assert_eq!(numbered(Path::new("plain"), 10), Path::new("plain-10"));
        for other in ["a.ivf", "a-.ivf", "a-x.ivf", "b-1.ivf", "a-1.jsonl", "a-01.ivf"] {
            fs::write(folder.join(other), "").unwrap();
        }
        assert_eq!(first_numbered(&path), None);
        fs::write(folder.join("a-12.ivf"), "").unwrap();
        assert_eq!(first_numbered(&path), Some(folder.join("a-12.ivf")));
        fs::remove_dir_all(folder).unwrap();
    }
}
