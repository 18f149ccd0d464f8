//! Forward error correction for RTP: FlexFEC [RFC 8627], repair packets in a stream of their own. Each is the XOR of
//! some media packets; a receiver that does not know the payload type loses nothing.
//!
//! - [`Encoder`] keeps the latest media packets and writes repair packets over a window that slides with them.
//! - [`Decoder`] takes media and repair packets in any order, from any sender of FlexFEC, and hands out what follows
//!   from them: linear equations over GF(2), solved as they come.
//! - [`Protection`] decides from loss, round trip and play-out delay how many repair packets, if any.
//!
//! None has a clock, randomness of its own, or memory that a peer can grow. Why XOR, why a sliding window, and how
//! much each protects: `docs/rtp/fec.md`.

mod decoder;
mod encoder;
mod header;
mod protection;
mod symbol;

pub use decoder::{Decoder, DecoderStats};
pub use encoder::{Encoder, Plan};
pub use header::{Cover, Header, Kind, MASK_BITS, MAX_HEADER, PAYLOAD_TYPE, emit_packet_header, protected_ssrc};
pub use protection::{Conditions, Decision, Protection, Reason};
pub use symbol::MAX_PACKET;
