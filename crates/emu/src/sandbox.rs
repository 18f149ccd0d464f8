//! Namespaces of our own: what the emulator makes exists in them only, and ends with the process.
//!
//! A user namespace gives this process all rights over the network namespaces made inside it and none over
//! anything else, for root too. Namespaces get no name and no mount: when their last process and descriptor
//! are gone the kernel removes them, with devices, addresses, routes and sysctls, also after `kill -9`.
//!
//! The rights are needed to make namespaces and devices, to enter a namespace, and to open sockets with a
//! restricted TCP algorithm. [`drop_privileges`](crate::drop_privileges) gives them up for good, per thread; a thread started
//! afterwards starts without. A [`Door`] leads into a namespace without any.

use crate::privileges::{Kept, drop_privileges_but};
use crate::{EmuError, netlink, priority};
use nix::sched::{CloneFlags, setns, unshare};
use nix::unistd::{getegid, geteuid};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::thread::{Builder, JoinHandle};

/// The settings that differ from the kernel's defaults in each of our namespaces, so that a run measures the path and
/// not its machine: no IPv6 chatter (an address is usable at once, nothing is sent unasked), socket buffers that a
/// long fat path can fill, no memory of earlier connections, and Reno where no socket asks for another, whatever the
/// host's default is.
pub const SYSCTLS: [(&str, &str); 14] = [
    ("net.ipv6.conf.all.disable_ipv6", "0"),
    ("net.ipv6.conf.default.disable_ipv6", "0"),
    ("net.ipv6.conf.all.accept_dad", "0"),
    ("net.ipv6.conf.default.accept_dad", "0"),
    ("net.ipv6.conf.default.accept_ra", "0"),
    ("net.ipv6.conf.default.router_solicitations", "0"),
    // No link-local addresses: nobody is on the link but the two ends.
    ("net.ipv6.conf.default.addr_gen_mode", "1"),
    // New namespaces take these from the host: a router's would send strangers' packets back into the path.
    ("net.ipv4.ip_forward", "0"),
    ("net.ipv4.conf.all.rp_filter", "0"),
    ("net.ipv4.conf.default.rp_filter", "0"),
    ("net.ipv4.tcp_congestion_control", "reno"),
    ("net.ipv4.tcp_no_metrics_save", "1"),
    ("net.ipv4.tcp_rmem", "4096 131072 67108864"),
    ("net.ipv4.tcp_wmem", "4096 65536 67108864"),
];

/// A user namespace of our own, and the network namespace that came with it, in which this process now is.
#[derive(Debug)]
pub struct Sandbox {
    outer: NetNs,
}

impl Sandbox {
    /// Leaves the host's network for a namespace of our own, with this user and group mapped to themselves.
    /// The caller has one thread (the kernel demands it), so: first thing in a command. Files and processes
    /// stay as they were.
    ///
    /// # Errors
    /// [`EmuError::NoNamespaces`] where the system does not allow it; this process is as before then, or in
    /// a namespace without use.
    pub fn enter() -> Result<Sandbox, EmuError> {
        alone();
        priority::across(Sandbox::leave_the_host)
    }

    fn leave_the_host() -> Result<Sandbox, EmuError> {
        let (user, group) = (geteuid(), getegid());
        let refused = |what| move |source: io::Error| EmuError::NoNamespaces { what, source };
        unshare(CloneFlags::CLONE_NEWUSER).map_err(|e| refused("a user namespace")(e.into()))?;
        // Without this the kernel lets only a privileged parent write the groups.
        fs::write("/proc/self/setgroups", "deny").map_err(refused("/proc/self/setgroups"))?;
        fs::write("/proc/self/uid_map", format!("{user} {user} 1")).map_err(refused("/proc/self/uid_map"))?;
        fs::write("/proc/self/gid_map", format!("{group} {group} 1")).map_err(refused("/proc/self/gid_map"))?;
        unshare(CloneFlags::CLONE_NEWNET).map_err(|e| refused("a network namespace")(e.into()))?;
        prepare()?;
        Ok(Sandbox { outer: NetNs::current("outer")? })
    }

