//! A sweep: a scenario with other values in some of its fields, each point with several seeds.
//!
//! ```text
//!   Spec + Scenario ─▶ Plan ─▶ Sweep ─▶ Task ─▶ perform ─▶ Batch ─▶ Sweep ─▶ Table
//!                                        any executor, any order      │
//!                                        SweepStore ◀─────────────────┘ one file each
//! ```
//!
//! - A [`Plan`] has the points: an [`Axis`] per field, laid out by a [`Design`]. [`Plan::check`] refuses a point that cannot be run
//!   before anything is.
//! - A [`Task`] is one batch of seeds of one point: plain text that says everything, its code's version too. [`perform`] makes a
//!   [`Batch`] of it, a function of the task alone. The place and the time of the run decide nothing.
//! - A [`Sweep`] says which tasks are ready and takes batches in any order. With a [`Narrow`] each point gets further batches until
//!   the interval of a metric is narrow enough, judged in order of the seeds.
//! - A [`SweepStore`] keeps each batch in a file of its own, from which a later session goes on.
//! - [`run`] is the executor of this machine's cores. Others do the same: ask for [`Sweep::ready`], hand in [`Sweep::take`].
//!
//! ```
//! use fairpace_lab::sweep::{Design, Plan, SeedRule, Spec, Sweep, World, perform};
//! use fairpace_lab::Hooks;
//! use fairpace_scenario::Scenario;
//!
//! let text = "duration = \"5 s\"\n[path]\nrate = \"2 Mbit/s\"\nrtt = \"50 ms\"\n[[flows]]\nname = \"video\"\ncontroller = \"rap\"\n";
//! let scenario = Scenario::parse(text, "first.toml")?;
//! let spec = Spec { vary: vec!["path.rate=1Mbit/s..2Mbit/s/2".into()], ..Spec::default() };
//! let plan = Plan::new(&scenario, &spec, World::Sim, "1.0")?;
//! plan.check(&Hooks::default())?;
//! let mut sweep = Sweep::new(plan);
//! while let Some(task) = sweep.ready() {
//!     let task = sweep.plan().task(&task)?.to_text();
//!     // Here, or in another process: text in, bytes out.
//!     let bytes = perform(&task, "1.0", &Hooks::default())?;
//!     sweep.take(&bytes)?;
//! }
//! assert!(sweep.is_complete());
//! // Two points with five seeds each, one group.
//! assert_eq!(sweep.groups().len(), 10);
//! # Ok::<(), fairpace_lab::sweep::SweepError>(())
//! ```

mod again;
mod axis;
mod best;
mod design;
mod error;
mod numbers;
mod plan;
mod progress;
mod recordings;
mod run;
mod store;
mod task;

pub use again::{IPV6, again};
pub use axis::{Axis, Levels, MAX_LEVELS};
pub use best::{Ranked, metrics};
pub use design::{Design, MAX_POINTS, Point};
pub use error::SweepError;
pub use numbers::{GROUP_COLUMNS, LINK_COLUMNS, Metric, RunNumbers, lower_is_better};
pub use plan::{Batches, Narrow, Plan, SeedRule, Spec, TaskId, Width, World};
pub use progress::{Failed, Sweep};
pub use run::{Executor, run};
pub use store::{Loaded, Shard, SweepStore, is_sweep, read};
pub use task::{Batch, Failure, MAX_SWEEP_SEEDS, Task, perform};
