//! Every sender at every place of its knob over a path: the runs, and what is measured of each.

use crate::builtin::{base, with};
use crate::{Bench, Effort, Experiment};
use fairpace_lab::RunError;
use fairpace_lab::run::simulate;
use fairpace_lab::stats::{Estimate, mean};
use fairpace_lab::study::{Case, Cell, Job, Measure, Sampling, Study};
use fairpace_media::{Adaptive, PlayoutParams};
use fairpace_rtp::ReceiverConfig;
use fairpace_scenario::{Capacity, LossSpec, Parameter, Record, Scenario, Speed};
use fairpace_sim::FlowCounts;
use fairpace_units::{Duration, Rate, parse_rate};
use fairpace_viewer::{Clip, Fate, Ledger, PathRun, SenderSetup, SrtSetup, watch, watch_plain, watch_srt};
use serde::{Deserialize, Serialize};
use std::rc::Rc;

/// Play-out delay and SRT's latency.
const PLAYOUT: Duration = Duration::from_secs(1);
/// Rates of the senders of one rate, and `max_rate` of those that adapt, kbit/s.
const GRID_KBPS: [f64; 12] =
    [150.0, 200.0, 270.0, 350.0, 450.0, 600.0, 800.0, 1_050.0, 1_400.0, 1_900.0, 2_500.0, 3_300.0];
/// Largest harm to TCP that the comparison is made at, a share.
pub(super) const HARM_CAPS: [f64; 3] = [0.02, 0.05, 0.1];
/// Data packets per packet of SRT's filter.
const SRT_COLUMNS: u64 = 10;
/// Capacity of the path of a control run: every sender of one rate fits.
const LOSSLESS_KBPS: f64 = 100_000.0;
/// A key frame each two seconds, where nobody can ask for one.
const KEY_INTERVAL: u32 = 50;
/// Where somebody can, as live encoders are set: ten seconds.
const SELDOM: u32 = 250;

/// Our controllers that adapt; `tpba` needs a TCP connection beside, which simulated sessions do not have.
pub(super) const OURS: [&str; 10] = ["auto", "rcs", "rap", "srp", "crp", "mrp", "tfrc", "aimd", "lda", "ldaf"];

/// The senders of one rate: key and name.
pub(super) const ONE_RATE: [(&str, &str); 4] =
    [("fixed", "Fairpace, fixed"), ("srt", "SRT"), ("srt-fec", "SRT with its filter"), ("plain", "plain RTP")];

/// One run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Seen {
    /// Rate of the TCP flows together, kbit/s.
    pub(super) tcp: f64,
    /// Share of the call's packets that came within 150 ms of the fastest.
    pub(super) voice: f64,
    /// Share of the source's pictures that were shown whole and in time.
    pub(super) in_time: f64,
    /// Share shown damaged.
    pub(super) damaged: f64,
    /// SSIM with freezes.
    pub(super) ssim: f64,
    /// Longest freeze, s.
    pub(super) freeze: f64,
    /// From a picture's capture to its time on the screen, ms: median and 95th percentile of those that were shown.
    pub(super) delay: Option<f64>,
    pub(super) delay_95: Option<f64>,
    /// Everything that was sent, and of that the frames shown in time, kbit/s.
    pub(super) sent: f64,
    pub(super) useful: f64,
    /// 1 if the session ended before the run did: the circuit breaker, or silence.
    pub(super) ended: f64,
}

