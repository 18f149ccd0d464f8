//! The rules that end a probing period: epsilon, z %, and z % of rates over the time between two reductions of cwnd
//! [tpba §4, §7], and 20 % in place of 5, at bottlenecks of 100 kbit/s to 10 Mbit/s. The paper runs the first, at one.

use super::numbers;
use super::{PER_SECOND, Trace, base, caption, doubts, each, estimate, seeds, trace, with, words};
use crate::claim::exact;
use crate::figure::{brief, curve, point, table, text};
use crate::{Bench, Bound, Effort, Experiment, Outcome, Tools};
use fairpace_lab::RunError;
use fairpace_lab::stats::{Estimate, mean};
use fairpace_lab::study::Measure;
use fairpace_report::{Axis, Chart, Section};
use fairpace_scenario::{Capacity, Room, Scenario, Speed};
use serde::{Deserialize, Serialize};

/// The bottleneck, kbit/s.
const RATES: [u32; 5] = [100, 300, 1_000, 3_000, 10_000];
/// The queue: so many ms of the bottleneck's rate, and at least so many packets.
const QUEUE_MS: u32 = 250;
const LEAST_QUEUE: u32 = 12;
/// The time that does not count, while flows start, s.
const WARM: usize = 10;

/// A rule.
struct Rule {
    key: &'static str,
    name: &'static str,
    colour: &'static str,
    stop: &'static str,
    z: Option<f64>,
}

const RULES: [Rule; 4] = [
    Rule { key: "epsilon", name: "epsilon = 30 kbit/s", colour: "tpba", stop: "epsilon", z: None },
    Rule { key: "percent", name: "z = 5 %", colour: "rap", stop: "percent", z: Some(5.0) },
    Rule { key: "percent-20", name: "z = 20 %", colour: "rap-fine", stop: "percent", z: Some(20.0) },
    Rule {
        key: "cwnd-cycle",
        name: "z = 5 %, between reductions of cwnd",
        colour: "tcp",
        stop: "cwnd-cycle",
        z: Some(5.0),
    },
];

/// The results of one run.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct Found {
    /// Share of the time in probing periods.
    probing: f64,
    /// Running periods that began.
    running: f64,
    /// By how much r_s is off what the TCP flows get on the average of the run, mean over the running periods; as a part
    /// of it.
    off: Option<f64>,
    /// f of the mean rates.
    f: Option<f64>,
    invalid: Vec<String>,
}

const MEASURE: Measure<Found> = Measure { name: "tpba rules", of: |job| Ok(found(&trace(job)?)) };

fn found(trace: &Trace) -> Found {
    let from = WARM * PER_SECOND;
    let states = trace.states.get(from..).unwrap_or(&[]);
    let probing = states.iter().filter(|s| *s != "running").count() as f64 / states.len().max(1) as f64;
    let rates = trace.each_second();
    let end = rates.iter().map(Vec::len).min().unwrap_or(0);
    let tcp = trace.over(PER_SECOND, &["flow 1", "flow 2"]);
    let means: Vec<f64> = tcp.iter().filter_map(|r| r.get(WARM..end)).map(mean).collect();
    let fair = mean(&means);
    let begun: Vec<f64> = trace
        .periods()
        .iter()
        .filter(|p| p.state == "running" && p.from >= from)
        .filter_map(|p| trace.allowed.get(p.from).copied())
        .collect();
    let off: Vec<f64> = begun.iter().map(|r_s| (r_s - fair).abs() / fair).collect();
    Found {
        probing,
        running: begun.len() as f64,
        off: (!off.is_empty() && fair > 0.0).then(|| mean(&off)),
        f: numbers::fairness_of_means(&super::slices(&rates), WARM.min(end)..end),
        invalid: trace.invalid.clone(),
    }
}

fn scenario(e: &Experiment, kbps: u32, rule: &Rule) -> Scenario {
    with(&base(e), |s| {
        s.path.rate = Some(Capacity::Fixed(Speed::kbps(f64::from(kbps))));
        let queue = (kbps * QUEUE_MS / 8).max(LEAST_QUEUE * s.packet_size.get().get() as u32);
        s.path.queue.set_capacity(Room::bytes(u64::from(queue)));
        for flow in s.flows.iter_mut().filter(|f| super::is_media(&f.group)) {
            flow.parameters.insert("stop".to_owned(), words(rule.stop));
            if let Some(z) = rule.z {
                flow.parameters.insert("z".to_owned(), super::number(z));
            }
        }
    })
}

