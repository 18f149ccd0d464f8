//! Every packet as a pcapng file that Wireshark reads.
//! Source: draft-ietf-opsawg-pcapng (blocks SHB, IDB, EPB, ISB; `if_tsresol` 9; link type RAW).
//!
//! Three interfaces: what senders and receivers put into the network, what came out, and what was
//! dropped, with the reason as a comment. The simulator has no bytes, so IPv4, UDP, RTP and TCP
//! headers are made up from what the packet means; the payload is cut off (the original length is
//! kept). Flow n goes from 10.1.x.y:40000 to 10.2.x.y:5004 (TCP: 5001), where x.y is n. A TCP
//! segment's number becomes 1 + number × payload. At the end come the interfaces' statistics (ISB), with how many packets
//! each took in: a file without them was cut off.

use std::io::{self, Write};

use fairpace_path::DropReason;
use fairpace_units::{Duration, Instant, Kind};

use crate::packet::{Body, Direction, Packet, QuickStart};

/// The fate of a packet at one instant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PacketFate {
    /// The packet entered its first link.
    Sent,
    /// The packet left its last link.
    Received,
    /// The packet was dropped.
    Dropped {
        /// The part that dropped it, and for what reason.
        reason: DropReason,
        /// Where: an index of [`SimReport::links`](crate::SimReport::links); behind these come the terminals, then the radio's users.
        link: u32,
    },
}

/// One packet at one instant.
#[derive(Clone, Copy, Debug)]
pub struct PacketEvent {
    /// The instant at which it passed, or was dropped.
    pub at: Instant,
    /// The packet.
    pub packet: Packet,
    /// The packet's fate.
    pub fate: PacketFate,
}

/// Is told of every packet. Sent and received come in order of time; a drop may be told later than
/// it happened.
pub trait Observer: Send {
    /// A packet was sent, received or dropped.
    fn on_packet(&mut self, event: &PacketEvent);
}

/// Writes packets as pcapng, and flushes with the first one of each second, so that a killed program leaves a file that can be read. Errors of the output are kept and given back by [`PcapWriter::finish`].
pub struct PcapWriter<W> {
    out: W,
    link_names: Vec<String>,
    /// Payload of a full segment of each TCP flow, learned from its first.
    payloads: Vec<u32>,
    error: Option<io::Error>,
    block: Vec<u8>,
    flush_at: Instant,
    /// The latest instant, and the packets of each interface.
    end: Instant,
    counts: [u64; INTERFACES.len()],
}

/// So often the output is flushed.
const FLUSHED_EACH: Duration = Duration::from_secs(1);

const SHB: u32 = 0x0A0D_0D0A;
const IDB: u32 = 1;
const EPB: u32 = 6;
const ISB: u32 = 5;
const LINKTYPE_RAW: u16 = 101;
const OPT_END: u16 = 0;
const OPT_COMMENT: u16 = 1;
const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
const ISB_IFRECV: u16 = 4;
/// Sent, received, dropped.
const INTERFACES: [&str; 3] = ["sent", "received", "dropped"];

const IP: u32 = 20;
const TCP: u32 = 20;
const UDP: u32 = 8;

impl<W: Write> PcapWriter<W> {
    /// Writes the file's head. `link_names` are those of [`SimReport::links`](crate::SimReport::links), then the
    /// terminals' and the users', for the comments of drops.
    pub fn new(out: W, link_names: Vec<String>) -> Self {
        let mut writer = PcapWriter {
            out,
            link_names,
            payloads: Vec::new(),
            error: None,
            block: Vec::new(),
            flush_at: Instant::ZERO,
            end: Instant::ZERO,
            counts: [0; INTERFACES.len()],
        };
        let mut head = Vec::new();
        head.extend(0x1A2B_3C4D_u32.to_le_bytes());
        head.extend(1_u16.to_le_bytes()); // version 1.0
        head.extend(0_u16.to_le_bytes());
        head.extend(u64::MAX.to_le_bytes()); // section length unknown
        writer.write_block(SHB, &head);
        for name in INTERFACES {
            let mut body = Vec::new();
            body.extend(LINKTYPE_RAW.to_le_bytes());
            body.extend([0; 2]);
            body.extend(0_u32.to_le_bytes()); // no snapshot limit
            option(&mut body, IF_NAME, name.as_bytes());
            option(&mut body, IF_TSRESOL, &[9]);
            option(&mut body, OPT_END, &[]);
            writer.write_block(IDB, &body);
        }
        writer
    }

    /// Writes one packet.
    pub fn write(&mut self, event: &PacketEvent) {
        let packet = &event.packet;
        let mut headers = Vec::with_capacity(80);
        self.headers(packet, &mut headers);
        headers.truncate(packet.size.max(IP) as usize);
        let original = packet.size.max(headers.len() as u32);
        self.write_bytes(event.at, event.fate, &headers, original);
    }

