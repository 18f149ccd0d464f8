//! The wireless link, the windows and the measurement that the experiments of `aimd` share.

use crate::figure::{Quantity, counted};
use crate::{Bench, Experiment};
use fairpace_analysis::qos::{Process, QosError, Start};
use fairpace_lab::RunError;
use fairpace_lab::stats::{Estimate, MAX_SEEDS};
use fairpace_lab::study::{Case, Cell, Job, Measure, Measurements, Number};
use fairpace_path::{ArqScheme, Channel};
use fairpace_scenario::{ArqKind, ChannelSpec, Parameter, RawScenario, Record, Room, Time, WirelessSpec};
use fairpace_units::Duration;
use serde::{Deserialize, Serialize};

/// A slot: 125 bytes at 200 kbit/s.
pub(super) const SLOT: Duration = Duration::from_millis(5);
/// R, slots.
pub(super) const R: u32 = 17;
/// D, slots.
pub(super) const D: u32 = 10;
/// The delay outage that is tolerated.
pub(super) const OUTAGE: f64 = 0.01;
/// p_e of Figs. 3, 4, 6, 7, in percent.
pub(super) const ERRORS: [f64; 10] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0];

pub(super) fn slots(n: f64) -> Time {
    Time::ms(n * SLOT.as_secs_f64() * 1e3)
}

pub(super) fn packets(n: u32) -> Room {
    Room::packets(u64::from(n))
}

/// The wireless link of a scenario; those with users have one.
pub(super) fn wireless(s: &mut RawScenario) -> &mut WirelessSpec {
    s.wireless.get_or_insert_with(WirelessSpec::default)
}

/// The channel's errors, and the link layer's answer to them [aimd §IV].
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Link {
    pub(super) scheme: ArqKind,
    /// lambda.
    pub(super) memory: f64,
    /// A third state between the good one and the bad one, in which half the slots fail.
    pub(super) three_states: bool,
}

pub(super) const PERSISTENT: Link = Link { scheme: ArqKind::Persistent, memory: 0.0, three_states: false };
pub(super) const OPTIMAL: Link = Link { scheme: ArqKind::Optimal, memory: 0.35, three_states: false };
pub(super) const OPTIMAL_3: Link = Link { three_states: true, ..OPTIMAL };

impl Link {
    pub(super) fn key(self) -> &'static str {
        self.scheme.as_str()
    }

    /// Sets it up with an error probability in percent.
    pub(super) fn set(self, s: &mut RawScenario, percent: f64) {
        let wireless = wireless(s);
        wireless.scheme = self.scheme;
        wireless.channel = match self.chain(percent) {
            Some(chain) => ChannelSpec::markov(&chain),
            None => ChannelSpec::two_state(percent / 100.0, self.memory),
        };
    }

    /// The chain of three states: p_e is the mean, as many slots are in the middle state as in the bad one, and both other
    /// eigenvalues are lambda.
    fn chain(self, percent: f64) -> Option<Channel> {
        let rare = 2.0 / 3.0 * percent / 100.0;
        let share = [1.0 - 2.0 * rare, rare, rare];
        let row = |from: usize| {
            let to =
                |(to, share): (usize, f64)| (1.0 - self.memory) * share + if from == to { self.memory } else { 0.0 };
            share.into_iter().enumerate().map(to).collect()
        };
        self.three_states.then(|| Channel { transition: (0..3).map(row).collect(), error: vec![0.0, 0.5, 1.0] })
    }

    /// The same for the analysis.
    pub(super) fn process(self, percent: f64) -> Result<Process, QosError> {
        let scheme = if self.scheme == ArqKind::Optimal { ArqScheme::Optimal } else { ArqScheme::Persistent };
        let channel = match self.chain(percent) {
            Some(chain) => chain,
            None => Channel::two_state(percent / 100.0, self.memory)?,
        };
        Process::new(&channel, scheme, 0)
    }
}

