//! A base station that plans anew while flows come and go: ours, beyond the paper.

use super::plan::{Asks, VOICE, planner};
use super::{OUTAGE, R, SLOT, base, caption, seeds, set_windows, with};
use crate::figure::{brief, counted, curve, point, scaled, table, text};
use crate::{Bench, Bound, Experiment, Outcome, Point, Tools};
use fairpace_analysis::qos::plan::{Need, PlanError};
use fairpace_lab::RunError;
use fairpace_lab::run::simulate_observed;
use fairpace_lab::stats::Estimate;
use fairpace_lab::study::{Case, Cell, Found, Job, Measure, largest, smallest};
use fairpace_report::{Axis, BandKind, Chart, Series, Table};
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
    fn key(self) -> &'static str {
        match self {
            Policy::Replan => "replan",
            Policy::Alone => "alone",
            Policy::AllFour => "all-four",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Policy::Replan => "planned anew",
            Policy::Alone => "fixed, as if alone",
            Policy::AllFour => "fixed, for four",
        }
    }

    fn scenario(self, base: &Scenario) -> Result<Scenario, PlanError> {
        if self == Policy::Replan {
            return Ok(base.clone());
        }
        let planner = planner(base)?;
        let needs: Vec<Need> = [R, 25, R, 25].iter().map(|r| Asks { r: *r, ..VOICE }.need()).collect();
        let windows: Vec<u32> = match self {
            Policy::AllFour => planner.plan(0.875, &needs)?.flows.iter().map(|f| f.rwnd).collect(),
            _ => {
                let alone = |n: &Need| Ok(planner.plan(0.875, std::slice::from_ref(n))?.buffer);
                needs.iter().map(alone).collect::<Result<_, PlanError>>()?
            }
        };
        Ok(with(base, |s| {
            super::wireless(s).plan = None;
            set_windows(s, &windows);
        }))
    }
}

/// The measurements of one flow in one phase.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
struct Part {
    /// Packets per slot.
    throughput: f64,
    received: f64,
    late: f64,
    dropped: f64,
}

