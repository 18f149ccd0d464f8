//! A receiver's TCP port, and the connection that is the sender's.

#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

use super::stream::{LONGEST, fill};
use crate::address::canonical;
use crate::datagram::Backoff;
use crate::seal::{self, ReceiverSeal};
use crate::{NetError, kernel_tcp};
use fairpace_rtp::framing::{self, Deframer};
use fairpace_rtp::{ReceiverSession, What};
use fairpace_units::{Bytes, Duration, Instant};
use nix::errno::Errno;
use nix::libc::MSG_NOSIGNAL;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io;
use std::mem::MaybeUninit;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};

/// A connection that has not shown yet whose it is.
#[derive(Debug)]
struct Candidate {
    socket: Socket,
    from: IpAddr,
    inbox: Deframer,
    until: Instant,
}

/// The record of a receiver's TCP half.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct TcpReceiverStats {
    /// Connections that became part of a session.
    pub accepted: u64,
    /// Connections that were closed: from elsewhere, without a proof, or one too many.
    pub refused: u64,
    /// Times the kernel gave no connection although one may have waited: mostly, too many files are open. The kernel
    /// is asked again a little later.
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

    /// The descriptors to wait on; the stream itself only with `room`.
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
    pub(crate) fn greet(&mut self, now: Instant, session: &mut ReceiverSession, seal: &mut Option<ReceiverSeal>) {
        // Another sender has taken the place.
        if self.stream.is_some() && !session.has_tcp() {
            self.stream = None;
        }
        self.accept(now, session);
        self.prove(now, session, seal);
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
                // Everything that was read is acknowledged at once, a null packet and all else: delayed ACKs bunch what the sender may send, and make
                // the last segment before a change to UDP wait for 40 ms. Not every kernel does it.
                let _ = inbox.take_null();
                let _ = socket.set_tcp_quickack(true);
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
    fn prove(&mut self, now: Instant, session: &mut ReceiverSession, seal: &mut Option<ReceiverSeal>) {
        let mut i = 0;
        while let Some(c) = self.candidates.get_mut(i) {
            let read = fill(&c.socket, &mut c.inbox);
            let verdict = match c.inbox.next_packet() {
                Ok(Some(packet)) => {
                    let echo = match (seal.as_mut(), session.peer()) {
                        (None, _) => session.accept_tcp(now, packet, c.from),
                        (Some(_), None) => None,
                        // The connection's sender is the one that the datagrams come from.
                        (Some(seal), Some(peer)) => {
                            let mut opened = Vec::new();
                            let opened = seal.open(packet, canonical(peer), seal::draw, &mut opened);
                            let echo = opened.and_then(|packet| session.accept_tcp(now, packet, c.from));
                            echo.and_then(|echo| seal.seal(What::Echo, &echo, canonical(peer)).map(<[u8]>::to_vec))
                        }
                    };
                    echo.map_or(Verdict::Refused, Verdict::Ours)
                }
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
    use fairpace_units::Ecn;

    #[test]
    fn a_listener_that_fails_is_left_alone_for_a_while_and_asked_again() {
        // Not listening, so `accept` fails as it does without a free file descriptor.
        let mut tcp = TcpReceiver::on(Socket::new(Domain::IPV4, Type::STREAM, None).unwrap());
        let mut session = ReceiverSession::new(ReceiverConfig::default(), Secret::from_seed(1));
        assert_eq!((tcp.descriptors(true).count(), tcp.next()), (1, Instant::NEVER));
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        for (ms, failed, again) in [(10, 1, 11), (10, 1, 11), (11, 2, 13), (13, 3, 17)] {
            tcp.greet(at(ms), &mut session, &mut None);
            assert_eq!((tcp.stats.failed, tcp.next(), tcp.descriptors(true).count()), (failed, at(again), 0));
        }
        tcp.listener.listen(1).unwrap();
        tcp.listener.set_nonblocking(true).unwrap();
        tcp.greet(at(17), &mut session, &mut None);
        assert_eq!((tcp.stats.failed, tcp.next(), tcp.descriptors(true).count()), (3, Instant::NEVER, 1));
    }

    /// A receiver that waits for the TCP half of a sender on this machine.
    fn awaiting() -> ReceiverSession {
        let env = fairpace_control::Env::default();
        let controller = fairpace_control::build("tpba", &Default::default(), &env).expect("a scheme");
        let flow = fairpace_control::Flow::new(controller, fairpace_control::FlowParams::new(&env));
        let mut sender =
            fairpace_rtp::SenderSession::new(fairpace_rtp::SenderConfig::default(), flow, Secret::from_seed(1));
        let mut session = ReceiverSession::new(ReceiverConfig::default(), Secret::from_seed(2));
        let from = SocketAddr::from(([127, 0, 0, 1], 5_004));
        while let fairpace_rtp::Out::Datagram(d) = sender.poll(Instant::ZERO) {
            session.handle_datagram(Instant::ZERO, d.bytes, d.dscp, Ecn::NotEct, from);
        }
        assert!(session.wants_tcp());
        session
    }

    fn listening() -> (TcpReceiver, SocketAddr) {
        let tcp = TcpReceiver::listen(SocketAddr::from(([127, 0, 0, 1], 0)), false).expect("a port");
        let address = tcp.listener.local_addr().expect("an address").as_socket().expect("IP");
        (tcp, address)
    }

    #[test]
    fn four_connections_may_wait_for_their_proof_and_the_oldest_gives_way() {
        let (mut session, (mut tcp, address)) = (awaiting(), listening());
        let mut all = Vec::new();
        for n in 1..=20_u64 {
            all.push(std::net::TcpStream::connect(address).expect("connected"));
            while (tcp.candidates.len() as u64 + tcp.stats.refused) < n {
                tcp.greet(Instant::ZERO, &mut session, &mut None);
            }
            assert!(tcp.candidates.len() <= 4, "{}", tcp.candidates.len());
        }
        assert_eq!((tcp.candidates.len(), tcp.stats.refused), (4, 16));
        // None of them says anything: after 3 s they are closed.
        tcp.greet(Instant::ZERO + Duration::from_secs(3), &mut session, &mut None);
        assert_eq!((tcp.candidates.len(), tcp.stats.refused, tcp.stats.accepted), (0, 20, 0));
    }

    #[test]
    fn a_length_beyond_2048_bytes_ends_a_connection_before_anything_is_kept_for_it() {
        for (length, waits) in [(2_048_u16, true), (2_049, false), (u16::MAX, false)] {
            let (mut session, (mut tcp, address)) = (awaiting(), listening());
            let mut stream = std::net::TcpStream::connect(address).expect("connected");
            io::Write::write_all(&mut stream, &length.to_be_bytes()).expect("sent");
            let held = |tcp: &TcpReceiver| tcp.candidates.first().map(|c| c.inbox.held());
            while tcp.stats.refused == 0 && held(&tcp) != Some(2) {
                tcp.greet(Instant::ZERO, &mut session, &mut None);
            }
            assert_eq!(held(&tcp).is_some(), waits, "{length}");
            assert!(tcp.candidates.iter_mut().all(|c| c.inbox.space().len() <= 8 * 2_050), "{length}");
        }
    }
}
