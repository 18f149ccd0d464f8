//! The few fields of an IP header that an emulated path reads and writes: addresses, DSCP and ECN.
//!
//! Source: RFC 791 §3.1, RFC 8200 §3, RFC 3168 §5; checksum: RFC 1071, and RFC 1624 equation 3 for a change.
//! (The Quick-Start option is [`fairpace_rtp::quick_start`]'s.)
//!
//! Own code instead of a general parser: what comes is passed on whatever it carries, so that everything above
//! these fields, valid or not, is none of the path's business. [`Header::carries`] looks further, for what a packet
//! is counted as.

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

use fairpace_rtp::dummy::PAYLOAD_TYPE;
use fairpace_sim::Carries;
use fairpace_units::{Class, Dscp, Ecn};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The facts about a packet that the path needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Header {
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    pub(crate) dscp: Dscp,
    pub(crate) ecn: Ecn,
    /// There may be an option for routers.
    pub(crate) options: bool,
    protocol: u8,
    /// Length of the IP header.
    length: usize,
}

const TCP: u8 = 6;
const UDP: u8 = 17;

impl Header {
    /// The header of the packet that these bytes are; `None` if it is not one.
    pub(crate) fn parse(packet: &[u8]) -> Option<Header> {
        let [first, second] = *packet.first_chunk::<2>()?;
        match first >> 4 {
            4 => {
                let header = packet.first_chunk::<20>()?;
                let length = usize::from(first & 0xf) << 2;
                (20..=packet.len()).contains(&length).then_some(())?;
                Some(Header {
                    source: address_v4(header, 12)?,
                    destination: address_v4(header, 16)?,
                    dscp: Dscp::from_tos(second),
                    ecn: Ecn::from_bits(second),
                    options: length > 20,
                    protocol: header[9],
                    length,
                })
            }
            6 => {
                let header = packet.first_chunk::<40>()?;
                let class = first << 4 | second >> 4;
                Some(Header {
                    source: address_v6(header, 8)?,
                    destination: address_v6(header, 24)?,
                    dscp: Dscp::from_tos(class),
                    ecn: Ecn::from_bits(class),
                    // A header of hop-by-hop options is the first if there is one [RFC 8200 §4.1].
                    options: header[6] == 0,
                    protocol: header[6],
                    length: 40,
                })
            }
            _ => None,
        }
    }

    /// The kind of traffic that the packet counts as: a TCP segment without data, RTCP [RFC 5761 §4] and whatever is
    /// neither TCP nor UDP is control, RTP of the low class and the dummies' payload type a dummy, and the rest data.
    pub(crate) fn carries(&self, packet: &[u8]) -> Carries {
        let above = packet.get(self.length..).unwrap_or_default();
        match (self.protocol, above) {
            (TCP, [_, _, _, _, _, _, _, _, _, _, _, _, offset, ..]) => {
                if above.len() > usize::from(offset >> 4) << 2 {
                    Carries::Data
                } else {
                    Carries::Control
                }
            }
            (UDP, [_, _, _, _, _, _, _, _, first, second, ..]) if first >> 6 == 2 && (192..224).contains(second) => {
                Carries::Control
            }
            (UDP, [_, _, _, _, _, _, _, _, first, second, ..])
                if self.dscp.class() == Class::Low && first >> 6 == 2 && second & 0x7f == PAYLOAD_TYPE =>
            {
                Carries::Dummy
            }
            (UDP, _) => Carries::Data,
            _ => Carries::Control,
        }
    }

