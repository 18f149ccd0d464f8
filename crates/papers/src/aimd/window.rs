//! One flow behind a shared backbone: the largest window that keeps the delay bound [aimd §IV-A, Figs. 3, 4], and its
//! throughput beside TCP [aimd §IV-B, Fig. 5].

use super::readings::{AFTER_SUCCESS, THREE_STATES};
use super::setup::{
    D, DROPPED, ERRORS, FlowStats, LATE, Link, OPTIMAL, OPTIMAL_3, OUTAGE, PERSISTENT, R, caption, measure, of_first,
    of_flow, seeds, set_windows,
};
use crate::builtin::{base, with};
use crate::claim::exact;
use crate::figure::{Abscissa, Figure, Quantity, Scheme, curve, point, table, text};
use crate::{Bench, Bound, Claim, Experiment, Outcome, Point, Tools};
use fairpace_analysis::qos::{self, Start};
use fairpace_lab::RunError;
use fairpace_lab::stats::{Estimate, mean, short};
use fairpace_lab::study::{Case, Measurements, largest, smallest};
use fairpace_report::{Axis, Chart, Series};
use fairpace_scenario::{Count, RawScenario, Scenario};
use std::collections::BTreeMap;

// --- Figs. 3 and 4 -------------------------------------------------------------------------------------------------

/// One point of Figs. 3 and 4: the windows that were tried there.
#[derive(Clone, Debug)]
struct WindowSearch {
    link: Link,
    /// p_e, percent.
    percent: f64,
    heavy: bool,
    /// W_max by eq. (3), slots counted from any slot on, and from the slot after a success on.
    formula: [u32; 2],
    /// The place of the window that the claims are about.
    about: usize,
    /// Delay outage by window.
    outages: BTreeMap<u32, Estimate>,
    /// Throughput by window, packets per slot.
    throughputs: BTreeMap<u32, Estimate>,
}

/// No window above this keeps any jitter of D.
const MOST: u32 = R + D + 1;

impl WindowSearch {
    fn new(link: Link, percent: f64, heavy: bool, start: Start) -> Option<WindowSearch> {
        let process = link.process(percent).ok()?;
        let window = |start| qos::largest_window(&process, R, D, OUTAGE, start).ok();
        let formula = [window(Start::Stationary)?, window(Start::AfterSuccess)?];
        let about = usize::from(start == Start::AfterSuccess);
        let (outages, throughputs) = (BTreeMap::new(), BTreeMap::new());
        Some(WindowSearch { link, percent, heavy, formula, about, outages, throughputs })
    }

    /// W_max by eq. (3), under the reading.
    fn analytic(&self) -> u32 {
        self.formula[self.about]
    }

    fn scenario(&self, base: &Scenario, window: u32) -> Scenario {
        with(base, |s| {
            self.link.set(s, self.percent);
            set_windows(s, &[window]);
            if !self.heavy {
                s.flows.retain(|f| f.name != "rush");
            }
        })
    }

    /// The window to try next, until one keeps the bound for certain and one breaks it for certain.
    fn next(&self) -> Option<u32> {
        let Some(((low, least), (high, most))) = self.outages.first_key_value().zip(self.outages.last_key_value())
        else {
            return Some(self.analytic());
        };
        if most.low() <= OUTAGE && *high < MOST {
            return Some(high + 1);
        }
        (least.high() > OUTAGE && *low > 1).then(|| low - 1)
    }

    /// The largest window whose outage is at most the bound; the interval has the windows of which that cannot be told.
    fn window(&self) -> Option<Estimate> {
        let last = |keeps: fn(&Estimate) -> bool| {
            self.outages.iter().take_while(|(_, e)| keeps(e)).last().map(|(w, _)| f64::from(*w))
        };
        let window = last(|e| e.mean <= OUTAGE)?;
        let low = last(|e| e.high() <= OUTAGE).unwrap_or(window - 1.0);
        let high = last(|e| e.low() <= OUTAGE).unwrap_or(window);
        let n = self.outages.values().map(|e| e.n).max().unwrap_or(0);
        Some(Estimate { mean: window, ci95: (n > 1).then_some([low, high]), n })
    }

