//! Giving up every privilege, thread by thread.

use crate::EmuError;
use caps::{CapSet, Capability};
use std::{fs, io};

/// A privilege that may be kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kept {
    /// None.
    Nothing,
    /// CAP_NET_RAW: options in the headers of IP packets. The capability also opens raw sockets, which a [`CallFilter`](crate::CallFilter) refuses.
    IpOptions,
}

/// As [`drop_privileges`], but for the privilege that is kept, if the thread has it.
///
/// # Errors
/// As [`drop_privileges`].
pub fn drop_privileges_but(kept: Kept) -> Result<(), EmuError> {
    let refused = |e: caps::errors::CapsError| EmuError::io("drop privileges", io::Error::other(e.to_string()));
    let has =
        kept == Kept::IpOptions && caps::has_cap(None, CapSet::Permitted, Capability::CAP_NET_RAW).map_err(refused)?;
    if !has {
        return drop_privileges();
    }
    give_up_others()?;
    let raw: caps::CapsHashSet = [Capability::CAP_NET_RAW].into_iter().collect();
    caps::set(None, CapSet::Effective, &raw).map_err(refused)?;
    caps::set(None, CapSet::Permitted, &raw).map_err(refused)
}

/// Takes every privilege from the calling thread, for good: no capability in any set, none to be had from a
/// program either (`no_new_privs`). Threads that it starts later have none; others keep theirs:
/// [`privileged_threads`] finds them.
///
/// # Errors
/// [`EmuError::Io`] if the kernel refuses, which it has no reason to.
pub fn drop_privileges() -> Result<(), EmuError> {
    give_up_others()?;
    let refused = |e: caps::errors::CapsError| EmuError::io("drop privileges", io::Error::other(e.to_string()));
    caps::clear(None, CapSet::Permitted).map_err(refused)
}

/// Gives up all that a program could have; the thread's own permitted privileges stay.
fn give_up_others() -> Result<(), EmuError> {
    let refused = |e: caps::errors::CapsError| EmuError::io("drop privileges", io::Error::other(e.to_string()));
    nix::sys::prctl::set_no_new_privs().map_err(|e| EmuError::io("drop privileges", e))?;
    caps::clear(None, CapSet::Ambient).map_err(refused)?;
    // A process without CAP_SETPCAP has a bounding set that it cannot change; with `no_new_privs` it does not matter.
    if caps::has_cap(None, CapSet::Effective, Capability::CAP_SETPCAP).map_err(refused)? {
        caps::clear(None, CapSet::Bounding).map_err(refused)?;
    }
    caps::clear(None, CapSet::Inheritable).map_err(refused)
}

/// The threads of this process that have an effective or permitted capability, by name; empty after every
/// one called [`drop_privileges`].
///
/// # Errors
/// [`EmuError::Io`] without /proc.
pub fn privileged_threads() -> Result<Vec<String>, EmuError> {
    let unread = |e| EmuError::io("read /proc/self/task", e);
    let mut found = Vec::new();
    for task in fs::read_dir("/proc/self/task").map_err(unread)? {
        let folder = task.map_err(unread)?.path();
        // A thread that has ended in the meantime has no privilege.
        let Ok(status) = fs::read_to_string(folder.join("status")) else { continue };
        let field = |name: &str| status.lines().find_map(|l| l.strip_prefix(name)).unwrap_or("").trim();
        let none = |set: &str| set.bytes().all(|b| b == b'0');
        if !(none(field("CapEff:")) && none(field("CapPrm:"))) {
            found.push(field("Name:").to_owned());
        }
    }
    Ok(found)
}
