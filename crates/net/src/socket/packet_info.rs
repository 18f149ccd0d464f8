//! The facts in a datagram's control messages: addresses, and the Quick-Start option; and addresses as dual-stack sockets want
//! them, mapped.

#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects
    )
)]

use fairpace_rtp::quick_start::{self, IpOptions};
use fairpace_units::QsOption;
use nix::libc;
use nix::sys::socket::{ControlMessage, ControlMessageOwned, SockaddrStorage};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The address of this machine that a datagram was sent to.
pub(super) fn local_address(message: &ControlMessageOwned) -> Option<IpAddr> {
    let local: IpAddr = match message {
        ControlMessageOwned::Ipv4PacketInfo(info) => Ipv4Addr::from(u32::from_be(info.ipi_spec_dst.s_addr)).into(),
        ControlMessageOwned::Ipv6PacketInfo(info) => Ipv6Addr::from(info.ipi6_addr.s6_addr).into(),
        _ => return None,
    };
    // Nothing leaves from a group's address.
    Some(local).filter(|a| !a.to_canonical().is_multicast() && !a.is_unspecified())
}

/// Bytes of options that are looked at: all of IPv4's, and an IPv6 header with Quick-Start and more.
pub(super) const MOST_OPTIONS: usize = 256;

/// The Quick-Start option of a datagram, with the TTL that it arrived with. Options that do not add up are none.
pub(super) fn quick_start(messages: &[ControlMessageOwned]) -> Option<QsOption> {
    let ttl = messages.iter().find_map(|message| match message {
        ControlMessageOwned::Ipv4Ttl(ttl) | ControlMessageOwned::Ipv6HopLimit(ttl) => u8::try_from(*ttl).ok(),
        _ => None,
    })?;
    messages.iter().find_map(|message| {
        let ControlMessageOwned::Unknown(unknown) = message else { return None };
        let (level, kind) = (unknown.cmsg_header.cmsg_level, unknown.cmsg_header.cmsg_type);
        let options = match (level, kind) {
            (libc::IPPROTO_IP, libc::IP_RECVOPTS) => IpOptions::V4(&unknown.data_bytes),
            (libc::IPPROTO_IPV6, libc::IPV6_HOPOPTS) => IpOptions::V6(&unknown.data_bytes),
            _ => return None,
        };
        quick_start::parse_options(options, ttl).ok().flatten()
    })
}

/// An address that a datagram is to leave from, as the kernel takes it.
pub(super) enum LocalAddress {
    V4(libc::in_pktinfo),
    V6(libc::in6_pktinfo),
}

impl LocalAddress {
    /// For a socket of that family.
    pub(super) fn new(local: IpAddr, v6: bool) -> Self {
        match local {
            IpAddr::V4(a) if !v6 => LocalAddress::V4(libc::in_pktinfo {
                ipi_ifindex: 0,
                ipi_spec_dst: libc::in_addr { s_addr: u32::from(a).to_be() },
                ipi_addr: libc::in_addr { s_addr: 0 },
            }),
            local => {
                let a = match local {
                    IpAddr::V4(a) => a.to_ipv6_mapped(),
                    IpAddr::V6(a) => a,
                };
                let ipi6_addr = libc::in6_addr { s6_addr: a.octets() };
                LocalAddress::V6(libc::in6_pktinfo { ipi6_addr, ipi6_ifindex: 0 })
            }
        }
    }

    /// The control message that says so.
    pub(super) fn message(&self) -> ControlMessage<'_> {
        match self {
            LocalAddress::V4(info) => ControlMessage::Ipv4PacketInfo(info),
            LocalAddress::V6(info) => ControlMessage::Ipv6PacketInfo(info),
        }
    }
}

/// A peer's address.
pub(super) fn socket_address(storage: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = storage.as_sockaddr_in().map(|a| SocketAddr::V4((*a).into()));
    v4.or_else(|| storage.as_sockaddr_in6().map(|a| SocketAddr::V6((*a).into())))
}

/// As a dual-stack socket wants it.
pub(super) fn mapped(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V4(a) => SocketAddr::from((a.ip().to_ipv6_mapped(), a.port())),
        v6 => v6,
    }
}