    /// Window simulated - by formula.
    fn difference(&self) -> Option<Estimate> {
        let by = f64::from(self.analytic());
        let e = self.window()?;
        Some(Estimate { mean: e.mean - by, ci95: e.ci95.map(|c| c.map(|x| x - by)), n: e.n })
    }

    /// The throughput with the largest window, packets per slot.
    fn throughput(&self) -> Option<Estimate> {
        let window = self.window()?.mean;
        self.throughputs.iter().find(|(w, _)| f64::from(**w) == window).map(|(_, throughput)| *throughput)
    }

    fn at_formula(&self) -> Option<Estimate> {
        self.outages.get(&self.analytic()).copied()
    }
}

/// Seeds of each point.
const SEEDS: usize = 5;
/// Of a window with the `optimal` scheme, whose outages spread more.
const SEEDS_OPTIMAL: usize = 10;

/// Tries windows at each place of a link until the largest is known; light traffic first.
fn places(e: &Experiment, link: Link, start: Start, bench: &mut Bench<'_>) -> Result<Vec<WindowSearch>, RunError> {
    let base = base(e);
    let seeds = seeds(bench, if link.scheme == OPTIMAL.scheme { SEEDS_OPTIMAL } else { SEEDS });
    let mut places: Vec<WindowSearch> = [false, true]
        .iter()
        .flat_map(|heavy| ERRORS.iter().filter_map(|p| WindowSearch::new(link, *p, *heavy, start)))
        .collect();
    loop {
        let wanted: Vec<(usize, u32)> = places.iter().enumerate().filter_map(|(i, p)| Some((i, p.next()?))).collect();
        if wanted.is_empty() {
            return Ok(places);
        }
        let case = |(i, w): &(usize, u32)| Case::new(link.key(), f64::from(*w), places[*i].scenario(&base, *w));
        let found = measure(e, wanted.iter().map(case).collect(), seeds, bench)?;
        for ((i, w), cell) in wanted.into_iter().zip(&found.cells) {
            let Some(outage) = of_flow(cell, 0, |g| g.outage) else { return Err(RunError::Interrupted) };
            places[i].outages.insert(w, outage);
            places[i].throughputs.extend(of_flow(cell, 0, |g| g.throughput).map(|throughput| (w, throughput)));
        }
    }
}

/// From which slot on eq. (3) counts.
fn start(tools: &Tools<'_>) -> Start {
    if tools.reading.has(AFTER_SUCCESS) { Start::AfterSuccess } else { Start::Stationary }
}

pub(super) fn fig3(e: &Experiment, bench: &mut Bench<'_>, tools: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let found = places(e, PERSISTENT, start(tools), bench)?;
    let claims = window_claims(e, &found);
    Ok(show_windows(e, &found, claims))
}

