//! Throughput and overhead against P, RTT, background and buffer [rcs §V-B, §V-C, Figs. 17 to 19].

use super::{
    BACKGROUND, BUFFER, NEWRENO, OVERHEAD, P_LOSS, RAP, RAP_ACKS, RAP_FINE, RCS, RCS_ACKS, RENO, RTT, SACK, Scheme,
    THROUGHPUT, base, cells, looks, overhead, packets_per_second, set_background, set_buffer, set_loss, set_rtt,
    throughput,
};
use crate::bench::{Bench, Grid, Precision, largest, smallest};
use crate::show;
use crate::{Bound, Cell, Claim, Experiment, Outcome, Tools};
use fairpace_lab::RunError;
use fairpace_lab::stats::Estimate;
use fairpace_report::{Axis, Chart, Series};
use fairpace_scenario::{FlowSpec, Priority, RawScenario, Time};

/// P, a log grid.
const P: [f64; 7] = [1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2];
/// RTT in ms.
const RTTS: [f64; 9] = [100.0, 150.0, 200.0, 250.0, 350.0, 450.0, 550.0, 650.0, 750.0];
/// S_L in packets/s.
const S_L: [f64; 7] = [0.0, 100.0, 200.0, 300.0, 400.0, 500.0, 600.0];
/// K in packets.
const K: [f64; 7] = [20.0, 50.0, 100.0, 200.0, 300.0, 400.0, 500.0];

const ALL: [Scheme; 8] = [RCS, RCS_ACKS, RAP, RAP_ACKS, RAP_FINE, RENO, NEWRENO, SACK];

/// A reading of the ACKs: RCS under it, the RAPs to compare it with, and words for the claims.
struct Reading {
    rcs: Scheme,
    raps: &'static [Scheme],
    suffix: &'static str,
    words: &'static str,
}

const READINGS: [Reading; 2] = [
    Reading { rcs: RCS, raps: &[RAP, RAP_FINE], suffix: "", words: "" },
    Reading { rcs: RCS_ACKS, raps: &[RAP_ACKS], suffix: "-acks-lost", words: ", ACKs lost with P" },
];

/// What the claims call it; the reading of the ACKs is said once, at the end.
fn rap_name(rap: &Scheme) -> &'static str {
    if rap.controller == RAP.controller { RAP.look.name } else { "RAP with fine grain" }
}

/// RCS over RAP at each place: the smallest ratio, and where it is.
fn least_gain(grid: &Grid, rcs: &str, rap: &str, places: &[f64]) -> (f64, Option<Estimate>) {
    smallest(places.iter().map(|&x| (x, grid.ratio(rcs, rap, x, throughput))))
}

/// The most that a scheme's throughput strays from what it is at `reference`.
fn spread(grid: &Grid, scheme: &str, places: &[f64], reference: f64) -> (f64, Option<Estimate>) {
    largest(places.iter().filter(|x| **x != reference).map(|&x| {
        let change = grid.relative(scheme, x, reference, throughput);
        (x, change.map(fold_about_one))
    }))
}

/// |ratio - 1| with the interval that belongs to it.
fn fold_about_one(e: Estimate) -> Estimate {
    let sign = if e.mean < 1.0 { -1.0 } else { 1.0 };
    let shift = |x: f64| sign * (x - 1.0);
    let ci95 = e.ci95.map(|[low, high]| if sign < 0.0 { [shift(high), shift(low)] } else { [shift(low), shift(high)] });
    Estimate { mean: shift(e.mean), ci95, n: e.n }
}

pub(super) fn fig17a(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let grid = loss_grid(e, bench)?;
    let claims = fig17a_claims(e.id, &grid);
    let caption = show::caption(e, &grid);
    let looks = looks(&ALL);
    let section = show::section(e)
        .chart(show::chart(&grid, &looks, &fig17a_title(&grid), &caption, &P_LOSS, &THROUGHPUT))
        .table(show::table(&grid, &looks, "Throughput against P", &P_LOSS, &THROUGHPUT));
    Ok(show::outcome(e, show::points(&grid, &P_LOSS, &[THROUGHPUT, OVERHEAD]), claims, section))
}

