//! Options of a socket: buffers, no fragments, the path's MTU, the address that was reached.
//!
//! Those that `nix` has no name for are made with its own macro.

use super::packet_info::socket_address;
use crate::address::canonical;
use fairpace_rtp::quick_start;
use fairpace_units::{Bytes, QsOption};
use nix::errno::Errno;
use nix::ifaddrs::getifaddrs;
use nix::libc;
use nix::sys::socket::sockopt::{GetStruct, SetOsString, SetStruct};
use nix::sys::socket::{SockaddrStorage, getsockopt, setsockopt, sockopt};
use nix::{getsockopt_impl, setsockopt_impl};
use socket2::Socket;
use std::ffi::OsString;
use std::net::IpAddr;
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStringExt as _;

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

/// The fate of packets that are larger than the path carries. `PROBE` sets DF, and heeds the device's MTU alone; `OMIT` leaves
/// DF out, and has the device's own machine cut what the device does not take.
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

/// The options of IPv4 headers, in bytes; none: packets have no options.
#[derive(Clone, Copy, Debug)]
struct OptionsV4;
setsockopt_impl!(OptionsV4, libc::IPPROTO_IP, libc::IP_OPTIONS, OsString, SetOsString<'_>);

/// The Hop-by-Hop Options header of IPv6 packets.
#[derive(Clone, Copy, Debug)]
struct OptionsV6;
setsockopt_impl!(OptionsV6, libc::IPPROTO_IPV6, libc::IPV6_HOPOPTS, OsString, SetOsString<'_>);

/// -1: the system's.
#[derive(Clone, Copy, Debug)]
struct Ttl;
setsockopt_impl!(Ttl, libc::IPPROTO_IP, libc::IP_TTL, libc::c_int, SetStruct<libc::c_int>);

/// As above.
#[derive(Clone, Copy, Debug)]
struct HopLimit;
setsockopt_impl!(HopLimit, libc::IPPROTO_IPV6, libc::IPV6_UNICAST_HOPS, libc::c_int, SetStruct<libc::c_int>);

/// Whether each datagram comes with the options of its IPv4 header.
#[derive(Clone, Copy, Debug)]
struct TellOptionsV4;
setsockopt_impl!(TellOptionsV4, libc::IPPROTO_IP, libc::IP_RECVOPTS, libc::c_int, SetStruct<libc::c_int>);

/// With its TTL.
#[derive(Clone, Copy, Debug)]
struct TellTtl;
setsockopt_impl!(TellTtl, libc::IPPROTO_IP, libc::IP_RECVTTL, libc::c_int, SetStruct<libc::c_int>);

/// With its Hop-by-Hop Options header.
#[derive(Clone, Copy, Debug)]
struct TellOptionsV6;
setsockopt_impl!(TellOptionsV6, libc::IPPROTO_IPV6, libc::IPV6_RECVHOPOPTS, libc::c_int, SetStruct<libc::c_int>);

/// With its hop limit.
#[derive(Clone, Copy, Debug)]
struct TellHopLimit;
setsockopt_impl!(TellHopLimit, libc::IPPROTO_IPV6, libc::IPV6_RECVHOPLIMIT, libc::c_int, SetStruct<libc::c_int>);

/// Datagrams come with the options of their IP headers and the TTL. No privilege is needed.
pub(super) fn tell_options(socket: &Socket, v6: bool, v4_too: bool) -> Result<(), Errno> {
    if v4_too {
        setsockopt(socket, TellOptionsV4, &1)?;
        setsockopt(socket, TellTtl, &1)?;
    }
    if v6 {
        setsockopt(socket, TellOptionsV6, &1)?;
        setsockopt(socket, TellHopLimit, &1)?;
    }
    Ok(())
}

/// Every packet has this Quick-Start option, and the option's TTL, until another is set; `None`: no option, and the system's TTL. Both
/// families' kernels want CAP_NET_RAW for an option, and IPv6's for having none, too.
pub(super) fn set_option(socket: &Socket, v6: bool, option: Option<&QsOption>) -> Result<(), Errno> {
    let ttl = option.map_or(-1, |option| libc::c_int::from(option.ip_ttl));
    if v6 {
        let header = option.map_or(Vec::new(), |option| quick_start::ipv6_hop_by_hop(0, option).to_vec());
        setsockopt(socket, OptionsV6, &OsString::from_vec(header))?;
        setsockopt(socket, HopLimit, &ttl)
    } else {
        let bytes = option.map_or(Vec::new(), |option| quick_start::ipv4_option(option).to_vec());
        // To the unprivileged the kernel calls an option that it does not know invalid.
        let refused = |e| if e == Errno::EINVAL { Errno::EPERM } else { e };
        setsockopt(socket, OptionsV4, &OsString::from_vec(bytes)).map_err(refused)?;
        setsockopt(socket, Ttl, &ttl)
    }
}

/// With `fragments` packets may be cut on their way, else never. "Packet too big" messages, which anybody can forge, change
/// nothing at the socket in either case; the kernel's memory of them is a hint ([`path_mtu`]).
pub(super) fn set_fragments(socket: &Socket, v6: bool, v4_too: bool, fragments: bool) -> Result<(), Errno> {
    if v4_too {
        let mode = if fragments { libc::IP_PMTUDISC_OMIT } else { libc::IP_PMTUDISC_PROBE };
        setsockopt(socket, MtuDiscoverV4, &mode)?;
    }
    if v6 {
        let mode = if fragments { libc::IPV6_PMTUDISC_OMIT } else { libc::IPV6_PMTUDISC_PROBE };
        setsockopt(socket, MtuDiscoverV6, &mode)?;
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

/// The path's MTU (whole IP packets) as the kernel remembers it from messages, which may be forged, or the device's; only of a
/// connected socket.
pub(super) fn path_mtu(socket: &Socket, v6: bool) -> Option<Bytes> {
    let mtu = if v6 { getsockopt(socket, PathMtuV6) } else { getsockopt(socket, PathMtuV4) };
    mtu.ok().and_then(|m| u64::try_from(m).ok()).map(Bytes::new)
}

/// The MTU of the device that has this address of the machine.
pub(super) fn device_mtu(socket: &Socket, address: IpAddr) -> Option<Bytes> {
    let mine = |found: Option<SockaddrStorage>| {
        found.as_ref().and_then(socket_address).is_some_and(|a| canonical(a).ip() == address)
    };
    let device = getifaddrs().ok()?.find(|device| mine(device.address))?;
    mtu_of(socket, &device.interface_name)
}

/// The MTU of the device of that name, in the network of the socket.
#[allow(unsafe_code)]
fn mtu_of(socket: &Socket, name: &str) -> Option<Bytes> {
    // SAFETY: all zeros are a valid `ifreq`.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The name's end is the zero behind it.
    if name.len() >= request.ifr_name.len() {
        return None;
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    // SAFETY: SIOCGIFMTU reads the name and writes the MTU of the `ifreq`, which lives until the call returns.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFMTU, &raw mut request) };
    // SAFETY: the kernel has written this member of the union, an integer of which any bits are valid.
    let mtu = unsafe { request.ifr_ifru.ifru_mtu };
    (result == 0).then_some(mtu).and_then(|mtu| u64::try_from(mtu).ok()).map(Bytes::new)
}

/// Whether each datagram says which address of this machine it was sent to; on a dual-stack socket IPv4's come mapped.
pub(super) fn tell_local_address(socket: &Socket, v6: bool, tell: bool) -> Result<(), Errno> {
    if v6 {
        setsockopt(socket, sockopt::Ipv6RecvPacketInfo, &tell)
    } else {
        setsockopt(socket, sockopt::Ipv4PacketInfo, &tell)
    }
}
