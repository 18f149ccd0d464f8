//! The two terms of the complex equation's denominator over time, as a CRP flow sees its path
//! [lossy §3.5, Figs. 13 and 14].

use super::base;
use super::beside::{self, READINGS, Reading, set_error};
use crate::show;
use crate::{Bench, Bound, Claim, Experiment, Outcome, Point, Tools};
use fairpace_control::{Equation, TcpPath};
use fairpace_lab::pool::{self, Hooks};
use fairpace_lab::run::{RunError, simulate};
use fairpace_lab::stats::{Estimate, MAX_SEEDS, short};
use fairpace_report::{Axis, Chart, Series, Table};
use fairpace_scenario::{Record, Scenario};
use fairpace_units::Probability;
use std::collections::BTreeMap;

/// Errors in percent: Fig. 13 and Fig. 14.
const ERRORS: [f64; 2] = [0.0, 30.0];

/// The terms at one sample: when, in s; each in seconds per packet.
#[derive(Clone, Copy, Debug)]
struct Sample {
    at: f64,
    triple_dup: f64,
    timeout: f64,
}

/// One seed of one CRP at one error.
#[derive(Clone, Debug, Default)]
struct Run {
    /// Every CRP flow, one after the other.
    all: Vec<Sample>,
    /// The first of them.
    first: Vec<Sample>,
}

/// The runs of one CRP: without errors, and with.
type Pair = [Vec<Run>; 2];

/// Samples of the terms from a run's series.
fn run(scenario: &Scenario, seed: u64, hooks: &Hooks<'_>) -> Result<Run, RunError> {
    let record = Record { series: true, events: false, pcap: false };
    let done = simulate(scenario, scenario.seed.get() + seed, record, hooks)?;
    if done.summary.interrupted {
        return Err(RunError::Interrupted);
    }
    let mut run = Run::default();
    let main = |flow: usize| done.summary.flows.get(flow).is_some_and(|f| f.group == "main");
    for row in done.report.series.iter().filter(|row| main(row.flow as usize)) {
        let (Some(p), Some(srtt), Some(rto)) = (row.loss_event_rate, row.srtt, row.rto) else { continue };
        let path = TcpPath::new(scenario.packet_size.get(), srtt, rto.max(srtt), 1.0);
        let (Ok(path), Ok(p)) = (path, Probability::new(p)) else { continue };
        let terms = Equation::Complex.terms(&path, p);
        let sample = Sample { at: row.at.as_secs_f64(), triple_dup: terms.triple_dup_s, timeout: terms.timeout_s };
        run.all.push(sample);
        if row.flow == 0 {
            run.first.push(sample);
        }
    }
    Ok(run)
}

/// The value that a part `q` of the samples does not exceed; none of nothing.
fn quantile(samples: &[Sample], q: f64, term: Term) -> Option<f64> {
    let mut values: Vec<f64> = samples.iter().map(term).collect();
    values.sort_by(f64::total_cmp);
    values.get(((values.len() as f64 * q) as usize).min(values.len().saturating_sub(1))).copied()
}

type Term = fn(&Sample) -> f64;
const TIMEOUT: Term = |s| s.timeout;
const TRIPLE_DUP: Term = |s| s.triple_dup;

/// What counts as a peak: one second in twenty is above it.
const PEAK: f64 = 0.95;

