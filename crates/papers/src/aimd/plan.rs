//! Plans [aimd §III-D], and a base station that makes them anew while flows come and go: ours, beyond the paper.

use super::shared::set_flows;
use super::{
    D, Got, Link, OPTIMAL, OUTAGE, PERSISTENT, R, SLOT, base, caption, measure, point, seeds, set_windows, text, with,
};
use crate::bench::{Bench, largest, smallest};
use crate::show;
use crate::{Bound, Claim, Experiment, Outcome, Point, Tools};
use fairpace_analysis::qos::SharedFlow;
use fairpace_analysis::qos::plan::{Need, Plan, PlanError, Planner};
use fairpace_lab::Hooks;
use fairpace_lab::run::{RunError, simulate_observed};
use fairpace_lab::stats::{Estimate, short};
use fairpace_report::{Axis, BandKind, Chart, Series, Table};
use fairpace_scenario::{FlowSpec, Record, Scenario, sim_config};
use fairpace_sim::{FlowCounts, FlowReport, SimReport};
use fairpace_units::{Duration, Instant, Rate};
use std::rc::Rc;

// --- plans ---------------------------------------------------------------------------------------------------------

/// What one flow asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Asks {
    /// R, slots.
    r: u32,
    /// D, slots.
    d: u32,
    outage: f64,
    share: f64,
    /// kbit/s.
    throughput: Option<f64>,
}

const VOICE: Asks = Asks { r: R, d: D, outage: OUTAGE, share: 1.0, throughput: None };

impl Asks {
    fn need(&self) -> Need {
        Need {
            min_rtt: SLOT * self.r,
            share: self.share,
            throughput: self.throughput.map(Rate::kbps),
            max_jitter: SLOT * self.d,
            outage: self.outage,
            loss: None,
        }
    }
}

/// A link and who wants to use it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Case {
    key: &'static str,
    words: &'static str,
    link: Link,
    /// p_e, percent.
    percent: f64,
    flows: &'static [Asks],
}

const CASES: [Case; 8] = [
    Case { key: "voice-1", words: "the paper's flow, 1 % errors", link: PERSISTENT, percent: 1.0, flows: &[VOICE] },
    Case { key: "voice-10", words: "the paper's flow, 10 % errors", link: PERSISTENT, percent: 10.0, flows: &[VOICE] },
    Case {
        key: "memory",
        words: "the paper's flow, `optimal`, memory 0.35, 5 % errors",
        link: OPTIMAL,
        percent: 5.0,
        flows: &[VOICE],
    },
    Case {
        key: "rate",
        words: "170 kbit/s, 5 % errors",
        link: PERSISTENT,
        percent: 5.0,
        flows: &[Asks { throughput: Some(170.0), ..VOICE }],
    },
    Case {
        key: "jitter",
        words: "a jitter of 100 ms for all but 0.1 %, 20 % errors",
        link: PERSISTENT,
        percent: 20.0,
        flows: &[Asks { d: 20, outage: 0.001, ..VOICE }],
    },
    Case {
        key: "two-to-one",
        words: "two flows, 2 : 1, RTT of 17 and 25 slots, 5 % errors",
        link: PERSISTENT,
        percent: 5.0,
        flows: &[Asks { share: 2.0, ..VOICE }, Asks { r: 25, ..VOICE }],
    },
    Case {
        key: "strict-and-lax",
        words: "two flows, jitter of 50 and 100 ms, 5 % errors",
        link: PERSISTENT,
        percent: 5.0,
        flows: &[VOICE, Asks { d: 20, ..VOICE }],
    },
    Case {
        key: "four",
        words: "four flows, RTT of 17, 21, 25, 33 slots, 5 % errors",
        link: PERSISTENT,
        percent: 5.0,
        flows: &[VOICE, Asks { r: 21, ..VOICE }, Asks { r: 25, ..VOICE }, Asks { r: 33, ..VOICE }],
    },
];

/// Seeds of each plan.
const SEEDS: usize = 10;
/// How far the measured throughput may be below the promise: ours.
const SHORT: f64 = 0.995;

impl Case {
    /// The link, with as many flows as there are needs, windows yet unset.
    fn scenario(&self, base: &Scenario) -> Scenario {
        with(base, |s| {
            self.link.set(s, self.percent);
            let Some(first) = s.flows.first().cloned() else { return };
            s.flows = (1..=self.flows.len()).map(|i| FlowSpec { name: format!("aimd-{i}"), ..first.clone() }).collect();
            for (flow, asks) in s.flows.iter_mut().zip(self.flows) {
                flow.tolerable_jitter = Some(super::slots(f64::from(asks.d)));
            }
        })
    }

