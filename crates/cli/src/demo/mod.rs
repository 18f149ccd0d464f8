//! `fairpace demo`: the main job. Each scheme in turn sends a real video over real sockets through a relay
//! that applies a satellite-like path, and what a viewer would have seen is measured and drawn.
//!
//! ```text
//! sender thread ──UDP──▶ relay thread (path, two TCP flows) ──UDP──▶ receiver thread ──▶ SCHEME.ivf
//!       ◀───────── feedback, through the same path ──────────
//! ```
//!
//! After each turn `demo.json` and `report.html` are written anew, so that an interrupted demo leaves
//! valid results. Read first: `turn.rs` (one scheme's turn), `model.rs` (what is measured), `page.rs`.

pub(crate) mod model;
pub(crate) mod page;
mod turn;

use crate::args::Demo as Args;
use crate::cmd::run::{join_settings, split_settings, write_page};
use crate::error::{Failure, Outcome, code};
use crate::stop::Stop;
use crate::term::{Columns, Ink, note, paint};
use fairpace_emu::RealTimeLock;
use fairpace_lab::results::write_whole;
use fairpace_media::{MediaError, PlayoutParams, SourceSpec};
use fairpace_path::{Capacity, LinkSpec, LossModel, QueueModel, RateModel};
use fairpace_scenario::{Record, Scenario, sim_config};
use fairpace_sim::{Protocol, SimConfig};
use fairpace_units::{Duration, Instant};
use model::{DemoResult, Ended, PathFacts};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
#[cfg(feature = "gst")]
use std::path::PathBuf;

/// The path, as a scenario: `fairpace run` and `fairpace relay` take the same file.
const SCENARIO: &str = include_str!("../../../../scenarios/demo.toml");
/// Big Buck Bunny, (c) 2008 Blender Foundation, CC BY 3.0; see media/README.md.
#[cfg(feature = "gst")]
const CLIP: &[u8] = include_bytes!("../../../../media/bigbuckbunny.mp4");
#[cfg(feature = "gst")]
pub(crate) const CLIP_NAME: &str = "Big Buck Bunny, (c) 2008 Blender Foundation, CC BY 3.0";
/// The rate of the fixed scheme unless told otherwise: too much for the slow stretch, and for two TCP flows beside.
const FIXED_RATE: &str = "1.5 Mbit/s";
/// The frames of the clip.
const FRAMES_PER_SECOND: f64 = 25.0;
/// Moments of the stills, as shares of the turn: in good times, in the slow stretch, and the last picture,
/// which is due a second after it was sent.
const STILLS: [f64; 3] = [0.3, 0.6, 1.03];

/// A scheme to be shown.
struct Scheme {
    name: String,
    settings: BTreeMap<String, String>,
    label: String,
}

pub(crate) fn run(args: &Args) -> Outcome {
    let schemes = schemes(&args.control, !args.no_retransmission)?;
    if args.seconds < Duration::from_secs(3) {
        return Err(Failure::usage(format!("`--seconds` is {} s: nothing would be seen", args.seconds.as_secs_f64()))
            .hint("3 s at least; the slow stretch of the path is from 12 to 20 s, the blackout from 24 to 27 s"));
    }
    let scenario = Scenario::parse(SCENARIO, "scenarios/demo.toml")?;
    let sim = sim_config(&scenario, args.seed, Record::default())?;
    let clip = DemoClip::new(args.source.as_deref())?;
    // A video that cannot be shown is an error before the first turn, and before anything is written.
    drop(clip.open()?);
    let _alone = RealTimeLock::acquire()?;
    std::fs::create_dir_all(&args.out).map_err(|e| Failure::file("make", &args.out, &e))?;
    let stop = Stop::install()?;
    let mut demo = DemoResult {
        format: model::FORMAT.into(),
        fairpace: crate::args::VERSION.into(),
        source: clip.name.clone(),
        seed: args.seed,
        seconds: args.seconds.as_secs_f64(),
        interrupted: false,
        path: PathFacts {
            alone_kbps: alone(&sim, args.seconds)?,
            retransmission: !args.no_retransmission,
            ..facts(&sim, scenario.path.rtt.get(), playout(args))
        },
        schemes: Vec::new(),
    };
    let all = schemes.len();
    note(
        args.quiet,
        &format!(
            "{}, {} s each, over the path of scenarios/demo.toml; Ctrl-C ends it",
            if all == 1 { "1 scheme".to_owned() } else { format!("{all} schemes") },
            short(demo.seconds)
        ),
    );
    for (i, scheme) in schemes.iter().enumerate() {
        if stop.asked() {
            break;
        }
        note(args.quiet, &format!("\n[{}/{all}] {}", i + 1, scheme.label));
        let run = turn::run(scheme, &clip, &sim, args, &stop)?;
        demo.interrupted = stop.asked();
        demo.schemes.push(run);
        save(&demo, &args.out)?;
    }
    finish(args, &demo)
}

