//! A UDP socket that knows about marks, times and failures.
//!
//! What it adds to the operating system's: DSCP and ECN of each packet on the way out and in
//! (so that two classes share one socket), the kernel's receive stamp on the run's clock, packets
//! the kernel dropped because we were slow apart from those the path lost, buffer sizes asked and
//! granted, no fragmentation by us, batches of one class (GSO), and every failure as a value.
//!
//! IPv4-mapped peers of a dual-stack socket need the IPv4 TOS message, real IPv6 peers the traffic
//! class; addresses are mapped and unmapped here, so that callers only ever see `192.0.2.1`.

use crate::address::canonical;
use crate::{Clock, NetError};
use fairpace_units::{Bytes, Dscp, Duration, Ecn, Instant};
use nix::cmsg_space;
use nix::errno::Errno;
use nix::libc;
use nix::sys::eventfd::EventFd;
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, SockaddrStorage, getsockopt, recvmsg, sendmsg, setsockopt, sockopt,
};
use nix::sys::time::TimeSpec;
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{IoSlice, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::Arc;

/// How a packet is marked on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Mark {
    /// The code point: what class it is.
    pub dscp: Dscp,
    /// The ECN field.
    pub ecn: Ecn,
}

impl Mark {
    /// The TOS or traffic-class byte.
    pub const fn tos(self) -> u8 {
        self.dscp.tos(self.ecn)
    }

    /// From a TOS or traffic-class byte.
    pub const fn from_tos(tos: u8) -> Mark {
        Mark { dscp: Dscp::from_tos(tos), ecn: Ecn::from_bits(tos) }
    }
}

/// Which addresses to listen on.
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

/// Socket buffers to ask for. The kernel grants at most `net.core.{r,w}mem_max`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Buffers {
    /// For packets that have come and not been read.
    pub receive: Bytes,
    /// For packets that wait for the device.
    pub send: Bytes,
}

impl Default for Buffers {
    /// 1 MiB each way: at 10 Mbit/s that is 0.8 s of a stopped process.
    fn default() -> Self {
        Buffers { receive: Bytes::new(1 << 20), send: Bytes::new(1 << 20) }
    }
}

/// What the kernel granted, beside what was asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Granted {
    /// What was asked.
    pub asked: Buffers,
    /// What there is. (The kernel keeps twice that, for its own bookkeeping; this is the half
    /// that was asked for.)
    pub granted: Buffers,
}

impl Granted {
    /// Both as large as asked.
    pub fn in_full(&self) -> bool {
        self.granted.receive >= self.asked.receive && self.granted.send >= self.asked.send
    }
}

/// What became of one packet. Whatever is not [`SendOutcome::Sent`] has not left: nobody may count
/// it, and no controller gets credit for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SendOutcome {
    /// The kernel took it.
    Sent,
    /// Larger than the path carries in one piece, which is this if the kernel knows it (IP packet
    /// size). Send smaller ones.
    TooLarge {
        /// The path's MTU.
        mtu: Option<Bytes>,
    },
    /// The peer's machine said that nobody listens (an ICMP message about an earlier packet).
    /// Forgeable: several, and no feedback, before it means anything.
    Refused,
    /// No route, or the interface is down. Try again later.
    Unreachable,
    /// The kernel has no room (`EAGAIN`, `ENOBUFS`, `ENOMEM`). Try again after a [`Backoff`].
    Busy,
    /// A firewall rule of this machine forbids it.
    Denied,
    /// Something else; the number is the operating system's.
    Failed(Errno),
}

/// What a read found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecvOutcome {
    /// A datagram.
    Packet(Received),
    /// Nothing there.
    Empty,
    /// No datagram, but the news that nobody listens at the peer's port.
    Refused,
    /// Something else; the number is the operating system's.
    Failed(Errno),
}

/// A datagram that was read into the caller's buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Received {
    /// How many bytes of the buffer it fills.
    pub len: usize,
    /// Where it came from; IPv4 as IPv4.
    pub from: SocketAddr,
    /// How it was marked when it arrived.
    pub mark: Mark,
    /// When the kernel got it.
    pub at: Instant,
    /// It was longer than the buffer: the rest is gone.
    pub truncated: bool,
}

/// Everything that happened on a socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SocketCounters {
    /// Packets the kernel took.
    pub sent: u64,
    /// Their UDP payload bytes.
    pub sent_bytes: u64,
    /// Of `sent`, those that left in a batch of several.
    pub batched: u64,
    /// Batches that the kernel refused to segment; after the first, packets go one by one.
    pub batch_failures: u64,
    /// Not sent: larger than the path's MTU.
    pub too_large: u64,
    /// Not sent, or nothing read: nobody listens at the peer.
    pub refused: u64,
    /// Not sent: no route.
    pub unreachable: u64,
    /// Not sent: no room in the kernel.
    pub busy: u64,
    /// Not sent: forbidden by this machine.
    pub denied: u64,
    /// Not sent: anything else.
    pub failed: u64,
    /// Datagrams read.
    pub received: u64,
    /// Their UDP payload bytes.
    pub received_bytes: u64,
    /// Read, but longer than the buffer.
    pub truncated: u64,
    /// Arrived at this machine and dropped by its kernel, because the socket buffer was full: our
    /// slowness, not the path's loss.
    pub kernel_drops: u64,
}

