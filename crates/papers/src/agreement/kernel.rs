//! The scenarios of `scenarios/worlds` in the simulator and, with `--world emu`, with the kernel's TCP and the drivers of the
//! wire: six that the simulator was compared with before, and six unlike them.

use super::compare::{Deviation, Theirs, median};
use crate::builtin::{ours, with};
use crate::figure::{Abscissa, Numbers, curve, with_doubts};
use crate::{Bench, Bound, Claim, Effort, Experiment, Outcome, Tools};
use fairpace_lab::RunError;
use fairpace_lab::metrics::GroupSummary;
use fairpace_lab::stats::{Estimate, MAX_SEEDS};
use fairpace_lab::study::{Case, Cell, Job, Measure, Measurements, QUICK_SEEDS, Sampling, Study};
use fairpace_lab::worlds::as_the_kernel;
use fairpace_report::{Axis, Chart, Series, Style};
use fairpace_scenario::{Record, Scenario, Time};
use serde::{Deserialize, Serialize};

/// The seeds in real time.
const TRIALS: usize = 3;
/// A flow's throughput may be so far from the kernel's.
const APART: f64 = 0.05;

macro_rules! world {
    ($name:literal) => {
        ($name, include_str!(concat!("../../../../scenarios/worlds/", $name, ".toml")))
    };
}

const SCENARIOS: [(&str, &str); 12] = [
    world!("clean"),
    world!("lossy"),
    world!("geo"),
    world!("small-buffer"),
    world!("red"),
    world!("trace"),
    world!("fq-codel"),
    world!("codel"),
    world!("cross"),
    world!("ecn"),
    world!("bursts"),
    world!("many"),
];

