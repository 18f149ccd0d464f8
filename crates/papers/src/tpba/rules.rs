//! The rules that end a probing period: epsilon, z %, and z % of rates over the time between two reductions of cwnd
//! [tpba §4, §7], and 20 % in place of 5, at bottlenecks of 100 kbit/s to 10 Mbit/s. The paper runs the first, at one.

use super::numbers;
use super::setup::{self, PER_SECOND, caption, is_media, seeds, words};
use super::trace::{Trace, slices, trace};
use crate::builtin::{base, with};
use crate::figure::{Abscissa, Figure, Quantity, Scheme, brief, counted, with_doubts};
use crate::{Bench, Bound, Claim, Effort, Experiment, Outcome, Tools};
use fairpace_lab::RunError;
use fairpace_lab::stats::mean;
use fairpace_lab::study::{self, Measure, largest, smallest};
use fairpace_scenario::{Capacity, RawScenario, Room, Speed};
use serde::{Deserialize, Serialize};

/// The queue: so many ms of the bottleneck's rate, and at least so many packets.
const QUEUE_MS: u32 = 250;
const LEAST_QUEUE: u32 = 12;
/// The time that does not count, while flows start, s.
const WARM: usize = 10;

const RULES: [Scheme; 4] = [
    Scheme::new("epsilon", "epsilon = 30 kbit/s", "").coloured("tpba").setting(|s| stop_by(s, "epsilon", None)),
    Scheme::new("percent", "z = 5 %", "").coloured("rap").setting(|s| stop_by(s, "percent", Some(5.0))),
    Scheme::new("percent-20", "z = 20 %", "").coloured("rap-fine").setting(|s| stop_by(s, "percent", Some(20.0))),
    Scheme::new("cwnd-cycle", "z = 5 %, between reductions of cwnd", "")
        .coloured("tcp")
        .setting(|s| stop_by(s, "cwnd-cycle", Some(5.0))),
];
const BY_RATE: Figure<RunStats> = Figure {
    x: Abscissa::log("bottleneck_kbps", "bottleneck", "kbit/s"),
    places: &[100.0, 300.0, 1_000.0, 3_000.0, 10_000.0],
    schemes: &RULES,
    vary: set_bottleneck,
    quantities: &[PROBING, OFF, FAIRNESS, RUNNING],
};
const PROBING: Quantity<RunStats> =
    Quantity { key: "probing", label: "time over TCP / time", unit: "", get: |f| Some(f.probing) };
const OFF: Quantity<RunStats> =
    Quantity { key: "off", label: "mean |r_s - fair rate| / fair rate", unit: "", get: |f| f.off };
const FAIRNESS: Quantity<RunStats> =
    Quantity { key: "f_of_means", label: "f of the mean rates", unit: "", get: |f| f.f };
const RUNNING: Quantity<RunStats> =
    Quantity { key: "running_periods", label: "running periods that begin", unit: "", get: |f| Some(f.running) };

/// The two misconfigurations that the text names [tpba §7], at one bottleneck, kbit/s.
const MISCONFIGURED: [Scheme; 2] = [
    Scheme::new("1ms-1kbps", "T_TCP = 1 ms, epsilon = 1 kbit/s", "")
        .coloured("tpba")
        .setting(|s| cycle(s, "1 ms", "1 kbit/s")),
    Scheme::new("1ms-10mbps", "T_TCP = 1 ms, epsilon = 10 Mbit/s", "")
        .coloured("rap")
        .setting(|s| cycle(s, "1 ms", "10 Mbit/s")),
];
const MISCONFIGURED_AT: f64 = 1_000.0;

fn cycle(s: &mut RawScenario, t_tcp: &str, epsilon: &str) {
    for flow in s.flows.iter_mut().filter(|f| is_media(&f.group)) {
        flow.parameters.insert("t_tcp".to_owned(), words(t_tcp));
        flow.parameters.insert("epsilon".to_owned(), words(epsilon));
    }
}

/// A bottleneck of so many kbit/s, and its queue.
fn set_bottleneck(s: &mut RawScenario, kbps: f64) {
    s.path.rate = Some(Capacity::Fixed(Speed::kbps(kbps)));
    let queue = (kbps as u32 * QUEUE_MS / 8).max(LEAST_QUEUE * s.packet_size.get().get() as u32);
    s.path.queue.set_capacity(Room::bytes(u64::from(queue)));
}

