//! The viewer's picture by sender: ours, plain RTP and SRT's live mode over the same path, beside the same TCP and a voice call.
//!
//! No paper has this. Each path is a scenario; each sender takes the place of its flow `video`, with the sessions of the wire
//! (`fairpace-viewer`), a play-out delay of one second for all, and an encoder that varies as a recorded clip does. A seed has
//! a clip: the three of them in turn. Harm is taken seed by seed against the same path without the video.
//!
//! A sender of one rate is shown at every rate of a grid, a sender that adapts with that grid as `max_rate` and without; so
//! each has one knob, and "the best within a harm of 5 %" is the best of its grid for every one of them.

mod places;
mod same_rate;

use crate::builtin::base;
use crate::figure::{curve, table, text};
use crate::{Bench, Bound, Claim, Experiment, Outcome, Point, Tools};
use fairpace_lab::RunError;
use fairpace_lab::stats::{Estimate, mean, short};
use fairpace_report::{Axis, Chart, Series, Style};
use places::{Alone, HARM_CAPS, OURS, Place, Seen, best, every_sender, keys};
use same_rate::against_srt;

/// One per path.
pub(super) const EXPERIMENTS: &[Experiment] = &[
    experiment!("viewers", "demo", "the demo's path: satellite, 1 % lost, a slow stretch, a blackout", run),
    experiment!("viewers", "geo", "a geostationary satellite without errors", run),
    experiment!("viewers", "geo-loss", "a geostationary satellite that loses 1 % at random", run),
    experiment!("viewers", "geo-bursts", "a geostationary satellite that loses 1 % in bursts", run),
    experiment!("viewers", "dama", "a satellite that grants capacity on demand", run),
    experiment!("viewers", "lte", "a cellular link whose capacity wanders", run),
    experiment!("viewers", "starlink", "a recorded Starlink uplink", run),
    experiment!("viewers", "wifi", "a wireless link with retransmission", run),
    experiment!("viewers", "congested", "a path short of capacity, nothing lost at random", run),
    experiment!("viewers", "dsl", "a household's line of 2 Mbit/s and 20 ms", run),
    experiment!("viewers", "red", "random early detection", run),
    experiment!("viewers", "fq-codel", "FQ-CoDel", run),
    experiment!("viewers", "codel", "CoDel", run),
    experiment!("viewers", "shallow", "a buffer of eight packets", run),
    experiment!("viewers", "pie", "PIE; held back", run),
    experiment!("viewers", "radio", "a short path that loses 3 % at random; held back", run),
    experiment!("viewers", "swings", "short of capacity and lossy by turns; held back", run),
];

/// The path on which `auto` is held against what TFRC once had live.
const SHORT_OF_CAPACITY: &str = "viewers.congested";
/// TFRC's live result there: the share of the pictures in time, and SSIM.
const TFRC_LIVE: [f64; 2] = [0.91, 0.86];

fn run(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let alone = Alone::new(e, bench)?;
    let places = every_sender(&alone, bench)?;
    let mut section = planes(e, &places).into_iter().fold(e.section(), |section, chart| section.chart(chart));
    let mut points = Vec::new();
    for (cap, words) in [(f64::INFINITY, "each at its best, whatever it costs others".to_owned())]
        .into_iter()
        .chain(HARM_CAPS.map(|cap| (cap, format!("each at its best within a harm of {} %", (100.0 * cap).round()))))
    {
        let chosen: Vec<&Place> = keys().into_iter().filter_map(|key| best(&places, key, cap)).collect();
        section = section.table(numbers(e, &chosen, &words));
        let key = if cap.is_finite() { format!("harm_{}", (100.0 * cap).round()) } else { "free".to_owned() };
        points.extend(chosen.iter().flat_map(|p| points_of(p, &key)));
    }
    // The rows of a user who sets nothing.
    let free: Vec<&Place> = places.iter().filter(|p| p.kbps.is_none()).collect();
    section = section.table(numbers(e, &free, "without a highest rate"));
    points.extend(free.iter().flat_map(|p| points_of(p, "default")));
    let mut claims = claims(e, &places);
    if e.id == SHORT_OF_CAPACITY {
        let all = [alone.without_flags(bench, "auto")?, alone.without_flags(bench, "tfrc")?];
        section = section.table(numbers(e, &all.each_ref(), "without any flag at either end: play-out adapts"));
        points.extend(all.iter().flat_map(|p| points_of(p, "no_flags")));
        claims.extend(claims_without_flags(e, &all[0]));
    }
    if let Some((table, more)) = against_srt(e, &alone, &places, bench)? {
        section = section.table(table);
        claims.extend(more);
    }
    Ok(e.outcome(points, claims, section))
}

