//! The experiments of `qsd` (Secchi, Sathiaseelan, Potortì, Gotta, Fairhurst): §3 and §4, Figs. 3 to 9,
//! Tables I and III, Appendix A.
//!
//! One file per set-up: a single flow on an idle satellite [qsd §3], and aggregates of many [qsd §4].
//!
//! # A single flow
//!
//! Five terminals, the first of them the NCC; 256 kbit/s in packets of 1,316 bytes from terminal 1 to terminal 2 under
//! TFRC as in RFC 3448, which the receiver measures; a request for 320 kbit/s with Quick-Start. Nothing is random.
//! The varied quantity is the *phase*: how long after the beginning of a super-frame the flow starts, in steps of 1.8
//! ms [qsd §3.2]. That makes 456 phases in the large frame, 76 in the small one; every one is run.
//!
//! Packet n is produced at the same time after the start in each phase, so medians, least and greatest over the phases
//! are of each packet. The interval of a claim is the middle 95 % of the phases, not a confidence interval: the phases
//! are all that there are.
//!
//! A *second hump* is a rise of the end-to-end delay after it has fallen from its first maximum. Each packet waits for
//! its terminal's slots, for 0 to T_f, and what of it does not fit into them for the next packet's; so the delay is
//! taken as the greatest of the packets of T_f and a packet together, and what falls or rises by less than that does
//! not count (ours). Judged on the worst phase.
//!
//! # Readings
//!
//! - **Eq. (2)** is applied to the letter: what is in force falls, by the traffic of the interval just ended
//!   (`release.of = "in-force"`). With the NCC's last decision instead (`decided`), what QSD has asked for is halved
//!   before it is there. Shown beside it.
//! - ns-2's TFRC does not lower X by the RTT's rise while there is no loss: `smoothing = "off"`. On is shown.
//! - The first no-feedback timer is 2 s; 3 s, a sender that waits for the response, T_p = 250 ms, slots spread over the
//!   multi-frame, T_s in eq. (1), and the approved rate until the next report only are shown.

mod aggregate;
mod estimators;
mod fluid;
mod hold;
mod rates;
mod single;

use crate::builtin::{base, kbps, time_ms, with};
use crate::claim::Statement;
use crate::figure::point;
use crate::{Bench, Claim, Effort, Experiment, Point};
use fairpace_control::{FlowEventKind, QsVerdict};
use fairpace_lab::RunError;
use fairpace_lab::stats::Estimate;
use fairpace_lab::study::{Case, Found, Job, Measure, Sampling, Study};
use fairpace_path::DamaSpec;
use fairpace_report::{Axis, Chart, Series};
use fairpace_scenario::{AgentKind, Hold, QuickStartSpec, RawScenario, Record, SatelliteSpec, Scenario, sim_config};
use fairpace_sim::{PacketRecord, Protocol, SimConfig, SimReport};
use fairpace_units::{Duration, Instant, QsRate, Rate};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::rc::Rc;

/// Every row, in the paper's order.
pub(super) const EXPERIMENTS: &[Experiment] = &[
    experiment!("qsd", "fig3", "one flow with and without demand assignment and Quick-Start", single::fig3),
    experiment!("qsd", "fig4", "one flow with demand assignment and Quick-Start, over the phases", single::fig4),
    experiment!("qsd", "fig5", "one flow without Quick-Start, with it, and with QSD", single::fig5),
    experiment!("qsd", "fig6", "the greatest delay of one flow against its rate", rates::fig6),
    experiment!("qsd", "fig7", "the fluid model beside the packets", fluid::fig7),
    experiment!("qsd", "eq3", "T_q,max", hold::eq3),
    experiment!("qsd", "eq6", "T_q,opt, and the least T_q without a second hump", hold::eq6),
    experiment!("qsd", "appendix", "how a terminal knows what is free", estimators::appendix),
    experiment!("qsd", "fig8", "delay of television from its start, among other flows", aggregate::fig8),
    experiment!("qsd", "fig9", "delays in the first 30 s of calls, video calls and television", aggregate::fig9::fig9),
    experiment!("qsd", "table3", "packets that the transmit buffers have no room for", aggregate::table3::table3),
];

