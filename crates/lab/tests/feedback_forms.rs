//! Transport-wide feedback beside RFC 8888's, at the same report interval, over the scenarios of `scenarios/worlds`.
//!
//! Flows start within 50 ms, drawn: four of these scenarios draw nothing else, and ten equal runs are one sample.
//! `FAIRPACE_FEEDBACK=full` takes every controller and ten seeds, and prints the table of docs/rtp/twcc.md.

use fairpace_control::Controller;
use fairpace_control::feedback::Form;
use fairpace_lab::pool::Hooks;
use fairpace_lab::run::simulate;
use fairpace_scenario::{Feedback, Record, Scenario, with_controller};
use fairpace_units::Duration;
use std::path::Path;

/// The mean over the seeds of what all flows get together, bit/s.
fn throughput(scenario: &Scenario, feedback: &str, seeds: u64) -> f64 {
    let scenario = scenario.modify(|raw| {
        raw.feedback = Feedback::parse(feedback.to_owned()).unwrap();
        raw.flows.iter_mut().for_each(|flow| flow.start_spread = Duration::from_millis(50).into());
    });
    let scenario = scenario.unwrap();
    let record = Record { series: false, events: false, pcap: false };
    let runs = (1..=seeds).map(|seed| {
        let run = simulate(&scenario, seed, record, &Hooks::default()).unwrap();
        run.summary.flows.iter().map(|f| f.throughput_bps).sum::<f64>()
    });
    runs.sum::<f64>() / seeds as f64
}

#[test]
fn throughput_by_transport_wide_feedback_is_that_by_rfc_8888() {
    let full = std::env::var("FAIRPACE_FEEDBACK").is_ok_and(|v| v == "full");
    let worlds: &[&str] =
        if full { &["clean", "geo", "lossy", "red", "small-buffer", "trace"] } else { &["clean", "geo", "lossy"] };
    let (seeds, bound) = if full { (10, 0.05) } else { (2, 0.1) };
    let needs = |name| fairpace_control::build(name, &Default::default(), &Default::default()).unwrap();
    let names = fairpace_control::schemes().iter().map(|s| s.name).filter(|name| {
        let controller: Box<dyn Controller> = needs(name);
        controller.feedback_form() == Form::Ccfb && (full || ["rcs", "tfrc"].contains(name))
    });
    let (mut table, mut far) = (String::new(), Vec::new());
    for name in names {
        table += &format!("| `{name}` |");
        for world in worlds {
            let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../scenarios/worlds/{world}.toml"));
            let scenario = with_controller(&Scenario::load(&file).unwrap(), name).unwrap();
            let rfc8888 = throughput(&scenario, "ccfb 50 ms", seeds);
            let twcc = throughput(&scenario, "twcc 50 ms", seeds);
            // Where nothing is sent by either, nothing differs.
            let change = if twcc == rfc8888 { 0.0 } else { twcc / rfc8888 - 1.0 };
            table += &format!(" {:.3} / {:.3} ({:+.1} %) |", rfc8888 / 1e6, twcc / 1e6, 100.0 * change);
            if change.is_nan() || change.abs() > bound {
                far.push(format!("{name} in {world}: {change:+.3}"));
            }
        }
        table += "\n";
    }
    println!("| | {} |\n{table}", worlds.join(" | "));
    assert!(far.is_empty(), "{far:?}\n{table}");
}