    /// Bytes in front of what a program sends: IP's header with its options and extensions, TCP's, or 8 bytes of another protocol's, and
    /// the fixed 12 bytes of RTP or RTCP [RFC 3550 §5.1, §6.4.1]. A fragment behind the first has IP's alone.
    pub(crate) fn headers(&self, packet: &[u8]) -> usize {
        const V6_EXTENSIONS: [u8; 3] = [0, 43, 60];
        const V6_FRAGMENT: u8 = 44;
        let byte = |at: usize| packet.get(at).copied().unwrap_or_default();
        let (mut at, mut protocol) = (self.length, self.protocol);
        let mut offset = 0;
        if self.source.is_ipv4() {
            offset = u16::from_be_bytes([byte(6), byte(7)]) & 0x1fff;
        } else {
            while V6_EXTENSIONS.contains(&protocol) && at < packet.len() {
                let units = usize::from(byte(at.saturating_add(1))).saturating_add(1);
                (protocol, at) = (byte(at), at.saturating_add(units.saturating_mul(8)));
            }
            if protocol == V6_FRAGMENT {
                offset = u16::from_be_bytes([byte(at.saturating_add(2)), byte(at.saturating_add(3))]) >> 3;
                (protocol, at) = (byte(at), at.saturating_add(8));
            }
        }
        let above = match protocol {
            _ if offset > 0 => 0,
            TCP => (usize::from(byte(at.saturating_add(12)) >> 4) << 2).max(20),
            UDP if byte(at.saturating_add(8)) >> 6 == 2 => 8 + 12,
            _ => 8,
        };
        at.saturating_add(above).min(packet.len())
    }

    /// To all, or to a group.
    pub(crate) fn is_multicast(&self) -> bool {
        match self.destination {
            IpAddr::V4(a) => a.is_multicast() || a.is_broadcast(),
            IpAddr::V6(a) => a.is_multicast(),
        }
    }
}

fn address_v4(header: &[u8], at: usize) -> Option<IpAddr> {
    Some(Ipv4Addr::from(*header.get(at..)?.first_chunk::<4>()?).into())
}

fn address_v6(header: &[u8], at: usize) -> Option<IpAddr> {
    Some(Ipv6Addr::from(*header.get(at..)?.first_chunk::<16>()?).into())
}

/// Writes the ECN field of a packet that [`Header::parse`] has read, and the checksum that goes with it.
pub(crate) fn set_ecn(packet: &mut [u8], ecn: Ecn) {
    let Some([first, second, ..]) = packet.first_chunk_mut::<12>() else { return };
    if *first >> 4 == 6 {
        *second = *second & 0b1100_1111 | (ecn as u8) << 4;
        return;
    }
    let before = [*first, *second];
    *second = *second & !3 | ecn as u8;
    let after = [*first, *second];
    if let Some(checksum) = packet.get_mut(10..).and_then(<[u8]>::first_chunk_mut::<2>) {
        // HC' = ~(~HC + ~m + m') [RFC 1624 eq. 3]
        let sum = sum(&[!checksum[0], !checksum[1], !before[0], !before[1], after[0], after[1]]);
        *checksum = (!fold(sum)).to_be_bytes();
    }
}

/// The ones' complement sum of 16-bit words; an odd byte at the end counts as the first of two.
pub(crate) fn sum(bytes: &[u8]) -> u32 {
    let (words, odd) = bytes.as_chunks::<2>();
    let words = words.iter().map(|word| u32::from(u16::from_be_bytes(*word)));
    words.chain(odd.first().map(|byte| u32::from(*byte) << 8)).sum()
}

