//! The kinds of media.

/// The encoding of the media stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum Codec {
    /// Frames of unknown content, with a one-byte descriptor.
    #[default]
    Generic = 0,
    /// VP8 [RFC 7741].
    Vp8 = 1,
}

impl Codec {
    pub(crate) const fn from_wire(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Codec::Generic),
            1 => Some(Codec::Vp8),
            _ => None,
        }
    }

    /// Default payload type of the media stream.
    pub const fn payload_type(self) -> u8 {
        match self {
            Codec::Vp8 => 96,
            Codec::Generic => 97,
        }
    }
}
