//! TPBA, LDA and LDAF with the parameters of Table 4, and RAP [tpba §6.2, Figs. 20 to 32].

use super::numbers;
use super::setup::{PER_SECOND, SAMPLE, caption, each, estimate, is_media, number, parse, seconds, seeds, words};
use super::trace::{Trace, name, trace};
use crate::builtin::{base, with};
use crate::figure::{brief, point, table, text, with_doubts};
use crate::{Bench, Bound, Claim, Effort, Experiment, Outcome, Tools};
use fairpace_lab::RunError;
use fairpace_lab::stats::{Estimate, mean};
use fairpace_lab::study::{Cell, Measure, smallest};
use fairpace_report::{Axis, Chart, Series};
use fairpace_scenario::{FlowSpec, RawScenario, Scenario};
use serde::{Deserialize, Serialize};
use std::rc::Rc;

pub(super) mod differences;

/// A row of Table 4.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Case {
    name: &'static str,
    scheme: &'static str,
    /// T_adapt, T_rtcp in s.
    t_adapt: f64,
    t_rtcp: f64,
    /// T_running in s (TPBA), AIR_0 in kbit/s (the others).
    third: f64,
    r_f: f64,
}

const fn case(name: &'static str, scheme: &'static str, a: f64, b: f64, third: f64, r_f: f64) -> Case {
    Case { name, scheme, t_adapt: a, t_rtcp: b, third, r_f }
}

const CASES: [Case; 16] = [
    case("TPBA-3-1-10-3", "tpba", 3.0, 1.0, 10.0, 3.0),
    case("TPBA-3-1-10-6", "tpba", 3.0, 1.0, 10.0, 6.0),
    case("TPBA-3-1-30-3", "tpba", 3.0, 1.0, 30.0, 3.0),
    case("TPBA-1-0.5-10-3", "tpba", 1.0, 0.5, 10.0, 3.0),
    case("TPBA-1-0.5-30-3", "tpba", 1.0, 0.5, 30.0, 3.0),
    case("LDAF-3-1-10-3", "ldaf", 3.0, 1.0, 10.0, 3.0),
    case("LDAF-3-1-10-6", "ldaf", 3.0, 1.0, 10.0, 6.0),
    case("LDAF-3-1-100-3", "ldaf", 3.0, 1.0, 100.0, 3.0),
    case("LDAF-1-0.5-10-3", "ldaf", 1.0, 0.5, 10.0, 3.0),
    case("LDAF-1-0.5-100-3", "ldaf", 1.0, 0.5, 100.0, 3.0),
    case("LDA-3-1-10-3", "lda", 3.0, 1.0, 10.0, 3.0),
    case("LDA-3-1-10-6", "lda", 3.0, 1.0, 10.0, 6.0),
    case("LDA-3-1-100-3", "lda", 3.0, 1.0, 100.0, 3.0),
    case("LDA-3-1-100-6", "lda", 3.0, 1.0, 100.0, 6.0),
    case("LDA-1-0.5-10-3", "lda", 1.0, 0.5, 10.0, 3.0),
    case("LDA-1-0.5-100-3", "lda", 1.0, 0.5, 100.0, 3.0),
];

impl Case {
    /// Such a case does not come to a cycle by the time of the change [tpba §6.2].
    fn is_slow(&self) -> bool {
        ["LDAF-3-1-10-3", "LDAF-3-1-10-6"].contains(&self.name)
    }

    /// This case has no n_cross [tpba §6.2].
    fn never_crosses(&self) -> bool {
        self.scheme == "lda" && self.third < 50.0
    }

    fn set(&self, s: &mut RawScenario) {
        for flow in s.flows.iter_mut().filter(|f| is_media(&f.group)) {
            let time = |t: f64| words(&format!("{} ms", t * 1e3));
            let mut parameters =
                vec![("t_adapt", time(self.t_adapt)), ("t_rtcp", time(self.t_rtcp)), ("r_f", number(self.r_f))];
            if self.scheme == "tpba" {
                parameters.push(("t_running", time(self.third)));
            } else {
                parameters.push(("r_0", words("10 kbit/s")));
                parameters.push(("air_0", words(&format!("{} kbit/s", self.third))));
                flow.tcp = None;
            }
            *flow = FlowSpec {
                controller: self.scheme.to_owned(),
                parameters: parameters.into_iter().map(|(k, v)| (k.to_owned(), v)).collect(),
                ..flow.clone()
            };
        }
    }
}

