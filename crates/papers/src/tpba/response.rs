//! Fairness against the number of TCP flows [tpba Fig. 19], and how long a change takes [tpba Table 3].

use super::numbers;
use super::setup::{Adu, PER_SECOND, SAMPLE, caption, each, estimate, is_media, parse, seconds, seeds};
use super::trace::{Trace, rates_chart, slices, trace};
use crate::builtin::{base, with};
use crate::figure::{Abscissa, Figure, Quantity, Scheme, counted, point, table, text, with_doubts};
use crate::{Bench, Bound, Claim, Effort, Experiment, Outcome, Tools};
use fairpace_lab::RunError;
use fairpace_lab::stats::{Estimate, mean, short};
use fairpace_lab::study::{Job, Measure, Measurements};
use fairpace_scenario::{Count, FlowSpec, RawScenario};
use serde::{Deserialize, Serialize};

// --- Fig. 19 -------------------------------------------------------------------------------------------------------

/// Topology 2's scenario, for its path.
const TOPOLOGY_2: (&str, &str) =
    (include_str!("../../../../scenarios/papers/tpba-fig14-18.toml"), "scenarios/papers/tpba-fig14-18.toml");
/// Where TCP is in TPBA's place, f counts from here on, s: as long as a first probing period usually takes.
const SETTLED: usize = 4;

const FIG19: Figure<RunFairness> = Figure {
    x: Abscissa::new("tcp_flows", "TCP flows beside flow 3", ""),
    places: &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0],
    schemes: &KINDS,
    vary: set_tcp_flows,
    quantities: &[FAIRNESS, OF_MEANS],
};
const FAIRNESS: Quantity<RunFairness> =
    Quantity { key: "f", label: "fairness f, mean over periods of 1 s", unit: "", get: |a| a.f };
const OF_MEANS: Quantity<RunFairness> =
    Quantity { key: "f_of_means", label: "f of the mean rates", unit: "", get: |a| a.f_of_means };
/// Of a topology: TPBA with both kinds of data units, and TCP in its place.
const KINDS: [Scheme; 6] = [
    Scheme::new("topology-1-adu1", "Topology 1, ADU1", "").coloured("tpba").setting(|s| Adu::One.set(s)),
    Scheme::new("topology-1-adu2", "Topology 1, ADU2", "").coloured("rcs2"),
    Scheme::new("topology-1-tcp", "Topology 1, TCP alone", "").coloured("tcp").setting(tcp_in_place),
    Scheme::new("topology-2-adu1", "Topology 2, ADU1", "").coloured("rap").setting(|s| {
        topology_2(s);
        Adu::One.set(s);
    }),
    Scheme::new("topology-2-adu2", "Topology 2, ADU2", "").coloured("rap-fine").setting(topology_2),
    Scheme::new("topology-2-tcp", "Topology 2, TCP alone", "").coloured("tcp-newreno").setting(|s| {
        topology_2(s);
        tcp_in_place(s);
    }),
];
/// The lines of a quick run.
const FEW_KINDS: [Scheme; 4] = [KINDS[1], KINDS[2], KINDS[4], KINDS[5]];

fn set_tcp_flows(s: &mut RawScenario, n: f64) {
    s.flows.iter_mut().filter(|f| f.group == "flow 1").for_each(|f| f.count = Count::new(n as u64));
}

fn topology_2(s: &mut RawScenario) {
    s.path = parse(TOPOLOGY_2.0, TOPOLOGY_2.1).path.clone();
    for flow in &mut s.flows {
        flow.initial_rtt = flow.initial_rtt.take().map(|_| s.path.rtt.clone());
    }
}

/// One more TCP flow in TPBA's place.
fn tcp_in_place(s: &mut RawScenario) {
    let Some(tcp) = s.flows.iter().find(|f| f.group == "flow 1").cloned() else { return };
    for flow in s.flows.iter_mut().filter(|f| is_media(&f.group)) {
        let (name, group) = (flow.name.clone(), flow.group.clone());
        *flow = FlowSpec { name, group, count: Count::new(1), ..tcp.clone() };
    }
}

