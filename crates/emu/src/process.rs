//! Programs inside a namespace, that end when we end.
//!
//! ```text
//!   emulator ── thread ── init (number 1 of a process namespace of its own) ── program ── ...
//! ```
//!
//! The kernel kills the init when the emulator dies, however it dies, and with the init every process that
//! the program has left. The init is our own binary once more: [`init`], which its `main` calls when
//! [`arguments`] says so.
//!
//! An interactive shell asks which group of processes has the terminal, and sees only groups of its own namespace:
//! [`Program::terminal`] gives it to the init's.

use crate::{EmuError, NetNs, Rights, drop_privileges};
use caps::{CapSet, Capability, CapsHashSet};
use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl::{set_no_new_privs, set_pdeathsig};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, geteuid, getpgrp, tcgetpgrp, tcsetpgrp};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// The first argument of an init.
const INIT: &str = "__inside";
/// An init's third argument: it takes the terminal, or leaves it where it is.
const TERMINAL: &str = "terminal";
/// As above.
const NO_TERMINAL: &str = "-";

/// The exit code of a program that is not there, as shells have it.
pub const NOT_FOUND: u8 = 127;
/// The exit code of one that may not be run.
pub const NOT_RUNNABLE: u8 = 126;

/// The capabilities that the program keeps: it may change its own network namespace and listen to it. Root also keeps
/// what the kernel asks of it (since Linux 5.12) to map itself into one more namespace, for a shell within; over
/// files it has no more by that than as their owner.
fn kept() -> CapsHashSet {
    let root = geteuid().is_root().then_some(Capability::CAP_SETFCAP);
    [Capability::CAP_NET_ADMIN, Capability::CAP_NET_RAW].into_iter().chain(root).collect()
}

/// The capabilities that the init needs until the program runs: to mount /proc, and to give up those that are not
/// [`kept`].
const FOR_INIT: [Capability; 2] = [Capability::CAP_SYS_ADMIN, Capability::CAP_SETPCAP];

/// A program to run.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// Its name or path, and its arguments.
    pub command: Vec<OsString>,
    /// Variables that it gets beside our own.
    pub environment: Vec<(&'static str, OsString)>,
    /// The program is an interactive shell: it gets the terminal, if we have it.
    pub terminal: bool,
    /// The program reads nothing, and its output goes to our error stream, because another program has our output.
    pub background: bool,
}

impl Program {
    /// Where the program is, as a shell would find it.
    ///
    /// # Errors
    /// The exit code, [`NOT_FOUND`] or [`NOT_RUNNABLE`].
    pub fn find(&self) -> Result<PathBuf, u8> {
        let name = self.command.first().map(OsString::as_os_str).unwrap_or_default();
        let candidates: Vec<PathBuf> = if Path::new(name).components().count() > 1 {
            vec![name.into()]
        } else {
            let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
            std::env::split_paths(&path).map(|folder| folder.join(name)).collect()
        };
        let mut found = Err(NOT_FOUND);
        for candidate in candidates.into_iter().filter(|_| !name.is_empty()) {
            use nix::unistd::{AccessFlags, access};
            match fs::metadata(&candidate) {
                Ok(about) if about.is_file() && access(&candidate, AccessFlags::X_OK).is_ok() => return Ok(candidate),
                Ok(_) => found = Err(NOT_RUNNABLE),
                Err(_) => {}
            }
        }
        found
    }
}

/// A program that runs in a namespace.
#[derive(Debug)]
pub struct Inside {
    init: Pid,
    end: Receiver<io::Result<ExitStatus>>,
}

