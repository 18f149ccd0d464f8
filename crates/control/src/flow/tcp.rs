//! The flow's TCP half: how far the connection is, and when the transport may change.

use super::Flow;
use crate::controller::{TcpOrder, TcpProgress};
use fairpace_units::{Instant, Via};

impl Flow {
    /// How far the flow's TCP half is. A driver says so whenever it wakes for the flow, before anything else of that
    /// instant, and at each instant that [`Flow::poll`] named.
    pub fn on_tcp(&mut self, now: Instant, progress: &TcpProgress) {
        let now = self.advance(now);
        if !self.is_running() {
            return;
        }
        if progress.acked > self.tcp_acked {
            self.tcp_acked = progress.acked;
            self.account.watch.on_tcp_progress();
            // The first receiver report may be a whole period away.
            if let (None, Some(srtt)) = (self.account.round_trip.srtt(), progress.srtt) {
                self.account.round_trip.learn(srtt);
            }
        }
        let via = self.via();
        if let Some(tcp) = self.controller.tcp() {
            tcp.on_progress(now, progress);
        }
        self.account.watch.note_via(now, via, self.controller.via());
        self.note(now);
    }

    /// The last packet of an application data unit has left: the one place where the transport may change, but for
    /// [`Flow::on_tcp_drained`] and, for a scheme that is drained when all is sent, [`Flow::on_tcp`].
    pub fn on_adu_end(&mut self, now: Instant) {
        let now = self.advance(now);
        if !self.is_running() {
            return;
        }
        self.run_controller_timers(now, false);
        let via = self.via();
        if let Some(tcp) = self.controller.tcp() {
            tcp.on_adu_end(now);
        }
        self.account.watch.note_via(now, via, self.controller.via());
        self.note(now);
    }

    /// TCP's send buffer is empty, and all that was in it is acknowledged.
    pub fn on_tcp_drained(&mut self, now: Instant) {
        let now = self.advance(now);
        if !self.is_running() {
            return;
        }
        self.run_controller_timers(now, false);
        let via = self.via();
        self.account.watch.on_tcp_progress();
        if let Some(tcp) = self.controller.tcp() {
            tcp.on_drained(now);
        }
        self.account.watch.note_via(now, via, self.controller.via());
        self.note(now);
    }

    /// The next order for the TCP half; ask until `None` after each call.
    pub fn take_tcp_order(&mut self) -> Option<TcpOrder> {
        self.controller.tcp()?.take_order()
    }

    /// The transport of the next packet.
    #[inline]
    pub fn via(&self) -> Via {
        self.controller.via()
    }
}