/// When flow 4 starts, and the end, s; and the end of the runs without flow 4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Times {
    change: u32,
    end: u32,
    alone: u32,
}

impl Times {
    fn of(effort: Effort) -> Times {
        match effort {
            Effort::Quick => Times { change: 60, end: 90, alone: 120 },
            _ => Times { change: 200, end: 300, alone: 400 },
        }
    }

    fn set(self, s: &mut RawScenario) {
        for flow in s.flows.iter_mut().filter(|f| f.group == "flow 4") {
            flow.start = seconds(self.change);
        }
        s.duration = seconds(self.end);
    }
}

/// One run: rates of payload per second, kbit/s; flows 1, 2, 3, 4.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
struct Run {
    rates: Vec<Vec<f64>>,
    groups: Vec<String>,
    lost: f64,
    invalid: Vec<String>,
}

const MEASURE: Measure<Run> = Measure { name: "tpba cases", of: |job| Ok(run(&trace(job)?)) };

fn run(trace: &Trace) -> Run {
    Run {
        rates: trace.each_second(),
        groups: trace.flows.iter().map(|f| f.group.clone()).collect(),
        lost: if trace.sent > 0.0 { trace.dropped / trace.sent } else { 0.0 },
        invalid: trace.invalid.clone(),
    }
}

impl Run {
    fn flow(&self, group: &str) -> &[f64] {
        let place = self.groups.iter().position(|g| g == group);
        place.and_then(|i| self.rates.get(i)).map_or(&[], Vec::as_slice)
    }

    fn three(&self) -> [&[f64]; 3] {
        ["flow 1", "flow 2", "flow 3"].map(|g| self.flow(g))
    }

    fn four(&self) -> [&[f64]; 4] {
        ["flow 1", "flow 2", "flow 3", "flow 4"].map(|g| self.flow(g))
    }

    /// n_cross, or what stands for it. In the first second flows start.
    fn crossed(&self, case: &Case, until: usize) -> Option<usize> {
        let [r1, r2, r3] = self.three();
        let n = if case.never_crosses() { numbers::settled(r3, 20.0) } else { numbers::reached(r3, &[r1, r2], 1) };
        n.filter(|n| *n < until)
    }

    /// delta R_intra, delta R_ave1 up to then.
    fn steady(&self, case: &Case, until: u32) -> Option<(f64, f64)> {
        let periods = self.crossed(case, until as usize)?..until as usize;
        Some((numbers::intra(&self.three(), periods.clone())?, numbers::apart(&self.three(), periods)?))
    }

    /// delta R_ave2.
    fn after_change(&self, times: Times) -> Option<f64> {
        let [r1, r2, _, r4] = self.four();
        let n_join = numbers::reached(r4, &[r1, r2], times.change as usize)?;
        numbers::apart(&self.four(), n_join..times.end as usize)
    }

    /// How long after the change flow 3 is within 10 % of a quarter for three seconds in a row, s; the rest of the run if
    /// it never is.
    fn fair_again(&self, times: Times) -> f64 {
        let flows = self.four();
        let near = |j: &usize| {
            let all: f64 = flows.iter().filter_map(|f| f.get(*j)).sum();
            flows[2].get(*j).is_some_and(|r| (r - all / 4.0).abs() <= all / 40.0)
        };
        let seconds: Vec<bool> = (times.change as usize..times.end as usize).map(|j| near(&j)).collect();
        let fair = seconds.windows(3).position(|three| three.iter().all(|near| *near));
        fair.map_or(f64::from(times.end - times.change), |first| first as f64)
    }
}

