//! The circuit breaker over recorded links: every controller over every recording of a folder, and what ended each flow.
//!
//! `cargo run --release -p fairpace-lab --example breaker_traces FOLDER [SEEDS]` prints the tables of
//! `docs/controllers/breaker.md`. Files in mahimahi's format end in `.down` or `.up`; a `.csv` has a column `down_mbps`, and
//! its gaps are cut out.

use fairpace_control::StopReason;
use fairpace_lab::study::{Bench, Case, Effort, Measure, Measurements, Sampling, Study};
use fairpace_scenario::{Record, Scenario};
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::path::{Path, PathBuf};

/// The end of one flow, and its numbers.
#[derive(Clone, Serialize, Deserialize)]
struct Ended {
    /// The condition of RFC 8083 that ended the flow: `4.1`, `4.2`, `4.3`; empty if none did.
    by: String,
    /// Cuts to a tenth.
    cuts: u64,
    /// Data received after the warm-up, bit/s.
    throughput_bps: f64,
    /// Data lost, a fraction.
    lost: f64,
}

const ENDED: Measure<Ended> = Measure {
    name: "breaker.ended",
    of: |job| {
        let run = job.run(Record { series: false, events: false, pcap: false })?;
        let flow = &run.report.flows[0];
        let by = match flow.stopped {
            None => "",
            Some(StopReason::FeedbackTimeout { .. }) => "4.1",
            Some(StopReason::MediaTimeout { .. }) => "4.2",
            Some(StopReason::Congestion { .. }) => "4.3",
            Some(StopReason::PeerLied) => "a lie",
        };
        Ok(Ended {
            by: by.to_owned(),
            cuts: flow.media.as_ref().map_or(0, |media| media.counters.cuts),
            throughput_bps: flow.throughput().as_bps(),
            lost: flow.loss_ratio(),
        })
    },
};

/// Each flow begins somewhere in the first minute and has ten to run.
fn scenario(trace: &Path, controller: &str, safety: &str) -> Result<Scenario, Box<dyn Error>> {
    let file = trace.to_str().ok_or("a name that is not UTF-8")?;
    let format = if file.ends_with(".csv") {
        r#"format = "csv", column = "down_mbps", gaps = "cut""#
    } else {
        r#"format = "mahimahi""#
    };
    let more = match controller {
        "tpba" => "tcp = { variant = \"sack\" }\nsource = { kind = \"adus\", packets = 10 }",
        // Above the mean of every recording.
        "fixed" => "parameters = { rate = \"9 Mbit/s\" }",
        _ => "",
    };
    let text = format!(
        r#"
        title = "{controller} over a recorded link"
        seed = 1
        duration = "660 s"
        warmup = "60 s"
        feedback = "20 ms"
        safety = "{safety}"
        [path]
        trace = {{ file = "{file}", {format} }}
        rtt = "60 ms"
        jitter = "10 ms"
        queue = {{ kind = "drop-tail", capacity = "200 pkt" }}
        [[flows]]
        name = "media"
        controller = "{controller}"
        start_spread = "60 s"
        {more}
        "#
    );
    Ok(Scenario::parse(&text, "breaker.toml")?)
}

/// Silences of a recording: longer than 15 s without a packet, and the longest, in seconds.
fn silences(trace: &Path) -> Result<(usize, f64), Box<dyn Error>> {
    let text = std::fs::read_to_string(trace)?;
    let gaps: Vec<f64> = if trace.extension().is_some_and(|e| e == "csv") {
        // Samples of a second; runs of zeros.
        let mut runs = vec![0.0];
        for line in text.lines().skip(1) {
            let rate: f64 = line.split(',').nth(1).unwrap_or_default().parse().unwrap_or(0.0);
            match runs.last_mut() {
                Some(run) if rate <= 0.0 => *run += 1.0,
                _ => runs.push(0.0),
            }
        }
        runs
    } else {
        let times: Vec<f64> = text.lines().filter_map(|l| l.trim().parse().ok()).collect();
        times.windows(2).map(|w| (w[1] - w[0]) / 1e3).collect()
    };
    Ok((gaps.iter().filter(|gap| **gap > 15.0).count(), gaps.iter().copied().fold(0.0, f64::max)))
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let folder = PathBuf::from(args.next().ok_or("which folder has the recordings?")?).canonicalize()?;
    let seeds = args.next().map_or(Ok(40), |n| n.parse())?;
    let mut traces: Vec<PathBuf> =
        std::fs::read_dir(&folder)?.map(|e| e.map(|e| e.path())).collect::<Result<_, _>>()?;
    traces.retain(|t| t.extension().is_some_and(|e| ["down", "up", "csv"].iter().any(|end| e == *end)));
    traces.sort();
    let schemes = fairpace_control::schemes().iter().map(|s| s.name);
    for trace in &traces {
        let cases = schemes.clone().map(|name| Ok(Case::new(name, 0.0, scenario(trace, name, "default")?)));
        let cases = cases.collect::<Result<Vec<_>, Box<dyn Error>>>()?;
        let study = Study { name: "breaker".into(), measure: ENDED, cases, sampling: Sampling::Count(seeds) };
        let found = study.run(&mut Bench::new(Default::default(), Effort::Usual))?;
        print(trace, &found)?;
    }
    Ok(())
}

fn print(trace: &Path, found: &Measurements<Ended>) -> Result<(), Box<dyn Error>> {
    let (count, longest) = silences(trace)?;
    let name = trace.file_name().unwrap_or_default().to_string_lossy();
    println!("\n`{name}`: {count} silences above 15 s, the longest {longest:.1} s\n");
    println!(
        "| controller | ended by §4.1 | §4.2 | §4.3 | cuts per flow | kbit/s | lost % |\n| --- | --- | --- | --- | --- | --- | --- |"
    );
    for cell in &found.cells {
        let by = |section| cell.runs.iter().filter(|r| r.by == section).count();
        let mean = |number: fn(&Ended) -> f64| cell.mean(number).map_or(0.0, |e| e.mean);
        println!(
            "| `{}` | {} | {} | {} | {:.1} | {:.0} | {:.1} |",
            cell.scheme,
            by("4.1"),
            by("4.2"),
            by("4.3"),
            mean(|r| r.cuts as f64),
            mean(|r| r.throughput_bps) / 1e3,
            mean(|r| r.lost) * 100.0
        );
    }
    Ok(())
}
