//! The errors of the emulator, each with the fault that was found and its remedy.

use fairpace_net::NetError;
use fairpace_sim::SimError;
use nix::unistd::geteuid;
use std::{fmt, io};

/// A run in real time, by its process and its user.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Holder {
    /// As seen from here; `None` if the process cannot be seen from here.
    pub process: Option<i32>,
    /// The user's number; `None` if the kernel does not tell.
    pub user: Option<u32>,
}

/// ` (process 12)`, and of which user if not of this one; nothing where nothing is known.
impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let user = self.user.filter(|user| *user != geteuid().as_raw());
        match (self.process, user) {
            (Some(process), Some(user)) => write!(f, " (process {process} of user {user})"),
            (Some(process), None) => write!(f, " (process {process})"),
            (None, Some(user)) => write!(f, " (of user {user})"),
            (None, None) => Ok(()),
        }
    }
}

/// An error of the emulator. [`EmuError::hint`] is the remedy.
#[derive(Debug, thiserror::Error)]
pub enum EmuError {
    /// The system gives this process no user or network namespace of its own.
    #[error("this system gives no namespaces of one's own: {what}: {source}")]
    NoNamespaces {
        /// The action that was tried.
        what: &'static str,
        /// The system's message.
        source: io::Error,
    },
    /// There is no TUN driver, or its device may not be opened.
    #[error("no TUN device: /dev/net/tun: {0}")]
    NoTun(#[source] io::Error),
    /// The surrounding namespace has a device of that name.
    #[error("there is a network device `{name}` already")]
    DeviceTaken {
        /// The name asked for.
        name: String,
    },
    /// The kernel forbids it.
    #[error("no permission to {what}")]
    Denied {
        /// The action that was tried.
        what: String,
    },
    /// The kernel gives this process no filter of system calls.
    #[error("this system gives no filter of system calls: {0}")]
    NoCallFilter(#[source] io::Error),
    /// Another run in real time has the machine.
    #[error("another run in real time is under way{holder}")]
    Busy {
        /// The run: this user's, or root's.
        holder: Holder,
    },
    /// Packets of the run do not fit the devices.
    #[error("the MTU {found} is too small: {least} is the least ({why})")]
    MtuTooSmall {
        /// The MTU as given, in bytes.
        found: u32,
        /// The least size that would do, in bytes.
        least: u32,
        /// The use that needs so much.
        why: &'static str,
    },
    /// A parameter is out of range, or a scenario has what the emulator has not.
    #[error("`{field}` is {found}; allowed: {allowed}")]
    Config {
        /// Its name.
        field: &'static str,
        /// The value as given.
        found: String,
        /// The values that are allowed.
        allowed: String,
    },
    /// The path cannot be built.
    #[error(transparent)]
    Sim(#[from] SimError),
    /// A socket or an endpoint failed.
    #[error(transparent)]
    Net(#[from] NetError),
    /// The operating system refused something that should work.
    #[error("cannot {what}: {source}")]
    Io {
        /// The action that was tried.
        what: String,
        /// The system's message.
        source: io::Error,
    },
}

impl EmuError {
    /// An operating-system error while doing `what`; no permission is [`EmuError::Denied`].
    pub(crate) fn io(what: impl Into<String>, source: impl Into<io::Error>) -> EmuError {
        let (what, source) = (what.into(), source.into());
        match source.kind() {
            io::ErrorKind::PermissionDenied => EmuError::Denied { what },
            _ => EmuError::Io { what, source },
        }
    }

    /// The remedy, as far as the user has one.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            EmuError::NoNamespaces { .. } => {
                "`sudo sysctl kernel.unprivileged_userns_clone=1 user.max_user_namespaces=10000`, on Ubuntu also \
                 `kernel.apparmor_restrict_unprivileged_userns=0`; in a container, `--privileged` or the capability \
                 CAP_SYS_ADMIN; `fairpace relay` emulates a link without any"
                    .to_owned()
            }
            EmuError::NoTun(source) if source.kind() == io::ErrorKind::PermissionDenied => {
                "`sudo chmod 0666 /dev/net/tun` (its usual mode: only a namespace's owner can make devices with it), \
                 or run as root; in a container, `--device /dev/net/tun`"
                    .to_owned()
            }
            EmuError::NoTun(_) => {
                "`sudo modprobe tun` (the kernel needs CONFIG_TUN); in a container, `--device /dev/net/tun`".to_owned()
            }
            EmuError::NoCallFilter(_) => {
                "the kernel needs CONFIG_SECCOMP_FILTER; in a container, a profile that lets programs call seccomp(2)"
                    .to_owned()
            }
            EmuError::DeviceTaken { name } => format!("`ip link show {name}` shows it; end what made it"),
            EmuError::Denied { .. } => {
                "the capability CAP_NET_ADMIN is needed for that: `sudo`, or leave `--on-host` out".to_owned()
            }
            EmuError::Busy { holder: Holder { process: Some(pid), .. } } => {
                format!("two at a time would disturb each other: wait for it, or end it (`ps -fp {pid}` names it)")
            }
            EmuError::Busy { .. } => {
                "two at a time would disturb each other: wait for it; `ss -xlp | grep fairpace/real-time` may name it"
                    .to_owned()
            }
            EmuError::MtuTooSmall { least, .. } => format!("give at least {least}"),
            EmuError::Net(e) => return e.hint(),
            EmuError::Sim(_) | EmuError::Config { .. } | EmuError::Io { .. } => return None,
        })
    }
}
