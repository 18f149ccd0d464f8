//! Between a session and its socket: batches packets that are due at once, and keeps what the
//! kernel would not take.
//!
//! - Packets of equal size, mark and destination that a session gives in one go leave as one batch;
//!   a batch never spans two classes, because the kernel puts one mark on all of it.
//! - A router gets a batch of this machine's other namespaces whole, and drops it whole if its first packet is too large, a shorter last
//!   one included. So packets whose arrival is evidence for itself ([`Outbox::push_alone`]) share no batch with anything.
//! - No room in the kernel: what is left is kept and tried again after a [`Backoff`]; the driver
//!   does not ask its session for more meanwhile. After [`GIVE_UP`] it is dropped.
//! - Anything else that fails is dropped and counted, and the socket left alone for a moment. The
//!   controller hears nothing of such a packet again, so it counts as lost: no credit.

use crate::{Backoff, DatagramIo, MAX_BATCH, MAX_BATCH_BYTES, Mark, SendOutcome};
use fairpace_units::{Bytes, Duration, Instant, QsOption};
use std::net::SocketAddr;

/// Packets that the kernel had no room for are kept this long: longer, and they would be too late
/// for any viewer.
pub(crate) const GIVE_UP: Duration = Duration::from_millis(500);

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    bytes: Vec<u8>,
    segment: usize,
    last: usize,
    count: usize,
    mark: Mark,
    to: Option<SocketAddr>,
    /// The packet that is there shares its batch with nothing.
    is_alone: bool,
    /// When the first packet of the batch was given.
    since: Instant,
    backoff: Backoff,
    /// Packets that did not leave.
    pub(crate) not_sent: u64,
    /// The device refused a packet with so many bytes of payload; it may carry IP packets of this size.
    pub(crate) too_large: Option<(usize, Option<Bytes>)>,
    fragments: bool,
    /// The peer's machine refused; taken by the driver.
    pub(crate) refused: u32,
}

impl Outbox {
    /// One more packet to send. The packet leaves with [`Outbox::flush`] at the latest.
    pub(crate) fn push(
        &mut self,
        io: &mut impl DatagramIo,
        now: Instant,
        bytes: &[u8],
        mark: Mark,
        to: Option<SocketAddr>,
    ) {
        let fits = self.count > 0
            && !self.is_alone
            && self.mark == mark
            && self.to == to
            && self.last == self.segment // a shorter one ends a batch
            && bytes.len() <= self.segment
            && self.count < MAX_BATCH
            && self.bytes.len() + bytes.len() <= MAX_BATCH_BYTES;
        if !fits {
            self.flush(io, now);
            if self.count > 0 {
                // Still no room: the driver should not have asked. Nothing is kept twice.
                self.not_sent += 1;
                return;
            }
            (self.segment, self.mark, self.to, self.since) = (bytes.len(), mark, to, now);
        }
        self.bytes.extend_from_slice(bytes);
        self.last = bytes.len();
        self.count += 1;
    }

    /// A packet that leaves at once, and whose fate is no other packet's.
    pub(crate) fn push_alone(
        &mut self,
        io: &mut impl DatagramIo,
        now: Instant,
        bytes: &[u8],
        mark: Mark,
        to: Option<SocketAddr>,
    ) {
        if !self.flush(io, now) {
            self.not_sent += 1;
            return;
        }
        self.push(io, now, bytes, mark, to);
        // For as long as the kernel has no room for it, too.
        self.is_alone = true;
        self.flush(io, now);
    }

    /// A packet with a Quick-Start option, which leaves by itself and at once, to the connected peer.
    pub(crate) fn push_option(
        &mut self,
        io: &mut impl DatagramIo,
        now: Instant,
        bytes: &[u8],
        mark: Mark,
        option: &QsOption,
    ) {
        if !self.flush(io, now) {
            self.not_sent += 1;
            return;
        }
        let mut outcome = io.send_option(bytes, mark, option);
        if outcome == SendOutcome::Refused {
            // News about an earlier packet; this one was not tried.
            self.refused += 1;
            outcome = io.send_option(bytes, mark, option);
        }
        self.not_sent += u64::from(outcome != SendOutcome::Sent);
    }

    /// Whether packets that are given from now on may be cut on their way.
    pub(crate) fn set_fragments(&mut self, io: &mut impl DatagramIo, now: Instant, fragments: bool) {
        if fragments != self.fragments {
            self.flush(io, now);
            io.set_fragments(fragments);
            self.fragments = fragments;
        }
    }

