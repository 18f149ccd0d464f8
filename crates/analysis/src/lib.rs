//! Models that are calculated instead of simulated: each is an independent check of the simulator, and a planner that
//! takes milliseconds.
//!
//! - [`qos`]: delay and throughput of windows over a slotted wireless link, exact by recursion.
//! - [`fluid`]: the start of one flow over a satellite's return link, as four cumulative curves.
//!
//! Begin with [`qos::plan::Planner`] or [`fluid::Link`]. Pages: `docs/qos.md`, `docs/plan-wireless.md`, `docs/fluid.md`.

#![forbid(unsafe_code)]

pub mod fluid;
pub mod qos;