    fn plan(&self, base: &Scenario) -> Result<Plan, PlanError> {
        planner(&self.scenario(base))?.plan(0.875, &self.flows.iter().map(Asks::need).collect::<Vec<_>>())
    }

    /// With the windows and the buffer of a plan.
    fn planned(&self, base: &Scenario, plan: &Plan) -> Scenario {
        let flow = |asks: &Asks| SharedFlow { r: asks.r, d: asks.d, bound: asks.outage, share: asks.share };
        let windows: Vec<u32> = plan.flows.iter().map(|f| f.rwnd).collect();
        with(&self.scenario(base), |s| set_flows(s, &self.flows.iter().map(flow).collect::<Vec<_>>(), &windows))
    }
}

/// Plans for the users of a scenario's link.
fn planner(s: &Scenario) -> Result<Planner, PlanError> {
    let wireless = s.wireless.clone().unwrap_or_default();
    let link = wireless.downlink(s.packet_size.get()).map_err(fairpace_analysis::qos::QosError::from)?;
    Ok(Planner::new(&link, 0)?)
}

/// A promised rate, in packets per slot.
fn per_slot(s: &Scenario, rate: Rate) -> f64 {
    rate.as_packets_per_second(s.packet_size.get()) * SLOT.as_secs_f64()
}

pub(super) fn plan(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let base = base(e);
    let seeds = seeds(bench, SEEDS);
    let plans: Vec<(Case, Plan)> = CASES.iter().filter_map(|c| Some((*c, c.plan(&base).ok()?))).collect();
    let scenarios: Vec<Scenario> = plans.iter().map(|(case, plan)| case.planned(&base, plan)).collect();
    let runs = measure(e, &scenarios, seeds, bench)?;
    let mut claims = vec![super::exact_claim(
        format!("{}/plans", e.id),
        "there is a plan for every need (the set-up)".to_owned(),
        plans.len() as f64,
        Bound::AtLeast(CASES.len() as f64),
        "plans",
    )];
    let (mut points, mut rows) = (Vec::new(), Vec::new());
    for ((case, plan), runs) in plans.iter().zip(&runs) {
        let promised = |i: usize| per_slot(&base, plan.flows[i].throughput);
        let flows = 0..plan.flows.len();
        let throughputs = flows.clone().map(|i| {
            let ratio = |run: &[Got]| run.get(i).map_or(f64::NAN, |g| g.throughput / promised(i));
            ((i + 1) as f64, runs.estimate(ratio))
        });
        let (slow_at, slow) = smallest(throughputs);
        let late = flows.clone().map(|i| {
            ((i + 1) as f64, runs.estimate(|run| run.get(i).map_or(f64::NAN, |g| g.outage / case.flows[i].outage)))
        });
        let (late_at, late) = largest(late);
        let of_flow = |at: f64| if plan.flows.len() == 1 { String::new() } else { format!(" of flow {at}") };
        claims.push(
            Claim::check(
                format!("{}/{}-throughput", e.id, case.key),
                format!("{}: each flow gets the throughput that is promised (ours: within 0.5 %)", case.words),
                slow,
                Bound::AtLeast(SHORT),
                format!("simulated / promised{}, where it is least", of_flow(slow_at)),
            )
            .if_it_fails(if plan.flows.len() > 1 { SPLIT_NOTE } else { "" }),
        );
        claims.push(
            Claim::check(
                format!("{}/{}-outage", e.id, case.key),
                format!("{}: no flow's delay outage is above what it tolerates", case.words),
                late,
                Bound::AtMost(1.0),
                format!("simulated / tolerated outage{}, where it is most", of_flow(late_at)),
            )
            .if_it_fails(if plan.flows.len() > 1 { SPLIT_NOTE } else { "" }),
        );
        for i in flows {
            let (f, x) = (&plan.flows[i], [("flow", (i + 1) as f64)]);
            let throughput = runs.flow(i, |g| g.throughput);
            let (outage, lost) = (runs.flow(i, |g| g.outage), runs.flow(i, |g| g.lost));
            points.extend(point(case.key, &x, "throughput_packets_per_slot", throughput));
            points.extend(point(case.key, &x, "throughput_promised_packets_per_slot", super::exact(promised(i))));
            points.extend(point(case.key, &x, "outage", outage));
            points.extend(point(case.key, &x, "outage_promised", super::exact(f.outage)));
            points.extend(point(case.key, &x, "rwnd_packets", super::exact(f64::from(f.rwnd))));
            points.extend(point(case.key, &x, "dropped", lost));
            rows.push(vec![
                case.words.to_owned(),
                (i + 1).to_string(),
                f.rwnd.to_string(),
                plan.buffer.to_string(),
                format!("{:.4}", promised(i)),
                text(throughput),
                short(case.flows[i].outage),
                short(f.outage),
                text(outage),
                text(lost),
            ]);
        }
    }
    claims.push(nearest(e, &base));
    let (held, total) = (claims.iter().filter(|c| c.holds).count(), claims.len());
    let table = Table {
        title: format!("Promise and measurement: {held} of {total} claims hold"),
        caption: format!(
            "{}; {seeds} seeds, mean ± half-width of the 95 % interval; packets per slot, parts of the packets",
            e.file
        ),
        head: [
            "need and link",
            "flow",
            "rwnd",
            "B",
            "throughput promised",
            "simulated",
            "outage tolerated",
            "promised",
            "simulated",
            "dropped",
        ]
        .map(str::to_owned)
        .to_vec(),
        rows,
    };
    Ok(show::outcome(e, points, claims, show::section(e).table(table)))
}

