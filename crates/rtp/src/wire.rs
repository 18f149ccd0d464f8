//! Reading and writing big-endian fields without panics.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use fairpace_units::Duration;

/// Why bytes from the network are not what they should be. Counted by the session, then dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The bytes end before the field that must come.
    #[error("{what} needs {needed} bytes, there are {found}")]
    Truncated {
        /// The structure that was being read.
        what: &'static str,
        /// Bytes needed.
        needed: usize,
        /// Bytes there.
        found: usize,
    },
    /// A field has a value that is not allowed.
    #[error("{what} is {found}, allowed: {allowed}")]
    Field {
        /// The field.
        what: &'static str,
        /// Its value.
        found: u32,
        /// The contents that would have been right.
        allowed: &'static str,
    },
}

/// Takes bytes from the front; every read checks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    what: &'static str,
}

impl<'a> Reader<'a> {
    pub(crate) const fn new(what: &'static str, bytes: &'a [u8]) -> Self {
        Reader { bytes, what }
    }

    pub(crate) fn take(&mut self, n: usize) -> Result<&'a [u8], WireError> {
        let (head, rest) = self.bytes.split_at_checked(n).ok_or(WireError::Truncated {
            what: self.what,
            needed: n,
            found: self.bytes.len(),
        })?;
        self.bytes = rest;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let (head, rest) = self.bytes.split_first_chunk::<N>().ok_or(WireError::Truncated {
            what: self.what,
            needed: N,
            found: self.bytes.len(),
        })?;
        self.bytes = rest;
        Ok(*head)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, WireError> {
        Ok(u8::from_be_bytes(self.array()?))
    }

    pub(crate) fn u16(&mut self) -> Result<u16, WireError> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    pub(crate) fn u32(&mut self) -> Result<u32, WireError> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, WireError> {
        Ok(u64::from_be_bytes(self.array()?))
    }

    pub(crate) const fn rest(&self) -> &'a [u8] {
        self.bytes
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(crate) const fn len(&self) -> usize {
        self.bytes.len()
    }
}

/// A span in whole microseconds, at most what 32 bits hold.
pub(crate) fn micros(d: Duration) -> u32 {
    d.as_micros().try_into().unwrap_or(u32::MAX)
}

/// Appends big-endian fields to a buffer.
pub(crate) trait Put {
    fn put_u8(&mut self, v: u8);
    fn put_u16(&mut self, v: u16);
    fn put_u32(&mut self, v: u32);
    fn put_u64(&mut self, v: u64);
    fn put(&mut self, v: &[u8]);
    /// Zero bytes until the length is a multiple of four, counted from `start`.
    fn pad_to_words(&mut self, start: usize);
}

impl Put for Vec<u8> {
    fn put_u8(&mut self, v: u8) {
        self.push(v);
    }
    fn put_u16(&mut self, v: u16) {
        self.extend_from_slice(&v.to_be_bytes());
    }
    fn put_u32(&mut self, v: u32) {
        self.extend_from_slice(&v.to_be_bytes());
    }
    fn put_u64(&mut self, v: u64) {
        self.extend_from_slice(&v.to_be_bytes());
    }
    fn put(&mut self, v: &[u8]) {
        self.extend_from_slice(v);
    }
    fn pad_to_words(&mut self, start: usize) {
        while !self.len().saturating_sub(start).is_multiple_of(4) {
            self.push(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_that_32_bits_cannot_hold_saturates() {
        assert_eq!(micros(Duration::from_nanos(5_000_999)), 5_000);
        assert_eq!(micros(Duration::MAX), u32::MAX);
    }
}
