//! Many flows of three classes on a lightly loaded satellite [qsd §4, Table II]: the delay of television from its start
//! (Fig. 8), the delays of each class in its first 30 s (Fig. 9), and what the transmit buffers lose (Table III).
//! All three show the same runs.
//!
//! A long run is split into seeds. Each begins empty and counts only what comes after a warm-up of three mean lengths
//! of the longest flows; the same seed has the same flows, at the same terminals and instants, under each strategy.
//! Every number is the mean over the seeds with its interval.
//!
//! *Readings.* Fig. 8 compares strategies by what is produced in a flow's first 10 s, which is where they differ. The
//! fractions of Table III are of everything that a class produced (the flows' whole lives); of what flows produced in
//! their first 30 s, the span of Fig. 9, they are given beside. "Hardly", "far" and "midway" have bounds of ours.

pub(super) mod fig9;
mod start;
pub(super) mod table3;

use self::start::{ClassStart, Delays, STEP_S, STEPS, Start, WATCH, YOUTH_S};
use crate::builtin::{base, time_ms, with};
use crate::figure::{Numbers, brief, counted, curve, point, scaled};
use crate::{Bench, Bound, Claim, Experiment, Outcome, Tools};
use fairpace_lab::RunError;
use fairpace_lab::stats::{Estimate, short};
use fairpace_lab::study::{Case, Measurements, Sampling, Study};
use fairpace_report::{Axis, Chart, Series, Style};
use fairpace_scenario::{AgentKind, Count, Hold, SatelliteQuickStart, Scenario, Terminals};
use std::rc::Rc;

/// Seeds of 5,000 s: 45,000 s have about 45,000 calls, 1,125 video calls and 375 of television.
const SEEDS: usize = 9;
/// As many as the paper's 100,000, 2,500 and 833.
const FULL_SEEDS: usize = 21;
/// Phases of the super-frame at which one flow alone begins.
const PHASES: u64 = 41;
/// The age until which Fig. 8's strategies are compared: by the mean delay of a flow's data produced until then.
const EARLY_S: f64 = 10.0;

/// A strategy for a flow's start.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Strategy {
    /// Key in points and colours.
    key: &'static str,
    /// Name in legends.
    name: &'static str,
    agent: AgentKind,
    /// T_q, where there is one.
    hold_ms: Option<u64>,
    /// Fractions of Table III: in all, VoIP, video, IPTV.
    paper: [f64; 4],
}

const NONE: Strategy = Strategy {
    key: "no-qs",
    name: "no Quick-Start",
    agent: AgentKind::None,
    hold_ms: None,
    paper: [0.11, 0.11, 0.11, 0.025],
};
const QS: Strategy =
    Strategy { key: "qs", name: "QS", agent: AgentKind::Qs, hold_ms: None, paper: [0.044, 0.045, 0.044, 0.0] };
const QSD_0: Strategy = Strategy {
    key: "qsd-0",
    name: "QSD, T_q = 0",
    agent: AgentKind::Qsd,
    hold_ms: Some(0),
    paper: [0.036, 0.037, 0.036, 0.0],
};
const QSD_OPT: Strategy = Strategy {
    key: "qsd-opt",
    name: "QSD, T_q = 0.52 s",
    agent: AgentKind::Qsd,
    hold_ms: Some(520),
    paper: [0.020, 0.020, 0.020, 0.0],
};
const QSD_MAX: Strategy = Strategy {
    key: "qsd-max",
    name: "QSD, T_q = 1.23 s",
    agent: AgentKind::Qsd,
    hold_ms: Some(1_230),
    paper: [0.012, 0.012, 0.012, 0.0],
};

/// In the order of Table III.
const STRATEGIES: [Strategy; 5] = [NONE, QS, QSD_0, QSD_OPT, QSD_MAX];

/// The classes by their groups, and their names here.
const CLASSES: [(&str, &str); 3] = [("voip", "VoIP"), ("video-call", "video"), ("iptv", "IPTV")];
const VOIP: &str = "voip";
const VIDEO: &str = "video-call";
const IPTV: &str = "iptv";

