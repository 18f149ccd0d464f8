//! The two terms of the complex equation's denominator over time, as a CRP flow sees its path
//! [lossy §3.5, Figs. 13 and 14].

use super::beside::{CRP, ERROR, set_error};
use crate::builtin::base;
use crate::figure::{Figure, counted, point, table, text};
use crate::{Bench, Bound, Claim, Experiment, Outcome, Point, Tools};
use fairpace_control::{Equation, TcpPath};
use fairpace_lab::RunError;
use fairpace_lab::stats::{Estimate, MAX_SEEDS, short};
use fairpace_lab::study::{Case, Job, Measure, Measurements};
use fairpace_report::{Axis, Chart, Series, Table};
use fairpace_scenario::Record;
use fairpace_units::Probability;
use serde::{Deserialize, Serialize};

/// Errors in percent: Fig. 13 and Fig. 14.
const ERRORS: [f64; 2] = [0.0, 30.0];

const FIG13_14: Figure<Run> = Figure { x: ERROR, places: &ERRORS, schemes: &[CRP], vary: set_error, quantities: &[] };

/// The terms at one sample: when, in s; each in seconds per packet.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
struct Sample {
    at: f64,
    triple_dup: f64,
    timeout: f64,
}

/// One run of a CRP at one error.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
struct Run {
    /// Medians of the terms over all CRP flows, and their peaks; none if there was no sample.
    median: Option<Sample>,
    peak: Option<Sample>,
    /// The samples of the first flow.
    first: Vec<Sample>,
}

/// The median, or the peak, of a run.
type Statistic = fn(&Run) -> Option<&Sample>;
const MEDIAN: Statistic = |run| run.median.as_ref();
const PEAKS: Statistic = |run| run.peak.as_ref();

const MEASURE: Measure<Run> = Measure { name: "lossy terms", of: watch };

