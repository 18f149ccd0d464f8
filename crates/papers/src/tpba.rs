//! The experiments of `tpba` (Tobe, Tamura, Nishino, Tokuda): §3 Fig. 3, §6 Figs. 10 to 32 and Table 3, and the
//! stop rules of which §7 only speaks.
//!
//! Flows 1, 2 and 4 are TCP, flow 3 is the media flow. Topology 1 is 1.2 Mbit/s and 12 ms [tpba §3, §6.1]; Topology 2 a path
//! of 160 ms across the Internet.
//!
//! # Readings
//!
//! - TCP is that of FreeBSD 2.2: Reno, a window of 16 KiB (32 segments), delayed ACKs of 200 ms, a timer of 500 ms, and no
//!   retransmission timeout below 1 s. The paper names the system and gives no window.
//! - The router's queue is not given: 96 KiB, of which the driver of the ATM card it names (`en`) keeps 64 KiB in the
//!   router and 32 KiB on the card. Two windows of 16 KiB do not overflow it, which "RTCP RR reports no loss" needs.
//!   The result with the 50 packets of an ordinary interface is shown beside it.
//! - TPBA's own rates are on the wire, in every world ([`fairpace_control::TcpProgress`]).
//! - Rates and f are of payload: 512 bytes of a packet of 552 on the wire, 64 of one of 104.
//! - f is of the flows that are there, over sampling periods of S_average = 1 s.
//! - The paper's Topology 2 has neither capacity nor loss: 10 Mbit/s, so that nine windows of 16 KiB per RTT fit, jitter of
//!   2 ms, and bursts of loss, some 15 s apart for three flows.
//! - A trial is a seed: flows that start together do so within 200 ms.
//! - A host holds a packet of TCP for up to 10 ms, a tick of FreeBSD's clock. Hosts that send at once keep each flow's window
//!   together in the queue, T_TCP then cuts windows in two, and probing periods last for tens of seconds. That is shown
//!   beside it; the paper's last less than 4 s.
//! - j_A at a switch is between the last data unit of one way and the first of the other.
//!
//! Where a claim says "near", "about" or "no", the bound is ours, and printed.

mod behaviour;
mod cases;
mod lda;
mod numbers;
mod readings;
mod response;
mod rules;
mod setup;
mod trace;

use crate::Experiment;

/// Every row, in the paper's order; the last one is ours.
pub(super) const EXPERIMENTS: &[Experiment] = &[
    experiment!("tpba", "fig3", "LDA beside TCP: no loss is reported, the gap stays", lda::fig3),
    experiment!(
        "tpba",
        "fig10-12",
        "TPBA beside TCP that comes and goes, Topology 1",
        behaviour::topology_1,
        readings::SWITCHING
    ),
    experiment!("tpba", "fig14-18", "TPBA over a long path, Topology 2", behaviour::topology_2, readings::SWITCHING),
    experiment!("tpba", "fig19", "fairness against the number of TCP flows", response::fig19),
    experiment!("tpba", "table3", "how long a change takes", response::table3),
    experiment!("tpba", "fig20-28", "the 16 cases of Table 4", cases::snapshots),
    experiment!("tpba", "fig29-31", "the 16 cases in three numbers", cases::differences::differences),
    experiment!("tpba", "fig32", "RAP in the place of TPBA", cases::fig32),
    experiment!("tpba", "rules", "three rules that end a probing period, 100 kbit/s to 10 Mbit/s", rules::rules),
];

#[cfg(test)]
mod tests {
    use super::setup::{Adu, SAMPLE, is_media};
    use super::*;
    use crate::Effort;
    use crate::builtin::{base, with};
    use fairpace_scenario::SafetyMode;
    use fairpace_scenario::Scenario;
    use fairpace_units::Duration;

    #[test]
    fn every_built_in_scenario_reads_and_flow_3_is_where_it_is_looked_for() {
        for e in EXPERIMENTS {
            let s = base(e);
            assert_eq!(s.safety, SafetyMode::Paper, "{}", e.id);
            assert_eq!(s.sample.get(), SAMPLE, "{}", e.id);
            assert_eq!(s.flows.iter().filter(|f| is_media(&f.group)).count(), 1, "{}", e.id);
            assert!(s.flows.iter().filter(|f| !is_media(&f.group)).all(|f| f.controller == "tcp-reno"), "{}", e.id);
            assert_eq!(s.packet_size.get().get(), 552, "{}", e.id);
        }
    }

    #[test]
    fn data_units_of_one_small_payload_share_segments_with_others() {
        let e = EXPERIMENTS.iter().find(|e| e.id == "tpba.fig10-12").unwrap();
        let s = with(&base(e), |s| Adu::One.set(s));
        let flow = s.flows.iter().find(|f| is_media(&f.group)).unwrap();
        assert_eq!(flow.packet_size.as_ref().unwrap().get().get(), 104);
        assert_eq!(flow.source.as_ref().unwrap().packets.unwrap().get(), 1);
        assert_eq!(flow.tcp.as_ref().unwrap().segment_size.as_ref().unwrap().get().get(), 552);
        // The changed scenario can be written and read again.
        Scenario::parse(&s.to_toml(), "again.toml").unwrap_or_else(|e| panic!("{e}"));
    }

    #[test]
    fn every_experiment_runs_in_small_and_shows_what_it_found() {
        for e in EXPERIMENTS {
            // The instants of changes are code: fig20-28 and what follows it take those of a quick run.
            let text = e.scenario.replace("rate = \"1.2 Mbit/s\"", "rate = \"600 kbit/s\"").replace("150 s", "30 s");
            crate::small::runs(e, text, Effort::Quick);
        }
    }

    #[test]
    fn real_time_is_the_sum_of_all_runs() {
        let chosen: Vec<&Experiment> = EXPERIMENTS.iter().filter(|e| e.id == "tpba.table3").collect();
        // Two seeds of two cases of 30 s.
        assert_eq!(crate::real_time(&crate::real_time_runs(&chosen, Effort::Seeds(2), None)), Duration::from_secs(120));
    }
}