/// f after the first probing period: its mean over sampling periods, and that of the mean rates.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
struct RunFairness {
    f: Option<f64>,
    f_of_means: Option<f64>,
    /// Why a run in real time is not to be trusted.
    invalid: Vec<String>,
}

const FAIRNESS_OF_RUN: Measure<RunFairness> =
    Measure { name: "tpba fairness", of: |job| Ok(run_fairness(&trace(job)?)) };

fn run_fairness(trace: &Trace) -> RunFairness {
    let first = trace.periods().iter().find(|p| p.state == "running").map(|p| p.from.div_ceil(PER_SECOND));
    let probed = trace.states.iter().any(|s| s == "probing");
    let Some(from) = first.or((!probed).then_some(SETTLED)) else {
        return RunFairness { invalid: trace.invalid.clone(), ..RunFairness::default() };
    };
    let rates = trace.each_second();
    let end = rates.iter().map(Vec::len).min().unwrap_or(0);
    let flows = slices(&rates);
    let each: Vec<f64> = numbers::fairness(&flows, from.min(end)..end).into_iter().flatten().collect();
    let f_of_means = numbers::fairness_of_means(&flows, from.min(end)..end);
    RunFairness { f: (!each.is_empty()).then(|| mean(&each)), f_of_means, invalid: trace.invalid.clone() }
}

pub(super) fn fig19(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let seeds = seeds(bench, 10, 1);
    let quick = Figure { places: &[1.0, 4.0, 8.0], schemes: &FEW_KINDS, ..FIG19 };
    let figure = if bench.effort() == Effort::Quick { quick } else { FIG19 };
    let found = counted(e, bench, FAIRNESS_OF_RUN, figure.cases(&base(e)), seeds)?;
    let least = |topology: &str| {
        let cells = found.cells.iter().filter(|c| c.scheme.starts_with(topology) && !c.scheme.ends_with("tcp"));
        let f = cells.filter_map(|c| Some(c.estimate(FAIRNESS.get)?.mean));
        f.reduce(f64::min).map_or("–".to_owned(), short)
    };
    let [first, second] = ["topology-1", "topology-2"].map(least);
    let title = format!("With 1 to 8 TCP flows f is at least {first} (Topology 1), {second} (Topology 2)");
    let rest = format!("{seeds} seeds per point, from the first running period on; bars are 95 % intervals");
    let mut chart = figure.chart(&found, &FAIRNESS, title, &caption(e, bench.world(), &rest));
    chart.y = chart.y.range(0.0, 1.0);
    chart.series.iter_mut().for_each(|line| line.hidden = line.name.ends_with("TCP alone"));
    let section = with_doubts(e.section(), found.cells.iter().flat_map(|c| &c.runs).map(|a| &a.invalid))
        .chart(chart)
        .table(figure.table(&found, &FAIRNESS, "f over periods of 1 s"))
        .table(figure.table(&found, &OF_MEANS, "f of the mean rates"));
    Ok(e.outcome(figure.points(&found), fig19_claims(e, &found, figure.schemes), section))
}

/// The slope of f against the number of TCP flows. Each seed has a line of its own, so that the slope has an interval.
fn slopes(found: &Measurements<RunFairness>, scheme: &str) -> Vec<f64> {
    let seeds = found.of(scheme).map(|c| c.runs.len()).max().unwrap_or(0);
    let line = |seed: usize| found.of(scheme).filter_map(|c| Some((c.at(), c.runs.get(seed)?.f?))).collect::<Vec<_>>();
    (0..seeds).filter_map(|seed| numbers::slope(&line(seed))).collect()
}

