//! The kernel's account of a TCP connection, and the orders that the kernel takes.
//!
//! `TCP_INFO` (progress, window, round trip, retransmissions), `SIOCOUTQ` (what is still in the send
//! buffer), the congestion control algorithm, the segment size and the window of one socket. Nothing
//! here changes the system's settings.
//!
//! Source: Linux, `include/uapi/linux/tcp.h` (`struct tcp_info`), tcp(7). The structure only ever grows at
//! its end, and an older kernel gives a shorter one: fields that it lacks are `None`.

use crate::NetError;
use fairpace_units::{Bytes, Duration, Rate};
use nix::errno::Errno;
use nix::sys::socket::{getsockopt, setsockopt, sockopt};
use std::ffi::OsString;
use std::os::fd::AsFd;

/// A connection's state towards congestion (`tcpi_ca_state`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum CaState {
    /// Nothing unusual.
    Open,
    /// Duplicate ACKs or SACKs; nothing declared lost yet.
    Disorder,
    /// The window was reduced after an ECN echo or a local drop.
    Cwr,
    /// Fast recovery.
    Recovery,
    /// After a retransmission timeout.
    Loss,
}

impl CaState {
    /// Its name as the kernel's sources write it, in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            CaState::Open => "open",
            CaState::Disorder => "disorder",
            CaState::Cwr => "cwr",
            CaState::Recovery => "recovery",
            CaState::Loss => "loss",
        }
    }

    const fn from_kernel(state: u8) -> CaState {
        match state {
            0 => CaState::Open,
            1 => CaState::Disorder,
            2 => CaState::Cwr,
            3 => CaState::Recovery,
            _ => CaState::Loss,
        }
    }
}

/// A connection as the kernel sees it at one instant.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TcpInfo {
    /// State towards congestion.
    pub ca_state: CaState,
    /// Whether the connection is up (`ESTABLISHED`, `CLOSE_WAIT` or a later state of closing that still sends).
    pub established: bool,
    /// Timestamps (RFC 7323) were agreed upon.
    pub timestamps: bool,
    /// Selective acknowledgements (RFC 2018) were agreed upon.
    pub sack: bool,
    /// Payload bytes of a full segment to send; options that each segment carries are taken off.
    pub mss: Bytes,
    /// Congestion window, segments.
    pub cwnd: u32,
    /// Slow-start threshold, segments; `None` while it is infinite.
    pub ssthresh: Option<u32>,
    /// Segments sent and not acknowledged.
    pub unacked: u32,
    /// Of these, segments that the receiver has selectively acknowledged.
    pub sacked: u32,
    /// Of these, segments taken for lost.
    pub lost: u32,
    /// Segments retransmitted and not acknowledged.
    pub retransmitted_out: u32,
    /// Segments retransmitted since the connection began.
    pub retransmitted: u32,
    /// Retransmission timeouts in a row, now.
    pub backoff: u8,
    /// Smoothed round-trip time; `None` before the first sample.
    pub srtt: Option<Duration>,
    /// Its mean deviation.
    pub rtt_var: Duration,
    /// Least round-trip time of the last minutes; `None` before the first sample.
    pub min_rtt: Option<Duration>,
    /// Retransmission timeout.
    pub rto: Duration,
    /// The path's MTU as this connection knows it (whole IP packets).
    pub path_mtu: Bytes,
    /// Payload bytes that the peer has acknowledged since the connection began; the side that connected counts its
    /// SYN as one more, and either its FIN.
    pub bytes_acked: Bytes,
    /// Payload bytes that arrived in order since the connection began.
    pub bytes_received: Bytes,
    /// Payload bytes written and not sent yet.
    pub not_sent: Bytes,
    /// Segments sent, of any kind.
    pub segments_out: u32,
    /// Segments received, of any kind.
    pub segments_in: u32,
    /// Segments with data sent, retransmissions included.
    pub data_segments_out: u32,
    /// Segments with data received.
    pub data_segments_in: u32,
    /// The kernel's pacing rate; `None` where it does not pace.
    pub pacing_rate: Option<Rate>,
    /// The kernel's latest sample of the rate of delivery (payload); `None` before the first.
    pub delivery_rate: Option<Rate>,
    /// Time in which there was data to send or to have acknowledged.
    pub busy: Duration,
    /// Of this, time in which the peer's window held it back.
    pub rwnd_limited: Duration,
    /// Of this, time in which its own send buffer held it back.
    pub sndbuf_limited: Duration,
    /// Payload bytes sent, retransmissions included (Linux 4.19).
    pub bytes_sent: Option<Bytes>,
    /// Of these, retransmitted (Linux 4.19).
    pub bytes_retransmitted: Option<Bytes>,
    /// The peer's window (Linux 5.4).
    pub peer_window: Option<Bytes>,
    /// Retransmission timeouts since the connection began, those of its beginning included (Linux 6.7).
    pub timeouts: Option<u64>,
}

