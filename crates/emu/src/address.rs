//! Who is who between the two namespaces: each flow has one address on either side, and an address tells
//! its flow.
//!
//! ```text
//!              sender of flow i            receiver of flow i         i + 1 = x * 256 + y
//!   IPv4       10.77.x.y                   10.77.(128 + x).y
//!   IPv6       fd77::1:0:(i + 1)           fd77::2:0:(i + 1)
//! ```
//!
//! Network n, for an emulator inside another, has 10.(77 + n) and fd77:n:: instead.

#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

use fairpace_sim::FlowId;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// One end of the path: the namespace of the flows' senders, or that of their receivers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Side {
    /// Where flows begin.
    Senders = 0,
    /// Where they end.
    Receivers = 1,
}

impl Side {
    /// Both.
    pub const BOTH: [Side; 2] = [Side::Senders, Side::Receivers];

    /// The opposite end.
    pub const fn far(self) -> Side {
        match self {
            Side::Senders => Side::Receivers,
            Side::Receivers => Side::Senders,
        }
    }

    /// Its name in messages.
    pub const fn name(self) -> &'static str {
        match self {
            Side::Senders => "senders",
            Side::Receivers => "receivers",
        }
    }
}

/// The two addresses of a flow, of one family.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FlowAddresses {
    /// In the namespace of the senders.
    pub sender: IpAddr,
    /// In the namespace of the receivers.
    pub receiver: IpAddr,
}

impl FlowAddresses {
    /// The one at that side.
    pub const fn at(&self, side: Side) -> IpAddr {
        match side {
            Side::Senders => self.sender,
            Side::Receivers => self.receiver,
        }
    }
}

/// Flows that have an address of their own: x is below 128.
pub(crate) const MAX_FLOWS: usize = 128 * 256 - 1;
/// Networks there are: 10.77 to 10.199.
pub(crate) const MAX_NETWORK: u8 = 122;
/// The bits that all addresses of a network share.
pub(crate) const PREFIX_V4: u8 = 16;
/// As above.
pub(crate) const PREFIX_V6: u8 = 64;

/// The addresses of one emulator.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AddressPlan {
    network: u8,
    flows: FlowId,
}

impl AddressPlan {
    /// For so many flows, below [`MAX_FLOWS`]; `network` is at most [`MAX_NETWORK`].
    pub(crate) fn new(network: u8, flows: usize) -> AddressPlan {
        AddressPlan { network: network.min(MAX_NETWORK), flows: flows.min(MAX_FLOWS) as FlowId }
    }

    pub(crate) fn v4(&self, flow: FlowId) -> FlowAddresses {
        let [.., x, y] = (flow + 1).to_be_bytes();
        let at = |x| IpAddr::V4(Ipv4Addr::new(10, 77 + self.network, x, y));
        FlowAddresses { sender: at(x), receiver: at(x | 0x80) }
    }

    pub(crate) fn v6(&self, flow: FlowId) -> FlowAddresses {
        let at = |side| {
            let network = u16::from(self.network);
            IpAddr::V6(Ipv6Addr::new(0xfd77, network, 0, 0, 0, side, 0, (flow + 1) as u16))
        };
        FlowAddresses { sender: at(1), receiver: at(2) }
    }

    /// The flow of a packet that was read at `side`.
    pub(crate) fn flow_of(&self, side: Side, source: IpAddr, destination: IpAddr) -> Option<FlowId> {
        let (sender, receiver) = match side {
            Side::Senders => (source, destination),
            Side::Receivers => (destination, source),
        };
        let number = match sender {
            IpAddr::V4(a) => u32::from(a) & 0x7fff,
            IpAddr::V6(a) => u32::from(a.segments()[7]),
        };
        let flow = number.checked_sub(1).filter(|flow| *flow < self.flows)?;
        let addresses = if sender.is_ipv4() { self.v4(flow) } else { self.v6(flow) };
        (addresses == FlowAddresses { sender, receiver }).then_some(flow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_pair_is_that_of_its_flow_and_of_no_other() {
        let plan = AddressPlan::new(1, 600);
        let first = FlowAddresses { sender: [10, 78, 0, 1].into(), receiver: [10, 78, 128, 1].into() };
        assert_eq!(plan.v4(0), first);
        assert_eq!(plan.v6(599).receiver, "fd77:1::2:0:258".parse::<IpAddr>().unwrap());
        for flow in [0, 254, 255, 256, 599] {
            for FlowAddresses { sender, receiver } in [plan.v4(flow), plan.v6(flow)] {
                assert_eq!(plan.flow_of(Side::Senders, sender, receiver), Some(flow));
                assert_eq!(plan.flow_of(Side::Receivers, receiver, sender), Some(flow));
                assert_eq!(plan.flow_of(Side::Receivers, sender, receiver), None, "the wrong side");
            }
        }
        for other in [plan.v4(1).receiver, plan.v6(0).receiver, "192.0.2.1".parse().unwrap()] {
            assert_eq!(plan.flow_of(Side::Senders, plan.v4(0).sender, other), None);
        }
        for unknown in [plan.v4(600), AddressPlan::new(0, 600).v4(0)] {
            assert_eq!(plan.flow_of(Side::Senders, unknown.sender, unknown.receiver), None);
        }
    }
}
