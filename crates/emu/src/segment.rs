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

/// What the header before a packet says; the default is a packet as it is on the wire.
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
    /// Which super-packet.
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
            (Some(this), Some(before)) => this.of == before.of && this.index == before.index + 1,
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

/// What is wrong with a super-packet.
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
            (true, [_, _, _, _, _, _, _, _, _, _, _, _, offset, ..]) => usize::from(offset >> 4).max(5) * 4,
            (true, _) => return Err(Malformed),
            (false, _) => 8,
        };
        let header = l4 + transport_length;
        let length = u16::try_from(header).map_err(|_| Malformed)?;
        let (head, payload) = packet.split_at_checked(header).ok_or(Malformed)?;
        self.count += 1;
        let size = usize::from(vnet.gso_size);
        let last = payload.len().div_ceil(size).saturating_sub(1);
        for (i, part) in payload.chunks(size).enumerate() {
            self.header.clear();
            self.header.extend_from_slice(head);
            let index = u16::try_from(i).map_err(|_| Malformed)?;
            let fields = Fields { l4, is_tcp, payload: part.len(), further: index, skipped: i * size };
            fields.write(&mut self.header)?;
            if is_tcp && let Some(flags) = self.header.get_mut(l4 + 13) {
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
    if is_tcp && let (Some(flags), Some(end)) = (header.get_mut(l4 + 13), last.get(l4 + 13)) {
        *flags |= end & (FIN | PSH);
        if *flags & CWR != 0 {
            gso |= piece.gso & GSO_ECN;
        }
    }
    Ok(Vnet { gso, gso_size: piece.gso_size, header: piece.header, ..framing.vnet })
}

/// What differs between headers of one super-packet.
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
        let total = header.len() + self.payload;
        let (network, transport) = header.split_at_mut_checked(self.l4).ok_or(Malformed)?;
        let segment = u16::try_from(transport.len() + self.payload).map_err(|_| Malformed)?;
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
                let length = u16::try_from(total - 40).map_err(|_| Malformed)?;
                put(network, 4, length.to_be_bytes())?;
                8..40
            }
            _ => return Err(Malformed),
        };
        let addresses = sum(network.get(addresses).ok_or(Malformed)?);
        let protocol = if self.is_tcp { 6 } else { 17 };
        let pseudo = fold(addresses + protocol + u32::from(segment)).to_be_bytes();
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
