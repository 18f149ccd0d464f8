//! The experiments of `lossy` (Ng, Chan): §3 to §6, Figs. 1 to 33.
//!
//! Three set-ups [lossy Tables 1 to 3]: a dumbbell of 5 kbit/s per flow with as many TCP
//! flows as rate-based ones, and a last hop of 150 kbit/s with one rate-based flow from a proxy beside
//! TCP flows from the proxy or from far away; before them one TCP alone on one channel, whose rate the
//! equations are to tell. TCP is Reno with a window of at most 1,000, packets are of 256 bytes, ACKs of
//! 40, runs of 250 s from 0 s on. `safety = "paper"`.
//!
//! Normalized throughput is what arrives over a flow's share of the bottleneck, TCP's retransmissions
//! included. Link errors strike data only, after the transmitter unless a figure says otherwise.
//!
//! Readings: `readings.rs`.
//!
//! Where a claim says "little", "alike" or "fair", the bound is ours, and printed.

mod baseline;
mod beside;
mod dumbbell;
mod last_hop;
mod readings;
mod setup;
mod terms;

use crate::Experiment;

/// Every row, in the paper's order.
pub(super) const EXPERIMENTS: &[Experiment] = &[
    experiment!(
        "lossy",
        "fig1-3",
        "what the simple and the complex equation say of one TCP",
        baseline::fig1_3,
        readings::ALONE
    ),
    experiment!(
        "lossy",
        "fig5-6",
        "SRP and CRP beside TCP, against the number of flows",
        dumbbell::fig5_6,
        readings::FLOWS
    ),
    experiment!("lossy", "fig7-12", "SRP and CRP beside TCP, against the error", dumbbell::fig7_12, readings::ERRORS),
    experiment!(
        "lossy",
        "fig13-14",
        "the two terms of the complex equation over time",
        terms::fig13_14,
        readings::ERRORS
    ),
    experiment!(
        "lossy",
        "fig16-17",
        "one flow on the last hop, against the number of TCP flows",
        last_hop::fig16_17,
        readings::FLOWS
    ),
    experiment!(
        "lossy",
        "fig18-19",
        "one flow on the last hop, against the error",
        last_hop::fig18_19,
        readings::ERRORS
    ),
    experiment!(
        "lossy",
        "fig20-23",
        "one flow on the last hop, against the delay of TCP's side links",
        last_hop::fig20_23,
        readings::FLOWS
    ),
    experiment!(
        "lossy",
        "fig25-27",
        "what the complex and the modified equation say of one TCP",
        baseline::fig25_27,
        readings::ALONE
    ),
    experiment!(
        "lossy",
        "fig28-29",
        "the modified schemes and their originals on the dumbbell",
        dumbbell::fig28_29,
        readings::PAIRED
    ),
    experiment!(
        "lossy",
        "fig30-33",
        "the modified schemes and their originals on the last hop",
        last_hop::fig30_33,
        readings::PAIRED
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Effort;
    use crate::builtin::base;
    use fairpace_scenario::Feedback;

    #[test]
    fn every_built_in_scenario_reads_and_says_paper_safety() {
        for e in EXPERIMENTS {
            let s = base(e);
            assert_eq!(s.safety, fairpace_scenario::SafetyMode::Paper, "{}", e.id);
            assert!(s.flows.iter().any(|f| f.group == "main"), "{}", e.id);
            let media = s.flows.iter().any(|f| !f.controller.starts_with("tcp"));
            assert!(!media || s.feedback == Feedback::parse("every packet").unwrap(), "{}", e.id);
        }
    }

    #[test]
    fn every_experiment_runs_in_small_and_shows_what_it_found() {
        for e in EXPERIMENTS {
            // A tenth of the time and less, one seed.
            let text = e.scenario.replace("\"250 s\"", "\"15 s\"").replace("\"20000 s\"", "\"300 s\"");
            assert_ne!(text, e.scenario, "{}: nothing was made short", e.id);
            let section = crate::small::runs(e, text, Effort::Seeds(1)).section;
            assert!(!section.charts.is_empty() && !section.tables.is_empty(), "{}", e.id);
        }
    }
}
