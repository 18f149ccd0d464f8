//! The experiments of `aimd` (Cai, Shen, Mark, Pan): §III and §IV, eqs. (1) to (4), Figs. 1 to 8, and the base
//! station that plans anew, of which the paper only speaks.
//!
//! CH - r1 - r2 - BS - MH [aimd §IV Fig. 2]: the path is r1 - r2, a flow's access link CH - r1, the wireless link BS - MH;
//! r2 - BS carries what BS - MH does and no more, and is left out. 200 kbit/s in slots of 5 ms, packets of 125 bytes,
//! minimal RTT 17 slots, alpha = 0.2, beta = 0.875, 80 s of which the first 5 s do not count.
//!
//! # Readings
//!
//! - The delay jitter of a packet is its one-way delay above the least that there can be. On an uplink that takes the same
//!   time for each ACK that is its RTT above the minimal RTT.
//! - The analytic window is shown twice: with slots counted from any slot on (the paper's), and from the slot after a
//!   success on, which is what a packet meets (`docs/qos.md`). Claims are about the first under the default, about the
//!   second under `after-success` (`readings.rs`); without memory they agree.
//! - "The same share" of N flows is 1/N each; their windows are the largest that eq. (4) and the outage of each allow.
//! - Numbers of TCP flows, their RTT, RED's thresholds, UDP's rates: the paper gives none. They stand in the scenarios.
//!
//! Where a claim says "near", "about" or "equal", the bound is ours, and printed.

mod fixed;
mod plan;
mod readings;
mod replan;
mod setup;
mod shared;
mod udp;
mod window;

use crate::Experiment;

/// Every row, in the paper's order; the last one is ours.
pub(super) const EXPERIMENTS: &[Experiment] = &[
    experiment!("aimd", "eq1", "AIMD with alpha by equation (1), beside TCP", fixed::eq1),
    experiment!("aimd", "fig1", "the window of one flow on a link of fixed capacity", fixed::fig1),
    experiment!("aimd", "eq2", "how much of a link of fixed capacity one flow uses", fixed::eq2),
    experiment!(
        "aimd",
        "fig3",
        "the largest window, persistent scheme, light and heavy traffic",
        window::fig3,
        readings::PERSISTENT
    ),
    experiment!(
        "aimd",
        "fig4",
        "the largest window, optimal scheme, light and heavy traffic",
        window::fig4,
        readings::OPTIMAL
    ),
    experiment!("aimd", "fig5", "throughput of one flow against TCP flows in the backbone", window::fig5),
    experiment!("aimd", "fig6", "two flows on one wireless link", shared::fig6),
    experiment!("aimd", "fig7", "four flows on one wireless link", shared::fig7),
    experiment!("aimd", "fig8", "AIMD and UDP over one wireless link", udp::fig8),
    experiment!("aimd", "plan", "what plans promise and what comes of them", plan::plan),
    experiment!("aimd", "replan", "a base station that plans anew when flows come and go", replan::replan),
];

#[cfg(test)]
mod tests {
    use super::setup::{D, FlowStats, PERSISTENT, R, SLOT, START, measure, of_flow, set_windows};
    use super::*;
    use crate::Bench;
    use crate::Effort;
    use crate::builtin::{base, with};
    use fairpace_lab::Hooks;
    use fairpace_lab::study::Case;
    use fairpace_scenario::SafetyMode;
    use fairpace_scenario::{Record, Time};

    #[test]
    fn every_built_in_scenario_reads_and_says_paper_safety() {
        for e in EXPERIMENTS {
            let s = base(e);
            assert_eq!(s.safety, SafetyMode::Paper, "{}", e.id);
            assert!(s.flows.iter().any(|f| f.group == "main" && f.controller == "aimd"), "{}", e.id);
            assert!(s.flows.iter().all(|f| f.user.is_none() || s.wireless.is_some()), "{}", e.id);
        }
    }

    #[test]
    fn the_minimal_rtt_is_17_slots_to_the_nanosecond() {
        for e in EXPERIMENTS {
            let s = base(e);
            let config = fairpace_scenario::sim_config(&s, 1, Record::default()).unwrap();
            for (flow, spec) in config.flows.iter().zip(&s.flows).filter(|(f, _)| config.radio_of(f).is_some()) {
                let far = ["aimd-2", "aimd-4"].contains(&spec.name.as_str());
                let r = if far { 25 } else { R };
                assert_eq!(config.min_rtt(flow), SLOT * r, "{} {}", e.id, flow.name);
                assert_eq!(flow.delay_bound, Some(config.min_owd(flow) + SLOT * D), "{} {}", e.id, flow.name);
            }
        }
    }

    #[test]
    fn loss_is_what_is_dropped_and_what_is_late_of_the_rest() {
        let stats = FlowStats { group: String::new(), throughput: 0.8, outage: 0.1, lost: 0.2 };
        assert!((stats.goodput() - 0.72).abs() < 1e-12);
        assert!((stats.failed() - 0.28).abs() < 1e-12);
    }

    /// Fig. 3 at p_e = 5 %, rwnd = 22, without cross traffic, 200 s: eq. (3) to the letter. P(Bin(27, 0.95) < 22) = 0.0022.
    #[test]
    fn the_simulated_outage_is_that_of_equation_3() {
        let e = EXPERIMENTS.iter().find(|e| e.id == "aimd.fig3").unwrap();
        for (window, percent) in [(22, 5.0), (22, 10.0), (24, 5.0)] {
            let s = with(&base(e), |s| {
                s.flows.retain(|f| f.group == "main");
                PERSISTENT.set(s, percent);
                set_windows(s, &[window]);
                s.duration = Time::seconds(205.0);
            });
            let cases = vec![Case::new("aimd", 0.0, s)];
            let found = measure(e, cases, 3, &mut Bench::new(Hooks::default(), Effort::Usual)).unwrap();
            let simulated = of_flow(&found.cells[0], 0, |g| g.outage).unwrap();
            let formula =
                fairpace_analysis::qos::outage(&PERSISTENT.process(percent).unwrap(), R, D, window, START).unwrap();
            // Three runs of 38,000 packets; 27 in a row have most of their slots in common.
            let spread = (formula * 27.0 / (3.0 * 38_000.0)).sqrt();
            assert!((simulated.mean - formula).abs() < 5.0 * spread, "{window} {percent}: {simulated:?} {formula}");
            let used = of_flow(&found.cells[0], 0, |g| g.throughput).unwrap().mean;
            assert!((used / (1.0 - percent / 100.0) - 1.0).abs() < 0.005, "{used}");
        }
    }

    #[test]
    fn every_experiment_runs_in_small_and_shows_what_it_found() {
        for e in EXPERIMENTS {
            // A few seconds over a backbone of a tenth, one seed; the phases of `replan` are code.
            let text = e
                .scenario
                .replace("duration = \"80 s\"\nwarmup = \"5 s\"", "duration = \"4 s\"\nwarmup = \"2 s\"")
                .replace(
                    "\"30 s\"\nstart_spread = \"1 s\"\nstop = \"60 s\"",
                    "\"2 s\"\nstart_spread = \"1 s\"\nstop = \"3.5 s\"",
                )
                .replace("duration = \"220 s\"", "duration = \"30 s\"")
                .replace("duration = \"800 s\"", "duration = \"200 s\"")
                .replace("100 Mbit/s\"\nrtt", "10 Mbit/s\"\nrtt");
            crate::small::runs(e, text, Effort::Seeds(1));
        }
    }
}