fn fig19_claims(e: &Experiment, found: &Measurements<RunFairness>, kinds: &[Scheme]) -> Vec<Claim> {
    let mut claims = Vec::new();
    for Scheme { key, name, .. } in kinds.iter().filter(|kind| !kind.key.ends_with("tcp")) {
        let of_tcp = slopes(found, &format!("{}-tcp", &key[.."topology-1".len()]));
        let of_tcp_alone = of_tcp.clone();
        let beyond: Vec<f64> = slopes(found, key).iter().zip(of_tcp).map(|(a, b)| a - b).collect();
        let statement = format!("{name}: no more than f of TCP alone does (ours: 0.01 per flow)");
        let what = "slope of f less that with one more TCP flow in TPBA's place, seed by seed";
        claims.push(
            e.claim(format!("{key}-beyond"), statement, Bound::Within(-0.01, 0.01), what).number(Estimate::of(&beyond)),
        );
        let statement =
            format!("{name}: f does not depend on the number of TCP flows (ours: by no more than 0.01 per flow)");
        let what = "slope of f against the number of TCP flows, by least squares for each seed";
        claims.push(
            e.claim(*key, statement, Bound::Within(-0.01, 0.01), what)
                .because(format!(
                    "With one more TCP flow in TPBA's place the slope is {}",
                    text(Estimate::of(&of_tcp_alone))
                ))
                .number(Estimate::of(&slopes(found, key))),
        );
    }
    claims
}

// --- Table 3 -------------------------------------------------------------------------------------------------------

/// Rows of 400 ms [tpba §6.1].
const PER_RATE: usize = 4;
/// When flow 2 starts (a) or ends (b), s.
const CHANGE: u32 = 10;
/// The rate is stable within this, kbit/s: epsilon, and twice that.
const WIDTHS: [f64; 2] = [30.0, 60.0];

/// How long flow 3's rate takes to be stable within each of [`WIDTHS`], s; and the run.
type Stable = ([Option<f64>; 2], Trace);

const STABLE: Measure<Stable> = Measure { name: "tpba stable", of: stable };

fn stable(job: &Job<'_>) -> Result<Stable, RunError> {
    let trace = trace(job)?;
    let rates = trace.over(PER_RATE, &["flow 3"]);
    let flow_3 = rates.first().map_or(&[][..], Vec::as_slice);
    let row = CHANGE as usize * PER_SECOND / PER_RATE;
    let seconds = |n: usize| n as f64 * PER_RATE as f64 * SAMPLE.as_secs_f64();
    let times = WIDTHS.map(|width| numbers::until_stable(flow_3, row, width).map(seconds));
    Ok((times, Trace { adus: Vec::new(), ..trace }))
}