    /// The namespace that this process is in since [`Sandbox::enter`].
    pub fn outer(&self) -> &NetNs {
        &self.outer
    }

    /// A further network namespace, empty but for the loopback device, which is up. `name` is for messages
    /// only.
    ///
    /// # Errors
    /// [`EmuError::Denied`] after [`drop_privileges`](crate::drop_privileges); [`EmuError::NoNamespaces`] if there are too many.
    pub fn namespace(&self, name: &'static str) -> Result<NetNs, EmuError> {
        on_thread(name, || {
            unshare(CloneFlags::CLONE_NEWNET).map_err(|e| match io::Error::from(e) {
                e if e.kind() == io::ErrorKind::PermissionDenied => {
                    EmuError::Denied { what: format!("make the network namespace `{name}`") }
                }
                source => EmuError::NoNamespaces { what: "a network namespace", source },
            })?;
            prepare()?;
            NetNs::current(name)
        })?
    }
}

/// Waits, a second at most, until threads that have been joined are gone: whoever joins one is told of its end a little
/// before the kernel counts it out.
fn alone() {
    for _ in 0..1_000 {
        if fs::read_dir("/proc/self/task").map_or(1, Iterator::count) <= 1 {
            return;
        }
        std::thread::park_timeout(std::time::Duration::from_millis(1));
    }
}

/// The loopback device and the sysctls of the network namespace of this thread.
fn prepare() -> Result<(), EmuError> {
    for (key, value) in SYSCTLS {
        if has_ipv6() || !key.starts_with("net.ipv6") {
            write_sysctl(key, value)?;
        }
    }
    // Ping without a privilege, for our group: others are not mapped.
    let group = getegid();
    write_sysctl("net.ipv4.ping_group_range", &format!("{group} {group}"))?;
    netlink::up("lo")
}

/// Whether the kernel has IPv6.
pub fn has_ipv6() -> bool {
    Path::new("/proc/sys/net/ipv6").exists()
}

fn path_of(key: &str) -> String {
    format!("/proc/sys/{}", key.replace('.', "/"))
}

fn write_sysctl(key: &str, value: &str) -> Result<(), EmuError> {
    // Not made: for a file that there is not, /proc would say that it may not be written.
    let file = fs::OpenOptions::new().write(true).open(path_of(key));
    file.and_then(|mut file| file.write_all(value.as_bytes()))
        .map_err(|e| EmuError::io(format!("set the sysctl {key} to `{value}`"), e))
}

/// A network namespace, kept by a descriptor.
#[derive(Debug)]
pub struct NetNs {
    name: &'static str,
    file: OwnedFd,
    inode: u64,
}

impl NetNs {
    /// The one that this thread is in, be it ours or the host's. `name` is for messages only.
    ///
    /// # Errors
    /// [`EmuError::Io`] without /proc.
    pub fn current(name: &'static str) -> Result<NetNs, EmuError> {
        let open = || {
            let file = File::open("/proc/thread-self/ns/net")?;
            Ok((file.metadata()?.ino(), file))
        };
        let (inode, file) = open().map_err(|e: io::Error| EmuError::io("open /proc/thread-self/ns/net", e))?;
        Ok(NetNs { name, file: file.into(), inode })
    }

    /// The name in messages.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The kernel's number of it, as in `net:[4026532281]`.
    pub fn inode(&self) -> u64 {
        self.inode
    }

    /// Runs `work` on a fresh thread inside this namespace, and waits for it. A socket or file that `work` opens
    /// stays in this namespace, wherever it is used later. The thread has the rights of the calling one.
    ///
    /// # Errors
    /// [`EmuError::Denied`] after [`drop_privileges`](crate::drop_privileges).
    ///
    /// # Panics
    /// With the panic of `work`.
    pub fn run<R: Send>(&self, work: impl FnOnce() -> R + Send) -> Result<R, EmuError> {
        on_thread(self.name, || {
            self.enter()?;
            Ok(work())
        })?
    }

