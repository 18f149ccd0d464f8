//! The runs of one flow in every phase of the super-frame: its packets, its delays, its second hump [qsd §3.2].

use super::setup::dama;
use super::spread::Spread;
use crate::{Bench, Effort, Experiment};
use fairpace_control::{FlowEventKind, QsVerdict};
use fairpace_lab::RunError;
use fairpace_lab::study::{Case, Job, Measure, Measurements, Sampling, Study};
use fairpace_path::DamaSpec;
use fairpace_scenario::{Record, Scenario, sim_config};
use fairpace_sim::{PacketRecord, Protocol, SimConfig, SimReport};
use fairpace_units::{Duration, Instant};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::rc::Rc;

/// The step from one phase to the next [qsd §3.2].
pub(super) const STEP: Duration = Duration::from_micros(1_800);

/// Data produced so long after the start is followed until arrival.
const FOLLOWED: Duration = Duration::from_secs(30);

/// One packet. Times in seconds since the flow's start.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(from = "[f64; 3]", into = "[f64; 3]")]
pub(super) struct Packet {
    /// When the source produced it.
    pub(super) born: f64,
    /// When it left the sender.
    pub(super) sent: f64,
    /// When it came.
    pub(super) received: f64,
}

impl From<[f64; 3]> for Packet {
    fn from([born, sent, received]: [f64; 3]) -> Packet {
        Packet { born, sent, received }
    }
}

impl From<Packet> for [f64; 3] {
    fn from(p: Packet) -> [f64; 3] {
        [p.born, p.sent, p.received]
    }
}

impl Packet {
    pub(super) fn e2ed(&self) -> f64 {
        self.received - self.born
    }

    pub(super) fn owd(&self) -> f64 {
        self.received - self.sent
    }
}

/// A number of a packet: its end-to-end delay, say.
pub(super) type Delay = fn(&Packet) -> f64;

/// The packets of one flow in every phase.
#[derive(Clone, Debug, Default)]
pub(super) struct Phases {
    /// Per phase, the packets in order, from the first on until the first that did not arrive.
    pub(super) flows: Vec<Rc<Vec<Packet>>>,
    /// Below this a difference of delay is no news, s.
    pub(super) quantum: f64,
}

/// Below this a difference of delay is no news: a packet waits up to T_f for its terminal's slots, and up to the next
/// packet for what its last slot has no room for.
pub(super) fn quantum(scenario: &Scenario) -> f64 {
    let rate = scenario.flows.first().and_then(|f| f.source.as_ref()?.rate.as_ref());
    let size = scenario.packet_size.get();
    let spacing = rate.map_or(0.0, |r| size.as_f64() * 8.0 / r.get().with_packets_of(size).as_bps());
    dama(scenario).multi_frame().as_secs_f64() + spacing
}

/// The phases of a figure: all.
pub(super) const ALL: u64 = 10_000;
/// The phases of a sweep over something else: as many as a small super-frame has.
pub(super) const SWEEP: u64 = 76;

/// The phases of a quick run.
const QUICK_PHASES: usize = 19;

/// The phases of a super-frame, in [`STEP`]s: all, or `most` of them, evenly spread.
pub(super) fn phases(spec: &DamaSpec, effort: Effort, most: u64) -> Vec<u64> {
    let steps = spec.super_frame().as_nanos().div_ceil(STEP.as_nanos()) as usize;
    let wanted = match effort {
        Effort::Seeds(n) => n.clamp(1, steps),
        Effort::Usual => steps.min(most as usize),
        Effort::Quick => steps.min(QUICK_PHASES),
        Effort::Full => steps,
    };
    (0..wanted).map(|i| (i * steps / wanted) as u64).collect()
}

/// The run of a scenario in one phase.
pub(super) struct PhaseRun {
    report: SimReport,
    /// When the flow started.
    start: Instant,
    /// Below this a difference of delay is no news, s.
    pub(super) quantum: f64,
}

