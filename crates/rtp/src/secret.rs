//! The secrets that an attacker must not guess: challenge tokens, packet nonces, first sequence numbers.
//!
//! All come from one 128-bit key through SipHash-2-4 (Aumasson and Bernstein, 2012), so that a
//! receiver that has seen any number of nonces cannot compute the next; a simulation's generator
//! would give itself away. Nonces need not be stored: the sender computes them again when
//! feedback arrives.

use core::net::{IpAddr, SocketAddr};
use fairpace_units::RandomStream;

/// The session's 128-bit key. On a real network fill it from the system's generator.
#[derive(Clone, Copy)]
pub struct Secret(u64, u64);

/// The purpose of a value: one keyed function, disjoint inputs.
#[derive(Clone, Copy)]
#[repr(u64)]
pub(crate) enum Purpose {
    Ssrc = 1,
    FirstSequence,
    FirstTimestamp,
    Token,
    Nonce,
    RtcpTiming,
    PictureId,
    Cname,
    Place,
    ConsentTiming,
    Repair,
    Answers,
}

impl Secret {
    /// From 16 unguessable bytes.
    pub fn from_bytes(key: [u8; 16]) -> Self {
        let key = u128::from_le_bytes(key);
        Secret(key as u64, (key >> 64) as u64)
    }

    /// For tests and simulations: the same seed gives the same session.
    pub fn from_seed(seed: u64) -> Self {
        let mut stream = RandomStream::named(seed, "rtp.secret");
        Secret(stream.bits(), stream.bits())
    }

    /// 64 bits for the `n`-th value of this purpose in this stream.
    pub(crate) fn value(&self, purpose: Purpose, stream: u32, n: u64) -> u64 {
        siphash24(self.0, self.1, &[(purpose as u64) << 32 | u64::from(stream), n])
    }

    /// The number that goes to `address` alone, for one who wants the place of the `holder`-th sender with a stream of that SSRC.
    pub(crate) fn proof(&self, ssrc: u32, address: SocketAddr, holder: u64) -> u32 {
        let ip = match address.ip() {
            IpAddr::V4(ip) => ip.to_ipv6_mapped().to_bits(),
            IpAddr::V6(ip) => ip.to_bits(),
        };
        let purpose = (Purpose::Place as u64) << 32 | u64::from(ssrc);
        let words = [purpose, holder, (ip >> 64) as u64, ip as u64, address.port().into()];
        siphash24(self.0, self.1, &words) as u32
    }

    /// A canonical name that says nothing about the host, new for each session [RFC 7022 §4.2].
    pub(crate) fn cname(&self) -> String {
        format!("{:016x}", self.value(Purpose::Cname, 0, 0))
    }

    /// The nonce of a packet: 32 bits, written into its header extension, summed by the receiver.
    pub(crate) fn nonce(&self, ssrc: u32, sequence: u64) -> u32 {
        self.value(Purpose::Nonce, ssrc, sequence) as u32
    }
}

impl core::fmt::Debug for Secret {
    /// Never shows the key.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// SipHash-2-4 of whole 64-bit words.
fn siphash24(k0: u64, k1: u64, words: &[u64]) -> u64 {
    let mut v = [
        k0 ^ 0x736f_6d65_7073_6575,
        k1 ^ 0x646f_7261_6e64_6f6d,
        k0 ^ 0x6c79_6765_6e65_7261,
        k1 ^ 0x7465_6462_7974_6573,
    ];
    // The last block is the length in bytes in its top byte; whole words leave the rest zero.
    let length = (words.len() as u64 * 8) << 56;
    for &m in words.iter().chain([&length]) {
        v[3] ^= m;
        sip_round(&mut v);
        sip_round(&mut v);
        v[0] ^= m;
    }
    v[2] ^= 0xff;
    for _ in 0..4 {
        sip_round(&mut v);
    }
    v[0] ^ v[1] ^ v[2] ^ v[3]
}

fn sip_round(v: &mut [u64; 4]) {
    v[0] = v[0].wrapping_add(v[1]);
    v[1] = v[1].rotate_left(13) ^ v[0];
    v[0] = v[0].rotate_left(32);
    v[2] = v[2].wrapping_add(v[3]);
    v[3] = v[3].rotate_left(16) ^ v[2];
    v[0] = v[0].wrapping_add(v[3]);
    v[3] = v[3].rotate_left(21) ^ v[0];
    v[2] = v[2].wrapping_add(v[1]);
    v[1] = v[1].rotate_left(17) ^ v[2];
    v[2] = v[2].rotate_left(32);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_gives_its_authors_vector() {
        // The paper's key is 00..0f; of its reference vectors the one of 8 bytes 00..07 is 93f5f5799a932462.
        let key = Secret::from_bytes(core::array::from_fn(|i| i as u8));
        assert_eq!(siphash24(key.0, key.1, &[0x0706_0504_0302_0100]), 0x93f5_f579_9a93_2462);
    }

    #[test]
    fn the_same_seed_gives_the_same_nonces_and_another_packet_another_nonce() {
        let (a, b) = (Secret::from_seed(1), Secret::from_seed(1));
        assert_eq!(a.nonce(7, 1), b.nonce(7, 1));
        assert_ne!(a.nonce(7, 1), a.nonce(7, 2));
        assert_ne!(a.nonce(7, 1), a.nonce(8, 1));
        assert_eq!(format!("{a:?}"), "Secret(..)");
    }
}