impl Strategy {
    fn apply(&self, scenario: &Scenario) -> Scenario {
        with(scenario, |s| {
            if let Some(satellite) = &mut s.satellite {
                let hold = self.hold_ms.map(|ms| Hold::Time(time_ms(ms as f64)));
                satellite.quick_start =
                    SatelliteQuickStart { agent: self.agent, hold, ..SatelliteQuickStart::default() };
            }
            if self.agent == AgentKind::None {
                for flow in &mut s.flows {
                    flow.quick_start = None;
                }
            }
        })
    }
}

/// A number of one run.
type Number<'f> = &'f dyn Fn(&Start) -> Option<f64>;

/// Every strategy's runs, one per seed.
struct Runs(Measurements<Start>);

impl Runs {
    fn measure(e: &Experiment, bench: &mut Bench<'_>) -> Result<Runs, RunError> {
        let base = base(e);
        let seeds = bench.seeds(SEEDS, FULL_SEEDS).max(1);
        let cases = STRATEGIES.iter().map(|s| Case::new(s.key, 0.0, s.apply(&base))).collect();
        Ok(Runs(counted(e, bench, WATCH, cases, seeds)?))
    }

    fn of(&self, strategy: &Strategy) -> &[Rc<Start>] {
        self.0.runs(strategy.key, 0.0)
    }

    /// None if one run has no such number.
    fn estimate(&self, strategy: &Strategy, number: Number<'_>) -> Option<Estimate> {
        let values: Option<Vec<f64>> = self.of(strategy).iter().map(|run| number(run)).collect();
        Estimate::of(&values?)
    }

    /// `combine(a, b)` seed by seed; none if one run has no such number.
    fn paired(&self, a: &Strategy, b: &Strategy, number: Number<'_>, combine: fn(f64, f64) -> f64) -> Option<Estimate> {
        let pairs = self.of(a).iter().zip(self.of(b));
        let values: Option<Vec<f64>> = pairs.map(|(a, b)| Some(combine(number(a)?, number(b)?))).collect();
        Estimate::of(&values?)
    }

    /// Flows that count, under one strategy: the others have the same.
    fn flows(&self, class: &str) -> u64 {
        self.of(&NONE).iter().filter_map(|run| class_of(run, class)).map(|c| c.flows).sum()
    }

    fn caption(&self, e: &Experiment) -> String {
        let seeds = self.of(&NONE).len();
        let flows = CLASSES.map(|(class, name)| format!("{} {name}", self.flows(class))).join(", ");
        format!(
            "{}; {seeds} seeds; per strategy {flows} flows; intervals are 95 % (Student's t over the seeds)",
            e.file
        )
    }
}

/// A curve without marks, its interval cut to what there can be.
fn line(strategy: &Strategy, of: impl IntoIterator<Item = (f64, Option<Estimate>)>, [least, most]: [f64; 2]) -> Series {
    let mut line = Series { style: Style::Line, ..curve(strategy.name, strategy.key, of) };
    line.lo.iter_mut().for_each(|low| *low = low.max(least));
    line.hi.iter_mut().for_each(|high| *high = high.min(most));
    line
}

fn class_of<'r>(run: &'r Start, class: &str) -> Option<&'r ClassStart> {
    run.classes.iter().find(|c| c.name == class)
}

/// Mean delay of what television produces until [`EARLY_S`], in seconds.
fn early(run: &Start) -> Option<f64> {
    class_of(run, IPTV)?.delays_until(EARLY_S).mean_s()
}

fn delays(run: &Start, class: &str) -> Option<Delays> {
    Some(class_of(run, class)?.delays_until(YOUTH_S))
}

