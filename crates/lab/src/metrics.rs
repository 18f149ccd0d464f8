//! The results of one run, in the words and units of `run --json`. Never a NaN; what could not be measured is `null`.

mod flows;
mod links;
mod shared;

pub use flows::{FlowSummary, GroupSummary, QuickStartSummary, TcpSummary};
pub use links::{Drops, LinkSummary};
pub use shared::{AgentSummary, SatelliteSummary, TerminalSummary, UserSummary, WirelessSummary};

use fairpace_scenario::Scenario;
use fairpace_sim::{LinkReport, SimReport};
use fairpace_units::{Duration, Instant};
use flows::FlowFacts;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One run: one scenario, one seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunSummary {
    /// The scenario's name.
    pub scenario: String,
    /// `sim` or `emu`.
    pub world: String,
    /// The seed.
    pub seed: u64,
    /// How long the run lasted.
    pub duration_s: f64,
    /// How much of its beginning is left out below.
    pub warmup_s: f64,
    /// True if it was stopped before its end.
    pub interrupted: bool,
    /// One per flow.
    pub flows: Vec<FlowSummary>,
    /// One per group of flows, in the scenario's order.
    pub groups: Vec<GroupSummary>,
    /// The bottleneck, the way back, and access links.
    pub links: Vec<LinkSummary>,
    /// The satellite and its terminals, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub satellite: Option<SatelliteSummary>,
    /// The wireless link and its users, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wireless: Option<WirelessSummary>,
    /// Times that a rule of our own decided ([`SimReport::by_own_rules`]): zero with `safety = "paper"`, unless the
    /// scenario sets one itself.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub own_rules: u64,
    /// The warnings about the scenario.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The machine and its verdict, of a run in real time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub emulated: Option<Emulated>,
    /// Flows that a results folder has in `flows.csv` only.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub flows_left_out: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // as serde hands it over
fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// The machine of an emulated run, and whether its numbers are the path's or the machine's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Emulated {
    /// Why the numbers are not to be trusted; empty if they are.
    pub invalid: Vec<String>,
    /// The differences between this run and the scenario, or the simulator.
    pub notes: Vec<String>,
    /// Each TCP flow's congestion control.
    pub algorithms: BTreeMap<String, String>,
    /// Sysctls set for this run, inside its namespaces.
    pub sysctls: BTreeMap<String, String>,
    /// How late packets left the emulator: median.
    pub lateness_p50_ms: f64,
    /// The same, 99th percentile.
    pub lateness_p99_ms: f64,
    /// The same, greatest.
    pub lateness_max_ms: f64,
    /// How long packets may have waited for the emulator to read them, at most: median.
    pub unread_p50_ms: f64,
    /// The same, 99th percentile.
    pub unread_p99_ms: f64,
    /// The same, greatest.
    pub unread_max_ms: f64,
    /// Share of a processor that the emulator took.
    pub cpu: f64,
    /// Whether its loop had real-time priority.
    pub real_time_priority: bool,
    /// Packets between addresses that are no flow's, dropped.
    pub unknown_packets: u64,
}

impl RunSummary {
    /// From the simulator's report.
    pub fn new(scenario: &Scenario, seed: u64, report: &SimReport, ran: Duration, interrupted: bool) -> RunSummary {
        let (from, to) = (Instant::ZERO + scenario.warmup.get(), Instant::ZERO + ran);
        let mut known = BTreeMap::new();
        let mut groups: Vec<&str> = Vec::new();
        for flow in &scenario.flows {
            for instance in fairpace_scenario::instances(scenario, flow, seed) {
                let goes_on = flow.arrivals.is_some().then(|| instance.within(from, to));
                known.insert(instance.name, FlowFacts { spec: flow, goes_on });
            }
            if !groups.contains(&flow.group.as_str()) {
                groups.push(&flow.group);
            }
        }
        let window = to.since(from);
        // The shared links have nothing to do where flows go over a satellite.
        let idle = if scenario.satellite.is_some() && scenario.hop.is_empty() { 2 } else { 0 };
        RunSummary {
            scenario: scenario.name.clone(),
            world: "sim".to_owned(),
            seed,
            duration_s: ran.as_secs_f64(),
            warmup_s: scenario.warmup.get().as_secs_f64(),
            interrupted,
            flows: report.flows.iter().map(|f| FlowSummary::new(f, known.get(&f.name), from)).collect(),
            groups: groups.iter().map(|g| GroupSummary::new(g, report, &known)).collect(),
            links: report
                .links
                .iter()
                .skip(idle)
                .filter(|l| !is_wire(scenario, report, l))
                .map(LinkSummary::new)
                .collect(),
            satellite: scenario
                .satellite
                .as_ref()
                .zip(report.satellites.first())
                .map(|(spec, found)| SatelliteSummary::new(&spec.dama(scenario.packet_size.get()), found, window)),
            wireless: scenario.wireless.as_ref().zip(report.radios.first()).map(|(spec, found)| {
                let size = scenario.packet_size.get();
                WirelessSummary::new(spec.slot(size), spec.slot_size(size), found, window)
            }),
            own_rules: report.by_own_rules(),
            warnings: scenario.warnings().iter().map(|w| w.text.clone()).collect(),
            emulated: None,
            flows_left_out: 0,
        }
    }

    /// A group by its name.
    pub fn group(&self, name: &str) -> Option<&GroupSummary> {
        self.groups.iter().find(|g| g.name == name)
    }

    /// A link by its name.
    pub fn link(&self, name: &str) -> Option<&LinkSummary> {
        self.links.iter().find(|l| l.name == name)
    }
}

/// An uplink of a user that the scenario gives none.
fn is_wire(scenario: &Scenario, report: &SimReport, link: &LinkReport) -> bool {
    let is_uplink = |name: &str| link.name.strip_prefix(name).is_some_and(|rest| rest.starts_with(".user"));
    scenario.wireless.as_ref().is_some_and(|w| w.uplink.is_none()) && report.radios.iter().any(|r| is_uplink(&r.name))
}