    /// Sends what is there, unless it is too early after a failure. True if nothing is left.
    pub(crate) fn flush(&mut self, io: &mut impl DatagramIo, now: Instant) -> bool {
        if self.count == 0 {
            return true;
        }
        if now < self.backoff.until() {
            return false;
        }
        let (sent, outcome) = if self.count == 1 {
            let outcome = io.send(self.to, &self.bytes, self.mark);
            (usize::from(outcome == SendOutcome::Sent), outcome)
        } else {
            io.send_batch(self.to, &self.bytes, self.segment, self.mark)
        };
        if sent > 0 {
            self.backoff.succeeded();
        }
        match outcome {
            SendOutcome::Sent => self.clear(),
            SendOutcome::Busy if now.since(self.since) < GIVE_UP => {
                self.bytes.drain(..(sent * self.segment).min(self.bytes.len()));
                self.count -= sent.min(self.count);
                self.backoff.failed(now);
            }
            SendOutcome::Refused => {
                // News about an earlier packet; this one was not tried. The loop goes on at once.
                self.refused += 1;
                self.bytes.drain(..(sent * self.segment).min(self.bytes.len()));
                self.count -= sent.min(self.count);
                if io.send_batch(self.to, &self.bytes, self.segment, self.mark).1 != SendOutcome::Sent {
                    self.not_sent += self.count as u64;
                }
                self.clear();
            }
            outcome => {
                if let SendOutcome::TooLarge { mtu } = outcome {
                    self.too_large = Some((self.segment, mtu));
                } else {
                    self.backoff.failed(now);
                }
                self.not_sent += (self.count - sent.min(self.count)) as u64;
                self.clear();
            }
        }
        self.count == 0
    }

    /// Until when the session should not be asked for packets; zero if it may.
    pub(crate) fn blocked_until(&self, now: Instant) -> Option<Instant> {
        (now < self.backoff.until()).then(|| self.backoff.until())
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.count = 0;
        self.is_alone = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RecvOutcome, SocketCounters};
    use fairpace_units::{Dscp, Ecn};
    use nix::errno::Errno;
    use std::os::fd::BorrowedFd;

    /// A socket that does what its script says, and notes what left.
    #[derive(Default)]
    struct Scripted {
        script: Vec<SendOutcome>,
        calls: u32,
        left: Vec<(usize, usize, Mark)>,
    }