/// The least that is of use: through `tcpi_sndbuf_limited` (Linux 4.10).
const LEAST_INFO: usize = 192;

impl TcpInfo {
    /// Congestion window in payload bytes.
    pub const fn cwnd_bytes(&self) -> Bytes {
        Bytes::new(self.cwnd as u64 * self.mss.get())
    }

    /// Reads the structure that the kernel wrote; `None` if it is shorter than any kernel we know writes.
    fn parse(raw: &[u8]) -> Option<TcpInfo> {
        if raw.len() < LEAST_INFO {
            return None;
        }
        let byte = |at: usize| raw.get(at).copied().unwrap_or(0);
        let u32_at = |at: usize| raw.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes);
        let u64_at = |at: usize| raw.get(at..at + 8)?.try_into().ok().map(u64::from_ne_bytes);
        let word = |at: usize| u32_at(at).unwrap_or(0);
        let long = |at: usize| u64_at(at).unwrap_or(0);
        let micros = |at: usize| Duration::from_micros(u64::from(word(at)));
        // Bytes per second; all ones: no limit, not known.
        let rate = |at: usize| match long(at) {
            0 | u64::MAX => None,
            bytes => Some(Rate::bps(bytes as f64 * 8.0)),
        };
        // TCP_ESTABLISHED 1, TCP_FIN_WAIT1 4, TCP_CLOSE_WAIT 8, TCP_LAST_ACK 9, TCP_CLOSING 11.
        let established = matches!(byte(0), 1 | 4 | 8 | 9 | 11);
        Some(TcpInfo {
            ca_state: CaState::from_kernel(byte(1)),
            established,
            timestamps: byte(5) & 1 != 0,
            sack: byte(5) & 2 != 0,
            mss: Bytes::new(u64::from(word(16))),
            cwnd: word(80),
            ssthresh: Some(word(76)).filter(|&s| s < 0x7fff_ffff),
            unacked: word(24),
            sacked: word(28),
            lost: word(32),
            retransmitted_out: word(36),
            retransmitted: word(100),
            backoff: byte(4),
            srtt: Some(micros(68)).filter(|d| !d.is_zero()),
            rtt_var: micros(72),
            min_rtt: Some(word(148)).filter(|&m| m != u32::MAX && m != 0).map(|m| Duration::from_micros(u64::from(m))),
            rto: micros(8),
            path_mtu: Bytes::new(u64::from(word(60))),
            bytes_acked: Bytes::new(long(120)),
            bytes_received: Bytes::new(long(128)),
            not_sent: Bytes::new(u64::from(word(144))),
            segments_out: word(136),
            segments_in: word(140),
            data_segments_out: word(156),
            data_segments_in: word(152),
            pacing_rate: rate(104),
            delivery_rate: rate(160),
            busy: Duration::from_micros(long(168)),
            rwnd_limited: Duration::from_micros(long(176)),
            sndbuf_limited: Duration::from_micros(long(184)),
            bytes_sent: u64_at(200).map(Bytes::new),
            bytes_retransmitted: u64_at(208).map(Bytes::new),
            peer_window: u32_at(228).map(|w| Bytes::new(u64::from(w))),
            timeouts: raw.get(240..242).and_then(|b| b.try_into().ok()).map(|b| u64::from(u16::from_ne_bytes(b))),
        })
    }
}

/// The kernel's account of a connection (`TCP_INFO`).
///
/// # Errors
/// [`NetError::Io`] if the socket is not TCP's, or the kernel is older than Linux 4.10.
pub fn tcp_info(socket: impl AsFd) -> Result<TcpInfo, NetError> {
    let mut raw = [0; 256];
    let len = ffi::tcp_info(socket.as_fd(), &mut raw).map_err(|e| NetError::io("read TCP_INFO", e))?;
    raw.get(..len).and_then(TcpInfo::parse).ok_or_else(|| NetError::io("read TCP_INFO", Errno::EOPNOTSUPP))
}

/// Payload bytes in the send buffer: not sent, or not acknowledged (`SIOCOUTQ`). Zero: all has arrived.
///
/// # Errors
/// [`NetError::Io`] if the socket is not TCP's, or only listens.
pub fn unsent_and_unacked(socket: impl AsFd) -> Result<Bytes, NetError> {
    let bytes = ffi::outq(socket.as_fd()).map_err(|e| NetError::io("read SIOCOUTQ", e))?;
    Ok(Bytes::new(u64::try_from(bytes).unwrap_or(0)))
}