/// What the drivers need of a socket. A trait so that a test can put one that fails in its place.
pub trait DatagramIo {
    /// Sends one datagram to the connected peer, or to `to`.
    fn send(&mut self, to: Option<SocketAddr>, bytes: &[u8], mark: Mark) -> SendOutcome;
    /// Sends `bytes` as datagrams of `segment` bytes each (the last may be shorter), all marked
    /// alike; gives how many left, and what became of the first that did not.
    fn send_batch(&mut self, to: Option<SocketAddr>, bytes: &[u8], segment: usize, mark: Mark) -> (usize, SendOutcome);
    /// Reads one datagram, without waiting.
    fn recv(&mut self, buffer: &mut [u8]) -> RecvOutcome;
    /// What to wait on.
    fn descriptor(&self) -> BorrowedFd<'_>;
    /// Becomes readable when another thread has news for the socket's driver: frames to send, or room for some. The frames'
    /// source or sink clears the descriptor. `None`: there is no other thread.
    fn wake(&self) -> Option<BorrowedFd<'_>> {
        None
    }
    /// The address of this machine that datagrams to the connected peer leave from; `None` if it is not known.
    fn local_ip(&self) -> Option<IpAddr> {
        None
    }
    /// What happened so far.
    fn counters(&self) -> SocketCounters;
}

/// Most datagrams in one batch: the kernel's `UDP_MAX_SEGMENTS` was 64 before Linux 6.9.
pub const MAX_BATCH: usize = 64;

/// Most bytes in one batch: a UDP datagram's largest payload over IPv4.
pub const MAX_BATCH_BYTES: usize = 65_507;

/// The socket.
#[derive(Debug)]
pub struct UdpSocket {
    socket: Socket,
    clock: Clock,
    v6: bool,
    connected: Option<SocketAddr>,
    buffers: Granted,
    batches: bool,
    kernel_drops_seen: u32,
    counters: SocketCounters,
    control: Vec<u8>,
    /// When the newest packet read so far arrived.
    last_arrival: Instant,
    /// The mark of the last packets, and how many in a row had it.
    run: (Mark, u32),
    /// What the socket marks packets with that do not say.
    own: Option<Mark>,
    /// Where the newest packet came from, and the address of this machine that it was sent to: if the socket is bound to
    /// all of them, an answer must leave from that one, whatever the route [RFC 1122 §4.1.3.5].
    reached_at: Option<(SocketAddr, IpAddr)>,
    wake: Option<Arc<EventFd>>,
}

/// A mark that so many calls in a row had becomes the socket's own: a message per packet makes the kernel look the route
/// up again.
const SETTLED: u32 = 16;

impl UdpSocket {
    /// A socket that listens on `port` (0: any free one) on every address of the family.
    ///
    /// # Errors
    /// [`NetError::PortInUse`], [`NetError::Denied`] or [`NetError::Io`].
    pub fn listen(port: u16, family: Family, buffers: Buffers, clock: Clock) -> Result<UdpSocket, NetError> {
        let v4 = SocketAddr::from((Ipv4Addr::UNSPECIFIED, port));
        let v6 = SocketAddr::from((Ipv6Addr::UNSPECIFIED, port));
        match family {
            Family::V4 => Self::bind(v4, true, buffers, clock),
            Family::V6 => Self::bind(v6, true, buffers, clock),
            Family::Any => match Self::bind(v6, false, buffers, clock) {
                // EAFNOSUPPORT or EADDRNOTAVAIL: a machine without IPv6.
                Err(NetError::Io { .. } | NetError::NoSuchLocalAddress { .. }) => Self::bind(v4, true, buffers, clock),
                other => other,
            },
        }
    }

