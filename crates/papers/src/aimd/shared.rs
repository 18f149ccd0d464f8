//! Several flows on one wireless link, their windows by eq. (4) [aimd §IV-C, Figs. 6, 7].

use super::setup::{
    self, D, ERRORS, FlowStats, OUTAGE, PERSISTENT, R, START, caption, measure, of_flow, seeds, set_windows, slots,
};
use crate::builtin::{base, with};
use crate::claim::exact;
use crate::figure::{curve, point, table, text};
use crate::{Bench, Bound, Claim, Experiment, Outcome, Point, Tools};
use fairpace_analysis::qos::{self, Process, QosError, SharedFlow, Split};
use fairpace_lab::RunError;
use fairpace_lab::stats::{Estimate, short};
use fairpace_lab::study::{Case, Cell, largest, smallest};
use fairpace_report::{Axis, Chart, Series, Table};
use fairpace_scenario::{AccessSpec, RawScenario};

/// R of the flows with a longer way, slots.
const FAR: u32 = 25;
/// Seeds per point.
const SEEDS: usize = 20;
/// Colours of the flows.
const COLOURS: [&str; 4] = ["terminal 1", "terminal 2", "terminal 3", "terminal 4"];

/// The RTTs of the panel.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Panel {
    key: &'static str,
    words: &'static str,
    /// R of every second flow.
    far: u32,
    /// How equal throughputs must be, and how large an outage may be: ours.
    equal: f64,
    outage: f64,
}

/// "About 1 %" is at most 1.1 %. With unequal RTT one packet of the smallest windows, of five, makes throughputs unequal.
const PANELS: [Panel; 2] = [
    Panel { key: "a", words: "equal RTT", far: R, equal: 0.98, outage: 1.1 * OUTAGE },
    Panel { key: "b", words: "RTT of 17 and 25 slots", far: FAR, equal: 0.95, outage: 1.1 * OUTAGE },
];

impl Panel {
    fn flows(&self, n: usize) -> Vec<SharedFlow> {
        let r = |i| if i % 2 == 0 { R } else { self.far };
        (0..n).map(|i| SharedFlow { r: r(i), d: D, bound: OUTAGE, share: 1.0 }).collect()
    }
}

/// One point: the plan for it, and what came of it.
struct PlannedPoint {
    percent: f64,
    split: Split,
    /// By formula.
    outages: Vec<f64>,
    runs: Cell<Vec<FlowStats>>,
}

/// The windows of a figure, and the outages that they have by formula. The largest sum that keeps all bounds may not be
/// one that whole windows can split as eq. (4) wants; of it and the N - 1 below it, that which violates eq. (4) least.
fn windows(process: &Process, flows: &[SharedFlow]) -> Result<(Split, Vec<f64>), QosError> {
    let (mut best, mut outages) = qos::largest_split(process, flows, START)?;
    let most: u32 = best.windows.iter().sum();
    for total in (1..flows.len() as u32).map(|less| most - less) {
        let split = qos::split(process, flows, total)?;
        if split.violation < best.violation - 1e-9 {
            outages = qos::shared_outage(process, flows, &split.windows, START)?;
            best = split;
        }
    }
    Ok((best, outages))
}

/// Sets the flows' windows and RTTs. The nearest has the access link of the scenario.
pub(super) fn set_flows(s: &mut RawScenario, flows: &[SharedFlow], windows: &[u32]) {
    set_windows(s, windows);
    let near = s.flows.first().and_then(|f| f.access.clone()).unwrap_or_default();
    for (flow, plan) in s.flows.iter_mut().zip(flows) {
        let longer = slots(f64::from(plan.r - R)).get() + near.rtt.get();
        let rtt = longer.into();
        flow.access = Some(AccessSpec { rtt, ..near.clone() });
    }
}

pub(super) fn fig6(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    figure(e, bench, 2)
}

pub(super) fn fig7(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    figure(e, bench, 4)
}

