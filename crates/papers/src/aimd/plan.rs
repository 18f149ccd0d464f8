//! Plans [aimd §III-D], and a base station that makes them anew while flows come and go: ours, beyond the paper.

use super::shared::set_flows;
use super::{D, Got, Link, OPTIMAL, OUTAGE, PERSISTENT, R, SLOT, base, measure, of_flow, seeds, with};
use crate::claim::exact;
use crate::figure::{point, table, text};
use crate::{Bench, Bound, Claim, Experiment, Outcome, Tools};
use fairpace_analysis::qos::SharedFlow;
use fairpace_analysis::qos::plan::{Need, Plan, PlanError, Planner};
use fairpace_lab::RunError;
use fairpace_lab::stats::short;
use fairpace_lab::study::{Case as Run, largest, smallest};
use fairpace_scenario::{FlowSpec, Scenario};
use fairpace_units::Rate;

// --- plans ---------------------------------------------------------------------------------------------------------

/// The needs of one flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Asks {
    /// R, slots.
    pub(super) r: u32,
    /// D, slots.
    pub(super) d: u32,
    pub(super) outage: f64,
    pub(super) share: f64,
    /// kbit/s.
    pub(super) throughput: Option<f64>,
}

pub(super) const VOICE: Asks = Asks { r: R, d: D, outage: OUTAGE, share: 1.0, throughput: None };

impl Asks {
    pub(super) fn need(&self) -> Need {
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
pub(super) fn planner(s: &Scenario) -> Result<Planner, PlanError> {
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
    let run = |(case, plan): &(Case, Plan)| Run::new(case.key, 0.0, case.planned(&base, plan));
    let found = measure(e, plans.iter().map(run).collect(), seeds, bench)?;
    let mut claims = vec![
        e.claim("plans", "there is a plan for every need (the set-up)", Bound::AtLeast(CASES.len() as f64), "plans")
            .exact(plans.len() as f64),
    ];
    let (mut points, mut rows) = (Vec::new(), Vec::new());
    for ((case, plan), runs) in plans.iter().zip(&found.cells) {
        let promised = |i: usize| per_slot(&base, plan.flows[i].throughput);
        let flows = 0..plan.flows.len();
        let throughputs = flows.clone().map(|i| {
            let ratio = |run: &Vec<Got>| run.get(i).map_or(f64::NAN, |g| g.throughput / promised(i));
            ((i + 1) as f64, runs.mean(ratio))
        });
        let (slow_at, slow) = smallest(throughputs);
        let late = flows.clone().map(|i| {
            ((i + 1) as f64, runs.mean(|run| run.get(i).map_or(f64::NAN, |g| g.outage / case.flows[i].outage)))
        });
        let (late_at, late) = largest(late);
        let whose = |at: f64| if plan.flows.len() == 1 { String::new() } else { format!(" of flow {at}") };
        claims.push(
            e.claim(
                format!("{}-throughput", case.key),
                format!("{}: each flow gets the throughput that is promised (ours: within 0.5 %)", case.words),
                Bound::AtLeast(SHORT),
                format!("simulated / promised{}, where it is least", whose(slow_at)),
            )
            .because(if plan.flows.len() > 1 { SPLIT_NOTE } else { "" })
            .number(slow),
        );
        claims.push(
            e.claim(
                format!("{}-outage", case.key),
                format!("{}: no flow's delay outage is above what it tolerates", case.words),
                Bound::AtMost(1.0),
                format!("simulated / tolerated outage{}, where it is most", whose(late_at)),
            )
            .because(if plan.flows.len() > 1 { SPLIT_NOTE } else { "" })
            .number(late),
        );
        for i in flows {
            let (f, x) = (&plan.flows[i], [("flow", (i + 1) as f64)]);
            let throughput = of_flow(runs, i, |g| g.throughput);
            let (outage, lost) = (of_flow(runs, i, |g| g.outage), of_flow(runs, i, |g| g.lost));
            points.extend(point(case.key, &x, "throughput_packets_per_slot", throughput));
            points.extend(point(case.key, &x, "throughput_promised_packets_per_slot", exact(promised(i))));
            points.extend(point(case.key, &x, "outage", outage));
            points.extend(point(case.key, &x, "outage_promised", exact(f.outage)));
            points.extend(point(case.key, &x, "rwnd_packets", exact(f64::from(f.rwnd))));
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
    let table = table(
        format!("Promise and measurement: {held} of {total} claims hold"),
        format!(
            "{}; {seeds} seeds, mean ± half-width of the 95 % interval; packets per slot, parts of the packets",
            e.file
        ),
        [
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
        ],
        rows,
    );
    Ok(e.outcome(points, claims, e.section().table(table)))
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

/// The needs that are offered instead of impossible ones can be met.
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
    e.claim(
        "nearest",
        format!(
            "instead of what cannot be had ({}; {}) something is offered that can",
            IMPOSSIBLE[0].words, IMPOSSIBLE[1].words
        ),
        Bound::AtLeast(1.0),
        "offers that can be planned / offers",
    )
    .exact(f64::from(u8::from(offered > 0)) * possible as f64 / f64::from(offered.max(1)))
}
