//! Who gets how much: RCS among itself, and beside TCP [rcs §V-D, Figs. 20 and 21].

use super::setup::{
    self, BACKGROUND, BUFFER, MAIN, MEASURE, P_LOSS, RAP, RAP_FINE, RCS, RunStats, acknowledged_jain, jain_of_all,
    jain_of_groups, packets_per_second, set_buffer, set_loss, tcp_throughput, throughput,
};
use crate::figure::{Abscissa, Figure, Quantity, Scheme, caption, curve, table, text};
use crate::{Bench, Bound, Claim, Experiment, Outcome, Tools};
use fairpace_lab::RunError;
use fairpace_lab::stats::{Estimate, short};
use fairpace_lab::study::{Measurements, Precision, smallest};
use fairpace_scenario::{Count, FlowSpec, LossSpec, Priority, RawScenario, Time};

const P: [f64; 5] = [1e-4, 3e-4, 1e-3, 3e-3, 1e-2];
const K: [f64; 5] = [20.0, 50.0, 100.0, 300.0, 600.0];
const S_L: [f64; 4] = [0.0, 200.0, 400.0, 600.0];

const TCP_THROUGHPUT: Quantity<RunStats> =
    Quantity { key: "tcp_throughput_pps", label: "throughput per TCP flow", unit: "packets/s", get: tcp_throughput };
const MAIN_THROUGHPUT: Quantity<RunStats> =
    Quantity { key: "throughput_pps", label: "throughput per media flow", unit: "packets/s", get: throughput };
const JAIN: Quantity<RunStats> =
    Quantity { key: "jain_index", label: "Jain's index over all flows", unit: "", get: jain_of_all };
const JAIN_GROUPS: Quantity<RunStats> =
    Quantity { key: "jain_index_of_groups", label: "Jain's index of the groups' means", unit: "", get: jain_of_groups };

// --- RCS among itself ----------------------------------------------------------------------------------------------

/// "At any time" [rcs §V-D.1]: the same runs as far as here, s. The last is the length of the scenario.
const TIMES: [f64; 4] = [60.0, 150.0, 300.0, 450.0];
const HOMOGENEOUS: Figure<RunStats> = Figure {
    x: Abscissa::new("time_s", "acknowledged by then", "s"),
    places: &TIMES,
    schemes: &[Scheme::new("rcs", "RCS", "")],
    vary: |s, end| s.duration = Time::seconds(end),
    quantities: &[Quantity {
        key: "jain_index_of_acknowledged",
        label: "Jain's index of acknowledged packets",
        unit: "",
        get: acknowledged_jain,
    }],
};

pub(super) fn homogeneous(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let found = HOMOGENEOUS.measured(e, bench, MEASURE, Precision::of(&[acknowledged_jain]))?;
    let statement =
        "ten RCS flows have the same number of packets acknowledged at any time (ours: after 60 s to 450 s)";
    let what = "smallest Jain's index of acknowledged packets, start-up included, after {at} s";
    let fewest = |r: &RunStats| {
        let acknowledged = || r.flows.iter().map(|f| f.acknowledged as f64);
        Some(acknowledged().reduce(f64::min)? / acknowledged().reduce(f64::max)?)
    };
    let claims = vec![
        e.claim("jain", statement, Bound::AtLeast(0.98), what)
            .everywhere(TIMES.map(|end| (end, found.estimate(RCS.key, end, acknowledged_jain)))),
        e.claim(
            "fewest",
            "approximately the same (ours: the flow with the fewest has at least nine tenths of the one with the most)",
            Bound::AtLeast(0.9),
            "fewest / most packets acknowledged, after {at} s",
        )
        .because(format!("After {} s it is {}", TIMES[3], text(found.estimate(RCS.key, TIMES[3], fewest))))
        .everywhere(TIMES.map(|end| (end, found.estimate(RCS.key, end, fewest)))),
    ];
    let first = found.runs(RCS.key, TIMES[3]).first().map_or(&[][..], |r| &r.flows);
    let row = |f: &setup::FlowStats| {
        let overhead = f.overhead.map_or("–".to_owned(), short);
        vec![f.name.clone(), f.acknowledged.to_string(), overhead]
    };
    let (title, caption) = ("Acknowledged packets of each flow", format!("{}, seed 1", e.file));
    let section = e.section().table(table(title, caption, ["flow", "packets", "overhead"], first.iter().map(row)));
    Ok(e.outcome(HOMOGENEOUS.points(&found), claims, section))
}

