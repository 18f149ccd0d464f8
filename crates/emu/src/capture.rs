//! Every packet of both sides as it was on the wire, as a pcapng file: what was read, what was written, and what
//! was dropped on the way, with the reason.

use fairpace_sim::{PacketFate, PcapWriter};
use fairpace_units::Instant;
use std::io::{self, Write};

/// Bytes kept of each packet: all headers, and the beginning of what they carry.
const SNAP: usize = 256;

/// Where packets are written down.
#[derive(Default)]
pub(crate) struct Capture {
    memory: Option<PcapWriter<Vec<u8>>>,
    stream: Option<PcapWriter<Box<dyn Write + Send>>>,
}

impl Capture {
    /// Into memory if asked for, and into `stream` if there is one.
    pub(crate) fn new(memory: bool, stream: Option<Box<dyn Write + Send>>, links: &[String]) -> Capture {
        Capture {
            memory: memory.then(|| PcapWriter::new(Vec::new(), links.to_vec())),
            stream: stream.map(|stream| PcapWriter::new(stream, links.to_vec())),
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
        if let Some(writer) = &mut self.memory {
            writer.write_bytes(at, fate, bytes, original as u32);
        }
        if let Some(writer) = &mut self.stream {
            writer.write_bytes(at, fate, bytes, original as u32);
        }
    }

    /// The capture, if it is kept in memory.
    pub(crate) fn finish(self) -> io::Result<Option<Vec<u8>>> {
        if let Some(writer) = self.stream {
            writer.finish()?.flush()?;
        }
        self.memory.map(PcapWriter::finish).transpose()
    }
}