/// The runs of all cases; this and what follows it show the same.
fn runs(
    e: &Experiment,
    bench: &mut Bench<'_>,
    seeds: usize,
    slow: Option<&Scenario>,
) -> Result<Vec<Cell<Run>>, RunError> {
    let times = Times::of(bench.effort());
    let shared = parse(SHARED.0, SHARED.1);
    let shared = if e.id == "tpba.fig20-28" { base(e) } else { shared };
    let mut scenarios: Vec<Scenario> = CASES
        .iter()
        .map(|c| {
            with(&shared, |s| {
                times.set(s);
                c.set(s);
            })
        })
        .collect();
    if let Some(alone) = slow {
        let long = |c: &Case| {
            with(alone, |s| {
                s.duration = seconds(times.alone);
                c.set(s);
            })
        };
        scenarios.extend(CASES.iter().filter(|c| c.is_slow()).map(long));
    }
    each(e, bench, scenarios, seeds, MEASURE)
}

const SHARED: (&str, &str) =
    (include_str!("../../../../scenarios/papers/tpba-fig20-28.toml"), "scenarios/papers/tpba-fig20-28.toml");

/// Trials.
const TRIALS: usize = 10;

/// The fair share of three flows, kbit/s of payload: of what they get together.
fn share(run: &Run, periods: std::ops::Range<usize>) -> f64 {
    run.three().iter().map(|r| mean(r.get(periods.clone()).unwrap_or(&[]))).sum::<f64>() / 3.0
}

pub(super) fn snapshots(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let seeds = seeds(bench, TRIALS, 1);
    let times = Times::of(bench.effort());
    let all = runs(e, bench, seeds, None)?;
    let of =
        |name: &str| CASES.iter().zip(&all).find(|(c, _)| c.name == name).map_or(&[][..], |(_, c)| c.runs.as_slice());
    let half = (times.change / 2) as usize..times.change as usize;
    let swing =
        |name: &str| estimate(of(name), |r| Some(numbers::intra(&r.three(), half.clone())? / share(r, half.clone())));
    let part = |name: &str| {
        estimate(of(name), |r| r.flow("flow 3").get(half.clone()).map(|x| mean(x) / share(r, half.clone())))
    };
    let swings = "widest range of a flow's rate over 1 s in the half before flow 4, over the fair share";
    let parts = "flow 3's mean rate in the half before flow 4 / the fair share";
    let mut claims = Vec::new();
    for (key, name) in [("ldaf-oscillates", "LDAF-3-1-100-3"), ("ldaf-oscillates-1", "LDAF-1-0.5-100-3")] {
        let statement = format!("with {name} rates oscillate (ours: by more than half of the fair share)");
        claims.push(e.claim(key, statement, Bound::Above(0.5), swings).number(swing(name)));
    }
    claims.push(
        e.claim(
            "lda-still",
            "with LDA-3-1-100-3 they do not, as AIR shrinks (ours: by at most half of it)",
            Bound::AtMost(0.5),
            swings,
        )
        .number(swing("LDA-3-1-100-3")),
    );
    for name in ["LDA-3-1-10-3", "LDA-1-0.5-10-3"] {
        let statement = format!("{name} stays low (ours: below three quarters of the fair share)");
        claims.push(
            e.claim(format!("low-{name}").to_lowercase(), statement, Bound::Below(0.75), parts).number(part(name)),
        );
    }
    for name in ["LDA-3-1-100-3", "LDA-1-0.5-100-3"] {
        let statement = format!("{name} stays high (above the fair share)");
        claims.push(
            e.claim(format!("high-{name}").to_lowercase(), statement, Bound::Above(1.0), parts).number(part(name)),
        );
    }
    for name in ["TPBA-3-1-10-3", "TPBA-3-1-30-3"] {
        let statement = format!("{name} gets the fair share (ours: within 10 %)");
        let bound = Bound::Within(0.9, 1.1);
        claims.push(e.claim(format!("fair-{name}").to_lowercase(), statement, bound, parts).number(part(name)));
    }
    let later: Vec<f64> = of("TPBA-3-1-30-3")
        .iter()
        .zip(of("TPBA-3-1-10-3"))
        .map(|(long, short)| long.fair_again(times) - short.fair_again(times))
        .collect();
    claims.push(
        e.claim(
            "t-running",
            "a longer T_running answers the change later",
            Bound::Above(0.0),
            "time until flow 3 is within 10 % of a quarter for 3 s, TPBA-3-1-30-3 less TPBA-3-1-10-3, s",
        )
        .number(Estimate::of(&later)),
    );
    claims.extend(further_claims(e, times, of));
    let mut points = Vec::new();
    let mut rows = Vec::new();
    let mut section = e.section();
    for (c, runs) in CASES.iter().zip(all.iter().map(|c| &c.runs)) {
        let (swing, part) = (swing(c.name), part(c.name));
        let again = estimate(runs, |r| Some(r.fair_again(times)));
        let lost = estimate(runs, |r| Some(r.lost * 100.0));
        rows.push(vec![c.name.to_owned(), text(part), text(swing), text(again), text(lost)]);
        let x = [];
        points.extend(point(c.name, &x, "share", part));
        points.extend(point(c.name, &x, "swing", swing));
        points.extend(point(c.name, &x, "fair_again_s", again));
        if let Some(first) = runs.first() {
            let part = brief(part);
            let title = format!("{}: flow 3 gets {part} times the fair share before flow 4 starts", c.name);
            section = section.chart(snapshot(title, caption(e, bench.world(), "seed 1, means over 1 s"), first));
        }
    }
    let table = table(
        "The cases of Table 4",
        format!(
            "{seeds} seeds each, mean ± half-width of the 95 % interval; named by T_adapt (s), T_rtcp (s), T_running (s) or AIR_0 \
             (kbit/s), R_f"
        ),
        [
            "case",
            "flow 3 / fair share",
            "widest range of a rate / fair share",
            "at a quarter after flow 4 (s)",
            "lost (%)",
        ],
        rows,
    );
    Ok(e.outcome(points, claims, with_doubts(section, invalid(&all)).table(table)))
}