    /// A socket on exactly this address; on `[::]`, `only_v6` says whether IPv4 comes too.
    ///
    /// # Errors
    /// [`NetError::PortInUse`], [`NetError::NoSuchLocalAddress`], [`NetError::Denied`] or [`NetError::Io`].
    pub fn bind(address: SocketAddr, only_v6: bool, buffers: Buffers, clock: Clock) -> Result<UdpSocket, NetError> {
        let io = |e| NetError::io("make a UDP socket", e);
        let v6 = address.is_ipv6();
        let domain = if v6 { Domain::IPV6 } else { Domain::IPV4 };
        let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP)).map_err(io)?;
        socket.set_nonblocking(true).map_err(io)?;
        if v6 {
            socket.set_only_v6(only_v6).map_err(io)?;
            socket.set_recv_tclass_v6(true).map_err(io)?;
        }
        let v4_too = !v6 || !only_v6;
        if v4_too {
            // On a dual-stack socket this delivers the TOS of the IPv4 packets.
            socket.set_recv_tos_v4(true).map_err(io)?;
        }
        let option = |e: Errno| NetError::io("set a UDP socket's options", e);
        setsockopt(&socket, sockopt::ReceiveTimestampns, &true).map_err(option)?;
        setsockopt(&socket, sockopt::RxqOvfl, &1).map_err(option)?;
        if address.ip().is_unspecified() {
            tell_local_address(&socket, v6, true).map_err(option)?;
        }
        dont_fragment(&socket, v6, v4_too).map_err(option)?;
        let buffers = set_buffers(&socket, buffers).map_err(|e| NetError::io("size a socket's buffers", e))?;
        socket.bind(&address.into()).map_err(|e| bind_error(address, e))?;
        Ok(UdpSocket {
            socket,
            clock,
            v6,
            connected: None,
            buffers,
            batches: true,
            kernel_drops_seen: 0,
            counters: SocketCounters::default(),
            control: cmsg_space!(TimeSpec, u32, i32, u8, libc::in6_pktinfo),
            last_arrival: Instant::ZERO,
            run: (Mark::default(), 0),
            own: None,
            reached_at: None,
            wake: None,
        })
    }

    /// Another thread writes to `wake` when it has news for the driver of this socket ([`DatagramIo::wake`]).
    pub(crate) fn woken_by(&mut self, wake: Arc<EventFd>) {
        self.wake = Some(wake);
    }

    /// A socket on a free port, connected to `peer`: the kernel then drops datagrams from anyone
    /// else, and tells when the peer's machine refuses.
    ///
    /// # Errors
    /// [`NetError::PeerUnreachable`] if there is no route, else as [`UdpSocket::bind`].
    pub fn connect(peer: SocketAddr, buffers: Buffers, clock: Clock) -> Result<UdpSocket, NetError> {
        let any: IpAddr =
            if canonical(peer).is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        Self::connect_from(SocketAddr::new(any, 0), peer, buffers, clock)
    }

    /// As [`UdpSocket::connect`], from the address `local` of this machine; port 0 takes a free one.
    ///
    /// # Errors
    /// As [`UdpSocket::connect`]; [`NetError::NoSuchLocalAddress`].
    pub fn connect_from(
        local: SocketAddr,
        peer: SocketAddr,
        buffers: Buffers,
        clock: Clock,
    ) -> Result<UdpSocket, NetError> {
        let mut socket = Self::bind(local, true, buffers, clock)?;
        socket.connect_to(peer)?;
        Ok(socket)
    }

    /// Connects a socket that is bound already: from now on only this peer is heard.
    ///
    /// # Errors
    /// [`NetError::PeerUnreachable`] if there is no route, [`NetError::Denied`] or [`NetError::Io`].
    pub fn connect_to(&mut self, peer: SocketAddr) -> Result<(), NetError> {
        let peer = canonical(peer);
        let to = if self.v6 { mapped(peer) } else { peer };
        self.socket.connect(&to.into()).map_err(|e| match e.raw_os_error().map(Errno::from_raw) {
            Some(Errno::EACCES | Errno::EPERM) => NetError::Denied { what: format!("send to {peer}") },
            Some(Errno::ENETUNREACH | Errno::EHOSTUNREACH | Errno::EADDRNOTAVAIL | Errno::ENETDOWN | Errno::EINVAL) => {
                NetError::PeerUnreachable { peer, waited: Duration::ZERO, detail: format!("no route: {e}") }
            }
            _ => NetError::io("connect a UDP socket", e),
        })?;
        self.connected = Some(peer);
        // The kernel has chosen the address to leave from.
        self.reached_at = None;
        tell_local_address(&self.socket, self.v6, false).map_err(|e| NetError::io("set a UDP socket's options", e))
    }

    /// Its own address.
    ///
    /// # Errors
    /// [`NetError::Io`] if the kernel does not say.
    pub fn local_address(&self) -> Result<SocketAddr, NetError> {
        let address = self.socket.local_addr().map_err(|e| NetError::io("read a socket's address", e))?;
        let address =
            address.as_socket().ok_or_else(|| NetError::io("read a socket's address", Errno::EAFNOSUPPORT))?;
        Ok(canonical(address))
    }

    /// Where it is bound, as the kernel has it: a dual-stack socket on `[::]`.
    pub(crate) fn bound_address(&self) -> Result<SocketAddr, NetError> {
        let address = self.socket.local_addr().map_err(|e| NetError::io("read a socket's address", e))?;
        address.as_socket().ok_or_else(|| NetError::io("read a socket's address", Errno::EAFNOSUPPORT))
    }

    /// The peer it is connected to.
    pub fn peer(&self) -> Option<SocketAddr> {
        self.connected
    }

    /// Buffer sizes asked and granted.
    pub fn buffers(&self) -> Granted {
        self.buffers
    }

    /// Whether batches still leave as batches: false after the kernel refused one.
    pub fn batches(&self) -> bool {
        self.batches
    }

    /// The path's MTU (whole IP packets) as far as the kernel knows; only of a connected socket.
    pub fn path_mtu(&self) -> Option<Bytes> {
        let mtu = if self.v6 {
            getsockopt(&self.socket, option::PathMtuV6)
        } else {
            getsockopt(&self.socket, option::PathMtuV4)
        };
        mtu.ok().and_then(|m| u64::try_from(m).ok()).map(Bytes::new)
    }

    fn sendmsg(&self, to: Option<SocketAddr>, bytes: &[u8], mark: Mark, segment: Option<u16>) -> Result<(), Errno> {
        let v4_peer = to.or(self.connected).map_or(!self.v6, |a| a.is_ipv4());
        let (tos, tclass) = (mark.tos(), i32::from(mark.tos()));
        let marked = if v4_peer { ControlMessage::Ipv4Tos(&tos) } else { ControlMessage::Ipv6TClass(&tclass) };
        // The mark is left out where it is the socket's own.
        let messages = usize::from(self.own != Some(mark));
        let reached_at = self.reached_at.filter(|(peer, _)| Some(*peer) == to);
        let from = reached_at.map(|(_, local)| LocalAddress::new(local, self.v6));
        let to = to.map(|a| SockaddrStorage::from(if self.v6 { mapped(a) } else { a }));
        let iov = [IoSlice::new(bytes)];
        let fd = self.socket.as_raw_fd();
        let taken = match (&segment, &from) {
            (_, Some(from)) => {
                let segments = segment.as_ref().map(ControlMessage::UdpGsoSegments);
                let control: Vec<_> = segments.into_iter().chain([from.message(), marked]).collect();
                sendmsg(fd, &iov, &control, MsgFlags::MSG_DONTWAIT, to.as_ref())?
            }
            (None, None) => sendmsg(fd, &iov, &[marked][..messages], MsgFlags::MSG_DONTWAIT, to.as_ref())?,
            (Some(size), None) => {
                let control = [ControlMessage::UdpGsoSegments(size), marked];
                sendmsg(fd, &iov, &control[..=messages], MsgFlags::MSG_DONTWAIT, to.as_ref())?
            }
        };
        // A datagram is taken whole or not at all.
        if taken == bytes.len() { Ok(()) } else { Err(Errno::EMSGSIZE) }
    }

    /// Makes a mark that stays the same the socket's own, where the peer is of the socket's family.
    fn settle(&mut self, mark: Mark) {
        let (last, times) = self.run;
        self.run = (mark, if last == mark { times.saturating_add(1) } else { 0 });
        if self.run.1 != SETTLED || self.own == Some(mark) {
            return;
        }
        let done = match self.connected {
            Some(SocketAddr::V4(_)) if !self.v6 => self.socket.set_tos_v4(mark.tos().into()),
            Some(SocketAddr::V6(_)) if self.v6 => self.socket.set_tclass_v6(mark.tos().into()),
            _ => return,
        };
        // If not, packets go on saying it themselves.
        self.own = done.is_ok().then_some(mark);
    }

    fn outcome(&mut self, result: Result<(), Errno>, bytes: usize) -> SendOutcome {
        let Err(e) = result else {
            self.counters.sent += 1;
            self.counters.sent_bytes += bytes as u64;
            return SendOutcome::Sent;
        };
        let (counter, outcome) = match e {
            Errno::EMSGSIZE => (&mut self.counters.too_large, SendOutcome::TooLarge { mtu: None }),
            Errno::ECONNREFUSED => (&mut self.counters.refused, SendOutcome::Refused),
            Errno::ENETUNREACH | Errno::EHOSTUNREACH | Errno::ENETDOWN | Errno::EADDRNOTAVAIL | Errno::EHOSTDOWN => {
                (&mut self.counters.unreachable, SendOutcome::Unreachable)
            }
            Errno::EAGAIN | Errno::ENOBUFS | Errno::ENOMEM | Errno::EINTR => {
                (&mut self.counters.busy, SendOutcome::Busy)
            }
            Errno::EPERM | Errno::EACCES => (&mut self.counters.denied, SendOutcome::Denied),
            e => (&mut self.counters.failed, SendOutcome::Failed(e)),
        };
        *counter += 1;
        if matches!(outcome, SendOutcome::TooLarge { .. }) {
            return SendOutcome::TooLarge { mtu: self.path_mtu() };
        }
        outcome
    }

    /// What the control messages of a datagram say: its mark, and when the kernel got it.
    fn note_control(&mut self, messages: &[ControlMessageOwned]) -> (Mark, Option<TimeSpec>) {
        let (mut mark, mut stamp) = (Mark::default(), None);
        for message in messages {
            match message {
                ControlMessageOwned::Ipv4Tos(tos) => mark = Mark::from_tos(*tos),
                ControlMessageOwned::Ipv6TClass(tclass) => mark = Mark::from_tos(*tclass as u8),
                ControlMessageOwned::ScmTimestampns(t) => stamp = Some(*t),
                ControlMessageOwned::RxqOvfl(total) => {
                    // The kernel's count since the socket was made; wraps.
                    self.counters.kernel_drops += u64::from(total.wrapping_sub(self.kernel_drops_seen));
                    self.kernel_drops_seen = *total;
                }
                _ => {}
            }
        }
        (mark, stamp)
    }
}

