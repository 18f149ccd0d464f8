//! A sender's connection.

use super::stream::{LONGEST, TcpEnd, failed, fill};
use crate::NetError;
use crate::kernel_tcp::{self, CaState, TcpInfo};
use crate::seal::SenderSeal;
use fairpace_control::{TcpOrder, TcpProgress};
use fairpace_rtp::SenderSession;
use fairpace_rtp::framing::{self, Deframer};
use fairpace_units::{Bytes, Instant};
use nix::errno::Errno;
use nix::libc::MSG_NOSIGNAL;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io;
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

/// The record of a sender's TCP half.
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
    /// The value of cwnd_new then, segments.
    pub wanted: u32,
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
    pub(crate) fn turn(
        &mut self,
        now: Instant,
        session: &mut SenderSession,
        seal: &mut Option<SenderSeal>,
    ) -> Result<(), TcpEnd> {
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
            self.hand_in(now, session, seal)?;
        }
        self.hand_in(now, session, seal)?;
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

    fn hand_in(
        &mut self,
        now: Instant,
        session: &mut SenderSession,
        seal: &mut Option<SenderSeal>,
    ) -> Result<(), TcpEnd> {
        while let Some(packet) = self.inbox.next_packet().map_err(|e| TcpEnd::Failed(e.to_string()))? {
            let opened = match seal {
                Some(seal) => seal.open(packet),
                None => Some(packet),
            };
            if let Some(packet) = opened {
                session.handle_tcp_packet(now, packet);
            }
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
        let segment = info.mss.max(Bytes::new(1)) + Bytes::new(self.headers + options);
        TcpProgress {
            acked: TcpProgress::on_the_wire(info.bytes_acked, info.mss, segment),
            unsent: info.not_sent + Bytes::new(self.out.len().saturating_sub(self.taken) as u64),
            cwnd: Bytes::new(segment.get() * u64::from(info.cwnd)),
            mss: segment,
            reductions: self.reductions,
            srtt: info.srtt,
        }
    }

    /// Carries out the controller's orders, as far as Linux lets a program do so.
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
