//! The TCP half of a flow, as far as a controller hears of it.

use crate::setup::SIZE;
use fairpace_control::{Flow, TcpOrder, TcpProgress};
use fairpace_units::{Bytes, Instant, Rate, Via};

/// The TCP half of a flow: so many packets of room, and a rate at which it delivers.
pub(crate) struct Tcp {
    pub(crate) rate: Rate,
    pub(crate) progress: TcpProgress,
    pub(crate) given: Bytes,
    pub(crate) at: Instant,
    pub(crate) orders: Vec<TcpOrder>,
    /// The window when the last running period began.
    pub(crate) cwnd_old: Bytes,
}

impl Tcp {
    pub(crate) const ROOM: Bytes = Bytes::new(4_000);

    pub(crate) fn new() -> Tcp {
        let progress = TcpProgress { cwnd: Bytes::new(10_000), mss: SIZE, ..TcpProgress::default() };
        Tcp {
            rate: Rate::mbps(1.0),
            progress,
            given: Bytes::ZERO,
            at: Instant::ZERO,
            orders: Vec::new(),
            cwnd_old: Bytes::ZERO,
        }
    }

    pub(crate) fn advance(&mut self, now: Instant) {
        let delivered = self.rate * now.since(self.at);
        // Time counts once it has delivered something.
        if delivered > Bytes::ZERO || self.given == self.progress.acked {
            self.at = now;
            self.progress.acked = self.given.min(self.progress.acked + delivered);
        }
    }

    pub(crate) fn has_room(&self) -> bool {
        self.given + SIZE <= self.progress.acked + Self::ROOM
    }

    /// The driver's work for the TCP half, at every wake-up.
    pub(crate) fn drive(&mut self, flow: &mut Flow, now: Instant) {
        self.advance(now);
        flow.on_tcp(now, &self.progress);
        self.after(flow, now);
    }

    /// After each call.
    pub(crate) fn after(&mut self, flow: &mut Flow, now: Instant) {
        if flow.status().state == "draining" && self.given == self.progress.acked {
            flow.on_tcp_drained(now);
            self.cwnd_old = self.progress.cwnd;
            assert!(flow.stopped().is_some() || flow.via() == Via::Udp, "drained");
        }
        while let Some(order) = flow.take_tcp_order() {
            if let TcpOrder::SetCwnd(cwnd) = order {
                assert!(cwnd.get() >= SIZE.get() && cwnd.get() % SIZE.get() == 0, "{cwnd}");
                assert!(cwnd < self.cwnd_old + SIZE, "r_f is not above r_s: {cwnd} of {}", self.cwnd_old);
            }
            self.orders.push(order);
        }
    }
}