fn save(demo: &DemoResult, out: &Path) -> Outcome {
    write_whole(&out.join(model::FILE), serde_json::to_string(demo)?.as_bytes())?;
    write_page(&out.join("report.html"), &page::page(demo, out))
}

fn finish(args: &Args, demo: &DemoResult) -> Outcome {
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{}", serde_json::to_string(demo)?)?;
    } else {
        writeln!(out)?;
        let (head, rows) = page::summary(demo);
        let mut table = Columns::new(&head.iter().map(String::as_str).collect::<Vec<_>>());
        rows.into_iter().for_each(|row| table.row(row));
        table.print(&mut out, "")?;
        writeln!(out, "{}", paint(page::LEGEND, Ink::Faint))?;
        for run in &demo.schemes {
            if let Some(end) = page::early_end(run) {
                writeln!(out, "{}", paint(&format!("{}: {end}", run.label), Ink::Bad))?;
            }
        }
    }
    note(args.quiet, &format!("\nreport:  {}", args.out.join("report.html").display()));
    for video in demo.schemes.iter().filter_map(|s| s.video.as_ref()) {
        note(args.quiet, &format!("video:   {}", args.out.join(video).display()));
    }
    if demo.interrupted {
        return Err(Failure::new(code::INTERRUPTED, "interrupted: the report shows what was done until then"));
    }
    let failed = demo.schemes.iter().find_map(|s| match &s.ended {
        Ended::Failed { reason, .. } => Some(format!("{} failed: {reason}", s.label)),
        _ => None,
    });
    failed.map_or(Ok(()), |message| Err(Failure::new(code::FAILED, message)))
}

/// `rcs,rap:fine_grain=on,fixed` as schemes, each checked before anything is sent.
fn schemes(names: &[String], retransmission: bool) -> Outcome<Vec<Scheme>> {
    let mut out: Vec<Scheme> = Vec::new();
    for spec in join_settings(names) {
        let (name, mut settings) = split_settings("--control", &spec)?;
        let given = spec.split_once(':').map_or("", |(_, given)| given);
        if name == "rcs" {
            // The stream at its best quality is what the fixed scheme sends all the time.
            settings.entry("s_target".to_owned()).or_insert_with(|| FIXED_RATE.to_owned());
            // The longest that is safe without feedback: Backoff halves S every T_B/4, so that the blackout of 3 s
            // costs no more than the halving of Detected.
            settings.entry("t_b".to_owned()).or_insert_with(|| "15 s".to_owned());
        }
        if name == "fixed" {
            settings.entry("rate".to_owned()).or_insert_with(|| FIXED_RATE.to_owned());
        }
        let env = fairpace_control::Env::default();
        let controller = fairpace_control::build(name, &settings, &env)?;
        // The turns are to be alike.
        crate::profile::check_retransmission(&*controller, retransmission, "add `--no-retransmission`, for all turns")?;
        let label = match (name, settings.get("rate")) {
            ("fixed", Some(rate)) => format!("Fixed {rate}"),
            _ if given.is_empty() => name.to_uppercase(),
            _ => format!("{} {given}", name.to_uppercase()),
        };
        if out.iter().any(|s| s.label == label) {
            return Err(Failure::usage(format!("`--control` names `{spec}` twice")).hint("name each scheme once"));
        }
        out.push(Scheme { name: name.to_owned(), settings, label });
    }
    if out.is_empty() {
        return Err(Failure::usage("`--control` is empty")
            .hint("name at least one controller, as in `--control rcs,rap,fixed`"));
    }
    Ok(out)
}

