//! The command line of `fairpace sweep`.

use super::{Real, Results, World, count, seed};
use clap::{Args, ValueEnum, ValueHint};
use std::path::PathBuf;

/// Run a scenario over ranges of its fields, each point with several seeds
///
/// Every point is a scenario with other values in some fields. Points are run on all cores, or in real time; each batch of seeds is on disk
/// when it is done, and the same command goes on from there. Results are CSV and Parquet, with a report: best settings, response curves,
/// heat maps.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  fairpace sweep scenarios/geo.toml --vary path.loss.p=1e-4..1e-2/log7
  fairpace sweep scenarios/geo.toml --vary path.rate=1Mbit/s..10Mbit/s/5 --vary flow.video.controller=rcs,tfrc,rap
  fairpace sweep geo.toml --vary path.rtt=50ms..600ms --vary path.loss.p=1e-4..1e-2/log --design latin --points 200
  fairpace sweep geo.toml --vary path.loss.p=0.001,0.01 --metric video.goodput_bps --ci-width 5% --max-seeds 50
  fairpace sweep geo.toml --vary path.loss.p=1e-4..1e-2/log7 --shard 2/8 --out /shared/loss    one of eight jobs
  fairpace sweep geo.toml --vary path.loss.p=1e-4..1e-2/log7 --dask tcp://head:8786     by a Dask cluster

Values: a list with commas; FROM..TO/N, equally far apart; FROM..TO/logN, by equal factors; FROM..TO or FROM..TO/log for the
random designs. Units as in a scenario file.")]
pub(crate) struct Sweep {
    /// Scenario file (TOML)
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) scenario: PathBuf,
    /// A field and its values; may be repeated. `flow.NAME` is one flow, `flow.*` all
    #[arg(long, value_name = "FIELD=VALUES", required = true)]
    pub(crate) vary: Vec<String>,
    /// Layout of the points
    #[arg(long, value_enum, default_value_t)]
    pub(crate) design: Design,
    /// Points of a random design
    #[arg(long, value_name = "N", value_parser = count::<1_000_000>, allow_hyphen_values = true)]
    pub(crate) points: Option<u32>,
    /// Seed of a random design's draws; 1 if absent
    #[arg(long, value_name = "N", value_parser = seed, allow_hyphen_values = true)]
    pub(crate) design_seed: Option<u64>,
    /// First seed of each point; the scenario's if absent
    #[arg(long, value_name = "N", value_parser = seed, allow_hyphen_values = true)]
    pub(crate) seed: Option<u64>,
    /// Seeds of each point; with `--ci-width` from the start
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = count::<100_000>, allow_hyphen_values = true)]
    pub(crate) seeds: u32,
    /// Seeds that are run and kept together
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = count::<100_000>, allow_hyphen_values = true)]
    pub(crate) batch: u32,
    /// The number by which settings are ranked, and whose interval `--ci-width` is of: `GROUP.COLUMN`, `LINK.COLUMN`; the
    /// first group's goodput if absent
    #[arg(long, value_name = "NAME")]
    pub(crate) metric: Option<String>,
    /// Add batches until the half-width of the metric's 95 % interval is at most this: `5%` of the mean, or a number in its unit
    #[arg(long, value_name = "WIDTH")]
    pub(crate) ci_width: Option<String>,
    /// With `--ci-width`: the most seeds of a point; 50 if absent, or `--seeds` if that is more
    #[arg(long, value_name = "N", value_parser = count::<100_000>, allow_hyphen_values = true, requires = "ci_width")]
    pub(crate) max_seeds: Option<u32>,
    /// World to run in
    #[arg(long, value_enum, default_value_t)]
    pub(crate) world: World,
    #[command(flatten)]
    pub(crate) real: Real,
    /// Threads of the simulator; one per core if absent. (In real time one batch after the other)
    #[arg(long, short, value_name = "N", value_parser = count::<1024>, allow_hyphen_values = true)]
    pub(crate) jobs: Option<u32>,
    /// Have batches run by a Dask cluster: the address of its scheduler, `tcp://HOST:PORT`. The Python package of this version does
    /// it, here (`python3`, or `FAIRPACE_PYTHON`) and at every worker
    #[arg(long, value_name = "ADDRESS", conflicts_with = "jobs")]
    pub(crate) dask: Option<String>,
    /// Run this share of the points into a folder that several processes share: whole points, as in `2/8`
    #[arg(long, value_name = "I/N")]
    pub(crate) shard: Option<String>,
    /// Run points again that came to nothing
    #[arg(long)]
    pub(crate) retry: bool,
    #[command(flatten)]
    pub(crate) results: Results,
}

impl Sweep {
    /// The most seeds of a point that `--ci-width` may ask for.
    pub(crate) fn most_seeds(&self) -> u32 {
        self.max_seeds.unwrap_or(self.seeds.max(50))
    }
}

/// The layout of the points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Design {
    /// Every value with every other
    #[default]
    Grid,
    /// The first values of all, the second ones, …
    List,
    /// `--points` of them, each value drawn by itself
    Random,
    /// `--points` of them, one in each of so many equal parts of every range (Latin hypercube)
    Latin,
}

/// Perform one task of a sweep: JSON from stdin, its batch to stdout
#[derive(Debug, Args)]
pub(crate) struct SweepTask {
    #[command(flatten)]
    pub(crate) real: Real,
}