pub(super) fn fig4(e: &Experiment, bench: &mut Bench<'_>, tools: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let link = if tools.reading.has(THREE_STATES) { OPTIMAL_3 } else { OPTIMAL };
    let found = places(e, link, start(tools), bench)?;
    let mut claims = window_claims(e, &found);
    // The same scenario with the other scheme: Fig. 3's runs, where they have been made.
    let persistent = places(e, PERSISTENT, start(tools), bench)?;
    for (heavy, words) in TRAFFIC {
        let of = |places: &'_ [WindowSearch]| {
            let of = places.iter().filter(|p| p.heavy == heavy).map(WindowSearch::window);
            of.map(|w| w.map_or(f64::NAN, |w| w.mean)).collect::<Vec<f64>>()
        };
        let less: Vec<f64> = of(&found).iter().zip(of(&persistent)).map(|(o, p)| o - p).collect();
        let most = less.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        claims.push(
            e.claim(
                format!("never-larger-{words}"),
                format!("`optimal` needs no larger window than `persistent` at any error, {words} cross traffic"),
                Bound::AtMost(0.0),
                "largest difference of the simulated windows, optimal - persistent, packets",
            )
            .exact(most),
        );
        claims.push(
            e.claim(
                format!("smaller-{words}"),
                format!("`optimal` needs a smaller window than `persistent` on the average, {words} cross traffic"),
                Bound::Below(0.0),
                "mean difference of the simulated windows over the errors, optimal - persistent, packets",
            )
            .exact(mean(&less)),
        );
        let of = |places: &'_ [WindowSearch]| {
            let of = places.iter().filter(|p| p.heavy == heavy).map(WindowSearch::throughput);
            of.map(|t| t.map_or(f64::NAN, |t| t.mean)).collect::<Vec<f64>>()
        };
        let less: Vec<f64> = of(&found).iter().zip(of(&persistent)).map(|(o, p)| o - p).collect();
        claims.push(
            e.claim(
                format!("less-throughput-{words}"),
                format!(
                    "the throughput with `optimal` is less than with `persistent` on the average, {words} cross traffic"
                ),
                Bound::Below(0.0),
                "mean difference over the errors, each with its largest simulated window, packets per slot",
            )
            .exact(mean(&less)),
        );
    }
    Ok(show_windows(e, &found, claims))
}

const TRAFFIC: [(bool, &str); 2] = [(false, "light"), (true, "heavy")];

fn window_claims(e: &Experiment, places: &[WindowSearch]) -> Vec<Claim> {
    let light = places.iter().filter(|p| !p.heavy).map(|p| (p.percent, p.difference()));
    let farthest = light.fold((0.0, None), |best: (f64, Option<Estimate>), (at, d)| {
        let far = |e: Option<Estimate>| e.map_or(-1.0, |e| e.mean.abs());
        if far(d) > far(best.1) { (at, d) } else { best }
    });
    let heavy = || places.iter().filter(|p| p.heavy);
    let (low, _) = smallest(heavy().map(|p| (p.percent, p.difference())));
    let (late, _) = largest(heavy().map(|p| (p.percent, p.at_formula())));
    vec![
        e.claim(
            "light",
            "light cross traffic: the simulated window is within 1 of the analytic one, at every error",
            Bound::Within(-1.0, 1.0),
            format!("simulated - analytic, packets, at {} %, where it is farthest from 0", farthest.0),
        )
        .because(at_analytic(places, farthest.0))
        .number(farthest.1),
        e.claim(
            "heavy",
            "heavy cross traffic: the analytic window is not above the simulated one, at any error",
            Bound::AtLeast(0.0),
            "least simulated - analytic, packets, at {at} %",
        )
        .because(at_analytic(places, low))
        .everywhere(heavy().map(|p| (p.percent, p.difference()))),
        e.claim(
            "heavy-outage",
            "heavy cross traffic: with the analytic window the delay outage is at most 1 %, at every error",
            Bound::AtMost(OUTAGE),
            "largest simulated outage, as a part of the packets received",
        )
        .because(at_analytic(places, late))
        .everywhere(heavy().map(|p| (p.percent, p.at_formula()))),
    ]
}

/// The outages with the analytic window at an error, in words.
fn at_analytic(places: &[WindowSearch], percent: f64) -> String {
    let of = |heavy: bool| places.iter().find(|p| p.heavy == heavy && p.percent == percent);
    let late = |heavy: bool| text(of(heavy).and_then(WindowSearch::at_formula));
    let window = of(false).map_or("–".to_owned(), |p| p.analytic().to_string());
    format!(
        "With {window} packets at {percent} % the delay outage is {} in light and {} in heavy cross traffic; R is {R} slots, and \
         eq. (3) supposes that the wireless link's queue is never empty",
        late(false),
        late(true)
    )
}