pub(super) fn fig13_14(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let mut jobs = Vec::new();
    for (i, reading) in READINGS.iter().enumerate() {
        for (j, error) in ERRORS.into_iter().enumerate() {
            let mut cells = beside::cells(&base(e), &[reading.crp], &[error], set_error);
            let scenario = cells.pop().map_or_else(|| base(e), |cell| cell.scenario);
            jobs.extend((0..MAX_SEEDS).map(|seed| (i, j, scenario.clone(), seed as u64)));
        }
    }
    let hooks = bench.singles(jobs.len());
    let label = |(_, j, _, seed): &(usize, usize, Scenario, u64)| format!("{} at {} seed {seed}", e.id, ERRORS[*j]);
    let results = pool::map(&jobs, hooks, label, |(_, _, scenario, seed)| run(scenario, *seed, hooks));
    let mut pairs: [Pair; 2] = Default::default();
    for ((i, j, ..), result) in jobs.iter().zip(results) {
        pairs[*i][*j].push(result.ok_or(RunError::Interrupted)??);
    }
    let claims = READINGS.iter().zip(&pairs).flat_map(|(reading, pair)| claims(e.id, reading, pair)).collect();
    let mut section = show::section(e).text(format!(
        "The first CRP flow of twenty, sampled once a second, seed 1: the terms of the denominator with the p, the RTT and \
         the timeout by which it goes. Claims are about all twenty flows, {MAX_SEEDS} seeds. The paper's figures are drawn \
         to another scale; what is claimed of them is that the term of timeouts rises sharply under error."
    ));
    for (reading, pair) in READINGS.iter().zip(&pairs) {
        for (runs, error) in pair.iter().zip(ERRORS) {
            if let Some(run) = runs.first() {
                section = section.chart(chart(e, reading, run, error));
            }
        }
    }
    let section = section.table(table(e, &pairs));
    Ok(show::outcome(e, points(&pairs), claims, section))
}

/// The claims of Figs. 13 and 14 under a reading, from whatever was measured.
fn claims(id: &str, reading: &Reading, [clean, lossy]: &Pair) -> Vec<Claim> {
    let Reading { suffix, words, .. } = reading;
    let peak = |run: &Run, term| quantile(&run.all, PEAK, term);
    let of = |values: Vec<Option<f64>>| Estimate::of(&values.into_iter().collect::<Option<Vec<f64>>>()?);
    let both = |term| of(clean.iter().zip(lossy).map(|(c, l)| Some(peak(l, term)? / peak(c, term)?)).collect());
    vec![
        Claim::check(
            format!("{id}/timeout-spikes{suffix}"),
            format!("with 30 % error the peaks of the timeout term are at least twice those without (ours; {words})"),
            both(TIMEOUT),
            Bound::AtLeast(2.0),
            "95th percentile of the timeout term, 30 % error / none",
        )
        .if_it_fails(CONGESTED),
        Claim::check(
            format!("{id}/timeout-towers{suffix}"),
            format!("with 30 % error they are at least twice those of the other term (ours; {words})"),
            of(lossy.iter().map(|run| Some(peak(run, TIMEOUT)? / peak(run, TRIPLE_DUP)?)).collect()),
            Bound::AtLeast(2.0),
            "95th percentiles with 30 % error, timeouts / triple duplicate ACKs",
        ),
        Claim::check(
            format!("{id}/triple-dup-does-not{suffix}"),
            format!("the term of triple duplicate ACKs does not spike (ours: at most 1.5 times; {words})"),
            both(TRIPLE_DUP),
            Bound::AtMost(1.5),
            "95th percentile of the term of triple duplicate ACKs, 30 % error / none",
        ),
    ]
}

const CONGESTED: &str = "Without link errors the queue drops packets, and waiting in it makes RTT and timeout longer: the \
                         term is large there, too";

fn chart(e: &Experiment, reading: &Reading, run: &Run, error: f64) -> Chart {
    let title = match (quantile(&run.first, PEAK, TIMEOUT), quantile(&run.first, PEAK, TRIPLE_DUP)) {
        (Some(timeout), Some(triple_dup)) => format!(
            "{error} % error, {}: one second in twenty timeouts cost more than {} s per packet, triple duplicate ACKs \
             more than {}",
            reading.words,
            short(timeout),
            short(triple_dup)
        ),
        _ => format!("The terms with {error} % error, {}", reading.words),
    };
    let x = || run.first.iter().map(|s| s.at).collect::<Vec<f64>>();
    let y = |term: Term| run.first.iter().map(term).collect::<Vec<f64>>();
    Chart::new(title, Axis::new("time", "s"), Axis::new("term of the denominator", "s per packet"))
        .caption(format!("{}, seed 1, {error} % error", e.file))
        .series(Series::stepped("timeouts", "term-timeout", x(), y(TIMEOUT)))
        .series(Series::stepped("triple duplicate ACKs", "term-triple-dup", x(), y(TRIPLE_DUP)))
}