/// Says what was measured where link errors are frequent.
fn fig17a_title(grid: &Grid) -> String {
    let over = |other: &Scheme| grid.ratio(RCS.look.key, other.look.key, 5e-3, throughput).map(|e| e.mean);
    let least = |schemes: &[Scheme]| schemes.iter().filter_map(over).reduce(f64::min);
    match (least(&[RAP, RAP_FINE]), least(&[RENO, NEWRENO, SACK])) {
        (Some(rap), Some(tcp)) => {
            format!("At P = 5e-3 RCS gets at least {rap:.1} times what RAP gets, and {tcp:.1} times what TCP gets")
        }
        _ => "Throughput where the link loses packets".to_owned(),
    }
}

fn loss_grid(e: &Experiment, bench: &mut Bench<'_>) -> Result<Grid, RunError> {
    // RCS and RAP are within a percent of each other where link errors are rare, and their ratio is
    // within a percent of the claimed 2.5 at 5e-3.
    let most_seeds = |scheme: &str, p: f64| !scheme.starts_with("tcp") && (p < 5e-4 || p == 5e-3);
    let precision = Precision { metrics: &[throughput, overhead], most_seeds };
    bench.measure(e.id, &cells(&base(e), &ALL, &P, set_loss), &precision)
}

/// The claims of Fig. 17(a), from whatever was measured.
fn fig17a_claims(id: &str, grid: &Grid) -> Vec<Claim> {
    let mut claims = Vec::new();
    for reading in &READINGS {
        let (key, suffix, words) = (reading.rcs.look.key, reading.suffix, reading.words);
        let places = grid.xs(key);
        if places.is_empty() {
            continue;
        }
        for rap in reading.raps {
            let (rap, name) = (rap.look.key, rap_name(rap));
            let (at, least) = least_gain(grid, key, rap, &places);
            claims.push(
                Claim::check(
                    format!("{id}/above-{rap}"),
                    format!("RCS is above {name} at every P{words}"),
                    least,
                    Bound::Above(1.0),
                    format!("smallest ratio of throughputs, at P = {at}"),
                )
                .if_it_fails(
                    "Where link errors are rare both fill the link, and what is left to compare is a percent or two",
                ),
            );
            claims.push(
                Claim::check(
                    format!("{id}/gain-5e-3-over-{rap}"),
                    format!("at P = 5e-3 RCS has at least 2.5 times the throughput of {name}{words}"),
                    grid.ratio(key, rap, 5e-3, throughput),
                    Bound::AtLeast(2.5),
                    "ratio of throughputs",
                )
                .if_it_fails(if suffix.is_empty() {
                    ""
                } else {
                    "A dummy's ACK that is lost raises nothing, and a lost ACK of data looks like a loss"
                }),
            );
        }
        let fall = places.iter().copied().filter(|x| *x > 1e-3);
        let steps: Vec<(f64, Option<Estimate>)> = fall
            .scan(1e-3, |before, x| {
                let step = grid.relative(key, x, *before, throughput);
                *before = x;
                Some((x, step))
            })
            .collect();
        let (at, worst) = largest(steps.into_iter());
        claims.push(Claim::check(
            format!("{id}/falls{suffix}"),
            format!("RCS falls from each P to the next past 1e-3{words}"),
            worst,
            Bound::Below(1.0),
            format!("largest ratio of neighbouring points, at P = {at}"),
        ));
    }
    claims
}

pub(super) fn fig18(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let grid = loss_grid(e, bench)?;
    let mut claims = Vec::new();
    for reading in &READINGS {
        let (key, suffix, words) = (reading.rcs.look.key, reading.suffix, reading.words);
        let steps = P.windows(2).map(|pair| {
            let at = |i: usize| pair.get(i).copied().unwrap_or(0.0);
            (at(1), grid.paired((key, at(1), overhead), (key, at(0), overhead), |b, a| b - a))
        });
        let (at, least) = smallest(steps);
        claims.push(Claim::check(
            format!("{}/grows{suffix}", e.id),
            format!("the overhead grows with P{words}"),
            least,
            Bound::Above(0.0),
            format!("smallest step between neighbouring points, up to P = {at}"),
        ));
        claims.push(Claim::check(
            format!("{}/overhead-1e-2{suffix}", e.id),
            format!("the overhead is about 21.5 % at P = 1e-2 (ours: within 3.5 points){words}"),
            grid.estimate(key, 1e-2, overhead),
            Bound::Within(0.18, 0.25),
            "dummies / (data + dummies) sent",
        ));
        for rap in reading.raps {
            claims.push(Claim::check(
                format!("{}/gain-1e-2-over-{}", e.id, rap.look.key),
                format!("at P = 1e-2 RCS has more than twice the throughput of {}{words}", rap_name(rap)),
                grid.ratio(key, rap.look.key, 1e-2, throughput),
                Bound::Above(2.0),
                "ratio of throughputs",
            ));
        }
    }
    let caption = show::caption(e, &grid);
    let rcs = looks(&[RCS, RCS_ACKS]);
    let gains = gain_chart(&grid, &caption);
    let section = show::section(e)
        .chart(show::chart(&grid, &rcs, "The overhead grows with P", &caption, &P_LOSS, &OVERHEAD))
        .chart(gains)
        .table(show::table(&grid, &rcs, "Overhead against P", &P_LOSS, &OVERHEAD));
    Ok(show::outcome(e, show::points(&grid, &P_LOSS, &[OVERHEAD, THROUGHPUT]), claims, section))
}

