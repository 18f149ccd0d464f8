//! One seed of a scenario in the simulator, and why a run may come to nothing.

use crate::metrics::RunSummary;
use crate::pool::Hooks;
use crate::study::store::StoreError;
use fairpace_scenario::{Record, Scenario, ScenarioError, controllers, sim_config};
use fairpace_sim::{Network, Observer, PacketEvent, PcapWriter, SimConfig, SimError, SimReport};
use fairpace_units::{Duration, Instant};
use std::error::Error;
use std::io::Write;

/// How often a run looks at the stop flag, in simulated time and in events and packet-hops: whichever comes first.
const CHUNK: Duration = Duration::from_secs(2);
const CHUNK_WORK: u64 = 100_000;

/// One seed's results.
#[derive(Clone, Debug)]
pub struct SeedRun {
    /// The seed.
    pub seed: u64,
    /// The results, summed up.
    pub summary: RunSummary,
    /// Everything the simulator reported: time series, events, capture.
    pub report: SimReport,
}

/// Why a run could not be made.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The scenario is at fault.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The simulator refuses the configuration.
    #[error("the simulator refuses scenario `{scenario}`: {error}")]
    Sim {
        /// The scenario's name.
        scenario: String,
        /// The simulator's message.
        error: Box<SimError>,
    },
    /// Another world than the simulator refuses, or failed.
    #[error(transparent)]
    World(Box<dyn Error + Send + Sync>),
    /// The points of a study cannot be kept.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A rule of our own decided in a run that was to be the paper's.
    #[error("in scenario `{scenario}`, seed {seed}, a rule that the paper does not have decided {times} times")]
    OwnRules {
        /// The scenario's name.
        scenario: String,
        /// The seed.
        seed: u64,
        /// How often.
        times: u64,
    },
    /// Stopped before anything was finished.
    #[error("interrupted before the first result")]
    Interrupted,
}

impl RunError {
    /// The error of another world than the simulator.
    pub fn world(error: impl Error + Send + Sync + 'static) -> RunError {
        RunError::World(Box::new(error))
    }
}

/// Simulates one seed, looking at the stop flag now and then. A stopped run is valid up to where
/// it came.
///
/// # Errors
/// The simulator refuses the configuration.
pub fn simulate(scenario: &Scenario, seed: u64, record: Record, hooks: &Hooks<'_>) -> Result<SeedRun, RunError> {
    controllers::simulated(scenario)?;
    let config = sim_config(scenario, seed, record)?;
    let network = network(&scenario.name, &config)?;
    Ok(summed_up(scenario, seed, &config, network, hooks))
}

/// As [`simulate`], with every packet written as pcapng as it moves: handed on at each simulated second.
///
/// # Errors
/// As [`simulate`]. Failures of the output are its own to tell.
pub fn simulate_captured(
    scenario: &Scenario,
    seed: u64,
    record: Record,
    out: Box<dyn Write + Send>,
    hooks: &Hooks<'_>,
) -> Result<SeedRun, RunError> {
    controllers::simulated(scenario)?;
    let config = sim_config(scenario, seed, Record { pcap: false, ..record })?;
    let mut network = network(&scenario.name, &config)?;
    network.observe(Box::new(Recording(Some(PcapWriter::new(out, network.link_names())))));
    Ok(summed_up(scenario, seed, &config, network, hooks))
}

fn summed_up(scenario: &Scenario, seed: u64, config: &SimConfig, network: Network, hooks: &Hooks<'_>) -> SeedRun {
    let (report, now) = run_to_end(network, config, hooks);
    let interrupted = now < Instant::ZERO + config.duration;
    let summary = RunSummary::new(scenario, seed, &report, now.since(Instant::ZERO), interrupted);
    SeedRun { seed, summary, report }
}

/// A capture that is whole when nobody tells it of packets any more.
struct Recording(Option<PcapWriter<Box<dyn Write + Send>>>);

impl Observer for Recording {
    fn on_packet(&mut self, event: &PacketEvent) {
        if let Some(writer) = &mut self.0 {
            writer.write(event);
        }
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        // A failure is the output's to tell.
        let _ = self.0.take().map(PcapWriter::finish);
    }
}

/// Runs a configuration, made of the scenario of that name, as [`simulate`] does, and tells `observer` of every
/// packet. The report, and up to when it goes.
///
/// # Errors
/// As [`simulate`].
pub fn simulate_observed(
    name: &str,
    config: &SimConfig,
    observer: Option<Box<dyn Observer>>,
    hooks: &Hooks<'_>,
) -> Result<(SimReport, Instant), RunError> {
    let mut network = network(name, config)?;
    if let Some(observer) = observer {
        network.observe(observer);
    }
    Ok(run_to_end(network, config, hooks))
}

fn network(name: &str, config: &SimConfig) -> Result<Network, RunError> {
    Network::new(config).map_err(|error| RunError::Sim { scenario: name.to_owned(), error: Box::new(error) })
}

fn run_to_end(mut network: Network, config: &SimConfig, hooks: &Hooks<'_>) -> (SimReport, Instant) {
    let end = Instant::ZERO + config.duration;
    let mut now = Instant::ZERO;
    while now < end && !hooks.stopped() {
        let next = (now + CHUNK).min(end);
        now = if network.advance_some(next, CHUNK_WORK) { next } else { network.now() };
    }
    (network.into_report(), now)
}
