//! Every media controller beside a TCP flow, in both worlds: simulated Reno with SACK, and in real time the kernel's Reno,
//! CUBIC and BBR. No paper has this; what is equal in both worlds and what differs is in `docs/emu/worlds.md`.
//!
//! The bound of 10 % is ours. In the simulator a number is the mean over twenty seeds; in real time, where a run takes as
//! long as it lasts, over three.

use crate::builtin::{base, ours, with};
use crate::figure::{curve, point, table, text, with_doubts};
use crate::{Bench, Bound, Effort, Experiment, Outcome, Point, Tools};
use fairpace_lab::RunError;
use fairpace_lab::run::SeedRun;
use fairpace_lab::stats::{Estimate, MAX_SEEDS, jain_index, mean, short};
use fairpace_lab::study::{Case, Job, Measure, QUICK_SEEDS, Sampling, Study};
use fairpace_lab::worlds::as_the_kernel;
use fairpace_report::{Axis, Chart, Section, Series, Style};
use fairpace_scenario::{Count, FlowSpec, Record, Scenario, SourceKind, SourceSpec, Time};
use serde::{Deserialize, Serialize};
use std::rc::Rc;

macro_rules! beside {
    ($id:literal, $title:literal, $run:path) => {
        Experiment {
            id: concat!("worlds.", $id),
            title: $title,
            file: "scenarios/papers/worlds-beside.toml",
            scenario: include_str!("../../../scenarios/papers/worlds-beside.toml"),
            run: $run,
            readings: &[],
        }
    };
}

/// One per controller, with both worlds' traces laid over each other; the last has all of them in one table.
pub(super) const EXPERIMENTS: &[Experiment] = &[
    beside!("auto", "the default beside TCP", one),
    beside!("rcs", "RCS beside TCP, its dummies in the lower priority by DSCP", one),
    beside!("rap", "RAP beside TCP", one),
    beside!("srp", "SRP beside TCP", one),
    beside!("crp", "CRP beside TCP", one),
    beside!("mrp", "MRP beside TCP", one),
    beside!("tfrc", "TFRC beside TCP", one),
    beside!("aimd", "AIMD beside TCP", one),
    beside!("tpba", "TPBA beside TCP, data units of ten packets", one),
    beside!("beside", "every media controller beside TCP, in one table", all),
];

/// The seeds in real time.
const TRIALS: usize = 3;
/// How far the worlds may be apart, of the simulator's rate.
const APART: f64 = 0.1;
/// Rows of a second.
const PER_SECOND: usize = 10;
/// The groups of the scenario's flows.
const MEDIA: &str = "media";

/// Whom the controller is beside, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rival {
    /// In points.
    key: &'static str,
    /// In tables.
    name: &'static str,
    controller: &'static str,
}

const SIMULATED: Rival = Rival { key: "simulated-reno", name: "simulated Reno", controller: "tcp-sack" };
const KERNEL: [Rival; 3] = [
    Rival { key: "kernel-reno", name: "kernel Reno", controller: "tcp-sack" },
    Rival { key: "kernel-cubic", name: "kernel CUBIC", controller: "tcp-cubic" },
    Rival { key: "kernel-bbr", name: "kernel BBR", controller: "tcp-bbr" },
];

/// The measurements of one run, after the warm-up.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
struct RunStats {
    /// Rates on the wire, kbit/s.
    media: f64,
    tcp: f64,
    /// Part of the packets that were dropped.
    media_loss: f64,
    tcp_loss: f64,
    /// The media flow's rate by 100 ms, kbit/s, and TCP's window in packets, from the start.
    media_rows: Vec<f64>,
    cwnd_rows: Vec<f64>,
    /// Why a run in real time is not to be trusted.
    invalid: Vec<String>,
}

