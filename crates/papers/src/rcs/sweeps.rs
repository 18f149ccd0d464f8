//! Throughput and overhead against P, RTT, background and buffer [rcs §V-B, §V-C, Figs. 17 to 19].

use super::setup::{
    BACKGROUND, BUFFER, MEASURE, NEWRENO, OVERHEAD, P_LOSS, RAP, RAP_FINE, RCS, RENO, RTT, RunStats, SACK, THROUGHPUT,
    overhead, packets_per_second, set_background, set_buffer, set_loss, set_rtt, throughput,
};
use crate::figure::{Figure, Scheme, caption, curve, point, scaled, text};
use crate::{Bench, Bound, Claim, Experiment, Outcome, Point, Tools};
use fairpace_lab::RunError;
use fairpace_lab::study::{Measurements, Precision, largest, smallest};
use fairpace_report::{Axis, Chart};
use fairpace_scenario::{Count, RawScenario, Time};

/// P, a log grid.
const P: [f64; 7] = [1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2];
/// RTT in ms.
const RTTS: [f64; 9] = [100.0, 150.0, 200.0, 250.0, 350.0, 450.0, 550.0, 650.0, 750.0];
/// S_L in packets/s.
const S_L: [f64; 7] = [0.0, 100.0, 200.0, 300.0, 400.0, 500.0, 600.0];
/// K in packets.
const K: [f64; 7] = [20.0, 50.0, 100.0, 200.0, 300.0, 400.0, 500.0];

const ALL: &[Scheme] = &[RCS, RAP, RAP_FINE, RENO, NEWRENO, SACK];
const RAPS: [Scheme; 2] = [RAP, RAP_FINE];
/// The schemes of the claims: none says anything of TCP.
const CLAIMED: &[Scheme] = &[RCS, RAP, RAP_FINE];
/// packets/s of the bottleneck, and the flows that share it [rcs §V-A].
const CAPACITY: f64 = 1_300.0;
const FLOWS: f64 = 10.0;

/// The name in the claims.
fn rap_name(rap: &Scheme) -> &'static str {
    if rap.controller == RAP.controller { RAP.name } else { "RAP with fine grain" }
}

/// The share of the bottleneck that the ten flows of a scheme get together, in words.
fn filled(found: &Measurements<RunStats>, scheme: &str, x: f64) -> String {
    text(found.estimate(scheme, x, throughput).map(|e| scaled(e, FLOWS / CAPACITY)))
}

// --- against P -----------------------------------------------------------------------------------------------------

const BY_LOSS: Figure<RunStats> =
    Figure { x: P_LOSS, places: &P, schemes: ALL, vary: set_loss, quantities: &[THROUGHPUT, OVERHEAD] };
const FIG18: Figure<RunStats> = Figure { schemes: &[RCS], quantities: &[OVERHEAD, THROUGHPUT], ..BY_LOSS };
/// RCS and RAP are within a percent of each other where link errors are rare, and their ratio is within a percent of the
/// claimed 2.5 at 5e-3.
const BY_LOSS_PRECISION: Precision<RunStats> = Precision {
    numbers: &[throughput, overhead],
    most_seeds: |scheme, p| !scheme.starts_with("tcp") && (p < 5e-4 || p == 5e-3),
};

pub(super) fn fig17a(e: &Experiment, bench: &mut Bench<'_>, tools: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let figure = BY_LOSS.asked_for(tools, CLAIMED);
    let found = figure.measured(e, bench, MEASURE, BY_LOSS_PRECISION)?;
    let section = figure.shown_in(e.section(), &found, &THROUGHPUT, fig17a_title(&found), &caption(e, &found));
    Ok(e.outcome(figure.points(&found), fig17a_claims(e, &found), section))
}

/// Says what was measured where link errors are frequent.
fn fig17a_title(found: &Measurements<RunStats>) -> String {
    let over = |other: &Scheme| found.ratio(RCS.key, other.key, 5e-3, throughput).map(|e| e.mean);
    let least = |schemes: &[Scheme]| schemes.iter().filter_map(over).reduce(f64::min);
    match (least(&[RAP, RAP_FINE]), least(&[RENO, NEWRENO, SACK])) {
        (Some(rap), Some(tcp)) => {
            format!("At P = 5e-3 RCS gets at least {rap:.1} times what RAP gets, and {tcp:.1} times what TCP gets")
        }
        _ => "Throughput where the link loses packets".to_owned(),
    }
}

