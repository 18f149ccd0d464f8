//! The experiments of `rcs` (Akyildiz, Akan, Morabito): §V, Figs. 7 to 22.
//!
//! Common set-up [rcs §V-A]: ten sources, one bottleneck of 1,300 packets/s of 1,000 bytes, a
//! two-priority buffer of 50 packets with push-out, RTT 550 ms, link errors with probability P on
//! the way forward, 450 s of which the first 50 s are left out (ours: the paper gives no lengths).
//! `safety = "paper"`. S_Target = 200 packets/s: above the fair share of 130, so that the network
//! limits and not the cap; below twice it, so that ten Initial phases do not swamp the queue.
//!
//! Readings: `readings.rs`. RAP runs with and without fine-grain adaptation. "Gain" is the ratio of throughputs,
//! "improvement" is that minus one.
//!
//! Where a claim says "nearly", "slightly" or "about", the bound is ours, and printed.

mod blackout;
mod encoder;
mod fairness;
mod readings;
mod setup;
mod sweeps;
mod traces;

use crate::Experiment;

/// Every row, in the paper's order.
pub(super) const EXPERIMENTS: &[Experiment] = &[
    experiment!("rcs", "fig7-9", "a real encoder follows S(t)", encoder::fig7_9, readings::ENCODERS),
    experiment!("rcs", "fig12", "one loss by a link error", traces::fig12),
    experiment!("rcs", "fig14", "loss by congestion", traces::fig14),
    experiment!("rcs", "fig16", "a signal loss of two SRTT", traces::fig16, readings::ONE_BLACKOUT),
    experiment!("rcs", "fig17a", "throughput against the loss probability", sweeps::fig17a, readings::BY_LOSS),
    experiment!("rcs", "fig17b", "throughput against the round-trip time", sweeps::fig17b, readings::SWEPT),
    experiment!("rcs", "fig17c", "throughput against low-priority background traffic", sweeps::fig17c, readings::SWEPT),
    experiment!("rcs", "fig17d", "throughput against the buffer size", sweeps::fig17d, readings::SWEPT),
    experiment!("rcs", "fig18", "overhead and gain against the loss probability", sweeps::fig18, readings::BY_LOSS),
    experiment!("rcs", "fig19", "overhead against the round-trip time", sweeps::fig19, readings::SWEPT),
    experiment!("rcs", "homogeneous", "ten RCS flows share a link", fairness::homogeneous),
    experiment!("rcs", "fig20", "RCS beside TCP over the same satellite", fairness::fig20, readings::FAIRNESS),
    experiment!("rcs", "fig21a-c", "RCS beside TCP that has a better path", fairness::fig21, readings::FAIRNESS_FAR),
    experiment!("rcs", "fig22a-b", "a signal loss of up to a minute", blackout::fig22, readings::BLACKOUTS),
];

#[cfg(test)]
mod tests {
    use super::setup::MAIN;
    use super::*;
    use crate::builtin::base;
    use fairpace_scenario::{Feedback, SafetyMode};

    #[test]
    fn every_built_in_scenario_reads_and_says_paper_safety() {
        for e in EXPERIMENTS {
            let s = base(e);
            assert_eq!(s.safety, SafetyMode::Paper, "{}", e.id);
            assert_eq!(s.feedback, Feedback::parse("every packet").unwrap(), "{}", e.id);
            assert!(s.flows.iter().any(|f| f.group == MAIN), "{}", e.id);
        }
    }

    /// Each as published: a run in which a rule of our own decided would be refused.
    #[test]
    fn every_experiment_runs_in_small_and_shows_what_it_found() {
        // The encoder is not built in; the traces are short as they are (`traces.rs`).
        let sweeps = EXPERIMENTS.iter().filter(|e| e.scenario.contains("warmup") && e.id != "rcs.fig7-9");
        let mut tried = 0;
        for e in sweeps {
            tried += 1;
            let text = e
                .scenario
                .replace("duration = \"450 s\"", "duration = \"12 s\"")
                .replace("duration = \"300 s\"", "duration = \"75 s\"")
                .replace("warmup = \"50 s\"", "warmup = \"4 s\"")
                .replace("start = \"100 s\"", "start = \"8 s\"")
                .replace("1300 pkt/s", "130 pkt/s");
            assert_ne!(text, e.scenario, "{}: nothing was made short", e.id);
            crate::small::runs(e, text, crate::Effort::Seeds(1));
        }
        assert_eq!(tried, 10);
    }
}
