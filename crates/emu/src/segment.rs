//! Super-packets: with segmentation offload the kernel hands out and takes up to 64 KiB of a connection as one
//! packet. The path moves segments: a super-packet is cut when it comes, each segment queues, is lost and is
//! timed for itself, and those that leave together are joined again.
//!
//! ```text
//!   read:   [vnet header | IP TCP | payload of n segments]
//!   path:   [IP TCP | 1] [IP TCP | 2] ... [IP TCP | n]      each complete
//!   write:  [vnet header | IP TCP | payload of segments i to j]
//! ```
//!
//! Source: Linux, `include/uapi/linux/virtio_net.h` (`struct virtio_net_hdr`), `Documentation/networking/
//! segmentation-offloads.rst`; what differs from segment to segment: `net/ipv4/tcp_offload.c`.
//!
//! A checksum that the kernel left to the device holds the sum of the pseudo-header; it stays so on the
//! way, and the kernel at the other end takes it as right.

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

use crate::ip::{fold, sum};

/// Size of the header before each packet.
pub(crate) const VNET: usize = 10;

const NEEDS_CSUM: u8 = 1;
const GSO_NONE: u8 = 0;
const GSO_TCPV4: u8 = 1;
const GSO_TCPV6: u8 = 4;
const GSO_UDP: u8 = 5;
const GSO_ECN: u8 = 0x80;

// TCP's flags [RFC 9293 §3.1].
const FIN: u8 = 0x01;
const PSH: u8 = 0x08;
const CWR: u8 = 0x80;

/// The header before a packet; the default means a packet as it is on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Vnet {
    flags: u8,
    gso: u8,
    header: u16,
    gso_size: u16,
    csum_start: u16,
    csum_offset: u16,
}

impl Vnet {
    pub(crate) fn parse(bytes: &[u8; VNET]) -> Vnet {
        let [flags, gso, a, b, c, d, e, f, g, h] = *bytes;
        let word = |x, y| u16::from_ne_bytes([x, y]);
        Vnet { flags, gso, header: word(a, b), gso_size: word(c, d), csum_start: word(e, f), csum_offset: word(g, h) }
    }

    pub(crate) fn bytes(&self) -> [u8; VNET] {
        let words = [self.header, self.gso_size, self.csum_start, self.csum_offset].map(u16::to_ne_bytes);
        let [[a, b], [c, d], [e, f], [g, h]] = words;
        [self.flags, self.gso, a, b, c, d, e, f, g, h]
    }

    /// Several segments in one.
    pub(crate) fn is_super(&self) -> bool {
        self.gso != GSO_NONE
    }

    /// How to write a packet on its own.
    fn single(&self) -> Vnet {
        // Whether the kernel has checked a checksum already is its own business.
        let flags = self.flags & NEEDS_CSUM;
        let (csum_start, csum_offset) = if flags == 0 { (0, 0) } else { (self.csum_start, self.csum_offset) };
        Vnet { flags, csum_start, csum_offset, ..Vnet::default() }
    }
}

/// A segment's part in its super-packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Piece {
    /// The number of the super-packet.
    of: u64,
    index: u16,
    /// Length of the headers.
    header: u16,
    gso: u8,
    gso_size: u16,
}

/// How a packet is written that is kept for itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Framing {
    pub(crate) vnet: Vnet,
    pub(crate) piece: Option<Piece>,
}

impl Framing {
    /// Of a packet that is no super-packet.
    pub(crate) fn single(vnet: &Vnet) -> Framing {
        Framing { vnet: vnet.single(), piece: None }
    }

    /// Whether the segment follows `before` in the same super-packet.
    pub(crate) fn follows(&self, before: &Framing) -> bool {
        match (&self.piece, &before.piece) {
            (Some(this), Some(before)) => this.of == before.of && Some(this.index) == before.index.checked_add(1),
            _ => false,
        }
    }

    /// Length of the headers of a segment.
    pub(crate) fn header(&self) -> usize {
        self.piece.map_or(0, |piece| usize::from(piece.header))
    }
}

/// Cuts super-packets.
#[derive(Debug, Default)]
pub(crate) struct Cutter {
    count: u64,
    header: Vec<u8>,
}

