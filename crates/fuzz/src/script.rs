//! An input as a list of what happens: numbers and pieces of bytes, one after another.

/// Reads an input from its beginning; numbers are big-endian.
#[derive(Clone, Copy, Debug)]
pub struct Script<'a>(&'a [u8]);

impl<'a> Script<'a> {
    /// From the beginning of `input`.
    pub const fn new(input: &'a [u8]) -> Script<'a> {
        Script(input)
    }

    /// Whether nothing is left.
    pub const fn is_over(&self) -> bool {
        self.0.is_empty()
    }

    /// The next byte; 0 behind the end.
    pub fn byte(&mut self) -> u8 {
        self.number(1) as u8
    }

    /// The number in the next `width` bytes, at most 8 of them; bytes behind the end are 0.
    pub fn number(&mut self, width: usize) -> u64 {
        let digits = self.take(width);
        let behind = core::iter::repeat_n(&0, width - digits.len());
        digits.iter().chain(behind).fold(0, |number, byte| number << 8 | u64::from(*byte))
    }

    /// The next `len` bytes, or what is left of them.
    pub fn take(&mut self, len: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// The next piece: a length in two bytes, and so many bytes behind the length, or what is left of them.
    pub fn piece(&mut self) -> &'a [u8] {
        let len = self.number(2);
        self.take(len as usize)
    }

    /// All that is left.
    pub const fn rest(&self) -> &'a [u8] {
        self.0
    }
}

/// Appends bytes behind their length: what [`Script::piece`] reads. Of more than 65,535 bytes the first are taken.
pub fn put_piece(bytes: &[u8], out: &mut Vec<u8>) {
    let len = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
    out.extend_from_slice(&len.to_be_bytes());
    out.extend_from_slice(&bytes[..usize::from(len)]);
}