/// How fast T_adapt lets a rate rise, what lasts in a rate, and what follows flow 4.
fn further_claims<'a>(e: &Experiment, times: Times, of: impl Fn(&str) -> &'a [Rc<Run>]) -> Vec<Claim> {
    let half = (times.change / 2) as usize..times.change as usize;
    let last = ((times.change + times.end) / 2) as usize..times.end as usize;
    let pairs = |a: &str, b: &str, both: &dyn Fn(&Run, &Run) -> Option<f64>| {
        Estimate::of(&of(a).iter().zip(of(b)).filter_map(|(a, b)| both(a, b)).collect::<Vec<f64>>())
    };
    let part = |r: &Run| Some(mean(r.flow("flow 3").get(half.clone())?) / share(r, half.clone()));
    let reaches = |r: &Run, kbps: f64| r.flow("flow 3").iter().position(|x| *x >= kbps).map(|j| (j + 1) as f64);
    let converged = |r: &Run| reaches(r, 0.9 * mean(r.flow("flow 3").get(half.clone())?));
    let quarter = |r: &Run| {
        let means: Vec<f64> = r.four().iter().filter_map(|f| f.get(last.clone())).map(mean).collect();
        Some(4.0 * mean(r.flow("flow 3").get(last.clone())?) / means.iter().sum::<f64>())
    };
    let lasting = |r: &Run| {
        let ranges = r.three().map(|f| f.get(half.clone()).map_or(0.0, |f| numbers::range(&numbers::over(f, LASTING))));
        Some(ranges.into_iter().fold(0.0, f64::max) / share(r, half.clone()))
    };
    let mut claims = vec![
        e.claim(
            "t-adapt-tpba",
            "T_adapt hardly affects TPBA (ours: flow 3's part of the fair share by at most 0.05)",
            Bound::Within(-0.05, 0.05),
            "flow 3's mean rate in the half before flow 4 / the fair share, TPBA-1-0.5-10-3 less TPBA-3-1-10-3",
        )
        .number(pairs("TPBA-1-0.5-10-3", "TPBA-3-1-10-3", &|a, b| Some(part(a)? - part(b)?))),
        e.claim(
            "t-adapt-ldaf",
            "LDAF rises by a slope that is inversely proportional to T_adapt (ours: to a sixth)",
            Bound::Within(2.5, 3.5),
            "time until flow 3 has 200 kbit/s, LDAF-3-1-10-3 / LDAF-1-0.5-10-3",
        )
        .number(pairs("LDAF-3-1-10-3", "LDAF-1-0.5-10-3", &|a, b| Some(reaches(a, 200.0)? / reaches(b, 200.0)?))),
        e.claim(
            "t-adapt-lda",
            "with LDA a smaller T_adapt accelerates the convergence",
            Bound::Below(1.0),
            "time until flow 3 has nine tenths of its mean in the half before flow 4, LDA-1-0.5-100-3 / LDA-3-1-100-3",
        )
        .number(pairs("LDA-1-0.5-100-3", "LDA-3-1-100-3", &|a, b| Some(converged(a)? / converged(b)?))),
        e.claim(
            "tpba-still",
            "with TPBA-3-1-10-3 no rate oscillates in the long term (ours: by at most a quarter of the fair share)",
            Bound::AtMost(0.25),
            "widest range of a flow's rate over 10 s in the half before flow 4, over the fair share",
        )
        .number(estimate(of("TPBA-3-1-10-3"), lasting)),
        e.claim(
            "tpba-after",
            "TPBA-3-1-10-3 reaches a TCP-friendly rate after flow 4 has started (ours: a quarter, within 10 %)",
            Bound::Within(0.9, 1.1),
            "flow 3's mean rate in the last half of the time with flow 4 / a quarter of all",
        )
        .number(estimate(of("TPBA-3-1-10-3"), quarter)),
    ];
    let off = |c: &&Case| Some((0.0, estimate(of(c.name), |r| Some((quarter(r)? - 1.0).abs()))));
    claims.push(
        e.claim(
            "lda-after",
            "no case of LDA does (ours: each is off a quarter by more than 10 %)",
            Bound::Above(0.1),
            "|flow 3's mean rate in the last half of the time with flow 4 / a quarter of all - 1|, the smallest of the cases",
        )
        .number(smallest(CASES.iter().filter(|c| c.scheme == "lda").filter_map(|c| off(&c))).1),
    );
    let long: Vec<_> = (AVERAGE..times.change as usize).step_by(AVERAGE).map(|from| from..from + AVERAGE).collect();
    if long.iter().all(|of| of.end <= times.change as usize) && !long.is_empty() {
        let differ = |r: &Run| {
            let apart = long.iter().map(|of| numbers::apart(&r.three(), of.clone()));
            apart.collect::<Option<Vec<f64>>>()?.into_iter().reduce(f64::max)
        };
        claims.push(
            e.claim(
                "ldaf-50s",
                "with LDAF-1-0.5-10-3 the rates over 50 s of flows 1 to 3 differ by no more than 50 kbit/s",
                Bound::AtMost(50.0),
                "largest difference of two flows' mean rates over 50 s, from 50 s on, kbit/s",
            )
            .because(format!(
                "Of flow 3's packets {} % are lost, so that little or nothing lowers its rate again",
                brief(estimate(of("LDAF-1-0.5-10-3"), |r| Some(r.lost * 100.0)))
            ))
            .number(estimate(of("LDAF-1-0.5-10-3"), differ)),
        );
    }
    claims
}

