//! A small study: the throughput of RCS and RAP over a long path, at three rates of link errors, three seeds each.
//!
//! `cargo run --release -p fairpace-lab --example study`

use fairpace_lab::run::RunError;
use fairpace_lab::study::{Bench, Case, Effort, Measure, Sampling, Study};
use fairpace_scenario::{LossSpec, Record, Scenario, with_controller};

/// The base scenario; the study varies its controller and its loss.
const SCENARIO: &str = r#"
    title = "One video flow beside TCP over a long, lossy path"
    seed = 1
    duration = "240 s"
    warmup = "20 s"
    [path]
    rate = "4 Mbit/s"
    rtt = "550 ms"
    queue = { kind = "two-priority", capacity = "50 pkt" }
    loss = { kind = "random", p = 0.001 }
    [[flows]]
    name = "video"
    controller = "rcs"
    [[flows]]
    name = "download"
    controller = "tcp-newreno"
"#;

/// The throughput of the flow `video` after the warm-up, bit/s. The name is the key under which a store keeps the points.
const THROUGHPUT: Measure<f64> =
    Measure { name: "example.throughput", of: |job| Ok(job.run(Record::default())?.summary.groups[0].throughput_bps) };

fn main() -> Result<(), RunError> {
    let base = Scenario::parse(SCENARIO, "study.toml")?;
    let mut cases = Vec::new();
    for scheme in ["rcs", "rap"] {
        for p in [0.0001, 0.001, 0.01] {
            // Each change gives a new scenario, checked as a whole.
            let scenario = with_controller(&base, scheme)?.modify(|raw| raw.path.loss = LossSpec::random(p))?;
            cases.push(Case::new(scheme, p, scenario));
        }
    }
    let study = Study { name: "errors".into(), measure: THROUGHPUT, cases, sampling: Sampling::Count(3) };
    let found = study.run(&mut Bench::new(Default::default(), Effort::Usual))?;
    for cell in ["rcs", "rap"].iter().flat_map(|scheme| found.xs(scheme).into_iter().map(move |p| (scheme, p))) {
        let (scheme, p) = cell;
        if let Some(estimate) = found.estimate(scheme, p, |throughput| Some(*throughput)) {
            let interval = estimate.ci95.map_or(0.0, |[low, high]| (high - low) / 2.0);
            println!("{scheme} at p = {p}: {:.0} ± {:.0} kbit/s", estimate.mean / 1e3, interval / 1e3);
        }
    }
    Ok(())
}