pub(super) fn rules(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let seeds = seeds(bench, 10, 1);
    let quick = bench.effort() == Effort::Quick;
    let rates: Vec<u32> = RATES.into_iter().filter(|k| !quick || [100, 1_000, 10_000].contains(k)).collect();
    let places: Vec<(&Rule, u32)> = RULES.iter().flat_map(|r| rates.iter().map(move |k| (r, *k))).collect();
    let of_place = |(rule, kbps): &(&Rule, u32)| {
        with(&scenario(e, *kbps, rule), |s| {
            if quick {
                s.duration = super::seconds(60);
            }
        })
    };
    let all = each(e, bench, places.iter().map(of_place), seeds, MEASURE)?;
    let of = |rule: &str, kbps: u32, get: Get| {
        let runs = places.iter().zip(&all).find(|(p, _)| p.0.key == rule && p.1 == kbps).map(|(_, runs)| runs);
        runs.and_then(|cell| estimate(&cell.runs, get))
    };
    let looser = of("epsilon", 100, |f| f.off).zip(of("percent", 100, |f| f.off));
    let mut claims = vec![
        e.claim("epsilon-fast", "at 10 Mbit/s epsilon = 30 kbit/s hardly ever ends a probing period (ours: four fifths of the time over TCP)", Bound::Above(0.8), "share of the time in probing periods").number(of("epsilon", 10_000, |f| Some(f.probing))),
        e.claim("epsilon-slow", "at 100 kbit/s it is too loose: r_s is farther off than by z = 5 %", Bound::Above(0.0), "mean |r_s - fair rate| / fair rate, epsilon less z = 5 %").number(looser.and_then(|(a, b)| exact(a.mean - b.mean))),
    ];
    for rule in &RULES[1..] {
        let shares = rates.iter().map(|k| of(rule.key, *k, |f| Some(f.probing))).collect::<Option<Vec<Estimate>>>();
        let larger = |a: Estimate, b: Estimate| if b.mean > a.mean { b } else { a };
        let most = shares.as_ref().and_then(|all| all.iter().copied().reduce(larger));
        let least = shares.and_then(|all| all.into_iter().map(|e| e.mean).reduce(f64::min));
        claims.push(
            e.claim(
                format!("{}-alike", rule.key),
                format!("{}: it takes about as long at every bottleneck (ours: within a factor of 2)", rule.name),
                Bound::AtMost(2.0),
                "share of the time in probing periods, largest / smallest of the bottlenecks",
            )
            .number(most.zip(least).and_then(|(most, least)| exact(most.mean / least))),
        );
        claims.push(
            e.claim(
                format!("{}-ends", rule.key),
                format!("{}: at most half of the time over TCP at every bottleneck (ours)", rule.name),
                Bound::AtMost(0.5),
                "share of the time in probing periods, at the bottleneck where it is largest",
            )
            .because(SAWTOOTH)
            .number(most),
        );
    }
    let mut points = Vec::new();
    let mut tables = Vec::new();
    let mut section = e.section().text(
        "The fair rate is what the two TCP flows get on the average of a run; r_s is what flow 3 begins a running period with. \
         Queues hold 250 ms, and at least 12 packets; the window of TCP is not bounded.",
    );
    for figure in &FIGURES {
        let (mut chart, mut rows) = (figure.chart(), Vec::new());
        for Rule { key: rule, name, colour, .. } in &RULES {
            let at = |&kbps: &u32| (f64::from(kbps), of(rule, kbps, figure.get));
            for (kbps, estimate) in rates.iter().map(at) {
                points.extend(point(rule, &[("bottleneck_kbps", kbps)], figure.key, estimate));
            }
            chart = chart.series(curve(*name, *colour, rates.iter().map(at)));
        }
        for &kbps in &rates {
            let cells = RULES.iter().map(|rule| text(of(rule.key, kbps, figure.get)));
            rows.push(std::iter::once(kbps.to_string()).chain(cells).collect());
        }
        let ends = |kbps: u32| {
            let at = |rule: &Rule| brief(of(rule.key, kbps, figure.get));
            RULES.iter().map(at).collect::<Vec<String>>().join(", ")
        };
        chart.title = format!("{}: {} at 100 kbit/s; {} at 10 Mbit/s", figure.title, ends(100), ends(10_000));
        let seeds = format!("{seeds} seeds per point; bars are 95 % intervals (Student's t)");
        if figure.drawn {
            section = section.chart(chart.caption(caption(e, bench.world(), &seeds)));
        }
        let mut head = vec!["bottleneck (kbit/s)".to_owned()];
        head.extend(RULES.iter().map(|r| r.name.to_owned()));
        tables.push(table(figure.title.to_owned(), seeds, head, rows));
    }
    let invalid: Vec<Vec<String>> = all.iter().flat_map(|c| &c.runs).map(|f| f.invalid.clone()).collect();
    section = doubts(&invalid).into_iter().fold(section, Section::text);
    Ok(e.outcome(points, claims, tables.into_iter().fold(section, Section::table).folded()))
}