/// The satellite of a scenario; all of this paper have one.
fn satellite(s: &mut RawScenario) -> &mut SatelliteSpec {
    s.satellite.get_or_insert_with(SatelliteSpec::default)
}

// --- strategies ----------------------------------------------------------------------------------------------------

/// How a flow starts.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Strategy {
    /// Slow start.
    None,
    /// Quick-Start; the terminals answer as routers do.
    Qs,
    /// Quick-Start; the terminal asks for the capacity too, and holds the request back for T_q, in ms.
    Qsd(f64),
}

impl Strategy {
    /// Makes all flows of a scenario start so. A flow asks for the rate that its scenario says.
    fn set(self, s: &mut RawScenario) {
        let agent = &mut satellite(s).quick_start;
        (agent.agent, agent.hold) = match self {
            Strategy::None => (AgentKind::None, None),
            Strategy::Qs => (AgentKind::Qs, None),
            Strategy::Qsd(t_q) => (AgentKind::Qsd, Some(Hold::Time(time_ms(t_q)))),
        };
        if self == Strategy::None {
            for flow in &mut s.flows {
                flow.quick_start = None;
            }
        }
    }

    /// In words.
    fn name(self) -> String {
        match self {
            Strategy::None => "no Quick-Start".to_owned(),
            Strategy::Qs => "QS".to_owned(),
            Strategy::Qsd(t_q) => format!("QSD, T_q = {t_q} ms"),
        }
    }
}

/// The request of a flow of so many kbit/s: the lowest rate of the option from 1.25 times on, as 320 is for 256.
fn request(flow_kbps: f64) -> QuickStartSpec {
    let rate = QsRate::at_least(Rate::kbps(1.25 * flow_kbps)).unwrap_or(QsRate::MAX).rate();
    QuickStartSpec { rate: kbps(rate.as_bps() / 1e3) }
}

// --- phases --------------------------------------------------------------------------------------------------------

/// The step from one phase to the next [qsd §3.2].
const STEP: Duration = Duration::from_micros(1_800);

/// Data produced so long after the start is followed until arrival.
const FOLLOWED: Duration = Duration::from_secs(30);

/// One packet. Times in seconds since the flow's start.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(from = "[f64; 3]", into = "[f64; 3]")]
struct Packet {
    /// When the source produced it.
    born: f64,
    /// When it left the sender.
    sent: f64,
    /// When it came.
    received: f64,
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
    fn e2ed(&self) -> f64 {
        self.received - self.born
    }

    fn owd(&self) -> f64 {
        self.received - self.sent
    }
}

/// A number of a packet: its end-to-end delay, say.
type Delay = fn(&Packet) -> f64;

/// The packets of one flow in every phase.
#[derive(Clone, Debug, Default)]
struct Phases {
    /// Per phase, the packets in order, from the first on until the first that did not arrive.
    flows: Vec<Rc<Vec<Packet>>>,
    /// Below this a difference of delay is no news, s.
    quantum: f64,
}

/// The parts of a scenario's satellite.
fn dama(scenario: &Scenario) -> DamaSpec {
    scenario.satellite.clone().unwrap_or_default().dama(scenario.packet_size.get())
}

/// Below this a difference of delay is no news: a packet waits up to T_f for its terminal's slots, and up to the next
/// packet for what its last slot has no room for.
fn quantum(scenario: &Scenario) -> f64 {
    let rate = scenario.flows.first().and_then(|f| f.source.as_ref()?.rate.as_ref());
    let size = scenario.packet_size.get();
    let spacing = rate.map_or(0.0, |r| size.as_f64() * 8.0 / r.get().with_packets_of(size).as_bps());
    dama(scenario).multi_frame().as_secs_f64() + spacing
}