impl RunStats {
    fn of(run: SeedRun) -> RunStats {
        let mut stats = RunStats::default();
        for (index, flow) in (0_u32..).zip(&run.report.flows) {
            let rows = || run.report.series.iter().filter(move |r| r.flow == index);
            let sent = flow.measured.sent.packets.as_f64();
            let loss = if sent > 0.0 { flow.measured.dropped_in_all().packets.as_f64() / sent } else { 0.0 };
            let rates = rows().map(|r| r.throughput.as_bps() / 1e3).collect();
            let summary = run.summary.flows.iter().find(|f| f.name == flow.name);
            let kbps = summary.map_or(0.0, |f| f.throughput_bps / 1e3);
            if flow.group == MEDIA {
                (stats.media, stats.media_loss, stats.media_rows) = (kbps, loss, rates);
            } else {
                (stats.tcp, stats.tcp_loss) = (kbps, loss);
                stats.cwnd_rows = rows().map(|r| r.cwnd).collect();
            }
        }
        stats.invalid = run.summary.emulated.map_or(Vec::new(), |e| e.invalid);
        stats
    }

    fn fairness(&self) -> Option<f64> {
        jain_index(&[self.media, self.tcp])
    }
}

const MEASURE: Measure<RunStats> = Measure { name: "worlds", of: run_stats };

fn run_stats(job: &Job<'_>) -> Result<RunStats, RunError> {
    Ok(RunStats::of(job.run(Record { series: true, ..Record::default() })?))
}

/// A controller beside a rival: a run per seed.
#[derive(Clone, Debug)]
struct Pair {
    scheme: &'static str,
    rival: Rival,
    runs: Vec<Rc<RunStats>>,
}

impl Pair {
    fn estimate(&self, number: impl Fn(&RunStats) -> f64) -> Option<Estimate> {
        Estimate::of(&self.runs.iter().map(|r| number(r)).collect::<Vec<f64>>())
    }

    fn fairness(&self) -> Option<Estimate> {
        Estimate::of(&self.runs.iter().filter_map(|r| r.fairness()).collect::<Vec<f64>>())
    }

    fn doubtful(&self) -> usize {
        self.runs.iter().filter(|r| !r.invalid.is_empty()).count()
    }
}

fn scenario(e: &Experiment, effort: Effort, scheme: &str, rival: Rival) -> Scenario {
    with(&base(e), |s| {
        if effort == Effort::Quick {
            s.duration = Time::seconds(20.0);
        }
        for flow in &mut s.flows {
            if flow.group == MEDIA { put(flow, scheme) } else { rival.controller.clone_into(&mut flow.controller) }
        }
    })
}

/// Puts a controller in the place of the scenario's, with its own defaults.
fn put(flow: &mut FlowSpec, scheme: &str) {
    if flow.controller != scheme {
        scheme.clone_into(&mut flow.controller);
        flow.parameters.clear();
    }
    if scheme == "tpba" {
        flow.source = Some(SourceSpec { kind: SourceKind::Adus, rate: None, packets: Some(Count::new(10)) });
    }
}

/// A controller and whom it is beside.
type Pairing = (&'static str, Rival);

/// Runs every scheme beside every rival of this world; in the order of the schemes.
fn measure(e: &Experiment, bench: &mut Bench<'_>, schemes: &[&'static str]) -> Result<Vec<Pair>, RunError> {
    let sim = bench.world().is_sim();
    let rivals: &[Rival] = if sim { &[] } else { &KERNEL };
    let (simulated, emulated) = match (bench.effort(), sim) {
        (Effort::Seeds(n), true) => (n, 0),
        (Effort::Quick, true) => (QUICK_SEEDS, 0),
        (Effort::Usual | Effort::Full, true) => (MAX_SEEDS, 0),
        // Beside runs in real time the simulator's take no time.
        (Effort::Seeds(n), false) => (MAX_SEEDS, n),
        (Effort::Quick, false) => (MAX_SEEDS, 1),
        (Effort::Usual | Effort::Full, false) => (MAX_SEEDS, TRIALS),
    };
    let here: Vec<Pairing> = schemes.iter().map(|s| (*s, SIMULATED)).collect();
    let there: Vec<Pairing> = schemes.iter().flat_map(|s| rivals.iter().map(|r| (*s, *r))).collect();
    let effort = bench.effort();
    let study = |places: &[Pairing], seeds: usize, change: fn(Scenario) -> Scenario| {
        let case = |(scheme, rival): &Pairing| {
            Case::new(format!("{scheme} beside {}", rival.key), 0.0, change(scenario(e, effort, scheme, *rival)))
        };
        let (cases, sampling) = (places.iter().map(case).collect(), Sampling::Count(seeds));
        Study { name: e.id.to_owned(), measure: MEASURE, cases, sampling }
    };
    // TCP, and the TCP half of `tpba`, as the kernel has them in real time.
    let kernels = |s: Scenario| as_the_kernel(&s).unwrap_or_else(|e| ours(&e)).0;
    // Those in real time first: how long they take is asked for before anything is run.
    let slow = study(&there, emulated, |s| s).run(bench)?;
    let fast = study(&here, simulated, kernels).simulate(bench)?;
    let runs = fast.cells.into_iter().chain(slow.cells).map(|cell| cell.runs);
    let pair = |((scheme, rival), runs): (Pairing, Vec<Rc<RunStats>>)| Pair { scheme, rival, runs };
    let mut all: Vec<Pair> = here.into_iter().chain(there).zip(runs).map(pair).collect();
    // Stable: a scheme's rivals stay in their order.
    all.sort_by_key(|p| schemes.iter().position(|s| *s == p.scheme));
    Ok(all)
}

