//! A UDP socket that knows about marks, times and failures.
//!
//! The additions to the operating system's sockets: DSCP and ECN of each packet on the way out and in (so that two
//! classes share one socket), the kernel's receive stamp on the run's clock, packets the kernel dropped because we
//! were slow apart from those the path lost, buffer sizes asked and granted, no fragmentation by us, batches of one
//! class (GSO), and every failure as a value.
//!
//! IPv4-mapped peers of a dual-stack socket need the IPv4 TOS message, real IPv6 peers the traffic
//! class; addresses are mapped and unmapped here, so that callers only ever see `192.0.2.1`.

#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

mod options;
mod packet_info;

use crate::address::{Family, canonical};
use crate::datagram::{
    DatagramIo, MAX_BATCH, MAX_BATCH_BYTES, Mark, Received, RecvOutcome, SendOutcome, SocketCounters,
};
use crate::{Clock, NetError};
use fairpace_units::{Bytes, Duration, Instant, QsOption};
use nix::cmsg_space;
use nix::errno::Errno;
use nix::libc;
use nix::sys::eventfd::EventFd;
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, sendmsg, setsockopt, sockopt,
};
use nix::sys::time::TimeSpec;
pub use options::{Buffers, Granted};
use options::{device_mtu, path_mtu, set_buffers, set_fragments, set_option, tell_local_address, tell_options};
use packet_info::{LocalAddress, MOST_OPTIONS, local_address, mapped, quick_start, socket_address};
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{IoSlice, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::Arc;

/// Where a packet came from, and the address of this machine that it was sent to.
pub(crate) type ReachedAt = (SocketAddr, IpAddr);

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
    /// The socket's mark for packets that name none.
    own: Option<Mark>,
    /// Of the newest packet: if the socket is bound to all addresses of this machine, an answer must leave from the one that the packet was
    /// sent to, whatever the route [RFC 1122 §4.1.3.5].
    reached_at: [Option<ReachedAt>; 2],
    wake: Option<Arc<EventFd>>,
    /// The path's MTU by an ICMP message that has not been told of.
    hint: Option<Bytes>,
    fragments: bool,
    /// Whether IPv4 packets come too.
    v4_too: bool,
}

