//! Fairness against the number of TCP flows [tpba Fig. 19], and how long a change takes [tpba Table 3].

use super::numbers;
use super::{
    Adu, PER_SECOND, SAMPLE, Trace, base, caption, doubts, each, estimate, parse, seconds, seeds, trace, with,
};
use crate::figure::{curve, point, table, text};
use crate::{Bench, Bound, Effort, Experiment, Outcome, Tools};
use fairpace_lab::RunError;
use fairpace_lab::stats::{Estimate, mean, short};
use fairpace_lab::study::{Job, Measure};
use fairpace_report::{Axis, Chart, Section};
use fairpace_scenario::{Count, Scenario};
use serde::{Deserialize, Serialize};
use std::rc::Rc;

// --- Fig. 19 -------------------------------------------------------------------------------------------------------

/// Topology 2's scenario, for its path.
const TOPOLOGY_2: (&str, &str) =
    (include_str!("../../../../scenarios/papers/tpba-fig14-18.toml"), "scenarios/papers/tpba-fig14-18.toml");
/// N_tcp.
const MOST: u64 = 8;
/// Where TCP is in TPBA's place, f counts from here on, s: as long as a first probing period usually takes.
const SETTLED: usize = 4;

/// A line of the figure.
struct Kind {
    key: &'static str,
    name: &'static str,
    colour: &'static str,
    second: bool,
    /// TCP in TPBA's place if there is none.
    adu: Option<Adu>,
}

const KINDS: [Kind; 6] = [
    Kind { key: "topology-1-adu1", name: "Topology 1, ADU1", colour: "tpba", second: false, adu: Some(Adu::One) },
    Kind { key: "topology-1-adu2", name: "Topology 1, ADU2", colour: "rcs2", second: false, adu: Some(Adu::Two) },
    Kind { key: "topology-1-tcp", name: "Topology 1, TCP alone", colour: "tcp", second: false, adu: None },
    Kind { key: "topology-2-adu1", name: "Topology 2, ADU1", colour: "rap", second: true, adu: Some(Adu::One) },
    Kind { key: "topology-2-adu2", name: "Topology 2, ADU2", colour: "rap-fine", second: true, adu: Some(Adu::Two) },
    Kind { key: "topology-2-tcp", name: "Topology 2, TCP alone", colour: "tcp-newreno", second: true, adu: None },
];

impl Kind {
    fn scenario(&self, e: &Experiment, n: u64) -> Scenario {
        with(&base(e), |s| {
            if self.second {
                let other = parse(TOPOLOGY_2.0, TOPOLOGY_2.1);
                s.path = other.path.clone();
                for flow in &mut s.flows {
                    let rtt = s.path.rtt.clone();
                    flow.initial_rtt = flow.initial_rtt.take().map(|_| rtt);
                }
            }
            s.flows.iter_mut().filter(|f| f.group == "flow 1").for_each(|f| f.count = Count::new(n));
            match self.adu {
                Some(adu) => adu.set(s),
                None => {
                    let tcp = s.flows.iter().find(|f| f.group == "flow 1").cloned();
                    for flow in s.flows.iter_mut().filter(|f| super::is_media(&f.group)) {
                        if let Some(tcp) = &tcp {
                            *flow = fairpace_scenario::FlowSpec {
                                name: flow.name.clone(),
                                group: flow.group.clone(),
                                count: Count::new(1),
                                ..tcp.clone()
                            };
                        }
                    }
                }
            }
        })
    }
}

/// f after the first probing period: its mean over sampling periods, and that of the mean rates.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
struct After {
    f: Option<f64>,
    f_of_means: Option<f64>,
    /// Why a run in real time is not to be trusted.
    invalid: Vec<String>,
}

const AFTER: Measure<After> = Measure { name: "tpba fairness", of: |job| Ok(after(&trace(job)?)) };

fn after(trace: &Trace) -> After {
    let first = trace.periods().iter().find(|p| p.state == "running").map(|p| p.from.div_ceil(PER_SECOND));
    let probed = trace.states.iter().any(|s| s == "probing");
    let Some(from) = first.or((!probed).then_some(SETTLED)) else {
        return After { invalid: trace.invalid.clone(), ..After::default() };
    };
    let rates = trace.each_second();
    let end = rates.iter().map(Vec::len).min().unwrap_or(0);
    let flows = super::slices(&rates);
    let each: Vec<f64> = numbers::fairness(&flows, from.min(end)..end).into_iter().flatten().collect();
    let f_of_means = numbers::fairness_of_means(&flows, from.min(end)..end);
    After { f: (!each.is_empty()).then(|| mean(&each)), f_of_means, invalid: trace.invalid.clone() }
}

