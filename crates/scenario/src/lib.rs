//! Scenarios: which flows, which controllers, which path, for how long; and the simulator's configuration that
//! follows.
//!
//! TOML, units as text, one [`ScenarioError`] with file, line, field, value and remedy for
//! everything that is wrong. A [`Scenario`] that exists has passed every check that needs no other
//! file; [`Scenario::load`] also reads the traces that it names.
//!
//! ```
//! use fairpace_scenario::Scenario;
//!
//! let text = "duration = \"10 s\"\n[path]\nrate = \"2 Mbit/s\"\nrtt = \"50 ms\"\n[[flows]]\nname = \"video\"\ncontroller = \"rcs\"\n";
//! let scenario = Scenario::parse(text, "first.toml")?;
//! // A change gives a new scenario, or says what is wrong with the whole.
//! let wrong = scenario.modify(|raw| raw.flows[0].controller = "rsc".to_owned()).unwrap_err();
//! assert!(wrong.to_string().contains("`rsc`"));
//! assert_eq!(scenario.flows.len(), 1);
//! # Ok::<(), fairpace_scenario::ScenarioError>(())
//! ```
//!
//! [`Streams`] are what `fairpace send --streams` reads, by the same reader.
//!
//! Read first: [`SCENARIO`] (the fields), `check.rs` (what is refused beside bounds), [`sim_config`], `docs/scenarios.md`.

#![forbid(unsafe_code)]

pub mod channel;
mod check;
mod config;
pub mod controllers;
pub mod encoder;
mod error;
mod field;
mod files;
mod flow;
mod forms;
mod hop;
mod locate;
pub mod loss;
mod memory;
pub mod param;
pub mod part;
mod path;
mod quantity;
pub mod queue;
mod quick_start;
mod raw;
mod reading;
mod resolve;
mod satellite;
mod scenario;
mod schema;
mod source;
mod stream;
mod streams;
mod table;
mod tcp;
#[cfg(test)]
mod tests;
mod variant;
mod vary;
mod way;
mod window_planner;
mod wireless;

pub use channel::ChannelSpec;
pub use config::{Instance, Record, instances, sim_config};
pub use error::{Problem, ScenarioError, ScenarioWarning, nearest};
pub use field::{Field, Named, Param};
pub use flow::{ACCESS, AccessSpec, FLOW, FlowSpec, Parameter, Priority, Terminals};
pub use hop::{HOP, HopKind, HopSpec};
pub use loss::LossSpec;
pub use param::Table;
pub use part::Part;
pub use path::{
    Capacity, InFlight, OUTAGE, OutageDirection, OutageSpec, PATH, PathSpec, REVERSE, RateStep, ReverseSpec, STEP,
    TRACE, TraceFormat, TraceGaps, TraceSpec,
};
pub use quantity::{Chance, Count, Feedback, FeedbackRule, Real, Room, Size, Speed, Time};
pub use queue::QueueSpec;
pub use quick_start::{LoadStatistic, QuickStartSpec, ROUTER, RouterSpec};
pub use raw::{RawScenario, SCENARIO, SafetyMode};
pub use satellite::{
    AGENTS, AgentKind, EstimatorKind, FADE, FadeSpec, FrameSpec, Hold, OWN_FRAME, OwnFrame, RELEASE, ReleaseKind,
    ReleaseSpec, SATELLITE, SatelliteQuickStart, SatelliteSpec, SlotPlacement,
};
pub use scenario::Scenario;
pub use source::{ARRIVALS, ArrivalsSpec, Lengths, ON_OFF, OnOffSpec, SOURCE, SourceKind, SourceSpec};
pub use stream::{STREAM, STREAMS, StreamSpec};
pub use streams::Streams;
pub use table::AboutTable;
pub use tcp::{TCP, TcpKind, TcpSpec};
pub use variant::{replace_controller, with_controller};
pub use vary::FieldPath;
pub use way::Hop;
pub use window_planner::WindowPlanner;
pub use wireless::{ArqKind, PLAN, PlanSpec, UPLINK, USER, UplinkSpec, WIRELESS, WirelessSpec, WirelessUser};