const TERMS: [(&str, &str, Term); 2] =
    [("timeouts", "timeout_term", TIMEOUT), ("triple duplicate ACKs", "triple_dup_term", TRIPLE_DUP)];

/// What the terms were, over all flows and seeds.
fn table(e: &Experiment, pairs: &[Pair; 2]) -> Table {
    let mut table = Table {
        title: "The terms over all flows".to_owned(),
        caption: format!("{}; seconds per packet, mean ± half-width of the 95 % interval over seeds", e.file),
        head: ["injected error (%)", "p", "term", "median", "95th percentile"].map(str::to_owned).to_vec(),
        rows: Vec::new(),
    };
    for (reading, pair) in READINGS.iter().zip(pairs) {
        for (runs, error) in pair.iter().zip(ERRORS) {
            for (name, _, term) in TERMS {
                let at = |q| estimate(runs, q, term).map_or("–".to_owned(), |e| e.text());
                let words = reading.words.trim_start_matches("p ").to_owned();
                table.rows.push(vec![short(error), words, name.to_owned(), at(0.5), at(PEAK)]);
            }
        }
    }
    table
}

fn estimate(runs: &[Run], q: f64, term: Term) -> Option<Estimate> {
    Estimate::of(&runs.iter().filter_map(|run| quantile(&run.all, q, term)).collect::<Vec<_>>())
}

fn points(pairs: &[Pair; 2]) -> Vec<Point> {
    let mut points = Vec::new();
    for (reading, pair) in READINGS.iter().zip(pairs) {
        for (runs, error) in pair.iter().zip(ERRORS) {
            for (_, key, term) in TERMS {
                if let Some(estimate) = estimate(runs, PEAK, term) {
                    let x = BTreeMap::from([("error_percent".to_owned(), error)]);
                    points.push(Point {
                        scheme: reading.crp.key.to_owned(),
                        x,
                        metric: format!("{key}_p95_s"),
                        estimate,
                    });
                }
            }
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flat(timeout: f64, triple_dup: f64) -> Vec<Run> {
        let sample = Sample { at: 0.0, triple_dup, timeout };
        vec![Run { all: vec![sample; 100], first: vec![sample] }; 3]
    }

    #[test]
    fn the_claims_follow_the_peaks() {
        let verdicts = |pair: &Pair| claims("mini", &READINGS[0], pair).iter().map(|c| c.holds).collect::<Vec<_>>();
        assert_eq!(verdicts(&[flat(0.1, 0.1), flat(0.5, 0.1)]), [true, true, true]);
        assert_eq!(verdicts(&[flat(0.3, 0.1), flat(0.5, 0.1)]), [false, true, true]);
        assert_eq!(verdicts(&[flat(0.1, 0.1), flat(0.5, 0.3)]), [true, false, false]);
        assert_eq!(verdicts(&[Vec::new(), Vec::new()]), [false, false, false]);
    }

    #[test]
    fn a_quantile_is_a_sample_that_so_many_do_not_exceed() {
        let samples: Vec<Sample> =
            (1..=100).map(|i| Sample { at: 0.0, triple_dup: 0.0, timeout: f64::from(i) }).collect();
        assert_eq!(quantile(&samples, 0.95, TIMEOUT), Some(96.0));
        assert_eq!(quantile(&samples, 1.0, TIMEOUT), Some(100.0));
        assert_eq!(quantile(&[], 0.5, TIMEOUT), None);
    }
}