fn points_of(p: &Place, key: &str) -> Vec<Point> {
    let metrics = [
        ("in_time", p.estimate(|r| r.in_time)),
        ("damaged", p.estimate(|r| r.damaged)),
        ("ssim", p.estimate(|r| r.ssim)),
        ("freeze_s", p.estimate(|r| r.freeze)),
        ("delay_median_ms", p.of_some(|r| r.delay)),
        ("delay_p95_ms", p.of_some(|r| r.delay_95)),
        ("harm_tcp", Estimate::of(&p.harm)),
        ("harm_voice", Estimate::of(&p.voice)),
        ("sent_kbps", p.estimate(|r| r.sent)),
        ("useful_kbps", p.estimate(|r| r.useful)),
        ("ended", p.estimate(|r| r.ended)),
    ];
    let x: Vec<(&str, f64)> = p.kbps.iter().map(|kbps| ("kbps", *kbps)).collect();
    let scheme = format!("{} {key}", p.key);
    metrics.into_iter().filter_map(|(metric, e)| crate::figure::point(&scheme, &x, metric, e)).collect()
}

/// One row per sender, at its best.
fn numbers(e: &Experiment, chosen: &[&Place], words: &str) -> fairpace_report::Table {
    let row = |p: &&Place| {
        let percent = |of: fn(&Seen) -> f64| text(p.estimate(move |r| 100.0 * of(r)));
        let harm = |values: &[f64]| text(Estimate::of(&values.iter().map(|h| 100.0 * h).collect::<Vec<_>>()));
        vec![
            p.name.clone(),
            p.at(),
            percent(|r| r.in_time),
            percent(|r| r.damaged),
            text(p.estimate(|r| r.ssim)),
            text(p.estimate(|r| r.freeze)),
            text(p.of_some(|r| r.delay)),
            text(p.of_some(|r| r.delay_95)),
            harm(&p.harm),
            harm(&p.voice),
            text(p.estimate(|r| r.sent)),
            text(p.estimate(|r| r.useful)),
            format!("{} of {}", p.ended(), p.runs.len()),
        ]
    };
    let head = [
        "sender",
        "rate, kbit/s",
        "whole and in time, %",
        "damaged, %",
        "SSIM",
        "longest freeze, s",
        "delay glass to glass, median, ms",
        "the same, 95th percentile, ms",
        "harm to TCP, %",
        "harm to the call, %",
        "sent, kbit/s",
        "of use, kbit/s",
        "ended by themselves",
    ];
    let title = format!("Senders, {words}");
    if chosen.is_empty() {
        return table(title, e.file, ["sender"], [vec!["none".to_owned()]]);
    }
    let caption = format!("{}; mean ± half-width of the 95 % interval (Student's t)", e.file);
    table(title, caption, head, chosen.iter().map(row))
}

/// Senders of the first chart; the others are in the second, with the first of these.
const SHOWN_FIRST: [&str; 7] = ["auto", "fixed", "srt", "srt-fec", "plain", "tfrc", "rcs"];
/// Harm beyond this is in the numbers below the chart, %.
const SHOWN_TO: f64 = 40.0;