fn show_windows(e: &Experiment, places: &[WindowSearch], claims: Vec<Claim>) -> Outcome {
    let n = places.first().and_then(|p| p.outages.values().next()).map_or(0, |e| e.n);
    let caption = format!(
        "{}; {n} seeds per window; bars: windows whose outage is neither below nor above 1 % for certain (95 %, Student's t)",
        e.file
    );
    let mut section = e.section().text(format!(
        "Eq. (3): {}",
        "the delay jitter of a packet is more than D = 10 slots if fewer than W of R + D = 27 slots succeed. Below W = R = 17 it is not conservative: the queue is empty at times."
    ));
    for (heavy, words) in TRAFFIC {
        let own: Vec<&WindowSearch> = places.iter().filter(|p| p.heavy == heavy).collect();
        let far = own.iter().filter_map(|p| p.difference()).map(|d| d.mean);
        let [low, high] = far.fold([f64::INFINITY, f64::NEG_INFINITY], |[l, h], d| [l.min(d), h.max(d)]);
        let title = match (low, high) {
            (0.0, 0.0) => format!("{words} cross traffic: the simulated window is the analytic one at every error"),
            _ => {
                format!("{words} cross traffic: the simulated window less the analytic one is {low} to {high} packets")
            }
        };
        let mut chart = Chart::new(
            title,
            Axis::new("error probability", "%"),
            Axis::new("largest window", "packets").range(10.0, 28.0),
        );
        chart.caption.clone_from(&caption);
        let x = || own.iter().map(|p| p.percent).collect::<Vec<f64>>();
        let formula = |i: usize| own.iter().map(|p| f64::from(p.formula[i])).collect::<Vec<f64>>();
        if own.iter().any(|p| p.formula[0] != p.formula[1]) {
            chart = chart.series(Series::sweep("eq. (3), from any slot on", "stationary", x(), formula(0)).reference());
        }
        chart = chart
            .series(Series::sweep("eq. (3), after a success", "reference", x(), formula(1)).reference())
            .series(curve("simulated", "aimd", own.iter().map(|p| (p.percent, p.window()))));
        section = section.chart(chart);
    }
    let table = table(
        "Largest windows in packets, and the outage with the analytic one",
        format!("{}; {n} seeds; outage as a part of the packets received", e.file),
        [
            "error (%)",
            "eq. (3), any slot",
            "eq. (3), after a success",
            "its outage by eq. (3)",
            "simulated, light",
            "outage, light",
            "simulated, heavy",
            "outage, heavy",
        ],
        places.iter().filter(|p| !p.heavy).map(|light| {
            let heavy = places.iter().find(|p| p.heavy && p.percent == light.percent);
            let window = |p: Option<&WindowSearch>| {
                p.and_then(WindowSearch::window).map_or("–".to_owned(), |e| match e.ci95 {
                    Some([low, high]) if low < high => format!("{} ({low} to {high})", e.mean),
                    _ => e.mean.to_string(),
                })
            };
            let analytic = || {
                qos::outage(
                    &light.link.process(light.percent).ok()?,
                    R,
                    D,
                    light.analytic(),
                    if light.about == 1 { Start::AfterSuccess } else { Start::Stationary },
                )
                .ok()
            };
            vec![
                light.percent.to_string(),
                light.formula[0].to_string(),
                light.formula[1].to_string(),
                analytic().map_or("–".to_owned(), short),
                window(Some(light)),
                text(light.at_formula()),
                window(heavy),
                text(heavy.and_then(WindowSearch::at_formula)),
            ]
        }),
    );
    let mut points: Vec<Point> = Vec::new();
    for p in places {
        let traffic = if p.heavy { "heavy" } else { "light" };
        let scheme = format!("{}-{traffic}", p.link.key());
        let x = [("error_percent", p.percent)];
        points.extend(point(&scheme, &x, "rwnd_max_packets", p.window()));
        points.extend(point(&scheme, &x, "rwnd_max_stationary_packets", exact(f64::from(p.formula[0]))));
        points.extend(point(&scheme, &x, "rwnd_max_after_success_packets", exact(f64::from(p.formula[1]))));
        for (w, outage) in &p.outages {
            let x = [("error_percent", p.percent), ("rwnd_packets", f64::from(*w))];
            points.extend(point(&scheme, &x, "outage", Some(*outage)));
        }
    }
    e.outcome(points, claims, section.table(table))
}