impl DatagramIo for UdpSocket {
    fn send(&mut self, to: Option<SocketAddr>, bytes: &[u8], mark: Mark) -> SendOutcome {
        self.settle(mark);
        let result = self.sendmsg(to, bytes, mark, None);
        self.outcome(result, bytes.len())
    }

    fn send_batch(&mut self, to: Option<SocketAddr>, bytes: &[u8], segment: usize, mark: Mark) -> (usize, SendOutcome) {
        let count = bytes.len().div_ceil(segment.max(1));
        if self.batches && count > 1 && count <= MAX_BATCH && bytes.len() <= MAX_BATCH_BYTES {
            let size = u16::try_from(segment).unwrap_or(u16::MAX);
            self.settle(mark);
            match self.sendmsg(to, bytes, mark, Some(size)) {
                Ok(()) => {
                    self.counters.sent += count as u64;
                    self.counters.sent_bytes += bytes.len() as u64;
                    self.counters.batched += count as u64;
                    return (count, SendOutcome::Sent);
                }
                // The device or the route cannot segment (it may begin to fail in mid-run, when
                // the route changes): from now on one by one.
                Err(Errno::EIO | Errno::EINVAL | Errno::EOPNOTSUPP | Errno::ENOPROTOOPT) => {
                    self.counters.batch_failures += 1;
                    self.batches = false;
                }
                Err(e) => return (0, self.outcome(Err(e), 0)),
            }
        }
        for (sent, one) in bytes.chunks(segment.max(1)).enumerate() {
            let outcome = self.send(to, one, mark);
            if outcome != SendOutcome::Sent {
                return (sent, outcome);
            }
        }
        (count, SendOutcome::Sent)
    }