/// The clip that comes with the program, unpacked into the temporary folder; goes away at the end.
#[cfg(feature = "gst")]
pub(crate) struct ShippedClip(PathBuf);

#[cfg(feature = "gst")]
impl ShippedClip {
    pub(crate) fn unpack() -> Outcome<ShippedClip> {
        let path = std::env::temp_dir().join(format!("fairpace-{}-bigbuckbunny.mp4", std::process::id()));
        std::fs::write(&path, CLIP).map_err(|e| Failure::file("write", &path, &e))?;
        Ok(ShippedClip(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

#[cfg(feature = "gst")]
impl Drop for ShippedClip {
    fn drop(&mut self) {
        // In the temporary folder: what stays behind goes with it.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// The clip that is sent, opened anew for each turn.
struct DemoClip {
    name: String,
    spec: SourceSpec,
    #[cfg(feature = "gst")]
    _shipped: Option<ShippedClip>,
}

impl DemoClip {
    fn new(source: Option<&str>) -> Outcome<DemoClip> {
        match source {
            Some("-") => {
                Err(Failure::usage("standard input can be shown only once, and each scheme shows the whole clip")
                    .hint("give a file"))
            }
            Some(word) => Ok(DemoClip::of(word.to_owned(), SourceSpec::parse(word)?)),
            None => DemoClip::shipped(),
        }
    }

    fn of(name: String, spec: SourceSpec) -> DemoClip {
        DemoClip {
            name,
            spec,
            #[cfg(feature = "gst")]
            _shipped: None,
        }
    }

    #[cfg(feature = "gst")]
    fn shipped() -> Outcome<DemoClip> {
        let clip = ShippedClip::unpack()?;
        Ok(DemoClip {
            name: CLIP_NAME.to_owned(),
            spec: SourceSpec::File(clip.path().to_owned()),
            _shipped: Some(clip),
        })
    }

    /// Without a codec there is nothing to see, but everything else is as real.
    #[cfg(not(feature = "gst"))]
    fn shipped() -> Outcome<DemoClip> {
        note(
            false,
            "note: this build has no GStreamer: frames have the right sizes and nothing to see (build with `--features gst`)",
        );
        Ok(DemoClip::of("model of an encoder".to_owned(), SourceSpec::Model))
    }

    fn open(&self) -> Result<Box<dyn fairpace_media::FrameSource>, MediaError> {
        self.spec.open(fairpace_units::RandomStream::named(1, "media.model"))
    }
}

/// How the receivers play out. With retransmission a lost packet comes a round trip late: 550 ms, and the
/// queue before it.
fn playout(args: &Args) -> PlayoutParams {
    let usual = PlayoutParams::default();
    if args.no_retransmission {
        return usual;
    }
    let delay = Duration::from_secs(1);
    PlayoutParams { delay, reorder_wait: delay, ..usual }
}

fn facts(sim: &SimConfig, rtt: Duration, playout: PlayoutParams) -> PathFacts {
    let link = sim.only_links().map_or_else(LinkSpec::default, |[forward, _]| forward.clone());
    let kbps = |rate: fairpace_units::Rate| rate.as_bps() / 1e3;
    PathFacts {
        capacity_kbps: match &link.rate {
            RateModel::Fixed(rate) => vec![(0.0, kbps(*rate))],
            RateModel::Schedule(steps) => steps.iter().map(|(at, rate)| (at.as_secs_f64(), kbps(*rate))).collect(),
            _ => Vec::new(),
        },
        rtt_ms: rtt.as_secs_f64() * 1e3,
        loss_probability: if let LossModel::Bernoulli(p) = &link.loss { p.get() } else { 0.0 },
        queue_packets: match &link.queue {
            QueueModel::DropTail { capacity: Capacity::Packets(n) }
            | QueueModel::TwoPriority { capacity: Capacity::Packets(n) } => n.get(),
            _ => 0,
        },
        outages_s: link
            .outage
            .iter()
            .map(|o| (o.start.since(Instant::ZERO).as_secs_f64(), o.length.as_secs_f64()))
            .collect(),
        beside: beside(sim),
        playout_ms: playout.delay.as_secs_f64() * 1e3,
        frames_per_second: FRAMES_PER_SECOND,
        ..PathFacts::default()
    }
}

/// The throughput of the flows beside without the video: the same path in simulated time.
fn alone(sim: &SimConfig, length: Duration) -> Outcome<model::Curve> {
    let flows: Vec<_> = sim.flows.iter().filter(|f| matches!(f.protocol, Protocol::Tcp(..))).cloned().collect();
    if flows.is_empty() {
        return Ok(Vec::new());
    }
    let second = Duration::from_secs(1);
    let config = SimConfig { flows, duration: length, warmup: Duration::ZERO, sample: Some(second), ..sim.clone() };
    let report = fairpace_sim::run(config)
        .map_err(|e| Failure::new(code::FAILED, format!("the simulator refuses the demo's path: {e}")))?;
    let mut curve = model::Curve::new();
    for row in &report.series {
        // A row tells of the second before it.
        let (at, kbps) = (row.at.as_secs_f64() - 1.0, row.throughput.as_bps() / 1e3);
        match curve.last_mut() {
            Some((t, sum)) if *t == at => *sum += kbps,
            _ => curve.push((at, kbps)),
        }
    }
    Ok(curve)
}

/// Names of the flows that the relay simulates.
fn beside(sim: &SimConfig) -> Vec<String> {
    let tcp = sim.flows.iter().filter(|f| matches!(f.protocol, Protocol::Tcp(..)));
    tcp.map(|f| f.name.clone()).collect()
}

use page::short;

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(list: &str) -> Result<Vec<String>, String> {
        let names: Vec<String> = list.split(',').map(String::from).collect();
        schemes(&names, true).map(|s| s.into_iter().map(|s| s.label).collect()).map_err(|e| e.to_string())
    }

    #[test]
    fn schemes_are_named_for_people_and_checked_before_anything_is_sent() {
        assert_eq!(labels("rcs,rap,fixed").unwrap(), ["RCS", "RAP", "Fixed 1.5 Mbit/s"]);
        assert_eq!(labels("fixed:rate=800 kbit/s").unwrap(), ["Fixed 800 kbit/s"]);
        assert!(labels("rcs,rcz").unwrap_err().contains("did you mean `rcs`?"));
        assert!(labels("rcs,rcs").unwrap_err().contains("twice"));
        let measured = labels("rap,tfrc:measured_by=receiver").unwrap_err();
        assert!(measured.contains("takes no retransmissions"), "{measured}");
        assert!(schemes(&["tfrc:measured_by=receiver".to_owned()], false).is_ok());
        assert!(labels("tcp-reno").unwrap_err().contains("in the simulator, the emulator and the relay only"));
    }

    #[test]
    fn the_scenario_of_the_demo_is_the_path_that_the_help_promises() {
        let scenario = Scenario::parse(SCENARIO, "scenarios/demo.toml").unwrap();
        let facts = facts(
            &sim_config(&scenario, 1, Record::default()).unwrap(),
            scenario.path.rtt.get(),
            PlayoutParams::default(),
        );
        assert_eq!(facts.capacity_kbps, [(0.0, 2000.0), (12.0, 800.0), (20.0, 2000.0)]);
        assert_eq!((facts.rtt_ms, facts.loss_probability, facts.queue_packets), (550.0, 0.01, 50));
        assert_eq!(facts.outages_s, [(24.0, 3.0)]);
        assert_eq!(facts.beside, ["tcp-1", "tcp-2"]);
    }
}