pub(super) fn table3(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let seeds = seeds(bench, 10, 1);
    let ends = with(&base(e), |s| {
        for flow in s.flows.iter_mut().filter(|f| f.group == "flow 2") {
            (flow.start, flow.stop) = (seconds(0), Some(seconds(CHANGE)));
        }
    });
    // Mean and longest of the paper's ten trials, s.
    let cases = [("t-pr", "T_pr, flow 2 starts", 2.0, 2.8), ("t-pi", "T_pi, flow 2 ends", 2.8, 3.2)];
    let all = each(e, bench, [base(e), ends], seeds, STABLE)?;
    let mut claims = Vec::new();
    let mut points = Vec::new();
    let mut rows = Vec::new();
    let mut section = with_doubts(e.section(), all.iter().flat_map(|c| &c.runs).map(|r| &r.1.invalid));
    for ((key, name, paper, longest), runs) in cases.iter().zip(all.iter().map(|c| &c.runs)) {
        for (i, width) in WIDTHS.iter().enumerate() {
            let time = estimate(runs, |r| r.0[i]);
            let most = runs.iter().filter_map(|r| r.0[i]).reduce(f64::max);
            let all_stable = time.filter(|t| t.n == runs.len());
            let statement = format!(
                "{name}: its rate is stable to {width} kbit/s after {paper} s in the mean (ours: within a half)"
            );
            let what =
                "time until three rates over 400 ms are that near each other and the level that the rate comes to, s";
            claims.push(
                e.claim(format!("{key}-{width}"), statement, Bound::Within(0.5 * paper, 1.5 * paper), what)
                    .number(all_stable),
            );
            let statement = format!("{name}: and after at most {longest} s in every trial");
            let id = format!("{key}-longest-{width}");
            let in_each = e.claim(id, statement, Bound::AtMost(*longest), "the longest of the trials, s");
            claims.push(in_each.exact(most.filter(|_| all_stable.is_some())));
            points.extend(point(key, &[("width_kbps", *width)], "stable_after_s", time));
            let stable = format!("{} of {}", time.map_or(0, |t| t.n), runs.len());
            let most = most.map_or("–".to_owned(), short);
            let paper = format!("{paper} s, {longest} s");
            rows.push(vec![(*name).to_owned(), width.to_string(), text(time), most, stable, paper]);
        }
        if let Some(first) = runs.first() {
            let stable = match estimate(runs, |r| r.0[1]) {
                Some(t) if t.n == runs.len() => format!("stable to 60 kbit/s after {} s", short(t.mean)),
                t => format!("stable to 60 kbit/s in {} of {} runs", t.map_or(0, |t| t.n), runs.len()),
            };
            let title = format!("{name} at 10 s: flow 3's rate is {stable}");
            let caption = caption(e, bench.world(), "seed 1, means over 400 ms; flow 3 stays in the probing period");
            section = section.chart(rates_chart(title, caption, &first.1, PER_RATE));
        }
    }
    let table = table(
        "Time until the rate is stable",
        format!("{seeds} seeds each, mean ± half-width of the 95 % interval"),
        ["change", "within (kbit/s)", "mean (s)", "longest (s)", "stable", "paper: mean, longest"],
        rows,
    );
    Ok(e.outcome(points, claims, section.table(table)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tpba::EXPERIMENTS;
    use crate::tpba::trace::FlowRates;
    use fairpace_scenario::Scenario;

    #[test]
    fn f_counts_from_the_first_running_period_on() {
        // Unequal for 3 s of probing, equal from then on.
        let line = |early: f64| {
            let kbps = (0..100).map(|row| if row < 30 { early } else { 500.0 }).collect();
            FlowRates { group: "flow".to_owned(), kbps }
        };
        let states = (0..100).map(|row| if row < 25 { "probing" } else { "running" }).map(str::to_owned).collect();
        let trace = Trace { flows: vec![line(100.0), line(900.0)], states, ..Trace::default() };
        assert_eq!(run_fairness(&trace), RunFairness { f: Some(1.0), f_of_means: Some(1.0), invalid: Vec::new() });
        // One that never runs has no f.
        let never = Trace { states: vec!["probing".to_owned(); 100], ..trace };
        assert_eq!(run_fairness(&never), RunFairness::default());
    }

    #[test]
    fn each_line_of_fig_19_is_a_scenario_that_reads() {
        let e = EXPERIMENTS.iter().find(|e| e.id == "tpba.fig19").unwrap();
        for kind in &KINDS {
            let s = kind.put_into(&with(&base(e), |s| set_tcp_flows(s, 8.0)));
            let again = Scenario::parse(&s.to_toml(), "again.toml").unwrap_or_else(|e| panic!("{}: {e}", kind.key));
            let flows: u64 = again.flows.iter().map(|f| f.count.get()).sum();
            let rtt = if kind.key.starts_with("topology-2") { 160 } else { 12 };
            assert_eq!((flows, again.path.rtt.get().as_millis()), (9, rtt), "{}", kind.key);
            assert_eq!(again.flows.iter().any(|f| f.controller == "tpba"), !kind.key.ends_with("tcp"), "{}", kind.key);
        }
    }
}
