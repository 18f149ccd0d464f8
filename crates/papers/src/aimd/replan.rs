//! A base station that plans anew while flows come and go: ours, beyond the paper.

use super::plan::{VOICE, planner};
use super::setup::{self, OUTAGE, R, SLOT, caption, seeds, set_windows};
use crate::builtin::{base, with};
use crate::figure::{Numbers, Scheme, brief, counted, curve, scaled};
use crate::{Bench, Bound, Claim, Experiment, Outcome, Tools};
use fairpace_analysis::qos::plan::{Need, PlanError};
use fairpace_lab::RunError;
use fairpace_lab::run::simulate_observed;
use fairpace_lab::stats::Estimate;
use fairpace_lab::study::{Case, Cell, Job, Measure, Measurements, largest, smallest};
use fairpace_report::{Axis, BandKind, Chart, Series};
use fairpace_scenario::{Record, Scenario, sim_config};
use fairpace_sim::{FlowCounts, FlowReport, SimReport};
use fairpace_units::{Duration, Instant};
use serde::{Deserialize, Serialize};

/// From when to when which flows are there, s.
const PHASES: [(f64, f64, &[usize]); 6] = [
    (5.0, 60.0, &[0]),
    (60.0, 120.0, &[0, 1]),
    (120.0, 180.0, &[0, 1, 2, 3]),
    (180.0, 240.0, &[0, 1, 2]),
    (240.0, 300.0, &[0, 1]),
    (300.0, 360.0, &[0]),
];

/// Seeds of each policy.
const SEEDS: usize = 10;
/// 1 - p_e of the scenario: what the link delivers, packets per slot.
const FULL: f64 = 0.95;

/// How windows come about.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Policy {
    /// The base station plans whenever a flow comes or goes.
    Replan,
    /// Each flow keeps the window that it would have alone.
    Alone,
    /// Each keeps the one that it has when all four are there.
    AllFour,
}

const POLICIES: [Policy; 3] = [Policy::Replan, Policy::Alone, Policy::AllFour];

impl Policy {
    /// Key, name and colour.
    fn scheme(self) -> Scheme {
        match self {
            Policy::Replan => Scheme::new("replan", "planned anew", "").coloured("aimd"),
            Policy::Alone => Scheme::new("alone", "fixed, as if alone", "").coloured("udp-arq"),
            Policy::AllFour => Scheme::new("all-four", "fixed, for four", "").coloured("udp"),
        }
    }

    fn scenario(self, base: &Scenario) -> Result<Scenario, PlanError> {
        if self == Policy::Replan {
            return Ok(base.clone());
        }
        let planner = planner(base)?;
        let needs: Vec<Need> = [R, 25, R, 25].iter().map(|r| VOICE.away(*r).need()).collect();
        let windows: Vec<u32> = match self {
            Policy::AllFour => planner.plan(0.875, &needs)?.flows.iter().map(|f| f.rwnd).collect(),
            _ => {
                let alone = |n: &Need| Ok(planner.plan(0.875, std::slice::from_ref(n))?.buffer);
                needs.iter().map(alone).collect::<Result<_, PlanError>>()?
            }
        };
        Ok(with(base, |s| {
            setup::wireless(s).plan = None;
            set_windows(s, &windows);
        }))
    }
}

/// The measurements of one flow in one phase.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
struct FlowInPhase {
    /// Packets per slot.
    throughput: f64,
    received: f64,
    late: f64,
    dropped: f64,
}

/// The results of a run by phase and flow; and the given windows by flow, as (time, window).
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
struct Course {
    phases: Vec<Vec<FlowInPhase>>,
    windows: Vec<Vec<(f64, f64)>>,
}

const MEASURE: Measure<Course> = Measure { name: "aimd replan", of: course };

fn course(job: &Job<'_>) -> Result<Course, RunError> {
    let mut config = sim_config(job.scenario, job.seed, Record::default())?;
    config.checkpoints = PHASES.iter().flat_map(|(from, to, _)| [*from, *to]).map(at).collect();
    // The last one is the end of the run.
    config.checkpoints.dedup();
    let (report, now) = simulate_observed(&job.scenario.name, &config, None, job.hooks)?;
    if now < Instant::ZERO + config.duration {
        return Err(RunError::Interrupted);
    }
    Ok(Course {
        phases: PHASES.iter().map(|(from, to, _)| phase(&report, *from, *to)).collect(),
        windows: windows(&report),
    })
}

fn at(seconds: f64) -> Instant {
    Instant::ZERO + Duration::from_secs_f64(seconds)
}