/// The phases of a figure: all.
const ALL: u64 = 10_000;
/// The phases of a sweep over something else: as many as a small super-frame has.
const SWEEP: u64 = 76;

/// The phases of a quick run.
const QUICK_PHASES: usize = 19;

/// The phases of a super-frame, in [`STEP`]s: all, or `most` of them, evenly spread.
fn phases(spec: &DamaSpec, effort: Effort, most: u64) -> Vec<u64> {
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
struct InPhase {
    report: SimReport,
    /// When the flow started.
    start: Instant,
    /// Below this a difference of delay is no news, s.
    quantum: f64,
}

impl InPhase {
    /// Runs it; the job's seed is the phase, in [`STEP`]s.
    fn run(job: &Job<'_>) -> Result<InPhase, RunError> {
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
        Ok(InPhase { report, start, quantum: quantum(scenario) })
    }

    /// The packets of the first flow, in order, until the first that did not arrive.
    fn packets(&self) -> Vec<Packet> {
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
    fn rates(&self) -> Vec<(f64, f64)> {
        let first = self.report.events.iter().filter(|(flow, _)| *flow == 0);
        first
            .filter_map(|(_, event)| match event.what {
                FlowEventKind::RateChanged { rate, .. } => Some((self.since_start(event.at), rate.as_bps())),
                _ => None,
            })
            .collect()
    }

    /// When the rate that the routers approved came into use, and which X that is.
    fn approved(&self) -> Option<(f64, f64)> {
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
fn each_phase<R: Serialize + DeserializeOwned + Send + 'static>(
    e: &Experiment,
    scenarios: &[Scenario],
    most: u64,
    bench: &mut Bench<'_>,
    measure: Measure<R>,
) -> Result<Found<R>, RunError> {
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
fn over_phases(e: &Experiment, scenarios: &[Scenario], bench: &mut Bench<'_>) -> Result<Vec<Phases>, RunError> {
    const PACKETS: Measure<Vec<Packet>> = Measure { name: "qsd packets", of: |job| Ok(InPhase::run(job)?.packets()) };
    let all = each_phase(e, scenarios, ALL, bench, PACKETS)?;
    Ok(scenarios.iter().zip(all.cells).map(|(s, c)| Phases { flows: c.runs, quantum: quantum(s) }).collect())
}

/// The part of a run that a sweep keeps.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
struct Summit {
    /// The greatest end-to-end delay, s.
    peak: f64,
    /// The second hump, s.
    hump: f64,
}

/// The summits of each scenario in every phase.
fn summits(
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
    let run = InPhase::run(job)?;
    let packets = run.packets();
    Ok(Summit { peak: peak(&packets), hump: second_hump(&packets, run.quantum) })
}

/// The greatest end-to-end delay, s.
fn peak(packets: &[Packet]) -> f64 {
    packets.iter().map(Packet::e2ed).fold(f64::NAN, f64::max)
}

/// How far the delay rises after it has fallen from its first maximum, s; 0 if it does not.
fn second_hump(packets: &[Packet], quantum: f64) -> f64 {
    hump(&envelope(packets, quantum), quantum)
}

/// Over the phases, at one place.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Spread {
    median: f64,
    least: f64,
    greatest: f64,
    /// Ends of the middle 95 %.
    middle: [f64; 2],
    n: usize,
}

impl Spread {
    /// None of nothing, or of what is not finite.
    fn of(mut values: Vec<f64>) -> Option<Spread> {
        values.sort_by(f64::total_cmp);
        if values.iter().any(|v| !v.is_finite()) {
            return None;
        }
        let (least, greatest) = (*values.first()?, *values.last()?);
        let at = |q: f64| quantile(&values, q);
        Some(Spread { median: at(0.5), least, greatest, middle: [at(0.025), at(0.975)], n: values.len() })
    }

    /// The median, with the middle 95 %.
    fn estimate(&self) -> Estimate {
        Estimate { mean: self.median, ci95: Some(self.middle), n: self.n }
    }
}

/// The value that a part `q` of sorted ones does not exceed; in between, linear.
fn quantile(sorted: &[f64], q: f64) -> f64 {
    let place = q * (sorted.len().max(1) - 1) as f64;
    let (below, part) = (place.floor() as usize, place.fract());
    match (sorted.get(below), sorted.get(below + 1)) {
        (Some(a), Some(b)) => a + (b - a) * part,
        (Some(a), None) => *a,
        (None, _) => f64::NAN,
    }
}

impl Phases {
    /// Packets that arrived in every phase.
    fn len(&self) -> usize {
        self.flows.iter().map(|f| f.len()).min().unwrap_or(0)
    }

    /// When packet n is produced, in s: the same in every phase.
    fn born(&self) -> Vec<f64> {
        self.flows.first().map_or(Vec::new(), |f| f[..self.len()].iter().map(|p| p.born).collect())
    }

    /// A delay of each packet over the phases.
    fn spread(&self, delay: Delay) -> Vec<Spread> {
        (0..self.len()).filter_map(|n| Spread::of(self.flows.iter().map(|f| delay(&f[n])).collect())).collect()
    }

    /// The peak of the medians.
    fn peak_of_median(&self) -> f64 {
        self.spread(Packet::e2ed).iter().map(|s| s.median).fold(f64::NAN, f64::max)
    }

    /// The greatest end-to-end delay in each phase.
    fn peaks(&self) -> Vec<f64> {
        self.flows.iter().map(|f| peak(f)).collect()
    }

    /// The highest second hump of all phases.
    fn worst_hump(&self) -> f64 {
        self.flows.iter().map(|f| second_hump(f, self.quantum)).fold(0.0, f64::max)
    }
}

/// The greatest end-to-end delay among the packets of the last `span` seconds, at each packet.
fn envelope(packets: &[Packet], span: f64) -> Vec<f64> {
    let recent = |i: usize| packets[..=i].iter().rev().take_while(move |p| p.born > packets[i].born - span);
    (0..packets.len()).map(|i| recent(i).map(Packet::e2ed).fold(0.0, f64::max)).collect()
}

/// How far a course rises after it has fallen by more than `quantum` from its first maximum.
fn hump(course: &[f64], quantum: f64) -> f64 {
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

// --- claims, charts, points ----------------------------------------------------------------------------------------

impl Statement {
    /// Decided by the median over the phases; the interval is the middle 95 % of them. Nothing is undecided: the phases
    /// are no sample.
    fn over_phases(self, values: Vec<f64>) -> Claim {
        let (kept, n) = (values.iter().filter(|v| self.bound.holds(**v)).count(), values.len());
        let of = format!(": median over the phases, and the middle 95 % of them; kept in {kept} of {n}");
        self.census(Spread::of(values).map(|s| s.estimate()), &of)
    }
}

/// A line of a chart.
struct Line<'a> {
    name: String,
    colour: &'static str,
    phases: &'a Phases,
    delay: Delay,
}

/// A delay over the time at which packets are produced: medians, in bands from the least to the greatest.
fn chart(title: String, caption: String, lines: &[Line<'_>]) -> Chart {
    let (x, y) = (Axis::new("packet produced after", "s"), Axis::new("delay", "s"));
    let mut chart = Chart::new(title, x, y).caption(caption);
    for line in lines {
        let spread = line.phases.spread(line.delay);
        let of = |number: fn(&Spread) -> f64| spread.iter().map(number).collect::<Vec<f64>>();
        let series = Series::line(line.name.clone(), line.colour, line.phases.born(), of(|s| s.median));
        chart = chart.series(series.interval(of(|s| s.least), of(|s| s.greatest)));
    }
    chart
}

/// A number of an experiment over so many phases.
fn of_phases(scheme: &str, x: &[(&str, f64)], metric: &str, value: f64, n: usize) -> Option<Point> {
    point(scheme, x, metric, value.is_finite().then_some(Estimate { mean: value, ci95: None, n }))
}

#[cfg(test)]
mod tests;
