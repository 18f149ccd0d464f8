//! Who gets how much: RCS among itself, and beside TCP [rcs §V-D, Figs. 20 and 21].

use super::{
    BACKGROUND, BUFFER, MAIN, P_LOSS, RAP, RAP_FINE, RCS, Scheme, acknowledged_jain, base, jain_of_all, jain_of_groups,
    ours, packets_per_second, set_buffer, set_loss, tcp_throughput, throughput, under, with,
};
use crate::bench::{Bench, Cell, Grid, Precision, largest, smallest};
use crate::show::{self, Abscissa, Look, Quantity};
use crate::{Bound, Claim, Experiment, Outcome, Tools};
use fairpace_lab::RunError;
use fairpace_lab::stats::Estimate;
use fairpace_scenario::{Count, FlowSpec, LossSpec, Priority, RawScenario, Scenario, replace_controller};

const P: [f64; 5] = [1e-4, 3e-4, 1e-3, 3e-3, 1e-2];
const K: [f64; 5] = [20.0, 50.0, 100.0, 300.0, 600.0];
const S_L: [f64; 4] = [0.0, 200.0, 400.0, 600.0];

pub(super) const TCP_THROUGHPUT: Quantity =
    Quantity { key: "tcp_throughput_pps", label: "throughput per TCP flow", unit: "packets/s", get: tcp_throughput };
const MAIN_THROUGHPUT: Quantity =
    Quantity { key: "throughput_pps", label: "throughput per media flow", unit: "packets/s", get: throughput };
const JAIN: Quantity = Quantity { key: "jain_index", label: "Jain's index over all flows", unit: "", get: jain_of_all };
const JAIN_GROUPS: Quantity =
    Quantity { key: "jain_index_of_groups", label: "Jain's index of the groups' means", unit: "", get: jain_of_groups };

pub(super) fn homogeneous(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    const ACKED: Quantity = Quantity {
        key: "jain_index_of_acknowledged",
        label: "Jain's index of acknowledged packets",
        unit: "",
        get: acknowledged_jain,
    };
    const FLOWS: Abscissa = Abscissa { key: "flows", label: "RCS flows", unit: "", log: false };
    let cell = Cell { scheme: RCS.look.key, x: 10.0, scenario: base(e) };
    let grid = bench.measure(e.id, &[cell], &Precision::of(&[acknowledged_jain]))?;
    let claims = vec![Claim::check(
        format!("{}/jain", e.id),
        "ten RCS flows have the same number of packets acknowledged over the run",
        grid.estimate(RCS.look.key, 10.0, acknowledged_jain),
        Bound::AtLeast(0.98),
        "Jain's index of acknowledged packets, start-up included",
    )];
    // One flow per line, the first seed: who got how much.
    let flows = grid.cells.first().and_then(|c| c.runs.first()).map_or(&[][..], |r| &r.flows);
    let table = fairpace_report::Table {
        title: "Acknowledged packets of each flow".to_owned(),
        caption: format!("{}, seed 1", e.file),
        head: vec!["flow".to_owned(), "packets".to_owned(), "overhead".to_owned()],
        rows: flows
            .iter()
            .map(|f| {
                let overhead = f.overhead.map_or("–".to_owned(), fairpace_lab::stats::short);
                vec![f.name.clone(), f.acknowledged_packets.to_string(), overhead]
            })
            .collect(),
    };
    let section = show::section(e).table(table);
    Ok(show::outcome(e, show::points(&grid, &FLOWS, &[ACKED]), claims, section))
}

/// RCS beside a TCP, or that TCP alone.
struct Beside {
    tcp: &'static str,
    name: &'static str,
    mixed: Look,
    alone: Look,
}

const BESIDE: [Beside; 2] = [
    Beside {
        tcp: "tcp-reno",
        name: "TCP Reno",
        mixed: Look { key: "tcp-reno", name: "TCP Reno beside RCS" },
        alone: Look { key: "tcp-reno-alone", name: "TCP Reno alone" },
    },
    Beside {
        tcp: "tcp-sack",
        name: "TCP SACK",
        mixed: Look { key: "tcp-sack", name: "TCP SACK beside RCS" },
        alone: Look { key: "tcp-sack-alone", name: "TCP SACK alone" },
    },
];

