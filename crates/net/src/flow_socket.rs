//! A socket whose flow goes by TCP now and by UDP then: the paper's fsocket [tpba §5].
//!
//! One UDP socket and one TCP connection with the same port numbers, and a thread that paces, reports, probes for the rate
//! ([`fairpace_control::tpba`]) and changes from one to the other. A program sees neither: it sends application data units
//! (ADUs) and receives them, whole and in order.
//!
//! ```no_run
//! use fairpace_net::FlowSocket;
//!
//! let mut receiver = FlowSocket::bind("0.0.0.0:5004".parse()?)?;
//! let from = receiver.accept()?; // waits for a sender
//! let mut buffer = [0; 65_536];
//! while let Some(got) = receiver.recv(&mut buffer)? {
//!     println!("{} bytes by {:?}{}", got.len, got.via, if got.adu_end { ", and the unit is whole" } else { "" });
//! }
//!
//! // and elsewhere
//! let mut sender = FlowSocket::bind("0.0.0.0:0".parse()?)?;
//! sender.connect("192.0.2.1:5004".parse()?)?;
//! sender.send(b"the first part ", false)?;
//! sender.send(b"and the last", true)?;
//! sender.close()?; // sends what waits, then says goodbye
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Rules
//!
//! - One direction: who connects sends, who accepts receives; both take two sockets ([`FlowSocket::accept_later`] for the one, then
//!   [`FlowSocket::connect`] for the other; from C one fsocket has both). One peer, of whom both ends see the same address.
//! - An ADU begins to leave when its end was given, so that no change of transport can split it; one that is longer than
//!   [`FlowSocketConfig::send_queue`] is refused. A program whose data has no units marks the end of what it has.
//! - [`FlowSocket::send`] waits while the queue is full, [`FlowSocket::recv`] while nothing is there.
//! - By TCP nothing is lost, and a receiver that does not read holds the sender back. By UDP a packet may be lost, with the
//!   ADU that it was part of; the next one then says how many packets are missing before it ([`Received::missing`]).
//!
//! # Deviations
//!
//! The paper has a UDP flow of its own for RTCP: here RTCP is on the data's [RFC 5761]. Its kernel sets the congestion window
//! where probing begins: Linux lets no program do that, and what becomes of the window is measured
//! ([`crate::IdleWindows`]). Its ADUs leave piece by piece as they are written.
//!
//! From C: `crates/fsocket`. More, with measured numbers: `docs/net/flow-socket.md`.

mod config;
mod observer;
mod queue;
mod stats;

use crate::receive::{ReceiveConfig, ReceiveEnd, Receiver};
use crate::send::{self, SendEnd};
use crate::tcp_half::TcpReceiver;
use crate::{Clock, NetError, UdpSocket};
pub use config::FlowSocketConfig;
use fairpace_rtp::{AllowedSender, ReceiverConfig};
use fairpace_units::{Bytes, Duration};
use nix::errno::Errno;
use nix::sys::signal::{SigSet, SigmaskHow};
use observer::Observer;
use queue::{QueueSink, QueueSource, Shared};
pub use stats::{FlowSocketStats, Received};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

/// The socket. Dropped without [`FlowSocket::close`], it says goodbye at once.
#[derive(Debug)]
pub struct FlowSocket {
    config: FlowSocketConfig,
    clock: Clock,
    shared: Arc<Shared>,
    stop: Arc<AtomicBool>,
    role: Role,
}

#[derive(Debug)]
enum Role {
    Bound(Box<(UdpSocket, TcpReceiver)>),
    Sender(Option<JoinHandle<()>>),
    Receiver(Option<JoinHandle<()>>),
    /// A connect or accept has failed before there was a thread.
    Broken,
}

/// With port 0, the kernel's choice for UDP may be taken for TCP: so often another is asked for.
const PORTS_TO_TRY: usize = 8;

impl FlowSocket {
    /// A socket on this address, both of UDP and of TCP; port 0 takes one that is free for both.
    ///
    /// # Errors
    /// [`NetError::PortInUse`], [`NetError::TcpPortInUse`], [`NetError::NoSuchLocalAddress`], [`NetError::Denied`] or
    /// [`NetError::Io`].
    pub fn bind(local: SocketAddr) -> Result<FlowSocket, NetError> {
        FlowSocket::bind_with(local, FlowSocketConfig::default())
    }

