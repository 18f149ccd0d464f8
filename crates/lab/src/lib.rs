//! The laboratory: runs of scenarios on all cores, statistics, results on disk.
//!
//! Read first: [`run`] (how), [`metrics`] (what comes out), [`results`] (the folder). Nothing here reads a clock or
//! opens a socket: who calls says when, and in which world.

pub mod adus;
mod csv;
mod delays;
pub mod events;
mod jitter;
pub mod metrics;
pub mod pool;
pub mod results;
pub mod run;
pub mod stats;
pub mod study;
pub mod summary;
mod tables;
pub mod worlds;

pub use delays::Delays;
pub use pool::Hooks;
pub use run::{RunError, RunOptions, RunSet, Seeds, compare};
