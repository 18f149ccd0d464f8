//! A flow of the kernel's TCP: one thread that writes, one that reads, and the kernel's own account of the
//! connection every [`TICK`].

use super::endpoint::{Areas, Endpoint, Moment};
use super::ip::Ip;
use fairpace_emu::{EmuError, netlink};
use fairpace_net::kernel_tcp::{self, CaState, TcpInfo};
use fairpace_net::{Clock, NetError};
use fairpace_sim::tcp::{TcpParams, TcpSource};
use fairpace_sim::{Bursts, FlowId};
use fairpace_units::{Bytes, Duration, Instant, RandomStream};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{MsgFlags, recv};
use socket2::{Domain, Protocol, Socket, Type};
use std::io::Write as _;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd as _};
use std::sync::atomic::{AtomicBool, Ordering};

/// How often a sender looks at the kernel's account: shorter than any round trip worth emulating, so that no
/// recovery, which takes one at least, is missed.
const TICK: Duration = Duration::from_millis(20);

/// The receivers' device.
const DEVICE: &str = "fairpace0";

/// The plan of one flow.
#[derive(Clone, Debug)]
pub(crate) struct TcpPlan {
    pub(crate) flow: FlowId,
    pub(crate) name: String,
    /// As `TCP_CONGESTION` has it.
    pub(crate) algorithm: &'static str,
    pub(crate) ip: Ip,
    /// Full packets, headers included.
    pub(crate) packet_size: Bytes,
    pub(crate) params: TcpParams,
    pub(crate) source: TcpSource,
    pub(crate) start: Instant,
    pub(crate) stop: Option<Instant>,
    pub(crate) end: Instant,
    pub(crate) seed: u64,
}

impl TcpPlan {
    fn socket(&self, address: SocketAddr) -> Result<Socket, NetError> {
        let io = |e: std::io::Error| NetError::Io { what: "make a TCP socket", source: e };
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP)).map_err(io)?;
        socket.set_nonblocking(true).map_err(io)?;
        let segment = self.packet_size.get().saturating_sub(self.ip.tcp_headers());
        kernel_tcp::set_max_segment(&socket, Bytes::new(segment))?;
        kernel_tcp::set_algorithm(&socket, self.algorithm)?;
        Ok(socket)
    }

    /// The receiving socket; call it inside the receivers' namespace.
    pub(crate) fn listen(&self, at: SocketAddr, from: SocketAddr) -> Result<Socket, EmuError> {
        // Simulated receivers acknowledge each segment unless the scenario has it otherwise.
        if self.params.delayed_ack.is_none() {
            netlink::acknowledge_each(from.ip(), DEVICE)?;
        }
        let socket = self.socket(at)?;
        if let Some(window) = window(&self.params, self.packet_size, self.ip) {
            kernel_tcp::set_window(&socket, window)?;
        }
        let io = |e: std::io::Error| NetError::Io { what: "listen for a TCP connection", source: e };
        socket.bind(&at.into()).map_err(io)?;
        socket.listen(1).map_err(io)?;
        Ok(socket)
    }

    /// The sending socket, not connected yet; call it inside the senders' namespace.
    pub(crate) fn sender(&self, from: SocketAddr) -> Result<Socket, NetError> {
        let socket = self.socket(from)?;
        let bind = |e: std::io::Error| NetError::Io { what: "bind a TCP socket", source: e };
        socket.bind(&from.into()).map_err(bind)?;
        // Whoever pauses or stops must not have much waiting in the kernel.
        if self.stop.is_some() || matches!(self.source, TcpSource::OnOff(_)) {
            kernel_tcp::set_not_sent_limit(&socket, Bytes::new(PAUSING_BUFFER))?;
        }
        Ok(socket)
    }
}

/// The receiver's window in bytes; `None` if it is not meant to limit anything.
pub(crate) fn window(params: &TcpParams, segment: Bytes, ip: Ip) -> Option<Bytes> {
    let packets = params.max_window;
    (packets < TcpParams::default().max_window)
        .then(|| Bytes::new(packets.get() * segment.get().saturating_sub(ip.tcp_headers())))
}

/// Unsent data of a source that pauses: about what TCP takes at one go.
const PAUSING_BUFFER: u64 = 16_384;

/// Sends until the flow's end; the kernel's account is in the report.
pub(crate) fn send(
    plan: &TcpPlan,
    socket: Socket,
    to: SocketAddr,
    clock: Clock,
    warmup: Instant,
    stop: &AtomicBool,
) -> Endpoint {
    let mut run = Sending::new(plan, clock, warmup);
    let trouble = run.run(socket, to, stop).err();
    run.finish(trouble)
}