fn gain_chart(grid: &Grid, caption: &str) -> Chart {
    let x = Axis::new(P_LOSS.label, "").log();
    let mut chart =
        Chart::new("What RCS gets for each packet of RAP", x, Axis::new("throughput / RAP's", "")).caption(caption);
    for reading in &READINGS {
        for rap in reading.raps {
            let (mut xs, mut ys, mut lo, mut hi) = (vec![], vec![], vec![], vec![]);
            for p in grid.xs(reading.rcs.look.key) {
                if let Some(g) = grid.ratio(reading.rcs.look.key, rap.look.key, p, throughput) {
                    xs.push(p);
                    ys.push(g.mean);
                    lo.push(g.low());
                    hi.push(g.high());
                }
            }
            let name = format!("{} / {}", reading.rcs.look.name, rap.look.name);
            chart = chart.series(Series::sweep(name, rap.look.key, xs, ys).interval(lo, hi));
        }
    }
    chart
}

pub(super) fn fig17b(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let grid = rtt_grid(e, bench)?;
    let rcs = RCS.look.key;
    let (low, high) = (
        smallest(RTTS.iter().map(|&x| (x, grid.estimate(rcs, x, throughput)))).0,
        largest(RTTS.iter().map(|&x| (x, grid.estimate(rcs, x, throughput)))).0,
    );
    let mut claims = vec![Claim::check(
        format!("{}/rcs-flat", e.id),
        "RCS is nearly flat over RTT (ours: the lowest point is at least 0.8 of the highest)",
        grid.relative(rcs, low, high, throughput),
        Bound::AtLeast(0.8),
        format!("throughput at {low} ms / at {high} ms"),
    )];
    for rap in [&RAP, &RAP_FINE] {
        claims.push(Claim::check(
            format!("{}/{}-falls", e.id, rap.look.key),
            format!("{} falls steeply from 250 ms on (ours: at 750 ms at most 0.6 of 250 ms)", rap.look.name),
            grid.relative(rap.look.key, 750.0, 250.0, throughput),
            Bound::AtMost(0.6),
            "throughput at 750 ms / at 250 ms",
        ));
    }
    for rap in [&RAP, &RAP_FINE] {
        claims.push(
            Claim::check(
                format!("{}/above-{}-150ms", e.id, rap.look.key),
                format!("RCS is above {} at 150 ms", rap.look.name),
                grid.ratio(rcs, rap.look.key, 150.0, throughput),
                Bound::Above(1.0),
                "ratio of throughputs",
            )
            .if_it_fails(
                "At 150 ms link errors alone would leave RAP sqrt(3 / (2 P)) / RTT = 258 packets/s, twice its share: it \
                 is the queue that limits it. RCS is limited by the same queue, and its dummies take a tenth of a link \
                 that is full",
            ),
        );
    }
    let caption = show::caption(e, &grid);
    let looks = looks(&ALL);
    let section = show::section(e)
        .chart(show::chart(&grid, &looks, "RAP falls with RTT, RCS far less", &caption, &RTT, &THROUGHPUT))
        .table(show::table(&grid, &looks, "Throughput against RTT", &RTT, &THROUGHPUT));
    Ok(show::outcome(e, show::points(&grid, &RTT, &[THROUGHPUT, OVERHEAD]), claims, section))
}

