//! The fates of a video's frames over a scenario's path, by sender: a line per sender.
//!
//! `cargo run --release -p fairpace-viewer --example ledger -- scenarios/demo.toml 20 rcs tfrc fixed:rate=600kbit/s srt:rate=600kbit/s`
//!
//! A sender is one of our controllers with its parameters, and `max_rate`; or `srt`, `srt-fec`, `plain` with a `rate`.
//!
//! From the environment: `FIRST`, the first seed (1); `PLAYOUT_MS`, the play-out delay (1,000); `AUTO`, if set, it adapts from there; `NO_REPAIR`, nothing is
//! sent again; `NO_FEC`, there are no repair packets; `CLIP`, an encoder as for that clip (`film`, `zoom`, `cuts`; `each`: in
//! turn, a clip per seed, as in `fairpace reproduce viewers`), whose SSIM is shown then; `DUMP`, a folder for the fate of each frame, a file per sender
//! and seed.

use fairpace_lab::pool;
use fairpace_media::{EncoderModelParams, PlayoutParams};
use fairpace_rtp::ReceiverConfig;
use fairpace_scenario::Scenario;
use fairpace_units::{Duration, Rate, parse_rate};
use fairpace_viewer::{
    About, Clip, Fate, Ledger, PathRun, SenderSetup, SrtSetup, Watched, watch, watch_plain, watch_srt,
};

/// Of the senders that no one can ask for a key frame: one each two seconds.
const KEY_INTERVAL: u32 = 50;
/// Of those that can be asked: one each ten.
const SELDOM: u32 = 250;
/// Data packets per packet of SRT's filter.
const SRT_COLUMNS: u64 = 10;

type Failure = Box<dyn std::error::Error>;

/// A run of any sender.
struct Run {
    ledger: Ledger,
    path: PathRun,
    playout: Duration,
    /// With a clip.
    ssim: Option<f64>,
}

fn main() -> Result<(), Failure> {
    let mut args = std::env::args().skip(1);
    let path = args.next().ok_or("which scenario?")?;
    let seeds: u64 = args.next().ok_or("how many seeds?")?.parse()?;
    let scenario = Scenario::parse(&std::fs::read_to_string(&path)?, &path)?;
    let env = |name: &str| std::env::var(name).ok();
    let playout_ms: u64 = env("PLAYOUT_MS").map_or(Ok(1_000), |v| v.parse())?;
    let first: u64 = env("FIRST").map_or(Ok(1), |v| v.parse())?;
    let dump = env("DUMP");
    print!("{:<28}", "sender");
    Fate::ALL.iter().for_each(|fate| print!(" {:>13}", fate.name()));
    println!(
        " {:>9} {:>8} {:>8} {:>7} {:>7} {:>9} {:>8} {:>8} {:>7}",
        "damaged", "freeze s", "kbit/s", "rtx %", "fec %", "TCP", "delay ms", "glass ms", "SSIM"
    );
    for word in args {
        let seeds: Vec<u64> = (first..first + seeds).collect();
        let runs = pool::map(
            &seeds,
            &Default::default(),
            |s| s.to_string(),
            |seed| one(&scenario, *seed, &word, Duration::from_millis(playout_ms)).map_err(|e| e.to_string()),
        )?;
        let runs: Vec<Run> = runs.into_iter().flatten().collect();
        print!("{word:<28}");
        let n = runs.len().max(1) as f64;
        let mean = |f: &dyn Fn(&Run) -> f64| runs.iter().map(f).sum::<f64>() / n;
        let share = |r: &Run, frames: u32| 100.0 * f64::from(frames) / f64::from(r.ledger.tally().known().max(1));
        for fate in Fate::ALL {
            print!(" {:>11.2} %", mean(&|r| share(r, r.ledger.tally().of(fate))));
        }
        let damaged = |r: &Run| r.ledger.frames.iter().filter(|f| f.damaged && f.fate != Fate::Open).count();
        let seconds = scenario.duration.get().as_secs_f64();
        let bytes = |r: &Run| r.path.trips.iter().map(|t| t.size.as_f64()).sum::<f64>() * 8e-3 / seconds;
        let packets = |r: &Run, is: fn(&About) -> bool| {
            let all = r.path.trips.len().max(1) as f64;
            100.0 * r.path.trips.iter().filter(|t| is(&t.about)).count() as f64 / all
        };
        let tcp = |r: &Run| {
            let flows: Vec<f64> = r
                .path
                .beside
                .iter()
                .filter(|(name, _)| name.starts_with("tcp"))
                .map(|(_, c)| c.received.bytes.as_f64())
                .collect();
            flows.iter().sum::<f64>() * 8e-3 / seconds / flows.len().max(1) as f64
        };
        println!(
            " {:>7.2} % {:>8.2} {:>8.0} {:>7.2} {:>7.2} {:>9.0} {:>8.0} {:>8.0} {:>7.4}",
            mean(&|r| share(r, damaged(r) as u32)),
            mean(&|r| r.ledger.longest_freeze.as_secs_f64()),
            mean(&bytes),
            mean(&|r| packets(r, |about| matches!(about, About::Repair(_)))),
            mean(&|r| packets(r, |about| *about == About::Fec)),
            mean(&tcp),
            mean(&|r| r.playout.as_secs_f64() * 1e3),
            mean(&|r| r.ledger.glass_to_glass(0.5).unwrap_or_default().as_secs_f64() * 1e3),
            mean(&|r| r.ssim.unwrap_or(f64::NAN))
        );
        if let Some(folder) = &dump {
            for (seed, run) in seeds.iter().zip(&runs) {
                std::fs::write(format!("{folder}/{}-{seed}.csv", word.replace('/', "p")), run.ledger.to_string())?;
            }
        }
    }
    Ok(())
}