/// The results of a run by phase and flow; and the given windows by flow, as (time, window).
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
struct Course {
    phases: Vec<Vec<Part>>,
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

fn phase(report: &SimReport, from: f64, to: f64) -> Vec<Part> {
    let until = |f: &FlowReport, t: f64| -> FlowCounts {
        f.checkpoints.iter().find(|(instant, _)| *instant == at(t)).map_or(f.whole, |(_, counts)| *counts)
    };
    let part = |f: &FlowReport| {
        let counts = until(f, to).since(&until(f, from));
        let received = counts.received.packets.as_f64();
        Part {
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
fn in_phase(runs: &Cell<Course>, i: usize, number: fn(&[Part]) -> f64) -> Option<Estimate> {
    let there = PHASES[i].2;
    runs.mean(|c| number(&there.iter().map(|f| c.phases[i][*f]).collect::<Vec<Part>>()))
}

/// Packets per slot of all.
fn used(parts: &[Part]) -> f64 {
    parts.iter().map(|p| p.throughput).sum()
}

/// Late / received of all.
fn late(parts: &[Part]) -> f64 {
    parts.iter().map(|p| p.late).sum::<f64>() / parts.iter().map(|p| p.received).sum::<f64>().max(1.0)
}

/// Least throughput / most.
fn evenness(parts: &[Part]) -> f64 {
    let of = || parts.iter().map(|p| p.throughput);
    of().fold(f64::INFINITY, f64::min) / of().fold(0.0, f64::max)
}

fn whole(c: &Course) -> Vec<Part> {
    c.phases.iter().flatten().copied().collect()
}

pub(super) fn replan(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let base = base(e);
    let seeds = seeds(bench, SEEDS);
    let case = |p: &Policy| Some(Case::new(p.key(), 0.0, p.scenario(&base).ok()?));
    let found = counted(e, bench, MEASURE, POLICIES.iter().filter_map(case).collect(), seeds)?;
    let [Some(replan), Some(alone), Some(four)] = POLICIES.map(|p| found.of(p.key()).next()) else {
        return Err(RunError::Interrupted);
    };
    let places = || (0..PHASES.len()).map(|i| (i as f64 + 1.0, i));
    let (used_at, least) = smallest(places().map(|(n, i)| (n, in_phase(replan, i, |p| used(p) / FULL))));
    let (late_at, most) = largest(places().map(|(n, i)| (n, in_phase(replan, i, late))));
    let (alone_at, alone_late) = largest(places().map(|(n, i)| (n, in_phase(alone, i, late))));
    let (four_at, four_used) = smallest(places().map(|(n, i)| (n, in_phase(four, i, |p| used(p) / FULL))));
    let claims = vec![
        e.claim("outage", "planned anew, the delay outage stays within 1 %, joins and leaves included", Bound::AtMost(OUTAGE), "late / received, all flows, whole run").number(replan.mean(|c| late(&whole(c)))),
        e.claim("outage-phase", "in each phase too (ours: 1.25 %, as rounded windows of unequal RTTs exceed it slightly)", Bound::AtMost(1.25 * OUTAGE), format!("late / received in phase {late_at}, where it is most")).number(most),
        e.claim("full", "planned anew, the link is full in each phase (ours: within 1 %)", Bound::AtLeast(0.99), format!("throughput / (1 - p_e) in phase {used_at}, where it is least")).number(least),
        e.claim("equal", "planned anew, the flows of a phase share the link equally (ours: within 20 %, a packet of five)", Bound::AtLeast(0.8), "least throughput of a flow / most in phase {at}").everywhere(places().map(|(n, i)| (n, in_phase(replan, i, evenness)))),
        e.claim("alone-late", "windows as if alone break the delay bound when flows share the link (ours: more than half of the packets late)", Bound::Above(0.5), format!("late / received in phase {alone_at}, where it is most")).number(alone_late),
        e.claim("four-idle", "windows for four leave the link idle when there are fewer (ours: less than half of it used)", Bound::Below(0.5), format!("throughput / (1 - p_e) in phase {four_at}, where it is least")).number(four_used),
    ];
    let percent = |e: Option<Estimate>| brief(e.map(|e| scaled(e, 100.0)));
    let full_title = format!(
        "Planned anew, at least {} % of the link is used; with windows for four, {} % when one flow is alone",
        percent(least),
        percent(four_used)
    );
    let late_title = format!(
        "Planned anew, at most {} % are late in a phase; with windows as if alone, up to {} %",
        percent(most),
        percent(alone_late)
    );
    let text_late = replan.mean(|c| late(&whole(c))).map_or(f64::NAN, |e| e.mean * 100.0);
    let section = e.section()
        .text(
            "One flow from the beginning, a second one from 60 s to 300 s, a third and a fourth from 120 s to 240 s and 180 s; \
             every second one has an RTT of 25 slots. p_e = 5 %, D = 10 slots, 1 %."
                .to_owned(),
        )
        .chart(windows_chart(e, replan, format!("The base station gives windows anew; {text_late:.2} % of the packets are late")))
        .chart(phases_chart(
            e,
            seeds,
            &found,
            &full_title,
            Axis::new("throughput of all", "packets per slot"),
            used,
            ("1 - p_e", FULL),
        ))
        .chart(phases_chart(
            e,
            seeds,
            &found,
            &late_title,
            Axis::new("delay outage", "part of the packets").log(),
            late,
            ("1 %", OUTAGE),
        ))
        .table(phases_table(e, seeds, &found));
    let mut points: Vec<Point> = Vec::new();
    for runs in &found.cells {
        for (i, (_, _, flows)) in PHASES.iter().enumerate() {
            let x = [("phase", i as f64 + 1.0), ("flows", flows.len() as f64)];
            points.extend(point(&runs.scheme, &x, "throughput_packets_per_slot", in_phase(runs, i, used)));
            points.extend(point(&runs.scheme, &x, "outage", in_phase(runs, i, late)));
            points.extend(point(&runs.scheme, &x, "least_to_most", in_phase(runs, i, evenness)));
        }
    }
    Ok(e.outcome(points, claims, section))
}

fn colour(policy: Policy) -> &'static str {
    match policy {
        Policy::Replan => "aimd",
        Policy::Alone => "udp-arq",
        Policy::AllFour => "udp",
    }
}

/// The windows that the base station gave.
fn windows_chart(e: &Experiment, courses: &Cell<Course>, title: String) -> Chart {
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
    e: &Experiment,
    seeds: usize,
    found: &Found<Course>,
    title: &str,
    axis: Axis,
    number: fn(&[Part]) -> f64,
    (level, bound): (&str, f64),
) -> Chart {
    let mut chart = Chart::new(title, Axis::new("time", "s"), axis).caption(caption(e, seeds));
    chart = chart.series(Series::line(level, "reference", vec![5.0, 360.0], vec![bound; 2]).reference());
    for policy in POLICIES {
        for runs in found.of(policy.key()) {
            let middle =
                |(i, (from, to, _)): (usize, &(f64, f64, &[usize]))| (0.5 * (from + to), in_phase(runs, i, number));
            chart = chart.series(curve(policy.name(), colour(policy), PHASES.iter().enumerate().map(middle)));
        }
    }
    chart
}

fn phases_table(e: &Experiment, seeds: usize, found: &Found<Course>) -> Table {
    let mut head = vec!["time (s)".to_owned(), "flows".to_owned()];
    for policy in POLICIES {
        let name = policy.name();
        head.extend([format!("{name}: throughput"), format!("{name}: outage"), format!("{name}: least / most")]);
    }
    let row = |(i, (from, to, flows)): (usize, &(f64, f64, &[usize]))| {
        let mut row = vec![format!("{from} to {to}"), flows.len().to_string()];
        for runs in &found.cells {
            let numbers: [fn(&[Part]) -> f64; 3] = [used, late, evenness];
            row.extend(numbers.map(|n| text(in_phase(runs, i, n))));
        }
        row
    };
    table(
        "Throughput of all in packets per slot, delay outage, least / most throughput",
        format!("{}; {seeds} seeds, mean ± half-width of the 95 % interval", e.file),
        head,
        PHASES.iter().enumerate().map(row),
    )
}