fn rtt_grid(e: &Experiment, bench: &mut Bench<'_>) -> Result<Grid, RunError> {
    // The overhead is within a percent of what "about 10 %" was taken to mean.
    let most_seeds = |scheme: &str, rtt: f64| scheme.starts_with("rcs") && rtt >= 400.0;
    let precision = Precision { metrics: &[throughput, overhead], most_seeds };
    bench.measure(e.id, &cells(&base(e), &ALL, &RTTS, set_rtt), &precision)
}

pub(super) fn fig19(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let grid = rtt_grid(e, bench)?;
    let far: Vec<f64> = RTTS.iter().copied().filter(|x| *x >= 400.0).collect();
    let mut claims = Vec::new();
    for reading in &READINGS {
        let (key, suffix, words) = (reading.rcs.look.key, reading.suffix, reading.words);
        let at_each = |places: &[f64]| -> Vec<(f64, Option<Estimate>)> {
            places.iter().map(|&x| (x, grid.estimate(key, x, overhead))).collect()
        };
        let peak = largest(at_each(&RTTS).into_iter()).0;
        claims.push(Claim::check(
            format!("{}/highest-near-100ms{suffix}", e.id),
            format!("the overhead is highest near 100 ms (ours: at 200 ms or below){words}"),
            Some(Estimate::exact(peak)),
            Bound::AtMost(200.0),
            "RTT in ms of the highest point",
        ));
        for (word, (at, extreme)) in
            [("lowest", smallest(at_each(&far).into_iter())), ("highest", largest(at_each(&far).into_iter()))]
        {
            claims.push(
                Claim::check(
                    format!("{}/{word}-from-400ms{suffix}", e.id),
                    format!("from 400 ms up the overhead is about 10 % (ours: 7 to 13 %): the {word} point{words}"),
                    extreme,
                    Bound::Within(0.07, 0.13),
                    format!("overhead at {at} ms"),
                )
                .if_it_fails(if suffix.is_empty() {
                    "The other reading is nearer: with ACKs lost with P each lost ACK looks like a loss of data and \
                     opens a Detected phase"
                } else {
                    "Lost ACKs look like losses of data, and each opens a Detected phase"
                }),
            );
        }
    }
    let caption = show::caption(e, &grid);
    let rcs = looks(&[RCS, RCS_ACKS]);
    let section = show::section(e)
        .chart(show::chart(&grid, &rcs, "The overhead against RTT", &caption, &RTT, &OVERHEAD))
        .table(show::table(&grid, &rcs, "Overhead against RTT", &RTT, &OVERHEAD));
    Ok(show::outcome(e, show::points(&grid, &RTT, &[OVERHEAD]), claims, section))
}

const FULL: &str = "Once RCS and the background together fill the link, the queue pushes out dummies as readily as \
                    background, so fewer dummy ACKs return and RCS gives way";

/// RCS1: constant-rate background; RCS2: RAP-controlled background.
const RCS1: Scheme = super::scheme("rcs", "RCS1: constant-rate background", "rcs", false);
const RCS2: Scheme = super::scheme("rcs-2", "RCS2: RAP background", "rcs", false);