fn with_tcp(s: &Scenario, tcp: &str) -> Scenario {
    replace_controller(s, tcp, |f| f.group == "tcp").unwrap_or_else(|e| ours(&e))
}

fn tcp_alone(s: &Scenario) -> Scenario {
    with(s, |s| {
        s.flows.retain(|f| f.group == "tcp");
        for flow in &mut s.flows {
            flow.count = Count::new(10);
        }
    })
}

pub(super) fn fig20(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let base = base(e);
    let mut cells = Vec::new();
    for beside in &BESIDE {
        for p in P {
            let s = with(&with_tcp(&base, beside.tcp), |s| set_loss(s, p));
            cells.push(Cell { scheme: beside.alone.key, x: p, scenario: tcp_alone(&s) });
            cells.push(Cell { scheme: beside.mixed.key, x: p, scenario: s });
        }
    }
    let grid = bench.measure(e.id, &cells, &Precision::of(&[tcp_throughput, throughput]))?;
    let mut claims = Vec::new();
    for beside in &BESIDE {
        // Different scenarios, so the seeds pair only what is common: the ratio's spread is honest anyhow.
        let ratio =
            |p| grid.paired((beside.mixed.key, p, tcp_throughput), (beside.alone.key, p, tcp_throughput), |a, b| a / b);
        let noise = |p: f64| within_noise(&grid, beside, p);
        let (at, worst) = largest(P.iter().map(|&p| (p, noise(p))));
        claims.push(
            Claim::check(
                format!("{}/{}-keeps-its-share", e.id, beside.tcp),
                format!("{}'s mean beside RCS is within noise of its mean alone, at every P", beside.name),
                worst,
                Bound::AtMost(1.0),
                format!(
                    "largest |difference| / (half-width of its 95 % interval, at least 5 % of the mean), at P = {at}; \
                     the ratio there is {}",
                    ratio(at).map_or("unknown".to_owned(), |r| r.text())
                ),
            )
            .if_it_fails(
                "Where link errors are rare TCP alone already fills four fifths of the link and more, so that RCS takes \
                 from TCP: it halves as often, but its dummies regain what the queue has room for",
            ),
        );
        let (at, least) = smallest(P.iter().map(|&p| {
            (p, grid.paired((beside.mixed.key, p, throughput), (beside.mixed.key, p, tcp_throughput), |a, b| a / b))
        }));
        claims.push(Claim::check(
            format!("{}/rcs-above-{}", e.id, beside.tcp),
            format!("RCS gets more than {} beside it, at every P", beside.name),
            least,
            Bound::Above(1.0),
            format!("smallest ratio RCS / TCP, at P = {at}"),
        ));
    }
    let caption = show::caption(e, &grid);
    let tcp: Vec<Look> = BESIDE.iter().flat_map(|b| [b.mixed, b.alone]).collect();
    let title = "TCP alone and beside RCS, and RCS beside TCP";
    let mut chart = show::chart(&grid, &tcp, title, &caption, &P_LOSS, &TCP_THROUGHPUT);
    for beside in &BESIDE {
        let look = [beside.mixed];
        let mut rcs = show::chart(&grid, &look, "", "", &P_LOSS, &MAIN_THROUGHPUT);
        for series in &mut rcs.series {
            series.name = format!("RCS beside {}", beside.name);
            series.colour = if beside.tcp == "tcp-reno" { "rcs".to_owned() } else { "rcs-beside-sack".to_owned() };
        }
        chart.series.extend(rcs.series);
    }
    chart.y.label = "throughput per flow".to_owned();
    let mixed: Vec<Look> = BESIDE.iter().map(|b| b.mixed).collect();
    let section = show::section(e)
        .chart(chart)
        .table(show::table(&grid, &tcp, "TCP's throughput, beside RCS and alone", &P_LOSS, &TCP_THROUGHPUT))
        .table(show::table(&grid, &mixed, "RCS's throughput beside it", &P_LOSS, &MAIN_THROUGHPUT));
    Ok(show::outcome(e, show::points(&grid, &P_LOSS, &[TCP_THROUGHPUT, MAIN_THROUGHPUT]), claims, section))
}