/// Sets the congestion control algorithm of one socket (`TCP_CONGESTION`): `reno`, `cubic`, `bbr`, ...
/// Set it before connecting; on a listening socket, the connections it accepts inherit it.
///
/// # Errors
/// [`NetError::Config`] if this kernel has no such algorithm (or does not let everybody use it: the text says
/// which it has), [`NetError::Io`] otherwise.
pub fn set_algorithm(socket: impl AsFd, algorithm: &str) -> Result<(), NetError> {
    setsockopt(&socket.as_fd(), sockopt::TcpCongestion, &OsString::from(algorithm)).map_err(|e| match e {
        Errno::ENOENT | Errno::EPERM | Errno::EINVAL => NetError::Config {
            field: "TCP algorithm",
            found: format!("`{algorithm}`"),
            allowed: format!(
                "what this kernel has: {}{}",
                available_algorithms().join(", "),
                if e == Errno::EPERM {
                    " (this one only for root: net.ipv4.tcp_allowed_congestion_control)"
                } else {
                    ""
                }
            ),
        },
        e => NetError::io("set TCP_CONGESTION", e),
    })
}

/// The congestion control algorithm of one socket.
///
/// # Errors
/// [`NetError::Io`] if the socket is not TCP's.
pub fn algorithm(socket: impl AsFd) -> Result<String, NetError> {
    let name =
        getsockopt(&socket.as_fd(), sockopt::TcpCongestion).map_err(|e| NetError::io("read TCP_CONGESTION", e))?;
    // Linux pads the name with NULs.
    Ok(name.to_string_lossy().trim_end_matches('\0').to_owned())
}

/// The algorithms that are loaded on this machine.
pub fn available_algorithms() -> Vec<String> {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    text.unwrap_or_default().split_whitespace().map(str::to_owned).collect()
}

/// Limits the segments of one socket, before it connects or listens (`TCP_MAXSEG`): whole IPv4 packets without IP
/// options then have at most `segment` + 40 bytes, IPv6 ones `segment` + 60. TCP options that each segment
/// carries (timestamps: 12 bytes) count as part of the segment.
///
/// # Errors
/// [`NetError::Config`] outside the kernel's 88 to 32,767, [`NetError::Io`] otherwise.
pub fn set_max_segment(socket: impl AsFd, segment: Bytes) -> Result<(), NetError> {
    let bytes = u32::try_from(segment.get()).unwrap_or(u32::MAX);
    setsockopt(&socket.as_fd(), sockopt::TcpMaxSeg, &bytes).map_err(|e| match e {
        Errno::EINVAL => NetError::Config {
            field: "TCP segment size",
            found: format!("{} B", segment.get()),
            allowed: "88 to 32767 B (the kernel's limits of TCP_MAXSEG)".to_owned(),
        },
        e => NetError::io("set TCP_MAXSEG", e),
    })
}

/// Limits the window that a receiving socket offers, before it connects or listens (`TCP_WINDOW_CLAMP`).
/// The kernel offers whole segments, and never less than half of its smallest buffer.
///
/// # Errors
/// [`NetError::Io`] if the socket is not TCP's.
pub fn set_window(socket: impl AsFd, window: Bytes) -> Result<(), NetError> {
    let bytes = i32::try_from(window.get()).unwrap_or(i32::MAX);
    setsockopt(&socket.as_fd(), option::WindowClamp, &bytes).map_err(|e| NetError::io("set TCP_WINDOW_CLAMP", e))
}

/// Lets the socket become writable only while fewer than `bytes` are not sent yet (`TCP_NOTSENT_LOWAT`), so that
/// little waits in the kernel.
///
/// # Errors
/// [`NetError::Io`] if the socket is not TCP's.
pub fn set_not_sent_limit(socket: impl AsFd, bytes: Bytes) -> Result<(), NetError> {
    let bytes = i32::try_from(bytes.get()).unwrap_or(i32::MAX);
    setsockopt(&socket.as_fd(), option::NotSentLowWater, &bytes).map_err(|e| NetError::io("set TCP_NOTSENT_LOWAT", e))
}

/// Socket options that `nix` has no name for, made with its own macro.
mod option {
    use nix::libc;
    use nix::setsockopt_impl;
    use nix::sys::socket::sockopt::SetStruct;

    /// Most bytes a receiver offers.
    #[derive(Clone, Copy, Debug)]
    pub(super) struct WindowClamp;
    setsockopt_impl!(WindowClamp, libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, libc::c_int, SetStruct<libc::c_int>);

    /// Bytes not sent below which a socket is writable.
    #[derive(Clone, Copy, Debug)]
    pub(super) struct NotSentLowWater;
    setsockopt_impl!(NotSentLowWater, libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, libc::c_int, SetStruct<libc::c_int>);
}

