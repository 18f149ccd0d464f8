//! One seed of a scenario in the simulator, and why a run may come to nothing.

use crate::metrics::RunSummary;
use crate::pool::Hooks;
use crate::series;
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
    simulate_into(Outputs::default(), scenario, seed, record, hooks)
}

/// Where records of a run go while it goes on, in the place of its report. Failures of an output are its own to tell.
#[derive(Default)]
pub struct Outputs {
    /// Every packet as pcapng, as it moves: handed on at each simulated second.
    pub packets: Option<Box<dyn Write + Send>>,
    /// The flows' series as CSV, as it is sampled: handed on each 2 simulated seconds, or 100,000 events and packet-hops. So no
    /// more rows are in memory than are sampled meanwhile, however long the run is.
    pub series: Option<Box<dyn Write + Send>>,
}

/// As [`simulate`], with records that are written as the run goes on.
///
/// # Errors
/// As [`simulate`].
pub fn simulate_into(
    outputs: Outputs,
    scenario: &Scenario,
    seed: u64,
    record: Record,
    hooks: &Hooks<'_>,
) -> Result<SeedRun, RunError> {
    controllers::simulated(scenario)?;
    let Outputs { packets, series: mut out } = outputs;
    let config = sim_config(scenario, seed, Record { pcap: record.pcap && packets.is_none(), ..record })?;
    let mut network = network(&scenario.name, &config)?;
    if let Some(out) = packets {
        network.observe(Box::new(Recording(Some(PcapWriter::new(out, network.link_names())))));
    }
    let head = series::of_config(&config, seed, &[]).csv();
    let mut failed = out.as_mut().is_some_and(|out| out.write_all(head.as_bytes()).is_err());
    let (report, now) = run_to_end(network, &config, hooks, |network| {
        if let Some(out) = &mut out {
            let mut rows = String::new();
            series::of_config(&config, seed, &network.take_series()).csv_rows(&mut rows);
            // Behind a part of a row nothing follows.
            failed = failed || out.write_all(rows.as_bytes()).and_then(|()| out.flush()).is_err();
        }
    });
    Ok(summed_up(scenario, seed, &config, report, now))
}

fn summed_up(scenario: &Scenario, seed: u64, config: &SimConfig, report: SimReport, now: Instant) -> SeedRun {
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
    Ok(run_to_end(network, config, hooks, |_| {}))
}

fn network(name: &str, config: &SimConfig) -> Result<Network, RunError> {
    Network::new(config).map_err(|error| RunError::Sim { scenario: name.to_owned(), error: Box::new(error) })
}

/// Lets everything happen, in pieces; after each of them `then` has the network. The report, and up to when it goes.
fn run_to_end(
    mut network: Network,
    config: &SimConfig,
    hooks: &Hooks<'_>,
    mut then: impl FnMut(&mut Network),
) -> (SimReport, Instant) {
    let end = Instant::ZERO + config.duration;
    let mut now = Instant::ZERO;
    while now < end && !hooks.stopped() {
        let next = (now + CHUNK).min(end);
        now = if network.advance_some(next, CHUNK_WORK) { next } else { network.now() };
        then(&mut network);
    }
    (network.into_report(), now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairpace_scenario::Time;
    use std::io;
    use std::sync::{Arc, Mutex};

    /// An output that counts the rows between two flushes.
    #[derive(Default)]
    struct Written {
        text: String,
        since_flush: usize,
        most: usize,
        /// The write that finds no room but for half of its bytes, counted down to 0.
        full_at: Option<usize>,
    }

    #[derive(Clone, Default)]
    struct Output(Arc<Mutex<Written>>);

    impl Write for Output {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let mut written = self.0.lock().unwrap();
            if written.full_at == Some(0) {
                written.full_at = None;
                written.text += std::str::from_utf8(&bytes[..bytes.len() / 2]).unwrap();
                return Err(io::ErrorKind::StorageFull.into());
            }
            written.full_at = written.full_at.map(|left| left - 1);
            let text = std::str::from_utf8(bytes).unwrap();
            written.text += text;
            written.since_flush += text.lines().count();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            let mut written = self.0.lock().unwrap();
            written.most = written.most.max(written.since_flush);
            written.since_flush = 0;
            Ok(())
        }
    }

    fn scenario(seconds: f64) -> Scenario {
        let small = include_str!("../../scenario/tests/small.toml");
        Scenario::parse(small, "small.toml").unwrap().modify(|s| s.duration = Time::seconds(seconds)).unwrap()
    }

    const RECORD: Record = Record { series: true, events: false, pcap: false };

    fn series_of(scenario: &Scenario, output: &Output) -> SeedRun {
        let outputs = Outputs { series: Some(Box::new(output.clone())), ..Outputs::default() };
        simulate_into(outputs, scenario, 1, RECORD, &Hooks::default()).unwrap()
    }

    #[test]
    fn rows_that_go_out_as_they_are_sampled_are_all_rows_and_few_are_held_however_long_the_run_is() {
        let mut most = Vec::new();
        for seconds in [12.0, 48.0] {
            let (scenario, output) = (scenario(seconds), Output::default());
            let run = series_of(&scenario, &output);
            assert!(run.report.series.is_empty());
            let whole = simulate(&scenario, 1, RECORD, &Hooks::default()).unwrap();
            let table = series::of_config(&sim_config(&scenario, 1, RECORD).unwrap(), 1, &whole.report.series);
            let written = output.0.lock().unwrap();
            assert!(written.text == table.csv(), "{seconds} s");
            assert_eq!(written.since_flush, 0, "all is handed on");
            // Rows of 2 s of the run, and the head.
            assert_eq!(written.most, table.len() * 2 / seconds as usize + 1);
            most.push(written.most);
        }
        assert_eq!(most[0], most[1]);
    }

    #[test]
    fn a_full_disk_keeps_what_was_written_and_gets_nothing_behind_a_part_of_a_row() {
        let scenario = scenario(12.0);
        let (whole, cut) = (Output::default(), Output::default());
        cut.0.lock().unwrap().full_at = Some(3);
        let runs = [&whole, &cut].map(|output| series_of(&scenario, output));
        assert_eq!(runs[0].summary.flows, runs[1].summary.flows);
        let (whole, cut) = (whole.0.lock().unwrap(), cut.0.lock().unwrap());
        assert!(cut.full_at.is_none() && whole.text.starts_with(&cut.text));
        // The head and two of six parts are whole, and half of the third is there.
        let share = cut.text.len() as f64 / whole.text.len() as f64;
        assert!((0.35..0.5).contains(&share), "{share}");
    }
}