/// The claims of Fig. 17(a), from whatever was measured.
fn fig17a_claims(e: &Experiment, found: &Measurements<RunStats>) -> Vec<Claim> {
    let mut claims = Vec::new();
    let places = found.xs(RCS.key);
    for rap in &RAPS {
        let (rap, name) = (rap.key, rap_name(rap));
        let (at, _) = smallest(places.iter().map(|&p| (p, found.ratio(RCS.key, rap, p, throughput))));
        let statement = format!("RCS is above {name} at every P");
        claims.push(
            e.claim(format!("above-{rap}"), statement, Bound::Above(1.0), "smallest ratio of throughputs, at P = {at}")
                .because(format!(
                    "There RCS gets {} of the link and RAP {}",
                    filled(found, RCS.key, at),
                    filled(found, rap, at)
                ))
                .everywhere(places.iter().map(|&p| (p, found.ratio(RCS.key, rap, p, throughput)))),
        );
        let statement = format!("at P = 5e-3 RCS has at least 2.5 times the throughput of {name}");
        claims.push(
            e.claim(format!("gain-5e-3-over-{rap}"), statement, Bound::AtLeast(2.5), "ratio of throughputs")
                .ratio_at(found, RCS.key, rap, 5e-3, throughput),
        );
    }
    let statement = "RCS's throughput is greatest at P = 1e-3";
    let what = "smallest ratio of the throughput at 1e-3 to another, that at P = {at}";
    let others = places.iter().filter(|p| **p != 1e-3);
    claims.push(
        e.claim("greatest-at-1e-3", statement, Bound::AtLeast(1.0), what)
            .everywhere(others.map(|&p| (p, found.relative(RCS.key, 1e-3, p, throughput)))),
    );
    let falling: Vec<f64> = std::iter::once(1e-3).chain(places.iter().copied().filter(|p| *p > 1e-3)).collect();
    let what = "largest ratio of neighbouring points, at P = {at}";
    claims.push(
        e.claim("falls", "RCS falls from each P to the next past 1e-3", Bound::Below(1.0), what)
            .monotone(&falling, |from, to| found.relative(RCS.key, to, from, throughput)),
    );
    for rap in [&RAP, &RAP_FINE] {
        let statement = format!("{} does, too", rap.name);
        claims.push(
            e.claim(format!("{}-falls", rap.key), statement, Bound::Below(1.0), what)
                .monotone(&falling, |from, to| found.relative(rap.key, to, from, throughput)),
        );
    }
    claims
}

pub(super) fn fig18(e: &Experiment, bench: &mut Bench<'_>, tools: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let figure = BY_LOSS.asked_for(tools, CLAIMED);
    let found = figure.measured(e, bench, MEASURE, BY_LOSS_PRECISION)?;
    let what = "smallest step between neighbouring points, up to P = {at}";
    let mut claims = vec![
        e.claim("grows", "the overhead grows with P", Bound::Above(0.0), what)
            .monotone(&P, |from, to| found.growth(RCS.key, from, to, overhead)),
        e.claim(
            "overhead-1e-2",
            "the overhead is 21.5 % at P = 1e-2 (ours: within a point)",
            Bound::Within(0.205, 0.225),
            "dummies / (data + dummies) sent",
        )
        .number(found.estimate(RCS.key, 1e-2, overhead)),
    ];
    for rap in &RAPS {
        let statement = format!("at P = 1e-2 RCS has more than twice the throughput of {}", rap_name(rap));
        claims.push(
            e.claim(format!("gain-1e-2-over-{}", rap.key), statement, Bound::Above(2.0), "ratio of throughputs")
                .ratio_at(&found, RCS.key, rap.key, 1e-2, throughput),
        );
    }
    let caption = caption(e, &found);
    let section = e.section().chart(gain_chart(&found, &caption));
    let section = FIG18.shown_in(section, &found, &OVERHEAD, "The overhead grows with P", &caption);
    let points = FIG18.points(&found).into_iter().chain(gains(&found)).collect();
    Ok(e.outcome(points, claims, section))
}

/// The throughput of RCS over that of each RAP, at each P.
fn gains(found: &Measurements<RunStats>) -> Vec<Point> {
    let places = RAPS.iter().flat_map(|rap| P.map(|p| (rap.key, p)));
    let gain = |(rap, p): (&str, f64)| {
        point(RCS.key, &[(P_LOSS.key, p)], format!("gain_over_{rap}"), found.ratio(RCS.key, rap, p, throughput))
    };
    places.filter_map(gain).collect()
}