fn find<'a>(pairs: &'a [Pair], scheme: &str, rival: Rival) -> Option<&'a Pair> {
    pairs.iter().find(|p| p.scheme == scheme && p.rival == rival)
}

/// The media flow's rate beside the kernel's Reno over that beside the simulated one, less 1.
fn apart(pairs: &[Pair], scheme: &str) -> Option<Estimate> {
    let rate = |rival: Rival| find(pairs, scheme, rival)?.estimate(|g| g.media);
    let (sim, emu) = (rate(SIMULATED)?, rate(KERNEL[0])?);
    let ratio = emu.mean / sim.mean;
    // Two independent samples: relative half-widths add as squares.
    let half = ratio * (sim.half_width() / sim.mean).hypot(emu.half_width() / emu.mean);
    let ci95 = emu.ci95.map(|_| [ratio - 1.0 - half, ratio - 1.0 + half]);
    Estimate::of(&[ratio - 1.0]).map(|e| Estimate { ci95, n: emu.n, ..e })
}

fn one(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let scheme = e.id.trim_start_matches("worlds.");
    let pairs = measure(e, bench, &[scheme])?;
    let mut claims = Vec::new();
    if !bench.world().is_sim() {
        claims.push(
            e.claim(
                "as-simulated",
                format!(
                    "{}: its rate beside the kernel's Reno is the simulator's (ours: to 10 %)",
                    scheme.to_uppercase()
                ),
                Bound::Within(-APART, APART),
                "emulated over simulated mean rate, less 1",
            )
            .number(apart(&pairs, scheme)),
        );
    }
    let section = shown(e, &pairs).chart(rates(e, &pairs)).chart(windows(e, &pairs)).synced();
    Ok(e.outcome(points(&pairs), claims, section))
}

fn all(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let schemes: Vec<&str> =
        EXPERIMENTS.iter().map(|e| e.id.trim_start_matches("worlds.")).filter(|s| *s != "beside").collect();
    let pairs = measure(e, bench, &schemes)?;
    let mut claims = Vec::new();
    if !bench.world().is_sim() {
        let near = schemes.iter().filter(|s| apart(&pairs, s).is_some_and(|a| a.mean.abs() <= APART)).count();
        claims.push(
            e.claim(
                "as-simulated",
                "each controller's rate beside the kernel's Reno is the simulator's (ours: to 10 %)",
                Bound::AtLeast(schemes.len() as f64),
                format!("controllers, of {}, whose mean rate is within 10 %", schemes.len()),
            )
            .exact(near as f64),
        );
    }
    let section = shown(e, &pairs).chart(shares(e, &pairs, &schemes));
    Ok(e.outcome(points(&pairs), claims, section))
}

fn points(pairs: &[Pair]) -> Vec<Point> {
    let mut all = Vec::new();
    for p in pairs {
        let numbers = [
            ("media_kbps", p.estimate(|g| g.media)),
            ("tcp_kbps", p.estimate(|g| g.tcp)),
            ("media_loss", p.estimate(|g| g.media_loss)),
            ("tcp_loss", p.estimate(|g| g.tcp_loss)),
            ("f", p.fairness()),
        ];
        let scheme = format!("{} beside {}", p.scheme, p.rival.key);
        all.extend(numbers.into_iter().filter_map(|(key, estimate)| point(&scheme, &[], key, estimate)));
    }
    all
}

