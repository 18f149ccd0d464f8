//! IPv4 or IPv6.

use fairpace_net::Family;

/// The version of IP that a run's packets use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ip {
    /// Version 4.
    #[default]
    V4,
    /// Version 6, whose header is 20 B longer: packets are as long as the scenario says, and carry less.
    V6,
}

impl Ip {
    /// Bytes of the headers of a UDP datagram.
    pub(crate) fn udp_headers(self) -> u64 {
        if self == Ip::V4 { 28 } else { 48 }
    }

    /// Bytes of the headers of a TCP segment without options.
    pub(crate) fn tcp_headers(self) -> u64 {
        if self == Ip::V4 { 40 } else { 60 }
    }

    /// The sockets' family.
    pub(crate) fn family(self) -> Family {
        if self == Ip::V4 { Family::V4 } else { Family::V6 }
    }
}
