//! A signal loss of up to a minute [rcs §V-E, Fig. 22].

use super::setup::{MEASURE, NEWRENO, OVERHEAD, RAP, RAP_FINE, RENO, RunStats, SACK, THROUGHPUT, overhead, throughput};
use crate::builtin::base;
use crate::figure::{Abscissa, Figure, Scheme, caption, scaled};
use crate::{Bench, Bound, Experiment, Outcome, Tools};
use fairpace_lab::RunError;
use fairpace_lab::stats::Estimate;
use fairpace_lab::study::Precision;
use fairpace_scenario::{RawScenario, Time};

/// D_SignalLoss in s.
const D: [f64; 7] = [0.0, 5.0, 10.0, 20.0, 30.0, 45.0, 60.0];
const TEN_SRTT: Scheme = Scheme::new("rcs", "RCS, T_B = 10 SRTT", "rcs:t_b=10 SRTT");
const NO_LIMIT: Scheme = Scheme::new("rcs-no-limit", "RCS, T_B without limit", "rcs:t_b=none");
const NO_BACKOFF: Scheme = Scheme::new("rcs-no-backoff", "RCS without Backoff", "rcs:backoff=off");
const FIG22: Figure<RunStats> = Figure {
    x: Abscissa::new("signal_loss_s", "length of the signal loss", "s"),
    places: &D,
    schemes: &[TEN_SRTT, NO_LIMIT, NO_BACKOFF, RAP, RAP_FINE, RENO, NEWRENO, SACK],
    vary: set_signal_loss,
    quantities: &[THROUGHPUT, OVERHEAD],
};
/// The schemes that have dummies.
const FIG22B: Figure<RunStats> = Figure { schemes: &[TEN_SRTT, NO_LIMIT, NO_BACKOFF], ..FIG22 };
/// With T_B, RCS is within a percent of RCS without Backoff at some lengths, and of nine tenths at 60 s.
const PRECISION: Precision<RunStats> =
    Precision { numbers: &[throughput, overhead], most_seeds: |scheme, _| ["rcs", "rcs-no-backoff"].contains(&scheme) };

fn set_signal_loss(s: &mut RawScenario, seconds: f64) {
    s.path.outages.retain(|_| seconds > 0.0);
    for outage in &mut s.path.outages {
        outage.length = Time::seconds(seconds);
    }
}

pub(super) fn fig22(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let found = FIG22.measured(e, bench, MEASURE, PRECISION)?;
    let base = base(e);
    let window = (base.duration.get() - base.warmup.get()).as_secs_f64();
    let light = (window - 60.0) / window;
    let mut claims = Vec::new();
    for (rcs, suffix, reading) in
        [(&TEN_SRTT, "-10srtt", "T_B = 10 SRTT"), (&NO_LIMIT, "-no-limit", "T_B without limit")]
    {
        let key = rcs.key;
        let statement = format!("RCS is nearly flat: 60 s of signal loss cost at most a tenth ({reading})");
        let what = "throughput with 60 s of signal loss / with none";
        claims.push(
            e.claim(format!("flat{suffix}"), statement, Bound::AtLeast(0.9), what)
                .because(format!(
                    "Nobody can do that here: the signal is there for only {light:.2} of the measured {window:.0} s; the \
                     paper gives no run length"
                ))
                .relative(&found, key, 60.0, 0.0, throughput),
        );
        let statement = format!("RCS is nearly flat per second of signal ({reading}; ours: at least 0.9)");
        let what = format!("the ratio above / {light:.2}");
        let per_light = found.relative(key, 60.0, 0.0, throughput).map(|r| scaled(r, 1.0 / light));
        claims.push(e.claim(format!("flat-while-lit{suffix}"), statement, Bound::AtLeast(0.9), what).number(per_light));
        let statement = format!("RCS is above RCS without Backoff at every length ({reading})");
        let what = "smallest ratio of throughputs, at {at} s";
        let dark = D.iter().filter(|d| **d > 0.0);
        claims.push(
            e.claim(format!("backoff-helps{suffix}"), statement, Bound::Above(1.0), what)
                .because(
                    "After T_B Initial finds no signal and leaves S at one packet per SRTT, as the halvings do without \
                     Backoff; S climbs from there unless an Initial happens to meet the returning signal",
                )
                .everywhere(dark.map(|&d| (d, found.ratio(key, NO_BACKOFF.key, d, throughput)))),
        );
        for rap in [&RAP, &RAP_FINE] {
            let without_any = text(found.ratio(key, rap.key, 0.0, throughput));
            let of_its_own = text(found.relative(rap.key, 30.0, 0.0, throughput));
            let dark = (window - 30.0) / window;
            for (bound, word) in [(3.6, "3.6 times (260 % improvement)"), (2.6, "2.6 times (260 % as a ratio)")] {
                let id = format!("{bound}x-{}{suffix}", rap.key);
                let statement = format!("at 30 s RCS has at least {word} {}'s throughput ({reading})", rap.name);
                claims.push(
                    e.claim(id, statement, Bound::AtLeast(bound), "ratio of throughputs")
                        .because(format!(
                            "Without any signal loss the ratio is {without_any}, and 30 s of it leave RAP {of_its_own} of \
                             its throughput; the dark time alone would leave {dark:.2}"
                        ))
                        .ratio_at(&found, key, rap.key, 30.0, throughput),
                );
            }
        }
        let statement =
            format!("the overhead grows slightly with the signal loss ({reading}; ours: by at most 0.15 at 60 s)");
        let growth = found.growth(key, 0.0, 60.0, overhead);
        let bound = Bound::Within(1e-6, 0.15);
        claims.push(
            e.claim(format!("overhead-grows{suffix}"), statement, bound, "overhead at 60 s - at 0 s").number(growth),
        );
    }
    let statement = "RCS is above RAP at every length (RAP / RCS stays below 1)";
    claims.push(
        e.claim("above-rap", statement, Bound::Below(1.0), "largest ratio RAP / RCS, at {at} s")
            .everywhere(D.iter().map(|&d| (d, found.ratio(RAP.key, TEN_SRTT.key, d, throughput)))),
    );
    let caption = caption(e, &found);
    let title = "(a) Throughput against the length of the signal loss";
    let section = FIG22.shown_in(e.section(), &found, &THROUGHPUT, title, &caption);
    let section = FIG22B.shown_in(section, &found, &OVERHEAD, "(b) What the dummies of Backoff cost", &caption);
    Ok(e.outcome(FIG22.points(&found), claims, section))
}

fn text(e: Option<Estimate>) -> String {
    e.map_or("unknown".to_owned(), |e| e.text())
}