/// The fault of a super-packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Malformed;

impl Cutter {
    /// Gives each segment of `packet` to `each`, in order: its headers, its payload, and how to write it.
    pub(crate) fn cut(
        &mut self,
        vnet: &Vnet,
        packet: &[u8],
        mut each: impl FnMut(&[u8], &[u8], Framing),
    ) -> Result<(), Malformed> {
        let l4 = usize::from(vnet.csum_start);
        let is_tcp = matches!(vnet.gso & !GSO_ECN, GSO_TCPV4 | GSO_TCPV6);
        if !(is_tcp || vnet.gso == GSO_UDP) || vnet.flags & NEEDS_CSUM == 0 || vnet.gso_size == 0 || l4 < 20 {
            return Err(Malformed);
        }
        let transport = packet.get(l4..).ok_or(Malformed)?;
        let transport_length = match (is_tcp, transport) {
            (true, [_, _, _, _, _, _, _, _, _, _, _, _, offset, ..]) => usize::from(offset >> 4).max(5) << 2,
            (true, _) => return Err(Malformed),
            (false, _) => 8,
        };
        let header = l4.saturating_add(transport_length);
        let length = u16::try_from(header).map_err(|_| Malformed)?;
        let (head, payload) = packet.split_at_checked(header).ok_or(Malformed)?;
        self.count = self.count.wrapping_add(1);
        let size = usize::from(vnet.gso_size);
        let last = payload.len().div_ceil(size).saturating_sub(1);
        for (i, part) in payload.chunks(size).enumerate() {
            self.header.clear();
            self.header.extend_from_slice(head);
            let index = u16::try_from(i).map_err(|_| Malformed)?;
            let fields = Fields { l4, is_tcp, payload: part.len(), further: index, skipped: i.saturating_mul(size) };
            fields.write(&mut self.header)?;
            if is_tcp && let Some(flags) = self.header.get_mut(l4.saturating_add(13)) {
                *flags &= !(if i == 0 { 0 } else { CWR } | if i == last { 0 } else { FIN | PSH });
            }
            let piece = Piece { of: self.count, index, header: length, gso: vnet.gso, gso_size: vnet.gso_size };
            each(&self.header, part, Framing { vnet: vnet.single(), piece: Some(piece) });
        }
        Ok(())
    }
}

/// Writes into `header`, the first segment's, what the headers of several segments in a row are, of which the
/// last's is `last`, with so many bytes of payload in all; gives the header to write before them.
pub(crate) fn join(header: &mut [u8], framing: &Framing, last: &[u8], payload: usize) -> Result<Vnet, Malformed> {
    let piece = framing.piece.ok_or(Malformed)?;
    let l4 = usize::from(framing.vnet.csum_start);
    let is_tcp = piece.gso != GSO_UDP;
    Fields { l4, is_tcp, payload, further: 0, skipped: 0 }.write(header)?;
    let mut gso = piece.gso & !GSO_ECN;
    if is_tcp && let (Some(flags), Some(end)) = (header.get_mut(l4.saturating_add(13)), last.get(l4.saturating_add(13)))
    {
        *flags |= end & (FIN | PSH);
        if *flags & CWR != 0 {
            gso |= piece.gso & GSO_ECN;
        }
    }
    Ok(Vnet { gso, gso_size: piece.gso_size, header: piece.header, ..framing.vnet })
}

/// The fields that differ between headers of one super-packet.
struct Fields {
    l4: usize,
    is_tcp: bool,
    payload: usize,
    /// Segments before this one in it.
    further: u16,
    /// Their payload.
    skipped: usize,
}

