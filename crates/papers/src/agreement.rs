//! How far the simulator is from what others say of the same path: ns-2's tables (`reference/ns2`), formulas, and the
//! kernel's TCP through the emulator. No paper has this; the page is `docs/experiments/agreement.md`.
//!
//! - `compare` is the arithmetic: a number of ours over seeds, a number of theirs, the deviation with its interval.
//! - `ns2` has a row of ns-2's tables as a `ns2::Row`: the scenario that repeats the row, and the row's numbers.
//! - `theory` has formulas, `loss` TCP alone over five decades of random loss, `kernel` twelve scenarios in both worlds.

mod compare;
mod kernel;
mod loss;
mod ns2;
mod theory;

use crate::Experiment;

/// The scenarios of `scenarios/worlds`, of which the first is named.
macro_rules! worlds {
    ($id:literal, $title:literal, $run:path) => {
        Experiment {
            id: concat!("agreement.", $id),
            title: $title,
            file: "scenarios/worlds/clean.toml",
            scenario: include_str!("../../../scenarios/worlds/clean.toml"),
            run: $run,
            readings: &[],
        }
    };
}

/// One per lot of tables, one for the formulas, one for the loss, one for the kernel.
pub const EXPERIMENTS: &[Experiment] = &[
    experiment!("agreement", "satellite", "RAP and TCP alone over a satellite, beside ns-2", ns2::satellite),
    experiment!("agreement", "mixed", "long lossy flows beside short clean ones, beside ns-2", ns2::mixed),
    experiment!("agreement", "channel", "one Reno on a slow lossy channel, beside ns-2", ns2::channel),
    experiment!("agreement", "dumbbell", "TFRC and TCP(alpha, beta) beside TCP, beside ns-2", ns2::dumbbell),
    experiment!("agreement", "theory", "queues, losses and rates beside formulas", theory::run),
    experiment!("agreement", "loss", "TCP alone over five decades of random loss, beside formulas and ns-2", loss::run),
    worlds!("kernel", "twelve scenarios beside the kernel's TCP", kernel::run),
];