struct Sending<'a> {
    plan: &'a TcpPlan,
    clock: Clock,
    warmup: Instant,
    areas: Areas,
    out: Endpoint,
    last: Option<TcpInfo>,
    /// The state at the last look.
    ca: CaState,
    bursts: Option<Bursts>,
    on: bool,
    /// Payload bytes of a transfer that the kernel has not taken.
    left: Option<u64>,
}

impl<'a> Sending<'a> {
    fn new(plan: &'a TcpPlan, clock: Clock, warmup: Instant) -> Self {
        let random = || RandomStream::named(plan.seed, &format!("flow.{}.on_off", plan.name));
        // Sizes of transfers are on the wire, as the simulator has them.
        let payload = |bytes: Bytes| {
            let packets = bytes.get().div_ceil(plan.packet_size.get().max(1));
            bytes.get().saturating_sub(packets * plan.ip.tcp_headers()).max(1)
        };
        Sending {
            clock,
            warmup,
            areas: Areas::default(),
            out: Endpoint::new(plan.flow, format!("tcp-{} (kernel)", plan.algorithm), plan.start),
            last: None,
            ca: CaState::Open,
            bursts: match plan.source {
                TcpSource::OnOff(times) => Some(Bursts::new(times, random())),
                _ => None,
            },
            on: true,
            left: match plan.source {
                TcpSource::Transfer(bytes) => Some(payload(bytes)),
                _ => None,
            },
            plan,
        }
    }

    fn run(&mut self, socket: Socket, to: SocketAddr, stop: &AtomicBool) -> Result<(), NetError> {
        let over = |now: Instant, plan: &TcpPlan| now >= plan.end || stop.load(Ordering::Relaxed);
        // Until it begins.
        loop {
            let now = self.clock.now();
            if over(now, self.plan) {
                return Ok(());
            }
            if now >= self.plan.start {
                break;
            }
            wait(socket.as_fd(), PollFlags::empty(), self.plan.start.since(now).min(TICK))?;
        }
        match socket.connect(&to.into()) {
            Ok(()) => {}
            Err(e) if e.raw_os_error() == Some(Errno::EINPROGRESS as i32) => {}
            Err(source) => return Err(NetError::Io { what: "connect a TCP socket", source }),
        }
        loop {
            let now = self.clock.now();
            if over(now, self.plan) {
                return Ok(());
            }
            if wait(socket.as_fd(), PollFlags::POLLOUT, TICK)? {
                break;
            }
        }
        if let Ok(Some(source)) = socket.take_error() {
            return Err(NetError::Io { what: "connect a TCP socket", source });
        }
        if let Some(bursts) = &mut self.bursts {
            bursts.start(self.clock.now());
        }
        self.transmit(socket, stop)
    }

    fn transmit(&mut self, mut socket: Socket, stop: &AtomicBool) -> Result<(), NetError> {
        let chunk = vec![0x5a; 65_536];
        let mut next_look = self.clock.now();
        loop {
            let now = self.clock.now();
            if now >= next_look || now >= self.plan.end {
                self.look(&socket, now)?;
                next_look = now + TICK;
            }
            if now >= self.plan.end || stop.load(Ordering::Relaxed) {
                break;
            }
            self.toggle(now);
            let stopped = self.plan.stop.is_some_and(|at| now >= at);
            let wants = self.on && !stopped && self.left != Some(0);
            let pause = next_look.since(now).min(self.plan.end.since(now));
            let until_burst = self.bursts.as_ref().map_or(pause, |b| pause.min(b.next().since(now)));
            let flags = if wants { PollFlags::POLLOUT } else { PollFlags::empty() };
            if !wait(socket.as_fd(), flags, until_burst)? || !wants {
                continue;
            }
            let most =
                if self.bursts.is_some() || self.plan.stop.is_some() { PAUSING_BUFFER as usize } else { chunk.len() };
            let len = self.left.map_or(most, |left| most.min(usize::try_from(left).unwrap_or(most)));
            match socket.write(chunk.get(..len).unwrap_or(&chunk)) {
                Ok(n) => self.left = self.left.map(|left| left.saturating_sub(n as u64)),
                Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(source) => return Err(NetError::Io { what: "write to a TCP connection", source }),
            }
        }
        // Nobody needs the data that is still under way: the connection is reset, and nothing waits.
        let _ = socket.set_linger(Some(std::time::Duration::ZERO));
        Ok(())
    }

    fn toggle(&mut self, now: Instant) {
        if let Some(bursts) = &mut self.bursts {
            while now >= bursts.next() {
                bursts.toggle(now);
            }
            self.on = bursts.on();
        }
    }