impl Fields {
    /// Lengths, identification, sequence number and checksums.
    fn write(&self, header: &mut [u8]) -> Result<(), Malformed> {
        let total = header.len().saturating_add(self.payload);
        let (network, transport) = header.split_at_mut_checked(self.l4).ok_or(Malformed)?;
        let segment = u16::try_from(transport.len().saturating_add(self.payload)).map_err(|_| Malformed)?;
        let addresses = match network.first().map(|byte| byte >> 4) {
            Some(4) => {
                let length = u16::try_from(total).map_err(|_| Malformed)?;
                put(network, 2, length.to_be_bytes())?;
                let id = u16::from_be_bytes(*network.get(4..).and_then(|b| b.first_chunk()).ok_or(Malformed)?);
                put(network, 4, id.wrapping_add(self.further).to_be_bytes())?;
                put(network, 10, [0, 0])?;
                let checksum = !fold(sum(network));
                put(network, 10, checksum.to_be_bytes())?;
                12..20
            }
            Some(6) => {
                let length = total.checked_sub(40).and_then(|l| u16::try_from(l).ok()).ok_or(Malformed)?;
                put(network, 4, length.to_be_bytes())?;
                8..40
            }
            _ => return Err(Malformed),
        };
        let addresses = sum(network.get(addresses).ok_or(Malformed)?);
        let protocol = if self.is_tcp { 6 } else { 17 };
        let pseudo = addresses.saturating_add(protocol).saturating_add(segment.into());
        let pseudo = fold(pseudo).to_be_bytes();
        if self.is_tcp {
            let at = transport.get(4..).and_then(|b| b.first_chunk()).ok_or(Malformed)?;
            let seq = u32::from_be_bytes(*at).wrapping_add(self.skipped as u32);
            put(transport, 4, seq.to_be_bytes())?;
            put(transport, 16, pseudo)
        } else {
            put(transport, 4, segment.to_be_bytes())?;
            put(transport, 6, pseudo)
        }
    }
}