fn gain_chart(found: &Measurements<RunStats>, caption: &str) -> Chart {
    let title = "What RCS gets for each packet of RAP";
    let chart = Chart::new(title, P_LOSS.axis(), Axis::new("throughput / RAP's", "")).caption(caption);
    RAPS.iter().fold(chart, |chart, rap| {
        let gains = P.iter().map(|&p| (p, found.ratio(RCS.key, rap.key, p, throughput)));
        chart.series(curve(format!("RCS / {}", rap.name), rap.key, gains))
    })
}

// --- against the RTT -----------------------------------------------------------------------------------------------

const BY_RTT: Figure<RunStats> =
    Figure { x: RTT, places: &RTTS, schemes: ALL, vary: set_rtt, quantities: &[THROUGHPUT, OVERHEAD] };
const FIG19: Figure<RunStats> = Figure { schemes: &[RCS], quantities: &[OVERHEAD], ..BY_RTT };
const BY_RTT_PRECISION: Precision<RunStats> =
    Precision { numbers: &[throughput, overhead], most_seeds: |scheme, rtt| scheme.starts_with("rcs") && rtt >= 400.0 };

pub(super) fn fig17b(e: &Experiment, bench: &mut Bench<'_>, tools: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let figure = BY_RTT.asked_for(tools, CLAIMED);
    let found = figure.measured(e, bench, MEASURE, BY_RTT_PRECISION)?;
    let of_rcs = || RTTS.iter().map(|&x| (x, found.estimate(RCS.key, x, throughput)));
    let (low, high) = (smallest(of_rcs()).0, largest(of_rcs()).0);
    let statement = "RCS is nearly flat over RTT (ours: the lowest point is at least 0.9 of the highest)";
    let what = format!("throughput at {low} ms / at {high} ms");
    let mut claims = vec![
        e.claim("rcs-flat", statement, Bound::AtLeast(0.9), what).relative(&found, RCS.key, low, high, throughput),
    ];
    for rap in [&RAP, &RAP_FINE] {
        let statement = format!("{} falls steeply from 250 ms on (ours: at 750 ms at most 0.6 of 250 ms)", rap.name);
        claims.push(
            e.claim(format!("{}-falls", rap.key), statement, Bound::AtMost(0.6), "throughput at 750 ms / at 250 ms")
                .relative(&found, rap.key, 750.0, 250.0, throughput),
        );
    }
    for rap in [&RAP, &RAP_FINE] {
        let (key, statement) = (format!("above-{}-150ms", rap.key), format!("RCS is above {} at 150 ms", rap.name));
        claims.push(
            e.claim(key, statement, Bound::Above(1.0), "ratio of throughputs")
                .because(format!(
                    "There {} fills {} of the link, RCS {}; {} of what RCS sends is dummies",
                    rap.name,
                    filled(&found, rap.key, 150.0),
                    filled(&found, RCS.key, 150.0),
                    text(found.estimate(RCS.key, 150.0, overhead)),
                ))
                .ratio_at(&found, RCS.key, rap.key, 150.0, throughput),
        );
    }
    let title = "RAP falls with RTT, RCS far less";
    let section = figure.shown_in(e.section(), &found, &THROUGHPUT, title, &caption(e, &found));
    Ok(e.outcome(figure.points(&found), claims, section))
}

pub(super) fn fig19(e: &Experiment, bench: &mut Bench<'_>, tools: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let figure = BY_RTT.asked_for(tools, &[RCS]);
    let found = figure.measured(e, bench, MEASURE, BY_RTT_PRECISION)?;
    let at_each = |from: f64| {
        let places = RTTS.iter().filter(move |x| **x >= from);
        places.map(|&x| (x, found.estimate(RCS.key, x, overhead))).collect::<Vec<_>>()
    };
    let statement = "the overhead is highest near 100 ms (ours: at 150 ms or below)";
    let mut claims = vec![
        e.claim("highest-near-100ms", statement, Bound::AtMost(150.0), "RTT in ms of the highest point")
            .exact(largest(at_each(0.0)).0),
    ];
    for (word, (at, extreme)) in [("lowest", smallest(at_each(400.0))), ("highest", largest(at_each(400.0)))] {
        let statement = format!("from 400 ms up the overhead is about 10 % (ours: 8 to 12 %): the {word} point");
        let what = format!("overhead at {at} ms");
        claims.push(e.claim(format!("{word}-from-400ms"), statement, Bound::Within(0.08, 0.12), what).number(extreme));
    }
    let section = FIG19.shown_in(e.section(), &found, &OVERHEAD, "The overhead against RTT", &caption(e, &found));
    Ok(e.outcome(FIG19.points(&found), claims, section))
}

// --- against background --------------------------------------------------------------------------------------------

