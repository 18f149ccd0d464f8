//! Plans [aimd §III-D], and a base station that makes them anew while flows come and go: ours, beyond the paper.

use super::setup::{self, D, FlowStats, Link, OPTIMAL, OUTAGE, PERSISTENT, R, SLOT, measure, of_flow, seeds};
use super::shared::set_flows;
use crate::builtin::{base, with};
use crate::claim::exact;
use crate::figure::Numbers;
use crate::{Bench, Bound, Claim, Experiment, Outcome, Tools};
use fairpace_analysis::qos::SharedFlow;
use fairpace_analysis::qos::plan::{Need, Plan, PlanError, Planner};
use fairpace_lab::RunError;
use fairpace_lab::study::{Case as Run, Cell};
use fairpace_scenario::{FlowSpec, Scenario};
use fairpace_units::Rate;

// --- plans ---------------------------------------------------------------------------------------------------------

/// The needs of one flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Requirements {
    /// R, slots.
    pub(super) r: u32,
    /// D, slots.
    pub(super) d: u32,
    pub(super) outage: f64,
    pub(super) share: f64,
    /// kbit/s.
    pub(super) throughput: Option<f64>,
}

pub(super) const VOICE: Requirements = Requirements { r: R, d: D, outage: OUTAGE, share: 1.0, throughput: None };

impl Requirements {
    /// The same over a path of so many slots.
    pub(super) const fn away(self, r: u32) -> Requirements {
        Requirements { r, ..self }
    }

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
    flows: &'static [Requirements],
}

/// Over a link that sends failed packets again at once, with so many percent of errors.
const fn case(key: &'static str, words: &'static str, percent: f64, flows: &'static [Requirements]) -> Case {
    Case { key, words, link: PERSISTENT, percent, flows }
}

const FAST: Requirements = Requirements { throughput: Some(170.0), ..VOICE };
const LAX: Requirements = Requirements { d: 20, ..VOICE };

const CASES: [Case; 8] = [
    case("voice-1", "the paper's flow, 1 % errors", 1.0, &[VOICE]),
    case("voice-10", "the paper's flow, 10 % errors", 10.0, &[VOICE]),
    Case { link: OPTIMAL, ..case("memory", "the paper's flow, `optimal`, memory 0.35, 5 % errors", 5.0, &[VOICE]) },
    case("rate", "170 kbit/s, 5 % errors", 5.0, &[FAST]),
    case("jitter", "a jitter of 100 ms for all but 0.1 %, 20 % errors", 20.0, &[Requirements { outage: 0.001, ..LAX }]),
    case(
        "two-to-one",
        "two flows, 2 : 1, RTT of 17 and 25 slots, 5 % errors",
        5.0,
        &[Requirements { share: 2.0, ..VOICE }, VOICE.away(25)],
    ),
    case("strict-and-lax", "two flows, jitter of 50 and 100 ms, 5 % errors", 5.0, &[VOICE, LAX]),
    case(
        "four",
        "four flows, RTT of 17, 21, 25, 33 slots, 5 % errors",
        5.0,
        &[VOICE, VOICE.away(21), VOICE.away(25), VOICE.away(33)],
    ),
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
                flow.tolerable_jitter = Some(setup::slots(f64::from(asks.d)));
            }
        })
    }

    fn plan(&self, base: &Scenario) -> Result<Plan, PlanError> {
        planner(&self.scenario(base))?.plan(0.875, &self.flows.iter().map(Requirements::need).collect::<Vec<_>>())
    }

    /// With the windows and the buffer of a plan.
    fn planned(&self, base: &Scenario, plan: &Plan) -> Scenario {
        let flow = |asks: &Requirements| SharedFlow { r: asks.r, d: asks.d, bound: asks.outage, share: asks.share };
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
    let mut numbers = Numbers::default();
    for ((case, plan), runs) in plans.iter().zip(&found.cells) {
        let promised = |i: usize| per_slot(&base, plan.flows[i].throughput);
        claims.extend(plan_claims(e, case, plan, runs, promised));
        for (i, (flow, asks)) in plan.flows.iter().zip(case.flows).enumerate() {
            let words = [case.words.to_owned(), (i + 1).to_string(), plan.buffer.to_string()];
            numbers.row(
                words,
                (case.key, &[("flow", (i + 1) as f64)]),
                &[
                    ("rwnd_packets", exact(f64::from(flow.rwnd))),
                    ("throughput_promised_packets_per_slot", exact(promised(i))),
                    ("throughput_packets_per_slot", of_flow(runs, i, |g| g.throughput)),
                    ("", exact(asks.outage)),
                    ("outage_promised", exact(flow.outage)),
                    ("outage", of_flow(runs, i, |g| g.outage)),
                    ("dropped", of_flow(runs, i, |g| g.lost)),
                ],
            );
        }
    }
    claims.push(nearest(e, &base));
    let (held, total) = (claims.iter().filter(|c| c.holds).count(), claims.len());
    let title = format!("Promise and measurement: {held} of {total} claims hold");
    let caption = format!(
        "{}; {seeds} seeds, mean ± half-width of the 95 % interval; packets per slot, parts of the packets",
        e.file
    );
    let head = ["need and link", "flow", "B", "rwnd", "throughput promised", "simulated"];
    let outage = ["outage tolerated", "promised", "simulated", "dropped"];
    let table = numbers.table(title, caption, head.into_iter().chain(outage));
    Ok(e.outcome(numbers.points, claims, e.section().table(table)))
}