/// One group of flows of a run, after the warm-up.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
struct Group {
    name: String,
    /// Per flow.
    kbps: f64,
    loss: f64,
    owd_p50_ms: Option<f64>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
struct Seen {
    groups: Vec<Group>,
    invalid: Vec<String>,
}

impl Seen {
    fn group(&self, name: &str) -> Option<&Group> {
        self.groups.iter().find(|g| g.name == name)
    }
}

const MEASURE: Measure<Seen> = Measure { name: "agreement kernel", of: see };

fn see(job: &Job<'_>) -> Result<Seen, RunError> {
    let run = job.run(Record::default())?.summary;
    let group = |g: &GroupSummary| Group {
        name: g.name.clone(),
        kbps: g.throughput_bps / 1e3,
        loss: g.loss_ratio.unwrap_or_default(),
        owd_p50_ms: g.owd_ms.map(|d| d.p50),
    };
    Ok(Seen { groups: run.groups.iter().map(group).collect(), invalid: run.emulated.map_or(Vec::new(), |e| e.invalid) })
}

/// The scenario, as it is in its folder.
fn scenario((name, text): (&str, &str)) -> Scenario {
    let file = format!("scenarios/worlds/{name}.toml");
    let recorded = r#"trace = { file = "../traces/staircase.mahimahi" }"#;
    Scenario::parse(&text.replace(recorded, &staircase()), &file).unwrap_or_else(|e| ours(&e))
}

/// The recording's rates as steps, since the program has no file beside it.
fn staircase() -> String {
    let step = |second: usize| {
        let mbps = [1, 4, 2, 8][second % 4];
        format!("{{ at = \"{second} s\", rate = \"{mbps} Mbit/s\" }}")
    };
    format!("rate = [{}]", (0..60).map(step).collect::<Vec<_>>().join(", "))
}

pub(super) fn run(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let effort = bench.effort();
    let shorter = |s: Scenario| match effort {
        Effort::Quick => with(&s, |s| (s.warmup, s.duration) = (Time::seconds(5.0), Time::seconds(20.0))),
        _ => s,
    };
    let case = |(index, s): (usize, &(&'static str, &str))| Case::new(s.0, index as f64, shorter(scenario(*s)));
    let cases: Vec<Case> = SCENARIOS.iter().enumerate().map(case).collect();
    let study = |seeds| Study {
        name: e.id.to_owned(),
        measure: MEASURE,
        cases: cases.clone(),
        sampling: Sampling::Count(seeds),
    };
    let sim = bench.world().is_sim();
    let seeds = |usual: usize, quick: usize| match effort {
        Effort::Seeds(n) => n,
        Effort::Quick => quick,
        Effort::Usual | Effort::Full => usual,
    };
    let real = if sim { None } else { Some(study(seeds(TRIALS, 1)).run(bench)?) };
    // The simulated TCP is the kernel's.
    let same =
        |case: &Case| Case { scenario: as_the_kernel(&case.scenario).unwrap_or_else(|e| ours(&e)).0, ..case.clone() };
    let study = |seeds| Study { cases: cases.iter().map(same).collect(), ..study(seeds) };
    let simulated = study(if sim { seeds(MAX_SEEDS, QUICK_SEEDS) } else { MAX_SEEDS }).simulate(bench)?;
    let mut numbers = Numbers::default();
    let mut all = Vec::new();
    for (index, cell) in simulated.cells.iter().enumerate() {
        let beside = real.as_ref().and_then(|r| r.cells.get(index));
        for name in cell.runs.first().iter().flat_map(|run| &run.groups).map(|g| g.name.clone()) {
            let deviation = |of: Of| Deviation::of(&values(cell, &name, of), Theirs::of(&values(beside?, &name, of))?);
            let [rate, delay] = [KBPS, DELAY].map(deviation);
            all.extend(rate.map(|d| (cell.scheme.clone(), index, name.clone(), d)));
            let estimate = |cell: Option<&Cell<Seen>>, of: Of| Estimate::of(&values(cell?, &name, of));
            let words = [cell.scheme.clone(), name.clone(), rate.map_or("–".to_owned(), |d| d.text())];
            let key = format!("{} {name}", cell.scheme);
            numbers.row(
                words,
                (&key, &[]),
                &[
                    ("simulated_kbps", estimate(Some(cell), KBPS)),
                    ("kernel_kbps", estimate(beside, KBPS)),
                    ("deviation", rate.map(|d| d.relative)),
                    ("simulated_loss", estimate(Some(cell), LOSS)),
                    ("kernel_loss", estimate(beside, LOSS)),
                    ("delay_deviation", delay.map(|d| d.relative)),
                ],
            );
        }
    }
    let head = [
        "scenario",
        "flows",
        "from the kernel's, %",
        "simulated, kbit/s",
        "kernel, kbit/s",
        "ours / kernel - 1",
        "loss, simulated",
        "loss, kernel",
        "median delay, ours / kernel - 1",
    ];
    let rows = numbers.table("Throughput per flow in both worlds", "mean ± half-width of the 95 % interval", head);
    let mut section = e.section();
    if let Some(real) = &real {
        section =
            with_doubts(section, real.cells.iter().flat_map(|c| &c.runs).map(|r| &r.invalid)).chart(chart(e, &all));
    } else {
        section =
            section.text("The simulator's numbers alone; `--world emu` runs the same scenarios with the kernel's TCP.");
    }
    let claims = if sim { vec![moves(e, &simulated)] } else { claims(e, &all) };
    Ok(e.outcome(numbers.points, claims, section.table(rows)))
}

type Of = fn(&Group) -> Option<f64>;
const KBPS: Of = |g| Some(g.kbps);
const LOSS: Of = |g| Some(g.loss);
const DELAY: Of = |g| g.owd_p50_ms;

fn values(cell: &Cell<Seen>, group: &str, of: Of) -> Vec<f64> {
    cell.values(|run| of(run.group(group)?))
}

/// In the simulator alone there is nobody to agree with: every flow gets something.
fn moves(e: &Experiment, found: &Measurements<Seen>) -> Claim {
    let flows = found.cells.iter().flat_map(|c| c.runs.iter().flat_map(|r| r.groups.iter().map(|g| g.kbps)));
    let statement = "every flow of the twelve scenarios gets a tenth of a Mbit/s and more (ours)";
    let what = "least throughput per flow of a group, kbit/s";
    e.claim("all-send", statement, Bound::AtLeast(100.0), what).exact(flows.fold(f64::INFINITY, f64::min))
}

fn claims(e: &Experiment, all: &[(String, usize, String, Deviation)]) -> Vec<Claim> {
    let middle = median(all.iter().map(|(.., d)| d.relative.mean.abs()).collect());
    let what = format!("median of |ours / the kernel's - 1| over {} groups of flows", all.len());
    let mut claims = vec![
        e.claim(
            "median",
            "the median deviation from the kernel's throughput is at most 5 % (ours)",
            Bound::AtMost(APART),
            what,
        )
        .exact(middle),
    ];
    for (name, _) in SCENARIOS {
        let of_scenario = all.iter().filter(|(scenario, ..)| scenario == name).map(|(.., d)| ((), Some(d.relative)));
        let worst = of_scenario.map(|(_, d)| d).max_by(|a, b| size(*a).total_cmp(&size(*b))).flatten();
        let statement = format!("{name}: every flow's throughput is the kernel's, to 5 % (ours)");
        let bound = Bound::Within(-APART, APART);
        claims.push(
            e.claim(name, statement, bound, "ours over the kernel's, less 1, of the group that is farthest")
                .number(worst),
        );
    }
    claims
}

fn size(e: Option<Estimate>) -> f64 {
    e.map_or(0.0, |e| e.mean.abs())
}

fn chart(e: &Experiment, all: &[(String, usize, String, Deviation)]) -> Chart {
    let names: Vec<String> = (1..).zip(SCENARIOS).map(|(i, (name, _))| format!("{i} {name}")).collect();
    let x = Abscissa::new("scenario", "", "");
    let chart = Chart::new(
        "Throughput per flow, simulated over the kernel's",
        Axis { label: names.join(", "), ..x.axis() },
        Axis::new("deviation", "%"),
    )
    .caption(format!("{} and eleven more; 95 % intervals", e.file));
    let line = |place: usize| {
        // The first group of each scenario, the second, the third.
        let points = SCENARIOS.iter().enumerate().filter_map(|(index, _)| {
            let (.., d) = all.iter().filter(|(_, at, ..)| *at == index).nth(place)?;
            let percent = |x: f64| 100.0 * x;
            let e = d.relative;
            let shown = Estimate { mean: percent(e.mean), ci95: e.ci95.map(|c| c.map(percent)), n: e.n };
            Some((index as f64 + 1.0 + 0.15 * place as f64, Some(shown)))
        });
        let name = ["first group of flows", "second", "third"][place];
        Series { style: Style::Points, ..curve(name, format!("group-{place}"), points.collect::<Vec<_>>()) }
    };
    (0..3).map(line).filter(|line| !line.x.is_empty()).fold(chart, Chart::series)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agreement;
    use crate::small::runs;

    #[test]
    fn quick_runs_of_the_twelve_give_every_flows_numbers() {
        let e = agreement::EXPERIMENTS.iter().find(|e| e.id == "agreement.kernel").unwrap();
        let outcome = runs(e, e.scenario.to_owned(), Effort::Quick);
        for (name, _) in SCENARIOS {
            assert!(
                outcome.points.iter().any(|p| p.scheme.starts_with(name) && p.metric == "simulated_kbps"),
                "{name}"
            );
        }
    }
}