/// Picture against harm.
fn planes(e: &Experiment, places: &[Place]) -> [Chart; 2] {
    let cap = HARM_CAPS[1];
    let winner = keys().into_iter().filter_map(|key| best(places, key, cap));
    let winner = winner.max_by(|a, b| a.mean(|r| r.ssim).total_cmp(&b.mean(|r| r.ssim)));
    let title = winner.map_or("No sender stays within a harm of 5 %".to_owned(), |p| {
        format!("Within a harm of 5 % the best picture is that of {}: SSIM {}", p.name, short(p.mean(|r| r.ssim)))
    });
    let others = keys().into_iter().filter(|key| *key == SHOWN_FIRST[0] || !SHOWN_FIRST.contains(key));
    let others_title = "Our other controllers beside the default".to_owned();
    [(title, SHOWN_FIRST.to_vec()), (others_title, others.collect())].map(|(title, of)| plane(e, places, title, &of))
}

fn plane(e: &Experiment, places: &[Place], title: String, keys: &[&'static str]) -> Chart {
    let least = places.iter().map(|p| 100.0 * mean(&p.harm)).fold(0.0, f64::min);
    let x = Axis::new("harm to TCP: rate that it lost to the video", "%");
    let y = Axis::new("SSIM, freezes counted", "").range(0.5, 1.0);
    let mut chart = Chart::new(title, x.range(least.floor(), SHOWN_TO), y).caption(format!(
        "{}; a point per rate (or highest rate), to a harm of {SHOWN_TO} %: all are in the numbers; bars are 95 % intervals of SSIM",
        e.file
    ));
    for key in keys {
        let mut of: Vec<&Place> = places.iter().filter(|p| p.key == *key).collect();
        of.sort_by(|a, b| mean(&a.harm).total_cmp(&mean(&b.harm)));
        let Some(first) = of.first() else { continue };
        // Elsewhere LDA is never beside RAP, and looks like it.
        let look = if key.starts_with("lda") { format!("viewers {key}") } else { (*key).to_owned() };
        let line = curve(first.name.clone(), look, of.iter().map(|p| (100.0 * mean(&p.harm), p.estimate(|r| r.ssim))));
        chart = chart.series(Series { style: Style::Points, ..line });
    }
    chart
}

/// Ours against SRT.
fn claims(e: &Experiment, places: &[Place]) -> Vec<Claim> {
    let mut claims = Vec::new();
    for cap in HARM_CAPS {
        let Some(srt) = best(places, "srt", cap) else { continue };
        let percent = (100.0 * cap).round();
        let ours = OURS.iter().filter_map(|key| best(places, key, cap));
        let ours = ours.max_by(|a, b| a.mean(|r| r.ssim).total_cmp(&b.mean(|r| r.ssim)));
        let statement =
            format!("within a harm of {percent} % a sender of ours that adapts looks as good as SRT at its best rate");
        let what = "SSIM of the best of ours, less SRT's, seed by seed";
        let difference = ours.and_then(|ours| ours.less(srt, |r| r.ssim));
        claims.push(e.claim(format!("ssim-{percent}"), statement, Bound::AtLeast(-0.005), what).number(difference));
    }
    claims.extend(claims_of_auto(e, places));
    let Some(srt) = best(places, "srt", f64::INFINITY) else { return claims };
    let Some(fixed) = places.iter().find(|p| p.key == "fixed" && p.kbps == srt.kbps) else { return claims };
    let at = format!("{} kbit/s", srt.at());
    let less = |number: fn(&Seen) -> f64| fixed.less(srt, number);
    let ended = fixed.ended();
    let of = format!(
        "Fairpace at SRT's best rate, {at}, less SRT, seed by seed; {ended} of {} ended by the breaker",
        fixed.runs.len()
    );
    claims.push(
        e.claim("fixed-whole", "at SRT's rate as many pictures are whole and in time", Bound::AtLeast(-0.005), &of)
            .number(less(|r| r.in_time)),
    );
    claims.push(
        e.claim("fixed-ssim", "at SRT's rate the picture is as good", Bound::AtLeast(-0.005), &of)
            .number(less(|r| r.ssim)),
    );
    let rtt = base(e).path.rtt.get().as_secs_f64();
    claims.push(
        e.claim(
            "fixed-freeze",
            "at SRT's rate the longest freeze is at most a round trip longer",
            Bound::AtMost(rtt),
            of,
        )
        .number(less(|r| r.freeze)),
    );
    claims
}

/// The default against SRT, and against TFRC.
fn claims_of_auto(e: &Experiment, places: &[Place]) -> Vec<Claim> {
    let mut claims = Vec::new();
    for cap in HARM_CAPS {
        let Some(srt) = best(places, "srt", cap) else { continue };
        let percent = (100.0 * cap).round();
        let less = |number: fn(&Seen) -> f64| best(places, "auto", cap).and_then(|auto| auto.less(srt, number));
        let claim = |key: &str, words: &str, what: &str| {
            let statement = format!("within a harm of {percent} % the default {words} as SRT at its best rate");
            e.claim(format!("auto-{key}-{percent}"), statement, Bound::AtLeast(-0.005), what)
        };
        claims.push(claim("ssim", "looks as good", "SSIM of auto, less SRT's, seed by seed").number(less(|r| r.ssim)));
        let whole = "share of pictures of auto whole and in time, less SRT's, seed by seed";
        claims.push(claim("whole", "shows as many pictures whole and in time", whole).number(less(|r| r.in_time)));
    }
    let free = |key: &str| places.iter().find(|p| p.key == key && p.kbps.is_none());
    let (Some(auto), Some(tfrc)) = (free("auto"), free("tfrc")) else { return claims };
    let more: Vec<f64> = auto.harm.iter().zip(&tfrc.harm).map(|(auto, tfrc)| auto - tfrc).collect();
    claims.push(
        e.claim(
            "auto-harm",
            "without a highest rate the default takes no more from TCP than TFRC does, and a tenth",
            Bound::AtMost(0.1),
            "harm of auto, less TFRC's, seed by seed",
        )
        .number(Estimate::of(&more)),
    );
    if e.id == SHORT_OF_CAPACITY {
        claims.extend(claims_short_of_capacity(e, auto, tfrc));
    }
    let ended: usize = places.iter().filter(|p| p.key == "auto").map(Place::ended).sum();
    claims.push(
        e.claim(
            "auto-ended",
            "the default is never ended by the circuit breaker",
            Bound::AtMost(0.0),
            "runs that ended",
        )
        .exact(ended as f64),
    );
    claims
}

/// Where the path is short of capacity, the default against TFRC: in the same runs, and as TFRC was once measured on sockets,
/// through the relay with this path (`tfrc` live: 91 % of the pictures in time, SSIM 0.86).
fn claims_short_of_capacity(e: &Experiment, auto: &Place, tfrc: &Place) -> [Claim; 4] {
    let claim = |key: &str, words: &str, bound, what: &str| {
        e.claim(format!("auto-{key}"), format!("short of capacity, the default {words}"), bound, what)
    };
    let whole = "share of pictures of auto whole and in time";
    [
        claim(
            "as-tfrc-whole",
            "shows as many pictures whole and in time as TFRC",
            Bound::AtLeast(-0.005),
            &format!("{whole}, less TFRC's, seed by seed"),
        )
        .number(auto.less(tfrc, |r| r.in_time)),
        claim(
            "as-tfrc-ssim",
            "looks as good as TFRC",
            Bound::AtLeast(-0.005),
            "SSIM of auto, less TFRC's, seed by seed",
        )
        .number(auto.less(tfrc, |r| r.ssim)),
        claim("as-live-whole", "shows as many as TFRC did live", Bound::AtLeast(TFRC_LIVE[0]), whole)
            .number(auto.estimate(|r| r.in_time)),
        claim("as-live-ssim", "looks as good as TFRC did live", Bound::AtLeast(TFRC_LIVE[1]), "SSIM of auto")
            .number(auto.estimate(|r| r.ssim)),
    ]
}

/// The same for who sets nothing, neither at `send` nor at `receive`.
fn claims_without_flags(e: &Experiment, auto: &Place) -> [Claim; 2] {
    let claim = |key: &str, words: &str, least, what: &str| {
        let statement = format!("short of capacity, the default without any flag at either end {words}");
        e.claim(format!("auto-no-flags-{key}"), statement, Bound::AtLeast(least), what)
    };
    [
        claim("whole", "shows as many as TFRC did live", TFRC_LIVE[0], "share of pictures of auto whole and in time")
            .number(auto.estimate(|r| r.in_time)),
        claim("ssim", "looks as good as TFRC did live", TFRC_LIVE[1], "SSIM of auto").number(auto.estimate(|r| r.ssim)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Effort;
    use fairpace_lab::Hooks;
    use std::rc::Rc;

    fn place(key: &'static str, kbps: f64, ssim: f64, harm: f64, voice: f64) -> Place {
        let runs =
            vec![Rc::new(Seen { ssim, ..Seen::default() }), Rc::new(Seen { ssim: ssim + 0.02, ..Seen::default() })];
        Place { key, name: key.to_owned(), kbps: Some(kbps), runs, harm: vec![harm, harm], voice: vec![voice, voice] }
    }

    #[test]
    fn the_best_of_a_sender_is_the_best_picture_within_the_harm_to_tcp_and_to_the_call() {
        let all = [
            place("srt", 200.0, 0.7, 0.01, 0.0),
            place("srt", 600.0, 0.8, 0.04, 0.0),
            place("srt", 900.0, 0.85, 0.04, 0.2),
            place("srt", 2_000.0, 0.9, 0.5, 0.0),
            place("plain", 600.0, 0.95, 0.04, 0.0),
        ];
        let rate = |cap| best(&all, "srt", cap).and_then(|p| p.kbps);
        assert_eq!(
            [rate(0.005), rate(0.02), rate(0.05), rate(0.3), rate(f64::INFINITY)],
            [None, Some(200.0), Some(600.0), Some(900.0), Some(2_000.0)]
        );
        let gain = all[1].less(&all[0], |r| r.ssim).unwrap();
        // The same on every seed: no spread.
        assert!((gain.mean - 0.1).abs() < 1e-12 && gain.half_width() < 1e-9);
    }

    #[test]
    fn over_a_household_s_line_a_constant_rate_takes_from_tcp_what_it_sends() {
        let e = EXPERIMENTS.iter().find(|e| e.id == "viewers.dsl").unwrap();
        let mut bench = Bench::new(Hooks::default(), Effort::Quick);
        let places = every_sender(&Alone::new(e, &mut bench).unwrap(), &mut bench).unwrap();
        for key in ["fixed", "srt", "plain"] {
            let harm: Vec<f64> = places.iter().filter(|p| p.key == key).map(|p| mean(&p.harm)).collect();
            assert!(harm.len() == 4 && harm.is_sorted(), "{key}: {harm:?}");
            assert!(harm[0] > 0.05 && harm[3] > 0.6, "{key}: {harm:?}");
        }
        // One that gives way takes less than a rate above capacity, and more than nothing.
        let rcs = places.iter().find(|p| p.key == "rcs" && p.kbps.is_none()).unwrap();
        assert!((0.1..0.7).contains(&mean(&rcs.harm)), "{:?}", rcs.harm);
        // Nothing is lost at random here: with repair a stream above the encoder's least rate is whole.
        let slow = places.iter().find(|p| p.key == "fixed" && p.kbps == Some(350.0)).unwrap();
        assert!(slow.mean(|r| r.in_time) > 0.98, "{:?}", slow.runs);
        let outcome = run(e, &mut bench, &mut Tools::default()).unwrap();
        assert_eq!(outcome.section.tables.len(), 5);
        assert_eq!(outcome.section.tables[0].rows.len(), keys().len());
        // A second of play-out and 10 ms of path, for all alike; and a queue of 50 packets' time at most.
        for metric in ["delay_median_ms", "delay_p95_ms"] {
            let all: Vec<f64> = outcome.points.iter().filter(|p| p.metric == metric).map(|p| p.estimate.mean).collect();
            assert!(all.len() > 2 * keys().len() - 4, "{metric}: {all:?}");
            assert!(all.iter().all(|ms| (1_010.0..1_300.0).contains(ms)), "{metric}: {all:?}");
        }
        // Every sender is in one of the planes, the default in both; no two of a plane look alike.
        let charts = &outcome.section.charts;
        assert!(charts.iter().flat_map(|c| &c.series).all(|s| s.x.iter().chain(&s.y).all(|v| v.is_finite())));
        let names: Vec<&str> = charts.iter().flat_map(|c| &c.series).map(|s| s.name.as_str()).collect();
        assert_eq!(names.len(), keys().len() + 1, "{names:?}");
        let alone = numbers(e, &[], "nobody");
        assert_eq!((alone.rows.len(), alone.head.len()), (1, 1));
    }

    #[test]
    fn short_of_capacity_the_default_is_held_against_tfrc_beside_it_and_against_tfrc_as_measured_live() {
        let e = EXPERIMENTS.iter().find(|e| e.id == "viewers.congested").unwrap();
        let free = |key, ssim, in_time| {
            let run = |ssim: f64| Rc::new(Seen { ssim, in_time, ..Seen::default() });
            Place { kbps: None, runs: vec![run(ssim), run(ssim + 0.02)], ..place(key, 0.0, 0.0, 0.0, 0.0) }
        };
        let verdicts = |auto: Place| {
            let claims = claims_of_auto(e, &[auto, free("tfrc", 0.8, 0.7)]);
            let of = |claim: &Claim| Some((claim.id.split("/auto-as-").nth(1)?.to_owned(), claim.holds));
            claims.iter().filter_map(of).collect::<Vec<_>>()
        };
        let named = |holds: [bool; 4]| {
            let names = ["tfrc-whole", "tfrc-ssim", "live-whole", "live-ssim"];
            names.map(str::to_owned).into_iter().zip(holds).collect::<Vec<_>>()
        };
        assert_eq!(verdicts(free("auto", 0.796, 0.6)), named([false, true, false, false]));
        assert_eq!(verdicts(free("auto", 0.79, 0.92)), named([true, false, true, false]));
        assert_eq!(verdicts(free("auto", 0.85, 0.9)), named([true, true, false, true]));
    }

    #[test]
    fn without_flags_the_play_out_adapts_and_the_default_is_held_against_the_same_numbers() {
        let e = EXPERIMENTS.iter().find(|e| e.id == SHORT_OF_CAPACITY).unwrap();
        let mut bench = Bench::new(Hooks::default(), Effort::Quick);
        let alone = Alone::new(e, &mut bench).unwrap();
        let adapts = alone.without_flags(&mut bench, "auto").unwrap();
        let second = alone.beside(&mut bench, ("auto", "AUTO"), &[None]).unwrap().swap_remove(0);
        // The queue of this path takes longer than a second.
        let delay = |place: &Place| place.of_some(|r| r.delay_95).unwrap().mean;
        assert!(delay(&adapts) > delay(&second) + 300.0, "{} {}", delay(&adapts), delay(&second));
        let lost = |place: &Place| 1.0 - place.mean(|r| r.in_time + r.damaged);
        assert!(lost(&adapts) < lost(&second), "{} {}", lost(&adapts), lost(&second));
        let verdicts = |in_time, ssim| {
            let run = |more| Rc::new(Seen { ssim: ssim + more, in_time, ..Seen::default() });
            let auto = Place { runs: vec![run(0.0), run(0.002)], ..place("auto", 0.0, 0.0, 0.0, 0.0) };
            claims_without_flags(e, &auto).map(|claim| claim.holds)
        };
        assert_eq!([verdicts(0.90, 0.87), verdicts(0.92, 0.85)], [[false, true], [true, false]]);
    }

    #[test]
    fn every_path_is_read_and_has_the_video_two_tcp_flows_and_a_call() {
        for e in EXPERIMENTS {
            let names: Vec<String> = base(e).flows.iter().map(|f| f.name.clone()).collect();
            assert_eq!(names, ["video", "tcp", "voice"], "{}", e.id);
        }
    }
}