/// Gives the AIMD flows their windows, in their order, and the base station a buffer of their sum.
pub(super) fn set_windows(s: &mut RawScenario, windows: &[u32]) {
    let aimd = s.flows.iter_mut().filter(|f| f.controller == "aimd");
    for (flow, rwnd) in aimd.zip(windows) {
        flow.parameters.insert("rwnd".to_owned(), Parameter::Whole(i64::from(*rwnd)));
    }
    wireless(s).buffer = packets(windows.iter().sum());
}

/// The throughput and losses of one flow after the warm-up.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(super) struct FlowStats {
    pub(super) group: String,
    /// Packets received per slot.
    pub(super) throughput: f64,
    /// Of these, the part whose delay jitter was too long; zero for flows without a bound.
    pub(super) outage: f64,
    /// Of those sent, the part that was dropped.
    pub(super) lost: f64,
}

impl FlowStats {
    /// Packets received in time, per slot [aimd §IV-D].
    pub(super) fn goodput(&self) -> f64 {
        self.throughput * (1.0 - self.outage)
    }

    /// Packets sent that were dropped, or came too late [aimd §III-C].
    pub(super) fn failed(&self) -> f64 {
        self.lost + (1.0 - self.lost) * self.outage
    }
}

/// A number of the first flow.
pub(super) const fn of_first(
    key: &'static str,
    label: &'static str,
    unit: &'static str,
    get: Number<Vec<FlowStats>>,
) -> Quantity<Vec<FlowStats>> {
    Quantity { key, label, unit, get }
}

pub(super) const PACKETS: &str = "part of the packets";
pub(super) const DROPPED: Quantity<Vec<FlowStats>> =
    of_first("dropped", "dropped", PACKETS, |run| run.first().map(|g| g.lost));
pub(super) const LATE: Quantity<Vec<FlowStats>> =
    of_first("outage", "delay outage", PACKETS, |run| run.first().map(|g| g.outage));

pub(super) const MEASURE: Measure<Vec<FlowStats>> = Measure { name: "aimd", of: flow_stats };

pub(super) fn flow_stats(job: &Job<'_>) -> Result<Vec<FlowStats>, RunError> {
    let run = job.run(Record::default())?;
    let one = |f: &fairpace_sim::FlowReport| {
        let received = f.measured.received.packets.as_f64();
        let sent = f.measured.sent.packets.as_f64();
        FlowStats {
            group: f.group.clone(),
            throughput: f.throughput_pps() * SLOT.as_secs_f64(),
            outage: if received > 0.0 { f.measured.outage.packets.as_f64() / received } else { 0.0 },
            lost: if sent > 0.0 { f.measured.dropped_in_all().packets.as_f64() / sent } else { 0.0 },
        }
    };
    Ok(run.report.flows.iter().map(one).collect())
}

/// Each case with so many seeds.
pub(super) fn measure(
    e: &Experiment,
    cases: Vec<Case>,
    seeds: usize,
    bench: &mut Bench<'_>,
) -> Result<Measurements<Vec<FlowStats>>, RunError> {
    counted(e, bench, MEASURE, cases, seeds)
}

/// A number of the flow of that place, over the seeds.
pub(super) fn of_flow(cell: &Cell<Vec<FlowStats>>, place: usize, number: fn(&FlowStats) -> f64) -> Option<Estimate> {
    cell.mean(|run| run.get(place).map_or(f64::NAN, number))
}

/// The seeds of an experiment that usually has so many.
pub(super) fn seeds(bench: &Bench<'_>, usual: usize) -> usize {
    bench.seeds(usual, MAX_SEEDS)
}

pub(super) fn caption(e: &Experiment, seeds: usize) -> String {
    format!("{}; {seeds} seeds per point; bars are 95 % intervals (Student's t)", e.file)
}

/// The slots of eq. (3) are counted from the slot after a success on.
pub(super) const START: Start = Start::AfterSuccess;
