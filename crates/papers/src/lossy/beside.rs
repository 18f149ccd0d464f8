//! Rate-based flows beside TCP: normalized throughput, charts and tables that every such figure shares.

use super::{ours, with};
use crate::bench::{Cell, Grid, Metric, largest};
use crate::show::{self, Abscissa, Look, Quantity};
use crate::{Bound, Claim, Experiment};
use fairpace_lab::metrics::RunSummary;
use fairpace_lab::stats::{Estimate, mean};
use fairpace_report::{Chart, Section, Series, Table};
use fairpace_scenario::{LossSpec, RawScenario, Scenario, replace_controller};

/// A scheme as it stands beside TCP.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scheme {
    /// Key in cells and points.
    pub(super) key: &'static str,
    /// Name in legends.
    pub(super) name: &'static str,
    /// As `compare` takes it.
    pub(super) controller: &'static str,
}

pub(super) const fn scheme(key: &'static str, name: &'static str, controller: &'static str) -> Scheme {
    Scheme { key, name, controller }
}

pub(super) const SRP: Scheme = scheme("srp", "SRP", "srp");
pub(super) const CRP: Scheme = scheme("crp", "CRP", "crp");
const MRP: Scheme = scheme("mrp", "MRP", "mrp");
pub(super) const SRP_ROUND: Scheme = scheme("srp-round", "SRP", "srp:p_over=round");
pub(super) const CRP_ROUND: Scheme = scheme("crp-round", "CRP", "crp:p_over=round");
const MRP_ROUND: Scheme = scheme("mrp-round", "MRP", "mrp:p_over=round");

/// Over which span the protocols measure p: what decides most of what they get. The paper says "the
/// error rate ... in the round" where it describes the protocol, and counts over the run elsewhere.
pub(super) struct Reading {
    /// Of ids.
    pub(super) suffix: &'static str,
    /// For titles and claims.
    pub(super) words: &'static str,
    pub(super) srp: Scheme,
    pub(super) crp: Scheme,
}

/// The default first: a round of one or two packets knows no p but 0, 1/2 and 1. Then the literal one.
pub(super) const READINGS: [Reading; 2] = [
    Reading { suffix: "", words: "p over eight loss intervals", srp: SRP, crp: CRP },
    Reading { suffix: "-round", words: "p over the round", srp: SRP_ROUND, crp: CRP_ROUND },
];

/// The schemes of both.
pub(super) const BOTH_READINGS: [Scheme; 4] = [SRP, CRP, SRP_ROUND, CRP_ROUND];

impl Scheme {
    /// A set-up of its own, in the same grid.
    pub(super) const fn at(self, key: &'static str) -> Scheme {
        Scheme { key, ..self }
    }

    /// The colour of the scheme, whatever the set-up.
    fn colour(&self) -> &'static str {
        self.controller.split_once(':').map_or(self.controller, |(name, settings)| {
            if settings.contains("equation=modified") { "tfrc-modified" } else { name }
        })
    }

    fn look(&self) -> Look {
        Look { key: self.key, name: self.name }
    }
}

/// What the two kinds of flows got, in shares of the bottleneck.
#[derive(Clone, Copy)]
pub(super) struct Shares {
    /// The rate-based flows.
    pub(super) main: Quantity,
    /// The TCP flows beside them.
    pub(super) tcp: Quantity,
}

const MAIN_KEY: &str = "normalized_throughput";
const TCP_KEY: &str = "tcp_normalized_throughput";
const LABEL: &str = "normalized throughput";
const TCP_LABEL: &str = "normalized throughput of TCP beside it";

const fn shares(main: Metric, tcp: Metric) -> Shares {
    Shares {
        main: Quantity { key: MAIN_KEY, label: LABEL, unit: "", get: main },
        tcp: Quantity { key: TCP_KEY, label: TCP_LABEL, unit: "", get: tcp },
    }
}

