//! One run in real time per machine: two would make each other late.
//!
//! Two things that end with their process, however that ends:
//!
//! - **The lock** is a file in a folder that nobody but its user can write to (flock(2)). So a user waits for nobody but themselves: who could
//!   hold a lock for others could keep them from ever running. A user without such a folder has the announcement only.
//! - **The announcement** is an abstract Unix socket, whose listener the kernel names to everybody. A run of root's, whom the machine belongs
//!   to, is waited for like one's own. A run of another user is told of and not waited for, since any program can call
//!   itself so.

use crate::{EmuError, Holder, NetNs};
use nix::libc;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, UnixAddr, connect, getsockopt, socket, sockopt::PeerCredentials,
};
use nix::sys::stat::{major, minor};
use nix::unistd::geteuid;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};

/// The announcement's.
const NAME: &[u8] = b"fairpace/real-time";
/// So often the file may lose its name between being opened and being locked.
const TRIES: usize = 100;
const WHAT: &str = "take the lock of runs in real time";

/// Held for as long as a run in real time lasts. Take it before [`crate::Sandbox::enter`]: lock and announcement are those
/// of the network namespace in which they are taken, so that a run inside a shell's own namespace is let
/// through (the shell is part of that run), and one in another container is not seen.
#[derive(Debug)]
pub struct RealTimeLock {
    file: Option<(File, PathBuf)>,
    _announcement: Option<UnixListener>,
    beside: Option<Holder>,
}

impl RealTimeLock {
    /// Takes it.
    ///
    /// # Errors
    /// [`EmuError::Busy`] with the run of this user's or of root's that holds the machine. [`EmuError::Io`] if the system gives no file or
    /// no socket.
    pub fn acquire() -> Result<RealTimeLock, EmuError> {
        let user = geteuid().as_raw();
        let file = lock(user, &format!("fairpace-real-time-{}.lock", NetNs::current("here")?.inode()))?;
        let name = SocketAddr::from_abstract_name(NAME).map_err(|e| EmuError::io(WHAT, e))?;
        let (announcement, beside) = match UnixListener::bind_addr(&name) {
            Ok(listener) => (Some(listener), None),
            Err(e) if e.kind() == io::ErrorKind::AddrInUse => (None, Some(announced())),
            Err(e) => return Err(EmuError::io(WHAT, e)),
        };
        // One of this user's may have found another folder, or none.
        match beside {
            Some(holder) if holder.user.is_some_and(|u| u == user || u == 0) => Err(EmuError::Busy { holder }),
            beside => Ok(RealTimeLock { file, _announcement: announcement, beside }),
        }
    }

    /// Another user's run, which may make this one late.
    pub fn beside(&self) -> Option<Holder> {
        self.beside
    }
}

impl Drop for RealTimeLock {
    fn drop(&mut self) {
        // Whoever has opened the file meanwhile finds out that the name is another's then.
        if let Some((file, path)) = &self.file
            && is_at(file, path)
        {
            let _ = fs::remove_file(path);
        }
    }
}

/// Opens and locks the file of that name in the first folder that is this user's alone; `None` where there is none.
fn lock(user: u32, name: &str) -> Result<Option<(File, PathBuf)>, EmuError> {
    for path in folders(user).iter().filter(|folder| is_own(folder, user)).map(|folder| folder.join(name)) {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600).custom_flags(libc::O_NOFOLLOW);
        for _ in 0..TRIES {
            // A file system that is for reading only, say.
            let Ok(file) = options.open(&path) else { break };
            match file.try_lock() {
                Ok(()) if is_at(&file, &path) => return Ok(Some((file, path))),
                // The run that had it has ended, and taken its name away.
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    return Err(EmuError::Busy { holder: Holder { process: holder_of(&file), user: Some(user) } });
                }
                Err(TryLockError::Error(e)) => return Err(EmuError::io(WHAT, e)),
            }
        }
    }
    Ok(None)
}

/// Where the file may be, in this order.
fn folders(user: u32) -> Vec<PathBuf> {
    let system = (user == 0).then(|| PathBuf::from("/run"));
    let session = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|folder| folder.is_absolute());
    system.into_iter().chain([format!("/run/user/{user}").into()]).chain(session).collect()
}

/// Whether the folder is this user's, and nobody else's to write to.
fn is_own(folder: &Path, user: u32) -> bool {
    fs::symlink_metadata(folder).is_ok_and(|about| about.is_dir() && about.uid() == user && about.mode() & 0o022 == 0)
}

fn is_at(file: &File, path: &Path) -> bool {
    let id = |about: fs::Metadata| (about.dev(), about.ino());
    file.metadata().map(id).ok() == fs::symlink_metadata(path).map(id).ok()
}

/// The process that has locked the file, as the kernel lists locks: `1: FLOCK  ADVISORY  WRITE 123 00:1a:4567 0 EOF`.
fn holder_of(file: &File) -> Option<i32> {
    let about = file.metadata().ok()?;
    let id = format!("{:02x}:{:02x}:{}", major(about.dev()), minor(about.dev()), about.ino());
    let locks = fs::read_to_string("/proc/locks").ok()?;
    let of_file = |line: &&str| line.split_whitespace().nth(5) == Some(&id);
    locks.lines().find(of_file)?.split_whitespace().nth(4)?.parse().ok()
}

/// Who has announced a run: the kernel tells a caller who listens. Calls are never answered, and after some thousand there
/// is no room for more: then nobody waits, and nobody is named.
fn announced() -> Holder {
    let ask = || {
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let call = socket(AddressFamily::Unix, SockType::Stream, flags, None).ok()?;
        connect(call.as_raw_fd(), &UnixAddr::new_abstract(NAME).ok()?).ok()?;
        getsockopt(&call, PeerCredentials).ok()
    };
    let who = ask();
    // 0: a process that has no number in our process namespace.
    Holder { process: who.map(|c| c.pid()).filter(|pid| *pid != 0), user: who.map(|c| c.uid()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, chown, symlink};

    #[test]
    fn a_folder_that_others_write_to_or_own_and_a_link_to_ones_own_hold_no_lock() {
        let user = geteuid().as_raw();
        let all = tempfile::tempdir().unwrap();
        let own = all.path().join("own");
        fs::create_dir(&own).unwrap();
        let mode = |mode| fs::set_permissions(&own, fs::Permissions::from_mode(mode)).unwrap();
        mode(0o700);
        assert!(is_own(&own, user));
        let link = all.path().join("link");
        symlink(&own, &link).unwrap();
        assert!(!is_own(&link, user), "a link");
        for open in [0o770, 0o707] {
            mode(open);
            assert!(!is_own(&own, user), "{open:o}");
        }
        mode(0o700);
        if geteuid().is_root() {
            chown(&own, Some(1), None).unwrap();
            assert!(!is_own(&own, user), "of another user");
        }
    }
}
