//! A signal loss of up to a minute [rcs §V-E, Fig. 22].

use super::{
    NEWRENO, OVERHEAD, RAP, RAP_FINE, RENO, SACK, Scheme, THROUGHPUT, base, cells, looks, overhead, scheme, throughput,
};
use crate::bench::{Bench, Precision, largest, smallest};
use crate::show::{self, Abscissa};
use crate::{Bound, Claim, Experiment, Outcome, Tools};
use fairpace_lab::RunError;
use fairpace_scenario::{RawScenario, Time};

/// D_SignalLoss in s.
const D: [f64; 7] = [0.0, 5.0, 10.0, 20.0, 30.0, 45.0, 60.0];
const DARK: Abscissa = Abscissa { key: "signal_loss_s", label: "length of the signal loss", unit: "s", log: false };

const TEN_SRTT: Scheme = scheme("rcs", "RCS, T_B = 10 SRTT", "rcs:t_b=10 SRTT", false);
const NO_LIMIT: Scheme = scheme("rcs-no-limit", "RCS, T_B without limit", "rcs:t_b=none", false);
const NO_BACKOFF: Scheme = scheme("rcs-no-backoff", "RCS without Backoff", "rcs:backoff=off", false);
const ALL: [Scheme; 8] = [TEN_SRTT, NO_LIMIT, NO_BACKOFF, RAP, RAP_FINE, RENO, NEWRENO, SACK];

fn set_signal_loss(s: &mut RawScenario, seconds: f64) {
    s.path.outages.retain(|_| seconds > 0.0);
    for outage in &mut s.path.outages {
        outage.length = Time::seconds(seconds);
    }
}

pub(super) fn fig22(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let base = base(e);
    // With T_B, RCS is within a percent of RCS without Backoff at some lengths, and of nine tenths at 60 s.
    let most_seeds = |scheme: &str, _: f64| scheme == TEN_SRTT.look.key || scheme == NO_BACKOFF.look.key;
    let precision = Precision { metrics: &[throughput, overhead], most_seeds };
    let grid = bench.measure(e.id, &cells(&base, &ALL, &D, set_signal_loss), &precision)?;
    let window = (base.duration.get() - base.warmup.get()).as_secs_f64();
    let light = (window - 60.0) / window;
    let mut claims = Vec::new();
    for (rcs, suffix, reading) in
        [(&TEN_SRTT, "-10srtt", "T_B = 10 SRTT"), (&NO_LIMIT, "-no-limit", "T_B without limit")]
    {
        let key = rcs.look.key;
        claims.push(
            Claim::check(
                format!("{}/flat{suffix}", e.id),
                format!("RCS is nearly flat: 60 s of signal loss cost at most a tenth ({reading})"),
                grid.relative(key, 60.0, 0.0, throughput),
                Bound::AtLeast(0.9),
                "throughput with 60 s of signal loss / with none",
            )
            .if_it_fails(&format!(
                "Nobody can do that here: the signal is there for only {light:.2} of the measured {window:.0} s; the \
                 paper gives no run length"
            )),
        );
        let per_light = grid.relative(key, 60.0, 0.0, throughput).map(|r| scaled(r, 1.0 / light));
        claims.push(Claim::check(
            format!("{}/flat-while-lit{suffix}", e.id),
            format!("RCS is nearly flat per second of signal ({reading}; ours: at least 0.9)"),
            per_light,
            Bound::AtLeast(0.9),
            format!("the ratio above / {light:.2}"),
        ));
        let (at, least) =
            smallest(D.iter().filter(|d| **d > 0.0).map(|&d| (d, grid.ratio(key, NO_BACKOFF.look.key, d, throughput))));
        claims.push(
            Claim::check(
                format!("{}/backoff-helps{suffix}", e.id),
                format!("RCS is above RCS without Backoff at every length ({reading})"),
                least,
                Bound::Above(1.0),
                format!("smallest ratio of throughputs, at {at} s"),
            )
            .if_it_fails(
                "After T_B Initial finds no signal and leaves S at one packet per SRTT, as the halvings do without \
                 Backoff; S climbs from there unless an Initial happens to meet the returning signal",
            ),
        );
        for rap in [&RAP, &RAP_FINE] {
            let ratio = grid.ratio(key, rap.look.key, 30.0, throughput);
            for (bound, word) in [(3.6, "3.6 times (260 % improvement)"), (2.6, "2.6 times (260 % as a ratio)")] {
                claims.push(
                    Claim::check(
                        format!("{}/{bound}x-{}{suffix}", e.id, rap.look.key),
                        format!("at 30 s RCS has at least {word} {}'s throughput ({reading})", rap.look.name),
                        ratio,
                        Bound::AtLeast(bound),
                        "ratio of throughputs",
                    )
                    .if_it_fails(&format!(
                        "Without any signal loss the ratio is {}, and 30 s of it leave RAP {} of its throughput; the \
                         dark time alone would leave {:.2}",
                        text(grid.ratio(key, rap.look.key, 0.0, throughput)),
                        text(grid.relative(rap.look.key, 30.0, 0.0, throughput)),
                        (window - 30.0) / window,
                    )),
                );
            }
        }
        let growth = grid.paired((key, 60.0, overhead), (key, 0.0, overhead), |a, b| a - b);
        claims.push(Claim::check(
            format!("{}/overhead-grows{suffix}", e.id),
            format!("the overhead grows slightly with the signal loss ({reading}; ours: by at most 0.15 at 60 s)"),
            growth,
            Bound::Within(1e-6, 0.15),
            "overhead at 60 s - at 0 s",
        ));
    }
    let (at, most) = largest(D.iter().map(|&d| (d, grid.ratio(RAP.look.key, TEN_SRTT.look.key, d, throughput))));
    claims.push(Claim::check(
        format!("{}/above-rap", e.id),
        "RCS is above RAP at every length (RAP / RCS stays below 1)",
        most,
        Bound::Below(1.0),
        format!("largest ratio RAP / RCS, at {at} s"),
    ));
    let caption = show::caption(e, &grid);
    let rcs = looks(&[TEN_SRTT, NO_LIMIT, NO_BACKOFF]);
    let all = looks(&ALL);
    let section = show::section(e)
        .chart(show::chart(
            &grid,
            &all,
            "(a) Throughput against the length of the signal loss",
            &caption,
            &DARK,
            &THROUGHPUT,
        ))
        .chart(show::chart(&grid, &rcs, "(b) What the dummies of Backoff cost", &caption, &DARK, &OVERHEAD))
        .table(show::table(&grid, &all, "Throughput against the length of the signal loss", &DARK, &THROUGHPUT))
        .table(show::table(&grid, &rcs, "Overhead against the length of the signal loss", &DARK, &OVERHEAD));
    Ok(show::outcome(e, show::points(&grid, &DARK, &[THROUGHPUT, OVERHEAD]), claims, section))
}

fn text(e: Option<fairpace_lab::stats::Estimate>) -> String {
    e.map_or("unknown".to_owned(), |e| e.text())
}

fn scaled(e: fairpace_lab::stats::Estimate, by: f64) -> fairpace_lab::stats::Estimate {
    fairpace_lab::stats::Estimate { mean: e.mean * by, ci95: e.ci95.map(|[low, high]| [low * by, high * by]), n: e.n }
}