/// Rates over so many seconds show what lasts: a running period.
const LASTING: usize = 10;
/// "A 50-s period average" [tpba §6.2].
const AVERAGE: usize = 50;

/// The reasons for which runs in real time are not to be trusted.
fn invalid(all: &[Cell<Run>]) -> impl Iterator<Item = &Vec<String>> {
    all.iter().flat_map(|c| &c.runs).map(|r| &r.invalid)
}

fn snapshot(title: String, caption: String, run: &Run) -> Chart {
    let mut chart = Chart::new(title, Axis::new("time", "s"), Axis::new("rate of payload", "kbit/s")).caption(caption);
    let mut order: Vec<(&String, &Vec<f64>)> = run.groups.iter().zip(&run.rates).collect();
    order.sort_by_key(|(group, _)| group.as_str());
    for (group, rates) in order {
        let x = (1..=rates.len()).map(|j| j as f64 * PER_SECOND as f64 * SAMPLE.as_secs_f64()).collect();
        chart = chart.series(Series::line(name(group), group.clone(), x, rates.clone()));
    }
    chart
}

pub(super) fn fig32(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let seeds = seeds(bench, TRIALS, 1);
    let times = Times::of(bench.effort());
    let all = each(e, bench, [with(&base(e), |s| times.set(s))], seeds, MEASURE)?;
    let runs = all.first().map_or(&[][..], |c| &c.runs);
    let half = (times.change / 2) as usize..times.change as usize;
    let part = estimate(runs, |r| r.flow("flow 3").get(half.clone()).map(|x| mean(x) / share(r, half.clone())));
    let f = estimate(runs, |r| numbers::fairness_of_means(&r.three(), half.clone()));
    let claims = vec![
        e.claim(
            "unfair",
            "RAP is far from fair (ours: f of the mean rates below 0.9)",
            Bound::Below(0.9),
            "f of the flows' mean rates in the half before flow 4",
        )
        .because(format!("RAP gets {} times the fair share in that half", brief(part)))
        .number(f),
    ];
    let mut points = Vec::new();
    points.extend(point("rap", &[], "share", part));
    points.extend(point("rap", &[], "f_of_means", f));
    let mut section = e.section();
    if let Some(first) = runs.first() {
        let part = brief(part);
        let title = format!("RAP gets {part} times the fair share before flow 4 starts");
        section = section.chart(snapshot(title, caption(e, bench.world(), "seed 1, means over 1 s"), first));
    }
    Ok(e.outcome(points, claims, with_doubts(section, invalid(&all))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tpba::EXPERIMENTS;

    const TIMES: Times = Times { change: 20, end: 30, alone: 40 };

    /// Flow 3 rises to 400 kbit/s at 8 s, and gives way at 24 s; flow 4 comes at 20 s and has 300 at 23 s.
    fn small() -> Run {
        let flow = |at: &dyn Fn(usize) -> f64| (0..30).map(at).collect::<Vec<f64>>();
        let r3 = flow(&|j| {
            if j < 8 {
                50.0 * j as f64
            } else if j < 24 {
                400.0
            } else {
                300.0
            }
        });
        let r4 = flow(&|j| if j < 20 { 0.0 } else { (75.0 * (j - 19) as f64).min(300.0) });
        let tcp = flow(&|j| (1_200.0 - r3[j] - r4[j]) / 2.0);
        let groups = ["flow 1", "flow 2", "flow 3", "flow 4"].map(str::to_owned).to_vec();
        Run { rates: vec![tcp.clone(), tcp, r3, r4], groups, ..Run::default() }
    }

    #[test]
    fn the_differences_count_from_where_flow_3_or_4_has_as_much_as_a_tcp_flow() {
        let r = small();
        // From 8 s on all have 400.
        assert_eq!((r.crossed(&CASES[0], 20), r.steady(&CASES[0], 20)), (Some(8), Some((0.0, 0.0))));
        // Flow 4 has 300 from 23 s on, where the TCP flows have 250 and flow 3 has 400; all have 300 from 24 s on.
        // Means 314.3, 300, 292.9.
        assert!((r.after_change(TIMES).unwrap() - 150.0 / 7.0).abs() < 1e-9);
        assert!((r.fair_again(TIMES) - 4.0).abs() < 1e-12);
    }

    #[test]
    fn lda_with_a_small_air_0_counts_from_where_its_rate_has_settled() {
        let lda = CASES.iter().find(|c| c.name == "LDA-3-1-10-3").unwrap();
        // 400 from 8 s on: eleven seconds later.
        assert_eq!(small().crossed(lda, 20), Some(18));
        assert_eq!(small().crossed(lda, 18), None);
    }

    #[test]
    fn table_4_has_16_cases_each_of_which_is_a_scenario_that_reads() {
        let e = EXPERIMENTS.iter().find(|e| e.id == "tpba.fig20-28").unwrap();
        for c in &CASES {
            let s = with(&base(e), |s| c.set(s));
            let again = Scenario::parse(&s.to_toml(), "again.toml").unwrap_or_else(|e| panic!("{}: {e}", c.name));
            let flow = again.flows.iter().find(|f| is_media(&f.group)).unwrap();
            assert_eq!((flow.controller.as_str(), flow.tcp.is_some()), (c.scheme, c.scheme == "tpba"), "{}", c.name);
            // T_adapt-T_rtcp-third-R_f is its name.
            let upper = c.scheme.to_uppercase();
            assert_eq!(c.name, format!("{upper}-{}-{}-{}-{}", c.t_adapt, c.t_rtcp, c.third, c.r_f));
        }
        let of = |scheme: &str| CASES.iter().filter(|c| c.scheme == scheme).count();
        assert_eq!((of("tpba"), of("ldaf"), of("lda")), (5, 5, 6));
    }
}