    /// As [`FlowSocket::bind`], with other than the usual parameters.
    ///
    /// # Errors
    /// As [`FlowSocket::bind`]; [`NetError::Control`] and [`NetError::Config`] if one is not allowed.
    pub fn bind_with(local: SocketAddr, config: FlowSocketConfig) -> Result<FlowSocket, NetError> {
        let clock = Clock::start();
        config.check()?;
        let mut tries = if local.port() == 0 { PORTS_TO_TRY } else { 1 };
        let halves = loop {
            tries -= 1;
            let udp = UdpSocket::bind(local, true, config.buffers, clock)?;
            match TcpReceiver::listen(udp.bound_address()?, true) {
                Ok(tcp) => break (udp, tcp),
                Err(NetError::TcpPortInUse { .. }) if tries > 0 => {}
                Err(e) => return Err(e),
            }
        };
        let shared = Arc::new(Shared::new(config.send_queue, config.receive_queue, config.reorder_wait)?);
        let stop = Arc::new(AtomicBool::new(false));
        Ok(FlowSocket { config, clock, shared, stop, role: Role::Bound(Box::new(halves)) })
    }

    /// Its own address, while it is neither connected nor accepting.
    ///
    /// # Errors
    /// [`NetError::Io`] if it is, or the kernel does not say.
    pub fn local_address(&self) -> Result<SocketAddr, NetError> {
        match &self.role {
            Role::Bound(halves) => halves.0.local_address(),
            _ => Err(not_now("read the address of a socket in use")),
        }
    }

    /// The parameters.
    pub const fn config(&self) -> &FlowSocketConfig {
        &self.config
    }

    /// Other parameters, before the socket is connected or accepts. Its queues and buffers stay as they were bound.
    ///
    /// # Errors
    /// As [`FlowSocket::bind_with`]; [`NetError::Io`] if the socket is connected or accepting already. The parameters stay
    /// as they were then.
    pub fn configure(&mut self, config: FlowSocketConfig) -> Result<(), NetError> {
        if !matches!(self.role, Role::Bound(_)) {
            return Err(not_now("set up a socket that is in use"));
        }
        config.check()?;
        self.config = config;
        Ok(())
    }

    /// Whether it has neither been connected nor accepted.
    pub const fn is_bound(&self) -> bool {
        matches!(self.role, Role::Bound(_))
    }

    /// Whether it has been connected.
    pub const fn is_sender(&self) -> bool {
        matches!(self.role, Role::Sender(_))
    }

    /// Connects to a socket that accepts, and makes this one the sender. Returns when both halves are there.
    ///
    /// # Errors
    /// [`NetError::PeerUnreachable`] after 7 s without an answer, [`NetError::NoTcpHalf`] if it answers by UDP only, what else
    /// [`send::run`] gives; [`NetError::Io`] if the socket is connected or accepting already.
    pub fn connect(&mut self, peer: SocketAddr) -> Result<(), NetError> {
        let Role::Bound(halves) = core::mem::replace(&mut self.role, Role::Broken) else {
            return Err(not_now("connect a socket that is in use"));
        };
        let (mut udp, _) = *halves;
        udp.connect_to(peer)?;
        udp.woken_by(Arc::clone(&self.shared.wake));
        let config = self.config.send_config(peer);
        let (clock, shared, stop) = (self.clock, Arc::clone(&self.shared), Arc::clone(&self.stop));
        let thread = spawn(Arc::clone(&self.shared), move || {
            let mut source = QueueSource::new(Arc::clone(&shared));
            let mut observer = Observer::new(Arc::clone(&shared));
            let result = send::run_on(&mut udp, &config, clock, &mut source, &mut observer, &stop);
            shared.with(|s| match result {
                Ok(report) => {
                    s.stats.tcp = report.tcp;
                    s.stats.switches = report.switches;
                    s.left_behind |= report.left_behind > Bytes::ZERO;
                    s.end(match report.end {
                        SendEnd::Failed(e) => Some(e),
                        SendEnd::PeerBye => {
                            Some(NetError::PeerVanished { peer, detail: "it closed its socket".to_owned() })
                        }
                        SendEnd::Finished | SendEnd::Interrupted => None,
                    });
                }
                Err(e) => s.end(Some(e)),
            });
        })?;
        self.role = Role::Sender(Some(thread));
        self.shared.await_peer()
    }