    /// Starts a thread called `name` that runs `work` inside this namespace.
    ///
    /// # Errors
    /// [`EmuError::Denied`] after [`drop_privileges`](crate::drop_privileges).
    pub fn spawn<R: Send + 'static>(
        &self,
        name: impl Into<String>,
        rights: Rights,
        work: impl FnOnce() -> R + Send + 'static,
    ) -> Result<JoinHandle<R>, EmuError> {
        let name = name.into();
        // A thread inside starts it: a new thread has the namespaces and the rights of the one that starts it.
        self.run(|| {
            match rights {
                Rights::Dropped => drop_privileges_but(Kept::Nothing)?,
                Rights::IpOptions => drop_privileges_but(Kept::IpOptions)?,
                Rights::Kept => {}
            }
            Builder::new().name(name).spawn(work).map_err(|e| EmuError::io("start a thread", e))
        })?
    }

    /// A way into this namespace for those who have given up their rights. Work that is done there has those `rights`.
    ///
    /// # Errors
    /// As [`NetNs::spawn`].
    pub fn door(&self, rights: Rights) -> Result<Door, EmuError> {
        let (work, jobs) = channel::<Job>();
        self.spawn(format!("in {}", self.name), rights, move || jobs.into_iter().for_each(|job| job()))?;
        Ok(Door { work })
    }

    /// A sysctl's value there: `net.ipv4.tcp_congestion_control`.
    ///
    /// # Errors
    /// [`EmuError::Io`] if there is none of that name.
    pub fn sysctl(&self, key: &str) -> Result<String, EmuError> {
        self.run(|| fs::read_to_string(path_of(key)))?
            .map(|v| v.trim().to_owned())
            .map_err(|e| EmuError::io(format!("read the sysctl {key}"), e))
    }

    /// Sets a sysctl there, which is nowhere else.
    ///
    /// # Errors
    /// [`EmuError::Io`] if there is none of that name or the kernel refuses the value.
    pub fn set_sysctl(&self, key: &str, value: &str) -> Result<(), EmuError> {
        self.run(|| write_sysctl(key, value))?
    }

    /// This thread goes there, for good. To where it is already it may without a privilege.
    ///
    /// # Errors
    /// [`EmuError::Denied`] after [`drop_privileges`](crate::drop_privileges).
    pub fn enter(&self) -> Result<(), EmuError> {
        if NetNs::current(self.name)?.inode == self.inode {
            return Ok(());
        }
        setns(self.file.as_fd(), CloneFlags::CLONE_NEWNET)
            .map_err(|e| EmuError::io(format!("enter the network namespace `{}`", self.name), e))
    }
}

/// The work that a [`Door`]'s thread is asked to do.
type Job = Box<dyn FnOnce() + Send>;

/// A thread inside a namespace, without rights or almost so, that does there what it is asked to. The thread ends with the door.
#[derive(Debug)]
pub struct Door {
    work: Sender<Job>,
}

impl Door {
    /// Runs `work` on that thread, and waits for it. Sockets that `work` opens stay in the namespace, and so do
    /// threads that it starts.
    ///
    /// # Errors
    /// [`EmuError::Io`] if `work` or one before it has panicked.
    pub fn run<R: Send + 'static>(&self, work: impl FnOnce() -> R + Send + 'static) -> Result<R, EmuError> {
        let gone = || EmuError::io("work inside a namespace", io::Error::other("its thread has ended"));
        let (done, answer) = channel();
        let job = move || {
            // Whoever asked waits for it.
            let _ = done.send(work());
        };
        self.work.send(Box::new(job)).map_err(|_| gone())?;
        answer.recv().map_err(|_| gone())
    }
}

/// Whether a thread begins with the sandbox's rights.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rights {
    /// The thread has none.
    Dropped,
    /// The thread may put options into the headers of IP packets, and nothing else.
    IpOptions,
    /// The thread has them, and is to call [`drop_privileges`](crate::drop_privileges) when its sockets are open.
    Kept,
}

/// Runs `work` on a fresh thread and waits for it.
fn on_thread<R: Send>(name: &str, work: impl FnOnce() -> R + Send) -> Result<R, EmuError> {
    std::thread::scope(|scope| {
        let thread = Builder::new()
            .name(name.to_owned())
            .spawn_scoped(scope, work)
            .map_err(|e| EmuError::io("start a thread", e))?;
        Ok(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}