const RCS1: Scheme = Scheme::new("rcs", "RCS1: constant-rate background", "rcs");
const RCS2: Scheme = Scheme::new("rcs-2", "RCS2: RAP background", "rcs").setting(responsive_background);
const FIG17C: Figure<RunStats> = Figure {
    x: BACKGROUND,
    places: &S_L,
    schemes: &[RCS1, RCS2, RAP, RAP_FINE, RENO, NEWRENO, SACK],
    vary: set_background,
    quantities: &[THROUGHPUT, OVERHEAD],
};
pub(super) fn fig17c(e: &Experiment, bench: &mut Bench<'_>, tools: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let figure = FIG17C.asked_for(tools, &[RCS1, RCS2, RAP, RAP_FINE]);
    let found = figure.measured(e, bench, MEASURE, Precision::of(&[throughput]))?;
    let to_400: Vec<f64> = S_L.iter().copied().filter(|x| *x <= 400.0).collect();
    let change = "largest change, at S_L = {at}";
    let to_400_flat = "RCS1 is flat up to 400 packets/s (ours: within 5 % of S_L = 0)";
    let lower = "RCS1 is very slightly lower at 600 packets/s (ours: 0.9 to 1 of S_L = 0)";
    let mut claims = vec![
        e.claim("rcs2-flat", "RCS2 is flat (ours: within 5 % of S_L = 0)", Bound::AtMost(0.05), change)
            .spread(&found, RCS2.key, &S_L, 0.0, throughput),
        e.claim("rcs1-flat-to-400", to_400_flat, Bound::AtMost(0.05), change)
            .because(format!("RCS fills {} of the link, beside S_L = 400", filled(&found, RCS1.key, 400.0)))
            .spread(&found, RCS1.key, &to_400, 0.0, throughput),
        e.claim("rcs1-lower-at-600", lower, Bound::Within(0.9, 1.0), "throughput at 600 / at 0")
            .relative(&found, RCS1.key, 600.0, 0.0, throughput),
    ];
    for (rcs, key) in [(&RCS1, "rcs1"), (&RCS2, "rcs2")] {
        let raps = |x: f64| [RAP, RAP_FINE].map(|rap| (x, found.ratio(rcs.key, rap.key, x, throughput)));
        let statement = format!("{} is above both RAPs at every S_L", rcs.name);
        let what = "smallest ratio of throughputs, at S_L = {at}";
        claims.push(
            e.claim(format!("{key}-above-rap"), statement, Bound::Above(1.0), what)
                .everywhere(S_L.iter().flat_map(|&x| raps(x))),
        );
    }
    let title = "Throughput beside low-priority background";
    let section = e.section().text("RAP and TCP are drawn with the constant-rate background.");
    let section = figure.shown_in(section, &found, &THROUGHPUT, title, &caption(e, &found));
    Ok(e.outcome(figure.points(&found), claims, section))
}

/// Ten RAP flows in place of the background, each at most a tenth of S_L.
fn responsive_background(s: &mut RawScenario) {
    let size = s.packet_size.get();
    for flow in s.flows.iter_mut().filter(|f| f.name == "background") {
        let pps = flow.rate.take().map(|rate| rate.get().with_packets_of(size).as_packets_per_second(size));
        flow.controller = "rap".to_owned();
        flow.count = Count::new(10);
        flow.max_rate = pps.map(|pps| packets_per_second(pps / 10.0));
        flow.initial_rtt = Some(s.path.rtt.clone());
        flow.start_spread = Time::seconds(1.0);
    }
}

// --- against the buffer --------------------------------------------------------------------------------------------

const FIG17D: Figure<RunStats> =
    Figure { x: BUFFER, places: &K, schemes: ALL, vary: set_buffer, quantities: &[THROUGHPUT, OVERHEAD] };

