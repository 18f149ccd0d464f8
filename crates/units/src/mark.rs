//! The kinds and markings of packets: words that control, path and the wire share.

use core::fmt;

/// The contents of a packet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Kind {
    /// Media.
    #[default]
    Data,
    /// A `dummy` packet: probes for room, carries nothing [rcs §III-A].
    Dummy,
}

/// The transport that a packet of a flow takes: all but rate probing have only the first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Via {
    /// Datagrams.
    #[default]
    Udp,
    /// The flow's TCP connection, which probes for the rate that is fair [tpba §4].
    Tcp,
}

/// The two priorities of the papers' routers: in a full queue, low goes first [rcs §III-A].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Class {
    /// Ordinary traffic.
    #[default]
    Normal,
    /// Lower effort: dummy packets and their ACKs.
    Low,
}

impl Class {
    /// How the class is marked on the wire: default forwarding, or LE [RFC 8622].
    pub const fn dscp(self) -> Dscp {
        match self {
            Class::Normal => Dscp::DEFAULT,
            Class::Low => Dscp::LE,
        }
    }
}

/// A differentiated-services code point: six bits [RFC 2474].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Dscp(u8);

impl Dscp {
    /// Default forwarding, 0.
    pub const DEFAULT: Dscp = Dscp(0);
    /// Lower effort, 000001 [RFC 8622 §2].
    pub const LE: Dscp = Dscp(1);
    /// Class selector 1, 001000: the older mark for lower effort, accepted on input
    /// [RFC 8622 §4].
    pub const CS1: Dscp = Dscp(8);

    /// The low six bits of `value`.
    pub const fn new(value: u8) -> Self {
        Dscp(value & 0x3f)
    }

    /// From a traffic-class (TOS) byte, whose low two bits are ECN.
    pub const fn from_tos(tos: u8) -> Self {
        Dscp(tos >> 2)
    }

    /// The code point, 0 to 63.
    pub const fn get(self) -> u8 {
        self.0
    }

    /// The traffic-class (TOS) byte with this code point and ECN field.
    pub const fn tos(self, ecn: Ecn) -> u8 {
        (self.0 << 2) | ecn as u8
    }

    /// The class a two-priority router puts this code point into.
    pub const fn class(self) -> Class {
        match self {
            Dscp::LE | Dscp::CS1 => Class::Low,
            _ => Class::Normal,
        }
    }
}

impl fmt::Debug for Dscp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DSCP {}", self.0)
    }
}

/// The two ECN bits [RFC 3168 §5].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(u8)]
pub enum Ecn {
    /// Not ECN-capable, 00.
    #[default]
    NotEct = 0,
    /// ECT(1), 01.
    Ect1 = 1,
    /// ECT(0), 10.
    Ect0 = 2,
    /// Congestion experienced, 11.
    Ce = 3,
}

impl Ecn {
    /// From the low two bits of a traffic-class (TOS) byte, or of an RFC 8888 metric.
    pub const fn from_bits(bits: u8) -> Self {
        match bits & 3 {
            0 => Ecn::NotEct,
            1 => Ecn::Ect1,
            2 => Ecn::Ect0,
            _ => Ecn::Ce,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lower_effort_is_tos_byte_4() {
        assert_eq!(Dscp::LE.tos(Ecn::NotEct), 0x04);
        assert_eq!(Dscp::from_tos(0x04).class(), Class::Low);
        assert_eq!(Dscp::from_tos(0x07), Dscp::LE);
    }

    #[test]
    fn ecn_bits_round_trip() {
        for bits in 0..4 {
            assert_eq!(Ecn::from_bits(bits) as u8, bits);
        }
    }
}
