//! The addresses that a receiver takes senders from, where it does not take any.

use core::fmt;
use core::net::{IpAddr, SocketAddr};
use core::str::FromStr;

/// Addresses of senders: `192.0.2.7`, `192.0.2.7:5000`, `192.0.2.0/24`, `2001:db8::7`, `[2001:db8::7]:5000`,
/// `2001:db8::/32`. An IPv4 address that an IPv6 socket shows as `::ffff:192.0.2.7` is that IPv4 address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllowedSender {
    ip: IpAddr,
    /// Leading bits that must be the same: up to 32 or 128.
    bits: u8,
    /// `None`: any port.
    port: Option<u16>,
}

/// A text that names no addresses of senders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoSuchSender(String);

impl fmt::Display for NoSuchSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` is no address of a sender: give an IP address, IP:PORT ([IP]:PORT for IPv6) or a prefix as in 192.0.2.0/24",
            self.0
        )
    }
}

impl core::error::Error for NoSuchSender {}

impl AllowedSender {
    /// Whether that address is meant.
    pub fn allows(&self, from: SocketAddr) -> bool {
        let same = match (self.ip, from.ip().to_canonical()) {
            (IpAddr::V4(a), IpAddr::V4(b)) => (a.to_bits() ^ b.to_bits()).leading_zeros(),
            (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits() ^ b.to_bits()).leading_zeros(),
            _ => return false,
        };
        same >= self.bits.into() && self.port.is_none_or(|port| port == from.port())
    }
}

impl From<IpAddr> for AllowedSender {
    /// That address, from any port.
    fn from(ip: IpAddr) -> AllowedSender {
        let ip = ip.to_canonical();
        AllowedSender { ip, bits: if ip.is_ipv4() { 32 } else { 128 }, port: None }
    }
}

impl FromStr for AllowedSender {
    type Err = NoSuchSender;

    fn from_str(text: &str) -> Result<Self, NoSuchSender> {
        let wrong = || NoSuchSender(text.to_owned());
        let whole = |ip: IpAddr| if ip.is_ipv4() { 32 } else { 128 };
        if let Ok(at) = text.parse::<SocketAddr>() {
            let ip = at.ip().to_canonical();
            return Ok(AllowedSender { ip, bits: whole(ip), port: Some(at.port()) });
        }
        let (ip, bits) = match text.split_once('/') {
            None => (text, None),
            Some((ip, bits)) => (ip, Some(bits.parse::<u8>().map_err(|_| wrong())?)),
        };
        let ip: IpAddr = ip.parse().map_err(|_| wrong())?;
        // A prefix of a mapped address would mean bits of another length.
        let ip = if bits.is_none() { ip.to_canonical() } else { ip };
        let bits = bits.unwrap_or(whole(ip));
        if bits > whole(ip) { Err(wrong()) } else { Ok(AllowedSender { ip, bits, port: None }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_a_port_and_a_prefix_allow_what_they_say() {
        for (allowed, from, expected) in [
            ("192.0.2.7", "192.0.2.7:5000", true),
            ("192.0.2.7", "[::ffff:192.0.2.7]:5000", true),
            ("192.0.2.7", "192.0.2.8:5000", false),
            ("192.0.2.7:5000", "192.0.2.7:5000", true),
            ("192.0.2.7:5000", "192.0.2.7:5001", false),
            ("192.0.2.0/24", "192.0.2.255:1", true),
            ("192.0.2.0/24", "192.0.3.0:1", false),
            ("0.0.0.0/0", "203.0.113.1:1", true),
            ("0.0.0.0/0", "[2001:db8::1]:1", false),
            ("2001:db8::/32", "[2001:db8:ffff::1]:1", true),
            ("[2001:db8::1]:9", "[2001:db8::1]:9", true),
            ("2001:db8::1", "[2001:db8::2]:9", false),
        ] {
            let range: AllowedSender = allowed.parse().unwrap();
            assert_eq!(range.allows(from.parse().unwrap()), expected, "{allowed}: {from}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused_with_what_is_allowed() {
        for text in
            ["", "localhost", "192.0.2", "192.0.2.0/33", "2001:db8::/129", "192.0.2.0/24:5000", "192.0.2.7:70000"]
        {
            let error = text.parse::<AllowedSender>().unwrap_err().to_string();
            assert!(error.contains(text) && error.contains("192.0.2.0/24"), "{error}");
        }
    }
}