const SAWTOOTH: &str = "Beside TCP whose window is not bounded rates over 1 s follow its sawtooth, and are seldom that near each \
                        other; between two reductions of cwnd lie up to 10 s, and three such periods differ as well";

type Get = fn(&Found) -> Option<f64>;

struct Figure {
    key: &'static str,
    title: &'static str,
    axis: &'static str,
    get: Get,
    drawn: bool,
}

impl Figure {
    fn chart(&self) -> Chart {
        Chart::new("", Axis::new("bottleneck", "kbit/s").log(), Axis::new(self.axis, ""))
    }
}

const FIGURES: [Figure; 4] = [
    Figure {
        key: "probing",
        title: "Share of the time that flow 3 probes",
        axis: "time over TCP / time",
        get: |f| Some(f.probing),
        drawn: true,
    },
    Figure {
        key: "off",
        title: "How far r_s is off the fair rate",
        axis: "mean |r_s - fair rate| / fair rate",
        get: |f| f.off,
        drawn: true,
    },
    Figure { key: "f_of_means", title: "f of the mean rates", axis: "fairness f", get: |f| f.f, drawn: true },
    Figure {
        key: "running_periods",
        title: "Running periods that begin",
        axis: "running periods",
        get: |f| Some(f.running),
        drawn: false,
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tpba::{EXPERIMENTS, Line};

    #[test]
    fn a_share_of_time_and_how_far_r_s_is_off() {
        // 10 s do not count; then 5 s of probing, 10 s of running at 440, 5 s of probing. TCP has 400.
        let line = |group: &str, kbps: f64| Line { group: group.to_owned(), kbps: vec![kbps; 300] };
        let state = |row: usize| if (150..250).contains(&row) { "running" } else { "probing" };
        let trace = Trace {
            flows: vec![line("flow 1", 400.0), line("flow 2", 400.0), line("flow 3", 400.0)],
            states: (0..300).map(|row| state(row).to_owned()).collect(),
            allowed: vec![440.0; 300],
            ..Trace::default()
        };
        let f = found(&trace);
        assert_eq!((f.probing, f.running, f.f), (0.5, 1.0, Some(1.0)));
        assert!((f.off.unwrap() - 0.1).abs() < 1e-12);
        let never = found(&Trace { states: vec!["probing".to_owned(); 300], ..trace });
        assert_eq!((never.probing, never.running, never.off), (1.0, 0.0, None));
    }

    #[test]
    fn queues_hold_a_quarter_of_a_second_and_at_least_12_packets() {
        let e = EXPERIMENTS.iter().find(|e| e.id == "tpba.rules").unwrap();
        for (kbps, queue) in [(100, "6624 B"), (1_000, "31250 B"), (10_000, "312500 B")] {
            let s = scenario(e, kbps, &RULES[1]);
            let again = Scenario::parse(&s.to_toml(), "again.toml").unwrap_or_else(|e| panic!("{kbps}: {e}"));
            assert_eq!((again.path.queue.capacity().text(), again.path.rate.clone()), (queue, s.path.rate.clone()));
        }
    }
}
