//! Options of a socket: buffers, no fragments, the path's MTU, the address that was reached.
//!
//! Those that `nix` has no name for are made with its own macro.

use fairpace_units::Bytes;
use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::sockopt::{GetStruct, SetStruct};
use nix::sys::socket::{getsockopt, setsockopt, sockopt};
use nix::{getsockopt_impl, setsockopt_impl};
use socket2::Socket;

/// Socket buffers to ask for. The kernel grants at most `net.core.{r,w}mem_max`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Buffers {
    /// For packets that have come and not been read.
    pub receive: Bytes,
    /// For packets that wait for the device.
    pub send: Bytes,
}

impl Default for Buffers {
    /// 1 MiB each way: at 10 Mbit/s that is 0.8 s of a stopped process.
    fn default() -> Self {
        Buffers { receive: Bytes::new(1 << 20), send: Bytes::new(1 << 20) }
    }
}

/// The kernel's grant, beside the request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Granted {
    /// The sizes that were asked for.
    pub asked: Buffers,
    /// The sizes that the kernel granted. (The kernel keeps twice that, for its own bookkeeping; this is the half
    /// that was asked for.)
    pub granted: Buffers,
}

impl Granted {
    /// Both as large as asked.
    pub fn in_full(&self) -> bool {
        self.granted.receive >= self.asked.receive && self.granted.send >= self.asked.send
    }
}

/// Whether IPv4 packets may be fragmented; `IP_PMTUDISC_DO` sets DF and heeds the path's MTU.
#[derive(Clone, Copy, Debug)]
struct MtuDiscoverV4;
setsockopt_impl!(MtuDiscoverV4, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::c_int, SetStruct<libc::c_int>);

/// The same for IPv6.
#[derive(Clone, Copy, Debug)]
struct MtuDiscoverV6;
setsockopt_impl!(MtuDiscoverV6, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::c_int, SetStruct<libc::c_int>);

/// The path's MTU as the kernel knows it; only of a connected socket.
#[derive(Clone, Copy, Debug)]
struct PathMtuV4;
getsockopt_impl!(PathMtuV4, libc::IPPROTO_IP, libc::IP_MTU, libc::c_int, GetStruct<libc::c_int>);

/// The same for IPv6.
#[derive(Clone, Copy, Debug)]
struct PathMtuV6;
getsockopt_impl!(PathMtuV6, libc::IPPROTO_IPV6, libc::IPV6_MTU, libc::c_int, GetStruct<libc::c_int>);

/// Never fragment. The kernel heeds "packet too big" messages, but never below 552 bytes (IPv4,
/// `min_pmtu`) or 1,280 (IPv6), so that a forged one cannot starve us.
pub(super) fn dont_fragment(socket: &Socket, v6: bool, v4_too: bool) -> Result<(), Errno> {
    if v4_too {
        setsockopt(socket, MtuDiscoverV4, &libc::IP_PMTUDISC_DO)?;
    }
    if v6 {
        setsockopt(socket, MtuDiscoverV6, &libc::IPV6_PMTUDISC_DO)?;
    }
    Ok(())
}

/// Asks for buffers, and reads what there is.
pub(super) fn set_buffers(socket: &Socket, asked: Buffers) -> std::io::Result<Granted> {
    let size = |b: Bytes| usize::try_from(b.get()).unwrap_or(usize::MAX).min(i32::MAX as usize);
    socket.set_recv_buffer_size(size(asked.receive))?;
    socket.set_send_buffer_size(size(asked.send))?;
    let granted = Buffers {
        receive: Bytes::new(socket.recv_buffer_size()? as u64 / 2),
        send: Bytes::new(socket.send_buffer_size()? as u64 / 2),
    };
    Ok(Granted { asked, granted })
}

/// The path's MTU (whole IP packets) as far as the kernel knows; only of a connected socket.
pub(super) fn path_mtu(socket: &Socket, v6: bool) -> Option<Bytes> {
    let mtu = if v6 { getsockopt(socket, PathMtuV6) } else { getsockopt(socket, PathMtuV4) };
    mtu.ok().and_then(|m| u64::try_from(m).ok()).map(Bytes::new)
}

/// Whether each datagram says which address of this machine it was sent to; on a dual-stack socket IPv4's come mapped.
pub(super) fn tell_local_address(socket: &Socket, v6: bool, tell: bool) -> Result<(), Errno> {
    if v6 {
        setsockopt(socket, sockopt::Ipv6RecvPacketInfo, &tell)
    } else {
        setsockopt(socket, sockopt::Ipv4PacketInfo, &tell)
    }
}
