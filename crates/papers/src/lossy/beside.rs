//! Rate-based flows beside TCP: normalized throughput, charts and tables that every such figure shares.

use super::setup::RunStats;
use crate::figure::{Abscissa, Figure, Quantity, Scheme, caption, curve, table, text};
use crate::{Bound, Claim, Experiment};
use fairpace_lab::stats::{Estimate, mean};
use fairpace_lab::study::{Measurements, Number};
use fairpace_report::{Chart, Section, Series, Table};
use fairpace_scenario::{LossSpec, RawScenario};

/// A scheme in the colour of its controller, whatever the set-up.
pub(super) const fn scheme(
    key: &'static str,
    colour: &'static str,
    name: &'static str,
    controller: &'static str,
) -> Scheme {
    Scheme { colour, ..Scheme::new(key, name, controller) }
}

/// p: lost packets among the last 100; b = 2 in the complex equation, in which alone the paper prints a b.
pub(super) const SRP: Scheme = scheme("srp", "srp", "SRP", "srp:p_over=100 packets,one_per_rtt=off");
pub(super) const CRP: Scheme = scheme("crp", "crp", "CRP", "crp:p_over=100 packets,one_per_rtt=off,b=2");
const MRP: Scheme = scheme("mrp", "mrp", "MRP", "mrp:p_over=100 packets,one_per_rtt=off");

pub(super) const BOTH: [Scheme; 2] = [SRP, CRP];

/// The throughput of the two kinds of flows, in shares of the bottleneck: the rate-based flows, and the TCP flows
/// beside them.
pub(super) type Shares = [Quantity<RunStats>; 2];

const fn shares(main: Number<RunStats>, tcp: Number<RunStats>) -> Shares {
    [
        Quantity { key: "normalized_throughput", label: "normalized throughput", unit: "", get: main },
        Quantity {
            key: "tcp_normalized_throughput",
            label: "normalized throughput of TCP beside it",
            unit: "",
            get: tcp,
        },
    ]
}

/// 5 kbit/s for each flow [lossy Table 1].
pub(super) const DUMBBELL: SharesOf = SharesOf {
    quantities: &shares(|r| Some(r.main_bps? / 5e3), |r| Some(r.tcp_bps? / 5e3)),
    numbers: &[|r| Some(r.main_bps? / 5e3), |r| Some(r.tcp_bps? / 5e3)],
};
/// 150 kbit/s for all of them [lossy Table 2].
pub(super) const LAST_HOP: SharesOf = SharesOf {
    quantities: &shares(|r| last_hop(r, r.main_bps), |r| last_hop(r, r.tcp_bps)),
    numbers: &[|r| last_hop(r, r.main_bps), |r| last_hop(r, r.tcp_bps)],
};

fn last_hop(r: &RunStats, bps: Option<f64>) -> Option<f64> {
    Some(bps? * r.flows as f64 / 150e3)
}

/// The shown part of a set-up.
#[derive(Clone, Copy)]
pub(super) struct SharesOf {
    pub(super) quantities: &'static Shares,
    /// The same numbers: they decide how many seeds there are.
    pub(super) numbers: &'static [Number<RunStats>],
}

impl SharesOf {
    /// The scheme's share.
    pub(super) fn main(&self) -> Number<RunStats> {
        self.quantities[0].get
    }

    /// The share of TCP beside it.
    pub(super) fn tcp(&self) -> Number<RunStats> {
        self.quantities[1].get
    }

    /// The scheme's share over TCP's.
    pub(super) fn ratio(&self, found: &Measurements<RunStats>, key: &str, x: f64) -> Option<Estimate> {
        Estimate::of(&self.ratios(found, key, x))
    }

    /// The scheme's share less TCP's.
    pub(super) fn gap(&self, found: &Measurements<RunStats>, key: &str, x: f64) -> Option<Estimate> {
        Estimate::of(&self.gaps(found, key, x))
    }

    /// The same, one number per seed.
    pub(super) fn gaps(&self, found: &Measurements<RunStats>, key: &str, x: f64) -> Vec<f64> {
        found.values(key, x, |r| Some((self.main())(r)? - (self.tcp())(r)?))
    }