    /// Writes a packet that has bytes: its first ones, and how long it was.
    pub fn write_bytes(&mut self, at: Instant, fate: PacketFate, bytes: &[u8], original: u32) {
        if at >= self.flush_at {
            self.flush_at = at + FLUSHED_EACH;
            self.flush();
        }
        let (interface, comment) = match fate {
            PacketFate::Sent => (0_u32, None),
            PacketFate::Received => (1, None),
            PacketFate::Dropped { reason, link } => {
                let link = self.link_names.get(link as usize).map_or("?", String::as_str);
                (2, Some(format!("{} at {link}", reason.as_str())))
            }
        };
        self.end = self.end.max(at);
        self.counts[interface as usize] += 1;
        let mut body = std::mem::take(&mut self.block);
        body.clear();
        time_stamp(&mut body, interface, at);
        body.extend((bytes.len() as u32).to_le_bytes());
        body.extend(original.to_le_bytes());
        body.extend(bytes);
        pad(&mut body);
        if let Some(comment) = comment {
            option(&mut body, OPT_COMMENT, comment.as_bytes());
            option(&mut body, OPT_END, &[]);
        }
        self.write_block(EPB, &body);
        self.block = body;
    }

    /// Writes the statistics, and gives back the output, or the first error it gave.
    ///
    /// # Errors
    /// The first error of the output; what was written before it is valid.
    pub fn finish(mut self) -> io::Result<W> {
        for (interface, count) in (0..).zip(self.counts) {
            let mut body = Vec::new();
            time_stamp(&mut body, interface, self.end);
            option(&mut body, ISB_IFRECV, &count.to_le_bytes());
            option(&mut body, OPT_END, &[]);
            self.write_block(ISB, &body);
        }
        match self.error {
            Some(error) => Err(error),
            None => Ok(self.out),
        }
    }

    /// Gives all that was written to the output's owner, as a driver does when nothing comes for a while.
    pub fn flush(&mut self) {
        if self.error.is_none() {
            self.error = self.out.flush().err();
        }
    }

    fn write_block(&mut self, kind: u32, body: &[u8]) {
        if self.error.is_some() {
            return;
        }
        let length = (body.len() as u32 + 12).to_le_bytes();
        let result = self
            .out
            .write_all(&kind.to_le_bytes())
            .and_then(|()| self.out.write_all(&length))
            .and_then(|()| self.out.write_all(body))
            .and_then(|()| self.out.write_all(&length));
        self.error = result.err();
    }

    fn headers(&mut self, packet: &Packet, out: &mut Vec<u8>) {
        let is_tcp = matches!(packet.body, Body::TcpData { .. } | Body::TcpAck { .. });
        let n = (packet.flow as u16).to_be_bytes();
        let (sender, receiver) = ([10, 1, n[0], n[1]], [10, 2, n[0], n[1]]);
        let (far_port, near_port) = (if is_tcp { 5_001_u16 } else { 5_004 }, 40_000_u16);
        let (from, to, from_port, to_port) = match packet.direction {
            Direction::Forward => (sender, receiver, near_port, far_port),
            Direction::Back => (receiver, sender, far_port, near_port),
        };

        let option = match packet.quick_start {
            Some(QuickStart::Option(option)) => Some(option),
            Some(QuickStart::Response(_)) | None => None,
        };
        out.push(if option.is_some() { 0x47 } else { 0x45 });
        out.push(packet.class.dscp().tos(packet.ecn));
        out.extend((packet.size.min(65_535) as u16).to_be_bytes());
        out.extend([0, 0, 0x40, 0]); // no identification, do not fragment
        out.extend([option.map_or(64, |o| o.ip_ttl), if is_tcp { 6 } else { 17 }, 0, 0]);
        out.extend(from);
        out.extend(to);
        if let Some(option) = option {
            // [RFC 4782 §3.1]
            out.extend([25, 8, (option.function as u8) << 4 | option.rate.code(), option.qs_ttl]);
            out.extend((option.nonce.get() << 2).to_be_bytes());
        }
        let checksum = internet_checksum(out).to_be_bytes();
        out[10..12].copy_from_slice(&checksum);

        out.extend(from_port.to_be_bytes());
        out.extend(to_port.to_be_bytes());
        match packet.body {
            Body::TcpData { seq, cwr, .. } => {
                let payload = packet.size.saturating_sub(IP + TCP).max(1);
                let flow = packet.flow as usize;
                if self.payloads.len() <= flow {
                    self.payloads.resize(flow + 1, 0);
                }
                if self.payloads[flow] == 0 {
                    self.payloads[flow] = payload;
                }
                tcp(out, byte_of(seq, self.payloads[flow]), 1, ACK | if cwr { CWR } else { 0 }, &[]);
            }
            Body::TcpAck { next, sack, ece } => {
                let payload = self.payloads.get(packet.flow as usize).copied().unwrap_or(1);
                let blocks: Vec<(u32, u32)> = sack
                    .iter()
                    .filter(|b| !b.is_empty())
                    .map(|b| (byte_of(b.start, payload), byte_of(b.end, payload)))
                    .collect();
                // An ACK of 40 B has no room for options; what does not fit is not shown.
                let room = packet.size.saturating_sub(IP + TCP) as usize;
                let fits = room.saturating_sub(4) / 8;
                tcp(out, 1, byte_of(next, payload), ACK | if ece { ECE } else { 0 }, &blocks[..blocks.len().min(fits)]);
            }
            _ => {
                out.extend((packet.size.saturating_sub(IP).clamp(UDP, 65_535) as u16).to_be_bytes());
                out.extend([0, 0]); // no checksum
                if let Body::Media { kind, seq, .. } = packet.body {
                    // RTP: payload type 96 for data, 97 for dummies, each with its own source.
                    out.extend([0x80, if kind == Kind::Data { 96 } else { 97 }]);
                    out.extend((seq as u16).to_be_bytes());
                    out.extend(((packet.sent_at.as_nanos() / 1_000 * 9 / 100) as u32).to_be_bytes()); // 90 kHz
                    out.extend((packet.flow * 2 + u32::from(kind == Kind::Dummy)).to_be_bytes());
                }
            }
        }
    }
}