/// The numbers as a table, and what is to be doubted of them.
fn shown(e: &Experiment, pairs: &[Pair]) -> Section {
    let row = |p: &Pair| {
        let percent = |number: fn(&RunStats) -> f64| text(p.estimate(|g| 100.0 * number(g)));
        let runs = match p.doubtful() {
            0 => p.runs.len().to_string(),
            bad => format!("{}, {bad} not valid", p.runs.len()),
        };
        vec![
            p.scheme.to_owned(),
            p.rival.name.to_owned(),
            text(p.estimate(|g| g.media)),
            text(p.estimate(|g| g.tcp)),
            text(p.fairness()),
            percent(|g| g.media_loss),
            percent(|g| g.tcp_loss),
            runs,
        ]
    };
    let head = ["controller", "beside", "media, kbit/s", "TCP, kbit/s", "f", "media loss, %", "TCP loss, %", "runs"];
    let table = table(
        "Rates after the warm-up, and Jain's index f of the two",
        format!("{}; mean ± half-width of the 95 % interval (Student's t)", e.file),
        head.map(str::to_owned).to_vec(),
        pairs.iter().map(row),
    );
    let emulated = pairs.iter().filter(|p| p.rival != SIMULATED);
    with_doubts(e.section(), emulated.flat_map(|p| &p.runs).map(|g| &g.invalid)).table(table)
}

/// The media flow's rate beside each rival, with its interval.
fn shares(e: &Experiment, pairs: &[Pair], schemes: &[&str]) -> Chart {
    let least = pairs.iter().filter_map(|p| Some((p.fairness()?.mean, p))).min_by(|a, b| a.0.total_cmp(&b.0));
    let title = least.map_or(String::new(), |(f, p)| {
        format!("The least fair is {} beside {}: f = {}", p.scheme.to_uppercase(), p.rival.name, short(f))
    });
    let numbered: Vec<String> = (1..).zip(schemes).map(|(i, s)| format!("{i} {s}")).collect();
    // The axis ends at the capacity, even where the intervals of few runs reach beyond.
    let capacity = pairs.iter().flat_map(|p| &p.runs).map(|g| g.media + g.tcp).fold(0.0, f64::max);
    let axes = (Axis::new(numbered.join(", "), ""), Axis::new("media flow's rate", "kbit/s").range(0.0, capacity));
    let mut chart = Chart::new(title, axes.0, axes.1)
        .caption(format!("{}; half of the link is fair; bars are 95 % intervals (Student's t)", e.file));
    for (place, rival) in [SIMULATED].iter().chain(&KERNEL).enumerate() {
        let rate = |(i, scheme): (usize, &&str)| {
            // Beside each other.
            let x = i as f64 + 1.0 + 0.12 * (place as f64 - 1.5);
            (x, find(pairs, scheme, *rival).and_then(|p| p.estimate(|g| g.media)))
        };
        let line = curve(rival.name, rival.key, schemes.iter().enumerate().map(rate));
        let mut line = Series { style: Style::Points, ..line };
        line.lo.iter_mut().for_each(|low| *low = low.max(0.0));
        line.hi.iter_mut().for_each(|high| *high = high.min(capacity));
        if !line.x.is_empty() {
            chart = chart.series(line);
        }
    }
    chart
}

/// Means over a second.
fn over(rows: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let y: Vec<f64> = rows.chunks_exact(PER_SECOND).map(mean).collect();
    ((1..=y.len()).map(|s| s as f64).collect(), y)
}

/// The first seed of each pair.
fn first(pairs: &[Pair]) -> impl Iterator<Item = (&Pair, &RunStats)> {
    pairs.iter().filter_map(|p| Some((p, &**p.runs.first()?)))
}

fn rates(e: &Experiment, pairs: &[Pair]) -> Chart {
    let rate = |p: &Pair| Some(format!("{} beside {}", short(p.estimate(|g| g.media)?.mean), p.rival.name));
    let each: Vec<String> = pairs.iter().filter_map(rate).collect();
    let scheme = pairs.first().map_or(String::new(), |p| p.scheme.to_uppercase());
    let axes = (Axis::new("time", "s"), Axis::new("media flow's rate", "kbit/s"));
    let mut chart = Chart::new(format!("{scheme} gets, in kbit/s, {}", each.join(", ")), axes.0, axes.1)
        .caption(format!("{}; seed 1, means over 1 s; in the title means of all seeds", e.file));
    for (p, stats) in first(pairs) {
        let (x, y) = over(&stats.media_rows);
        chart = chart.series(Series::line(format!("beside {}", p.rival.name), p.rival.key, x, y));
    }
    chart
}