// --- Fig. 5 --------------------------------------------------------------------------------------------------------

const FIG5: Figure<Vec<FlowStats>> = Figure {
    x: Abscissa::new("tcp_flows", "TCP flows in the backbone", ""),
    places: &[0.0, 1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 45.0, 50.0, 55.0, 60.0, 70.0, 80.0, 90.0, 100.0],
    schemes: &[Scheme::new("aimd", "AIMD", "")],
    vary: set_tcp_flows,
    quantities: &[OF_AIMD, OF_ALL, LATE, DROPPED],
};
const THROUGHPUT: &str = "throughput_packets_per_slot";
const OF_AIMD: Quantity<Vec<FlowStats>> =
    of_first(THROUGHPUT, "AIMD", "packets per slot", |run| run.first().map(|g| g.throughput));
const OF_ALL: Quantity<Vec<FlowStats>> = of_first(THROUGHPUT, "mean of all flows", "packets per slot", |run| {
    Some(run.iter().map(|g| g.throughput).sum::<f64>() / run.len().max(1) as f64)
});
/// 1 - p_e of Fig. 5.
const FULL: f64 = 0.9;
/// From so many on the bottleneck is the backbone.
const MANY: f64 = 60.0;

fn set_tcp_flows(s: &mut RawScenario, n: f64) {
    s.flows.retain(|f| f.name != "tcp" || n > 0.0);
    s.flows.iter_mut().filter(|f| f.name == "tcp").for_each(|f| f.count = Count::new(n as u64));
}

pub(super) fn fig5(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let seeds = seeds(bench, SEEDS);
    let found = measure(e, FIG5.cases(&base(e)), seeds, bench)?;
    // With no TCP flow the mean is AIMD's.
    let crossing = found.crossing("aimd", &FIG5.places[1..], FULL, OF_ALL.get);
    let filled = crossing.map_or("–".to_owned(), |c| format!("{:.0}", c.mean));
    let title = format!("Up to {filled} TCP flows AIMD fills the wireless link; beyond, it gets about what all get");
    let y = Axis::new("throughput", "packets per slot").log();
    let mut chart = Chart::new(title, FIG5.x.axis(), y).caption(caption(e, seeds));
    chart = chart.series(Series::line("1 - p_e", "reference", vec![0.0, 100.0], vec![FULL; 2]).reference());
    let mut points = Vec::new();
    for (key, colour, y) in [("aimd", "aimd", OF_AIMD), ("all", "tcp-sack", OF_ALL)] {
        let line = found.along("aimd", y.get);
        points.extend(line.iter().filter_map(|(n, throughput)| point(key, &[(FIG5.x.key, *n)], y.key, *throughput)));
        chart = chart.series(curve(y.label, colour, line));
    }
    let table = FIG5.table_of(&found, "aimd", "Throughput against the number of TCP flows");
    Ok(e.outcome(points, fig5_claims(e, &found, crossing), e.section().chart(chart).table(table)))
}

