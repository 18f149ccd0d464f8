//! The experiments of `tpba` (Tobe, Tamura, Nishino, Tokuda): §3 Fig. 3, §6 Figs. 10 to 32 and Table 3, and the
//! stop rules of which §7 only speaks.
//!
//! Flows 1, 2 and 4 are TCP, flow 3 is the media flow. Topology 1 is 1.2 Mbit/s and 12 ms [tpba §3, §6.1]; Topology 2 a path
//! of 160 ms across the Internet.
//!
//! # Readings
//!
//! - TCP is that of FreeBSD 2.2: Reno, a window of 16 KiB (32 segments), delayed ACKs of 200 ms, a timer of 500 ms, and no
//!   retransmission timeout below 1 s. The paper names the system and gives no window.
//! - The router's queue is not given: 96 KiB, of which the driver of the ATM card it names (`en`) keeps 64 KiB in the
//!   router and 32 KiB on the card. Two windows of 16 KiB do not overflow it, which "RTCP RR reports no loss" needs.
//!   The result with the 50 packets of an ordinary interface is shown beside it.
//! - Rates and f are of payload: 512 bytes of a packet of 552 on the wire, 64 of one of 104.
//! - f is of the flows that are there, over sampling periods of S_average = 1 s.
//! - The paper's Topology 2 has neither capacity nor loss: 10 Mbit/s, so that nine windows of 16 KiB per RTT fit, jitter of
//!   2 ms, and bursts of loss, some 15 s apart for three flows.
//! - A trial is a seed: flows that start together do so within 200 ms.
//! - A host holds a packet of TCP for up to 10 ms, a tick of FreeBSD's clock. Hosts that send at once keep each flow's window
//!   together in the queue, T_TCP then cuts windows in two, and probing periods last for tens of seconds. That is shown
//!   beside it; the paper's last less than 4 s.
//! - j_A at a switch is between the last data unit of one way and the first of the other.
//!
//! Where a claim says "near", "about" or "no", the bound is ours, and printed.

mod behaviour;
mod cases;
mod lda;
mod numbers;
mod response;
mod rules;

use crate::builtin::{base, ours, with};
use crate::figure::counted;
use crate::{Bench, Effort, Experiment, World};
use fairpace_lab::RunError;
use fairpace_lab::stats::Estimate;
use fairpace_lab::study::{Case, Cell, Job, Measure, QUICK_SEEDS};
use fairpace_report::{Axis, BandKind, Chart, Series};
use fairpace_scenario::{Parameter, RawScenario, Record, Scenario, Size, Time};
use fairpace_sim::FrameRecord;
use fairpace_units::Duration;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::rc::Rc;

/// Every row, in the paper's order; the last one is ours.
pub(super) const EXPERIMENTS: &[Experiment] = &[
    experiment!("tpba", "fig3", "LDA beside TCP: no loss is reported, the gap stays", lda::fig3),
    experiment!("tpba", "fig10-12", "TPBA beside TCP that comes and goes, Topology 1", behaviour::topology_1),
    experiment!("tpba", "fig14-18", "TPBA over a long path, Topology 2", behaviour::topology_2),
    experiment!("tpba", "fig19", "fairness against the number of TCP flows", response::fig19),
    experiment!("tpba", "table3", "how long a change takes", response::table3),
    experiment!("tpba", "fig20-28", "the 16 cases of Table 4", cases::snapshots),
    experiment!("tpba", "fig29-31", "the 16 cases in three numbers", cases::differences::differences),
    experiment!("tpba", "fig32", "RAP in the place of TPBA", cases::fig32),
    experiment!("tpba", "rules", "three rules that end a probing period, 100 kbit/s to 10 Mbit/s", rules::rules),
];

/// The time between two rows of a series.
const SAMPLE: Duration = Duration::from_millis(100);
/// Rows of S_average = 1 s.
const PER_SECOND: usize = 10;
/// Headers of a packet, and of a segment.
const HEADER: f64 = 40.0;

fn parse(text: &str, file: &str) -> Scenario {
    Scenario::parse(text, file).unwrap_or_else(|e| ours(&e))
}

fn seconds(n: u32) -> Time {
    Time::seconds(f64::from(n))
}

fn bytes(n: u64) -> Size {
    Size::bytes(n)
}

fn number(x: f64) -> Parameter {
    Parameter::Number(x)
}

fn words(text: &str) -> Parameter {
    Parameter::Text(text.to_owned())
}

/// Whether a flow of the scenario is flow 3.
fn is_media(group: &str) -> bool {
    group == "flow 3"
}

/// The application's data units [tpba §6.1].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Adu {
    /// One 64-byte payload.
    One,
    /// Ten 512-byte payloads.
    Two,
}

