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

mod clip;
mod curves;
pub(crate) mod model;
pub(crate) mod page;
mod scheme;
mod turn;

use crate::alone;
use crate::args::Demo as Args;
use crate::cmd::run::write_page;
use crate::error::{Failure, OCCUPIED, Outcome, code};
use crate::outputs;
use crate::stop::Stop;
use crate::term::{Columns, Ink, note, paint};
#[cfg(feature = "gst")]
pub(crate) use clip::{CLIP_NAME, ShippedClip};
use clip::{DemoClip, FRAMES_PER_SECOND};
use fairpace_lab::results::write_whole;
use fairpace_media::PlayoutParams;
use fairpace_path::{Capacity, LinkSpec, LossModel, QueueModel, RateModel};
use fairpace_scenario::{Record, Scenario, sim_config};
use fairpace_sim::{Protocol, SimConfig};
use fairpace_units::{Duration, Instant};
use model::{DemoResult, PathFacts, TurnEnd};
use scheme::schemes;
use std::io::Write as _;
use std::path::Path;
use turn::playout;

/// The path, as a scenario: `fairpace run` and `fairpace relay` take the same file.
const SCENARIO: &str = include_str!("../../../../scenarios/demo.toml");
pub(crate) fn run(args: &Args) -> Outcome {
    let schemes = schemes(&args.control)?;
    if args.seconds < Duration::from_secs(3) {
        return Err(Failure::usage(format!("`--seconds` is {} s: nothing would be seen", args.seconds.as_secs_f64()))
            .hint("3 s at least; the slow stretch of the path is from 12 to 20 s, the blackout from 24 to 27 s"));
    }
    let scenario = Scenario::parse(SCENARIO, "scenarios/demo.toml")?;
    let sim = sim_config(&scenario, args.seed, Record::default())?;
    let clip = DemoClip::new(args.source.as_deref())?;
    // A video that cannot be shown is an error before the first turn, and before anything is written.
    drop(clip.open()?);
    outputs::refuse_others_link(&args.out)?;
    if !args.force && std::fs::read_dir(&args.out).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(Failure::usage(format!("`{}` is not empty", args.out.display())).hint(OCCUPIED));
    }
    let _alone = alone::take(args.quiet)?;
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
            retransmission: !args.no_repair,
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
        TurnEnd::Failed { reason, .. } => Some(format!("{} failed: {reason}", s.label)),
        _ => None,
    });
    failed.map_or(Ok(()), |message| Err(Failure::new(code::FAILED, message)))
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