    fn recv(&mut self, buffer: &mut [u8]) -> RecvOutcome {
        let mut control = std::mem::take(&mut self.control);
        let found = {
            let mut iov = [IoSliceMut::new(buffer)];
            recvmsg::<SockaddrStorage>(
                self.socket.as_raw_fd(),
                &mut iov,
                Some(control.as_mut_slice()),
                MsgFlags::MSG_DONTWAIT,
            )
            .map(|m| {
                let messages: Vec<_> = m.cmsgs().map(Iterator::collect).unwrap_or_default();
                (m.bytes, m.address, m.flags.contains(MsgFlags::MSG_TRUNC), messages)
            })
        };
        self.control = control;
        let (len, address, truncated, messages) = match found {
            Ok(found) => found,
            Err(Errno::EAGAIN | Errno::EINTR) => return RecvOutcome::Empty,
            Err(Errno::ECONNREFUSED) => {
                self.counters.refused += 1;
                return RecvOutcome::Refused;
            }
            Err(e) => return RecvOutcome::Failed(e),
        };
        let (mark, stamp) = self.note_control(&messages);
        self.counters.received += 1;
        self.counters.received_bytes += len as u64;
        self.counters.truncated += u64::from(truncated);
        // A stamp is placed by two clocks that are read one after the other: if the thread loses the processor in between,
        // it comes out late, and the next one would be before it. The socket's queue is in order of arrival.
        let placed = stamp.map_or_else(|| self.clock.now(), |s| self.clock.place_kernel_stamp(s));
        let at = placed.max(self.last_arrival);
        self.last_arrival = at;
        let from = address.as_ref().and_then(socket_address).or(self.connected);
        let from = canonical(from.unwrap_or_else(|| SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0))));
        self.reached_at = messages.iter().find_map(local_address).map(|local| (from, local));
        RecvOutcome::Packet(Received { len, from, mark, at, truncated })
    }

    fn local_ip(&self) -> Option<IpAddr> {
        self.local_address().ok().map(|a| a.ip()).filter(|ip| !ip.is_unspecified())
    }

    fn wake(&self) -> Option<BorrowedFd<'_>> {
        self.wake.as_ref().map(AsFd::as_fd)
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn counters(&self) -> SocketCounters {
        self.counters
    }
}

/// How long to leave a socket alone that had no room: 1 ms at first, doubling to 64 ms, so that a
/// full device is neither polled in a loop nor forgotten.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Backoff {
    until: Instant,
    step: Duration,
}

impl Backoff {
    /// The first wait.
    pub const FIRST: Duration = Duration::from_millis(1);
    /// The longest wait.
    pub const LONGEST: Duration = Duration::from_millis(64);

    /// The socket failed at `now`.
    pub fn failed(&mut self, now: Instant) {
        self.step = (self.step * 2).clamp(Self::FIRST, Self::LONGEST);
        self.until = now + self.step;
    }

    /// A packet left.
    pub fn succeeded(&mut self) {
        *self = Backoff::default();
    }

    /// Not before this.
    pub fn until(&self) -> Instant {
        self.until
    }
}

/// Socket options that `nix` has no name for, made with its own macro.
mod option {
    use nix::libc;
    use nix::sys::socket::sockopt::{GetStruct, SetStruct};
    use nix::{getsockopt_impl, setsockopt_impl};

    /// Whether IPv4 packets may be fragmented; `IP_PMTUDISC_DO` sets DF and heeds the path's MTU.
    #[derive(Clone, Copy, Debug)]
    pub(super) struct MtuDiscoverV4;
    setsockopt_impl!(MtuDiscoverV4, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::c_int, SetStruct<libc::c_int>);

    /// The same for IPv6.
    #[derive(Clone, Copy, Debug)]
    pub(super) struct MtuDiscoverV6;
    setsockopt_impl!(MtuDiscoverV6, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::c_int, SetStruct<libc::c_int>);

    /// The path's MTU as the kernel knows it; only of a connected socket.
    #[derive(Clone, Copy, Debug)]
    pub(super) struct PathMtuV4;
    getsockopt_impl!(PathMtuV4, libc::IPPROTO_IP, libc::IP_MTU, libc::c_int, GetStruct<libc::c_int>);

    /// The same for IPv6.
    #[derive(Clone, Copy, Debug)]
    pub(super) struct PathMtuV6;
    getsockopt_impl!(PathMtuV6, libc::IPPROTO_IPV6, libc::IPV6_MTU, libc::c_int, GetStruct<libc::c_int>);
}

