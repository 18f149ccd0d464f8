//! The TCP connection of a flow that has one beside its datagrams [tpba §5]: framed packets [RFC 4571] in and out of
//! the kernel, and what the kernel's TCP says of itself.
//!
//! Nothing here blocks, and what waits is bounded: at the sender one packet beside the kernel's send buffer, at the receiver
//! a few of the longest packets for each connection. Of connections there is one, and at most [`MOST_CANDIDATES`] that have
//! not yet said who they are; those are closed after [`PROOF_WITHIN`].

use crate::NetError;
use crate::address::canonical;
use crate::kernel_tcp::{self, CaState, TcpInfo};
use crate::socket::Backoff;
use fairpace_control::{TcpOrder, TcpProgress};
use fairpace_rtp::framing::{self, Deframer};
use fairpace_rtp::{ReceiverSession, SenderSession};
use fairpace_units::{Bytes, Duration, Instant};
use nix::errno::Errno;
use nix::libc::MSG_NOSIGNAL;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io;
use std::mem::MaybeUninit;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};

/// The kernel's side of the TCP half of a sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpConfig {
    /// Congestion control (`TCP_CONGESTION`).
    pub algorithm: String,
    /// At most about so much waits in the kernel without having been sent (`TCP_NOTSENT_LOWAT`): the less, the shorter the
    /// pause while TCP drains.
    pub not_sent: Bytes,
    /// IP size of full segments; `None`: of the flow's packets. At least 128 B.
    pub segment: Option<Bytes>,
}

impl Default for TcpConfig {
    /// Reno, the paper's TCP; 4 KiB.
    fn default() -> Self {
        TcpConfig { algorithm: "reno".to_owned(), not_sent: Bytes::new(4_096), segment: None }
    }
}

/// What a sender's TCP half has done.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct TcpHalfStats {
    /// Congestion control in force.
    pub algorithm: String,
    /// Bytes of the stream that the peer has acknowledged, lengths included.
    pub acked: Bytes,
    /// Times the congestion window was reduced, as far as `TCP_INFO` shows.
    pub reductions: u64,
    /// Segments sent again.
    pub retransmitted: u64,
    /// Congestion window now, segments.
    pub cwnd: u32,
    /// The kernel's setting `tcp_slow_start_after_idle` where this runs; `None`: it cannot be read.
    pub slow_start_after_idle: Option<bool>,
    /// Periods without TCP that are over, and what became of the window in them.
    pub idle: IdleWindows,
}

/// The congestion window before and after periods in which the connection was idle. The paper sets it to cwnd_new then
/// [tpba §4]; no Linux socket option can.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct IdleWindows {
    /// How many such periods.
    pub periods: u64,
    /// In how many the window was smaller afterwards.
    pub shrunk: u64,
    /// Segments before the last one.
    pub before: u32,
    /// Segments after it.
    pub after: u32,
    /// What cwnd_new was then, segments.
    pub wanted: u32,
}

/// What the kernel gave when it was asked to read or write.
#[derive(Debug)]
pub(crate) enum TcpEnd {
    /// The peer has closed its side.
    Closed,
    /// An error: reset, time-out, or something that is not framed packets.
    Failed(String),
}

impl TcpEnd {
    pub(crate) fn detail(&self) -> String {
        match self {
            TcpEnd::Closed => "it closed the connection".to_owned(),
            TcpEnd::Failed(what) => what.clone(),
        }
    }
}

fn failed(e: &io::Error) -> TcpEnd {
    TcpEnd::Failed(match e.kind() {
        io::ErrorKind::ConnectionRefused => "it refuses the connection".to_owned(),
        _ => e.to_string(),
    })
}

/// Longest framed packet that is taken in: more than any path's packet that we send, and little memory.
const LONGEST: usize = 2_048;

