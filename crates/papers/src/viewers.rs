//! The viewer's picture by sender: ours, plain RTP and SRT's live mode over the same path, beside the same TCP and a voice call.
//!
//! No paper has this. Each path is a scenario; each sender takes the place of its flow `video`, with the sessions of the wire
//! (`fairpace-viewer`), a play-out delay of one second for all, and an encoder that varies as a recorded clip does. A seed has
//! a clip: the three of them in turn. Harm is taken seed by seed against the same path without the video.
//!
//! A sender of one rate is shown at every rate of a grid, a sender that adapts with that grid as `max_rate` and without; so
//! each has one knob, and "the best within a harm of 5 %" is the best of its grid for every one of them.

use crate::builtin::{base, with};
use crate::figure::{curve, table, text};
use crate::{Bench, Bound, Claim, Effort, Experiment, Outcome, Point, Tools};
use fairpace_lab::RunError;
use fairpace_lab::run::simulate;
use fairpace_lab::stats::{Estimate, mean, short};
use fairpace_lab::study::{Case, Cell, Job, Measure, Sampling, Study};
use fairpace_media::PlayoutParams;
use fairpace_report::{Axis, Chart, Series, Style};
use fairpace_rtp::ReceiverConfig;
use fairpace_scenario::{Parameter, Record, Scenario};
use fairpace_sim::FlowCounts;
use fairpace_units::{Duration, Rate, parse_rate};
use fairpace_viewer::{Clip, Fate, Ledger, PathRun, SenderSetup, SrtSetup, watch, watch_plain, watch_srt};
use serde::{Deserialize, Serialize};
use std::rc::Rc;

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

/// Play-out delay and SRT's latency.
const PLAYOUT: Duration = Duration::from_secs(1);
/// Rates of the senders of one rate, and `max_rate` of those that adapt, kbit/s.
const GRID_KBPS: [f64; 12] =
    [150.0, 200.0, 270.0, 350.0, 450.0, 600.0, 800.0, 1_050.0, 1_400.0, 1_900.0, 2_500.0, 3_300.0];
/// Largest harm to TCP that the comparison is made at, a share.
const HARM_CAPS: [f64; 3] = [0.02, 0.05, 0.1];
/// Data packets per packet of SRT's filter.
const SRT_COLUMNS: u64 = 10;
/// A key frame each two seconds, where nobody can ask for one.
const KEY_INTERVAL: u32 = 50;

/// Our controllers that adapt; `tpba` needs a TCP connection beside, which simulated sessions do not have.
const OURS: [&str; 10] = ["auto", "rcs", "rap", "srp", "crp", "mrp", "tfrc", "aimd", "lda", "ldaf"];

/// The senders of one rate: key and name.
const ONE_RATE: [(&str, &str); 4] =
    [("fixed", "Fairpace, fixed"), ("srt", "SRT"), ("srt-fec", "SRT with its filter"), ("plain", "plain RTP")];

/// One run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Seen {
    /// Rate of the TCP flows together, kbit/s.
    tcp: f64,
    /// Share of the call's packets that came within 150 ms of the fastest.
    voice: f64,
    /// Share of the source's pictures that were shown whole and in time.
    in_time: f64,
    /// Share shown damaged.
    damaged: f64,
    /// SSIM with freezes.
    ssim: f64,
    /// Longest freeze, s.
    freeze: f64,
    /// Everything that was sent, and of that the frames shown in time, kbit/s.
    sent: f64,
    useful: f64,
    /// 1 if the session ended before the run did: the circuit breaker, or silence.
    ended: f64,
}

impl Seen {
    fn of(clip: &Clip, ledger: &Ledger, path: &PathRun) -> Seen {
        let per_second = 8e-3 / path.duration.as_secs_f64();
        let tally = ledger.tally();
        let in_time = ledger.frames.iter().filter(|f| f.fate == Fate::InTime);
        let damaged = ledger.frames.iter().filter(|f| f.damaged && f.fate != Fate::Open).count();
        let mut seen = Seen {
            in_time: tally.in_time(),
            damaged: damaged as f64 / f64::from(tally.known().max(1)),
            ssim: clip.ssim(ledger).unwrap_or(0.0),
            freeze: ledger.longest_freeze.as_secs_f64(),
            sent: path.trips.iter().map(|t| t.size.as_f64()).sum::<f64>() * per_second,
            useful: in_time.map(|f| f.size.as_f64()).sum::<f64>() * per_second,
            ..Seen::default()
        };
        path.beside.iter().for_each(|(name, counts)| seen.beside(name, counts, per_second));
        seen
    }

