//! Who waits for whom: the lock of runs in real time. Each test has a network of its own where it may, so that the runs of
//! others on this machine are not in the way; what another user does is tried by root only.

#![allow(clippy::disallowed_methods, reason = "the test waits for processes")]

use fairpace_emu::{EmuError, Holder, RealTimeLock};
use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect, socket};
use nix::unistd::geteuid;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::fd::AsRawFd as _;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

const ANNOUNCEMENT: &[u8] = b"fairpace/real-time";
/// Nobody, as on any Unix.
const NOBODY: u32 = 65_534;

/// One test at a time, in a network of its own; `None` if this user may have none and the machine is taken.
fn turn() -> Option<MutexGuard<'static, ()>> {
    static TURN: Mutex<()> = Mutex::new(());
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    if unshare(CloneFlags::CLONE_NEWNET).is_err() && RealTimeLock::acquire().is_err() {
        println!("skipped: another run in real time is under way");
        return None;
    }
    Some(turn)
}

fn us() -> Holder {
    Holder { process: Some(std::process::id() as i32), user: Some(geteuid().as_raw()) }
}

fn busy() -> Holder {
    match RealTimeLock::acquire() {
        Err(EmuError::Busy { holder }) => holder,
        other => panic!("{other:?}"),
    }
}

/// A helper of this file as another user, who may see this program, up to its first line. The helper ends when its input does.
struct Other {
    child: Child,
    out: BufReader<ChildStdout>,
    _program: tempfile::TempDir,
}

impl Other {
    fn start(helper: &str) -> Option<Other> {
        if !geteuid().is_root() {
            println!("skipped: only root may be another user");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(&folder, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let program = folder.path().join("program");
        fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
        let mut child = Command::new(program)
            .args(["--ignored", "--exact", helper, "--nocapture"])
            .uid(NOBODY)
            .gid(NOBODY)
            .current_dir("/")
            .env_remove("XDG_RUNTIME_DIR")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Some(Other { child, out, _program: folder })
    }

    /// The next line that begins so.
    fn line(&mut self, begin: &str) -> String {
        let mut line = String::new();
        while !line.starts_with(begin) {
            line.clear();
            assert!(self.out.read_line(&mut line).unwrap() > 0, "ended without `{begin}`");
        }
        line[begin.len()..].trim().to_owned()
    }

    fn end(mut self) {
        drop(self.child.stdin.take());
        self.child.wait().unwrap();
    }
}

fn until_input_ends() {
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

#[test]
#[ignore = "run by another user"]
fn helper_acquires() {
    match RealTimeLock::acquire() {
        Ok(lock) => println!("\ntook: {:?}", lock.beside()),
        Err(e) => println!("\ntook: not: {e}"),
    }
    until_input_ends();
}

#[test]
#[ignore = "run by another user"]
fn helper_squats() {
    let name = SocketAddr::from_abstract_name(ANNOUNCEMENT).unwrap();
    let _listener = UnixListener::bind_addr(&name).unwrap();
    println!("\nsquats: ");
    until_input_ends();
}

#[test]
fn a_second_run_is_refused_and_told_the_first() {
    let Some(_turn) = turn() else { return };
    let lock = RealTimeLock::acquire().unwrap();
    assert_eq!(lock.beside(), None);
    assert_eq!(busy(), us());
    assert_eq!(
        EmuError::Busy { holder: us() }.to_string(),
        format!("another run in real time is under way (process {})", std::process::id())
    );
    drop(lock);
    drop(RealTimeLock::acquire().unwrap());
}

#[test]
fn a_run_in_a_network_of_its_own_is_let_through() {
    let Some(_turn) = turn() else { return };
    let _lock = RealTimeLock::acquire().unwrap();
    std::thread::spawn(|| match unshare(CloneFlags::CLONE_NEWNET) {
        Ok(()) => drop(RealTimeLock::acquire().unwrap()),
        Err(e) => println!("skipped: {e}"),
    })
    .join()
    .unwrap();
}

/// Whoever tries again and again fills the backlog of the announcement, and must not wait for room in it.
#[test]
fn a_full_backlog_hides_nobody_who_has_the_lock() {
    let Some(_turn) = turn() else { return };
    let lock = RealTimeLock::acquire().unwrap();
    let name = UnixAddr::new_abstract(ANNOUNCEMENT).unwrap();
    let mut calls = Vec::new();
    loop {
        let call = socket(AddressFamily::Unix, SockType::Stream, SockFlag::SOCK_NONBLOCK, None).unwrap();
        match connect(call.as_raw_fd(), &name) {
            Ok(()) => calls.push(call),
            Err(e) => break assert_eq!((e, calls.is_empty()), (Errno::EAGAIN, false)),
        }
    }
    assert_eq!(busy(), us());
    drop(lock);
    drop(RealTimeLock::acquire().unwrap());
}

#[test]
fn another_user_who_calls_itself_a_run_keeps_nobody_waiting_and_is_named() {
    let Some(_turn) = turn() else { return };
    let Some(mut other) = Other::start("helper_squats") else { return };
    other.line("squats: ");
    let lock = RealTimeLock::acquire().expect("others do not count");
    assert_eq!(lock.beside(), Some(Holder { process: Some(other.child.id() as i32), user: Some(NOBODY) }));
    // And this user's own runs still wait for each other.
    assert_eq!(busy(), us());
    other.end();
}

#[test]
fn another_user_waits_for_root() {
    let Some(_turn) = turn() else { return };
    let lock = RealTimeLock::acquire().unwrap();
    let Some(mut other) = Other::start("helper_acquires") else { return };
    let process = std::process::id();
    assert_eq!(
        other.line("took: "),
        format!("not: another run in real time is under way (process {process} of user 0)")
    );
    other.end();
    drop(lock);
    let mut other = Other::start("helper_acquires").unwrap();
    assert_eq!(other.line("took: "), "None");
    other.end();
}

#[test]
fn another_user_can_open_no_lock_of_ours() {
    let Some(_turn) = turn() else { return };
    let inode = fairpace_emu::NetNs::current("here").unwrap().inode();
    // A run that was killed has left its file, which goes with the next one's: the file is made anew then.
    drop(RealTimeLock::acquire().unwrap());
    let _lock = RealTimeLock::acquire().unwrap();
    let user = geteuid();
    let session = std::env::var("XDG_RUNTIME_DIR").unwrap_or_default();
    let folders = ["/run".to_owned(), format!("/run/user/{user}"), session];
    let found = folders.map(|f| fs::metadata(format!("{f}/fairpace-real-time-{inode}.lock")));
    let found: Vec<_> = found.into_iter().flatten().map(|about| (about.uid(), about.mode() & 0o777)).collect();
    assert!(user.is_root() <= !found.is_empty(), "root has /run");
    assert!(found.iter().all(|about| *about == (user.as_raw(), 0o600)), "{found:?}");
}