    /// The scheme's share over TCP's, one number per seed.
    pub(super) fn ratios(&self, found: &Measurements<RunStats>, key: &str, x: f64) -> Vec<f64> {
        found.values(key, x, |r| Some((self.main())(r)? / (self.tcp())(r)?))
    }

    /// |gap|, in the direction in which the gap's mean points: the mean of these is the gap's size, and
    /// noise about zero adds nothing to it.
    pub(super) fn distances(&self, found: &Measurements<RunStats>, key: &str, x: f64) -> Vec<f64> {
        let gaps = self.gaps(found, key, x);
        let sign = if mean(&gaps) < 0.0 { -1.0 } else { 1.0 };
        gaps.into_iter().map(|gap| sign * gap).collect()
    }
}

/// `a - b`, seed by seed, as far as both have seeds.
pub(super) fn difference(a: &[f64], b: &[f64]) -> Option<Estimate> {
    Estimate::of(&a.iter().zip(b).map(|(a, b)| a - b).collect::<Vec<_>>())
}

/// Means over several places, seed by seed, as far as all have seeds.
pub(super) fn mean_over(places: &[Vec<f64>]) -> Vec<f64> {
    let seeds = places.iter().map(Vec::len).min().unwrap_or(0);
    (0..seeds).map(|i| mean(&places.iter().map(|values| values[i]).collect::<Vec<_>>())).collect()
}

/// Independent errors on the bottleneck, after the transmitter.
pub(super) fn set_error(s: &mut RawScenario, percent: f64) {
    s.path.loss = LossSpec::random(percent / 100.0);
}

pub(super) const ERROR: Abscissa = Abscissa::new("error_percent", "injected error", "%");

/// One chart: each scheme and the TCP beside it.
pub(super) fn chart(
    x: &Abscissa,
    found: &Measurements<RunStats>,
    schemes: &[Scheme],
    set: &SharesOf,
    title: impl Into<String>,
    caption: &str,
) -> Chart {
    let [main, tcp] = set.quantities;
    let of = |scheme: &Scheme, name: String, colour: String, y: &Quantity<RunStats>| {
        let places = found.xs(scheme.key).into_iter();
        curve(name, colour, places.map(|at| (at, found.estimate(scheme.key, at, y.get))))
    };
    let own = schemes.iter().map(|s| of(s, s.name.to_owned(), s.colour.to_owned(), main));
    let beside = |s: &Scheme| of(s, format!("TCP beside {}", s.name), format!("tcp-beside-{}", s.colour), tcp);
    let lines = own.chain(schemes.iter().map(beside)).filter(|line| !line.x.is_empty());
    let axes = (x.axis(), fairpace_report::Axis::new(main.label, main.unit));
    let chart = lines.fold(Chart::new(title, axes.0, axes.1).caption(caption), Chart::series);
    let places = || schemes.iter().flat_map(|s| found.xs(s.key));
    let ends = vec![places().fold(f64::INFINITY, f64::min), places().fold(0.0, f64::max)];
    chart.series(Series::line("fair share", "reference", ends, vec![1.0, 1.0]).reference())
}

/// The chart's numbers: a row per place; per scheme what it got, what TCP got, and the ratio.
pub(super) fn numbers(
    x: &Abscissa,
    found: &Measurements<RunStats>,
    schemes: &[Scheme],
    set: &SharesOf,
    title: impl Into<String>,
) -> Table {
    let mut head = vec![x.head()];
    for Scheme { name, .. } in schemes {
        head.extend([(*name).to_owned(), format!("TCP beside {name}"), format!("{name} / TCP")]);
    }
    let mut places: Vec<f64> = schemes.iter().flat_map(|s| found.xs(s.key)).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    let cells = |at: f64| {
        move |s: &Scheme| {
            let own = [set.main(), set.tcp()].map(|get| text(found.estimate(s.key, at, get)));
            own.into_iter().chain([text(set.ratio(found, s.key, at))]).collect::<Vec<String>>()
        }
    };
    let row = |at: f64| std::iter::once(at.to_string()).chain(schemes.iter().flat_map(cells(at))).collect();
    let caption = "throughput over a flow's share of the bottleneck, mean ± half-width of the 95 % interval";
    table(title, caption, head, places.into_iter().map(row))
}