// --- beside TCP over the same satellite ----------------------------------------------------------------------------

const RENO: Scheme = Scheme::new("tcp-reno", "TCP Reno beside RCS", "").beside("tcp-reno");
const RENO_ALONE: Scheme =
    Scheme::new("tcp-reno-alone", "TCP Reno alone", "").beside("tcp-reno").setting(leave_tcp_alone);
const SACK: Scheme = Scheme::new("tcp-sack", "TCP SACK beside RCS", "").beside("tcp-sack");
const SACK_ALONE: Scheme =
    Scheme::new("tcp-sack-alone", "TCP SACK alone", "").beside("tcp-sack").setting(leave_tcp_alone);
/// A TCP beside RCS, the same alone, its name, and the colour of the RCS beside it.
const BESIDE: [(Scheme, Scheme, &str, &str); 2] =
    [(RENO, RENO_ALONE, "TCP Reno", "rcs"), (SACK, SACK_ALONE, "TCP SACK", "rcs-beside-sack")];

const FIG20: Figure<RunStats> = Figure {
    x: P_LOSS,
    places: &P,
    schemes: &[RENO_ALONE, RENO, SACK_ALONE, SACK],
    vary: set_loss,
    quantities: &[TCP_THROUGHPUT, MAIN_THROUGHPUT],
};
const MIXED: Figure<RunStats> = Figure { schemes: &[RENO, SACK], ..FIG20 };

fn leave_tcp_alone(s: &mut RawScenario) {
    s.flows.retain(|f| f.group == "tcp");
    s.flows.iter_mut().for_each(|f| f.count = Count::new(10));
}

pub(super) fn fig20(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let found = FIG20.measured(e, bench, MEASURE, Precision::of(&[tcp_throughput, throughput]))?;
    let mut chart = FIG20.chart(&found, &TCP_THROUGHPUT, "TCP alone, beside RCS, and RCS", &caption(e, &found));
    chart.y.label = "throughput per flow".to_owned();
    for (tcp, _, name, colour) in &BESIDE {
        chart = chart.series(curve(format!("RCS beside {name}"), *colour, found.along(tcp.key, throughput)));
    }
    let section = e
        .section()
        .chart(chart)
        .table(FIG20.table(&found, &TCP_THROUGHPUT, "TCP's throughput, alone and beside RCS"))
        .table(MIXED.table(&found, &MAIN_THROUGHPUT, "RCS's throughput beside it"));
    Ok(e.outcome(FIG20.points(&found), fig20_claims(e, &found), section))
}

fn fig20_claims(e: &Experiment, found: &Measurements<RunStats>) -> Vec<Claim> {
    let mut claims = Vec::new();
    let share = |mixed: &Scheme, alone: &Scheme, p| text(found.ratio(mixed.key, alone.key, p, tcp_throughput));
    for (mixed, alone, name, _) in &BESIDE {
        let statement = format!("{name}'s mean beside RCS is within noise of its mean alone, at every P");
        let what = "largest |difference| / (half-width of its 95 % interval, at least 5 % of the mean), at P = {at}";
        claims.push(
            e.claim(format!("{}-keeps-its-share", mixed.tcp), statement, Bound::AtMost(1.0), what)
                .because(format!("At P = {} it gets {} of its mean alone", P[0], share(mixed, alone, P[0])))
                .everywhere(P.map(|p| (p, within_noise(found, mixed.key, alone.key, p)))),
        );
        let statement = format!("RCS gets more than {name} beside it, at every P");
        let what = "smallest ratio RCS / TCP, at P = {at}";
        claims.push(
            e.claim(format!("rcs-above-{}", mixed.tcp), statement, Bound::Above(1.0), what)
                .everywhere(found.along(mixed.key, |r| Some(throughput(r)? / tcp_throughput(r)?))),
        );
    }
    claims
}

/// |difference of the means| / half-width of the 95 % interval of that difference. The half-width counts
/// at least 5 % of the mean: what the rule for the number of seeds promises, no more.
fn within_noise(found: &Measurements<RunStats>, mixed: &str, alone: &str, p: f64) -> Option<Estimate> {
    let difference = found.difference(mixed, alone, p, tcp_throughput)?;
    let alone = found.estimate(alone, p, tcp_throughput)?;
    let half_width = difference.half_width().max(0.05 * alone.mean);
    (half_width > 0.0).then(|| Estimate::exact(difference.mean.abs() / half_width))
}

