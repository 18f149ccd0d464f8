//! Quick-Start in the network: the router that answers a host's question, and the satellite terminal
//! that takes the question to the access scheme as well.
//!
//! - [`QsRouter`]: approves, lowers or refuses; every hop that knows Quick-Start has one
//!   ([`LinkSpec::quick_start`](crate::LinkSpec::quick_start)) [RFC 4782 §3.3].
//! - [`QsAgent`]: a router at a terminal, which may hold the request and add what it approved to the
//!   terminal's next capacity request [qsd §3.4].
//! - [`Terminal`]: agent, estimator and capacity requests together, for who builds a terminal.
//! - [`Estimator`]: how a terminal learns what is free on the satellite's channel [qsd App. A];
//!   [`LoadWindow`]: the average or the peak of the last observations.
//!
//! Page: `docs/links/quick-start.md`.

#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

mod agent;
mod error;
mod estimate;
mod on_link;
mod router;
mod terminal;

pub use agent::{Agent, AgentSpec, Decision, HoldWarning, QsAgent};
pub use error::QsError;
pub use estimate::{Channel, Ear, Estimator, Fade, Free, LoadWindow, Observation, Statistic};
pub(crate) use on_link::LinkRouter;
pub use router::{QsCounters, QsRouter, QsVerdict, Refusal, RouterParams, SOURCES, pass_unaware};
pub use terminal::{CapacityRequest, Terminal, TerminalSpec};