    /// Takes in a flow beside the video: a TCP flow, or the call.
    fn beside(&mut self, name: &str, counts: &FlowCounts, per_second: f64) {
        if name.starts_with("tcp") {
            self.tcp += counts.unique.bytes.as_f64() * per_second;
        } else {
            self.voice = in_bound(counts);
        }
    }
}

/// Share of a call's packets that came in time.
fn in_bound(call: &FlowCounts) -> f64 {
    (call.received.packets.get() as f64 - call.outage.packets.get() as f64) / call.sent.packets.get().max(1) as f64
}

/// The clip of a seed.
fn clip(seed: u64) -> Clip {
    let mut all = Clip::all();
    let place = usize::try_from(seed % all.len() as u64).unwrap_or(0);
    all.swap_remove(place)
}

fn refused(e: impl core::fmt::Display) -> RunError {
    crate::builtin::ours(&e)
}

/// The video's place: its controller, its parameters as text, and its highest rate.
fn video(s: &Scenario) -> (String, Vec<(String, String)>, Rate) {
    let flow = s.flows.iter().find(|f| f.name == "video");
    let parameters = flow.map(|f| f.parameters.iter().map(|(k, v)| (k.clone(), v.text())).collect());
    let cap = flow
        .and_then(|f| f.max_rate.as_ref())
        .map_or(Rate::mbps(10.0), |cap| cap.get().with_packets_of(s.packet_size.get()));
    (flow.map_or_else(String::new, |f| f.controller.clone()), parameters.unwrap_or_default(), cap)
}

fn ours(job: &Job<'_>) -> Result<Seen, RunError> {
    let clip = clip(job.seed);
    let (scheme, settings, max_rate) = video(job.scenario);
    let mut setup = SenderSetup { max_rate, encoder: clip.encoder(), ..SenderSetup::new(&scheme) };
    setup.settings.extend(settings);
    let receiver = ReceiverConfig { nack: true, fec: true, nack_deadline: PLAYOUT, ..ReceiverConfig::default() };
    let playout = PlayoutParams { delay: PLAYOUT, repair: true, ..PlayoutParams::default() };
    let seen = watch(job.scenario, job.seed, setup, receiver, playout).map_err(refused)?;
    let ended = f64::from(u8::from(seen.stopped().is_some()));
    Ok(Seen { ended, ..Seen::of(&clip, &seen.ledger, &seen.path) })
}

/// The rate that the scenario gives the flow `video`.
fn one_rate(job: &Job<'_>) -> Rate {
    let (_, settings, _) = video(job.scenario);
    let rate = settings.iter().find(|(key, _)| key == "rate").and_then(|(_, rate)| parse_rate(rate).ok());
    rate.map_or(Rate::ZERO, |rate| rate.with_packets_of(job.scenario.packet_size.get()))
}

fn with_srt(job: &Job<'_>, filter: Option<u64>) -> Result<Seen, RunError> {
    let clip = clip(job.seed);
    let encoder = fairpace_media::EncoderModelParams { key_interval: KEY_INTERVAL, ..clip.encoder() };
    let setup = SrtSetup { rate: one_rate(job), latency: PLAYOUT, filter, encoder };
    let (ledger, path) = watch_srt(job.scenario, job.seed, setup).map_err(refused)?;
    Ok(Seen::of(&clip, &ledger, &path))
}

fn srt(job: &Job<'_>) -> Result<Seen, RunError> {
    with_srt(job, None)
}

fn srt_fec(job: &Job<'_>) -> Result<Seen, RunError> {
    with_srt(job, Some(SRT_COLUMNS))
}

fn plain(job: &Job<'_>) -> Result<Seen, RunError> {
    let clip = clip(job.seed);
    let encoder = fairpace_media::EncoderModelParams { key_interval: KEY_INTERVAL, ..clip.encoder() };
    let (ledger, path) = watch_plain(job.scenario, job.seed, one_rate(job), PLAYOUT, encoder).map_err(refused)?;
    Ok(Seen::of(&clip, &ledger, &path))
}

/// The path without the video.
fn alone(job: &Job<'_>) -> Result<Seen, RunError> {
    let run = simulate(job.scenario, job.seed, Record::default(), job.hooks)?;
    let per_second = 8e-3 / job.scenario.duration.get().as_secs_f64();
    let mut seen = Seen::default();
    run.report.flows.iter().for_each(|f| seen.beside(&f.name, &f.whole, per_second));
    Ok(seen)
}

