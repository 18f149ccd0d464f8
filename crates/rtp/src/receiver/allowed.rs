//! The addresses that a receiver takes senders from, where it does not take any.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, SocketAddr};
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
pub struct NoSuchSender {
    found: String,
    /// The address of a prefix has bits behind it: the network that it lies in, with the prefix's length.
    network: Option<(IpAddr, u8)>,
    /// An address or a port from which nothing ever comes.
    never: bool,
}

impl fmt::Display for NoSuchSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = &self.found;
        if let Some((ip, bits)) = self.network {
            let own = found.split('/').next().unwrap_or_default();
            return write!(
                f,
                "`{found}` has bits behind its prefix: give {ip}/{bits} for the network, or {own} for that address alone"
            );
        }
        if self.never {
            return write!(
                f,
                "nothing is sent from `{found}`: give the address that the sender has, without a port for any"
            );
        }
        write!(
            f,
            "`{found}` is no address of a sender: give an IP address, IP:PORT ([IP]:PORT for IPv6) or a prefix as in 192.0.2.0/24"
        )
    }
}

impl core::error::Error for NoSuchSender {}

impl AllowedSender {
    /// The address, or the first of the prefix.
    pub const fn ip(&self) -> IpAddr {
        self.ip
    }

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
        let wrong = || NoSuchSender { found: text.to_owned(), network: None, never: false };
        let never = || NoSuchSender { never: true, ..wrong() };
        let whole = |ip: IpAddr| if ip.is_ipv4() { 32 } else { 128 };
        if let Ok(at) = text.parse::<SocketAddr>() {
            let ip = at.ip().to_canonical();
            if sends_nothing(ip) || at.port() == 0 {
                return Err(never());
            }
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
        if bits > whole(ip) {
            return Err(wrong());
        }
        let network = network_of(ip, bits);
        if network != ip {
            return Err(NoSuchSender { network: Some((network, bits)), ..wrong() });
        }
        if ip.is_multicast() || (bits == whole(ip) && sends_nothing(ip)) {
            return Err(never());
        }
        Ok(AllowedSender { ip, bits, port: None })
    }
}

/// Whether an address is none that a datagram comes from.
fn sends_nothing(ip: IpAddr) -> bool {
    ip.is_unspecified() || ip.is_multicast() || ip == IpAddr::V4(Ipv4Addr::BROADCAST)
}

/// The address without the bits behind the first `bits`.
fn network_of(ip: IpAddr, bits: u8) -> IpAddr {
    let behind = |width: u32| width.saturating_sub(bits.into());
    match ip {
        IpAddr::V4(ip) => {
            let mask = u32::MAX.checked_shl(behind(u32::BITS)).unwrap_or(0);
            IpAddr::V4((ip.to_bits() & mask).into())
        }
        IpAddr::V6(ip) => {
            let mask = u128::MAX.checked_shl(behind(u128::BITS)).unwrap_or(0);
            IpAddr::V6((ip.to_bits() & mask).into())
        }
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
    fn a_prefix_with_bits_behind_it_is_refused_with_the_network_that_was_meant() {
        for (text, network, own) in [
            ("192.0.2.7/24", "192.0.2.0/24", "192.0.2.7 for"),
            ("192.0.2.7/0", "0.0.0.0/0", "192.0.2.7 for"),
            ("2001:db8::7/32", "2001:db8::/32", "2001:db8::7 for"),
            ("2001:db8::1/0", "::/0", "2001:db8::1 for"),
        ] {
            let error = text.parse::<AllowedSender>().unwrap_err().to_string();
            assert!(error.contains(&format!("give {network} ")) && error.contains(own), "{error}");
            assert!(network.parse::<AllowedSender>().is_ok(), "{network}");
        }
        assert!("192.0.2.7/32".parse::<AllowedSender>().is_ok());
    }

    #[test]
    fn an_address_from_which_nothing_comes_is_refused() {
        for text in [
            "0.0.0.0",
            "::",
            "224.0.0.1",
            "255.255.255.255",
            "192.0.2.7:0",
            "ff02::1",
            "[ff02::1]:9",
            "224.0.0.0/4",
            "ff00::/8",
        ] {
            let error = text.parse::<AllowedSender>().unwrap_err().to_string();
            assert!(error.contains(&format!("nothing is sent from `{text}`")), "{error}");
        }
        assert!(["0.0.0.0/0", "::/0", "0.0.0.0/8"].iter().all(|text| text.parse::<AllowedSender>().is_ok()));
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
