//! The interface of a socket that drivers need: datagrams with their marks and times, and every failure as a value.

use fairpace_units::{Bytes, Dscp, Duration, Ecn, Instant, QsOption};
use nix::errno::Errno;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::BorrowedFd;

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

/// The fate of one packet. Whatever is not [`SendOutcome::Sent`] has not left: nobody may count it, and no controller
/// gets credit for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SendOutcome {
    /// The kernel took it.
    Sent,
    /// Larger than this machine's device takes in one piece, by its own word. Send smaller ones.
    TooLarge {
        /// The largest IP packet that the kernel thinks will pass; may be too small, if messages were forged.
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

/// The result of a read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecvOutcome {
    /// A datagram.
    Packet(Received),
    /// Nothing there.
    Empty,
    /// No datagram, but the news that nobody listens at the peer's port.
    Refused,
    /// No datagram, but an ICMP message that the path carries less ([`DatagramIo::take_mtu_hint`]).
    Hint,
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
    /// The datagram was longer than the buffer: the rest is gone.
    pub truncated: bool,
    /// The Quick-Start option of its IP header, with the TTL that it arrived with; only of sockets that are told to look.
    pub quick_start: Option<QsOption>,
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
    /// Not sent: larger than the device's MTU.
    pub too_large: u64,
    /// ICMP messages that the path carries less; they may be forged.
    pub hints: u64,
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
    /// Of `sent`, those with a Quick-Start option.
    pub options: u64,
    /// Sent without the Quick-Start option that they were to have: the kernel refuses it.
    pub options_denied: u64,
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

/// The interface of a socket that the drivers need. A trait so that a test can put one that fails in its place.
pub trait DatagramIo {
    /// Sends one datagram to the connected peer, or to `to`.
    fn send(&mut self, to: Option<SocketAddr>, bytes: &[u8], mark: Mark) -> SendOutcome;
    /// Sends `bytes` as datagrams of `segment` bytes each (the last may be shorter), all marked
    /// alike; gives how many left, and what became of the first that did not.
    fn send_batch(&mut self, to: Option<SocketAddr>, bytes: &[u8], segment: usize, mark: Mark) -> (usize, SendOutcome);
    /// Sends one datagram to the connected peer with this Quick-Start option in its IP header, and with the option's TTL. Where that
    /// cannot be, the datagram leaves without the option.
    fn send_option(&mut self, bytes: &[u8], mark: Mark, option: &QsOption) -> SendOutcome {
        let _ = option;
        self.send(None, bytes, mark)
    }
    /// Reads one datagram, without waiting.
    fn recv(&mut self, buffer: &mut [u8]) -> RecvOutcome;
    /// The descriptor to wait on.
    fn descriptor(&self) -> BorrowedFd<'_>;
    /// Becomes readable when another thread has news for the socket's driver: frames to send, or room for some. The frames'
    /// source or sink clears the descriptor. `None`: there is no other thread.
    fn wake(&self) -> Option<BorrowedFd<'_>> {
        None
    }
    /// The path's MTU by the newest ICMP message, once. Anybody may have forged it.
    fn take_mtu_hint(&mut self) -> Option<Bytes> {
        None
    }
    /// Whether packets from now on may be cut on their way (IPv4's DF is not set).
    fn set_fragments(&mut self, _fragments: bool) {}
    /// The address of this machine that datagrams to the connected peer leave from; `None` if it is not known.
    fn local_ip(&self) -> Option<IpAddr> {
        None
    }
    /// The counts so far.
    fn counters(&self) -> SocketCounters;
}

/// Most datagrams in one batch: the kernel's `UDP_MAX_SEGMENTS` was 64 before Linux 6.9.
pub const MAX_BATCH: usize = 64;

/// Most bytes in one batch: a UDP datagram's largest payload over IPv4.
pub const MAX_BATCH_BYTES: usize = 65_507;

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

#[cfg(test)]
mod tests {
    use super::*;

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