// --- beside TCP that has a better path -----------------------------------------------------------------------------

/// A scheme beside a TCP.
const fn pair(media: Scheme, key: &'static str, name: &'static str, tcp: &'static str) -> Scheme {
    Scheme { key, name, colour: key, tcp, ..media }
}

const PAIRS: &[Scheme] = &[
    pair(RCS, "rcs", "RCS beside Reno", "tcp-reno"),
    pair(RAP, "rap", "RAP beside Reno", "tcp-reno"),
    pair(RAP_FINE, "rap-fine", "RAP, fine grain, beside Reno", "tcp-reno"),
    pair(RCS, "rcs-beside-sack", "RCS beside SACK", "tcp-sack"),
    pair(RAP, "rap-beside-sack", "RAP beside SACK", "tcp-sack"),
    pair(RAP_FINE, "rap-fine-beside-sack", "RAP, fine grain, beside SACK", "tcp-sack"),
];
const FIG21A: Figure<RunStats> = Figure {
    x: P_LOSS,
    places: &P,
    schemes: PAIRS,
    vary: set_access_loss,
    quantities: &[JAIN, JAIN_GROUPS, MAIN_THROUGHPUT, TCP_THROUGHPUT],
};
/// At P_X = 1e-3, as (c).
const FIG21B: Figure<RunStats> = Figure { x: BUFFER, places: &K, vary: set_buffer, ..FIG21A };
const FIG21C: Figure<RunStats> = Figure { x: BACKGROUND, places: &S_L, vary: add_background, ..FIG21A };

fn set_access_loss(s: &mut RawScenario, p: f64) {
    for access in s.flows.iter_mut().filter(|f| f.group == MAIN).filter_map(|f| f.access.as_mut()) {
        access.loss = LossSpec::random(p);
    }
}

fn add_background(s: &mut RawScenario, pps: f64) {
    if pps > 0.0 {
        s.flows.push(FlowSpec {
            name: "background".to_owned(),
            group: "background".to_owned(),
            controller: "constant".to_owned(),
            class: Priority::Low,
            rate: Some(packets_per_second(pps)),
            ..FlowSpec::default()
        });
    }
}

pub(super) fn fig21(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let mut section = e.section().text(
        "TCP sends each packet up to one service time of the bottleneck late, at random: without that, phase effects \
         at the drop-tail queue decide who gets what.",
    );
    let (mut all, mut points) = (Vec::new(), Vec::new());
    for (figure, title) in [
        (FIG21A, "(a) The index against the link errors of the satellite"),
        (FIG21B, "(b) The index against the buffer"),
        (FIG21C, "(c) The index against low-priority background"),
    ] {
        let precision = Precision::of(&[jain_of_all, throughput, tcp_throughput]);
        let found = figure.measured(e, bench, MEASURE, precision)?;
        section = figure.shown_in(section, &found, &JAIN, title, &caption(e, &found));
        points.extend(figure.points(&found));
        all.push(found);
    }
    let [a, b, c] = &all[..] else { return Err(RunError::Interrupted) };
    let reno = fig21_claims(e, [a, b, c], [&PAIRS[0], &PAIRS[1], &PAIRS[2]], "Reno");
    let sack = fig21_claims(e, [a, b, c], [&PAIRS[3], &PAIRS[4], &PAIRS[5]], "SACK");
    Ok(e.outcome(points, [reno, sack].concat(), section))
}