impl Seen {
    fn of(clip: &Clip, ledger: &Ledger, path: &PathRun) -> Seen {
        let per_second = 8e-3 / path.duration.as_secs_f64();
        let tally = ledger.tally();
        let in_time = ledger.frames.iter().filter(|f| f.fate == Fate::InTime);
        let damaged = ledger.frames.iter().filter(|f| f.damaged && f.fate != Fate::Open).count();
        let delay = |share: f64| ledger.glass_to_glass(share).map(|delay| delay.as_secs_f64() * 1e3);
        let mut seen = Seen {
            delay: delay(0.5),
            delay_95: delay(0.95),
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
    let receiver = ReceiverConfig { nack: true, fec: true, nack_deadline: PLAYOUT, ..ReceiverConfig::default() };
    let playout = PlayoutParams { delay: PLAYOUT, repair: true, ..PlayoutParams::default() };
    received(job, receiver, playout)
}

/// As `receive` is without any flag: the play-out adapts, up to 2 s.
fn ours_adapting(job: &Job<'_>) -> Result<Seen, RunError> {
    let receiver = ReceiverConfig { nack: true, fec: true, ..ReceiverConfig::default() };
    let playout = PlayoutParams { adaptive: Some(Adaptive::default()), repair: true, ..PlayoutParams::default() };
    received(job, receiver, playout)
}

fn received(job: &Job<'_>, receiver: ReceiverConfig, playout: PlayoutParams) -> Result<Seen, RunError> {
    let clip = clip(job.seed);
    let (scheme, settings, max_rate) = video(job.scenario);
    let mut setup = SenderSetup { max_rate, encoder: clip.encoder(SELDOM), ..SenderSetup::new(&scheme) };
    setup.settings.extend(settings);
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
    let encoder = clip.encoder(KEY_INTERVAL);
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
    let encoder = clip.encoder(KEY_INTERVAL);
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
pub(super) struct Place {
    pub(super) key: &'static str,
    pub(super) name: String,
    /// Its rate, or its highest; none: it takes what it finds.
    pub(super) kbps: Option<f64>,
    pub(super) runs: Vec<Rc<Seen>>,
    /// Of TCP's rate, and of the call's packets in time, what it took: one per seed.
    pub(super) harm: Vec<f64>,
    pub(super) voice: Vec<f64>,
}

impl Place {
    pub(super) fn estimate(&self, number: impl Fn(&Seen) -> f64) -> Option<Estimate> {
        self.of_some(|r| Some(number(r)))
    }

    /// Over the runs that have such a number.
    pub(super) fn of_some(&self, number: impl Fn(&Seen) -> Option<f64>) -> Option<Estimate> {
        Estimate::of(&self.runs.iter().filter_map(|r| number(r)).collect::<Vec<_>>())
    }

    pub(super) fn mean(&self, number: impl Fn(&Seen) -> f64) -> f64 {
        mean(&self.runs.iter().map(|r| number(r)).collect::<Vec<_>>())
    }

    fn within(&self, cap: f64) -> bool {
        mean(&self.harm) <= cap && mean(&self.voice) <= cap
    }

    /// The runs that ended by themselves.
    pub(super) fn ended(&self) -> usize {
        self.runs.iter().filter(|r| r.ended > 0.0).count()
    }

    /// Its rate, in words.
    pub(super) fn at(&self) -> String {
        match self.kbps {
            None => "–".to_owned(),
            Some(kbps) if ONE_RATE.iter().any(|(key, _)| *key == self.key) => kbps.to_string(),
            Some(kbps) => format!("≤\u{a0}{kbps}"),
        }
    }

    /// This less another, seed by seed.
    pub(super) fn less(&self, other: &Place, number: impl Fn(&Seen) -> f64) -> Option<Estimate> {
        let pairs = self.runs.iter().zip(&other.runs);
        Estimate::of(&pairs.map(|(a, b)| number(a) - number(b)).collect::<Vec<_>>())
    }
}

/// A path, and what the flows beside the video have there without it.
pub(super) struct Alone<'e> {
    e: &'e Experiment,
    base: Scenario,
    seeds: Vec<u64>,
    runs: Vec<Rc<Seen>>,
}

impl<'e> Alone<'e> {
    pub(super) fn new(e: &'e Experiment, bench: &mut Bench<'_>) -> Result<Alone<'e>, RunError> {
        let seeds = (1..=bench.seeds(21, 60) as u64).collect();
        let mut alone = Alone { e, base: base(e), seeds, runs: Vec::new() };
        let without = with(&alone.base, |s| s.flows.retain(|f| f.name != "video"));
        let found = alone.study(ALONE, vec![Case::new("alone", 0.0, without)]).simulate(bench)?;
        alone.runs = found.cells.into_iter().flat_map(|cell: Cell<Seen>| cell.runs).collect();
        Ok(alone)
    }

    /// The path's round trip without queues, s.
    pub(super) fn rtt_s(&self) -> f64 {
        self.base.path.rtt.get().as_secs_f64()
    }

    fn study(&self, measure: Measure<Seen>, cases: Vec<Case>) -> Study<Seen> {
        Study { name: self.e.id.to_owned(), measure, cases, sampling: Sampling::Exactly(self.seeds.clone()) }
    }

    /// The scenario with a sender in the video's place.
    fn case(&self, key: &str, kbps: Option<f64>) -> Case {
        let scenario = with(&self.base, |s| {
            for video in s.flows.iter_mut().filter(|f| f.name == "video") {
                video.parameters.clear();
                if OURS.contains(&key) {
                    key.clone_into(&mut video.controller);
                    video.max_rate = kbps.map(Speed::kbps);
                } else if let Some(kbps) = kbps {
                    let rate = Parameter::Text(format!("{kbps} kbit/s"));
                    video.parameters.insert("rate".to_owned(), rate);
                }
            }
        });
        Case::new(key, kbps.unwrap_or(0.0), scenario)
    }

    /// A sender at these places of its knob.
    pub(super) fn beside(
        &self,
        bench: &mut Bench<'_>,
        (key, name): (&'static str, &str),
        knob: &[Option<f64>],
    ) -> Result<Vec<Place>, RunError> {
        let cases = knob.iter().map(|kbps| self.case(key, *kbps)).collect();
        self.placed(bench, (key, name), measure(key), knob, cases)
    }

    /// A sender of one rate where nothing is lost and nobody is beside: how its pictures look by their encoding alone.
    pub(super) fn control(
        &self,
        bench: &mut Bench<'_>,
        sender: (&'static str, &str),
        kbps: f64,
    ) -> Result<Place, RunError> {
        let Case { scenario, .. } = self.case(sender.0, Some(kbps));
        let lossless = with(&scenario, |s| {
            s.flows.retain(|f| f.name == "video");
            s.path.loss = LossSpec::default();
            s.path.outages.clear();
            s.path.rate = Some(Capacity::Fixed(Speed::kbps(LOSSLESS_KBPS)));
        });
        let case = Case::new(format!("{} lossless", sender.0), kbps, lossless);
        Ok(self.placed(bench, sender, measure(sender.0), &[Some(kbps)], vec![case])?.swap_remove(0))
    }

    /// A sender of ours without a highest rate, and a receiver whose play-out adapts: both ends as they are without any flag.
    pub(super) fn without_flags(&self, bench: &mut Bench<'_>, key: &'static str) -> Result<Place, RunError> {
        let measure = Measure { name: "viewers.ours-adapting", of: ours_adapting };
        let name = format!("{}, play-out adapts", key.to_uppercase());
        Ok(self.placed(bench, (key, &name), measure, &[None], vec![self.case(key, None)])?.swap_remove(0))
    }

    fn placed(
        &self,
        bench: &mut Bench<'_>,
        (key, name): (&'static str, &str),
        measure: Measure<Seen>,
        knob: &[Option<f64>],
        cases: Vec<Case>,
    ) -> Result<Vec<Place>, RunError> {
        let found = self.study(measure, cases).simulate(bench)?;
        let place = |(kbps, cell): (&Option<f64>, Cell<Seen>)| {
            let of = |number: fn(&Seen, &Seen) -> f64| {
                cell.runs.iter().zip(&self.runs).map(|(with, alone)| number(with, alone)).collect::<Vec<f64>>()
            };
            let harm = of(|with, alone| 1.0 - with.tcp / alone.tcp.max(f64::MIN_POSITIVE));
            let voice = of(|with, alone| alone.voice - with.voice);
            Place { key, name: name.to_owned(), kbps: *kbps, harm, voice, runs: cell.runs }
        };
        Ok(knob.iter().zip(found.cells).map(place).collect())
    }
}

/// Every sender at every place of its knob.
pub(super) fn every_sender(alone: &Alone<'_>, bench: &mut Bench<'_>) -> Result<Vec<Place>, RunError> {
    let step = if bench.effort() == Effort::Quick { 3 } else { 1 };
    let grid: Vec<Option<f64>> = GRID_KBPS.iter().step_by(step).map(|kbps| Some(*kbps)).collect();
    let free = [grid.clone(), vec![None]].concat();
    let mut all = Vec::new();
    for key in OURS {
        all.extend(alone.beside(bench, (key, &key.to_uppercase()), &free)?);
    }
    for sender in ONE_RATE {
        all.extend(alone.beside(bench, sender, &grid)?);
    }
    Ok(all)
}

/// The best picture of a sender within a harm.
pub(super) fn best<'p>(places: impl IntoIterator<Item = &'p Place>, key: &str, cap: f64) -> Option<&'p Place> {
    let within = places.into_iter().filter(|p| p.key == key && p.within(cap));
    within.max_by(|a, b| a.mean(|r| r.ssim).total_cmp(&b.mean(|r| r.ssim)))
}

pub(super) fn keys() -> Vec<&'static str> {
    OURS.into_iter().chain(ONE_RATE.map(|(key, _)| key)).collect()
}