impl Inside {
    /// Starts `program` in `namespace`, with processes of its own, in its own view of /proc where the system
    /// allows it.
    ///
    /// # Errors
    /// [`EmuError::Denied`] after [`drop_privileges`], [`EmuError::Io`] if no process can be made. That the
    /// program cannot be run shows as its exit code.
    pub fn start(namespace: &NetNs, program: Program) -> Result<Inside, EmuError> {
        let (started, start) = channel();
        let (ended, end) = channel();
        // The thread lives as long as its child, or the kernel would take it for the death of the parent.
        namespace.spawn("inside", Rights::Kept, move || {
            let child = spawn_init(&program);
            let pid = child.as_ref().map(std::process::Child::id);
            let _ = started.send(pid.map_err(|e| EmuError::io("start a process", io::Error::from(e.kind()))));
            let dropped = drop_privileges();
            if let Ok(mut child) = child {
                let status = child.wait();
                let _ = ended.send(match dropped {
                    Ok(()) => status,
                    Err(e) => Err(io::Error::other(e)),
                });
            }
        })?;
        let pid =
            start.recv().unwrap_or_else(|_| Err(EmuError::io("start a process", io::Error::from(Errno::ECHILD))))?;
        Ok(Inside { init: Pid::from_raw(pid as i32), end })
    }

    /// Waits for its end so long at most. Its exit code; 128 and the signal's number if a signal ended it.
    /// `None`: it still runs.
    ///
    /// # Errors
    /// [`EmuError::Io`] if the kernel does not say.
    pub fn wait(&self, at_most: Duration) -> Result<Option<u8>, EmuError> {
        match self.end.recv_timeout(at_most) {
            Ok(Ok(status)) => Ok(Some(code_of(status.code(), status.signal()))),
            Ok(Err(e)) => Err(EmuError::io("wait for the program", e)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(EmuError::io("wait for the program", Errno::ECHILD)),
        }
    }

    /// Sends `signal` to the program; SIGKILL ends it and all that it has started.
    pub fn signal(&self, signal: Signal) {
        // The program may have ended in the meantime.
        let _ = kill(self.init, signal);
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        if !matches!(self.wait(Duration::ZERO), Ok(None)) {
            return;
        }
        self.signal(Signal::SIGKILL);
        let _ = self.end.recv();
    }
}

fn code_of(code: Option<i32>, signal: Option<i32>) -> u8 {
    let code = code.unwrap_or_else(|| 128 + signal.unwrap_or(0));
    u8::try_from(code).unwrap_or(u8::MAX)
}

/// On a thread of its own: what it does to itself stays with it and its child.
fn spawn_init(program: &Program) -> io::Result<std::process::Child> {
    let refused = |e: caps::errors::CapsError| io::Error::other(e.to_string());
    unshare(CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWNS)?;
    // A user other than root keeps over `exec` what is ambient.
    for cap in kept().into_iter().chain(FOR_INIT) {
        caps::raise(None, CapSet::Inheritable, cap).map_err(refused)?;
        caps::raise(None, CapSet::Ambient, cap).map_err(refused)?;
    }
    let mut command = Command::new("/proc/self/exe");
    let terminal = program.terminal && in_foreground();
    if terminal {
        command.process_group(0);
    }
    let mark = if terminal { TERMINAL } else { NO_TERMINAL };
    command.arg(INIT).arg(own_number()?).arg(mark).args(&program.command);
    command.envs(program.environment.iter().map(|(name, value)| (name, value)));
    if program.background {
        command.stdin(Stdio::null()).stdout(io::stderr());
    }
    command.spawn()
}

/// This process as /proc calls it, which is another's view in a process namespace without a /proc of its own.
fn own_number() -> io::Result<OsString> {
    Ok(fs::read_link("/proc/self")?.into_os_string())
}

/// Whether this process' group has the terminal.
fn in_foreground() -> bool {
    fs::File::open("/dev/tty").is_ok_and(|terminal| tcgetpgrp(&terminal) == Ok(getpgrp()))
}

/// This process' group takes the terminal, from the background: the kernel would stop us if we did not forbid it.
fn take_terminal() -> io::Result<()> {
    let terminal = fs::File::options().read(true).write(true).open("/dev/tty")?;
    let stop = SigSet::from(Signal::SIGTTOU);
    stop.thread_block()?;
    let taken = tcsetpgrp(&terminal, getpgrp());
    stop.thread_unblock()?;
    Ok(taken?)
}

/// The arguments for [`init`], if this process is to be one. First thing in `main`.
pub fn arguments() -> Option<Vec<OsString>> {
    let mut all = std::env::args_os().skip(1);
    (all.next()? == INIT).then(|| all.collect())
}

/// The first process of its namespace: runs the program, collects what it leaves behind, passes on signals,
/// ends with its code. To be called by a process with one thread that [`Inside::start`] has made.
pub fn init(arguments: &[OsString]) -> u8 {
    let [parent, terminal, command @ ..] = arguments else { return NOT_RUNNABLE };
    if terminal == TERMINAL {
        // Without it the program is in the background, and says so itself.
        let _ = take_terminal();
    }
    match prepare(parent).and_then(|()| run(command)) {
        Ok(code) => code,
        Err(message) => {
            use std::io::Write as _;
            let _ = writeln!(io::stderr(), "error: {message}");
            NOT_RUNNABLE
        }
    }
}

fn prepare(parent: &OsStr) -> Result<(), String> {
    set_pdeathsig(Signal::SIGKILL).map_err(|e| format!("cannot be tied to the emulator: {e}"))?;
    // The parent may have died before; then another has become our parent.
    let status = fs::read_to_string("/proc/self/status").map_err(|e| format!("cannot read /proc: {e}"))?;
    let now = status.lines().find_map(|l| l.strip_prefix("PPid:")).unwrap_or("").trim();
    if now != parent {
        return Err("the emulator has ended".to_owned());
    }
    // Processes are those of this namespace, where the system lets one mount that; else tools such as `ps` show
    // those of the host.
    let _ =
        mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>).and_then(|()| {
            let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
            mount(Some("proc"), "/proc", Some("proc"), flags, None::<&str>)
        });
    restrict().map_err(|e| format!("cannot drop privileges: {e}"))
}