impl Adu {
    /// Gives flow 3 such data units. TCP's segments stay.
    fn set(self, s: &mut RawScenario) {
        if self == Adu::Two {
            return;
        }
        let segment = s.packet_size.clone();
        for flow in s.flows.iter_mut().filter(|f| is_media(&f.group)) {
            flow.packet_size = Some(bytes(64 + HEADER as u64));
            if let Some(source) = &mut flow.source {
                source.packets = Some(fairpace_scenario::Count::new(1));
            }
            if let Some(tcp) = &mut flow.tcp {
                tcp.segment_size = Some(segment.clone());
            }
        }
    }
}

/// A flow of a run.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
struct Line {
    /// `flow 1`, …
    group: String,
    /// Payload received, kbit/s, per row.
    kbps: Vec<f64>,
}

/// The course of one run, row by row.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
struct Trace {
    /// In order of the scenario.
    flows: Vec<Line>,
    /// The state of flow 3's controller at the end of each row.
    states: Vec<String>,
    /// The rate that the controller allowed, kbit/s of payload.
    allowed: Vec<f64>,
    /// Flow 3's data units: for what is computed of a run, not to be kept.
    #[serde(skip)]
    adus: Vec<FrameRecord>,
    /// Flow 3's data that was dropped, and sent.
    dropped: f64,
    sent: f64,
    /// Why numbers of a run in real time are not to be trusted.
    invalid: Vec<String>,
}

/// Runs one seed.
fn trace(job: &Job<'_>) -> Result<Trace, RunError> {
    let s = job.scenario;
    let run = job.run(Record { series: true, ..Record::default() })?;
    let wire = s.packet_size.get().as_f64();
    let full = (wire - HEADER) / wire;
    let mut trace = Trace::default();
    for (flow, report) in run.report.flows.iter().enumerate() {
        let rows = || run.report.series.iter().filter(move |r| r.flow == flow as u32);
        let mut kbps: Vec<f64> = rows().map(|r| r.throughput.as_bps() * full / 1e3).collect();
        let media = is_media(&report.group);
        if let (true, Some(sent)) = (media, &report.media) {
            trace.states = rows().map(|r| r.state.to_owned()).collect();
            trace.allowed = rows().map(|r| r.target_rate.as_bps() * full / 1e3).collect();
            trace.adus.clone_from(&sent.frame_records);
            (trace.dropped, trace.sent) =
                (report.whole.dropped_in_all().packets.as_f64(), report.whole.sent.packets.as_f64());
            let small = s.flows.iter().any(|f| is_media(&f.group) && f.packet_size.is_some());
            if small {
                kbps = arrived(&trace.adus, kbps.len());
            }
        }
        trace.flows.push(Line { group: report.group.clone(), kbps });
    }
    trace.invalid = run.summary.emulated.map_or(Vec::new(), |e| e.invalid);
    Ok(trace)
}

/// Payload of the data units that were complete in each row, kbit/s: of small ones, whose share of a packet depends on
/// the transport.
fn arrived(adus: &[FrameRecord], rows: usize) -> Vec<f64> {
    let mut bits = vec![0.0; rows];
    for adu in adus {
        let row = adu.complete.map(|at| (u128::from(at.as_nanos().saturating_sub(1)) / SAMPLE.as_nanos()) as usize);
        if let Some(row) = row.and_then(|row| bits.get_mut(row)) {
            *row += adu.size.as_f64() * 8.0;
        }
    }
    bits.iter().map(|b| b / SAMPLE.as_secs_f64() / 1e3).collect()
}

/// A time in which flow 3's controller did one thing; rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Period<'a> {
    state: &'a str,
    from: usize,
    to: usize,
}

fn periods(states: &[String]) -> Vec<Period<'_>> {
    let mut all: Vec<Period<'_>> = Vec::new();
    for (row, state) in states.iter().enumerate() {
        match all.last_mut() {
            Some(last) if last.state == *state => last.to = row + 1,
            _ => all.push(Period { state, from: row, to: row + 1 }),
        }
    }
    all
}

impl Trace {
    /// Rates over periods of so many rows, of the flows of these groups.
    fn over(&self, per: usize, groups: &[&str]) -> Vec<Vec<f64>> {
        let lines = self.flows.iter().filter(|f| groups.contains(&f.group.as_str()));
        lines.map(|f| numbers::over(&f.kbps, per)).collect()
    }

    /// The same over S_average, of all.
    fn each_second(&self) -> Vec<Vec<f64>> {
        self.flows.iter().map(|f| numbers::over(&f.kbps, PER_SECOND)).collect()
    }

    fn periods(&self) -> Vec<Period<'_>> {
        periods(&self.states)
    }
}

/// As the functions of `numbers` want them.
fn slices(rates: &[Vec<f64>]) -> Vec<&[f64]> {
    rates.iter().map(Vec::as_slice).collect()
}

/// The seeds of an experiment that usually has so many; few in real time if it is to be quick.
fn seeds(bench: &Bench<'_>, usual: usize, quick_in_real_time: usize) -> usize {
    match (bench.effort(), bench.world().is_sim()) {
        (Effort::Quick, false) => quick_in_real_time,
        (Effort::Quick, true) => QUICK_SEEDS,
        _ => bench.seeds(usual, usual),
    }
}