fn figure(e: &Experiment, bench: &mut Bench<'_>, n: usize) -> Result<Outcome, RunError> {
    let base = base(e);
    let seeds = seeds(bench, SEEDS);
    let (mut claims, mut points) = (Vec::new(), Vec::new());
    let mut section = e.section();
    for panel in &PANELS {
        let flows = panel.flows(n);
        let plans: Vec<(f64, Split, Vec<f64>)> = ERRORS
            .iter()
            .filter_map(|p| {
                let (split, outages) = windows(&PERSISTENT.process(*p).ok()?, &flows).ok()?;
                Some((*p, split, outages))
            })
            .collect();
        let scenario = |(percent, split, _): &(f64, Split, Vec<f64>)| {
            with(&base, |s| {
                PERSISTENT.set(s, *percent);
                set_flows(s, &flows, &split.windows);
            })
        };
        let cases = plans.iter().map(|plan| Case::new(panel.key, plan.0, scenario(plan))).collect();
        let runs = measure(e, cases, seeds, bench)?.cells;
        let places = plans.into_iter().zip(runs).map(|((percent, split, outages), runs)| PlannedPoint {
            percent,
            split,
            outages,
            runs,
        });
        let places: Vec<PlannedPoint> = places.collect();
        claims.extend(panel_claims(e, panel, &places, n));
        points.extend(panel_points(panel, &places, n));
        let caption = caption(e, seeds);
        section = section
            .chart(throughputs(panel, &places, n, &caption))
            .chart(outages(panel, &places, n, &caption))
            .table(numbers(e, panel, &places, n));
    }
    Ok(e.outcome(points, claims, section.folded()))
}

/// Throughput of the flow that gets least, as a part of that which gets most.
fn evenness(runs: &Cell<Vec<FlowStats>>) -> Option<Estimate> {
    runs.mean(|run| {
        let of = || run.iter().map(|g| g.throughput);
        of().fold(f64::INFINITY, f64::min) / of().fold(0.0, f64::max)
    })
}

fn panel_claims(e: &Experiment, panel: &Panel, places: &[PlannedPoint], n: usize) -> Vec<Claim> {
    let per_flow = places.iter().flat_map(|p| (0..n).map(|i| (p.percent, of_flow(&p.runs, i, |g| g.outage))));
    let used = places.iter().map(|p| {
        (p.percent, p.runs.mean(|run| run.iter().map(|g| g.throughput).sum::<f64>() / (1.0 - p.percent / 100.0)))
    });
    let words = panel.words;
    let percent = ((1.0 - panel.equal) * 100.0).round();
    vec![
        e.claim(
            format!("{}-equal", panel.key),
            format!("{words}: the flows' throughputs are equal, at every error (ours: within {percent} %)"),
            Bound::AtLeast(panel.equal),
            "least throughput of a flow / most, at {at} %",
        )
        .everywhere(places.iter().map(|p| (p.percent, evenness(&p.runs)))),
        e.claim(
            format!("{}-outage", panel.key),
            format!("{words}: the delay outage of each flow is at most about 1 %, at every error (ours: 1.1 %)"),
            Bound::AtMost(panel.outage),
            "largest outage of a flow, at {at} %",
        )
        .everywhere(per_flow),
        e.claim(
            format!("{}-full", panel.key),
            format!("{words}: together they fill the link, at every error (ours: within 0.5 %)"),
            Bound::AtLeast(0.995),
            "sum of the throughputs / (1 - p_e), at {at} %",
        )
        .because(FULL_NOTE)
        .everywhere(used),
    ]
}

const FULL_NOTE: &str = "The sum that whole windows can split best by eq. (4) is too small there to fill the link, as half of the flows \
                         are 25 slots away";

fn panel_points(panel: &Panel, places: &[PlannedPoint], n: usize) -> Vec<Point> {
    let mut points = Vec::new();
    for p in places {
        for i in 0..n {
            let scheme = format!("{}-flow-{}", panel.key, i + 1);
            let x = [("error_percent", p.percent)];
            points.extend(point(&scheme, &x, "rwnd_packets", exact(f64::from(p.split.windows[i]))));
            points.extend(point(&scheme, &x, "throughput_packets_per_slot", of_flow(&p.runs, i, |g| g.throughput)));
            points.extend(point(&scheme, &x, "outage", of_flow(&p.runs, i, |g| g.outage)));
            points.extend(point(&scheme, &x, "outage_formula", exact(p.outages[i])));
        }
    }
    points
}

