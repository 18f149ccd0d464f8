//! The Quick-Start option in the headers of real IP packets: found, read and rewritten in place.
//!
//! Source: RFC 4782 §3.1, §3.2, §12.1; checksum: RFC 1624, equation 3.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |  IPv4:   25   |    8          | Func. | Rate  |    QS TTL     |
//! |  IPv6: 0x26   |    6          |       |       |               |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                        QS Nonce                           | R |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```
//!
//! In IPv4 it stands among the header's options, in IPv6 in the Hop-by-Hop Options header, whose option
//! lengths do not count type and length. Whoever routes calls [`forward`]; whoever receives, [`parse`], or [`parse_options`] where a
//! socket gives the options and the TTL apart. A sender over RTP has the option on a challenge, and [`answer`] behind its echo.
//!
//! **Readings.** (a) Of several Quick-Start options in one header the first counts. (b) One with a function that
//! is neither request nor report is not ours, and passes as it is. (c) A header whose options do not add up is an
//! error; a router forwards such a packet without looking further. (d) The reserved bits stay as they came.
//!
//! **Not implemented.** Deleting the option, which the RFC allows instead of zeroing it.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

pub mod answer;

use crate::WireError;
use fairpace_units::{QsFunction, QsNonce, QsOption, QsRate};

/// The type of the IPv4 option: copy 0, class 0, number 25 [RFC 4782 §12.1].
pub const IPV4_OPTION: u8 = 25;
/// The type of the IPv6 option: skip if unknown, may change on the way, number 6 [RFC 4782 §12.1].
pub const IPV6_OPTION: u8 = 0x26;

/// Bytes of the option, type and length included: the same in both.
const OPTION: usize = 8;

/// The option as it stands in an IPv4 header. Its TTL is that header's, and not part of it.
pub fn ipv4_option(option: &QsOption) -> [u8; 8] {
    encode(IPV4_OPTION, 8, option)
}

/// The Hop-by-Hop Options header that carries the option and nothing else, in front of `next_header`.
pub fn ipv6_hop_by_hop(next_header: u8, option: &QsOption) -> [u8; 16] {
    let [a, b, c, d, e, f, g, h] = encode(IPV6_OPTION, 6, option);
    // 16 bytes are one unit of eight beyond the first. The last six are a PadN with four bytes of data.
    [next_header, 1, a, b, c, d, e, f, g, h, 1, 4, 0, 0, 0, 0]
}

fn encode(kind: u8, length: u8, option: &QsOption) -> [u8; 8] {
    let [a, b, c, d] = (option.nonce.get() << 2).to_be_bytes();
    [kind, length, (option.function as u8) << 4 | option.rate.code(), option.qs_ttl, a, b, c, d]
}

/// The Quick-Start option of the IP packet that begins with these bytes, and its TTL or hop limit. `None` if it
/// carries none. More than the headers need not be there.
///
/// # Errors
/// [`WireError`] if this is not an IP header, or if it is cut short, or if its options do not add up.
pub fn parse(packet: &[u8]) -> Result<Option<QsOption>, WireError> {
    Ok(find(packet)?.map(|found| found.option))
}

