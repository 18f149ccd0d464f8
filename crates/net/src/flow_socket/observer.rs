//! The driver's news, for the program.

use super::queue::Shared;
use crate::receive::ReceiveObserver;
use crate::send::{SendObserver, SendSample};
use fairpace_rtp::ReceiverEvent;
use fairpace_units::{Instant, Via};
use std::sync::Arc;

/// Passes the driver's news on.
pub(super) struct Observer {
    shared: Arc<Shared>,
}

impl Observer {
    /// For the driver of that socket's thread.
    pub(super) fn new(shared: Arc<Shared>) -> Observer {
        Observer { shared }
    }
}

/// So many changes of transport are remembered.
const MOST_SWITCHES: usize = 1_024;

impl SendObserver for Observer {
    fn on_event(&mut self, _now: Instant, event: &fairpace_rtp::SenderEvent) {
        if matches!(event, fairpace_rtp::SenderEvent::TcpUp) {
            self.shared.with(|s| s.peer_is_there());
        }
    }

    fn on_switch(&mut self, now: Instant, via: Via) {
        self.shared.with(|s| {
            s.stats.switches += 1;
            s.stats.via = via;
            if s.stats.switched.len() >= MOST_SWITCHES {
                s.stats.switched.remove(0);
            }
            s.stats.switched.push((now, via));
        });
    }

    fn on_sample(&mut self, sample: &SendSample) {
        self.shared.with(|s| {
            s.stats.state = Some((sample.state, sample.rate));
            s.stats.via = sample.via;
        });
    }
}

impl ReceiveObserver for Observer {
    fn on_event(&mut self, _now: Instant, event: &ReceiverEvent) {
        if let ReceiverEvent::TcpUp { from } = event {
            self.shared.with(|s| {
                s.stats.peer = Some(*from);
                s.peer_is_there();
            });
        }
    }
}