const SPLIT_NOTE: &str =
    "For flows with unequal RTTs, or windows in whole packets, the promise is an approximation: docs/qos.md";

/// Needs that cannot be met, each with what is wrong.
const IMPOSSIBLE: [Case; 2] = [
    Case {
        key: "too-fast",
        words: "190 kbit/s, 10 % errors",
        link: PERSISTENT,
        percent: 10.0,
        flows: &[Asks { throughput: Some(190.0), ..VOICE }],
    },
    Case {
        key: "too-strict",
        words: "170 kbit/s with a jitter of 10 ms, 10 % errors",
        link: PERSISTENT,
        percent: 10.0,
        flows: &[Asks { throughput: Some(170.0), d: 2, ..VOICE }],
    },
];

/// What is offered instead of an impossible need can be had.
fn nearest(e: &Experiment, base: &Scenario) -> Claim {
    use fairpace_analysis::qos::plan::Nearest;
    let (mut offered, mut possible) = (0, 0);
    for case in &IMPOSSIBLE {
        let Err(PlanError::Unmet(unmet)) = case.plan(base) else { continue };
        let Ok(planner) = planner(&case.scenario(base)) else { continue };
        for nearest in &unmet.nearest {
            let mut needs: Vec<Need> = case.flows.iter().map(Asks::need).collect();
            match nearest {
                Nearest::Throughput(rates) => needs.iter_mut().zip(rates).for_each(|(n, r)| n.throughput = Some(*r)),
                Nearest::Jitter(jitters) => needs.iter_mut().zip(jitters).for_each(|(n, j)| n.max_jitter = *j),
                Nearest::Outage { outage, .. } => needs.iter_mut().zip(outage).for_each(|(n, o)| n.outage = *o),
                _ => continue,
            }
            offered += 1;
            possible += usize::from(planner.plan(0.875, &needs).is_ok());
        }
    }
    super::exact_claim(
        format!("{}/nearest", e.id),
        format!(
            "instead of what cannot be had ({}; {}) something is offered that can",
            IMPOSSIBLE[0].words, IMPOSSIBLE[1].words
        ),
        f64::from(u8::from(offered > 0)) * possible as f64 / f64::from(offered.max(1)),
        Bound::AtLeast(1.0),
        "offers that can be planned / offers",
    )
}

// --- a base station that plans anew --------------------------------------------------------------------------------

/// From when to when which flows are there, s.
const PHASES: [(f64, f64, &[usize]); 6] = [
    (5.0, 60.0, &[0]),
    (60.0, 120.0, &[0, 1]),
    (120.0, 180.0, &[0, 1, 2, 3]),
    (180.0, 240.0, &[0, 1, 2]),
    (240.0, 300.0, &[0, 1]),
    (300.0, 360.0, &[0]),
];

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

/// What one flow got in one phase.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Part {
    /// Packets per slot.
    throughput: f64,
    received: f64,
    late: f64,
    dropped: f64,
}

/// What a run came to: by phase and flow; and the windows that were given, by flow: (when, how much).
#[derive(Clone, Debug, Default, PartialEq)]
struct Course {
    phases: Vec<Vec<Part>>,
    windows: Vec<Vec<(f64, f64)>>,
}

