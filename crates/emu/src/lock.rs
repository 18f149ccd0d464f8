//! One run in real time per machine: two would make each other late.

use crate::EmuError;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, UnixAddr, connect, getsockopt, socket, sockopt::PeerCredentials,
};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};

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
            Err(e) if e.kind() == io::ErrorKind::AddrInUse => Err(EmuError::Busy { holder: holder() }),
            Err(e) => Err(EmuError::io(what, e)),
        }
    }
}

/// Who holds the name: the kernel tells a caller who listens. Calls are never answered, and after some thousand there
/// is no room for more: then nobody waits, and the holder has no name.
fn holder() -> Option<i32> {
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let call = socket(AddressFamily::Unix, SockType::Stream, flags, None).ok()?;
    connect(call.as_raw_fd(), &UnixAddr::new_abstract(NAME).ok()?).ok()?;
    let pid = getsockopt(&call, PeerCredentials).ok()?.pid();
    // 0: a process that has no number in our process namespace.
    (pid != 0).then_some(pid)
}