/// Never fragment. The kernel heeds "packet too big" messages, but never below 552 bytes (IPv4,
/// `min_pmtu`) or 1,280 (IPv6), so that a forged one cannot starve us.
fn dont_fragment(socket: &Socket, v6: bool, v4_too: bool) -> Result<(), Errno> {
    if v4_too {
        setsockopt(socket, option::MtuDiscoverV4, &libc::IP_PMTUDISC_DO)?;
    }
    if v6 {
        setsockopt(socket, option::MtuDiscoverV6, &libc::IPV6_PMTUDISC_DO)?;
    }
    Ok(())
}

fn set_buffers(socket: &Socket, asked: Buffers) -> std::io::Result<Granted> {
    let size = |b: Bytes| usize::try_from(b.get()).unwrap_or(usize::MAX).min(i32::MAX as usize);
    socket.set_recv_buffer_size(size(asked.receive))?;
    socket.set_send_buffer_size(size(asked.send))?;
    let granted = Buffers {
        receive: Bytes::new(socket.recv_buffer_size()? as u64 / 2),
        send: Bytes::new(socket.send_buffer_size()? as u64 / 2),
    };
    Ok(Granted { asked, granted })
}

fn bind_error(address: SocketAddr, e: std::io::Error) -> NetError {
    match e.raw_os_error().map(Errno::from_raw) {
        Some(Errno::EADDRINUSE) => NetError::PortInUse { address },
        Some(Errno::EADDRNOTAVAIL) => NetError::NoSuchLocalAddress { address },
        Some(Errno::EACCES | Errno::EPERM) => {
            NetError::Denied { what: format!("listen on UDP port {}", address.port()) }
        }
        _ => NetError::io("bind a UDP socket", e),
    }
}

/// The address of this machine that a datagram was sent to.
fn local_address(message: &ControlMessageOwned) -> Option<IpAddr> {
    let local: IpAddr = match message {
        ControlMessageOwned::Ipv4PacketInfo(info) => Ipv4Addr::from(u32::from_be(info.ipi_spec_dst.s_addr)).into(),
        ControlMessageOwned::Ipv6PacketInfo(info) => Ipv6Addr::from(info.ipi6_addr.s6_addr).into(),
        _ => return None,
    };
    // Nothing leaves from a group's address.
    Some(local).filter(|a| !a.to_canonical().is_multicast() && !a.is_unspecified())
}

/// An address that a datagram is to leave from, as the kernel takes it.
enum LocalAddress {
    V4(libc::in_pktinfo),
    V6(libc::in6_pktinfo),
}

impl LocalAddress {
    /// For a socket of that family.
    fn new(local: IpAddr, v6: bool) -> Self {
        match local {
            IpAddr::V4(a) if !v6 => LocalAddress::V4(libc::in_pktinfo {
                ipi_ifindex: 0,
                ipi_spec_dst: libc::in_addr { s_addr: u32::from(a).to_be() },
                ipi_addr: libc::in_addr { s_addr: 0 },
            }),
            local => {
                let a = match local {
                    IpAddr::V4(a) => a.to_ipv6_mapped(),
                    IpAddr::V6(a) => a,
                };
                let ipi6_addr = libc::in6_addr { s6_addr: a.octets() };
                LocalAddress::V6(libc::in6_pktinfo { ipi6_addr, ipi6_ifindex: 0 })
            }
        }
    }

    fn message(&self) -> ControlMessage<'_> {
        match self {
            LocalAddress::V4(info) => ControlMessage::Ipv4PacketInfo(info),
            LocalAddress::V6(info) => ControlMessage::Ipv6PacketInfo(info),
        }
    }
}

/// Whether each datagram says which address of this machine it was sent to; on a dual-stack socket IPv4's come mapped.
fn tell_local_address(socket: &Socket, v6: bool, tell: bool) -> Result<(), Errno> {
    if v6 {
        setsockopt(socket, sockopt::Ipv6RecvPacketInfo, &tell)
    } else {
        setsockopt(socket, sockopt::Ipv4PacketInfo, &tell)
    }
}

fn socket_address(storage: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = storage.as_sockaddr_in().map(|a| SocketAddr::V4((*a).into()));
    v4.or_else(|| storage.as_sockaddr_in6().map(|a| SocketAddr::V6((*a).into())))
}