fn course(s: &Scenario, seed: u64, hooks: &Hooks<'_>) -> Result<Course, RunError> {
    let mut config = sim_config(s, seed, Record::default())?;
    config.checkpoints = PHASES.iter().flat_map(|(from, to, _)| [*from, *to]).map(at).collect();
    // The last one is the end of the run.
    config.checkpoints.dedup();
    let (report, now) = simulate_observed(&s.name, &config, None, hooks)?;
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
    let rows = report.radio.as_ref().map_or(&[][..], |r| &r.windows);
    let of = |flow: usize| {
        let own = rows.iter().filter(|r| r.flow as usize == flow);
        own.map(|r| (r.at.as_secs_f64(), f64::from(r.rwnd))).collect()
    };
    (0..report.flows.len()).map(of).collect()
}

/// The runs of a policy, one per seed.
struct Courses(Vec<Rc<Course>>);

impl Courses {
    fn estimate(&self, number: impl Fn(&Course) -> f64) -> Option<Estimate> {
        Estimate::of(&self.0.iter().map(|c| number(c)).collect::<Vec<f64>>())
    }

    /// A number of the flows that are there in a phase.
    fn in_phase(&self, i: usize, number: fn(&[Part]) -> f64) -> Option<Estimate> {
        let there = PHASES[i].2;
        self.estimate(|c| number(&there.iter().map(|f| c.phases[i][*f]).collect::<Vec<Part>>()))
    }
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
    let policies: Vec<(Policy, Scenario)> =
        POLICIES.iter().filter_map(|p| Some((*p, p.scenario(&base).ok()?))).collect();
    let jobs: Vec<(Scenario, u64)> =
        policies.iter().flat_map(|(_, s)| (0..seeds).map(|i| (s.clone(), s.seed.get() + i))).collect();
    let label = |_: &Scenario, seed: u64| format!("{} seed {seed}", e.id);
    let all = bench.keep(&jobs, label, course)?;
    let courses: Vec<(Policy, Courses)> = policies
        .iter()
        .zip(all.chunks(seeds.max(1) as usize))
        .map(|((policy, _), runs)| (*policy, Courses(runs.to_vec())))
        .collect();
    let of = |policy: Policy| courses.iter().find(|(p, _)| *p == policy).map(|(_, c)| c);
    let [Some(replan), Some(alone), Some(four)] = POLICIES.map(of) else { return Err(RunError::Interrupted) };
    let places = || (0..PHASES.len()).map(|i| (i as f64 + 1.0, i));
    let (used_at, least) = smallest(places().map(|(n, i)| (n, replan.in_phase(i, |p| used(p) / FULL))));
    let (late_at, most) = largest(places().map(|(n, i)| (n, replan.in_phase(i, late))));
    let (even_at, even) = smallest(places().map(|(n, i)| (n, replan.in_phase(i, evenness))));
    let (alone_at, alone_late) = largest(places().map(|(n, i)| (n, alone.in_phase(i, late))));
    let (four_at, four_used) = smallest(places().map(|(n, i)| (n, four.in_phase(i, |p| used(p) / FULL))));
    let claims = vec![
        Claim::check(
            format!("{}/outage", e.id),
            "planned anew, the delay outage stays within 1 %, joins and leaves included",
            replan.estimate(|c| late(&whole(c))),
            Bound::AtMost(OUTAGE),
            "late / received, all flows, whole run",
        ),
        Claim::check(
            format!("{}/outage-phase", e.id),
            "in each phase too (ours: 1.25 %, as rounded windows of unequal RTTs exceed it slightly)",
            most,
            Bound::AtMost(1.25 * OUTAGE),
            format!("late / received in phase {late_at}, where it is most"),
        ),
        Claim::check(
            format!("{}/full", e.id),
            "planned anew, the link is full in each phase (ours: within 1 %)",
            least,
            Bound::AtLeast(0.99),
            format!("throughput / (1 - p_e) in phase {used_at}, where it is least"),
        ),
        Claim::check(
            format!("{}/equal", e.id),
            "planned anew, the flows of a phase share the link equally (ours: within 20 %, a packet of five)",
            even,
            Bound::AtLeast(0.8),
            format!("least throughput of a flow / most in phase {even_at}"),
        ),
        Claim::check(
            format!("{}/alone-late", e.id),
            "windows as if alone break the delay bound when flows share the link (ours: more than half of the packets late)",
            alone_late,
            Bound::Above(0.5),
            format!("late / received in phase {alone_at}, where it is most"),
        ),
        Claim::check(
            format!("{}/four-idle", e.id),
            "windows for four leave the link idle when there are fewer (ours: less than half of it used)",
            four_used,
            Bound::Below(0.5),
            format!("throughput / (1 - p_e) in phase {four_at}, where it is least"),
        ),
    ];
    let percent = |e: Option<Estimate>| e.map_or("–".to_owned(), |e| short(e.mean * 100.0));
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
    let text_late = replan.estimate(|c| late(&whole(c))).map_or(f64::NAN, |e| e.mean * 100.0);
    let section = show::section(e)
        .text(
            "One flow from the beginning, a second one from 60 s to 300 s, a third and a fourth from 120 s to 240 s and 180 s; \
             every second one has an RTT of 25 slots. p_e = 5 %, D = 10 slots, 1 %."
                .to_owned(),
        )
        .chart(windows_chart(e, replan, format!("The base station gives windows anew; {text_late:.2} % of the packets are late")))
        .chart(phases_chart(
            e,
            seeds,
            &courses,
            &full_title,
            Axis::new("throughput of all", "packets per slot"),
            used,
            ("1 - p_e", FULL),
        ))
        .chart(phases_chart(
            e,
            seeds,
            &courses,
            &late_title,
            Axis::new("delay outage", "part of the packets").log(),
            late,
            ("1 %", OUTAGE),
        ))
        .table(phases_table(e, seeds, &courses));
    let mut points: Vec<Point> = Vec::new();
    for (policy, courses) in &courses {
        for (i, (_, _, flows)) in PHASES.iter().enumerate() {
            let x = [("phase", i as f64 + 1.0), ("flows", flows.len() as f64)];
            points.extend(point(policy.key(), &x, "throughput_packets_per_slot", courses.in_phase(i, used)));
            points.extend(point(policy.key(), &x, "outage", courses.in_phase(i, late)));
            points.extend(point(policy.key(), &x, "least_to_most", courses.in_phase(i, evenness)));
        }
    }
    Ok(show::outcome(e, points, claims, section))
}

