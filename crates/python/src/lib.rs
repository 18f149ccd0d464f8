//! The native half of the Python package `fairpace`: scenarios in, columns out, controllers from Python.
//!
//! - `scenario`: a checked scenario, from a file, text, or values.
//! - `run`: runs without the interpreter's lock, with progress and Ctrl-C.
//! - `table`: results as Arrow, through the C interface's capsules.
//! - `sweep`: plans, tasks and batches; any executor performs them.
//! - `send`: a stream to a receiver, in real time.
//! - `controller`: an object of Python behind [`fairpace_control::Controller`]; `part`: one before a link. `object` has what both need,
//!   `replaced` the runs with them.
//! - `declarations`: every table and controller with its parameters, from which the package's classes are made.
//!
//! Convenience alone is Python (`python/fairpace`). Nothing but `send` opens a socket; it is a feature.

#![forbid(unsafe_code)]

mod controller;
mod declarations;
mod error;
mod object;
mod part;
mod plan;
mod replaced;
mod reproduce;
mod results;
mod run;
mod scenario;
#[cfg(feature = "send")]
mod send;
mod sweep;
mod table;

/// The module, as Python imports it.
#[pyo3::pymodule]
mod _fairpace {
    #[pymodule_export]
    use crate::controller::{Acked, Env, Loss, Rtt, Sent};
    #[pymodule_export]
    use crate::declarations::declarations;
    #[pymodule_export]
    use crate::part::{LinkEnv, Packet};
    #[pymodule_export]
    use crate::plan::{plan_quick_start, plan_wireless, tcp_rate};
    #[pymodule_export]
    use crate::reproduce::{Reproduction, experiments, reproduce};
    #[pymodule_export]
    use crate::results::{Results, colour};
    #[pymodule_export]
    use crate::run::run;
    #[pymodule_export]
    use crate::scenario::Scenario;
    #[cfg(feature = "send")]
    #[pymodule_export]
    use crate::send::send;
    #[pymodule_export]
    use crate::sweep::{Sweep, perform};
    #[pymodule_export]
    use crate::table::Table;

    #[pymodule_export]
    #[allow(non_upper_case_globals)] // as Python has it
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