    impl DatagramIo for Scripted {
        fn send(&mut self, to: Option<SocketAddr>, bytes: &[u8], mark: Mark) -> SendOutcome {
            self.send_batch(to, bytes, bytes.len(), mark).1
        }
        fn send_batch(
            &mut self,
            _: Option<SocketAddr>,
            bytes: &[u8],
            segment: usize,
            mark: Mark,
        ) -> (usize, SendOutcome) {
            self.calls += 1;
            let outcome = if self.script.is_empty() { SendOutcome::Sent } else { self.script.remove(0) };
            let count = bytes.len().div_ceil(segment.max(1));
            if outcome == SendOutcome::Sent {
                self.left.push((count, bytes.len(), mark));
                return (count, outcome);
            }
            (0, outcome)
        }
        fn recv(&mut self, _: &mut [u8]) -> RecvOutcome {
            RecvOutcome::Empty
        }
        fn descriptor(&self) -> BorrowedFd<'_> {
            unreachable!("nobody waits here")
        }
        fn counters(&self) -> SocketCounters {
            SocketCounters::default()
        }
    }

    const NORMAL: Mark = Mark { dscp: Dscp::DEFAULT, ecn: Ecn::NotEct };
    const LOW: Mark = Mark { dscp: Dscp::LE, ecn: Ecn::NotEct };

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn equal_packets_leave_together_and_never_with_another_class() {
        let (mut out, mut io) = (Outbox::default(), Scripted::default());
        for mark in [NORMAL, NORMAL, LOW, LOW, LOW, NORMAL] {
            out.push(&mut io, at(0), &[0; 100], mark, None);
        }
        out.push(&mut io, at(0), &[0; 40], NORMAL, None); // shorter: the last of its batch
        out.push(&mut io, at(0), &[0; 40], NORMAL, None);
        assert!(out.flush(&mut io, at(0)));
        assert_eq!(io.left, [(2, 200, NORMAL), (3, 300, LOW), (2, 140, NORMAL), (1, 40, NORMAL)]);
    }

    #[test]
    fn a_packet_that_is_evidence_leaves_with_no_other_and_in_its_turn() {
        let (mut out, mut io) = (Outbox::default(), Scripted::default());
        out.push(&mut io, at(0), &[0; 100], NORMAL, None);
        out.push(&mut io, at(0), &[0; 100], NORMAL, None);
        out.push_alone(&mut io, at(0), &[0; 100], NORMAL, None);
        out.push_alone(&mut io, at(0), &[0; 40], NORMAL, None);
        assert_eq!(io.left, [(2, 200, NORMAL), (1, 100, NORMAL), (1, 40, NORMAL)], "at once");
        out.push(&mut io, at(0), &[0; 30], NORMAL, None);
        assert!(out.flush(&mut io, at(0)));
        assert_eq!(io.left.last(), Some(&(1, 30, NORMAL)));
        // Nor where the kernel had no room for it at first.
        let mut io = Scripted { script: vec![SendOutcome::Busy], ..Scripted::default() };
        out.push_alone(&mut io, at(10), &[0; 100], NORMAL, None);
        assert!(io.left.is_empty());
        out.push(&mut io, at(20), &[0; 100], NORMAL, None);
        assert!(out.flush(&mut io, at(20)));
        assert_eq!(io.left, [(1, 100, NORMAL), (1, 100, NORMAL)]);
    }

    #[test]
    fn a_longer_packet_begins_its_own_batch_and_no_batch_is_larger_than_the_kernel_takes() {
        let (mut out, mut io) = (Outbox::default(), Scripted::default());
        out.push(&mut io, at(0), &[0; 100], NORMAL, None);
        out.push(&mut io, at(0), &[0; 200], NORMAL, None);
        for _ in 0..70 {
            out.push(&mut io, at(0), &[0; 1_200], LOW, None);
        }
        out.flush(&mut io, at(0));
        assert_eq!(&io.left[..2], [(1, 100, NORMAL), (1, 200, NORMAL)]);
        // 65,507 / 1,200 = 54.6
        assert_eq!(&io.left[2..], [(54, 64_800, LOW), (16, 19_200, LOW)]);
    }

    #[test]
    fn without_room_in_the_kernel_packets_wait_at_least_a_millisecond_and_then_leave() {
        let (mut out, mut io) =
            (Outbox::default(), Scripted { script: vec![SendOutcome::Busy; 2], ..Scripted::default() });
        out.push(&mut io, at(10), &[0; 100], NORMAL, None);
        assert!(!out.flush(&mut io, at(10)));
        assert_eq!(out.blocked_until(at(10)), Some(at(11)));
        assert!(!out.flush(&mut io, at(10)), "not asked again in the same millisecond");
        assert_eq!(io.calls, 1);
        assert!(!out.flush(&mut io, at(11)));
        assert_eq!(out.blocked_until(at(11)), Some(at(13)), "twice as long");
        assert!(out.flush(&mut io, at(13)));
        assert_eq!((io.left.len(), out.not_sent, out.blocked_until(at(13))), (1, 0, None));
    }

    #[test]
    fn a_kernel_that_never_has_room_costs_few_calls_and_the_packet() {
        let (mut out, mut io) =
            (Outbox::default(), Scripted { script: vec![SendOutcome::Busy; 1_000], ..Scripted::default() });
        out.push(&mut io, at(0), &[0; 100], NORMAL, None);
        let mut now = at(0);
        while !out.flush(&mut io, now) {
            now = out.blocked_until(now).unwrap();
        }
        // 1 + 2 + ... + 64 ms = 127 ms, then every 64 ms up to 500 ms
        assert!(io.calls <= 15, "{}", io.calls);
        assert_eq!(out.not_sent, 1);
        assert!(out.blocked_until(now).is_some(), "and the session is not asked in a loop");
    }

    #[test]
    fn every_other_failure_drops_the_packet_counts_it_and_leaves_the_socket_alone() {
        for failure in [SendOutcome::Unreachable, SendOutcome::Denied, SendOutcome::Failed(Errno::EIO)] {
            let (mut out, mut io) = (Outbox::default(), Scripted { script: vec![failure], ..Scripted::default() });
            out.push(&mut io, at(0), &[0; 100], NORMAL, None);
            assert!(out.flush(&mut io, at(0)), "{failure:?}");
            assert_eq!((out.not_sent, out.blocked_until(at(0))), (1, Some(at(1))), "{failure:?}");
        }
        let too_large = SendOutcome::TooLarge { mtu: Some(Bytes::new(1_280)) };
        let (mut out, mut io) = (Outbox::default(), Scripted { script: vec![too_large], ..Scripted::default() });
        out.push(&mut io, at(0), &[0; 1_400], NORMAL, None);
        out.flush(&mut io, at(0));
        assert_eq!((out.not_sent, out.too_large), (1, Some((1_400, Some(Bytes::new(1_280))))));
    }

    #[test]
    fn a_refusal_is_about_an_earlier_packet_so_this_one_is_sent() {
        let (mut out, mut io) =
            (Outbox::default(), Scripted { script: vec![SendOutcome::Refused], ..Scripted::default() });
        out.push(&mut io, at(0), &[0; 100], NORMAL, None);
        assert!(out.flush(&mut io, at(0)));
        assert_eq!((io.left.len(), out.refused, out.not_sent), (1, 1, 0));
    }
}