    /// Waits for a sender, and makes this socket its receiver. Returns the sender's address when both halves are there.
    ///
    /// # Errors
    /// [`NetError::NoSender`] after [`FlowSocketConfig::patience`]; [`NetError::Io`] if the socket is connected or
    /// accepting already.
    pub fn accept(&mut self) -> Result<SocketAddr, NetError> {
        self.accept_later(None)?;
        self.shared.await_peer()?;
        self.shared.with(|s| s.stats.peer).ok_or_else(|| not_now("find the sender's address"))
    }

    /// As [`FlowSocket::accept`], and does not wait: [`FlowSocket::recv`] does. With `from`, only a sender of that address is heard.
    ///
    /// # Errors
    /// [`NetError::Io`] if the socket is connected or accepting already.
    pub fn accept_later(&mut self, from: Option<IpAddr>) -> Result<(), NetError> {
        let Role::Bound(halves) = core::mem::replace(&mut self.role, Role::Broken) else {
            return Err(not_now("accept on a socket that is in use"));
        };
        let (mut udp, tcp) = *halves;
        udp.woken_by(Arc::clone(&self.shared.wake));
        let session =
            ReceiverConfig { from: from.map(AllowedSender::from).into_iter().collect(), ..ReceiverConfig::default() };
        let config = ReceiveConfig {
            session,
            one_sender: true,
            patience: self.config.patience,
            // An ADU may be long on its way; what never becomes one is bounded in packets.
            frame_hold: Duration::MAX,
            ..ReceiveConfig::new(udp.local_address()?.port())
        };
        let receiver = Receiver::with_tcp(udp, tcp, config, self.clock)?;
        let (shared, stop) = (Arc::clone(&self.shared), Arc::clone(&self.stop));
        let thread = spawn(Arc::clone(&self.shared), move || {
            let mut sink = QueueSink::new(Arc::clone(&shared));
            let mut observer = Observer::new(Arc::clone(&shared));
            let result = receiver.run(&mut sink, &mut observer, &stop);
            shared.with(|s| match result {
                Ok(report) => {
                    s.stats.received = Some(report.stats);
                    s.end(match report.end {
                        ReceiveEnd::Failed(e) => Some(e),
                        ReceiveEnd::Bye(_) | ReceiveEnd::Finished | ReceiveEnd::Replaced | ReceiveEnd::Interrupted => {
                            None
                        }
                    });
                }
                Err(e) => s.end(Some(e)),
            });
        })?;
        self.role = Role::Receiver(Some(thread));
        Ok(())
    }

    /// Gives `bytes` to the flow: part of an ADU, or with `adu_end` its last part. Waits while the queue is full.
    ///
    /// # Errors
    /// [`NetError::Config`] if the ADU is longer than the queue, and what ended the flow.
    pub fn send(&self, bytes: &[u8], adu_end: bool) -> Result<(), NetError> {
        match self.role {
            Role::Sender(_) => self.shared.send(bytes, adu_end),
            _ => Err(not_now("send on a socket that is not connected")),
        }
    }

    /// The next bytes of the next ADU; `None` when the sender has closed. Waits until there are some.
    ///
    /// # Errors
    /// What ended the flow, once all that had come was handed out.
    pub fn recv(&self, buffer: &mut [u8]) -> Result<Option<Received>, NetError> {
        match self.role {
            Role::Receiver(_) => self.shared.recv(buffer),
            _ => Err(not_now("receive on a socket that has not accepted")),
        }
    }

    /// Ends, from another thread, a call that waits.
    pub fn canceller(&self) -> Canceller {
        Canceller(Arc::clone(&self.shared))
    }

