//! From the source to the send buffer.

use super::MediaEndpoint;
use super::send_buffer::{NO_FRAME, Pending};
use super::source::SourceState;
use super::tcp_half::payload;
use crate::config::EncodedSize;
use crate::report::FrameRecord;
use fairpace_units::{Bytes, Duration, Instant};

impl MediaEndpoint {
    /// Everything the source has produced by now goes into the send buffer.
    pub(super) fn produce(&mut self, now: Instant) {
        while self.source.next() <= now {
            let at = self.source.next();
            match &mut self.source {
                SourceState::Greedy | SourceState::Adus { .. } => return,
                SourceState::Constant { spacing_ns, began, sent, next } => {
                    *sent += 1;
                    *next = Instant::from_nanos(began.as_nanos() + (*sent as f64 * *spacing_ns) as u64);
                    let size = self.packet_size;
                    self.offer(Pending { frame: NO_FRAME, full: 1, full_size: size, last_size: 0, born: at });
                }
                SourceState::Frames { sizes, index, interval, header, next } => {
                    let size = sizes[*index % sizes.len()];
                    *index += 1;
                    *next = at + *interval;
                    let (header, frame) = (*header, EncodedSize { size, key: false, interval: *interval });
                    self.push_frame(at, frame, header);
                }
                SourceState::Adaptive { encoder, header, next } => {
                    let frame = encoder.next_frame(at, self.flow.target_rate());
                    *next = at + frame.interval.max(Duration::from_nanos(1));
                    let header = *header;
                    self.push_frame(at, frame, header);
                }
            }
        }
    }

    /// A source of data units that always has one produces it when its first packet leaves.
    pub(super) fn produce_adu(&mut self, now: Instant) {
        let SourceState::Adus { packets } = self.source else { return };
        if !self.buffer.is_empty() {
            return;
        }
        self.frames += 1;
        let frame = if self.record_frames { self.frame_records.len() as u32 } else { NO_FRAME };
        self.buffer.push(Pending { frame, full: packets, full_size: self.packet_size, last_size: 0, born: now });
        if self.record_frames {
            let size = Bytes::new(u64::from(packets) * u64::from(payload(self.packet_size)));
            self.frame_records.push(FrameRecord::new(now, size, false, packets));
        }
    }

    fn push_frame(&mut self, at: Instant, frame: EncodedSize, header: u32) {
        let payload = self.packet_size.saturating_sub(header).max(1);
        let size = frame.size.get().min(1 << 30) as u32;
        if size == 0 {
            return; // skipped by the encoder
        }
        let rest = size % payload;
        let last_size = if rest == 0 { 0 } else { rest + header };
        let index = if self.record_frames { self.frame_records.len() as u32 } else { NO_FRAME };
        let full_size = payload + header;
        let kept = self.offer(Pending { frame: index, full: size / payload, full_size, last_size, born: at });
        if self.record_frames {
            let packets = if kept { size.div_ceil(payload) } else { 0 };
            self.frame_records.push(FrameRecord::new(at, frame.size, frame.key, packets));
        }
    }

    /// A frame for the send buffer: whether there was room.
    fn offer(&mut self, frame: Pending) -> bool {
        self.frames += 1;
        frame.add_to(&mut self.produced);
        let kept = self.buffer.push(frame);
        if !kept {
            self.frames_dropped += 1;
            frame.add_to(&mut self.overflowed);
        }
        kept
    }
}