/// Has a rule end flow 3's probing periods.
fn stop_by(s: &mut RawScenario, rule: &str, z: Option<f64>) {
    for flow in s.flows.iter_mut().filter(|f| is_media(&f.group)) {
        flow.parameters.insert("stop".to_owned(), words(rule));
        flow.parameters.extend(z.map(|z| ("z".to_owned(), setup::number(z))));
    }
}

/// The results of one run.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct RunStats {
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

const MEASURE: Measure<RunStats> = Measure { name: "tpba rules", of: |job| Ok(run_stats(&trace(job)?)) };

fn run_stats(trace: &Trace) -> RunStats {
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
    RunStats {
        probing,
        running: begun.len() as f64,
        off: (!off.is_empty() && fair > 0.0).then(|| mean(&off)),
        f: numbers::fairness_of_means(&slices(&rates), WARM.min(end)..end),
        invalid: trace.invalid.clone(),
    }
}

pub(super) fn rules(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let seeds = seeds(bench, 10, 1);
    let (figure, base) = if bench.effort() == Effort::Quick {
        let minute = with(&base(e), |s| s.duration = setup::seconds(60));
        (Figure { places: &[100.0, 1_000.0, 10_000.0], ..BY_RATE }, minute)
    } else {
        (BY_RATE, base(e))
    };
    let found = counted(e, bench, MEASURE, figure.cases(&base), seeds)?;
    let mut section = e.section().text(
        "The fair rate is what the two TCP flows get on the average of a run; r_s is what flow 3 begins a running period with. \
         Queues hold 250 ms, and at least 12 packets; the window of TCP is not bounded.",
    );
    let caption = caption(e, bench.world(), &format!("{seeds} seeds per point; bars are 95 % intervals (Student's t)"));
    for (y, title) in [
        (PROBING, "Share of the time that flow 3 probes"),
        (OFF, "How far r_s is off the fair rate"),
        (FAIRNESS, "f of the mean rates"),
    ] {
        let each = |kbps| RULES.map(|rule| brief(found.estimate(rule.key, kbps, y.get))).join(", ");
        let title = format!("{title}: {} at 100 kbit/s; {} at 10 Mbit/s", each(100.0), each(10_000.0));
        section = figure.shown_in(section, &found, &y, title, &caption);
    }
    section = section.table(figure.table(&found, &RUNNING, "Running periods that begin"));
    let section = with_doubts(section, found.cells.iter().flat_map(|c| &c.runs).map(|f| &f.invalid)).folded();
    let mut claims = rules_claims(e, &found, figure.places);
    let wrong = Figure { places: &[MISCONFIGURED_AT], schemes: &MISCONFIGURED, ..BY_RATE };
    let found_wrong = counted(e, bench, MEASURE, wrong.cases(&base), seeds)?;
    claims.extend(misconfigured(e, &found_wrong));
    let section = section
        .table(wrong.table(&found_wrong, &PROBING, "Misconfigured: share of the time that flow 3 probes"))
        .table(wrong.table(&found_wrong, &OFF, "Misconfigured: how far r_s is off the fair rate"));
    let points = [figure.points(&found), wrong.points(&found_wrong)].concat();
    Ok(e.outcome(points, claims, section))
}

fn misconfigured(e: &Experiment, found: &study::Measurements<RunStats>) -> [Claim; 2] {
    let of = |key, get: fn(&RunStats) -> Option<f64>| found.estimate(key, MISCONFIGURED_AT, get);
    let loose = brief(of("1ms-10mbps", PROBING.get));
    [
        e.claim(
            "never-completed",
            "T_TCP = 1 ms, epsilon = 1 kbit/s: the probing period may not be completed (ours: 99 % of the time over TCP)",
            Bound::AtLeast(0.99),
            format!("share of the time in probing periods; with epsilon = 10 Mbit/s {loose}"),
        )
        .number(of("1ms-1kbps", PROBING.get)),
        e.claim(
            "not-trustworthy",
            "T_TCP = 1 ms, epsilon = 10 Mbit/s: the rate measured is not trustworthy (ours: more than half off the fair rate)",
            Bound::Above(0.5),
            "mean |r_s - fair rate| / fair rate",
        )
        .because(format!(
            "Flow 3 probes for {loose} of the time: a cycle in which nothing is acknowledged is no rate by our reading, and of cycles of \
             1 ms hardly one follows two others"
        ))
        .number(of("1ms-10mbps", OFF.get)),
    ]
}