pub(super) fn fig17c(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let constant = [RCS1, RAP, RAP_FINE, RENO, NEWRENO, SACK];
    let base = base(e);
    let mut all: Vec<Cell> = cells(&base, &constant, &S_L, set_background);
    all.extend(cells(&base, &[RCS2], &S_L, responsive_background));
    // What is left at 600 is within two percent of the bound.
    let most_seeds = |scheme: &str, s_l: f64| scheme == RCS1.look.key && (s_l == 0.0 || s_l == 600.0);
    let grid = bench.measure(e.id, &all, &Precision { metrics: &[throughput], most_seeds })?;
    let to_400: Vec<f64> = S_L.iter().copied().filter(|x| *x <= 400.0).collect();
    let (flat1_at, flat1) = spread(&grid, "rcs", &to_400, 0.0);
    let (flat2_at, flat2) = spread(&grid, "rcs-2", &S_L, 0.0);
    let mut claims = vec![
        Claim::check(
            format!("{}/rcs2-flat", e.id),
            "RCS2 is flat (ours: within 5 % of S_L = 0)",
            flat2,
            Bound::AtMost(0.05),
            format!("largest change, at S_L = {flat2_at}"),
        ),
        Claim::check(
            format!("{}/rcs1-flat-to-400", e.id),
            "RCS1 is flat up to 400 packets/s (ours: within 5 % of S_L = 0)",
            flat1,
            Bound::AtMost(0.05),
            format!("largest change, at S_L = {flat1_at}"),
        )
        .if_it_fails(FULL),
        Claim::check(
            format!("{}/rcs1-lower-at-600", e.id),
            "RCS1 is slightly lower at 600 packets/s (ours: 0.75 to 1 of S_L = 0)",
            grid.relative("rcs", 600.0, 0.0, throughput),
            Bound::Within(0.75, 1.0),
            "throughput at 600 / at 0",
        )
        .if_it_fails(FULL),
    ];
    for rcs in [&RCS1, &RCS2] {
        let ratios = S_L.iter().map(|&x| {
            let raps = [RAP.look.key, RAP_FINE.look.key];
            (x, smallest(raps.into_iter().map(|rap| (x, grid.ratio(rcs.look.key, rap, x, throughput)))).1)
        });
        let (at, least) = smallest(ratios);
        claims.push(Claim::check(
            format!("{}/{}-above-rap", e.id, if rcs.look.key == "rcs" { "rcs1" } else { "rcs2" }),
            format!("{} is above both RAPs at every S_L", rcs.look.name),
            least,
            Bound::Above(1.0),
            format!("smallest ratio of throughputs, at S_L = {at}"),
        ));
    }
    let caption = show::caption(e, &grid);
    let looks = looks(&[RCS1, RCS2, RAP, RAP_FINE, RENO, NEWRENO, SACK]);
    let section = show::section(e)
        .text("RAP and TCP are drawn with the constant-rate background.")
        .chart(show::chart(
            &grid,
            &looks,
            "Throughput beside low-priority background",
            &caption,
            &BACKGROUND,
            &THROUGHPUT,
        ))
        .table(show::table(&grid, &looks, "Throughput against S_L", &BACKGROUND, &THROUGHPUT));
    Ok(show::outcome(e, show::points(&grid, &BACKGROUND, &[THROUGHPUT, OVERHEAD]), claims, section))
}

/// Ten RAP flows in the low class, each at most a tenth of S_L.
fn responsive_background(s: &mut RawScenario, pps: f64) {
    s.flows.retain(|f| f.name != "background");
    if pps == 0.0 {
        return;
    }
    s.flows.push(FlowSpec {
        name: "background".to_owned(),
        group: "background".to_owned(),
        count: fairpace_scenario::Count::new(10),
        controller: "rap".to_owned(),
        class: Priority::Low,
        max_rate: Some(packets_per_second(pps / 10.0)),
        initial_rtt: Some(s.path.rtt.clone()),
        start_spread: Time::seconds(1.0),
        ..FlowSpec::default()
    });
}

