//! How a terminal knows what is free on its carrier [qsd Appendix A].

use super::phases::{ALL, PhaseRun, each_phase, peak};
use super::setup::{dama, satellite};
use super::spread::{Spread, of_phases};
use crate::builtin::{base, with};
use crate::figure::table;
use crate::{Bench, Bound, Experiment, Outcome, Tools};
use fairpace_lab::RunError;
use fairpace_lab::stats::short;
use fairpace_lab::study::{Job, Measure};
use fairpace_report::{BarRow, Bars};
use fairpace_scenario::{EstimatorKind, Scenario};
use serde::{Deserialize, Serialize};

const WAYS: [(EstimatorKind, &str, &str); 4] = [
    (EstimatorKind::Broadcast, "broadcast", "the NCC broadcasts it (A.1.1)"),
    (EstimatorKind::OnDemand, "on-demand", "the NCC is asked (A.1.2)"),
    (EstimatorKind::TbtpSum, "tbtp-sum", "sum of the TBTP's unassigned slots (A.2.1)"),
    (EstimatorKind::Listening, "listening", "listening to the others (A.2.2)"),
];

/// One flow in one phase.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
struct Response {
    /// When the approved rate came into use, s since the flow's start; none if never.
    approved_at: Option<f64>,
    /// The greatest end-to-end delay, s.
    peak: f64,
}

const RESPONSE: Measure<Response> = Measure { name: "qsd response", of: response };

fn response(job: &Job<'_>) -> Result<Response, RunError> {
    let run = PhaseRun::run(job)?;
    Ok(Response { approved_at: run.approved().map(|(at, _)| at), peak: peak(&run.packets()) })
}

pub(super) fn appendix(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let scenarios: Vec<Scenario> =
        WAYS.iter().map(|(way, ..)| with(&base(e), |s| satellite(s).quick_start.estimator = Some(*way))).collect();
    let cells = each_phase(e, &scenarios, ALL, bench, RESPONSE)?.cells;
    let all: Vec<Vec<Response>> = cells.iter().map(|c| c.runs.iter().map(|r| **r).collect()).collect();
    let rtt_m = dama(&base(e)).mean_rtt().as_secs_f64();
    let (mut claims, mut points) = (Vec::new(), Vec::new());
    let mut table = table(
        "When the approved rate comes into use",
        format!("{}; s, median over the phases (least to greatest); RTT_m = {} s", e.file, short(rtt_m)),
        ["way", "phases approved", "response after (s)", "greatest end-to-end delay (s)"],
        [],
    );
    for ((_, key, words), responses) in WAYS.iter().zip(&all) {
        let approved: Vec<f64> = responses.iter().filter_map(|a| a.approved_at).collect();
        let statement = format!("on an idle satellite the request is approved in every phase: {words}");
        claims.push(
            e.claim(*key, statement, Bound::AtLeast(1.0), "approved / phases")
                .exact(approved.len() as f64 / responses.len().max(1) as f64),
        );
        let text = |s: Option<Spread>| s.map_or("–".to_owned(), |s| s.text());
        let peaks = Spread::of(responses.iter().map(|a| a.peak).collect());
        points.extend(peaks.and_then(|s| of_phases(key, &[], "e2ed_peak_median_s", s.median, s.n)));
        let count = format!("{} of {}", approved.len(), responses.len());
        table.rows.push(vec![(*words).to_owned(), count, text(Spread::of(approved)), text(peaks)]);
    }
    if let [broadcast, on_demand, tbtp_sum, _] = &all[..] {
        let at = |a: &Response| a.approved_at.unwrap_or(f64::NAN);
        let later =
            |way: &[Response], unit: f64| way.iter().zip(broadcast).map(|(w, b)| (at(w) - at(b)) / unit).collect();
        let costs = "asking the NCC costs one RTT_m (ours: within 20 %)";
        let free = "summing the TBTP costs nothing";
        let unit = "response on demand - by broadcast, in RTT_m";
        claims.extend([
            e.claim("on-demand-costs-rtt-m", costs, Bound::Within(0.8, 1.2), unit).over_phases(later(on_demand, rtt_m)),
            e.claim("tbtp-sum-costs-nothing", free, Bound::Within(-1e-6, 1e-6), "response by sum - by broadcast, s")
                .over_phases(later(tbtp_sum, 1.0)),
        ]);
    }
    let bar = |((_, _, words), responses): (&(EstimatorKind, &str, &str), &Vec<Response>)| {
        let response = Spread::of(responses.iter().filter_map(|a| a.approved_at).collect());
        let values = vec![response.map_or(0.0, |s| (s.median * 1e3).round())];
        BarRow { label: (*words).to_owned(), colour: "qsd-opt".to_owned(), values, note: String::new() }
    };
    let bars = Bars {
        title: "Asking the NCC costs a round trip; the other ways cost nothing".to_owned(),
        caption: format!("{}; median over the phases", e.file),
        parts: vec!["response".to_owned()],
        unit: "ms".to_owned(),
        rows: WAYS.iter().zip(&all).map(bar).collect(),
    };
    let section = e.section().bars(bars).table(table);
    Ok(e.outcome(points, claims, section))
}