/// 5 kbit/s for each flow [lossy Table 1].
pub(super) const DUMBBELL: Shares = shares(|r| dumbbell(r, "main"), |r| dumbbell(r, "tcp"));
/// 150 kbit/s for all of them [lossy Table 2].
pub(super) const LAST_HOP: Shares = shares(|r| last_hop(r, "main"), |r| last_hop(r, "tcp"));

fn dumbbell(r: &RunSummary, group: &str) -> Option<f64> {
    r.group(group).map(|g| g.throughput_bps / 5e3)
}

fn last_hop(r: &RunSummary, group: &str) -> Option<f64> {
    let flows: usize = r.groups.iter().map(|g| g.flows).sum();
    r.group(group).map(|g| g.throughput_bps * flows as f64 / 150e3)
}

impl Shares {
    pub(super) fn metrics(&self) -> [Metric; 2] {
        [self.main.get, self.tcp.get]
    }

    pub(super) fn quantities(&self) -> [Quantity; 2] {
        [self.main, self.tcp]
    }

    /// The scheme's share over TCP's.
    pub(super) fn ratio(&self, grid: &Grid, key: &str, x: f64) -> Option<Estimate> {
        Estimate::of(&self.ratios(grid, key, x))
    }

    /// The scheme's share less TCP's.
    pub(super) fn gap(&self, grid: &Grid, key: &str, x: f64) -> Option<Estimate> {
        Estimate::of(&self.gaps(grid, key, x))
    }

    /// The same, one number per seed.
    pub(super) fn gaps(&self, grid: &Grid, key: &str, x: f64) -> Vec<f64> {
        let (main, tcp) = (grid.values(key, x, self.main.get), grid.values(key, x, self.tcp.get));
        main.iter().zip(&tcp).map(|(main, tcp)| main - tcp).collect()
    }

    /// The scheme's share over TCP's, one number per seed.
    pub(super) fn ratios(&self, grid: &Grid, key: &str, x: f64) -> Vec<f64> {
        let (main, tcp) = (grid.values(key, x, self.main.get), grid.values(key, x, self.tcp.get));
        main.iter().zip(&tcp).map(|(main, tcp)| main / tcp).collect()
    }

