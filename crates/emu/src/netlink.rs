//! The little of rtnetlink [RFC 3549] that is needed: a device goes up, a route points to it. One request, one
//! acknowledgement; in the network namespace of the calling thread.

use crate::EmuError;
use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, recv, sendto, socket};
use std::io;
use std::net::IpAddr;
use std::os::fd::AsRawFd as _;

// linux/netlink.h, linux/rtnetlink.h, linux/if.h
const NLMSG_ERROR: u16 = 2;
const RTM_NEWLINK: u16 = 16;
const RTM_NEWADDR: u16 = 20;
const RTM_NEWROUTE: u16 = 24;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;
const NLM_F_CREATE: u16 = 0x400;
const NLM_F_REPLACE: u16 = 0x100;
const IFF_UP: u32 = 1;
const IFLA_TXQLEN: u16 = 13;
const RT_TABLE_MAIN: u8 = 254;
const RTPROT_STATIC: u8 = 4;
const RT_SCOPE_LINK: u8 = 253;
const RTN_UNICAST: u8 = 1;
const IFA_F_NODAD: u8 = 2;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RTA_PREFSRC: u16 = 7;
const RTA_METRICS: u16 = 8;
const RTAX_QUICKACK: u16 = 15;

/// Takes the device `name` up.
///
/// # Errors
/// [`EmuError::Io`] if there is none, [`EmuError::Denied`] without CAP_NET_ADMIN here.
pub fn up(name: &str) -> Result<(), EmuError> {
    let what = format!("take the device `{name}` up");
    let index = index(name)?;
    // struct ifinfomsg: family, pad, type, index, flags, change mask.
    let mut body = vec![0; 4];
    for word in [index, IFF_UP, IFF_UP] {
        body.extend(word.to_ne_bytes());
    }
    request(RTM_NEWLINK, 0, &body, &what)
}

/// The device `name` holds that many packets until they are read.
///
/// # Errors
/// As for [`up`].
pub fn queue(name: &str, packets: u32) -> Result<(), EmuError> {
    let what = format!("set the queue of the device `{name}` to {packets}");
    let mut body = vec![0; 4];
    for word in [index(name)?, 0, 0] {
        body.extend(word.to_ne_bytes());
    }
    attribute(&mut body, IFLA_TXQLEN, &packets.to_ne_bytes());
    request(RTM_NEWLINK, 0, &body, &what)
}

/// The device `name` has that address too, and what shares its first `prefix` bits is behind it.
///
/// # Errors
/// As for [`up`].
pub fn address(address: IpAddr, prefix: u8, name: &str) -> Result<(), EmuError> {
    let what = format!("give the device `{name}` the address {address}/{prefix}");
    // struct ifaddrmsg: family, prefix length, flags, scope, index.
    let mut body = vec![family(address), prefix, IFA_F_NODAD, 0];
    body.extend(index(name)?.to_ne_bytes());
    attribute(&mut body, IFA_LOCAL, &octets(address));
    attribute(&mut body, IFA_ADDRESS, &octets(address));
    request(RTM_NEWADDR, NLM_F_CREATE | NLM_F_REPLACE, &body, &what)
}

/// Packets to `prefix`/`length` leave by the device `name`, from `source` if they have no address yet.
/// A route to the same prefix is replaced.
///
/// # Errors
/// As for [`up`].
pub fn route(prefix: IpAddr, length: u8, name: &str, source: Option<IpAddr>) -> Result<(), EmuError> {
    new_route(prefix, length, name, source, &[])
}

/// Packets to `address` leave by the device `name`, and TCP here acknowledges each segment that comes from there at once,
/// whoever reads it and when.
///
/// # Errors
/// As for [`up`].
pub fn acknowledge_each(address: IpAddr, name: &str) -> Result<(), EmuError> {
    let mut metric = Vec::new();
    attribute(&mut metric, RTAX_QUICKACK, &1_u32.to_ne_bytes());
    new_route(address, if address.is_ipv4() { 32 } else { 128 }, name, None, &metric)
}

fn new_route(prefix: IpAddr, length: u8, name: &str, source: Option<IpAddr>, metrics: &[u8]) -> Result<(), EmuError> {
    let what = format!("route {prefix}/{length} to the device `{name}`");
    // struct rtmsg: family, lengths of destination and source, tos, table, protocol, scope, type, flags.
    let mut body =
        vec![family(prefix), length, 0, 0, RT_TABLE_MAIN, RTPROT_STATIC, RT_SCOPE_LINK, RTN_UNICAST, 0, 0, 0, 0];
    attribute(&mut body, RTA_DST, &octets(prefix));
    attribute(&mut body, RTA_OIF, &index(name)?.to_ne_bytes());
    if let Some(source) = source {
        attribute(&mut body, RTA_PREFSRC, &octets(source));
    }
    if !metrics.is_empty() {
        attribute(&mut body, RTA_METRICS, metrics);
    }
    request(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE, &body, &what)
}

fn family(address: IpAddr) -> u8 {
    let family = if address.is_ipv4() { nix::libc::AF_INET } else { nix::libc::AF_INET6 };
    family as u8
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(a) => a.octets().to_vec(),
        IpAddr::V6(a) => a.octets().to_vec(),
    }
}

fn index(name: &str) -> Result<u32, EmuError> {
    nix::net::if_::if_nametoindex(name).map_err(|e| EmuError::io(format!("find the network device `{name}`"), e))
}

/// Appends an attribute; all ours have a length that is a multiple of four.
fn attribute(body: &mut Vec<u8>, kind: u16, value: &[u8]) {
    body.extend((value.len() as u16 + 4).to_ne_bytes());
    body.extend(kind.to_ne_bytes());
    body.extend(value);
}

fn request(kind: u16, flags: u16, body: &[u8], what: &str) -> Result<(), EmuError> {
    let failed = |e: Errno| EmuError::io(what, e);
    let socket = socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, SockProtocol::NetlinkRoute)
        .map_err(failed)?;
    // struct nlmsghdr: length, type, flags, sequence number, port.
    let mut message = (body.len() as u32 + 16).to_ne_bytes().to_vec();
    message.extend(kind.to_ne_bytes());
    message.extend((NLM_F_REQUEST | NLM_F_ACK | flags).to_ne_bytes());
    message.extend([0; 8]);
    message.extend(body);
    sendto(socket.as_raw_fd(), &message, &NetlinkAddr::new(0, 0), MsgFlags::empty()).map_err(failed)?;
    let mut answer = [0; 1024];
    let length = recv(socket.as_raw_fd(), &mut answer, MsgFlags::empty()).map_err(failed)?;
    // The header, then the error's number (0: done), negative.
    match answer.get(..length).map(|a| (a.get(4..6), a.get(16..20))) {
        Some((Some(kind), Some(&[a, b, c, d]))) if kind == NLMSG_ERROR.to_ne_bytes() => {
            match i32::from_ne_bytes([a, b, c, d]) {
                0 => Ok(()),
                error => Err(failed(Errno::from_raw(error.saturating_neg()))),
            }
        }
        _ => Err(EmuError::io(what, io::Error::other("rtnetlink answered something else"))),
    }
}