impl PhaseRun {
    /// Runs it; the job's seed is the phase, in [`STEP`]s.
    pub(super) fn run(job: &Job<'_>) -> Result<PhaseRun, RunError> {
        if job.hooks.stopped() {
            return Err(RunError::Interrupted);
        }
        let (scenario, spec) = (job.scenario, dama(job.scenario));
        let config = sim_config(scenario, scenario.seed.get(), Record { events: true, ..Record::default() })?;
        let start = spec.super_frame() * (spec.allocation_delay + 2) + STEP * job.seed as u32;
        // The boundary itself is rounded.
        let start = Instant::ZERO + start + Duration::from_micros(1);
        let report = fairpace_sim::run(starting_at(&config, start))
            .map_err(|error| RunError::Sim { scenario: scenario.name.clone(), error: Box::new(error) })?;
        job.allow(report.by_own_rules())?;
        Ok(PhaseRun { report, start, quantum: quantum(scenario) })
    }

    /// The packets of the first flow, in order, until the first that did not arrive.
    pub(super) fn packets(&self) -> Vec<Packet> {
        let media = self.report.flows.first().and_then(|f| f.media.as_ref());
        let records = media.map_or(&[][..], |m| &m.packet_records);
        let arrived = records.iter().map_while(|r| Some((r, r.received?)));
        let packet = |(r, at): (&PacketRecord, _)| Packet {
            born: self.since_start(r.born),
            sent: self.since_start(r.sent),
            received: self.since_start(at),
        };
        arrived.map(packet).collect()
    }

    /// X of the first flow: (from when, in s since its start, how much, in bit/s).
    pub(super) fn rates(&self) -> Vec<(f64, f64)> {
        let first = self.report.events.iter().filter(|(flow, _)| *flow == 0);
        first
            .filter_map(|(_, event)| match event.what {
                FlowEventKind::RateChanged { rate, .. } => Some((self.since_start(event.at), rate.as_bps())),
                _ => None,
            })
            .collect()
    }

    /// When the rate that the routers approved came into use, and which X that is.
    pub(super) fn approved(&self) -> Option<(f64, f64)> {
        let approved = |what: &FlowEventKind| {
            matches!(what, FlowEventKind::QuickStartAnswered { verdict: QsVerdict::Approved(_) })
        };
        let (_, event) = self.report.events.iter().find(|(flow, event)| *flow == 0 && approved(&event.what))?;
        let at = self.since_start(event.at);
        // The report that brought the answer has set X, too, before it.
        self.rates().into_iter().rfind(|(t, _)| (t - at).abs() < 1e-9)
    }

    /// Seconds since the flow's start.
    fn since_start(&self, at: Instant) -> f64 {
        at.since(self.start).as_secs_f64()
    }
}

/// Measures each scenario, all of one frame, in every phase; a cell for each, in their order.
pub(super) fn each_phase<R: Serialize + DeserializeOwned + Send + 'static>(
    e: &Experiment,
    scenarios: &[Scenario],
    most: u64,
    bench: &mut Bench<'_>,
    measure: Measure<R>,
) -> Result<Measurements<R>, RunError> {
    let seeds = scenarios.first().map_or(Vec::new(), |s| phases(&dama(s), bench.effort(), most));
    let case = |(i, s): (usize, &Scenario)| Case::new("phase", i as f64, s.clone());
    let cases = scenarios.iter().enumerate().map(case).collect();
    Study { name: e.id.to_owned(), measure, cases, sampling: Sampling::Exactly(seeds) }.run(bench)
}

/// The configuration with flows that start then and are followed. The terminals have been idle before for long
/// enough that all they asked for at first was answered.
fn starting_at(config: &SimConfig, start: Instant) -> SimConfig {
    let mut config = config.clone();
    for flow in &mut config.flows {
        flow.start = start;
        if let Protocol::Media(media) = &mut flow.protocol {
            media.record_packets = Some(FOLLOWED);
        }
    }
    config
}

/// The packets of each scenario's flow in every phase.
pub(super) fn over_phases(
    e: &Experiment,
    scenarios: &[Scenario],
    bench: &mut Bench<'_>,
) -> Result<Vec<Phases>, RunError> {
    const PACKETS: Measure<Vec<Packet>> = Measure { name: "qsd packets", of: |job| Ok(PhaseRun::run(job)?.packets()) };
    let all = each_phase(e, scenarios, ALL, bench, PACKETS)?;
    Ok(scenarios.iter().zip(all.cells).map(|(s, c)| Phases { flows: c.runs, quantum: quantum(s) }).collect())
}