    /// Becomes readable when [`FlowSocket::recv`] would not wait; for `poll` and `select`. Not to be read itself.
    pub fn readiness(&self) -> BorrowedFd<'_> {
        self.shared.readiness.as_fd()
    }

    /// Bytes of ADUs that wait for [`FlowSocket::recv`], those behind a gap included.
    pub fn waiting(&self) -> Bytes {
        Bytes::new(self.shared.with(|s| s.readable_bytes()) as u64)
    }

    /// The counts so far.
    pub fn stats(&self) -> FlowSocketStats {
        self.shared.with(|s| s.stats.clone())
    }

    /// Ends the flow: a sender when all has left that was given to it, and TCP has delivered its part, or after
    /// [`FlowSocketConfig::linger`]; then says goodbye. Part of an ADU whose end was not given never leaves.
    ///
    /// # Errors
    /// What ended the flow before; [`NetError::Io`] (ETIMEDOUT) if something was left behind.
    pub fn close(mut self) -> Result<FlowSocketStats, NetError> {
        match &mut self.role {
            Role::Sender(thread) => {
                self.shared.finish();
                // Nothing was given to a peer that has not answered.
                let linger = if self.shared.with(|s| s.has_peer()) { self.config.linger } else { Duration::ZERO };
                if !self.shared.await_end(linger) {
                    self.stop.store(true, Ordering::Relaxed);
                    self.shared.wake();
                }
                join(thread);
            }
            Role::Receiver(thread) => {
                self.stop.store(true, Ordering::Relaxed);
                self.shared.wake();
                join(thread);
            }
            Role::Bound(_) | Role::Broken => {}
        }
        match self.shared.with(|s| s.take_error()) {
            Some(e) => Err(e),
            None => Ok(self.stats()),
        }
    }
}

/// Ends the calls of a [`FlowSocket`] that wait, so that it can be closed.
#[derive(Clone, Debug)]
pub struct Canceller(Arc<Shared>);

impl Canceller {
    /// From now on no call of the socket waits, but for [`FlowSocket::close`]: one that would, or does, gives
    /// [`NetError::Io`] (ECANCELED). Data that has come can still be received.
    pub fn cancel(&self) {
        self.0.with(|s| s.cancel());
    }
}

impl Drop for FlowSocket {
    fn drop(&mut self) {
        if let Role::Sender(thread) | Role::Receiver(thread) = &mut self.role {
            self.stop.store(true, Ordering::Relaxed);
            self.shared.wake();
            join(thread);
        }
    }
}

fn join(thread: &mut Option<JoinHandle<()>>) {
    if let Some(thread) = thread.take() {
        // A thread that panicked has told the program: [`Ending`].
        let _ = thread.join();
    }
}

/// A thread that ends the flow when it ends, however that is. The program's signals are not for it.
fn spawn(shared: Arc<Shared>, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, NetError> {
    let before = SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK);
    let thread = thread::Builder::new().name("flow-socket".to_owned()).spawn(move || {
        let _ending = Ending(shared);
        run();
    });
    if let Ok(before) = before {
        // That mask was in force a moment ago.
        let _ = before.thread_set_mask();
    }
    thread.map_err(|e| NetError::io("start a thread", e))
}

/// A program that waits for a thread that has panicked would wait for ever.
struct Ending(Arc<Shared>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.with(|s| s.end_if_going_on());
    }
}

fn not_now(what: &'static str) -> NetError {
    NetError::io(what, Errno::ENOTCONN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_panics_ends_the_flow_with_an_error_and_takes_no_signal() {
        let shared = Arc::new(Shared::new(Bytes::new(9), Bytes::new(9), Duration::ZERO).unwrap());
        let (told, tell) = std::sync::mpsc::channel();
        let thread = spawn(Arc::clone(&shared), move || {
            let mask = |s| SigSet::thread_get_mask().unwrap().contains(s);
            told.send([nix::sys::signal::SIGINT, nix::sys::signal::SIGALRM].map(mask)).unwrap();
            panic!("as it should in this test");
        });
        assert_eq!(tell.recv().unwrap(), [true; 2]);
        assert!(!SigSet::thread_get_mask().unwrap().contains(nix::sys::signal::SIGALRM));
        assert!(matches!(shared.recv(&mut [0; 8]), Err(NetError::Io { .. })));
        assert!(shared.send(b"x", true).is_err());
        join(&mut Some(thread.unwrap()));
    }
}
