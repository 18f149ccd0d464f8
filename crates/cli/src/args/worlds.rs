//! The world in which a scenario is run.

use super::{Results, Seeds};
use clap::{Args, ValueEnum, ValueHint};
use fairpace_realtime::Ip;
use std::path::PathBuf;

/// Where a scenario is run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum World {
    /// The simulator: virtual time, the same numbers on every machine
    #[default]
    Sim,
    /// The emulator: real time, the kernel's TCP and the drivers of the wire, in namespaces of its own
    Emu,
}

/// The options that only runs in real time have.
#[derive(Debug, Args)]
pub(crate) struct Real {
    /// Real packets are of IPv6: as long as the scenario says, their headers 20 B longer
    #[arg(short = '6', long)]
    ipv6: bool,
}

impl Real {
    pub(crate) fn ip(&self) -> Ip {
        if self.ipv6 { Ip::V6 } else { Ip::V4 }
    }
}

/// Run one scenario in the simulator and in the emulator, and lay the results over each other
///
/// The emulator has the same path, with the kernel's TCP and the drivers of the wire at its ends; it takes as long as
/// the scenario lasts, once per seed. Runs that the machine could not keep up with are marked as not valid.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  fairpace compare-worlds scenarios/worlds/clean.toml
  fairpace compare-worlds scenarios/worlds/red.toml --seeds 5 --json")]
pub(crate) struct CompareWorlds {
    /// Scenario file (TOML)
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) scenario: PathBuf,
    #[command(flatten)]
    pub(crate) seeds: Seeds,
    #[command(flatten)]
    pub(crate) real: Real,
    #[command(flatten)]
    pub(crate) results: Results,
}
