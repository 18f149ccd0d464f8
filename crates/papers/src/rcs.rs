//! The experiments of `rcs` (Akyildiz, Akan, Morabito): §V, Figs. 7 to 22.
//!
//! Common set-up [rcs §V-A]: ten sources, one bottleneck of 1,300 packets/s of 1,000 bytes, a
//! two-priority buffer of 50 packets with push-out, RTT 550 ms, link errors with probability P on
//! the way forward, 450 s of which the first 50 s are left out (ours: the paper gives no lengths).
//! `safety = "paper"`. S_Target = 200 packets/s: above the fair share of 130, so that the network
//! limits and not the cap; below twice it, so that ten Initial phases do not swamp the queue.
//!
//! Readings that the figures show side by side: ACKs never lost, or lost with P too; RAP with and
//! without fine-grain adaptation; T_B = 10 SRTT and without limit (Fig. 22). "Gain" is the ratio of
//! throughputs, "improvement" is that minus one.
//!
//! Where a claim says "nearly", "slightly" or "about", the bound is ours, and printed.

mod blackout;
mod encoder;
mod fairness;
mod sweeps;
mod traces;

use crate::Experiment;
use crate::builtin::{base, time_ms};
use crate::figure::{Abscissa, Quantity, Scheme};
use fairpace_lab::study::{Job, Measure};
use fairpace_lab::{RunError, stats::jain_index};
use fairpace_scenario::{LossSpec, RawScenario, Record, Room, Speed};
use serde::{Deserialize, Serialize};

/// Every row, in the paper's order.
pub(super) const EXPERIMENTS: &[Experiment] = &[
    experiment!("rcs", "fig7-9", "a real encoder follows S(t)", encoder::fig7_9),
    experiment!("rcs", "fig12", "one loss by a link error", traces::fig12),
    experiment!("rcs", "fig14", "loss by congestion", traces::fig14),
    experiment!("rcs", "fig16", "a signal loss of two SRTT", traces::fig16),
    experiment!("rcs", "fig17a", "throughput against the loss probability", sweeps::fig17a),
    experiment!("rcs", "fig17b", "throughput against the round-trip time", sweeps::fig17b),
    experiment!("rcs", "fig17c", "throughput against low-priority background traffic", sweeps::fig17c),
    experiment!("rcs", "fig17d", "throughput against the buffer size", sweeps::fig17d),
    experiment!("rcs", "fig18", "overhead and gain against the loss probability", sweeps::fig18),
    experiment!("rcs", "fig19", "overhead against the round-trip time", sweeps::fig19),
    experiment!("rcs", "homogeneous", "ten RCS flows share a link", fairness::homogeneous),
    experiment!("rcs", "fig20", "RCS beside TCP over the same satellite", fairness::fig20),
    experiment!("rcs", "fig21a-c", "RCS beside TCP that has a better path", fairness::fig21),
    experiment!("rcs", "fig22a-b", "a signal loss of up to a minute", blackout::fig22),
];

const RCS: Scheme = Scheme::new("rcs", "RCS", "rcs");
const RCS_ACKS: Scheme = Scheme::new("rcs-acks-lost", "RCS, ACKs lost with P", "rcs").setting(lose_acks);
const RAP: Scheme = Scheme::new("rap", "RAP", "rap");
const RAP_ACKS: Scheme = Scheme::new("rap-acks-lost", "RAP, ACKs lost with P", "rap").setting(lose_acks);
const RAP_FINE: Scheme = Scheme::new("rap-fine", "RAP, fine grain", "rap:fine_grain=on");
const RENO: Scheme = Scheme::new("tcp-reno", "TCP Reno", "tcp-reno");
const NEWRENO: Scheme = Scheme::new("tcp-newreno", "TCP NewReno", "tcp-newreno");
const SACK: Scheme = Scheme::new("tcp-sack", "TCP SACK", "tcp-sack");

/// ACKs are lost with P too.
fn lose_acks(s: &mut RawScenario) {
    s.path.reverse.loss = s.path.loss.clone();
}

