//! Retransmission [RFC 4588 §4]: a lost media packet again, in a stream of its own (SSRC multiplexing);
//! the payload begins with the original sequence number (OSN).

use crate::WireError;
use crate::send_queue::Chunk;
use crate::wire::{Put, Reader};
use std::collections::VecDeque;

/// Default payload type.
pub const PAYLOAD_TYPE: u8 = 99;
/// Bytes of the OSN: a retransmission is that much longer than its original.
pub const OSN_LEN: usize = 2;

/// Reads a retransmission's payload: original sequence number and payload.
///
/// # Errors
/// [`WireError`] if it is shorter than the OSN.
pub fn parse(payload: &[u8]) -> Result<(u16, &[u8]), WireError> {
    let mut r = Reader::new("retransmission", payload);
    Ok((r.u16()?, r.rest()))
}

/// Writes a retransmission's payload behind its header.
pub fn emit(original: u16, payload: &[u8], out: &mut Vec<u8>) {
    out.put_u16(original);
    out.put(payload);
}

/// Media packets kept for a while, in case they are asked for again.
#[derive(Debug, Default)]
pub(crate) struct History {
    first: u64,
    kept: VecDeque<Kept>,
    bytes: usize,
    spare: Vec<Vec<u8>>,
}

#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) timestamp: u32,
    pub(crate) marker: bool,
    pub(crate) payload: Vec<u8>,
    /// When its frame was captured.
    pub(crate) captured: fairpace_units::Instant,
    /// When it was last sent, again or for the first time.
    pub(crate) sent_at: fairpace_units::Instant,
    /// How often it was sent again.
    pub(crate) times: u8,
    /// The packet that waits to be sent again is the copy of an answer.
    pub(crate) is_copy: bool,
}

impl History {
    /// At most this much is kept: about 10 s at 1.5 Mbit/s.
    const MAX_BYTES: usize = 2 << 20;

    /// Keeps the packet with that (unwrapped) sequence number: the next one.
    pub(crate) fn keep(&mut self, sequence: u64, chunk: &Chunk, payload: &[u8], now: fairpace_units::Instant) {
        if self.kept.is_empty() {
            self.first = sequence;
        }
        debug_assert_eq!(self.first + self.kept.len() as u64, sequence, "in order");
        while self.bytes + payload.len() > Self::MAX_BYTES {
            let Some(old) = self.kept.pop_front() else { break };
            self.bytes -= old.payload.len();
            self.first += 1;
            if self.spare.len() < 8 {
                self.spare.push(old.payload);
            }
        }
        let mut copy = self.spare.pop().unwrap_or_default();
        copy.clear();
        copy.extend_from_slice(payload);
        self.bytes += copy.len();
        let &Chunk { timestamp, marker, captured, .. } = chunk;
        self.kept.push_back(Kept {
            timestamp,
            marker,
            payload: copy,
            captured,
            sent_at: now,
            times: 0,
            is_copy: false,
        });
    }

    /// The oldest number that is kept.
    pub(crate) const fn first(&self) -> u64 {
        self.first
    }

    pub(crate) fn get_mut(&mut self, sequence: u64) -> Option<&mut Kept> {
        let i = sequence.checked_sub(self.first)?;
        self.kept.get_mut(usize::try_from(i).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairpace_units::Instant;

    #[test]
    fn the_original_number_comes_back_with_the_payload() {
        let mut out = Vec::new();
        emit(0xfffe, b"media", &mut out);
        assert_eq!(parse(&out), Ok((0xfffe, &b"media"[..])));
        assert!(parse(&[1]).is_err());
    }

    #[test]
    fn the_history_is_bounded_and_forgets_the_oldest() {
        let mut h = History::default();
        for i in 0..5_000_u64 {
            let chunk = Chunk { timestamp: i as u32, marker: false, captured: Instant::ZERO, begins_key: false };
            h.keep(i, &chunk, &[i as u8; 1_000], Instant::ZERO);
        }
        // 2 MiB / 1,000 B = 2,097 packets
        assert_eq!(h.kept.len(), 2_097);
        assert!(h.get_mut(5_000 - 2_098).is_none());
        assert_eq!(h.get_mut(5_000 - 2_097).map(|k| k.timestamp), Some(2_903));
        assert!(h.get_mut(5_000).is_none());
    }
}