const ALONE: Measure<Seen> = Measure { name: "viewers.alone", of: alone };

/// The measurement of a sender, by its key.
fn measure(key: &str) -> Measure<Seen> {
    match key {
        "srt" => Measure { name: "viewers.srt", of: srt },
        "srt-fec" => Measure { name: "viewers.srt-fec", of: srt_fec },
        "plain" => Measure { name: "viewers.plain", of: plain },
        _ => Measure { name: "viewers.ours", of: ours },
    }
}

/// A sender at one place of its knob, over a path.
struct Place {
    key: &'static str,
    name: String,
    /// Its rate, or its highest; none: it takes what it finds.
    kbps: Option<f64>,
    runs: Vec<Rc<Seen>>,
    /// Of TCP's rate, and of the call's packets in time, what it took: one per seed.
    harm: Vec<f64>,
    voice: Vec<f64>,
}

impl Place {
    fn estimate(&self, number: impl Fn(&Seen) -> f64) -> Option<Estimate> {
        Estimate::of(&self.runs.iter().map(|r| number(r)).collect::<Vec<_>>())
    }

    fn mean(&self, number: impl Fn(&Seen) -> f64) -> f64 {
        mean(&self.runs.iter().map(|r| number(r)).collect::<Vec<_>>())
    }

    fn within(&self, cap: f64) -> bool {
        mean(&self.harm) <= cap && mean(&self.voice) <= cap
    }

    /// Its rate, in words.
    fn at(&self) -> String {
        match self.kbps {
            None => "–".to_owned(),
            Some(kbps) if ONE_RATE.iter().any(|(key, _)| *key == self.key) => kbps.to_string(),
            Some(kbps) => format!("≤ {kbps}"),
        }
    }

    /// This less another, seed by seed.
    fn less(&self, other: &Place, number: impl Fn(&Seen) -> f64) -> Option<Estimate> {
        let pairs = self.runs.iter().zip(&other.runs);
        Estimate::of(&pairs.map(|(a, b)| number(a) - number(b)).collect::<Vec<_>>())
    }
}

/// Every sender at every place of its knob.
fn places(e: &Experiment, bench: &mut Bench<'_>) -> Result<Vec<Place>, RunError> {
    let base = base(e);
    let seeds: Vec<u64> = (1..=bench.seeds(21, 60) as u64).collect();
    let study =
        |measure, cases| Study { name: e.id.to_owned(), measure, cases, sampling: Sampling::Exactly(seeds.clone()) };
    let without = with(&base, |s| s.flows.retain(|f| f.name != "video"));
    let alone = study(ALONE, vec![Case::new("alone", 0.0, without)]).simulate(bench)?;
    let alone: Vec<Rc<Seen>> = alone.cells.into_iter().flat_map(|cell: Cell<Seen>| cell.runs).collect();
    let sender = |key: &str, kbps: Option<f64>| {
        let scenario = with(&base, |s| {
            for video in s.flows.iter_mut().filter(|f| f.name == "video") {
                video.parameters.clear();
                if OURS.contains(&key) {
                    key.clone_into(&mut video.controller);
                    video.max_rate = kbps.map(fairpace_scenario::Speed::kbps);
                } else if let Some(kbps) = kbps {
                    let rate = Parameter::Text(format!("{kbps} kbit/s"));
                    video.parameters.insert("rate".to_owned(), rate);
                }
            }
        });
        Case::new(key, kbps.unwrap_or(0.0), scenario)
    };
    let step = if bench.effort() == Effort::Quick { 3 } else { 1 };
    let mut all = Vec::new();
    let adapting = OURS.iter().map(|key| (*key, key.to_uppercase(), true));
    let one_rate = ONE_RATE.iter().map(|(key, name)| (*key, (*name).to_owned(), false));
    for (key, name, adapts) in adapting.chain(one_rate) {
        let grid = GRID_KBPS.iter().step_by(step).map(|kbps| Some(*kbps));
        let knob: Vec<Option<f64>> = grid.chain(adapts.then_some(None)).collect();
        let cases = knob.iter().map(|kbps| sender(key, *kbps)).collect();
        let found = study(measure(key), cases).simulate(bench)?;
        for (kbps, cell) in knob.into_iter().zip(found.cells) {
            let of = |number: fn(&Seen, &Seen) -> f64| {
                cell.runs.iter().zip(&alone).map(|(with, alone)| number(with, alone)).collect::<Vec<f64>>()
            };
            let harm = of(|with, alone| 1.0 - with.tcp / alone.tcp.max(f64::MIN_POSITIVE));
            let voice = of(|with, alone| alone.voice - with.voice);
            all.push(Place { key, name: name.clone(), kbps, harm, voice, runs: cell.runs });
        }
    }
    Ok(all)
}