pub(super) fn fig8(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let runs = Runs::measure(e, bench)?;
    let alone = Alone::measure(e, bench)?;
    let claims = fig8_claims(e, &runs, &alone);
    let caption = runs.caption(e);
    let mut section = e.section().text(
        "End-to-end delay of a packet: from when the application produced it to when it came, with its time in the \
         transmit buffer. Packets are told apart by their flow's age when they were produced.",
    );
    let mut points = Vec::new();
    for (q, word) in [(0.5, "median"), (0.95, "95th percentile"), (0.05, "5th percentile")] {
        let at_peak = |s: &Strategy| brief(runs.estimate(s, &|run| peak(run, q)));
        let title = format!(
            "Television's delay ({word}) reaches {} s without Quick-Start, {} s with QS, {} s with QSD and T_q = 0",
            at_peak(&NONE),
            at_peak(&QS),
            at_peak(&QSD_0)
        );
        let mut chart = Chart::new(title, Axis::new("age of the flow", "s"), Axis::new("end-to-end delay", "s"));
        for strategy in &STRATEGIES {
            let at = |step: usize| {
                let age_s = (step as f64 + 0.5) * STEP_S;
                (age_s, runs.estimate(strategy, &|run| class_of(run, IPTV)?.by_age.get(step)?.quantile_s(q)))
            };
            for (age_s, estimate) in (0..STEPS).map(at) {
                let metric = format!("e2ed_p{:02}_s", (q * 100.0).round());
                points.extend(point(strategy.key, &[("age_s", age_s)], metric, estimate));
            }
            chart = chart.series(line(strategy, (0..STEPS).map(at), [0.0, f64::INFINITY]));
        }
        section = section.chart(chart.caption(&caption));
    }
    let mut numbers = Numbers::default();
    for s in &STRATEGIES {
        let all = [
            ("e2ed_first_10s_s", runs.estimate(s, &early)),
            ("", runs.estimate(s, &|run| peak(run, 0.5))),
            ("", runs.estimate(s, &|run| peak(run, 0.95))),
            ("", runs.estimate(s, &settled)),
            ("e2ed_first_10s_alone_s", alone.mean_s(s).map(Estimate::exact)),
        ];
        numbers.row([s.name], (s.key, &[]), &all);
    }
    let head = ["strategy", "mean of the first 10 s (s)", "peak of the median (s)", "peak of the 95th percentile (s)"];
    let more = ["mean from 20 to 30 s (s)", "one flow alone: mean of the first 10 s (s)"];
    let caption = format!("{caption}; alone: all of {PHASES} phases of the super-frame, without spread");
    let table = numbers.table("Delay of television", caption, head.into_iter().chain(more));
    points.extend(numbers.points);
    Ok(e.outcome(points, claims, section.table(table)))
}

/// The largest quantile of television's delay over its age.
fn peak(run: &Start, q: f64) -> Option<f64> {
    let all = class_of(run, IPTV)?.by_age.iter().filter_map(|d| d.quantile_s(q));
    all.max_by(f64::total_cmp)
}

/// Television's mean delay when its start is over.
fn settled(run: &Start) -> Option<f64> {
    let mut late = Delays::default();
    for step in class_of(run, IPTV)?.by_age.iter().skip((20.0 / STEP_S) as usize) {
        late.add(step);
    }
    late.mean_s()
}

/// One television flow on an idle satellite, in every phase.
struct Alone(Measurements<Start>);

impl Alone {
    fn measure(e: &Experiment, bench: &mut Bench<'_>) -> Result<Alone, RunError> {
        let base = with(&base(e), |s| {
            s.flows.retain(|f| f.group == IPTV);
            (s.warmup, s.duration) = (time_ms(0.0), time_ms(1e3 * (YOUTH_S + 20.0)));
            for flow in &mut s.flows {
                flow.arrivals = None;
                flow.count = Count::new(1);
                flow.terminals = Some(Terminals::Fixed([1, 2]));
            }
        });
        let mut cases = Vec::new();
        for strategy in &STRATEGIES {
            for phase in 0..PHASES {
                let start_ms = 820.36 * phase as f64 / PHASES as f64;
                let scenario = with(&strategy.apply(&base), |s| {
                    for flow in &mut s.flows {
                        flow.start = time_ms(start_ms);
                    }
                });
                cases.push(Case::new(strategy.key, phase as f64, scenario));
            }
        }
        let name = format!("{} alone", e.id);
        Ok(Alone(Study { name, measure: WATCH, cases, sampling: Sampling::Exactly(vec![1]) }.run(bench)?))
    }

    /// As [`early`], over all phases.
    fn mean_s(&self, strategy: &Strategy) -> Option<f64> {
        let runs = self.0.of(strategy.key).flat_map(|cell| &cell.runs);
        Estimate::of(&runs.filter_map(|run| early(run)).collect::<Vec<f64>>()).map(|e| e.mean)
    }
}