impl<W: Write + Send> Observer for PcapWriter<W> {
    fn on_packet(&mut self, event: &PacketEvent) {
        self.write(event);
    }
}

// TCP's flags [RFC 9293 §3.1].
const ACK: u8 = 0x10;
const ECE: u8 = 0x40;
const CWR: u8 = 0x80;

fn byte_of(segment: u32, payload: u32) -> u32 {
    segment.wrapping_mul(payload).wrapping_add(1)
}

fn tcp(out: &mut Vec<u8>, seq: u32, ack: u32, flags: u8, sack: &[(u32, u32)]) {
    let options = if sack.is_empty() { 0 } else { 4 + 8 * sack.len() };
    out.extend(seq.to_be_bytes());
    out.extend(ack.to_be_bytes());
    out.push(((5 + options / 4) as u8) << 4);
    out.push(flags);
    out.extend([0xff, 0xff, 0, 0, 0, 0]); // window, no checksum, no urgent data
    if !sack.is_empty() {
        out.extend([1, 1, 5, (2 + 8 * sack.len()) as u8]);
        for (left, right) in sack {
            out.extend(left.to_be_bytes());
            out.extend(right.to_be_bytes());
        }
    }
}

/// The beginning of a block that is about an interface at an instant.
fn time_stamp(out: &mut Vec<u8>, interface: u32, at: Instant) {
    let nanos = at.as_nanos();
    out.extend(interface.to_le_bytes());
    out.extend(((nanos >> 32) as u32).to_le_bytes());
    out.extend((nanos as u32).to_le_bytes());
}

fn option(out: &mut Vec<u8>, code: u16, value: &[u8]) {
    out.extend(code.to_le_bytes());
    out.extend((value.len() as u16).to_le_bytes());
    out.extend(value);
    pad(out);
}

fn pad(out: &mut Vec<u8>) {
    out.resize(out.len().next_multiple_of(4), 0);
}

/// [RFC 1071]
fn internet_checksum(header: &[u8]) -> u16 {
    let mut sum: u32 = header.chunks(2).map(|c| u32::from(u16::from_be_bytes([c[0], *c.get(1).unwrap_or(&0)]))).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairpace_units::{Class, Ecn};

    #[test]
    fn the_checksum_of_a_header_with_its_checksum_is_zero() {
        // The worked example of RFC 1071's usual header: 4500 0073 0000 4000 4011 b861 c0a8 0001 c0a8 00c7
        let mut header = [
            0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0, 0, 0xc0, 0xa8, 0x00, 0x01, 0xc0, 0xa8, 0x00,
            0xc7,
        ];
        assert_eq!(internet_checksum(&header), 0xb861);
        header[10..12].copy_from_slice(&0xb861_u16.to_be_bytes());
        assert_eq!(internet_checksum(&header), 0);
    }

    #[test]
    fn blocks_repeat_their_length_and_are_multiples_of_four() {
        let packet = Packet {
            sent_at: Instant::ZERO,
            body: Body::Media { kind: Kind::Dummy, frame: u32::MAX, note: 0, seq: 7, born: Instant::ZERO },
            flow: 3,
            size: 1_000,
            direction: Direction::Forward,
            class: Class::Low,
            ecn: Ecn::NotEct,
            quick_start: None,
        };
        let mut writer = PcapWriter::new(Vec::new(), vec!["bottleneck".to_owned()]);
        let fate = PacketFate::Dropped { reason: DropReason::PushedOut, link: 0 };
        writer.write(&PacketEvent { at: Instant::from_nanos(5_000_000_001), packet, fate });
        let file = writer.finish().unwrap();
        let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
        let (mut at, mut kinds) = (0, Vec::new());
        while at < file.len() {
            let length = word(at + 4) as usize;
            assert_eq!(length % 4, 0);
            assert_eq!(word(at + length - 4) as usize, length);
            kinds.push(word(at));
            at += length;
        }
        assert_eq!(kinds, [SHB, IDB, IDB, IDB, EPB, ISB, ISB, ISB]);
        let text = String::from_utf8_lossy(&file);
        assert!(text.contains("pushed_out at bottleneck"));
    }
}
