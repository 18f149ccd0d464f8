//! Rate controllers for live media, and everything they share.
//!
//! A controller decides when a packet may leave, and what kind; it does no I/O, reads no clock and
//! draws no random numbers of its own. The same [`Flow`] therefore runs in the simulator, behind
//! the relay and on real sockets.
//!
//! # The driver's contract: *every input is followed by polling until a wait*
//!
//! 1. Make a [`Flow`]: [`build`] a controller by name, give it to [`Flow::new`].
//! 2. Call [`Flow::start`] once the peer has shown that it wants packets, with the RTT that showed.
//! 3. Hand in what happened, with the time: [`Flow::on_feedback`], [`Flow::set_demand`]. Time never goes back; equal is fine.
//! 4. Poll: [`Flow::poll`] runs the timers that are due and answers one question. On
//!    [`Transmit::Send`] send the packet, call [`Flow::on_sent`], poll again. On a wait, sleep until
//!    its instant or the next input, whichever comes first, and go to 3. On [`Transmit::Stopped`]
//!    end.
//!
//! Where the controller has a TCP half ([`tpba`]), moreover: say how far TCP is ([`Flow::on_tcp`]) whenever you wake,
//! before anything else, and at each instant that a wait names; ask for packets by TCP only while it has room; tell
//! of the end of each application data unit ([`Flow::on_adu_end`]), after its last packet, and of TCP's buffer when
//! it is empty and acknowledged ([`Flow::on_tcp_drained`]); after each call take its orders
//! ([`Flow::take_tcp_order`]). A data unit that never ends is never switched: to wait for its end for a bounded time
//! only would split it.
//!
//! Polling twice gives the same answer and changes nothing. An answer is out of date as soon as
//! anything else is called.
//!
//! ```
//! use fairpace_control::feedback::Message;
//! use fairpace_control::{Ack, AckReceiver, Arrival, Env, Flow, FlowParams, Transmit, build};
//! use fairpace_units::{Bytes, Duration, Ecn, Instant};
//! use std::collections::{BTreeMap, VecDeque};
//!
//! let env = Env::default();
//! let settings = BTreeMap::from([("rate".to_owned(), "100 pkt/s".to_owned())]);
//! let mut flow = Flow::new(build("fixed", &settings, &env)?, FlowParams::new(&env)); // 1
//! let mut receiver = AckReceiver::new(None);
//! let mut path: VecDeque<(Instant, Ack)> = VecDeque::new(); // ACKs on their way back
//! let (rtt, end) = (Duration::from_millis(550), Instant::from_secs_f64(10.0));
//!
//! let mut now = Instant::ZERO;
//! flow.start(now, Some(rtt)); // 2
//! while now < end {
//!     while path.front().is_some_and(|(at, _)| *at <= now) {
//!         let (_, ack) = path.pop_front().expect("looked at");
//!         flow.on_feedback(now, Message::acks(&[ack])).expect("was asked for"); // 3
//!     }
//!     let until = loop {
//!         match flow.poll(now, true) { // 4
//!             Transmit::Send(p) => {
//!                 receiver.on_packet(now, &Arrival { kind: p.kind, class: p.class, seq: p.seq, ecn: Ecn::NotEct });
//!                 while let Some(feedback) = receiver.poll(now) {
//!                     path.extend(feedback.acks.iter().map(|ack| (now + rtt, *ack)));
//!                 }
//!                 flow.on_sent(now, p, Bytes::new(1_000));
//!             }
//!             Transmit::WaitUntil(t) | Transmit::WaitForData(t) | Transmit::WaitForFeedback(t) => break t,
//!             Transmit::Stopped(reason) => panic!("{reason}"),
//!         }
//!     };
//!     now = path.front().map_or(until, |(at, _)| until.min(*at));
//! }
//! assert_eq!(flow.counters().data.sent, 1_000);
//! # Ok::<(), fairpace_control::ParamError>(())
//! ```
//!
//! # Where things are
//!
//! - [`Controller`], and one file per scheme in `scheme/`: [`rcs`], [`rap`], [`rbp`] (SRP, CRP, MRP), [`tfrc`]
//!   (and TFRC-SP), [`aimd`], [`lda`] (and LDAF), [`tpba`], [`fixed`] (the template). `scheme.rs` lists them.
//! - [`build`] and [`schemes`]: schemes by name; [`registry`](mod@registry): an entry of their list, and how settings
//!   are read; [`param`]: parameters, and what is refused.
//! - [`Equation`]: TCP's throughput at a loss rate, and back.
//! - [`feedback`]: the forms of feedback, and their messages.
//! - [`Flow`]: ledger, RTT, loss detection, caps and breaker around a controller.
//! - [`packet_pair`]: the bottleneck's rate, for LDA.
//! - [`AckReceiver`]: the receiver half these schemes share; [`SackReceiver`]: AIMD's.
//! - [`quick_start`]: asking the routers for a rate; [`Flow::on_quick_start_response`].

#![forbid(unsafe_code)]

mod account;
mod base_rtt;
pub mod breaker;
mod controller;
pub mod equation;
mod facts;
pub mod feedback;
mod flow;
pub mod ledger;
mod meter;
mod pacer;
pub mod packet_pair;
mod packet_report;
pub mod param;
pub mod quick_start;
mod receiver;
pub mod registry;
pub mod rtt;
mod sack_receiver;
pub mod sack_vector;
mod scheme;
mod stall;
#[cfg(test)]
mod testing;

pub use account::counters::{FlowCounters, IgnoredFeedback, KindCounters};
pub use account::log::{FlowEvent, FlowEventKind};
pub use account::round_trip::LONGEST_RTT;
pub use breaker::{BreakerParams, ReceiverReport, StopReason};
pub use controller::{
    Controller, LossPolicy, QuickStartHooks, SendPoll, TcpHooks, TcpOrder, TcpProgress, TimeoutRule, Windows,
    read_one_by_one,
};
pub use equation::{BadPath, Equation, TcpPath, Terms};
pub use facts::{Acked, Loss, LossHow, Sent, Status};
pub use feedback::{Ack, RateHeader, RateReport};
pub use flow::{Flow, FlowParams, Permit, Transmit};
pub use pacer::Pacer;
pub use packet_report::{Fact, PacketReport};
pub use param::{Allowed, ParamError, ParamInfo};
pub use quick_start::{QsCounters, QsVerdict, QuickStartParams};
pub use receiver::{AckReceiver, Arrival, Feedback};
pub use registry::{Env, Safety, SchemeInfo};
pub use rtt::{RtoParams, RttEstimator};
pub use sack_receiver::SackReceiver;
pub use sack_vector::SackVector;
pub use scheme::*;
pub use stall::Promise;