fn phase(report: &SimReport, from: f64, to: f64) -> Vec<FlowInPhase> {
    let until = |f: &FlowReport, t: f64| -> FlowCounts {
        f.checkpoints.iter().find(|(instant, _)| *instant == at(t)).map_or(f.whole, |(_, counts)| *counts)
    };
    let part = |f: &FlowReport| {
        let counts = until(f, to).since(&until(f, from));
        let received = counts.received.packets.as_f64();
        FlowInPhase {
            throughput: received * SLOT.as_secs_f64() / (to - from),
            received,
            late: counts.outage.packets.as_f64(),
            dropped: counts.dropped_in_all().packets.as_f64(),
        }
    };
    report.flows.iter().map(part).collect()
}

fn windows(report: &SimReport) -> Vec<Vec<(f64, f64)>> {
    let rows = report.radios.first().map_or(&[][..], |r| &r.windows);
    let of = |flow: usize| {
        let own = rows.iter().filter(|r| r.flow as usize == flow);
        own.map(|r| (r.at.as_secs_f64(), f64::from(r.rwnd))).collect()
    };
    (0..report.flows.len()).map(of).collect()
}

/// A number of the flows that are there in a phase, over the seeds.
fn in_phase(runs: &Cell<Course>, i: usize, number: PhaseNumber) -> Option<Estimate> {
    let there = PHASES[i].2;
    runs.mean(|c| number(&there.iter().map(|f| c.phases[i][*f]).collect::<Vec<FlowInPhase>>()))
}

/// Packets per slot of all.
fn used(parts: &[FlowInPhase]) -> f64 {
    parts.iter().map(|p| p.throughput).sum()
}

/// Late / received of all.
fn late(parts: &[FlowInPhase]) -> f64 {
    parts.iter().map(|p| p.late).sum::<f64>() / parts.iter().map(|p| p.received).sum::<f64>().max(1.0)
}

/// Least throughput / most.
fn evenness(parts: &[FlowInPhase]) -> f64 {
    let of = || parts.iter().map(|p| p.throughput);
    of().fold(f64::INFINITY, f64::min) / of().fold(0.0, f64::max)
}

fn whole(c: &Course) -> Vec<FlowInPhase> {
    c.phases.iter().flatten().copied().collect()
}

/// A number of the flows of a phase.
type PhaseNumber = fn(&[FlowInPhase]) -> f64;

/// The numbers of a phase, with their metrics.
const NUMBERS: [(&str, PhaseNumber); 3] =
    [("throughput_packets_per_slot", used), ("outage", late), ("least_to_most", evenness)];

/// A number in every phase, counted from 1.
fn phases(runs: &Cell<Course>, number: PhaseNumber) -> Vec<(f64, Option<Estimate>)> {
    (0..PHASES.len()).map(|i| (i as f64 + 1.0, in_phase(runs, i, number))).collect()
}

pub(super) fn replan(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let base = base(e);
    let seeds = seeds(bench, SEEDS);
    let case = |p: &Policy| Some(Case::new(p.scheme().key, 0.0, p.scenario(&base).ok()?));
    let found = counted(e, bench, MEASURE, POLICIES.iter().filter_map(case).collect(), seeds)?;
    let [Some(replan), Some(alone), Some(four)] = POLICIES.map(|p| found.of(p.scheme().key).next()) else {
        return Err(RunError::Interrupted);
    };
    let percent = |(_, e): (f64, Option<Estimate>)| brief(e.map(|e| scaled(e, 100.0)));
    let part = |p: &[FlowInPhase]| used(p) / FULL;
    let (least, most) = (percent(smallest(phases(replan, part))), percent(largest(phases(replan, late))));
    let (idle, too_late) = (percent(smallest(phases(four, part))), percent(largest(phases(alone, late))));
    let full_title = format!(
        "Planned anew, at least {least} % of the link is used; with windows for four, {idle} % when one flow is alone"
    );
    let late_title =
        format!("Planned anew, at most {most} % are late in a phase; with windows as if alone, up to {too_late} %");
    let throughput = Axis::new("throughput of all", "packets per slot");
    let outage = Axis::new("delay outage", "part of the packets").log();
    let caption = caption(e, seeds);
    let mut numbers = Numbers::default();
    for (i, (from, to, flows)) in PHASES.iter().enumerate() {
        for (policy, runs) in POLICIES.iter().zip(&found.cells) {
            let words = [format!("{from} to {to}"), flows.len().to_string(), policy.scheme().name.to_owned()];
            let x = [("phase", i as f64 + 1.0), ("flows", flows.len() as f64)];
            let each = NUMBERS.map(|(metric, number)| (metric, in_phase(runs, i, number)));
            numbers.row(words, (&runs.scheme, &x), &each);
        }
    }
    let title = "Throughput of all in packets per slot, delay outage, least / most throughput";
    let head = ["time (s)", "flows", "windows", "throughput", "outage", "least / most"];
    let table = numbers.table(title, caption.clone(), head);
    let section = e
        .section()
        .text(COURSE)
        .chart(windows_chart(e, replan))
        .chart(phases_chart(&found, full_title, throughput, used, ("1 - p_e", FULL)).caption(&caption))
        .chart(phases_chart(&found, late_title, outage, late, ("1 %", OUTAGE)).caption(&caption))
        .table(table);
    Ok(e.outcome(numbers.points, replan_claims(e, replan, alone, four), section))
}