/// Nothing but [`kept`] for whatever we run. We have one more until the program runs: by it our own bounding set can be emptied.
fn restrict() -> Result<(), caps::errors::CapsError> {
    let kept = kept();
    for cap in caps::all().difference(&kept) {
        if caps::has_cap(None, CapSet::Bounding, *cap).unwrap_or(false) {
            caps::drop(None, CapSet::Bounding, *cap)?;
        }
    }
    caps::set(None, CapSet::Ambient, &kept)?;
    caps::set(None, CapSet::Inheritable, &kept)?;
    let ours: CapsHashSet = kept.into_iter().chain([Capability::CAP_SETPCAP]).collect();
    for set in [CapSet::Effective, CapSet::Permitted] {
        caps::set(None, set, &ours)?;
    }
    set_no_new_privs().map_err(|e| e.to_string().into())
}

fn run(command: &[OsString]) -> Result<u8, String> {
    let [name, arguments @ ..] = command else { return Err("there is no program".to_owned()) };
    let shown = Path::new(name).display();
    let program = match Command::new(name).args(arguments).spawn() {
        Ok(child) => Pid::from_raw(child.id() as i32),
        Err(e) => {
            eprintln!("error: cannot run `{shown}`: {e}");
            return Ok(if e.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_RUNNABLE });
        }
    };
    // As the first process we get no signal that we do not ask for; a blocked one waits until we do.
    let awaited: SigSet = [Signal::SIGCHLD, Signal::SIGTERM, Signal::SIGHUP].into_iter().collect();
    awaited.thread_block().map_err(|e| format!("cannot wait for signals: {e}"))?;
    drop_privileges().map_err(|e| e.to_string())?;
    loop {
        // All that have ended, orphans of the program among them.
        loop {
            match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::Exited(pid, code)) if pid == program => return Ok(code_of(Some(code), None)),
                Ok(WaitStatus::Signaled(pid, signal, _)) if pid == program => {
                    return Ok(code_of(None, Some(signal as i32)));
                }
                Ok(WaitStatus::StillAlive) => break,
                Ok(_) | Err(Errno::EINTR) => {}
                Err(e) => return Err(format!("cannot wait for `{shown}`: {e}")),
            }
        }
        match awaited.wait() {
            Ok(Signal::SIGCHLD) | Err(_) => {}
            Ok(signal) => {
                let _ = kill(program, signal);
            }
        }
    }
}