/// Each flow gets its promise.
fn plan_claims(
    e: &Experiment,
    case: &Case,
    plan: &Plan,
    runs: &Cell<Vec<FlowStats>>,
    promised: impl Fn(usize) -> f64,
) -> [Claim; 2] {
    let each = |number: &dyn Fn(&FlowStats, usize) -> f64| {
        let of = |i: usize| runs.mean(|run| run.get(i).map_or(f64::NAN, |g| number(g, i)));
        (0..plan.flows.len()).map(|i| (i + 1, of(i))).collect::<Vec<_>>()
    };
    let reason = if plan.flows.len() > 1 { SPLIT_NOTE } else { "" };
    let gets = format!("{}: each flow gets the throughput that is promised (ours: within 0.5 %)", case.words);
    let what = "simulated / promised, of flow {at}, where it is least";
    let in_time = format!("{}: no flow's delay outage is above what it tolerates", case.words);
    let late = "simulated / tolerated outage, of flow {at}, where it is most";
    [
        e.claim(format!("{}-throughput", case.key), gets, Bound::AtLeast(SHORT), what)
            .because(reason)
            .everywhere(each(&|g, i| g.throughput / promised(i))),
        e.claim(format!("{}-outage", case.key), in_time, Bound::AtMost(1.0), late)
            .because(reason)
            .everywhere(each(&|g, i| g.outage / case.flows[i].outage)),
    ]
}

const SPLIT_NOTE: &str =
    "For flows with unequal RTTs, or windows in whole packets, the promise is an approximation: docs/qos.md";

/// Needs that cannot be met, each with what is wrong.
const IMPOSSIBLE: [Case; 2] = [
    case("too-fast", "190 kbit/s, 10 % errors", 10.0, &[Requirements { throughput: Some(190.0), ..VOICE }]),
    case("too-strict", "170 kbit/s with a jitter of 10 ms, 10 % errors", 10.0, &[Requirements { d: 2, ..FAST }]),
];

/// The needs that are offered instead of impossible ones can be met.
fn nearest(e: &Experiment, base: &Scenario) -> Claim {
    use fairpace_analysis::qos::plan::Nearest;
    let (mut offered, mut possible) = (0, 0);
    for case in &IMPOSSIBLE {
        let Err(PlanError::Unmet(unmet)) = case.plan(base) else { continue };
        let Ok(planner) = planner(&case.scenario(base)) else { continue };
        for nearest in &unmet.nearest {
            let mut needs: Vec<Need> = case.flows.iter().map(Requirements::need).collect();
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
    let [fast, strict] = IMPOSSIBLE.map(|case| case.words);
    let statement = format!("instead of what cannot be had ({fast}; {strict}) something is offered that can");
    e.claim("nearest", statement, Bound::AtLeast(1.0), "offers that can be planned / offers")
        .exact(f64::from(u8::from(offered > 0)) * possible as f64 / f64::from(offered.max(1)))
}