fn fig21_claims(
    e: &Experiment,
    [a, b, c]: [&Measurements<RunStats>; 3],
    [rcs, rap, fine]: [&Scheme; 3],
    tcp: &str,
) -> Vec<Claim> {
    let (rcs, suffix) = (rcs.key, tcp.to_lowercase());
    let index = |found: &Measurements<RunStats>, places: &[f64]| {
        places.iter().map(|&x| (x, found.estimate(rcs, x, jain_of_all))).collect::<Vec<_>>()
    };
    let over_raps = |found: &Measurements<RunStats>, places: &[f64]| {
        let both = |&x: &f64| [rap, fine].map(|rap| (x, found.difference(rcs, rap.key, x, jain_of_all)));
        places.iter().flat_map(both).collect::<Vec<_>>()
    };
    let statement = format!("beside {tcp} the index is near 1 for P_X < 1e-3 (ours: at least 0.9)");
    let near_one = e
        .claim(format!("near-one-{suffix}"), statement, Bound::AtLeast(0.9), "smallest index, at P_X = {at}")
        .because(share_where_lowest(a, rcs, &P[..2], "P_X"))
        .everywhere(index(a, &P[..2]));
    let falls = e
        .claim(
            format!("falls-{suffix}"),
            format!("beside {tcp} the index falls above 1e-3"),
            Bound::Below(1.0),
            "index at P_X = 1e-2 / at 1e-3",
        )
        .relative(a, rcs, 1e-2, 1e-3, jain_of_all);
    let mut claims = vec![near_one, falls];
    for (found, places, name, words, symbol) in [
        (a, &P[2..], "", "from P_X = 1e-3 up", "P_X"),
        (b, &K[..], "any-buffer-", "for every K", "K"),
        (c, &S_L[..], "any-background-", "for every S_L", "S_L"),
    ] {
        let statement = format!("beside {tcp} RCS's index is at least either RAP's {words}");
        let what = format!("smallest difference of the indices, at {symbol} = {{at}}");
        claims.push(
            e.claim(format!("rcs-at-least-rap-{name}{suffix}"), statement, Bound::AtLeast(0.0), what)
                .everywhere(over_raps(found, places)),
        );
    }
    let statement = format!("beside {tcp} the index is near 1 for every K to 600 (ours: at least 0.9)");
    claims.push(
        e.claim(format!("any-buffer-{suffix}"), statement, Bound::AtLeast(0.9), "smallest index, at K = {at}")
            .because(share_where_lowest(b, rcs, &K, "K"))
            .everywhere(index(b, &K)),
    );
    let statement = format!("beside {tcp} RAP's index is the same for every K (ours: within a tenth of K = 50)");
    claims.push(
        e.claim(format!("rap-any-buffer-{suffix}"), statement, Bound::AtMost(0.1), "largest change, at K = {at}")
            .spread(b, rap.key, &K, 50.0, jain_of_all),
    );
    let share = |&x: &f64| (x, c.paired((rcs, x), (rcs, x), |l, r| Some(throughput(l)? / tcp_throughput(r)?)));
    let statement = format!("RCS's share does not exceed {tcp}'s for S_L > 0");
    claims.push(
        e.claim(
            format!("share-not-above-{suffix}"),
            statement,
            Bound::AtMost(1.0),
            "largest ratio RCS / TCP, at S_L = {at}",
        )
        .everywhere(S_L[1..].iter().map(share)),
    );
    claims.push(
        e.claim(
            format!("share-falls-{suffix}"),
            format!("RCS's share beside {tcp} decreases with increasing S_L"),
            Bound::Below(1.0),
            "largest ratio of RCS / TCP at an S_L and at the one before, up to S_L = {at}",
        )
        .monotone(&S_L, |from, to| {
            let of = |r: &RunStats| Some(throughput(r)? / tcp_throughput(r)?);
            c.relative(rcs, to, from, of)
        }),
    );
    let statement = format!("beside {tcp} the index falls slightly as S_L grows (ours: 0.8 to 1 of S_L = 0 at 600)");
    let bound = Bound::Within(0.8, 1.0);
    claims.push(
        e.claim(format!("background-lowers-{suffix}"), statement, bound, "index at S_L = 600 / at 0").relative(
            c,
            rcs,
            600.0,
            0.0,
            jain_of_all,
        ),
    );
    claims
}

/// The share of RCS in the throughput of a flow of TCP, where the index is lowest.
fn share_where_lowest(found: &Measurements<RunStats>, rcs: &str, places: &[f64], symbol: &str) -> String {
    let (at, _) = smallest(places.iter().map(|&x| (x, found.estimate(rcs, x, jain_of_all))));
    let share = found.paired((rcs, at), (rcs, at), |l, r| Some(throughput(l)? / tcp_throughput(r)?));
    format!("At {symbol} = {at} RCS, whose round trip is 5 times as long, gets {} of what TCP gets", text(share))
}