/// Samples of the terms from a run's series.
fn watch(job: &Job<'_>) -> Result<Run, RunError> {
    let done = job.run(Record { series: true, events: false, pcap: false })?;
    let (mut all, mut first) = (Vec::new(), Vec::new());
    let main = |flow: usize| done.summary.flows.get(flow).is_some_and(|f| f.group == "main");
    for row in done.report.series.iter().filter(|row| main(row.flow as usize)) {
        let (Some(p), Some(srtt), Some(rto)) = (row.loss_event_rate, row.srtt, row.rto) else { continue };
        let path = TcpPath::new(job.scenario.packet_size.get(), srtt, rto.max(srtt), 1.0);
        let (Ok(path), Ok(p)) = (path, Probability::new(p)) else { continue };
        let terms = Equation::Complex.terms(&path, p);
        let sample = Sample { at: row.at.as_secs_f64(), triple_dup: terms.triple_dup_s, timeout: terms.timeout_s };
        all.push(sample);
        if row.flow == 0 {
            first.push(sample);
        }
    }
    let at = |q: f64| {
        Some(Sample { at: 0.0, triple_dup: quantile(&all, q, TRIPLE_DUP)?, timeout: quantile(&all, q, TIMEOUT)? })
    };
    Ok(Run { median: at(0.5), peak: at(PEAK), first })
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

/// The quantile that counts as a peak: one second in twenty is above.
const PEAK: f64 = 0.95;

pub(super) fn fig13_14(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let cases: Vec<Case> = FIG13_14.cases(&base(e));
    let found = counted(e, bench, MEASURE, cases, MAX_SEEDS)?;
    let claims = claims(e, &found);
    let mut section = e.section().text(format!(
        "The first CRP flow of twenty, sampled once a second, seed 1: the terms of the denominator with the p, the RTT and \
         the timeout by which it goes. Claims are about all twenty flows, {MAX_SEEDS} seeds. The paper's figures are drawn \
         to another scale; what is claimed of them is that the term of timeouts rises sharply under error."
    ));
    for error in ERRORS {
        if let Some(run) = found.runs(CRP.key, error).first() {
            section = section.chart(chart(e, run, error));
        }
    }
    Ok(e.outcome(points(&found), claims, section.table(numbers(e, &found))))
}

/// The claims of Figs. 13 and 14, from whatever was measured.
fn claims(e: &Experiment, found: &Measurements<Run>) -> Vec<Claim> {
    let crp = &CRP;
    let [clean, lossy] = ERRORS;
    let peak = |run: &Run, term: Term| PEAKS(run).map(term);
    let of = |of: Statistic, error: f64| text(found.estimate(crp.key, error, |run| of(run).map(TIMEOUT)));
    let both = |term| found.paired((crp.key, lossy), (crp.key, clean), |l, c| Some(peak(l, term)? / peak(c, term)?));
    let statement = "with 30 % error the peaks of the timeout term are at least twice those without (ours)";
    let what = "95th percentile of the timeout term, 30 % error / none";
    let spikes = e.claim("timeout-spikes", statement, Bound::AtLeast(2.0), what);
    let statement = "with 30 % error they are at least twice those of the other term (ours)";
    let what = "95th percentiles with 30 % error, timeouts / triple duplicate ACKs";
    let towers = e.claim("timeout-towers", statement, Bound::AtLeast(2.0), what);
    let statement = "the term of triple duplicate ACKs does not spike (ours: at most 1.5 times)";
    let what = "95th percentile of the term of triple duplicate ACKs, 30 % error / none";
    let does_not = e.claim("triple-dup-does-not", statement, Bound::AtMost(1.5), what);
    vec![
        spikes
            .because(format!(
                "The 95th percentile of the timeout term is {} s per packet without link errors, {} with; its median {} and {}",
                of(PEAKS, clean),
                of(PEAKS, lossy),
                of(MEDIAN, clean),
                of(MEDIAN, lossy)
            ))
            .number(both(TIMEOUT)),
        towers.number(found.estimate(crp.key, lossy, |run| Some(peak(run, TIMEOUT)? / peak(run, TRIPLE_DUP)?))),
        does_not.number(both(TRIPLE_DUP)),
    ]
}

fn chart(e: &Experiment, run: &Run, error: f64) -> Chart {
    let title = match (quantile(&run.first, PEAK, TIMEOUT), quantile(&run.first, PEAK, TRIPLE_DUP)) {
        (Some(timeout), Some(triple_dup)) => format!(
            "{error} % error: one second in twenty timeouts cost more than {} s per packet, triple duplicate ACKs \
             more than {}",
            short(timeout),
            short(triple_dup)
        ),
        _ => format!("The terms with {error} % error"),
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

/// The terms over all flows and seeds.
fn numbers(e: &Experiment, found: &Measurements<Run>) -> Table {
    let mut rows = Vec::new();
    for error in ERRORS {
        for (name, _, term) in TERMS {
            let at = |of| text(estimate(found, error, of, term));
            rows.push(vec![short(error), name.to_owned(), at(MEDIAN), at(PEAKS)]);
        }
    }
    let caption = format!("{}; seconds per packet, mean ± half-width of the 95 % interval over seeds", e.file);
    let head = ["injected error (%)", "term", "median", "95th percentile"];
    table("The terms over all flows", caption, head, rows)
}

fn estimate(found: &Measurements<Run>, error: f64, of: Statistic, term: Term) -> Option<Estimate> {
    found.estimate(CRP.key, error, |run| of(run).map(term))
}

fn points(found: &Measurements<Run>) -> Vec<Point> {
    let mut points = Vec::new();
    for error in ERRORS {
        for (_, key, term) in TERMS {
            let peak = estimate(found, error, PEAKS, term);
            points.extend(point(CRP.key, &[(ERROR.key, error)], format!("{key}_p95_s"), peak));
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairpace_lab::study::Cell;
    use std::rc::Rc;

    /// A run without errors and one with, in which the terms (timeout, triple duplicate ACKs) are always the same.
    fn flat(of: [Option<(f64, f64)>; 2]) -> Measurements<Run> {
        let cell = |(x, of): (f64, Option<(f64, f64)>)| {
            let peak = of.map(|(timeout, triple_dup)| Sample { at: 0.0, triple_dup, timeout });
            let run = Rc::new(Run { median: peak, peak, first: Vec::new() });
            Cell { scheme: CRP.key.to_owned(), x: vec![x], runs: vec![run; 3] }
        };
        Measurements { cells: ERRORS.into_iter().zip(of).map(cell).collect() }
    }

    #[test]
    fn the_claims_follow_the_peaks() {
        let e = crate::lossy::EXPERIMENTS.iter().find(|e| e.id == "lossy.fig13-14").unwrap();
        let verdicts = |of| claims(e, &flat(of)).iter().map(|c| c.holds).collect::<Vec<_>>();
        assert_eq!(verdicts([Some((0.1, 0.1)), Some((0.5, 0.1))]), [true, true, true]);
        assert_eq!(verdicts([Some((0.3, 0.1)), Some((0.5, 0.1))]), [false, true, true]);
        assert_eq!(verdicts([Some((0.1, 0.1)), Some((0.5, 0.3))]), [true, false, false]);
        assert_eq!(verdicts([None, None]), [false, false, false]);
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