/// The claims of Fig. 8, from whatever was measured.
fn fig8_claims(e: &Experiment, runs: &Runs, alone: &Alone) -> Vec<Claim> {
    let carried = |run: &Start| Some(run.carried_bps * 1e-6);
    let later = |a, b| runs.paired(a, b, &early, |a, b| a - b);
    let over = |a, b| runs.paired(a, b, &early, |a, b| a / b);
    let gain_alone = alone.mean_s(&QS).zip(alone.mean_s(&QSD_OPT)).map(|(qs, qsd)| qs - qsd);
    let gain = later(&QS, &QSD_OPT).and_then(|gain| Some(scaled(gain, 1.0 / gain_alone.filter(|g| *g > 0.0)?)));
    let three = runs.of(&QSD_0).iter().zip(runs.of(&QSD_OPT)).zip(runs.of(&QSD_MAX));
    let place = |low: f64, mid: f64, high: f64| (mid - low) / (high - low);
    let places = three.map(|((a, b), c)| Some(place(early(a)?, early(b)?, early(c)?)));
    let midway = places.collect::<Option<Vec<f64>>>().and_then(|v| Estimate::of(&v));
    let third = "the flows carry about 2 Mbit/s, a third of the capacity (the set-up; ours: 1.7 to 2.1)";
    let far_below = "the delay of television with QS is far below that without (ours: at most half)";
    let less = "QSD (T_q = 0.52 s) improves on QS by less than with one flow";
    let alone_s = gain_alone.map_or("–".to_owned(), short);
    let gains = format!("(QS - QSD) among others / (QS - QSD) alone, {MEAN}; alone it is {alone_s} s");
    let no_hold = "among others not to delay the request (T_q = 0) is better than T_q,opt";
    let between = "T_q,opt is midway between T_q = 0 and T_q,max (ours: from a quarter to three quarters of the way)";
    let way = format!("(T_q = 0.52 s - T_q = 0) / (T_q = 1.23 s - T_q = 0), {MEAN}");
    vec![
        e.claim("load", third, Bound::Within(1.7, 2.1), "data received, Mbit/s, with QS")
            .number(runs.estimate(&QS, &carried)),
        e.claim("qs-far-below-none", far_below, Bound::AtMost(0.5), format!("{MEAN}, QS / no Quick-Start"))
            .number(over(&QS, &NONE)),
        e.claim("qsd-below-qs", "QSD (T_q = 0) is below QS", Bound::Below(1.0), format!("{MEAN}, QSD / QS"))
            .number(over(&QSD_0, &QS)),
        e.claim("gain-smaller-than-alone", less, Bound::Below(1.0), gains).number(gain),
        e.claim("hold-0-below-opt", no_hold, Bound::Above(0.0), format!("{MEAN}, T_q = 0.52 s - T_q = 0, in s"))
            .number(later(&QSD_OPT, &QSD_0)),
        e.claim(
            "hold-0-below-max",
            "and better than T_q,max",
            Bound::Above(0.0),
            format!("{MEAN}, T_q = 1.23 s - T_q = 0, in s"),
        )
        .number(later(&QSD_MAX, &QSD_0)),
        e.claim("opt-midway", between, Bound::Within(0.25, 0.75), way).number(midway),
    ]
}

/// The number of Fig. 8's claims.
const MEAN: &str = "mean delay of the first 10 s";

#[cfg(test)]
mod tests {
    use super::fig9::fig9;
    use super::table3::{Counting, table3, table3_claims};
    use super::*;
    use crate::Effort;
    use crate::qsd::EXPERIMENTS;
    use fairpace_lab::Hooks;

    /// An experiment with more flows in less time: what is compared here shows in minutes.
    fn small(id: &str) -> Experiment {
        let e = EXPERIMENTS.iter().find(|e| e.id == id).unwrap();
        let text = e
            .scenario
            .replace("duration = \"5900 s\"", "duration = \"200 s\"")
            .replace("warmup = \"900 s\"", "warmup = \"40 s\"")
            .replace("arrivals = {}", "arrivals = { interval = \"8 s\", length = \"40 s\" }");
        assert!(text.contains("200 s") && text.contains("40 s") && !text.contains("arrivals = {}"));
        Experiment { scenario: text.leak(), ..*e }
    }