/// Reads what is there into `inbox`; `true` if there may be more.
fn fill(socket: &Socket, inbox: &mut Deframer) -> Result<bool, TcpEnd> {
    let space = inbox.space();
    let room = space.len();
    // Not to a growing vector, and without `unsafe`: the standard library's reader.
    loop {
        match io::Read::read(&mut &*socket, space) {
            Ok(0) => return Err(TcpEnd::Closed),
            Ok(n) => {
                inbox.filled(n);
                return Ok(n == room);
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(e) => return Err(failed(&e)),
        }
    }
}

/// A sender's connection.
#[derive(Debug)]
pub(crate) struct TcpSender {
    socket: Socket,
    connected: bool,
    /// Framed bytes that the kernel has not taken, from `taken` on.
    out: Vec<u8>,
    taken: usize,
    inbox: Deframer,
    /// IP and TCP headers without options.
    headers: u64,
    last: Option<TcpInfo>,
    reductions: u64,
    algorithm: String,
    /// The peer has been asked to acknowledge at once.
    asked: bool,
    idle: IdleWindows,
    /// Between two periods with TCP.
    is_idle: bool,
    wanted: Option<Bytes>,
}

impl TcpSender {
    /// Begins to connect from `local` to `peer`.
    pub(crate) fn connect(
        local: Option<IpAddr>,
        peer: SocketAddr,
        packet_size: Bytes,
        tos: u8,
        config: &TcpConfig,
    ) -> Result<TcpSender, NetError> {
        let io = |e| NetError::io("make a TCP socket", e);
        let v6 = peer.is_ipv6();
        let socket = Socket::new(Domain::for_address(peer), Type::STREAM, Some(Protocol::TCP)).map_err(io)?;
        socket.set_nonblocking(true).map_err(io)?;
        kernel_tcp::set_algorithm(&socket, &config.algorithm)?;
        kernel_tcp::set_not_sent_limit(&socket, config.not_sent)?;
        let headers = if v6 { 60 } else { 40 };
        // Segments as large as the datagrams, so that both transports load the path alike.
        let segment = config.segment.unwrap_or(packet_size);
        kernel_tcp::set_max_segment(&socket, Bytes::new(segment.get().saturating_sub(headers)))?;
        let marked = if v6 { socket.set_tclass_v6(tos.into()) } else { socket.set_tos_v4(tos.into()) };
        marked.map_err(io)?;
        if let Some(ip) = local.filter(|ip| ip.is_ipv6() == v6) {
            socket.bind(&SockAddr::from(SocketAddr::new(ip, 0))).map_err(io)?;
        }
        match socket.connect(&SockAddr::from(peer)) {
            Ok(()) => {}
            Err(e) if e.raw_os_error() == Some(Errno::EINPROGRESS as i32) => {}
            Err(e) => {
                let detail = failed(&e).detail();
                return Err(NetError::NoTcpHalf { peer, detail });
            }
        }
        let algorithm = kernel_tcp::algorithm(&socket)?;
        Ok(TcpSender {
            socket,
            connected: false,
            out: Vec::new(),
            taken: 0,
            inbox: Deframer::new(LONGEST),
            headers,
            last: None,
            reductions: 0,
            algorithm,
            asked: false,
            idle: IdleWindows::default(),
            is_idle: false,
            wanted: None,
        })
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// The congestion window, segments, when it was looked at last.
    pub(crate) fn cwnd(&self) -> Option<u32> {
        self.last.map(|info| info.cwnd)
    }

    /// Whether room in the kernel is awaited, or the connection itself.
    pub(crate) fn awaits_room(&self) -> bool {
        !self.connected || !self.out.is_empty()
    }

    /// Everything that can have happened since the last call, told to the session.
    pub(crate) fn turn(&mut self, now: Instant, session: &mut SenderSession) -> Result<(), TcpEnd> {
        if !self.connected {
            if let Some(e) = self.socket.take_error().map_err(|e| failed(&e))? {
                return Err(failed(&e));
            }
            // Not before it has a peer: `connect` is under way.
            if self.socket.peer_addr().is_err() {
                return Ok(());
            }
            self.connected = true;
            session.on_tcp_connected(now);
        }
        while fill(&self.socket, &mut self.inbox)? {
            self.hand_in(now, session)?;
        }
        self.hand_in(now, session)?;
        self.flush()?;
        session.set_tcp_room(self.out.is_empty());
        if session.is_connected() {
            let info = kernel_tcp::tcp_info(&self.socket).map_err(|e| TcpEnd::Failed(e.to_string()))?;
            session.on_tcp(now, &self.progress(&info));
            self.obey(session);
            if session.is_draining() && self.is_drained() {
                session.on_tcp_drained(now);
                self.obey(session);
                self.is_idle = true;
                self.idle.before = info.cwnd;
            }
        }
        Ok(())
    }

    /// Nothing more follows before all is acknowledged: the peer should not wait with that.
    pub(crate) fn drain(&mut self) -> Result<(), TcpEnd> {
        if core::mem::replace(&mut self.asked, true) {
            return Ok(());
        }
        framing::emit_null(&mut self.out);
        self.flush()
    }

    fn hand_in(&mut self, now: Instant, session: &mut SenderSession) -> Result<(), TcpEnd> {
        while let Some(packet) = self.inbox.next_packet().map_err(|e| TcpEnd::Failed(e.to_string()))? {
            session.handle_tcp_packet(now, packet);
        }
        Ok(())
    }

    /// Nothing waits, and all is acknowledged.
    pub(crate) fn is_drained(&self) -> bool {
        self.out.is_empty() && kernel_tcp::unsent_and_unacked(&self.socket).is_ok_and(|b| b == Bytes::ZERO)
    }

    /// Bytes of the stream that wait to leave or to be acknowledged.
    pub(crate) fn waiting(&self) -> Bytes {
        let ours = Bytes::new(self.out.len().saturating_sub(self.taken) as u64);
        ours + kernel_tcp::unsent_and_unacked(&self.socket).unwrap_or(Bytes::ZERO)
    }

    /// Sends one packet; `false` if no more should follow before there is room.
    pub(crate) fn push(&mut self, packet: &[u8]) -> Result<bool, TcpEnd> {
        self.asked = false;
        framing::emit(packet, &mut self.out).map_err(|e| TcpEnd::Failed(e.to_string()))?;
        self.flush()?;
        if core::mem::take(&mut self.is_idle) {
            // The kernel judges the idle time when it sends again.
            let info = kernel_tcp::tcp_info(&self.socket).map_err(|e| TcpEnd::Failed(e.to_string()))?;
            self.idle.periods += 1;
            self.idle.after = info.cwnd;
            self.idle.shrunk += u64::from(info.cwnd < self.idle.before);
            // That is no reduction, though it may have set the threshold.
            self.last = None;
        }
        Ok(self.out.is_empty())
    }

    fn flush(&mut self) -> Result<(), TcpEnd> {
        while let Some(rest) = self.out.get(self.taken..).filter(|rest| !rest.is_empty()) {
            match self.socket.send_with_flags(rest, MSG_NOSIGNAL) {
                Ok(n) => self.taken += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(e) => return Err(failed(&e)),
            }
        }
        self.out.clear();
        self.taken = 0;
        Ok(())
    }

    /// In the terms of `packet_size`: what a full segment is on the wire for each byte that it carries.
    fn progress(&mut self, info: &TcpInfo) -> TcpProgress {
        if self.last.is_some_and(|last| reduced(&last, info)) {
            self.reductions += 1;
        }
        self.last = Some(*info);
        let options = if info.timestamps { 12 } else { 0 };
        let payload = info.mss.get().max(1);
        let segment = payload + self.headers + options;
        let wire = |bytes: u64| Bytes::new((u128::from(bytes) * u128::from(segment) / u128::from(payload)) as u64);
        TcpProgress {
            acked: wire(info.bytes_acked.get()),
            cwnd: Bytes::new(u64::from(info.cwnd) * segment),
            mss: Bytes::new(segment),
            reductions: self.reductions,
            srtt: info.srtt,
        }
    }

    /// What the controller orders, as far as Linux lets a program do it.
    fn obey(&mut self, session: &mut SenderSession) {
        while let Some(order) = session.take_tcp_order() {
            match order {
                TcpOrder::NoDelay(on) => {
                    // Refused by no kernel; if it were, the last bytes would wait for an ACK.
                    let _ = self.socket.set_tcp_nodelay(on);
                }
                TcpOrder::SetCwnd(wanted) => self.wanted = Some(wanted),
            }
        }
    }

    pub(crate) fn stats(&self) -> TcpHalfStats {
        let mut stats = TcpHalfStats {
            algorithm: self.algorithm.clone(),
            reductions: self.reductions,
            slow_start_after_idle: slow_start_after_idle(),
            idle: self.idle,
            ..TcpHalfStats::default()
        };
        if let Some(info) = self.last {
            (stats.acked, stats.cwnd) = (info.bytes_acked, info.cwnd);
            stats.retransmitted = info.retransmitted.into();
            let segment = info.mss.get() + self.headers + if info.timestamps { 12 } else { 0 };
            let segments = self.wanted.map_or(0, |w| w.get().div_ceil(segment.max(1)));
            stats.idle.wanted = u32::try_from(segments).unwrap_or(u32::MAX);
        }
        stats
    }
}

/// Whether the congestion window was reduced between two looks: each reduction makes TCP leave its open state and sets
/// the threshold, mostly to another value. Algorithms that end slow start early (CUBIC) set it too.
fn reduced(before: &TcpInfo, after: &TcpInfo) -> bool {
    let calm = |info: &TcpInfo| matches!(info.ca_state, CaState::Open | CaState::Disorder);
    (calm(before) && !calm(after)) || after.ssthresh != before.ssthresh
}

fn slow_start_after_idle() -> Option<bool> {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_slow_start_after_idle").ok()?;
    match text.trim() {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    }
}

/// A connection that has not shown yet whose it is.
#[derive(Debug)]
struct Candidate {
    socket: Socket,
    from: IpAddr,
    inbox: Deframer,
    until: Instant,
}

/// What a receiver's TCP half has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct TcpReceiverStats {
    /// Connections that became part of a session.
    pub accepted: u64,
    /// Connections that were closed: from elsewhere, without a proof, or one too many.
    pub refused: u64,
    /// Times the kernel gave no connection although one may have waited: mostly, too many files are open. It is asked
    /// again a little later.
    pub failed: u64,
    /// Media datagrams that were left out, because what TCP had brought before them could not be read yet: nothing read
    /// the frames. The session counts them as lost.
    pub overtaken: u64,
}

/// Connections that may wait for their proof.
pub(crate) const MOST_CANDIDATES: usize = 4;
/// The first packet of a connection must have come within that.
const PROOF_WITHIN: Duration = Duration::from_secs(3);
/// Connections taken at one go, and reads: a flood must not keep the receiver from its datagrams.
const MOST_ACCEPTS: usize = 16;
pub(crate) const MOST_READS: usize = 16;

/// A receiver's port, and the one connection that is part of the session.
#[derive(Debug)]
pub(crate) struct TcpReceiver {
    listener: Socket,
    /// When to ask the listener again, if it has failed: what waits there makes it readable all the while.
    backoff: Backoff,
    candidates: Vec<Candidate>,
    stream: Option<(Socket, Deframer)>,
    stats: TcpReceiverStats,
}

impl TcpReceiver {
    /// Listens on the TCP port with the number of a UDP port.
    pub(crate) fn listen(address: SocketAddr, only_v6: bool) -> Result<TcpReceiver, NetError> {
        let io = |e| NetError::io("make a TCP socket", e);
        let listener = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP)).map_err(io)?;
        listener.set_nonblocking(true).map_err(io)?;
        if address.is_ipv6() {
            listener.set_only_v6(only_v6).map_err(io)?;
        }
        // Connections of an earlier run that are on their way out do not hold the port.
        listener.set_reuse_address(true).map_err(io)?;
        let bound = listener.bind(&SockAddr::from(address)).and_then(|()| listener.listen(MOST_CANDIDATES as i32));
        bound.map_err(|e| match e.raw_os_error().map(Errno::from_raw) {
            Some(Errno::EADDRINUSE) => NetError::TcpPortInUse { address },
            Some(Errno::EADDRNOTAVAIL) => NetError::NoSuchLocalAddress { address },
            Some(Errno::EACCES | Errno::EPERM) => NetError::Denied { what: format!("listen on TCP port {address}") },
            _ => NetError::io("listen on a TCP port", e),
        })?;
        Ok(TcpReceiver::on(listener))
    }

    fn on(listener: Socket) -> TcpReceiver {
        TcpReceiver {
            listener,
            backoff: Backoff::default(),
            candidates: Vec::new(),
            stream: None,
            stats: TcpReceiverStats::default(),
        }
    }

    /// Bounds the window that is offered to connections that come from now on.
    pub(crate) fn limit_window(&self, window: Bytes) -> Result<(), NetError> {
        kernel_tcp::set_window(&self.listener, window)
    }

    /// What to wait on; the stream itself only with `room`.
    pub(crate) fn descriptors(&self, room: bool) -> impl Iterator<Item = BorrowedFd<'_>> {
        let stream = self.stream.as_ref().filter(|_| room).map(|(socket, _)| socket.as_fd());
        let listener = self.listens_again().is_none().then(|| self.listener.as_fd());
        listener.into_iter().chain(self.candidates.iter().map(|c| c.socket.as_fd())).chain(stream)
    }

    /// When patience with a candidate ends, or the listener is asked again.
    pub(crate) fn next(&self) -> Instant {
        let again = self.listens_again().unwrap_or(Instant::NEVER);
        self.candidates.iter().fold(again, |t, c| t.min(c.until))
    }

    /// When the listener, which has failed, is asked again.
    fn listens_again(&self) -> Option<Instant> {
        (self.backoff != Backoff::default()).then(|| self.backoff.until())
    }

    /// Whether something has come that was not handed out.
    pub(crate) fn has_more(&mut self) -> bool {
        let Some((socket, inbox)) = &mut self.stream else { return false };
        inbox.has_packet() == Ok(true) || socket.peek(&mut [MaybeUninit::uninit()]).is_ok_and(|n| n > 0)
    }

    /// A datagram was left out.
    pub(crate) const fn overtaken(&mut self) {
        self.stats.overtaken += 1;
    }

    pub(crate) const fn stats(&self) -> TcpReceiverStats {
        self.stats
    }

    /// Takes in connections, and finds the sender's among them.
    pub(crate) fn greet(&mut self, now: Instant, session: &mut ReceiverSession) {
        // Another sender has taken the place.
        if self.stream.is_some() && !session.has_tcp() {
            self.stream = None;
        }
        self.accept(now, session);
        self.prove(now, session);
    }

    /// The next packet of the sender's connection, if one is there. `reads`: so often the kernel may still be asked at this
    /// go. A connection that has ended is closed; what ends the session is the sender's goodbye, or its silence.
    pub(crate) fn next_packet(&mut self, reads: &mut usize) -> Option<&[u8]> {
        loop {
            let (socket, inbox) = self.stream.as_mut()?;
            let found = inbox.has_packet();
            if found == Ok(true) {
                break;
            }
            let over = found.is_err() || {
                *reads = reads.checked_sub(1)?;
                let read = fill(socket, inbox);
                let found = inbox.has_packet();
                if inbox.take_null() {
                    // Not answered by every kernel; without, it takes 40 ms.
                    let _ = socket.set_tcp_quickack(true);
                }
                match read {
                    Ok(false) if found == Ok(false) => return None,
                    Ok(_) => false,
                    Err(_) => true,
                }
            };
            if over {
                self.stream = None;
            }
        }
        self.stream.as_mut()?.1.next_packet().ok()?
    }

    fn accept(&mut self, now: Instant, session: &ReceiverSession) {
        if now < self.backoff.until() {
            return;
        }
        for _ in 0..MOST_ACCEPTS {
            let (socket, from) = match self.listener.accept() {
                Ok(connection) => connection,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return self.backoff.succeeded(),
                Err(_) => {
                    self.stats.failed += 1;
                    return self.backoff.failed(now);
                }
            };
            self.backoff.succeeded();
            let from = from.as_socket().map(|a| canonical(a).ip());
            let wanted = session.wants_tcp() && from.is_some() && session.peer().map(|p| canonical(p).ip()) == from;
            let (Some(from), true, Ok(())) = (from, wanted, socket.set_nonblocking(true)) else {
                self.stats.refused += 1;
                continue;
            };
            if self.candidates.len() >= MOST_CANDIDATES {
                self.candidates.remove(0);
                self.stats.refused += 1;
            }
            let inbox = Deframer::new(LONGEST);
            self.candidates.push(Candidate { socket, from, inbox, until: now + PROOF_WITHIN });
        }
    }

    /// Looks for the one whose first packet proves that it is the sender's.
    fn prove(&mut self, now: Instant, session: &mut ReceiverSession) {
        let mut i = 0;
        while let Some(c) = self.candidates.get_mut(i) {
            let read = fill(&c.socket, &mut c.inbox);
            let verdict = match c.inbox.next_packet() {
                Ok(Some(packet)) => match session.accept_tcp(now, packet, c.from) {
                    Some(echo) => Verdict::Ours(echo),
                    None => Verdict::Refused,
                },
                Ok(None) if read.is_ok() && now < c.until => Verdict::Open,
                _ => Verdict::Refused,
            };
            match verdict {
                Verdict::Open => i += 1,
                Verdict::Refused => {
                    self.candidates.remove(i);
                    self.stats.refused += 1;
                }
                Verdict::Ours(echo) => {
                    let Candidate { socket, inbox, .. } = self.candidates.remove(i);
                    let mut framed = Vec::new();
                    // A new connection has room for 40 B; one that has not is of no use.
                    let sent = framing::emit(&echo, &mut framed).is_ok()
                        && socket.send_with_flags(&framed, MSG_NOSIGNAL).is_ok_and(|n| n == framed.len());
                    self.stream = sent.then_some((socket, inbox));
                    self.stats.accepted += 1;
                }
            }
        }
    }
}

enum Verdict {
    Open,
    Refused,
    Ours(Vec<u8>),
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairpace_rtp::{ReceiverConfig, Secret};

    #[test]
    fn a_listener_that_fails_is_left_alone_for_a_while_and_asked_again() {
        // Not listening, so `accept` fails as it does without a free file descriptor.
        let mut tcp = TcpReceiver::on(Socket::new(Domain::IPV4, Type::STREAM, None).unwrap());
        let mut session = ReceiverSession::new(ReceiverConfig::default(), Secret::from_seed(1));
        assert_eq!((tcp.descriptors(true).count(), tcp.next()), (1, Instant::NEVER));
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        for (ms, failed, again) in [(10, 1, 11), (10, 1, 11), (11, 2, 13), (13, 3, 17)] {
            tcp.greet(at(ms), &mut session);
            assert_eq!((tcp.stats.failed, tcp.next(), tcp.descriptors(true).count()), (failed, at(again), 0));
        }
        tcp.listener.listen(1).unwrap();
        tcp.listener.set_nonblocking(true).unwrap();
        tcp.greet(at(17), &mut session);
        assert_eq!((tcp.stats.failed, tcp.next(), tcp.descriptors(true).count()), (3, Instant::NEVER, 1));
    }
}
