//! The events of a flow, kept for logs and pictures.

use crate::breaker::StopReason;
use crate::facts::LossHow;
use crate::facts::Status;
use crate::quick_start::QsVerdict;
use fairpace_units::{Instant, QsRate, Rate};

/// An event of a flow, for logs and pictures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FlowEventKind {
    /// The controller's state changed.
    StateChanged {
        /// Its state before.
        from: &'static str,
        /// Its state now.
        to: &'static str,
        /// The scheme's reason for the change.
        reason: &'static str,
    },
    /// The data rate changed.
    RateChanged {
        /// The rate now.
        rate: Rate,
        /// The scheme's reason for the change.
        reason: &'static str,
    },
    /// Data was lost.
    Lost {
        /// The packet's number; after a timeout of everything outstanding, the highest given up.
        seq: u64,
        /// How it was noticed.
        how: LossHow,
    },
    /// Packets leave, and nothing is heard of any, or the machine slept: the flow is held below that rate.
    Unheard {
        /// The rate, dummies included.
        rate: Rate,
    },
    /// Packets are heard of again, and that bound is gone.
    HeardAgain,
    /// The circuit breaker holds the flow below that rate, dummies included, and the flow would send more.
    Held {
        /// The rate; a later one, while the flow is held, is told only in the controller's rate.
        rate: Rate,
    },
    /// The flow sends less than the circuit breaker would bear.
    Released,
    /// §4.3 of RFC 8083 has tripped: the circuit breaker cut the rate to a tenth.
    Capped {
        /// The most that may be sent from now on.
        rate: Rate,
    },
    /// The cut has helped: the limit is raised.
    Raised {
        /// The most that may be sent from now on.
        rate: Rate,
    },
    /// The limit is lifted.
    Uncapped,
    /// The flow was stopped for good.
    Tripped {
        /// The condition that ended the flow.
        reason: StopReason,
    },
    /// The routers were asked for a rate.
    QuickStartAsked {
        /// The rate.
        rate: QsRate,
    },
    /// The outcome of that request.
    QuickStartAnswered {
        /// The verdict on the answer.
        verdict: QsVerdict,
    },
}

/// One event with its time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowEvent {
    /// The time of the event.
    pub at: Instant,
    /// The event.
    pub what: FlowEventKind,
}

/// The events since they were last drained, and the controller's status when it was last looked at.
#[derive(Debug)]
pub(crate) struct Log {
    on: bool,
    status: Status,
    events: Vec<FlowEvent>,
}

impl Log {
    pub(crate) const fn new(on: bool, status: Status) -> Log {
        Log { on, status, events: Vec::new() }
    }

    #[inline]
    pub(crate) fn event(&mut self, at: Instant, what: FlowEventKind) {
        if self.on {
            self.events.push(FlowEvent { at, what });
        }
    }

    /// Notes what the last call to the controller has changed.
    #[inline]
    pub(crate) fn note(&mut self, at: Instant, status: impl FnOnce() -> Status) {
        if self.on {
            self.note_status(at, status());
        }
    }

    fn note_status(&mut self, at: Instant, is: Status) {
        let was = core::mem::replace(&mut self.status, is);
        if was.state != is.state {
            self.event(at, FlowEventKind::StateChanged { from: was.state, to: is.state, reason: is.reason });
        }
        if was.rate != is.rate {
            self.event(at, FlowEventKind::RateChanged { rate: is.rate, reason: is.reason });
        }
    }

    pub(crate) fn drain(&mut self) -> std::vec::Drain<'_, FlowEvent> {
        self.events.drain(..)
    }
}
