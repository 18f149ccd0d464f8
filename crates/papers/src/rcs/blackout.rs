//! A signal loss of up to a minute [rcs §V-E, Fig. 22].

use super::setup::{
    MEASURE, NEWRENO, OVERHEAD, RAP, RAP_FINE, RCS, RENO, RunStats, SACK, THROUGHPUT, overhead, throughput,
};
use crate::builtin::base;
use crate::figure::{Abscissa, Figure, Scheme, caption, scaled, text};
use crate::{Bench, Bound, Experiment, Outcome, Tools};
use fairpace_lab::RunError;
use fairpace_lab::study::Precision;
use fairpace_scenario::{RawScenario, Time};

/// D_SignalLoss in s.
const D: [f64; 7] = [0.0, 5.0, 10.0, 20.0, 30.0, 45.0, 60.0];
const NO_BACKOFF: Scheme = Scheme::new("rcs-no-backoff", "RCS without Backoff", "rcs:backoff=off");
const FIG22: Figure<RunStats> = Figure {
    x: Abscissa::new("signal_loss_s", "length of the signal loss", "s"),
    places: &D,
    schemes: &[RCS, NO_BACKOFF, RAP, RAP_FINE, RENO, NEWRENO, SACK],
    vary: set_signal_loss,
    quantities: &[THROUGHPUT, OVERHEAD],
};
/// The schemes that have dummies.
const FIG22B: Figure<RunStats> = Figure { schemes: &[RCS, NO_BACKOFF], ..FIG22 };
/// No claim says anything of TCP.
const CLAIMED: &[Scheme] = &[RCS, NO_BACKOFF, RAP, RAP_FINE];
/// With T_B, RCS is within a percent of RCS without Backoff at some lengths, and of nine tenths at 60 s.
const PRECISION: Precision<RunStats> =
    Precision { numbers: &[throughput, overhead], most_seeds: |scheme, _| ["rcs", "rcs-no-backoff"].contains(&scheme) };

fn set_signal_loss(s: &mut RawScenario, seconds: f64) {
    s.path.outages.retain(|_| seconds > 0.0);
    for outage in &mut s.path.outages {
        outage.length = Time::seconds(seconds);
    }
}

pub(super) fn fig22(e: &Experiment, bench: &mut Bench<'_>, tools: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let figure = FIG22.asked_for(tools, CLAIMED);
    let found = figure.measured(e, bench, MEASURE, PRECISION)?;
    let base = tools.reading.of(&base(e));
    let window = (base.duration.get() - base.warmup.get()).as_secs_f64();
    let lit = |dark: f64| (window - dark) / window;
    let left = |scheme: &str, dark: f64| found.relative(scheme, dark, 0.0, throughput);
    let per_second = |scheme: &str, dark: f64| left(scheme, dark).map(|r| scaled(r, 1.0 / lit(dark)));
    let dark = || D.iter().filter(|d| **d > 0.0);
    let mut claims = vec![
        e.claim(
            "flat",
            "the loss of RCS's throughput is negligible (ours: 60 s of signal loss cost at most a tenth)",
            Bound::AtLeast(0.9),
            "throughput with 60 s of signal loss / with none",
        )
        .because(format!("The signal is there for {:.2} of the measured {window:.0} s", lit(60.0)))
        .number(left(RCS.key, 60.0)),
        e.claim(
            "flat-while-lit",
            "it is negligible per second of signal (ours: at most a tenth)",
            Bound::AtLeast(0.9),
            format!("the ratio above / {:.2}", lit(60.0)),
        )
        .number(per_second(RCS.key, 60.0)),
        e.claim(
            "backoff-helps",
            "RCS is above RCS without Backoff at every length",
            Bound::Above(1.0),
            "smallest ratio of throughputs, at {at} s",
        )
        .everywhere(dark().map(|&d| (d, found.ratio(RCS.key, NO_BACKOFF.key, d, throughput)))),
        e.claim(
            "backoff-helps-much",
            "Backoff gives a significant increase (ours: at 30 s at least a tenth)",
            Bound::AtLeast(1.1),
            "ratio of throughputs at 30 s",
        )
        .ratio_at(&found, RCS.key, NO_BACKOFF.key, 30.0, throughput),
    ];
    for rap in [&RAP, &RAP_FINE] {
        let statement = format!("{} falls dramatically per second of signal (ours: 60 s leave at most 0.6)", rap.name);
        let what = format!("throughput with 60 s of signal loss / with none / {:.2}", lit(60.0));
        claims.push(
            e.claim(format!("{}-falls", rap.key), statement, Bound::AtMost(0.6), what)
                .number(per_second(rap.key, 60.0)),
        );
        let (without, own) = (text(found.ratio(RCS.key, rap.key, 0.0, throughput)), text(left(rap.key, 30.0)));
        for (bound, word) in [(3.6, "3.6 times (260 % improvement)"), (2.6, "2.6 times (260 % as a ratio)")] {
            let statement = format!("at 30 s RCS has at least {word} {}'s throughput", rap.name);
            claims.push(
                e.claim(format!("{bound}x-{}", rap.key), statement, Bound::AtLeast(bound), "ratio of throughputs")
                    .because(format!(
                        "Without any signal loss the ratio is {without}, and 30 s of it leave RAP {own} of its throughput, RCS \
                         {}; the dark time alone would leave {:.2}",
                        text(left(RCS.key, 30.0)),
                        lit(30.0)
                    ))
                    .ratio_at(&found, RCS.key, rap.key, 30.0, throughput),
            );
        }
    }
    claims.push(
        e.claim(
            "overhead-grows",
            "the overhead grows slightly with the signal loss (ours: by at most 5 points at 60 s)",
            Bound::Within(1e-6, 0.05),
            "overhead at 60 s - at 0 s",
        )
        .number(found.growth(RCS.key, 0.0, 60.0, overhead)),
    );
    let statement = "RCS is above RAP at every length (RAP / RCS stays below 1)";
    claims.push(
        e.claim("above-rap", statement, Bound::Below(1.0), "largest ratio RAP / RCS, at {at} s")
            .everywhere(D.iter().map(|&d| (d, found.ratio(RAP.key, RCS.key, d, throughput)))),
    );
    let caption = caption(e, &found);
    let title = "(a) Throughput against the length of the signal loss";
    let section = figure.shown_in(e.section(), &found, &THROUGHPUT, title, &caption);
    let section = FIG22B.shown_in(section, &found, &OVERHEAD, "(b) What the dummies of Backoff cost", &caption);
    Ok(e.outcome(figure.points(&found), claims, section))
}
