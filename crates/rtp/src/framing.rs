//! RTP and RTCP over a connection: each packet behind its length [RFC 4571 §2].
//!
//! ```text
//!  length (16)   RTP or RTCP packet, `length` bytes   length (16)   ...
//! ```
//!
//! A length of zero is a packet without content and is passed over. Our sender writes one where it will write nothing more
//! before all is acknowledged ([`emit_null`]): our receiver acknowledges then at once and not after TCP's 40 ms. A
//! frame longer than the reader allows ends the connection: behind a false length nothing can be found again. The
//! reader's memory is given once and never grows.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use crate::WireError;
use crate::wire::Put;

/// Bytes in front of each packet.
pub const LENGTH_LEN: usize = 2;

/// Appends `packet` behind its length.
///
/// # Errors
/// [`WireError::Field`] if it is longer than 65,535 bytes; then nothing is appended.
pub fn emit(packet: &[u8], out: &mut Vec<u8>) -> Result<(), WireError> {
    let len = u16::try_from(packet.len()).map_err(|_| WireError::Field {
        what: "length of a framed packet",
        found: u32::try_from(packet.len()).unwrap_or(u32::MAX),
        allowed: "0 to 65,535",
    })?;
    out.put_u16(len);
    out.put(packet);
    Ok(())
}

/// Appends a packet without content.
pub fn emit_null(out: &mut Vec<u8>) {
    out.put_u16(0);
}

/// Finds the packets in what a connection gives, however that is cut.
///
/// ```
/// use fairpace_rtp::framing::{Deframer, emit};
/// let mut bytes = Vec::new();
/// emit(b"one", &mut bytes)?;
/// emit(b"two", &mut bytes)?;
/// let mut deframer = Deframer::new(1_500);
/// let mut found = Vec::new();
/// for byte in bytes {
///     deframer.space()[0] = byte;
///     deframer.filled(1);
///     while let Some(packet) = deframer.next_packet()? {
///         found.push(packet.to_vec());
///     }
/// }
/// assert_eq!(found, [b"one", b"two"]);
/// # Ok::<(), fairpace_rtp::WireError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Deframer {
    buffer: Vec<u8>,
    /// The beginning of the data that has come and was not handed out.
    start: usize,
    end: usize,
    longest: usize,
    null: bool,
}

/// So many of the longest packets fit.
const ROOM: usize = 8;

impl Deframer {
    /// `longest`: bytes of the longest packet that is taken, 1 to 65,535.
    pub fn new(longest: usize) -> Self {
        let longest = longest.clamp(1, u16::MAX.into());
        Deframer {
            buffer: vec![0; longest.saturating_add(LENGTH_LEN).saturating_mul(ROOM)],
            start: 0,
            end: 0,
            longest,
            null: false,
        }
    }

    /// Where the connection's next bytes go; never empty after [`Deframer::next_packet`] gave `None`.
    pub fn space(&mut self) -> &mut [u8] {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end = self.held();
        self.start = 0;
        self.buffer.get_mut(self.end..).unwrap_or_default()
    }

    /// So many bytes were put there.
    pub fn filled(&mut self, bytes: usize) {
        self.end = self.end.saturating_add(bytes).min(self.buffer.len());
    }

    /// Bytes of a packet that has begun to come.
    pub const fn held(&self) -> usize {
        self.end.saturating_sub(self.start)
    }

    /// Whether a whole packet is there.
    ///
    /// # Errors
    /// As [`Deframer::next_packet`].
    pub fn has_packet(&mut self) -> Result<bool, WireError> {
        loop {
            let Some(&[high, low]) = self.buffer.get(self.start..self.end).and_then(|b| b.first_chunk()) else {
                return Ok(false);
            };
            let len = usize::from(u16::from_be_bytes([high, low]));
            if len > self.longest {
                return Err(WireError::Field {
                    what: "length of a framed packet",
                    found: len as u32,
                    allowed: "what the reader takes",
                });
            }
            if len > 0 {
                return Ok(LENGTH_LEN.saturating_add(len) <= self.held());
            }
            self.start = self.start.saturating_add(LENGTH_LEN);
            self.null = true;
        }
    }