/// The clip that `CLIP` asks for.
fn clip(seed: u64) -> Result<Option<Clip>, Failure> {
    let Ok(name) = std::env::var("CLIP") else { return Ok(None) };
    let mut all = Clip::all();
    let place = match name.as_str() {
        "each" => usize::try_from(seed)? % all.len(),
        name => all.iter().position(|clip| clip.name == name).ok_or("CLIP is film, zoom, cuts or each")?,
    };
    Ok(Some(all.swap_remove(place)))
}

fn rate(text: &str) -> Result<Rate, Failure> {
    Ok(parse_rate(text)?.with_packets_of(fairpace_units::Bytes::new(1_000)))
}

fn one(scenario: &Scenario, seed: u64, word: &str, latency: Duration) -> Result<Run, Failure> {
    let (scheme, settings) = word.split_once(':').unwrap_or((word, ""));
    let clip = clip(seed)?;
    let is_ours = !["srt", "srt-fec", "plain"].contains(&scheme);
    let key_interval = if is_ours { SELDOM } else { KEY_INTERVAL };
    let usual = EncoderModelParams { key_interval, ..EncoderModelParams::default() };
    let encoder = clip.as_ref().map_or(usual, |clip| clip.encoder(key_interval));
    let look = |ledger: &Ledger| clip.as_ref().and_then(|clip| clip.ssim(ledger));
    let mut setup = SenderSetup { encoder, ..SenderSetup::new(scheme) };
    for pair in settings.split(',').filter(|p| !p.is_empty()) {
        let (key, value) = pair.split_once('=').ok_or("a setting is KEY=VALUE")?;
        match key {
            "max_rate" => setup.max_rate = rate(value)?,
            _ => drop(setup.settings.insert(key.to_owned(), value.to_owned())),
        }
    }
    if !is_ours {
        let rate = rate(setup.settings.get("rate").ok_or("a sender of one rate needs `rate`")?)?;
        let filter = (scheme == "srt-fec").then_some(SRT_COLUMNS);
        let (ledger, path) = match scheme {
            "plain" => watch_plain(scenario, seed, rate, latency, encoder)?,
            _ => watch_srt(scenario, seed, SrtSetup { rate, latency, filter, encoder })?,
        };
        return Ok(Run { ssim: look(&ledger), ledger, path, playout: latency });
    }
    let (repair, fec) = (std::env::var("NO_REPAIR").is_err(), std::env::var("NO_FEC").is_err());
    (setup.session.retransmission, setup.session.fec) = (repair, fec);
    let receiver = ReceiverConfig { nack: repair, fec, nack_deadline: latency, ..ReceiverConfig::default() };
    let playout = PlayoutParams {
        delay: latency,
        adaptive: std::env::var("AUTO").is_ok().then(Default::default),
        repair,
        ..PlayoutParams::default()
    };
    let Watched { ledger, path, receiver, .. } = watch(scenario, seed, setup, receiver, playout)?;
    Ok(Run { ssim: look(&ledger), ledger, path, playout: receiver.playout().delay() })
}