const COURSE: &str = "One flow from the beginning, a second one from 60 s to 300 s, a third and a fourth from 120 s to 240 s and \
                      180 s; every second one has an RTT of 25 slots. p_e = 5 %, D = 10 slots, 1 %.";

fn replan_claims(e: &Experiment, replan: &Cell<Course>, alone: &Cell<Course>, four: &Cell<Course>) -> Vec<Claim> {
    let part = |p: &[FlowInPhase]| used(p) / FULL;
    let outage = "planned anew, the delay outage stays within 1 %, joins and leaves included";
    let each = "in each phase too (ours: 1.25 %, as rounded windows of unequal RTTs exceed it slightly)";
    let full = "planned anew, the link is full in each phase (ours: within 1 %)";
    let equal = "planned anew, the flows of a phase share the link equally (ours: within 20 %, a packet of five)";
    let breaks = "windows as if alone break the delay bound when flows share the link (ours: more than half of the packets late)";
    let idle = "windows for four leave the link idle when there are fewer (ours: less than half of it used)";
    let (most, least) =
        ("late / received in phase {at}, where it is most", "throughput / (1 - p_e) in phase {at}, where it is least");
    vec![
        e.claim("outage", outage, Bound::AtMost(OUTAGE), "late / received, all flows, whole run")
            .number(replan.mean(|c| late(&whole(c)))),
        e.claim("outage-phase", each, Bound::AtMost(1.25 * OUTAGE), most).everywhere(phases(replan, late)),
        e.claim("full", full, Bound::AtLeast(0.99), least).everywhere(phases(replan, part)),
        e.claim("equal", equal, Bound::AtLeast(0.8), "least throughput of a flow / most in phase {at}")
            .everywhere(phases(replan, evenness)),
        // The worst phase decides, not each.
        e.claim("alone-late", breaks, Bound::Above(0.5), "late / received, in the phase where it is most")
            .number(largest(phases(alone, late)).1),
        e.claim("four-idle", idle, Bound::Below(0.5), "throughput / (1 - p_e), in the phase where it is least")
            .number(smallest(phases(four, part)).1),
    ]
}

/// The windows that the base station gave.
fn windows_chart(e: &Experiment, courses: &Cell<Course>) -> Chart {
    let late = brief(courses.mean(|c| late(&whole(c)) * 100.0));
    let title = format!("The base station gives windows anew; {late} % of the packets are late");
    let mut chart = Chart::new(title, Axis::new("time", "s"), Axis::new("rwnd", "packets"))
        .caption(format!("{}; seed 1; flows 2 and 4 have an RTT of 25 slots", e.file));
    for (from, to, flows) in PHASES {
        chart = chart.band(
            from,
            to,
            format!("{} flow{}", flows.len(), if flows.len() == 1 { "" } else { "s" }),
            BandKind::Note,
        );
    }
    let Some(first) = courses.runs.first() else { return chart };
    for (i, windows) in first.windows.iter().enumerate() {
        let last = PHASES.iter().filter(|p| p.2.contains(&i)).map(|p| p.1).fold(0.0, f64::max);
        let (mut x, mut y): (Vec<f64>, Vec<f64>) = windows.iter().copied().filter(|w| w.0 < last).unzip();
        if let Some(window) = y.last().copied() {
            x.push(last);
            y.push(window);
        }
        chart = chart.series(Series::stepped(format!("flow {}", i + 1), format!("terminal {}", i + 1), x, y));
    }
    chart
}

fn phases_chart(
    found: &Measurements<Course>,
    title: String,
    axis: Axis,
    number: PhaseNumber,
    (level, bound): (&str, f64),
) -> Chart {
    let mut chart = Chart::new(title, Axis::new("time", "s"), axis);
    chart = chart.series(Series::line(level, "reference", vec![5.0, 360.0], vec![bound; 2]).reference());
    for (policy, runs) in POLICIES.iter().zip(&found.cells) {
        let middles = PHASES.iter().map(|(from, to, _)| 0.5 * (from + to));
        let line = middles.zip(phases(runs, number)).map(|(middle, (_, e))| (middle, e));
        chart = chart.series(curve(policy.scheme().name, policy.scheme().colour, line));
    }
    chart
}
