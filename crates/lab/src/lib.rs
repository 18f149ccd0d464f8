//! The laboratory: runs of scenarios on all cores, statistics, results on disk.
//!
//! Begin with [`run::run`], which runs a scenario with several seeds, and with [`study::Study`], which runs many scenarios
//! and measures them. A study is written out in `examples/study.rs`.
//!
//! ```
//! use fairpace_lab::{Hooks, RunOptions, Seeds, run};
//! use fairpace_scenario::Scenario;
//!
//! let scenario = Scenario::parse(
//!     r#"
//!     duration = "5 s"
//!     [path]
//!     rate = "2 Mbit/s"
//!     rtt = "50 ms"
//!     [[flows]]
//!     name = "video"
//!     controller = "rap"
//!     "#,
//!     "first.toml",
//! )?;
//! let options = RunOptions { seeds: Seeds::Count(2), ..RunOptions::default() };
//! let set = run::run(&scenario, &options, &Hooks::default())?;
//! assert_eq!(set.runs.len(), 2);
//! assert!(set.runs[0].summary.flows[0].throughput_bps > 0.0);
//! # Ok::<(), run::RunError>(())
//! ```
//!
//! [`sweep`] varies the fields of a scenario, batch by batch, on this machine or on many. Then: [`metrics`] (the numbers of a run), [`table`]
//! (its rows, in columns), [`results`] (the folder on disk), [`worlds`] (simulator beside kernel). Nothing
//! here reads a clock or opens a socket: the caller says when, and in which world. Pages: `docs/tutorial/first-scenario.md`,
//! `docs/worlds.md`.

#![forbid(unsafe_code)]

pub mod adus;
mod delays;
pub mod events;
mod jitter;
pub mod metrics;
pub mod pool;
pub mod results;
pub mod run;
mod seed_results;
mod series;
mod simulate;
pub mod stats;
pub mod study;
pub mod summary;
pub mod sweep;
pub mod table;
mod tables;
pub mod worlds;

pub use delays::Delays;
pub use pool::Hooks;
pub use run::{RunError, RunOptions, RunSet, Seeds, variants};
pub use seed_results::SeedResults;
pub use table::{Column, Table, Words};