/// The chart and the table of a figure that shows SRP and CRP: a title with their ratios to TCP at a place.
pub(super) fn both_section(
    e: &Experiment,
    figure: &Figure<RunStats>,
    found: &Measurements<RunStats>,
    set: &SharesOf,
    at: f64,
    title: fn(srp: String, crp: String) -> String,
    against: &str,
) -> Section {
    let ratio = |scheme: &Scheme| times(set.ratio(found, scheme.key, at));
    let title = title(ratio(&SRP), ratio(&CRP));
    let chart = chart(&figure.x, found, &BOTH, set, title, &caption(e, found));
    let shares = numbers(&figure.x, found, &BOTH, set, format!("Shares against {against}"));
    e.section().chart(chart).table(shares).folded()
}

/// A scheme and what the modified equation makes of it [lossy §6.2 to §6.4].
pub(super) struct Pair {
    pub(super) original: Scheme,
    pub(super) modified: Scheme,
    /// On the last hop the paper shows no TFRC: the claims there are ours.
    extra: bool,
}

/// TFRC as ns-2 has it, in which the paper ran it: TCP's timeout in the equation instead of 4R, a gap is a loss at once,
/// X rises by a packet per RTT, the history is discounted to half at least, reports are repeated (`docs/controllers/tfrc.md`).
pub(super) const PAIRS: [Pair; 2] = [
    Pair { original: CRP, modified: MRP, extra: false },
    Pair {
        original: scheme(
            "tfrc",
            "tfrc",
            "TFRC",
            "tfrc:measured_by=receiver,discounting=ns2,increase=ns2,pacing=ns2,reports=ns2,rfc=3448,w_init=rfc3390,t_rto=tcp,losses=ns2,equation=complex",
        ),
        modified: scheme(
            "tfrc-modified",
            "tfrc-modified",
            "modified TFRC",
            "tfrc:measured_by=receiver,discounting=ns2,increase=ns2,pacing=ns2,reports=ns2,rfc=3448,w_init=rfc3390,t_rto=tcp,losses=ns2,equation=modified",
        ),
        extra: true,
    },
];

/// Every scheme of the pairs.
pub(super) const PAIRED: &[Scheme] = &[PAIRS[0].original, PAIRS[0].modified, PAIRS[1].original, PAIRS[1].modified];

/// "TCP throughput decreases when the injected error rate increases" [lossy §3.5, §4.2, §6.2].
pub(super) fn tcp_falls(
    e: &Experiment,
    found: &Measurements<RunStats>,
    beside: &Scheme,
    shares: &SharesOf,
    words: &str,
) -> Claim {
    e.claim(
        format!("tcp-falls-beside-{}", beside.key),
        format!("the share of TCP beside {} falls with each step of the error{words}", beside.name),
        Bound::Below(1.0),
        "largest ratio of TCP's share to that at the error before, up to {at} %",
    )
    .monotone(&found.xs(beside.key), |from, to| found.relative(beside.key, to, from, shares.tcp()))
}

/// The distance from TCP where the error is below `edge` %, less that from there on.
pub(super) fn worse_below(
    found: &Measurements<RunStats>,
    scheme: &Scheme,
    shares: &SharesOf,
    edge: f64,
) -> Option<Estimate> {
    let over = |low: bool| {
        let here = found.xs(scheme.key).into_iter().filter(|x| (*x < edge) == low);
        mean_over(&here.map(|x| shares.distances(found, scheme.key, x)).collect::<Vec<_>>())
    };
    difference(&over(true), &over(false))
}