/// Each scenario with so many seeds; a cell for each, in their order.
fn each<R: Serialize + DeserializeOwned + Send + 'static>(
    e: &Experiment,
    bench: &mut Bench<'_>,
    scenarios: impl IntoIterator<Item = Scenario>,
    seeds: usize,
    measure: Measure<R>,
) -> Result<Vec<Cell<R>>, RunError> {
    let case = |(i, scenario): (usize, Scenario)| Case::new("set-up", i as f64, scenario);
    Ok(counted(e, bench, measure, scenarios.into_iter().enumerate().map(case).collect(), seeds)?.cells)
}

/// A number of each run that has it, over the seeds.
fn estimate<R>(runs: &[Rc<R>], number: impl Fn(&R) -> Option<f64>) -> Option<Estimate> {
    Estimate::of(&runs.iter().filter_map(|r| number(r)).collect::<Vec<f64>>())
}

/// Rates of all flows of a run against time, over periods of so many rows.
fn rates_chart(title: impl Into<String>, caption: impl Into<String>, run: &Trace, per: usize) -> Chart {
    let axes = (Axis::new("time", "s"), Axis::new("rate of payload", "kbit/s"));
    let mut chart = Chart::new(title, axes.0, axes.1).caption(caption);
    for flow in &run.flows {
        let y = numbers::over(&flow.kbps, per);
        let x = (1..=y.len()).map(|j| (j * per) as f64 * SAMPLE.as_secs_f64()).collect();
        chart = chart.series(Series::line(name(&flow.group), flow.group.clone(), x, y));
    }
    chart
}

/// Shades the time in which flow 3 probes.
fn shade(mut chart: Chart, run: &Trace) -> Chart {
    let at = |row: usize| row as f64 * SAMPLE.as_secs_f64();
    for p in run.periods().iter().filter(|p| p.state == "probing") {
        chart = chart.band(at(p.from), at(p.to), "TCP", BandKind::State);
    }
    chart
}

fn name(group: &str) -> String {
    if is_media(group) { format!("{group} (media)") } else { format!("{group} (TCP)") }
}

fn caption(e: &Experiment, world: World<'_>, rest: &str) -> String {
    let place = if matches!(world, World::Sim) { "" } else { ", emulated" };
    format!("{}{place}; {rest}", e.file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairpace_scenario::SafetyMode;

    #[test]
    fn every_built_in_scenario_reads_and_flow_3_is_where_it_is_looked_for() {
        for e in EXPERIMENTS {
            let s = base(e);
            assert_eq!(s.safety, SafetyMode::Paper, "{}", e.id);
            assert_eq!(s.sample.get(), SAMPLE, "{}", e.id);
            assert_eq!(s.flows.iter().filter(|f| is_media(&f.group)).count(), 1, "{}", e.id);
            assert!(s.flows.iter().filter(|f| !is_media(&f.group)).all(|f| f.controller == "tcp-reno"), "{}", e.id);
            assert_eq!(s.packet_size.get().get(), 552, "{}", e.id);
        }
    }

    #[test]
    fn data_units_of_one_small_payload_share_segments_with_others() {
        let e = EXPERIMENTS.iter().find(|e| e.id == "tpba.fig10-12").unwrap();
        let s = with(&base(e), |s| Adu::One.set(s));
        let flow = s.flows.iter().find(|f| is_media(&f.group)).unwrap();
        assert_eq!(flow.packet_size.as_ref().unwrap().get().get(), 104);
        assert_eq!(flow.source.as_ref().unwrap().packets.unwrap().get(), 1);
        assert_eq!(flow.tcp.as_ref().unwrap().segment_size.as_ref().unwrap().get().get(), 552);
        // The changed scenario can be written and read again.
        Scenario::parse(&s.to_toml(), "again.toml").unwrap_or_else(|e| panic!("{e}"));
    }

    #[test]
    fn periods_are_rows_in_which_the_state_is_the_same() {
        let states = ["probing", "probing", "draining", "running", "running", "probing"].map(str::to_owned);
        let all = periods(&states);
        let of = |state, from, to| Period { state, from, to };
        assert_eq!(all, [of("probing", 0, 2), of("draining", 2, 3), of("running", 3, 5), of("probing", 5, 6)]);
    }

    #[test]
    fn every_experiment_runs_in_small_and_shows_what_it_found() {
        for e in EXPERIMENTS {
            // The instants of changes are code: fig20-28 and what follows it take those of a quick run.
            let text = e.scenario.replace("rate = \"1.2 Mbit/s\"", "rate = \"600 kbit/s\"").replace("150 s", "30 s");
            crate::small::runs(e, text, Effort::Quick);
        }
    }

    #[test]
    fn real_time_is_the_sum_of_all_runs() {
        let chosen: Vec<&Experiment> = EXPERIMENTS.iter().filter(|e| e.id == "tpba.table3").collect();
        // Two seeds of two cases of 30 s.
        assert_eq!(crate::real_time(&chosen, Effort::Seeds(2)), Duration::from_secs(120));
    }
}
