//! LDA beside TCP [tpba §3, Fig. 3].

use super::setup::{caption, each, estimate, seeds};
use super::trace::{Trace, rates_chart, trace};
use crate::builtin::{base, with};
use crate::figure::{Numbers, brief, with_doubts};
use crate::{Bench, Bound, Experiment, Outcome, Tools};
use fairpace_lab::RunError;
use fairpace_lab::stats::mean;
use fairpace_lab::study::Measure;
use fairpace_report::Section;
use fairpace_scenario::{RawScenario, Room};
use serde::{Deserialize, Serialize};

/// A queue and a window of TCP.
#[derive(Clone, Copy, Debug)]
struct SetUp {
    key: &'static str,
    name: &'static str,
    /// The scenario's if there is none.
    queue: Option<u64>,
    unlimited: bool,
}

/// The first is the paper's, as we read it.
const SET_UPS: [SetUp; 4] = [
    SetUp { key: "96k-16k", name: "96 KiB; 16 KiB", queue: None, unlimited: false },
    SetUp { key: "96k-unlimited", name: "96 KiB; unlimited", queue: None, unlimited: true },
    SetUp { key: "50p-16k", name: "50 packets; 16 KiB", queue: Some(50), unlimited: false },
    SetUp { key: "50p-unlimited", name: "50 packets; unlimited", queue: Some(50), unlimited: true },
];

/// Sets a queue, and takes TCP's window off.
pub(super) fn set_up(s: &mut RawScenario, queue: Option<u64>, unlimited: bool) {
    if let Some(room) = queue {
        s.path.queue.set_capacity(Room::packets(room));
    }
    for tcp in s.flows.iter_mut().filter_map(|f| f.tcp.as_mut()) {
        tcp.max_window = tcp.max_window.filter(|_| !unlimited);
    }
}

/// Seconds in which the gap is taken at first, and at last.
const FIRST: std::ops::Range<usize> = 5..15;
const LAST: std::ops::Range<usize> = 45..60;

#[derive(Clone, Debug, Deserialize, Serialize)]
struct RunStats {
    trace: Trace,
    lost: f64,
    first: f64,
    last: f64,
}

const MEASURE: Measure<RunStats> = Measure { name: "tpba lda", of: |job| Ok(run_stats(&trace(job)?)) };

fn run_stats(trace: &Trace) -> RunStats {
    let rates = trace.each_second();
    let gap = |of: std::ops::Range<usize>| {
        let means: Vec<f64> = rates.iter().map(|r| mean(r.get(of.clone()).unwrap_or(&[]))).collect();
        means.get(2).copied().unwrap_or(f64::NAN) - mean(means.get(..2).unwrap_or(&[]))
    };
    let lost = if trace.sent > 0.0 { trace.dropped / trace.sent } else { 0.0 };
    RunStats { lost, first: gap(FIRST), last: gap(LAST), trace: Trace { adus: Vec::new(), ..trace.clone() } }
}

pub(super) fn fig3(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let seeds = seeds(bench, 10, 1);
    let scenarios = SET_UPS.map(|u| with(&base(e), |s| set_up(s, u.queue, u.unlimited)));
    let all = each(e, bench, scenarios, seeds, MEASURE)?;
    let Some(paper) = all.first().map(|c| &c.runs) else { return Err(RunError::Interrupted) };
    let [none, above, gap] = [
        "no loss is reported to LDA",
        "LDA keeps more than the TCP flows",
        "the gap does not close, but grows slightly",
    ];
    let later = "by how much it is larger at 45 s to 60 s than at 5 s to 15 s, kbit/s";
    let claims = vec![
        e.claim("no-loss", none, Bound::AtMost(0.0), "share of flow 3's packets that is lost")
            .number(estimate(paper, |f| Some(f.lost))),
        e.claim("above", above, Bound::Above(0.0), "flow 3 less the mean of flows 1 and 2, kbit/s, 45 s to 60 s")
            .number(estimate(paper, |f| Some(f.last))),
        e.claim("gap", gap, Bound::Above(0.0), later).number(estimate(paper, |f| Some(f.last - f.first))),
    ];
    let mut numbers = Numbers::default();
    for (u, runs) in SET_UPS.iter().zip(all.iter().map(|c| &c.runs)) {
        let of = |number: fn(&RunStats) -> f64| estimate(runs, |f| Some(number(f)));
        let all =
            [("lost", of(|f| f.lost * 100.0)), ("gap_first_kbps", of(|f| f.first)), ("gap_last_kbps", of(|f| f.last))];
        numbers.row([u.name], (u.key, &[]), &all);
    }
    let table = numbers.table(
        "The gap, by the router's queue and TCP's window",
        format!("{seeds} seeds each, mean ± half-width of the 95 % interval"),
        ["queue; window", "lost (%)", "gap, 5 s to 15 s (kbit/s)", "gap, 45 s to 60 s (kbit/s)"],
    );
    let last = brief(estimate(paper, |f| Some(f.last)));
    let title = format!("After a minute LDA still gets {last} kbit/s more than the TCP flows beside it");
    let caption = caption(e, bench.world(), "seed 1, means over 500 ms");
    let first = paper.first().map(|first| rates_chart(title, caption, &first.trace, 5));
    let section = first.into_iter().fold(e.section().text(UNBOUNDED), Section::chart);
    let section = with_doubts(section, all.iter().flat_map(|c| &c.runs).map(|f| &f.trace.invalid));
    Ok(e.outcome(numbers.points, claims, section.table(table)))
}

const UNBOUNDED: &str = "Where TCP's windows are bounded and the queue takes them all, TCP loses nothing, and a sender beside it \
                         that waits for a loss never hears of one.";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tpba::trace::FlowRates;

    #[test]
    fn the_gap_is_flow_3_less_the_mean_of_the_others() {
        let line = |group: &str, first: f64, last: f64| {
            let kbps = (0..600).map(|row| if row < 300 { first } else { last }).collect();
            FlowRates { group: group.to_owned(), kbps }
        };
        let flows = vec![line("flow 1", 300.0, 310.0), line("flow 2", 340.0, 250.0), line("flow 3", 560.0, 640.0)];
        let f = run_stats(&Trace { flows, dropped: 5.0, sent: 100.0, ..Trace::default() });
        assert_eq!((f.lost, f.first, f.last), (0.05, 240.0, 360.0));
    }
}