/// As a dual-stack socket wants it.
fn mapped(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V4(a) => SocketAddr::from((a.ip().to_ipv6_mapped(), a.port())),
        v6 => v6,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Waiter;

    #[derive(Clone, Copy, Debug)]
    struct NoChecksum;
    nix::setsockopt_impl!(
        NoChecksum,
        libc::SOL_SOCKET,
        libc::SO_NO_CHECK,
        libc::c_int,
        sockopt::SetStruct<libc::c_int>
    );

    const LE: Mark = Mark { dscp: Dscp::LE, ecn: Ecn::NotEct };

    fn pair(to: IpAddr, family: Family) -> (UdpSocket, UdpSocket, Clock) {
        let clock = Clock::start();
        let listener = UdpSocket::listen(0, family, Buffers::default(), clock).unwrap();
        let port = listener.local_address().unwrap().port();
        let sender = UdpSocket::connect(SocketAddr::new(to, port), Buffers::default(), clock).unwrap();
        (sender, listener, clock)
    }

    /// Reads one datagram, waiting up to two seconds.
    fn read(socket: &mut UdpSocket, clock: Clock, buffer: &mut [u8]) -> Received {
        let mut waiter = Waiter::new(clock).unwrap();
        let until = clock.now() + Duration::from_secs(2);
        loop {
            match socket.recv(buffer) {
                RecvOutcome::Packet(received) => return received,
                RecvOutcome::Empty if clock.now() < until => waiter.wait(until, &[socket.descriptor()]).unwrap(),
                other => panic!("{other:?}"),
            };
        }
    }

    /// The route back would choose 127.0.0.1.
    #[test]
    fn an_answer_leaves_from_the_address_that_was_asked() {
        let asked = IpAddr::from([127, 0, 0, 2]);
        for family in [Family::V4, Family::Any] {
            let (mut sender, mut listener, clock) = pair(asked, family);
            assert_eq!(sender.send(None, b"ask", LE), SendOutcome::Sent);
            let mut buffer = [0; 32];
            let received = read(&mut listener, clock, &mut buffer);
            // A connected socket hears nobody else, alone or in a batch.
            assert_eq!(listener.send(Some(received.from), b"answer", LE), SendOutcome::Sent);
            assert_eq!(read(&mut sender, clock, &mut buffer).from.ip(), asked, "{family:?}");
            assert_eq!(listener.send_batch(Some(received.from), b"two of", 3, LE), (2, SendOutcome::Sent));
            assert_eq!([3, 3], [(); 2].map(|()| read(&mut sender, clock, &mut buffer).len), "{family:?}");
        }
    }

    #[test]
    fn two_classes_and_all_ecn_marks_share_one_socket_over_ipv4_ipv6_and_mapped() {
        let v4 = IpAddr::from(Ipv4Addr::LOCALHOST);
        let v6 = IpAddr::from(Ipv6Addr::LOCALHOST);
        for (to, family) in [(v4, Family::V4), (v6, Family::V6), (v4, Family::Any), (v6, Family::Any)] {
            let (mut sender, mut listener, clock) = pair(to, family);
            for (dscp, bits) in [(Dscp::DEFAULT, 0), (Dscp::LE, 1), (Dscp::new(46), 2), (Dscp::LE, 3)] {
                let mark = Mark { dscp, ecn: Ecn::from_bits(bits) };
                assert_eq!(sender.send(None, b"marked", mark), SendOutcome::Sent);
                let mut buffer = [0; 32];
                let received = read(&mut listener, clock, &mut buffer);
                assert_eq!((received.mark, received.len), (mark, 6), "to {to}, listening on {family:?}");
                assert_eq!(received.from.ip(), to, "addresses come back unmapped");
                // and back, from the unconnected (perhaps dual-stack) socket
                assert_eq!(listener.send(Some(received.from), b"back", mark), SendOutcome::Sent);
                assert_eq!(read(&mut sender, clock, &mut buffer).mark, mark, "back to {to}, {family:?}");
            }
        }
    }

    #[test]
    fn the_kernel_stamps_arrival_and_not_our_reading() {
        let (mut sender, mut listener, clock) = pair(Ipv4Addr::LOCALHOST.into(), Family::V4);
        let mut waiter = Waiter::new(clock).unwrap();
        // The kernel begins to stamp a little after the first socket asked for it, and stamps
        // what came before when it is read: hence some tries.
        let stamped_on_arrival = (0..20).any(|_| {
            let before = clock.now();
            assert_eq!(sender.send(None, b"x", Mark::default()), SendOutcome::Sent);
            let after = clock.now();
            waiter.wait(after + Duration::from_millis(60), &[]).unwrap();
            let at = read(&mut listener, clock, &mut [0; 8]).at;
            // Mapping two clocks may be off by the time between reading one and the other.
            let slop = Duration::from_millis(20);
            at + slop >= before && at <= after + slop
        });
        assert!(stamped_on_arrival);
    }

    #[test]
    fn a_batch_arrives_as_separate_datagrams_of_one_class() {
        let (mut sender, mut listener, clock) = pair(Ipv4Addr::LOCALHOST.into(), Family::Any);
        let bytes: Vec<u8> = (0..2_500_u32).map(|i| i as u8).collect();
        assert_eq!(sender.send_batch(None, &bytes, 1_000, LE), (3, SendOutcome::Sent));
        let mut got = Vec::new();
        for len in [1_000, 1_000, 500] {
            let mut buffer = [0; 2_000];
            let received = read(&mut listener, clock, &mut buffer);
            assert_eq!((received.len, received.mark), (len, LE));
            got.extend_from_slice(&buffer[..received.len]);
        }
        assert_eq!(got, bytes);
        assert_eq!(sender.counters().sent, 3);
    }

    #[test]
    fn after_a_refused_batch_packets_go_one_by_one_and_it_is_counted() {
        // Without a checksum the kernel will not segment (EINVAL): stands for a device that cannot.
        let (mut sender, mut listener, clock) = pair(Ipv4Addr::LOCALHOST.into(), Family::V4);
        setsockopt(&sender.socket, NoChecksum, &1).unwrap();
        assert!(sender.batches());
        assert_eq!(sender.send_batch(None, &[7; 300], 100, LE), (3, SendOutcome::Sent));
        for _ in 0..3 {
            let received = read(&mut listener, clock, &mut [0; 400]);
            assert_eq!((received.len, received.mark), (100, LE));
        }
        let counters = sender.counters();
        assert_eq!((counters.batch_failures, counters.batched, counters.sent), (1, 0, 3));
        assert!(!sender.batches());
        assert_eq!(sender.send_batch(None, &[7; 200], 100, LE), (2, SendOutcome::Sent));
        assert_eq!(sender.counters().batch_failures, 1, "not tried again");
    }

    #[test]
    fn a_packet_above_the_path_mtu_is_not_sent_and_says_what_fits() {
        let (mut sender, mut listener, clock) = pair(Ipv4Addr::LOCALHOST.into(), Family::V4);
        // Loopback carries 65,536; a UDP payload over IPv4 ends at 65,507.
        let outcome = sender.send(None, &[0; 65_520], Mark::default());
        assert!(matches!(outcome, SendOutcome::TooLarge { mtu: Some(_) }), "{outcome:?}");
        assert_eq!((sender.counters().sent, sender.counters().too_large), (0, 1));
        assert_eq!(sender.send(None, b"fits", Mark::default()), SendOutcome::Sent);
        assert_eq!(read(&mut listener, clock, &mut [0; 8]).len, 4);
    }

    #[test]
    fn a_closed_port_is_reported_once_and_the_socket_lives_on() {
        let (mut sender, listener, clock) = pair(Ipv4Addr::LOCALHOST.into(), Family::V4);
        drop(listener);
        assert_eq!(sender.send(None, b"x", Mark::default()), SendOutcome::Sent);
        let mut waiter = Waiter::new(clock).unwrap();
        waiter.wait(clock.now() + Duration::from_secs(1), &[sender.descriptor()]).unwrap();
        assert_eq!(sender.recv(&mut [0; 8]), RecvOutcome::Refused);
        assert_eq!(sender.recv(&mut [0; 8]), RecvOutcome::Empty);
        assert_eq!(sender.counters().refused, 1);
    }

    #[test]
    fn packets_dropped_by_a_full_socket_buffer_are_counted_apart() {
        let clock = Clock::start();
        let small = Buffers { receive: Bytes::new(4_096), send: Bytes::new(1 << 20) };
        let mut listener = UdpSocket::listen(0, Family::V4, small, clock).unwrap();
        let to = SocketAddr::from((Ipv4Addr::LOCALHOST, listener.local_address().unwrap().port()));
        let mut sender = UdpSocket::connect(to, Buffers::default(), clock).unwrap();
        for _ in 0..100 {
            assert_eq!(sender.send(None, &[0; 1_000], Mark::default()), SendOutcome::Sent);
        }
        let read_all = |listener: &mut UdpSocket| {
            let mut n = 0;
            while let RecvOutcome::Packet(_) = listener.recv(&mut [0; 1_100]) {
                n += 1;
            }
            n
        };
        let first = read_all(&mut listener);
        assert!((1..100).contains(&first), "{first}");
        // The kernel tells its count with the next packet.
        let mut then = 0;
        for _ in 0..3 {
            sender.send(None, b"after", Mark::default());
            then += read_all(&mut listener);
        }
        assert_eq!(then, 3);
        assert_eq!(first + listener.counters().kernel_drops, 100, "its total is not added again each time");
    }

    #[test]
    fn a_datagram_longer_than_the_buffer_is_marked_truncated() {
        let (mut sender, mut listener, clock) = pair(Ipv4Addr::LOCALHOST.into(), Family::V4);
        sender.send(None, &[1; 100], Mark::default());
        let received = read(&mut listener, clock, &mut [0; 10]);
        assert!(received.truncated && received.len == 10);
        assert_eq!(listener.counters().truncated, 1);
    }

    #[test]
    fn an_empty_datagram_is_a_datagram() {
        let (mut sender, mut listener, clock) = pair(Ipv6Addr::LOCALHOST.into(), Family::V6);
        assert_eq!(sender.send(None, &[], LE), SendOutcome::Sent);
        assert_eq!(read(&mut listener, clock, &mut [0; 10]).len, 0);
    }

    #[test]
    fn a_port_in_use_names_the_port_and_the_remedy() {
        let clock = Clock::start();
        let first = UdpSocket::listen(0, Family::Any, Buffers::default(), clock).unwrap();
        let port = first.local_address().unwrap().port();
        let error = UdpSocket::listen(port, Family::Any, Buffers::default(), clock).unwrap_err();
        assert!(matches!(error, NetError::PortInUse { .. }), "{error:?}");
        assert!(error.to_string().contains(&format!("port {port} is in use")), "{error}");
        assert!(error.hint().unwrap().contains("ss -lunp"));
    }

    #[test]
    fn granted_buffers_are_told_beside_what_was_asked() {
        let clock = Clock::start();
        let huge = Buffers { receive: Bytes::new(1 << 30), send: Bytes::new(4_096) };
        let socket = UdpSocket::listen(0, Family::V4, huge, clock).unwrap();
        assert_eq!(socket.buffers().asked, huge);
        assert!(socket.buffers().granted.receive > Bytes::ZERO);
        assert!(socket.buffers().granted.receive <= huge.receive);
    }

    #[test]
    fn backing_off_begins_at_a_millisecond_doubles_and_forgets() {
        let mut b = Backoff::default();
        let now = Instant::from_secs_f64(1.0);
        assert_eq!(b.until(), Instant::ZERO);
        let mut waits = Vec::new();
        for _ in 0..9 {
            b.failed(now);
            waits.push(b.until().since(now).as_millis());
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 64, 64]);
        b.succeeded();
        assert_eq!(b.until(), Instant::ZERO);
    }
}