fn fig5_claims(e: &Experiment, found: &Measurements<Vec<FlowStats>>, crossing: Option<Estimate>) -> Vec<Claim> {
    let full = |run: &Vec<FlowStats>| Some(OF_AIMD.of(run)? / FULL);
    let up_to = |most: f64| found.along("aimd", full).into_iter().filter(move |(n, _)| *n <= most);
    let to_mean = |run: &Vec<FlowStats>| Some(OF_AIMD.of(run)? / OF_ALL.of(run)?);
    let many = || found.along("aimd", to_mean).into_iter().filter(|(n, _)| *n >= MANY);
    let near = "the backbone becomes the bottleneck near 50 flows (ours: 40 to 60)";
    let flows = "TCP flows at which the mean throughput of all is 0.9 packets per slot, linear between the points";
    let most = "AIMD gets no more than the 1 - p_e packets per slot that the wireless link carries (ours: 0.5 %)";
    let fills = |n: f64| format!("up to {n} TCP flows AIMD gets 1 - p_e packets per slot (ours: within 2 %)");
    let lowest = "throughput / 0.9 with {at} flows, where it is least";
    let nearly = Bound::AtLeast(0.98);
    let no_less = "from 60 flows on AIMD gets what the flows get on the average: no less (ours: 20 %)";
    let [smallest, largest] = ["AIMD / mean of all with {at} flows, the least", "the same with {at} flows, the most"];
    let no_more = "and no more (ours: 20 %)";
    vec![
        e.claim("crossing", near, Bound::Within(40.0, 60.0), flows).number(crossing),
        e.claim("wireless-most", most, Bound::AtMost(1.005), "throughput / 0.9 with {at} flows, where it is most")
            .everywhere(up_to(100.0)),
        e.claim("backbone-least", no_less, Bound::AtLeast(0.8), smallest).because(MANY_NOTE).everywhere(many()),
        e.claim("backbone-most", no_more, Bound::AtMost(1.2), largest).because(MANY_NOTE).everywhere(many()),
        // Below 50 the bottleneck is the wireless link [aimd §IV-B]; up to so many for certain.
        e.claim("wireless-few", fills(30.0), nearly, lowest).because(NEAR_NOTE).everywhere(up_to(30.0)),
        e.claim("wireless-below-50", fills(45.0), nearly, lowest).because(NEAR_NOTE).everywhere(up_to(45.0)),
    ]
}

const NEAR_NOTE: &str = "The two bottlenecks do not take turns at a certain number of flows: RED drops AIMD's packets too, and after a \
                         drop the window is 0.875 rwnd, below what the wireless link needs to be full, until it has grown \
                         again by 0.2 per RTT";
const MANY_NOTE: &str = "After a timeout AIMD begins at half its window and grows by 0.2 per RTT, TCP by 1";

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(mean: f64, half: f64) -> Estimate {
        Estimate { mean, ci95: Some([mean - half, mean + half]), n: 5 }
    }

    #[test]
    fn windows_are_tried_until_one_is_certainly_right_and_the_next_certainly_wrong() {
        let mut place = WindowSearch::new(PERSISTENT, 5.0, false, Start::Stationary).unwrap();
        let first = place.analytic();
        assert_eq!(place.next(), Some(first));
        place.outages.insert(first, estimate(0.009, 0.002));
        assert_eq!(place.next(), Some(first + 1));
        place.outages.insert(first + 1, estimate(0.02, 0.002));
        assert_eq!(place.next(), Some(first - 1));
        place.outages.insert(first - 1, estimate(0.001, 0.002));
        assert_eq!(place.next(), None);
        let found = place.difference().unwrap();
        assert_eq!((found.mean, found.ci95), (0.0, Some([-1.0, 0.0])));
    }

    #[test]
    fn without_memory_it_does_not_matter_where_the_slots_begin() {
        // P(Bin(27, 0.9) < 20) = 0.0036, < 21: 0.0121.
        assert_eq!(WindowSearch::new(PERSISTENT, 10.0, false, Start::Stationary).unwrap().formula, [20, 20]);
        let optimal = WindowSearch::new(OPTIMAL, 10.0, false, Start::Stationary).unwrap().formula;
        assert!(optimal.iter().all(|w| *w < 20), "{optimal:?}");
    }
}