pub(super) fn fig17d(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let grid = bench.measure(e.id, &cells(&base(e), &ALL, &K, set_buffer), &Precision::of(&[throughput]))?;
    let rcs = RCS.look.key;
    let to_300: Vec<f64> = K.iter().copied().filter(|x| *x <= 300.0).collect();
    let (flat_at, flat) = spread(&grid, rcs, &to_300, 50.0);
    let mut claims = vec![
        Claim::check(
            format!("{}/flat-to-300", e.id),
            "RCS changes little up to K = 300 (ours: within 10 % of K = 50)",
            flat,
            Bound::AtMost(0.10),
            format!("largest change, at K = {flat_at}"),
        ),
        Claim::check(
            format!("{}/higher-beyond", e.id),
            "RCS is slightly higher beyond (ours: K = 500 above K = 300, by at most 20 %)",
            grid.relative(rcs, 500.0, 300.0, throughput),
            Bound::Within(1.0, 1.2),
            "throughput at K = 500 / at K = 300",
        ),
    ];
    for rap in [&RAP, &RAP_FINE] {
        let (at, least) = least_gain(&grid, rcs, rap.look.key, &K);
        claims.push(Claim::check(
            format!("{}/above-{}", e.id, rap.look.key),
            format!("RCS is above {} at every K", rap.look.name),
            least,
            Bound::Above(1.0),
            format!("smallest ratio of throughputs, at K = {at}"),
        ));
    }
    let caption = show::caption(e, &grid);
    let looks = looks(&ALL);
    let section = show::section(e)
        .chart(show::chart(&grid, &looks, "Throughput against the room in the buffer", &caption, &BUFFER, &THROUGHPUT))
        .table(show::table(&grid, &looks, "Throughput against K", &BUFFER, &THROUGHPUT));
    Ok(show::outcome(e, show::points(&grid, &BUFFER, &[THROUGHPUT, OVERHEAD]), claims, section))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::Measured;
    use crate::{Effort, experiments};
    use fairpace_lab::Hooks;
    use std::rc::Rc;

    fn fig17a_experiment() -> &'static Experiment {
        experiments().find(|e| e.id == "rcs.fig17a").unwrap()
    }

    /// Fig. 17(a) in small: 60 s, two flows, two seeds, three values of P.
    fn miniature() -> Grid {
        let s = super::super::with(&base(fig17a_experiment()), |s| {
            s.duration = Time::seconds(60.0);
            s.warmup = Time::seconds(30.0);
            s.flows[0].count = fairpace_scenario::Count::new(2);
        });
        let mut bench = Bench::new(Hooks::default(), Effort::Seeds(2));
        let cells = cells(&s, &[RCS, RAP, RAP_FINE], &[1e-3, 5e-3, 1e-2], set_loss);
        let grid = bench.measure("mini", &cells, &Precision::of(&[throughput]));
        assert_eq!(bench.simulated(), 18);
        grid.unwrap()
    }

    #[test]
    fn the_miniature_of_fig_17a_decides_its_claims_from_the_runs() {
        let grid = miniature();
        let claims = fig17a_claims("mini", &grid);
        let ids: Vec<&str> = claims.iter().map(|c| c.id.as_str()).collect();
        let expected = ["above-rap", "gain-5e-3-over-rap", "above-rap-fine", "gain-5e-3-over-rap-fine", "falls"];
        assert_eq!(ids, expected.map(|name| format!("mini/{name}")));
        // Two flows alone on 1,300 packets/s: RAP is limited by loss alone, sqrt(3 / (2 P)) / RTT = 31 packets/s
        // at 5e-3; RCS by S_Target. Claims can only be true here.
        assert!(claims[0].holds && claims[1].holds, "{claims:#?}");
        assert!(claims[1].measured.unwrap() > 2.5 && claims[1].measured.unwrap() < 10.0, "{claims:#?}");
    }

    #[test]
    fn the_same_claims_fail_when_the_schemes_change_places() {
        let mut grid = miniature();
        for cell in &mut grid.cells {
            cell.scheme = match cell.scheme {
                "rcs" => "rap",
                "rap" => "rcs",
                other => other,
            };
        }
        let claims = fig17a_claims("mini", &grid);
        assert!(!claims[0].holds && !claims[1].holds, "{claims:#?}");
        assert!(claims[1].measured.unwrap() < 1.0 / 2.5, "{claims:#?}");
        assert_eq!(claims[1].bound, ">= 2.5");
    }

    #[test]
    fn a_claim_about_everywhere_fails_where_one_point_is_missing() {
        let mut grid = miniature();
        for cell in grid.cells.iter_mut().filter(|c| c.x == 5e-3 && c.scheme == "rap") {
            *cell = Measured { runs: Rc::new(Vec::new()), ..cell.clone() };
        }
        for cell in grid.cells.iter_mut().filter(|c| c.x == 5e-3 && c.scheme == "rap-fine") {
            *cell = Measured { runs: Rc::new(Vec::new()), ..cell.clone() };
        }
        let claims = fig17a_claims("mini", &grid);
        assert_eq!((claims[0].holds, claims[0].measured), (false, None));
    }

    #[test]
    fn a_change_is_measured_in_both_directions() {
        let e = |mean, low, high| Estimate { mean, ci95: Some([low, high]), n: 5 };
        let below = fold_about_one(e(0.9, 0.85, 0.95));
        assert!((below.mean - 0.1).abs() < 1e-12 && (below.low() - 0.05).abs() < 1e-12, "{below:?}");
        let above = fold_about_one(e(1.2, 1.1, 1.3));
        assert!((above.mean - 0.2).abs() < 1e-12 && (above.high() - 0.3).abs() < 1e-12, "{above:?}");
    }
}