    /// |gap|, in the direction in which the gap's mean points: the mean of these is the gap's size, and
    /// noise about zero adds nothing to it.
    pub(super) fn distances(&self, grid: &Grid, key: &str, x: f64) -> Vec<f64> {
        let gaps = self.gaps(grid, key, x);
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

/// Cells for schemes and places; `vary` sets the place, before the scheme is put in.
pub(super) fn cells(
    base: &Scenario,
    schemes: &[Scheme],
    places: &[f64],
    vary: impl Fn(&mut RawScenario, f64),
) -> Vec<Cell> {
    let mut cells = Vec::new();
    for scheme in schemes {
        for &x in places {
            let s = with(base, |s| vary(s, x));
            let s = replace_controller(&s, scheme.controller, |f| f.group == "main").unwrap_or_else(|e| ours(&e));
            cells.push(Cell { scheme: scheme.key, x, scenario: s });
        }
    }
    cells
}

/// Independent errors on the bottleneck, after the transmitter.
pub(super) fn set_error(s: &mut RawScenario, percent: f64) {
    s.path.loss = LossSpec::random(percent / 100.0);
}

pub(super) const ERROR: Abscissa = Abscissa { key: "error_percent", label: "injected error", unit: "%", log: false };

/// One chart: each scheme and the TCP beside it.
pub(super) fn chart(
    grid: &Grid,
    schemes: &[Scheme],
    title: &str,
    caption: &str,
    x: &Abscissa,
    shares: &Shares,
) -> Chart {
    let looks: Vec<Look> = schemes.iter().map(Scheme::look).collect();
    let mut chart = show::chart(grid, &looks, title, caption, x, &shares.main);
    let tcp = show::chart(grid, &looks, "", "", x, &shares.tcp);
    chart.series.extend(tcp.series.into_iter().map(|s| Series {
        name: format!("TCP beside {}", s.name),
        colour: format!("tcp-beside-{}", colour_of(schemes, &s.colour)),
        ..s
    }));
    for series in &mut chart.series {
        if schemes.iter().any(|s| s.key == series.colour) {
            series.colour = colour_of(schemes, &series.colour).to_owned();
        }
    }
    let ends: Vec<f64> = chart.series.iter().flat_map(|s| s.x.iter().copied()).collect();
    let ends = [ends.iter().copied().fold(f64::INFINITY, f64::min), ends.iter().copied().fold(0.0, f64::max)];
    chart.series(Series::line("fair share", "reference", ends.to_vec(), vec![1.0, 1.0]).reference())
}

fn colour_of(schemes: &[Scheme], key: &str) -> &'static str {
    schemes.iter().find(|s| s.key == key).map_or("", Scheme::colour)
}

/// The chart's numbers: a row per place; per scheme what it got, what TCP got, and the ratio.
pub(super) fn table(grid: &Grid, schemes: &[Scheme], title: &str, x: &Abscissa, shares: &Shares) -> Table {
    let mut head = vec![if x.unit.is_empty() { x.label.to_owned() } else { format!("{} ({})", x.label, x.unit) }];
    for scheme in schemes {
        head.extend([scheme.name.to_owned(), format!("TCP beside {}", scheme.name), format!("{} / TCP", scheme.name)]);
    }
    let text = |e: Option<Estimate>| e.map_or("–".to_owned(), |e| e.text());
    let mut places: Vec<f64> = schemes.iter().flat_map(|s| grid.xs(s.key)).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    let row = |at: f64| {
        let mut row = vec![at.to_string()];
        for scheme in schemes {
            row.push(text(grid.estimate(scheme.key, at, shares.main.get)));
            row.push(text(grid.estimate(scheme.key, at, shares.tcp.get)));
            row.push(text(shares.ratio(grid, scheme.key, at)));
        }
        row
    };
    Table {
        title: title.to_owned(),
        caption: "throughput over a flow's share of the bottleneck, mean ± half-width of the 95 % interval".to_owned(),
        head,
        rows: places.into_iter().map(row).collect(),
    }
}

/// A scheme and what the modified equation makes of it [lossy §6.2 to §6.4].
pub(super) struct Pair {
    pub(super) original: Scheme,
    pub(super) modified: Scheme,
    words: &'static str,
}

/// CRP and MRP under both readings of p. TFRC as RFC 5348 has it, and as ns-2 has it, in which the paper
/// ran it: TCP's timeout in the equation instead of 4R, a gap is a loss at once (`docs/controllers/tfrc.md`).
pub(super) const PAIRS: [Pair; 4] = [
    Pair { original: CRP, modified: MRP, words: ", p over eight loss intervals" },
    Pair { original: CRP_ROUND, modified: MRP_ROUND, words: ", p over the round" },
    Pair {
        original: scheme("tfrc", "TFRC", "tfrc:measured_by=receiver"),
        modified: scheme("tfrc-modified", "modified TFRC", "tfrc:measured_by=receiver,equation=modified"),
        words: ", as in RFC 5348",
    },
    Pair {
        original: scheme(
            "tfrc-ns2",
            "TFRC",
            "tfrc:measured_by=receiver,discounting=on,rfc=3448,t_rto=tcp,losses=ns2,equation=complex",
        ),
        modified: scheme(
            "tfrc-ns2-modified",
            "modified TFRC",
            "tfrc:measured_by=receiver,discounting=on,rfc=3448,t_rto=tcp,losses=ns2,equation=modified",
        ),
        words: ", as in ns-2",
    },
];

/// Every scheme of the pairs.
pub(super) fn paired_schemes() -> Vec<Scheme> {
    PAIRS.iter().flat_map(|p| [p.original, p.modified]).collect()
}

/// Each modified scheme nearer TCP than its original; each original below TCP: where the error is
/// below 20 %.
pub(super) fn nearer_claims(id: &str, grid: &Grid, shares: &Shares) -> Vec<Claim> {
    let mut claims = Vec::new();
    for Pair { original, modified, words } in &PAIRS {
        let low: Vec<f64> = grid.xs(original.key).into_iter().filter(|x| *x < 20.0).collect();
        let distance = |scheme: &Scheme, x| shares.distances(grid, scheme.key, x);
        let nearer = |x: f64| difference(&distance(modified, x), &distance(original, x));
        let (at, most) = largest(low.iter().map(|&x| (x, nearer(x))));
        claims.push(
            Claim::check(
                format!("{id}/{}-nearer", modified.key),
                format!("{} is nearer TCP than {} at every error below 20 %{words}", modified.name, original.name),
                most,
                Bound::Below(0.0),
                format!(
                    "largest difference of |share - TCP's share|, {} - {}, at {at} % error",
                    modified.name, original.name
                ),
            )
            .if_it_fails(NOT_NEARER),
        );
        let over_all = |scheme: &Scheme| mean_over(&low.iter().map(|&x| distance(scheme, x)).collect::<Vec<_>>());
        claims.push(
            Claim::check(
                format!("{id}/{}-nearer-on-average", modified.key),
                format!("{} is nearer on the average over the errors below 20 %{words}", modified.name),
                difference(&over_all(modified), &over_all(original)),
                Bound::Below(0.0),
                format!("mean difference of |share - TCP's share|, {} - {}", modified.name, original.name),
            )
            .if_it_fails(NOT_NEARER),
        );
        let (at, most) = largest(low.iter().map(|&x| (x, shares.gap(grid, original.key, x))));
        claims.push(
            Claim::check(
                format!("{id}/{}-below-tcp", original.key),
                format!("{} is below TCP at every error below 20 %{words}", original.name),
                most,
                Bound::Below(0.0),
                format!("largest {} - TCP, in shares, at {at} % error", original.name),
            )
            .if_it_fails(NOT_BELOW),
        );
    }
    claims
}

const NOT_NEARER: &str = "P(Q) is nearly zero at these p, so that the modified equation is nearly the simple one: where the \
                          complex equation already gives what TCP gets or more, it gives too much. It is nearer where \
                          the original is far below TCP";
const NOT_BELOW: &str = "At the losses that TCP meets here the complex equation overestimates it, as Figs. 1 to 3 show of \
                         one TCP alone";

/// `2.3`, for titles.
pub(super) fn times(ratio: Option<Estimate>) -> String {
    ratio.map_or("–".to_owned(), |r| format!("{:.1}", r.mean))
}

/// One chart and one table for each pair.
pub(super) fn pairs_section(e: &Experiment, grid: &Grid, shares: &Shares) -> Section {
    let caption = show::caption(e, grid);
    let mut section = show::section(e).text(
        "Captions and text of the paper disagree on which protocol Figs. 28 to 33 show: all four run on the dumbbell and \
         on the last hop.",
    );
    for Pair { original, modified, words } in &PAIRS {
        let at = |scheme: &Scheme| shares.ratio(grid, scheme.key, 10.0).map(|r| r.mean);
        let title = match (at(original), at(modified)) {
            (Some(a), Some(b)) => format!(
                "At 10 % error {} gets {a:.1} times what TCP gets, {} {b:.1} times{words}",
                original.name, modified.name
            ),
            _ => format!("{} and {}{words}", original.name, modified.name),
        };
        let pair = [*original, *modified];
        section = section.chart(chart(grid, &pair, &title, &caption, &ERROR, shares)).table(table(
            grid,
            &pair,
            &format!("Shares against the error: {} and {}{words}", original.name, modified.name),
            &ERROR,
            shares,
        ));
    }
    section.folded()
}
