//! A seed's results as they are kept.

use crate::metrics::RunSummary;
use crate::simulate::SeedRun;
use crate::table::Table;
use crate::tables;
use fairpace_scenario::{Scenario, ScenarioError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One seed's results as they are kept: its summary, and its rows of each table.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SeedResults {
    /// The results, summed up.
    pub summary: RunSummary,
    /// The rows by the name of their table: `flows`, `links`, `series`, `link_series`, `events`, and those of a satellite,
    /// of a wireless link, of data units.
    pub tables: BTreeMap<String, Table>,
    /// The events of a satellite, one a line of JSON; none without one.
    pub(crate) terminal_events: Option<String>,
    pub(crate) engine: EngineCounts,
    /// Every packet, as a pcapng file; `None` unless asked for. Not kept in `seeds.jsonl`.
    #[serde(skip)]
    pub pcapng: Option<Vec<u8>>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct EngineCounts {
    pub(crate) events: u64,
    pub(crate) packet_hops: u64,
}

impl SeedResults {
    /// The results of a run of the scenario.
    ///
    /// # Errors
    /// The scenario asks for a table that cannot be made.
    pub fn new(scenario: &Scenario, run: SeedRun) -> Result<SeedResults, ScenarioError> {
        let tables = tables::all(scenario, &run)?;
        let terminal_events = scenario.satellite.is_some().then(|| tables::terminal_events(&run));
        let SeedRun { summary, report, .. } = run;
        let engine = EngineCounts { events: report.engine.events, packet_hops: report.engine.packet_hops };
        Ok(SeedResults { summary, tables, terminal_events, engine, pcapng: report.pcapng })
    }

    /// The events of a satellite, one a line of JSON; none without one.
    pub fn terminal_events(&self) -> Option<&str> {
        self.terminal_events.as_deref()
    }

    /// The seed.
    pub fn seed(&self) -> u64 {
        self.summary.seed
    }
}