fn name(panel: &Panel, i: usize, n: usize) -> String {
    format!("flow {}, R = {}", i + 1, panel.flows(n)[i].r)
}

fn lines(
    chart: Chart,
    panel: &Panel,
    places: &[PlannedPoint],
    n: usize,
    number: fn(&setup::FlowStats) -> f64,
) -> Chart {
    (0..n).fold(chart, |chart, i| {
        let of = places.iter().map(|p| (p.percent, of_flow(&p.runs, i, number)));
        chart.series(curve(name(panel, i, n), COLOURS[i % COLOURS.len()], of))
    })
}

fn throughputs(panel: &Panel, places: &[PlannedPoint], n: usize, caption: &str) -> Chart {
    let (_, even) = smallest(places.iter().map(|p| (p.percent, evenness(&p.runs))));
    let off = even.map_or("–".to_owned(), |e| short((1.0 - e.mean) * 100.0));
    let title = format!("{} flows, {}: throughputs differ by at most {off} %", n, panel.words);
    let x: Vec<f64> = places.iter().map(|p| p.percent).collect();
    let share = x.iter().map(|p| (1.0 - p / 100.0) / n as f64).collect();
    let (axis, unit) = (Axis::new("error probability", "%"), Axis::new("throughput", "packets per slot"));
    let chart = Chart::new(title, axis, unit).caption(caption);
    lines(chart.series(Series::line("(1 - p_e) / N", "reference", x, share).reference()), panel, places, n, |g| {
        g.throughput
    })
}

fn outages(panel: &Panel, places: &[PlannedPoint], n: usize, caption: &str) -> Chart {
    let (_, late) = largest(places.iter().flat_map(|p| (0..n).map(|i| (p.percent, of_flow(&p.runs, i, |g| g.outage)))));
    let most = late.map_or("–".to_owned(), |e| short(e.mean * 100.0));
    let title = format!("{} flows, {}: the delay outage is at most {most} %", n, panel.words);
    let (axis, unit) = (Axis::new("error probability", "%"), Axis::new("delay outage", "part of the packets"));
    let x = || places.iter().map(|p| p.percent).collect::<Vec<f64>>();
    let mut chart = Chart::new(title, axis, unit)
        .caption(caption)
        .series(Series::line("1 %", "reference", x(), vec![OUTAGE; places.len()]).reference());
    // With equal RTTs the formula is the same for all flows.
    let different = if panel.far == R { 1 } else { 2.min(n) };
    for (i, colour) in COLOURS.iter().enumerate().take(different) {
        let formula = places.iter().map(|p| p.outages[i]).collect();
        let name = format!("formula, R = {}", panel.flows(n)[i].r);
        chart = chart.series(Series::line(name, *colour, x(), formula).reference());
    }
    lines(chart, panel, places, n, |g| g.outage)
}

fn numbers(e: &Experiment, panel: &Panel, places: &[PlannedPoint], n: usize) -> Table {
    let mut head = vec!["error (%)".to_owned(), "rwnd by eq. (4), exact".to_owned(), "rwnd".to_owned()];
    for i in 0..n {
        let flow = i + 1;
        head.extend([format!("throughput {flow}"), format!("outage {flow}"), format!("by formula {flow}")]);
    }
    let row = |p: &PlannedPoint| {
        let joined = |texts: Vec<String>| texts.join(", ");
        let mut row = vec![
            p.percent.to_string(),
            joined(p.split.exact.iter().map(|w| format!("{w:.2}")).collect()),
            joined(p.split.windows.iter().map(u32::to_string).collect()),
        ];
        for i in 0..n {
            row.extend([
                text(of_flow(&p.runs, i, |g| g.throughput)),
                text(of_flow(&p.runs, i, |g| g.outage)),
                short(p.outages[i]),
            ]);
        }
        row
    };
    table(
        format!("{n} flows, {}", panel.words),
        format!("{}; throughput in packets per slot, outage as a part of the packets received", e.file),
        head,
        places.iter().map(row),
    )
}