fn rules_claims(e: &Experiment, found: &study::Measurements<RunStats>, places: &[f64]) -> Vec<Claim> {
    let off = |rule| found.estimate(rule, 100.0, OFF.get).map(|e| e.mean);
    let looser = off("epsilon").zip(off("percent")).map(|(epsilon, percent)| epsilon - percent);
    let hardly =
        "at 10 Mbit/s epsilon = 30 kbit/s hardly ever ends a probing period (ours: four fifths of the time over TCP)";
    let loose = "at 100 kbit/s it is too loose: r_s is farther off than by z = 5 %";
    let mut claims = vec![
        e.claim("epsilon-fast", hardly, Bound::Above(0.8), "share of the time in probing periods")
            .number(found.estimate("epsilon", 10_000.0, PROBING.get)),
        e.claim("epsilon-slow", loose, Bound::Above(0.0), "mean |r_s - fair rate| / fair rate, epsilon less z = 5 %")
            .exact(looser),
    ];
    for Scheme { key, name, .. } in &RULES[1..] {
        let shares = || places.iter().map(|&kbps| (kbps, found.estimate(key, kbps, PROBING.get)));
        let (most, least) = (largest(shares()).1, smallest(shares()).1);
        let statement = format!("{name}: it takes about as long at every bottleneck (ours: within a factor of 2)");
        let what = "share of the time in probing periods, largest / smallest of the bottlenecks";
        claims.push(
            e.claim(format!("{key}-alike"), statement, Bound::AtMost(2.0), what)
                .exact(most.zip(least).map(|(most, least)| most.mean / least.mean)),
        );
        let statement = format!("{name}: at most half of the time over TCP at every bottleneck (ours)");
        let what = "share of the time in probing periods, at the bottleneck where it is largest";
        claims.push(
            e.claim(format!("{key}-ends"), statement, Bound::AtMost(0.5), what)
                .because(sawtooth(found, key, places))
                .number(most),
        );
    }
    claims
}

/// How seldom a rule ends a probing period.
fn sawtooth(found: &study::Measurements<RunStats>, rule: &str, places: &[f64]) -> String {
    let begin = |kbps: f64| brief(found.estimate(rule, kbps, RUNNING.get));
    let each: Vec<String> = places.iter().map(|&kbps| format!("{} at {kbps} kbit/s", begin(kbps))).collect();
    format!(
        "Beside TCP whose window is not bounded rates follow its sawtooth, and are seldom that near each other: of running periods \
         begin {} in a run",
        each.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tpba::EXPERIMENTS;
    use crate::tpba::trace::FlowRates;
    use fairpace_scenario::Scenario;

    #[test]
    fn a_share_of_time_and_how_far_r_s_is_off() {
        // 10 s do not count; then 5 s of probing, 10 s of running at 440, 5 s of probing. TCP has 400.
        let line = |group: &str, kbps: f64| FlowRates { group: group.to_owned(), kbps: vec![kbps; 300] };
        let state = |row: usize| if (150..250).contains(&row) { "running" } else { "probing" };
        let trace = Trace {
            flows: vec![line("flow 1", 400.0), line("flow 2", 400.0), line("flow 3", 400.0)],
            states: (0..300).map(|row| state(row).to_owned()).collect(),
            allowed: vec![440.0; 300],
            ..Trace::default()
        };
        let f = run_stats(&trace);
        assert_eq!((f.probing, f.running, f.f), (0.5, 1.0, Some(1.0)));
        assert!((f.off.unwrap() - 0.1).abs() < 1e-12);
        let never = run_stats(&Trace { states: vec!["probing".to_owned(); 300], ..trace });
        assert_eq!((never.probing, never.running, never.off), (1.0, 0.0, None));
    }

    #[test]
    fn queues_hold_a_quarter_of_a_second_and_at_least_12_packets() {
        let e = EXPERIMENTS.iter().find(|e| e.id == "tpba.rules").unwrap();
        for (kbps, queue) in [(100, "6624 B"), (1_000, "31250 B"), (10_000, "312500 B")] {
            let s = RULES[1].put_into(&with(&base(e), |s| set_bottleneck(s, f64::from(kbps))));
            let again = Scenario::parse(&s.to_toml(), "again.toml").unwrap_or_else(|e| panic!("{kbps}: {e}"));
            assert_eq!((again.path.queue.capacity().text(), again.path.rate.clone()), (queue, s.path.rate.clone()));
        }
    }
}
