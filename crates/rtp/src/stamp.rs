//! The sender's RTT and the time sent, in each media packet of a receiver that measures ([`crate::feedback::rtp_tfrc`]).

use fairpace_units::Duration;

/// Bytes of the extension's value.
pub const STAMP_LEN: usize = 7;

/// The stamp of each media packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The sender's RTT, 24 bits of µs; 0: none is known yet.
    pub rtt: u32,
    /// When the packet was sent, µs of the sender's clock modulo 2^32.
    pub sent: u32,
}

/// The largest RTT that the extension can say: 16.7 s.
const MOST_RTT: u32 = 0x00ff_ffff;

impl Stamp {
    /// `sent`: µs of the sender's clock, modulo 2^32.
    pub fn new(rtt: Option<Duration>, sent: u32) -> Self {
        // A known RTT is never told as zero: a peer takes that for "none", and cannot bear to lose one it had.
        Stamp { rtt: rtt.map_or(0, |r| r.as_micros().clamp(1, MOST_RTT.into()) as u32), sent }
    }

    /// The RTT, if one is known.
    pub fn rtt(self) -> Option<Duration> {
        (self.rtt > 0).then(|| Duration::from_micros(self.rtt.into()))
    }

    pub(crate) const fn from_wire(v: [u8; STAMP_LEN]) -> Self {
        let [a, b, c, d, e, f, g] = v;
        Stamp { rtt: u32::from_be_bytes([0, a, b, c]), sent: u32::from_be_bytes([d, e, f, g]) }
    }

    pub(crate) const fn to_wire(self) -> [u8; STAMP_LEN] {
        let [_, a, b, c] = self.rtt.to_be_bytes();
        let [d, e, f, g] = self.sent.to_be_bytes();
        [a, b, c, d, e, f, g]
    }
}
