//! The fates of a video's frames over a scenario's path, by sender: a line per sender.
//!
//! `cargo run --release -p fairpace-viewer --example ledger -- scenarios/demo.toml 20 rcs tfrc fixed:rate=600kbit/s`
//!
//! From the environment: `PLAYOUT_MS`, the play-out delay (1,000); `AUTO`, if set, it adapts from there; `NO_REPAIR`, nothing is
//! sent again; `NO_FEC`, there are no repair packets; `CLIP`, an encoder as for that clip (`film`, `zoom`, `cuts`); `DUMP`, a
//! folder for the fate of each frame, a file per seed.

use fairpace_lab::pool;
use fairpace_media::PlayoutParams;
use fairpace_rtp::ReceiverConfig;
use fairpace_scenario::Scenario;
use fairpace_units::Duration;
use fairpace_viewer::{About, Clip, Fate, SenderSetup, Watched, watch};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let path = args.next().ok_or("which scenario?")?;
    let seeds: u64 = args.next().ok_or("how many seeds?")?.parse()?;
    let scenario = Scenario::parse(&std::fs::read_to_string(&path)?, &path)?;
    let env = |name: &str| std::env::var(name).ok();
    let playout_ms: u64 = env("PLAYOUT_MS").map_or(Ok(1_000), |v| v.parse())?;
    let dump = env("DUMP");
    print!("{:<28}", "sender");
    Fate::ALL.iter().for_each(|fate| print!(" {:>13}", fate.name()));
    println!(" {:>8} {:>8} {:>7} {:>7} {:>9} {:>8}", "freeze s", "kbit/s", "rtx %", "fec %", "TCP", "delay ms");
    for word in args {
        let seeds: Vec<u64> = (1..=seeds).collect();
        let runs = pool::map(
            &seeds,
            &Default::default(),
            |s| s.to_string(),
            |seed| one(&scenario, *seed, &word, Duration::from_millis(playout_ms)).map_err(|e| e.to_string()),
        );
        let runs: Vec<Watched> = runs.into_iter().flatten().collect::<Result<_, String>>()?;
        print!("{word:<28}");
        let n = runs.len().max(1) as f64;
        for fate in Fate::ALL {
            let share = |w: &Watched| {
                let t = w.ledger.tally();
                100.0 * f64::from(t.of(fate)) / f64::from(t.known().max(1))
            };
            print!(" {:>11.2} %", runs.iter().map(share).sum::<f64>() / n);
        }
        let freeze = runs.iter().map(|w| w.ledger.longest_freeze.as_secs_f64()).sum::<f64>() / n;
        let seconds = scenario.duration.get().as_secs_f64();
        let bytes = |w: &Watched| w.path.trips.iter().map(|t| t.size.as_f64()).sum::<f64>() * 8e-3 / seconds;
        let share = |w: &Watched, is: fn(&About) -> bool| {
            let all = w.path.trips.len().max(1) as f64;
            100.0 * w.path.trips.iter().filter(|t| is(&t.about)).count() as f64 / all
        };
        let tcp = |w: &Watched| {
            w.path.beside.iter().map(|(_, c)| c.received.bytes.as_f64()).sum::<f64>() * 8e-3
                / seconds
                / w.path.beside.len().max(1) as f64
        };
        let mean = |f: &dyn Fn(&Watched) -> f64| runs.iter().map(f).sum::<f64>() / n;
        let delay = |w: &Watched| w.receiver.playout().delay().as_secs_f64() * 1e3;
        println!(
            " {freeze:>8.2} {:>8.0} {:>7.2} {:>7.2} {:>9.0} {:>8.0}",
            mean(&bytes),
            mean(&|w| share(w, |about| matches!(about, About::Repair(_)))),
            mean(&|w| share(w, |about| *about == About::Fec)),
            mean(&tcp),
            mean(&delay)
        );
        if let Some(folder) = &dump {
            for (seed, run) in seeds.iter().zip(&runs) {
                std::fs::write(format!("{folder}/{seed}.csv"), run.ledger.to_string())?;
            }
        }
    }
    Ok(())
}

fn one(scenario: &Scenario, seed: u64, word: &str, playout: Duration) -> Result<Watched, Box<dyn std::error::Error>> {
    let (scheme, settings) = word.split_once(':').unwrap_or((word, ""));
    let mut setup = SenderSetup::new(scheme);
    for pair in settings.split(',').filter(|p| !p.is_empty()) {
        let (key, value) = pair.split_once('=').ok_or("a setting is KEY=VALUE")?;
        setup.settings.insert(key.to_owned(), value.to_owned());
    }
    if let Ok(name) = std::env::var("CLIP") {
        setup.encoder = Clip::named(&name).ok_or("CLIP is film, zoom or cuts")?.encoder();
    }
    let (repair, fec) = (std::env::var("NO_REPAIR").is_err(), std::env::var("NO_FEC").is_err());
    (setup.session.retransmission, setup.session.fec) = (repair, fec);
    let receiver = ReceiverConfig { nack: repair, fec, nack_deadline: playout, ..ReceiverConfig::default() };
    let playout = PlayoutParams {
        delay: playout,
        adaptive: std::env::var("AUTO").is_ok().then(Default::default),
        repair,
        ..PlayoutParams::default()
    };
    Ok(watch(scenario, seed, setup, receiver, playout)?)
}
