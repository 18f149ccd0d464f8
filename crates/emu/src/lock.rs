//! One run in real time per machine: two would make each other late.

use crate::EmuError;
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

/// Abstract: it has no file, and ends with its process however that ends.
const NAME: &[u8] = b"fairpace/real-time";

/// Held for as long as a run in real time lasts. Take it before [`crate::Sandbox::enter`]: the name is one
/// of the network namespace in which it is taken, so that a run inside a shell's own namespace is let
/// through (the shell is part of that run), and one in another container is not seen.
#[derive(Debug)]
pub struct RealTimeLock {
    _listener: UnixListener,
}

impl RealTimeLock {
    /// Takes it.
    ///
    /// # Errors
    /// [`EmuError::Busy`] with the process that holds it.
    pub fn acquire() -> Result<RealTimeLock, EmuError> {
        let what = "take the lock of runs in real time";
        let name = SocketAddr::from_abstract_name(NAME).map_err(|e| EmuError::io(what, e))?;
        match UnixListener::bind_addr(&name) {
            Ok(listener) => Ok(RealTimeLock { _listener: listener }),
            Err(e) if e.kind() == io::ErrorKind::AddrInUse => Err(EmuError::Busy { holder: holder(&name) }),
            Err(e) => Err(EmuError::io(what, e)),
        }
    }
}

/// Who holds `name`: the kernel tells a caller who listens.
fn holder(name: &SocketAddr) -> Option<i32> {
    let call = UnixStream::connect_addr(name).ok()?;
    let pid = getsockopt(&call, PeerCredentials).ok()?.pid();
    // 0: a process that has no number in our process namespace.
    (pid != 0).then_some(pid)
}