/// |difference of the means| / half-width of the 95 % interval of that difference. The half-width counts
/// at least 5 % of the mean: what the rule for the number of seeds promises, no more.
fn within_noise(grid: &Grid, beside: &Beside, p: f64) -> Option<Estimate> {
    let difference =
        grid.paired((beside.mixed.key, p, tcp_throughput), (beside.alone.key, p, tcp_throughput), |a, b| a - b)?;
    let alone = grid.estimate(beside.alone.key, p, tcp_throughput)?;
    let half_width = difference.half_width().max(0.05 * alone.mean);
    (half_width > 0.0).then(|| Estimate::exact(difference.mean.abs() / half_width))
}

/// Media beside TCP that has a better path: which media, which TCP.
struct Pair {
    look: Look,
    media: Scheme,
    tcp: &'static str,
}

const fn pair(key: &'static str, name: &'static str, media: Scheme, tcp: &'static str) -> Pair {
    Pair { look: Look { key, name }, media, tcp }
}

const PAIRS: [Pair; 6] = [
    pair("rcs", "RCS beside Reno", RCS, "tcp-reno"),
    pair("rap", "RAP beside Reno", RAP, "tcp-reno"),
    pair("rap-fine", "RAP, fine grain, beside Reno", RAP_FINE, "tcp-reno"),
    pair("rcs-beside-sack", "RCS beside SACK", RCS, "tcp-sack"),
    pair("rap-beside-sack", "RAP beside SACK", RAP, "tcp-sack"),
    pair("rap-fine-beside-sack", "RAP, fine grain, beside SACK", RAP_FINE, "tcp-sack"),
];

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
    let base = base(e);
    let mut sweep = |places: &[f64], vary: fn(&mut RawScenario, f64)| {
        let mut cells = Vec::new();
        for pair in &PAIRS {
            for &x in places {
                let s = with(&with_tcp(&base, pair.tcp), |s| vary(s, x));
                cells.push(Cell { scheme: pair.look.key, x, scenario: under(&s, &pair.media) });
            }
        }
        bench.measure(e.id, &cells, &Precision::of(&[jain_of_all, throughput, tcp_throughput]))
    };
    let (a, b, c) = (sweep(&P, set_access_loss)?, sweep(&K, set_buffer)?, sweep(&S_L, add_background)?);
    let mut claims = Vec::new();
    for (rcs, rap, fine, tcp) in
        [("rcs", "rap", "rap-fine", "Reno"), ("rcs-beside-sack", "rap-beside-sack", "rap-fine-beside-sack", "SACK")]
    {
        let suffix = tcp.to_lowercase();
        let small: Vec<f64> = P.iter().copied().filter(|p| *p < 1e-3).collect();
        let (at, least) = smallest(small.iter().map(|&p| (p, a.estimate(rcs, p, jain_of_all))));
        claims.push(
            Claim::check(
                format!("{}/near-one-{suffix}", e.id),
                format!("beside {tcp} the index is near 1 for P_X < 1e-3 (ours: at least 0.9)"),
                least,
                Bound::AtLeast(0.9),
                format!("smallest index, at P_X = {at}"),
            )
            .if_it_fails(BIAS),
        );
        claims.push(Claim::check(
            format!("{}/falls-{suffix}", e.id),
            format!("beside {tcp} the index falls above 1e-3"),
            a.relative(rcs, 1e-2, 1e-3, jain_of_all),
            Bound::Below(1.0),
            "index at P_X = 1e-2 / at 1e-3",
        ));
        let from_1e3 = P.iter().copied().filter(|p| *p >= 1e-3);
        let differences = from_1e3.flat_map(|p| {
            let minus = |rap| a.paired((rcs, p, jain_of_all), (rap, p, jain_of_all), |l, r| l - r);
            [(p, minus(rap)), (p, minus(fine))]
        });
        let (at, least) = smallest(differences);
        claims.push(Claim::check(
            format!("{}/rcs-at-least-rap-{suffix}", e.id),
            format!("beside {tcp} RCS's index is at least either RAP's from P_X = 1e-3 up"),
            least,
            Bound::AtLeast(0.0),
            format!("smallest difference of the indices, at P_X = {at}"),
        ));
        // (b) and (c) are measured at P_X = 1e-3.
        for (grid, places, name, words, symbol) in
            [(&b, &K[..], "any-buffer", "for every K", "K"), (&c, &S_L[..], "any-background", "for every S_L", "S_L")]
        {
            let differences = places.iter().flat_map(|&x| {
                let minus = |rap| grid.paired((rcs, x, jain_of_all), (rap, x, jain_of_all), |l, r| l - r);
                [(x, minus(rap)), (x, minus(fine))]
            });
            let (at, least) = smallest(differences);
            claims.push(
                Claim::check(
                    format!("{}/rcs-at-least-rap-{name}-{suffix}", e.id),
                    format!("beside {tcp} RCS's index is at least either RAP's {words}"),
                    least,
                    Bound::AtLeast(0.0),
                    format!("smallest difference of the indices, at {symbol} = {at}"),
                )
                .if_it_fails(
                    "The background takes the places in the queue that dummies would need: without their ACKs RCS is \
                     one more additive increase",
                ),
            );
        }
        let (at, least) = smallest(K.iter().map(|&k| (k, b.estimate(rcs, k, jain_of_all))));
        claims.push(
            Claim::check(
                format!("{}/any-buffer-{suffix}", e.id),
                format!("beside {tcp} the index is near 1 for every K to 600 (ours: at least 0.9)"),
                least,
                Bound::AtLeast(0.9),
                format!("smallest index, at K = {at}"),
            )
            .if_it_fails(BIAS),
        );
        let busy = S_L.iter().copied().filter(|x| *x > 0.0);
        let (at, most) =
            largest(busy.map(|x| (x, c.paired((rcs, x, throughput), (rcs, x, tcp_throughput), |l, r| l / r))));
        claims.push(Claim::check(
            format!("{}/share-not-above-{suffix}", e.id),
            format!("RCS's share does not exceed {tcp}'s for S_L > 0"),
            most,
            Bound::AtMost(1.0),
            format!("largest ratio RCS / TCP, at S_L = {at}"),
        ));
        claims.push(Claim::check(
            format!("{}/background-lowers-{suffix}", e.id),
            format!("beside {tcp} the index falls slightly as S_L grows (ours: 0.8 to 1 of S_L = 0 at 600)"),
            c.relative(rcs, 600.0, 0.0, jain_of_all),
            Bound::Within(0.8, 1.0),
            "index at S_L = 600 / at 0",
        ));
    }
    let looks: Vec<Look> = PAIRS.iter().map(|p| p.look).collect();
    let mut section = show::section(e).text(
        "TCP sends each packet up to one service time of the bottleneck late, at random: without that, phase effects \
         at the drop-tail queue decide who gets what.",
    );
    let mut points = Vec::new();
    for (grid, x, title) in [
        (&a, &P_LOSS, "(a) The index against the link errors of the satellite"),
        (&b, &BUFFER, "(b) The index against the buffer"),
        (&c, &BACKGROUND, "(c) The index against low-priority background"),
    ] {
        let caption = show::caption(e, grid);
        section = section.chart(show::chart(grid, &looks, title, &caption, x, &JAIN));
        section = section.table(show::table(grid, &looks, &format!("{title}: numbers"), x, &JAIN));
        points.extend(show::points(grid, x, &[JAIN, JAIN_GROUPS, MAIN_THROUGHPUT, TCP_THROUGHPUT]));
    }
    Ok(show::outcome(e, points, claims, section))
}

const BIAS: &str = "At 550 against 110 ms any additive increase per RTT is 25 times slower on the satellite, and RCS's \
                    is one; its dummies help only after a loss that left room in the queue";