/// Two system calls that no safe crate offers: `TCP_INFO` in the length that this kernel has (`nix` wants to know it
/// beforehand, and panics otherwise), and `SIOCOUTQ`.
#[allow(unsafe_code)]
mod ffi {
    use nix::errno::Errno;
    use nix::libc;
    use std::os::fd::{AsRawFd, BorrowedFd};

    /// Fills `raw` with `struct tcp_info`; gives how many bytes the kernel wrote.
    pub(super) fn tcp_info(socket: BorrowedFd<'_>, raw: &mut [u8; 256]) -> Result<usize, Errno> {
        let mut len: libc::socklen_t = 256;
        // SAFETY: the descriptor is borrowed, so open; `raw` is 256 writable bytes and `len` says so, the kernel
        // writes no more than that and puts the number written into `len`; any bytes are a valid `[u8; 256]`.
        let result = unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_INFO,
                raw.as_mut_ptr().cast(),
                &raw mut len,
            )
        };
        Errno::result(result)?;
        Ok(usize::try_from(len).unwrap_or(0).min(raw.len()))
    }

    /// Bytes in the send queue.
    pub(super) fn outq(socket: BorrowedFd<'_>) -> Result<libc::c_int, Errno> {
        let mut bytes: libc::c_int = 0;
        // SAFETY: the descriptor is borrowed, so open; this request (SIOCOUTQ has TIOCOUTQ's number) writes one
        // `int` to where the pointer says, which is `bytes`.
        let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
        Errno::result(result)?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let a = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (b, _) = listener.accept().unwrap();
        (a, b)
    }

    #[test]
    fn the_kernels_account_of_a_connection_counts_what_was_written() {
        let (mut a, mut b) = pair();
        let before = tcp_info(&a).unwrap();
        assert!(before.established);
        // Its SYN.
        assert_eq!(before.bytes_acked, Bytes::new(1));
        a.write_all(&[7; 10_000]).unwrap();
        b.read_exact(&mut [0; 10_000]).unwrap();
        // Its acknowledgement may be delayed; it comes.
        for _ in 0..500 {
            if unsent_and_unacked(&a).unwrap() == Bytes::ZERO {
                break;
            }
            std::thread::park_timeout(std::time::Duration::from_millis(10));
        }
        let after = tcp_info(&a).unwrap();
        assert_eq!(after.bytes_acked, Bytes::new(10_001));
        assert_eq!((after.unacked, after.not_sent), (0, Bytes::ZERO));
        assert!(after.cwnd >= 2 && after.mss.get() > 0 && after.srtt.is_some());
        assert_eq!(tcp_info(&b).unwrap().bytes_received, Bytes::new(10_000));
    }

    #[test]
    fn what_nobody_reads_stays_in_the_send_buffer() {
        let (a, b) = pair();
        a.set_nonblocking(true).unwrap();
        let mut written = 0;
        while let Ok(n) = (&a).write(&[0; 65_536]) {
            written += n as u64;
        }
        let waiting = unsent_and_unacked(&a).unwrap();
        assert!(waiting > Bytes::ZERO && waiting <= Bytes::new(written));
        drop(b);
    }

    #[test]
    fn an_algorithm_is_set_and_an_unknown_one_is_refused_with_those_there_are() {
        let (a, _b) = pair();
        set_algorithm(&a, "reno").unwrap();
        assert_eq!(algorithm(&a).unwrap(), "reno");
        let error = set_algorithm(&a, "vegas-of-ours").unwrap_err().to_string();
        assert!(error.contains("reno"), "{error}");
        let datagrams = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        assert!(tcp_info(&datagrams).is_err());
    }

    #[test]
    fn segments_are_as_large_as_said() {
        let listener = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        set_max_segment(&listener, Bytes::new(960)).unwrap();
        listener.bind(&std::net::SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
        listener.listen(1).unwrap();
        let address = listener.local_addr().unwrap().as_socket().unwrap();
        let a = TcpStream::connect(address).unwrap();
        let info = tcp_info(&a).unwrap();
        // Timestamps take 12 bytes of each segment.
        assert_eq!(info.mss, Bytes::new(if info.timestamps { 948 } else { 960 }));
        assert!(set_max_segment(&listener, Bytes::new(40)).is_err());
    }

    #[test]
    fn a_shorter_structure_of_an_older_kernel_is_read_as_far_as_it_goes() {
        let mut raw = [0; 232];
        raw[80] = 10;
        raw[120] = 5;
        raw[200] = 9;
        let whole = TcpInfo::parse(&raw).unwrap();
        assert_eq!((whole.cwnd, whole.bytes_acked, whole.bytes_sent), (10, Bytes::new(5), Some(Bytes::new(9))));
        assert_eq!(TcpInfo::parse(&raw[..192]).unwrap().bytes_sent, None);
        assert_eq!(TcpInfo::parse(&raw[..191]), None);
    }
}