/// A flood of forged messages must not look like a refusal of this machine: a packet is tried so many times more.
const MOST_HINTS: u32 = 8;
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
        set_fragments(&socket, v6, v4_too, false).map_err(option)?;
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
            reached_at: [None; 2],
            wake: None,
            hint: None,
            fragments: false,
            v4_too,
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
        self.reached_at = [None; 2];
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

    /// Where the newest packet came from, and the address of this machine that it was sent to; for [`answer_from`](Self::answer_from).
    pub(crate) const fn reached_at(&self) -> Option<ReachedAt> {
        let [newest, _] = self.reached_at;
        newest
    }

    /// Answers to these peers leave from these addresses of this machine, until the next packet is read.
    pub(crate) const fn answer_from(&mut self, reached_at: [Option<ReachedAt>; 2]) {
        self.reached_at = reached_at;
    }

    /// Buffer sizes asked and granted.
    pub fn buffers(&self) -> Granted {
        self.buffers
    }

    /// Whether batches still leave as batches: false after the kernel refused one.
    pub fn batches(&self) -> bool {
        self.batches
    }

    /// The MTU (whole IP packets) of the device that the socket sends by, if the socket is bound to one address or connected. Nobody
    /// on the network can change it.
    pub fn device_mtu(&self) -> Option<Bytes> {
        self.local_ip().and_then(|address| device_mtu(&self.socket, address))
    }

    /// From now on each datagram comes with its Quick-Start option ([`Received::quick_start`]).
    ///
    /// # Errors
    /// [`NetError::Io`] if the kernel refuses, which it has no reason to.
    pub fn look_for_quick_start(&mut self) -> Result<(), NetError> {
        let done = tell_options(&self.socket, self.v6, self.v4_too);
        done.map_err(|e| NetError::io("set a UDP socket's options", e))?;
        self.control = cmsg_space!(TimeSpec, u32, i32, u8, libc::in6_pktinfo, i32, [u8; MOST_OPTIONS]);
        Ok(())
    }

    /// Whether this process may put a Quick-Start option into the headers of packets to the connected peer.
    ///
    /// # Errors
    /// [`NetError::Denied`] without CAP_NET_RAW, else [`NetError::Io`].
    pub fn may_quick_start(&self) -> Result<(), NetError> {
        let option = QsOption {
            function: fairpace_units::QsFunction::Request,
            rate: fairpace_units::QsRate::ZERO,
            qs_ttl: 0,
            ip_ttl: 1,
            nonce: fairpace_units::QsNonce::default(),
        };
        let tried = set_option(&self.socket, self.v6, Some(&option));
        tried.and_then(|()| set_option(&self.socket, self.v6, None)).map_err(|e| match e {
            Errno::EPERM | Errno::EACCES => {
                NetError::Denied { what: "put the Quick-Start option into IP headers".to_owned() }
            }
            e => NetError::io("put the Quick-Start option into IP headers", e),
        })
    }

    /// An ICMP message about an earlier packet waits at a connected socket, and the next call fails with it instead of doing its work.
    fn note_hint(&mut self) {
        self.counters.hints += 1;
        self.hint = path_mtu(&self.socket, self.v6).or(self.hint);
    }

    /// As [`sendmsg_once`](Self::sendmsg_once), past messages that wait: what this machine itself refuses, it refuses each time.
    fn sendmsg(&mut self, to: Option<SocketAddr>, bytes: &[u8], mark: Mark, segment: Option<u16>) -> Result<(), Errno> {
        let mut result = self.sendmsg_once(to, bytes, mark, segment);
        for _ in 0..MOST_HINTS {
            let Err(told) = result else { break };
            if self.connected.is_none() || !may_be_news(told) {
                break;
            }
            result = self.sendmsg_once(to, bytes, mark, segment);
            if told == Errno::EMSGSIZE && result != Err(told) {
                self.note_hint();
            }
        }
        result
    }

    fn sendmsg_once(
        &self,
        to: Option<SocketAddr>,
        bytes: &[u8],
        mark: Mark,
        segment: Option<u16>,
    ) -> Result<(), Errno> {
        let v4_peer = to.or(self.connected).map_or(!self.v6, |a| a.is_ipv4());
        let (tos, tclass) = (mark.tos(), i32::from(mark.tos()));
        let marked = if v4_peer { ControlMessage::Ipv4Tos(&tos) } else { ControlMessage::Ipv6TClass(&tclass) };
        // The mark is left out where it is the socket's own.
        let needed = (self.own != Some(mark)).then_some(marked);
        let reached_at = self.reached_at.into_iter().flatten().find(|(peer, _)| Some(*peer) == to);
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
            (None, None) => sendmsg(fd, &iov, needed.as_slice(), MsgFlags::MSG_DONTWAIT, to.as_ref())?,
            (Some(size), None) => {
                let size = ControlMessage::UdpGsoSegments(size);
                let (both, alone) = ([size, marked], [size]);
                let control = if needed.is_some() { both.as_slice() } else { &alone };
                sendmsg(fd, &iov, control, MsgFlags::MSG_DONTWAIT, to.as_ref())?
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
            return SendOutcome::TooLarge { mtu: path_mtu(&self.socket, self.v6) };
        }
        outcome
    }

    /// The facts in the control messages of a datagram: its mark, and the time at which the kernel got it.
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

    fn send_option(&mut self, bytes: &[u8], mark: Mark, option: &QsOption) -> SendOutcome {
        let set = self.connected.ok_or(Errno::ENOTCONN).and_then(|_| set_option(&self.socket, self.v6, Some(option)));
        let outcome = self.send(None, bytes, mark);
        match set {
            Ok(()) => self.counters.options += u64::from(outcome == SendOutcome::Sent),
            Err(_) => self.counters.options_denied += 1,
        }
        // An option that could be set can be taken off; of one that was half set, the half goes, too.
        let _ = set_option(&self.socket, self.v6, None);
        outcome
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
            Err(Errno::EMSGSIZE) => {
                self.note_hint();
                return RecvOutcome::Hint;
            }
            Err(e) if self.connected.is_some() && may_be_news(e) => return RecvOutcome::Hint,
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
        self.reached_at = [messages.iter().find_map(local_address).map(|local| (from, local)), None];
        RecvOutcome::Packet(Received { len, from, mark, at, truncated, quick_start: quick_start(&messages) })
    }

    fn local_ip(&self) -> Option<IpAddr> {
        self.local_address().ok().map(|a| a.ip()).filter(|ip| !ip.is_unspecified())
    }

    fn take_mtu_hint(&mut self) -> Option<Bytes> {
        self.hint.take()
    }

    fn set_fragments(&mut self, fragments: bool) {
        if fragments != self.fragments {
            let v4_too = self.connected.is_none_or(|peer| peer.is_ipv4()) || !self.v6;
            // If the kernel refuses, packets go on as before.
            let done = set_fragments(&self.socket, self.v6, v4_too, fragments);
            self.fragments = if done.is_ok() { fragments } else { self.fragments };
        }
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

/// Whether a call to a connected socket fails so for an ICMP message about an earlier packet, and has not been tried: Linux's
/// words for the types and codes of destination unreachable, parameter problem and their likes of ICMPv6. A refused port is
/// [`SendOutcome::Refused`].
const fn may_be_news(e: Errno) -> bool {
    matches!(
        e,
        Errno::EMSGSIZE
            | Errno::ENETUNREACH
            | Errno::EHOSTUNREACH
            | Errno::EHOSTDOWN
            | Errno::ENONET
            | Errno::ENOPROTOOPT
            | Errno::EPROTO
            | Errno::EACCES
    )
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

#[cfg(test)]
mod tests;
