//! Every packet of both sides as it was on the wire, as a pcapng file: what was read, what was written, and what
//! was dropped on the way, with the reason.

use crate::ip::Header;
use fairpace_sim::{PacketFate, PcapWriter};
use fairpace_units::{Duration, Instant};
use std::io::{self, Write};

/// Bytes looked at of each packet, of which its headers are kept, and nothing of what they carry.
const SNAP: usize = 256;
/// Of what is no IP packet as much as its shortest header has.
const LEAST: usize = 20;
/// So often a stream is flushed at least, though nothing comes.
const FLUSHED_EACH: Duration = Duration::from_secs(1);

/// Where packets are written down.
#[derive(Default)]
pub(crate) struct Capture {
    memory: Option<PcapWriter<Vec<u8>>>,
    stream: Option<PcapWriter<Box<dyn Write + Send>>>,
    flush_at: Instant,
}

impl Capture {
    /// Into memory if asked for, and into `stream` if there is one.
    pub(crate) fn new(memory: bool, stream: Option<Box<dyn Write + Send>>, links: &[String]) -> Capture {
        Capture {
            memory: memory.then(|| PcapWriter::new(Vec::new(), links.to_vec())),
            stream: stream.map(|stream| PcapWriter::new(stream, links.to_vec())),
            flush_at: Instant::ZERO,
        }
    }

    /// The writer flushes with the first packet of each second: after a pause the last ones before it are still to be.
    pub(crate) fn nothing_came(&mut self, now: Instant) {
        if let Some(writer) = self.stream.as_mut().filter(|_| now >= self.flush_at) {
            self.flush_at = now + FLUSHED_EACH;
            writer.flush();
        }
    }

    pub(crate) fn write(&mut self, at: Instant, fate: PacketFate, parts: &[&[u8]]) {
        if self.memory.is_none() && self.stream.is_none() {
            return;
        }
        let (mut bytes, mut original) = ([0; SNAP], 0);
        for part in parts {
            if let Some(room) = bytes.get_mut(original..) {
                let n = part.len().min(room.len());
                room[..n].copy_from_slice(&part[..n]);
            }
            original += part.len();
        }
        let bytes = &bytes[..original.min(SNAP)];
        let bytes = &bytes[..Header::parse(bytes).map_or(LEAST.min(bytes.len()), |header| header.headers(bytes))];
        if let Some(writer) = &mut self.memory {
            writer.write_bytes(at, fate, bytes, original as u32);
        }
        if let Some(writer) = &mut self.stream {
            writer.write_bytes(at, fate, bytes, original as u32);
        }
    }

    /// The capture, if it is kept in memory. The owner of a stream that fails has been told so by each call, and the run is as good
    /// without it.
    pub(crate) fn finish(self) -> io::Result<Option<Vec<u8>>> {
        if let Some(Ok(mut stream)) = self.stream.map(PcapWriter::finish) {
            let _ = stream.flush();
        }
        self.memory.map(PcapWriter::finish).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ip::tests::v4;

    fn v6(next: u8, payload: &[u8]) -> Vec<u8> {
        [&[0x60, 0, 0, 0, 0, payload.len() as u8, next, 64], &[0xfd; 32][..], payload].concat()
    }

    /// The file holds every header, and nothing of what a program has sent.
    #[test]
    fn a_capture_holds_headers_and_no_payload() {
        const SECRET: &[u8] = b"GET /?token=7f3a";
        let udp = |head: &[u8]| [&[0x13, 0x88, 0x13, 0x89, 0, 0, 0, 0], head, SECRET].concat();
        let mut tcp = vec![0; 32];
        tcp[12] = 8 << 4; // 12 bytes of options
        let tcp = [&tcp, SECRET].concat();
        let rtp = [0x80, 96, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3];
        let (a, b) = ([10, 0, 0, 1], [10, 0, 0, 2]);
        let mut fragment = v4(0, 17, a, b, SECRET);
        fragment[7] = 185; // 1,480 bytes were before
        let hop_by_hop = [&[17, 0, 1, 4, 0, 0, 0, 0], &udp(&[])[..]].concat();
        let packets = [
            (v4(0, 17, a, b, &udp(&[])), 28),
            (v4(0, 17, a, b, &udp(&rtp)), 40),
            (v4(0, 6, a, b, &tcp), 52),
            (v4(0, 1, a, b, &[&[8, 0, 0, 0, 0, 0, 0, 0], SECRET].concat()), 28),
            (fragment, 20),
            (v6(17, &udp(&rtp)), 60),
            (v6(0, &hop_by_hop), 56),
            (v6(6, &tcp), 72),
            ([&[0x00; 20][..], SECRET].concat(), 20),
        ];
        for (packet, kept) in packets {
            let mut capture = Capture::new(true, None, &[]);
            capture.write(Instant::ZERO, PacketFate::Sent, &[&packet[..12], &packet[12..]]);
            let file = capture.finish().unwrap().unwrap();
            assert!(!file.windows(4).any(|w| w == &SECRET[..4] || w == &SECRET[12..]), "{packet:02x?}");
            let lengths = [kept as u32, packet.len() as u32].map(u32::to_le_bytes).concat();
            assert!(file.windows(8).any(|w| w == lengths), "{kept} of {} bytes: {packet:02x?}", packet.len());
        }
    }
}