pub(super) fn fig19(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let seeds = seeds(bench, 10, 1);
    let quick = bench.effort() == Effort::Quick;
    let shown = |k: &&Kind| !quick || k.adu != Some(Adu::One);
    let counts: Vec<u64> = (1..=MOST).filter(|n| !quick || [1, 4, MOST].contains(n)).collect();
    let places: Vec<(&Kind, u64)> =
        KINDS.iter().filter(shown).flat_map(|k| counts.iter().map(move |n| (k, *n))).collect();
    let all = each(e, bench, places.iter().map(|(k, n)| k.scenario(e, *n)), seeds, AFTER)?;
    let invalid: Vec<Vec<String>> = all.iter().flat_map(|c| &c.runs).map(|r| r.invalid.clone()).collect();
    let of = |key: &str, get: Get| {
        let here = places.iter().zip(&all).filter(|((k, _), _)| k.key == key);
        here.map(|((_, n), cell)| (*n as f64, estimate(&cell.runs, get))).collect::<Vec<(f64, Option<Estimate>)>>()
    };
    let mut claims = Vec::new();
    let mut points = Vec::new();
    // Each seed has a line of its own, so that the slope has an interval.
    let slopes = |key: &str| {
        let runs: Vec<(f64, &Vec<Rc<After>>)> = places
            .iter()
            .zip(&all)
            .filter(|((k, _), _)| k.key == key)
            .map(|((_, n), c)| (*n as f64, &c.runs))
            .collect();
        let line = |seed: usize| runs.iter().filter_map(|(n, r)| Some((*n, r.get(seed)?.f?))).collect::<Vec<_>>();
        (0..seeds).filter_map(|seed| numbers::slope(&line(seed))).collect::<Vec<f64>>()
    };
    let kinds: Vec<&Kind> = KINDS.iter().filter(shown).collect();
    for kind in kinds.iter().filter(|k| k.adu.is_some()) {
        let alone = if kind.second { "topology-2-tcp" } else { "topology-1-tcp" };
        let beyond: Vec<f64> = slopes(kind.key).iter().zip(slopes(alone)).map(|(a, b)| a - b).collect();
        claims.push(
            e.claim(
                format!("{}-beyond", kind.key),
                format!("{}: no more than f of TCP alone does (ours: 0.01 per flow)", kind.name),
                Bound::Within(-0.01, 0.01),
                "slope of f less that with one more TCP flow in TPBA's place, seed by seed",
            )
            .number(Estimate::of(&beyond)),
        );
        claims.push(
            e.claim(
                kind.key,
                format!(
                    "{}: f does not depend on the number of TCP flows (ours: by no more than 0.01 per flow)",
                    kind.name
                ),
                Bound::Within(-0.01, 0.01),
                "slope of f against the number of TCP flows, by least squares for each seed",
            )
            .because(FIG19_NOTE)
            .number(Estimate::of(&slopes(kind.key))),
        );
    }
    for (kind, get) in kinds.iter().flat_map(|k| GETS.map(|g| (k, g))) {
        for (n, estimate) in of(kind.key, get.1) {
            points.extend(point(kind.key, &[("tcp_flows", n)], get.0, estimate));
        }
    }
    let mut chart = Chart::new(
        "f after the first probing period, against the number of TCP flows",
        Axis::new("TCP flows beside flow 3", ""),
        Axis::new("fairness f", "").range(0.0, 1.0),
    )
    .caption(caption(
        e,
        bench.world(),
        &format!("{seeds} seeds per point; means of f over periods of 1 s; bars are 95 % intervals"),
    ));
    for kind in &kinds {
        let mut series = curve(kind.name, kind.colour, of(kind.key, |a| a.f));
        series.hidden = kind.adu.is_none();
        chart = chart.series(series);
    }
    let least = |topology: bool| {
        let those = kinds.iter().filter(|k| k.second == topology && k.adu.is_some());
        let f = those.flat_map(|k| of(k.key, |a| a.f)).filter_map(|(_, e)| Some(e?.mean));
        f.reduce(f64::min).map_or("–".to_owned(), short)
    };
    chart.title =
        format!("With 1 to 8 TCP flows f is at least {} (Topology 1), {} (Topology 2)", least(false), least(true));
    let mut tables = Vec::new();
    for (title, get) in [("f over periods of 1 s", GETS[0].1), ("f of the mean rates", GETS[1].1)] {
        let mut head = vec!["TCP flows".to_owned()];
        head.extend(kinds.iter().map(|k| k.name.to_owned()));
        let columns: Vec<Vec<(f64, Option<Estimate>)>> = kinds.iter().map(|k| of(k.key, get)).collect();
        let row = |n: usize| {
            let cells = columns.iter().map(|c| text(c.get(n).and_then(|x| x.1)));
            std::iter::once(counts[n].to_string()).chain(cells).collect()
        };
        tables.push(table(
            title.to_owned(),
            format!("from the first running period on, {seeds} seeds, mean ± half-width of the 95 % interval"),
            head,
            (0..counts.len()).map(row),
        ));
    }
    let section = doubts(&invalid).into_iter().fold(e.section(), Section::text).chart(chart);
    Ok(e.outcome(points, claims, tables.into_iter().fold(section, Section::table)))
}

