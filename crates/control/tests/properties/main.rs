//! Properties of every controller, through [`fairpace_control::Flow`], the way drivers use it.
//!
//! One [`model::Model`] for all schemes, and one [`path`] for runs that are compared: whatever happens in whatever order,
//! the rate stays finite and within its limits, timers lie ahead, a question asked twice has one answer, a stall is not
//! made up for, and feedback that says nothing new changes nothing. Schemes come from the registry ([`setup`]): a new one
//! is in from its first day. `PROPTEST_CASES` sets the number of cases.

mod limits;
mod model;
mod operation;
mod path;
mod setup;
mod tcp;
mod traces;
