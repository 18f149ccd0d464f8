//! The errors of the network, each with the fault that was found and its remedy.

use fairpace_units::{Duration, format_duration};
use std::net::SocketAddr;

/// An error of a sender, receiver or relay. [`NetError::hint`] is the remedy.
#[derive(Debug, thiserror::Error)]
pub enum NetError {
    /// `HOST:PORT` could not be read.
    #[error("`{found}` is not HOST:PORT: {reason}")]
    BadAddress {
        /// The text as given.
        found: String,
        /// The fault that was found.
        reason: String,
    },
    /// A file holds no key that may be used.
    #[error("{found}")]
    KeyFile {
        /// The file and its fault.
        found: String,
        /// The remedy; empty if none is known.
        remedy: String,
    },
    /// The name has no address (of the wanted family).
    #[error("cannot resolve `{host}`: {reason}")]
    Resolve {
        /// The host as given.
        host: String,
        /// The resolver's message.
        reason: String,
    },
    /// Another program holds the port.
    #[error("UDP port {port} is in use on {address}", port = .address.port(), address = .address.ip())]
    PortInUse {
        /// The address asked for.
        address: SocketAddr,
    },
    /// The address is not one of this machine's.
    #[error("{address} is not an address of this machine")]
    NoSuchLocalAddress {
        /// The address asked for.
        address: SocketAddr,
    },
    /// The kernel forbids it.
    #[error("no permission to {what}")]
    Denied {
        /// The action that was tried.
        what: String,
    },
    /// Nothing ever came back from the peer.
    #[error("{peer} did not answer within {} ({detail})", format_duration(*.waited))]
    PeerUnreachable {
        /// Whom we asked.
        peer: SocketAddr,
        /// How long we waited.
        waited: Duration,
        /// The network's message, if there was one.
        detail: String,
    },
    /// The peer's address answered, and never with what the key opens.
    #[error("{peer} gave no answer that the key opens: {datagrams} datagrams came from there in {}, none sealed with it", format_duration(*.waited))]
    NoCommonKey {
        /// Whom we asked.
        peer: SocketAddr,
        /// Datagrams from that address.
        datagrams: u64,
        /// How long we waited.
        waited: Duration,
    },
    /// The peer has another sender, and serves one at a time.
    #[error("{peer} is busy: it serves another sender, and one at a time")]
    PeerBusy {
        /// Whom we asked.
        peer: SocketAddr,
    },
    /// The peer has ended, with the session of another sender, while this one waited.
    #[error("{peer} has ended, with the session of another sender")]
    PeerEnded {
        /// Whom we asked.
        peer: SocketAddr,
    },
    /// A receiver waited for a sender.
    #[error("no sender came to UDP port {port} within {}", format_duration(*.waited))]
    NoSender {
        /// Where we listened.
        port: u16,
        /// How long.
        waited: Duration,
    },
    /// The peer answered once, and then fell silent.
    #[error("{peer} has vanished: {detail}")]
    PeerVanished {
        /// The peer's address.
        peer: SocketAddr,
        /// How that was seen.
        detail: String,
    },
    /// The controller needs a TCP connection beside the datagrams.
    #[error("{peer} answers by UDP, but not by TCP: {detail}")]
    NoTcpHalf {
        /// The peer's address.
        peer: SocketAddr,
        /// The network's message.
        detail: String,
    },
    /// The TCP port of a flow that has two halves is taken.
    #[error("TCP port {port} is in use on {address}", port = .address.port(), address = .address.ip())]
    TcpPortInUse {
        /// The address asked for.
        address: SocketAddr,
    },
    /// This machine did not let most of the packets out.
    #[error("{not_sent} of {packets} packets to {peer} did not leave this machine: {detail}")]
    NotSent {
        /// To whom.
        peer: SocketAddr,
        /// Packets that the kernel did not take.
        not_sent: u64,
        /// All packets of the session.
        packets: u64,
        /// The kernel's reasons, with their counts.
        detail: String,
    },
    /// The peer answered, and told of no packet of the session.
    #[error("{peer} answers, but has told of none of the {packets} packets that left in {}", format_duration(*.elapsed))]
    NothingArrived {
        /// To whom.
        peer: SocketAddr,
        /// Packets of the session that it would tell of.
        packets: u64,
        /// Since the first of them.
        elapsed: Duration,
    },
    /// The session came to its end, and the receiver had told of none of its last packets.
    #[error("{peer} has told of none of the last {packets} packets, which left in {}: whether they arrived is not known", format_duration(*.silence))]
    Untold {
        /// To whom.
        peer: SocketAddr,
        /// Packets that it would have told of.
        packets: u64,
        /// Since the first of them.
        silence: Duration,
    },
    /// The peer's feedback cannot be true.
    #[error("{peer} sends feedback that cannot be true: {detail}")]
    PeerLies {
        /// The peer's address.
        peer: SocketAddr,
        /// The peer's false claim.
        detail: String,
    },
    /// The circuit breaker stopped the flow [RFC 8083].
    #[error("the circuit breaker stopped the flow to {peer}: {reason}")]
    Breaker {
        /// To whom.
        peer: SocketAddr,
        /// The broken condition, with its numbers.
        reason: String,
    },
    /// The controller does not exist or has a wrong setting.
    #[error(transparent)]
    Control(#[from] fairpace_control::ParamError),
    /// The media source or sink failed.
    #[error(transparent)]
    Media(#[from] fairpace_media::MediaError),
    /// A parameter is out of range.
    #[error("`{field}` is {found}; allowed: {allowed}")]
    Config {
        /// Its name.
        field: &'static str,
        /// The value as given.
        found: String,
        /// The values that are allowed.
        allowed: String,
    },
    /// The operating system refused something that should work.
    #[error("cannot {what}: {source}")]
    Io {
        /// The action that was tried.
        what: &'static str,
        /// The system's message.
        source: std::io::Error,
    },
}

impl NetError {
    /// An operating-system error while doing `what`.
    pub(crate) fn io(what: &'static str, source: impl Into<std::io::Error>) -> NetError {
        NetError::Io { what, source: source.into() }
    }

    /// The remedy, as far as the user has one.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            NetError::BadAddress { .. } => {
                "write `example.org:5004`, `192.0.2.1:5004` or `[2001:db8::1]:5004`".to_owned()
            }
            NetError::KeyFile { remedy, .. } => return Some(remedy.clone()).filter(|text| !text.is_empty()),
            NetError::Resolve { .. } => "check the name, or give the address itself".to_owned(),
            NetError::PortInUse { address } => format!(
                "stop the other program (`ss -lunp 'sport = :{0}'` names it) or take another port, such as {1}",
                address.port(),
                address.port().checked_add(2).unwrap_or(5004)
            ),
            NetError::NoSuchLocalAddress { .. } => "`ip address` lists this machine's addresses".to_owned(),
            NetError::Denied { what } if what.contains("Quick-Start") => {
                "run it as root, or give the program the capability (`setcap cap_net_raw+ep PROGRAM`); without the option everything else works".to_owned()
            }
            NetError::Denied { .. } => {
                "ports below 1024 need a privilege: take one above; a firewall rule may forbid sending".to_owned()
            }
            NetError::PeerUnreachable { peer, .. } => format!(
                "is `fairpace receive {0}` running on {1}, does the firewall let UDP port {0} in and out, has it the same `--key-file` as this end (or none, as this end), and does its `--from` let this end in?",
                peer.port(),
                peer.ip()
            ),
            NetError::NoCommonKey { .. } => {
                "it seems that the receiver has no key, or another one (who forges its address could make it seem so): start it with the same `--key-file`".to_owned()
            }
            NetError::PeerBusy { peer } => format!(
                "wait for the other sender to end, with `--restart`; a receiver ends with its sender unless it serves several (`fairpace receive --sessions forever`). Or start a second receiver there, as with `fairpace receive {0}`, and send to port {0}",
                peer.port().checked_add(2).unwrap_or(5004)
            ),
            NetError::PeerEnded { peer } => format!(
                "`fairpace receive {} --sessions forever` serves one sender after the other; `send --restart` asks again after 15 s, and goes on if the receiver was started again by then",
                peer.port()
            ),
            NetError::NoTcpHalf { peer, .. } => format!(
                "the receiver needs its TCP half (`fairpace receive {0} --tcp`, or a FlowSocket), and the firewall must let TCP port {0} in as it does UDP port {0}",
                peer.port()
            ),
            NetError::TcpPortInUse { address } => format!(
                "stop the other program (`ss -ltnp 'sport = :{0}'` names it) or take another port, such as {1}",
                address.port(),
                address.port().checked_add(2).unwrap_or(5004)
            ),
            NetError::NoSender { port, .. } => {
                format!("start `fairpace send ... HOST:{port}` on the other machine; does the firewall let it in?")
            }
            NetError::PeerVanished { .. } => {
                "it ended without a goodbye, or the path is down; start again when it answers, or send with `--restart`".to_owned()
            }
            NetError::NotSent { .. } => {
                "look at the device, the route and the firewall of this machine (`ip route get HOST`, `ip link`), or send smaller packets with `--packet-size`".to_owned()
            }
            NetError::NothingArrived { .. } => {
                "small packets pass and media do not, or the feedback is lost: look at the firewalls and the MTU on the way, or send smaller packets with `--packet-size`".to_owned()
            }
            NetError::Untold { .. } => {
                "the path or the receiver was down at the end: the receiver's summary says what it has; send the rest again".to_owned()
            }
            NetError::PeerLies { .. } => "the receiver is faulty or hostile: do not send to it".to_owned(),
            NetError::Breaker { .. } => {
                "at this loss and round trip the rate is far above what TCP would get: use a controller that adapts (`rcs`, `rap`), or a lower `--max-rate`; to go on, start again by hand, or send with `--restart`, which asks the receiver again after 15 s".to_owned()
            }
            NetError::Media(e) => return fairpace_media::Hint::hint(e),
            NetError::Control(e) => return e.hint(),
            NetError::Config { .. } | NetError::Io { .. } => return None,
        })
    }
}