/// The best picture of a sender within a harm.
fn best<'p>(places: &'p [Place], key: &str, cap: f64) -> Option<&'p Place> {
    let within = places.iter().filter(|p| p.key == key && p.within(cap));
    within.max_by(|a, b| a.mean(|r| r.ssim).total_cmp(&b.mean(|r| r.ssim)))
}

fn keys() -> Vec<&'static str> {
    OURS.into_iter().chain(ONE_RATE.map(|(key, _)| key)).collect()
}

fn run(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let places = places(e, bench)?;
    let mut section = e.section().chart(plane(e, &places));
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
    Ok(e.outcome(points, claims(e, &places), section))
}

fn points_of(p: &Place, key: &str) -> Vec<Point> {
    let metrics = [
        ("in_time", p.estimate(|r| r.in_time)),
        ("damaged", p.estimate(|r| r.damaged)),
        ("ssim", p.estimate(|r| r.ssim)),
        ("freeze_s", p.estimate(|r| r.freeze)),
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
            harm(&p.harm),
            harm(&p.voice),
            text(p.estimate(|r| r.sent)),
            text(p.estimate(|r| r.useful)),
            format!("{} of {}", p.runs.iter().filter(|r| r.ended > 0.0).count(), p.runs.len()),
        ]
    };
    let head = [
        "sender",
        "rate, kbit/s",
        "whole and in time, %",
        "damaged, %",
        "SSIM",
        "longest freeze, s",
        "harm to TCP, %",
        "harm to the call, %",
        "sent, kbit/s",
        "of use, kbit/s",
        "ended by themselves",
    ];
    table(
        format!("Senders, {words}"),
        format!("{}; mean ± half-width of the 95 % interval (Student's t)", e.file),
        head,
        chosen.iter().map(row),
    )
}

/// Picture against harm.
fn plane(e: &Experiment, places: &[Place]) -> Chart {
    let cap = HARM_CAPS[1];
    let winner = keys().into_iter().filter_map(|key| best(places, key, cap));
    let winner = winner.max_by(|a, b| a.mean(|r| r.ssim).total_cmp(&b.mean(|r| r.ssim)));
    let title = winner.map_or("No sender stays within a harm of 5 %".to_owned(), |p| {
        format!("Within a harm of 5 % the best picture is that of {}: SSIM {}", p.name, short(p.mean(|r| r.ssim)))
    });
    let axes = (
        Axis::new("harm to TCP: share of its rate without the video that it lost", "%"),
        Axis::new("SSIM, freezes counted", "").range(0.5, 1.0),
    );
    let mut chart = Chart::new(title, axes.0, axes.1)
        .caption(format!("{}; a point per rate (or highest rate); bars are 95 % intervals of SSIM", e.file));
    for key in keys() {
        let mut of: Vec<&Place> = places.iter().filter(|p| p.key == key).collect();
        of.sort_by(|a, b| mean(&a.harm).total_cmp(&mean(&b.harm)));
        let Some(first) = of.first() else { continue };
        let line = curve(first.name.clone(), key, of.iter().map(|p| (100.0 * mean(&p.harm), p.estimate(|r| r.ssim))));
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
    let ended = fixed.runs.iter().filter(|r| r.ended > 0.0).count();
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
    let ended = places.iter().filter(|p| p.key == "auto").flat_map(|p| &p.runs).filter(|r| r.ended > 0.0).count();
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

#[cfg(test)]
mod tests {
    use super::*;
    use fairpace_lab::Hooks;

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
        let places = places(e, &mut bench).unwrap();
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
        assert!(outcome.section.charts[0].series.iter().all(|s| s.x.iter().chain(&s.y).all(|v| v.is_finite())));
    }

    #[test]
    fn every_path_is_read_and_has_the_video_two_tcp_flows_and_a_call() {
        for e in EXPERIMENTS {
            let names: Vec<String> = base(e).flows.iter().map(|f| f.name.clone()).collect();
            assert_eq!(names, ["video", "tcp", "voice"], "{}", e.id);
        }
    }
}
