//! How a terminal knows what is free on its carrier [qsd Appendix A].

use super::with;
use super::{ALL, InPhase, Spread, base, dama, each_phase, exact_claim, over_phases_claim, peak, point, satellite};
use crate::show;
use crate::{Bench, Bound, Experiment, Outcome, Tools};
use fairpace_lab::RunError;
use fairpace_lab::stats::short;
use fairpace_report::{BarRow, Bars, Table};
use fairpace_scenario::{EstimatorKind, Scenario};

const WAYS: [(EstimatorKind, &str, &str); 4] = [
    (EstimatorKind::Broadcast, "broadcast", "the NCC broadcasts it (A.1.1)"),
    (EstimatorKind::OnDemand, "on-demand", "the NCC is asked (A.1.2)"),
    (EstimatorKind::TbtpSum, "tbtp-sum", "sum of the TBTP's unassigned slots (A.2.1)"),
    (EstimatorKind::Listening, "listening", "listening to the others (A.2.2)"),
];

/// One flow in one phase.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Asked {
    /// When the approved rate came into use, s since the flow's start; `NAN` if never.
    approved_at: f64,
    /// The greatest end-to-end delay, s.
    peak: f64,
}

impl Asked {
    fn of(run: &InPhase<'_>) -> Asked {
        Asked { approved_at: run.approved().map_or(f64::NAN, |(at, _)| at), peak: peak(&run.packets()) }
    }
}

pub(super) fn appendix(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let scenarios: Vec<Scenario> =
        WAYS.iter().map(|(way, ..)| with(&base(e), |s| satellite(s).quick_start.estimator = Some(*way))).collect();
    let all = each_phase(e.id, &scenarios, ALL, bench, Asked::of)?;
    let rtt_m = dama(&base(e)).mean_rtt().as_secs_f64();
    let (mut claims, mut points) = (Vec::new(), Vec::new());
    let mut table = Table {
        title: "When the approved rate comes into use".to_owned(),
        caption: format!("{}; s, median over the phases (least to greatest); RTT_m = {} s", e.file, short(rtt_m)),
        head: ["way", "phases approved", "response after (s)", "greatest end-to-end delay (s)"]
            .map(str::to_owned)
            .to_vec(),
        rows: Vec::new(),
    };
    for ((_, key, words), asked) in WAYS.iter().zip(&all) {
        let approved: Vec<f64> = asked.iter().map(|a| a.approved_at).filter(|at| at.is_finite()).collect();
        claims.push(exact_claim(
            format!("{}/{key}", e.id),
            format!("on an idle satellite the request is approved in every phase: {words}"),
            approved.len() as f64 / asked.len().max(1) as f64,
            Bound::AtLeast(1.0),
            "approved / phases",
        ));
        let text = |s: Option<Spread>| {
            s.map_or("–".to_owned(), |s| format!("{} ({} to {})", short(s.median), short(s.least), short(s.greatest)))
        };
        let peaks = Spread::of(asked.iter().map(|a| a.peak).collect());
        points.extend(peaks.and_then(|s| point(key, &[], "e2ed_peak_median_s", s.median, s.n)));
        let count = format!("{} of {}", approved.len(), asked.len());
        table.rows.push(vec![(*words).to_owned(), count, text(Spread::of(approved)), text(peaks)]);
    }
    if let [broadcast, on_demand, tbtp_sum, _] = &all[..] {
        let later =
            |way: &[Asked]| way.iter().zip(broadcast).map(|(w, b)| w.approved_at - b.approved_at).collect::<Vec<f64>>();
        claims.push(over_phases_claim(
            format!("{}/on-demand-costs-rtt-m", e.id),
            "asking the NCC costs one RTT_m (ours: within 20 %)".to_owned(),
            later(on_demand).into_iter().map(|s| s / rtt_m).collect(),
            Bound::Within(0.8, 1.2),
            "response on demand - by broadcast, in RTT_m",
        ));
        claims.push(over_phases_claim(
            format!("{}/tbtp-sum-costs-nothing", e.id),
            "summing the TBTP costs nothing".to_owned(),
            later(tbtp_sum),
            Bound::Within(-1e-6, 1e-6),
            "response by sum - by broadcast, s",
        ));
    }
    let bars = Bars {
        title: "Asking the NCC costs a round trip; the other ways cost nothing".to_owned(),
        caption: format!("{}; median over the phases", e.file),
        parts: vec!["response".to_owned()],
        unit: "ms".to_owned(),
        rows: WAYS
            .iter()
            .zip(&all)
            .map(|((_, _, words), asked)| {
                let response = Spread::of(asked.iter().map(|a| a.approved_at).filter(|at| at.is_finite()).collect());
                BarRow {
                    label: (*words).to_owned(),
                    colour: "qsd-opt".to_owned(),
                    values: vec![response.map_or(0.0, |s| (s.median * 1e3).round())],
                    note: String::new(),
                }
            })
            .collect(),
    };
    let section = show::section(e).bars(bars).table(table);
    Ok(show::outcome(e, points, claims, section))
}