/// The options of an IP header that a socket hands out beside a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IpOptions<'a> {
    /// The part of an IPv4 header behind its first 20 bytes.
    V4(&'a [u8]),
    /// The whole Hop-by-Hop Options header of an IPv6 packet.
    V6(&'a [u8]),
}

/// The Quick-Start option among these options of a packet that arrived with that TTL or hop limit. `None` if there is none.
///
/// # Errors
/// [`WireError`] if the options do not add up, or the header of an IPv6 packet is cut short.
pub fn parse_options(options: IpOptions<'_>, ip_ttl: u8) -> Result<Option<QsOption>, WireError> {
    let (version, options) = match options {
        IpOptions::V4(options) => (Version::V4, options),
        IpOptions::V6(header) => {
            let end = (usize::from(byte(header, 1)?) << 3).saturating_add(8);
            (Version::V6, header.get(2..end).ok_or(short("a header of hop-by-hop options", end, header.len()))?)
        }
    };
    let Some(at) = version.quick_start_in(options)? else { return Ok(None) };
    Ok(decode(options.get(at..).unwrap_or_default(), ip_ttl))
}

/// Lets a router decide on the packet: `decide` gets its source and its option, TTL included, and what it makes
/// of rate, nonce and both TTLs is written back, with the checksum of an IPv4 header. A packet without the option is left as it is, its TTL
/// too: `None`.
///
/// The source is the IPv4 address, or the first half of the IPv6 one, since a host has the other half for itself.
///
/// # Errors
/// As [`parse`]; the packet is left as it is.
pub fn forward<R>(packet: &mut [u8], decide: impl FnOnce(u64, &mut QsOption) -> R) -> Result<Option<R>, WireError> {
    let Some(Found { version, at, option: before }) = find(packet)? else { return Ok(None) };
    let source = packet.get(version.source()).unwrap_or_default();
    let source = source.iter().fold(0, |all, byte| all << 8 | u64::from(*byte));
    let mut option = before;
    let answer = decide(source, &mut option);
    let changed = (before.nonce.get() ^ option.nonce.get()) << 2;
    let differs = [
        (version.ttl_at(), before.ip_ttl ^ option.ip_ttl),
        (at.saturating_add(2), before.rate.code() ^ option.rate.code()),
        (at.saturating_add(3), before.qs_ttl ^ option.qs_ttl),
    ];
    for (at, bits) in differs.into_iter().chain((at.saturating_add(4)..).zip(changed.to_be_bytes())) {
        version.flip(packet, at, bits);
    }
    Ok(Some(answer))
}

/// Whether the header checksum of an IPv4 packet is right [RFC 791 §3.1].
pub fn ipv4_checksum_holds(packet: &[u8]) -> bool {
    let length = packet.first().map_or(0, |first| usize::from(first & 0xf) << 2);
    packet.get(..length).is_some_and(|header| length >= 20 && sum(header) == 0xffff)
}

/// The ones' complement sum of 16-bit words.
fn sum(header: &[u8]) -> u16 {
    let words = header.chunks(2).map(|w| match w {
        [high, low] => u32::from(u16::from_be_bytes([*high, *low])),
        _ => 0,
    });
    fold(words.sum())
}

/// Adds the carries back in.
fn fold(sum: u32) -> u16 {
    // Neither sum has more than 17 bits.
    let once = (sum & 0xffff).wrapping_add(sum >> 16);
    (once & 0xffff).wrapping_add(once >> 16) as u16
}

/// A Quick-Start option and the offset at which it begins.
struct Found {
    version: Version,
    at: usize,
    option: QsOption,
}

fn find(packet: &[u8]) -> Result<Option<Found>, WireError> {
    let version = match byte(packet, 0)? >> 4 {
        4 => Version::V4,
        6 => Version::V6,
        found => return Err(WireError::Field { what: "IP version", found: u32::from(found), allowed: "4 or 6" }),
    };
    let Some((begin, options)) = version.options(packet)? else { return Ok(None) };
    let Some(at) = version.quick_start_in(options)? else { return Ok(None) };
    let option = decode(options.get(at..).unwrap_or_default(), byte(packet, version.ttl_at())?);
    Ok(option.map(|option| Found { version, at: begin.saturating_add(at), option }))
}

/// The option that begins with these bytes; `None` if its function is neither request nor report.
fn decode(bytes: &[u8], ip_ttl: u8) -> Option<QsOption> {
    let &[_, _, rate, qs_ttl, a, b, c, d] = bytes.first_chunk::<OPTION>()?;
    let function = match rate >> 4 {
        0 => QsFunction::Request,
        8 => QsFunction::Report,
        _ => return None,
    };
    Some(QsOption {
        function,
        rate: QsRate::from_code(rate & 0xf).unwrap_or_default(),
        qs_ttl,
        ip_ttl,
        nonce: QsNonce::new(u32::from_be_bytes([a, b, c, d]) >> 2),
    })
}

fn byte(packet: &[u8], at: usize) -> Result<u8, WireError> {
    packet.get(at).copied().ok_or(short("an IP header", at.saturating_add(1), packet.len()))
}

const fn short(what: &'static str, needed: usize, found: usize) -> WireError {
    WireError::Truncated { what, needed, found }
}

#[derive(Clone, Copy, PartialEq)]
enum Version {
    V4,
    V6,
}

impl Version {
    const fn ttl_at(self) -> usize {
        match self {
            Version::V4 => 8,
            Version::V6 => 7,
        }
    }

    const fn source(self) -> core::ops::Range<usize> {
        match self {
            Version::V4 => 12..16,
            Version::V6 => 8..16,
        }
    }

    /// The options that a router reads, and where they begin; `None` if there can be none.
    fn options(self, packet: &[u8]) -> Result<Option<(usize, &[u8])>, WireError> {
        let (begin, end) = match self {
            Version::V4 => {
                let words = byte(packet, 0)? & 0xf;
                if words < 5 {
                    let found = u32::from(words);
                    return Err(WireError::Field { what: "IPv4 header length", found, allowed: "5 to 15 words" });
                }
                (20, usize::from(words) << 2)
            }
            Version::V6 => {
                // A header of hop-by-hop options is the first if there is one [RFC 8200 §4.1].
                if byte(packet, 6)? != 0 {
                    return Ok(None);
                }
                (42, (usize::from(byte(packet, 41)?) << 3).saturating_add(48))
            }
        };
        match packet.get(begin..end) {
            Some(options) => Ok(Some((begin, options))),
            None => Err(short("an IP header", end, packet.len())),
        }
    }

    /// The offset of the first Quick-Start option among `options`.
    fn quick_start_in(self, options: &[u8]) -> Result<Option<usize>, WireError> {
        // How much longer an option is than it says.
        let (wanted, beyond) = match self {
            Version::V4 => (IPV4_OPTION, 0),
            Version::V6 => (IPV6_OPTION, 2),
        };
        let mut at = 0;
        while let Some(&kind) = options.get(at) {
            match (self, kind) {
                (Version::V4, 0) => return Ok(None), // the end of the list
                (Version::V4, 1) | (Version::V6, 0) => at = at.saturating_add(1), // padding of one byte
                _ => {
                    let said = byte(options, at.saturating_add(1))?;
                    let length = usize::from(said).saturating_add(beyond);
                    let end = at.saturating_add(length);
                    if length < 2 || (kind == wanted && length != OPTION) {
                        let allowed = if kind == wanted { "that of Quick-Start" } else { "2 or more" };
                        return Err(WireError::Field {
                            what: "length of an IP option",
                            found: u32::from(said),
                            allowed,
                        });
                    }
                    if end > options.len() {
                        return Err(short("an IP option", end, options.len()));
                    }
                    if kind == wanted {
                        return Ok(Some(at));
                    }
                    at = end;
                }
            }
        }
        Ok(None)
    }

    /// Turns over these bits of the byte at `at`, and corrects the checksum: HC' = ~(~HC + ~m + m')
    /// [RFC 1624, eq. 3], m and m' the word with the byte in it before and after.
    fn flip(self, packet: &mut [u8], at: usize, bits: u8) {
        let Some(byte) = packet.get_mut(at).filter(|_| bits != 0) else { return };
        *byte ^= bits;
        let after = *byte;
        if self == Version::V6 {
            return;
        }
        let Some([high, low]) = packet.get_mut(10..12) else { return };
        // The other byte of the word, which does not change, cancels out of ~m + m'.
        let word = |byte: u8| if at.is_multiple_of(2) { u16::from(byte) << 8 } else { byte.into() };
        let (m, m_new) = (word(after ^ bits), word(after));
        let checksum = u16::from_be_bytes([*high, *low]);
        let corrected = !fold([!checksum, !m, m_new].into_iter().map(u32::from).sum());
        [*high, *low] = corrected.to_be_bytes();
    }
}

#[cfg(test)]
mod tests;