    #[test]
    fn the_three_show_the_same_runs_and_each_is_made_once() {
        let mut bench = Bench::new(Hooks::default(), Effort::Seeds(1));
        for (id, run) in [("qsd.fig9", fig9 as fn(&_, &mut _, &mut _) -> _), ("qsd.table3", table3)] {
            let outcome: Outcome = run(&small(id), &mut bench, &mut Tools::default()).unwrap();
            assert_eq!(bench.simulated(), STRATEGIES.len(), "{id}");
            assert!(!outcome.points.is_empty() && !outcome.section.tables.is_empty(), "{id}");
            let mut ids: Vec<&str> = outcome.claims.iter().map(|c| c.id.as_str()).collect();
            assert!(ids.iter().all(|id| id.starts_with(&outcome.experiment)), "{ids:?}");
            ids.sort_unstable();
            ids.dedup();
            assert_eq!(ids.len(), outcome.claims.len(), "{id}: two claims have one id");
            assert!(!serde_json::to_string(&outcome).unwrap().contains("NaN"), "{id}");
            for chart in &outcome.section.charts {
                assert!(!chart.title.contains("NaN"), "{}", chart.title);
                assert_eq!(chart.series.iter().filter(|s| s.x.len() > 10).count(), STRATEGIES.len(), "{}", chart.title);
            }
        }
        // Fig. 8 has those, and one flow alone.
        let outcome = fig8(&small("qsd.fig8"), &mut bench, &mut Tools::default()).unwrap();
        assert_eq!(bench.simulated(), STRATEGIES.len() * (1 + PHASES as usize));
        assert!(outcome.claims.iter().all(|c| c.measured.is_some()), "{:#?}", outcome.claims);
    }

    #[test]
    fn flows_are_the_same_under_each_strategy_and_quick_start_shortens_the_start_of_television() {
        let mut bench = Bench::new(Hooks::default(), Effort::Seeds(2));
        let runs = Runs::measure(&small("qsd.fig8"), &mut bench).unwrap();
        for (class, _) in CLASSES {
            let flows: Vec<u64> =
                STRATEGIES.iter().map(|s| runs.of(s).iter().map(|r| class_of(r, class).unwrap().flows).sum()).collect();
            assert!(flows[0] > 10 && flows.iter().all(|n| *n == flows[0]), "{class}: {flows:?}");
        }
        for run in STRATEGIES.iter().flat_map(|s| runs.of(s)) {
            assert_eq!(run.queue_drops, 0);
            for c in &run.classes {
                // Nothing is faster than T_p, 252 ms, here known to 1.6 %.
                let fastest = c.delays_until(YOUTH_S).quantile_s(0.0).unwrap();
                assert!((0.248..0.28).contains(&fastest), "{}: {fastest}", c.name);
                assert!(c.young_sent.iter().zip(&c.young_produced).all(|(sent, produced)| sent <= produced));
                assert!(c.produced > c.overflowed);
            }
        }
        let mean = |s: &Strategy| runs.estimate(s, &early).unwrap().mean;
        assert!(mean(&QS) < mean(&NONE) && mean(&QSD_0) < mean(&NONE), "{} {}", mean(&QS), mean(&NONE));
    }

    #[test]
    fn a_claim_fails_where_two_strategies_change_places() {
        let mut bench = Bench::new(Hooks::default(), Effort::Seeds(2));
        let mut runs = Runs::measure(&small("qsd.table3"), &mut bench).unwrap();
        let verdict = |runs: &Runs| {
            let claims = table3_claims(&Experiment { id: "mini", ..small("qsd.table3") }, runs, Counting::All);
            let claim = claims.iter().find(|c| c.id == "mini/no-qs-above-qs").unwrap();
            (claim.holds, claim.measured.unwrap())
        };
        let (holds, by) = verdict(&runs);
        let [none, qs, ..] = &mut runs.0.cells[..] else { panic!() };
        std::mem::swap(&mut none.runs, &mut qs.runs);
        assert_eq!(verdict(&runs), (!holds, -by));
    }
}