    /// Asks the kernel.
    fn look(&mut self, socket: &Socket, now: Instant) -> Result<(), NetError> {
        let info = kernel_tcp::tcp_info(socket)?;
        let counters = &mut self.out.tcp;
        if info.ca_state != self.ca {
            match info.ca_state {
                CaState::Recovery => counters.fast_retransmits += 1,
                CaState::Cwr => counters.ecn_cuts += 1,
                CaState::Loss if info.timeouts.is_none() => counters.timeouts += 1,
                _ => {}
            }
            if info.ca_state == CaState::Loss {
                counters.timeout_sequences += 1;
            }
            self.ca = info.ca_state;
        }
        counters.sent = u64::from(info.data_segments_out);
        counters.retransmitted = u64::from(info.retransmitted);
        if let Some(timeouts) = info.timeouts {
            counters.timeouts = timeouts;
        }
        let slow_start = info.ssthresh.is_none_or(|s| info.cwnd < s);
        let moment = Moment {
            at: now,
            cwnd: f64::from(info.cwnd),
            srtt: info.srtt,
            rto: Some(info.rto),
            send_buffer: info.not_sent,
            state: match info.ca_state {
                CaState::Recovery => "recovery",
                CaState::Loss => "timeout",
                _ if slow_start => "slow-start",
                _ => "congestion-avoidance",
            },
            acknowledged: info.bytes_acked.get() / info.mss.get().max(1),
            tcp: self.out.tcp,
            ..Moment::default()
        };
        if let (Some(left), None) = (self.left, self.out.finished)
            && left == 0
            && kernel_tcp::unsent_and_unacked(socket)? == Bytes::ZERO
        {
            self.out.finished = Some(now);
        }
        self.areas.add(&moment, self.warmup);
        self.out.note(moment, self.warmup);
        self.last = Some(info);
        Ok(())
    }

    fn finish(mut self, trouble: Option<NetError>) -> Endpoint {
        self.out.ssthresh = self.last.and_then(|i| i.ssthresh).map_or(f64::INFINITY, f64::from);
        self.out.areas = Some(self.areas.sums);
        self.out.trouble = trouble.map(|e| e.to_string());
        self.out
    }
}

/// Reads what comes until the connection or the run ends. Payload bytes in order, at the end of the warm-up
/// and at the end.
pub(crate) fn receive(
    plan: &TcpPlan,
    listener: &Socket,
    clock: Clock,
    warmup: Instant,
    stop: &AtomicBool,
) -> [Bytes; 2] {
    let mut counted = [Bytes::ZERO; 2];
    let over = || clock.now() >= plan.end || stop.load(Ordering::Relaxed);
    let connection = loop {
        if over() {
            return counted;
        }
        let ready = wait(listener.as_fd(), PollFlags::POLLIN, TICK).unwrap_or(true);
        if ready && let Ok((connection, _)) = listener.accept() {
            break connection;
        }
    };
    let _ = connection.set_nonblocking(true);
    // With MSG_TRUNC the kernel throws away what it would copy: this is never written to.
    let mut nothing = vec![0; 1 << 20];
    while !over() {
        if !wait(connection.as_fd(), PollFlags::POLLIN, TICK).unwrap_or(true) {
            continue;
        }
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_TRUNC;
        match recv(connection.as_raw_fd(), &mut nothing, flags) {
            Ok(0) => break,
            Ok(n) => {
                let [before, all] = &mut counted;
                *all += Bytes::new(n as u64);
                if clock.now() < warmup {
                    *before = *all;
                }
            }
            Err(Errno::EAGAIN | Errno::EINTR) => {}
            Err(_) => break,
        }
    }
    counted
}

/// Waits for the socket, at most so long; true if it is ready (or has failed, which the next call tells).
fn wait(socket: impl AsFd, flags: PollFlags, at_most: Duration) -> Result<bool, NetError> {
    // Rounded up: a little late, never round and round.
    let ms = at_most.as_nanos().div_ceil(1_000_000);
    let timeout = PollTimeout::from(u16::try_from(ms).unwrap_or(u16::MAX));
    let mut fds = [PollFd::new(socket.as_fd(), flags)];
    match poll(&mut fds, timeout) {
        Ok(0) | Err(Errno::EINTR) => Ok(false),
        // Nobody asked, and something has gone wrong: do not spin on it.
        Ok(_) if flags.is_empty() => {
            let _ = poll(&mut [], timeout);
            Ok(false)
        }
        Ok(_) => Ok(true),
        Err(e) => Err(NetError::Io { what: "wait for a TCP socket", source: e.into() }),
    }
}