    /// Whether a packet without content has been passed over since the last call.
    pub fn take_null(&mut self) -> bool {
        core::mem::take(&mut self.null)
    }

    /// The next whole packet; `None` until more has come.
    ///
    /// # Errors
    /// [`WireError::Field`] if it is longer than allowed; the same again at each further call.
    pub fn next_packet(&mut self) -> Result<Option<&[u8]>, WireError> {
        if !self.has_packet()? {
            return Ok(None);
        }
        let Some(&[high, low]) = self.buffer.get(self.start..).and_then(|b| b.first_chunk()) else { return Ok(None) };
        let from = self.start.saturating_add(LENGTH_LEN);
        self.start = from.saturating_add(u16::from_be_bytes([high, low]).into());
        Ok(self.buffer.get(from..self.start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_null_packet_is_no_packet_and_is_told_once() {
        let mut stream = Vec::new();
        emit(b"last", &mut stream).unwrap();
        emit_null(&mut stream);
        let mut d = Deframer::new(4);
        d.space()[..stream.len()].copy_from_slice(&stream);
        d.filled(stream.len());
        assert_eq!(d.next_packet(), Ok(Some(&b"last"[..])));
        assert!(!d.take_null());
        assert_eq!(d.next_packet(), Ok(None));
        assert_eq!([d.take_null(), d.take_null()], [true, false]);
    }

    #[test]
    fn a_packet_longer_than_the_reader_takes_is_refused_and_stays_so() {
        let mut d = Deframer::new(4);
        d.space()[..9].copy_from_slice(&[0, 4, 1, 2, 3, 4, 0, 5, 9]);
        d.filled(9);
        assert_eq!(d.next_packet(), Ok(Some(&[1, 2, 3, 4][..])));
        for _ in 0..2 {
            assert!(matches!(d.next_packet(), Err(WireError::Field { found: 5, .. })));
        }
        assert!(emit(&vec![0; 65_536], &mut Vec::new()).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn packets_come_out_whole_however_the_stream_is_cut(
            lengths in prop::collection::vec(0_usize..300, 0..40), cuts in prop::collection::vec(1_usize..700, 1..40),
        ) {
            let packets: Vec<Vec<u8>> =
                lengths.iter().enumerate().map(|(i, &n)| (0..n).map(|k| (i + k) as u8).collect()).collect();
            let mut stream = Vec::new();
            packets.iter().for_each(|p| emit(p, &mut stream).unwrap());
            let mut d = Deframer::new(300);
            let memory = d.buffer.len();
            let (mut found, mut from, mut cuts) = (Vec::new(), 0, cuts.iter().cycle());
            while from < stream.len() {
                let space = d.space();
                prop_assert!(!space.is_empty());
                let n = cuts.next().unwrap().min(&space.len()).min(&(stream.len() - from)).to_owned();
                space[..n].copy_from_slice(&stream[from..from + n]);
                d.filled(n);
                from += n;
                while let Some(p) = d.next_packet().unwrap() { found.push(p.to_vec()); }
            }
            prop_assert_eq!(found, packets.into_iter().filter(|p| !p.is_empty()).collect::<Vec<_>>());
            prop_assert_eq!((d.held(), d.buffer.len()), (0, memory));
        }

        #[test]
        fn any_bytes_are_read_or_refused(pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..20)) {
            let mut d = Deframer::new(100);
            for piece in pieces {
                let space = d.space();
                let n = piece.len().min(space.len());
                space[..n].copy_from_slice(&piece[..n]);
                d.filled(n);
                while let Ok(Some(p)) = d.next_packet() { prop_assert!((1..=100).contains(&p.len())); }
            }
        }
    }
}