/// A number of a run.
type Get = fn(&After) -> Option<f64>;

const GETS: [(&str, Get); 2] = [("f", |a| a.f), ("f_of_means", |a| a.f_of_means)];

const FIG19_NOTE: &str = "With one more TCP flow in TPBA's place f falls too: from five flows on their windows overflow the queue \
                          (Topology 1), and what TCP gets in one second differs";

// --- Table 3 -------------------------------------------------------------------------------------------------------

/// Rows of 400 ms [tpba §6.1].
const PER_RATE: usize = 4;
const TABLE3_NOTE: &str = "A round trip of two and three windows of 16 KiB through 1.2 Mbit/s is 235 and 350 ms: a period of 400 ms \
                           holds one window of a flow or parts of two, and rates over it differ by more than that";
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
    let cases = [
        ("t-pr", "T_pr, flow 2 starts", "2.0 s, at most 2.8 s"),
        ("t-pi", "T_pi, flow 2 ends", "2.8 s, at most 3.2 s"),
    ];
    let all = each(e, bench, [base(e), ends], seeds, STABLE)?;
    let mut claims = Vec::new();
    let mut points = Vec::new();
    let mut rows = Vec::new();
    let invalid: Vec<Vec<String>> = all.iter().flat_map(|c| &c.runs).map(|r| r.1.invalid.clone()).collect();
    let mut section = doubts(&invalid).into_iter().fold(e.section(), Section::text);
    for ((key, name, paper), runs) in cases.iter().zip(all.iter().map(|c| &c.runs)) {
        for (i, width) in WIDTHS.iter().enumerate() {
            let time = estimate(runs, |r| r.0[i]);
            let most = runs.iter().filter_map(|r| r.0[i]).reduce(f64::max);
            claims.push(
                e.claim(format!("{key}-{width}"), format!("{name}: its rate is stable to {width} kbit/s after 2 to 3 s (ours: 1 to 4 s)"), Bound::Within(1.0, 4.0), "time until three rates over 400 ms are that near each other and the level that the rate comes to, s").because(TABLE3_NOTE).number(time.filter(|t| t.n == runs.len())),
            );
            points.extend(point(key, &[("width_kbps", *width)], "stable_after_s", time));
            let stable = format!("{} of {}", time.map_or(0, |t| t.n), runs.len());
            let most = most.map_or("–".to_owned(), short);
            rows.push(vec![(*name).to_owned(), width.to_string(), text(time), most, stable, (*paper).to_owned()]);
        }
        if let Some(first) = runs.first() {
            let stable = match estimate(runs, |r| r.0[1]) {
                Some(t) if t.n == runs.len() => format!("stable to 60 kbit/s after {} s", short(t.mean)),
                t => format!("stable to 60 kbit/s in {} of {} runs", t.map_or(0, |t| t.n), runs.len()),
            };
            let title = format!("{name} at 10 s: flow 3's rate is {stable}");
            let caption = caption(e, bench.world(), "seed 1, means over 400 ms; flow 3 stays in the probing period");
            section = section.chart(super::rates_chart(title, caption, &first.1, PER_RATE));
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
    use crate::tpba::{EXPERIMENTS, Line};

    #[test]
    fn f_counts_from_the_first_running_period_on() {
        // Unequal for 3 s of probing, equal from then on.
        let line = |early: f64| {
            let kbps = (0..100).map(|row| if row < 30 { early } else { 500.0 }).collect();
            Line { group: "flow".to_owned(), kbps }
        };
        let states = (0..100).map(|row| if row < 25 { "probing" } else { "running" }).map(str::to_owned).collect();
        let trace = Trace { flows: vec![line(100.0), line(900.0)], states, ..Trace::default() };
        assert_eq!(after(&trace), After { f: Some(1.0), f_of_means: Some(1.0), invalid: Vec::new() });
        // One that never runs has no f.
        let never = Trace { states: vec!["probing".to_owned(); 100], ..trace };
        assert_eq!(after(&never), After::default());
    }

    #[test]
    fn each_line_of_fig_19_is_a_scenario_that_reads() {
        let e = EXPERIMENTS.iter().find(|e| e.id == "tpba.fig19").unwrap();
        for kind in &KINDS {
            let s = kind.scenario(e, 8);
            let again = Scenario::parse(&s.to_toml(), "again.toml").unwrap_or_else(|e| panic!("{}: {e}", kind.key));
            let flows: u64 = again.flows.iter().map(|f| f.count.get()).sum();
            let rtt = if kind.second { 160 } else { 12 };
            assert_eq!((flows, again.path.rtt.get().as_millis()), (9, rtt), "{}", kind.key);
            assert_eq!(again.flows.iter().any(|f| f.controller == "tpba"), kind.adu.is_some(), "{}", kind.key);
        }
    }
}