/// Adds the carries back in.
pub(crate) fn fold(sum: u32) -> u16 {
    // Neither sum has more than 17 bits.
    let once = (sum & 0xffff).wrapping_add(sum >> 16);
    (once & 0xffff).wrapping_add(once >> 16) as u16
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use fairpace_rtp::quick_start::ipv4_checksum_holds;
    use proptest::prelude::*;

    /// An IPv4 header without options, with its checksum, and `payload` behind it.
    pub(crate) fn v4(tos: u8, protocol: u8, source: [u8; 4], destination: [u8; 4], payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x45, tos];
        packet.extend((20 + payload.len() as u16).to_be_bytes());
        packet.extend([0, 7, 0x40, 0, 64, protocol, 0, 0]);
        packet.extend(source);
        packet.extend(destination);
        let checksum = !fold(sum(&packet));
        packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        packet.extend(payload);
        packet
    }

    #[test]
    fn both_families_say_who_and_how_marked() {
        let packet = v4(0x06, 17, [10, 77, 0, 1], [10, 77, 128, 1], b"x");
        let header = Header::parse(&packet).unwrap();
        assert_eq!(header.source, IpAddr::from([10, 77, 0, 1]));
        assert_eq!(header.destination, IpAddr::from([10, 77, 128, 1]));
        assert_eq!((header.dscp, header.ecn, header.options), (Dscp::LE, Ecn::Ect0, false));
        // Version 6, traffic class 0x07, flow label 0xabcde, next header TCP.
        let mut six = vec![0x60, 0x7a, 0xbc, 0xde, 0, 0, 6, 64];
        six.extend("fd77::1:0:1".parse::<Ipv6Addr>().unwrap().octets());
        six.extend("ff02::2".parse::<Ipv6Addr>().unwrap().octets());
        let header = Header::parse(&six).unwrap();
        assert_eq!((header.dscp, header.ecn, header.options), (Dscp::LE, Ecn::Ce, false));
        assert!(header.is_multicast());
        set_ecn(&mut six, Ecn::Ect1);
        assert_eq!(six[..4], [0x60, 0x5a, 0xbc, 0xde]);
    }

    #[test]
    fn what_a_packet_carries_decides_what_it_is_counted_as() {
        let carries = |tos, protocol, payload: &[u8]| {
            let packet = v4(tos, protocol, [10, 77, 0, 1], [10, 77, 128, 1], payload);
            Header::parse(&packet).unwrap().carries(&packet)
        };
        let mut segment = [0; 33];
        segment[12] = 8 << 4; // 12 bytes of options
        assert_eq!(carries(0, TCP, &segment), Carries::Data);
        assert_eq!(carries(0, TCP, &segment[..32]), Carries::Control);
        let rtp = [0, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x80 | PAYLOAD_TYPE];
        let rtcp = [0, 0, 0, 0, 0, 0, 0, 0, 0x81, 0xc9];
        assert_eq!(carries(0, UDP, &rtp), Carries::Data);
        assert_eq!(carries(0x04, UDP, &rtp), Carries::Dummy);
        assert_eq!(carries(0x04, UDP, &rtcp), Carries::Control);
        assert_eq!(carries(0x04, UDP, &[0x5a; 20]), Carries::Data, "background traffic");
        assert_eq!(carries(0, 1, &rtp), Carries::Control);
    }

    proptest! {
        /// Whatever a program sends comes here: no input may stop the loop, and nothing beyond the two bits
        /// and the checksum may change.
        #[test]
        fn any_bytes_are_read_or_refused_and_only_the_mark_changes(
            bytes in prop::collection::vec(any::<u8>(), 0..80), first in 0_u8..=255, bits in 0_u8..4,
        ) {
            let mut packet = bytes;
            if let Some(byte) = packet.first_mut() {
                *byte = if first & 3 == 0 { first } else { 0x45 | first & 0x20 };
            }
            if let Some(header) = Header::parse(&packet) {
                let mut marked = packet.clone();
                set_ecn(&mut marked, Ecn::from_bits(bits));
                let after = Header::parse(&marked).unwrap();
                header.carries(&marked);
                prop_assert!(header.headers(&marked) <= marked.len());
                prop_assert_eq!(after, Header { ecn: Ecn::from_bits(bits), ..header });
                let differ: Vec<_> = (0..packet.len()).filter(|i| packet[*i] != marked[*i]).collect();
                prop_assert!(differ.iter().all(|i| [1, 10, 11].contains(i)), "{:?}", differ);
            }
        }

        #[test]
        fn a_right_checksum_stays_right(
            tos in any::<u8>(), source in any::<[u8; 4]>(), destination in any::<[u8; 4]>(), bits in 0_u8..4,
        ) {
            let mut packet = v4(tos, 6, source, destination, &[]);
            prop_assert!(ipv4_checksum_holds(&packet));
            set_ecn(&mut packet, Ecn::from_bits(bits));
            prop_assert!(ipv4_checksum_holds(&packet));
        }
    }
}