fn colour(policy: Policy) -> &'static str {
    match policy {
        Policy::Replan => "aimd",
        Policy::Alone => "udp-arq",
        Policy::AllFour => "udp",
    }
}

/// The windows that the base station gave.
fn windows_chart(e: &Experiment, courses: &Courses, title: String) -> Chart {
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
    let Some(first) = courses.0.first() else { return chart };
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
    seeds: u64,
    courses: &[(Policy, Courses)],
    title: &str,
    axis: Axis,
    number: fn(&[Part]) -> f64,
    (level, bound): (&str, f64),
) -> Chart {
    let mut chart = Chart::new(title, Axis::new("time", "s"), axis).caption(caption(e, seeds));
    chart = chart.series(Series::line(level, "reference", vec![5.0, 360.0], vec![bound; 2]).reference());
    for (policy, courses) in courses {
        let known: Vec<(f64, Estimate)> = PHASES
            .iter()
            .enumerate()
            .filter_map(|(i, (from, to, _))| Some((0.5 * (from + to), courses.in_phase(i, number)?)))
            .collect();
        let of = |number: fn(&Estimate) -> f64| known.iter().map(|(_, e)| number(e)).collect::<Vec<f64>>();
        chart = chart.series(
            Series::sweep(policy.name(), colour(*policy), known.iter().map(|k| k.0).collect(), of(|e| e.mean))
                .interval(of(Estimate::low), of(Estimate::high)),
        );
    }
    chart
}

fn phases_table(e: &Experiment, seeds: u64, courses: &[(Policy, Courses)]) -> Table {
    let mut head = vec!["time (s)".to_owned(), "flows".to_owned()];
    for (policy, _) in courses {
        let name = policy.name();
        head.extend([format!("{name}: throughput"), format!("{name}: outage"), format!("{name}: least / most")]);
    }
    let row = |(i, (from, to, flows)): (usize, &(f64, f64, &[usize]))| {
        let mut row = vec![format!("{from} to {to}"), flows.len().to_string()];
        for (_, courses) in courses {
            let numbers: [fn(&[Part]) -> f64; 3] = [used, late, evenness];
            row.extend(numbers.map(|n| text(courses.in_phase(i, n))));
        }
        row
    };
    Table {
        title: "Throughput of all in packets per slot, delay outage, least / most throughput".to_owned(),
        caption: format!("{}; {seeds} seeds, mean ± half-width of the 95 % interval", e.file),
        head,
        rows: PHASES.iter().enumerate().map(row).collect(),
    }
}
