//! The laboratory: scenario files, runs on all cores, statistics, results on disk, and the papers'
//! experiments with their claims.
//!
//! Read first: [`scenario`] (what is run), [`run`] (how), [`metrics`] (what comes out), [`papers`]
//! (the published figures), [`emu`] (the same scenarios in real time). Nothing here but that reads a clock: who
//! calls says when.

pub mod adus;
mod config;
pub mod controllers;
pub mod emu;
mod encoder;
pub mod fluid;
mod jitter;
pub mod metrics;
pub mod papers;
pub mod pool;
pub mod qos;
pub mod report;
pub mod results;
pub mod run;
pub mod scenario;
pub mod stats;

pub use config::{Record, sim_config};
pub use pool::Hooks;
pub use run::{RunError, RunOptions, RunSet, Seeds, compare};
pub use scenario::{Scenario, ScenarioError};