/// The part of a run that a sweep keeps.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub(super) struct Summit {
    /// The greatest end-to-end delay, s.
    pub(super) peak: f64,
    /// The second hump, s.
    pub(super) hump: f64,
}

/// The summits of each scenario in every phase.
pub(super) fn summits(
    e: &Experiment,
    scenarios: &[Scenario],
    most: u64,
    bench: &mut Bench<'_>,
) -> Result<Vec<Vec<Summit>>, RunError> {
    const SUMMIT: Measure<Summit> = Measure { name: "qsd summit", of: summit };
    let all = each_phase(e, scenarios, most, bench, SUMMIT)?;
    Ok(all.cells.iter().map(|c| c.runs.iter().map(|r| **r).collect()).collect())
}

fn summit(job: &Job<'_>) -> Result<Summit, RunError> {
    let run = PhaseRun::run(job)?;
    let packets = run.packets();
    Ok(Summit { peak: peak(&packets), hump: second_hump(&packets, run.quantum) })
}

/// The greatest end-to-end delay, s.
pub(super) fn peak(packets: &[Packet]) -> f64 {
    packets.iter().map(Packet::e2ed).fold(f64::NAN, f64::max)
}

/// The greatest delays of a scenario over the phases.
pub(super) fn peaks(summits: &[Summit]) -> Option<Spread> {
    Spread::of(summits.iter().map(|s| s.peak).collect())
}

/// How far the delay rises after it has fallen from its first maximum, s; 0 if it does not.
fn second_hump(packets: &[Packet], quantum: f64) -> f64 {
    hump(&envelope(packets, quantum), quantum)
}

impl Phases {
    /// Packets that arrived in every phase.
    pub(super) fn len(&self) -> usize {
        self.flows.iter().map(|f| f.len()).min().unwrap_or(0)
    }

    /// When packet n is produced, in s: the same in every phase.
    pub(super) fn born(&self) -> Vec<f64> {
        self.flows.first().map_or(Vec::new(), |f| f[..self.len()].iter().map(|p| p.born).collect())
    }

    /// A delay of each packet over the phases.
    pub(super) fn spread(&self, delay: Delay) -> Vec<Spread> {
        (0..self.len()).filter_map(|n| Spread::of(self.flows.iter().map(|f| delay(&f[n])).collect())).collect()
    }

    /// The peak of the medians.
    pub(super) fn peak_of_median(&self) -> f64 {
        self.spread(Packet::e2ed).iter().map(|s| s.median).fold(f64::NAN, f64::max)
    }

    /// Greatest less least end-to-end delay over the phases, of the packet with most.
    pub(super) fn widest(&self) -> f64 {
        self.spread(Packet::e2ed).iter().map(|s| s.greatest - s.least).fold(f64::NAN, f64::max)
    }

    /// The greatest end-to-end delay in each phase.
    pub(super) fn peaks(&self) -> Vec<f64> {
        self.flows.iter().map(|f| peak(f)).collect()
    }

    /// The greatest end-to-end delay over that of others, phase by phase.
    pub(super) fn over(&self, others: &Phases) -> Vec<f64> {
        self.peaks().iter().zip(others.peaks()).map(|(own, other)| own / other).collect()
    }

    /// The highest second hump of all phases.
    pub(super) fn worst_hump(&self) -> f64 {
        self.flows.iter().map(|f| second_hump(f, self.quantum)).fold(0.0, f64::max)
    }
}

/// The greatest end-to-end delay among the packets of the last `span` seconds, at each packet.
fn envelope(packets: &[Packet], span: f64) -> Vec<f64> {
    let recent = |i: usize| packets[..=i].iter().rev().take_while(move |p| p.born > packets[i].born - span);
    (0..packets.len()).map(|i| recent(i).map(Packet::e2ed).fold(0.0, f64::max)).collect()
}

/// How far a course rises after it has fallen by more than `quantum` from its first maximum.
pub(super) fn hump(course: &[f64], quantum: f64) -> f64 {
    let (mut top, mut bottom, mut rise) = (f64::NEG_INFINITY, None::<f64>, 0.0);
    for &v in course {
        match &mut bottom {
            None => {
                top = v.max(top);
                bottom = (v < top - quantum).then_some(v);
            }
            Some(b) => {
                *b = v.min(*b);
                rise = f64::max(rise, v - *b);
            }
        }
    }
    rise
}
