//! Delays of each class in a flow's first 30 s [qsd §4, Fig. 9].

use super::start::{Delays, Start};
use super::{CLASSES, IPTV, NONE, QS, QSD_0, QSD_MAX, QSD_OPT, Runs, STRATEGIES, Strategy, VIDEO, VOIP, delays, line};
use crate::figure::{brief, point, scaled, table, text};
use crate::{Bench, Bound, Claim, Experiment, Outcome, Tools};
use fairpace_lab::RunError;
use fairpace_lab::stats::Estimate;
use fairpace_report::{Axis, Chart};

pub(in crate::qsd) fn fig9(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let runs = Runs::measure(e, bench)?;
    let claims = fig9_claims(e, &runs);
    let caption = runs.caption(e);
    let mut section = e.section().text("Packets that flows produced in their first 30 s.");
    let mut points = Vec::new();
    for (class, name) in CLASSES {
        let p99 = |s: &Strategy| {
            let estimate = runs.estimate(s, &|run| delays(run, class)?.quantile_s(0.99));
            brief(estimate)
        };
        let title = format!(
            "{name}: 99 % come within {} s without Quick-Start, {} s with QS, {} s with QSD and T_q = 0",
            p99(&NONE),
            p99(&QS),
            p99(&QSD_0)
        );
        let y = Axis::new("fraction of packets later than this", "").log().range(1e-5, 1.0);
        let mut chart = Chart::new(title, Axis::new("end-to-end delay", "s"), y);
        for strategy in &STRATEGIES {
            let all: Vec<Delays> = runs.of(strategy).iter().filter_map(|run| delays(run, class)).collect();
            // From the propagation on, as finely as the delays are known.
            let delays_s = (0..).map(|i| 0.25 * 1.02_f64.powi(i)).take_while(|s| *s < 100.0);
            let later = delays_s.map(|s| (s, Estimate::of(&all.iter().map(|d| d.above(s)).collect::<Vec<f64>>())));
            let shown: Vec<_> = later.take_while(|(_, e)| e.is_some_and(|e| e.mean >= 1e-5)).collect();
            for (delay_s, estimate) in &shown {
                let metric = format!("{class}_later_than");
                points.extend(point(strategy.key, &[("e2ed_s", *delay_s)], metric, *estimate));
            }
            chart = chart.series(line(strategy, shown, [1e-5, 1.0]));
        }
        section = section.chart(chart.caption(&caption));
    }
    for (class, name) in CLASSES {
        let row = |s: &Strategy| {
            let quantile = |q: f64| text(runs.estimate(s, &|run| delays(run, class)?.quantile_s(q)));
            let mean = text(runs.estimate(s, &|run| delays(run, class)?.mean_s()));
            std::iter::once(s.name.to_owned()).chain([mean]).chain(QUANTILES.map(quantile)).collect()
        };
        let mut head = vec!["strategy".to_owned(), "mean (s)".to_owned()];
        head.extend(QUANTILES.map(|q| format!("{} % (s)", 100.0 * q)));
        section = section.table(table(
            format!("{name}: delay that so many packets do not exceed"),
            caption.clone(),
            head,
            STRATEGIES.iter().map(row),
        ));
    }
    Ok(e.outcome(points, claims, section.folded()))
}

const QUANTILES: [f64; 5] = [0.5, 0.9, 0.95, 0.99, 0.999];

/// The claims of Fig. 9, from whatever was measured.
fn fig9_claims(e: &Experiment, runs: &Runs) -> Vec<Claim> {
    let at = |class: &'static str, q: f64| move |run: &Start| delays(run, class)?.quantile_s(q);
    let apart =
        |a: &Strategy, b: &Strategy, class: &'static str, q: f64| runs.paired(a, b, &at(class, q), |a, b| a - b);
    // How far the strategies lie apart: largest over smallest, seed by seed.
    let spread = |class: &'static str, q: f64, strategies: &[Strategy]| {
        let seeds = runs.of(&NONE).len();
        let of_seed = |i: usize| {
            let values: Option<Vec<f64>> =
                strategies.iter().map(|s| runs.of(s).get(i).and_then(|run| at(class, q)(run))).collect();
            let values = values?;
            Some(values.iter().copied().fold(0.0, f64::max) / values.iter().copied().fold(f64::INFINITY, f64::min))
        };
        Estimate::of(&(0..seeds).map(of_seed).collect::<Option<Vec<f64>>>()?)
    };
    let mut claims = Vec::new();
    for (q, percent) in [(0.5, "50"), (0.95, "95")] {
        claims.push(
            e.claim(
                format!("voip-alike-{percent}"),
                format!("VoIP's delay hardly depends on the strategy: at {percent} % (ours: within a fifth)"),
                Bound::AtMost(1.2),
                "largest / smallest over the strategies",
            )
            .number(spread(VOIP, q, &STRATEGIES)),
        );
    }
    for (q, percent) in [(0.5, "50"), (0.95, "95"), (0.99, "99")] {
        claims.push(
            e.claim(
                format!("video-alike-{percent}"),
                format!("nor does that of 99 % of the video packets: at {percent} % (ours: within a fifth)"),
                Bound::AtMost(1.2),
                "largest / smallest over the strategies",
            )
            .number(spread(VIDEO, q, &STRATEGIES)),
        );
    }
    for (strategy, name, hold) in [(&QSD_OPT, "opt", 0.52), (&QSD_MAX, "max", 1.23)] {
        claims.push(e.claim(format!("video-tail-{name}"), format!(
                "video's tail is that of T_q = 0 moved by T_q where T_q = {hold} s (ours: within 30 %, at the last thousandth)"
            ), Bound::Within(0.7, 1.3), "(delay - delay with T_q = 0) / T_q").number(apart(strategy, &QSD_0, VIDEO, 0.999).map(|e| scaled(e, 1.0 / hold))));
    }
    let worst = STRATEGIES[1..].iter().map(|s| (s.name, apart(&NONE, s, IPTV, 0.95)));
    claims.push(
        e.claim(
            "iptv-none-worst",
            "television is worst without Quick-Start, at 95 %",
            Bound::Above(0.0),
            "delay without - with {at}, in s, the least of all",
        )
        .everywhere(worst),
    );
    claims.push(
        e.claim(
            "iptv-copies",
            "television's curves for T_q = 0.52 and 1.23 s are copies 0.71 s apart (ours: within 30 %, at 99 %)",
            Bound::Within(0.7, 1.3),
            "(delay with T_q = 1.23 s - with 0.52 s) / 0.71 s",
        )
        .number(apart(&QSD_MAX, &QSD_OPT, IPTV, 0.99).map(|e| scaled(e, 1.0 / 0.71))),
    );
    for (q, percent) in [(0.95, "95"), (0.99, "99"), (0.999, "99.9")] {
        let others = STRATEGIES.iter().filter(|s| **s != QSD_OPT).map(|s| (s.name, apart(s, &QSD_OPT, IPTV, q)));
        claims.push(
            e.claim(
                format!("iptv-opt-best-{percent}"),
                format!("T_q,opt is the best choice for television, at {percent} %"),
                Bound::Above(0.0),
                "delay with the next best, {at}, - with T_q = 0.52 s, in s",
            )
            .everywhere(others),
        );
    }
    claims
}
