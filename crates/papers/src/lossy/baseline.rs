//! One TCP alone: its measured p, RTT and timeout put into the equations, beside the rate it had
//! [lossy §3.1, Figs. 1 to 3; §6.1, Figs. 25 to 27].
//!
//! Every combination of packet, capacity and delay runs with every error; a number of the figures is
//! the mean over the combinations, one per seed. Each combination has seeds of its own, so that their
//! noise does not add up.

mod charts;
mod claims;
mod runs;

use self::claims::{fig1_3_claims, fig25_27_claims};
use self::runs::{Data, ERRORS, Reading};
use crate::builtin::base;
use crate::{Bench, Experiment, Outcome, Tools};
use fairpace_control::Equation;
use fairpace_lab::RunError;

pub(super) fn fig1_3(e: &Experiment, bench: &mut Bench<'_>, tools: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let reading = Reading::of(&tools.reading);
    let data = Data::measure(e, &base(e), bench, reading.runs, &ERRORS)?;
    let claims = fig1_3_claims(e, &data, &reading);
    Ok(charts::outcome(e, &data, claims, [Equation::Simple, Equation::Complex], &reading))
}

pub(super) fn fig25_27(e: &Experiment, bench: &mut Bench<'_>, tools: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let reading = Reading::of(&tools.reading);
    let data = Data::measure(e, &base(e), bench, reading.runs, &ERRORS)?;
    let claims = fig25_27_claims(e, &data, &reading);
    Ok(charts::outcome(e, &data, claims, [Equation::Complex, Equation::Modified], &reading))
}

#[cfg(test)]
mod tests;