fn put<const N: usize>(bytes: &mut [u8], at: usize, value: [u8; N]) -> Result<(), Malformed> {
    *bytes.get_mut(at..).and_then(|b| b.first_chunk_mut::<N>()).ok_or(Malformed)? = value;
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::ip::tests::v4;
    use fairpace_rtp::quick_start::ipv4_checksum_holds;
    use proptest::prelude::*;

    const TCP_HEADER: [u8; 32] = {
        let mut header = [0; 32];
        (header[12], header[13]) = (8 << 4, CWR | 0x10 | PSH | FIN);
        header[7] = 100; // sequence number
        header
    };

    /// A super-packet of TCP with `payload` bytes, in segments of `size`, as the kernel hands it out.
    pub(crate) fn super_packet(payload: usize, size: u16) -> (Vec<u8>, Vec<u8>) {
        let data: Vec<u8> = (0..payload).map(|i| (i * 7 % 251) as u8).collect();
        let packet = v4(0x02, 6, [10, 77, 0, 1], [10, 77, 128, 1], &[&TCP_HEADER[..], &data].concat());
        let vnet = Vnet {
            flags: NEEDS_CSUM,
            gso: GSO_TCPV4 | GSO_ECN,
            header: 52,
            gso_size: size,
            csum_start: 20,
            csum_offset: 16,
        };
        (vnet.bytes().to_vec(), packet)
    }

    fn cut(vnet: &[u8], packet: &[u8]) -> Option<Vec<(Vec<u8>, Framing)>> {
        let vnet = Vnet::parse(vnet.first_chunk()?);
        let mut segments = Vec::new();
        let all = Cutter::default().cut(&vnet, packet, |head, payload, framing| {
            segments.push(([head, payload].concat(), framing));
        });
        all.ok().map(|()| segments)
    }

    /// The checksum of the transport header once the device has done its part: it sums up what is there, the sum of
    /// the pseudo-header included, from `csum_start` on.
    fn transport_checksum_holds(segment: &[u8]) -> bool {
        let done = !fold(u32::from(fold(sum(&segment[20..]))));
        let mut finished = segment.to_vec();
        finished[36..38].copy_from_slice(&done.to_be_bytes());
        let length = (segment.len() - 20) as u32;
        fold(u32::from(fold(sum(&finished[20..]))) + u32::from(fold(sum(&finished[12..20]) + 6 + length))) == 0xffff
    }

    #[test]
    fn each_segment_is_a_packet_of_its_own() {
        let (vnet, packet) = super_packet(2_500, 1_000);
        let segments = cut(&vnet, &packet).unwrap();
        assert_eq!(segments.iter().map(|(s, _)| s.len()).collect::<Vec<_>>(), [1_052, 1_052, 552]);
        for (i, (segment, framing)) in segments.iter().enumerate() {
            assert!(ipv4_checksum_holds(segment) && transport_checksum_holds(segment), "{i}");
            assert_eq!(u16::from_be_bytes([segment[2], segment[3]]) as usize, segment.len());
            assert_eq!(segment[5], 7 + i as u8, "identification");
            let seq = u32::from_be_bytes(*segment[24..].first_chunk().unwrap());
            assert_eq!(seq, 100 + 1_000 * i as u32);
            // The window was reduced once; the stream ends once.
            assert_eq!(segment[33] & (CWR | FIN | PSH), [CWR, 0, FIN | PSH][i]);
            assert_eq!(framing.vnet, Vnet { flags: NEEDS_CSUM, csum_start: 20, csum_offset: 16, ..Vnet::default() });
        }
        assert!(segments[1].1.follows(&segments[0].1) && !segments[2].1.follows(&segments[0].1));
        assert_eq!(segments.iter().flat_map(|(s, _)| s[52..].to_vec()).collect::<Vec<_>>(), packet[52..]);
    }

    #[test]
    fn udp_segments_have_their_own_length() {
        let datagrams = v4(0, 17, [10, 77, 0, 1], [10, 77, 128, 1], &[[0; 8].as_slice(), &[9; 250]].concat());
        let vnet = Vnet { flags: NEEDS_CSUM, gso: GSO_UDP, gso_size: 100, csum_start: 20, csum_offset: 6, header: 28 };
        let segments = cut(&vnet.bytes(), &datagrams).unwrap();
        let lengths: Vec<_> = segments.iter().map(|(s, _)| u16::from_be_bytes([s[24], s[25]])).collect();
        assert_eq!(lengths, [108, 108, 58]);
        let mut head = segments[0].0[..28].to_vec();
        let vnet = join(&mut head, &segments[0].1, &segments[1].0[..28], 200).unwrap();
        assert_eq!((vnet.gso, vnet.gso_size, u16::from_be_bytes([head[24], head[25]])), (GSO_UDP, 100, 208));
    }

    proptest! {
        /// Cut and joined again, a super-packet is what it was, but for the sum of the pseudo-header, which the
        /// kernel need not have written.
        #[test]
        fn cutting_and_joining_changes_nothing(payload in 1_usize..20_000, size in 100_u16..2_000) {
            let (vnet, mut packet) = super_packet(payload, size);
            let segments = cut(&vnet, &packet).unwrap();
            prop_assert_eq!(segments.len(), payload.div_ceil(usize::from(size)));
            let (first, framing) = &segments[0];
            let mut head = first[..framing.header()].to_vec();
            let last = &segments[segments.len() - 1].0[..52];
            let joined = join(&mut head, framing, last, payload).unwrap();
            prop_assert_eq!(joined.bytes().to_vec(), vnet);
            packet[36..38].copy_from_slice(&head[36..38]);
            prop_assert_eq!(&head, &packet[..52]);
        }

        /// A program or the kernel may hand out anything.
        #[test]
        fn any_super_packet_is_cut_or_refused(
            vnet in any::<[u8; VNET]>(), mut packet in prop::collection::vec(any::<u8>(), 0..300), start in 0_u8..90,
            kind in 0_usize..3, size in 1_u16..400,
        ) {
            let mut vnet = Vnet::parse(&vnet);
            vnet = Vnet { flags: NEEDS_CSUM, gso: [GSO_TCPV4, GSO_TCPV6, GSO_UDP][kind], csum_start: start.into(), gso_size: size, ..vnet };
            if let Some(first) = packet.first_mut() {
                *first = if *first & 1 == 0 { 0x45 } else { 0x60 };
            }
            if let Some(segments) = cut(&vnet.bytes(), &packet) {
                for (segment, framing) in &segments {
                    prop_assert!(framing.header() <= segment.len() && segment.len() <= framing.header() + usize::from(size));
                    let mut head = segment[..framing.header()].to_vec();
                    let payload = segment.len() - head.len();
                    prop_assert!(join(&mut head, framing, segment, payload).is_ok());
                }
            }
        }
    }
}
