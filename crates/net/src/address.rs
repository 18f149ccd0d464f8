//! Addresses: `HOST:PORT` as people write it (names, IPv4, IPv6 in brackets with a zone), and what follows from one.

use crate::NetError;
use fairpace_units::Bytes;
use std::net::{IpAddr, SocketAddr, SocketAddrV6, ToSocketAddrs};

/// The addresses to listen on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Family {
    /// Both, on one socket; IPv4 alone where the machine has no IPv6.
    #[default]
    Any,
    /// IPv4 only.
    V4,
    /// IPv6 only.
    V6,
}

impl Family {
    /// Whether this family may use the address.
    pub const fn admits(self, address: &SocketAddr) -> bool {
        match self {
            Family::Any => true,
            Family::V4 => address.is_ipv4(),
            Family::V6 => address.is_ipv6(),
        }
    }
}

/// The addresses of `HOST:PORT`, of the wanted family, in the resolver's order.
///
/// # Errors
/// [`NetError::BadAddress`] if it is not of that form, [`NetError::Resolve`] if the name has no
/// address of the family.
///
/// ```
/// use fairpace_net::{Family, resolve};
/// assert_eq!(resolve("[::1]:5004", Family::Any)?[0], "[::1]:5004".parse().unwrap());
/// assert!(resolve("::1:5004", Family::Any).unwrap_err().to_string().contains("brackets"));
/// # Ok::<(), fairpace_net::NetError>(())
/// ```
pub fn resolve(text: &str, family: Family) -> Result<Vec<SocketAddr>, NetError> {
    let bad = |reason: &str| NetError::BadAddress { found: text.to_owned(), reason: reason.to_owned() };
    let (host, port) = text.rsplit_once(':').ok_or_else(|| bad("it has no port"))?;
    if !port.bytes().all(|b| b.is_ascii_digit()) || port.is_empty() {
        return Err(bad("the port is not a number"));
    }
    let port: u16 = port.parse().map_err(|_| bad("the port is above 65535"))?;
    if port == 0 {
        return Err(bad("port 0 cannot be sent to"));
    }
    let found = if let Some(inner) = host.strip_prefix('[') {
        let inner = inner.strip_suffix(']').ok_or_else(|| bad("the bracket is not closed"))?;
        vec![SocketAddr::V6(ipv6(inner, port).ok_or_else(|| bad("what stands in brackets is not an IPv6 address"))?)]
    } else if host.contains(':') {
        return Err(bad("an IPv6 address must stand in brackets"));
    } else if host.is_empty() {
        return Err(bad("it has no host"));
    } else {
        let unknown = |reason: String| NetError::Resolve { host: host.to_owned(), reason };
        (host, port).to_socket_addrs().map_err(|e| unknown(e.to_string()))?.collect()
    };
    let wanted: Vec<SocketAddr> = found.into_iter().filter(|a| family.admits(a)).collect();
    if wanted.is_empty() {
        let reason = match family {
            Family::V4 => "it has no IPv4 address",
            Family::V6 => "it has no IPv6 address",
            Family::Any => "it has no address",
        };
        return Err(NetError::Resolve { host: host.to_owned(), reason: reason.to_owned() });
    }
    Ok(wanted)
}

/// An IPv6 address, perhaps with the zone that link-local ones need: `fe80::1%eth0`, `fe80::1%2`.
fn ipv6(text: &str, port: u16) -> Option<SocketAddrV6> {
    let (ip, zone) = text.split_once('%').map_or((text, None), |(ip, zone)| (ip, Some(zone)));
    let scope = match zone {
        None => 0,
        Some(zone) => zone.parse().ok().or_else(|| nix::net::if_::if_nametoindex(zone).ok())?,
    };
    Some(SocketAddrV6::new(ip.parse().ok()?, port, 0, scope))
}

/// Refuses to pass packets on to the port of this machine at which they come in. `field` names `to` in the error.
///
/// # Errors
/// [`NetError::Config`]: `to` is on this machine, at the port of `listening`.
pub fn elsewhere(field: &'static str, to: SocketAddr, listening: SocketAddr) -> Result<(), NetError> {
    if canonical(to).ip().is_loopback() && to.port() == listening.port() {
        let allowed = "another port than the one that is listened on".to_owned();
        return Err(NetError::Config { field, found: to.to_string(), allowed });
    }
    Ok(())
}

/// IP and UDP headers in front of what is sent to `peer`: 28 B over IPv4, 48 B over IPv6.
pub fn ip_overhead(peer: &SocketAddr) -> Bytes {
    Bytes::new(if peer.is_ipv4() { 28 } else { 48 })
}

/// IPv4 as IPv4, also when it was written or received as an IPv6-mapped address.
pub(crate) fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        IpAddr::V4(ip) => SocketAddr::from((ip, address.port())),
        IpAddr::V6(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_read_as_people_write_them() {
        let one = |t: &str| resolve(t, Family::Any).map(|a| a[0].to_string());
        assert_eq!(one("127.0.0.1:5004").unwrap(), "127.0.0.1:5004");
        assert_eq!(one("[2001:db8::1]:5004").unwrap(), "[2001:db8::1]:5004");
        assert_eq!(one("[fe80::1%lo]:5004").unwrap(), "[fe80::1%1]:5004");
        assert!(resolve("localhost:5004", Family::V4).unwrap().iter().all(SocketAddr::is_ipv4));
    }

    #[test]
    fn what_is_wrong_with_an_address_is_said() {
        for (text, reason) in [
            ("example.org", "no port"),
            ("127.0.0.1:", "not a number"),
            ("127.0.0.1:٥", "not a number"),
            ("127.0.0.1:+5", "not a number"),
            ("127.0.0.1:65536", "above 65535"),
            ("127.0.0.1:0", "port 0"),
            (":5004", "no host"),
            ("::1:5004", "brackets"),
            ("[::1:5004", "not closed"),
            ("[127.0.0.1]:5004", "not an IPv6"),
            ("[fe80::1%nosuch]:5004", "not an IPv6"),
        ] {
            let error = resolve(text, Family::Any).unwrap_err();
            assert!(error.to_string().contains(reason), "{error}");
            assert!(error.to_string().contains(text), "{error}");
            assert!(matches!(error, NetError::BadAddress { .. }), "{error:?}");
        }
        let error = resolve("127.0.0.1:5004", Family::V6).unwrap_err();
        assert!(error.to_string().contains("no IPv6"), "{error}");
        assert!(matches!(error, NetError::Resolve { .. }), "{error:?}");
    }
}