/// Each modified scheme nearer TCP than its original; each original below TCP: where the error is
/// below 20 %.
pub(super) fn nearer_claims(
    e: &Experiment,
    found: &Measurements<RunStats>,
    shares: &SharesOf,
    ours: &str,
) -> Vec<Claim> {
    let mut claims = Vec::new();
    for Pair { original, modified, extra } in &PAIRS {
        let words = if *extra { ours } else { "" };
        let low: Vec<f64> = found.xs(original.key).into_iter().filter(|x| *x < 20.0).collect();
        let distance = |scheme: &Scheme, x| shares.distances(found, scheme.key, x);
        let nearer = |x: f64| difference(&distance(modified, x), &distance(original, x));
        claims.push(
            e.claim(
                format!("{}-nearer", modified.key),
                format!("{} is nearer TCP than {} at every error below 20 %{words}", modified.name, original.name),
                Bound::Below(0.0),
                format!(
                    "largest difference of |share - TCP's share|, {} - {}, at {{at}} % error",
                    modified.name, original.name
                ),
            )
            .everywhere(low.iter().map(|&x| (x, nearer(x)))),
        );
        let over_all = |scheme: &Scheme| mean_over(&low.iter().map(|&x| distance(scheme, x)).collect::<Vec<_>>());
        claims.push(
            e.claim(
                format!("{}-nearer-on-average", modified.key),
                format!("{} is nearer on the average over the errors below 20 %{words}", modified.name),
                Bound::Below(0.0),
                format!("mean difference of |share - TCP's share|, {} - {}", modified.name, original.name),
            )
            .number(difference(&over_all(modified), &over_all(original))),
        );
        claims.push(
            e.claim(
                format!("{}-below-tcp", original.key),
                format!("{} is below TCP at every error below 20 %{words}", original.name),
                Bound::Below(0.0),
                format!("largest {} - TCP, in shares, at {{at}} % error", original.name),
            )
            .everywhere(low.iter().map(|&x| (x, shares.gap(found, original.key, x)))),
        );
        claims.push(
            e.claim(
                format!("{}-above-{}", modified.key, original.key),
                format!("{} gets more than {} at every error below 20 %{words}", modified.name, original.name),
                Bound::Above(0.0),
                format!("smallest difference of shares, {} - {}, at {{at}} % error", modified.name, original.name),
            )
            .everywhere(low.iter().map(|&x| {
                let share = |scheme: &Scheme| found.values(scheme.key, x, shares.main());
                (x, difference(&share(modified), &share(original)))
            })),
        );
        if !*extra {
            claims.extend([original, modified].map(|scheme| tcp_falls(e, found, scheme, shares, "")));
            claims.push(
                e.claim(
                    format!("{}-worse-at-low-error", original.key),
                    format!("{} deviates from TCP especially where the error is low", original.name),
                    Bound::Above(0.0),
                    "mean over the errors of |share - TCP's share|, below 20 % less from 20 % on",
                )
                .number(worse_below(found, original, shares, 20.0)),
            );
        }
        let all = found.xs(original.key);
        if let (Some(&first), Some(&last)) = (all.first(), all.last()) {
            for scheme in [original, modified] {
                claims.push(
                    e.claim(
                        format!("{}-falls", scheme.key),
                        format!("the share of {} falls as the error grows{words}", scheme.name),
                        Bound::Below(1.0),
                        format!("share at {last} % error / at {first} %"),
                    )
                    .number(found.relative(scheme.key, last, first, shares.main())),
                );
            }
        }
    }
    claims
}

/// `2.3`, for titles.
pub(super) fn times(ratio: Option<Estimate>) -> String {
    ratio.map_or("–".to_owned(), |r| format!("{:.1}", r.mean))
}

/// One chart and one table for each pair.
pub(super) fn pairs_section(e: &Experiment, found: &Measurements<RunStats>, set: &SharesOf) -> Section {
    let caption = caption(e, found);
    let mut section = e.section().text(
        "Captions and text of the paper agree where the text's numbers are permuted: Figs. 28 and 29 are TFRC and modified \
         TFRC on the dumbbell, 30 and 31 CRP and MRP there, 32 and 33 CRP and MRP on the last hop. TFRC on the last hop is \
         shown beside them, and is no figure of the paper.",
    );
    for Pair { original, modified, .. } in &PAIRS {
        let at = |scheme: &Scheme| set.ratio(found, scheme.key, 10.0).map(|r| r.mean);
        let title = match (at(original), at(modified)) {
            (Some(a), Some(b)) => format!(
                "At 10 % error {} gets {a:.1} times what TCP gets, {} {b:.1} times",
                original.name, modified.name
            ),
            _ => format!("{} and {}", original.name, modified.name),
        };
        let pair = [*original, *modified];
        let numbers_title = format!("Shares against the error: {} and {}", original.name, modified.name);
        section = section.chart(chart(&ERROR, found, &pair, set, title, &caption)).table(numbers(
            &ERROR,
            found,
            &pair,
            set,
            numbers_title,
        ));
    }
    section.folded()
}