fn windows(e: &Experiment, pairs: &[Pair]) -> Chart {
    let loss = |p: &Pair| Some(format!("{} % of {}", short(100.0 * p.estimate(|g| g.tcp_loss)?.mean), p.rival.name));
    let each: Vec<String> = pairs.iter().filter_map(loss).collect();
    let axes = (Axis::new("time", "s"), Axis::new("TCP's window", "packets"));
    let mut chart = Chart::new(format!("Beside it are lost {}", each.join(", ")), axes.0, axes.1)
        .caption(format!("{}; seed 1, every 100 ms; in the title means of all seeds", e.file));
    for (p, stats) in first(pairs) {
        let x = (1..=stats.cwnd_rows.len()).map(|j| j as f64 / PER_SECOND as f64).collect();
        chart = chart.series(Series::line(p.rival.name, p.rival.key, x, stats.cwnd_rows.clone()));
    }
    chart
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::World;
    use fairpace_lab::Hooks;

    /// A world in which all flows get a fifth less than in the simulator.
    fn slower(s: &Scenario, seed: u64, record: Record, hooks: &Hooks<'_>) -> Result<SeedRun, RunError> {
        let s = with(s, |s| {
            let tcp = s.flows.iter_mut().filter(|f| f.group != MEDIA);
            tcp.for_each(|flow| "tcp-sack".clone_into(&mut flow.controller));
        });
        let mut run = fairpace_lab::run::simulate(&s, seed, record, hooks)?;
        for flow in &mut run.summary.flows {
            flow.throughput_bps *= 0.8;
        }
        Ok(run)
    }

    #[test]
    fn every_scheme_is_beside_simulated_reno_and_in_real_time_beside_three_of_the_kernels() {
        let e = EXPERIMENTS.iter().find(|e| e.id == "worlds.beside").unwrap();
        let mut bench = Bench::new(Hooks::default(), Effort::Quick);
        let sim = (e.run)(e, &mut bench, &mut Tools::default()).unwrap();
        assert!(sim.claims.is_empty() && sim.section.charts[0].series[0].x.len() == 9, "{:?}", sim.claims);
        assert_eq!(sim.points.len(), 9 * 5);

        let e = EXPERIMENTS.iter().find(|e| e.id == "worlds.rap").unwrap();
        let mut bench = Bench::new(Hooks::default(), Effort::Seeds(MAX_SEEDS)).in_world(World::RealTime(&slower));
        let emu = (e.run)(e, &mut bench, &mut Tools::default()).unwrap();
        let rivals: Vec<&str> = emu.section.tables[0].rows.iter().map(|row| row[1].as_str()).collect();
        assert_eq!(rivals, ["simulated Reno", "kernel Reno", "kernel CUBIC", "kernel BBR"]);
        // The same runs, a fifth less: -0.2 exactly, and the claim fails.
        let claim = &emu.claims[0];
        assert!((claim.measured.unwrap() + 0.2).abs() < 1e-9 && !claim.holds, "{}", claim.line());
        assert!(claim.ci95.is_some());
        assert!(emu.section.charts.iter().all(|c| c.series.len() == 4 && !c.title.contains("NaN")));
    }

    #[test]
    fn runs_in_real_time_are_counted_once_although_the_last_experiment_shows_all_again() {
        let chosen: Vec<&Experiment> = EXPERIMENTS.iter().collect();
        // 9 controllers, 3 rivals, 1 seed of 20 s.
        assert_eq!(crate::real_time(&crate::real_time_runs(&chosen, Effort::Quick, None)).as_secs(), 9 * 3 * 20);
    }

    #[test]
    fn fairness_and_loss_are_of_the_two_flows() {
        let stats = RunStats { media: 1.0, tcp: 3.0, ..RunStats::default() };
        // 4^2 / (2 * 10).
        assert_eq!(stats.fairness(), Some(0.8));
        assert_eq!(RunStats::default().fairness(), None);
    }
}