fn set_loss(s: &mut RawScenario, p: f64) {
    s.path.loss = LossSpec::random(p);
}

fn set_rtt(s: &mut RawScenario, ms: f64) {
    s.path.rtt = time_ms(ms);
    for flow in &mut s.flows {
        if flow.initial_rtt.is_some() {
            flow.initial_rtt = Some(time_ms(ms));
        }
    }
}

fn packets_per_second(pps: f64) -> Speed {
    Speed::packets_per_second(pps)
}

fn set_buffer(s: &mut RawScenario, packets: f64) {
    s.path.queue.set_capacity(Room::packets(packets as u64));
}

/// Low-priority background at `pps` packets/s in all: the scenario's constant flow; none at 0.
fn set_background(s: &mut RawScenario, pps: f64) {
    s.flows.retain(|f| f.name != "background" || pps > 0.0);
    for flow in s.flows.iter_mut().filter(|f| f.name == "background") {
        flow.rate = Some(packets_per_second(pps));
    }
}

/// The measurements of one run, after the warm-up.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
struct Got {
    /// Packets/s of a flow under study, mean over the group.
    main: Option<f64>,
    /// Packets/s of a TCP flow beside it, mean over the group.
    tcp: Option<f64>,
    /// Dummies / (data + dummies) sent by the flows under study.
    overhead: Option<f64>,
    /// One per flow.
    flows: Vec<OfFlow>,
}

/// The measurements of one flow.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
struct OfFlow {
    name: String,
    background: bool,
    pps: f64,
    acknowledged: u64,
    overhead: Option<f64>,
}

const MEASURE: Measure<Got> = Measure { name: "rcs", of: got };
const MAIN: &str = "main";

fn got(job: &Job<'_>) -> Result<Got, RunError> {
    let run = job.run(Record::default())?.summary;
    let of = |f: &fairpace_lab::metrics::FlowSummary| OfFlow {
        name: f.name.clone(),
        background: f.group == "background",
        pps: f.throughput_pps,
        acknowledged: f.acknowledged_packets,
        overhead: f.overhead,
    };
    Ok(Got {
        main: run.group(MAIN).map(|g| g.throughput_pps),
        tcp: run.group("tcp").map(|g| g.throughput_pps),
        overhead: run.group(MAIN).and_then(|g| g.overhead),
        flows: run.flows.iter().map(of).collect(),
    })
}

fn throughput(r: &Got) -> Option<f64> {
    r.main
}

fn tcp_throughput(r: &Got) -> Option<f64> {
    r.tcp
}

fn overhead(r: &Got) -> Option<f64> {
    r.overhead
}

/// Jain's index over every flow but the background [rcs eq. (8)].
fn jain_of_all(r: &Got) -> Option<f64> {
    jain_index(&r.flows.iter().filter(|f| !f.background).map(|f| f.pps).collect::<Vec<f64>>())
}

/// The same with each flow replaced by the mean of its group: without unfairness inside a group.
fn jain_of_groups(r: &Got) -> Option<f64> {
    jain_index(&[r.main?, r.tcp?])
}

fn acknowledged_jain(r: &Got) -> Option<f64> {
    jain_index(&r.flows.iter().map(|f| f.acknowledged as f64).collect::<Vec<f64>>())
}

const THROUGHPUT: Quantity<Got> =
    Quantity { key: "throughput_pps", label: "throughput per flow", unit: "packets/s", get: throughput };
const OVERHEAD: Quantity<Got> =
    Quantity { key: "overhead", label: "overhead: dummies / (data + dummies)", unit: "", get: overhead };
const P_LOSS: Abscissa = Abscissa::log("p_loss", "packet loss probability P", "");
const RTT: Abscissa = Abscissa::new("rtt_ms", "round-trip time", "ms");
const BUFFER: Abscissa = Abscissa::new("k_packets", "buffer K", "packets");
const BACKGROUND: Abscissa = Abscissa::new("s_l_pps", "low-priority background S_L", "packets/s");

#[cfg(test)]
mod tests {
    use super::*;
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
}