pub(super) fn fig17d(e: &Experiment, bench: &mut Bench<'_>, tools: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let figure = FIG17D.asked_for(tools, CLAIMED);
    let found = figure.measured(e, bench, MEASURE, Precision::of(&[throughput]))?;
    let to_300: Vec<f64> = K.iter().copied().filter(|x| *x <= 300.0).collect();
    let flat = "RCS changes little up to K = 300 (ours: within 10 % of K = 50)";
    let higher = "RCS is slightly higher beyond (ours: K = 500 above K = 300, by at most 10 %)";
    let mut claims = vec![
        e.claim("flat-to-300", flat, Bound::AtMost(0.10), "largest change, at K = {at}")
            .spread(&found, RCS.key, &to_300, 50.0, throughput),
        e.claim("higher-beyond", higher, Bound::Within(1.0, 1.1), "throughput at K = 500 / at K = 300")
            .relative(&found, RCS.key, 500.0, 300.0, throughput),
    ];
    for rap in [&RAP, &RAP_FINE] {
        let what = "smallest ratio of throughputs, at K = {at}";
        claims.push(
            e.claim(
                format!("above-{}", rap.key),
                format!("RCS is above {} at every K", rap.name),
                Bound::Above(1.0),
                what,
            )
            .everywhere(K.iter().map(|&k| (k, found.ratio(RCS.key, rap.key, k, throughput)))),
        );
    }
    let title = "Throughput against the room in the buffer";
    let section = figure.shown_in(e.section(), &found, &THROUGHPUT, title, &caption(e, &found));
    Ok(e.outcome(figure.points(&found), claims, section))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin::{base, with};
    use crate::figure::enough;
    use crate::{Effort, experiments};
    use fairpace_lab::Hooks;

    const MINI: Figure<RunStats> = Figure { schemes: &[RCS, RAP, RAP_FINE], places: &[1e-3, 5e-3, 1e-2], ..BY_LOSS };

    fn mini() -> Experiment {
        Experiment { id: "mini", ..*experiments().find(|e| e.id == "rcs.fig17a").unwrap() }
    }

    /// Fig. 17(a) in small: 60 s, two flows, two seeds, three values of P.
    fn miniature() -> Measurements<RunStats> {
        let base = with(&base(&mini()), |s| {
            s.duration = Time::seconds(60.0);
            s.warmup = Time::seconds(30.0);
            s.flows[0].count = Count::new(2);
        });
        let mut bench = Bench::new(Hooks::default(), Effort::Seeds(2));
        let found = enough(&mini(), &mut bench, MEASURE, MINI.cases(&base), Precision::of(&[throughput]));
        assert_eq!(bench.simulated(), 18);
        found.unwrap()
    }

    #[test]
    fn a_reading_beside_the_one_that_is_drawn_runs_the_schemes_that_claims_are_about() {
        let keys = |claims_only: bool| {
            let figure = BY_LOSS.asked_for(&Tools { claims_only, ..Tools::default() }, CLAIMED);
            figure.schemes.iter().map(|scheme| scheme.key).collect::<Vec<_>>()
        };
        assert_eq!(keys(true), ["rcs", "rap", "rap-fine"]);
        assert_eq!(keys(false).len(), 6);
        // The miniature has these three alone, and no claim is without a number.
        assert!(fig17a_claims(&mini(), &miniature()).iter().all(|claim| claim.measured.is_some()));
    }

    #[test]
    fn the_miniature_of_fig_17a_decides_its_claims_from_the_runs() {
        let claims = fig17a_claims(&mini(), &miniature());
        let ids: Vec<&str> = claims.iter().map(|c| c.id.as_str()).collect();
        let expected = [
            "above-rap",
            "gain-5e-3-over-rap",
            "above-rap-fine",
            "gain-5e-3-over-rap-fine",
            "greatest-at-1e-3",
            "falls",
            "rap-falls",
            "rap-fine-falls",
        ];
        assert_eq!(ids, expected.map(|name| format!("mini/{name}")));
        // Two flows alone on 1,300 packets/s: RAP is limited by loss alone, sqrt(3 / (2 P)) / RTT = 31 packets/s
        // at 5e-3; RCS by S_Target. Claims can only be true here.
        assert!(claims[0].holds && claims[1].holds, "{claims:#?}");
        assert!(claims[1].measured.unwrap() > 2.5 && claims[1].measured.unwrap() < 10.0, "{claims:#?}");
    }

    #[test]
    fn the_same_claims_fail_when_the_schemes_change_places() {
        let mut found = miniature();
        for cell in &mut found.cells {
            cell.scheme = match cell.scheme.as_str() {
                "rcs" => "rap",
                "rap" => "rcs",
                other => other,
            }
            .to_owned();
        }
        let claims = fig17a_claims(&mini(), &found);
        assert!(!claims[0].holds && !claims[1].holds, "{claims:#?}");
        assert!(claims[1].measured.unwrap() < 1.0 / 2.5, "{claims:#?}");
        assert_eq!(claims[1].bound, ">= 2.5");
    }

    #[test]
    fn a_claim_about_everywhere_fails_where_one_point_is_missing() {
        let mut found = miniature();
        for cell in found.cells.iter_mut().filter(|c| c.at() == 5e-3 && c.scheme.starts_with("rap")) {
            cell.runs.clear();
        }
        let claims = fig17a_claims(&mini(), &found);
        assert_eq!((claims[0].holds, claims[0].measured), (false, None));
    }
}
